//! Telemetry reports and packets with INT: datagrams of all versions made bad.

use weir_int::packet::{Detection, DscpMatch, PacketView, VersionZero};
use weir_int::report::{Decoder, Report, ReportVersion, VersionChoice};
use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart, Tlv, TlvType};
use weir_int::wire::report::{Flags, v0_5, v1};
use weir_int::wire::{MdHeader, MxHeader, NextProtocol, Tail, V0Header, V0Layout, V1Header, encode};
use weir_int::{Hop, Reader, Timestamp, TimestampWidth, Uint};

/// The UDP port behind which is INT.
const INT_PORT: u16 = 5001;
/// The UDP port behind which is the lab format.
const LAB_PORT: u16 = 5000;

/// Settings that together take every path of the decoder.
fn detections() -> [Detection; 3] {
    let common = Detection {
        udp_ports: vec![INT_PORT],
        lab_ports: vec![LAB_PORT],
        dscp: Some(DscpMatch::exactly(Uint::truncate(0x17))),
        ..Detection::default()
    };
    let lenient = Detection {
        version_zero: VersionZero::V1,
        before_tcp_options: true,
        v0_low_byte: true,
        probe_marker: Some(0),
        ..common.clone()
    };
    let everything = Detection {
        dscp: Some(DscpMatch {
            value: Uint::ZERO,
            mask: Uint::ZERO,
        }),
        version_zero: VersionZero::V0(V0Layout::V04),
        ..common.clone()
    };
    [common, lenient, everything]
}

/// The bytes as a datagram of reports, as a packet, and as each header.
pub(crate) fn run(data: &[u8]) {
    use ReportVersion::{V0_5, V1_0, V2_0};
    for detection in detections() {
        for view in [
            PacketView::ethernet(data, &detection),
            PacketView::ipv4(data, &detection),
            PacketView::ipv6(data, &detection),
        ] {
            check_view(&view, data.len());
        }
        let versions = [V0_5, V1_0, V2_0].map(VersionChoice::Fixed);
        for version in [VersionChoice::Detect].into_iter().chain(versions) {
            let decoder = Decoder {
                version,
                detection: detection.clone(),
            };
            check_datagram(&decoder, data);
        }
    }
    check_headers(data);
}

fn check_view(view: &PacketView<'_>, length: usize) {
    assert!(view.payload.len() <= length, "more payload than bytes");
    if let Some(fault) = view.fault {
        assert!(fault.offset as usize <= length, "{fault}: behind the end");
    }
    let Some(int) = view.int else { return };
    assert!(
        int.stack.len() <= int.stack.announced(),
        "more hops than the headers announce"
    );
    let mut bytes = 0;
    for hop in int.stack.newest_first() {
        bytes += hop.bytes().len();
        assert!(hop.domain_metadata().len() <= hop.bytes().len());
        let _ = (hop.hop(), hop.checksum_complement());
    }
    assert!(bytes <= length, "more bytes of hops than of the packet");
}

fn check_datagram(decoder: &Decoder, data: &[u8]) {
    let mut count = 0;
    let mut reports = decoder.decode(data);
    let mut again = Report::empty();
    for result in decoder.decode(data) {
        count += 1;
        assert!(count <= 1 + data.len() / 4, "more reports than the datagram can hold");
        let in_place = reports.next_into(&mut again).expect("as many reports in place");
        match result {
            Ok(report) => {
                assert_eq!(in_place, Ok(()), "the same report in place");
                check_view(&report.packet, data.len());
                let hops: Vec<Hop> = report.hops().iter().collect();
                assert_eq!(hops.len(), report.hops().len());
                assert!(hops.into_iter().eq(again.hops().iter()), "the same hops in place");
            }
            Err(error) => {
                assert_eq!(in_place, Err(error), "the same error in place");
                assert!(error.offset as usize <= data.len(), "{error}: behind the end");
            }
        }
    }
    assert!(count > 0, "a datagram without result");
    assert!(reports.next_into(&mut again).is_none());
}

/// Headers that are read are written back as they were, except for reserved bits: the second
/// reading gives the same.
fn check_headers(data: &[u8]) {
    if let Ok(header) = MdHeader::read(&mut Reader::new(data)) {
        assert_eq!(MdHeader::read(&mut Reader::new(&header.to_bytes())), Ok(header));
    }
    if let Ok(header) = V1Header::read(&mut Reader::new(data)) {
        assert_eq!(V1Header::read(&mut Reader::new(&header.to_bytes())), Ok(header));
    }
    if let Ok(header) = v1::Header::read(&mut Reader::new(data)) {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        assert_eq!(v1::Header::read(&mut Reader::new(&bytes)), Ok(header));
    }
    if let Ok(header) = v0_5::FixedHeader::read(&mut Reader::new(data)) {
        assert_eq!(
            v0_5::FixedHeader::read(&mut Reader::new(&header.to_bytes())),
            Ok(header)
        );
    }
}

/// Valid datagrams and packets of all versions.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let packets: Vec<Vec<u8>> = payloads()
        .into_iter()
        .map(|(port, dscp, payload)| ipv4(dscp, &udp(port, &payload)))
        .collect();
    let frames: Vec<Vec<u8>> = packets.iter().map(|packet| ethernet(packet)).collect();
    let mut seeds: Vec<Vec<u8>> = packets.chunks(2).map(group).collect();
    for frame in &frames {
        seeds.push(old_report(frame));
        seeds.push(report_1_0(frame));
    }
    seeds.extend(frames);
    seeds
}

