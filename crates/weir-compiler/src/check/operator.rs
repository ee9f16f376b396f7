//! Types of operators.

use super::{Checker, DefKind};
use crate::types::{Ty, TyKind, Types};
use num_traits::{Signed, Zero};
use weir_syntax::ast::{BinaryOp, Expr, StructKind, UnaryOp};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

/// How an operator is written.
pub(crate) fn symbol(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::Mod => "%",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::And => "&&",
        BinaryOp::Or => "||",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Concat => "++",
    }
}

impl<'a> Checker<'a> {
    /// An operand of arithmetic: a serializable enum counts as its representation.
    fn operand(&self, ty: Ty) -> Ty {
        match self.info.types.get(ty) {
            TyKind::Enum(def) => self.info.enum_underlying(*def).unwrap_or(ty),
            TyKind::Set(_) => ty,
            _ => ty,
        }
    }

    pub(super) fn unary(&mut self, expr: &'a Expr, op: UnaryOp, operand: &'a Expr, expected: Option<Ty>) -> Ty {
        let ty = self.expr(operand, expected);
        let numeric = self.operand(ty);
        match (op, self.kind(numeric)) {
            (_, TyKind::Unknown) => Types::UNKNOWN,
            (UnaryOp::Not, TyKind::Bool) => ty,
            (UnaryOp::Negate | UnaryOp::Plus, TyKind::Bit(_) | TyKind::Int(_) | TyKind::Integer) => numeric,
            (UnaryOp::Complement, TyKind::Bit(_) | TyKind::Int(_)) => numeric,
            (UnaryOp::Complement, TyKind::Integer) => {
                self.report(
                    Diagnostic::error("invalid", expr.span, "`~` needs a number of known width")
                        .help("write the constant with a width, e.g. 8w1"),
                );
                Types::UNKNOWN
            }
            _ => {
                let shown = self.show(ty);
                let symbol = match op {
                    UnaryOp::Not => "!",
                    UnaryOp::Negate => "-",
                    UnaryOp::Plus => "+",
                    UnaryOp::Complement => "~",
                };
                self.type_error(expr.span, format!("`{symbol}` cannot be applied to {shown}"))
            }
        }
    }

