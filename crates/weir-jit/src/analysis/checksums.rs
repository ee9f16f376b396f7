//! Finds received checksums that the program has verified, so that a checksum over changed fields
//! can be updated incrementally (RFC 1624).
//!
//! A program may compute the checksum of fields as received, compare it with a field of the packet,
//! and continue only if they are equal. On that path the field is known to be the checksum of those
//! fields. If the program later computes the checksum of the same fields, only the changes need to
//! be summed.

use super::{Analysis, AnnotatedInst, State, VarInfo, field_of, field_offsets};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::passes::VarSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{BinaryOp, BlockId, Call, HeaderId, InLeaf, InstKind, Operand, Rvalue, Terminator, UnaryOp, VarId};

/// A field of the packet that is a verified checksum, and the number of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Verified {
    data: usize,
    pub checksum: VarId,
}

/// The known checksums at a point of the body. All data are fields as received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Checksums {
    /// Variables that hold the checksum of these data.
    computed: BTreeMap<VarId, usize>,
    /// Bits that have this value only if the checksum is right.
    flags: BTreeMap<VarId, (bool, Verified)>,
    verified: BTreeSet<Verified>,
}

impl Checksums {
    /// Joins with another path: keeps what both know.
    pub fn meet(&mut self, other: &Self) {
        self.computed.retain(|v, data| other.computed.get(v) == Some(data));
        self.flags.retain(|v, what| other.flags.get(v) == Some(what));
        self.verified.retain(|what| other.verified.contains(what));
    }

    /// A variable has been written.
    pub fn write(&mut self, var: VarId) {
        self.computed.remove(&var);
        self.flags.remove(&var);
    }

    /// Some variables have known values.
    pub fn refine(&mut self, value: impl Fn(VarId) -> Option<u64>) {
        let shown = self
            .flags
            .iter()
            .filter(|(v, (bit, _))| value(**v) == Some(u64::from(*bit)));
        self.verified.extend(shown.map(|(_, (_, what))| *what));
    }

    /// The flag that an expression evaluates to, if it is one.
    fn flag(&self, value: &Rvalue) -> Option<(bool, Verified)> {
        let flag = |operand: &Operand| match operand {
            Operand::Var(v) => self.flags.get(v).copied(),
            Operand::Const(_) => None,
        };
        let negated = |(bit, what): (bool, Verified)| (!bit, what);
        match value {
            Rvalue::Use(v) => flag(v),
            Rvalue::Unary(UnaryOp::Not, v) => flag(v).map(negated),
            Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), v, Operand::Const(c)) => {
                let is_same = (*op == BinaryOp::Eq) == (c.to_u64() == Some(1));
                flag(v).map(|flag| if is_same { flag } else { negated(flag) })
            }
            _ => None,
        }
    }
}

/// Each addition adds less than 2^48, so a sum of this many is below 2^62.
const MAX_ADDITIONS: usize = 1 << 14;

/// How a checksum differs from the one that the packet holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChecksumUpdate {
    /// Header and field that hold the old checksum.
    pub checksum: (HeaderId, usize),
    /// The parts that may have changed.
    pub parts: Vec<UpdatedField>,
}

/// A part of the data that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UpdatedField {
    /// Header and field that hold its old value.
    pub before: (HeaderId, usize),
    pub now: Operand,
    /// The bit of the data where it begins.
    pub at: u32,
}

/// Most parts that may have changed. With more, an update gains little.
const MAX_CHANGED_PARTS: usize = 4;

