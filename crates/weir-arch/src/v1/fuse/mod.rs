//! v1model's blocks and what the driver does between them, as one pipeline for a compiling engine.
//!
//! The pipeline is the way of the plain packet: received at a port, sent to one port whose queue is empty, or
//! dropped. What is rarer leaves it where ingress or egress ends, and [`super::driver`] goes on from there.

mod calls;
mod exits;

use self::calls::call_kind;
use self::exits::{exits, ordered_tables};
use super::driver::{Blocks, V1Model};
use super::externs::{self, Keep, Op};
use super::runtime::DROP_PORT;
use crate::driver::DropReason;
use crate::fused::{Fused, FusedExit, Input};
use crate::hash::Algorithm;
use std::sync::Arc;
use weir_ir::passes::{Scope, VarSet, fold_paths, read_by};
use weir_ir::pipeline::Pipeline;
use weir_ir::{
    Arena, Argument, ArgumentValue, BasicBlock, BinaryOp, Bits, BlockId, Body, Call, Display, InLeaf, Inst, InstKind,
    Loc, Operand, Program, Rvalue, Terminator, Type, Var, VarId, VarKind,
};

/// State of the generator of random numbers, for the order of calls.
const RANDOM: u32 = u32::MAX;

/// Exits of the pipeline.
pub(crate) mod exit {
    pub const TRANSMIT: u32 = 0;
    pub const INGRESS_DROP: u32 = 1;
    pub const EGRESS_DROP: u32 = 2;
    pub const END_OF_INGRESS: u32 = 3;
    pub const END_OF_EGRESS: u32 = 4;
    pub const ASSERT: u32 = 5;
    pub const OVERRUN: u32 = 6;
    pub const RESTART: u32 = 7;
}

fn constant(width: u32, value: u64) -> Operand {
    Operand::Const(Bits::new(width, value.into()))
}

/// Makes the pipeline's body block by block.
struct Builder<'a> {
    arch: &'a V1Model,
    program: Program,
    blocks: Arena<BasicBlock>,
    /// Where instructions go now.
    at: BlockId,
    special: VarId,
    checksum_error: VarId,
    now_us: VarId,
    /// The port a packet goes to, whatever egress makes of the metadata.
    port: VarId,
}

/// The pipeline of a program; `None` where something in it needs the driver at every step.
pub(crate) fn fuse(arch: &V1Model, blocks: Blocks) -> Option<Fused> {
    let mut program = Program::clone(&arch.program);
    let mut new = |name: &str, width| {
        program.vars.push(Var {
            name: name.to_owned(),
            ty: Type::Bits(width),
            display: Display::Unsigned,
            kind: VarKind::Temporary,
        })
    };
    let (special, checksum_error) = (new("$special", 1), new("$checksum_error", 1));
    let (now_us, port) = (new("$now_us", 64), new("$port", 32));
    let mut arena = Arena::default();
    let at = arena.push(empty());
    let mut builder = Builder {
        arch,
        program,
        blocks: arena,
        at,
        special,
        checksum_error,
        now_us,
        port,
    };
    let (on_error, error) = builder.whole(blocks)?;
    builder.finish(blocks, on_error, error)
}

fn empty() -> BasicBlock {
    BasicBlock {
        state: None,
        insts: Vec::new(),
        terminator: Terminator::Return,
        loc: Loc::default(),
    }
}

