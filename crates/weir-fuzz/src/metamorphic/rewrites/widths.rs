//! Rewrites of values and assignments whose width is known.

use super::Context;
use crate::metamorphic::names::is_path;
use crate::metamorphic::nodes::{Body, Role};
use crate::metamorphic::text::{Edit, disjoint, replace_some, some};
use crate::rng::Rng;
use weir_syntax::ast::{BinaryOp, Expr, ExprKind, StatementKind};
use weir_syntax::source::Span;

/// Paths that are read, with their width.
fn read<'a>(context: &Context<'a>) -> Vec<(&'a Expr, u32)> {
    let expressions = context.nodes.expressions.iter();
    let values = expressions.filter(|(e, role)| *role == Role::Value && is_path(e));
    let found = values.filter_map(|(e, _)| {
        let width = context.names.width_of(e).filter(|w| *w > 1)?;
        context.subject.plain(e.span).map(|_| (*e, width))
    });
    found.collect()
}

/// `x` → `(x[7:4] ++ x[3:0])`
pub(super) fn halves(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    for (e, width) in some(rng, read(context))? {
        let (text, at) = (context.subject.plain(e.span)?, rng.between(1, width as usize - 1));
        let text = format!("({text}[{}:{at}] ++ {text}[{}:0])", width - 1, at - 1);
        edits.push(Edit::replace(e.span, text));
    }
    Some(edits)
}

/// `x` → `((bit<8>)(bit<11>)x)`
pub(super) fn widen(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    for (e, width) in some(rng, read(context))? {
        let wider = width as usize + rng.between(1, 40);
        edits.extend(Edit::around(e.span, &format!("((bit<{width}>)(bit<{wider}>)"), ")"));
    }
    Some(edits)
}

/// `a - b` → `(a + (~b + 1))`
pub(super) fn subtract(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let values = context
        .nodes
        .expressions
        .iter()
        .filter(|(_, role)| *role == Role::Value);
    let found = values.filter_map(|(e, _)| match &e.kind {
        ExprKind::Binary(BinaryOp::Sub, a, b) => {
            let width = context.names.width_of(a)?;
            let (a, text) = (context.subject.plain(a.span)?, context.subject.plain(b.span)?);
            context.subject.plain(e.span)?;
            let b = match &b.kind {
                ExprKind::Int { width: None, value, .. } if value.bits() <= u64::from(width) => {
                    format!("{width}w{value}")
                }
                _ if context.names.width_of(b) == Some(width) => text.to_owned(),
                _ => return None,
            };
            Some((e.span, format!("({a} + (~{b} + 1))")))
        }
        _ => None,
    });
    replace_some(rng, found.collect())
}

/// `x = e;` → `{ T v = e; x[7:4] = v[7:4]; x[3:0] = v[3:0]; }`
pub(super) fn assign_halves(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = assigned(context).into_iter().filter_map(|(span, target, value, ty)| {
        let width = context.names.width_of(target).filter(|w| *w > 1)?;
        Some((span, (target, value, ty, width)))
    });
    let mut count = 0;
    let mut edits = Vec::new();
    for (span, (target, value, ty, width)) in disjoint(rng, found.collect())? {
        let name = context.subject.fresh("v", &mut count);
        let (target, value) = (context.subject.plain(target.span)?, context.subject.plain(value.span)?);
        let at = rng.between(1, width as usize - 1);
        let part = |high: usize, low: usize| format!("{target}[{high}:{low}] = {name}[{high}:{low}];");
        let (high, low) = (part(width as usize - 1, at), part(at - 1, 0));
        edits.push(Edit::replace(
            span,
            format!("{{ {ty} {name} = {value}; {high} {low} }}"),
        ));
    }
    Some(edits)
}

/// Assignments to paths whose type can be written: the statement, both sides, the type.
fn assigned<'a>(context: &Context<'a>) -> Vec<(Span, &'a Expr, &'a Expr, String)> {
    let found = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::Assign {
            target,
            operator: None,
            value,
        } if is_path(target) => {
            context.subject.plain(s.span)?;
            Some((s.span, target, value, context.names.type_of(target)?))
        }
        _ => None,
    });
    found.collect()
}

/// `x = e;` → `x = f(e);` with `T f(in T x) { return x; }`
pub(super) fn function(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let of_language = |ty: &str| ["bit<", "int<", "bool"].iter().any(|t| ty.starts_with(t));
    let mut found = assigned(context);
    found.retain(|(.., ty)| of_language(ty));
    let mut count = 0;
    let (mut edits, mut declared) = (Vec::new(), String::new());
    for (_, _, value, ty) in some(rng, found)? {
        let name = context.subject.fresh("f", &mut count);
        declared.push_str(&format!("{ty} {name}(in {ty} x) {{ return x; }}\n"));
        edits.extend(Edit::around(value.span, &format!("{name}("), ")"));
    }
    edits.push(Edit::insert(0, declared));
    Some(edits)
}

/// `s` → `for (bit<8> i = 0; i < 1; i = i + 1) { s }`
pub(super) fn once(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let flow = ["return", "exit", "break", "continue", "apply"];
    let found = context.nodes.statements.iter().filter_map(|(s, body)| {
        let kind = matches!(s.kind, StatementKind::Assign { .. } | StatementKind::If { .. });
        let fits = kind && *body != Body::State && subject.plain(s.span).is_some();
        let mut words = subject.tokens_in(s.span).map(|(_, t)| subject.token(t));
        (fits && !words.any(|w| flow.contains(&w))).then_some((s.span, ()))
    });
    let mut count = 0;
    let mut edits = Vec::new();
    for (span, ()) in disjoint(rng, found.collect())? {
        let i = subject.fresh("i", &mut count);
        let head = format!("for (bit<8> {i} = 0; {i} < 1; {i} = {i} + 1) {{ ");
        edits.extend(Edit::around(span, &head, " }"));
    }
    Some(edits)
}
