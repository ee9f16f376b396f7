//! The intermediate code of [`super::lower`]: straight-line operations over eight packets, from
//! which [`super::emit`] makes machine code.
//!
//! A vector has a word per packet. Blocks of the segment follow each other in an order without back
//! edges. Each has a mask of the packets that reach it. Side effects (stores, suspending) happen
//! for those packets only, and everything else for all eight. A block whose mask is empty is
//! skipped, together with the blocks it dominates. So the values defined in a block are garbage in
//! lanes of other packets, and are only read where the packet was in the block.
//!
//! The *address registers* are eight general registers with an address per packet. One operation
//! sets them, and the loads and stores after it use them. They are machine state, not a value.

use super::SlotPrefetch;
use std::fmt;

/// A virtual register of eight words. Defined once, or once by each predecessor of a merge block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct VectorReg(pub u32);

/// A virtual mask register: a bit per packet. Defined once. Lanes outside of the current block are
/// garbage, unless it is a block's mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct MaskReg(pub u32);

/// The second operand of most operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Vector(VectorReg),
    /// The same word in all lanes.
    Constant(u64),
}

/// Operations on two vectors, lane by lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Alu {
    Add,
    Subtract,
    Multiply,
    And,
    /// `!a & b`.
    AndNot,
    Or,
    Xor,
    /// The unsigned maximum.
    Max,
    /// The unsigned minimum.
    Min,
    /// `a << b`, with `b` below 64, as for all shifts here.
    ShiftLeft,
    /// The logical shift.
    ShiftRight,
    /// The arithmetic shift.
    ShiftRightSigned,
    RotateLeft,
    /// Rotates both 32-bit halves.
    RotateHalvesLeft,
}

/// Shifts by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ShiftOp {
    Left,
    /// The logical shift.
    Right,
    /// The arithmetic shift.
    RightSigned,
    RotateLeft,
    /// Rotates both 32-bit halves.
    RotateHalvesLeft,
}

/// Operations on one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    /// The population count.
    CountOnes,
    CountLeadingZeros,
}

/// Comparisons, signed or unsigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    /// The relation that holds for `(b, a)` if this one holds for `(a, b)`.
    pub fn with_operands_swapped(self) -> Self {
        match self {
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
            same => same,
        }
    }
}

/// The outcome of `a & b` that [`Op::Test`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Nonzero,
    Zero,
}

/// Operations on two masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskAlu {
    And,
    /// `!a & b`.
    AndNot,
    Or,
    Xor,
}

/// The memory area in which a row lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RowArea {
    /// The context matrix.
    Context,
    /// The index rows of the tally area: where each packet is counted. The masks lie before them.
    TallyIndexes,
}

/// By byte of a shuffled word: the number of its source byte, or `None` for 0.
pub(super) type Shuffle = [Option<u8>; 8];

/// Where addresses are available, besides in the vector. Address registers are set from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressSource {
    /// Nowhere else.
    Vector,
    /// In a row of the context, at a byte offset. It is read for full groups only.
    Row(i32),
    /// In the address registers already, for a superset of the packets.
    AddressRegisters,
}

