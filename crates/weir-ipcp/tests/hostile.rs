//! Strangers, replays, and members that misbehave or restart.

mod common;

use common::{RELIABLE, app, converge, flow, requested, send};
use std::time::Duration;
use weir_ipcp::sim::{Node, Simulation};
use weir_ipcp::{Down, Event, FlowEvent, PortId, Refused};
use weir_rina::cdap::objects::{
    ConnectionId, Directory, DirectoryEntry, FlowRequest, LinkStateObject, LinkStates, Object, WellKnown,
};
use weir_rina::cdap::{CdapDialect, Message, Opcode};
use weir_rina::efcp::{Address, CepId, Dialect, Kind, Paper, Pci};
use weir_rina::{ApplicationName, Time};

/// A frame to a node's first port from somewhere.
fn frame(sim: &mut Simulation, node: Node, from: [u8; 6], pci: &Pci, payload: &[u8]) -> Vec<u8> {
    let to = sim.config(node).ports[0].mac;
    let mut frame = [&to.0[..], &from, &[0xd1, 0xf0]].concat();
    Paper.encode(pci, payload, &mut frame).unwrap();
    frame
}

#[test]
fn strangers_can_neither_forge_states_nor_send_data() {
    let mut sim = Simulation::new(23);
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    let before = sim.process(a).unwrap().forwarding();
    let own = sim.process(a).unwrap().address().unwrap();
    let stranger = [6; 6];
    let management = Pci::management(Address(77), Address(0));
    let data = Pci {
        destination_cep: CepId(1),
        kind: Kind::Data,
        ..Pci::management(Address(77), own)
    };
    let forged = frame(&mut sim, a, stranger, &management, b"\x08\x01");
    let unwanted = frame(&mut sim, a, stranger, &data, b"\x07x");
    sim.inject(a, PortId(1), forged);
    sim.inject(a, PortId(1), unwanted);
    // Of the neighbour itself, but for no connection.
    let neighbour = sim.config(b).ports[0].mac.0;
    let guessed = frame(&mut sim, a, neighbour, &data, b"\x07x");
    sim.inject(a, PortId(1), guessed);
    sim.inject(a, PortId(1), vec![0xff; 13]);
    sim.run_until(sim.now() + Duration::from_millis(10));
    let refused = sim.process(a).unwrap().counters().refused;
    let count = |reason: Refused| refused[reason as usize];
    assert_eq!(count(Refused::NotEnrolled) + count(Refused::MalformedMessage), 2);
    assert_eq!(count(Refused::NoConnection), 1);
    assert_eq!(count(Refused::NotOurs), 1);
    assert_eq!(sim.process(a).unwrap().forwarding(), before);
}

#[test]
fn replayed_frames_change_nothing() {
    let mut sim = Simulation::new(29);
    let nodes: Vec<Node> = ["a", "b", "c"].map(|name| sim.router(name)).into();
    sim.link(nodes[0], nodes[1]);
    let second = sim.link(nodes[1], nodes[2]);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    // What b says while c is lost, and what it said before.
    let recorded = sim.recorded(nodes[0]);
    sim.set_cut(second, true);
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert_eq!(sim.process(nodes[0]).unwrap().forwarding().routes.len(), 1);
    for (port, frame) in recorded {
        sim.inject(nodes[0], port, frame);
    }
    sim.run_until(sim.now() + Duration::from_secs(5));
    assert_eq!(
        sim.process(nodes[0]).unwrap().forwarding().routes.len(),
        1,
        "c is still lost"
    );
    assert!(sim.process(nodes[0]).unwrap().counters().refused[Refused::State as usize] > 0);
}

#[test]
fn a_name_that_two_register_belongs_to_one_and_flooding_ends() {
    let mut sim = Simulation::new(31);
    let nodes: Vec<Node> = ["a", "b", "c"].map(|name| sim.router(name)).into();
    sim.link(nodes[0], nodes[1]);
    sim.link(nodes[1], nodes[2]);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    for node in [nodes[0], nodes[2]] {
        sim.with(node, |process, now| process.register(&app("same"), now))
            .unwrap();
    }
    sim.run_until(sim.now() + Duration::from_secs(2));
    let at = |sim: &Simulation, node: Node| {
        let process = sim.process(node).unwrap();
        process
            .directory()
            .find(|(name, _)| **name == app("same"))
            .map(|(_, at)| at)
    };
    let owner = at(&sim, nodes[1]);
    assert!(owner.is_some() && nodes.iter().all(|node| at(&sim, *node) == owner));
    let sent = |sim: &Simulation| sim.process(nodes[1]).unwrap().counters().messages_sent;
    let before = sent(&sim);
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert!(sent(&sim) - before < 200, "keepalive of two links only");
}

