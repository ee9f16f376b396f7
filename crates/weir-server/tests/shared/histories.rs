//! Histories of several clients, and whether they have one order.

use std::collections::BTreeMap;
use std::time::Instant;

/// One write of a value to all cells, or one read that found it in all of them.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub value: u32,
    pub is_write: bool,
    pub begin: Instant,
    pub end: Instant,
}

/// Whether some order of all operations that respects real time has every read find what was
/// written last. Every value is written once, so this is decided value by value (Gibbons and
/// Korach): the time in which a value is the current one at least, from the first end to the last
/// begin of the operations with it, must not overlap another such, nor hold all operations of
/// another value.
///
/// # Errors
/// There is no such order; says between which operations.
pub fn serialisable(history: &[Operation]) -> Result<(), String> {
    let mut by_value: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        by_value.entry(operation.value).or_default().push(*operation);
    }
    // (first end, last begin, value): where the end is first, the value is current in between.
    let mut zones = Vec::new();
    for (value, operations) in &by_value {
        let writes: Vec<_> = operations.iter().filter(|o| o.is_write).collect();
        let [write] = writes[..] else {
            return Err(format!("{value} was written {} times", writes.len()));
        };
        if let Some(read) = operations.iter().find(|o| o.end < write.begin) {
            return Err(format!("{read:?} is before its {write:?}"));
        }
        let first_end = operations.iter().map(|o| o.end).min().expect("there is one");
        let last_begin = operations.iter().map(|o| o.begin).max().expect("there is one");
        zones.push((first_end, last_begin, *value));
    }
    let (mut current, others): (Vec<_>, Vec<_>) = zones.into_iter().partition(|(end, begin, _)| end < begin);
    current.sort();
    for pair in current.windows(2) {
        if pair[1].0 < pair[0].1 {
            return Err(format!("values {} and {} are both current", pair[0].2, pair[1].2));
        }
    }
    for (first_end, last_begin, value) in others {
        if let Some(around) = current.iter().find(|c| c.0 < last_begin && first_end < c.1) {
            return Err(format!("{value} was written and gone while {} was current", around.2));
        }
    }
    Ok(())
}

mod tests {
    use super::{Operation, serialisable};
    use std::time::{Duration, Instant};

    fn history(of: &[(u32, bool, u64, u64)]) -> Vec<Operation> {
        let zero = Instant::now();
        let at = |n: u64| zero + Duration::from_secs(n);
        let operation = |(value, is_write, begin, end): &(u32, bool, u64, u64)| Operation {
            value: *value,
            is_write: *is_write,
            begin: at(*begin),
            end: at(*end),
        };
        of.iter().map(operation).collect()
    }

    #[test]
    fn histories_without_an_order_are_told_from_those_that_have_one() {
        let (write, read) = (true, false);
        let fine = [
            (1, write, 0, 1),
            (2, write, 2, 6),
            (1, read, 3, 4),
            (2, read, 5, 7),
            (3, write, 0, 8),
        ];
        assert_eq!(serialisable(&history(&fine)), Ok(()));
        // A value that was overwritten before the read began.
        let stale = [(1, write, 0, 1), (2, write, 2, 3), (1, read, 4, 5)];
        assert!(serialisable(&history(&stale)).is_err());
        // Two reads see two writes in different orders.
        let crossed = [
            (1, write, 0, 20),
            (2, write, 0, 20),
            (1, read, 1, 2),
            (2, read, 3, 4),
            (1, read, 5, 6),
        ];
        assert!(serialisable(&history(&crossed)).is_err());
        let early = [(1, read, 0, 1), (1, write, 2, 3)];
        assert!(serialisable(&history(&early)).is_err());
        let from_nowhere = [(1, read, 0, 1)];
        assert!(serialisable(&history(&from_nowhere)).is_err());
    }
}
