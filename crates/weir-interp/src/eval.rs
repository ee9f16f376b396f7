//! Values of expressions. Plain on purpose: this is what the IR's operators mean.

use crate::frame::Frame;
use std::cmp::Ordering;
use weir_ir::{BinaryOp, Bits, Operand, Rvalue, UnaryOp};

/// The value of an operand.
pub(crate) fn operand<'a>(frame: &'a Frame, operand: &'a Operand) -> &'a Bits {
    match operand {
        Operand::Var(var) => frame.get(*var),
        Operand::Const(value) => value,
    }
}

/// The value of an expression; `width` is the destination's.
pub(crate) fn rvalue(frame: &Frame, value: &Rvalue, width: u32) -> Bits {
    let get = |o| operand(frame, o);
    match value {
        Rvalue::Use(a) => get(a).clone(),
        Rvalue::Unary(UnaryOp::Not, a) => get(a).not(),
        Rvalue::Unary(UnaryOp::Neg, a) => get(a).neg(),
        Rvalue::Binary(op, a, b) => binary(*op, get(a), get(b)),
        Rvalue::Slice { value, hi, lo } => get(value).slice(*hi, *lo),
        Rvalue::Insert { base, hi, lo, value } => get(base).insert(*hi, *lo, get(value)),
        Rvalue::ZeroExtend(a) => get(a).zero_extend(width),
        Rvalue::SignExtend(a) => get(a).sign_extend(width),
        Rvalue::Mux {
            condition,
            then,
            otherwise,
        } => get(if get(condition).is_zero() { otherwise } else { then }).clone(),
        Rvalue::VarbitEq(a, b) => Bits::bool(get(a) == get(b)),
    }
}

/// The value of a binary operation.
pub(crate) fn binary(op: BinaryOp, a: &Bits, b: &Bits) -> Bits {
    let distance = || b.to_u64_saturating();
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
        BinaryOp::Shl => a.shl(distance()),
        BinaryOp::Shr => a.shr(distance()),
        BinaryOp::ShrSigned => a.shr_signed(distance()),
        BinaryOp::Eq => Bits::bool(a == b),
        BinaryOp::Ne => Bits::bool(a != b),
        BinaryOp::Lt => Bits::bool(a.cmp_unsigned(b) == Ordering::Less),
        BinaryOp::Le => Bits::bool(a.cmp_unsigned(b) != Ordering::Greater),
        BinaryOp::LtSigned => Bits::bool(a.cmp_signed(b) == Ordering::Less),
        BinaryOp::LeSigned => Bits::bool(a.cmp_signed(b) != Ordering::Greater),
        BinaryOp::Concat => a.concat(b),
    }
}
