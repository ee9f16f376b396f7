//! The keys and results of one vector, with bounds checked once.
#![allow(unsafe_code)]

use crate::fast::mem::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a vector.
pub(super) const SLOTS: usize = 64;

/// Addresses that somebody will read from, to be asked for while something else is done: asked for all at once, the last ones would have
/// to wait for the first.
#[derive(Debug, Clone)]
pub struct Fetches {
    addresses: [usize; SLOTS],
    count: usize,
}

impl Default for Fetches {
    fn default() -> Self {
        Fetches {
            addresses: [0; SLOTS],
            count: 0,
        }
    }
}

impl Fetches {
    /// Those of the keys of active slots.
    #[inline(always)]
    pub(super) fn set<const DENSE: bool>(&mut self, active: u64, keys: &[u64], address: impl Fn(u64) -> *const u8) {
        if DENSE {
            for (to, key) in self.addresses.iter_mut().zip(keys) {
                *to = address(*key).addr();
            }
            self.count = keys.len().min(SLOTS);
        } else {
            self.count = 0;
            each(active, |slot, _| {
                self.addresses[self.count % SLOTS] = address(keys[slot]).addr();
                self.count += 1;
            });
        }
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[cfg(test)]
    pub(super) fn addresses(&self) -> &[usize] {
        &self.addresses[..self.count]
    }

    /// There are none.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Asks for part `part` of `parts`, which together are all.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn share(&self, part: usize, parts: usize) {
        for address in &self.addresses[self.count * part / parts..self.count * (part + 1) / parts] {
            prefetch(std::ptr::without_provenance::<u8>(*address));
        }
    }

    /// Asks for all.
    pub(super) fn all(&self) {
        self.addresses[..self.count]
            .iter()
            .for_each(|a| prefetch(std::ptr::without_provenance::<u8>(*a)));
    }
}

/// One vector lookup. Copy it to a local before a loop: its fields are then in registers, while
/// behind a reference they are read again after every acquiring load.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    keys: *const u64,
    results: *mut u64,
    pitch: usize,
    /// Slots with keys.
    pub(super) active: u64,
    key_words: usize,
    result_words: usize,
    /// What the lookup reads first has been asked for already.
    pub(super) is_fetched: bool,
    /// What others will read.
    pub(super) meanwhile: Option<&'a Fetches>,
    /// What a miss gives: as many words as a result has.
    pub(super) default: NonNull<AtomicU64>,
    /// Where hits leave their time, if they do.
    pub(super) stamp: Option<usize>,
    pub(super) now: u64,
    borrow: PhantomData<(&'a [u64], *mut u64, &'a [AtomicU64])>,
}

/// What does not change from one lookup of a table to the next.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dimensions {
    pub(super) key_words: usize,
    pub(super) result_words: usize,
    /// Words of a record. The default has as many, or one more so that they are pairs.
    pub(super) record_words: usize,
    pub(super) stamp: Option<usize>,
}

impl Dimensions {
    /// Slots up to the last active one, for which there are keys.
    ///
    /// # Panics
    /// There are too few keys.
    #[inline(always)]
    pub(super) fn slots_with_keys(self, active: u64, keys: &[u64], pitch: usize) -> usize {
        let slots = SLOTS - active.leading_zeros() as usize;
        assert!(slots <= pitch || self.key_words <= 1);
        assert!(slots == 0 || has_rows(keys.len(), self.key_words, pitch, slots));
        slots
    }
}

/// Whether an array of this length has this number of rows, at least one, the last of them up to
/// the last slot. A length that would wrap around, as a huge pitch makes it, is one that no array
/// has.
#[inline(always)]
fn has_rows(length: usize, rows: usize, pitch: usize, slots: usize) -> bool {
    let before = (rows - 1).checked_mul(pitch);
    before
        .and_then(|before| before.checked_add(slots))
        .is_some_and(|needed| needed <= length)
}

impl<'a> Batch<'a> {
    /// # Panics
    /// The arrays are too short for the active slots.
    #[inline(always)]
    pub(super) fn new(
        dimensions: Dimensions,
        active: u64,
        keys: &'a [u64],
        results: &'a mut [u64],
        pitch: usize,
        default: &'a [AtomicU64],
        now: u64,
    ) -> Self {
        let slots = dimensions.slots_with_keys(active, keys, pitch);
        let Dimensions {
            result_words,
            record_words,
            ..
        } = dimensions;
        assert!(slots <= pitch || result_words <= 1);
        assert!(slots == 0 || has_rows(results.len(), result_words, pitch, slots));
        // Of results whole pairs of words are read.
        assert!(default.len() >= record_words.max(result_words).next_multiple_of(2));
        Batch {
            results: results.as_mut_ptr(),
            result_words,
            is_fetched: false,
            stamp: dimensions.stamp,
            now,
            ..Batch::of_keys(dimensions, active, keys, pitch, default)
        }
    }

    /// Of a lookup that gives no results yet, of keys whose slots have been asked for.
    ///
    /// # Panics
    /// There are too few keys for the active slots.
    #[inline(always)]
    pub(super) fn of_keys(
        dimensions: Dimensions,
        active: u64,
        keys: &'a [u64],
        pitch: usize,
        default: &'a [AtomicU64],
    ) -> Self {
        dimensions.slots_with_keys(active, keys, pitch);
        Batch {
            keys: keys.as_ptr(),
            results: std::ptr::null_mut(),
            pitch,
            active,
            key_words: dimensions.key_words,
            result_words: 0,
            is_fetched: true,
            meanwhile: None,
            default: NonNull::from(default).cast(),
            stamp: None,
            now: 0,
            borrow: PhantomData,
        }
    }

