//! Calls: copying in and copying out, and methods of the language itself.

use super::machine::Machine;
use super::place::Place;
use super::stop::{Eval, Stop, unknown};
use super::value::{Object, Value};
use std::rc::Rc;
use weir_compiler::tools::{Builtin, CallInfo, Callee, DefId, DefKind, FunctionKind, Param, Signature, Ty, TyKind};
use weir_syntax::ast::{Argument, Direction, Expr, ExprKind};

/// An argument that a call was given, in the order of writing.
struct Passed {
    /// Position of its parameter.
    param: usize,
    /// Where its value goes afterwards, if anywhere.
    back: Option<Place>,
    /// What the parameter begins with.
    value: Value,
}

impl<'a> Machine<'a> {
    /// A call. Its value, if it has one.
    pub fn call(&mut self, expr: &Expr) -> Eval<Value> {
        let ExprKind::Call { callee, arguments, .. } = &expr.kind else {
            return unknown("a call that is none");
        };
        let Some(info) = self.checked.calls.get(&expr.id).cloned() else {
            return unknown("a call of nothing");
        };
        let base = match &callee.kind {
            ExprKind::Member(base, _) => Some(&**base),
            _ => None,
        };
        match (info.callee, base) {
            (Callee::Builtin(builtin), Some(base)) => self.builtin(builtin, base, arguments),
            (Callee::TableApply(def), Some(_)) => self.apply_table(def),
            (Callee::BlockApply, Some(base)) => self.apply_block(base, arguments, &info),
            (Callee::Action(def), _) => self.call_action(def, arguments, &info),
            (Callee::Function(def), _) => self.call_function(def, arguments, &info),
            (Callee::Method(def, index), Some(base)) => self.call_method(def, index, base, arguments, &info),
            (Callee::Constructor(_), _) => self.construct_here(expr, arguments, &info),
            (Callee::Builtin(_) | Callee::TableApply(_) | Callee::BlockApply | Callee::Method(..), None) => {
                unknown("a method of nothing")
            }
        }
    }

    // ------------------------------------------------------------------------------------ builtins

    fn builtin(&mut self, builtin: Builtin, base: &Expr, arguments: &[Argument]) -> Eval<Value> {
        match builtin {
            Builtin::IsValid => Ok(Value::Bool(self.expr(base)?.is_valid())),
            Builtin::SetValid | Builtin::SetInvalid => {
                let place = self.place(base)?;
                let header = self.load(&place)?;
                let Value::Header { valid: was, .. } = header else {
                    return unknown("validity of what is no header");
                };
                // Fields of a header that becomes valid have no value by the specification: here
                // they are zero.
                let becomes = builtin == Builtin::SetValid;
                let mut header = if becomes && !was { header.zeroed() } else { header };
                if let Value::Header { valid, .. } = &mut header {
                    *valid = becomes;
                }
                self.store(&place, header)?;
                Ok(Value::Void)
            }
            Builtin::PushFront | Builtin::PopFront => {
                let place = self.place(base)?;
                let count = match arguments {
                    [count] => self.constant(&count.value)?,
                    _ => return unknown("a stack moved by nothing"),
                };
                let stack = self.load(&place)?;
                self.store(&place, moved(stack, count, builtin == Builtin::PushFront)?)?;
                Ok(Value::Void)
            }
            Builtin::MinSizeInBits | Builtin::MinSizeInBytes | Builtin::MaxSizeInBits | Builtin::MaxSizeInBytes => {
                let ty = self.checked.ty(base);
                let ty = self.concrete(ty);
                let ty = match self.checked.types.get(ty) {
                    TyKind::TypeName(named) => *named,
                    _ => ty,
                };
                let ty = self.concrete(ty);
                let Some((least, most)) = self.checked.size_in_bits(ty) else {
                    return unknown("the size of what has none");
                };
                Ok(Value::Integer(match builtin {
                    Builtin::MinSizeInBits => least.into(),
                    Builtin::MinSizeInBytes => least.div_ceil(8).into(),
                    Builtin::MaxSizeInBits => most.into(),
                    _ => most.div_ceil(8).into(),
                }))
            }
        }
    }

