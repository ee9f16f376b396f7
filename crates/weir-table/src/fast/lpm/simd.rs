//! LPM lookups of eight addresses at a time. A lookup has two parts: [`Dir24_8::locate`] finds and
//! prefetches the records, [`Dir24_8::write_located`] copies them. [`PendingLookup`] separates the
//! two in time.
#![allow(unsafe_code)]

use crate::fast::lpm::{Dir24_8, ROOT_BITS, TBL8_FLAG};
use crate::fast::mem::prefetch;
use crate::fast::pending::PendingLookup;
use crate::fast::simd::{LANES, RecordBases, SlotWords, group_mask, write_results};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit};
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Where the results of a vector's addresses are: per slot of the vector the address of the record.
/// Where prefixes longer than 24 bits are possible, it is the address of the record's number in a
/// TBL8 instead. That number may be far too, so it is read only when the record would be read.
#[derive(Default)]
pub(in crate::fast) struct Located {
    active: u64,
    hits: u64,
    /// Slots for which `addresses` has the address of a number in a TBL8.
    in_tbl8: u64,
    /// The address of the record, or, for slots in `in_tbl8`, of its number.
    addresses: SlotWords,
}

impl Dir24_8 {
    /// Begins a lookup, on processors with AVX-512.
    pub(in crate::fast) fn begin<'a>(&'a self, vector: &VectorLookup<'_>, pending: &mut PendingLookup<'a>) {
        if self.uses_simd {
            pending.source = Some((self, vector.keys_address()));
            // SAFETY: the processor has these features.
            unsafe { self.locate(vector, &mut pending.located) };
        }
    }

    /// Writes the results of the pending lookup, if it is this one.
    pub(in crate::fast) fn finish(&self, vector: &VectorLookup<'_>, pending: &mut PendingLookup<'_>) -> Option<u64> {
        let located = &mut pending.located;
        pending.source.take_if(|(dir24, keys)| {
            std::ptr::eq(*dir24, self) && *keys == vector.keys_address() && located.active == vector.active
        })?;
        // SAFETY: the processor has these features, or nothing would be pending. The results were
        // located in this table and for these slots. That memory still exists: `pending` lives no
        // longer than the guard that protects it.
        Some(unsafe { self.write_located(vector, located) })
    }

    /// A lookup in one go.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_simd(&self, vector: &VectorLookup<'_>) -> u64 {
        let mut located = Located::default();
        self.locate(vector, &mut located);
        // SAFETY: the results were located for this vector.
        unsafe { self.write_located(vector, &mut located) }
    }

    /// Locates the results of a lookup, and prefetches them if they may be far. Slots are
    /// prefetched too, unless the caller has done it ([`Dir24_8::queue_slots`]). Where records are
    /// near, slots mostly are too, and looking eight addresses up takes no longer than prefetching
    /// their slots.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn locate(&self, vector: &VectorLookup<'_>, located: &mut Located) {
        let vector = *vector;
        let prefetch_records = self.directory.needs_prefetch();
        // Per slot of the vector: first the address of the table's slot, then the record number.
        let mut words = SlotWords::new();
        for group in 0..VECTOR_SLOTS / LANES {
            if group_mask(vector.active, group) != 0 {
                words.set(group, self.slot_addresses(vector, group));
                if prefetch_records && !vector.is_prefetched {
                    for slot in words.group(group) {
                        prefetch(std::ptr::without_provenance::<u32>(*slot as usize));
                    }
                }
            }
        }
        let (mut hits, mut all_in_tbl8) = (0, 0);
        for group in 0..VECTOR_SLOTS / LANES {
            let active = group_mask(vector.active, group);
            if active != 0 {
                // SAFETY: these are the addresses of slots.
                let numbers = unsafe { self.slots_at(words.group(group)) };
                let in_tbl8 = _mm512_mask_test_epi64_mask(active, numbers, _mm512_set1_epi64(TBL8_FLAG.into()));
                let numbers = self.numbers(vector, group, numbers, in_tbl8);
                words.set(group, numbers);
                let known = _mm512_mask_test_epi64_mask(active & !in_tbl8, numbers, numbers);
                hits |= u64::from(known) << (LANES * group);
                all_in_tbl8 |= u64::from(in_tbl8) << (LANES * group);
            }
        }
        // Chunks are published before the numbers of their records are.
        fence(Ordering::Acquire);
        let record_bases = RecordBases::new(&self.directory);
        let default = _mm512_set1_epi64(vector.default.as_ptr().expose_provenance() as i64);
        for group in 0..VECTOR_SLOTS / LANES {
            if group_mask(vector.active, group) != 0 {
                let numbers = words.get(group);
                let records = _mm512_mask_mov_epi64(default, group_mask(hits, group), record_bases.records(numbers));
                located.addresses.set(
                    group,
                    _mm512_mask_mov_epi64(records, group_mask(all_in_tbl8, group), numbers),
                );
                if prefetch_records {
                    for record in located.addresses.group(group) {
                        prefetch(std::ptr::without_provenance::<u64>(*record as usize));
                    }
                }
            }
        }
        (located.active, located.hits, located.in_tbl8) = (vector.active, hits, all_in_tbl8);
    }

    /// Writes the located results.
    ///
    /// # Safety
    /// The results were located by [`Dir24_8::locate`] of this table for the same active slots, and
    /// nothing that existed then has been freed since. (The keys may have changed: every key has a
    /// root. The default may have been replaced: both have the same length.)
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn write_located(&self, vector: &VectorLookup<'_>, located: &mut Located) -> u64 {
        if located.in_tbl8 != 0 {
            // SAFETY: the caller's promise.
            unsafe { self.resolve_tbl8s(vector, located) };
        }
        // SAFETY: the addresses are those of records or of a default.
        unsafe { write_results(vector, &located.addresses) };
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(located.hits, |slot, _| {
                let record = located.addresses.0[slot % VECTOR_SLOTS] as *const AtomicU64;
                // SAFETY: records that were hit have the table's record layout, so they have this
                // word.
                unsafe { &*record.add(stamp_word) }.store(vector.now, Ordering::Relaxed);
            });
        }
        located.hits
    }

    /// The addresses of the slots that a group of keys reads.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn slot_addresses(&self, vector: VectorLookup<'_>, group: usize) -> __m512i {
        let skip = _mm_cvtsi32_si128(32 - self.bits as i32);
        let number = _mm512_srl_epi64(left_aligned(vector, group, self.shift), skip);
        let (base, skip_mask) = self.slots.addressing();
        let skipped = _mm512_and_si512(number, _mm512_set1_epi64(skip_mask as i64));
        let offset = _mm512_slli_epi64::<2>(_mm512_add_epi64(number, skipped));
        _mm512_add_epi64(_mm512_set1_epi64(base as i64), offset)
    }

    /// The contents of the slots at eight addresses, with acquire loads: a TBL8 is filled before
    /// its number is stored. Single loads overlap between groups of keys, while gathers do not.
    ///
    /// # Safety
    /// They are addresses of slots.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    unsafe fn slots_at(&self, addresses: &[u64; LANES]) -> __m512i {
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

    /// The record numbers for a group of keys, given the contents of their slots; 0 for a miss. For
    /// keys `in_tbl8` it is the address of the number.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn numbers(&self, vector: VectorLookup<'_>, group: usize, mut numbers: __m512i, in_tbl8: u8) -> __m512i {
        let active = group_mask(vector.active, group);
        if in_tbl8 != 0 {
            numbers = self.addresses_in_tbl8s(numbers, left_aligned(vector, group, self.shift), in_tbl8);
        }
        let none = _mm512_mask_testn_epi64_mask(active, numbers, numbers);
        if none != 0 {
            let root_index = _mm512_srli_epi64::<{ 32 - ROOT_BITS }>(left_aligned(vector, group, self.shift));
            // SAFETY: there is a root for every value of the remaining bits.
            let roots = unsafe { _mm512_i64gather_epi32::<4>(root_index, self.roots.as_ptr().cast()) };
            numbers = _mm512_mask_cvtepu32_epi64(numbers, none, roots);
        }
        numbers
    }

    /// Replaces TBL8 numbers by the addresses of the record numbers in these TBL8s. These are not
    /// read yet: they may be far.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn addresses_in_tbl8s(&self, numbers: __m512i, addresses: __m512i, in_tbl8: u8) -> __m512i {
        let mut lanes = [0_u64; LANES];
        let mut last = [0_u64; LANES];
        // SAFETY: there are eight words of both.
        unsafe {
            _mm512_storeu_epi64(lanes.as_mut_ptr().cast(), numbers);
            _mm512_storeu_epi64(last.as_mut_ptr().cast(), addresses);
        }
        each_bit(in_tbl8.into(), |lane, _| {
            let lane = lane % LANES;
            let number = self.number_in_tbl8(lanes[lane] as u32 & !TBL8_FLAG, last[lane] as u32);
            lanes[lane] = std::ptr::from_ref(number).expose_provenance() as u64;
        });
        // SAFETY: there are eight words.
        unsafe { _mm512_loadu_epi64(lanes.as_ptr().cast()) }
    }

    /// Reads the record numbers that are in TBL8s.
    ///
    /// # Safety
    /// As [`Dir24_8::write_located`].
    #[inline(never)]
    unsafe fn resolve_tbl8s(&self, vector: &VectorLookup<'_>, located: &mut Located) {
        each_bit(located.in_tbl8, |slot, bit| {
            let number_address = located.addresses.0[slot % VECTOR_SLOTS] as *const AtomicU32;
            // SAFETY: it is the address of a number in a TBL8.
            let mut number = unsafe { &*number_address }.load(Ordering::Acquire);
            if number == 0 {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { vector.key(0, slot) } as u32;
                number = self.root(key << self.shift).load(Ordering::Acquire);
            }
            let mut record = vector.default;
            if number != 0 {
                // SAFETY: numbers in TBL8s and roots were allocated.
                record = unsafe { self.directory.record(number) };
                located.hits |= bit;
            }
            located.addresses.0[slot % VECTOR_SLOTS] = record.as_ptr().expose_provenance() as u64;
            prefetch(record.as_ptr());
        });
    }
}

/// The keys of a group's active slots as left-aligned 32-bit addresses; 0 for other slots.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn left_aligned(vector: VectorLookup<'_>, group: usize, shift: u32) -> __m512i {
    // SAFETY: keys have a word, and these are active slots.
    let keys = unsafe { vector.load_keys(0, group, group_mask(vector.active, group)) };
    let addresses = _mm512_sll_epi64(keys, _mm_cvtsi32_si128(shift as i32));
    // Bits beyond the key's width are unspecified.
    _mm512_and_si512(addresses, _mm512_set1_epi64(u32::MAX.into()))
}
