//! Encoding and decoding are inverse; no bytes make a decoder panic.

mod common;

use common::{by_dscp, by_lab_port, by_port, ipv4, tcp, udp};
use proptest::prelude::*;
use weir_int::packet::{Detection, PacketView, VersionZero};
use weir_int::report::{Decoder, ReportVersion, VersionChoice};
use weir_int::wire::report::v2::{self, GroupHeader, IndividualHeader, IndividualReport, InnerType, Main, MainPart};
use weir_int::wire::report::{Flags, v0_5, v1};
use weir_int::wire::{
    Domain, GeneveOption, GreShim, HopLayout, MdHeader, MxHeader, NextProtocol, OldShim, OldShimType, Replication,
    Shim, ShimType, Tail, V0Header, V0Layout, V1Header, VxlanGpeShim, encode,
};
use weir_int::{Hop, Reader, Timestamp, TimestampWidth, Uint};

fn uint<const BITS: u32>() -> impl Strategy<Value = Uint<BITS>> {
    any::<u32>().prop_map(Uint::truncate)
}

fn shim_type() -> impl Strategy<Value = ShimType> {
    prop_oneof![Just(ShimType::Md), Just(ShimType::Destination), Just(ShimType::Mx)]
}

fn next_protocol() -> impl Strategy<Value = NextProtocol> {
    prop_oneof![
        uint().prop_map(|dscp| NextProtocol::Unchanged { dscp }),
        any::<u16>().prop_map(|port| NextProtocol::DestinationPort { port }),
        any::<u8>().prop_map(|protocol| NextProtocol::Inserted { protocol }),
    ]
}

fn domain() -> impl Strategy<Value = Domain> {
    any::<(u16, u16, u16)>().prop_map(|(id, instructions, flags)| Domain {
        id,
        instructions,
        flags,
    })
}

prop_compose! {
    fn md_header()(
        (discard, hop_count_exceeded, mtu_exceeded) in any::<(bool, bool, bool)>(),
        hop_words in uint(),
        (remaining_hops, instructions) in any::<(u8, u16)>(),
        domain in domain(),
    ) -> MdHeader {
        MdHeader { discard, hop_count_exceeded, mtu_exceeded, hop_words, remaining_hops, instructions, domain }
    }
}

fn replication() -> impl Strategy<Value = Replication> {
    use Replication::*;
    prop_oneof![Just(None), Just(Layer2), Just(Layer3), Just(Both)]
}

prop_compose! {
    fn v1_header()(
        replication in replication(),
        (copy, hop_count_exceeded, mtu_exceeded) in any::<(bool, bool, bool)>(),
        hop_words in uint(),
        (remaining_hops, instructions, reserved) in any::<(u8, u16, u16)>(),
    ) -> V1Header {
        V1Header {
            replication, copy, hop_count_exceeded, mtu_exceeded, hop_words, remaining_hops, instructions, reserved,
        }
    }
}

prop_compose! {
    fn v0_header()(
        replication in replication(),
        (copy, hop_count_exceeded) in any::<(bool, bool)>(),
        instruction_count in uint(),
        (max_hops, total_hops, instructions) in any::<(u8, u8, u16)>(),
    ) -> V0Header {
        V0Header { replication, copy, hop_count_exceeded, instruction_count, max_hops, total_hops, instructions }
    }
}

fn flags() -> impl Strategy<Value = Flags> {
    any::<(bool, bool, bool)>().prop_map(|(dropped, congested_queue, tracked_flow)| Flags {
        dropped,
        congested_queue,
        tracked_flow,
        intermediate: false,
    })
}

/// A value, mostly there, that is not all ones.
fn known(limit: u32) -> impl Strategy<Value = Option<u32>> {
    prop_oneof![1 => Just(None), 3 => (0..limit).prop_map(Some)]
}

fn small(limit: u32) -> impl Strategy<Value = Option<u16>> {
    known(limit).prop_map(|value| value.map(|v| v as u16))
}

