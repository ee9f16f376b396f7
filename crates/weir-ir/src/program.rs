//! The data types of the IR. See the crate's root for what they mean.

use crate::arena::{Arena, Id};
use crate::bits::Bits;

/// Index of a [`Var`].
pub type VarId = Id<Var>;
/// Index of a [`Header`].
pub type HeaderId = Id<Header>;
/// Index of a [`HeaderType`].
pub type HeaderTypeId = Id<HeaderType>;
/// Index of an [`EnumType`].
pub type EnumId = Id<EnumType>;
/// Index of an [`Action`].
pub type ActionId = Id<Action>;
/// Index of a [`Table`].
pub type TableId = Id<Table>;
/// Index of an [`ExternInstance`].
pub type ExternId = Id<ExternInstance>;
/// Index of a [`ValueSet`].
pub type ValueSetId = Id<ValueSet>;
/// Index of a [`BasicBlock`] within its [`Body`].
pub type BlockId = Id<BasicBlock>;

/// A whole program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Program {
    /// Name of the target description the program was compiled for. For people and for whoever
    /// picks the architecture; nothing in this crate looks at it.
    pub target: String,
    /// Source files that [`Loc::file`] indexes.
    pub files: Vec<String>,
    /// Members of `error` in declaration order; their index is their value.
    pub errors: Vec<String>,
    /// Enums, for display and for externs that take them.
    pub enums: Arena<EnumType>,
    /// Header types.
    pub header_types: Arena<HeaderType>,
    /// Every scalar variable.
    pub vars: Arena<Var>,
    /// Every header instance: shared, local and temporary.
    pub headers: Arena<Header>,
    /// Groups of variables that blocks share with each other and the architecture.
    pub shared: Vec<Shared>,
    /// Extern instances.
    pub externs: Arena<ExternInstance>,
    /// Actions that tables or P4Info name.
    pub actions: Arena<Action>,
    /// Tables.
    pub tables: Arena<Table>,
    /// Parser value sets.
    pub value_sets: Arena<ValueSet>,
    /// The programmable blocks in the order of the package's parameters.
    pub blocks: Vec<Block>,
    /// Types named on the control plane (`type`, translated types, serializable enums), by name.
    pub type_info: Vec<(String, TypeSpec)>,
    /// Annotations of `main` and of the whole program (`@pkginfo`, …).
    pub annotations: Vec<Annotation>,
}

/// A place in the source: 1-based line and column of `Program::files[file]`. Line 0: no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Loc {
    /// Index into [`Program::files`].
    pub file: u32,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// The type of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `W` bits; also booleans (1 bit), enums and errors (32 bits, the member's index). Signedness
    /// is in the operators.
    Bits(u32),
    /// At most `W` bits; the value knows its length.
    Varbit(u32),
}

impl Type {
    /// Largest width in bits.
    #[must_use]
    pub fn width(self) -> u32 {
        match self {
            Type::Bits(w) | Type::Varbit(w) => w,
        }
    }
}

/// How people want to see a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Display {
    /// An unsigned number.
    #[default]
    Unsigned,
    /// A two's complement number.
    Signed,
    /// `true` or `false`.
    Bool,
    /// A member of [`Program::errors`].
    Error,
    /// A member of an enum.
    Enum(EnumId),
}

/// What a variable is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// Belongs to a [`Shared`] group and is not part of a header.
    Shared,
    /// Declared in a block, or a parameter of an inlined body.
    Local,
    /// Made by the compiler; people are not shown it.
    Temporary,
    /// A field of a header.
    Field {
        /// The header.
        header: HeaderId,
        /// Index into [`HeaderType::fields`].
        index: u32,
    },
    /// The validity of a header.
    Valid {
        /// The header.
        header: HeaderId,
    },
    /// Control-plane data of an action at one table.
    ActionParameter,
}

/// A scalar variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Var {
    /// Unique for people, e.g. `hdr.ipv4.ttl`; not necessarily unique.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is shown.
    pub display: Display,
    /// What it is for.
    pub kind: VarKind,
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    /// Its name.
    pub name: String,
    /// Member names. Without `values` a member's value is its index.
    pub members: Vec<String>,
    /// Values of a serializable enum, one per member.
    pub values: Option<Vec<Bits>>,
}

/// A header type: fields in wire order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderType {
    /// Its name.
    pub name: String,
    /// Fields in wire order; nested structs are taken apart (`a.b`).
    pub fields: Vec<HeaderField>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

/// A field of a header type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

