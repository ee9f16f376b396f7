//! The variables that instructions, terminators and exits read and write, given what the packet
//! holds and how the deparser works. Liveness builds on it, and code generation must read the same.

use super::{Analysis, AnnotatedInst, Deparse, HeaderOffset, State, field_of};
use std::collections::BTreeSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{Call, HeaderId, InLeaf, InstKind, Operand, Terminator, VarId};

impl Analysis<'_> {
    /// The header and field of an operand that the packet certainly holds unchanged.
    pub fn clean_field(&self, state: &State, operand: &Operand) -> Option<(HeaderId, usize)> {
        let Operand::Var(v) = operand else { return None };
        let (header, field) = field_of(self.program(), *v)?;
        let h = &state.headers[header.index()];
        let clean = h.extracted && !h.is_dirty(field) && !self.vars[v.index()].varbit;
        (clean && self.header_offsets[header.index()].is_some()).then_some((header, field))
    }

    /// Whether a varbit is certainly empty.
    pub fn is_pristine(&self, state: &State, operand: &Operand) -> bool {
        let Operand::Var(v) = operand else { return false };
        field_of(self.program(), *v).is_some_and(|(h, _)| state.headers[h.index()].pristine)
    }

    /// Whether code can compute a checksum inline: it must know the position of each operand in the
    /// sum.
    pub fn is_summed_inline(&self, state: &State, call: &Call) -> bool {
        let leaves = call.inputs(0);
        let varbit = |l: &InLeaf| matches!(l, InLeaf::Value(o @ Operand::Var(v)) if self.vars[v.index()].varbit && !self.is_pristine(state, o));
        !leaves.iter().any(|l| matches!(l, InLeaf::Header(_))) && !leaves.iter().rev().skip(1).any(varbit)
    }

    /// The variable that holds a header's offset, if the offset is not constant.
    pub fn offset_variable(&self, header: HeaderId) -> Option<VarId> {
        match self.header_offsets[header.index()] {
            Some(HeaderOffset::Variable(v)) => Some(v),
            _ => None,
        }
    }

    fn read_offset(&self, header: HeaderId, f: &mut dyn FnMut(VarId)) {
        if let Some(HeaderOffset::Variable(v)) = self.header_offsets[header.index()] {
            f(v);
        }
    }

    /// Fields of a header that `emit` must write from variables.
    pub fn fields_to_write(&self, state: &State, header: HeaderId) -> Vec<usize> {
        let h = &state.headers[header.index()];
        let all = self.header_offsets[header.index()].is_none();
        if all && self.deparse == Deparse::InPlace {
            // It is never extracted, and in place no header is added, so it is not valid.
            return Vec::new();
        }
        let count = self.program().headers[header].fields.len();
        let varbit = |i: usize| self.vars[self.program().headers[header].fields[i].index()].varbit;
        (0..count)
            .filter(|&i| all || h.is_dirty(i) || (varbit(i) && self.deparse != Deparse::InPlace))
            .collect()
    }

    /// Calls `f` with what a read of a variable needs: the variable, or its header's offset in the
    /// packet.
    fn read(&self, state: &State, var: VarId, f: &mut dyn FnMut(VarId)) {
        match self.clean_narrow_field(state, var) {
            Some((header, _)) => self.read_offset(header, f),
            None => f(var),
        }
    }

    /// Calls `f` with every variable that an instruction reads, given the state before it.
    pub fn reads(&self, state: &State, inst: AnnotatedInst<'_>, f: &mut dyn FnMut(VarId)) {
        let f: &mut dyn FnMut(VarId) = &mut |v| self.read(state, v, f);
        let program = self.program();
        match inst.kind {
            InstKind::Emit { header } => {
                let fields = self.fields_to_write(state, *header);
                if self.deparse == Deparse::InPlace && fields.is_empty() {
                    return;
                }
                f(program.headers[*header].valid);
                fields.iter().for_each(|&i| f(program.headers[*header].fields[i]));
                self.read_offset(*header, f);
                if self.deparse != Deparse::InPlace {
                    f(self.emitted);
                }
            }
            InstKind::Call(call) => self.call_reads(state, call, inst.call_kind(), f),
            other => {
                weir_ir::passes::read_by_inst(other, &program.headers, f);
                if other.can_fail() && state.cursor.is_none() {
                    f(self.cursor);
                }
            }
        }
    }

    fn call_reads(&self, state: &State, call: &Call, kind: Option<&CallKind>, f: &mut dyn FnMut(VarId)) {
        match kind {
            Some(CallKind::InternetChecksum | CallKind::InternetSum) if self.is_summed_inline(state, call) => {
                if let Some(change) = self.checksum_update(state, call) {
                    let changed = change.parts.iter().map(|part| part.before.0);
                    changed
                        .chain([change.checksum.0])
                        .for_each(|header| self.read_offset(header, f));
                }
                for leaf in call.inputs(0) {
                    let InLeaf::Value(o) = leaf else { continue };
                    match (self.clean_field(state, o), o) {
                        (Some((header, _)), _) => self.read_offset(header, f),
                        // An empty varbit adds nothing.
                        (None, Operand::Var(v)) if self.vars[v.index()].varbit && self.is_pristine(state, o) => {}
                        (None, Operand::Var(v)) => f(*v),
                        (None, Operand::Const(_)) => {}
                    }
                }
            }
            Some(CallKind::Nothing) => {}
            Some(CallKind::Count(_)) => {
                if let Some(Operand::Var(v)) = call.input(0) {
                    f(*v);
                }
            }
            Some(CallKind::ReadCell { .. } | CallKind::WriteCell { .. } | CallKind::ByMagnitude(_)) => {
                for argument in 0..2 {
                    if let Some(Operand::Var(v)) = call.input(argument) {
                        f(*v);
                    }
                }
            }
            _ => {
                weir_ir::passes::read_by_inst(&InstKind::Call(call.clone()), &self.program().headers, f);
                if let Some(CallKind::Host { reads, .. }) = kind {
                    reads.iter().for_each(|&v| f(v));
                }
                if state.cursor.is_none() {
                    f(self.cursor);
                }
            }
        }
    }

    /// The variables that exits save: all of the exit's live ones, except fields that the packet
    /// holds unchanged wherever control leaves.
    pub(super) fn find_handed_over(&self) -> Vec<Vec<VarId>> {
        let mut all: Vec<BTreeSet<VarId>> = vec![BTreeSet::new(); self.pipeline.exits.len()];
        for &id in &self.order {
            let Terminator::Exit(exit) = self.pipeline.body.blocks[id].terminator else {
                continue;
            };
            let Some(state) = self.states(id).pop() else { continue };
            let in_packet = |v: &VarId| {
                field_of(self.program(), *v)
                    .is_some_and(|(header, field)| !state.headers[header.index()].is_dirty(field))
            };
            let live = self.pipeline.exits[exit as usize].live.iter();
            all[exit as usize].extend(live.filter(|v| !in_packet(v)));
        }
        all.into_iter().map(|vars| vars.into_iter().collect()).collect()
    }

    fn exit_reads(&self, state: &State, exit: u32, f: &mut dyn FnMut(VarId)) {
        self.handed_over[exit as usize].iter().for_each(|v| f(*v));
        if self.pipeline.exits[exit as usize].deparsed && self.deparse != Deparse::InPlace {
            if state.cursor.is_none() {
                f(self.cursor);
            }
            f(self.emitted);
        }
    }

    /// Calls `f` with every variable that a terminator reads.
    pub fn terminator_reads(&self, state: &State, terminator: &Terminator, f: &mut dyn FnMut(VarId)) {
        let f: &mut dyn FnMut(VarId) = &mut |v| self.read(state, v, f);
        if let Terminator::Exit(exit) = terminator {
            self.exit_reads(state, *exit, f);
        } else if let Terminator::Suspend(_) = terminator {
            if state.cursor.is_none() {
                f(self.cursor);
            }
        } else {
            weir_ir::passes::read_by_terminator(terminator, f);
        }
    }

    /// Calls `f` with every variable that an instruction writes, including the cursor and other
    /// variables of the analysis.
    pub fn writes(&self, inst: AnnotatedInst<'_>, f: &mut dyn FnMut(VarId)) {
        inst.written(&self.program().headers, f);
        match inst.kind {
            InstKind::Extract { header, .. } => {
                f(self.cursor);
                self.read_offset(*header, f);
            }
            InstKind::Advance { .. } => f(self.cursor),
            InstKind::Emit { .. } if self.deparse != Deparse::InPlace => f(self.emitted),
            _ => {}
        }
    }
}
