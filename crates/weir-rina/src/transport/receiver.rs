//! The receiving half: runs, order, reassembly, window, acknowledgements.

use super::config::{Delivery, Policies};
use super::sequence::Numbering;
use super::{Acknowledgement, Refused};
use crate::efcp::delimiting::{Reassembler, split};
use crate::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// PDUs that are received before an acknowledgement is due at once.
const ACK_EVERY: u32 = 8;
/// Ranges in an acknowledgement.
pub(super) const MAX_RANGES: usize = 8;
/// How far a sequence number may be behind without flow control, in PDUs: the size of the window of
/// duplicates.
const HISTORY: u64 = 128;

#[derive(Debug, Clone)]
pub(super) struct Receiver {
    delivery: Delivery,
    /// The numbers, once the first PDU has arrived.
    numbering: Option<Numbering>,
    /// The next number in order; of unordered connections, one more than the largest.
    next: u64,
    /// PDUs after a gap, by number.
    early: BTreeMap<u64, Vec<u8>>,
    /// Unordered: the last numbers below `next` that arrived, the least significant bit being that
    /// of `next - 1`.
    history: u128,
    reassembler: Reassembler,
    /// SDUs that were not read, each with the number of its PDUs.
    ready: VecDeque<(Vec<u8>, u64)>,
    ready_pdus: u64,
    partial_pdus: u64,
    credit: Option<u64>,
    /// The right edge that was advertised, exclusive.
    advertised: u64,
    /// PDUs since the last acknowledgement, and when one is due.
    unacknowledged: u32,
    ack_due: Option<Time>,
    is_marked: bool,
    max_ack_delay: Duration,
    has_lost: bool,
    pub duplicates: u64,
    pub lost_sdus: u64,
    pub marked: u64,
}

impl Receiver {
    pub fn new(policies: &Policies, max_sdu: usize) -> Self {
        Receiver {
            delivery: policies.delivery,
            numbering: None,
            next: 0,
            early: BTreeMap::new(),
            history: 0,
            reassembler: Reassembler::new(max_sdu),
            ready: VecDeque::new(),
            ready_pdus: 0,
            partial_pdus: 0,
            credit: policies.window().map(u64::from),
            advertised: policies.window().map_or(0, u64::from),
            unacknowledged: 0,
            ack_due: None,
            is_marked: false,
            max_ack_delay: policies.max_ack_delay,
            duplicates: 0,
            has_lost: false,
            lost_sdus: 0,
            marked: 0,
        }
    }

    /// Takes a data PDU. An acknowledgement that has to be sent before this PDU counts is returned:
    /// its mark differs (RFC 8257, section 3.2).
    pub fn receive(
        &mut self,
        sequence: u32,
        has_drf: bool,
        is_marked: bool,
        payload: Vec<u8>,
        now: Time,
    ) -> Result<Option<Acknowledgement>, Refused> {
        let numbering = self.enter_run(sequence, has_drf)?;
        let Some(number) = numbering.number(sequence, self.next) else {
            self.note_duplicate(now);
            return Err(Refused::BelowWindow);
        };
        let before = (is_marked != self.is_marked && self.unacknowledged > 0).then(|| self.acknowledgement());
        self.is_marked = is_marked;
        self.marked += u64::from(is_marked);
        match self.delivery {
            Delivery::Reliable => self.receive_reliable(number, payload, now)?,
            Delivery::Ordered => self.receive_ordered(number, payload, now)?,
            Delivery::Unordered => self.receive_unordered(number, payload, now)?,
        }
        Ok(before.flatten())
    }

    /// Begins the first run. Later ones continue its numbers: within a connection a PDU with the
    /// flag can reset nothing, forged or old as it may be. A lost first PDU of a reliable
    /// connection comes again; others begin with whatever arrives first.
    fn enter_run(&mut self, sequence: u32, has_drf: bool) -> Result<Numbering, Refused> {
        match self.numbering {
            Some(numbering) => Ok(numbering),
            None if has_drf || self.delivery != Delivery::Reliable => {
                let numbering = Numbering::new(sequence);
                self.numbering = Some(numbering);
                Ok(numbering)
            }
            None => Err(Refused::OutsideOfRun),
        }
    }

    fn right(&self) -> Option<u64> {
        let credit = self.credit?;
        Some(self.next + credit.saturating_sub(self.ready_pdus))
    }

    fn receive_reliable(&mut self, number: u64, payload: Vec<u8>, now: Time) -> Result<(), Refused> {
        if number < self.next || self.early.contains_key(&number) {
            self.note_duplicate(now);
            return Ok(());
        }
        // The edge that was advertised never moves back.
        if number >= self.advertised.max(self.right().unwrap_or(u64::MAX)) {
            self.ack_due = Some(now);
            return Err(Refused::BeyondWindow);
        }
        if number > self.next {
            self.early.insert(number, payload);
            self.ack_due = Some(now);
            self.unacknowledged += 1;
            return Ok(());
        }
        let filled_gap = !self.early.is_empty();
        self.deliver(&payload);
        self.next += 1;
        while let Some(payload) = self.early.remove(&self.next) {
            self.deliver(&payload);
            self.next += 1;
        }
        self.note_received(filled_gap, now);
        Ok(())
    }

    fn receive_ordered(&mut self, number: u64, payload: Vec<u8>, now: Time) -> Result<(), Refused> {
        if number < self.next {
            self.duplicates += 1;
            return Err(Refused::BelowWindow);
        }
        self.skip_to(number)?;
        self.deliver(&payload);
        self.next = number + 1;
        self.note_received(false, now);
        Ok(())
    }