impl HeaderType {
    /// Bits of all fixed-size fields.
    #[must_use]
    pub fn fixed_width(&self) -> u32 {
        self.fields
            .iter()
            .map(|f| if let Type::Bits(w) = f.ty { w } else { 0 })
            .sum()
    }

    /// Index of the varbit field, if there is one.
    #[must_use]
    pub fn varbit_field(&self) -> Option<usize> {
        self.fields.iter().position(|f| matches!(f.ty, Type::Varbit(_)))
    }
}

/// A header instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Name as people write it: `hdr.vlan[1]`.
    pub name: String,
    /// Its type.
    pub ty: HeaderTypeId,
    /// Its validity, `bits<1>`.
    pub valid: VarId,
    /// Its fields, in the order of [`HeaderType::fields`].
    pub fields: Vec<VarId>,
}

/// Variables that several blocks, or a block and the architecture, have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shared {
    /// The target description's name for it, e.g. `headers`.
    pub role: String,
    /// The name the program's first block gives it, e.g. `hdr`.
    pub name: String,
    /// Every scalar in declaration order, fields and validities of headers included.
    pub leaves: Vec<SharedLeaf>,
    /// Every header in declaration order.
    pub headers: Vec<HeaderId>,
    /// Its type.
    pub ty: TypeSpec,
}

/// One scalar of a [`Shared`] group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLeaf {
    /// Path below the group: `ethernet.dst_addr`, `ethernet.$valid$`, `stack.$next$`.
    pub path: String,
    /// The variable.
    pub var: VarId,
    /// Annotations of the struct field and of those around it (`@field_list`, …).
    pub annotations: Vec<Annotation>,
}

impl Program {
    /// The shared group of a role.
    #[must_use]
    pub fn shared_group(&self, role: &str) -> Option<&Shared> {
        self.shared.iter().find(|s| s.role == role)
    }

    /// The variable at a path of a shared group.
    #[must_use]
    pub fn shared_var(&self, role: &str, path: &str) -> Option<VarId> {
        self.shared_group(role)?
            .leaves
            .iter()
            .find(|l| l.path == path)
            .map(|l| l.var)
    }

    /// Value of a member of `error`, if the program has it.
    #[must_use]
    pub fn error_code(&self, name: &str) -> Option<u32> {
        self.errors.iter().position(|e| e == name).map(|i| i as u32)
    }
}

/// An annotation, as P4Info wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Annotation {
    /// The name after `@`.
    pub name: String,
    /// The body.
    pub body: AnnotationBody,
    /// Where it stands.
    pub loc: Loc,
}

/// The body of an annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationBody {
    /// None.
    Empty,
    /// `(…)`: the tokens' text.
    Text {
        /// Source text between the parentheses, as the reference compiler prints it in P4Info.
        text: String,
        /// The tokens one by one; string literals without their quotes.
        tokens: Vec<String>,
    },
    /// `[e, …]`
    Expressions(Vec<AnnotationValue>),
    /// `[k=e, …]`
    KeyValues(Vec<(String, AnnotationValue)>),
}

/// A constant in a structured annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationValue {
    /// A string.
    String(String),
    /// An integer; fits in 64 bits.
    Int(i64),
    /// A boolean.
    Bool(bool),
}

// --------------------------------------------------------------------------------------- blocks

/// A programmable block of the package.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The target description's name for it, e.g. `ingress`.
    pub role: String,
    /// Name of the parser or control in the source.
    pub name: String,
    /// What it is.
    pub kind: BlockKind,
    /// Its code.
    pub body: Body,
    /// Its declaration.
    pub loc: Loc,
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// Takes headers from a packet.
    Parser,
    /// Everything else, deparsers included.
    Control,
}

/// A control-flow graph. Control enters at block 0.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// Basic blocks.
    pub blocks: Arena<BasicBlock>,
    /// Where a failing packet operation goes (parsers only).
    pub on_error: Option<BlockId>,
    /// `bits<32>`, set to the error by a failing packet operation and by `verify` (parsers only).
    pub error: Option<VarId>,
}

/// Straight-line code with one end.
#[derive(Debug, Clone, PartialEq)]
pub struct BasicBlock {
    /// Name of the parser state that starts here.
    pub state: Option<String>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// How it ends.
    pub terminator: Terminator,
    /// Source of the terminator.
    pub loc: Loc,
}

