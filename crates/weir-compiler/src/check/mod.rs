//! The type checker: names, types, calls and constants, and every rule of the language that does
//! not depend on how a generic piece of code is instantiated.
//!
//! [`check`] walks the tree once, in order, because P4 wants names declared before they are used.
//! What it finds out is kept beside the tree in [`Checked`]: the type of each expression, the
//! declaration each name refers to, and for each call what is called and which argument belongs to
//! which parameter. It never stops at a mistake: what cannot be typed gets [`TyKind::Unknown`],
//! which agrees with everything, so that one mistake is reported once.

mod access;
mod argument;
mod block;
mod call;
mod constant;
mod decl;
mod expr;
mod open;
mod operator;
mod scope;
mod signature;
mod statement;
mod table;
mod ty;
mod unify;

use crate::cancellation::Cancellation;
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{self, Expr, ExprId, Ident, Name};
use weir_syntax::diagnostic::{Diagnostic, Diagnostics};
use weir_syntax::source::Span;

pub use constant::Const;
use scope::Scope;
pub(crate) use scope::closest;

/// What the checker knows of one declaration.
#[derive(Debug)]
pub struct Def<'a> {
    /// Its name.
    pub name: Name,
    /// Where the name stands.
    pub span: Span,
    /// Its annotations.
    pub annotations: &'a [ast::Annotation],
    /// What it is.
    pub kind: DefKind<'a>,
}

/// Kinds of declarations.
#[derive(Debug)]
#[allow(missing_docs, reason = "fields are what the variant's text names")]
pub enum DefKind<'a> {
    /// A constant. Its value is known unless it depends on a constructor parameter.
    Constant {
        ty: Ty,
        value: Option<Const>,
        expr: &'a Expr,
    },
    /// A variable.
    Variable { ty: Ty },
    /// A parameter.
    Parameter {
        ty: Ty,
        direction: ast::Direction,
        is_constructor: bool,
    },
    /// A type parameter, a `typedef`.
    Alias(Ty),
    /// A `type`.
    NewType(Ty),
    /// A struct, header or header union.
    Struct {
        kind: ast::StructKind,
        parameters: Vec<Ty>,
        fields: Vec<FieldDef<'a>>,
    },
    /// An enum.
    Enum {
        underlying: Option<Ty>,
        members: Vec<(Ident, Option<Const>)>,
    },
    /// An extern type.
    Extern {
        parameters: Vec<Ty>,
        methods: Vec<Signature<'a>>,
    },
    /// A function, with or without body.
    Function(Signature<'a>),
    /// An action.
    Action {
        signature: Signature<'a>,
        ast: &'a ast::Action,
    },
    /// A table; the actions it may run, in order.
    Table {
        ast: &'a ast::Table,
        actions: Vec<TableActionDef<'a>>,
    },
    /// A parser type, control type or package.
    BlockType {
        kind: BlockKind,
        parameters: Vec<Ty>,
        params: Vec<Param<'a>>,
    },
    /// A parser.
    Parser {
        parameters: Vec<Ty>,
        params: Vec<Param<'a>>,
        constructor: Vec<Param<'a>>,
        ast: &'a ast::Parser,
    },
    /// A control.
    Control {
        parameters: Vec<Ty>,
        params: Vec<Param<'a>>,
        constructor: Vec<Param<'a>>,
        ast: &'a ast::Control,
    },
    /// An instance of an extern, parser, control or package.
    Instance { ty: Ty, ast: &'a ast::Instantiation },
    /// A parser value set.
    ValueSet { element: Ty },
    /// Declared wrongly; an error has been reported.
    Broken,
}

/// Which kind of block type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    /// `parser`
    Parser,
    /// `control`
    Control,
    /// `package`
    Package,
}

/// A field.
#[derive(Debug, Clone)]
pub struct FieldDef<'a> {
    /// Its name.
    pub name: Ident,
    /// Its type, in terms of the struct's parameters.
    pub ty: Ty,
    /// Its annotations.
    pub annotations: &'a [ast::Annotation],
}

/// A parameter.
#[derive(Debug, Clone)]
pub struct Param<'a> {
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: Ty,
    /// Its direction.
    pub direction: ast::Direction,
    /// `@optional`
    pub optional: bool,
    /// Its default.
    pub default: Option<&'a Expr>,
    /// Its annotations.
    pub annotations: &'a [ast::Annotation],
    /// The parameter itself as a declaration.
    pub def: DefId,
}

impl Param<'_> {
    /// Whether a call may leave it out.
    #[must_use]
    pub fn may_be_omitted(&self) -> bool {
        self.optional || self.default.is_some()
    }
}

