//! Rewrites of calls.

use super::Context;
use crate::metamorphic::names::{is_path, is_pure};
use crate::metamorphic::text::{Edit, some};
use crate::rng::Rng;
use weir_syntax::ast::{
    Argument, DeclarationKind, Direction, Expr, ExprKind, Instantiation, Parameter, Type, TypeKind,
};

/// The parameters of what is called, where that is the program's own and not generic.
fn parameters<'a>(context: &Context<'a>, callee: &Expr) -> Option<&'a [Parameter]> {
    match &callee.kind {
        ExprKind::Name { name, .. } if context.names.is_single(&name.name) => {
            let mut kinds = context.nodes.declarations.iter().map(|(d, _)| &d.kind);
            kinds.find_map(|kind| match kind {
                DeclarationKind::Action(a) if a.name.name == name.name => Some(a.parameters.as_slice()),
                DeclarationKind::Function(f)
                    if f.prototype.name.name == name.name && f.prototype.type_parameters.is_empty() =>
                {
                    Some(f.prototype.parameters.as_slice())
                }
                _ => None,
            })
        }
        ExprKind::Member(base, member) if &*member.name == "apply" => {
            let ExprKind::Name { name, .. } = &base.kind else {
                return None;
            };
            let block = instance(context, &name.name).map_or(&*name.name, |i| type_name(&i.ty).unwrap_or(""));
            block_parameters(context, block)
        }
        _ => None,
    }
}

fn instance<'a>(context: &Context<'a>, name: &str) -> Option<&'a Instantiation> {
    let kinds = context.nodes.declarations.iter().map(|(d, _)| &d.kind);
    let mut instances = kinds.filter_map(|kind| match kind {
        DeclarationKind::Instantiation(i) if &*i.name.name == name => Some(i),
        _ => None,
    });
    instances.next().filter(|_| context.names.is_single(name))
}

fn type_name(ty: &Type) -> Option<&str> {
    match &ty.kind {
        TypeKind::Named {
            name, arguments: None, ..
        } => Some(&name.name),
        _ => None,
    }
}

fn block_parameters<'a>(context: &Context<'a>, block: &str) -> Option<&'a [Parameter]> {
    let signatures = context.nodes.controls.iter().map(|(_, c)| &c.signature);
    let parsers = context.nodes.parsers.iter().map(|(_, p)| &p.signature);
    let mut found = signatures.chain(parsers).filter(|s| &*s.name.name == block);
    let signature = found.next().filter(|s| s.type_parameters.is_empty())?;
    context
        .names
        .is_single(block)
        .then_some(signature.parameters.as_slice())
}

/// Whether arguments can be evaluated in any order: none calls anything, and none is written that
/// another one reads.
fn is_independent(context: &Context<'_>, arguments: &[Argument], parameters: &[Parameter]) -> bool {
    let text = |a: &Argument| context.subject.plain(a.value.span).unwrap_or("");
    let pairs = arguments.iter().zip(parameters);
    let is_written = |p: &Parameter| matches!(p.direction, Direction::Out | Direction::InOut);
    let mut written = pairs.filter(|(_, p)| is_written(p)).map(|(a, _)| a);
    let alone = |a: &Argument| {
        let root = text(a).split('.').next().unwrap_or("").trim().to_owned();
        let others = arguments.iter().filter(|b| b.value.id != a.value.id);
        let uses = |b: &Argument| crate::metamorphic::text::words(text(b)).any(|w| w == root);
        is_path(&a.value) && !others.clone().any(uses)
    };
    arguments.iter().all(|a| is_pure(&a.value)) && written.all(alone)
}

/// `f(a, b)` → `f(y = b, x = a)`
pub(super) fn named(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let found = context.nodes.expressions.iter().filter_map(|(expr, _)| {
        let ExprKind::Call { callee, arguments, .. } = &expr.kind else {
            return None;
        };
        let parameters = parameters(context, callee)?;
        let fits = !arguments.is_empty()
            && arguments.len() == parameters.len()
            && arguments
                .iter()
                .all(|a| a.name.is_none() && context.subject.plain(a.span).is_some())
            && !arguments
                .iter()
                .any(|a| matches!(a.value.kind, ExprKind::DontCare | ExprKind::Call { .. }));
        fits.then_some((arguments, parameters))
    });
    let mut edits = Vec::new();
    for (arguments, parameters) in some(rng, found.collect())? {
        let mut order: Vec<usize> = (0..arguments.len()).collect();
        if is_independent(context, arguments, parameters) {
            order.reverse();
        }
        for (place, from) in arguments.iter().zip(order) {
            let value = context.subject.plain(arguments[from].value.span)?;
            edits.push(Edit::replace(
                place.span,
                format!("{} = {value}", parameters[from].name.name),
            ));
        }
    }
    Some(edits)
}
