//! Networks of IPC processes in virtual time.

mod common;

use common::{RELIABLE, app, converge, describe, flow, is_converged, read_all, requested, send};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_ipcp::sim::{LinkId, Node, Simulation};
use weir_ipcp::{Down, Event, FlowEvent, PortId};
use weir_rina::Time;
use weir_rina::cdap::objects::QosRequest;
use weir_rina::efcp::Address;

struct Fabric {
    sim: Simulation,
    spines: Vec<Node>,
    leaves: Vec<Node>,
    hosts: Vec<Node>,
    /// Of each leaf to each spine.
    uplinks: BTreeMap<(Node, Node), LinkId>,
}

/// 2 spines, 4 leaves, 8 hosts.
fn fabric() -> Fabric {
    let mut sim = Simulation::new(7);
    let spines: Vec<Node> = (1..=2).map(|n| sim.router(&format!("spine{n}"))).collect();
    let leaves: Vec<Node> = (1..=4).map(|n| sim.router(&format!("leaf{n}"))).collect();
    let hosts: Vec<Node> = (1..=8).map(|n| sim.host(&format!("host{n}"))).collect();
    let mut uplinks = BTreeMap::new();
    for &leaf in &leaves {
        for &spine in &spines {
            uplinks.insert((leaf, spine), sim.link(leaf, spine));
        }
    }
    for (at, &host) in hosts.iter().enumerate() {
        sim.link(host, leaves[at / 2]);
    }
    sim.start();
    Fabric {
        sim,
        spines,
        leaves,
        hosts,
        uplinks,
    }
}

#[test]
fn all_pairs_of_a_fabric_exchange_sdus() {
    let mut fabric = fabric();
    converge(&mut fabric.sim, Duration::from_secs(5));
    let sim = &mut fabric.sim;
    for &to in &fabric.hosts {
        let name = format!("server{}", to.0);
        sim.with(to, |process, now| process.register(&app(&name), now)).unwrap();
    }
    sim.run_until(sim.now() + Duration::from_secs(1));
    let mut ends = Vec::new();
    for &from in &fabric.hosts {
        for &to in &fabric.hosts {
            let name = app(&format!("server{}", to.0));
            let allocate =
                |process: &mut weir_ipcp::IpcProcess, now| process.allocate(&app("client"), &name, RELIABLE, now);
            ends.push((from, sim.with(from, allocate).unwrap()));
        }
    }
    let mut served = Vec::new();
    for _ in 0..20 {
        sim.run_until(sim.now() + Duration::from_millis(20));
        for (node, id, event) in std::mem::take(&mut sim.flow_events) {
            if let FlowEvent::Requested { .. } = event {
                sim.with(node, |process, now| process.accept(id, now)).unwrap();
                served.push((node, id));
            }
        }
    }
    assert_eq!(served.len(), 64);
    for (node, id) in &ends {
        send(sim, *node, *id, format!("from {} {id:?}", node.0).as_bytes());
    }
    sim.run_until(sim.now() + Duration::from_millis(100));
    for (node, id) in served {
        assert_eq!(read_all(sim, node, id).len(), 1);
    }
}

#[test]
fn addresses_are_unique_and_paths_use_both_spines() {
    let mut fabric = fabric();
    converge(&mut fabric.sim, Duration::from_secs(5));
    let sim = &fabric.sim;
    let mut addresses: Vec<Address> = sim.nodes().filter_map(|node| sim.process(node)?.address()).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), 14);
    let leaf = sim.process(fabric.leaves[0]).unwrap();
    let far = sim.process(fabric.hosts[7]).unwrap().address().unwrap();
    assert_eq!(leaf.forwarding().routes[&far].len(), 2);
    assert_eq!(leaf.routes()["host8"].cost, 3);
}

