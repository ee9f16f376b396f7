//! Datagrams of several reports, malformed reports, and the order of hops.

mod common;

use common::{by_dscp, hex, ipv4, ipv6, node, tcp, time32, udp};
use weir_int::packet::IntHeader;
use weir_int::report::{Decoder, Report, ReportKind, Sequence};
use weir_int::wire::report::Flags;
use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart, Tlv, TlvType};
use weir_int::wire::{MdHeader, MxHeader, NextProtocol, encode};
use weir_int::{Hop, Reason, Uint, WireError};

const GROUP: GroupHeader = GroupHeader {
    hw_id: Uint::ZERO,
    sequence: Uint::ZERO,
    node_id: 9,
};

fn tracked() -> Flags {
    Flags {
        tracked_flow: true,
        ..Flags::default()
    }
}

fn main(metadata_bits: u16, hop: Hop, drop_reason: Option<u8>) -> Main<'static> {
    Main::Int {
        part: MainPart {
            metadata_bits,
            ..MainPart::default()
        },
        hop,
        drop_reason,
        domain: &[],
    }
}

fn report<'a>(main: Main<'a>, inner: &'a [u8]) -> IndividualReport<'a> {
    IndividualReport {
        flags: tracked(),
        main,
        inner_type: InnerType::Ipv4,
        inner,
    }
}

/// A packet with INT of nodes, the newest first.
fn packet(newest_first: &[u32]) -> Vec<u8> {
    let header = MdHeader {
        instructions: 0x8000,
        ..MdHeader::default()
    };
    let hops: Vec<Hop> = newest_first.iter().map(|id| node(*id)).collect();
    let mut int = Vec::new();
    let next = NextProtocol::Unchanged { dscp: Uint::ZERO };
    encode::md(next, &header, &hops, &mut int).expect("it fits");
    ipv4(0x17, 17, &udp(4000, 53, &int))
}

fn decoder() -> Decoder {
    Decoder {
        detection: by_dscp(),
        ..Decoder::default()
    }
}

fn nodes(report: &Report<'_>) -> Vec<u32> {
    report.hops().iter().filter_map(|h| h.node_id).collect()
}

fn decode<'a>(decoder: &Decoder, bytes: &'a [u8]) -> Vec<Result<Report<'a>, WireError>> {
    decoder.decode(bytes).collect()
}

#[test]
fn coalesced_reports_are_numbered_and_share_the_sequence_number() {
    let (first, second) = (packet(&[2, 1]), packet(&[3]));
    let own = main(
        0x2000,
        Hop {
            latency: Some(5),
            ..Hop::default()
        },
        None,
    );
    let reports = [report(own, &first), report(Main::InnerOnly, &second)];
    let bytes = v2::datagram(GROUP, &reports).unwrap();
    let decoder = decoder();
    let decoded: Vec<Report<'_>> = decoder.decode(&bytes).collect::<Result<_, _>>().unwrap();
    assert_eq!(decoded.iter().map(|r| r.index).collect::<Vec<_>>(), [0, 1]);
    // Source to sink; the reporting node's own metadata are the last hop.
    assert_eq!((nodes(&decoded[0]), nodes(&decoded[1])), (vec![1, 2, 9], vec![3]));
    assert_eq!(decoded[1].kind, ReportKind::InnerOnly);
    assert_eq!(decoded[0].hops().get(2).unwrap().latency, Some(5));
}

