//! Not many prefixes, as the ranges of addresses that they leave to each record. Addresses are told apart by their first bits, and then by sixteen
//! comparisons at once; where too many ranges have the same first bits, by three times sixteen. What that reads is so small that it stays near, which
//! what is looked up by the first 24 bits does not.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::eight::{EIGHT, Lanes, of_group, pairs_at, words_at};
use crate::fast::head;
use crate::fast::mem::{Arena, Directory};
use std::arch::x86_64::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    /// The numbers of their records; 0: none.
    numbers: Vec<u32>,
    /// Words of a result.
    words: usize,
    /// What these records hold; zeros where there is none.
    results: Vec<u64>,
    /// By first bits: the first range that does not end before the addresses that have these.
    firsts: Vec<u16>,
    /// At most [`AT_ONCE`] ranges end within the addresses of the same first bits.
    is_spread: bool,
    /// Where they do not: the last of each [`AT_ONCE`] ends, and of each so many of these, padded as they are.
    fences: [Vec<u32>; 2],
    /// Keeps the records alive.
    directory: Arc<Directory>,
}

impl Ranges {
    #[inline(always)]
    pub(in crate::fast) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        // SAFETY: where the processor does not have these features, there are no ranges.
        unsafe {
            match self.is_spread {
                true => self.lookup_here::<true>(*batch),
                false => self.lookup_here::<false>(*batch),
            }
        }
    }

    /// First where the results of all are, then what is there.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn lookup_here<const SPREAD: bool>(&self, batch: Batch<'_>) -> u64 {
        let begin = self.results.as_ptr().expose_provenance() as u64;
        let bytes = (self.words * size_of::<u64>()) as u64;
        let mut results = Lanes([begin; SLOTS]);
        if batch.active == u64::MAX {
            // Finding one is so short that the loop around it would be a fifth of it.
            for (four, slot) in results.0.as_chunks_mut::<4>().0.iter_mut().zip((0..).step_by(4)) {
                for (to, slot) in four.iter_mut().zip(slot..) {
                    // SAFETY: all slots are active, and keys have a word.
                    let key = unsafe { batch.key(0, slot) };
                    *to = begin + bytes * self.position::<SPREAD>(key) as u64;
                }
            }
        } else {
            each(batch.active, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { batch.key(0, slot) };
                results.0[slot % SLOTS] = begin + bytes * self.position::<SPREAD>(key) as u64;
            });
        }
        // SAFETY: these are addresses of results.
        let hits = unsafe {
            match (batch.result_words(), batch.active == u64::MAX) {
                (1, true) => give_or_default::<1, true>(batch, &results),
                (2, true) => give_or_default::<2, true>(batch, &results),
                _ => give_or_default::<0, false>(batch, &results),
            }
        };
        if let Some(at) = batch.stamp {
            each(hits, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let number = self.numbers[self.position::<SPREAD>(unsafe { batch.key(0, slot) })];
                // SAFETY: records that were hit were given out, and have the table's shape, so they have this word.
                unsafe { self.directory.record(number).add(at).as_ref() }.store(batch.now, Ordering::Relaxed);
            });
        }
        hits
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

