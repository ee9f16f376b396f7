//! What an interval brought: results that merge, whatever the parts they come from.

use crate::clock::{ClockOffset, LinkMinimum};
use crate::event::Event;
use crate::histogram::Histogram;
use crate::path::{LinkKey, Path, PortKey};
use crate::running::Running;
use crate::sequence::SequenceCounts;
use std::collections::BTreeMap;
use std::net::IpAddr;
use weir_int::FlowKey;
use weir_int::Reason;

/// The stream of reports of a node's part: its sequence numbers count together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExporterKey {
    /// Source address of the datagrams.
    pub address: IpAddr,
    /// Node id; 0 where reports have none.
    pub node: u32,
    /// Part of the node.
    pub hw_id: u8,
}

/// Why a report, or a part of it, was not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unused {
    /// Its packet has no flow: it is no IP, or was truncated before its ports.
    NoFlow,
    /// It has no telemetry of any hop.
    NoHops,
    /// Its stack was truncated: the path is not known.
    TruncatedStack,
    /// There are too many hops.
    TooManyHops,
    /// The tables of paths, ports and links are full.
    NetworkFull,
    /// The table of exporters is full: its sequence number was not looked at.
    ExportersFull,
    /// A latency was negative: clocks differ, and by how much is not known.
    NegativeLatency,
    /// Timestamps of first and last hop have different widths.
    TimestampWidths,
    /// A latency was computed before the offset between the clocks was known, and is discarded.
    OffsetUnknown,
    /// The results of a flow that was evicted: there were too many in this interval.
    EvictedFlow,
}

impl Unused {
    /// All reasons, in the order of their counters.
    pub const ALL: [Unused; 10] = [
        Unused::NoFlow,
        Unused::NoHops,
        Unused::TruncatedStack,
        Unused::TooManyHops,
        Unused::NetworkFull,
        Unused::ExportersFull,
        Unused::NegativeLatency,
        Unused::TimestampWidths,
        Unused::OffsetUnknown,
        Unused::EvictedFlow,
    ];

    /// A name for metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Unused::NoFlow => "no_flow",
            Unused::NoHops => "no_hops",
            Unused::TruncatedStack => "truncated_stack",
            Unused::TooManyHops => "too_many_hops",
            Unused::NetworkFull => "network_full",
            Unused::ExportersFull => "exporters_full",
            Unused::NegativeLatency => "negative_latency",
            Unused::TimestampWidths => "timestamp_widths",
            Unused::OffsetUnknown => "offset_unknown",
            Unused::EvictedFlow => "evicted_flow",
        }
    }
}

/// Counters of a collector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// Datagrams that came.
    pub datagrams: u64,
    /// Datagrams that the kernel dropped. The caller sets it: a collector does not see them.
    pub dropped_by_kernel: u64,
    /// Their bytes, without UDP headers.
    pub bytes: u64,
    /// Reports that were decoded.
    pub reports: u64,
    /// Reports that were malformed, by [`Reason::index`].
    pub malformed: [u64; Reason::COUNT],
    /// Reports that were not used, or not all of them, by the order of [`Unused::ALL`].
    pub unused: [u64; Unused::ALL.len()],
    /// Flows that made room for others.
    pub flows_evicted: u64,
    /// Events that did not fit.
    pub events_left_out: u64,
}

impl Totals {
    /// Adds other counters.
    pub fn add(&mut self, other: &Totals) {
        self.datagrams += other.datagrams;
        self.dropped_by_kernel += other.dropped_by_kernel;
        self.bytes += other.bytes;
        self.reports += other.reports;
        self.malformed
            .iter_mut()
            .zip(other.malformed)
            .for_each(|(a, b)| *a += b);
        self.unused.iter_mut().zip(other.unused).for_each(|(a, b)| *a += b);
        self.flows_evicted += other.flows_evicted;
        self.events_left_out += other.events_left_out;
    }

    pub(crate) fn unused(&mut self, why: Unused) {
        self.unused[why as usize] += 1;
    }
}

/// A port in an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PortSummary {
    /// Latency of the node for packets that leave by this port, ns.
    pub latency: Histogram,
    /// Utilisation, in the node's unit.
    pub tx_utilisation: Running,
    /// Occupancy of the buffer, in the node's unit.
    pub buffer_occupancy: Running,
    /// Occupancy of each queue, in the node's unit.
    pub queues: BTreeMap<u8, Histogram>,
}