/// What is known of a function, method or constructor without looking into it.
#[derive(Debug, Clone)]
pub struct Signature<'a> {
    /// Its name.
    pub name: Ident,
    /// Type parameters.
    pub parameters: Vec<Ty>,
    /// Parameters.
    pub params: Vec<Param<'a>>,
    /// Result; for a constructor the extern's type.
    pub result: Ty,
    /// What it is.
    pub kind: FunctionKind<'a>,
    /// Its annotations.
    pub annotations: &'a [ast::Annotation],
}

/// Kinds of functions.
#[derive(Debug, Clone, Copy)]
pub enum FunctionKind<'a> {
    /// An extern function.
    Extern,
    /// A function with a body.
    Body(&'a ast::Function),
    /// A method of an extern.
    Method {
        /// Instances give its body.
        is_abstract: bool,
    },
    /// A constructor of an extern.
    Constructor,
    /// An action.
    Action,
}

/// An element of a table's `actions`.
#[derive(Debug, Clone, Copy)]
pub struct TableActionDef<'a> {
    /// The action.
    pub action: DefId,
    /// How the table refers to it; `None` for an implied `NoAction`.
    pub reference: Option<&'a ast::ActionReference>,
}

/// What a call calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// A function (extern or not).
    Function(DefId),
    /// An action.
    Action(DefId),
    /// A method of an extern: the extern type and the index of the method.
    Method(DefId, usize),
    /// `apply` of a table.
    TableApply(DefId),
    /// `apply` of a parser or control, or of its type.
    BlockApply,
    /// A constructor of an extern (with its index), parser, control or package.
    Constructor(Option<usize>),
    /// A method of a header, stack, union or type.
    Builtin(Builtin),
}

/// Methods of the language itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// `h.isValid()`
    IsValid,
    /// `h.setValid()`
    SetValid,
    /// `h.setInvalid()`
    SetInvalid,
    /// `s.push_front(n)`
    PushFront,
    /// `s.pop_front(n)`
    PopFront,
    /// `e.minSizeInBits()`
    MinSizeInBits,
    /// `e.minSizeInBytes()`
    MinSizeInBytes,
    /// `e.maxSizeInBits()`
    MaxSizeInBits,
    /// `e.maxSizeInBytes()`
    MaxSizeInBytes,
}

/// What the checker knows of a call.
#[derive(Debug, Clone)]
pub struct CallInfo {
    /// What is called.
    pub callee: Callee,
    /// Type arguments of the function, method or constructed type.
    pub type_arguments: Vec<Ty>,
    /// For each parameter the argument's index, `None` where it is omitted.
    pub arguments: Vec<Option<usize>>,
    /// Of a method: the type arguments of the instance as this call sees them. Where the program
    /// has written `_`,
    /// each call has its own.
    pub receiver: Vec<Ty>,
}

/// Positions by name.
pub(crate) type Positions = FxHashMap<Name, usize>;

/// What the checker found out.
pub struct Checked<'a> {
    /// The types.
    pub types: Types,
    /// The declarations.
    pub defs: Vec<Def<'a>>,
    /// The type of each expression, by [`ExprId`].
    pub expr_types: Vec<Ty>,
    /// The declaration that a name or member expression refers to, by [`ExprId`].
    pub names: Vec<Option<DefId>>,
    /// The calls, by the call expression.
    pub calls: FxHashMap<ExprId, CallInfo>,
    /// The type that each written type means.
    pub written_types: FxHashMap<*const ast::Type, Ty>,
    /// The declaration made by each declaring identifier (by the address of its [`Ident`]).
    pub declared: FxHashMap<*const Ident, DefId>,
    /// The action each action reference refers to.
    pub action_references: FxHashMap<*const ast::ActionReference, DefId>,
    /// Declared errors.
    pub errors: Vec<Ident>,
    /// Declared match kinds.
    pub match_kinds: Vec<Ident>,
    /// Where a struct or header has each field, an enum each member.
    pub(crate) positions: FxHashMap<DefId, Positions>,
    /// Where `errors` has each error.
    error_positions: Positions,
    /// Where `match_kinds` has each match kind.
    match_kind_positions: Positions,
    /// Types of constructor calls of instantiations without inference left, by instantiation.
    pub instantiations: FxHashMap<*const ast::Instantiation, CallInfo>,
    /// `main`, if there is one.
    pub main: Option<DefId>,
    /// Top-level names.
    pub globals: FxHashMap<Name, Vec<DefId>>,
    /// Names that nothing declares, and where the error about each is.
    pub missing: Vec<(Name, Span)>,
}