#[test]
fn a_sink_that_is_in_stack_and_report_is_one_hop() {
    let inner = packet(&[9, 1]);
    let own = main(
        0x2000,
        Hop {
            latency: Some(5),
            ..Hop::default()
        },
        None,
    );
    let bytes = v2::datagram(GROUP, &[report(own, &inner)]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(nodes(&report), [1, 9]);
    assert_eq!(report.hops().get(1).unwrap().latency, Some(5));
    let reversed: Vec<Hop> = report.hops().iter().rev().collect();
    assert_eq!((reversed.len(), reversed[0].node_id), (2, Some(9)));
}

#[test]
fn a_drop_report_has_reason_and_queue() {
    let inner = ipv4(0, 6, &tcp(1, 2, &[]));
    let hop = Hop {
        ingress_port: Some(1),
        egress_port: None,
        queue_id: Some(6),
        ..Hop::default()
    };
    let mut dropped = report(main(0x4001, hop, Some(29)), &inner);
    dropped.flags = Flags {
        dropped: true,
        ..Flags::default()
    };
    let bytes = v2::datagram(GROUP, &[dropped]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert!(report.flags.dropped);
    assert_eq!((report.drop_reason, report.own.unwrap().queue_id), (Some(29), Some(6)));
    assert_eq!(nodes(&report), [9]);
}

#[test]
fn without_a_tracked_flow_int_is_not_searched() {
    let inner = packet(&[2, 1]);
    let mut untracked = report(main(0, Hop::default(), None), &inner);
    untracked.flags = Flags::default();
    let bytes = v2::datagram(GROUP, &[untracked]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert!(report.int().is_none() && report.hops().is_empty());
    assert_eq!(report.flow().unwrap().destination_port, 53);
}

#[test]
fn decoding_continues_behind_a_malformed_report() {
    let inner = packet(&[1]);
    let reports = [
        report(main(0x2000, Hop::default(), None), &inner),
        report(Main::InnerOnly, &inner),
    ];
    let bytes = v2::datagram(GROUP, &reports).unwrap();
    let reason = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        let decoder = decoder();
        let decoded = decode(&decoder, &bytes);
        assert_eq!(decoded.len(), 2);
        assert_eq!(nodes(decoded[1].as_ref().unwrap()), [1]);
        let error = decoded[0].as_ref().unwrap_err();
        (error.reason, error.offset)
    };
    assert_eq!(reason(8, 0x74), (Reason::ReportType, 8));
    assert_eq!(reason(8, 0x17), (Reason::InnerType, 8));
    assert_eq!(reason(10, 0), (Reason::MetadataLength, 10));
}

#[test]
fn a_length_beyond_the_datagram_ends_decoding() {
    let inner = packet(&[1]);
    let mut bytes = v2::datagram(GROUP, &[report(Main::InnerOnly, &inner)]).unwrap();
    bytes[9] += 1;
    let decoder = decoder();
    let decoded = decode(&decoder, &bytes);
    let [Err(error)] = &decoded[..] else {
        panic!("{decoded:?}")
    };
    assert_eq!(
        (error.reason, error.field, error.offset),
        (Reason::Truncated, "individual report", 12)
    );
}

#[test]
fn length_0xff_extends_to_the_end() {
    let inner = [packet(&[1]), vec![0; 1501]].concat();
    let bytes = v2::datagram(GROUP, &[report(Main::InnerOnly, &inner)]).unwrap();
    assert_eq!(bytes[9], v2::TO_END);
    let decoder = decoder();
    let decoded = decode(&decoder, &bytes);
    assert_eq!(decoded.len(), 1);
    assert_eq!(decoded[0].as_ref().unwrap().captured as usize, inner.len());
    let not_last = [report(Main::InnerOnly, &inner), report(Main::InnerOnly, &[])];
    assert!(v2::datagram(GROUP, &not_last).is_err());
}

#[test]
fn the_packet_of_a_report_may_be_in_a_tlv() {
    let mut inner = Vec::new();
    Tlv::write(TlvType::Domain, 7, b"extension", &mut inner).unwrap();
    Tlv::write(TlvType::Ipv4, 0, &packet(&[1]), &mut inner).unwrap();
    let mut with_tlvs = report(Main::InnerOnly, &inner);
    with_tlvs.inner_type = InnerType::Tlv;
    let mut bytes = v2::datagram(GROUP, &[with_tlvs]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(
        (nodes(&report), report.captured as usize),
        (vec![1], packet(&[1]).len())
    );
    bytes[12] = 0x90;
    let error = decoder.decode(&bytes).next().unwrap().unwrap_err();
    assert_eq!((error.reason, error.offset, error.found), (Reason::TlvType, 12, 9));
}

#[test]
fn packets_in_tlvs_may_begin_with_any_of_three_headers() {
    let inner = udp(4000, 53, b"");
    let v6 = ipv6(0, 17, &inner);
    let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd][..], &v6].concat();
    let v4 = ipv4(0, 17, &inner);
    for (code, kind, packet) in [
        (1, TlvType::Ethernet, &frame),
        (2, TlvType::Ipv4, &v4),
        (3, TlvType::Ipv6, &v6),
    ] {
        let mut inner = Vec::new();
        Tlv::write(kind, 0, packet, &mut inner).unwrap();
        let mut with_tlv = report(Main::InnerOnly, &inner);
        with_tlv.inner_type = InnerType::Tlv;
        let bytes = v2::datagram(GROUP, &[with_tlv]).unwrap();
        assert_eq!(bytes[12] >> 4, code);
        let decoder = decoder();
        let report = decoder.decode(&bytes).next().unwrap().unwrap();
        assert_eq!(report.flow().unwrap().destination_port, 53);
    }
}

#[test]
fn reports_of_ioam_have_neither_flow_nor_hops() {
    let bytes = hex("2000000000000009 24010000 45000000");
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!((report.kind, report.flow()), (ReportKind::Ioam, None));
}

#[test]
fn datagrams_that_are_no_reports_give_one_error() {
    let reason = |bytes: &[u8]| {
        let decoder = decoder();
        let decoded = decode(&decoder, bytes);
        assert_eq!(decoded.len(), 1);
        decoded[0].as_ref().unwrap_err().reason
    };
    assert_eq!(reason(&[]), Reason::Truncated);
    assert_eq!(reason(&[0x30; 40]), Reason::ReportVersion);
    assert_eq!(reason(&[0x20, 0, 0, 0, 0, 0, 0, 9]), Reason::Truncated);
}

#[test]
fn packets_may_begin_with_any_of_three_headers() {
    let inner = udp(4000, 53, b"");
    let v6 = ipv6(0, 17, &inner);
    let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd][..], &v6].concat();
    let v4 = ipv4(0, 17, &inner);
    let kinds = [
        (
            InnerType::Ethernet,
            3,
            &frame,
            "udp [2001:db8::1]:4000 -> [2001:db8::2]:53",
        ),
        (InnerType::Ipv4, 4, &v4, "udp 10.0.0.1:4000 -> 10.0.0.2:53"),
        (InnerType::Ipv6, 5, &v6, "udp [2001:db8::1]:4000 -> [2001:db8::2]:53"),
    ];
    for (inner_type, code, packet, flow) in kinds {
        let mut of_kind = report(Main::InnerOnly, packet);
        of_kind.inner_type = inner_type;
        let bytes = v2::datagram(GROUP, &[of_kind]).unwrap();
        assert_eq!(bytes[8], code);
        let decoder = decoder();
        let report = decoder.decode(&bytes).next().unwrap().unwrap();
        assert_eq!(report.flow().unwrap().to_string(), flow);
    }
}

