//! Encodes protobuf messages from their end to their start.
//!
//! On the wire the length of a nested message precedes it. A forward writer must know it first, so
//! it walks each message once to measure and once to write. A backward writer knows the length when
//! it writes it. Nothing is allocated per message.
//!
//! It knows no schema: the caller is responsible for field numbers (below 2^29) and types.
//!
//! ```
//! use weir_proto::backwards::Writer;
//! use weir_proto::bfrt_proto::{TableEntry, TableData};
//! use weir_proto::prost::Message;
//!
//! let mut writer = Writer::default();
//! let end = writer.mark();
//! writer.uint32(1, 300); // TableData.action_id
//! writer.nested(3, end); // TableEntry.data
//! writer.uint32(1, 7); // TableEntry.table_id
//! let entry = TableEntry {
//!     table_id: 7,
//!     data: Some(TableData { action_id: 300, fields: vec![] }),
//!     ..TableEntry::default()
//! };
//! assert_eq!(writer.written(), entry.encode_to_vec());
//! ```

use prost::Message;
use prost::encoding::WireType;

/// The end of one or more messages, written so far.
#[derive(Debug, Default)]
pub struct Writer {
    /// The bytes written so far are at its end.
    buffer: Vec<u8>,
    /// Index of the first written byte.
    start: usize,
}

/// A position in the output of a [`Writer`], counted in bytes from the end. It is valid for that
/// writer until [`Writer::clear`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

impl Mark {
    /// The number of bytes between this position and the end.
    #[must_use]
    pub fn before_end(self) -> usize {
        self.0
    }
}

impl Writer {
    /// The bytes written so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Discards the output, and keeps the memory.
    pub fn clear(&mut self) {
        self.start = self.buffer.len();
    }

    /// The current position.
    #[must_use]
    pub fn mark(&self) -> Mark {
        Mark(self.buffer.len() - self.start)
    }

    /// Reserves `length` bytes before all others.
    #[inline]
    fn reserve(&mut self, length: usize) -> &mut [u8] {
        if self.start < length {
            self.grow(length);
        }
        self.start -= length;
        &mut self.buffer[self.start..][..length]
    }

    #[cold]
    fn grow(&mut self, length: usize) {
        let more = self.buffer.len().max(length).max(256);
        let mut larger = vec![0; more];
        larger.extend_from_slice(&self.buffer);
        self.start += more;
        self.buffer = larger;
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            self.reserve(1)[0] = value as u8;
            return;
        }
        let mut bytes = [0; 10];
        let mut length = 0;
        let mut rest = value;
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            rest >>= 7;
            length += 1;
        }
        bytes[length] = rest as u8;
        self.reserve(length + 1).copy_from_slice(&bytes[..=length]);
    }

    #[inline]
    fn key(&mut self, field: u32, wire_type: WireType) {
        self.varint(u64::from(field << 3 | wire_type as u32));
    }

    /// Writes a `uint32` field, unless it is 0, the default.
    #[inline]
    pub fn uint32(&mut self, field: u32, value: u32) {
        if value != 0 {
            self.varint(value.into());
            self.key(field, WireType::Varint);
        }
    }

    /// Writes a `bool` field, unless it is false, the default.
    #[inline]
    pub fn bool(&mut self, field: u32, value: bool) {
        self.uint32(field, value.into());
    }

    /// Writes a field of `length` bytes, filled by a function. It is written even if it is empty.
    #[inline]
    pub fn fill(&mut self, field: u32, length: usize, fill: impl FnOnce(&mut [u8])) {
        fill(self.reserve(length));
        self.varint(length as u64);
        self.key(field, WireType::LengthDelimited);
    }

    /// Writes a message field.
    pub fn message(&mut self, field: u32, message: &impl Message) {
        let length = message.encoded_len();
        self.fill(field, length, |mut room| message.encode_raw(&mut room));
    }

    /// Makes everything written since the mark a message field.
    ///
    /// # Panics
    /// With debug assertions, if the mark was made before [`Writer::clear`]. Without them, a wrong
    /// length is written.
    #[inline]
    pub fn nested(&mut self, field: u32, end: Mark) {
        debug_assert!(end <= self.mark(), "a mark of before");
        self.varint(self.mark().0.wrapping_sub(end.0) as u64);
        self.key(field, WireType::LengthDelimited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bfrt_proto::data_field::Value;
    use crate::bfrt_proto::{DataField, TableData, TargetDevice};

    #[test]
    fn messages_of_every_size_are_those_that_prost_writes() {
        let mut writer = Writer::default();
        for length in [0, 1, 127, 128, 300, 20_000] {
            for field_id in [0, 1, 127, 128, u32::MAX] {
                let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
                let field = DataField {
                    field_id,
                    value: Some(Value::Stream(bytes.clone().into())),
                };
                writer.clear();
                let end = writer.mark();
                writer.fill(2, length, |room| room.copy_from_slice(&bytes));
                writer.uint32(1, field_id);
                assert_eq!(writer.written(), field.encode_to_vec());
                assert_eq!(writer.mark().before_end(), field.encoded_len());
                writer.nested(2, end);
                let data = TableData {
                    action_id: 0,
                    fields: vec![field],
                };
                assert_eq!(writer.written(), data.encode_to_vec());
            }
        }
    }

    #[test]
    fn flags_and_messages_of_others_are_fields_too() {
        let target = TargetDevice {
            pipe_id: 0xffff,
            ..TargetDevice::default()
        };
        let mut writer = Writer::default();
        writer.message(8, &target);
        writer.bool(4, true);
        writer.bool(6, false);
        let entry = crate::bfrt_proto::TableEntry {
            is_default_entry: true,
            entry_tgt: Some(target),
            ..crate::bfrt_proto::TableEntry::default()
        };
        assert_eq!(writer.written(), entry.encode_to_vec());
    }
}
