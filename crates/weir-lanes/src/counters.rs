//! Counters of ports and lanes.

use std::sync::atomic::{AtomicU64, Ordering};

/// What has happened to jobs. Of a port, `submitted` is the sum of `completed`, `lost` and the jobs
/// in flight. Those of a lane are exact only while no port is active.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Jobs that a port accepted.
    pub submitted: u64,
    /// Jobs that came back.
    pub completed: u64,
    /// Jobs that were reported as lost.
    pub lost: u64,
    /// Threads that were replaced, or resets of the device.
    pub restarts: u64,
}

/// Counters of a port that other threads read. Only the port writes.
#[derive(Debug, Default)]
pub(crate) struct SharedCounters {
    submitted: AtomicU64,
    completed: AtomicU64,
    lost: AtomicU64,
}

impl SharedCounters {
    pub(crate) fn store(&self, counters: &Counters) {
        self.submitted.store(counters.submitted, Ordering::Relaxed);
        self.completed.store(counters.completed, Ordering::Relaxed);
        self.lost.store(counters.lost, Ordering::Relaxed);
    }

    pub(crate) fn add_to(&self, sum: &mut Counters) {
        sum.submitted += self.submitted.load(Ordering::Relaxed);
        sum.completed += self.completed.load(Ordering::Relaxed);
        sum.lost += self.lost.load(Ordering::Relaxed);
    }
}
