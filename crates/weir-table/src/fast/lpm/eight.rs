//! Addresses looked up eight at a time.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::begun::Begun;
use crate::fast::eight::{Chunks, EIGHT, Lanes, give_all, of_group};
use crate::fast::lpm::{Dir, GROUP, SHORT};
use crate::fast::mem::prefetch;
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// What has been found of a vector's addresses: for each of them either the record, or, where longer prefixes than a slot tells apart are possible, where in
/// a group the record's number is. That may be far, too, so it is read as late as the record itself would be.
#[derive(Default)]
pub(in crate::fast) struct Found {
    active: u64,
    hits: u64,
    /// Slots of which only the place of the number has been found.
    grouped: u64,
    /// The address of the record, or, of slots in `grouped`, of the number.
    at: Lanes,
}

impl Dir {
    /// Begins a lookup, where eight addresses are looked up at a time.
    pub(in crate::fast) fn begin<'a>(&'a self, batch: &Batch<'_>, begun: &mut Begun<'a>) {
        if self.by_eights {
            begun.of = Some((self, batch.keys_at()));
            // SAFETY: the processor has these features.
            unsafe { self.find_eight(batch, &mut begun.found) };
        }
    }

    /// Gives the results of the lookup that was begun, if it was this one.
    pub(in crate::fast) fn finish(&self, batch: &Batch<'_>, begun: &mut Begun<'_>) -> Option<u64> {
        let found = &mut begun.found;
        begun.of.take_if(|(of, keys)| {
            std::ptr::eq(*of, self) && *keys == batch.keys_at() && found.active == batch.active
        })?;
        // SAFETY: the processor has these features, or nothing would have been begun. It was found in this table and for these slots. What was there then is
        // still there: `begun` lives no longer than the guard that keeps it.
        Some(unsafe { self.give_eight(batch, found) })
    }

    /// A lookup at once.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_eight(&self, batch: &Batch<'_>) -> u64 {
        let mut found = Found::default();
        self.find_eight(batch, &mut found);
        // SAFETY: it is what was found for this batch.
        unsafe { self.give_eight(batch, &mut found) }
    }

    /// Where the results of a lookup are, which are asked for if they may be far. So are slots, where nobody has done so before ([`Dir::addresses`]). Where
    /// records are near slots are mostly so too, and eight addresses are looked up as soon as their slots would be asked for.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn find_eight(&self, batch: &Batch<'_>, found: &mut Found) {
        let batch = *batch;
        let records_are_staged = self.directory.is_staged();
        let mut numbers_at = Lanes::new();
        for group in 0..SLOTS / EIGHT {
            if of_group(batch.active, group) != 0 {
                numbers_at.set(group, self.places(batch, group));
                if records_are_staged && !batch.is_fetched {
                    for slot in numbers_at.group(group) {
                        prefetch(std::ptr::without_provenance::<u32>(*slot as usize));
                    }
                }
            }
        }
        let (mut hits, mut grouped) = (0, 0);
        for group in 0..SLOTS / EIGHT {
            let active = of_group(batch.active, group);
            if active != 0 {
                // SAFETY: these are the addresses of slots.
                let numbers = unsafe { self.slots_at(numbers_at.group(group)) };
                let in_groups = _mm512_mask_test_epi64_mask(active, numbers, _mm512_set1_epi64(GROUP.into()));
                let numbers = self.numbers(batch, group, numbers, in_groups);
                numbers_at.set(group, numbers);
                let known = _mm512_mask_test_epi64_mask(active & !in_groups, numbers, numbers);
                hits |= u64::from(known) << (EIGHT * group);
                grouped |= u64::from(in_groups) << (EIGHT * group);
            }
        }
        // Chunks are there before numbers of records in them are.
        fence(Ordering::Acquire);
        let chunks = Chunks::new(&self.directory);
        let default = _mm512_set1_epi64(batch.default.as_ptr().expose_provenance() as i64);
        for group in 0..SLOTS / EIGHT {
            if of_group(batch.active, group) != 0 {
                let numbers = numbers_at.get(group);
                let records = _mm512_mask_mov_epi64(default, of_group(hits, group), chunks.records(numbers));
                found
                    .at
                    .set(group, _mm512_mask_mov_epi64(records, of_group(grouped, group), numbers));
                if records_are_staged {
                    for record in found.at.group(group) {
                        prefetch(std::ptr::without_provenance::<u64>(*record as usize));
                    }
                }
            }
        }
        (found.active, found.hits, found.grouped) = (batch.active, hits, grouped);
    }

    /// Gives the results that were found.
    ///
    /// # Safety
    /// It was found by [`Dir::find_eight`] of this table for the same active slots, and nothing that was there then has been freed since. (Keys may have become
    /// others: any has a root. The default may have become another one, too: both are as long.)
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn give_eight(&self, batch: &Batch<'_>, found: &mut Found) -> u64 {
        if found.grouped != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.resolve_groups(batch, found) };
        }
        // SAFETY: addresses are those of records or of a default.
        unsafe { give_all(batch, &found.at) };
        if let Some(at) = batch.stamp {
            each(found.hits, |slot, _| {
                let record = found.at.0[slot % SLOTS] as *const AtomicU64;
                // SAFETY: records that were hit have the table's shape, so they have this word.
                unsafe { &*record.add(at) }.store(batch.now, Ordering::Relaxed);
            });
        }
        found.hits
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

    /// What the slots at eight addresses hold: groups are made before their numbers are there.
    /// Loads one by one are under way for several groups at a time, which gathered ones are not.
    ///
    /// # Safety
    /// They are addresses of slots.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    unsafe fn slots_at(&self, addresses: &[u64; EIGHT]) -> __m512i {
        // SAFETY: the caller's promise.
        let slot = |i: usize| unsafe { &*(addresses[i] as *const AtomicU32) }.load(Ordering::Acquire) as i32;
        let four = |i: usize| {
            let words = _mm_cvtsi32_si128(slot(i));
            let words = _mm_insert_epi32::<1>(words, slot(i + 1));
            let words = _mm_insert_epi32::<2>(words, slot(i + 2));
            _mm_insert_epi32::<3>(words, slot(i + 3))
        };
        _mm512_cvtepu32_epi64(_mm256_set_m128i(four(4), four(0)))
    }

    /// The numbers of the records of the slots of a group, of which there is what slots hold; 0 where there is none. Of those `in_groups` it is the address of the number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn numbers(&self, batch: Batch<'_>, group: usize, mut numbers: __m512i, in_groups: u8) -> __m512i {
        let active = of_group(batch.active, group);
        if in_groups != 0 {
            numbers = self.places_in_groups(numbers, left_aligned(batch, group, self.shift), in_groups);
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

    /// Where some are the numbers of groups, what is in these is not read yet: it may be far.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn places_in_groups(&self, numbers: __m512i, addresses: __m512i, in_groups: u8) -> __m512i {
        let mut lanes = [0_u64; EIGHT];
        let mut last = [0_u64; EIGHT];
        // SAFETY: there are eight words of both.
        unsafe {
            _mm512_storeu_epi64(lanes.as_mut_ptr().cast(), numbers);
            _mm512_storeu_epi64(last.as_mut_ptr().cast(), addresses);
        }
        each(in_groups.into(), |lane, _| {
            let lane = lane % EIGHT;
            let number = self.number_in_group(lanes[lane] as u32 & !GROUP, last[lane] as u32);
            lanes[lane] = std::ptr::from_ref(number).expose_provenance() as u64;
        });
        // SAFETY: there are eight words.
        unsafe { _mm512_loadu_epi64(lanes.as_ptr().cast()) }
    }

    /// Reads the numbers of records that are in groups.
    ///
    /// # Safety
    /// As [`Dir::give_eight`].
    #[inline(never)]
    unsafe fn resolve_groups(&self, batch: &Batch<'_>, found: &mut Found) {
        each(found.grouped, |slot, bit| {
            let at = found.at.0[slot % SLOTS] as *const AtomicU32;
            // SAFETY: it is the address of a number in a group.
            let mut number = unsafe { &*at }.load(Ordering::Acquire);
            if number == 0 {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { batch.key(0, slot) } as u32;
                number = self.root(key << self.shift).load(Ordering::Acquire);
            }
            let mut record = batch.default;
            if number != 0 {
                // SAFETY: numbers in groups and roots were given out.
                record = unsafe { self.directory.record(number) };
                found.hits |= bit;
            }
            found.at.0[slot % SLOTS] = record.as_ptr().expose_provenance() as u64;
            prefetch(record.as_ptr());
        });
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
