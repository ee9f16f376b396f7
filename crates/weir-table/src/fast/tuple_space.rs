//! Tuple space search, for many rules: a hash table per mask (a *tuple*). Lookups probe the tuples
//! by falling rank of their best rule.
//!
//! Rules with the same mask and value form a chain of records by falling rank; ranges are compared
//! along it. A packet probes a tuple only if that tuple's best rule outranks the packet's best
//! match so far. A rule takes its record (result, key, three words, two per range key) and 15 to 30
//! bytes of its tuple's hash table. LPM keys wider than 32 bits, and those beside exact keys, are
//! rules whose mask is the prefix: the first hit ends the search.
#![allow(unsafe_code)]

use crate::fast::cuckoo_index::CuckooIndex;
use crate::fast::cuckoo_records::load_word;
use crate::fast::hash::Seed;
use crate::fast::layout::FieldSlot;
use crate::fast::mem::{Arena, Directory, Record};
use crate::fast::rule::{RankWords, Rule, RuleEncoder, in_bounds};
use crate::fast::tuple_order::{TupleOrder, TupleView};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit, ones};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A tuple's buckets are prefetched if they take more bytes than this. Here a prefetch is cheap,
/// since all hashes are known, and the tuples of a table compete for the caches. No measurement of
/// the value is on record.
const TUPLE_PREFETCH_MIN_BYTES: usize = 64 << 10;
/// Fewer active keys than this are hashed one by one.
const FEW_KEYS: u32 = 8;

/// Words of a record after the key: the rank (two words), then one with the number of the next
/// record in the chain and, in the upper half, the record's own number. Range bounds follow.
pub(super) const RANK_AND_NEXT_WORDS: usize = 3;

/// Readers' view. It is replaced when a tuple appears, disappears or grows, or when its best rule
/// changes.
#[derive(Debug)]
pub(super) struct TupleSpaceView {
    order: TupleOrder,
    seed: Seed,
    /// The first key word of a record.
    first_key_word: usize,
    /// The first rank word of a record.
    rank_word: usize,
    /// The range keys, which are compared along a chain.
    ranges: Arc<[FieldSlot]>,
    /// Finds records by number, and keeps them alive.
    directory: Arc<Directory>,
}

/// The best match per slot so far.
struct Best {
    /// The record of the match, or the default.
    records: [NonNull<AtomicU64>; VECTOR_SLOTS],
    /// The rank of the match.
    ranks: [RankWords; VECTOR_SLOTS],
    /// The slots with a match.
    found: u64,
}

