//! A displacement hash for few exact keys that fit one word together with their results: a perfect
//! hash (R. Pagh, "Hash and displace", WADS 1999; D. Belazzougui, F. Botelho and M. Dietzfelbinger,
//! "Hash, displace, and compress", ESA 2009). Each key has a slot of its own, so a lookup reads
//! exactly one slot.
//!
//! A slot is an entry, see [`Packing`]. A hash selects a key's *bucket*, of four keys on average.
//! The hash and the bucket's *displacement*, one byte, select the key's slot. The writer chooses
//! displacements such that all keys of a bucket get free slots. If none does, it builds a new array
//! with another seed, and places the largest buckets first. So nothing is searched, and a key that
//! is not in its slot is missing.
//!
//! There are at most 256 buckets and 2,048 slots: few enough for AVX-512 to hold a byte per bucket,
//! and a bit per slot, in registers during a lookup. There are 1.6 to 2.5 slots per entry, so an
//! entry takes 13 to 20 bytes, and its stamp 6 to 10 more. The writer takes about 80 bytes per
//! entry, 110 with stamps. The array does not shrink.
//!
//! A slot is written by one store, so no torn entry is ever found. A bucket that moves is copied
//! first and counted in `moves`. A reader that misses a key retries if `moves` has changed, unless
//! the seqlock shows that nothing was written.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod simd;
mod stamps;
mod writer;

pub(super) use writer::{Displacement, MAX_ENTRIES};

use crate::fast::hash::Seed;
use crate::fast::packing::{Packing, tick};
use crate::fast::seqlock::SeqLock;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::simd::has_avx512_vbmi;
use crate::fast::vector_lookup::{VectorLookup, each_bit, ones};
use crate::fast::zeroed::Zeroed;
use stamps::Stamps;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};

/// The most buckets.
const MAX_BUCKETS: usize = 256;
/// The most slots of an array.
const MAX_SLOTS: usize = 2048;
/// The hash is multiplied by this factor, with the displacement in its upper bits. So another
/// displacement changes nearly all bits that are used, the highest most.
const DISPLACEMENT_FACTOR: u64 = 0x0037_79b9;
/// The bit of the factor at which the displacement begins.
const DISPLACEMENT_SHIFT: u32 = 24;

/// The hash table, shared by readers and the writer.
#[derive(Debug)]
struct SlotArray {
    /// The entries, see [`Packing`]; 0 where a slot is free.
    slots: Zeroed<AtomicU64>,
    /// With `idle_timeout`.
    stamps: Option<Stamps>,
    /// The displacement of each bucket; allocated for [`MAX_BUCKETS`].
    displacements: Zeroed<AtomicU8>,
    /// The number of buckets in use.
    bucket_count: u32,
    packing: Packing,
    seed: Seed,
    /// Odd while the writer changes slots, so that optimistic lookups are discarded.
    seqlock: SeqLock,
    /// Counts moves of buckets to other slots.
    moves: AtomicU64,
    /// The processor has AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    uses_simd: bool,
}

/// Readers' view.
#[derive(Debug)]
pub(super) struct DisplacementView(Arc<SlotArray>);

/// Maps 32 bits to a number below `count`, uniformly.
#[inline(always)]
fn scale(bits: u64, count: u64) -> usize {
    (((bits & 0xffff_ffff) * count) >> 32) as usize
}

impl SlotArray {
    fn new(packing: Packing, slots: usize, bucket_count: u32, stamps: bool) -> Self {
        SlotArray {
            slots: Zeroed::new(slots),
            stamps: stamps.then(|| Stamps::new(slots)),
            displacements: Zeroed::new(MAX_BUCKETS),
            bucket_count,
            packing,
            seed: Seed::random(),
            seqlock: SeqLock::default(),
            moves: AtomicU64::new(0),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            uses_simd: has_avx512_vbmi(),
        }
    }

    /// The bucket of a hash.
    #[inline(always)]
    fn bucket(&self, hash: u64) -> usize {
        scale(hash >> 32, self.bucket_count.into())
    }

