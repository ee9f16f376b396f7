//! The interface between an architecture and the switch around it.
//!
//! An [`Architecture`] is a state machine without I/O, threads or clock: it receives a packet and
//! the time, and answers with [`Action`]s. Queues, ports, replication lists and clone sessions are
//! the switch's.

use crate::bound::{BoundCall, BoundExterns};
use crate::choices::Choices;
use crate::error::NotCompiled;
use crate::fused::{Fused, FusedArguments, FusedPacket};
use crate::service::Service;
use crate::state::State;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use weir_interp::{Abort, PacketState, PacketTag, Tracer};
use weir_ir::{Bits, Loc, Program, TableId, VarId};
use weir_table::EntryHandle;

/// Times that a packet may be resubmitted, recirculated or cloned in egress before it is dropped,
/// where the architecture has no other limit ([`Architecture::max_passes`]).
pub const MAX_PASSES: u32 = 64;

/// Queues of a port; the one with the largest number is served first.
pub const PRIORITIES: usize = 8;

/// The environment of one step of an architecture.
pub struct Env<'a> {
    /// Tables, registers and so on.
    pub state: &'a mut State,
    /// The time in ns since the switch started.
    pub now_ns: u64,
    /// Decides the outcomes of random and unspecified operations.
    pub choices: &'a mut dyn Choices,
    /// Records the steps of the packet.
    pub tracer: &'a mut dyn Tracer,
}

impl Env<'_> {
    /// The state for a packet of `bytes` bytes, and the trace's observer.
    pub fn service(&mut self, bytes: u64) -> (Service<'_>, &mut dyn Tracer) {
        let service = Service {
            now_ns: self.now_ns,
            choices: &mut *self.choices,
            bytes: bytes + self.state.frame_check(),
            state: &mut *self.state,
        };
        (service, &mut *self.tracer)
    }
}

/// Why a packet begins at ingress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// It came in at a port.
    Received,
    /// Ingress sent it back to itself.
    Resubmitted,
    /// Egress sent it back to ingress.
    Recirculated,
}

/// A packet before ingress.
#[derive(Debug, Clone)]
pub struct IngressPacket {
    /// The port it came in at.
    pub port: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Why it is here.
    pub origin: Origin,
    /// A packet generator has made it.
    pub is_generated: bool,
    /// Values that outlived the last pass.
    pub preserved: Vec<(VarId, Bits)>,
    /// How often it has been here before.
    pub passes: u32,
    /// Its name in a trace.
    pub tag: PacketTag,
}

impl IngressPacket {
    /// A packet that came in at a port.
    #[must_use]
    pub fn received(port: u32, bytes: Vec<u8>, tag: PacketTag) -> Self {
        IngressPacket {
            port,
            bytes,
            origin: Origin::Received,
            is_generated: false,
            preserved: Vec::new(),
            passes: 0,
            tag,
        }
    }
}

/// A packet between ingress and egress.
#[derive(Debug, Clone)]
pub struct EgressPacket {
    /// Its variables, its bytes and how far they were parsed.
    pub state: PacketState,
    /// The port it came in at.
    pub ingress_port: u32,
    /// Bytes received: what meters and counters count.
    pub received_bytes: u64,
    /// Its length in bytes with the headers it had at `length_bits` of valid headers.
    pub(crate) length: i64,
    pub(crate) length_bits: i64,
    /// Longest packet to send, in bytes.
    pub truncate: Option<u32>,
    /// Egress is to recirculate it, keeping these variables.
    pub(crate) recirculate: Option<Arc<[VarId]>>,
    /// Its metadata for the traffic manager.
    pub handling: Handling,
    /// How often it has been at ingress.
    pub passes: u32,
    /// Its name in a trace.
    pub tag: PacketTag,
}

/// Metadata of a packet for the traffic manager and egress, if the architecture does not keep it in
/// variables of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Handling {
    /// Egress sends it as it is.
    pub bypasses_egress: bool,
    /// It is deflected to the deflection port if its queue is full.
    pub deflect: bool,
    /// So it did.
    pub is_deflected: bool,
    /// Its queue, as the program counts them.
    pub queue: u32,
    /// Its class of service, as the program counts them.
    pub class: u32,
    /// Which copies of its multicast group are not made.
    pub exclusion: Option<Exclusion>,
    /// The replication id of the copy.
    pub rid: u32,
    /// It is the first copy of its group.
    pub is_first_copy: bool,
    /// Packets in its queue when it came there.
    pub depth: u64,
    /// Bytes of a generated packet when it came to ingress; 0 of any other.
    pub generated_bytes: u32,
}

