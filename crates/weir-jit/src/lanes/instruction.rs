//! Lowers single instructions.
//!
//! A lane holds a value of any width, zero-extended to 64 bits.

use super::address::{AddressAnalysis, MemoryOperand, Parameter};
use super::bytes;
use super::lower::{LaneValue, Lower};
use super::op::{Alu, M, MaskAlu, Op, Relation, ShiftOp, Source, Unary, V};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Value};

/// All ones in the lowest bits.
fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits.clamp(1, 64))
}

impl Lower<'_> {
    fn bits(&self, value: Value) -> u32 {
        self.func.dfg.value_type(value).bits()
    }

    /// Lowers an instruction other than a terminator.
    pub(super) fn instruction(&mut self, inst: Inst) {
        let result = self.func.dfg.inst_results(inst).first().copied();
        if result.is_some_and(|v| self.is_sunk(v)) {
            return;
        }
        let known = match self.func.dfg.insts[inst] {
            InstructionData::Store {
                opcode, args, offset, ..
            } => return self.store(opcode, args, offset.into()),
            InstructionData::Load {
                opcode, arg, offset, ..
            } => self.load(opcode, result, arg, offset.into()),
            InstructionData::UnaryImm { imm, .. } => {
                let bits = result.map_or(64, |v| self.bits(v));
                LaneValue::Constant(imm.bits() as u64 & ones(bits))
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
            self.set(result, known);
        }
    }

    fn load(&mut self, opcode: Opcode, result: Option<Value>, address: Value, offset: i32) -> LaneValue {
        match self.operand(address, offset) {
            MemoryOperand::Row(rows, offset) => LaneValue::Vector(self.load_row(rows, offset)),
            MemoryOperand::Environment(offset) => {
                let dst = self.code.vector();
                self.op(Op::LoadEnvironment { dst, offset });
                LaneValue::Vector(dst)
            }
            MemoryOperand::PerPacket(region, base, offset) => {
                let ty = result.map(|v| self.func.dfg.value_type(v));
                let count = ty.and_then(|ty| AddressAnalysis::access(opcode, ty)).unwrap_or(8);
                self.load_memory(region, base, offset, count)
            }
            MemoryOperand::Tally(_) => unreachable!("tallies are not read"),
        }
    }

    fn store(&mut self, opcode: Opcode, [value, address]: [Value; 2], offset: i32) {
        match self.operand(address, offset) {
            MemoryOperand::Tally(offset) => {
                debug_assert_eq!(self.addressing.parameter(value), Some(Parameter::Bit));
                self.op(Op::Tally { offset });
            }
            MemoryOperand::Row(rows, offset) => {
                let from = self.vector(value);
                self.store_row(rows, offset, from);
            }
            MemoryOperand::PerPacket(region, base, offset) => {
                let ty = self.func.dfg.value_type(value);
                let count = AddressAnalysis::access(opcode, ty).unwrap_or(8);
                self.store_memory(region, base, offset, value, count);
            }
            MemoryOperand::Environment(_) => unreachable!("the environment is not written"),
        }
    }

    /// A result of this width, whose upper bits may be set: masks it.
    fn narrowed(&mut self, v: V, bits: u32) -> LaneValue {
        if bits >= 64 || self.bound(v) <= ones(bits) {
            return LaneValue::Vector(v);
        }
        self.filtered(LaneValue::Vector(v), ones(bits))
    }

    /// The bits that a mask keeps.
    fn filtered(&mut self, known: LaneValue, mask: u64) -> LaneValue {
        match known {
            LaneValue::Constant(value) => return LaneValue::Constant(value & mask),
            LaneValue::Mask(_) if mask & 1 == 1 => return known,
            LaneValue::Mask(_) => return LaneValue::Constant(0),
            _ => {}
        }
        if let Some(bytes) = self.as_bytes(known, 8).and_then(|b| bytes::masked(&b, mask)) {
            return LaneValue::Bytes(bytes);
        }
        let v = self.as_vector(known);
        let most = self.bound(v);
        // The mask keeps all bits that may be set.
        if (most.checked_add(1).is_some_and(u64::is_power_of_two)) && most & !mask == 0 {
            return LaneValue::Vector(v);
        }
        let masked = self.alu(Alu::And, v, Source::Constant(mask));
        self.bounded(masked, mask);
        LaneValue::Vector(masked)
    }

    fn unary(&mut self, opcode: Opcode, arg: Value, result: Option<Value>) -> LaneValue {
        let known = self.value_of(arg);
        let bits = self.bits(arg);
        match opcode {
            Opcode::Uextend => known,
            Opcode::Ireduce => {
                let bits = result.map_or(64, |v| self.bits(v));
                self.filtered(known, ones(bits))
            }
            Opcode::Bswap => match (known, self.as_bytes(known, bits / 8)) {
                (LaneValue::Constant(value), _) => LaneValue::Constant(value.swap_bytes() >> (64 - bits)),
                (_, Some(bytes)) => LaneValue::Bytes(bytes::reversed(&bytes, bits / 8)),
                (_, None) => {
                    let v = self.as_vector(known);
                    LaneValue::Bytes(bytes::reversed(&bytes::of_vector(v, bits / 8), bits / 8))
                }
            },
            Opcode::Bnot => {
                let v = self.as_vector(known);
                let not = self.alu(Alu::Xor, v, Source::Constant(ones(bits)));
                self.bounded(not, ones(bits));
                LaneValue::Vector(not)
            }
            Opcode::Ineg => {
                let source = self.as_source(known);
                let zero = self.as_vector(LaneValue::Constant(0));
                let negative = self.alu(Alu::Subtract, zero, source);
                self.narrowed(negative, bits)
            }
            Opcode::Sextend => {
                let to = result.map_or(64, |v| self.bits(v));
                let extended = self.extended_by_sign(known, bits);
                self.narrowed(extended, to)
            }
            Opcode::Popcnt => self.count(Unary::CountOnes, known),
            Opcode::Clz => self.count(Unary::CountLeadingZeros, known),
            // `Ctz`: counts the ones below the lowest one.
            _ => {
                let v = self.as_vector(known);
                let less = self.alu(Alu::Add, v, Source::Constant(u64::MAX));
                let below = self.alu(Alu::AndNot, v, Source::V(less));
                self.count(Unary::CountOnes, LaneValue::Vector(below))
            }
        }
    }

    fn count(&mut self, op: Unary, known: LaneValue) -> LaneValue {
        let a = self.as_vector(known);
        let dst = self.code.vector();
        self.op(Op::Unary { op, dst, a });
        self.bounded(dst, 64);
        LaneValue::Vector(dst)
    }

    /// A number of this width, sign-extended to 64 bits.
    fn extended_by_sign(&mut self, known: LaneValue, bits: u32) -> V {
        let v = self.as_vector(known);
        let by = (64 - bits) as u8;
        let up = self.shift(ShiftOp::Left, v, by);
        self.shift(ShiftOp::RightSigned, up, by)
    }

    fn binary(&mut self, opcode: Opcode, a: Value, b: Value) -> LaneValue {
        let bits = self.bits(a);
        let (x, y) = (self.value_of(a), self.value_of(b));
        match opcode {
            Opcode::Band => self.and(x, y),
            Opcode::Bor => self.or(x, y),
            Opcode::Bxor => self.xor(x, y),
            Opcode::Ishl | Opcode::Ushr | Opcode::Sshr | Opcode::Rotl | Opcode::Rotr => {
                self.shifted(opcode, x, y, bits)
            }
            Opcode::Iadd | Opcode::Imul | Opcode::Umax | Opcode::Umin => {
                let (first, second) = match x {
                    LaneValue::Constant(_) => (y, x),
                    _ => (x, y),
                };
                let (first, second) = (self.as_vector(first), self.as_source(second));
                self.commutative(opcode, first, second, bits)
            }
            // `Isub`.
            _ => {
                let (first, second) = (self.as_vector(x), self.as_source(y));
                let (first, second) = self.unmasked(first, second, bits);
                let difference = self.alu(Alu::Subtract, first, second);
                self.narrowed(difference, bits)
            }
        }
    }

    /// The operands without masks that keep at least this many bits, for results of which only
    /// these are used. The upper bits then differ, so the bounds of masked results do not apply.
    fn unmasked(&self, first: V, second: Source, bits: u32) -> (V, Source) {
        let second = match second {
            Source::V(v) => Source::V(self.before_mask(v, bits)),
            constant => constant,
        };
        (self.before_mask(first, bits), second)
    }

    fn before_mask(&self, mut v: V, bits: u32) -> V {
        while let Some(&Op::Alu {
            op: Alu::And,
            a,
            b: Source::Constant(mask),
            ..
        }) = self.definition(v)
            && mask & ones(bits) == ones(bits)
        {
            v = a;
        }
        v
    }

    fn commutative(&mut self, opcode: Opcode, first: V, second: Source, bits: u32) -> LaneValue {
        let most = |s: &Self| match second {
            Source::V(v) => s.bound(v),
            Source::Constant(value) => value,
        };
        let (one, other) = (self.bound(first), most(self));
        let operands = (first, second);
        let (op, most) = match opcode {
            Opcode::Iadd => (Alu::Add, one.checked_add(other)),
            Opcode::Imul => (Alu::Multiply, one.checked_mul(other)),
            Opcode::Umax => (Alu::Max, Some(one.max(other))),
            _ => (Alu::Min, Some(one.min(other))),
        };
        let most = most.unwrap_or(u64::MAX);
        let (first, second) = match op {
            // The result is masked anyway.
            Alu::Add | Alu::Multiply if most > ones(bits) => self.unmasked(first, second, bits),
            _ => (first, second),
        };
        let result = self.alu(op, first, second);
        // The bound does not hold if the operands lost their masks.
        if (first, second) == operands {
            self.bounded(result, most);
        }
        self.narrowed(result, bits)
    }

    fn and(&mut self, x: LaneValue, y: LaneValue) -> LaneValue {
        match (x, y) {
            (LaneValue::Constant(mask), other) | (other, LaneValue::Constant(mask)) => self.filtered(other, mask),
            (LaneValue::Mask(a), LaneValue::Mask(b)) => LaneValue::Mask(self.mask_alu(MaskAlu::And, a, b)),
            _ => {
                let (a, b) = (self.as_vector(x), self.as_vector(y));
                let both = self.alu(Alu::And, a, Source::V(b));
                let most = self.bound(a).min(self.bound(b));
                self.bounded(both, most);
                LaneValue::Vector(both)
            }
        }
    }

    fn or(&mut self, x: LaneValue, y: LaneValue) -> LaneValue {
        match (x, y) {
            (LaneValue::Constant(0), other) | (other, LaneValue::Constant(0)) => return other,
            (LaneValue::Mask(a), LaneValue::Mask(b)) => return LaneValue::Mask(self.mask_alu(MaskAlu::Or, a, b)),
            _ => {}
        }
        if let (Some(a), Some(b)) = (self.as_bytes(x, 8), self.as_bytes(y, 8))
            && let Some(both) = bytes::merge(&a, &b)
        {
            return LaneValue::Bytes(both);
        }
        self.bitwise(Alu::Or, x, y)
    }

    fn xor(&mut self, x: LaneValue, y: LaneValue) -> LaneValue {
        match (x, y) {
            (LaneValue::Constant(0), other) | (other, LaneValue::Constant(0)) => other,
            (LaneValue::Mask(a), LaneValue::Mask(b)) => LaneValue::Mask(self.mask_alu(MaskAlu::Xor, a, b)),
            (LaneValue::Constant(1), LaneValue::Mask(a)) | (LaneValue::Mask(a), LaneValue::Constant(1)) => {
                LaneValue::Mask(self.mask_not(a))
            }
            _ => self.bitwise(Alu::Xor, x, y),
        }
    }

    /// Bitwise `or` or `xor`.
    fn bitwise(&mut self, op: Alu, x: LaneValue, y: LaneValue) -> LaneValue {
        let (first, second) = match x {
            LaneValue::Constant(_) => (y, x),
            _ => (x, y),
        };
        let (a, b) = (self.as_vector(first), self.as_source(second));
        let other = match b {
            Source::V(v) => self.bound(v),
            Source::Constant(value) => value,
        };
        let result = self.alu(op, a, b);
        // All bits below the highest one that may be set.
        let most = self.bound(a) | other;
        self.bounded(result, u64::MAX.checked_shr(most.leading_zeros()).unwrap_or(0));
        LaneValue::Vector(result)
    }

    fn shifted(&mut self, opcode: Opcode, x: LaneValue, by: LaneValue, bits: u32) -> LaneValue {
        match by {
            LaneValue::Constant(by) => self.shifted_by(opcode, x, by as u32 % bits, bits),
            _ => {
                let mut by = self.as_vector(by);
                if self.bound(by) >= u64::from(bits) {
                    by = self.alu(Alu::And, by, Source::Constant(u64::from(bits) - 1));
                }
                let by = Source::V(by);
                let result = match opcode {
                    Opcode::Sshr => {
                        let extended = self.extended_by_sign(x, bits);
                        self.alu(Alu::ShiftRightSigned, extended, by)
                    }
                    other => {
                        let v = self.as_vector(x);
                        let op = match other {
                            Opcode::Ishl => Alu::ShiftLeft,
                            Opcode::Ushr => Alu::ShiftRight,
                            _ if bits == 64 => Alu::RotateLeft,
                            _ => Alu::RotateHalvesLeft,
                        };
                        let result = self.alu(op, v, by);
                        if opcode == Opcode::Ushr {
                            let most = self.bound(v);
                            self.bounded(result, most);
                        }
                        result
                    }
                };
                self.narrowed(result, bits)
            }
        }
    }

    fn shifted_by(&mut self, opcode: Opcode, x: LaneValue, by: u32, bits: u32) -> LaneValue {
        if by == 0 {
            return x;
        }
        match opcode {
            Opcode::Ishl => self.shifted_left(x, by, bits),
            Opcode::Ushr => self.shifted_right(x, by),
            Opcode::Sshr => {
                let extended = self.extended_by_sign(x, bits);
                let shifted = self.shift(ShiftOp::RightSigned, extended, by as u8);
                self.narrowed(shifted, bits)
            }
            Opcode::Rotr => self.rotated(x, bits - by, bits),
            _ => self.rotated(x, by, bits),
        }
    }

    fn shifted_left(&mut self, x: LaneValue, by: u32, bits: u32) -> LaneValue {
        if let LaneValue::Constant(value) = x {
            return LaneValue::Constant(value << by & ones(bits));
        }
        if by.is_multiple_of(8)
            && let Some(bytes) = self.as_bytes(x, 8)
        {
            return LaneValue::Bytes(bytes::low_bytes(&bytes::shift_bytes(&bytes, by as i32 / 8), bits / 8));
        }
        let v = self.as_vector(x);
        let shifted = self.shift(ShiftOp::Left, v, by as u8);
        if let Some(most) = self.bound(v).checked_mul(1 << by) {
            self.bounded(shifted, most);
        }
        self.narrowed(shifted, bits)
    }

    fn shifted_right(&mut self, x: LaneValue, by: u32) -> LaneValue {
        if let LaneValue::Constant(value) = x {
            return LaneValue::Constant(value >> by);
        }
        if by.is_multiple_of(8)
            && let Some(bytes) = self.as_bytes(x, 8)
        {
            return LaneValue::Bytes(bytes::shift_bytes(&bytes, -(by as i32) / 8));
        }
        let v = self.as_vector(x);
        let shifted = self.shift(ShiftOp::Right, v, by as u8);
        let most = self.bound(v) >> by;
        self.bounded(shifted, most);
        LaneValue::Vector(shifted)
    }

    fn rotated(&mut self, x: LaneValue, by: u32, bits: u32) -> LaneValue {
        let v = self.as_vector(x);
        match bits {
            64 => LaneValue::Vector(self.shift(ShiftOp::RotateLeft, v, by as u8)),
            32 => {
                let rotated = self.shift(ShiftOp::RotateHalvesLeft, v, by as u8);
                self.bounded(rotated, ones(32));
                LaneValue::Vector(rotated)
            }
            _ => {
                let x = LaneValue::Vector(v);
                let (high, low) = (self.shifted_left(x, by, bits), self.shifted_right(x, bits - by));
                self.or(high, low)
            }
        }
    }

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
        let bits = self.bits(a);
        let (mut x, mut y, mut relation) = (self.value_of(a), self.value_of(b), relation);
        if let LaneValue::Constant(_) = x {
            (x, y, relation) = (y, x, relation.reversed());
        }
        if let (LaneValue::Mask(mask), LaneValue::Constant(value), Relation::Equal | Relation::NotEqual) =
            (x, y, relation)
        {
            return self.is_bit(mask, value, relation == Relation::Equal);
        }
        if let (LaneValue::Constant(0), Relation::Equal | Relation::NotEqual) = (y, relation) {
            let v = self.as_vector(x);
            return LaneValue::Mask(self.test(relation == Relation::NotEqual, v));
        }
        let (a, b) = if signed {
            let (a, b) = (self.extended_by_sign(x, bits), self.extended_by_sign(y, bits));
            (a, Source::V(b))
        } else {
            (self.as_vector(x), self.as_source(y))
        };
        let dst = self.code.mask();
        self.op(Op::Compare {
            relation,
            signed,
            dst,
            a,
            b,
        });
        LaneValue::Mask(dst)
    }

    /// Whether a bit equals, or differs from, a number.
    fn is_bit(&mut self, mask: M, value: u64, equal: bool) -> LaneValue {
        match (value, equal) {
            (1, true) | (0, false) => LaneValue::Mask(mask),
            (0, true) | (1, false) => LaneValue::Mask(self.mask_not(mask)),
            _ => LaneValue::Constant(u64::from(!equal)),
        }
    }

    fn select(&mut self, condition: Value, a: Value, b: Value) -> LaneValue {
        let condition = self.value_of(condition);
        let (set, clear) = (self.value_of(a), self.value_of(b));
        if let (LaneValue::Unloaded(address, offset), LaneValue::Uniform(default)) = (set, clear)
            && condition == set
        {
            return LaneValue::Vector(self.find_records(address, offset, default));
        }
        // Loaded once: memory may change between two loads.
        let (condition, set) = match (condition, set) {
            (LaneValue::Unloaded(..), _) if condition == set => {
                let word = LaneValue::Vector(self.as_vector(set));
                (word, word)
            }
            both => both,
        };
        let mask = match self.as_mask(condition) {
            Ok(mask) => mask,
            Err(true) => return set,
            Err(false) => return clear,
        };
        match (set, clear) {
            (LaneValue::Constant(1), LaneValue::Constant(0)) => LaneValue::Mask(mask),
            (LaneValue::Constant(0), LaneValue::Constant(1)) => LaneValue::Mask(self.mask_not(mask)),
            (LaneValue::Mask(x), LaneValue::Mask(y)) => {
                let x = self.mask_alu(MaskAlu::And, mask, x);
                let y = self.mask_alu(MaskAlu::AndNot, mask, y);
                LaneValue::Mask(self.mask_alu(MaskAlu::Or, x, y))
            }
            _ => {
                let (clear, set) = (self.as_vector(clear), self.as_source(set));
                let dst = self.code.vector();
                self.op(Op::Blend { dst, mask, clear, set });
                let most = match set {
                    Source::V(v) => self.bound(v),
                    Source::Constant(value) => value,
                };
                let most = most.max(self.bound(clear));
                self.bounded(dst, most);
                LaneValue::Vector(dst)
            }
        }
    }
}
