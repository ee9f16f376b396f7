//! The writer's side of the displacement hash: chooses displacements, moves buckets and rebuilds
//! the array.

use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::displacement::{DisplacementView, MAX_BUCKETS, MAX_SLOTS, SlotArray};
use crate::fast::head::INDIRECT;
use crate::fast::packing::{Packing, tick};
use crate::fast::rule::Rule;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most entries: half the number of slots. Beyond that, displacements with free slots for all keys
/// of a bucket become rare.
pub(in crate::fast) const MAX_ENTRIES: usize = MAX_SLOTS / 2;
/// Highest load of an array that can still grow.
const MAX_LOAD_EIGHTHS: usize = 5;
/// Attempts to move another bucket out of the way.
const MAX_EVICTIONS: usize = 8;
/// Keys per bucket, on average, when an array is built.
const KEYS_PER_BUCKET: usize = 4;
/// Fewest slots.
const MIN_SLOTS: usize = 16;

/// The writer's side.
#[derive(Debug)]
pub(in crate::fast) struct Displacement {
    array: Arc<SlotArray>,
    /// The entries, by key.
    items: FxHashMap<u64, Item>,
    /// The keys of each bucket.
    buckets: Vec<Vec<u64>>,
    /// Keys by handle, with `idle_timeout`.
    key_by_handle: Option<FxHashMap<u32, u64>>,
    /// Items were changed that the array does not contain yet.
    deferred: bool,
}

/// An entry. `stamp` is the tick with which it is inserted.
#[derive(Debug, Clone, Copy)]
struct Item {
    /// See [`Packing`].
    packed_entry: u64,
    handle: u32,
    stamp: u64,
}

/// No displacement gives all keys of a bucket free slots.
struct Full;

impl Displacement {
    pub(in crate::fast) fn new(packing: Packing, stamps: bool) -> Self {
        Displacement {
            array: Arc::new(SlotArray::new(packing, MIN_SLOTS, 1, stamps)),
            items: FxHashMap::default(),
            buckets: vec![Vec::new()],
            key_by_handle: stamps.then(FxHashMap::default),
            deferred: false,
        }
    }

    /// The layout of slots.
    pub(in crate::fast) fn packing(&self) -> Packing {
        self.array.packing
    }

    pub(in crate::fast) fn len(&self) -> usize {
        self.items.len()
    }

    pub(in crate::fast) fn bytes(&self) -> usize {
        let array = &self.array;
        let stamps = array.stamps.as_ref().map_or(0, |s| s.bytes());
        let bucket_bytes: usize = self
            .buckets
            .iter()
            .map(|b| b.capacity() * 8 + size_of::<Vec<u64>>())
            .sum();
        let keys = self.key_by_handle.as_ref().map_or(0, |k| k.capacity() * 17);
        array.slots.bytes() + stamps + array.displacements.bytes() + self.items.capacity() * 33 + bucket_bytes + keys
    }

    /// Readers see nothing of the changes that follow until [`Displacement::view`].
    pub(in crate::fast) fn defer(&mut self) {
        self.deferred = true;
    }

    pub(in crate::fast) fn view(&mut self) -> DisplacementView {
        if self.deferred {
            self.rebuild();
            self.deferred = false;
        }
        DisplacementView(Arc::clone(&self.array))
    }

    /// Whether a rule's key is in the table.
    pub(in crate::fast) fn contains(&self, rule: &Rule) -> bool {
        self.items.contains_key(&rule.value[0])
    }

    /// When an entry was hit last.
    pub(in crate::fast) fn stamp(&self, handle: u32) -> Option<u64> {
        let key = self.key_by_handle.as_ref()?.get(&handle)?;
        let item = self.items.get(key).filter(|item| item.handle == handle);
        item.and_then(|_| Some(self.time(*key)? * LAST_HIT_TICK_NS))
    }

    /// When a key was hit last or inserted, in ticks.
    fn time(&self, key: u64) -> Option<u64> {
        let item = self.items.get(&key)?;
        let Some(stamps) = &self.array.stamps else {
            return Some(item.stamp);
        };
        let found = self.array.find(key);
        Some(found.map_or(item.stamp, |(_, slot_index)| stamps.get(slot_index)))
    }

