//! Expressions.

use super::{Callee, Checker, DefKind};
use crate::types::{DefId, Ty, TyKind, Types};
use num_traits::Signed;
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{Direction, Expr, ExprKind, Ident};
use weir_syntax::diagnostic::Diagnostic;

impl<'a> Checker<'a> {
    /// Types an expression. `expected` is a hint: it gives literals and generic calls a type, but
    /// nothing is checked against it.
    pub(super) fn expr(&mut self, expr: &'a Expr, expected: Option<Ty>) -> Ty {
        let ty = self.expr_kind(expr, expected);
        if let Some(slot) = self.info.expr_types.get_mut(expr.id.0 as usize) {
            *slot = ty;
        }
        ty
    }

    /// Types an expression that stands where a value of type `to` is expected; reports where it
    /// cannot be converted. Returns the type it has, or unknown.
    pub(super) fn expr_as(&mut self, expr: &'a Expr, to: Ty, what: &str) -> Ty {
        let given = self.expr_of_type(expr, to, what);
        if given == Types::INTEGER
            && let Some(value) = self.eval(expr)
        {
            self.warn_overflow(&value, given, to, expr.span);
        }
        given
    }

    /// As [`Self::expr_as`], but a number that does not fit is for the caller to report.
    pub(super) fn expr_of_type(&mut self, expr: &'a Expr, to: Ty, what: &str) -> Ty {
        let given = self.expr(expr, Some(to));
        if let TyKind::Def(_)
        | TyKind::TypeName(_)
        | TyKind::Method
        | TyKind::ApplyResult(_)
        | TyKind::ActionRun(_)
        | TyKind::Void = self.kind(given)
        {
            let shown = self.show(given);
            return self.type_error(expr.span, format!("{what} is {shown}, which is no value"));
        }
        if self.is_unknown(given) || self.is_unknown(to) {
            return given;
        }
        if matches!(self.kind(given), TyKind::Set(_)) && !matches!(self.kind(to), TyKind::Set(_)) {
            let shown = self.show(given);
            return self.type_error(expr.span, format!("{what} is {shown}, a set and not a value"));
        }
        if self.coerces(given, to) {
            return given;
        }
        self.mismatch(expr, given, to, what);
        Types::UNKNOWN
    }

    fn mismatch(&mut self, expr: &'a Expr, given: Ty, to: Ty, what: &str) {
        let (g, t) = (self.show(given), self.show(to));
        let mut diagnostic = Diagnostic::error("type-error", expr.span, format!("{what} is {g}, but {t} is expected"));
        let help = match (self.kind(given), self.kind(to)) {
            (TyKind::Bit(_), TyKind::Bit(_)) | (TyKind::Int(_), TyKind::Int(_)) => Some(format!("cast it: `({t}) …`")),
            (TyKind::Bit(_), TyKind::Int(_)) | (TyKind::Int(_), TyKind::Bit(_)) => {
                Some("cast it; width and sign need a cast each".to_string())
            }
            (TyKind::Bit(1), TyKind::Bool) | (TyKind::Bool, TyKind::Bit(1)) => Some(format!("cast it: `({t}) …`")),
            (TyKind::Fields(fields, dots), TyKind::Struct(def, arguments)) => {
                let wanted = self.fields_of(def, &arguments);
                let given: FxHashMap<&str, Ty> = fields.iter().rev().map(|(n, t)| (&**n, *t)).collect();
                let known: FxHashSet<&str> = wanted.iter().map(|(n, _)| &**n).collect();
                let names = wanted.iter().map(|(n, _)| &**n);
                let missing: Vec<&str> = names.filter(|n| !given.contains_key(n)).collect();
                let names = fields.iter().map(|(n, _)| &**n);
                let extra: Vec<&str> = names.filter(|n| !known.contains(n)).collect();
                if !extra.is_empty() {
                    Some(format!("it has no field {}", extra.join(", ")))
                } else if !missing.is_empty() && !dots {
                    Some(format!(
                        "these fields have no value: {}; give them one or end with `...`",
                        missing.join(", ")
                    ))
                } else {
                    let pairs = wanted.iter().filter_map(|(n, t)| {
                        let given = given.get(&**n)?;
                        Some((n.to_string(), *given, *t))
                    });
                    self.first_that_differs(pairs.collect())
                }
            }
            (TyKind::Listed(values), TyKind::Struct(def, arguments)) => {
                let wanted = self.fields_of(def, &arguments);
                if wanted.len() == values.len() {
                    let pairs = wanted.iter().zip(values.iter());
                    self.first_that_differs(pairs.map(|((n, t), v)| (n.to_string(), *v, *t)).collect())
                } else {
                    let names: Vec<&str> = wanted.iter().map(|(n, _)| &**n).collect();
                    Some(format!("{} fields need a value: {}", names.len(), names.join(", ")))
                }
            }
            (_, TyKind::New(_)) | (TyKind::New(_), _) => {
                Some(format!("a `type` does not convert by itself; cast it: `({t}) …`"))
            }
            _ => None,
        };
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }

