//! Ports, queues, links and paths with what was measured of them.

use crate::clock::{self, ClockOffset, LinkMinimum};
use crate::histogram::Histogram;
use crate::path::{LinkKey, Path, PathHop, PortKey};
use crate::running::Running;
use crate::watch::Watch;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::hash::Hash;
use weir_int::{FlowKey, Timestamp};

/// Things with names, in a list of bounded length.
#[derive(Debug)]
pub(crate) struct Named<K, V> {
    index: HashMap<K, u32, RandomState>,
    pub list: Vec<V>,
    most: usize,
}

impl<K: Hash + Eq, V> Named<K, V> {
    pub fn new(most: usize) -> Self {
        Named {
            index: HashMap::default(),
            list: Vec::new(),
            most: most.min(u32::MAX as usize),
        }
    }

    /// The index of a thing; `None` if it is new and the list is full.
    pub fn find_or_add(&mut self, key: K, make: impl FnOnce() -> V) -> Option<u32> {
        if let Some(at) = self.index.get(&key) {
            return Some(*at);
        }
        if self.list.len() >= self.most {
            return None;
        }
        let at = self.list.len() as u32;
        self.list.push(make());
        self.index.insert(key, at);
        Some(at)
    }

    /// Whether less than a quarter of the list is free.
    pub fn is_crowded(&self) -> bool {
        self.list.len() > self.most - self.most / 4
    }

    pub fn clear(&mut self) {
        self.index.clear();
        self.list.clear();
    }

    pub fn get(&self, at: u32) -> Option<&V> {
        self.list.get(at as usize)
    }

    pub fn get_mut(&mut self, at: u32) -> Option<&mut V> {
        self.list.get_mut(at as usize)
    }
}

/// An egress port.
#[derive(Debug)]
pub(crate) struct PortState {
    pub key: PortKey,
    /// Latency of the node for packets that leave by this port, ns.
    pub latency: Histogram,
    pub tx_utilisation: Running,
    pub buffer_occupancy: Running,
    pub queues: Vec<QueueState>,
    pub latency_watch: Watch,
    pub tx_watch: Watch,
}

/// A queue of a port.
#[derive(Debug)]
pub(crate) struct QueueState {
    pub id: u8,
    pub occupancy: Histogram,
    pub watch: Watch,
    /// The node's timestamp of the packet that met the limit.
    pub rose_at: Option<Timestamp>,
    /// The flow that met the largest occupancy since then.
    pub peak_flow: Option<FlowKey>,
}

impl PortState {
    pub fn new(key: PortKey) -> Self {
        PortState {
            key,
            latency: Histogram::new(),
            tx_utilisation: Running::default(),
            buffer_occupancy: Running::default(),
            queues: Vec::new(),
            latency_watch: Watch::default(),
            tx_watch: Watch::default(),
        }
    }

    /// The queue of a number.
    pub fn queue(&mut self, id: u8) -> &mut QueueState {
        let at = self.queues.iter().position(|queue| queue.id == id);
        let at = at.unwrap_or_else(|| {
            self.queues.push(QueueState {
                id,
                occupancy: Histogram::new(),
                watch: Watch::default(),
                rose_at: None,
                peak_flow: None,
            });
            self.queues.len() - 1
        });
        &mut self.queues[at]
    }
}

/// A correction for clocks that differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Correction {
    /// What the clock at the end shows more than that at the beginning, ns.
    pub offset: i64,
    /// Is increased when the offset changes by more than its uncertainty: what was recorded before
    /// is then wrong.
    pub epoch: u32,
}

impl Correction {
    /// Takes a new estimate. Whether earlier values are wrong by more than the uncertainty.
    pub fn update(&mut self, offset: i64, uncertainty: u64) -> bool {
        let is_wrong = offset.abs_diff(self.offset) > uncertainty;
        self.epoch += u32::from(is_wrong);
        self.offset = offset;
        is_wrong
    }
}

/// A link in one direction.
#[derive(Debug)]
pub(crate) struct LinkState {
    pub key: LinkKey,
    /// Latency, clock offset removed, ns.
    pub latency: Histogram,
    /// Least difference of timestamps in this interval and in the last one that had any, ns.
    pub minima: [Option<i64>; 2],
    /// When the interval with the older minimum ended, ns since the Unix epoch.
    pub minimum_end: u64,
    pub correction: Correction,
    /// Latencies below 0, which are not in the histogram.
    pub negative: u64,
}

impl LinkState {
    pub fn new(key: LinkKey) -> Self {
        LinkState {
            key,
            latency: Histogram::new(),
            minima: [None; 2],
            minimum_end: 0,
            correction: Correction::default(),
            negative: 0,
        }
    }

    /// Takes a difference of timestamps over the link, ns.
    pub fn record(&mut self, difference: i64) {
        let least = &mut self.minima[0];
        *least = Some(least.map_or(difference, |known| known.min(difference)));
        match u64::try_from(difference.saturating_sub(self.correction.offset)) {
            Ok(latency) => self.latency.record(latency),
            Err(_) => self.negative += 1,
        }
    }

