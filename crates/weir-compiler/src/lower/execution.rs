//! `@async` and `@sync`: whether packets may wait for an extern call.
//!
//! A call has the annotation of the innermost annotated block around it, also where the block is in
//! the action or control that calls it. Without one it has that of the extern's declaration.

use super::Lowerer;
use crate::check::DefKind;
use weir_ir::{AsyncCall, CompletionOrder, Execution, WhenFull};
use weir_syntax::ast::{self, AnnotationTokenKind, Block};
use weir_syntax::source::Span;

/// The annotated block that encloses what is lowered.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnclosingBlock {
    execution: Execution,
    /// The names of a deparser or a parser, if the annotation has any.
    blocks: Option<Span>,
    has_call: bool,
}

/// What an annotation says.
struct Annotated {
    execution: Execution,
    blocks: Option<Span>,
}

impl<'a> Lowerer<'a, '_> {
    /// Lowers a block that may be annotated.
    pub(super) fn annotated_block(&mut self, block: &'a Block) {
        let Some(annotated) = self.annotated(&block.annotations) else {
            self.statements(block);
            return;
        };
        let inside = EnclosingBlock {
            execution: annotated.execution,
            blocks: annotated.blocks,
            has_call: false,
        };
        let outside = self.enclosing.replace(inside);
        self.statements(block);
        let inside = std::mem::replace(&mut self.enclosing, outside);
        if inside.is_some_and(|b| !b.has_call)
            && let Some(annotation) = block.annotations.iter().find(|a| is_execution(a))
        {
            let text = format!("@{} needs an extern call in its block", annotation.name.name);
            self.error("invalid", annotation.span, text);
        }
    }

    /// Refuses `@async` and `@sync` where they have no meaning.
    pub(super) fn refuse_execution<'t>(&mut self, annotations: impl IntoIterator<Item = &'t ast::Annotation>) {
        let mut spans: Vec<_> = annotations
            .into_iter()
            .filter(|a| is_execution(a))
            .map(|a| (a.span, a.name.name.clone()))
            .collect();
        spans.sort_by_key(|(span, _)| span.lo);
        spans.dedup_by_key(|(span, _)| span.lo);
        for (span, name) in spans {
            let text = format!("@{name} stands at a block, or at the declaration of an extern function or method");
            self.error("invalid", span, text);
        }
    }

    /// How a call of an extern with these annotations is executed. `has_payload`: it has a
    /// parameter for the payload.
    pub(super) fn execution(&mut self, declaration: &[ast::Annotation], has_payload: bool) -> Execution {
        if let Some(block) = &mut self.enclosing {
            block.has_call = true;
            let (execution, blocks) = (block.execution, block.blocks);
            if let Some(span) = blocks.filter(|_| has_payload) {
                let text = "a deparser or parser around a call that accesses the payload is not supported: \
                            the payload begins behind the headers that were extracted";
                self.error("unsupported", span, text);
            }
            return execution;
        }
        self.annotated(declaration).map_or(Execution::Inline, |a| a.execution)
    }

    /// What the annotations of a block or declaration say; `None`: nothing.
    fn annotated(&mut self, list: &[ast::Annotation]) -> Option<Annotated> {
        let mut found = list.iter().filter(|a| is_execution(a));
        let annotation = found.next()?;
        if let Some(second) = found.next() {
            let text = format!("@{} stands beside @{}", second.name.name, annotation.name.name);
            self.error("duplicate", second.span, text);
        }
        if &*annotation.name.name == "sync" {
            if !is_empty(annotation) {
                self.error("invalid", annotation.span, "@sync takes no arguments");
            }
            return Some(Annotated {
                execution: Execution::Inline,
                blocks: None,
            });
        }
        let mut call = AsyncCall::default();
        let mut blocks = None;
        for (name, value) in self.settings(annotation) {
            match (&*name.text, &value.kind) {
                ("order", AnnotationTokenKind::Word) => match CompletionOrder::from_word(&value.text) {
                    Some(order) => call.order = order,
                    None => self.error("invalid", value.span, "the order is none, flow or port"),
                },
                ("full", AnnotationTokenKind::Word) => match WhenFull::from_word(&value.text) {
                    Some(full) => call.full = Some(full),
                    None => self.error("invalid", value.span, "the policy when full is inline, wait or drop"),
                },
                ("deparser" | "parser", AnnotationTokenKind::String) => {
                    blocks = Some(annotation.span);
                    self.require_block(name, value);
                }
                _ => {
                    let text = "@async takes `order=none|flow|port`, `full=inline|wait|drop`, \
                                `deparser=\"NAME\"` and `parser=\"NAME\"`";
                    self.error("invalid", name.span, text);
                }
            }
        }
        Some(Annotated {
            execution: Execution::Async(call),
            blocks,
        })
    }

    /// The `name = value` pairs of an annotation.
    fn settings<'t>(
        &mut self,
        annotation: &'t ast::Annotation,
    ) -> Vec<(&'t ast::AnnotationToken, &'t ast::AnnotationToken)> {
        let ast::AnnotationBody::Unstructured(tokens) = &annotation.body else {
            if !is_empty(annotation) {
                self.error("invalid", annotation.span, "@async takes its arguments in parentheses");
            }
            return Vec::new();
        };
        let parts = tokens.split(|t| &*t.text == "," && t.kind == AnnotationTokenKind::Punctuation);
        let mut pairs = Vec::new();
        for part in parts {
            match part {
                [name, equal, value] if &*equal.text == "=" => pairs.push((name, value)),
                [] if tokens.is_empty() => {}
                _ => {
                    let span = part.first().map_or(annotation.span, |t| t.span);
                    self.error("expected", span, "an argument of @async is `name=value`");
                }
            }
        }
        pairs
    }

    /// Checks that a deparser or parser exists.
    fn require_block(&mut self, role: &ast::AnnotationToken, name: &ast::AnnotationToken) {
        let found = self.checked.globals.get(&name.text).and_then(|defs| defs.first());
        let good = found.is_some_and(|&def| match (self.def_kind(def), &*role.text) {
            (DefKind::Parser { .. }, role) => role == "parser",
            (DefKind::Control { .. }, role) => role == "deparser",
            _ => false,
        });
        if !good {
            let text = format!("there is no {} `{}`", role.text, name.text);
            self.error("not-found", name.span, text);
        }
    }
}

fn is_execution(annotation: &ast::Annotation) -> bool {
    matches!(&*annotation.name.name, "async" | "sync")
}

fn is_empty(annotation: &ast::Annotation) -> bool {
    match &annotation.body {
        ast::AnnotationBody::Empty => true,
        ast::AnnotationBody::Unstructured(tokens) => tokens.is_empty(),
        ast::AnnotationBody::Expressions(_) | ast::AnnotationBody::KeyValues(_) => false,
    }
}
