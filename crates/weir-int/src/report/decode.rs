//! From datagrams to reports.

use super::{Report, ReportKind, ReportVersion, Sequence};
use crate::error::{Expected, Reason, WireError};
use crate::hop::{Hop, Timestamp, TimestampWidth};
use crate::packet::{Detection, FirstHeader};
use crate::read::Reader;
use crate::wire::report::v2::{GroupHeader, IndividualHeader, InnerType, MainPart, ReportType, TO_END, Tlv, TlvType};
use crate::wire::report::{v0_5, v1};

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
    /// The reports of a datagram: `datagram` is the payload after the UDP header.
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
            (1, _) => {
                let mut report = Report::empty();
                let result = self.read_v0_5(&mut Reader::new(datagram), &mut report);
                match (result, report.packet.flow) {
                    (Ok(()), Some(_)) => Ok(ReportVersion::V0_5),
                    (Ok(()), None) | (Err(_), _) => Ok(ReportVersion::V1_0),
                }
            }
            (2, _) => Ok(ReportVersion::V2_0),
            (other, _) => {
                let expected = Expected::AtMost(2);
                let field = "report version";
                Err(WireError::new(Reason::ReportVersion, field, 0, expected, other.into()))
            }
        }
    }

    fn read_v0_5<'a>(&self, reader: &mut Reader<'a>, report: &mut Report<'a>) -> Result<(), WireError> {
        let header = v0_5::FixedHeader::read(reader)?;
        report.version = ReportVersion::V0_5;
        report.hw_id = header.hw_id.get() as u8;
        report.sequence = Sequence {
            value: header.sequence,
            bits: 32,
        };
        report.flags = header.flags;
        report.ingress_timestamp = known32(header.ingress_timestamp);
        let own = match header.next {
            v0_5::NextProtocol::Ethernet => None,
            v0_5::NextProtocol::Drop => {
                let drop = v0_5::DropHeader::read(reader)?;
                report.drop_reason = Some(drop.reason);
                Some(drop.hop)
            }
            v0_5::NextProtocol::Local => Some(v0_5::LocalHeader::read(reader)?.hop),
        };
        report.node_id = own.and_then(|o| o.node_id);
        report.own = own.map(|hop| Hop {
            ingress_timestamp: report.ingress_timestamp,
            ..hop
        });
        self.read_packet(*reader, FirstHeader::Ethernet, report);
        Ok(())
    }

    fn read_v1<'a>(&self, reader: &mut Reader<'a>, report: &mut Report<'a>) -> Result<(), WireError> {
        let header = v1::Header::read_lenient(reader)?;
        report.version = ReportVersion::V1_0;
        report.node_id = Some(header.node_id);
        report.hw_id = header.hw_id.get() as u8;
        report.sequence = Sequence {
            value: header.sequence,
            bits: 32,
        };
        report.flags = header.flags;
        report.drop_reason = header.optional.drop_reason;
        report.ingress_timestamp = known32(header.ingress_timestamp);
        let first = match header.next {
            v1::NextProtocol::Ethernet => FirstHeader::Ethernet,
            v1::NextProtocol::Ipv4 => FirstHeader::Ipv4,
            v1::NextProtocol::Ipv6 => FirstHeader::Ipv6,
        };
        self.read_packet(*reader, first, report);
        // The header always has node id and ingress timestamp. They are a hop of their own if the
        // report has more of the node, or nothing but them.
        let has_stack = report.packet.int.as_ref().is_some_and(|i| !i.stack.is_empty());
        if header.optional.bits.get() != 0 || !has_stack {
            report.own = Some(Hop {
                node_id: Some(header.node_id),
                ingress_timestamp: report.ingress_timestamp,
                ..header.optional.hop
            });
        }
        Ok(())
    }

    /// Reads an individual report of 2.0; `reader` ends with it.
    #[inline]
    fn read_v2<'a>(
        &self,
        header: &IndividualHeader,
        offset: usize,
        reader: &mut Reader<'a>,
        report: &mut Report<'a>,
    ) -> Result<(), WireError> {
        let report_type = header.report_type.map_err(|found| {
            let expected = Expected::OneOf("0 (inner only), 1 (INT) or 2 (IOAM)");
            WireError::new(Reason::ReportType, "RepType", offset, expected, found.into())
        })?;
        match report_type {
            ReportType::InnerOnly => report.kind = ReportKind::InnerOnly,
            ReportType::Int => read_main(header, offset, reader, report)?,
            ReportType::Ioam => {
                report.kind = ReportKind::Ioam;
                return Ok(());
            }
        }
        let inner_type = header.inner_type.map_err(|found| {
            let expected = Expected::OneOf("0 to 5");
            WireError::new(Reason::InnerType, "InType", offset, expected, found.into())
        })?;
        match inner_type {
            InnerType::None => {}
            InnerType::Domain => report.domain_extension = reader.rest(),
            InnerType::Ethernet => self.read_packet(*reader, FirstHeader::Ethernet, report),
            InnerType::Ipv4 => self.read_packet(*reader, FirstHeader::Ipv4, report),
            InnerType::Ipv6 => self.read_packet(*reader, FirstHeader::Ipv6, report),
            InnerType::Tlv => self.read_tlvs(reader, report)?,
        }
        Ok(())
    }

    #[inline]
    fn read_packet<'a>(&self, reader: Reader<'a>, first: FirstHeader, report: &mut Report<'a>) {
        report.captured = reader.len() as u32;
        // Without a tracked flow there is no INT (all versions say so).
        let detection = report.flags.tracked_flow.then_some(&self.detection);
        report.packet.read(reader, first, detection);
    }

    /// Reads TLVs up to the first packet.
    fn read_tlvs<'a>(&self, reader: &mut Reader<'a>, report: &mut Report<'a>) -> Result<(), WireError> {
        while !reader.is_empty() {
            let offset = reader.offset();
            let tlv = Tlv::read(reader)?;
            let kind = tlv.kind.map_err(|found| {
                let expected = Expected::AtMost(3);
                WireError::new(Reason::TlvType, "TLV type", offset, expected, found.into())
            })?;
            let first = match kind {
                TlvType::Domain => {
                    if report.domain_extension.is_empty() {
                        report.domain_extension = tlv.data.rest();
                    }
                    continue;
                }
                TlvType::Ethernet => FirstHeader::Ethernet,
                TlvType::Ipv4 => FirstHeader::Ipv4,
                TlvType::Ipv6 => FirstHeader::Ipv6,
            };
            self.read_packet(tlv.data, first, report);
            break;
        }
        Ok(())
    }
}

