//! Routes against oracles that enumerate paths; alternates by following packets.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use weir_rina::link_state::Link;
use weir_rina::routing::{Change, Graph, Route, changes};

type Links = Vec<Link<u32>>;

/// Links in both directions.
fn both(pairs: &[(u32, u32, u32)]) -> Links {
    let link = |from, to, cost| Link { from, to, cost };
    pairs
        .iter()
        .flat_map(|(a, b, c)| [link(*a, *b, *c), link(*b, *a, *c)])
        .collect()
}

/// The cheapest cost of a link, by both ends.
fn costs(links: &[Link<u32>]) -> BTreeMap<(u32, u32), u64> {
    let mut costs = BTreeMap::new();
    for link in links.iter().filter(|link| link.from != link.to) {
        let cost = costs.entry((link.from, link.to)).or_insert(u64::MAX);
        *cost = (*cost).min(u64::from(link.cost.max(1)));
    }
    costs
}

/// All simple paths from a node, as first hop, last node and cost: small graphs only.
fn simple_paths(costs: &BTreeMap<(u32, u32), u64>, from: u32) -> Vec<(u32, u32, u64)> {
    fn extend(costs: &BTreeMap<(u32, u32), u64>, path: &mut Vec<u32>, cost: u64, found: &mut Vec<(u32, u32, u64)>) {
        let last = path[path.len() - 1];
        for (&(a, b), link) in costs.range((last, 0)..=(last, u32::MAX)) {
            debug_assert_eq!(a, last);
            if !path.contains(&b) {
                path.push(b);
                found.push((path[1], b, cost + link));
                extend(costs, path, cost + link, found);
                path.pop();
            }
        }
    }
    let mut found = Vec::new();
    extend(costs, &mut vec![from], 0, &mut found);
    found
}

/// Costs and next hops by enumeration of paths.
fn enumerated(links: &[Link<u32>], from: u32) -> BTreeMap<u32, (u64, Vec<u32>)> {
    let mut best: BTreeMap<u32, (u64, BTreeSet<u32>)> = BTreeMap::new();
    for (first, last, cost) in simple_paths(&costs(links), from) {
        let entry = best.entry(last).or_insert((cost, BTreeSet::new()));
        if cost < entry.0 {
            *entry = (cost, BTreeSet::new());
        }
        if cost == entry.0 {
            entry.1.insert(first);
        }
    }
    best.into_iter()
        .map(|(to, (cost, hops))| (to, (cost, hops.into_iter().collect())))
        .collect()
}

fn primaries(routes: &BTreeMap<u32, Route<u32>>) -> BTreeMap<u32, (u64, Vec<u32>)> {
    routes
        .iter()
        .map(|(to, route)| (*to, (route.cost, route.next_hops.clone())))
        .collect()
}

/// Costs between all nodes by Floyd and Warshall.
fn all_costs(links: &[Link<u32>]) -> BTreeMap<(u32, u32), u64> {
    let mut d = costs(links);
    let nodes: BTreeSet<u32> = links.iter().flat_map(|l| [l.from, l.to]).collect();
    for node in &nodes {
        d.insert((*node, *node), 0);
    }
    for k in &nodes {
        for i in &nodes {
            for j in &nodes {
                if let (Some(a), Some(b)) = (d.get(&(*i, *k)).copied(), d.get(&(*k, *j)).copied()) {
                    let cost = d.entry((*i, *j)).or_insert(u64::MAX);
                    *cost = (*cost).min(a + b);
                }
            }
        }
    }
    d
}

/// A fat tree of k ports: k²/4 cores, k pods of k/2 aggregation and k/2 edge switches.
fn fat_tree(k: u32) -> Links {
    let half = k / 2;
    let core = |i: u32| i;
    let aggregation = |pod: u32, i: u32| 10_000 + pod * half + i;
    let edge = |pod: u32, i: u32| 20_000 + pod * half + i;
    let mut pairs = Vec::new();
    for pod in 0..k {
        for a in 0..half {
            for c in 0..half {
                pairs.push((aggregation(pod, a), core(a * half + c), 1));
                pairs.push((aggregation(pod, a), edge(pod, c), 1));
            }
        }
    }
    both(&pairs)
}

#[test]
fn a_fat_tree_has_all_equal_cost_paths() {
    let links = fat_tree(4);
    let graph = Graph::new(&links);
    assert_eq!(graph.nodes().len(), 20);
    let costs = all_costs(&links);
    for own in graph.nodes() {
        let routes = graph.routes(own);
        assert_eq!(routes.len(), 19);
        for (to, route) in &routes {
            assert_eq!(route.cost, costs[&(*own, *to)]);
            let hops: Vec<u32> = graph
                .nodes()
                .iter()
                .copied()
                .filter(|n| links.iter().any(|l| l.from == *own && l.to == *n))
                .filter(|n| 1 + costs[&(*n, *to)] == route.cost)
                .collect();
            assert_eq!(route.next_hops, hops);
        }
    }
    // From an edge switch to another pod: both aggregation switches, 4 hops.
    let route = &graph.routes(&20_000)[&20_002];
    assert_eq!((route.cost, route.next_hops.len()), (4, 2));
}

