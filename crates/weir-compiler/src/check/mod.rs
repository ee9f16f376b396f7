//! The type checker: names, types, calls and constants, and every rule of the language that does not
//! depend on how a generic piece of code is instantiated.
//!
//! [`check`] walks the tree once, in order, because P4 wants names declared before they are used.
//! What it finds out is kept beside the tree in [`Checked`]: the type of each expression, the
//! declaration each name refers to, and for each call what is called and which argument belongs to
//! which parameter. It never stops at a mistake: what cannot be typed gets [`TyKind::Unknown`], which
//! agrees with everything, so that one mistake is reported once.

mod access;
mod argument;
mod block;
mod call;
mod constant;
mod decl;
mod expr;
mod open;
mod operator;
mod signature;
mod statement;
mod table;
mod ty;
mod unify;

use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::{FxHashMap, FxHashSet};
use weir_syntax::ast::{self, Expr, ExprId, Ident, Name};
use weir_syntax::diagnostic::{Diagnostic, Diagnostics};
use weir_syntax::source::Span;

pub use constant::Const;

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
}

impl<'a> Checked<'a> {
    /// A declaration.
    #[must_use]
    pub fn def(&self, id: DefId) -> &Def<'a> {
        &self.defs[id.0 as usize]
    }

    /// The package of the target that `main` is an instance of: it has the name, and parameters for all blocks.
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

/// After so many findings no more names are suggested: each suggestion looks at every name.
const MAX_SUGGESTIONS: usize = 100;

/// How many parts of a type are shown, and how deep.
const SHOWN_PARTS: usize = 16;
const SHOWN_DEPTH: usize = 5;