    /// Says which part of a struct has a value of the wrong type.
    fn first_that_differs(&mut self, parts: Vec<(String, Ty, Ty)>) -> Option<String> {
        let (name, given, wanted) = parts
            .into_iter()
            .find(|&(_, given, wanted)| !self.coerces(given, wanted))?;
        let (given, wanted) = (self.show(given), self.show(wanted));
        Some(format!("the field `{name}` is {wanted}, but its value is {given}"))
    }

    fn expr_kind(&mut self, expr: &'a Expr, expected: Option<Ty>) -> Ty {
        match &expr.kind {
            ExprKind::Bool(_) => Types::BOOL,
            ExprKind::Int { width, value, .. } => self.literal(expr, *width, value),
            ExprKind::String(_) => Types::STRING,
            ExprKind::This => match self.this_type {
                Some(ty) => ty,
                None => {
                    self.error(
                        "invalid",
                        expr.span,
                        "`this` can stand only in the body of an abstract method",
                    );
                    Types::UNKNOWN
                }
            },
            ExprKind::Name { absolute, name } => self.name(expr, *absolute, name),
            ExprKind::Type(ty) => {
                let named = self.resolve_type(ty);
                if self.is_unknown(named) {
                    named
                } else {
                    self.info.types.intern(TyKind::TypeName(named))
                }
            }
            ExprKind::Index(base, index) => self.index(expr, base, index),
            ExprKind::Slice(base, hi, lo) => self.slice(expr, base, hi, lo),
            ExprKind::PlusSlice(base, lo, width) => self.plus_slice(expr, base, lo, width),
            ExprKind::Member(base, member) => self.member(expr, base, member),
            ExprKind::Unary(op, operand) => self.unary(expr, *op, operand, expected),
            ExprKind::Binary(op, a, b) => self.binary(expr, *op, a, b, expected),
            ExprKind::Conditional(c, a, b) => self.conditional(expr, c, a, b, expected),
            ExprKind::Cast(ty, operand) => {
                let to = self.resolve_type(ty);
                self.complete_type(to, ty.span);
                let from = self.expr(operand, Some(to));
                self.check_cast(expr, operand, from, to);
                to
            }
            ExprKind::List(elements) => self.list(elements, expected),
            ExprKind::Struct(fields, dots) => self.struct_literal(fields, *dots, expected),
            ExprKind::InvalidHeader => Types::INVALID_HEADER,
            ExprKind::Call {
                callee,
                type_arguments,
                arguments,
            } => self.call(expr, callee, type_arguments, arguments, expected),
            ExprKind::Mask(a, b) => self.mask(expr, a, b, expected),
            ExprKind::Range(a, b) => self.range(expr, a, b, expected),
            ExprKind::Default | ExprKind::DontCare => {
                let fresh = expected.unwrap_or_else(|| self.info.types.fresh());
                self.info.types.set(fresh)
            }
            ExprKind::Dots => Types::DOTS,
            ExprKind::Error => Types::UNKNOWN,
        }
    }

