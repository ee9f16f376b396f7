//! One LPM key of up to 32 bits.
//!
//! Few prefixes are stored as the disjoint address ranges into which they divide the addresses. Up
//! to 64 are searched by binary search ([`BinarySearchRanges`]); with AVX-512 (of Ice Lake or Zen
//! 4) up to 1,024 by multiway search, sixteen comparisons at once ([`MultiwayRanges`]). Both are
//! from B. Lampson, V. Srinivasan and G. Varghese, "IP lookups using multiway and multicolumn
//! search", INFOCOM 1998.
//!
//! More prefixes use DIR-24-8 ([`Dir24_8`]; P. Gupta, S. Lin and N. McKeown, "Routing lookups in
//! hardware at memory access speeds", INFOCOM 1998). An array of slots, TBL24 there, is indexed by
//! the first 24 bits (fewer if the key is narrower). A slot has the number of the record, or of a
//! *TBL8*: 256 record numbers, indexed by the last 8 bits. Prefixes of up to 8 bits (*roots*) are
//! in an array of their own, indexed by the first 8 bits, for the addresses that have no longer
//! prefix. So the writer writes at most 32,768 slots per entry. DIR-24-8 takes 64 MB (1.3 KB for 6
//! bits) plus 1 KB per /24 that has longer prefixes. An entry takes its record (mostly 16 to 64
//! bytes) and about 20 bytes of the writer's.
//!
//! A table may have its slots in pages, with room for records between them ([`pages`]). That holds
//! if the program declares [`PAGED_MIN`] entries or more, keys have 24 bits at least, and records
//! take a cache line at most. It takes 128 MB, or as much of it as the system backs with memory.
//! The records of the first [`PAGED_MIN`] entries stay in the caches anyway. Later records are
//! placed near their slots while there is room.
#![allow(unsafe_code)]

mod owners;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod ranges;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod simd;
mod slots;

use crate::fast::lpm::owners::Owners;
use crate::fast::lpm::slots::Slots;
use crate::fast::mem::{Arena, Directory, FIRST_RECORD, Record, Recycler, SLOTS_PREFETCH_MIN_BYTES, prefetch};
use crate::fast::pages;
use crate::fast::rule::Rule;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::simd::has_avx512_vbmi;
use crate::fast::table::{HitCount, SlotAddressing};
use crate::fast::vector_lookup::{PrefetchQueue, VECTOR_SLOTS, VectorLookup, each_bit, each_slot, is_contiguous, ones};
use crate::fast::zeroed::Zeroed;
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use ranges::MultiwayRanges;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use simd::Located;

/// Most prefixes of [`BinarySearchRanges`].
const MAX_BINARY_SEARCH_PREFIXES: usize = 64;
/// With this number of entries, most reads of records are cache misses, and further records are
/// placed near their slots, in tables with pages. A table whose program declares as many entries
/// has its slots in pages from the start.
pub(super) const PAGED_MIN: u64 = pages::MIN_RECORDS_BEFORE as u64;
/// With more entries, prefetching slots as soon as keys are known gains more than it costs.
const EARLY_PREFETCH_MIN: usize = 1 << 16;
/// In a slot: the number is that of a TBL8, not of a record.
const TBL8_FLAG: u32 = 1 << 31;
/// The length of the longest prefixes that are in `roots`, not in slots.
const ROOT_BITS: u32 = 8;
/// log2 of the number of TBL8s in the first chunk.
const FIRST_TBL8_CHUNK_LOG2: u32 = 3;

// ---------------------------------------------------------------------------------------- readers

