//! The times of last hits, per slot of a displacement hash.

use crate::fast::displacement::MAX_SLOTS;
use crate::fast::packing::{Newest, stamp_step};
use crate::fast::zeroed::Zeroed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Last hits of slots, in steps. A bit per slot says whether it was hit in the current step
/// already, so that most hits need no store.
#[derive(Debug)]
pub(super) struct Stamps {
    /// The step of each slot's last hit, modulo 2^32.
    times: Zeroed<AtomicU32>,
    /// A bit per slot; allocated for [`MAX_SLOTS`].
    fresh: Zeroed<AtomicU8>,
    /// The step to which `fresh` refers.
    step: AtomicU64,
    /// The newest step observed, which completes `times`.
    newest: Newest,
}

impl Stamps {
    pub(super) fn new(slots: usize) -> Self {
        Stamps {
            times: Zeroed::new(slots),
            fresh: Zeroed::new(MAX_SLOTS / 8),
            step: AtomicU64::new(0),
            newest: Newest::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.times.bytes() + self.fresh.bytes()
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// The bits of the slots that were hit in the current step.
    pub(super) fn fresh(&self) -> &[AtomicU8] {
        &self.fresh
    }

    /// Observes the current step.
    #[inline(always)]
    pub(super) fn observe(&self, step: u64) {
        if self.step.load(Ordering::Acquire) < step {
            self.begin_step(step);
        }
    }

    /// Begins a new step: no slot was hit in it yet.
    #[cold]
    fn begin_step(&self, step: u64) {
        self.newest.observe(step);
        // A reader that sees the new step sees no bits of the old one, except those set
        // concurrently. For such an entry the recorded hit may be one step too early.
        for bits in &self.fresh[..] {
            bits.store(0, Ordering::Relaxed);
        }
        self.step.fetch_max(step, Ordering::AcqRel);
    }

    /// Records a hit in this step. A thread that lags behind, in an older step than others,
    /// overwrites no newer time.
    pub(super) fn record_hit(&self, slot: usize, step: u32) {
        let time = &self.times[slot];
        if self.step.load(Ordering::Acquire) as u32 == step {
            let (bits, bit) = (&self.fresh[slot / 8], 1 << (slot % 8));
            if bits.load(Ordering::Relaxed) & bit == 0 {
                stamp_step(time, step);
                bits.fetch_or(bit, Ordering::Relaxed);
            }
        } else if step.wrapping_sub(time.load(Ordering::Relaxed)).cast_signed() > 0 {
            stamp_step(time, step);
        }
    }

    /// The slot belongs to another entry now, whose last hit was in `step`.
    pub(super) fn set(&self, slot: usize, step: u64) {
        self.newest.observe(step);
        self.times[slot].store(step as u32, Ordering::Release);
        self.fresh[slot / 8].fetch_and(!(1 << (slot % 8)), Ordering::Relaxed);
    }

    /// The step in which a slot was hit last.
    pub(super) fn get(&self, slot: usize) -> u64 {
        self.newest.time(&self.times[slot])
    }

    /// The newest step observed.
    pub(super) fn newest(&self) -> u64 {
        self.newest.get()
    }
}
