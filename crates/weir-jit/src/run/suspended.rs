//! Packets that leave a vector to wait for an extern, and the contexts with which they come back.
//!
//! A context is what is live after the suspension point: rows of the context matrix, in an order
//! that the compiler has fixed. Varbits are an address within the packet, which may lie elsewhere
//! when the packet comes back; so a context holds them relative to the packet's beginning.

use super::matrix::ContextMatrix;
use super::{Host, LoadedVector};
use crate::analysis::Analysis;
use crate::compile::Compiled;
use crate::layout::{Layout, PointKind, ROW_LENGTH, ROW_PACKET, ROW_STRIDE, VECTOR};
use std::sync::{Arc, Weak};
use weir_ir::passes::VarSet;
use weir_table::fast::{FastTable, Guard};

/// The rows of a context at a suspension point.
#[derive(Debug, Clone)]
pub(crate) struct ContextRows {
    /// The rows, each a word of the context.
    pub rows: Vec<usize>,
    /// Which of them hold addresses in the packet.
    pub addresses: Vec<bool>,
    /// The parser's position in bits.
    cursor: Cursor,
}

/// Where the parser's position at a suspension point is found.
#[derive(Debug, Clone, Copy)]
enum Cursor {
    /// It is always this one.
    Constant(u32),
    /// In this row.
    Row(usize),
}

impl ContextRows {
    /// For a suspension point.
    pub fn new(analysis: &Analysis<'_>, layout: &Layout, point: usize) -> Self {
        let mut context = ContextRows {
            rows: Vec::new(),
            addresses: Vec::new(),
            cursor: Cursor::Constant(0),
        };
        let PointKind::Suspend { block } = layout.points[point].kind else {
            return context;
        };
        let mut live = VarSet::new(analysis.vars.len());
        for next in analysis.pipeline.body.blocks[block].terminator.targets() {
            live.union(&analysis.live[next.index()]);
            let state = analysis.entry_states[next.index()].as_ref();
            context.cursor = match (state.and_then(|s| s.cursor), layout.rows[analysis.cursor.index()]) {
                (Some(bits), _) => Cursor::Constant(bits),
                (None, Some(row)) => Cursor::Row(row),
                (None, None) => unreachable!("a position that varies is saved at the point"),
            };
        }
        let saved = layout.points[point].saved.iter().copied();
        let wide = live.iter().filter(|v| !analysis.vars[v.index()].is_narrow());
        let inputs = analysis.pipeline.inputs.iter().copied();
        let inputs = inputs.filter(|v| analysis.constant_inputs.contains(*v));
        for var in saved.chain(wide).chain(inputs) {
            let Some(first) = layout.rows[var.index()] else {
                continue;
            };
            let info = analysis.vars[var.index()];
            let words = if info.is_narrow() { 1 } else { info.home_words() };
            for word in 0..words {
                context.rows.push(first + word);
                // A varbit is its length and its address.
                context.addresses.push(info.varbit && word == 1);
            }
        }
        context
    }
}

/// The context of a packet that waits for an extern. Its memory is used again by the next
/// [`Suspended::save`].
#[derive(Debug, Default)]
pub struct SavedContext {
    /// The code that it belongs to.
    compiled: Weak<Compiled>,
    point: usize,
    /// Bytes that the packet must have at least: what the parser has extracted.
    min_length: usize,
    words: Vec<u64>,
}

impl SavedContext {
    /// With room for this many words ([`Compiled::max_context_words`]).
    #[must_use]
    pub fn with_capacity(words: usize) -> Self {
        SavedContext {
            words: Vec::with_capacity(words),
            ..SavedContext::default()
        }
    }

    /// The suspension point that it was saved at.
    #[must_use]
    pub fn point(&self) -> usize {
        self.point
    }

    /// Whether it belongs to this code.
    #[must_use]
    pub fn is_of(&self, compiled: &Arc<Compiled>) -> bool {
        std::ptr::eq(self.compiled.as_ptr(), Arc::as_ptr(compiled))
    }
}