/// An instruction and the source it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Inst {
    /// What it does.
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
    /// Takes the header from the packet at the cursor, sets it valid, moves the cursor. Fails with
    /// `PacketTooShort`; with a varbit also `HeaderTooShort` (longer than the field) and
    /// `ParserInvalidArgument` (total length no whole bytes). Parsers only.
    Extract {
        /// The header.
        header: HeaderId,
        /// Length of the varbit field in bits, `bits<32>`.
        varbit_bits: Option<Operand>,
    },
    /// Reads `dst`'s width of bits from `offset` bits after the cursor; does not move it. Fails with
    /// `PacketTooShort`. Parsers only.
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
    /// Nothing for an engine; tells a trace where it is.
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
}

/// What a variable is set to. Operands of one operation have equal widths unless said otherwise.
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
/// [`Shared`] groups that are no part of a header: the architecture keeps its intrinsic metadata there.
#[derive(Debug, Clone, PartialEq)]
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
    /// It has no effect but its results (`@pure`, `@noSideEffects`): may go where nobody reads them.
    pub is_pure: bool,
}

impl Call {
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

/// What is passed.
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

/// How a basic block ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Terminator {
    /// Goes on there.
    Goto(BlockId),
    /// Two ways.
    Branch {
        /// `bits<1>`.
        condition: Operand,
        /// Taken where 1.
        then: BlockId,
        /// Taken where 0.
        otherwise: BlockId,
    },
    /// Many ways on one value.
    Switch {
        /// The value.
        value: Operand,
        /// Distinct constants and where they go.
        cases: Vec<(Bits, BlockId)>,
        /// Everything else.
        default: BlockId,
    },
    /// A parser's `select`: the first case that matches.
    Select {
        /// The selected values.
        keys: Vec<Operand>,
        /// Cases in order.
        cases: Vec<SelectCase>,
        /// No case matched.
        default: BlockId,
    },
    /// Looks the keys up, writes the outcome, goes on. A suspension point.
    Lookup(Lookup),
    /// The parser accepts.
    Accept,
    /// The parser rejects; the body's `error` variable says why.
    Reject,
    /// The control is done.
    Return,
    /// A [`Pipeline`](crate::pipeline::Pipeline) leaves by this exit. In no block of a program.
    Exit(u32),
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
    /// Where control goes on.
    pub next: BlockId,
}

/// A case of a select.
#[derive(Debug, Clone, PartialEq)]
pub struct SelectCase {
    /// One pattern per key; a value set covers as many keys as it has fields.
    pub patterns: Vec<Pattern>,
    /// Where it goes.
    pub target: BlockId,
    /// Its source.
    pub loc: Loc,
}

/// What one key of a select is compared to.
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

// --------------------------------------------------------------------------------------- tables

/// How a key is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// Longest prefix.
    Lpm,
    /// Value and mask.
    Ternary,
    /// Between two values.
    Range,
    /// Equal or anything.
    Optional,
    /// Not matched: feeds the hash of an action selector.
    Selector,
}

/// An action as the control plane knows it. Its code is inlined after each lookup.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Control-plane name, e.g. `MyIngress.drop`.
    pub name: String,
    /// Control-plane parameters.
    pub parameters: Vec<ActionParameter>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

/// A control-plane parameter of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionParameter {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub width: u32,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
}

/// What P4Runtime knows of the type of a key, parameter or field beyond its width.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ControlType {
    /// Name of the `type` (not `typedef`) or serializable enum.
    pub type_name: Option<String>,
    /// `@p4runtime_translation`.
    pub translation: Option<Translation>,
}

/// `@p4runtime_translation(uri, bit<W>)`, or `string` for the width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Translation {
    /// The URI.
    pub uri: String,
    /// Width on the control plane; `None`: a string.
    pub sdn_width: Option<u32>,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Control-plane name, e.g. `MyIngress.ipv4_lpm`.
    pub name: String,
    /// Keys in order.
    pub keys: Vec<Key>,
    /// Actions in source order; a default action that the source does not list (NoAction) is last.
    pub actions: Vec<TableAction>,
    /// What a miss does.
    pub default_action: ActionCall,
    /// The control plane may not change the default action.
    pub const_default: bool,
    /// `size`, where the source gives one.
    pub size: Option<u64>,
    /// `const entries` or `entries`.
    pub entries: Vec<Entry>,
    /// The entries are `const`: the control plane may not change the table.
    pub const_entries: bool,
    /// Action profile or selector that holds the actions of the entries.
    pub implementation: Option<ExternId>,
    /// Direct counters, meters and registers.
    pub direct: Vec<ExternId>,
    /// Entries can time out.
    pub idle_timeout: bool,
    /// Other properties, for the architecture.
    pub properties: Vec<(String, ConstValue)>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Control-plane name, e.g. `hdr.ipv4.dst_addr`.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// How it is matched.
    pub match_kind: MatchKind,
    /// How it is shown.
    pub display: Display,
    /// How the control plane names its type.
    pub control: ControlType,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its source.
    pub loc: Loc,
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableAction {
    /// The action.
    pub action: ActionId,
    /// Variables a lookup writes the entry's data to, one per [`Action::parameters`].
    pub parameters: Vec<VarId>,
    /// Only as default action (`@defaultonly`).
    pub default_only: bool,
    /// Only in entries (`@tableonly`).
    pub table_only: bool,
    /// Annotations of the reference.
    pub annotations: Vec<Annotation>,
}

