//! `weir int` as a user runs it: reports by UDP and from captures, results by SQL and as a page.

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weir_collector::synthetic::{DOMAIN, Packet, hop};
use weir_int::FlowKey;

fn weir(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["int"].iter().chain(arguments))
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// What a command with this exit code prints to stderr.
fn refused(arguments: &[&str]) -> String {
    let output = weir(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A packet of a flow over two nodes, whose first hop takes `latency` ns.
fn packet(port: u16, latency: u64, number: u32) -> Packet {
    let flow = FlowKey {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
        source_port: port,
        destination_port: 80,
        protocol: 17,
    };
    Packet {
        flow,
        bytes: 500,
        hops: vec![
            hop(1, (1, 2), (0, 9), 1000, 1000 + latency),
            hop(2, (3, 4), (1, 7), 1500 + latency, 1700 + latency),
        ],
        number: Some(number),
    }
}

/// Ethernet, IPv4 and UDP around a report.
fn frame(report: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((report.len() as u16 + 28).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 9, 1, 10, 0, 9, 2, 0x80, 0, 0x17, 0x0c]);
    frame.extend((report.len() as u16 + 8).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(report);
    frame
}

/// A capture of reports: report 5 is lost, one is damaged, and one frame is none of ours.
fn capture(path: &Path) {
    let mut writer = weir_io::pcap::PcapWriter::new(std::fs::File::create(path).unwrap()).unwrap();
    for n in (0..100_u32).filter(|n| *n != 5) {
        let report = packet(4000 + (n % 4) as u16, 100 + u64::from(n), n / 4).sink_report(n);
        writer.write(&frame(&report), 1_000_000_000 * u64::from(n + 1)).unwrap();
    }
    writer.write(&frame(&[0x90, 1, 2, 3]), 101_000_000_000).unwrap();
    writer.write(&[0xff; 60], 101_000_000_000).unwrap();
    writer.flush().unwrap();
}

#[test]
fn a_capture_becomes_results_that_sql_and_views_show() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (pcap, db, page) = (at("reports.pcap"), at("int.db"), at("report.html"));
    capture(Path::new(&pcap));
    let domain = DOMAIN.to_string();
    for threads in ["1", "3"] {
        let _ = std::fs::remove_file(&db);
        let collected = weir(&[
            "collect",
            "--capture",
            &pcap,
            "-o",
            &db,
            "--dscp",
            "0x17",
            "--flow-numbers",
            &domain,
            "--threads",
            threads,
            "--json",
        ]);
        // Reports were lost and malformed.
        assert_eq!(collected.status.code(), Some(1), "{collected:?}");
        let totals: serde_json::Value = serde_json::from_slice(&collected.stdout).unwrap();
        assert_eq!((&totals["datagrams"], &totals["reports"]), (&100.into(), &99.into()));
        assert_eq!(
            (&totals["lost"], &totals["malformed"]["report_version"]),
            (&1.into(), &1.into())
        );
        let rows = weir(&[
            "query",
            &db,
            "SELECT count(DISTINCT interval), total(merged(histogram)), minimum(merged(histogram)), maximum(merged(histogram))
             FROM ports WHERE port = '1:2'",
            "--json",
        ]);
        let rows: serde_json::Value = serde_json::from_slice(&rows.stdout).unwrap();
        let values: Vec<u64> = rows[0]
            .as_object()
            .unwrap()
            .values()
            .map(|v| v.as_u64().unwrap())
            .collect();
        // 100 seconds in intervals of 10.
        assert_eq!(values[..2], [10, 99]);
        assert!(
            (99..=101).contains(&values[2]) && (198..=201).contains(&values[3]),
            "{values:?}"
        );
        let flows = weir(&["show", "flows", &db, "--json"]);
        let flows: serde_json::Value = serde_json::from_slice(&flows.stdout).unwrap();
        assert_eq!(flows.as_array().unwrap().len(), 4);
        assert_eq!(
            flows
                .as_array()
                .unwrap()
                .iter()
                .map(|f| f["lost"].as_i64().unwrap())
                .sum::<i64>(),
            1
        );
    }
    if cfg!(feature = "parquet") {
        let raw = at("raw.parquet");
        let arguments = ["collect", "--capture", &pcap, "--raw", &raw, "--dscp", "0x17"];
        assert_eq!(weir(&arguments).status.code(), Some(1));
        let bytes = std::fs::read(&raw).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        assert_eq!(weir(&arguments).status.code(), Some(2), "a file that is there is kept");
    }
    for view in [
        "paths",
        "ports",
        "queues",
        "links",
        "events",
        "exporters",
        "clocks",
        "intervals",
        "unused",
    ] {
        let shown = weir(&["show", view, &db]);
        assert_eq!(shown.status.code(), Some(0), "{shown:?}");
    }
    let links = stdout(&weir(&["show", "links", &db]));
    assert!(links.contains("1:2 -> 2:3"), "{links}");
    let written = weir(&["report", &db, "-o", &page]);
    assert_eq!(written.status.code(), Some(0), "{written:?}");
    let html = std::fs::read_to_string(&page).unwrap();
    for part in ["<svg", "1 reports were lost on the way", "1:2 -&gt; 2:3", "</html>"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn reports_by_udp_are_all_used_and_given_to_prometheus() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("int.db").display().to_string();
    let mut collector = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args([
            "int",
            "collect",
            "--listen",
            "127.0.0.1:0",
            "-o",
            &db,
            "--dscp",
            "0x17",
            "--interval",
            "200ms",
        ])
        .args(["--http", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(collector.stderr.take().unwrap());
    let mut address = |before: &str| -> String {
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        line.trim()
            .strip_prefix(before)
            .unwrap_or_else(|| panic!("{line}"))
            .to_owned()
    };
    let listening: SocketAddr = address("reports from UDP at ").parse().unwrap();
    let metrics = address("metrics at http://");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..500 {
        socket.send_to(&packet(4000, 100, n).sink_report(n), listening).unwrap();
    }
    let (host, path) = metrics.split_once('/').unwrap();
    let get = || {
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let request = format!("GET /{path} HTTP/1.0\r\nHost: {host}\r\n\r\n");
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        std::io::read_to_string(stream).unwrap()
    };
    while !get().contains("weir_int_reports_total 500") {
        std::thread::yield_now();
    }
    let id = collector.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(collector.wait().unwrap().code(), Some(0));
    let rows = stdout(&weir(&[
        "query",
        &db,
        "SELECT sum(reports), sum(datagrams) FROM intervals",
    ]));
    let values: Vec<&str> = rows.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!(values, ["500", "500"]);
}

/// A server that answers every request with 200 and keeps their bodies; the URL of it.
fn http_server() -> (String, std::sync::Arc<std::sync::Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let bodies = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&bodies);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            std::io::Read::read_exact(&mut stream, &mut body).unwrap();
            kept.lock().unwrap().push(String::from_utf8(body).unwrap());
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            std::io::Write::write_all(stream.get_mut(), answer.as_bytes()).unwrap();
        }
    });
    (url, bodies)
}

