//! A cuckoo hash table for exact keys of one word with at most one word of data: key and result are
//! in the bucket, inline, not in a record. (An *inline lookup* of weir-jit is something else: one
//! at which no packet waits.)
//!
//! A bucket is a cache line of four slots, or of two where results have a second word. A key is in
//! its first or its second bucket, in the first if that has room. At most three quarters of the
//! slots are used (with two per bucket: five eighths), so an entry takes 21 to 43 bytes (51 to
//! 103). Up to 128 entries are all in their first buckets, for which they may take 64 KB together.
//!
//! A slot is written under a version in the upper bits of its head word, so that readers detect it.
//! A key that moves to its other bucket is copied first and counted in `moves`. A reader that
//! misses a key retries if `moves` has changed. A seqlock for the whole array lets readers skip
//! these checks while nothing is written.
#![allow(unsafe_code)]

mod bucket;
#[cfg(all(loom, test))]
mod loom_tests;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod simd;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use bucket::Avx2;
pub(super) use bucket::{Bucket, Compare, FourSlots, Portable, TwoSlots};

use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::cuckoo_path::{self, SlotIndex};
use crate::fast::hash::{Seed, first, second};
use crate::fast::head::HIT;
use crate::fast::mem::{SLOTS_PREFETCH_MIN_BYTES, prefetch};
use crate::fast::rule::Rule;
use crate::fast::seqlock::SeqLock;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::simd::has_avx512_vbmi;
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit, each_slot, is_contiguous, ones};
use crate::fast::zeroed::Zeroed;
use crate::sync::{AtomicU64, fence, spin_loop};
use bucket::{OVERFLOW, Probe, RESULT, VERSION, WRITING};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The hash table, shared by readers and the writer.
#[derive(Debug)]
struct Array<B: Bucket> {
    buckets: Zeroed<B>,
    /// Last hits of slots, with `idle_timeout`, if buckets have no room for them.
    stamps: Option<Zeroed<AtomicU64>>,
    /// The number of buckets minus one; the number is a power of two.
    mask: usize,
    seed: Seed,
    /// Free slots hold the key 0. In the two home buckets of the key 0 they hold this key instead,
    /// so that no search for 0 finds a free slot.
    free_key: u64,
    /// Counts keys that moved from a bucket to the other.
    moves: AtomicU64,
    /// Odd while the writer changes any slot, so that optimistic lookups retry.
    seqlock: SeqLock,
    /// The processor has AVX-512. It is used for buckets of two.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    uses_simd: bool,
}

/// Readers' view.
#[derive(Debug)]
pub(super) struct InlineView<B: Bucket>(Arc<Array<B>>);

/// The results of passes over a vector. `torn` is nonzero if something was written during them.
#[derive(Default)]
struct Passes {
    hits: u64,
    second_mask: u64,
    torn: u64,
}

impl<B: Bucket> Array<B> {
    /// An empty array of `buckets` buckets, at least four and a power of two.
    fn new(buckets: usize, stamps: bool) -> Self {
        let (seed, mask) = (Seed::random(), buckets - 1);
        let of = |key: u64| [first(seed.hash_word(key), mask), second(seed.hash_word(key), mask)];
        let of_zero = of(0);
        let free_key = (1..).find(|k| of(*k).iter().all(|b| !of_zero.contains(b))).unwrap_or(0);
        let array: Self = Array {
            seqlock: SeqLock::default(),
            buckets: Zeroed::new(buckets),
            stamps: (stamps && !B::HAS_STAMPS).then(|| Zeroed::new(buckets * B::SLOTS)),
            mask,
            seed,
            free_key,
            moves: AtomicU64::new(0),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            uses_simd: has_avx512_vbmi(),
        };
        for bucket in of_zero {
            for slot in 0..B::SLOTS {
                array.bucket(bucket).key(slot).store(free_key, Ordering::Relaxed);
            }
        }
        array
    }