    fn literal(&mut self, expr: &Expr, width: Option<(u32, bool)>, value: &num_bigint::BigInt) -> Ty {
        match width {
            None => Types::INTEGER,
            Some((w, _)) if w > super::ty::MAX_WIDTH => {
                self.error(
                    "overlimit",
                    expr.span,
                    format!("{w} bits are too many: the limit is {}", super::ty::MAX_WIDTH),
                );
                Types::UNKNOWN
            }
            Some((0, true)) => {
                self.error("invalid", expr.span, "a signed number has at least 1 bit");
                Types::UNKNOWN
            }
            Some((w, signed)) => {
                if value.bits() > u64::from(w) {
                    self.report(Diagnostic::warning(
                        "overflow",
                        expr.span,
                        format!("{value} does not fit into {w} bits and is cut off"),
                    ));
                } else if signed && w > 0 && value.bits() == u64::from(w) {
                    self.report(Diagnostic::warning(
                        "overflow",
                        expr.span,
                        format!("{value} is negative as a signed number of {w} bits"),
                    ));
                }
                if signed {
                    self.info.types.int(w)
                } else {
                    self.info.types.bit(w)
                }
            }
        }
    }

    fn name(&mut self, expr: &Expr, absolute: bool, name: &Ident) -> Ty {
        let defs = self.lookup(&name.name, absolute);
        let Some(&def) = defs.first() else {
            if self.info.match_kind_positions.contains_key(&name.name) {
                return Types::MATCH_KIND;
            }
            self.not_found("name", name);
            return Types::UNKNOWN;
        };
        self.info.names[expr.id.0 as usize] = Some(def);
        if self.current_table == Some(def) {
            self.error(
                "type-error",
                expr.span,
                format!("the table `{}` cannot refer to itself", name.name),
            );
            return Types::UNKNOWN;
        }
        match &self.def(def).kind {
            DefKind::Constant { ty, .. }
            | DefKind::Variable { ty }
            | DefKind::Parameter { ty, .. }
            | DefKind::Instance { ty, .. } => *ty,
            DefKind::Alias(ty) => {
                let ty = *ty;
                self.info.types.intern(TyKind::TypeName(ty))
            }
            DefKind::Action { .. } | DefKind::Table { .. } | DefKind::Function(_) => {
                self.info.types.intern(TyKind::Def(def))
            }
            DefKind::ValueSet { element, .. } => {
                let element = *element;
                self.info.types.intern(TyKind::Set(element))
            }
            DefKind::Broken => Types::UNKNOWN,
            DefKind::Struct { parameters, .. }
            | DefKind::Extern { parameters, .. }
            | DefKind::BlockType { parameters, .. }
            | DefKind::Parser { parameters, .. }
            | DefKind::Control { parameters, .. } => {
                let fresh = (0..parameters.len()).map(|_| self.info.types.fresh()).collect();
                let ty = self.apply_type(def, fresh);
                self.info.types.intern(TyKind::TypeName(ty))
            }
            DefKind::NewType(_) | DefKind::Enum { .. } => {
                let ty = self.apply_type(def, Vec::new());
                self.info.types.intern(TyKind::TypeName(ty))
            }
        }
    }

    fn conditional(&mut self, expr: &'a Expr, c: &'a Expr, a: &'a Expr, b: &'a Expr, expected: Option<Ty>) -> Ty {
        let condition = self.expr(c, Some(Types::BOOL));
        if !self.unify(condition, Types::BOOL) {
            let shown = self.show(condition);
            self.error(
                "type-error",
                c.span,
                format!("the condition of `?:` must be a bool, but it is {shown}"),
            );
        }
        let (ta, tb) = (self.expr(a, expected), self.expr(b, expected));
        for (e, t) in [(a, ta), (b, tb)] {
            if matches!(
                self.kind(t),
                TyKind::Def(_)
                    | TyKind::TypeName(_)
                    | TyKind::Method
                    | TyKind::Void
                    | TyKind::Set(_)
                    | TyKind::Extern(..)
                    | TyKind::ApplyResult(_)
            ) {
                let shown = self.show(t);
                return self.type_error(e.span, format!("`?:` cannot choose {shown}"));
            }
        }
        if let (TyKind::Integer, TyKind::Integer) = (self.kind(ta), self.kind(tb)) {
            if let Some(expected) = expected.filter(|&e| matches!(self.kind(e), TyKind::Bit(_) | TyKind::Int(_))) {
                return expected;
            }
            if !self.is_constant(c) {
                return self.type_error(
                    expr.span,
                    "the width of the result is not known; give one of the numbers a width",
                );
            }
            return ta;
        }
        let from_context = |k: &TyKind| {
            matches!(
                k,
                TyKind::Listed(_) | TyKind::Fields(..) | TyKind::InvalidHeader | TyKind::Dots
            )
        };
        if let Some(expected) = expected.filter(|&e| !matches!(self.kind(e), TyKind::Infer(_)))
            && (from_context(&self.kind(ta)) || from_context(&self.kind(tb)))
            && self.coerces(ta, expected)
            && self.coerces(tb, expected)
        {
            return expected;
        }
        // A number without a width takes the width of the other.
        if self.kind(tb) == TyKind::Integer && self.coerces(tb, ta) {
            ta
        } else if self.coerces(ta, tb) {
            tb
        } else if self.coerces(tb, ta) {
            ta
        } else {
            let (p, q) = (self.show(ta), self.show(tb));
            self.type_error(
                expr.span,
                format!("the two values of `?:` have different types, {p} and {q}"),
            )
        }
    }