/// A link in an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LinkSummary {
    /// Latency in ns; the offset between the clocks is removed where it is known.
    pub latency: Histogram,
    /// What was removed, ns; 0 where the clocks are taken as equal.
    pub clock_offset: i64,
    /// Latencies below 0, which are not in the histogram.
    pub negative: u64,
}

/// A path in an interval.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathSummary {
    /// Reports.
    pub reports: u64,
    /// End-to-end latency, ns.
    pub latency: Histogram,
    /// Latencies include the links: they are differences of timestamps. Otherwise they are sums of
    /// the hops' latencies.
    pub has_links: bool,
    /// What was removed for clocks that differ, ns.
    pub clock_offset: i64,
    /// Latencies below 0, which are not in the histogram.
    pub negative: u64,
}

/// A flow in an interval.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSummary {
    /// Its key.
    pub key: FlowKey,
    /// Its path at the end of the interval.
    pub path: Option<Path>,
    /// When its first report came, ns since the Unix epoch; of the flow, not of the interval.
    pub first_seen: u64,
    /// When its last report came.
    pub last_seen: u64,
    /// Reports.
    pub reports: u64,
    /// Packets that a node reported as dropped.
    pub dropped: u64,
    /// Packets that met a congested queue.
    pub congested: u64,
    /// How often its path changed.
    pub path_changes: u64,
    /// End-to-end latency, ns.
    pub latency: Running,
    /// Interarrival jitter at the end of the interval, ns (RFC 3550, section 6.4.1).
    pub jitter: f64,
    /// Packets lost and reordered, by the sequence numbers of the INT source; `None` without them.
    pub sequence: Option<SequenceCounts>,
}

/// All that an interval brought, but for the flows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Interval {
    /// Its begin, ns since the Unix epoch.
    pub start: u64,
    /// Its end.
    pub end: u64,
    /// Counters.
    pub totals: Totals,
    /// Egress ports.
    pub ports: BTreeMap<PortKey, PortSummary>,
    /// Links.
    pub links: BTreeMap<LinkKey, LinkSummary>,
    /// Paths.
    pub paths: BTreeMap<Path, PathSummary>,
    /// Exporters.
    pub exporters: BTreeMap<ExporterKey, SequenceCounts>,
    /// Clocks that could be compared.
    pub clocks: Vec<ClockOffset>,
    /// What they were compared by.
    pub minima: Vec<LinkMinimum>,
    /// Events, oldest first.
    pub events: Vec<Event>,
}

impl Interval {
    /// Adds what another part of the same reports brought. Counts and histograms are those of all
    /// reports together; of clocks the estimates with the least uncertainty remain.
    pub fn merge(&mut self, other: Interval) {
        let is_empty = self.end == 0;
        self.start = if is_empty {
            other.start
        } else {
            self.start.min(other.start)
        };
        self.end = self.end.max(other.end);
        self.totals.add(&other.totals);
        for (key, port) in other.ports {
            self.ports.entry(key).or_default().merge(&port);
        }
        for (key, link) in other.links {
            let known = self.links.entry(key).or_default();
            known.latency.merge(&link.latency);
            known.negative += link.negative;
            known.clock_offset = link.clock_offset;
        }
        for (path, summary) in other.paths {
            let known = self.paths.entry(path).or_default();
            known.reports += summary.reports;
            known.latency.merge(&summary.latency);
            known.has_links |= summary.has_links;
            known.negative += summary.negative;
            known.clock_offset = summary.clock_offset;
        }
        for (key, counts) in other.exporters {
            self.exporters.entry(key).or_default().add(counts);
        }
        for clock in other.clocks {
            match self.clocks.iter_mut().find(|known| known.node == clock.node) {
                Some(known) if clock.uncertainty < known.uncertainty => *known = clock,
                Some(_) => {}
                None => self.clocks.push(clock),
            }
        }
        self.clocks.sort_by_key(|clock| clock.node);
        self.minima.extend(other.minima);
        self.events.extend(other.events);
        self.events.sort_by_key(|event| event.time);
    }
}

impl PortSummary {
    /// Adds values of the same port.
    pub fn merge(&mut self, other: &PortSummary) {
        self.latency.merge(&other.latency);
        self.tx_utilisation.merge(&other.tx_utilisation);
        self.buffer_occupancy.merge(&other.buffer_occupancy);
        for (queue, occupancy) in &other.queues {
            self.queues.entry(*queue).or_default().merge(occupancy);
        }
    }
}
