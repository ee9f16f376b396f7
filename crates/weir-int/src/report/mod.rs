//! Telemetry reports of all versions as one type.
//!
//! A [`Decoder`] takes the payload of a UDP datagram and yields its [`Report`]s, which borrow it.
//! Nothing is allocated.

mod decode;
mod hops;

pub use decode::{Decoder, Reports, VersionChoice};
pub use hops::Hops;

use crate::flow::FlowKey;
use crate::hop::{Hop, Timestamp};
use crate::packet::{IntHeader, PacketView};
use crate::wire::Stack;
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
    /// When the packet came into the reporting node; `None` if the report does not say.
    pub ingress_timestamp: Option<Timestamp>,
    /// What the report's headers say of the reporting node, with its node id; also the last of
    /// [`Report::hops`]. `None` if they say nothing beyond the node id: 2.0 without metadata, 0.5
    /// without drop or local header, and 1.0 without optional metadata whose packet has a stack
    /// (its sink is mostly in that stack).
    pub own: Option<Hop>,
    /// The INT domain (2.0); 0 is the default.
    pub domain_id: u16,
    /// Domain-specific metadata of the reporting node (2.0).
    pub domain_metadata: &'a [u8],
    /// Domain-specific extension data: inner contents of that type, or the first TLV of it (2.0).
    pub domain_extension: &'a [u8],
    /// Bytes of the packet in the report, from its first header on. Less than the packet's length
    /// if it was truncated.
    pub captured: u32,
    /// The packet: its flow, lengths and INT. Its fault, if any, leaves the report valid; mostly
    /// the packet was truncated.
    pub packet: PacketView<'a>,
}

impl<'a> Report<'a> {
    /// A report of nothing, for [`Reports::next_into`].
    #[must_use]
    pub fn empty() -> Self {
        Report {
            version: ReportVersion::V2_0,
            kind: ReportKind::Int,
            node_id: None,
            hw_id: 0,
            sequence: Sequence { value: 0, bits: 32 },
            index: 0,
            flags: Flags::default(),
            drop_reason: None,
            ingress_timestamp: None,
            own: None,
            domain_id: 0,
            domain_metadata: &[],
            domain_extension: &[],
            captured: 0,
            packet: PacketView::default(),
        }
    }

    /// The flow of the packet, as it is without INT.
    #[must_use]
    pub fn flow(&self) -> Option<FlowKey> {
        self.packet.flow
    }

    /// When the packet left the reporting node, by the report's headers.
    #[must_use]
    pub fn egress_timestamp(&self) -> Option<Timestamp> {
        self.own.and_then(|own| own.egress_timestamp)
    }

    /// The INT header of the packet; `None` without INT.
    #[must_use]
    pub fn int(&self) -> Option<&IntHeader> {
        self.packet.int.as_ref().map(|int| &int.header)
    }

    /// The hops, from source to sink.
    #[must_use]
    #[inline]
    pub fn hops(&self) -> Hops<'a> {
        let stack = self.packet.int.as_ref().map_or(Stack::EMPTY, |int| int.stack);
        Hops::new(stack, self.own)
    }
}
