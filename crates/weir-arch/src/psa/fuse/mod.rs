//! PSA's programmable blocks and what the driver does between them, as one pipeline for a compiling
//! engine.
//!
//! The pipeline is the fast path: a packet that is received at a port and sent to one port, whose
//! queue is empty, or dropped. Clones, groups, resubmission, recirculation and other classes of
//! service are punted after ingress, and [`super::driver`] resumes there. Packets whose egress
//! parser needs real bytes are punted before it. Packets that clone in egress are punted after the
//! egress control.

mod calls;
mod sums;

pub(crate) use self::calls::FusedCall;
use self::calls::Fusible;
use super::driver::{PORT_RECIRCULATE, Psa};
use super::externs::{self, Op, SELECTORS};
use super::fields::Path;
use crate::emits::{self, Emit};
use crate::error::NotCompiled;
use crate::fused::{Fused, Input};
use crate::pipeline_builder::{AppendCode, Appended, PipelineBuilder, constant, non_consuming_loops, pseudo};
use crate::queue_use::sets_any;
use crate::reparse::{self, Emitted, Reparse};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use weir_ir::passes::Renaming;
use weir_ir::{
    ArgumentValue, BinaryOp, BlockId, Call, HeaderId, InLeaf, InstKind, Loc, Operand, Program, Rvalue, Terminator,
    Type, UnaryOp, VarId,
};

/// Exits of the pipeline: their numbers. `calls` lists them in this order.
pub(crate) mod exit {
    pub const TRANSMIT: u32 = 0;
    pub const INGRESS_DROP: u32 = 1;
    pub const EGRESS_DROP: u32 = 2;
    /// The ingress control has ended; nothing after it has run.
    pub const PUNT_AFTER_INGRESS: u32 = 3;
    /// The ingress deparser has run, and has not built the packet's bytes: the egress parser needs
    /// them.
    pub const PUNT_BEFORE_EGRESS_PARSER: u32 = 4;
    /// An assertion has failed.
    pub const ASSERT: u32 = 5;
    /// The packet has exceeded its instruction budget.
    pub const INSTRUCTION_BUDGET_DROP: u32 = 6;
    /// The driver runs the received packet from the start of its parser.
    pub const PUNT_FROM_START: u32 = 7;
    /// The egress control has ended, and the packet clones.
    pub const END_OF_EGRESS: u32 = 8;
    /// A registered extern dropped the packet.
    pub const EXTERN: u32 = 9;
}

/// Makes the pipeline's body, one programmable block after the other.
struct Builder<'a> {
    arch: &'a Psa,
    builder: PipelineBuilder,
    now_us: VarId,
    /// The port to which the packet is sent.
    port: VarId,
    emitted: Emitted,
    /// The programmable block that is being appended, by its index in [`Program::blocks`].
    current_block: usize,
    /// Something cannot be done.
    problem: Option<NotCompiled>,
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

/// Pairs of an emitted ingress header, by its position among the emitted ones, and the egress
/// header that the egress parser extracts from it. The two share their variables from that
/// extraction on.
pub(crate) fn aliases(program: &Program, egress_parser: usize, emits: &[Emit]) -> Vec<(usize, HeaderId)> {
    reparse::aliases(program, &program.blocks[egress_parser].body, emits)
}

/// A variable that the driver receives with punted packets, and that only the pipeline has, not the
/// program. Number 0 is the port. Number `i + 1` says whether the header at position `i` was
/// emitted.
pub(crate) fn punt_variable(program: &Program, number: usize) -> VarId {
    VarId::new(program.vars.len() + number)
}

