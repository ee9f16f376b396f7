//! Numbers that are taken, and the next one that is not, found without looking at those between.

use std::collections::BTreeMap;

/// A set of numbers, as runs of them: the first of each with the last.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Numbers(BTreeMap<u32, u32>);

impl Numbers {
    /// The run that a number is in.
    fn run_of(&self, number: u32) -> Option<(u32, u32)> {
        let (first, last) = self.0.range(..=number).next_back()?;
        (number <= *last).then_some((*first, *last))
    }

    /// A number is taken.
    pub fn insert(&mut self, number: u32) {
        if self.run_of(number).is_some() {
            return;
        }
        let before = number.checked_sub(1).and_then(|n| self.run_of(n));
        let after = number.checked_add(1).and_then(|n| self.0.remove(&n));
        self.0
            .insert(before.map_or(number, |run| run.0), after.unwrap_or(number));
    }

    /// A number is free.
    pub fn remove(&mut self, number: u32) {
        let Some((first, last)) = self.run_of(number) else {
            return;
        };
        self.0.remove(&first);
        if first < number {
            self.0.insert(first, number - 1);
        }
        if number < last {
            self.0.insert(number + 1, last);
        }
    }

    /// The first free number from this one on, and from 0 on where there is none up to the largest.
    pub fn next_free(&self, from: u32) -> u32 {
        let next = match self.run_of(from) {
            Some((_, last)) => last.checked_add(1),
            None => Some(from),
        };
        next.unwrap_or_else(|| self.run_of(0).map_or(0, |run| run.1.wrapping_add(1)))
    }
}

impl FromIterator<u32> for Numbers {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut runs = Numbers::default();
        numbers.into_iter().for_each(|number| runs.insert(number));
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_that_follow_each_other_are_one_run() {
        let mut numbers: Numbers = (0..500_000).collect();
        assert_eq!(numbers.0.len(), 1);
        assert_eq!(numbers.next_free(7), 500_000);
        numbers.remove(9);
        assert_eq!(numbers.0.len(), 2);
        assert_eq!((numbers.next_free(7), numbers.next_free(10)), (9, 500_000));
        numbers.insert(u32::MAX);
        assert_eq!(numbers.next_free(u32::MAX), 9);
        numbers.insert(9);
        assert_eq!(numbers.next_free(u32::MAX), 500_000);
    }

    #[test]
    fn runs_are_the_set_however_they_came_to_be() {
        let (mut numbers, mut set) = (Numbers::default(), BTreeSet::new());
        let mut state = 1_u32;
        for _ in 0..5000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let number = (state >> 16) % 64;
            if state & (1 << 24) == 0 {
                numbers.insert(number);
                set.insert(number);
            } else {
                numbers.remove(number);
                set.remove(&number);
            }
            assert_eq!(numbers, set.iter().copied().collect());
            let free = (number..).find(|n| !set.contains(n));
            assert_eq!(Some(numbers.next_free(number)), free);
        }
    }
}