    // ----------------------------------------------------------------------------------- arguments

    /// Evaluates arguments from left to right as they are written: values of `in` and `inout`,
    /// places of `out` and `inout`. Parameters without one get their default.
    fn pass(&mut self, params: &[Param<'a>], arguments: &[Argument], info: &CallInfo) -> Eval<Vec<Passed>> {
        let mut passed = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            let Some(param) = info.arguments.iter().position(|&a| a == Some(at)) else {
                return unknown("an argument without a parameter");
            };
            passed.push(self.pass_one(&params[param], param, &argument.value)?);
        }
        for (at, param) in params.iter().enumerate() {
            if passed.iter().any(|p| p.param == at) {
                continue;
            }
            let value = match (param.default, param.direction) {
                (Some(default), _) if !matches!(default.kind, ExprKind::Dots) => self.expr_as(default, param.ty)?,
                _ if param.optional => continue,
                _ => self.zero(param.ty)?,
            };
            passed.push(Passed {
                param: at,
                back: None,
                value,
            });
        }
        Ok(passed)
    }

    fn pass_one(&mut self, param: &Param<'a>, at: usize, argument: &Expr) -> Eval<Passed> {
        let (back, value) = match param.direction {
            Direction::In | Direction::None => (None, self.expr_as(argument, param.ty)?),
            Direction::Out => (Some(self.place(argument)?), self.zero(param.ty)?),
            Direction::InOut if matches!(argument.kind, ExprKind::DontCare) => {
                (Some(Place::Nowhere), self.zero(param.ty)?)
            }
            Direction::InOut => {
                let place = self.place(argument)?;
                let value = self.load(&place)?;
                (Some(place), value)
            }
        };
        Ok(Passed { param: at, back, value })
    }