/// A line of routers that know each other.
fn line<const N: usize>(seed: u64, names: [&str; N]) -> (Simulation, [Node; N]) {
    let mut sim = Simulation::new(seed);
    let nodes = names.map(|name| sim.router(name));
    for pair in nodes.windows(2) {
        sim.link(pair[0], pair[1]);
    }
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    (sim, nodes)
}

/// Sends a message of layer management in the name of a node's neighbour at its first port.
fn say(sim: &mut Simulation, node: Node, neighbour: Node, to: Address, from: Address, message: &Message) {
    let mac = sim.config(neighbour).ports[0].mac.0;
    let frame = frame(sim, node, mac, &Pci::management(from, to), &message.encode());
    sim.inject(node, PortId(1), frame);
}

/// The same in the name of the last port of a neighbour.
fn say_last(sim: &mut Simulation, node: Node, neighbour: Node, to: Address, from: Address, message: &Message) {
    let mac = sim.config(neighbour).ports.last().unwrap().mac.0;
    let frame = frame(sim, node, mac, &Pci::management(from, to), &message.encode());
    sim.inject(node, PortId(1), frame);
}

fn address(sim: &Simulation, node: Node) -> Address {
    sim.process(node).unwrap().address().unwrap()
}

fn link_states(states: &[(&str, &str, Address)]) -> Message {
    let state = |&(origin, neighbour, address): &(&str, &str, Address)| LinkStateObject {
        origin: origin.to_owned(),
        origin_addresses: vec![address.0.into()],
        neighbour: neighbour.to_owned(),
        neighbour_addresses: Vec::new(),
        cost: 1,
        sequence: 1,
        is_up: true,
        age: 0,
    };
    let object = WellKnown::LinkStates.id(CdapDialect::Rlite);
    let value = LinkStates(states.iter().map(state).collect()).to_value(CdapDialect::Irati);
    Message {
        invoke_id: 1_000_000,
        ..Message::about(Opcode::Write, object.class, object.name, Some(value))
    }
}

#[test]
fn an_invented_member_takes_no_address() {
    let (mut sim, [a, b, c]) = line(37, ["a", "b", "c"]);
    let victim = address(&sim, c);
    let before = sim.process(b).unwrap().forwarding();
    // The largest name would keep the address in a conflict.
    let states = link_states(&[("zz", "b", victim), ("zz", "a", victim)]);
    sim.events.clear();
    let from = address(&sim, a);
    say(&mut sim, b, a, Address(0), from, &states);
    sim.run_until(sim.now() + Duration::from_secs(3));
    let is_known = sim
        .process(c)
        .unwrap()
        .link_states(sim.now())
        .any(|state| state.origin == "zz");
    assert!(is_known, "the states were taken");
    assert_eq!(address(&sim, c), victim);
    assert_eq!(sim.process(b).unwrap().forwarding(), before);
    assert!(!sim.process(b).unwrap().members().contains_key("zz"));
    let is_conflict = |(_, _, event): &(Time, Node, Event)| matches!(event, Event::AddressConflict { .. });
    assert!(!sim.events.iter().any(is_conflict));
}

#[test]
fn messages_between_neighbours_are_not_taken_from_routed_pdus() {
    let (mut sim, [a, b, c]) = line(38, ["a", "b", "c"]);
    let before = sim.process(c).unwrap().forwarding();
    let (own, forged) = (address(&sim, c), address(&sim, a));
    let plain = |name: &str, opcode| Message::about(opcode, name, name, None);
    let keepalive = WellKnown::Keepalive.id(CdapDialect::Rlite).name;
    let messages = [
        link_states(&[("zz", "b", Address(99)), ("b", "zz", Address(99))]),
        directory_entry("bank", 99, 1),
        plain(keepalive, Opcode::Read),
        plain("", Opcode::Connect),
        plain("", Opcode::Release),
    ];
    let counted = |sim: &Simulation| sim.process(c).unwrap().counters();
    let (refused, up) = (
        counted(&sim).refused[Refused::Routed as usize],
        counted(&sim).enrolments,
    );
    for message in &messages {
        // The router in front has put its MAC address into the frame.
        say_last(&mut sim, c, b, own, forged, message);
    }
    sim.run_until(sim.now() + Duration::from_secs(3));
    let refused = counted(&sim).refused[Refused::Routed as usize] - refused;
    assert_eq!((refused, counted(&sim).enrolments), (messages.len() as u64, up));
    let process = sim.process(c).unwrap();
    assert_eq!((process.forwarding(), registered_at(&sim, c, "bank")), (before, None));
    assert!(!process.link_states(sim.now()).any(|state| state.origin == "zz"));
}

