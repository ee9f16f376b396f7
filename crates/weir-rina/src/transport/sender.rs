//! The sending half: queue, window, retransmission, loss detection.

use super::config::{Delivery, Policies};
use super::congestion::Congestion;
use super::rate::Bucket;
use super::rtt::Rtt;
use super::sequence::Numbering;
use super::{Closed, Refused};
use crate::time::Time;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// A PDU that was sent and is not acknowledged.
#[derive(Debug, Clone)]
struct Sent {
    payload: Vec<u8>,
    has_drf: bool,
    first: Time,
    last: Time,
    transmissions: u32,
    is_acknowledged: bool,
}

/// A PDU to be sent: its sequence number, whether it starts a run, and its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outgoing {
    pub sequence: u32,
    pub has_drf: bool,
    pub payload: Vec<u8>,
    pub is_retransmission: bool,
}

/// What an acknowledgement says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    /// The last number received in order; `None` where the PDU only opens the window.
    pub cumulative: Option<u32>,
    /// Numbers received beyond, first and last.
    pub ranges: Vec<(u32, u32)>,
    /// The right edge of the window, inclusive.
    pub right: Option<u32>,
    /// Congestion was experienced.
    pub is_marked: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Sender {
    delivery: Delivery,
    numbering: Numbering,
    /// Payloads that wait for the window.
    queue: VecDeque<Vec<u8>>,
    /// PDUs from `una` on.
    sent: VecDeque<Sent>,
    /// The first number that is not acknowledged; the next number.
    una: u64,
    next: u64,
    /// The numbers in `sent` that count as lost.
    lost: BTreeSet<u64>,
    /// PDUs in `sent` that are acknowledged out of order.
    selectively: u64,
    /// The right edge of the receiver's window, exclusive; `None` without flow control.
    right: Option<u64>,
    /// When the last PDU that was acknowledged so far was sent.
    newest: Time,
    /// Of the acknowledgement at hand: when the last PDU that it acknowledges was sent, and whether
    /// that was its first transmission.
    latest: Option<(Time, bool)>,
    pub rtt: Rtt,
    pub congestion: Congestion,
    bucket: Option<Bucket>,
    /// The next PDU starts a run.
    starts_run: bool,
    last_sent: Option<Time>,
    /// When the timeout of retransmission, of a probe, or of loss detection is due.
    timeout: Option<Time>,
    loss_due: Option<Time>,
    probe_due: Option<Time>,
    inactivity: Duration,
    give_up: Duration,
    pub retransmitted: u64,
}

