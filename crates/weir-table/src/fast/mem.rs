//! Memory that readers and one writer share: records of equal size, and their numbers.
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

/// Structures of more bytes than this are read in two stages: first all lines of a vector are asked for (apart from those that ask for lines
/// while they search others).
pub(super) const STAGED: usize = 256 << 10;

/// Asks for a line to be brought to the cache. Any address is allowed.
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
/// is published and never after, except the stamp and what counts hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rec {
    pub(super) words: NonNull<AtomicU64>,
    /// Its number in the arena, never 0.
    pub(super) index: u32,
}

// SAFETY: a pointer to atomics; who may follow it is the arena's contract.
unsafe impl Send for Rec {}

/// What lies where in a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Words of the result, which come first.
    pub(super) result: usize,
    /// The time of the last hit, if there is one.
    pub(super) stamp: Option<usize>,
    /// Key words, if any.
    pub(super) key: usize,
    /// What a structure adds.
    pub(super) extra: usize,
    /// Two words that count hits: packets, bytes; if it does that.
    pub(super) counts: Option<usize>,
    /// All words.
    pub(super) words: usize,
}

impl Shape {
    pub(super) fn new(result: usize, stamp: bool, key: usize, extra: usize) -> Self {
        let after = result + usize::from(stamp);
        Shape {
            result,
            stamp: stamp.then_some(result),
            key: after,
            extra: after + key,
            counts: None,
            words: after + key + extra,
        }
    }

    /// The same with two words more that count hits.
    pub(super) fn with_counts(self) -> Self {
        Shape {
            counts: Some(self.words),
            words: self.words + 2,
            ..self
        }
    }

    /// Words from one record to the next: records of up to a line do not straddle lines.
    fn stride(self) -> usize {
        if self.words <= 8 {
            self.words.next_power_of_two()
        } else {
            self.words.next_multiple_of(8)
        }
    }
}

/// log2 of the number of records in the first chunk.
const FIRST: u32 = 4;
const CHUNKS: usize = (32 - FIRST) as usize;

/// Where the chunks are, for readers that have record numbers: chunk `k` holds the numbers from
/// `16 << k` to `32 << k`.
#[derive(Debug)]
pub(super) struct Directory {
    stride: usize,
    chunks: [std::sync::OnceLock<Zeroed<AtomicU64>>; CHUNKS],
    /// By how many zeros a record's number begins with: where record 0 would be if there were all in its chunk. So the number need not be
    /// taken apart. (By its highest bit it would be another instruction, which takes four times as long on some processors.)
    starts: [AtomicPtr<AtomicU64>; 32],
}

