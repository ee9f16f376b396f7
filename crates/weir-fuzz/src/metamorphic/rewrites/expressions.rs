//! Rewrites of expressions.

use super::Context;
use crate::metamorphic::names::{is_path, is_pure};
use crate::metamorphic::nodes::Role;
use crate::metamorphic::text::{Edit, disjoint, replace_some, some};
use crate::rng::Rng;
use weir_syntax::ast::{BinaryOp, Expr, ExprKind, StatementKind, UnaryOp};
use weir_syntax::source::Span;

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// Whether an expression is `bool` by its form.
fn is_boolean(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Bool(_) | ExprKind::Unary(UnaryOp::Not, _) => true,
        ExprKind::Binary(op, ..) => is_comparison(*op) || matches!(op, BinaryOp::And | BinaryOp::Or),
        _ => false,
    }
}

fn values<'a>(context: &Context<'a>) -> impl Iterator<Item = &'a Expr> {
    let expressions = context.nodes.expressions.iter();
    let values = expressions.filter(|(_, role)| *role == Role::Value).map(|(e, _)| *e);
    let plain: Vec<_> = values.filter(|e| context.subject.plain(e.span).is_some()).collect();
    plain.into_iter()
}

fn all_around(chosen: impl IntoIterator<Item = Span>, before: &str, after: &str) -> Vec<Edit> {
    chosen
        .into_iter()
        .flat_map(|s| Edit::around(s, before, after))
        .collect()
}

/// `e` → `(e)`
pub(super) fn parenthesize(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let is_operation = |e: &Expr| !matches!(e.kind, ExprKind::Call { .. } | ExprKind::List(_) | ExprKind::Struct(..));
    let found = values(context)
        .filter(|e| is_operation(e) && !is_braced(e))
        .map(|e| e.span);
    Some(all_around(some(rng, found.collect())?, "(", ")"))
}

fn is_braced(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::InvalidHeader | ExprKind::Dots | ExprKind::Error)
}

/// `c` → `!(!(c))`
pub(super) fn negate_twice(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = values(context).filter(|e| is_boolean(e)).map(|e| e.span);
    Some(all_around(some(rng, found.collect())?, "(!(!(", ")))"))
}

/// `c` → `(c ? true : false)`
pub(super) fn conditional(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = values(context).filter(|e| is_boolean(e)).map(|e| e.span);
    Some(all_around(some(rng, found.collect())?, "((", ") ? true : false)"))
}

/// `a + b` → `b + a`
pub(super) fn commute(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Eq, Mul, Ne};
    let found = values(context).filter_map(|e| match &e.kind {
        ExprKind::Binary(Add | Mul | BitAnd | BitOr | BitXor | Eq | Ne, a, b) if is_pure(a) && is_pure(b) => {
            Some((e.span, (a.span, b.span)))
        }
        _ => None,
    });
    let text = |span| context.subject.plain(span);
    let mut edits = Vec::new();
    for (_, (a, b)) in disjoint(rng, found.collect())? {
        edits.push(Edit::replace(a, format!("({})", text(b)?)));
        edits.push(Edit::replace(b, format!("({})", text(a)?)));
    }
    Some(edits)
}

/// `t.apply().hit` → `(!t.apply().miss)`, and the other way round
pub(super) fn hit_or_miss(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = values(context).filter_map(|e| {
        let ExprKind::Member(lookup, result) = &e.kind else {
            return None;
        };
        let other = match &*result.name {
            "hit" => "miss",
            "miss" => "hit",
            _ => return None,
        };
        let text = context.subject.plain(lookup.span)?;
        matches!(lookup.kind, ExprKind::Call { .. }).then(|| Edit::replace(e.span, format!("(!{text}.{other})")))
    });
    some(rng, found.collect())
}

fn operator(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::AddSat => "|+|",
        BinaryOp::SubSat => "|-|",
        BinaryOp::Shl => "<<",
        BinaryOp::Shr => ">>",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::Div
        | BinaryOp::Mod
        | BinaryOp::And
        | BinaryOp::Or
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Gt
        | BinaryOp::Ge
        | BinaryOp::Concat => return None,
    })
}

/// `x = x + e` ↔ `x += e`
pub(super) fn compound(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let found = context.nodes.statements.iter().filter_map(|(statement, _)| {
        subject.plain(statement.span)?;
        let StatementKind::Assign {
            target,
            operator: op,
            value,
        } = &statement.kind
        else {
            return None;
        };
        let path = subject.plain(target.span).filter(|_| is_path(target))?;
        let text = match (op, &value.kind) {
            (Some(op), _) => {
                let value = subject.plain(value.span)?;
                format!("{path} = {path} {} ({value});", operator(*op)?)
            }
            (None, ExprKind::Binary(op, a, b)) if subject.plain(a.span) == Some(path) => {
                // The type of an integer without a width is that of the left side either way.
                let value = subject.plain(b.span)?;
                format!("{path} {}= {value};", operator(*op).filter(|o| !o.contains('>'))?)
            }
            _ => return None,
        };
        Some((statement.span, text))
    });
    replace_some(rng, found.collect())
}
