//! Code: programmable blocks, basic blocks, instructions, calls and terminators.

use super::*;
use crate::arena::Arena;
use crate::bits::Bits;

/// A programmable block of the package.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The target description's name for it, e.g. `ingress`.
    pub role: String,
    /// Name of the parser or control in the source.
    pub name: String,
    /// Its kind.
    pub kind: BlockKind,
    /// Its code.
    pub body: Body,
    /// Its declaration.
    pub loc: Loc,
}

/// The kind of a programmable block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Extracts headers from a packet.
    Parser,
    /// Any other, deparsers included.
    Control,
}

/// A control-flow graph. Its entry is basic block 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// Basic blocks.
    pub blocks: Arena<BasicBlock>,
    /// The basic block at which a failing packet operation continues (parsers only).
    pub on_error: Option<BlockId>,
    /// `bits<32>`, set to the error by a failing packet operation and by `verify` (parsers only).
    pub error: Option<VarId>,
}

/// Straight-line code with one terminator.
#[derive(Debug, Clone, PartialEq)]
pub struct BasicBlock {
    /// Name of the parser state that starts here.
    pub state: Option<String>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// Its end.
    pub terminator: Terminator,
    /// Source of the terminator.
    pub loc: Loc,
}

impl BasicBlock {
    /// Whether an instruction of it can fail, and continue at the body's `on_error` block.
    #[must_use]
    pub fn can_fail(&self) -> bool {
        self.insts.iter().any(|inst| inst.kind.can_fail())
    }
}

impl Body {
    /// The reachable basic blocks in reverse postorder.
    #[must_use]
    pub fn in_order(&self) -> Vec<BlockId> {
        let mut seen = vec![false; self.blocks.len()];
        let mut order = Vec::new();
        let mut stack = vec![(BlockId::new(0), self.successors(BlockId::new(0)).into_iter())];
        seen[0] = true;
        while let Some((id, next)) = stack.last_mut() {
            match next.next() {
                Some(target) if !std::mem::replace(&mut seen[target.index()], true) => {
                    stack.push((target, self.successors(target).into_iter()));
                }
                Some(_) => {}
                None => {
                    order.push(*id);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// The successors of a basic block: the targets of its terminator, and `on_error` if an
    /// instruction of it can fail.
    #[must_use]
    pub fn successors(&self, id: BlockId) -> Vec<BlockId> {
        let block = &self.blocks[id];
        let mut all = block.terminator.targets();
        all.extend(self.on_error.filter(|_| block.can_fail()));
        all
    }
}

/// An instruction and the source it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// Its operation.
    pub kind: InstKind,
    /// Its source.
    pub loc: Loc,
}

/// A value an instruction reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A variable.
    Var(VarId),
    /// A constant; its width is its type.
    Const(Bits),
}

/// Instructions.
#[derive(Debug, Clone, PartialEq)]
pub enum InstKind {
    /// `dst = value`; the types agree.
    Assign {
        /// Written variable.
        dst: VarId,
        /// Its new value.
        value: Rvalue,
    },
    /// Extracts the header from the packet at the cursor, sets it valid, moves the cursor. Fails
    /// with `PacketTooShort`; with a varbit also `HeaderTooShort` (longer than the field) and
    /// `ParserInvalidArgument` (total length no whole bytes). Parsers only.
    Extract {
        /// The header.
        header: HeaderId,
        /// Length of the varbit field in bits, `bits<32>`.
        varbit_bits: Option<Operand>,
    },
    /// Reads `dst`'s width of bits from `offset` bits after the cursor; does not move it. Fails
    /// with `PacketTooShort`. Parsers only.
    Lookahead {
        /// Written variable.
        dst: VarId,
        /// Distance from the cursor in bits.
        offset: u32,
    },
    /// Moves the cursor by a `bits<32>` number of bits. Fails with `PacketTooShort`. Parsers only.
    Advance {
        /// How far.
        bits: Operand,
    },
    /// Writes the packet's length in bytes. Parsers only.
    PacketLength {
        /// `bits<32>`.
        dst: VarId,
    },
    /// Appends the header to the packet being built where it is valid. Deparsers only.
    Emit {
        /// The header.
        header: HeaderId,
    },
    /// Calls an extern function or a method of an extern instance.
    Call(Call),
    /// No operation for engines; marks a place for traces.
    Mark(Mark),
}

/// Where inlined code begins and ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// The body of an action begins: from a table or called directly.
    EnterAction(ActionId),
    /// The body of a sub-parser, sub-control or function begins.
    Enter(String),
    /// The innermost body ends.
    Leave,
    /// A basic block of a parser's loop begins, which counts as this many in the interpreter's
    /// limit. Only in bodies of a [`Pipeline`](crate::pipeline::Pipeline): passes over them copy
    /// the mark with the code, so that compiled code can count as the interpreter does.
    ParserBlocks(u32),
}

/// The value of an assignment. Operands of one operation have equal widths unless said otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Rvalue {
    /// A copy.
    Use(Operand),
    /// One operand.
    Unary(UnaryOp, Operand),
    /// Two operands.
    Binary(BinaryOp, Operand, Operand),
    /// Bits `hi` down to `lo`; the result has `hi - lo + 1` bits.
    Slice {
        /// Sliced value.
        value: Operand,
        /// Highest bit, counted from 0 at the least significant.
        hi: u32,
        /// Lowest bit.
        lo: u32,
    },
    /// `base` with bits `hi` down to `lo` replaced by `value`.
    Insert {
        /// The value around it.
        base: Operand,
        /// Highest replaced bit.
        hi: u32,
        /// Lowest replaced bit.
        lo: u32,
        /// The new bits, `hi - lo + 1` wide.
        value: Operand,
    },
    /// To the destination's width: truncated, or extended with zeros.
    ZeroExtend(Operand),
    /// To the destination's width: truncated, or extended with the sign.
    SignExtend(Operand),
    /// `then` where the `bits<1>` condition is 1, else `otherwise`.
    Mux {
        /// Condition.
        condition: Operand,
        /// Value if 1.
        then: Operand,
        /// Value if 0.
        otherwise: Operand,
    },
    /// The whole of a varbit's bits equal those of another of the same declared type, lengths
    /// included; `bits<1>`.
    VarbitEq(Operand, Operand),
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Every bit inverted; also the negation of a boolean.
    Not,
    /// Two's complement.
    Neg,
}

