//! Policies and limits of a connection.

use crate::efcp::{Address, CepId, QosId};
use std::time::Duration;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// Address of the IPC process.
    pub address: Address,
    /// The connection's endpoint there.
    pub cep: CepId,
}

/// How PDUs of a connection are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Lost PDUs are retransmitted; SDUs are delivered in order, each once.
    Reliable,
    /// Nothing is retransmitted; what arrives after a later SDU is discarded.
    Ordered,
    /// Nothing is retransmitted; SDUs are delivered as they arrive, each at most once.
    Unordered,
}

/// How a sender reacts to congestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CongestionControl {
    /// It does not: only the receiver's window and the rate limit it.
    None,
    /// Slow start and congestion avoidance (RFC 5681); ECN marks reduce the window in proportion to
    /// their share (DCTCP, RFC 8257).
    Dctcp,
}

/// What a connection provides. Both ends use the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies {
    /// The QoS cube, in the PCI of each PDU.
    pub qos: QosId,
    /// Delivery.
    pub delivery: Delivery,
    /// Window flow control: PDUs that the receiver has room for. `None`: no flow control, which
    /// reliable connections do not have.
    pub credit: Option<u32>,
    /// The largest rate, in bytes of PDUs per second.
    pub rate: Option<u64>,
    /// Congestion control; only of reliable connections.
    pub congestion: CongestionControl,
    /// The longest time that the receiver delays an acknowledgement (A of Delta-t).
    pub max_ack_delay: Duration,
    /// Maximum PDU lifetime (MPL of Delta-t).
    pub max_pdu_lifetime: Duration,
    /// The least retransmission timeout.
    pub min_rto: Duration,
    /// How long the sender retransmits a PDU before it gives the connection up (R of Delta-t).
    pub give_up: Duration,
}

impl Policies {
    /// A reliable connection with flow and congestion control.
    #[must_use]
    pub fn reliable(qos: QosId) -> Self {
        Policies {
            qos,
            delivery: Delivery::Reliable,
            credit: Some(1024),
            rate: None,
            congestion: CongestionControl::Dctcp,
            max_ack_delay: Duration::from_millis(2),
            max_pdu_lifetime: Duration::from_secs(1),
            min_rto: Duration::from_millis(20),
            give_up: Duration::from_secs(30),
        }
    }

    /// A connection without retransmission and flow control.
    #[must_use]
    pub fn unreliable(qos: QosId) -> Self {
        Policies {
            delivery: Delivery::Unordered,
            credit: None,
            congestion: CongestionControl::None,
            ..Policies::reliable(qos)
        }
    }

    /// The credit: that of reliable connections is at least 1.
    pub(super) fn window(&self) -> Option<u32> {
        match self.delivery {
            Delivery::Reliable => Some(self.credit.unwrap_or(1024).clamp(1, MAX_CREDIT)),
            Delivery::Ordered | Delivery::Unordered => self.credit.map(|credit| credit.clamp(1, MAX_CREDIT)),
        }
    }

    /// The idle time after which a sender begins a new run (Delta-t).
    pub(super) fn sender_inactivity(&self) -> Duration {
        (self.max_pdu_lifetime + self.give_up + self.max_ack_delay) * 3
    }
}

/// The largest credit, in PDUs.
pub(super) const MAX_CREDIT: u32 = 1 << 16;

/// A connection to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionConfig {
    /// This end.
    pub local: Endpoint,
    /// The other end.
    pub remote: Endpoint,
    /// What the connection provides.
    pub policies: Policies,
    /// Bytes of the longest PDU, PCI included.
    pub max_pdu: usize,
    /// Bytes of the PCI of data PDUs.
    pub pci_bytes: usize,
    /// Bytes of the longest SDU, in both directions.
    pub max_sdu: usize,
    /// PDUs that wait for the window or the rate; when there are more, [`super::SendError::Full`].
    pub queue: usize,
    /// The first sequence number: random, so that others cannot guess it.
    pub initial_sequence: u32,
}
