//! When slots were hit last.

use crate::fast::packing::{Newest, note};
use crate::fast::placed::SLOTS;
use crate::fast::zeroed::Zeroed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// When slots were hit last, in steps, and which have been in this step already: of these, nothing is to be noted.
#[derive(Debug)]
pub(super) struct Stamps {
    times: Zeroed<AtomicU32>,
    /// A bit per slot; room for [`SLOTS`].
    fresh: Zeroed<AtomicU8>,
    /// The step that `fresh` is about.
    step: AtomicU64,
    newest: Newest,
}

impl Stamps {
    pub(super) fn new(slots: usize) -> Self {
        Stamps {
            times: Zeroed::new(slots),
            fresh: Zeroed::new(SLOTS / 8),
            step: AtomicU64::new(0),
            newest: Newest::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.times.bytes() + self.fresh.bytes()
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// Which slots have been hit in the newest step.
    pub(super) fn fresh(&self) -> &[AtomicU8] {
        &self.fresh
    }

    /// It is this step now.
    #[inline(always)]
    pub(super) fn see(&self, step: u64) {
        if self.step.load(Ordering::Acquire) < step {
            self.begin(step);
        }
    }

    #[cold]
    fn begin(&self, step: u64) {
        self.newest.see(step);
        // Whoever sees the step sees no bits of the last one, but those that were set meanwhile: an entry of these may have been hit a step later
        // than it is said to have been.
        for bits in &self.fresh[..] {
            bits.store(0, Ordering::Relaxed);
        }
        self.step.fetch_max(step, Ordering::AcqRel);
    }

    /// A slot was hit in this step. Whoever is late, as others have been in a later one, changes nothing that is newer.
    pub(super) fn note(&self, slot: usize, step: u32) {
        let time = &self.times[slot];
        if self.step.load(Ordering::Acquire) as u32 == step {
            let (bits, bit) = (&self.fresh[slot / 8], 1 << (slot % 8));
            if bits.load(Ordering::Relaxed) & bit == 0 {
                note(time, step);
                bits.fetch_or(bit, Ordering::Relaxed);
            }
        } else if step.wrapping_sub(time.load(Ordering::Relaxed)).cast_signed() > 0 {
            note(time, step);
        }
    }

    /// A slot is another entry's, which was hit last in that step.
    pub(super) fn set(&self, slot: usize, step: u64) {
        self.newest.see(step);
        self.times[slot].store(step as u32, Ordering::Release);
        self.fresh[slot / 8].fetch_and(!(1 << (slot % 8)), Ordering::Relaxed);
    }

    /// In which step a slot was hit last.
    pub(super) fn get(&self, slot: usize) -> u64 {
        self.newest.time(&self.times[slot])
    }

    /// The newest step seen.
    pub(super) fn newest(&self) -> u64 {
        self.newest.get()
    }
}
