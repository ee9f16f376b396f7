//! Rewrites of what stands between tokens.

use super::Context;
use crate::metamorphic::text::Edit;
use crate::metamorphic::tokens::TokenKind;
use crate::rng::Rng;

/// Comments and line breaks after tokens that end something.
pub(super) fn comments(context: &Context<'_>, rng: &mut Rng) -> Option<Vec<Edit>> {
    let subject = context.subject;
    let mut edits = Vec::new();
    for (i, token) in subject.tokens.iter().enumerate() {
        let next = subject.tokens.get(i + 1);
        // A directive ends with its line, and the text of an annotation is part of its meaning.
        let is_free = token.kind != TokenKind::Directive && !token.in_annotation;
        let is_free = is_free && next.is_none_or(|t| t.kind != TokenKind::Directive && !t.in_annotation);
        let ends = [";", "{", "}", ",", "(", ")"].contains(&subject.token(token));
        if is_free && ends && rng.chance(25) {
            let text = rng.one(["\n", " /* a comment; { */ ", "\t// another }\n", "\r\n   ", "/**/"]);
            edits.push(Edit::insert(token.hi as u32, text));
        }
    }
    (!edits.is_empty()).then_some(edits)
}
