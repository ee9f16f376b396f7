//! Lookups that are begun, and go on when others have been done meanwhile.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::lpm::{Dir, Found};
use std::marker::PhantomData;

/// A lookup that [`Present::begin`](super::Present::begin) has begun, if there is one: what it will read has been asked for, and is waited for only by who
/// wants the results.
///
/// It has addresses of what was there when it was begun, and so ends before the guard by which that stays there:
///
/// ```compile_fail,E0505
/// # use weir_table::fast::{Begun, FastTable};
/// # fn lookup(routes: &FastTable, keys: &[u64; 64], results: &mut [u64; 64]) {
/// let guard = routes.epochs().enter();
/// let mut begun = Begun::default();
/// routes.present(&guard).begin(u64::MAX, keys, 64, &mut begun);
/// drop(guard);
/// let guard = routes.epochs().enter();
/// routes.present(&guard).finish(u64::MAX, keys, results, 64, 0, &mut begun);
/// # }
/// ```
#[derive(Default)]
pub struct Begun<'a> {
    /// Of which table, and the address of the first key: tables may be looked into for several keys of the same packets.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    pub(super) of: Option<(&'a Dir, usize)>,
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
