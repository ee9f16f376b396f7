//! From the state of a collector to the results of an interval.

use crate::flow::{Flow, FlowInterval};
use crate::interval::{FlowSummary, Interval, LinkSummary, PathSummary, PortSummary};
use crate::network::{Network, PortState};
use std::mem::take;

/// What an interval brought of a flow. The next one begins.
pub(crate) fn flow(flow: &mut Flow, network: &Network) -> FlowSummary {
    let interval = take(&mut flow.interval);
    flow.is_changed = false;
    let FlowInterval {
        reports,
        dropped,
        congested,
        path_changes,
        latency,
    } = interval;
    let sequence = flow.rare.as_mut().and_then(|rare| rare.sequence.as_mut());
    let sequence = sequence.map(|(numbers, counted)| {
        let counts = numbers.counts();
        counts.since(std::mem::replace(counted, counts))
    });
    FlowSummary {
        key: flow.key,
        path: flow.path.and_then(|at| network.paths.get(at)).map(|p| p.path.clone()),
        first_seen: flow.first_seen,
        last_seen: flow.last_seen,
        reports: reports.into(),
        dropped: dropped.into(),
        congested: congested.into(),
        path_changes: path_changes.into(),
        latency,
        jitter: flow.jitter.into(),
        sequence,
    }
}

/// What an interval brought of ports, links and paths. The next one begins.
pub(crate) fn network(network: &mut Network, now: u64) -> Interval {
    let mut interval = Interval::default();
    for port in &mut network.ports.list {
        let summary = port_summary(port);
        if summary != PortSummary::default() {
            interval.ports.insert(port.key, summary);
        }
    }
    for link in &mut network.links.list {
        let summary = LinkSummary {
            latency: take(&mut link.latency),
            clock_offset: link.correction.offset,
            negative: take(&mut link.negative),
        };
        if link.minima[0].is_some() {
            link.minima = [None, link.minima[0]];
            link.minimum_end = now;
        }
        if summary.negative > 0 || !summary.latency.is_empty() {
            interval.links.insert(link.key, summary);
        }
    }
    for path in &mut network.paths.list {
        let summary = PathSummary {
            reports: take(&mut path.reports),
            latency: take(&mut path.latency),
            has_links: path.has_links,
            clock_offset: path.correction.offset,
            negative: take(&mut path.negative),
        };
        if summary.reports > 0 {
            interval.paths.insert(path.path.clone(), summary);
        }
    }
    interval
}

fn port_summary(port: &mut PortState) -> PortSummary {
    let queues = port.queues.iter_mut().filter(|queue| !queue.occupancy.is_empty());
    PortSummary {
        latency: take(&mut port.latency),
        tx_utilisation: take(&mut port.tx_utilisation),
        buffer_occupancy: take(&mut port.buffer_occupancy),
        queues: queues.map(|queue| (queue.id, take(&mut queue.occupancy))).collect(),
    }
}