    /// The key in free slots of a bucket: one that is never looked up there.
    fn free_key(&self, bucket: usize) -> u64 {
        let hash = self.seed.hash_word(0);
        let of_zero = [first(hash, self.mask), second(hash, self.mask)].contains(&bucket);
        if of_zero { self.free_key } else { 0 }
    }

    /// A bucket; the number is taken modulo the count.
    #[inline(always)]
    fn bucket(&self, number: usize) -> &B {
        debug_assert!(number <= self.mask);
        // SAFETY: there are `mask + 1` buckets, and callers apply the mask.
        unsafe { self.buckets.get_unchecked(number & self.mask) }
    }

    /// The stamp of a slot: its last hit.
    #[inline(always)]
    fn stamp(&self, bucket: usize, slot: usize) -> Option<&AtomicU64> {
        match &self.stamps {
            Some(stamps) => {
                let index = (bucket & self.mask) * B::SLOTS + (slot & (B::SLOTS - 1));
                // SAFETY: there are as many stamps as slots.
                Some(unsafe { stamps.get_unchecked(index) })
            }
            None => self.bucket(bucket).stamp(slot),
        }
    }

    /// Stamps a slot that was hit.
    #[inline(always)]
    fn stamp_hit(&self, bucket: usize, slot: usize, now: u64) {
        if let Some(stamp) = self.stamp(bucket, slot)
            && stamp.load(Ordering::Relaxed) / LAST_HIT_TICK_NS != now / LAST_HIT_TICK_NS
        {
            stamp.store(now, Ordering::Relaxed);
        }
    }

