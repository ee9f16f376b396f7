//! The flows: a table of bounded size.

use crate::running::Running;
use crate::sequence::{Sequence, SequenceCounts};
use crate::watch::Watch;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;
use weir_int::FlowKey;

/// Index of a path in the collector's list.
pub(crate) type PathIndex = u32;

/// What is known of a flow.
#[derive(Debug, Clone)]
pub(crate) struct Flow {
    pub key: FlowKey,
    /// The path of its last report.
    pub path: Option<PathIndex>,
    /// Whether a report came since the clock hand passed.
    is_recent: bool,
    /// Whether a report came in this interval.
    pub is_changed: bool,
    /// ns since the Unix epoch.
    pub first_seen: u64,
    pub last_seen: u64,
    /// Transit time of the last packet, ns.
    pub transit: Option<i64>,
    /// RFC 3550, section 6.4.1, in ns.
    pub jitter: f32,
    /// What few flows have; apart from the rest, which is small so that it is in few cache lines.
    pub rare: Option<Box<Rare>>,
    pub interval: FlowInterval,
    /// The epoch of the clock correction that latencies are computed with.
    epoch: u32,
}

/// What few flows have.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rare {
    /// Whether the latency is above its limit.
    pub watch: Watch,
    /// Sequence numbers that the INT source puts into packets, and the counts that were in an
    /// interval before.
    pub sequence: Option<(Sequence, SequenceCounts)>,
}

/// What came in an interval.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowInterval {
    pub reports: u32,
    pub dropped: u32,
    pub congested: u32,
    pub path_changes: u32,
    /// End-to-end latency in ns.
    pub latency: Running,
}

impl Flow {
    fn new(key: FlowKey, now: u64) -> Self {
        Flow {
            key,
            path: None,
            is_recent: true,
            is_changed: false,
            first_seen: now,
            last_seen: now,
            transit: None,
            jitter: 0.0,
            rare: None,
            interval: FlowInterval::default(),
            epoch: 0,
        }
    }

    /// Forgets latencies that were computed with an older correction of clocks.
    pub fn recalibrate(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.interval.latency = Running::default();
            self.transit = None;
        }
    }

    /// Takes the transit time of a packet, which may be negative where clocks differ.
    pub fn transit(&mut self, transit: i64) {
        if let Some(before) = self.transit {
            let difference = transit.abs_diff(before) as f32;
            self.jitter += (difference - self.jitter) / 16.0;
        }
        self.transit = Some(transit);
    }
}

/// The place of a flow in the table, for as long as no flow is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlowAt(u32);

/// Flows for which room is reserved.
const RESERVED: usize = 1 << 20;

/// The flows. When the table is full, a flow without recent reports makes room (the CLOCK
/// algorithm: second chance).
#[derive(Debug)]
pub(crate) struct Flows {
    index: HashTable<u32>,
    slots: Vec<Flow>,
    hasher: RandomState,
    hand: usize,
    most: usize,
}

impl Flows {
    /// At most this many flows, at least one.
    pub fn new(most: usize) -> Self {
        Flows {
            index: HashTable::new(),
            // Memory that is not used yet is not resident, and growing would take twice as much.
            slots: Vec::with_capacity(most.min(RESERVED)),
            hasher: RandomState::default(),
            hand: 0,
            most: most.clamp(1, u32::MAX as usize),
        }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut()
    }

    /// The place of a flow, if it is known.
    pub fn find(&self, key: &FlowKey) -> Option<FlowAt> {
        let hash = self.hasher.hash_one(key);
        let found = self.index.find(hash, |at| self.slots[*at as usize].key == *key);
        found.map(|at| FlowAt(*at))
    }

    /// Reads a part of each cache line of these flows, so that their misses overlap.
    pub fn warm(&self, flows: &[Option<FlowAt>]) {
        let touch = |at: &FlowAt| {
            let flow = self.slots.get(at.0 as usize)?;
            Some(flow.last_seen ^ flow.interval.latency.max ^ u64::from(flow.epoch))
        };
        let touched = flows.iter().flatten().filter_map(touch);
        std::hint::black_box(touched.fold(0, |all, value| all ^ value));
    }

