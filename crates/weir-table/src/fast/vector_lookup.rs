//! The keys and results of one vector lookup, as raw rows whose bounds are checked once, and the
//! queue of addresses that a lookup prefetches for other tables.
#![allow(unsafe_code)]

use crate::fast::mem::prefetch;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Slots of a vector.
pub(super) const VECTOR_SLOTS: usize = 64;

/// Addresses to prefetch while another lookup runs. Issued all at once, the last prefetch would
/// wait for the first.
#[derive(Debug, Clone)]
pub struct PrefetchQueue {
    /// The queued addresses, in the first `count` elements.
    addresses: [usize; VECTOR_SLOTS],
    count: usize,
}

impl Default for PrefetchQueue {
    fn default() -> Self {
        PrefetchQueue {
            addresses: [0; VECTOR_SLOTS],
            count: 0,
        }
    }
}

impl PrefetchQueue {
    /// Replaces the contents by the addresses that belong to the keys of active slots. With
    /// `CONTIGUOUS` the active slots are those of all keys.
    #[inline(always)]
    pub(super) fn fill<const CONTIGUOUS: bool>(
        &mut self,
        active: u64,
        keys: &[u64],
        address: impl Fn(u64) -> *const u8,
    ) {
        if CONTIGUOUS {
            for (to, key) in self.addresses.iter_mut().zip(keys) {
                *to = address(*key).addr();
            }
            self.count = keys.len().min(VECTOR_SLOTS);
        } else {
            self.count = 0;
            each_bit(active, |slot, _| {
                self.addresses[self.count % VECTOR_SLOTS] = address(keys[slot]).addr();
                self.count += 1;
            });
        }
    }

    /// Whether the queue is empty.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    #[cfg(test)]
    pub(super) fn addresses(&self) -> &[usize] {
        &self.addresses[..self.count]
    }

    /// Empties the queue.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }

    /// Prefetches part `part` of `parts` equal parts of the queue.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn prefetch_part(&self, part: usize, parts: usize) {
        for address in &self.addresses[self.count * part / parts..self.count * (part + 1) / parts] {
            prefetch(std::ptr::without_provenance::<u8>(*address));
        }
    }

    /// Prefetches the whole queue.
    pub(super) fn prefetch_all(&self) {
        self.addresses[..self.count]
            .iter()
            .for_each(|a| prefetch(std::ptr::without_provenance::<u8>(*a)));
    }
}

/// One vector lookup. Copy it to a local before a loop: the fields of a local stay in registers,
/// while those behind a reference are read again after every acquiring load.
#[derive(Clone, Copy)]
pub(super) struct VectorLookup<'a> {
    keys: *const u64,
    results: *mut u64,
    row_stride: usize,
    /// Slots with keys.
    pub(super) active: u64,
    key_words: usize,
    result_words: usize,
    /// The caller has prefetched the lines that the lookup reads first.
    pub(super) is_prefetched: bool,
    /// Addresses to prefetch during this lookup, for the lookups that follow.
    pub(super) queue: Option<&'a PrefetchQueue>,
    /// The result of a miss: as many words as a record, in whole pairs.
    pub(super) default: NonNull<AtomicU64>,
    /// The word of a record that receives the time of a hit, with `idle_timeout`.
    pub(super) stamp_word: Option<usize>,
    /// The time of the lookup in nanoseconds, which becomes the stamp of entries that are hit.
    pub(super) now: u64,
    /// Ties the raw pointers to the lifetimes of the arrays.
    borrow: PhantomData<(&'a [u64], *mut u64, &'a [AtomicU64])>,
}

/// The sizes that are the same for all lookups of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dimensions {
    /// Words of a key.
    pub(super) key_words: usize,
    /// Words of a result.
    pub(super) result_words: usize,
    /// Words of a record. The default result has as many, or one more so that words come in pairs.
    pub(super) record_words: usize,
    /// The word of a record that receives the time of a hit, with `idle_timeout`.
    pub(super) stamp_word: Option<usize>,
}

impl Dimensions {
    /// Number of slots up to the last active one, for which there must be keys.
    #[inline(always)]
    pub(super) fn slots_with_keys(self, active: u64, keys: &[u64], row_stride: usize) -> usize {
        let slots = VECTOR_SLOTS - active.leading_zeros() as usize;
        assert!(slots <= row_stride || self.key_words <= 1);
        assert!(slots == 0 || has_rows(keys.len(), self.key_words, row_stride, slots));
        slots
    }
}

/// Whether an array of this length holds `rows` rows, at least one, where the last row reaches to
/// the last slot. A length that would wrap around, as with a huge row stride, is refused: no array
/// has it.
#[inline(always)]
fn has_rows(length: usize, rows: usize, row_stride: usize, slots: usize) -> bool {
    let before = (rows - 1).checked_mul(row_stride);
    before
        .and_then(|before| before.checked_add(slots))
        .is_some_and(|needed| needed <= length)
}

