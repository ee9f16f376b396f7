//! Entries compiled to words: value, mask, range bounds, rank.

use crate::entry::Entry;
use crate::fast::layout::{FieldSlot, KeyLayout};
use crate::spec::TableSpec;
use std::sync::Arc;
use weir_ir::{KeyMatch, MatchKind};

/// Order of precedence in two words; the larger wins. See `Entry::rank`.
pub(super) type RankWords = (u64, u64);

/// An entry in the form in which structures store and compare it.
#[derive(Debug, Clone, Default)]
pub(super) struct Rule {
    /// The entry's handle.
    pub(super) handle: u32,
    /// Key words; 0 wherever the mask is 0.
    pub(super) value: Vec<u64>,
    /// Bits that are compared. Bits of range keys are excluded.
    pub(super) mask: Vec<u64>,
    /// Lower and upper bound per range key, each in as many words as the key takes.
    pub(super) bounds: Vec<u64>,
    /// Sum of the prefix lengths.
    pub(super) prefix: u32,
    /// Precedence among overlapping rules.
    pub(super) rank: RankWords,
}

/// Compiles entries to rules, by a table's match keys.
#[derive(Debug, Clone)]
pub(super) struct RuleEncoder {
    /// Where each match key lies in the key words, and how it is compared.
    fields: Vec<(FieldSlot, MatchKind)>,
    /// Words of a key.
    pub(super) words: usize,
    /// The range keys.
    pub(super) ranges: Arc<[FieldSlot]>,
}

impl RuleEncoder {
    pub(super) fn new(spec: &TableSpec, layout: &KeyLayout) -> Self {
        let slots = layout.fields.iter().zip(&spec.keys);
        let fields: Vec<_> = slots.filter_map(|(slot, key)| slot.map(|s| (s, key.kind))).collect();
        let ranges = fields.iter().filter(|(_, k)| *k == MatchKind::Range);
        RuleEncoder {
            ranges: ranges.map(|(s, _)| *s).collect(),
            words: layout.words,
            fields,
        }
    }

    /// Words that a rule's bounds take.
    pub(super) fn bound_words(&self) -> usize {
        self.ranges.iter().map(|s| 2 * s.words()).sum()
    }

    /// Compiles an entry into `rule`. False: it does not fit the table, and cannot match.
    pub(super) fn encode(&self, entry: &Entry, rule: &mut Rule) -> bool {
        if entry.matches.len() != self.fields.len() {
            return false;
        }
        rule.handle = entry.handle.get();
        for words in [&mut rule.value, &mut rule.mask] {
            words.clear();
            words.resize(self.words, 0);
        }
        rule.bounds.clear();
        rule.prefix = 0;
        let all = self.fields.iter().zip(&entry.matches);
        for ((slot, kind), m) in all {
            if !field(slot, *kind, m, rule) {
                return false;
            }
        }
        rule.rank = (
            u64::from(entry.priority) << 32 | u64::from(rule.prefix),
            !entry.sequence,
        );
        true
    }
}

/// Adds one match to a rule.
fn field(slot: &FieldSlot, kind: MatchKind, m: &KeyMatch, rule: &mut Rule) -> bool {
    match (kind, m) {
        (MatchKind::Exact, KeyMatch::Exact(value)) | (MatchKind::Optional, KeyMatch::Optional(Some(value))) => {
            slot.write(&mut rule.value, value);
            slot.write_prefix_mask(&mut rule.mask, slot.width);
            value.width() == slot.width
        }
        (MatchKind::Optional, KeyMatch::Optional(None)) => true,
        (MatchKind::Lpm, KeyMatch::Lpm { value, prefix_length }) => {
            slot.write(&mut rule.value, value);
            slot.write_prefix_mask(&mut rule.mask, *prefix_length);
            rule.prefix += prefix_length;
            value.width() == slot.width && *prefix_length <= slot.width
        }
        (MatchKind::Ternary, KeyMatch::Ternary { value, mask }) => {
            slot.write(&mut rule.value, value);
            slot.write(&mut rule.mask, mask);
            value.width() == slot.width && mask.width() == slot.width
        }
        (MatchKind::Range, KeyMatch::Range { low, high }) => {
            for bound in [low, high] {
                let start = rule.bounds.len();
                rule.bounds.resize(start + slot.words(), 0);
                if slot.words() > 0 {
                    bound.to_words(&mut rule.bounds[start..]);
                }
            }
            low.width() == slot.width && high.width() == slot.width
        }
        _ => false,
    }
}

/// Whether the range keys lie within the bounds. `key` and `bound` give words by number.
#[inline]
pub(super) fn in_bounds(ranges: &[FieldSlot], key: impl Fn(usize) -> u64, bound: impl Fn(usize) -> u64) -> bool {
    let mut bound_index = 0;
    for slot in ranges {
        let words = slot.words();
        let first = usize::from(slot.word);
        let inside = match words {
            0 => true,
            1 => {
                let value = key(first) >> slot.shift & (u64::MAX >> (64 - slot.width));
                bound(bound_index) <= value && value <= bound(bound_index + 1)
            }
            _ => {
                let value = |i: usize| key(first + i);
                !less(words, value, |i| bound(bound_index + i))
                    && !less(words, |i| bound(bound_index + words + i), value)
            }
        };
        if !inside {
            return false;
        }
        bound_index += 2 * words;
    }
    true
}

/// Whether `a < b`, both with the least significant word first.
fn less(words: usize, a: impl Fn(usize) -> u64, b: impl Fn(usize) -> u64) -> bool {
    for i in (0..words).rev() {
        if a(i) != b(i) {
            return a(i) < b(i);
        }
    }
    false
}
