//! Few prefixes, as disjoint address ranges with a record each, for AVX-512: multiway range search
//! (B. Lampson, V. Srinivasan and G. Varghese, INFOCOM 1998).
//!
//! A lookup indexes by the first 12 bits of the address, then finds the range by one comparison
//! with sixteen range ends. If too many ranges share their first bits, it descends a tree of three
//! levels with sixteen comparisons each instead. The data is so small that it stays cached, unlike
//! the slots of DIR-24-8. The view is immutable, and each change publishes a new one.
#![allow(unsafe_code)]

use crate::fast::mem::{Arena, Directory};
use crate::fast::simd::{LANES, SlotWords, group_mask, write_results};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit};
use std::arch::x86_64::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most prefixes.
pub(super) const MAX_PREFIXES: usize = 1024;
/// First bits of an address, by which `firsts` is indexed.
const FIRST_BITS: u32 = 12;
/// Range ends per comparison.
const COMPARED: usize = 16;

/// Readers' view; it is replaced as a whole.
#[derive(Debug)]
pub(in crate::fast) struct MultiwayRanges {
    /// Bits by which keys are shifted to align them to 32 bits.
    shift: u32,
    /// The last addresses of ranges, ascending. The last range ends with all ones; [`COMPARED`]
    /// more of these follow as padding.
    ends: Vec<u32>,
    /// The addresses of the ranges' records; 0: none.
    records: Vec<u64>,
    /// Indexed by first bits: the first range that ends at or after the first address with these
    /// bits.
    firsts: Vec<u16>,
    /// At most [`COMPARED`] ranges end within the addresses of the same first bits, so one
    /// comparison is enough.
    one_compare: bool,
    /// The upper levels of the tree, if one comparison is not enough: separators, as in a B+ tree.
    /// They are the last of each [`COMPARED`] ends, and of each [`COMPARED`] of these, padded like
    /// `ends`.
    separators: [Vec<u32>; 2],
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

impl MultiwayRanges {
    #[inline(always)]
    pub(in crate::fast) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        // SAFETY: there are ranges only where the processor has these features.
        unsafe {
            match self.one_compare {
                true => self.lookup_simd::<true>(vector),
                false => self.lookup_simd::<false>(vector),
            }
        }
    }

    /// Two passes: locates all results, then copies them.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_simd<const ONE_COMPARE: bool>(&self, vector: &VectorLookup<'_>) -> u64 {
        let vector = *vector;
        let mut results = SlotWords::new();
        if vector.active == u64::MAX {
            // The search of one range is so short that a loop over set bits would cost a fifth of
            // it.
            for (four, slot) in results.0.as_chunks_mut::<4>().0.iter_mut().zip((0..).step_by(4)) {
                for (to, slot) in four.iter_mut().zip(slot..) {
                    // SAFETY: all slots are active, and keys have a word.
                    let key = unsafe { vector.key(0, slot) };
                    *to = self.record::<ONE_COMPARE>(key);
                }
            }
        } else {
            each_bit(vector.active, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { vector.key(0, slot) };
                results.0[slot % VECTOR_SLOTS] = self.record::<ONE_COMPARE>(key);
            });
        }
        let default = _mm512_set1_epi64(vector.default.as_ptr().expose_provenance() as i64);
        let mut hits = 0;
        for group in 0..VECTOR_SLOTS / LANES {
            let active = group_mask(vector.active, group);
            if active != 0 {
                let found = results.get(group);
                let hit = _mm512_mask_test_epi64_mask(active, found, found);
                hits |= u64::from(hit) << (LANES * group);
                results.set(group, _mm512_mask_mov_epi64(default, hit, found));
            }
        }
        // SAFETY: the addresses are those of records or of the default.
        unsafe { write_results(&vector, &results) };
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(hits, |slot, _| {
                let record = results.0[slot % VECTOR_SLOTS] as *const AtomicU64;
                // SAFETY: records that were hit have the table's record layout, so they have this
                // word.
                unsafe { &*record.add(stamp_word) }.store(vector.now, Ordering::Relaxed);
            });
        }
        hits
    }

    /// The address of the record of a key; 0: none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn record<const ONE_COMPARE: bool>(&self, key: u64) -> u64 {
        // SAFETY: the position is that of a range, and each has a record.
        unsafe { *self.records.get_unchecked(self.position::<ONE_COMPARE>(key)) }
    }

    /// The position of the range that contains a key. `ONE_COMPARE`: it is among the [`COMPARED`]
    /// ranges from the first of its first bits on.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn position<const ONE_COMPARE: bool>(&self, key: u64) -> usize {
        // Bits beyond the key's width are unspecified.
        let address = (key as u32) << self.shift;
        if ONE_COMPARE {
            // SAFETY: there is one for every value of the remaining bits.
            let first = unsafe { *self.firsts.get_unchecked((address >> (32 - FIRST_BITS)) as usize) };
            let position = usize::from(first);
            // SAFETY: `first` is a range, and at least [`COMPARED`] ends follow.
            return position + unsafe { count_ends_before(&self.ends, position, address) };
        }
        let mut position = 0;
        for level in [&self.separators[1], &self.separators[0], &self.ends] {
            // SAFETY: the last end is all ones, so that no address is beyond it. So on each level
            // one of the `COMPARED` ends of the chosen node is not before the address, and
            // `COMPARED` ends follow the node's start.
            position = position * COMPARED + unsafe { count_ends_before(level, position * COMPARED, address) };
        }
        position
    }
}

