//! Keys in buckets of two, looked up eight at a time.
#![allow(unsafe_code)]

use crate::fast::LAST_HIT_STEP_NS;
use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::eight::{EIGHT, Lanes, hash, of_group, pairs_at};
use crate::fast::hash::{first, second};
use crate::fast::inline::Array;
use crate::fast::inline::bucket::{Bucket, OVERFLOW, Portable, RESULT, Two};
use crate::fast::mem::prefetch;
use std::arch::x86_64::*;
use std::sync::atomic::Ordering;

/// Bytes from one slot to the next.
const SLOT: u64 = 32;
/// Where data and stamp are in a slot.
const DATA: u64 = 16;
const _: () = assert!(LAST_HIT_STEP_NS.is_power_of_two());

/// What was found of a vector.
#[derive(Default)]
struct Found {
    hits: u64,
    /// In their first buckets they are not, but perhaps in their second.
    elsewhere: u64,
    /// Hit, and their last hit is another step.
    stale: u64,
}

impl<B: Bucket> Array<B> {
    /// A lookup that is only right if nothing is written meanwhile. First where all keys are, then what is there.
    ///
    /// # Safety
    /// Results have two words, and these are all buckets.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn lookup_eight<const STAMP: bool>(&self, batch: &Batch<'_>, buckets: &[Two]) -> u64 {
        let mut at = Lanes::new();
        let mask = _mm512_set1_epi64(self.mask as i64);
        let start = _mm512_set1_epi64(buckets.as_ptr().expose_provenance() as i64);
        for group in 0..SLOTS / EIGHT {
            let active = of_group(batch.active, group);
            if active != 0 {
                // SAFETY: keys have a word, and these are active slots of the group.
                let hashes = hash(self.seed, unsafe { batch.eight_keys(0, group, active) });
                let lines = _mm512_slli_epi64::<6>(_mm512_and_si512(hashes, mask));
                at.set(group, _mm512_add_epi64(start, lines));
            }
        }
        if self.is_staged() && !batch.is_fetched {
            each(batch.active, |slot, _| prefetch(at.0[slot % SLOTS] as *const u64));
        }
        // SAFETY: all these are addresses of buckets, and results have two words.
        let mut found = unsafe {
            match batch.active {
                u64::MAX => groups::<STAMP, true>(batch, &at),
                _ => groups::<STAMP, false>(batch, &at),
            }
        };
        if found.elsewhere != 0 {
            self.look_elsewhere::<STAMP>(batch, &mut found);
        }
        if STAMP && found.stale != 0 {
            self.stamp_all(batch, found.stale);
        }
        found.hits
    }

    /// Looks into second buckets.
    #[inline(never)]
    fn look_elsewhere<const STAMP: bool>(&self, batch: &Batch<'_>, found: &mut Found) {
        each(found.elsewhere, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { batch.key(0, slot) };
            let number = second(self.seed.one(key), self.mask);
            let bucket = self.bucket(number);
            let (hit, place) = bucket.find::<Portable>(key);
            if !hit {
                return;
            }
            found.hits |= bit;
            let data = bucket.data(place).map_or(0, |d| d.load(Ordering::Relaxed));
            // SAFETY: only active slots, and results have two words.
            unsafe {
                batch.put(0, slot, bucket.head(place).load(Ordering::Relaxed) & RESULT);
                batch.put(1, slot, data);
            }
            if STAMP {
                self.stamp_hit(number, place, batch.now);
            }
        });
    }

    /// Notes hits in first buckets.
    #[inline(never)]
    fn stamp_all(&self, batch: &Batch<'_>, hit: u64) {
        each(hit, |slot, _| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { batch.key(0, slot) };
            let number = first(self.seed.one(key), self.mask);
            let (hit, place) = self.bucket(number).find::<Portable>(key);
            if hit {
                self.stamp_hit(number, place, batch.now);
            }
        });
    }
}

/// Looks all groups up in these buckets: who was hit, who missed and may be elsewhere, and whose last hit is not now. `ALL` if all slots are
/// active.
///
/// # Safety
/// The addresses of groups with active slots are those of buckets of two, and results have two words.
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn groups<const STAMP: bool, const ALL: bool>(batch: &Batch<'_>, at: &Lanes) -> Found {
    let batch = *batch;
    let mut found = Found::default();
    // SAFETY: the default has as many words as a result.
    let defaults = [0, 1].map(|w| unsafe { batch.default.add(w).as_ref() }.load(Ordering::Relaxed));
    let [default_head, default_data] = defaults.map(|w| _mm512_set1_epi64(w as i64));
    for group in 0..SLOTS / EIGHT {
        let active = if ALL { u8::MAX } else { of_group(batch.active, group) };
        if active == 0 {
            continue;
        }
        let at = at.group(group);
        // SAFETY: keys have a word, and these are active slots of the group; the caller's promise.
        let (keys, first_slots, second_slots, first_data, second_data) = unsafe {
            (
                batch.eight_keys(0, group, active),
                pairs_at::<0>(at),
                pairs_at::<SLOT>(at),
                pairs_at::<DATA>(at),
                pairs_at::<{ SLOT + DATA }>(at),
            )
        };
        let in_first = _mm512_cmpeq_epi64_mask(first_slots[1], keys);
        let in_second = _mm512_cmpeq_epi64_mask(second_slots[1], keys);
        let heads = _mm512_mask_mov_epi64(first_slots[0], in_second, second_slots[0]);
        let heads = _mm512_and_si512(heads, _mm512_set1_epi64(RESULT as i64));
        let data = _mm512_mask_mov_epi64(first_data[0], in_second, second_data[0]);
        let hits = in_first | in_second;
        // SAFETY: results have two words, and these are active slots of the group.
        unsafe {
            batch.put_eight(0, group, active, _mm512_mask_mov_epi64(default_head, hits, heads));
            batch.put_eight(1, group, active, _mm512_mask_mov_epi64(default_data, hits, data));
        }
        let overflowing = _mm512_test_epi64_mask(first_slots[0], _mm512_set1_epi64(OVERFLOW as i64));
        found.hits |= u64::from(hits & active) << (EIGHT * group);
        found.elsewhere |= u64::from(overflowing & !hits & active) << (EIGHT * group);
        if STAMP {
            const STEP: u32 = LAST_HIT_STEP_NS.ilog2();
            let stamps = _mm512_mask_mov_epi64(first_data[1], in_second, second_data[1]);
            let now = _mm512_set1_epi64((batch.now >> STEP) as i64);
            let stale = _mm512_cmpneq_epi64_mask(_mm512_srli_epi64::<STEP>(stamps), now) & hits & active;
            found.stale |= u64::from(stale) << (EIGHT * group);
        }
    }
    found
}
