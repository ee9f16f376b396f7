//! The entries that the source gives a table.

use super::Lowerer;
use super::table::property;
use super::value::{TableState, Val};
use crate::types::Ty;
use num_traits::ToPrimitive;
use weir_ir::{Bits, KeyMatch, MatchKind, Operand};
use weir_syntax::ast::{self, Expr, ExprKind, TableEntry, TablePropertyValue};

/// The number of `@priority(n)` after an entry.
fn annotated_priority(entry: &TableEntry) -> Option<u32> {
    let annotation = entry.annotations.iter().find(|a| &*a.name.name == "priority")?;
    let ast::AnnotationBody::Unstructured(tokens) = &annotation.body else {
        return None;
    };
    tokens.iter().find_map(|t| match &t.kind {
        ast::AnnotationTokenKind::Integer(v) => v.to_u32(),
        _ => None,
    })
}

impl<'a> Lowerer<'a, '_> {
    pub(super) fn table_entries(&mut self, state: &TableState, ast: &'a ast::Table) {
        let Some(p) = property(ast, "entries") else { return };
        let TablePropertyValue::Entries(entries) = &p.value else {
            return;
        };
        let kinds: Vec<(MatchKind, Ty)> = match property(ast, "key").map(|p| &p.value) {
            Some(TablePropertyValue::Key(elements)) => elements
                .iter()
                .zip(
                    &self.program.tables[state.id]
                        .keys
                        .iter()
                        .map(|k| k.match_kind)
                        .collect::<Vec<_>>(),
                )
                .map(|(e, k)| (*k, self.ty(&e.expression)))
                .filter(|(k, _)| *k != MatchKind::Selector)
                .collect(),
            _ => Vec::new(),
        };
        let prioritised = kinds
            .iter()
            .any(|(k, _)| matches!(k, MatchKind::Ternary | MatchKind::Range | MatchKind::Optional));
        let priorities = if prioritised {
            self.priorities(ast, entries, p.is_const)
        } else {
            vec![0; entries.len()]
        };
        for (entry, priority) in entries.iter().zip(priorities) {
            let matches = self.entry_matches(entry, &kinds);
            let Some(&action) = self.checked.action_references.get(&std::ptr::from_ref(&entry.action)) else {
                continue;
            };
            let action = self.action_call(state, action, entry.action.arguments.as_deref().unwrap_or_default());
            let lowered = weir_ir::Entry {
                matches,
                action,
                priority,
                is_const: p.is_const || entry.is_const,
                annotations: self.annotations(&entry.annotations),
                loc: self.locate(entry.span),
            };
            self.program.tables[state.id].entries.push(lowered);
        }
        self.program.tables[state.id].const_entries = p.is_const;
    }

    /// Priorities as the IR has them, the larger wins. `const entries` go in source order; others
    /// have the number they are given, or count in steps of `priority_delta` (P4_16 1.2.5, section
    /// 14.2.1.4).
    pub(super) fn priorities(&mut self, ast: &'a ast::Table, entries: &'a [TableEntry], is_const: bool) -> Vec<u32> {
        let count = entries.len() as u32;
        if is_const {
            // In source order, but for the old `@priority(n)`: the smaller number goes first, and
            // an entry without one has its position for a number.
            let number = |(i, e): (usize, &TableEntry)| annotated_priority(e).unwrap_or(i as u32 + 1);
            let mut order: Vec<(u32, usize)> = entries.iter().enumerate().map(|(i, e)| (number((i, e)), i)).collect();
            order.sort();
            let mut priorities = vec![0; entries.len()];
            for (rank, (_, i)) in order.into_iter().enumerate() {
                priorities[i] = count - rank as u32;
            }
            return priorities;
        }
        let largest_wins = match property(ast, "largest_priority_wins").map(|p| &p.value) {
            Some(TablePropertyValue::Expression(e)) => match self.expr(e) {
                Val::Scalar(Operand::Const(c)) => !c.is_zero(),
                _ => true,
            },
            _ => true,
        };
        let delta = match property(ast, "priority_delta").map(|p| &p.value) {
            Some(TablePropertyValue::Expression(e)) => self.constant_u32(e),
            _ => 1,
        };
        let given: Vec<Option<u32>> = entries
            .iter()
            .map(|e| e.priority.as_ref().map(|p| self.constant_u32(p)))
            .collect();
        let mut numbers = vec![1u32; entries.len()];
        if given.iter().all(Option::is_none) && largest_wins {
            for (i, n) in numbers.iter_mut().enumerate() {
                *n = 1 + (count - 1 - i as u32).saturating_mul(delta);
            }
        } else {
            let mut previous: Option<u32> = None;
            for (n, given) in numbers.iter_mut().zip(&given) {
                *n = match (given, previous) {
                    (Some(p), _) => *p,
                    (None, None) => 1,
                    (None, Some(p)) if largest_wins => match p.checked_sub(delta) {
                        Some(p) => p,
                        None => {
                            self.error(
                                "overlimit",
                                ast.name.span,
                                format!(
                                    "the priorities of the entries of `{}` would become negative",
                                    ast.name.name
                                ),
                            );
                            return numbers;
                        }
                    },
                    (None, Some(p)) => p.saturating_add(delta),
                };
                previous = Some(*n);
            }
        }
        if largest_wins {
            return numbers;
        }
        // Turn the order round: the IR's larger priority wins.
        // Within 31 bits, which is what P4Runtime has for them.
        numbers
            .into_iter()
            .map(|n| (i32::MAX as u32).saturating_sub(n))
            .collect()
    }

    pub(super) fn entry_matches(&mut self, entry: &'a TableEntry, kinds: &[(MatchKind, Ty)]) -> Vec<KeyMatch> {
        let elements: Vec<Option<&'a Expr>> = match &entry.keyset.kind {
            ExprKind::List(elements) if elements.len() == kinds.len() => elements.iter().map(Some).collect(),
            ExprKind::Default | ExprKind::DontCare => vec![None; kinds.len()],
            _ => vec![Some(&entry.keyset)],
        };
        elements
            .into_iter()
            .zip(kinds)
            .map(|(e, &(kind, ty))| self.entry_match(e, kind, ty))
            .collect()
    }

    pub(super) fn entry_constant(&mut self, expr: &'a Expr, ty: Ty) -> Bits {
        let width = self.scalar_width(ty).unwrap_or(0);
        match self.expr_as(expr, ty) {
            Val::Scalar(Operand::Const(bits)) => bits.zero_extend(width),
            Val::Struct(parts) if parts.len() == 1 => match &parts[0].1 {
                Val::Scalar(Operand::Const(bits)) => bits.zero_extend(width),
                Val::Int(v) => Bits::from_bigint(width, v),
                _ => Bits::zero(width),
            },
            _ => {
                self.error("expected", expr.span, "the key of an entry must be a constant");
                Bits::zero(width)
            }
        }
    }

    pub(super) fn entry_match(&mut self, expr: Option<&'a Expr>, kind: MatchKind, ty: Ty) -> KeyMatch {
        let width = self.scalar_width(ty).unwrap_or(0);
        let anything = match kind {
            MatchKind::Lpm => KeyMatch::Lpm {
                value: Bits::zero(width),
                prefix_length: 0,
            },
            MatchKind::Range => KeyMatch::Range {
                low: Bits::zero(width),
                high: Bits::ones(width),
            },
            MatchKind::Optional => KeyMatch::Optional(None),
            _ => KeyMatch::Ternary {
                value: Bits::zero(width),
                mask: Bits::zero(width),
            },
        };
        let Some(expr) = expr else { return anything };
        match &expr.kind {
            ExprKind::Default | ExprKind::DontCare => anything,
            ExprKind::Mask(..) | ExprKind::Range(..) if matches!(kind, MatchKind::Exact) => {
                self.error("invalid", expr.span, "a key of kind exact needs one value");
                anything
            }
            ExprKind::Mask(value, mask) => {
                let (value, mask) = (self.entry_constant(value, ty), self.entry_constant(mask, ty));
                let value = value.and(&mask);
                match kind {
                    MatchKind::Lpm => {
                        let prefix_length = (0..width).rev().take_while(|&i| mask.bit(i)).count() as u32;
                        KeyMatch::Lpm { value, prefix_length }
                    }
                    _ => KeyMatch::Ternary { value, mask },
                }
            }
            ExprKind::Range(low, high) => {
                let (low, high) = (self.entry_constant(low, ty), self.entry_constant(high, ty));
                KeyMatch::Range { low, high }
            }
            _ => {
                let value = self.entry_constant(expr, ty);
                match kind {
                    MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(value),
                    MatchKind::Lpm => KeyMatch::Lpm {
                        value,
                        prefix_length: width,
                    },
                    MatchKind::Ternary => KeyMatch::Ternary {
                        value,
                        mask: Bits::ones(width),
                    },
                    MatchKind::Range => KeyMatch::Range {
                        low: value.clone(),
                        high: value,
                    },
                    MatchKind::Optional => KeyMatch::Optional(Some(value)),
                }
            }
        }
    }
}
