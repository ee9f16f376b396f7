//! Exact keys that fit one word together with their results, and last hits of half a word.
//!
//! A slot of 64 bits is an entry: the key, below it action and data, and a bit that is set; free slots are 0. So an entry has no handle that
//! readers could see.
//!
//! Last hits have 32 bits each, in steps of [`LAST_HIT_STEP_NS`]. What is left out of them comes from the newest time that a
//! lookup or an entry had: a last hit is the latest time up to that which ends so. It is wrong, and too late, for entries that
//! were not hit for 52 days.

use crate::fast::LAST_HIT_STEP_NS;
use crate::fast::head::{self, HIT};
use crate::fast::layout::ResultLayout;
use crate::spec::{Implementation, TableSpec};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use weir_ir::MatchKind;

/// How entries lie in slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Packing {
    /// Where the key begins.
    pub(super) shift: u32,
}

impl Packing {
    /// If keys and results are few bits. The keys must be exact and of one word, results of one word.
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

    /// What the slot of a key is, apart from the result.
    #[inline(always)]
    pub(super) fn needle(self, key: u64) -> u64 {
        key << self.shift | 1
    }

    /// The bits that are not those of the result.
    #[inline(always)]
    pub(super) fn significant(self) -> u64 {
        !0 << self.shift | 1
    }

    pub(super) fn key(self, slot: u64) -> u64 {
        slot >> self.shift
    }

    /// The slot of a key whose result begins with this word.
    pub(super) fn pack(self, key: u64, head: u64) -> u64 {
        self.needle(key) | (head >> head::ACTION_SHIFT << 1) & !self.significant()
    }

    /// The result's first word.
    #[inline(always)]
    pub(super) fn head(self, slot: u64) -> u64 {
        (slot & !self.significant()) << (head::ACTION_SHIFT - 1) | HIT
    }
}

/// The step a time is in.
pub(super) fn step(ns: u64) -> u64 {
    ns / LAST_HIT_STEP_NS
}

/// The newest time seen, in steps.
#[derive(Debug, Default)]
pub(super) struct Newest(AtomicU64);

impl Newest {
    /// A time was seen, in steps.
    #[inline(always)]
    pub(super) fn see(&self, step: u64) {
        if self.0.load(Ordering::Relaxed) < step {
            self.0.fetch_max(step, Ordering::Release);
        }
    }

    /// Who has seen the same times.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// What a stamp means, in steps.
    pub(super) fn time(&self, stamp: &AtomicU32) -> u64 {
        let stamp = stamp.load(Ordering::Acquire);
        let newest = self.get();
        newest.saturating_sub((newest as u32).wrapping_sub(stamp).into())
    }
}

/// Notes that an entry was hit, of which this is the stamp.
#[inline(always)]
pub(super) fn note(stamp: &AtomicU32, step: u32) {
    if stamp.load(Ordering::Relaxed) != step {
        // Who sees this sees a newest time that is not before it.
        stamp.store(step, Ordering::Release);
    }
}

/// What tests of structures that pack entries share.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::fast::rule::Rule;
    use crate::spec::{ActionSpec, KeySpec};

    /// A result's first word.
    pub(in crate::fast) const HEAD: u64 = 0x155 << 32;

    /// Of keys of 48 bits and data of 9.
    pub(in crate::fast) fn packing() -> Packing {
        let spec = TableSpec::new("t")
            .key(KeySpec::new("k", 48, MatchKind::Exact))
            .action(ActionSpec::new("a").parameter("p", 9));
        Packing::new(&spec, &ResultLayout::new(&spec)).expect("58 bits")
    }

    /// Of this key; its handle is the next number.
    pub(in crate::fast) fn rule(key: u64) -> Rule {
        Rule {
            handle: key as u32 + 1,
            value: vec![key],
            ..Rule::default()
        }
    }
}
