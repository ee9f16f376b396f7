//! Allocates registers to vectors and masks, by linear scan.
//!
//! The code is straight-line, so each live range is one interval, from the first write to the last
//! read (Poletto and Sarkar, "Linear Scan Register Allocation"). Values without a register are
//! spilled to the stack, or reloaded from the row they came from.

use super::op::{Code, M, Op, Rows};
use std::collections::BTreeMap;

/// The home of a vector or mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Home {
    /// It is never read.
    #[default]
    Unused,
    Register(u8),
    /// A stack slot, by number.
    Stack(usize),
    /// The row that it was loaded from.
    Row(Rows, i32),
}

/// The homes of all vectors and masks.
#[derive(Debug, Default)]
pub(super) struct Homes {
    pub vectors: Vec<Home>,
    pub masks: Vec<Home>,
    pub vector_slots: usize,
    pub mask_slots: usize,
}

#[derive(Debug, Clone, Copy)]
struct Interval {
    number: usize,
    first: usize,
    last: usize,
    uses: usize,
}

impl Interval {
    /// Whether to spill this interval rather than another one: it has fewer uses for its length.
    fn spill_before(&self, other: &Interval) -> bool {
        let length = |i: &Interval| i.last - i.first + 1;
        self.uses * length(other) < other.uses * length(self)
    }
}

/// Allocates registers from these ranges of numbers.
pub(super) fn allocate(code: &Code, vectors: std::ops::Range<u8>, masks: std::ops::Range<u8>) -> Homes {
    let mut spans = Spans {
        vectors: vec![None; code.vectors as usize],
        masks: vec![None; code.masks as usize],
    };
    if let Some(entry) = code.entry {
        touch(&mut spans.masks[entry.0 as usize], 0);
    }
    let mut here = None;
    let mut is_read = vec![false; code.vectors as usize];
    for (i, op) in code.ops.iter().enumerate() {
        spans.follow(i, op);
        op.reads(|v| is_read[v.0 as usize] = true);
        match (op, here) {
            (Op::Block { mask, .. }, _) => here = Some(*mask),
            (op, Some(M(mask))) if op.is_for_block() => touch(&mut spans.masks[mask as usize], i),
            _ => {}
        }
    }
    // Only one of two vectors that are loaded together may be read.
    for (span, _) in spans.vectors.iter_mut().zip(is_read).filter(|(_, is_read)| !is_read) {
        *span = None;
    }
    let mut homes = Homes {
        vectors: vec![Home::Unused; code.vectors as usize],
        masks: vec![Home::Unused; code.masks as usize],
        ..Homes::default()
    };
    homes.vector_slots = scan(&spans.vectors, vectors, &mut homes.vectors);
    homes.mask_slots = scan(&spans.masks, masks, &mut homes.masks);
    leave_in_rows(code, &spans.vectors, &mut homes.vectors);
    homes
}

/// A spilled vector that was loaded from a row can be reloaded from there, if the row has not been
/// written.
fn leave_in_rows(code: &Code, spans: &[Span], homes: &mut [Home]) {
    let mut written: BTreeMap<(Rows, i32), Vec<usize>> = BTreeMap::new();
    for (i, op) in code.ops.iter().enumerate() {
        if let Op::StoreRow { rows, offset, .. } = op {
            written.entry((*rows, *offset)).or_default().push(i);
        }
    }
    for op in &code.ops {
        if let Op::LoadRow { dst, rows, offset } = op
            && let Some((first, last, _)) = spans[dst.0 as usize]
            && let home @ Home::Stack(_) = &mut homes[dst.0 as usize]
        {
            let stores = written.get(&(*rows, *offset));
            if !stores.is_some_and(|at| at.iter().any(|i| (first..last).contains(i))) {
                *home = Home::Row(*rows, *offset);
            }
        }
    }
}

/// First and last operation that uses it, and the number of uses.
type Span = Option<(usize, usize, usize)>;

fn touch(span: &mut Span, at: usize) {
    *span = Some(span.map_or((at, at, 1), |(first, _, uses)| (first, at, uses + 1)));
}

struct Spans {
    vectors: Vec<Span>,
    masks: Vec<Span>,
}

impl Spans {
    fn follow(&mut self, at: usize, op: &Op) {
        op.reads(|v| touch(&mut self.vectors[v.0 as usize], at));
        op.writes(|v| touch(&mut self.vectors[v.0 as usize], at));
        op.reads_masks(|m| touch(&mut self.masks[m.0 as usize], at));
        if let Some(m) = op.writes_mask() {
            touch(&mut self.masks[m.0 as usize], at);
        }
    }
}

