//! Reads and writes variables, wherever they are: in the context, in the packet, or in registers.
//!
//! Narrow variables that the segment writes are Cranelift variables. Those that it does not write
//! have a [`ValueSource`], from which each use loads them. Wide variables stay in their home rows.

use super::lookup::is_topmost;
use super::{SegmentBuilder, env, flags};
use crate::analysis::{Remat, field_offsets};
use crate::layout::{How, PointKind, ROW_STRIDE};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use weir_ir::{BlockId, HeaderId, Operand, Terminator, VarId};
use weir_table::fast::FieldSlot;

/// The source of a variable that the segment does not write.
#[derive(Debug, Clone, Copy)]
pub(super) enum ValueSource {
    /// This row of the context.
    Row(usize),
    /// The packet, from this bit on.
    Packet(u32),
    /// The packet, at this bit after the header's start, if the header is valid; otherwise it is
    /// 0.
    IfValid(HeaderId, u32),
}

/// A variable's copy in a hoisted key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyCopy {
    /// The row of the word.
    row: usize,
    slot: FieldSlot,
    /// All bits above it in the word are 0.
    is_alone: bool,
}

impl SegmentBuilder<'_, '_> {
    /// Binds the variables that the context holds, at the start of the segment.
    pub(super) fn load_context(&mut self, index: usize, resume: BlockId) {
        let cx = self.cx;
        let point = &cx.layout.points[index];
        let live = &cx.analysis.live[resume.index()];
        self.clear_validity();
        if !point.saved.contains(&cx.analysis.spent) && !cx.analysis.loops.is_empty() {
            let zero = self.imm(0);
            self.set(cx.analysis.spent, zero);
        }
        if point.kind == PointKind::Start {
            for var in live.iter() {
                let is_input = cx.analysis.pipeline.inputs.contains(&var);
                match (cx.analysis.vars[var.index()].is_narrow(), cx.layout.rows[var.index()]) {
                    (true, Some(row)) if is_input => {
                        self.loaded.insert(var);
                        let value = self.load_row(row);
                        self.set(var, value);
                    }
                    (true, _) => {
                        let zero = self.imm(0);
                        self.set(var, zero);
                    }
                    (false, _) => self.clear_home(var),
                }
            }
            return;
        }
        for &var in &point.saved {
            if let Some(row) = cx.layout.rows[var.index()] {
                self.loaded.insert(var);
                self.bind_source(var, ValueSource::Row(row));
            }
        }
        for &var in &point.remat {
            match cx.analysis.remat(resume, var) {
                Some(Remat::Constant(value)) => {
                    let value = self.imm(value);
                    self.set(var, value);
                }
                Some(Remat::Packet(bit)) => self.bind_source(var, ValueSource::Packet(bit)),
                Some(Remat::IfValid(..)) | None => {}
            }
        }
        // These read validity and offsets of headers, which are bound now.
        for &var in &point.remat {
            if let Some(Remat::IfValid(header, offset)) = cx.analysis.remat(resume, var) {
                self.bind_source(var, ValueSource::IfValid(header, offset));
            }
        }
        for &site in &point.hoisted {
            self.note_hoisted_keys(site);
        }
        let PointKind::Lookup { block, .. } = &point.kind else {
            return;
        };
        if let Terminator::Lookup(lookup) = &cx.analysis.pipeline.body.blocks[*block].terminator {
            self.load_result(point.result_row, lookup, live);
        }
    }

    /// Notes the rows of a hoisted lookup's key, as sources of its variables. The rows are not
    /// shared, so they are unchanged. [`crate::layout`] has checked that the variables do not
    /// change before the lookup is executed (`Plan::check_hoist`), and variables that this segment
    /// writes are left out. A reader must know itself that the header is there
    /// ([`crate::analysis::Analysis::clean_narrow_field`]).
    fn note_hoisted_keys(&mut self, site: usize) {
        let cx = self.cx;
        let How::Hoisted { key_row, .. } = cx.layout.inline_lookups[site].how else {
            return;
        };
        let Some((_, lookup)) = cx.layout.lookup_of_inline(cx.analysis, site) else {
            return;
        };
        let slots = &cx.tables[lookup.table.index()].0.fields;
        for (key, slot) in lookup.keys.iter().zip(slots) {
            if let (Operand::Var(var), &Some(slot)) = (key, slot)
                && cx.analysis.vars[var.index()].is_narrow()
                && !self.written.contains(*var)
                // A key field without bits has no position.
                && slot.width > 0
            {
                let copy = KeyCopy {
                    row: key_row + usize::from(slot.word),
                    slot,
                    is_alone: is_topmost(slot, slots.iter().flatten()),
                };
                self.keys.insert(*var, copy);
            }
        }
    }

    /// Binds a variable to a source, or loads it now if the source may change.
    fn bind_source(&mut self, var: VarId, source: ValueSource) {
        let analysis = self.cx.analysis;
        let changes = match source {
            ValueSource::IfValid(header, _) => std::iter::once(analysis.program().headers[header].valid)
                .chain(analysis.offset_variable(header))
                .any(|v| self.written.contains(v)),
            ValueSource::Row(_) | ValueSource::Packet(_) => false,
        };
        if changes || self.written.contains(var) {
            self.may_move = self.movable.variable(var);
            let value = self.fetch(var, source);
            self.set(var, value);
        } else {
            self.sources.insert(var, source);
        }
    }

