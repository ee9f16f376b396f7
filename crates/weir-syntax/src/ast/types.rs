//! Annotations, types and parameters.

use super::*;
use crate::source::Span;
use num_bigint::BigInt;

/// `@name`, `@name(tokens)` or `@name[structured]`; `@pragma name tokens` too.
#[derive(Debug, Clone)]
pub struct Annotation {
    /// The name after `@`.
    pub name: Ident,
    /// What follows the name.
    pub body: AnnotationBody,
    /// The whole annotation.
    pub span: Span,
}

/// What follows the name of an annotation.
#[derive(Debug, Clone)]
pub enum AnnotationBody {
    /// Nothing: `@atomic`.
    Empty,
    /// `(…)`: arbitrary balanced tokens. An empty `()` has no tokens.
    Unstructured(Vec<AnnotationToken>),
    /// `[e, …]`.
    Expressions(Vec<Expr>),
    /// `[k=e, …]`.
    KeyValues(Vec<(Ident, Expr)>),
}

/// One token of an unstructured annotation body.
#[derive(Debug, Clone)]
pub struct AnnotationToken {
    /// The token's text as written; a string literal's value without its quotes and escapes.
    pub text: Name,
    /// Its class.
    pub kind: AnnotationTokenKind,
    /// Where it stands.
    pub span: Span,
}

/// Classes of annotation tokens that tools tell apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationTokenKind {
    /// A string literal.
    String,
    /// An integer literal with its value.
    Integer(BigInt),
    /// An identifier or a keyword.
    Word,
    /// Anything else.
    Punctuation,
}

/// A type as written.
#[derive(Debug, Clone)]
pub struct Type {
    /// What kind of type.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// Kinds of types as written.
#[derive(Debug, Clone)]
pub enum TypeKind {
    /// `bool`
    Bool,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `string`
    String,
    /// `int` (arbitrary precision)
    Integer,
    /// `void`
    Void,
    /// `bit<W>`; a bare `bit` is `bit<1>` and has `None`.
    Bit(Option<Box<Expr>>),
    /// `int<W>`
    Int(Box<Expr>),
    /// `varbit<W>`
    Varbit(Box<Expr>),
    /// `_`: a type the compiler is to infer.
    DontCare,
    /// `N` or `.N`, with type arguments where written: `N<A, B>`.
    Named {
        /// Written with a leading dot: looked up at the top level.
        absolute: bool,
        /// The name.
        name: Ident,
        /// Type arguments; `None` where no `<…>` was written.
        arguments: Option<Vec<Type>>,
    },
    /// `T[N]`: a header stack (or, since 1.2.5, an array).
    Stack(Box<Type>, Box<Expr>),
    /// `tuple<A, B>`
    Tuple(Vec<Type>),
    /// `list<T>`
    List(Box<Type>),
}

/// `in`, `out`, `inout` or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// No direction: a compile-time value, an extern, or control-plane data of an action.
    None,
    /// `in`
    In,
    /// `out`
    Out,
    /// `inout`
    InOut,
}

/// A parameter of anything that has parameters.
#[derive(Debug, Clone)]
pub struct Parameter {
    /// Annotations, `@optional` among them.
    pub annotations: Vec<Annotation>,
    /// Its direction.
    pub direction: Direction,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
    /// The default value.
    pub default: Option<Expr>,
    /// The whole parameter.
    pub span: Span,
}

/// Type parameters: `<T, U>`; empty where none are written.
pub type TypeParameters = Vec<Ident>;

/// A field of a struct, header or header union.
#[derive(Debug, Clone)]
pub struct Field {
    /// Its annotations.
    pub annotations: Vec<Annotation>,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Ident,
}