#[test]
fn a_cut_link_is_noticed_within_the_keepalive_and_the_flow_survives() {
    let mut fabric = fabric();
    converge(&mut fabric.sim, Duration::from_secs(5));
    let sim = &mut fabric.sim;
    let (from, to) = (fabric.hosts[0], fabric.hosts[7]);
    let (here, there) = flow(sim, from, to, "server", RELIABLE);
    for spine in &fabric.spines {
        let link = fabric.uplinks[&(fabric.leaves[0], *spine)];
        let cut_at = sim.now();
        sim.set_cut(link, true);
        sim.events.clear();
        for n in 0..100_u8 {
            send(sim, from, here, &[n; 100]);
            sim.run_until(sim.now() + Duration::from_millis(5));
        }
        let is_down = |(_, node, event): &&(Time, Node, Event)| {
            *node == fabric.leaves[0]
                && matches!(
                    event,
                    Event::NeighbourDown {
                        reason: Down::Keepalive,
                        ..
                    }
                )
        };
        let (noticed, ..) = sim.events.iter().find(is_down).unwrap();
        assert!(
            noticed.since(cut_at) <= Duration::from_millis(200),
            "{:?}",
            noticed.since(cut_at)
        );
        sim.run_until(sim.now() + Duration::from_secs(1));
        let seen: Vec<u8> = read_all(sim, to, there).iter().map(|sdu| sdu[0]).collect();
        assert_eq!(seen, (0..100).collect::<Vec<u8>>());
        sim.set_cut(link, false);
        converge(sim, Duration::from_secs(5));
        sim.run_until(sim.now() + Duration::from_secs(1));
    }
}

#[test]
fn a_killed_router_is_withdrawn_and_comes_back_with_its_address() {
    let mut fabric = fabric();
    converge(&mut fabric.sim, Duration::from_secs(5));
    let sim = &mut fabric.sim;
    let (from, to) = (fabric.hosts[2], fabric.hosts[5]);
    let (here, there) = flow(sim, from, to, "server", RELIABLE);
    let spine = fabric.spines[1];
    let address = sim.process(spine).unwrap().address();
    sim.kill(spine);
    sim.run_until(sim.now() + Duration::from_millis(400));
    assert!(is_converged(sim), "13 nodes know each other only");
    send(sim, from, here, b"around");
    sim.run_until(sim.now() + Duration::from_millis(300));
    assert_eq!(read_all(sim, to, there), [b"around"]);
    sim.restart(spine);
    converge(sim, Duration::from_secs(5));
    assert_eq!(sim.process(spine).unwrap().address(), address);
    send(sim, from, here, b"again");
    sim.run_until(sim.now() + Duration::from_millis(300));
    assert_eq!(read_all(sim, to, there), [b"again"]);
    // The bootstrap member may die, too.
    sim.kill(fabric.spines[0]);
    sim.run_until(sim.now() + Duration::from_millis(400));
    assert!(is_converged(sim));
}

#[test]
fn a_router_that_restarts_faster_than_the_keepalive_is_enrolled_again() {
    let mut sim = Simulation::new(3);
    let nodes: Vec<Node> = ["a", "b", "c"].map(|name| sim.router(name)).into();
    sim.link(nodes[0], nodes[1]);
    sim.link(nodes[1], nodes[2]);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    sim.run_until(sim.now() + Duration::from_secs(3));
    let address = sim.process(nodes[2]).unwrap().address();
    sim.kill(nodes[2]);
    sim.restart(nodes[2]);
    converge(&mut sim, Duration::from_secs(5));
    assert_eq!(sim.process(nodes[2]).unwrap().address(), address);
    let restarted = sim.events.iter().any(|(_, _, event)| {
        matches!(
            event,
            Event::NeighbourDown {
                reason: Down::Restarted,
                ..
            }
        )
    });
    assert!(restarted);
}

#[test]
fn parallel_links_are_both_used_and_each_may_fail() {
    let mut sim = Simulation::new(3);
    let (a, b) = (sim.router("a"), sim.router("b"));
    let first = sim.link(a, b);
    sim.link(a, b);
    sim.start();
    sim.run_until(Time::from_secs(5));
    let hops = |sim: &Simulation| {
        sim.process(a)
            .unwrap()
            .forwarding()
            .routes
            .values()
            .next()
            .map_or(0, |hops| hops.len())
    };
    assert_eq!(hops(&sim), 2);
    sim.set_cut(first, true);
    sim.run_until(Time::from_secs(6));
    assert_eq!(hops(&sim), 1);
    sim.set_cut(first, false);
    sim.run_until(Time::from_secs(12));
    assert_eq!(hops(&sim), 2);
}

