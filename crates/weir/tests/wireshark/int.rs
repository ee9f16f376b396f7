//! INT and telemetry reports: packets of weir-int's encoders, and of the programs' packet tests.

use super::frames::{datagram, ethernet, hex, ipv4, ipv6, of_tests, root, tcp, udp};
use super::tshark::{Tshark, whole};
use weir_int::wire::report::Flags;
use weir_int::wire::report::v2::{self, GroupHeader, IndividualReport, InnerType, Main, MainPart, Tlv, TlvType};
use weir_int::wire::{Domain, MdHeader, MxHeader, NextProtocol, encode};
use weir_int::{Hop, Timestamp, TimestampWidth, Uint};

const SCRIPTS: [&str; 3] = ["weir_int.lua", "weir_int_marked.lua", "weir_report.lua"];
const PORT: u16 = 6001;

fn tshark() -> Option<Tshark> {
    Some(Tshark::with_bundled(&SCRIPTS)?.preferring(&format!("weir_int.ports:{PORT}")))
}

fn time(width: TimestampWidth, value: u64) -> Option<Timestamp> {
    Some(Timestamp { value, width })
}

/// A hop with a value for each instruction.
fn hop(id: u32) -> Hop {
    Hop {
        node_id: Some(id),
        ingress_port: Some(1),
        egress_port: Some(2),
        latency: Some(500 + id),
        queue_id: Some(3),
        queue_occupancy: Some(70_000),
        ingress_timestamp: time(TimestampWidth::Bits64, 0x1_0000_0000_0000),
        egress_timestamp: time(TimestampWidth::Bits64, 0x1_0000_0000_0000 + u64::from(500 + id)),
        l2_ingress_port: Some(100_000),
        l2_egress_port: None,
        tx_utilisation: Some(9),
        buffer_id: Some(4),
        buffer_occupancy: Some(80_000),
    }
}

fn header(instructions: u16) -> MdHeader {
    MdHeader {
        remaining_hops: 5,
        instructions,
        ..MdHeader::default()
    }
}

fn md(next: NextProtocol, instructions: u16, hops: &[Hop]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode::md(next, &header(instructions), hops, &mut bytes).expect("it fits");
    bytes
}

fn by_dscp() -> NextProtocol {
    NextProtocol::Unchanged {
        dscp: Uint::truncate(10),
    }
}

fn prefixed(prefix: &str, names: &str) -> Vec<String> {
    names.split(' ').map(|name| format!("{prefix}.{name}")).collect()
}

