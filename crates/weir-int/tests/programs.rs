//! Packets and reports that `p4/programs/int_md` and `int_lab` send: bytes of an independent
//! encoder, from the expectations of their packet tests.

mod common;

use common::{by_dscp, by_lab_port, hex, node, time48, time64};
use weir_int::packet::{IntHeader, PacketView};
use weir_int::report::Decoder;
use weir_int::wire::{NextProtocol, encode};
use weir_int::{Hop, Reason, Uint};

/// What `int_md` sends for instructions 0xdc00: node id, ports, queue, timestamps.
fn md_hop(id: u32, ingress_port: u16, egress_port: u16, occupancy: u32, ingress: u64, egress: u64) -> Hop {
    Hop {
        ingress_port: Some(ingress_port),
        egress_port: Some(egress_port),
        queue_id: Some(0),
        queue_occupancy: Some(occupancy),
        ingress_timestamp: time64(ingress),
        egress_timestamp: time64(egress),
        ..node(id)
    }
}

/// The datagram of int_md-sink_restores_packet.stf, and its second one's sequence number.
const REPORT: &str = "2000000100000051 14220020 0000000000000000 \
    455c0092000140003f1121eb0a00010a0a00040a 0fa01389007e4a94 10180028 20000704dc00000000000000 \
    00000051000300040000000000000000000f424000000000000f4240 \
    0000001200010002000000030000000000004e2000000000000053fc \
    00000011000100020000000300000000000027100000000000002cec";

#[test]
fn a_sinks_report_has_all_hops_from_source_to_sink() {
    let bytes = hex(REPORT);
    let decoder = Decoder {
        detection: by_dscp(),
        ..Decoder::default()
    };
    let reports: Vec<_> = decoder.decode(&bytes).collect::<Result<_, _>>().unwrap();
    let [report] = &reports[..] else {
        panic!("{} reports", reports.len())
    };
    assert_eq!(
        (report.node_id, report.sequence.value, report.sequence.bits),
        (Some(0x51), 1, 22)
    );
    assert_eq!(
        report.flow().unwrap().to_string(),
        "udp 10.0.1.10:4000 -> 10.0.4.10:5001"
    );
    let hops: Vec<Hop> = report.hops().iter().collect();
    let expected = [
        md_hop(0x11, 1, 2, 3, 10_000, 11_500),
        md_hop(0x12, 1, 2, 3, 20_000, 21_500),
        md_hop(0x51, 3, 4, 0, 1_000_000, 1_000_000),
    ];
    assert_eq!(hops, expected);
    // The packet had 46 bytes of IPv4 before INT. The report has no payload.
    assert_eq!(report.packet.length_without_int(), 46);
    assert_eq!(report.captured, 20 + 8 + 4 + 12 + 3 * 28);
    assert_eq!(report.packet.fault, None);
}

#[test]
fn a_report_over_tcp_with_options_has_the_domain() {
    // int_md-sink_restores_tcp.stf, with IPv4 options; the domain of report_carries_domain.stf.
    let bytes = hex(
        "2000000100000051 14220020 0000beef00000000 465c0092000140003f068cf10a00010a0a00040a94040000 \
         9c4001bb000000010000000180182000599800000101080a0011223344556677 10110028 \
         20000704dc00beef00000000 00000051000300040000000000000000000000000000000000000000 \
         00000011000100020000000300000000000027100000000000002cec",
    );
    let decoder = Decoder {
        detection: by_dscp(),
        ..Decoder::default()
    };
    let report = decoder.decode(&bytes).next().unwrap().unwrap();
    assert_eq!(
        report.flow().unwrap().to_string(),
        "tcp 10.0.1.10:40000 -> 10.0.4.10:443"
    );
    assert_eq!(report.domain_id, 0xbeef);
    let hops: Vec<Hop> = report.hops().iter().collect();
    assert_eq!(
        hops,
        [md_hop(0x11, 1, 2, 3, 10_000, 11_500), md_hop(0x51, 3, 4, 0, 0, 0)]
    );
}

#[test]
fn a_transit_packet_is_encoded_as_the_program_does() {
    // int_md-transit_adds_metadata.stf: shim, header and stack after UDP.
    let expected = hex(
        "10110028 20000704dc00000000000000 00000051000200030000000000000000000f424000000000000f4240 \
         00000011000100020000000300000000000027100000000000002cec",
    );
    let header = weir_int::wire::MdHeader {
        remaining_hops: 4,
        instructions: 0xdc00,
        ..Default::default()
    };
    let hops = [
        md_hop(0x51, 2, 3, 0, 1_000_000, 1_000_000),
        md_hop(0x11, 1, 2, 3, 10_000, 11_500),
    ];
    let dscp = Uint::truncate(10);
    let mut bytes = Vec::new();
    encode::md(NextProtocol::Unchanged { dscp }, &header, &hops, &mut bytes).unwrap();
    assert_eq!(bytes, expected);
}

/// The frame of int_lab-measures_twice.stf after the device under test.
const LAB: &str = "020000000e02020000000b010800 4500007000074000401126600a0a00010a0a0002 0fa01388005c8633 \
    140d0009 200005064c00000000000000 000000001b580000000000001b58000300040000 \
    0000000013880000000000001388000100028000 \
    6d656173757265206d652c20736179732074686520776569722e2e2e";

fn lab_hops() -> [Hop; 2] {
    let hop = |at, ingress_port, egress_port| Hop {
        ingress_port: Some(ingress_port),
        egress_port: Some(egress_port),
        ingress_timestamp: time48(at),
        egress_timestamp: time48(at),
        ..Hop::default()
    };
    [hop(7000, 3, 4), hop(5000, 1, 2)]
}

#[test]
fn a_lab_packet_is_read_with_its_original_port() {
    let frame = hex(LAB);
    let view = PacketView::ethernet(&frame, &by_lab_port());
    assert_eq!(view.fault, None);
    assert_eq!(view.flow.unwrap().to_string(), "udp 10.10.0.1:4000 -> 10.10.0.2:9");
    let int = view.int.unwrap();
    assert!(matches!(int.header, IntHeader::Lab(header) if header.remaining_hops == 6));
    let hops: Vec<Hop> = int.stack.newest_first().map(|hop| hop.hop()).collect();
    assert_eq!(hops, lab_hops());
    assert_eq!(view.payload, b"measure me, says the weir...");
    assert_eq!(view.length_without_int(), 20 + 8 + 28);
}

#[test]
fn lab_packets_are_encoded_as_the_program_does() {
    let mut bytes = Vec::new();
    encode::lab(9, 6, &lab_hops(), &mut bytes).unwrap();
    assert_eq!(bytes, hex(LAB)[42..42 + 4 + 12 + 40]);
}

#[test]
fn a_lab_packet_without_bottom_of_stack_is_malformed() {
    let mut frame = hex(LAB);
    let bottom = 42 + 16 + 40 - 2;
    frame[bottom] = 0;
    let view = PacketView::ethernet(&frame, &by_lab_port());
    let fault = view.fault.unwrap();
    assert_eq!((fault.reason, fault.offset as usize), (Reason::BottomOfStack, bottom));
    assert!(view.int.is_none());
    assert_eq!(view.flow.unwrap().destination_port, 9);
}
