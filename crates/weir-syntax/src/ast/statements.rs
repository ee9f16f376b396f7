//! Statements.

use super::*;
use crate::source::Span;

/// `{ … }`
#[derive(Debug, Clone)]
pub struct Block {
    /// Annotations before the brace.
    pub annotations: Vec<Annotation>,
    /// Statements and declarations in order.
    pub statements: Vec<Statement>,
    /// Braces included.
    pub span: Span,
}

/// A statement.
#[derive(Debug, Clone)]
pub struct Statement {
    /// What kind.
    pub kind: StatementKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of statements.
#[derive(Debug, Clone)]
pub enum StatementKind {
    /// `;`
    Empty,
    /// `l = e;` or `l op= e;`
    Assign {
        /// The l-value.
        target: Expr,
        /// `Some(op)` for a compound assignment.
        operator: Option<BinaryOp>,
        /// The value.
        value: Expr,
    },
    /// A call used as a statement: the expression is an [`ExprKind::Call`]. `C.apply(…)` of a type
    /// name (direct application) is one too.
    Call(Expr),
    /// `if (c) s else s`
    If {
        /// Condition.
        condition: Expr,
        /// Taken where it holds.
        then: Box<Statement>,
        /// Taken where not.
        otherwise: Option<Box<Statement>>,
    },
    /// `{ … }`
    Block(Block),
    /// `switch (e) { … }`
    Switch {
        /// What is switched on.
        expression: Expr,
        /// Cases in order.
        cases: Vec<SwitchCase>,
    },
    /// `return;` or `return e;`
    Return(Option<Expr>),
    /// `exit;`
    Exit,
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `for (init; cond; update) s`
    For {
        /// Annotations before `for`.
        annotations: Vec<Annotation>,
        /// Initial statements (declarations, assignments, calls).
        init: Vec<Statement>,
        /// Condition.
        condition: Expr,
        /// Updates after each round.
        update: Vec<Statement>,
        /// Body.
        body: Box<Statement>,
    },
    /// `for (T x in e) s` or `for (x in e) s`
    ForIn {
        /// Annotations before `for`.
        annotations: Vec<Annotation>,
        /// Declared type; `None` where an existing l-value `x` is used.
        ty: Option<Type>,
        /// Loop variable (an [`ExprKind::Name`] or another l-value where `ty` is `None`).
        variable: Expr,
        /// A range, list or stack.
        collection: Expr,
        /// Body.
        body: Box<Statement>,
    },
    /// A constant, variable or instantiation (an action or table here is a checker's error).
    Declaration(Box<Declaration>),
}

/// A case of a `switch`.
#[derive(Debug, Clone)]
pub struct SwitchCase {
    /// `default` is [`ExprKind::Default`].
    pub label: Expr,
    /// `None` falls through to the next case's block.
    pub body: Option<Block>,
    /// The whole case.
    pub span: Span,
}
