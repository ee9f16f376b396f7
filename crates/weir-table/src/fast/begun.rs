//! Lookups that are begun, and go on when others have been done meanwhile.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::lpm::{Dir, Found};
use std::marker::PhantomData;

/// A lookup that [`Present::begin`](super::Present::begin) has begun, if there is one: what it will read has been asked for, and is waited for only by who
/// wants the results.
#[derive(Default)]
pub struct Begun<'a> {
    /// Of which table.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) of: Option<&'a Dir>,
    /// Means something only if there is one.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) found: Found,
    /// As long as the guard.
    present: PhantomData<&'a ()>,
}

impl Begun<'_> {
    /// Whether there is one.
    #[must_use]
    #[inline]
    pub fn is_some(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return self.of.is_some();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    }
}
