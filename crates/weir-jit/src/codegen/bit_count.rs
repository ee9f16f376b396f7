//! Sums of a value's bits, one by one, as what they are: how many are set.
//!
//! P4 has no operation that counts bits, so programs write a sum of slices: of an instruction bitmap, say, where some bits stand for one
//! word and some for two.

use super::Segment;
use cranelift_codegen::ir::{InstBuilder, InstructionData, Opcode, Value};

/// From so many bits on counting them takes fewer instructions than adding them up.
const LEAST: u32 = 4;
/// So many operations lie between a field that is read and the packet's address at most: its bytes are turned round, extended, shifted and
/// masked, and its header's place is shifted and added.
const DEPTH: u32 = 8;
/// Weights of bits: 1, 2, 4 and 8.
const WEIGHTS: usize = 4;

/// A sum of bits of a value, each of them at most once per weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BitSum {
    of: Value,
    /// The bits that count so many times two to the power of the index.
    masks: [u64; WEIGHTS],
}

impl BitSum {
    /// One bit of a value.
    pub fn bit(of: Value, bit: u32) -> Self {
        let mut masks = [0; WEIGHTS];
        masks[0] = 1 << bit;
        BitSum { of, masks }
    }

    fn count(&self) -> u32 {
        self.masks.iter().map(|m| m.count_ones()).sum()
    }

    fn and(self, other: BitSum) -> Option<BitSum> {
        let pairs = || self.masks.iter().zip(other.masks);
        if self.of != other.of || pairs().any(|(a, b)| a & b != 0) {
            return None;
        }
        let mut masks = self.masks;
        masks.iter_mut().zip(other.masks).for_each(|(a, b)| *a |= b);
        Some(BitSum { of: self.of, masks })
    }

    fn shifted(self, by: u64) -> Option<BitSum> {
        let by = usize::try_from(by).ok().filter(|by| *by < WEIGHTS)?;
        let (kept, lost) = self.masks.split_at(WEIGHTS - by);
        if lost.iter().any(|mask| *mask != 0) {
            return None;
        }
        let mut masks = [0; WEIGHTS];
        masks[by..].copy_from_slice(kept);
        Some(BitSum { of: self.of, masks })
    }
}

impl Segment<'_, '_> {
    /// What a value is a sum of, if that is bits of another.
    fn bit_sum(&self, value: Value) -> Option<BitSum> {
        if let Some(sum) = self.bit_sums.get(&value) {
            return Some(*sum);
        }
        if let Some((of, by)) = self.with_constant(value, Opcode::Ishl) {
            // What is shifted out would be missing; of so few bits nothing is.
            return self.bit_sum(of)?.shifted(by);
        }
        if let Some((of, bit)) = self.single_bit(value) {
            return Some(BitSum::bit(of, bit as u32));
        }
        let (of, mask) = self.with_constant(value, Opcode::Band)?;
        (mask == 1).then_some(BitSum::bit(of, 0))
    }

    /// Whether two values are certainly the same: computed from the same by the same operations, `depth` of them in turn at most.
    fn same(&self, a: Value, b: Value, depth: u32) -> bool {
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
        let again = |a, b| self.same(a, b, depth - 1);
        match (dfg.insts[x], dfg.insts[y]) {
            (InstructionData::UnaryImm { opcode: o, imm }, InstructionData::UnaryImm { opcode: p, imm: other }) => {
                o == p && imm == other
            }
            (InstructionData::Unary { opcode: o, arg }, InstructionData::Unary { opcode: p, arg: other }) => {
                o == p && again(arg, other)
            }
            (
                InstructionData::Binary { opcode: o, args },
                InstructionData::Binary {
                    opcode: p,
                    args: others,
                },
            ) => o == p && again(args[0], others[0]) && again(args[1], others[1]),
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
                    && again(arg, other)
            }
            _ => false,
        }
    }

    /// The sum of two values, if it is a sum of bits that is sooner counted. If not yet, it is kept in mind what it is.
    pub(super) fn add_bits(&mut self, x: Value, y: Value) -> Option<Value> {
        let (a, mut b) = (self.bit_sum(x)?, self.bit_sum(y)?);
        if self.same(a.of, b.of, DEPTH) {
            // A field of the packet is read again wherever it is used.
            b.of = a.of;
        }
        let sum = a.and(b)?;
        if sum.count() < LEAST {
            let added = self.add(x, y);
            self.bit_sums.insert(added, sum);
            return Some(added);
        }
        let mut total: Option<Value> = None;
        for (weight, mask) in (0..).zip(sum.masks).filter(|(_, mask)| *mask != 0) {
            let mask_value = self.imm(mask);
            let bits = self.b.ins().band(sum.of, mask_value);
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
