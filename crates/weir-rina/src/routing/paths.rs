//! Dijkstra's algorithm.

use super::{Edge, NodeIndex};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The cost of a shortest path, if there is one. Sums of fewer than 2^32 costs of 32 bits fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Distance(u64);

impl Distance {
    const NONE: Distance = Distance(u64::MAX);

    pub(super) fn get(self) -> Option<u64> {
        (self != Distance::NONE).then_some(self.0)
    }
}

/// The costs of shortest paths from a node to each node.
pub(super) fn distances(edges: &[Vec<Edge>], from: NodeIndex) -> Vec<Distance> {
    let mut distances = vec![Distance::NONE; edges.len()];
    let mut queue = BinaryHeap::new();
    distances[from.get()] = Distance(0);
    queue.push(Reverse((0_u64, from)));
    while let Some(Reverse((cost, node))) = queue.pop() {
        if distances[node.get()] != Distance(cost) {
            continue;
        }
        for edge in &edges[node.get()] {
            let through = Distance(cost + u64::from(edge.cost));
            if through < distances[edge.to.get()] {
                distances[edge.to.get()] = through;
                queue.push(Reverse((through.0, edge.to)));
            }
        }
    }
    distances
}
