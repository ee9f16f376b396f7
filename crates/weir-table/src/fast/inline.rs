//! Exact keys of one word with at most one word of data: key and result in the bucket.
//!
//! A bucket is a cache line of two slots. A key is in its first or its second bucket, in the first
//! where there is room; at most 60 % of the slots are used, so an entry takes 53 to 107 bytes. A slot
//! is written under a version in the upper bits of its head word, so that readers notice; a key that
//! moves to its other bucket is copied first and counted in `moves`, which readers look at before
//! they call a key missing.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, each, each_of, is_dense, ones};
use crate::fast::hash::{Seed, first, second};
use crate::fast::head::HIT;
use crate::fast::mem::{Zeroable, Zeroed, prefetch};
use crate::fast::rule::Rule;
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The lowest version bit is set while the slot is written.
const WRITING: u64 = 1 << 50;
const VERSION: u64 = OVERFLOW - WRITING;
/// In the first slot of a bucket: a key that should be here is or was in its second bucket.
const OVERFLOW: u64 = 1 << 63;
const RESULT: u64 = WRITING - 1;

/// Tables of more bytes than this are read in two stages.
const STAGED: usize = 256 << 10;

#[derive(Debug)]
#[repr(C)]
struct Slot {
    /// The head word of the result, without [`HIT`] if the slot is free; above it the version.
    head: AtomicU64,
    key: AtomicU64,
    data: AtomicU64,
    stamp: AtomicU64,
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Bucket([Slot; 2]);

const _: () = assert!(size_of::<Bucket>() == 64);

// SAFETY: only atomics.
unsafe impl Zeroable for Bucket {}

#[derive(Debug)]
struct Array {
    buckets: Zeroed<Bucket>,
    mask: usize,
    seed: Seed,
    /// What the keys of free slots are: 0, and in the two buckets of the key 0 this.
    free_key: u64,
    /// Counts keys that left a bucket for the other.
    moves: AtomicU64,
    /// Odd while a slot is written, and different after.
    writes: AtomicU64,
}

/// What readers see.
#[derive(Debug)]
pub(super) struct InlineShape(Arc<Array>);

/// One look into a bucket.
struct Look {
    hit: bool,
    head: u64,
    data: u64,
    slot: usize,
    /// The key may be in its second bucket, if this is its first.
    overflow: bool,
    /// Not 0: the bucket was written meanwhile.
    torn: u64,
}

/// What the passes over a vector found. `torn` is not 0 if something was written meanwhile.
#[derive(Default)]
struct State {
    hits: u64,
    elsewhere: u64,
    torn: u64,
}

impl Bucket {
    /// Without branches that depend on what is found.
    #[inline(always)]
    fn look(&self, key: u64) -> Look {
        let [a, b] = &self.0;
        let (head_a, head_b) = (a.head.load(Ordering::Acquire), b.head.load(Ordering::Acquire));
        let in_a = (a.key.load(Ordering::Relaxed) == key) & (head_a & HIT != 0);
        let in_b = (b.key.load(Ordering::Relaxed) == key) & (head_b & HIT != 0);
        let slot = usize::from(in_b);
        let chosen = &self.0[slot & 1];
        let head = if in_b { head_b } else { head_a };
        let data = chosen.data.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let again = chosen.head.load(Ordering::Relaxed);
        Look {
            hit: in_a | in_b,
            head: head & RESULT,
            data,
            slot,
            overflow: head_a & OVERFLOW != 0,
            torn: (head_a | head_b) & WRITING | (head ^ again),
        }
    }
}

impl Array {
    /// At least four buckets, a power of two.
    fn new(buckets: usize) -> Self {
        let (seed, mask) = (Seed::random(), buckets - 1);
        let of = |key: u64| [first(seed.one(key), mask), second(seed.one(key), mask)];
        let zero = of(0);
        let free_key = (1..).find(|k| of(*k).iter().all(|b| !zero.contains(b))).unwrap_or(0);
        let array = Array {
            buckets: Zeroed::new(buckets),
            mask,
            seed,
            free_key,
            moves: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        };
        for slot in zero.iter().flat_map(|b| &array.bucket(*b).0) {
            slot.key.store(free_key, Ordering::Relaxed);
        }
        array
    }

