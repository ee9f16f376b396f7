//! Protobuf messages read from the wire field by field, without a decoded message.
//!
//! Only varints and length-delimited fields are read. On anything else the caller falls back to the
//! message path (prost), which reads all forms and reports errors.

/// A field of a message.
pub(crate) enum Field<'a> {
    /// A varint.
    Number(u64),
    /// A message, string or bytes.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// Its bytes, if it has some.
    pub fn bytes(self) -> Option<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Some(bytes),
            Field::Number(_) => None,
        }
    }

    /// Its number, if it is one of 32 bits.
    pub fn number(self) -> Option<u32> {
        match self {
            Field::Number(number) => u32::try_from(number).ok(),
            Field::Bytes(_) => None,
        }
    }
}

/// The fields of a message, one after the other.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of a message.
    pub fn of(message: &'a [u8]) -> Self {
        Fields(message)
    }

    /// Whether all have been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Bytes that have not been read.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn varint(&mut self) -> Option<u64> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(u64::from(*first));
        }
        let mut value = 0;
        for (at, byte) in self.0.iter().enumerate().take(10) {
            if at == 9 && *byte > 1 {
                // More than 64 bits.
                return None;
            }
            value |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.0 = &self.0[at + 1..];
                return Some(value);
            }
        }
        None
    }

    /// The next field with its number: `Some(None)` at the end, `None` for any other wire type.
    #[inline]
    pub fn next(&mut self) -> Option<Option<(u32, Field<'a>)>> {
        if self.0.is_empty() {
            return Some(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok()?;
        match tag & 7 {
            0 => Some(Some((number, Field::Number(self.varint()?)))),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Some(Some((number, Field::Bytes(bytes))))
            }
            _ => None,
        }
    }
}

/// Reads a message whose fields are each there at most once: a slot per number from 1.
pub(crate) fn slots<const N: usize>(message: &[u8]) -> Option<[Option<Field<'_>>; N]> {
    let mut found = [const { None }; N];
    let mut fields = Fields::of(message);
    while let Some((number, field)) = fields.next()? {
        let slot = found.get_mut((number as usize).checked_sub(1)?)?;
        if slot.replace(field).is_some() {
            return None;
        }
    }
    Some(found)
}

/// A number of a message: 0 where it is left out.
pub(crate) fn number(slot: Option<Field<'_>>) -> Option<u32> {
    slot.map_or(Some(0), Field::number)
}
