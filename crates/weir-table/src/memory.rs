//! Large arrays that are read at random, and the caches: for whoever keeps such.
#![allow(unsafe_code)]

/// A vector of `length` elements, in huge pages where the system gives them to who asks: fewer addresses for the
/// processor to translate.
#[must_use]
pub fn huge_vec<T: Clone>(length: usize, value: T) -> Vec<T> {
    let mut vector: Vec<T> = Vec::with_capacity(length);
    advise(&mut vector);
    vector.resize(length, value);
    vector
}

/// Asks for huge pages for the memory of an empty vector, if it is large enough to have any.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise<T>(vector: &mut Vec<T>) {
    const PAGE: usize = 4096;
    const HUGE: usize = 2 << 20;
    let begin = vector.as_mut_ptr() as usize;
    let end = begin + vector.capacity() * size_of::<T>();
    let (first, last) = (begin.next_multiple_of(PAGE), end & !(PAGE - 1));
    if last.saturating_sub(first) >= HUGE {
        // SAFETY: the pages lie in memory that the vector owns; the advice changes nothing but their size, and may
        // fail.
        unsafe { libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise<T>(_vector: &mut Vec<T>) {}

/// Asks for the cache line where a value begins.
#[inline(always)]
pub fn prefetch<T>(value: &T) {
    crate::fast::prefetch(std::ptr::from_ref(value));
}

/// Asks for all the cache lines of a slice.
#[inline(always)]
pub fn prefetch_bytes(bytes: &[u8]) {
    for line in bytes.chunks(64) {
        crate::fast::prefetch(line.as_ptr());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_vectors_are_filled() {
        assert_eq!(huge_vec(3, 7u8), [7; 3]);
        let large = huge_vec(3 << 20, 9u16);
        assert!(large.len() == 3 << 20 && large.iter().all(|w| *w == 9));
    }
}