/// Binary operators. Comparisons give `bits<1>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Wrapping sum.
    Add,
    /// Wrapping difference.
    Sub,
    /// Wrapping product.
    Mul,
    /// Unsigned quotient; 0 for a zero divisor.
    Div,
    /// Unsigned remainder; 0 for a zero divisor.
    Mod,
    /// Unsigned saturating sum.
    AddSat,
    /// Unsigned saturating difference.
    SubSat,
    /// Signed saturating sum.
    AddSatSigned,
    /// Signed saturating difference.
    SubSatSigned,
    /// Bitwise and; also of booleans.
    And,
    /// Bitwise or; also of booleans.
    Or,
    /// Bitwise exclusive or.
    Xor,
    /// Left shift; the right operand is unsigned and of any width; 0 once it reaches the width.
    Shl,
    /// Logical right shift; as [`BinaryOp::Shl`].
    Shr,
    /// Arithmetic right shift; all sign bits once the distance reaches the width.
    ShrSigned,
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Unsigned less.
    Lt,
    /// Unsigned less or equal.
    Le,
    /// Signed less.
    LtSigned,
    /// Signed less or equal.
    LeSigned,
    /// The left operand's bits, then the right one's; widths add up.
    Concat,
}

/// A call of an extern. One that is not pure may, besides its arguments, read and write scalars of
/// [`Shared`] groups that are no part of a header: the architecture keeps its intrinsic metadata
/// there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call {
    /// The instance, or `None` for a function.
    pub instance: Option<ExternId>,
    /// Name of the function or method.
    pub function: String,
    /// Concrete types of its type parameters (of the method, not of the instance).
    pub type_arguments: Vec<TypeSpec>,
    /// Arguments in the order of the declaration; an omitted `@optional` one is absent.
    pub arguments: Vec<Argument>,
    /// Where the result goes: one variable per scalar of the result type.
    pub results: Vec<VarId>,
    /// Handle of the entry that a direct resource belongs to: the [`Lookup::entry`] of the
    /// table whose action this is.
    pub entry: Option<VarId>,
    /// Which bodies of the instance's abstract methods the call runs ([`Method::closure`]); 0 where
    /// it has none.
    pub closure: u32,
    /// It has no effect but its results (`@pure`, `@noSideEffects`): may be removed if they are not
    /// read.
    pub is_pure: bool,
    /// Which of the program's calculations it is, where its target numbers them
    /// ([`CustomCrcSpec::calculations`](crate::target::CustomCrcSpec::calculations)). Calls that
    /// are one in the source have one number.
    pub calculation: Option<u32>,
    /// Whether the packet may wait for it (`@async`, `@sync`).
    pub execution: Execution,
}