impl Sender {
    pub fn new(policies: &Policies, initial_sequence: u32, now: Time) -> Self {
        Sender {
            delivery: policies.delivery,
            numbering: Numbering::new(initial_sequence),
            queue: VecDeque::new(),
            sent: VecDeque::new(),
            una: 0,
            next: 0,
            lost: BTreeSet::new(),
            selectively: 0,
            right: policies.window().map(u64::from),
            newest: now,
            latest: None,
            rtt: Rtt::new(policies.min_rto),
            congestion: Congestion::new(match policies.delivery {
                Delivery::Reliable => policies.congestion,
                Delivery::Ordered | Delivery::Unordered => super::CongestionControl::None,
            }),
            bucket: policies.rate.map(|rate| Bucket::new(rate, now)),
            starts_run: true,
            last_sent: None,
            timeout: None,
            loss_due: None,
            probe_due: None,
            inactivity: policies.sender_inactivity(),
            give_up: policies.give_up,
            retransmitted: 0,
        }
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn push(&mut self, payload: Vec<u8>) {
        self.queue.push_back(payload);
    }

    /// Whether all that was queued is sent and, of reliable connections, acknowledged.
    pub fn is_drained(&self) -> bool {
        self.queue.is_empty() && self.sent.is_empty()
    }

    /// PDUs that are sent and neither acknowledged nor lost.
    pub fn in_flight(&self) -> u64 {
        (self.sent.len() as u64).saturating_sub(self.selectively + self.lost.len() as u64)
    }

    /// The next PDU that may be sent. `overhead`: bytes of a PDU beyond its payload.
    pub fn transmit(&mut self, overhead: usize, now: Time) -> Option<Outgoing> {
        if self.in_flight() >= self.congestion.window() {
            return None;
        }
        let size = |payload: &[u8]| payload.len() + overhead;
        if let Some(&number) = self.lost.first() {
            let at = usize::try_from(number - self.una).ok()?;
            let sent = self.sent.get_mut(at)?;
            if !self
                .bucket
                .as_mut()
                .is_none_or(|bucket| bucket.take(size(&sent.payload), now))
            {
                return None;
            }
            self.lost.pop_first();
            sent.last = now;
            sent.transmissions += 1;
            self.retransmitted += 1;
            self.last_sent = Some(now);
            let outgoing = Outgoing {
                sequence: self.numbering.wire(number),
                has_drf: sent.has_drf,
                payload: sent.payload.clone(),
                is_retransmission: true,
            };
            self.restart_timeout(now);
            return Some(outgoing);
        }
        let is_open = self.right.is_none_or(|right| self.next < right);
        if !is_open || self.queue.is_empty() {
            self.arm_probe(is_open, now);
            return None;
        }
        let length = self.queue.front().map_or(0, Vec::len);
        if !self
            .bucket
            .as_mut()
            .is_none_or(|bucket| bucket.take(length + overhead, now))
        {
            return None;
        }
        let payload = self.queue.pop_front()?;
        self.probe_due = None;
        Some(self.send_new(payload, now))
    }

    fn send_new(&mut self, payload: Vec<u8>, now: Time) -> Outgoing {
        let is_idle = self.sent.is_empty();
        if is_idle && self.last_sent.is_some_and(|last| now.since(last) >= self.inactivity) {
            self.starts_run = true;
        }
        let has_drf = std::mem::take(&mut self.starts_run);
        let outgoing = Outgoing {
            sequence: self.numbering.wire(self.next),
            has_drf,
            payload,
            is_retransmission: false,
        };
        self.next += 1;
        self.last_sent = Some(now);
        match self.delivery {
            Delivery::Reliable => {
                self.sent.push_back(Sent {
                    payload: outgoing.payload.clone(),
                    has_drf,
                    first: now,
                    last: now,
                    transmissions: 1,
                    is_acknowledged: false,
                });
                if is_idle || self.timeout.is_none() {
                    self.restart_timeout(now);
                }
            }
            Delivery::Ordered | Delivery::Unordered => self.una = self.next,
        }
        outgoing
    }

    /// Where the window is closed and nothing is in flight, an update may have been lost: a probe
    /// is sent after a timeout.
    fn arm_probe(&mut self, is_open: bool, now: Time) {
        if !is_open && !self.queue.is_empty() && self.sent.is_empty() {
            self.probe_due.get_or_insert(now + self.rtt.rto());
        } else {
            self.probe_due = None;
        }
    }

    fn restart_timeout(&mut self, now: Time) {
        self.timeout = (!self.sent.is_empty()).then(|| now + self.rtt.rto());
    }

    /// Takes an acknowledgement or a window update.
    pub fn acknowledge(&mut self, ack: &Acknowledgement, now: Time) -> Result<(), Refused> {
        let cumulative = match ack.cumulative {
            None => None,
            Some(wire) => {
                let number = self.numbering.number(wire, self.una).map_or(0, |number| number + 1);
                if number > self.next {
                    return Err(Refused::AcknowledgesUnsent);
                }
                Some(number)
            }
        };
        self.open(ack.right)?;
        let before = self.una + self.selectively;
        for &(first, last) in &ack.ranges {
            self.acknowledge_range(first, last, now);
        }
        if let Some(una) = cumulative {
            self.advance(una, now);
        }
        let count = (self.una + self.selectively).saturating_sub(before);
        if let Some((sent, is_first)) = self.latest.take()
            && is_first
        {
            // Those before may have arrived long ago, and their acknowledgement was lost.
            self.rtt.sample(now.since(sent));
        }
        if count > 0 {
            self.rtt.reset_back_off();
            let is_limited = !self.queue.is_empty() || self.in_flight() * 2 >= self.congestion.window();
            self.congestion
                .acknowledge(count, ack.is_marked, self.una, self.next, is_limited);
            self.restart_timeout(now);
        }
        if self.selectively > 0 || !self.lost.is_empty() {
            self.detect_losses(now);
        } else {
            self.loss_due = None;
        }
        Ok(())
    }

    /// Moves the right edge; it never moves back.
    fn open(&mut self, right: Option<u32>) -> Result<(), Refused> {
        let (Some(known), Some(wire)) = (self.right, right) else {
            return Ok(());
        };
        let new = self.numbering.number(wire, known).map_or(0, |number| number + 1);
        if new > self.next + u64::from(super::config::MAX_CREDIT) {
            return Err(Refused::WindowTooLarge);
        }
        if new > known {
            self.right = Some(new);
            self.probe_due = None;
        }
        Ok(())
    }

    fn advance(&mut self, una: u64, now: Time) {
        while self.una < una {
            let Some(sent) = self.sent.pop_front() else {
                self.una = una;
                break;
            };
            if sent.is_acknowledged {
                self.selectively -= 1;
            } else {
                self.learn(&sent, self.una, now);
            }
            self.lost.remove(&self.una);
            self.una += 1;
        }
    }

    fn acknowledge_range(&mut self, first: u32, last: u32, now: Time) {
        let number = |wire| self.numbering.number(wire, self.una);
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            return;
        };
        // What was never sent, or is acknowledged already, is not in the list.
        for number in first.max(self.una)..=last.min(self.next.saturating_sub(1)) {
            let at = (number - self.una) as usize;
            let Some(sent) = self.sent.get_mut(at).filter(|sent| !sent.is_acknowledged) else {
                continue;
            };
            sent.is_acknowledged = true;
            let sent = Sent {
                payload: std::mem::take(&mut sent.payload),
                ..*sent
            };
            self.selectively += 1;
            self.lost.remove(&number);
            self.learn(&sent, number, now);
        }
    }

