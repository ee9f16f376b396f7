//! Buckets of one cache line, and the comparison of all slots of a bucket at once: portable, AVX2
//! and AVX-512.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::Portable;
use crate::fast::vector_lookup::VECTOR_SLOTS;
use crate::fast::zeroed::Zeroable;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Words of a cache line.
const WORDS: usize = 8;

/// A cache line that begins with slots.
///
/// # Safety
/// It is as long as a cache line and aligned like one. It begins with `SLOT_COUNT` slots, at most
/// [`WORDS`], after which are the stamps, if it has them, and all of it are atomics.
pub(in crate::fast) unsafe trait Bucket: Zeroable + Debug {
    /// Number of slots.
    const SLOT_COUNT: usize;
    /// Whether slots have stamps.
    const STAMPS: bool;
    /// Most entries per bucket of a table, on average.
    const MAX_LOAD: usize;
    /// Entries per two buckets in tables built for a known size. They are fewer, so that few keys
    /// are in their second bucket, where a lookup starts again.
    const BUILT_LOAD: usize;

    /// All slots.
    fn slots(&self) -> &[AtomicU64];

    /// The stamp of a slot: its last hit.
    fn stamp(&self, slot: usize) -> Option<&AtomicU32>;

    /// A slot; an unspecified one if there is none of that number.
    #[inline(always)]
    fn slot(&self, slot: usize) -> &AtomicU64 {
        let slots = self.slots();
        slots.get(slot).unwrap_or(&slots[0])
    }

    /// The slot with these significant bits: its contents and number. Correct also while a writer
    /// runs.
    fn scan(&self, needle: u64, significant: u64) -> Option<(u64, usize)> {
        let mut slots = self.slots().iter().map(|s| s.load(Ordering::Acquire)).zip(0..);
        slots.find(|(value, _)| value & significant == needle)
    }
}

/// Slots without stamps.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::fast) struct WithoutStamps([AtomicU64; WORDS]);

/// Slots and their stamps: a lookup that finds a key has its stamp in the same line. The last stamp
/// is unused.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::fast) struct WithStamps {
    slots: [AtomicU64; 5],
    stamps: [AtomicU32; 6],
}

const _: () = assert!(size_of::<WithoutStamps>() == 64 && size_of::<WithStamps>() == 64);

// SAFETY: only atomic integers: `Sync`, zero bytes are zeros, and none has a drop.
unsafe impl Zeroable for WithoutStamps {
    #[cfg(loom)]
    fn zero() -> Self {
        WithoutStamps(Default::default())
    }
}
// SAFETY: only atomic integers: `Sync`, zero bytes are zeros, and none has a drop.
unsafe impl Zeroable for WithStamps {
    #[cfg(loom)]
    fn zero() -> Self {
        WithStamps {
            slots: Default::default(),
            stamps: Default::default(),
        }
    }
}

// SAFETY: a cache line of eight slots.
unsafe impl Bucket for WithoutStamps {
    const SLOT_COUNT: usize = WORDS;
    const STAMPS: bool = false;
    const MAX_LOAD: usize = 7;
    const BUILT_LOAD: usize = 10;

    #[inline(always)]
    fn slots(&self) -> &[AtomicU64] {
        &self.0
    }

    #[inline(always)]
    fn stamp(&self, _: usize) -> Option<&AtomicU32> {
        None
    }
}

// SAFETY: a cache line that begins with five slots.
unsafe impl Bucket for WithStamps {
    const SLOT_COUNT: usize = 5;
    const STAMPS: bool = true;
    const MAX_LOAD: usize = 4;
    const BUILT_LOAD: usize = 5;

    #[inline(always)]
    fn slots(&self) -> &[AtomicU64] {
        &self.slots
    }

