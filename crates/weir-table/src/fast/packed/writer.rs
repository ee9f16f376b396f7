//! The writer's side: inserts, moves and removes keys, and grows the array.

use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::cuckoo_path::{self, SlotIndex};
use crate::fast::head::INDIRECT;
use crate::fast::mem::prefetch;
use crate::fast::packed::bucket::Bucket;
use crate::fast::packed::{Array, PackedView};
use crate::fast::packing::{Packing, tick};
use crate::fast::rule::Rule;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The writer's side.
#[derive(Debug)]
pub(in crate::fast) struct Packed<B: Bucket> {
    store: Store<B>,
    entries: usize,
    /// Keys by handle, with `idle_timeout`. Values of removed handles are stale.
    keys: Option<Vec<u64>>,
}

/// An array, and the handles of its slots' entries, which readers do not need.
#[derive(Debug)]
struct Store<B: Bucket> {
    array: Arc<Array<B>>,
    /// Indexed by slot.
    handles: Vec<u32>,
}

/// The contents of a slot; the stamp in ticks.
#[derive(Debug, Clone, Copy)]
struct Item {
    packed_entry: u64,
    handle: u32,
    stamp: u64,
}

/// There is no free slot for a key.
struct Full;

impl<B: Bucket> Packed<B> {
    pub(in crate::fast) fn new(packing: Packing, expected: usize) -> Self {
        Packed {
            store: Store::new(packing, expected.saturating_mul(2).div_ceil(B::BUILT_LOAD)),
            entries: 0,
            keys: B::STAMPS.then(Vec::new),
        }
    }

    pub(in crate::fast) fn len(&self) -> usize {
        self.entries
    }

    /// Bytes that lookups read.
    pub(in crate::fast) fn lookup_bytes(&self) -> usize {
        self.store.array.buckets.bytes()
    }

    pub(in crate::fast) fn bytes(&self) -> usize {
        let keys = self.keys.as_ref().map_or(0, |k| k.capacity() * 8);
        self.lookup_bytes() + self.store.array.overflow.bytes() + self.store.handles.capacity() * 4 + keys
    }

    pub(in crate::fast) fn view(&self) -> PackedView<B> {
        PackedView(Arc::clone(&self.store.array))
    }

    /// A table with these entries: key, packed entry, handle and last hit in ticks.
    pub(in crate::fast) fn with_entries(
        packing: Packing,
        entries: impl ExactSizeIterator<Item = (u64, u64, u32, u64)>,
    ) -> Self {
        let mut this = Packed::new(packing, entries.len());
        for (key, packed_entry, handle, stamp) in entries {
            this.set_handle(handle, key);
            this.insert_new(Item {
                packed_entry,
                handle,
                stamp,
            });
        }
        this
    }

    /// When an entry was hit last.
    pub(in crate::fast) fn stamp(&self, handle: u32) -> Option<u64> {
        let slot_index = self.store.find_slot(*self.keys.as_ref()?.get(handle as usize)?)?;
        if self.store.handle(slot_index) != handle {
            return None;
        }
        Some(self.store.item(slot_index)?.stamp * LAST_HIT_TICK_NS)
    }

    /// Inserts an entry, unless its result refers to a member or a group. True: readers need the
    /// new view.
    pub(in crate::fast) fn insert_rule(&mut self, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        if result[0] & INDIRECT != 0 {
            return false;
        }
        let (key, array) = (rule.value[0], &self.store.array);
        self.store.prefetch(key);
        let mut item = Item {
            packed_entry: array.packing.pack(key, result[0]),
            handle: rule.handle,
            stamp: tick(stamp),
        };
        let slot_index = self.store.find_slot(key);
        let old = slot_index.and_then(|p| self.store.item(p));
        self.set_handle(rule.handle, key);
        if let (Some(slot_index), Some(old)) = (slot_index, old) {
            item.stamp = item.stamp.max(old.stamp);
            self.store.write(slot_index, item);
            return false;
        }
        self.insert_new(item)
    }

    /// Records the key of a handle, with `idle_timeout`.
    fn set_handle(&mut self, handle: u32, key: u64) {
        if let Some(keys) = &mut self.keys {
            let index = handle as usize;
            if keys.len() <= index {
                keys.resize(index + 1, 0);
            }
            keys[index] = key;
        }
    }

