//! Statements.

use super::value::{Entity, Object, Place, Val};
use super::{Lowerer, constant};
use crate::check::{Callee, DefKind};
use crate::types::{DefId, Ty, TyKind};
use rustc_hash::FxHashMap;
use weir_ir::{BinaryOp as Op, Operand, Terminator, VarKind};
use weir_syntax::ast::{self, BinaryOp, Block, DeclarationKind, Expr, ExprKind, Statement, StatementKind, SwitchCase};

impl<'a> Lowerer<'a, '_> {
    pub(super) fn block(&mut self, block: &'a Block) {
        self.annotated_block(block);
    }

    pub(super) fn statements(&mut self, block: &'a Block) {
        for statement in &block.statements {
            self.statement(statement);
        }
    }

    pub(super) fn statement(&mut self, statement: &'a Statement) {
        if self.exhausted {
            return;
        }
        let loc = self.locate(statement.span);
        self.loc = loc;
        match &statement.kind {
            StatementKind::Empty => {}
            StatementKind::Assign {
                target,
                operator,
                value,
            } => self.assignment(target, *operator, value),
            StatementKind::Call(call) => {
                self.expr(call);
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise.as_deref()),
            StatementKind::Block(block) => self.block(block),
            StatementKind::Switch { expression, cases } => self.switch(expression, cases),
            StatementKind::Return(value) => {
                if let (Some(value), Some(result)) = (value, self.flow.result.clone()) {
                    let ty = self.flow.result_type;
                    let value = self.expr_as(value, ty);
                    self.write(&result, &value);
                }
                let to = self.flow.return_to;
                self.terminate(Terminator::Goto(to));
            }
            StatementKind::Exit => {
                let to = self.flow.exit_to;
                self.terminate(Terminator::Goto(to));
            }
            StatementKind::Break => {
                if let Some(&(out, _)) = self.flow.loops.last() {
                    self.terminate(Terminator::Goto(out));
                }
            }
            StatementKind::Continue => {
                if let Some(&(_, again)) = self.flow.loops.last() {
                    self.terminate(Terminator::Goto(again));
                }
            }
            StatementKind::For {
                annotations,
                init,
                condition,
                update,
                body,
            } => {
                self.refuse_execution(annotations);
                self.for_loop(init, condition, update, body);
            }
            StatementKind::ForIn {
                annotations,
                variable,
                collection,
                body,
                ..
            } => {
                self.refuse_execution(annotations);
                self.for_in(variable, collection, body);
            }
            StatementKind::Declaration(declaration) => self.local(declaration),
        }
    }

    /// A variable or constant declared among statements.
    pub(super) fn local(&mut self, declaration: &'a ast::Declaration) {
        match &declaration.kind {
            DeclarationKind::Variable(v) => {
                let Some(def) = self.declared(&v.name) else { return };
                let ty = self.written(&v.ty);
                let loc = self.locate(declaration.span);
                self.loc = loc;
                let place = self.allocate(&v.name.name, ty, VarKind::Local);
                let value = match &v.value {
                    Some(value) => self.expr_as(value, ty),
                    None => self.zero(ty),
                };
                self.write(&place, &value);
                self.bindings.insert(def, Entity::Place(place));
            }
            DeclarationKind::Constant(c) => {
                if let Some(def) = self.declared(&c.name) {
                    self.bindings.remove(&def);
                    self.entity(def);
                }
            }
            _ => {}
        }
    }

    fn assignment(&mut self, target: &'a Expr, operator: Option<BinaryOp>, value: &'a Expr) {
        let ty = self.ty(target);
        let place = self.place(target);
        match operator {
            None => {
                let is_or = self.is_assigned_by_or(value);
                let mut value = self.expr_as(value, ty);
                if is_or && let (Val::Scalar(old), Val::Scalar(new)) = (self.read(&place), &value) {
                    let width = self.width_of(new);
                    value = Val::Scalar(self.binary(Op::Or, old, new.clone(), width));
                }
                self.write_safely(&place, &value);
            }
            Some(op) => {
                let old = self.read(&place);
                let old = if self.has_effects(value) {
                    self.snapshot(&old)
                } else {
                    old
                };
                let given = self.expr(value);
                let given_type = self.ty(value);
                let result = match op {
                    BinaryOp::And | BinaryOp::Or => match (old, given) {
                        (Val::Scalar(a), Val::Scalar(b)) => {
                            Val::Scalar(self.binary(if op == BinaryOp::And { Op::And } else { Op::Or }, a, b, 1))
                        }
                        _ => Val::Void,
                    },
                    _ => self.operate(op, old, ty, given, given_type, ty, target),
                };
                self.write(&place, &result);
            }
        }
    }

    /// Whether a value is that of a method whose results the architecture writes by "or"
    /// (`@assigned_by_or`).
    fn is_assigned_by_or(&self, value: &Expr) -> bool {
        match &value.kind {
            ExprKind::Cast(_, value) => self.is_assigned_by_or(value),
            ExprKind::Call { .. } => {
                let Some(Callee::Method(def, index)) = self.checked.calls.get(&value.id).map(|c| c.callee) else {
                    return false;
                };
                match self.def_kind(def) {
                    DefKind::Extern { methods, .. } => {
                        super::annotation::has_annotation(methods[index].annotations, "assigned_by_or")
                    }
                    _ => false,
                }
            }
            _ => false,
        }
    }

    fn if_statement(&mut self, condition: &'a Expr, then: &'a Statement, otherwise: Option<&'a Statement>) {
        let condition = self.condition(condition);
        if let Operand::Const(c) = &condition {
            if !c.is_zero() {
                self.statement(then);
            } else if let Some(otherwise) = otherwise {
                self.statement(otherwise);
            }
            return;
        }
        let done = self.new_block();
        let then_block = self.new_block();
        let else_block = if otherwise.is_some() { self.new_block() } else { done };
        self.terminate_to(
            Terminator::Branch {
                condition,
                then: then_block,
                otherwise: else_block,
            },
            then_block,
        );
        self.statement(then);
        match otherwise {
            Some(otherwise) => {
                self.terminate_to(Terminator::Goto(done), else_block);
                self.statement(otherwise);
                self.goto(done);
            }
            None => self.goto(done),
        }
    }

    fn switch(&mut self, expression: &'a Expr, cases: &'a [SwitchCase]) {
        let ty = self.ty(expression);
        if let TyKind::ActionRun(_) = self.kind(ty) {
            let Val::Object(Object::Table(table)) = self.expr(expression) else {
                return;
            };
            let positions = table.actions.iter().enumerate().rev();
            let positions: FxHashMap<DefId, usize> = positions.map(|(i, &a)| (a, i)).collect();
            let labels = |s: &mut Self, label: &'a Expr| {
                let def = s.checked.names[label.id.0 as usize]?;
                let &index = positions.get(&def)?;
                Some(weir_ir::Bits::new(32, index as u128))
            };
            self.switch_on(Operand::Var(table.action), cases, labels);
            return;
        }
        let value = match self.expr(expression) {
            Val::Scalar(value) => value,
            Val::Int(v) => Operand::Const(weir_ir::Bits::from_bigint(64, &v)),
            _ => return,
        };
        let int_type = matches!(self.kind(ty), TyKind::Integer);
        self.switch_on(value, cases, |s, label| match s.expr_as(label, ty) {
            Val::Scalar(Operand::Const(c)) => Some(c),
            Val::Int(v) if int_type => Some(weir_ir::Bits::from_bigint(64, &v)),
            _ => None,
        });
    }

    fn switch_on(
        &mut self,
        value: Operand,
        cases: &'a [SwitchCase],
        label: impl Fn(&mut Self, &'a Expr) -> Option<weir_ir::Bits>,
    ) {
        let done = self.new_block();
        let mut targets: Vec<(weir_ir::Bits, weir_ir::BlockId)> = Vec::new();
        let mut default = done;
        let mut bodies = Vec::new();
        let mut waiting: Vec<&'a Expr> = Vec::new();
        for case in cases {
            waiting.push(&case.label);
            let Some(body) = &case.body else { continue };
            let block = self.new_block();
            for l in waiting.drain(..) {
                if matches!(l.kind, ExprKind::Default) {
                    default = block;
                } else if let Some(bits) = label(self, l) {
                    targets.push((bits, block));
                }
            }
            bodies.push((block, body));
        }
        let first = self.new_block();
        self.terminate_to(
            Terminator::Switch {
                value,
                cases: targets,
                default,
            },
            first,
        );
        for (block, body) in bodies {
            self.current = block;
            self.block(body);
            self.terminate_to(Terminator::Goto(done), first);
        }
        self.current = done;
    }

    fn for_loop(&mut self, init: &'a [Statement], condition: &'a Expr, update: &'a [Statement], body: &'a Statement) {
        for s in init {
            self.statement(s);
        }
        let (head, inside, again, done) = (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        self.goto(head);
        let condition = self.condition(condition);
        self.terminate_to(
            Terminator::Branch {
                condition,
                then: inside,
                otherwise: done,
            },
            inside,
        );
        self.flow.loops.push((done, again));
        self.statement(body);
        self.flow.loops.pop();
        self.goto(again);
        for s in update {
            self.statement(s);
        }
        self.terminate_to(Terminator::Goto(head), done);
    }

    fn for_in(&mut self, variable: &'a Expr, collection: &'a Expr, body: &'a Statement) {
        let ty = self.ty(variable);
        let def = self.checked.names[variable.id.0 as usize];
        let declared =
            def.is_some_and(|d| !self.bindings.contains_key(&d) || matches!(&variable.kind, ExprKind::Name { .. }));
        let place = match (&variable.kind, def) {
            (ExprKind::Name { name, .. }, Some(def)) if declared => {
                let place = self.allocate(&name.name, ty, VarKind::Local);
                self.bindings.insert(def, Entity::Place(place.clone()));
                place
            }
            _ => self.place(variable),
        };
        if let ExprKind::Range(low, high) = &collection.kind {
            self.for_in_range(&place, ty, low, high, body);
            return;
        }
        let from = self.ty(collection);
        let value = self.expr(collection);
        let value = self.snapshot(&value);
        let (values, types): (Vec<Val>, Vec<Ty>) = match value {
            Val::Struct(parts) => {
                let types = match self.kind(from) {
                    TyKind::List(element) => vec![element; parts.len()],
                    _ => self.component_types(from),
                };
                (parts.iter().map(|(_, v)| v.clone()).collect(), types)
            }
            Val::Stack { elements, .. } => {
                let element = match self.kind(from) {
                    TyKind::Stack(element, _) => element,
                    _ => ty,
                };
                (elements.to_vec(), vec![element; elements.len()])
            }
            _ => return,
        };
        // Once per element: the elements may differ in shape only by what they were converted from.
        let done = self.new_block();
        for (value, from) in values.into_iter().zip(types) {
            let value = self.convert(value, from, ty);
            self.write(&place, &value);
            let next = self.new_block();
            self.flow.loops.push((done, next));
            self.statement(body);
            self.flow.loops.pop();
            self.goto(next);
        }
        self.goto(done);
    }

    fn for_in_range(&mut self, place: &Place, ty: Ty, low: &'a Expr, high: &'a Expr, body: &'a Statement) {
        let (Val::Scalar(low), Val::Scalar(high)) = (self.expr_as(low, ty), self.expr_as(high, ty)) else {
            return;
        };
        let high = self.copy(high);
        let width = self.width_of(&low);
        let op = if self.is_signed(ty) { Op::LeSigned } else { Op::Le };
        // A counter of its own: the body may assign to the loop variable.
        let counter = self.temporary(width);
        self.program.vars[counter].kind = VarKind::Local;
        self.program.vars[counter].name = "loop counter".into();
        self.set(counter, low);
        let (inside, again, step, done) = (self.new_block(), self.new_block(), self.new_block(), self.new_block());
        let any = self.binary(op, Operand::Var(counter), high.clone(), 1);
        self.terminate_to(
            Terminator::Branch {
                condition: any,
                then: inside,
                otherwise: done,
            },
            inside,
        );
        self.write(place, &Val::Scalar(Operand::Var(counter)));
        self.flow.loops.push((done, again));
        self.statement(body);
        self.flow.loops.pop();
        self.goto(again);
        // The last round is told by equality, so that the largest number of the type works too.
        let last = self.binary(Op::Eq, Operand::Var(counter), high, 1);
        self.terminate_to(
            Terminator::Branch {
                condition: last,
                then: done,
                otherwise: step,
            },
            step,
        );
        let next = self.binary(Op::Add, Operand::Var(counter), constant(width, 1), width);
        self.set(counter, next);
        self.terminate_to(Terminator::Goto(inside), done);
    }
}
