//! `weir run` between network namespaces: real kernels talk through it.
//!
//! These tests need root, iproute2, ping and iperf3. In CI they must run; elsewhere a test that
//! cannot run says so and passes.
#![allow(clippy::print_stderr, reason = "its reader is whoever runs it")]

#[path = "common/namespaces.rs"]
mod namespaces;

use namespaces::{can_run, sh};
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Two hosts, each on a veth pair whose other end is a port of the switch.
struct Network {
    name: &'static str,
    switch: Option<Child>,
}

impl Network {
    fn new(name: &'static str) -> Self {
        let network = Network { name, switch: None };
        network.remove();
        for (host, side) in [("a", 1), ("b", 2)] {
            let namespace = format!("{name}-{host}");
            let (inner, outer) = (format!("{name}{host}0"), format!("{name}{host}1"));
            sh(&format!("ip netns add {namespace}"));
            sh(&format!(
                "ip link add {outer} type veth peer name {inner} netns {namespace}"
            ));
            sh(&format!(
                "ip -n {namespace} link set {inner} address 02:00:00:00:0{side}:10"
            ));
            sh(&format!("ip -n {namespace} addr add 10.0.{side}.10/24 dev {inner}"));
            sh(&format!("ip -n {namespace} link set lo up"));
            sh(&format!("ip -n {namespace} link set {inner} up"));
            sh(&format!("ip link set {outer} up"));
            sh(&format!(
                "ip -n {namespace} neigh add 10.0.{side}.1 lladdr 02:00:00:00:0{side}:01 dev {inner}"
            ));
            sh(&format!("ip -n {namespace} route add default via 10.0.{side}.1"));
        }
        network
    }

    fn remove(&self) {
        for host in ["a", "b"] {
            let _ = Command::new("ip")
                .args(["netns", "del", &format!("{}-{host}", self.name)])
                .output();
            let _ = Command::new("ip")
                .args(["link", "del", &format!("{}{host}1", self.name)])
                .output();
        }
    }

    fn start(&mut self, program: &str, entries: &str) {
        let ports = [format!("1@{}a1", self.name), format!("2@{}b1", self.name)];
        self.start_on(program, entries, &ports, 1);
    }

    fn start_on(&mut self, program: &str, entries: &str, ports: &[String], workers: usize) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .arg(folder.join(program))
            .arg("--entries")
            .arg(folder.join(entries))
            .args(ports.iter().flat_map(|p| ["-i", p]))
            .args(["--time", "120s", "--json", "--workers", &workers.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // It says when it runs.
        let mut stderr = child.stderr.take().unwrap();
        let mut said = String::new();
        let mut byte = [0u8; 1];
        let started = Instant::now();
        while !said.contains("running") {
            let read = stderr.read(&mut byte).unwrap();
            assert!(
                read > 0 && started.elapsed() < Duration::from_secs(30),
                "weir run did not start: {said}"
            );
            said.push(char::from(byte[0]));
        }
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        self.switch = Some(child);
    }

    fn on(&self, host: &str, command: &str) -> String {
        let line = format!("ip netns exec {}-{host} {command}", self.name);
        let out = Command::new("sh").args(["-c", &line]).output().unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        assert!(out.status.success(), "{command} on {host}: {text}");
        text
    }

    /// Stops the switch and gives its statistics.
    fn stop(&mut self) -> serde_json::Value {
        let child = self.switch.take().unwrap();
        sh(&format!("kill -INT {}", child.id()));
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(0));
        serde_json::from_slice(&out.stdout).unwrap()
    }

    fn tcp(&self) -> f64 {
        let server = Command::new("ip")
            .args(["netns", "exec", &format!("{}-b", self.name), "iperf3", "-s", "-1"])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Ended(server);
        // 5201 in hexadecimal, listening.
        let started = Instant::now();
        while !self.on("b", "cat /proc/net/tcp /proc/net/tcp6").contains(":1451 ") {
            assert!(started.elapsed() < Duration::from_secs(20), "iperf3 does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = self.on("a", "iperf3 -c 10.0.2.10 -t 2 -J");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let bytes = value["end"]["sum_received"]["bytes"].as_f64();
        let bytes = bytes.unwrap_or_else(|| panic!("iperf3 says {text}"));
        let _ = server.0.wait();
        bytes
    }
}

/// A process that ends with the test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(mut child) = self.switch.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
        self.remove();
    }
}

