//! Boxes that were taken out, and that readers may still look into.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// A boxed value that was unlinked; it becomes a `Box` again only to be freed.
///
/// A `Box` asserts that there is no other reference to its value, from the moment that it is made,
/// and readers have one.
#[derive(Debug)]
pub(super) struct Retired<T: ?Sized>(NonNull<T>);

// SAFETY: it owns a `T`, which may be dropped on another thread, and which readers on others may
// still look into until then.
unsafe impl<T: ?Sized + Send + Sync> Send for Retired<T> {}

impl<T: ?Sized> Retired<T> {
    /// # Safety
    /// The pointer came from `Box::into_raw`, and it is freed nowhere else. This is dropped when no
    /// reader looks into it any more, as [`Epochs::retire`](crate::fast::Epochs) does.
    pub(super) unsafe fn new(pointer: *mut T) -> Self {
        // SAFETY: `Box::into_raw` gives no null.
        Retired(unsafe { NonNull::new_unchecked(pointer) })
    }
}

impl<T: ?Sized> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`: it came from a box, is freed here only, and has no reader.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}
