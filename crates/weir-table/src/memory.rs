//! Large arrays with random accesses: huge pages and prefetches.
#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Words of zero, in huge pages where the system grants them. Pages that are never written take no
/// memory.
#[must_use]
pub fn zeroed_words(length: usize) -> Arc<[AtomicU64]> {
    let words = Arc::<[AtomicU64]>::new_zeroed_slice(length);
    advise_pages(words.as_ptr().cast::<u8>(), size_of_val(&*words));
    // SAFETY: zero bytes are atomic words that hold zero.
    unsafe { words.assume_init() }
}

/// A vector of `length` elements, in huge pages where the system grants them, which saves TLB
/// misses.
#[must_use]
pub fn huge_vec<T: Clone>(length: usize, value: T) -> Vec<T> {
    let mut vector: Vec<T> = Vec::with_capacity(length);
    advise(&mut vector);
    vector.resize(length, value);
    vector
}

/// Requests huge pages for the memory of an empty vector, if it is large enough.
fn advise<T>(vector: &mut Vec<T>) {
    advise_pages(vector.as_ptr().cast::<u8>(), vector.capacity() * size_of::<T>());
}

/// Requests huge pages for memory of the caller's, if it is large enough.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_pages(memory: *const u8, bytes: usize) {
    const PAGE: usize = 4096;
    const HUGE: usize = 2 << 20;
    let start = memory as usize;
    let (first, last) = (start.next_multiple_of(PAGE), (start + bytes) & !(PAGE - 1));
    if last.saturating_sub(first) >= HUGE {
        // SAFETY: the pages lie in memory that the caller owns. The advice changes only their size,
        // and may fail.
        unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_pages(_memory: *const u8, _bytes: usize) {}

/// Prefetches the cache line where a value begins.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    crate::fast::prefetch(std::ptr::from_ref(value));
}

/// Prefetches all cache lines of a range of bytes, at any address.
#[inline(always)]
pub fn prefetch_bytes(start: *const u8, bytes: usize) {
    for offset in (0..bytes).step_by(64) {
        crate::fast::prefetch(start.wrapping_add(offset));
    }
}

/// Prefetches the cache line where a value begins, to write to it: the line is taken from another
/// core that has it. A plain prefetch leaves it shared, so that the first write waits once more.
#[inline(always)]
pub fn prefetch_for_write<T>(value: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch has no effect besides caches, whatever the address is, and processors
    // without the instruction ignore it. The intrinsic emits a plain prefetch unless the compiler
    // assumes a processor that has it.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) value, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    crate::fast::prefetch(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_zero() {
        for length in [0, 3, 1 << 20] {
            let words = zeroed_words(length);
            assert_eq!(words.len(), length);
            assert!(words.iter().all(|w| w.load(std::sync::atomic::Ordering::Relaxed) == 0));
        }
    }

    #[test]
    fn small_and_large_vectors_are_filled() {
        assert_eq!(huge_vec(3, 7u8), [7; 3]);
        let large = huge_vec(3 << 20, 9u16);
        assert!(large.len() == 3 << 20 && large.iter().all(|w| *w == 9));
    }
}
