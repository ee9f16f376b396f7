//! Compile-time values and their arithmetic.

use super::{Builtin, Callee, Checker, DefKind};
use crate::types::{DefId, Ty, TyKind};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, ToPrimitive, Zero};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use weir_syntax::ast::{self, BinaryOp, Expr, ExprKind, Name, StructKind, UnaryOp};
use weir_syntax::diagnostic::Diagnostic;

/// A value known to the checker. Numbers of `int<W>` are kept as the number they mean.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Const {
    /// `true`, `false`
    Bool(bool),
    /// A number of any type.
    Int(BigInt),
    /// A string.
    String(Name),
    /// Index of a member of an enum without representation.
    Member(usize),
    /// The name of a member of `error`.
    Error(Name),
    /// A tuple or list.
    List(Rc<[Const]>),
    /// A struct or valid header.
    Fields(Rc<[(Name, Const)]>),
    /// `{#}`
    InvalidHeader,
}

/// Brings a number into the range of a type.
pub(crate) fn wrap(value: &BigInt, kind: &TyKind) -> BigInt {
    match kind {
        TyKind::Bit(w) => value.mod_floor(&(BigInt::one() << *w)),
        TyKind::Int(w) if *w > 0 => {
            let modulus = BigInt::one() << *w;
            let value = value.mod_floor(&modulus);
            if value >= (BigInt::one() << (*w - 1)) {
                value - modulus
            } else {
                value
            }
        }
        _ => value.clone(),
    }
}

/// Larger shifts of `int` would only serve to exhaust memory.
pub(crate) const MAX_SHIFT: u64 = 1 << 16;

/// Longest string that concatenation makes.
const MAX_STRING: usize = 1 << 16;

impl<'a> Checker<'a> {
    /// The value of a constant expression that has been checked; `None` where it is not constant or
    /// depends on a constructor parameter.
    pub(super) fn eval(&mut self, expr: &'a Expr) -> Option<Const> {
        let ty = self.info.ty(expr);
        match &expr.kind {
            ExprKind::Bool(b) => Some(Const::Bool(*b)),
            ExprKind::Int { value, .. } => Some(Const::Int(wrap(value, &self.kind(ty)))),
            ExprKind::String(s) => Some(Const::String(s.clone())),
            ExprKind::Name { .. } => self.eval_name(expr),
            ExprKind::Member(base, member) => self.eval_member(expr, base, &member.name),
            ExprKind::Unary(op, operand) => {
                let value = self.eval(operand)?;
                let kind = self.kind(ty);
                match (op, value) {
                    (UnaryOp::Not, Const::Bool(b)) => Some(Const::Bool(!b)),
                    (UnaryOp::Negate, Const::Int(v)) => Some(Const::Int(wrap(&-v, &kind))),
                    (UnaryOp::Plus, value @ Const::Int(_)) => Some(value),
                    (UnaryOp::Complement, Const::Int(v)) => Some(Const::Int(wrap(&(-v - 1), &kind))),
                    _ => None,
                }
            }
            ExprKind::Binary(op, a, b) => self.eval_binary(expr, *op, a, b),
            ExprKind::Conditional(c, a, b) => match self.eval(c)? {
                Const::Bool(true) => self.eval_as(a, ty),
                Const::Bool(false) => self.eval_as(b, ty),
                _ => None,
            },
            ExprKind::Cast(_, operand) => {
                let value = self.eval(operand)?;
                self.cast(value, ty)
            }
            ExprKind::Slice(base, hi, lo) => {
                let (Const::Int(v), Const::Int(hi), Const::Int(lo)) =
                    (self.eval(base)?, self.eval(hi)?, self.eval(lo)?)
                else {
                    return None;
                };
                let (hi, lo) = (hi.to_u32()?, lo.to_u32()?);
                (hi >= lo).then(|| Const::Int((v >> lo).mod_floor(&(BigInt::one() << (hi - lo + 1)))))
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let (Const::Int(v), Const::Int(lo), Const::Int(w)) =
                    (self.eval(base)?, self.eval(lo)?, self.eval(width)?)
                else {
                    return None;
                };
                Some(Const::Int(
                    (v >> lo.to_u32()?).mod_floor(&(BigInt::one() << w.to_u32()?)),
                ))
            }
            ExprKind::List(elements) => elements
                .iter()
                .map(|e| self.eval(e))
                .collect::<Option<_>>()
                .map(Const::List),
            ExprKind::Struct(fields, false) => fields
                .iter()
                .map(|(name, e)| Some((name.name.clone(), self.eval(e)?)))
                .collect::<Option<_>>()
                .map(Const::Fields),
            ExprKind::InvalidHeader => Some(Const::InvalidHeader),
            ExprKind::Index(base, index) => match (self.eval(base)?, self.eval(index)?) {
                (Const::List(elements), Const::Int(i)) => elements.get(i.to_usize()?).cloned(),
                _ => None,
            },
            ExprKind::Call { callee, .. } => match self.info.calls.get(&expr.id)?.callee {
                Callee::Builtin(builtin) => self.eval_size(callee, builtin),
                Callee::Function(def) if self.def(def).name.as_ref() == "static_assert" => Some(Const::Bool(true)),
                _ => None,
            },
            _ => None,
        }
    }

