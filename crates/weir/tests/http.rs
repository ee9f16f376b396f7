//! Counters over HTTP.

#![cfg(target_os = "linux")]

mod common;

use common::{Running, weir};
use std::io::{Read, Write};
use std::net::TcpStream;

const SWITCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../p4/programs/l2_switch/l2_switch.p4");

/// Starts a switch that serves HTTP.
fn start(more: &[&str]) -> Running {
    Running::start(&[&[SWITCH, "--http", "127.0.0.1:0"], more].concat(), "HTTP")
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
    let run = start(&["-i", "1@gen:size=64,rate=2000", "-i", "2@null", "--workers", "2"]);
    let value = |text: &str, sample: &str| -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(sample));
        line.map_or(0, |value| value.trim().parse().unwrap())
    };
    let mut text = String::new();
    for _ in 0..500 {
        text = get(&run.address, "/metrics").1;
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
    let run = start(&["-i", "1@gen:size=64,rate=10"]);
    assert_eq!(get(&run.address, "/healthz").0, "HTTP/1.1 200 OK");
    assert_eq!(get(&run.address, "/readyz").0, "HTTP/1.1 200 OK");
    assert_eq!(get(&run.address, "/nothing").0, "HTTP/1.1 404 Not Found");
    // What is no HTTP disturbs nobody.
    let mut stream = TcpStream::connect(&run.address).unwrap();
    stream.write_all(&[0xff; 1000]).unwrap();
    assert_eq!(get(&run.address, "/healthz").0, "HTTP/1.1 200 OK");
}

#[test]
fn calls_of_controllers_are_counted() {
    let more = ["-i", "1@null", "--p4runtime", "127.0.0.1:0"];
    let run = Running::start(&[&[SWITCH, "--http", "127.0.0.1:0"], &more[..]].concat(), "HTTP");
    let said = run.said.iter().find_map(|line| line.strip_prefix("P4Runtime at "));
    let (code, _, error) = weir(&["ctl", "--p4runtime", said.unwrap(), "tables"]);
    assert_eq!(code, 0, "{error}");
    let text = get(&run.address, "/metrics").1;
    let call = "weir_rpc_calls_total{service=\"P4Runtime\",method=\"GetForwardingPipelineConfig\",code=\"Ok\"} ";
    let count = text.lines().find_map(|line| line.strip_prefix(call));
    assert!(count.is_some_and(|count| count.parse::<u64>().unwrap() > 0), "{text}");
    assert!(
        text.contains("weir_controller_streams{service=\"P4Runtime\"} 0\n"),
        "{text}"
    );
}
