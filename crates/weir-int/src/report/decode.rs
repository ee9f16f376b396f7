//! From datagrams to reports.

use super::{Hops, PacketLength, Report, ReportKind, ReportVersion, Sequence};
use crate::error::{Expected, Reason, WireError};
use crate::hop::{Hop, Timestamp, TimestampWidth};
use crate::packet::{Detection, PacketView};
use crate::read::Reader;
use crate::wire::report::v2::{GroupHeader, IndividualHeader, InnerType, MainPart, ReportType, TO_END, Tlv, TlvType};
use crate::wire::report::{Flags, v0_5, v1};

/// The version of datagrams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VersionChoice {
    /// By the first byte: high nibble 2 is 2.0, 0 is 0.5, 1 is 1.0 if the low nibble (the length of
    /// 1.0) is 4 or more.
    ///
    /// Ambiguous is 0x10 to 0x13: 0.5 that sends version 1, or 1.0 with an impossible length; both
    /// occur. The version is 0.5 if its packet has a flow, else 1.0. Set [`VersionChoice::Fixed`]
    /// for such nodes, and for any that send another version than they implement.
    #[default]
    Detect,
    /// Always this one. The version field is checked for 1.0 and 2.0 only.
    Fixed(ReportVersion),
}

/// Decodes datagrams of telemetry reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decoder {
    /// The version of the datagrams.
    pub version: VersionChoice,
    /// How the packets within reports signal INT.
    pub detection: Detection,
}

impl Decoder {
    /// The reports of a datagram: `datagram` is the payload behind the UDP header.
    ///
    /// A malformed report gives an error, and decoding continues with the next report if the length
    /// of the malformed one is known. There is at least one item.
    #[must_use]
    pub fn decode<'a, 'd>(&'d self, datagram: &'a [u8]) -> Reports<'a, 'd> {
        Reports {
            decoder: self,
            reader: Reader::new(datagram),
            state: State::Start,
        }
    }

    fn detect(&self, datagram: &[u8]) -> Result<ReportVersion, WireError> {
        if let VersionChoice::Fixed(version) = self.version {
            return Ok(version);
        }
        let Some(&first) = datagram.first() else {
            let expected = Expected::Bytes(v0_5::FixedHeader::BYTES as u32);
            return Err(WireError::new(Reason::Truncated, "report header", 0, expected, 0));
        };
        match (first >> 4, first & 0xf) {
            (0, _) => Ok(ReportVersion::V0_5),
            (1, 4..) => Ok(ReportVersion::V1_0),
            (1, _) => match self.read_v0_5(&mut Reader::new(datagram)) {
                Ok(report) if report.flow.is_some() => Ok(ReportVersion::V0_5),
                Ok(_) | Err(_) => Ok(ReportVersion::V1_0),
            },
            (2, _) => Ok(ReportVersion::V2_0),
            (other, _) => {
                let expected = Expected::AtMost(2);
                let field = "report version";
                Err(WireError::new(Reason::ReportVersion, field, 0, expected, other.into()))
            }
        }
    }

    /// Where INT is searched: nowhere unless the report is of a tracked flow.
    #[inline]
    fn detection(&self, flags: Flags) -> Option<&Detection> {
        flags.tracked_flow.then_some(&self.detection)
    }

