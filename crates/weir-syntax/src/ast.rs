//! The abstract syntax tree of P4_16 (language specification 1.2.5).
//!
//! The tree is what the source says and nothing more: no name is resolved, no constant is folded,
//! no type is computed. Every node carries the [`Span`] it was parsed from. Every expression also
//! carries an [`ExprId`], unique within one [`Program`], so that later phases keep what they find
//! out (types, resolved names) in side tables instead of in the tree.

use num_bigint::BigInt;
use std::sync::Arc;

use crate::source::Span;

/// The text of an identifier. Cheap to clone.
pub type Name = Arc<str>;

/// An identifier and where it stands.
#[derive(Debug, Clone)]
pub struct Ident {
    /// The text.
    pub name: Name,
    /// Where it stands.
    pub span: Span,
}

/// Identifies an expression within one [`Program`]; dense, starting at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// A whole program after preprocessing: the declarations of all included files in order.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Top-level declarations in source order.
    pub declarations: Vec<Declaration>,
    /// One more than the largest [`ExprId`] in the tree.
    pub expr_count: u32,
}

// ------------------------------------------------------------------------------------ annotations

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

// ------------------------------------------------------------------------------------------ types

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

// ----------------------------------------------------------------------------------- declarations

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

// ----------------------------------------------------------------------------------------- tables

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

// ------------------------------------------------------------------------------------- statements

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

// ------------------------------------------------------------------------------------ expressions

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
    /// `C<T>.apply(…)`. A plain name is [`ExprKind::Name`]; the callee of a constructor call `N<T>(…)`
    /// is one, too, with `T` among the type arguments of the [`ExprKind::Call`].
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
    /// `{ a, b }`; in keysets also `(a, b)`. A trailing `...` is the last element, [`ExprKind::Dots`].
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
