//! Rewrites of names. A name is changed wherever the program writes it, whatever it means there, so
//! that no scope has to be known; names that mean something elsewhere keep it by an annotation, or
//! are left alone.

use super::{Context, structs::key_names};
use crate::metamorphic::names::Sort;
use crate::metamorphic::text::{Edit, some};
use crate::metamorphic::tokens::TokenKind;
use crate::rng::Rng;
use std::collections::HashSet;
use weir_syntax::ast::{Annotation, DeclarationKind, Ident};

/// Names with a meaning of their own wherever they stand.
const BUILT_IN: [&str; 24] = [
    "main",
    "start",
    "accept",
    "reject",
    "apply",
    "hit",
    "miss",
    "action_run",
    "isValid",
    "setValid",
    "setInvalid",
    "next",
    "last",
    "lastIndex",
    "push_front",
    "pop_front",
    "size",
    "minSizeInBits",
    "minSizeInBytes",
    "maxSizeInBits",
    "maxSizeInBytes",
    "key",
    "actions",
    "entries",
];

/// Names declared as these sorts and no others.
fn names<'a>(context: &Context<'a>, sorts: &[Sort], with_annotation: bool) -> Vec<&'a str> {
    let subject = context.subject;
    let fits = |name: &str, declared: &[Sort]| {
        let free = ![&subject.system, &subject.directives, &subject.annotations]
            .iter()
            .any(|w| w.contains(name));
        let hidden = with_annotation || !subject.visible.contains(name);
        free && hidden && !BUILT_IN.contains(&name) && declared.iter().all(|s| sorts.contains(s))
    };
    let own = context.names.own.iter();
    let mut names: Vec<&str> = own.filter(|(n, s)| fits(n, s)).map(|(n, _)| *n).collect();
    names.sort_unstable();
    names
}

/// Every token that is one of the names gets another one.
fn renamed(context: &Context<'_>, names: &HashSet<&str>) -> Vec<Edit> {
    let subject = context.subject;
    let words = subject
        .tokens
        .iter()
        .filter(|t| t.kind == TokenKind::Word && !t.in_annotation);
    let chosen = words.filter(|t| names.contains(subject.token(t)));
    let edits = chosen.map(|t| Edit {
        lo: t.lo,
        hi: t.hi,
        text: format!("mm_{}", subject.token(t)),
    });
    edits.collect()
}

fn rename(context: &Context<'_>, rng: &mut Rng, sorts: &[Sort]) -> Option<Vec<Edit>> {
    let chosen: HashSet<&str> = some(rng, names(context, sorts, false))?.into_iter().collect();
    let mut edits = renamed(context, &chosen);
    edits.extend(key_names(context, &|n| chosen.contains(n))?);
    Some(edits)
}

/// Variables, parameters, constants, functions and states get other names.
pub(super) fn locals(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    use Sort::{ActionData, Constant, Function, Parameter, State, Variable};
    rename(
        context,
        rng,
        &[Variable, Parameter, ActionData, Constant, Function, State],
    )
}

/// Types, parsers, controls and members of enums get other names.
pub(super) fn types(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    rename(context, rng, &[Sort::Type, Sort::Block, Sort::Member])
}

/// Fields get other names; keys made of them keep theirs.
pub(super) fn fields(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    rename(context, rng, &[Sort::Field])
}

/// Actions, tables and instances get other names and keep the old ones for the control plane.
pub(super) fn control_plane(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let sorts = [Sort::Action, Sort::Table, Sort::Instance];
    let chosen: HashSet<&str> = some(rng, names(context, &sorts, true))?.into_iter().collect();
    let mut edits = renamed(context, &chosen);
    let has_name = |annotations: &[Annotation]| annotations.iter().any(|a| &*a.name.name == "name");
    for (declaration, is_top) in &context.nodes.declarations {
        let name: &Ident = match &declaration.kind {
            DeclarationKind::Action(a) => &a.name,
            DeclarationKind::Table(t) => &t.name,
            DeclarationKind::Instantiation(i) => &i.name,
            DeclarationKind::ValueSet(v) => &v.name,
            _ => continue,
        };
        if chosen.contains(&*name.name) && !has_name(&declaration.annotations) {
            let dot = if *is_top { "." } else { "" };
            edits.push(Edit::insert(
                declaration.span.lo,
                format!("@name(\"{dot}{}\") ", name.name),
            ));
        }
    }
    Some(edits)
}

/// Keys have the names written out that they have anyway.
pub(super) fn keys(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    some(rng, key_names(context, &|_| true)?)
}
