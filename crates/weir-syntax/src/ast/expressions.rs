//! Expressions and operators.

use super::*;
use crate::source::Span;
use num_bigint::BigInt;

/// An argument of a call, positional or named.
#[derive(Debug, Clone)]
pub struct Argument {
    /// `n = …`
    pub name: Option<Ident>,
    /// The value; [`ExprKind::Default`] is never here, [`ExprKind::DontCare`] is `_`.
    pub value: Expr,
    /// The whole argument.
    pub span: Span,
}

/// An expression.
#[derive(Debug, Clone)]
pub struct Expr {
    /// Its identity in side tables.
    pub id: ExprId,
    /// What kind.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of expressions.
#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `true`, `false`
    Bool(bool),
    /// An integer literal.
    Int {
        /// Its value; literals are never negative, but `4s15` has the value 15 here.
        value: BigInt,
        /// `8w…` is `Some((8, false))`, `8s…` is `Some((8, true))`.
        width: Option<(u32, bool)>,
        /// Base it was written in: 2, 8, 10 or 16.
        base: u32,
    },
    /// A string literal's value.
    String(Name),
    /// `this`
    This,
    /// `n` or `.n`
    Name {
        /// Written with a leading dot.
        absolute: bool,
        /// The name.
        name: Ident,
    },
    /// A type where an expression is expected: `error` in `error.NoMatch`, `C<T>` in
    /// `C<T>.apply(…)`. A plain name is [`ExprKind::Name`]; the callee of a constructor call
    /// `N<T>(…)` is one, too, with `T` among the type arguments of the [`ExprKind::Call`].
    Type(Type),
    /// `e[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `e[h:l]`
    Slice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e[b+:w]`
    PlusSlice(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e.m`
    Member(Box<Expr>, Ident),
    /// `-e`, `+e`, `~e`, `!e`
    Unary(UnaryOp, Box<Expr>),
    /// `a op b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `(T) e`
    Cast(Box<Type>, Box<Expr>),
    /// `{ a, b }`; in keysets also `(a, b)`. A trailing `...` is the last element,
    /// [`ExprKind::Dots`].
    List(Vec<Expr>),
    /// `{ f = a, … }` with `true` for a trailing `...`.
    Struct(Vec<(Ident, Expr)>, bool),
    /// `{#}`
    InvalidHeader,
    /// `f<T>(args)`; constructor calls too.
    Call {
        /// What is called.
        callee: Box<Expr>,
        /// `<…>`, empty where not written.
        type_arguments: Vec<Type>,
        /// Arguments.
        arguments: Vec<Argument>,
    },
    /// `a &&& b` (keysets only)
    Mask(Box<Expr>, Box<Expr>),
    /// `a .. b` (keysets and `for` only)
    Range(Box<Expr>, Box<Expr>),
    /// `default` (keysets and switch labels)
    Default,
    /// `_` (keysets and arguments)
    DontCare,
    /// `...` (initialisers)
    Dots,
    /// Something that did not parse; an error has been reported.
    Error,
}

/// Unary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `-`
    Negate,
    /// `+`
    Plus,
    /// `~`
    Complement,
    /// `!`
    Not,
}

/// Binary operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `|+|`
    AddSat,
    /// `|-|`
    SubSat,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `++`
    Concat,
}
