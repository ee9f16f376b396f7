//! The intermediate code of [`super::lower`]: straight-line operations over eight packets, from
//! which [`super::emit`] makes machine code.
//!
//! A vector has a word per packet. Blocks of the segment follow each other in an order without back
//! edges. Each has a mask of the packets that reach it. Side effects (stores, suspending) happen
//! for those packets only, and everything else for all eight. A block whose mask is empty is
//! skipped, together with the blocks it dominates. So the values defined in a block are garbage in
//! lanes of other packets, and are only read where the packet was in the block.

use super::SlotPrefetch;
use std::fmt;

/// A vector of eight words. Defined once, or once by each predecessor of a merge block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct V(pub u32);

/// A bit per packet. Defined once. Lanes outside of the current block are garbage, unless it is a
/// block's mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct M(pub u32);

/// The second operand of most operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    V(V),
    /// The same word in all lanes.
    Constant(u64),
}

/// Operations on two vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Alu {
    Add,
    Subtract,
    Multiply,
    And,
    /// The second operand, without the bits of the first.
    AndNot,
    Or,
    Xor,
    Max,
    Min,
    /// By the bits that the second operand says, fewer than 64.
    ShiftLeft,
    ShiftRight,
    /// Arithmetic.
    ShiftRightSigned,
    RotateLeft,
    /// Rotates both 32-bit halves.
    RotateHalvesLeft,
}

/// Shifts by a constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ShiftOp {
    Left,
    Right,
    RightSigned,
    RotateLeft,
    /// Rotates both 32-bit halves.
    RotateHalvesLeft,
}

/// Operations on one vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unary {
    CountOnes,
    CountLeadingZeros,
}

/// Comparisons.
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
    /// The relation with its operands exchanged.
    pub fn reversed(self) -> Self {
        match self {
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
            same => same,
        }
    }
}

/// Operations on masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskAlu {
    And,
    /// The second operand, without the bits of the first.
    AndNot,
    Or,
    Xor,
}

/// Rows of words, one per packet of the vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rows {
    Context,
    /// Of the tally area: indexes at which packets are counted.
    Tallies,
}

/// By byte of a shuffled word: the number of its source byte, or `None` for 0.
pub(super) type Shuffle = [Option<u8>; 8];

/// Where addresses are available, besides in the vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressSource {
    Vector,
    /// In a row of the context, at a byte offset; valid for empty slots, too.
    Row(i32),
    /// They are the current addresses already, for a superset of the packets.
    Current,
}

/// An operation. Done for all eight lanes unless said otherwise.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Op {
    Alu {
        op: Alu,
        dst: V,
        a: V,
        b: Source,
    },
    Shift {
        op: ShiftOp,
        dst: V,
        a: V,
        by: u8,
    },
    Unary {
        op: Unary,
        dst: V,
        a: V,
    },
    Shuffle {
        dst: V,
        a: V,
        bytes: Shuffle,
    },
    /// The lower words shifted right by bits; the upper words fill up.
    ShiftPair {
        dst: V,
        low: V,
        high: V,
        by: u8,
    },
    Constant {
        dst: V,
        value: u64,
    },
    /// `set` where the mask is set, otherwise `clear`.
    Blend {
        dst: V,
        mask: M,
        clear: V,
        set: Source,
    },
    /// 1 where the mask is set, otherwise 0.
    FromMask {
        dst: V,
        mask: M,
    },
    /// The value of a block parameter on the first incoming edge.
    Copy {
        dst: V,
        from: Source,
    },
    /// The value on a further edge, for the packets that take it.
    CopyIf {
        dst: V,
        mask: M,
        from: Source,
    },
    Compare {
        relation: Relation,
        signed: bool,
        dst: M,
        a: V,
        b: Source,
    },
    /// Whether the operands have any bit in common, or (`any` false) none.
    Test {
        any: bool,
        dst: M,
        a: V,
        b: Source,
    },
    MaskAlu {
        op: MaskAlu,
        dst: M,
        a: M,
        b: M,
    },
    MaskNot {
        dst: M,
        a: M,
    },
    /// A row, at a byte offset.
    LoadRow {
        dst: V,
        rows: Rows,
        offset: i32,
    },
    /// For the block's packets.
    StoreRow {
        rows: Rows,
        offset: i32,
        from: V,
    },
    /// A word of the environment, in all lanes.
    LoadEnvironment {
        dst: V,
        offset: i32,
    },
    /// A word at an address in the environment, in all lanes.
    LoadUniform {
        dst: V,
        address: i32,
        offset: i32,
    },
    /// Sets the current addresses, for packets of a mask. The other lanes point to the sentinel.
    Addresses {
        from: V,
        mask: M,
        source: AddressSource,
    },
    /// Sixteen bytes at an offset from each address, as two words.
    LoadPair {
        low: V,
        high: V,
        offset: i32,
    },
    StorePair {
        low: V,
        high: V,
        offset: i32,
    },
    /// The lowest 1, 2, 4 or 8 bytes of each word.
    StorePart {
        from: V,
        bytes: u8,
        offset: i32,
    },
    /// Eight bytes at an offset from each of these addresses, for the block's packets.
    Gather {
        dst: V,
        address: V,
        offset: i32,
    },
    /// The record of an inline lookup: eight bytes at an offset from each of these addresses or,
    /// where they are 0, the word at an offset in the array descriptors. Sets the current addresses
    /// to the records, for the block's packets.
    FindRecord {
        dst: V,
        address: V,
        offset: i32,
        default: i32,
    },
    /// Prefetches the slots of these keys, if the block has all packets of the group.
    PrefetchSlots {
        keys: V,
        prefetch: SlotPrefetch,
    },
    /// The start of a block, with its mask. `rare`: the mask is often empty.
    Block {
        number: usize,
        mask: M,
        rare: bool,
    },
    /// The end of the blocks that the block with this number dominates.
    End {
        number: usize,
    },
    /// Clears the mask of a merge block, to which its predecessors add packets.
    EmptyMask {
        mask: M,
    },
    /// Adds packets to a mask.
    Join {
        mask: M,
        from: M,
    },
    /// Adds the block's packets to a tally, at a byte offset.
    Tally {
        offset: i32,
    },
    /// The block's packets suspend at a point.
    Leave {
        point: usize,
    },
    /// The block's packets bail out: they are run one by one, from the segment's start.
    BailOut,
}