/// UDP destination port, DSCP value and UDP payload of packets with INT of each kind.
fn payloads() -> Vec<(u16, u8, Vec<u8>)> {
    let port = NextProtocol::DestinationPort { port: 53 };
    let dscp = NextProtocol::Unchanged { dscp: Uint::ZERO };
    let inserted = NextProtocol::Inserted { protocol: 17 };
    let md = MdHeader {
        remaining_hops: 3,
        instructions: 0xffc1,
        ..MdHeader::default()
    };
    let v1 = V1Header {
        instructions: 0xff01,
        ..V1Header::default()
    };
    let v0 = V0Header {
        instructions: 0xff00,
        ..V0Header::default()
    };
    let (narrow, wide) = (hops(TimestampWidth::Bits32), hops(TimestampWidth::Bits64));
    let with = |write: &dyn Fn(&mut Vec<u8>) -> Result<(), weir_int::TooLong>| {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("three hops fit");
        bytes.extend(udp(53, b"payload"));
        bytes
    };
    vec![
        (INT_PORT, 0, with(&|out| encode::md(port, &md, &wide, out))),
        (INT_PORT, 0, with(&|out| encode::md(inserted, &md, &wide, out))),
        (53, 0x17, with(&|out| encode::md(dscp, &md, &wide, out))),
        (
            53,
            0x17,
            with(&|out| encode::mx(dscp, &MxHeader::default(), b"source", out)),
        ),
        (53, 0x17, with(&|out| encode::v1(Uint::ZERO, &v1, &narrow, out))),
        (
            53,
            0x17,
            with(&|out| encode::v0(&v0, V0Layout::V05, &narrow, Tail::default(), out)),
        ),
        (
            LAB_PORT,
            0,
            with(&|out| encode::lab(53, 3, &hops(TimestampWidth::Bits48), out)),
        ),
    ]
}

fn hops(width: TimestampWidth) -> [Hop; 3] {
    [3, 2, 1].map(|id| Hop {
        node_id: Some(id),
        ingress_port: Some(1),
        egress_port: Some(2),
        latency: Some(1000),
        queue_id: Some(0),
        queue_occupancy: Some(7),
        ingress_timestamp: Some(Timestamp { value: 5000, width }),
        egress_timestamp: Some(Timestamp { value: 6000, width }),
        ..Hop::default()
    })
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let fields = [4000, port, length, 0].map(u16::to_be_bytes);
    [fields.as_flattened(), payload].concat()
}

fn ipv4(dscp: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let header = [
        0x45,
        dscp << 2,
        high,
        low,
        0,
        1,
        0x40,
        0,
        64,
        17,
        0,
        0,
        10,
        0,
        0,
        1,
        10,
        0,
        0,
        2,
    ];
    [&header, payload].concat()
}

fn ethernet(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 10, 8, 0], packet].concat()
}

const TRACKED: Flags = Flags {
    dropped: true,
    congested_queue: false,
    tracked_flow: true,
    intermediate: false,
};

/// A datagram of report 2.0: packets with and without metadata, and one in a TLV.
fn group(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut tlvs = Vec::new();
    for packet in packets {
        Tlv::write(TlvType::Ipv4, 0, packet, &mut tlvs).expect("a packet fits");
    }
    let report = |main, inner_type, inner| IndividualReport {
        flags: TRACKED,
        main,
        inner_type,
        inner,
    };
    let int = Main::Int {
        part: MainPart {
            metadata_bits: 0x7f81,
            domain_bits: 1,
            ..MainPart::default()
        },
        hop: hops(TimestampWidth::Bits64)[0],
        drop_reason: Some(3),
        domain: b"domain",
    };
    let mut reports = vec![report(Main::InnerOnly, InnerType::Tlv, &tlvs[..])];
    for packet in packets {
        reports.push(report(int, InnerType::Ipv4, packet));
    }
    let group = GroupHeader {
        hw_id: Uint::ZERO,
        sequence: Uint::truncate(1),
        node_id: 9,
    };
    v2::datagram(group, &reports).expect("packets fit")
}

fn old_report(frame: &[u8]) -> Vec<u8> {
    let header = v0_5::FixedHeader {
        version: Uint::ZERO,
        next: v0_5::NextProtocol::Local,
        flags: TRACKED,
        hw_id: Uint::ZERO,
        sequence: 1,
        ingress_timestamp: 5000,
    };
    let mut bytes = header.to_bytes().to_vec();
    let [hop, ..] = hops(TimestampWidth::Bits32);
    v0_5::LocalHeader { hop }.write(&mut bytes);
    bytes.extend(frame);
    bytes
}

fn report_1_0(frame: &[u8]) -> Vec<u8> {
    let [hop, ..] = hops(TimestampWidth::Bits32);
    let header = v1::Header {
        next: v1::NextProtocol::Ethernet,
        flags: TRACKED,
        hw_id: Uint::ZERO,
        node_id: 9,
        sequence: 1,
        ingress_timestamp: 5000,
        optional: v1::Optional {
            bits: Uint::MAX,
            hop,
            drop_reason: Some(3),
        },
    };
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.extend(frame);
    bytes
}

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_are_valid() {
        use weir_int::report::Decoder;
        for detection in super::detections().into_iter().take(1) {
            let decoder = Decoder {
                detection,
                ..Decoder::default()
            };
            let seeds = super::seeds();
            let reports = seeds
                .iter()
                .filter(|seed| seed[0] >> 4 != 0 || seed[0] == 2 && seed[1] == 0xa0);
            let with_hops = reports.flat_map(|seed| decoder.decode(seed)).filter(|report| {
                let report = report.as_ref().expect("a valid report");
                report.packet.fault.is_none() && report.hops().len() >= 3
            });
            assert!(with_hops.count() >= 20);
        }
    }
}
