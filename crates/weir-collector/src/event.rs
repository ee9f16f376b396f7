//! Events: what a person or an alarm should hear of.

use crate::path::{Path, PortKey};
use serde::Serialize;
use std::fmt;
use std::net::IpAddr;
use weir_int::FlowKey;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// When, in ns since the Unix epoch, by the collector's clock.
    pub time: u64,
    /// What it is about.
    pub subject: Subject,
    /// What happened.
    pub what: What,
}

/// What an event is about.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "subject")]
pub enum Subject {
    /// A flow.
    Flow {
        /// Its key.
        #[serde(serialize_with = "crate::text")]
        flow: FlowKey,
    },
    /// An egress port of a node.
    Port {
        /// The port.
        #[serde(serialize_with = "crate::text")]
        port: PortKey,
    },
    /// A queue of a port.
    Queue {
        /// The port.
        #[serde(serialize_with = "crate::text")]
        port: PortKey,
        /// Number of the queue.
        queue: u8,
    },
    /// A node that sends reports.
    Exporter {
        /// Its address.
        address: IpAddr,
        /// Node id in its reports; 0 where they have none.
        node: u32,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Flow { flow } => flow.fmt(f),
            Subject::Port { port } => port.fmt(f),
            Subject::Queue { port, queue } => write!(f, "{port} queue {queue}"),
            Subject::Exporter { address, node } => write!(f, "{address} node {node}"),
        }
    }
}

/// A quantity that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// End-to-end latency of a flow, ns.
    FlowLatency,
    /// Latency of a hop, ns.
    HopLatency,
    /// Occupancy of a queue, in the node's unit.
    QueueOccupancy,
    /// Utilisation of a port, in the node's unit.
    TxUtilisation,
}

impl Quantity {
    /// Its name in tables and labels.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::FlowLatency => "flow_latency",
            Quantity::HopLatency => "hop_latency",
            Quantity::QueueOccupancy => "queue_occupancy",
            Quantity::TxUtilisation => "tx_utilisation",
        }
    }
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    /// A quantity reached its limit.
    Above {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// It is back below the limit, hysteresis included.
    Below {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
        /// How long it was above, ns.
        duration: u64,
        /// Its largest value in that time.
        peak: u64,
    },
    /// It changed by the configured delta or more.
    Changed {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
        /// Its value at the event before.
        from: u64,
    },
    /// It did not change: a sign of life.
    Alive {
        /// Which.
        quantity: Quantity,
        /// Its value.
        value: u64,
    },
    /// A queue was above its limit for less than a second and is back.
    Microburst {
        /// How long, ns.
        duration: u64,
        /// The largest occupancy.
        peak: u64,
        /// Reports in that time.
        reports: u64,
        /// The flow that met the largest occupancy.
        #[serde(serialize_with = "crate::optional_text")]
        flow: Option<FlowKey>,
    },
    /// The flow takes another path.
    PathChanged {
        /// The path before.
        #[serde(serialize_with = "crate::text")]
        from: Path,
        /// The path now.
        #[serde(serialize_with = "crate::text")]
        to: Path,
    },
    /// A node dropped a packet of the flow.
    Dropped {
        /// Node id.
        node: Option<u32>,
        /// The reason's number, if the report has one.
        reason: Option<u8>,
    },
    /// Reports of this exporter are missing.
    ReportsLost {
        /// How many.
        missing: u64,
    },
    /// The exporter's sequence numbers began anew.
    Restarted,
}

impl What {
    /// Its name in tables and labels.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            What::Above { .. } => "above",
            What::Below { .. } => "below",
            What::Changed { .. } => "changed",
            What::Alive { .. } => "alive",
            What::Microburst { .. } => "microburst",
            What::PathChanged { .. } => "path_changed",
            What::Dropped { .. } => "dropped",
            What::ReportsLost { .. } => "reports_lost",
            What::Restarted => "restarted",
        }
    }
}

/// Events of an interval, at most `most`.
#[derive(Debug, Default)]
pub(crate) struct Events {
    pub kept: Vec<Event>,
    pub left_out: u64,
    pub most: usize,
}

impl Events {
    pub fn push(&mut self, time: u64, subject: Subject, what: What) {
        if self.kept.len() < self.most {
            self.kept.push(Event { time, subject, what });
        } else {
            self.left_out += 1;
        }
    }
}
