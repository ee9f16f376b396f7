//! Exact keys of any width with any results, where no structure of less memory fits (see
//! [`Plan`](crate::fast::structure::Plan)): a cuckoo hash table of pointers ([`CuckooIndex`]) to
//! records, out of line, that hold result and key. An entry takes its record, in lines or parts of
//! a line, and 15 to 30 bytes of the hash table.
//!
//! The lookup compares the first candidate of each key without a branch, and searches on only where
//! that fails. An update replaces the whole record, so readers never see a torn one.
#![allow(unsafe_code)]

use crate::fast::cuckoo_index::CuckooIndex;
use crate::fast::hash::Seed;
use crate::fast::mem::{Arena, Directory, prefetch};
use crate::fast::rule::Rule;
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit, ones};
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// If the buckets take more bytes than this, an additional pass prefetches them. It computes all
/// hashes once more. Records are prefetched in any case. No measurement of
/// the value is on record.
const INDEX_PREFETCH_MIN_BYTES: usize = 128 << 10;

/// Readers' view.
#[derive(Debug)]
pub(super) struct CuckooRecordsView {
    buckets: Arc<CuckooIndex>,
    seed: Seed,
    /// The first key word of a record.
    first_key_word: usize,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

/// Loads a word of a record, in any structure.
///
/// # Safety
/// The record is alive and has that word.
#[inline(always)]
pub(super) unsafe fn load_word(record: NonNull<AtomicU64>, word_index: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { record.add(word_index).as_ref() }.load(Ordering::Relaxed)
}

impl CuckooRecordsView {
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
        let vector = *vector;
        let seed = self.seed;
        let active = vector.active;
        // SAFETY: the slot is active, and keys have `n` words.
        let hash = |slot| seed.hash_words(n, |w| unsafe { vector.key(w, slot) });
        if self.buckets.bytes() > INDEX_PREFETCH_MIN_BYTES {
            each_bit(active, |slot, _| self.buckets.prefetch(hash(slot)));
        }
        let mut records = [vector.default; VECTOR_SLOTS];
        let first_bucket_probe = self.buckets.first_bucket_probe();
        let (mut has_candidate, mut pending) = (0, 0);
        each_bit(active, |slot, bit| {
            let candidate = first_bucket_probe.first_candidate(hash(slot));
            let some = !candidate.record.is_null();
            let record = select_unpredictable(some, candidate.record, vector.default.as_ptr());
            // SAFETY: one of them, whichever is not null.
            let record = unsafe { NonNull::new_unchecked(record) };
            prefetch(record.as_ptr());
            has_candidate |= bit & ones(some);
            pending |= bit & ones(!candidate.is_absent);
            records[slot & (VECTOR_SLOTS - 1)] = record;
        });
        let mut hits = 0;
        each_bit(active, |slot, bit| {
            let record = records[slot & (VECTOR_SLOTS - 1)];
            let differ = (0..n).fold(0, |d, w| {
                // SAFETY: the slot is active, and keys have `n` words; the record is one of the
                // buckets' or the default, which have the table's record layout with `n` key words
                // from `first_key_word`.
                d | unsafe { vector.key(w, slot) ^ load_word(record, self.first_key_word + w) }
            });
            let hit = (differ == 0) & (has_candidate & bit != 0);
            let record = select_unpredictable(hit, record, vector.default);
            records[slot & (VECTOR_SLOTS - 1)] = record;
            hits |= bit & ones(hit);
            // SAFETY: the slot is active; the record is one of the buckets' or the default, which
            // have the words of a result.
            unsafe { vector.write_result(slot, record) };
        });
        each_bit(pending & !hits, |slot, bit| {
            let found = self.buckets.find(hash(slot), |record| {
                // SAFETY: the slot is active, and keys have `n` words; the record is one of the
                // buckets' or the default, which have the table's record layout with `n` key words
                // from `first_key_word`.
                (0..n).all(|w| unsafe { vector.key(w, slot) == load_word(record, self.first_key_word + w) })
            });
            if let Some(record) = found {
                hits |= bit;
                records[slot & (VECTOR_SLOTS - 1)] = record;
                // SAFETY: the slot is active; the record is one of the buckets' or the default,
                // which have the words of a result.
                unsafe { vector.write_result(slot, record) };
            }
        });
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(hits, |slot, _| {
                // SAFETY: the slot hit, so the record is one of the buckets', which have the
                // table's record layout and so a word for the last hit.
                unsafe { records[slot & (VECTOR_SLOTS - 1)].add(stamp_word).as_ref() }
                    .store(vector.now, Ordering::Relaxed);
            });
        }
        hits
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct CuckooRecords {
    buckets: Arc<CuckooIndex>,
    seed: Seed,
    entries: usize,
    /// Record numbers by handle, with `idle_timeout`.
    number_by_handle: Option<FxHashMap<u32, u32>>,
}

impl CuckooRecords {
    pub(super) fn new(stamps: bool, expected: usize) -> Self {
        CuckooRecords {
            buckets: Arc::new(CuckooIndex::new(expected)),
            seed: Seed::random(),
            entries: 0,
            number_by_handle: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.buckets.bytes() + self.number_by_handle.as_ref().map_or(0, |h| h.capacity() * 9)
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let number = *self.number_by_handle.as_ref()?.get(&handle)?;
        Some(arena.stamp(arena.get(number)))
    }

    pub(super) fn view(&self, arena: &Arena) -> CuckooRecordsView {
        CuckooRecordsView {
            buckets: Arc::clone(&self.buckets),
            seed: self.seed,
            first_key_word: arena.layout().key_offset,
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// The hash of a key, and its record if it is there.
    fn find(&self, arena: &Arena, key: &[u64]) -> (u64, Option<NonNull<AtomicU64>>) {
        let hash = self.seed.hash_words(key.len(), |w| key[w]);
        let offset = arena.layout().key_offset;
        let found = self.buckets.find(hash, |record| {
            // SAFETY: records in the buckets are of this arena and have its layout.
            (0..key.len()).all(|w| unsafe { load_word(record, offset + w) } == key[w])
        });
        (hash, found)
    }

    /// Inserts an entry. True: readers need a new view.
    pub(super) fn insert_rule(&mut self, arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) -> bool {
        let layout = arena.layout();
        let n = rule.value.len();
        let (hash, old) = self.find(arena, &rule.value);
        // SAFETY: records in the buckets are of this arena and have its layout.
        let old_stamp = old
            .zip(layout.stamp_word)
            .map_or(0, |(r, stamp_word)| unsafe { load_word(r, stamp_word) });
        let Some(rec) = arena.record(result, &rule.value, stamp.max(old_stamp)) else {
            return false;
        };
        arena.set(rec, layout.extra_offset, u64::from(rec.number));
        if let Some(number_by_handle) = &mut self.number_by_handle {
            number_by_handle.insert(rule.handle, rec.number);
        }
        if let Some(old) = old {
            self.buckets.replace(hash, old, rec.words);
            // SAFETY: the record was in the buckets, so it is of this arena and has its layout.
            arena.retire(arena.get(unsafe { load_word(old, layout.extra_offset) } as u32));
            return false;
        }
        self.entries += 1;
        let seed = self.seed;
        // SAFETY: records in the buckets are of this arena and have its layout, with `n` key words
        // from `layout.key_offset`.
        let hash_of = |r: NonNull<AtomicU64>| seed.hash_words(n, |w| unsafe { load_word(r, layout.key_offset + w) });
        CuckooIndex::insert(&mut self.buckets, self.entries, hash, rec.words, hash_of)
    }

    /// Removes an entry. Readers see that at once.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) {
        let (hash, Some(old)) = self.find(arena, &rule.value) else {
            return;
        };
        // SAFETY: records in the buckets are of this arena and have its layout.
        let (head, number) = unsafe { (load_word(old, 0), load_word(old, arena.layout().extra_offset) as u32) };
        if head as u32 != rule.handle {
            return;
        }
        self.buckets.remove(hash, old);
        if let Some(number_by_handle) = &mut self.number_by_handle {
            number_by_handle.remove(&rule.handle);
        }
        self.entries -= 1;
        arena.retire(arena.get(number));
    }
}