    /// The slot of a hash whose bucket has this displacement.
    #[inline(always)]
    fn slot_of_hash(&self, hash: u64, displacement: u8) -> usize {
        let mixed =
            (hash & 0xffff_ffff).wrapping_mul(u64::from(displacement) << DISPLACEMENT_SHIFT | DISPLACEMENT_FACTOR);
        scale(mixed >> 16, self.slots.len() as u64)
    }

    /// The slot of a key.
    #[inline(always)]
    fn slot_of_key(&self, key: u64) -> usize {
        let hash = self.seed.hash_word(key);
        self.slot_of_hash(hash, self.displacements[self.bucket(hash)].load(Ordering::Acquire))
    }

    /// Stamps a slot that was hit, with `idle_timeout`.
    #[inline(always)]
    fn stamp_hit(&self, slot_index: usize, tick: u32) {
        if let Some(stamps) = &self.stamps {
            stamps.record_hit(slot_index, tick);
        }
    }

    /// A key's entry as its slot packs it, and the slot's index, correct also while a writer runs.
    fn find(&self, key: u64) -> Option<(u64, usize)> {
        let (needle, significant) = (self.packing.needle(key), self.packing.significant());
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let slot_index = self.slot_of_key(key);
            let entry = self.slots[slot_index].load(Ordering::Acquire);
            if entry & significant == needle {
                return Some((entry, slot_index));
            }
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn lookup(&self, vector: &VectorLookup<'_>) -> u64 {
        if let Some(stamps) = &self.stamps {
            stamps.observe(tick(vector.now));
        }
        if let Some(version) = self.seqlock.read_begin() {
            let hits = self.optimistic(vector);
            if self.seqlock.validate(version) {
                return hits;
            }
        }
        self.contended(*vector)
    }

    /// An optimistic lookup: valid only if no write ran concurrently.
    #[inline(always)]
    fn optimistic(&self, vector: &VectorLookup<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.uses_simd {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_simd(vector) };
        }
        self.lookup_scalar(*vector)
    }

    /// [`SlotArray::optimistic`] without SIMD.
    #[inline(always)]
    fn lookup_scalar(&self, vector: VectorLookup<'_>) -> u64 {
        if let Some(queue) = vector.queue {
            queue.prefetch_all();
        }
        let (packing, significant) = (self.packing, self.packing.significant());
        // SAFETY: the default has the words of a result.
        let default = unsafe { vector.default.as_ref() }.load(Ordering::Relaxed);
        let now = tick(vector.now) as u32;
        let mut hits = 0;
        each_bit(vector.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { vector.key(0, slot) };
            let slot_index = self.slot_of_key(key);
            let value = self.slots[slot_index].load(Ordering::Relaxed);
            let hit = value & significant == packing.needle(key);
            hits |= bit & ones(hit);
            // SAFETY: only active slots, and word 0 of results always exists.
            unsafe { vector.set_result(0, slot, if hit { packing.head(value) } else { default }) };
            if hit {
                self.stamp_hit(slot_index, now);
            }
        });
        hits
    }

    /// A lookup that is correct also while a writer runs.
    #[cold]
    #[inline(never)]
    fn contended(&self, vector: VectorLookup<'_>) -> u64 {
        if let Some(queue) = vector.queue {
            queue.prefetch_all();
        }
        let now = tick(vector.now) as u32;
        let mut hits = 0;
        each_bit(vector.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            match self.find(unsafe { vector.key(0, slot) }) {
                Some((value, slot_index)) => {
                    hits |= bit;
                    // SAFETY: only active slots, and word 0 of results always exists.
                    unsafe { vector.set_result(0, slot, self.packing.head(value)) };
                    self.stamp_hit(slot_index, now);
                }
                // SAFETY: only active slots, and the default's length was checked.
                None => unsafe { vector.write_result(slot, vector.default) },
            }
        });
        hits
    }
}

impl DisplacementView {
    /// Whether lookups use AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn uses_simd(&self) -> bool {
        self.0.uses_simd
    }

    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        self.0.lookup(vector)
    }
}
