//! What an engine tells while it runs.

use crate::frame::Frame;
use crate::runtime::{ArgValue, LookupDetail, LookupOutcome, Outcome};
use weir_ir::{ActionId, Bits, Call, HeaderId, Loc, TableId, VarId};

/// Listens to a running packet. Engines are generic over it, so that [`NoTrace`] costs nothing.
pub trait Tracer {
    /// Whether anybody listens. Where not, engines make no events.
    fn enabled(&self) -> bool {
        true
    }

    /// Something happened at a place of the source.
    fn event(&mut self, event: &Event<'_>, loc: Loc);

    /// A packet comes into being: received, or made from the packet `parent`. What follows is about
    /// it until another packet begins or is resumed.
    fn begin_packet(&mut self, parent: PacketTag, what: &str) -> PacketTag;

    /// What follows is about this packet again.
    fn resume_packet(&mut self, packet: PacketTag);

    /// Where a variable was written last, if the tracer knows.
    fn last_write(&self, var: VarId) -> Option<Loc>;
}

/// Names a packet in a trace; [`PacketTag::NONE`] where nobody listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PacketTag(pub u32);

impl PacketTag {
    /// No packet.
    pub const NONE: PacketTag = PacketTag(0);
}

/// Nobody listens.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTrace;

impl Tracer for NoTrace {
    #[inline]
    fn enabled(&self) -> bool {
        false
    }
    #[inline]
    fn event(&mut self, _: &Event<'_>, _: Loc) {}
    #[inline]
    fn begin_packet(&mut self, _: PacketTag, _: &str) -> PacketTag {
        PacketTag::NONE
    }
    #[inline]
    fn resume_packet(&mut self, _: PacketTag) {}
    #[inline]
    fn last_write(&self, _: VarId) -> Option<Loc> {
        None
    }
}

/// Things that happen.
#[derive(Debug)]
pub enum Event<'a> {
    /// A block of the program begins.
    BlockEnter {
        /// Index into [`weir_ir::Program::blocks`].
        block: usize,
    },
    /// It ends.
    BlockLeave {
        /// How.
        outcome: Outcome,
    },
    /// A parser state begins.
    State {
        /// Its name.
        name: &'a str,
    },
    /// A header was extracted.
    Extract {
        /// The header.
        header: HeaderId,
        /// Its length in bits.
        bits: usize,
        /// The variables, its fields among them.
        frame: &'a Frame,
    },
    /// A packet operation failed.
    ParserError {
        /// Member of `error`.
        error: u32,
    },
    /// Bits were read ahead.
    Lookahead {
        /// What they are.
        value: &'a Bits,
    },
    /// The cursor moved.
    Advance {
        /// By how many bits.
        bits: u64,
    },
    /// A `select` chose.
    Select {
        /// The selected values.
        keys: &'a [Bits],
        /// Which case from 0; `None`: no case matched.
        case: Option<usize>,
        /// How many there are.
        cases: usize,
    },
    /// A condition was tested.
    Branch {
        /// Whether it held.
        taken: bool,
    },
    /// A `switch` chose.
    Switch {
        /// The value.
        value: &'a Bits,
        /// Which case from 0; `None`: the default.
        case: Option<usize>,
    },
    /// A table was looked up.
    Lookup {
        /// The table.
        table: TableId,
        /// Its keys.
        keys: &'a [Bits],
        /// What came of it.
        outcome: &'a LookupOutcome,
        /// More about it.
        detail: &'a LookupDetail,
    },
    /// The body of an action begins.
    EnterAction {
        /// The action.
        action: ActionId,
    },
    /// The body of a sub-parser, sub-control or function begins.
    Enter {
        /// Its name.
        name: &'a str,
    },
    /// The innermost body ends.
    Leave,
    /// An extern was called.
    Call {
        /// The call.
        call: &'a Call,
        /// Its arguments before it.
        before: &'a [ArgValue],
        /// Its arguments after it.
        after: &'a [ArgValue],
        /// Its results.
        results: &'a [Bits],
        /// It ended the packet's way.
        aborted: bool,
    },
    /// A variable got another value.
    Write {
        /// The variable.
        var: VarId,
        /// What it was.
        old: &'a Bits,
        /// What it is.
        new: &'a Bits,
    },
    /// A valid header was appended to the packet being built.
    Emit {
        /// The header.
        header: HeaderId,
        /// Its length in bits.
        bits: usize,
    },
    /// The architecture tells something.
    Note {
        /// What.
        text: &'a str,
    },
    /// The packet's way ends.
    Fate {
        /// `port 3`, or the reason of a drop.
        text: &'a str,
        /// Whether it was dropped.
        dropped: bool,
    },
}
