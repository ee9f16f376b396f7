//! Telemetry report 2.0: a group header, and individual reports coalesced after it.

use super::Flags;
use crate::bits::Uint;
use crate::error::{Expected, Reason, TooLong, WireError};
use crate::hop::Hop;
use crate::read::Reader;
use crate::wire::metadata::{self, Format, Metadata};

/// The version on the wire.
pub const VERSION: u8 = 2;

/// The report length that stands for "to the end of the datagram".
pub const TO_END: u8 = 0xff;

/// The group header, 8 bytes (telemetry report 2.0, section "Telemetry Report Group Header").
///
/// Version 4 | hardware id 6 | sequence number 22 || node id 32, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GroupHeader {
    /// The part of the node that sent the reports.
    pub hw_id: Uint<6>,
    /// Counts datagrams of one node and `hw_id` to one destination.
    pub sequence: Uint<22>,
    /// The node that sent the reports.
    pub node_id: u32,
}

impl GroupHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 8;

    /// Reads a header.
    ///
    /// # Errors
    /// Fewer than 8 bytes, or another version.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let first = reader.u32("report group header")?;
        let version = first >> 28;
        if version != u32::from(VERSION) {
            let expected = Expected::Exactly(VERSION.into());
            let field = "report version";
            return Err(WireError::new(Reason::ReportVersion, field, offset, expected, version));
        }
        Ok(GroupHeader {
            hw_id: Uint::truncate(first >> 22),
            sequence: Uint::truncate(first),
            node_id: reader.u32("report node id")?,
        })
    }

    /// The header on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let first = u32::from(VERSION) << 28 | self.hw_id.get() << 22 | self.sequence.get();
        (u64::from(first) << 32 | u64::from(self.node_id)).to_be_bytes()
    }
}

/// The type of an individual report (RepType).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReportType {
    /// 0: inner contents only.
    InnerOnly,
    /// 1: INT: a [`MainPart`], metadata, inner contents.
    Int,
    /// 2: IOAM, whose main part is not specified.
    Ioam,
}

/// The type of a report's inner contents (InType).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InnerType {
    /// 0: none.
    None,
    /// 1: one or more [`Tlv`]s.
    Tlv,
    /// 2: domain-specific extension data.
    Domain,
    /// 3: a packet from its Ethernet header.
    Ethernet,
    /// 4: a packet from its IPv4 header.
    Ipv4,
    /// 5: a packet from its IPv6 header.
    Ipv6,
}

/// The header of an individual report, 4 bytes (telemetry report 2.0, section "Individual Report
/// Header").
///
/// RepType 4 | InType 4 | report length 8 | MD length 8 | D 1 | Q 1 | F 1 | I 1 | reserved 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IndividualHeader {
    /// RepType; the value on the wire if it is none of the known ones.
    pub report_type: Result<ReportType, u8>,
    /// InType; the value on the wire if it is none of the known ones.
    pub inner_type: Result<InnerType, u8>,
    /// Words of 4 bytes after this header, or [`TO_END`].
    pub report_length: u8,
    /// Words of 4 bytes of the optional metadata.
    pub metadata_length: u8,
    /// Why the report was sent.
    pub flags: Flags,
}

impl IndividualHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 4;

    /// Reads a header. Unknown types are kept, so that a reader can skip the report by its length.
    ///
    /// # Errors
    /// Fewer than 4 bytes.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let [types, report_length, metadata_length, flags] = *reader.array("individual report header")?;
        Ok(IndividualHeader {
            report_type: match types >> 4 {
                0 => Ok(ReportType::InnerOnly),
                1 => Ok(ReportType::Int),
                2 => Ok(ReportType::Ioam),
                other => Err(other),
            },
            inner_type: match types & 0xf {
                0 => Ok(InnerType::None),
                1 => Ok(InnerType::Tlv),
                2 => Ok(InnerType::Domain),
                3 => Ok(InnerType::Ethernet),
                4 => Ok(InnerType::Ipv4),
                5 => Ok(InnerType::Ipv6),
                other => Err(other),
            },
            report_length,
            metadata_length,
            flags: Flags {
                intermediate: flags & 0x10 != 0,
                ..Flags::from_dqf(u32::from(flags) >> 5)
            },
        })
    }

    /// The header on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let report_type = match self.report_type {
            Ok(ReportType::InnerOnly) => 0,
            Ok(ReportType::Int) => 1,
            Ok(ReportType::Ioam) => 2,
            Err(other) => other,
        };
        let inner_type = match self.inner_type {
            Ok(InnerType::None) => 0,
            Ok(InnerType::Tlv) => 1,
            Ok(InnerType::Domain) => 2,
            Ok(InnerType::Ethernet) => 3,
            Ok(InnerType::Ipv4) => 4,
            Ok(InnerType::Ipv6) => 5,
            Err(other) => other,
        };
        let flags = (self.flags.dqf() as u8) << 5 | u8::from(self.flags.intermediate) << 4;
        [
            report_type << 4 | inner_type & 0xf,
            self.report_length,
            self.metadata_length,
            flags,
        ]
    }
}

