//! Calls: which function is meant, which argument belongs to which parameter, and what the type
//! parameters are.

use super::{Builtin, CallInfo, Callee, Checker, DefKind, FunctionKind, Param, Place, Signature};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use weir_syntax::ast::{self, Argument, Expr, ExprKind, Ident, StructKind};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

impl<'a> Checker<'a> {
    pub(super) fn call(
        &mut self,
        expr: &'a Expr,
        callee: &'a Expr,
        type_arguments: &'a [ast::Type],
        arguments: &'a [Argument],
        expected: Option<Ty>,
    ) -> Ty {
        let given: Vec<Ty> = type_arguments
            .iter()
            .map(|t| {
                let ty = self.resolve_type(t);
                match self.kind(ty) {
                    TyKind::Void | TyKind::MatchKind => {
                        let shown = self.show(ty);
                        self.type_error(t.span, format!("{shown} cannot be a type argument"))
                    }
                    _ => ty,
                }
            })
            .collect();
        match &callee.kind {
            ExprKind::Name { absolute, name } => {
                self.call_name(expr, callee, *absolute, name, &given, arguments, expected)
            }
            ExprKind::Member(base, member) => self.call_member(expr, callee, base, member, &given, arguments, expected),
            _ => {
                let ty = self.expr(callee, None);
                match self.kind(ty) {
                    TyKind::TypeName(named) => self.construct_expression(expr, named, arguments),
                    TyKind::Unknown => self.give_up(arguments),
                    _ => {
                        self.give_up(arguments);
                        let shown = self.show(ty);
                        self.type_error(callee.span, format!("{shown} cannot be called"))
                    }
                }
            }
        }
    }

    /// Types the arguments of a call that is wrong already, so that their own mistakes show.
    pub(super) fn give_up(&mut self, arguments: &'a [Argument]) -> Ty {
        for argument in arguments {
            self.expr(&argument.value, None);
        }
        Types::UNKNOWN
    }

