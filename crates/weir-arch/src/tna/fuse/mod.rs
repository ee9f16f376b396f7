//! Ingress, and what becomes of a packet behind it, as one pipeline for a compiling engine.
//!
//! The pipeline is the way of the plain packet: received at a port, and dropped, or sent to one
//! port, whose queue is empty. A packet that requests a mirror, digest or resubmission exits at the
//! end of the ingress control, and [`super::driver`] resumes there. Copies of groups, packets that
//! the egress parser must see as bytes, and all packets of programs whose egress needs the packet
//! exit deparsed, for the traffic manager. Egress is a second pipeline then (`queued`).

mod calls;
mod counters;
mod dispatch;
mod egress;
mod interp_fallback;
mod intrinsic;
mod queued;
mod registers;
mod sums;
mod values;

pub(crate) use self::calls::FusedCall;
use self::counters::Level;
use self::interp_fallback::InterpFallback;
use self::sums::Deposit;
use super::driver::Tna;
use super::externs::{self, At, Op, SELECTORS};
use super::fields::{Gress, NO_PORT, Pipe, Way};
use super::headers::{self, NO_MATCH};
use crate::error::{LeftOut, NotCompiled};
use crate::fused::{Fused, Input, Queueing};
use crate::pipeline_builder::{AppendBlocks, CHECKSUM, PipelineBuilder, constant, pseudo};
use crate::reparse::{Emitted, Reparse};
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use weir_ir::passes::reachable;
use weir_ir::pipeline::MAGNITUDES;
use weir_ir::{
    ArgumentValue, BinaryOp, BlockId, Call, ExternId, InLeaf, InstKind, Loc, Operand, Program, Rvalue, Terminator,
    Type, UnaryOp, VarId,
};
use weir_table::{Implementation, TableSpec};

/// A count of a direct counter, as that of a counter with a cell for each entry.
const COUNT: &str = "$count";

/// Exits of the pipeline.
pub(crate) mod exit {
    pub const TRANSMIT: u32 = 0;
    pub const INGRESS_DROP: u32 = 1;
    /// The control of ingress has ended, or that of egress where that is the pipeline; nothing
    /// after it has run.
    pub const DRIVER: u32 = 2;
    /// The packet has exceeded its instruction budget.
    pub const OVERRUN: u32 = 3;
    /// The driver runs the packet from the start.
    pub const RESTART: u32 = 4;
    pub const EGRESS_DROP: u32 = 5;
    /// The port writes the transmit time into the packet.
    pub const FINISH: u32 = 6;
    /// The port leads back to ingress.
    pub const RECIRCULATE: u32 = 7;
    /// Ingress has deparsed the packet for the traffic manager.
    pub const QUEUE: u32 = 8;
    /// A registered extern dropped the packet.
    pub const EXTERN: u32 = 9;
}

