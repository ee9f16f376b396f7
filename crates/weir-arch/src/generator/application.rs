//! An application of a packet generator, and how far it is.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Triggers that an application keeps while it is busy with one; more are lost.
const WAITING: usize = 64;

/// The trigger of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trigger {
    /// Once, after a delay from when the application was enabled.
    OneShot {
        /// Nanoseconds.
        after_ns: u32,
    },
    /// Periodically.
    Periodic {
        /// Nanoseconds.
        every_ns: u32,
    },
    /// A port of the pipe goes down.
    PortDown {
        /// Number of the mask that selects ports; `None`: all.
        mask: Option<u32>,
    },
    /// A packet recirculates whose first bytes match.
    Recirculated(Pattern),
    /// A deparser requests packets, with bytes that match these.
    Deparser(Pattern),
}

/// Bits of a packet's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Pattern {
    /// Their values.
    pub value: u128,
    /// The bits that are compared.
    pub mask: u128,
}

impl Pattern {
    /// Whether these bits match.
    #[must_use]
    pub fn matches(self, bits: u128) -> bool {
        (bits ^ self.value) & self.mask == 0
    }
}

/// The configuration of an application: the packets that it sends, and their trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// It sends at all.
    pub enabled: bool,
    /// When.
    pub trigger: Trigger,
    /// Bytes of the buffer in a packet.
    pub length: u16,
    /// Where in the buffer they begin.
    pub offset: u16,
    /// The port of the pipe that packets say they came in at.
    pub source_port: u32,
    /// Each packet of a batch says the next port.
    pub increments_source_port: bool,
    /// The last port of these, if that is not 0; then it is the first one's turn again.
    pub last_source_port: u32,
    /// The port of the pipe that it sends by; `None`: whichever is to generate.
    pub channel: Option<u32>,
    /// Batches of a trigger, less one.
    pub more_batches: u16,
    /// Packets of a batch, less one.
    pub more_packets: u16,
    /// Time between batches in ns.
    pub batch_gap_ns: u32,
    /// A random time up to this besides.
    pub batch_jitter_ns: u32,
    /// Time between packets in ns.
    pub packet_gap_ns: u32,
    /// A random time up to this besides.
    pub packet_jitter_ns: u32,
}

impl Default for Application {
    /// One that sends nothing.
    fn default() -> Self {
        Application {
            enabled: false,
            trigger: Trigger::OneShot { after_ns: 0 },
            length: 0,
            offset: 0,
            source_port: 0,
            increments_source_port: false,
            last_source_port: 0,
            channel: None,
            more_batches: 0,
            more_packets: 0,
            batch_gap_ns: 0,
            batch_jitter_ns: 0,
            packet_gap_ns: 0,
            packet_jitter_ns: 0,
        }
    }
}

impl Application {
    /// The port of a packet of a batch.
    pub(super) fn port_of(&self, packet: u16) -> u32 {
        if !self.increments_source_port {
            return self.source_port;
        }
        let last = match self.last_source_port {
            0 => super::PORTS - 1,
            last => last.max(self.source_port),
        };
        self.source_port + u32::from(packet) % (last - self.source_port + 1)
    }
}

/// The counters of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Triggers.
    pub triggers: u64,
    /// Batches.
    pub batches: u64,
    /// Packets.
    pub packets: u64,
}

/// The event that has triggered an application.
#[derive(Debug, Clone, Default)]
pub(super) struct Cause {
    /// The port, or bits of the packet, for the header.
    pub key: u32,
    /// Bytes after the header.
    pub context: Vec<u8>,
    /// Offset and length of the packet in the buffer, if they are not the application's.
    pub from: Option<(u32, u32)>,
}

/// A trigger whose packets are being sent.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub cause: Cause,
    pub batch: u16,
    pub packet: u16,
    /// The time at which the batch started.
    begun_ns: u64,
    next_ns: u64,
}