#[test]
fn a_replayed_connect_takes_no_link_down() {
    let mut sim = Simulation::new(41);
    sim.password = Some("secret".to_owned());
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    sim.run_until(sim.now() + Duration::from_secs(1));
    sim.events.clear();
    for (port, frame) in sim.recorded(a) {
        sim.inject(a, port, frame);
    }
    sim.run_until(sim.now() + Duration::from_secs(5));
    let is_down = |(_, _, event): &(Time, Node, Event)| matches!(event, Event::NeighbourDown { .. });
    assert!(!sim.events.iter().any(is_down), "{:?}", sim.events);
    let failed: u64 = sim.process(a).unwrap().counters().enrolments_failed.iter().sum();
    assert!(failed > 0, "the replay is counted");
}

#[test]
fn a_forged_delete_does_not_close_a_flow_of_others() {
    let (mut sim, [a, _, c]) = line(43, ["a", "b", "c"]);
    let (here, there) = flow(&mut sim, a, c, "server", RELIABLE);
    assert!(here.0 > 1000 && there.0 > 1000, "port-ids that cannot be guessed");
    let object = WellKnown::Flows.id(CdapDialect::Rlite);
    let delete = |port: u32| Message {
        invoke_id: 1,
        ..Message::about(Opcode::Delete, object.class, &format!("{}/{port}", object.name), None)
    };
    let (to, forged, b) = (address(&sim, a), address(&sim, c), Node(1));
    for port in 0..200 {
        say(&mut sim, a, b, to, forged, &delete(port));
    }
    // The right port, but not by the peer.
    let other = address(&sim, b);
    say(&mut sim, a, b, to, other, &delete(here.0));
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert_eq!(sim.process(a).unwrap().flows().len(), 1);
    let refused = sim.process(a).unwrap().counters().refused[Refused::UnexpectedMessage as usize];
    assert!(refused >= 201, "{refused}");
}

#[test]
fn a_flow_that_is_accepted_too_late_is_closed_on_both_sides() {
    let (mut sim, [a, b]) = line(47, ["a", "b"]);
    sim.with(b, |process, now| process.register(&app("slow"), now)).unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let local = sim
        .with(a, |process, now| {
            process.allocate(&app("c"), &app("slow"), RELIABLE, now)
        })
        .unwrap();
    sim.run_until(sim.now() + Duration::from_millis(4500));
    let remote = requested(&sim, b).unwrap();
    // The application here gives up while the other accepts.
    sim.with(a, |process, now| process.deallocate(local, now));
    sim.with(b, |process, now| process.accept(remote, now)).unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let closed = FlowEvent::Closed("deallocated by the other side".to_owned());
    assert!(sim.flow_events.contains(&(b, remote, closed)), "{:?}", sim.flow_events);
}

#[test]
fn a_request_that_no_application_answers_ends() {
    let (mut sim, [a, b]) = line(53, ["a", "b"]);
    sim.with(b, |process, now| process.register(&app("mute"), now)).unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    sim.with(a, |process, now| {
        process.allocate(&app("c"), &app("mute"), RELIABLE, now)
    })
    .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(8));
    let remote = requested(&sim, b).unwrap();
    let reason = "the application has not answered the request in time".to_owned();
    assert!(sim.flow_events.contains(&(b, remote, FlowEvent::Closed(reason))));
    sim.with(b, |process, now| process.deallocate(remote, now));
    assert!(sim.process(b).unwrap().flows().is_empty());
}

#[test]
fn an_idle_flow_ends_when_its_peer_has_restarted() {
    let (mut sim, [a, b, c]) = line(59, ["a", "b", "c"]);
    let (here, there) = flow(&mut sim, a, c, "server", RELIABLE);
    // It survives without traffic.
    sim.run_until(sim.now() + Duration::from_secs(60));
    send(&mut sim, a, here, b"still here");
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert_eq!(common::read_all(&mut sim, c, there).len(), 1);
    sim.kill(c);
    sim.restart(c);
    converge(&mut sim, Duration::from_secs(5));
    sim.run_until(sim.now() + Duration::from_secs(13));
    let is_restarted = |(_, node, event): &(Time, Node, Event)| {
        *node == b
            && matches!(
                event,
                Event::NeighbourDown {
                    reason: Down::Restarted,
                    ..
                }
            )
    };
    assert!(sim.events.iter().any(is_restarted));
    let reason = "the other side has lost it, such as by a restart".to_owned();
    assert!(
        sim.flow_events.contains(&(a, here, FlowEvent::Closed(reason))),
        "{:?}",
        sim.flow_events
    );
}