/// How many of the [`COMPARED`] ends from `first` on are before an address.
///
/// # Safety
/// There are that many ends from `first` on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn count_ends_before(ends: &[u32], first: usize, address: u32) -> usize {
    // SAFETY: the caller's promise.
    let ends = unsafe { _mm512_loadu_epi32(ends.as_ptr().add(first).cast()) };
    let before = _mm512_cmplt_epu32_mask(ends, _mm512_set1_epi32(address as i32));
    before.count_ones() as usize
}

/// The writer's side. It has the same layout, so that a view is little more than a copy.
#[derive(Debug)]
pub(super) struct RangeWriter {
    /// As [`MultiwayRanges::ends`].
    ends: Vec<u32>,
    /// The record numbers of the ranges; 0: none.
    numbers: Vec<u32>,
    /// As [`MultiwayRanges::firsts`].
    firsts: Vec<u16>,
}

impl RangeWriter {
    /// One range without a record, of all addresses.
    pub(super) fn new() -> Self {
        RangeWriter {
            ends: vec![u32::MAX; 1 + COMPARED],
            numbers: vec![0],
            firsts: vec![0; 1 << FIRST_BITS],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let here = (self.ends.capacity() + self.numbers.capacity()) * 4;
        let readers = self.ends.len() * 4 + self.numbers.len() * 8;
        here + readers + 2 * (2 << FIRST_BITS)
    }

    /// Replaces record number `from` by `to` in the ranges from address `first` to `last`.
    pub(super) fn replace(&mut self, first: u32, last: u32, from: u32, to: u32) {
        let before = first.checked_sub(1);
        if let Some(end) = before {
            self.split(end);
        }
        self.split(last);
        for position in self.index_of(first)..=self.index_of(last) {
            if self.numbers[position] == from {
                self.numbers[position] = to;
            }
        }
        self.join(last);
        if let Some(end) = before {
            self.join(end);
        }
    }

    /// The index of the range that contains an address.
    fn index_of(&self, address: u32) -> usize {
        self.ends[..self.numbers.len()].partition_point(|end| *end < address)
    }

    /// Makes a range end at `end`.
    fn split(&mut self, end: u32) {
        let position = self.index_of(end);
        if self.ends[position] != end {
            self.ends.insert(position, end);
            self.numbers.insert(position, self.numbers[position]);
            self.firsts_after(end).iter_mut().for_each(|first| *first += 1);
        }
    }

    /// Merges the range that ends at `end` with the next one if both have the same record.
    fn join(&mut self, end: u32) {
        let position = self.index_of(end);
        if self.numbers.get(position) == self.numbers.get(position + 1) {
            self.ends.remove(position);
            self.numbers.remove(position);
            self.firsts_after(end).iter_mut().for_each(|first| *first -= 1);
        }
    }

    /// The entries of `firsts` for first bits above those of an address.
    fn firsts_after(&mut self, end: u32) -> &mut [u16] {
        &mut self.firsts[(end >> (32 - FIRST_BITS)) as usize + 1..]
    }

    /// Whether every value of the first bits has few enough ends.
    fn one_compare(&self) -> bool {
        let last = self.numbers.len() as u16 - 1;
        let next = self.firsts.iter().skip(1).copied().chain([last]);
        let max_ends = self.firsts.iter().zip(next).map(|(first, next)| next - first).max();
        max_ends.is_some_and(|max_ends| usize::from(max_ends) <= COMPARED)
    }

    /// The view for keys of `width` bits.
    pub(super) fn view(&self, width: u32, arena: &Arena) -> MultiwayRanges {
        let one_compare = self.one_compare();
        let separators = match one_compare {
            true => [const { Vec::new() }; 2],
            false => {
                let below = separators(&self.ends);
                [separators(&below), below]
            }
        };
        let [upper, lower] = separators;
        MultiwayRanges {
            one_compare,
            separators: [lower, upper],
            shift: 32 - width,
            ends: self.ends.clone(),
            records: self.numbers.iter().map(|number| address(arena, *number)).collect(),
            firsts: self.firsts.clone(),
            _directory: Arc::clone(arena.directory()),
        }
    }
}

/// The address of a record; 0: none.
fn address(arena: &Arena, number: u32) -> u64 {
    match number {
        0 => 0,
        _ => arena.get(number).words.as_ptr().expose_provenance() as u64,
    }
}

/// Every [`COMPARED`]th end, and the padding.
fn separators(ends: &[u32]) -> Vec<u32> {
    let mut separators: Vec<u32> = ends
        .as_chunks::<COMPARED>()
        .0
        .iter()
        .map(|node| node[COMPARED - 1])
        .collect();
    separators.extend([u32::MAX; COMPARED]);
    separators
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(writer: &RangeWriter) -> Vec<(u32, u32)> {
        let firsts = (0..1_u32 << FIRST_BITS).map(|first| writer.index_of(first << (32 - FIRST_BITS)) as u16);
        assert!(firsts.eq(writer.firsts.iter().copied()));
        assert_eq!(writer.ends.len(), writer.numbers.len() + COMPARED);
        writer
            .ends
            .iter()
            .copied()
            .zip(writer.numbers.iter().copied())
            .collect()
    }

    #[test]
    fn ranges_are_split_where_prefixes_begin_and_end_and_joined_when_they_go() {
        let mut writer = RangeWriter::new();
        let mut replace = |first, last, from, to| {
            writer.replace(first, last, from, to);
            ranges(&writer)
        };
        assert_eq!(replace(0, u32::MAX, 0, 20), [(u32::MAX, 20)]);
        replace(0x0a00_0000, 0x0aff_ffff, 20, 21);
        let all = [
            (0x09ff_ffff, 20),
            (0x0a00_ffff, 21),
            (0x0a01_ffff, 22),
            (0x0aff_ffff, 21),
            (u32::MAX, 20),
        ];
        assert_eq!(replace(0x0a01_0000, 0x0a01_ffff, 21, 22), all);
        assert_eq!(
            replace(0x0a00_0000, 0x0aff_ffff, 21, 20),
            [(0x0a00_ffff, 20), (0x0a01_ffff, 22), (u32::MAX, 20)]
        );
        replace(0x0a01_0000, 0x0a01_ffff, 22, 20);
        assert_eq!(replace(0, u32::MAX, 20, 0), [(u32::MAX, 0)]);
    }
}