/// The fixed part of the main contents of RepType 1, 8 bytes (telemetry report 2.0, section
/// "Individual Report Main Contents for RepType 1").
///
/// RepMdBits 16 | domain id 16 || DSMdBits 16 | DSMdstatus 16, in network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MainPart {
    /// RepMdBits: which optional metadata follow. As the instruction bitmap of INT 2.x, except that
    /// bit 0 is reserved and bit 15 is queue id 8 | drop reason 8 | padding 16.
    pub metadata_bits: u16,
    /// The domain-specific id.
    pub domain_id: u16,
    /// DSMdBits: which domain-specific metadata follow.
    pub domain_bits: u16,
    /// DSMdstatus.
    pub domain_status: u16,
}

impl MainPart {
    /// Bytes of the fixed part.
    pub const BYTES: usize = 8;

    /// Reads the fixed part.
    ///
    /// # Errors
    /// Fewer than 8 bytes.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let word = u64::from_be_bytes(*reader.array("report main part")?);
        Ok(MainPart {
            metadata_bits: (word >> 48) as u16,
            domain_id: (word >> 32) as u16,
            domain_bits: (word >> 16) as u16,
            domain_status: word as u16,
        })
    }

    /// The fixed part on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let word = u64::from(self.metadata_bits) << 48
            | u64::from(self.domain_id) << 32
            | u64::from(self.domain_bits) << 16
            | u64::from(self.domain_status);
        word.to_be_bytes()
    }

    /// Words of 4 bytes of the baseline metadata.
    #[must_use]
    #[inline]
    pub fn baseline_words(self) -> u8 {
        metadata::words(Format::ReportV2, self.metadata_bits)
    }

    /// Decodes the baseline metadata that follow; the drop reason is beside the hop's values.
    #[must_use]
    pub fn decode(self, metadata: &[u8]) -> (Hop, Option<u8>) {
        let (mut hop, mut drop_reason) = (Hop::default(), None);
        self.decode_into(metadata, &mut hop, &mut drop_reason);
        (hop, drop_reason)
    }

    #[inline]
    pub(crate) fn decode_into(self, bytes: &[u8], hop: &mut Hop, drop_reason: &mut Option<u8>) {
        metadata::decode(Format::ReportV2, self.metadata_bits, bytes, hop, drop_reason);
    }

    /// Appends the fixed part and the baseline metadata. Values that are `None` are all ones.
    pub fn write(self, hop: &Hop, drop_reason: Option<u8>, out: &mut Vec<u8>) {
        out.extend(self.to_bytes());
        let metadata = Metadata { hop: *hop, drop_reason };
        metadata::encode(Format::ReportV2, self.metadata_bits, &metadata, out);
    }
}

/// The type of a TLV.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TlvType {
    /// 0: domain-specific extension data.
    Domain,
    /// 1: a packet from its Ethernet header.
    Ethernet,
    /// 2: a packet from its IPv4 header.
    Ipv4,
    /// 3: a packet from its IPv6 header.
    Ipv6,
}

/// A TLV of a report's inner contents: 4 bytes and data (telemetry report 2.0, section "Individual
/// Report Inner Contents for InType 1").
///
/// Type 4 | reserved 4 | length 8 (words of 4 bytes after this word) | data template 16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// The type; the value on the wire if it is none of the known ones.
    pub kind: Result<TlvType, u8>,
    /// The format of domain-specific data; 0 for packets.
    pub template: u16,
    /// The data and their offset.
    pub data: Reader<'a>,
}

