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
