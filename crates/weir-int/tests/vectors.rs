//! Bytes computed by hand from the specifications.

mod common;

use common::{by_dscp, hex, ipv4, node, time32, time64, udp};
use weir_int::packet::{Detection, IntHeader, PacketView, VersionZero};
use weir_int::report::{Decoder, ReportVersion, VersionChoice};
use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart};
use weir_int::wire::report::{Flags, v0_5, v1};
use weir_int::wire::{MdHeader, Tail, V0Header, V0Layout, V1Header, V1Profile, encode};
use weir_int::{Hop, Reader, Uint};

/// INT 0.5: instructions 0x9000, at most 16 hops, 2 in the stack, original port 22 of TCP.
const V0: &str = "010008000002100290000000 000000020500012c 0000000100000007 06001600";

/// INT 1.0: instructions 0xd200, HopML 5, 6 hops remain, original DSCP 10.
const V1: &str = "01000d2810000506d2000000 0000000200010003010002580000001100000012 \
                  000000010007000800ffffffffffffffffffffff";

/// INT 1.0 with timestamps of 64 bits: instructions 0xcc00, HopML 6, reserved field 17.
const V1_WIDE: &str = "0100090010000603cc000011 0000000100010002 17979cfe362a03e8 17979cfe362aa7f8";

fn v0_hops() -> [Hop; 2] {
    [
        Hop {
            queue_id: Some(5),
            queue_occupancy: Some(300),
            ..node(2)
        },
        Hop {
            queue_id: Some(0),
            queue_occupancy: Some(7),
            ..node(1)
        },
    ]
}

fn v1_hops() -> [Hop; 2] {
    [
        Hop {
            ingress_port: Some(1),
            egress_port: Some(3),
            queue_id: Some(1),
            queue_occupancy: Some(600),
            l2_ingress_port: Some(17),
            l2_egress_port: Some(18),
            ..node(2)
        },
        Hop {
            ingress_port: Some(7),
            egress_port: Some(8),
            queue_id: Some(0),
            ..node(1)
        },
    ]
}

fn view<'a>(packet: &'a [u8], detection: &Detection) -> PacketView<'a> {
    let view = PacketView::ipv4(packet, detection);
    assert_eq!(view.fault, None);
    view
}

fn hops(view: &PacketView<'_>) -> Vec<Hop> {
    let stack = view.int.expect("INT").stack;
    stack.newest_first().map(|hop| hop.hop()).collect()
}

#[test]
fn int_0_5_is_read_and_written() {
    let packet = ipv4(0x17, 17, &udp(4000, 22, &hex(V0)));
    let view = view(&packet, &by_dscp());
    assert_eq!(hops(&view), v0_hops());
    let Some(IntHeader::V0(header)) = view.int.map(|i| i.header) else {
        panic!("no INT 0.x");
    };
    assert_eq!((header.max_hops, header.total_hops), (16, 2));
    let tail = Tail {
        protocol: 6,
        destination_port: 22,
        dscp: 0,
    };
    let mut bytes = Vec::new();
    let start = V0Header {
        max_hops: 16,
        instructions: 0x9000,
        ..V0Header::default()
    };
    encode::v0(&start, V0Layout::V05, &v0_hops(), tail, &mut bytes).unwrap();
    assert_eq!(bytes, hex(V0));
}

#[test]
fn the_port_in_the_tail_of_int_0_5_is_the_flows_if_the_port_signals_int() {
    let packet = ipv4(0, 17, &udp(4000, 5001, &hex(V0)));
    let view = view(&packet, &common::by_port());
    assert_eq!(view.flow.unwrap().destination_port, 22);
}

#[test]
fn int_1_0_is_read_and_written() {
    let packet = ipv4(0x17, 17, &udp(4000, 53, &hex(V1)));
    let view = view(&packet, &by_dscp());
    assert_eq!(hops(&view), v1_hops());
    assert_eq!(view.int.unwrap().header.remaining_hops(), Some(6));
    let mut bytes = Vec::new();
    let header = V1Header {
        remaining_hops: 6,
        instructions: 0xd200,
        ..V1Header::default()
    };
    encode::v1(Uint::truncate(10), &header, &v1_hops(), &mut bytes).unwrap();
    assert_eq!(bytes, hex(V1));
}