    /// All entries: key, packed entry, handle and last hit.
    pub(in crate::fast) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, u64, u32, u64)> {
        let items = self.items.iter();
        items.map(|(key, item)| {
            (
                *key,
                item.packed_entry,
                item.handle,
                self.time(*key).unwrap_or(item.stamp),
            )
        })
    }

    /// Whether a result refers to a member or a group. Such entries are left out: a slot has no
    /// handle by which to resolve them.
    pub(in crate::fast) fn is_left_out(result: &[u64]) -> bool {
        result[0] & INDIRECT != 0
    }

    /// Inserts an entry, unless it is left out. True: readers need the new view.
    pub(in crate::fast) fn insert_rule(&mut self, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        if Self::is_left_out(result) {
            return false;
        }
        let key = rule.value[0];
        let old = self.time(key);
        let item = Item {
            packed_entry: self.array.packing.pack(key, result[0]),
            handle: rule.handle,
            stamp: tick(stamp).max(old.unwrap_or(0)),
        };
        let before = self.items.insert(key, item);
        if let Some(keys) = &mut self.key_by_handle {
            if let Some(before) = before {
                keys.remove(&before.handle);
            }
            keys.insert(rule.handle, key);
        }
        if self.deferred {
            return true;
        }
        if old.is_some() {
            let slot_index = self.array.slot_of_key(key);
            self.under_seqlock(|this| this.write(slot_index, item));
            return false;
        }
        if self.items.len() * 8 <= self.array.slots.len() * MAX_LOAD_EIGHTHS && self.add(key, item).is_ok() {
            return false;
        }
        self.rebuild();
        true
    }

    /// Removes an entry. True: readers need the new view.
    pub(in crate::fast) fn remove_rule(&mut self, rule: &Rule) -> bool {
        let key = rule.value[0];
        if self.items.get(&key).is_none_or(|item| item.handle != rule.handle) {
            return false;
        }
        self.items.remove(&key);
        if let Some(keys) = &mut self.key_by_handle {
            keys.remove(&rule.handle);
        }
        if self.deferred {
            return true;
        }
        let slot_index = self.array.slot_of_key(key);
        self.under_seqlock(|this| this.array.slots[slot_index].store(0, Ordering::Release));
        let bucket = self.array.bucket(self.array.seed.hash_word(key));
        self.buckets[bucket].retain(|k| *k != key);
        false
    }

    /// Changes the array under the seqlock, so that optimistic lookups are discarded.
    fn under_seqlock(&self, change: impl FnOnce(&Self)) {
        self.array.seqlock.write_begin();
        change(self);
        self.array.seqlock.write_end();
    }

    /// Writes a slot: its stamp first, then the entry.
    fn write(&self, slot_index: usize, item: Item) {
        if let Some(stamps) = &self.array.stamps {
            stamps.set(slot_index, item.stamp);
        }
        self.array.slots[slot_index].store(item.packed_entry, Ordering::Release);
    }

    /// Inserts a new key, and moves the other keys of its bucket if necessary.
    fn add(&mut self, key: u64, item: Item) -> Result<(), Full> {
        let array = &self.array;
        let bucket = array.bucket(array.seed.hash_word(key));
        let slot_index = array.slot_of_key(key);
        if array.slots[slot_index].load(Ordering::Relaxed) == 0 {
            self.under_seqlock(|this| this.write(slot_index, item));
        } else {
            let mut keys = self.buckets[bucket].clone();
            let existing = keys.len();
            keys.push(key);
            let found = self
                .find_displacement(&keys)
                .or_else(|| self.evict_bucket(bucket, &keys));
            let (displacement, slot_indices) = found.ok_or(Full)?;
            self.move_bucket(bucket, &keys, existing, displacement, &slot_indices);
        }
        self.buckets[bucket].push(key);
        Ok(())
    }

    /// Moves the keys of a bucket to the free slots that `displacement` gives them. The first
    /// `existing` keys are in the array already.
    fn move_bucket(&self, bucket: usize, keys: &[u64], existing: usize, displacement: u8, slot_indices: &[usize]) {
        let from: Vec<usize> = keys[..existing].iter().map(|k| self.array.slot_of_key(*k)).collect();
        self.under_seqlock(|this| {
            for (key, slot_index) in keys.iter().zip(slot_indices) {
                if let (Some(item), Some(stamp)) = (this.items.get(key), this.time(*key)) {
                    this.write(*slot_index, Item { stamp, ..*item });
                }
            }
            // All keys are in both slots now. A reader that misses one in its old slot retries.
            this.array.displacements[bucket].store(displacement, Ordering::Release);
            this.array.moves.fetch_add(1, Ordering::Release);
            for slot_index in &from {
                this.array.slots[*slot_index].store(0, Ordering::Release);
            }
        });
    }

    /// For keys of a bucket that find no displacement with free slots: moves one other bucket, if
    /// it is the only one in the way of some displacement.
    fn evict_bucket(&self, bucket: usize, keys: &[u64]) -> Option<(u8, Vec<usize>)> {
        let array = &self.array;
        let owner = |slot_index: &usize| {
            let entry = array.slots[*slot_index].load(Ordering::Relaxed);
            (entry != 0).then(|| array.bucket(array.seed.hash_word(array.packing.key(entry))))
        };
        let mut tried = 0;
        (0..=u8::MAX).find_map(|displacement| {
            let slot_indices: Vec<usize> = keys
                .iter()
                .map(|k| array.slot_of_hash(array.seed.hash_word(*k), displacement))
                .collect();
            let distinct = slot_indices
                .iter()
                .enumerate()
                .all(|(i, p)| !slot_indices[..i].contains(p));
            let mut owners = slot_indices.iter().filter_map(owner);
            let other = owners.next()?;
            if !distinct || other == bucket || owners.any(|o| o != other) || tried == MAX_EVICTIONS {
                return None;
            }
            tried += 1;
            let others = &self.buckets[other];
            let (to, slots_of_other) = self.find_displacement_avoiding(others, &slot_indices)?;
            self.move_bucket(other, others, others.len(), to, &slots_of_other);
            Some((displacement, slot_indices))
        })
    }

    /// A displacement that gives all these keys of a bucket free slots, and those slots.
    fn find_displacement(&self, keys: &[u64]) -> Option<(u8, Vec<usize>)> {
        self.find_displacement_avoiding(keys, &[])
    }

    /// The same, avoiding the slots in `taken`.
    fn find_displacement_avoiding(&self, keys: &[u64], taken: &[usize]) -> Option<(u8, Vec<usize>)> {
        let array = &self.array;
        let hashes: Vec<u64> = keys.iter().map(|k| array.seed.hash_word(*k)).collect();
        let mut slot_indices = Vec::with_capacity(hashes.len());
        (0..=u8::MAX).find_map(|displacement| {
            slot_indices.clear();
            for hash in &hashes {
                let slot_index = array.slot_of_hash(*hash, displacement);
                if array.slots[slot_index].load(Ordering::Relaxed) != 0
                    || slot_indices.contains(&slot_index)
                    || taken.contains(&slot_index)
                {
                    return None;
                }
                slot_indices.push(slot_index);
            }
            Some((displacement, std::mem::take(&mut slot_indices)))
        })
    }

    /// Builds a new array for the items.
    fn rebuild(&mut self) {
        for (key, time) in self.items.keys().map(|k| (*k, self.time(*k))).collect::<Vec<_>>() {
            if let (Some(item), Some(time)) = (self.items.get_mut(&key), time) {
                item.stamp = time;
            }
        }
        let newest = self.array.stamps.as_ref().map(|s| s.newest());
        let mut slots = (self.items.len() * 5 / 2).clamp(MIN_SLOTS, MAX_SLOTS);
        // A failure is very unlikely.
        while self.fill(slots).is_err() {
            slots = (slots + slots / 8).min(MAX_SLOTS);
        }
        if let (Some(stamps), Some(newest)) = (&self.array.stamps, newest) {
            stamps.observe(newest);
        }
    }

    /// Builds an array of `slots` slots from the items, the largest buckets first.
    fn fill(&mut self, slots: usize) -> Result<(), Full> {
        let bucket_count = slots.div_ceil(2 * KEYS_PER_BUCKET).min(MAX_BUCKETS);
        let array = SlotArray::new(
            self.array.packing,
            slots,
            bucket_count as u32,
            self.key_by_handle.is_some(),
        );
        self.array = Arc::new(array);
        self.buckets = vec![Vec::new(); bucket_count];
        for key in self.items.keys() {
            self.buckets[self.array.bucket(self.array.seed.hash_word(*key))].push(*key);
        }
        let mut order: Vec<usize> = (0..bucket_count).collect();
        order.sort_unstable_by_key(|b| std::cmp::Reverse(self.buckets[*b].len()));
        for bucket in order {
            let keys = &self.buckets[bucket];
            let (displacement, slot_indices) = self.find_displacement(keys).ok_or(Full)?;
            for (key, slot_index) in keys.iter().zip(slot_indices) {
                if let Some(item) = self.items.get(key) {
                    self.write(slot_index, *item);
                }
            }
            self.array.displacements[bucket].store(displacement, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::packing::testing::{HEAD, packing, rule};

    fn table() -> Displacement {
        Displacement::new(packing(), true)
    }

    /// Checks that these keys are in their slots, with their stamps, and that no slot holds
    /// anything else.
    fn check(table: &Displacement, keys: std::ops::Range<u64>) {
        let array = &table.array;
        let taken = array.slots.iter().filter(|s| s.load(Ordering::Relaxed) != 0).count();
        assert_eq!((table.len(), taken), (keys.clone().count(), keys.clone().count()));
        for key in keys {
            let entry = array.slots[array.slot_of_key(key)].load(Ordering::Relaxed);
            assert_eq!(entry, key << 10 | 0x155 << 1 | 1);
            assert_eq!(table.stamp(key as u32 + 1), Some(key * LAST_HIT_TICK_NS));
        }
    }

    fn insert(table: &mut Displacement, key: u64) -> bool {
        table.insert_rule(&rule(key), &[HEAD], key * LAST_HIT_TICK_NS)
    }

    #[test]
    fn a_known_number_of_keys_has_little_more_than_two_slots_each() {
        for count in [0, 1, 100, if cfg!(miri) { 200 } else { 1000 }] {
            let mut table = table();
            table.defer();
            for key in 0..count {
                insert(&mut table, key);
            }
            table.view();
            check(&table, 0..count);
            // More are needed very rarely.
            assert!(table.array.slots.len() <= (count as usize * 3).max(MIN_SLOTS));
        }
    }

    #[test]
    fn keys_that_come_and_go_keep_places_of_their_own() {
        let mut table = table();
        let (most, gone) = if cfg!(miri) {
            (60, 30)
        } else {
            (MAX_ENTRIES as u64, 3000)
        };
        let mut rebuilt = 0;
        for key in 0..most {
            rebuilt += u32::from(insert(&mut table, key));
        }
        check(&table, 0..most);
        // Mostly as it grows.
        assert!(
            u64::from(rebuilt) < 20 + most / 50,
            "a new array for {rebuilt} of {most}"
        );
        let mut rebuilt = 0;
        for key in 0..gone {
            table.remove_rule(&rule(key));
            rebuilt += u64::from(insert(&mut table, key + most));
        }
        assert!(rebuilt < 5 + gone / 50, "a new array for {rebuilt} of {gone}");
        check(&table, gone..gone + most);
        assert!(table.array.slots.len() <= MAX_SLOTS);
    }

    #[test]
    fn entries_of_members_are_left_out() {
        let mut table = table();
        assert!(!table.insert_rule(&rule(1), &[INDIRECT], 0));
        assert_eq!(table.len(), 0);
    }
}
