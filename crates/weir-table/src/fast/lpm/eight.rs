//! Addresses looked up eight at a time.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::eight::{Chunks, EIGHT, Lanes, give_all, of_group};
use crate::fast::lpm::{Dir, GROUP, SHORT};
use crate::fast::mem::prefetch;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

impl Dir {
    /// Records that may be far are asked for as soon as they are known, and so are slots, where nobody has done so before ([`Dir::addresses`]). Where
    /// records are near slots are mostly so too, and eight addresses are looked up as soon as their slots would be asked for.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_eight(&self, batch: &Batch<'_>) -> u64 {
        let batch = *batch;
        let records_are_staged = self.directory.is_staged();
        let mut numbers = Lanes::new();
        for group in 0..SLOTS / EIGHT {
            if of_group(batch.active, group) != 0 {
                numbers.set(group, self.places(batch, group));
                if records_are_staged && !batch.is_fetched {
                    for slot in numbers.group(group) {
                        prefetch(std::ptr::without_provenance::<u32>(*slot as usize));
                    }
                }
            }
        }
        let mut hits = 0;
        for group in 0..SLOTS / EIGHT {
            let active = of_group(batch.active, group);
            if active != 0 {
                // SAFETY: these are the addresses of slots.
                let found = unsafe { self.slots_at(numbers.group(group)) };
                let found = self.numbers(batch, group, found);
                numbers.set(group, found);
                hits |= u64::from(_mm512_mask_test_epi64_mask(active, found, found)) << (EIGHT * group);
            }
        }
        // Chunks are there before numbers of records in them are.
        fence(Ordering::Acquire);
        let chunks = Chunks::new(&self.directory);
        let default = _mm512_set1_epi64(batch.default.as_ptr().expose_provenance() as i64);
        let mut records = Lanes::new();
        for group in 0..SLOTS / EIGHT {
            if of_group(batch.active, group) != 0 {
                let found = chunks.records(numbers.get(group));
                records.set(group, _mm512_mask_mov_epi64(default, of_group(hits, group), found));
                if records_are_staged {
                    for record in records.group(group) {
                        prefetch(std::ptr::without_provenance::<u64>(*record as usize));
                    }
                }
            }
        }
        // SAFETY: addresses are those of records or of the default.
        unsafe { give_all(&batch, &records) };
        if let Some(at) = batch.stamp {
            each(hits, |slot, _| {
                let record = records.0[slot % SLOTS] as *const AtomicU64;
                // SAFETY: records that were hit have the table's shape, so they have this word.
                unsafe { &*record.add(at) }.store(batch.now, Ordering::Relaxed);
            });
        }
        hits
    }

    /// The addresses of the slots of a group's addresses.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn places(&self, batch: Batch<'_>, group: usize) -> __m512i {
        let skip = _mm_cvtsi32_si128(32 - self.bits as i32);
        let position = _mm512_srl_epi64(left_aligned(batch, group, self.shift), skip);
        let (start, gaps) = self.slots.places();
        let gap = _mm512_and_si512(position, _mm512_set1_epi64(gaps as i64));
        let place = _mm512_slli_epi64::<2>(_mm512_add_epi64(position, gap));
        _mm512_add_epi64(_mm512_set1_epi64(start as i64), place)
    }

    /// What the slots at eight addresses hold. Loads one by one are under way for several groups at a time, which gathered ones are not.
    ///
    /// # Safety
    /// They are addresses of slots.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    unsafe fn slots_at(&self, addresses: &[u64; EIGHT]) -> __m512i {
        // SAFETY: the caller's promise.
        let slot = |i: usize| unsafe { &*(addresses[i] as *const AtomicU32) }.load(Ordering::Relaxed) as i32;
        let four = |i: usize| {
            let words = _mm_cvtsi32_si128(slot(i));
            let words = _mm_insert_epi32::<1>(words, slot(i + 1));
            let words = _mm_insert_epi32::<2>(words, slot(i + 2));
            _mm_insert_epi32::<3>(words, slot(i + 3))
        };
        _mm512_cvtepu32_epi64(_mm256_set_m128i(four(4), four(0)))
    }

    /// The numbers of the records of the slots of a group, of which there is what slots hold; 0 where there is none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn numbers(&self, batch: Batch<'_>, group: usize, mut numbers: __m512i) -> __m512i {
        let active = of_group(batch.active, group);
        let grouped = _mm512_mask_test_epi64_mask(active, numbers, _mm512_set1_epi64(GROUP.into()));
        if grouped != 0 {
            numbers = self.of_groups(numbers, left_aligned(batch, group, self.shift), grouped);
        }
        let none = _mm512_mask_testn_epi64_mask(active, numbers, numbers);
        if none != 0 {
            let at = _mm512_srli_epi64::<{ 32 - SHORT }>(left_aligned(batch, group, self.shift));
            // SAFETY: there is a root for all the bits that are left.
            let roots = unsafe { _mm512_i64gather_epi32::<4>(at, self.roots.as_ptr().cast()) };
            numbers = _mm512_mask_cvtepu32_epi64(numbers, none, roots);
        }
        numbers
    }

    /// The same where some are the numbers of groups.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn of_groups(&self, numbers: __m512i, addresses: __m512i, grouped: u8) -> __m512i {
        let mut lanes = [0_u64; EIGHT];
        let mut last = [0_u64; EIGHT];
        // SAFETY: there are eight words of both.
        unsafe {
            _mm512_storeu_epi64(lanes.as_mut_ptr().cast(), numbers);
            _mm512_storeu_epi64(last.as_mut_ptr().cast(), addresses);
        }
        each(grouped.into(), |lane, _| {
            let lane = lane % EIGHT;
            lanes[lane] = self
                .resolve_group(lanes[lane] as u32 & !GROUP, last[lane] as u32)
                .into();
        });
        // SAFETY: there are eight words.
        unsafe { _mm512_loadu_epi64(lanes.as_ptr().cast()) }
    }
}

/// The keys of a group, in which slots are active, as 32-bit addresses, so many places further up; those of other slots are 0.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn left_aligned(batch: Batch<'_>, group: usize, shift: u32) -> __m512i {
    // SAFETY: keys have a word, and these are active slots.
    let keys = unsafe { batch.eight_keys(0, group, of_group(batch.active, group)) };
    let addresses = _mm512_sll_epi64(keys, _mm_cvtsi32_si128(shift as i32));
    // Bits beyond the key's width may be anything.
    _mm512_and_si512(addresses, _mm512_set1_epi64(u32::MAX.into()))
}
