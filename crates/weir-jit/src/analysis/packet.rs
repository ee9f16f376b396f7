//! Finds variables that are rematerialised from the packet instead of saved in the context.

use super::{Analysis, HeaderOffset, Remat, State, field_of, field_offsets};
use crate::error::Unsupported;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::CallKind;
use weir_ir::{ArgumentValue, BlockId, HeaderId, InstKind, Operand, Rvalue, Terminator, VarId};

impl Analysis<'_> {
    /// Varbits must be extracted or copied: others have no bytes in the packet to refer to.
    pub(super) fn check_varbits(&self) -> Result<(), Unsupported> {
        let varbit = |v: &VarId| self.vars[v.index()].varbit;
        for &id in &self.order {
            for inst in self.annotated_insts(id) {
                let bad = match inst.kind {
                    InstKind::Assign { dst, value } => varbit(dst) && !is_varbit_copy(value),
                    InstKind::Lookahead { dst, .. } => varbit(dst),
                    InstKind::Call(call) => {
                        let out = |a: &ArgumentValue| match a {
                            ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => vars.iter().any(varbit),
                            _ => false,
                        };
                        let behind = match inst.call_kind() {
                            Some(CallKind::Host { writes, .. }) => writes.iter().any(varbit),
                            _ => false,
                        };
                        behind || call.results.iter().any(varbit) || call.arguments.iter().any(|a| out(&a.value))
                    }
                    _ => false,
                };
                if bad {
                    return Err(Unsupported::new("a varbit that is neither extracted nor copied"));
                }
            }
        }
        Ok(())
    }

    /// How a variable can be rematerialised at the start of a block.
    pub fn remat(&self, block: BlockId, var: VarId) -> Option<Remat> {
        if let Some(&value) = self.constants[block.index()].get(&var) {
            return Some(Remat::Constant(value));
        }
        let state = self.entry_states[block.index()].as_ref()?;
        if var == self.cursor {
            return state.cursor.map(|bit| Remat::Constant(bit.into()));
        }
        if var == self.emitted && !state.has_emitted {
            return Some(Remat::Constant(0));
        }
        if !self.vars[var.index()].is_narrow() {
            return None;
        }
        let in_packet = self.clean_field_bit(state, var).map(Remat::Packet);
        in_packet.or_else(|| {
            let (header, field) = self.clean_field_if_valid(block, var)?;
            let offset = field_offsets(self.program(), header)[field];
            let known = self.remat_if_valid.contains(&(block, header));
            known.then_some(Remat::IfValid(header, offset))
        })
    }

    /// The header and field of a narrow variable that, at the start of a block, is what the packet
    /// holds, or 0 if the header is not valid.
    fn clean_field_if_valid(&self, block: BlockId, var: VarId) -> Option<(HeaderId, usize)> {
        let (header, field) = field_of(self.program(), var)?;
        let state = &self.entry_states[block.index()].as_ref()?.headers[header.index()];
        let untouched = !state.validated && !state.is_dirty(field) && self.vars[var.index()].is_narrow();
        (untouched && self.header_offsets[header.index()].is_some()).then_some((header, field))
    }

    /// Finds the headers whose fields are rematerialised after a lookup if they are valid: where
    /// that means fewer variables to save.
    pub(super) fn find_remat_if_valid(&self) -> BTreeSet<(BlockId, HeaderId)> {
        let mut found = BTreeSet::new();
        for &id in &self.order {
            let next = match &self.pipeline.body.blocks[id].terminator {
                Terminator::Lookup(lookup) => lookup.next,
                Terminator::Suspend(next) => *next,
                _ => continue,
            };
            let live = &self.live[next.index()];
            let mut fields: BTreeMap<HeaderId, usize> = BTreeMap::new();
            for var in live.iter().filter(|v| self.remat(next, *v).is_none()) {
                if let Some((header, _)) = self.clean_field_if_valid(next, var) {
                    *fields.entry(header).or_default() += 1;
                }
            }
            for (header, count) in fields {
                let needed = std::iter::once(self.program().headers[header].valid).chain(self.offset_variable(header));
                let new = needed.filter(|v| !live.contains(*v) && self.remat(next, *v).is_none());
                if count > new.count() {
                    found.insert((next, header));
                }
            }
        }
        found
    }

    /// The variables that rematerialisation reads at the start of a block.
    pub(super) fn remat_inputs(&self, block: BlockId) -> impl Iterator<Item = VarId> {
        let headers = self.remat_if_valid.range((block, HeaderId::new(0))..);
        let headers = headers.take_while(move |(b, _)| *b == block);
        headers.flat_map(|(_, h)| std::iter::once(self.program().headers[*h].valid).chain(self.offset_variable(*h)))
    }

    /// The header and field of a narrow variable that the packet certainly holds. A read in this
    /// state loads it from the packet, so the variable need not be live for this read. It may be
    /// live for a later read, where this is not known.
    pub fn clean_narrow_field(&self, state: &State, var: VarId) -> Option<(HeaderId, usize)> {
        let is_narrow = self.vars[var.index()].is_narrow();
        self.clean_field(state, &Operand::Var(var)).filter(|_| is_narrow)
    }

    /// The bit of the packet where a field certainly lies unchanged.
    pub fn clean_field_bit(&self, state: &State, var: VarId) -> Option<u32> {
        let (header, field) = self.clean_field(state, &Operand::Var(var))?;
        match self.header_offsets[header.index()] {
            Some(HeaderOffset::Fixed(bit)) => Some(bit + field_offsets(self.program(), header)[field]),
            _ => None,
        }
    }
}

/// Whether a varbit that is assigned this value is empty, or a copy of another one.
fn is_varbit_copy(value: &Rvalue) -> bool {
    let copied = |o: &Operand| match o {
        Operand::Var(_) => true,
        Operand::Const(c) => c.width() == 0,
    };
    match value {
        Rvalue::Use(o) => copied(o),
        Rvalue::Mux { then, otherwise, .. } => copied(then) && copied(otherwise),
        _ => false,
    }
}
