//! Lookups of eight keys at a time in buckets of two slots.
#![allow(unsafe_code)]

use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::hash::{first, second};
use crate::fast::inline::Array;
use crate::fast::inline::bucket::{Bucket, OVERFLOW, Portable, RESULT, TwoSlots};
use crate::fast::mem::prefetch;
use crate::fast::simd::{LANES, SlotWords, group_mask, hash, pairs_at};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit};
use std::arch::x86_64::*;
use std::sync::atomic::Ordering;

/// Bytes from one slot to the next.
const SLOT: u64 = 32;
/// Byte offset of data and stamp in a slot.
const DATA: u64 = 16;
const _: () = assert!(LAST_HIT_TICK_NS.is_power_of_two());

/// The result of a pass over a vector.
#[derive(Default)]
struct Outcome {
    hits: u64,
    /// Missed in the first bucket, but possibly in the second.
    second_mask: u64,
    /// Hit, with a stamp of another tick.
    stale: u64,
}

impl<B: Bucket> Array<B> {
    /// An optimistic lookup: valid only if no write ran concurrently. It computes the addresses
    /// of all buckets, then reads them.
    ///
    /// # Safety
    /// Results have two words, and these are all buckets.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn lookup_simd<const STAMP: bool>(&self, vector: &VectorLookup<'_>, buckets: &[TwoSlots]) -> u64 {
        let mut addresses = SlotWords::new();
        let mask = _mm512_set1_epi64(self.mask as i64);
        let start = _mm512_set1_epi64(buckets.as_ptr().expose_provenance() as i64);
        for group in 0..VECTOR_SLOTS / LANES {
            let active = group_mask(vector.active, group);
            if active != 0 {
                // SAFETY: keys have a word, and these are active slots of the group.
                let hashes = hash(self.seed, unsafe { vector.load_keys(0, group, active) });
                let lines = _mm512_slli_epi64::<6>(_mm512_and_si512(hashes, mask));
                addresses.set(group, _mm512_add_epi64(start, lines));
            }
        }
        if self.needs_prefetch() && !vector.is_prefetched {
            each_bit(vector.active, |slot, _| {
                prefetch(addresses.0[slot % VECTOR_SLOTS] as *const u64)
            });
        }
        // SAFETY: all these are addresses of buckets, and results have two words.
        let mut found = unsafe {
            match vector.active {
                u64::MAX => groups::<STAMP, true>(vector, &addresses),
                _ => groups::<STAMP, false>(vector, &addresses),
            }
        };
        if found.second_mask != 0 {
            self.lookup_second::<STAMP>(vector, &mut found);
        }
        if STAMP && found.stale != 0 {
            self.stamp_all(vector, found.stale);
        }
        found.hits
    }

    /// Looks keys up in their second buckets.
    #[inline(never)]
    fn lookup_second<const STAMP: bool>(&self, vector: &VectorLookup<'_>, found: &mut Outcome) {
        each_bit(found.second_mask, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { vector.key(0, slot) };
            let number = second(self.seed.hash_word(key), self.mask);
            let bucket = self.bucket(number);
            let (hit, position) = bucket.find::<Portable>(key);
            if !hit {
                return;
            }
            found.hits |= bit;
            let data = bucket.data(position).map_or(0, |d| d.load(Ordering::Relaxed));
            // SAFETY: only active slots, and results have two words.
            unsafe {
                vector.set_result(0, slot, bucket.head(position).load(Ordering::Relaxed) & RESULT);
                vector.set_result(1, slot, data);
            }
            if STAMP {
                self.stamp_hit(number, position, vector.now);
            }
        });
    }

    /// Stamps hits in first buckets.
    #[inline(never)]
    fn stamp_all(&self, vector: &VectorLookup<'_>, hit: u64) {
        each_bit(hit, |slot, _| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { vector.key(0, slot) };
            let number = first(self.seed.hash_word(key), self.mask);
            let (hit, position) = self.bucket(number).find::<Portable>(key);
            if hit {
                self.stamp_hit(number, position, vector.now);
            }
        });
    }
}

/// Looks all groups up in these buckets. `ALL` if all slots are active.
///
/// # Safety
/// The addresses of groups with active slots are those of buckets of two, and results have two
/// words.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn groups<const STAMP: bool, const ALL: bool>(vector: &VectorLookup<'_>, addresses: &SlotWords) -> Outcome {
    let vector = *vector;
    let mut found = Outcome::default();
    // SAFETY: the default has as many words as a result.
    let defaults = [0, 1].map(|w| unsafe { vector.default.add(w).as_ref() }.load(Ordering::Relaxed));
    let [default_head, default_data] = defaults.map(|w| _mm512_set1_epi64(w as i64));
    for group in 0..VECTOR_SLOTS / LANES {
        let active = if ALL { u8::MAX } else { group_mask(vector.active, group) };
        if active == 0 {
            continue;
        }
        let addresses = addresses.group(group);
        // SAFETY: keys have a word, and these are active slots of the group; the caller's promise.
        let (keys, first_slots, second_slots, first_data, second_data) = unsafe {
            (
                vector.load_keys(0, group, active),
                pairs_at::<0>(addresses),
                pairs_at::<SLOT>(addresses),
                pairs_at::<DATA>(addresses),
                pairs_at::<{ SLOT + DATA }>(addresses),
            )
        };
        let in_first = _mm512_cmpeq_epi64_mask(first_slots[1], keys);
        let search_second = _mm512_cmpeq_epi64_mask(second_slots[1], keys);
        let heads = _mm512_mask_mov_epi64(first_slots[0], search_second, second_slots[0]);
        let heads = _mm512_and_si512(heads, _mm512_set1_epi64(RESULT as i64));
        let data = _mm512_mask_mov_epi64(first_data[0], search_second, second_data[0]);
        let hits = in_first | search_second;
        // SAFETY: results have two words, and these are active slots of the group.
        unsafe {
            vector.store_results(0, group, active, _mm512_mask_mov_epi64(default_head, hits, heads));
            vector.store_results(1, group, active, _mm512_mask_mov_epi64(default_data, hits, data));
        }
        let overflowing = _mm512_test_epi64_mask(first_slots[0], _mm512_set1_epi64(OVERFLOW as i64));
        found.hits |= u64::from(hits & active) << (LANES * group);
        found.second_mask |= u64::from(overflowing & !hits & active) << (LANES * group);
        if STAMP {
            const TICK_LOG2: u32 = LAST_HIT_TICK_NS.ilog2();
            let stamps = _mm512_mask_mov_epi64(first_data[1], search_second, second_data[1]);
            let now = _mm512_set1_epi64((vector.now >> TICK_LOG2) as i64);
            let stale = _mm512_cmpneq_epi64_mask(_mm512_srli_epi64::<TICK_LOG2>(stamps), now) & hits & active;
            found.stale |= u64::from(stale) << (LANES * group);
        }
    }
    found
}
