//! From types as written to types as known.

use super::{BlockKind, Checker, Const, DefKind};
use crate::types::{DefId, Ty, TyKind, Types};
use num_traits::{Signed, ToPrimitive};
use weir_syntax::ast::{self, Expr, StructKind, TypeKind};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

/// Widest `bit<W>`, `int<W>` and `varbit<W>`.
pub(crate) const MAX_WIDTH: u32 = 1 << 16;
/// Most elements of a stack.
pub(crate) const MAX_STACK: u32 = 4096;

/// Most scalars, headers and structs that a type may consist of.
const MAX_PARTS: u64 = 1 << 18;
/// How deep types may nest.
const MAX_NESTING: u32 = 200;

/// How large a type is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extent {
    parts: u64,
    depth: u32,
}

impl<'a> Checker<'a> {
    /// Refuses a type that is too large to be taken apart.
    pub(super) fn bounded(&mut self, ty: Ty, span: Span) -> Ty {
        let Extent { parts, depth } = self.extent(ty);
        if parts > MAX_PARTS {
            self.error(
                "overlimit",
                span,
                format!("the type consists of {parts} parts: the limit is {MAX_PARTS}"),
            );
            return Types::UNKNOWN;
        }
        if depth > MAX_NESTING {
            self.error(
                "overlimit",
                span,
                format!("the type is nested {depth} deep: the limit is {MAX_NESTING}"),
            );
            return Types::UNKNOWN;
        }
        ty
    }

    fn extent(&mut self, ty: Ty) -> Extent {
        let ty = self.info.types.shallow(ty);
        if let Some(&extent) = self.extents.get(&ty) {
            return extent;
        }
        let parts: Vec<Ty> = match self.kind(ty) {
            TyKind::Tuple(parts) | TyKind::Listed(parts) => parts.to_vec(),
            TyKind::Fields(fields, _) => fields.iter().map(|(_, t)| *t).collect(),
            TyKind::Struct(def, arguments) => self.fields_of(def, &arguments).into_iter().map(|(_, t)| t).collect(),
            TyKind::Stack(element, _) | TyKind::List(element) => vec![element],
            _ => Vec::new(),
        };
        let mut extent = Extent { parts: 1, depth: 1 };
        for part in parts {
            let inner = self.extent(part);
            extent.parts = extent.parts.saturating_add(inner.parts);
            extent.depth = extent.depth.max(inner.depth.saturating_add(1));
        }
        if let TyKind::Stack(_, count) = self.kind(ty) {
            extent.parts = extent.parts.saturating_mul(count.into());
        }
        if !self.info.types.has_infer(ty) {
            self.extents.insert(ty, extent);
        }
        extent
    }

    /// The type that is written, with every rule checked that holds wherever it stands.
    pub(super) fn resolve_type(&mut self, ty: &'a ast::Type) -> Ty {
        let resolved = self.resolve_type_kind(ty);
        let resolved = match &ty.kind {
            TypeKind::Named { .. } | TypeKind::Tuple(_) | TypeKind::Stack(..) => self.bounded(resolved, ty.span),
            _ => resolved,
        };
        self.info.written_types.insert(std::ptr::from_ref(ty), resolved);
        resolved
    }