    fn receive_unordered(&mut self, number: u64, payload: Vec<u8>, now: Time) -> Result<(), Refused> {
        if number >= self.next {
            let shift = (number - self.next).saturating_add(1);
            self.skip_to(number)?;
            self.history = if shift >= HISTORY { 1 } else { self.history << shift | 1 };
            self.deliver(&payload);
            self.next = number + 1;
            self.note_received(false, now);
            return Ok(());
        }
        let back = self.next - 1 - number;
        if back >= HISTORY || self.history >> back & 1 == 1 {
            self.duplicates += 1;
            return Err(Refused::BelowWindow);
        }
        self.history |= 1 << back;
        // A fragment that was overtaken belongs to an SDU that is given up already.
        if let Ok((crate::efcp::delimiting::Position::Whole, sdu)) = split(&payload) {
            self.push_ready(sdu.to_vec(), 1);
        }
        Ok(())
    }

    /// Gives up what lies between the next number and this one.
    fn skip_to(&mut self, number: u64) -> Result<(), Refused> {
        if self.credit.is_some() && number >= self.advertised.max(self.right().unwrap_or(u64::MAX)) {
            return Err(Refused::BeyondWindow);
        }
        if number > self.next && self.reassembler.buffered() > 0 {
            self.reassembler.reset();
            self.partial_pdus = 0;
            self.lost_sdus += 1;
        }
        Ok(())
    }

    /// Takes the payload of a PDU that is in order.
    fn deliver(&mut self, payload: &[u8]) {
        // A reliable connection gives out nothing after a gap.
        if self.has_lost && self.delivery == Delivery::Reliable {
            return;
        }
        let Ok((position, fragment)) = split(payload) else {
            self.lost_sdus += 1;
            self.has_lost = true;
            return;
        };
        self.partial_pdus += 1;
        let (sdu, misplaced) = self.reassembler.push(position, fragment);
        self.lost_sdus += u64::from(misplaced.is_some());
        self.has_lost |= misplaced.is_some();
        match sdu {
            Some(sdu) => {
                let pdus = std::mem::take(&mut self.partial_pdus);
                self.push_ready(sdu, pdus);
            }
            None if misplaced.is_some() => self.partial_pdus = 0,
            None => {}
        }
    }

    fn push_ready(&mut self, sdu: Vec<u8>, pdus: u64) {
        self.ready_pdus += pdus;
        self.ready.push_back((sdu, pdus));
    }

    fn note_received(&mut self, is_due: bool, now: Time) {
        if self.credit.is_none() {
            return;
        }
        self.unacknowledged += 1;
        if is_due || self.unacknowledged >= ACK_EVERY {
            self.ack_due = Some(now);
        } else {
            self.ack_due.get_or_insert(now + self.max_ack_delay);
        }
    }

    /// The sender does not know that this PDU has arrived.
    fn note_duplicate(&mut self, now: Time) {
        self.duplicates += 1;
        if self.delivery == Delivery::Reliable {
            self.ack_due = Some(now);
        }
    }

    /// An SDU; `None` if none is complete.
    pub fn read(&mut self, now: Time) -> Option<Vec<u8>> {
        let (sdu, pdus) = self.ready.pop_front()?;
        self.ready_pdus -= pdus;
        // The window opens by a quarter, or from nothing: the sender has to know.
        if let (Some(right), Some(credit)) = (self.right(), self.credit)
            && self.numbering.is_some()
        {
            let opened = right.saturating_sub(self.advertised);
            if opened * 4 >= credit || (self.advertised <= self.next && opened > 0) {
                self.ack_due = Some(now);
            }
        }
        Some(sdu)
    }

    /// Whether an SDU was given up although all its PDUs came: it is longer than the limit, or
    /// malformed.
    pub fn has_lost(&self) -> bool {
        self.has_lost
    }

    pub fn readable(&self) -> usize {
        self.ready.len()
    }

    pub fn buffered(&self) -> usize {
        self.early.len()
    }

    pub fn deadline(&self) -> Option<Time> {
        self.ack_due
    }

    /// The sender asks for the window.
    pub fn probe(&mut self, now: Time) {
        if self.credit.is_some() {
            self.ack_due = Some(now);
        }
    }

    /// The acknowledgement that is due.
    pub fn transmit(&mut self, now: Time) -> Option<Acknowledgement> {
        self.ack_due.filter(|due| *due <= now)?;
        self.acknowledgement()
    }

    fn acknowledgement(&mut self) -> Option<Acknowledgement> {
        self.ack_due = None;
        self.unacknowledged = 0;
        let numbering = self.numbering?;
        let right = self.right();
        self.advertised = self.advertised.max(right.unwrap_or(0));
        let is_reliable = self.delivery == Delivery::Reliable;
        Some(Acknowledgement {
            cumulative: is_reliable.then(|| numbering.wire(self.next.wrapping_sub(1))),
            ranges: self.ranges(numbering),
            right: right.map(|_| numbering.wire(self.advertised.wrapping_sub(1))),
            is_marked: self.is_marked,
        })
    }

    /// The ranges of numbers after gaps, the lowest first.
    fn ranges(&self, numbering: Numbering) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &number in self.early.keys() {
            let is_full = ranges.len() == MAX_RANGES;
            match ranges.last_mut() {
                Some((_, last)) if *last + 1 == number => *last = number,
                Some(_) | None if is_full => break,
                Some(_) | None => ranges.push((number, number)),
            }
        }
        let wire = |(first, last)| (numbering.wire(first), numbering.wire(last));
        ranges.into_iter().map(wire).collect()
    }
}
