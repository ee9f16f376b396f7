//! Memory for contexts.

use std::ops::{Deref, DerefMut};

/// Words that begin with a cache line, so that eight slots of a row are in one.
pub(super) struct Matrix(Vec<Line>);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

impl Matrix {
    /// At least so many words, all 0.
    pub fn new(words: usize) -> Self {
        let mut lines = vec![Line([0; 8]); words.div_ceil(8)];
        // Memory that nobody has written yet may not be there, and some processors take very long to find that out where they
        // store none of a row's lanes.
        for line in &mut lines {
            line.0 = std::hint::black_box([0; 8]);
        }
        Matrix(lines)
    }
}

impl Deref for Matrix {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        let words = self.0.len() * 8;
        // SAFETY: a line is eight words and nothing else.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), words) }
    }
}

impl DerefMut for Matrix {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        let words = self.0.len() * 8;
        // SAFETY: a line is eight words and nothing else.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), words) }
    }
}
