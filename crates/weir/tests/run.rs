//! `weir run` without a network: captures, generators, signals and statistics.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Longest wait for anything, after which a test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs")
}

fn path(name: &str) -> String {
    programs().join(name).display().to_string()
}

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .arg("run")
        .args(arguments)
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The last JSON object that was written.
fn last(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text
        .lines()
        .last()
        .unwrap_or_else(|| panic!("no statistics: {}", stderr(output)));
    serde_json::from_str(line).unwrap()
}

/// A switch that runs, and what it says.
struct Running {
    child: Child,
    said: Receiver<String>,
}

impl Running {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let running = Running { child, said };
        running.wait_for("running");
        running
    }

    /// Waits until it says something with these words in it.
    fn wait_for(&self, words: &str) -> String {
        let mut all = String::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => all.push_str(&format!("{line}\n")),
                Err(error) => panic!("`{words}` was not said ({error}), but:\n{all}"),
            }
        }
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Stops it and gives its statistics.
    fn stop(self, name: &str) -> Value {
        self.signal(name);
        let output = self.child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        last(&output)
    }
}

/// A port of the statistics.
fn port(value: &Value, number: u64, what: &str) -> u64 {
    let ports = value["ports"].as_array().unwrap();
    let found = ports.iter().find(|p| p["port"] == number);
    found.map_or(0, |p| p[what].as_u64().unwrap())
}

fn drops(value: &Value, reason: &str) -> u64 {
    let rows = value["drops"].as_array().unwrap().iter();
    rows.filter(|d| d["reason"] == reason)
        .map(|d| d["packets"].as_u64().unwrap())
        .sum()
}

fn read_capture(path: &Path) -> Vec<Vec<u8>> {
    let mut reader = weir_io::pcap::PcapReader::new(std::fs::File::open(path).unwrap()).unwrap();
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet.data.to_vec());
    }
    packets
}

/// A capture with nothing in it: for a port that is only to record.
fn empty_capture(folder: &Path) -> String {
    let path = folder.join("empty.pcap");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut writer = weir_io::pcap::PcapWriter::new(&mut file).unwrap();
    writer.flush().unwrap();
    path.display().to_string()
}

/// A v1model program whose ingress does this, with an Ethernet header and a table that stays empty.
fn program(declarations: &str, ingress: &str) -> String {
    format!(
        "#include <core.p4>\n#include <v1model.p4>\n\
        header ethernet_t {{ bit<48> dst; bit<48> src; bit<16> kind; }}\n\
        {declarations}\n\
        struct headers_t {{ ethernet_t ethernet; }} struct meta_t {{ bit<32> n; }}\n\
        parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {{\n\
            state start {{ p.extract(h.ethernet); transition accept; }} }}\n\
        control V(inout headers_t h, inout meta_t m) {{ apply {{ }} }}\n\
        control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{\n{ingress}\n}}\n\
        control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {{ apply {{ }} }}\n\
        control C(inout headers_t h, inout meta_t m) {{ apply {{ }} }}\n\
        control D(packet_out p, in headers_t h) {{ apply {{ p.emit(h.ethernet); }} }}\n\
        V1Switch(P(), V(), I(), E(), C(), D()) main;\n"
    )
}

/// A program that sends everything to port 2, marked with a number.
fn marking(mark: u32) -> String {
    program("", &format!("apply {{ h.ethernet.src = {mark}; s.egress_spec = 2; }}"))
}

/// The number that `marking` left, and the number that the generator gave the packet.
fn mark_and_number(packet: &[u8]) -> (u8, u64) {
    let number = packet[42..50].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    (packet[11], number)
}

/// Addresses, protocol and ports.
fn flow(packet: &[u8]) -> Vec<u8> {
    packet[23..24].iter().chain(&packet[26..38]).copied().collect()
}

