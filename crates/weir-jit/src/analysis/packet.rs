//! What can be had from the packet instead of being kept.

use super::{Again, Analysis, Place, State, field_offsets};
use crate::error::Unsupported;
use weir_ir::passes::VarSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{ArgumentValue, BlockId, InstKind, Operand, Rvalue, VarId};

impl Analysis<'_> {
    /// Varbits must be extracted or copied: there is no place for others.
    pub(super) fn check_varbits(&self) -> Result<(), Unsupported> {
        let varbit = |v: &VarId| self.vars[v.index()].varbit;
        for &id in &self.order {
            let block = &self.pipeline.body.blocks[id];
            for (i, inst) in block.insts.iter().enumerate() {
                let bad = match &inst.kind {
                    InstKind::Assign { dst, value } => varbit(dst) && !is_varbit_copy(value),
                    InstKind::Lookahead { dst, .. } => varbit(dst),
                    InstKind::Call(call) => {
                        let out = |a: &ArgumentValue| match a {
                            ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => vars.iter().any(varbit),
                            _ => false,
                        };
                        let behind = match self.kind_of_call(id, i) {
                            CallKind::Host { writes, .. } => writes.iter().any(varbit),
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

    /// How a variable can be had again at the start of a block, without having been kept.
    pub fn again(&self, block: BlockId, var: VarId) -> Option<Again> {
        if let Some(&value) = self.constants[block.index()].get(&var) {
            return Some(Again::Constant(value));
        }
        let state = self.at[block.index()].as_ref()?;
        if var == self.cursor {
            return state.cursor.map(|bit| Again::Constant(bit.into()));
        }
        if !self.vars[var.index()].is_narrow() {
            return None;
        }
        self.packet_bit(state, var).map(Again::Packet)
    }

    /// The bit of the packet where a field lies that is known to be there unchanged.
    pub fn packet_bit(&self, state: &State, var: VarId) -> Option<u32> {
        let (header, field) = self.in_packet(state, &Operand::Var(var))?;
        match self.places[header.index()] {
            Some(Place::Fixed(bit)) => Some(bit + field_offsets(self.program(), header)[field]),
            _ => None,
        }
    }

    pub(super) fn find_packet_only(&self) -> VarSet {
        let mut only = VarSet::new(self.vars.len());
        for header in self.program().headers.iter().map(|(_, h)| h) {
            let narrow = header.fields.iter().filter(|f| self.vars[f.index()].is_narrow());
            narrow.for_each(|&f| only.insert(f));
        }
        for &id in &self.order {
            let (block, states) = (&self.pipeline.body.blocks[id], self.states(id));
            let mut read = |state: &State, v: VarId| {
                if only.contains(v) && self.packet_bit(state, v).is_none() {
                    only.remove(v);
                }
            };
            for (i, (inst, state)) in block.insts.iter().zip(&states).enumerate() {
                let kind = matches!(inst.kind, InstKind::Call(_)).then(|| self.kind_of_call(id, i));
                self.reads(state, &inst.kind, kind, &mut |v| read(state, v));
            }
            if let Some(last) = states.last() {
                self.terminator_reads(last, &block.terminator, &mut |v| read(last, v));
            }
        }
        only
    }
}

/// Whether a varbit that is assigned this has its bytes from another one, or none.
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
