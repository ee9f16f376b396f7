//! Integers of a configured width and byte order; a cursor that knows its offset for errors.

use crate::error::{EncodeError, Expected, Reason, WireError};

/// The order of the bytes of an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ByteOrder {
    /// The most significant byte first: network order.
    #[default]
    Big,
    /// The least significant byte first: host order of x86 and of most ARM systems.
    Little,
}

/// The width of an integer field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// 1 byte.
    One,
    /// 2 bytes.
    Two,
    /// 4 bytes.
    Four,
}

impl Width {
    /// The number of bytes.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Width::One => 1,
            Width::Two => 2,
            Width::Four => 4,
        }
    }

    /// The largest value.
    #[must_use]
    pub const fn max(self) -> u32 {
        match self {
            Width::One => u8::MAX as u32,
            Width::Two => u16::MAX as u32,
            Width::Four => u32::MAX,
        }
    }

    /// The width of a number of bytes: 1, 2 or 4.
    #[must_use]
    pub const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            1 => Some(Width::One),
            2 => Some(Width::Two),
            4 => Some(Width::Four),
            _ => None,
        }
    }
}

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

    /// The offset in bytes from the first byte given to [`Reader::new`].
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes that have not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// [`Reason::Truncated`]: there are fewer; `field` is the name in the error.
    pub fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let Some((array, rest)) = self.rest.split_first_chunk::<N>() else {
            return Err(self.truncated(field, N));
        };
        self.rest = rest;
        self.offset += N;
        Ok(*array)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`Reason::Truncated`]: there is none.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        self.array::<1>(field).map(|[byte]| byte)
    }

    /// Reads an unsigned integer of a width and byte order.
    ///
    /// # Errors
    /// [`Reason::Truncated`]: there are fewer bytes.
    pub fn uint(&mut self, width: Width, order: ByteOrder, field: &'static str) -> Result<u32, WireError> {
        Ok(match (width, order) {
            (Width::One, ByteOrder::Big | ByteOrder::Little) => self.u8(field)?.into(),
            (Width::Two, ByteOrder::Big) => u16::from_be_bytes(self.array(field)?).into(),
            (Width::Two, ByteOrder::Little) => u16::from_le_bytes(self.array(field)?).into(),
            (Width::Four, ByteOrder::Big) => u32::from_be_bytes(self.array(field)?),
            (Width::Four, ByteOrder::Little) => u32::from_le_bytes(self.array(field)?),
        })
    }

    /// Splits off a cursor over the next `length` bytes, and continues after them.
    ///
    /// # Errors
    /// [`Reason::Truncated`]: there are fewer bytes.
    pub fn take(&mut self, length: usize, field: &'static str) -> Result<Reader<'a>, WireError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(self.truncated(field, length));
        };
        let offset = self.offset;
        self.rest = rest;
        self.offset += length;
        Ok(Reader { rest: taken, offset })
    }

    #[cold]
    fn truncated(&self, field: &'static str, expected: usize) -> WireError {
        let expected = Expected::Bytes(expected as u64);
        WireError::new(Reason::Truncated, field, self.offset, expected, self.rest.len() as u64)
    }
}

/// Appends an unsigned integer of a width and byte order.
pub(crate) fn write_uint(
    value: u32,
    width: Width,
    order: ByteOrder,
    field: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if value > width.max() {
        return Err(EncodeError::TooLarge {
            field,
            limit: width.max().into(),
            found: value.into(),
        });
    }
    match order {
        ByteOrder::Big => out.extend(&value.to_be_bytes()[4 - width.bytes()..]),
        ByteOrder::Little => out.extend(&value.to_le_bytes()[..width.bytes()]),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{ByteOrder, Reader, Width, write_uint};

    #[test]
    fn a_short_read_says_where_and_leaves_the_cursor() {
        let mut reader = Reader::new(&[1, 2, 3, 4, 5, 6]);
        assert_eq!(reader.uint(Width::Four, ByteOrder::Big, "a"), Ok(0x0102_0304));
        let error = reader.uint(Width::Four, ByteOrder::Big, "b").unwrap_err();
        assert_eq!((error.field, error.offset, error.found), ("b", 4, 2));
        assert_eq!(reader.uint(Width::Two, ByteOrder::Little, "c"), Ok(0x0605));
        assert!(reader.is_empty());
    }

    #[test]
    fn integers_of_all_widths_and_orders_are_written_as_they_are_read() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for width in [Width::One, Width::Two, Width::Four] {
                let mut bytes = Vec::new();
                let value = 0x8765_4321 & width.max();
                write_uint(value, width, order, "x", &mut bytes).unwrap();
                assert_eq!(bytes.len(), width.bytes());
                assert_eq!(Reader::new(&bytes).uint(width, order, "x"), Ok(value));
                assert_eq!(Width::from_bytes(width.bytes()), Some(width));
            }
        }
        assert!(write_uint(256, Width::One, ByteOrder::Big, "x", &mut Vec::new()).is_err());
    }
}
