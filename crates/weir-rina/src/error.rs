//! Errors of codecs: which field, where, which value the format requires, which value is there.

use std::fmt;

/// The kind of a decoding error; metrics count each kind on its own ([`Reason::index`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Bytes end before the field does.
    Truncated,
    /// A version other than that of the format.
    Version,
    /// No known type of PDU.
    PduType,
    /// A length field contradicts the header or the number of bytes.
    Length,
    /// The checksum or CRC is wrong.
    Checksum,
    /// The TTL is exhausted.
    Ttl,
    /// A combination of delimiting flags that the format does not have.
    Delimiting,
    /// A hardware or protocol type, or an address length, that is not that of a shim.
    ArpType,
    /// No known ARP operation.
    ArpOperation,
    /// A name that is not UTF-8, is empty, or has too many components.
    Name,
    /// A varint of more than 64 bits.
    Varint,
    /// Field number 0, or above 2^29 − 1.
    Tag,
    /// The wire type of a field is not the type of that field, or no wire type.
    WireType,
    /// Groups that are not closed, or nested too deep.
    Group,
    /// A string that is not UTF-8.
    Utf8,
    /// A required field is missing.
    Missing,
    /// No known operation code of CDAP.
    Opcode,
    /// A value that the type of the field does not have.
    Value,
}

impl Reason {
    /// All reasons, in the order of [`Reason::index`].
    pub const ALL: [Reason; 18] = [
        Reason::Truncated,
        Reason::Version,
        Reason::PduType,
        Reason::Length,
        Reason::Checksum,
        Reason::Ttl,
        Reason::Delimiting,
        Reason::ArpType,
        Reason::ArpOperation,
        Reason::Name,
        Reason::Varint,
        Reason::Tag,
        Reason::WireType,
        Reason::Group,
        Reason::Utf8,
        Reason::Missing,
        Reason::Opcode,
        Reason::Value,
    ];

    /// The number of reasons.
    pub const COUNT: usize = Self::ALL.len();

    /// The index of a reason, below [`Reason::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A name for metrics: lower case, words separated by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Truncated => "truncated",
            Reason::Version => "version",
            Reason::PduType => "pdu_type",
            Reason::Length => "length",
            Reason::Checksum => "checksum",
            Reason::Ttl => "ttl",
            Reason::Delimiting => "delimiting",
            Reason::ArpType => "arp_type",
            Reason::ArpOperation => "arp_operation",
            Reason::Name => "name",
            Reason::Varint => "varint",
            Reason::Tag => "tag",
            Reason::WireType => "wire_type",
            Reason::Group => "group",
            Reason::Utf8 => "utf8",
            Reason::Missing => "missing",
            Reason::Opcode => "opcode",
            Reason::Value => "value",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The value that a format requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// This number of bytes.
    Bytes(u64),
    /// This value.
    Exactly(u64),
    /// This value or a larger one.
    AtLeast(u64),
    /// This value or a smaller one.
    AtMost(u64),
    /// One of several values, as text.
    OneOf(&'static str),
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expected::Bytes(n) => write!(f, "{n} bytes"),
            Expected::Exactly(n) => write!(f, "{n}"),
            Expected::AtLeast(n) => write!(f, "at least {n}"),
            Expected::AtMost(n) => write!(f, "at most {n}"),
            Expected::OneOf(text) => f.write_str(text),
        }
    }
}

/// A decoding error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{field} at byte {offset}: expected {expected}, found {found}")]
pub struct WireError {
    /// The kind of the error.
    pub reason: Reason,
    /// The header and field, such as `EFCP length`.
    pub field: &'static str,
    /// The offset in bytes of the field, from the first of the decoded bytes.
    pub offset: usize,
    /// The value, or number of bytes, that the format requires.
    pub expected: Expected,
    /// The value, or number of bytes, that is there.
    pub found: u64,
}

impl WireError {
    pub(crate) fn new(
        reason: Reason,
        field: &'static str,
        offset: usize,
        expected: Expected,
        found: impl Into<u64>,
    ) -> Self {
        WireError {
            reason,
            field,
            offset,
            expected,
            found: found.into(),
        }
    }
}

/// An encoding error: a value that the format cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A value exceeds the width of its field.
    #[error("{field}: expected at most {limit}, found {found}")]
    TooLarge {
        /// The header and field.
        field: &'static str,
        /// The largest value that the field holds.
        limit: u64,
        /// The value.
        found: u64,
    },
    /// The format has no PDU of this type.
    #[error("{dialect} has no PDU of type {kind}")]
    NoSuchPdu {
        /// The name of the format.
        dialect: &'static str,
        /// The name of the type.
        kind: &'static str,
    },
    /// A name has a component that contains the separator of the format, or none at all.
    #[error("{field}: a name of this format has no empty name and no `{separator}` in a component")]
    Name {
        /// The field.
        field: &'static str,
        /// The character between components.
        separator: char,
    },
}

#[cfg(test)]
mod tests {
    use super::{Expected, Reason, WireError};

    #[test]
    fn each_reason_has_an_index_and_a_name_of_its_own() {
        for (index, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.index(), index);
            let same = Reason::ALL.iter().filter(|r| r.name() == reason.name());
            assert_eq!(same.count(), 1);
        }
    }

    #[test]
    fn the_text_has_field_offset_expected_and_found() {
        let error = WireError::new(Reason::Length, "EFCP length", 12, Expected::AtLeast(20), 3_u8);
        assert_eq!(
            error.to_string(),
            "EFCP length at byte 12: expected at least 20, found 3"
        );
    }
}
