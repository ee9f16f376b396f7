//! The times of last hits, per slot of a displacement hash.

use crate::fast::displacement::MAX_SLOTS;
use crate::fast::packing::{Newest, stamp_tick};
use crate::fast::zeroed::Zeroed;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Last hits of slots, in ticks. A bit per slot says whether it was hit in the current tick
/// already, so that most hits need no store.
#[derive(Debug)]
pub(super) struct Stamps {
    /// The tick of each slot's last hit, modulo 2^32.
    times: Zeroed<AtomicU32>,
    /// A bit per slot; allocated for [`MAX_SLOTS`].
    fresh: Zeroed<AtomicU8>,
    /// The tick to which `fresh` refers.
    tick: AtomicU64,
    /// The newest tick observed, which completes `times`.
    newest: Newest,
}

impl Stamps {
    pub(super) fn new(slots: usize) -> Self {
        Stamps {
            times: Zeroed::new(slots),
            fresh: Zeroed::new(MAX_SLOTS / 8),
            tick: AtomicU64::new(0),
            newest: Newest::default(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.times.bytes() + self.fresh.bytes()
    }

    #[cfg(all(target_arch = "x86_64", not(miri)))]
    /// The bits of the slots that were hit in the current tick.
    pub(super) fn fresh(&self) -> &[AtomicU8] {
        &self.fresh
    }

    /// Observes the current tick.
    #[inline(always)]
    pub(super) fn observe(&self, tick: u64) {
        if self.tick.load(Ordering::Acquire) < tick {
            self.begin_tick(tick);
        }
    }

    /// Begins a new tick: no slot was hit in it yet.
    #[cold]
    fn begin_tick(&self, tick: u64) {
        self.newest.observe(tick);
        // A reader that sees the new tick sees no bits of the old one, except those set
        // concurrently. For such an entry the recorded hit may be one tick too early.
        for bits in &self.fresh[..] {
            bits.store(0, Ordering::Relaxed);
        }
        self.tick.fetch_max(tick, Ordering::AcqRel);
    }

    /// Records a hit in this tick. A thread that lags behind, in an older tick than others,
    /// overwrites no newer time.
    pub(super) fn record_hit(&self, slot: usize, tick: u32) {
        let time = &self.times[slot];
        if self.tick.load(Ordering::Acquire) as u32 == tick {
            let (bits, bit) = (&self.fresh[slot / 8], 1 << (slot % 8));
            if bits.load(Ordering::Relaxed) & bit == 0 {
                stamp_tick(time, tick);
                bits.fetch_or(bit, Ordering::Relaxed);
            }
        } else if tick.wrapping_sub(time.load(Ordering::Relaxed)).cast_signed() > 0 {
            stamp_tick(time, tick);
        }
    }

    /// The slot belongs to another entry now, whose last hit was in `tick`.
    pub(super) fn set(&self, slot: usize, tick: u64) {
        self.newest.observe(tick);
        self.times[slot].store(tick as u32, Ordering::Release);
        self.fresh[slot / 8].fetch_and(!(1 << (slot % 8)), Ordering::Relaxed);
    }

    /// The tick in which a slot was hit last.
    pub(super) fn get(&self, slot: usize) -> u64 {
        self.newest.time(&self.times[slot])
    }

    /// The newest tick observed.
    pub(super) fn newest(&self) -> u64 {
        self.newest.get()
    }
}