impl Analysis<'_> {
    /// Variables of 64 bits to which only sums, and an initial zero, are written.
    pub(super) fn find_running_sums(&self) -> VarSet {
        let mut additions: BTreeMap<VarId, usize> = BTreeMap::new();
        let mut others = VarSet::new(self.vars.len());
        for &id in &self.order {
            for inst in self.annotated_insts(id) {
                match (inst.kind, inst.call_kind()) {
                    (InstKind::Call(call), Some(CallKind::InternetSum)) if !self.repeated[id.index()] => {
                        call.results.iter().for_each(|v| *additions.entry(*v).or_default() += 1);
                    }
                    (
                        InstKind::Assign {
                            value: Rvalue::Use(Operand::Const(c)),
                            ..
                        },
                        _,
                    ) if c.is_zero() => {}
                    _ => self.writes(inst, &mut |v| others.insert(v)),
                }
            }
            if let Terminator::Lookup(l) = &self.pipeline.body.blocks[id].terminator {
                [l.hit, l.action, l.entry].into_iter().for_each(|v| others.insert(v));
            }
        }
        let mut sums = VarSet::new(self.vars.len());
        additions
            .into_iter()
            .filter(|(v, n)| *n <= MAX_ADDITIONS && self.vars[v.index()].width == 64 && !others.contains(*v))
            .for_each(|(v, _)| sums.insert(v));
        self.pipeline.inputs.iter().for_each(|v| sums.remove(*v));
        sums
    }

    /// The data of checksums, without duplicates.
    pub(super) fn find_checksum_data(&self) -> Vec<Vec<InLeaf>> {
        let mut found: Vec<Vec<InLeaf>> = Vec::new();
        for &id in &self.order {
            for inst in self.annotated_insts(id) {
                if let Some(call) = inst.internet_checksum()
                    && !found.iter().any(|data| data == call.inputs(0))
                {
                    found.push(call.inputs(0).to_vec());
                }
            }
        }
        found
    }

    /// Transfer function of an instruction. `state` is otherwise as before the instruction.
    pub(super) fn transfer_checksums(&self, state: &mut State, inst: AnnotatedInst<'_>) {
        let mut known = std::mem::take(&mut state.checksums);
        match inst.kind {
            // The header is received anew, or the packet is overwritten: nothing is known any more.
            InstKind::Extract { .. } | InstKind::Emit { .. } => return,
            InstKind::Assign { dst, value } => {
                let computed = match value {
                    Rvalue::Use(Operand::Var(v)) => known.computed.get(v).copied(),
                    _ => None,
                };
                let flag = match value {
                    Rvalue::Binary(op @ (BinaryOp::Ne | BinaryOp::Eq), Operand::Var(a), Operand::Var(b)) => {
                        let of = |v| known.computed.get(v).copied();
                        let what = (of(a).and_then(|data| self.comparison(state, *a, data, *b)))
                            .or_else(|| self.comparison(state, *b, of(b)?, *a));
                        what.map(|what| (*op == BinaryOp::Eq, what))
                    }
                    other => known.flag(other),
                };
                known.write(*dst);
                known.computed.extend(computed.map(|data| (*dst, data)));
                known.flags.extend(flag.map(|what| (*dst, what)));
            }
            _ => {
                inst.written(&self.program().headers, &mut |v| known.write(v));
                if let Some(call) = inst.internet_checksum()
                    && let Some(&result) = call.results.first()
                    && call.inputs(0).iter().all(|leaf| self.is_as_received(state, leaf))
                {
                    let data = self.checksum_data.iter().position(|data| data == call.inputs(0));
                    known.computed.extend(data.map(|data| (result, data)));
                }
            }
        }
        state.checksums = known;
    }

    /// The fact that holds where a computed checksum equals a field.
    fn comparison(&self, state: &State, computed: VarId, data: usize, field: VarId) -> Option<Verified> {
        let is_word = self.program().vars[field].ty.width() == 16 && self.program().vars[computed].ty.width() == 16;
        let in_packet = self
            .as_received(state, field)
            .is_some_and(|(header, _)| state.headers[header.index()].extracted);
        (is_word && in_packet && self.begins_at_byte(field)).then_some(Verified { data, checksum: field })
    }

    fn begins_at_byte(&self, var: VarId) -> bool {
        let place = field_of(self.program(), var);
        place.is_some_and(|(header, field)| field_offsets(self.program(), header)[field].is_multiple_of(8))
    }

    /// The header and field of a variable that is as received: neither it nor its header's validity
    /// has been written.
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

    /// How a checksum differs from one that the packet certainly holds, if the difference is
    /// simple.
    pub fn checksum_update(&self, state: &State, call: &Call) -> Option<ChecksumUpdate> {
        (state.checksums.verified.iter()).find_map(|what| self.update_from(state, *what, call.inputs(0)))
    }

    fn update_from(&self, state: &State, what: Verified, now: &[InLeaf]) -> Option<ChecksumUpdate> {
        // A field that is in the packet: its header was extracted, at a known offset.
        let place = |var: VarId| {
            let (header, field) = field_of(self.program(), var)?;
            let known = state.headers[header.index()].extracted && self.header_offsets[header.index()].is_some();
            known.then_some((header, field))
        };
        let checksum = place(what.checksum)?;
        let before = &self.checksum_data[what.data];
        if before.len() != now.len() {
            return None;
        }
        let (mut parts, mut at) = (Vec::new(), 0);
        for (before, now) in before.iter().zip(now) {
            let (InLeaf::Value(before), InLeaf::Value(new)) = (before, now) else {
                return None;
            };
            let info = self.info(before);
            if self.info(new) != info {
                return None;
            }
            if before != new || !self.is_as_received(state, now) {
                let Operand::Var(before) = before else { return None };
                if info.varbit || info.width > 32 || parts.len() == MAX_CHANGED_PARTS {
                    return None;
                }
                let (before, now) = (place(*before)?, new.clone());
                parts.push(UpdatedField { before, now, at });
            }
            // A varbit is empty, or the last.
            at += if info.varbit { 0 } else { info.width };
        }
        Some(ChecksumUpdate { checksum, parts })
    }

    fn info(&self, operand: &Operand) -> VarInfo {
        match operand {
            Operand::Var(v) => self.vars[v.index()],
            Operand::Const(c) => VarInfo {
                width: c.width(),
                varbit: false,
            },
        }
    }

    /// Blocks that update a checksum incrementally, and the fields that may have changed.
    pub fn incremental_checksums(&self) -> Vec<(BlockId, Vec<VarId>)> {
        let headers = &self.program().headers;
        let mut found = Vec::new();
        for &id in &self.order {
            for (inst, state) in self.annotated_insts(id).zip(self.states(id)) {
                if let Some(call) = inst.internet_checksum()
                    && self.is_summed_inline(&state, call)
                    && let Some(change) = self.checksum_update(&state, call)
                {
                    let fields = change
                        .parts
                        .iter()
                        .map(|part| headers[part.before.0].fields[part.before.1]);
                    found.push((id, fields.collect()));
                }
            }
        }
        found
    }
}
