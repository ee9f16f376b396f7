//! Rewrites of parser states and their selections.

use super::Context;
use crate::metamorphic::text::{Edit, some};
use crate::rng::Rng;
use num_bigint::BigInt;
use weir_syntax::ast::{Expr, ExprKind, SelectCase, StatementKind, Transition};

/// The selections of all states.
fn selections<'a>(context: &Context<'a>) -> Vec<(&'a [Expr], &'a [SelectCase])> {
    let states = context.nodes.states();
    let selections = states.filter_map(|state| match &state.transition {
        Some(Transition::Select {
            expressions,
            cases,
            span,
        }) => context
            .subject
            .plain(*span)
            .map(|_| (expressions.as_slice(), cases.as_slice())),
        Some(Transition::State(_)) | None => None,
    });
    selections.collect()
}

/// `default: s;` → `_: s;`
pub(super) fn dont_care(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let cases = selections(context).into_iter().flat_map(|(_, cases)| cases);
    let found = cases.filter(|c| matches!(c.keyset.kind, ExprKind::Default));
    let chosen = some(rng, found.collect())?;
    Some(chosen.into_iter().map(|c| Edit::replace(c.keyset.span, "_")).collect())
}

/// The elements of a keyset, one for each of `count` expressions; `None` where it is one name for
/// all of them.
fn elements(keyset: &Expr, count: usize) -> Option<Vec<&Expr>> {
    match &keyset.kind {
        ExprKind::List(list) if list.len() == count => Some(list.iter().collect()),
        _ if count == 1 => Some(vec![keyset]),
        _ => None,
    }
}

/// `5: s;` → `5 &&& 0xff: s;`
pub(super) fn mask(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let mut found = Vec::new();
    for (expressions, cases) in selections(context) {
        for case in cases {
            let elements = elements(&case.keyset, expressions.len()).unwrap_or_default();
            for (element, expr) in elements.into_iter().zip(expressions) {
                let ExprKind::Int { width, value, .. } = &element.kind else {
                    continue;
                };
                let mask = match width {
                    Some((width, false)) => Some((*width, format!("{width}w"))),
                    Some((_, true)) => None,
                    None => context.names.width_of(expr).map(|w| (w, String::new())),
                };
                found.extend(mask.filter(|(w, _)| value.bits() <= u64::from(*w)).map(|(w, prefix)| {
                    let ones = (BigInt::from(1) << w) - 1;
                    Edit::insert(element.span.hi, format!(" &&& {prefix}{ones}"))
                }));
            }
        }
    }
    some(rng, found)
}

/// `select(a, b) { (x, y): s; }` → `select(b, a) { (y, x): s; }`
pub(super) fn order(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let fits = |(expressions, cases): &(&[Expr], &[SelectCase])| {
        let is_any = |e: &Expr| matches!(e.kind, ExprKind::Default | ExprKind::DontCare);
        let of_elements = |c: &SelectCase| is_any(&c.keyset) || elements(&c.keyset, expressions.len()).is_some();
        expressions.len() > 1 && expressions.iter().all(is_readable) && cases.iter().all(of_elements)
    };
    let found: Vec<_> = selections(context).into_iter().filter(fits).collect();
    let mut edits = Vec::new();
    for (expressions, cases) in some(rng, found)? {
        let mut swap = |a: &Expr, b: &Expr| -> Option<()> {
            edits.push(Edit::replace(a.span, context.subject.plain(b.span)?));
            edits.push(Edit::replace(b.span, context.subject.plain(a.span)?));
            Some(())
        };
        let last = expressions.len() - 1;
        swap(&expressions[0], &expressions[last])?;
        for case in cases {
            if let ExprKind::List(list) = &case.keyset.kind {
                swap(&list[0], &list[last])?;
            }
        }
    }
    Some(edits)
}

/// An expression whose value does not depend on when it is computed: no call, so no look ahead or
/// method.
fn is_readable(expr: &Expr) -> bool {
    crate::metamorphic::names::is_pure(expr)
}

/// `state s { A B transition t; }` → `state s { A transition u; } state u { B transition t; }`
pub(super) fn split(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let states = context
        .nodes
        .states()
        .filter(|s| context.subject.plain(s.span).is_some());
    let mut count = 0;
    let mut edits = Vec::new();
    for state in some(rng, states.collect())? {
        // What a state declares can be named in that state only.
        let is_declaration = |s: &_| matches!(s, StatementKind::Declaration(_));
        let undeclared = state.statements.iter().take_while(|s| !is_declaration(&s.kind)).count();
        let at = match rng.below(undeclared + 1) {
            0 => context.subject.find(state.name.span.hi, "{")?.hi as u32,
            n => state.statements[n - 1].span.hi,
        };
        let name = context.subject.fresh("s", &mut count);
        edits.push(Edit::insert(at, format!(" transition {name}; }} state {name} {{ ")));
    }
    Some(edits)
}
