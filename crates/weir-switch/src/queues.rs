//! The traffic manager: bounded queues per port and priority, strict priority, rates per port.

use crate::switch::Switch;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use weir_arch::{EgressPacket, PRIORITIES};

/// Packets that a queue holds unless told otherwise, as in simple_switch.
pub const DEFAULT_CAPACITY: usize = 64;

/// How fast a port sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// What a control plane has set of the queues of a port, by [`Write::Queue`](crate::Write::Queue).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueConfig {
    /// How fast the port sends while it is shaped.
    pub rate: PortRate,
    /// Whether the rate applies.
    pub is_shaped: bool,
    /// Packets that each queue holds; `None`: as many as without a control plane.
    pub capacity: Option<u32>,
}

impl QueueConfig {
    /// The rate at which the port sends.
    #[must_use]
    pub fn effective_rate(&self) -> PortRate {
        match self.is_shaped {
            true => self.rate,
            false => PortRate::default(),
        }
    }
}

/// A packet in a queue.
#[derive(Debug, Clone)]
struct Queued {
    packet: EgressPacket,
    enqueued_ns: u64,
    sequence: u64,
}

/// A queue of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueStats {
    /// The port.
    pub port: u32,
    /// Its priority; 7 is served first.
    pub priority: u32,
    /// Packets in it.
    pub depth: u64,
    /// Most packets that were in it at once.
    pub highest: u64,
    /// Packets it has room for.
    pub capacity: u64,
    /// Packets dropped because it was full.
    pub refused: u64,
}

#[derive(Debug, Clone)]
struct PortQueues {
    queues: [VecDeque<Queued>; PRIORITIES],
    /// Per queue: most packets at once, packets refused.
    marks: [(u64, u64); PRIORITIES],
    capacity: usize,
    rate: PortRate,
    /// Capacity and rate while no control plane has set others.
    initial: (usize, PortRate),
    /// What a control plane has set.
    config: Option<QueueConfig>,
    /// Packets that the port's device takes now; `None`: all that come.
    credit: Option<u32>,
    /// When the port has sent what it is sending.
    free_ns: u64,
}