    fn read_v0_5<'a>(&self, reader: &mut Reader<'a>) -> Result<Report<'a>, WireError> {
        let header = v0_5::FixedHeader::read(reader)?;
        let (own, drop_reason) = match header.next {
            v0_5::NextProtocol::Ethernet => (None, None),
            v0_5::NextProtocol::Drop => {
                let drop = v0_5::DropHeader::read(reader)?;
                (Some(drop.hop), Some(drop.reason))
            }
            v0_5::NextProtocol::Local => (Some(v0_5::LocalHeader::read(reader)?.hop), None),
        };
        let ingress_timestamp = known32(header.ingress_timestamp);
        let own = own.map(|hop| Hop {
            ingress_timestamp,
            ..hop
        });
        let captured = reader.len();
        let packet = PacketView::ethernet_at(*reader, self.detection(header.flags));
        let report = Report {
            version: ReportVersion::V0_5,
            kind: ReportKind::Int,
            node_id: own.and_then(|o| o.node_id),
            hw_id: header.hw_id.get() as u8,
            sequence: Sequence {
                value: header.sequence,
                bits: 32,
            },
            index: 0,
            flags: header.flags,
            drop_reason,
            ingress_timestamp,
            egress_timestamp: own.and_then(|o| o.egress_timestamp),
            ..empty()
        };
        Ok(with_packet(report, &packet, captured, own))
    }

    fn read_v1<'a>(&self, reader: &mut Reader<'a>) -> Result<Report<'a>, WireError> {
        let header = v1::Header::read_lenient(reader)?;
        let captured = reader.len();
        let detection = self.detection(header.flags);
        let packet = match header.next {
            v1::NextProtocol::Ethernet => PacketView::ethernet_at(*reader, detection),
            v1::NextProtocol::Ipv4 => PacketView::ipv4_at(*reader, detection),
            v1::NextProtocol::Ipv6 => PacketView::ipv6_at(*reader, detection),
        };
        let ingress_timestamp = known32(header.ingress_timestamp);
        // The header always has node id and ingress timestamp. They are a hop of their own if the
        // report has more of the node, or nothing but them.
        let has_own = header.optional.bits.get() != 0 || packet.int.is_none_or(|i| i.stack.is_empty());
        let own = has_own.then_some(Hop {
            node_id: Some(header.node_id),
            ingress_timestamp,
            ..header.optional.hop
        });
        let report = Report {
            version: ReportVersion::V1_0,
            kind: ReportKind::Int,
            node_id: Some(header.node_id),
            hw_id: header.hw_id.get() as u8,
            sequence: Sequence {
                value: header.sequence,
                bits: 32,
            },
            index: 0,
            flags: header.flags,
            drop_reason: header.optional.drop_reason,
            ingress_timestamp,
            egress_timestamp: header.optional.hop.egress_timestamp,
            ..empty()
        };
        Ok(with_packet(report, &packet, captured, own))
    }

    /// Reads an individual report of 2.0; `reader` ends with it.
    #[inline]
    fn read_v2<'a>(
        &self,
        group: &GroupHeader,
        header: &IndividualHeader,
        offset: usize,
        index: u32,
        reader: &mut Reader<'a>,
    ) -> Result<Report<'a>, WireError> {
        let mut report = Report {
            version: ReportVersion::V2_0,
            node_id: Some(group.node_id),
            hw_id: group.hw_id.get() as u8,
            sequence: Sequence {
                value: group.sequence.get(),
                bits: 22,
            },
            index,
            flags: header.flags,
            ..empty()
        };
        let report_type = header.report_type.map_err(|found| {
            let expected = Expected::OneOf("0 (inner only), 1 (INT) or 2 (IOAM)");
            WireError::new(Reason::ReportType, "RepType", offset, expected, found.into())
        })?;
        let own = match report_type {
            ReportType::InnerOnly => {
                report.kind = ReportKind::InnerOnly;
                None
            }
            ReportType::Int => read_main(&mut report, group, header, offset, reader)?,
            ReportType::Ioam => {
                report.kind = ReportKind::Ioam;
                return Ok(report);
            }
        };
        let inner_type = header.inner_type.map_err(|found| {
            let expected = Expected::OneOf("0 to 5");
            WireError::new(Reason::InnerType, "InType", offset, expected, found.into())
        })?;
        let detection = self.detection(header.flags);
        let captured = reader.len();
        let packet = match inner_type {
            InnerType::None | InnerType::Domain => PacketView::default(),
            InnerType::Ethernet => PacketView::ethernet_at(*reader, detection),
            InnerType::Ipv4 => PacketView::ipv4_at(*reader, detection),
            InnerType::Ipv6 => PacketView::ipv6_at(*reader, detection),
            InnerType::Tlv => {
                let (packet, captured) = read_tlvs(reader, detection)?;
                return Ok(with_packet(report, &packet, captured, own));
            }
        };
        Ok(with_packet(report, &packet, captured, own))
    }
}

/// Reads the main part of RepType 1. The values of the reporting node are a hop if there are any.
#[inline]
fn read_main<'a>(
    report: &mut Report<'a>,
    group: &GroupHeader,
    header: &IndividualHeader,
    offset: usize,
    reader: &mut Reader<'a>,
) -> Result<Option<Hop>, WireError> {
    let main = MainPart::read(reader)?;
    let baseline = main.baseline_words();
    let domain_words = header.metadata_length.checked_sub(baseline);
    let Some(domain_words) = domain_words.filter(|words| *words == 0 || main.domain_bits != 0) else {
        let expected = if main.domain_bits == 0 {
            Expected::Exactly(baseline.into())
        } else {
            Expected::AtLeast(baseline.into())
        };
        let found = header.metadata_length.into();
        return Err(WireError::new(
            Reason::MetadataLength,
            "MD length",
            offset + 2,
            expected,
            found,
        ));
    };
    let metadata = reader.take(usize::from(baseline) * 4, "report metadata")?;
    report.domain_metadata = reader
        .take(usize::from(domain_words) * 4, "domain-specific metadata")?
        .rest();
    report.domain_id = main.domain_id;
    if main.metadata_bits == 0 {
        return Ok(None);
    }
    let (hop, drop_reason) = main.decode(metadata.rest());
    report.drop_reason = drop_reason;
    report.ingress_timestamp = hop.ingress_timestamp;
    report.egress_timestamp = hop.egress_timestamp;
    Ok(Some(Hop {
        node_id: Some(group.node_id),
        ..hop
    }))
}