#[test]
fn results_go_to_clickhouse_where_that_is_built_in() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = folder.path().join("reports.pcap").display().to_string();
    capture(Path::new(&pcap));
    let (url, bodies) = http_server();
    let arguments = ["collect", "--capture", &pcap, "--dscp", "0x17", "--clickhouse", &url];
    if !cfg!(feature = "clickhouse") {
        assert!(refused(&arguments).contains("--features clickhouse"));
        return;
    }
    assert_eq!(weir(&arguments).status.code(), Some(1));
    let bodies = bodies.lock().unwrap();
    let made = bodies
        .iter()
        .filter(|body| body.starts_with("CREATE TABLE IF NOT EXISTS"))
        .count();
    assert_eq!(made, 3);
    let rows = bodies
        .iter()
        .filter(|body| body.starts_with("INSERT INTO weir_int_histograms"));
    let rows: Vec<&str> = rows.flat_map(|body| body.lines().skip(1)).collect();
    let of_link = rows
        .iter()
        .map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
    let values: u64 = of_link
        .filter(|row| row["kind"] == "link")
        .map(|row| row["values"].as_u64().unwrap())
        .sum();
    assert_eq!(values, 99);
}

#[test]
fn the_demo_finds_the_slow_hop_and_the_lossy_link() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("demo.html").display().to_string();
    let output = weir(&["demo", "-o", &page, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let outcome: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |name: &str| outcome[name].as_u64().unwrap();
    // Hosts get what was sent, byte for byte, and what the link lost is all that is missing.
    assert_eq!(count("packets_changed"), 0);
    assert_eq!(
        count("packets_sent"),
        count("packets_delivered") + count("packets_lost_by_link")
    );
    assert_eq!(count("reports"), count("packets_delivered"));
    let findings = outcome["findings"].to_string();
    for finding in [
        "port 2:3: median latency",
        "link 1 -> 2: ",
        "the clock of node 3 is 3.00 ms ahead of that of node 1",
    ] {
        assert!(findings.contains(finding), "{findings}");
    }
    assert!(!findings.contains("link 2 -> 3"), "{findings}");
}

#[test]
fn wrong_input_is_refused_with_what_was_expected() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (text, db) = (at("text"), at("int.db"));
    std::fs::write(&text, "no capture, and no file of results").unwrap();
    let has = |arguments: &[&str], part: &str| {
        let text = refused(arguments);
        assert!(text.contains(part), "{arguments:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    };
    has(&["collect"], "--listen");
    has(&["collect", "--capture", &text], "text");
    has(&["collect", "--capture", &at("absent")], "absent");
    has(&["collect", "--listen", "127.0.0.1:0", "-o", &text], "no SQLite file");
    has(&["collect", "--listen", "127.0.0.1:0", "--dscp", "64"], "0 to 63");
    has(
        &["collect", "--listen", "127.0.0.1:0", "--delta", "5"],
        "go with a limit",
    );
    if !cfg!(feature = "parquet") {
        has(
            &["collect", "--listen", "127.0.0.1:0", "--raw", &at("raw")],
            "--features parquet",
        );
    }
    has(
        &["collect", "--listen", "127.0.0.1:0", "--interval", "1ms"],
        "100ms to 1d",
    );
    has(
        &["collect", "--listen", "127.0.0.1:0", "--queue-limit", "1:2"],
        "less than the first",
    );
    has(&["show", "flows", &text], "no SQLite file");
    has(&["show", "flows", &at("absent")], "absent");
    let empty = weir(&["collect", "--listen", "127.0.0.1:0", "-o", &db, "--duration", "100ms"]);
    assert_eq!(empty.status.code(), Some(0), "{empty:?}");
    has(&["show", "flows", &db, "--sort", "colour"], "there are flow, path");
    has(&["query", &db, "DROP TABLE flows"], "only reads");
    has(&["query", &db, "SELECT"], "incomplete input");
    has(&["report", &db, "-o", &db], "is an SQLite file");
    assert_eq!(weir(&["report", &db, "-o", &at("empty.html")]).status.code(), Some(0));
}
