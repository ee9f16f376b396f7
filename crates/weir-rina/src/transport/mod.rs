//! Data transfer over one EFCP connection: DTP and DTCP.
//!
//! A [`Connection`] is a state machine without I/O: SDUs and PDUs go in and come out, and time is a
//! parameter. The owner encodes PDUs, sends them, and calls [`Connection::tick`] at
//! [`Connection::deadline`].
//!
//! - *Delivery*: reliable, ordered, or unordered ([`Delivery`]). SDUs are fragmented and
//!   reassembled ([`crate::efcp::delimiting`]).
//! - *Flow control*: a window of PDUs, opened as the application reads; a rate.
//! - *Retransmission*: the timeout of RFC 6298; losses are found by later acknowledgements (RACK,
//!   RFC 8985), so that reordering alone causes few retransmissions.
//! - *Congestion*: slow start, congestion avoidance, and DCTCP's reaction to ECN (RFC 5681, 8257).
//!   Acknowledgements carry the ECN flag of the data that they acknowledge.
//!
//! Two things differ from the implementations that exist. Acknowledgements (ACK+FC) carry ranges of
//! PDUs that arrived after a gap, as pairs of 32-bit numbers after their fields; a peer that
//! ignores them still works. The numbers of a run continue those of the run before (Delta-t starts
//! one after idle time), so that a forged or repeated first PDU cannot reset a connection.
//!
//! ```
//! use weir_rina::Time;
//! use weir_rina::efcp::{Address, CepId, QosId};
//! use weir_rina::transport::{Connection, ConnectionConfig, Endpoint, Policies};
//!
//! let end = |address, cep| Endpoint { address: Address(address), cep: CepId(cep) };
//! let config = |local, remote, initial_sequence| ConnectionConfig {
//!     local,
//!     remote,
//!     policies: Policies::reliable(QosId(1)),
//!     max_pdu: 1400,
//!     pci_bytes: 20,
//!     max_sdu: 65_536,
//!     queue: 1000,
//!     initial_sequence,
//! };
//! let now = Time::ZERO;
//! let mut a = Connection::new(config(end(1, 7), end(2, 9), 5), now);
//! let mut b = Connection::new(config(end(2, 9), end(1, 7), 6), now);
//! a.send(b"an SDU", now)?;
//! while let Some((pci, payload)) = a.poll_transmit(now) {
//!     b.receive(&pci, &payload, now);
//! }
//! assert_eq!(b.read(now).as_deref(), Some(&b"an SDU"[..]));
//! # Ok::<(), weir_rina::transport::SendError>(())
//! ```

mod config;
mod congestion;
mod rate;
mod receiver;
mod rtt;
mod sender;
mod sequence;
#[cfg(test)]
mod tests;

pub use config::{CongestionControl, ConnectionConfig, Delivery, Endpoint, Policies};

use crate::efcp::delimiting::fragments;
use crate::efcp::{Control, ControlFields, ControlType, Flags, Kind, Pci};
use crate::time::Time;
use receiver::{MAX_RANGES, Receiver};
use sender::{Acknowledgement, Sender};
use std::collections::VecDeque;
use std::time::Duration;

/// Acknowledgements that wait to be sent.
const MAX_ACKS: usize = 16;

/// Why an SDU is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The queue is full: try again after some PDUs have left.
    #[error("the queue of the connection is full")]
    Full,
    /// The SDU is too long.
    #[error("expected an SDU of at most {limit} bytes, found {found}")]
    TooLong {
        /// The limit.
        limit: usize,
        /// Bytes of this one.
        found: usize,
    },
    /// The connection has ended.
    #[error("{0}")]
    Closed(Closed),
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Closed {
    /// A PDU was not acknowledged, however often it was sent.
    #[error("the peer does not acknowledge")]
    GivenUp,
    /// An SDU of a reliable connection is longer than this side takes, or malformed: what follows
    /// it would not be all that was sent.
    #[error("the peer has sent an SDU that is longer than is taken here, or malformed")]
    SduLost,
}

