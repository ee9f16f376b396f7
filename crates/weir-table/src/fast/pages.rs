//! Records beside slots: where a structure has 2²⁴ slots of four bytes, memory of which half is slots and half records, in turns, so that who has looked into a slot finds the
//! record mostly in the same line, or else in the same page, whose address the processor knows by then. A page, if a record takes 32 bytes, in lines of 64:
//!
//! ```text
//! number    first + 0          first + 1          first + 2          first + 3          ...
//! holds     slots 0 to 7       record 0           slots 8 to 15      record 1           ... slots 504 to 511, record 63
//! ```
//!
//! So the numbers of the arena's chunk from `first` on are of slots and records in turns; the records, counted without the slots between, are
//! those of which [`FreeInPages`] has a bit each.

use std::sync::atomic::AtomicU64;

/// Bytes of a page.
const BYTES: usize = 4096;
/// log2 of the pages.
const PAGE_BITS: u32 = 15;
/// log2 of the slots.
pub(super) const SLOT_BITS: u32 = 24;
/// Whoever has records in pages has so many others before.
pub(super) const LEAST_BEFORE: u32 = 1 << 14;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Which numbers of records are those of pages, if a record takes so many words.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageNumbers {
    /// The first. There are as many as it says: they are a chunk.
    pub(super) first: u32,
    /// Of so many, one after the other, the first half are slots' memory.
    pub(super) unit: u32,
    /// Bytes of a record.
    bytes: u32,
}

impl PageNumbers {
    /// `None` if records are too large.
    pub(super) fn of(words: usize) -> Option<Self> {
        let bytes = words * size_of::<AtomicU64>();
        (bytes.is_power_of_two() && bytes <= LINE).then(|| PageNumbers {
            first: ((BYTES << PAGE_BITS) / bytes) as u32,
            unit: (LINE / bytes).max(2) as u32,
            bytes: bytes as u32,
        })
    }

    /// Whether a number is of memory in a page, of a record or of slots.
    #[inline]
    pub(super) fn contains(self, number: u32) -> bool {
        number / self.first == 1
    }

    /// Whether a number that is of memory in a page is that of a record.
    #[inline]
    pub(super) fn is_of_record(self, number: u32) -> bool {
        number & (self.unit / 2) != 0
    }

    /// How many records there are in pages.
    pub(super) fn all_records(self) -> usize {
        (self.records() as usize) << PAGE_BITS
    }

    /// Slots that lie together.
    pub(super) fn slots_together(self) -> usize {
        (self.unit * self.bytes) as usize / 2 / size_of::<u32>()
    }

    /// Records of a page.
    fn records(self) -> u32 {
        BYTES as u32 / self.bytes / 2
    }

    /// Of records counted without gaps from the first page on the first that is beside a slot.
    fn beside(self, slot: u32) -> u32 {
        slot / self.slots_together() as u32 * (self.unit / 2)
    }

    /// The number of a record that is counted so.
    fn number(self, record: u32) -> u32 {
        let half = self.unit / 2;
        self.first + record / half * self.unit + half + record % half
    }

    /// The reverse.
    pub(super) fn record(self, number: u32) -> u32 {
        let (at, half) = (number - self.first, self.unit / 2);
        at / self.unit * half + at % half
    }
}

/// The free records of pages.
#[derive(Debug)]
pub(super) struct FreeInPages {
    numbers: PageNumbers,
    /// A bit for each record that is free.
    words: Vec<u64>,
}

impl FreeInPages {
    pub(super) fn new(numbers: PageNumbers) -> Self {
        FreeInPages {
            numbers,
            words: vec![u64::MAX; numbers.all_records() / u64::BITS as usize],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.words)
    }

    /// A free record beside a slot, or else in its page, which is no longer free.
    pub(super) fn take(&mut self, slot: u32) -> Option<u32> {
        let record = self.numbers.beside(slot);
        let (word, bit) = (record / u64::BITS, record % u64::BITS);
        // The page's records are some words', or some of one word.
        let records = self.numbers.records();
        let words = (records / u64::BITS).max(1);
        let first = word / words * words;
        let of_page = u64::MAX >> (u64::BITS - records.min(u64::BITS)) << (bit / records * records);
        // From the one beside the slot on, at last those of its word before it.
        let from = |word: u32, bits: u64| (word, self.words[word as usize] & of_page & bits);
        let behind = u64::MAX << bit;
        let others = (1..words).map(|i| from(first + (word - first + i) % words, u64::MAX));
        let all = std::iter::once(from(word, behind))
            .chain(others)
            .chain([from(word, !behind)]);
        let (word, free) = all.into_iter().find(|(_, free)| *free != 0)?;
        let bit = free.trailing_zeros();
        self.words[word as usize] &= !(1 << bit);
        Some(self.numbers.number(word * u64::BITS + bit))
    }

    /// The record with this number is free again.
    pub(super) fn give_back(&mut self, number: u32) {
        let record = self.numbers.record(number);
        self.words[(record / u64::BITS) as usize] |= 1 << (record % u64::BITS);
    }

    pub(super) fn numbers(&self) -> PageNumbers {
        self.numbers
    }
}