    /// Inserts an entry whose key is not there. True: readers need the new view.
    fn insert_new(&mut self, item: Item) -> bool {
        self.entries += 1;
        if self.entries <= self.store.array.buckets.len() * B::MAX_LOAD && self.store.add(item).is_ok() {
            return false;
        }
        self.grow(item);
        true
    }

    /// Removes an entry.
    pub(in crate::fast) fn remove_rule(&mut self, rule: &Rule) {
        let found = self.store.find_slot(rule.value[0]);
        let Some(slot_index) = found.filter(|p| self.store.handle(*p) == rule.handle) else {
            return;
        };
        self.entries -= 1;
        let free = Item {
            packed_entry: 0,
            handle: 0,
            stamp: 0,
        };
        self.store.write(slot_index, free);
    }

    /// Makes a larger array with all entries and this one.
    fn grow(&mut self, item: Item) {
        let old = &self.store;
        let mut buckets = old.array.buckets.len();
        loop {
            buckets = (buckets * 3).div_ceil(2);
            let mut new = Store::new(old.array.packing, buckets);
            if old.items().chain([item]).all(|item| new.add(item).is_ok()) {
                new.array.newest.observe(old.array.newest.get());
                self.store = new;
                return;
            }
        }
    }
}

impl<B: Bucket> Store<B> {
    /// With `buckets` buckets, at least two.
    fn new(packing: Packing, buckets: usize) -> Self {
        let count = u32::try_from(buckets).unwrap_or(u32::MAX).max(2);
        Store {
            array: Arc::new(Array::new(packing, count)),
            handles: vec![0; count as usize * B::SLOT_COUNT],
        }
    }

    /// Prefetches most of the memory that inserting a key accesses. It is far, and the accesses do
    /// not depend on each other.
    fn prefetch(&self, key: u64) {
        let [first, second] = self.array.homes(key);
        prefetch(self.array.bucket(first));
        prefetch(self.array.bucket(second));
        prefetch(self.array.overflow_bits(first));
        prefetch(&raw const self.handles[first as usize * B::SLOT_COUNT]);
    }

    /// The contents of a slot; 0 if it is free.
    fn slot(&self, (bucket, slot): SlotIndex) -> u64 {
        self.array.bucket(bucket as u32).slot(slot).load(Ordering::Relaxed)
    }

    /// The handle of a slot's entry.
    fn handle(&self, (bucket, slot): SlotIndex) -> u32 {
        self.handles[bucket * B::SLOT_COUNT + slot]
    }

    /// The contents of a slot, unless it is free.
    fn item(&self, slot_index: SlotIndex) -> Option<Item> {
        let packed_entry = self.slot(slot_index);
        let stamp = self.array.bucket(slot_index.0 as u32).stamp(slot_index.1);
        (packed_entry != 0).then(|| Item {
            packed_entry,
            handle: self.handle(slot_index),
            stamp: stamp.map_or(0, |s| self.array.newest.time(s)),
        })
    }

    /// The contents of all slots that are not free.
    fn items(&self) -> impl Iterator<Item = Item> {
        let slot_indices = (0..self.array.buckets.len()).flat_map(|b| (0..B::SLOT_COUNT).map(move |s| (b, s)));
        slot_indices.filter_map(|p| self.item(p))
    }

    /// The slot of a key.
    fn find_slot(&self, key: u64) -> Option<SlotIndex> {
        let (_, bucket, position) = self.array.find(key)?;
        Some((bucket as usize, position))
    }

    /// Writes a slot.
    fn write(&mut self, slot_index: SlotIndex, item: Item) {
        self.under_seqlock(|this| this.set(slot_index, item));
    }

    /// Changes the array under the seqlock, so that optimistic readers retry.
    fn under_seqlock(&mut self, change: impl FnOnce(&mut Self)) {
        self.array.seqlock.write_begin();
        change(self);
        self.array.seqlock.write_end();
    }

