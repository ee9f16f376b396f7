//! The two kinds of buckets, each a cache line, and the comparison of their keys.
#![allow(unsafe_code)]

use crate::fast::head::HIT;
use crate::fast::zeroed::Zeroable;
use crate::sync::{AtomicU64, fence};
use std::hint::select_unpredictable;
use std::sync::atomic::Ordering;

/// The lowest bit of the version, set while the slot is written.
pub(super) const WRITING: u64 = 1 << 50;
/// The bits of the version in a head.
pub(super) const VERSION: u64 = OVERFLOW - WRITING;
/// In the head of a bucket's first slot: a key with this first bucket is or was in its second one.
pub(super) const OVERFLOW: u64 = 1 << 63;
/// The bits of the result's head word in a head.
pub(super) const RESULT: u64 = WRITING - 1;

/// A cache line of slots. A slot has a key and a head: the head word of the result, without [`HIT`]
/// if the slot is free, and above it the version.
pub(in crate::fast) trait Bucket: Sized + Zeroable + std::fmt::Debug + Send + Sync + 'static {
    /// Number of slots.
    const SLOTS: usize;
    /// Highest load of an array, in eighths.
    const MAX_LOAD: usize;
    /// Whether slots have room for a stamp; stamps are in an array of their own otherwise.
    const HAS_STAMPS: bool;

    /// The head of a slot.
    fn head(&self, slot: usize) -> &AtomicU64;
    /// The key of a slot.
    fn key(&self, slot: usize) -> &AtomicU64;
    /// The second word of the result, if there is one.
    fn data(&self, slot: usize) -> Option<&AtomicU64>;
    /// The stamp of a slot, if buckets have stamps.
    fn stamp(&self, slot: usize) -> Option<&AtomicU64>;

    /// The buckets as [`TwoSlots`], if that is their type.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn as_two_slots(_buckets: &[Self]) -> Option<&[TwoSlots]> {
        None
    }

    /// Whether a slot has the key, and that slot's number. Compares keys alone: a free slot has a
    /// key that no lookup in its bucket has.
    fn find<C: Compare>(&self, key: u64) -> (bool, usize);

    /// Looks for a key, without branches that depend on the result.
    #[inline(always)]
    fn probe(&self, key: u64) -> Probe {
        let (mut found, mut head, mut torn) = (usize::MAX, 0, 0);
        for slot in 0..Self::SLOTS {
            let this = self.head(slot).load(Ordering::Acquire);
            let hit = (self.key(slot).load(Ordering::Relaxed) == key) & (this & HIT != 0);
            found = if hit { slot } else { found };
            head = if hit { this } else { head };
            torn |= this & WRITING;
        }
        let hit = found != usize::MAX;
        let slot = if hit { found } else { 0 };
        let first = self.head(0).load(Ordering::Relaxed);
        let head = if hit { head } else { first };
        let data = self.data(slot).map_or(0, |d| d.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        let recheck = self.head(slot).load(Ordering::Relaxed);
        Probe {
            hit,
            head: head & RESULT,
            data,
            slot,
            overflow: first & OVERFLOW != 0,
            torn: torn | (head ^ recheck),
        }
    }
}

/// The result of probing one bucket.
pub(in crate::fast) struct Probe {
    /// Whether the key is there.
    pub(super) hit: bool,
    /// The head word of the result; unspecified for a miss.
    pub(super) head: u64,
    /// The second word of the result, or 0; unspecified for a miss.
    pub(super) data: u64,
    /// The position in the bucket; 0 for a miss.
    pub(super) slot: usize,
    /// The key may be in its second bucket, if this is its first.
    pub(super) overflow: bool,
    /// Nonzero if the bucket was written during the search.
    pub(super) torn: u64,
}

/// The comparison of four words with a value.
pub(in crate::fast) trait Compare {
    /// A bit per equal word.
    fn equal(words: &[AtomicU64; 4], to: u64) -> u32;
}

/// Word by word.
#[derive(Debug)]
pub(in crate::fast) struct Portable;

impl Compare for Portable {
    #[inline(always)]
    fn equal(words: &[AtomicU64; 4], to: u64) -> u32 {
        let mut equal = 0;
        for (i, word) in words.iter().enumerate() {
            equal |= u32::from(word.load(Ordering::Relaxed) == to) << i;
        }
        equal
    }
}

