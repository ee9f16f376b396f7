//! Rewrites of structs: fields wrapped in a struct of their own, and such a struct taken apart.

use super::Context;
use crate::metamorphic::names::Sort;
use crate::metamorphic::nodes::Role;
use crate::metamorphic::text::Edit;
use crate::rng::Rng;
use weir_syntax::ast::{
    Declaration, DeclarationKind, Expr, ExprKind, Parameter, StructKind, StructType, TablePropertyValue, TypeKind,
};

/// The structs of a program.
fn structs<'a>(context: &Context<'a>) -> Vec<(&'a Declaration, &'a StructType)> {
    let declarations = context.nodes.declarations.iter();
    let structs = declarations.filter_map(|(d, top)| match &d.kind {
        DeclarationKind::Struct(s) if *top && s.kind == StructKind::Struct => Some((*d, s)),
        _ => None,
    });
    let fits = |(d, s): &(&Declaration, &StructType)| {
        let unmarked = s.fields.iter().all(|f| f.annotations.is_empty());
        let plain = context.subject.plain(d.span).is_some();
        unmarked && plain && !s.fields.is_empty() && s.type_parameters.is_empty()
    };
    structs.filter(fits).collect()
}

/// The parameters of a type whose values are only passed on whole, to blocks, and looked into:
/// never built, compared or assigned. `None` where that is not so.
fn holders<'a>(context: &Context<'a>, name: &str) -> Option<Vec<&'a str>> {
    let is_it = |kind: &TypeKind| matches!(kind, TypeKind::Named { name: n, .. } if &*n.name == name);
    let mentions = context.nodes.types.iter().filter(|t| is_it(&t.kind)).count();
    let (ours, others): (Vec<&&Parameter>, Vec<&&Parameter>) =
        context.nodes.parameters.iter().partition(|p| is_it(&p.ty.kind));
    let holders: Vec<&str> = ours.iter().map(|p| &*p.name.name).collect();
    let is_clear = |name: &&str| {
        let sorts = context.names.own.get(*name).into_iter().flatten();
        let of_parameters = sorts.clone().all(|s| matches!(s, Sort::Parameter | Sort::Field));
        of_parameters && !others.iter().any(|p| *p.name.name == **name)
    };
    let whole = context
        .nodes
        .expressions
        .iter()
        .filter(|(e, role)| holder(e, &holders) && *role != Role::Base);
    let mut passed = whole.filter(|(_, r)| *r != Role::Key && *r != Role::Keyset);
    let fits = mentions == holders.len() && holders.iter().all(is_clear);
    (fits && !holders.is_empty() && passed.all(|(e, _)| argument_of_block(context, e))).then_some(holders)
}

/// Whether an expression is one of these names.
fn holder(expr: &Expr, holders: &[&str]) -> bool {
    matches!(&expr.kind, ExprKind::Name { name, .. } if holders.contains(&&*name.name))
}

/// Whether an expression is an argument of `….apply(…)`.
fn argument_of_block(context: &Context<'_>, expr: &Expr) -> bool {
    context.nodes.expressions.iter().any(|(call, _)| match &call.kind {
        ExprKind::Call { callee, arguments, .. } => {
            let is_apply = matches!(&callee.kind, ExprKind::Member(_, m) if &*m.name == "apply");
            is_apply && arguments.iter().any(|a| a.value.id == expr.id)
        }
        _ => false,
    })
}

/// Key elements whose text changes keep their name.
pub(super) fn key_names(context: &Context<'_>, changes: &dyn Fn(&str) -> bool) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    for (_, table, _) in &context.nodes.tables {
        for property in &table.properties {
            let TablePropertyValue::Key(keys) = &property.value else {
                continue;
            };
            for key in keys {
                let has_name = key.annotations.iter().any(|a| &*a.name.name == "name");
                let mut words = context.subject.tokens_in(key.expression.span);
                if has_name || !words.any(|(_, t)| changes(context.subject.token(t))) {
                    continue;
                }
                let text = context.subject.plain(key.expression.span)?;
                let text: String = text.split_whitespace().collect();
                let name = text.replace(".isValid()", ".$valid$");
                if name.contains(['(', '&', '+']) {
                    return None;
                }
                edits.push(Edit::insert(key.match_kind.span.hi, format!(" @name(\"{name}\")")));
            }
        }
    }
    Some(edits)
}

