//! RINA routers: a compiled switch, controlled by P4Runtime, between links over UDP.

mod common;

use common::Running;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use weir_client::Options;
use weir_rina::arp::MacAddress;
use weir_rina::efcp::{Address, CepId, Dialect, Kind, Paper, Pci};
use weir_rina_switch::{Driver, Forwarding, FromSwitch, NextHop};

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
    let (wake, waker) = UnixStream::pair().unwrap();
    waker.set_nonblocking(true).unwrap();
    let options = Options::p4runtime(&router.address()).unwrap();
    (Driver::start(options, waker).unwrap(), wake)
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