/// Readers' view of few prefixes: address ranges for binary search. It is replaced as a whole.
#[derive(Debug)]
pub(super) struct BinarySearchRanges {
    shift: u32,
    /// The first addresses of ranges, ascending from 0; padded to a power of two.
    starts: Vec<u32>,
    /// The record of each range, if a prefix covers it.
    records: Vec<Option<NonNull<AtomicU64>>>,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

// SAFETY: the pointers go to atomics that `_directory` keeps alive.
unsafe impl Send for BinarySearchRanges {}
// SAFETY: the pointers go to atomics that `_directory` keeps alive; atomics may be shared, and
// nothing else is changed.
unsafe impl Sync for BinarySearchRanges {}

impl BinarySearchRanges {
    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        let mut hits = 0;
        let vector = *vector;
        each_bit(vector.active, |slot, bit| {
            // SAFETY: the slot is active, and keys have a word.
            let address = (unsafe { vector.key(0, slot) } as u32) << self.shift;
            let mut range = 0;
            let mut step = self.starts.len() / 2;
            while step > 0 {
                // SAFETY: the length is a power of two, and `range + step` stays below it.
                let start = unsafe { *self.starts.get_unchecked(range + step) };
                range += select_unpredictable(start <= address, step, 0);
                step /= 2;
            }
            let found = self.records[range];
            hits |= bit & ones(found.is_some());
            // SAFETY: the slot is active; records have the table's record layout, the default the
            // result's.
            unsafe {
                match found {
                    Some(record) if vector.stamp_word.is_some() => vector.write_hit(slot, record),
                    _ => vector.write_result(slot, found.unwrap_or(vector.default)),
                }
            }
        });
        hits
    }
}

/// DIR-24-8, shared by readers and the writer. It is changed in place.
#[derive(Debug)]
pub(in crate::fast) struct Dir24_8 {
    /// A key is shifted left by `shift` to align it to 32 bits. Its upper `bits` bits index
    /// `slots`.
    shift: u32,
    bits: u32,
    slots: Slots,
    /// Chunk `k` holds the TBL8s from `8 << k` to `16 << k`.
    tbl8_chunks: [OnceLock<Zeroed<AtomicU32>>; (31 - FIRST_TBL8_CHUNK_LOG2) as usize],
    /// Indexed by the first bits of the address: the record of the longest prefix of at most
    /// [`ROOT_BITS`] bits, or 0.
    roots: Box<[AtomicU32; 1 << ROOT_BITS]>,
    directory: Arc<Directory>,
    /// There are, or were, more than [`EARLY_PREFETCH_MIN`] entries, or it was made for as many.
    prefetches_early: AtomicBool,
    /// The processor has AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    uses_simd: bool,
}

impl Dir24_8 {
    fn new(width: u32, arena: &Arena) -> Self {
        let bits = width.min(24);
        Dir24_8 {
            shift: 32 - width,
            bits,
            roots: Box::new([const { AtomicU32::new(0) }; 1 << ROOT_BITS]),
            slots: Slots::new(bits, arena),
            tbl8_chunks: [const { OnceLock::new() }; (31 - FIRST_TBL8_CHUNK_LOG2) as usize],
            directory: Arc::clone(arena.directory()),
            prefetches_early: AtomicBool::new(false),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            uses_simd: has_avx512_vbmi(),
        }
    }

    /// The slot of a left-aligned address.
    #[inline(always)]
    fn slot(&self, address: u32) -> &AtomicU32 {
        self.slots.get((address >> (32 - self.bits)) as usize)
    }

    /// The roots that a prefix of at most [`ROOT_BITS`] bits covers.
    fn roots_of(&self, address: u32, length: u32) -> &[AtomicU32] {
        let first = (address >> (32 - ROOT_BITS)) as usize;
        &self.roots[first..first + (1 << (ROOT_BITS - length))]
    }

    /// A TBL8 that exists.
    #[inline]
    fn tbl8(&self, tbl8: u32) -> &[AtomicU32] {
        let chunk = tbl8.ilog2() - FIRST_TBL8_CHUNK_LOG2;
        let start = (tbl8 - (1 << FIRST_TBL8_CHUNK_LOG2 << chunk)) as usize * 256;
        match self.tbl8_chunks[chunk as usize].get() {
            Some(chunk) => &chunk[start..start + 256],
            None => &[],
        }
    }

    /// The record number for an address whose slot contains `number`; 0 for a miss.
    #[inline(always)]
    fn resolve(&self, number: u32, address: u32) -> u32 {
        if number & TBL8_FLAG == 0 {
            return number;
        }
        self.resolve_tbl8(number & !TBL8_FLAG, address)
    }

    /// Not inlined, so that the rest is compiled into the callers' loops.
    #[inline(never)]
    fn resolve_tbl8(&self, tbl8: u32, address: u32) -> u32 {
        self.number_in_tbl8(tbl8, address).load(Ordering::Acquire)
    }

