//! Not many prefixes, as the ranges of addresses that they leave to each record. Addresses are told apart by their first bits, and then by sixteen
//! comparisons at once; where too many ranges have the same first bits, by three times sixteen. What that reads is so small that it stays near, which
//! what is looked up by the first 24 bits does not.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::eight::{EIGHT, Lanes, give_all, of_group};
use crate::fast::mem::{Arena, Directory};
use std::arch::x86_64::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Most prefixes.
pub(super) const MOST: usize = 1024;
/// First bits of addresses that are told apart before anything is compared.
const FIRST_BITS: u32 = 12;
/// Ends that are compared at once.
const AT_ONCE: usize = 16;

/// What readers see; it is replaced as a whole.
#[derive(Debug)]
pub(in crate::fast) struct Ranges {
    /// Places of the address before its first bit.
    shift: u32,
    /// The last addresses of ranges, ascending; that of the last one, all ones, and [`AT_ONCE`] times more.
    ends: Vec<u32>,
    /// The addresses of their records; 0: none.
    records: Vec<u64>,
    /// By first bits: the first range that does not end before the addresses that have these.
    firsts: Vec<u16>,
    /// At most [`AT_ONCE`] ranges end within the addresses of the same first bits.
    is_spread: bool,
    /// Where they do not: the last of each [`AT_ONCE`] ends, and of each so many of these, padded as they are.
    fences: [Vec<u32>; 2],
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

impl Ranges {
    #[inline(always)]
    pub(in crate::fast) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        // SAFETY: where the processor does not have these features, there are no ranges.
        unsafe {
            match self.is_spread {
                true => self.lookup_here::<true>(batch),
                false => self.lookup_here::<false>(batch),
            }
        }
    }

    /// First where the results of all are, then what is there.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_here<const SPREAD: bool>(&self, batch: &Batch<'_>) -> u64 {
        let batch = *batch;
        let mut results = Lanes::new();
        if batch.active == u64::MAX {
            // Finding one is so short that the loop around it would be a fifth of it.
            for (four, slot) in results.0.as_chunks_mut::<4>().0.iter_mut().zip((0..).step_by(4)) {
                for (to, slot) in four.iter_mut().zip(slot..) {
                    // SAFETY: all slots are active, and keys have a word.
                    let key = unsafe { batch.key(0, slot) };
                    *to = self.record::<SPREAD>(key);
                }
            }
        } else {
            each(batch.active, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { batch.key(0, slot) };
                results.0[slot % SLOTS] = self.record::<SPREAD>(key);
            });
        }
        let default = _mm512_set1_epi64(batch.default.as_ptr().expose_provenance() as i64);
        let mut hits = 0;
        for group in 0..SLOTS / EIGHT {
            let active = of_group(batch.active, group);
            if active != 0 {
                let found = results.get(group);
                let hit = _mm512_mask_test_epi64_mask(active, found, found);
                hits |= u64::from(hit) << (EIGHT * group);
                results.set(group, _mm512_mask_mov_epi64(default, hit, found));
            }
        }
        // SAFETY: addresses are those of records or of the default.
        unsafe { give_all(&batch, &results) };
        if let Some(at) = batch.stamp {
            each(hits, |slot, _| {
                let record = results.0[slot % SLOTS] as *const AtomicU64;
                // SAFETY: records that were hit have the table's shape, so they have this word.
                unsafe { &*record.add(at) }.store(batch.now, Ordering::Relaxed);
            });
        }
        hits
    }

    /// The address of the record of a key's address; 0: none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn record<const SPREAD: bool>(&self, key: u64) -> u64 {
        // SAFETY: the position is that of a range, and each has a record.
        unsafe { *self.records.get_unchecked(self.position::<SPREAD>(key)) }
    }

    /// The position of the range of a key's address. `SPREAD`: it is among the ends behind the first range of its first bits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn position<const SPREAD: bool>(&self, key: u64) -> usize {
        // Bits beyond the key's width may be anything.
        let address = (key as u32) << self.shift;
        if SPREAD {
            // SAFETY: there is one for all the bits that are left.
            let first = unsafe { *self.firsts.get_unchecked((address >> (32 - FIRST_BITS)) as usize) };
            let at = usize::from(first);
            // SAFETY: `first` is a range, and as many ends follow as are compared.
            return at + unsafe { ends_before(&self.ends, at, address) };
        }
        let mut at = 0;
        for level in [&self.fences[1], &self.fences[0], &self.ends] {
            // SAFETY: the last range does not end before any address. So on each level there is an end that is not before it among those
            // that lie below the one found before, and that block is followed by as many ends as are compared.
            at = at * AT_ONCE + unsafe { ends_before(level, at * AT_ONCE, address) };
        }
        at
    }
}