    /// Writes a slot; the caller holds the seqlock.
    fn set(&mut self, slot_index: SlotIndex, item: Item) {
        let (bucket, slot) = slot_index;
        let array = &self.array;
        if item.packed_entry != 0 {
            let [home, _] = array.homes(array.packing.key(item.packed_entry));
            if home as usize != bucket {
                array.overflow[home as usize / 32].fetch_or(1 << (home % 32), Ordering::Release);
            }
        }
        let line = array.bucket(bucket as u32);
        if let Some(stamp) = line.stamp(slot) {
            array.newest.observe(item.stamp);
            stamp.store(item.stamp as u32, Ordering::Release);
        }
        line.slot(slot).store(item.packed_entry, Ordering::Release);
        self.handles[bucket * B::SLOT_COUNT + slot] = item.handle;
    }

    /// Inserts a new key, and moves others if necessary.
    fn add(&mut self, item: Item) -> Result<(), Full> {
        let homes = self.homes(item.packed_entry);
        let is_free = |slot_index| self.slot(slot_index) == 0;
        if let Some(slot_index) = cuckoo_path::free(homes, B::SLOT_COUNT, is_free) {
            self.write(slot_index, item);
            return Ok(());
        }
        let other = |slot_index: SlotIndex| {
            let homes = self.homes(self.slot(slot_index));
            homes[usize::from(homes[0] == slot_index.0)]
        };
        let path = cuckoo_path::path(homes, B::SLOT_COUNT, is_free, other).ok_or(Full)?;
        self.under_seqlock(|this| {
            for step in path.windows(2) {
                if let Some(occupant) = this.item(step[1]) {
                    this.set(step[0], occupant);
                    this.array.moves.fetch_add(1, Ordering::Release);
                }
            }
            // The last slot's key has a new place already, and is overwritten.
            if let Some(slot_index) = path.last() {
                this.set(*slot_index, item);
            }
        });
        Ok(())
    }

