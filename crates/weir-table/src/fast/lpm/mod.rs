//! One LPM key of up to 32 bits.
//!
//! Up to 64 prefixes: the intervals they cut the addresses into, searched by bisection; with AVX-512 (that of Ice Lake or Zen 4) up to 1,024, of which a lookup
//! compares sixteen at once. More:
//! DIR-24-8, a table of the first 24 bits (fewer if the key is narrower) with the number of the
//! record, or of a group of 256 numbers for the last 8 bits. Prefixes of up to 8 bits are in a table of
//! the first 8 bits, for the addresses that no longer prefix has: so the writer writes at most 32,768
//! slots for an entry. It takes 64 MB (1.3 KB for 6 bits) plus 1 KB per /24 that has longer prefixes; an
//! entry takes its record (16 to 64 bytes mostly) and about 20 bytes of the writer's.
//!
//! Tables of programs that say that there may be [`MANY`] entries, with keys of 24 bits at least and records of up to a line, have their slots in pages with room for records between
//! them ([`pages`]): 128 MB, or as much of that as the system makes pages of. The records of the first [`MANY`] entries are near anyway; of those that come later records lie there, if there is room near their slots.
#![allow(unsafe_code)]

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod eight;
mod owners;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod ranges;
mod slots;

use crate::fast::batch::{Batch, Fetches, SLOTS, each, each_of, is_dense, ones};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::eight::has_eight;
use crate::fast::lpm::owners::Owners;
use crate::fast::lpm::slots::Slots;
use crate::fast::mem::{Arena, Directory, Rec, Recycler, STAGED, prefetch};
use crate::fast::pages;
use crate::fast::rule::Rule;
use crate::fast::table::{HitCount, SlotPlaces};
use crate::fast::zeroed::Zeroed;
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use eight::Found;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use ranges::Ranges;

/// Most prefixes of the small structure.
const SMALL: usize = 64;
/// Of so many entries the records are no longer near, and those of more lie beside slots, if there are pages with both. Tables that say that they may have as many have pages as
/// soon as they have slots.
pub(super) const MANY: u64 = pages::LEAST_BEFORE as u64;
/// Where there are more entries, asking for slots early gains more than it costs.
const FAR: usize = 1 << 16;
/// The number is that of a group, not of a record.
const GROUP: u32 = 1 << 31;
/// The longest prefixes that are not in slots.
const SHORT: u32 = 8;
/// log2 of the groups in the first chunk.
const FIRST: u32 = 3;

// ---------------------------------------------------------------------------------------- readers

/// The small structure as readers see it; it is replaced as a whole.
#[derive(Debug)]
pub(super) struct Intervals {
    shift: u32,
    /// Where intervals begin, ascending from 0; padded to a power of two.
    starts: Vec<u32>,
    records: Vec<Option<NonNull<AtomicU64>>>,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

// SAFETY: the pointers go to atomics that `_directory` keeps alive.
unsafe impl Send for Intervals {}
// SAFETY: the pointers go to atomics that `_directory` keeps alive; atomics may be shared, and
// nothing else is changed.
unsafe impl Sync for Intervals {}

impl Intervals {
    #[inline(always)]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        let mut hits = 0;
        let batch = *batch;
        each(batch.active, |slot, bit| {
            // SAFETY: the slot is active, and keys have a word.
            let address = (unsafe { batch.key(0, slot) } as u32) << self.shift;
            let mut at = 0;
            let mut step = self.starts.len() / 2;
            while step > 0 {
                // SAFETY: the length is a power of two, and `at + step` stays below it.
                let start = unsafe { *self.starts.get_unchecked(at + step) };
                at += select_unpredictable(start <= address, step, 0);
                step /= 2;
            }
            let found = self.records[at];
            hits |= bit & ones(found.is_some());
            // SAFETY: the slot is active; records have the table's shape, the default the result's.
            unsafe {
                match found {
                    Some(record) if batch.stamp.is_some() => batch.hit(slot, record),
                    _ => batch.give(slot, found.unwrap_or(batch.default)),
                }
            }
        });
        hits
    }
}