impl Op {
    /// Calls `f` with each vector that the operation reads.
    pub fn reads(&self, mut f: impl FnMut(V)) {
        let source = |s: &Source, f: &mut dyn FnMut(V)| {
            if let Source::V(v) = s {
                f(*v);
            }
        };
        match self {
            Op::Alu { a, b, .. } | Op::Compare { a, b, .. } | Op::Test { a, b, .. } => {
                f(*a);
                source(b, &mut f);
            }
            Op::Shift { a, .. } | Op::Unary { a, .. } | Op::Shuffle { a, .. } => f(*a),
            Op::ShiftPair { low, high, .. } | Op::StorePair { low, high, .. } => {
                f(*low);
                f(*high);
            }
            Op::Blend { clear, set, .. } => {
                f(*clear);
                source(set, &mut f);
            }
            Op::Copy { from, .. } => source(from, &mut f),
            Op::CopyIf { dst, from, .. } => {
                f(*dst);
                source(from, &mut f);
            }
            Op::StoreRow { from, .. } | Op::StorePart { from, .. } | Op::Addresses { from, .. } => f(*from),
            Op::Gather { address, .. } | Op::FindRecord { address, .. } => f(*address),
            Op::PrefetchSlots { keys, .. } => f(*keys),
            Op::Constant { .. }
            | Op::FromMask { .. }
            | Op::MaskAlu { .. }
            | Op::MaskNot { .. }
            | Op::LoadRow { .. }
            | Op::LoadEnvironment { .. }
            | Op::LoadUniform { .. }
            | Op::LoadPair { .. }
            | Op::Block { .. }
            | Op::End { .. }
            | Op::EmptyMask { .. }
            | Op::Join { .. }
            | Op::Tally { .. }
            | Op::Leave { .. }
            | Op::BailOut => {}
        }
    }

    /// Calls `f` with each vector that the operation writes.
    pub fn writes(&self, mut f: impl FnMut(V)) {
        match self {
            Op::Alu { dst, .. }
            | Op::Shift { dst, .. }
            | Op::Unary { dst, .. }
            | Op::Shuffle { dst, .. }
            | Op::ShiftPair { dst, .. }
            | Op::Constant { dst, .. }
            | Op::Blend { dst, .. }
            | Op::FromMask { dst, .. }
            | Op::Copy { dst, .. }
            | Op::CopyIf { dst, .. }
            | Op::LoadRow { dst, .. }
            | Op::LoadEnvironment { dst, .. }
            | Op::LoadUniform { dst, .. }
            | Op::Gather { dst, .. }
            | Op::FindRecord { dst, .. } => f(*dst),
            Op::LoadPair { low, high, .. } => {
                f(*low);
                f(*high);
            }
            Op::Compare { .. }
            | Op::Test { .. }
            | Op::MaskAlu { .. }
            | Op::MaskNot { .. }
            | Op::StoreRow { .. }
            | Op::Addresses { .. }
            | Op::StorePair { .. }
            | Op::StorePart { .. }
            | Op::PrefetchSlots { .. }
            | Op::Block { .. }
            | Op::End { .. }
            | Op::EmptyMask { .. }
            | Op::Join { .. }
            | Op::Tally { .. }
            | Op::Leave { .. }
            | Op::BailOut => {}
        }
    }

    /// Whether it is done for the block's packets only, and so reads the block's mask.
    pub fn is_for_block(&self) -> bool {
        matches!(
            self,
            Op::StoreRow { .. }
                | Op::Gather { .. }
                | Op::FindRecord { .. }
                | Op::PrefetchSlots { .. }
                | Op::Tally { .. }
                | Op::Leave { .. }
                | Op::BailOut
        )
    }