    fn resolve_type_kind(&mut self, ty: &'a ast::Type) -> Ty {
        match &ty.kind {
            TypeKind::Bool => Types::BOOL,
            TypeKind::Error => Types::ERROR,
            TypeKind::MatchKind => Types::MATCH_KIND,
            TypeKind::String => Types::STRING,
            TypeKind::Integer => Types::INTEGER,
            TypeKind::Void => Types::VOID,
            TypeKind::Bit(None) => self.info.types.bit(1),
            TypeKind::Bit(Some(width)) => match self.width(width, 0) {
                Some(w) => self.info.types.bit(w),
                None => Types::UNKNOWN,
            },
            TypeKind::Int(width) => match self.width(width, 1) {
                Some(w) => self.info.types.int(w),
                None => Types::UNKNOWN,
            },
            TypeKind::Varbit(width) => match self.width(width, 0) {
                Some(w) => self.info.types.intern(TyKind::Varbit(w)),
                None => Types::UNKNOWN,
            },
            TypeKind::DontCare => self.open_type(),
            TypeKind::Named {
                absolute,
                name,
                arguments,
            } => self.named_type(ty, *absolute, name, arguments.as_deref()),
            TypeKind::Stack(element, size) => self.stack_type(ty, element, size),
            TypeKind::Tuple(parts) => {
                let parts: Vec<Ty> = parts
                    .iter()
                    .map(|p| {
                        let part = self.resolve_type(p);
                        if self.may_be_component(part, false) {
                            part
                        } else {
                            let shown = self.show(part);
                            self.type_error(p.span, format!("a tuple cannot hold {shown}"))
                        }
                    })
                    .collect();
                self.info.types.tuple(parts)
            }
            TypeKind::List(element) => {
                let element_type = self.resolve_type(element);
                if matches!(
                    self.kind(element_type),
                    TyKind::Void | TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) | TyKind::Extern(..)
                ) {
                    let shown = self.show(element_type);
                    return self.type_error(element.span, format!("a list cannot hold {shown}"));
                }
                self.info.types.intern(TyKind::List(element_type))
            }
        }
    }

    /// The value of a width or size; errors are reported.
    fn width(&mut self, expr: &'a Expr, least: u32) -> Option<u32> {
        let before = self.diagnostics.has_errors();
        let ty = self.expr(expr, None);
        if self.is_unknown(ty) && self.diagnostics.has_errors() != before {
            return None;
        }
        let value = match self.eval(expr) {
            Some(Const::Int(value)) => value,
            _ => {
                if !self.is_unknown(ty) {
                    self.error(
                        "expected",
                        expr.span,
                        "a width must be a constant known to the compiler",
                    );
                }
                return None;
            }
        };
        if value.is_negative() {
            self.error(
                "invalid",
                expr.span,
                format!("a width cannot be negative, this is {value}"),
            );
            return None;
        }
        match value.to_u32() {
            Some(w) if w > MAX_WIDTH => None,
            Some(w) if w < least => {
                self.error(
                    "invalid",
                    expr.span,
                    format!("a signed number has at least {least} bit, this is {w}"),
                );
                return None;
            }
            other => other,
        }
        .or_else(|| {
            self.error(
                "overlimit",
                expr.span,
                format!("{value} bits are too many: the limit is {MAX_WIDTH}"),
            );
            None
        })
    }

    fn stack_type(&mut self, ty: &'a ast::Type, element: &'a ast::Type, size: &'a Expr) -> Ty {
        let element_type = self.resolve_type(element);
        let size_type = self.expr(size, None);
        let Some(count) = self.eval_int(size) else {
            if !self.is_unknown(size_type) {
                self.error(
                    "type-error",
                    ty.span,
                    "the size of a stack must be a constant known to the compiler",
                );
            }
            return Types::UNKNOWN;
        };
        if count.is_negative() {
            self.error(
                "overlimit",
                size.span,
                format!("the size of a stack cannot be negative, this is {count}"),
            );
            return Types::UNKNOWN;
        }
        let Some(count) = count.to_u32().filter(|&c| c <= MAX_STACK) else {
            self.error(
                "overlimit",
                size.span,
                format!("{count} elements are too many: the limit is {MAX_STACK}"),
            );
            return Types::UNKNOWN;
        };
        match self.kind(element_type) {
            TyKind::Unknown => Types::UNKNOWN,
            TyKind::Struct(..)
            | TyKind::Parameter(..)
            | TyKind::Bit(_)
            | TyKind::Int(_)
            | TyKind::Bool
            | TyKind::Enum(_)
            | TyKind::New(_)
            | TyKind::Stack(..)
            | TyKind::Tuple(_)
            | TyKind::Extern(..) => self.info.types.intern(TyKind::Stack(element_type, count)),
            _ => {
                let shown = self.show(element_type);
                self.type_error(ty.span, format!("a stack holds headers or header unions, not {shown}"))
            }
        }
    }

    fn named_type(
        &mut self,
        ty: &'a ast::Type,
        absolute: bool,
        name: &'a ast::Ident,
        arguments: Option<&'a [ast::Type]>,
    ) -> Ty {
        let defs = self.lookup(&name.name, absolute);
        let Some(&def) = defs.first() else {
            self.not_found("type", name);
            for argument in arguments.unwrap_or_default() {
                self.resolve_type(argument);
            }
            return Types::UNKNOWN;
        };
        if self.declaring == Some(def) {
            return {
                self.error(
                    "unsupported",
                    name.span,
                    format!("the methods of `{}` cannot mention `{}` itself", name.name, name.name),
                );
                Types::UNKNOWN
            };
        }
        let given: Option<Vec<Ty>> = arguments.map(|list| list.iter().map(|a| self.type_argument(a)).collect());
        let Some(parameters) = self.type_parameters_of(def) else {
            if matches!(self.def(def).kind, DefKind::Broken) {
                return Types::UNKNOWN;
            }
            return self.type_error(name.span, format!("`{}` is not a type", name.name));
        };
        let count = parameters.len();
        let given = match given {
            Some(given) if given.len() == count => given,
            Some(given) => {
                let message = format!(
                    "`{}` has {count} type parameter(s), but {} argument(s) are given",
                    name.name,
                    given.len()
                );
                return self.type_error(ty.span, message);
            }
            None if count == 0 => Vec::new(),
            // Left to inference where a value is constructed; elsewhere an error, see
            // `complete_type`.
            None => return self.generic_without_arguments(def, count),
        };
        if given.iter().any(|&g| self.mentions(g, def)) {
            return self.type_error(ty.span, format!("`{}` cannot be a type argument of itself", name.name));
        }
        let applied = self.apply_type(def, given);
        self.check_specialised(applied, ty.span);
        applied
    }

    fn mentions(&self, ty: Ty, def: DefId) -> bool {
        self.info.types.any(ty, &|k| match k {
            TyKind::Struct(d, _) | TyKind::Extern(d, _) => *d == def,
            _ => false,
        })
    }

    /// With its type arguments put in, every field must still be one its struct may have.
    fn check_specialised(&mut self, ty: Ty, span: Span) {
        let TyKind::Struct(def, arguments) = self.kind(ty) else {
            return;
        };
        let open = self
            .info
            .types
            .any(ty, &|k| matches!(k, TyKind::Parameter(..) | TyKind::Infer(_)));
        if arguments.is_empty() || open || !self.specialised.insert(ty) {
            return;
        }
        let kind = self.struct_kind(ty);
        for (name, field) in self.fields_of(def, &arguments) {
            let good = match kind {
                Some(StructKind::Header) => self.may_be_in_header(field),
                Some(StructKind::HeaderUnion) => self.struct_kind(field) == Some(StructKind::Header),
                _ => self.may_be_component(field, true),
            };
            if good || self.is_unknown(field) {
                continue;
            }
            let DefKind::Struct { fields, .. } = &self.def(def).kind else {
                continue;
            };
            let place = fields
                .iter()
                .find(|f| f.name.name == name)
                .map_or(span, |f| f.name.span);
            let (shown, whole) = (self.show(field), self.show(ty));
            self.report(
                Diagnostic::error(
                    "type-error",
                    place,
                    format!("the field `{name}` of {whole} cannot have the type {shown}"),
                )
                .label(span, "the type arguments are given here"),
            );
        }
    }

    fn type_argument(&mut self, argument: &'a ast::Type) -> Ty {
        let ty = self.resolve_type(argument);
        match self.kind(ty) {
            TyKind::Control(..) | TyKind::Parser(..) | TyKind::Package(..) => {
                let shown = self.show(ty);
                self.type_error(argument.span, format!("{shown} cannot be a type argument"))
            }
            _ => {
                self.complete_type(ty, argument.span);
                ty
            }
        }
    }

    pub(super) fn type_parameters_of(&self, def: DefId) -> Option<Vec<Ty>> {
        match &self.def(def).kind {
            DefKind::Alias(_) | DefKind::NewType(_) | DefKind::Enum { .. } => Some(Vec::new()),
            DefKind::Struct { parameters, .. }
            | DefKind::Extern { parameters, .. }
            | DefKind::BlockType { parameters, .. }
            | DefKind::Parser { parameters, .. }
            | DefKind::Control { parameters, .. } => Some(parameters.clone()),
            _ => None,
        }
    }

    fn generic_without_arguments(&mut self, def: DefId, count: usize) -> Ty {
        let fresh: Vec<Ty> = (0..count).map(|_| self.info.types.fresh()).collect();
        self.implied.extend(fresh.iter().copied());
        self.apply_type(def, fresh)
    }

    /// The type with everything that is to be inferred, and every type parameter, replaced by
    /// something new to be inferred: a signature is used by many calls, each with types of its own.
    pub(super) fn freshen(&mut self, ty: Ty) -> Ty {
        let mut open = Vec::new();
        self.info.types.collect(
            ty,
            &|k| matches!(k, TyKind::Infer(_) | TyKind::Parameter(..)),
            &mut open,
        );
        let map = open.into_iter().map(|t| (t, self.info.types.fresh())).collect();
        self.info.types.substitute(ty, &map)
    }

    /// As [`Self::freshen`], type parameters kept.
    pub(super) fn freshen_inferred(&mut self, ty: Ty) -> Ty {
        let mut open = Vec::new();
        self.info
            .types
            .collect(ty, &|k| matches!(k, TyKind::Infer(_)), &mut open);
        let map = open.into_iter().map(|t| (t, self.info.types.fresh())).collect();
        self.info.types.substitute(ty, &map)
    }

    /// The type a declaration stands for, with type arguments.
    pub(super) fn apply_type(&mut self, def: DefId, arguments: Vec<Ty>) -> Ty {
        let kind = match &self.def(def).kind {
            DefKind::Alias(ty) => return *ty,
            DefKind::NewType(_) => TyKind::New(def),
            DefKind::Enum { .. } => TyKind::Enum(def),
            DefKind::Struct { .. } => TyKind::Struct(def, arguments.into()),
            DefKind::Extern { .. } => TyKind::Extern(def, arguments.into()),
            DefKind::BlockType {
                kind: BlockKind::Parser,
                ..
            }
            | DefKind::Parser { .. } => TyKind::Parser(def, arguments.into()),
            DefKind::BlockType {
                kind: BlockKind::Control,
                ..
            }
            | DefKind::Control { .. } => TyKind::Control(def, arguments.into()),
            DefKind::BlockType {
                kind: BlockKind::Package,
                ..
            } => TyKind::Package(def, arguments.into()),
            _ => TyKind::Unknown,
        };
        self.info.types.intern(kind)
    }

    /// Reports a generic type whose arguments were left out where they cannot be inferred.
    pub(super) fn complete_type(&mut self, ty: Ty, span: Span) -> bool {
        if let TyKind::Struct(_, parts)
        | TyKind::Extern(_, parts)
        | TyKind::Parser(_, parts)
        | TyKind::Control(_, parts) = self.kind(ty)
            && parts
                .iter()
                .any(|&p| matches!(self.kind(p), TyKind::Infer(_)) && self.implied.contains(&p))
        {
            let shown = self.show(ty);
            self.report(
                Diagnostic::error(
                    "type-error",
                    span,
                    format!("the generic type {shown} needs type arguments"),
                )
                .help("write them between `<` and `>` after the name"),
            );
            return false;
        }
        true
    }

    /// Reports a type that leaves something to be inferred where nothing can tell it.
    pub(super) fn definite_type(&mut self, ty: Ty, span: Span) {
        if self.complete_type(ty, span) && self.info.types.has_infer(ty) {
            let shown = self.show(ty);
            self.error(
                "type-error",
                span,
                format!("the type {shown} must be written without `_` here"),
            );
        }
    }

    /// Whether a type may be part of a struct or tuple.
    pub(super) fn may_be_component(&self, ty: Ty, in_struct: bool) -> bool {
        match self.info.types.get(ty) {
            TyKind::Integer | TyKind::MatchKind => !in_struct,
            TyKind::String
            | TyKind::Void
            | TyKind::Extern(..)
            | TyKind::Parser(..)
            | TyKind::Control(..)
            | TyKind::Package(..)
            | TyKind::Set(_)
            | TyKind::Def(_) => !in_struct && matches!(self.info.types.get(ty), TyKind::String),
            _ => true,
        }
    }

    /// Whether a type may be part of a header: it has a size on the wire.
    pub(super) fn may_be_in_header(&mut self, ty: Ty) -> bool {
        match self.kind(ty) {
            TyKind::Unknown
            | TyKind::Bool
            | TyKind::Bit(_)
            | TyKind::Int(_)
            | TyKind::Varbit(_)
            | TyKind::Parameter(..) => true,
            TyKind::New(_) => {
                let underlying = self.info.underlying(ty);
                self.may_be_in_header(underlying)
            }
            TyKind::Enum(def) => self.info.enum_underlying(def).is_some(),
            TyKind::Struct(def, arguments) => {
                self.struct_kind(ty) == Some(StructKind::Struct)
                    && self
                        .fields_of(def, &arguments)
                        .into_iter()
                        .all(|(_, t)| self.may_be_in_header(t))
            }
            TyKind::Stack(element, _) => {
                !matches!(
                    self.struct_kind(element),
                    Some(StructKind::Header | StructKind::HeaderUnion)
                ) && self.may_be_in_header(element)
            }
            _ => false,
        }
    }
}
