//! Ends a compilation early when its result is no longer needed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a compilation is to end early. The default is that it never is.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Option<Arc<AtomicBool>>);

/// Cancels when it is dropped.
#[derive(Debug)]
pub struct CancelOnDrop(Arc<AtomicBool>);

impl Cancellation {
    /// A pair: when the second value is dropped, compilations with the first one end with an error.
    #[must_use]
    pub fn new() -> (Self, CancelOnDrop) {
        let flag = Arc::<AtomicBool>::default();
        (Cancellation(Some(Arc::clone(&flag))), CancelOnDrop(flag))
    }

    /// Whether it is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
