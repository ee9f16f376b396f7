//! Which names are types, as far as declarations have been seen.

use rustc_hash::FxHashMap;

use crate::token::Sym;

/// What a name is known to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameClass {
    /// A type, parser, control, package or extern.
    Type,
    /// Anything else.
    Value,
}

/// Nested scopes; the outermost is the program's.
#[derive(Debug)]
pub(super) struct Scopes(Vec<FxHashMap<Sym, NameClass>>);

impl Default for Scopes {
    fn default() -> Self {
        Scopes(vec![FxHashMap::default()])
    }
}

impl Scopes {
    pub(super) fn push(&mut self) {
        self.0.push(FxHashMap::default());
    }

    pub(super) fn pop(&mut self) {
        if self.0.len() > 1 {
            self.0.pop();
        }
    }

    pub(super) fn declare(&mut self, name: Sym, class: NameClass) {
        if let Some(scope) = self.0.last_mut() {
            scope.insert(name, class);
        }
    }

    pub(super) fn look_up(&self, name: Sym) -> Option<NameClass> {
        self.0.iter().rev().find_map(|scope| scope.get(&name).copied())
    }

    pub(super) fn look_up_global(&self, name: Sym) -> Option<NameClass> {
        self.0[0].get(&name).copied()
    }
}