impl TupleSpaceView {
    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        match vector.key_words() {
            1 => self.lookup_words::<1>(vector),
            2 => self.lookup_words::<2>(vector),
            _ => self.lookup_words::<0>(vector),
        }
    }

    /// `WORDS`: words of the key, or 0 for any number.
    #[inline(always)]
    fn lookup_words<const WORDS: usize>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        let n = if WORDS == 0 { vector.key_words() } else { WORDS };
        let (vector, seed) = (*vector, self.seed);
        let mut best = Best {
            records: [vector.default; VECTOR_SLOTS],
            ranks: [(0, 0); VECTOR_SLOTS],
            found: 0,
        };
        let mut searching = vector.active;
        let mut hashes = [0; VECTOR_SLOTS];
        let count = VECTOR_SLOTS - vector.active.leading_zeros() as usize;
        'tuples: for chunk in self.order.chunks() {
            for (view, mask) in chunk.tuples(n) {
                each_bit(searching & best.found, |slot, bit| {
                    searching &= !(bit & ones(best.ranks[slot & (VECTOR_SLOTS - 1)] >= view.best_rank));
                });
                if searching == 0 {
                    break 'tuples;
                }
                // Few keys are hashed one by one, many all at once, including those that need no
                // probe.
                let hashes = &mut hashes[..count];
                if searching.count_ones() < FEW_KEYS {
                    each_bit(searching, |slot, _| {
                        // SAFETY: the slots in `searching` are active, and keys have `n` words.
                        let terms = (0..n).map(|w| seed.term(w, unsafe { vector.key(w, slot) } & mask[w]));
                        hashes[slot & (VECTOR_SLOTS - 1)] = seed.finish_sum(terms.fold(0, u64::wrapping_add));
                    });
                } else {
                    hashes.fill(0);
                    for (w, mask) in mask.iter().enumerate().take(n) {
                        // SAFETY: keys have `n` words, and each row reaches to the last active
                        // slot.
                        let row = unsafe { std::slice::from_raw_parts(vector.key_row(w), count) };
                        for (hash, key) in hashes.iter_mut().zip(row) {
                            *hash = hash.wrapping_add(seed.term(w, key & mask));
                        }
                    }
                    hashes.iter_mut().for_each(|h| *h = seed.finish_sum(*h));
                }
                if view.buckets.bytes() > TUPLE_PREFETCH_MIN_BYTES {
                    each_bit(searching, |slot, _| {
                        view.buckets.prefetch(hashes[slot & (VECTOR_SLOTS - 1)])
                    });
                }
                let first_bucket_probe = view.buckets.first_bucket_probe();
                let mut candidates = 0;
                each_bit(searching, |slot, bit| {
                    candidates |= bit & ones(!first_bucket_probe.is_absent(hashes[slot & (VECTOR_SLOTS - 1)]));
                });
                // A loop, not a closure: a closure of this size would not be inlined, and so be
                // compiled without the caller's target features.
                while candidates != 0 {
                    let slot = candidates.trailing_zeros() as usize;
                    candidates &= candidates - 1;
                    // SAFETY: the slot is active, and keys have as many words as the mask.
                    let key = |w| unsafe { vector.key(w, slot) };
                    self.probe(view, hashes[slot & (VECTOR_SLOTS - 1)], key, mask, slot, &mut best);
                }
            }
        }
        each_bit(vector.active, |slot, _| {
            // SAFETY: the slot is active; records have the table's record layout, the default the
            // result's.
            unsafe { vector.write_result(slot, best.records[slot & (VECTOR_SLOTS - 1)]) };
        });
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(best.found, |slot, _| {
                // SAFETY: records that were found have the table's record layout.
                unsafe { best.records[slot & (VECTOR_SLOTS - 1)].add(stamp_word).as_ref() }
                    .store(vector.now, Ordering::Relaxed);
            });
        }
        best.found
    }

    /// Probes one tuple for one packet.
    #[inline(always)]
    fn probe(
        &self,
        view: &TupleView,
        hash: u64,
        key: impl Fn(usize) -> u64,
        mask: &[u64],
        slot: usize,
        best: &mut Best,
    ) {
        let first = view.buckets.find(hash, |record| {
            let differ = |w: usize, m: &u64| {
                // SAFETY: records in the buckets and in chains have the table's record layout, with
                // the key from `first_key_word`.
                (key(w) & m) ^ unsafe { load_word(record, self.first_key_word + w) }
            };
            mask.iter().enumerate().fold(0, |d, (w, m)| d | differ(w, m)) == 0
        });
        let mut next = first;
        while let Some(record) = next {
            // SAFETY: records in the buckets and in chains have the table's record layout, with
            // rank, next and bounds from `rank_word`.
            let rank = unsafe { (load_word(record, self.rank_word), load_word(record, self.rank_word + 1)) };
            let found = best.found >> slot & 1 != 0;
            if found && best.ranks[slot & (VECTOR_SLOTS - 1)] >= rank {
                return;
            }
            // SAFETY: records in the buckets and in chains have the table's record layout, with
            // rank, next and bounds from `rank_word`.
            let inside = in_bounds(&self.ranges, &key, |w| unsafe {
                load_word(record, self.rank_word + RANK_AND_NEXT_WORDS + w)
            });
            if inside {
                best.found |= 1 << slot;
                best.ranks[slot & (VECTOR_SLOTS - 1)] = rank;
                best.records[slot & (VECTOR_SLOTS - 1)] = record;
                return;
            }
            // SAFETY: records in the buckets and in chains have the table's record layout, with
            // rank, next and bounds from `rank_word`. Numbers in chains were given out.
            next = unsafe {
                let number = record.add(self.rank_word + 2).as_ref().load(Ordering::Acquire) as u32;
                (number != 0).then(|| self.directory.record(number))
            };
        }
    }
}

