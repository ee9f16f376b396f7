//! Where flow and INT are found in packets, whole and truncated.

mod common;

use common::{by_dscp, by_port, ipv4, ipv6, node, tcp, udp};
use weir_int::packet::{Detection, DomainSource, IntHeader, PacketView};
use weir_int::wire::{
    Domain, HopLayout, MdHeader, MxHeader, NextProtocol, Shim, ShimType, Tail, V0Header, V0Layout, encode,
};
use weir_int::{Expected, Hop, Reason, Uint};

fn md(next: NextProtocol, hops: &[Hop]) -> Vec<u8> {
    let header = MdHeader {
        remaining_hops: 5,
        instructions: 0x8000,
        ..MdHeader::default()
    };
    let mut bytes = Vec::new();
    encode::md(next, &header, hops, &mut bytes).expect("it fits");
    bytes
}

fn unchanged(hops: &[Hop]) -> Vec<u8> {
    md(NextProtocol::Unchanged { dscp: Uint::ZERO }, hops)
}

fn nodes(view: &PacketView<'_>) -> Vec<u32> {
    let stack = view.int.expect("INT").stack;
    stack.newest_first().filter_map(|hop| hop.hop().node_id).collect()
}

fn flow(view: &PacketView<'_>) -> String {
    view.flow.expect("a flow").to_string()
}

const TWO: [u32; 2] = [2, 1];

fn two() -> [Hop; 2] {
    TWO.map(node)
}

#[test]
fn npt_1_restores_the_destination_port() {
    let int = md(NextProtocol::DestinationPort { port: 53 }, &two());
    let packet = ipv4(0, 17, &udp(4000, 5001, &[&int[..], b"query"].concat()));
    let view = PacketView::ipv4(&packet, &by_port());
    assert_eq!(flow(&view), "udp 10.0.0.1:4000 -> 10.0.0.2:53");
    assert_eq!((nodes(&view), view.payload), (TWO.to_vec(), &b"query"[..]));
    assert_eq!(view.length_without_int(), 20 + 8 + 5);
}

#[test]
fn npt_2_has_the_original_transport_header_behind_the_stack() {
    let int = md(NextProtocol::Inserted { protocol: 6 }, &two());
    let inner = [&int[..], &tcp(40_000, 443, b"hello")].concat();
    let packet = ipv4(0, 17, &udp(0xbeef, 5001, &inner));
    let view = PacketView::ipv4(&packet, &by_port());
    assert_eq!(flow(&view), "tcp 10.0.0.1:40000 -> 10.0.0.2:443");
    assert_eq!((nodes(&view), view.payload), (TWO.to_vec(), &b"hello"[..]));
    assert_eq!(view.length_without_int(), 20 + 24 + 5);
}

#[test]
fn npt_0_leaves_tcp_as_it_is() {
    let packet = ipv4(0x17, 6, &tcp(40_000, 443, &unchanged(&two())));
    let view = PacketView::ipv4(&packet, &by_dscp());
    assert_eq!(flow(&view), "tcp 10.0.0.1:40000 -> 10.0.0.2:443");
    assert_eq!(nodes(&view), TWO);
}

#[test]
fn int_before_tcp_options_needs_the_setting() {
    let mut packet = ipv4(0x17, 6, &tcp(40_000, 443, &[]));
    let options = packet.len() - 4;
    packet.splice(options..options, unchanged(&two()));
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    let detection = Detection {
        before_tcp_options: true,
        ..by_dscp()
    };
    assert_eq!(nodes(&PacketView::ipv4(&packet, &detection)), TWO);
    let behind = PacketView::ipv4(&packet, &by_dscp());
    assert!(behind.int.is_none_or(|int| int.stack.is_empty()));
}

#[test]
fn a_probe_marker_precedes_the_shim() {
    let marker: u64 = 0x1122_3344_5566_7788;
    let payload = [&marker.to_be_bytes()[..], &unchanged(&two()), b"rest"].concat();
    let packet = ipv4(0, 17, &udp(4000, 53, &payload));
    let detection = Detection {
        probe_marker: Some(marker),
        ..Detection::default()
    };
    let view = PacketView::ipv4(&packet, &detection);
    assert_eq!((nodes(&view), view.payload), (TWO.to_vec(), &b"rest"[..]));
    assert_eq!(view.length_without_int(), 20 + 8 + 4);
    let other = Detection {
        probe_marker: Some(marker + 1),
        ..Detection::default()
    };
    assert!(PacketView::ipv4(&packet, &other).int.is_none());
}