/// DIR-24-8 as readers and the writer see it.
#[derive(Debug)]
pub(in crate::fast) struct Dir {
    /// Places of the address before the index into `slots`, and bits of that index.
    shift: u32,
    bits: u32,
    slots: Slots,
    /// Chunk `k` holds the groups from `8 << k` to `16 << k`.
    groups: [OnceLock<Zeroed<AtomicU32>>; (31 - FIRST) as usize],
    /// By the first bits of the address the record of the longest prefix of at most [`SHORT`] bits, or 0.
    roots: Box<[AtomicU32; 1 << SHORT]>,
    directory: Arc<Directory>,
    /// There are, or were, more than [`FAR`] entries, or it was made for so many.
    is_far: AtomicBool,
    /// Addresses are looked up eight at a time.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    by_eights: bool,
}

impl Dir {
    fn new(width: u32, arena: &Arena) -> Self {
        let bits = width.min(24);
        Dir {
            shift: 32 - width,
            bits,
            roots: Box::new([const { AtomicU32::new(0) }; 1 << SHORT]),
            slots: Slots::new(bits, arena),
            groups: [const { OnceLock::new() }; (31 - FIRST) as usize],
            directory: Arc::clone(arena.directory()),
            is_far: AtomicBool::new(false),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            by_eights: has_eight(),
        }
    }

    /// The slot of a left-aligned address.
    #[inline(always)]
    fn slot(&self, address: u32) -> &AtomicU32 {
        self.slots.get((address >> (32 - self.bits)) as usize)
    }

    /// What belongs to a prefix of at most [`SHORT`] bits.
    fn short(&self, address: u32, length: u32) -> &[AtomicU32] {
        let first = (address >> (32 - SHORT)) as usize;
        &self.roots[first..first + (1 << (SHORT - length))]
    }

    /// A group that was made.
    #[inline]
    fn group(&self, group: u32) -> &[AtomicU32] {
        let chunk = group.ilog2() - FIRST;
        let start = (group - (1 << FIRST << chunk)) as usize * 256;
        match self.groups[chunk as usize].get() {
            Some(chunk) => &chunk[start..start + 256],
            None => &[],
        }
    }

    /// The number of the record for an address whose slot says `number`; 0 if there is none.
    #[inline(always)]
    fn resolve(&self, number: u32, address: u32) -> u32 {
        if number & GROUP == 0 {
            return number;
        }
        self.resolve_group(number & !GROUP, address)
    }

    /// Apart, so that the rest is compiled into loops.
    #[inline(never)]
    fn resolve_group(&self, group: u32, address: u32) -> u32 {
        self.number_in_group(group, address).load(Ordering::Acquire)
    }

    /// Where a group that was made has the number of the record for an address.
    #[inline]
    fn number_in_group(&self, group: u32, address: u32) -> &AtomicU32 {
        let number = self.group(group).get((address & 0xff) as usize);
        number.unwrap_or(self.root(address))
    }

    /// Where the number of the record of the longest prefix of at most [`SHORT`] bits is.
    #[inline(always)]
    fn root(&self, address: u32) -> &AtomicU32 {
        &self.roots[(address >> (32 - SHORT)) as usize]
    }

