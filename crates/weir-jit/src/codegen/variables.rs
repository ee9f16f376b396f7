//! Where the variables of a packet are: in its context, in the packet itself, or in registers.

use super::lookup::is_topmost;
use super::{Segment, env, flags};
use crate::analysis::{Again, field_offsets};
use crate::layout::{How, PITCH, PointKind};
use cranelift_codegen::ir::{InstBuilder, Value, types};
use cranelift_frontend::Variable;
use weir_ir::{BlockId, HeaderId, Operand, Terminator, VarId};
use weir_table::fast::FieldSlot;

/// Where a variable is while a segment runs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lazy {
    /// In this row.
    Row(usize),
    /// In the packet, from this bit on.
    Packet(u32),
    /// In the packet, so many bits after where a header begins, if the header is valid; else it is 0.
    IfValid(HeaderId, u32),
}

/// Where a variable is as part of a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyCopy {
    /// The row of the word.
    row: usize,
    slot: FieldSlot,
    /// Above it the word is 0.
    is_alone: bool,
}

impl Segment<'_, '_> {
    /// Makes what the packet left behind variables again.
    pub(super) fn load_context(&mut self, index: usize, resume: BlockId) {
        let cx = self.cx;
        let point = &cx.layout.points[index];
        let live = &cx.analysis.live[resume.index()];
        self.clear_validity();
        if !point.kept.contains(&cx.analysis.spent) && !cx.analysis.loops.is_empty() {
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
        for &var in &point.kept {
            if let Some(row) = cx.layout.rows[var.index()] {
                self.loaded.insert(var);
                self.had(var, Lazy::Row(row));
            }
        }
        for &var in &point.again {
            match cx.analysis.again(resume, var) {
                Some(Again::Constant(value)) => {
                    let value = self.imm(value);
                    self.set(var, value);
                }
                Some(Again::Packet(bit)) => self.had(var, Lazy::Packet(bit)),
                Some(Again::IfValid(..)) | None => {}
            }
        }
        // These need to know which headers are valid.
        for &var in &point.again {
            if let Some(Again::IfValid(header, offset)) = cx.analysis.again(resume, var) {
                self.had(var, Lazy::IfValid(header, offset));
            }
        }
        for &site in &point.ahead {
            self.find_keys(site);
        }
        let PointKind::Lookup { block, .. } = &point.kind else {
            return;
        };
        if let Terminator::Lookup(lookup) = &cx.analysis.pipeline.body.blocks[*block].terminator {
            self.load_result(point.result_row, lookup, live);
        }
    }

    /// Notes where the keys of a lookup are that was done ahead. Its rows are no other's, so they are as they were written; that the keys have not changed
    /// until where control gets to the lookup [`crate::layout`] has made certain (`Plan::is_possible`), and what this segment writes is left out. Whether a field
    /// is there at all, who asks for it must know ([`crate::analysis::Analysis::held_by_packet`]).
    fn find_keys(&mut self, site: usize) {
        let cx = self.cx;
        let How::Ahead { key_row, .. } = cx.layout.sites[site].how else {
            return;
        };
        let Some((_, lookup)) = cx.layout.lookup_of(cx.analysis, site) else {
            return;
        };
        let slots = &cx.tables[lookup.table.index()].0.fields;
        for (key, slot) in lookup.keys.iter().zip(slots) {
            if let (Operand::Var(var), &Some(slot)) = (key, slot)
                && cx.analysis.vars[var.index()].is_narrow()
                && !self.written.contains(*var)
                // Without bits there is no place.
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

    /// A variable has a value when the segment begins.
    fn had(&mut self, var: VarId, place: Lazy) {
        let analysis = self.cx.analysis;
        let changes = match place {
            Lazy::IfValid(header, _) => std::iter::once(analysis.program().headers[header].valid)
                .chain(analysis.place_variable(header))
                .any(|v| self.written.contains(v)),
            Lazy::Row(_) | Lazy::Packet(_) => false,
        };
        if changes || self.written.contains(var) {
            self.may_move = self.movable.variable(var);
            let value = self.fetch(var, place);
            self.set(var, value);
        } else {
            self.lazy.insert(var, place);
        }
    }

    fn fetch(&mut self, var: VarId, place: Lazy) -> Value {
        match place {
            Lazy::Row(row) => {
                let value = self.load_row(row);
                let width = self.cx.analysis.vars[var.index()].width;
                self.bounded(value, u64::MAX >> 64_u32.saturating_sub(width.max(1)))
            }
            Lazy::IfValid(header, offset) => {
                let valid = self.get(self.cx.analysis.program().headers[header].valid);
                let (address, bit) = self.at_header(header);
                let address = self.add_imm(address, u64::from(bit / 8));
                let zeros = flags().with_readonly().with_can_move();
                let zeros = self.b.ins().load(types::I64, zeros, self.env, env::ZEROS);
                let from = self.b.ins().select(valid, address, zeros);
                self.load_bits(from, offset, self.cx.analysis.vars[var.index()].width)
            }
            Lazy::Packet(bit) => {
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
        (row * PITCH * 8) as i32
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

    /// The value of a narrow variable, for what liveness counts as a read of it in the present state ([`crate::analysis::Analysis::reads`]): where the
    /// packet certainly holds it, what is live is not the variable but the place of its header.
    pub fn get(&mut self, var: VarId) -> Value {
        if let Some((header, field)) = self.cx.analysis.held_by_packet(&self.state, var) {
            if let Some(&KeyCopy { row, slot, is_alone }) = self.keys.get(&var) {
                let word = self.load_row(row);
                return self.field_of_word(word, slot, is_alone);
            }
            let (address, bit) = self.at_header(header);
            let offset = field_offsets(self.cx.analysis.program(), header)[field];
            return self.load_bits(address, bit + offset, self.cx.analysis.vars[var.index()].width);
        }
        self.kept_value(var)
    }

    /// The value of a narrow variable that is live here, be it in the packet, too: where that is may be known no more.
    pub fn kept_value(&mut self, var: VarId) -> Value {
        if self.cx.analysis.constant_inputs.contains(var)
            && let Some(row) = self.cx.layout.rows[var.index()]
        {
            return self.load_row(row);
        }
        if let Some(&place) = self.lazy.get(&var) {
            return self.fetch(var, place);
        }
        if let Some(valid) = self.get_validity(var) {
            return valid;
        }
        if self.vars.contains_key(&var) || self.written.contains(var) {
            // Perhaps by a block that comes later, in a loop.
            let variable = self.variable(var);
            let value = self.b.use_var(variable);
            let width = self.cx.analysis.vars[var.index()].width;
            let most = self.most(value).min(u64::MAX >> 64_u32.saturating_sub(width.max(1)));
            return self.bounded(value, most);
        }
        // Read and never written on any way: zero.
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

    /// Word `index` of an operand of any width, its lowest first.
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
