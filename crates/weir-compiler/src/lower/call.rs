//! Calls: builtin methods, the packet, externs, and inlined functions and actions.

use super::value::{Entity, Object, Place, TableState, Val};
use super::{Flow, Lowerer, boolean};
use crate::check::{Builtin, CallInfo, Callee, DefKind, FunctionKind, Param, Signature};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use std::rc::Rc;
use weir_ir::{HeaderId, InstKind, Mark, Operand, Terminator, VarId, VarKind};
use weir_syntax::ast::{self, Block, Direction, Expr, ExprKind};

/// What an argument has become before the call.
pub(super) enum Passed {
    In(Val),
    Out(Place),
    /// `inout`, where a later argument may change it: the value it had when its turn came.
    Saved(Place, Val),
    Omitted,
}

/// The arguments of a call, one per parameter.
pub(super) struct Arguments {
    pub passed: Vec<Passed>,
    /// Where each argument stands in the call as written. Copying out goes by it (P4_16, section
    /// "Calling convention"),
    /// and with names it is not the order of parameters.
    pub positions: Vec<usize>,
}

/// What is copied out when a callee returns, exits or rejects.
#[derive(Clone)]
pub(super) struct CopyOut {
    pub argument: Place,
    pub parameter: Place,
    pub position: usize,
}

