//! Names: the scopes that hold them, and which of them may be shared.

use super::{BlockKind, Checker, Def, DefKind, Param, Place};
use crate::types::DefId;
use rustc_hash::FxHashMap;
use weir_syntax::ast::{self, Ident, Name};
use weir_syntax::diagnostic::Diagnostic;

/// After this number of findings no more names are suggested: each suggestion looks at every name.
const MAX_SUGGESTIONS: usize = 100;

#[derive(Default)]
pub(super) struct Scope {
    pub names: FxHashMap<Name, Vec<DefId>>,
    /// The first declaration of each name and list of parameters, where names may be shared.
    overloads: FxHashMap<(Name, Vec<Name>), DefId>,
    /// A local may not have the name of a parameter of the same function, block or action.
    pub holds_parameters: bool,
}

impl<'a> Checker<'a> {
    pub(super) fn with_scope<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        self.scopes.push(Scope::default());
        let result = f(self);
        self.scopes.pop();
        result
    }

    pub(super) fn with_place<R>(&mut self, place: Place, f: impl FnOnce(&mut Self) -> R) -> R {
        let before = std::mem::replace(&mut self.context.place, place);
        let result = f(self);
        self.context.place = before;
        result
    }

    pub(super) fn def(&self, id: DefId) -> &Def<'a> {
        &self.info.defs[id.0 as usize]
    }

    pub(super) fn def_mut(&mut self, id: DefId) -> &mut Def<'a> {
        &mut self.info.defs[id.0 as usize]
    }

    /// Makes a declaration without giving it a name in scope.
    pub(super) fn new_def(&mut self, name: &'a Ident, annotations: &'a [ast::Annotation], kind: DefKind<'a>) -> DefId {
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

    /// Gives a declaration its name in the innermost scope. Functions may share a name as long as
    /// no call could mean either.
    pub(super) fn bind(&mut self, id: DefId) {
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
    pub(super) fn colliding(&self, name: &Name, id: DefId) -> Option<DefId> {
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
    pub(super) fn parameter_names(&self, id: DefId) -> Option<Vec<Name>> {
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

    pub(super) fn may_share_name(&self, a: DefId, b: DefId) -> bool {
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

    pub(super) fn declare(&mut self, name: &'a Ident, annotations: &'a [ast::Annotation], kind: DefKind<'a>) -> DefId {
        let id = self.new_def(name, annotations, kind);
        self.bind(id);
        id
    }

    /// Everything that a name may mean here: the innermost scope that has it.
    pub(super) fn lookup(&self, name: &str, absolute: bool) -> Vec<DefId> {
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
    pub(super) fn similar_name(&self, name: &str) -> Option<Name> {
        let names = self.scopes.iter().flat_map(|s| s.names.keys());
        self.similar(name, names.map(|n| n.as_ref())).map(Into::into)
    }

    /// The candidate most like `name`, as [`closest`] finds it; not after very many findings.
    pub(super) fn similar<'n>(&self, name: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
        self.suggests().then(|| closest(name, candidates)).flatten()
    }

    /// Whether names are still suggested.
    pub(super) fn suggests(&self) -> bool {
        self.diagnostics.list().len() <= MAX_SUGGESTIONS
    }

    pub(super) fn not_found(&mut self, what: &str, name: &Ident) {
        self.info.missing.push((name.name.clone(), name.span));
        let mut diagnostic = Diagnostic::error(
            "not-found",
            name.span,
            format!("there is no {what} `{}` here", name.name),
        );
        if let Some(like) = self.similar_name(&name.name) {
            diagnostic = diagnostic.help(format!("did you mean `{like}`?"));
        }
        self.report(diagnostic);
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