    /// The least difference of this interval and the one before.
    pub fn minimum(&self) -> Option<i64> {
        self.minima.iter().flatten().min().copied()
    }
}

/// A path.
#[derive(Debug)]
pub(crate) struct PathState {
    pub path: Path,
    /// Indices of the egress port of each hop.
    pub ports: Box<[u32]>,
    /// Indices of the links between hops.
    pub links: Box<[u32]>,
    pub latency: Histogram,
    pub reports: u64,
    pub correction: Correction,
    pub negative: u64,
    /// Latencies include the links: they are differences of timestamps, not sums over hops.
    pub has_links: bool,
}

/// An offset and its uncertainty; none where clocks may well be equal.
fn significant(offset: i128, uncertainty: u128) -> (i64, u64) {
    let known = i64::try_from(offset).ok().zip(u64::try_from(uncertainty).ok());
    let known = known.filter(|(offset, uncertainty)| offset.unsigned_abs() > *uncertainty);
    known.unwrap_or((0, 0))
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Network {
    pub ports: Named<PortKey, PortState>,
    pub links: Named<LinkKey, LinkState>,
    pub paths: Named<Path, PathState>,
}

impl Network {
    /// The index of a path; `None` where a list is full.
    pub fn path(&mut self, hops: &[PathHop]) -> Option<u32> {
        let path = Path(hops.into());
        if let Some(at) = self.paths.index.get(&path) {
            return Some(*at);
        }
        let ports = hops.iter().map(|hop| {
            let key = hop.egress_port();
            self.ports.find_or_add(key, || PortState::new(key))
        });
        let ports = ports.collect::<Option<Box<[u32]>>>()?;
        let links = path
            .links()
            .map(|key| self.links.find_or_add(key, || LinkState::new(key)));
        let links = links.collect::<Option<Box<[u32]>>>()?;
        let state = PathState {
            path: path.clone(),
            ports,
            links,
            latency: Histogram::new(),
            reports: 0,
            correction: Correction::default(),
            negative: 0,
            has_links: false,
        };
        self.paths.find_or_add(path, || state)
    }

    /// Applies offsets of clocks to links and paths; how many latencies were computed without and
    /// are discarded.
    pub fn correct(&mut self, offsets: &[ClockOffset], minima: &[LinkMinimum]) -> u64 {
        let mut discarded = 0;
        let over_links = clock::over_links(minima);
        let by_node: HashMap<u32, &ClockOffset, RandomState> =
            offsets.iter().map(|offset| (offset.node, offset)).collect();
        let between = |from: Option<u32>, to: Option<u32>| -> (i64, u64) {
            let known = from.zip(to).and_then(|(from, to)| {
                let (from, to) = (by_node.get(&from)?, by_node.get(&to)?);
                let uncertainty = from.uncertainty.saturating_add(to.uncertainty);
                let offset = to.offset.saturating_sub(from.offset);
                // Clocks that may well be equal are taken as equal.
                (from.reference == to.reference && offset.unsigned_abs() > uncertainty).then_some((offset, uncertainty))
            });
            known.unwrap_or((0, 0))
        };
        for link in &mut self.links.list {
            let nodes = link.key.from.node.zip(link.key.to.node);
            let direct = nodes.and_then(|nodes| over_links.get(&nodes));
            // The link's own traffic tells more than that of others.
            let direct = direct.map(|&(offset, uncertainty)| significant(offset, uncertainty));
            let (offset, uncertainty) = direct.unwrap_or_else(|| between(link.key.from.node, link.key.to.node));
            if link.correction.update(offset, uncertainty) {
                discarded += link.latency.count();
                link.latency = Histogram::new();
                link.negative = 0;
            }
        }
        for path in &mut self.paths.list {
            let ends = (path.path.0.first(), path.path.0.last());
            let (offset, uncertainty) = between(ends.0.and_then(|h| h.node), ends.1.and_then(|h| h.node));
            if path.correction.update(offset, uncertainty) {
                discarded += path.latency.count();
                path.latency = Histogram::new();
                path.negative = 0;
            }
        }
        discarded
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.ports.clear();
        self.links.clear();
        self.paths.clear();
    }

    /// The least differences of timestamps over links between nodes that are known, at a time.
    pub fn minima(&self, now: u64) -> Vec<LinkMinimum> {
        let minimum = |link: &LinkState| {
            Some(LinkMinimum {
                from: link.key.from.node?,
                to: link.key.to.node?,
                nanoseconds: link.minimum()?,
                age: match link.minima[0] {
                    Some(_) => 0,
                    None => now.saturating_sub(link.minimum_end),
                },
            })
        };
        self.links.list.iter().filter_map(minimum).collect()
    }

    /// Whether one of the lists is nearly full.
    pub fn is_crowded(&self) -> bool {
        self.ports.is_crowded() || self.links.is_crowded() || self.paths.is_crowded()
    }
}
