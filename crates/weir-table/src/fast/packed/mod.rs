//! Exact keys that fit one word together with their results: a slot of 64 bits is an entry.
//!
//! A slot is the key, below it action and data, and a bit that is set; free slots are 0. So an entry has no handle that
//! readers could see. A bucket is a cache line of eight slots, or of five and their last hits if somebody wants to know those:
//! who has found a key need not wait for memory again. A key is in its first or its second bucket, in the first where there is
//! room; the number of buckets is any. At most seven eighths of the slots are used, or four fifths, so an entry takes 9 to 14
//! bytes, or 16 to 26 with its last hit, and half as many of the writer's for handles, or a third. Slots are written at once, so
//! nothing that is found is torn. A key that moves to its other bucket is copied first and counted in `moves`, which readers look
//! at before they call a key missing, unless `writes` tells them that nothing changed.
#![allow(unsafe_code)]

mod bucket;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod eight;
#[cfg(test)]
mod tests;
mod writer;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use bucket::Avx512;
pub(super) use bucket::{Plain, Search, Stamped};
pub(super) use writer::Packed;

use crate::fast::batch::{Batch, SLOTS, each, each_of, is_dense, ones};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::eight::has_eight;
use crate::fast::hash::Seed;
use crate::fast::mem::{STAGED, prefetch};
use crate::fast::packing::{Newest, Packing, note, step};
use crate::fast::writes::Writes;
use crate::fast::zeroed::Zeroed;
use bucket::{Bucket, first_bit};
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// So many keys of a vector are searched without a branch.
const BLOCK: usize = 8;

#[derive(Debug)]
struct Array<B: Bucket> {
    buckets: Zeroed<B>,
    /// A bit per bucket: a key that should be there is or was in its second bucket.
    overflow: Zeroed<AtomicU32>,
    count: u32,
    packing: Packing,
    seed: Seed,
    /// Keys are looked up eight at a time, which takes less time where buckets are far.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    by_eights: bool,
    writes: Writes,
    /// Counts keys that left a bucket for the other.
    moves: AtomicU64,
    newest: Newest,
}

/// What readers see.
#[derive(Debug)]
pub(super) struct PackedShape<B: Bucket>(Arc<Array<B>>);

/// A value for each slot of a vector: 0 before it is set, but not where all slots are active, as they are all set then.
struct Row<T>([MaybeUninit<T>; SLOTS]);

impl<T: Copy> Row<T> {
    #[inline(always)]
    fn unset() -> Self {
        Row([const { MaybeUninit::uninit() }; SLOTS])
    }

    /// Must come before anything is set. Apart from [`Row::unset`], for what is chosen from two arrays is copied.
    #[inline(always)]
    fn prepare(&mut self, active: u64) {
        if active != u64::MAX {
            self.0.fill(MaybeUninit::zeroed());
        }
    }

    #[inline(always)]
    fn set(&mut self, slot: usize, value: T) {
        self.0[slot & (SLOTS - 1)].write(value);
    }

    /// # Safety
    /// The slot was set if it is active, and `T` is an integer.
    #[inline(always)]
    unsafe fn get(&self, slot: usize) -> T {
        // SAFETY: the caller's promise; others are 0.
        unsafe { self.0[slot & (SLOTS - 1)].assume_init() }
    }

    /// # Safety
    /// All active slots were set, and `T` is an integer.
    #[inline(always)]
    unsafe fn all(&self) -> &[T; SLOTS] {
        // SAFETY: the caller's promise; others are 0.
        unsafe { &*(&raw const self.0).cast() }
    }
}

/// What the slots of a vector look for, and in which bucket. Of no slot it is nothing in bucket 0.
struct Sought {
    buckets: Row<u32>,
    needles: Row<u64>,
}

impl Sought {
    #[inline(always)]
    fn unset() -> Self {
        Sought {
            buckets: Row::unset(),
            needles: Row::unset(),
        }
    }
}

/// Of each key what the slot holds that has it, or something else, and a bit for its place if somebody wants to know.
struct Found {
    slots: Row<u64>,
    places: Row<u8>,
    /// Which last hits of the bucket are of this step, see [`Search::hit_at`].
    fresh: Row<u16>,
    /// The step it is now.
    now: u32,
}