#[test]
fn report_1_0_has_six_optional_values() {
    let bytes = hex("1a3f8001 00000009 00000001 00000002 \
         00030004 00000005 06000007 00000008 09140000 0000000a");
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    let expected = Hop {
        ingress_port: Some(3),
        egress_port: Some(4),
        latency: Some(5),
        queue_id: Some(6),
        queue_occupancy: Some(7),
        ingress_timestamp: time32(2),
        egress_timestamp: time32(8),
        tx_utilisation: Some(10),
        ..node(9)
    };
    assert_eq!((report.own, report.drop_reason), (Some(expected), Some(20)));
    assert_eq!(report.egress_timestamp(), time32(8));
    assert_eq!(report.hw_id, 1);
}

#[test]
fn reserved_metadata_are_skipped() {
    // RepMdBits: reserved bits 0, 9 and 14, level 1 ports, and the drop word.
    let bytes = hex("2000000000000009 10070540 c043000000000000 \
         ffffffff 00010002 ffffffff ffffffff 06140000");
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    let own = report.own.unwrap();
    assert_eq!(
        (own.ingress_port, own.egress_port, own.queue_id),
        (Some(1), Some(2), Some(6))
    );
    assert_eq!(report.drop_reason, Some(20));
}

#[test]
fn extension_data_of_a_domain_are_no_packet() {
    let mut extension = report(Main::InnerOnly, b"data");
    extension.inner_type = InnerType::Domain;
    let bytes = v2::datagram(GROUP, &[extension]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!((report.domain_extension, report.flow()), (&b"data"[..], None));
}

#[test]
fn an_mx_node_reports_itself_only() {
    let header = MxHeader {
        instructions: 0xa000,
        ..MxHeader::default()
    };
    let mut int = Vec::new();
    let next = NextProtocol::Unchanged { dscp: Uint::ZERO };
    encode::mx(next, &header, &[], &mut int).unwrap();
    let inner = ipv4(0x17, 17, &udp(4000, 53, &int));
    let hop = Hop {
        latency: Some(5),
        ..Hop::default()
    };
    let bytes = v2::datagram(GROUP, &[report(main(0x2000, hop, None), &inner)]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(report.int(), Some(&IntHeader::Mx(header)));
    assert_eq!(nodes(&report), [9]);
}

#[test]
fn intermediate_reports_are_marked() {
    let inner = packet(&[2, 1]);
    let mut intermediate = report(Main::InnerOnly, &inner);
    intermediate.flags.intermediate = true;
    let bytes = v2::datagram(GROUP, &[intermediate]).unwrap();
    assert_eq!(bytes[11], 0x30);
    let decoder = decoder();
    assert!(decoder.decode(&bytes).next().unwrap().unwrap().flags.intermediate);
}

#[test]
fn hops_that_truncation_removed_are_counted() {
    let inner = packet(&[3, 2, 1]);
    let bytes = v2::datagram(GROUP, &[report(Main::InnerOnly, &inner[..inner.len() - 4])]).unwrap();
    let decoder = decoder();
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!((nodes(&report), report.hops().missing()), (vec![2, 3], 1));
}

#[test]
fn sequence_numbers_wrap_at_their_width() {
    let sequence = Sequence { value: 1, bits: 22 };
    assert_eq!(sequence.since(0x3f_ffff), 2);
    let sequence = Sequence { value: 1, bits: 32 };
    assert_eq!(sequence.since(u32::MAX), 2);
}
