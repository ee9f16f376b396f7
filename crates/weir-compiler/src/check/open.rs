//! `_` as a type argument: left open where it is written, known by the end of the program.
//!
//! A constructor argument may determine it, or a use: the type of a value that a method gives.
//! Where only arguments
//! of calls have it, as the index of a register, calls may differ, and the instance has the widest
//! of their types.

use super::{Checker, Param, Signature};
use crate::types::{Ty, TyKind, Types};
use rustc_hash::FxHashSet;
use weir_syntax::ast::Direction;

/// The width of a type argument that nothing determines.
const ANY_WIDTH: u32 = 32;

/// Inference variables that the program has written as `_`.
#[derive(Debug, Default)]
pub(super) struct OpenTypes {
    known: FxHashSet<Ty>,
    /// Type arguments of instances of externs, in the order of the program.
    instances: Vec<Ty>,
    /// What calls have in place of an open type.
    uses: Vec<Use>,
}

/// A call of a method of an instance with an open type.
#[derive(Debug, Clone, Copy)]
struct Use {
    open: Ty,
    /// The type in the call.
    here: Ty,
}

/// What a value says of the type that it is given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// It is the value's.
    Type,
    /// Any that fits.
    Nothing,
    /// No type of values at run time has this value.
    Mismatch,
}

impl<'a> Checker<'a> {
    /// A new `_`.
    pub(super) fn open_type(&mut self) -> Ty {
        let ty = self.info.types.fresh();
        self.open.known.insert(ty);
        ty
    }

    /// Whether all that is to be inferred of a type has been written as `_`.
    pub(super) fn is_open_type(&self, ty: Ty) -> bool {
        let mut parts = Vec::new();
        self.info
            .types
            .collect(ty, &|k| matches!(k, TyKind::Infer(_)), &mut parts);
        parts.iter().all(|part| self.open.known.contains(part))
    }

    /// What a value of type `ty` says of an open type: nothing, if it is a number without a width.
    pub(super) fn says_of_open(&self, open: Ty, ty: Ty) -> Says {
        if !self.open.known.contains(&open) {
            return Says::Type;
        }
        let is_unsized = |k: &TyKind| matches!(k, TyKind::Integer | TyKind::String);
        match self.info.types.get(ty) {
            TyKind::Integer => Says::Nothing,
            _ if self.info.types.any(ty, &is_unsized) => Says::Mismatch,
            _ => Says::Type,
        }
    }

    /// Notes that `ty`, which is to be inferred, is the same as an open type.
    pub(super) fn join_open(&mut self, open: Ty, ty: Ty) {
        if self.open.known.contains(&open) && matches!(self.info.types.get(ty), TyKind::Infer(_)) {
            let ty = self.info.types.shallow(ty);
            self.open.known.insert(ty);
        }
    }

    /// Notes the type arguments of a new instance of an extern.
    pub(super) fn note_open_instance(&mut self, parts: &[Ty]) {
        let is_infer = |k: &TyKind| matches!(k, TyKind::Infer(_));
        for &part in parts {
            self.info.types.collect(part, &is_infer, &mut self.open.instances);
        }
    }

    /// The type arguments of an instance as a call of one of its methods sees them.
    pub(super) fn receiver(&mut self, signature: &Signature<'a>, parameters: &[Ty], parts: &[Ty]) -> Vec<Ty> {
        let mut receiver = Vec::new();
        for (&parameter, &part) in parameters.iter().zip(parts) {
            let part = self.info.types.shallow(part);
            let is_open = self.open.known.contains(&part) && self.is_only_passed_in(signature, parameter);
            receiver.push(if is_open {
                let here = self.info.types.fresh();
                let open = part;
                self.open.uses.push(Use { open, here });
                here
            } else {
                part
            });
        }
        receiver
    }

    /// Whether a type parameter is that of values that go into a method, and of nothing else.
    fn is_only_passed_in(&self, signature: &Signature<'a>, parameter: Ty) -> bool {
        let is_in = |d: Direction| matches!(d, Direction::In | Direction::None);
        let names = |ty: Ty| {
            let mut found = Vec::new();
            let is_parameter = |k: &TyKind| k == self.info.types.kind(parameter);
            self.info.types.collect(ty, &is_parameter, &mut found);
            !found.is_empty()
        };
        let is_fit = |p: &Param<'a>| p.ty == parameter && is_in(p.direction) || !names(p.ty);
        let is_named = signature.params.iter().any(|p| names(p.ty));
        is_named && !names(signature.result) && signature.params.iter().all(is_fit)
    }

    /// Gives each type that is still open the widest type of its uses, or any width.
    pub(super) fn close_types(&mut self) {
        let instances = std::mem::take(&mut self.open.instances);
        let uses = std::mem::take(&mut self.open.uses);
        for open in instances {
            let ty = self.info.types.shallow(open);
            let TyKind::Infer(variable) = *self.info.types.kind(ty) else {
                continue;
            };
            let of_this = |u: &&Use| self.info.types.shallow(u.open) == ty;
            let width_of = |u: &Use| match self.info.types.get(u.here) {
                TyKind::Bit(width) => Some(*width),
                _ => None,
            };
            let widths = uses.iter().filter(of_this).filter_map(width_of).max();
            let width = widths.unwrap_or(ANY_WIDTH);
            let bits = self.info.types.bit(width);
            self.info.types.solve(variable, bits);
        }
        // A literal without a width as an argument.
        for Use { here, .. } in uses {
            if let TyKind::Infer(variable) = *self.info.types.get(here) {
                self.info.types.solve(variable, Types::INTEGER);
            }
        }
    }
}