impl Found {
    /// Whether the last hit of one of them is of another step.
    ///
    /// # Safety
    /// All active slots were set, in buckets with last hits.
    #[inline(always)]
    unsafe fn are_stale<B: Bucket>(&self) -> bool {
        // SAFETY: the caller's promise.
        let rows = unsafe { self.places.all().iter().zip(self.fresh.all()) };
        rows.fold(0, |stale, (place, fresh)| {
            stale | u16::from(*place) & !(fresh >> (2 * B::WAYS % 16))
        }) != 0
    }
}

/// The bucket a hash should be in.
#[inline(always)]
fn first(hash: u64, count: u32) -> u32 {
    (((hash >> 32) * u64::from(count)) >> 32) as u32
}

/// The other bucket a hash may be in. There are at least two.
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
    /// At least two buckets.
    fn new(packing: Packing, count: u32) -> Self {
        let number = count as usize;
        let buckets = Zeroed::new(number);
        Array {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            by_eights: buckets.bytes() > STAGED && has_eight(),
            buckets,
            overflow: Zeroed::new(number.div_ceil(32)),
            count,
            packing,
            seed: Seed::random(),
            writes: Writes::default(),
            moves: AtomicU64::new(0),
            newest: Newest::default(),
        }
    }

    fn is_staged(&self) -> bool {
        self.buckets.bytes() > STAGED
    }

    /// The first and the second bucket of a key.
    fn homes(&self, key: u64) -> [u32; 2] {
        let hash = self.seed.one(key);
        [first(hash, self.count), second(hash, self.count)]
    }

    #[inline(always)]
    fn bucket(&self, number: u32) -> &B {
        debug_assert!(number < self.count);
        // SAFETY: numbers come from `first` and `second`, which are below `count`, and there are as many buckets.
        unsafe { self.buckets.get_unchecked(number as usize) }
    }

    /// Whether keys that should be in the bucket may be in their second one.
    #[inline(always)]
    fn overflows(&self, number: u32) -> bool {
        self.overflow_bits(number).load(Ordering::Acquire) >> (number % 32) & 1 == 1
    }

    /// Where that is a bit: that of the number's lowest five bits.
    #[inline(always)]
    fn overflow_bits(&self, number: u32) -> &AtomicU32 {
        debug_assert!(number < self.count);
        // SAFETY: numbers come from `first` and `second`, which are below `count`, and there is a
        // bit per bucket.
        unsafe { self.overflow.get_unchecked(number as usize / 32) }
    }

    #[inline(always)]
    fn stamp_hit(&self, number: u32, slot: usize, step: u32) {
        if let Some(stamp) = self.bucket(number).stamp(slot) {
            note(stamp, step);
        }
    }

    /// The slot of a key, its bucket and its place there, whatever is written meanwhile.
    fn find(&self, key: u64) -> Option<(u64, u32, usize)> {
        let [first, second] = self.homes(key);
        let (needle, significant) = (self.packing.needle(key), self.packing.significant());
        let look = |number: u32| {
            let found = self.bucket(number).look(needle, significant);
            found.map(|(slot, place)| (slot, number, place))
        };
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let mut found = look(first);
            if found.is_none() && self.overflows(first) {
                found = look(second);
            }
            fence(Ordering::Acquire);
            if found.is_some() || self.moves.load(Ordering::Relaxed) == moves {
                return found;
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn lookup<S: Search, const DENSE: bool>(&self, batch: &mut Batch<'_>) -> u64 {
        if B::STAMPS {
            self.newest.see(step(batch.now));
        }
        if let Some(quiet) = self.writes.quiet() {
            let hits = self.look_quietly::<S, DENSE>(batch);
            if self.writes.is_quiet_since(quiet) {
                return hits;
            }
        }
        self.disturbed(*batch)
    }

    /// A lookup that is only right if nothing is written meanwhile.
    #[inline(always)]
    fn look_quietly<S: Search, const DENSE: bool>(&self, batch: &Batch<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.by_eights {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_eight(batch) };
        }
        self.quiet::<S, DENSE>(*batch)
    }

    /// The buckets of all keys: apart from the rest, so that it can be done for several at once. All active slots are set.
    #[inline(always)]
    fn seek<const DENSE: bool>(&self, active: u64, keys: &[u64], sought: &mut Sought) {
        let (seed, count, packing) = (self.seed, self.count, self.packing);
        sought.buckets.prepare(active);
        sought.needles.prepare(active);
        if DENSE {
            let rows = sought.buckets.0.iter_mut().zip(&mut sought.needles.0);
            for ((bucket, needle), key) in rows.zip(&keys[..SLOTS - active.leading_zeros() as usize]) {
                bucket.write(first(seed.one(*key), count));
                needle.write(packing.needle(*key));
            }
        } else {
            each(active, |slot, _| {
                let key = keys[slot];
                sought.buckets.set(slot, first(seed.one(key), count));
                sought.needles.set(slot, packing.needle(key));
            });
        }
    }

    /// Asks for the buckets of all keys, the second ones only where a key may be there: of these there are some in most vectors, and what
    /// is asked for now is not waited for later.
    #[inline(always)]
    fn fetch<const DENSE: bool>(&self, active: u64, keys: &[u64], sought: &Sought) {
        let buckets = self.buckets.as_slice().as_ptr();
        let mut overflowing = 0;
        each_of::<DENSE>(active, |slot, bit| {
            // SAFETY: `seek` set active slots.
            let number = unsafe { sought.buckets.get(slot) };
            prefetch(buckets.wrapping_add(number as usize));
            overflowing |= bit & ones(self.overflows(number));
        });
        each(overflowing, |slot, _| {
            prefetch(self.bucket(second(self.seed.one(keys[slot]), self.count)));
        });
    }

    /// [`Array::look_quietly`], one key after the other.
    #[inline(always)]
    fn quiet<S: Search, const DENSE: bool>(&self, batch: Batch<'_>) -> u64 {
        let active = batch.active;
        let (packing, significant) = (self.packing, self.packing.significant());
        let length = SLOTS - active.leading_zeros() as usize;
        // SAFETY: the last active slot is within the row, and word 0 always exists.
        let keys = unsafe { std::slice::from_raw_parts(batch.key_row(0), length) };
        let mut sought = Sought::unset();
        self.seek::<DENSE>(active, keys, &mut sought);
        if self.is_staged() && !batch.is_fetched {
            self.fetch::<DENSE>(active, keys, &sought);
        }
        let mut found = Found {
            slots: Row::unset(),
            places: Row::unset(),
            fresh: Row::unset(),
            now: step(batch.now) as u32,
        };
        found.slots.prepare(active);
        if B::STAMPS {
            found.places.prepare(active);
            found.fresh.prepare(active);
        }
        if DENSE {
            // What is sought for slots without keys is nothing in bucket 0.
            for start in (0..length).step_by(BLOCK) {
                for slot in start..start + BLOCK {
                    self.find_quiet::<S>(slot, &sought, &mut found);
                }
            }
        } else {
            each(active, |slot, _| {
                self.find_quiet::<S>(slot, &sought, &mut found);
            });
        }
        // SAFETY: `seek` and `find_quiet` set active slots.
        let mut hits = active & unsafe { S::equal(found.slots.all(), sought.needles.all(), significant) };
        if hits != active {
            let elsewhere = self.elsewhere(active & !hits, &sought);
            each(elsewhere, |slot, bit| {
                sought.buckets.set(slot, second(self.seed.one(keys[slot]), self.count));
                hits |= bit & ones(self.find_quiet::<S>(slot, &sought, &mut found));
            });
        }
        // SAFETY: the default has the words of a result.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        // SAFETY: `seek` and `find_quiet` set active slots, and only these are used.
        let (slots, needles) = unsafe { (found.slots.all(), sought.needles.all()) };
        let result = |value: u64, needle: u64| {
            let hit = value & significant == needle;
            if hit { packing.head(value) } else { default }
        };
        if DENSE {
            // SAFETY: all slots up to the last are active, and word 0 always exists.
            let results = unsafe { std::slice::from_raw_parts_mut(batch.result_row(0), length) };
            for ((to, value), needle) in results.iter_mut().zip(slots).zip(needles) {
                *to = result(*value, *needle);
            }
        } else {
            each(active, |slot, _| {
                let at = slot & (SLOTS - 1);
                // SAFETY: only active slots, and word 0 always exists.
                unsafe { batch.put(0, slot, result(slots[at], needles[at])) };
            });
        }
        // SAFETY: `find_quiet` set active slots.
        if B::STAMPS && unsafe { found.are_stale::<B>() } {
            each(hits, |slot, _| {
                // SAFETY: only active slots, whose bucket and place `seek` and `find_quiet` set;
                // there are places with last hits (`STAMPS`).
                let (bucket, place) = unsafe { (sought.buckets.get(slot), found.places.get(slot)) };
                self.stamp_hit(bucket, first_bit(place), found.now);
            });
        }
        hits
    }

    /// Looks one up in the bucket it is sought in; whether it is there.
    #[inline(always)]
    fn find_quiet<S: Search>(&self, slot: usize, sought: &Sought, found: &mut Found) -> bool {
        // SAFETY: `seek` set active slots, and where there are others they are 0.
        let (number, needle) = unsafe { (sought.buckets.get(slot), sought.needles.get(slot)) };
        let significant = self.packing.significant();
        let bucket = self.bucket(number);
        let (value, place) = S::find(bucket, needle, significant);
        found.slots.set(slot, value);
        if B::STAMPS {
            found.places.set(slot, place);
            found.fresh.set(slot, S::hit_at(bucket, found.now));
        }
        value & significant == needle
    }

    /// Of slots that missed, those whose keys may be in their second bucket.
    #[inline(always)]
    fn elsewhere(&self, missed: u64, sought: &Sought) -> u64 {
        let mut elsewhere = 0;
        each(missed, |slot, bit| {
            // SAFETY: `seek` set active slots.
            elsewhere |= bit & ones(self.overflows(unsafe { sought.buckets.get(slot) }));
        });
        elsewhere
    }

    /// A lookup that is right whatever is written meanwhile.
    #[cold]
    #[inline(never)]
    fn disturbed(&self, batch: Batch<'_>) -> u64 {
        if let Some(fetches) = batch.meanwhile {
            fetches.all();
        }
        let mut hits = 0;
        each(batch.active, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            match self.find(unsafe { batch.key(0, slot) }) {
                Some((value, number, place)) => {
                    hits |= bit;
                    // SAFETY: only active slots, and word 0 of results always exists.
                    unsafe { batch.put(0, slot, self.packing.head(value)) };
                    self.stamp_hit(number, place, step(batch.now) as u32);
                }
                // SAFETY: only active slots, and the default's length was checked.
                None => unsafe { batch.give(slot, batch.default) },
            }
        });
        hits
    }
}

impl<B: Bucket> PackedShape<B> {
    #[inline(always)]
    pub(super) fn lookup<S: Search>(&self, batch: &mut Batch<'_>) -> u64 {
        if is_dense(batch.active) {
            self.0.lookup::<S, true>(batch)
        } else {
            self.0.lookup::<S, false>(batch)
        }
    }

    /// Whether [`PackedShape::prepare`] is of use. Lookups by eights ask themselves.
    pub(super) fn gains_by_prepare(&self) -> bool {
        self.0.is_staged() && !self.asks_meanwhile()
    }

    /// Whether lookups ask for what they read while they search, and for what [`Batch::meanwhile`] has.
    pub(super) fn asks_meanwhile(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return self.0.by_eights;
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    }

    /// Fetches what a lookup of these keys reads.
    #[inline(always)]
    pub(super) fn prepare<const DENSE: bool>(&self, active: u64, keys: &[u64]) {
        let mut sought = Sought::unset();
        self.0.seek::<DENSE>(active, keys, &mut sought);
        self.0.fetch::<DENSE>(active, keys, &sought);
    }
}