    fn list(&mut self, elements: &'a [Expr], expected: Option<Ty>) -> Ty {
        let hints: Vec<Option<Ty>> = match expected.map(|e| self.kind(e)) {
            Some(TyKind::Tuple(parts) | TyKind::Listed(parts)) => parts.iter().copied().map(Some).collect(),
            Some(TyKind::Struct(def, arguments)) => self
                .fields_of(def, &arguments)
                .into_iter()
                .map(|(_, t)| Some(t))
                .collect(),
            Some(TyKind::List(element) | TyKind::Stack(element, _)) => vec![Some(element); elements.len()],
            _ => Vec::new(),
        };
        let mut types = Vec::new();
        for (i, element) in elements.iter().enumerate() {
            if matches!(element.kind, ExprKind::Dots) && i + 1 != elements.len() {
                self.error("invalid", element.span, "`...` must be the last element");
            }
            let ty = self.expr(element, hints.get(i).copied().flatten());
            match self.kind(ty) {
                TyKind::Def(_) | TyKind::TypeName(_) | TyKind::Method | TyKind::Void | TyKind::ApplyResult(_) => {
                    let shown = self.show(ty);
                    types.push(self.type_error(element.span, format!("a list cannot hold {shown}")));
                }
                _ => types.push(ty),
            }
        }
        // A list of keysets is a keyset of lists.
        if types.iter().any(|&t| matches!(self.kind(t), TyKind::Set(_))) {
            let plain: Vec<Ty> = types
                .into_iter()
                .map(|t| match self.kind(t) {
                    TyKind::Set(inner) => inner,
                    _ => t,
                })
                .collect();
            let tuple = self.info.types.tuple(plain);
            return self.info.types.set(tuple);
        }
        self.info.types.listed(types)
    }

    fn struct_literal(&mut self, fields: &'a [(Ident, Expr)], dots: bool, expected: Option<Ty>) -> Ty {
        let expected = match expected.map(|e| self.kind(e)) {
            Some(TyKind::Struct(def, arguments)) => Some((def, arguments)),
            _ => None,
        };
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut types: Vec<(weir_syntax::ast::Name, Ty)> = Vec::new();
        for (name, value) in fields {
            let hint = expected
                .as_ref()
                .and_then(|(def, arguments)| self.info.field(*def, arguments, &name.name));
            let ty = self.expr(value, hint.map(|(_, ty)| ty));
            if !seen.insert(&name.name) {
                self.error(
                    "duplicate",
                    name.span,
                    format!("the field `{}` is given twice", name.name),
                );
                continue;
            }
            types.push((name.name.clone(), ty));
        }
        self.info.types.intern(TyKind::Fields(types.into(), dots))
    }

    fn mask(&mut self, expr: &'a Expr, a: &'a Expr, b: &'a Expr, expected: Option<Ty>) -> Ty {
        let (ta, tb) = (self.expr(a, expected), self.expr(b, expected));
        let element = self.keyset_operands(expr, "&&&", ta, tb, expected);
        self.info.types.set(element)
    }

