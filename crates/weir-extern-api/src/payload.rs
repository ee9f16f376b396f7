//! The payload of a packet, with the room around it.

use std::ops::Range;
use thiserror::Error;

/// A payload cannot get the requested length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a payload of {requested} bytes does not fit: there is room for {available}")]
pub struct ResizeError {
    /// Bytes that were requested.
    pub requested: usize,
    /// Bytes that fit.
    pub available: usize,
}

/// The bytes of a packet that its parser has not extracted, and the room after them.
#[derive(Debug)]
pub struct Payload<'a> {
    memory: &'a mut [u8],
    range: Range<usize>,
}

impl<'a> Payload<'a> {
    /// Bytes `start..end` of this memory. What is behind `end` is room to grow into.
    #[must_use]
    pub fn new(memory: &'a mut [u8], start: usize, end: usize) -> Option<Self> {
        (start <= end && end <= memory.len()).then_some(Payload {
            memory,
            range: start..end,
        })
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }

    /// The bytes, to change them.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }

    /// The most bytes that it can have.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.memory.len() - self.range.start
    }

    /// Gives it another length in bytes. Appended bytes are 0.
    ///
    /// # Errors
    /// There is not enough room; the payload is unchanged.
    pub fn resize(&mut self, length: usize) -> Result<(), ResizeError> {
        if length > self.capacity() {
            return Err(ResizeError {
                requested: length,
                available: self.capacity(),
            });
        }
        let end = self.range.start + length;
        if end > self.range.end {
            self.memory[self.range.end..end].fill(0);
        }
        self.range.end = end;
        Ok(())
    }

    /// Where it lies in its memory.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_grows_within_its_memory_and_appended_bytes_are_zero() {
        let mut memory = *b"hdpayloadxx";
        let mut payload = Payload::new(&mut memory, 2, 9).expect("inside");
        assert_eq!(
            payload.resize(10),
            Err(ResizeError {
                requested: 10,
                available: 9
            })
        );
        assert_eq!(payload.bytes(), b"payload");
        payload.resize(9).expect("two bytes of room");
        assert_eq!(payload.bytes(), b"payload\0\0");
        payload.resize(3).expect("shorter");
        assert_eq!((payload.bytes(), payload.range()), (&b"pay"[..], 2..5));
        assert!(Payload::new(&mut memory, 5, 4).is_none());
        assert!(Payload::new(&mut memory, 5, 12).is_none());
    }
}
