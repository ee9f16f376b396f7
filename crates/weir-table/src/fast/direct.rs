//! What code that looks into a table itself, without a call, has to know of it.
//!
//! Of two structures only. A table of exact keys of one word is an array of buckets ([`DirectKind::Exact`]); LPM of up to 32
//! bits with many prefixes is DIR-24-8 ([`DirectKind::Lpm`]). Both begin with a word ([`Direct::WRITES`]) that is odd while
//! the structure must not be read so, and different after: then the table is to be asked
//! ([`FastTable::lookup`](super::FastTable::lookup)). Exact tables may be looked into all the same, if nothing is made of what
//! is found.
//!
//! **Exact.** The hash of a key is [`hash_of`]'s; its first bucket is at [`Direct::BASE`] plus 64 times the hash, and-ed with
//! [`Direct::MASK`]; its second likewise from the hash's upper half, or the first's neighbour (number XOR 1) where that is the
//! first too. A key that is not in the first bucket may be in the second if bit 63 of the first bucket's first head is set. With
//! four slots ([`DirectKind::Exact::slots`]) a bucket is four keys, then four heads; the stamp of slot `s` of bucket
//! `b` is word `4 b + s` at [`Direct::MORE`]. With two it is two times head, key, data, stamp. Of a head the lower 50 bits are
//! the result's first word. Keys are never found in free slots.
//!
//! **LPM.** The address, left-aligned in 32 bits, has its number (32 bits) at [`Direct::BASE`] by its first bits. With bit 31
//! set it is that of a group, and the table is to be asked; 0 stands for the number at [`Direct::ROOT`], and if that is 0 too
//! nothing matches. The record of number `n` begins `n` times [`DirectKind::Lpm::stride`] after the address that
//! [`Direct::MORE`] has in the word of `n`'s bit length minus 5.

use crate::fast::hash::SPREAD;
use crate::fast::layout::{KeyLayout, ResultLayout};
use crate::fast::rule::Keys;
use crate::fast::structure::Plan;
use crate::spec::TableSpec;
use std::sync::atomic::{AtomicPtr, AtomicU64};

/// How a table can be looked into without a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectKind {
    /// An array of buckets.
    Exact {
        /// Slots of a bucket: 4, and results have one word; or 2, and they have up to two.
        slots: usize,
        /// Hits leave their time.
        stamps: bool,
    },
    /// A number by the first bits of the address.
    Lpm {
        /// Bits of the key, up to 32.
        width: u32,
        /// Bits of the index, the lower of 24 and `width`.
        bits: u32,
        /// Bytes from one record to the next.
        stride: usize,
        /// The word of a record where hits leave their time, if they do.
        stamp: Option<usize>,
    },
}

impl DirectKind {
    /// How tables of this spec that give handles can be looked into; `None`: only by asking.
    #[must_use]
    pub fn of(spec: &TableSpec) -> Option<Self> {
        let (keys, results) = (KeyLayout::new(spec), ResultLayout::new(spec));
        Self::of_plan(Plan::new(spec, keys.words, results.words), spec, &keys, results.words)
    }

    pub(super) fn of_plan(plan: Plan, spec: &TableSpec, keys: &KeyLayout, result_words: usize) -> Option<Self> {
        let stamps = spec.idle_timeout;
        match plan {
            Plan::Dense => Some(DirectKind::Exact { slots: 4, stamps }),
            Plan::Inline => Some(DirectKind::Exact { slots: 2, stamps }),
            Plan::Lpm(width) => {
                let record = plan.record(&Keys::new(spec, keys), result_words, stamps);
                Some(DirectKind::Lpm {
                    width,
                    bits: width.min(24),
                    stride: record.stride() * 8,
                    stamp: record.stamp,
                })
            }
            Plan::Nothing | Plan::Packed(_) | Plan::Exact | Plan::General => None,
        }
    }
}

/// A structure as code sees it; the [module](self) says what its words mean.
#[derive(Debug)]
#[repr(C)]
pub struct Direct {
    pub(super) writes: AtomicU64,
    pub(super) start: u64,
    pub(super) factor: u64,
    pub(super) mask: u64,
    pub(super) base: AtomicPtr<u8>,
    pub(super) more: AtomicPtr<u8>,
    pub(super) root: AtomicU64,
}

impl Direct {
    /// Offset of the word that is odd while the table must be asked.
    pub const WRITES: i32 = std::mem::offset_of!(Direct, writes) as i32;
    /// Offset of what the key is XOR-ed with before it is hashed.
    pub const START: i32 = std::mem::offset_of!(Direct, start) as i32;
    /// Offset of what it is then multiplied by.
    pub const FACTOR: i32 = std::mem::offset_of!(Direct, factor) as i32;
    /// Offset of the mask for 64 times a bucket's number.
    pub const MASK: i32 = std::mem::offset_of!(Direct, mask) as i32;
    /// Offset of the address of the buckets or numbers.
    pub const BASE: i32 = std::mem::offset_of!(Direct, base) as i32;
    /// Offset of the address of stamps or of the addresses of records.
    pub const MORE: i32 = std::mem::offset_of!(Direct, more) as i32;
    /// Offset of the number that stands where there is none.
    pub const ROOT: i32 = std::mem::offset_of!(Direct, root) as i32;
    /// What the second multiplication of [`hash_of`] is by.
    pub const SPREAD: u64 = SPREAD;
    /// Bits of a head that are the result's first word.
    pub const HEAD_BITS: u32 = 50;

    pub(super) const fn new() -> Self {
        Direct {
            writes: AtomicU64::new(0),
            start: 0,
            factor: 0,
            mask: 0,
            base: AtomicPtr::new(std::ptr::null_mut()),
            more: AtomicPtr::new(std::ptr::null_mut()),
            root: AtomicU64::new(0),
        }
    }
}

/// Two buckets that hold nothing: code that looks for exact keys finds out only afterwards that it must ask.
#[repr(align(64))]
struct NoBuckets([AtomicU64; 16]);

static NO_BUCKETS: NoBuckets = NoBuckets([const { AtomicU64::new(0) }; 16]);

/// Of tables that have to be asked.
pub(super) static ASK: Direct = Direct {
    writes: AtomicU64::new(1),
    base: AtomicPtr::new((&raw const NO_BUCKETS.0).cast::<u8>().cast_mut()),
    more: AtomicPtr::new((&raw const NO_BUCKETS.0).cast::<u8>().cast_mut()),
    ..Direct::new()
};

/// The hash of a key of one word: `start` and `factor` are the table's.
#[must_use]
#[inline(always)]
pub fn hash_of(key: u64, start: u64, factor: u64) -> u64 {
    let mixed = (key ^ start).wrapping_mul(factor);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(SPREAD);
    mixed ^ mixed >> 29
}