    #[inline(always)]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.by_eights {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_eight(batch) };
        }
        if is_dense(batch.active) {
            self.lookup_slots::<true>(batch)
        } else {
            self.lookup_slots::<false>(batch)
        }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(super) fn is_by_eights(&self) -> bool {
        self.by_eights
    }

    /// Where slots are, if they are so far that it is worth while to ask for them as soon as there are keys.
    #[inline]
    pub(super) fn slot_places(&self) -> Option<SlotPlaces> {
        let (start, gaps) = self.slots.places();
        self.is_far
            .load(Ordering::Relaxed)
            .then_some(SlotPlaces { start, gaps })
    }

    pub(super) fn is_staged(&self) -> bool {
        size_of::<AtomicU32>() << self.bits > STAGED
    }

    /// Where a lookup of these keys reads first.
    #[inline(always)]
    pub(super) fn addresses<const DENSE: bool>(&self, active: u64, keys: &[u64], fetches: &mut Fetches) {
        let (slots, shift, skip) = (&self.slots, self.shift, 32 - self.bits);
        fetches.set::<DENSE>(active, keys, |key| {
            slots.address(((key as u32) << shift >> skip) as usize).cast()
        });
    }

    #[inline(always)]
    fn lookup_slots<const DENSE: bool>(&self, batch: &mut Batch<'_>) -> u64 {
        let batch = *batch;
        let (shift, skip) = (self.shift, 32 - self.bits);
        let slots = &self.slots;
        let directory = &*self.directory;
        let active = batch.active;
        let mut records = [batch.default; SLOTS];
        if !batch.is_fetched {
            each_of::<DENSE>(active, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { batch.key(0, slot) };
                prefetch(slots.address(((key as u32) << shift >> skip) as usize));
            });
        }
        let roots = &*self.roots;
        let mut hits = 0;
        each_of::<DENSE>(active, |slot, bit| {
            // SAFETY: the slot is active, and keys have a word.
            let address = (unsafe { batch.key(0, slot) } as u32) << shift;
            let number = slots.get((address >> skip) as usize).load(Ordering::Acquire);
            let number = self.resolve(number, address);
            let root = roots[(address >> (32 - SHORT)) as usize].load(Ordering::Acquire);
            let number = select_unpredictable(number == 0, root, number);
            let hit = number != 0;
            // SAFETY: numbers in the slots were given out, and record 16 always exists, see `Lpm`.
            let record = unsafe { directory.record(number.max(16)) };
            let record = select_unpredictable(hit, record, batch.default);
            prefetch(record.as_ptr());
            hits |= bit & ones(hit);
            records[slot & (SLOTS - 1)] = record;
        });
        // SAFETY: records have the table's shape, the default the result's.
        unsafe {
            match batch.result_words() {
                1 => give_all::<DENSE, 1>(batch, &records),
                2 => give_all::<DENSE, 2>(batch, &records),
                _ => each_of::<DENSE>(active, |slot, _| batch.give(slot, records[slot & (SLOTS - 1)])),
            }
        }
        if let Some(at) = batch.stamp {
            each(hits, |slot, _| {
                // SAFETY: records that were hit have the table's shape, so they have this word.
                unsafe { records[slot & (SLOTS - 1)].add(at).as_ref() }.store(batch.now, Ordering::Relaxed);
            });
        }
        hits
    }
}

/// Copies the results of all active slots, which have so many words.
///
/// # Safety
/// Results have that many words, and the records no fewer.
#[inline(always)]
unsafe fn give_all<const DENSE: bool, const WORDS: usize>(batch: Batch<'_>, records: &[NonNull<AtomicU64>; SLOTS]) {
    each_of::<DENSE>(batch.active, |slot, _| {
        let record = records[slot & (SLOTS - 1)];
        for word in 0..WORDS {
            // SAFETY: the slot is active, and the caller's promise.
            unsafe { batch.put(word, slot, record.add(word).as_ref().load(Ordering::Relaxed)) };
        }
    });
}

// ----------------------------------------------------------------------------------------- writer

/// The writer's side: prefixes per length, and the structure made of them.
#[derive(Debug)]
pub(super) struct Lpm {
    width: u32,
    /// Records may lie beside slots.
    many: bool,
    /// Left-aligned prefixes of each length, with the numbers of their records.
    rules: Vec<FxHashMap<u32, u32>>,
    entries: usize,
    /// It is made for more than [`FAR`] entries.
    large: bool,
    /// As long as there are few, and lookups are done eight at a time.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    ranges: Option<ranges::Writer>,
    dir: Option<Arc<Dir>>,
    /// `dir` does not know all rules yet.
    deferred: bool,
    next_group: u32,
    free_groups: Recycler,
    /// Rules longer than 24 bits per group.
    group_rules: FxHashMap<u32, u32>,
    /// Numbers of records by handle, if last hits or counts are wanted.
    handles: Option<FxHashMap<u32, u32>>,
    /// Handles by the number of the record, where records count hits: heads of such records have the record's own number where others have
    /// the entry's handle, so that whoever was given a head finds the record.
    owners: Owners,
}

/// What readers are to see.
pub(super) enum LpmShape {
    Intervals(Intervals),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    Ranges(Ranges),
    Dir(Arc<Dir>),
}

/// Of the prefixes that are in the same table of a [`Dir`] as those of this length: how many bits the shortest have.
fn shortest_beside(length: u32) -> u32 {
    if length > SHORT { SHORT + 1 } else { 0 }
}

fn mask(length: u32) -> u32 {
    if length == 0 { 0 } else { u32::MAX << (32 - length) }
}