    /// Calls `f` with each mask that the operation reads, except the block's.
    pub fn reads_masks(&self, mut f: impl FnMut(M)) {
        match self {
            Op::Blend { mask, .. }
            | Op::FromMask { mask, .. }
            | Op::CopyIf { mask, .. }
            | Op::Addresses { mask, .. }
            | Op::Block { mask, .. } => f(*mask),
            Op::MaskAlu { a, b, .. } => {
                f(*a);
                f(*b);
            }
            Op::MaskNot { a, .. } => f(*a),
            Op::Join { mask, from } => {
                f(*mask);
                f(*from);
            }
            _ => {}
        }
    }

    /// The mask that the operation defines.
    pub fn writes_mask(&self) -> Option<M> {
        match self {
            Op::Compare { dst, .. }
            | Op::Test { dst, .. }
            | Op::MaskAlu { dst, .. }
            | Op::MaskNot { dst, .. }
            | Op::EmptyMask { mask: dst }
            | Op::Join { mask: dst, .. } => Some(*dst),
            _ => None,
        }
    }

    /// Whether it has no effect besides defining a value.
    pub fn is_pure(&self) -> bool {
        let mut defines = self.writes_mask().is_some();
        self.writes(|_| defines = true);
        // It also sets the current addresses.
        defines && !matches!(self, Op::FindRecord { .. })
    }
}

/// The code of a segment.
#[derive(Debug, Default)]
pub(super) struct Code {
    pub ops: Vec<Op>,
    pub vectors: u32,
    pub masks: u32,
    /// The mask of the first block: the packets of the group.
    pub entry: Option<M>,
    /// The greatest offset from an address, plus size, of any access.
    pub max_read: usize,
}

impl Code {
    pub fn vector(&mut self) -> V {
        self.vectors += 1;
        V(self.vectors - 1)
    }

    pub fn mask(&mut self) -> M {
        self.masks += 1;
        M(self.masks - 1)
    }
}

impl fmt::Display for V {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

impl fmt::Display for M {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::V(v) => v.fmt(f),
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
            Op::ShiftPair { dst, low, high, by } => write!(f, "{dst} = ShiftPair {low}, {high} by {by}"),
            Op::Constant { dst, value } => write!(f, "{dst} = {value:#x}"),
            Op::Blend { dst, mask, clear, set } => write!(f, "{dst} = Blend {clear}, {set} {{{mask}}}"),
            Op::FromMask { dst, mask } => write!(f, "{dst} = {mask}"),
            Op::Copy { dst, from } => write!(f, "{dst} := {from}"),
            Op::CopyIf { dst, mask, from } => write!(f, "{dst} := {from} {{{mask}}}"),
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
            Op::Test { any, dst, a, b } => {
                let name = if *any { "Any" } else { "None" };
                write!(f, "{dst} = {name} {a}, {b}")
            }
            Op::MaskAlu { op, dst, a, b } => write!(f, "{dst} = {op:?} {a}, {b}"),
            Op::MaskNot { dst, a } => write!(f, "{dst} = Not {a}"),
            Op::LoadRow { dst, rows, offset } => write!(f, "{dst} = {rows:?}[{offset}]"),
            Op::StoreRow { rows, offset, from } => write!(f, "{rows:?}[{offset}] = {from}"),
            Op::LoadEnvironment { dst, offset } => write!(f, "{dst} = Environment[{offset}]"),
            Op::LoadUniform { dst, address, offset } => write!(f, "{dst} = [Environment[{address}] + {offset}]"),
            Op::Addresses { from, mask, source } => write!(f, "addresses {from} {{{mask}}} {source:?}"),
            Op::LoadPair { low, high, offset } => write!(f, "{low}, {high} = [{offset}..]"),
            Op::StorePair { low, high, offset } => write!(f, "[{offset}..] = {low}, {high}"),
            Op::StorePart { from, bytes, offset } => write!(f, "[{offset}..{}] = {from}", offset + i32::from(*bytes)),
            Op::Gather { dst, address, offset } => write!(f, "{dst} = [{address} + {offset}]"),
            Op::FindRecord {
                dst,
                address,
                offset,
                default,
            } => write!(f, "addresses {dst} = [{address} + {offset}] or Arrays[{default}]"),
            Op::PrefetchSlots { keys, prefetch } => write!(
                f,
                "prefetch slots of table {} for {keys} by {}",
                prefetch.number, prefetch.shift
            ),
            Op::Block { number, mask, rare } => {
                let rare = if *rare { ", rare" } else { "" };
                write!(f, "block {number} {{{mask}}}{rare}")
            }
            Op::End { number } => write!(f, "end {number}"),
            Op::EmptyMask { mask } => write!(f, "{mask} = none"),
            Op::Join { mask, from } => write!(f, "{mask} |= {from}"),
            Op::Tally { offset } => write!(f, "tally {offset}"),
            Op::Leave { point } => write!(f, "leave for point {point}"),
            Op::BailOut => f.write_str("bail out"),
        }
    }
}