#[test]
fn of_parallel_links_the_cheapest_is_announced_and_used() {
    let mut sim = Simulation::new(3);
    let (a, b) = (sim.router("a"), sim.router("b"));
    for _ in 0..3 {
        sim.link(a, b);
    }
    for node in [a, b] {
        sim.config(node).ports[0].cost = 100;
    }
    sim.start();
    sim.run_until(Time::from_secs(5));
    let used = |sim: &Simulation| {
        let process = sim.process(a).unwrap();
        let hops: Vec<u32> = process
            .forwarding()
            .routes
            .values()
            .flatten()
            .map(|hop| hop.port.0)
            .collect();
        (process.routes()["b"].cost, hops)
    };
    assert_eq!(used(&sim), (1, vec![2, 3]));
    for (port, expected) in [(3, (1, vec![2])), (2, (100, vec![1]))] {
        sim.with(a, |process, now| process.port_down(PortId(port), now));
        sim.run_until(sim.now() + Duration::from_secs(1));
        assert_eq!(used(&sim), expected);
    }
    sim.with(a, |process, now| process.port_up(PortId(2), now));
    sim.run_until(sim.now() + Duration::from_secs(5));
    assert_eq!(used(&sim), (1, vec![2]));
}

#[test]
fn a_port_that_is_down_is_withdrawn_at_once() {
    let mut sim = Simulation::new(3);
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    sim.with(a, |process, now| process.port_down(PortId(1), now));
    assert!(sim.process(a).unwrap().forwarding().routes.is_empty());
    sim.with(a, |process, now| process.port_up(PortId(1), now));
    converge(&mut sim, Duration::from_secs(5));
}

#[test]
fn a_wrong_password_keeps_a_node_outside() {
    let mut sim = Simulation::new(5);
    sim.password = Some("right".to_owned());
    let (a, b, c) = (sim.router("a"), sim.router("b"), sim.router("c"));
    sim.link(a, b);
    sim.link(a, c);
    sim.config(c).password = Some("wrong".to_owned());
    sim.start();
    sim.run_until(Time::from_secs(5));
    assert!(sim.process(b).unwrap().address().is_some(), "{}", describe(&sim));
    assert!(sim.process(c).unwrap().address().is_none());
    assert!(!sim.process(a).unwrap().members().contains_key("c"));
    let failed: u64 = sim.process(a).unwrap().counters().enrolments_failed.iter().sum();
    assert!(failed > 0);
}

#[test]
fn a_lossy_link_enrols_floods_and_carries() {
    let mut sim = Simulation::new(11);
    sim.timers.keepalive_misses = 20;
    let nodes: Vec<Node> = ["a", "b", "c", "d", "e"].map(|name| sim.router(name)).into();
    for pair in nodes.windows(2) {
        let link = sim.link(pair[0], pair[1]);
        sim.set_loss(link, 100_000);
    }
    sim.start();
    converge(&mut sim, Duration::from_secs(60));
    let (here, there) = flow(&mut sim, nodes[0], nodes[4], "server", RELIABLE);
    for n in 0..200_u8 {
        send(&mut sim, nodes[0], here, &[n; 3000]);
    }
    sim.run_until(sim.now() + Duration::from_secs(20));
    let seen = read_all(&mut sim, nodes[4], there);
    assert_eq!(seen.len(), 200);
    assert!(seen.iter().enumerate().all(|(n, sdu)| *sdu == [n as u8; 3000]));
    assert!(sim.lost() > 0);
}