/// The pipeline of a program.
///
/// # Errors
/// Something in it needs the driver at every step.
pub(crate) fn fuse(arch: &Psa) -> Result<Fused, NotCompiled> {
    let program = &arch.program;
    let blocks = arch.blocks;
    let refused = |block: usize, problem: &str| Err(NotCompiled::block(program, block, problem));
    let Some(emits) = arch.emits.clone() else {
        return refused(blocks.ingress.deparser, "what it emits is not known beforehand");
    };
    // Parsers and deparsers that the driver repeats, or runs only on request, must have no lasting
    // effects. For digests the driver takes over, and runs the ingress deparser from its beginning.
    let nothing = |_: &Op| false;
    let digests = |op: &Op| matches!(op, Op::Digest { .. });
    let deparser = &program.blocks[blocks.ingress.deparser].body;
    let calls = "it calls externs whose effects last";
    for block in [blocks.ingress.parser, blocks.egress.parser, blocks.egress.deparser] {
        if arch.has_side_effects(block, nothing) {
            return refused(block, calls);
        }
    }
    if arch.has_side_effects(blocks.ingress.deparser, digests) {
        return refused(blocks.ingress.deparser, calls);
    }
    if !non_consuming_loops(&program.blocks[blocks.egress.parser].body).is_empty() {
        return refused(blocks.egress.parser, "it has a loop that takes nothing from the packet");
    }
    if blocks.ingress.deparser_has_side_effects && !emits::may_rerun(program, deparser) {
        let problem = "it sends digests, and would change headers again where the driver runs it once more";
        return refused(blocks.ingress.deparser, problem);
    }
    if !reparse::is_affordable(&program.blocks[blocks.egress.parser].body, emits.len()) {
        return refused(
            blocks.egress.parser,
            "with all that ingress may emit it would be too much code",
        );
    }
    if !reparse::are_whole_bytes(program, &emits) {
        let problem = "it may emit a header that is not whole bytes, and pads the packet then";
        return refused(blocks.ingress.deparser, problem);
    }
    let mut builder = PipelineBuilder::new(program);
    let port = builder.variable("$port", 32);
    debug_assert_eq!(port, punt_variable(program, 0));
    let flags: Vec<VarId> = emits.iter().map(|_| builder.variable("$emitted", 1)).collect();
    let now_us = builder.variable("$now_us", 64);
    let mut emitted = Emitted {
        flags: (emits.iter().zip(flags))
            .map(|(e, flag)| (!e.always).then_some(flag))
            .collect(),
        emits,
        aliased: Vec::new(),
        renaming: Renaming::default(),
        leading_headers: 0,
        punt_exit: exit::PUNT_BEFORE_EGRESS_PARSER,
        deparse_block: None,
    };
    emitted.alias(program, arch.aliases());
    let mut builder = Builder {
        arch,
        builder,
        now_us,
        port,
        emitted,
        current_block: 0,
        problem: None,
    };
    let error_path = builder.append_pipeline();
    match (builder.problem.take(), error_path) {
        (None, Some(error_path)) => builder.finish(error_path),
        (Some(problem), _) => Err(problem),
        (None, None) => {
            let problem = "metadata or headers of a length that only packets know";
            refused(blocks.ingress.control, problem)
        }
    }
}

impl AppendCode for Builder<'_> {
    fn instruction(&mut self, kind: &InstKind, loc: Loc) {
        let blocks = self.arch.blocks;
        match kind {
            InstKind::Mark(_) => {}
            InstKind::Emit { header } if self.current_block == blocks.ingress.deparser => {
                let emitted_index = self.emitted.emits.iter().position(|e| e.header == *header);
                if let Some(flag) = emitted_index.and_then(|emitted_index| self.emitted.flags[emitted_index]) {
                    self.set(Some(flag), 1);
                }
            }
            kind => {
                let renamed = match self.is_egress() {
                    true => self.emitted.renaming.inst(kind),
                    false => kind.clone(),
                };
                match &renamed {
                    InstKind::Call(call) => self.call(call, &renamed, loc),
                    _ => self.push(renamed, loc),
                }
            }
        }
    }

    fn terminator(&self, terminator: &Terminator) -> Terminator {
        match self.is_egress() {
            true => self.emitted.renaming.terminator(terminator),
            false => terminator.clone(),
        }
    }
}

impl Reparse for Builder<'_> {
    fn emitted(&self) -> &Emitted {
        &self.emitted
    }
}

