//! Parts of values: indices, slices and members.

use super::{Checker, DefKind};
use crate::types::{Ty, TyKind, Types};
use num_traits::{Signed, ToPrimitive};
use weir_syntax::ast::{Expr, ExprKind, Ident, StructKind};
use weir_syntax::diagnostic::Diagnostic;

/// A message names all fields, up to this number.
const MAX_LISTED: usize = 12;

impl<'a> Checker<'a> {
    pub(super) fn index(&mut self, expr: &'a Expr, base: &'a Expr, index: &'a Expr) -> Ty {
        let ty = self.expr(base, None);
        let index_type = self.expr(index, None);
        if self.is_unknown(ty) {
            return Types::UNKNOWN;
        }
        match self.kind(index_type) {
            TyKind::Integer | TyKind::Bit(_) | TyKind::Int(_) | TyKind::Unknown => {}
            TyKind::Enum(d) if self.info.enum_underlying(d).is_some() => {}
            _ => {
                let shown = self.show(index_type);
                return self.type_error(index.span, format!("an index must be a number, but it is {shown}"));
            }
        }
        let value = self.eval_int(index);
        let (element, size) = match self.kind(ty) {
            TyKind::Stack(element, size) => (element, size),
            TyKind::Tuple(parts) | TyKind::Listed(parts) => {
                let Some(value) = value else {
                    return self.type_error(index.span, "the index of a tuple must be a constant");
                };
                return match value.to_usize().and_then(|i| parts.get(i)) {
                    Some(&part) => part,
                    None => self.type_error(
                        index.span,
                        format!("the tuple has {} elements, so there is none at {value}", parts.len()),
                    ),
                };
            }
            _ => {
                let shown = self.show(ty);
                return self.type_error(expr.span, format!("only stacks and tuples can be indexed, not {shown}"));
            }
        };
        if let Some(value) = value {
            if value.is_negative() {
                return self.type_error(index.span, format!("the index {value} is negative"));
            }
            if value >= size.into() && size > 0 {
                return self.type_error(
                    index.span,
                    format!("the stack has {size} elements, so there is none at {value}"),
                );
            }
        } else if index_type == Types::INTEGER && !self.is_constant(index) {
            return self.type_error(index.span, "an index that is not a constant needs a width");
        }
        element
    }

    pub(super) fn slice(&mut self, expr: &'a Expr, base: &'a Expr, hi: &'a Expr, lo: &'a Expr) -> Ty {
        let ty = self.expr(base, None);
        for bound in [hi, lo] {
            self.expr(bound, None);
        }
        let represented = match self.kind(ty) {
            TyKind::Enum(d) => self.info.enum_underlying(d).unwrap_or(ty),
            _ => ty,
        };
        let width = match self.kind(represented) {
            TyKind::Bit(w) | TyKind::Int(w) => Some(w),
            TyKind::Unknown => return Types::UNKNOWN,
            TyKind::Integer => {
                return self.type_error(
                    expr.span,
                    "bits can be taken only from numbers of known width, not from an int",
                );
            }
            _ => {
                let shown = self.show(ty);
                return self.type_error(
                    expr.span,
                    format!("bits can be taken only from bit<W> and int<W>, not from {shown}"),
                );
            }
        };
        let (Some(h), Some(l)) = (self.slice_bound(hi), self.slice_bound(lo)) else {
            return Types::UNKNOWN;
        };
        for (value, bound) in [(&h, hi), (&l, lo)] {
            if value.is_negative() {
                return self.type_error(bound.span, format!("the bit index {value} is negative"));
            }
            if width.is_some_and(|w| *value >= w.into()) {
                return self.type_error(
                    bound.span,
                    format!("the value has {} bits, so there is no bit {value}", width.unwrap_or(0)),
                );
            }
        }
        if h < l {
            return self.type_error(
                expr.span,
                format!("the first index of a slice is the higher one, but {h} is less than {l}"),
            );
        }
        let result = (h - l).to_u32().unwrap_or(0) + 1;
        self.info.types.bit(result)
    }

