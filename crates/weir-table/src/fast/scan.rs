//! Few rules with any masks and ranges: compared one after the other, by falling rank. The view is
//! immutable, and every change publishes a new one.
#![allow(unsafe_code)]

use crate::fast::layout::FieldSlot;
use crate::fast::mem::{Arena, Directory, Record};
use crate::fast::rule::{RankWords, Rule, RuleEncoder, in_bounds};
use crate::fast::vector_lookup::VectorLookup;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Readers' view; it is replaced as a whole.
#[derive(Debug)]
pub(super) struct ScanView {
    /// Words of a key.
    key_words: usize,
    /// Words of a rule's range bounds.
    bound_words: usize,
    /// Per rule the mask, then the value.
    words: Vec<u64>,
    /// Per rule the range bounds.
    bounds: Vec<u64>,
    /// Per rule its record.
    records: Vec<NonNull<AtomicU64>>,
    ranges: Arc<[FieldSlot]>,
    /// Keeps the records alive.
    _directory: Arc<Directory>,
}

// SAFETY: the pointers go to atomics that `_directory` keeps alive.
unsafe impl Send for ScanView {}
// SAFETY: the pointers go to atomics that `_directory` keeps alive; atomics may be shared, and
// nothing else is changed.
unsafe impl Sync for ScanView {}

impl ScanView {
    #[inline(always)]
    pub(super) fn lookup(&self, vector: &mut VectorLookup<'_>) -> u64 {
        let (mut hits, vector) = (0, *vector);
        // A loop, not a closure: a closure of this size would not be inlined, and so be compiled
        // without the caller's target features.
        let mut rest = vector.active;
        while rest != 0 {
            let (slot, bit) = (rest.trailing_zeros() as usize, rest & rest.wrapping_neg());
            rest ^= bit;
            // SAFETY: the slot is active; records have the table's record layout.
            match self.winner(|word| unsafe { vector.key(word, slot) }) {
                Some(record) => {
                    hits |= bit;
                    // SAFETY: the slot is active, and the rule's record has the table's record
                    // layout.
                    unsafe { vector.write_hit(slot, record) };
                }
                // SAFETY: the slot is active, and the default has the words of a result.
                None => unsafe { vector.write_result(slot, vector.default) },
            }
        }
        hits
    }

    /// The record of the first rule, by falling rank, that matches a key.
    #[inline(always)]
    fn winner(&self, key: impl Fn(usize) -> u64) -> Option<NonNull<AtomicU64>> {
        let n = self.key_words;
        for (i, rule) in self.words.chunks_exact(2 * n).enumerate() {
            let (mask, value) = rule.split_at(n);
            let differ = (0..n).fold(0, |d, w| d | ((key(w) & mask[w]) ^ value[w]));
            if differ == 0 && in_bounds(&self.ranges, &key, |w| self.bounds[i * self.bound_words + w]) {
                return Some(self.records[i]);
            }
        }
        None
    }
}

/// The writer's side: rules by falling rank.
#[derive(Debug)]
pub(super) struct Scan {
    encoder: RuleEncoder,
    rules: Vec<(RankWords, Rule, Record)>,
}

impl Scan {
    pub(super) fn new(encoder: RuleEncoder) -> Self {
        Scan {
            encoder,
            rules: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    pub(super) fn bytes(&self) -> usize {
        let per_rule = self.encoder.words * 4 + self.encoder.bound_words() * 2;
        self.rules.len() * (per_rule * 8 + size_of::<(RankWords, Rule, Record)>())
    }

    /// Moves all rules out.
    pub(super) fn drain(&mut self) -> Vec<(RankWords, Rule, Record)> {
        std::mem::take(&mut self.rules)
    }

    /// The index of an entry's rule.
    fn position(&self, handle: u32) -> Option<usize> {
        self.rules.iter().position(|(_, r, _)| r.handle == handle)
    }

    /// Inserts a rule with its record, or replaces those of the same entry.
    pub(super) fn insert_rule(&mut self, arena: &mut Arena, rule: &Rule, rec: Record) {
        if let Some(index) = self.position(rule.handle) {
            arena.retire(self.rules.remove(index).2);
        }
        let index = self.rules.partition_point(|(rank, ..)| *rank > rule.rank);
        self.rules.insert(index, (rule.rank, rule.clone(), rec));
    }

    /// Removes a rule. True: readers need a new view.
    pub(super) fn remove_rule(&mut self, arena: &mut Arena, rule: &Rule) -> bool {
        let Some(index) = self.position(rule.handle) else {
            return false;
        };
        arena.retire(self.rules.remove(index).2);
        true
    }

    /// The record of an entry.
    pub(super) fn find(&self, handle: u32) -> Option<Record> {
        self.position(handle).map(|index| self.rules[index].2)
    }

    pub(super) fn view(&self, arena: &Arena) -> ScanView {
        let mut view = ScanView {
            key_words: self.encoder.words,
            bound_words: self.encoder.bound_words(),
            words: Vec::with_capacity(self.rules.len() * self.encoder.words * 2),
            bounds: Vec::new(),
            records: Vec::with_capacity(self.rules.len()),
            ranges: Arc::clone(&self.encoder.ranges),
            _directory: Arc::clone(arena.directory()),
        };
        for (_, rule, rec) in &self.rules {
            view.words.extend(&rule.mask);
            view.words.extend(&rule.value);
            view.bounds.extend(&rule.bounds);
            view.records.push(rec.words);
        }
        view
    }
}