/// Copies of a multicast group that are not made of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Exclusion {
    /// Those of nodes that were put in the group with this number.
    pub node: u32,
    /// Of nodes with this replication id …
    pub rid: u32,
    /// … those for the ports in the list with this number.
    pub ports: u32,
}

impl EgressPacket {
    /// A packet without requests.
    #[must_use]
    pub fn new(state: PacketState, ingress_port: u32, passes: u32, tag: PacketTag) -> Self {
        EgressPacket {
            ingress_port,
            received_bytes: state.bytes.len() as u64,
            length: state.bytes.len() as i64,
            length_bits: 0,
            state,
            truncate: None,
            recirculate: None,
            handling: Handling::default(),
            passes,
            tag,
        }
    }

    /// Shortens the packet to `bytes`, as far as that cuts only what was not parsed: headers stay.
    pub fn truncate_to(&mut self, bytes: u32) {
        let parsed = self.state.cursor.div_ceil(8);
        self.state.bytes.truncate(parsed.max(bytes as usize));
    }
}

/// The queue that a packet has left, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueInfo {
    /// Port whose queue it left.
    pub port: u32,
    /// When it was put in, in ns.
    pub enqueued_ns: u64,
    /// Packets left in that queue after it was taken out.
    pub depth: u64,
    /// Which of the port's queues it was.
    pub priority: u64,
}

/// Numbers that multicast groups and clone sessions may have, and sessions that are there from the
/// beginning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicationRules {
    /// Numbers of groups.
    pub groups: RangeInclusive<u32>,
    /// Numbers of sessions.
    pub sessions: RangeInclusive<u32>,
    /// Sessions that exist from the start, each with the port of its clones.
    pub initial: &'static [(u32, u32)],
    /// Numbers of the lists of ports that packets may exclude, and of the nodes; 0: packets exclude
    /// nothing.
    pub exclusions: u32,
    /// Packets may request deflection if their queue is full.
    pub deflects: bool,
}

impl Default for ReplicationRules {
    /// Those of simple_switch: 16 bits for a group, 15 for a session, 0 for none.
    fn default() -> Self {
        ReplicationRules {
            groups: 1..=0xffff,
            sessions: 1..=0x7fff,
            initial: &[],
            exclusions: 0,
            deflects: false,
        }
    }
}

/// An action of the switch on a packet.
#[derive(Debug)]
pub enum Action {
    /// Put it in the queue of a port.
    Enqueue {
        /// The port.
        port: u32,
        /// The packet.
        packet: EgressPacket,
    },
    /// Put a copy in the queue of each port of the group, and free the original.
    Multicast {
        /// The group.
        group: u32,
        /// The packet.
        packet: EgressPacket,
    },
    /// Do what the clone session says.
    Clone {
        /// The session.
        session: u32,
        /// The clone.
        packet: EgressPacket,
    },
    /// Begin again at ingress.
    Ingress(IngressPacket),
    /// Send it.
    Transmit {
        /// The port.
        port: u32,
        /// The bytes.
        bytes: Vec<u8>,
        /// Its name in a trace.
        tag: PacketTag,
    },
    /// Free it.
    Drop(Drop),
}

impl Action {
    /// The packet ends, for a reason and, where it is known, by something in the source.
    #[must_use]
    pub fn drop(reason: DropReason, loc: Option<Loc>, tag: PacketTag) -> Self {
        Action::Drop(Drop { reason, loc, tag })
    }

    /// The packet is dropped because a programmable block was stopped.
    #[must_use]
    pub fn stopped(reason: Abort, tag: PacketTag) -> Self {
        match reason {
            Abort::Extern(loc) => Action::drop(DropReason::Assert, Some(loc), tag),
            Abort::DroppedByExtern(loc) => Action::drop(DropReason::Extern, Some(loc), tag),
            Abort::InstructionBudget | Abort::NoSuchBody => Action::drop(DropReason::InstructionBudget, None, tag),
        }
    }
}