#[test]
fn messages_with_the_longest_names_fit_pdus() {
    let mut sim = Simulation::new(61);
    let names: Vec<String> = (0..20).map(|n| format!("{n:-<200}")).collect();
    let nodes: Vec<Node> = names.iter().map(|name| sim.router(name)).collect();
    for node in &nodes[1..] {
        sim.link(nodes[0], *node);
    }
    for node in &nodes {
        sim.config(*node).max_pdu = 600;
    }
    sim.start();
    converge(&mut sim, Duration::from_secs(20));
    for n in 0..30 {
        let name = ApplicationName::process(format!("{n:=<200}"));
        sim.with(nodes[1], |process, now| process.register(&name, now)).unwrap();
    }
    sim.run_until(sim.now() + Duration::from_secs(10));
    assert_eq!(sim.process(nodes[19]).unwrap().directory().count(), 30);
    let longest = nodes
        .iter()
        .flat_map(|node| sim.recorded(*node))
        .map(|(_, frame)| frame.len())
        .max();
    assert!(longest.is_some_and(|bytes| bytes <= 14 + 600), "{longest:?}");
}

#[test]
fn members_that_are_gone_are_forgotten_with_their_addresses_and_applications() {
    let mut sim = Simulation::new(67);
    sim.timers.max_age = 10_000;
    sim.timers.refresh = 2_000;
    let (a, b, c) = (sim.router("a"), sim.router("b"), sim.router("c"));
    sim.link(a, b);
    sim.link(b, c);
    for node in [a, b, c] {
        // As many addresses as there are members.
        sim.config(node).address_range = (1, 3);
    }
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    sim.with(c, |process, now| process.register(&app("x"), now)).unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert_eq!(sim.process(a).unwrap().directory().count(), 1);
    sim.kill(c);
    sim.run_until(sim.now() + Duration::from_secs(30));
    for node in [a, b] {
        let process = sim.process(node).unwrap();
        assert_eq!(process.members().len(), 2, "{:?}", process.members());
        assert_eq!(process.directory().count(), 0);
    }
    // Another member gets the address.
    sim.config(c).name = "d".to_owned();
    sim.restart(c);
    converge(&mut sim, Duration::from_secs(5));
}

fn directory_entry(name: &str, at: u64, sequence: u64) -> Message {
    let entry = DirectoryEntry {
        application: app(name),
        node: weir_rina::cdap::objects::Node::Address(at),
        sequence,
    };
    let object = WellKnown::Directory.id(CdapDialect::Rlite);
    Message {
        invoke_id: 1_000_000,
        ..Message::about(
            Opcode::Write,
            object.class,
            object.name,
            Some(Directory(vec![entry]).to_value(CdapDialect::Irati)),
        )
    }
}

fn registered_at(sim: &Simulation, node: Node, name: &str) -> Option<Address> {
    let found = sim.process(node)?.directory().find(|(known, _)| **known == app(name))?;
    Some(found.1)
}

#[test]
fn a_forged_withdrawal_of_a_name_is_answered_once_whatever_its_sequence_number() {
    for sequence in [1 << 59, (1 << 60) - 1, 1 << 60, u64::MAX] {
        let (mut sim, [a, b, c]) = line(71, ["a", "b", "c"]);
        sim.with(c, |process, now| process.register(&app("x"), now)).unwrap();
        sim.run_until(sim.now() + Duration::from_secs(1));
        let sent = |sim: &Simulation| sim.process(c).unwrap().counters().messages_sent;
        let before = sent(&sim);
        let from = address(&sim, a);
        say(&mut sim, b, a, Address(0), from, &directory_entry("x", 0, sequence));
        sim.run_until(sim.now() + Duration::from_secs(10));
        // Keepalive every 50 ms makes 400.
        assert!(sent(&sim) - before < 600, "{}", sent(&sim) - before);
        if sequence != (1 << 60) - 1 {
            assert_eq!(registered_at(&sim, b, "x"), Some(address(&sim, c)), "{sequence}");
        }
    }
}

