//! Allocates registers to vectors and masks, by linear scan.
//!
//! The code is straight-line, so each live range is one interval, from the first write to the last
//! read (Poletto and Sarkar, "Linear Scan Register Allocation"). Values without a register are
//! spilled to the stack, or rematerialised from the row they came from.
//!
//! It splits no intervals and inserts no operations: [`super::emit`] loads and stores spilled
//! values at each access.

use super::op::{Code, MaskReg, Op, RowArea};
use std::collections::{BTreeMap, BTreeSet};

/// The home of a vector or mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Home {
    /// None, as it is never read.
    #[default]
    Unused,
    Register(u8),
    /// A stack slot, by number.
    Stack(usize),
    /// The row that it was loaded from, at a byte offset.
    Row(RowArea, i32),
}

/// The homes of all vectors and masks, by number.
#[derive(Debug, Default)]
pub(super) struct Homes {
    pub vectors: Vec<Home>,
    pub masks: Vec<Home>,
    /// Stack slots for vectors.
    pub vector_slots: usize,
    /// Stack slots for masks.
    pub mask_slots: usize,
}

/// The live interval of a vector or mask.
#[derive(Debug, Clone, Copy)]
struct Interval {
    /// The number of the vector or mask.
    number: usize,
    range: LiveRange,
}

impl Interval {
    /// Whether to spill this interval rather than another one: it has fewer uses for its length.
    fn is_cheaper_to_spill(&self, other: &Interval) -> bool {
        let length = |i: &Interval| i.range.last - i.range.first + 1;
        self.range.uses * length(other) < other.range.uses * length(self)
    }
}

/// Allocates registers with numbers in these ranges.
pub(super) fn allocate(code: &Code, vectors: std::ops::Range<u8>, masks: std::ops::Range<u8>) -> Homes {
    let mut ranges = LiveRanges {
        vectors: vec![None; code.vector_count as usize],
        masks: vec![None; code.mask_count as usize],
    };
    if let Some(entry_mask) = code.entry_mask {
        add_use(&mut ranges.masks[entry_mask.0 as usize], 0);
    }
    let mut block_mask = None;
    let mut is_read = vec![false; code.vector_count as usize];
    for (i, op) in code.ops.iter().enumerate() {
        ranges.add_operation(i, op);
        op.for_each_read(|v| is_read[v.0 as usize] = true);
        match (op, block_mask) {
            (Op::BlockStart { mask, .. }, _) => block_mask = Some(*mask),
            (op, Some(MaskReg(mask))) if op.uses_block_mask() => add_use(&mut ranges.masks[mask as usize], i),
            _ => {}
        }
    }
    // An operation that loads two vectors is kept even if only one of them is read.
    for (range, _) in ranges.vectors.iter_mut().zip(is_read).filter(|(_, is_read)| !is_read) {
        *range = None;
    }
    let mut homes = Homes {
        vectors: vec![Home::Unused; code.vector_count as usize],
        masks: vec![Home::Unused; code.mask_count as usize],
        ..Homes::default()
    };
    homes.vector_slots = linear_scan(&ranges.vectors, vectors, &mut homes.vectors);
    homes.mask_slots = linear_scan(&ranges.masks, masks, &mut homes.masks);
    rematerialise_from_rows(code, &ranges.vectors, &mut homes.vectors);
    homes
}

/// Makes a row the home of spilled vectors that were loaded from it, if it is not written while
/// they are live. Each read then uses the row, and their stack slots stay unused.
fn rematerialise_from_rows(code: &Code, ranges: &[Option<LiveRange>], homes: &mut [Home]) {
    let mut row_stores: BTreeMap<(RowArea, i32), Vec<usize>> = BTreeMap::new();
    for (i, op) in code.ops.iter().enumerate() {
        if let Op::StoreRow { area, offset, .. } = op {
            row_stores.entry((*area, *offset)).or_default().push(i);
        }
    }
    for op in &code.ops {
        if let Op::LoadRow { dst, area, offset } = op
            && let Some(LiveRange { first, last, .. }) = ranges[dst.0 as usize]
            && let home @ Home::Stack(_) = &mut homes[dst.0 as usize]
        {
            // In the order of the code.
            let stores = row_stores.get(&(*area, *offset)).map_or(&[][..], Vec::as_slice);
            let next_store = stores.get(stores.partition_point(|i| *i < first));
            if next_store.is_none_or(|i| *i >= last) {
                *home = Home::Row(*area, *offset);
            }
        }
    }
}

/// The operations that read or write a vector or mask, by index in the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LiveRange {
    first: usize,
    last: usize,
    /// Reads and writes.
    uses: usize,
}

/// Extends a live range to an operation.
fn add_use(range: &mut Option<LiveRange>, op_index: usize) {
    let range = range.get_or_insert(LiveRange {
        first: op_index,
        last: op_index,
        uses: 0,
    });
    range.last = op_index;
    range.uses += 1;
}

/// The live ranges of vectors and masks. `None`: there are no uses.
struct LiveRanges {
    vectors: Vec<Option<LiveRange>>,
    masks: Vec<Option<LiveRange>>,
}

impl LiveRanges {
    /// Adds all uses by an operation, except of the block's mask.
    fn add_operation(&mut self, op_index: usize, op: &Op) {
        op.for_each_read(|v| add_use(&mut self.vectors[v.0 as usize], op_index));
        op.for_each_written(|v| add_use(&mut self.vectors[v.0 as usize], op_index));
        op.for_each_mask_read(|m| add_use(&mut self.masks[m.0 as usize], op_index));
        if let Some(m) = op.written_mask() {
            add_use(&mut self.masks[m.0 as usize], op_index);
        }
    }
}