impl Builder<'_> {
    fn block(&mut self) -> BlockId {
        self.blocks.push(empty())
    }

    fn push(&mut self, kind: InstKind, loc: Loc) {
        self.blocks[self.at].insts.push(Inst { kind, loc });
    }

    fn assign(&mut self, dst: VarId, value: Rvalue) {
        self.push(InstKind::Assign { dst, value }, Loc::default());
    }

    fn end(&mut self, terminator: Terminator) {
        self.blocks[self.at].terminator = terminator;
    }

    fn temporary(&mut self, width: u32) -> VarId {
        self.program.vars.push(Var {
            name: "$t".to_owned(),
            ty: Type::Bits(width),
            display: Display::Unsigned,
            kind: VarKind::Temporary,
        })
    }

    fn width(&self, var: VarId) -> u32 {
        self.program.vars[var].ty.width()
    }

    /// Sets a field the program has, to a constant modulo its width.
    fn set(&mut self, var: Option<VarId>, value: u64) {
        if let Some(var) = var {
            let width = self.width(var);
            self.assign(var, Rvalue::Use(constant(width, value)));
        }
    }

    /// Sets a field the program has, truncated or extended to its width.
    fn copy(&mut self, to: Option<VarId>, from: VarId) {
        if let Some(to) = to {
            let value = match self.width(to) == self.width(from) {
                true => Rvalue::Use(Operand::Var(from)),
                false => Rvalue::ZeroExtend(Operand::Var(from)),
            };
            self.assign(to, value);
        }
    }

    /// Leaves by an exit where the condition holds; goes on in a new block otherwise.
    fn leave_if(&mut self, condition: VarId, exit: u32) {
        let (out, on) = (self.block(), self.block());
        self.blocks[out].terminator = Terminator::Exit(exit);
        self.end(Terminator::Branch {
            condition: Operand::Var(condition),
            then: out,
            otherwise: on,
        });
        self.at = on;
    }

    fn test(&mut self, op: BinaryOp, var: VarId, value: u64) -> VarId {
        let (result, width) = (self.temporary(1), self.width(var));
        self.assign(result, Rvalue::Binary(op, Operand::Var(var), constant(width, value)));
        result
    }

    /// Appends a block of the program; gives where its ways end: (accept or return, reject).
    fn append(&mut self, index: usize) -> (BlockId, BlockId, Option<BlockId>) {
        let program = Arc::clone(&self.arch.program);
        let body = &program.blocks[index].body;
        let first: Vec<BlockId> = body.blocks.ids().map(|_| self.block()).collect();
        let (done, rejected) = (self.block(), self.block());
        let start = first.first().copied().unwrap_or(done);
        self.end(Terminator::Goto(start));
        for (id, block) in body.blocks.iter() {
            self.at = first[id.index()];
            self.blocks[self.at].loc = block.loc;
            for inst in &block.insts {
                self.instruction(&inst.kind, inst.loc);
            }
            let mut terminator = match &block.terminator {
                Terminator::Accept | Terminator::Return => Terminator::Goto(done),
                Terminator::Reject => Terminator::Goto(rejected),
                other => {
                    let mut other = other.clone();
                    other.map_targets(|b| first[b.index()]);
                    other
                }
            };
            std::mem::swap(&mut self.blocks[self.at].terminator, &mut terminator);
            self.blocks[self.at].loc = block.loc;
        }
        self.at = done;
        (done, rejected, body.on_error.map(|b| first[b.index()]))
    }

    /// Parser states from which there is no way out, appended from block `first` on, stay states: who runs them ends with an
    /// error of the parser, and cannot tell by anything else that they belong to one.
    fn name_endless(&mut self, parser: &Body, first: usize) {
        let takes = |kind: &InstKind| {
            matches!(
                kind,
                InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::Advance { .. }
            )
        };
        let mut ends = vec![false; parser.blocks.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for (id, block) in parser.blocks.iter() {
                let targets = block.terminator.targets();
                let can_end = targets.is_empty()
                    || targets.iter().any(|t| ends[t.index()])
                    || block.insts.iter().any(|i| takes(&i.kind));
                changed |= can_end && !std::mem::replace(&mut ends[id.index()], true);
            }
        }
        for (id, block) in parser.blocks.iter().filter(|(id, _)| !ends[id.index()]) {
            let state = block.state.clone().unwrap_or_default();
            self.blocks[BlockId::new(first + id.index())].state = Some(state);
        }
    }

    fn instruction(&mut self, kind: &InstKind, loc: Loc) {
        let InstKind::Call(call) = kind else {
            if !matches!(kind, InstKind::Mark(_)) {
                self.push(kind.clone(), loc);
            }
            return;
        };
        let op = externs::call_op(&self.arch.program, call, loc, &self.arch.externs);
        match op {
            Ok(Op::MarkToDrop) => {
                let fields = &self.arch.fields;
                self.set(fields.egress_spec, DROP_PORT);
                self.set(fields.mcast_grp, 0);
            }
            Ok(Op::DirectCounterCount) => {}
            Ok(Op::VerifyChecksum { payload: false, header }) if self.is_internet_checksum(call) => {
                self.checksum(call, header, false, loc);
            }
            Ok(Op::UpdateChecksum { payload: false, header }) if self.is_internet_checksum(call) => {
                self.checksum(call, header, true, loc);
            }
            Ok(Op::Hash) if self.is_plain_sum(call) => self.sum(call, loc),
            Ok(Op::Assert(_)) => self.assertion(kind, call, loc),
            Ok(Op::VerifyChecksum { .. }) => {
                self.push(kind.clone(), loc);
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
                let special = self.special;
                self.assign(special, Rvalue::Use(constant(1, 1)));
            }
            _ => self.push(kind.clone(), loc),
        }
    }

    /// No extern touches shared metadata behind its arguments, and whoever compiles the pipeline goes by `CallKind`: what
    /// is known of metadata stays known across calls. Those that keep variables go on naming them.
    fn calls_are_pure(&self, body: &mut Body) {
        for (_, block) in body.blocks.iter_mut() {
            for inst in &mut block.insts {
                let InstKind::Call(call) = &mut inst.kind else { continue };
                let op = externs::call_op(&self.arch.program, call, inst.loc, &self.arch.externs);
                call.is_pure = !matches!(
                    op,
                    Ok(Op::Clone(Keep::Vars(_)) | Op::Resubmit(Keep::Vars(_)) | Op::Recirculate(Keep::Vars(_)))
                );
            }
        }
    }

    /// Only what fails is the host's business.
    fn assertion(&mut self, kind: &InstKind, call: &Call, loc: Loc) {
        let condition = call.input(0).cloned().unwrap_or_else(|| constant(1, 0));
        let (fails, holds) = (self.block(), self.block());
        self.end(Terminator::Branch {
            condition,
            then: holds,
            otherwise: fails,
        });
        self.at = fails;
        self.push(kind.clone(), loc);
        if let Some(Inst {
            kind: InstKind::Call(call),
            ..
        }) = self.blocks[fails].insts.last_mut()
        {
            call.is_pure = true;
        }
        // The host ends the packet's way.
        self.end(Terminator::Goto(holds));
        self.at = holds;
    }

    /// Whether argument `index`, a `HashAlgorithm`, is the Internet checksum.
    fn is_csum16(&self, call: &Call, index: usize) -> bool {
        calls::algorithm(self.arch, call, index) == Some(Algorithm::Csum16)
    }

    fn is_internet_checksum(&self, call: &Call) -> bool {
        self.is_csum16(call, 3)
    }

    /// Whether a `hash(result, algorithm, base, data, max)` is the Internet checksum of its data and nothing else, and
    /// all its headers begin at whole words of the sum.
    fn is_plain_sum(&self, call: &Call) -> bool {
        let plain = self.is_csum16(call, 1)
            && call.constant_input(2) == Some(0)
            && call.constant_input(4).is_some_and(|max| max > 0xffff);
        // Bits so far; `None` after something whose length only the packet knows.
        let mut at = Some(0u32);
        plain
            && call.inputs(3).iter().all(|leaf| match leaf {
                InLeaf::Value(operand) => {
                    let (width, fixed) = match operand {
                        Operand::Var(v) => (self.width(*v), matches!(self.program.vars[*v].ty, Type::Bits(_))),
                        Operand::Const(c) => (c.width(), true),
                    };
                    let known = at.is_some();
                    at = at.filter(|_| fixed).map(|at| at + width);
                    known
                }
                InLeaf::Header(header) => {
                    let ty = &self.program.header_types[self.program.headers[*header].ty];
                    let whole = at.is_some_and(|at| at.is_multiple_of(16)) && ty.fixed_width().is_multiple_of(16);
                    at = at
                        .filter(|_| ty.varbit_field().is_none())
                        .map(|at| at + ty.fixed_width());
                    whole
                }
            })
    }

    /// As [`Self::is_plain_sum`] says. What headers add comes from sums of their own, which are made where they are valid.
    fn sum(&mut self, call: &Call, loc: Loc) {
        let mut all = Vec::new();
        let mut parts = Vec::new();
        for leaf in call.inputs(3) {
            let header = match leaf {
                InLeaf::Value(_) => {
                    all.push(leaf.clone());
                    continue;
                }
                InLeaf::Header(header) => &self.program.headers[*header],
            };
            let valid = header.valid;
            let fields = header.fields.iter().map(|f| InLeaf::Value(Operand::Var(*f))).collect();
            // Of 48 bits, so that what comes after lies in the words of the sum as it did.
            let part = self.temporary(48);
            self.assign(part, Rvalue::Use(constant(48, 0)));
            let (compute, join) = (self.block(), self.block());
            self.end(Terminator::Branch {
                condition: Operand::Var(valid),
                then: compute,
                otherwise: join,
            });
            self.at = compute;
            self.push(
                pseudo("$internet_sum", Some(ArgumentValue::In(fields)), Some(part)),
                loc,
            );
            self.end(Terminator::Goto(join));
            self.at = join;
            parts.push(InLeaf::Value(Operand::Var(part)));
        }
        // Before the scalars, which may end with something whose length only the packet knows.
        parts.extend(all);
        let result = self.temporary(16);
        self.push(
            pseudo("$internet_checksum", Some(ArgumentValue::In(parts)), Some(result)),
            loc,
        );
        self.copy(call.outputs(0).first().copied(), result);
    }

    /// `(condition, data, checksum, algorithm)`: where the condition holds and the header is valid, compares
    /// or replaces.
    fn checksum(&mut self, call: &Call, header: Option<VarId>, update: bool, loc: Loc) {
        let condition = call.input(0).cloned().unwrap_or_else(|| constant(1, 0));
        let condition = match header {
            Some(valid) if condition != Operand::Var(valid) => {
                let both = self.temporary(1);
                self.assign(both, Rvalue::Binary(BinaryOp::And, condition, Operand::Var(valid)));
                Operand::Var(both)
            }
            _ => condition,
        };
        let (compute, join) = (self.block(), self.block());
        self.end(Terminator::Branch {
            condition,
            then: compute,
            otherwise: join,
        });
        self.at = compute;
        let sum = self.temporary(16);
        let data = call
            .arguments
            .get(1)
            .map_or(ArgumentValue::In(Vec::new()), |a| a.value.clone());
        self.push(pseudo("$internet_checksum", Some(data), Some(sum)), loc);
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
        self.end(Terminator::Goto(join));
        self.at = join;
    }

    /// Bytes of all valid headers, for headers of whole bytes.
    fn header_bytes(&mut self) -> VarId {
        let sum = self.temporary(32);
        self.set(Some(sum), 0);
        for header in self.arch.groups.headers.clone() {
            let (valid, bytes) = {
                let h = &self.program.headers[header];
                (h.valid, self.program.header_types[h.ty].fixed_width() / 8)
            };
            let (part, zero) = (self.temporary(32), constant(32, 0));
            self.assign(
                part,
                Rvalue::Mux {
                    condition: Operand::Var(valid),
                    then: constant(32, bytes.into()),
                    otherwise: zero,
                },
            );
            self.assign(
                sum,
                Rvalue::Binary(BinaryOp::Add, Operand::Var(sum), Operand::Var(part)),
            );
        }
        sum
    }

    /// Whether code of egress and after reads the packet's length, which must then be kept.
    fn length_is_read(&self, blocks: Blocks) -> bool {
        let program = &self.arch.program;
        let mut found = false;
        for block in [blocks.egress, blocks.compute_checksum, blocks.deparser] {
            read_by(program, &program.blocks[block].body, &mut |v| {
                found |= Some(v) == self.arch.fields.packet_length;
            });
        }
        found
    }

    /// Everything; gives the body's `on_error` and `error`.
    fn whole(&mut self, blocks: Blocks) -> Option<(BlockId, VarId)> {
        let arch = self.arch;
        let fields = arch.fields;
        let whole_bytes = |p: &Program, h: &weir_ir::HeaderId| {
            let ty = &p.header_types[p.headers[*h].ty];
            ty.varbit_field().is_none() && ty.fixed_width().is_multiple_of(8)
        };
        let length_is_read = self.length_is_read(blocks);
        if length_is_read && !arch.groups.headers.iter().all(|h| whole_bytes(&self.program, h)) {
            return None;
        }
        let parser = &arch.program.blocks[blocks.parser].body;
        let error = parser.error?;
        // The driver parses again where a packet leaves by the way: that must have no effects.
        let mut insts = parser.blocks.iter().flat_map(|(_, b)| &b.insts);
        if insts.any(|i| matches!(i.kind, InstKind::Call(_))) {
            return None;
        }
        let (accepted, rejected, on_error) = self.append(blocks.parser);
        self.name_endless(parser, accepted.index() - parser.blocks.len());
        let on_error = on_error.unwrap_or(rejected);
        let parsed = self.block();
        self.at = accepted;
        self.set(fields.parser_error, 0);
        self.end(Terminator::Goto(parsed));
        self.at = rejected;
        self.copy(fields.parser_error, error);
        let has_error = self.test(BinaryOp::Ne, error, 0);
        let note = self.block();
        self.end(Terminator::Branch {
            condition: Operand::Var(has_error),
            then: note,
            otherwise: parsed,
        });
        self.at = note;
        let what = ArgumentValue::In(vec![InLeaf::Value(Operand::Var(error))]);
        self.push(pseudo("$parser_error", Some(what), None), Loc::default());
        self.end(Terminator::Goto(parsed));
        self.at = parsed;
        let before = length_is_read.then(|| self.header_bytes());
        self.append(blocks.verify_checksum);
        self.copy(fields.checksum_error, self.checksum_error);
        self.append(blocks.ingress);
        self.end_of_ingress();
        if let (Some(before), Some(length)) = (before, fields.packet_length) {
            let after = self.header_bytes();
            let width = self.width(length);
            for (op, by) in [(BinaryOp::Add, after), (BinaryOp::Sub, before)] {
                let part = self.temporary(width);
                self.copy(Some(part), by);
                self.assign(length, Rvalue::Binary(op, Operand::Var(length), Operand::Var(part)));
            }
        }
        self.append(blocks.egress);
        self.leave_if(self.special, exit::END_OF_EGRESS);
        if let Some(spec) = fields.egress_spec {
            let dropped = self.test(BinaryOp::Eq, spec, DROP_PORT);
            self.leave_if(dropped, exit::EGRESS_DROP);
        }
        let late = [blocks.compute_checksum, blocks.deparser];
        if late.iter().any(|&b| self.asks_for_more(b)) {
            self.end(Terminator::Exit(exit::END_OF_EGRESS));
        } else {
            late.iter().for_each(|&b| {
                self.append(b);
            });
            self.end(Terminator::Exit(exit::TRANSMIT));
        }
        Some((on_error, error))
    }

    /// What the driver and the queue do between ingress and egress to a packet for one port.
    fn end_of_ingress(&mut self) {
        let fields = self.arch.fields;
        self.leave_if(self.special, exit::END_OF_INGRESS);
        if let Some(group) = fields.mcast_grp {
            let replicated = self.test(BinaryOp::Ne, group, 0);
            self.leave_if(replicated, exit::END_OF_INGRESS);
        }
        if let Some(priority) = fields.priority {
            let other_queue = self.test(BinaryOp::Ne, priority, 0);
            self.leave_if(other_queue, exit::END_OF_INGRESS);
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
        self.copy(fields.egress_port, port);
        self.set(fields.egress_spec, DROP_PORT + 1);
    }

    /// Whether a block after egress calls for a clone, a digest or the like.
    fn asks_for_more(&self, index: usize) -> bool {
        let program = &self.arch.program;
        let body = &program.blocks[index].body;
        let mut insts = body.blocks.iter().flat_map(|(_, b)| &b.insts);
        insts.any(|i| match &i.kind {
            InstKind::Call(call) => matches!(
                externs::call_op(program, call, i.loc, &self.arch.externs),
                Ok(Op::Clone(_) | Op::Resubmit(_) | Op::Recirculate(_) | Op::Truncate | Op::Digest { .. })
            ),
            _ => false,
        })
    }

    fn finish(mut self, blocks: Blocks, on_error: BlockId, error: VarId) -> Option<Fused> {
        let (arch, fields) = (self.arch, self.arch.fields);
        let mut body = Body {
            blocks: std::mem::take(&mut self.blocks),
            on_error: Some(on_error),
            error: Some(error),
        };
        self.calls_are_pure(&mut body);
        let mut inputs = vec![(self.now_us, Input::NowUs)];
        inputs.extend(fields.ingress_port.map(|v| (v, Input::Port)));
        inputs.extend(fields.ingress_global_timestamp.map(|v| (v, Input::NowUs)));
        inputs.extend(fields.packet_length.map(|v| (v, Input::Length)));
        let program = Arc::new(self.program);
        let mut set = VarSet::new(program.vars.len());
        inputs.iter().for_each(|(v, _)| set.insert(*v));
        let scope = Scope {
            vars: &program.vars,
            headers: &program.headers,
            inputs: &set,
        };
        fold_paths(scope, &mut body, 6);
        let (mut calls, mut kinds) = (Vec::new(), Vec::new());
        for (_, block) in body.blocks.iter() {
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind {
                    let (fused, kind) = call_kind(arch, call, inst.loc)?;
                    calls.push(fused);
                    kinds.push(kind);
                }
            }
        }
        let pipeline = Pipeline {
            ordered_tables: ordered_tables(arch),
            overrun: exit::OVERRUN,
            restart: exit::RESTART,
            exits: exits(arch, blocks, &program, &calls, self.port),
            body,
            inputs: inputs.iter().map(|(v, _)| *v).collect(),
            calls: kinds,
            program,
        };
        debug_assert!(pipeline.is_closed());
        let exits = vec![
            FusedExit::Transmit(self.port),
            FusedExit::Drop(DropReason::IngressDrop),
            FusedExit::Drop(DropReason::EgressDrop),
            FusedExit::Driver { after_egress: false },
            FusedExit::Driver { after_egress: true },
            FusedExit::Drop(DropReason::Assert),
            FusedExit::Drop(DropReason::InstructionBudget),
            FusedExit::Driver { after_egress: false },
        ];
        Some(Fused {
            pipeline: Arc::new(pipeline),
            exits,
            inputs: inputs.into_iter().map(|(_, i)| i).collect(),
            selectors: externs::SELECTORS,
            calls: calls.into(),
        })
    }
}

/// A call of something that is no extern of the program.
fn pseudo(name: &str, argument: Option<ArgumentValue>, result: Option<VarId>) -> InstKind {
    let arguments = argument.map(|value| Argument {
        name: "data".to_owned(),
        value,
    });
    InstKind::Call(Call {
        instance: None,
        function: name.to_owned(),
        type_arguments: Vec::new(),
        arguments: arguments.into_iter().collect(),
        results: result.into_iter().collect(),
        entry: None,
        // Whoever compiles the pipeline is told by `CallKind` what it does.
        is_pure: true,
    })
}