/// An application of a pipe.
#[derive(Debug, Clone, Default)]
pub(super) struct Slot {
    pub application: Application,
    pub counts: Counts,
    /// When the timer expires.
    timer_ns: Option<u64>,
    waiting: VecDeque<Cause>,
    pub running: Option<Running>,
}

impl Slot {
    pub(super) fn new(application: Application, counts: Counts, now_ns: u64) -> Self {
        let timer = match application.trigger {
            Trigger::OneShot { after_ns: ns } | Trigger::Periodic { every_ns: ns } if application.enabled => {
                Some(now_ns.saturating_add(ns.into()))
            }
            _ => None,
        };
        Slot {
            application,
            counts,
            timer_ns: timer,
            ..Slot::default()
        }
    }

    /// When it has to do something; timers only where they count.
    pub(super) fn next_ns(&self, with_timer: bool) -> Option<u64> {
        let timer = self.timer_ns.filter(|_| with_timer);
        let packet = self.running.as_ref().map(|r| r.next_ns);
        timer.into_iter().chain(packet).min()
    }

    /// Whether the timer expires now. It starts again, if it is periodic.
    pub(super) fn expire(&mut self, now_ns: u64) -> bool {
        if self.timer_ns != Some(now_ns) {
            return false;
        }
        self.timer_ns = match self.application.trigger {
            // Without a time it would never be later.
            // At the end of all time it does not come again.
            Trigger::Periodic { every_ns } => now_ns.checked_add(every_ns.max(1).into()),
            _ => None,
        };
        true
    }

    /// Has a periodic timer not expire until then, as nothing would come of it: a short one would
    /// take more time than there is.
    pub(super) fn skip(&mut self, until_ns: u64) {
        let (Trigger::Periodic { every_ns }, Some(timer)) = (self.application.trigger, self.timer_ns) else {
            return;
        };
        if timer <= until_ns {
            let every = u64::from(every_ns.max(1));
            let periods = (until_ns - timer) / every + 1;
            self.timer_ns = periods.checked_mul(every).and_then(|ns| timer.checked_add(ns));
        }
    }

    /// The same until the next packet, where triggers are lost until then.
    pub(super) fn skip_lost(&mut self, now_ns: u64) {
        if let Some(running) = &self.running
            && self.waiting.len() >= WAITING
        {
            self.skip(now_ns.min(running.next_ns.saturating_sub(1)));
        }
    }

    /// Packets are to be sent for a reason, now or after those that are sent already.
    pub(super) fn begin(&mut self, cause: Cause, now_ns: u64) {
        if self.running.is_some() {
            if self.waiting.len() < WAITING {
                self.waiting.push_back(cause);
            }
            return;
        }
        self.counts.triggers += 1;
        self.running = Some(Running {
            cause,
            batch: 0,
            packet: 0,
            begun_ns: now_ns,
            next_ns: now_ns,
        });
    }

    /// A packet was sent, which takes so long; then comes the next, if there is one.
    pub(super) fn sent(&mut self, now_ns: u64, wire_ns: u64, gaps_from_end: bool, mut random: impl FnMut(u32) -> u64) {
        let Some(running) = &mut self.running else { return };
        let application = &self.application;
        self.counts.packets += 1;
        let end = now_ns + wire_ns;
        let after = |begin: u64, gap: u32, jitter: u64| match gaps_from_end {
            true => end + u64::from(gap) + jitter,
            false => (begin + u64::from(gap) + jitter).max(end),
        };
        if running.packet < application.more_packets {
            running.packet += 1;
            let jitter = random(application.packet_jitter_ns);
            running.next_ns = after(now_ns, application.packet_gap_ns, jitter);
            return;
        }
        self.counts.batches += 1;
        if running.batch < application.more_batches {
            running.batch += 1;
            running.packet = 0;
            let jitter = random(application.batch_jitter_ns);
            running.next_ns = after(running.begun_ns, application.batch_gap_ns, jitter);
            running.begun_ns = running.next_ns;
            return;
        }
        self.running = None;
        if let Some(cause) = self.waiting.pop_front() {
            self.begin(cause, end);
        }
    }
}
