//! Exact keys of a few bits, such as ports, VLANs and next-hop numbers: an array of pointers to
//! records, indexed by the key. An entry takes its record, and the array eight bytes for each
//! possible key, 512 KB at most.
//!
//! Each update is one store of a pointer, so readers see the old or the new record.
#![allow(unsafe_code)]

use crate::fast::cuckoo_records::load_word;
use crate::fast::mem::{Arena, Directory};
use crate::fast::rule::Rule;
use crate::fast::vector_lookup::{VectorLookup, each_bit, each_slot, is_contiguous, ones};
use crate::fast::zeroed::Zeroed;
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Most bits of a key.
pub(super) const MAX_BITS: u32 = 12;
/// The same where results are longer than two words. Then every structure has records out of line,
/// so that the others, though smaller, save no access to memory.
pub(super) const MAX_BITS_WITH_RECORDS: u32 = 16;

/// Pointers to records, indexed by the key; null where there is no entry. Their number is a power
/// of two.
type Records = Zeroed<AtomicPtr<AtomicU64>>;

/// A record in the array.
#[derive(Clone, Copy)]
struct Existing {
    record: NonNull<AtomicU64>,
    /// The entry's handle.
    handle: u32,
    /// The record's number in the arena.
    number: u32,
}

/// Readers' view.
#[derive(Debug)]
pub(super) struct DirectIndexView {
    records: Arc<Records>,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

impl DirectIndexView {
    /// The first pointer.
    #[inline]
    pub(super) fn records(&self) -> *const AtomicPtr<AtomicU64> {
        self.records.as_slice().as_ptr()
    }

    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        match (vector.result_words(), is_contiguous(vector.active)) {
            (1, false) => self.lookup_words::<1, false>(vector),
            (1, true) => self.lookup_words::<1, true>(vector),
            (2, false) => self.lookup_words::<2, false>(vector),
            (2, true) => self.lookup_words::<2, true>(vector),
            _ => self.lookup_words::<0, false>(vector),
        }
    }

    /// `WORDS`: words of the result, or 0 for any number.
    #[inline(always)]
    fn lookup_words<const WORDS: usize, const CONTIGUOUS: bool>(&self, vector: &mut VectorLookup<'_>) -> u64 {
        let vector = *vector;
        let words = if WORDS == 0 { vector.result_words() } else { WORDS };
        let records = self.records.as_slice();
        let mask = records.len() - 1;
        // SAFETY: the slot is active and keys have a word; there are `mask + 1` elements.
        let record_of = |slot| unsafe { records.get_unchecked(vector.key(0, slot) as usize & mask) };
        let mut hits = 0;
        each_slot::<CONTIGUOUS>(vector.active, |slot, bit| {
            let found = record_of(slot).load(Ordering::Acquire);
            let is_hit = !found.is_null();
            let record = select_unpredictable(is_hit, found, vector.default.as_ptr());
            hits |= bit & ones(is_hit);
            for word_index in 0..words {
                // SAFETY: the record is one of the table's or the default, which both have the
                // words of a result; the slot is active.
                unsafe { vector.set_result(word_index, slot, load_word(NonNull::new_unchecked(record), word_index)) };
            }
        });
        if let Some(stamp_word) = vector.stamp_word {
            each_bit(hits, |slot, _| {
                if let Some(record) = NonNull::new(record_of(slot).load(Ordering::Acquire)) {
                    // SAFETY: records have the table's record layout, so they have this word.
                    unsafe { record.add(stamp_word).as_ref() }.store(vector.now, Ordering::Relaxed);
                }
            });
        }
        hits
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct DirectIndex {
    records: Arc<Records>,
    entries: usize,
    /// Keys by handle, with `idle_timeout`.
    key_by_handle: Option<FxHashMap<u32, usize>>,
}

impl DirectIndex {
    /// For keys of `bits` bits, at most [`MAX_BITS_WITH_RECORDS`].
    pub(super) fn new(bits: u32, stamps: bool) -> Self {
        DirectIndex {
            records: Arc::new(Zeroed::new(1 << bits)),
            entries: 0,
            key_by_handle: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.records.bytes() + self.key_by_handle.as_ref().map_or(0, |h| h.capacity() * 17)
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let key = *self.key_by_handle.as_ref()?.get(&handle)?;
        let record = NonNull::new(self.records[key].load(Ordering::Relaxed))?;
        // SAFETY: records in the array are of this arena and have its layout.
        arena
            .layout()
            .stamp_word
            .map(|stamp_word| unsafe { load_word(record, stamp_word) })
    }

    pub(super) fn view(&self, arena: &Arena) -> DirectIndexView {
        DirectIndexView {
            records: Arc::clone(&self.records),
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// A rule's key, and the record that the array has for it.
    fn find(&self, arena: &Arena, rule: &Rule) -> Option<(usize, Option<Existing>)> {
        let key = usize::try_from(*rule.value.first()?).ok()?;
        let record = NonNull::new(self.records.get(key)?.load(Ordering::Relaxed));
        // SAFETY: records in the array are of this arena and have its layout.
        let existing = record.map(|record| unsafe {
            Existing {
                record,
                handle: load_word(record, 0) as u32,
                number: load_word(record, arena.layout().extra_offset) as u32,
            }
        });
        Some((key, existing))
    }

    /// Inserts an entry. Readers see that at once.
    pub(super) fn insert_rule(&mut self, arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) {
        let Some((key, old)) = self.find(arena, rule) else {
            return;
        };
        let layout = arena.layout();
        // SAFETY: records in the array are of this arena and have its layout.
        let old_stamp = old
            .zip(layout.stamp_word)
            .map_or(0, |(old, stamp_word)| unsafe { load_word(old.record, stamp_word) });
        let Some(rec) = arena.record(result, &[], stamp.max(old_stamp)) else {
            return;
        };
        arena.set(rec, layout.extra_offset, u64::from(rec.number));
        self.records[key].store(rec.words.as_ptr(), Ordering::Release);
        match old {
            Some(old) => arena.retire(arena.get(old.number)),
            None => self.entries += 1,
        }
        if let Some(key_by_handle) = &mut self.key_by_handle {
            if let Some(old) = old {
                key_by_handle.remove(&old.handle);
            }
            key_by_handle.insert(rule.handle, key);
        }
    }

    /// Removes an entry. Readers see that at once.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) {
        let Some((key, Some(old))) = self.find(arena, rule) else {
            return;
        };
        if old.handle != rule.handle {
            return;
        }
        self.records[key].store(std::ptr::null_mut(), Ordering::Release);
        if let Some(key_by_handle) = &mut self.key_by_handle {
            key_by_handle.remove(&old.handle);
        }
        self.entries -= 1;
        arena.retire(arena.get(old.number));
    }
}
