//! `Checksum` as arithmetic: an instance is a variable that holds its one's complement sum.

use super::super::externs::{self, Op};
use super::{Builder, exit};
use crate::pipeline_builder::{AppendBlocks, constant};
use std::sync::Arc;
use weir_ir::{BinaryOp, Body, Call, ExternId, HeaderId, InLeaf, InstKind, Loc, Operand, Rvalue, VarId};

/// A residual checksum: what of it the parser knows when it is done.
#[derive(Debug, Clone)]
pub(super) struct Deposit {
    /// Where it goes.
    to: Vec<VarId>,
    /// The residual sum: without the headers that were extracted since.
    rest: VarId,
    /// The parser has come by.
    is_open: VarId,
}

/// The number of bits, if it is known and whole words of a sum, and not very many.
fn whole_words(bits: &Operand) -> Option<u32> {
    let Operand::Const(bits) = bits else { return None };
    let all = u32::try_from(bits.to_u64()?).ok()?;
    (all.is_multiple_of(16) && all <= 1 << 12).then_some(all)
}

impl Builder<'_> {
    /// Every block begins with sums of nothing.
    pub(super) fn clear_sums(&mut self, body: &Body) {
        let program = Arc::clone(self.arch.program());
        for (_, block) in body.blocks.iter() {
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind
                    && let Some(id) = call.instance
                    && program.externs[id].type_name == "Checksum"
                    && call.function != "update"
                {
                    let sum = self.sum_of(id);
                    self.set(Some(sum), 0);
                }
            }
        }
    }

    /// What stands for a call of an instance; `None` where nothing can.
    pub(super) fn sum(&mut self, op: &Op, call: &Call, loc: Loc) -> Option<()> {
        match op {
            Op::ChecksumAdd(id) => {
                let sum = self.sum_of(*id);
                self.sum_up(sum, call.inputs(0), false, loc)
            }
            Op::ChecksumSubtract(id) => {
                let sum = self.sum_of(*id);
                self.sum_up(sum, call.inputs(0), true, loc)
            }
            Op::ChecksumVerify(id) => {
                let (sum, result) = (self.sum_of(*id), *call.results.first()?);
                let is_wrong = Rvalue::Binary(BinaryOp::Ne, Operand::Var(sum), constant(16, 0xffff));
                self.assign(result, is_wrong);
                Some(())
            }
            Op::ChecksumGet(id) => {
                let sum = self.sum_of(*id);
                self.copy(call.results.first().copied(), sum);
                Some(())
            }
            _ => None,
        }
    }

    fn deposit_of(&self, call: &Call, loc: Loc) -> Option<ExternId> {
        match externs::own(self.arch.program(), call, loc) {
            Ok(Some(Op::ChecksumDeposit(id))) => Some(id),
            _ => None,
        }
    }

    /// Residual checksums of a parser. Those that go to the same place are one, as the last of them
    /// counts.
    pub(super) fn find_deposits(&mut self, parser: &Body) {
        self.deposits.clear();
        for (_, block) in parser.blocks.iter() {
            for inst in &block.insts {
                let InstKind::Call(call) = &inst.kind else { continue };
                if self.deposit_of(call, inst.loc).is_none() {
                    continue;
                }
                let to = call.outputs(0).to_vec();
                if self.deposits.iter().all(|known| known.to != to) {
                    let (rest, is_open) = (self.variable("$rest", 16), self.variable("$deposited", 1));
                    self.set(Some(is_open), 0);
                    self.deposits.push(Deposit { to, rest, is_open });
                }
            }
        }
    }

    /// `subtract_all_and_deposit`; `None`: the call is no such one. It can be done within the
    /// packet.
    pub(super) fn deposit(&mut self, call: &Call, is_in_packet: bool, loc: Loc) -> Option<Option<()>> {
        let id = self.deposit_of(call, loc)?;
        if !is_in_packet {
            return Some(None);
        }
        let sum = self.sum_of(id);
        let deposit = self.deposits.iter().find(|known| known.to == call.outputs(0)).cloned();
        Some(deposit.map(|deposit| {
            self.copy(Some(deposit.rest), sum);
            self.set(Some(deposit.is_open), 1);
            deposit.to.iter().for_each(|to| self.copy(Some(*to), sum));
        }))
    }

    /// An instruction of a parser behind what is in front of the packet; what it takes is no part
    /// of residual checksums. Where it is not known what that is, packets with such a checksum
    /// leave. `None`: it cannot be summed up at all.
    pub(super) fn packet_inst(&mut self, kind: &InstKind, loc: Loc) -> Option<()> {
        if self.deposits.is_empty() {
            self.instruction(kind, loc);
            return Some(());
        }
        let mut taken = Vec::new();
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => match self.fields_of(*header) {
                Some(fields) => taken = fields,
                None => self.leave_if_deposited(loc),
            },
            InstKind::Extract { .. } => self.leave_if_deposited(loc),
            InstKind::Advance { bits } => match whole_words(bits) {
                Some(all) => {
                    for offset in (0..all).step_by(64) {
                        let dst = self.temporary((all - offset).min(64));
                        self.push(InstKind::Lookahead { dst, offset }, loc);
                        taken.push(InLeaf::Value(Operand::Var(dst)));
                    }
                }
                None => self.leave_if_deposited(loc),
            },
            _ => {}
        }
        self.instruction(kind, loc);
        if taken.is_empty() {
            return Some(());
        }
        for deposit in self.deposits.clone() {
            let otherwise = self.branch(Operand::Var(deposit.is_open));
            self.sum_up(deposit.rest, &taken, true, loc)?;
            self.jump_to(otherwise);
        }
        Some(())
    }

    /// A header that cannot be taken from a sum is extracted, which is known only where there is no
    /// sum yet.
    fn leave_if_deposited(&mut self, loc: Loc) {
        self.note_lost(loc);
        for deposit in self.deposits.clone() {
            self.leave_if(deposit.is_open, exit::RESTART);
        }
    }

    /// The fields of a header of whole words.
    fn fields_of(&self, header: HeaderId) -> Option<Vec<InLeaf>> {
        let instance = self.header(header);
        let width = self.program.header_types[instance.ty].fixed_width();
        let fields = instance.fields.iter().map(|f| InLeaf::Value(Operand::Var(*f)));
        width.is_multiple_of(16).then(|| fields.collect())
    }

    /// Finishes the residual sums.
    pub(super) fn settle_deposits(&mut self) {
        for deposit in self.deposits.clone() {
            let otherwise = self.branch(Operand::Var(deposit.is_open));
            deposit.to.iter().for_each(|to| self.copy(Some(*to), deposit.rest));
            self.jump_to(otherwise);
        }
    }
}