#[test]
fn a_partitioned_network_merges() {
    let mut sim = Simulation::new(13);
    let nodes: Vec<Node> = ["a", "b", "c", "d"].map(|name| sim.router(name)).into();
    let links: Vec<LinkId> = nodes.windows(2).map(|pair| sim.link(pair[0], pair[1])).collect();
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    sim.set_cut(links[1], true);
    sim.run_until(sim.now() + Duration::from_secs(2));
    let routes = |sim: &Simulation, node: Node| sim.process(node).unwrap().forwarding().routes.len();
    assert_eq!((routes(&sim, nodes[0]), routes(&sim, nodes[3])), (1, 1));
    // Applications move while the parts do not see each other.
    sim.with(nodes[3], |process, now| process.register(&app("x"), now))
        .unwrap();
    sim.set_cut(links[1], false);
    converge(&mut sim, Duration::from_secs(10));
    sim.run_until(sim.now() + Duration::from_secs(1));
    let at = sim.process(nodes[3]).unwrap().address();
    let found = sim
        .process(nodes[0])
        .unwrap()
        .directory()
        .find(|(name, _)| **name == app("x"))
        .map(|(_, at)| at);
    assert_eq!(found, at);
}

#[test]
fn flows_are_refused_deallocated_and_time_out() {
    let mut sim = Simulation::new(17);
    let (a, b) = (sim.router("a"), sim.router("b"));
    sim.link(a, b);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));

    let missing = sim
        .with(a, |process, now| {
            process.allocate(&app("c"), &app("nothing"), RELIABLE, now)
        })
        .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(7));
    let reason = "no IPC process that can be reached has registered the application".to_owned();
    assert!(sim.flow_events.contains(&(a, missing, FlowEvent::Refused(reason))));

    sim.with(b, |process, now| process.register(&app("picky"), now))
        .unwrap();
    sim.run_until(sim.now() + Duration::from_secs(1));
    let refused = sim
        .with(a, |process, now| {
            process.allocate(&app("c"), &app("picky"), RELIABLE, now)
        })
        .unwrap();
    sim.run_until(sim.now() + Duration::from_millis(100));
    let request = requested(&sim, b).unwrap();
    sim.with(b, |process, now| process.refuse(request, "not you", now))
        .unwrap();
    sim.run_until(sim.now() + Duration::from_millis(100));
    assert!(
        sim.flow_events
            .contains(&(a, refused, FlowEvent::Refused("not you".to_owned())))
    );
    sim.flow_events.clear();

    let (here, there) = flow(&mut sim, a, b, "server", RELIABLE);
    for n in 0..50_u8 {
        send(&mut sim, a, here, &[n; 2000]);
    }
    // What was sent before arrives, though the flow is deallocated at once.
    sim.with(a, |process, now| process.deallocate(here, now));
    sim.run_until(sim.now() + Duration::from_secs(1));
    let closed = FlowEvent::Closed("deallocated by the other side".to_owned());
    assert!(sim.flow_events.contains(&(b, there, closed)), "{:?}", sim.flow_events);
    assert_eq!(read_all(&mut sim, b, there).len(), 50);
    sim.with(b, |process, now| process.deallocate(there, now));
    sim.run_until(sim.now() + Duration::from_secs(1));
    assert!(sim.process(a).unwrap().flows().is_empty());
    assert!(sim.process(b).unwrap().flows().is_empty());
}

#[test]
fn unreliable_flows_keep_no_window_and_lose_what_the_link_loses() {
    let mut sim = Simulation::new(19);
    sim.timers.keepalive_misses = 20;
    let (a, b) = (sim.router("a"), sim.router("b"));
    let link = sim.link(a, b);
    sim.start();
    converge(&mut sim, Duration::from_secs(5));
    let qos = QosRequest {
        max_gap: -1,
        in_order: false,
        ..RELIABLE
    };
    let (here, there) = flow(&mut sim, a, b, "server", qos);
    sim.set_loss(link, 200_000);
    for n in 0..100_u8 {
        send(&mut sim, a, here, &[n; 100]);
    }
    sim.run_until(sim.now() + Duration::from_millis(100));
    let seen = read_all(&mut sim, b, there).len();
    assert!((60..100).contains(&seen), "{seen}");
}