/// Makes the pipeline's body block by block.
struct Builder<'a> {
    arch: &'a Tna,
    /// The pipes whose ingress and egress are being appended.
    ingress: &'a Pipe,
    egress: &'a Pipe,
    builder: PipelineBuilder,
    /// The port a packet came in at, and the time.
    came: VarId,
    now_ns: VarId,
    /// Words of the port's metadata.
    port_metadata: Vec<VarId>,
    /// The port it goes to.
    port: VarId,
    /// The metadata that the traffic manager receives with packets for [`exit::QUEUE`].
    queueing: Queueing,
    /// Packets leave by [`exit::QUEUE`] that the driver would do otherwise.
    queues: bool,
    /// The driver has every packet where the control has ended.
    drives_all: bool,
    /// What stands for the fields of the egress header, where egress is the pipeline.
    tm_metadata: Vec<(&'static str, VarId)>,
    /// What the egress parser is given.
    emitted: Emitted,
    /// Residual checksums of the parser that is being appended.
    deposits: Vec<Deposit>,
    /// Numbers on the stacks of parsers' counters.
    levels: HashMap<(ExternId, usize), Level>,
    /// Register actions that the interpreter runs.
    fallbacks: Vec<Arc<InterpFallback>>,
    /// Values of the functions of `MathUnit`s.
    units: Vec<Arc<[u64; MAGNITUDES]>>,
    /// Cells that register actions work on now, the innermost last.
    indices: Vec<Operand>,
    /// Register actions that were put into the body.
    executed: usize,
    /// A parser is being appended.
    parsing: bool,
    /// The ingress deparser makes a packet, and does not only say of what.
    is_emitting: bool,
    /// Blocks of egress are being appended.
    is_egress: bool,
    /// What cannot be done, the first that was found.
    problem: Option<NotCompiled>,
    /// Where a parser cannot be followed, if packets get there.
    lost: Option<NotCompiled>,
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
/// Something in it needs the driver at every step. Without egress as a pipeline of its own the
/// driver does what goes through that.
pub(crate) fn fuse(arch: &Tna, with_egress: bool) -> Result<Fused, NotCompiled> {
    // A ghost control needs an event for each queued packet, so its pipes get no egress pipeline.
    let egress = (with_egress && !arch.has_ghost()).then(|| queued::fuse(arch));
    let queues = matches!(egress, Some(Ok(_)));
    let (mut fused, exits) = with_requests("what ingress deparsers make of all packets", |drives_all| {
        let mut builder = Builder::new(arch)?;
        (builder.queues, builder.drives_all) = (queues, drives_all);
        let mut inputs = vec![(builder.came, Input::Port), (builder.now_ns, Input::NowNs)];
        let words = (0..).zip(&builder.port_metadata);
        inputs.extend(words.map(|(i, word)| (*word, Input::PortMetadata(i))));
        builder.finish(inputs)
    })?;
    fused.recirculates = true;
    // After folding, only places of unknown parser position that packets may reach are left.
    let lost = exits.lost.map(|why| LeftOut::new("packets that get there", &why));
    fused.left_out.extend(lost);
    // Mirrors, too, go to egress by queues, and so does what was parsed by the driver.
    if [exit::QUEUE, exit::DRIVER, exit::RESTART]
        .iter()
        .any(|exit| exits.taken.contains(exit))
    {
        match egress {
            Some(Ok(mut egress)) => {
                fused.left_out.append(&mut egress.left_out);
                fused.egress = Some(Box::new(egress));
            }
            Some(Err(why)) => fused.left_out.push(LeftOut::new(OF_EGRESS, &why)),
            None => {}
        }
    }
    Ok(fused)
}

/// Makes a pipeline. Where a deparser requests something for every packet there is no fast path:
/// then the control is compiled, and the driver takes all packets behind it.
fn with_requests(
    what: &'static str,
    make: impl Fn(bool) -> Result<(Fused, Exits), NotCompiled>,
) -> Result<(Fused, Exits), NotCompiled> {
    make(false).or_else(|why| match make(true) {
        Ok((mut fused, exits)) => {
            fused.left_out.push(LeftOut::new(what, &why));
            Ok((fused, exits))
        }
        Err(_) => Err(why),
    })
}

/// The part that is interpreted if egress has no pipeline.
const OF_EGRESS: &str = "egress of copies, and of packets whose egress needs them as ingress has made them";

/// The exits that packets may take.
struct Exits {
    taken: HashSet<u32>,
    /// Where the parser cannot be followed, if packets get there.
    lost: Option<NotCompiled>,
}

/// The selector that each table chooses by: register actions change it.
fn selections(program: &Program) -> Vec<Option<u32>> {
    let of = |id| match TableSpec::from_program(program, id, SELECTORS).implementation {
        Implementation::Selector(selector) => Some(selector.index() as u32),
        _ => None,
    };
    program.tables.ids().map(of).collect()
}

impl AppendBlocks for Builder<'_> {
    fn instruction(&mut self, kind: &InstKind, loc: Loc) {
        let renamed = match self.is_egress {
            true => self.emitted.renaming.inst(kind),
            false => kind.clone(),
        };
        match &renamed {
            InstKind::Mark(_) => {}
            InstKind::Emit { header } if !self.is_emitting => {
                let at = self.emitted.emits.iter().position(|e| e.header == *header);
                let flag = at.and_then(|at| self.emitted.flags[at]);
                self.set(flag, 1);
            }
            InstKind::Call(call) => {
                let done = self.call(call, &renamed, loc);
                self.check(done, call, loc);
            }
            _ => self.push(renamed, loc),
        }
    }

    fn terminator(&self, terminator: &Terminator) -> Terminator {
        match self.is_egress {
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

impl<'a> Builder<'a> {
    /// Nothing yet.
    fn new(arch: &'a Tna) -> Result<Self, NotCompiled> {
        let nothing = || NotCompiled::new(arch.program(), Loc::default(), "the program has no pipe");
        let first = arch.first_pipe().ok_or_else(nothing)?;
        let mut builder = PipelineBuilder::new(arch.program());
        let (came, now_ns) = (builder.variable("$came", 9), builder.variable("$now_ns", 48));
        let words = arch.chip().port_metadata.div_ceil(8);
        let port_metadata: Vec<VarId> = (0..words).map(|_| builder.variable("$port_metadata", 64)).collect();
        let port = builder.variable("$port", 32);
        let mut variable = |name, width| builder.variable(name, width);
        let queueing = Queueing {
            port: variable("$unicast", 16),
            no_port: NO_PORT,
            groups: [variable("$group", 16), variable("$group", 16)],
            exclude_node: variable("$exclude_node", 16),
            exclude_ports: variable("$exclude_ports", 16),
            rid: variable("$rid", 16),
            queue: variable("$queue", 8),
            class: variable("$class", 8),
            bypasses: variable("$bypasses", 1),
            deflects: variable("$deflects", 1),
        };
        Ok(Builder {
            arch,
            ingress: first,
            egress: first,
            builder,
            came,
            now_ns,
            port_metadata,
            port,
            queueing,
            queues: false,
            drives_all: false,
            tm_metadata: Vec::new(),
            emitted: Emitted::default(),
            deposits: Vec::new(),
            levels: HashMap::new(),
            fallbacks: Vec::new(),
            units: Vec::new(),
            indices: Vec::new(),
            executed: 0,
            parsing: false,
            is_emitting: true,
            is_egress: false,
            problem: None,
            lost: None,
        })
    }

    /// The pipeline with everything in it, and the exits that packets may take.
    fn finish(mut self, inputs: Vec<(VarId, Input)>) -> Result<(Fused, Exits), NotCompiled> {
        let arch = self.arch;
        let nothing = || NotCompiled::new(arch.program(), Loc::default(), "the program has no pipe");
        let (pipes, is_egress) = (arch.own_pipes(), self.is_egress);
        let error_path = self.append_pipeline(&pipes);
        let error_path = match (self.problem.take(), error_path) {
            (Some(problem), _) => return Err(problem),
            (None, path) => path.ok_or_else(nothing)?,
        };
        // No extern touches metadata behind its arguments.
        let is_pure = |_: &Call, _| true;
        let (fallbacks, units) = (self.fallbacks, self.units);
        let mut finished = self
            .builder
            .finish(error_path, inputs, exit::RESTART, is_pure, |call, loc| {
                calls::call_kind(arch, (&fallbacks, &units), is_egress, call, loc)
            })?;
        let exit_of = |block| match &finished.body.blocks[block].terminator {
            Terminator::Exit(exit) => Some(*exit),
            _ => None,
        };
        let taken: HashSet<u32> = reachable(&finished.body).into_iter().filter_map(exit_of).collect();
        let lost = match taken.contains(&exit::RESTART) && finished.left_out.is_empty() {
            true => Some(self.lost.unwrap_or_else(nothing)),
            false => None,
        };
        let pipes: Vec<&Pipe> = pipes.into_iter().map(|(pipe, _)| pipe).collect();
        let queueing = self.queueing;
        let ends = calls::ends(arch, &pipes, self.port, &queueing, is_egress);
        let ordered_tables = finished.program.tables.iter().map(|_| false).collect();
        finished.table_states = selections(&finished.program);
        let mut fused = finished.into_fused(ordered_tables, ends, SELECTORS, false);
        fused.queueing = (!is_egress).then_some(queueing);
        Ok((fused, Exits { taken, lost }))
    }

    /// Notes what cannot be done.
    fn refuse(&mut self, loc: Loc, problem: &str) {
        let program = self.arch.program();
        self.problem
            .get_or_insert_with(|| NotCompiled::new(program, loc, problem));
    }

    /// Notes a call that cannot be done.
    fn check(&mut self, done: Option<()>, call: &Call, loc: Loc) {
        if done.is_none() {
            let program = self.arch.program();
            self.problem
                .get_or_insert_with(|| NotCompiled::call(program, call, loc));
        }
    }

    /// The gress that is being appended.
    fn gress(&self) -> &'a Gress {
        match self.is_egress {
            true => &self.egress.egress,
            false => &self.ingress.ingress,
        }
    }

    fn call(&mut self, call: &Call, kind: &InstKind, loc: Loc) -> Option<()> {
        let program = Arc::clone(self.arch.program());
        if self.arch.registered.has_compiled_form(call) && !self.parsing {
            self.push(kind.clone(), loc);
            return Some(());
        }
        let op = externs::own(&program, call, loc).ok()??;
        if self.function(&op, call, loc).is_some() {
            return Some(());
        }
        match op {
            Op::Priority => {}
            Op::ChecksumUpdate { zeros_as_ones } => self.checksum(call, zeros_as_ones, loc)?,
            Op::ChecksumAdd(_) | Op::ChecksumSubtract(_) | Op::ChecksumVerify(_) | Op::ChecksumGet(_) => {
                self.sum(&op, call, loc)?;
            }
            // The driver parses again where a packet leaves by the way: that must have no effects.
            op if self.parsing => {
                calls::kind_of(&op).filter(|kind| kind.state().is_none() && !matches!(op, Op::Count { .. }))?;
                self.push(kind.clone(), loc);
            }
            Op::Register(action) => self.register(&action, call, loc)?,
            Op::Address => {
                let index = self.indices.last().cloned().unwrap_or_else(|| constant(32, 0));
                let result = *call.results.first()?;
                self.assign(result, Rvalue::ZeroExtend(index));
            }
            Op::Read { id, at } if self.is_narrow(&call.results) => {
                let index = match at {
                    At::Argument(at) => call.input(at)?.clone(),
                    At::Entry => call.entry.map_or_else(|| constant(32, 0), Operand::Var),
                };
                self.read_cells(id, &index, &call.results, loc);
            }
            Op::Invalidate => {
                for var in call.outputs(0).to_vec() {
                    let unset = &self.gress().unset;
                    let value = unset.iter().find(|(v, _)| *v == var).map_or(0, |(_, value)| *value);
                    self.set(Some(var), value);
                }
            }
            Op::Count {
                at: At::Entry,
                less: None,
                as_sent: false,
                ..
            } => {
                // As a counter of as many cells as there are entries: whole vectors are counted at
                // once.
                let index = call.entry.map_or_else(|| constant(32, 0), Operand::Var);
                let argument = ArgumentValue::In(vec![InLeaf::Value(index)]);
                if let InstKind::Call(mut count) = pseudo(COUNT, Some(argument), None) {
                    count.instance = call.instance;
                    self.push(InstKind::Call(count), loc);
                }
            }
            // The type is unset on this path, so nothing is requested.
            Op::Mirror { kind } if self.is_other(kind, self.gress().mirror_type) => {}
            Op::Resubmit { kind } if self.is_other(kind, self.gress().resubmit_type) => {}
            Op::Digest { kind, .. } if self.is_other(kind, self.gress().digest_type) => {}
            Op::Generate if self.gress().generate.is_some() => {}
            // Kept: it may be for the type that the packet has.
            Op::Mirror { .. } | Op::Resubmit { .. } | Op::Digest { .. } | Op::Generate => self.push(kind.clone(), loc),
            op if calls::is_fusible(&op) => self.push(kind.clone(), loc),
            // What belongs to parsers, and what the embedder brings along.
            _ => return None,
        }
        Some(())
    }

    /// The internet checksum of the first argument; zero may have to be written as ones.
    fn checksum(&mut self, call: &Call, zeros_as_ones: Option<usize>, loc: Loc) -> Option<()> {
        let data = call.arguments.first()?.value.clone();
        let as_ones = match zeros_as_ones {
            Some(at) => call.constant_input(at)? != 0,
            None => false,
        };
        let sum = self.temporary(16);
        let has_headers = call.inputs(0).iter().any(|leaf| matches!(leaf, InLeaf::Header(_)));
        self.set(Some(sum), 0);
        // Code sums only valid headers; the host would need the validity of all of them.
        if has_headers && self.sum_up(sum, call.inputs(0), false, loc).is_some() {
            self.assign(sum, Rvalue::Unary(UnaryOp::Not, Operand::Var(sum)));
        } else {
            self.push(pseudo(CHECKSUM, Some(data), Some(sum)), loc);
        }
        if as_ones {
            let is_zero = self.test(BinaryOp::Eq, sum, 0);
            let ones = Rvalue::Mux {
                condition: Operand::Var(is_zero),
                then: constant(16, 0xffff),
                otherwise: Operand::Var(sum),
            };
            self.assign(sum, ones);
        }
        self.copy(call.results.first().copied(), sum);
        Some(())
    }

    /// Whether an extern is for another type than that of packets for which the program has not
    /// set the variable.
    fn is_other(&self, kind: Option<u64>, var: Option<VarId>) -> bool {
        let unset = self.gress().unset.iter().find(|(v, _)| Some(*v) == var);
        kind.zip(unset).is_some_and(|(kind, (_, unset))| kind != *unset)
    }

    /// Whether variables have no more than 64 bits each.
    fn is_narrow(&self, vars: &[VarId]) -> bool {
        let narrow = |var: &VarId| matches!(self.program.vars[*var].ty, Type::Bits(width) if width <= 64);
        vars.iter().all(narrow)
    }

    fn block_of(&mut self, index: usize) {
        let program = Arc::clone(self.arch.program());
        self.clear_sums(&program.blocks[index].body);
        self.append(&program, index);
    }

    /// What a parser's outcome leaves: packets are dropped in ingress, or the error's bits are in a
    /// field.
    fn after_parser(&mut self, gress: &Gress, accepted: BlockId, rejected: BlockId, error: VarId) {
        let drops = |bits: u64| gress.way == Way::Ingress && (bits & NO_MATCH != 0 || !gress.reads_error);
        let parsed = self.block();
        self.at = rejected;
        let what = ArgumentValue::In(vec![InLeaf::Value(Operand::Var(error))]);
        let has_error = self.test(BinaryOp::Ne, error, 0);
        let without = self.branch(Operand::Var(has_error));
        self.push(pseudo("$parser_error", Some(what), None), Loc::default());
        for code in 1..self.program.errors.len() as u32 {
            let bits = headers::error_bits(&self.program, code);
            if !drops(bits) {
                let is_this = self.test(BinaryOp::Eq, error, code.into());
                let other = self.branch(Operand::Var(is_this));
                self.set(gress.error, bits);
                self.end(Terminator::Goto(parsed));
                self.at = other;
            }
        }
        self.end(Terminator::Exit(exit::INGRESS_DROP));
        self.at = without;
        if drops(NO_MATCH) {
            self.end(Terminator::Exit(exit::INGRESS_DROP));
        } else {
            self.set(gress.error, NO_MATCH);
            self.end(Terminator::Goto(parsed));
        }
        self.at = accepted;
        self.set(gress.error, 0);
        self.end(Terminator::Goto(parsed));
        self.at = parsed;
    }

    /// Packets that are to be mirrored, resubmitted or digested leave for the driver.
    fn leave_with_requests(&mut self) {
        if self.drives_all {
            self.end(Terminator::Exit(exit::DRIVER));
            self.at = self.block();
        }
        let (gress, tm) = (self.gress(), &self.ingress.tm);
        for &(var, unset) in &gress.unset {
            if Some(var) != tm.port {
                let is_set = self.test(BinaryOp::Ne, var, unset);
                self.leave_if(is_set, exit::DRIVER);
                // It is known now, and so is what the deparser does about it.
                self.set(Some(var), unset);
            }
        }
        if let Some(generate) = gress.generate {
            self.leave_if(generate, exit::DRIVER);
            self.set(Some(generate), 0);
        }
    }

    /// Appends what the driver and the traffic manager do to a unicast packet without requests. The
    /// cursor moves to packets that bypass egress; returns the block for the others. Packets for
    /// multicast groups go to `queued`.
    fn end_of_ingress(&mut self, queued: Option<BlockId>) -> Option<BlockId> {
        self.leave_with_requests();
        let (gress, tm) = (&self.ingress.ingress, &self.ingress.tm);
        if let Some(copies) = tm.copy_to_cpu {
            self.leave_if(copies, exit::DRIVER);
        }
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::INGRESS_DROP);
        }
        for group in tm.groups.into_iter().flatten() {
            let is_set = self.test(BinaryOp::Ne, group, 0);
            let on = self.branch(Operand::Var(is_set));
            self.end(away(queued));
            self.at = on;
        }
        let Some(to) = tm.port else {
            self.end(Terminator::Exit(exit::INGRESS_DROP));
            self.at = self.block();
            return None;
        };
        let nowhere = self.test(BinaryOp::Eq, to, NO_PORT);
        self.leave_if(nowhere, exit::INGRESS_DROP);
        let port = self.port;
        self.copy(Some(port), to);
        if self.arch.has_ghost() {
            // It hears of the packet's queue.
            self.end(Terminator::Exit(exit::DRIVER));
            self.at = self.block();
            return None;
        }
        let bypasses = self.test(BinaryOp::Ne, tm.bypass?, 0);
        Some(self.branch(Operand::Var(bypasses)))
    }

    fn lowest_bit(&mut self, var: VarId) -> VarId {
        let bit = self.temporary(1);
        let value = Rvalue::Slice {
            value: Operand::Var(var),
            hi: 0,
            lo: 0,
        };
        self.assign(bit, value);
        bit
    }

    /// The packet leaves by the port it goes to, if it is not one that leads back to ingress.
    fn send(&mut self) {
        let to = self.port;
        let ports = self.arch.chip().recirculation.clone();
        // As many as a power of two says, the first a multiple of that.
        let lo = (ports.end() - ports.start() + 1).ilog2();
        let local = self.temporary(7 - lo);
        let value = Rvalue::Slice {
            value: Operand::Var(to),
            hi: 6,
            lo,
        };
        self.assign(local, value);
        let is_internal = self.test(BinaryOp::Eq, local, (ports.start() >> lo).into());
        self.leave_if(is_internal, exit::RECIRCULATE);
        self.end(Terminator::Exit(exit::TRANSMIT));
    }
}

/// Where a packet goes of which the traffic manager has to make something: to the block that makes
/// it ready for that, or to the driver.
fn away(queued: Option<BlockId>) -> Terminator {
    match queued {
        Some(block) => Terminator::Goto(block),
        None => Terminator::Exit(exit::DRIVER),
    }
}
