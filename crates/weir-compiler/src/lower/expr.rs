//! Expressions and l-values.

use super::value::{Entity, Object, Place, Val, named};
use super::{Lowerer, boolean, constant};
use crate::check::{Builtin, Callee, Const, DefKind};
use crate::types::{DefId, Ty, TyKind, Types};
use num_bigint::BigInt;
use num_traits::{ToPrimitive, Zero};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use weir_ir::{BinaryOp as Op, Bits, Operand, Rvalue, Terminator};
use weir_syntax::ast::{Expr, ExprKind, Name, StructKind};

/// Bits of an `int` that is computed at run time.
pub(super) const RUN_TIME_INT: u32 = 256;

impl<'a> Lowerer<'a, '_> {
    /// The value of an expression, of the type the checker gave it.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> Val {
        if self.exhausted {
            let ty = self.ty(expr);
            return self.zero(ty);
        }
        match &expr.kind {
            ExprKind::Bool(b) => Val::Scalar(boolean(*b)),
            ExprKind::Int { value, .. } => match self.scalar_width_of(expr) {
                Some(w) => Val::Scalar(Operand::Const(Bits::from_bigint(w, value))),
                None => Val::Int(value.clone()),
            },
            ExprKind::String(s) => Val::String(s.clone()),
            ExprKind::Name { .. } => self.name(expr),
            ExprKind::InvalidHeader => Val::InvalidHeader,
            ExprKind::Dots => Val::Dots,
            ExprKind::Member(base, member) => self.member(expr, base, &member.name),
            ExprKind::Index(base, index) => self.index(expr, base, index),
            ExprKind::Slice(base, hi, lo) => {
                let (hi, lo) = (self.constant_u32(hi), self.constant_u32(lo));
                match self.expr(base) {
                    Val::Scalar(value) => Val::Scalar(self.compute(Rvalue::Slice { value, hi, lo }, hi - lo + 1)),
                    other => other,
                }
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let value = self.expr(base);
                let place = Place::Nowhere(Box::new(value));
                let lo_value = self.number(lo);
                let width = self.constant_u32(width);
                self.read(&Place::MovingSlice {
                    base: Box::new(place),
                    lo: lo_value,
                    width,
                })
            }
            ExprKind::Unary(op, operand) => self.unary(expr, *op, operand),
            ExprKind::Binary(op, a, b) => self.binary_expr(expr, *op, a, b),
            ExprKind::Conditional(c, a, b) => self.conditional(expr, c, a, b),
            ExprKind::Cast(_, operand) => {
                let value = self.expr(operand);
                let (from, to) = (self.ty(operand), self.ty(expr));
                self.cast(value, from, to)
            }
            ExprKind::List(elements) => {
                let values = self.in_order(elements.iter());
                Val::tuple(values)
            }
            ExprKind::Struct(fields, dots) => {
                let values = self.in_order(fields.iter().map(|(_, e)| e));
                let mut named: Vec<_> = fields.iter().map(|(n, _)| n.name.clone()).zip(values).collect();
                if *dots {
                    named.push(("...".into(), Val::Dots));
                }
                Val::Struct(Rc::new(named))
            }
            ExprKind::Call { .. } => self.call(expr),
            ExprKind::DontCare => {
                let ty = self.ty(expr);
                self.zero(ty)
            }
            ExprKind::This => self.this.map_or(Val::Void, |id| Val::Object(Object::Extern(id))),
            ExprKind::Type(_) | ExprKind::Mask(..) | ExprKind::Range(..) | ExprKind::Default | ExprKind::Error => {
                Val::Void
            }
        }
    }

    /// The value of an expression as one of another type.
    pub(super) fn expr_as(&mut self, expr: &'a Expr, to: Ty) -> Val {
        // What `?:` chooses between may need the type of its context.
        let value = self.expr(expr);
        let from = self.ty(expr);
        self.convert(value, from, to)
    }

    /// Values of several expressions from left to right, none changed by the evaluation of a later
    /// one.
    pub(super) fn in_order(&mut self, expressions: impl Iterator<Item = &'a Expr>) -> Vec<Val> {
        let expressions: Vec<&'a Expr> = expressions.collect();
        let mut values = Vec::with_capacity(expressions.len());
        let effects = expressions.iter().rposition(|e| self.has_effects(e));
        for (i, e) in expressions.iter().enumerate() {
            let value = self.expr(e);
            let later = effects.is_some_and(|last| last > i);
            values.push(if later { self.snapshot(&value) } else { value });
        }
        values
    }

    /// Whether evaluating the expression can change something.
    pub(super) fn has_effects(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Call { callee, arguments, .. } => match self.checked.calls.get(&expr.id).map(|c| c.callee) {
                Some(Callee::Builtin(
                    Builtin::IsValid
                    | Builtin::MinSizeInBits
                    | Builtin::MinSizeInBytes
                    | Builtin::MaxSizeInBits
                    | Builtin::MaxSizeInBytes,
                )) => {
                    matches!(&callee.kind, ExprKind::Member(base, _) if self.has_effects(base))
                }
                Some(Callee::Constructor(_)) => arguments.iter().any(|a| self.has_effects(&a.value)),
                _ => true,
            },
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) | ExprKind::Mask(a, b) | ExprKind::Range(a, b) => {
                self.has_effects(a) || self.has_effects(b)
            }
            ExprKind::Slice(a, b, c) | ExprKind::PlusSlice(a, b, c) | ExprKind::Conditional(a, b, c) => {
                self.has_effects(a) || self.has_effects(b) || self.has_effects(c)
            }
            ExprKind::Member(base, _) => self.has_effects(base),
            ExprKind::Unary(_, e) | ExprKind::Cast(_, e) => self.has_effects(e),
            ExprKind::List(elements) => elements.iter().any(|e| self.has_effects(e)),
            ExprKind::Struct(fields, _) => fields.iter().any(|(_, e)| self.has_effects(e)),
            _ => false,
        }
    }

    fn scalar_width_of(&mut self, expr: &Expr) -> Option<u32> {
        let ty = self.ty(expr);
        self.scalar_width(ty)
    }

    /// The value of an expression that must be a number known now.
    pub(super) fn constant_int(&mut self, expr: &'a Expr) -> BigInt {
        match self.expr(expr) {
            Val::Int(v) => v,
            Val::Scalar(Operand::Const(c)) => {
                let ty = self.ty(expr);
                if self.is_signed(ty) {
                    c.to_signed_bigint()
                } else {
                    c.to_biguint().into()
                }
            }
            _ => {
                self.error("expected", expr.span, "this must be a constant");
                BigInt::zero()
            }
        }
    }

    pub(super) fn constant_u32(&mut self, expr: &'a Expr) -> u32 {
        self.constant_int(expr).to_u32().unwrap_or(0)
    }

    /// A number as an operand; an `int` gets 32 bits.
    pub(super) fn number(&mut self, expr: &'a Expr) -> Operand {
        match self.expr(expr) {
            Val::Scalar(operand) => operand,
            Val::Int(v) => Operand::Const(Bits::from_bigint(32, &v)),
            _ => constant(32, 0),
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, expr: &'a Expr) -> Operand {
        match self.expr(expr) {
            Val::Scalar(operand) => operand,
            _ => boolean(false),
        }
    }

    // --------------------------------------------------------------------------------- names

    fn name(&mut self, expr: &'a Expr) -> Val {
        let Some(def) = self.checked.names[expr.id.0 as usize] else {
            return Val::Void;
        };
        match self.entity(def) {
            Some(Entity::Place(place)) => self.read(&place),
            Some(Entity::Value(value)) => value,
            None => Val::Void,
        }
    }

    /// What a declaration stands for here.
    pub(super) fn entity(&mut self, def: DefId) -> Option<Entity> {
        if let Some(entity) = self.bindings.get(&def).cloned() {
            self.note_capture(def, &entity);
            return Some(entity);
        }
        match self.def_kind(def) {
            DefKind::Constant { ty, value, expr } => {
                let (ty, value, expr) = (*ty, value.clone(), *expr);
                let ty = self.concrete(ty);
                let value = match value {
                    Some(value) => self.constant_value(&value, ty),
                    None => self.expr_as(expr, ty),
                };
                self.bindings.insert(def, Entity::Value(value.clone()));
                Some(Entity::Value(value))
            }
            DefKind::Instance { ast, .. } if self.globals.contains(&def) => {
                let ast = *ast;
                let path = std::mem::take(&mut self.path);
                let pipeline = std::mem::take(&mut self.pipeline);
                let value = self.instantiate(def, ast);
                (self.path, self.pipeline) = (path, pipeline);
                self.bindings.insert(def, Entity::Value(value.clone()));
                Some(Entity::Value(value))
            }
            _ => None,
        }
    }

    /// A value that the checker evaluated.
    pub(super) fn constant_value(&mut self, value: &Const, ty: Ty) -> Val {
        match (value, self.kind(ty)) {
            (Const::Bool(b), _) => Val::Scalar(boolean(*b)),
            (Const::Int(v), _) => match self.scalar_width(ty) {
                Some(w) => Val::Scalar(Operand::Const(Bits::from_bigint(w, v))),
                None => Val::Int(v.clone()),
            },
            (Const::String(s), _) => Val::String(s.clone()),
            (Const::Member(i), _) => Val::Scalar(constant(32, *i as u128)),
            (Const::Error(name), _) => Val::Scalar(constant(32, u128::from(self.error_code(name)))),
            (Const::InvalidHeader, _) if self.is_header_like(ty) => self.zero(ty),
            (Const::InvalidHeader, _) => Val::InvalidHeader,
            (Const::List(values), TyKind::Tuple(parts) | TyKind::Listed(parts)) => Val::tuple(
                values
                    .iter()
                    .zip(parts.iter())
                    .map(|(v, &t)| self.constant_value(v, t))
                    .collect(),
            ),
            (Const::List(values), TyKind::List(element) | TyKind::Stack(element, _)) => {
                let values: Vec<Val> = values.iter().map(|v| self.constant_value(v, element)).collect();
                match self.kind(ty) {
                    TyKind::Stack(..) => {
                        let next = self.is_header_like(element).then(|| constant(32, values.len() as u128));
                        Val::Stack {
                            elements: Rc::new(values),
                            next,
                        }
                    }
                    _ => Val::tuple(values),
                }
            }
            (Const::List(values), _) => {
                let types = self.component_types(ty);
                Val::tuple(
                    values
                        .iter()
                        .zip(types)
                        .map(|(v, t)| self.constant_value(v, t))
                        .collect(),
                )
            }
            (Const::Fields(fields), TyKind::Struct(def, arguments)) => {
                let types: FxHashMap<Name, Ty> = self.checked.fields_of(def, &arguments).into_iter().collect();
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(n, v)| {
                        let t = types.get(n).copied().unwrap_or(Types::UNKNOWN);
                        (n.clone(), self.constant_value(v, t))
                    })
                    .collect();
                let fields = Rc::new(fields);
                if self.checked.struct_kind(ty) == Some(StructKind::Header) {
                    Val::Header {
                        valid: boolean(true),
                        fields,
                        source: None,
                    }
                } else {
                    Val::Struct(fields)
                }
            }
            (Const::Fields(fields), _) => Val::Struct(Rc::new(
                fields
                    .iter()
                    .map(|(n, v)| (n.clone(), self.constant_value(v, Types::INTEGER)))
                    .collect(),
            )),
        }
    }

    fn error_code(&self, name: &str) -> u32 {
        self.error_codes.get(name).copied().unwrap_or(0)
    }

    fn member(&mut self, expr: &'a Expr, base: &'a Expr, member: &str) -> Val {
        let base_type = self.ty(base);
        match self.kind(base_type) {
            TyKind::TypeName(named) => {
                let named = self.concrete(named);
                self.type_member(named, member)
            }
            TyKind::ApplyResult(_) => {
                // Evaluates the application, then reads what it left.
                let table = self.apply_of(base);
                let Some(table) = table else {
                    return Val::Scalar(boolean(false));
                };
                let hit = Operand::Var(table.hit);
                match member {
                    "hit" => Val::Scalar(self.copy(hit)),
                    "miss" => Val::Scalar(self.not(hit)),
                    _ => Val::Object(Object::Table(table)),
                }
            }
            TyKind::Stack(element, size) => match member {
                "size" => Val::Scalar(constant(32, u128::from(size))),
                "last" | "next" => {
                    let _ = element;
                    let place = self.place(expr);
                    self.read(&place)
                }
                "lastIndex" => match self.expr(base) {
                    Val::Stack { next: Some(next), .. } => Val::Scalar(self.binary(Op::Sub, next, constant(32, 1), 32)),
                    _ => Val::Scalar(constant(32, 0)),
                },
                _ => Val::Void,
            },
            _ => {
                if self.is_place(expr) {
                    let place = self.place(expr);
                    return self.read(&place);
                }
                self.member_of(base, member)
            }
        }
    }

    fn member_of(&mut self, base: &'a Expr, member: &str) -> Val {
        let ty = self.ty(base);
        match self.expr(base) {
            Val::Struct(fields) | Val::Union(fields) | Val::Header { fields, .. } => {
                let position = self.field_position(ty, member);
                if let Some(value) = named(&fields, member, position) {
                    return value.clone();
                }
                // A list that has not met its struct type yet.
                position
                    .and_then(|p| fields.get(p))
                    .map_or(Val::Void, |(_, v)| v.clone())
            }
            other => other,
        }
    }

    /// Where a struct or header type has a field.
    fn field_position(&self, ty: Ty, name: &str) -> Option<usize> {
        match self.kind(ty) {
            TyKind::Struct(def, _) => self.checked.positions.get(&def)?.get(name).copied(),
            _ => None,
        }
    }

    pub(super) fn type_member(&mut self, named: Ty, member: &str) -> Val {
        match self.kind(named) {
            TyKind::Error => Val::Scalar(constant(32, u128::from(self.error_code(member)))),
            TyKind::Enum(def) => {
                let id = self.enum_id(def);
                let e = &self.program.enums[id];
                let positions = self.checked.positions.get(&def);
                let index = positions.and_then(|p| p.get(member)).copied().unwrap_or(0);
                Val::Scalar(match &e.values {
                    Some(values) => Operand::Const(values[index].clone()),
                    None => constant(32, index as u128),
                })
            }
            _ => Val::Void,
        }
    }

    fn index(&mut self, expr: &'a Expr, base: &'a Expr, index: &'a Expr) -> Val {
        if self.is_place(expr) {
            let place = self.place(expr);
            return self.read(&place);
        }
        match self.expr(base) {
            Val::Struct(parts) => {
                let i = self.constant_u32(index) as usize;
                parts.get(i).map_or(Val::Void, |(_, v)| v.clone())
            }
            Val::Stack { elements, .. } => {
                let elements = elements.iter().map(|e| Place::Nowhere(Box::new(e.clone()))).collect();
                let index = self.number(index);
                self.read(&Place::Dynamic {
                    elements: Rc::new(elements),
                    index,
                })
            }
            Val::Object(Object::Array(values)) => {
                let i = self.constant_u32(index) as usize;
                values.get(i).cloned().unwrap_or(Val::Void)
            }
            other => other,
        }
    }

    // --------------------------------------------------------------------------------- places

    /// Whether the expression names a place: a variable, or a part of one.
    pub(super) fn is_place(&mut self, expr: &'a Expr) -> bool {
        match &expr.kind {
            ExprKind::Name { .. } => {
                let def = self.checked.names[expr.id.0 as usize];
                matches!(def.and_then(|d| self.entity(d)), Some(Entity::Place(_)))
            }
            ExprKind::Member(base, _) => {
                !matches!(self.kind(self.checked.ty(base)), TyKind::TypeName(_)) && self.is_place(base)
            }
            ExprKind::Index(base, _) => {
                matches!(self.kind(self.checked.ty(base)), TyKind::Stack(..) | TyKind::Tuple(_)) && self.is_place(base)
            }
            ExprKind::Slice(base, ..) | ExprKind::PlusSlice(base, ..) => self.is_place(base),
            _ => false,
        }
    }

    /// The place of an l-value; indices are evaluated now.
    pub(super) fn place(&mut self, expr: &'a Expr) -> Place {
        match &expr.kind {
            ExprKind::Name { .. } => {
                let def = self.checked.names[expr.id.0 as usize];
                match def.and_then(|d| self.entity(d)) {
                    Some(Entity::Place(place)) => place,
                    Some(Entity::Value(value)) => Place::Nowhere(Box::new(value)),
                    None => Place::Nowhere(Box::new(Val::Void)),
                }
            }
            ExprKind::Member(base, member) => {
                let ty = self.ty(base);
                if let TyKind::Stack(..) = self.kind(ty) {
                    let stack = self.place(base);
                    return self.stack_cursor(expr, stack, &member.name);
                }
                let place = self.place(base);
                let position = self.field_position(ty, &member.name);
                match place.member(&member.name, position) {
                    Some(part) => part,
                    None => {
                        let ty = self.ty(expr);
                        let zero = self.zero(ty);
                        Place::Nowhere(Box::new(zero))
                    }
                }
            }
            ExprKind::Index(base, index) => {
                let place = self.place(base);
                let value = self.expr(index);
                let element = self.ty(expr);
                self.element(place, value, element)
            }
            ExprKind::Slice(base, hi, lo) => {
                let place = self.place(base);
                let (hi, lo) = (self.constant_u32(hi), self.constant_u32(lo));
                Place::Slice {
                    base: Box::new(place),
                    hi,
                    lo,
                }
            }
            ExprKind::PlusSlice(base, lo, width) => {
                let place = self.place(base);
                let lo = self.number(lo);
                let lo = self.copy(lo);
                let width = self.constant_u32(width);
                match &lo {
                    Operand::Const(c) => {
                        let lo = c.to_u64().unwrap_or(0) as u32;
                        Place::Slice {
                            base: Box::new(place),
                            hi: lo + width - 1,
                            lo,
                        }
                    }
                    Operand::Var(_) => Place::MovingSlice {
                        base: Box::new(place),
                        lo,
                        width,
                    },
                }
            }
            _ => {
                let value = self.expr(expr);
                Place::Nowhere(Box::new(value))
            }
        }
    }

    fn element(&mut self, place: Place, index: Val, ty: Ty) -> Place {
        let elements = match &place {
            Place::Stack { elements, .. } => elements.clone(),
            Place::Struct(parts) => Rc::new(parts.iter().map(|(_, p)| p.clone()).collect()),
            Place::Dynamic { elements, index: outer } => return self.element_of_dynamic(elements, outer, index, ty),
            Place::Nowhere(value) => match &**value {
                Val::Stack { elements, .. } => {
                    Rc::new(elements.iter().map(|e| Place::Nowhere(Box::new(e.clone()))).collect())
                }
                Val::Struct(parts) => Rc::new(parts.iter().map(|(_, e)| Place::Nowhere(Box::new(e.clone()))).collect()),
                _ => Rc::new(Vec::new()),
            },
            _ => Rc::new(Vec::new()),
        };
        if elements.is_empty() {
            let zero = self.zero(ty);
            return Place::Nowhere(Box::new(zero));
        }
        let known = match &index {
            Val::Int(v) => Some(v.to_usize().unwrap_or(usize::MAX)),
            Val::Scalar(Operand::Const(c)) => Some(c.to_u64_saturating().min(u64::from(u32::MAX)) as usize),
            _ => None,
        };
        match (known, index) {
            (Some(i), _) => elements.get(i).cloned().unwrap_or_else(|| {
                let zero = self.zero(ty);
                Place::Nowhere(Box::new(zero))
            }),
            (None, Val::Scalar(index)) => {
                let index = self.copy(index);
                self.note_expansion(elements.len());
                Place::Dynamic { elements, index }
            }
            _ => Place::Nowhere(Box::new(Val::Void)),
        }
    }

    fn element_of_dynamic(&mut self, outer: &Rc<Vec<Place>>, outer_index: &Operand, index: Val, ty: Ty) -> Place {
        // Two run-time indices: flatten to one of all elements.
        let inner: Vec<Place> = outer
            .iter()
            .map(|p| self.element(p.clone(), index.clone(), ty))
            .collect();
        let Some(Place::Dynamic {
            elements,
            index: second,
        }) = inner.first().cloned()
        else {
            return Place::Dynamic {
                elements: Rc::new(inner),
                index: outer_index.clone(),
            };
        };
        let count = elements.len();
        let mut all = Vec::new();
        for place in inner {
            if let Place::Dynamic { elements, .. } = place {
                all.extend(elements.iter().cloned());
            }
        }
        self.note_expansion(all.len());
        let wide = |s: &mut Self, o: Operand| s.compute(Rvalue::ZeroExtend(o), 64);
        let first = wide(self, outer_index.clone());
        let scaled = self.binary(Op::Mul, first, constant(64, count as u128), 64);
        let second_wide = wide(self, second.clone());
        let inside = self.binary(Op::Lt, second_wide.clone(), constant(64, count as u128), 1);
        let sum = self.binary(Op::Add, scaled, second_wide, 64);
        let index = self.mux(inside, sum, constant(64, u128::from(u64::MAX)));
        Place::Dynamic {
            elements: Rc::new(all),
            index,
        }
    }

    /// An access by a run-time index is a choice among all elements: count it against the budget.
    fn note_expansion(&mut self, elements: usize) {
        self.instructions += elements;
        if self.instructions > super::MAX_INSTRUCTIONS {
            self.exhausted = true;
        }
    }

    /// `stack.next` and `stack.last` in a parser.
    fn stack_cursor(&mut self, expr: &'a Expr, stack: Place, member: &str) -> Place {
        let Place::Stack {
            elements,
            next: Some(next),
        } = &stack
        else {
            return Place::Nowhere(Box::new(Val::Void));
        };
        let cursor = self.copy_always(Operand::Var(*next));
        let (index, good) = if member == "next" {
            let good = self.binary(Op::Lt, cursor.clone(), constant(32, elements.len() as u128), 1);
            (cursor, good)
        } else {
            let good = self.binary(Op::Ne, cursor.clone(), constant(32, 0), 1);
            let last = self.binary(Op::Sub, cursor, constant(32, 1), 32);
            (last, good)
        };
        let code = self.program.error_code("StackOutOfBounds").unwrap_or(0);
        self.at(expr.span, |s| s.require(good, constant(32, u128::from(code))));
        Place::Dynamic {
            elements: elements.clone(),
            index,
        }
    }

    pub(super) fn copy_always(&mut self, operand: Operand) -> Operand {
        self.copy(operand)
    }

    /// In a parser: rejects with this error unless the condition holds.
    pub(super) fn require(&mut self, condition: Operand, code: Operand) {
        let (Some(reject), Some(error)) = (self.reject, self.body.error) else {
            return;
        };
        let failed = self.new_block();
        let good = self.new_block();
        self.terminate_to(
            Terminator::Branch {
                condition,
                then: good,
                otherwise: failed,
            },
            failed,
        );
        self.set(error, code);
        self.terminate_to(Terminator::Goto(reject), good);
    }
}
