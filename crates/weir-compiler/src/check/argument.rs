//! The arguments of a call: which overload they fit, which parameter each belongs to, and what they
//! make of the type parameters.

use super::{CallInfo, Callee, Checker, DefKind, FunctionKind, Param, Signature};
use crate::types::{Ty, TyKind};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{Argument, Direction, Expr, ExprKind};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

impl<'a> Checker<'a> {
    /// The one signature that the arguments fit by number and names.
    pub(super) fn choose(
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
        let mut seen: FxHashSet<&str> = FxHashSet::default();
        for argument in arguments.iter().filter_map(|a| a.name.as_ref()) {
            if !seen.insert(&argument.name) {
                self.error(
                    "duplicate",
                    argument.span,
                    format!("the argument `{}` is given twice", argument.name),
                );
                return None;
            }
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
    pub(super) fn invoke(
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
        let result = self.bounded(result, expr.span);
        if let Some(expected) = expected
            && self.info.types.has_infer(result)
            && !self.info.types.has_infer(expected)
            && !matches!(self.kind(expected), TyKind::Set(_))
        {
            self.unify(result, expected);
        }
        let known = arguments.iter().all(|a| !self.is_unknown(self.info.ty(&a.value)));
        if known && self.diagnostics.list().len() == before {
            self.check_inferred(expr, signature, &type_arguments);
        }
        self.info.calls.insert(
            expr.id,
            CallInfo {
                callee,
                type_arguments,
                arguments: order,
                receiver: Vec::new(),
            },
        );
        result
    }

    pub(super) fn check_inferred(&mut self, expr: &'a Expr, signature: &Signature<'a>, type_arguments: &[Ty]) {
        for (parameter, &ty) in signature.parameters.iter().zip(type_arguments) {
            let name = self.show(*parameter);
            match self.kind(ty) {
                TyKind::Infer(_) => {
                    // What only the context of the call can tell may still be found out by an
                    // assignment.
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

    /// Types the arguments and checks them against the parameters. Returns, for each parameter, the
    /// index of its argument.
    pub(super) fn arguments(
        &mut self,
        signature: &Signature<'a>,
        map: &FxHashMap<Ty, Ty>,
        arguments: &'a [Argument],
        is_constructor: bool,
    ) -> Vec<Option<usize>> {
        let named = arguments.iter().enumerate().rev();
        let named = named.filter_map(|(i, a)| Some((&*a.name.as_ref()?.name, i)));
        let named: FxHashMap<&str, usize> = named.collect();
        let order: Vec<Option<usize>> = signature
            .params
            .iter()
            .enumerate()
            .map(|(i, p)| match arguments.first() {
                Some(Argument { name: Some(_), .. }) => named.get(&*p.name.name).copied(),
                _ => (i < arguments.len()).then_some(i),
            })
            .collect();
        let mut postponed: Vec<(&'a Argument, Ty, Ty)> = Vec::new();
        for (parameter, index) in signature.params.iter().zip(&order) {
            let Some(argument) = index.map(|i| &arguments[i]) else {
                if let Some(default) = parameter.default {
                    let given = self.info.ty(default);
                    let ty = self.info.types.substitute(parameter.ty, map);
                    let given = self.info.types.substitute(given, map);
                    let given = self.freshen_inferred(given);
                    if !self.coerces(given, ty) {
                        self.mismatch_default(parameter, default, ty);
                    }
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
            if !is_constructor && self.needs_constant(signature, parameter, ty) && !known {
                let mut diagnostic = Diagnostic::error(
                    "type-error",
                    argument.span,
                    format!("the argument `{}` must be known to the compiler", parameter.name.name),
                )
                .label(parameter.name.span, "this parameter has no direction");
                if matches!(signature.kind, FunctionKind::Body(_)) {
                    diagnostic = diagnostic.help("declare it `in` to pass values that only packets have");
                }
                self.report(diagnostic);
            }
        }
        for (argument, given, ty) in postponed {
            if !self.coerces(given, ty) {
                self.mismatch_argument(argument, given, ty);
            }
        }
        order
    }

    fn mismatch_default(&mut self, parameter: &Param<'a>, default: &'a Expr, ty: Ty) {
        let shown = self.show(ty);
        self.report(
            Diagnostic::error(
                "type-error",
                default.span,
                format!(
                    "the default of `{}` is not of type {shown}, which it has here",
                    parameter.name.name
                ),
            )
            .help(format!(
                "give `{}` an argument, or write other type arguments",
                parameter.name.name
            )),
        );
    }

    pub(super) fn needs_constant(&self, signature: &Signature<'a>, parameter: &Param<'a>, ty: Ty) -> bool {
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

    pub(super) fn argument_type(&mut self, argument: &'a Argument, ty: Ty) -> Ty {
        if matches!(argument.value.kind, ExprKind::DontCare) {
            self.info.expr_types[argument.value.id.0 as usize] = ty;
            return ty;
        }
        let outer = self.switch_expression.take();
        let given = self.expr(&argument.value, Some(ty));
        self.switch_expression = outer;
        given
    }

    pub(super) fn check_argument(
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
                    let is_block = |ty| {
                        matches!(
                            self.kind(ty),
                            TyKind::Parser(..) | TyKind::Control(..) | TyKind::Package(..)
                        )
                    };
                    if is_constructor && (is_block(given) || is_block(ty)) {
                        self.mismatch_block(argument, parameter, given, ty);
                    } else {
                        self.mismatch_argument(argument, given, ty);
                    }
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

    /// A call of an extern function with constant arguments: code that knows the extern can
    /// evaluate it.
    pub(super) fn is_extern_call(&self, expr: &Expr) -> bool {
        let ExprKind::Call { arguments, .. } = &expr.kind else {
            return false;
        };
        let Some(Callee::Function(def)) = self.info.calls.get(&expr.id).map(|c| c.callee) else {
            return false;
        };
        matches!(&self.def(def).kind, DefKind::Function(s) if matches!(s.kind, FunctionKind::Extern))
            && arguments.iter().all(|a| self.is_constant(&a.value))
    }

    /// A block that is not of the type that its place in a package has.
    fn mismatch_block(&mut self, argument: &'a Argument, parameter: &Param<'a>, given: Ty, ty: Ty) {
        let (g, t, name) = (self.show(given), self.show(ty), parameter.name.name.to_string());
        let owner = self.info.defs.iter().find(|d| {
            let (DefKind::BlockType { params, .. }
            | DefKind::Parser {
                constructor: params, ..
            }
            | DefKind::Control {
                constructor: params, ..
            }) = &d.kind
            else {
                return false;
            };
            params.iter().any(|p| p.def == parameter.def)
        });
        let of = owner.map_or(String::new(), |o| format!(" of `{}`", o.name));
        let mut diagnostic = Diagnostic::error(
            "type-error",
            argument.span,
            format!("the argument is {g}, but {t} is expected for the block `{name}`{of}"),
        )
        .label(parameter.name.span, "for this parameter");
        if let Some(difference) = self.difference(given, ty) {
            diagnostic = diagnostic.help(difference);
        }
        self.report(diagnostic);
    }

    /// In which parameter a parser or control differs from the type of its place.
    fn difference(&mut self, given: Ty, ty: Ty) -> Option<String> {
        let (d, p, e, q) = match (self.kind(given), self.kind(ty)) {
            (TyKind::Parser(d, p), TyKind::Parser(e, q)) | (TyKind::Control(d, p), TyKind::Control(e, q)) => {
                (d, p, e, q)
            }
            _ => return None,
        };
        let (name, wanted) = (self.def(d).name.clone(), self.def(e).name.clone());
        let (found, expected) = (self.block_params(d, &p)?, self.block_params(e, &q)?);
        for (i, (a, b)) in found.iter().zip(&expected).enumerate() {
            if a.direction != b.direction || !self.unify(a.ty, b.ty) {
                let (a, b) = (self.show_param(a), self.show_param(b));
                return Some(format!(
                    "parameter {} of `{name}` is `{a}`, of `{wanted}` it is `{b}`",
                    i + 1
                ));
            }
        }
        let (longer, in_one, other) = if found.len() > expected.len() {
            (&found, &name, &wanted)
        } else {
            (&expected, &wanted, &name)
        };
        let extra = longer.get(found.len().min(expected.len()))?.clone();
        let extra = self.show_param(&extra);
        Some(format!(
            "`{in_one}` has a further parameter `{extra}`, `{other}` has none there"
        ))
    }

    fn show_param(&self, param: &Param<'a>) -> String {
        let direction = match param.direction {
            Direction::In => "in ",
            Direction::Out => "out ",
            Direction::InOut => "inout ",
            Direction::None => "",
        };
        format!("{direction}{} {}", self.show(param.ty), param.name.name)
    }

    pub(super) fn mismatch_argument(&mut self, argument: &'a Argument, given: Ty, ty: Ty) {
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

/// Why the arguments do not fit the parameters by number and names.
fn mismatch(params: &[Param<'_>], arguments: &[Argument]) -> Option<(String, Option<Span>)> {
    let named = arguments.first().is_some_and(|a| a.name.is_some());
    if named {
        let known: FxHashSet<&str> = params.iter().map(|p| &*p.name.name).collect();
        let given = arguments.iter().filter_map(|a| a.name.as_ref());
        let given: FxHashSet<&str> = given.map(|n| &*n.name).collect();
        for argument in arguments {
            if let Some(name) = &argument.name
                && !known.contains(&*name.name)
            {
                return Some((format!("there is no parameter `{}`", name.name), Some(argument.span)));
            }
        }
        for param in params {
            if !given.contains(&*param.name.name) && !param.may_be_omitted() {
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
