//! Records near slots: where a structure has 2²⁴ slots of four bytes, runs of slots and runs of
//! records alternate in memory. A lookup that has read a slot mostly finds the record in the same
//! line, or else in the same page, whose address translation is cached by then. The layout of a
//! page, with records of 32 bytes, in lines of 64:
//!
//! ```text
//! number    first + 0          first + 1          first + 2          first + 3          ...
//! holds     slots 0 to 7       record 0           slots 8 to 15      record 1           ... slots 504 to 511, record 63
//! ```
//!
//! The pages are one chunk of the arena, whose numbers begin at `first`. Of its numbers, every
//! other run stands for memory of slots and is never given out. [`FreeInPages`] has a bit per
//! record; its bits are indexed by the record's position among the records alone.

use std::sync::atomic::AtomicU64;

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;
/// log2 of the number of pages.
const PAGE_COUNT_LOG2: u32 = 15;
/// log2 of the number of slots.
pub(super) const SLOT_BITS: u32 = 24;
/// Records are placed in pages only beyond this number of other records.
pub(super) const MIN_RECORDS_BEFORE: u32 = 1 << 14;
/// Bytes of a cache line.
const LINE_BYTES: usize = 64;

/// The record numbers that lie in pages, for a given record size.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageNumbers {
    /// The first number. It equals their count: they are a chunk of the arena, which holds numbers
    /// from `first` to `2 * first` (see [`Directory`](crate::fast::mem::Directory)).
    pub(super) first: u32,
    /// Numbers per stripe, which is a run of slots and a run of records: the first half of its
    /// numbers is the memory of slots, the second half is records.
    pub(super) stripe: u32,
    /// Bytes of a record.
    record_bytes: u32,
}

impl PageNumbers {
    /// `None` if records are too large.
    pub(super) fn new(words: usize) -> Option<Self> {
        let bytes = words * size_of::<AtomicU64>();
        (bytes.is_power_of_two() && bytes <= LINE_BYTES).then(|| PageNumbers {
            first: ((PAGE_BYTES << PAGE_COUNT_LOG2) / bytes) as u32,
            stripe: (LINE_BYTES / bytes).max(2) as u32,
            record_bytes: bytes as u32,
        })
    }

    /// Whether a number lies in pages, on a record or on slots.
    #[inline]
    pub(super) fn contains(self, number: u32) -> bool {
        number / self.first == 1
    }

    /// Whether a number in pages is that of a record.
    #[inline]
    pub(super) fn is_of_record(self, number: u32) -> bool {
        number & (self.stripe / 2) != 0
    }

    /// Number of records in pages.
    pub(super) fn record_count(self) -> usize {
        (self.records_per_page() as usize) << PAGE_COUNT_LOG2
    }

    /// Length of a run of adjacent slots.
    pub(super) fn run_length(self) -> usize {
        (self.stripe * self.record_bytes) as usize / 2 / size_of::<u32>()
    }

    /// Records per page.
    fn records_per_page(self) -> u32 {
        PAGE_BYTES as u32 / self.record_bytes / 2
    }

    /// The index (counted over records only) of the first record next to a slot.
    fn first_near(self, slot: u32) -> u32 {
        slot / self.run_length() as u32 * (self.stripe / 2)
    }

    /// The number of the record with this index, counted over records only.
    fn number_of_index(self, index: u32) -> u32 {
        let half = self.stripe / 2;
        self.first + index / half * self.stripe + half + index % half
    }

    /// The index of the record with this number.
    pub(super) fn record_index(self, number: u32) -> u32 {
        let (index, half) = (number - self.first, self.stripe / 2);
        index / self.stripe * half + index % half
    }
}

/// The free records in pages.
#[derive(Debug)]
pub(super) struct FreeInPages {
    numbers: PageNumbers,
    /// A bit per record, set if it is free.
    words: Vec<u64>,
}

impl FreeInPages {
    pub(super) fn new(numbers: PageNumbers) -> Self {
        FreeInPages {
            numbers,
            words: vec![u64::MAX; numbers.record_count() / u64::BITS as usize],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// Allocates a free record next to a slot, or else in the slot's page.
    pub(super) fn allocate(&mut self, slot: u32) -> Option<u32> {
        let record = self.numbers.first_near(slot);
        let (word, bit) = (record / u64::BITS, record % u64::BITS);
        // The records of a page are several words of bits, or a part of one word.
        let records = self.numbers.records_per_page();
        let words = (records / u64::BITS).max(1);
        let first = word / words * words;
        let of_page = u64::MAX >> (u64::BITS - records.min(u64::BITS)) << (bit / records * records);
        // Search from the one next to the slot on; the bits before it in the same word come last.
        let from = |word: u32, bits: u64| (word, self.words[word as usize] & of_page & bits);
        let behind = u64::MAX << bit;
        let others = (1..words).map(|i| from(first + (word - first + i) % words, u64::MAX));
        let all = std::iter::once(from(word, behind))
            .chain(others)
            .chain([from(word, !behind)]);
        let (word, free) = all.into_iter().find(|(_, free)| *free != 0)?;
        let bit = free.trailing_zeros();
        self.words[word as usize] &= !(1 << bit);
        Some(self.numbers.number_of_index(word * u64::BITS + bit))
    }

    /// Frees the record with this number.
    pub(super) fn free(&mut self, number: u32) {
        let record = self.numbers.record_index(number);
        self.words[(record / u64::BITS) as usize] |= 1 << (record % u64::BITS);
    }

    /// The record numbers in pages.
    pub(super) fn numbers(&self) -> PageNumbers {
        self.numbers
    }
}