impl<'a> Checked<'a> {
    /// A declaration.
    #[must_use]
    pub fn def(&self, id: DefId) -> &Def<'a> {
        &self.defs[id.0 as usize]
    }

    /// The package of the target that `main` is an instance of: it has the name, and parameters for
    /// all blocks.
    #[must_use]
    pub fn main_package(&self, target: &weir_ir::target::Target) -> Option<&'static weir_ir::target::PackageSpec> {
        let DefKind::Instance { ty, .. } = &self.def(self.main?).kind else {
            return None;
        };
        let TyKind::Package(def, _) = self.types.get(*ty) else {
            return None;
        };
        let def = self.def(*def);
        let DefKind::BlockType { params, .. } = &def.kind else {
            return None;
        };
        let has = |name: &str| params.iter().any(|p| &*p.name.name == name);
        target.packages.iter().find(|package| {
            let mut blocks = package.blocks.iter();
            &*def.name == package.name && blocks.all(|b| b.optional || b.path.first().is_some_and(|p| has(p)))
        })
    }

    /// The type of an expression.
    #[must_use]
    pub fn ty(&self, expr: &Expr) -> Ty {
        self.expr_types
            .get(expr.id.0 as usize)
            .copied()
            .unwrap_or(Types::UNKNOWN)
    }
}

/// How many parts of a type are shown, and how deep.
const SHOWN_PARTS: usize = 16;
const SHOWN_DEPTH: usize = 5;

/// What the code being checked is part of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    TopLevel,
    ParserLocals,
    ParserState,
    ControlLocals,
    ControlApply,
    Action,
    Function,
    AbstractMethod,
    TableKey,
    TableActions,
    TableProperty,
}

struct Context {
    place: Place,
    /// Inside a parser: the same names mean more (`next`, `verify`, value sets).
    in_parser: bool,
    result: Option<Ty>,
    loops: u32,
}

pub(crate) struct Checker<'a> {
    info: Checked<'a>,
    diagnostics: Diagnostics,
    scopes: Vec<Scope>,
    context: Context,
    /// Tables being declared, so that a table cannot refer to itself.
    current_table: Option<DefId>,
    /// The expression of a `switch`, the one place where `action_run` may stand.
    switch_expression: Option<ExprId>,
    /// Type of `this` in an abstract method's body.
    this_type: Option<Ty>,
    /// The extern type being declared: its methods may not mention it.
    declaring: Option<DefId>,
    /// Structs whose fields have been checked with their type arguments put in.
    specialised: FxHashSet<Ty>,
    /// Sizes of types that have been asked for.
    extents: FxHashMap<Ty, ty::Extent>,
    /// Inference variables that stand for type arguments nobody wrote.
    implied: FxHashSet<Ty>,
    /// What stands for `_` as a type argument.
    open: open::OpenTypes,
}

/// Checks a program.
pub fn check<'a>(program: &'a ast::Program, cancellation: &Cancellation) -> (Checked<'a>, Diagnostics) {
    let count = program.expr_count as usize;
    let mut checker = Checker {
        info: Checked {
            types: Types::default(),
            defs: Vec::new(),
            expr_types: vec![Types::UNKNOWN; count],
            names: vec![None; count],
            calls: FxHashMap::default(),
            written_types: FxHashMap::default(),
            declared: FxHashMap::default(),
            action_references: FxHashMap::default(),
            errors: Vec::new(),
            match_kinds: Vec::new(),
            positions: FxHashMap::default(),
            error_positions: Positions::default(),
            match_kind_positions: Positions::default(),
            instantiations: FxHashMap::default(),
            main: None,
            globals: FxHashMap::default(),
            missing: Vec::new(),
        },
        diagnostics: Diagnostics::default(),
        scopes: vec![Scope::default()],
        context: Context {
            place: Place::TopLevel,
            in_parser: false,
            result: None,
            loops: 0,
        },
        current_table: None,
        switch_expression: None,
        this_type: None,
        extents: FxHashMap::default(),
        implied: FxHashSet::default(),
        open: open::OpenTypes::default(),
        declaring: None,
        specialised: FxHashSet::default(),
    };
    for declaration in &program.declarations {
        if cancellation.is_cancelled() {
            break;
        }
        checker.top_level(declaration);
    }
    checker.finish();
    let Checker {
        mut info,
        diagnostics,
        mut scopes,
        ..
    } = checker;
    info.globals = scopes.swap_remove(0).names;
    (info, diagnostics)
}

impl<'a> Checker<'a> {
    // ------------------------------------------------------------------------------- reporting

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn type_error(&mut self, span: Span, message: impl Into<String>) -> Ty {
        self.error("type-error", span, message);
        Types::UNKNOWN
    }

    // ----------------------------------------------------------------------------------- types

    fn kind(&self, ty: Ty) -> TyKind {
        self.info.types.get(ty).clone()
    }

    fn is_unknown(&self, ty: Ty) -> bool {
        matches!(self.info.types.get(ty), TyKind::Unknown)
    }