#[test]
fn vlan_tags_and_ipv6_extension_headers_are_skipped() {
    let inner = udp(4000, 53, &unchanged(&two()));
    // Hop-by-hop options of 8 bytes, then a first fragment.
    let extensions = [[44, 0, 1, 4, 0, 0, 0, 0], [17, 0, 0, 1, 0, 0, 0, 9]].concat();
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    // Priority and drop eligibility are set in the outer tag.
    frame.extend([0x88, 0xa8, 0xf0, 10, 0x81, 0, 0, 20, 0x86, 0xdd]);
    frame.extend(ipv6(0x17, 0, &[&extensions[..], &inner].concat()));
    let view = PacketView::ethernet(&frame, &by_dscp());
    assert_eq!(flow(&view), "udp [2001:db8::1]:4000 -> [2001:db8::2]:53");
    assert_eq!(nodes(&view), TWO);
    let vlans = view.link.unwrap().vlans.map(|v| v.map(Uint::get));
    assert_eq!(vlans, [Some(10), Some(20)]);
}

#[test]
fn later_fragments_have_a_flow_without_ports_and_no_int() {
    let mut packet = ipv4(0x17, 17, &[0xff; 32]);
    packet[7] = 5;
    let view = PacketView::ipv4(&packet, &by_dscp());
    let key = view.flow.unwrap();
    assert_eq!((key.source_port, key.destination_port, key.protocol), (0, 0, 17));
    assert!(view.int.is_none() && view.fault.is_none());
}

#[test]
fn without_a_signal_there_is_no_int() {
    let packet = ipv4(0, 17, &udp(4000, 5001, &unchanged(&two())));
    let view = PacketView::ipv4(&packet, &by_dscp());
    assert!(view.int.is_none() && view.fault.is_none());
    assert_eq!(view.flow.unwrap().destination_port, 5001);
}

#[test]
fn an_mx_header_has_no_stack_but_the_sources_metadata() {
    let header = MxHeader {
        instructions: 0xdc00,
        ..MxHeader::default()
    };
    let mut int = Vec::new();
    let next = NextProtocol::DestinationPort { port: 53 };
    encode::mx(next, &header, &[1, 2, 3], &mut int).unwrap();
    let packet = ipv4(0, 17, &udp(4000, 5001, &int));
    let view = PacketView::ipv4(&packet, &by_port());
    let int = view.int.unwrap();
    assert_eq!(
        (int.header, int.source_metadata),
        (IntHeader::Mx(header), &[1, 2, 3, 0][..])
    );
    assert!(int.stack.is_empty());
    assert_eq!(view.flow.unwrap().destination_port, 53);
}

#[test]
fn domain_metadata_are_between_baseline_and_checksum_complement() {
    let header = MdHeader {
        hop_words: Uint::truncate(3),
        instructions: 0x8001,
        domain: Domain {
            id: 7,
            instructions: 0x8000,
            flags: 0,
        },
        ..MdHeader::default()
    };
    let layout = HopLayout::v2(0x8001, 3).unwrap();
    let mut stack = Vec::new();
    layout.write(&node(2), &[1; 4], Some(5), &mut stack);
    layout.write_source(&node(1), &[2; 12], None, &mut stack);
    let shim = Shim {
        kind: ShimType::Md,
        next: NextProtocol::DestinationPort { port: 53 },
        length: (3 + stack.len() / 4) as u8,
    };
    let int = [&shim.to_bytes()[..], &header.to_bytes(), &stack].concat();
    let packet = ipv4(0, 17, &udp(4000, 5001, &int));
    let view = PacketView::ipv4(&packet, &by_port());
    let hops: Vec<_> = view.int.unwrap().stack.newest_first().collect();
    assert_eq!(nodes(&view), TWO);
    assert_eq!(
        (hops[0].domain_metadata(), hops[0].checksum_complement()),
        (&[1; 4][..], Some(5))
    );
    assert_eq!(
        (hops[1].domain_metadata(), hops[1].checksum_complement()),
        (&[2; 12][..], None)
    );
}

