//! A device with a known delay, to check the instrument against.
//!
//! Its delay is from the ingress timestamp of its receiving port to the egress timestamp of its
//! sending port, and it records both of each packet: what it did is known, not only what it was to
//! do.

use super::case::Case;
use super::stats::Summary;
use anyhow::Result;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_io::{TimestampedReceiver, TimestampedSender, now_ns};

/// Packets that wait in the device; more are dropped.
const QUEUE: usize = 4096;
/// Recorded delays of a size.
const RECORDED: usize = 1 << 20;
/// The longest wait for a packet: within it the device notices that it has to stop.
const WAIT: Duration = Duration::from_millis(20);
/// Before a departure the device spins for this time, ns.
const SPIN: u64 = 150_000;
/// Departures whose times from system call to egress give the lead of the next one: few enough to
/// follow the machine, enough to be free of single interruptions.
const LEADS: usize = 33;

/// What the device does to each packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behaviour {
    /// The part of the delay that is the same for all packets.
    pub fixed: Duration,
    /// Bits per second of a link from which packets are stored before they are forwarded; `None`:
    /// the delay does not depend on the size.
    pub link: Option<u64>,
}

impl Behaviour {
    /// Time on the link, in ns.
    fn serialisation(self, bytes: usize) -> u64 {
        self.link.map_or(0, |rate| bytes as u64 * 8_000_000_000 / rate.max(1))
    }
}

/// Delays that a device recorded, of packets of one size.
#[derive(Debug, Clone, Serialize)]
pub struct Recorded {
    /// Bytes of a packet.
    pub size: usize,
    /// Its delays, ns.
    pub delay: Summary,
}

/// The device.
#[derive(Debug)]
pub struct Device {
    receiver: TimestampedReceiver,
    sender: TimestampedSender,
    behaviour: Behaviour,
    /// Bytes of headers that its ports do not see.
    hidden: usize,
    waiting: VecDeque<Waiting>,
    /// When the link has received everything so far, ns.
    link_free: u64,
    /// Times from the system call to the egress timestamp of the last departures, ns.
    leads: VecDeque<u64>,
    recorded: BTreeMap<usize, Vec<i64>>,
}

#[derive(Debug)]
struct Waiting {
    arrival: u64,
    departure: u64,
    bytes: Vec<u8>,
}

impl Device {
    /// A device between two sockets. `hidden`: bytes of a frame that its sockets do not carry.
    pub fn new(receiver: TimestampedReceiver, sender: TimestampedSender, behaviour: Behaviour, hidden: usize) -> Self {
        Device {
            receiver,
            sender,
            behaviour,
            hidden,
            waiting: VecDeque::new(),
            link_free: 0,
            leads: VecDeque::with_capacity(LEADS),
            recorded: BTreeMap::new(),
        }
    }

    /// Forwards packets until it has to stop; what it recorded, by size.
    ///
    /// # Errors
    /// A socket fails.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Vec<Recorded>> {
        let mut lead = 0;
        while !stop.load(Ordering::Relaxed) {
            let departure = self.waiting.front().map(|packet| packet.departure.saturating_sub(lead));
            match departure {
                None => self.receive(WAIT)?,
                Some(time) => {
                    let left = time.saturating_sub(now_ns());
                    if left > SPIN {
                        self.receive(Duration::from_nanos(left - SPIN))?;
                    } else {
                        self.receive(Duration::ZERO)?;
                        while now_ns() < time {
                            std::hint::spin_loop();
                        }
                        self.forward()?;
                        lead = self.lead();
                    }
                }
            }
        }
        let summary = |(size, delays): (usize, Vec<i64>)| {
            let delay = Summary::of(&delays)?;
            Some(Recorded { size, delay })
        };
        Ok(self.recorded.into_iter().filter_map(summary).collect())
    }

    fn receive(&mut self, wait: Duration) -> Result<()> {
        let (behaviour, hidden) = (self.behaviour, self.hidden);
        let (waiting, link_free) = (&mut self.waiting, &mut self.link_free);
        self.receiver.receive(wait, |bytes, arrival| {
            if waiting.len() >= QUEUE || bytes.is_empty() {
                return;
            }
            *link_free = arrival.max(*link_free) + behaviour.serialisation(bytes.len() + hidden);
            waiting.push_back(Waiting {
                arrival,
                departure: *link_free + behaviour.fixed.as_nanos() as u64,
                bytes: bytes.to_vec(),
            });
        })?;
        Ok(())
    }

    /// The median time from the system call to the egress timestamp, ns: the call is this much
    /// before the departure.
    fn lead(&self) -> u64 {
        let mut leads: Vec<u64> = self.leads.iter().copied().collect();
        leads.sort_unstable();
        leads.get(leads.len() / 2).copied().unwrap_or(0)
    }

    /// Sends the first packet, and records when it left.
    fn forward(&mut self) -> Result<()> {
        let Some(packet) = self.waiting.pop_front() else {
            return Ok(());
        };
        let call = now_ns();
        let Some(number) = self.sender.send(&packet.bytes)? else {
            return Ok(());
        };
        let mut egress = None;
        // Drivers stamp within the system call, or soon after it.
        for _ in 0..1000 {
            let take = |of: u32, time| egress = egress.or((of == number).then_some(time));
            if self.sender.stamps(take)? > 0 && egress.is_some() {
                break;
            }
        }
        let Some(egress) = egress else { return Ok(()) };
        if self.leads.len() == LEADS {
            self.leads.pop_front();
        }
        self.leads.push_back(egress.saturating_sub(call));
        let delays = self.recorded.entry(packet.bytes.len() + self.hidden).or_default();
        if delays.len() < RECORDED {
            delays.push(egress.wrapping_sub(packet.arrival) as i64);
        }
        Ok(())
    }
}

/// The recorded delay for a case.
pub fn recorded_of(recorded: &[Recorded], case: Case) -> Option<&Recorded> {
    recorded.iter().find(|one| one.size == usize::from(case.size))
}
