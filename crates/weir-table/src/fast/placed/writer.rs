//! The writer's side.

use crate::fast::LAST_HIT_STEP_NS;
use crate::fast::head::INDIRECT;
use crate::fast::packing::{Packing, step};
use crate::fast::placed::{Array, GROUPS, PlacedShape, SLOTS};
use crate::fast::rule::Rule;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most entries: half as many as slots. With more it gets hard to find free ones for all keys of a group.
pub(in crate::fast) const MOST: usize = SLOTS / 2;
/// Eighths of the slots that are used at most, where there can be more.
const FULL: usize = 5;
/// What may be in the way of a group that is to be moved: that many other groups.
const IN_THE_WAY: usize = 8;
/// Keys of a group, on average, when an array is made.
const GROUP: usize = 4;
/// Fewest slots.
const LEAST: usize = 16;

/// The writer's side.
#[derive(Debug)]
pub(in crate::fast) struct Placed {
    array: Arc<Array>,
    /// What is there, by key.
    items: FxHashMap<u64, Item>,
    /// The keys of each group.
    groups: Vec<Vec<u64>>,
    /// Keys by handle, if last hits are wanted.
    keys: Option<FxHashMap<u32, u64>>,
    /// The array does not know of all items yet.
    deferred: bool,
}

/// An entry; the stamp is what it is put in with, in steps.
#[derive(Debug, Clone, Copy)]
struct Item {
    slot: u64,
    handle: u32,
    stamp: u64,
}

/// No turn brings all keys of a group to free slots.
struct Full;

impl Placed {
    pub(in crate::fast) fn new(packing: Packing, stamps: bool) -> Self {
        Placed {
            array: Arc::new(Array::new(packing, LEAST, 1, stamps)),
            items: FxHashMap::default(),
            groups: vec![Vec::new()],
            keys: stamps.then(FxHashMap::default),
            deferred: false,
        }
    }

    pub(in crate::fast) fn packing(&self) -> Packing {
        self.array.packing
    }

    pub(in crate::fast) fn len(&self) -> usize {
        self.items.len()
    }

    pub(in crate::fast) fn bytes(&self) -> usize {
        let array = &self.array;
        let stamps = array.stamps.as_ref().map_or(0, |s| s.bytes());
        let groups: usize = self
            .groups
            .iter()
            .map(|g| g.capacity() * 8 + size_of::<Vec<u64>>())
            .sum();
        let keys = self.keys.as_ref().map_or(0, |k| k.capacity() * 17);
        array.slots.bytes() + stamps + array.turns.bytes() + self.items.capacity() * 33 + groups + keys
    }

    /// Readers see nothing of what follows until [`Placed::shape`].
    pub(in crate::fast) fn defer(&mut self) {
        self.deferred = true;
    }

    pub(in crate::fast) fn shape(&mut self) -> PlacedShape {
        if self.deferred {
            self.rebuild();
            self.deferred = false;
        }
        PlacedShape(Arc::clone(&self.array))
    }

    /// Whether a rule's key is there.
    pub(in crate::fast) fn has(&self, rule: &Rule) -> bool {
        self.items.contains_key(&rule.value[0])
    }

    /// When an entry was hit last.
    pub(in crate::fast) fn stamp(&self, handle: u32) -> Option<u64> {
        let key = self.keys.as_ref()?.get(&handle)?;
        let item = self.items.get(key).filter(|item| item.handle == handle);
        item.and_then(|_| Some(self.time(*key)? * LAST_HIT_STEP_NS))
    }

    /// When a key was hit last or put in, in steps.
    fn time(&self, key: u64) -> Option<u64> {
        let item = self.items.get(&key)?;
        let Some(stamps) = &self.array.stamps else {
            return Some(item.stamp);
        };
        let found = self.array.find(key);
        Some(found.map_or(item.stamp, |(_, place)| stamps.get(place)))
    }

    /// All entries: key, slot, handle and last hit.
    pub(in crate::fast) fn entries(&self) -> impl ExactSizeIterator<Item = (u64, u64, u32, u64)> {
        let items = self.items.iter();
        items.map(|(key, item)| (*key, item.slot, item.handle, self.time(*key).unwrap_or(item.stamp)))
    }

    /// Entries whose result does not say what to do are not there.
    pub(in crate::fast) fn leaves_out(result: &[u64]) -> bool {
        result[0] & INDIRECT != 0
    }

