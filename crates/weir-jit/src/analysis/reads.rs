//! What instructions and terminators read and write once it is known what the packet holds and how the deparser works.

use super::{Analysis, Deparse, Place, State, Step, field_of};
use std::collections::BTreeSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{Call, HeaderId, InLeaf, InstKind, Operand, Terminator, VarId};

impl Analysis<'_> {
    /// Whether a scalar that is summed up can be taken from the packet: its header and field.
    pub fn in_packet(&self, state: &State, operand: &Operand) -> Option<(HeaderId, usize)> {
        let Operand::Var(v) = operand else { return None };
        let (header, field) = field_of(self.program(), *v)?;
        let h = &state.headers[header.index()];
        let clean = h.extracted && !h.is_dirty(field) && !self.vars[v.index()].varbit;
        (clean && self.places[header.index()].is_some()).then_some((header, field))
    }

    /// Whether a varbit is certainly empty.
    pub fn is_pristine(&self, state: &State, operand: &Operand) -> bool {
        let Operand::Var(v) = operand else { return false };
        field_of(self.program(), *v).is_some_and(|(h, _)| state.headers[h.index()].pristine)
    }

    /// Whether code can sum up what a checksum is over: whether it knows where everything lies in the sum.
    pub fn is_summed_inline(&self, state: &State, call: &Call) -> bool {
        let leaves = call.inputs(0);
        let varbit = |l: &InLeaf| matches!(l, InLeaf::Value(o @ Operand::Var(v)) if self.vars[v.index()].varbit && !self.is_pristine(state, o));
        !leaves.iter().any(|l| matches!(l, InLeaf::Header(_))) && !leaves.iter().rev().skip(1).any(varbit)
    }

    /// The variable that holds where a header lies, if it is not always the same place.
    pub fn place_variable(&self, header: HeaderId) -> Option<VarId> {
        match self.places[header.index()] {
            Some(Place::Variable(v)) => Some(v),
            _ => None,
        }
    }

    fn place_read(&self, header: HeaderId, f: &mut dyn FnMut(VarId)) {
        if let Some(Place::Variable(v)) = self.places[header.index()] {
            f(v);
        }
    }

    /// Fields of a header that `emit` must write from variables.
    pub fn fields_to_write(&self, state: &State, header: HeaderId) -> Vec<usize> {
        let h = &state.headers[header.index()];
        let all = self.places[header.index()].is_none();
        if all && self.deparse == Deparse::InPlace {
            // It was never in the packet, and as nothing comes into it either, it is not valid.
            return Vec::new();
        }
        let count = self.program().headers[header].fields.len();
        let varbit = |i: usize| self.vars[self.program().headers[header].fields[i].index()].varbit;
        (0..count)
            .filter(|&i| all || h.is_dirty(i) || (varbit(i) && self.deparse != Deparse::InPlace))
            .collect()
    }

    /// Calls `f` with what must be known to read a variable: itself, or where it is in the packet.
    fn read(&self, state: &State, var: VarId, f: &mut dyn FnMut(VarId)) {
        match self.held_by_packet(state, var) {
            Some((header, _)) => self.place_read(header, f),
            None => f(var),
        }
    }

    /// Calls `f` with every variable an instruction reads, given what is known before it.
    pub fn reads(&self, state: &State, step: Step<'_>, f: &mut dyn FnMut(VarId)) {
        let f: &mut dyn FnMut(VarId) = &mut |v| self.read(state, v, f);
        let program = self.program();
        match step.inst {
            InstKind::Emit { header } => {
                let fields = self.fields_to_write(state, *header);
                if self.deparse == Deparse::InPlace && fields.is_empty() {
                    return;
                }
                f(program.headers[*header].valid);
                fields.iter().for_each(|&i| f(program.headers[*header].fields[i]));
                self.place_read(*header, f);
                if self.deparse != Deparse::InPlace {
                    f(self.emitted);
                }
            }
            InstKind::Call(call) => self.call_reads(state, call, step.call_kind(), f),
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
                if let Some(change) = self.change_of_checksum(state, call) {
                    let changed = change.parts.iter().map(|part| part.before.0);
                    changed
                        .chain([change.checksum.0])
                        .for_each(|header| self.place_read(header, f));
                }
                for leaf in call.inputs(0) {
                    let InLeaf::Value(o) = leaf else { continue };
                    match (self.in_packet(state, o), o) {
                        (Some((header, _)), _) => self.place_read(header, f),
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
                for at in 0..2 {
                    if let Some(Operand::Var(v)) = call.input(at) {
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

    /// What exits hand over from variables: all that they name but fields that are as the packet has them wherever control
    /// leaves.
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

    /// Calls `f` with every variable a terminator reads.
    pub fn terminator_reads(&self, state: &State, terminator: &Terminator, f: &mut dyn FnMut(VarId)) {
        let f: &mut dyn FnMut(VarId) = &mut |v| self.read(state, v, f);
        if let Terminator::Exit(exit) = terminator {
            self.exit_reads(state, *exit, f);
        } else {
            weir_ir::passes::read_by_terminator(terminator, f);
        }
    }

    /// Calls `f` with every variable an instruction writes, the cursor and so on included.
    pub fn writes(&self, step: Step<'_>, f: &mut dyn FnMut(VarId)) {
        step.written(&self.program().headers, f);
        match step.inst {
            InstKind::Extract { header, .. } => {
                f(self.cursor);
                self.place_read(*header, f);
            }
            InstKind::Advance { .. } => f(self.cursor),
            InstKind::Emit { .. } if self.deparse != Deparse::InPlace => f(self.emitted),
            _ => {}
        }
    }
}