    fn eval_as(&mut self, expr: &'a Expr, ty: Ty) -> Option<Const> {
        let value = self.eval(expr)?;
        self.convert(value, ty)
    }

    fn eval_name(&mut self, expr: &Expr) -> Option<Const> {
        let def = self.info.names[expr.id.0 as usize]?;
        match &self.def(def).kind {
            DefKind::Constant { value, .. } => value.clone(),
            _ => None,
        }
    }

    fn eval_member(&mut self, expr: &'a Expr, base: &'a Expr, member: &Name) -> Option<Const> {
        match self.kind(self.info.ty(base)) {
            TyKind::TypeName(ty) => match self.kind(ty) {
                TyKind::Error => Some(Const::Error(member.clone())),
                TyKind::Enum(def) => {
                    let DefKind::Enum { underlying, members } = &self.def(def).kind else {
                        return None;
                    };
                    let &index = self.info.positions.get(&def)?.get(member)?;
                    if underlying.is_some() {
                        members[index].1.clone()
                    } else {
                        Some(Const::Member(index))
                    }
                }
                _ => None,
            },
            TyKind::Stack(_, size) if &**member == "size" => Some(Const::Int(size.into())),
            _ => {
                let _ = expr;
                match self.eval(base)? {
                    Const::Fields(fields) => {
                        let position = match self.kind(self.info.ty(base)) {
                            TyKind::Struct(def, _) => self.info.positions.get(&def).and_then(|p| p.get(member)),
                            _ => None,
                        };
                        let there = position.and_then(|&p| fields.get(p)).filter(|(n, _)| n == member);
                        let found = there.or_else(|| fields.iter().find(|(n, _)| n == member));
                        found.map(|(_, value)| value.clone())
                    }
                    Const::List(values) => {
                        let TyKind::Struct(def, arguments) = self.kind(self.info.ty(base)) else {
                            return None;
                        };
                        let (index, _) = self.info.field(def, &arguments, member)?;
                        values.get(index).cloned()
                    }
                    _ => None,
                }
            }
        }
    }