#[test]
fn engines_and_numbers_of_workers_make_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let mut results = Vec::new();
    for (engine, workers) in [("interp", "1"), ("jit", "1"), ("jit", "2"), ("jit", "3")] {
        let recorded = folder.path().join(format!("{engine}{workers}.pcap"));
        let from = format!("1@pcap:{}", path("ipv4_router/demo-port1.pcap"));
        let other = path("ipv4_router/demo-port2.pcap");
        let out = weir(&[
            &path("ipv4_router/ipv4_router.p4"),
            "--entries",
            &path("ipv4_router/demo.entries"),
            "-i",
            &from,
            "-i",
            &format!("2@pcap:{other},{}", recorded.display()),
            "--engine",
            engine,
            "--workers",
            workers,
            "--json",
        ]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        let value = last(&out);
        assert_eq!(value["engine"], engine);
        assert_eq!(value["workers"].as_array().unwrap().len().to_string(), workers);
        let counts = (
            value["ports"].clone(),
            value["tables"].clone(),
            drops(&value, "ingress-drop"),
        );
        results.push((read_capture(&recorded), counts));
    }
    let (expected, counts) = &results[0];
    assert!(expected.len() > 300);
    assert_eq!(*expected, results[1].0, "one worker keeps the order of all packets");
    for (packets, other) in &results {
        assert_eq!(counts, other);
        let of = |packets: &[Vec<u8>], wanted: &[u8]| -> Vec<Vec<u8>> {
            packets.iter().filter(|p| flow(p) == wanted).cloned().collect()
        };
        for wanted in expected.iter().map(|p| flow(p)) {
            assert_eq!(of(expected, &wanted), of(packets, &wanted), "each flow is in order");
        }
    }
}

#[test]
fn both_engines_send_the_same_of_a_capture_whose_packets_recirculate_and_count() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../weir-stf/tests/vectors/numbered.p4");
    let input = folder.path().join("in.pcap");
    let mut writer = weir_io::pcap::PcapWriter::new(std::fs::File::create(&input).unwrap()).unwrap();
    for i in 0..200 {
        // To port 2, at once or by the recirculation port 68.
        writer.write(&[[0, 68, 0, 68, 68][i % 5], 0, 0, 0], 0).unwrap();
    }
    writer.flush().unwrap();
    let sent = ["interp", "jit"].map(|engine| {
        let output = folder.path().join(format!("{engine}.pcap"));
        let out = weir(&[
            &program.display().to_string(),
            "-i",
            &format!("1@pcap:{}", input.display()),
            "-i",
            &format!("2@pcap:,{}", output.display()),
            "--engine",
            engine,
        ]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        read_capture(&output)
    });
    assert_eq!(sent[0].len(), 200);
    // The first packets are numbers 1 and 3 at ingress: the second was there twice.
    assert_eq!([sent[0][0][3], sent[0][1][3]], [1, 3]);
    assert_eq!(sent[0], sent[1]);
}

#[test]
fn the_psa_router_sends_what_the_other_router_sends() {
    let folder = tempfile::tempdir().unwrap();
    let entries = std::fs::read_to_string(path("ipv4_router/demo.entries")).unwrap();
    let entries = entries
        .replace("standard_metadata.ingress_port", "istd.ingress_port")
        .replace("standard_metadata.egress_spec", "ostd.egress_port")
        .replace("standard_metadata.egress_port", "istd.egress_port")
        .lines()
        .map(|line| match line.starts_with("add ipv4_lpm") {
            true => line.replace(" to_cpu()", " route_to_cpu()") + "\n",
            false => line.to_owned() + "\n",
        })
        .collect::<String>();
    let of_psa = folder.path().join("psa.entries");
    std::fs::write(&of_psa, entries).unwrap();
    let routers = [
        ("ipv4_router/ipv4_router.p4", path("ipv4_router/demo.entries"), "64"),
        (
            "ipv4_router_psa/ipv4_router_psa.p4",
            of_psa.display().to_string(),
            "4294967293",
        ),
    ];
    let mut results = Vec::new();
    for (program, entries, cpu) in routers {
        for (engine, workers) in [("interp", "1"), ("jit", "1"), ("jit", "2")] {
            let recorded = folder.path().join("recorded.pcap");
            let of_cpu = folder.path().join("cpu.pcap");
            let out = weir(&[
                &path(program),
                "--entries",
                &entries,
                "-i",
                &format!("1@pcap:{}", path("ipv4_router/demo-port1.pcap")),
                "-i",
                &format!("2@pcap:{},{}", path("ipv4_router/demo-port2.pcap"), recorded.display()),
                "-i",
                &format!("{cpu}@pcap:{},{}", empty_capture(folder.path()), of_cpu.display()),
                "--engine",
                engine,
                "--workers",
                workers,
                "--json",
            ]);
            assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
            let value = last(&out);
            assert_eq!(value["engine"], engine);
            let mut sent = read_capture(&recorded);
            sent.sort();
            results.push((
                sent,
                read_capture(&of_cpu).len(),
                drops(&value, "ingress-drop"),
                drops(&value, "no-such-port"),
            ));
        }
    }
    assert!(results[0].0.len() > 300);
    for (i, result) in results.iter().enumerate() {
        assert!(*result == results[0], "run {i}");
    }
}

