//! Memory that shares no cache line with its neighbours.

use std::ops::Deref;

/// A value on cache lines of its own. Two lines, as the prefetcher loads them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(T);

impl<T> Deref for Padded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