impl<'a> Tlv<'a> {
    /// Reads a TLV.
    ///
    /// # Errors
    /// Fewer bytes than its length says.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, WireError> {
        let [kind, length, high, low] = *reader.array("TLV header")?;
        Ok(Tlv {
            kind: match kind >> 4 {
                0 => Ok(TlvType::Domain),
                1 => Ok(TlvType::Ethernet),
                2 => Ok(TlvType::Ipv4),
                3 => Ok(TlvType::Ipv6),
                other => Err(other),
            },
            template: u16::from_be_bytes([high, low]),
            data: reader.take(usize::from(length) * 4, "TLV data")?,
        })
    }

    /// Appends a TLV. Data are padded with zeros to whole words.
    ///
    /// # Errors
    /// More than 1020 bytes of data.
    pub fn write(kind: TlvType, template: u16, data: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
        let words = data.len().div_ceil(4);
        let length = u8::try_from(words).map_err(|_| TooLong {
            limit: 255 * 4,
            found: data.len(),
        })?;
        let code = match kind {
            TlvType::Domain => 0,
            TlvType::Ethernet => 1,
            TlvType::Ipv4 => 2,
            TlvType::Ipv6 => 3,
        };
        out.extend([code << 4, length]);
        out.extend(template.to_be_bytes());
        out.extend(data);
        out.resize(out.len() + words * 4 - data.len(), 0);
        Ok(())
    }
}

/// The main contents of an individual report to encode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Main<'a> {
    /// RepType 0.
    InnerOnly,
    /// RepType 1.
    Int {
        /// The fixed part.
        part: MainPart,
        /// The values of RepMdBits.
        hop: Hop,
        /// The drop reason of RepMdBits bit 15.
        drop_reason: Option<u8>,
        /// Domain-specific metadata; padded with zeros to whole words.
        domain: &'a [u8],
    },
}

/// An individual report to encode.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IndividualReport<'a> {
    /// Why it is sent.
    pub flags: Flags,
    /// The main contents.
    pub main: Main<'a>,
    /// The type of the inner contents.
    pub inner_type: InnerType,
    /// The inner contents.
    pub inner: &'a [u8],
}

impl IndividualReport<'_> {
    /// Appends the report. The last report of a datagram may have any length: one that is no whole
    /// number of words, or exceeds 254 of them, is encoded as "to the end". Others are padded with
    /// zeros to whole words.
    ///
    /// # Errors
    /// It is not the last one and exceeds 254 words, or its metadata exceed 255 words.
    pub fn write(&self, is_last: bool, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let start = out.len();
        out.extend([0; IndividualHeader::BYTES]);
        let (report_type, metadata_words) = self.write_main(out)?;
        out.extend(self.inner);
        let length = out.len() - start - IndividualHeader::BYTES;
        let words = length.div_ceil(4);
        let is_whole = length.is_multiple_of(4);
        let report_length = match u8::try_from(words) {
            Ok(words) if words != TO_END && (is_whole || !is_last) => {
                out.resize(start + IndividualHeader::BYTES + usize::from(words) * 4, 0);
                words
            }
            Ok(_) | Err(_) if is_last => TO_END,
            Ok(_) | Err(_) => {
                return Err(TooLong {
                    limit: 254 * 4,
                    found: length,
                });
            }
        };
        let header = IndividualHeader {
            report_type: Ok(report_type),
            inner_type: Ok(self.inner_type),
            report_length,
            metadata_length: metadata_words,
            flags: self.flags,
        };
        if let Some(place) = out.get_mut(start..start + IndividualHeader::BYTES) {
            place.copy_from_slice(&header.to_bytes());
        }
        Ok(())
    }

    fn write_main(&self, out: &mut Vec<u8>) -> Result<(ReportType, u8), TooLong> {
        match self.main {
            Main::InnerOnly => Ok((ReportType::InnerOnly, 0)),
            Main::Int {
                part,
                hop,
                drop_reason,
                domain,
            } => {
                part.write(&hop, drop_reason, out);
                let domain_words = domain.len().div_ceil(4);
                out.extend(domain);
                out.resize(out.len() + domain_words * 4 - domain.len(), 0);
                let words = usize::from(part.baseline_words()) + domain_words;
                let metadata_words = u8::try_from(words).map_err(|_| TooLong {
                    limit: 255 * 4,
                    found: words * 4,
                })?;
                Ok((ReportType::Int, metadata_words))
            }
        }
    }
}

/// Encodes a datagram of several reports.
///
/// # Errors
/// A report is too long for its place.
pub fn datagram(group: GroupHeader, reports: &[IndividualReport<'_>]) -> Result<Vec<u8>, TooLong> {
    let mut out = group.to_bytes().to_vec();
    for (index, report) in reports.iter().enumerate() {
        report.write(index + 1 == reports.len(), &mut out)?;
    }
    Ok(out)
}
