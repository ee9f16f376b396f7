//! Telemetry report 1.0: a header with optional metadata, and a packet.

use super::Flags;
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::hop::Hop;
use crate::read::Reader;
use crate::wire::metadata::{self, Format, Metadata};

/// The header that begins the reported packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextProtocol {
    /// 0: Ethernet.
    Ethernet,
    /// 1: IPv4.
    Ipv4,
    /// 2: IPv6.
    Ipv6,
}

impl NextProtocol {
    const fn code(self) -> u32 {
        match self {
            NextProtocol::Ethernet => 0,
            NextProtocol::Ipv4 => 1,
            NextProtocol::Ipv6 => 2,
        }
    }
}

/// The optional metadata of a report 1.0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Optional {
    /// RepMdBits, the most significant first: level 1 ports; hop latency; queue; egress timestamp;
    /// queue id and drop reason; TX utilisation. One word each.
    pub bits: Uint<6>,
    /// The values of the node; `None` if their bit is not set.
    pub hop: Hop,
    /// Why the packet was dropped: a code of the node.
    pub drop_reason: Option<u8>,
}

/// The header, 16 bytes and optional metadata (telemetry report 1.0, section "Telemetry Report
/// Header").
///
/// Version 4 (1) | length 4 | next protocol 3 | RepMdBits 6 | reserved 6 | D 1 | Q 1 | F 1 |
/// hardware id 6 || switch id 32 || sequence number 32 || ingress timestamp 32 || optional words,
/// in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The header that begins the reported packet.
    pub next: NextProtocol,
    /// Why the report was sent; never intermediate.
    pub flags: Flags,
    /// The part of the node that sent the report.
    pub hw_id: Uint<6>,
    /// The node that sent the report.
    pub node_id: u32,
    /// Counts reports of one node and `hw_id` to one destination.
    pub sequence: u32,
    /// When the packet came in, in ns of the node's clock.
    pub ingress_timestamp: u32,
    /// Optional metadata.
    pub optional: Optional,
}

/// The reading of the length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    /// It has to cover the words of RepMdBits; words beyond them are skipped.
    Checked,
    /// As above, but 0 to 3, which no header has, stand for the words of RepMdBits.
    Lenient,
}

impl Header {
    /// Bytes without optional metadata.
    pub const BYTES: usize = 16;
    /// The version on the wire.
    pub const VERSION: u8 = 1;

    /// Reads a header.
    ///
    /// # Errors
    /// Truncated, another version, an unknown next protocol, or a length that does not cover the
    /// optional metadata.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Self::read_with(reader, Length::Checked)
    }

    /// Reads a header whose length field may be less than 4, as some generators send it.
    ///
    /// # Errors
    /// As of [`Header::read`], except for lengths of 0 to 3.
    pub fn read_lenient(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        Self::read_with(reader, Length::Lenient)
    }

    fn read_with(reader: &mut Reader<'_>, length: Length) -> Result<Self, WireError> {
        let offset = reader.offset();
        let first = reader.u32("report 1.0 header")?;
        let version = first >> 28;
        if version != u32::from(Self::VERSION) {
            let expected = Expected::Exactly(Self::VERSION.into());
            return Err(WireError::new(
                Reason::ReportVersion,
                "report 1.0 version",
                offset,
                expected,
                version,
            ));
        }
        let next = Self::next_protocol(first, offset)?;
        let bits = Uint::truncate(first >> 15);
        let words = Self::length(first, bits, length, offset)?;
        let (node_id, sequence) = (
            reader.u32("report 1.0 switch id")?,
            reader.u32("report 1.0 sequence number")?,
        );
        let ingress_timestamp = reader.u32("report 1.0 ingress timestamp")?;
        let optional = reader.take((words as usize - 4) * 4, "report 1.0 optional metadata")?;
        let (mut hop, mut drop_reason) = (Hop::default(), None);
        let bitmap = Self::bitmap(bits);
        metadata::decode(Format::ReportV1, bitmap, optional.rest(), &mut hop, &mut drop_reason);
        Ok(Header {
            next,
            flags: Flags::from_dqf(first >> 6),
            hw_id: Uint::truncate(first),
            node_id,
            sequence,
            ingress_timestamp,
            optional: Optional { bits, hop, drop_reason },
        })
    }

    fn next_protocol(first: u32, offset: usize) -> Result<NextProtocol, WireError> {
        match first >> 21 & 0b111 {
            0 => Ok(NextProtocol::Ethernet),
            1 => Ok(NextProtocol::Ipv4),
            2 => Ok(NextProtocol::Ipv6),
            other => {
                let expected = Expected::OneOf("0 (Ethernet), 1 (IPv4) or 2 (IPv6)");
                Err(WireError::new(
                    Reason::InnerType,
                    "report 1.0 next protocol",
                    offset + 1,
                    expected,
                    other,
                ))
            }
        }
    }

    /// Words of the header; at least 4.
    fn length(first: u32, bits: Uint<6>, length: Length, offset: usize) -> Result<u32, WireError> {
        let words = first >> 24 & 0xf;
        let needed = 4 + bits.get().count_ones();
        if words >= needed {
            return Ok(words);
        }
        if words < 4 && length == Length::Lenient {
            return Ok(needed);
        }
        let expected = Expected::AtLeast(needed);
        Err(WireError::new(
            Reason::ReportLength,
            "report 1.0 length",
            offset,
            expected,
            words,
        ))
    }

    const fn bitmap(bits: Uint<6>) -> u16 {
        (bits.get() as u16) << 10
    }

    /// Appends the header. Reserved bits are 0.
    pub fn write(&self, out: &mut Vec<u8>) {
        let words = 4 + self.optional.bits.get().count_ones();
        let first = u32::from(Self::VERSION) << 28
            | words << 24
            | self.next.code() << 21
            | self.optional.bits.get() << 15
            | self.flags.dqf() << 6
            | self.hw_id.get();
        for word in [first, self.node_id, self.sequence, self.ingress_timestamp] {
            out.extend(word.to_be_bytes());
        }
        let metadata = Metadata {
            hop: self.optional.hop,
            drop_reason: self.optional.drop_reason,
        };
        metadata::encode(Format::ReportV1, Self::bitmap(self.optional.bits), &metadata, out);
    }
}
