//! Rewrites of statements.

use super::Context;
use crate::metamorphic::names::{declared_name, is_path};
use crate::metamorphic::nodes::Body;
use crate::metamorphic::text::{Edit, disjoint, some};
use crate::rng::Rng;
use std::collections::HashSet;
use weir_syntax::ast::{BinaryOp, Expr, ExprKind, Statement, StatementKind, UnaryOp};
use weir_syntax::source::Span;

/// Statements that are no declarations and hold none of these words.
fn without<'a>(context: &Context<'a>, words: &[&str]) -> Vec<(&'a Statement, Body)> {
    let fits = |(statement, _): &&(&'a Statement, Body)| {
        let is_statement = !matches!(statement.kind, StatementKind::Declaration(_) | StatementKind::Empty);
        let plain = is_statement && context.subject.plain(statement.span).is_some();
        plain
            && !context
                .subject
                .free_words(statement.span)
                .any(|(w, _)| words.contains(&w))
    };
    context.nodes.statements.iter().filter(fits).copied().collect()
}

fn around(chosen: Vec<(&Statement, Body)>, before: &str, after: &str) -> Vec<Edit> {
    let edits = chosen
        .into_iter()
        .flat_map(|(s, _)| Edit::around(s.span, before, after));
    edits.collect()
}

/// `s` → `{ s }`
pub(super) fn block(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    Some(around(some(rng, without(context, &[]))?, "{ ", " }"))
}

/// `s` → `{ if (true) { s } }`, in braces for the sake of an `else` that follows
pub(super) fn if_true(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    Some(around(
        some(rng, without(context, &["return"]))?,
        "{ if (true) { ",
        " } }",
    ))
}

/// `if (c) s` → `if (c) { s } else { }`
pub(super) fn empty_else(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::If {
            then, otherwise: None, ..
        } => context.subject.plain(s.span).map(|_| then.span),
        _ => None,
    });
    let chosen = some(rng, found.collect())?;
    let edits = chosen.into_iter().flat_map(|s| Edit::around(s, "{ ", " } else { }"));
    Some(edits.collect())
}

/// `if (c) A else B` → `if (!(c)) { B } else { A }`
pub(super) fn negate_if(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::If {
            condition,
            then,
            otherwise: Some(otherwise),
        } => Some((s.span, (condition.span, then.span, otherwise.span))),
        _ => None,
    });
    let plain = found.filter(|(span, _)| context.subject.plain(*span).is_some());
    let mut edits = Vec::new();
    for (_, (condition, then, otherwise)) in disjoint(rng, plain.collect())? {
        let text = |span| context.subject.plain(span).map(|text| format!("{{ {text} }}"));
        edits.extend(Edit::around(condition, "!(", ")"));
        edits.push(Edit::replace(then, text(otherwise)?));
        edits.push(Edit::replace(otherwise, text(then)?));
    }
    Some(edits)
}

/// `x = e;` → `{ T y = e; x = y; }`, and `if (c)` → `{ bool y = c; if (y) … }`
pub(super) fn local(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = context.nodes.statements.iter().filter_map(|(s, _)| {
        let (ty, value) = match &s.kind {
            StatementKind::Assign {
                target,
                operator: None,
                value,
            } if is_path(target) => (context.names.type_of(target)?, value),
            StatementKind::If { condition, .. } if is_bool(condition) => ("bool".to_owned(), condition),
            _ => return None,
        };
        context.subject.plain(s.span)?;
        Some((s.span, (ty, value.span)))
    });
    let mut count = 0;
    let mut edits = Vec::new();
    for (span, (ty, value)) in disjoint(rng, found.collect())? {
        let name = context.subject.fresh("v", &mut count);
        let text = context.subject.plain(value)?;
        edits.push(Edit::insert(span.lo, format!("{{ {ty} {name} = {text}; ")));
        edits.push(Edit::replace(value, name));
        edits.push(Edit::insert(span.hi, " }"));
    }
    Some(edits)
}