/// The rules with one mask.
#[derive(Debug)]
struct Tuple {
    buckets: Arc<CuckooIndex>,
    /// Number of chains, not of rules.
    chain_count: usize,
    /// The ranks of all its rules.
    ranks: BTreeSet<RankWords>,
    /// The best rank by which `order` has the tuple; `None`: it does not.
    rank_in_order: Option<RankWords>,
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct TupleSpace {
    encoder: RuleEncoder,
    seed: Seed,
    /// Tuples by mask.
    tuples: FxHashMap<Box<[u64]>, Tuple>,
    /// The order that the next view has.
    order: TupleOrder,
    entries: usize,
    /// Record numbers by handle, with `idle_timeout`.
    number_by_handle: Option<FxHashMap<u32, u32>>,
}

/// A record for a rule, in this structure's layout.
pub(super) fn record(arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) -> Option<Record> {
    let rec = arena.record(result, &rule.value, stamp)?;
    let offset = arena.layout().extra_offset;
    arena.set(rec, offset, rule.rank.0);
    arena.set(rec, offset + 1, rule.rank.1);
    arena.set(rec, offset + 2, u64::from(rec.number) << 32);
    for (i, bound) in rule.bounds.iter().enumerate() {
        arena.set(rec, offset + RANK_AND_NEXT_WORDS + i, *bound);
    }
    Some(rec)
}

/// The next record of a chain.
fn next(arena: &Arena, rec: Record) -> Option<Record> {
    let number = arena.word(rec, arena.layout().extra_offset + 2).load(Ordering::Relaxed) as u32;
    (number != 0).then(|| arena.get(number))
}

/// Sets the next record of a chain.
fn set_next(arena: &Arena, rec: Record, next: Option<Record>) {
    let value = u64::from(rec.number) << 32 | next.map_or(0, |n| u64::from(n.number));
    arena
        .word(rec, arena.layout().extra_offset + 2)
        .store(value, Ordering::Release);
}

/// The rank of a record's rule.
fn rank(arena: &Arena, rec: Record) -> RankWords {
    let offset = arena.layout().extra_offset;
    (
        arena.word(rec, offset).load(Ordering::Relaxed),
        arena.word(rec, offset + 1).load(Ordering::Relaxed),
    )
}

/// The handle of a record's entry.
fn handle(arena: &Arena, rec: Record) -> u32 {
    arena.word(rec, 0).load(Ordering::Relaxed) as u32
}

impl TupleSpace {
    pub(super) fn new(encoder: RuleEncoder, stamps: bool) -> Self {
        TupleSpace {
            encoder,
            seed: Seed::random(),
            tuples: FxHashMap::default(),
            order: TupleOrder::default(),
            entries: 0,
            number_by_handle: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        let tuples = self.tuples.values();
        let tuples = tuples.map(|t| t.buckets.bytes() + t.ranks.len() * 24).sum::<usize>();
        tuples + self.order.bytes() + self.entries * 9
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let number = *self.number_by_handle.as_ref()?.get(&handle)?;
        Some(arena.stamp(arena.get(number)))
    }

    /// The hash of a rule's value.
    fn hash(&self, rule: &Rule) -> u64 {
        let words = rule.value.iter().enumerate();
        let terms = words.fold(0, |sum: u64, (w, v)| sum.wrapping_add(self.seed.term(w, *v)));
        self.seed.finish_sum(terms)
    }

    /// The first record of the chain with the rule's value.
    fn chain(&self, arena: &Arena, tuple: &Tuple, rule: &Rule) -> Option<Record> {
        let layout = arena.layout();
        let found = tuple.buckets.find(self.hash(rule), |record| {
            let mut words = rule.value.iter().enumerate();
            // SAFETY: records in the buckets are of this arena and have its layout.
            words.all(|(w, v)| unsafe { load_word(record, layout.key_offset + w) } == *v)
        })?;
        // SAFETY: the record is one of the buckets', so it is of this arena and has its layout.
        Some(arena.get((unsafe { load_word(found, layout.extra_offset + 2) } >> 32) as u32))
    }

    /// The record of an entry.
    pub(super) fn find(&self, arena: &Arena, rule: &Rule) -> Option<Record> {
        let tuple = self.tuples.get(rule.mask.as_slice())?;
        let mut candidate = self.chain(arena, tuple, rule);
        while let Some(rec) = candidate {
            if handle(arena, rec) == rule.handle {
                return Some(rec);
            }
            candidate = next(arena, rec);
        }
        None
    }

    /// Inserts a record, or replaces that of the same entry. True: readers need a new view.
    pub(super) fn insert_rule(&mut self, arena: &mut Arena, rule: &Rule, rec: Record) -> bool {
        if let Some(number_by_handle) = &mut self.number_by_handle {
            number_by_handle.insert(rule.handle, rec.number);
        }
        let mut needs_view = false;
        if let Some(old) = self.find(arena, rule) {
            if rank(arena, old) == rule.rank {
                self.swap(arena, rule, old, rec);
                return false;
            }
            needs_view = self.unlink(arena, rule, old);
        }
        self.link(arena, rule, rec) | needs_view
    }

    /// Replaces a record of a chain by one of the same rank.
    fn swap(&mut self, arena: &mut Arena, rule: &Rule, old: Record, new: Record) {
        let Some(tuple) = self.tuples.get(rule.mask.as_slice()) else {
            return;
        };
        set_next(arena, new, next(arena, old));
        match self.before(arena, tuple, rule, old) {
            Some(before) => set_next(arena, before, Some(new)),
            None => tuple.buckets.replace(self.hash(rule), old.words, new.words),
        }
        arena.retire(old);
    }

    /// The record before another in its chain.
    fn before(&self, arena: &Arena, tuple: &Tuple, rule: &Rule, rec: Record) -> Option<Record> {
        let mut candidate = self.chain(arena, tuple, rule).filter(|first| *first != rec);
        while let Some(here) = candidate {
            let after = next(arena, here);
            if after == Some(rec) {
                return Some(here);
            }
            candidate = after;
        }
        None
    }

    /// Adds a record to its tuple. True: readers need a new view.
    fn link(&mut self, arena: &Arena, rule: &Rule, rec: Record) -> bool {
        self.entries += 1;
        let hash = self.hash(rule);
        if !self.tuples.contains_key(rule.mask.as_slice()) {
            let tuple = Tuple {
                buckets: Arc::new(CuckooIndex::new(0)),
                chain_count: 0,
                ranks: BTreeSet::new(),
                rank_in_order: None,
            };
            self.tuples.insert(rule.mask.as_slice().into(), tuple);
        }
        let first = self
            .tuples
            .get(rule.mask.as_slice())
            .and_then(|t| self.chain(arena, t, rule));
        let Some(tuple) = self.tuples.get_mut(rule.mask.as_slice()) else {
            return false;
        };
        tuple.ranks.insert(rule.rank);
        let has_new_buckets = match first {
            Some(first) => {
                insert_into_chain(arena, tuple, hash, rule, first, rec);
                false
            }
            None => {
                set_next(arena, rec, None);
                add_chain(arena, tuple, self.seed, hash, rule, rec)
            }
        };
        self.update_order(rule, has_new_buckets)
    }

    /// Updates the tuple's place in the order, if its best rank or its buckets differ from readers'
    /// view. True: readers need a new view.
    ///
    /// Readers find a changed chain at once, a changed order with the next view. Until then their
    /// order may have a rank that is too high, which costs a useless probe, or one that is too low,
    /// which gives the result from before the change.
    fn update_order(&mut self, rule: &Rule, has_new_buckets: bool) -> bool {
        let mask = rule.mask.as_slice();
        let Some(tuple) = self.tuples.get_mut(mask) else {
            return false;
        };
        let best_rank = tuple.ranks.last().copied();
        if best_rank == tuple.rank_in_order && !has_new_buckets {
            return false;
        }
        if let Some(before) = tuple.rank_in_order {
            self.order.remove(mask, before);
        }
        tuple.rank_in_order = best_rank;
        match best_rank {
            Some(best_rank) => {
                let buckets = Arc::clone(&tuple.buckets);
                self.order.insert(mask, TupleView { best_rank, buckets });
            }
            None => {
                self.tuples.remove(mask);
            }
        }
        true
    }

    /// Removes a rule. True: readers need a new view.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        let Some(rec) = self.find(arena, rule) else {
            return false;
        };
        if let Some(number_by_handle) = &mut self.number_by_handle {
            number_by_handle.remove(&rule.handle);
        }
        self.unlink(arena, rule, rec)
    }