    /// The record number for an address in a TBL8 that exists.
    #[inline]
    fn number_in_tbl8(&self, tbl8: u32, address: u32) -> &AtomicU32 {
        let number = self.tbl8(tbl8).get((address & 0xff) as usize);
        number.unwrap_or(self.root(address))
    }

    /// The record number of the longest prefix of at most [`ROOT_BITS`] bits.
    #[inline(always)]
    fn root(&self, address: u32) -> &AtomicU32 {
        &self.roots[(address >> (32 - ROOT_BITS)) as usize]
    }

    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.uses_simd {
            // SAFETY: the processor has these features.
            return unsafe { self.lookup_simd(vector) };
        }
        if is_contiguous(vector.active) {
            self.lookup_slots::<true>(vector)
        } else {
            self.lookup_slots::<false>(vector)
        }
    }

    /// Whether lookups use AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(super) fn uses_simd(&self) -> bool {
        self.uses_simd
    }

    /// The addresses of slots, if there are enough entries that prefetching them as soon as keys
    /// are known pays.
    #[inline]
    pub(super) fn slot_addressing(&self) -> Option<SlotAddressing> {
        let (base, skip_mask) = self.slots.addressing();
        self.prefetches_early
            .load(Ordering::Relaxed)
            .then_some(SlotAddressing { base, skip_mask })
    }

    /// Whether slots exceed the near caches, so that a prefetch pays.
    pub(super) fn needs_prefetch(&self) -> bool {
        size_of::<AtomicU32>() << self.bits > SLOTS_PREFETCH_MIN_BYTES
    }

    /// Queues the addresses that a lookup of these keys reads first.
    #[inline(always)]
    pub(super) fn queue_slots<const CONTIGUOUS: bool>(&self, active: u64, keys: &[u64], queue: &mut PrefetchQueue) {
        let (slots, shift, skip) = (&self.slots, self.shift, 32 - self.bits);
        queue.fill::<CONTIGUOUS>(active, keys, |key| {
            slots.address(((key as u32) << shift >> skip) as usize).cast()
        });
    }

    /// A lookup without AVX-512.
    #[inline(always)]
    fn lookup_slots<const CONTIGUOUS: bool>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        let vector = *vector;
        let (shift, skip) = (self.shift, 32 - self.bits);
        let slots = &self.slots;
        let directory = &*self.directory;
        let active = vector.active;
        let mut records = [vector.default; VECTOR_SLOTS];
        if !vector.is_prefetched {
            each_slot::<CONTIGUOUS>(active, |slot, _| {
                // SAFETY: the slot is active, and keys have a word.
                let key = unsafe { vector.key(0, slot) };
                prefetch(slots.address(((key as u32) << shift >> skip) as usize));
            });
        }
        let roots = &*self.roots;
        let mut hits = 0;
        each_slot::<CONTIGUOUS>(active, |slot, bit| {
            // SAFETY: the slot is active, and keys have a word.
            let address = (unsafe { vector.key(0, slot) } as u32) << shift;
            let number = slots.get((address >> skip) as usize).load(Ordering::Acquire);
            let number = self.resolve(number, address);
            let root = roots[(address >> (32 - ROOT_BITS)) as usize].load(Ordering::Acquire);
            let number = select_unpredictable(number == 0, root, number);
            let hit = number != 0;
            // SAFETY: numbers in the slots were allocated, and so was `FIRST_RECORD`, see
            // `Lpm::new`.
            let record = unsafe { directory.record(number.max(FIRST_RECORD)) };
            let record = select_unpredictable(hit, record, vector.default);
            prefetch(record.as_ptr());
            hits |= bit & ones(hit);
            records[slot & (VECTOR_SLOTS - 1)] = record;
        });
        // SAFETY: records have the table's record layout, the default the result's.
        unsafe {
            match vector.result_words() {
                1 => write_results::<CONTIGUOUS, 1>(vector, &records),
                2 => write_results::<CONTIGUOUS, 2>(vector, &records),
                _ => each_slot::<CONTIGUOUS>(active, |slot, _| {
                    vector.write_result(slot, records[slot & (VECTOR_SLOTS - 1)])
                }),
            }
        }
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(hits, |slot, _| {
                // SAFETY: records that were hit have the table's record layout, so they have this
                // word.
                unsafe { records[slot & (VECTOR_SLOTS - 1)].add(stamp_word).as_ref() }
                    .store(vector.now, Ordering::Relaxed);
            });
        }
        hits
    }
}

