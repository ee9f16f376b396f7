//! Which checksums of a packet are known to be right, so that one over changed fields can be had from the one before.
//!
//! A program that computes the checksum of fields as they were received, compares it with a field of the packet and goes on only where
//! the two are the same has shown that this field is the checksum of those. Where the program wants the checksum of the same fields
//! later, what has changed since is all that need be summed up (RFC 1624).

use super::{Analysis, State, Step, VarInfo, field_of, field_offsets};
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::passes::VarSet;
use weir_ir::pipeline::CallKind;
use weir_ir::{BinaryOp, BlockId, Call, HeaderId, InLeaf, InstKind, Operand, Rvalue, Terminator, UnaryOp, VarId};

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
    /// Bits that have this value only if this is so.
    flags: BTreeMap<VarId, (bool, Verified)>,
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

    /// Some variables are known.
    pub fn refine(&mut self, value: impl Fn(VarId) -> Option<u64>) {
        let shown = self
            .flags
            .iter()
            .filter(|(v, (bit, _))| value(**v) == Some(u64::from(*bit)));
        self.verified.extend(shown.map(|(_, (_, what))| *what));
    }

    /// The flag that an expression is, if it is one.
    fn flag(&self, value: &Rvalue) -> Option<(bool, Verified)> {
        let flag = |operand: &Operand| match operand {
            Operand::Var(v) => self.flags.get(v).copied(),
            Operand::Const(_) => None,
        };
        let turned = |(bit, what): (bool, Verified)| (!bit, what);
        match value {
            Rvalue::Use(v) => flag(v),
            Rvalue::Unary(UnaryOp::Not, v) => flag(v).map(turned),
            Rvalue::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), v, Operand::Const(c)) => {
                let is_same = (*op == BinaryOp::Eq) == (c.to_u64() == Some(1));
                flag(v).map(|flag| if is_same { flag } else { turned(flag) })
            }
            _ => None,
        }
    }
}

/// An addition to a running sum adds less than 2^48, so that after as many it is below 2^62.
const MOST_ADDITIONS: usize = 1 << 14;

/// How a checksum that is wanted differs from one that the packet has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// Header and field that hold the one that it has.
    pub checksum: (HeaderId, usize),
    /// What may have changed since.
    pub parts: Vec<ChangedPart>,
}

/// A part of the data that may have changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangedPart {
    /// Header and field that hold what it was.
    pub before: (HeaderId, usize),
    pub now: Operand,
    /// The bit of the data where it begins.
    pub at: u32,
}

/// Most parts that may have changed. With more there is little to gain.
const MOST_CHANGED: usize = 4;

impl Analysis<'_> {
    /// Variables of 64 bits that nothing but sums, and zero to begin with, is written to.
    pub(super) fn find_running_sums(&self) -> VarSet {
        let mut additions: BTreeMap<VarId, usize> = BTreeMap::new();
        let mut others = VarSet::new(self.vars.len());
        for &id in &self.order {
            for step in self.steps(id) {
                match (step.inst, step.call_kind()) {
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
                    _ => self.writes(step, &mut |v| others.insert(v)),
                }
            }
            if let Terminator::Lookup(l) = &self.pipeline.body.blocks[id].terminator {
                [l.hit, l.action, l.entry].into_iter().for_each(|v| others.insert(v));
            }
        }
        let mut sums = VarSet::new(self.vars.len());
        additions
            .into_iter()
            .filter(|(v, n)| *n <= MOST_ADDITIONS && self.vars[v.index()].width == 64 && !others.contains(*v))
            .for_each(|(v, _)| sums.insert(v));
        self.pipeline.inputs.iter().for_each(|v| sums.remove(*v));
        sums
    }

    /// What checksums are computed of, each once.
    pub(super) fn find_checksum_data(&self) -> Vec<Vec<InLeaf>> {
        let mut found: Vec<Vec<InLeaf>> = Vec::new();
        for &id in &self.order {
            for step in self.steps(id) {
                if let Some(call) = step.internet_checksum()
                    && !found.iter().any(|data| data == call.inputs(0))
                {
                    found.push(call.inputs(0).to_vec());
                }
            }
        }
        found
    }

    /// Follows an instruction, before which the other things in `state` are known.
    pub(super) fn step_checksums(&self, state: &mut State, step: Step<'_>) {
        let mut known = std::mem::take(&mut state.checksums);
        match step.inst {
            // What was in the packet at these places, or was received as this header, no longer is.
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
                step.written(&self.program().headers, &mut |v| known.write(v));
                if let Some(call) = step.internet_checksum()
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

    /// What is shown where a variable that is the checksum of data is the same as a field.
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
        (state.checksums.verified.iter()).find_map(|what| self.change_of(state, *what, call.inputs(0)))
    }

    fn change_of(&self, state: &State, what: Verified, now: &[InLeaf]) -> Option<Change> {
        // In the packet: extracted, and where is known.
        let place = |var: VarId| {
            let (header, field) = field_of(self.program(), var)?;
            let known = state.headers[header.index()].extracted && self.places[header.index()].is_some();
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
                if info.varbit || info.width > 32 || parts.len() == MOST_CHANGED {
                    return None;
                }
                let (before, now) = (place(*before)?, new.clone());
                parts.push(ChangedPart { before, now, at });
            }
            // A varbit is empty, or the last.
            at += if info.varbit { 0 } else { info.width };
        }
        Some(Change { checksum, parts })
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

    /// Blocks that have a checksum from the one that the packet has, and what may have changed since.
    pub fn changed_checksums(&self) -> Vec<(BlockId, Vec<VarId>)> {
        let headers = &self.program().headers;
        let mut found = Vec::new();
        for &id in &self.order {
            for (step, state) in self.steps(id).zip(self.states(id)) {
                if let Some(call) = step.internet_checksum()
                    && self.is_summed_inline(&state, call)
                    && let Some(change) = self.change_of_checksum(&state, call)
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