#[test]
fn source_only_metadata_as_long_as_a_hop_need_the_setting() {
    let header = MdHeader {
        hop_words: Uint::truncate(1),
        instructions: 0x8000,
        domain: Domain {
            id: 7,
            instructions: 0x8000,
            flags: 0,
        },
        ..MdHeader::default()
    };
    let layout = HopLayout::v2(0x8000, 1).unwrap();
    let mut stack = Vec::new();
    layout.write(&node(2), &[], None, &mut stack);
    layout.write_source(&node(1), &[9; 8], None, &mut stack);
    let shim = Shim {
        kind: ShimType::Md,
        next: NextProtocol::DestinationPort { port: 53 },
        // Shim included: three words of header, four of the stack, and one.
        length: 3 + 4 + 1,
    };
    let int = [&shim.to_bytes()[..], &header.to_bytes(), &stack].concat();
    let packet = ipv4(0, 17, &udp(4000, 5001, &int));
    let detection = Detection {
        length_has_shim: true,
        source_only: vec![DomainSource { domain_id: 7, words: 2 }],
        ..by_port()
    };
    let view = PacketView::ipv4(&packet, &detection);
    assert_eq!((view.fault, nodes(&view)), (None, TWO.to_vec()));
    let source = view.int.unwrap().stack.get(1).unwrap();
    assert_eq!(source.domain_metadata(), [9; 8]);
}

#[test]
fn shims_shorter_than_their_header_are_malformed() {
    let fault = |first: u8, length: u8, length_has_shim: bool| {
        let mut int = unchanged(&two());
        (int[0], int[1]) = (first, length);
        let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
        let detection = Detection {
            length_has_shim,
            ..by_dscp()
        };
        let fault = PacketView::ipv4(&packet, &detection).fault.unwrap();
        assert_eq!(
            (fault.reason, fault.offset, fault.found),
            (Reason::ShimLength, 29, length.into())
        );
        fault.expected
    };
    assert_eq!(fault(0x10, 2, false), Expected::AtLeast(3));
    assert_eq!(fault(0x30, 2, false), Expected::AtLeast(3));
    assert_eq!(fault(0x10, 0, true), Expected::AtLeast(1));
}

#[test]
fn a_shim_of_int_0_without_length_is_read_by_its_counts() {
    let header = V0Header {
        instructions: 0x8000,
        ..V0Header::default()
    };
    let tail = Tail {
        protocol: 17,
        destination_port: 53,
        dscp: 0,
    };
    let mut int = Vec::new();
    encode::v0(&header, V0Layout::V05, &two(), tail, &mut int).unwrap();
    int[2] = 0;
    let packet = ipv4(0, 17, &udp(4000, 5001, &int));
    let view = PacketView::ipv4(&packet, &by_port());
    assert_eq!((view.fault, nodes(&view)), (None, TWO.to_vec()));
    assert_eq!(view.flow.unwrap().destination_port, 53);
}

#[test]
fn int_0_with_its_bitmap_in_the_low_byte_needs_the_setting() {
    let header = V0Header {
        instructions: 0x8000,
        ..V0Header::default()
    };
    let mut int = Vec::new();
    encode::v0(&header, V0Layout::V05, &two(), Tail::default(), &mut int).unwrap();
    int.swap(8, 9);
    let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
    let detection = Detection {
        v0_low_byte: true,
        ..by_dscp()
    };
    assert_eq!(nodes(&PacketView::ipv4(&packet, &detection)), TWO);
    // One reserved word per hop, otherwise.
    assert!(nodes(&PacketView::ipv4(&packet, &by_dscp())).is_empty());
}

#[test]
fn int_0_whose_stack_contradicts_its_counts_is_malformed() {
    let header = V0Header {
        instructions: 0xc000,
        ..V0Header::default()
    };
    let mut int = Vec::new();
    encode::v0(&header, V0Layout::V05, &two(), Tail::default(), &mut int).unwrap();
    let reason = |at: usize, value: u8| {
        let mut int = int.clone();
        int[at] = value;
        let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
        PacketView::ipv4(&packet, &by_dscp())
            .fault
            .map(|f| (f.reason, f.offset))
    };
    // Three hops in four words; three words for two instructions; a shim shorter than its header.
    assert_eq!(reason(7, 3), Some((Reason::StackLength, 28 + 12)));
    assert_eq!(reason(8, 0xe0), Some((Reason::HopLength, 28 + 8)));
    assert_eq!(reason(2, 3), Some((Reason::ShimLength, 28 + 2)));
}

#[test]
fn all_extension_headers_of_8_bytes_are_skipped() {
    for header in [0, 43, 60, 135, 139, 140] {
        let extension = [17, 0, 0, 0, 0, 0, 0, 0];
        let packet = ipv6(0, header, &[&extension[..], &udp(4000, 53, b"")].concat());
        let view = PacketView::ipv6(&packet, &by_dscp());
        assert_eq!(view.flow.map(|f| (f.protocol, f.destination_port)), Some((17, 53)));
    }
    // Encrypted payload: its header has no ports, and what follows is unknown.
    let view = ipv6(0, 50, &[0; 16]);
    let flow = PacketView::ipv6(&view, &by_dscp()).flow.unwrap();
    assert_eq!((flow.protocol, flow.source_port), (50, 0));
}