/// Copies the results of all active slots, of `WORDS` words each.
///
/// # Safety
/// Results have that many words, and the records no fewer.
#[inline(always)]
unsafe fn write_results<const CONTIGUOUS: bool, const WORDS: usize>(
    vector: VectorLookup<'_>,
    records: &[NonNull<AtomicU64>; VECTOR_SLOTS],
) {
    each_slot::<CONTIGUOUS>(vector.active, |slot, _| {
        let record = records[slot & (VECTOR_SLOTS - 1)];
        for word in 0..WORDS {
            // SAFETY: the slot is active, and the caller's promise.
            unsafe { vector.set_result(word, slot, record.add(word).as_ref().load(Ordering::Relaxed)) };
        }
    });
}

// ----------------------------------------------------------------------------------------- writer

/// The writer's side: prefixes per length, and the structure built from them.
#[derive(Debug)]
pub(super) struct Lpm {
    width: u32,
    /// Records may be placed in pages near their slots.
    paged: bool,
    /// Per length the left-aligned prefixes, with their record numbers.
    rules: Vec<FxHashMap<u32, u32>>,
    entries: usize,
    /// It is made for more than [`EARLY_PREFETCH_MIN`] entries.
    large: bool,
    /// Used while there are few prefixes, on processors with AVX-512.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    ranges: Option<ranges::RangeWriter>,
    /// The published DIR-24-8 structure, once there are more than few prefixes.
    dir24: Option<Arc<Dir24_8>>,
    /// Rules were changed that `dir24` does not contain yet.
    deferred: bool,
    /// The next TBL8 number that was never used.
    next_tbl8: u32,
    /// TBL8 numbers that can be reused.
    free_tbl8s: Recycler,
    /// Number of rules longer than 24 bits, per TBL8.
    tbl8_rules: FxHashMap<u32, u32>,
    /// Record numbers by handle, with `idle_timeout` or counts.
    handles: Option<FxHashMap<u32, u32>>,
    /// Handles by record number, in tables with counts. There the head of a record has the record's
    /// own number in place of the handle, so that the record can be found from a head.
    owners: Owners,
}

/// The view that readers get.
pub(super) enum LpmView {
    BinarySearchRanges(BinarySearchRanges),
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    MultiwayRanges(MultiwayRanges),
    Dir24_8(Arc<Dir24_8>),
}

/// The shortest prefix length in the same array of a [`Dir24_8`] (roots or slots) as prefixes of
/// this length.
fn shortest_in_array(length: u32) -> u32 {
    if length > ROOT_BITS { ROOT_BITS + 1 } else { 0 }
}

/// The mask of a prefix length.
fn mask(length: u32) -> u32 {
    if length == 0 { 0 } else { u32::MAX << (32 - length) }
}

impl Lpm {
    /// For a key of 1 to 32 bits. `expected` entries are about to be inserted. `paged`: the program
    /// declares [`PAGED_MIN`] entries or more.
    pub(super) fn new(width: u32, paged: bool, expected: usize, arena: &mut Arena) -> Self {
        let large = expected > EARLY_PREFETCH_MIN;
        // Its number is `FIRST_RECORD`. Readers load it for a miss; it is never used otherwise.
        arena.allocate();
        Lpm {
            width,
            paged: paged && width >= pages::SLOT_BITS,
            rules: vec![FxHashMap::default(); width as usize + 1],
            entries: 0,
            large,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            ranges: (!large && has_avx512_vbmi()).then(ranges::RangeWriter::new),
            dir24: None,
            deferred: false,
            next_tbl8: 1 << FIRST_TBL8_CHUNK_LOG2,
            free_tbl8s: Recycler::new(Arc::clone(arena.epochs())),
            tbl8_rules: FxHashMap::default(),
            handles: (arena.layout().stamp_word.or(arena.layout().counts).is_some()).then(FxHashMap::default),
            owners: Owners::default(),
        }
    }

