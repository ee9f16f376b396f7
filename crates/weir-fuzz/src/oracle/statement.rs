//! Statements.

use super::machine::Machine;
use super::stop::{Eval, unknown};
use super::value::Value;
use num_bigint::BigInt;
use weir_compiler::tools::TyKind;
use weir_syntax::ast::{
    BinaryOp, Block, Declaration, DeclarationKind, Expr, ExprKind, Statement, StatementKind, SwitchCase, Type,
};

/// Rounds of all loops of a packet together, after which it is too much.
const MOST_ROUNDS: u32 = 20_000;

/// How a statement ends.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Flow {
    /// The next one is next.
    Next,
    /// `return`
    Return(Option<Value>),
    /// `break`
    Break,
    /// `continue`
    Continue,
}

impl<'a> Machine<'a> {
    /// Statements in order, until one leaves.
    pub fn statements(&mut self, statements: &'a [Statement]) -> Eval<Flow> {
        for statement in statements {
            match self.statement(statement)? {
                Flow::Next => {}
                flow => return Ok(flow),
            }
        }
        Ok(Flow::Next)
    }

    /// A body with its own `return`.
    pub fn body(&mut self, block: &'a Block) -> Eval<Option<Value>> {
        match self.statements(&block.statements)? {
            Flow::Return(value) => Ok(value),
            Flow::Next | Flow::Break | Flow::Continue => Ok(None),
        }
    }

    fn statement(&mut self, statement: &'a Statement) -> Eval<Flow> {
        match &statement.kind {
            StatementKind::Empty => Ok(Flow::Next),
            StatementKind::Assign {
                target,
                operator,
                value,
            } => self.assign(target, *operator, value).map(|()| Flow::Next),
            StatementKind::Call(call) => self.expr(call).map(|_| Flow::Next),
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => match (self.condition(condition)?, otherwise) {
                (true, _) => self.statement(then),
                (false, Some(otherwise)) => self.statement(otherwise),
                (false, None) => Ok(Flow::Next),
            },
            StatementKind::Block(block) => self.statements(&block.statements),
            StatementKind::Switch { expression, cases } => self.switch(expression, cases),
            StatementKind::Return(None) => Ok(Flow::Return(None)),
            StatementKind::Return(Some(value)) => Ok(Flow::Return(Some(self.expr(value)?))),
            StatementKind::Exit => Err(super::stop::Stop::Exit),
            StatementKind::Break => Ok(Flow::Break),
            StatementKind::Continue => Ok(Flow::Continue),
            StatementKind::For {
                init,
                condition,
                update,
                body,
                ..
            } => {
                self.statements(init)?;
                self.for_loop(condition, update, body)
            }
            StatementKind::ForIn {
                ty,
                variable,
                collection,
                body,
                ..
            } => self.for_in(ty.as_ref(), variable, collection, body),
            StatementKind::Declaration(declaration) => self.declaration(declaration).map(|()| Flow::Next),
        }
    }

    /// A variable gets its initial value, or zero; constants are looked at where they are used.
    pub fn declaration(&mut self, declaration: &'a Declaration) -> Eval<()> {
        let DeclarationKind::Variable(variable) = &declaration.kind else {
            return Ok(());
        };
        let def = self.declared(&variable.name)?;
        let ty = self.written_type(&variable.ty)?;
        let value = match &variable.value {
            Some(value) => self.expr_as(value, ty)?,
            None => self.zero(ty)?,
        };
        self.variables.insert(def, value);
        Ok(())
    }

    /// The l-value first, then the value.
    fn assign(&mut self, target: &'a Expr, operator: Option<BinaryOp>, value: &'a Expr) -> Eval<()> {
        let ty = self.checked.ty(target);
        let place = self.place(target)?;
        let new = match operator {
            None => self.expr_as(value, ty)?,
            Some(op) => {
                let old = self.load(&place)?;
                let given = self.expr(value)?;
                let result = match (op, &old, &given) {
                    (BinaryOp::And, Value::Bool(a), Value::Bool(b)) => Value::Bool(*a && *b),
                    (BinaryOp::Or, Value::Bool(a), Value::Bool(b)) => Value::Bool(*a || *b),
                    _ => self.operate(op, old, ty, given, self.checked.ty(value))?,
                };
                self.convert(result, ty)?
            }
        };
        self.store(&place, new)
    }

