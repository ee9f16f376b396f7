//! `Checksum` as arithmetic: an instance is a variable that holds its one's complement sum.
//!
//! A residual checksum (`subtract_all_and_deposit`) covers the payload only: each header that the
//! parser extracts afterwards is subtracted. At the end of the parser the rest is stored.

use super::super::externs::{self, ExternOp};
use super::{Builder, CallOutcome, exit};
use crate::pipeline_builder::{AppendCode, constant};
use std::sync::Arc;
use weir_ir::{BinaryOp, Body, Call, ExternId, HeaderId, InLeaf, InstKind, Loc, Operand, Rvalue, VarId};

/// The variables of a residual checksum.
#[derive(Debug, Clone)]
pub(super) struct ResidualChecksum {
    /// The call's outputs, which receive it.
    destinations: Vec<VarId>,
    /// The sum without the headers that were extracted since the deposit.
    sum: VarId,
    /// Whether the deposit was executed.
    is_deposited: VarId,
}

/// The number of bits, if it is a constant multiple of 16 of at most 4,096.
fn whole_words(bits: &Operand) -> Option<u32> {
    let Operand::Const(bits) = bits else { return None };
    let all = u32::try_from(bits.to_u64()?).ok()?;
    (all.is_multiple_of(16) && all <= 1 << 12).then_some(all)
}

