//! How readers that do not look closely notice that something was written meanwhile.

use crate::sync::{AtomicU64, fence};
use std::sync::atomic::Ordering;

/// Odd while something is written, and different after.
#[derive(Debug, Default)]
pub(super) struct Writes(AtomicU64);

impl Writes {
    /// What [`Writes::is_quiet_since`] is asked for after a look; `None` while something is written.
    #[inline(always)]
    pub(super) fn quiet(&self) -> Option<u64> {
        let writes = self.0.load(Ordering::Acquire);
        (writes & 1 == 0).then_some(writes)
    }

    /// Whether nothing was written since.
    #[inline(always)]
    pub(super) fn is_quiet_since(&self, quiet: u64) -> bool {
        fence(Ordering::Acquire);
        self.0.load(Ordering::Relaxed) == quiet
    }

    /// The only writer begins to write.
    pub(super) fn begin(&self) {
        let writes = self.0.load(Ordering::Relaxed);
        self.0.store(writes + 1, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// What was begun is written.
    pub(super) fn end(&self) {
        let writes = self.0.load(Ordering::Relaxed);
        self.0.store(writes + 1, Ordering::Release);
    }
}
