//! The interface of a fused pipeline: its inputs, its exits and their meanings, and the calls that
//! the host performs.
//!
//! Each architecture builds a [`Fused`] in its `fuse` module; weir-jit compiles it and weir-switch
//! runs it. Packets that a pipeline does not finish are punted to the architecture's driver.

use crate::driver::DropReason;
use crate::error::LeftOut;
use crate::v1::Marks;
use std::any::Any;
use std::sync::Arc;
use weir_interp::{Abort, ArgValue, CallContext, MethodEngine, Outcome, PacketState, Runtime, SiteId};
use weir_ir::pipeline::Pipeline;
use weir_ir::{Bits, Call, ExternId, Loc, VarId};

/// The source of a pipeline's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The port the packet came in at.
    Port,
    /// The switch's clock in microseconds.
    NowUs,
    /// The switch's clock in nanoseconds.
    NowNs,
    /// The packet's length in bytes.
    Length,
    /// Eight bytes of the configured metadata of the port the packet came in at
    /// ([`crate::State::port_metadata`]), the first eight at 0; padded with zeros.
    PortMetadata(usize),
    /// Metadata from the traffic manager, for pipelines that begin at egress ([`Fused::egress`]).
    FromTrafficManager(EgressMetadata),
}

/// A metadata value that egress receives with a packet; see [`Handling`](crate::Handling).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EgressMetadata {
    /// The replication id of the copy.
    Rid,
    /// Its queue.
    Queue,
    /// Its class of service.
    Class,
    /// It is the first copy of its group.
    IsFirstCopy,
    /// It was deflected.
    IsDeflected,
}

/// The variables of a packet that leaves by [`FusedExit::Queue`], for the traffic manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queueing {
    /// The port of the packet itself.
    pub port: VarId,
    /// The number of a port that is none.
    pub no_port: u64,
    /// Multicast groups; 0 is none.
    pub groups: [VarId; 2],
    /// Level-1 exclusion id: nodes that have this number make no copies.
    pub exclude_node: VarId,
    /// Level-2 exclusion id, the number of a list of ports: nodes that have the packet's
    /// replication id make no copies for them.
    pub exclude_ports: VarId,
    /// The replication id.
    pub rid: VarId,
    /// The queue.
    pub queue: VarId,
    /// The class of service.
    pub class: VarId,
    /// Egress sends it as it is.
    pub bypasses: VarId,
    /// It is deflected to the deflection port if its queue is full.
    pub deflects: VarId,
}

/// The handling of a packet that leaves a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedExit {
    /// It is sent to the port in this variable.
    Transmit(VarId),
    /// As `Transmit`, after [`crate::Architecture::fused_stamp`] has modified it for its port.
    StampAndTransmit(VarId),
    /// It is received again at the recirculation port in this variable, with its pass count
    /// incremented.
    Recirculate(VarId),
    /// Ingress has deparsed it. The traffic manager handles it by [`Fused::queueing`].
    Queue,
    /// It is dropped.
    Drop(DropReason),
    /// It is punted: the driver continues with [`crate::Architecture::fused_exit`].
    Punt {
        /// Egress has run already; it counts against the work limit.
        after_egress: bool,
    },
}

/// An architecture's programmable blocks as one pipeline.
pub struct Fused {
    /// The pipeline to compile.
    pub pipeline: Arc<Pipeline>,
    /// The source of each of its inputs.
    pub inputs: Vec<Input>,
    /// The handling of packets at each of its exits.
    pub exits: Vec<FusedExit>,
    /// Extern types that are action selectors.
    pub selectors: &'static [&'static str],
    /// Whether a hit counts in the entry's direct counters, whatever its action does.
    pub counts_hits: bool,
    /// Its calls, in a form that only the architecture knows: opaque to engines.
    pub calls: Arc<dyn Any + Send + Sync>,
    /// The variables of packets that leave by [`FusedExit::Queue`].
    pub queueing: Option<Queueing>,
    /// Egress of queued packets, as a separate pipeline. Its packets are those that ingress has
    /// deparsed, [`Input::Port`] is their egress port, and its driver exits continue with
    /// [`crate::Architecture::fused_egress_exit`].
    pub egress: Option<Box<Fused>>,
    /// Whether a recirculated packet is handled like any other that is received at that port.
    pub recirculates: bool,
    /// Parts of the program that are left to the interpreter, and why.
    pub left_out: Vec<LeftOut>,
    /// Bytes of the payload as it was received that [`crate::Architecture::fused_exit`] reads:
    /// those that the parser looks ahead at, or all.
    pub payload_kept: usize,
}