    #[allow(clippy::too_many_arguments)]
    fn call_name(
        &mut self,
        expr: &'a Expr,
        callee: &'a Expr,
        absolute: bool,
        name: &'a Ident,
        given: &[Ty],
        arguments: &'a [Argument],
        expected: Option<Ty>,
    ) -> Ty {
        let defs = self.lookup(&name.name, absolute);
        let Some(&first) = defs.first() else {
            self.not_found("function or action", name);
            return self.give_up(arguments);
        };
        self.info.names[callee.id.0 as usize] = Some(first);
        match &self.def(first).kind {
            DefKind::Function(_) => {
                let candidates: Vec<(DefId, Signature<'a>)> = defs
                    .iter()
                    .filter_map(|&d| match &self.def(d).kind {
                        DefKind::Function(s) => Some((d, s.clone())),
                        _ => None,
                    })
                    .collect();
                let signatures: Vec<&Signature<'a>> = candidates.iter().map(|(_, s)| s).collect();
                let Some(index) = self.choose(&signatures, arguments, callee.span, &name.name) else {
                    return self.give_up(arguments);
                };
                let (def, signature) = &candidates[index];
                self.info.names[callee.id.0 as usize] = Some(*def);
                self.check_function_call(expr.span, signature);
                let result = self.invoke(
                    expr,
                    signature,
                    Callee::Function(*def),
                    FxHashMap::default(),
                    given,
                    arguments,
                    expected,
                );
                if &*name.name == "static_assert" {
                    self.static_assert(expr, arguments);
                }
                result
            }
            DefKind::Action { signature, .. } => {
                let signature = signature.clone();
                if !given.is_empty() {
                    self.error("type-error", expr.span, "an action has no type parameters");
                }
                match self.context.place {
                    Place::ControlApply | Place::Action => {}
                    _ if self.context.in_parser => {
                        self.error("type-error", expr.span, format!("the action `{}` cannot be called in a parser", name.name));
                    }
                    _ => self.error("type-error", expr.span, format!("the action `{}` cannot be called here: only in the apply block of a control or in an action", name.name)),
                }
                self.invoke(
                    expr,
                    &signature,
                    Callee::Action(first),
                    FxHashMap::default(),
                    &[],
                    arguments,
                    expected,
                )
            }
            DefKind::Broken => self.give_up(arguments),
            DefKind::Constant { .. }
            | DefKind::Variable { .. }
            | DefKind::Parameter { .. }
            | DefKind::Instance { .. }
            | DefKind::ValueSet { .. }
            | DefKind::Table { .. } => {
                self.give_up(arguments);
                let mut diagnostic =
                    Diagnostic::error("type-error", callee.span, format!("`{}` cannot be called", name.name));
                if matches!(self.def(first).kind, DefKind::Table { .. } | DefKind::Instance { .. }) {
                    diagnostic = diagnostic.help(format!("did you mean `{}.apply(…)`?", name.name));
                }
                self.report(diagnostic);
                Types::UNKNOWN
            }
            _ => {
                let ty = self.expr(callee, None);
                match self.kind(ty) {
                    TyKind::TypeName(named) => {
                        let named = if given.is_empty() {
                            named
                        } else {
                            self.with_arguments(named, given, expr.span)
                        };
                        self.construct_expression(expr, named, arguments)
                    }
                    _ => self.give_up(arguments),
                }
            }
        }
    }

    fn with_arguments(&mut self, ty: Ty, given: &[Ty], span: Span) -> Ty {
        let (def, count) = match self.kind(ty) {
            TyKind::Struct(d, p)
            | TyKind::Extern(d, p)
            | TyKind::Parser(d, p)
            | TyKind::Control(d, p)
            | TyKind::Package(d, p) => (d, p.len()),
            _ => return ty,
        };
        if count != given.len() {
            let shown = self.show(ty);
            return self.type_error(
                span,
                format!(
                    "{shown} has {count} type parameter(s), but {} argument(s) are given",
                    given.len()
                ),
            );
        }
        self.apply_type(def, given.to_vec())
    }

    fn check_function_call(&mut self, span: Span, signature: &Signature<'a>) {
        if &*signature.name.name == "verify"
            && matches!(signature.kind, FunctionKind::Extern)
            && !self.context.in_parser
        {
            self.error("type-error", span, "`verify` can be called only in a parser");
        }
    }

    fn static_assert(&mut self, expr: &'a Expr, arguments: &'a [Argument]) {
        let Some(condition) = arguments.first() else { return };
        match self.eval(&condition.value) {
            Some(super::Const::Bool(true)) => {}
            Some(super::Const::Bool(false)) => {
                let message = arguments.get(1).and_then(|a| self.eval(&a.value));
                let message = match message {
                    Some(super::Const::String(s)) => s.to_string(),
                    _ => "static_assert failed".to_string(),
                };
                self.error("expected", expr.span, message);
            }
            // One that is not constant has been reported with the arguments.
            _ => {}
        }
    }

    // --------------------------------------------------------------------------------- methods

    #[allow(clippy::too_many_arguments)]
    fn call_member(
        &mut self,
        expr: &'a Expr,
        callee: &'a Expr,
        base: &'a Expr,
        member: &'a Ident,
        given: &[Ty],
        arguments: &'a [Argument],
        expected: Option<Ty>,
    ) -> Ty {
        let base_type = self.expr(base, None);
        let name = &*member.name;
        match self.kind(base_type) {
            TyKind::Extern(def, parts) => {
                self.call_method(expr, callee, def, &parts, member, given, arguments, expected)
            }
            TyKind::Def(table) if name == "apply" && matches!(self.def(table).kind, DefKind::Table { .. }) => {
                self.info.expr_types[callee.id.0 as usize] = Types::METHOD;
                self.apply_table(expr, table, arguments)
            }
            TyKind::Parser(def, parts) | TyKind::Control(def, parts) if name == "apply" => {
                self.info.expr_types[callee.id.0 as usize] = Types::METHOD;
                self.apply_block(expr, base_type, def, &parts, arguments)
            }
            TyKind::TypeName(named)
                if name == "apply" && matches!(self.kind(named), TyKind::Parser(..) | TyKind::Control(..)) =>
            {
                self.info.expr_types[callee.id.0 as usize] = Types::METHOD;
                let (TyKind::Parser(def, parts) | TyKind::Control(def, parts)) = self.kind(named) else {
                    return Types::UNKNOWN;
                };
                let constructor = match &self.def(def).kind {
                    DefKind::Parser { constructor, .. } | DefKind::Control { constructor, .. } => {
                        Some(constructor.clone())
                    }
                    _ => None,
                };
                match constructor {
                    Some(c) if c.iter().all(Param::may_be_omitted) => {}
                    Some(_) => self.error(
                        "type-error",
                        base.span,
                        format!(
                            "`{}` has constructor parameters and must be instantiated first",
                            self.show(named)
                        ),
                    ),
                    None => self.error(
                        "invalid",
                        base.span,
                        format!("{} has no body and cannot be applied", self.show(named)),
                    ),
                }
                self.apply_block(expr, named, def, &parts, arguments)
            }
            TyKind::Unknown => self.give_up(arguments),
            TyKind::TypeName(named) if matches!(self.kind(named), TyKind::Extern(..)) => {
                self.give_up(arguments);
                let shown = self.show(named);
                self.report(
                    Diagnostic::error(
                        "type-error",
                        base.span,
                        format!("`{name}` is called on an instance, but this is {shown} itself"),
                    )
                    .help("declare an instance and call the method on it"),
                );
                Types::UNKNOWN
            }
            TyKind::Struct(..) | TyKind::Stack(..) if is_method_name(name) && self.has_method(base_type, name) => {
                // A field of the same name is not meant: it cannot be called.
                self.info.expr_types[callee.id.0 as usize] = Types::METHOD;
                self.builtin(expr, base, base_type, member, given, arguments)
            }
            _ => {
                let ty = self.expr(callee, None);
                if ty != Types::METHOD {
                    self.give_up(arguments);
                    if !self.is_unknown(ty) {
                        let shown = self.show(ty);
                        return self.type_error(callee.span, format!("{shown} cannot be called"));
                    }
                    return Types::UNKNOWN;
                }
                self.builtin(expr, base, base_type, member, given, arguments)
            }
        }
    }

    fn has_method(&self, ty: Ty, name: &str) -> bool {
        let kind = self.struct_kind(ty);
        match name {
            "isValid" => matches!(kind, Some(StructKind::Header | StructKind::HeaderUnion)),
            "setValid" | "setInvalid" => kind == Some(StructKind::Header),
            _ => super::access::is_size_method(name),
        }
    }

    fn builtin(
        &mut self,
        expr: &'a Expr,
        base: &'a Expr,
        base_type: Ty,
        member: &'a Ident,
        given: &[Ty],
        arguments: &'a [Argument],
    ) -> Ty {
        let (builtin, count, result) = match &*member.name {
            "isValid" => (Builtin::IsValid, 0, Types::BOOL),
            "setValid" => (Builtin::SetValid, 0, Types::VOID),
            "setInvalid" => (Builtin::SetInvalid, 0, Types::VOID),
            "push_front" => (Builtin::PushFront, 1, Types::VOID),
            "pop_front" => (Builtin::PopFront, 1, Types::VOID),
            "minSizeInBits" => (Builtin::MinSizeInBits, 0, Types::INTEGER),
            "minSizeInBytes" => (Builtin::MinSizeInBytes, 0, Types::INTEGER),
            "maxSizeInBits" => (Builtin::MaxSizeInBits, 0, Types::INTEGER),
            _ => (Builtin::MaxSizeInBytes, 0, Types::INTEGER),
        };
        if !given.is_empty() {
            self.error(
                "type-error",
                expr.span,
                format!("`{}` has no type parameters", member.name),
            );
        }
        if arguments.len() != count {
            self.error(
                "type-error",
                expr.span,
                format!(
                    "`{}` takes {count} argument(s), but {} are given",
                    member.name,
                    arguments.len()
                ),
            );
        }
        for argument in arguments {
            let ty = self.expr(&argument.value, None);
            if !self.is_unknown(ty) {
                match self.eval_int(&argument.value) {
                    Some(n) if num_traits::Signed::is_negative(&n) => {
                        self.error(
                            "type-error",
                            argument.span,
                            format!("`{}` takes a number that is not negative", member.name),
                        );
                    }
                    None if !self.is_constant(&argument.value)
                        || !matches!(self.kind(ty), TyKind::Integer | TyKind::Bit(_) | TyKind::Int(_)) =>
                    {
                        self.error(
                            "type-error",
                            argument.span,
                            format!("`{}` takes a constant number", member.name),
                        );
                    }
                    _ => {}
                }
            }
        }
        if matches!(
            builtin,
            Builtin::SetValid | Builtin::SetInvalid | Builtin::PushFront | Builtin::PopFront
        ) && !self.is_l_value(base)
        {
            self.error(
                "type-error",
                base.span,
                format!(
                    "`{}` changes what it is called on, but this cannot be changed",
                    member.name
                ),
            );
        }
        if builtin == Builtin::IsValid && self.struct_kind(base_type) == Some(StructKind::Struct) {
            return self.type_error(expr.span, "a struct has no validity");
        }
        self.info.calls.insert(
            expr.id,
            CallInfo {
                callee: Callee::Builtin(builtin),
                type_arguments: Vec::new(),
                arguments: (0..count).map(Some).collect(),
                receiver: Vec::new(),
            },
        );
        result
    }

    #[allow(clippy::too_many_arguments)]
    fn call_method(
        &mut self,
        expr: &'a Expr,
        callee: &'a Expr,
        def: DefId,
        parts: &[Ty],
        member: &'a Ident,
        given: &[Ty],
        arguments: &'a [Argument],
        expected: Option<Ty>,
    ) -> Ty {
        self.info.expr_types[callee.id.0 as usize] = Types::METHOD;
        let DefKind::Extern { parameters, methods } = &self.def(def).kind else {
            return self.give_up(arguments);
        };
        let parameters = parameters.clone();
        let candidates: Vec<(usize, Signature<'a>)> = methods
            .iter()
            .enumerate()
            .filter(|(_, m)| m.name.name == member.name && !matches!(m.kind, FunctionKind::Constructor))
            .map(|(i, m)| (i, m.clone()))
            .collect();
        let extern_name = self.def(def).name.clone();
        if candidates.is_empty() {
            let names: Vec<ast::Name> = match &self.def(def).kind {
                DefKind::Extern { methods, .. } => methods
                    .iter()
                    .filter(|m| !matches!(m.kind, FunctionKind::Constructor))
                    .map(|m| m.name.name.clone())
                    .collect(),
                _ => Vec::new(),
            };
            let mut diagnostic = Diagnostic::error(
                "type-error",
                member.span,
                format!("extern {extern_name} has no method `{}`", member.name),
            );
            if let Some(like) = self.similar(&member.name, names.iter().map(|n| &**n)) {
                diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
            } else if !names.is_empty() {
                diagnostic = diagnostic.help(format!("its methods are {}", names.join(", ")));
            }
            self.report(diagnostic);
            return self.give_up(arguments);
        }
        let signatures: Vec<&Signature<'a>> = candidates.iter().map(|(_, s)| s).collect();
        let shown = format!("{extern_name}.{}", member.name);
        let Some(chosen) = self.choose(&signatures, arguments, expr.span, &shown) else {
            return self.give_up(arguments);
        };
        let (index, signature) = &candidates[chosen];
        let receiver = self.receiver(signature, &parameters, parts);
        let map = parameters.into_iter().zip(receiver.iter().copied()).collect();
        let result = self.invoke(
            expr,
            signature,
            Callee::Method(def, *index),
            map,
            given,
            arguments,
            expected,
        );
        if let Some(call) = self.info.calls.get_mut(&expr.id) {
            call.receiver = receiver;
        }
        self.check_packet_method(&extern_name, &member.name, arguments, expr.span);
        if (&*extern_name, &*member.name) == ("packet_in", "lookahead") && self.info.types_any_varbit(result) {
            let shown = self.show(result);
            return self.type_error(
                expr.span,
                format!("lookahead reads a fixed number of bits, but {shown} has a varbit"),
            );
        }
        result
    }

    /// Rules of `packet_in` and `packet_out` that their declarations cannot express.
    fn check_packet_method(&mut self, extern_name: &str, method: &str, arguments: &'a [Argument], span: Span) {
        let Some(first) = arguments.first() else { return };
        let ty = self.info.ty(&first.value);
        if self.is_unknown(ty) {
            return;
        }
        match (extern_name, method) {
            ("packet_in", "extract") => {
                if matches!(first.value.kind, ExprKind::DontCare) {
                    return;
                }
                let kind = self.struct_kind(ty);
                if !matches!(kind, Some(StructKind::Header))
                    && !matches!(self.kind(ty), TyKind::Parameter(..) | TyKind::Infer(_))
                {
                    let shown = self.show(ty);
                    self.error(
                        "type-error",
                        first.span,
                        format!("only a header can be extracted, not {shown}"),
                    );
                } else if arguments.len() == 1 && self.info.types_any_varbit(ty) {
                    self.report(
                        Diagnostic::error(
                            "type-error",
                            first.span,
                            "a header with a varbit field cannot be extracted without its length",
                        )
                        .help("pass the length of the varbit in bits as the second argument"),
                    );
                } else if arguments.len() == 2
                    && !self.info.types_any_varbit(ty)
                    && !matches!(self.kind(ty), TyKind::Parameter(..))
                {
                    self.error(
                        "type-error",
                        span,
                        "the header has no varbit field, so its length is known",
                    );
                }
            }
            ("packet_out", "emit") => {
                let good = match self.kind(ty) {
                    TyKind::Struct(..) | TyKind::Parameter(..) | TyKind::Infer(_) => true,
                    TyKind::Stack(element, _) => matches!(
                        self.struct_kind(element),
                        Some(StructKind::Header | StructKind::HeaderUnion)
                    ),
                    TyKind::Tuple(_) | TyKind::Listed(_) => true,
                    _ => false,
                };
                if !good {
                    let shown = self.show(ty);
                    self.error(
                        "type-error",
                        first.span,
                        format!("only headers, and stacks, unions and structs of them, can be emitted, not {shown}"),
                    );
                }
            }
            _ => {}
        }
    }

    fn apply_table(&mut self, expr: &'a Expr, table: DefId, arguments: &'a [Argument]) -> Ty {
        if !arguments.is_empty() {
            self.give_up(arguments);
            self.error("type-error", expr.span, "`apply` of a table takes no arguments");
        }
        match self.context.place {
            Place::ControlApply | Place::TableKey => {}
            Place::Action | Place::Function | Place::AbstractMethod => {
                self.error(
                    "type-error",
                    expr.span,
                    "a table cannot be applied in an action or function: only in the apply block of a control",
                );
            }
            _ => self.error(
                "type-error",
                expr.span,
                "a table can be applied only in the apply block of a control",
            ),
        }
        self.info.calls.insert(
            expr.id,
            CallInfo {
                callee: Callee::TableApply(table),
                type_arguments: Vec::new(),
                arguments: Vec::new(),
                receiver: Vec::new(),
            },
        );
        self.info.types.intern(TyKind::ApplyResult(table))
    }

    fn apply_block(&mut self, expr: &'a Expr, ty: Ty, def: DefId, parts: &[Ty], arguments: &'a [Argument]) -> Ty {
        let is_parser = matches!(self.kind(ty), TyKind::Parser(..));
        let place = self.context.place;
        let allowed = if is_parser {
            place == Place::ParserState
        } else {
            place == Place::ControlApply
        };
        if !allowed {
            let (what, whole) = if is_parser {
                ("a parser", "in a state of a parser")
            } else {
                ("a control", "in the apply block of a control")
            };
            self.error("type-error", expr.span, format!("{what} can be applied only {whole}"));
        }
        let Some(params) = self.block_params(def, parts) else {
            return self.give_up(arguments);
        };
        let signature = Signature {
            name: Ident {
                name: "apply".into(),
                span: expr.span,
            },
            parameters: Vec::new(),
            params,
            result: Types::VOID,
            kind: FunctionKind::Action,
            annotations: &[],
        };
        let Some(_) = self.choose(&[&signature], arguments, expr.span, "apply") else {
            return self.give_up(arguments);
        };
        self.invoke(
            expr,
            &signature,
            Callee::BlockApply,
            FxHashMap::default(),
            &[],
            arguments,
            None,
        )
    }

    // ---------------------------------------------------------------------------- constructors

    fn construct_expression(&mut self, expr: &'a Expr, named: Ty, arguments: &'a [Argument]) -> Ty {
        match self.kind(named) {
            TyKind::Extern(..) | TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) => {}
            TyKind::Unknown => return self.give_up(arguments),
            _ => {
                self.give_up(arguments);
                let shown = self.show(named);
                return self.type_error(expr.span, format!("{shown} has no constructor"));
            }
        }
        if matches!(
            self.context.place,
            Place::Action | Place::Function | Place::AbstractMethod
        ) {
            self.error(
                "invalid",
                expr.span,
                "nothing can be instantiated here: declare an instance outside",
            );
        }
        match self.construct(named, arguments, expr.span) {
            Some((ty, info)) => {
                if let (TyKind::Extern(def, _), Callee::Constructor(_)) = (self.kind(ty), info.callee) {
                    let is_abstract = match &self.def(def).kind {
                        DefKind::Extern { methods, .. } => methods.iter().any(|m| {
                            matches!(m.kind, FunctionKind::Method { is_abstract: true })
                                && !m.annotations.iter().any(|a| &*a.name.name == "optional")
                        }),
                        _ => false,
                    };
                    if is_abstract {
                        let shown = self.show(ty);
                        self.error(
                            "type-error",
                            expr.span,
                            format!("{shown} has abstract methods, so an instance needs a name and a body"),
                        );
                    }
                }
                self.info.calls.insert(expr.id, info);
                ty
            }
            None => Types::UNKNOWN,
        }
    }

    /// Checks a constructor call and infers the type arguments of what is constructed.
    pub(super) fn construct(&mut self, ty: Ty, arguments: &'a [Argument], span: Span) -> Option<(Ty, CallInfo)> {
        let (def, parts) = match self.kind(ty) {
            TyKind::Extern(d, p) | TyKind::Parser(d, p) | TyKind::Control(d, p) | TyKind::Package(d, p) => (d, p),
            _ => {
                self.give_up(arguments);
                return None;
            }
        };
        // Parsers, controls and packages may be overloaded by their constructor parameters.
        let mut homonyms = self.lookup(&self.def(def).name.clone(), false);
        if !homonyms.contains(&def) {
            homonyms = vec![def];
        }
        let mut candidates: Vec<(DefId, Option<usize>, Vec<Param<'a>>)> = Vec::new();
        match &self.def(def).kind {
            DefKind::Extern { methods, .. } => {
                let constructors = methods
                    .iter()
                    .enumerate()
                    .filter(|(_, m)| matches!(m.kind, FunctionKind::Constructor));
                candidates.extend(constructors.map(|(i, m)| (def, Some(i), m.params.clone())));
            }
            DefKind::BlockType {
                kind: super::BlockKind::Parser | super::BlockKind::Control,
                ..
            } => {
                self.give_up(arguments);
                let shown = self.show(ty);
                self.error(
                    "type-error",
                    span,
                    format!("{shown} is a type without a body and cannot be instantiated"),
                );
                return None;
            }
            _ => {
                for d in homonyms {
                    match &self.def(d).kind {
                        DefKind::BlockType {
                            kind: super::BlockKind::Package,
                            params,
                            ..
                        } => candidates.push((d, None, params.clone())),
                        DefKind::Parser { constructor, .. } | DefKind::Control { constructor, .. } => {
                            candidates.push((d, None, constructor.clone()))
                        }
                        _ => {}
                    }
                }
            }
        }
        let name = self.def(def).name.clone();
        let signatures: Vec<Signature<'a>> = candidates
            .iter()
            .map(|(_, _, params)| Signature {
                name: Ident {
                    name: name.clone(),
                    span,
                },
                parameters: Vec::new(),
                params: params.clone(),
                result: ty,
                kind: FunctionKind::Constructor,
                annotations: &[],
            })
            .collect();
        if signatures.is_empty() {
            self.give_up(arguments);
            self.error("type-error", span, format!("extern {name} has no constructor"));
            return None;
        }
        let references: Vec<&Signature<'a>> = signatures.iter().collect();
        let Some(chosen) = self.choose(&references, arguments, span, &name) else {
            self.give_up(arguments);
            return None;
        };
        let (meant, constructor, _) = &candidates[chosen];
        let (meant, constructor) = (*meant, *constructor);
        let parameters = self.type_parameters_of(meant).unwrap_or_default();
        let (ty, parts) = if meant == def {
            (ty, parts)
        } else {
            let fresh: Vec<Ty> = parameters.iter().map(|_| self.info.types.fresh()).collect();
            (self.apply_type(meant, fresh.clone()), fresh.into())
        };
        let map: FxHashMap<Ty, Ty> = parameters.into_iter().zip(parts.iter().copied()).collect();
        let before = self.diagnostics.list().len();
        let order = self.arguments(&signatures[chosen], &map, arguments, true);
        if self.diagnostics.list().len() == before {
            // A package may leave parts of optional blocks open, but none of a default.
            let defaulted = signatures[chosen]
                .params
                .iter()
                .zip(&order)
                .any(|(p, a)| a.is_none() && p.default.is_some());
            let closed = match self.kind(ty) {
                TyKind::Extern(..) => true,
                TyKind::Package(..) => defaulted,
                _ => false,
            };
            for &part in parts.iter() {
                if self.info.types.has_infer(part) && closed && !self.is_open_type(part) {
                    self.error(
                        "type-error",
                        span,
                        format!("the type arguments of `{name}` are not known; write them between `<` and `>`"),
                    );
                    break;
                }
            }
        }
        if matches!(self.kind(ty), TyKind::Extern(..)) {
            self.note_open_instance(&parts);
        }
        let resolved = self.info.types.resolve(ty);
        let type_arguments = parts.iter().map(|&p| self.info.types.resolve(p)).collect();
        Some((
            resolved,
            CallInfo {
                callee: Callee::Constructor(constructor),
                type_arguments,
                arguments: order,
                receiver: Vec::new(),
            },
        ))
    }
}

fn is_method_name(name: &str) -> bool {
    matches!(name, "isValid" | "setValid" | "setInvalid") || super::access::is_size_method(name)
}
