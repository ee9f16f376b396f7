//! Replaces sums of a value's bits by population counts.
//!
//! P4 has no operation that counts bits, so programs write a sum of slices: of an INT instruction
//! bitmap, say, where some bits stand for one word and some for two.

use super::SegmentBuilder;
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Value};

/// From this number of bits on, counting takes fewer instructions than adding.
const MIN_COUNTED: u32 = 4;
/// Most operations between a field's value and the packet's address: its bytes are swapped,
/// extended, shifted and masked, and its header's offset is shifted and added.
const MAX_FIELD_DEPTH: u32 = 8;
/// Weights of bits: 1, 2, 4 and 8.
const WEIGHTS: usize = 4;

/// A sum of bits of a value, each of them at most once per weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitSum {
    source: Value,
    /// By weight, as a power of two: the bits that are added with this weight.
    masks: [u64; WEIGHTS],
}

impl BitSum {
    /// One bit of a value.
    pub fn bit(source: Value, bit: u32) -> Self {
        let mut masks = [0; WEIGHTS];
        masks[0] = 1 << bit;
        BitSum { source, masks }
    }

    fn count(&self) -> u32 {
        self.masks.iter().map(|m| m.count_ones()).sum()
    }

    fn and(self, other: BitSum) -> Option<BitSum> {
        let pairs = || self.masks.iter().zip(other.masks);
        if self.source != other.source || pairs().any(|(a, b)| a & b != 0) {
            return None;
        }
        let mut masks = self.masks;
        masks.iter_mut().zip(other.masks).for_each(|(a, b)| *a |= b);
        Some(BitSum {
            source: self.source,
            masks,
        })
    }

    fn shifted(self, by: u64) -> Option<BitSum> {
        let by = usize::try_from(by).ok().filter(|by| *by < WEIGHTS)?;
        let (kept, lost) = self.masks.split_at(WEIGHTS - by);
        if lost.iter().any(|mask| *mask != 0) {
            return None;
        }
        let mut masks = [0; WEIGHTS];
        masks[by..].copy_from_slice(kept);
        Some(BitSum {
            source: self.source,
            masks,
        })
    }
}

impl SegmentBuilder<'_, '_> {
    /// The sum of bits that a value is known to be.
    fn bit_sum(&self, value: Value) -> Option<BitSum> {
        if let Some(sum) = self.bit_sums.get(&value) {
            return Some(*sum);
        }
        if let Some((source, by)) = self.with_constant(value, Opcode::Ishl) {
            // No bit is shifted out: the sum of a few bits is small.
            return self.bit_sum(source)?.shifted(by);
        }
        if let Some((source, bit)) = self.single_bit(value) {
            return Some(BitSum::bit(source, bit as u32));
        }
        let (source, mask) = self.with_constant(value, Opcode::Band)?;
        (mask == 1).then_some(BitSum::bit(source, 0))
    }

    /// Whether two values are certainly equal: the same operations on the same operands, nested at
    /// most `depth` deep.
    fn is_same_value(&self, a: Value, b: Value, depth: u32) -> bool {
        let dfg = &self.b.func.dfg;
        if a == b {
            return true;
        }
        let (Some(x), Some(y)) = (dfg.value_def(a).inst(), dfg.value_def(b).inst()) else {
            return false;
        };
        if depth == 0 || dfg.value_type(a) != dfg.value_type(b) {
            return false;
        }
        let same = |a, b| self.is_same_value(a, b, depth - 1);
        match (dfg.insts[x], dfg.insts[y]) {
            (InstructionData::UnaryImm { opcode: o, imm }, InstructionData::UnaryImm { opcode: p, imm: other }) => {
                o == p && imm == other
            }
            (InstructionData::Unary { opcode: o, arg }, InstructionData::Unary { opcode: p, arg: other }) => {
                o == p && same(arg, other)
            }
            (
                InstructionData::Binary { opcode: o, args },
                InstructionData::Binary {
                    opcode: p,
                    args: others,
                },
            ) => o == p && same(args[0], others[0]) && same(args[1], others[1]),
            (
                InstructionData::Load {
                    opcode: o,
                    arg,
                    flags,
                    offset,
                },
                InstructionData::Load {
                    opcode: p,
                    arg: other,
                    flags: f,
                    offset: at,
                },
            ) => {
                o == p
                    && offset == at
                    && flags == f
                    && dfg.mem_flags[flags].readonly()
                    && dfg.mem_flags[flags].can_move()
                    && same(arg, other)
            }
            _ => false,
        }
    }

    /// The sum of two values, if it is a sum of bits. Emits a count if there are enough bits;
    /// otherwise adds, and notes what the sum is.
    pub(super) fn add_bits(&mut self, x: Value, y: Value) -> Option<Value> {
        let (a, mut b) = (self.bit_sum(x)?, self.bit_sum(y)?);
        if self.is_same_value(a.source, b.source, MAX_FIELD_DEPTH) {
            // A field of the packet is loaded again at each use, so equal sources may be different
            // values.
            b.source = a.source;
        }
        let sum = a.and(b)?;
        if sum.count() < MIN_COUNTED {
            let added = self.add(x, y);
            self.bit_sums.insert(added, sum);
            return Some(added);
        }
        let mut total: Option<Value> = None;
        for (weight, mask) in (0..).zip(sum.masks).filter(|(_, mask)| *mask != 0) {
            let mask_value = self.imm(mask);
            let bits = self.b.ins().band(sum.source, mask_value);
            let count = self.b.ins().popcnt(bits);
            let count = self.bounded(count, mask.count_ones().into());
            let count = self.shl_imm(count, weight);
            total = Some(match total {
                Some(before) => self.add(before, count),
                None => count,
            });
        }
        let total = total?;
        self.bit_sums.insert(total, sum);
        Some(total)
    }
}
