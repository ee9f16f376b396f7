//! Declarations, at the top level and in blocks, and the properties of tables.

use super::*;
use crate::source::Span;

/// A declaration, at the top level or inside a parser or control.
#[derive(Debug, Clone)]
pub struct Declaration {
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// What is declared.
    pub kind: DeclarationKind,
    /// The whole declaration.
    pub span: Span,
}

/// Kinds of declarations.
#[derive(Debug, Clone)]
pub enum DeclarationKind {
    /// `const T n = e;`
    Constant(Constant),
    /// `T n;` or `T n = e;` (local to a block).
    Variable(Variable),
    /// `error { A, B }`
    Error(Vec<Ident>),
    /// `match_kind { a, b }`
    MatchKind(Vec<Ident>),
    /// `extern R f<T>(…);`
    ExternFunction(FunctionPrototype),
    /// `extern X<T> { … }`; without a body (`extern X;`-like forward forms) methods are empty.
    ExternType(ExternType),
    /// `action a(…) { … }`
    Action(Action),
    /// `struct S { … }`, `header H { … }`, `header_union U { … }`
    Struct(StructType),
    /// `enum E { … }` or `enum bit<8> E { A = 1, … }`
    Enum(EnumType),
    /// `typedef T N;` or `type T N;`
    Typedef(Typedef),
    /// `parser P<T>(…);`: a parser type.
    ParserType(BlockType),
    /// `control C<T>(…);`: a control type.
    ControlType(BlockType),
    /// `package P<T>(…);`
    PackageType(BlockType),
    /// `parser P(…)(…) { … }`
    Parser(Parser),
    /// `control C(…)(…) { … }`
    Control(Control),
    /// `T(…) n;` with an optional body for abstract methods.
    Instantiation(Instantiation),
    /// `R f<T>(…) { … }`
    Function(Function),
    /// `table t { … }` (in a control).
    Table(Table),
    /// `value_set<T>(n) v;` (in a parser).
    ValueSet(ValueSet),
}

/// `const T n = e;`
#[derive(Debug, Clone)]
pub struct Constant {
    /// Declared type.
    pub ty: Type,
    /// Name.
    pub name: Ident,
    /// Value.
    pub value: Expr,
}

/// `T n = e;`
#[derive(Debug, Clone)]
pub struct Variable {
    /// Declared type.
    pub ty: Type,
    /// Name.
    pub name: Ident,
    /// Initial value.
    pub value: Option<Expr>,
}

/// Result type, name, type parameters and parameters of a function or method.
#[derive(Debug, Clone)]
pub struct FunctionPrototype {
    /// Result type; `None` for constructors.
    pub result: Option<Type>,
    /// Name.
    pub name: Ident,
    /// Type parameters.
    pub type_parameters: TypeParameters,
    /// Parameters.
    pub parameters: Vec<Parameter>,
}

/// `extern X<T> { … }`
#[derive(Debug, Clone)]
pub struct ExternType {
    /// Name.
    pub name: Ident,
    /// Type parameters.
    pub type_parameters: TypeParameters,
    /// Constructors and methods in source order.
    pub methods: Vec<ExternMethod>,
}

/// A constructor (no result type and the extern's name) or method of an extern.
#[derive(Debug, Clone)]
pub struct ExternMethod {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// `abstract`: the instance supplies the body.
    pub is_abstract: bool,
    /// Its prototype.
    pub prototype: FunctionPrototype,
    /// The whole method.
    pub span: Span,
}

/// `action a(…) { … }`
#[derive(Debug, Clone)]
pub struct Action {
    /// Name.
    pub name: Ident,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Body.
    pub body: Block,
}

/// Which of the three aggregate kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StructKind {
    /// `struct`
    Struct,
    /// `header`
    Header,
    /// `header_union`
    HeaderUnion,
}

/// `struct`, `header` or `header_union`.
#[derive(Debug, Clone)]
pub struct StructType {
    /// Which.
    pub kind: StructKind,
    /// Name.
    pub name: Ident,
    /// Type parameters.
    pub type_parameters: TypeParameters,
    /// Fields in order.
    pub fields: Vec<Field>,
}

/// `enum`
#[derive(Debug, Clone)]
pub struct EnumType {
    /// Name.
    pub name: Ident,
    /// Underlying type of a serializable enum.
    pub underlying: Option<Type>,
    /// Members with their values (values only in serializable enums).
    pub members: Vec<EnumMember>,
}

/// A member of an enum.
#[derive(Debug, Clone)]
pub struct EnumMember {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Ident,
    /// `= e`
    pub value: Option<Expr>,
}

/// What a `typedef` or `type` names.
#[derive(Debug, Clone)]
pub struct Typedef {
    /// `true` for `type` (a new type), `false` for `typedef` (an alias).
    pub is_new_type: bool,
    /// The named type; boxed because `typedef struct S {…} T`-like forms wrap a declaration.
    pub ty: TypedefTarget,
    /// The new name.
    pub name: Ident,
}

/// A typedef names a type or declares one in place.
#[derive(Debug, Clone)]
pub enum TypedefTarget {
    /// `typedef T N;`
    Type(Type),
    /// `typedef struct S { … } N;`
    Declaration(Box<Declaration>),
}