impl Builder<'_> {
    fn append_programmable_block(&mut self, index: usize) -> Appended {
        let program = Arc::clone(&self.arch.program);
        self.begin(index);
        self.append_code_of(&program, index)
    }

    /// Whether egress is being appended.
    fn is_egress(&self) -> bool {
        let egress = self.arch.blocks.egress;
        [egress.parser, egress.control, egress.deparser].contains(&self.current_block)
    }

    /// Appends a call of a registered extern.
    fn registered(&mut self, call: &Call, loc: Loc) -> Option<()> {
        let blocks = self.arch.blocks;
        if [blocks.ingress.parser, blocks.egress.parser].contains(&self.current_block) {
            return None;
        }
        let bound = Arc::clone(self.arch.registered.find(call, loc)?);
        self.registered_call(&bound, call, loc);
        Some(())
    }

    fn begin(&mut self, index: usize) {
        self.current_block = index;
        self.clear_sums();
    }

    fn call(&mut self, call: &Call, kind: &InstKind, loc: Loc) {
        let op = externs::own(&self.arch.program, call);
        let done = match &op {
            Some(Op::Flags {
                set,
                clear,
                recirculates,
            }) => self.flags_of(call, set, clear, *recirculates),
            Some(
                op @ (Op::InternetClear(_)
                | Op::InternetAdd(_)
                | Op::InternetSubtract(_)
                | Op::InternetGet(_)
                | Op::InternetState(_)
                | Op::InternetSetState(_)),
            ) => self.internet(op, call, loc),
            Some(Op::Assert(_)) => {
                self.assertion(kind, call, loc);
                Some(())
            }
            Some(Op::DirectCount(_)) => {
                // As a counter of as many cells as there are entries: whole vectors are counted at
                // once.
                let index = call.entry.map_or_else(|| constant(32, 0), Operand::Var);
                let argument = ArgumentValue::In(vec![InLeaf::Value(index)]);
                if let InstKind::Call(mut count) = pseudo("count", Some(argument), None) {
                    count.instance = call.instance;
                    self.push(InstKind::Call(count), loc);
                }
                Some(())
            }
            Some(Op::Digest { .. }) if self.current_block == self.arch.blocks.ingress.deparser => {
                self.terminate(Terminator::Exit(exit::PUNT_AFTER_INGRESS));
                self.cursor = self.new_basic_block();
                Some(())
            }
            Some(op) if op.is_fusible() => {
                self.push(kind.clone(), loc);
                Some(())
            }
            // Checksums of other kinds, digests elsewhere, and unknown externs.
            Some(_) => None,
            None => self.registered(call, loc),
        };
        if done.is_none() {
            let program = &self.arch.program;
            self.problem
                .get_or_insert_with(|| NotCompiled::call(program, call, loc));
        }
    }

    /// Whether bits of the metadata are set and others not.
    fn flags_of(&mut self, call: &Call, set: &[usize], clear: &[usize], recirculates: Option<usize>) -> Option<()> {
        let bit = |argument: usize, leaf: usize| match call.inputs(argument).get(leaf) {
            Some(InLeaf::Value(operand)) => Some(operand.clone()),
            _ => None,
        };
        let holds = self.temporary(1);
        self.assign(holds, Rvalue::Use(constant(1, 1)));
        for &leaf in set {
            self.assign(holds, Rvalue::Binary(BinaryOp::And, Operand::Var(holds), bit(0, leaf)?));
        }
        for &leaf in clear {
            let not = self.temporary(1);
            self.assign(not, Rvalue::Unary(UnaryOp::Not, bit(0, leaf)?));
            self.assign(
                holds,
                Rvalue::Binary(BinaryOp::And, Operand::Var(holds), Operand::Var(not)),
            );
        }
        if let Some(leaf) = recirculates {
            let port = bit(1, leaf)?;
            let width = match &port {
                Operand::Var(v) => self.width(*v),
                Operand::Const(c) => c.width(),
            };
            let is_recirculated = self.temporary(1);
            let value = Rvalue::Binary(BinaryOp::Eq, port, constant(width, PORT_RECIRCULATE.into()));
            self.assign(is_recirculated, value);
            self.assign(
                holds,
                Rvalue::Binary(BinaryOp::And, Operand::Var(holds), Operand::Var(is_recirculated)),
            );
        }
        let result = *call.results.first()?;
        self.assign(result, Rvalue::Use(Operand::Var(holds)));
        Some(())
    }

    fn set_all(&mut self, vars: &[Option<VarId>], value: u64) {
        vars.iter().for_each(|v| self.set(*v, value));
    }

    /// Sets metadata that a programmable block must not see to zero; `None` if that cannot be done.
    fn clear(&mut self, vars: &[VarId]) -> Option<()> {
        for &var in vars {
            match self.program.vars[var].ty {
                Type::Bits(_) => self.set(Some(var), 0),
                Type::Varbit(_) => return None,
            }
        }
        Some(())
    }

    /// Everything; gives the body's `on_error` and `error`.
    fn append_pipeline(&mut self) -> Option<(BlockId, VarId)> {
        let arch = self.arch;
        let (fields, blocks) = (&arch.fields, arch.blocks);
        let parser = &arch.program.blocks[blocks.ingress.parser].body;
        let error = parser.error?;
        self.set_all(&fields.ingress_path, fields.path(Path::Normal));
        let appended = self.append_programmable_block(blocks.ingress.parser);
        self.bound_loops(parser, &appended);
        let on_error = appended.on_error.unwrap_or(appended.rejected);
        self.join_parser_ends(appended.accepted, appended.rejected, error, fields.ingress_error);
        let measured = self.egress_measures();
        let headers = match arch.program.shared_group("ingress_headers") {
            Some(group) => group.headers.clone(),
            None => Vec::new(),
        };
        let emitted: Vec<_> = self.emitted.emits.iter().map(|e| e.header).collect();
        if measured
            && !headers
                .iter()
                .chain(&emitted)
                .all(|h| self.has_constant_byte_length(*h))
        {
            return None;
        }
        let before = measured.then(|| self.header_bytes(&headers));
        self.set(fields.ingress.drop, 1);
        self.append_programmable_block(blocks.ingress.control);
        self.end_of_ingress();
        for group in [&fields.normal, &fields.clone_i2e] {
            self.clear(group)?;
        }
        self.append_programmable_block(blocks.ingress.deparser);
        if let Some(before) = before {
            self.punt_if_length_changed(before, &emitted);
        }
        self.egress()?;
        Some((on_error, error))
    }

    /// Punts packets whose headers ingress has made longer or shorter: counters and meters of
    /// egress count the packet that egress receives, and the host knows only the received one.
    fn punt_if_length_changed(&mut self, before: VarId, emitted: &[HeaderId]) {
        for (emitted_index, flag) in self.emitted.flags.clone().into_iter().enumerate() {
            if let Some(flag) = flag {
                // Headers that were left out count for nothing.
                let valid = self.header(emitted[emitted_index]).valid;
                let value = Rvalue::Binary(BinaryOp::And, Operand::Var(valid), Operand::Var(flag));
                self.assign(valid, value);
            }
        }
        let after = self.header_bytes(emitted);
        let differs = self.temporary(1);
        let value = Rvalue::Binary(BinaryOp::Ne, Operand::Var(before), Operand::Var(after));
        self.assign(differs, value);
        self.leave_if(differs, exit::PUNT_BEFORE_EGRESS_PARSER);
    }

    /// Whether egress counts or meters bytes.
    fn egress_measures(&self) -> bool {
        let program = &self.arch.program;
        emits::any(
            &program.blocks[self.arch.blocks.egress.control].body,
            |kind| match kind {
                InstKind::Call(call) => matches!(
                    externs::own(program, call),
                    Some(Op::Count(_) | Op::DirectCount(_) | Op::Meter(_) | Op::DirectMeter(_))
                ),
                _ => false,
            },
        )
    }

    /// The processing by driver and queue, between ingress and egress, of a packet for one port.
    fn end_of_ingress(&mut self) {
        let output = self.arch.fields.ingress;
        if let Some(clone) = output.clone {
            self.leave_if(clone, exit::PUNT_AFTER_INGRESS);
        }
        if let Some(drop) = output.drop {
            // A deparser that sends digests runs for dropped packets too.
            let exit = match self.arch.blocks.ingress.deparser_has_side_effects {
                true => exit::PUNT_AFTER_INGRESS,
                false => exit::INGRESS_DROP,
            };
            self.leave_if(drop, exit);
        }
        if let Some(resubmit) = output.resubmit {
            self.leave_if(resubmit, exit::PUNT_AFTER_INGRESS);
        }
        for var in [output.group, output.class_of_service].into_iter().flatten() {
            let is_set = self.test(BinaryOp::Ne, var, 0);
            self.leave_if(is_set, exit::PUNT_AFTER_INGRESS);
        }
        if let Some(port) = output.port {
            let is_recirculated = self.test(BinaryOp::Eq, port, PORT_RECIRCULATE.into());
            self.leave_if(is_recirculated, exit::PUNT_AFTER_INGRESS);
            let to = self.port;
            self.copy(Some(to), port);
        }
    }

    /// Egress, from its parser to the wire.
    fn egress(&mut self) -> Option<()> {
        let arch = self.arch;
        let (fields, blocks) = (&arch.fields, arch.blocks);
        let port = self.port;
        fields.egress_port.iter().for_each(|v| self.copy(*v, port));
        self.set_all(&fields.egress_path, fields.path(Path::NormalUnicast));
        // Metadata that only packets on other paths have.
        self.clear(&fields.clone_i2e)?;
        let program = Arc::clone(&arch.program);
        let parser = &program.blocks[blocks.egress.parser].body;
        self.begin(blocks.egress.parser);
        let (accepted, rejected) = self.reparse(&program, parser);
        self.join_parser_ends(accepted, rejected, parser.error?, fields.egress_error);
        self.append_programmable_block(blocks.egress.control);
        if let Some(clone) = fields.egress.clone {
            self.leave_if(clone, exit::END_OF_EGRESS);
        }
        if let Some(drop) = fields.egress.drop {
            self.leave_if(drop, exit::EGRESS_DROP);
        }
        self.append_programmable_block(blocks.egress.deparser);
        self.emit_unparsed();
        self.terminate(Terminator::Exit(exit::TRANSMIT));
        Some(())
    }

    fn finish(self, error_path: (BlockId, VarId)) -> Result<Fused, NotCompiled> {
        let (arch, fields, port, renaming) = (self.arch, &self.arch.fields, self.port, self.emitted.renaming);
        let mut inputs = vec![(self.now_us, Input::NowUs)];
        inputs.extend(fields.ingress_port.iter().flatten().map(|v| (*v, Input::Port)));
        let times = [fields.ingress_timestamp, fields.egress_timestamp];
        inputs.extend(times.into_iter().flatten().map(|v| (v, Input::NowUs)));
        // No extern of PSA touches metadata besides its arguments.
        let is_pure = |_: &Call, _| true;
        let finished = self
            .builder
            .finish(error_path, inputs, exit::PUNT_FROM_START, is_pure, |call, loc| {
                calls::call_kind(arch, call, loc)
            })?;
        let exit_table = calls::exit_table(arch, &finished.program, &renaming, port);
        let ordered_tables = finished.program.tables.iter().map(|_| false).collect();
        let mut fused = finished.into_fused(ordered_tables, exit_table, SELECTORS, false);
        let requests = [arch.fields.ingress.clone, arch.fields.ingress.resubmit];
        if sets_any(&arch.program, &requests.into_iter().flatten().collect::<Vec<_>>()) {
            fused.payload_kept = usize::MAX;
        }
        Ok(fused)
    }
}
