//! A cuckoo hash table for exact keys that fit one word together with their results: a 64-bit slot
//! is an entry.
//!
//! See [`Packing`] for the contents of a slot. A bucket is a cache line of eight slots, or, with
//! `idle_timeout`, of five slots and their stamps: a hit reads no line but the bucket's. A key is
//! in its first or its second bucket, in the first if that has room. The number of buckets is
//! arbitrary. At most seven eighths of the slots are used, or four fifths with stamps. So an entry
//! takes 9 to 14 bytes, or 16 to 26 with stamps. The writer takes half as many for handles, or a
//! third.
//!
//! A slot is written by one store, so no torn entry is ever found. A key that moves to its other
//! bucket is copied first and counted in `moves`. A reader that misses a key retries if `moves` has
//! changed, unless the seqlock shows that nothing was written.
#![allow(unsafe_code)]

mod bucket;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod simd;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use bucket::Avx512;
pub(super) use bucket::{Search, WithStamps, WithoutStamps};
pub(super) use writer::Packed;

use crate::fast::hash::Seed;
use crate::fast::mem::{SLOTS_PREFETCH_MIN_BYTES, prefetch};
use crate::fast::packing::{Newest, Packing, stamp_tick, tick};
use crate::fast::seqlock::SeqLock;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::simd::has_avx512_vbmi;
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit, each_slot, is_contiguous, ones};
use crate::fast::zeroed::Zeroed;
use bucket::{Bucket, first_bit};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Keys of a vector that are searched without a branch between them.
const BLOCK: usize = 8;

#[derive(Debug)]
struct Array<B: Bucket> {
    buckets: Zeroed<B>,
    /// A bit per bucket: a key with this first bucket is or was in its second one.
    overflow: Zeroed<AtomicU32>,
    count: u32,
    packing: Packing,
    seed: Seed,
    /// The processor has AVX-512, and buckets are so far that the SIMD lookup is faster.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    uses_simd: bool,
    seqlock: SeqLock,
    /// Counts keys that moved from a bucket to the other.
    moves: AtomicU64,
    newest: Newest,
}

/// Readers' view.
#[derive(Debug)]
pub(super) struct PackedView<B: Bucket>(Arc<Array<B>>);

/// A value per slot of a vector. Before it is set a value is 0, but uninitialised where all slots
/// are active, since all are set then.
struct Row<T>([MaybeUninit<T>; VECTOR_SLOTS]);

impl<T: Copy> Row<T> {
    #[inline(always)]
    fn unset() -> Self {
        Row([const { MaybeUninit::uninit() }; VECTOR_SLOTS])
    }

    /// Call it before anything is set. It is separate from [`Row::unset`], since a choice between
    /// two initialised arrays would be a copy.
    #[inline(always)]
    fn prepare(&mut self, active: u64) {
        if active != u64::MAX {
            self.0.fill(MaybeUninit::zeroed());
        }
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, value: T) {
        self.0[slot & (VECTOR_SLOTS - 1)].write(value);
    }

    /// # Safety
    /// The slot was set if it is active, and `T` is an integer.
    #[inline(always)]
    unsafe fn get(&self, slot: usize) -> T {
        // SAFETY: the caller's promise; others are 0.
        unsafe { self.0[slot & (VECTOR_SLOTS - 1)].assume_init() }
    }

    /// # Safety
    /// All active slots were set, and `T` is an integer.
    #[inline(always)]
    unsafe fn all(&self) -> &[T; VECTOR_SLOTS] {
        // SAFETY: the caller's promise; others are 0.
        unsafe { &*(&raw const self.0).cast() }
    }
}

/// Per slot of the vector, the bucket to search and the word to find. Inactive slots search bucket
/// 0 for a word that no slot has.
struct Probes {
    buckets: Row<u32>,
    needles: Row<u64>,
}

impl Probes {
    #[inline(always)]
    fn unset() -> Self {
        Probes {
            buckets: Row::unset(),
            needles: Row::unset(),
        }
    }
}

/// The results of a search, per slot of the vector.
struct Matches {
    /// The contents of the table's slot with the key. On a miss: a value that differs in
    /// the significant bits.
    slots: Row<u64>,
    /// With `idle_timeout`: the bit of that slot's position in its bucket; 0 on a miss.
    positions: Row<u8>,
    /// With `idle_timeout`: which stamps of the bucket are of this tick, see
    /// [`Search::fresh_stamps`].
    fresh: Row<u16>,
    /// The current tick.
    now: u32,
}