#[test]
fn signals_stop_it_with_a_summary_of_everything_that_was_received() {
    for (signal, workers) in [("INT", "1"), ("TERM", "2")] {
        let running = Running::start(&[
            &path("ipv4_router/ipv4_router.p4"),
            "--entries",
            &path("ipv4_router/demo.entries"),
            "-i",
            "1@gen:dst=10.0.2.10,dmac=02:00:00:00:01:01,flows=64",
            "-i",
            "2@null",
            "--workers",
            workers,
            "--json",
        ]);
        let value = running.stop(signal);
        assert_eq!(value["final"], true);
        let received = port(&value, 1, "rx_packets");
        assert_eq!(received, port(&value, 2, "tx_packets"));
        let devices = value["devices"].as_array().unwrap();
        let of = |port: u64| devices.iter().find(|d| d["port"] == port).unwrap();
        assert_eq!(
            (&of(1)["rx_packets"], &of(2)["tx_packets"]),
            (&received.into(), &received.into())
        );
        let by_worker = value["workers"].as_array().unwrap().iter();
        assert_eq!(by_worker.map(|w| w["packets"].as_u64().unwrap()).sum::<u64>(), received);
    }
}

fn reload(workers: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("p.p4");
    let recorded = folder.path().join("out.pcap");
    std::fs::write(&source, marking(1)).unwrap();
    let running = Running::start(&[
        &source.display().to_string(),
        "-i",
        "1@gen:rate=20000,flows=64,size=64",
        "-i",
        &format!("2@pcap:{},{}", empty_capture(folder.path()), recorded.display()),
        "--workers",
        workers,
        "--json",
    ]);
    std::fs::write(&source, marking(2)).unwrap();
    running.signal("HUP");
    running.wait_for("reloaded; all packets");
    std::fs::write(&source, "control broken {").unwrap();
    running.signal("HUP");
    running.wait_for("not reloaded");
    std::fs::remove_file(&source).unwrap();
    running.signal("HUP");
    let why = running.wait_for("not reloaded");
    assert!(why.contains("cannot read"), "{why}");
    let value = running.stop("INT");
    assert_eq!(value["reloads"], 1);
    let mut packets: Vec<(u8, u64)> = read_capture(&recorded).iter().map(|p| mark_and_number(p)).collect();
    assert_eq!(packets.len() as u64, port(&value, 1, "rx_packets"));
    packets.sort_by_key(|(_, number)| *number);
    let numbers: Vec<u64> = packets.iter().map(|(_, number)| *number).collect();
    assert_eq!(
        numbers,
        (0..packets.len() as u64).collect::<Vec<_>>(),
        "no packet is missing"
    );
    let marks: Vec<u8> = packets.iter().map(|(mark, _)| *mark).collect();
    assert!(
        marks.is_sorted(),
        "none meets the old program after the first that met the new one"
    );
    assert_eq!(
        marks.last(),
        Some(&2),
        "the new one is still there after what was not right"
    );
}

