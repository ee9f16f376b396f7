//! Offsets between the clocks of nodes, estimated from the traffic in both directions of links.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The least difference of timestamps over a link, in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkMinimum {
    /// Node id at the link's beginning.
    pub from: u32,
    /// Node id at its end.
    pub to: u32,
    /// Least `ingress time stamp at the end − egress time stamp at the beginning`, in ns: the delay
    /// plus the offset of the clock at the end against that at the beginning.
    pub nanoseconds: i64,
    /// How long ago it was seen, ns.
    pub age: u64,
}

/// Inverse of the largest relative drift between two clocks: 100 ppm.
const DRIFT: u64 = 10_000;

/// A node's clock against that of a reference node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClockOffset {
    /// The node.
    pub node: u32,
    /// The node with the least id among those that it exchanges traffic with, over any number of
    /// links.
    pub reference: u32,
    /// What the node's clock shows more than the reference's, in ns.
    pub offset: i64,
    /// The offset is wrong by at most this, in ns, if no delay is negative. It is exact where the
    /// least delays of both directions are equal.
    pub uncertainty: u64,
}

/// Estimates offsets as NTP does (RFC 5905, section 8): over a link, half of the difference between
/// the two directions, wrong by at most half of their sum. Over several links the path with the
/// least uncertainty counts. Nodes without traffic in both directions of any link have none.
#[must_use]
pub fn estimate(minima: &[LinkMinimum]) -> Vec<ClockOffset> {
    let mut neighbours: BTreeMap<u32, Vec<Edge>> = BTreeMap::new();
    for ((from, to), (offset, uncertainty)) in over_links(minima) {
        neighbours.entry(from).or_default().push(Edge {
            to,
            offset,
            uncertainty,
        });
    }
    let mut offsets = BTreeMap::new();
    for &reference in neighbours.keys() {
        if !offsets.contains_key(&reference) {
            spread(reference, &neighbours, &mut offsets);
        }
    }
    offsets.into_values().collect()
}

/// Offset and uncertainty of the clock at the end of each link against that at its beginning, for
/// links with traffic in both directions. A negative round trip is impossible: a clock was set in
/// between, and the link says nothing.
pub(crate) fn over_links(minima: &[LinkMinimum]) -> BTreeMap<(u32, u32), (i128, u128)> {
    let mut least: BTreeMap<(u32, u32), (i128, u64)> = BTreeMap::new();
    for minimum in minima.iter().filter(|minimum| minimum.from != minimum.to) {
        let new = (i128::from(minimum.nanoseconds), minimum.age);
        let known = least.entry((minimum.from, minimum.to)).or_insert(new);
        *known = (*known).min(new);
    }
    let both = least.iter().filter_map(|(&(from, to), &(forth, age))| {
        let &(back, age_back) = least.get(&(to, from))?;
        let round_trip = u128::try_from(forth + back).ok()?;
        let drift = (u128::from(age) + u128::from(age_back)) / u128::from(DRIFT);
        Some((
            (from, to),
            ((forth - back).div_euclid(2), round_trip.div_ceil(2) + drift),
        ))
    });
    both.collect()
}

struct Edge {
    to: u32,
    offset: i128,
    uncertainty: u128,
}

/// Dijkstra's algorithm over uncertainties, from a reference.
fn spread(reference: u32, neighbours: &BTreeMap<u32, Vec<Edge>>, offsets: &mut BTreeMap<u32, ClockOffset>) {
    let mut best: BTreeMap<u32, (u128, i128)> = BTreeMap::from([(reference, (0, 0))]);
    let mut queue = BTreeSet::from([(0_u128, reference)]);
    while let Some((uncertainty, node)) = queue.pop_first() {
        let offset = best.get(&node).map_or(0, |(_, offset)| *offset);
        offsets.insert(
            node,
            ClockOffset {
                node,
                reference,
                offset: i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX }),
                uncertainty: u64::try_from(uncertainty).unwrap_or(u64::MAX),
            },
        );
        for edge in neighbours.get(&node).into_iter().flatten() {
            let through = (uncertainty + edge.uncertainty, offset + edge.offset);
            let known = best.get(&edge.to);
            if known.is_none_or(|known| through.0 < known.0) {
                if let Some(known) = known {
                    queue.remove(&(known.0, edge.to));
                }
                best.insert(edge.to, through);
                queue.insert((through.0, edge.to));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClockOffset, LinkMinimum, estimate};
    use proptest::prelude::*;

    fn minimum(from: u32, to: u32, nanoseconds: i64) -> LinkMinimum {
        LinkMinimum {
            from,
            to,
            nanoseconds,
            age: 0,
        }
    }

    #[test]
    fn equal_delays_give_the_exact_offset() {
        // Node 7's clock is 1000 ahead, the delay is 50.
        let found = estimate(&[minimum(3, 7, 1050), minimum(7, 3, -950)]);
        let expected = |node, offset, uncertainty| ClockOffset {
            node,
            reference: 3,
            offset,
            uncertainty,
        };
        assert_eq!(found, [expected(3, 0, 0), expected(7, 1000, 50)]);
    }

    #[test]
    fn one_direction_alone_gives_no_offset() {
        assert_eq!(estimate(&[minimum(1, 2, 100)]), []);
        assert_eq!(estimate(&[minimum(1, 1, 100)]), []);
    }

    #[test]
    fn the_least_uncertain_path_counts() {
        let direct = [minimum(1, 3, 1500), minimum(3, 1, 500)];
        let through = [
            minimum(1, 2, 110),
            minimum(2, 1, -90),
            minimum(2, 3, 405),
            minimum(3, 2, -395),
        ];
        let found = estimate(&[&direct[..], &through[..]].concat());
        assert_eq!((found[2].offset, found[2].uncertainty), (500, 15));
    }

    #[test]
    fn a_negative_round_trip_says_nothing_and_age_adds_to_the_uncertainty() {
        assert_eq!(estimate(&[minimum(1, 2, 100), minimum(2, 1, -5_000_000)]), []);
        let mut old = [minimum(1, 2, 150), minimum(2, 1, 50)];
        old[0].age = 1_000_000_000;
        assert_eq!(
            (estimate(&old)[1].offset, estimate(&old)[1].uncertainty),
            (50, 100 + 100_000)
        );
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            clocks in prop::collection::vec(-1_000_000_i64..1_000_000, 2..8),
            delays in prop::collection::vec(0_i64..10_000, 16),
        ) {
            let mut minima = Vec::new();
            for (at, pair) in clocks.windows(2).enumerate() {
                let (a, b) = (at as u32, at as u32 + 1);
                minima.push(minimum(a, b, delays[2 * at] + pair[1] - pair[0]));
                minima.push(minimum(b, a, delays[2 * at + 1] + pair[0] - pair[1]));
            }
            for found in estimate(&minima) {
                let truth = clocks[found.node as usize] - clocks[found.reference as usize];
                prop_assert!(truth.abs_diff(found.offset) <= found.uncertainty + 1 + u64::from(found.node));
            }
        }
    }
}