    /// The key of free slots in a bucket: none that is ever looked for there.
    fn free_key(&self, bucket: usize) -> u64 {
        let hash = self.seed.one(0);
        let zero = [first(hash, self.mask), second(hash, self.mask)].contains(&bucket);
        if zero { self.free_key } else { 0 }
    }

    #[inline(always)]
    fn bucket(&self, number: usize) -> &Bucket {
        debug_assert!(number <= self.mask);
        // SAFETY: there are `mask + 1` buckets, and callers apply the mask.
        unsafe { self.buckets.get_unchecked(number & self.mask) }
    }

    /// A look at both buckets that is neither torn nor misses a key on the move.
    #[cold]
    fn find(&self, key: u64) -> Option<(Look, &Bucket)> {
        let hash = self.seed.one(key);
        loop {
            let moves = self.moves.load(Ordering::Acquire);
            let mut torn = 0;
            for number in [first(hash, self.mask), second(hash, self.mask)] {
                let bucket = self.bucket(number);
                let look = bucket.look(key);
                if look.hit && look.torn == 0 {
                    return Some((look, bucket));
                }
                torn |= look.torn;
            }
            fence(Ordering::Acquire);
            if torn == 0 && self.moves.load(Ordering::Relaxed) == moves {
                return None;
            }
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn lookup<const DENSE: bool, const DATA: bool, const STAMP: bool>(&self, batch: &mut Batch<'_>) -> u64 {
        let writes = self.writes.load(Ordering::Acquire);
        if writes & 1 == 0 {
            let hits = self.quiet::<DENSE, DATA, STAMP>(*batch);
            fence(Ordering::Acquire);
            if self.writes.load(Ordering::Relaxed) == writes {
                return hits;
            }
        }
        self.disturbed::<DATA, STAMP>(*batch)
    }

    /// A lookup that is only right if nothing is written meanwhile.
    #[inline(always)]
    fn quiet<const DENSE: bool, const DATA: bool, const STAMP: bool>(&self, batch: Batch<'_>) -> u64 {
        let active = batch.active;
        let (seed, mask) = (self.seed, self.mask);
        let buckets = self.buckets.as_slice();
        // For all below: only active slots; word 0 always exists, word 1 of results
        // and of the default does if `DATA`.
        // SAFETY: there are `mask + 1` buckets.
        let bucket = |number: usize| unsafe { buckets.get_unchecked(number & mask) };
        // SAFETY: see above.
        let hash = |slot| seed.one(unsafe { batch.key(0, slot) });
        let staged = self.buckets.bytes() > STAGED;
        if staged {
            each_of::<DENSE>(active, |slot, _| prefetch(bucket(first(hash(slot), mask))));
        }
        // SAFETY: see above.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        // SAFETY: see above.
        let default_data = if DATA {
            // SAFETY: see above.
            unsafe { batch.default.add(1).as_ref() }.load(Ordering::Relaxed)
        } else {
            0
        };
        let look = |slot: usize, bucket: &Bucket| {
            // SAFETY: see above.
            let key = unsafe { batch.key(0, slot) };
            let [a, b] = &bucket.0;
            let in_b = b.key.load(Ordering::Relaxed) == key;
            let hit = (a.key.load(Ordering::Relaxed) == key) | in_b;
            let chosen = select_unpredictable(in_b, b, a);
            let head = chosen.head.load(Ordering::Relaxed) & RESULT;
            // SAFETY: see above.
            unsafe {
                batch.put(0, slot, select_unpredictable(hit, head, default));
                if DATA {
                    let data = chosen.data.load(Ordering::Relaxed);
                    batch.put(1, slot, select_unpredictable(hit, data, default_data));
                }
            }
            if STAMP && hit {
                chosen.stamp.store(batch.now, Ordering::Relaxed);
            }
            hit
        };
        let mut hits = 0;
        each_of::<DENSE>(active, |slot, bit| {
            hits |= bit & ones(look(slot, bucket(first(hash(slot), mask))));
        });
        let mut elsewhere = 0;
        each(active & !hits, |slot, bit| {
            let hash = hash(slot);
            let head = bucket(first(hash, mask)).0[0].head.load(Ordering::Relaxed);
            elsewhere |= bit & ones(head & OVERFLOW != 0);
            if staged {
                prefetch(bucket(second(hash, mask)));
            }
        });
        each(elsewhere, |slot, bit| {
            hits |= bit & ones(look(slot, bucket(second(hash(slot), mask))));
        });
        hits
    }

    /// A lookup that notices what is written meanwhile.
    #[cold]
    #[inline(never)]
    fn disturbed<const DATA: bool, const STAMP: bool>(&self, batch: Batch<'_>) -> u64 {
        let moves = self.moves.load(Ordering::Acquire);
        let mut state = State::default();
        self.pass::<DATA, STAMP>(batch, batch.active, first, &mut state);
        let pending = state.elsewhere;
        if pending != 0 {
            self.pass::<DATA, STAMP>(batch, pending, second, &mut state);
            fence(Ordering::Acquire);
            if self.moves.load(Ordering::Relaxed) != moves {
                state.torn |= pending & !state.hits;
            }
        }
        if state.torn != 0 {
            self.again::<DATA, STAMP>(batch, batch.active, &mut state.hits);
        }
        state.hits
    }

    /// Looks into one bucket per slot.
    #[inline(always)]
    fn pass<const DATA: bool, const STAMP: bool>(
        &self,
        batch: Batch<'_>,
        slots: u64,
        which: impl Fn(u64, usize) -> usize,
        state: &mut State,
    ) {
        // SAFETY: the default has as many words as a result, and there is word 1 if `DATA`.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        let default_data = if DATA {
            // SAFETY: as above.
            unsafe { batch.default.add(1).as_ref() }.load(Ordering::Relaxed)
        } else {
            0
        };
        let (mut hits, mut elsewhere, mut torn) = (0, 0, 0);
        let (seed, mask) = (self.seed, self.mask);
        let buckets = self.buckets.as_slice();
        each(slots, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { batch.key(0, slot) };
            // SAFETY: there are `mask + 1` buckets, and `which` applies the mask.
            let bucket = unsafe { buckets.get_unchecked(which(seed.one(key), mask) & mask) };
            let look = bucket.look(key);
            let hit = ones(look.hit);
            hits |= bit & hit;
            elsewhere |= bit & !hit & ones(look.overflow);
            torn |= look.torn;
            // SAFETY: only active slots; results have word 1 if `DATA`.
            unsafe {
                batch.put(0, slot, look.head & hit | default & !hit);
                if DATA {
                    batch.put(1, slot, look.data & hit | default_data & !hit);
                }
            }
            if STAMP && look.hit {
                bucket.0[look.slot & 1].stamp.store(batch.now, Ordering::Relaxed);
            }
        });
        state.hits |= hits;
        state.elsewhere = elsewhere;
        state.torn |= torn;
    }

