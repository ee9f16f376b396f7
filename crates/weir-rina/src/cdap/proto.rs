//! The wire format of protocol buffers, as far as CDAP needs it.
//!
//! Fields that a message does not know are skipped, as the format demands. Later occurrences of a
//! field that is not repeated replace earlier ones; those of an embedded message are merged.

use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

/// Groups (an obsolete construct) may be nested this deep.
const MAX_GROUPS: usize = 32;

/// The contents of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2.
    Bytes(Reader<'a>),
    /// Wire type 5.
    Fixed32(u32),
}

impl Contents<'_> {
    fn wire_type(&self) -> u64 {
        match self {
            Contents::Varint(_) => 0,
            Contents::Fixed64(_) => 1,
            Contents::Bytes(_) => 2,
            Contents::Fixed32(_) => 5,
        }
    }
}

/// A field of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) offset: usize,
    pub(crate) contents: Contents<'a>,
}

impl<'a> Field<'a> {
    fn wrong_type(&self, name: &'static str, expected: u64) -> WireError {
        let expected = Expected::Exactly(expected);
        let found = self.contents.wire_type();
        WireError::new(Reason::WireType, name, self.offset, expected, found)
    }

    pub(crate) fn varint(&self, name: &'static str) -> Result<u64, WireError> {
        match self.contents {
            Contents::Varint(value) => Ok(value),
            Contents::Fixed64(_) | Contents::Bytes(_) | Contents::Fixed32(_) => Err(self.wrong_type(name, 0)),
        }
    }

    /// An `int32` or `uint32`: the low 32 bits, as in other implementations.
    pub(crate) fn int32(&self, name: &'static str) -> Result<i32, WireError> {
        self.varint(name).map(|value| value as i32)
    }

    pub(crate) fn uint32(&self, name: &'static str) -> Result<u32, WireError> {
        self.varint(name).map(|value| value as u32)
    }

    pub(crate) fn boolean(&self, name: &'static str) -> Result<bool, WireError> {
        self.varint(name).map(|value| value != 0)
    }

    pub(crate) fn fixed32(&self, name: &'static str) -> Result<u32, WireError> {
        match self.contents {
            Contents::Fixed32(value) => Ok(value),
            Contents::Varint(_) | Contents::Fixed64(_) | Contents::Bytes(_) => Err(self.wrong_type(name, 5)),
        }
    }

    pub(crate) fn fixed64(&self, name: &'static str) -> Result<u64, WireError> {
        match self.contents {
            Contents::Fixed64(value) => Ok(value),
            Contents::Varint(_) | Contents::Fixed32(_) | Contents::Bytes(_) => Err(self.wrong_type(name, 1)),
        }
    }

    /// An embedded message.
    pub(crate) fn message(&self, name: &'static str) -> Result<Reader<'a>, WireError> {
        match self.contents {
            Contents::Bytes(reader) => Ok(reader),
            Contents::Varint(_) | Contents::Fixed64(_) | Contents::Fixed32(_) => Err(self.wrong_type(name, 2)),
        }
    }

    pub(crate) fn bytes(&self, name: &'static str) -> Result<Vec<u8>, WireError> {
        self.message(name).map(|reader| reader.rest().to_vec())
    }

    pub(crate) fn string(&self, name: &'static str) -> Result<String, WireError> {
        let reader = self.message(name)?;
        match std::str::from_utf8(reader.rest()) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let at = error.valid_up_to();
                let found = reader.rest().get(at).copied().unwrap_or_default();
                let expected = Expected::OneOf("UTF-8");
                Err(WireError::new(
                    Reason::Utf8,
                    name,
                    reader.offset() + at,
                    expected,
                    found,
                ))
            }
        }
    }

    /// The elements of a repeated integer: one, or several that are packed.
    pub(crate) fn varints(&self, name: &'static str, into: &mut Vec<u64>) -> Result<(), WireError> {
        if let Contents::Varint(value) = self.contents {
            into.push(value);
            return Ok(());
        }
        let mut reader = self.message(name)?;
        while !reader.is_empty() {
            into.push(varint(&mut reader, name)?);
        }
        Ok(())
    }
}

/// Calls a function for each field of a message.
pub(crate) fn fields<'a>(
    mut reader: Reader<'a>,
    mut field: impl FnMut(Field<'a>) -> Result<(), WireError>,
) -> Result<(), WireError> {
    while !reader.is_empty() {
        if let Some(next) = next_field(&mut reader)? {
            field(next)?;
        }
    }
    Ok(())
}

/// The next field; `None` if it is a group, which is skipped.
fn next_field<'a>(reader: &mut Reader<'a>) -> Result<Option<Field<'a>>, WireError> {
    let mut groups = [0_u32; MAX_GROUPS];
    let mut depth = 0;
    loop {
        let offset = reader.offset();
        let (number, wire_type) = tag(reader)?;
        let contents = match wire_type {
            3 => {
                let Some(place) = groups.get_mut(depth) else {
                    let expected = Expected::AtMost(MAX_GROUPS as u64);
                    let found = depth as u64 + 1;
                    return Err(WireError::new(Reason::Group, "group depth", offset, expected, found));
                };
                *place = number;
                depth += 1;
                continue;
            }
            4 => {
                let open = depth.checked_sub(1).map_or(0, |inner| groups[inner]);
                if open != number {
                    let expected = Expected::Exactly(open.into());
                    return Err(WireError::new(Reason::Group, "end of group", offset, expected, number));
                }
                depth -= 1;
                if depth == 0 {
                    return Ok(None);
                }
                continue;
            }
            _ => contents(reader, wire_type, offset)?,
        };
        if depth == 0 {
            return Ok(Some(Field {
                number,
                offset,
                contents,
            }));
        }
    }
}

