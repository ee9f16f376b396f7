//! Which checksums of a packet are known to be right, so that one over changed fields can be had from the one before.
//!
//! A program that computes the checksum of fields as they were received, compares it with a field of the packet and goes on only where
//! the two are the same has shown that this field is the checksum of those. Where the program wants the checksum of the same fields
//! later, what has changed since is all that need be summed up (RFC 1624).

use super::{Analysis, State, field_of};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::pipeline::CallKind;
use weir_ir::{BinaryOp, Call, HeaderId, InLeaf, InstKind, Operand, Rvalue, VarId};

/// A field of the packet and, by its number, what it is the checksum of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Verified {
    data: usize,
    pub checksum: VarId,
}

/// What is known of checksums at a point of the body. All of it is about fields as they were received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    /// Variables that are the checksum of data.
    computed: BTreeMap<VarId, usize>,
    /// Variables that are 0 only if this is so.
    flags: BTreeMap<VarId, Verified>,
    verified: BTreeSet<Verified>,
}

impl Checksums {
    /// Keeps what holds on this way, too.
    pub fn meet(&mut self, other: &Self) {
        self.computed.retain(|v, data| other.computed.get(v) == Some(data));
        self.flags.retain(|v, what| other.flags.get(v) == Some(what));
        self.verified.retain(|what| other.verified.contains(what));
    }

    /// A variable has a new value.
    pub fn write(&mut self, var: VarId) {
        self.computed.remove(&var);
        self.flags.remove(&var);
    }

    /// These variables are 0.
    pub fn refine(&mut self, is_zero: impl Fn(VarId) -> bool) {
        let shown = self.flags.iter().filter(|(v, _)| is_zero(**v));
        self.verified.extend(shown.map(|(_, what)| *what));
    }
}

/// How a checksum that is wanted differs from one that the packet has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Header and field that hold the one that it has.
    pub checksum: (HeaderId, usize),
    /// Fields that may have changed since: header, field and the bit of the data where each begins.
    pub fields: Vec<(HeaderId, usize, u32)>,
}

/// Most fields that may have changed. With more there is little to gain.
const MOST_CHANGES: usize = 4;

impl Analysis<'_> {
    /// What checksums are computed of, each once.
    pub(super) fn find_checksum_data(&self) -> Vec<Vec<InLeaf>> {
        let mut found: Vec<Vec<InLeaf>> = Vec::new();
        for &id in &self.order {
            for (i, inst) in self.pipeline.body.blocks[id].insts.iter().enumerate() {
                if let InstKind::Call(call) = &inst.kind
                    && matches!(self.kind_of_call(id, i), CallKind::InternetChecksum)
                    && !found.iter().any(|data| data == call.inputs(0))
                {
                    found.push(call.inputs(0).to_vec());
                }
            }
        }
        found
    }

    /// Follows an instruction, before which the other things in `state` are known.
    pub(super) fn step_checksums(&self, state: &State, kind: &InstKind, call: Option<&CallKind>) -> Checksums {
        let mut known = state.checksums.clone();
        match kind {
            // What was in the packet at these places, or was received as this header, no longer is.
            InstKind::Extract { .. } | InstKind::Emit { .. } => return Checksums::default(),
            InstKind::Assign { dst, value } => {
                let (computed, flag) = match value {
                    Rvalue::Use(Operand::Var(v)) => (known.computed.get(v).copied(), known.flags.get(v).copied()),
                    Rvalue::Binary(BinaryOp::Ne, Operand::Var(a), Operand::Var(b)) => (
                        None,
                        self.comparison(state, *a, *b)
                            .or_else(|| self.comparison(state, *b, *a)),
                    ),
                    _ => (None, None),
                };
                known.write(*dst);
                known.computed.extend(computed.map(|data| (*dst, data)));
                known.flags.extend(flag.map(|what| (*dst, what)));
            }
            other => {
                weir_ir::passes::written(other, &self.program().headers, &mut |v| known.write(v));
                if let Some(CallKind::Host { writes, .. }) = call {
                    writes.iter().for_each(|&v| known.write(v));
                }
                if let (InstKind::Call(call), Some(CallKind::InternetChecksum)) = (other, call)
                    && let Some(&result) = call.results.first()
                    && call.inputs(0).iter().all(|leaf| self.is_as_received(state, leaf))
                {
                    let data = self.checksum_data.iter().position(|data| data == call.inputs(0));
                    known.computed.extend(data.map(|data| (result, data)));
                }
            }
        }
        known
    }

    /// What is shown where a variable that was computed is the same as a field.
    fn comparison(&self, state: &State, computed: VarId, field: VarId) -> Option<Verified> {
        let data = *state.checksums.computed.get(&computed)?;
        let is_word = self.program().vars[field].ty.width() == 16 && self.program().vars[computed].ty.width() == 16;
        let in_packet = self
            .as_received(state, field)
            .is_some_and(|(header, _)| state.headers[header.index()].extracted);
        (is_word && in_packet).then_some(Verified { data, checksum: field })
    }

    /// The header and field of a variable that nothing has written, nor made its header valid or invalid.
    fn as_received(&self, state: &State, var: VarId) -> Option<(HeaderId, usize)> {
        let (header, field) = field_of(self.program(), var)?;
        let h = &state.headers[header.index()];
        (!h.is_dirty(field) && !h.validated).then_some((header, field))
    }

    fn is_as_received(&self, state: &State, leaf: &InLeaf) -> bool {
        match leaf {
            InLeaf::Value(Operand::Const(_)) => true,
            InLeaf::Value(Operand::Var(v)) => self.as_received(state, *v).is_some(),
            InLeaf::Header(_) => false,
        }
    }

    /// How a checksum differs from one that the packet is known to have, if that is simple.
    pub fn change_of_checksum(&self, state: &State, call: &Call) -> Option<Change> {
        let data = self.checksum_data.iter().position(|data| data == call.inputs(0))?;
        // In the packet: extracted, and where is known.
        let place = |var: VarId| {
            let (header, field) = field_of(self.program(), var)?;
            let known = state.headers[header.index()].extracted && self.places[header.index()].is_some();
            known.then_some((header, field))
        };
        let checksum = (state.checksums.verified.iter())
            .filter(|what| what.data == data)
            .find_map(|what| place(what.checksum))?;
        let mut fields = Vec::new();
        let mut at = 0;
        for leaf in call.inputs(0) {
            let InLeaf::Value(operand) = leaf else { return None };
            if let (Operand::Var(v), false) = (operand, self.is_as_received(state, leaf)) {
                let info = self.vars[v.index()];
                if info.varbit || info.width > 32 || fields.len() == MOST_CHANGES {
                    return None;
                }
                let (header, field) = place(*v)?;
                fields.push((header, field, at));
            }
            at += match operand {
                // It is empty, or the last.
                Operand::Var(v) if self.vars[v.index()].varbit => 0,
                Operand::Var(v) => self.vars[v.index()].width,
                Operand::Const(c) => c.width(),
            };
        }
        Some(Change { checksum, fields })
    }
}
