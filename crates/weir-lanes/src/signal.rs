//! Parking of lane threads without lost wake-ups.
//!
//! A worker publishes jobs and then looks whether the thread is parked; the thread says that it
//! parks and then looks for jobs. If both have a sequentially consistent fence between their store
//! and their load, at least one of them sees the other's store. On the worker's side, that fence
//! would wait for the cache line of the ring on every flush. So only [`Signal::wake_fenced`] has
//! it. [`Signal::wake`] has none: it may miss a thread that is about to park, and then a later call
//! finds it. A worker polls while it has jobs in flight, and each poll without result calls it.

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, fence};
use std::sync::atomic::Ordering;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, fence};

/// Whether a lane thread is parked.
#[derive(Debug)]
pub(crate) struct Signal {
    parked: AtomicBool,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Signal {
            parked: AtomicBool::new(false),
        }
    }

    /// Parks the calling thread until it is woken, unless there is work. `park` may return
    /// spuriously.
    pub(crate) fn park(&self, is_idle: impl FnOnce() -> bool, park: impl Fn()) {
        // Swaps: loom orders a plain store after another thread's swap only if it has seen it.
        self.parked.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        if is_idle() {
            while self.parked.load(Ordering::Acquire) {
                park();
            }
        }
        self.parked.swap(false, Ordering::AcqRel);
    }

    /// Wakes the thread if it is seen to be parked.
    #[inline]
    pub(crate) fn wake(&self, unpark: impl FnOnce()) {
        if self.parked.load(Ordering::Relaxed) {
            self.wake_parked(unpark);
        }
    }

    #[cold]
    fn wake_parked(&self, unpark: impl FnOnce()) {
        if self.parked.swap(false, Ordering::AcqRel) {
            unpark();
        }
    }

    /// Afterwards the thread is awake, or will see everything that the caller published before.
    pub(crate) fn wake_fenced(&self, unpark: impl FnOnce()) {
        fence(Ordering::SeqCst);
        self.wake(unpark);
    }
}
