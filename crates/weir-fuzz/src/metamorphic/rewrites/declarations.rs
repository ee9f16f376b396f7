//! Rewrites of declarations: moved, and added ones that nothing uses.

use super::Context;
use crate::metamorphic::names::declared_name;
use crate::metamorphic::text::{Edit, some};
use crate::metamorphic::tokens::TokenKind;
use crate::rng::Rng;
use std::collections::HashSet;
use weir_syntax::ast::{Annotation, Declaration, DeclarationKind, TypedefTarget};

/// Words of the language itself that declarations of constants and types use.
const WORDS: [&str; 16] = [
    "const",
    "bit",
    "int",
    "bool",
    "varbit",
    "true",
    "false",
    "typedef",
    "type",
    "error",
    "struct",
    "header",
    "enum",
    "header_union",
    "tuple",
    "_",
];

/// Constants, types and errors that need no included file → before all of them
pub(super) fn move_up(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let directives = subject.tokens.iter().filter(|t| t.kind == TokenKind::Directive);
    let first = directives.map(|t| t.lo as u32).next()?;
    let mut known: HashSet<&str> = HashSet::new();
    let mut moved: Vec<&Declaration> = Vec::new();
    for (declaration, is_top) in &context.nodes.declarations {
        if !is_top || !is_movable(declaration) || is_conditional(context, declaration.span.lo) {
            continue;
        }
        let name = declared_name(declaration);
        let members = members(declaration);
        let is_free = |word: &str| WORDS.contains(&word) || known.contains(word) || Some(word) == name;
        let plain = subject.plain(declaration.span).is_some();
        let tokens = subject.tokens_in(declaration.span).map(|(_, t)| t);
        // What an annotation names may be declared in an included file.
        let plain = plain && !tokens.clone().any(|t| t.in_annotation);
        let words = tokens.filter(|t| t.kind == TokenKind::Word);
        let free = words
            .map(|t| subject.token(t))
            .all(|w| is_free(w) || members.contains(&w));
        if plain && free {
            known.extend(name.into_iter().chain(members));
            if declaration.span.lo > first {
                moved.push(declaration);
            }
        }
    }
    // Those in front of a chosen one may be needed by it.
    let count = 1 + rng.below(moved.len());
    let chosen = moved.get(..count.min(moved.len())).filter(|m| !m.is_empty())?;
    let mut edits = Vec::new();
    for declaration in chosen {
        edits.push(Edit::insert(first, format!("{}\n", subject.plain(declaration.span)?)));
        edits.push(Edit::replace(declaration.span, ""));
    }
    Some(edits)
}

fn is_movable(declaration: &Declaration) -> bool {
    match &declaration.kind {
        DeclarationKind::Constant(_) | DeclarationKind::Error(_) | DeclarationKind::Enum(_) => true,
        DeclarationKind::Struct(s) => s.type_parameters.is_empty(),
        DeclarationKind::Typedef(t) => matches!(t.ty, TypedefTarget::Type(_)),
        _ => false,
    }
}

/// The names that are declared within a declaration.
fn members(declaration: &Declaration) -> Vec<&str> {
    match &declaration.kind {
        DeclarationKind::Error(members) => members.iter().map(|m| &*m.name).collect(),
        DeclarationKind::Enum(e) => e.members.iter().map(|m| &*m.name.name).collect(),
        DeclarationKind::Struct(s) => s.fields.iter().map(|f| &*f.name.name).collect(),
        _ => Vec::new(),
    }
}

/// Whether a position lies in an `#if`.
fn is_conditional(context: &Context<'_>, at: u32) -> bool {
    let directives = context.subject.tokens.iter().filter(|t| t.kind == TokenKind::Directive);
    let before = directives.take_while(|t| t.lo < at as usize);
    let depth = before.fold(0, |depth, t| {
        let name = context.subject.token(t).trim_start_matches('#').trim_start();
        depth + i32::from(name.starts_with("if")) - i32::from(name.starts_with("endif"))
    });
    depth > 0
}