    pub(super) fn slice_bound(&mut self, bound: &'a Expr) -> Option<num_bigint::BigInt> {
        let value = self.eval_int(bound);
        if value.is_none() && !self.is_unknown(self.info.ty(bound)) {
            self.error("type-error", bound.span, "the bounds of a slice must be constants");
        }
        value
    }

    pub(super) fn plus_slice(&mut self, expr: &'a Expr, base: &'a Expr, lo: &'a Expr, width: &'a Expr) -> Ty {
        let ty = self.expr(base, None);
        let lo_type = self.expr(lo, None);
        self.expr(width, None);
        if !matches!(
            self.kind(lo_type),
            TyKind::Integer | TyKind::Bit(_) | TyKind::Int(_) | TyKind::Unknown
        ) {
            let shown = self.show(lo_type);
            return self.type_error(lo.span, format!("a bit index must be a number, but it is {shown}"));
        }
        let total = match self.kind(ty) {
            TyKind::Bit(w) | TyKind::Int(w) => w,
            TyKind::Unknown => return Types::UNKNOWN,
            _ => {
                let shown = self.show(ty);
                return self.type_error(
                    expr.span,
                    format!("bits can be taken only from bit<W> and int<W>, not from {shown}"),
                );
            }
        };
        let Some(w) = self.slice_bound(width) else {
            return Types::UNKNOWN;
        };
        let first = self.eval_int(lo);
        if w.is_negative() || first.as_ref().is_some_and(num_bigint::BigInt::is_negative) {
            self.error(
                "expected",
                expr.span,
                "the index and width of a slice cannot be negative",
            );
            return Types::UNKNOWN;
        }
        if w > total.into() || first.is_some_and(|f| f + &w > total.into()) {
            return self.type_error(
                expr.span,
                format!("the slice reaches beyond the {total} bits of the value"),
            );
        }
        let w = w.to_u32().unwrap_or(0);
        if w == 0 {
            return self.type_error(width.span, "a slice has at least one bit");
        }
        self.info.types.bit(w)
    }

    pub(super) fn member(&mut self, expr: &'a Expr, base: &'a Expr, member: &'a Ident) -> Ty {
        let ty = self.expr(base, None);
        let name = &*member.name;
        match self.kind(ty) {
            TyKind::Unknown => Types::UNKNOWN,
            TyKind::TypeName(named) => self.type_member(expr, named, member),
            TyKind::Struct(def, arguments) => {
                if let Some((_, field)) = self.info.field(def, &arguments, name) {
                    return field;
                }
                let kind = self.struct_kind(ty);
                let is_method = match name {
                    "isValid" => kind != Some(StructKind::Struct),
                    "setValid" | "setInvalid" => kind == Some(StructKind::Header),
                    _ => is_size_method(name),
                };
                if is_method {
                    return Types::METHOD;
                }
                let shown = self.show(ty);
                // Of very many fields, only the first findings look at all.
                let is_small = self.info.positions.get(&def).is_some_and(|p| p.len() <= MAX_LISTED);
                let fields = match is_small || self.suggests() {
                    true => self.fields_of(def, &arguments),
                    false => Vec::new(),
                };
                let mut diagnostic =
                    Diagnostic::error("type-error", member.span, format!("{shown} has no field `{name}`"));
                if let Some(like) = self.similar(name, fields.iter().map(|(n, _)| &**n)) {
                    diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
                } else if !fields.is_empty() && is_small {
                    let list: Vec<&str> = fields.iter().map(|(n, _)| &**n).collect();
                    diagnostic = diagnostic.help(format!("its fields are {}", list.join(", ")));
                }
                self.report(diagnostic);
                Types::UNKNOWN
            }
            TyKind::Stack(element, _) => self.stack_member(expr, element, member),
            TyKind::ApplyResult(table) => match name {
                "hit" | "miss" => Types::BOOL,
                "action_run" => {
                    if self.switch_expression != Some(expr.id) {
                        return self.type_error(
                            expr.span,
                            "`action_run` can stand only as the whole expression of a switch",
                        );
                    }
                    self.info.types.intern(TyKind::ActionRun(table))
                }
                _ => self.type_error(
                    member.span,
                    format!("the result of apply has hit, miss and action_run, but not `{name}`"),
                ),
            },
            TyKind::Extern(..) => Types::METHOD,
            TyKind::Def(def) if name == "apply" && matches!(self.def(def).kind, DefKind::Table { .. }) => Types::METHOD,
            TyKind::Parser(..) | TyKind::Control(..) if name == "apply" => Types::METHOD,
            TyKind::Bit(_)
            | TyKind::Int(_)
            | TyKind::Bool
            | TyKind::Varbit(_)
            | TyKind::Enum(_)
            | TyKind::New(_)
            | TyKind::Tuple(_)
                if is_size_method(name) && !matches!(base.kind, ExprKind::Int { .. }) =>
            {
                if self.info.size_in_bits(ty).is_some() {
                    Types::METHOD
                } else {
                    let shown = self.show(ty);
                    self.type_error(member.span, format!("{shown} has no size"))
                }
            }
            _ => {
                let shown = self.show(ty);
                self.type_error(member.span, format!("{shown} has no member `{name}`"))
            }
        }
    }

