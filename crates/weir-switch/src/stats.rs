//! What the switch counts.

use std::collections::BTreeMap;
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
    pub ports: BTreeMap<u32, PortStats>,
    drops: BTreeMap<(DropReason, Option<Place>), u64>,
}

impl Stats {
    pub(crate) fn received(&mut self, port: u32, bytes: usize) {
        self.ports.entry(port).or_default().rx.add(bytes as u64);
    }

    /// Packets that came in together.
    pub(crate) fn received_all(&mut self, ports: &[u32], lengths: impl Iterator<Item = usize>) {
        // Neighbours mostly came in at the same port: one search for all of them.
        let mut sum: Option<(u32, Count)> = None;
        for (port, bytes) in ports.iter().zip(lengths) {
            match &mut sum {
                Some((p, count)) if p == port => count.add(bytes as u64),
                _ => {
                    self.add_received(sum.take());
                    let mut count = Count::default();
                    count.add(bytes as u64);
                    sum = Some((*port, count));
                }
            }
        }
        self.add_received(sum);
    }

    fn add_received(&mut self, sum: Option<(u32, Count)>) {
        if let Some((port, count)) = sum {
            let rx = &mut self.ports.entry(port).or_default().rx;
            rx.packets = rx.packets.wrapping_add(count.packets);
            rx.bytes = rx.bytes.wrapping_add(count.bytes);
        }
    }

    /// Packets dropped for the same reason, at no place that is known.
    pub(crate) fn dropped_many(&mut self, reason: DropReason, packets: u64) {
        *self.drops.entry((reason, None)).or_default() += packets;
    }

    pub(crate) fn sent(&mut self, port: u32, bytes: usize) {
        self.ports.entry(port).or_default().tx.add(bytes as u64);
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