/// An operation. Done for all eight lanes unless said otherwise.
///
/// `dst` is the result, `a` and `b` are operands, and offsets are in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Alu {
        op: Alu,
        dst: VectorReg,
        a: VectorReg,
        b: Source,
    },
    Shift {
        op: ShiftOp,
        dst: VectorReg,
        a: VectorReg,
        /// Bits.
        by: u8,
    },
    Unary {
        op: Unary,
        dst: VectorReg,
        a: VectorReg,
    },
    /// Permutes the bytes within each word.
    Shuffle {
        dst: VectorReg,
        a: VectorReg,
        bytes: Shuffle,
    },
    /// The low word of the 128-bit number `high:low`, shifted right by bits.
    FunnelShiftRight {
        dst: VectorReg,
        low: VectorReg,
        high: VectorReg,
        by: u8,
    },
    Constant {
        dst: VectorReg,
        value: u64,
    },
    /// `set` where the mask is set, otherwise `clear`.
    Blend {
        dst: VectorReg,
        mask: MaskReg,
        clear: VectorReg,
        set: Source,
    },
    /// 1 where the mask is set, otherwise 0.
    FromMask {
        dst: VectorReg,
        mask: MaskReg,
    },
    /// Sets a block parameter to its value on the first incoming edge.
    Move {
        dst: VectorReg,
        from: Source,
    },
    /// Sets a block parameter to its value on a further edge, for the packets that take it.
    MaskedMove {
        dst: VectorReg,
        mask: MaskReg,
        from: Source,
    },
    /// Whether `a relation b`.
    Compare {
        relation: Relation,
        signed: bool,
        dst: MaskReg,
        a: VectorReg,
        b: Source,
    },
    /// Whether `a & b` is zero or not.
    Test {
        test: Test,
        dst: MaskReg,
        a: VectorReg,
        b: Source,
    },
    MaskAlu {
        op: MaskAlu,
        dst: MaskReg,
        a: MaskReg,
        b: MaskReg,
    },
    MaskNot {
        dst: MaskReg,
        a: MaskReg,
    },
    /// Loads a row.
    LoadRow {
        dst: VectorReg,
        area: RowArea,
        offset: i32,
    },
    /// Stores a row, for the block's packets.
    StoreRow {
        area: RowArea,
        offset: i32,
        from: VectorReg,
    },
    /// Broadcasts a word of the environment.
    LoadEnvironment {
        dst: VectorReg,
        offset: i32,
    },
    /// Broadcasts the word at an offset from a pointer, which is at `pointer_offset` in the
    /// environment.
    LoadUniform {
        dst: VectorReg,
        pointer_offset: i32,
        offset: i32,
    },
    /// Sets the address registers, for packets of a mask. In other lanes they get the sentinel.
    SetAddressRegisters {
        from: VectorReg,
        mask: MaskReg,
        source: AddressSource,
    },
    /// Loads sixteen bytes at an offset from each address register, as two words.
    LoadPair {
        low: VectorReg,
        high: VectorReg,
        offset: i32,
    },
    /// Stores two words at an offset from each address register.
    StorePair {
        low: VectorReg,
        high: VectorReg,
        offset: i32,
    },
    /// Stores the lowest 1, 2, 4 or 8 bytes of each word, at an offset from each address register.
    StorePart {
        from: VectorReg,
        bytes: u8,
        offset: i32,
    },
    /// Loads eight bytes at an offset from each address in a vector, for the block's packets.
    Gather {
        dst: VectorReg,
        address: VectorReg,
        offset: i32,
    },
    /// Loads the addresses of the records of an inline lookup, for the block's packets: eight bytes
    /// at an offset from each of these addresses. Where they are 0, it is the word at
    /// `default_offset` in the array descriptors: the default record's address. Also sets the
    /// address registers to the result.
    LoadRecordAddresses {
        dst: VectorReg,
        address: VectorReg,
        offset: i32,
        default_offset: i32,
    },
    /// Prefetches the slots of these keys, if the block has all eight packets.
    PrefetchSlots {
        keys: VectorReg,
        prefetch: SlotPrefetch,
    },
    /// The start of a block, with its mask.
    BlockStart {
        number: usize,
        mask: MaskReg,
        /// Whether the mask is expected to be empty for many groups.
        is_often_empty: bool,
    },
    /// The end of a subtree of the dominator tree. `number` is the block at its root.
    SubtreeEnd {
        number: usize,
    },
    /// Clears the mask of a merge block, to which its predecessors add packets.
    ClearMask {
        mask: MaskReg,
    },
    /// Adds packets to the mask of a merge block: `mask |= from`.
    AddToMask {
        mask: MaskReg,
        from: MaskReg,
    },
    /// Adds the block's packets to the mask of a tally, at a byte offset in the tally area.
    Tally {
        offset: i32,
    },
    /// The block's packets suspend at a point: its mask gets their bits.
    Suspend {
        point: usize,
    },
    /// The block's packets bail out: they are run one by one, from the segment's start.
    BailOut,
}

impl Op {
    /// Calls `f` with each vector that the operation reads.
    pub fn for_each_read(&self, mut f: impl FnMut(VectorReg)) {
        let source = |s: &Source, f: &mut dyn FnMut(VectorReg)| {
            if let Source::Vector(v) = s {
                f(*v);
            }
        };
        match self {
            Op::Alu { a, b, .. } | Op::Compare { a, b, .. } | Op::Test { a, b, .. } => {
                f(*a);
                source(b, &mut f);
            }
            Op::Shift { a, .. } | Op::Unary { a, .. } | Op::Shuffle { a, .. } => f(*a),
            Op::FunnelShiftRight { low, high, .. } | Op::StorePair { low, high, .. } => {
                f(*low);
                f(*high);
            }
            Op::Blend { clear, set, .. } => {
                f(*clear);
                source(set, &mut f);
            }
            Op::Move { from, .. } => source(from, &mut f),
            Op::MaskedMove { dst, from, .. } => {
                f(*dst);
                source(from, &mut f);
            }
            Op::StoreRow { from, .. } | Op::StorePart { from, .. } | Op::SetAddressRegisters { from, .. } => f(*from),
            Op::Gather { address, .. } | Op::LoadRecordAddresses { address, .. } => f(*address),
            Op::PrefetchSlots { keys, .. } => f(*keys),
            Op::Constant { .. }
            | Op::FromMask { .. }
            | Op::MaskAlu { .. }
            | Op::MaskNot { .. }
            | Op::LoadRow { .. }
            | Op::LoadEnvironment { .. }
            | Op::LoadUniform { .. }
            | Op::LoadPair { .. }
            | Op::BlockStart { .. }
            | Op::SubtreeEnd { .. }
            | Op::ClearMask { .. }
            | Op::AddToMask { .. }
            | Op::Tally { .. }
            | Op::Suspend { .. }
            | Op::BailOut => {}
        }
    }

