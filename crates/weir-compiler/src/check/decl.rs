//! Declarations other than parsers, controls and tables.

use super::block::ends_in_return;
use super::signature::Owner;
use super::{BlockKind, Checker, Const, DefKind, FieldDef, FunctionKind, Place};
use crate::types::{DefId, Ty, TyKind, Types};
use num_bigint::BigInt;
use num_traits::{One, Zero};
use rustc_hash::FxHashMap;
use weir_syntax::ast::{self, Declaration, DeclarationKind, Ident, Name, StructKind, TypedefTarget};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn top_level(&mut self, declaration: &'a Declaration) {
        self.annotations(&declaration.annotations);
        match &declaration.kind {
            DeclarationKind::Variable(v) => self.misplaced_variable(v, &declaration.annotations),
            DeclarationKind::Table(t) => {
                self.error(
                    "invalid",
                    declaration.span,
                    format!("the table `{}` belongs into a control", t.name.name),
                );
            }
            DeclarationKind::ValueSet(v) => {
                self.error(
                    "invalid",
                    declaration.span,
                    format!("the value_set `{}` belongs into a parser", v.name.name),
                );
            }
            _ => self.declaration(declaration),
        }
    }

    /// A declaration in the innermost scope.
    pub(super) fn declaration(&mut self, declaration: &'a Declaration) {
        let annotations = &declaration.annotations[..];
        match &declaration.kind {
            DeclarationKind::Constant(c) => self.constant(c, annotations),
            DeclarationKind::Variable(v) => self.variable(v, annotations),
            DeclarationKind::Error(members) => self.error_members(members),
            DeclarationKind::MatchKind(members) => self.match_kind_members(members),
            DeclarationKind::ExternFunction(prototype) => {
                let signature = self.with_scope(|c| {
                    let s = c.prototype(prototype, annotations, FunctionKind::Extern, Owner::Extern, None);
                    c.end_prototype();
                    s
                });
                self.declare_function(&prototype.name, annotations, signature);
            }
            DeclarationKind::ExternType(e) => self.extern_type(e, annotations),
            DeclarationKind::Action(a) => self.action(a, annotations),
            DeclarationKind::Struct(s) => self.struct_type(s, annotations),
            DeclarationKind::Enum(e) => self.enum_type(e, annotations),
            DeclarationKind::Typedef(t) => self.typedef(t, annotations),
            DeclarationKind::ParserType(b) => self.block_type(b, BlockKind::Parser, annotations),
            DeclarationKind::ControlType(b) => self.block_type(b, BlockKind::Control, annotations),
            DeclarationKind::PackageType(b) => self.block_type(b, BlockKind::Package, annotations),
            DeclarationKind::Parser(p) => self.parser(p, annotations),
            DeclarationKind::Control(c) => self.control(c, annotations),
            DeclarationKind::Instantiation(i) => self.instantiation(i, annotations),
            DeclarationKind::Function(f) => self.function(f, annotations),
            DeclarationKind::Table(t) => self.table(t, annotations),
            DeclarationKind::ValueSet(v) => self.value_set(v, annotations),
        }
    }

    fn constant(&mut self, constant: &'a ast::Constant, annotations: &'a [ast::Annotation]) {
        let ty = self.resolve_type(&constant.ty);
        match self.kind(ty) {
            TyKind::Extern(..) | TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) | TyKind::Void => {
                let shown = self.show(ty);
                self.error(
                    "type-error",
                    constant.name.span,
                    format!("a constant cannot have the type {shown}"),
                );
                self.declare(&constant.name, annotations, DefKind::Broken);
                return;
            }
            _ => {}
        }
        self.definite_type(ty, constant.ty.span);
        let given = self.expr_as(&constant.value, ty, "the initial value");
        if !self.is_unknown(given) && !self.is_constant(&constant.value) {
            self.report(
                Diagnostic::error(
                    "type-error",
                    constant.value.span,
                    "the value of a constant must be known to the compiler",
                )
                .help("declare a variable instead"),
            );
        }
        let value = self.eval(&constant.value).and_then(|v| {
            self.warn_overflow(&v, given, ty, constant.value.span);
            self.convert(v, ty)
        });
        self.declare(
            &constant.name,
            annotations,
            DefKind::Constant {
                ty,
                value,
                expr: &constant.value,
            },
        );
    }

    /// A literal that does not fit is cut off silently by the language; say so.
    pub(super) fn warn_overflow(&mut self, value: &Const, from: Ty, to: Ty, span: Span) {
        if let (Const::Int(v), TyKind::Integer) = (value, self.kind(from)) {
            let kind = self.kind(to);
            if matches!(kind, TyKind::Bit(_) | TyKind::Int(_)) {
                let wrapped = super::constant::wrap(v, &kind);
                let is_negative_number =
                    |w: u32| *v == &wrapped - (BigInt::one() << w) && v.magnitude().bits() <= u64::from(w);
                let harmless = wrapped == *v || matches!(&kind, TyKind::Bit(w) if is_negative_number(*w));
                if !harmless {
                    let shown = self.show(to);
                    self.report(Diagnostic::warning(
                        "overflow",
                        span,
                        format!("{v} does not fit into {shown} and becomes {wrapped}"),
                    ));
                }
            }
        }
    }

    /// A variable at the top level. Its name is declared all the same: no use of it is a second
    /// mistake.
    fn misplaced_variable(&mut self, variable: &'a ast::Variable, annotations: &'a [ast::Annotation]) {
        let name = &variable.name.name;
        let message = format!("expected a constant or an instance at the top level, found the variable `{name}`");
        let help = if variable.value.is_some() {
            "write `const` before it, or declare it in the parser, control or action that uses it"
        } else {
            "declare it in the parser, control or action that uses it; what outlives a packet is kept in a register"
        };
        self.report(Diagnostic::error("invalid", variable.name.span, message).help(help));
        self.declare(&variable.name, annotations, DefKind::Broken);
    }

    fn variable(&mut self, variable: &'a ast::Variable, annotations: &'a [ast::Annotation]) {
        let ty = self.resolve_type(&variable.ty);
        let bad = match self.kind(ty) {
            TyKind::Extern(..) | TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) => {
                Some("use an instantiation: `T(…) name;`")
            }
            TyKind::Integer => Some("give it a width, `bit<W>` or `int<W>`, or make it a constant"),
            TyKind::String | TyKind::Void | TyKind::MatchKind => Some("values of this type exist only at compile time"),
            _ => None,
        };
        if let Some(help) = bad {
            let shown = self.show(ty);
            self.report(
                Diagnostic::error(
                    "type-error",
                    variable.name.span,
                    format!("a variable cannot have the type {shown}"),
                )
                .help(help),
            );
            self.declare(&variable.name, annotations, DefKind::Broken);
            return;
        }
        self.definite_type(ty, variable.ty.span);
        if let Some(value) = &variable.value {
            self.expr_as(value, ty, "the initial value");
        }
        let id = self.declare(&variable.name, annotations, DefKind::Variable { ty });
        let _ = id;
    }

    fn error_members(&mut self, members: &'a [Ident]) {
        for member in members {
            if let Some(&previous) = self.info.error_positions.get(&member.name) {
                let before = self.info.errors[previous].span;
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        member.span,
                        format!("the error `{}` is declared twice", member.name),
                    )
                    .label(before, "first declared here"),
                );
            } else {
                let position = self.info.errors.len();
                self.info.error_positions.insert(member.name.clone(), position);
                self.info.errors.push(member.clone());
            }
        }
    }

    fn match_kind_members(&mut self, members: &'a [Ident]) {
        for member in members {
            if let Some(&previous) = self.info.match_kind_positions.get(&member.name) {
                let before = self.info.match_kinds[previous].span;
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        member.span,
                        format!("the match kind `{}` is declared twice", member.name),
                    )
                    .label(before, "first declared here"),
                );
            } else {
                let position = self.info.match_kinds.len();
                self.info.match_kind_positions.insert(member.name.clone(), position);
                self.info.match_kinds.push(member.clone());
            }
        }
    }

    pub(super) fn declare_function(
        &mut self,
        name: &'a Ident,
        annotations: &'a [ast::Annotation],
        signature: super::Signature<'a>,
    ) -> DefId {
        self.declare(name, annotations, DefKind::Function(signature))
    }

    fn extern_type(&mut self, e: &'a ast::ExternType, annotations: &'a [ast::Annotation]) {
        // Declared first: methods may mention the type itself.
        let id = self.declare(
            &e.name,
            annotations,
            DefKind::Extern {
                parameters: Vec::new(),
                methods: Vec::new(),
            },
        );
        self.scopes.push(super::Scope::default());
        let parameters = self.type_parameters(&e.type_parameters);
        if let DefKind::Extern { parameters: p, .. } = &mut self.def_mut(id).kind {
            p.clone_from(&parameters);
        }
        let this = self.apply_type(id, parameters.clone());
        let outer = self.declaring.replace(id);
        let mut methods: Vec<super::Signature<'a>> = Vec::new();
        let mut seen: FxHashMap<Vec<Name>, Span> = FxHashMap::default();
        for method in &e.methods {
            self.annotations(&method.annotations);
            let is_constructor = method.prototype.result.is_none();
            if is_constructor && method.prototype.name.name != e.name.name {
                self.error(
                    "invalid",
                    method.prototype.name.span,
                    "a method needs a result type; only a constructor has none, and it is named after the extern",
                );
            }
            if !is_constructor && method.prototype.name.name == e.name.name {
                self.error(
                    "invalid",
                    method.prototype.name.span,
                    "a constructor has no result type",
                );
            }
            let (kind, owner) = if is_constructor {
                (FunctionKind::Constructor, Owner::Constructor)
            } else {
                (
                    FunctionKind::Method {
                        is_abstract: method.is_abstract,
                    },
                    Owner::Extern,
                )
            };
            let signature = self.with_scope(|c| {
                let s = c.prototype(&method.prototype, &method.annotations, kind, owner, Some(this));
                c.end_prototype();
                s
            });
            let parameters = signature.params.iter().map(|p| &p.name);
            let names = std::iter::once(&signature.name).chain(parameters);
            let names: Vec<Name> = names.map(|n| n.name.clone()).collect();
            if let Some(&before) = seen.get(&names) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        signature.name.span,
                        format!("`{}` is declared twice with the same parameters", signature.name.name),
                    )
                    .label(before, "first declared here"),
                );
            }
            seen.entry(names).or_insert(signature.name.span);
            methods.push(signature);
        }
        self.scopes.pop();
        self.declaring = outer;
        if let DefKind::Extern { methods: m, .. } = &mut self.def_mut(id).kind {
            *m = methods;
        }
    }

    pub(super) fn action(&mut self, action: &'a ast::Action, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let params = self.parameters(&action.parameters, Owner::Action);
        let signature = super::Signature {
            name: action.name.clone(),
            parameters: Vec::new(),
            params,
            result: Types::VOID,
            kind: FunctionKind::Action,
            annotations,
        };
        let result = self.context.result.replace(Types::VOID);
        let loops = std::mem::take(&mut self.context.loops);
        self.with_place(Place::Action, |c| c.block_in_new_scope(&action.body));
        self.context.result = result;
        self.context.loops = loops;
        self.scopes.pop();
        self.declare(&action.name, annotations, DefKind::Action { signature, ast: action });
    }

    fn function(&mut self, function: &'a ast::Function, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let signature = self.prototype(
            &function.prototype,
            annotations,
            FunctionKind::Body(function),
            Owner::Function,
            None,
        );
        self.function_body(&signature, function, Place::Function);
        self.end_prototype();
        self.scopes.pop();
        self.declare_function(&function.prototype.name, annotations, signature);
    }

    pub(super) fn function_body(
        &mut self,
        signature: &super::Signature<'a>,
        function: &'a ast::Function,
        place: Place,
    ) {
        let result = self.context.result.replace(signature.result);
        let loops = std::mem::take(&mut self.context.loops);
        self.with_place(place, |c| c.block_in_new_scope(&function.body));
        self.context.result = result;
        self.context.loops = loops;
        if signature.result != Types::VOID
            && !self.is_unknown(signature.result)
            && !ends_in_return(&function.body.statements)
        {
            self.report(
                Diagnostic::error(
                    "type-error",
                    function.prototype.name.span,
                    format!(
                        "`{}` does not return a value on every path",
                        function.prototype.name.name
                    ),
                )
                .help("end it with a `return`"),
            );
        }
    }

    fn struct_type(&mut self, s: &'a ast::StructType, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let parameters = self.type_parameters(&s.type_parameters);
        let mut fields: Vec<FieldDef<'a>> = Vec::new();
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        let mut varbit: Option<&'a Ident> = None;
        for field in &s.fields {
            self.annotations(&field.annotations);
            let mut ty = self.resolve_type(&field.ty);
            if self.complete_type(ty, field.ty.span) {
                ty = self.check_field(s.kind, field, ty);
            }
            if s.kind == StructKind::Header && self.info.types.any(ty, &|k| matches!(k, TyKind::Varbit(w) if *w > 0)) {
                if let Some(first) = varbit {
                    let before = first.span;
                    self.report(
                        Diagnostic::error("type-error", field.name.span, "a header has at most one varbit field")
                            .label(before, "the first one"),
                    );
                }
                varbit = Some(&field.name);
            }
            if let Some(before) = seen.insert(&field.name.name, field.name.span) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        field.name.span,
                        format!("the field `{}` is declared twice", field.name.name),
                    )
                    .label(before, "first declared here"),
                );
                continue;
            }
            fields.push(FieldDef {
                name: field.name.clone(),
                ty,
                annotations: &field.annotations,
            });
        }
        self.scopes.pop();
        let positions = first_positions(fields.iter().map(|f| &f.name));
        let id = self.declare(
            &s.name,
            annotations,
            DefKind::Struct {
                kind: s.kind,
                parameters,
                fields,
            },
        );
        self.info.positions.insert(id, positions);
    }

    fn check_field(&mut self, kind: StructKind, field: &'a ast::Field, ty: Ty) -> Ty {
        let (good, what, expected) = match kind {
            StructKind::Header => (
                self.may_be_in_header(ty),
                "header",
                "a header holds bit<W>, int<W>, varbit<W>, bool, serializable enums and structs of these",
            ),
            StructKind::HeaderUnion => (
                matches!(self.kind(ty), TyKind::Unknown | TyKind::Parameter(..))
                    || self.struct_kind(ty) == Some(StructKind::Header),
                "header union",
                "a header union holds headers",
            ),
            StructKind::Struct => (
                self.may_be_component(ty, true),
                "struct",
                "a struct holds values that exist at run time",
            ),
        };
        if good {
            return ty;
        }
        let shown = self.show(ty);
        self.report(
            Diagnostic::error(
                "type-error",
                field.name.span,
                format!(
                    "the field `{}` of a {what} cannot have the type {shown}",
                    field.name.name
                ),
            )
            .help(expected),
        );
        Types::UNKNOWN
    }

    fn enum_type(&mut self, e: &'a ast::EnumType, annotations: &'a [ast::Annotation]) {
        let underlying = e.underlying.as_ref().map(|written| {
            let ty = self.resolve_type(written);
            match self.kind(ty) {
                TyKind::Bit(_) | TyKind::Int(_) | TyKind::Unknown => ty,
                TyKind::New(_) => {
                    self.report(
                        Diagnostic::error(
                            "type-error",
                            written.span,
                            "an enum is represented by bit<W> or int<W>, not by a `type`",
                        )
                        .help("use a `typedef`"),
                    );
                    Types::UNKNOWN
                }
                _ => {
                    let shown = self.show(ty);
                    self.type_error(
                        written.span,
                        format!("an enum is represented by bit<W> or int<W>, not by {shown}"),
                    )
                }
            }
        });
        let mut members: Vec<(Ident, Option<Const>)> = Vec::new();
        let mut seen: FxHashMap<&str, Span> = FxHashMap::default();
        // A value may be computed from the members before it.
        self.scopes.push(super::Scope::default());
        for member in &e.members {
            if let Some(before) = seen.insert(&member.name.name, member.name.span) {
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        member.name.span,
                        format!("`{}` is declared twice", member.name.name),
                    )
                    .label(before, "first declared here"),
                );
            }
            let value = match (&member.value, underlying) {
                (Some(value), Some(ty)) => self.enum_value(value, ty),
                (None, Some(_)) => {
                    self.error(
                        "type-error",
                        member.name.span,
                        "a member of an enum with a representation needs a value",
                    );
                    None
                }
                (Some(value), None) => {
                    self.error(
                        "type-error",
                        value.span,
                        "an enum without a representation cannot give its members values",
                    );
                    None
                }
                (None, None) => None,
            };
            if let (Some(ty), Some(expr)) = (underlying, &member.value) {
                let id = self.new_def(
                    &member.name,
                    &[],
                    DefKind::Constant {
                        ty,
                        value: value.clone(),
                        expr,
                    },
                );
                if let Some(scope) = self.scopes.last_mut() {
                    scope.names.entry(member.name.name.clone()).or_insert_with(|| vec![id]);
                }
            }
            members.push((member.name.clone(), value));
        }
        self.scopes.pop();
        if e.members.is_empty() {
            self.error("invalid", e.name.span, "an enum has at least one member");
        }
        let positions = first_positions(members.iter().map(|(name, _)| name));
        let id = self.declare(&e.name, annotations, DefKind::Enum { underlying, members });
        self.info.positions.insert(id, positions);
    }

    fn enum_value(&mut self, value: &'a ast::Expr, ty: Ty) -> Option<Const> {
        let given = self.expr_of_type(value, ty, "the value of the member");
        if self.is_unknown(given) || self.is_unknown(ty) {
            return None;
        }
        let Some(Const::Int(number)) = self.eval(value) else {
            self.error(
                "type-error",
                value.span,
                "the value of an enum member must be a constant number",
            );
            return None;
        };
        let (low, high) = match self.kind(ty) {
            TyKind::Bit(w) => (BigInt::zero(), (BigInt::one() << w) - 1),
            TyKind::Int(w) => {
                let limit = BigInt::one() << w.saturating_sub(1);
                (-limit.clone(), limit - 1)
            }
            _ => return None,
        };
        if number < low || number > high {
            let shown = self.show(ty);
            self.report(
                Diagnostic::error("type-error", value.span, format!("{number} does not fit into {shown}"))
                    .help(format!("its values go from {low} to {high}")),
            );
            return None;
        }
        Some(Const::Int(number))
    }

    fn typedef(&mut self, t: &'a ast::Typedef, annotations: &'a [ast::Annotation]) {
        let (ty, span) = match &t.ty {
            TypedefTarget::Type(written) => {
                let ty = self.resolve_type(written);
                self.complete_type(ty, written.span);
                (ty, written.span)
            }
            TypedefTarget::Declaration(inner) => {
                self.annotations(&inner.annotations);
                self.declaration(inner);
                let name = match &inner.kind {
                    DeclarationKind::Struct(s) => &s.name,
                    DeclarationKind::Enum(e) => &e.name,
                    _ => return,
                };
                let Some(&def) = self.info.declared.get(&std::ptr::from_ref(name)) else {
                    return;
                };
                (self.apply_type(def, Vec::new()), inner.span)
            }
        };
        if !t.is_new_type {
            if matches!(self.kind(ty), TyKind::Void) {
                self.error("type-error", span, "void cannot be given a name");
            }
            self.declare(&t.name, annotations, DefKind::Alias(ty));
            return;
        }
        match self.kind(ty) {
            TyKind::Bool | TyKind::Bit(_) | TyKind::Int(_) | TyKind::New(_) | TyKind::Unknown => {
                self.declare(&t.name, annotations, DefKind::NewType(ty));
            }
            TyKind::Enum(def) if self.info.enum_underlying(def).is_some() => {
                self.declare(&t.name, annotations, DefKind::NewType(ty));
            }
            _ => {
                let shown = self.show(ty);
                self.report(
                    Diagnostic::error(
                        "type-error",
                        t.name.span,
                        format!("`type` makes a new type of bool, bit<W> or int<W>, not of {shown}"),
                    )
                    .help("use `typedef` for another name of the same type"),
                );
                self.declare(&t.name, annotations, DefKind::Broken);
            }
        }
    }

    fn block_type(&mut self, block: &'a ast::BlockType, kind: BlockKind, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let parameters = self.type_parameters(&block.type_parameters);
        self.scopes.push(super::Scope::default());
        let owner = if kind == BlockKind::Package {
            Owner::Constructor
        } else {
            Owner::Block
        };
        let params = self.parameters(&block.parameters, owner);
        self.scopes.pop();
        self.scopes.pop();
        self.declare(
            &block.name,
            annotations,
            DefKind::BlockType {
                kind,
                parameters,
                params,
            },
        );
    }
}

/// Where each name stands first.
fn first_positions<'n>(names: impl Iterator<Item = &'n Ident>) -> super::Positions {
    let mut positions = super::Positions::default();
    for (position, name) in names.enumerate() {
        positions.entry(name.name.clone()).or_insert(position);
    }
    positions
}