/// `struct M { A a; }` → `struct N { A a; } struct M { N n; }`, and `m.a` → `m.n.a`
pub(super) fn wrap(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = structs(context).into_iter();
    let fits: Vec<_> = found
        .filter_map(|(d, s)| Some((d, s, holders(context, &s.name.name)?)))
        .collect();
    let (declaration, wrapped, holders) = rng.pick(&fits)?;
    let mut count = 0;
    let (inner, field) = (
        context.subject.fresh("W", &mut count),
        context.subject.fresh("w", &mut count),
    );
    let (head, body) = context.subject.plain(declaration.span)?.split_once('{')?;
    let name = &*wrapped.name.name;
    if head.contains('@') {
        return None;
    }
    let mut edits = vec![Edit::replace(
        declaration.span,
        format!("struct {inner} {{{body}\nstruct {name} {{ {inner} {field}; }}"),
    )];
    edits.extend(key_names(context, &|w| holders.contains(&w))?);
    for (expr, _) in &context.nodes.expressions {
        if let ExprKind::Member(base, member) = &expr.kind
            && holder(base, holders)
        {
            context.subject.plain(expr.span)?;
            edits.push(Edit::insert(member.span.lo, format!("{field}.")));
        }
    }
    Some(edits)
}

/// `struct M { S s; }` with `struct S { A a; }` → `struct M { A f; }`, and `m.s.a` → `m.f`
pub(super) fn flatten(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = structs(context);
    let mut fits = Vec::new();
    for (_, outer) in &found {
        let Some(holders) = holders(context, &outer.name.name) else {
            continue;
        };
        for field in &outer.fields {
            let TypeKind::Named {
                name, arguments: None, ..
            } = &field.ty.kind
            else {
                continue;
            };
            let inner = found.iter().find(|(_, i)| i.name.name == name.name);
            let is_it = |kind: &TypeKind| matches!(kind, TypeKind::Named { name: n, .. } if n.name == name.name);
            let once = context.nodes.types.iter().filter(|t| is_it(&t.kind)).count() == 1;
            let inner = inner.filter(|_| once && is_looked_into(context, &holders, &field.name.name));
            fits.extend(inner.map(|(_, inner)| (field, *inner, holders.clone())));
        }
    }
    let (field, inner, holders) = rng.pick(&fits)?;
    let fresh = |name: &str| format!("mm_{}_{name}", field.name.name);
    let mut text = String::new();
    for f in &inner.fields {
        text.push_str(&format!(
            "{} {}; ",
            context.subject.plain(f.ty.span)?,
            fresh(&f.name.name)
        ));
    }
    let end = context.subject.find(field.name.span.hi, ";")?;
    let mut edits = vec![Edit {
        lo: field.ty.span.lo as usize,
        hi: end.hi,
        text,
    }];
    edits.extend(key_names(context, &|w| holders.contains(&w))?);
    for (expr, _) in &context.nodes.expressions {
        if let ExprKind::Member(base, member) = &expr.kind
            && let ExprKind::Member(root, through) = &base.kind
            && holder(root, holders)
            && through.name == field.name.name
        {
            context.subject.plain(expr.span)?;
            edits.push(Edit {
                lo: through.span.lo as usize,
                hi: member.span.hi as usize,
                text: fresh(&member.name),
            });
        }
    }
    Some(edits)
}

/// Whether a field of these parameters is only written before a dot.
fn is_looked_into(context: &Context<'_>, holders: &[&str], field: &str) -> bool {
    let is_field =
        |e: &Expr| matches!(&e.kind, ExprKind::Member(base, m) if &*m.name == field && holder(base, holders));
    let expressions = &context.nodes.expressions;
    let all = expressions.iter().filter(|(e, _)| is_field(e)).count();
    let inner = expressions
        .iter()
        .filter(|(e, _)| matches!(&e.kind, ExprKind::Member(base, _) if is_field(base)));
    inner.count() == all
}
