//! Calls: which function is meant, which argument belongs to which parameter, and what the type
//! parameters are.

use super::{Builtin, CallInfo, Callee, Checker, DefKind, FunctionKind, Param, Place, Signature};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use weir_syntax::ast::{self, Argument, Direction, Expr, ExprKind, Ident, StructKind};
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
    fn give_up(&mut self, arguments: &'a [Argument]) -> Ty {
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
            _ if self.is_unknown(self.info.ty(&condition.value)) => {}
            _ if self.is_constant(&condition.value) => {}
            _ => self.error(
                "expected",
                condition.span,
                "the condition of static_assert must be known to the compiler",
            ),
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
            _ => super::expr::is_size_method(name),
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
        let map: FxHashMap<Ty, Ty> = parameters.iter().copied().zip(parts.iter().copied()).collect();
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
            if let Some(like) = super::closest(&member.name, names.iter().map(|n| &**n)) {
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
        let result = self.invoke(
            expr,
            signature,
            Callee::Method(def, *index),
            map,
            given,
            arguments,
            expected,
        );
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
            // A package may leave open what belongs to optional blocks, not what belongs to a default.
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
                if self.info.types.has_infer(part) && closed {
                    self.error(
                        "type-error",
                        span,
                        format!("the type arguments of `{name}` are not known; write them between `<` and `>`"),
                    );
                    break;
                }
            }
        }
        let resolved = self.info.types.resolve(ty);
        let type_arguments = parts.iter().map(|&p| self.info.types.resolve(p)).collect();
        Some((
            resolved,
            CallInfo {
                callee: Callee::Constructor(constructor),
                type_arguments,
                arguments: order,
            },
        ))
    }

    // -------------------------------------------------------------------- arguments and inference

    /// The one signature that the arguments fit by number and names.
    fn choose(
        &mut self,
        candidates: &[&Signature<'a>],
        arguments: &'a [Argument],
        span: Span,
        name: &str,
    ) -> Option<usize> {
        let named = arguments.iter().filter(|a| a.name.is_some()).count();
        if named != 0 && named != arguments.len() {
            self.error("invalid", span, "either all arguments have names or none has");
            return None;
        }
        let mut seen: Vec<&Ident> = Vec::new();
        for argument in arguments.iter().filter_map(|a| a.name.as_ref()) {
            if seen.iter().any(|s| s.name == argument.name) {
                self.error(
                    "duplicate",
                    argument.span,
                    format!("the argument `{}` is given twice", argument.name),
                );
                return None;
            }
            seen.push(argument);
        }
        let fits: Vec<usize> = (0..candidates.len())
            .filter(|&i| mismatch(&candidates[i].params, arguments).is_none())
            .collect();
        if let [only] = fits[..] {
            return Some(only);
        }
        if let [first, ..] = fits[..] {
            // Several fit: the one that needs no default value wins.
            let exact: Vec<usize> = fits
                .iter()
                .copied()
                .filter(|&i| candidates[i].params.len() == arguments.len())
                .collect();
            if let [only] = exact[..] {
                return Some(only);
            }
            if candidates.len() > 1 {
                let mut diagnostic =
                    Diagnostic::error("duplicate", span, format!("it is not clear which `{name}` is meant"));
                for &i in &fits {
                    diagnostic = diagnostic.label(candidates[i].name.span, "this one fits");
                }
                self.report(diagnostic.help("name the arguments: `name = value`"));
                return None;
            }
            return Some(first);
        }
        if let [only] = candidates {
            if let Some((message, place)) = mismatch(&only.params, arguments) {
                let code = if message.contains("no value") {
                    "uninitialized"
                } else {
                    "type-error"
                };
                let mut diagnostic = Diagnostic::error(code, place.unwrap_or(span), format!("`{name}`: {message}"));
                if only.name.span != span {
                    diagnostic = diagnostic.label(only.name.span, "declared here");
                }
                self.report(diagnostic);
            }
            return None;
        }
        let mut diagnostic = Diagnostic::error("type-error", span, format!("no `{name}` fits these arguments"));
        for candidate in candidates {
            diagnostic = diagnostic.label(candidate.name.span, "this one does not fit");
        }
        self.report(diagnostic);
        None
    }

    /// Checks a call against a signature, infers type parameters, and records the call.
    #[allow(clippy::too_many_arguments)]
    fn invoke(
        &mut self,
        expr: &'a Expr,
        signature: &Signature<'a>,
        callee: Callee,
        mut map: FxHashMap<Ty, Ty>,
        given: &[Ty],
        arguments: &'a [Argument],
        expected: Option<Ty>,
    ) -> Ty {
        if !given.is_empty() && given.len() != signature.parameters.len() {
            self.error(
                "type-error",
                expr.span,
                format!(
                    "`{}` has {} type parameter(s), but {} argument(s) are given",
                    signature.name.name,
                    signature.parameters.len(),
                    given.len()
                ),
            );
            return self.give_up(arguments);
        }
        let type_arguments: Vec<Ty> = signature
            .parameters
            .iter()
            .enumerate()
            .map(|(i, _)| given.get(i).copied().unwrap_or_else(|| self.info.types.fresh()))
            .collect();
        map.extend(signature.parameters.iter().copied().zip(type_arguments.iter().copied()));
        if self
            .choose(&[signature], arguments, expr.span, &signature.name.name)
            .is_none()
        {
            return self.give_up(arguments);
        }
        let before = self.diagnostics.list().len();
        let is_constructor = matches!(signature.kind, FunctionKind::Constructor);
        let order = self.arguments(signature, &map, arguments, is_constructor);
        let result = self.info.types.substitute(signature.result, &map);
        if let Some(expected) = expected
            && self.info.types.has_infer(result)
            && !self.info.types.has_infer(expected)
            && !matches!(self.kind(expected), TyKind::Set(_))
        {
            self.unify(result, expected);
        }
        if self.diagnostics.list().len() == before {
            self.check_inferred(expr, signature, &type_arguments);
        }
        self.info.calls.insert(
            expr.id,
            CallInfo {
                callee,
                type_arguments,
                arguments: order,
            },
        );
        result
    }

    fn check_inferred(&mut self, expr: &'a Expr, signature: &Signature<'a>, type_arguments: &[Ty]) {
        for (parameter, &ty) in signature.parameters.iter().zip(type_arguments) {
            let name = self.show(*parameter);
            match self.kind(ty) {
                TyKind::Infer(_) => {
                    // What only the context of the call can tell may still be found out by an assignment.
                    let in_result = self
                        .info
                        .types
                        .any(signature.result, &|k| matches!(k, TyKind::Parameter(..)));
                    let omitted = signature.params.iter().any(|p| p.optional);
                    if !in_result && !omitted {
                        self.report(
                            Diagnostic::error(
                                "type-error",
                                expr.span,
                                format!(
                                    "the type parameter `{name}` of `{}` cannot be inferred",
                                    signature.name.name
                                ),
                            )
                            .help(format!("write it: `{}<…>(…)`", signature.name.name)),
                        );
                    }
                }
                TyKind::Fields(..) => {
                    self.error("type-error", expr.span, format!("the type parameter `{name}` of `{}` cannot be inferred from a struct without a type; cast it", signature.name.name));
                }
                TyKind::String
                    if signature
                        .params
                        .iter()
                        .any(|p| p.direction != Direction::None && p.ty == *parameter) =>
                {
                    self.error(
                        "type-error",
                        expr.span,
                        format!(
                            "the type parameter `{name}` of `{}` would be string, but its parameter has a direction",
                            signature.name.name
                        ),
                    );
                }
                TyKind::Integer if matches!(signature.kind, FunctionKind::Body(_)) => {
                    self.report(
                        Diagnostic::error(
                            "type-error",
                            expr.span,
                            format!(
                                "the type parameter `{name}` of `{}` would be int, which has no values at run time",
                                signature.name.name
                            ),
                        )
                        .help("give the constant a width, e.g. 8w1"),
                    );
                }
                TyKind::Integer
                    if matches!(
                        signature.kind,
                        FunctionKind::Extern | FunctionKind::Body(_) | FunctionKind::Method { .. }
                    ) =>
                {
                    let directed = signature
                        .params
                        .iter()
                        .any(|p| p.direction != Direction::None && p.ty == *parameter);
                    if directed {
                        self.report(
                            Diagnostic::error(
                                "type-error",
                                expr.span,
                                format!(
                                    "the type parameter `{name}` of `{}` would be int, which has no width",
                                    signature.name.name
                                ),
                            )
                            .help("give the constant a width, e.g. 8w1"),
                        );
                    }
                }
                _ => {}
            }
        }
    }

    /// Types the arguments and checks them against the parameters. Returns, for each parameter, the index of
    /// its argument.
    fn arguments(
        &mut self,
        signature: &Signature<'a>,
        map: &FxHashMap<Ty, Ty>,
        arguments: &'a [Argument],
        is_constructor: bool,
    ) -> Vec<Option<usize>> {
        let order: Vec<Option<usize>> = signature
            .params
            .iter()
            .enumerate()
            .map(|(i, p)| match arguments.first() {
                Some(Argument { name: Some(_), .. }) => arguments
                    .iter()
                    .position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name)),
                _ => (i < arguments.len()).then_some(i),
            })
            .collect();
        let mut postponed: Vec<(&'a Argument, Ty, Ty)> = Vec::new();
        for (parameter, index) in signature.params.iter().zip(&order) {
            let Some(argument) = index.map(|i| &arguments[i]) else {
                if let Some(default) = parameter.default {
                    let given = self.info.ty(default);
                    let ty = self.info.types.substitute(parameter.ty, map);
                    let given = self.freshen_inferred(given);
                    self.coerces(given, ty);
                }
                continue;
            };
            let declared = self.freshen_inferred(parameter.ty);
            let ty = self.info.types.substitute(declared, map);
            let free = matches!(self.kind(ty), TyKind::Infer(_));
            let given = self.argument_type(argument, ty);
            if free
                && matches!(self.kind(given), TyKind::Integer)
                && parameter.direction != Direction::Out
                && parameter.direction != Direction::InOut
            {
                postponed.push((argument, given, ty));
                continue;
            }
            self.check_argument(argument, parameter, given, ty, is_constructor);
            let known = self.is_unknown(given)
                || self.is_constant(&argument.value)
                || is_constructor && self.is_extern_call(&argument.value);
            if self.needs_constant(signature, parameter, ty) && !known {
                self.error(
                    "type-error",
                    argument.span,
                    format!("the argument `{}` must be known to the compiler", parameter.name.name),
                );
            }
        }
        for (argument, given, ty) in postponed {
            if !self.coerces(given, ty) {
                self.mismatch_argument(argument, given, ty);
            }
        }
        order
    }

    fn needs_constant(&self, signature: &Signature<'a>, parameter: &Param<'a>, ty: Ty) -> bool {
        if parameter.direction != Direction::None
            || matches!(self.info.types.get(ty), TyKind::Extern(..) | TyKind::Unknown)
        {
            return false;
        }
        !matches!(signature.kind, FunctionKind::Action)
            || matches!(self.info.types.get(ty), TyKind::Integer | TyKind::String)
    }

    /// One argument against one parameter.
    pub(super) fn argument(&mut self, argument: &'a Argument, parameter: &Param<'a>, ty: Ty, is_constructor: bool) {
        let given = self.argument_type(argument, ty);
        self.check_argument(argument, parameter, given, ty, is_constructor);
    }

    fn argument_type(&mut self, argument: &'a Argument, ty: Ty) -> Ty {
        if matches!(argument.value.kind, ExprKind::DontCare) {
            self.info.expr_types[argument.value.id.0 as usize] = ty;
            return ty;
        }
        let outer = self.switch_expression.take();
        let given = self.expr(&argument.value, Some(ty));
        self.switch_expression = outer;
        given
    }

    fn check_argument(
        &mut self,
        argument: &'a Argument,
        parameter: &Param<'a>,
        given: Ty,
        ty: Ty,
        is_constructor: bool,
    ) {
        if matches!(argument.value.kind, ExprKind::DontCare) {
            if parameter.direction != Direction::Out {
                self.error(
                    "type-error",
                    argument.span,
                    format!(
                        "`_` can stand only for an `out` parameter, not for `{}`",
                        parameter.name.name
                    ),
                );
            } else if self.info.types.has_infer(ty) {
                // May be inferred by another argument; otherwise `check_inferred` complains.
            }
            return;
        }
        match self.kind(given) {
            TyKind::Unknown => return,
            TyKind::TypeName(_)
            | TyKind::Def(_)
            | TyKind::Method
            | TyKind::ApplyResult(_)
            | TyKind::ActionRun(_)
            | TyKind::Void => {
                let shown = self.show(given);
                self.error("type-error", argument.span, format!("{shown} cannot be an argument"));
                return;
            }
            TyKind::Set(_) => {
                let shown = self.show(given);
                self.error("type-error", argument.span, format!("{shown} cannot be an argument"));
                return;
            }
            TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..) if !is_constructor => {
                let shown = self.show(given);
                self.error("type-error", argument.span, format!("{shown} cannot be an argument"));
                return;
            }
            _ => {}
        }
        match parameter.direction {
            Direction::Out | Direction::InOut => {
                if !self.is_l_value(&argument.value) {
                    self.report(
                        Diagnostic::error(
                            "type-error",
                            argument.span,
                            format!(
                                "the argument for `{}` must be a variable: the parameter is `{}`",
                                parameter.name.name,
                                if parameter.direction == Direction::Out {
                                    "out"
                                } else {
                                    "inout"
                                }
                            ),
                        )
                        .label(parameter.name.span, "declared here"),
                    );
                    return;
                }
                if !self.unify(given, ty) {
                    self.mismatch_argument(argument, given, ty);
                }
            }
            Direction::In | Direction::None => {
                if !self.coerces(given, ty) {
                    self.mismatch_argument(argument, given, ty);
                } else if is_constructor && !self.is_constant(&argument.value) && !self.is_extern_call(&argument.value)
                {
                    self.error(
                        "type-error",
                        argument.span,
                        format!(
                            "the argument for `{}` must be known to the compiler",
                            parameter.name.name
                        ),
                    );
                } else if self.kind(given) == TyKind::Integer
                    && let Some(value) = self.eval(&argument.value)
                {
                    self.warn_overflow(&value, given, ty, argument.value.span);
                }
            }
        }
    }

    /// A call of an extern function with constant arguments: whoever knows the extern can evaluate it.
    fn is_extern_call(&self, expr: &Expr) -> bool {
        let ExprKind::Call { arguments, .. } = &expr.kind else {
            return false;
        };
        let Some(Callee::Function(def)) = self.info.calls.get(&expr.id).map(|c| c.callee) else {
            return false;
        };
        matches!(&self.def(def).kind, DefKind::Function(s) if matches!(s.kind, FunctionKind::Extern))
            && arguments.iter().all(|a| self.is_constant(&a.value))
    }

    fn mismatch_argument(&mut self, argument: &'a Argument, given: Ty, ty: Ty) {
        let (g, t) = (self.show(given), self.show(ty));
        let mut diagnostic = Diagnostic::error(
            "type-error",
            argument.span,
            format!("the argument is {g}, but {t} is expected"),
        );
        if let (TyKind::Bit(_), TyKind::Bit(_)) | (TyKind::Int(_), TyKind::Int(_)) = (self.kind(given), self.kind(ty)) {
            diagnostic = diagnostic.help(format!("cast it: `({t}) …`"));
        }
        self.report(diagnostic);
    }
}