/// The requests that extern calls of a packet in a pipeline have made so far.
#[derive(Debug, Clone, Default)]
pub struct FusedPacket {
    /// Requests of v1model; other architectures keep none here.
    pub(crate) marks: Marks,
    pub(crate) received_bytes: u64,
    /// How often it has passed ingress before.
    pub passes: u32,
    /// A packet generator has made it.
    pub is_generated: bool,
    /// TNA's counters and meters that count it by its length when it is sent.
    pub(crate) deferred: Vec<crate::tna::DeferredCount>,
    /// The payload before an extern changed it.
    received: ReceivedPayload,
    /// The number of the flow that it was received in, for the order of packets that wait. Set
    /// before an extern changes the payload.
    pub flow: Option<u64>,
    /// Whether the fields hold no requests of an earlier packet.
    pub(crate) is_fresh: bool,
}

/// The beginning of a payload as it was received.
#[derive(Debug, Clone, Default)]
struct ReceivedPayload {
    is_kept: bool,
    /// Bytes of the packet before it.
    consumed: usize,
    bytes: Vec<u8>,
}

impl FusedPacket {
    /// Resets the requests of the packet before this one.
    pub fn begin(&mut self, received_bytes: usize) {
        self.received_bytes = received_bytes as u64;
        if !self.is_fresh {
            self.marks = Marks::default();
            self.deferred.clear();
            self.received.is_kept = false;
            self.flow = None;
            self.is_fresh = true;
        }
    }

    /// Keeps the payload, at most [`Fused::payload_kept`] bytes, of a packet that is as it was
    /// received. Returns whether that had not been done before.
    pub fn keep_payload(&mut self, packet: &[u8], consumed: usize, most: usize) -> bool {
        if self.received.is_kept {
            return false;
        }
        let payload = packet.get(consumed..).unwrap_or_default();
        self.received.is_kept = true;
        self.received.consumed = consumed;
        self.received.bytes.clear();
        self.received.bytes.extend(payload.iter().take(most));
        self.is_fresh = false;
        true
    }

    /// The packet as it was received, which is `bytes` now. Zeros stand for what was not kept: no
    /// parser reads that.
    pub(crate) fn as_received(&self, bytes: &[u8]) -> Vec<u8> {
        if !self.received.is_kept {
            return bytes.to_vec();
        }
        let parsed = bytes.get(..self.received.consumed).unwrap_or(bytes);
        let mut received = Vec::with_capacity(self.received_bytes as usize);
        received.extend_from_slice(parsed);
        received.extend_from_slice(&self.received.bytes);
        received.resize(self.received_bytes as usize, 0);
        received
    }

    /// Replaces the bytes of a packet that was parsed [as it was received](Self::as_received) by
    /// its current ones, after `front` bytes that are not of the packet.
    pub(crate) fn apply_changes(&self, state: &mut PacketState, front: usize, bytes: &[u8]) {
        if self.received.is_kept {
            state.received = Some(state.bytes.split_off(front.min(state.bytes.len())));
            state.bytes.extend_from_slice(bytes);
        }
    }

    /// Bytes that were received.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received_bytes
    }
}

/// An extern call of a packet in a pipeline.
pub struct FusedArguments<'a> {
    /// The packet as it was received.
    pub packet: &'a [u8],
    /// Bits of it that the parser has consumed.
    pub cursor: usize,
    /// Arguments; the values left in [`ArgValue::Out`] are written back.
    pub arguments: &'a mut [ArgValue],
    /// Results, zero on entry.
    pub results: &'a mut [Bits],
    /// Handle of the table entry; 0 if none.
    pub entry: u32,
    /// Variables that it reads besides, as the pipeline says.
    pub reads: &'a [(VarId, Bits)],
}

impl FusedArguments<'_> {
    /// Performs the call as if a programmable block had made it; there is no frame but what
    /// `packet` brings.
    pub(crate) fn with<R>(
        self,
        loc: Loc,
        packet: &mut PacketState,
        perform: impl FnOnce(&mut CallContext<'_>) -> R,
    ) -> R {
        perform(&mut CallContext {
            site: SiteId::default(),
            call: &NO_CALL,
            loc,
            args: self.arguments,
            results: self.results,
            entry: self.entry,
            packet,
            engine: &mut NoMethods,
        })
    }
}

/// A placeholder for operations that ignore the call.
pub(crate) static NO_CALL: Call = Call {
    instance: None,
    function: String::new(),
    type_arguments: Vec::new(),
    arguments: Vec::new(),
    results: Vec::new(),
    entry: None,
    closure: 0,
    is_pure: false,
    calculation: None,
    execution: weir_ir::Execution::Inline,
};

/// Pipelines have no externs with methods that are written in P4.
struct NoMethods;

impl MethodEngine for NoMethods {
    fn run_method(&mut self, _: ExternId, _: usize, _: &mut PacketState, _: &mut dyn Runtime) -> Outcome {
        Outcome::Abort(Abort::NoSuchBody)
    }
}
