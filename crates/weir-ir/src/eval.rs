//! The meaning of [`Rvalue`]s on constants. Constant folding and the interpreter share it.

use crate::bits::Bits;
use crate::program::{BinaryOp, Operand, Rvalue, UnaryOp};
use std::cmp::Ordering;

/// The value of a unary operation.
#[must_use]
pub fn unary(op: UnaryOp, value: &Bits) -> Bits {
    match op {
        UnaryOp::Not => value.not(),
        UnaryOp::Neg => value.neg(),
    }
}

/// The value of a binary operation.
#[must_use]
pub fn binary(op: BinaryOp, a: &Bits, b: &Bits) -> Bits {
    match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Sub => a.sub(b),
        BinaryOp::Mul => a.mul(b),
        BinaryOp::Div => a.div(b),
        BinaryOp::Mod => a.rem(b),
        BinaryOp::AddSat => a.add_saturating(b),
        BinaryOp::SubSat => a.sub_saturating(b),
        BinaryOp::AddSatSigned => a.add_saturating_signed(b),
        BinaryOp::SubSatSigned => a.sub_saturating_signed(b),
        BinaryOp::And => a.and(b),
        BinaryOp::Or => a.or(b),
        BinaryOp::Xor => a.xor(b),
        BinaryOp::Shl => a.shl(b.to_u64_saturating()),
        BinaryOp::Shr => a.shr(b.to_u64_saturating()),
        BinaryOp::ShrSigned => a.shr_signed(b.to_u64_saturating()),
        BinaryOp::Eq => Bits::bool(a == b),
        BinaryOp::Ne => Bits::bool(a != b),
        BinaryOp::Lt => Bits::bool(a.cmp_unsigned(b) == Ordering::Less),
        BinaryOp::Le => Bits::bool(a.cmp_unsigned(b) != Ordering::Greater),
        BinaryOp::LtSigned => Bits::bool(a.cmp_signed(b) == Ordering::Less),
        BinaryOp::LeSigned => Bits::bool(a.cmp_signed(b) != Ordering::Greater),
        BinaryOp::Concat => a.concat(b),
    }
}

/// The value of an [`Rvalue`] whose result has `width` bits; `value` says what an operand is.
pub fn rvalue(rvalue: &Rvalue, width: u32, mut value: impl FnMut(&Operand) -> Bits) -> Bits {
    match rvalue {
        Rvalue::Use(a) => value(a),
        Rvalue::Unary(op, a) => unary(*op, &value(a)),
        Rvalue::Binary(op, a, b) => binary(*op, &value(a), &value(b)),
        Rvalue::Slice { value: v, hi, lo } => value(v).slice(*hi, *lo),
        Rvalue::Insert { base, hi, lo, value: v } => value(base).insert(*hi, *lo, &value(v)),
        Rvalue::ZeroExtend(a) => value(a).zero_extend(width),
        Rvalue::SignExtend(a) => value(a).sign_extend(width),
        Rvalue::Mux {
            condition,
            then,
            otherwise,
        } => {
            if value(condition).is_zero() {
                value(otherwise)
            } else {
                value(then)
            }
        }
        Rvalue::VarbitEq(a, b) => Bits::bool(value(a) == value(b)),
    }
}

impl Rvalue {
    /// Its operands in order.
    pub fn operands(&self) -> impl Iterator<Item = &Operand> {
        let (a, b, c) = match self {
            Rvalue::Use(a) | Rvalue::Unary(_, a) | Rvalue::ZeroExtend(a) | Rvalue::SignExtend(a) => {
                (Some(a), None, None)
            }
            Rvalue::Slice { value, .. } => (Some(value), None, None),
            Rvalue::Binary(_, a, b) | Rvalue::VarbitEq(a, b) => (Some(a), Some(b), None),
            Rvalue::Insert { base, value, .. } => (Some(base), Some(value), None),
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } => (Some(condition), Some(then), Some(otherwise)),
        };
        [a, b, c].into_iter().flatten()
    }

    /// Its operands in order, mutable.
    pub fn operands_mut(&mut self) -> impl Iterator<Item = &mut Operand> {
        let (a, b, c) = match self {
            Rvalue::Use(a) | Rvalue::Unary(_, a) | Rvalue::ZeroExtend(a) | Rvalue::SignExtend(a) => {
                (Some(a), None, None)
            }
            Rvalue::Slice { value, .. } => (Some(value), None, None),
            Rvalue::Binary(_, a, b) | Rvalue::VarbitEq(a, b) => (Some(a), Some(b), None),
            Rvalue::Insert { base, value, .. } => (Some(base), Some(value), None),
            Rvalue::Mux {
                condition,
                then,
                otherwise,
            } => (Some(condition), Some(then), Some(otherwise)),
        };
        [a, b, c].into_iter().flatten()
    }
}
