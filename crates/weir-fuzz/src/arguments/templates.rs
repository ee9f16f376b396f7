//! Command lines as people write them.

use super::process::{BFRT, P4RUNTIME};
use crate::rng::Rng;

/// Arguments at the beginning that no change touches: what is done, and with which program.
pub(super) const FIXED: usize = 3;
/// No such program.
const NOWHERE: &str = "nowhere.p4";

/// What an option may be given: the option, and values.
type Choice = (&'static str, &'static [&'static str]);

const RUN: &[Choice] = &[
    (
        "-i",
        &[
            "1@null",
            "2@eth0",
            "3@tap:t0",
            "4@pcap:in.pcap,out.pcap",
            "5@gen:size=64,rate=1000,count=5000",
            "6@xdp:veth0",
            "7@packet:lo",
            "8@gen:smac=02:00:00:00:00:01,src=10.0.0.1,dst=::1,proto=udp,flows=9,vlan=7,seed=3",
        ],
    ),
    ("--port-rate", &["2=10M", "1=1000", "3=0.5G", "511=1k"]),
    ("--time", &["10s", "500ms", "2m", "1h"]),
    ("--stats-interval", &["1s", "100ms"]),
    ("--workers", &["1", "4", "64"]),
    ("--engine", &["jit", "interp", "both"]),
    ("--trace", &["1", "100"]),
    ("--trace-port", &["1"]),
    (
        "--p4runtime",
        &["127.0.0.1:9559", "unix:a.sock", "[::1]:9559", "localhost", ":9559"],
    ),
    ("--bfrt", &["127.0.0.1:50052", "unix:/b.sock"]),
    ("--http", &["127.0.0.1:9600", "[::]:1"]),
    ("--cpu-port", &["510"]),
    ("--device-id", &["1", "18446744073709551615"]),
    ("--queue-capacity", &["64", "1048576"]),
    ("--ring", &["64", "32768"]),
    ("--state", &["a.state"]),
    ("--state-sync", &[]),
    ("--p4-name", &["router"]),
    ("--tls-cert", &["cert.pem"]),
    ("--tls-key", &["key.pem"]),
    ("--json", &[]),
    ("--watch", &[]),
    ("-D", &["A", "A=1", "A=\"x\""]),
    ("-I", &["."]),
    ("--arch", &["v1model", "tna", "psa"]),
    ("--message-format", &["human", "short", "json"]),
];

const BENCH: &[Choice] = &[
    (
        "--mix",
        &["misses:10", "ipv4", "efcp", "actions", "extra", "misses:50,extra"],
    ),
    ("--table-entries", &["2", "1000", "1048576"]),
    (
        "--sweep",
        &[
            "entries=1,10,100",
            "size=64,128",
            "workers=1,2",
            "vector=1..64",
            "table-entries=10,1000",
        ],
    ),
    ("--distribution", &["uniform", "zipf:1.1", "zipf"]),
    ("--packet", &["0200 0000 0101", "ff:ff", "in.pcap"]),
    ("--size", &["42", "9216"]),
    ("--pool", &["1", "4096"]),
    ("--flows", &["1", "16777216"]),
    ("--vector", &["1", "64"]),
    ("--seconds", &["0.01", "1"]),
    ("--runs", &["1", "1000"]),
    ("--engine", &["jit", "interp", "both"]),
    ("--vs", &["interp", "ceiling"]),
    ("--workers", &["1", "256"]),
    ("--svg", &["a.svg"]),
    ("--json", &[]),
];

const TRACE: &[Choice] = &[
    ("--port", &["0", "1", "511", "4294967295"]),
    (
        "--packet",
        &[
            "ffffffffffff 020000000110 0800",
            "0x00",
            "02:00",
            "",
            "in.pcap",
            "0b1",
            "0000000000000000000000000000000000000000",
        ],
    ),
    ("--number", &["1", "2"]),
    ("--all", &[]),
    ("--limit", &["1", "64"]),
    ("--json", &[]),
    ("--color", &["auto", "always", "never"]),
];

/// Words of `weir ctl` after what it does.
const WORDS: &[&str] = &[
    "exact_table",
    "ternary_table",
    "lpm_table",
    "range_table",
    "initial_table",
    "idle_table",
    "selector",
    "counts",
    "meters",
    "words",
    "cells",
    "$groups",
    "groups",
    "sessions",
    "ports",
    "k=1",
    "1",
    "0x10",
    "10.0.0.0/8",
    "::1/64",
    "1&&&2",
    "1..5",
    "*",
    "02:00:00:00:00:01",
    "default",
    "priority=3",
    "NoAction",
    "set",
    "value=7",
    "v=7",
    "port=1",
    "member=1",
    "group=1",
    "packets=1",
    "bytes=2",
    "7",
    "-1",
    "cir=1",
    "replicas=1:2",
    "\"x\"",
    "h.a=1",
    "h.b=0b1",
];
const CTL: &[&str] = &[
    "show",
    "insert",
    "modify",
    "set",
    "delete",
    "default",
    "count",
    "clear",
    "tables",
    "operation",
    "state",
];

fn options(rng: &mut Rng, choices: &[Choice], all: &mut Vec<Vec<u8>>) {
    for _ in 0..rng.below(6) {
        let Some((option, values)) = rng.pick(choices) else {
            continue;
        };
        all.push(option.as_bytes().to_vec());
        all.extend(rng.pick(values).map(|v| v.as_bytes().to_vec()));
    }
}

fn owned(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|w| w.as_bytes().to_vec()).collect()
}

/// A command line; the first [`FIXED`] arguments must stay.
pub(super) fn command(rng: &mut Rng) -> Vec<Vec<u8>> {
    match rng.below(10) {
        0..4 => {
            let mut all = owned(&["run", NOWHERE, "-i", "1@null"]);
            options(rng, RUN, &mut all);
            all
        }
        4..6 => {
            let mut all = owned(&["bench", NOWHERE, "--json"]);
            options(rng, BENCH, &mut all);
            all
        }
        6 => {
            let mut all = owned(&["trace", "here.p4", "--json", "--port", "1", "--packet"]);
            let (_, packets) = TRACE[1];
            all.extend(rng.pick(packets).map(|p| p.as_bytes().to_vec()));
            options(rng, TRACE, &mut all);
            all
        }
        _ => {
            let (option, address) = rng.one([("--p4runtime", P4RUNTIME), ("--bfrt", BFRT)]);
            let mut all = owned(&["ctl", option, address]);
            all.extend(rng.pick(CTL).map(|c| c.as_bytes().to_vec()));
            for _ in 0..rng.below(5) {
                all.extend(rng.pick(WORDS).map(|w| w.as_bytes().to_vec()));
            }
            all
        }
    }
}
