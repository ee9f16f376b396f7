//! Memory for the context matrix.

use std::ops::{Deref, DerefMut};

/// The words of all rows, aligned so that eight slots of a row share a cache line.
pub(super) struct ContextMatrix(Vec<CacheLine>);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct CacheLine([u64; 8]);

impl ContextMatrix {
    /// A matrix of at least this many words, all 0.
    pub fn new(words: usize) -> Self {
        let mut lines = vec![CacheLine([0; 8]); words.div_ceil(8)];
        // Touches every page now. An untouched page may not be mapped, and a masked store with an
        // empty mask to such a page is very slow on some processors.
        for line in &mut lines {
            line.0 = std::hint::black_box([0; 8]);
        }
        ContextMatrix(lines)
    }
}

impl Deref for ContextMatrix {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        let words = self.0.len() * 8;
        // SAFETY: a line is eight words and nothing else.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), words) }
    }
}

impl DerefMut for ContextMatrix {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        let words = self.0.len() * 8;
        // SAFETY: a line is eight words and nothing else.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), words) }
    }
}