    #[inline(always)]
    fn stamp(&self, slot: usize) -> Option<&AtomicU32> {
        self.stamps.get(slot)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
/// A bit per slot of a bucket.
pub(super) const fn slot_mask<B: Bucket>() -> u8 {
    u8::MAX >> (WORDS - B::SLOT_COUNT)
}

/// The lowest set bit; unspecified, but below eight, if none is set.
#[inline(always)]
pub(super) fn first_bit(bits: u8) -> usize {
    // The 32-bit count needs no special case for 0.
    u32::from(bits).trailing_zeros() as usize % WORDS
}

/// Optimistic searches: valid only if no write ran concurrently.
pub(in crate::fast) trait Search {
    /// The contents of the slot with these significant bits, and a bit for its position. If there
    /// is none: no bit, and a value with other significant bits.
    fn find<B: Bucket>(bucket: &B, needle: u64, significant: u64) -> (u64, u8);

    /// A bit per stamp that equals `stamp`: that of slot `p` is bit `2 * SLOT_COUNT + p`, since the
    /// bucket is compared as 32-bit words. Other bits are unspecified.
    fn fresh_stamps<B: Bucket>(bucket: &B, stamp: u32) -> u16;

    /// A bit per pair of words that agree in the significant bits; `needles` has no others.
    fn equal(words: &[u64; VECTOR_SLOTS], needles: &[u64; VECTOR_SLOTS], significant: u64) -> u64;
}

impl Search for Portable {
    #[inline(always)]
    fn find<B: Bucket>(bucket: &B, needle: u64, significant: u64) -> (u64, u8) {
        let mut equal = 0;
        for (i, slot) in bucket.slots().iter().enumerate() {
            equal |= u8::from(slot.load(Ordering::Relaxed) & significant == needle) << i;
        }
        (bucket.slot(first_bit(equal)).load(Ordering::Relaxed), equal)
    }

    #[inline(always)]
    fn fresh_stamps<B: Bucket>(bucket: &B, stamp: u32) -> u16 {
        let is_it = |slot: usize| bucket.stamp(slot).is_some_and(|s| s.load(Ordering::Relaxed) == stamp);
        (0..B::SLOT_COUNT).fold(0, |positions, slot| {
            positions | u16::from(is_it(slot)) << (2 * B::SLOT_COUNT % 16 + slot)
        })
    }

    #[inline(always)]
    fn equal(words: &[u64; VECTOR_SLOTS], needles: &[u64; VECTOR_SLOTS], significant: u64) -> u64 {
        let pairs = words.iter().zip(needles).rev();
        pairs.fold(0, |equal, (w, n)| equal << 1 | u64::from(w & significant == *n))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx2 {
    #[inline(always)]
    fn find<B: Bucket>(bucket: &B, needle: u64, significant: u64) -> (u64, u8) {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_load_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x,
        };
        let half = |first_word: usize| {
            // SAFETY: the type is only named in code that runs where the processor has AVX2, and
            // the load is that of one half of a bucket, which is aligned. Aligned words are never
            // read half, and the caller validates the seqlock before it uses what was read.
            unsafe {
                let slots = _mm256_load_si256((&raw const *bucket).cast::<u64>().add(first_word).cast());
                let slots = _mm256_and_si256(slots, _mm256_set1_epi64x(significant as i64));
                let equal = _mm256_cmpeq_epi64(slots, _mm256_set1_epi64x(needle as i64));
                _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u8
            }
        };
        let equal = (half(0) | half(WORDS / 2) << (WORDS / 2)) & slot_mask::<B>();
        (bucket.slot(first_bit(equal)).load(Ordering::Relaxed), equal)
    }

    #[inline(always)]
    fn fresh_stamps<B: Bucket>(bucket: &B, stamp: u32) -> u16 {
        use std::arch::x86_64::{
            _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_load_si256, _mm256_movemask_ps, _mm256_set1_epi32,
        };
        let half = |first_word: usize| {
            // SAFETY: the processor has AVX2, as only code for it names the type, and the load is
            // that of one half of a bucket, which is aligned; for concurrent stores see
            // `fast::simd`.
            unsafe {
                let words = _mm256_load_si256((&raw const *bucket).cast::<u64>().add(first_word).cast());
                let equal = _mm256_cmpeq_epi32(words, _mm256_set1_epi32(stamp as i32));
                _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u32
            }
        };
        (half(0) | half(WORDS / 2) << WORDS) as u16
    }

    #[inline(always)]
    fn equal(words: &[u64; VECTOR_SLOTS], needles: &[u64; VECTOR_SLOTS], significant: u64) -> u64 {
        use std::arch::x86_64::{
            _mm256_and_si256, _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd,
            _mm256_set1_epi64x,
        };
        let mut equal = 0;
        for first_word in (0..VECTOR_SLOTS).step_by(4) {
            // SAFETY: the processor has AVX2, see `find`, and the loads are those of four words.
            let part = unsafe {
                let words = _mm256_loadu_si256(words.as_ptr().add(first_word).cast());
                let needles = _mm256_loadu_si256(needles.as_ptr().add(first_word).cast());
                let words = _mm256_and_si256(words, _mm256_set1_epi64x(significant as i64));
                _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(words, needles)))
            };
            equal |= u64::from(part as u32) << first_word;
        }
        equal
    }
}

/// AVX-512, with masks of eight bits (DQ). Only for processors that have both.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Debug)]
pub(in crate::fast) struct Avx512;

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Search for Avx512 {
    #[inline(always)]
    fn find<B: Bucket>(bucket: &B, needle: u64, significant: u64) -> (u64, u8) {
        use std::arch::x86_64::{
            _mm_cvtsi128_si64, _mm512_and_si512, _mm512_castsi512_si128, _mm512_load_si512,
            _mm512_mask_cmpeq_epi64_mask, _mm512_maskz_compress_epi64, _mm512_set1_epi64,
        };
        // SAFETY: the type is only named in code that runs where the processor has AVX-512, and the
        // load is that of a bucket, which is aligned. Aligned words are never read half, and the
        // caller validates the seqlock before it uses what was read.
        unsafe {
            let slots = _mm512_load_si512((&raw const *bucket).cast());
            let keys = _mm512_and_si512(slots, _mm512_set1_epi64(significant as i64));
            let equal = _mm512_mask_cmpeq_epi64_mask(slot_mask::<B>(), keys, _mm512_set1_epi64(needle as i64));
            // Compressing moves the slot to the front; much faster than computing its number and
            // loading it.
            let found = _mm512_castsi512_si128(_mm512_maskz_compress_epi64(equal, slots));
            (_mm_cvtsi128_si64(found) as u64, equal)
        }
    }

    #[inline(always)]
    fn fresh_stamps<B: Bucket>(bucket: &B, stamp: u32) -> u16 {
        use std::arch::x86_64::{_mm512_cmpeq_epi32_mask, _mm512_load_si512, _mm512_set1_epi32};
        // SAFETY: the processor has AVX-512, as only code for it names the type, and the load is
        // that of a bucket, which is aligned; for concurrent stores see `fast::simd`.
        unsafe {
            let words = _mm512_load_si512((&raw const *bucket).cast());
            _mm512_cmpeq_epi32_mask(words, _mm512_set1_epi32(stamp as i32))
        }
    }

    #[inline(always)]
    fn equal(words: &[u64; VECTOR_SLOTS], needles: &[u64; VECTOR_SLOTS], significant: u64) -> u64 {
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
        // The words after the slots must not match, even if they look like keys.
        let stamped = WithStamps {
            slots: Default::default(),
            stamps: [0x81, 0, 0x81, 0, 0x81, 0].map(AtomicU32::new),
        };
        assert_eq!(S::find(&stamped, 8 << 4 | 1, significant).1, 0);
        for (stamp, positions) in [(0x81, 0b10101), (0, 0b01010), (1, 0)] {
            assert_eq!(
                S::fresh_stamps(&stamped, stamp) >> (2 * WithStamps::SLOT_COUNT) & 0b11111,
                positions
            );
        }
        check_bucket::<S, _>(&stamped, significant);
        check_bucket::<S, _>(&WithoutStamps(Default::default()), significant);
        for bits in [0, 1, 1 << 63, 0x8421_0137_0000_ffff, u64::MAX] {
            let needles = std::array::from_fn(|i| (i as u64) << 4 | 1);
            let words = std::array::from_fn(|i| (i as u64) << 4 | 6 | bits >> i & 1);
            assert_eq!(S::equal(&words, &needles, significant), bits);
        }
    }

    fn check_bucket<S: Search, B: Bucket>(bucket: &B, significant: u64) {
        for i in (0..B::SLOT_COUNT).filter(|i| *i != 3) {
            let value = (i as u64) << 4 | (i as u64) << 1 & 0xe | 1;
            bucket.slot(i).store(value, Ordering::Relaxed);
        }
        for i in 0..B::SLOT_COUNT {
            let needle = (i as u64) << 4 | 1;
            let expected = bucket.slot(i).load(Ordering::Relaxed);
            let (found, position) = S::find(bucket, needle, significant);
            assert_eq!(
                (found & significant == needle, position),
                (i != 3, u8::from(i != 3) << i)
            );
            assert!(i == 3 || found == expected);
            assert_eq!(bucket.scan(needle, significant), (i != 3).then_some((expected, i)));
        }
        assert_eq!(S::find(bucket, 9 << 4 | 1, significant).1, 0);
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
