//! Operators.

use super::expr::RUN_TIME_INT;
use super::value::Val;
use super::{Lowerer, boolean, constant};
use crate::types::{Ty, TyKind};
use num_bigint::BigInt;
use num_traits::{Signed, ToPrimitive, Zero};
use weir_ir::{BinaryOp as Op, Bits, Operand, Rvalue, Terminator, UnaryOp as IrUnary, VarKind};
use weir_syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

impl<'a> Lowerer<'a, '_> {
    pub(super) fn unary(&mut self, expr: &'a Expr, op: UnaryOp, operand: &'a Expr) -> Val {
        match (op, self.expr(operand)) {
            (UnaryOp::Plus, value) => value,
            (UnaryOp::Negate, Val::Int(v)) => Val::Int(-v),
            (UnaryOp::Complement, Val::Int(v)) => Val::Int(-v - 1),
            (UnaryOp::Not | UnaryOp::Complement, Val::Scalar(value)) => {
                let width = self.width_of(&value);
                Val::Scalar(self.compute(Rvalue::Unary(IrUnary::Not, value), width))
            }
            (UnaryOp::Negate, Val::Scalar(value)) => {
                let width = self.width_of(&value);
                Val::Scalar(self.compute(Rvalue::Unary(IrUnary::Neg, value), width))
            }
            (_, other) => {
                let _ = expr;
                other
            }
        }
    }

    pub(super) fn binary_expr(&mut self, expr: &'a Expr, op: BinaryOp, a: &'a Expr, b: &'a Expr) -> Val {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            return Val::Scalar(self.short_circuit(op, a, b));
        }
        let values = self.in_order([a, b].into_iter());
        let [x, y] = &values[..] else { return Val::Void };
        let (ta, tb) = (self.ty(a), self.ty(b));
        let result = self.ty(expr);
        self.at(expr.span, |s| s.operate(op, x.clone(), ta, y.clone(), tb, result, expr))
    }

    pub(super) fn short_circuit(&mut self, op: BinaryOp, a: &'a Expr, b: &'a Expr) -> Operand {
        let x = self.condition(a);
        if let Operand::Const(c) = &x {
            if c.is_zero() == (op == BinaryOp::And) {
                return x;
            }
            return self.condition(b);
        }
        if !self.has_effects(b) && !self.may_fail(b) {
            let y = self.condition(b);
            let op = if op == BinaryOp::And { Op::And } else { Op::Or };
            return self.binary(op, x, y, 1);
        }
        let result = self.temporary(1);
        self.program.vars[result].kind = VarKind::Local;
        self.program.vars[result].name = "condition".into();
        self.set(result, x.clone());
        let more = self.new_block();
        let done = self.new_block();
        let (then, otherwise) = if op == BinaryOp::And {
            (more, done)
        } else {
            (done, more)
        };
        self.terminate_to(
            Terminator::Branch {
                condition: x,
                then,
                otherwise,
            },
            more,
        );
        let y = self.condition(b);
        self.set(result, y);
        self.goto(done);
        Operand::Var(result)
    }

    /// In a parser `stack.last` can fail, so it must not be evaluated for nothing.
    pub(super) fn may_fail(&self, expr: &Expr) -> bool {
        self.reject.is_some()
            && match &expr.kind {
                ExprKind::Member(base, member) => matches!(&*member.name, "next" | "last") || self.may_fail(base),
                ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => self.may_fail(a) || self.may_fail(b),
                ExprKind::Unary(_, e) | ExprKind::Cast(_, e) => self.may_fail(e),
                ExprKind::Slice(e, ..) | ExprKind::PlusSlice(e, ..) => self.may_fail(e),
                ExprKind::Conditional(a, b, c) => self.may_fail(a) || self.may_fail(b) || self.may_fail(c),
                _ => false,
            }
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn operate(&mut self, op: BinaryOp, x: Val, ta: Ty, y: Val, tb: Ty, result: Ty, expr: &Expr) -> Val {
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            return self.equality(op, x, ta, y, tb);
        }
        match (&x, &y) {
            (Val::String(a), Val::String(b)) => return Val::String(format!("{a}{b}").into()),
            (Val::Int(a), Val::Int(b)) => return self.operate_int(op, a, b, expr),
            _ => {}
        }
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            return self.shift(op, x, ta, y);
        }
        if let (TyKind::Integer, TyKind::Integer) = (self.kind(ta), self.kind(tb)) {
            return self.operate_cast_to_int(op, &x, &y);
        }
        // An `int` takes the type of the other side.
        let shared = if matches!(self.kind(ta), TyKind::Integer) {
            tb
        } else {
            ta
        };
        let (Val::Scalar(x), Val::Scalar(y)) = (
            self.convert(x, ta, shared),
            self.convert(y, tb, if op == BinaryOp::Concat { tb } else { shared }),
        ) else {
            return Val::Void;
        };
        let signed = self.is_signed(shared);
        let width = self.scalar_width(result).unwrap_or(0);
        let (op, x, y) = match op {
            BinaryOp::Add => (Op::Add, x, y),
            BinaryOp::Sub => (Op::Sub, x, y),
            BinaryOp::Mul => (Op::Mul, x, y),
            BinaryOp::Div => (Op::Div, x, y),
            BinaryOp::Mod => (Op::Mod, x, y),
            BinaryOp::AddSat => (if signed { Op::AddSatSigned } else { Op::AddSat }, x, y),
            BinaryOp::SubSat => (if signed { Op::SubSatSigned } else { Op::SubSat }, x, y),
            BinaryOp::BitAnd => (Op::And, x, y),
            BinaryOp::BitOr => (Op::Or, x, y),
            BinaryOp::BitXor => (Op::Xor, x, y),
            BinaryOp::Lt => (if signed { Op::LtSigned } else { Op::Lt }, x, y),
            BinaryOp::Le => (if signed { Op::LeSigned } else { Op::Le }, x, y),
            BinaryOp::Gt => (if signed { Op::LtSigned } else { Op::Lt }, y, x),
            BinaryOp::Ge => (if signed { Op::LeSigned } else { Op::Le }, y, x),
            _ => (Op::Concat, x, y),
        };
        Val::Scalar(self.binary(op, x, y, width))
    }

    /// Arithmetic of `int` on values known only at run time, which casts to `int` give: in
    /// [`RUN_TIME_INT`] bits, which no cast to a narrower type can tell from exact arithmetic.
    pub(super) fn operate_cast_to_int(&mut self, op: BinaryOp, x: &Val, y: &Val) -> Val {
        let wide = |v: &Val| match v {
            Val::Scalar(operand) => Some(operand.clone()),
            Val::Int(v) => Some(Operand::Const(Bits::from_bigint(RUN_TIME_INT, v))),
            _ => None,
        };
        let (Some(x), Some(y)) = (wide(x), wide(y)) else {
            return Val::Void;
        };
        let (op, x, y, width) = match op {
            BinaryOp::Add => (Op::Add, x, y, RUN_TIME_INT),
            BinaryOp::Sub => (Op::Sub, x, y, RUN_TIME_INT),
            BinaryOp::Mul => (Op::Mul, x, y, RUN_TIME_INT),
            BinaryOp::Div => (Op::Div, x, y, RUN_TIME_INT),
            BinaryOp::Mod => (Op::Mod, x, y, RUN_TIME_INT),
            BinaryOp::BitAnd => (Op::And, x, y, RUN_TIME_INT),
            BinaryOp::BitOr => (Op::Or, x, y, RUN_TIME_INT),
            BinaryOp::BitXor => (Op::Xor, x, y, RUN_TIME_INT),
            BinaryOp::Lt => (Op::LtSigned, x, y, 1),
            BinaryOp::Le => (Op::LeSigned, x, y, 1),
            BinaryOp::Gt => (Op::LtSigned, y, x, 1),
            BinaryOp::Ge => (Op::LeSigned, y, x, 1),
            _ => return Val::Void,
        };
        Val::Scalar(self.binary(op, x, y, width))
    }

    pub(super) fn shift(&mut self, op: BinaryOp, x: Val, ta: Ty, y: Val) -> Val {
        let signed = self.is_signed(ta);
        let distance = match y {
            Val::Int(v) => Operand::Const(Bits::new(64, v.to_u64().unwrap_or(u64::MAX).into())),
            Val::Scalar(operand) => operand,
            _ => return Val::Void,
        };
        match x {
            Val::Scalar(x) => {
                let width = self.width_of(&x);
                let op = match op {
                    BinaryOp::Shl => Op::Shl,
                    _ if signed => Op::ShrSigned,
                    _ => Op::Shr,
                };
                Val::Scalar(self.binary(op, x, distance, width))
            }
            Val::Int(v) => match distance {
                Operand::Const(d) => {
                    let d = d.to_u64_saturating().min(1 << 16);
                    Val::Int(if op == BinaryOp::Shl { v << d } else { v >> d })
                }
                Operand::Var(_) => Val::Void,
            },
            _ => Val::Void,
        }
    }

    pub(super) fn operate_int(&mut self, op: BinaryOp, a: &BigInt, b: &BigInt, expr: &Expr) -> Val {
        Val::Int(match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div | BinaryOp::Mod if b.is_zero() || b.is_negative() || a.is_negative() => {
                self.error(
                    "expr",
                    expr.span,
                    "division needs a positive divisor and a dividend that is not negative",
                );
                BigInt::zero()
            }
            BinaryOp::Div => a / b,
            BinaryOp::Mod => a % b,
            BinaryOp::Shl => a << b.to_u64().unwrap_or(0).min(1 << 16),
            BinaryOp::Shr => a >> b.to_u64().unwrap_or(u64::MAX).min(1 << 16),
            BinaryOp::BitAnd => a & b,
            BinaryOp::BitOr => a | b,
            BinaryOp::BitXor => a ^ b,
            BinaryOp::Lt => return Val::Scalar(boolean(a < b)),
            BinaryOp::Le => return Val::Scalar(boolean(a <= b)),
            BinaryOp::Gt => return Val::Scalar(boolean(a > b)),
            BinaryOp::Ge => return Val::Scalar(boolean(a >= b)),
            _ => return Val::Void,
        })
    }

    pub(super) fn equality(&mut self, op: BinaryOp, x: Val, ta: Ty, y: Val, tb: Ty) -> Val {
        // The side whose type comes from its context is converted to the other's.
        let loose = |k: &TyKind| {
            matches!(
                k,
                TyKind::Integer
                    | TyKind::Tuple(_)
                    | TyKind::Listed(_)
                    | TyKind::Fields(..)
                    | TyKind::InvalidHeader
                    | TyKind::Dots
            )
        };
        let (ka, kb) = (self.kind(ta), self.kind(tb));
        let (x, y) = if loose(&ka) && !matches!(kb, TyKind::Integer) {
            (self.convert(x, ta, tb), y)
        } else if loose(&kb) {
            let y = self.convert(y, tb, ta);
            (x, y)
        } else {
            (x, y)
        };
        let equal = self.equal(&x, &y);
        Val::Scalar(if op == BinaryOp::Eq { equal } else { self.not(equal) })
    }

    pub(super) fn conditional(&mut self, expr: &'a Expr, c: &'a Expr, a: &'a Expr, b: &'a Expr) -> Val {
        let condition = self.condition(c);
        let ty = self.ty(expr);
        if let Operand::Const(c) = &condition {
            return if c.is_zero() {
                self.expr_as(b, ty)
            } else {
                self.expr_as(a, ty)
            };
        }
        if !self.has_effects(a) && !self.has_effects(b) && !self.may_fail(a) && !self.may_fail(b) {
            let condition = self.copy(condition);
            let x = self.expr_as(a, ty);
            let y = self.expr_as(b, ty);
            return self.choose(&condition, &x, &y);
        }
        let result = self.allocate("choice", ty, VarKind::Temporary);
        let (then, otherwise, done) = (self.new_block(), self.new_block(), self.new_block());
        self.terminate_to(
            Terminator::Branch {
                condition,
                then,
                otherwise,
            },
            then,
        );
        let x = self.expr_as(a, ty);
        self.write(&result, &x);
        self.terminate_to(Terminator::Goto(done), otherwise);
        let y = self.expr_as(b, ty);
        self.write(&result, &y);
        self.goto(done);
        self.read(&result)
    }

    /// An explicit cast.
    pub(super) fn cast(&mut self, value: Val, from: Ty, to: Ty) -> Val {
        let signed = self.is_signed(from);
        match (value, self.kind(self.checked.representation(to))) {
            (Val::Int(v), TyKind::Bool) => Val::Scalar(boolean(!v.is_zero())),
            (Val::Int(v), TyKind::Integer) => Val::Int(v),
            (Val::Scalar(Operand::Const(c)), TyKind::Integer) => Val::Int(if signed {
                c.to_signed_bigint()
            } else {
                c.to_biguint().into()
            }),
            (Val::Scalar(x), TyKind::Integer) => Val::Scalar(if signed {
                self.compute(Rvalue::SignExtend(x), RUN_TIME_INT)
            } else {
                self.compute(Rvalue::ZeroExtend(x), RUN_TIME_INT)
            }),
            (Val::Scalar(x), TyKind::Bit(w) | TyKind::Int(w)) => {
                let width = self.width_of(&x);
                Val::Scalar(if width == w {
                    x
                } else if w < width {
                    if w == 0 {
                        constant(0, 0)
                    } else {
                        self.compute(
                            Rvalue::Slice {
                                value: x,
                                hi: w - 1,
                                lo: 0,
                            },
                            w,
                        )
                    }
                } else if signed {
                    self.compute(Rvalue::SignExtend(x), w)
                } else {
                    self.compute(Rvalue::ZeroExtend(x), w)
                })
            }
            (value, _) => self.convert(value, from, to),
        }
    }
}