/// An action of a table with its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionCall {
    /// Index into [`Table::actions`].
    pub action: usize,
    /// One value per parameter.
    pub arguments: Vec<Bits>,
}

/// An entry the source gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// One per key that is matched (selector keys have none).
    pub matches: Vec<KeyMatch>,
    /// What it does.
    pub action: ActionCall,
    /// The larger wins. 0 where the table has no ternary, range or optional key.
    pub priority: u32,
    /// `const`
    pub is_const: bool,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its source.
    pub loc: Loc,
}

/// What one key is compared to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// Equal.
    Exact(Bits),
    /// The first bits equal; bits after the prefix are 0 here.
    Lpm {
        /// Value.
        value: Bits,
        /// Number of bits compared.
        prefix_length: u32,
    },
    /// Equal where the mask has ones; the value is 0 elsewhere.
    Ternary {
        /// Value.
        value: Bits,
        /// Mask.
        mask: Bits,
    },
    /// Between, both included.
    Range {
        /// Lowest.
        low: Bits,
        /// Highest.
        high: Bits,
    },
    /// Equal, or anything where `None`.
    Optional(Option<Bits>),
}

/// A parser value set.
#[derive(Debug, Clone, PartialEq)]
pub struct ValueSet {
    /// Control-plane name.
    pub name: String,
    /// Fields with their match kinds.
    pub fields: Vec<Key>,
    /// Capacity.
    pub size: u64,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

// -------------------------------------------------------------------------------------- externs

/// An extern instance.
#[derive(Debug, Clone, PartialEq)]
pub struct ExternInstance {
    /// Control-plane name, e.g. `MyIngress.counts`.
    pub name: String,
    /// Name of the extern type, e.g. `register`.
    pub type_name: String,
    /// Concrete types of its type parameters.
    pub type_arguments: Vec<TypeSpec>,
    /// Constructor arguments in order of the declaration, defaults filled in.
    pub arguments: Vec<(String, ConstValue)>,
    /// Bodies of abstract methods.
    pub methods: Vec<Method>,
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its declaration.
    pub loc: Loc,
}

/// The body that an instance gives an abstract method.
#[derive(Debug, Clone, PartialEq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// One group of scalars per parameter.
    pub parameters: Vec<(String, Vec<VarId>)>,
    /// Scalars of the result.
    pub results: Vec<VarId>,
    /// Its code.
    pub body: Body,
}

/// A compile-time value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConstValue {
    /// A number with a width.
    Bits(Bits),
    /// An `int`.
    Int(num_bigint::BigInt),
    /// A boolean.
    Bool(bool),
    /// A string.
    String(String),
    /// A member of an enum or of `error`.
    Enum {
        /// Name of the enum.
        enum_name: String,
        /// Name of the member.
        member: String,
    },
    /// An extern instance.
    Extern(ExternId),
    /// A list, tuple or struct.
    List(Vec<ConstValue>),
}

/// A type, for whoever must describe it to a control plane.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum TypeSpec {
    /// Not representable on the control plane; its name.
    Opaque(String),
    /// `void`
    #[default]
    Void,
    /// `bool`
    Bool,
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    /// `varbit<W>`
    Varbit(u32),
    /// `error`
    Error,
    /// `string`
    String,
    /// A tuple.
    Tuple(Vec<TypeSpec>),
    /// A struct and its fields.
    Struct(String, Vec<(String, TypeSpec)>),
    /// A header and its fields.
    Header(String, Vec<(String, TypeSpec)>),
    /// A header union and its members.
    HeaderUnion(String, Vec<(String, TypeSpec)>),
    /// A stack.
    Stack(Box<TypeSpec>, u32),
    /// An enum without representation: name and members.
    Enum(String, Vec<String>),
    /// A serializable enum: name, width, members with values.
    SerializableEnum(String, u32, Vec<(String, Bits)>),
    /// A `type`: name, what it stands for, its translation.
    New(String, Box<TypeSpec>, Option<(String, Option<u32>)>),
}