    /// A record for a prefix. The slot near which it is placed is chosen by a hash of the prefix,
    /// among the slots that the prefix covers: always using the first slot would give power-of-two
    /// strides, and conflicts in the caches' sets.
    fn record(&self, arena: &mut Arena, (address, length): (u32, u32), result: &[u64], stamp: u64) -> Option<Record> {
        if !self.paged || (self.entries as u64) < PAGED_MIN {
            return arena.record(result, &[], stamp);
        }
        arena.allocate_pages();
        let host_bits = pages::SLOT_BITS.saturating_sub(length);
        let hash = (address ^ length).wrapping_mul(0x9e37_79b9);
        let within = hash.checked_shr(u32::BITS - host_bits).unwrap_or(0);
        arena.record_near((address >> (u32::BITS - pages::SLOT_BITS)) + within, result, stamp)
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        let maps: usize = self.rules.iter().map(|m| m.capacity() * 9).sum();
        let dir24 = self.dir24.as_ref().map_or(0, |d| {
            let tbl8_chunks = d.tbl8_chunks.iter().filter_map(|g| g.get());
            d.slots.bytes() + tbl8_chunks.map(Zeroed::bytes).sum::<usize>()
        });
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        let dir24 = dir24 + self.ranges.as_ref().map_or(0, ranges::RangeWriter::bytes);
        let handles = self.handles.as_ref().map_or(0, |h| h.capacity() * 9);
        maps + dir24 + self.tbl8_rules.capacity() * 9 + handles + self.owners.bytes()
    }

    /// Whether there are few enough prefixes for [`BinarySearchRanges`].
    fn is_small(&self) -> bool {
        self.dir24.is_none() && !self.large && self.entries <= MAX_BINARY_SEARCH_PREFIXES
    }

    /// Whether every change replaces the view, rather than changing it in place.
    pub(super) fn is_copy_on_write(&self) -> bool {
        self.dir24.is_none()
    }

    /// Postpones changes of readers' view until [`Lpm::view`].
    pub(super) fn defer(&mut self) {
        self.deferred = true;
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let number = *self.handles.as_ref()?.get(&handle)?;
        Some(arena.stamp(arena.get(number)))
    }

    /// The record number of an entry, in tables with `idle_timeout` or counts.
    pub(super) fn record_number(&self, handle: u32) -> Option<u32> {
        self.handles.as_ref()?.get(&handle).copied()
    }

    /// Handles and record numbers, in tables with `idle_timeout` or counts.
    pub(super) fn record_numbers(&self) -> impl Iterator<Item = (u32, u32)> {
        let all = self.handles.iter().flatten();
        all.map(|(handle, number)| (*handle, *number))
    }

    /// In tables with counts: carries the counts over from the entry's previous record, and puts
    /// the record's number into its head.
    fn carry_counts(&mut self, arena: &Arena, rec: Record, head: u64, handle: u32, before: Option<(u32, u32)>) {
        if arena.layout().counts.is_none() {
            return;
        }
        arena.set(rec, 0, head & !u64::from(u32::MAX) | u64::from(rec.number));
        let before = before.filter(|(owner, _)| *owner == handle);
        let counted = before.map_or(HitCount::default(), |(_, number)| arena.counted(number));
        arena.set_counted(rec.number, counted);
        self.owners.set(arena, rec.number, handle);
    }

    /// The handle of the entry that owns a record.
    fn owner(&self, arena: &Arena, number: u32) -> u32 {
        match arena.layout().counts {
            Some(_) => self.owners.get(arena, number),
            None => arena.word(arena.get(number), 0).load(Ordering::Relaxed) as u32,
        }
    }

    /// The left-aligned prefix of a rule, and its length.
    fn prefix(&self, rule: &Rule) -> (u32, u32) {
        let address = (rule.value[0] as u32) << (32 - self.width);
        (address & mask(rule.prefix), rule.prefix)
    }