    /// The address of the first slot's key.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn keys_at(&self) -> usize {
        self.keys.addr()
    }

    /// Words of a key.
    #[inline(always)]
    pub(super) fn key_words(self) -> usize {
        self.key_words
    }

    /// Words of a result.
    #[inline(always)]
    pub(super) fn result_words(self) -> usize {
        self.result_words
    }

    /// A key word.
    ///
    /// # Safety
    /// The slot is active, and keys have that many words.
    #[inline(always)]
    pub(super) unsafe fn key(self, word: usize, slot: usize) -> u64 {
        debug_assert!(word < self.key_words && self.active >> slot & 1 == 1);
        // SAFETY: `slots_with_keys` checked the length for active slots and these words.
        unsafe { *self.keys.add(word * self.pitch + slot) }
    }

    /// The first slot's word of a row of keys, which has as many as there are slots up to the last active one; what others
    /// than the active ones hold means nothing.
    ///
    /// # Safety
    /// Keys have that many words.
    #[inline(always)]
    pub(super) unsafe fn key_row(self, word: usize) -> *const u64 {
        debug_assert!(word < self.key_words);
        // SAFETY: `slots_with_keys` checked the length.
        unsafe { self.keys.add(word * self.pitch) }
    }

    /// The first slot's word of a row of results; only those of active slots are the lookup's.
    ///
    /// # Safety
    /// Results have that many words.
    #[inline(always)]
    pub(super) unsafe fn result_row(self, word: usize) -> *mut u64 {
        debug_assert!(word < self.result_words);
        // SAFETY: `new` checked the length; without it there are no words.
        unsafe { self.results.add(word * self.pitch) }
    }

    /// Sets a result word.
    ///
    /// # Safety
    /// The slot is active, and results have that many words.
    #[inline(always)]
    pub(super) unsafe fn put(self, word: usize, slot: usize, value: u64) {
        debug_assert!(word < self.result_words && self.active >> slot & 1 == 1);
        // SAFETY: `new` checked the length for active slots and these words; without it there are none.
        unsafe { *self.results.add(word * self.pitch + slot) = value };
    }

    /// Copies a result.
    ///
    /// # Safety
    /// The slot is active, and the record has the words of a result.
    #[inline(always)]
    pub(super) unsafe fn give(self, slot: usize, record: NonNull<AtomicU64>) {
        for word in 0..self.result_words {
            // SAFETY: the caller's promise.
            unsafe { self.put(word, slot, record.add(word).as_ref().load(Ordering::Relaxed)) };
        }
    }

    /// Copies a hit's result and leaves the time.
    ///
    /// # Safety
    /// The slot is active, and the record has the table's shape.
    #[inline(always)]
    pub(super) unsafe fn hit(self, slot: usize, record: NonNull<AtomicU64>) {
        // SAFETY: the caller's promise.
        unsafe { self.give(slot, record) };
        if let Some(at) = self.stamp {
            // SAFETY: the record has the table's shape, so it has this word.
            unsafe { record.add(at).as_ref() }.store(self.now, Ordering::Relaxed);
        }
    }

    /// Asks for what others will read, all at once.
    #[inline]
    pub(super) fn ask_meanwhile(self) {
        if let Some(fetches) = self.meanwhile {
            fetches.all();
        }
    }

    /// Makes all active slots misses.
    pub(super) fn miss_all(self) {
        let (active, default) = (self.active, self.default);
        // SAFETY: only active slots, and the default's length was checked in `new`.
        each(active, |slot, _| unsafe { self.give(slot, default) });
    }
}

/// Calls `f` with the number and the value of each bit that is set.
#[inline(always)]
pub(super) fn each(active: u64, mut f: impl FnMut(usize, u64)) {
    let mut rest = active;
    while rest != 0 {
        f(rest.trailing_zeros() as usize, rest & rest.wrapping_neg());
        rest &= rest - 1;
    }
}

/// Like [`each`]; if `DENSE`, the bits are the lowest ones, and they are counted instead of searched.
/// There is one call of `f`, so that it is compiled into the loop.
#[inline(always)]
pub(super) fn each_of<const DENSE: bool>(active: u64, mut f: impl FnMut(usize, u64)) {
    let (mut rest, mut slot, mut bit) = (active, 0, 1_u64);
    let end = SLOTS - active.leading_zeros() as usize;
    loop {
        if DENSE {
            if slot == end {
                return;
            }
            f(slot, bit);
            slot += 1;
            bit <<= 1;
        } else {
            if rest == 0 {
                return;
            }
            f(rest.trailing_zeros() as usize, rest & rest.wrapping_neg());
            rest &= rest - 1;
        }
    }
}

/// Whether the bits are the lowest ones.
#[inline(always)]
pub(super) fn is_dense(active: u64) -> bool {
    active & active.wrapping_add(1) == 0
}

/// All ones if it is true.
#[inline(always)]
pub(super) fn ones(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}