    /// Looks slots up one by one.
    #[cold]
    fn again<const DATA: bool, const STAMP: bool>(&self, batch: Batch<'_>, slots: u64, hits: &mut u64) {
        each(slots, |slot, bit| {
            // SAFETY: only active slots, word 0 always exists, and word 1 of results does if `DATA`.
            let key = unsafe { batch.key(0, slot) };
            *hits &= !bit;
            let Some((look, bucket)) = self.find(key) else {
                // SAFETY: as above.
                return unsafe { batch.give(slot, batch.default) };
            };
            *hits |= bit;
            // SAFETY: as above.
            unsafe {
                batch.put(0, slot, look.head);
                if DATA {
                    batch.put(1, slot, look.data);
                }
            }
            if STAMP {
                bucket.0[look.slot & 1].stamp.store(batch.now, Ordering::Relaxed);
            }
        });
    }
}

impl InlineShape {
    #[inline(always)]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        match (is_dense(batch.active), batch.result_words() > 1, batch.stamp.is_some()) {
            (false, false, false) => self.0.lookup::<false, false, false>(batch),
            (false, true, false) => self.0.lookup::<false, true, false>(batch),
            (false, false, true) => self.0.lookup::<false, false, true>(batch),
            (false, true, true) => self.0.lookup::<false, true, true>(batch),
            (true, false, false) => self.0.lookup::<true, false, false>(batch),
            (true, true, false) => self.0.lookup::<true, true, false>(batch),
            (true, false, true) => self.0.lookup::<true, false, true>(batch),
            (true, true, true) => self.0.lookup::<true, true, true>(batch),
        }
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct Inline {
    array: Arc<Array>,
    entries: usize,
    /// Keys by handle, if last hits are wanted.
    handles: Option<FxHashMap<u32, u64>>,
}

/// What a slot holds.
#[derive(Debug, Clone, Copy)]
struct Item {
    head: u64,
    key: u64,
    data: u64,
    stamp: u64,
}

/// The array could not take a write: make a new one.
struct Stuck;

/// A slot: bucket and position.
type Place = (usize, usize);

/// How many buckets the search for a free slot looks at.
const SEARCH: usize = 128;

impl Inline {
    pub(super) fn new(stamps: bool, expected: usize) -> Self {
        let slots = expected.saturating_mul(5) / 3 + 8;
        Inline {
            array: Arc::new(Array::new((slots / 2).next_power_of_two())),
            entries: 0,
            handles: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.array.buckets.bytes() + self.handles.as_ref().map_or(0, |h| h.capacity() * 17)
    }

    pub(super) fn shape(&self) -> InlineShape {
        InlineShape(Arc::clone(&self.array))
    }

    pub(super) fn stamp(&self, handle: u32) -> Option<u64> {
        let place = self.place(*self.handles.as_ref()?.get(&handle)?)?;
        Some(self.slot(place).stamp.load(Ordering::Relaxed))
    }

    fn slot(&self, (bucket, position): Place) -> &Slot {
        &self.array.bucket(bucket).0[position & 1]
    }

    fn read(&self, place: Place) -> Option<Item> {
        let slot = self.slot(place);
        let head = slot.head.load(Ordering::Relaxed);
        (head & HIT != 0).then(|| Item {
            head: head & RESULT,
            key: slot.key.load(Ordering::Relaxed),
            data: slot.data.load(Ordering::Relaxed),
            stamp: slot.stamp.load(Ordering::Relaxed),
        })
    }

    /// Writes a slot, so that readers see all or nothing.
    fn write(&self, place: Place, item: Item) -> Result<(), Stuck> {
        let writes = self.array.writes.load(Ordering::Relaxed);
        self.array.writes.store(writes + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let written = self.write_noticed(place, item);
        self.array.writes.store(writes + 2, Ordering::Release);
        written
    }

    fn write_noticed(&self, place: Place, item: Item) -> Result<(), Stuck> {
        if item.head & HIT != 0 {
            let home = first(self.array.seed.one(item.key), self.array.mask);
            if home != place.0 {
                let head = &self.array.bucket(home).0[0].head;
                head.store(head.load(Ordering::Relaxed) | OVERFLOW, Ordering::Release);
            }
        }
        let slot = self.slot(place);
        let head = slot.head.load(Ordering::Relaxed);
        let (version, overflow) = (head & VERSION, head & OVERFLOW);
        let next = version + 2 * WRITING;
        if next >= OVERFLOW {
            // A reader that sleeps must not meet the same version again.
            return Err(Stuck);
        }
        slot.head.store(version | overflow | WRITING, Ordering::Relaxed);
        fence(Ordering::Release);
        slot.key.store(item.key, Ordering::Relaxed);
        slot.data.store(item.data, Ordering::Relaxed);
        slot.stamp.store(item.stamp, Ordering::Relaxed);
        slot.head.store(next | overflow | item.head, Ordering::Release);
        Ok(())
    }

    fn places(&self, key: u64) -> [Place; 4] {
        let hash = self.array.seed.one(key);
        let (a, b) = (first(hash, self.array.mask), second(hash, self.array.mask));
        [(a, 0), (a, 1), (b, 0), (b, 1)]
    }

    fn place(&self, key: u64) -> Option<Place> {
        let places = self.places(key);
        places.into_iter().find(|p| self.read(*p).is_some_and(|i| i.key == key))
    }

    /// Puts an entry in. True: readers need the new shape.
    pub(super) fn put(&mut self, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        let item = Item {
            head: result[0],
            key: rule.value[0],
            data: result.get(1).copied().unwrap_or(0),
            stamp,
        };
        if let Some(handles) = &mut self.handles {
            handles.insert(rule.handle, item.key);
        }
        if let Some(place) = self.place(item.key) {
            let stamp = self.slot(place).stamp.load(Ordering::Relaxed).max(stamp);
            if self.write(place, Item { stamp, ..item }).is_ok() {
                return false;
            }
            self.rebuild(self.array.mask + 1);
            self.put(rule, result, stamp);
            return true;
        }
        self.entries += 1;
        let buckets = self.array.mask + 1;
        if self.entries * 5 <= buckets * 6 && self.add(item).is_ok() {
            return false;
        }
        self.rebuild(buckets * 2);
        while self.add(item).is_err() {
            self.rebuild((self.array.mask + 1) * 2);
        }
        true
    }

    /// Takes an entry out. True: readers need the new shape.
    pub(super) fn take(&mut self, rule: &Rule) -> bool {
        let key = rule.value[0];
        let Some(place) = self.place(key) else {
            return false;
        };
        if self.slot(place).head.load(Ordering::Relaxed) as u32 != rule.handle {
            return false;
        }
        if let Some(handles) = &mut self.handles {
            handles.remove(&rule.handle);
        }
        self.entries -= 1;
        if self.clear(place).is_ok() {
            return false;
        }
        self.rebuild(self.array.mask + 1);
        if let Some(place) = self.place(key) {
            let _ = self.clear(place);
        }
        true
    }

    fn clear(&self, place: Place) -> Result<(), Stuck> {
        let free = Item {
            head: 0,
            key: self.array.free_key(place.0),
            data: 0,
            stamp: 0,
        };
        self.write(place, free)
    }

    /// Puts a new key in, moving others if need be.
    fn add(&self, item: Item) -> Result<(), Stuck> {
        let places = self.places(item.key);
        if let Some(place) = places.into_iter().find(|p| self.read(*p).is_none()) {
            return self.write(place, item);
        }
        // Breadth first: which moves lead to a free slot. Each node is a slot and the node before.
        let mut nodes: Vec<(Place, usize)> = places.into_iter().map(|p| (p, usize::MAX)).collect();
        let mut at = 0;
        while at < nodes.len() && nodes.len() < SEARCH {
            let (place, _) = nodes[at];
            let Some(occupant) = self.read(place) else { break };
            let others = self.places(occupant.key).into_iter().filter(|p| p.0 != place.0);
            for other in others {
                if nodes.iter().any(|(p, _)| *p == other) {
                    continue;
                }
                if self.read(other).is_none() {
                    return self.shift(&nodes, at, other, item);
                }
                nodes.push((other, at));
            }
            at += 1;
        }
        Err(Stuck)
    }

    /// Moves the chain of occupants that ends at node `at` by one towards the free slot.
    fn shift(&self, nodes: &[(Place, usize)], mut at: usize, mut free: Place, item: Item) -> Result<(), Stuck> {
        loop {
            let (place, before) = nodes[at];
            let occupant = self.read(place).ok_or(Stuck)?;
            self.write(free, occupant)?;
            self.array.moves.fetch_add(1, Ordering::Release);
            if before == usize::MAX {
                return self.write(place, item);
            }
            self.clear(place)?;
            (at, free) = (before, place);
        }
    }

    /// A new array with that many buckets, or more.
    fn rebuild(&mut self, mut buckets: usize) {
        'larger: loop {
            let old = std::mem::replace(&mut self.array, Arc::new(Array::new(buckets)));
            for bucket in old.buckets.iter() {
                for slot in &bucket.0 {
                    let head = slot.head.load(Ordering::Relaxed);
                    if head & HIT == 0 {
                        continue;
                    }
                    let item = Item {
                        head: head & RESULT,
                        key: slot.key.load(Ordering::Relaxed),
                        data: slot.data.load(Ordering::Relaxed),
                        stamp: slot.stamp.load(Ordering::Relaxed),
                    };
                    if self.place(item.key).is_none() && self.add(item).is_err() {
                        self.array = old;
                        buckets *= 2;
                        continue 'larger;
                    }
                }
            }
            return;
        }
    }
}