    /// Inserts a rule. True: readers need a new view.
    pub(super) fn insert_rule(&mut self, arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        let (address, length) = self.prefix(rule);
        let old = self.rules[length as usize].get(&address).copied();
        let stamp = old.map_or(stamp, |n| arena.stamp(arena.get(n)).max(stamp));
        let Some(rec) = self.record(arena, (address, length), result, stamp) else {
            return false;
        };
        let before = old.map(|old| (self.owner(arena, old), old));
        self.carry_counts(arena, rec, result[0], rule.handle, before);
        self.rules[length as usize].insert(address, rec.number);
        if let Some(handles) = &mut self.handles {
            // The handle may belong to another entry by now, whose removal is reported later:
            // handles are reused at once.
            if let Some((owner, old)) = before
                && handles.get(&owner) == Some(&old)
            {
                handles.remove(&owner);
            }
            handles.insert(rule.handle, rec.number);
        }
        self.entries += usize::from(old.is_none());
        if let Some(old) = old {
            arena.retire(arena.get(old));
        }
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if self.insert_range(address, length, old, rec.number) {
            return true;
        }
        if self.deferred || self.is_small() {
            return true;
        }
        let Some(dir24) = self.dir24.clone() else {
            return true;
        };
        self.update_early_prefetch(&dir24);
        let from = old.unwrap_or_else(|| self.parent(address, length, shortest_in_array(length)));
        self.replace(&dir24, address, length, from, rec.number);
        if old.is_none() && length > 24 {
            *self.tbl8_rules.entry(address >> 8).or_default() += 1;
        }
        self.free_tbl8s.flush();
        false
    }

