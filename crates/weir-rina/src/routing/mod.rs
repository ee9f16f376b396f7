//! Routing: shortest paths with all equal-cost next hops, and loop-free alternates.
//!
//! ```
//! use weir_rina::link_state::Link;
//! use weir_rina::routing::{Graph, changes, Change};
//!
//! let link = |from, to| Link { from, to, cost: 1 };
//! // A square a-b-d-c: two paths from a to d.
//! let pairs = [("a", "b"), ("b", "d"), ("d", "c"), ("c", "a")];
//! let both = |links: &[(&'static str, &'static str)]| {
//!     links.iter().flat_map(|(a, b)| [link(*a, *b), link(*b, *a)]).collect::<Vec<_>>()
//! };
//! let before = Graph::new(&both(&pairs)).routes(&"a");
//! assert_eq!(before[&"d"].next_hops, ["b", "c"]);
//!
//! // The link from b to d fails: one entry changes.
//! let after = Graph::new(&both(&[pairs[0], pairs[2], pairs[3]])).routes(&"a");
//! let hops = |routes: &std::collections::BTreeMap<_, weir_rina::routing::Route<_>>| {
//!     routes.iter().map(|(to, route)| (*to, route.next_hops.clone())).collect()
//! };
//! let writes = changes(&hops(&before), &hops(&after));
//! assert_eq!(writes, [Change::Modify("d", vec!["c"])]);
//! ```

mod changes;
mod paths;

pub use changes::{Change, changes};

use crate::link_state::Link;
use paths::Distance;
use std::collections::BTreeMap;

/// A neighbour that is not on a shortest path, and yet does not send back what it gets (RFC 5286).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Alternate<N> {
    /// The neighbour.
    pub next_hop: N,
    /// The cost of the path through it.
    pub cost: u64,
    /// Its paths avoid every primary next hop, too (RFC 5286, inequality 3).
    pub is_node_protecting: bool,
    /// It is closer to the destination than this IPC process (RFC 5286, inequality 2), so that
    /// several IPC processes which use alternates at once make no loop.
    pub is_downstream: bool,
}

/// The route to a destination.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Route<N> {
    /// The cost of the shortest paths.
    pub cost: u64,
    /// The first hops of all shortest paths, sorted; at least one.
    pub next_hops: Vec<N>,
    /// The other neighbours that are loop-free, the cheapest first; equal ones sorted by name.
    pub alternates: Vec<Alternate<N>>,
}

/// The index of a node in a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct NodeIndex(u32);

impl NodeIndex {
    fn get(self) -> usize {
        self.0 as usize
    }
}

/// A directed edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Edge {
    to: NodeIndex,
    cost: u32,
}

/// A directed graph with costs. Nodes are sorted, so that results do not depend on the order of
/// links.
#[derive(Debug, Clone)]
pub struct Graph<N> {
    nodes: Vec<N>,
    edges: Vec<Vec<Edge>>,
}

impl<N: Ord + Clone> Graph<N> {
    /// The graph of some links. Of several links between two nodes the cheapest counts; links from
    /// a node to itself are ignored; a cost of 0 counts as 1.
    #[must_use]
    pub fn new(links: &[Link<N>]) -> Self {
        let mut nodes: Vec<N> = links.iter().flat_map(|l| [l.from.clone(), l.to.clone()]).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut edges: Vec<Vec<Edge>> = vec![Vec::new(); nodes.len()];
        for link in links {
            if let (Ok(from), Ok(to)) = (nodes.binary_search(&link.from), nodes.binary_search(&link.to))
                && from != to
            {
                let to = NodeIndex(to as u32);
                let cost = link.cost.max(1);
                edges[from].push(Edge { to, cost });
            }
        }
        for edges in &mut edges {
            edges.sort_unstable_by_key(|edge| (edge.to, edge.cost));
            edges.dedup_by_key(|edge| edge.to);
        }
        Graph { nodes, edges }
    }

    /// The nodes, sorted.
    #[must_use]
    pub fn nodes(&self) -> &[N] {
        &self.nodes
    }

    /// The costs of shortest paths from a node to each node that it reaches, itself included.
    #[must_use]
    pub fn distances(&self, from: &N) -> BTreeMap<N, u64> {
        let Some(from) = self.index(from) else {
            return BTreeMap::new();
        };
        let distances = paths::distances(&self.edges, from);
        let reached = |(node, distance): (&N, Distance)| distance.get().map(|cost| (node.clone(), cost));
        self.nodes.iter().zip(distances).filter_map(reached).collect()
    }

    /// The routes of a node to all others that it reaches.
    ///
    /// Takes one run of Dijkstra's algorithm for the node and one for each of its neighbours.
    #[must_use]
    pub fn routes(&self, own: &N) -> BTreeMap<N, Route<N>> {
        let Some(own) = self.index(own) else {
            return BTreeMap::new();
        };
        let from_own = paths::distances(&self.edges, own);
        let neighbours: Vec<Neighbour> = self.edges[own.get()]
            .iter()
            .map(|edge| Neighbour {
                node: edge.to,
                cost: edge.cost.into(),
                distances: paths::distances(&self.edges, edge.to),
            })
            .collect();
        let destinations = (0..self.nodes.len()).filter(|index| *index != own.get());
        destinations
            .filter_map(|to| {
                let route = self.route(own, to, from_own[to].get()?, &neighbours);
                Some((self.nodes[to].clone(), route))
            })
            .collect()
    }

    fn route(&self, own: NodeIndex, to: usize, cost: u64, neighbours: &[Neighbour]) -> Route<N> {
        let (primary, others): (Vec<&Neighbour>, Vec<&Neighbour>) =
            neighbours.iter().partition(|n| n.cost_to(to) == Some(cost));
        let mut alternates: Vec<Alternate<N>> = others
            .into_iter()
            .filter_map(|neighbour| {
                let through = neighbour.distances[to].get()?;
                // RFC 5286, inequality 1. A neighbour without a path to this node cannot send back.
                let back = neighbour.distances[own.get()].get();
                if back.is_some_and(|back| through >= back + cost) {
                    return None;
                }
                let avoids = |primary: &&Neighbour| {
                    let to_primary = neighbour.distances[primary.node.get()].get();
                    let from_primary = primary.distances[to].get();
                    match (to_primary, from_primary) {
                        (Some(first), Some(second)) => through < first + second,
                        (None, _) | (_, None) => true,
                    }
                };
                Some(Alternate {
                    next_hop: self.nodes[neighbour.node.get()].clone(),
                    cost: neighbour.cost + through,
                    is_node_protecting: primary.iter().all(avoids),
                    is_downstream: through < cost,
                })
            })
            .collect();
        alternates.sort_by_key(|alternate| alternate.cost);
        Route {
            cost,
            next_hops: primary.iter().map(|n| self.nodes[n.node.get()].clone()).collect(),
            alternates,
        }
    }

    fn index(&self, node: &N) -> Option<NodeIndex> {
        let index = self.nodes.binary_search(node).ok()?;
        Some(NodeIndex(index as u32))
    }
}

/// A neighbour of the node whose routes are computed.
struct Neighbour {
    node: NodeIndex,
    /// The cost of the link to it.
    cost: u64,
    distances: Vec<Distance>,
}

impl Neighbour {
    /// The cost of the shortest path through this neighbour. As costs are positive, a path of the
    /// same cost as the shortest one does not lead back through the node itself.
    fn cost_to(&self, to: usize) -> Option<u64> {
        self.distances[to].get().map(|distance| distance + self.cost)
    }
}