fn tag(reader: &mut Reader<'_>) -> Result<(u32, u64), WireError> {
    let offset = reader.offset();
    let tag = varint(reader, "field tag")?;
    match u32::try_from(tag >> 3) {
        Ok(number @ 1..=0x1fff_ffff) => Ok((number, tag & 7)),
        Ok(_) | Err(_) => {
            let expected = Expected::OneOf("a field number of 1 to 536870911");
            Err(WireError::new(Reason::Tag, "field tag", offset, expected, tag >> 3))
        }
    }
}

fn contents<'a>(reader: &mut Reader<'a>, wire_type: u64, offset: usize) -> Result<Contents<'a>, WireError> {
    Ok(match wire_type {
        0 => Contents::Varint(varint(reader, "varint")?),
        1 => Contents::Fixed64(u64::from_le_bytes(reader.array("64-bit field")?)),
        2 => {
            let length = varint(reader, "field length")?;
            // A length beyond the address space is beyond the bytes, too.
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            Contents::Bytes(reader.take(length, "field contents")?)
        }
        5 => Contents::Fixed32(u32::from_le_bytes(reader.array("32-bit field")?)),
        other => {
            let expected = Expected::AtMost(5);
            return Err(WireError::new(Reason::WireType, "wire type", offset, expected, other));
        }
    })
}

fn varint(reader: &mut Reader<'_>, name: &'static str) -> Result<u64, WireError> {
    let offset = reader.offset();
    let mut value = 0;
    for index in 0..10 {
        let byte = reader.u8(name)?;
        if index == 9 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    let expected = Expected::OneOf("a varint of at most 64 bits");
    Err(WireError::new(Reason::Varint, name, offset, expected, value))
}

/// The value of a `sint32` or `sint64`.
pub(crate) fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The varint of a `sint32` or `sint64`.
pub(crate) fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Appends fields of a message.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    out: Vec<u8>,
}

impl Writer {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn tag(&mut self, number: u32, wire_type: u32) {
        self.raw_varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// A varint, even 0.
    pub(crate) fn varint(&mut self, number: u32, value: u64) {
        self.tag(number, 0);
        self.raw_varint(value);
    }

    /// A varint unless it is 0, the default.
    pub(crate) fn varint_unless_zero(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.varint(number, value);
        }
    }

    /// An `int32` unless it is 0; negative values have 10 bytes.
    pub(crate) fn int32_unless_zero(&mut self, number: u32, value: i32) {
        self.varint_unless_zero(number, i64::from(value) as u64);
    }

    pub(crate) fn fixed32(&mut self, number: u32, value: u32) {
        self.tag(number, 5);
        self.out.extend(value.to_le_bytes());
    }

    pub(crate) fn fixed64(&mut self, number: u32, value: u64) {
        self.tag(number, 1);
        self.out.extend(value.to_le_bytes());
    }

    /// Bytes, a string or an embedded message, even an empty one.
    pub(crate) fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, 2);
        self.raw_varint(value.len() as u64);
        self.out.extend(value);
    }

    /// Bytes or a string unless it is empty, the default.
    pub(crate) fn bytes_unless_empty(&mut self, number: u32, value: &[u8]) {
        if !value.is_empty() {
            self.bytes(number, value);
        }
    }

    /// An embedded message.
    pub(crate) fn message(&mut self, number: u32, write: impl FnOnce(&mut Writer)) {
        let mut inner = Writer::default();
        write(&mut inner);
        self.bytes(number, &inner.out);
    }
}

#[cfg(test)]
mod tests {
    use super::{Writer, fields, unzigzag, zigzag};
    use crate::error::Reason;
    use crate::read::Reader;

    fn numbers(bytes: &[u8]) -> Result<Vec<u32>, Reason> {
        let mut numbers = Vec::new();
        let result = fields(Reader::new(bytes), |field| {
            numbers.push(field.number);
            Ok(())
        });
        result.map(|()| numbers).map_err(|error| error.reason)
    }

    #[test]
    fn groups_are_skipped_and_must_be_closed() {
        // Field 1 = 0, group 2 { 3 = 0, group 4 {} }, field 5 = 0.
        assert_eq!(numbers(&[8, 0, 19, 24, 0, 35, 36, 20, 40, 0]), Ok(vec![1, 5]));
        assert_eq!(numbers(&[19, 24, 0]), Err(Reason::Truncated));
        assert_eq!(numbers(&[19, 28]), Err(Reason::Group));
        assert_eq!(numbers(&[20]), Err(Reason::Group));
        assert_eq!(numbers(&[19; 100]), Err(Reason::Group));
    }

    #[test]
    fn tags_and_varints_are_checked() {
        assert_eq!(numbers(&[0, 0]), Err(Reason::Tag));
        assert_eq!(numbers(&[14, 0]), Err(Reason::WireType));
        assert_eq!(
            numbers(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
            Ok(vec![1])
        );
        assert_eq!(
            numbers(&[8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
            Err(Reason::Varint)
        );
        assert_eq!(numbers(&[10, 5, 1]), Err(Reason::Truncated));
    }

    #[test]
    fn small_numbers_of_either_sign_are_short() {
        for (value, coded) in [(0, 0), (-1, 1), (1, 2), (i64::MIN, u64::MAX)] {
            assert_eq!(zigzag(value), coded);
            assert_eq!(unzigzag(coded), value);
        }
        let mut writer = Writer::default();
        writer.varint(1, 300);
        assert_eq!(writer.finish(), [8, 0xac, 2]);
    }
}
