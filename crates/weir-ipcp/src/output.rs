//! What an IPC process gives to its owner.

use crate::config::PortId;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use weir_rina::ApplicationName;
use weir_rina::arp::MacAddress;
use weir_rina::cdap::objects::QosRequest;
use weir_rina::efcp::Address;
use weir_rina::enrolment::Failure;

/// The local end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct FlowId(pub u32);

/// Something that the owner has to do, or may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a frame out of a port.
    Frame {
        /// The port.
        port: PortId,
        /// From the destination MAC address on.
        frame: Vec<u8>,
    },
    /// [`crate::IpcProcess::forwarding`] has changed.
    ForwardingChanged,
    /// For the application that a flow belongs to.
    Flow(FlowId, FlowEvent),
    /// For people and logs.
    Event(Event),
}

/// News of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FlowEvent {
    /// Another application requests a flow: accept or refuse it.
    Requested {
        /// The application here.
        local: ApplicationName,
        /// The one that requests it.
        remote: ApplicationName,
        /// What it has to provide.
        qos: QosRequest,
    },
    /// A flow that was requested here is allocated.
    Allocated,
    /// A flow that was requested here is not; it does not exist any more.
    Refused(String),
    /// There are SDUs to read.
    Readable,
    /// There is room for SDUs again.
    Writable,
    /// The other side has deallocated it, or the connection has failed. SDUs that have arrived can
    /// still be read; then it has to be deallocated here.
    Closed(String),
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Event {
    /// This IPC process is a member of the DIF, with this address.
    Joined {
        /// Its address.
        address: u32,
    },
    /// A neighbour is enrolled, and the link to it is used.
    NeighbourUp {
        /// Its name.
        neighbour: String,
        /// The port.
        port: PortId,
    },
    /// The link to a neighbour is not used any more.
    NeighbourDown {
        /// Its name.
        neighbour: String,
        /// The port.
        port: PortId,
        /// Why.
        reason: Down,
    },
    /// An enrolment with a neighbour has failed.
    EnrolmentFailed {
        /// The port.
        port: PortId,
        /// Why.
        #[serde(serialize_with = "failure_name")]
        failure: Failure,
    },
    /// Routes were computed.
    Routes {
        /// Destinations.
        destinations: usize,
    },
    /// Two members have the same address; one of them changes.
    AddressConflict {
        /// The address.
        address: u32,
        /// The member that changes.
        changes: String,
    },
}

fn failure_name<S: serde::Serializer>(failure: &Failure, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(failure.name())
}

/// Why a link is not used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Down {
    /// The neighbour does not answer.
    Keepalive,
    /// The port is down.
    Port,
    /// The neighbour enrols again: it has restarted.
    Restarted,
    /// This IPC process has another address, and enrols again.
    AddressChanged,
}

/// Where PDUs go next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct NextHop {
    /// The port.
    pub port: PortId,
    /// VLAN id; 0: untagged.
    pub vlan: u16,
    /// The neighbour's MAC address.
    #[serde(serialize_with = "text")]
    pub mac: MacAddress,
}

pub(crate) fn text<T: std::fmt::Display, S: serde::Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// What a switch has to know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forwarding {
    /// The address of this IPC process, once it is a member.
    pub own: Option<Address>,
    /// Next hops by destination, at least one each.
    pub routes: BTreeMap<Address, BTreeSet<NextHop>>,
    /// MAC addresses of the ports.
    pub macs: BTreeMap<PortId, MacAddress>,
}

/// Why something that arrived is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refused {
    /// A frame on a port that is not configured, or of another VLAN or EtherType.
    NotOurs,
    /// A malformed frame, ARP packet or PDU.
    Malformed,
    /// A malformed message of layer management.
    MalformedMessage,
    /// There are too many neighbours, flows or entries.
    Limit,
    /// A message of layer management from a peer that is not enrolled.
    NotEnrolled,
    /// A message that is not expected.
    UnexpectedMessage,
    /// A message between neighbours that is addressed to a member: routers may have forwarded it.
    Routed,
    /// A link state or directory entry that is old, replayed or forged.
    State,
    /// A PDU without a route.
    NoRoute,
    /// A PDU for no connection.
    NoConnection,
    /// A PDU that its connection refuses.
    Connection,
    /// A frame for which the queue of outputs had no room.
    QueueFull,
}

impl Refused {
    /// All reasons, in the order of their counters.
    pub const ALL: [Refused; 12] = [
        Refused::NotOurs,
        Refused::Malformed,
        Refused::MalformedMessage,
        Refused::Limit,
        Refused::NotEnrolled,
        Refused::UnexpectedMessage,
        Refused::Routed,
        Refused::State,
        Refused::NoRoute,
        Refused::NoConnection,
        Refused::Connection,
        Refused::QueueFull,
    ];

    /// A name for metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Refused::NotOurs => "not_ours",
            Refused::Malformed => "malformed",
            Refused::MalformedMessage => "malformed_message",
            Refused::Limit => "limit",
            Refused::NotEnrolled => "not_enrolled",
            Refused::UnexpectedMessage => "unexpected_message",
            Refused::Routed => "routed",
            Refused::State => "state",
            Refused::NoRoute => "no_route",
            Refused::NoConnection => "no_connection",
            Refused::Connection => "connection",
            Refused::QueueFull => "queue_full",
        }
    }
}

/// Counters of an IPC process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Frames that arrived.
    pub frames_received: u64,
    /// Frames that were sent.
    pub frames_sent: u64,
    /// Their bytes.
    pub bytes_sent: u64,
    /// Messages of layer management that were sent.
    pub messages_sent: u64,
    /// Messages of layer management that arrived.
    pub messages_received: u64,
    /// Data and control PDUs that were sent by connections here.
    pub pdus_sent: u64,
    /// Data and control PDUs for connections here.
    pub pdus_received: u64,
    /// PDUs of others that were forwarded here.
    pub pdus_forwarded: u64,
    /// Enrolments that have succeeded.
    pub enrolments: u64,
    /// Enrolments that have failed, by [`Failure::index`].
    pub enrolments_failed: [u64; Failure::COUNT],
    /// Computations of routes.
    pub route_computations: u64,
    /// What was refused, by the order of [`Refused::ALL`].
    pub refused: [u64; Refused::ALL.len()],
}
