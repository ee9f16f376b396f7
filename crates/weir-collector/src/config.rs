//! What a collector is configured by.

use crate::watch::Limits;
use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use weir_int::FlowKey;
use weir_int::report::Decoder;

/// Whether clocks of nodes are taken as equal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Clocks {
    /// Offsets are estimated from links with traffic in both directions, and removed where they
    /// exceed their uncertainty. Other clocks are taken as equal.
    #[default]
    Estimated,
    /// All clocks are taken as equal.
    Trusted,
    /// As estimated, but by others: [`Collector::set_clocks`](crate::Collector::set_clocks).
    Given,
}

/// Limits of watched quantities; `None`: it is not watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Watched {
    /// End-to-end latency of a flow, ns.
    pub flow_latency: Option<Limits>,
    /// Latency of a hop, ns.
    pub hop_latency: Option<Limits>,
    /// Occupancy of a queue, in the node's unit.
    pub queue_occupancy: Option<Limits>,
    /// Utilisation of a port, in the node's unit.
    pub tx_utilisation: Option<Limits>,
    /// A watched quantity without an event for this time gets one, ns.
    pub keepalive: Option<u64>,
}

/// The flows of one of several collectors.
#[derive(Debug, Clone)]
pub struct Share {
    pub(crate) index: usize,
    pub(crate) count: usize,
    pub(crate) hasher: RandomState,
}

impl Share {
    /// The shares of a number of collectors (at most 64).
    #[must_use]
    pub fn of(count: usize) -> Vec<Share> {
        let hasher = RandomState::default();
        let count = count.clamp(1, u64::BITS as usize);
        let share = |index| Share {
            index,
            count,
            hasher: hasher.clone(),
        };
        (0..count).map(share).collect()
    }

    /// The index of the collector that a flow belongs to; reports without one belong to the first.
    pub(crate) fn owner(&self, flow: Option<FlowKey>) -> usize {
        let hash = flow.map_or(0, |flow| self.hasher.hash_one(flow));
        (hash % self.count as u64) as usize
    }
}

/// Configuration of a [`Collector`](crate::Collector).
#[derive(Debug, Clone)]
pub struct Config {
    /// How datagrams are read.
    pub decoder: Decoder,
    /// Its share, if there are several collectors behind a [`Reception`](crate::Reception), which
    /// then follows the sequence numbers of exporters.
    pub share: Option<Share>,
    /// INT domain whose sources number the packets of each flow: domain-specific instruction 0
    /// (0x8000), 4 bytes at the begin of the metadata that sources alone add (`int_md` does). Every
    /// numbered packet must be reported: numbers that are missing count as lost packets.
    pub sequence_domain: Option<u16>,
    /// Whether clocks are taken as equal.
    pub clocks: Clocks,
    /// ns per unit of timestamps: 1, or 1000 for nodes that count µs.
    pub timestamp_ns: u32,
    /// ns per unit of hop latencies.
    pub latency_ns: u32,
    /// What is watched.
    pub watched: Watched,
    /// The most flows at a time; when there are more, one without recent reports makes room. Each
    /// takes at most 200 bytes.
    pub max_flows: usize,
    /// The most paths at a time.
    pub max_paths: usize,
    /// The most egress ports at a time.
    pub max_ports: usize,
    /// The most links at a time.
    pub max_links: usize,
    /// The most exporters.
    pub max_exporters: usize,
    /// The most events, and the most flows that made room for others, of an interval.
    pub max_events: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            decoder: Decoder::default(),
            share: None,
            sequence_domain: None,
            clocks: Clocks::default(),
            timestamp_ns: 1,
            latency_ns: 1,
            watched: Watched::default(),
            max_flows: 262_144,
            max_paths: 16_384,
            max_ports: 16_384,
            max_links: 16_384,
            max_exporters: 4_096,
            max_events: 65_536,
        }
    }
}