    pub(super) fn binary(
        &mut self,
        expr: &'a Expr,
        op: BinaryOp,
        a: &'a Expr,
        b: &'a Expr,
        expected: Option<Ty>,
    ) -> Ty {
        let hint = match op {
            BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::Concat => None,
            _ => expected,
        };
        let ta = self.expr(a, hint);
        let hint = if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            Some(ta)
        } else {
            hint
        };
        let tb = self.expr(b, hint);
        self.binary_type(expr.span, op, a, ta, b, tb)
    }

    pub(super) fn binary_type(&mut self, span: Span, op: BinaryOp, a: &'a Expr, ta: Ty, b: &'a Expr, tb: Ty) -> Ty {
        if self.is_unknown(ta) || self.is_unknown(tb) {
            return match op {
                BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
                | BinaryOp::And
                | BinaryOp::Or => Types::BOOL,
                _ => Types::UNKNOWN,
            };
        }
        match op {
            BinaryOp::And | BinaryOp::Or => {
                for (e, t) in [(a, ta), (b, tb)] {
                    if !self.unify(t, Types::BOOL) {
                        let shown = self.show(t);
                        self.error(
                            "type-error",
                            e.span,
                            format!("`{}` takes booleans, but this is {shown}", symbol(op)),
                        );
                        return Types::UNKNOWN;
                    }
                }
                Types::BOOL
            }
            BinaryOp::Eq | BinaryOp::Ne => self.equality(span, ta, tb),
            BinaryOp::Shl | BinaryOp::Shr => self.shift(span, op, ta, b, tb),
            BinaryOp::Concat => self.concatenation(span, ta, tb),
            _ => self.arithmetic(span, op, a, ta, b, tb),
        }
    }

    fn arithmetic(&mut self, span: Span, op: BinaryOp, a: &'a Expr, ta: Ty, b: &'a Expr, tb: Ty) -> Ty {
        let (x, y) = (self.operand(ta), self.operand(tb));
        let s = symbol(op);
        let comparison = matches!(op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
        let saturating = matches!(op, BinaryOp::AddSat | BinaryOp::SubSat);
        let result = match (self.kind(x), self.kind(y)) {
            (TyKind::Bit(v), TyKind::Bit(w)) | (TyKind::Int(v), TyKind::Int(w)) if v == w => x,
            (TyKind::Bit(v), TyKind::Bit(w)) | (TyKind::Int(v), TyKind::Int(w)) => {
                self.report(
                    Diagnostic::error(
                        "type-error",
                        span,
                        format!("the operands of `{s}` have different widths: {v} and {w} bits"),
                    )
                    .help("cast one of them: `(bit<W>) e`"),
                );
                return Types::UNKNOWN;
            }
            (TyKind::Bit(_), TyKind::Int(_)) | (TyKind::Int(_), TyKind::Bit(_)) => {
                self.report(
                    Diagnostic::error(
                        "type-error",
                        span,
                        format!("one operand of `{s}` is signed and the other is not"),
                    )
                    .help("cast one of them"),
                );
                return Types::UNKNOWN;
            }
            (TyKind::Integer, TyKind::Bit(_) | TyKind::Int(_)) => y,
            (TyKind::Bit(_) | TyKind::Int(_), TyKind::Integer) => x,
            (TyKind::Integer, TyKind::Integer) if saturating => {
                self.report(
                    Diagnostic::error("invalid", span, format!("`{s}` needs numbers of known width"))
                        .help("write the constants with a width, e.g. 8w1"),
                );
                return Types::UNKNOWN;
            }
            (TyKind::Integer, TyKind::Integer) => x,
            (TyKind::Infer(_), _) | (_, TyKind::Infer(_)) if self.unify(x, y) => x,
            _ => {
                let (p, q) = (self.show(ta), self.show(tb));
                return self.type_error(span, format!("`{s}` is not defined on {p} and {q}"));
            }
        };
        if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
            if matches!(self.kind(result), TyKind::Int(_)) {
                return self.type_error(span, format!("`{s}` is not defined on signed numbers"));
            }
            self.check_divisor(span, op, a, b);
        }
        if comparison { Types::BOOL } else { result }
    }

    fn check_divisor(&mut self, span: Span, op: BinaryOp, a: &'a Expr, b: &'a Expr) {
        let divisor = self.eval_int(b);
        let dividend = self.eval_int(a);
        let what = if op == BinaryOp::Div { "division" } else { "modulo" };
        let negative = |v: &Option<num_bigint::BigInt>| v.as_ref().is_some_and(num_bigint::BigInt::is_negative);
        // Two constants are reported by their evaluation.
        if dividend.is_some() && divisor.is_some() {
            if negative(&divisor) || negative(&dividend) {
                self.error("invalid", span, format!("{what} is not defined for negative numbers"));
            } else if divisor.is_some_and(|d| d.is_zero()) {
                self.error("expr", span, format!("{what} by zero"));
            }
        } else if negative(&divisor) || negative(&dividend) {
            self.error(
                "type-error",
                span,
                format!("{what} is not defined for negative numbers"),
            );
        } else if divisor.is_some_and(|d| d.is_zero()) {
            self.error("expr", span, format!("{what} by zero"));
        }
    }

    fn shift(&mut self, span: Span, op: BinaryOp, ta: Ty, b: &'a Expr, tb: Ty) -> Ty {
        let s = symbol(op);
        let (x, y) = (self.operand(ta), self.operand(tb));
        if !matches!(self.kind(x), TyKind::Bit(_) | TyKind::Int(_) | TyKind::Integer) {
            let shown = self.show(ta);
            return self.type_error(
                span,
                format!("the left operand of `{s}` must be a number, but it is {shown}"),
            );
        }
        match self.kind(y) {
            TyKind::Bit(_) => {}
            TyKind::Integer | TyKind::Int(_) => {
                let distance = self.eval_int(b);
                let constant = self.is_constant(b);
                if distance.as_ref().is_some_and(num_bigint::BigInt::is_negative) {
                    return self.type_error(span, format!("the distance of `{s}` cannot be negative"));
                }
                if !constant {
                    return self.type_error(
                        span,
                        format!("the right operand of `{s}` must be unsigned (bit<W>) or a constant"),
                    );
                }
                if let (Some(d), TyKind::Bit(w) | TyKind::Int(w)) = (&distance, self.kind(x))
                    && *d >= num_bigint::BigInt::from(w)
                {
                    let is_signed = matches!(self.kind(x), TyKind::Int(_));
                    let rest = match s == ">>" && is_signed {
                        true => "only the sign",
                        false => "nothing",
                    };
                    self.report(Diagnostic::warning(
                        "overflow",
                        span,
                        format!("shifting {w} bits by {d} leaves {rest}"),
                    ));
                }
            }
            _ => {
                let shown = self.show(tb);
                self.error(
                    "expected",
                    b.span,
                    format!("the distance of `{s}` must be a number, but it is {shown}"),
                );
                return Types::UNKNOWN;
            }
        }
        if self.kind(x) == TyKind::Integer && !self.is_constant(b) {
            return self.type_error(
                span,
                format!("an int can be shifted only by a constant; give the left operand of `{s}` a width"),
            );
        }
        x
    }

    fn concatenation(&mut self, span: Span, ta: Ty, tb: Ty) -> Ty {
        let (x, y) = (self.operand(ta), self.operand(tb));
        match (self.kind(x), self.kind(y)) {
            (TyKind::String, TyKind::String) => Types::STRING,
            (TyKind::Bit(v) | TyKind::Int(v), TyKind::Bit(w) | TyKind::Int(w)) if v + w > super::ty::MAX_WIDTH => {
                self.error(
                    "overlimit",
                    span,
                    format!("{} bits are too many: the limit is {}", v + w, super::ty::MAX_WIDTH),
                );
                Types::UNKNOWN
            }
            (TyKind::Bit(v), TyKind::Bit(w) | TyKind::Int(w)) => self.info.types.bit(v + w),
            (TyKind::Int(v), TyKind::Bit(w) | TyKind::Int(w)) => self.info.types.int(v + w),
            (TyKind::Integer, _) | (_, TyKind::Integer) => {
                self.report(
                    Diagnostic::error("type-error", span, "the operands of `++` need a known width")
                        .help("write the constant with a width, e.g. 8w1"),
                );
                Types::UNKNOWN
            }
            _ => {
                let (p, q) = (self.show(ta), self.show(tb));
                self.type_error(span, format!("`++` is not defined on {p} and {q}"))
            }
        }
    }

    fn equality(&mut self, span: Span, ta: Ty, tb: Ty) -> Ty {
        let (ka, kb) = (self.kind(ta), self.kind(tb));
        let comparable = |k: &TyKind| {
            !matches!(
                k,
                TyKind::Def(_)
                    | TyKind::Extern(..)
                    | TyKind::Parser(..)
                    | TyKind::Control(..)
                    | TyKind::Package(..)
                    | TyKind::ApplyResult(_)
                    | TyKind::ActionRun(_)
                    | TyKind::Method
                    | TyKind::TypeName(_)
                    | TyKind::Parameter(..)
                    | TyKind::Void
                    | TyKind::Set(_)
            )
        };
        for (k, t) in [(&ka, ta), (&kb, tb)] {
            if !comparable(k) {
                let shown = self.show(t);
                self.error("type-error", span, format!("values of type {shown} cannot be compared"));
                return Types::UNKNOWN;
            }
        }
        if matches!(
            (&ka, &kb),
            (
                TyKind::Fields(..) | TyKind::InvalidHeader,
                TyKind::Fields(..) | TyKind::InvalidHeader
            )
        ) {
            self.error(
                "type-error",
                span,
                "the type of what is compared is not known; cast one side",
            );
            return Types::UNKNOWN;
        }
        let enum_or_number =
            |k: &TyKind| matches!(k, TyKind::Enum(_) | TyKind::Bit(_) | TyKind::Int(_) | TyKind::Integer);
        let agree = if enum_or_number(&ka) && enum_or_number(&kb) {
            let (x, y) = (self.operand(ta), self.operand(tb));
            ka == kb || self.coerces(x, y) || self.coerces(y, x)
        } else {
            self.coerces(ta, tb) || self.coerces(tb, ta)
        };
        if !agree {
            let (p, q) = (self.show(ta), self.show(tb));
            self.error("type-error", span, format!("{p} cannot be compared with {q}"));
            return Types::UNKNOWN;
        }
        for t in [ta, tb] {
            if self.contains_uncomparable(t) {
                let shown = self.show(t);
                self.error("type-error", span, format!("values of type {shown} cannot be compared"));
                return Types::UNKNOWN;
            }
        }
        Types::BOOL
    }

    fn contains_uncomparable(&self, ty: Ty) -> bool {
        matches!(self.info.types.get(ty), TyKind::Struct(..))
            && self.struct_kind(ty) == Some(StructKind::Struct)
            && match self.info.types.get(ty) {
                TyKind::Struct(def, _) => match &self.def(*def).kind {
                    DefKind::Struct { fields, .. } => fields
                        .iter()
                        .any(|f| matches!(self.info.types.get(f.ty), TyKind::Extern(..) | TyKind::Parser(..))),
                    _ => false,
                },
                _ => false,
            }
    }
}