impl Matches {
    /// Whether the stamp of any match is of another tick.
    ///
    /// # Safety
    /// All active slots were set, in buckets with stamps.
    #[inline(always)]
    unsafe fn are_stale<B: Bucket>(&self) -> bool {
        // SAFETY: the caller's promise.
        let rows = unsafe { self.positions.all().iter().zip(self.fresh.all()) };
        rows.fold(0, |stale, (position, fresh)| {
            stale | u16::from(*position) & !(fresh >> (2 * B::SLOT_COUNT % 16))
        }) != 0
    }
}

/// The first bucket of a hash.
#[inline(always)]
fn first(hash: u64, count: u32) -> u32 {
    (((hash >> 32) * u64::from(count)) >> 32) as u32
}

/// The second bucket of a hash, never the first. There are at least two.
#[inline(always)]
fn second(hash: u64, count: u32) -> u32 {
    let other = ((u64::from(hash as u32) * u64::from(count)) >> 32) as u32;
    if other != first(hash, count) {
        other
    } else if other + 1 == count {
        0
    } else {
        other + 1
    }
}

impl<B: Bucket> Array<B> {
    /// An empty array of `count` buckets, at least two.
    fn new(packing: Packing, count: u32) -> Self {
        let number = count as usize;
        let buckets = Zeroed::new(number);
        Array {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            uses_simd: buckets.bytes() > SLOTS_PREFETCH_MIN_BYTES && has_avx512_vbmi(),
            buckets,
            overflow: Zeroed::new(number.div_ceil(32)),
            count,
            packing,
            seed: Seed::random(),
            seqlock: SeqLock::default(),
            moves: AtomicU64::new(0),
            newest: Newest::default(),
        }
    }

    fn needs_prefetch(&self) -> bool {
        self.buckets.bytes() > SLOTS_PREFETCH_MIN_BYTES
    }

    /// The first and the second bucket of a key.
    fn homes(&self, key: u64) -> [u32; 2] {
        let hash = self.seed.hash_word(key);
        [first(hash, self.count), second(hash, self.count)]
    }

    #[inline(always)]
    fn bucket(&self, number: u32) -> &B {
        debug_assert!(number < self.count);
        // SAFETY: numbers come from `first` and `second`, which are below `count`, and there are as
        // many buckets.
        unsafe { self.buckets.get_unchecked(number as usize) }
    }

    /// Whether keys with this first bucket may be in their second one.
    #[inline(always)]
    fn overflows(&self, number: u32) -> bool {
        self.overflow_bits(number).load(Ordering::Acquire) >> (number % 32) & 1 == 1
    }

    /// The word with a bucket's overflow bit, which is that of the number's lowest five bits.
    #[inline(always)]
    fn overflow_bits(&self, number: u32) -> &AtomicU32 {
        debug_assert!(number < self.count);
        // SAFETY: numbers come from `first` and `second`, which are below `count`, and there is a
        // bit per bucket.
        unsafe { self.overflow.get_unchecked(number as usize / 32) }
    }

    #[inline(always)]
    fn stamp_hit(&self, number: u32, slot: usize, tick: u32) {
        if let Some(stamp) = self.bucket(number).stamp(slot) {
            stamp_tick(stamp, tick);
        }
    }

    /// The contents of a key's slot, its bucket and its position there, correct also while a writer
    /// runs.
    fn find(&self, key: u64) -> Option<(u64, u32, usize)> {
        let [first, second] = self.homes(key);
        let (needle, significant) = (self.packing.needle(key), self.packing.significant());
        let scan = |number: u32| {
            let found = self.bucket(number).scan(needle, significant);
            found.map(|(slot, position)| (slot, number, position))
        };
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let mut found = scan(first);
            if found.is_none() && self.overflows(first) {
                found = scan(second);
            }
            fence(Ordering::Acquire);
            if found.is_some() || self.moves.load(Ordering::Relaxed) == moves {
                return found;
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn lookup<S: Search, const CONTIGUOUS: bool>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        if B::STAMPS {
            self.newest.observe(tick(vector.now));
        }
        if let Some(version) = self.seqlock.read_begin() {
            let hits = self.optimistic::<S, CONTIGUOUS>(vector);
            if self.seqlock.validate(version) {
                return hits;
            }
        }
        self.contended(*vector)
    }

    /// An optimistic lookup: valid only if no write ran concurrently.
    #[inline(always)]
    fn optimistic<S: Search, const CONTIGUOUS: bool>(&self, vector: &VectorLookup<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.uses_simd {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_simd(vector) };
        }
        self.lookup_scalar::<S, CONTIGUOUS>(*vector)
    }

