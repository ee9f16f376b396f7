//! Arrays of atomics that start as zeros.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64};

/// Arrays are aligned to cache lines.
const LINE: usize = 64;
/// Bytes of a huge page.
#[cfg(all(target_os = "linux", not(miri)))]
const HUGE: usize = 2 << 20;

/// Types of which all-zero bytes are a value and which need no drop.
///
/// # Safety
/// Both must hold, and the type must be `Sync`.
pub(super) unsafe trait Zeroable: Sync {
    /// The same value, constructed: loom's atomics are more than their bytes.
    #[cfg(loom)]
    fn zero() -> Self;
}

macro_rules! zeroable {
    ($($atomic:ty: $value:expr),*) => {$(
        // SAFETY: an integer or a pointer in a cell; zero bytes are 0 or null. It has no drop.
        unsafe impl Zeroable for $atomic {
            #[cfg(loom)]
            fn zero() -> Self {
                <$atomic>::new($value)
            }
        }
    )*};
}

zeroable!(AtomicU64: 0, AtomicU32: 0, AtomicU8: 0, AtomicPtr<AtomicU64>: std::ptr::null_mut());
#[cfg(loom)]
zeroable!(crate::sync::AtomicU64: 0);

/// A fixed array of zeros, aligned to cache lines. Large ones use huge pages where the system has
/// them.
#[derive(Debug)]
pub(super) struct Zeroed<T: Zeroable> {
    start: NonNull<T>,
    length: usize,
    /// The mapping it lies in, if it does not come from the allocator: address and bytes.
    mapping: Option<(usize, usize)>,
}

// SAFETY: it owns its memory, and `T` is shared soundly as it is `Sync` and without drop.
unsafe impl<T: Zeroable> Send for Zeroed<T> {}
// SAFETY: a shared reference gives only shared references to `T`, and `T` is `Sync`.
unsafe impl<T: Zeroable> Sync for Zeroed<T> {}

impl<T: Zeroable> Zeroed<T> {
    pub(super) fn new(length: usize) -> Self {
        let layout = Self::layout(length);
        if let Some(mapped) = map_huge(layout.size()) {
            return Zeroed {
                start: mapped.0.cast(),
                length,
                mapping: Some((mapped.1, mapped.2)),
            };
        }
        // SAFETY: the layout's size is not 0, see `layout`.
        let raw = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(raw.cast::<T>()) else {
            handle_alloc_error(layout)
        };
        #[cfg(loom)]
        for index in 0..length {
            // SAFETY: there is room for `length` elements, and the memory has no other owner yet.
            unsafe { start.add(index).write(T::zero()) };
        }
        Zeroed {
            start,
            length,
            mapping: None,
        }
    }

    /// The layout of `length` elements, of at least one line.
    fn layout(length: usize) -> Layout {
        let bytes = length.checked_mul(size_of::<T>()).unwrap_or(usize::MAX / 2).max(LINE);
        match Layout::from_size_align(bytes, LINE.max(align_of::<T>())) {
            Ok(layout) => layout,
            Err(_) => handle_alloc_error(Layout::new::<u8>()),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.length * size_of::<T>()
    }

    /// The first element.
    pub(super) fn start(&self) -> NonNull<T> {
        self.start
    }

    /// The elements.
    #[inline]
    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: `length` elements were allocated, zeros are valid, and writes go through cells.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Zeroable> std::ops::Deref for Zeroed<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Zeroable> Drop for Zeroed<T> {
    fn drop(&mut self) {
        match self.mapping {
            #[cfg(all(target_os = "linux", not(miri)))]
            Some((address, bytes)) => {
                // SAFETY: this is the mapping made in `new`, and nothing borrows it any more.
                unsafe { libc::munmap(address as *mut libc::c_void, bytes) };
            }
            #[cfg(not(all(target_os = "linux", not(miri))))]
            Some(_) => {}
            // SAFETY: allocated in `new` with the same layout.
            None => unsafe { dealloc(self.start.as_ptr().cast(), Self::layout(self.length)) },
        }
    }
}

/// Fresh zero pages, huge if the system has them: the aligned start, and the address and bytes of
/// the mapping around it. `None` for small sizes and where mapping fails.
#[cfg(all(target_os = "linux", not(miri)))]
fn map_huge(bytes: usize) -> Option<(NonNull<u8>, usize, usize)> {
    if bytes < HUGE {
        return None;
    }
    let total = bytes.checked_add(HUGE)?;
    // SAFETY: an anonymous private mapping at an address of the kernel's choice touches nothing.
    let raw = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            total,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if raw == libc::MAP_FAILED {
        return None;
    }
    let start = raw.cast::<u8>().wrapping_add(raw.cast::<u8>().align_offset(HUGE));
    // SAFETY: the range lies in the mapping. The advice may fail, which is harmless.
    unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
    Some((NonNull::new(start)?, raw as usize, total))
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn map_huge(_bytes: usize) -> Option<(NonNull<u8>, usize, usize)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn arrays_begin_as_zeros() {
        for length in [0, 1, 7, 1000, 300_000] {
            let words = Zeroed::<AtomicU64>::new(length);
            assert_eq!(words.len(), length);
            assert!(words.iter().all(|w| w.load(Ordering::Relaxed) == 0));
            if let Some(last) = words.last() {
                last.store(1, Ordering::Relaxed);
            }
            assert_eq!(words.as_ptr() as usize % LINE, 0);
        }
    }
}