    pub(super) fn type_member(&mut self, expr: &'a Expr, named: Ty, member: &'a Ident) -> Ty {
        let _ = expr;
        match self.kind(named) {
            TyKind::Enum(def) => {
                let DefKind::Enum { members, .. } = &self.def(def).kind else {
                    return Types::UNKNOWN;
                };
                if self
                    .info
                    .positions
                    .get(&def)
                    .is_some_and(|p| p.contains_key(&member.name))
                {
                    return named;
                }
                let like = self
                    .similar(&member.name, members.iter().map(|(n, _)| &*n.name))
                    .map(str::to_string);
                if is_size_method(&member.name) && self.info.size_in_bits(named).is_some() {
                    return Types::METHOD;
                }
                let shown = self.show(named);
                let mut diagnostic = Diagnostic::error(
                    "type-error",
                    member.span,
                    format!("{shown} has no member `{}`", member.name),
                );
                if let Some(like) = like {
                    diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
                }
                self.report(diagnostic);
                Types::UNKNOWN
            }
            TyKind::Error => {
                if self.info.error_positions.contains_key(&member.name) {
                    return Types::ERROR;
                }
                let like = self
                    .similar(&member.name, self.info.errors.iter().map(|e| &*e.name))
                    .map(str::to_string);
                let mut diagnostic = Diagnostic::error(
                    "type-error",
                    member.span,
                    format!("there is no error `{}`", member.name),
                );
                if let Some(like) = like {
                    diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
                }
                self.report(diagnostic);
                Types::UNKNOWN
            }
            TyKind::Control(..) | TyKind::Parser(..) if &*member.name == "apply" => Types::METHOD,
            _ if is_size_method(&member.name) && self.info.size_in_bits(named).is_some() => Types::METHOD,
            TyKind::Extern(..) => Types::METHOD,
            _ => {
                let shown = self.show(named);
                self.type_error(member.span, format!("the type {shown} has no member `{}`", member.name))
            }
        }
    }

    pub(super) fn stack_member(&mut self, expr: &'a Expr, element: Ty, member: &'a Ident) -> Ty {
        let header_like = matches!(
            self.struct_kind(element),
            Some(StructKind::Header | StructKind::HeaderUnion)
        ) || matches!(self.kind(element), TyKind::Parameter(..));
        match &*member.name {
            "size" => self.info.types.bit(32),
            "push_front" | "pop_front" if header_like => Types::METHOD,
            "next" | "last" | "lastIndex" if header_like => {
                if &*member.name != "lastIndex" && !self.context.in_parser {
                    return self.type_error(
                        expr.span,
                        format!("`{}` of a stack can be used only in a parser", member.name),
                    );
                }
                if &*member.name == "lastIndex" {
                    if !self.context.in_parser {
                        return self.type_error(expr.span, "`lastIndex` of a stack can be used only in a parser");
                    }
                    return self.info.types.bit(32);
                }
                element
            }
            name if is_size_method(name) => Types::METHOD,
            name => self.type_error(member.span, format!("a stack has no member `{name}`")),
        }
    }
}

pub(super) fn is_size_method(name: &str) -> bool {
    matches!(
        name,
        "minSizeInBits" | "minSizeInBytes" | "maxSizeInBits" | "maxSizeInBytes"
    )
}