/// Reads the main part of RepType 1.
#[inline]
fn read_main<'a>(
    header: &IndividualHeader,
    offset: usize,
    reader: &mut Reader<'a>,
    report: &mut Report<'a>,
) -> Result<(), WireError> {
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
    if main.metadata_bits != 0 {
        let own = report.own.insert(Hop::default());
        main.decode_into(metadata.rest(), own, &mut report.drop_reason);
        own.node_id = report.node_id;
        report.ingress_timestamp = own.ingress_timestamp;
    }
    Ok(())
}

fn known32(value: u32) -> Option<Timestamp> {
    (value != u32::MAX).then_some(Timestamp {
        value: value.into(),
        width: TimestampWidth::Bits32,
    })
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
    /// Decodes the next report into `report`, whose former values are lost; `None` at the end.
    ///
    /// This is what the iterator does, without moving the report, which takes as long as decoding
    /// a part of it. On an error `report` has what was read before it.
    #[inline]
    pub fn next_into(&mut self, report: &mut Report<'a>) -> Option<Result<(), WireError>> {
        *report = Report::empty();
        match self.state {
            State::Start => Some(self.start(report)),
            State::Group(group, index) => Some(self.individual(group, index, report)),
            State::End => None,
        }
    }

    fn start(&mut self, report: &mut Report<'a>) -> Result<(), WireError> {
        self.state = State::End;
        match self.decoder.detect(self.reader.rest())? {
            ReportVersion::V0_5 => self.decoder.read_v0_5(&mut self.reader, report),
            ReportVersion::V1_0 => self.decoder.read_v1(&mut self.reader, report),
            ReportVersion::V2_0 => {
                let group = GroupHeader::read(&mut self.reader)?;
                self.individual(group, 0, report)
            }
        }
    }

    fn individual(&mut self, group: GroupHeader, index: u32, report: &mut Report<'a>) -> Result<(), WireError> {
        self.state = State::End;
        report.node_id = Some(group.node_id);
        report.hw_id = group.hw_id.get() as u8;
        report.sequence = Sequence {
            value: group.sequence.get(),
            bits: 22,
        };
        report.index = index;
        let offset = self.reader.offset();
        let header = IndividualHeader::read(&mut self.reader)?;
        report.flags = header.flags;
        let mut body = if header.report_length == TO_END {
            self.reader.take_up_to(usize::MAX)
        } else {
            self.reader
                .take(usize::from(header.report_length) * 4, "individual report")?
        };
        if !self.reader.is_empty() {
            self.state = State::Group(group, index + 1);
        }
        self.decoder.read_v2(&header, offset, &mut body, report)
    }
}

impl<'a> Iterator for Reports<'a, '_> {
    type Item = Result<Report<'a>, WireError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let mut report = Report::empty();
        let result = self.next_into(&mut report)?;
        Some(result.map(|()| report))
    }
}
