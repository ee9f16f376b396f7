//! The way of the plain packet as one pipeline, and how the driver takes over where a packet leaves it.

use crate::driver::DropReason;
use crate::v1::{Marks, Op};
use std::sync::Arc;
use weir_interp::ArgValue;
use weir_ir::pipeline::Pipeline;
use weir_ir::{Bits, Loc, VarId};

/// What an input of a pipeline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The port the packet came in at.
    Port,
    /// The switch's clock in microseconds.
    NowUs,
    /// The packet's length in bytes.
    Length,
}

/// What happens to a packet that leaves a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusedExit {
    /// It is sent to the port in this variable.
    Transmit(VarId),
    /// It is dropped.
    Drop(DropReason),
    /// The driver goes on: [`crate::Architecture::fused_exit`].
    Driver {
        /// Egress has run already, which is work that the packet has caused.
        after_egress: bool,
    },
}

/// What a call of a pipeline is.
pub(crate) enum FusedCall {
    /// An extern of the architecture.
    Op(Op, Loc),
    /// The internet checksum of the first argument.
    Checksum,
    /// What that is the complement of.
    Sum,
    /// A parser ended with the error in the first argument.
    ParserError,
    /// Whether a checksum was wrong.
    ChecksumError,
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
    /// What each of its calls is.
    pub(crate) calls: Arc<[FusedCall]>,
}

/// What a packet in a pipeline has asked for so far.
#[derive(Debug, Clone, Default)]
pub struct FusedPacket {
    pub(crate) marks: Marks,
    pub(crate) received_bytes: u64,
    /// Nothing has to be forgotten before the next packet.
    pub(crate) is_fresh: bool,
}

impl FusedPacket {
    /// Forgets the packet before this one.
    pub fn begin(&mut self, received_bytes: usize) {
        self.received_bytes = received_bytes as u64;
        if !self.is_fresh {
            self.marks = Marks::default();
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
