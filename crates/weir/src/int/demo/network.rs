//! Switches and links between them, in virtual time.

use super::capture::Capture;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use weir_switch::Switch;

/// Parts per million.
const MILLION: u64 = 1_000_000;

/// A port of a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// Index of the switch.
    pub switch: usize,
    /// Its port.
    pub port: u32,
}

/// A link, in one direction.
#[derive(Debug, Clone, Copy)]
pub struct Link {
    /// Where it ends.
    pub to: At,
    /// Its delay, ns.
    pub delay: u64,
    /// Packets that it loses, of a million.
    pub loss: u64,
}

/// A switch and what its clock is ahead, ns.
pub struct Node {
    /// The switch.
    pub switch: Switch,
    /// Its clock shows this much more than the network's, ns.
    pub clock_ahead: u64,
}

/// A network.
pub struct Network {
    nodes: Vec<Node>,
    links: BTreeMap<At, Link>,
    /// Packets on links, by the time of their arrival and a number that keeps their order.
    arrivals: BinaryHeap<Reverse<(u64, u64, At)>>,
    packets: BTreeMap<u64, Vec<u8>>,
    number: u64,
    random: Random,
    /// Packets that links have lost.
    pub lost: u64,
}

/// Random numbers, the same in every run (xorshift).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// A time until the next of events that come independently of each other, on average after
    /// `mean`.
    pub fn interval(&mut self, mean: u64) -> u64 {
        let share = (self.below(MILLION) + 1) as f64 / MILLION as f64;
        (-share.ln() * mean as f64) as u64
    }
}

impl Network {
    /// Switches with the links that leave their ports.
    pub fn new(nodes: Vec<Node>, links: BTreeMap<At, Link>) -> Self {
        Network {
            nodes,
            links,
            arrivals: BinaryHeap::new(),
            packets: BTreeMap::new(),
            number: 0,
            random: Random(0x5745_4952),
            lost: 0,
        }
    }

    /// Has a packet arrive at a port at a time.
    pub fn send(&mut self, at: At, time: u64, packet: Vec<u8>) {
        self.number += 1;
        self.arrivals.push(Reverse((time, self.number, at)));
        self.packets.insert(self.number, packet);
    }

    /// Runs until a time. What leaves by a port without a link goes to `deliver`; `links` captures
    /// the rest.
    pub fn run(&mut self, until: u64, links: &mut Capture, mut deliver: impl FnMut(At, u64, Vec<u8>)) {
        loop {
            let arrival = self.arrivals.peek().map(|Reverse((time, ..))| *time);
            let departures = self.nodes.iter().enumerate().filter_map(|(at, node)| {
                let time = node.switch.next_departure()?;
                Some((time.saturating_sub(node.clock_ahead), at))
            });
            let departure = departures.min();
            match (arrival, departure) {
                (None, None) => return,
                (arrival, Some((time, at))) if arrival.is_none_or(|arrival| time <= arrival) => {
                    if time > until {
                        return;
                    }
                    self.depart(at, time, links, &mut deliver);
                }
                (Some(time), _) if time <= until => self.arrive(),
                (Some(_) | None, _) => return,
            }
        }
    }

    fn arrive(&mut self) {
        let Some(Reverse((time, number, at))) = self.arrivals.pop() else {
            return;
        };
        let packet = self.packets.remove(&number).unwrap_or_default();
        if let Some(node) = self.nodes.get_mut(at.switch) {
            node.switch.receive(at.port, &packet, time + node.clock_ahead);
        }
    }

    fn depart(&mut self, at: usize, time: u64, links: &mut Capture, deliver: &mut impl FnMut(At, u64, Vec<u8>)) {
        let Some(node) = self.nodes.get_mut(at) else {
            return;
        };
        let ahead = node.clock_ahead;
        for output in node.switch.advance(time + ahead) {
            let from = At {
                switch: at,
                port: output.port,
            };
            let time = output.time_ns.saturating_sub(ahead).max(time);
            match self.links.get(&from).copied() {
                None => deliver(from, time, output.bytes),
                Some(link) if self.random.below(MILLION) < link.loss => self.lost += 1,
                Some(link) => {
                    links.write(&output.bytes, time);
                    self.send(link.to, time + link.delay, output.bytes);
                }
            }
        }
    }
}