/// The values of fields whose names have this prefix.
fn values(tshark: &Tshark, frame: &[u8], prefix: &str, names: &str) -> Vec<String> {
    let names = prefixed(prefix, names);
    tshark.values(frame, &names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[test]
fn npt_1_has_all_metadata_and_the_original_port() {
    let Some(tshark) = tshark() else { return };
    let int = md(NextProtocol::DestinationPort { port: 53 }, 0xff81, &[hop(2), hop(1)]);
    let dns = hex("1234 0100 0001 0000 0000 0000 0161 00 0001 0001");
    let frame = datagram(PORT, &[&int[..], &dns].concat());
    let names = "type next length original_port version hop_words remaining_hops instructions domain_id hops";
    // 12 bytes of header and two hops of 13 words.
    let expected = ["1", "1", "29", "53", "2", "13", "5", "0xff81", "0x0000", "2"];
    assert_eq!(values(&tshark, &frame, "weir_int", names), expected);
    let names = "node_id ingress_port egress_port latency queue_id queue_occupancy ingress_timestamp \
                 egress_timestamp l2_ingress_port l2_egress_port tx_utilisation buffer_id buffer_occupancy \
                 checksum_complement residence";
    let expected = [
        "2,1",
        "1,1",
        "2,2",
        "502,501",
        "3,3",
        "70000,70000",
        "281474976710656,281474976710656",
        "281474976711158,281474976711157",
        "100000,100000",
        "4294967295,4294967295",
        "9,9",
        "4,4",
        "80000,80000",
        "0xffffffff,0xffffffff",
        "502,501",
    ];
    assert_eq!(values(&tshark, &frame, "weir_int.hop", names), expected);
    // What follows INT is dissected by the original port.
    assert_eq!(tshark.values(&frame, &["dns.qry.name"]), ["a"]);
    tshark.survives_truncation(&[frame], "weir_int");
}

#[test]
fn npt_2_is_followed_by_the_original_transport_header() {
    let Some(tshark) = tshark() else { return };
    let int = md(NextProtocol::Inserted { protocol: 6 }, 0x8000, &[hop(7)]);
    let frame = datagram(PORT, &[&int[..], &tcp(443, b"hello")].concat());
    let fields = [
        "weir_int.original_protocol",
        "weir_int.hop.node_id",
        "tcp.srcport",
        "tcp.dstport",
    ];
    assert_eq!(tshark.values(&frame, &fields), ["6", "7", "40000", "443"]);
    tshark.survives_truncation(&[frame], "weir_int");
}

#[test]
fn npt_0_is_found_by_dscp_over_udp_and_tcp_with_ipv6_and_vlan_tags() {
    let Some(tshark) = tshark() else { return };
    let int = md(by_dscp(), 0xc000, &[hop(2), hop(1)]);
    let over_udp = udp(4001, &[&int[..], b"payload"].concat());
    let over_tcp = tcp(4001, &[&int[..], b"payload"].concat());
    let v6 = ipv6(0x17, 17, &over_udp);
    let tagged = [&[0, 10, 0x81, 0, 0, 20, 0x86, 0xdd][..], &v6].concat();
    let frames = [
        ethernet(0x0800, &ipv4(0x17, 17, &over_udp)),
        ethernet(0x0800, &ipv4(0x17, 6, &over_tcp)),
        ethernet(0x86dd, &v6),
        ethernet(0x88a8, &tagged),
    ];
    let fields = [
        "weir_int.original_dscp",
        "weir_int.hop.node_id",
        "weir_int.hop.egress_port",
    ];
    for values in tshark.fields(&frames, &fields) {
        assert_eq!(values, ["10", "2,1", "2,2"]);
    }
    let unmarked = ethernet(0x0800, &ipv4(0x16, 17, &over_udp));
    assert_eq!(tshark.count(std::slice::from_ref(&unmarked), "weir_int"), 0);
    let tshark = tshark.preferring("weir_int_marked.dscp:22");
    assert_eq!(tshark.count(&[unmarked], "weir_int"), 1);
    tshark
        .preferring("weir_int_marked.dscp_mask:62")
        .survives_truncation(&frames, "weir_int");
}

#[test]
fn a_probe_marker_precedes_int() {
    let Some(tshark) = tshark() else { return };
    let tshark = tshark.preferring("weir_int_marked.probe_marker:1122334455667788");
    let payload = [hex("1122334455667788"), md(by_dscp(), 0x8000, &[hop(3)])].concat();
    let values = tshark.values(&datagram(4001, &payload), &["weir_int.hop.node_id"]);
    assert_eq!(values, ["3"]);
}

#[test]
fn an_mx_header_has_the_metadata_of_the_source() {
    let Some(tshark) = tshark() else { return };
    let header = MxHeader {
        discard: true,
        instructions: 0xa000,
        domain: Domain {
            id: 0xbeef,
            instructions: 0x8000,
            flags: 1,
        },
    };
    let mut int = Vec::new();
    encode::mx(
        NextProtocol::DestinationPort { port: 9 },
        &header,
        &[1, 2, 3, 4],
        &mut int,
    )
    .unwrap();
    let frame = datagram(PORT, &int);
    let names = "type discard instructions domain_id domain_instructions domain_flags source_metadata";
    let expected = ["3", "1", "0xa000", "0xbeef", "0x8000", "0x0001", "01020304"];
    assert_eq!(values(&tshark, &frame, "weir_int", names), expected);
    tshark.survives_truncation(&[frame], "weir_int");
}

#[test]
fn domain_specific_metadata_are_behind_the_baseline() {
    let Some(tshark) = tshark() else { return };
    let mut int = Vec::new();
    let header = MdHeader {
        hop_words: Uint::truncate(3),
        ..header(0x8001)
    };
    let next = NextProtocol::DestinationPort { port: 9 };
    encode::md(next, &header, &[hop(2), hop(1)], &mut int).unwrap();
    int.splice(int.len() - 8..int.len() - 4, [1, 2, 3, 4]);
    // 4 bytes more of the source.
    int.splice(int.len() - 4..int.len() - 4, [5, 6, 7, 8]);
    int[1] += 1;
    let names = "node_id domain_metadata checksum_complement";
    let expected = ["2,1", "ffffffff,0102030405060708", "0xffffffff,0xffffffff"];
    assert_eq!(values(&tshark, &datagram(PORT, &int), "weir_int.hop", names), expected);
}

#[test]
fn the_lab_format_has_records_of_20_bytes() {
    let Some(tshark) = tshark() else { return };
    let record = |ingress, egress| Hop {
        ingress_port: Some(3),
        egress_port: Some(4),
        ingress_timestamp: time(TimestampWidth::Bits48, ingress),
        egress_timestamp: time(TimestampWidth::Bits48, egress),
        ..Hop::default()
    };
    let mut int = Vec::new();
    encode::lab(9, 6, &[record(0xffff_ffff_fff0, 16), record(5000, 6000)], &mut int).unwrap();
    let frame = datagram(5000, &[&int[..], b"payload"].concat());
    let names = "ingress_timestamp egress_timestamp ingress_port egress_port bottom residence";
    let expected = ["281474976710640,5000", "16,6000", "3,3", "4,4", "0,1", "32,1000"];
    assert_eq!(values(&tshark, &frame, "weir_int.hop", names), expected);
    let last = int.len() - 2;
    int[last] = 0;
    assert_eq!(tshark.count(&[datagram(5000, &int)], "weir_int.malformed"), 1);
    tshark.survives_truncation(&[frame], "weir_int_lab || weir_int");
}

#[test]
fn older_versions_have_the_values_of_their_check_vectors() {
    let Some(tshark) = tshark() else { return };
    let v0 = hex("010008000002100290000000 000000020500012c 0000000100000007 06001600");
    let v1 = hex(
        "01000d2810000506d2000000 0000000200010003010002580000001100000012 000000010007000800ffffffffffffffffffffff",
    );
    let geant = hex("0100090010000603cc000011 0000000100010002 17979cfe362a03e8 17979cfe362aa7f8");
    let frames = [v0, v1, geant].map(|int| datagram(PORT, &int));
    let names = prefixed(
        "weir_int",
        "version length original_dscp hops hop.node_id hop.ingress_port",
    );
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = [
        ["0", "8", "0", "2", "2,1", ""],
        ["1", "13", "10", "2", "2,1", "1,7"],
        ["1", "9", "0", "1", "1", "1"],
    ];
    assert_eq!(tshark.fields(&frames, &names), expected);
    let queues = prefixed("weir_int.hop", "queue_id queue_occupancy l2_egress_port residence");
    let queues: Vec<&str> = queues.iter().map(String::as_str).collect();
    let expected = [
        ["5,0", "300,7", "", ""],
        ["1,0", "600,16777215", "18,4294967295", ""],
        ["", "", "", "42000"],
    ];
    assert_eq!(tshark.fields(&frames, &queues), expected);
    let tail = ["weir_int.original_protocol", "weir_int.original_port"];
    assert_eq!(tshark.values(&frames[0], &tail), ["6", "22"]);
    tshark.survives_truncation(&frames, "weir_int");
}

fn report<'a>(main: Main<'a>, inner_type: InnerType, inner: &'a [u8]) -> IndividualReport<'a> {
    IndividualReport {
        flags: Flags {
            dropped: true,
            tracked_flow: true,
            ..Flags::default()
        },
        main,
        inner_type,
        inner,
    }
}

fn main_part(metadata_bits: u16) -> Main<'static> {
    Main::Int {
        part: MainPart {
            metadata_bits,
            domain_id: 0xbeef,
            ..MainPart::default()
        },
        hop: hop(9),
        drop_reason: Some(31),
        domain: &[],
    }
}

const GROUP: GroupHeader = GroupHeader {
    hw_id: Uint::MAX,
    sequence: Uint::truncate(2_000_000),
    node_id: 9,
};

#[test]
fn coalesced_reports_have_packets_with_int() {
    let Some(tshark) = tshark() else { return };
    let int = md(by_dscp(), 0x8000, &[hop(2), hop(1)]);
    let v4 = ipv4(0x17, 17, &udp(4001, &int));
    let v6 = ipv6(0x17, 6, &tcp(4001, &int));
    let by_port = md(NextProtocol::DestinationPort { port: 4001 }, 0x8000, &[hop(4)]);
    let frame = ethernet(0x0800, &ipv4(0, 17, &udp(PORT, &by_port)));
    let mut tlvs = Vec::new();
    Tlv::write(TlvType::Domain, 7, b"data", &mut tlvs).unwrap();
    Tlv::write(TlvType::Ipv4, 0, &v4, &mut tlvs).unwrap();
    let reports = [
        report(main_part(0x5001), InnerType::Ipv4, &v4),
        report(Main::InnerOnly, InnerType::Ipv6, &v6),
        report(Main::InnerOnly, InnerType::Ethernet, &frame),
        report(Main::InnerOnly, InnerType::Domain, b"data"),
        report(Main::InnerOnly, InnerType::Tlv, &tlvs),
    ];
    let frame = datagram(5900, &v2::datagram(GROUP, &reports).unwrap());
    let names = "version hw_id sequence node_id type inner_type metadata_length dropped tracked_flow metadata_bits \
                 domain_id ingress_port egress_port queue_id queue_occupancy drop_reason tlv.type tlv.template \
                 domain_extension";
    let expected = [
        "2",
        "63",
        "2000000",
        "9",
        "1,0,0,0,0",
        "4,5,3,2,1",
        "3,0,0,0,0",
        "1,1,1,1,1",
        "1,1,1,1,1",
        "0x5001",
        "0xbeef",
        "1",
        "2",
        "3,3",
        "70000",
        "31",
        "0,2",
        "0x0007,0x0000",
        "64617461,64617461",
    ];
    assert_eq!(values(&tshark, &frame, "weir_report", names), expected);
    let inner = [
        "weir_int.hop.node_id",
        "ipv6.src",
        "ip.src",
        "frame.protocols",
        "_ws.col.Source",
    ];
    let values = tshark.values(&frame, &inner);
    // The dissector of Ethernet puts what it carries after everything else.
    assert_eq!(values[0], "2,1,2,1,2,1,4");
    assert_eq!(values[1], "2001:db8::1");
    assert_eq!(values[2], "10.0.0.1,10.0.0.1,10.0.0.1,10.0.0.1");
    // The addresses of the columns are those of the report.
    assert_eq!(values[4], "10.0.0.1");
    tshark.survives_truncation(&[frame], "weir_report");
}

#[test]
fn the_programs_reports_have_all_hops() {
    let Some(tshark) = tshark() else { return };
    // int_md-sink_restores_packet.stf
    let payload = hex("2000000100000051 14220020 0000000000000000 \
         455c0092000140003f1121eb0a00010a0a00040a 0fa01389007e4a94 10180028 20000704dc00000000000000 \
         00000051000300040000000000000000000f424000000000000f4240 \
         0000001200010002000000030000000000004e2000000000000053fc \
         00000011000100020000000300000000000027100000000000002cec");
    let frame = datagram(5900, &payload);
    let fields = [
        "weir_report.sequence",
        "weir_report.node_id",
        "weir_int.hop.node_id",
        "weir_int.hop.residence",
        "weir_int.hops",
    ];
    assert_eq!(
        tshark.values(&frame, &fields),
        ["1", "81", "81,18,17", "0,1500,1500", "3"]
    );
    tshark.survives_truncation(&[frame], "weir_report");
}

#[test]
fn older_reports_have_the_values_of_their_check_vectors() {
    let Some(tshark) = tshark() else { return };
    let int = md(by_dscp(), 0x8000, &[hop(2)]);
    let v4 = ipv4(0x17, 17, &udp(4001, &int));
    let inner = ethernet(0x0800, &v4);
    let local = "026000020000002a00bc614e 00000001008c00900300100000bc65f6";
    let drop = "018000010000002b00bc614e 00000001008c000000500000";
    let v1 = "162c0043000000090000002c3b9aca00 000005dc03001000";
    let frames = [
        datagram(5900, &[hex(local), inner.clone()].concat()),
        datagram(5900, &[hex(drop), inner].concat()),
        datagram(5900, &[hex(v1), v4].concat()),
    ];
    let names = prefixed(
        "weir_report",
        "version next dropped congested_queue tracked_flow hw_id sequence node_id ingress_timestamp",
    );
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let expected = [
        ["0", "2", "0", "1", "1", "2", "42", "1", "12345678"],
        ["0", "1", "1", "0", "0", "1", "43", "1", "12345678"],
        ["1", "1", "0", "0", "1", "3", "44", "9", "1000000000"],
    ];
    assert_eq!(tshark.fields(&frames, &names), expected);
    let names = prefixed(
        "weir_report",
        "egress_timestamp ingress_port queue_id queue_occupancy drop_reason latency length",
    );
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("weir_int.hop.node_id");
    let expected = [
        ["12346870", "140", "3", "4096", "", "", "", "2"],
        ["", "140", "0", "", "80", "", "", "2"],
        ["", "", "3", "4096", "", "1500", "6", "2"],
    ];
    assert_eq!(tshark.fields(&frames, &names), expected);
    tshark.survives_truncation(&frames, "weir_report");
    let forced = tshark.preferring("weir_report.version:2.0");
    assert_eq!(forced.count(&frames[..1], "weir_report.type"), 1);
}

#[test]
fn the_ports_of_reports_are_a_preference() {
    let Some(tshark) = tshark() else { return };
    let tshark = tshark.preferring("weir_report.ports:7000-7001,9000");
    let payload = v2::datagram(GROUP, &[report(main_part(0), InnerType::None, &[])]).unwrap();
    let frames = [7001, 9000, 5900].map(|port| datagram(port, &payload));
    assert_eq!(tshark.count(&frames[..2], "weir_report"), 2);
    assert_eq!(tshark.count(&frames[2..], "weir_report"), 0);
}

#[test]
fn malformed_int_and_reports_give_expert_information() {
    let Some(tshark) = tshark() else { return };
    let good = md(NextProtocol::DestinationPort { port: 9 }, 0x9000, &[hop(1)]);
    let changed = |at: usize, value: u8| {
        let mut int = good.clone();
        int[at] = value;
        datagram(PORT, &int)
    };
    // Type, NPT 3, length, version, HopML too little, HopML 0.
    let frames = [(0, 0x54), (0, 0x1c), (1, 2), (4, 0x30), (6, 1), (6, 0)].map(|(at, value)| changed(at, value));
    assert_eq!(tshark.count(&frames, "weir_int.malformed"), frames.len());
    assert_eq!(tshark.count(&[changed(1, 9)], "weir_int.truncated"), 1);
    // Report version, report type, metadata length.
    let reports = [
        "30000000",
        "2000000000000009 50000000",
        "2000000000000009 10030000 5000000000000000 00000000",
    ];
    let reports = reports.map(|payload| datagram(5900, &hex(payload)));
    assert_eq!(tshark.count(&reports, "weir_report.malformed"), reports.len());
    tshark.raises_nothing(&whole(&frames));
    tshark.raises_nothing(&whole(&reports));
}

#[test]
fn nesting_is_bounded() {
    let Some(tshark) = tshark() else { return };
    let mut payload = b"end".to_vec();
    for _ in 0..40 {
        payload = [
            md(NextProtocol::DestinationPort { port: PORT }, 0x8000, &[hop(1)]),
            payload,
        ]
        .concat();
    }
    let mut reports = b"end".to_vec();
    for _ in 0..20 {
        let inner = ipv4(0, 17, &udp(5900, &reports));
        reports = v2::datagram(GROUP, &[report(Main::InnerOnly, InnerType::Ipv4, &inner)]).unwrap();
    }
    let frames = [datagram(PORT, &payload), datagram(5900, &reports)];
    assert_eq!(tshark.count(&frames, "weir_int || weir_report"), 2);
    tshark.raises_nothing(&whole(&frames));
}

#[test]
fn no_packet_of_the_programs_raises_an_error() {
    let Some(tshark) = tshark() else { return };
    for (program, reports) in [("int_md", 40), ("int_lab", 12)] {
        let frames = of_tests(&root().join("p4/programs").join(program));
        let frames: Vec<Vec<u8>> = frames.into_iter().map(|frame| frame.bytes).collect();
        tshark.raises_nothing(&whole(&frames));
        assert!(tshark.count(&frames, "weir_report") >= reports, "{program}");
    }
}
