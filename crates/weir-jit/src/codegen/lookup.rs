//! Emits lookups: keys into the context, results out of it.
//!
//! A lookup that suspends stores its key, and the segment after it loads the result. An inline
//! lookup continues in the same segment: its result was hoisted, or is read from an array here.

use super::{SegmentBuilder, env, flags};
use crate::layout::How;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use std::mem::offset_of;
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, Lookup, MatchKind, VarId};
use weir_table::fast::{FieldSlot, ResultArray};

/// The source of a lookup's result.
#[derive(Clone, Copy)]
enum ResultSource {
    /// Rows, from this one on.
    Row(usize),
    /// The record at an address.
    Record(Value),
}

/// Whether a field is the topmost one of its word.
pub(super) fn is_topmost<'a>(slot: FieldSlot, all: impl IntoIterator<Item = &'a FieldSlot>) -> bool {
    let mut all = all.into_iter();
    all.all(|s| s.word != slot.word || s.shift <= slot.shift)
}

impl SegmentBuilder<'_, '_> {
    /// Assigns the variables of a result with this head.
    fn unpack_result(&mut self, result: ResultSource, head: Value, lookup: &Lookup, live: &VarSet) {
        let cx = self.cx;
        let part = |s: &mut Self, var: VarId, shift: u64, width: u32| {
            s.written.insert(var);
            if live.contains(var) {
                let shifted = s.shr_imm(head, shift);
                let value = s.mask(shifted, width);
                s.set(var, value);
            }
        };
        part(self, lookup.hit, 48, 1);
        let layout = &cx.tables[lookup.table.index()].1;
        part(self, lookup.action, 32, layout.action_width);
        part(self, lookup.entry, 0, 32);
        let table = &cx.analysis.program().tables[lookup.table];
        for (action, slots) in table.actions.iter().zip(&layout.actions) {
            for (&var, slot) in action.parameters.iter().zip(slots) {
                self.written.insert(var);
                if !live.contains(var) {
                    continue;
                }
                let first = usize::from(slot.word);
                if cx.analysis.vars[var.index()].is_narrow() {
                    let word = self.result_word(result, first);
                    // Above an action's data its words are 0. If another action was hit, the words
                    // hold that action's data, and the parameter is not read.
                    let value = self.field_of_word(word, *slot, slot.word > 0 && is_topmost(*slot, slots));
                    self.set(var, value);
                } else if let Some(home) = cx.layout.rows[var.index()] {
                    for i in 0..slot.words() {
                        let word = self.result_word(result, first + i);
                        self.store_row(home + i, word);
                    }
                }
            }
        }
    }

    /// A field of a word of a key or result. `is_alone`: the word is 0 above it, or the field is
    /// not read.
    pub(super) fn field_of_word(&mut self, word: Value, slot: FieldSlot, is_alone: bool) -> Value {
        let shifted = self.shr_imm(word, slot.shift.into());
        match is_alone && slot.width > 0 {
            true => self.bounded(shifted, u64::MAX >> 64_u32.saturating_sub(slot.width)),
            false => self.mask(shifted, slot.width),
        }
    }

    /// Assigns the variables of the result that begins in a row.
    pub(super) fn load_result(&mut self, result_row: usize, lookup: &Lookup, live: &VarSet) {
        let head = self.load_row(result_row);
        self.unpack_result(ResultSource::Row(result_row), head, lookup, live);
    }

    fn result_word(&mut self, result: ResultSource, word: usize) -> Value {
        match result {
            ResultSource::Row(first) => self.load_row(first + word),
            ResultSource::Record(record) => {
                let fixed = flags().with_readonly();
                self.b.ins().load(types::I64, fixed, record, (word * 8) as i32)
            }
        }
    }

    pub(super) fn lookup(&mut self, id: BlockId, lookup: &Lookup) {
        let cx = self.cx;
        if let Some(&site) = cx.layout.inline_of_block.get(&id) {
            return self.inline_lookup(site, lookup);
        }
        let point_index = cx.layout.point_of_block[&id];
        let point = &cx.layout.points[point_index];
        let mut words = self.key_words(lookup, point.key_row, point.selector_row);
        for &site in &point.hoisted {
            words.extend(self.hoisted_key(site));
        }
        self.suspend_with(point_index, words);
    }

    /// Prepares code generation for a block that ends in a lookup: notes its destination, or the
    /// variables that it writes.
    pub(super) fn prepare_lookup(&mut self, id: BlockId, lookup: &Lookup) {
        if !self.cx.layout.inline_of_block.contains_key(&id) {
            return self.add_destination(self.cx.layout.point_of_block[&id]);
        }
        let table = &self.cx.analysis.program().tables[lookup.table];
        let parameters = table.actions.iter().flat_map(|a| &a.parameters);
        for var in [lookup.hit, lookup.action, lookup.entry].iter().chain(parameters) {
            self.written.insert(*var);
        }
    }

