//! Emits the values of expressions: inline if they are narrow or simple, otherwise by the runtime.

use super::SegmentBuilder;
use super::bit_count::BitSum;
use crate::sites::WideOp;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value};
use weir_ir::{BinaryOp, Operand, Rvalue, UnaryOp, VarId};

impl SegmentBuilder<'_, '_> {
    /// `dst = value`
    pub(super) fn assign(&mut self, dst: VarId, value: &Rvalue) {
        let info = self.cx.analysis.vars[dst.index()];
        let narrow_operands = value.operands().all(|o| self.is_narrow(o));
        if info.is_narrow() {
            let result = if narrow_operands {
                self.narrow(value, info.width)
            } else {
                self.narrow_of_wide(value, dst)
            };
            self.set(dst, result);
            return;
        }
        let Some(home) = self.cx.layout.rows[dst.index()] else {
            return;
        };
        match value {
            Rvalue::Use(source) => {
                for i in 0..info.home_words() {
                    let word = self.word(source, i);
                    self.store_row(home + i, word);
                }
            }
            Rvalue::ZeroExtend(source) if !info.varbit && self.width(source) <= info.width && self.is_plain(source) => {
                let words = self.width(source).div_ceil(64) as usize;
                for i in 0..info.home_words() {
                    let word = if i < words { self.word(source, i) } else { self.imm(0) };
                    self.store_row(home + i, word);
                }
            }
            Rvalue::Binary(op @ (BinaryOp::And | BinaryOp::Or | BinaryOp::Xor), a, b) if !info.varbit => {
                for i in 0..info.home_words() {
                    let (x, y) = (self.word(a, i), self.word(b, i));
                    let word = match op {
                        BinaryOp::And => self.b.ins().band(x, y),
                        BinaryOp::Or => self.b.ins().bor(x, y),
                        _ => self.b.ins().bxor(x, y),
                    };
                    self.store_row(home + i, word);
                }
            }
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } if self.is_narrow(condition) => {
                let c = self.value(condition);
                // An empty varbit has length 0, and its address is never used.
                for i in 0..info.home_words() {
                    let (x, y) = (self.word(then, i), self.word(otherwise, i));
                    let word = self.b.ins().select(c, x, y);
                    self.store_row(home + i, word);
                }
            }
            _ => {
                let operands: Vec<Operand> = value.operands().cloned().collect();
                self.wide_call(
                    WideOp {
                        dst: Some(dst),
                        value: value.clone(),
                        width: info.width,
                    },
                    &operands,
                );
            }
        }
    }

    /// Whether it is not a varbit, so that its words begin at its home.
    fn is_plain(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Var(v) => !self.cx.analysis.vars[v.index()].varbit,
            Operand::Const(_) => true,
        }
    }

    /// A narrow result of wide operands.
    fn narrow_of_wide(&mut self, value: &Rvalue, dst: VarId) -> Value {
        let width = self.cx.analysis.vars[dst.index()].width;
        match value {
            Rvalue::Slice { value: v, hi, lo } if self.is_plain(v) && hi - lo < 64 => {
                let (word, shift) = ((lo / 64) as usize, u64::from(lo % 64));
                let low = self.word(v, word);
                let low = self.shr_imm(low, shift);
                if (hi / 64) as usize == word {
                    return self.mask(low, hi - lo + 1);
                }
                let high = self.word(v, word + 1);
                let high = self.shl_imm(high, 64 - shift);
                let both = self.b.ins().bor(low, high);
                self.mask(both, hi - lo + 1)
            }
            Rvalue::ZeroExtend(v) if self.is_plain(v) => {
                let low = self.word(v, 0);
                self.mask(low, width)
            }
            Rvalue::Binary(BinaryOp::Eq, a, b) if self.is_plain(a) && self.is_plain(b) => self.equal(a, b),
            Rvalue::Binary(BinaryOp::Ne, a, b) if self.is_plain(a) && self.is_plain(b) => {
                let equal = self.equal(a, b);
                let one = self.imm(1);
                self.b.ins().bxor(equal, one)
            }
            _ => {
                let operands: Vec<Operand> = value.operands().cloned().collect();
                let op = WideOp {
                    dst: None,
                    value: value.clone(),
                    width,
                };
                self.wide_call(op, &operands)
            }
        }
    }

    /// Whether two operands of equal type are equal: 0 or 1.
    pub(super) fn equal(&mut self, a: &Operand, b: &Operand) -> Value {
        let words = self.words_of(a).max(self.words_of(b));
        if words <= 1 {
            let (value, constant) = match (a, b) {
                (Operand::Const(c), other) | (other, Operand::Const(c)) => (other, c.to_u64()),
                (other, _) => (other, None),
            };
            if let Some(constant) = constant {
                let x = self.word(value, 0);
                return self.equal_constant(x, constant, self.width(value));
            }
            let (x, y) = (self.word(a, 0), self.word(b, 0));
            return self.compare(IntCC::Equal, x, y);
        }
        let mut difference = self.imm(0);
        for i in 0..words {
            let (x, y) = (self.word(a, i), self.word(b, i));
            let d = self.b.ins().bxor(x, y);
            difference = self.b.ins().bor(difference, d);
        }
        let zero = self.imm(0);
        self.compare(IntCC::Equal, difference, zero)
    }

    /// Whether a narrow value of this width equals a constant.
    fn equal_constant(&mut self, value: Value, constant: u64, width: u32) -> Value {
        match (width, constant) {
            (1, 0) => self.invert(value),
            (1, _) => value,
            _ => {
                let ones = u64::MAX >> 64_u32.saturating_sub(width.max(1));
                if let Some(equal) = self.equal_in_packet(value, constant, ones) {
                    return equal;
                }
                let constant = self.imm(constant);
                self.compare(IntCC::Equal, value, constant)
            }
        }
    }

    fn words_of(&self, operand: &Operand) -> usize {
        match operand {
            Operand::Var(v) if !self.cx.analysis.vars[v.index()].is_narrow() => {
                self.cx.analysis.vars[v.index()].home_words()
            }
            other => self.width(other).div_ceil(64) as usize,
        }
    }

    /// `key & mask == value & mask`
    pub(super) fn equal_masked(&mut self, key: &Operand, value: &Operand, mask: &Operand) -> Value {
        if let (true, Operand::Const(value), Operand::Const(mask)) = (self.is_narrow(key), value, mask)
            && let (Some(value), Some(mask)) = (value.to_u64(), mask.to_u64())
        {
            let x = self.value(key);
            if let Some(equal) = self.equal_in_packet(x, value, mask) {
                return equal;
            }
        }
        let mut difference = self.imm(0);
        for i in 0..self.width(key).div_ceil(64).max(1) as usize {
            let (k, v, m) = (self.word(key, i), self.word(value, i), self.word(mask, i));
            let d = self.b.ins().bxor(k, v);
            let d = self.b.ins().band(d, m);
            difference = self.b.ins().bor(difference, d);
        }
        let zero = self.imm(0);
        self.compare(IntCC::Equal, difference, zero)
    }

    pub(super) fn less_or_equal(&mut self, a: &Operand, b: &Operand, signed: bool) -> Value {
        let op = if signed { BinaryOp::LeSigned } else { BinaryOp::Le };
        let value = Rvalue::Binary(op, a.clone(), b.clone());
        if self.is_narrow(a) && self.is_narrow(b) {
            return self.narrow(&value, 1);
        }
        let operands = [a.clone(), b.clone()];
        self.wide_call(
            WideOp {
                dst: None,
                value,
                width: 1,
            },
            &operands,
        )
    }

    /// A narrow value, sign-extended to 64 bits.
    fn signed(&mut self, value: Value, width: u32) -> Value {
        if width == 0 || width >= 64 {
            return value;
        }
        let by = self.imm(u64::from(64 - width));
        let up = self.b.ins().ishl(value, by);
        self.b.ins().sshr(up, by)
    }

    /// A narrow result of narrow operands.
    pub(super) fn narrow(&mut self, value: &Rvalue, width: u32) -> Value {
        match value {
            Rvalue::Use(a) => self.value(a),
            // Both are constants: varbits are not narrow.
            Rvalue::VarbitEq(a, b) => self.equal(a, b),
            Rvalue::Unary(UnaryOp::Not, a) if width == 1 => {
                let a = self.value(a);
                self.invert(a)
            }
            Rvalue::Unary(UnaryOp::Not, a) => {
                let a = self.value(a);
                let not = self.b.ins().bnot(a);
                self.mask(not, width)
            }
            Rvalue::Unary(UnaryOp::Neg, a) => {
                let a = self.value(a);
                let neg = self.b.ins().ineg(a);
                self.mask(neg, width)
            }
            Rvalue::Binary(BinaryOp::Eq, a, b) => self.equal(a, b),
            Rvalue::Binary(BinaryOp::Ne, a, b @ Operand::Const(_)) => {
                let equal = self.equal(a, b);
                self.invert(equal)
            }
            Rvalue::Binary(op, a, b) => self.binary(*op, a, b, width),
            Rvalue::Slice { value, hi, lo } => {
                let v = self.value(value);
                // The value may have been zero-extended.
                if let (true, Some(&(bit, width))) = (self.may_move, self.origins.get(&v))
                    && *hi < width
                {
                    let packet = self.packet();
                    let part = self.load_bits(packet, bit + width - 1 - hi, hi - lo + 1);
                    if hi == lo {
                        self.bit_sums.insert(part, BitSum::bit(v, *lo));
                    }
                    return part;
                }
                let shifted = self.shr_imm(v, (*lo).into());
                self.mask(shifted, hi - lo + 1)
            }
            Rvalue::Insert { base, hi, lo, value } => {
                let (base, value) = (self.value(base), self.value(value));
                let size = hi - lo + 1;
                let hole = if size >= 64 {
                    u64::MAX
                } else {
                    ((1u64 << size) - 1) << lo
                };
                let keep = self.imm(!hole);
                let kept = self.b.ins().band(base, keep);
                let shifted = self.shl_imm(value, (*lo).into());
                self.b.ins().bor(kept, shifted)
            }
            Rvalue::ZeroExtend(a) => {
                let v = self.value(a);
                if self.width(a) > width { self.mask(v, width) } else { v }
            }
            Rvalue::SignExtend(a) => {
                let v = self.value(a);
                let v = self.signed(v, self.width(a));
                self.mask(v, width)
            }
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } => {
                let c = self.value(condition);
                let (x, y) = (self.value(then), self.value(otherwise));
                self.b.ins().select(c, x, y)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Operand, b: &Operand, width: u32) -> Value {
        let (wa, wb) = (self.width(a), self.width(b));
        let (x, y) = (self.value(a), self.value(b));
        match op {
            BinaryOp::Add => {
                let sum = self.add_bits(x, y).unwrap_or_else(|| self.add(x, y));
                self.mask(sum, width)
            }
            BinaryOp::Sub => {
                let difference = self.b.ins().isub(x, y);
                self.mask(difference, width)
            }
            BinaryOp::Mul => {
                let product = self.b.ins().imul(x, y);
                self.mask(product, width)
            }
            BinaryOp::Div | BinaryOp::Mod => {
                let (zero, one) = (self.imm(0), self.imm(1));
                let none = self.b.ins().icmp(IntCC::Equal, y, zero);
                let safe = self.b.ins().select(none, one, y);
                let result = match op {
                    BinaryOp::Div => self.b.ins().udiv(x, safe),
                    _ => self.b.ins().urem(x, safe),
                };
                self.b.ins().select(none, zero, result)
            }
            BinaryOp::AddSat => {
                let sum = self.b.ins().iadd(x, y);
                let top = self.ones(width);
                let over = match width >= 64 {
                    true => self.b.ins().icmp(IntCC::UnsignedLessThan, sum, x),
                    false => self.b.ins().icmp(IntCC::UnsignedGreaterThan, sum, top),
                };
                self.b.ins().select(over, top, sum)
            }
            BinaryOp::SubSat => {
                let difference = self.b.ins().isub(x, y);
                let under = self.b.ins().icmp(IntCC::UnsignedLessThan, x, y);
                let zero = self.imm(0);
                self.b.ins().select(under, zero, difference)
            }
            BinaryOp::AddSatSigned | BinaryOp::SubSatSigned => self.saturating_signed(op, x, y, width),
            BinaryOp::And => {
                let most = self.upper_bound(x).min(self.upper_bound(y));
                let both = self.b.ins().band(x, y);
                self.bounded(both, most)
            }
            BinaryOp::Or => self.b.ins().bor(x, y),
            BinaryOp::Xor => self.b.ins().bxor(x, y),
            BinaryOp::Shl | BinaryOp::Shr if matches!(b, Operand::Const(_)) => {
                let by = match b {
                    Operand::Const(c) => c.to_u64_saturating(),
                    Operand::Var(_) => 0,
                };
                match op {
                    _ if by >= u64::from(width) => self.imm(0),
                    BinaryOp::Shl => {
                        let shifted = self.shl_imm(x, by);
                        self.mask(shifted, width)
                    }
                    _ => self.shr_imm(x, by),
                }
            }
            BinaryOp::Shl | BinaryOp::Shr => {
                let limit = self.imm(width.into());
                let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, y, limit);
                let shifted = match op {
                    BinaryOp::Shl => self.b.ins().ishl(x, y),
                    _ => self.b.ins().ushr(x, y),
                };
                let shifted = self.mask(shifted, width);
                let zero = self.imm(0);
                self.b.ins().select(beyond, zero, shifted)
            }
            BinaryOp::ShrSigned => {
                let wide = self.signed(x, width);
                let limit = self.imm(63);
                let beyond = self.b.ins().icmp(IntCC::UnsignedGreaterThan, y, limit);
                let distance = self.b.ins().select(beyond, limit, y);
                let shifted = self.b.ins().sshr(wide, distance);
                self.mask(shifted, width)
            }
            BinaryOp::Eq => self.compare(IntCC::Equal, x, y),
            BinaryOp::Ne => self.compare(IntCC::NotEqual, x, y),
            BinaryOp::Lt => self.compare(IntCC::UnsignedLessThan, x, y),
            BinaryOp::Le => self.compare(IntCC::UnsignedLessThanOrEqual, x, y),
            BinaryOp::LtSigned | BinaryOp::LeSigned => {
                let (x, y) = (self.signed(x, wa), self.signed(y, wb));
                let cc = match op {
                    BinaryOp::LtSigned => IntCC::SignedLessThan,
                    _ => IntCC::SignedLessThanOrEqual,
                };
                self.compare(cc, x, y)
            }
            BinaryOp::Concat => {
                let high = if wb >= 64 {
                    self.imm(0)
                } else {
                    self.shl_imm(x, wb.into())
                };
                self.b.ins().bor(high, y)
            }
        }
    }

    fn ones(&mut self, width: u32) -> Value {
        let ones = if width >= 64 { u64::MAX } else { (1u64 << width) - 1 };
        self.imm(ones)
    }

    fn saturating_signed(&mut self, op: BinaryOp, x: Value, y: Value, width: u32) -> Value {
        if width == 0 {
            return self.imm(0);
        }
        let (x, y) = (self.signed(x, width), self.signed(y, width));
        let result = match op {
            BinaryOp::AddSatSigned => self.b.ins().iadd(x, y),
            _ => self.b.ins().isub(x, y),
        };
        let most = (1u64 << (width - 1)) - 1;
        let (highest, lowest) = (self.imm(most), self.imm(!most));
        let (over, under) = if width < 64 {
            (
                self.b.ins().icmp(IntCC::SignedGreaterThan, result, highest),
                self.b.ins().icmp(IntCC::SignedLessThan, result, lowest),
            )
        } else {
            // Overflow: the result's sign differs from the one that the operands' signs imply.
            let y = match op {
                BinaryOp::AddSatSigned => y,
                _ => self.b.ins().bnot(y),
            };
            let a = self.b.ins().bxor(result, x);
            let same = self.b.ins().bxor(x, y);
            let same = self.b.ins().bnot(same);
            let wrong = self.b.ins().band(a, same);
            let zero = self.imm(0);
            let overflow = self.b.ins().icmp(IntCC::SignedLessThan, wrong, zero);
            let negative = self.b.ins().icmp(IntCC::SignedLessThan, x, zero);
            let positive = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, x, zero);
            (
                self.b.ins().band(overflow, positive),
                self.b.ins().band(overflow, negative),
            )
        };
        let result = self.b.ins().select(over, highest, result);
        let result = self.b.ins().select(under, lowest, result);
        self.mask(result, width)
    }
}
