//! Agreement of types: unification, and the implicit conversions of the language.

use super::open::Says;
use super::{BlockKind, Checker, DefKind, Param};
use crate::types::{DefId, Ty, TyKind, Types};
use rustc_hash::FxHashMap;
use weir_syntax::ast;

impl<'a> Checker<'a> {
    /// Fields of a struct type with its type arguments put in.
    pub(super) fn fields_of(&mut self, def: DefId, arguments: &[Ty]) -> Vec<(ast::Name, Ty)> {
        self.info.fields_of(def, arguments)
    }

    pub(super) fn struct_kind(&self, ty: Ty) -> Option<ast::StructKind> {
        self.info.struct_kind(ty)
    }

    /// The run-time parameters of a parser or control type with its type arguments put in.
    pub(super) fn block_params(&mut self, def: DefId, arguments: &[Ty]) -> Option<Vec<Param<'a>>> {
        let (parameters, params) = match &self.def(def).kind {
            DefKind::BlockType { parameters, params, .. }
            | DefKind::Parser { parameters, params, .. }
            | DefKind::Control { parameters, params, .. } => (parameters.clone(), params.clone()),
            _ => return None,
        };
        let map: FxHashMap<Ty, Ty> = parameters.into_iter().zip(arguments.iter().copied()).collect();
        Some(
            params
                .into_iter()
                .map(|mut p| {
                    p.ty = self.info.types.substitute(p.ty, &map);
                    p
                })
                .collect(),
        )
    }

    /// Makes two types equal, solving what is to be inferred; false where they cannot be.
    pub(super) fn unify(&mut self, a: Ty, b: Ty) -> bool {
        let (a, b) = (self.info.types.shallow(a), self.info.types.shallow(b));
        if a == b {
            return true;
        }
        let (ka, kb) = (self.info.types.kind(a).clone(), self.info.types.kind(b).clone());
        match (&ka, &kb) {
            (TyKind::Unknown, _) | (_, TyKind::Unknown) => true,
            (TyKind::Infer(v), _) => {
                let b = self.info.types.settle(b);
                self.bind_variable(*v, b)
            }
            (_, TyKind::Infer(v)) => {
                let a = self.info.types.settle(a);
                self.bind_variable(*v, a)
            }
            (TyKind::Listed(_), _) | (_, TyKind::Listed(_)) => {
                let (a, b) = (self.info.types.settle(a), self.info.types.settle(b));
                self.unify(a, b)
            }
            (TyKind::Tuple(p), TyKind::Tuple(q)) => self.unify_all(p, q),
            (TyKind::Struct(d, p), TyKind::Struct(e, q)) | (TyKind::Extern(d, p), TyKind::Extern(e, q)) => {
                d == e && self.unify_all(p, q)
            }
            (TyKind::Stack(t, n), TyKind::Stack(u, m)) => n == m && self.unify(*t, *u),
            (TyKind::List(t), TyKind::List(u)) | (TyKind::Set(t), TyKind::Set(u)) => self.unify(*t, *u),
            (TyKind::Parser(d, p), TyKind::Parser(e, q)) | (TyKind::Control(d, p), TyKind::Control(e, q)) => {
                self.unify_blocks(*d, p, *e, q)
            }
            (TyKind::Package(d, p), TyKind::Package(e, q)) => d == e && self.unify_all(p, q),
            _ => false,
        }
    }

    fn unify_all(&mut self, a: &[Ty], b: &[Ty]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(&x, &y)| self.unify(x, y))
    }

    fn bind_variable(&mut self, variable: u32, ty: Ty) -> bool {
        if self
            .info
            .types
            .any(ty, &|k| matches!(k, TyKind::Infer(v) if *v == variable))
        {
            return false;
        }
        let open = self.info.types.intern(TyKind::Infer(variable));
        match self.says_of_open(open, ty) {
            Says::Type => {}
            Says::Nothing => return true,
            Says::Mismatch => return false,
        }
        self.join_open(open, ty);
        self.info.types.solve(variable, ty);
        true
    }

    /// A parser or control agrees with a parser or control type where their parameters do.
    fn unify_blocks(&mut self, d: DefId, p: &[Ty], e: DefId, q: &[Ty]) -> bool {
        if d == e {
            return self.unify_all(p, q);
        }
        let is_type =
            |kind: &DefKind<'_>| matches!(kind, DefKind::BlockType { kind, .. } if *kind != BlockKind::Package);
        if !is_type(&self.def(d).kind) && !is_type(&self.def(e).kind) {
            return false;
        }
        let (Some(x), Some(y)) = (self.block_params(d, p), self.block_params(e, q)) else {
            return false;
        };
        let longer = if x.len() > y.len() { &x } else { &y };
        let common = x.len().min(y.len());
        longer[common..].iter().all(Param::may_be_omitted)
            && x.iter()
                .zip(&y)
                .all(|(a, b)| a.direction == b.direction && self.unify(a.ty, b.ty))
    }

    /// Whether a value of type `from` may stand where one of type `to` is expected: they are equal,
    /// or the language converts implicitly.
    pub(super) fn coerces(&mut self, from: Ty, to: Ty) -> bool {
        let (from, to) = (self.info.types.shallow(from), self.info.types.shallow(to));
        if from == to {
            return true;
        }
        let (f, t) = (self.info.types.kind(from).clone(), self.info.types.kind(to).clone());
        match (&f, &t) {
            (TyKind::Dots, TyKind::List(_) | TyKind::Extern(..)) => false,
            (TyKind::Unknown | TyKind::Dots, _) | (_, TyKind::Unknown) => true,
            (TyKind::Infer(_), _) | (_, TyKind::Infer(_)) => self.unify(from, to),
            (TyKind::Integer, TyKind::Bit(_) | TyKind::Int(_)) => true,
            // A number of known width stands for itself where an `int` is expected.
            (TyKind::Bit(_) | TyKind::Int(_), TyKind::Integer) => true,
            (TyKind::Integer, TyKind::New(_)) => {
                let underlying = self.info.underlying(to);
                matches!(self.info.types.get(underlying), TyKind::Bit(_) | TyKind::Int(_))
            }
            (TyKind::Enum(d), _) if from != to => match &self.def(*d).kind {
                DefKind::Enum {
                    underlying: Some(u), ..
                } => {
                    let u = *u;
                    u == to
                        || (matches!(t, TyKind::Set(_)) && self.coerces(u, to))
                        || matches!(t, TyKind::Set(inner) if inner == from)
                }
                _ => matches!(t, TyKind::Set(inner) if inner == from),
            },
            (TyKind::Set(a), TyKind::Set(b)) => self.coerces(*a, *b),
            (_, TyKind::Set(b)) => self.coerces(from, *b),
            (TyKind::Tuple(parts) | TyKind::Listed(parts), TyKind::Tuple(to) | TyKind::Listed(to)) => {
                let dots = self.ends_in_dots(parts);
                let given = parts.len() - usize::from(dots);
                (if dots { given <= to.len() } else { given == to.len() })
                    && parts
                        .iter()
                        .take(given)
                        .zip(to.iter())
                        .all(|(&a, &b)| self.coerces(a, b))
            }
            (TyKind::Listed(parts), TyKind::Struct(def, arguments)) => {
                if self.struct_kind(to) == Some(ast::StructKind::HeaderUnion) {
                    return false;
                }
                let fields = self.fields_of(*def, arguments);
                let dots = self.ends_in_dots(parts);
                let given = parts.len() - usize::from(dots);
                (if dots {
                    given <= fields.len()
                } else {
                    given == fields.len()
                }) && parts
                    .iter()
                    .take(given)
                    .zip(&fields)
                    .all(|(&a, (_, b))| self.coerces(a, *b))
            }
            (TyKind::Listed(parts) | TyKind::Tuple(parts), TyKind::List(element)) => {
                parts.iter().all(|&p| self.coerces(p, *element))
            }
            (TyKind::Listed(parts), TyKind::Stack(element, size)) => {
                let dots = self.ends_in_dots(parts);
                let given = parts.len() - usize::from(dots);
                (if dots {
                    given <= *size as usize
                } else {
                    given == *size as usize
                }) && parts.iter().take(given).all(|&p| self.coerces(p, *element))
            }
            (TyKind::Fields(given, dots), TyKind::Struct(def, arguments)) => {
                let count = self.info.positions.get(def).map_or(0, FxHashMap::len);
                given.iter().all(|(name, ty)| {
                    let field = self.info.field(*def, arguments, name);
                    field.is_some_and(|(_, field)| self.coerces(*ty, field))
                }) && (*dots || given.len() == count)
            }
            (TyKind::InvalidHeader, TyKind::Struct(..)) => {
                matches!(
                    self.struct_kind(to),
                    Some(ast::StructKind::Header | ast::StructKind::HeaderUnion)
                )
            }
            (TyKind::List(a), TyKind::List(b)) => self.coerces(*a, *b),
            _ => self.unify(from, to),
        }
    }

    pub(super) fn ends_in_dots(&self, parts: &[Ty]) -> bool {
        parts.last().is_some_and(|&t| t == Types::DOTS)
    }
}

