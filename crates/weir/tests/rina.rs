//! RINA routers: a compiled switch, controlled by P4Runtime, between links over UDP.

mod common;

use common::Running;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weir_client::Options;
use weir_rina::arp::MacAddress;
use weir_rina::efcp::{Address, CepId, Dialect, Kind, Paper, Pci};
use weir_rina_host::{HostError, Ipcp, Qos};
use weir_rina_switch::{Driver, Forwarding, FromSwitch, GRACE, NextHop};

const PROGRAM: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../p4/programs/rina_router/rina_router.p4"
);
const PATIENCE: Duration = Duration::from_secs(30);

/// A switch with three ports, each a link over UDP to this test.
struct Router {
    links: Vec<UdpSocket>,
    ports: Vec<SocketAddr>,
    switch: Option<Running>,
    /// Where it serves P4Runtime.
    socket: tempfile::TempDir,
}

impl Router {
    fn start() -> Self {
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let links: Vec<UdpSocket> = (0..3).map(|_| socket()).collect();
        // Free a moment before the switch takes them.
        let ports = (0..3).map(|_| socket().local_addr().unwrap()).collect();
        let mut router = Router {
            links,
            ports,
            switch: None,
            socket: tempfile::tempdir().unwrap(),
        };
        for (link, port) in router.links.iter().zip(&router.ports) {
            link.connect(port).unwrap();
            link.set_read_timeout(Some(PATIENCE)).unwrap();
        }
        router.start_switch();
        router
    }

    fn address(&self) -> String {
        format!("unix:{}", self.socket.path().join("p4rt").display())
    }

    fn start_switch(&mut self) {
        let address = self.address();
        let mut arguments = vec![PROGRAM.to_owned()];
        for (at, (link, port)) in self.links.iter().zip(&self.ports).enumerate() {
            let device = format!("{}@udp:{port},{}", at + 1, link.local_addr().unwrap());
            arguments.extend(["-i".to_owned(), device]);
        }
        arguments.extend(["--p4runtime", &address, "--cpu-port", "64"].map(str::to_owned));
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.switch = Some(Running::start(&arguments, "P4Runtime"));
    }

    fn send(&self, port: usize, frame: &[u8]) {
        self.links[port - 1].send(frame).unwrap();
    }

    fn receive(&self, port: usize) -> Vec<u8> {
        let mut frame = vec![0; 2000];
        let length = self.links[port - 1].recv(&mut frame).expect("a frame");
        frame.truncate(length);
        frame
    }
}

/// A driver, and what wakes its owner.
fn drive(router: &Router) -> (Driver, UnixStream) {
    drive_with(router, GRACE)
}

fn drive_with(router: &Router, grace: Duration) -> (Driver, UnixStream) {
    let (wake, waker) = UnixStream::pair().unwrap();
    waker.set_nonblocking(true).unwrap();
    let options = Options::p4runtime(&router.address()).unwrap();
    (Driver::start(options, waker, grace).unwrap(), wake)
}

