//! Boxes that were unlinked while readers may still access them.
#![allow(unsafe_code)]

use std::ptr::NonNull;

/// A boxed value that was unlinked. It becomes a `Box` again only to be freed: a `Box` asserts
/// unique access to its value from the moment it exists, while readers may still hold references.
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