#[test]
fn the_offset_of_an_ipv6_fragment_decides_whether_it_has_ports() {
    let flow = |low: u8| {
        let inner = [&[17, 0, 0, low, 0, 0, 0, 9][..], &udp(4000, 53, b"")].concat();
        let packet = ipv6(0, 44, &inner);
        PacketView::ipv6(&packet, &by_dscp()).flow.unwrap()
    };
    // More fragments follow, and reserved bits: still the first one. Then an offset of 8 bytes.
    assert_eq!(flow(0b0000_0111).source_port, 4000);
    assert_eq!(flow(0b0000_1001).source_port, 0);
}

#[test]
fn protocols_with_ports_are_those_of_tcp_udp_and_their_relatives() {
    for protocol in [6, 17, 33, 132, 136] {
        let packet = ipv4(0, protocol, &tcp(4000, 53, &[]));
        let flow = PacketView::ipv4(&packet, &by_dscp()).flow.unwrap();
        assert_eq!((flow.source_port, flow.destination_port), (4000, 53));
    }
    let packet = ipv4(0, 1, &[8, 0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(PacketView::ipv4(&packet, &by_dscp()).flow.unwrap().source_port, 0);
}

#[test]
fn an_authentication_header_is_skipped() {
    let authentication = [17, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    let inner = [&authentication[..], &udp(4000, 53, b"")].concat();
    let packet = ipv6(0, 51, &inner);
    let view = PacketView::ipv6(&packet, &by_dscp());
    assert_eq!(flow(&view), "udp [2001:db8::1]:4000 -> [2001:db8::2]:53");
    let cut = PacketView::ipv6(&packet[..48], &by_dscp());
    assert_eq!(cut.fault.unwrap().field, "IPv6 authentication header");
    assert!(cut.network.is_some() && cut.flow.is_none());
}

#[test]
fn an_inserted_header_may_precede_a_protocol_without_ports() {
    let int = md(NextProtocol::Inserted { protocol: 1 }, &two());
    let packet = ipv4(0, 17, &udp(7, 5001, &[&int[..], &[8, 0, 1, 2]].concat()));
    let view = PacketView::ipv4(&packet, &by_port());
    assert_eq!(flow(&view), "protocol 1 10.0.0.1 -> 10.0.0.2");
    let key = view.flow.unwrap();
    assert_eq!((key.source_port, key.destination_port), (0, 0));
}

#[test]
fn a_packet_without_payload_is_no_malformed_one() {
    let packet = ipv4(0, 59, &[]);
    let view = PacketView::ipv4(&packet, &by_dscp());
    assert_eq!((view.fault, view.length_without_int()), (None, 20));
}

#[test]
fn stacks_beyond_a_shims_length_are_not_encoded() {
    let header = MdHeader {
        instructions: 0x8000,
        ..MdHeader::default()
    };
    let next = NextProtocol::DestinationPort { port: 53 };
    let encode = |hops: usize| encode::md(next, &header, &vec![node(1); hops], &mut Vec::new());
    assert_eq!(encode(252), Ok(()));
    let error = encode(253).unwrap_err();
    assert_eq!(error.to_string(), "contents: expected at most 1020 bytes, found 1024");
}

#[test]
fn a_flow_needs_the_whole_inserted_header_only_up_to_its_ports() {
    let int = md(NextProtocol::Inserted { protocol: 6 }, &two());
    let ports = tcp(40_000, 443, &[]);
    let packet = ipv4(0, 17, &udp(0, 5001, &[&int[..], &ports[..4]].concat()));
    let view = PacketView::ipv4(&packet, &by_port());
    assert_eq!(view.fault.unwrap().field, "TCP header");
    assert_eq!(flow(&view), "tcp 10.0.0.1:40000 -> 10.0.0.2:443");
    let cut = PacketView::ipv4(&packet[..packet.len() - 1], &by_port());
    assert!(cut.flow.is_none() && cut.int.is_some());
}

#[test]
fn source_only_metadata_need_domain_instructions() {
    let mut int = unchanged(&two());
    int[1] += 1;
    int.extend([0; 4]);
    // Instructions 0x8000 with HopML 2: three words are one and a half hops.
    int[4 + 2] = 2;
    let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
    let fault = PacketView::ipv4(&packet, &by_dscp()).fault.unwrap();
    assert_eq!(
        (fault.reason, fault.offset, fault.found),
        (Reason::StackLength, 20 + 8 + 16, 12)
    );
}

#[test]
fn truncated_stacks_have_their_newest_hops() {
    let int = unchanged(&[node(3), node(2), node(1)]);
    let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
    let view = PacketView::ipv4(&packet[..packet.len() - 6], &by_dscp());
    let stack = view.int.unwrap().stack;
    assert_eq!((stack.announced(), stack.len(), nodes(&view)), (3, 1, vec![3]));
    assert!(stack.get(1).is_none());
    assert_eq!(flow(&view), "udp 10.0.0.1:4000 -> 10.0.0.2:53");
}

#[test]
fn truncated_headers_give_what_precedes_them() {
    let int = md(NextProtocol::DestinationPort { port: 53 }, &two());
    let packet = ipv4(0, 17, &udp(4000, 5001, &int));
    let view = |length: usize| PacketView::ipv4(&packet[..length], &by_port());
    assert!(view(19).network.is_none());
    let ports = view(22);
    assert!(ports.network.is_some() && ports.flow.is_none());
    assert_eq!(ports.fault.unwrap().field, "transport destination port");
    // The port says that INT replaced the flow's port, which is after it.
    assert!(view(31).flow.is_none());
    let shim = view(32);
    assert_eq!(
        (shim.flow.unwrap().destination_port, shim.fault.unwrap().field),
        (53, "INT-MD header")
    );
}

#[test]
fn ethernet_padding_is_no_payload() {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend(ipv4(0, 17, &udp(4000, 53, b"hi")));
    frame.resize(60, 0);
    assert_eq!(PacketView::ethernet(&frame, &by_dscp()).payload, b"hi");
}

#[test]
fn the_length_of_an_ipv6_packet_counts_its_header() {
    let mut packet = ipv6(0x17, 17, &udp(4000, 53, &unchanged(&two())));
    packet.extend([0; 6]);
    let view = PacketView::ipv6(&packet, &by_dscp());
    assert_eq!((view.payload.len(), view.length_without_int()), (0, 40 + 8));
    // A jumbogram, or a length that was not filled in.
    packet[4..6].fill(0);
    let view = PacketView::ipv6(&packet, &by_dscp());
    assert_eq!((view.payload.len(), view.length_without_int()), (6, 0));
}

#[test]
fn a_packet_whose_length_says_0_extends_to_the_end() {
    let mut packet = ipv4(0, 17, &udp(4000, 53, b"hi"));
    packet[2..4].fill(0);
    let view = PacketView::ipv4(&packet, &by_dscp());
    assert_eq!(
        (view.fault, view.payload, view.length_without_int()),
        (None, &b"hi"[..], 0)
    );
    packet[3] = 19;
    let fault = PacketView::ipv4(&packet, &by_dscp()).fault.unwrap();
    assert_eq!((fault.reason, fault.offset, fault.found), (Reason::HeaderLength, 2, 19));
}

#[test]
fn a_source_record_is_captured_only_with_its_source_only_metadata() {
    let header = MdHeader {
        instructions: 0x8000,
        hop_words: Uint::truncate(2),
        domain: Domain {
            id: 7,
            instructions: 1,
            flags: 0,
        },
        ..MdHeader::default()
    };
    let mut int = Vec::new();
    let next = NextProtocol::Unchanged { dscp: Uint::ZERO };
    encode::md(next, &header, &two(), &mut int).unwrap();
    int[1] += 1;
    int.extend([9; 4]);
    let packet = ipv4(0x17, 17, &udp(4000, 53, &int));
    let captured = |cut: usize| {
        let view = PacketView::ipv4(&packet[..packet.len() - cut], &by_dscp());
        nodes(&view)
    };
    assert_eq!(captured(0), TWO);
    assert_eq!(captured(1), [2]);
    assert_eq!(captured(4), [2]);
}

#[test]
fn impossible_header_lengths_are_faults() {
    let mut packet = ipv4(0, 6, &tcp(1, 2, &[]));
    packet[20 + 12] = 0x40;
    let fault = PacketView::ipv4(&packet, &by_dscp()).fault.unwrap();
    assert_eq!((fault.reason, fault.offset, fault.found), (Reason::HeaderLength, 32, 4));
    packet[0] = 0x44;
    let fault = PacketView::ipv4(&packet, &by_dscp()).fault.unwrap();
    assert_eq!((fault.reason, fault.offset, fault.found), (Reason::HeaderLength, 0, 4));
    packet[0] = 0x65;
    let fault = PacketView::ipv4(&packet, &by_dscp()).fault.unwrap();
    assert_eq!((fault.reason, fault.found), (Reason::IpVersion, 6));
}