/// The first packet among TLVs, and its captured bytes.
fn read_tlvs<'a>(reader: &mut Reader<'a>, detection: Option<&Detection>) -> Result<(PacketView<'a>, usize), WireError> {
    while !reader.is_empty() {
        let offset = reader.offset();
        let tlv = Tlv::read(reader)?;
        let kind = tlv.kind.map_err(|found| {
            let expected = Expected::AtMost(3);
            WireError::new(Reason::TlvType, "TLV type", offset, expected, found.into())
        })?;
        let packet = match kind {
            TlvType::Domain => continue,
            TlvType::Ethernet => PacketView::ethernet_at(tlv.data, detection),
            TlvType::Ipv4 => PacketView::ipv4_at(tlv.data, detection),
            TlvType::Ipv6 => PacketView::ipv6_at(tlv.data, detection),
        };
        return Ok((packet, tlv.data.len()));
    }
    Ok((PacketView::default(), 0))
}

fn known32(value: u32) -> Option<Timestamp> {
    (value != u32::MAX).then_some(Timestamp {
        value: value.into(),
        width: TimestampWidth::Bits32,
    })
}

/// A report of nothing, whose fields are replaced by those that a version has.
#[inline]
fn empty<'a>() -> Report<'a> {
    Report {
        version: ReportVersion::V2_0,
        kind: ReportKind::Int,
        node_id: None,
        hw_id: 0,
        sequence: Sequence { value: 0, bits: 32 },
        index: 0,
        flags: Flags::default(),
        drop_reason: None,
        flow: None,
        length: PacketLength::default(),
        ingress_timestamp: None,
        egress_timestamp: None,
        int: None,
        domain_id: 0,
        domain_metadata: &[],
        hops: Hops::EMPTY,
        packet_fault: None,
    }
}

/// A report with what its packet says.
#[inline]
fn with_packet<'a>(mut report: Report<'a>, packet: &PacketView<'a>, captured: usize, own: Option<Hop>) -> Report<'a> {
    report.flow = packet.flow;
    report.length = PacketLength {
        captured: captured as u32,
        ip: packet.network.map_or(0, |n| n.length),
        int: packet.int.map_or(0, |i| i.bytes),
    };
    report.int = packet.int.map(|i| i.header);
    report.packet_fault = packet.fault;
    let stack = packet.int.map_or(crate::wire::Stack::EMPTY, |i| i.stack);
    report.hops = Hops::new(stack, own);
    report
}

/// Where a datagram's decoding is.
#[derive(Debug, Clone, Copy)]
enum State {
    Start,
    /// Within a group of 2.0, at the report of this index.
    Group(GroupHeader, u32),
    End,
}

/// The reports of a datagram: an iterator that [`Decoder::decode`] returns.
#[derive(Debug, Clone)]
pub struct Reports<'a, 'd> {
    decoder: &'d Decoder,
    reader: Reader<'a>,
    state: State,
}

impl<'a> Reports<'a, '_> {
    fn start(&mut self) -> Result<Report<'a>, WireError> {
        self.state = State::End;
        match self.decoder.detect(self.reader.rest())? {
            ReportVersion::V0_5 => self.decoder.read_v0_5(&mut self.reader),
            ReportVersion::V1_0 => self.decoder.read_v1(&mut self.reader),
            ReportVersion::V2_0 => {
                let group = GroupHeader::read(&mut self.reader)?;
                self.individual(group, 0)
            }
        }
    }

    #[inline]
    fn individual(&mut self, group: GroupHeader, index: u32) -> Result<Report<'a>, WireError> {
        self.state = State::End;
        let offset = self.reader.offset();
        let header = IndividualHeader::read(&mut self.reader)?;
        let mut body = if header.report_length == TO_END {
            self.reader.take_up_to(usize::MAX)
        } else {
            self.reader
                .take(usize::from(header.report_length) * 4, "individual report")?
        };
        if !self.reader.is_empty() {
            self.state = State::Group(group, index + 1);
        }
        self.decoder.read_v2(&group, &header, offset, index, &mut body)
    }
}

impl<'a> Iterator for Reports<'a, '_> {
    type Item = Result<Report<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self.state {
            State::Start => Some(self.start()),
            State::Group(group, index) => Some(self.individual(group, index)),
            State::End => None,
        }
    }
}
