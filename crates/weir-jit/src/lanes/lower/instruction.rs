//! Lowers single instructions, for [`super`].
//!
//! A lane holds a value of any width, zero-extended to 64 bits. Upper bounds of vectors show where
//! truncation is redundant. Instructions without a vector form never get here
//! ([`crate::lanes::supported`]).

use super::{LaneValue, Lower};
use crate::lanes::address::{AddressAnalysis, MemoryOperand, Parameter};
use crate::lanes::bytes;
use crate::lanes::op::{Alu, MaskAlu, MaskReg, Op, Relation, ShiftOp, Source, Test, Unary, VectorReg};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};

/// A word whose lowest `bits` bits are set.
fn low_ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}

impl Lower<'_> {
    /// The width of a Cranelift value, in bits.
    fn width_of(&self, value: Value) -> u32 {
        self.func.dfg.value_type(value).bits()
    }

    /// Lowers an instruction other than a terminator.
    pub(super) fn lower_instruction(&mut self, inst: Inst) {
        let result = self.func.dfg.inst_results(inst).first().copied();
        if result.is_some_and(|v| self.is_sunk(v)) {
            return;
        }
        let value = match self.func.dfg.insts[inst] {
            InstructionData::Store {
                opcode, args, offset, ..
            } => return self.store(opcode, args, offset.into()),
            InstructionData::Load {
                opcode, arg, offset, ..
            } => self.load(opcode, result, arg, offset.into()),
            InstructionData::UnaryImm { imm, .. } => {
                let bits = result.map_or(64, |v| self.width_of(v));
                LaneValue::Constant(imm.bits() as u64 & low_ones(bits))
            }
            InstructionData::Unary { opcode, arg } => self.unary(opcode, arg, result),
            InstructionData::Binary { opcode, args: [a, b] } => self.binary(opcode, a, b),
            InstructionData::IntCompare { cond, args: [a, b], .. } => self.compare(cond, a, b),
            InstructionData::Ternary {
                args: [condition, a, b],
                ..
            } => self.select(condition, a, b),
            _ => return,
        };
        if let Some(result) = result {
            self.set_value(result, value);
        }
    }

    /// The value that a load instruction yields.
    fn load(&mut self, opcode: Opcode, result: Option<Value>, address: Value, offset: i32) -> LaneValue {
        match self.memory_operand(address, offset) {
            MemoryOperand::Row(area, offset) => LaneValue::Vector(self.load_row(area, offset)),
            MemoryOperand::Environment(offset) => {
                let dst = self.code.new_vector();
                self.push_op(Op::LoadEnvironment { dst, offset });
                LaneValue::Vector(dst)
            }
            MemoryOperand::PerPacket(region, base, offset) => {
                let ty = result.map(|v| self.func.dfg.value_type(v));
                let count = ty.and_then(|ty| AddressAnalysis::access_width(opcode, ty)).unwrap_or(8);
                self.load_memory(region, base, offset, count)
            }
            MemoryOperand::TallyMask(_) => unreachable!("tallies are not read"),
        }
    }

    /// Lowers a store instruction.
    fn store(&mut self, opcode: Opcode, [value, address]: [Value; 2], offset: i32) {
        match self.memory_operand(address, offset) {
            MemoryOperand::TallyMask(offset) => {
                debug_assert_eq!(self.address_analysis.parameter(value), Some(Parameter::Bit));
                self.push_op(Op::Tally { offset });
            }
            MemoryOperand::Row(area, offset) => {
                let from = self.vector(value);
                self.store_row(area, offset, from);
            }
            MemoryOperand::PerPacket(region, base, offset) => {
                let ty = self.func.dfg.value_type(value);
                let count = AddressAnalysis::access_width(opcode, ty).unwrap_or(8);
                self.store_memory(region, base, offset, value, count);
            }
            MemoryOperand::Environment(_) => unreachable!("the environment is not written"),
        }
    }

    /// A result truncated to this width.
    fn truncated(&mut self, v: VectorReg, bits: u32) -> LaneValue {
        if bits >= 64 || self.upper_bound(v) <= low_ones(bits) {
            return LaneValue::Vector(v);
        }
        self.and_constant(LaneValue::Vector(v), low_ones(bits))
    }

    /// `value & mask`. The mask is a constant of bits, no [`MaskReg`].
    fn and_constant(&mut self, value: LaneValue, mask: u64) -> LaneValue {
        match value {
            LaneValue::Constant(value) => return LaneValue::Constant(value & mask),
            LaneValue::Mask(_) if mask & 1 == 1 => return value,
            LaneValue::Mask(_) => return LaneValue::Constant(0),
            _ => {}
        }
        if let Some(bytes) = self.as_bytes(value, 8).and_then(|b| bytes::and_bytes(&b, mask)) {
            return LaneValue::Bytes(bytes);
        }
        let v = self.as_vector(value);
        let bound = self.upper_bound(v);
        // The mask clears no bit that may be set.
        if (bound.checked_add(1).is_some_and(u64::is_power_of_two)) && bound & !mask == 0 {
            return LaneValue::Vector(v);
        }
        let masked = self.alu(Alu::And, v, Source::Constant(mask));
        self.limit_upper_bound(masked, mask);
        LaneValue::Vector(masked)
    }

    /// The result of an instruction with one operand.
    fn unary(&mut self, opcode: Opcode, arg: Value, result: Option<Value>) -> LaneValue {
        let value = self.value_of(arg);
        let bits = self.width_of(arg);
        match opcode {
            Opcode::Uextend => value,
            Opcode::Ireduce => {
                let bits = result.map_or(64, |v| self.width_of(v));
                self.and_constant(value, low_ones(bits))
            }
            Opcode::Bswap => match (value, self.as_bytes(value, bits / 8)) {
                (LaneValue::Constant(value), _) => LaneValue::Constant(value.swap_bytes() >> (64 - bits)),
                (_, Some(bytes)) => LaneValue::Bytes(bytes::reverse(&bytes, bits / 8)),
                (_, None) => {
                    let v = self.as_vector(value);
                    LaneValue::Bytes(bytes::reverse(&bytes::of_vector(v, bits / 8), bits / 8))
                }
            },
            Opcode::Bnot => {
                let v = self.as_vector(value);
                let not = self.alu(Alu::Xor, v, Source::Constant(low_ones(bits)));
                self.limit_upper_bound(not, low_ones(bits));
                LaneValue::Vector(not)
            }
            Opcode::Ineg => {
                let source = self.as_source(value);
                let zero = self.as_vector(LaneValue::Constant(0));
                let negative = self.alu(Alu::Subtract, zero, source);
                self.truncated(negative, bits)
            }
            Opcode::Sextend => {
                let to = result.map_or(64, |v| self.width_of(v));
                let extended = self.sign_extended(value, bits);
                self.truncated(extended, to)
            }
            Opcode::Popcnt => self.lower_bit_count(Unary::CountOnes, value),
            Opcode::Clz => self.lower_bit_count(Unary::CountLeadingZeros, value),
            // `Ctz`: the population count of the bits below the lowest set bit.
            _ => {
                let v = self.as_vector(value);
                let minus_one = self.alu(Alu::Add, v, Source::Constant(u64::MAX));
                let trailing_zeros = self.alu(Alu::AndNot, v, Source::Vector(minus_one));
                self.lower_bit_count(Unary::CountOnes, LaneValue::Vector(trailing_zeros))
            }
        }
    }

    /// The number of set bits or of leading zeros.
    fn lower_bit_count(&mut self, op: Unary, value: LaneValue) -> LaneValue {
        let a = self.as_vector(value);
        let dst = self.code.new_vector();
        self.push_op(Op::Unary { op, dst, a });
        self.limit_upper_bound(dst, 64);
        LaneValue::Vector(dst)
    }

    /// A value of this width, sign-extended to 64 bits.
    fn sign_extended(&mut self, value: LaneValue, bits: u32) -> VectorReg {
        let v = self.as_vector(value);
        let by = (64 - bits) as u8;
        let left_aligned = self.shift(ShiftOp::Left, v, by);
        self.shift(ShiftOp::RightSigned, left_aligned, by)
    }

    /// The result of an instruction with two operands, other than a comparison.
    fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> LaneValue {
        let bits = self.width_of(a);
        let (lhs, rhs) = (self.value_of(a), self.value_of(b));
        match opcode {
            Opcode::Band => self.and(lhs, rhs),
            Opcode::Bor => self.or(lhs, rhs),
            Opcode::Bxor => self.xor(lhs, rhs),
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr => {
                self.lower_shift(opcode, lhs, rhs, bits)
            }
            Opcode::Iadd | Opcode::Imul | Opcode::Umax | Opcode::Umin => {
                let (first, second) = match lhs {
                    LaneValue::Constant(_) => (rhs, lhs),
                    _ => (lhs, rhs),
                };
                let (first, second) = (self.as_vector(first), self.as_source(second));
                self.commutative(opcode, first, second, bits)
            }
            // `Isub`.
            _ => {
                let (first, second) = (self.as_vector(lhs), self.as_source(rhs));
                let (first, second) = self.strip_redundant_ands(first, second, bits);
                let difference = self.alu(Alu::Subtract, first, second);
                self.truncated(difference, bits)
            }
        }
    }

    /// The operands without `and`s that keep at least the lowest `bits` bits, for results of which
    /// only these are used. Upper bits then differ, so upper bounds of the operands do not apply.
    fn strip_redundant_ands(&self, first: VectorReg, second: Source, bits: u32) -> (VectorReg, Source) {
        let second = match second {
            Source::Vector(v) => Source::Vector(self.strip_redundant_and(v, bits)),
            constant => constant,
        };
        (self.strip_redundant_and(first, bits), second)
    }

    /// The operand of such an `and`, if it computed the vector. Otherwise the vector itself.
    fn strip_redundant_and(&self, mut v: VectorReg, bits: u32) -> VectorReg {
        while let Some(&Op::Alu {
            op: Alu::And,
            a,
            b: Source::Constant(mask),
            ..
        }) = self.definition(v)
            && mask & low_ones(bits) == low_ones(bits)
        {
            v = a;
        }
        v
    }

    /// Addition, multiplication, maximum or minimum.
    fn commutative(&mut self, opcode: Opcode, first: VectorReg, second: Source, bits: u32) -> LaneValue {
        let first_bound = self.upper_bound(first);
        let second_bound = match second {
            Source::Vector(v) => self.upper_bound(v),
            Source::Constant(value) => value,
        };
        let operands = (first, second);
        let (op, bound) = match opcode {
            Opcode::Iadd => (Alu::Add, first_bound.checked_add(second_bound)),
            Opcode::Imul => (Alu::Multiply, first_bound.checked_mul(second_bound)),
            Opcode::Umax => (Alu::Max, Some(first_bound.max(second_bound))),
            _ => (Alu::Min, Some(first_bound.min(second_bound))),
        };
        let bound = bound.unwrap_or(u64::MAX);
        let (first, second) = match op {
            // The result is truncated anyway.
            Alu::Add | Alu::Multiply if bound > low_ones(bits) => self.strip_redundant_ands(first, second, bits),
            _ => (first, second),
        };
        let result = self.alu(op, first, second);
        // The bound does not hold if the operands lost their masks.
        if (first, second) == operands {
            self.limit_upper_bound(result, bound);
        }
        self.truncated(result, bits)
    }

    /// The bitwise `and`: of masks, words, or a word and a constant.
    fn and(&mut self, lhs: LaneValue, rhs: LaneValue) -> LaneValue {
        match (lhs, rhs) {
            (LaneValue::Constant(mask), other) | (other, LaneValue::Constant(mask)) => self.and_constant(other, mask),
            (LaneValue::Mask(a), LaneValue::Mask(b)) => LaneValue::Mask(self.mask_alu(MaskAlu::And, a, b)),
            _ => {
                let (a, b) = (self.as_vector(lhs), self.as_vector(rhs));
                let both = self.alu(Alu::And, a, Source::Vector(b));
                let bound = self.upper_bound(a).min(self.upper_bound(b));
                self.limit_upper_bound(both, bound);
                LaneValue::Vector(both)
            }
        }
    }

    /// The bitwise `or`: of masks, words, or disjoint bytes.
    fn or(&mut self, lhs: LaneValue, rhs: LaneValue) -> LaneValue {
        match (lhs, rhs) {
            (LaneValue::Constant(0), other) | (other, LaneValue::Constant(0)) => return other,
            (LaneValue::Mask(a), LaneValue::Mask(b)) => return LaneValue::Mask(self.mask_alu(MaskAlu::Or, a, b)),
            _ => {}
        }
        if let (Some(a), Some(b)) = (self.as_bytes(lhs, 8), self.as_bytes(rhs, 8))
            && let Some(both) = bytes::union(&a, &b)
        {
            return LaneValue::Bytes(both);
        }
        self.bitwise(Alu::Or, lhs, rhs)
    }

    /// The bitwise `xor`: of masks or words.
    fn xor(&mut self, lhs: LaneValue, rhs: LaneValue) -> LaneValue {
        match (lhs, rhs) {
            (LaneValue::Constant(0), other) | (other, LaneValue::Constant(0)) => other,
            (LaneValue::Mask(a), LaneValue::Mask(b)) => LaneValue::Mask(self.mask_alu(MaskAlu::Xor, a, b)),
            (LaneValue::Constant(1), LaneValue::Mask(a)) | (LaneValue::Mask(a), LaneValue::Constant(1)) => {
                LaneValue::Mask(self.mask_not(a))
            }
            _ => self.bitwise(Alu::Xor, lhs, rhs),
        }
    }

    /// The bitwise `or` or `xor` of words.
    fn bitwise(&mut self, op: Alu, lhs: LaneValue, rhs: LaneValue) -> LaneValue {
        let (first, second) = match lhs {
            LaneValue::Constant(_) => (rhs, lhs),
            _ => (lhs, rhs),
        };
        let (a, b) = (self.as_vector(first), self.as_source(second));
        let b_bound = match b {
            Source::Vector(v) => self.upper_bound(v),
            Source::Constant(value) => value,
        };
        let result = self.alu(op, a, b);
        // The bound has all bits up to the highest one that may be set.
        let bound = self.upper_bound(a) | b_bound;
        self.limit_upper_bound(result, u64::MAX.checked_shr(bound.leading_zeros()).unwrap_or(0));
        LaneValue::Vector(result)
    }

    /// A shift or rotation by a value, which counts modulo the width.
    fn lower_shift(&mut self, opcode: Opcode, lhs: LaneValue, by: LaneValue, bits: u32) -> LaneValue {
        match by {
            LaneValue::Constant(by) => self.lower_constant_shift(opcode, lhs, by as u32 % bits, bits),
            _ => {
                let mut by = self.as_vector(by);
                if self.upper_bound(by) >= u64::from(bits) {
                    by = self.alu(Alu::And, by, Source::Constant(u64::from(bits) - 1));
                }
                let by = Source::Vector(by);
                let result = match opcode {
                    Opcode::Sshr => {
                        let extended = self.sign_extended(lhs, bits);
                        self.alu(Alu::ShiftRightSigned, extended, by)
                    }
                    other => {
                        let v = self.as_vector(lhs);
                        let op = match other {
                            Opcode::Ishl => Alu::ShiftLeft,
                            Opcode::Ushr => Alu::ShiftRight,
                            _ if bits == 64 => Alu::RotateLeft,
                            _ => Alu::RotateHalvesLeft,
                        };
                        let result = self.alu(op, v, by);
                        if opcode == Opcode::Ushr {
                            let bound = self.upper_bound(v);
                            self.limit_upper_bound(result, bound);
                        }
                        result
                    }
                };
                self.truncated(result, bits)
            }
        }
    }

    /// A shift or rotation by a constant below the width.
    fn lower_constant_shift(&mut self, opcode: Opcode, lhs: LaneValue, by: u32, bits: u32) -> LaneValue {
        if by == 0 {
            return lhs;
        }
        match opcode {
            Opcode::Ishl => self.shifted_left(lhs, by, bits),
            Opcode::Ushr => self.shifted_right(lhs, by),
            Opcode::Sshr => {
                let extended = self.sign_extended(lhs, bits);
                let shifted = self.shift(ShiftOp::RightSigned, extended, by as u8);
                self.truncated(shifted, bits)
            }
            Opcode::Rotr => self.rotated_left(lhs, bits - by, bits),
            _ => self.rotated_left(lhs, by, bits),
        }
    }

    /// A left shift by a constant other than 0 and below the width.
    fn shifted_left(&mut self, lhs: LaneValue, by: u32, bits: u32) -> LaneValue {
        if let LaneValue::Constant(value) = lhs {
            return LaneValue::Constant(value << by & low_ones(bits));
        }
        if by.is_multiple_of(8)
            && let Some(bytes) = self.as_bytes(lhs, 8)
        {
            return LaneValue::Bytes(bytes::lowest(&bytes::shift(&bytes, by as i32 / 8), bits / 8));
        }
        let v = self.as_vector(lhs);
        let shifted = self.shift(ShiftOp::Left, v, by as u8);
        if let Some(bound) = self.upper_bound(v).checked_mul(1 << by) {
            self.limit_upper_bound(shifted, bound);
        }
        self.truncated(shifted, bits)
    }

    /// A logical right shift by a constant other than 0 and below the width.
    fn shifted_right(&mut self, lhs: LaneValue, by: u32) -> LaneValue {
        if let LaneValue::Constant(value) = lhs {
            return LaneValue::Constant(value >> by);
        }
        if by.is_multiple_of(8)
            && let Some(bytes) = self.as_bytes(lhs, 8)
        {
            return LaneValue::Bytes(bytes::shift(&bytes, -(by as i32) / 8));
        }
        let v = self.as_vector(lhs);
        let shifted = self.shift(ShiftOp::Right, v, by as u8);
        let bound = self.upper_bound(v) >> by;
        self.limit_upper_bound(shifted, bound);
        LaneValue::Vector(shifted)
    }

    /// A rotation by a constant other than 0 and below the width.
    fn rotated_left(&mut self, lhs: LaneValue, by: u32, bits: u32) -> LaneValue {
        let v = self.as_vector(lhs);
        match bits {
            64 => LaneValue::Vector(self.shift(ShiftOp::RotateLeft, v, by as u8)),
            32 => {
                let rotated = self.shift(ShiftOp::RotateHalvesLeft, v, by as u8);
                self.limit_upper_bound(rotated, low_ones(32));
                LaneValue::Vector(rotated)
            }
            _ => {
                let lhs = LaneValue::Vector(v);
                let (high, low) = (self.shifted_left(lhs, by, bits), self.shifted_right(lhs, bits - by));
                self.or(high, low)
            }
        }
    }

    /// The mask that a comparison yields.
    fn compare(&mut self, cond: IntCC, a: Value, b: Value) -> LaneValue {
        let (signed, relation) = match cond {
            IntCC::Equal => (false, Relation::Equal),
            IntCC::NotEqual => (false, Relation::NotEqual),
            IntCC::UnsignedLessThan => (false, Relation::Less),
            IntCC::UnsignedLessThanOrEqual => (false, Relation::LessOrEqual),
            IntCC::UnsignedGreaterThan => (false, Relation::Greater),
            IntCC::UnsignedGreaterThanOrEqual => (false, Relation::GreaterOrEqual),
            IntCC::SignedLessThan => (true, Relation::Less),
            IntCC::SignedLessThanOrEqual => (true, Relation::LessOrEqual),
            IntCC::SignedGreaterThan => (true, Relation::Greater),
            IntCC::SignedGreaterThanOrEqual => (true, Relation::GreaterOrEqual),
        };
        let bits = self.width_of(a);
        let (mut lhs, mut rhs, mut relation) = (self.value_of(a), self.value_of(b), relation);
        if let LaneValue::Constant(_) = lhs {
            (lhs, rhs, relation) = (rhs, lhs, relation.with_operands_swapped());
        }
        if let (LaneValue::Mask(mask), LaneValue::Constant(value), Relation::Equal | Relation::NotEqual) =
            (lhs, rhs, relation)
        {
            return self.compare_bit(mask, value, relation == Relation::Equal);
        }
        if let (LaneValue::Constant(0), Relation::Equal | Relation::NotEqual) = (rhs, relation) {
            let v = self.as_vector(lhs);
            let test = match relation {
                Relation::NotEqual => Test::Nonzero,
                _ => Test::Zero,
            };
            return LaneValue::Mask(self.test(test, v));
        }
        let (a, b) = if signed {
            let (a, b) = (self.sign_extended(lhs, bits), self.sign_extended(rhs, bits));
            (a, Source::Vector(b))
        } else {
            (self.as_vector(lhs), self.as_source(rhs))
        };
        let dst = self.code.new_mask();
        self.push_op(Op::Compare {
            relation,
            signed,
            dst,
            a,
            b,
        });
        LaneValue::Mask(dst)
    }

    /// Whether a mask, as 1 or 0, equals a constant or differs from it.
    fn compare_bit(&mut self, mask: MaskReg, value: u64, equal: bool) -> LaneValue {
        match (value, equal) {
            (1, true) | (0, false) => LaneValue::Mask(mask),
            (0, true) | (1, false) => LaneValue::Mask(self.mask_not(mask)),
            _ => LaneValue::Constant(u64::from(!equal)),
        }
    }

    /// `if condition != 0 { a } else { b }`
    fn select(&mut self, condition: Value, a: Value, b: Value) -> LaneValue {
        let condition = self.value_of(condition);
        let (set, clear) = (self.value_of(a), self.value_of(b));
        // An inline lookup, `p != 0 ? p : default`: the record's address, or the default's.
        if let (LaneValue::Unloaded(address, offset), LaneValue::Uniform(default_offset)) = (set, clear)
            && condition == set
        {
            return LaneValue::Vector(self.load_record_addresses(address, offset, default_offset));
        }
        // Loaded once, as memory may change between two loads.
        let (condition, set) = match (condition, set) {
            (LaneValue::Unloaded(..), _) if condition == set => {
                let word = LaneValue::Vector(self.as_vector(set));
                (word, word)
            }
            distinct => distinct,
        };
        let mask = match self.as_mask(condition) {
            Ok(mask) => mask,
            Err(true) => return set,
            Err(false) => return clear,
        };
        match (set, clear) {
            (LaneValue::Constant(1), LaneValue::Constant(0)) => LaneValue::Mask(mask),
            (LaneValue::Constant(0), LaneValue::Constant(1)) => LaneValue::Mask(self.mask_not(mask)),
            (LaneValue::Mask(lhs), LaneValue::Mask(rhs)) => {
                let lhs = self.mask_alu(MaskAlu::And, mask, lhs);
                let rhs = self.mask_alu(MaskAlu::AndNot, mask, rhs);
                LaneValue::Mask(self.mask_alu(MaskAlu::Or, lhs, rhs))
            }
            _ => {
                let (clear, set) = (self.as_vector(clear), self.as_source(set));
                let dst = self.code.new_vector();
                self.push_op(Op::Blend { dst, mask, clear, set });
                let bound = match set {
                    Source::Vector(v) => self.upper_bound(v),
                    Source::Constant(value) => value,
                };
                let bound = bound.max(self.upper_bound(clear));
                self.limit_upper_bound(dst, bound);
                LaneValue::Vector(dst)
            }
        }
    }
}
