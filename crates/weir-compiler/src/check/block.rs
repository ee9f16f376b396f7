//! Parsers, controls, instantiations and value sets.

use super::signature::Owner;
use super::{Checker, DefKind, FunctionKind, Place};
use crate::types::{Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{self, DeclarationKind, Ident, Statement, StatementKind, Transition};
use weir_syntax::diagnostic::Diagnostic;

/// Whether control cannot reach the end of the statements.
pub(super) fn ends_in_return(statements: &[Statement]) -> bool {
    statements.iter().any(|s| match &s.kind {
        StatementKind::Return(_) | StatementKind::Exit => true,
        StatementKind::Block(b) => ends_in_return(&b.statements),
        StatementKind::If {
            then,
            otherwise: Some(otherwise),
            ..
        } => ends_in_return(std::slice::from_ref(then)) && ends_in_return(std::slice::from_ref(otherwise)),
        StatementKind::Switch { cases, .. } => {
            cases.iter().any(|c| matches!(c.label.kind, ast::ExprKind::Default))
                && cases
                    .iter()
                    .all(|c| c.body.as_ref().is_none_or(|b| ends_in_return(&b.statements)))
        }
        _ => false,
    })
}

impl<'a> Checker<'a> {
    pub(super) fn parser(&mut self, parser: &'a ast::Parser, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let parameters = self.type_parameters(&parser.signature.type_parameters);
        self.scopes.push(super::Scope::default());
        let params = self.parameters(&parser.signature.parameters, Owner::Block);
        let constructor = self.parameters(&parser.constructor_parameters, Owner::BlockConstructor);
        let outer = std::mem::replace(
            &mut self.context,
            super::Context {
                place: Place::ParserLocals,
                in_parser: true,
                result: None,
                loops: 0,
            },
        );
        self.scopes.push(super::Scope::default());
        for local in &parser.locals {
            self.annotations(&local.annotations);
            self.declaration(local);
        }
        self.states(parser);
        self.scopes.pop();
        self.context = outer;
        self.scopes.pop();
        self.scopes.pop();
        self.declare(
            &parser.signature.name,
            annotations,
            DefKind::Parser {
                parameters,
                params,
                constructor,
                ast: parser,
            },
        );
    }

    fn states(&mut self, parser: &'a ast::Parser) {
        let mut states: FxHashMap<&str, &'a Ident> = FxHashMap::default();
        for state in &parser.states {
            let name = &*state.name.name;
            if name == "accept" || name == "reject" {
                self.error(
                    "invalid",
                    state.name.span,
                    format!("the state `{name}` is built in and cannot be declared"),
                );
            } else if let Some(previous) = states.insert(name, &state.name) {
                let before = previous.span;
                self.report(
                    Diagnostic::error(
                        "duplicate",
                        state.name.span,
                        format!("the state `{name}` is declared twice"),
                    )
                    .label(before, "first declared here"),
                );
            }
        }
        if !states.contains_key("start") {
            self.report(
                Diagnostic::error(
                    "invalid",
                    parser.signature.name.span,
                    format!("the parser `{}` has no state `start`", parser.signature.name.name),
                )
                .help("parsing begins in a state of this name"),
            );
        }
        for state in &parser.states {
            self.annotations(&state.annotations);
            self.scopes.push(super::Scope::default());
            self.with_place(Place::ParserState, |c| {
                for statement in &state.statements {
                    c.statement(statement);
                }
                match &state.transition {
                    None => {}
                    Some(Transition::State(target)) => c.state_reference(target, &states),
                    Some(Transition::Select { expressions, cases, .. }) => {
                        c.select(expressions, cases, &states);
                    }
                }
            });
            self.scopes.pop();
        }
        if !self.diagnostics.has_errors() {
            self.check_reachability(parser);
        }
    }

    fn state_reference(&mut self, target: &Ident, states: &FxHashMap<&str, &'a Ident>) {
        let name = &*target.name;
        if name == "accept" || name == "reject" || states.contains_key(name) {
            return;
        }
        let mut diagnostic = Diagnostic::error(
            "not-found",
            target.span,
            format!("there is no state `{name}` in this parser"),
        );
        if let Some(like) = self.similar(name, states.keys().copied()) {
            diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
        }
        self.report(diagnostic);
    }

    fn select(
        &mut self,
        expressions: &'a [ast::Expr],
        cases: &'a [ast::SelectCase],
        states: &FxHashMap<&str, &'a Ident>,
    ) {
        let mut types: Vec<Ty> = Vec::new();
        for e in expressions {
            let ty = self.expr(e, None);
            let ty = match self.kind(ty) {
                TyKind::Integer => self.type_error(
                    e.span,
                    "the width of a selected expression must be known; give the constant a width",
                ),
                TyKind::Bit(_)
                | TyKind::Int(_)
                | TyKind::Bool
                | TyKind::Enum(_)
                | TyKind::Error
                | TyKind::New(_)
                | TyKind::Unknown
                | TyKind::Parameter(..)
                | TyKind::Infer(_) => ty,
                TyKind::Tuple(_) | TyKind::Listed(_) | TyKind::Fields(..) => ty,
                _ => {
                    let shown = self.show(ty);
                    self.type_error(
                        e.span,
                        format!("an expression of type {shown} cannot be used in a select"),
                    )
                }
            };
            types.push(ty);
        }
        for case in cases {
            self.keyset(&case.keyset, &types);
            self.state_reference(&case.state, states);
        }
    }

    /// Checks a keyset against the types of what it is compared to.
    pub(super) fn keyset(&mut self, keyset: &'a ast::Expr, types: &[Ty]) {
        if let ast::ExprKind::Default | ast::ExprKind::DontCare = keyset.kind {
            return;
        }
        if let ast::ExprKind::List(elements) = &keyset.kind
            && (types.len() != 1 || elements.len() == types.len())
        {
            if elements.len() != types.len() {
                self.error(
                    "type-error",
                    keyset.span,
                    format!(
                        "{} expression(s) are compared, but the keyset has {}",
                        types.len(),
                        elements.len()
                    ),
                );
                return;
            }
            for (element, &ty) in elements.iter().zip(types) {
                self.keyset_element(element, ty);
            }
            self.info.expr_types[keyset.id.0 as usize] = Types::UNKNOWN;
            return;
        }
        if types.len() == 1 {
            self.keyset_element(keyset, types[0]);
            return;
        }
        // One expression for several keys: a value set (or a tuple) of as many fields.
        let given = self.expr(keyset, None);
        let parts = match self.kind(given) {
            TyKind::Unknown => return,
            TyKind::Set(inner) => self.component_types(inner),
            _ => self.component_types(given),
        };
        let agrees = parts.len() == types.len() && parts.iter().zip(types).all(|(&a, &b)| self.coerces(a, b));
        if !agrees {
            let shown = self.show(given);
            self.error(
                "type-error",
                keyset.span,
                format!("{} expressions are compared, but this is {shown}", types.len()),
            );
        }
    }

    fn component_types(&mut self, ty: Ty) -> Vec<Ty> {
        match self.kind(ty) {
            TyKind::Tuple(parts) | TyKind::Listed(parts) => parts.to_vec(),
            TyKind::Struct(def, arguments) => self.fields_of(def, &arguments).into_iter().map(|(_, t)| t).collect(),
            _ => vec![ty],
        }
    }

    pub(super) fn keyset_element(&mut self, element: &'a ast::Expr, ty: Ty) {
        match &element.kind {
            ast::ExprKind::Default | ast::ExprKind::DontCare => return,
            ast::ExprKind::List(elements) => {
                let parts = self.component_types(ty);
                if matches!(self.kind(ty), TyKind::Tuple(_) | TyKind::Listed(_) | TyKind::Struct(..))
                    && parts.len() == elements.len()
                {
                    for (e, t) in elements.iter().zip(parts) {
                        self.keyset_element(e, t);
                    }
                    return;
                }
            }
            _ => {}
        }
        let set = self.info.types.set(ty);
        let given = self.expr(element, Some(ty));
        if let ast::ExprKind::Mask(a, b) | ast::ExprKind::Range(a, b) = &element.kind {
            for e in [a, b] {
                if !self.is_unknown(given) && !self.is_constant(e) {
                    self.error(
                        "invalid",
                        e.span,
                        "the bounds of a range and the value and mask of a `&&&` must be constants",
                    );
                    return;
                }
            }
        }
        if let ast::ExprKind::Call { .. } = &element.kind {
            let called = self.info.calls.get(&element.id).map(|c| c.callee);
            if matches!(called, Some(super::Callee::Function(_) | super::Callee::Method(..))) {
                self.error("type-error", element.span, "a keyset cannot call functions");
                return;
            }
        }
        if self.is_unknown(given) || self.is_unknown(ty) {
            return;
        }
        // A serializable enum can be compared with numbers and the other way round.
        let compared = match self.kind(ty) {
            TyKind::Enum(d) => self.info.enum_underlying(d),
            _ => None,
        };
        let good = self.coerces(given, set)
            || compared.is_some_and(|u| {
                let set = self.info.types.set(u);
                matches!(self.kind(given), TyKind::Set(_)) && self.coerces(given, set)
            })
            || match (self.kind(given), self.kind(ty)) {
                (TyKind::Set(inner), TyKind::Struct(..)) => self.component_types(inner).len() == 1,
                _ => false,
            };
        let unwrapped = match self.kind(given) {
            TyKind::Set(inner) => {
                let parts = self.component_types(inner);
                parts.len() == 1 && self.coerces(parts[0], ty)
            }
            _ => false,
        };
        if !good && !unwrapped {
            let one_of_several = matches!(&element.kind, ast::ExprKind::List(values) if values.len() > 1)
                && !matches!(self.kind(ty), TyKind::Tuple(_) | TyKind::Listed(_) | TyKind::Struct(..));
            let (given, expected) = (self.show(given), self.show(ty));
            let message = format!("this keyset is {given}, but it is compared with {expected}");
            let mut error = Diagnostic::error("type-error", element.span, message);
            if one_of_several {
                error = error.help("one value is compared here: give each of these a case of its own");
            }
            self.report(error);
        }
    }

    /// A parser must be able to come to an end.
    fn check_reachability(&mut self, parser: &'a ast::Parser) {
        let mut edges: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
        for state in &parser.states {
            let targets = match &state.transition {
                None => vec!["reject"],
                Some(Transition::State(t)) => vec![&*t.name],
                // A select where nothing matches rejects.
                Some(Transition::Select { cases, .. }) => {
                    let mut targets: Vec<&str> = cases.iter().map(|c| &*c.state.name).collect();
                    let exhaustive = cases.iter().any(|c| match &c.keyset.kind {
                        ast::ExprKind::Default | ast::ExprKind::DontCare => true,
                        ast::ExprKind::List(l) => l
                            .iter()
                            .all(|e| matches!(e.kind, ast::ExprKind::Default | ast::ExprKind::DontCare)),
                        _ => false,
                    });
                    if !exhaustive {
                        targets.push("reject");
                    }
                    targets
                }
            };
            edges.insert(&state.name.name, targets);
        }
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        let mut work = vec!["start"];
        while let Some(state) = work.pop() {
            if state == "accept" || state == "reject" {
                return;
            }
            if seen.insert(state) {
                work.extend(edges.get(state).into_iter().flatten());
            }
        }
        self.error(
            "unreachable",
            parser.signature.name.span,
            format!(
                "the parser `{}` never reaches accept or reject",
                parser.signature.name.name
            ),
        );
    }

    pub(super) fn value_set(&mut self, v: &'a ast::ValueSet, annotations: &'a [ast::Annotation]) {
        let element = self.resolve_type(&v.element);
        let good = match self.kind(element) {
            TyKind::Unknown | TyKind::Bit(_) | TyKind::Int(_) | TyKind::Bool | TyKind::New(_) | TyKind::Tuple(_) => {
                true
            }
            TyKind::Enum(_) => true,
            TyKind::Struct(..) => self.struct_kind(element) == Some(ast::StructKind::Struct),
            _ => false,
        };
        if !good {
            let shown = self.show(element);
            self.error("type-error", v.element.span, format!("a value_set cannot hold {shown}"));
        }
        let size = self.expr(&v.size, None);
        if self.eval_int(&v.size).is_none() && !self.is_unknown(size) && !self.is_constant(&v.size) {
            self.error("expected", v.size.span, "the size of a value_set must be a constant");
        }
        self.declare(&v.name, annotations, DefKind::ValueSet { element });
    }

    pub(super) fn control(&mut self, control: &'a ast::Control, annotations: &'a [ast::Annotation]) {
        self.scopes.push(super::Scope::default());
        let parameters = self.type_parameters(&control.signature.type_parameters);
        self.scopes.push(super::Scope::default());
        let params = self.parameters(&control.signature.parameters, Owner::Block);
        let constructor = self.parameters(&control.constructor_parameters, Owner::BlockConstructor);
        let outer = std::mem::replace(
            &mut self.context,
            super::Context {
                place: Place::ControlLocals,
                in_parser: false,
                result: Some(Types::VOID),
                loops: 0,
            },
        );
        self.scopes.push(super::Scope::default());
        for local in &control.locals {
            self.annotations(&local.annotations);
            match &local.kind {
                DeclarationKind::Constant(_)
                | DeclarationKind::Variable(_)
                | DeclarationKind::Action(_)
                | DeclarationKind::Table(_)
                | DeclarationKind::Instantiation(_) => self.declaration(local),
                _ => self.error(
                    "invalid",
                    local.span,
                    "only constants, variables, instantiations, actions and tables may be declared in a control",
                ),
            }
        }
        self.with_place(Place::ControlApply, |c| c.block_in_new_scope(&control.apply));
        self.scopes.pop();
        self.context = outer;
        self.scopes.pop();
        self.scopes.pop();
        self.declare(
            &control.signature.name,
            annotations,
            DefKind::Control {
                parameters,
                params,
                constructor,
                ast: control,
            },
        );
    }

    pub(super) fn instantiation(&mut self, i: &'a ast::Instantiation, annotations: &'a [ast::Annotation]) {
        if matches!(
            self.context.place,
            Place::Action | Place::Function | Place::AbstractMethod
        ) {
            self.error(
                "invalid",
                i.name.span,
                format!(
                    "`{}`: nothing can be instantiated in a function, method or action",
                    i.name.name
                ),
            );
            self.declare(&i.name, annotations, DefKind::Broken);
            return;
        }
        if self.context.place == Place::ControlApply {
            self.report(
                Diagnostic::error(
                    "invalid",
                    i.name.span,
                    format!("`{}`: nothing can be instantiated in an apply block", i.name.name),
                )
                .help("move it before `apply`"),
            );
            self.declare(&i.name, annotations, DefKind::Broken);
            return;
        }
        let ty = self.resolve_type(&i.ty);
        if self.context.place == Place::ParserState {
            self.error(
                "invalid",
                i.name.span,
                format!("`{}`: nothing can be instantiated in a parser state", i.name.name),
            );
            self.declare(&i.name, annotations, DefKind::Broken);
            return;
        }
        let at_top = self.context.place == Place::TopLevel;
        // An array of instances: every one is constructed from the same arguments.
        let ty = match self.kind(ty) {
            TyKind::Stack(element, _) if matches!(self.kind(element), TyKind::Extern(..)) => element,
            _ => ty,
        };
        match self.kind(ty) {
            TyKind::Extern(..) | TyKind::Unknown => {}
            TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) => {
                let is_block = !matches!(self.kind(ty), TyKind::Package(..));
                if at_top && is_block {
                    self.report(
                        Diagnostic::error(
                            "invalid",
                            i.name.span,
                            format!(
                                "`{}`: parsers and controls cannot be instantiated at the top level",
                                i.name.name
                            ),
                        )
                        .help("instantiate it where it is applied, or in the arguments of the package"),
                    );
                }
                if i.body.is_some() {
                    self.error(
                        "type-error",
                        i.name.span,
                        "only an instance of an extern may have a body",
                    );
                }
            }
            _ => {
                let shown = self.show(ty);
                self.type_error(
                    i.ty.span,
                    format!("there are no instances of {shown}: only of externs, parsers, controls and packages"),
                );
                for argument in &i.arguments {
                    self.expr(&argument.value, None);
                }
                self.declare(&i.name, annotations, DefKind::Broken);
                return;
            }
        }
        let array = match self
            .info
            .written_types
            .get(&std::ptr::from_ref(&i.ty))
            .map(|&t| self.kind(t))
        {
            Some(TyKind::Stack(_, size)) => Some(size),
            _ => None,
        };
        let call = self.construct(ty, &i.arguments, i.ty.span);
        let ty = match call {
            Some((ty, info)) => {
                self.info.instantiations.insert(std::ptr::from_ref(i), info);
                ty
            }
            None => Types::UNKNOWN,
        };
        self.abstract_methods(i, ty);
        let ty = match array {
            Some(size) if !self.is_unknown(ty) => self.info.types.intern(TyKind::Stack(ty, size)),
            _ => ty,
        };
        self.declare(&i.name, annotations, DefKind::Instance { ty, ast: i });
    }

    /// Bodies for abstract methods of an extern instance.
    fn abstract_methods(&mut self, i: &'a ast::Instantiation, ty: Ty) {
        let TyKind::Extern(def, arguments) = self.kind(ty) else {
            return;
        };
        let DefKind::Extern { parameters, methods } = &self.def(def).kind else {
            return;
        };
        let map: FxHashMap<Ty, Ty> = parameters.iter().copied().zip(arguments.iter().copied()).collect();
        let wanted: Vec<super::Signature<'a>> = methods
            .iter()
            .filter(|m| matches!(m.kind, FunctionKind::Method { is_abstract: true }))
            .cloned()
            .collect();
        let Some(body) = &i.body else {
            if let Some(method) = wanted
                .iter()
                .find(|m| !m.annotations.iter().any(|a| &*a.name.name == "optional"))
            {
                let message = format!("`{}` is abstract and needs a body", method.name.name);
                self.report(
                    Diagnostic::error("type-error", i.name.span, message)
                        .help("write `= { … }` with the method's body after the instance's name"),
                );
            }
            return;
        };
        if wanted.is_empty() {
            self.error(
                "type-error",
                i.name.span,
                "an instance of an extern without abstract methods cannot have a body",
            );
            return;
        }
        self.scopes.push(super::Scope::default());
        let this = self.this_type.replace(ty);
        let mut found: Vec<&str> = Vec::new();
        for declaration in body {
            match &declaration.kind {
                DeclarationKind::Function(f) => {
                    self.abstract_method(f, &declaration.annotations, &wanted, &map);
                    found.push(&f.prototype.name.name);
                }
                _ => self.declaration(declaration),
            }
        }
        self.this_type = this;
        self.scopes.pop();
        for method in &wanted {
            let optional = method.annotations.iter().any(|a| &*a.name.name == "optional");
            if !optional && !found.contains(&&*method.name.name) {
                self.error(
                    "type-error",
                    i.name.span,
                    format!("the abstract method `{}` has no body", method.name.name),
                );
            }
        }
    }

    fn abstract_method(
        &mut self,
        f: &'a ast::Function,
        annotations: &'a [ast::Annotation],
        wanted: &[super::Signature<'a>],
        map: &FxHashMap<Ty, Ty>,
    ) {
        self.scopes.push(super::Scope::default());
        let signature = self.prototype(&f.prototype, annotations, FunctionKind::Body(f), Owner::Extern, None);
        let candidates: Vec<_> = wanted.iter().filter(|m| m.name.name == signature.name.name).collect();
        let name = &signature.name.name;
        let matching = candidates.iter().any(|m| {
            let result = self.info.types.substitute(m.result, map);
            if !self.unify(result, signature.result) {
                return false;
            }
            // The body may leave out optional parameters.
            let mut given = signature.params.iter().peekable();
            for wanted in &m.params {
                let ty = self.info.types.substitute(wanted.ty, map);
                let fits = given
                    .peek()
                    .is_some_and(|g| g.direction == wanted.direction && self.unify(ty, g.ty));
                if fits {
                    given.next();
                } else if !wanted.optional {
                    return false;
                }
            }
            given.next().is_none()
        });
        if candidates.is_empty() {
            self.error(
                "type-error",
                signature.name.span,
                format!("the extern has no abstract method `{name}`"),
            );
        } else if !matching {
            let before = candidates[0].name.span;
            self.report(
                Diagnostic::error(
                    "type-error",
                    signature.name.span,
                    format!("`{name}` does not agree with the abstract method"),
                )
                .label(before, "declared here"),
            );
        }
        self.function_body(&signature, f, Place::AbstractMethod);
        self.end_prototype();
        self.scopes.pop();
        self.new_def(&f.prototype.name, annotations, DefKind::Function(signature));
    }
}