/// Declarations that nothing uses.
pub(super) fn unused(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let mut count = 0;
    let mut fresh = |stem| subject.fresh(stem, &mut count);
    let mut edits = vec![Edit::insert(0, global(rng, &mut fresh))];
    let mut directives = subject.tokens.iter().filter(|t| t.kind == TokenKind::Directive);
    let first = directives.find(|t| subject.token(t).contains("include"));
    let first = first.map_or(usize::MAX, |t| t.lo);
    for (declaration, control) in &context.nodes.controls {
        let Some(at) = subject.before_apply(control) else {
            continue;
        };
        let (action, table) = (fresh("a"), fresh("t"));
        let text = match rng.below(3) {
            0 => format!("bit<8> {};\n    ", fresh("v")),
            1 => format!("action {action}(bit<8> x) {{ bit<8> y = x + 1; y = y * 2; }}\n    "),
            _ => format!(
                "action {action}() {{ }}\n    table {table} {{ key = {{ 8w1: exact @name(\"k\"); }} \
                 actions = {{ {action}; }} const default_action = {action}(); }}\n    "
            ),
        };
        // A table that is never applied needs the match kinds that core.p4 declares.
        if declaration.span.lo as usize > first {
            edits.push(Edit::insert(at, text));
        }
    }
    Some(edits)
}

fn global(rng: &mut Rng, fresh: &mut dyn FnMut(&'static str) -> String) -> String {
    let name = fresh("u");
    match rng.below(5) {
        0 => format!("struct {name} {{ bit<8> a; bool b; }}\n"),
        1 => format!("header {name} {{ bit<8> a; int<8> b; }}\n"),
        2 => format!("bit<8> {name}(in bit<8> x) {{ if (x == 0) {{ return 1; }} return x |+| 3; }}\n"),
        3 => format!("control {name}(inout bit<8> x) {{ apply {{ x = x ^ 1; }} }}\n"),
        _ => format!("const bit<8> {name} = 1 + 2;\ntypedef bit<8> {};\n", fresh("u")),
    }
}

/// A variable that nothing reads, at the start of a body.
pub(super) fn unused_variable(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let bodies = context.nodes.controls.iter().map(|(_, c)| c.apply.span.lo);
    let actions = context.nodes.actions.iter().map(|(_, a, _)| a.body.span.lo);
    let states = context.nodes.states().filter(|s| subject.plain(s.span).is_some());
    let states = states.filter_map(|s| Some(subject.find(s.name.span.hi, "{")?.lo as u32));
    let is_brace = |at: &u32| subject.find(*at, "{").is_some_and(|t| t.lo as u32 == *at);
    let found: Vec<u32> = bodies
        .chain(actions)
        .chain(states)
        .filter(is_brace)
        .map(|at| at + 1)
        .collect();
    let mut count = 0;
    let mut edits = Vec::new();
    for at in some(rng, found)? {
        let name = subject.fresh("v", &mut count);
        edits.push(Edit::insert(at, format!(" bit<16> {name} = 7; {name} = {name} + 1; ")));
    }
    Some(edits)
}

/// Whether annotations were added before: one with a structure may stand only once.
fn is_annotated(annotations: &[Annotation]) -> bool {
    annotations.iter().any(|a| a.name.name.starts_with("mm_"))
}

/// Declarations that annotations can stand before, and annotations that mean nothing.
pub(super) fn annotate(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let declarations = context.nodes.declarations.iter().filter(|(d, _)| {
        let takes = !matches!(d.kind, DeclarationKind::Error(_) | DeclarationKind::MatchKind(_));
        takes && !is_annotated(&d.annotations) && context.subject.plain(d.span).is_some()
    });
    let states = context.nodes.states().filter(|s| !is_annotated(&s.annotations));
    let states = states.map(|s| s.span);
    let found: Vec<_> = declarations.map(|(d, _)| d.span).chain(states).collect();
    let annotations = [
        "@mm_plain ",
        "@mm_text(\"a\", b, 1 + {}) ",
        "@mm_list[1, 2] ",
        "@mm_pairs[a=1, b=\"c\"] ",
    ];
    let chosen = some(rng, found.into_iter().filter(|s| context.subject.is_own(*s)).collect())?;
    let edits = chosen.into_iter().map(|span| {
        let text = if rng.chance(20) {
            "@pragma mm_words a \"b\" 3\n"
        } else {
            rng.one(annotations)
        };
        Edit::insert(span.lo, text)
    });
    Some(edits.collect())
}