    /// Looks into both buckets until the result is not torn and no key moved during the search.
    #[cold]
    fn find(&self, key: u64) -> Option<(Probe, usize)> {
        let hash = self.seed.hash_word(key);
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let mut torn = 0;
            for number in [first(hash, self.mask), second(hash, self.mask)] {
                let bucket = self.bucket(number);
                let probe = bucket.probe(key);
                if probe.hit && probe.torn == 0 {
                    return Some((probe, number));
                }
                torn |= probe.torn;
            }
            fence(Ordering::Acquire);
            if torn == 0 && self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            spin_loop();
        }
    }

    #[inline(always)]
    fn lookup<C: Compare, const CONTIGUOUS: bool, const DATA: bool, const STAMP: bool>(
        &self,
        vector: &mut VectorLookup<'_>,
    ) -> u64 {
        if let Some(version) = self.seqlock.read_begin() {
            let hits = self.optimistic::<C, CONTIGUOUS, DATA, STAMP>(vector);
            if self.seqlock.validate(version) {
                return hits;
            }
        }
        self.contended::<DATA, STAMP>(*vector)
    }

    /// Whether buckets exceed the near caches, so that a prefetch pays.
    fn needs_prefetch(&self) -> bool {
        self.buckets.bytes() > SLOTS_PREFETCH_MIN_BYTES
    }

    /// Computes the first bucket of each slot's key, in a loop of its own so that it is vectorised.
    #[inline(always)]
    fn first_buckets<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64]) -> [u32; VECTOR_SLOTS] {
        let (seed, mask) = (self.seed, self.mask);
        let mut numbers = [0; VECTOR_SLOTS];
        if CONTIGUOUS {
            for (number, key) in numbers.iter_mut().zip(keys) {
                *number = first(seed.hash_word(*key), mask) as u32;
            }
        } else {
            each_bit(active, |slot, _| {
                numbers[slot & (VECTOR_SLOTS - 1)] = first(seed.hash_word(keys[slot]), mask) as u32;
            });
        }
        numbers
    }

    /// Prefetches the buckets with these numbers, and their stamps.
    #[inline(always)]
    fn prefetch_buckets<const CONTIGUOUS: bool, const STAMP: bool>(&self, active: u64, numbers: &[u32; VECTOR_SLOTS]) {
        let buckets = self.buckets.as_slice().as_ptr();
        let stamps = self.stamps.as_ref().map(|s| s.as_slice().as_ptr());
        each_slot::<CONTIGUOUS>(active, |slot, _| {
            let number = numbers[slot & (VECTOR_SLOTS - 1)] as usize;
            prefetch(buckets.wrapping_add(number));
            if STAMP && let Some(stamps) = stamps {
                prefetch(stamps.wrapping_add(number * B::SLOTS));
            }
        });
    }

    /// An optimistic lookup: valid only if no write ran concurrently.
    #[inline(always)]
    fn optimistic<C: Compare, const CONTIGUOUS: bool, const DATA: bool, const STAMP: bool>(
        &self,
        vector: &VectorLookup<'_>,
    ) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if DATA
            && self.uses_simd
            && let Some(buckets) = B::as_two_slots(&self.buckets)
        {
            // SAFETY: the processor has these features, and results have two words.
            return unsafe { self.lookup_simd::<STAMP>(vector, buckets) };
        }
        let vector = *vector;
        let active = vector.active;
        let buckets = self.buckets.as_slice().as_ptr();
        let count = VECTOR_SLOTS - active.leading_zeros() as usize;
        // SAFETY: the last active slot is within the row, and word 0 always exists.
        let keys = unsafe { std::slice::from_raw_parts(vector.key_row(0), count) };
        let mut numbers = self.first_buckets::<CONTIGUOUS>(active, keys);
        if self.needs_prefetch() && !vector.is_prefetched {
            self.prefetch_buckets::<CONTIGUOUS, STAMP>(active, &numbers);
        }
        let mut positions = [0u8; VECTOR_SLOTS];
        let mut hits = 0;
        each_slot::<CONTIGUOUS>(active, |slot, bit| {
            // SAFETY: there are `mask + 1` buckets, and the mask was applied to the numbers.
            let bucket = unsafe { &*buckets.add(numbers[slot & (VECTOR_SLOTS - 1)] as usize) };
            // SAFETY: only active slots; word 0 always exists, and word 1 of results does if
            // `DATA`.
            let hit = unsafe {
                let (hit, position) = bucket.find::<C>(vector.key(0, slot));
                vector.set_result(0, slot, bucket.head(position).load(Ordering::Relaxed) & RESULT);
                if DATA && let Some(data) = bucket.data(position) {
                    vector.set_result(1, slot, data.load(Ordering::Relaxed));
                }
                if STAMP {
                    positions[slot & (VECTOR_SLOTS - 1)] = position as u8;
                }
                hit
            };
            if CONTIGUOUS {
                hits = hits >> 1 | u64::from(hit) << 63;
            } else {
                hits |= bit & ones(hit);
            }
        });
        if CONTIGUOUS && active != 0 {
            hits >>= active.leading_zeros();
        }
        if hits != active {
            // SAFETY: only active slots, and the default's length was checked.
            each_bit(active & !hits, |slot, _| unsafe {
                vector.write_result(slot, vector.default)
            });
            self.search_second::<DATA>(vector, active & !hits, &mut numbers, &mut positions, &mut hits);
        }
        if STAMP {
            each_bit(hits, |slot, _| {
                let slot = slot & (VECTOR_SLOTS - 1);
                self.stamp_hit(numbers[slot] as usize, positions[slot].into(), vector.now);
            });
        }
        hits
    }

    /// Looks up the keys that missed in their first bucket.
    #[inline(always)]
    fn search_second<const DATA: bool>(
        &self,
        vector: VectorLookup<'_>,
        missed: u64,
        numbers: &mut [u32; VECTOR_SLOTS],
        positions: &mut [u8; VECTOR_SLOTS],
        hits: &mut u64,
    ) {
        let mut second_mask = 0;
        each_bit(missed, |slot, bit| {
            let bucket = self.bucket(numbers[slot & (VECTOR_SLOTS - 1)] as usize);
            second_mask |= bit & ones(bucket.head(0).load(Ordering::Relaxed) & OVERFLOW != 0);
        });
        each_bit(second_mask, |slot, _| {
            // SAFETY: only active slots, and word 0 always exists.
            let hash = self.seed.hash_word(unsafe { vector.key(0, slot) });
            let number = second(hash, self.mask);
            numbers[slot & (VECTOR_SLOTS - 1)] = number as u32;
            prefetch(self.bucket(number));
        });
        each_bit(second_mask, |slot, bit| {
            let bucket = self.bucket(numbers[slot & (VECTOR_SLOTS - 1)] as usize);
            // SAFETY: only active slots; word 0 always exists, and word 1 of results does if
            // `DATA`.
            unsafe {
                let (hit, position) = bucket.find::<Portable>(vector.key(0, slot));
                if !hit {
                    return;
                }
                vector.set_result(0, slot, bucket.head(position).load(Ordering::Relaxed) & RESULT);
                if DATA && let Some(data) = bucket.data(position) {
                    vector.set_result(1, slot, data.load(Ordering::Relaxed));
                }
                positions[slot & (VECTOR_SLOTS - 1)] = position as u8;
            }
            *hits |= bit;
        });
    }

    /// A lookup that detects concurrent writes of single slots.
    #[cold]
    #[inline(never)]
    fn contended<const DATA: bool, const STAMP: bool>(&self, vector: VectorLookup<'_>) -> u64 {
        let moves = self.moves.load(Ordering::Acquire);
        let mut passes = Passes::default();
        self.pass::<DATA, STAMP>(vector, vector.active, first, &mut passes);
        let pending = passes.second_mask;
        if pending != 0 {
            self.pass::<DATA, STAMP>(vector, pending, second, &mut passes);
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) != moves {
                passes.torn |= pending & !passes.hits;
            }
        }
        if passes.torn != 0 {
            self.retry_each::<DATA, STAMP>(vector, vector.active, &mut passes.hits);
        }
        passes.hits
    }

    /// Looks into one bucket per slot.
    #[inline(always)]
    fn pass<const DATA: bool, const STAMP: bool>(
        &self,
        vector: VectorLookup<'_>,
        slots: u64,
        which: impl Fn(u64, usize) -> usize,
        passes: &mut Passes,
    ) {
        // SAFETY: the default has as many words as a result, and there is word 1 if `DATA`.
        let default = unsafe { vector.default.as_ref() }.load(Ordering::Relaxed);
        let default_data = if DATA {
            // SAFETY: the default has as many words as a result, so word 1 where there are data.
            unsafe { vector.default.add(1).as_ref() }.load(Ordering::Relaxed)
        } else {
            0
        };
        let (mut hits, mut second_mask, mut torn) = (0, 0, 0);
        let (seed, mask) = (self.seed, self.mask);
        let buckets = self.buckets.as_slice();
        each_bit(slots, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { vector.key(0, slot) };
            let number = which(seed.hash_word(key), mask) & mask;
            // SAFETY: there are `mask + 1` buckets.
            let probe = unsafe { buckets.get_unchecked(number) }.probe(key);
            let hit = ones(probe.hit);
            hits |= bit & hit;
            second_mask |= bit & !hit & ones(probe.overflow);
            torn |= probe.torn;
            // SAFETY: only active slots; results have word 1 if `DATA`.
            unsafe {
                vector.set_result(0, slot, probe.head & hit | default & !hit);
                if DATA {
                    vector.set_result(1, slot, probe.data & hit | default_data & !hit);
                }
            }
            if STAMP && probe.hit {
                self.stamp_hit(number, probe.slot, vector.now);
            }
        });
        passes.hits |= hits;
        passes.second_mask = second_mask;
        passes.torn |= torn;
    }

    /// Looks slots up one by one, retrying each until it is consistent.
    #[cold]
    fn retry_each<const DATA: bool, const STAMP: bool>(&self, vector: VectorLookup<'_>, slots: u64, hits: &mut u64) {
        each_bit(slots, |slot, bit| {
            // SAFETY: only active slots, word 0 always exists, and word 1 of results does if
            // `DATA`.
            let key = unsafe { vector.key(0, slot) };
            *hits &= !bit;
            let Some((probe, number)) = self.find(key) else {
                // SAFETY: only active slots, and the default has as many words as a result.
                return unsafe { vector.write_result(slot, vector.default) };
            };
            *hits |= bit;
            // SAFETY: only active slots; word 0 of results always exists, and word 1 does if
            // `DATA`.
            unsafe {
                vector.set_result(0, slot, probe.head);
                if DATA {
                    vector.set_result(1, slot, probe.data);
                }
            }
            if STAMP {
                self.stamp_hit(number, probe.slot, vector.now);
            }
        });
    }
}