fn ping_and_tcp_pass(name: &'static str, program: &str, entries: &str) {
    if !can_run() {
        return;
    }
    let mut network = Network::new(name);
    network.start(program, entries);
    let pings = network.on("a", "ping -c 5 -i 0.2 -W 2 10.0.2.10");
    assert!(pings.contains("5 received") && pings.contains("ttl=63"), "{pings}");
    let bytes = network.tcp();
    assert!(bytes > 100_000.0, "TCP brought {bytes} bytes in two seconds");
    let stats = network.stop();
    let drops = stats["drops"].to_string();
    eprintln!("{name}: {:.1} Mbit/s of TCP, drops {drops}", bytes * 8.0 / 2e6);
    let port = |n: u64| {
        stats["ports"]
            .as_array()
            .unwrap()
            .iter()
            .find(|p| p["port"] == n)
            .unwrap()
            .clone()
    };
    assert!(port(1)["tx_packets"].as_u64().unwrap() > 5 && port(2)["tx_packets"].as_u64().unwrap() > 5);
}

#[test]
fn ping_and_tcp_cross_the_ipv4_router() {
    ping_and_tcp_pass("wrt", "ipv4_router/ipv4_router.p4", "ipv4_router/demo.entries");
}

#[test]
fn ping_and_tcp_cross_the_rina_router() {
    ping_and_tcp_pass("wrr", "rina_router/rina_router.p4", "rina_router/rina_router.entries");
}

/// Veth pairs: one end is a port of the switch, the other is ours.
struct Wires {
    name: &'static str,
    ports: u32,
}

impl Wires {
    fn new(name: &'static str, ports: u32, queues: u32) -> Self {
        let wires = Wires { name, ports };
        wires.remove();
        for port in 1..=ports {
            let queues = format!("numrxqueues {queues} numtxqueues {queues}");
            sh(&format!(
                "ip link add {name}{port}s {queues} type veth peer name {name}{port}t {queues}"
            ));
            for end in ["s", "t"] {
                // Nothing but the test's frames may be on the wire.
                sh(&format!(
                    "sysctl -qw net.ipv6.conf.{name}{port}{end}.disable_ipv6=1 || true"
                ));
                sh(&format!("ip link set {name}{port}{end} up"));
            }
        }
        wires
    }