impl PortQueues {
    fn depth(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    /// When and with which sequence number the next packet can leave. `None`: there is none, or the
    /// device takes none.
    fn ready(&self) -> Option<(u64, u64)> {
        if self.credit == Some(0) {
            return None;
        }
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
    pub priority: u64,
}

/// All queues.
#[derive(Debug, Clone)]
pub(crate) struct TrafficManager {
    ports: BTreeMap<u32, PortQueues>,
    capacity: usize,
    sequence: u64,
    /// Packets in all queues.
    total: usize,
    /// Ports that have a rate.
    limited: usize,
    /// Ports whose device does not take all that comes.
    held_back: usize,
    /// The least capacity of all ports.
    least_capacity: usize,
}

impl TrafficManager {
    pub(crate) fn new(capacity: usize) -> Self {
        TrafficManager {
            ports: BTreeMap::new(),
            capacity,
            sequence: 0,
            total: 0,
            limited: 0,
            held_back: 0,
            least_capacity: capacity,
        }
    }

    /// Packets that a queue of a port holds.
    pub(crate) fn capacity(&self, port: u32) -> usize {
        self.ports.get(&port).map_or(self.capacity, |p| p.capacity)
    }

    /// Packets that every queue of any port holds.
    pub(crate) fn least_capacity(&self) -> usize {
        self.least_capacity
    }

    fn port(&mut self, port: u32) -> &mut PortQueues {
        let capacity = self.capacity;
        self.ports.entry(port).or_insert_with(|| PortQueues {
            queues: Default::default(),
            marks: Default::default(),
            capacity,
            rate: PortRate::default(),
            initial: (capacity, PortRate::default()),
            config: None,
            credit: None,
            free_ns: 0,
        })
    }

    pub(crate) fn set_rate(&mut self, port: u32, rate: PortRate) {
        self.port(port).initial.1 = rate;
        self.settle(port, None);
    }

    /// Sets capacity and rate of a port to those that apply. At a new rate, the port is free at
    /// `now_ns`: when it would be at the old one does not count.
    fn settle(&mut self, port: u32, now_ns: Option<u64>) {
        let queues = self.port(port);
        let (capacity, initial) = queues.initial;
        let rate = queues.config.map_or(initial, |c| c.effective_rate());
        if let Some(now_ns) = now_ns.filter(|_| rate != queues.rate) {
            queues.free_ns = queues.free_ns.min(now_ns);
        }
        queues.rate = rate;
        queues.capacity = queues.config.and_then(|c| c.capacity).map_or(capacity, |c| c as usize);
        self.limited = self.ports.values().filter(|p| p.rate != PortRate::default()).count();
        let capacities = self.ports.values().map(|p| p.capacity);
        self.least_capacity = capacities.min().map_or(self.capacity, |least| least.min(self.capacity));
    }

    /// Sets what a control plane says of a port's queues; `None`: nothing any more. Gives what was
    /// set before.
    pub(crate) fn configure(&mut self, port: u32, config: Option<QueueConfig>, now_ns: u64) -> Option<QueueConfig> {
        let was = std::mem::replace(&mut self.port(port).config, config);
        self.settle(port, Some(now_ns));
        was
    }

    /// What control planes have set, by port.
    pub(crate) fn configured(&self) -> impl Iterator<Item = (u32, QueueConfig)> {
        self.ports.iter().filter_map(|(port, p)| Some((*port, p.config?)))
    }

    /// The rate of a port, from the start or set by a control plane, and the capacity if a control
    /// plane has set it.
    pub(crate) fn config(&self, port: u32) -> QueueConfig {
        let queues = self.ports.get(&port);
        let rate = queues.map_or(PortRate::default(), |p| p.rate);
        let initial = QueueConfig {
            rate,
            is_shaped: rate != PortRate::default(),
            capacity: None,
        };
        queues.and_then(|p| p.config).unwrap_or(initial)
    }

    /// Ports of which anything is known.
    pub(crate) fn ports(&self) -> impl Iterator<Item = u32> {
        self.ports.keys().copied()
    }

    /// Sets how many packets may leave for a port's device; `None`: all.
    /// Those that waited for it leave at `now_ns` at the earliest.
    pub(crate) fn set_credit(&mut self, port: u32, credit: Option<u32>, now_ns: u64) {
        let known = self.ports.get(&port).and_then(|p| p.credit);
        if known != credit {
            let queues = self.port(port);
            if known == Some(0) {
                queues.free_ns = queues.free_ns.max(now_ns);
            }
            queues.credit = credit;
            self.held_back = self.ports.values().filter(|p| p.credit.is_some()).count();
        }
    }

    pub(crate) fn set_capacity(&mut self, port: u32, capacity: usize) {
        self.port(port).initial.0 = capacity;
        self.settle(port, None);
    }

    /// Queues that have ever held or refused a packet.
    pub(crate) fn stats(&self) -> impl Iterator<Item = QueueStats> {
        self.ports.iter().flat_map(|(port, p)| {
            let marked = p.marks.iter().zip(&p.queues).zip(0..);
            let used = marked.filter(|((mark, _), _)| **mark != (0, 0));
            used.map(|((mark, queue), priority)| QueueStats {
                port: *port,
                priority,
                depth: queue.len() as u64,
                highest: mark.0,
                capacity: p.capacity as u64,
                refused: mark.1,
            })
        })
    }

    /// Whether a port has a rate.
    pub(crate) fn has_rate(&self) -> bool {
        self.limited > 0
    }

    /// Whether every packet can leave when it comes: no port has a rate, no device holds back.
    pub(crate) fn is_unlimited(&self) -> bool {
        self.limited == 0 && self.held_back == 0
    }

    /// Packets in the queues of a port.
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
        self.total
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
            queues.marks[priority as usize].1 += 1;
            Err(Refused::Full)
        } else {
            Ok(())
        }
    }

    /// Puts a packet that was admitted in its queue.
    pub(crate) fn push(&mut self, port: u32, priority: u64, packet: EgressPacket, now_ns: u64) {
        let sequence = self.sequence;
        self.sequence += 1;
        let PortQueues { queues, marks, .. } = self.port(port);
        let slot = usize::try_from(priority).ok();
        if let Some((queue, mark)) = slot.and_then(|p| queues.get_mut(p).zip(marks.get_mut(p))) {
            queue.push_back(Queued {
                packet,
                enqueued_ns: now_ns,
                sequence,
            });
            mark.0 = mark.0.max(queue.len() as u64);
            self.total += 1;
        }
    }

