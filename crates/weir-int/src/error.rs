//! Why bytes are not what a format says: which field, where, what was expected and found.

use std::fmt;

/// The kind of a decoding error. A collector keeps one counter for each ([`Reason::index`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Bytes end before the field does.
    Truncated,
    /// No known version of a telemetry report.
    ReportVersion,
    /// No known type of an individual report.
    ReportType,
    /// No known type of a report's inner contents.
    InnerType,
    /// A report's length contradicts its other fields.
    ReportLength,
    /// The length of a report's metadata contradicts its bitmap.
    MetadataLength,
    /// No known type of a TLV.
    TlvType,
    /// No known type of an INT shim.
    ShimType,
    /// No known next-protocol type of an INT shim.
    NextProtocolType,
    /// The length of an INT shim is shorter than what it must cover.
    ShimLength,
    /// No known version of an INT header.
    IntVersion,
    /// The length per hop contradicts the instruction bitmap.
    HopLength,
    /// The length of the metadata stack is no multiple of the length per hop.
    StackLength,
    /// The bottom-of-stack bit is missing at the oldest record, or set at another.
    BottomOfStack,
    /// The version field of an IP header contradicts what announced the header.
    IpVersion,
    /// The header length of an IP or TCP header, or the total length of an IP packet, is
    /// impossible.
    HeaderLength,
    /// A class or type of a Geneve option that is not INT.
    OptionType,
}

impl Reason {
    /// All reasons, in the order of [`Reason::index`].
    pub const ALL: [Reason; 17] = [
        Reason::Truncated,
        Reason::ReportVersion,
        Reason::ReportType,
        Reason::InnerType,
        Reason::ReportLength,
        Reason::MetadataLength,
        Reason::TlvType,
        Reason::ShimType,
        Reason::NextProtocolType,
        Reason::ShimLength,
        Reason::IntVersion,
        Reason::HopLength,
        Reason::StackLength,
        Reason::BottomOfStack,
        Reason::IpVersion,
        Reason::HeaderLength,
        Reason::OptionType,
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
            Reason::ReportVersion => "report_version",
            Reason::ReportType => "report_type",
            Reason::InnerType => "inner_type",
            Reason::ReportLength => "report_length",
            Reason::MetadataLength => "metadata_length",
            Reason::TlvType => "tlv_type",
            Reason::ShimType => "shim_type",
            Reason::NextProtocolType => "next_protocol_type",
            Reason::ShimLength => "shim_length",
            Reason::IntVersion => "int_version",
            Reason::HopLength => "hop_length",
            Reason::StackLength => "stack_length",
            Reason::BottomOfStack => "bottom_of_stack",
            Reason::IpVersion => "ip_version",
            Reason::HeaderLength => "header_length",
            Reason::OptionType => "option_type",
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
    /// This many bytes.
    Bytes(u32),
    /// This value.
    Exactly(u32),
    /// This value or a larger one.
    AtLeast(u32),
    /// This value or a smaller one.
    AtMost(u32),
    /// A multiple of this value.
    MultipleOf(u32),
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
            Expected::MultipleOf(n) => write!(f, "a multiple of {n}"),
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
    /// The header and field, such as `INT-MD HopML`.
    pub field: &'static str,
    /// The offset in bytes of the field (of its first byte), from the start of the decoded bytes.
    pub offset: u32,
    /// The value, or number of bytes, that the format requires.
    pub expected: Expected,
    /// The value, or number of bytes, that is there.
    pub found: u32,
}

impl WireError {
    pub(crate) fn new(reason: Reason, field: &'static str, offset: usize, expected: Expected, found: u32) -> Self {
        WireError {
            reason,
            field,
            offset: offset as u32,
            expected,
            found,
        }
    }
}

/// An encoding error: contents exceed what a length field can express.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("contents: expected at most {limit} bytes, found {found}")]
pub struct TooLong {
    /// The most bytes.
    pub limit: usize,
    /// The number of bytes.
    pub found: usize,
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
        let error = WireError::new(Reason::HopLength, "INT-MD HopML", 6, Expected::AtLeast(7), 3);
        assert_eq!(
            error.to_string(),
            "INT-MD HopML at byte 6: expected at least 7, found 3"
        );
    }
}