#[test]
fn a_switch_stops_while_a_program_is_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("mark.p4");
    std::fs::write(&source, marking(1)).unwrap();
    let running = Running::start(&[&source.display().to_string(), "-i", "1@gen:rate=100", "--json"]);
    // Compiling this takes seconds.
    let many = "{ bit<32> x = 1; bit<32> y = x; }\n".repeat(50_000);
    std::fs::write(&source, marking(2).replacen("apply {", &format!("apply {{ {many}"), 1)).unwrap();
    running.signal("HUP");
    std::thread::sleep(Duration::from_millis(300));
    let value = running.stop("TERM");
    assert_eq!((&value["final"], &value["reloads"]), (&true.into(), &0.into()));
}

#[test]
fn a_reload_loses_no_packet_and_a_broken_program_changes_nothing() {
    reload("1");
}

#[test]
fn workers_reload_together() {
    reload("2");
}

#[test]
fn packets_of_a_program_with_shared_state_meet_one_worker() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("counting.p4");
    let counting = program(
        "",
        "register<bit<32>>(1) seen;\n\
        apply { seen.read(m.n, 0); m.n = m.n + 1; seen.write(0, m.n); h.ethernet.src = (bit<48>) m.n; s.egress_spec = 2; }",
    );
    std::fs::write(&source, counting).unwrap();
    let recorded = folder.path().join("out.pcap");
    let out = weir(&[
        &source.display().to_string(),
        "-i",
        "1@gen:count=3000,flows=50",
        "-i",
        &format!("2@pcap:{},{}", empty_capture(folder.path()), recorded.display()),
        "-i",
        "3@gen:count=3000,flows=50",
        "--workers",
        "2",
        "--json",
    ]);
    assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
    assert!(
        stderr(&out).contains("worker 0 processes all packets")
            && stderr(&out).contains("the register I.seen (")
            && stderr(&out).contains("counting.p4:10)"),
        "{}",
        stderr(&out)
    );
    let mut numbers: Vec<u32> = read_capture(&recorded)
        .iter()
        .map(|p| u32::from_be_bytes([p[8], p[9], p[10], p[11]]))
        .collect();
    assert!(
        numbers.is_sorted(),
        "they leave in the order in which they were counted"
    );
    numbers.dedup();
    assert_eq!(
        (numbers.len(), numbers.last()),
        (6000, Some(&6000)),
        "each was counted once"
    );
    let value = last(&out);
    assert_eq!(value["workers"][1]["packets"], 0);
}

#[test]
fn only_state_that_packets_leave_for_others_keeps_them_on_one_worker() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("", "apply { s.egress_spec = 2; }", None),
        (
            "",
            "register<bit<32>>(4) limits; apply { limits.read(m.n, 0); s.egress_spec = 2; }",
            None,
        ),
        (
            "",
            "counter(4, CounterType.packets) all; apply { all.count(0); s.egress_spec = 2; }",
            None,
        ),
        (
            "",
            "meter(4, MeterType.packets) speed; apply { speed.execute_meter(0, m.n); s.egress_spec = 2; }",
            Some("the meter I.speed"),
        ),
        (
            "",
            "direct_meter<bit<32>>(MeterType.bytes) each;\n\
             action measured() { each.read(m.n); }\n\
             table t { key = { h.ethernet.dst: exact; } actions = { measured; NoAction; } default_action = NoAction; meters = each; }\n\
             apply { t.apply(); s.egress_spec = 2; }",
            Some("the direct meter I.each"),
        ),
    ];
    for (declarations, ingress, expected) in cases {
        let source = folder.path().join("state.p4");
        std::fs::write(&source, program(declarations, ingress)).unwrap();
        let out = weir(&[
            &source.display().to_string(),
            "-i",
            "1@gen:count=500,flows=100",
            "-i",
            "2@null",
            "--workers",
            "2",
            "--json",
        ]);
        let said = stderr(&out);
        assert_eq!(out.status.code(), Some(0), "{said}");
        match expected {
            Some(words) => assert!(
                said.contains("worker 0 processes all packets") && said.contains(words),
                "{said}"
            ),
            None => assert!(!said.contains("worker 0 processes all packets"), "{said}"),
        }
        let value = last(&out);
        assert_eq!(port(&value, 2, "tx_packets"), 500);
        let second = value["workers"][1]["packets"].as_u64().unwrap();
        assert_eq!(second > 0, expected.is_none(), "{value}");
    }
}