    /// Computes the buckets of all keys, in a loop of its own so that it is vectorised. Sets all
    /// active slots.
    #[inline(always)]
    fn make_probes<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64], probes: &mut Probes) {
        let (seed, count, packing) = (self.seed, self.count, self.packing);
        probes.buckets.prepare(active);
        probes.needles.prepare(active);
        if CONTIGUOUS {
            let rows = probes.buckets.0.iter_mut().zip(&mut probes.needles.0);
            for ((bucket, needle), key) in rows.zip(&keys[..VECTOR_SLOTS - active.leading_zeros() as usize]) {
                bucket.write(first(seed.hash_word(*key), count));
                needle.write(packing.needle(*key));
            }
        } else {
            each_bit(active, |slot, _| {
                let key = keys[slot];
                probes.buckets.set(slot, first(seed.hash_word(key), count));
                probes.needles.set(slot, packing.needle(key));
            });
        }
    }

    /// Prefetches the buckets of all keys, and the second ones where a key may be there. Most
    /// vectors have some of these, and a prefetch now avoids a wait later.
    #[inline(always)]
    fn prefetch_buckets<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64], probes: &Probes) {
        let buckets = self.buckets.as_slice().as_ptr();
        let mut overflowing = 0;
        each_slot::<CONTIGUOUS>(active, |slot, bit| {
            // SAFETY: `make_probes` set active slots.
            let number = unsafe { probes.buckets.get(slot) };
            prefetch(buckets.wrapping_add(number as usize));
            overflowing |= bit & ones(self.overflows(number));
        });
        each_bit(overflowing, |slot, _| {
            prefetch(self.bucket(second(self.seed.hash_word(keys[slot]), self.count)));
        });
    }

    /// [`Array::optimistic`] without SIMD across keys.
    #[inline(always)]
    fn lookup_scalar<S: Search, const CONTIGUOUS: bool>(&self, vector: VectorLookup<'_>) -> u64 {
        let active = vector.active;
        let (packing, significant) = (self.packing, self.packing.significant());
        let length = VECTOR_SLOTS - active.leading_zeros() as usize;
        // SAFETY: the last active slot is within the row, and word 0 always exists.
        let keys = unsafe { std::slice::from_raw_parts(vector.key_row(0), length) };
        let mut probes = Probes::unset();
        self.make_probes::<CONTIGUOUS>(active, keys, &mut probes);
        if self.needs_prefetch() && !vector.is_prefetched {
            self.prefetch_buckets::<CONTIGUOUS>(active, keys, &probes);
        }
        let mut found = Matches {
            slots: Row::unset(),
            positions: Row::unset(),
            fresh: Row::unset(),
            now: tick(vector.now) as u32,
        };
        found.slots.prepare(active);
        if B::STAMPS {
            found.positions.prepare(active);
            found.fresh.prepare(active);
        }
        if CONTIGUOUS {
            // Slots without keys find nothing, in bucket 0.
            for start in (0..length).step_by(BLOCK) {
                for slot in start..start + BLOCK {
                    self.find_optimistic::<S>(slot, &probes, &mut found);
                }
            }
        } else {
            each_bit(active, |slot, _| {
                self.find_optimistic::<S>(slot, &probes, &mut found);
            });
        }
        // SAFETY: `make_probes` and `find_optimistic` set active slots.
        let mut hits = active & unsafe { S::equal(found.slots.all(), probes.needles.all(), significant) };
        if hits != active {
            let second_mask = self.maybe_in_second(active & !hits, &probes);
            each_bit(second_mask, |slot, bit| {
                probes
                    .buckets
                    .set(slot, second(self.seed.hash_word(keys[slot]), self.count));
                hits |= bit & ones(self.find_optimistic::<S>(slot, &probes, &mut found));
            });
        }
        // SAFETY: the default has the words of a result.
        let default = unsafe { vector.default.as_ref() }.load(Ordering::Relaxed);
        // SAFETY: `make_probes` and `find_optimistic` set active slots, and only these are used.
        let (slots, needles) = unsafe { (found.slots.all(), probes.needles.all()) };
        let result = |value: u64, needle: u64| {
            let hit = value & significant == needle;
            if hit { packing.head(value) } else { default }
        };
        if CONTIGUOUS {
            // SAFETY: all slots up to the last are active, and word 0 always exists.
            let results = unsafe { std::slice::from_raw_parts_mut(vector.result_row(0), length) };
            for ((to, value), needle) in results.iter_mut().zip(slots).zip(needles) {
                *to = result(*value, *needle);
            }
        } else {
            each_bit(active, |slot, _| {
                let index = slot & (VECTOR_SLOTS - 1);
                // SAFETY: only active slots, and word 0 always exists.
                unsafe { vector.set_result(0, slot, result(slots[index], needles[index])) };
            });
        }
        // SAFETY: `find_optimistic` set active slots.
        if B::STAMPS && unsafe { found.are_stale::<B>() } {
            each_bit(hits, |slot, _| {
                // SAFETY: only active slots, whose bucket and place `make_probes` and
                // `find_optimistic` set; there are places with last hits (`STAMPS`).
                let (bucket, position) = unsafe { (probes.buckets.get(slot), found.positions.get(slot)) };
                self.stamp_hit(bucket, first_bit(position), found.now);
            });
        }
        hits
    }

    /// Searches a slot's bucket for its key. Returns whether it is there.
    #[inline(always)]
    fn find_optimistic<S: Search>(&self, slot: usize, probes: &Probes, found: &mut Matches) -> bool {
        // SAFETY: `make_probes` set active slots, and where there are others they are 0.
        let (number, needle) = unsafe { (probes.buckets.get(slot), probes.needles.get(slot)) };
        let significant = self.packing.significant();
        let bucket = self.bucket(number);
        let (value, position) = S::find(bucket, needle, significant);
        found.slots.set(slot, value);
        if B::STAMPS {
            found.positions.set(slot, position);
            found.fresh.set(slot, S::fresh_stamps(bucket, found.now));
        }
        value & significant == needle
    }

    /// Of the slots that missed, those whose keys may be in their second bucket.
    #[inline(always)]
    fn maybe_in_second(&self, missed: u64, probes: &Probes) -> u64 {
        let mut second_mask = 0;
        each_bit(missed, |slot, bit| {
            // SAFETY: `make_probes` set active slots.
            second_mask |= bit & ones(self.overflows(unsafe { probes.buckets.get(slot) }));
        });
        second_mask
    }

    /// A lookup that is correct also while a writer runs.
    #[cold]
    #[inline(never)]
    fn contended(&self, vector: VectorLookup<'_>) -> u64 {
        if let Some(queue) = vector.queue {
            queue.prefetch_all();
        }
        let mut hits = 0;
        each_bit(vector.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            match self.find(unsafe { vector.key(0, slot) }) {
                Some((value, number, position)) => {
                    hits |= bit;
                    // SAFETY: only active slots, and word 0 of results always exists.
                    unsafe { vector.set_result(0, slot, self.packing.head(value)) };
                    self.stamp_hit(number, position, tick(vector.now) as u32);
                }
                // SAFETY: only active slots, and the default's length was checked.
                None => unsafe { vector.write_result(slot, vector.default) },
            }
        });
        hits
    }
}

impl<B: Bucket> PackedView<B> {
    #[inline(always)]
    pub(super) fn lookup<S: Search>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        if is_contiguous(vector.active) {
            self.0.lookup::<S, true>(vector)
        } else {
            self.0.lookup::<S, false>(vector)
        }
    }

    /// Whether [`PackedView::prefetch`] pays. SIMD lookups prefetch by themselves.
    pub(super) fn needs_prefetch(&self) -> bool {
        self.0.needs_prefetch() && !self.prefetches_queue()
    }

    /// Whether lookups prefetch their lines while they search, and also those in
    /// [`VectorLookup::queue`].
    pub(super) fn prefetches_queue(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return self.0.uses_simd;
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    }

    /// Prefetches the lines that a lookup of these keys reads.
    #[inline(always)]
    pub(super) fn prefetch<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64]) {
        let mut probes = Probes::unset();
        self.0.make_probes::<CONTIGUOUS>(active, keys, &mut probes);
        self.0.prefetch_buckets::<CONTIGUOUS>(active, keys, &probes);
    }
}
