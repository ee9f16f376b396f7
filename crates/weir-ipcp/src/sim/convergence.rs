//! How fast networks converge, and what it costs: leaf-spine fabrics and random graphs.

use super::{LinkId, Node, Pseudo, Simulation};
use crate::process::IpcProcess;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The longest virtual time for one convergence.
const LONGEST: Duration = Duration::from_secs(120);
/// How often it is looked at, in virtual time.
const LOOK: Duration = Duration::from_millis(5);
/// Spines of a fat tree.
const SPINES: usize = 4;

/// A kind of graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Graph {
    /// Four spines; every other router is a leaf with a link to each of them.
    FatTree,
    /// A ring, so that all are connected, and as many random links again.
    Random,
}

impl Graph {
    /// The fewest routers of such a graph.
    #[must_use]
    pub const fn fewest(self) -> usize {
        match self {
            Graph::FatTree => SPINES + 2,
            Graph::Random => 3,
        }
    }

    /// Adds routers and links to a simulation.
    fn build(self, sim: &mut Simulation, routers: usize) -> Vec<LinkId> {
        let all: Vec<Node> = (0..routers).map(|n| sim.router(&format!("r{n}"))).collect();
        match self {
            Graph::FatTree => {
                let (spines, leaves) = all.split_at(SPINES.min(routers));
                let pairs = leaves
                    .iter()
                    .flat_map(|leaf| spines.iter().map(move |spine| (*leaf, *spine)));
                pairs.map(|(leaf, spine)| sim.link(leaf, spine)).collect()
            }
            Graph::Random => {
                let mut numbers = Pseudo(0x1234_5678_9abc);
                let ring = (0..routers).map(|n| sim.link(all[n], all[(n + 1) % routers]));
                let mut links: Vec<LinkId> = ring.collect();
                for _ in 0..routers {
                    let mut pick = || (numbers.number() % routers as u64) as usize;
                    let (a, b) = (pick(), pick());
                    if a != b {
                        links.push(sim.link(all[a], all[b]));
                    }
                }
                links
            }
        }
    }
}

/// What a network took to converge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Convergence {
    /// The kind of graph.
    pub graph: Graph,
    /// Routers.
    pub routers: usize,
    /// Links.
    pub links: usize,
    /// Virtual time from the start of all routers until each has a route to all others, in ms.
    pub start_ms: f64,
    /// The same from the death of a router on; the others have no route to it.
    pub failure_ms: f64,
    /// The same from its restart on.
    pub return_ms: f64,
    /// Messages of layer management that a router sent until the start was over.
    pub messages: u64,
    /// Bytes of frames that a router sent until then.
    pub bytes: u64,
    /// Link states in the database of a router.
    pub states: usize,
    /// Time of the processor for the start, in ms per router.
    pub cpu_ms: f64,
}

/// Whether each living node has a route to all others.
fn is_converged(sim: &Simulation) -> bool {
    let alive = sim.nodes().filter(|node| sim.process(*node).is_some()).count();
    sim.nodes()
        .filter_map(|node| sim.process(node))
        .all(|process| process.table.len() == alive - 1)
}

/// Virtual time until it has converged, in ms.
fn converge(sim: &mut Simulation) -> f64 {
    let start = sim.now();
    while sim.now().since(start) < LONGEST {
        sim.run_until(sim.now() + LOOK);
        if is_converged(sim) {
            break;
        }
    }
    sim.now().since(start).as_secs_f64() * 1000.0
}

/// Builds a network, starts it, kills a router, and restarts it. `observe` is called once the
/// network has converged first, such as to measure memory.
pub fn measure(graph: Graph, routers: usize, observe: impl FnOnce()) -> Convergence {
    let routers = routers.max(graph.fewest());
    let mut sim = Simulation::new(7);
    // Only what the processes themselves keep counts as memory.
    sim.records = 0;
    let links = graph.build(&mut sim, routers).len();
    let clock = Instant::now();
    sim.start();
    let start_ms = converge(&mut sim);
    let cpu = clock.elapsed();
    let processes = || {
        sim.nodes()
            .filter_map(|node| sim.process(node))
            .map(IpcProcess::counters)
    };
    let messages: u64 = processes().map(|counters| counters.messages_sent).sum();
    let bytes: u64 = processes().map(|counters| counters.bytes_sent).sum();
    observe();
    sim.run_until(sim.now() + Duration::from_secs(2));
    let victim = Node(routers / 2);
    sim.kill(victim);
    let failure_ms = converge(&mut sim);
    sim.restart(victim);
    let return_ms = converge(&mut sim);
    let database = sim.process(Node(0)).map(IpcProcess::link_state_summary);
    Convergence {
        graph,
        routers,
        links,
        start_ms,
        failure_ms,
        return_ms,
        messages: messages / routers as u64,
        bytes: bytes / routers as u64,
        states: database.map_or(0, |summary| summary.states),
        cpu_ms: cpu.as_secs_f64() * 1000.0 / routers as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::{Graph, measure};

    #[test]
    fn small_networks_converge_and_recover() {
        for graph in [Graph::FatTree, Graph::Random] {
            let mut observed = 0;
            let result = measure(graph, 8, || observed += 1);
            assert_eq!((result.routers, observed), (8, 1));
            assert!(result.start_ms < 5000.0 && result.failure_ms < 1000.0 && result.return_ms < 5000.0);
            assert!(result.states >= 2 * 8, "{result:?}");
            assert!(result.messages > 0 && result.bytes > result.messages);
        }
    }
}