    /// A lookup at which no packet waits.
    fn inline_lookup(&mut self, site: usize, lookup: &Lookup) {
        let site = self.cx.layout.inline_lookups[site];
        let (result, head) = match site.how {
            How::Hoisted {
                result_row, executed, ..
            } => {
                if let Some(executed) = executed {
                    self.set_tally_bit(self.sites.executed_mask(executed));
                }
                (ResultSource::Row(result_row), self.load_row(result_row))
            }
            How::Array { number, outcome_row } => {
                let result = ResultSource::Record(self.array_lookup(number, lookup));
                let head = self.result_word(result, 0);
                self.store_row(outcome_row, head);
                (result, head)
            }
        };
        let live = &self.cx.analysis.live[lookup.next.index()];
        self.unpack_result(result, head, lookup, live);
        let next = self.blocks[&lookup.next];
        self.b.ins().jump(next, &[]);
    }

    /// The address of the result that an array has for a key ([`weir_table::fast::ResultArray`]).
    fn array_lookup(&mut self, number: usize, lookup: &Lookup) -> Value {
        let fixed = flags().with_readonly().with_can_move();
        let arrays = self.b.ins().load(types::I64, fixed, self.env, env::ARRAYS);
        let array = (number * size_of::<ResultArray>()) as i32;
        let default = array + offset_of!(ResultArray, default) as i32;
        let default = self.b.ins().load(types::I64, fixed, arrays, default);
        let [(_, key)] = self.key_words(lookup, 0, 0)[..] else {
            unreachable!("arrays have keys of one word")
        };
        if lookup.keys.is_empty() {
            return default;
        }
        let places = array + offset_of!(ResultArray, results) as i32;
        let places = self.b.ins().load(types::I64, fixed, arrays, places);
        let offset = self.shl_imm(key, 3);
        let place = self.b.ins().iadd(places, offset);
        let record = self.b.ins().load(types::I64, flags().with_readonly(), place, 0);
        self.b.ins().select(record, record, default)
    }

    /// The key of a lookup that is hoisted to this point, with its rows.
    fn hoisted_key(&mut self, site: usize) -> Vec<(usize, Value)> {
        let cx = self.cx;
        let Some((id, lookup)) = cx.layout.lookup_of_inline(cx.analysis, site) else {
            return Vec::new();
        };
        let Some(later) = cx.analysis.states(id).pop() else {
            return Vec::new();
        };
        let site = &cx.layout.inline_lookups[site];
        let How::Hoisted { key_row, .. } = site.how else {
            return Vec::new();
        };
        let selector_row = key_row + cx.tables[site.table.index()].0.words;
        // The key is read in the state of the lookup's own block. That is the read that liveness
        // counts, whether of a variable or of a header's offset.
        let state = std::mem::replace(&mut self.state, later);
        let words = self.key_words(lookup, key_row, selector_row);
        self.state = state;
        words
    }

    /// The words of a lookup's key, including selector keys, and their rows.
    fn key_words(&mut self, lookup: &Lookup, key_row: usize, selector_row: usize) -> Vec<(usize, Value)> {
        let cx = self.cx;
        let layout = &cx.tables[lookup.table.index()].0;
        let table = &cx.analysis.program().tables[lookup.table];
        let mut words: Vec<Option<Value>> = vec![None; layout.words];
        let mut selector = Vec::new();
        for ((key, slot), spec) in lookup.keys.iter().zip(&layout.fields).zip(&table.keys) {
            match slot {
                Some(slot) if slot.width == 0 => {}
                Some(slot) if slot.width <= 64 => {
                    let value = self.value(key);
                    let shifted = self.shl_imm(value, slot.shift.into());
                    let word = &mut words[usize::from(slot.word)];
                    *word = Some(match *word {
                        None => shifted,
                        Some(w) => self.b.ins().bor(w, shifted),
                    });
                }
                Some(slot) => {
                    for i in 0..slot.words() {
                        words[usize::from(slot.word) + i] = Some(self.word(key, i));
                    }
                }
                None => {
                    debug_assert_eq!(spec.match_kind, MatchKind::Selector);
                    for i in 0..spec.width.div_ceil(64).max(1) as usize {
                        selector.push((selector_row + selector.len(), self.word(key, i)));
                    }
                }
            }
        }
        let words = words.into_iter().map(|w| w.unwrap_or_else(|| self.imm(0)));
        (key_row..).zip(words).chain(selector).collect()
    }
}