    /// Removes a rule. True: readers need a new view.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        let (address, length) = self.prefix(rule);
        let Some(&old) = self.rules[length as usize].get(&address) else {
            return false;
        };
        let rec = arena.get(old);
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
        let Some(dir24) = self.dir24.clone().filter(|_| !self.deferred) else {
            return true;
        };
        let to = self.parent(address, length, shortest_in_array(length));
        self.replace(&dir24, address, length, old, to);
        if length > 24 {
            self.release(&dir24, address);
        }
        self.free_tbl8s.flush();
        false
    }

    /// Inserts a rule into the ranges. False: this table has none, or too many prefixes by now.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn insert_range(&mut self, address: u32, length: u32, old: Option<u32>, new: u32) -> bool {
        let Some(mut ranges) = self.ranges.take().filter(|_| self.entries <= ranges::MAX_PREFIXES) else {
            return false;
        };
        let from = old.unwrap_or_else(|| self.parent(address, length, 0));
        ranges.replace(address, address | !mask(length), from, new);
        self.ranges = Some(ranges);
        true
    }

    /// The record of the longest shorter prefix of at least `shortest` bits, or 0.
    fn parent(&self, address: u32, length: u32, shortest: u32) -> u32 {
        (shortest..length)
            .rev()
            .find_map(|l| self.rules[l as usize].get(&(address & mask(l))).copied())
            .unwrap_or(0)
    }

    /// Replaces record number `from` by `to` within a prefix. Longer prefixes have other numbers
    /// and so stay as they are.
    fn replace(&mut self, dir24: &Dir24_8, address: u32, length: u32, from: u32, to: u32) {
        let swap = |n: &AtomicU32| {
            if n.load(Ordering::Relaxed) == from {
                n.store(to, Ordering::Release);
            }
        };
        if length <= ROOT_BITS {
            dir24.roots_of(address, length).iter().for_each(swap);
        } else if length <= dir24.bits {
            let first = (address >> (32 - dir24.bits)) as usize;
            for slot in dir24.slots.range(first..first + (1 << (dir24.bits - length))) {
                let number = slot.load(Ordering::Relaxed);
                if number & TBL8_FLAG == 0 {
                    swap(slot);
                } else {
                    dir24.tbl8(number & !TBL8_FLAG).iter().for_each(swap);
                }
            }
        } else {
            let first = (address & 0xff) as usize;
            let tbl8 = self.make_tbl8(dir24, address);
            dir24.tbl8(tbl8)[first..first + (1 << (32 - length))]
                .iter()
                .for_each(swap);
        }
    }

    /// The TBL8 of an address, created if there is none.
    fn make_tbl8(&mut self, dir24: &Dir24_8, address: u32) -> u32 {
        let slot = dir24.slot(address);
        let number = slot.load(Ordering::Relaxed);
        if number & TBL8_FLAG != 0 {
            return number & !TBL8_FLAG;
        }
        let tbl8 = self.free_tbl8s.pop().unwrap_or_else(|| {
            self.next_tbl8 += 1;
            self.next_tbl8 - 1
        });
        let chunk = tbl8.ilog2() - FIRST_TBL8_CHUNK_LOG2;
        dir24.tbl8_chunks[chunk as usize].get_or_init(|| Zeroed::new(256 << FIRST_TBL8_CHUNK_LOG2 << chunk));
        for n in dir24.tbl8(tbl8) {
            n.store(number, Ordering::Relaxed);
        }
        slot.store(tbl8 | TBL8_FLAG, Ordering::Release);
        tbl8
    }

    /// A rule of a TBL8 was removed: a TBL8 without rules is removed too.
    fn release(&mut self, dir24: &Dir24_8, address: u32) {
        let Some(rules) = self.tbl8_rules.get_mut(&(address >> 8)) else {
            return;
        };
        *rules -= 1;
        if *rules > 0 {
            return;
        }
        self.tbl8_rules.remove(&(address >> 8));
        let slot = dir24.slot(address);
        let number = slot.load(Ordering::Relaxed);
        if number & TBL8_FLAG != 0 {
            let tbl8 = number & !TBL8_FLAG;
            slot.store(dir24.tbl8(tbl8)[0].load(Ordering::Relaxed), Ordering::Release);
            self.free_tbl8s.retire(tbl8);
        }
    }

    /// The view that readers use from now on.
    pub(super) fn view(&mut self, arena: &mut Arena) -> LpmView {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(ranges) = &self.ranges {
            self.deferred = false;
            return LpmView::MultiwayRanges(ranges.view(self.width, arena));
        }
        if self.is_small() {
            self.deferred = false;
            return LpmView::BinarySearchRanges(self.binary_search_ranges(arena));
        }
        match &self.dir24 {
            Some(dir24) if !self.deferred => LpmView::Dir24_8(Arc::clone(dir24)),
            _ => LpmView::Dir24_8(self.build(arena)),
        }
    }

    /// All rules, the shortest first.
    fn sorted(&self) -> impl Iterator<Item = (u32, u32, u32)> {
        let lengths = (0..).zip(&self.rules);
        lengths.flat_map(|(length, rules)| rules.iter().map(move |(a, n)| (*a, length, *n)))
    }

    /// Builds the ranges for binary search.
    fn binary_search_ranges(&self, arena: &Arena) -> BinarySearchRanges {
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
                covering.last().map(|(.., n)| arena.get(n).words)
            })
            .collect();
        let padded = starts.len().next_power_of_two();
        starts.resize(padded, u32::MAX);
        let last = records.last().copied().flatten();
        records.resize(padded, last);
        BinarySearchRanges {
            shift: 32 - self.width,
            starts,
            records,
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// Builds DIR-24-8 from all prefixes.
    fn build(&mut self, arena: &mut Arena) -> Arc<Dir24_8> {
        if self.paged {
            arena.allocate_pages();
        }
        self.deferred = false;
        self.next_tbl8 = 1 << FIRST_TBL8_CHUNK_LOG2;
        self.free_tbl8s = Recycler::new(Arc::clone(arena.epochs()));
        self.tbl8_rules.clear();
        let dir24 = Arc::new(Dir24_8::new(self.width, arena));
        let rules = std::mem::take(&mut self.rules);
        for (length, rules) in (0..).zip(&rules) {
            for (&address, &number) in rules {
                self.fill(&dir24, address, length, number);
            }
        }
        self.rules = rules;
        self.update_early_prefetch(&dir24);
        self.dir24 = Some(Arc::clone(&dir24));
        dir24
    }

    /// Enables early prefetches once there are enough entries.
    fn update_early_prefetch(&self, dir24: &Dir24_8) {
        if self.large || self.entries > EARLY_PREFETCH_MIN {
            dir24.prefetches_early.store(true, Ordering::Relaxed);
        }
    }

    /// Adds a rule to a structure that contains no longer ones.
    fn fill(&mut self, dir24: &Dir24_8, address: u32, length: u32, number: u32) {
        if length <= ROOT_BITS {
            for root in dir24.roots_of(address, length) {
                root.store(number, Ordering::Relaxed);
            }
        } else if length <= dir24.bits {
            let first = (address >> (32 - dir24.bits)) as usize;
            for slot in dir24.slots.range(first..first + (1 << (dir24.bits - length))) {
                slot.store(number, Ordering::Relaxed);
            }
        } else {
            *self.tbl8_rules.entry(address >> 8).or_default() += 1;
            let tbl8 = self.make_tbl8(dir24, address);
            let first = (address & 0xff) as usize;
            for n in &dir24.tbl8(tbl8)[first..first + (1 << (32 - length))] {
                n.store(number, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