impl Lpm {
    /// For a key of 1 to 32 bits. So many entries are about to come; `many`: there may be [so many](MANY) some time.
    pub(super) fn new(width: u32, many: bool, expected: usize, arena: &mut Arena) -> Self {
        let large = expected > FAR;
        // Readers look at record 16 where they have none; it is never used.
        arena.take();
        Lpm {
            width,
            many: many && width >= pages::SLOT_BITS,
            rules: vec![FxHashMap::default(); width as usize + 1],
            entries: 0,
            large,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            ranges: (!large && has_eight()).then(ranges::Writer::new),
            dir: None,
            deferred: false,
            next_group: 1 << FIRST,
            free_groups: Recycler::new(Arc::clone(arena.epochs())),
            group_rules: FxHashMap::default(),
            handles: (arena.shape().stamp.or(arena.shape().counts).is_some()).then(FxHashMap::default),
            owners: Owners::default(),
        }
    }

    /// A record for a prefix. Beside which of the prefix's slots is left to chance: beside the first ones records would be so far from each other
    /// that few of the caches' sets were used.
    fn record(&self, arena: &mut Arena, (address, length): (u32, u32), result: &[u64], stamp: u64) -> Option<Rec> {
        if !self.many || (self.entries as u64) < MANY {
            return arena.record(result, &[], stamp);
        }
        arena.make_pages();
        let free = pages::SLOT_BITS.saturating_sub(length);
        let chance = (address ^ length).wrapping_mul(0x9e37_79b9);
        let within = chance.checked_shr(u32::BITS - free).unwrap_or(0);
        arena.record_beside((address >> (u32::BITS - pages::SLOT_BITS)) + within, result, stamp)
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        let maps: usize = self.rules.iter().map(|m| m.capacity() * 9).sum();
        let dir = self.dir.as_ref().map_or(0, |d| {
            let groups = d.groups.iter().filter_map(|g| g.get());
            d.slots.bytes() + groups.map(Zeroed::bytes).sum::<usize>()
        });
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let dir = dir + self.ranges.as_ref().map_or(0, ranges::Writer::bytes);
        let handles = self.handles.as_ref().map_or(0, |h| h.capacity() * 9);
        maps + dir + self.group_rules.capacity() * 9 + handles + self.owners.bytes()
    }

    fn is_small(&self) -> bool {
        self.dir.is_none() && !self.large && self.entries <= SMALL
    }

    /// Whether readers' shape is never changed in place.
    pub(super) fn is_replaced_as_a_whole(&self) -> bool {
        self.dir.is_none()
    }

    /// Do not change what readers see until [`Lpm::shape`].
    pub(super) fn defer(&mut self) {
        self.deferred = true;
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let number = *self.handles.as_ref()?.get(&handle)?;
        Some(arena.stamp(arena.at(number)))
    }

    /// The number of the record of an entry, if anybody may ask.
    pub(super) fn number_of(&self, handle: u32) -> Option<u32> {
        self.handles.as_ref()?.get(&handle).copied()
    }