/// Waits for news that `is_awaited`; the rest is skipped.
fn wait<T>(driver: &Driver, is_awaited: impl Fn(FromSwitch) -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    let mut seen = Vec::new();
    while Instant::now() < end {
        match driver.next() {
            Some(news) => {
                seen.push(format!("{news:?}"));
                if let Some(found) = is_awaited(news) {
                    return found;
                }
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    }
    panic!("not in {seen:#?}");
}

/// The number of updates of the next write, and whether all entries were read for it.
fn written(driver: &Driver) -> (usize, bool) {
    wait(driver, |news| match news {
        FromSwitch::Written {
            updates,
            is_resynchronised,
            ..
        } => Some((updates, is_resynchronised)),
        FromSwitch::Packet { .. } | FromSwitch::Failed(_) => None,
    })
}

fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

fn forwarding(routes: &[(u32, &[u32])]) -> Forwarding {
    let hop = |port: &u32| NextHop {
        port: *port,
        vlan: 0,
        mac: mac(*port as u8),
    };
    let route = |(to, ports): &(u32, &[u32])| (Address(*to), ports.iter().map(hop).collect());
    Forwarding {
        own: [Address(10)].into(),
        routes: routes.iter().map(route).collect(),
        macs: (1..=3).map(|port| (port, mac(0x10 + port as u8))).collect(),
    }
}

/// A frame for a destination, by a connection.
fn frame(to: u32, connection: u32, kind: Kind) -> Vec<u8> {
    let mut frame = [&[2; 6][..], &[4; 6], &[0xd1, 0xf0]].concat();
    let pci = Pci {
        source_cep: CepId(connection),
        kind,
        ..Pci::management(Address(1), Address(to))
    };
    Paper.encode(&pci, b"payload", &mut frame).unwrap();
    frame
}

/// The frame with other MAC addresses.
fn over_link(frame: &[u8], to: MacAddress, from: MacAddress) -> Vec<u8> {
    [&to.0[..], &from.0, &frame[12..]].concat()
}

#[test]
fn routes_of_an_ipc_process_forward_and_management_arrives() {
    let router = Router::start();
    let (driver, _wake) = drive(&router);
    driver.set(forwarding(&[(5, &[2, 3]), (6, &[2])]));
    let first = written(&driver);
    // The entries that were there before the first connection do not count.
    let updates = if first.0 == 0 { written(&driver).0 } else { first.0 };
    // Three MAC addresses, a group, two routes, and the own address in two tables.
    assert_eq!(updates, 8);

    let data = frame(6, 1, Kind::Data);
    router.send(1, &data);
    assert_eq!(router.receive(2), over_link(&data, mac(2), mac(0x12)));

    let management = frame(10, 0, Kind::Management);
    router.send(1, &management);
    let arrived = wait(&driver, |news| match news {
        FromSwitch::Packet { port, frame } => Some((port, frame)),
        FromSwitch::Written { .. } | FromSwitch::Failed(_) => None,
    });
    assert_eq!(arrived, (1, management.clone()));
    driver.send(3, management.clone());
    assert_eq!(router.receive(3), management);

    // A link is lost: one update, and all connections take the other one.
    driver.set(forwarding(&[(5, &[3]), (6, &[2])]));
    assert_eq!(written(&driver), (1, false));
    for connection in 0..8 {
        let data = frame(5, connection, Kind::Data);
        router.send(1, &data);
        assert_eq!(router.receive(3), over_link(&data, mac(3), mac(0x13)));
    }
}

#[test]
fn a_switch_that_comes_back_empty_gets_all_entries_again() {
    let mut router = Router::start();
    let (driver, _wake) = drive(&router);
    driver.set(forwarding(&[(6, &[2])]));
    while written(&driver).0 == 0 {}
    router.switch.take().unwrap().kill();
    wait(&driver, |news| matches!(news, FromSwitch::Failed(_)).then_some(()));
    router.start_switch();
    assert_eq!(written(&driver), (6, true));
    let data = frame(6, 1, Kind::Data);
    router.send(1, &data);
    assert_eq!(router.receive(2), over_link(&data, mac(2), mac(0x12)));
}

#[test]
fn entries_of_others_are_removed() {
    let router = Router::start();
    let address = router.address();
    let insert = ["ctl", "--p4runtime", &address, "insert", "efcp_exact", "77", "drop"];
    let (code, _, messages) = common::weir(&insert);
    assert_eq!(code, 0, "{messages}");
    let (driver, _wake) = drive(&router);
    // The one of address 77.
    assert_eq!(written(&driver), (1, true));
}

#[test]
fn a_switch_keeps_its_routes_while_the_control_plane_restarts() {
    let router = Router::start();
    let routes = forwarding(&[(5, &[3]), (6, &[2])]);
    let (driver, wake) = drive(&router);
    driver.set(routes.clone());
    while written(&driver).0 == 0 {}
    drop((driver, wake));
    // Without the same number of routes it would wait for an hour.
    let (driver, _wake) = drive_with(&router, Duration::from_secs(3600));
    // It knows one destination, then both again.
    driver.set(forwarding(&[(6, &[2])]));
    std::thread::sleep(Duration::from_secs(1));
    let data = frame(5, 1, Kind::Data);
    router.send(1, &data);
    assert_eq!(router.receive(3), over_link(&data, mac(3), mac(0x13)));
    driver.set(routes);
    assert_eq!(written(&driver), (0, true), "nothing differs");
    // From here on it follows its control plane.
    driver.set(forwarding(&[(6, &[2])]));
    assert_eq!(written(&driver), (1, false));
}

#[test]
fn a_backup_and_a_failing_switch_are_reported_once() {
    let router = Router::start();
    let options = || Options::p4runtime(&router.address()).unwrap();
    let start = |election: u128, device: u64| {
        let (wake, waker) = UnixStream::pair().unwrap();
        waker.set_nonblocking(true).unwrap();
        let options = options().election(election).device(device);
        (Driver::start(options, waker, Duration::from_millis(1)).unwrap(), wake)
    };
    let (primary, _wake) = start(2, 1);
    written(&primary);
    let (backup, _wake) = start(1, 1);
    // There is no such device.
    let (wrong, _wake) = start(1, 99);
    for driver in [&backup, &wrong] {
        wait(driver, |news| matches!(news, FromSwitch::Failed(_)).then_some(()));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(backup.next().is_none() && wrong.next().is_none());
}

/// A fabric of two routers in a line, with a host at each end; it ends when this is dropped.
struct Fabric {
    child: std::process::Child,
    input: std::process::ChildStdin,
    folder: tempfile::TempDir,
}

impl Fabric {
    fn start(topology: &str) -> Self {
        use std::io::{BufRead, BufReader};
        use std::process::{Command, Stdio};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("topology.toml");
        std::fs::write(&file, topology).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["rina", "fabric"])
            .arg(&file)
            .arg("--folder")
            .arg(folder.path())
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let mut said = Vec::new();
        let is_up = lines.any(|line| {
            said.push(line);
            said.last()
                .is_some_and(|line| line.starts_with("every node has a route"))
        });
        assert!(is_up, "{said:?}");
        std::thread::spawn(move || lines.for_each(drop));
        Fabric {
            input: child.stdin.take().unwrap(),
            child,
            folder,
        }
    }

    fn socket(&self, name: &str) -> String {
        self.folder.path().join(format!("{name}.sock")).display().to_string()
    }

    fn command(&mut self, line: &str) {
        use std::io::Write;
        writeln!(self.input, "{line}").unwrap();
    }

    /// Runs `weir rina` with a host's socket.
    fn rina(&self, host: &str, arguments: &[&str]) -> (i32, String, String) {
        let socket = self.socket(host);
        let (task, rest) = arguments.split_first().unwrap();
        common::weir(&[&["rina", *task, "--socket", &socket], rest].concat())
    }

    /// `weir rina` in the background, with a file as its output.
    fn serve(&self, host: &str, arguments: &[&str], output: &std::path::Path) -> Serving {
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["rina", arguments[0], "--socket", &self.socket(host)])
            .args(&arguments[1..])
            .stdin(std::process::Stdio::null())
            .stdout(std::fs::File::create(output).unwrap())
            .spawn()
            .unwrap();
        Serving(child)
    }
}

impl Drop for Fabric {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A process that is killed when this is dropped.
struct Serving(std::process::Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const LINE: &str = "dif = \"line\"\nrouters = [\"r1\", \"r2\"]\nhosts = [\"a\", \"b\"]\nlinks = [[\"r1\", \"r2\"], [\"a\", \"r1\"], [\"b\", \"r2\"]]\n";

fn restart_a_control_plane(fabric: &mut Fabric) {
    fabric.command("restart r1");
    let count = |fabric: &Fabric, node: &str| fabric.rina(node, &["ctl", "routes"]).1.lines().count();
    let end = Instant::now() + PATIENCE;
    // It has lost its routes, and finds them again; the switch has run all the time.
    while ["a", "r1", "r2", "b"].iter().any(|node| count(fabric, node) != 4) {
        assert!(Instant::now() < end, "no routes after the restart");
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, out, error) = fabric.rina("a", &["ping", "echo", "--count", "3", "--interval", "1ms"]);
    assert_eq!(code, 0, "{out}{error}");
}

fn use_the_folder_again(fabric: &Fabric) {
    let folder = fabric.folder.path().to_str().unwrap();
    let (code, _, error) = common::weir(&["rina", "fabric", "--leaf-spine", "1x1", "--folder", folder]);
    assert_eq!(code, 2);
    let owner = format!("the fabric of process {} uses this folder", fabric.child.id());
    assert!(error.contains(&owner), "{error}");
}

#[test]
fn applications_talk_over_compiled_routers_that_lose_frames() {
    let mut fabric = Fabric::start(LINE);
    let scratch = fabric.folder.path().join("scratch");

    let (code, members, _) = fabric.rina("a", &["ctl", "--json", "members"]);
    assert_eq!((code, members.matches("\"name\"").count()), (0, 4));
    let (_, routes, _) = fabric.rina("r1", &["ctl", "routes"]);
    assert_eq!(routes.lines().count(), 4, "{routes}");
    let (code, _, error) = fabric.rina("a", &["ctl", "fly"]);
    assert_eq!(code, 2);
    assert!(error.contains("expected one of: status, neighbours"), "{error}");

    let _echo = fabric.serve("b", &["ping", "--listen", "echo"], &scratch);
    let (code, out, error) = fabric.rina("a", &["ping", "echo", "--count", "3", "--interval", "1ms"]);
    assert_eq!(code, 0, "{out}{error}");
    assert!(out.contains("3 sent, 0 lost"), "{out}");

    restart_a_control_plane(&mut fabric);
    use_the_folder_again(&fabric);
    fabric.command("loss r1 r2 1");
    fabric.command("reorder r1 r2 1");
    let _perf = fabric.serve("b", &["perf", "--listen", "perf"], &scratch);
    let arguments = ["perf", "perf", "--count", "20000", "--size", "1-3000", "--json"];
    let (code, out, error) = fabric.rina("a", &arguments);
    assert_eq!(code, 0, "{out}{error}");
    for field in ["\"sdus\": 20000", "\"out_of_order\": 0", "\"damaged\": 0"] {
        assert!(out.contains(field), "{field} in {out}");
    }

    let arguments = [
        "perf",
        "perf",
        "--unreliable",
        "--count",
        "2000",
        "--rate",
        "2000000",
        "--json",
    ];
    let (code, out, error) = fabric.rina("a", &arguments);
    assert_eq!(code, 0, "{out}{error}");
    let outcome: serde_json::Value = serde_json::from_str(&out).unwrap();
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    assert!(number(&outcome["lost"]) > 0, "{outcome}");
    assert_eq!(number(&outcome["received"]["sdus"]) + number(&outcome["lost"]), 2000);

    let inbox = fabric.folder.path().join("inbox");
    let mut receiver = fabric.serve("b", &["cat", "--listen", "inbox"], &inbox);
    // More than all queues between hold.
    let text: Vec<u8> = (0..8_000_000_u32).map(|n| (n % 251) as u8).collect();
    let source = fabric.folder.path().join("source");
    std::fs::write(&source, &text).unwrap();
    let sent = std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(["rina", "cat", "inbox", "--socket", &fabric.socket("a")])
        .stdin(std::fs::File::open(&source).unwrap())
        .status();
    assert!(sent.unwrap().success());
    assert!(receiver.0.wait().unwrap().success());
    assert!(std::fs::read(&inbox).unwrap() == text);
}

/// An IPC process alone in its DIF: its applications talk to each other.
struct Alone {
    _process: Serving,
    folder: tempfile::TempDir,
}

impl Alone {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        let socket = folder.path().join("a.sock");
        let text = format!(
            "socket = {socket:?}\n[ipcp]\nname = \"a\"\ndif = \"d\"\nrole = \"host\"\nfirst = true\n\
             [[ipcp.port]]\nnumber = 1\nmac = \"02:00:00:00:00:01\"\n[devices]\n1 = \"null\"\n"
        );
        std::fs::write(&file, text).unwrap();
        let child = std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["rina", "ipcp", "--config"])
            .arg(&file)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let alone = Alone {
            _process: Serving(child),
            folder,
        };
        let end = Instant::now() + PATIENCE;
        while Ipcp::connect(&alone.socket()).is_err() {
            assert!(Instant::now() < end, "the IPC process does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
        alone
    }

    fn socket(&self) -> std::path::PathBuf {
        self.folder.path().join("a.sock")
    }

    /// `weir rina cat` in the background.
    fn cat(&self, arguments: &[&str], input: std::process::Stdio) -> std::process::Child {
        std::process::Command::new(env!("CARGO_BIN_EXE_weir"))
            .args(["rina", "cat", "--socket"])
            .arg(self.socket())
            .args(arguments)
            .stdin(input)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    }
}

#[test]
fn cat_fails_where_the_other_side_ends_before_all_is_confirmed() {
    use std::process::Stdio;
    let alone = Alone::start();
    let ipcp = Ipcp::connect(&alone.socket()).unwrap();
    let code_and_error = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
            output.stdout,
        )
    };

    // A sender that dies after some bytes.
    let receiver = alone.cat(&["--listen", "inbox"], Stdio::null());
    let flow = loop {
        match ipcp.allocate("test", "inbox", Qos::RELIABLE, PATIENCE) {
            Ok(flow) => break flow,
            Err(HostError::Refused(_)) => {}
            Err(error) => panic!("{error}"),
        }
    };
    flow.write_sdu(b"\0some").unwrap();
    drop(flow);
    let (code, error, out) = code_and_error(receiver);
    assert_eq!((code, out), (Some(1), b"some".to_vec()), "{error}");
    assert!(error.contains("4 bytes arrived, and no end of the input"), "{error}");

    // A receiver that dies.
    let registration = ipcp.register("dying").unwrap();
    let input = alone.folder.path().join("input");
    std::fs::write(&input, vec![7; 3_000_000]).unwrap();
    for is_to_read in [false, true] {
        let sender = alone.cat(&["dying"], std::fs::File::open(&input).unwrap().into());
        let flow = registration.next(PATIENCE).unwrap().unwrap().accept().unwrap();
        // Also one that dies when it has all, but before it has confirmed that.
        while is_to_read && flow.read_sdu(PATIENCE).unwrap().unwrap()[0] == 0 {}
        drop(flow);
        let (code, error, _) = code_and_error(sender);
        assert_eq!(code, Some(1), "{error}");
        assert!(error.contains("the other side has not confirmed them"), "{error}");
    }
}

#[test]
fn without_an_ipc_process_the_message_says_how_to_start_one() {
    let (code, _, error) = common::weir(&["rina", "ctl", "--socket", "/nowhere/x.sock", "status"]);
    assert_eq!(code, 2);
    assert!(
        error.contains("no IPC process listens there: start one with `weir rina ipcp`"),
        "{error}"
    );
    let (code, _, error) = common::weir(&["rina", "ping", "echo"]);
    assert_eq!(code, 2);
    assert!(error.contains("--socket"), "{error}");
}

#[test]
fn the_demo_survives_the_death_of_a_spine() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("fabric.svg");
    let (code, out, error) = common::weir(&["rina", "demo", "--json", "--picture", picture.to_str().unwrap()]);
    assert_eq!(code, 0, "{out}{error}");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(value["sdus_sent"].as_u64().unwrap() > 100);
    assert_eq!(value["sdus_sent"], value["sdus_answered"]);
    assert!(std::fs::read_to_string(&picture).unwrap().contains(">dead<"));
}