    fn range(&mut self, expr: &'a Expr, a: &'a Expr, b: &'a Expr, expected: Option<Ty>) -> Ty {
        let (ta, tb) = (self.expr(a, expected), self.expr(b, expected));
        let element = self.keyset_operands(expr, "..", ta, tb, expected);
        self.info.types.set(element)
    }

    fn keyset_operands(&mut self, expr: &Expr, symbol: &str, ta: Ty, tb: Ty, expected: Option<Ty>) -> Ty {
        let number = |c: &Self, t: Ty| match c.kind(t) {
            TyKind::Enum(d) => c.info.enum_underlying(d).unwrap_or(t),
            _ => t,
        };
        let same_enum = ta == tb && matches!(self.kind(ta), TyKind::Enum(_));
        if same_enum && matches!(expected.map(|e| self.kind(e)), Some(TyKind::Enum(_))) {
            return ta;
        }
        let (x, y) = (number(self, ta), number(self, tb));
        match (self.kind(x), self.kind(y)) {
            (TyKind::Unknown, _) | (_, TyKind::Unknown) => Types::UNKNOWN,
            (TyKind::Integer, TyKind::Integer) => expected
                .filter(|&e| matches!(self.kind(e), TyKind::Bit(_) | TyKind::Int(_)))
                .unwrap_or(x),
            (TyKind::Integer, TyKind::Bit(_) | TyKind::Int(_)) => y,
            (TyKind::Bit(_) | TyKind::Int(_), TyKind::Integer) => x,
            (TyKind::Bit(_), TyKind::Bit(_)) | (TyKind::Int(_), TyKind::Int(_)) if x == y => x,
            (TyKind::New(_), TyKind::New(_)) if x == y => x,
            _ => {
                let (p, q) = (self.show(ta), self.show(tb));
                self.type_error(
                    expr.span,
                    format!("`{symbol}` needs two numbers of one type, not {p} and {q}"),
                )
            }
        }
    }

    fn check_cast(&mut self, expr: &Expr, operand: &'a Expr, from: Ty, to: Ty) {
        if let (TyKind::Integer, TyKind::Bool, Some(value)) = (self.kind(from), self.kind(to), self.eval_int(operand))
            && (value.bits() > 1 || value.is_negative())
        {
            self.error(
                "invalid",
                expr.span,
                format!("only 0 and 1 can be cast to bool, not {value}"),
            );
            return;
        }
        if self.is_unknown(from) || self.is_unknown(to) || self.cast_allowed(from, to) {
            return;
        }
        let (f, t) = (self.show(from), self.show(to));
        let mut diagnostic = Diagnostic::error("type-error", expr.span, format!("{f} cannot be cast to {t}"));
        match (self.kind(from), self.kind(to)) {
            (TyKind::Bit(_), TyKind::Int(_)) | (TyKind::Int(_), TyKind::Bit(_)) => {
                diagnostic = diagnostic.help("one cast changes the width or the sign, not both: use two");
            }
            (TyKind::Int(_), TyKind::Bool) => {
                diagnostic.code = "invalid";
                diagnostic.message = format!("the signed {f} cannot be cast to bool");
            }
            (TyKind::Bit(_) | TyKind::Integer, TyKind::Bool) => {
                diagnostic.code = "invalid";
                diagnostic = diagnostic.help("only bit<1>, 0 and 1 can be cast; compare with `!= 0`");
            }
            (TyKind::Bool, TyKind::Bit(w)) => {
                diagnostic = diagnostic.help(format!("a bool is one bit: `(bit<{w}>)(bit<1>) …`"));
            }
            _ => {}
        }
        self.report(diagnostic);
    }

