//! Counters over HTTP.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const SWITCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs/l2_switch/l2_switch.p4");

struct Run(Child);

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a switch; where its HTTP is.
fn start(more: &[&str]) -> (Run, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["run", SWITCH, "--http", "127.0.0.1:0"])
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let address = lines
        .find_map(|line| line.strip_prefix("HTTP at ").map(str::to_owned))
        .unwrap();
    std::thread::spawn(move || lines.for_each(drop));
    (Run(child), address)
}

/// Status line and body.
fn get(address: &str, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: weir\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

#[test]
fn counters_are_told_in_the_format_of_prometheus() {
    let (_run, address) = start(&["-i", "1@gen:size=64,rate=2000", "-i", "2@null", "--workers", "2"]);
    let value = |text: &str, sample: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        line.map_or(0, |value| value.trim().parse().unwrap())
    };
    let mut text = String::new();
    for _ in 0..500 {
        text = get(&address, "/metrics").1;
        if value(&text, "weir_port_received_packets_total{port=\"1\"} ") > 100 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let packets = value(&text, "weir_port_received_packets_total{port=\"1\"} ");
    assert!(packets > 100, "{text}");
    assert_eq!(
        value(&text, "weir_port_received_bytes_total{port=\"1\"} "),
        64 * packets,
        "{text}"
    );
    assert!(text.contains("weir_table_misses_total{table=\""), "{text}");
    assert!(text.contains("engine=\"jit\""), "{text}");
    // Every sample belongs to a family that was described, and is a number.
    let mut family = String::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            family = rest.split(' ').next().unwrap().to_owned();
        } else if !line.starts_with('#') {
            assert_eq!(line.split(['{', ' ']).next(), Some(family.as_str()));
            let value = line.rsplit(' ').next().unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}

#[test]
fn health_and_readiness_are_told() {
    let (_run, address) = start(&["-i", "1@gen:size=64,rate=10"]);
    assert_eq!(get(&address, "/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(get(&address, "/readyz").0, "HTTP/1.1 200 OK");
    assert_eq!(get(&address, "/nothing").0, "HTTP/1.1 404 Not Found");
    // What is no HTTP disturbs nobody.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(&[0xff; 1000]).unwrap();
    assert_eq!(get(&address, "/healthz").0, "HTTP/1.1 200 OK");
}
