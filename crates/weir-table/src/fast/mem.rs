//! Memory that readers and one writer share: an arena of records of equal size, addressed by
//! number.
//!
//! Records never move, so readers may keep addresses while an epoch guard lives. A number is reused
//! only when all readers have passed the epoch in which its record was retired.
#![allow(unsafe_code)]

use crate::fast::count::Hits;
use crate::fast::epochs::Epochs;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::pages;
use crate::fast::pages::{FreeInPages, PageNumbers};
use crate::fast::table::HitCount;
use crate::fast::zeroed::Zeroed;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Larger arrays of slots are prefetched: a lookup first prefetches the lines of the whole vector,
/// then reads them. (Some lookups interleave prefetches with the search instead.) Smaller ones
/// mostly stay in the near caches, where the pass costs more than it gains. Hash tables of pointers
/// to records have lower values of their own. No measurement of the values is on record.
pub(super) const SLOTS_PREFETCH_MIN_BYTES: usize = 256 << 10;

/// Prefetches a line into the cache. Any address is allowed.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch has no effect on the program, whatever the address; SSE is baseline.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: a prefetch has no effect on the program, whatever the address.
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{0}]", in(reg) address, options(nostack, preserves_flags, readonly))
        };
    }
    #[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
    let _ = address;
}

/// A record: the words that belong to one version of one entry. Words are written before the record
/// is published and never afterwards, except for the stamp, the hit counts and the link of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    /// The first word.
    pub(super) words: NonNull<AtomicU64>,
    /// Its number in the arena, never 0.
    pub(super) number: u32,
}

// SAFETY: it is a pointer to atomics. The arena's contract says when it may be followed.
unsafe impl Send for Record {}

/// The layout of a record, in words.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecordLayout {
    /// Words of the result, which come first.
    pub(super) result_words: usize,
    /// The word with the time of the last hit, with `idle_timeout`.
    pub(super) stamp_word: Option<usize>,
    /// The first key word, if the key is stored.
    pub(super) key_offset: usize,
    /// The first of the words that a structure adds.
    pub(super) extra_offset: usize,
    /// The first of two words that count hits (packets, bytes), in tables with counts.
    pub(super) counts: Option<usize>,
    /// Total number of words.
    pub(super) words: usize,
}

impl RecordLayout {
    pub(super) fn new(result_words: usize, has_stamps: bool, key_words: usize, extra_words: usize) -> Self {
        let key_offset = result_words + usize::from(has_stamps);
        RecordLayout {
            result_words,
            stamp_word: has_stamps.then_some(result_words),
            key_offset,
            extra_offset: key_offset + key_words,
            counts: None,
            words: key_offset + key_words + extra_words,
        }
    }

    /// The same with two words more, which count hits.
    pub(super) fn with_counts(self) -> Self {
        RecordLayout {
            counts: Some(self.words),
            words: self.words + 2,
            ..self
        }
    }

    /// Words from one record to the next. Records of up to a cache line do not straddle lines.
    fn stride(self) -> usize {
        if self.words <= 8 {
            self.words.next_power_of_two()
        } else {
            self.words.next_multiple_of(8)
        }
    }
}

/// log2 of the number of records in the first chunk.
const FIRST_CHUNK_LOG2: u32 = 4;
/// The first record number that is given out.
pub(super) const FIRST_RECORD: u32 = 1 << FIRST_CHUNK_LOG2;
/// The number of chunks that hold all 32-bit numbers.
const CHUNKS: usize = (32 - FIRST_CHUNK_LOG2) as usize;

/// The addresses of the arena's chunks, by which readers find records by number. Chunk `k` holds
/// the numbers from `16 << k` to `32 << k`.
#[derive(Debug)]
pub(super) struct Directory {
    /// Words from one record to the next.
    stride: usize,
    chunks: [std::sync::OnceLock<Zeroed<AtomicU64>>; CHUNKS],
    /// Indexed by the leading zeros of a record's number: the address that record 0 would have if
    /// the number's chunk began there. So a record's address is one multiplication and addition,
    /// without splitting the number. (Indexing by the highest bit would need another instruction,
    /// which takes four times as long on some processors.)
    bases: [AtomicPtr<AtomicU64>; 32],
}