/// Why a PDU is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refused {
    /// It is not of this connection: addresses or CEP ids differ.
    OtherConnection,
    /// It is of a type that belongs to no connection, or that is not supported.
    Type,
    /// A PDU before the first one of a reliable connection.
    OutsideOfRun,
    /// It was received before, or is given up.
    BelowWindow,
    /// It exceeds the window.
    BeyondWindow,
    /// It acknowledges a PDU that was not sent.
    AcknowledgesUnsent,
    /// The right edge of the window is impossibly far.
    WindowTooLarge,
    /// The ranges of an acknowledgement are malformed.
    Ranges,
}

impl Refused {
    /// All reasons, in the order of their counters.
    pub const ALL: [Refused; 8] = [
        Refused::OtherConnection,
        Refused::Type,
        Refused::OutsideOfRun,
        Refused::BelowWindow,
        Refused::BeyondWindow,
        Refused::AcknowledgesUnsent,
        Refused::WindowTooLarge,
        Refused::Ranges,
    ];

    /// A name for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Refused::OtherConnection => "other_connection",
            Refused::Type => "type",
            Refused::OutsideOfRun => "outside_of_run",
            Refused::BelowWindow => "below_window",
            Refused::BeyondWindow => "beyond_window",
            Refused::AcknowledgesUnsent => "acknowledges_unsent",
            Refused::WindowTooLarge => "window_too_large",
            Refused::Ranges => "ranges",
        }
    }
}

/// Counters of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// SDUs taken from the application.
    pub sdus_sent: u64,
    /// SDUs given to the application.
    pub sdus_received: u64,
    /// SDUs of which a part was lost, and that were discarded (not of reliable connections).
    pub sdus_lost: u64,
    /// Data PDUs sent, retransmissions included.
    pub data_sent: u64,
    /// Data PDUs received.
    pub data_received: u64,
    /// Data PDUs sent again.
    pub retransmitted: u64,
    /// Data PDUs received again.
    pub duplicates: u64,
    /// Control PDUs sent.
    pub control_sent: u64,
    /// Control PDUs received.
    pub control_received: u64,
    /// Data PDUs received with the ECN flag.
    pub marked: u64,
    /// PDUs refused, by the order of [`Refused::ALL`].
    pub refused: [u64; Refused::ALL.len()],
}

/// One end of an EFCP connection.
#[derive(Debug, Clone)]
pub struct Connection {
    config: ConnectionConfig,
    sender: Sender,
    receiver: Receiver,
    acks: VecDeque<Acknowledgement>,
    probe_due: bool,
    control_sequence: u32,
    last_control: u32,
    closed: Option<Closed>,
    statistics: Statistics,
}

impl Connection {
    /// A connection whose peer has, or will have, the same policies.
    #[must_use]
    pub fn new(config: ConnectionConfig, now: Time) -> Self {
        Connection {
            sender: Sender::new(&config.policies, config.initial_sequence, now),
            receiver: Receiver::new(&config.policies, config.max_sdu),
            acks: VecDeque::new(),
            probe_due: false,
            control_sequence: 0,
            last_control: 0,
            closed: None,
            statistics: Statistics::default(),
            config,
        }
    }

    /// Its configuration.
    #[must_use]
    pub fn config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// The bytes of a data PDU that are no payload: the PCI and the delimiting flags.
    fn overhead(&self) -> usize {
        self.config.pci_bytes + 1
    }

    /// Takes an SDU to be sent, or nothing of it.
    ///
    /// # Errors
    /// The queue is full, the SDU is too long, or the connection has ended.
    pub fn send(&mut self, sdu: &[u8], _now: Time) -> Result<(), SendError> {
        if let Some(closed) = self.closed {
            return Err(SendError::Closed(closed));
        }
        if sdu.len() > self.config.max_sdu {
            return Err(SendError::TooLong {
                limit: self.config.max_sdu,
                found: sdu.len(),
            });
        }
        if !self.is_writable() {
            return Err(SendError::Full);
        }
        let room = self.config.max_pdu.saturating_sub(self.overhead()).max(1);
        for (position, fragment) in fragments(sdu, room) {
            let mut payload = Vec::with_capacity(fragment.len() + 1);
            payload.push(position.flags());
            payload.extend_from_slice(fragment);
            self.sender.push(payload);
        }
        self.statistics.sdus_sent += 1;
        Ok(())
    }