    /// When the next packet can leave.
    #[inline]
    pub(crate) fn next_departure(&self) -> Option<u64> {
        if self.total == 0 {
            return None;
        }
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
        let there = |q: &VecDeque<Queued>| q.front().is_some_and(|q| q.enqueued_ns <= time_ns);
        let priority = queues.queues.iter().rposition(there)?;
        let queue = queues.queues.get_mut(priority)?;
        let queued = queue.pop_front()?;
        let depth = queue.len() as u64;
        self.total -= 1;
        if let Some(credit) = &mut queues.credit {
            *credit = credit.saturating_sub(1);
        }
        if queues.rate.bits_per_second.is_none() {
            queues.free_ns = time_ns.saturating_add(queues.rate.busy_ns(0));
        }
        Some(Departure {
            packet: queued.packet,
            port,
            enqueued_ns: queued.enqueued_ns,
            time_ns,
            depth,
            priority: priority as u64,
        })
    }

    /// Tells that a port began to send a packet.
    pub(crate) fn sent(&mut self, port: u32, bytes: usize, time_ns: u64) {
        if let Some(queues) = self.ports.get_mut(&port) {
            queues.free_ns = queues.free_ns.max(time_ns.saturating_add(queues.rate.busy_ns(bytes)));
        }
    }
}

/// Queues of the switch's ports.
impl Switch {
    /// Limits how fast a port sends.
    pub fn set_port_rate(&mut self, port: u32, rate: PortRate) {
        self.queues.set_rate(port, rate);
    }

    /// Back-pressure: sets how many packets may leave their queues for a port's device; `None`: all
    /// that come, as at the start. Each packet that leaves uses up one; the others wait in the
    /// port's queues, and packets for which a queue has no room are dropped.
    /// `now_ns`: those that waited for it leave at this time at the earliest.
    pub fn set_port_credit(&mut self, port: u32, packets: Option<u32>, now_ns: u64) {
        self.queues.set_credit(port, packets, now_ns);
    }

    /// Whether it matters that packets wait in queues and not in a device: a packet can read how
    /// long it waited, or the program or a clone session chooses the order in which packets leave.
    #[must_use]
    pub fn observes_queues(&self) -> bool {
        self.program_observes_queues || self.replication.has_classes()
    }

    /// Sets how many packets each of a port's queues holds.
    pub fn set_queue_capacity(&mut self, port: u32, packets: usize) {
        self.queues.set_capacity(port, packets);
    }

    /// The rate of a port, from the start or set by [`Write::Queue`](crate::Write::Queue), and the
    /// capacity if that has set it.
    #[must_use]
    pub fn queue_config(&self, port: u32) -> QueueConfig {
        self.queues.config(port)
    }

    /// What control planes have set of queues, by port.
    pub fn queue_configs(&self) -> impl Iterator<Item = (u32, QueueConfig)> {
        self.queues.configured()
    }

    /// Packets for which each queue of a port has room.
    #[must_use]
    pub fn queue_capacity(&self, port: u32) -> usize {
        self.queues.capacity(port)
    }

    /// Ports with queues that were used or set.
    pub fn queue_ports(&self) -> impl Iterator<Item = u32> {
        self.queues.ports()
    }

    /// Packets in the queues of a port.
    #[must_use]
    pub fn queue_depth(&self, port: u32) -> u64 {
        self.queues.depth(port)
    }

    /// Packets in all queues.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.queues.total()
    }

    /// Whether a packet that comes in now leaves at once: no packet is in a queue, no port has a
    /// rate, and no device is behind.
    #[must_use]
    pub fn leaves_at_once(&self) -> bool {
        self.queues.total() == 0 && self.queues.is_unlimited()
    }

    /// Queues that have ever held or refused a packet. Compiled code leaves out queues that it need
    /// not use.
    pub fn queue_stats(&self) -> impl Iterator<Item = QueueStats> {
        self.queues.stats()
    }

    /// Whether a port has a rate.
    #[must_use]
    pub fn has_port_rate(&self) -> bool {
        self.queues.has_rate()
    }
}
