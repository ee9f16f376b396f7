//! A seqlock: readers that read without atomicity across words detect that a writer ran
//! concurrently.
//!
//! [`SeqLock::read_begin`] before the reads and [`SeqLock::validate`] after them. There is only
//! one writer at a time, which the table's mutex ensures.

use crate::sync::{AtomicU64, fence};
use std::sync::atomic::Ordering;

/// The version: odd while the writer runs, and different afterwards.
#[derive(Debug, Default)]
pub(super) struct SeqLock(AtomicU64);

impl SeqLock {
    /// The version for [`SeqLock::validate`]; `None` while a write is in progress.
    #[inline(always)]
    pub(super) fn read_begin(&self) -> Option<u64> {
        let version = self.0.load(Ordering::Acquire);
        (version & 1 == 0).then_some(version)
    }

    /// Whether no write began since [`SeqLock::read_begin`] gave this version.
    #[inline(always)]
    pub(super) fn validate(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == version
    }

    /// Begins a write.
    pub(super) fn write_begin(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version + 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Ends a write: the new data is published.
    pub(super) fn write_end(&self) {
        let version = self.0.load(Ordering::Relaxed);
        self.0.store(version + 1, Ordering::Release);
    }
}