    fn eval_binary(&mut self, expr: &Expr, op: BinaryOp, a: &'a Expr, b: &'a Expr) -> Option<Const> {
        let x = self.eval(a)?;
        if let (BinaryOp::And, Const::Bool(false)) | (BinaryOp::Or, Const::Bool(true)) = (op, &x) {
            return Some(x);
        }
        let y = self.eval(b)?;
        let result = self.kind(self.info.ty(expr));
        match (op, &x, &y) {
            (BinaryOp::And | BinaryOp::Or, Const::Bool(_), Const::Bool(y)) => Some(Const::Bool(*y)),
            (BinaryOp::Eq | BinaryOp::Ne, ..) => {
                // A literal stands for a value of the other side's type.
                let (ta, tb) = (self.info.ty(a), self.info.ty(b));
                let (x, y) = (self.convert(x, tb)?, self.convert(y, ta)?);
                Some(Const::Bool((x == y) == (op == BinaryOp::Eq)))
            }
            (BinaryOp::Concat, Const::String(x), Const::String(y)) if x.len() + y.len() > MAX_STRING => {
                let message = format!("the string has more than {MAX_STRING} bytes");
                self.report(Diagnostic::error("overlimit", expr.span, message));
                None
            }
            (BinaryOp::Concat, Const::String(x), Const::String(y)) => Some(Const::String(format!("{x}{y}").into())),
            (_, Const::Int(x), Const::Int(y)) => self.eval_arithmetic(expr, op, a, b, x, y, &result),
            _ => None,
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn eval_arithmetic(
        &mut self,
        expr: &Expr,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
        x: &BigInt,
        y: &BigInt,
        result: &TyKind,
    ) -> Option<Const> {
        let int = |v: BigInt| Some(Const::Int(wrap(&v, result)));
        let saturate = |v: BigInt| match result {
            TyKind::Bit(w) => Const::Int(v.clamp(BigInt::zero(), (BigInt::one() << *w) - 1)),
            TyKind::Int(w) if *w > 0 => {
                let limit = BigInt::one() << (*w - 1);
                Const::Int(v.clamp(-limit.clone(), limit - 1))
            }
            _ => Const::Int(v),
        };
        match op {
            BinaryOp::Add => int(x + y),
            BinaryOp::Sub => int(x - y),
            BinaryOp::Mul if x.bits() + y.bits() > MAX_SHIFT * 2 => self.number_too_large(expr),
            BinaryOp::Mul => int(x * y),
            BinaryOp::Div | BinaryOp::Mod => {
                let what = if op == BinaryOp::Div { "division" } else { "modulo" };
                if y.is_zero() {
                    self.error("expr", expr.span, format!("{what} by zero"));
                    return None;
                }
                if x.is_negative() || y.is_negative() {
                    self.error(
                        "invalid",
                        expr.span,
                        format!("{what} is not defined for negative numbers"),
                    );
                    return None;
                }
                int(if op == BinaryOp::Div { x / y } else { x % y })
            }
            BinaryOp::AddSat => Some(saturate(x + y)),
            BinaryOp::SubSat => Some(saturate(x - y)),
            BinaryOp::Shl | BinaryOp::Shr => {
                if y.is_negative() {
                    return None;
                }
                let distance = y.to_u64().unwrap_or(u64::MAX);
                if op == BinaryOp::Shr {
                    let gone = if x.is_negative() {
                        BigInt::from(-1)
                    } else {
                        BigInt::zero()
                    };
                    return int(if distance > x.bits() { gone } else { x >> distance });
                }
                match result {
                    TyKind::Bit(w) | TyKind::Int(w) if distance >= u64::from(*w) => int(BigInt::zero()),
                    _ if distance > MAX_SHIFT => self.number_too_large(expr),
                    _ => int(x << distance),
                }
            }
            BinaryOp::BitAnd => int(x & y),
            BinaryOp::BitOr => int(x | y),
            BinaryOp::BitXor => int(x ^ y),
            BinaryOp::Lt => Some(Const::Bool(x < y)),
            BinaryOp::Le => Some(Const::Bool(x <= y)),
            BinaryOp::Gt => Some(Const::Bool(x > y)),
            BinaryOp::Ge => Some(Const::Bool(x >= y)),
            BinaryOp::Concat => {
                let (TyKind::Bit(_) | TyKind::Int(_), TyKind::Bit(w) | TyKind::Int(w)) =
                    (self.kind(self.info.ty(a)), self.kind(self.info.ty(b)))
                else {
                    return None;
                };
                let modulus = BigInt::one() << w;
                int((x << w) + y.mod_floor(&modulus))
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Eq | BinaryOp::Ne => None,
        }
    }

    fn number_too_large(&mut self, expr: &Expr) -> Option<Const> {
        self.report(
            Diagnostic::error(
                "overlimit",
                expr.span,
                format!("the result has more than {MAX_SHIFT} bits"),
            )
            .help("give the operands a width: arithmetic of `int` is exact"),
        );
        None
    }

    /// Sizes of headers and structs in bits or bytes.
    fn eval_size(&mut self, callee: &'a Expr, builtin: Builtin) -> Option<Const> {
        let ExprKind::Member(base, _) = &callee.kind else {
            return None;
        };
        let mut ty = self.info.ty(base);
        if let TyKind::TypeName(named) = self.kind(ty) {
            ty = named;
        }
        let (minimum, maximum) = self.info.size_in_bits(ty)?;
        let bits: BigInt = match builtin {
            Builtin::MinSizeInBits | Builtin::MinSizeInBytes => minimum,
            Builtin::MaxSizeInBits | Builtin::MaxSizeInBytes => maximum,
            _ => return None,
        }
        .into();
        Some(Const::Int(match builtin {
            Builtin::MinSizeInBytes | Builtin::MaxSizeInBytes => (bits + 7) / 8,
            _ => bits,
        }))
    }

    /// A value of an explicit cast.
    pub(super) fn cast(&mut self, value: Const, to: Ty) -> Option<Const> {
        let kind = self.kind(to);
        match (&value, &kind) {
            (Const::Int(v), TyKind::Bool) => Some(Const::Bool(v.is_one())),
            (Const::Bool(b), TyKind::Bit(_)) => Some(Const::Int(BigInt::from(u8::from(*b)))),
            (Const::Int(v), TyKind::Bit(_) | TyKind::Int(_)) => Some(Const::Int(wrap(v, &kind))),
            (_, TyKind::New(_)) => {
                let underlying = self.info.underlying(to);
                self.cast(value, underlying)
            }
            _ => self.convert(value, to),
        }
    }

    /// A value as the type it is assigned to: numbers wrap, lists become structs.
    pub(super) fn convert(&mut self, value: Const, to: Ty) -> Option<Const> {
        let kind = self.kind(to);
        match (value, &kind) {
            (Const::Int(v), _) => Some(Const::Int(wrap(&v, &kind))),
            (Const::List(values), TyKind::Struct(def, arguments)) => {
                let fields = self.fields_of(*def, arguments);
                if values.len() != fields.len() {
                    return None;
                }
                let mut converted = Vec::new();
                for (value, (name, ty)) in values.iter().zip(fields) {
                    converted.push((name, self.convert(value.clone(), ty)?));
                }
                Some(Const::Fields(converted.into()))
            }
            (Const::Fields(values), TyKind::Struct(def, arguments)) => {
                let mut converted = Vec::new();
                // The first of a name counts.
                let values: FxHashMap<&Name, &Const> = values.iter().rev().map(|(n, v)| (n, v)).collect();
                for (name, ty) in self.fields_of(*def, arguments) {
                    let &value = values.get(&name)?;
                    converted.push((name, self.convert(value.clone(), ty)?));
                }
                Some(Const::Fields(converted.into()))
            }
            (Const::List(values), TyKind::Tuple(parts) | TyKind::Listed(parts)) if values.len() == parts.len() => {
                let parts = parts.clone();
                values
                    .iter()
                    .zip(parts.iter())
                    .map(|(v, &t)| self.convert(v.clone(), t))
                    .collect::<Option<_>>()
                    .map(Const::List)
            }
            (value, _) => Some(value),
        }
    }

    /// The value as a number, or `None`.
    pub(super) fn eval_int(&mut self, expr: &'a Expr) -> Option<BigInt> {
        match self.eval(expr)? {
            Const::Int(v) => Some(v),
            _ => None,
        }
    }
}

impl super::Checked<'_> {
    /// What a `type` stands for, all the way down.
    #[must_use]
    pub fn underlying(&self, ty: Ty) -> Ty {
        match self.types.get(ty) {
            TyKind::New(def) => match &self.def(*def).kind {
                DefKind::NewType(inner) => self.underlying(*inner),
                _ => ty,
            },
            _ => ty,
        }
    }

    /// What a serializable enum or a `type` is represented by.
    #[must_use]
    pub fn representation(&self, ty: Ty) -> Ty {
        match self.types.get(ty) {
            TyKind::New(_) => self.representation(self.underlying(ty)),
            TyKind::Enum(def) => self.enum_underlying(*def).map_or(ty, |u| self.representation(u)),
            _ => ty,
        }
    }

    /// The underlying type of a serializable enum.
    #[must_use]
    pub fn enum_underlying(&self, def: DefId) -> Option<Ty> {
        match &self.def(def).kind {
            DefKind::Enum { underlying, .. } => *underlying,
            _ => None,
        }
    }

    /// Smallest and largest size of a value in a packet, in bits.
    pub fn size_in_bits(&mut self, ty: Ty) -> Option<(u64, u64)> {
        match self.types.get(ty).clone() {
            TyKind::Bool => Some((1, 1)),
            TyKind::Bit(w) | TyKind::Int(w) => Some((w.into(), w.into())),
            TyKind::Varbit(w) => Some((0, w.into())),
            TyKind::New(_) => self.size_in_bits(self.underlying(ty)),
            TyKind::Enum(def) => self.enum_underlying(def).and_then(|u| self.size_in_bits(u)),
            TyKind::Stack(element, n) => {
                let (a, b) = self.size_in_bits(element)?;
                Some((a * u64::from(n), b * u64::from(n)))
            }
            TyKind::Tuple(parts) => parts.iter().try_fold((0, 0), |(a, b), &p| {
                let (x, y) = self.size_in_bits(p)?;
                Some((a + x, b + y))
            }),
            TyKind::Struct(def, arguments) => {
                let union = self.struct_kind(ty) == Some(StructKind::HeaderUnion);
                let mut total: Option<(u64, u64)> = None;
                for (_, field) in self.fields_of(def, &arguments) {
                    let (x, y) = self.size_in_bits(field)?;
                    let (a, b) = total.unwrap_or(if union { (u64::MAX, 0) } else { (0, 0) });
                    total = Some(if union { (a.min(x), b.max(y)) } else { (a + x, b + y) });
                }
                let (least, most) = total.unwrap_or((0, 0));
                let padding = if self.has_flexible_fields(def) { 8 } else { 1 };
                Some((least.next_multiple_of(padding), most.next_multiple_of(padding)))
            }
            _ => None,
        }
    }

    /// Whether a header has fields, or structs of fields, that the compiler may move; then it is
    /// filled up to whole
    /// bytes.
    pub fn has_flexible_fields(&self, def: DefId) -> bool {
        let DefKind::Struct { kind, .. } = &self.def(def).kind else {
            return false;
        };
        *kind == StructKind::Header && self.has_flexible_part(def)
    }

    /// The same of a header or a struct within one. Structs do not contain themselves.
    fn has_flexible_part(&self, def: DefId) -> bool {
        let is_marked = |list: &[ast::Annotation]| list.iter().any(|a| &*a.name.name == "flexible");
        let declaration = self.def(def);
        let DefKind::Struct { fields, .. } = &declaration.kind else {
            return false;
        };
        let is_flexible = |f: &super::FieldDef<'_>| {
            let inner = match self.types.get(f.ty) {
                TyKind::Struct(inner, _) => Some(*inner),
                _ => None,
            };
            is_marked(f.annotations) || inner.is_some_and(|inner| self.has_flexible_part(inner))
        };
        is_marked(declaration.annotations) || fields.iter().any(is_flexible)
    }
}
