//! The protobuf wire format, as far as frequent messages need it.
//!
//! The output and the decoded values equal those of [`prost`]; tests of [`crate::encode`] and
//! [`crate::decode`] compare them. The format: <https://protobuf.dev/programming-guides/encoding/>.

/// Encodes messages to a buffer, and records the offsets of values that are replaced later.
#[derive(Debug, Clone, Default)]
pub struct Writer {
    /// The output.
    pub out: Vec<u8>,
    /// Offsets of values that are replaced later.
    pub slots: Vec<usize>,
}

impl Writer {
    /// Writes a number. 0 is written, too, as for members of a `oneof`.
    pub fn varint(&mut self, field: u32, value: u64) {
        put_tag(&mut self.out, field, 0);
        put_varint(&mut self.out, value);
    }

    /// Writes a number that is replaced later: it always takes five bytes.
    pub fn long_varint(&mut self, field: u32, value: u32) {
        put_tag(&mut self.out, field, 0);
        self.slots.push(self.out.len());
        self.out.extend_from_slice(&long(value));
    }

    /// Bytes.
    pub fn bytes(&mut self, field: u32, value: &[u8]) {
        put_tag(&mut self.out, field, 2);
        put_varint(&mut self.out, value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Bytes that are replaced later.
    pub fn bytes_slot(&mut self, field: u32, length: usize) {
        put_tag(&mut self.out, field, 2);
        put_varint(&mut self.out, length as u64);
        self.slots.push(self.out.len());
        self.out.resize(self.out.len() + length, 0);
    }

    /// A message.
    pub fn message<E>(&mut self, field: u32, body: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        put_tag(&mut self.out, field, 2);
        let place = self.out.len();
        // Most messages are shorter than 128 bytes, whose length takes one.
        self.out.push(0);
        let first_slot = self.slots.len();
        body(self)?;
        let length = self.out.len() - place - 1;
        if length < 0x80 {
            self.out[place] = length as u8;
            return Ok(());
        }
        let mut prefix = Vec::with_capacity(5);
        put_varint(&mut prefix, length as u64);
        let shift = prefix.len() - 1;
        self.out.splice(place..=place, prefix);
        self.slots[first_slot..].iter_mut().for_each(|slot| *slot += shift);
        Ok(())
    }
}

/// A number in five bytes: longer than necessary, which protobuf permits.
pub fn long(value: u32) -> [u8; 5] {
    let part = |shift: u32| (value >> shift) as u8 & 0x7f | 0x80;
    [part(0), part(7), part(14), part(21), (value >> 28) as u8 & 0x7f]
}

/// The bytes of a varint.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    put_varint(out, u64::from(field << 3 | wire_type));
}

/// A malformed message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message that ends too early, or a field of an unknown kind")]
pub struct Broken;

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'a> {
    /// A number.
    Varint(u64),
    /// Four bytes, little-endian.
    Fixed32(u32),
    /// Eight bytes.
    Fixed64(u64),
    /// Bytes, a text or a message.
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    /// The bytes.
    pub fn bytes(self) -> Result<&'a [u8], Broken> {
        match self {
            Field::Bytes(bytes) => Ok(bytes),
            _ => Err(Broken),
        }
    }

    /// The nested message.
    pub fn message(self) -> Result<Reader<'a>, Broken> {
        self.bytes().map(Reader)
    }

    /// The number; larger ones are truncated, as protobuf defines.
    pub fn number(self) -> Result<u64, Broken> {
        match self {
            Field::Varint(value) => Ok(value),
            _ => Err(Broken),
        }
    }

    /// The number in 32 bits.
    pub fn u32(self) -> Result<u32, Broken> {
        self.number().map(|n| n as u32)
    }
}

/// Reads the fields of a message, one after another.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next field with its number; `None` at the end.
    pub fn next(&mut self) -> Result<Option<(u32, Field<'a>)>, Broken> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| Broken)?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(u32::from_le_bytes(self.array()?)),
            _ => return Err(Broken),
        };
        Ok(Some(((tag >> 3) as u32, field)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Broken> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Broken)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Broken)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// The next number without a tag, as in packed lists.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Broken> {
        if let [first, rest @ ..] = self.0
            && *first < 0x80
        {
            self.0 = rest;
            return Ok(u64::from(*first));
        }
        let mut value = 0;
        for (i, byte) in self.0.iter().enumerate().take(10) {
            value |= u64::from(byte & 0x7f) << (7 * i).min(63);
            if *byte < 0x80 {
                self.0 = &self.0[i + 1..];
                return Ok(value);
            }
        }
        Err(Broken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(number: u64, bytes in proptest::collection::vec(any::<u8>(), 0..300), long in any::<u32>()) {
            let mut writer = Writer::default();
            writer.varint(3, number);
            writer.message::<Broken>(1000, |w| {
                w.bytes(1, &bytes);
                w.long_varint(2, long);
                Ok(())
            }).unwrap();
            let mut reader = Reader(&writer.out);
            prop_assert_eq!(reader.next(), Ok(Some((3, Field::Varint(number)))));
            let (field, body) = reader.next().unwrap().unwrap();
            prop_assert_eq!(field, 1000);
            let mut body = body.message().unwrap();
            prop_assert_eq!(body.next(), Ok(Some((1, Field::Bytes(&bytes[..])))));
            prop_assert_eq!(body.next(), Ok(Some((2, Field::Varint(u64::from(long))))));
            prop_assert_eq!(body.next(), Ok(None));
            prop_assert_eq!(reader.next(), Ok(None));
            let slot = writer.slots[0];
            prop_assert_eq!(&writer.out[slot..slot + 5], &super::long(long)[..]);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader(&bytes);
            while let Ok(Some(_)) = reader.next() {}
        }
    }
}