    /// The block of the first label that fits, or of those after it if it has none; else that of
    /// `default`.
    fn switch(&mut self, expression: &'a Expr, cases: &'a [SwitchCase]) -> Eval<Flow> {
        let value = self.expr(expression)?;
        let ty = self.checked.ty(expression);
        let mut chosen = None;
        for (at, case) in cases.iter().enumerate() {
            if matches!(case.label.kind, ExprKind::Default) {
                continue;
            }
            let fits = match &value {
                Value::Applied { action, .. } => self.named(&case.label) == Some(*action),
                value => {
                    let label = self.expr_as(&case.label, ty)?;
                    super::operator::binary(BinaryOp::Eq, value.clone(), label).is_some_and(|v| v.is_true())
                }
            };
            if fits {
                chosen = Some(at);
                break;
            }
        }
        let is_default = |case: &SwitchCase| matches!(case.label.kind, ExprKind::Default);
        let Some(at) = chosen.or_else(|| cases.iter().position(is_default)) else {
            return Ok(Flow::Next);
        };
        match cases[at..].iter().find_map(|case| case.body.as_ref()) {
            Some(body) => self.statements(&body.statements),
            None => Ok(Flow::Next),
        }
    }

    /// One round of a loop; `false`: it was the last.
    fn round(&mut self, body: &'a Statement, end: &mut Flow) -> Eval<bool> {
        self.marks.rounds += 1;
        if self.marks.rounds > MOST_ROUNDS {
            return unknown("a loop of very many rounds");
        }
        match self.statement(body)? {
            Flow::Next | Flow::Continue => Ok(true),
            Flow::Break => Ok(false),
            flow @ Flow::Return(_) => {
                *end = flow;
                Ok(false)
            }
        }
    }

    fn for_loop(&mut self, condition: &'a Expr, update: &'a [Statement], body: &'a Statement) -> Eval<Flow> {
        let mut end = Flow::Next;
        while self.condition(condition)? {
            if !self.round(body, &mut end)? {
                break;
            }
            self.statements(update)?;
        }
        Ok(end)
    }

    fn for_in(
        &mut self,
        declared: Option<&Type>,
        variable: &'a Expr,
        collection: &'a Expr,
        body: &'a Statement,
    ) -> Eval<Flow> {
        let ty = self.checked.ty(variable);
        let place = match declared {
            Some(_) => match self.named(variable) {
                Some(def) => {
                    let zero = self.zero(ty)?;
                    self.variables.insert(def, zero);
                    super::place::Place::of(def)
                }
                None => return unknown("a loop variable without a declaration"),
            },
            None => self.place(variable)?,
        };
        let mut end = Flow::Next;
        for value in self.collection(collection, ty)? {
            let value = self.convert(value, ty)?;
            self.store(&place, value)?;
            if !self.round(body, &mut end)? {
                break;
            }
        }
        Ok(end)
    }

    /// What a loop goes over, evaluated once.
    fn collection(&mut self, collection: &'a Expr, ty: weir_compiler::tools::Ty) -> Eval<Vec<Value>> {
        if let ExprKind::Range(low, high) = &collection.kind {
            let (low, high) = (self.expr_as(low, ty)?.number(), self.expr_as(high, ty)?.number());
            let (Some(low), Some(high)) = (low, high) else {
                return unknown("a range of what is no number");
            };
            if &high - &low > BigInt::from(MOST_ROUNDS) {
                return unknown("a loop of very many rounds");
            }
            let mut values = Vec::new();
            let mut at = low;
            while at <= high {
                values.push(match self.kind(ty) {
                    TyKind::Int(_) | TyKind::Bit(_) => self.convert(Value::Integer(at.clone()), ty)?,
                    _ => Value::Integer(at.clone()),
                });
                at += 1;
            }
            return Ok(values);
        }
        match self.expr(collection)? {
            Value::Stack { elements, .. } | Value::Tuple(elements) => Ok(elements),
            Value::Struct(fields) => Ok(fields.into_iter().map(|f| f.1).collect()),
            _ => unknown("a loop over something else"),
        }
    }
}
