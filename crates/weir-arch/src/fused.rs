//! The way of the plain packet as one pipeline, and how the driver takes over where a packet leaves
//! it.

use crate::driver::DropReason;
use crate::error::LeftOut;
use crate::v1::Marks;
use std::any::Any;
use std::sync::Arc;
use weir_interp::{Abort, ArgValue, CallContext, MethodEngine, Outcome, PacketState, Runtime, SiteId};
use weir_ir::pipeline::Pipeline;
use weir_ir::{Bits, Call, ExternId, Loc, VarId};

/// What an input of a pipeline is.
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
    /// Eight bytes of what the control plane says of the port the packet came in at
    /// ([`crate::State::port_metadata`]), the first eight at 0; zeros where it says less.
    PortMetadata(usize),
    /// What the traffic manager tells egress of the packet: of pipelines that begin there
    /// ([`Fused::egress`]).
    Told(Told),
}

/// A metadata value that egress receives with a packet; see [`Handling`](crate::Handling).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
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

/// What a packet that leaves by [`FusedExit::Queue`] says to the traffic manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queueing {
    /// The port of the packet itself.
    pub port: VarId,
    /// The number of a port that is none.
    pub no_port: u64,
    /// Multicast groups; 0 is none.
    pub groups: [VarId; 2],
    /// Copies that are not made: of nodes with this number …
    pub exclude_node: VarId,
    /// … and, of nodes with the packet's replication id, those for ports in this list.
    pub exclude_ports: VarId,
    /// The replication id.
    pub rid: VarId,
    /// The queue.
    pub queue: VarId,
    /// The class of service.
    pub class: VarId,
    /// Egress sends it as it is.
    pub bypasses: VarId,
    /// It goes to the port of deflection if its queue is full.
    pub deflects: VarId,
}

/// What happens to a packet that leaves a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedExit {
    /// It is sent to the port in this variable.
    Transmit(VarId),
    /// The same, after [`crate::Architecture::fused_finish`] has done to it what its port does.
    Finish(VarId),
    /// It is for a port of the architecture's own, the one in this variable: it comes in there,
    /// with one pass more.
    Recirculate(VarId),
    /// Ingress has deparsed it: the traffic manager is to do what [`Fused::queueing`] says.
    Queue,
    /// It is dropped.
    Drop(DropReason),
    /// The driver goes on: [`crate::Architecture::fused_exit`].
    Driver {
        /// Egress has run already, which is work that the packet has caused.
        after_egress: bool,
    },
}

/// An architecture's blocks as one pipeline.
pub struct Fused {
    /// What to compile.
    pub pipeline: Arc<Pipeline>,
    /// What each of its inputs is.
    pub inputs: Vec<Input>,
    /// What each of its exits means.
    pub exits: Vec<FusedExit>,
    /// Extern types that are action selectors.
    pub selectors: &'static [&'static str],
    /// A hit counts in the direct counters of the entry, whatever its action does.
    pub counts_hits: bool,
    /// What each of its calls is, as only the architecture knows it.
    pub calls: Arc<dyn Any + Send + Sync>,
    /// What packets that leave by [`FusedExit::Queue`] say.
    pub queueing: Option<Queueing>,
    /// Egress of packets that do not go straight through, as a pipeline of its own: its packets are
    /// what ingress has
    /// deparsed, the port of [`Input::Port`] is the one they go to, and its driver's exits are
    /// [`crate::Architecture::fused_egress_exit`].
    pub egress: Option<Box<Fused>>,
    /// A packet that recirculates is as any other that comes in at that port.
    pub recirculates: bool,
    /// What is left to the interpreter, and why.
    pub left_out: Vec<LeftOut>,
}

/// What a packet in a pipeline has asked for so far.
#[derive(Debug, Clone, Default)]
pub struct FusedPacket {
    /// v1model's; other architectures have asked for nothing yet that they must keep.
    pub(crate) marks: Marks,
    pub(crate) received_bytes: u64,
    /// How often it has been at ingress before.
    pub passes: u32,
    /// A packet generator has made it.
    pub is_generated: bool,
    /// TNA's counters and meters that count it as it is sent.
    pub(crate) late: Vec<crate::tna::Late>,
    /// Nothing has to be forgotten before the next packet.
    pub(crate) is_fresh: bool,
}

impl FusedPacket {
    /// Forgets the packet before this one.
    pub fn begin(&mut self, received_bytes: usize) {
        self.received_bytes = received_bytes as u64;
        if !self.is_fresh {
            self.marks = Marks::default();
            self.late.clear();
            self.is_fresh = true;
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
    /// Bits of it that the parser has taken.
    pub cursor: usize,
    /// Arguments; what is left in [`ArgValue::Out`] is written back.
    pub arguments: &'a mut [ArgValue],
    /// Results, zero on entry.
    pub results: &'a mut [Bits],
    /// Handle of the table entry; 0 if none.
    pub entry: u32,
    /// Variables that it reads besides, as the pipeline says.
    pub reads: &'a [(VarId, Bits)],
}

impl FusedArguments<'_> {
    /// Performs the call as if a block had made it; there is no frame but what `packet` brings.
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

/// The call of an operation that looks at no call.
pub(crate) static NO_CALL: Call = Call {
    instance: None,
    function: String::new(),
    type_arguments: Vec::new(),
    arguments: Vec::new(),
    results: Vec::new(),
    entry: None,
    closure: 0,
    is_pure: false,
};

/// Pipelines hold no externs with methods of the program's.
struct NoMethods;

impl MethodEngine for NoMethods {
    fn run_method(&mut self, _: ExternId, _: usize, _: &mut PacketState, _: &mut dyn Runtime) -> Outcome {
        Outcome::Abort(Abort::NoSuchBody)
    }
}