#[test]
fn a_forged_state_of_a_living_member_moves_no_address() {
    let (mut sim, [a, b, c]) = line(73, ["a", "b", "zz"]);
    let (before, victim) = (address(&sim, c), address(&sim, a));
    let (here, _) = flow(&mut sim, a, c, "server", RELIABLE);
    let mut states = link_states(&[("zz", "b", victim)]);
    // Newer than what zz has announced.
    let object = LinkStateObject {
        origin: "zz".to_owned(),
        origin_addresses: vec![victim.0.into()],
        neighbour: "b".to_owned(),
        cost: 1,
        sequence: 1000,
        is_up: true,
        ..LinkStateObject::default()
    };
    states.value = Some(LinkStates(vec![object]).to_value(CdapDialect::Irati));
    say(&mut sim, b, a, Address(0), victim, &states);
    sim.run_until(sim.now() + Duration::from_secs(3));
    assert_eq!((address(&sim, a), address(&sim, c)), (victim, before));
    assert_eq!(sim.process(b).unwrap().members()["zz"], before);
    send(&mut sim, a, here, b"still");
}

#[test]
fn a_name_returns_to_the_other_that_has_registered_it() {
    let (mut sim, [a, b, c]) = line(79, ["a", "b", "c"]);
    for node in [a, c] {
        sim.with(node, |process, now| process.register(&app("svc"), now))
            .unwrap();
    }
    sim.run_until(sim.now() + Duration::from_secs(1));
    let first = registered_at(&sim, b, "svc").unwrap();
    let (winner, other) = if first == address(&sim, a) { (a, c) } else { (c, a) };
    sim.with(winner, |process, now| process.unregister(&app("svc"), now));
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert_eq!(registered_at(&sim, b, "svc"), Some(address(&sim, other)));
}

/// An ARP request and an M_CONNECT of an invented neighbour of a node.
fn invented(sim: &mut Simulation, node: Node, n: u8) -> [Vec<u8>; 2] {
    let mac = weir_rina::arp::MacAddress([2, 9, 9, 9, 9, n]);
    let request = weir_rina::arp::ArpPacket {
        operation: weir_rina::arp::Operation::Request,
        sender_mac: mac,
        sender: b"stranger",
        target_mac: weir_rina::arp::MacAddress::default(),
        target: b"sim",
    };
    let mut arp = [&[0xff; 6][..], &mac.0, &[0x08, 0x06]].concat();
    request.encode(&mut arp).unwrap();
    let connect = sim.recorded(node).into_iter().map(|(_, frame)| frame);
    let mut connect = connect.rev().find(|frame| {
        let pdu = frame.get(14..).and_then(|bytes| Paper.decode(bytes).ok());
        let message = pdu.and_then(|pdu| Message::decode(pdu.payload, CdapDialect::Rlite).ok());
        message.is_some_and(|message| message.opcode == Opcode::Connect)
    });
    if let Some(connect) = &mut connect {
        connect[6..12].copy_from_slice(&mac.0);
    }
    [arp, connect.unwrap_or_default()]
}

#[test]
fn invented_neighbours_keep_no_member_out() {
    // With a password, and replays of an M_CONNECT for every invented MAC address.
    for password in [None, Some("secret".to_owned())] {
        let mut sim = Simulation::new(83);
        let replays = password.is_some();
        sim.password = password;
        let (a, b) = (sim.router("a"), sim.router("b"));
        sim.link(a, b);
        sim.start();
        if replays {
            converge(&mut sim, Duration::from_secs(5));
            let frames: Vec<[Vec<u8>; 2]> = (0..80).map(|n| invented(&mut sim, a, n)).collect();
            assert!(!frames[0][1].is_empty(), "b has sent an M_CONNECT");
            sim.kill(b);
            for (at, frames) in frames.iter().cycle().take(1000).enumerate() {
                if at == 500 {
                    sim.restart(b);
                }
                for frame in frames {
                    sim.inject(a, PortId(1), frame.clone());
                }
                sim.run_until(sim.now() + Duration::from_millis(1));
            }
        } else {
            for n in 0..200 {
                let [arp, _] = invented(&mut sim, a, n);
                sim.inject(a, PortId(1), arp);
                sim.run_until(sim.now() + Duration::from_millis(10));
            }
        }
        converge(&mut sim, Duration::from_millis(1));
    }
}

