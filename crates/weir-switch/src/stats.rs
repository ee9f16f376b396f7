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

/// Ports below this are counted by position.
const NEAR: u32 = 1024;

/// Packets received and sent, then bytes. Packets and bytes are apart so that they are added to one by one: what was just
/// stored is had again sooner in words than in pairs.
type Words = [u64; 4];

const RECEIVED: usize = 0;
const SENT: usize = 1;

fn stats(words: &Words) -> PortStats {
    let count = |way| Count {
        packets: words[way],
        bytes: words[way + 2],
    };
    PortStats {
        rx: count(RECEIVED),
        tx: count(SENT),
    }
}

/// What ports received and sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ports {
    near: Vec<Words>,
    far: BTreeMap<u32, Words>,
}

impl Ports {
    #[inline]
    fn add(&mut self, way: usize, port: u32, packets: u64, bytes: u64) {
        let words = match self.near.get_mut(port as usize) {
            Some(words) => words,
            None => self.make(port),
        };
        words[way] = words[way].wrapping_add(packets);
        words[way + 2] = words[way + 2].wrapping_add(bytes);
    }

    #[cold]
    fn make(&mut self, port: u32) -> &mut Words {
        if port < NEAR {
            self.near.resize(NEAR as usize, Words::default());
            &mut self.near[port as usize]
        } else {
            self.far.entry(port).or_default()
        }
    }

    pub(crate) fn get(&self, port: u32) -> PortStats {
        let near = self.near.get(port as usize);
        near.or_else(|| self.far.get(&port)).map_or(PortStats::default(), stats)
    }

    /// Ports that have received or sent something, in order.
    pub(crate) fn active(&self) -> impl Iterator<Item = (u32, PortStats)> {
        let near = (0..NEAR).zip(self.near.iter().map(stats));
        let far = self.far.iter().map(|(port, words)| (*port, stats(words)));
        near.chain(far).filter(|(_, stats)| *stats != PortStats::default())
    }
}

/// All statistics of the switch itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stats {
    pub ports: Ports,
    drops: BTreeMap<(DropReason, Option<Place>), u64>,
}

impl Stats {
    #[inline]
    pub(crate) fn received(&mut self, port: u32, bytes: usize) {
        self.ports.add(RECEIVED, port, 1, bytes as u64);
    }

    /// Packets that came in together.
    #[inline]
    pub(crate) fn received_all(&mut self, ports: &[u32], lengths: &[u64]) {
        let Some(&first) = ports.first() else { return };
        if ports.iter().all(|p| *p == first) {
            let bytes = lengths.iter().sum();
            self.ports.add(RECEIVED, first, ports.len() as u64, bytes);
        } else {
            for (port, bytes) in ports.iter().zip(lengths) {
                self.ports.add(RECEIVED, *port, 1, *bytes);
            }
        }
    }

    /// Packets dropped for the same reason, at no place that is known.
    pub(crate) fn dropped_many(&mut self, reason: DropReason, packets: u64) {
        *self.drops.entry((reason, None)).or_default() += packets;
    }

    #[inline]
    pub(crate) fn sent(&mut self, port: u32, bytes: usize) {
        self.ports.add(SENT, port, 1, bytes as u64);
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
