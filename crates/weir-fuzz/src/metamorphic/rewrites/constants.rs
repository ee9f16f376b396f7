//! Rewrites of constants and of the types they have.

use super::Context;
use crate::metamorphic::nodes::Role;
use crate::metamorphic::text::{Edit, some};
use crate::rng::Rng;
use num_bigint::BigInt;
use weir_syntax::ast::{BinaryOp, DeclarationKind, Expr, ExprKind, TypeKind};

/// A literal as its value, its width and sign, and the base it was written in.
type Literal<'e> = (&'e BigInt, Option<(u32, bool)>);

fn literal(expr: &Expr) -> Option<Literal<'_>> {
    match &expr.kind {
        ExprKind::Int { value, width, .. } => Some((value, *width)),
        _ => None,
    }
}

/// A literal as text.
fn written(value: &BigInt, width: Option<(u32, bool)>) -> String {
    match width {
        None => value.to_string(),
        Some((width, signed)) => format!("{width}{}{value}", if signed { 's' } else { 'w' }),
    }
}

/// The literals that may be written another way: positive, not overflowing, and no part of a key's
/// name.
fn literals<'a>(context: &Context<'a>) -> Vec<(&'a Expr, Literal<'a>)> {
    let expressions = context.nodes.expressions.iter();
    let found = expressions.filter_map(|(expr, role)| {
        let (value, width) = literal(expr)?;
        let bits = width.map_or(u64::MAX, |(w, signed)| u64::from(w) - u64::from(signed && w > 0));
        let fits = *value >= BigInt::from(2) && value.bits() <= bits;
        let fits = fits && *role != Role::Key && context.subject.plain(expr.span).is_some();
        fits.then_some((*expr, (value, width)))
    });
    found.collect()
}

/// `5` → `(2 + 3)`
pub(super) fn unfold(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let chosen = some(rng, literals(context))?;
    let edits = chosen.into_iter().map(|(expr, (value, width))| {
        let half: BigInt = value / 2;
        let text = format!("({} + {})", written(&half, width), written(&(value - &half), width));
        Edit::replace(expr.span, text)
    });
    Some(edits.collect())
}

/// `5` → `c` with `const int c = 5;`
pub(super) fn name(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let mut count = 0;
    let (mut edits, mut declared) = (Vec::new(), String::new());
    for (expr, (value, width)) in some(rng, literals(context))? {
        let name = context.subject.fresh("c", &mut count);
        let ty = match width {
            None => "int".to_owned(),
            Some((width, false)) => format!("bit<{width}>"),
            Some((width, true)) => format!("int<{width}>"),
        };
        declared.push_str(&format!("const {ty} {name} = {};\n", written(value, width)));
        edits.push(Edit::replace(expr.span, name));
    }
    edits.push(Edit::insert(0, declared));
    Some(edits)
}

/// `2 + 3` → `5`, and names of constants → their values
pub(super) fn fold(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let mut found = Vec::new();
    for (expr, role) in &context.nodes.expressions {
        if *role == Role::Key || *role == Role::Callee || context.subject.plain(expr.span).is_none() {
            continue;
        }
        let value = match &expr.kind {
            ExprKind::Binary(op, a, b) => folded(*op, literal(a), literal(b)),
            ExprKind::Name { absolute: false, name } => value_of(context, &name.name),
            _ => None,
        };
        found.extend(value.map(|v| Edit::replace(expr.span, v)));
    }
    let mut chosen = some(rng, found)?;
    chosen.sort_by_key(|e| e.lo);
    chosen.dedup_by(|a, b| a.lo < b.hi);
    Some(chosen)
}

fn folded(op: BinaryOp, a: Option<Literal<'_>>, b: Option<Literal<'_>>) -> Option<String> {
    let ((a, width), (b, other)) = (a?, b?);
    let value: BigInt = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Mul => a * b,
        BinaryOp::Sub if a >= b => a - b,
        BinaryOp::BitAnd if width.is_some() => a & b,
        BinaryOp::BitOr if width.is_some() => a | b,
        BinaryOp::BitXor if width.is_some() => a ^ b,
        _ => return None,
    };
    let bits = match width {
        None => u64::MAX,
        Some((w, false)) => u64::from(w),
        Some((_, true)) => return None,
    };
    (width == other && value.bits() <= bits).then(|| written(&value, width))
}

/// The value of a constant of the program.
fn value_of(context: &Context<'_>, name: &str) -> Option<String> {
    let mut constants = context.nodes.declarations.iter().filter_map(|(d, _)| match &d.kind {
        DeclarationKind::Constant(c) if &*c.name.name == name => Some(c),
        _ => None,
    });
    let constant = constants.next().filter(|_| context.names.is_single(name))?;
    let (value, width) = literal(&constant.value)?;
    match (&constant.ty.kind, width) {
        (TypeKind::Integer, None) => Some(written(value, None)),
        (TypeKind::Bit(Some(size)), width) => {
            let (size, _) = literal(size)?;
            let size: u32 = size.try_into().ok()?;
            let is_same = width.is_none_or(|w| w == (size, false));
            (is_same && value.bits() <= u64::from(size)).then(|| written(value, Some((size, false))))
        }
        _ => None,
    }
}

/// `bit<8>` → `t` with `typedef bit<8> t;`
pub(super) fn typedef(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = context.nodes.types.iter().filter_map(|ty| {
        let (TypeKind::Bit(Some(size)) | TypeKind::Int(size)) = &ty.kind else {
            return None;
        };
        literal(size)?;
        Some((ty.span, context.subject.plain(ty.span)?))
    });
    let mut count = 0;
    let (mut edits, mut declared): (_, Vec<(&str, String)>) = (Vec::new(), Vec::new());
    for (span, text) in some(rng, found.collect())? {
        let known = declared.iter().find(|(t, _)| *t == text).map(|(_, n)| n.clone());
        let name = known.unwrap_or_else(|| {
            let name = context.subject.fresh("t", &mut count);
            declared.push((text, name.clone()));
            name
        });
        edits.push(Edit::replace(span, format!("{name} ")));
    }
    let declared = declared.iter().map(|(t, n)| format!("typedef {t} {n};\n"));
    edits.push(Edit::insert(0, declared.collect::<String>()));
    Some(edits)
}
