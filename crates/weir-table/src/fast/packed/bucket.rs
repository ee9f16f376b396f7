//! The bucket, and how its slots are compared all at once.
#![allow(unsafe_code)]

use crate::fast::batch::{SLOTS, ones};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::Portable;
use crate::fast::mem::Zeroable;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a bucket.
pub(super) const WAYS: usize = 8;

/// A cache line of slots.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::fast) struct Bucket([AtomicU64; WAYS]);

const _: () = assert!(size_of::<Bucket>() == 64);

// SAFETY: only atomics.
unsafe impl Zeroable for Bucket {}

impl Bucket {
    #[inline(always)]
    pub(super) fn slot(&self, slot: usize) -> &AtomicU64 {
        &self.0[slot & (WAYS - 1)]
    }

    /// What the slot holds that has these significant bits, and which it is. Right whatever is written meanwhile.
    pub(super) fn look(&self, needle: u64, significant: u64) -> Option<(u64, usize)> {
        let slots = self.0.iter().map(|s| s.load(Ordering::Acquire)).zip(0..);
        slots.into_iter().find(|(value, _)| value & significant == needle)
    }
}

/// Searches that are only right if nothing is written meanwhile.
pub(in crate::fast) trait Search {
    /// What the slot holds that has these significant bits, and which it is; 0 and any if there is none.
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, usize);

    /// A bit per word that is not 0.
    fn set(words: &[u64; SLOTS]) -> u64;
}

impl Search for Portable {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, usize) {
        let (mut found, mut place) = (0, 0);
        for (i, slot) in bucket.0.iter().enumerate() {
            let value = slot.load(Ordering::Relaxed);
            let hit = ones(value & significant == needle);
            found |= value & hit;
            place |= i & hit as usize;
        }
        (found, place)
    }

    #[inline(always)]
    fn set(words: &[u64; SLOTS]) -> u64 {
        words.iter().rev().fold(0, |set, w| set << 1 | u64::from(*w != 0))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx2 {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, usize) {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_load_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x,
        };
        let half = |at: usize| {
            // SAFETY: the type is only named in code that runs where the processor has AVX2, and the load is that of
            // one half of a bucket, which is aligned. Aligned words are never read half, and who uses what was read asks
            // afterwards whether anything was written meanwhile.
            unsafe {
                let slots = _mm256_load_si256(bucket.0.as_ptr().add(at).cast());
                let slots = _mm256_and_si256(slots, _mm256_set1_epi64x(significant as i64));
                let equal = _mm256_cmpeq_epi64(slots, _mm256_set1_epi64x(needle as i64));
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
            }
        };
        let equal = half(0) | half(WAYS / 2) << (WAYS / 2);
        let place = (equal | 1 << WAYS).trailing_zeros() as usize & (WAYS - 1);
        (bucket.slot(place).load(Ordering::Relaxed) & ones(equal != 0), place)
    }

    #[inline(always)]
    fn set(words: &[u64; SLOTS]) -> u64 {
        use std::arch::x86_64::{
            _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_setzero_si256,
        };
        let mut clear = 0;
        for at in (0..SLOTS).step_by(4) {
            // SAFETY: the processor has AVX2, see `find`, and the load is that of four words.
            let equal = unsafe {
                let words = _mm256_loadu_si256(words.as_ptr().add(at).cast());
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, _mm256_setzero_si256())))
            };
            clear |= u64::from(equal as u32) << at;
        }
        !clear
    }
}

/// With AVX-512. Only where the processor has it, with words of 64 bits (DQ).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Debug)]
pub(in crate::fast) struct Avx512;

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx512 {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, usize) {
        use std::arch::x86_64::{
            _mm_cvtsi128_si64, _mm512_and_si512, _mm512_castsi512_si128, _mm512_cmpeq_epi64_mask, _mm512_load_si512,
            _mm512_maskz_compress_epi64, _mm512_set1_epi64,
        };
        // SAFETY: the type is only named in code that runs where the processor has AVX-512, and the load is that of a
        // bucket, which is aligned. Aligned words are never read half, and who uses what was read asks afterwards whether
        // anything was written meanwhile.
        unsafe {
            let slots = _mm512_load_si512(bucket.0.as_ptr().cast());
            let keys = _mm512_and_si512(slots, _mm512_set1_epi64(significant as i64));
            let equal = _mm512_cmpeq_epi64_mask(keys, _mm512_set1_epi64(needle as i64));
            // Brings the slot to the front, or 0 if there is none.
            let found = _mm512_castsi512_si128(_mm512_maskz_compress_epi64(equal, slots));
            let place = (u32::from(equal) | 1 << WAYS).trailing_zeros() as usize & (WAYS - 1);
            (_mm_cvtsi128_si64(found) as u64, place)
        }
    }

    #[inline(always)]
    fn set(words: &[u64; SLOTS]) -> u64 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_test_epi64_mask};
        let mut set = 0;
        for at in (0..SLOTS).step_by(8) {
            // SAFETY: the processor has AVX-512, see `find`, and the load is that of eight words.
            let part = unsafe {
                let words = _mm512_loadu_si512(words.as_ptr().add(at).cast());
                _mm512_test_epi64_mask(words, words)
            };
            set |= u64::from(part) << at;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<S: Search>() {
        let significant = !0b1110;
        let bucket = Bucket(std::array::from_fn(|i| {
            AtomicU64::new((i as u64) << 4 | (i as u64) << 1 & 0xe | 1)
        }));
        bucket.slot(3).store(0, Ordering::Relaxed);
        for i in 0..WAYS {
            let needle = (i as u64) << 4 | 1;
            let expected = bucket.slot(i).load(Ordering::Relaxed);
            let (found, place) = S::find(&bucket, needle, significant);
            assert_eq!(found, expected);
            assert!(found == 0 || place == i);
            assert_eq!(bucket.look(needle, significant), (i != 3).then_some((expected, i)));
        }
        assert_eq!(S::find(&bucket, 9 << 4 | 1, significant).0, 0);
        for bits in [0, 1, 1 << 63, 0x8421_0137_0000_ffff, u64::MAX] {
            assert_eq!(S::set(&std::array::from_fn(|i| (bits >> i & 1) << (63 - i))), bits);
        }
    }

    #[test]
    fn searches_agree() {
        check::<Portable>();
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            if std::arch::is_x86_feature_detected!("avx2") {
                check::<Avx2>();
            }
            if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
                check::<Avx512>();
            }
        }
    }
}