/// Packets that wait at a suspension point.
pub struct Suspended<'a> {
    pub(super) point: usize,
    pub(super) slots: u64,
    pub(super) compiled: &'a Arc<Compiled>,
    pub(super) context: &'a ContextMatrix,
}

impl Suspended<'_> {
    /// The slots of the packets.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.slots
    }

    /// The packet of one of the slots, as it is now.
    ///
    /// # Panics
    /// The slot is none of [`Suspended::slots`].
    #[must_use]
    pub fn packet(&self, slot: usize) -> &[u8] {
        assert!(
            slot < VECTOR && self.slots >> slot & 1 == 1,
            "the slot waits at the point"
        );
        let [packet, length] = [ROW_PACKET, ROW_LENGTH].map(|row| self.context[row * ROW_STRIDE + slot]);
        // SAFETY: the packets of these slots are in the vector, so that the rows are as `load`
        // wrote them: address and length of a frame, which the run borrows mutably. No code runs.
        unsafe { std::slice::from_raw_parts(packet as *const u8, length as usize) }
    }

    /// Saves the context of one of the slots.
    ///
    /// # Panics
    /// The slot is none of [`Suspended::slots`].
    pub fn save(&self, slot: usize, to: &mut SavedContext) {
        // Rows of other slots are stale: they hold addresses and indices of other packets.
        assert!(
            slot < VECTOR && self.slots >> slot & 1 == 1,
            "the slot waits at the point"
        );
        let rows = &self.compiled.schedule.contexts[self.point];
        let word = |row: usize| self.context[row * ROW_STRIDE + slot];
        let packet = word(ROW_PACKET);
        // Weak references are counted by atomic operations, so it is replaced only if it must be.
        if !to.is_of(self.compiled) {
            to.compiled = Arc::downgrade(self.compiled);
        }
        to.point = self.point;
        to.min_length = match rows.cursor {
            Cursor::Constant(bits) => bits as usize / 8,
            Cursor::Row(row) => word(row) as usize / 8,
        };
        to.words.clear();
        let words = rows.rows.iter().zip(&rows.addresses);
        to.words.extend(words.map(|(row, is_address)| match is_address {
            true => word(*row).wrapping_sub(packet),
            false => word(*row),
        }));
    }
}

impl LoadedVector<'_, '_> {
    /// Continues packets after the suspension point where their contexts were saved: the context
    /// of frame `i` is the `i`th. A packet may lie elsewhere and have another payload than then;
    /// what the parser has extracted must be the same. Otherwise as [`LoadedVector::run`]; inputs
    /// need not be set.
    ///
    /// # Panics
    /// As [`LoadedVector::run`]. There are more or fewer contexts than frames, contexts of other
    /// code or of several suspension points, or a packet is shorter than what was extracted from
    /// it.
    pub fn resume<'c>(
        self,
        contexts: impl IntoIterator<Item = &'c SavedContext>,
        tables: &[Arc<FastTable>],
        guard: &Guard<'_>,
        host: &mut impl Host,
        now_ns: u64,
    ) -> usize {
        let mut point = None;
        let mut count = 0;
        let compiled = Arc::clone(&self.machine.compiled);
        for (slot, saved) in contexts.into_iter().enumerate() {
            assert!(saved.is_of(&compiled), "a context belongs to the code that saved it");
            assert!(*point.get_or_insert(saved.point) == saved.point, "all are of one point");
            let length = self.frames.get(slot).map(super::Frame::length);
            assert!(length >= Some(saved.min_length), "what was extracted is still there");
            let rows = &compiled.schedule.contexts[saved.point];
            let context = &mut self.machine.memory.context;
            let packet = context[ROW_PACKET * ROW_STRIDE + slot];
            let words = rows.rows.iter().zip(&rows.addresses).zip(&saved.words);
            for ((row, is_address), word) in words {
                context[row * ROW_STRIDE + slot] = match is_address {
                    true => word.wrapping_add(packet),
                    false => *word,
                };
            }
            count += 1;
        }
        assert!(count == self.frames.len(), "every frame has a context");
        match point {
            Some(point) => self.run_from(point, tables, guard, host, now_ns),
            None => 0,
        }
    }
}