/// All at once. Only for processors with AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Debug)]
pub(in crate::fast) struct Avx2;

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Compare for Avx2 {
    #[inline(always)]
    fn equal(words: &[AtomicU64; 4], to: u64) -> u32 {
        use std::arch::x86_64::{
            _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
        };
        // SAFETY: the type is only named in code that runs where the processor has AVX2, and the
        // load is that of four words. Aligned words are never read half, and the caller validates
        // the seqlock before it uses what was read.
        unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            let equal = _mm256_cmpeq_epi64(words, _mm256_set1_epi64x(to as i64));
            _mm256_movemask_pd(_mm256_castsi256_pd(equal)) as u32
        }
    }
}

/// Four slots with results of one word. Stamps are elsewhere.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::fast) struct FourSlots {
    keys: [AtomicU64; 4],
    heads: [AtomicU64; 4],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<FourSlots>() == 64);

// SAFETY: only atomic integers: `Sync`, zero bytes are zeros, and none has a drop.
unsafe impl Zeroable for FourSlots {
    #[cfg(loom)]
    fn zero() -> Self {
        let zeros = || std::array::from_fn(|_| AtomicU64::new(0));
        FourSlots {
            keys: zeros(),
            heads: zeros(),
        }
    }
}

impl Bucket for FourSlots {
    const SLOTS: usize = 4;
    const MAX_LOAD: usize = 6;
    const HAS_STAMPS: bool = false;

    #[inline(always)]
    fn head(&self, slot: usize) -> &AtomicU64 {
        &self.heads[slot & 3]
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> &AtomicU64 {
        &self.keys[slot & 3]
    }

    #[inline(always)]
    fn data(&self, _slot: usize) -> Option<&AtomicU64> {
        None
    }

    #[inline(always)]
    fn stamp(&self, _slot: usize) -> Option<&AtomicU64> {
        None
    }

    #[inline(always)]
    fn find<C: Compare>(&self, key: u64) -> (bool, usize) {
        let equal = C::equal(&self.keys, key);
        (equal != 0, (equal | 1 << 4).trailing_zeros() as usize & 3)
    }
}

/// Two slots with results of up to two words, and stamps: head, key, data, stamp.
#[derive(Debug)]
#[repr(C, align(64))]
pub(in crate::fast) struct TwoSlots([Slot; 2]);

/// A slot of [`TwoSlots`].
#[derive(Debug)]
#[repr(C)]
struct Slot {
    head: AtomicU64,
    key: AtomicU64,
    data: AtomicU64,
    stamp: AtomicU64,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<TwoSlots>() == 64);

// SAFETY: only atomic integers: `Sync`, zero bytes are zeros, and none has a drop.
unsafe impl Zeroable for TwoSlots {
    #[cfg(loom)]
    fn zero() -> Self {
        TwoSlots(std::array::from_fn(|_| Slot {
            head: AtomicU64::new(0),
            key: AtomicU64::new(0),
            data: AtomicU64::new(0),
            stamp: AtomicU64::new(0),
        }))
    }
}

impl Bucket for TwoSlots {
    const SLOTS: usize = 2;
    const MAX_LOAD: usize = 5;
    const HAS_STAMPS: bool = true;

    #[inline(always)]
    fn head(&self, slot: usize) -> &AtomicU64 {
        &self.0[slot & 1].head
    }

    #[inline(always)]
    fn key(&self, slot: usize) -> &AtomicU64 {
        &self.0[slot & 1].key
    }

    #[inline(always)]
    fn data(&self, slot: usize) -> Option<&AtomicU64> {
        Some(&self.0[slot & 1].data)
    }

    #[inline(always)]
    fn stamp(&self, slot: usize) -> Option<&AtomicU64> {
        Some(&self.0[slot & 1].stamp)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    fn as_two_slots(buckets: &[Self]) -> Option<&[TwoSlots]> {
        Some(buckets)
    }

    #[inline(always)]
    fn find<C: Compare>(&self, key: u64) -> (bool, usize) {
        let in_second = self.0[1].key.load(Ordering::Relaxed) == key;
        let hit = (self.0[0].key.load(Ordering::Relaxed) == key) | in_second;
        (hit, select_unpredictable(in_second, 1, 0))
    }
}