    /// The place of a flow, which is added if it is new, and the flow that had to make room for it.
    /// `hint`: where it was found before.
    pub fn find_or_add(&mut self, key: &FlowKey, hint: Option<FlowAt>, now: u64) -> (FlowAt, Option<Flow>) {
        let hint = hint.filter(|at| self.slots.get(at.0 as usize).is_some_and(|flow| flow.key == *key));
        match hint.or_else(|| self.find(key)) {
            Some(at) => {
                self.slots[at.0 as usize].is_recent = true;
                (at, None)
            }
            None => self.insert(self.hasher.hash_one(key), Flow::new(*key, now)),
        }
    }

    /// The flow at a place.
    pub fn at(&mut self, at: FlowAt) -> Option<&mut Flow> {
        self.slots.get_mut(at.0 as usize)
    }

    fn insert(&mut self, hash: u64, flow: Flow) -> (FlowAt, Option<Flow>) {
        let (at, evicted) = if self.slots.len() < self.most {
            self.slots.push(flow);
            (self.slots.len() - 1, None)
        } else {
            let at = self.victim();
            (at, Some(std::mem::replace(&mut self.slots[at], flow)))
        };
        if let Some(evicted) = &evicted {
            let hash = self.hasher.hash_one(evicted.key);
            if let Ok(entry) = self.index.find_entry(hash, |other| *other as usize == at) {
                entry.remove();
            }
        }
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index
            .insert_unique(hash, at as u32, |other| hasher.hash_one(slots[*other as usize].key));
        (FlowAt(at as u32), evicted)
    }

    /// The next flow without a report since the hand passed it.
    fn victim(&mut self) -> usize {
        loop {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.slots.len();
            if !std::mem::take(&mut self.slots[at].is_recent) {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Flows;
    use weir_int::FlowKey;

    fn key(n: u32) -> FlowKey {
        FlowKey {
            source: std::net::Ipv4Addr::from_bits(n).into(),
            destination: [10, 0, 0, 1].into(),
            source_port: 1,
            destination_port: 2,
            protocol: 17,
        }
    }

    #[test]
    fn a_full_table_keeps_its_size_and_recent_flows() {
        let mut flows = Flows::new(100);
        for n in 0..100 {
            assert!(flows.find_or_add(&key(n), None, 1).1.is_none());
        }
        // The first flow that makes room clears the marks of all.
        assert_eq!(flows.find_or_add(&key(1000), None, 2).1.unwrap().key, key(0));
        for n in 0..50 {
            flows.find_or_add(&key(50), None, 3);
            let (at, evicted) = flows.find_or_add(&key(2000 + n), None, 3);
            assert_eq!(flows.at(at).unwrap().first_seen, 3);
            assert!(evicted.is_some_and(|evicted| evicted.key != key(50)));
        }
        assert_eq!(flows.len(), 100);
        assert_eq!(flows.index.len(), 100);
        let kept = flows.find(&key(50)).unwrap();
        assert_eq!(flows.at(kept).unwrap().first_seen, 1);
    }

    #[test]
    fn a_million_flows_fit_in_200_megabytes() {
        // The index has 5 bytes per place, and up to twice as many places as flows.
        assert!(size_of::<super::Flow>() + 10 <= 200, "{}", size_of::<super::Flow>());
    }

    #[test]
    fn a_wrong_hint_does_no_harm() {
        let mut flows = Flows::new(2);
        let (first, _) = flows.find_or_add(&key(1), None, 1);
        let (second, _) = flows.find_or_add(&key(2), Some(first), 1);
        assert_ne!(first, second);
        assert_eq!(flows.find_or_add(&key(1), Some(second), 1).0, first);
        assert_eq!(flows.find_or_add(&key(1), Some(super::FlowAt(9)), 1).0, first);
    }

    #[test]
    fn jitter_is_that_of_rfc_3550() {
        let mut flows = Flows::new(1);
        let (at, _) = flows.find_or_add(&key(1), None, 0);
        let flow = flows.at(at).unwrap();
        for transit in [100, 116, 100] {
            flow.transit(transit);
        }
        assert!((flow.jitter - (1.0 + 15.0 / 16.0)).abs() < 1e-6);
    }
}
