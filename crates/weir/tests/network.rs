//! `weir run` between network namespaces: real kernels talk through it.
//!
//! These tests need root, iproute2, ping and iperf3. In CI they must run; elsewhere a test that cannot run
//! says so and passes.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Why the tests cannot run here, if they cannot.
fn obstacle() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let root = status
        .lines()
        .any(|l| l.starts_with("Uid:") && l.split_whitespace().nth(2) == Some("0"));
    if !root {
        return Some("not root".into());
    }
    for tool in ["ip", "ping", "iperf3", "ethtool"] {
        let found = Command::new("sh")
            .args(["-c", &format!("PATH=$PATH:/usr/sbin:/sbin command -v {tool}")])
            .output();
        if !found.is_ok_and(|o| o.status.success()) {
            return Some(format!("{tool} is missing: cargo xtask test installs it"));
        }
    }
    let probe = Command::new("ip").args(["netns", "add", "weir-probe"]).output();
    match probe {
        Ok(o) if o.status.success() => {
            let _ = Command::new("ip").args(["netns", "del", "weir-probe"]).output();
            None
        }
        Ok(o) => Some(format!(
            "no network namespaces: {}",
            String::from_utf8_lossy(&o.stderr).trim()
        )),
        Err(e) => Some(format!("no network namespaces: {e}")),
    }
}

fn can_run() -> bool {
    // Asked once: the tests run side by side and would trip over each other's probe.
    static OBSTACLE: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    match OBSTACLE.get_or_init(obstacle) {
        None => true,
        Some(why) => {
            assert!(std::env::var_os("CI").is_none(), "this test must run in CI, but: {why}");
            eprintln!("left out: {why}");
            false
        }
    }
}

fn sh(command: &str) {
    let out = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(
        out.status.success(),
        "{command}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

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
        self.start_on(program, entries, &ports);
    }

    fn start_on(&mut self, program: &str, entries: &str, ports: &[String]) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs");
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .arg("run")
            .arg(folder.join(program))
            .arg("--entries")
            .arg(folder.join(entries))
            .args(ports.iter().flat_map(|p| ["-i", p]))
            .args(["--time", "60s", "--json"])
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

/// Three veth pairs: one end is a port of the switch, the other is ours.
struct Wires {
    name: &'static str,
    ports: u32,
}

impl Wires {
    fn new(name: &'static str, ports: u32) -> Self {
        let wires = Wires { name, ports };
        wires.remove();
        for port in 1..=ports {
            sh(&format!("ip link add {name}{port}s type veth peer name {name}{port}t"));
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

#[test]
fn efcp_crosses_the_rina_router_in_every_encapsulation() {
    if !can_run() {
        return;
    }
    let _wires = Wires::new("wre", 3);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs/rina_router");
    let mut network = Network {
        name: "wre",
        switch: None,
    };
    network.start_on(
        "rina_router/rina_router.p4",
        "rina_router/rina_router.entries",
        &["1@wre1s".to_string(), "2@wre2s".to_string(), "3@wre3s".to_string()],
    );
    let mut sockets: Vec<Box<dyn weir_io::Device>> = (1..=3)
        .map(|port| weir_io::open(&weir_io::DeviceSpec::Interface(format!("wre{port}t"))).unwrap())
        .collect();
    for (from, to) in [
        ("untagged", "untagged"),
        ("untagged", "tagged"),
        ("tagged", "untagged"),
        ("tagged", "tagged"),
    ] {
        replay(
            &folder.join(format!("rina_router-efcp_{from}_to_{to}.stf")),
            &mut sockets,
        );
        replay(
            &folder.join(format!("rina_router-ipv4_{from}_to_{to}.stf")),
            &mut sockets,
        );
    }
    network.stop();
}