#[test]
fn forged_requests_leave_room_for_flows_and_need_a_source_with_a_route() {
    let (mut sim, [a, b, c]) = line(95, ["a", "b", "c"]);
    sim.with(c, |process, now| process.register(&app("mute"), now)).unwrap();
    sim.with(a, |process, now| process.register(&app("there"), now))
        .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let object = WellKnown::Flows.id(CdapDialect::Rlite);
    let request = |n: u32| {
        let request = FlowRequest {
            source_application: app("stranger"),
            destination_application: app("mute"),
            source_port: (1000 + n).into(),
            destination_port: 0,
            source: weir_rina::cdap::objects::Node::Address(1),
            destination: None,
            connections: vec![ConnectionId {
                qos: 0,
                source_cep: n + 1,
                destination_cep: 0,
            }],
            current_connection: 0,
            state: 0,
            qos: Some(RELIABLE),
        };
        let value = Some(request.to_value(CdapDialect::Irati));
        Message {
            invoke_id: 1 + n as i32,
            ..Message::about(Opcode::Create, object.class, object.name, value)
        }
    };
    let (own, member) = (address(&sim, c), address(&sim, a));
    for n in 0..3000 {
        // The router in front has forwarded them.
        say_last(&mut sim, c, b, own, Address(60_000), &request(n));
        say_last(&mut sim, c, b, own, member, &request(n));
    }
    sim.run_until(sim.now() + Duration::from_secs(1));
    let process = sim.process(c).unwrap();
    let refused = process.counters().refused;
    assert_eq!(refused[Refused::NoRoute as usize], 3000);
    assert_eq!(refused[Refused::Limit as usize], 3000 - 1024);
    let local = sim
        .with(c, |process, now| {
            process.allocate(&app("c"), &app("there"), RELIABLE, now)
        })
        .unwrap();
    sim.run_until(sim.now() + Duration::from_millis(500));
    let remote = requested(&sim, a).unwrap();
    sim.with(a, |process, now| process.accept(remote, now)).unwrap();
    sim.run_until(sim.now() + Duration::from_millis(500));
    assert!(sim.flow_events.contains(&(c, local, FlowEvent::Allocated)));
}

#[test]
fn reasons_of_others_have_no_control_characters() {
    let (mut sim, [a, b]) = line(93, ["a", "b"]);
    sim.with(b, |process, now| process.register(&app("x"), now)).unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let flow = sim
        .with(a, |process, now| process.allocate(&app("c"), &app("x"), RELIABLE, now))
        .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let remote = requested(&sim, b).unwrap();
    sim.with(b, |process, now| process.refuse(remote, "no\u{1b}[2J\u{9b}\n", now))
        .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let reason = "no\u{fffd}[2J\u{fffd}\u{fffd}".to_owned();
    assert!(
        sim.flow_events.contains(&(a, flow, FlowEvent::Refused(reason))),
        "{:?}",
        sim.flow_events
    );
}

#[test]
fn an_sdu_that_the_other_side_does_not_take_ends_a_reliable_flow() {
    let mut sim = Simulation::new(89);
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.config(b).max_sdu = 1000;
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    let (here, there) = flow(&mut sim, a, b, "server", RELIABLE);
    send(&mut sim, a, here, &[1; 900]);
    send(&mut sim, a, here, &[2; 1001]);
    send(&mut sim, a, here, &[3; 900]);
    sim.run_until(sim.now() + Duration::from_secs(30));
    assert_eq!(common::read_all(&mut sim, b, there).len(), 1, "none behind a gap");
    let is_closed = |node: Node, id| {
        sim.flow_events
            .iter()
            .any(|(at, flow, event)| *at == node && *flow == id && matches!(event, FlowEvent::Closed(_)))
    };
    assert!(is_closed(b, there) && is_closed(a, here), "{:?}", sim.flow_events);
}

#[test]
fn a_slow_flow_sends_all_it_has_before_it_ends() {
    let (mut sim, [a, b]) = line(97, ["a", "b"]);
    let slow = weir_rina::cdap::objects::QosRequest {
        average_bandwidth: 1000,
        ..RELIABLE
    };
    let (here, there) = flow(&mut sim, a, b, "server", slow);
    for n in 0..100_u8 {
        send(&mut sim, a, here, &[n; 1000]);
    }
    sim.with(a, |process, now| process.deallocate(here, now));
    sim.run_until(sim.now() + Duration::from_secs(200));
    assert_eq!(common::read_all(&mut sim, b, there).len(), 100);
}