/// How a call of an extern is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Execution {
    /// At once, on the thread that runs the packet.
    #[default]
    Inline,
    /// `@async`: the packet may wait for it, and while it does, others may overtake it.
    Async(AsyncCall),
    /// In a [`Pipeline`](crate::pipeline::Pipeline) only: hands the inputs of an asynchronous call
    /// over. Its one result says whether the packet must wait. The number is the architecture's
    /// for the call, as calls at one place may differ in their execution.
    Begin(usize),
    /// In a pipeline only: gets the outputs of the call that [`Execution::Begin`] began.
    Finish(usize),
}

/// The arguments of `@async`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct AsyncCall {
    /// Which packets keep their order.
    pub order: CompletionOrder,
    /// The handling of packets when no more can wait; `None`: by the option of the run.
    pub full: Option<WhenFull>,
}

/// The order in which packets continue after an asynchronous call. It holds among the packets that
/// wait at the same call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CompletionOrder {
    /// As their calls complete.
    None,
    /// Packets of a flow keep their order.
    #[default]
    Flow,
    /// Packets that came in at the same port keep their order.
    Port,
}

/// The handling of a packet that would have to wait when no more packets can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WhenFull {
    /// The call is executed at once.
    Inline,
    /// No packets are received until there is room.
    Wait,
    /// It is dropped and counted.
    Drop,
}

macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),* }) => {
        impl $type {
            /// All of them.
            pub const ALL: &[$type] = &[$($type::$variant),*];

            /// Its word in annotations, options and the IR's text.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $($type::$variant => $word),* }
            }

            /// The value of a word.
            #[must_use]
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.word() == word)
            }
        }
    };
}

words!(CompletionOrder { None = "none", Flow = "flow", Port = "port" });
words!(WhenFull { Inline = "inline", Wait = "wait", Drop = "drop" });

impl InstKind {
    /// Whether it can fail, and continue at the body's `on_error` block.
    #[must_use]
    pub fn can_fail(&self) -> bool {
        matches!(
            self,
            InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::Advance { .. }
        )
    }

    /// The call, if it is one.
    #[must_use]
    pub fn call(&self) -> Option<&Call> {
        match self {
            InstKind::Call(call) => Some(call),
            InstKind::Assign { .. }
            | InstKind::Extract { .. }
            | InstKind::Lookahead { .. }
            | InstKind::Advance { .. }
            | InstKind::PacketLength { .. }
            | InstKind::Emit { .. }
            | InstKind::Mark(_) => None,
        }
    }
}

impl Call {
    /// The instance and closure whose methods it may run.
    #[must_use]
    pub fn methods(&self) -> Option<(ExternId, u32)> {
        self.instance.map(|x| (x, self.closure))
    }

    /// The scalars and headers that argument `index` passes in, if it passes something in.
    #[must_use]
    pub fn inputs(&self, index: usize) -> &[InLeaf] {
        match self.arguments.get(index).map(|a| &a.value) {
            Some(ArgumentValue::In(leaves)) => leaves,
            _ => &[],
        }
    }

