//! v1model's programmable blocks and what the driver does between them, as one pipeline for a
//! compiling engine.
//!
//! The pipeline is the fast path: a packet that is received at a port and sent to one port, whose
//! queue is empty, or dropped. Rarer packets are punted where ingress or egress ends, and
//! [`super::driver`] resumes there.

mod calls;
mod exits;

use self::calls::call_kind;
use self::exits::{exit_table, ordered_tables};
use super::driver::{ProgrammableBlocks, V1Model};
use super::externs::{self, Keep, Op};
use super::runtime::DROP_PORT;
use crate::error::NotCompiled;
use crate::fused::{Fused, Input};
use crate::hash::Algorithm;
use crate::pipeline_builder::{AppendCode, Appended, CHECKSUM, PipelineBuilder, RANDOM, SUM, constant, pseudo};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use weir_ir::passes::read_by;
use weir_ir::{
    ArgumentValue, BinaryOp, BlockId, Call, InLeaf, InstKind, Loc, Operand, Rvalue, Terminator, Type, VarId,
};

/// Exits of the pipeline: their numbers. `exits` lists them in this order.
pub(crate) mod exit {
    pub const TRANSMIT: u32 = 0;
    /// `egress_spec` is the drop port at the end of ingress.
    pub const INGRESS_DROP: u32 = 1;
    /// `egress_spec` is the drop port at the end of egress.
    pub const EGRESS_DROP: u32 = 2;
    /// The ingress control has ended; nothing after it has run. The packet is multicast, is for
    /// another queue than that of priority 0, or has requested a clone, digest or the like.
    pub const PUNT_AFTER_INGRESS: u32 = 3;
    /// The egress control has ended; nothing after it has run. The packet has requested a clone,
    /// digest or the like, or the blocks after egress may do so.
    pub const END_OF_EGRESS: u32 = 4;
    /// An assertion has failed.
    pub const ASSERT: u32 = 5;
    /// The packet has exceeded its instruction budget.
    pub const INSTRUCTION_BUDGET_DROP: u32 = 6;
    /// The driver runs the received packet from the start of its parser.
    pub const PUNT_FROM_START: u32 = 7;
    /// A registered extern dropped the packet.
    pub const EXTERN: u32 = 8;
}

/// Makes the pipeline's body, one programmable block after the other.
struct Builder<'a> {
    arch: &'a V1Model,
    builder: PipelineBuilder,
    /// 1 if an extern call made a request that only the driver can fulfil, such as a clone.
    needs_driver: VarId,
    checksum_error: VarId,
    now_us: VarId,
    /// The port to which the packet is sent, even if egress changes the metadata.
    port: VarId,
}

impl Deref for Builder<'_> {
    type Target = PipelineBuilder;

    fn deref(&self) -> &PipelineBuilder {
        &self.builder
    }
}

impl DerefMut for Builder<'_> {
    fn deref_mut(&mut self) -> &mut PipelineBuilder {
        &mut self.builder
    }
}

/// The pipeline of a program.
///
/// # Errors
/// Something in it needs the driver at every step.
pub(crate) fn fuse(arch: &V1Model, blocks: ProgrammableBlocks) -> Result<Fused, NotCompiled> {
    let mut builder = PipelineBuilder::new(&arch.program);
    let (needs_driver, checksum_error) = (builder.variable("$special", 1), builder.variable("$checksum_error", 1));
    let (now_us, port) = (builder.variable("$now_us", 64), builder.variable("$port", 32));
    let mut builder = Builder {
        arch,
        builder,
        needs_driver,
        checksum_error,
        now_us,
        port,
    };
    let error_path = builder.append_pipeline(blocks)?;
    builder.finish(blocks, error_path)
}

impl AppendCode for Builder<'_> {
    fn instruction(&mut self, kind: &InstKind, loc: Loc) {
        let InstKind::Call(call) = kind else {
            if !matches!(kind, InstKind::Mark(_)) {
                self.push(kind.clone(), loc);
            }
            return;
        };
        let op = externs::call_op(&self.arch.program, call, loc, &self.arch.registered);
        match op {
            Ok(Op::MarkToDrop) => {
                let fields = &self.arch.fields;
                self.set(fields.egress_spec, DROP_PORT);
                self.set(fields.mcast_grp, 0);
            }
            Ok(Op::DirectCounterCount) => {}
            Ok(Op::VerifyChecksum(checksum)) if !checksum.payload && self.is_internet_checksum(call) => {
                self.checksum(call, checksum.header, false, loc);
            }
            Ok(Op::UpdateChecksum(checksum)) if !checksum.payload && self.is_internet_checksum(call) => {
                self.checksum(call, checksum.header, true, loc);
            }
            Ok(Op::Hash(_)) if self.is_inlinable_sum(call) => self.sum(call, loc),
            Ok(Op::Assert(_)) => self.assertion(kind, call, loc),
            Ok(Op::Registered(bound)) => self.registered_call(&bound, call, loc),
            Ok(Op::VerifyChecksum(checksum)) => {
                let mut call = call.clone();
                self.require_header(&mut call, checksum.header);
                self.push(InstKind::Call(call), loc);
                let failed = self.temporary(1);
                self.push(pseudo("$checksum_error", None, Some(failed)), loc);
                let error = self.checksum_error;
                self.assign(
                    error,
                    Rvalue::Binary(BinaryOp::Or, Operand::Var(error), Operand::Var(failed)),
                );
            }
            Ok(Op::Clone(_) | Op::Resubmit(_) | Op::Recirculate(_) | Op::Truncate | Op::Digest { .. }) => {
                self.push(kind.clone(), loc);
                let needs_driver = self.needs_driver;
                self.assign(needs_driver, Rvalue::Use(constant(1, 1)));
            }
            _ => self.push(kind.clone(), loc),
        }
    }
}