/// Assigns homes; returns the number of stack slots.
fn scan(spans: &[Span], registers: std::ops::Range<u8>, homes: &mut [Home]) -> usize {
    let mut intervals: Vec<Interval> = spans
        .iter()
        .enumerate()
        .filter_map(|(number, span)| {
            span.map(|(first, last, uses)| Interval {
                number,
                first,
                last,
                uses,
            })
        })
        .collect();
    intervals.sort_by_key(|i| i.first);
    let mut free: Vec<u8> = registers.rev().collect();
    // By their ends, the last one first.
    let mut active: Vec<(Interval, u8)> = Vec::new();
    let mut slots = Slots::default();
    for interval in intervals {
        // A register that is read here for the last time is free for the result.
        while let Some((ended, register)) = active.pop_if(|(other, _)| other.last <= interval.first) {
            debug_assert!(ended.last <= interval.first);
            free.push(register);
        }
        let register = match free.pop() {
            Some(register) => register,
            None => {
                let victim = (0..active.len()).reduce(|a, b| match active[b].0.spill_before(&active[a].0) {
                    true => b,
                    false => a,
                });
                match victim {
                    Some(at) if active[at].0.spill_before(&interval) => {
                        let (victim_interval, register) = active.remove(at);
                        homes[victim_interval.number] = Home::Stack(slots.take(victim_interval));
                        register
                    }
                    _ => {
                        homes[interval.number] = Home::Stack(slots.take(interval));
                        continue;
                    }
                }
            }
        };
        homes[interval.number] = Home::Register(register);
        let at = active.partition_point(|(other, _)| other.last > interval.last);
        active.insert(at, (interval, register));
    }
    slots.next
}

/// Stack slots of spilled intervals.
#[derive(Default)]
struct Slots {
    next: usize,
    /// Intervals with their slots.
    taken: Vec<(Interval, usize)>,
}

impl Slots {
    /// A slot that is free during the interval.
    fn take(&mut self, interval: Interval) -> usize {
        let is_free = |slot: usize, taken: &[(Interval, usize)]| {
            let overlaps = |other: &Interval| other.first <= interval.last && interval.first <= other.last;
            taken.iter().all(|(other, s)| *s != slot || !overlaps(other))
        };
        let known = self
            .taken
            .iter()
            .map(|(_, slot)| *slot)
            .find(|s| is_free(*s, &self.taken));
        let slot = known.unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        });
        self.taken.push((interval, slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that no two overlapping intervals have the same home.
    fn check(spans: &[Span], homes: &[Home]) {
        for (i, a) in spans.iter().enumerate() {
            for (j, b) in spans.iter().enumerate().skip(i + 1) {
                if let (Some(a), Some(b)) = (a, b)
                    && homes[i] == homes[j]
                {
                    assert!(a.1 <= b.0 || b.1 <= a.0, "{i} and {j}: {a:?} {b:?} {:?}", homes[i]);
                }
            }
        }
    }

    #[test]
    fn live_ranges_do_not_share_a_home() {
        let mut seed = 7u64;
        let mut next = || {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 40) as usize
        };
        for many in [1, 3, 10, 60] {
            let spans: Vec<Span> = (0..many)
                .map(|_| {
                    let first = next() % 100;
                    (next() % 8 != 0).then(|| (first, first + next() % 40, 1 + next() % 5))
                })
                .collect();
            let mut homes = vec![Home::Unused; many];
            let slots = scan(&spans, 2..5, &mut homes);
            check(&spans, &homes);
            for (span, home) in spans.iter().zip(&homes) {
                match home {
                    Home::Unused => assert_eq!(*span, None),
                    Home::Register(r) => assert!((2..5).contains(r)),
                    Home::Stack(s) => assert!((0..slots).contains(s)),
                    Home::Row(..) => panic!("nothing was read from a row"),
                }
            }
        }
    }

    #[test]
    fn rarely_used_values_are_spilled() {
        let spans = [Some((0, 100, 2)), Some((1, 5, 2)), Some((2, 6, 2))];
        let mut homes = [Home::Unused; 3];
        assert_eq!(scan(&spans, 0..2, &mut homes), 1);
        assert_eq!(homes[0], Home::Stack(0));
        assert!(matches!(homes[1..], [Home::Register(_), Home::Register(_)]));
    }
}
