//! What an engine and the architecture around it ask of each other.

use crate::frame::PacketState;
use crate::sites::SiteId;
use std::sync::Arc;
use weir_ir::{Bits, Call, ExternId, KeyMatch, Loc, Program, TableId, ValueSetId};

/// An engine: runs the bodies of a program on packets. The interpreter is one; compiled code
/// another. All must give the same answers bit for bit.
pub trait Executable: Send + Sync {
    /// The program it runs.
    fn program(&self) -> &Arc<Program>;

    /// Runs a block of [`Program::blocks`] to its end. Never panics, whatever the packet holds.
    fn run(&self, block: usize, packet: &mut PacketState, runtime: &mut dyn Runtime) -> Outcome;
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The parser accepted.
    Accept,
    /// The parser rejected with this member of `error`.
    Reject(u32),
    /// The control is done.
    Return,
    /// It was stopped; the packet must go no further.
    Abort(Abort),
}

/// Why a body was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Abort {
    /// It ran more instructions than a packet may.
    InstructionBudget,
    /// An extern said so; the runtime knows why.
    Extern(Loc),
    /// An extern dropped the packet.
    DroppedByExtern(Loc),
    /// There is no such block or body in the program.
    NoSuchBody,
}

/// The outcome of a table lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupOutcome {
    /// An entry matched.
    pub hit: bool,
    /// Index into [`weir_ir::Table::actions`].
    pub action: usize,
    /// The data of that action.
    pub arguments: Arc<[Bits]>,
    /// Handle of the entry; 0 on a miss.
    pub entry: u32,
}

/// What a trace tells about a lookup beyond its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LookupDetail {
    /// Entries in the table.
    pub entries: usize,
    /// Match and priority of the entry that was hit.
    pub matched: Option<(Vec<KeyMatch>, u32)>,
    /// The member or group the action came from.
    pub member: Option<String>,
    /// On a miss the entry that came closest, and the names of the keys that kept it from matching.
    pub nearest: Option<(u32, Vec<String>)>,
}

/// Whether the body goes on after an extern call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallEffect {
    /// It does.
    Continue,
    /// It ends with [`Abort::Extern`].
    Abort,
    /// It ends with [`Abort::DroppedByExtern`].
    Drop,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgValue {
    /// Read only.
    In(Vec<InValue>),
    /// Written, or read and written: the present values, to be changed in place. Widths must stay.
    Out(Vec<Bits>),
    /// A string, an instance or the packet: see [`Call::arguments`].
    Static,
}

/// A part of a value that is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InValue {
    /// A scalar.
    Scalar(Bits),
    /// A header.
    Header {
        /// Whether it is valid.
        valid: bool,
        /// Its fields in wire order.
        fields: Vec<Bits>,
    },
}

impl ArgValue {
    /// The scalars in order, fields of valid headers included, those of invalid headers left out.
    pub fn scalars(&self) -> impl Iterator<Item = &Bits> {
        let (ins, outs): (&[InValue], &[Bits]) = match self {
            ArgValue::In(values) => (values, &[]),
            ArgValue::Out(values) => (&[], values),
            ArgValue::Static => (&[], &[]),
        };
        let from_ins = ins.iter().flat_map(|v| match v {
            InValue::Scalar(bits) => std::slice::from_ref(bits),
            InValue::Header { valid: true, fields } => fields.as_slice(),
            InValue::Header { valid: false, .. } => &[],
        });
        from_ins.chain(outs)
    }

    /// The first scalar.
    #[must_use]
    pub fn first(&self) -> Option<&Bits> {
        self.scalars().next()
    }
}

/// An extern call as the runtime sees it.
pub struct CallContext<'a> {
    /// Which call of the program's text it is.
    pub site: SiteId,
    /// The call.
    pub call: &'a Call,
    /// Its source.
    pub loc: Loc,
    /// One per argument of the call. What the runtime leaves in [`ArgValue::Out`] is written back.
    pub args: &'a mut [ArgValue],
    /// One per scalar of the result, zero on entry.
    pub results: &'a mut [Bits],
    /// Handle of the table entry that the call belongs to; 0 if none.
    pub entry: u32,
    /// The packet.
    pub packet: &'a mut PacketState,
    /// Runs methods that instances give bodies to.
    pub engine: &'a mut dyn MethodEngine,
}

impl CallContext<'_> {
    /// The first scalar of argument `index`, if there is one.
    #[must_use]
    pub fn scalar(&self, index: usize) -> Option<&Bits> {
        self.args.get(index).and_then(ArgValue::first)
    }

    /// The first scalar of argument `index` as a number: 0 if absent, `u64::MAX` if larger.
    #[must_use]
    pub fn number(&self, index: usize) -> u64 {
        self.scalar(index).map_or(0, Bits::to_u64_saturating)
    }

    /// Sets the first scalar of an out argument, truncated or extended with zeros to its width.
    pub fn set(&mut self, index: usize, value: &Bits) {
        if let Some(ArgValue::Out(values)) = self.args.get_mut(index)
            && let Some(slot) = values.first_mut()
        {
            *slot = value.zero_extend(slot.width());
        }
    }
}

/// Runs the bodies of abstract methods on behalf of an extern.
pub trait MethodEngine {
    /// Runs method `method` of an instance. Its parameters are read from and its results left in
    /// the variables that [`weir_ir::Method`] names, in the packet's frame.
    fn run_method(
        &mut self,
        instance: ExternId,
        method: usize,
        packet: &mut PacketState,
        runtime: &mut dyn Runtime,
    ) -> Outcome;
}

/// What the architecture does for a running body.
pub trait Runtime {
    /// Looks a table up: one value per key, selector keys included.
    fn lookup(&mut self, table: TableId, keys: &[Bits]) -> LookupOutcome;

    /// Tells a trace more about a lookup that was just made.
    fn describe(&self, table: TableId, keys: &[Bits], outcome: &LookupOutcome) -> LookupDetail;

    /// Whether the values are a member of the set.
    fn value_set_contains(&mut self, set: ValueSetId, keys: &[Bits]) -> bool;

    /// Calls an extern.
    fn call(&mut self, context: CallContext<'_>) -> CallEffect;
}