    fn cast_allowed(&mut self, from: Ty, to: Ty) -> bool {
        if matches!(
            self.kind(from),
            TyKind::Def(_) | TyKind::TypeName(_) | TyKind::Method | TyKind::Set(_) | TyKind::Void | TyKind::Extern(..)
        ) {
            return false;
        }
        match (self.kind(from), self.kind(to)) {
            (TyKind::Bit(1) | TyKind::Integer, TyKind::Bool) | (TyKind::Bool, TyKind::Bit(1)) => true,
            (TyKind::Bit(_), TyKind::Bit(_)) | (TyKind::Int(_), TyKind::Int(_)) => true,
            (TyKind::Bit(v), TyKind::Int(w)) | (TyKind::Int(v), TyKind::Bit(w)) => v == w,
            (TyKind::Integer, TyKind::Bit(_) | TyKind::Int(_) | TyKind::Integer) => true,
            (TyKind::Bit(_) | TyKind::Int(_), TyKind::Integer) => true,
            (TyKind::Enum(d), TyKind::Enum(e)) if d == e => true,
            (TyKind::Enum(d), _) if self.info.enum_underlying(d).is_some() => {
                let underlying = self.info.enum_underlying(d).unwrap_or(from);
                self.cast_allowed(underlying, to)
            }
            (TyKind::Integer | TyKind::Bit(_) | TyKind::Int(_), TyKind::Enum(d)) => {
                match self.info.enum_underlying(d) {
                    Some(underlying) => self.cast_allowed(from, underlying),
                    None => false,
                }
            }
            (TyKind::New(a), TyKind::New(b)) if a == b => true,
            (_, TyKind::New(_)) => {
                let inner = match &self.def(self.new_type(to)).kind {
                    DefKind::NewType(inner) => *inner,
                    _ => return false,
                };
                self.coerces(from, inner)
                    || matches!((self.kind(from), self.kind(inner)), (TyKind::New(_), TyKind::New(_)))
                        && self.cast_allowed(from, inner)
                    || matches!(self.kind(from), TyKind::Integer)
            }
            (TyKind::New(_), _) => {
                let inner = match &self.def(self.new_type(from)).kind {
                    DefKind::NewType(inner) => *inner,
                    _ => return false,
                };
                self.cast_allowed(inner, to)
            }
            (
                TyKind::Tuple(_) | TyKind::Listed(_) | TyKind::Fields(..) | TyKind::InvalidHeader,
                TyKind::Struct(..) | TyKind::Tuple(_) | TyKind::List(_) | TyKind::Stack(..),
            ) => self.coerces(from, to),
            (TyKind::Struct(..), TyKind::Struct(..)) => self.unify(from, to),
            (TyKind::Tuple(_) | TyKind::Listed(_), TyKind::Set(_)) => true,
            (TyKind::String, TyKind::String) => true,
            (TyKind::Bool, TyKind::Bool) | (TyKind::Error, TyKind::Error) => true,
            (TyKind::Infer(_), _) | (TyKind::Dots, _) => self.coerces(from, to),
            (TyKind::Parameter(..), _) | (_, TyKind::Parameter(..)) => self.unify(from, to),
            (TyKind::Stack(..), TyKind::Stack(..)) | (TyKind::Varbit(_), TyKind::Varbit(_)) => self.unify(from, to),
            _ => false,
        }
    }

    fn new_type(&self, ty: Ty) -> DefId {
        match self.info.types.get(ty) {
            TyKind::New(def) => *def,
            _ => DefId(0),
        }
    }

    /// Reports an expression that cannot be assigned to.
    pub(super) fn check_l_value(&mut self, expr: &'a Expr) -> bool {
        if self.is_unknown(self.info.ty(expr)) {
            return true;
        }
        if self.is_l_value(expr) {
            return true;
        }
        let mut diagnostic = Diagnostic::error("type-error", expr.span, "this cannot be assigned to");
        if let Some(def) = root(expr).and_then(|e| self.info.names[e.id.0 as usize]) {
            let place = self.def(def).span;
            diagnostic = match &self.def(def).kind {
                DefKind::Constant { .. } => diagnostic.label(place, "it is a constant"),
                DefKind::Parameter {
                    direction: Direction::In,
                    ..
                } => diagnostic
                    .label(place, "it is an `in` parameter")
                    .help("copy it to a variable, or make the parameter `inout`"),
                DefKind::Parameter {
                    direction: Direction::None,
                    ..
                } => diagnostic.label(place, "it is a parameter without direction"),
                _ => diagnostic,
            };
        }
        self.report(diagnostic);
        false
    }

