//! Rewrites of tables and of the actions they call.

use super::Context;
use crate::metamorphic::text::{Edit, some};
use crate::metamorphic::tokens::TokenKind;
use crate::rng::Rng;
use weir_syntax::ast::{
    Action, ActionReference, Declaration, ExprKind, StatementKind, Table, TableProperty, TablePropertyValue,
};
use weir_syntax::source::Span;

fn property<'t>(table: &'t Table, name: &str) -> Option<&'t TableProperty> {
    table.properties.iter().find(|p| &*p.name.name == name)
}

fn actions(table: &Table) -> Option<(&TableProperty, &[ActionReference])> {
    let property = property(table, "actions")?;
    match &property.value {
        TablePropertyValue::Actions(actions) => Some((property, actions)),
        TablePropertyValue::Key(_) | TablePropertyValue::Entries(_) | TablePropertyValue::Expression(_) => None,
    }
}

/// Tables without a default action → `default_action = NoAction();`
pub(super) fn default_action(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    if !subject.system.contains("NoAction") || context.names.own.contains_key("NoAction") {
        return None;
    }
    let tables = context.nodes.tables.iter().filter(|(declaration, table, _)| {
        property(table, "default_action").is_none() && subject.plain(declaration.span).is_some()
    });
    let mut edits = Vec::new();
    for (declaration, table, _) in some(rng, tables.collect())? {
        let (list, actions) = actions(table)?;
        if !actions.iter().any(|a| &*a.name.name == "NoAction") {
            let at = subject
                .tokens_in(list.span)
                .filter(|(_, t)| subject.token(t) == "}")
                .last()?;
            edits.push(Edit::insert(at.1.lo as u32, "@defaultonly NoAction; "));
        }
        let end = subject.closing_brace(declaration.span)?;
        edits.push(Edit::insert(end, "default_action = NoAction(); "));
    }
    Some(edits)
}

/// The size of tables that have none written.
const DEFAULT_SIZE: u32 = 1024;

/// Tables without a size → `size = 1024;`
pub(super) fn size(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let tables = context.nodes.tables.iter().filter(|(declaration, table, _)| {
        let others = [
            "size",
            "entries",
            "implementation",
            "idle_timeout",
            "psa_implementation",
        ];
        others.iter().all(|n| property(table, n).is_none()) && subject.plain(declaration.span).is_some()
    });
    let mut edits = Vec::new();
    for (declaration, ..) in some(rng, tables.collect())? {
        let end = subject.closing_brace(declaration.span)?;
        edits.push(Edit::insert(end, format!("size = {DEFAULT_SIZE}; ")));
    }
    Some(edits)
}

/// A place for a copy of an action: the action, the table that is to call the copy, the table's
/// name.
type Copied<'a> = (&'a Declaration, &'a Action, bool, &'a Declaration, &'a Table);

/// Actions that two tables list: the second one lists a copy with the same control-plane name.
pub(super) fn copy_action(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let nodes = &context.nodes;
    let mut found: Vec<Copied<'_>> = Vec::new();
    for (declaration, action, control) in &nodes.actions {
        let name = &*action.name.name;
        let is_ours = context.names.is_single(name) && context.subject.plain(declaration.span).is_some();
        let lists = |table: &Table| actions(table).is_some_and(|(_, a)| a.iter().any(|a| &*a.name.name == name));
        let listing = nodes
            .tables
            .iter()
            .filter(|(_, t, owner)| lists(t) && control.is_none_or(|c| c == *owner));
        let others = listing.skip(1).filter(|_| is_ours);
        found.extend(others.map(|(d, t, _)| (*declaration, *action, control.is_none(), *d, *t)));
    }
    // Tables that share a profile of actions must have the same ones.
    let shares = |table: &Table| table.properties.iter().any(|p| p.name.name.contains("implementation"));
    found.retain(|(.., of, table)| context.subject.plain(of.span).is_some() && !shares(table));
    let mut chosen = some(rng, found)?;
    chosen.sort_by_key(|(a, .., table, _)| (a.span.lo, table.span.lo));
    let mut count = 0;
    let mut edits = Vec::new();
    for (declaration, action, is_top, of, table) in chosen {
        let copy = context.subject.fresh("copy", &mut count);
        edits.push(Edit::insert(
            declaration.span.hi,
            copied(context, declaration, action, is_top, &copy)?,
        ));
        edits.extend(uses(context, &action.name.name, of.span, table).map(|span| Edit::replace(span, copy.clone())));
    }
    Some(edits)
}

/// The text of the copy of an action.
fn copied(
    context: &Context<'_>,
    declaration: &Declaration,
    action: &Action,
    is_top: bool,
    copy: &str,
) -> Option<String> {
    let annotations = &declaration.annotations;
    let name = &action.name;
    let named = annotations.iter().any(|a| &*a.name.name == "name");
    let own = match (named, is_top) {
        (true, _) => String::new(),
        (false, true) => format!("@name(\".{}\") ", name.name),
        (false, false) => format!("@name(\"{}\") ", name.name),
    };
    let head = Span {
        lo: declaration.span.lo,
        hi: name.span.lo,
    };
    let body = Span {
        lo: name.span.hi,
        hi: declaration.span.hi,
    };
    let (head, body) = (context.subject.plain(head)?, context.subject.plain(body)?);
    Some(format!("\n{own}{head}{copy}{body}\n"))
}

/// Where a table names an action, and where a `switch` over the table does.
fn uses<'a>(context: &'a Context<'_>, action: &'a str, table: Span, of: &'a Table) -> impl Iterator<Item = Span> + 'a {
    let subject = context.subject;
    let span = |lo: usize, hi: usize| Span {
        lo: lo as u32,
        hi: hi as u32,
    };
    let in_table = subject.free_words(table).filter(move |(w, _)| *w == action);
    let in_table = in_table.map(move |(_, t)| span(t.lo, t.hi));
    let switches = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::Switch { expression, cases } => Some((expression, cases)),
        _ => None,
    });
    let over = switches.filter(move |(expression, _)| {
        let mut words = subject
            .tokens_in(expression.span)
            .filter(|(_, t)| t.kind == TokenKind::Word);
        words.next().is_some_and(|(_, t)| subject.token(t) == &*of.name.name)
    });
    let labels = over
        .flat_map(|(_, cases)| cases.iter())
        .filter_map(move |case| match &case.label.kind {
            ExprKind::Name { name, .. } if &*name.name == action => Some(name.span),
            _ => None,
        });
    in_table.chain(labels)
}