impl<'a> Lowerer<'a, '_> {
    pub(super) fn call(&mut self, expr: &'a Expr) -> Val {
        let Some(info) = self.checked.calls.get(&expr.id).cloned() else {
            return Val::Void;
        };
        let ExprKind::Call { callee, arguments, .. } = &expr.kind else {
            return Val::Void;
        };
        self.at(expr.span, |s| s.dispatch(expr, callee, arguments, &info))
    }

    fn dispatch(&mut self, expr: &'a Expr, callee: &'a Expr, arguments: &'a [ast::Argument], info: &CallInfo) -> Val {
        let base = match &callee.kind {
            ExprKind::Member(base, _) => Some(&**base),
            _ => None,
        };
        match info.callee {
            Callee::Builtin(builtin) => match base {
                Some(base) => self.builtin(expr, base, builtin, arguments),
                None => Val::Void,
            },
            Callee::TableApply(_) => {
                let table = base.and_then(|b| self.table_of(b));
                if let Some(table) = table {
                    self.apply_table(&table);
                }
                Val::Void
            }
            Callee::BlockApply => {
                if let Some(base) = base {
                    self.apply_block_call(base, arguments, info);
                }
                Val::Void
            }
            Callee::Constructor(_) => self.construct_call(expr, info, arguments),
            Callee::Action(def) => {
                let DefKind::Action { signature, ast } = self.def_kind(def) else {
                    return Val::Void;
                };
                let (params, ast) = (signature.params.clone(), *ast);
                let passed = self.pass(&params, arguments, info);
                let id = self.action_id(def);
                self.emit(InstKind::Mark(Mark::EnterAction(id)));
                self.inline(&params, passed, false, &ast.body, Types::VOID, expr);
                self.emit(InstKind::Mark(Mark::Leave));
                Val::Void
            }
            Callee::Function(def) => {
                let DefKind::Function(signature) = self.def_kind(def) else {
                    return Val::Void;
                };
                let signature = signature.clone();
                self.call_function(expr, &signature, arguments, info)
            }
            Callee::Method(def, index) => {
                let DefKind::Extern { methods, .. } = self.def_kind(def) else {
                    return Val::Void;
                };
                let signature = methods[index].clone();
                match base {
                    Some(base) => self.call_method(expr, def, base, &signature, arguments, info),
                    None => Val::Void,
                }
            }
        }
    }

    // -------------------------------------------------------------------------------- builtins

    fn builtin(&mut self, expr: &'a Expr, base: &'a Expr, builtin: Builtin, arguments: &'a [ast::Argument]) -> Val {
        match builtin {
            Builtin::IsValid => {
                let value = self.expr(base);
                let valid = self.validity(&value);
                Val::Scalar(valid)
            }
            Builtin::SetValid | Builtin::SetInvalid => {
                let place = self.place(base);
                self.set_validity(&place, builtin == Builtin::SetValid);
                Val::Void
            }
            Builtin::PushFront | Builtin::PopFront => {
                let place = self.place(base);
                let count = arguments.first().map_or(0, |a| self.constant_u32(&a.value)) as usize;
                self.shift_stack(&place, count, builtin == Builtin::PushFront);
                Val::Void
            }
            _ => {
                let mut ty = self.ty(base);
                if let TyKind::TypeName(named) = self.kind(ty) {
                    ty = self.concrete(named);
                }
                let (minimum, maximum) = self.checked.size_in_bits(ty).unwrap_or((0, 0));
                let _ = expr;
                Val::Int(match builtin {
                    Builtin::MinSizeInBits => minimum.into(),
                    Builtin::MinSizeInBytes => minimum.div_ceil(8).into(),
                    Builtin::MaxSizeInBits => maximum.into(),
                    _ => maximum.div_ceil(8).into(),
                })
            }
        }
    }

    // ------------------------------------------------------------------------------- arguments

    /// Evaluates arguments from left to right; places keep the indices they have now.
    pub(super) fn pass(&mut self, params: &[Param<'a>], arguments: &'a [ast::Argument], info: &CallInfo) -> Arguments {
        // Arguments are evaluated as they are written, which with names need not be in order of the
        // parameters.
        let mut order: Vec<usize> = (0..params.len()).collect();
        order.sort_by_key(|&i| info.arguments.get(i).copied().flatten());
        let mut passed: Vec<Passed> = params.iter().map(|_| Passed::Omitted).collect();
        let effects = arguments.iter().rposition(|a| self.has_effects(&a.value));
        for i in order {
            let param = &params[i];
            let ty = self.concrete(param.ty);
            let index = info.arguments.get(i).copied().flatten();
            let Some((j, argument)) = index.and_then(|j| Some((j, arguments.get(j)?))) else {
                if let Some(default) = param.default.filter(|d| !matches!(d.kind, ExprKind::Dots)) {
                    passed[i] = Passed::In(self.expr_as(default, ty));
                }
                continue;
            };
            let later_effects = effects.is_some_and(|last| last > j);
            passed[i] = match param.direction {
                Direction::Out | Direction::InOut if matches!(argument.value.kind, ExprKind::DontCare) => {
                    Passed::Out(self.allocate("_", ty, VarKind::Temporary))
                }
                Direction::Out => Passed::Out(self.place(&argument.value)),
                Direction::InOut => {
                    let place = self.place(&argument.value);
                    if later_effects {
                        let value = self.read(&place);
                        Passed::Saved(place, self.snapshot(&value))
                    } else {
                        Passed::Out(place)
                    }
                }
                Direction::In | Direction::None => {
                    let value = self.expr_as(&argument.value, ty);
                    Passed::In(if later_effects { self.snapshot(&value) } else { value })
                }
            };
        }
        let positions = (0..params.len()).map(|i| info.arguments.get(i).copied().flatten().unwrap_or(i));
        Arguments {
            passed,
            positions: positions.collect(),
        }
    }

    fn header_valid(&self) -> impl Fn(HeaderId) -> VarId + '_ {
        |h| self.program.headers[h].valid
    }

    pub(super) fn place_vars(&self, place: &Place) -> Option<Vec<VarId>> {
        let mut vars = Vec::new();
        place.leaves(&mut vars, &self.header_valid()).then_some(vars)
    }

    /// Binds parameters and lowers a body in place of a call. `may_alias`: the body cannot reach
    /// the arguments other than by its parameters, so a parameter may be its argument where no
    /// other argument overlaps it.
    pub(super) fn inline(
        &mut self,
        params: &[Param<'a>],
        passed: Arguments,
        may_alias: bool,
        body: &'a Block,
        result: Ty,
        expr: &'a Expr,
    ) -> Val {
        let bindings = self.bind_parameters(params, passed, may_alias);
        let result_type = self.concrete(result);
        let result_place =
            (result_type != Types::VOID).then(|| self.allocate("result", result_type, VarKind::Temporary));
        let _ = expr;
        self.run_inlined(bindings, result_place.clone(), result_type, |s| s.block(body));
        match result_place {
            Some(place) => self.read(&place),
            None => Val::Void,
        }
    }

    /// Binds parameters to arguments; returns what is to be copied out, in order.
    pub(super) fn bind_parameters(
        &mut self,
        params: &[Param<'a>],
        arguments: Arguments,
        may_alias: bool,
    ) -> Vec<CopyOut> {
        let Arguments { passed, positions } = arguments;
        let overlapping = self.overlaps(&passed);
        // A method that captures an argument's variables would see, or make, changes of the
        // parameter.
        let may_alias = may_alias && !passed.iter().any(|p| matches!(p, Passed::In(v) if self.has_bodies(v)));
        let mut back = Vec::new();
        let mut entities = Vec::new();
        for (i, (param, passed)) in params.iter().zip(passed).enumerate() {
            let ty = self.concrete(param.ty);
            let alias = may_alias && !overlapping[i];
            let position = positions[i];
            let entity = match passed {
                Passed::Omitted => {
                    let zero = self.zero(ty);
                    let place = self.allocate(&param.name.name, ty, VarKind::Local);
                    self.write(&place, &zero);
                    Entity::Place(place)
                }
                Passed::In(value @ (Val::Object(_) | Val::Int(_) | Val::String(_))) => Entity::Value(value),
                Passed::In(value) => {
                    let mut leaves = Vec::new();
                    value.leaves(&mut leaves);
                    let constant = leaves.iter().all(|l| matches!(l, Operand::Const(_)));
                    if constant || alias {
                        Entity::Value(value)
                    } else {
                        let place = self.allocate(&param.name.name, ty, VarKind::Local);
                        self.write(&place, &value);
                        Entity::Place(place)
                    }
                }
                Passed::Saved(argument, initial) => {
                    let place = self.allocate(&param.name.name, ty, VarKind::Local);
                    self.write(&place, &initial);
                    back.push(CopyOut {
                        argument,
                        parameter: place.clone(),
                        position,
                    });
                    Entity::Place(place)
                }
                Passed::Out(argument) => {
                    let simple = self.place_vars(&argument).is_some();
                    if alias && simple {
                        if param.direction == Direction::Out {
                            let zero = self.zero(ty);
                            self.write(&argument, &zero);
                        }
                        Entity::Place(argument)
                    } else {
                        let place = self.allocate(&param.name.name, ty, VarKind::Local);
                        let initial = if param.direction == Direction::Out {
                            self.zero(ty)
                        } else {
                            self.read(&argument)
                        };
                        self.write(&place, &initial);
                        back.push(CopyOut {
                            argument,
                            parameter: place.clone(),
                            position,
                        });
                        Entity::Place(place)
                    }
                }
            };
            entities.push((param.def, entity));
        }
        self.bindings.extend(entities);
        back.sort_by_key(|b| b.position);
        back
    }

    /// Of each argument whether it shares variables with another one, and one of the two is
    /// written.
    pub(super) fn overlaps(&self, passed: &[Passed]) -> Vec<bool> {
        // Which variables each argument touches, to see overlaps.
        let touched: Vec<Vec<VarId>> = passed
            .iter()
            .map(|p| match p {
                Passed::Out(place) | Passed::Saved(place, _) => {
                    let mut vars = Vec::new();
                    place.touches(&mut vars, &self.header_valid());
                    vars
                }
                Passed::In(value) => {
                    let mut leaves = Vec::new();
                    value.leaves(&mut leaves);
                    leaves
                        .into_iter()
                        .filter_map(|l| if let Operand::Var(v) = l { Some(v) } else { None })
                        .collect()
                }
                Passed::Omitted => Vec::new(),
            })
            .collect();
        let written: Vec<bool> = passed
            .iter()
            .map(|p| matches!(p, Passed::Out(_) | Passed::Saved(..)))
            .collect();
        let mut seen: FxHashMap<VarId, (usize, bool)> = FxHashMap::default();
        let mut overlapping = vec![false; passed.len()];
        for (i, vars) in touched.iter().enumerate() {
            for &var in vars {
                match seen.get(&var) {
                    Some(&(j, was_written)) if j != i && (written[i] || was_written) => {
                        overlapping[i] = true;
                        overlapping[j] = true;
                    }
                    Some(_) => {}
                    None => {
                        seen.insert(var, (i, written[i]));
                    }
                }
            }
        }
        overlapping
    }

    /// Lowers `body` with its own `return`; afterwards, and before an `exit` goes on, copies back.
    pub(super) fn run_inlined(
        &mut self,
        back: Vec<CopyOut>,
        result: Option<Place>,
        result_type: Ty,
        body: impl FnOnce(&mut Self),
    ) {
        let return_to = self.new_block();
        let outer_exit = self.flow.exit_to;
        let exit_to = if back.is_empty() { outer_exit } else { self.new_block() };
        let outer = std::mem::replace(
            &mut self.flow,
            Flow {
                return_to,
                result,
                result_type,
                exit_to,
                loops: Vec::new(),
            },
        );
        let active = self.copy_out_on_reject(&back);
        body(self);
        self.goto(return_to);
        self.flow = outer;
        if let Some(active) = active {
            self.set(active, boolean(false));
        }
        self.copy_back(&back);
        if !back.is_empty() {
            let resume = self.new_block();
            self.terminate_to(Terminator::Goto(resume), exit_to);
            self.copy_back(&back);
            self.terminate_to(Terminator::Goto(outer_exit), resume);
        }
    }

    /// In a parser: has what a callee copies out copied out where it rejects, too. A parameter that
    /// stands for its
    /// argument shows what the callee did before, and one that is a copy must not differ. Gives the
    /// variable that
    /// says whether the callee is running, which is 1 from here.
    fn copy_out_on_reject(&mut self, back: &[CopyOut]) -> Option<VarId> {
        if back.is_empty() || self.reject.is_none() {
            return None;
        }
        let active = self.temporary(1);
        self.set(active, boolean(true));
        self.rejections.push((active, back.to_vec()));
        Some(active)
    }

    /// Ends a parser's block for errors: copies out for the callees that are running, the innermost
    /// first.
    pub(super) fn finish_reject(&mut self, reject: weir_ir::BlockId) {
        if self.rejections.is_empty() {
            return;
        }
        let outer = self.current;
        self.current = reject;
        self.loc = self.body.blocks[reject].loc;
        for (active, back) in std::mem::take(&mut self.rejections).into_iter().rev() {
            let (copy, next) = (self.new_block(), self.new_block());
            let branch = Terminator::Branch {
                condition: Operand::Var(active),
                then: copy,
                otherwise: next,
            };
            self.branch_unseen(branch, copy);
            self.copy_back(&back);
            self.goto(next);
        }
        self.terminate_to(Terminator::Reject, outer);
    }

    pub(super) fn copy_back(&mut self, back: &[CopyOut]) {
        for copy in back {
            let value = self.read(&copy.parameter);
            self.write(&copy.argument, &value);
        }
    }

    // ------------------------------------------------------------------------------- functions

    fn call_function(
        &mut self,
        expr: &'a Expr,
        signature: &Signature<'a>,
        arguments: &'a [ast::Argument],
        info: &CallInfo,
    ) -> Val {
        match signature.kind {
            FunctionKind::Body(function) => {
                // Type arguments are those of the caller's context, put in before the callee's are.
                let given: Vec<Ty> = info.type_arguments.iter().map(|&t| self.concrete(t)).collect();
                let passed = self.with_types(signature, &given, |s| s.pass_outer(signature, arguments, info));
                self.emit(InstKind::Mark(Mark::Enter(signature.name.name.to_string())));
                let result = self.with_types(signature, &given, |s| {
                    s.inline(&signature.params, passed, true, &function.body, signature.result, expr)
                });
                self.emit(InstKind::Mark(Mark::Leave));
                result
            }
            _ => match &*signature.name.name {
                "verify" if self.reject.is_some() && signature.params.len() == 2 => {
                    let passed = self.pass(&signature.params, arguments, info);
                    if let [Passed::In(Val::Scalar(condition)), Passed::In(Val::Scalar(error))] = &passed.passed[..] {
                        self.require(condition.clone(), error.clone());
                    }
                    Val::Void
                }
                "static_assert" => Val::Scalar(boolean(true)),
                _ => self.call_extern(expr, None, signature, &FxHashMap::default(), arguments, info),
            },
        }
    }

    /// Arguments are evaluated with the caller's type parameters, but have the callee's parameter
    /// types.
    fn pass_outer(&mut self, signature: &Signature<'a>, arguments: &'a [ast::Argument], info: &CallInfo) -> Arguments {
        self.pass(&signature.params, arguments, info)
    }

    fn with_types<R>(&mut self, signature: &Signature<'a>, given: &[Ty], f: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.substitution.clone();
        self.substitution
            .extend(signature.parameters.iter().copied().zip(given.iter().copied()));
        let result = f(self);
        self.substitution = before;
        result
    }

    // --------------------------------------------------------------------------------- externs

    fn call_method(
        &mut self,
        expr: &'a Expr,
        def: DefId,
        base: &'a Expr,
        signature: &Signature<'a>,
        arguments: &'a [ast::Argument],
        info: &CallInfo,
    ) -> Val {
        let object = self.expr(base);
        let receiver: Vec<Ty> = info.receiver.iter().map(|&t| self.concrete(t)).collect();
        let map: FxHashMap<Ty, Ty> = match self.def_kind(def) {
            DefKind::Extern { parameters, .. } => parameters.iter().copied().zip(receiver).collect(),
            _ => FxHashMap::default(),
        };
        match object {
            Val::Object(Object::Packet) => self.packet_method(expr, signature, arguments, info),
            Val::Object(Object::Extern(id)) => self.call_extern(expr, Some(id), signature, &map, arguments, info),
            _ => {
                self.error("unsupported", base.span, "this instance is not known at compile time");
                Val::Void
            }
        }
    }

    /// The table that `t.apply()` in `t.apply().hit` applies, after applying it.
    pub(super) fn apply_of(&mut self, call: &'a Expr) -> Option<Rc<TableState>> {
        let ExprKind::Call { callee, .. } = &call.kind else {
            return None;
        };
        let ExprKind::Member(base, _) = &callee.kind else {
            return None;
        };
        let table = self.table_of(base)?;
        self.at(call.span, |s| s.apply_table(&table));
        Some(table)
    }
}
