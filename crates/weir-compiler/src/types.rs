//! Types as the checker knows them, interned so that equality is a comparison of indices.

use rustc_hash::FxHashMap;
use std::rc::Rc;
use weir_syntax::ast::Name;

/// An interned type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ty(u32);

/// Identifies a declaration; an index into [`crate::check::Checked::defs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefId(pub u32);

/// The structure of a type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TyKind {
    /// Stands for anything: an error has been reported where it arose.
    Unknown,
    /// `void`
    Void,
    /// `bool`
    Bool,
    /// `string`
    String,
    /// `int`
    Integer,
    /// `error`
    Error,
    /// `match_kind`
    MatchKind,
    /// `bit<W>`
    Bit(u32),
    /// `int<W>`
    Int(u32),
    /// `varbit<W>`
    Varbit(u32),
    /// `tuple<…>`
    Tuple(Rc<[Ty]>),
    /// A list expression: unlike a tuple it becomes a struct, header or stack where one is
    /// expected.
    Listed(Rc<[Ty]>),
    /// `list<T>`
    List(Ty),
    /// A keyset over `T`.
    Set(Ty),
    /// `T[N]`
    Stack(Ty, u32),
    /// A struct, header or header union with its type arguments.
    Struct(DefId, Rc<[Ty]>),
    /// An enum, with or without representation.
    Enum(DefId),
    /// A `type`.
    New(DefId),
    /// An extern type with its type arguments.
    Extern(DefId, Rc<[Ty]>),
    /// A parser type or parser.
    Parser(DefId, Rc<[Ty]>),
    /// A control type or control.
    Control(DefId, Rc<[Ty]>),
    /// A package.
    Package(DefId, Rc<[Ty]>),
    /// A declared type parameter.
    Parameter(u32, Name),
    /// To be inferred.
    Infer(u32),
    /// `{ f = a, … }` without context; `true` with a trailing `...`.
    Fields(Rc<[(Name, Ty)]>, bool),
    /// `{#}` without context.
    InvalidHeader,
    /// `...`
    Dots,
    /// The name of a type used as an expression.
    TypeName(Ty),
    /// A table, an action, a function: something with a declaration that is no value.
    Def(DefId),
    /// What `t.apply()` gives.
    ApplyResult(DefId),
    /// What `t.apply().action_run` gives.
    ActionRun(DefId),
    /// A method of a value, before it is called.
    Method,
}

