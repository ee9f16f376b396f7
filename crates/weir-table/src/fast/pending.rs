//! A lookup in two parts: the first prefetches the results, the second collects them. Other work is
//! done in between, while memory is fetched.
//!
//! Only the DIR-24-8 lookup with AVX-512 is split so ([`Dir24_8`]). Elsewhere
//! [`TableView::begin`](super::TableView::begin) does nothing.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::lpm::{Dir24_8, Located};
use std::marker::PhantomData;

/// A pending lookup, or none. [`TableView::begin`](super::TableView::begin) located and prefetched
/// its results; [`TableView::finish`](super::TableView::finish) copies them.
///
/// It holds addresses that the guard of `begin` keeps valid, so it must end before that guard:
///
/// ```compile_fail,E0505
/// # use weir_table::fast::{FastTable, PendingLookup};
/// # fn lookup(routes: &FastTable, keys: &[u64; 64], results: &mut [u64; 64]) {
/// let guard = routes.epochs().enter();
/// let mut pending = PendingLookup::default();
/// routes.view(&guard).begin(u64::MAX, keys, 64, &mut pending);
/// drop(guard);
/// let guard = routes.epochs().enter();
/// routes.view(&guard).finish(u64::MAX, keys, results, 64, 0, &mut pending);
/// # }
/// ```
#[derive(Default)]
pub struct PendingLookup<'a> {
    /// The structure that is searched, and the address of the first key. The address distinguishes
    /// lookups of the same table for different keys of a packet. `None`: nothing is pending.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) source: Option<(&'a Dir24_8, usize)>,
    /// Where the results are. Valid only while `source` is set.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) located: Located,
    /// Ties it to the lifetime of the guard.
    lifetime: PhantomData<&'a ()>,
}

impl PendingLookup<'_> {
    /// Whether a lookup is pending.
    #[must_use]
    #[inline]
    pub fn is_pending(&self) -> bool {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        return self.source.is_some();
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        false
    }
}