    /// Calls `f` with each vector that the operation writes.
    pub fn for_each_written(&self, mut f: impl FnMut(VectorReg)) {
        match self {
            Op::Alu { dst, .. }
            | Op::Shift { dst, .. }
            | Op::Unary { dst, .. }
            | Op::Shuffle { dst, .. }
            | Op::FunnelShiftRight { dst, .. }
            | Op::Constant { dst, .. }
            | Op::Blend { dst, .. }
            | Op::FromMask { dst, .. }
            | Op::Move { dst, .. }
            | Op::MaskedMove { dst, .. }
            | Op::LoadRow { dst, .. }
            | Op::LoadEnvironment { dst, .. }
            | Op::LoadUniform { dst, .. }
            | Op::Gather { dst, .. }
            | Op::LoadRecordAddresses { dst, .. } => f(*dst),
            Op::LoadPair { low, high, .. } => {
                f(*low);
                f(*high);
            }
            Op::Compare { .. }
            | Op::Test { .. }
            | Op::MaskAlu { .. }
            | Op::MaskNot { .. }
            | Op::StoreRow { .. }
            | Op::SetAddressRegisters { .. }
            | Op::StorePair { .. }
            | Op::StorePart { .. }
            | Op::PrefetchSlots { .. }
            | Op::BlockStart { .. }
            | Op::SubtreeEnd { .. }
            | Op::ClearMask { .. }
            | Op::AddToMask { .. }
            | Op::Tally { .. }
            | Op::Suspend { .. }
            | Op::BailOut => {}
        }
    }

    /// Whether the operation is done for the block's packets only, and so reads the block's mask.
    pub fn uses_block_mask(&self) -> bool {
        matches!(
            self,
            Op::StoreRow { .. }
                | Op::Gather { .. }
                | Op::LoadRecordAddresses { .. }
                | Op::PrefetchSlots { .. }
                | Op::Tally { .. }
                | Op::Suspend { .. }
                | Op::BailOut
        )
    }

    /// Calls `f` with each mask that the operation reads, except the block's.
    pub fn for_each_mask_read(&self, mut f: impl FnMut(MaskReg)) {
        match self {
            Op::Blend { mask, .. }
            | Op::FromMask { mask, .. }
            | Op::MaskedMove { mask, .. }
            | Op::SetAddressRegisters { mask, .. }
            | Op::BlockStart { mask, .. } => f(*mask),
            Op::MaskAlu { a, b, .. } => {
                f(*a);
                f(*b);
            }
            Op::MaskNot { a, .. } => f(*a),
            Op::AddToMask { mask, from } => {
                f(*mask);
                f(*from);
            }
            _ => {}
        }
    }

    /// The mask that the operation defines or extends.
    pub fn written_mask(&self) -> Option<MaskReg> {
        match self {
            Op::Compare { dst, .. }
            | Op::Test { dst, .. }
            | Op::MaskAlu { dst, .. }
            | Op::MaskNot { dst, .. }
            | Op::ClearMask { mask: dst }
            | Op::AddToMask { mask: dst, .. } => Some(*dst),
            _ => None,
        }
    }

    /// Whether the operation has no effect besides defining values.
    pub fn is_pure(&self) -> bool {
        let mut defines = self.written_mask().is_some();
        self.for_each_written(|_| defines = true);
        // This one also sets the address registers.
        defines && !matches!(self, Op::LoadRecordAddresses { .. })
    }
}

/// The code of a segment.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub ops: Vec<Op>,
    /// Vector registers are numbered below this.
    pub vector_count: u32,
    /// Mask registers are numbered below this.
    pub mask_count: u32,
    /// The mask of the first block: the packets of the group.
    pub entry_mask: Option<MaskReg>,
    /// Bytes from an address register that accesses reach at most.
    pub accessed_bytes: usize,
}