    /// Removes a record from its tuple. True: readers need a new view.
    fn unlink(&mut self, arena: &mut Arena, rule: &Rule, rec: Record) -> bool {
        let hash = self.hash(rule);
        let Some(tuple) = self.tuples.get(rule.mask.as_slice()) else {
            return false;
        };
        let (before, after) = (self.before(arena, tuple, rule, rec), next(arena, rec));
        let mut last = false;
        match (before, after) {
            (Some(before), after) => set_next(arena, before, after),
            (None, Some(after)) => tuple.buckets.replace(hash, rec.words, after.words),
            (None, None) => {
                tuple.buckets.remove(hash, rec.words);
                last = true;
            }
        }
        let rank = rank(arena, rec);
        arena.retire(rec);
        self.entries -= 1;
        let Some(tuple) = self.tuples.get_mut(rule.mask.as_slice()) else {
            return false;
        };
        tuple.ranks.remove(&rank);
        tuple.chain_count -= usize::from(last);
        self.update_order(rule, false)
    }

    pub(super) fn view(&self, arena: &Arena) -> TupleSpaceView {
        TupleSpaceView {
            order: self.order.clone(),
            seed: self.seed,
            first_key_word: arena.layout().key_offset,
            rank_word: arena.layout().extra_offset,
            ranges: Arc::clone(&self.encoder.ranges),
            directory: Arc::clone(arena.directory()),
        }
    }
}