    /// A call of something with a body: parameters are variables of their own; afterwards, also
    /// after an `exit` or an error of a parser, `out` and `inout` are copied to their places in the
    /// order of the arguments.
    fn with_parameters(
        &mut self,
        params: &[Param<'a>],
        arguments: &[Argument],
        info: &CallInfo,
        body: impl FnOnce(&mut Self) -> Eval<Value>,
    ) -> Eval<Value> {
        let passed = self.pass(params, arguments, info)?;
        let bound = passed.iter().map(|p| (params[p.param].def, p.value.clone())).collect();
        let (result, after) = self.with_variables(bound, body);
        if !matches!(result, Err(Stop::Unknown(_))) {
            for (passed, value) in passed.into_iter().zip(after) {
                if let Some(place) = passed.back {
                    self.store(&place, value)?;
                }
            }
        }
        result
    }

    /// `x.apply(args)` of a parser or control.
    pub fn with_parameters_of_block(
        &mut self,
        params: &[Param<'a>],
        arguments: &[Argument],
        info: &CallInfo,
        block: usize,
    ) -> Eval<Value> {
        self.with_parameters(params, arguments, info, |m| m.run_block(block))
    }

    /// Evaluates with the type parameters of what is called.
    fn with_types<R>(&mut self, parameters: &[Ty], given: &[Ty], f: impl FnOnce(&mut Self) -> Eval<R>) -> Eval<R> {
        let given: Vec<Ty> = given.iter().map(|&t| self.concrete(t)).collect();
        let before = self.types.clone();
        self.types.extend(parameters.iter().copied().zip(given));
        let result = f(self);
        self.types = before;
        result
    }

    // ------------------------------------------------------------------------- actions and
    // functions

    fn call_action(&mut self, def: DefId, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        let DefKind::Action { signature, ast } = self.def(def) else {
            return unknown("an action that is none");
        };
        let (params, ast) = (signature.params.clone(), *ast);
        self.with_parameters(&params, arguments, info, |m| m.body(&ast.body).map(|_| Value::Void))
    }

    /// An action that a table runs: with what the entry gives it for the parameters without
    /// direction, and with what the list of actions gives it for the others.
    pub fn run_action(&mut self, def: DefId, data: &[Value], given: &[Argument]) -> Eval<()> {
        let DefKind::Action { signature, ast } = self.def(def) else {
            return unknown("an action that is none");
        };
        let (params, ast) = (signature.params.clone(), *ast);
        let is_data = |p: &&Param<'a>| p.direction == Direction::None;
        let directed: Vec<Param<'a>> = params.iter().filter(|p| !is_data(p)).cloned().collect();
        let bound = params
            .iter()
            .filter(is_data)
            .map(|p| p.def)
            .zip(data.iter().cloned())
            .collect();
        let position = |p: &Param<'a>, at: usize| {
            let by_name = given
                .iter()
                .position(|a| a.name.as_ref().is_some_and(|n| n.name == p.name.name));
            by_name.or((at < given.len()).then_some(at))
        };
        let info = CallInfo {
            callee: Callee::Action(def),
            receiver: Vec::new(),
            type_arguments: Vec::new(),
            arguments: directed.iter().enumerate().map(|(at, p)| position(p, at)).collect(),
        };
        let (result, _) = self.with_variables(bound, |m| {
            m.with_parameters(&directed, given, &info, |m| m.body(&ast.body).map(|_| Value::Void))
        });
        result.map(|_| ())
    }

    fn call_function(&mut self, def: DefId, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        let DefKind::Function(signature) = self.def(def) else {
            return unknown("a function that is none");
        };
        let signature = signature.clone();
        self.with_types(&signature.parameters, &info.type_arguments, |m| match signature.kind {
            FunctionKind::Body(function) => m.with_parameters(&signature.params, arguments, info, |m| {
                let value = m.body(&function.body)?.unwrap_or(Value::Void);
                m.convert(value, signature.result)
            }),
            FunctionKind::Extern | FunctionKind::Method { .. } | FunctionKind::Constructor | FunctionKind::Action => {
                m.call_extern(None, &signature, arguments, info)
            }
        })
    }

    fn call_method(
        &mut self,
        def: DefId,
        index: usize,
        base: &Expr,
        arguments: &[Argument],
        info: &CallInfo,
    ) -> Eval<Value> {
        let DefKind::Extern { parameters, methods } = self.def(def) else {
            return unknown("an extern that is none");
        };
        let (parameters, signature) = (parameters.clone(), methods[index].clone());
        // Where the instance leaves a type open, each call has its own.
        let given: Rc<[Ty]> = match self.kind_of(base) {
            _ if !info.receiver.is_empty() => info.receiver.as_slice().into(),
            TyKind::Extern(_, given) => given,
            _ => Rc::from([]),
        };
        let Value::Object(object) = self.expr(base)? else {
            return unknown("a method of what is no instance");
        };
        self.with_types(&parameters, &given, |m| {
            m.with_types(&signature.parameters, &info.type_arguments, |m| match object {
                Object::Packet => m.packet_method(&signature, arguments, info),
                Object::Extern(id) => m.call_extern(Some(id), &signature, arguments, info),
                Object::Block(_) | Object::ValueSet(_) => unknown("a method of what is no extern"),
            })
        })
    }

    fn packet_method(&mut self, signature: &Signature<'a>, arguments: &[Argument], info: &CallInfo) -> Eval<Value> {
        match (&*signature.name.name, arguments) {
            ("extract", [target]) => self.extract_call(&target.value, None),
            ("extract", [target, bits]) => {
                let bits = self.expr_as(&bits.value, signature.params[1].ty)?;
                self.extract_call(&target.value, Some(bits))
            }
            ("lookahead", []) => match info.type_arguments.first() {
                Some(&ty) => self.lookahead(ty),
                None => unknown("lookahead of no type"),
            },
            ("advance", [bits]) => {
                let bits = self.expr_as(&bits.value, signature.params[0].ty)?;
                self.advance(&bits).map(|()| Value::Void)
            }
            ("length", []) => Ok(Value::bit(32, self.packet.bytes.len())),
            ("emit", [headers]) => {
                let headers = self.expr(&headers.value)?;
                self.emit(&headers).map(|()| Value::Void)
            }
            (name, _) => unknown(format!("{name} of a packet")),
        }
    }

    /// An extract to the next element of a stack makes the one after it the next.
    fn extract_call(&mut self, target: &Expr, bits: Option<Value>) -> Eval<Value> {
        let ty = self.checked.ty(target);
        let place = self.place(target)?;
        self.extract(&place, ty, bits.as_ref())?;
        if let Some(stack) = next_of(target)
            && matches!(self.kind_of(stack), TyKind::Stack(..))
        {
            let stack = self.place(stack)?;
            let mut value = self.load(&stack)?;
            if let Value::Stack { next, .. } = &mut value {
                *next += 1;
            }
            self.store(&stack, value)?;
        }
        Ok(Value::Void)
    }

    /// Places and values of an extern's arguments by parameter; parameters that are left out have
    /// none.
    pub fn extern_arguments(
        &mut self,
        params: &[Param<'a>],
        arguments: &[Argument],
        info: &CallInfo,
    ) -> Eval<Vec<ExternArgument>> {
        let passed = self.pass(params, arguments, info)?;
        let mut all: Vec<ExternArgument> = params.iter().map(|_| ExternArgument::default()).collect();
        for passed in passed {
            all[passed.param] = ExternArgument {
                place: passed.back,
                value: Some(passed.value),
            };
        }
        Ok(all)
    }

    /// A method of an instance that has its body in the program.
    pub fn call_body(
        &mut self,
        function: &'a weir_syntax::ast::Function,
        values: Vec<Value>,
    ) -> Eval<(Value, Vec<Value>)> {
        let def = self.declared(&function.prototype.name)?;
        let DefKind::Function(signature) = self.def(def) else {
            return unknown("a method that is none");
        };
        let signature = signature.clone();
        let mut bound = Vec::new();
        for (param, value) in signature.params.iter().zip(values) {
            let value = match param.direction {
                Direction::Out => self.zero(param.ty)?,
                Direction::In | Direction::InOut | Direction::None => value,
            };
            bound.push((param.def, value));
        }
        let (result, after) = self.with_variables(bound, |m| {
            let value = m.body(&function.body)?.unwrap_or(Value::Void);
            m.convert(value, signature.result)
        });
        Ok((result?, after))
    }
}

/// What an extern gets for a parameter.
#[derive(Debug, Clone, Default)]
pub(super) struct ExternArgument {
    /// Where a result goes.
    pub place: Option<Place>,
    /// What it begins with.
    pub value: Option<Value>,
}

/// `s` of `s.next` and of `s.next.member`.
fn next_of(target: &Expr) -> Option<&Expr> {
    match &target.kind {
        ExprKind::Member(base, member) if &*member.name == "next" => Some(base),
        ExprKind::Member(base, _) => next_of(base),
        _ => None,
    }
}

/// A stack whose elements have moved; those that are made room for are invalid, and have what they
/// had.
fn moved(stack: Value, count: usize, push: bool) -> Eval<Value> {
    let Value::Stack { next, elements } = stack else {
        return unknown("elements of what is no stack");
    };
    let size = elements.len();
    let count = count.min(size);
    let (next, elements) = if push {
        let fresh = elements[..count].iter().cloned().map(invalid);
        let next = (next + count).min(size);
        (next, fresh.chain(elements[..size - count].iter().cloned()).collect())
    } else {
        let fresh = elements[size - count..].iter().cloned().map(invalid);
        let next = next.saturating_sub(count);
        (next, elements[count..].iter().cloned().chain(fresh).collect())
    };
    Ok(Value::Stack { next, elements })
}

/// A header that is not valid, or a union none of whose members is.
fn invalid(element: Value) -> Value {
    match element {
        Value::Header { fields, .. } => Value::Header { valid: false, fields },
        Value::Union(members) => Value::Union(members.into_iter().map(|(n, m)| (n, invalid(m))).collect()),
        other => other,
    }
}
