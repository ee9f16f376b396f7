//! Packets in memory.

use super::TAILROOM;

/// A packet in memory of its own, with room before and behind it.
#[derive(Debug)]
pub struct Frame<'a> {
    pub(super) memory: &'a mut [u8],
    pub(super) start: usize,
    pub(super) length: usize,
}

impl<'a> Frame<'a> {
    /// The packet at `start` of the memory. `None` where the memory does not hold it and [`TAILROOM`] behind
    /// it.
    #[must_use]
    #[inline]
    pub fn new(memory: &'a mut [u8], start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?.checked_add(TAILROOM)?;
        (end <= memory.len()).then_some(Frame { memory, start, length })
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    /// Its bytes, to be changed.
    #[must_use]
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }

    /// Leaves out the first bytes.
    pub fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.length);
        self.start += bytes;
        self.length -= bytes;
    }

    /// The address where it begins, and how long it is.
    #[must_use]
    #[inline]
    pub fn address(&self) -> (*const u8, usize) {
        (self.memory.as_ptr().wrapping_add(self.start), self.length)
    }

    /// Where it begins in its memory, and how long it is.
    #[must_use]
    #[inline]
    pub fn place(&self) -> (usize, usize) {
        (self.start, self.length)
    }
}
