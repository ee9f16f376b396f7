//! Two `ipsec_gateway` switches back to back, between the networks of two namespaces. ping and
//! iperf3 go through their tunnel, and between them nothing passes but ESP.
//!
//! These tests need root, iproute2, ping and iperf3. In CI they must run; elsewhere a test that
//! cannot run says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

mod common;
#[path = "common/namespaces.rs"]
mod namespaces;

use common::weir;
use namespaces::{can_run, sh};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const GATEWAY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../p4/programs/ipsec_gateway/ipsec_gateway.p4"
);
const WIRE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/common/esp_only.p4");

/// The keys of the two directions: AES-128 and AES-256, with four bytes of salt.
const KEYS: [&str; 2] = [
    "000102030405060708090a0b0c0d0e0f10111213",
    "6465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f8081828384858687",
];

/// Hosts in the namespaces `NAME-1` and `NAME-2`, and links from them to the two gateways, and from
/// these to the wire.
struct Networks {
    name: &'static str,
}

impl Networks {
    fn new(name: &'static str) -> Self {
        let networks = Networks { name };
        networks.remove();
        for side in [1, 2] {
            let (namespace, host, outer) = (
                networks.namespace(side),
                networks.link("h", side),
                networks.link("o", side),
            );
            sh(&format!("ip netns add {namespace}"));
            sh(&format!(
                "ip link add {outer} type veth peer name {host} netns {namespace}"
            ));
            // Room for what ESP adds.
            sh(&format!(
                "ip -n {namespace} link set {host} address 02:00:00:00:0{side}:10 mtu 1400"
            ));
            sh(&format!("ip -n {namespace} addr add 10.{side}.0.10/16 dev {host}"));
            sh(&format!("ip -n {namespace} link set lo up"));
            sh(&format!("ip -n {namespace} link set {host} up"));
            sh(&format!("ip link set {outer} up"));
            let gateway = format!("10.{side}.0.1");
            sh(&format!(
                "ip -n {namespace} neigh add {gateway} lladdr 02:00:00:00:0{side}:01 dev {host}"
            ));
            sh(&format!("ip -n {namespace} route add default via {gateway}"));
            // Between the gateway and the wire.
            let (near, far) = (networks.link("g", side), networks.link("w", side));
            sh(&format!("ip link add {near} type veth peer name {far}"));
            sh(&format!("ip link set {near} up && ip link set {far} up"));
        }
        networks
    }

    fn namespace(&self, side: u32) -> String {
        format!("{}-{side}", self.name)
    }

    fn link(&self, what: &str, side: u32) -> String {
        format!("{}{what}{side}", self.name)
    }

    fn remove(&self) {
        for side in [1, 2] {
            let _ = Command::new("ip")
                .args(["netns", "del", &self.namespace(side)])
                .output();
            for what in ["o", "g"] {
                let _ = Command::new("ip")
                    .args(["link", "del", &self.link(what, side)])
                    .output();
            }
        }
    }

    /// Runs a command in a host's namespace; whether it succeeded, and its output.
    fn within(&self, side: u32, command: &str) -> (bool, String) {
        let command = format!("ip netns exec {} {command}", self.namespace(side));
        let out = Command::new("sh").args(["-c", &command]).output().unwrap();
        let said = [out.stdout, out.stderr].concat();
        (out.status.success(), String::from_utf8_lossy(&said).into_owned())
    }
}

impl Drop for Networks {
    fn drop(&mut self) {
        self.remove();
    }
}

/// A `weir run` that ends with this.
struct Switch {
    child: Child,
    /// What it said until it ran.
    said: Vec<String>,
}