#[test]
fn int_1_0_with_wide_timestamps_is_detected_by_its_hop_length() {
    let packet = ipv4(0x17, 17, &udp(4000, 53, &hex(V1_WIDE)));
    let at = 1_700_000_000_000_001_000;
    let expected = Hop {
        ingress_port: Some(1),
        egress_port: Some(2),
        ingress_timestamp: time64(at),
        egress_timestamp: time64(at + 42_000),
        ..node(1)
    };
    assert_eq!(hops(&view(&packet, &by_dscp())), [expected]);
    let strict = Detection {
        v1_profile: V1Profile::SPECIFIED,
        ..by_dscp()
    };
    let fault = PacketView::ipv4(&packet, &strict).fault.unwrap();
    assert_eq!((fault.field, fault.offset, fault.found), ("INT 1.0 HopML", 34, 6));
}

#[test]
fn version_0_is_int_1_0_only_if_the_detection_says_so() {
    let mut int = hex(V1);
    int[4] = 0;
    let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
    let detection = Detection {
        version_zero: VersionZero::V1,
        ..by_dscp()
    };
    assert_eq!(hops(&view(&packet, &detection)), v1_hops());
    assert!(PacketView::ipv4(&packet, &by_dscp()).fault.is_some());
}

#[test]
fn report_0_5_with_a_local_header() {
    let text = "026000020000002a00bc614e 00000001008c00900300100000bc65f6";
    let mut bytes = hex(text);
    let local = v0_5::LocalHeader {
        hop: Hop {
            ingress_port: Some(140),
            egress_port: Some(144),
            queue_id: Some(3),
            queue_occupancy: Some(4096),
            egress_timestamp: time32(12_345_678 + 1192),
            ..node(1)
        },
    };
    let fixed = v0_5::FixedHeader::read(&mut Reader::new(&bytes)).unwrap();
    let mut encoded = fixed.to_bytes().to_vec();
    local.write(&mut encoded);
    assert_eq!(encoded, bytes);

    bytes.extend([2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    bytes.extend(ipv4(0, 17, &udp(4000, 53, &[])));
    let decoder = Decoder::default();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(report.version, ReportVersion::V0_5);
    assert_eq!((report.node_id, report.hw_id, report.sequence.value), (Some(1), 2, 42));
    assert_eq!((report.domain_id, report.index), (0, 0));
    assert!(report.flags.congested_queue && report.flags.tracked_flow && !report.flags.dropped);
    let hops: Vec<Hop> = report.hops().iter().collect();
    let expected = Hop {
        ingress_timestamp: time32(12_345_678),
        ..local.hop
    };
    assert_eq!(hops, [expected]);
    assert_eq!(report.flow().unwrap().to_string(), "udp 10.0.0.1:4000 -> 10.0.0.2:53");
}

#[test]
fn report_0_5_of_a_drop() {
    let mut bytes = hex("018000010000002b00bc614e 00000001008c000000500000");
    let drop = v0_5::DropHeader::read(&mut Reader::new(&bytes[12..])).unwrap();
    let mut encoded = bytes[..12].to_vec();
    drop.write(&mut encoded);
    assert_eq!(encoded, bytes);
    // A frame that ends within its Ethernet header: the report is valid, its packet is not.
    bytes.extend([0; 5]);
    let decoder = Decoder::default();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!((report.drop_reason, report.hw_id), (Some(80), 1));
    assert!(report.flags.dropped);
    assert_eq!(report.packet.fault.unwrap().offset, 24);
    assert_eq!(report.hops().get(0).unwrap().ingress_port, Some(140));
}

#[test]
fn report_1_0_with_optional_metadata() {
    let mut bytes = hex("162c0043000000090000002c3b9aca00 000005dc03001000");
    let header = v1::Header::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(header.next, v1::NextProtocol::Ipv4);
    let mut encoded = Vec::new();
    header.write(&mut encoded);
    assert_eq!(encoded, bytes);
    bytes.extend(ipv4(0x17, 17, &udp(4000, 53, &hex(V1))));
    let decoder = Decoder {
        detection: by_dscp(),
        ..Decoder::default()
    };
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(report.version, ReportVersion::V1_0);
    assert_eq!((report.node_id, report.hw_id, report.sequence.value), (Some(9), 3, 44));
    let [newest, oldest] = v1_hops();
    let own = Hop {
        latency: Some(1500),
        queue_id: Some(3),
        queue_occupancy: Some(4096),
        ingress_timestamp: time32(1_000_000_000),
        ..node(9)
    };
    let hops: Vec<Hop> = report.hops().iter().collect();
    assert_eq!(hops, [oldest, newest, own]);
}

#[test]
fn report_2_0_has_the_lengths_of_the_check_vector() {
    let packet = ipv4(0, 6, &common::tcp(4000, 80, &[])[..20]);
    let hop = Hop {
        ingress_port: Some(1),
        egress_port: Some(2),
        queue_id: Some(3),
        queue_occupancy: Some(4),
        ..Hop::default()
    };
    let part = MainPart {
        metadata_bits: 0x5000,
        ..MainPart::default()
    };
    let report = IndividualReport {
        flags: Flags {
            congested_queue: true,
            ..Flags::default()
        },
        main: Main::Int {
            part,
            hop,
            drop_reason: None,
            domain: &[],
        },
        inner_type: InnerType::Ipv4,
        inner: &packet,
    };
    let group = GroupHeader {
        hw_id: Uint::truncate(5),
        sequence: Uint::truncate(0x2a_bcde),
        node_id: 0x51,
    };
    let bytes = v2::datagram(group, &[report]).unwrap();
    let head = "216abcde 00000051 140e0240 5000000000000000 00010002 03000004";
    assert_eq!(bytes[..28], hex(head));
    assert_eq!(bytes.len(), 8 + 4 + 14 * 4);
}

#[test]
fn reserved_bits_are_ignored() {
    let bytes = hex("001fffc5 00000001 00000002");
    let old = v0_5::FixedHeader::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!((old.hw_id.get(), old.flags), (5, Flags::default()));
    let bytes = hex("14007e05 00000001 00000002 00000003");
    let one = v1::Header::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(
        (one.hw_id.get(), one.optional.bits, one.flags),
        (5, Uint::ZERO, Flags::default())
    );
    let bytes = hex("14030f0f");
    let individual = v2::IndividualHeader::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!(individual.flags, Flags::default());
    let bytes = hex("21ffe705 80000000 00000000");
    let md = MdHeader::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!((md.hop_words.get(), md.remaining_hops, md.mtu_exceeded), (7, 5, false));
    let bytes = hex("107fe507 80000000");
    let v1 = V1Header::read(&mut Reader::new(&bytes)).unwrap();
    assert_eq!((v1.hop_words.get(), v1.remaining_hops, v1.mtu_exceeded), (5, 7, false));
}

#[test]
fn version_1_with_an_impossible_length_is_0_5_if_its_packet_has_a_flow() {
    let frame = [
        &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..],
        &ipv4(0, 17, &udp(4000, 53, &[])),
    ]
    .concat();
    let version = |bytes: &[u8], version| {
        let decoder = Decoder {
            version,
            ..Decoder::default()
        };
        decoder.decode(bytes).next().unwrap().unwrap().version
    };
    let old = [&hex("10000000 00000001 00000002")[..], &frame].concat();
    assert_eq!(version(&old, VersionChoice::Detect), ReportVersion::V0_5);
    let new = [&hex("11000000 00000001 00000002 00000003")[..], &frame].concat();
    assert_eq!(version(&new, VersionChoice::Detect), ReportVersion::V1_0);
    let fixed = VersionChoice::Fixed(ReportVersion::V1_0);
    assert_eq!(version(&old, fixed), ReportVersion::V1_0);
}
