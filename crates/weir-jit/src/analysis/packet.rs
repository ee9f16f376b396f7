//! What can be had from the packet instead of being kept.

use super::{Again, Analysis, Place, State, field_of, field_offsets};
use crate::error::Unsupported;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::CallKind;
use weir_ir::{ArgumentValue, BlockId, HeaderId, InstKind, Operand, Rvalue, Terminator, VarId};

impl Analysis<'_> {
    /// Varbits must be extracted or copied: there is no place for others.
    pub(super) fn check_varbits(&self) -> Result<(), Unsupported> {
        let varbit = |v: &VarId| self.vars[v.index()].varbit;
        for &id in &self.order {
            for step in self.steps(id) {
                let bad = match step.inst {
                    InstKind::Assign { dst, value } => varbit(dst) && !is_varbit_copy(value),
                    InstKind::Lookahead { dst, .. } => varbit(dst),
                    InstKind::Call(call) => {
                        let out = |a: &ArgumentValue| match a {
                            ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => vars.iter().any(varbit),
                            _ => false,
                        };
                        let behind = match step.call_kind() {
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

    /// How a variable can be had again at the start of a block, without having been kept.
    pub fn again(&self, block: BlockId, var: VarId) -> Option<Again> {
        if let Some(&value) = self.constants[block.index()].get(&var) {
            return Some(Again::Constant(value));
        }
        let state = self.at[block.index()].as_ref()?;
        if var == self.cursor {
            return state.cursor.map(|bit| Again::Constant(bit.into()));
        }
        if var == self.emitted && !state.has_emitted {
            return Some(Again::Constant(0));
        }
        if !self.vars[var.index()].is_narrow() {
            return None;
        }
        let in_packet = self.packet_bit(state, var).map(Again::Packet);
        in_packet.or_else(|| {
            let (header, field) = self.in_packet_if_valid(block, var)?;
            let offset = field_offsets(self.program(), header)[field];
            let known = self.had_if_valid.contains(&(block, header));
            known.then_some(Again::IfValid(header, offset))
        })
    }

    /// The header and field of a narrow variable that at the start of a block is what the packet holds or, if the header is
    /// not valid, 0.
    fn in_packet_if_valid(&self, block: BlockId, var: VarId) -> Option<(HeaderId, usize)> {
        let (header, field) = field_of(self.program(), var)?;
        let state = &self.at[block.index()].as_ref()?.headers[header.index()];
        let untouched = !state.validated && !state.is_dirty(field) && self.vars[var.index()].is_narrow();
        (untouched && self.places[header.index()].is_some()).then_some((header, field))
    }

    /// After which lookups fields are had from the packet if their headers are valid: where that is fewer variables to keep.
    pub(super) fn find_had_if_valid(&self) -> BTreeSet<(BlockId, HeaderId)> {
        let mut found = BTreeSet::new();
        for &id in &self.order {
            let Terminator::Lookup(lookup) = &self.pipeline.body.blocks[id].terminator else {
                continue;
            };
            let live = &self.live[lookup.next.index()];
            let mut fields: BTreeMap<HeaderId, usize> = BTreeMap::new();
            for var in live.iter().filter(|v| self.again(lookup.next, *v).is_none()) {
                if let Some((header, _)) = self.in_packet_if_valid(lookup.next, var) {
                    *fields.entry(header).or_default() += 1;
                }
            }
            for (header, count) in fields {
                let needed = std::iter::once(self.program().headers[header].valid).chain(self.place_variable(header));
                let new = needed.filter(|v| !live.contains(*v) && self.again(lookup.next, *v).is_none());
                if count > new.count() {
                    found.insert((lookup.next, header));
                }
            }
        }
        found
    }

    /// What must be known at the start of a block so that fields can be had from the packet.
    pub(super) fn read_to_have(&self, block: BlockId) -> impl Iterator<Item = VarId> {
        let headers = self.had_if_valid.range((block, HeaderId::new(0))..);
        let headers = headers.take_while(move |(b, _)| *b == block);
        headers.flat_map(|(_, h)| std::iter::once(self.program().headers[*h].valid).chain(self.place_variable(*h)))
    }

    /// The header and field of a narrow variable that is certainly what the packet holds: who reads it here takes it from there, so that for
    /// this read it need not be kept, nor fetched before it is clear that somebody does. It may be live all the same, for who reads it later and cannot know.
    pub fn held_by_packet(&self, state: &State, var: VarId) -> Option<(HeaderId, usize)> {
        let is_narrow = self.vars[var.index()].is_narrow();
        self.in_packet(state, &Operand::Var(var)).filter(|_| is_narrow)
    }

    /// The bit of the packet where a field lies that is known to be there unchanged.
    pub fn packet_bit(&self, state: &State, var: VarId) -> Option<u32> {
        let (header, field) = self.in_packet(state, &Operand::Var(var))?;
        match self.places[header.index()] {
            Some(Place::Fixed(bit)) => Some(bit + field_offsets(self.program(), header)[field]),
            _ => None,
        }
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