impl Directory {
    /// The first word of a record.
    ///
    /// # Safety
    /// The arena has given out this number.
    #[inline(always)]
    pub(super) unsafe fn record(&self, index: u32) -> NonNull<AtomicU64> {
        // SAFETY: it is not 0, as 0 was not given out.
        let zeros = unsafe { NonZeroU32::new_unchecked(index) }.leading_zeros() as usize;
        // SAFETY: a number has 32 bits.
        let start = unsafe { self.starts.get_unchecked(zeros) }.load(Ordering::Acquire);
        // SAFETY: the number was given out, so its chunk is there and holds it.
        unsafe { NonNull::new_unchecked(start.wrapping_add(index as usize * self.stride)) }
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// Where [`Directory::record`] begins to count, by how many zeros a number begins with, and words from one record to the next.
    pub(super) fn starts(&self) -> (&[AtomicPtr<AtomicU64>; 32], usize) {
        (&self.starts, self.stride)
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// Whether records are worth being asked for before they are read.
    pub(super) fn is_staged(&self) -> bool {
        let number = STAGED / size_of::<AtomicU64>() / self.stride;
        // Records in pages are far, and come when there are so many others.
        let number = number.clamp(1 << FIRST, pages::LEAST_BEFORE as usize) as u32;
        let start = &self.starts[number.leading_zeros() as usize];
        !start.load(Ordering::Relaxed).is_null()
    }

    /// Makes the chunk of a number, if it is not there.
    fn reach(&self, index: u32) {
        let highest = index.ilog2();
        self.chunks[(highest - FIRST) as usize].get_or_init(|| {
            let first = 1_usize << highest;
            let chunk: Zeroed<AtomicU64> = Zeroed::new(first * self.stride);
            // Who looks up eight keys at a time has addresses as numbers.
            chunk.start().as_ptr().expose_provenance();
            let start = chunk.start().as_ptr().wrapping_sub(first * self.stride);
            self.starts[index.leading_zeros() as usize].store(start, Ordering::Release);
            chunk
        });
    }
}

/// Numbers of things that can be used again once readers have passed.
#[derive(Debug)]
pub(super) struct Recycler {
    free: Vec<u32>,
    /// Taken out, but perhaps not yet published so.
    pending: Vec<u32>,
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

    pub(super) fn pop(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// It was taken out; it is free when readers have passed the next [`Recycler::flush`].
    pub(super) fn retire(&mut self, number: u32) {
        self.pending.push(number);
    }

    /// Call after readers can no longer find what was retired.
    pub(super) fn flush(&mut self) {
        self.flush_but(|_| false);
    }

    /// The same. Of what is free now that is left out which somebody else takes care of.
    fn flush_but(&mut self, mut is_taken: impl FnMut(u32) -> bool) {
        if !self.pending.is_empty() {
            self.limbo
                .push_back((self.epochs.advance(), std::mem::take(&mut self.pending)));
        }
        if self.limbo.is_empty() {
            return;
        }
        let passed = self.epochs.passed();
        while self.limbo.front().is_some_and(|(epoch, _)| *epoch <= passed) {
            if let Some((_, numbers)) = self.limbo.pop_front() {
                self.free
                    .extend(numbers.into_iter().filter(|number| !is_taken(*number)));
            }
        }
    }
}

/// Records of equal size. They never move.
#[derive(Debug)]
pub(super) struct Arena {
    shape: Shape,
    directory: Arc<Directory>,
    next: u32,
    recycler: Recycler,
    /// Of pages, if there are any.
    pages: Option<FreeInPages>,
}

/// The numbers of records that were given out, and some of records that are free: those that are free again, and all in pages. All are of memory of the arena
/// that is a record's and nothing else.
#[derive(Debug, Clone)]
pub(super) struct GivenOut {
    pub(super) ordinary: Range<u32>,
    pub(super) in_pages: Option<PageNumbers>,
}

impl GivenOut {
    #[inline]
    pub(super) fn contains(&self, number: u32) -> bool {
        // Ordinary numbers may go on behind those of pages.
        match self.in_pages {
            Some(pages) if pages.contains(number) => pages.is_of_record(number),
            _ => self.ordinary.contains(&number),
        }
    }
}

impl Arena {
    pub(super) fn new(shape: Shape, epochs: Arc<Epochs>) -> Self {
        let directory = Directory {
            stride: shape.stride(),
            chunks: [const { std::sync::OnceLock::new() }; CHUNKS],
            starts: [const { AtomicPtr::new(std::ptr::null_mut()) }; 32],
        };
        Arena {
            shape,
            directory: Arc::new(directory),
            next: 1 << FIRST,
            recycler: Recycler::new(epochs),
            pages: None,
        }
    }

    /// Has memory of pages with slots, if records are such that they fit in; from now on records may lie in them.
    pub(super) fn make_pages(&mut self) {
        if self.pages.is_none()
            && let Some(numbers) = PageNumbers::of(self.directory.stride)
            && self.next <= numbers.first
        {
            self.directory.reach(numbers.first);
            self.pages = Some(FreeInPages::new(numbers));
        }
    }

    /// The first of the slots in pages, and how many lie together; if there are pages.
    pub(super) fn slots(&self) -> Option<(NonNull<AtomicU32>, usize)> {
        let numbers = self.pages.as_ref()?.numbers();
        let chunk = self.directory.chunks[(numbers.first.ilog2() - FIRST) as usize].get()?;
        Some((chunk.start().cast(), numbers.slots_together()))
    }

    /// As [`Arena::take`], beside a slot if there are pages and that one has room.
    fn take_beside(&mut self, slot: u32) -> Option<Rec> {
        let Some(index) = self.pages.as_mut().and_then(|pages| pages.take(slot)) else {
            return self.take();
        };
        // SAFETY: it lies in the chunk of pages, which was made with them.
        let words = unsafe { self.directory.record(index) };
        Some(Rec { words, index })
    }

    /// Which of all records in pages the one with this number is, and how many there are; `None` if it is not one of them.
    pub(super) fn place_in_pages(&self, number: u32) -> Option<(usize, usize)> {
        let numbers = self.pages.as_ref()?.numbers();
        let place = || (numbers.record(number) as usize, numbers.all_records());
        numbers.contains(number).then(place)
    }

    fn given_out(&self) -> GivenOut {
        GivenOut {
            ordinary: 1 << FIRST..self.next,
            in_pages: self.pages.as_ref().map(FreeInPages::numbers),
        }
    }

    pub(super) fn epochs(&self) -> &Arc<Epochs> {
        self.recycler.epochs()
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    pub(super) fn bytes(&self) -> usize {
        let chunks = self.directory.chunks.iter().filter_map(|c| c.get());
        chunks.map(Zeroed::bytes).sum::<usize>() + self.pages.as_ref().map_or(0, FreeInPages::bytes)
    }

    /// A record that no reader knows, with stale words in it. `None`: 2^31 are in use.
    pub(super) fn take(&mut self) -> Option<Rec> {
        let index = match self.recycler.pop() {
            Some(index) => index,
            None => {
                // Records of pages are not for everybody.
                if let Some(pages) = &self.pages
                    && self.next == pages.numbers().first
                {
                    self.next *= 2;
                }
                let index = self.next;
                if index >> 31 != 0 {
                    return None;
                }
                self.next += 1;
                self.directory.reach(index);
                index
            }
        };
        // SAFETY: this number is given out now.
        let words = unsafe { self.directory.record(index) };
        Some(Rec { words, index })
    }

    /// A record with a result and a key; the stamp is `stamp`.
    pub(super) fn record(&mut self, result: &[u64], key: &[u64], stamp: u64) -> Option<Rec> {
        let rec = self.take()?;
        self.fill(rec, result, key, stamp);
        Some(rec)
    }

    /// As [`Arena::record`], without a key; beside a slot if there are pages and that one has room.
    pub(super) fn record_beside(&mut self, slot: u32, result: &[u64], stamp: u64) -> Option<Rec> {
        let rec = self.take_beside(slot)?;
        self.fill(rec, result, &[], stamp);
        Some(rec)
    }

    fn fill(&self, rec: Rec, result: &[u64], key: &[u64], stamp: u64) {
        let shape = self.shape;
        for (i, word) in result.iter().take(shape.result).enumerate() {
            self.set(rec, i, *word);
        }
        if let Some(at) = shape.stamp {
            self.set(rec, at, stamp);
        }
        for (i, word) in key.iter().take(shape.extra - shape.key).enumerate() {
            self.set(rec, shape.key + i, *word);
        }
    }

    /// Writes a word of a record that is not published, or one that may change.
    pub(super) fn set(&self, rec: Rec, at: usize, value: u64) {
        self.word(rec, at).store(value, Ordering::Relaxed);
    }

    /// A word of a record of this arena.
    pub(super) fn word(&self, rec: Rec, at: usize) -> &AtomicU64 {
        assert!(at < self.shape.words);
        // SAFETY: records of this arena live as long as it does and have so many words.
        unsafe { rec.words.add(at).as_ref() }
    }

    /// The time of the last hit of a record, 0 without stamps.
    pub(super) fn stamp(&self, rec: Rec) -> u64 {
        self.shape
            .stamp
            .map_or(0, |at| self.word(rec, at).load(Ordering::Relaxed))
    }

    /// Counts hits in records, if these count. Numbers that are not [of records](GivenOut) are left out.
    #[inline]
    pub(super) fn count(&self, hits: Hits<'_>) {
        if let Some(at) = self.shape.counts {
            // SAFETY: these are records', and all have two words there.
            unsafe { self.directory.count(&self.given_out(), at, hits) };
        }
    }

    /// What a record has counted.
    pub(super) fn counted(&self, number: u32) -> HitCount {
        let Some(at) = self.shape.counts else {
            return HitCount::default();
        };
        let word = |at| self.word(self.at(number), at).load(Ordering::Relaxed);
        HitCount {
            packets: word(at),
            bytes: word(at + 1),
        }
    }

    /// Sets what a record has counted, if it counts.
    pub(super) fn set_counted(&self, number: u32, count: HitCount) {
        if let Some(at) = self.shape.counts {
            let rec = self.at(number);
            self.set(rec, at, count.packets);
            self.set(rec, at + 1, count.bytes);
        }
    }

    /// The record was taken out of the structure; it can be used again when readers have passed the
    /// next [`Arena::flush`].
    pub(super) fn retire(&mut self, rec: Rec) {
        self.recycler.retire(rec.index);
    }

    /// The record with this number.
    pub(super) fn at(&self, index: u32) -> Rec {
        assert!(self.given_out().contains(index));
        // SAFETY: it was given out, or is a record's in pages, whose chunk is there.
        let words = unsafe { self.directory.record(index) };
        Rec { words, index }
    }

    /// Call after readers can no longer find the retired records.
    pub(super) fn flush(&mut self) {
        self.recycler.flush_but(|number| {
            let pages = self.pages.as_mut();
            let pages = pages.filter(|pages| pages.numbers().contains(number));
            pages.map(|pages| pages.give_back(number)).is_some()
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
            let mut arena = Arena::new(Shape::new(words, false, 0, 0), Arc::clone(&epochs));
            let ordinary = arena.record_beside(0, &[7], 0).map(|rec| rec.index);
            assert_eq!(ordinary, Some(1 << FIRST), "there are no pages yet");
            arena.make_pages();
            let (slots, together) = arena.slots().expect("records of up to a line are beside slots");
            let start = slots.as_ptr().addr();
            // Half of each unit are slots; that of slot 5000 is not that of slot 0.
            let unit = 2 * together * size_of::<AtomicU32>();
            let of_page = 4096 / unit * (unit / 2) / (8 * words);
            let all: Vec<Rec> = (0..of_page)
                .filter_map(|_| arena.record_beside(5000, &[3], 0))
                .collect();
            let places: Vec<usize> = all.iter().map(|rec| rec.words.as_ptr().addr() - start).collect();
            let first = 5000 / together * unit;
            assert_eq!(places[0], first + unit / 2, "{words}");
            for (i, place) in places.iter().enumerate() {
                assert_eq!(place / 4096, first / 4096, "it is in the slot's page");
                assert!(place % unit >= unit / 2, "it is not where slots are");
                assert!(!places[..i].contains(place));
            }
            let behind = arena.record_beside(5000, &[3], 0).expect("there is memory");
            assert_eq!(behind.index, (1 << FIRST) + 1, "the page is full");
            let again = all[of_page / 2];
            arena.retire(again);
            arena.flush();
            assert_eq!(arena.record_beside(5000, &[3], 0), Some(again));
        }
    }

    #[test]
    fn large_records_are_not_beside_slots() {
        let mut arena = Arena::new(Shape::new(9, false, 0, 0), Arc::new(Epochs::new()));
        arena.make_pages();
        assert_eq!(arena.slots(), None);
        assert!(arena.record_beside(1, &[1; 9], 0).is_some());
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

    fn nothing_is_counted_in_slots(go_on: bool) {
        let shape = Shape::new(6, false, 0, 0).with_counts();
        let mut arena = Arena::new(shape, Arc::new(Epochs::new()));
        arena.make_pages();
        let first = arena.pages.as_ref().map_or(0, |pages| pages.numbers().first);
        while go_on && arena.take().is_some_and(|rec| rec.index < 2 * first) {}
        assert_eq!(arena.given_out().ordinary.contains(&first), go_on);
        let record = arena.record_beside(9, &[1, 2], 0).expect("there is memory").index;
        arena.set_counted(record, HitCount::default());
        // The one before it is slots, as is the first.
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
        let mut arena = Arena::new(Shape::new(2, true, 1, 0), Arc::clone(&epochs));
        let recs: Vec<_> = (0..100).filter_map(|i| arena.record(&[i, i], &[i], 9)).collect();
        for (i, rec) in recs.iter().enumerate() {
            assert_eq!(arena.word(*rec, 0).load(Ordering::Relaxed), i as u64);
            assert_eq!(arena.word(*rec, 3).load(Ordering::Relaxed), i as u64);
            assert_eq!(arena.stamp(*rec), 9);
            // SAFETY: given out above.
            assert_eq!(unsafe { arena.directory().record(rec.index) }, rec.words);
        }
        let mut reader = epochs.reader();
        arena.retire(recs[5]);
        arena.flush();
        assert_ne!(arena.take().map(|r| r.index), Some(recs[5].index));
        reader.quiescent();
        arena.flush();
        assert_eq!(arena.take().map(|r| r.index), Some(recs[5].index));
    }
}
