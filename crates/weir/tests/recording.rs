//! `weir run --pcap` and ports that only record.

#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Output};

/// Packets whose first byte is odd are dropped at ingress; with 2 they are dropped at egress; the
/// others leave by port 2.
const PROGRAM: &str = r"
#include <core.p4>
#include <v1model.p4>
header first_h { bit<8> kind; }
struct headers { first_h first; }
struct metadata { }
parser P(packet_in p, out headers h, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(h.first); transition accept; }
}
control V(inout headers h, inout metadata m) { apply { } }
control I(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 2;
        if (h.first.kind[0:0] == 1) { mark_to_drop(s); }
    }
}
control E(inout headers h, inout metadata m, inout standard_metadata_t s) {
    apply { if (h.first.kind == 2) { mark_to_drop(s); } }
}
control C(inout headers h, inout metadata m) { apply { } }
control D(packet_out p, in headers h) { apply { p.emit(h.first); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
";

/// A capture of packets that begin with these bytes.
fn capture(path: &Path, kinds: &[u8]) {
    let mut writer = weir_io::pcap::PcapWriter::new(std::fs::File::create(path).unwrap()).unwrap();
    for (place, kind) in (1..).zip(kinds) {
        writer.write(&[*kind; 60], place * 1000).unwrap();
    }
}

fn run(folder: &Path, more: &[&str]) -> Output {
    std::fs::write(folder.join("p.p4"), PROGRAM).unwrap();
    capture(&folder.join("in.pcap"), &[0, 1, 2, 4]);
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "run",
            "p.p4",
            "-i",
            "1@pcap:in.pcap",
            "-i",
            "2@pcap:,out.pcap",
            "--pcap",
            "rec",
        ])
        .args(more)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The packets of a pcapng capture: first byte, whether it was received, comment.
fn records(path: &Path) -> Vec<(u8, bool, String)> {
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let half = |at: usize| usize::from(u16::from_le_bytes(file[at..at + 2].try_into().unwrap()));
    let (mut at, mut records) = (0, Vec::new());
    while at < file.len() {
        let length = word(at + 4);
        // An enhanced packet block: interface, time, captured and original length, data, options.
        if word(at) == 6 {
            let captured = word(at + 20);
            let (mut option, mut comment, mut is_received) =
                (at + 28 + captured.next_multiple_of(4), String::new(), false);
            while half(option) != 0 {
                let value = &file[option + 4..option + 4 + half(option + 2)];
                match half(option) {
                    1 => comment = String::from_utf8(value.to_vec()).unwrap(),
                    2 => is_received = value[0] & 3 == 1,
                    other => panic!("option {other}"),
                }
                option += 4 + half(option + 2).next_multiple_of(4);
            }
            records.push((file[at + 28], is_received, comment));
        }
        at += length;
    }
    records
}

#[test]
fn records_say_which_packets_were_dropped_and_why() {
    for engine in ["jit", "interp"] {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), &["--engine", engine]);
        let received = records(&folder.path().join("rec/port1.pcapng"));
        let kinds: Vec<(u8, bool)> = received
            .iter()
            .map(|(kind, is_received, _)| (*kind, *is_received))
            .collect();
        assert_eq!(kinds, [(0, true), (1, true), (2, true), (4, true)], "{engine}");
        let comments: Vec<&str> = received.iter().map(|(.., comment)| comment.as_str()).collect();
        assert!(
            comments[1].starts_with("dropped: ingress-drop"),
            "{engine}: {comments:?}"
        );
        assert!(
            comments[2].starts_with("dropped: egress-drop"),
            "{engine}: {comments:?}"
        );
        assert_eq!((comments[0], comments[3]), ("", ""), "{engine}");
        let sent = records(&folder.path().join("rec/port2.pcapng"));
        assert_eq!(sent, [(0, false, String::new()), (4, false, String::new())], "{engine}");
    }
}

#[test]
fn a_packet_that_is_dropped_behind_a_queue_is_recorded_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    // At one packet in 10 ms, three of four packets wait.
    run(folder.path(), &["--port-rate", "2=100pps"]);
    let received = records(&folder.path().join("rec/port1.pcapng"));
    let kinds: Vec<u8> = received.iter().map(|(kind, ..)| *kind).collect();
    assert_eq!(kinds, [0, 1, 2, 4, 2]);
    assert!(
        received[1].2.starts_with("dropped: ingress-drop at p.p4:14"),
        "{received:?}"
    );
    assert_eq!(received[2].2, "");
    let late = &received[4].2;
    assert!(
        late.starts_with("received before and queued; dropped: egress-drop at p.p4:18"),
        "{late}"
    );
}

#[test]
fn traced_packets_have_their_reasons_too() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["--trace", "1"]);
    let received = records(&folder.path().join("rec/port1.pcapng"));
    let comments: Vec<&str> = received.iter().map(|(.., comment)| comment.as_str()).collect();
    assert!(comments[1].starts_with("dropped: ingress-drop"), "{comments:?}");
    assert!(comments[2].starts_with("dropped: egress-drop"), "{comments:?}");
}

#[test]
fn no_capture_that_is_in_use_is_recorded_over() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &[]);
    let before = std::fs::read(folder.path().join("rec/port1_in.pcap")).unwrap();
    for ports in [
        ["1@pcap:rec/port1_in.pcap", "2@null"],
        ["1@null", "2@pcap:,rec/port2_out.pcap"],
        // Both would be recorded as port2.
        ["1@tap:port2", "2@null"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["run", "p.p4", "-i", ports[0], "-i", ports[1], "--pcap", "rec"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{ports:?}: {error}");
        assert!(
            error.contains("written over") || error.contains("both be recorded as port2"),
            "{error}"
        );
    }
    assert_eq!(std::fs::read(folder.path().join("rec/port1_in.pcap")).unwrap(), before);
}

#[test]
fn a_port_that_records_receives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["--json"]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("pcap:,out.pcap"), "{text}");
    let file = std::fs::read(folder.path().join("out.pcap")).unwrap();
    let mut reader = weir_io::pcap::PcapReader::new(file.as_slice()).unwrap();
    let mut kinds = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        kinds.push(packet.data[0]);
    }
    assert_eq!(kinds, [0, 4]);
}