#[derive(Default)]
struct Scope {
    names: FxHashMap<Name, Vec<DefId>>,
    /// The first declaration of each name and list of parameters, where names may be shared.
    overloads: FxHashMap<(Name, Vec<Name>), DefId>,
    /// A local may not have the name of a parameter of the same function, block or action.
    holds_parameters: bool,
}

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
pub fn check(program: &ast::Program) -> (Checked<'_>, Diagnostics) {
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

    // ---------------------------------------------------------------------------------- scopes

    fn with_scope<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.push(Scope::default());
        let result = f(self);
        self.scopes.pop();
        result
    }

    fn with_place<R>(&mut self, place: Place, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.context.place, place);
        let result = f(self);
        self.context.place = before;
        result
    }

    fn def(&self, id: DefId) -> &Def<'a> {
        &self.info.defs[id.0 as usize]
    }

    fn def_mut(&mut self, id: DefId) -> &mut Def<'a> {
        &mut self.info.defs[id.0 as usize]
    }

    /// Makes a declaration without giving it a name in scope.
    fn new_def(&mut self, name: &'a Ident, annotations: &'a [ast::Annotation], kind: DefKind<'a>) -> DefId {
        let id = DefId(self.info.defs.len() as u32);
        self.info.defs.push(Def {
            name: name.name.clone(),
            span: name.span,
            annotations,
            kind,
        });
        self.info.declared.insert(std::ptr::from_ref(name), id);
        id
    }

    /// Gives a declaration its name in the innermost scope. Functions may share a name as long as no
    /// call could mean either.
    fn bind(&mut self, id: DefId) {
        let (name, span) = (self.def(id).name.clone(), self.def(id).span);
        let depth = self.scopes.len();
        if let Some(other) = self.colliding(&name, id) {
            let before = self.def(other).span;
            self.report(
                Diagnostic::error("duplicate", span, format!("`{name}` is declared twice"))
                    .label(before, "first declared here")
                    .help("give one of them another name"),
            );
            if !matches!(self.def(id).kind, DefKind::Function(_)) {
                return;
            }
        }
        let in_body = matches!(
            self.context.place,
            Place::Function | Place::Action | Place::AbstractMethod | Place::ControlApply
        );
        if in_body && !self.scopes[depth - 1].holds_parameters {
            let parameters = self.scopes.iter().rev().find(|s| s.holds_parameters);
            if let Some(&parameter) = parameters.and_then(|s| s.names.get(&name)).and_then(|d| d.first()) {
                let before = self.def(parameter).span;
                self.report(
                    Diagnostic::error("shadow", span, format!("`{name}` has the name of a parameter"))
                        .label(before, "the parameter")
                        .help("give it another name"),
                );
            }
        }
        let overload = self.parameter_names(id).map(|names| (name.clone(), names));
        let scope = &mut self.scopes[depth - 1];
        scope.names.entry(name).or_default().push(id);
        if let Some(overload) = overload {
            scope.overloads.entry(overload).or_insert(id);
        }
    }

    /// An earlier declaration of the innermost scope whose name a declaration may not share.
    fn colliding(&self, name: &Name, id: DefId) -> Option<DefId> {
        let scope = self.scopes.last()?;
        // All but the first may share the name with each other: they differ in their parameters.
        let &first = scope.names.get(name)?.first()?;
        if !self.may_share_name(first, id) {
            return Some(first);
        }
        let names = self.parameter_names(id)?;
        scope.overloads.get(&(name.clone(), names)).copied()
    }

    /// The names of the parameters by which declarations of one name differ.
    fn parameter_names(&self, id: DefId) -> Option<Vec<Name>> {
        let params = match &self.def(id).kind {
            DefKind::Function(signature) => &signature.params,
            DefKind::Control { constructor, .. } | DefKind::Parser { constructor, .. } => constructor,
            DefKind::BlockType {
                kind: BlockKind::Package,
                params,
                ..
            } => params,
            DefKind::Constant { .. }
            | DefKind::Variable { .. }
            | DefKind::Parameter { .. }
            | DefKind::Alias(_)
            | DefKind::NewType(_)
            | DefKind::Struct { .. }
            | DefKind::Enum { .. }
            | DefKind::Extern { .. }
            | DefKind::Action { .. }
            | DefKind::Table { .. }
            | DefKind::BlockType { .. }
            | DefKind::Instance { .. }
            | DefKind::ValueSet { .. }
            | DefKind::Broken => return None,
        };
        Some(params.iter().map(|p| p.name.name.clone()).collect())
    }

    fn may_share_name(&self, a: DefId, b: DefId) -> bool {
        let differ = |x: &[Param<'a>], y: &[Param<'a>]| {
            x.len() != y.len() || x.iter().zip(y).any(|(p, q)| p.name.name != q.name.name)
        };
        match (&self.def(a).kind, &self.def(b).kind) {
            (DefKind::Function(a), DefKind::Function(b)) => differ(&a.params, &b.params),
            (DefKind::Control { constructor: x, .. }, DefKind::Control { constructor: y, .. })
            | (DefKind::Parser { constructor: x, .. }, DefKind::Parser { constructor: y, .. }) => differ(x, y),
            (
                DefKind::BlockType {
                    kind: BlockKind::Package,
                    params: x,
                    ..
                },
                DefKind::BlockType {
                    kind: BlockKind::Package,
                    params: y,
                    ..
                },
            ) => differ(x, y),
            _ => false,
        }
    }

    fn declare(&mut self, name: &'a Ident, annotations: &'a [ast::Annotation], kind: DefKind<'a>) -> DefId {
        let id = self.new_def(name, annotations, kind);
        self.bind(id);
        id
    }

    /// Everything that a name may mean here: the innermost scope that has it.
    fn lookup(&self, name: &str, absolute: bool) -> Vec<DefId> {
        if absolute {
            return self.scopes[0].names.get(name).cloned().unwrap_or_default();
        }
        for scope in self.scopes.iter().rev() {
            if let Some(defs) = scope.names.get(name) {
                return defs.clone();
            }
        }
        Vec::new()
    }

    /// The name most like `name` that is in scope.
    fn similar_name(&self, name: &str) -> Option<Name> {
        let names = self.scopes.iter().flat_map(|s| s.names.keys());
        self.similar(name, names.map(|n| n.as_ref())).map(Into::into)
    }

    /// The candidate most like `name`, as [`closest`] finds it; not after very many findings.
    fn similar<'n>(&self, name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
        self.suggests().then(|| closest(name, candidates)).flatten()
    }

    /// Whether names are still suggested.
    fn suggests(&self) -> bool {
        self.diagnostics.list().len() <= MAX_SUGGESTIONS
    }

    fn not_found(&mut self, what: &str, name: &Ident) {
        let mut diagnostic = Diagnostic::error(
            "not-found",
            name.span,
            format!("there is no {what} `{}` here", name.name),
        );
        if let Some(like) = self.similar_name(&name.name) {
            diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
        } else if matches!(&*name.name, "packet_in" | "packet_out" | "NoAction" | "verify") {
            diagnostic = diagnostic.help("it is declared in core.p4: add `#include <core.p4>`");
        }
        self.report(diagnostic);
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

/// The candidate most like `name`, if one is close enough to be meant.
pub(crate) fn closest<'n>(name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let limit = name.chars().count() / 3;
    candidates
        .filter(|c| c.len().abs_diff(name.len()) <= limit)
        .map(|c| (weir_syntax::similar::edit_distance(name, c), c))
        .filter(|&(d, _)| d <= limit && d > 0)
        .min()
        .map(|(_, c)| c)
}
