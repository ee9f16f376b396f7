//! Exact keys of a few bits, such as ports, VLANs and numbers of next hops: an array of pointers to records, by key. An entry takes its record, and the
//! array eight bytes for each possible key, 512 KB at most.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, each, each_of, is_dense, ones};
use crate::fast::exact::word;
use crate::fast::mem::{Arena, Directory};
use crate::fast::rule::Rule;
use crate::fast::zeroed::Zeroed;
use rustc_hash::FxHashMap;
use std::hint::select_unpredictable;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Most bits of a key.
pub(super) const MOST_BITS: u32 = 12;
/// The same where results are so long that entries would have records anyway: then there is nothing to be read that is nearer.
pub(super) const MOST_BITS_FOR_RECORDS: u32 = 16;

/// Records by key; null where there is no entry. There are as many as a power of two.
type Places = Zeroed<AtomicPtr<AtomicU64>>;

/// A record that is there.
#[derive(Clone, Copy)]
struct Occupant {
    record: NonNull<AtomicU64>,
    /// The entry's.
    handle: u32,
    /// The record's, in the arena.
    number: u32,
}

/// What readers see.
#[derive(Debug)]
pub(super) struct DirectShape {
    places: Arc<Places>,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

impl DirectShape {
    /// Where the places begin.
    #[inline]
    pub(super) fn places(&self) -> *const AtomicPtr<AtomicU64> {
        self.places.as_slice().as_ptr()
    }

    #[inline(always)]
    pub(super) fn lookup(&self, batch: &mut Batch<'_>) -> u64 {
        match (batch.result_words(), is_dense(batch.active)) {
            (1, false) => self.lookup_words::<1, false>(batch),
            (1, true) => self.lookup_words::<1, true>(batch),
            (2, false) => self.lookup_words::<2, false>(batch),
            (2, true) => self.lookup_words::<2, true>(batch),
            _ => self.lookup_words::<0, false>(batch),
        }
    }

    /// `WORDS`: words of the result, or 0 for any number.
    #[inline(always)]
    fn lookup_words<const WORDS: usize, const DENSE: bool>(&self, batch: &mut Batch<'_>) -> u64 {
        let batch = *batch;
        let words = if WORDS == 0 { batch.result_words() } else { WORDS };
        let places = self.places.as_slice();
        let mask = places.len() - 1;
        // SAFETY: the slot is active and keys have a word; there are `mask + 1` places.
        let place = |slot| unsafe { places.get_unchecked(batch.key(0, slot) as usize & mask) };
        let mut hits = 0;
        each_of::<DENSE>(batch.active, |slot, bit| {
            let found = place(slot).load(Ordering::Acquire);
            let is_hit = !found.is_null();
            let record = select_unpredictable(is_hit, found, batch.default.as_ptr());
            hits |= bit & ones(is_hit);
            for at in 0..words {
                // SAFETY: the record is one of the table's or the default, which both have the words of a result; the slot is active.
                unsafe { batch.put(at, slot, word(NonNull::new_unchecked(record), at)) };
            }
        });
        if let Some(at) = batch.stamp {
            each(hits, |slot, _| {
                if let Some(record) = NonNull::new(place(slot).load(Ordering::Acquire)) {
                    // SAFETY: records have the table's shape, so they have this word.
                    unsafe { record.add(at).as_ref() }.store(batch.now, Ordering::Relaxed);
                }
            });
        }
        hits
    }
}

/// The writer's side.
#[derive(Debug)]
pub(super) struct Direct {
    places: Arc<Places>,
    entries: usize,
    /// Keys by handle, if last hits are wanted.
    handles: Option<FxHashMap<u32, usize>>,
}

impl Direct {
    /// For keys of so many bits, at most [`MOST_BITS_FOR_RECORDS`].
    pub(super) fn new(bits: u32, stamps: bool) -> Self {
        Direct {
            places: Arc::new(Zeroed::new(1 << bits)),
            entries: 0,
            handles: stamps.then(FxHashMap::default),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries
    }

    pub(super) fn bytes(&self) -> usize {
        self.places.bytes() + self.handles.as_ref().map_or(0, |h| h.capacity() * 17)
    }

    pub(super) fn stamp(&self, arena: &Arena, handle: u32) -> Option<u64> {
        let key = *self.handles.as_ref()?.get(&handle)?;
        let record = NonNull::new(self.places[key].load(Ordering::Relaxed))?;
        // SAFETY: records in the places are of this arena and have its shape.
        arena.shape().stamp.map(|at| unsafe { word(record, at) })
    }

    pub(super) fn shape(&self, arena: &Arena) -> DirectShape {
        DirectShape {
            places: Arc::clone(&self.places),
            _directory: Arc::clone(arena.directory()),
        }
    }

    /// The place of a rule's key, and what is there.
    fn find(&self, arena: &Arena, rule: &Rule) -> Option<(usize, Option<Occupant>)> {
        let key = usize::try_from(*rule.value.first()?).ok()?;
        let record = NonNull::new(self.places.get(key)?.load(Ordering::Relaxed));
        // SAFETY: records in the places are of this arena and have its shape.
        let occupant = record.map(|record| unsafe {
            Occupant {
                record,
                handle: word(record, 0) as u32,
                number: word(record, arena.shape().extra) as u32,
            }
        });
        Some((key, occupant))
    }

    /// Puts an entry in. Readers see that at once.
    pub(super) fn put(&mut self, arena: &mut Arena, rule: &Rule, result: &[u64], stamp: u64) {
        let Some((key, old)) = self.find(arena, rule) else {
            return;
        };
        let shape = arena.shape();
        // SAFETY: records in the places are of this arena and have its shape.
        let old_stamp = old
            .zip(shape.stamp)
            .map_or(0, |(old, at)| unsafe { word(old.record, at) });
        let Some(rec) = arena.record(result, &[], stamp.max(old_stamp)) else {
            return;
        };
        arena.set(rec, shape.extra, u64::from(rec.index));
        self.places[key].store(rec.words.as_ptr(), Ordering::Release);
        match old {
            Some(old) => arena.retire(arena.at(old.number)),
            None => self.entries += 1,
        }
        if let Some(handles) = &mut self.handles {
            if let Some(old) = old {
                handles.remove(&old.handle);
            }
            handles.insert(rule.handle, key);
        }
    }

    /// Takes an entry out. Readers see that at once.
    pub(super) fn take(&mut self, arena: &mut Arena, rule: &Rule) {
        let Some((key, Some(old))) = self.find(arena, rule) else {
            return;
        };
        if old.handle != rule.handle {
            return;
        }
        self.places[key].store(std::ptr::null_mut(), Ordering::Release);
        if let Some(handles) = &mut self.handles {
            handles.remove(&old.handle);
        }
        self.entries -= 1;
        arena.retire(arena.at(old.number));
    }
}
