//! `@symmetric("a", "b")` on a hash: it is the same if the two fields are exchanged.
//!
//! The smaller one is hashed first. The chip makes such a hash differently; no program can tell, as
//! it publishes no
//! values of it.

use super::Lowerer;
use weir_ir::{AnnotationBody, ArgumentValue, BinaryOp, ExternId, InLeaf, Operand};
use weir_syntax::diagnostic::Diagnostic;
use weir_syntax::source::Span;

/// Two fields by the names that the annotation gives them, and the call that hashes them.
pub(super) struct Pair {
    first: String,
    second: String,
    call: Span,
}

impl Lowerer<'_, '_> {
    /// The pairs that annotations of an instance name. Others are warned of: those that are no
    /// pair, or name a field
    /// that another pair has.
    pub(super) fn symmetric_pairs(&mut self, id: ExternId, call: Span) -> Vec<Pair> {
        let annotations = self.program.externs[id].annotations.iter();
        let of_tokens = |a: &weir_ir::Annotation| match &a.body {
            AnnotationBody::Text { tokens, .. } => tokens.iter().filter(|t| *t != ",").cloned().collect(),
            AnnotationBody::Empty | AnnotationBody::Expressions(_) | AnnotationBody::KeyValues(_) => Vec::new(),
        };
        let lists: Vec<Vec<String>> = annotations.filter(|a| a.name == "symmetric").map(of_tokens).collect();
        let mut pairs: Vec<Pair> = Vec::new();
        for list in lists {
            let is_taken = |name: &String| pairs.iter().any(|p| p.first == *name || p.second == *name);
            match list.as_slice() {
                [first, second] if first != second && !is_taken(first) && !is_taken(second) => pairs.push(Pair {
                    first: first.clone(),
                    second: second.clone(),
                    call,
                }),
                _ => {
                    let text =
                        "this hash is not symmetric as its @symmetric says: it takes two fields, each in one pair";
                    let warning = Diagnostic::warning("symmetric", call, text);
                    self.diagnostics
                        .push(warning.help("write `@symmetric(\"hdr.a.src\", \"hdr.a.dst\")`"));
                }
            }
        }
        pairs
    }

    /// The argument with the fields of each pair in order of their values.
    pub(super) fn in_canonical_order(&mut self, value: ArgumentValue, pairs: &[Pair]) -> ArgumentValue {
        let ArgumentValue::In(mut leaves) = value else {
            return value;
        };
        let original = leaves.clone();
        for pair in pairs {
            let value = |s: &Self, name: &str| match s.leaf_named(&original, name).map(|i| (i, &original[i])) {
                Some((i, InLeaf::Value(operand))) => Some((i, operand.clone())),
                Some((_, InLeaf::Header(_))) | None => None,
            };
            let both = value(self, &pair.first).zip(value(self, &pair.second));
            let Some(((i, a), (j, b))) = both.filter(|((_, a), (_, b))| self.width_of(a) == self.width_of(b)) else {
                self.warn_asymmetric(pair, &original);
                continue;
            };
            let in_order = self.binary(BinaryOp::Lt, a.clone(), b.clone(), 1);
            leaves[i] = InLeaf::Value(self.mux(in_order.clone(), a.clone(), b.clone()));
            leaves[j] = InLeaf::Value(self.mux(in_order, b, a));
        }
        ArgumentValue::In(leaves)
    }

    /// Warns of a pair that a call of the instance does not hash.
    fn warn_asymmetric(&mut self, pair: &Pair, leaves: &[InLeaf]) {
        let missing = if self.leaf_named(leaves, &pair.first).is_some() {
            &pair.second
        } else {
            &pair.first
        };
        let text = format!(
            "this hash is not symmetric: there is no field `{missing}`, which its @symmetric names, or the two differ in width"
        );
        let warning = Diagnostic::warning("symmetric", pair.call, text);
        self.diagnostics
            .push(warning.help("name both fields as they are written in the call"));
    }

    /// Which of the leaves is the field with this name, whatever the parameter is called that it is
    /// part of.
    fn leaf_named(&self, leaves: &[InLeaf], name: &str) -> Option<usize> {
        let below = |name: &str| {
            name.split_once('.')
                .map_or(name.to_owned(), |(_, rest)| rest.to_owned())
        };
        leaves.iter().position(|leaf| match leaf {
            InLeaf::Value(Operand::Var(v)) => {
                let known = &self.program.vars[*v].name;
                known == name || below(known) == below(name)
            }
            InLeaf::Value(Operand::Const(_)) | InLeaf::Header(_) => false,
        })
    }
}