impl Directory {
    /// The first word of a record.
    #[inline(always)]
    pub(super) unsafe fn record(&self, number: u32) -> NonNull<AtomicU64> {
        // SAFETY: it is not 0, as 0 was not given out.
        let leading_zeros = unsafe { NonZeroU32::new_unchecked(number) }.leading_zeros() as usize;
        // SAFETY: a number has 32 bits.
        let start = unsafe { self.bases.get_unchecked(leading_zeros) }.load(Ordering::Acquire);
        // SAFETY: the number was given out, so its chunk is there and holds it.
        unsafe { NonNull::new_unchecked(start.wrapping_add(number as usize * self.stride)) }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// The addresses from which [`Directory::record`] counts, indexed by leading zeros, and the
    /// words from one record to the next.
    pub(super) fn bases(&self) -> (&[AtomicPtr<AtomicU64>; 32], usize) {
        (&self.bases, self.stride)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// Whether the records exceed the caches, so that prefetching them pays.
    pub(super) fn needs_prefetch(&self) -> bool {
        let number = SLOTS_PREFETCH_MIN_BYTES / size_of::<AtomicU64>() / self.stride;
        // Records in pages are always far apart, and exist only after that many others.
        let number = number.clamp(1 << FIRST_CHUNK_LOG2, pages::MIN_RECORDS_BEFORE as usize) as u32;
        let start = &self.bases[number.leading_zeros() as usize];
        !start.load(Ordering::Relaxed).is_null()
    }

    /// Allocates the chunk of a number, unless it exists.
    fn ensure_chunk(&self, number: u32) {
        let highest = number.ilog2();
        self.chunks[(highest - FIRST_CHUNK_LOG2) as usize].get_or_init(|| {
            let first = 1_usize << highest;
            let chunk: Zeroed<AtomicU64> = Zeroed::new(first * self.stride);
            // SIMD lookups hold addresses as integers.
            chunk.start().as_ptr().expose_provenance();
            let start = chunk.start().as_ptr().wrapping_sub(first * self.stride);
            self.bases[number.leading_zeros() as usize].store(start, Ordering::Release);
            chunk
        });
    }
}

/// Numbers of things that can be reused once readers have passed their retirement.
#[derive(Debug)]
pub(super) struct Recycler {
    /// Numbers that no reader can access any more.
    free: Vec<u32>,
    /// Retired, but perhaps not yet unpublished.
    pending: Vec<u32>,
    /// Retired numbers by epoch: they are free when readers have passed it.
    limbo: VecDeque<(u64, Vec<u32>)>,
    epochs: Arc<Epochs>,
}

impl Recycler {
    pub(super) fn new(epochs: Arc<Epochs>) -> Self {
        Recycler {
            free: Vec::new(),
            pending: Vec::new(),
            limbo: VecDeque::new(),
            epochs,
        }
    }

    pub(super) fn epochs(&self) -> &Arc<Epochs> {
        &self.epochs
    }

    /// A free number, if there is one.
    pub(super) fn pop(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Retires a number. It is free when readers have passed the next [`Recycler::flush`].
    pub(super) fn retire(&mut self, number: u32) {
        self.pending.push(number);
    }

    /// Advances the epoch for the numbers retired since the last call, and reclaims those that all
    /// readers have passed. Call it after what was retired is unpublished: readers can no longer
    /// find it.
    pub(super) fn flush(&mut self) {
        self.flush_except(|_| false);
    }

    /// The same. `reclaim` is called with each number that is free now. If it returns true, the
    /// caller has taken the number back, and it is not kept here.
    fn flush_except(&mut self, mut reclaim: impl FnMut(u32) -> bool) {
        if !self.pending.is_empty() {
            self.limbo
                .push_back((self.epochs.advance(), std::mem::take(&mut self.pending)));
        }
        if self.limbo.is_empty() {
            return;
        }
        let safe_epoch = self.epochs.safe_epoch();
        while self.limbo.front().is_some_and(|(epoch, _)| *epoch <= safe_epoch) {
            if let Some((_, numbers)) = self.limbo.pop_front() {
                self.free.extend(numbers.into_iter().filter(|number| !reclaim(*number)));
            }
        }
    }
}

/// An arena of records of equal size. They never move.
#[derive(Debug)]
pub(super) struct Arena {
    layout: RecordLayout,
    directory: Arc<Directory>,
    /// The next record number that was never used.
    next: u32,
    recycler: Recycler,
    /// The free records in pages, if the arena has pages.
    pages: Option<FreeInPages>,
}

/// The record numbers that have been allocated, together with some that are free: reusable ones,
/// and all in pages. Each refers to memory of the arena that holds a record and nothing else.
#[derive(Debug, Clone)]
pub(super) struct AllocatedNumbers {
    /// Numbers outside of pages.
    pub(super) ordinary: Range<u32>,
    /// Numbers in pages, if the arena has pages.
    pub(super) in_pages: Option<PageNumbers>,
}

impl AllocatedNumbers {
    /// Whether the number is that of a record's memory.
    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        // Ordinary numbers may continue after those of pages.
        match self.in_pages {
            Some(pages) if pages.contains(number) => pages.is_of_record(number),
            _ => self.ordinary.contains(&number),
        }
    }
}

impl Arena {
    pub(super) fn new(layout: RecordLayout, epochs: Arc<Epochs>) -> Self {
        let directory = Directory {
            stride: layout.stride(),
            chunks: [const { std::sync::OnceLock::new() }; CHUNKS],
            bases: [const { AtomicPtr::new(std::ptr::null_mut()) }; 32],
        };
        Arena {
            layout,
            directory: Arc::new(directory),
            next: FIRST_RECORD,
            recycler: Recycler::new(epochs),
            pages: None,
        }
    }

    /// Allocates the pages of slots and records, if records fit between slots. From now on records
    /// may lie there.
    pub(super) fn allocate_pages(&mut self) {
        if self.pages.is_none()
            && let Some(numbers) = PageNumbers::new(self.directory.stride)
            && self.next <= numbers.first
        {
            self.directory.ensure_chunk(numbers.first);
            self.pages = Some(FreeInPages::new(numbers));
        }
    }

    /// The first of the slots in pages, and the length of a run of adjacent slots; `None` without
    /// pages.
    pub(super) fn slots(&self) -> Option<(NonNull<AtomicU32>, usize)> {
        let numbers = self.pages.as_ref()?.numbers();
        let chunk = self.directory.chunks[(numbers.first.ilog2() - FIRST_CHUNK_LOG2) as usize].get()?;
        Some((chunk.start().cast(), numbers.run_length()))
    }

    /// As [`Arena::allocate`], near a slot if there are pages and that page has a free record.
    fn allocate_near(&mut self, slot: u32) -> Option<Record> {
        let Some(number) = self.pages.as_mut().and_then(|pages| pages.allocate(slot)) else {
            return self.allocate();
        };
        // SAFETY: it lies in the chunk of pages, which was made with them.
        let words = unsafe { self.directory.record(number) };
        Some(Record { words, number })
    }

    /// The index of the record with this number among all records in pages, and their count; `None`
    /// if it is not in pages.
    pub(super) fn index_in_pages(&self, number: u32) -> Option<(usize, usize)> {
        let numbers = self.pages.as_ref()?.numbers();
        let place = || (numbers.record_index(number) as usize, numbers.record_count());
        numbers.contains(number).then(place)
    }

    /// The numbers that have been allocated.
    fn allocated(&self) -> AllocatedNumbers {
        AllocatedNumbers {
            ordinary: FIRST_RECORD..self.next,
            in_pages: self.pages.as_ref().map(FreeInPages::numbers),
        }
    }

    pub(super) fn epochs(&self) -> &Arc<Epochs> {
        self.recycler.epochs()
    }

    pub(super) fn layout(&self) -> RecordLayout {
        self.layout
    }

    pub(super) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    pub(super) fn bytes(&self) -> usize {
        let chunks = self.directory.chunks.iter().filter_map(|c| c.get());
        chunks.map(Zeroed::bytes).sum::<usize>() + self.pages.as_ref().map_or(0, FreeInPages::bytes)
    }

    /// A record that no reader knows, with stale words in it. `None`: 2^31 are in use.
    pub(super) fn allocate(&mut self) -> Option<Record> {
        let number = match self.recycler.pop() {
            Some(number) => number,
            None => {
                // The numbers of records in pages are skipped.
                if let Some(pages) = &self.pages
                    && self.next == pages.numbers().first
                {
                    self.next *= 2;
                }
                let number = self.next;
                if number >> 31 != 0 {
                    return None;
                }
                self.next += 1;
                self.directory.ensure_chunk(number);
                number
            }
        };
        // SAFETY: this number is given out now.
        let words = unsafe { self.directory.record(number) };
        Some(Record { words, number })
    }

    /// A record with a result, a key and a stamp.
    pub(super) fn record(&mut self, result: &[u64], key: &[u64], stamp: u64) -> Option<Record> {
        let rec = self.allocate()?;
        self.fill(rec, result, key, stamp);
        Some(rec)
    }

    /// As [`Arena::record`], without a key; near a slot if there are pages and that page has a free
    /// record.
    pub(super) fn record_near(&mut self, slot: u32, result: &[u64], stamp: u64) -> Option<Record> {
        let rec = self.allocate_near(slot)?;
        self.fill(rec, result, &[], stamp);
        Some(rec)
    }

    /// Writes result, stamp and key into a record that is not published.
    fn fill(&self, rec: Record, result: &[u64], key: &[u64], stamp: u64) {
        let layout = self.layout;
        for (i, word) in result.iter().take(layout.result_words).enumerate() {
            self.set(rec, i, *word);
        }
        if let Some(stamp_word) = layout.stamp_word {
            self.set(rec, stamp_word, stamp);
        }
        for (i, word) in key.iter().take(layout.extra_offset - layout.key_offset).enumerate() {
            self.set(rec, layout.key_offset + i, *word);
        }
    }

    /// Writes a word of a record that is not published, or a word that may change.
    pub(super) fn set(&self, rec: Record, word_index: usize, value: u64) {
        self.word(rec, word_index).store(value, Ordering::Relaxed);
    }

    /// A word of a record of this arena.
    pub(super) fn word(&self, rec: Record, word_index: usize) -> &AtomicU64 {
        assert!(word_index < self.layout.words);
        // SAFETY: records of this arena live as long as it does and have more than `word_index`
        // words.
        unsafe { rec.words.add(word_index).as_ref() }
    }

    /// The time of the last hit of a record; 0 without stamps.
    pub(super) fn stamp(&self, rec: Record) -> u64 {
        self.layout
            .stamp_word
            .map_or(0, |stamp_word| self.word(rec, stamp_word).load(Ordering::Relaxed))
    }

    /// Counts hits in records, in tables with counts. Numbers that are not
    /// [allocated](AllocatedNumbers) are skipped.
    #[inline]
    pub(super) fn count(&self, hits: Hits<'_>) {
        if let Some(count_word) = self.layout.counts {
            // SAFETY: these are numbers of records, and all records have two words there.
            unsafe { self.directory.count(&self.allocated(), count_word, hits) };
        }
    }

    /// The hits that a record has counted.
    pub(super) fn counted(&self, number: u32) -> HitCount {
        let Some(count_word) = self.layout.counts else {
            return HitCount::default();
        };
        let word = |word_index| self.word(self.get(number), word_index).load(Ordering::Relaxed);
        HitCount {
            packets: word(count_word),
            bytes: word(count_word + 1),
        }
    }

    /// Sets the hits that a record has counted, in tables with counts.
    pub(super) fn set_counted(&self, number: u32, count: HitCount) {
        if let Some(count_word) = self.layout.counts {
            let rec = self.get(number);
            self.set(rec, count_word, count.packets);
            self.set(rec, count_word + 1, count.bytes);
        }
    }

    /// The record was unlinked from the structure. It can be reused when readers have passed the
    /// next [`Arena::flush`].
    pub(super) fn retire(&mut self, rec: Record) {
        self.recycler.retire(rec.number);
    }

    /// The record with this number.
    pub(super) fn get(&self, number: u32) -> Record {
        assert!(self.allocated().contains(number));
        // SAFETY: the number was allocated, or is a record's in pages, whose chunk exists.
        let words = unsafe { self.directory.record(number) };
        Record { words, number }
    }

    /// Call it after readers can no longer find the retired records.
    pub(super) fn flush(&mut self) {
        self.recycler.flush_except(|number| {
            let pages = self.pages.as_mut();
            let pages = pages.filter(|pages| pages.numbers().contains(number));
            pages.map(|pages| pages.free(number)).is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "128 MB of pages four times")]
    fn records_lie_beside_slots_as_long_as_there_is_room_in_the_page() {
        for words in [1, 2, 4, 8] {
            let epochs = Arc::new(Epochs::new());
            let mut arena = Arena::new(RecordLayout::new(words, false, 0, 0), Arc::clone(&epochs));
            let ordinary = arena.record_near(0, &[7], 0).map(|rec| rec.number);
            assert_eq!(ordinary, Some(1 << FIRST_CHUNK_LOG2), "there are no pages yet");
            arena.allocate_pages();
            let (slots, run) = arena.slots().expect("records of up to a line are beside slots");
            let start = slots.as_ptr().addr();
            // Half of each stripe is slots; slot 5000 lies in another stripe than slot 0.
            let stripe = 2 * run * size_of::<AtomicU32>();
            let of_page = 4096 / stripe * (stripe / 2) / (8 * words);
            let all: Vec<Record> = (0..of_page).filter_map(|_| arena.record_near(5000, &[3], 0)).collect();
            let places: Vec<usize> = all.iter().map(|rec| rec.words.as_ptr().addr() - start).collect();
            let first = 5000 / run * stripe;
            assert_eq!(places[0], first + stripe / 2, "{words}");
            for (i, place) in places.iter().enumerate() {
                assert_eq!(place / 4096, first / 4096, "it is in the slot's page");
                assert!(place % stripe >= stripe / 2, "it is not where slots are");
                assert!(!places[..i].contains(place));
            }
            let behind = arena.record_near(5000, &[3], 0).expect("there is memory");
            assert_eq!(behind.number, (1 << FIRST_CHUNK_LOG2) + 1, "the page is full");
            let again = all[of_page / 2];
            arena.retire(again);
            arena.flush();
            assert_eq!(arena.record_near(5000, &[3], 0), Some(again));
        }
    }

    #[test]
    fn large_records_are_not_beside_slots() {
        let mut arena = Arena::new(RecordLayout::new(9, false, 0, 0), Arc::new(Epochs::new()));
        arena.allocate_pages();
        assert_eq!(arena.slots(), None);
        assert!(arena.record_near(1, &[1; 9], 0).is_some());
    }

    #[test]
    fn nothing_is_counted_where_slots_are() {
        nothing_is_counted_in_slots(false);
    }

    #[test]
    #[cfg_attr(miri, ignore = "millions of records")]
    fn nothing_is_counted_where_slots_are_where_numbers_go_on_behind_them() {
        nothing_is_counted_in_slots(true);
    }

    fn nothing_is_counted_in_slots(beyond_pages: bool) {
        let layout = RecordLayout::new(6, false, 0, 0).with_counts();
        let mut arena = Arena::new(layout, Arc::new(Epochs::new()));
        arena.allocate_pages();
        let first = arena.pages.as_ref().map_or(0, |pages| pages.numbers().first);
        while beyond_pages && arena.allocate().is_some_and(|rec| rec.number < 2 * first) {}
        assert_eq!(arena.allocated().ordinary.contains(&first), beyond_pages);
        let record = arena.record_near(9, &[1, 2], 0).expect("there is memory").number;
        arena.set_counted(record, HitCount::default());
        // The number before it lies on slots, and so does the first.
        let mut heads = [0; 64];
        heads[..4].copy_from_slice(&[u64::from(record), u64::from(record) - 1, u64::from(first), 1 << 31]);
        arena.count(Hits {
            heads: &heads,
            bytes: &[60; 64],
            slots: u64::MAX,
        });
        let counted = HitCount { packets: 1, bytes: 60 };
        assert_eq!(arena.counted(record), counted);
        let (slots, _) = arena.slots().expect("records are beside slots");
        // SAFETY: the slots of the first page, which are there as long as the arena.
        let page = unsafe { std::slice::from_raw_parts(slots.as_ptr(), 16) };
        assert!(page.iter().all(|slot| slot.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn records_keep_their_place_and_are_used_again_after_readers_passed() {
        let epochs = Arc::new(Epochs::new());
        let mut arena = Arena::new(RecordLayout::new(2, true, 1, 0), Arc::clone(&epochs));
        let recs: Vec<_> = (0..100).filter_map(|i| arena.record(&[i, i], &[i], 9)).collect();
        for (i, rec) in recs.iter().enumerate() {
            assert_eq!(arena.word(*rec, 0).load(Ordering::Relaxed), i as u64);
            assert_eq!(arena.word(*rec, 3).load(Ordering::Relaxed), i as u64);
            assert_eq!(arena.stamp(*rec), 9);
            // SAFETY: given out above.
            assert_eq!(unsafe { arena.directory().record(rec.number) }, rec.words);
        }
        let mut reader = epochs.reader();
        arena.retire(recs[5]);
        arena.flush();
        assert_ne!(arena.allocate().map(|r| r.number), Some(recs[5].number));
        reader.quiescent();
        arena.flush();
        assert_eq!(arena.allocate().map(|r| r.number), Some(recs[5].number));
    }
}