impl Builder<'_> {
    /// Sets the sums of all instances that a body uses to 0, as at the start of every programmable
    /// block.
    pub(super) fn clear_checksums(&mut self, body: &Body) {
        let program = Arc::clone(self.arch.program());
        for (_, block) in body.blocks.iter() {
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind
                    && let Some(id) = call.instance
                    && program.externs[id].type_name == "Checksum"
                    && call.function != "update"
                {
                    let sum = self.checksum_variable(id);
                    self.set(Some(sum), 0);
                }
            }
        }
    }

    /// Appends a call of a checksum. `None`: it is another call, or has no compiled form.
    pub(super) fn checksum_call(&mut self, op: &ExternOp, call: &Call, loc: Loc) -> Option<()> {
        match op {
            ExternOp::ChecksumAdd(id) => {
                let sum = self.checksum_variable(*id);
                self.add_leaves(sum, call.inputs(0), false, loc)
            }
            ExternOp::ChecksumSubtract(id) => {
                let sum = self.checksum_variable(*id);
                self.add_leaves(sum, call.inputs(0), true, loc)
            }
            ExternOp::ChecksumVerify(id) => {
                let (sum, result) = (self.checksum_variable(*id), *call.results.first()?);
                let is_wrong = Rvalue::Binary(BinaryOp::Ne, Operand::Var(sum), constant(16, 0xffff));
                self.assign(result, is_wrong);
                Some(())
            }
            ExternOp::ChecksumGet(id) => {
                let sum = self.checksum_variable(*id);
                self.copy(call.results.first().copied(), sum);
                Some(())
            }
            _ => None,
        }
    }

    /// The instance of a `subtract_all_and_deposit`; `None` for other calls.
    fn deposited_checksum(&self, call: &Call, loc: Loc) -> Option<ExternId> {
        match externs::own(self.arch.program(), call, loc) {
            Ok(Some(ExternOp::ChecksumDeposit(id))) => Some(id),
            _ => None,
        }
    }

    /// Declares the residual checksums of a parser. Deposits with the same outputs share variables,
    /// since the last one counts.
    pub(super) fn declare_residual_checksums(&mut self, parser: &Body) {
        self.residual_checksums.clear();
        for (_, block) in parser.blocks.iter() {
            for inst in &block.insts {
                let InstKind::Call(call) = &inst.kind else { continue };
                if self.deposited_checksum(call, inst.loc).is_none() {
                    continue;
                }
                let destinations = call.outputs(0).to_vec();
                if self
                    .residual_checksums
                    .iter()
                    .all(|known| known.destinations != destinations)
                {
                    let (sum, is_deposited) = (self.variable("$residual_checksum", 16), self.variable("$deposited", 1));
                    self.set(Some(is_deposited), 0);
                    self.residual_checksums.push(ResidualChecksum {
                        destinations,
                        sum,
                        is_deposited,
                    });
                }
            }
        }
    }

    /// Appends a `subtract_all_and_deposit`. It has no compiled form within the intrinsic prefix.
    pub(super) fn deposit(&mut self, call: &Call, is_in_packet: bool, loc: Loc) -> CallOutcome {
        let Some(id) = self.deposited_checksum(call, loc) else {
            return CallOutcome::OtherCall;
        };
        if !is_in_packet {
            return CallOutcome::NoCompiledForm;
        }
        let sum = self.checksum_variable(id);
        let deposit = self
            .residual_checksums
            .iter()
            .find(|known| known.destinations == call.outputs(0))
            .cloned();
        CallOutcome::of(deposit.map(|deposit| {
            self.copy(Some(deposit.sum), sum);
            self.set(Some(deposit.is_deposited), 1);
            deposit
                .destinations
                .iter()
                .for_each(|destination| self.copy(Some(*destination), sum));
        }))
    }

    /// Appends a parser instruction after the intrinsic prefix. Bits that it consumes are
    /// subtracted from residual checksums. If they are unknown, packets with a residual checksum
    /// are punted. `None`: the bits cannot be summed.
    pub(super) fn packet_instruction(&mut self, kind: &InstKind, loc: Loc) -> Option<()> {
        if self.residual_checksums.is_empty() {
            self.instruction(kind, loc);
            return Some(());
        }
        let mut extracted = Vec::new();
        match kind {
            InstKind::Extract {
                header,
                varbit_bits: None,
            } => match self.fields_of(*header) {
                Some(fields) => extracted = fields,
                None => self.punt_if_deposited(loc),
            },
            InstKind::Extract { .. } => self.punt_if_deposited(loc),
            InstKind::Advance { bits } => match whole_words(bits) {
                Some(all) => {
                    for offset in (0..all).step_by(64) {
                        let dst = self.temporary((all - offset).min(64));
                        self.push(InstKind::Lookahead { dst, offset }, loc);
                        extracted.push(InLeaf::Value(Operand::Var(dst)));
                    }
                }
                None => self.punt_if_deposited(loc),
            },
            _ => {}
        }
        self.instruction(kind, loc);
        if extracted.is_empty() {
            return Some(());
        }
        for deposit in self.residual_checksums.clone() {
            let join = self.branch(Operand::Var(deposit.is_deposited));
            self.add_leaves(deposit.sum, &extracted, true, loc)?;
            self.jump_to(join);
        }
        Some(())
    }

    /// Punts packets that have a residual checksum, because an unknown number of bits is consumed.
    fn punt_if_deposited(&mut self, loc: Loc) {
        self.note_punt_reason(loc);
        for deposit in self.residual_checksums.clone() {
            self.leave_if(deposit.is_deposited, exit::PUNT_FROM_START);
        }
    }

    /// The fields of a header, if it consists of whole 16-bit words.
    fn fields_of(&self, header: HeaderId) -> Option<Vec<InLeaf>> {
        let instance = self.header(header);
        let width = self.program.header_types[instance.ty].fixed_width();
        let fields = instance.fields.iter().map(|f| InLeaf::Value(Operand::Var(*f)));
        width.is_multiple_of(16).then(|| fields.collect())
    }

    /// Stores the residual checksums in their destinations, at the end of the parser.
    pub(super) fn store_residual_checksums(&mut self) {
        for deposit in self.residual_checksums.clone() {
            let join = self.branch(Operand::Var(deposit.is_deposited));
            deposit
                .destinations
                .iter()
                .for_each(|destination| self.copy(Some(*destination), deposit.sum));
            self.jump_to(join);
        }
    }
}
