//! Telemetry report 0.5: a fixed header, a drop or local header, and an Ethernet frame.

use super::Flags;
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::hop::Hop;
use crate::read::Reader;
use crate::wire::metadata::{self, Format, Metadata};

/// What follows the fixed header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextProtocol {
    /// 0: an Ethernet frame, which has INT.
    Ethernet,
    /// 1: a [`DropHeader`], then an Ethernet frame.
    Drop,
    /// 2: a [`LocalHeader`], then an Ethernet frame.
    Local,
}

impl NextProtocol {
    const fn code(self) -> u32 {
        match self {
            NextProtocol::Ethernet => 0,
            NextProtocol::Drop => 1,
            NextProtocol::Local => 2,
        }
    }
}

/// The fixed header, 12 bytes.
///
/// Version 4 | next protocol 4 | D 1 | Q 1 | F 1 | reserved 15 | hardware id 6 || sequence number
/// 32 || ingress timestamp 32, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FixedHeader {
    /// The version field; 0 or 1, as the text gives no value.
    pub version: Uint<4>,
    /// What follows.
    pub next: NextProtocol,
    /// Why the report was sent; never intermediate.
    pub flags: Flags,
    /// The part of the node that sent the report.
    pub hw_id: Uint<6>,
    /// Counts reports of one `hw_id` to one destination.
    pub sequence: u32,
    /// When the packet came in, in ns of the node's clock.
    pub ingress_timestamp: u32,
}

impl FixedHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 12;

    /// Reads a header. The version is not checked.
    ///
    /// # Errors
    /// Fewer than 12 bytes, or an unknown next protocol.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let first = reader.u32("report 0.5 header")?;
        let next = match first >> 24 & 0xf {
            0 => NextProtocol::Ethernet,
            1 => NextProtocol::Drop,
            2 => NextProtocol::Local,
            other => {
                let expected = Expected::OneOf("0 (Ethernet), 1 (drop header) or 2 (local header)");
                return Err(WireError::new(
                    Reason::InnerType,
                    "report 0.5 next protocol",
                    offset,
                    expected,
                    other,
                ));
            }
        };
        Ok(FixedHeader {
            version: Uint::truncate(first >> 28),
            next,
            flags: Flags::from_dqf(first >> 21),
            hw_id: Uint::truncate(first),
            sequence: reader.u32("report 0.5 sequence number")?,
            ingress_timestamp: reader.u32("report 0.5 ingress timestamp")?,
        })
    }

    /// The header on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let first = self.version.get() << 28 | self.next.code() << 24 | self.flags.dqf() << 21 | self.hw_id.get();
        let [a, b, c, d] = first.to_be_bytes();
        let [e, f, g, h] = self.sequence.to_be_bytes();
        let [i, j, k, l] = self.ingress_timestamp.to_be_bytes();
        [a, b, c, d, e, f, g, h, i, j, k, l]
    }
}

/// Node id, ports, drop.
const DROP: u16 = 0b1100_1000 << 8;
/// Node id, ports, queue, egress timestamp.
const LOCAL: u16 = 0b1111_0000 << 8;

/// The drop header, 12 bytes.
///
/// Switch id 32 || ingress port 16 | egress port 16 || queue id 8 | drop reason 8 | padding 16, in
/// network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropHeader {
    /// Node id, level 1 ports and queue id of the node; other values are not sent.
    pub hop: Hop,
    /// Why the packet was dropped: a code of the node.
    pub reason: u8,
}

impl DropHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 12;

    /// Reads a header.
    ///
    /// # Errors
    /// Fewer than 12 bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let bytes: &[u8; Self::BYTES] = reader.array("report 0.5 drop header")?;
        let (mut hop, mut drop_reason) = (Hop::default(), None);
        metadata::decode(Format::ReportV0_5, DROP, bytes, &mut hop, &mut drop_reason);
        Ok(DropHeader {
            hop,
            reason: drop_reason.unwrap_or(u8::MAX),
        })
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let metadata = Metadata {
            hop: self.hop,
            drop_reason: Some(self.reason),
        };
        metadata::encode(Format::ReportV0_5, DROP, &metadata, out);
    }
}

/// The local header, 16 bytes.
///
/// Switch id 32 || ingress port 16 | egress port 16 || queue id 8 | queue occupancy 24 || egress
/// timestamp 32, in network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocalHeader {
    /// Node id, level 1 ports, queue and egress timestamp of the node; other values are not sent.
    pub hop: Hop,
}

impl LocalHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 16;

    /// Reads a header.
    ///
    /// # Errors
    /// Fewer than 16 bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let bytes: &[u8; Self::BYTES] = reader.array("report 0.5 local header")?;
        let mut hop = Hop::default();
        metadata::decode(Format::ReportV0_5, LOCAL, bytes, &mut hop, &mut None);
        Ok(LocalHeader { hop })
    }

    /// Appends the header.
    pub fn write(&self, out: &mut Vec<u8>) {
        let metadata = Metadata {
            hop: self.hop,
            drop_reason: None,
        };
        metadata::encode(Format::ReportV0_5, LOCAL, &metadata, out);
    }
}
