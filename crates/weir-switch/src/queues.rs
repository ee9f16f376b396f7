//! The traffic manager: bounded queues per port and priority, strict priority, rates per port.

use std::collections::{BTreeMap, VecDeque};
use weir_arch::EgressPacket;

/// Queues of a port; priority 7 is served first.
pub const PRIORITIES: usize = 8;
/// Packets that a queue holds unless told otherwise, as in simple_switch.
pub const DEFAULT_CAPACITY: usize = 64;

/// How fast a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortRate {
    /// Bits per second; `None`: no limit.
    pub bits_per_second: Option<u64>,
    /// Packets per second; `None`: no limit.
    pub packets_per_second: Option<u64>,
}

impl PortRate {
    /// How long the port is busy with a packet, in ns.
    fn busy_ns(&self, bytes: usize) -> u64 {
        let over = |amount: u128, rate: Option<u64>| match rate {
            Some(rate) if rate > 0 => u64::try_from(amount * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX),
            _ => 0,
        };
        over(bytes as u128 * 8, self.bits_per_second).max(over(1, self.packets_per_second))
    }
}

/// A packet in a queue.
#[derive(Debug, Clone)]
struct Queued {
    packet: EgressPacket,
    enqueued_ns: u64,
    sequence: u64,
}

#[derive(Debug, Clone)]
struct PortQueues {
    queues: [VecDeque<Queued>; PRIORITIES],
    capacity: usize,
    rate: PortRate,
    /// When the port has sent what it is sending.
    free_ns: u64,
}

impl PortQueues {
    fn depth(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// When and with which sequence number the next packet can leave.
    fn ready(&self) -> Option<(u64, u64)> {
        let earliest = self
            .queues
            .iter()
            .filter_map(VecDeque::front)
            .min_by_key(|q| (q.enqueued_ns, q.sequence))?;
        Some((earliest.enqueued_ns.max(self.free_ns), earliest.sequence))
    }
}

/// Why a packet was not put in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    NoSuchPriority,
}

/// A packet that left its queue.
#[derive(Debug)]
pub(crate) struct Departure {
    pub packet: EgressPacket,
    pub port: u32,
    pub enqueued_ns: u64,
    /// When it left.
    pub time_ns: u64,
    /// Packets left in the queue.
    pub depth: u64,
}

/// All queues.
#[derive(Debug, Clone)]
pub(crate) struct TrafficManager {
    ports: BTreeMap<u32, PortQueues>,
    capacity: usize,
    sequence: u64,
}

impl TrafficManager {
    pub(crate) fn new(capacity: usize) -> Self {
        TrafficManager {
            ports: BTreeMap::new(),
            capacity,
            sequence: 0,
        }
    }

    fn port(&mut self, port: u32) -> &mut PortQueues {
        let capacity = self.capacity;
        self.ports.entry(port).or_insert_with(|| PortQueues {
            queues: Default::default(),
            capacity,
            rate: PortRate::default(),
            free_ns: 0,
        })
    }

    pub(crate) fn set_rate(&mut self, port: u32, rate: PortRate) {
        self.port(port).rate = rate;
    }

    pub(crate) fn set_capacity(&mut self, port: u32, capacity: usize) {
        self.port(port).capacity = capacity;
    }

    /// Packets in the queues of a port.
    /// Whether every packet can leave when it comes: no port has a rate.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.ports.values().all(|p| p.rate == PortRate::default())
    }

    pub(crate) fn depth(&self, port: u32) -> u64 {
        self.ports.get(&port).map_or(0, |p| p.depth() as u64)
    }

    /// Packets in one queue of a port.
    pub(crate) fn queue_depth(&self, port: u32, priority: u64) -> u64 {
        let queue = self
            .ports
            .get(&port)
            .and_then(|p| p.queues.get(usize::try_from(priority).ok()?));
        queue.map_or(0, |q| q.len() as u64)
    }

    /// Packets in all queues.
    pub(crate) fn total(&self) -> usize {
        self.ports.values().map(PortQueues::depth).sum()
    }

    /// Whether a packet of this priority can be put in a queue of the port.
    pub(crate) fn admit(&mut self, port: u32, priority: u64) -> Result<(), Refused> {
        let queues = self.port(port);
        let capacity = queues.capacity;
        let queue = usize::try_from(priority)
            .ok()
            .and_then(|p| queues.queues.get(p))
            .ok_or(Refused::NoSuchPriority)?;
        if queue.len() >= capacity {
            Err(Refused::Full)
        } else {
            Ok(())
        }
    }

    /// Puts a packet that was admitted in its queue.
    pub(crate) fn push(&mut self, port: u32, priority: u64, packet: EgressPacket, now_ns: u64) {
        let sequence = self.sequence;
        self.sequence += 1;
        let queues = &mut self.port(port).queues;
        if let Some(queue) = usize::try_from(priority).ok().and_then(|p| queues.get_mut(p)) {
            queue.push_back(Queued {
                packet,
                enqueued_ns: now_ns,
                sequence,
            });
        }
    }

    /// When the next packet can leave.
    pub(crate) fn next_departure(&self) -> Option<u64> {
        self.ports
            .values()
            .filter_map(PortQueues::ready)
            .min()
            .map(|(time, _)| time)
    }

    /// Takes the next packet: of the ports that can send first the one whose packet came first; of
    /// that port's packets that are there by then the one of the highest priority.
    pub(crate) fn pop(&mut self) -> Option<Departure> {
        let ready = self.ports.iter().filter_map(|(port, q)| q.ready().map(|r| (r, *port)));
        let ((time_ns, _), port) = ready.min()?;
        let queues = self.ports.get_mut(&port)?;
        let there = |q: &&mut VecDeque<Queued>| q.front().is_some_and(|q| q.enqueued_ns <= time_ns);
        let queue = queues.queues.iter_mut().rev().find(there)?;
        let queued = queue.pop_front()?;
        let depth = queue.len() as u64;
        if queues.rate.bits_per_second.is_none() {
            queues.free_ns = time_ns.saturating_add(queues.rate.busy_ns(0));
        }
        Some(Departure {
            packet: queued.packet,
            port,
            enqueued_ns: queued.enqueued_ns,
            time_ns,
            depth,
        })
    }

    /// Tells that a port began to send a packet.
    pub(crate) fn sent(&mut self, port: u32, bytes: usize, time_ns: u64) {
        if let Some(queues) = self.ports.get_mut(&port) {
            queues.free_ns = queues.free_ns.max(time_ns.saturating_add(queues.rate.busy_ns(bytes)));
        }
    }
}