    fn remove(&self) {
        for port in 1..=self.ports {
            let _ = Command::new("ip")
                .args(["link", "del", &format!("{}{port}s", self.name)])
                .output();
        }
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Sends what a packet test sends and waits for what it expects, on real interfaces.
fn replay(test: &Path, sockets: &mut [Box<dyn weir_io::Device>]) {
    let parsed = weir_stf::parse(&std::fs::read_to_string(test).unwrap()).unwrap();
    for line in &parsed.lines {
        match &line.directive {
            weir_stf::Directive::Packet { port, bytes } => {
                let frame = weir_io::Frame {
                    data: bytes,
                    time_ns: 0,
                };
                assert_eq!(sockets[*port as usize - 1].transmit(&[frame]).unwrap(), 1);
            }
            weir_stf::Directive::Expect(alternatives) => {
                let [weir_stf::Alternative::Packet(port, Some(pattern))] = &alternatives[..] else {
                    panic!("one packet")
                };
                let wanted = pattern.digits.to_ascii_lowercase();
                let device = &mut sockets[*port as usize - 1];
                let started = Instant::now();
                let mut seen = Vec::new();
                loop {
                    let mut batch = weir_io::Batch::new(16);
                    device.receive(&mut batch).unwrap();
                    seen.extend(
                        batch
                            .iter()
                            .map(|f| f.data.iter().map(|b| format!("{b:02x}")).collect::<String>()),
                    );
                    if seen.iter().any(|s| s.starts_with(&wanted)) {
                        break;
                    }
                    assert!(
                        started.elapsed() < Duration::from_secs(5),
                        "{}: {wanted} did not come, but {seen:?}",
                        test.display()
                    );
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
            _ => {}
        }
    }
}

fn efcp_crosses_the_rina_router(name: &'static str, kind: &str, queues: u32, workers: usize) {
    if !can_run() {
        return;
    }
    let _wires = Wires::new(name, 3, queues);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/rina_router");
    let mut network = Network { name, switch: None };
    let ports = [1, 2, 3].map(|port| format!("{port}@{kind}{name}{port}s"));
    let (program, entries) = ("rina_router/rina_router.p4", "rina_router/rina_router.entries");
    network.start_on(program, entries, &ports, workers);
    let mut sockets: Vec<Box<dyn weir_io::Device>> = (1..=3)
        .map(|port| {
            weir_io::open(&weir_io::DeviceSpec::Packet(
                format!("{name}{port}t"),
                weir_io::Sending::Queued,
            ))
            .unwrap()
        })
        .collect();
    for (from, to) in [
        ("untagged", "untagged"),
        ("untagged", "tagged"),
        ("tagged", "untagged"),
        ("tagged", "tagged"),
    ] {
        for protocol in ["efcp", "ipv4"] {
            let test = format!("rina_router-{protocol}_{from}_to_{to}.stf");
            replay(&folder.join(test), &mut sockets);
        }
    }
    network.stop();
}

#[test]
fn efcp_crosses_the_rina_router_in_every_encapsulation() {
    efcp_crosses_the_rina_router("wre", "", 1, 1);
}

#[test]
fn efcp_crosses_two_workers_that_have_a_queue_of_every_port() {
    efcp_crosses_the_rina_router("wrq", "xdp:", 2, 2);
}

/// Sends packets to port 1 and takes what leaves port 2, with few of them under way at a time: none
/// may be missing.
fn nothing_is_lost(name: &'static str, kinds: [&str; 2], workers: usize) {
    const PACKETS: u64 = 5000;
    if !can_run() {
        return;
    }
    let _wires = Wires::new(name, 2, 1);
    let mut network = Network { name, switch: None };
    let ports = [1, 2].map(|port| format!("{port}@{}{name}{port}s", kinds[port - 1]));
    let (program, entries) = ("ipv4_router/ipv4_router.p4", "ipv4_router/demo.entries");
    network.start_on(program, entries, &ports, workers);
    let open = |port| {
        weir_io::open(&weir_io::DeviceSpec::Packet(
            format!("{name}{port}t"),
            weir_io::Sending::Queued,
        ))
        .unwrap()
    };
    let (mut near, mut far): (Box<dyn weir_io::Device>, _) = (open(1), open(2));
    let spec = format!("count={PACKETS},flows=40,dst=10.0.2.10,dmac=02:00:00:00:01:01");
    let mut source = weir_io::Generator::new(spec.parse().unwrap());
    let (mut batch, mut numbers) = (weir_io::Batch::new(64), Vec::new());
    let started = Instant::now();
    while (numbers.len() as u64) < PACKETS {
        batch.clear();
        weir_io::Device::receive(&mut source, &mut batch).unwrap();
        let frames: Vec<_> = batch.iter().collect();
        let sent = numbers.len() + frames.len();
        let mut done = 0;
        while done < frames.len() {
            done += near.transmit(&frames[done..]).unwrap();
        }
        while numbers.len() < sent {
            let mut arrived = weir_io::Batch::new(64);
            far.receive(&mut arrived).unwrap();
            numbers.extend(arrived.iter().map(|f| {
                let digits: [u8; 8] = f.data[42..50].try_into().unwrap();
                u64::from_be_bytes(digits)
            }));
            let waited = started.elapsed() < Duration::from_secs(60);
            assert!(waited, "{} of {sent} arrived", numbers.len());
        }
    }
    let value = network.stop();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..PACKETS).collect::<Vec<_>>());
    for device in value["devices"].as_array().unwrap() {
        for key in ["rx_dropped", "tx_dropped", "refused"] {
            assert_eq!(device[key], 0, "{key} of {device}");
        }
    }
    let by_worker = value["workers"].as_array().unwrap().iter();
    assert!(by_worker.clone().all(|w| w["packets"].as_u64().unwrap() > 0), "{value}");
    assert_eq!(by_worker.map(|w| w["packets"].as_u64().unwrap()).sum::<u64>(), PACKETS);
}

#[test]
fn xdp_to_xdp_loses_nothing() {
    nothing_is_lost("wla", ["xdp:", "xdp:"], 1);
}

#[test]
fn packet_to_packet_loses_nothing() {
    nothing_is_lost("wlb", ["packet:", "packet:"], 1);
}

#[test]
fn xdp_to_packet_loses_nothing() {
    nothing_is_lost("wlc", ["xdp:", "packet:"], 1);
}

#[test]
fn packet_to_xdp_by_two_workers_loses_nothing() {
    nothing_is_lost("wld", ["packet:", "xdp:"], 2);
}

#[test]
fn xdp_to_xdp_by_two_workers_loses_nothing() {
    nothing_is_lost("wle", ["xdp:", "xdp:"], 2);
}