fn id() -> impl Strategy<Value = Option<u8>> {
    known(255).prop_map(|value| value.map(|v| v as u8))
}

fn timestamp(width: TimestampWidth) -> impl Strategy<Value = Option<Timestamp>> {
    prop_oneof![
        1 => Just(None),
        3 => (0..width.mask()).prop_map(move |value| Some(Timestamp { value, width })),
    ]
}

prop_compose! {
    fn hop(width: TimestampWidth)(
        node_id in known(u32::MAX),
        (ingress_port, egress_port) in (small(0xffff), small(0xffff)),
        (l2_ingress_port, l2_egress_port) in (known(u32::MAX), known(u32::MAX)),
        latency in known(u32::MAX),
        (queue_id, queue_occupancy) in (id(), known(0xff_ffff)),
        (ingress_timestamp, egress_timestamp) in (timestamp(width), timestamp(width)),
        tx_utilisation in known(u32::MAX),
        (buffer_id, buffer_occupancy) in (id(), known(0xff_ffff)),
    ) -> Hop {
        Hop {
            node_id, ingress_port, egress_port, l2_ingress_port, l2_egress_port, latency,
            // An id without a value is written as 255, which is an id beside a value.
            queue_id: queue_id.or(queue_occupancy.map(|_| 255)), queue_occupancy,
            ingress_timestamp, egress_timestamp, tx_utilisation,
            buffer_id: buffer_id.or(buffer_occupancy.map(|_| 255)), buffer_occupancy,
        }
    }
}

/// What is left of a hop for an instruction bitmap; `others` says which of bits 6 and 8 exist.
fn instructed(hop: Hop, bitmap: u16, has_l2: bool, has_buffer: bool) -> Hop {
    let bit = |n: u32| bitmap & (0x8000 >> n) != 0;
    let mut hop = hop;
    if !bit(0) {
        hop.node_id = None;
    }
    if !bit(1) {
        (hop.ingress_port, hop.egress_port) = (None, None);
    }
    if !bit(2) {
        hop.latency = None;
    }
    if !bit(3) {
        (hop.queue_id, hop.queue_occupancy) = (None, None);
    }
    if !bit(4) {
        hop.ingress_timestamp = None;
    }
    if !bit(5) {
        hop.egress_timestamp = None;
    }
    if !bit(6) || !has_l2 {
        (hop.l2_ingress_port, hop.l2_egress_port) = (None, None);
    }
    if !bit(7) {
        hop.tx_utilisation = None;
    }
    if !bit(8) || !has_buffer {
        (hop.buffer_id, hop.buffer_occupancy) = (None, None);
    }
    hop
}

fn hops(width: TimestampWidth) -> impl Strategy<Value = Vec<Hop>> {
    prop::collection::vec(hop(width), 0..8)
}

fn stack_of(packet: &[u8], detection: &Detection) -> Vec<Hop> {
    let view = PacketView::ipv4(packet, detection);
    assert_eq!(view.fault, None);
    let stack = view.int.expect("INT").stack;
    stack.newest_first().map(|hop| hop.hop()).collect()
}