impl super::Checked<'_> {
    /// Fields of a struct type with its type arguments put in.
    pub fn fields_of(&mut self, def: DefId, arguments: &[Ty]) -> Vec<(ast::Name, Ty)> {
        let DefKind::Struct { parameters, fields, .. } = &self.defs[def.0 as usize].kind else {
            return Vec::new();
        };
        let map: FxHashMap<Ty, Ty> = parameters.iter().copied().zip(arguments.iter().copied()).collect();
        let fields: Vec<_> = fields.iter().map(|f| (f.name.name.clone(), f.ty)).collect();
        fields
            .into_iter()
            .map(|(name, ty)| (name, self.types.substitute(ty, &map)))
            .collect()
    }

    /// Position and type of a field of a struct type with its type arguments put in.
    pub fn field(&mut self, def: DefId, arguments: &[Ty], name: &str) -> Option<(usize, Ty)> {
        let DefKind::Struct { parameters, fields, .. } = &self.defs[def.0 as usize].kind else {
            return None;
        };
        let &position = self.positions.get(&def)?.get(name)?;
        let map: FxHashMap<Ty, Ty> = parameters.iter().copied().zip(arguments.iter().copied()).collect();
        let ty = fields.get(position)?.ty;
        Some((position, self.types.substitute(ty, &map)))
    }

    /// Whether a type is a struct, a header or a header union.
    #[must_use]
    pub fn struct_kind(&self, ty: Ty) -> Option<ast::StructKind> {
        match self.types.get(ty) {
            TyKind::Struct(def, _) => match &self.def(*def).kind {
                DefKind::Struct { kind, .. } => Some(*kind),
                _ => None,
            },
            _ => None,
        }
    }
}