/// The interner, and what inference has found out.
#[derive(Debug)]
pub struct Types {
    kinds: Vec<TyKind>,
    /// By type: whether something in it is inferred or declared as a parameter.
    open: Vec<bool>,
    index: FxHashMap<TyKind, Ty>,
    solutions: Vec<Option<Ty>>,
    parameters: u32,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident = $index:literal $kind:ident;)*) => {
        impl Types {
            $($(#[$doc])* pub const $name: Ty = Ty($index);)*
        }
        const FIXED: &[TyKind] = &[$(TyKind::$kind),*];
    };
}
fixed! {
    /// [`TyKind::Unknown`]
    UNKNOWN = 0 Unknown;
    /// `void`
    VOID = 1 Void;
    /// `bool`
    BOOL = 2 Bool;
    /// `string`
    STRING = 3 String;
    /// `int`
    INTEGER = 4 Integer;
    /// `error`
    ERROR = 5 Error;
    /// `match_kind`
    MATCH_KIND = 6 MatchKind;
    /// `{#}`
    INVALID_HEADER = 7 InvalidHeader;
    /// `...`
    DOTS = 8 Dots;
    /// A method
    METHOD = 9 Method;
}

impl Default for Types {
    fn default() -> Self {
        let mut types = Types {
            kinds: Vec::new(),
            open: Vec::new(),
            index: FxHashMap::default(),
            solutions: Vec::new(),
            parameters: 0,
        };
        for kind in FIXED {
            types.intern(kind.clone());
        }
        types
    }
}

impl Types {
    /// The type with this structure.
    pub fn intern(&mut self, kind: TyKind) -> Ty {
        if let Some(&ty) = self.index.get(&kind) {
            return ty;
        }
        let ty = Ty(self.kinds.len() as u32);
        self.open.push(match &kind {
            TyKind::Infer(_) | TyKind::Parameter(..) => true,
            TyKind::Tuple(p)
            | TyKind::Listed(p)
            | TyKind::Struct(_, p)
            | TyKind::Extern(_, p)
            | TyKind::Parser(_, p)
            | TyKind::Control(_, p)
            | TyKind::Package(_, p) => p.iter().any(|&t| self.is_open(t)),
            TyKind::List(t) | TyKind::Set(t) | TyKind::Stack(t, _) | TyKind::TypeName(t) => self.is_open(*t),
            TyKind::Fields(fields, _) => fields.iter().any(|(_, t)| self.is_open(*t)),
            _ => false,
        });
        self.kinds.push(kind.clone());
        self.index.insert(kind, ty);
        ty
    }

    /// Whether resolving or substituting may change the type.
    fn is_open(&self, ty: Ty) -> bool {
        self.open[ty.0 as usize]
    }

    /// The structure of a type.
    #[must_use]
    pub fn kind(&self, ty: Ty) -> &TyKind {
        &self.kinds[ty.0 as usize]
    }

    /// `bit<W>`
    pub fn bit(&mut self, width: u32) -> Ty {
        self.intern(TyKind::Bit(width))
    }

    /// `int<W>`
    pub fn int(&mut self, width: u32) -> Ty {
        self.intern(TyKind::Int(width))
    }

    /// `tuple<…>`
    pub fn tuple(&mut self, elements: Vec<Ty>) -> Ty {
        self.intern(TyKind::Tuple(elements.into()))
    }

    /// The type of a list expression.
    pub fn listed(&mut self, elements: Vec<Ty>) -> Ty {
        self.intern(TyKind::Listed(elements.into()))
    }

    /// The tuple that a list expression is where nothing else is expected.
    pub fn settle(&mut self, ty: Ty) -> Ty {
        match self.get(ty).clone() {
            TyKind::Listed(parts) => {
                let parts = parts.iter().map(|&p| self.settle(p)).collect();
                self.tuple(parts)
            }
            _ => ty,
        }
    }

    /// A keyset over `ty`; a keyset of keysets is one keyset.
    pub fn set(&mut self, ty: Ty) -> Ty {
        if matches!(self.kind(ty), TyKind::Set(_) | TyKind::Unknown) {
            ty
        } else {
            self.intern(TyKind::Set(ty))
        }
    }

    /// A type to be inferred.
    pub fn fresh(&mut self) -> Ty {
        self.solutions.push(None);
        self.intern(TyKind::Infer(self.solutions.len() as u32 - 1))
    }

    /// A new declared type parameter.
    pub fn parameter(&mut self, name: Name) -> Ty {
        self.parameters += 1;
        self.intern(TyKind::Parameter(self.parameters, name))
    }

    /// Says what an inferred type is.
    pub fn solve(&mut self, variable: u32, ty: Ty) {
        self.solutions[variable as usize] = Some(ty);
    }

    /// Follows solved inference variables at the top.
    #[must_use]
    pub fn shallow(&self, mut ty: Ty) -> Ty {
        while let TyKind::Infer(v) = self.kind(ty) {
            match self.solutions[*v as usize] {
                Some(next) => ty = next,
                None => break,
            }
        }
        ty
    }

    /// The structure after following solved inference variables at the top.
    #[must_use]
    pub fn get(&self, ty: Ty) -> &TyKind {
        self.kind(self.shallow(ty))
    }

    /// Rebuilds a type with `f` applied to its parts.
    fn map_parts(&mut self, ty: Ty, f: &mut dyn FnMut(&mut Self, Ty) -> Ty) -> Ty {
        let kind = self.kind(ty).clone();
        let mut all = |types: &mut Self, parts: &Rc<[Ty]>| -> Rc<[Ty]> { parts.iter().map(|&p| f(types, p)).collect() };
        let mapped = match &kind {
            TyKind::Tuple(p) => TyKind::Tuple(all(self, p)),
            TyKind::Listed(p) => TyKind::Listed(all(self, p)),
            TyKind::Struct(d, p) => TyKind::Struct(*d, all(self, p)),
            TyKind::Extern(d, p) => TyKind::Extern(*d, all(self, p)),
            TyKind::Parser(d, p) => TyKind::Parser(*d, all(self, p)),
            TyKind::Control(d, p) => TyKind::Control(*d, all(self, p)),
            TyKind::Package(d, p) => TyKind::Package(*d, all(self, p)),
            TyKind::List(t) => TyKind::List(f(self, *t)),
            TyKind::Set(t) => TyKind::Set(f(self, *t)),
            TyKind::Stack(t, n) => TyKind::Stack(f(self, *t), *n),
            TyKind::TypeName(t) => TyKind::TypeName(f(self, *t)),
            TyKind::Fields(fields, dots) => {
                TyKind::Fields(fields.iter().map(|(n, t)| (n.clone(), f(self, *t))).collect(), *dots)
            }
            _ => return ty,
        };
        if mapped == kind { ty } else { self.intern(mapped) }
    }

    /// The type with every solved inference variable replaced.
    pub fn resolve(&mut self, ty: Ty) -> Ty {
        if !self.is_open(ty) {
            return ty;
        }
        let ty = self.shallow(ty);
        self.map_parts(ty, &mut |types, part| types.resolve(part))
    }

    /// The type with declared parameters replaced.
    pub fn substitute(&mut self, ty: Ty, map: &FxHashMap<Ty, Ty>) -> Ty {
        if map.is_empty() || !self.is_open(ty) {
            return ty;
        }
        let ty = self.shallow(ty);
        if let Some(&to) = map.get(&ty) {
            return to;
        }
        self.map_parts(ty, &mut |types, part| types.substitute(part, map))
    }

    /// Whether anything in the type satisfies the predicate.
    pub fn any(&self, ty: Ty, test: &dyn Fn(&TyKind) -> bool) -> bool {
        let kind = self.get(ty);
        if test(kind) {
            return true;
        }
        match kind {
            TyKind::Tuple(p)
            | TyKind::Listed(p)
            | TyKind::Struct(_, p)
            | TyKind::Extern(_, p)
            | TyKind::Parser(_, p)
            | TyKind::Control(_, p)
            | TyKind::Package(_, p) => p.iter().any(|&t| self.any(t, test)),
            TyKind::List(t) | TyKind::Set(t) | TyKind::Stack(t, _) | TyKind::TypeName(t) => self.any(*t, test),
            TyKind::Fields(fields, _) => fields.iter().any(|(_, t)| self.any(*t, test)),
            _ => false,
        }
    }

    /// Everything in the type that satisfies the predicate, outermost first.
    pub fn collect(&self, ty: Ty, test: &dyn Fn(&TyKind) -> bool, to: &mut Vec<Ty>) {
        let ty = self.shallow(ty);
        let kind = self.kind(ty);
        if test(kind) {
            to.push(ty);
            return;
        }
        match kind {
            TyKind::Tuple(p)
            | TyKind::Listed(p)
            | TyKind::Struct(_, p)
            | TyKind::Extern(_, p)
            | TyKind::Parser(_, p)
            | TyKind::Control(_, p)
            | TyKind::Package(_, p) => p.iter().for_each(|&t| self.collect(t, test, to)),
            TyKind::List(t) | TyKind::Set(t) | TyKind::Stack(t, _) | TyKind::TypeName(t) => self.collect(*t, test, to),
            TyKind::Fields(fields, _) => fields.iter().for_each(|(_, t)| self.collect(*t, test, to)),
            _ => {}
        }
    }

    /// Whether the type still has something to be inferred.
    #[must_use]
    pub fn has_infer(&self, ty: Ty) -> bool {
        self.is_open(ty) && self.any(ty, &|k| matches!(k, TyKind::Infer(_)))
    }
}