impl Switch {
    fn start(arguments: &[String]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .args(arguments)
            .args(["--time", "300s", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut said = Vec::new();
        while !said.iter().any(|line: &String| line.contains("running")) {
            let line = lines.next();
            said.push(line.unwrap_or_else(|| panic!("weir run did not start: {said:?}")));
        }
        std::thread::spawn(move || lines.for_each(drop));
        Switch { child, said }
    }

    fn address(&self, server: &str) -> &str {
        let prefix = format!("{server} at ");
        let found = self.said.iter().find_map(|line| line.strip_prefix(&prefix));
        found.unwrap_or_else(|| panic!("it does not serve {server}: {:?}", self.said))
    }

    /// Ends it; what it has counted.
    fn stop(mut self) -> serde_json::Value {
        sh(&format!("kill {}", self.child.id()));
        let mut out = String::new();
        std::io::Read::read_to_string(&mut self.child.stdout.take().unwrap(), &mut out).unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(out.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The gateway of a side, with its keys set by `weir ctl`.
fn gateway(networks: &Networks, side: u32, folder: &std::path::Path, more: &[&str]) -> Switch {
    let other = 3 - side;
    let entries = folder.join(format!("{side}.entries"));
    let text = format!(
        "add tunnels meta.inner.dst_addr:0x0a0{other}0000/16 protect(sa:0, spi:0x{side}001, local:0xc000020{side}, \
         remote:0xc000020{other}, src_mac:0x02000000000{side}, dst_mac:0x02000000000{other}, port:2)\n\
         add associations hdr.outer.dst_addr:0xc000020{side} hdr.esp.spi:0x{other}001 \
         unprotect(sa:7, src_mac:0x020000000{side}01, dst_mac:0x020000000{side}10, port:1)\n"
    );
    std::fs::write(&entries, text).unwrap();
    // One gateway is controlled by P4Runtime, the other one by BF Runtime.
    let (server, option) = match side {
        1 => ("P4Runtime", "--p4runtime"),
        _ => ("BF Runtime", "--bfrt"),
    };
    let mut arguments = vec![
        GATEWAY.to_owned(),
        "--entries".to_owned(),
        entries.display().to_string(),
    ];
    for (port, what) in [(1, "o"), (2, "g")] {
        arguments.extend(["-i".to_owned(), format!("{port}@{}", networks.link(what, side))]);
    }
    arguments.extend([option.to_owned(), "127.0.0.1:0".to_owned()]);
    arguments.extend(more.iter().map(|a| (*a).to_owned()));
    let switch = Switch::start(&arguments);
    let (out, back) = (KEYS[side as usize - 1], KEYS[other as usize - 1]);
    for (instance, index, key) in [("outbound", "0", out), ("inbound", "7", back)] {
        let mut ctl = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args([
                "ctl",
                option,
                switch.address(server),
                "key",
                "set",
                instance,
                index,
                "-",
            ])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        ctl.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
        assert!(ctl.wait().unwrap().success(), "the key of {instance}");
    }
    let (code, set, said) = weir(&["ctl", option, switch.address(server), "key", "list", "inbound"]);
    assert_eq!((code, set.as_str()), (0, "7\n"), "{said}");
    switch
}

/// Packets that a port of a switch has sent.
fn sent(counts: &serde_json::Value, port: u32) -> u64 {
    let ports = counts["ports"].as_array().unwrap();
    let found = ports.iter().find(|p| p["port"] == port);
    found.map_or(0, |p| p["tx_packets"].as_u64().unwrap())
}

/// ping and iperf3 between the hosts, with gateways that are started with these arguments.
fn carries_ping_and_iperf3(name: &'static str, more: &[&str]) {
    if !can_run() {
        return;
    }
    let networks = Networks::new(name);
    let folder = tempfile::tempdir().unwrap();
    let gateways = [1, 2].map(|side| gateway(&networks, side, folder.path(), more));
    let mut wire = vec![WIRE.to_owned()];
    for side in [1, 2] {
        wire.extend(["-i".to_owned(), format!("{side}@{}", networks.link("w", side))]);
    }
    wire.extend(["-i".to_owned(), "3@null".to_owned()]);
    let wire = Switch::start(&wire);

    for size in ["56", "1372"] {
        let (ok, said) = networks.within(1, &format!("ping -c 5 -i 0.2 -w 30 -s {size} 10.2.0.10"));
        assert!(ok, "ping of {size} bytes: {said}");
    }
    let server = Command::new("ip")
        .args(["netns", "exec", &networks.namespace(2), "iperf3", "-s", "-1"])
        .stdout(Stdio::null())
        .spawn();
    let mut server = server.unwrap();
    // The server listens a moment after it was started.
    let mut answer = (false, String::new());
    for _ in 0..50 {
        answer = networks.within(1, "iperf3 -c 10.2.0.10 -n 8M --connect-timeout 5000 -J");
        // As JSON, an error is no failure of iperf3.
        answer.0 &= !answer.1.contains("\"error\"");
        if answer.0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let _ = server.kill();
    let _ = server.wait();
    assert!(answer.0, "iperf3: {}", answer.1);
    let report: serde_json::Value = serde_json::from_str(&answer.1).unwrap();
    // What the receiver reports may lack what is still on its way; the wire has counted it.
    let sent_bytes = report["end"]["sum_sent"]["bytes"].as_f64();
    assert!(sent_bytes.is_some_and(|bytes| bytes > 8e6), "{report}");

    let counts = wire.stop();
    // Two pings, and the transfer in packets of at most 1,400 bytes.
    assert!(sent(&counts, 2) > 800 && sent(&counts, 1) > 20, "{counts}");
    assert_eq!(sent(&counts, 3), 0, "what crosses the middle is ESP: {counts}");
    for gateway in gateways {
        let counts = gateway.stop();
        assert!(sent(&counts, 1) > 0 && sent(&counts, 2) > 0, "{counts}");
        let calls = counts["externs"].as_array().unwrap();
        assert_eq!(calls.len(), 2, "{counts}");
    }
}

#[test]
fn two_gateways_carry_ping_and_iperf3() {
    carries_ping_and_iperf3("wga", &[]);
}

#[test]
fn two_gateways_whose_packets_wait_carry_ping_and_iperf3() {
    carries_ping_and_iperf3("wgw", &["--async", "async"]);
}
