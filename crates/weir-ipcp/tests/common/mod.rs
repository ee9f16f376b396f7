//! What tests of networks share.
#![allow(dead_code)]

use std::time::Duration;
use weir_ipcp::sim::{Node, Simulation};
use weir_ipcp::{Event, FlowError, FlowEvent, FlowId};
use weir_rina::cdap::objects::QosRequest;
use weir_rina::transport::SendError;
use weir_rina::{ApplicationName, Time};

pub const RELIABLE: QosRequest = QosRequest {
    qos: 0,
    average_bandwidth: 0,
    in_order: true,
    max_gap: 0,
    delay: 0,
};

pub fn app(name: &str) -> ApplicationName {
    ApplicationName::process(name)
}

pub fn describe(sim: &Simulation) -> String {
    let line = |(time, node, event): &(Time, Node, Event)| format!("{time:?} {node:?} {event:?}\n");
    let events: String = sim.events.iter().map(line).collect();
    let node = |node: Node| {
        let process = sim.process(node)?;
        Some(format!(
            "{node:?} {:?} routes {} {:?} {:?}\n",
            process.address(),
            process.forwarding().routes.len(),
            process.neighbours(),
            process.counters()
        ))
    };
    events + &sim.nodes().filter_map(node).collect::<String>()
}

/// Whether every node has a route to all others.
pub fn is_converged(sim: &Simulation) -> bool {
    let alive: Vec<Node> = sim.nodes().filter(|node| sim.process(*node).is_some()).collect();
    let has_all = |node: &Node| {
        sim.process(*node)
            .is_some_and(|process| process.address().is_some() && process.forwarding().routes.len() == alive.len() - 1)
    };
    alive.iter().all(has_all)
}

pub fn converge(sim: &mut Simulation, within: Duration) {
    let end = sim.now() + within;
    assert!(
        sim.run_while(end, |sim| !is_converged(sim)),
        "not converged: {}",
        describe(sim)
    );
}

/// A flow between two nodes: the local end of each.
pub fn flow(sim: &mut Simulation, from: Node, to: Node, name: &str, qos: QosRequest) -> (FlowId, FlowId) {
    sim.with(to, |process, now| process.register(&app(name), now)).unwrap();
    let end = sim.now() + Duration::from_secs(1);
    sim.run_until(end);
    let local = sim
        .with(from, |process, now| {
            process.allocate(&app("client"), &app(name), qos, now)
        })
        .unwrap();
    let end = sim.now() + Duration::from_secs(1);
    sim.run_while(end, |sim| requested(sim, to).is_none());
    let remote = requested(sim, to).expect("a request");
    sim.with(to, |process, now| process.accept(remote, now)).unwrap();
    let end = sim.now() + Duration::from_secs(1);
    let allocated = (from, local, FlowEvent::Allocated);
    assert!(
        sim.run_while(end, |sim| !sim.flow_events.contains(&allocated)),
        "{:?}",
        sim.flow_events
    );
    sim.flow_events.clear();
    (local, remote)
}

pub fn requested(sim: &Simulation, node: Node) -> Option<FlowId> {
    let found = sim
        .flow_events
        .iter()
        .find(|(at, _, event)| *at == node && matches!(event, FlowEvent::Requested { .. }));
    found.map(|(_, id, _)| *id)
}

pub fn read_all(sim: &mut Simulation, node: Node, flow: FlowId) -> Vec<Vec<u8>> {
    sim.with(node, |process, now| {
        let mut all = Vec::new();
        while let Some(sdu) = process.read(flow, now) {
            all.push(sdu);
        }
        all
    })
}

/// Sends an SDU, once there is room.
pub fn send(sim: &mut Simulation, node: Node, flow: FlowId, sdu: &[u8]) {
    let full = Err(FlowError::Send(SendError::Full));
    loop {
        let sent = sim.with(node, |process, now| process.send(flow, sdu, now));
        if sent != full {
            return sent.unwrap();
        }
        sim.run_until(sim.now() + Duration::from_millis(1));
    }
}
