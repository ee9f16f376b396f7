//! The data-plane side of a table: read by compiled code in vectors of up to 64 packets, in several
//! threads, while one writer at a time changes it.
//!
//! A [`FastTable`] mirrors a [`Table`](crate::Table): what changes there is told here by
//! [`FastTable::insert`], [`FastTable::remove`] and [`FastTable::set_default`]. Readers never lock.
//! All words of a result belong to one version of one entry. Memory that was taken out is freed when
//! no reader can look at it any more; see [`Epochs`].
//!
//! What a table is made of, by its keys, and bytes per entry:
//!
//! | keys | structure | bytes |
//! |---|---|---|
//! | none | nothing | 0 |
//! | exact, up to 12 bits in all; up to 16 and more than one word of data | an array by key | record + 8 per possible key |
//! | exact, in one word with data; [without handles](FastTable::without_handles); up to 1,024 entries | an array in which each key has a place of its own | 13–20, with `idle_timeout` 19–30; the writer's 80, 40 more with it |
//! | the same, more | cache lines of eight slots with key and result, of five with `idle_timeout` | 14–21, 21–34 |
//! | exact, one word; data of a few bits | cache lines of four slots with key and result | 21–43 |
//! | exact, one word; at most one word of data | cache lines of two slots with key and result | 51–103; up to 128 entries 64 KB at most |
//! | exact, other | hash table of records | 15–30 + record |
//! | one LPM key, 1–32 bits, up to 1,024 entries; AVX-512 of Ice Lake or Zen 4 | ranges, of which sixteen are compared at once | 16 KB in all, and 40–56 + record |
//! | the same, up to 64 entries, other processors | intervals, searched by bisection | 32 + record |
//! | the same, more, of 24 bits at least, with records of up to 64 bytes, where the program gives a size of 16,384 and more | DIR-24-8 with room for records between slots: 128 MB + 1 KB per /24 with longer prefixes | 20 + record of the first 16,384 |
//! | the same, more, others | DIR-24-8: up to 64 MB + 1 KB per /24 with longer prefixes | 20 + record |
//! | other, up to 16 entries | masked compares one after the other | 150–500 |
//! | other, more | a hash table per mask, the highest rank first | 40–60 + record |
//!
//! A record is the result, 8 bytes with `idle_timeout`, 16 [with counts](FastTable::with_counts), 8 for its number in arrays and hash tables, and with a hash table the key (3 words and 2
//! per range key more where there are masks): rounded up to a power of two up to 64 bytes, then to
//! lines. Prefixes wider than 32 bits or beside exact keys are masks. Entries with time-outs take
//! about 20 bytes more, of the writer's; with counts about 25.
//!
//! Not here: which member of a group is chosen ([`head::INDIRECT`]), counters but those of hits, and the clock.
#![deny(unsafe_code)]

mod batch;
mod begun;
mod buckets;
mod count;
mod cuckoo;
mod direct;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod eight;
mod epochs;
mod exact;
mod hash;
mod inline;
mod layout;
mod lpm;
mod mem;
#[cfg(all(loom, test))]
mod models;
mod order;
mod packed;
mod packing;
mod pages;
mod placed;
mod retired;
mod rule;
mod scan;
mod structure;
mod table;
mod tuple;
mod writes;
mod zeroed;

pub use batch::Fetches;
pub use begun::Begun;
pub use epochs::{Epochs, Guard, Reader};
pub use layout::{FieldSlot, KeyLayout, ResultLayout};
pub use table::{Array, Changes, FastTable, HitCount, Present, SlotPlaces, TableForm, is_array, slot_shift};

pub(crate) use mem::prefetch;

/// Last hits are noted in steps of so many nanoseconds, about a millisecond, so that an entry that is hit all the time is
/// not written all the time. Some structures are more exact.
pub const LAST_HIT_STEP_NS: u64 = 1 << 20;

/// The first word of a result: bits 0..32 entry handle or, [with counts](FastTable::with_counts), a number in its place (0 is a miss), 32..48 index of the action in
/// the table and above it perhaps data (see [`ResultLayout`]), then flags.
pub mod head {
    /// An entry was hit.
    pub const HIT: u64 = 1 << 48;
    /// The entry's action is a member, a group or a one-shot set: to be resolved by the handle.
    pub const INDIRECT: u64 = 1 << 49;
    /// Where the action's index begins.
    pub const ACTION_SHIFT: u32 = 32;
    /// Where action and data end.
    pub(crate) const DATA_END: u32 = 48;

    /// The entry handle, 0 for a miss.
    #[must_use]
    #[inline]
    pub fn handle(word: u64) -> u32 {
        word as u32
    }
}