/// The end of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// Why.
    pub reason: DropReason,
    /// Its cause in the source, where known.
    pub loc: Option<Loc>,
    /// The packet's name in a trace.
    pub tag: PacketTag,
}

/// Why packets are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum DropReason {
    /// Ingress dropped it.
    IngressDrop,
    /// Egress dropped it.
    EgressDrop,
    /// An assertion of the program failed.
    Assert,
    /// It ran more instructions than a packet may.
    InstructionBudget,
    /// It was resubmitted or recirculated more than [`Architecture::max_passes`] times.
    Loop,
    /// The queue of its port and priority is full.
    QueueFull,
    /// There is no such port.
    NoSuchPort,
    /// The port is down.
    PortDown,
    /// There is no such queue.
    NoSuchPriority,
    /// The clone session is not configured (only the clone is dropped).
    NoSuchSession,
    /// The multicast group has no nodes, or does not exist.
    EmptyGroup,
    /// It was longer than a packet may be.
    TooLong,
    /// A registered extern dropped it.
    Extern,
    /// It would have waited for an extern, but no more packets can.
    ExternFull,
    /// It waited for an extern that stopped, or for a program that was replaced.
    ExternLost,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [DropReason; 15] = [
        DropReason::IngressDrop,
        DropReason::EgressDrop,
        DropReason::Assert,
        DropReason::InstructionBudget,
        DropReason::Loop,
        DropReason::QueueFull,
        DropReason::NoSuchPort,
        DropReason::PortDown,
        DropReason::NoSuchPriority,
        DropReason::NoSuchSession,
        DropReason::EmptyGroup,
        DropReason::TooLong,
        DropReason::Extern,
        DropReason::ExternFull,
        DropReason::ExternLost,
    ];

    /// Its name in counters, traces and tests: `ingress-drop`, …
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DropReason::IngressDrop => "ingress-drop",
            DropReason::EgressDrop => "egress-drop",
            DropReason::Assert => "assert",
            DropReason::InstructionBudget => "instruction-budget",
            DropReason::Loop => "loop",
            DropReason::QueueFull => "queue-full",
            DropReason::NoSuchPort => "no-such-port",
            DropReason::PortDown => "port-down",
            DropReason::NoSuchPriority => "no-such-priority",
            DropReason::NoSuchSession => "no-such-session",
            DropReason::EmptyGroup => "empty-group",
            DropReason::TooLong => "too-long",
            DropReason::Extern => "extern",
            DropReason::ExternFull => "extern-full",
            DropReason::ExternLost => "extern-lost",
        }
    }

    /// The reason with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The order of the programmable blocks, the meaning of the externs, and the destination of
/// packets.
pub trait Architecture: Send + Sync {
    /// The program it runs.
    fn program(&self) -> &Arc<Program>;

    /// The program's state before the first packet.
    fn initial_state(&self) -> State;