    /// Puts an entry in, if its result says what to do. True: readers need the new shape.
    pub(in crate::fast) fn put(&mut self, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        if Self::leaves_out(result) {
            return false;
        }
        let key = rule.value[0];
        let old = self.time(key);
        let item = Item {
            slot: self.array.packing.pack(key, result[0]),
            handle: rule.handle,
            stamp: step(stamp).max(old.unwrap_or(0)),
        };
        let before = self.items.insert(key, item);
        if let Some(keys) = &mut self.keys {
            if let Some(before) = before {
                keys.remove(&before.handle);
            }
            keys.insert(rule.handle, key);
        }
        if self.deferred {
            return true;
        }
        if old.is_some() {
            let place = self.array.place_of(key);
            self.noticed(|this| this.write(place, item));
            return false;
        }
        if self.items.len() * 8 <= self.array.slots.len() * FULL && self.add(key, item).is_ok() {
            return false;
        }
        self.rebuild();
        true
    }

    /// Takes an entry out. True: readers need the new shape.
    pub(in crate::fast) fn take(&mut self, rule: &Rule) -> bool {
        let key = rule.value[0];
        if self.items.get(&key).is_none_or(|item| item.handle != rule.handle) {
            return false;
        }
        self.items.remove(&key);
        if let Some(keys) = &mut self.keys {
            keys.remove(&rule.handle);
        }
        if self.deferred {
            return true;
        }
        let place = self.array.place_of(key);
        self.noticed(|this| this.array.slots[place].store(0, Ordering::Release));
        let group = self.array.group(self.array.seed.one(key));
        self.groups[group].retain(|k| *k != key);
        false
    }

    /// Changes something, so that readers that do not look closely notice.
    fn noticed(&self, change: impl FnOnce(&Self)) {
        self.array.writes.begin();
        change(self);
        self.array.writes.end();
    }

    fn write(&self, place: usize, item: Item) {
        if let Some(stamps) = &self.array.stamps {
            stamps.set(place, item.stamp);
        }
        self.array.slots[place].store(item.slot, Ordering::Release);
    }

    /// Puts a new key in, moving others of its group if need be.
    fn add(&mut self, key: u64, item: Item) -> Result<(), Full> {
        let array = &self.array;
        let group = array.group(array.seed.one(key));
        let place = array.place_of(key);
        if array.slots[place].load(Ordering::Relaxed) == 0 {
            self.noticed(|this| this.write(place, item));
        } else {
            let mut keys = self.groups[group].clone();
            let there = keys.len();
            keys.push(key);
            let found = self.turn(&keys).or_else(|| self.make_room(group, &keys));
            let (turn, places) = found.ok_or(Full)?;
            self.move_group(group, &keys, there, turn, &places);
        }
        self.groups[group].push(key);
        Ok(())
    }

    /// Brings the keys of a group, of which the first so many are there already, to free slots that they have with this turn.
    fn move_group(&self, group: usize, keys: &[u64], there: usize, turn: u8, places: &[usize]) {
        let from: Vec<usize> = keys[..there].iter().map(|k| self.array.place_of(*k)).collect();
        self.noticed(|this| {
            for (key, place) in keys.iter().zip(places) {
                if let (Some(item), Some(stamp)) = (this.items.get(key), this.time(*key)) {
                    this.write(*place, Item { stamp, ..*item });
                }
            }
            // All keys are there twice now: whoever does not find one where it was looks again.
            this.array.turns[group].store(turn, Ordering::Release);
            this.array.moves.fetch_add(1, Ordering::Release);
            for place in &from {
                this.array.slots[*place].store(0, Ordering::Release);
            }
        });
    }

    /// Where no turn brings all these keys of a group to free slots: moves one other group, the only one that is in the way of a turn.
    fn make_room(&self, group: usize, keys: &[u64]) -> Option<(u8, Vec<usize>)> {
        let array = &self.array;
        let owner = |place: &usize| {
            let slot = array.slots[*place].load(Ordering::Relaxed);
            (slot != 0).then(|| array.group(array.seed.one(array.packing.key(slot))))
        };
        let mut tried = 0;
        (0..=u8::MAX).find_map(|turn| {
            let places: Vec<usize> = keys.iter().map(|k| array.place(array.seed.one(*k), turn)).collect();
            let apart = places.iter().enumerate().all(|(i, p)| !places[..i].contains(p));
            let mut owners = places.iter().filter_map(owner);
            let other = owners.next()?;
            if !apart || other == group || owners.any(|o| o != other) || tried == IN_THE_WAY {
                return None;
            }
            tried += 1;
            let others = &self.groups[other];
            let (to, others_places) = self.turn_beside(others, &places)?;
            self.move_group(other, others, others.len(), to, &others_places);
            Some((turn, places))
        })
    }

    /// A turn that brings all these keys of a group to free slots, and to which.
    fn turn(&self, keys: &[u64]) -> Option<(u8, Vec<usize>)> {
        self.turn_beside(keys, &[])
    }