    /// A type as a user would write it.
    fn show(&self, ty: Ty) -> String {
        self.info.show(ty)
    }

    fn finish(&mut self) {
        self.close_types();
        if let Some(mains) = self.scopes[0].names.get("main").cloned() {
            for main in mains {
                let span = self.def(main).span;
                match &self.def(main).kind {
                    DefKind::Instance { ty, .. } if matches!(self.kind(*ty), TyKind::Package(..) | TyKind::Unknown) => {
                        self.info.main = Some(main);
                    }
                    DefKind::Broken | DefKind::Function(_) => {}
                    _ => self.error("invalid", span, "`main` must be an instance of a package"),
                }
            }
        }
    }
}

impl Checked<'_> {
    /// A type as a user would write it.
    #[must_use]
    pub fn show(&self, ty: Ty) -> String {
        self.show_part(ty, 0)
    }

    /// The parts of large types are left out: nobody reads them.
    fn show_part(&self, ty: Ty, depth: usize) -> String {
        if depth > SHOWN_DEPTH {
            return "…".into();
        }
        let show = |ty: Ty| self.show_part(ty, depth + 1);
        let list = |parts: &[Ty]| {
            let mut shown: Vec<String> = parts.iter().take(SHOWN_PARTS).map(|&p| show(p)).collect();
            if parts.len() > SHOWN_PARTS {
                shown.push("…".into());
            }
            shown.join(", ")
        };
        let named = |def: DefId, parts: &[Ty]| {
            let name = &self.def(def).name;
            if parts.is_empty() {
                name.to_string()
            } else {
                format!("{name}<{}>", list(parts))
            }
        };
        match self.types.get(ty) {
            TyKind::Unknown => "?".into(),
            TyKind::Void => "void".into(),
            TyKind::Bool => "bool".into(),
            TyKind::String => "string".into(),
            TyKind::Integer => "int".into(),
            TyKind::Error => "error".into(),
            TyKind::MatchKind => "match_kind".into(),
            TyKind::Bit(w) => format!("bit<{w}>"),
            TyKind::Int(w) => format!("int<{w}>"),
            TyKind::Varbit(w) => format!("varbit<{w}>"),
            TyKind::Tuple(p) => format!("tuple<{}>", list(p)),
            TyKind::Listed(p) if p.is_empty() => "{}".into(),
            TyKind::Listed(p) => format!("{{ {} }}", list(p)),
            TyKind::List(t) => format!("list<{}>", show(*t)),
            TyKind::Set(t) => format!("set<{}>", show(*t)),
            TyKind::Stack(t, n) => format!("{}[{n}]", show(*t)),
            TyKind::Struct(d, p) => {
                let what = match &self.def(*d).kind {
                    DefKind::Struct {
                        kind: ast::StructKind::Header,
                        ..
                    } => "header",
                    DefKind::Struct {
                        kind: ast::StructKind::HeaderUnion,
                        ..
                    } => "header_union",
                    _ => "struct",
                };
                format!("{what} {}", named(*d, p))
            }
            TyKind::Enum(d) => format!("enum {}", self.def(*d).name),
            TyKind::New(d) => self.def(*d).name.to_string(),
            TyKind::Extern(d, p) => format!("extern {}", named(*d, p)),
            TyKind::Parser(d, p) => format!("parser {}", named(*d, p)),
            TyKind::Control(d, p) => format!("control {}", named(*d, p)),
            TyKind::Package(d, p) => format!("package {}", named(*d, p)),
            TyKind::Parameter(_, n) => n.to_string(),
            TyKind::Infer(_) => "_".into(),
            TyKind::Fields(fields, dots) => {
                let mut parts: Vec<String> = fields
                    .iter()
                    .take(SHOWN_PARTS)
                    .map(|(n, t)| format!("{n} = {}", show(*t)))
                    .collect();
                if *dots || fields.len() > SHOWN_PARTS {
                    parts.push("...".into());
                }
                format!("{{ {} }}", parts.join(", "))
            }
            TyKind::InvalidHeader => "{#}".into(),
            TyKind::Dots => "...".into(),
            TyKind::TypeName(t) => format!("the type {}", show(*t)),
            TyKind::Def(d) => {
                let what = match &self.def(*d).kind {
                    DefKind::Table { .. } => "table",
                    DefKind::Action { .. } => "action",
                    DefKind::Function(_) => "function",
                    DefKind::ValueSet { .. } => "value_set",
                    _ => "declaration",
                };
                format!("{what} {}", self.def(*d).name)
            }
            TyKind::ApplyResult(d) => format!("result of {}.apply()", self.def(*d).name),
            TyKind::ActionRun(d) => format!("action_run of {}", self.def(*d).name),
            TyKind::Method => "method".into(),
        }
    }
}