    /// Whether the queue has room. An SDU that is longer than the room left is taken as a whole.
    #[must_use]
    pub fn is_writable(&self) -> bool {
        self.closed.is_none() && self.sender.queued() < self.config.queue
    }

    /// Takes a PDU.
    ///
    /// # Errors
    /// It is refused, and counted.
    pub fn receive(&mut self, pci: &Pci, payload: &[u8], now: Time) -> Result<(), Refused> {
        let received = self.try_receive(pci, payload, now);
        if let Err(refused) = received {
            self.statistics.refused[refused as usize] += 1;
        }
        received
    }

    fn try_receive(&mut self, pci: &Pci, payload: &[u8], now: Time) -> Result<(), Refused> {
        let (local, remote) = (self.config.local, self.config.remote);
        let is_ours = pci.source == remote.address
            && pci.source_cep == remote.cep
            && pci.destination == local.address
            && pci.destination_cep == local.cep;
        if !is_ours {
            return Err(Refused::OtherConnection);
        }
        let is_marked = pci.flags.contains(Flags::ECN);
        match pci.kind {
            Kind::Management => Err(Refused::Type),
            Kind::Data => {
                self.statistics.data_received += 1;
                let has_drf = pci.flags.contains(Flags::DRF);
                let before = self
                    .receiver
                    .receive(pci.sequence, has_drf, is_marked, payload.to_vec(), now)?;
                if let Some(ack) = before.filter(|_| self.acks.len() < MAX_ACKS) {
                    self.acks.push_back(ack);
                }
                if self.config.policies.delivery == Delivery::Reliable && self.receiver.has_lost() {
                    self.closed.get_or_insert(Closed::SduLost);
                }
                Ok(())
            }
            Kind::Control(control) => {
                self.statistics.control_received += 1;
                self.last_control = pci.sequence;
                self.receive_control(&control, payload, is_marked, now)
            }
        }
    }

    fn receive_control(
        &mut self,
        control: &Control,
        payload: &[u8],
        is_marked: bool,
        now: Time,
    ) -> Result<(), Refused> {
        let fields = &control.fields;
        let (cumulative, right) = match control.kind {
            ControlType::Ack => (Some(fields.acknowledged), None),
            ControlType::AckFlow => (Some(fields.acknowledged), Some(fields.new_right)),
            ControlType::Flow => (None, Some(fields.new_right)),
            ControlType::Rendezvous => {
                self.receiver.probe(now);
                return Ok(());
            }
            ControlType::ControlAck
            | ControlType::Nack
            | ControlType::NackFlow
            | ControlType::Sack
            | ControlType::Snack
            | ControlType::SackFlow
            | ControlType::SnackFlow => return Err(Refused::Type),
        };
        let ack = Acknowledgement {
            cumulative,
            ranges: ranges(payload)?,
            right,
            is_marked,
        };
        self.sender.acknowledge(&ack, now)
    }

    /// The next SDU, whose room in the window is free then.
    pub fn read(&mut self, now: Time) -> Option<Vec<u8>> {
        let sdu = self.receiver.read(now)?;
        self.statistics.sdus_received += 1;
        Some(sdu)
    }

