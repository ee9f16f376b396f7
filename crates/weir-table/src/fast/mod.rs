//! The data plane's side of a table. Compiled code looks keys up in vectors of up to 64 packets, in
//! several threads, while one writer at a time changes the table.
//!
//! A [`FastTable`] mirrors a [`Table`](crate::Table). The owner of the `Table` repeats each
//! change with [`FastTable::insert`], [`FastTable::remove`] and [`FastTable::set_default`]. Readers
//! never lock. All words of a result belong to one version of one entry. Memory that was unlinked
//! is freed when no reader can access it any more; see [`Epochs`].
//!
//! The structure of a table depends on its keys. Bytes are per entry:
//!
//! | keys | structure | bytes |
//! |---|---|---|
//! | none | nothing | 0 |
//! | exact, up to 12 bits in all | an array of pointers to records, indexed by the key | record + 8 per possible key |
//! | exact, 13 to 16 bits in all, with more than one word of data | the same | the same |
//! | exact, key and data together in one word; [without handles](FastTable::without_handles); up to 1,024 entries | a displacement hash: each key has a slot of its own | 13–20, and 80 of the writer; with `idle_timeout` 19–30, and 110 of the writer |
//! | exact, key and data together in one word; without handles; more than 1,024 entries | cuckoo buckets of one cache line: eight slots with key and result, five with `idle_timeout` | 14–21, 21–34 |
//! | exact, one word; data of a few bits | cuckoo buckets of one cache line: four slots with key and result | 21–43 |
//! | exact, one word; at most one word of data | cuckoo buckets of one cache line: two slots with key and result | 51–103; up to 128 entries 64 KB at most |
//! | exact, all others | cuckoo hash table of pointers to records | 15–30 + record |
//! | one LPM key, 1–32 bits, up to 1,024 entries; AVX-512 of Ice Lake or Zen 4 | address ranges, sixteen compared at once | 16 KB in all, and 40–56 + record |
//! | one LPM key, 1–32 bits, up to 64 entries; other processors | address ranges, found by binary search | 32 + record |
//! | one LPM key, 24–32 bits, more entries than above, with records of up to 64 bytes, where the program gives a size of 16,384 and more | DIR-24-8 with records between the slots: 128 MB + 1 KB per /24 with longer prefixes | 20 + record of the first 16,384 |
//! | one LPM key, 1–32 bits, all others | DIR-24-8: up to 64 MB + 1 KB per /24 with longer prefixes | 20 + record |
//! | all other keys, up to 16 entries | masked compares, one rule after the other | 150–500 |
//! | all other keys, more entries | tuple space: a hash table per mask, searched by falling rank | 40–60 + record |
//!
//! A record holds the result. It takes 8 bytes more with `idle_timeout`, 16 more [with
//! counts](FastTable::with_counts), and 8 more for its number in arrays and hash tables. In a hash
//! table it holds the key too (with masks, 3 words more, and 2 more per range key). Its size is
//! rounded up to a power of two up to 64 bytes, beyond that to cache lines. Prefixes wider than 32
//! bits, or beside exact keys, are masks. The writer takes about 20 bytes more per entry with
//! time-outs, and about 25 with counts.
//!
//! Not here: the choice of a group's member ([`head::INDIRECT`]), counters other than those of
//! hits, and the clock.
#![deny(unsafe_code)]

mod count;
mod cuckoo_index;
mod cuckoo_path;
mod cuckoo_records;
mod direct_index;
mod displacement;
mod epochs;
mod hash;
mod inline;
mod layout;
#[cfg(all(loom, test))]
mod loom_tests;
mod lpm;
mod mem;
mod packed;
mod packing;
mod pages;
mod pending;
mod retired;
mod rule;
mod scan;
mod seqlock;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod simd;
mod structure;
mod table;
mod tuple_order;
mod tuple_space;
mod vector_lookup;
mod zeroed;

pub use epochs::{Epochs, Guard, Reader};
pub use layout::{FieldSlot, KeyLayout, ResultLayout};
pub use pending::PendingLookup;
pub use table::{
    FastTable, HitCount, ResultArray, SlotAddressing, TableLayout, TableView, UpdateBatch, is_array, slot_shift,
};
pub use vector_lookup::PrefetchQueue;

pub(crate) use mem::prefetch;

/// The granularity of last hits, in nanoseconds: about a millisecond, so that a hot entry is
/// written at most once per tick. Some structures are more exact.
pub const LAST_HIT_TICK_NS: u64 = 1 << 20;

/// The first word of a result, the *head*. Bits 0..32 are the entry's handle or, [with
/// counts](FastTable::with_counts), a record number; 0 is a miss. From bit 32 to 48 lies the
/// action's index in the table and, where it fits, action data above it (see [`ResultLayout`]).
/// Flags follow.
pub mod head {
    /// An entry was hit.
    pub const HIT: u64 = 1 << 48;
    /// The entry's action is a member, a group or a one-shot set. The host resolves it by the
    /// handle.
    pub const INDIRECT: u64 = 1 << 49;
    /// The lowest bit of the action's index.
    pub const ACTION_SHIFT: u32 = 32;
    /// The bit after those of action and data.
    pub(crate) const DATA_END: u32 = 48;

    /// The entry handle, 0 for a miss.
    #[must_use]
    #[inline]
    pub fn handle(word: u64) -> u32 {
        word as u32
    }
}
