//! Telemetry reports of all versions as one type.
//!
//! A [`Decoder`] takes the payload of a UDP datagram and yields its [`Report`]s, which borrow it.
//! Nothing is allocated.

mod decode;
mod hops;

pub use decode::{Decoder, Reports, VersionChoice};
pub use hops::Hops;

use crate::error::WireError;
use crate::flow::FlowKey;
use crate::hop::Timestamp;
use crate::packet::IntHeader;
use crate::wire::report::Flags;
use std::fmt;

/// The version of a telemetry report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportVersion {
    /// 0.5. Its text gives no value for the version field; 0 and 1 occur.
    V0_5,
    /// 1.0.
    V1_0,
    /// 2.0.
    V2_0,
}

impl ReportVersion {
    /// Whether the version fixes nanoseconds as the unit of the report's own ingress timestamp. 2.0
    /// leaves the unit to the node.
    #[must_use]
    pub const fn has_nanoseconds(self) -> bool {
        match self {
            ReportVersion::V0_5 | ReportVersion::V1_0 => true,
            ReportVersion::V2_0 => false,
        }
    }
}

impl fmt::Display for ReportVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReportVersion::V0_5 => "0.5",
            ReportVersion::V1_0 => "1.0",
            ReportVersion::V2_0 => "2.0",
        })
    }
}

/// The sequence number of a datagram, which wraps at its width.
///
/// 2.0 and 1.0 count per node, hardware id and destination, 0.5 per hardware id and destination.
/// Reports of one datagram share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sequence {
    /// The number.
    pub value: u32,
    /// Its width: 22 bits for 2.0, 32 for others.
    pub bits: u8,
}

impl Sequence {
    /// The distance from an earlier number, modulo the width: 1 for the next datagram, 0 for the
    /// same.
    #[must_use]
    pub const fn since(self, earlier: u32) -> u32 {
        let distance = self.value.wrapping_sub(earlier);
        if self.bits >= 32 {
            distance
        } else {
            distance & ((1 << self.bits) - 1)
        }
    }
}

/// The type of an individual report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportKind {
    /// INT; all reports before 2.0.
    Int,
    /// A packet without metadata of the node (2.0 RepType 0).
    InnerOnly,
    /// IOAM (2.0 RepType 2): its contents have no specified format, so that neither flow nor hops
    /// are known.
    Ioam,
}

/// The lengths of a reported packet, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PacketLength {
    /// Bytes in the report, from the packet's first header on; without an outer header that the
    /// report has left out. Less than the packet's length if it was truncated.
    pub captured: u32,
    /// The packet's length from its IP header, by its length field, with INT; 0 if unknown.
    pub ip: u32,
    /// Bytes of `ip` that INT had added: marker, inserted UDP header, shim, header, stack, tail.
    pub int: u32,
}

impl PacketLength {
    /// The length from the IP header without INT; 0 if unknown.
    #[must_use]
    pub const fn ip_without_int(self) -> u32 {
        self.ip.saturating_sub(self.int)
    }
}

/// A telemetry report, independent of its version.
#[derive(Debug, Clone, Copy)]
pub struct Report<'a> {
    /// The version on the wire.
    pub version: ReportVersion,
    /// The type of the report.
    pub kind: ReportKind,
    /// The node that sent it; `None` for 0.5 without drop or local header.
    pub node_id: Option<u32>,
    /// The part of the node that sent it. 6 bits.
    pub hw_id: u8,
    /// The sequence number of the datagram.
    pub sequence: Sequence,
    /// Its place in the datagram, from 0.
    pub index: u32,
    /// Why it was sent.
    pub flags: Flags,
    /// Why the packet was dropped: a code of the node.
    pub drop_reason: Option<u8>,
    /// The flow of the packet, as it is without INT.
    pub flow: Option<FlowKey>,
    /// The lengths of the packet.
    pub length: PacketLength,
    /// When the packet came into the reporting node; `None` if the report does not say.
    pub ingress_timestamp: Option<Timestamp>,
    /// When the packet left the reporting node; `None` if the report does not say.
    pub egress_timestamp: Option<Timestamp>,
    /// The INT header of the packet; `None` without INT.
    pub int: Option<IntHeader>,
    /// The INT domain (2.x); 0 is the default.
    pub domain_id: u16,
    /// Domain-specific metadata of the reporting node (2.0).
    pub domain_metadata: &'a [u8],
    /// The hops, from source to sink.
    pub hops: Hops<'a>,
    /// Why the packet could not be read in full; its report is valid. Mostly that it was truncated.
    pub packet_fault: Option<WireError>,
}