    /// Runs everything from the parser to the end of ingress.
    fn ingress(&self, env: &mut Env<'_>, packet: IngressPacket) -> Vec<Action>;

    /// Runs everything from the start of egress to the wire.
    fn egress(&self, env: &mut Env<'_>, packet: EgressPacket, queue: QueueInfo) -> Vec<Action>;

    /// The packet's queue at a port; larger numbers are served first.
    fn priority(&self, packet: &EgressPacket) -> u64;

    /// Stores in a packet's metadata that it enters a queue that holds `depth` packets.
    fn enqueued(&self, packet: &mut EgressPacket, now_ns: u64, depth: u64);

    /// Whether the program reads how long packets waited in a queue, or chooses the order in which
    /// they leave. Of other programs, a queue after egress is as good as one before it.
    fn observes_queues(&self) -> bool {
        true
    }

    /// Whether it observes every change of a queue. Then no packet may bypass its queue.
    fn watches_queues(&self) -> bool {
        false
    }

    /// A queue of a port holds this number of packets now.
    fn queue_changed(&self, _env: &mut Env<'_>, _port: u32, _priority: u64, _depth: u64) {}

    /// The rules of the architecture for multicast groups and clone sessions.
    fn replication(&self) -> ReplicationRules {
        ReplicationRules::default()
    }

    /// Whether a port is one of the architecture's own, which no device has and which is always
    /// there: packets for it are never sent; egress redirects them.
    fn is_internal(&self, _port: u32) -> bool {
        false
    }

    /// The fast path of plain packets as one pipeline, for an engine that compiles.
    ///
    /// # Errors
    /// The program has no fast path.
    fn fused(&self) -> Result<Fused, NotCompiled> {
        let problem = "this architecture has no compiled form of programs";
        Err(NotCompiled::new(self.program(), Loc::default(), problem))
    }

    /// The same with [`Fused::egress`] left to the driver, for an engine that cannot compile all of
    /// [`Architecture::fused`].
    ///
    /// # Errors
    /// As there.
    fn fused_without_egress(&self) -> Result<Fused, NotCompiled> {
        self.fused()
    }

    /// Times that a packet may be resubmitted, recirculated or cloned in egress before it is
    /// dropped.
    fn max_passes(&self) -> u32 {
        MAX_PASSES
    }

    /// Processes, for its port, a packet that has left a pipeline by
    /// [`StampAndTransmit`](crate::FusedExit::StampAndTransmit): changes its bytes in place, and
    /// says how many of the first are not sent.
    fn fused_stamp(&self, _bytes: &mut [u8], _now_ns: u64) -> usize {
        0
    }

    /// Executes extern call number `call` of a pipeline. `false`: the packet leaves by the call's
    /// abort exit.
    fn fused_call(
        &self,
        _env: &mut Env<'_>,
        _fused: &Fused,
        _call: usize,
        _packet: &mut FusedPacket,
        _arguments: FusedArguments<'_>,
    ) -> bool {
        true
    }

    /// An entry was hit that runs something or names no action: its action's index and data.
    /// Without direct resources that run at every hit, that is what its profile or selector says.
    fn fused_hit(
        &self,
        env: &mut Env<'_>,
        packet: &mut FusedPacket,
        table: TableId,
        handle: u32,
        keys: &[Bits],
    ) -> Option<(usize, Arc<[Bits]>)> {
        let (mut service, _) = env.service(packet.received_bytes());
        service.action_of_hit(table, EntryHandle::new(handle)?, keys)
    }

    /// The registered externs that the program calls.
    fn registered(&self) -> Option<&BoundExterns> {
        None
    }

    /// A call of a pipeline that [`CallKind::Extern`](weir_ir::pipeline::CallKind::Extern) says is
    /// one of a registered extern.
    fn fused_extern<'f>(&self, fused: &'f Fused, call: usize) -> Option<&'f Arc<BoundCall>> {
        let _ = (fused, call);
        None
    }

    /// The hash that [`weir_ir::pipeline::CallKind::Hash`] specifies, over these bytes.
    fn fused_hash(&self, _state: &State, _algorithm: u32, _data: &[u8]) -> u64 {
        0
    }

    /// Continues a packet that a pipeline punted. `values` are the
    /// variables that the exit keeps; all others are as parsing the packet leaves them.
    fn fused_exit(
        &self,
        _env: &mut Env<'_>,
        _exit: u32,
        _packet: &mut FusedPacket,
        _port: u32,
        _bytes: &[u8],
        _values: &[(VarId, Bits)],
    ) -> Vec<Action> {
        Vec::new()
    }

    /// Called when the egress pipeline has sent a packet of `bytes` bytes.
    fn fused_sent(&self, _state: &mut State, _packet: &mut FusedPacket, _bytes: u64) {}

    /// As [`Architecture::fused_exit`], of a packet that has left the pipeline of egress
    /// ([`Fused::egress`]).
    fn fused_egress_exit(
        &self,
        _env: &mut Env<'_>,
        _exit: u32,
        _known: &mut FusedPacket,
        _packet: EgressPacket,
        _queue: QueueInfo,
        _values: &[(VarId, Bits)],
    ) -> Vec<Action> {
        Vec::new()
    }

    /// A copy of the packet for one node of a multicast group.
    fn replica(&self, packet: &EgressPacket, rid: u32) -> EgressPacket;
}