/// Gives active slots the results that lie at addresses, or the default where these are no hits; the slots that are hit. `WORDS`: words of
/// a result, or 0 for any number; `ALL` if all slots are active.
///
/// # Safety
/// Of every group with an active slot all addresses are of results.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn give_or_default<const WORDS: usize, const ALL: bool>(batch: Batch<'_>, results: &Lanes) -> u64 {
    let words = if WORDS == 0 { batch.result_words() } else { WORDS };
    let default = |word: usize| {
        // SAFETY: the default has as many words as a result.
        let default = unsafe { batch.default.add(word).as_ref() }.load(Ordering::Relaxed);
        _mm512_set1_epi64(default as i64)
    };
    let mut all_hits = 0;
    for group in 0..SLOTS / EIGHT {
        let active = if ALL { u8::MAX } else { of_group(batch.active, group) };
        if active == 0 {
            continue;
        }
        let addresses = results.group(group);
        let mut hits = 0;
        for word in (0..words).step_by(2) {
            let at: [u64; EIGHT] = std::array::from_fn(|i| addresses[i] + (word * size_of::<u64>()) as u64);
            let is_pair = word + 1 < words;
            // SAFETY: the caller's promise.
            let [first, second] = unsafe {
                match is_pair {
                    true => pairs_at::<0>(&at),
                    false => [words_at(&at); 2],
                }
            };
            if word == 0 {
                hits = _mm512_test_epi64_mask(first, _mm512_set1_epi64(head::HIT as i64));
            }
            // SAFETY: results have these words, and these are active slots of the group.
            unsafe {
                batch.put_eight(word, group, active, _mm512_mask_mov_epi64(default(word), hits, first));
                if is_pair {
                    let second = _mm512_mask_mov_epi64(default(word + 1), hits, second);
                    batch.put_eight(word + 1, group, active, second);
                }
            }
        }
        all_hits |= u64::from(hits & active) << (EIGHT * group);
    }
    all_hits
}

/// The writer's side: the same, so that readers' side is but a copy.
#[derive(Debug)]
pub(super) struct Writer {
    ends: Vec<u32>,
    numbers: Vec<u32>,
    words: usize,
    results: Vec<u64>,
    firsts: Vec<u16>,
}

impl Writer {
    /// All addresses have no record. Results have so many words.
    pub(super) fn new(words: usize) -> Self {
        Writer {
            ends: vec![u32::MAX; 1 + AT_ONCE],
            numbers: vec![0],
            words,
            results: vec![0; words],
            firsts: vec![0; 1 << FIRST_BITS],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let here = (self.ends.capacity() + self.numbers.capacity()) * 4 + self.results.capacity() * 8;
        let readers = (self.ends.len() + self.numbers.len()) * 4 + self.results.len() * 8;
        here + readers + 2 * (2 << FIRST_BITS)
    }

    /// Gives what belongs to one record to another, within a prefix: from its first address to its last one. Of the other also what it
    /// holds, or nothing if it is none.
    pub(super) fn replace(&mut self, first: u32, last: u32, from: u32, (to, result): (u32, &[u64])) {
        let before = first.checked_sub(1);
        if let Some(end) = before {
            self.split(end);
        }
        self.split(last);
        for at in self.at(first)..=self.at(last) {
            if self.numbers[at] == from {
                self.numbers[at] = to;
                let (held, rest) = self.result(at).split_at_mut(result.len());
                held.copy_from_slice(result);
                rest.fill(0);
            }
        }
        self.join(last);
        if let Some(end) = before {
            self.join(end);
        }
    }

    fn result(&mut self, at: usize) -> &mut [u64] {
        &mut self.results[at * self.words..(at + 1) * self.words]
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
            let place = at * self.words;
            self.results.extend_from_within(place..place + self.words);
            self.results[place..].rotate_right(self.words);
            self.behind(end).iter_mut().for_each(|first| *first += 1);
        }
    }

    /// No range need end here if what follows belongs to the same record.
    fn join(&mut self, end: u32) {
        let at = self.at(end);
        if self.numbers.get(at) == self.numbers.get(at + 1) {
            self.ends.remove(at);
            self.numbers.remove(at);
            self.results.drain(at * self.words..(at + 1) * self.words);
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
            numbers: self.numbers.clone(),
            words: self.words,
            results: self.results.clone(),
            firsts: self.firsts.clone(),
            directory: Arc::clone(arena.directory()),
        }
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
        let results = writer.numbers.iter().flat_map(|n| [u64::from(*n), u64::from(*n) * 2]);
        assert!(results.eq(writer.results.iter().copied()));
        writer
            .ends
            .iter()
            .copied()
            .zip(writer.numbers.iter().copied())
            .collect()
    }

    #[test]
    fn ranges_are_split_where_prefixes_begin_and_end_and_joined_when_they_go() {
        let mut writer = Writer::new(2);
        let mut replace = |first, last, from, to: u32| {
            let result = [to.into(), u64::from(to) * 2];
            let held = if to == 0 { &[][..] } else { &result };
            writer.replace(first, last, from, (to, held));
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
