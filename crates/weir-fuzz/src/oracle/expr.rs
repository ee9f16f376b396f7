//! Expressions.

use super::machine::Machine;
use super::operator;
use super::stop::{Eval, unknown};
use super::value::{Object, Value, signed, unsigned};
use num_bigint::{BigInt, BigUint};
use num_traits::{One, Zero};
use weir_compiler::tools::{DefKind, Ty, TyKind};
use weir_syntax::ast::{BinaryOp, Expr, ExprKind, Ident};

impl Machine<'_> {
    /// The value of an expression.
    pub fn expr(&mut self, expr: &Expr) -> Eval<Value> {
        match &expr.kind {
            ExprKind::Bool(truth) => Ok(Value::Bool(*truth)),
            ExprKind::Int { value, .. } => {
                let ty = self.checked.ty(expr);
                self.convert(Value::Integer(value.clone()), ty)
            }
            ExprKind::String(text) => Ok(Value::String(text.clone())),
            ExprKind::InvalidHeader => Ok(Value::InvalidHeader),
            ExprKind::Dots => Ok(Value::Dots),
            ExprKind::This => match self.this {
                Some(id) => Ok(Value::Object(Object::Extern(id))),
                None => unknown("`this` outside of a method"),
            },
            ExprKind::Name { .. } => match self.named(expr) {
                Some(def) => self.meaning(def),
                None => unknown("a name without a declaration"),
            },
            ExprKind::Member(base, member) => self.member(expr, base, member),
            ExprKind::Index(base, index) => self.index(expr, base, index),
            ExprKind::Slice(..) | ExprKind::PlusSlice(..) => self.slice(expr),
            ExprKind::Unary(op, operand) => {
                let value = self.expr(operand)?;
                operator::unary(*op, &value).map_or_else(|| unknown("an operator that is not there"), Ok)
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            ExprKind::Conditional(condition, a, b) => {
                let chosen = if self.condition(condition)? { a } else { b };
                let value = self.expr(chosen)?;
                let ty = self.checked.ty(expr);
                self.convert(value, ty)
            }
            ExprKind::Cast(_, operand) => {
                let value = self.expr(operand)?;
                let ty = self.checked.ty(expr);
                self.cast(value, ty)
            }
            ExprKind::List(elements) => {
                let values = elements.iter().map(|e| self.expr(e));
                values.collect::<Eval<_>>().map(Value::Tuple)
            }
            ExprKind::Struct(fields, _) => {
                let values = fields.iter().map(|(n, e)| Ok((n.name.clone(), self.expr(e)?)));
                values.collect::<Eval<_>>().map(Value::Fields)
            }
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::DontCare => {
                let ty = self.checked.ty(expr);
                self.zero(ty)
            }
            ExprKind::Type(_) | ExprKind::Mask(..) | ExprKind::Range(..) | ExprKind::Default | ExprKind::Error => {
                unknown("an expression that has no value")
            }
        }
    }

    /// The value of an expression as one of a type.
    pub fn expr_as(&mut self, expr: &Expr, ty: Ty) -> Eval<Value> {
        let value = self.expr(expr)?;
        self.convert(value, ty)
    }

    /// Whether a condition holds.
    pub fn condition(&mut self, expr: &Expr) -> Eval<bool> {
        match self.expr(expr)? {
            Value::Bool(truth) => Ok(truth),
            _ => unknown("a condition that is no truth value"),
        }
    }

    /// `a op b`: from left to right; `&&` and `||` do not evaluate `b` where `a` decides.
    fn binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Eval<Value> {
        if matches!(op, BinaryOp::And | BinaryOp::Or) {
            let first = self.condition(a)?;
            let decided = first == (op == BinaryOp::Or);
            return Ok(Value::Bool(if decided { first } else { self.condition(b)? }));
        }
        let x = self.expr(a)?;
        let y = self.expr(b)?;
        self.operate(op, x, self.checked.ty(a), y, self.checked.ty(b))
    }

    /// `x op y`; lists and `{#}` are compared as what is on the other side.
    pub fn operate(&mut self, op: BinaryOp, x: Value, tx: Ty, y: Value, ty: Ty) -> Eval<Value> {
        let (x, y) = match op {
            BinaryOp::Eq | BinaryOp::Ne => (self.convert(x, ty)?, self.convert(y, tx)?),
            _ => (x, y),
        };
        operator::binary(op, x, y).map_or_else(|| unknown("an operator that is not there"), Ok)
    }

    fn index(&mut self, expr: &Expr, base: &Expr, index: &Expr) -> Eval<Value> {
        if self.is_place(expr) {
            let place = self.place(expr)?;
            return self.load(&place);
        }
        let whole = self.expr(base)?;
        let at = self.constant(index)?;
        match whole {
            Value::Stack { elements, .. } | Value::Tuple(elements) => match (elements.get(at), elements.first()) {
                (Some(element), _) => Ok(element.clone()),
                (None, Some(like)) => Ok(like.zeroed()),
                (None, None) => unknown("an element of an empty stack"),
            },
            _ => unknown("an element of what is no stack"),
        }
    }

    fn slice(&mut self, expr: &Expr) -> Eval<Value> {
        let sliced = match &expr.kind {
            ExprKind::Slice(base, hi, lo) => {
                let value = self.expr(base)?;
                let (hi, lo) = (self.constant(hi)?, self.constant(lo)?);
                operator::slice(&value, hi as u32, lo as u32)
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let value = self.expr(base)?;
                let lo = self.constant(lo)?;
                let width = self.constant(width)? as u32;
                value
                    .bits()
                    .map(|(all, bits)| Value::bit(width, bits >> lo.min(all as usize)))
            }
            _ => None,
        };
        sliced.map_or_else(|| unknown("a slice of what has no bits"), Ok)
    }

    fn member(&mut self, expr: &Expr, base: &Expr, member: &Ident) -> Eval<Value> {
        let name = &*member.name;
        // The kind of what is written, not of what represents it: `E.A` names a type.
        let ty = self.checked.ty(base);
        let ty = self.concrete(ty);
        match self.checked.types.get(ty).clone() {
            TyKind::TypeName(named) => self.member_of_type(named, member),
            TyKind::ApplyResult(_) => match self.expr(base)? {
                Value::Applied { hit, .. } if name == "hit" => Ok(Value::Bool(hit)),
                Value::Applied { hit, .. } if name == "miss" => Ok(Value::Bool(!hit)),
                applied @ Value::Applied { .. } => Ok(applied),
                _ => unknown("the result of a table that is none"),
            },
            TyKind::Stack(_, size) if name == "size" => Ok(Value::bit(32, size)),
            TyKind::Stack(..) if name == "lastIndex" => match self.expr(base)? {
                Value::Stack { next, .. } => {
                    let last = BigInt::from(next) - 1;
                    Ok(Value::bit(32, unsigned(&last, 32)))
                }
                _ => unknown("a stack that is none"),
            },
            _ if self.is_place(expr) => {
                let place = self.place(expr)?;
                self.load(&place)
            }
            _ => match self.expr(base)?.field(name) {
                Some(field) => Ok(field.clone()),
                None => unknown("a field that is not there"),
            },
        }
    }

    /// `E.A`, `error.A`
    fn member_of_type(&mut self, ty: Ty, member: &Ident) -> Eval<Value> {
        let ty = self.concrete(ty);
        match self.checked.types.get(ty).clone() {
            TyKind::Error => Ok(Value::Error(member.name.clone())),
            TyKind::Enum(def) => match self.represented(ty, &member.name)? {
                Some(value) => Ok(value),
                None => match self.def(def) {
                    DefKind::Enum { .. } => Ok(Value::Member(member.name.clone())),
                    _ => unknown("an enum that is none"),
                },
            },
            _ => unknown("a member of a type"),
        }
    }

    /// `(T) e`: widening repeats the sign of signed numbers and fills up others with zeros;
    /// narrowing cuts.
    pub fn cast(&mut self, value: Value, ty: Ty) -> Eval<Value> {
        let kind = self.kind(ty);
        let number = value.number();
        match (kind, number) {
            (TyKind::Bit(width), Some(n)) => Ok(Value::bit(width, unsigned(&n, width))),
            (TyKind::Int(width), Some(n)) => Ok(Value::Int {
                width,
                value: signed(&n, width),
            }),
            (TyKind::Integer, Some(n)) => Ok(Value::Integer(n)),
            (TyKind::Bool, Some(n)) if n.is_zero() || n.is_one() => Ok(Value::Bool(n.is_one())),
            _ => self.convert(value, ty),
        }
    }

    // ------------------------------------------------------------------------------------ keysets

    /// Whether values are in a keyset: one expression for all, or a list with one for each.
    pub fn in_keyset(&mut self, values: &[(Value, Ty)], keyset: &Expr) -> Eval<bool> {
        match &keyset.kind {
            ExprKind::Default | ExprKind::DontCare => Ok(true),
            ExprKind::List(elements) if elements.len() == values.len() => {
                for (value, element) in values.iter().zip(elements) {
                    if !self.in_set(&value.0, value.1, element)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => match values {
                [(value, ty)] => self.in_set(value, *ty, keyset),
                _ => match self.expr(keyset)? {
                    Value::Object(Object::ValueSet(set)) => {
                        let values: Vec<Value> = values.iter().map(|v| v.0.clone()).collect();
                        self.in_value_set(set, &values)
                    }
                    _ => unknown("one keyset for several values"),
                },
            },
        }
    }

    /// Whether a value is in a set: a value, a mask, a range, a value set, or anything.
    fn in_set(&mut self, value: &Value, ty: Ty, set: &Expr) -> Eval<bool> {
        match &set.kind {
            ExprKind::Default | ExprKind::DontCare => Ok(true),
            ExprKind::Mask(pattern, mask) => {
                let (pattern, mask) = (self.bits_of(pattern, ty)?, self.bits_of(mask, ty)?);
                let Some((_, bits)) = value.bits() else {
                    return unknown("a mask for what has no bits");
                };
                Ok(bits & &mask == pattern & mask)
            }
            ExprKind::Range(low, high) => {
                let (low, high) = (self.expr_as(low, ty)?.number(), self.expr_as(high, ty)?.number());
                let number = value.number();
                Ok(low.is_some() && low <= number && number <= high)
            }
            ExprKind::List(elements) => match value {
                Value::Tuple(parts) => self.parts_in_sets(parts, elements),
                Value::Struct(fields) => {
                    let parts: Vec<Value> = fields.iter().map(|f| f.1.clone()).collect();
                    self.parts_in_sets(&parts, elements)
                }
                _ => match &elements[..] {
                    [element] => self.in_set(value, ty, element),
                    _ => unknown("a list as a keyset for one value"),
                },
            },
            _ => match self.expr_as(set, ty)? {
                Value::Object(Object::ValueSet(set)) => self.in_value_set(set, std::slice::from_ref(value)),
                other => operator::binary(BinaryOp::Eq, value.clone(), other)
                    .map_or_else(|| unknown("a keyset"), |v| Ok(v.is_true())),
            },
        }
    }

    fn parts_in_sets(&mut self, parts: &[Value], sets: &[Expr]) -> Eval<bool> {
        for (part, set) in parts.iter().zip(sets) {
            let ty = self.checked.ty(set);
            let ty = match self.checked.types.get(ty) {
                TyKind::Set(inner) => *inner,
                _ => ty,
            };
            if !self.in_set(part, ty, set)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn bits_of(&mut self, expr: &Expr, ty: Ty) -> Eval<BigUint> {
        match self.expr_as(expr, ty)?.bits() {
            Some((_, bits)) => Ok(bits),
            None => unknown("a keyset without bits"),
        }
    }
}
