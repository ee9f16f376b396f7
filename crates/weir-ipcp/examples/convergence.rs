//! How fast networks of IPC processes converge, and what it costs, as CSV: fat trees (leaf-spine)
//! and random graphs of growing size, in virtual time.
//!
//! ```sh
//! cargo run --release -p weir-ipcp --example convergence > convergence.csv
//! ```

use std::io::Write;
use std::time::{Duration, Instant};
use weir_ipcp::sim::{LinkId, Node, Pseudo, Simulation};

/// The longest virtual time for one convergence.
const LONGEST: Duration = Duration::from_secs(120);

/// A network to be measured.
struct Network {
    kind: &'static str,
    sim: Simulation,
    nodes: usize,
    links: Vec<LinkId>,
}

/// Leaves with links to each of four spines.
fn fat_tree(nodes: usize) -> Network {
    let mut sim = Simulation::new(7);
    let spines = 4;
    let all: Vec<Node> = (0..nodes).map(|n| sim.router(&format!("r{n}"))).collect();
    let (spines, leaves) = all.split_at(spines);
    let pairs = leaves
        .iter()
        .flat_map(|leaf| spines.iter().map(move |spine| (*leaf, *spine)));
    let links = pairs.map(|(leaf, spine)| sim.link(leaf, spine)).collect();
    Network {
        kind: "fat_tree",
        sim,
        nodes,
        links,
    }
}

/// A ring, so that all are connected, and as many random links again.
fn random(nodes: usize) -> Network {
    let mut sim = Simulation::new(9);
    let mut numbers = Pseudo(0x1234_5678_9abc);
    let all: Vec<Node> = (0..nodes).map(|n| sim.router(&format!("r{n}"))).collect();
    let mut links: Vec<LinkId> = (0..nodes).map(|n| sim.link(all[n], all[(n + 1) % nodes])).collect();
    for _ in 0..nodes {
        let mut pick = || (numbers.number() % nodes as u64) as usize;
        let (a, b) = (pick(), pick());
        if a != b {
            links.push(sim.link(all[a], all[b]));
        }
    }
    Network {
        kind: "random",
        sim,
        nodes,
        links,
    }
}

/// Whether each living node has a route to all others.
fn is_converged(sim: &Simulation) -> bool {
    let alive = sim.nodes().filter(|node| sim.process(*node).is_some()).count();
    sim.nodes()
        .filter_map(|node| sim.process(node))
        .all(|process| process.forwarding().routes.len() == alive - 1)
}

/// Virtual time until it has converged, in ms, looked at every 5 ms.
fn converge(sim: &mut Simulation) -> f64 {
    let start = sim.now();
    let mut end = start;
    while sim.now().since(start) < LONGEST {
        end = end + Duration::from_millis(5);
        sim.run_until(end);
        if is_converged(sim) {
            break;
        }
    }
    sim.now().since(start).as_secs_f64() * 1000.0
}

fn messages(sim: &Simulation) -> (u64, u64) {
    let all = sim
        .nodes()
        .filter_map(|node| sim.process(node))
        .map(weir_ipcp::IpcProcess::counters);
    all.fold((0, 0), |(messages, bytes), counters| {
        (messages + counters.messages_sent, bytes + counters.bytes_sent)
    })
}

fn measure(network: Network, out: &mut impl Write) -> std::io::Result<()> {
    let Network {
        kind,
        mut sim,
        nodes,
        links,
    } = network;
    let cpu = Instant::now();
    sim.start();
    let start = converge(&mut sim);
    let started = cpu.elapsed().as_secs_f64();
    let (sent, bytes) = messages(&sim);
    sim.run_until(sim.now() + Duration::from_secs(2));
    // A node that dies is noticed by keepalive: 50 ms, three misses.
    let victim = Node(nodes / 2);
    sim.kill(victim);
    let node = converge(&mut sim);
    sim.restart(victim);
    let back = converge(&mut sim);
    let states: usize = sim
        .process(Node(0))
        .map_or(0, |process| process.link_state_summary().states);
    writeln!(
        out,
        "{kind},{nodes},{},{start:.0},{node:.0},{back:.0},{},{},{states},{:.2}",
        links.len(),
        sent / nodes as u64,
        bytes / nodes as u64,
        started * 1000.0 / nodes as f64
    )
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "graph,nodes,links,start_ms,node_failure_ms,node_back_ms,messages_per_node,bytes_per_node,link_states,cpu_ms_per_node"
    )?;
    for nodes in [10, 20, 40, 70, 100] {
        measure(fat_tree(nodes), &mut out)?;
        measure(random(nodes), &mut out)?;
        out.flush()?;
    }
    Ok(())
}