    /// Handles and numbers of records, if anybody may ask.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.handles.iter().flatten();
        all.map(|(handle, number)| (*handle, *number))
    }

    /// Has a record count on from what the one before it of the same entry has counted, and tell its number.
    fn count_on(&mut self, arena: &Arena, rec: Rec, head: u64, handle: u32, before: Option<(u32, u32)>) {
        if arena.shape().counts.is_none() {
            return;
        }
        arena.set(rec, 0, head & !u64::from(u32::MAX) | u64::from(rec.index));
        let before = before.filter(|(owner, _)| *owner == handle);
        let counted = before.map_or(HitCount::default(), |(_, number)| arena.counted(number));
        arena.set_counted(rec.index, counted);
        self.owners.set(arena, rec.index, handle);
    }

    /// The handle of the entry that a record is of.
    fn owner(&self, arena: &Arena, number: u32) -> u32 {
        match arena.shape().counts {
            Some(_) => self.owners.get(arena, number),
            None => arena.word(arena.at(number), 0).load(Ordering::Relaxed) as u32,
        }
    }

    fn prefix(&self, rule: &Rule) -> (u32, u32) {
        let address = (rule.value[0] as u32) << (32 - self.width);
        (address & mask(rule.prefix), rule.prefix)
    }

    /// Puts a rule in. True: readers need a new shape.
    pub(super) fn put(&mut self, arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        let (address, length) = self.prefix(rule);
        let old = self.rules[length as usize].get(&address).copied();
        let stamp = old.map_or(stamp, |n| arena.stamp(arena.at(n)).max(stamp));
        let Some(rec) = self.record(arena, (address, length), result, stamp) else {
            return false;
        };
        let before = old.map(|old| (self.owner(arena, old), old));
        self.count_on(arena, rec, result[0], rule.handle, before);
        self.rules[length as usize].insert(address, rec.index);
        if let Some(handles) = &mut self.handles {
            // It may be another entry's that has gone, of which that is told later: a handle is used again at once.
            if let Some((owner, old)) = before
                && handles.get(&owner) == Some(&old)
            {
                handles.remove(&owner);
            }
            handles.insert(rule.handle, rec.index);
        }
        self.entries += usize::from(old.is_none());
        if let Some(old) = old {
            arena.retire(arena.at(old));
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.put_range(address, length, old, rec.index) {
            return true;
        }
        if self.deferred || self.is_small() {
            return true;
        }
        let Some(dir) = self.dir.clone() else {
            return true;
        };
        self.notice_far(&dir);
        let from = old.unwrap_or_else(|| self.parent(address, length, shortest_beside(length)));
        self.replace(&dir, address, length, from, rec.index);
        if old.is_none() && length > 24 {
            *self.group_rules.entry(address >> 8).or_default() += 1;
        }
        self.free_groups.flush();
        false
    }

    /// Takes a rule out. True: readers need a new shape.
    pub(super) fn take(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        let (address, length) = self.prefix(rule);
        let Some(&old) = self.rules[length as usize].get(&address) else {
            return false;
        };
        let rec = arena.at(old);
        if self.owner(arena, old) != rule.handle {
            return false;
        }
        self.rules[length as usize].remove(&address);
        if let Some(handles) = &mut self.handles
            && handles.get(&rule.handle) == Some(&old)
        {
            handles.remove(&rule.handle);
        }
        self.entries -= 1;
        arena.retire(rec);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(mut ranges) = self.ranges.take() {
            let to = self.parent(address, length, 0);
            ranges.replace(address, address | !mask(length), old, to);
            self.ranges = Some(ranges);
            return true;
        }
        let Some(dir) = self.dir.clone().filter(|_| !self.deferred) else {
            return true;
        };
        let to = self.parent(address, length, shortest_beside(length));
        self.replace(&dir, address, length, old, to);
        if length > 24 {
            self.release(&dir, address);
        }
        self.free_groups.flush();
        false
    }

    /// Puts a rule into the ranges, if that is what there is and they are not too many by now.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn put_range(&mut self, address: u32, length: u32, old: Option<u32>, new: u32) -> bool {
        let Some(mut ranges) = self.ranges.take().filter(|_| self.entries <= ranges::MOST) else {
            return false;
        };
        let from = old.unwrap_or_else(|| self.parent(address, length, 0));
        ranges.replace(address, address | !mask(length), from, new);
        self.ranges = Some(ranges);
        true
    }

    /// The record of the longest shorter prefix of at least so many bits, or 0.
    fn parent(&self, address: u32, length: u32, shortest: u32) -> u32 {
        (shortest..length)
            .rev()
            .find_map(|l| self.rules[l as usize].get(&(address & mask(l))).copied())
            .unwrap_or(0)
    }

    /// Within a prefix, gives what belongs to one record to another. What belongs to longer prefixes
    /// stays.
    fn replace(&mut self, dir: &Dir, address: u32, length: u32, from: u32, to: u32) {
        let swap = |n: &AtomicU32| {
            if n.load(Ordering::Relaxed) == from {
                n.store(to, Ordering::Release);
            }
        };
        if length <= SHORT {
            dir.short(address, length).iter().for_each(swap);
        } else if length <= dir.bits {
            let first = (address >> (32 - dir.bits)) as usize;
            for slot in dir.slots.some(first..first + (1 << (dir.bits - length))) {
                let number = slot.load(Ordering::Relaxed);
                if number & GROUP == 0 {
                    swap(slot);
                } else {
                    dir.group(number & !GROUP).iter().for_each(swap);
                }
            }
        } else {
            let first = (address & 0xff) as usize;
            let group = self.make_group(dir, address);
            dir.group(group)[first..first + (1 << (32 - length))]
                .iter()
                .for_each(swap);
        }
    }

    /// The group of an address, made if there is none.
    fn make_group(&mut self, dir: &Dir, address: u32) -> u32 {
        let slot = dir.slot(address);
        let number = slot.load(Ordering::Relaxed);
        if number & GROUP != 0 {
            return number & !GROUP;
        }
        let group = self.free_groups.pop().unwrap_or_else(|| {
            self.next_group += 1;
            self.next_group - 1
        });
        let chunk = group.ilog2() - FIRST;
        dir.groups[chunk as usize].get_or_init(|| Zeroed::new(256 << FIRST << chunk));
        for n in dir.group(group) {
            n.store(number, Ordering::Relaxed);
        }
        slot.store(group | GROUP, Ordering::Release);
        group
    }

    /// A rule of a group has gone: without rules the group goes too.
    fn release(&mut self, dir: &Dir, address: u32) {
        let Some(rules) = self.group_rules.get_mut(&(address >> 8)) else {
            return;
        };
        *rules -= 1;
        if *rules > 0 {
            return;
        }
        self.group_rules.remove(&(address >> 8));
        let slot = dir.slot(address);
        let number = slot.load(Ordering::Relaxed);
        if number & GROUP != 0 {
            let group = number & !GROUP;
            slot.store(dir.group(group)[0].load(Ordering::Relaxed), Ordering::Release);
            self.free_groups.retire(group);
        }
    }

    /// What readers are to see from now on.
    pub(super) fn shape(&mut self, arena: &mut Arena) -> LpmShape {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(ranges) = &self.ranges {
            self.deferred = false;
            return LpmShape::Ranges(ranges.shape(self.width, arena));
        }
        if self.is_small() {
            self.deferred = false;
            return LpmShape::Intervals(self.intervals(arena));
        }
        match &self.dir {
            Some(dir) if !self.deferred => LpmShape::Dir(Arc::clone(dir)),
            _ => LpmShape::Dir(self.build(arena)),
        }
    }

    /// All rules, the shortest first.
    fn sorted(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let lengths = (0..).zip(&self.rules);
        lengths.flat_map(|(length, rules)| rules.iter().map(move |(a, n)| (*a, length, *n)))
    }

    fn intervals(&self, arena: &Arena) -> Intervals {
        let mut starts = vec![0];
        for (address, length, _) in self.sorted() {
            starts.push(address);
            starts.extend((address | !mask(length)).checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        let mut records: Vec<_> = starts
            .iter()
            .map(|&s| {
                let covering = self.sorted().filter(|&(a, length, _)| s & mask(length) == a);
                covering.last().map(|(.., n)| arena.at(n).words)
            })
            .collect();
        let padded = starts.len().next_power_of_two();
        starts.resize(padded, u32::MAX);
        let last = records.last().copied().flatten();
        records.resize(padded, last);
        Intervals {
            shift: 32 - self.width,
            starts,
            records,
            _directory: Arc::clone(arena.directory()),
        }
    }

    fn build(&mut self, arena: &mut Arena) -> Arc<Dir> {
        if self.many {
            arena.make_pages();
        }
        self.deferred = false;
        self.next_group = 1 << FIRST;
        self.free_groups = Recycler::new(Arc::clone(arena.epochs()));
        self.group_rules.clear();
        let dir = Arc::new(Dir::new(self.width, arena));
        let rules = std::mem::take(&mut self.rules);
        for (length, rules) in (0..).zip(&rules) {
            for (&address, &number) in rules {
                self.fill(&dir, address, length, number);
            }
        }
        self.rules = rules;
        self.notice_far(&dir);
        self.dir = Some(Arc::clone(&dir));
        dir
    }

    fn notice_far(&self, dir: &Dir) {
        if self.large || self.entries > FAR {
            dir.is_far.store(true, Ordering::Relaxed);
        }
    }

    /// Adds a rule to a structure that holds no longer ones.
    fn fill(&mut self, dir: &Dir, address: u32, length: u32, number: u32) {
        if length <= SHORT {
            for root in dir.short(address, length) {
                root.store(number, Ordering::Relaxed);
            }
        } else if length <= dir.bits {
            let first = (address >> (32 - dir.bits)) as usize;
            for slot in dir.slots.some(first..first + (1 << (dir.bits - length))) {
                slot.store(number, Ordering::Relaxed);
            }
        } else {
            *self.group_rules.entry(address >> 8).or_default() += 1;
            let group = self.make_group(dir, address);
            let first = (address & 0xff) as usize;
            for n in &dir.group(group)[first..first + (1 << (32 - length))] {
                n.store(number, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
