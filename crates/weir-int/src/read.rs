//! A cursor over bytes that knows its offset for errors.

use crate::error::{Expected, Reason, WireError};

/// A cursor over borrowed bytes. Every read is checked; an error names the field and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A cursor at the first of some bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, offset: 0 }
    }

    /// The offset in bytes from the start of the bytes that [`Reader::new`] was given.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes that have not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The number of bytes that have not been read.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// There are fewer; `field` is the name in the error.
    #[inline]
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<&'a [u8; N], WireError> {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.truncated(field, N));
        };
        self.rest = rest;
        self.offset += N;
        Ok(array)
    }

    /// Reads a word of 4 bytes in network order.
    ///
    /// # Errors
    /// There are fewer than 4 bytes.
    #[inline]
    pub fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_be_bytes(*self.array(field)?))
    }

    /// Reads 2 bytes in network order.
    ///
    /// # Errors
    /// There are fewer than 2 bytes.
    #[inline]
    pub fn u16(&mut self, field: &'static str) -> Result<u16, WireError> {
        Ok(u16::from_be_bytes(*self.array(field)?))
    }

    /// Splits off a cursor over the next `length` bytes, and continues after them.
    ///
    /// # Errors
    /// There are fewer than `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize, field: &'static str) -> Result<Reader<'a>, WireError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.truncated(field, length));
        };
        let offset = self.offset;
        self.rest = rest;
        self.offset += length;
        Ok(Reader { rest: taken, offset })
    }

    /// Splits off a cursor over the next `length` bytes, or over all that are left.
    #[inline]
    pub fn take_up_to(&mut self, length: usize) -> Reader<'a> {
        let (taken, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, &[]));
        let offset = self.offset;
        self.rest = rest;
        self.offset += taken.len();
        Reader { rest: taken, offset }
    }

    #[cold]
    fn truncated(&self, field: &'static str, expected: usize) -> WireError {
        WireError::new(
            Reason::Truncated,
            field,
            self.offset,
            Expected::Bytes(expected as u32),
            self.rest.len() as u32,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Reader;

    #[test]
    fn a_short_read_says_where_and_leaves_the_cursor() {
        let mut reader = Reader::new(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(reader.u32("a"), Ok(0x0102_0304));
        let error = reader.u32("b").unwrap_err();
        assert_eq!((error.field, error.offset, error.found), ("b", 4, 2));
        assert_eq!(reader.u16("c"), Ok(0x0506));
        assert!(reader.is_empty());
    }

    #[test]
    fn parts_keep_their_offset() {
        let mut reader = Reader::new(&[0; 10]);
        reader.take(3, "head").unwrap();
        let part = reader.take_up_to(100);
        assert_eq!((part.offset(), part.len(), reader.len()), (3, 7, 0));
    }
}