#[test]
fn the_bench_compares_a_lossless_flow_with_lossy_datagrams() {
    let folder = tempfile::tempdir().unwrap();
    let plots = folder.path().to_str().unwrap();
    let (code, out, error) = common::weir(&[
        "rina",
        "bench",
        "--count",
        "2000",
        "--loss",
        "5",
        "--reorder",
        "5",
        "--time",
        "20ms",
        "--repeat",
        "1",
        "--json",
        "--plots",
        plots,
    ]);
    assert_eq!(code, 0, "{out}{error}");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let flow = &value["flow"]["flow"];
    assert_eq!(flow["received"]["sdus"], 2000);
    assert_eq!(flow["received"]["out_of_order"], 0);
    assert!(value["flow"]["frames_lost"].as_u64().unwrap() > 0);
    let udp = &value["flow"]["udp"];
    // The same links lose and reorder datagrams, for which nothing makes up.
    assert!(udp["arrived"].as_u64().unwrap() < 2000, "{udp}");
    assert!(udp["out_of_order"].as_u64().unwrap() > 0, "{udp}");
    assert_eq!(udp["damaged"], 0);
    let throughput = value["throughput"].as_array().unwrap();
    let is_positive = |row: &serde_json::Value| row["efcp"].as_f64() > Some(0.0) && row["ipv4"].as_f64() > Some(0.0);
    assert!(
        throughput.len() == 6 && throughput.iter().all(is_positive),
        "{throughput:?}"
    );
    for name in ["throughput.svg", "loss.svg"] {
        assert!(
            std::fs::read_to_string(folder.path().join(name))
                .unwrap()
                .contains("EFCP")
        );
    }
}

#[test]
fn simulations_report_convergence_messages_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let plots = folder.path().to_str().unwrap();
    let (code, out, error) = common::weir(&["rina", "simulate", "--routers", "6,9", "--json", "--plots", plots]);
    assert_eq!(code, 0, "{out}{error}");
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    let all = value.as_array().unwrap();
    assert_eq!(all.len(), 4, "two graphs of two sizes");
    for measured in all {
        for field in ["start_ms", "failure_ms", "return_ms", "messages", "bytes", "memory_kb"] {
            assert!(measured[field].as_f64() > Some(0.0), "{field}: {measured}");
        }
    }
    assert!(folder.path().join("memory.svg").is_file());
    let (code, _, error) = common::weir(&["rina", "simulate", "--routers", "2"]);
    assert_eq!(code, 2);
    assert!(error.contains("--routers: expected at least 6"), "{error}");
}