impl<B: Bucket> InlineView<B> {
    pub(super) fn needs_prefetch(&self) -> bool {
        self.0.needs_prefetch()
    }

    /// Prefetches the lines that a lookup of these keys reads.
    #[inline(always)]
    pub(super) fn prefetch<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64]) {
        let numbers = self.0.first_buckets::<CONTIGUOUS>(active, keys);
        self.0.prefetch_buckets::<CONTIGUOUS, true>(active, &numbers);
    }

    #[inline(always)]
    pub(super) fn lookup<C: Compare>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        match (
            is_contiguous(vector.active),
            vector.result_words() > 1,
            vector.stamp_word.is_some(),
        ) {
            (false, false, false) => self.0.lookup::<C, false, false, false>(vector),
            (false, true, false) => self.0.lookup::<C, false, true, false>(vector),
            (false, false, true) => self.0.lookup::<C, false, false, true>(vector),
            (false, true, true) => self.0.lookup::<C, false, true, true>(vector),
            (true, false, false) => self.0.lookup::<C, true, false, false>(vector),
            (true, true, false) => self.0.lookup::<C, true, true, false>(vector),
            (true, false, true) => self.0.lookup::<C, true, false, true>(vector),
            (true, true, true) => self.0.lookup::<C, true, true, true>(vector),
        }
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct Inline<B: Bucket> {
    array: Arc<Array<B>>,
    entries: usize,
    /// Keys by handle, with `idle_timeout`.
    key_by_handle: Option<FxHashMap<u32, u64>>,
}