    /// SDUs that can be read.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.receiver.readable()
    }

    /// The next PDU to be sent now.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(Pci, Vec<u8>)> {
        if self.closed.is_some() {
            return None;
        }
        if let Some(ack) = self.acks.pop_front().or_else(|| self.receiver.transmit(now)) {
            return Some(self.encode_ack(&ack));
        }
        if std::mem::take(&mut self.probe_due) {
            let control = Control {
                kind: ControlType::Rendezvous,
                fields: ControlFields::default(),
            };
            return Some((self.control(control, Flags::NONE), Vec::new()));
        }
        let outgoing = self.sender.transmit(self.config.pci_bytes, now)?;
        self.statistics.data_sent += 1;
        let pci = Pci {
            flags: if outgoing.has_drf { Flags::DRF } else { Flags::NONE },
            sequence: outgoing.sequence,
            ..self.pci(Kind::Data)
        };
        Some((pci, outgoing.payload))
    }

    fn pci(&self, kind: Kind) -> Pci {
        let (local, remote) = (self.config.local, self.config.remote);
        Pci {
            destination_cep: remote.cep,
            source_cep: local.cep,
            qos: self.config.policies.qos,
            kind,
            ..Pci::management(local.address, remote.address)
        }
    }

    fn control(&mut self, control: Control, flags: Flags) -> Pci {
        self.statistics.control_sent += 1;
        self.control_sequence = self.control_sequence.wrapping_add(1);
        Pci {
            flags,
            sequence: self.control_sequence,
            ..self.pci(Kind::Control(control))
        }
    }

    fn encode_ack(&mut self, ack: &Acknowledgement) -> (Pci, Vec<u8>) {
        let kind = match ack.cumulative {
            Some(_) => ControlType::AckFlow,
            None => ControlType::Flow,
        };
        let fields = ControlFields {
            acknowledged: ack.cumulative.unwrap_or(0),
            last_control: self.last_control,
            new_left: ack.cumulative.unwrap_or(0).wrapping_add(1),
            new_right: ack.right.unwrap_or(0),
            ..ControlFields::default()
        };
        let flags = if ack.is_marked { Flags::ECN } else { Flags::NONE };
        let pci = self.control(Control { kind, fields }, flags);
        let bytes = |(first, last): &(u32, u32)| [first.to_be_bytes(), last.to_be_bytes()].concat();
        (pci, ack.ranges.iter().flat_map(bytes).collect())
    }

    /// When [`Connection::tick`] or [`Connection::poll_transmit`] has something to do, at the
    /// latest.
    #[must_use]
    pub fn deadline(&self, now: Time) -> Option<Time> {
        if self.closed.is_some() {
            return None;
        }
        let sender = self.sender.deadline(self.config.pci_bytes, now);
        [sender, self.receiver.deadline()].into_iter().flatten().min()
    }

    /// Runs timers.
    pub fn tick(&mut self, now: Time) {
        if self.closed.is_some() {
            return;
        }
        match self.sender.tick(now) {
            Ok(is_probe_due) => self.probe_due |= is_probe_due,
            Err(closed) => self.closed = Some(closed),
        }
    }

    /// Whether all that was sent has left and, of reliable connections, is acknowledged.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.sender.is_drained()
    }

    /// Why it has ended; `None` while it works.
    #[must_use]
    pub fn closed(&self) -> Option<Closed> {
        self.closed
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    #[must_use]
    pub fn round_trip_time(&self) -> Option<Duration> {
        self.sender.rtt.smoothed()
    }

    /// PDUs that may be in flight by congestion control, and those that are.
    #[must_use]
    pub fn congestion_window(&self) -> (u64, u64) {
        (self.sender.congestion.window(), self.sender.in_flight())
    }

    /// Data PDUs that wait for a gap to close.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.receiver.buffered()
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        Statistics {
            sdus_lost: self.receiver.lost_sdus,
            retransmitted: self.sender.retransmitted,
            duplicates: self.receiver.duplicates,
            marked: self.receiver.marked,
            ..self.statistics
        }
    }
}

/// The ranges after the fields of an acknowledgement.
fn ranges(payload: &[u8]) -> Result<Vec<(u32, u32)>, Refused> {
    let (pairs, rest) = payload.as_chunks::<8>();
    if !rest.is_empty() || pairs.len() > MAX_RANGES {
        return Err(Refused::Ranges);
    }
    let pair = |[a, b, c, d, e, f, g, h]: &[u8; 8]| {
        let first = u32::from_be_bytes([*a, *b, *c, *d]);
        let last = u32::from_be_bytes([*e, *f, *g, *h]);
        // A range is no longer than half of the numbers.
        (last.wrapping_sub(first) as i32 >= 0).then_some((first, last))
    };
    pairs.iter().map(|bytes| pair(bytes).ok_or(Refused::Ranges)).collect()
}