#[test]
fn a_rate_has_packets_queued_and_those_beyond_the_queue_counted() {
    let run = |capacity: &str, workers: &str| {
        let out = weir(&[
            &path("ipv4_router/ipv4_router.p4"),
            "--entries",
            &path("ipv4_router/demo.entries"),
            "-i",
            "1@gen:dst=10.0.2.10,dmac=02:00:00:00:01:01,count=60,size=500",
            "-i",
            "2@null",
            "--port-rate",
            "2=40M",
            "--queue-capacity",
            capacity,
            "--workers",
            workers,
            "--json",
        ]);
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        last(&out)
    };
    for workers in ["1", "2"] {
        let value = run("64", workers);
        assert_eq!((port(&value, 2, "tx_packets"), drops(&value, "queue-full")), (60, 0));
        let queue = &value["queues"][0];
        assert_eq!(
            (&queue["port"], &queue["depth"], &queue["capacity"]),
            (&2.into(), &0.into(), &64.into())
        );
        assert!(queue["highest"].as_u64().unwrap() > 8);
        let value = run("8", workers);
        let full = drops(&value, "queue-full");
        assert!(full > 0 && value["queues"][0]["full"] == full);
        assert_eq!(port(&value, 2, "tx_packets") + full, 60);
    }
}

#[test]
fn statistics_have_their_shape_at_every_interval_and_at_the_end() {
    let running = Running::start(&[
        &path("l2_switch/l2_switch.p4"),
        "--entries",
        &path("l2_switch/l2_switch.entries"),
        "-i",
        "1@gen:rate=5000,smac=02:00:00:00:00:0a,dmac=02:00:00:00:00:0b",
        "-i",
        "9@null",
        "--profile",
        "--stats-interval",
        "50ms",
        "--json",
    ]);
    // Long enough for a few of them; how many does not matter.
    std::thread::sleep(Duration::from_millis(400));
    running.signal("INT");
    let output = running.child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let values: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(values.len() > 1, "{text}");
    for (i, value) in values.iter().enumerate() {
        let is_last = i + 1 == values.len();
        assert_eq!(value["final"], is_last);
        for (list, keys) in [
            (
                "ports",
                &["port", "rx_packets", "rx_bytes", "tx_packets", "tx_bytes"][..],
            ),
            ("tables", &["table", "entries", "hits", "misses"]),
            ("stages", &["stage", "segment", "lookup"]),
            (
                "devices",
                &[
                    "port",
                    "device",
                    "rx_packets",
                    "rx_bytes",
                    "tx_packets",
                    "tx_bytes",
                    "rx_dropped",
                    "tx_dropped",
                    "refused",
                    "checksums_finished",
                    "segmented",
                    "failure",
                ],
            ),
            ("refused", &["port", "packets"]),
            ("workers", &["worker", "packets"]),
        ] {
            let rows = value[list].as_array().unwrap_or_else(|| panic!("no {list} in {value}"));
            let empty_is_right = !is_last && list == "ports";
            assert!(!rows.is_empty() || empty_is_right, "{list}: {value}");
            for row in rows {
                let found: Vec<&str> = row.as_object().unwrap().keys().map(String::as_str).collect();
                assert_eq!(found, keys, "{list}");
            }
        }
        for key in ["drops", "queues", "unconnected"] {
            assert!(value[key].is_array(), "{key}");
        }
        for key in ["seconds", "digests", "reloads"] {
            assert!(value[key].is_number(), "{key}");
        }
        assert_eq!(value["engine"], "jit");
    }
    let end = values.last().unwrap();
    let received = port(end, 1, "rx_packets");
    assert_eq!(
        end["unconnected"][0],
        serde_json::json!({ "port": 2, "packets": received })
    );
    assert_eq!(end["stages"][0]["segment"]["packets"], received);
    let counts = values.iter().map(|v| port(v, 1, "rx_packets"));
    assert!(counts.is_sorted());
}