    /// The two buckets of an entry's key.
    fn homes(&self, entry: u64) -> [usize; 2] {
        let homes = self.array.homes(self.array.packing.key(entry));
        homes.map(|bucket| bucket as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::packed::tests::look_up_all;
    use crate::fast::packed::{WithStamps, WithoutStamps};
    use crate::fast::packing::testing::{HEAD, packing, rule};
    use crate::fast::vector_lookup::VECTOR_SLOTS;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    fn packed<B: Bucket>(expected: usize) -> Packed<B> {
        Packed::new(packing(), expected)
    }

    /// Checks that each key is there once, in one of its buckets, and that overflow bits are set
    /// for those in their second.
    fn check<B: Bucket>(packed: &Packed<B>, keys: std::ops::Range<u64>) {
        let store = &packed.store;
        assert_eq!(
            (packed.len(), store.items().count()),
            (keys.clone().count(), keys.clone().count())
        );
        for key in keys {
            let slot_index = store.find_slot(key).expect("it was put in");
            let [first, second] = store.array.homes(key);
            let bucket = slot_index.0 as u32;
            assert!(bucket == first || bucket == second && store.array.overflows(first));
            assert_eq!(store.handle(slot_index), key as u32 + 1);
            assert_eq!(store.slot(slot_index), key << 10 | 0x155 << 1 | 1);
        }
    }

    #[test]
    fn arrays_grow_by_half_and_are_filled_well() {
        let mut packed = packed::<WithStamps>(0);
        let (mut grown, mut lowest_load) = (Vec::new(), 1.0_f64);
        for key in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let before = packed.store.array.buckets.len();
            let is_new = packed.insert_rule(&rule(key), &[HEAD], key * LAST_HIT_TICK_NS);
            let after = packed.store.array.buckets.len();
            assert_eq!(is_new, before != after);
            if is_new {
                grown.push(after);
                lowest_load = lowest_load.min(key as f64 / (before * WithStamps::SLOT_COUNT) as f64);
            }
        }
        let count = packed.len() as u64;
        check(&packed, 0..count);
        let expected = [3, 5, 8, 12, 18, 27];
        let checked = if cfg!(miri) { 5 } else { 6 };
        assert_eq!(grown[..checked], expected[..checked]);
        assert!(lowest_load > 0.79, "one of them was {lowest_load} full");
        for key in 0..count {
            assert_eq!(packed.stamp(key as u32 + 1), Some(key * LAST_HIT_TICK_NS));
        }
    }

    #[test]
    fn known_sizes_need_no_growth() {
        known_size::<WithoutStamps>(13);
        known_size::<WithStamps>(26);
    }

    fn known_size<B: Bucket>(bytes: usize) {
        for expected in [1, 20, 1000, if cfg!(miri) { 100 } else { 100_000 }] {
            let mut packed = packed::<B>(expected);
            let buckets = packed.store.array.buckets.len();
            for key in 0..expected as u64 {
                packed.insert_rule(&rule(key), &[HEAD], 0);
            }
            check(&packed, 0..expected as u64);
            // With fewer buckets, both of a key fill up earlier.
            assert!(expected < 1000 || packed.store.array.buckets.len() == buckets);
            assert!(expected < 1000 || packed.lookup_bytes() <= expected * bytes);
        }
    }

    fn churn<B: Bucket>() {
        let mut packed = packed::<B>(0);
        // The capacity of 62 buckets.
        let count = if cfg!(miri) { 50 } else { 62 * B::MAX_LOAD as u64 };
        for key in 0..count {
            packed.insert_rule(&rule(key), &[HEAD], 0);
        }
        let gone = if cfg!(miri) { 100 } else { 20_000 };
        for key in 0..gone {
            packed.remove_rule(&rule(key));
            packed.insert_rule(&rule(key + count), &[HEAD], 0);
        }
        check(&packed, gone..gone + count);
        assert!(packed.store.array.moves.load(Ordering::Relaxed) > 0 || cfg!(miri));
    }

    #[test]
    fn a_full_array_is_churned_without_loss() {
        churn::<WithoutStamps>();
        churn::<WithStamps>();
    }

    /// Keys that move to and fro between their buckets are never missed by readers.
    fn keys_move<B: Bucket>() {
        const KEYS: u64 = 16;
        let mut packed = packed::<B>(if cfg!(miri) { 200 } else { 20_000 });
        for key in 0..KEYS {
            packed.insert_rule(&rule(key), &[HEAD], 0);
        }
        let view = packed.view();
        let (done, lookups) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let (keys, mut results) = (std::array::from_fn(|i| i as u64 % KEYS), [0; VECTOR_SLOTS]);
                    // Each in a new tick, so that hits are stamped too.
                    let now_ns = lookups.load(Ordering::Relaxed) * LAST_HIT_TICK_NS;
                    if look_up_all(&view, &keys, &mut results, now_ns) != u64::MAX {
                        done.store(true, Ordering::Relaxed);
                        panic!("all are there, wherever that is");
                    }
                    lookups.fetch_add(1, Ordering::Relaxed);
                }
            });
            // Until the reader has made enough lookups.
            let enough = if cfg!(miri) { 2 } else { 20_000 };
            let is_running = || !done.load(Ordering::Relaxed) && lookups.load(Ordering::Relaxed) < enough;
            for key in (0..KEYS).cycle().take_while(|_| is_running()) {
                let Some(from) = packed.store.find_slot(key) else {
                    unreachable!("it was put in")
                };
                let homes = packed.store.array.homes(key).map(|home| home as usize);
                let other = homes[usize::from(homes[0] == from.0)];
                let free = (0..B::SLOT_COUNT).find(|slot| packed.store.slot((other, *slot)) == 0);
                if let (Some(free), Some(item)) = (free, packed.store.item(from)) {
                    packed.store.under_seqlock(|store| {
                        store.set((other, free), item);
                        store.array.moves.fetch_add(1, Ordering::Release);
                        store.set(
                            from,
                            Item {
                                packed_entry: 0,
                                handle: 0,
                                stamp: 0,
                            },
                        );
                    });
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(packed.store.array.moves.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn keys_that_move_are_never_missed() {
        keys_move::<WithoutStamps>();
        keys_move::<WithStamps>();
    }

    #[test]
    fn entries_of_members_are_left_out() {
        let mut packed = packed::<WithoutStamps>(0);
        assert!(!packed.insert_rule(&rule(1), &[INDIRECT], 0));
        assert_eq!(packed.len(), 0);
    }
}