    /// What the acknowledgement of a PDU says about the path.
    fn learn(&mut self, sent: &Sent, number: u64, now: Time) {
        let time = now.since(sent.last);
        let is_first = sent.transmissions == 1;
        if self.latest.is_none_or(|(latest, _)| sent.last >= latest) {
            self.latest = Some((sent.last, is_first));
        }
        if is_first {
            self.newest = self.newest.max(sent.last);
            if self.lost.contains(&number) {
                self.rtt.spurious();
            }
        } else if self.rtt.smoothed().is_some_and(|smoothed| time < smoothed / 2) {
            // The acknowledgement is that of the first transmission.
            self.rtt.spurious();
        } else {
            self.newest = self.newest.max(sent.last);
        }
    }

    /// PDUs are lost if one that was sent later by the reordering window was acknowledged (RACK,
    /// RFC 8985).
    fn detect_losses(&mut self, now: Time) {
        let window = self.rtt.reordering_window();
        let before = self.lost.len();
        let mut due: Option<Time> = None;
        for (at, sent) in self.sent.iter().enumerate() {
            if sent.is_acknowledged || sent.last > self.newest {
                continue;
            }
            let number = self.una + at as u64;
            let is_lost = sent.last + window <= self.newest
                || sent.last + self.rtt.smoothed().unwrap_or_default() + window <= now;
            if is_lost {
                self.lost.insert(number);
            } else if !self.lost.contains(&number) {
                let at = sent.last + self.rtt.smoothed().unwrap_or_default() + window;
                due = Some(due.map_or(at, |due| due.min(at)));
            }
        }
        self.loss_due = due;
        if self.lost.len() > before {
            self.congestion.lose(self.una, self.next);
        }
    }

    /// When [`Sender::tick`] has something to do.
    pub fn deadline(&self, overhead: usize, now: Time) -> Option<Time> {
        let is_waiting = !self.lost.is_empty() || !self.queue.is_empty();
        let rate = self.bucket.as_ref().filter(|_| is_waiting).and_then(|bucket| {
            let first = self
                .lost
                .first()
                .and_then(|number| self.sent.get((number - self.una) as usize));
            let length = first
                .map(|sent| sent.payload.len())
                .or(self.queue.front().map(Vec::len))?;
            bucket.ready(length + overhead, now)
        });
        [self.timeout, self.loss_due, self.probe_due, rate]
            .into_iter()
            .flatten()
            .min()
    }

    /// Runs timers. Whether a probe of the window has to be sent.
    pub fn tick(&mut self, now: Time) -> Result<bool, Closed> {
        if self.loss_due.is_some_and(|due| due <= now) {
            self.detect_losses(now);
        }
        if self.timeout.is_some_and(|due| due <= now) {
            self.time_out(now)?;
        }
        let is_probe_due = self.probe_due.is_some_and(|due| due <= now);
        if is_probe_due {
            self.rtt.back_off();
            self.probe_due = Some(now + self.rtt.rto());
        }
        Ok(is_probe_due)
    }

    fn time_out(&mut self, now: Time) -> Result<(), Closed> {
        if self
            .sent
            .front()
            .is_some_and(|sent| now.since(sent.first) >= self.give_up)
        {
            return Err(Closed::GivenUp);
        }
        self.rtt.back_off();
        self.congestion.time_out(self.next);
        for (at, sent) in self.sent.iter().enumerate() {
            if !sent.is_acknowledged {
                self.lost.insert(self.una + at as u64);
            }
        }
        self.restart_timeout(now);
        Ok(())
    }
}