#[test]
fn headers_may_grow_by_more_than_a_frame_leaves_in_front() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("grow.p4");
    let growing = "#include <core.p4>\n#include <v1model.p4>\n\
        header big_t { bit<3200> zeros; } header small_t { bit<8> x; }\n\
        struct headers_t { big_t big; small_t small; } struct meta_t { }\n\
        parser P(packet_in p, out headers_t h, inout meta_t m, inout standard_metadata_t s) {\n\
            state start { p.extract(h.small); transition accept; } }\n\
        control V(inout headers_t h, inout meta_t m) { apply { } }\n\
        control I(inout headers_t h, inout meta_t m, inout standard_metadata_t s) {\n\
            apply { h.big.setValid(); s.egress_spec = 2; } }\n\
        control E(inout headers_t h, inout meta_t m, inout standard_metadata_t s) { apply { } }\n\
        control C(inout headers_t h, inout meta_t m) { apply { } }\n\
        control D(packet_out p, in headers_t h) { apply { p.emit(h); } }\n\
        V1Switch(P(), V(), I(), E(), C(), D()) main;\n";
    std::fs::write(&source, growing).unwrap();
    for engine in ["jit", "interp"] {
        let recorded = folder.path().join("out.pcap");
        let out = weir(&[
            &source.display().to_string(),
            "-i",
            "1@gen:count=200,size=1500",
            "-i",
            &format!("2@pcap:{},{}", empty_capture(folder.path()), recorded.display()),
            "--engine",
            engine,
            "--json",
        ]);
        assert_eq!(last(&out)["engine"], engine, "{}", stderr(&out));
        let packets = read_capture(&recorded);
        assert_eq!(packets.len(), 200);
        for packet in packets {
            assert_eq!((packet.len(), &packet[..400]), (1900, &[0; 400][..]));
            assert_eq!(packet[400..406], [2, 0, 0, 0, 0, 2]);
        }
    }
}

#[test]
fn packets_longer_than_a_switch_takes_are_counted() {
    let out = weir(&[
        &path("ipv4_router/ipv4_router.p4"),
        "-i",
        "1@gen:count=7,size=20000",
        "--json",
    ]);
    let value = last(&out);
    assert_eq!((port(&value, 1, "rx_packets"), drops(&value, "too-long")), (7, 7));
}

#[test]
fn what_does_not_go_together_is_said() {
    let router = path("ipv4_router/ipv4_router.p4");
    for (arguments, words) in [
        (&["--workers", "0"][..], "no number of workers"),
        (&["--workers", "2", "--trace", "1"], "traces are of one worker"),
        (&["--engine", "both"], "no engine of a switch"),
        (&["--watch"], "draws on a terminal"),
        (&["--watch", "--json"], "cannot be used with"),
        (&["--stats-interval", "1ms"], "too often"),
    ] {
        let mut all = vec![router.as_str(), "-i", "1@null"];
        all.extend(arguments);
        let out = weir(&all);
        assert_eq!(out.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&out).contains(words), "{arguments:?}: {}", stderr(&out));
    }
}

#[test]
fn traced_packets_are_forwarded_too() {
    let out = weir(&[
        &path("ipv4_router/ipv4_router.p4"),
        "--entries",
        &path("ipv4_router/demo.entries"),
        "-i",
        "1@gen:dst=10.0.2.10,dmac=02:00:00:00:01:01,count=20",
        "-i",
        "2@null",
        "--trace",
        "7",
        "--json",
    ]);
    let said = stderr(&out);
    assert!(
        said.contains("packet 7 at port 1") && said.contains("packet 14 at port 1"),
        "{said}"
    );
    assert_eq!(said.matches(" at port 1\n").count(), 2);
    assert_eq!(port(&last(&out), 2, "tx_packets"), 20);
}