/// Inserts a record into the chain that begins with `first`.
fn insert_into_chain(arena: &Arena, tuple: &Tuple, hash: u64, rule: &Rule, first: Record, rec: Record) {
    if rank(arena, first) < rule.rank {
        set_next(arena, rec, Some(first));
        tuple.buckets.replace(hash, first.words, rec.words);
        return;
    }
    let mut before = first;
    let after = loop {
        match next(arena, before) {
            Some(after) if rank(arena, after) > rule.rank => before = after,
            after => break after,
        }
    };
    set_next(arena, rec, after);
    set_next(arena, before, Some(rec));
}

/// Adds a chain of one record to a tuple. True: the tuple has new buckets.
fn add_chain(arena: &Arena, tuple: &mut Tuple, seed: Seed, hash: u64, rule: &Rule, rec: Record) -> bool {
    tuple.chain_count += 1;
    let (n, first_key_word) = (rule.value.len(), arena.layout().key_offset);
    let hash_of = |r: NonNull<AtomicU64>| {
        // SAFETY: records in the buckets are of this arena and have its layout, with the key there.
        let terms = (0..n).map(|w| seed.term(w, unsafe { load_word(r, first_key_word + w) }));
        seed.finish_sum(terms.fold(0, u64::wrapping_add))
    };
    CuckooIndex::insert(&mut tuple.buckets, tuple.chain_count, hash, rec.words, hash_of)
}