impl<'a> VectorLookup<'a> {
    /// # Panics
    /// The arrays are too short for the active slots.
    #[inline(always)]
    pub(super) fn new(
        dimensions: Dimensions,
        active: u64,
        keys: &'a [u64],
        results: &'a mut [u64],
        row_stride: usize,
        default: &'a [AtomicU64],
        now: u64,
    ) -> Self {
        let slots = dimensions.slots_with_keys(active, keys, row_stride);
        let Dimensions {
            result_words,
            record_words,
            ..
        } = dimensions;
        assert!(slots <= row_stride || result_words <= 1);
        assert!(slots == 0 || has_rows(results.len(), result_words, row_stride, slots));
        // Results are read in whole pairs of words.
        assert!(default.len() >= record_words.max(result_words).next_multiple_of(2));
        VectorLookup {
            results: results.as_mut_ptr(),
            result_words,
            is_prefetched: false,
            stamp_word: dimensions.stamp_word,
            now,
            ..VectorLookup::keys_only(dimensions, active, keys, row_stride, default)
        }
    }

    /// For the first part of a lookup, which gives no results yet. The keys' slots have been
    /// prefetched.
    #[inline(always)]
    pub(super) fn keys_only(
        dimensions: Dimensions,
        active: u64,
        keys: &'a [u64],
        row_stride: usize,
        default: &'a [AtomicU64],
    ) -> Self {
        dimensions.slots_with_keys(active, keys, row_stride);
        VectorLookup {
            keys: keys.as_ptr(),
            results: std::ptr::null_mut(),
            row_stride,
            active,
            key_words: dimensions.key_words,
            result_words: 0,
            is_prefetched: true,
            queue: None,
            default: NonNull::from(default).cast(),
            stamp_word: None,
            now: 0,
            borrow: PhantomData,
        }
    }

    /// The address of the first slot's key.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline(always)]
    pub(super) fn keys_address(&self) -> usize {
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

    /// Word `word` of a slot's key.
    #[inline(always)]
    pub(super) unsafe fn key(self, word: usize, slot: usize) -> u64 {
        debug_assert!(word < self.key_words && self.active >> slot & 1 == 1);
        // SAFETY: `slots_with_keys` checked the length for active slots and these words.
        unsafe { *self.keys.add(word * self.row_stride + slot) }
    }

    /// Row `word` of the keys, which reaches to the last active slot. Words of inactive slots are
    /// unspecified.
    #[inline(always)]
    pub(super) unsafe fn key_row(self, word: usize) -> *const u64 {
        debug_assert!(word < self.key_words);
        // SAFETY: `slots_with_keys` checked the length.
        unsafe { self.keys.add(word * self.row_stride) }
    }

    /// Row `word` of the results. Only the words of active slots may be written.
    #[inline(always)]
    pub(super) unsafe fn result_row(self, word: usize) -> *mut u64 {
        debug_assert!(word < self.result_words);
        // SAFETY: `new` checked the length; without it there are no words.
        unsafe { self.results.add(word * self.row_stride) }
    }

    /// Sets a result word.
    #[inline(always)]
    pub(super) unsafe fn set_result(self, word: usize, slot: usize, value: u64) {
        debug_assert!(word < self.result_words && self.active >> slot & 1 == 1);
        // SAFETY: `new` checked the length for active slots and these words; without it there are
        // none.
        unsafe { *self.results.add(word * self.row_stride + slot) = value };
    }

    /// Copies a result from a record.
    #[inline(always)]
    pub(super) unsafe fn write_result(self, slot: usize, record: NonNull<AtomicU64>) {
        for word in 0..self.result_words {
            // SAFETY: the caller's promise.
            unsafe { self.set_result(word, slot, record.add(word).as_ref().load(Ordering::Relaxed)) };
        }
    }

    /// Copies the result of a hit, and stores its time in the record.
    #[inline(always)]
    pub(super) unsafe fn write_hit(self, slot: usize, record: NonNull<AtomicU64>) {
        // SAFETY: the caller's promise.
        unsafe { self.write_result(slot, record) };
        if let Some(stamp_word) = self.stamp_word {
            // SAFETY: the record has the table's record layout, so it has this word.
            unsafe { record.add(stamp_word).as_ref() }.store(self.now, Ordering::Relaxed);
        }
    }

    /// Prefetches the whole queue, if there is one.
    #[inline]
    pub(super) fn prefetch_queued(self) {
        if let Some(queue) = self.queue {
            queue.prefetch_all();
        }
    }

    /// Makes all active slots misses.
    pub(super) fn miss_all(self) {
        let (active, default) = (self.active, self.default);
        // SAFETY: only active slots, and the default's length was checked in `new`.
        each_bit(active, |slot, _| unsafe { self.write_result(slot, default) });
    }
}

/// Calls `f` with the number and the value of each set bit.
#[inline(always)]
pub(super) fn each_bit(active: u64, mut f: impl FnMut(usize, u64)) {
    let mut rest = active;
    while rest != 0 {
        f(rest.trailing_zeros() as usize, rest & rest.wrapping_neg());
        rest &= rest - 1;
    }
}

/// Like [`each_bit`]. With `CONTIGUOUS` the set bits are the lowest ones, so slots are counted
/// rather than searched. `f` is called at one place only, so that it is inlined into the loop.
#[inline(always)]
pub(super) fn each_slot<const CONTIGUOUS: bool>(active: u64, mut f: impl FnMut(usize, u64)) {
    let (mut rest, mut slot, mut bit) = (active, 0, 1_u64);
    let end = VECTOR_SLOTS - active.leading_zeros() as usize;
    loop {
        if CONTIGUOUS {
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

/// Whether the set bits are the lowest ones.
#[inline(always)]
pub(super) fn is_contiguous(active: u64) -> bool {
    active & active.wrapping_add(1) == 0
}

/// All ones if the condition holds, else 0.
#[inline(always)]
pub(super) fn ones(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}