    /// The same, but to none of these.
    fn turn_beside(&self, keys: &[u64], taken: &[usize]) -> Option<(u8, Vec<usize>)> {
        let array = &self.array;
        let hashes: Vec<u64> = keys.iter().map(|k| array.seed.one(*k)).collect();
        let mut places = Vec::with_capacity(hashes.len());
        (0..=u8::MAX).find_map(|turn| {
            places.clear();
            for hash in &hashes {
                let place = array.place(*hash, turn);
                if array.slots[place].load(Ordering::Relaxed) != 0 || places.contains(&place) || taken.contains(&place)
                {
                    return None;
                }
                places.push(place);
            }
            Some((turn, std::mem::take(&mut places)))
        })
    }

    /// Makes an array for what is there.
    fn rebuild(&mut self) {
        for (key, time) in self.items.keys().map(|k| (*k, self.time(*k))).collect::<Vec<_>>() {
            if let (Some(item), Some(time)) = (self.items.get_mut(&key), time) {
                item.stamp = time;
            }
        }
        let newest = self.array.stamps.as_ref().map(|s| s.newest());
        let mut slots = (self.items.len() * 5 / 2).clamp(LEAST, SLOTS);
        // It hardly ever fails.
        while self.fill(slots).is_err() {
            slots = (slots + slots / 8).min(SLOTS);
        }
        if let (Some(stamps), Some(newest)) = (&self.array.stamps, newest) {
            stamps.see(newest);
        }
    }

    /// Makes an array of so many slots with what is there, the largest groups first.
    fn fill(&mut self, slots: usize) -> Result<(), Full> {
        let groups = slots.div_ceil(2 * GROUP).min(GROUPS);
        let array = Array::new(self.array.packing, slots, groups as u32, self.keys.is_some());
        self.array = Arc::new(array);
        self.groups = vec![Vec::new(); groups];
        for key in self.items.keys() {
            self.groups[self.array.group(self.array.seed.one(*key))].push(*key);
        }
        let mut order: Vec<usize> = (0..groups).collect();
        order.sort_unstable_by_key(|g| std::cmp::Reverse(self.groups[*g].len()));
        for group in order {
            let keys = &self.groups[group];
            let (turn, places) = self.turn(keys).ok_or(Full)?;
            for (key, place) in keys.iter().zip(places) {
                if let Some(item) = self.items.get(key) {
                    self.write(place, *item);
                }
            }
            self.array.turns[group].store(turn, Ordering::Release);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::packing::testing::{HEAD, packing, rule};

    fn placed() -> Placed {
        Placed::new(packing(), true)
    }

    /// These keys are in their slots, with their stamps, and no slot holds anything else.
    fn check(placed: &Placed, keys: std::ops::Range<u64>) {
        let array = &placed.array;
        let taken = array.slots.iter().filter(|s| s.load(Ordering::Relaxed) != 0).count();
        assert_eq!((placed.len(), taken), (keys.clone().count(), keys.clone().count()));
        for key in keys {
            let slot = array.slots[array.place_of(key)].load(Ordering::Relaxed);
            assert_eq!(slot, key << 10 | 0x155 << 1 | 1);
            assert_eq!(placed.stamp(key as u32 + 1), Some(key * LAST_HIT_STEP_NS));
        }
    }

    fn put(placed: &mut Placed, key: u64) -> bool {
        placed.put(&rule(key), &[HEAD], key * LAST_HIT_STEP_NS)
    }

    #[test]
    fn a_known_number_of_keys_has_few_more_than_twice_as_many_slots() {
        for count in [0, 1, 100, if cfg!(miri) { 200 } else { 1000 }] {
            let mut placed = placed();
            placed.defer();
            for key in 0..count {
                put(&mut placed, key);
            }
            placed.shape();
            check(&placed, 0..count);
            // One time in many more are needed.
            assert!(placed.array.slots.len() <= (count as usize * 3).max(LEAST));
        }
    }

    #[test]
    fn keys_that_come_and_go_keep_places_of_their_own() {
        let mut placed = placed();
        let (most, gone) = if cfg!(miri) { (60, 30) } else { (MOST as u64, 3000) };
        let mut anew = 0;
        for key in 0..most {
            anew += u32::from(put(&mut placed, key));
        }
        check(&placed, 0..most);
        // As it grows, and hardly ever else.
        assert!(u64::from(anew) < 20 + most / 50, "a new array for {anew} of {most}");
        let mut anew = 0;
        for key in 0..gone {
            placed.take(&rule(key));
            anew += u64::from(put(&mut placed, key + most));
        }
        assert!(anew < 5 + gone / 50, "a new array for {anew} of {gone}");
        check(&placed, gone..gone + most);
        assert!(placed.array.slots.len() <= SLOTS);
    }

    #[test]
    fn entries_of_members_are_left_out() {
        let mut placed = placed();
        assert!(!placed.put(&rule(1), &[INDIRECT], 0));
        assert_eq!(placed.len(), 0);
    }
}