    /// The first scalar that argument `index` passes in.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&Operand> {
        match self.inputs(index).first() {
            Some(InLeaf::Value(operand)) => Some(operand),
            _ => None,
        }
    }

    /// The same, where it is a constant that fits.
    #[must_use]
    pub fn constant_input(&self, index: usize) -> Option<u64> {
        match self.input(index) {
            Some(Operand::Const(c)) => c.to_u64(),
            _ => None,
        }
    }

    /// The variables that argument `index` is written to, whether it is read or not.
    #[must_use]
    pub fn outputs(&self, index: usize) -> &[VarId] {
        match self.arguments.get(index).map(|a| &a.value) {
            Some(ArgumentValue::Out(vars) | ArgumentValue::InOut(vars)) => vars,
            _ => &[],
        }
    }
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The parameter's name.
    pub name: String,
    /// The value.
    pub value: ArgumentValue,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum ArgumentValue {
    /// Read: every scalar of the value, headers kept together.
    In(Vec<InLeaf>),
    /// Written: every scalar of the l-value in order (a header's validity, then its fields).
    Out(Vec<VarId>),
    /// Read and written.
    InOut(Vec<VarId>),
    /// A string.
    String(String),
    /// An extern instance.
    Extern(ExternId),
    /// The packet (`packet_in` or `packet_out`).
    Packet,
}

/// A part of a value that is passed in.
#[derive(Debug, Clone, PartialEq)]
pub enum InLeaf {
    /// A scalar.
    Value(Operand),
    /// A header with its validity: checksums and hashes skip it where it is invalid.
    Header(HeaderId),
}

/// The end of a basic block.
#[derive(Debug, Clone, PartialEq)]
pub enum Terminator {
    /// Continues there.
    Goto(BlockId),
    /// A conditional branch.
    Branch {
        /// `bits<1>`.
        condition: Operand,
        /// Taken where 1.
        then: BlockId,
        /// Taken where 0.
        otherwise: BlockId,
    },
    /// A multiway branch on one value.
    Switch {
        /// The value.
        value: Operand,
        /// Distinct constants and their targets.
        cases: Vec<(Bits, BlockId)>,
        /// The target of all other values.
        default: BlockId,
    },
    /// A parser's `select`: the first case that matches.
    Select {
        /// The selected values.
        keys: Vec<Operand>,
        /// Cases in order.
        cases: Vec<SelectCase>,
        /// The target if no case matches.
        default: BlockId,
    },
    /// Looks the keys up, writes the outcome, continues. A suspension point.
    Lookup(Lookup),
    /// The parser accepts.
    Accept,
    /// The parser rejects; the body's `error` variable says why.
    Reject,
    /// The control is done.
    Return,
    /// A [`Pipeline`](crate::pipeline::Pipeline) leaves by this exit. In no block of a program.
    Exit(u32),
    /// The packet waits for an extern call, then continues at this block. A suspension point. In no
    /// block of a program.
    Suspend(BlockId),
}

/// A table lookup.
#[derive(Debug, Clone, PartialEq)]
pub struct Lookup {
    /// The table.
    pub table: TableId,
    /// One value per [`Table::keys`], selector keys included.
    pub keys: Vec<Operand>,
    /// `bits<1>`: an entry matched.
    pub hit: VarId,
    /// `bits<32>`: index into [`Table::actions`] of the chosen or default action. The
    /// [`TableAction::parameters`] of that action are written too, those of others are not.
    pub action: VarId,
    /// `bits<32>`: handle of the matched entry, 0 on a miss.
    pub entry: VarId,
    /// The successor.
    pub next: BlockId,
}

/// A case of a select.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectCase {
    /// One pattern per key; a value set covers as many keys as it has fields.
    pub patterns: Vec<Pattern>,
    /// Its target.
    pub target: BlockId,
    /// Its source.
    pub loc: Loc,
}

/// The pattern of one key of a select.
#[derive(Debug, Clone, PartialEq)]
pub enum Pattern {
    /// Anything.
    Any,
    /// This value.
    Exact(Operand),
    /// `key & mask == value & mask`
    Mask(Operand, Operand),
    /// Between the two, both included; `true` for a signed comparison.
    Range(Operand, Operand, bool),
    /// A member of the value set.
    ValueSet(ValueSetId),
}