/// The contents of a slot.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// The head word of the result, with [`HIT`] unless the slot is free.
    head: u64,
    key: u64,
    data: u64,
    stamp: u64,
}

/// The array could not take a write: build a new one.
struct WriteFailed;

/// Tables of up to this many entries grow until every key is in its first bucket.
const FEW_ENTRIES: usize = 128;
/// The most buckets to which they grow for that.
const MAX_BUCKETS_OF_FEW: usize = 1024;

impl<B: Bucket> Inline<B> {
    pub(super) fn new(stamps: bool, expected: usize) -> Self {
        let slots = expected.saturating_mul(8) / B::MAX_LOAD + 8;
        let buckets = (slots / B::SLOTS).max(4).next_power_of_two();
        Inline {
            array: Arc::new(Array::new(buckets, stamps)),
            entries: 0,
            key_by_handle: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        let stamps = self.array.stamps.as_ref().map_or(0, Zeroed::bytes);
        self.array.buckets.bytes() + stamps + self.key_by_handle.as_ref().map_or(0, |h| h.capacity() * 17)
    }

    pub(super) fn view(&self) -> InlineView<B> {
        InlineView(Arc::clone(&self.array))
    }

    pub(super) fn stamp(&self, handle: u32) -> Option<u64> {
        let slot_index = self.find_slot(*self.key_by_handle.as_ref()?.get(&handle)?)?;
        Some(self.stamp_at(slot_index))
    }

    /// The last hit of a slot; 0 without stamps.
    fn stamp_at(&self, (bucket, slot): SlotIndex) -> u64 {
        let stamp = self.array.stamp(bucket, slot);
        stamp.map_or(0, |s| s.load(Ordering::Relaxed))
    }

    /// The head of a slot.
    fn head(&self, (bucket, slot): SlotIndex) -> &AtomicU64 {
        self.array.bucket(bucket).head(slot)
    }

    /// The contents of a slot, unless it is free.
    fn read(&self, slot_index: SlotIndex) -> Option<Item> {
        read(&self.array, slot_index)
    }

    /// Writes a slot, so that readers see all of it or nothing.
    fn write(&self, slot_index: SlotIndex, item: Item) -> Result<(), WriteFailed> {
        self.array.seqlock.write_begin();
        let written = self.write_slot(slot_index, item);
        self.array.seqlock.write_end();
        written
    }

    /// [`Inline::write`] without the array's seqlock.
    fn write_slot(&self, slot_index: SlotIndex, item: Item) -> Result<(), WriteFailed> {
        if item.head & HIT != 0 {
            let home = first(self.array.seed.hash_word(item.key), self.array.mask);
            if home != slot_index.0 {
                let head = self.head((home, 0));
                head.store(head.load(Ordering::Relaxed) | OVERFLOW, Ordering::Release);
            }
        }
        let bucket = self.array.bucket(slot_index.0);
        let slot = bucket.head(slot_index.1);
        let head = slot.load(Ordering::Relaxed);
        let (version, overflow) = (head & VERSION, head & OVERFLOW);
        let next = version + 2 * WRITING;
        if next >= OVERFLOW {
            // A version must not repeat while a reader is suspended between its two loads.
            return Err(WriteFailed);
        }
        slot.store(version | overflow | WRITING, Ordering::Relaxed);
        fence(Ordering::Release);
        bucket.key(slot_index.1).store(item.key, Ordering::Relaxed);
        if let Some(data) = bucket.data(slot_index.1) {
            data.store(item.data, Ordering::Relaxed);
        }
        if let Some(stamp) = self.array.stamp(slot_index.0, slot_index.1) {
            stamp.store(item.stamp, Ordering::Relaxed);
        }
        slot.store(next | overflow | item.head, Ordering::Release);
        Ok(())
    }

    /// The home buckets of a key.
    fn homes(&self, key: u64) -> [usize; 2] {
        let hash = self.array.seed.hash_word(key);
        [first(hash, self.array.mask), second(hash, self.array.mask)]
    }

    /// The slot of a key.
    fn find_slot(&self, key: u64) -> Option<SlotIndex> {
        let mut slot_indices = self
            .homes(key)
            .into_iter()
            .flat_map(|b| (0..B::SLOTS).map(move |s| (b, s)));
        slot_indices.find(|p| self.read(*p).is_some_and(|i| i.key == key))
    }

    /// Inserts an entry. True: readers need the new view.
    pub(super) fn insert_rule(&mut self, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        let item = Item {
            head: result[0],
            key: rule.value[0],
            data: result.get(1).copied().unwrap_or(0),
            stamp,
        };
        if let Some(key_by_handle) = &mut self.key_by_handle {
            key_by_handle.insert(rule.handle, item.key);
        }
        if let Some(slot_index) = self.find_slot(item.key) {
            let stamp = self.stamp_at(slot_index).max(stamp);
            if self.write(slot_index, Item { stamp, ..item }).is_ok() {
                return false;
            }
            self.rebuild(self.array.mask + 1);
            self.insert_rule(rule, result, stamp);
            return true;
        }
        self.entries += 1;
        let buckets = self.array.mask + 1;
        if self.entries * 8 <= buckets * B::SLOTS * B::MAX_LOAD && self.add(item).is_ok() {
            return self.grow_until_no_overflow();
        }
        self.rebuild(buckets * 2);
        while self.add(item).is_err() {
            self.rebuild((self.array.mask + 1) * 2);
        }
        self.grow_until_no_overflow();
        true
    }

    /// Grows the array of few entries until all are in their first buckets: then a lookup has no
    /// unpredictable branch. True: readers need the new view.
    fn grow_until_no_overflow(&mut self) -> bool {
        let mut rebuilt = false;
        while self.entries <= FEW_ENTRIES && self.array.mask < MAX_BUCKETS_OF_FEW && self.overflows() {
            self.rebuild((self.array.mask + 1) * 2);
            rebuilt = true;
        }
        rebuilt
    }

    /// Whether any key is, or was, in its second bucket.
    fn overflows(&self) -> bool {
        (0..=self.array.mask).any(|bucket| self.head((bucket, 0)).load(Ordering::Relaxed) & OVERFLOW != 0)
    }

    /// Removes an entry. True: readers need the new view.
    pub(super) fn remove_rule(&mut self, rule: &Rule) -> bool {
        let key = rule.value[0];
        let Some(slot_index) = self.find_slot(key) else {
            return false;
        };
        if self.head(slot_index).load(Ordering::Relaxed) as u32 != rule.handle {
            return false;
        }
        if let Some(key_by_handle) = &mut self.key_by_handle {
            key_by_handle.remove(&rule.handle);
        }
        self.entries -= 1;
        if self.clear(slot_index).is_ok() {
            return false;
        }
        self.rebuild(self.array.mask + 1);
        if let Some(slot_index) = self.find_slot(key) {
            let _ = self.clear(slot_index);
        }
        true
    }

    /// Frees a slot.
    fn clear(&self, slot_index: SlotIndex) -> Result<(), WriteFailed> {
        let free = Item {
            head: 0,
            key: self.array.free_key(slot_index.0),
            data: 0,
            stamp: 0,
        };
        self.write(slot_index, free)
    }

    /// Inserts a new key, and moves others if necessary.
    fn add(&self, item: Item) -> Result<(), WriteFailed> {
        let homes = self.homes(item.key);
        let is_free = |slot_index| self.read(slot_index).is_none();
        if let Some(slot_index) = cuckoo_path::free(homes, B::SLOTS, is_free) {
            return self.write(slot_index, item);
        }
        let other = |slot_index: SlotIndex| {
            let homes = self.read(slot_index).map_or([slot_index.0; 2], |i| self.homes(i.key));
            homes[usize::from(homes[0] == slot_index.0)]
        };
        let path = cuckoo_path::path(homes, B::SLOTS, is_free, other).ok_or(WriteFailed)?;
        for step in path.windows(2) {
            let occupant = self.read(step[1]).ok_or(WriteFailed)?;
            self.write(step[0], occupant)?;
            self.array.moves.fetch_add(1, Ordering::Release);
        }
        // The last slot's key has a new place already, and is overwritten.
        self.write(*path.last().ok_or(WriteFailed)?, item)
    }

    /// A new array with this number of buckets, or more.
    fn rebuild(&mut self, mut buckets: usize) {
        'larger: loop {
            let new = Arc::new(Array::new(buckets, self.key_by_handle.is_some()));
            let old = std::mem::replace(&mut self.array, new);
            for slot_index in (0..=old.mask).flat_map(|b| (0..B::SLOTS).map(move |s| (b, s))) {
                let Some(item) = read(&old, slot_index) else { continue };
                if self.find_slot(item.key).is_none() && self.add(item).is_err() {
                    self.array = old;
                    buckets *= 2;
                    continue 'larger;
                }
            }
            return;
        }
    }
}

/// The contents of a slot, unless it is free.
fn read<B: Bucket>(array: &Array<B>, slot_index: SlotIndex) -> Option<Item> {
    let bucket = array.bucket(slot_index.0);
    let head = bucket.head(slot_index.1).load(Ordering::Relaxed);
    (head & HIT != 0).then(|| Item {
        head: head & RESULT,
        key: bucket.key(slot_index.1).load(Ordering::Relaxed),
        data: bucket.data(slot_index.1).map_or(0, |d| d.load(Ordering::Relaxed)),
        stamp: array
            .stamp(slot_index.0, slot_index.1)
            .map_or(0, |s| s.load(Ordering::Relaxed)),
    })
}