fn is_bool(expr: &Expr) -> bool {
    use BinaryOp::{And, Eq, Ge, Gt, Le, Lt, Ne, Or};
    match &expr.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => is_bool(inner),
        ExprKind::Binary(And | Or, a, b) => is_bool(a) && is_bool(b),
        ExprKind::Binary(Eq | Ne | Lt | Le | Gt | Ge, ..) => true,
        ExprKind::Call { callee, .. } => matches!(&callee.kind, ExprKind::Member(_, m) if &*m.name == "isValid"),
        _ => false,
    }
}

/// The names that bodies of a control declare themselves.
fn local_names<'a>(context: &Context<'a>) -> HashSet<&'a str> {
    let declared = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::For { .. } | StatementKind::ForIn { .. } => Some(s.span),
        _ => None,
    });
    let of_loops = declared.flat_map(|span| context.subject.free_words(span).map(|(w, _)| w));
    let others = context.nodes.statements.iter().filter_map(|(s, _)| match &s.kind {
        StatementKind::Declaration(d) => declared_name(d),
        _ => None,
    });
    of_loops.chain(others).collect()
}

/// The position before `apply` in a control.
fn before_apply(context: &Context<'_>, control: usize) -> Option<u32> {
    context.subject.before_apply(context.nodes.controls.get(control)?.1)
}

/// `x = e;` → `a();` with `action a() { x = e; }`
pub(super) fn action(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let locals = local_names(context);
    let found = context.nodes.statements.iter().filter_map(|(s, body)| {
        let (StatementKind::Assign { .. }, Body::Apply(control)) = (&s.kind, body) else {
            return None;
        };
        let text = context.subject.plain(s.span)?;
        let is_free = !context.subject.free_words(s.span).any(|(w, _)| locals.contains(w));
        let calls = text.contains("apply");
        (is_free && !calls).then_some((s.span, before_apply(context, *control)?))
    });
    let mut count = 0;
    let mut edits = Vec::new();
    for (span, at) in disjoint(rng, found.collect())? {
        let name = context.subject.fresh("a", &mut count);
        let text = context.subject.plain(span)?;
        edits.push(Edit::insert(at, format!("action {name}() {{ {text} }}\n    ")));
        edits.push(Edit::replace(span, format!("{name}();")));
    }
    Some(edits)
}

/// `control C(P) { apply { A } }` → `control D(P) { apply { A } }`, with `D`'s instance applied in
/// `C`
pub(super) fn sub_control(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let found = context
        .nodes
        .controls
        .iter()
        .enumerate()
        .filter_map(|(i, (declaration, control))| {
            let local = control.locals.iter().filter_map(declared_name);
            let parameters = &control.signature.parameters;
            let names: Vec<&str> = parameters.iter().map(|p| &*p.name.name).collect();
            let constructor = control.constructor_parameters.iter().map(|p| &*p.name.name);
            let taken: HashSet<&str> = local.chain(constructor).collect();
            let uses = subject.free_words(control.apply.span).any(|(w, _)| taken.contains(w));
            let is_simple = control.apply.annotations.is_empty()
                && control.signature.type_parameters.is_empty()
                && !uses
                && subject.plain(control.apply.span).is_some_and(|t| !t.contains("apply"));
            is_simple.then_some((i, *declaration, *control, names))
        });
    let mut count = 0;
    let mut edits = Vec::new();
    for (i, declaration, control, names) in some(rng, found.collect())? {
        let (first, last) = (
            control.signature.parameters.first()?,
            control.signature.parameters.last()?,
        );
        let whole = Span {
            lo: first.span.lo,
            hi: last.span.hi,
        };
        let (outer, inner) = (subject.fresh("C", &mut count), subject.fresh("c", &mut count));
        let (parameters, body) = (subject.plain(whole)?, subject.plain(control.apply.span)?);
        edits.push(Edit::insert(
            declaration.span.lo,
            format!("control {outer}({parameters}) {{ apply {body} }}\n"),
        ));
        edits.push(Edit::insert(
            before_apply(context, i)?,
            format!("{outer}() {inner};\n    "),
        ));
        edits.push(Edit::replace(
            control.apply.span,
            format!("{{ {inner}.apply({}); }}", names.join(", ")),
        ));
    }
    Some(edits)
}
