//! Entries packed into one word (exact key and result together), and last hits of half a word.
//!
//! A 64-bit slot is an entry: the key in the upper bits, below it action and data, and bit 0, which
//! is set. Free slots are 0. So an entry has no handle that readers could see.
//!
//! The time of a last hit is stored as the lower 32 bits of its tick ([`LAST_HIT_TICK_NS`]), which
//! wrap around. The upper bits are reconstructed from the newest time seen ([`Newest`]): a last hit
//! is the latest tick, not after that one, with the stored lower bits. For an entry that was not
//! hit for 52 days, the reconstructed time is too recent.

use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::head::{self, HIT};
use crate::fast::layout::ResultLayout;
use crate::spec::{Implementation, TableSpec};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weir_ir::MatchKind;

/// The layout of an entry that is packed into a 64-bit slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    /// The lowest bit of the key.
    pub(super) shift: u32,
}

impl Packing {
    /// `None` if key and result have too many bits. The keys must be exact and of one word, results
    /// of one word.
    pub(super) fn new(spec: &TableSpec, results: &ResultLayout) -> Option<Self> {
        debug_assert!(spec.match_keys().all(|k| k.kind == MatchKind::Exact) && results.words == 1);
        let key_bits: u32 = spec.match_keys().map(|k| k.width).sum();
        let slots = results.actions.iter().flatten().filter(|s| s.width > 0);
        let data_end = slots.map(|s| u32::from(s.shift) + s.width).max().unwrap_or(0);
        let result_bits = data_end.saturating_sub(head::ACTION_SHIFT).max(results.action_width);
        let fits = spec.implementation == Implementation::Direct
            && result_bits <= head::DATA_END - head::ACTION_SHIFT
            && key_bits + result_bits < 64;
        fits.then_some(Packing { shift: result_bits + 1 })
    }

    /// A key's packed entry, apart from the result bits.
    #[inline(always)]
    pub(super) fn needle(self, key: u64) -> u64 {
        key << self.shift | 1
    }

    /// All bits but those of the result.
    #[inline(always)]
    pub(super) fn significant(self) -> u64 {
        !0 << self.shift | 1
    }

    /// The key of a packed entry.
    pub(super) fn key(self, entry: u64) -> u64 {
        entry >> self.shift
    }

    /// The entry of a key whose result begins with the word `head`.
    pub(super) fn pack(self, key: u64, head: u64) -> u64 {
        self.needle(key) | (head >> head::ACTION_SHIFT << 1) & !self.significant()
    }

    /// The first word of an entry's result.
    #[inline(always)]
    pub(super) fn head(self, entry: u64) -> u64 {
        (entry & !self.significant()) << (head::ACTION_SHIFT - 1) | HIT
    }
}

/// The tick of a time.
pub(super) fn tick(ns: u64) -> u64 {
    ns / LAST_HIT_TICK_NS
}

/// The newest time seen, in ticks.
#[derive(Debug, Default)]
pub(super) struct Newest(AtomicU64);

impl Newest {
    /// Observes a time, in ticks.
    #[inline(always)]
    pub(super) fn observe(&self, tick: u64) {
        if self.0.load(Ordering::Relaxed) < tick {
            self.0.fetch_max(tick, Ordering::Release);
        }
    }

    /// The newest time observed so far.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// The full time of a stamp, in ticks.
    pub(super) fn time(&self, stamp: &AtomicU32) -> u64 {
        let stamp = stamp.load(Ordering::Acquire);
        let newest = self.get();
        newest.saturating_sub((newest as u32).wrapping_sub(stamp).into())
    }
}

/// Sets an entry's stamp, unless it is this tick's already.
#[inline(always)]
pub(super) fn stamp_tick(stamp: &AtomicU32, tick: u32) {
    if stamp.load(Ordering::Relaxed) != tick {
        // A reader of this stamp also sees a newest time that is not before it.
        stamp.store(tick, Ordering::Release);
    }
}

/// Helpers for the tests of structures that pack entries.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::fast::rule::Rule;
    use crate::spec::{ActionSpec, KeySpec};

    /// The first word of a result.
    pub(in crate::fast) const HEAD: u64 = 0x155 << 32;

    /// For keys of 48 bits and data of 9.
    pub(in crate::fast) fn packing() -> Packing {
        let spec = TableSpec::new("t")
            .key(KeySpec::new("k", 48, MatchKind::Exact))
            .action(ActionSpec::new("a").parameter("p", 9));
        Packing::new(&spec, &ResultLayout::new(&spec)).expect("58 bits")
    }

    /// A rule with this key; its handle is the key plus one.
    pub(in crate::fast) fn rule(key: u64) -> Rule {
        Rule {
            handle: key as u32 + 1,
            value: vec![key],
            ..Rule::default()
        }
    }
}