    pub(super) fn is_l_value(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name { .. } => match self.info.names[expr.id.0 as usize].map(|d| &self.def(d).kind) {
                Some(DefKind::Variable { .. } | DefKind::Broken) => true,
                Some(DefKind::Parameter { direction, .. }) => {
                    matches!(direction, Direction::Out | Direction::InOut)
                }
                _ => false,
            },
            ExprKind::Member(base, member) => match self.info.types.get(self.info.ty(base)) {
                TyKind::Stack(..) => matches!(&*member.name, "next" | "last") && self.is_l_value(base),
                TyKind::Struct(..) => self.is_l_value(base),
                _ => false,
            },
            ExprKind::Index(base, _) => {
                matches!(
                    self.info.types.get(self.info.ty(base)),
                    TyKind::Stack(..) | TyKind::Tuple(_)
                ) && self.is_l_value(base)
            }
            ExprKind::Slice(base, ..) | ExprKind::PlusSlice(base, ..) => self.is_l_value(base),
            ExprKind::DontCare | ExprKind::Error => true,
            _ => false,
        }
    }

    /// Whether the compiler can know the value: literals, constants, constructor parameters,
    /// instances, and what is computed from them.
    pub(super) fn is_constant(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Bool(_)
            | ExprKind::Int { .. }
            | ExprKind::String(_)
            | ExprKind::InvalidHeader
            | ExprKind::Dots
            | ExprKind::Default
            | ExprKind::DontCare
            | ExprKind::Type(_)
            | ExprKind::Error => true,
            ExprKind::This => false,
            ExprKind::Name { .. } => match self.info.names[expr.id.0 as usize].map(|d| &self.def(d).kind) {
                Some(DefKind::Variable { .. }) => false,
                Some(DefKind::Parameter {
                    is_constructor,
                    direction,
                    ty,
                }) => {
                    *is_constructor
                        || matches!(
                            self.info.types.get(*ty),
                            TyKind::Integer | TyKind::String | TyKind::Extern(..)
                        )
                        || *direction == Direction::None
                }
                _ => true,
            },
            ExprKind::Member(base, member) => {
                matches!(self.info.types.get(self.info.ty(base)), TyKind::Stack(..)) && &*member.name == "size"
                    || self.is_constant(base)
            }
            ExprKind::Index(a, b) => self.is_constant(a) && self.is_constant(b),
            ExprKind::Binary(_, a, b) | ExprKind::Mask(a, b) | ExprKind::Range(a, b) => {
                self.is_constant(a) && self.is_constant(b)
            }
            ExprKind::Unary(_, e) | ExprKind::Cast(_, e) => self.is_constant(e),
            ExprKind::Conditional(a, b, c) | ExprKind::Slice(a, b, c) | ExprKind::PlusSlice(a, b, c) => {
                self.is_constant(a) && self.is_constant(b) && self.is_constant(c)
            }
            ExprKind::List(elements) => elements.iter().all(|e| self.is_constant(e)),
            ExprKind::Struct(fields, _) => fields.iter().all(|(_, e)| self.is_constant(e)),
            ExprKind::Call { arguments, .. } => match self.info.calls.get(&expr.id).map(|c| c.callee) {
                Some(Callee::Constructor(_)) => true,
                Some(Callee::Builtin(b)) => {
                    use super::Builtin::{MaxSizeInBits, MaxSizeInBytes, MinSizeInBits, MinSizeInBytes};
                    matches!(b, MaxSizeInBits | MaxSizeInBytes | MinSizeInBits | MinSizeInBytes)
                }
                Some(Callee::Function(f)) => {
                    let makes_instance = match &self.def(f).kind {
                        DefKind::Function(s) => matches!(self.info.types.get(s.result), TyKind::Extern(..)),
                        _ => false,
                    };
                    (&*self.def(f).name == "static_assert" || makes_instance)
                        && arguments.iter().all(|a| self.is_constant(&a.value))
                }
                _ => false,
            },
        }
    }
}

/// The name at the root of `a.b[i].c`.
fn root(expr: &Expr) -> Option<&Expr> {
    match &expr.kind {
        ExprKind::Name { .. } => Some(expr),
        ExprKind::Member(base, _)
        | ExprKind::Index(base, _)
        | ExprKind::Slice(base, ..)
        | ExprKind::PlusSlice(base, ..) => root(base),
        _ => None,
    }
}
