//! What the switch counts.

use crate::port_counts::PortCounts;
use std::collections::{BTreeMap, BTreeSet};
use weir_arch::{Count, DropReason};
use weir_ir::Loc;

/// Packets and bytes of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortStats {
    /// Received.
    pub rx: Count,
    /// Sent.
    pub tx: Count,
}

/// Packets dropped for one reason at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DropCount {
    /// Why.
    pub reason: DropReason,
    /// What in the source caused it, where that is known (assertions, traced packets).
    pub loc: Option<Loc>,
    /// How many.
    pub packets: u64,
}

/// File, line and column: a [`Loc`] that can be ordered.
type Place = (u32, u32, u32);

/// All statistics of the switch itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stats {
    received: PortCounts,
    sent: PortCounts,
    drops: BTreeMap<(DropReason, Option<Place>), u64>,
}

impl Stats {
    /// What a port received and sent.
    pub(crate) fn port(&self, port: u32) -> PortStats {
        PortStats {
            rx: self.received.get(port),
            tx: self.sent.get(port),
        }
    }

    /// Ports that have received or sent something, in order.
    pub(crate) fn active_ports(&self) -> impl Iterator<Item = (u32, PortStats)> {
        let ports: BTreeSet<u32> = self.received.ports().chain(self.sent.ports()).collect();
        let all = ports.into_iter().map(|port| (port, self.port(port)));
        all.filter(|(_, stats)| *stats != PortStats::default())
    }

    pub(crate) fn received(&mut self, port: u32, bytes: usize) {
        self.received.add_many(port, 1, bytes as u64);
    }

    /// Packets that came in together.
    #[inline(always)]
    pub(crate) fn received_all(&mut self, ports: &[u32], lengths: &[u64]) {
        self.received_at(only_port(ports), ports, lengths);
    }

    /// The same; `only`: where all did, if all came in at one port.
    #[inline(always)]
    fn received_at(&mut self, only: Option<u32>, ports: &[u32], lengths: &[u64]) {
        match only {
            Some(port) => self.received.add_many(port, ports.len() as u64, lengths.iter().sum()),
            None => self.received.add_all(ports, lengths),
        }
    }

    /// Packets that leave together: the ports' words, and bytes.
    #[inline(always)]
    pub(crate) fn sent_all(&mut self, ports: &[u64], lengths: &[u64]) {
        self.sent.add_all(ports, lengths);
    }

    /// Packets that came in at ports with so many bytes, and all leave by others with so many.
    #[inline(always)]
    pub(crate) fn passed_all(&mut self, from: &[u32], received_lengths: &[u64], to: &[u64], leave: &[u64]) {
        let differ = received_lengths
            .iter()
            .zip(leave)
            .fold(0, |all, (received_lengths, leave)| all | received_lengths ^ leave);
        let only = only_port(from);
        if differ == 0 && only.is_none() {
            PortCounts::add_to_both((&mut self.received, from), (&mut self.sent, to), received_lengths);
        } else {
            self.received_at(only, from, received_lengths);
            self.sent_all(to, leave);
        }
    }

    /// Packets dropped for the same reason, at no place that is known.
    pub(crate) fn dropped_many(&mut self, reason: DropReason, packets: u64) {
        *self.drops.entry((reason, None)).or_default() += packets;
    }

    #[inline]
    pub(crate) fn sent(&mut self, port: u32, bytes: usize) {
        self.sent.add_all(&[port], &[bytes as u64]);
    }

    pub(crate) fn dropped(&mut self, reason: DropReason, loc: Option<Loc>) {
        *self
            .drops
            .entry((reason, loc.map(|l| (l.file, l.line, l.column))))
            .or_default() += 1;
    }

    pub(crate) fn drops(&self) -> impl Iterator<Item = DropCount> {
        self.drops.iter().map(|((reason, loc), packets)| DropCount {
            reason: *reason,
            loc: loc.map(|(file, line, column)| Loc { file, line, column }),
            packets: *packets,
        })
    }
}

/// The port of all packets, if it is one: what they add to its count is summed up first, for one by
/// one each would wait for the one before it.
#[inline(always)]
fn only_port(ports: &[u32]) -> Option<u32> {
    let (first, others) = ports.split_first()?;
    others.iter().all(|port| port == first).then_some(*first)
}
