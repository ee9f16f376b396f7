//! Parameters and signatures.

use super::{Checker, DefKind, FunctionKind, Param, Signature};
use crate::types::{Ty, TyKind, Types};
use weir_syntax::ast::{self, Direction, Ident, Parameter};
use weir_syntax::diagnostic::Diagnostic;

/// Whose parameters they are: the rules differ.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Owner {
    /// Run-time parameters of a parser, control or their types.
    Block,
    /// Parameters of packages and of constructors of externs.
    Constructor,
    /// Constructor parameters of a parser or control with a body.
    BlockConstructor,
    /// Parameters of an extern function or method.
    Extern,
    /// Parameters of a function with a body.
    Function,
    /// Parameters of an action.
    Action,
}

impl<'a> Checker<'a> {
    /// Declares type parameters in the innermost scope.
    pub(super) fn type_parameters(&mut self, names: &'a [Ident]) -> Vec<Ty> {
        names
            .iter()
            .map(|name| {
                let ty = self.info.types.parameter(name.name.clone());
                self.declare(name, &[], DefKind::Alias(ty));
                ty
            })
            .collect()
    }

    /// Resolves parameters and declares them in the innermost scope, which becomes a scope of
    /// parameters.
    pub(super) fn parameters(&mut self, list: &'a [Parameter], owner: Owner) -> Vec<Param<'a>> {
        if let Some(scope) = self.scopes.last_mut() {
            scope.holds_parameters = true;
        }
        let mut optional_seen = false;
        let mut directionless_seen = false;
        let depth = self.scopes.len();
        list.iter()
            .map(|parameter| {
                // A parameter with the name of a type parameter of the same declaration.
                let scope = depth.checked_sub(2).map(|d| &self.scopes[d]);
                let outer = scope
                    .and_then(|scope| scope.names.get(&parameter.name.name))
                    .and_then(|found| found.first());
                if let Some(&other) = outer.filter(|&&d| depth > 2 && matches!(self.def(d).kind, DefKind::Alias(_))) {
                    let before = self.def(other).span;
                    self.report(
                        Diagnostic::error("duplicate", parameter.name.span, format!("`{}` is declared twice", parameter.name.name))
                            .label(before, "first declared here"),
                    );
                }
                let ty = self.resolve_type(&parameter.ty);
                self.check_parameter(parameter, ty, owner);
                if owner == Owner::Action {
                    if directionless_seen && parameter.direction != Direction::None {
                        self.error(
                            "type-error",
                            parameter.span,
                            "the parameters of an action that the control plane sets (those without direction) come last",
                        );
                    }
                    directionless_seen |= parameter.direction == Direction::None;
                }
                let optional = parameter.annotations.iter().any(|a| &*a.name.name == "optional");
                self.check_optional(parameter, optional, owner);
                optional_seen |= optional;
                let def = self.declare(
                    &parameter.name,
                    &parameter.annotations,
                    DefKind::Parameter {
                        ty,
                        direction: parameter.direction,
                        is_constructor: matches!(owner, Owner::Constructor | Owner::BlockConstructor),
                    },
                );
                Param {
                    name: parameter.name.clone(),
                    ty,
                    direction: parameter.direction,
                    optional,
                    default: parameter.default.as_ref(),
                    annotations: &parameter.annotations,
                    def,
                }
            })
            .collect()
    }

    fn check_optional(&mut self, parameter: &'a Parameter, optional: bool, owner: Owner) {
        if optional && parameter.default.is_some() {
            self.error(
                "invalid",
                parameter.span,
                "an optional parameter cannot have a default value",
            );
        }
        if optional && matches!(owner, Owner::Action | Owner::Function | Owner::BlockConstructor) {
            self.error("invalid", parameter.span, "an optional parameter is allowed only where there is no body: in externs, packages, parser and control types");
        }
        let Some(default) = &parameter.default else { return };
        if matches!(parameter.direction, Direction::Out | Direction::InOut) {
            self.error(
                "invalid",
                parameter.span,
                "an `out` or `inout` parameter cannot have a default value",
            );
        }
        let ty = self
            .info
            .written_types
            .get(&std::ptr::from_ref(&parameter.ty))
            .copied()
            .unwrap_or(Types::UNKNOWN);
        // What the type parameters will be is not known yet: the default must fit some.
        let ty = self.freshen(ty);
        let given = self.expr_as(default, ty, "the default value");
        if !self.is_unknown(given) && !self.is_constant(default) {
            self.error(
                "type-error",
                default.span,
                "a default value must be known to the compiler",
            );
        }
    }

    fn check_parameter(&mut self, parameter: &'a Parameter, ty: Ty, owner: Owner) {
        let kind = self.kind(ty);
        let span = parameter.span;
        let directed = parameter.direction != Direction::None;
        let constructs = matches!(owner, Owner::Constructor | Owner::BlockConstructor);
        if constructs && directed {
            self.error(
                "invalid",
                span,
                "a constructor parameter has no direction: its argument is known to the compiler",
            );
            return;
        }
        self.complete_type(ty, parameter.ty.span);
        match kind {
            TyKind::Integer | TyKind::String if directed => {
                let shown = self.show(ty);
                self.error(
                    "type-error",
                    span,
                    format!("a parameter of type {shown} has no direction"),
                );
            }
            TyKind::Integer if owner == Owner::Action => {
                self.report(
                    Diagnostic::error("type-error", span, "an action cannot have a parameter of type int")
                        .help("give it a width: bit<W> or int<W>"),
                );
            }
            TyKind::Extern(..) if owner == Owner::Action => {
                self.error(
                    "type-error",
                    span,
                    "an action cannot have a parameter of an extern type",
                );
            }
            TyKind::Extern(..) if directed => {
                let shown = self.show(ty);
                self.error(
                    "type-error",
                    span,
                    format!("a parameter of type {shown} has no direction"),
                );
            }
            TyKind::Parser(def, _) | TyKind::Control(def, _)
                if !constructs || matches!(self.def(def).kind, DefKind::Parser { .. } | DefKind::Control { .. }) =>
            {
                let shown = self.show(ty);
                self.error("type-error", span, format!("a parameter cannot have the type {shown}"));
            }
            TyKind::Package(..) if !constructs => {
                self.error("type-error", span, "a parameter cannot be a package");
            }
            TyKind::Void | TyKind::MatchKind => {
                let shown = self.show(ty);
                self.error("type-error", span, format!("a parameter cannot have the type {shown}"));
            }
            TyKind::Struct(..) | TyKind::Stack(..) | TyKind::Tuple(_) | TyKind::Error | TyKind::Varbit(_)
                if owner == Owner::Action && !directed && !self.may_come_from_control_plane(ty) =>
            {
                // The reference accepts aggregates and leaves them to back ends; they cannot be set
                // by a table entry, which is checked where a table uses the action.
            }
            _ => {}
        }
    }

    /// Whether the control plane can set a value of this type.
    pub(super) fn may_come_from_control_plane(&self, ty: Ty) -> bool {
        match self.info.types.get(ty) {
            TyKind::Unknown
            | TyKind::Bool
            | TyKind::Bit(_)
            | TyKind::Int(_)
            | TyKind::Parameter(..)
            | TyKind::Error => true,
            TyKind::New(_) => self.may_come_from_control_plane(self.info.underlying(ty)),
            TyKind::Enum(_) => true,
            _ => false,
        }
    }

    /// A signature. The caller has opened a scope for the type parameters and parameters.
    pub(super) fn prototype(
        &mut self,
        prototype: &'a ast::FunctionPrototype,
        annotations: &'a [ast::Annotation],
        kind: FunctionKind<'a>,
        owner: Owner,
        constructed: Option<Ty>,
    ) -> Signature<'a> {
        let parameters = self.type_parameters(&prototype.type_parameters);
        let result = match &prototype.result {
            Some(ty) => {
                let resolved = self.resolve_type(ty);
                self.check_result(ty, resolved);
                resolved
            }
            None => constructed.unwrap_or(Types::UNKNOWN),
        };
        self.scopes.push(super::Scope::default());
        let params = self.parameters(&prototype.parameters, owner);
        Signature {
            name: prototype.name.clone(),
            parameters,
            params,
            result,
            kind,
            annotations,
        }
    }

    /// Closes the scope that [`Self::prototype`] opened for the parameters.
    pub(super) fn end_prototype(&mut self) {
        self.scopes.pop();
    }

    fn check_result(&mut self, written: &'a ast::Type, ty: Ty) {
        match self.kind(ty) {
            TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) | TyKind::MatchKind | TyKind::Integer => {
                let shown = self.show(ty);
                self.error("type-error", written.span, format!("a function cannot return {shown}"));
            }
            _ => {
                self.complete_type(ty, written.span);
            }
        }
    }
}
