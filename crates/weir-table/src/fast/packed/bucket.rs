//! The bucket, and how its slots are compared all at once.
#![allow(unsafe_code)]

use crate::fast::batch::SLOTS;
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

/// Which bit is set; any of eight if none is.
#[inline(always)]
pub(super) fn first_bit(bits: u8) -> usize {
    // The wider count needs no care of 0.
    u32::from(bits).trailing_zeros() as usize & (WAYS - 1)
}

/// Searches that are only right if nothing is written meanwhile.
pub(in crate::fast) trait Search {
    /// What the slot holds that has these significant bits, and a bit for its place. If there is none, no bit, and anything
    /// that has not these significant bits.
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, u8);

    /// A bit per pair of words with these significant bits in common, which are those of the second.
    fn equal(words: &[u64; SLOTS], needles: &[u64; SLOTS], significant: u64) -> u64;
}

impl Search for Portable {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, u8) {
        let mut equal = 0;
        for (i, slot) in bucket.0.iter().enumerate() {
            equal |= u8::from(slot.load(Ordering::Relaxed) & significant == needle) << i;
        }
        (bucket.slot(first_bit(equal)).load(Ordering::Relaxed), equal)
    }

    #[inline(always)]
    fn equal(words: &[u64; SLOTS], needles: &[u64; SLOTS], significant: u64) -> u64 {
        let pairs = words.iter().zip(needles).rev();
        pairs.fold(0, |equal, (w, n)| equal << 1 | u64::from(w & significant == *n))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx2 {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, u8) {
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
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u8
            }
        };
        let equal = half(0) | half(WAYS / 2) << (WAYS / 2);
        (bucket.slot(first_bit(equal)).load(Ordering::Relaxed), equal)
    }

    #[inline(always)]
    fn equal(words: &[u64; SLOTS], needles: &[u64; SLOTS], significant: u64) -> u64 {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x,
        };
        let mut equal = 0;
        for at in (0..SLOTS).step_by(4) {
            // SAFETY: the processor has AVX2, see `find`, and the loads are those of four words.
            let part = unsafe {
                let words = _mm256_loadu_si256(words.as_ptr().add(at).cast());
                let needles = _mm256_loadu_si256(needles.as_ptr().add(at).cast());
                let words = _mm256_and_si256(words, _mm256_set1_epi64x(significant as i64));
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, needles)))
            };
            equal |= u64::from(part as u32) << at;
        }
        equal
    }
}

/// With AVX-512. Only where the processor has it, with masks of eight bits (DQ).
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Debug)]
pub(in crate::fast) struct Avx512;

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx512 {
    #[inline(always)]
    fn find(bucket: &Bucket, needle: u64, significant: u64) -> (u64, u8) {
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
            // Brings the slot to the front; much sooner done than finding and loading it.
            let found = _mm512_castsi512_si128(_mm512_maskz_compress_epi64(equal, slots));
            (_mm_cvtsi128_si64(found) as u64, equal)
        }
    }

    #[inline(always)]
    fn equal(words: &[u64; SLOTS], needles: &[u64; SLOTS], significant: u64) -> u64 {
        use std::arch::x86_64::{_mm512_and_si512, _mm512_cmpeq_epi64_mask, _mm512_loadu_si512, _mm512_set1_epi64};
        // SAFETY: the processor has AVX-512, see `find`, and the loads are those of eight words.
        u64::from_le_bytes(std::array::from_fn(|i| unsafe {
            let words = _mm512_loadu_si512(words.as_ptr().add(8 * i).cast());
            let needles = _mm512_loadu_si512(needles.as_ptr().add(8 * i).cast());
            let words = _mm512_and_si512(words, _mm512_set1_epi64(significant as i64));
            _mm512_cmpeq_epi64_mask(words, needles)
        }))
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
            assert_eq!((found & significant == needle, place), (i != 3, u8::from(i != 3) << i));
            assert!(i == 3 || found == expected);
            assert_eq!(bucket.look(needle, significant), (i != 3).then_some((expected, i)));
        }
        assert_eq!(S::find(&bucket, 9 << 4 | 1, significant).1, 0);
        for bits in [0, 1, 1 << 63, 0x8421_0137_0000_ffff, u64::MAX] {
            let needles = std::array::from_fn(|i| (i as u64) << 4 | 1);
            let words = std::array::from_fn(|i| (i as u64) << 4 | 6 | bits >> i & 1);
            assert_eq!(S::equal(&words, &needles, significant), bits);
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