impl Code {
    /// A new vector register.
    pub fn new_vector(&mut self) -> VectorReg {
        self.vector_count += 1;
        VectorReg(self.vector_count - 1)
    }

    /// A new mask register.
    pub fn new_mask(&mut self) -> MaskReg {
        self.mask_count += 1;
        MaskReg(self.mask_count - 1)
    }
}

impl fmt::Display for VectorReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for MaskReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Vector(v) => v.fmt(f),
            Source::Constant(c) => write!(f, "{c:#x}"),
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Alu { op, dst, a, b } => write!(f, "{dst} = {op:?} {a}, {b}"),
            Op::Shift { op, dst, a, by } => write!(f, "{dst} = {op:?} {a} by {by}"),
            Op::Unary { op, dst, a } => write!(f, "{dst} = {op:?} {a}"),
            Op::Shuffle { dst, a, bytes } => {
                let bytes: String = bytes.iter().map(|b| b.map_or('-', |b| char::from(b'0' + b))).collect();
                write!(f, "{dst} = Shuffle {a} [{bytes}]")
            }
            Op::FunnelShiftRight { dst, low, high, by } => write!(f, "{dst} = FunnelShiftRight {high}:{low} by {by}"),
            Op::Constant { dst, value } => write!(f, "{dst} = {value:#x}"),
            Op::Blend { dst, mask, clear, set } => write!(f, "{dst} = Blend {clear}, {set} {{{mask}}}"),
            Op::FromMask { dst, mask } => write!(f, "{dst} = {mask}"),
            Op::Move { dst, from } => write!(f, "{dst} := {from}"),
            Op::MaskedMove { dst, mask, from } => write!(f, "{dst} := {from} {{{mask}}}"),
            Op::Compare {
                relation,
                signed,
                dst,
                a,
                b,
            } => {
                let sign = if *signed { "Signed" } else { "" };
                write!(f, "{dst} = {sign}{relation:?} {a}, {b}")
            }
            Op::Test { test, dst, a, b } => write!(f, "{dst} = {test:?} {a}, {b}"),
            Op::MaskAlu { op, dst, a, b } => write!(f, "{dst} = {op:?} {a}, {b}"),
            Op::MaskNot { dst, a } => write!(f, "{dst} = Not {a}"),
            Op::LoadRow { dst, area, offset } => write!(f, "{dst} = {area:?}[{offset}]"),
            Op::StoreRow { area, offset, from } => write!(f, "{area:?}[{offset}] = {from}"),
            Op::LoadEnvironment { dst, offset } => write!(f, "{dst} = Environment[{offset}]"),
            Op::LoadUniform {
                dst,
                pointer_offset,
                offset,
            } => write!(f, "{dst} = [Environment[{pointer_offset}] + {offset}]"),
            Op::SetAddressRegisters { from, mask, source } => {
                write!(f, "address registers = {from} {{{mask}}} {source:?}")
            }
            Op::LoadPair { low, high, offset } => write!(f, "{low}, {high} = [{offset}..]"),
            Op::StorePair { low, high, offset } => write!(f, "[{offset}..] = {low}, {high}"),
            Op::StorePart { from, bytes, offset } => write!(f, "[{offset}..{}] = {from}", offset + i32::from(*bytes)),
            Op::Gather { dst, address, offset } => write!(f, "{dst} = [{address} + {offset}]"),
            Op::LoadRecordAddresses {
                dst,
                address,
                offset,
                default_offset,
            } => write!(
                f,
                "address registers, {dst} = [{address} + {offset}] or Arrays[{default_offset}]"
            ),
            Op::PrefetchSlots { keys, prefetch } => write!(
                f,
                "prefetch slots of table {} for {keys} by {}",
                prefetch.table, prefetch.key_shift
            ),
            Op::BlockStart {
                number,
                mask,
                is_often_empty,
            } => {
                let suffix = if *is_often_empty { ", often empty" } else { "" };
                write!(f, "block {number} {{{mask}}}{suffix}")
            }
            Op::SubtreeEnd { number } => write!(f, "end {number}"),
            Op::ClearMask { mask } => write!(f, "{mask} = none"),
            Op::AddToMask { mask, from } => write!(f, "{mask} |= {from}"),
            Op::Tally { offset } => write!(f, "tally {offset}"),
            Op::Suspend { point } => write!(f, "suspend at point {point}"),
            Op::BailOut => f.write_str("bail out"),
        }
    }
}