impl Builder<'_> {
    /// Appends a programmable block, by its index in [`weir_ir::Program::blocks`].
    fn append_programmable_block(&mut self, index: usize) -> Appended {
        let program = Arc::clone(&self.arch.program);
        self.append_code_of(&program, index)
    }

    /// Whether argument `index`, a `HashAlgorithm`, is the Internet checksum.
    fn is_csum16(&self, call: &Call, index: usize) -> bool {
        calls::algorithm(self.arch, call, index) == Some(Algorithm::Csum16)
    }

    fn is_internet_checksum(&self, call: &Call) -> bool {
        self.is_csum16(call, 3)
    }

    /// Whether a `hash(result, algorithm, base, data, max)` can be inlined as a sum: it is the
    /// Internet checksum of its data and nothing else, and all its headers begin at whole words of
    /// the sum.
    fn is_inlinable_sum(&self, call: &Call) -> bool {
        let is_checksum = self.is_csum16(call, 1)
            && call.constant_input(2) == Some(0)
            && call.constant_input(4).is_some_and(|max| max > 0xffff);
        // Bits so far; `None` after a field of variable length.
        let mut bit_offset = Some(0u32);
        is_checksum
            && call.inputs(3).iter().all(|leaf| match leaf {
                InLeaf::Value(operand) => {
                    let (width, fixed) = match operand {
                        Operand::Var(v) => (self.width(*v), matches!(self.program.vars[*v].ty, Type::Bits(_))),
                        Operand::Const(c) => (c.width(), true),
                    };
                    let known = bit_offset.is_some();
                    bit_offset = bit_offset.filter(|_| fixed).map(|bit_offset| bit_offset + width);
                    known
                }
                InLeaf::Header(header) => {
                    let ty = &self.program.header_types[self.program.headers[*header].ty];
                    let whole = bit_offset.is_some_and(|bit_offset| bit_offset.is_multiple_of(16))
                        && ty.fixed_width().is_multiple_of(16);
                    bit_offset = bit_offset
                        .filter(|_| ty.varbit_field().is_none())
                        .map(|bit_offset| bit_offset + ty.fixed_width());
                    whole
                }
            })
    }

    /// A sum for which [`Self::is_inlinable_sum`] holds. First sums the fields of each valid
    /// header.
    fn sum(&mut self, call: &Call, loc: Loc) {
        let mut all = Vec::new();
        let mut so_far = None;
        for leaf in call.inputs(3) {
            let header = match leaf {
                InLeaf::Value(_) => {
                    all.push(leaf.clone());
                    continue;
                }
                InLeaf::Header(header) => &self.program.headers[*header],
            };
            let valid = header.valid;
            let fields = header.fields.clone();
            let sum = match so_far {
                Some(sum) => sum,
                None => self.begin_sum(),
            };
            so_far = Some(sum);
            let data = [sum].into_iter().chain(fields);
            let data = data.map(|v| InLeaf::Value(Operand::Var(v))).collect();
            let (compute, join) = (self.new_basic_block(), self.new_basic_block());
            self.terminate(Terminator::Branch {
                condition: Operand::Var(valid),
                then: compute,
                otherwise: join,
            });
            self.cursor = compute;
            self.push(pseudo(SUM, Some(ArgumentValue::In(data)), Some(sum)), loc);
            self.terminate(Terminator::Goto(join));
            self.cursor = join;
        }
        // Before the scalars, which may end with a field of variable length.
        all.splice(0..0, so_far.map(|sum| InLeaf::Value(Operand::Var(sum))));
        let result = self.temporary(16);
        self.push(pseudo(CHECKSUM, Some(ArgumentValue::In(all)), Some(result)), loc);
        self.copy(call.outputs(0).first().copied(), result);
    }

    /// The condition of `(condition, data, checksum, algorithm)`, and that the header is valid.
    fn checksum_condition(&mut self, call: &Call, header: Option<VarId>) -> Operand {
        let condition = call.input(0).cloned().unwrap_or_else(|| constant(1, 0));
        match header {
            Some(valid) if condition != Operand::Var(valid) => {
                let both = self.temporary(1);
                self.assign(both, Rvalue::Binary(BinaryOp::And, condition, Operand::Var(valid)));
                Operand::Var(both)
            }
            _ => condition,
        }
    }

    /// Puts the validity of the checksum's header into the condition of a call: once the checksum
    /// is folded to a constant, the call names the header no more.
    fn require_header(&mut self, call: &mut Call, header: Option<VarId>) {
        let condition = self.checksum_condition(call, header);
        if let Some(argument) = call.arguments.first_mut() {
            argument.value = ArgumentValue::In(vec![InLeaf::Value(condition)]);
        }
    }

    /// `(condition, data, checksum, algorithm)`: where the condition holds and the header is valid,
    /// compares or replaces.
    fn checksum(&mut self, call: &Call, header: Option<VarId>, update: bool, loc: Loc) {
        let condition = self.checksum_condition(call, header);
        let (compute, join) = (self.new_basic_block(), self.new_basic_block());
        self.terminate(Terminator::Branch {
            condition,
            then: compute,
            otherwise: join,
        });
        self.cursor = compute;
        let sum = self.temporary(16);
        let data = call
            .arguments
            .get(1)
            .map_or(ArgumentValue::In(Vec::new()), |a| a.value.clone());
        self.push(pseudo(CHECKSUM, Some(data), Some(sum)), loc);
        if update {
            self.copy(call.outputs(2).first().copied(), sum);
        } else if let Some(found) = call.input(2) {
            let width = match found {
                Operand::Var(v) => self.width(*v),
                Operand::Const(c) => c.width(),
            };
            let (same_width, differs) = (self.temporary(width), self.temporary(1));
            self.copy(Some(same_width), sum);
            self.assign(
                differs,
                Rvalue::Binary(BinaryOp::Ne, Operand::Var(same_width), found.clone()),
            );
            let error = self.checksum_error;
            self.assign(
                error,
                Rvalue::Binary(BinaryOp::Or, Operand::Var(error), Operand::Var(differs)),
            );
        }
        self.terminate(Terminator::Goto(join));
        self.cursor = join;
    }

    /// Whether code of egress and after reads the packet's length, which must then be kept.
    fn length_is_read(&self, blocks: ProgrammableBlocks) -> bool {
        let program = &self.arch.program;
        let mut found = false;
        for block in [blocks.egress, blocks.compute_checksum, blocks.deparser] {
            read_by(program, &program.blocks[block].body, &mut |v| {
                found |= Some(v) == self.arch.fields.packet_length;
            });
        }
        found
    }

    /// Appends all programmable blocks; returns the body's `on_error` and `error`.
    fn append_pipeline(&mut self, blocks: ProgrammableBlocks) -> Result<(BlockId, VarId), NotCompiled> {
        let arch = self.arch;
        let fields = arch.fields;
        let length_is_read = self.length_is_read(blocks);
        if length_is_read && !arch.groups.headers.iter().all(|h| self.has_constant_byte_length(*h)) {
            let problem = "it reads packet_length, and there are headers of variable length";
            return Err(NotCompiled::block(&arch.program, blocks.egress, problem));
        }
        let parser = &arch.program.blocks[blocks.parser].body;
        let no_error = || NotCompiled::block(&arch.program, blocks.parser, "it has no error");
        let error = parser.error.ok_or_else(no_error)?;
        // The driver reparses punted packets, so that the parser must have no side effects.
        let mut insts = parser.blocks.iter().flat_map(|(_, b)| &b.insts);
        let call = insts.find_map(|i| match &i.kind {
            InstKind::Call(call) => Some((call, i.loc)),
            _ => None,
        });
        if let Some((call, loc)) = call {
            return Err(NotCompiled::call(&arch.program, call, loc));
        }
        let appended = self.append_programmable_block(blocks.parser);
        self.bound_loops(parser, &appended);
        let on_error = appended.on_error.unwrap_or(appended.rejected);
        self.join_parser_ends(appended.accepted, appended.rejected, error, fields.parser_error);
        let before = length_is_read.then(|| self.header_bytes(&arch.groups.headers));
        self.append_programmable_block(blocks.verify_checksum);
        let checksum_error = self.checksum_error;
        self.copy(fields.checksum_error, checksum_error);
        self.append_programmable_block(blocks.ingress);
        self.end_of_ingress();
        if let (Some(before), Some(length)) = (before, fields.packet_length) {
            let after = self.header_bytes(&arch.groups.headers);
            let width = self.width(length);
            // Externs may have changed the number of bytes.
            let bytes = self.temporary(32);
            self.push(InstKind::PacketLength { dst: bytes }, Loc::default());
            self.copy(Some(length), bytes);
            for (op, by) in [(BinaryOp::Add, after), (BinaryOp::Sub, before)] {
                let part = self.temporary(width);
                self.copy(Some(part), by);
                self.assign(length, Rvalue::Binary(op, Operand::Var(length), Operand::Var(part)));
            }
        }
        self.append_programmable_block(blocks.egress);
        let needs_driver = self.needs_driver;
        self.leave_if(needs_driver, exit::END_OF_EGRESS);
        if let Some(spec) = fields.egress_spec {
            let dropped = self.test(BinaryOp::Eq, spec, DROP_PORT);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        let after_egress = [blocks.compute_checksum, blocks.deparser];
        if after_egress.iter().any(|&b| self.makes_requests(b)) {
            self.terminate(Terminator::Exit(exit::END_OF_EGRESS));
        } else {
            after_egress.iter().for_each(|&b| {
                self.append_programmable_block(b);
            });
            self.terminate(Terminator::Exit(exit::TRANSMIT));
        }
        Ok((on_error, error))
    }

    /// The processing by driver and queue, between ingress and egress, of a packet for one port.
    fn end_of_ingress(&mut self) {
        let fields = self.arch.fields;
        let needs_driver = self.needs_driver;
        self.leave_if(needs_driver, exit::PUNT_AFTER_INGRESS);
        if let Some(group) = fields.mcast_grp {
            let replicated = self.test(BinaryOp::Ne, group, 0);
            self.leave_if(replicated, exit::PUNT_AFTER_INGRESS);
        }
        if let Some(priority) = fields.priority {
            let other_queue = self.test(BinaryOp::Ne, priority, 0);
            self.leave_if(other_queue, exit::PUNT_AFTER_INGRESS);
        }
        let port = self.port;
        if let Some(spec) = fields.egress_spec {
            let dropped = self.test(BinaryOp::Eq, spec, DROP_PORT);
            self.leave_if(dropped, exit::INGRESS_DROP);
            self.copy(Some(port), spec);
        }
        let now = self.now_us;
        self.set(fields.instance_type, 0);
        self.copy(fields.enq_timestamp, now);
        self.set(fields.enq_qdepth, 0);
        self.copy(fields.egress_global_timestamp, now);
        self.set(fields.deq_timedelta, 0);
        self.set(fields.deq_qdepth, 0);
        self.set(fields.qid, 0);
        self.copy(fields.egress_port, port);
        self.set(fields.egress_spec, DROP_PORT + 1);
    }

    /// Whether a control or deparser after egress requests a clone, a digest or the like.
    fn makes_requests(&self, index: usize) -> bool {
        let program = &self.arch.program;
        let body = &program.blocks[index].body;
        let mut insts = body.blocks.iter().flat_map(|(_, b)| &b.insts);
        insts.any(|i| match &i.kind {
            InstKind::Call(call) => matches!(
                externs::call_op(program, call, i.loc, &self.arch.registered),
                Ok(Op::Clone(_) | Op::Resubmit(_) | Op::Recirculate(_) | Op::Truncate | Op::Digest { .. })
            ),
            _ => false,
        })
    }

    fn finish(self, blocks: ProgrammableBlocks, error_path: (BlockId, VarId)) -> Result<Fused, NotCompiled> {
        let (arch, fields, port) = (self.arch, self.arch.fields, self.port);
        let mut inputs = vec![(self.now_us, Input::NowUs)];
        inputs.extend(fields.ingress_port.map(|v| (v, Input::Port)));
        inputs.extend(fields.ingress_global_timestamp.map(|v| (v, Input::NowUs)));
        inputs.extend(fields.packet_length.map(|v| (v, Input::Length)));
        // No extern touches shared metadata besides its arguments, and compilers of the
        // pipeline use `CallKind`: known values of metadata stay known across calls. Calls that
        // keep variables still name them.
        let is_pure = |call: &Call, loc| {
            !matches!(
                externs::call_op(&arch.program, call, loc, &arch.registered),
                Ok(Op::Clone(Keep::Vars(_)) | Op::Resubmit(Keep::Vars(_)) | Op::Recirculate(Keep::Vars(_)))
            )
        };
        let finished = self
            .builder
            .finish(error_path, inputs, exit::PUNT_FROM_START, is_pure, |call, loc| {
                call_kind(arch, call, loc)
            })?;
        let exit_table = exit_table(arch, blocks, &finished.program, &finished.calls, port);
        let mut fused = finished.into_fused(ordered_tables(arch), exit_table, externs::SELECTORS, true);
        if arch.sends_received() {
            fused.payload_kept = usize::MAX;
        }
        Ok(fused)
    }
}