/// Assigns registers and stack slots; returns the number of stack slots.
fn linear_scan(ranges: &[Option<LiveRange>], registers: std::ops::Range<u8>, homes: &mut [Home]) -> usize {
    let mut intervals: Vec<Interval> = ranges
        .iter()
        .enumerate()
        .filter_map(|(number, range)| range.map(|range| Interval { number, range }))
        .collect();
    intervals.sort_by_key(|i| i.range.first);
    let mut free: Vec<u8> = registers.rev().collect();
    // By falling ends.
    let mut active: Vec<(Interval, u8)> = Vec::new();
    let mut slots = StackSlots::default();
    for interval in intervals {
        // A register that is read here for the last time is free for the result.
        while let Some((ended, register)) = active.pop_if(|(other, _)| other.range.last <= interval.range.first) {
            debug_assert!(ended.range.last <= interval.range.first);
            free.push(register);
        }
        let register = match free.pop() {
            Some(register) => register,
            None => {
                let victim = (0..active.len()).reduce(|a, b| match active[b].0.is_cheaper_to_spill(&active[a].0) {
                    true => b,
                    false => a,
                });
                match victim {
                    Some(victim) if active[victim].0.is_cheaper_to_spill(&interval) => {
                        let (spilled, register) = active.remove(victim);
                        homes[spilled.number] = Home::Stack(slots.assign(spilled));
                        register
                    }
                    _ => {
                        homes[interval.number] = Home::Stack(slots.assign(interval));
                        continue;
                    }
                }
            }
        };
        homes[interval.number] = Home::Register(register);
        let insert_position = active.partition_point(|(other, _)| other.range.last > interval.range.last);
        active.insert(insert_position, (interval, register));
    }
    slots.count
}

/// Stack slots of spilled intervals.
#[derive(Default)]
struct StackSlots {
    count: usize,
    /// Each slot, by the last operation of the intervals that have it.
    by_last: BTreeSet<(usize, usize)>,
}

impl StackSlots {
    /// Assigns a slot whose intervals have all ended before this one: of several, the one that
    /// became free last.
    fn assign(&mut self, interval: Interval) -> usize {
        let ended = self.by_last.range(..(interval.range.first, 0)).next_back().copied();
        let slot = match ended {
            Some(free) => {
                self.by_last.remove(&free);
                free.1
            }
            None => {
                self.count += 1;
                self.count - 1
            }
        };
        self.by_last.insert((interval.range.last, slot));
        slot
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn range(first: usize, last: usize, uses: usize) -> Option<LiveRange> {
        Some(LiveRange { first, last, uses })
    }

    /// Checks that no two overlapping live ranges have the same home.
    fn check(ranges: &[Option<LiveRange>], homes: &[Home]) {
        for (i, a) in ranges.iter().enumerate() {
            for (j, b) in ranges.iter().enumerate().skip(i + 1) {
                if let (Some(a), Some(b)) = (a, b)
                    && homes[i] == homes[j]
                {
                    assert!(
                        a.last <= b.first || b.last <= a.first,
                        "{i} and {j}: {a:?} {b:?} {:?}",
                        homes[i]
                    );
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
        for count in [1, 3, 10, 60] {
            let ranges: Vec<Option<LiveRange>> = (0..count)
                .map(|_| {
                    let first = next() % 100;
                    match next() % 8 {
                        0 => None,
                        _ => range(first, first + next() % 40, 1 + next() % 5),
                    }
                })
                .collect();
            let mut homes = vec![Home::Unused; count];
            let slots = linear_scan(&ranges, 2..5, &mut homes);
            check(&ranges, &homes);
            for (range, home) in ranges.iter().zip(&homes) {
                match home {
                    Home::Unused => assert_eq!(*range, None),
                    Home::Register(r) => assert!((2..5).contains(r)),
                    Home::Stack(s) => assert!((0..slots).contains(s)),
                    Home::Row(..) => panic!("nothing was read from a row"),
                }
            }
        }
    }

    /// With a search of all slots for each interval, this test would hardly end.
    #[test]
    fn very_many_intervals_are_spilled() {
        const INTERVALS: usize = 200_000;
        let nested: Vec<_> = (0..INTERVALS).map(|i| range(i, 2 * INTERVALS - i, 2)).collect();
        let rows: Vec<_> = (0..INTERVALS).map(|i| range(i, i + 100, 2)).collect();
        for (ranges, least) in [(nested, INTERVALS - 2), (rows, 98)] {
            let mut homes = vec![Home::Unused; INTERVALS];
            let slots = linear_scan(&ranges, 0..2, &mut homes);
            assert!((least..=least + 2).contains(&slots), "{slots}");
        }
    }

    #[test]
    fn rarely_used_values_are_spilled() {
        let ranges = [range(0, 100, 2), range(1, 5, 2), range(2, 6, 2)];
        let mut homes = [Home::Unused; 3];
        assert_eq!(linear_scan(&ranges, 0..2, &mut homes), 1);
        assert_eq!(homes[0], Home::Stack(0));
        assert!(matches!(homes[1..], [Home::Register(_), Home::Register(_)]));
    }
}