/// A parser, control or package type: name, type parameters, parameters.
#[derive(Debug, Clone)]
pub struct BlockType {
    /// Name.
    pub name: Ident,
    /// Type parameters.
    pub type_parameters: TypeParameters,
    /// Run-time parameters (constructor parameters for a package).
    pub parameters: Vec<Parameter>,
}

/// `parser P(…)(…) { … }`
#[derive(Debug, Clone)]
pub struct Parser {
    /// Name, type parameters and run-time parameters.
    pub signature: BlockType,
    /// Constructor parameters.
    pub constructor_parameters: Vec<Parameter>,
    /// Local declarations.
    pub locals: Vec<Declaration>,
    /// States in order.
    pub states: Vec<ParserState>,
}

/// `state s { … transition …; }`
#[derive(Debug, Clone)]
pub struct ParserState {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// Name.
    pub name: Ident,
    /// Statements (declarations are [`StatementKind::Declaration`]).
    pub statements: Vec<Statement>,
    /// Where it goes; `None` where no `transition` was written (goes to `reject`).
    pub transition: Option<Transition>,
    /// The whole state.
    pub span: Span,
}

/// `transition …;`
#[derive(Debug, Clone)]
pub enum Transition {
    /// `transition s;`
    State(Ident),
    /// `transition select(e, …) { k: s; … }`
    Select {
        /// The selected expressions.
        expressions: Vec<Expr>,
        /// Its cases in order.
        cases: Vec<SelectCase>,
        /// `select` … `}`.
        span: Span,
    },
}

/// `k: s;`
#[derive(Debug, Clone)]
pub struct SelectCase {
    /// A keyset: one expression, or a [`ExprKind::List`] for `(a, b)`.
    pub keyset: Expr,
    /// The next state.
    pub state: Ident,
    /// The whole case.
    pub span: Span,
}

/// `control C(…)(…) { … apply { … } }`
#[derive(Debug, Clone)]
pub struct Control {
    /// Name, type parameters and run-time parameters.
    pub signature: BlockType,
    /// Constructor parameters.
    pub constructor_parameters: Vec<Parameter>,
    /// Local declarations: constants, variables, instantiations, actions, tables.
    pub locals: Vec<Declaration>,
    /// `apply { … }`
    pub apply: Block,
}

/// `T(args) n;`, `T<A>(args) n = { … };`
#[derive(Debug, Clone)]
pub struct Instantiation {
    /// The instantiated type.
    pub ty: Type,
    /// Constructor arguments.
    pub arguments: Vec<Argument>,
    /// Instance name.
    pub name: Ident,
    /// Body with the bodies of abstract methods and nested instantiations.
    pub body: Option<Vec<Declaration>>,
}

/// `R f<T>(…) { … }`
#[derive(Debug, Clone)]
pub struct Function {
    /// Prototype.
    pub prototype: FunctionPrototype,
    /// Body.
    pub body: Block,
}

/// `value_set<T>(n) v;`
#[derive(Debug, Clone)]
pub struct ValueSet {
    /// Type of the members.
    pub element: Type,
    /// Capacity.
    pub size: Expr,
    /// Name.
    pub name: Ident,
}

/// `table t { … }`
#[derive(Debug, Clone)]
pub struct Table {
    /// Name.
    pub name: Ident,
    /// Properties in source order.
    pub properties: Vec<TableProperty>,
}

/// A table property.
#[derive(Debug, Clone)]
pub struct TableProperty {
    /// Annotations.
    pub annotations: Vec<Annotation>,
    /// `const` was written before it.
    pub is_const: bool,
    /// Name: `key`, `actions`, `entries`, `default_action`, `size`, …
    pub name: Ident,
    /// Value.
    pub value: TablePropertyValue,
    /// The whole property.
    pub span: Span,
}

/// Values of table properties.
#[derive(Debug, Clone)]
pub enum TablePropertyValue {
    /// `key = { e: kind; … }`
    Key(Vec<KeyElement>),
    /// `actions = { a; b(x); }`
    Actions(Vec<ActionReference>),
    /// `entries = { … }`
    Entries(Vec<TableEntry>),
    /// `p = e;`
    Expression(Expr),
}

/// `e : kind @annotation;`
#[derive(Debug, Clone)]
pub struct KeyElement {
    /// The key.
    pub expression: Expr,
    /// Match kind.
    pub match_kind: Ident,
    /// Annotations after the match kind.
    pub annotations: Vec<Annotation>,
    /// The whole element.
    pub span: Span,
}

/// An element of `actions`.
#[derive(Debug, Clone)]
pub struct ActionReference {
    /// Annotations before it.
    pub annotations: Vec<Annotation>,
    /// `a` or `.a`
    pub absolute: bool,
    /// Action name.
    pub name: Ident,
    /// Bound arguments, where parentheses were written.
    pub arguments: Option<Vec<Argument>>,
    /// The whole reference.
    pub span: Span,
}

/// `const priority = 3 : (k, …) : a(args) @annotation;`
#[derive(Debug, Clone)]
pub struct TableEntry {
    /// `const` was written before this entry.
    pub is_const: bool,
    /// `priority = e:`
    pub priority: Option<Expr>,
    /// One keyset, or a [`ExprKind::List`] for several.
    pub keyset: Expr,
    /// The action.
    pub action: ActionReference,
    /// Annotations after it.
    pub annotations: Vec<Annotation>,
    /// The whole entry.
    pub span: Span,
}
