//! Counters over HTTP, and what is said of calls of externs there and at the end of a run.

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

#[test]
fn calls_of_externs_are_told_with_their_execution_costs_and_cause() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/waits.p4");
    for (mode, execution, cause) in [("async", "handed-over", "forced"), ("auto", "", "")] {
        let arguments = ["--async", mode, "-i", "1@gen:size=64,rate=2000", "-i", "2@null"];
        let run = Running::start(&[&[program, "--http", "127.0.0.1:0"], &arguments[..]].concat(), "HTTP");
        let of_call = |text: &str, family: &str, label: &str| -> Option<f64> {
            let mut lines = text.lines().filter(|line| line.starts_with(&format!("{family}{{")));
            let line = lines.find(|line| line.contains(label))?;
            assert!(
                line.contains("call=\"busy_cycles\",place=\"") && line.contains("waits.p4:16\",worker=\"0\""),
                "{line}"
            );
            line.rsplit(' ').next()?.parse().ok()
        };
        let calls = |text: &str| {
            let of = |execution| of_call(text, "weir_extern_calls_total", execution).unwrap_or(0.0);
            (of("execution=\"inline\""), of("execution=\"handed-over\""))
        };
        let mut text = String::new();
        for _ in 0..1000 {
            text = get(&run.address, "/metrics").1;
            let (inline, handed_over) = calls(&text);
            if inline + handed_over > 300.0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let (inline, handed_over) = calls(&text);
        assert!(inline + handed_over > 300.0, "{text}");
        let chosen = of_call(&text, "weir_extern_handed_over", &format!("cause=\"{cause}"));
        assert!(chosen.is_some_and(|c| c == 0.0 || c == 1.0), "{text}");
        let cost = of_call(&text, "weir_extern_cost_cycles", &format!("execution=\"{execution}"));
        assert!(cost.is_some_and(|cost| cost > 0.0), "{text}");
        if mode == "async" {
            assert!(chosen == Some(1.0) && handed_over > 0.0, "{text}");
        }
    }
}

#[test]
fn statistics_say_how_each_call_was_executed_and_why() {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/waits.p4");
    for (more, mode, cause) in [
        (&["--async", "async"][..], "handed-over", "forced"),
        (&["--async", "sync"], "inline", "no-lane"),
        (&["--engine", "interp"], "inline", "no-lane"),
        (&[], "", ""),
    ] {
        let run = [program, "-i", "1@gen:size=64,count=20000", "-i", "2@null"];
        let (code, out, said) = weir(&[&["run"], &run[..], &["--json"], more].concat());
        assert_eq!(code, 0, "{said}");
        let last: serde_json::Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        let [call] = last["externs"].as_array().unwrap().as_slice() else {
            panic!("one call: {last}");
        };
        assert_eq!((&call["call"], &call["worker"]), (&"busy_cycles".into(), &0.into()));
        assert!(call["place"].as_str().unwrap().ends_with("waits.p4:16"), "{call}");
        let count = |name: &str| call[name].as_u64().unwrap();
        match more {
            ["--engine", _] => assert_eq!((count("inline"), count("handed_over")), (0, 0)),
            _ => assert_eq!(count("inline") + count("handed_over"), 20_000, "{call}"),
        }
        if !more.is_empty() {
            assert_eq!((&call["mode"], &call["cause"]), (&mode.into(), &cause.into()));
        } else {
            // By measured cost: both were measured.
            assert!(call["inline_cycles"].as_f64().is_some_and(|c| c > 0.0), "{call}");
            assert!(call["suspension_cycles"].as_f64().is_some_and(|c| c > 0.0), "{call}");
            assert!(
                ["cheaper", "hysteresis"].contains(&call["cause"].as_str().unwrap()),
                "{call}"
            );
        }
        // And as text.
        let (_, out, _) = weir(&[&["run"], &run[..], more].concat());
        assert!(out.contains("@async call") && out.contains("waits.p4:16"), "{out}");
    }
}