fn is_method_name(name: &str) -> bool {
    matches!(name, "isValid" | "setValid" | "setInvalid") || super::expr::is_size_method(name)
}

/// Why the arguments do not fit the parameters by number and names.
fn mismatch(params: &[Param<'_>], arguments: &[Argument]) -> Option<(String, Option<Span>)> {
    let named = arguments.first().is_some_and(|a| a.name.is_some());
    if named {
        for argument in arguments {
            if let Some(name) = &argument.name
                && !params.iter().any(|p| p.name.name == name.name)
            {
                return Some((format!("there is no parameter `{}`", name.name), Some(argument.span)));
            }
        }
        for param in params {
            let given = arguments
                .iter()
                .any(|a| a.name.as_ref().is_some_and(|n| n.name == param.name.name));
            if !given && !param.may_be_omitted() {
                return Some((format!("the parameter `{}` has no value", param.name.name), None));
            }
        }
        return None;
    }
    if arguments.len() > params.len() {
        return Some((
            format!(
                "{} argument(s) are given, but there are {} parameter(s)",
                arguments.len(),
                params.len()
            ),
            arguments.get(params.len()).map(|a| a.span),
        ));
    }
    params[arguments.len()..]
        .iter()
        .find(|p| !p.may_be_omitted())
        .map(|p| (format!("the parameter `{}` has no value", p.name.name), None))
}

impl super::Checked<'_> {
    /// Whether a header type has a varbit field.
    #[must_use]
    pub fn types_any_varbit(&mut self, ty: Ty) -> bool {
        match self.types.get(ty).clone() {
            TyKind::Varbit(_) => true,
            TyKind::Struct(def, arguments) => self
                .fields_of(def, &arguments)
                .into_iter()
                .any(|(_, t)| self.types_any_varbit(t)),
            _ => false,
        }
    }
}