#[test]
fn a_ring_has_alternates_as_rfc_5286_says() {
    // In a ring of 4 with equal costs, from 0 to its neighbour 1: neighbour 3 has cost 2 to 1, and
    // 1 back to 0, whose cost to 1 is 1. 2 < 1 + 1 is false: no alternate.
    let graph = Graph::new(&both(&[(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)]));
    let routes = graph.routes(&0);
    assert_eq!(routes[&1].alternates, []);
    assert_eq!(routes[&2].next_hops, [1, 3]);
    // In a ring of 3, the other neighbour is an alternate: 1 < 1 + 1. It is not downstream: 1 < 1
    // is false. It reaches the destination without the primary next hop, which is the destination.
    let graph = Graph::new(&both(&[(0, 1, 1), (1, 2, 1), (2, 0, 1)]));
    let alternates = &graph.routes(&0)[&1].alternates;
    assert_eq!(alternates.len(), 1);
    let alternate = &alternates[0];
    assert_eq!((alternate.next_hop, alternate.cost), (2, 2));
    assert!(!alternate.is_downstream);
    assert!(!alternate.is_node_protecting, "the primary next hop is the destination");
}

#[test]
fn unknown_nodes_have_no_routes() {
    let graph = Graph::new(&both(&[(0, 1, 1)]));
    assert!(graph.routes(&7).is_empty());
    assert!(graph.distances(&7).is_empty());
    assert!(Graph::<u32>::new(&[]).nodes().is_empty());
}

prop_compose! {
    /// Directed links among few nodes, so that equal costs and unreachable nodes are frequent.
    fn small_graph()(
        links in prop::collection::vec((0_u32..6, 0_u32..6, 0_u32..4), 0..18)
    ) -> Links {
        links.into_iter().map(|(from, to, cost)| Link { from, to, cost }).collect()
    }
}

prop_compose! {
    fn symmetric_graph()(
        links in prop::collection::vec((0_u32..9, 0_u32..9, 1_u32..5), 1..24)
    ) -> Links {
        both(&links)
    }
}

proptest! {
    #[test]
    fn next_hops_are_those_of_all_shortest_paths(links in small_graph(), own in 0_u32..6) {
        let routes = Graph::new(&links).routes(&own);
        prop_assert_eq!(primaries(&routes), enumerated(&links, own));
        let distances: BTreeMap<u32, u64> = routes.iter().map(|(to, route)| (*to, route.cost)).collect();
        let mut all = Graph::new(&links).distances(&own);
        all.remove(&own);
        prop_assert_eq!(distances, all);
    }

    #[test]
    fn the_order_of_links_does_not_matter(links in small_graph(), seed in any::<u64>(), own in 0_u32..6) {
        let mut shuffled = links.clone();
        for i in (1..shuffled.len()).rev() {
            let j = (seed.rotate_left(i as u32) % (i as u64 + 1)) as usize;
            shuffled.swap(i, j);
        }
        prop_assert_eq!(Graph::new(&links).routes(&own), Graph::new(&shuffled).routes(&own));
    }

    /// All neighbours that satisfy the inequalities are alternates, and no others.
    #[test]
    fn alternates_are_those_of_the_inequalities(links in symmetric_graph(), own in 0_u32..9) {
        let d = all_costs(&links);
        let link = costs(&links);
        for (to, route) in Graph::new(&links).routes(&own) {
            let mut expected = Vec::new();
            for (&(_, n), cost) in link.range((own, 0)..=(own, u32::MAX)) {
                if route.next_hops.contains(&n) || d[&(n, to)] >= d[&(n, own)] + d[&(own, to)] {
                    continue;
                }
                let avoids = |e: &u32| d[&(n, to)] < d[&(n, *e)] + d[&(*e, to)];
                let is_node_protecting = route.next_hops.iter().all(avoids);
                expected.push((cost + d[&(n, to)], n, is_node_protecting, d[&(n, to)] < d[&(own, to)]));
            }
            expected.sort_unstable();
            let found: Vec<_> = route
                .alternates
                .iter()
                .map(|a| (a.cost, a.next_hop, a.is_node_protecting, a.is_downstream))
                .collect();
            prop_assert_eq!(found, expected);
        }
    }

    /// A packet given to an alternate arrives, whichever shortest paths the others choose, and
    /// never visits the node that used the alternate; with protection, nor the primary next hops.
    #[test]
    fn packets_through_alternates_arrive(links in symmetric_graph(), own in 0_u32..9) {
        let graph = Graph::new(&links);
        let tables: BTreeMap<u32, _> = graph.nodes().iter().map(|n| (*n, graph.routes(n))).collect();
        for (to, route) in graph.routes(&own) {
            for alternate in &route.alternates {
                let mut visited = BTreeSet::new();
                let mut rest = vec![alternate.next_hop];
                while let Some(node) = rest.pop() {
                    prop_assert_ne!(node, own, "a loop");
                    if alternate.is_node_protecting {
                        prop_assert!(!route.next_hops.contains(&node));
                    }
                    if node != to && visited.insert(node) {
                        rest.extend(&tables[&node][&to].next_hops);
                    }
                }
            }
        }
    }

    #[test]
    fn changes_make_the_old_table_the_new_one_with_the_fewest_writes(
        old in prop::collection::btree_map(0_u8..20, 0_u8..3, 0..20),
        new in prop::collection::btree_map(0_u8..20, 0_u8..3, 0..20),
    ) {
        let writes = changes(&old, &new);
        let mut table = old.clone();
        for write in &writes {
            match *write {
                Change::Insert(key, value) => prop_assert_eq!(table.insert(key, value), None),
                Change::Modify(key, value) => prop_assert!(table.insert(key, value).is_some_and(|v| v != value)),
                Change::Delete(key) => prop_assert!(table.remove(&key).is_some()),
            }
        }
        prop_assert_eq!(&table, &new);
        let differing = (0..20).filter(|key| old.get(key) != new.get(key)).count();
        prop_assert_eq!(writes.len(), differing);
    }
}