/// All decoders on all settings; nothing may panic, and errors have a text.
fn decode_all(bytes: &[u8]) {
    use ReportVersion::{V0_5, V1_0, V2_0};
    let detections = [
        Detection::default(),
        by_dscp(),
        by_port(),
        by_lab_port(),
        Detection {
            version_zero: VersionZero::V1,
            v0_low_byte: true,
            probe_marker: Some(0),
            before_tcp_options: true,
            ..by_dscp()
        },
    ];
    for detection in &detections {
        for view in [
            PacketView::ethernet(bytes, detection),
            PacketView::ipv4(bytes, detection),
            PacketView::ipv6(bytes, detection),
        ] {
            let hops = view.int.map_or(0, |int| int.stack.newest_first().count());
            assert!(hops * 4 <= bytes.len() + 4 * 255);
        }
        let versions = [V0_5, V1_0, V2_0].map(VersionChoice::Fixed);
        for version in [VersionChoice::Detect].into_iter().chain(versions) {
            let decoder = Decoder {
                version,
                detection: detection.clone(),
            };
            for report in decoder.decode(bytes) {
                match report {
                    Ok(report) => assert_eq!(report.hops().iter().count(), report.hops().len()),
                    Err(error) => assert!(error.offset as usize <= bytes.len() && !error.to_string().is_empty()),
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn shims_are_inverse(kind in shim_type(), next in next_protocol(), length: u8, dscp in uint()) {
        let shim = Shim { kind, next, length };
        prop_assert_eq!(Shim::read(&mut Reader::new(&shim.to_bytes())), Ok(shim));
        for kind in [OldShimType::HopByHop, OldShimType::Destination] {
            let shim = OldShim { kind, length, dscp };
            prop_assert_eq!(OldShim::read(&mut Reader::new(&shim.to_bytes())), Ok(shim));
        }
    }

    #[test]
    fn encapsulations_are_inverse(kind in shim_type(), flag: bool, length: u8, next_protocol: u16, words in uint()) {
        let gre = GreShim { kind, gre_inserted: flag, length, next_protocol };
        prop_assert_eq!(GreShim::read(&mut Reader::new(&gre.to_bytes())), Ok(gre));
        let gpe = VxlanGpeShim { kind, length, was_vxlan: flag, next_protocol: next_protocol as u8 };
        prop_assert_eq!(VxlanGpeShim::read(&mut Reader::new(&gpe.to_bytes())), Ok(gpe));
        let geneve = GeneveOption { kind, length: words };
        prop_assert_eq!(GeneveOption::read(&mut Reader::new(&geneve.to_bytes())), Ok(geneve));
    }

    #[test]
    fn headers_are_inverse(md in md_header(), v1 in v1_header(), v0 in v0_header()) {
        prop_assert_eq!(MdHeader::read(&mut Reader::new(&md.to_bytes())), Ok(md));
        let mx = MxHeader { discard: md.discard, instructions: md.instructions, domain: md.domain };
        prop_assert_eq!(MxHeader::read(&mut Reader::new(&mx.to_bytes())), Ok(mx));
        prop_assert_eq!(V1Header::read(&mut Reader::new(&v1.to_bytes())), Ok(v1));
        for layout in [V0Layout::V04, V0Layout::V05] {
            prop_assert_eq!(V0Header::read(&mut Reader::new(&v0.to_bytes(layout)), layout), Ok(v0));
        }
    }

    #[test]
    fn stacks_of_int_2_are_inverse(header in md_header(), next in next_protocol(), hops in hops(TimestampWidth::Bits64)) {
        let header = MdHeader { hop_words: Uint::ZERO, ..header };
        prop_assume!(header.instructions != 0);
        let mut int = Vec::new();
        encode::md(next, &header, &hops, &mut int).unwrap();
        int.extend(tcp(1, 2, &[]));
        let read = stack_of(&ipv4(0, 17, &udp(4000, 5001, &int)), &by_port());
        let expected: Vec<Hop> = hops.iter().map(|h| instructed(*h, header.instructions, true, true)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn stacks_of_int_1_are_inverse(header in v1_header(), hops in hops(TimestampWidth::Bits32)) {
        prop_assume!(header.instructions != 0);
        let mut int = Vec::new();
        encode::v1(Uint::ZERO, &header, &hops, &mut int).unwrap();
        let read = stack_of(&ipv4(0x17, 6, &tcp(4000, 80, &int)), &by_dscp());
        let expected: Vec<Hop> = hops.iter().map(|h| instructed(*h, header.instructions, true, false)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn stacks_of_int_0_are_inverse(header in v0_header(), hops in hops(TimestampWidth::Bits32), port in 1..=u16::MAX) {
        prop_assume!(header.instructions != 0);
        let tail = Tail { protocol: 17, destination_port: port, dscp: 0 };
        let mut int = Vec::new();
        encode::v0(&header, V0Layout::V05, &hops, tail, &mut int).unwrap();
        let packet = ipv4(0, 17, &udp(4000, 5001, &int));
        let expected: Vec<Hop> = hops.iter().map(|h| instructed(*h, header.instructions, false, false)).collect();
        prop_assert_eq!(stack_of(&packet, &by_port()), expected);
        let view = PacketView::ipv4(&packet, &by_port());
        prop_assert_eq!(view.flow.unwrap().destination_port, port);
    }

    #[test]
    fn lab_stacks_are_inverse(hops in hops(TimestampWidth::Bits48), port: u16, remaining: u8) {
        let mut int = Vec::new();
        encode::lab(port, remaining, &hops, &mut int).unwrap();
        let read = stack_of(&ipv4(0, 17, &udp(4000, 5000, &int)), &by_lab_port());
        let expected: Vec<Hop> = hops.iter().map(|h| Hop {
            ingress_port: h.ingress_port,
            egress_port: h.egress_port,
            ingress_timestamp: h.ingress_timestamp,
            egress_timestamp: h.egress_timestamp,
            ..Hop::default()
        }).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn reports_2_0_are_inverse(
        (hw_id, sequence, node_id) in (uint(), uint(), 0..u32::MAX),
        (bits, domain_id, domain_bits) in (any::<u16>(), any::<u16>(), 1..=u16::MAX),
        own in hop(TimestampWidth::Bits64),
        reason: u8,
        domain in prop::collection::vec(any::<u8>(), 0..40),
        (flags, intermediate) in (flags(), any::<bool>()),
        payload in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let part = MainPart { metadata_bits: bits, domain_id, domain_bits, domain_status: 0 };
        let packet = ipv4(0, 17, &udp(4000, 53, &payload));
        let report = IndividualReport {
            flags: Flags { intermediate, ..flags },
            main: Main::Int { part, hop: own, drop_reason: Some(reason), domain: &domain },
            inner_type: InnerType::Ipv4,
            inner: &packet,
        };
        let group = GroupHeader { hw_id, sequence, node_id };
        let bytes = v2::datagram(group, &[report, report]).unwrap();
        let decoder = Decoder::default();
        for decoded in decoder.decode(&bytes) {
            let decoded = decoded.unwrap();
            prop_assert_eq!(decoded.node_id, Some(node_id));
            prop_assert_eq!((u32::from(decoded.hw_id), decoded.sequence.value), (hw_id.get(), sequence.get()));
            prop_assert_eq!(decoded.flags, report.flags);
            prop_assert_eq!(decoded.domain_id, domain_id);
            prop_assert!(decoded.domain_metadata.starts_with(&domain));
            prop_assert_eq!(decoded.drop_reason, (bits & 1 != 0).then_some(reason));
            let mut expected = instructed(own, bits & 0x7fff, true, true);
            if bits & 1 != 0 {
                // The queue id of the drop word, where there is no queue word.
                expected.queue_id = expected.queue_id.or(own.queue_id.filter(|id| *id != 255));
            }
            expected.node_id = Some(node_id);
            prop_assert_eq!(decoded.own, (bits != 0).then_some(expected));
        }
        let header = IndividualHeader::read(&mut Reader::new(&bytes[8..])).unwrap();
        prop_assert_eq!(&header.to_bytes()[..], &bytes[8..12]);
    }

    #[test]
    fn reports_1_0_are_inverse(
        flags in flags(),
        (hw_id, bits) in (uint(), uint()),
        (node_id, sequence, ingress_timestamp) in any::<(u32, u32, u32)>(),
        hop in hop(TimestampWidth::Bits32),
        reason: u8,
    ) {
        let optional = v1::Optional { bits, hop, drop_reason: Some(reason) };
        let header = v1::Header {
            next: v1::NextProtocol::Ipv6, flags, hw_id, node_id, sequence, ingress_timestamp, optional,
        };
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        let read = v1::Header::read(&mut Reader::new(&bytes)).unwrap();
        let mut again = Vec::new();
        read.write(&mut again);
        prop_assert_eq!(again, bytes);
        prop_assert_eq!((read.flags, read.hw_id, read.node_id), (flags, hw_id, node_id));
    }

    #[test]
    fn reports_0_5_are_inverse(
        flags in flags(),
        (version, hw_id) in (uint(), uint()),
        (sequence, ingress_timestamp) in any::<(u32, u32)>(),
    ) {
        for next in [v0_5::NextProtocol::Ethernet, v0_5::NextProtocol::Drop, v0_5::NextProtocol::Local] {
            let header = v0_5::FixedHeader { version, next, flags, hw_id, sequence, ingress_timestamp };
            prop_assert_eq!(v0_5::FixedHeader::read(&mut Reader::new(&header.to_bytes())), Ok(header));
        }
    }

    #[test]
    fn layouts_refuse_fewer_words_than_their_bitmap(bitmap: u16, words in 0u8..32) {
        let needed = HopLayout::words_of_v2(bitmap);
        prop_assert_eq!(HopLayout::v2(bitmap, words).is_some(), words >= needed);
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        decode_all(&bytes);
    }

    #[test]
    fn damaged_datagrams_never_panic(
        index in 0..4usize,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = samples().swap_remove(index);
        for (at, value) in damage {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        decode_all(&bytes);
    }
}

/// Datagrams of each report version, with each INT version inside.
fn samples() -> Vec<Vec<u8>> {
    let hops = [common::node(2), common::node(1)];
    let dscp = Uint::ZERO;
    let mut ints = vec![Vec::new(); 3];
    let md = MdHeader {
        instructions: 0xbc00,
        ..MdHeader::default()
    };
    encode::md(NextProtocol::Unchanged { dscp }, &md, &hops, &mut ints[0]).unwrap();
    let v1_header = V1Header {
        instructions: 0xbf00,
        ..V1Header::default()
    };
    encode::v1(dscp, &v1_header, &hops, &mut ints[1]).unwrap();
    let v0 = V0Header {
        instructions: 0xff00,
        ..V0Header::default()
    };
    encode::v0(&v0, V0Layout::V05, &hops, Tail::default(), &mut ints[2]).unwrap();
    let packets: Vec<Vec<u8>> = ints.iter().map(|int| ipv4(0x17, 17, &udp(4000, 53, int))).collect();
    let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &packets[2]].concat();
    let old = common::hex("026000020000002a00bc614e 00000001008c00900300100000bc65f6");
    let one = common::hex("162c0043000000090000002c3b9aca00 000005dc03001000");
    let report = |inner| IndividualReport {
        flags: Flags {
            tracked_flow: true,
            ..Flags::default()
        },
        main: Main::InnerOnly,
        inner_type: InnerType::Ipv4,
        inner,
    };
    let group = GroupHeader {
        hw_id: Uint::ZERO,
        sequence: Uint::ZERO,
        node_id: 9,
    };
    let mut lab = Vec::new();
    encode::lab(53, 8, &hops, &mut lab).unwrap();
    let lab = ipv4(0, 17, &udp(4000, 5000, &lab));
    vec![
        [&old[..], &ethernet].concat(),
        [&one[..], &packets[1]].concat(),
        v2::datagram(group, &[report(&packets[0]), report(&packets[1])]).unwrap(),
        v2::datagram(group, &[report(&lab)]).unwrap(),
    ]
}

#[test]
fn truncation_at_every_byte_never_panics() {
    for sample in samples() {
        for length in 0..=sample.len() {
            decode_all(&sample[..length]);
        }
    }
}