    fn fetch(&mut self, var: VarId, source: ValueSource) -> Value {
        match source {
            ValueSource::Row(row) => {
                let value = self.load_row(row);
                let width = self.cx.analysis.vars[var.index()].width;
                self.bounded(value, u64::MAX >> 64_u32.saturating_sub(width.max(1)))
            }
            ValueSource::IfValid(header, offset) => {
                let valid = self.get(self.cx.analysis.program().headers[header].valid);
                let (address, bit) = self.header_address(header);
                let address = self.add_imm(address, u64::from(bit / 8));
                let zeros = flags().with_readonly().with_can_move();
                let zeros = self.b.ins().load(types::I64, zeros, self.env, env::ZEROS);
                let from = self.b.ins().select(valid, address, zeros);
                self.load_bits(from, offset, self.cx.analysis.vars[var.index()].width)
            }
            ValueSource::Packet(bit) => {
                let packet = self.packet();
                self.load_bits(packet, bit, self.cx.analysis.vars[var.index()].width)
            }
        }
    }

    pub fn column(&mut self) -> Value {
        self.b.use_var(self.column)
    }

    pub fn slot(&mut self) -> Value {
        self.b.use_var(self.slot)
    }

    /// The bit of the packet's slot.
    pub fn bit(&mut self) -> Value {
        self.b.use_var(self.bit)
    }

    pub fn packet(&mut self) -> Value {
        self.b.use_var(self.packet)
    }

    fn offset(row: usize) -> i32 {
        (row * ROW_STRIDE * 8) as i32
    }

    pub fn load_row(&mut self, row: usize) -> Value {
        let column = self.column();
        self.b.ins().load(types::I64, flags(), column, Self::offset(row))
    }

    pub fn store_row(&mut self, row: usize, value: Value) {
        let column = self.column();
        self.b.ins().store(flags(), value, column, Self::offset(row));
    }

    fn clear_home(&mut self, var: VarId) {
        let Some(home) = self.cx.layout.rows[var.index()] else {
            return;
        };
        let zero = self.imm(0);
        let info = self.cx.analysis.vars[var.index()];
        // The address of an empty varbit is never used.
        let words = if info.varbit { 1 } else { info.home_words() };
        for i in 0..words {
            self.store_row(home + i, zero);
        }
    }

    pub fn set(&mut self, var: VarId, value: Value) {
        if self.set_validity(var, value) {
            return;
        }
        let variable = self.variable(var);
        self.b.def_var(variable, value);
    }

    fn variable(&mut self, var: VarId) -> Variable {
        let variable = self.vars.entry(var);
        *variable.or_insert_with(|| self.b.declare_var(types::I64))
    }

    /// The value of a narrow variable, where liveness counts a read in the current state
    /// ([`crate::analysis::Analysis::reads`]). If the packet certainly holds it, not the variable
    /// is live but its header's offset, and it is loaded from the packet.
    pub fn get(&mut self, var: VarId) -> Value {
        if let Some((header, field)) = self.cx.analysis.clean_narrow_field(&self.state, var) {
            if let Some(&KeyCopy { row, slot, is_alone }) = self.keys.get(&var) {
                let word = self.load_row(row);
                return self.field_of_word(word, slot, is_alone);
            }
            let (address, bit) = self.header_address(header);
            let offset = field_offsets(self.cx.analysis.program(), header)[field];
            return self.load_bits(address, bit + offset, self.cx.analysis.vars[var.index()].width);
        }
        self.live_value(var)
    }

    /// The value of a narrow variable that is live here. It is not loaded from the packet by the
    /// current state, as its header's offset may be dead.
    pub fn live_value(&mut self, var: VarId) -> Value {
        if self.cx.analysis.constant_inputs.contains(var)
            && let Some(row) = self.cx.layout.rows[var.index()]
        {
            return self.load_row(row);
        }
        if let Some(&source) = self.sources.get(&var) {
            return self.fetch(var, source);
        }
        if let Some(valid) = self.get_validity(var) {
            return valid;
        }
        if self.vars.contains_key(&var) || self.written.contains(var) {
            // It may be written by a later block of a loop.
            let variable = self.variable(var);
            let value = self.b.use_var(variable);
            let width = self.cx.analysis.vars[var.index()].width;
            let most = self
                .upper_bound(value)
                .min(u64::MAX >> 64_u32.saturating_sub(width.max(1)));
            return self.bounded(value, most);
        }
        // Read, but written on no path: zero.
        self.imm(0)
    }

    pub fn is_narrow(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Var(v) => self.cx.analysis.vars[v.index()].is_narrow(),
            Operand::Const(c) => c.width() <= 64,
        }
    }

    pub fn width(&self, operand: &Operand) -> u32 {
        match operand {
            Operand::Var(v) => self.cx.analysis.vars[v.index()].width,
            Operand::Const(c) => c.width(),
        }
    }

    /// The value of a narrow operand.
    pub fn value(&mut self, operand: &Operand) -> Value {
        match operand {
            Operand::Var(v) => self.get(*v),
            Operand::Const(c) => self.imm(c.to_u64().unwrap_or(0)),
        }
    }

    /// Word `index` of an operand of any width, the lowest first.
    pub fn word(&mut self, operand: &Operand, index: usize) -> Value {
        match operand {
            Operand::Var(v) if self.cx.analysis.vars[v.index()].is_narrow() => {
                if index == 0 {
                    self.get(*v)
                } else {
                    self.imm(0)
                }
            }
            Operand::Var(v) => match self.cx.layout.rows[v.index()] {
                Some(home) => self.load_row(home + index),
                None => self.imm(0),
            },
            Operand::Const(c) => {
                let shifted = c.shr(64 * index as u64).zero_extend(64);
                self.imm(shifted.to_u64().unwrap_or(0))
            }
        }
    }
}