/// How many of the ends from one on are before an address, up to [`AT_ONCE`].
///
/// # Safety
/// There are so many from that one on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
unsafe fn ends_before(ends: &[u32], first: usize, address: u32) -> usize {
    // SAFETY: the caller's promise.
    let ends = unsafe { _mm512_loadu_epi32(ends.as_ptr().add(first).cast()) };
    let before = _mm512_cmplt_epu32_mask(ends, _mm512_set1_epi32(address as i32));
    before.count_ones() as usize
}

/// The writer's side: the same, so that readers' side is but a copy.
#[derive(Debug)]
pub(super) struct Writer {
    ends: Vec<u32>,
    /// The numbers of the records; 0: none.
    numbers: Vec<u32>,
    firsts: Vec<u16>,
}

impl Writer {
    /// All addresses have no record.
    pub(super) fn new() -> Self {
        Writer {
            ends: vec![u32::MAX; 1 + AT_ONCE],
            numbers: vec![0],
            firsts: vec![0; 1 << FIRST_BITS],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let here = (self.ends.capacity() + self.numbers.capacity()) * 4;
        let readers = self.ends.len() * 4 + self.numbers.len() * 8;
        here + readers + 2 * (2 << FIRST_BITS)
    }

    /// Gives what belongs to one record to another, within a prefix: from its first address to its last one.
    pub(super) fn replace(&mut self, first: u32, last: u32, from: u32, to: u32) {
        let before = first.checked_sub(1);
        if let Some(end) = before {
            self.split(end);
        }
        self.split(last);
        for at in self.at(first)..=self.at(last) {
            if self.numbers[at] == from {
                self.numbers[at] = to;
            }
        }
        self.join(last);
        if let Some(end) = before {
            self.join(end);
        }
    }

    /// The range of an address.
    fn at(&self, address: u32) -> usize {
        self.ends[..self.numbers.len()].partition_point(|end| *end < address)
    }

    /// A range is to end here.
    fn split(&mut self, end: u32) {
        let at = self.at(end);
        if self.ends[at] != end {
            self.ends.insert(at, end);
            self.numbers.insert(at, self.numbers[at]);
            self.behind(end).iter_mut().for_each(|first| *first += 1);
        }
    }

    /// No range need end here if what follows belongs to the same record.
    fn join(&mut self, end: u32) {
        let at = self.at(end);
        if self.numbers.get(at) == self.numbers.get(at + 1) {
            self.ends.remove(at);
            self.numbers.remove(at);
            self.behind(end).iter_mut().for_each(|first| *first -= 1);
        }
    }

    /// The first ranges of the addresses whose first bits are above those of an address.
    fn behind(&mut self, end: u32) -> &mut [u16] {
        &mut self.firsts[(end >> (32 - FIRST_BITS)) as usize + 1..]
    }

    /// Whether there are few ends with the same first bits.
    fn is_spread(&self) -> bool {
        let last = self.numbers.len() as u16 - 1;
        let next = self.firsts.iter().skip(1).copied().chain([last]);
        let most = self.firsts.iter().zip(next).map(|(first, next)| next - first).max();
        most.is_some_and(|most| usize::from(most) <= AT_ONCE)
    }

    /// For readers, with keys of so many bits.
    pub(super) fn shape(&self, width: u32, arena: &Arena) -> Ranges {
        let is_spread = self.is_spread();
        let fences = match is_spread {
            true => [const { Vec::new() }; 2],
            false => {
                let below = fences(&self.ends);
                [fences(&below), below]
            }
        };
        let [upper, lower] = fences;
        Ranges {
            is_spread,
            fences: [lower, upper],
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
        _ => arena.at(number).words.as_ptr().expose_provenance() as u64,
    }
}

/// The last of each [`AT_ONCE`] ends, and so many more than are compared.
fn fences(ends: &[u32]) -> Vec<u32> {
    let mut fences: Vec<u32> = ends
        .as_chunks::<AT_ONCE>()
        .0
        .iter()
        .map(|block| block[AT_ONCE - 1])
        .collect();
    fences.extend([u32::MAX; AT_ONCE]);
    fences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(writer: &Writer) -> Vec<(u32, u32)> {
        let firsts = (0..1_u32 << FIRST_BITS).map(|first| writer.at(first << (32 - FIRST_BITS)) as u16);
        assert!(firsts.eq(writer.firsts.iter().copied()));
        assert_eq!(writer.ends.len(), writer.numbers.len() + AT_ONCE);
        writer
            .ends
            .iter()
            .copied()
            .zip(writer.numbers.iter().copied())
            .collect()
    }

    #[test]
    fn ranges_are_split_where_prefixes_begin_and_end_and_joined_when_they_go() {
        let mut writer = Writer::new();
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
