//! Fuses ingress, traffic manager and egress of a TNA program into one pipeline for the JIT.
//!
//! The pipeline is the fast path of a unicast packet: received at a port, and dropped, or sent to
//! one port whose queue is empty. Other packets leave it:
//!
//! - Packets that request a mirror, digest or resubmission are punted at the end of the ingress
//!   control. [`super::driver`] continues there.
//! - Multicast packets, and packets whose egress needs their bytes or length, leave deparsed for
//!   the traffic manager. Their egress is a second pipeline (`queued`).
//!
//! It relies on [`crate::reparse`], which runs the egress parser at compile time, and on
//! [`crate::pipeline_builder`]. It does not queue, replicate or compile.

mod calls;
mod checksums;
mod dispatch;
mod egress;
mod interp_fallback;
mod intrinsic;
mod parser_counters;
mod queued;
mod registers;
mod values;

pub(crate) use self::calls::FusedCall;
use self::checksums::ResidualChecksum;
use self::interp_fallback::InterpFallback;
use self::parser_counters::StackEntry;
use super::driver::Tna;
use super::externs::{self, ExternOp, IndexSource, SELECTORS};
use super::fields::{Direction, Gress, NO_PORT, Pipe};
use super::headers::{self, NO_MATCH};
use crate::error::{LeftOut, NotCompiled};
use crate::fused::{Fused, Input, Queueing};
use crate::pipeline_builder::{AppendCode, CHECKSUM, PipelineBuilder, constant, pseudo};
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

/// The function of calls that count a hit in a direct counter. The entry's handle is their index.
const COUNT: &str = "$count";

/// Exits of the pipeline: their numbers. `calls` lists them in this order.
pub(crate) mod exit {
    pub const TRANSMIT: u32 = 0;
    /// A drop by `drop_ctl`, by the parser, or for lack of an egress port.
    pub const INGRESS_DROP: u32 = 1;
    /// The driver continues after the control: that of ingress, or of egress in the egress
    /// pipeline. Nothing after the control has run.
    pub const PUNT_AFTER_CONTROL: u32 = 2;
    /// The packet has exceeded its instruction budget.
    pub const INSTRUCTION_BUDGET_DROP: u32 = 3;
    /// The driver runs the received packet from the start of its parser.
    pub const PUNT_FROM_START: u32 = 4;
    pub const EGRESS_DROP: u32 = 5;
    /// The port writes the transmit time into the packet, then transmits it.
    pub const STAMP_AND_TRANSMIT: u32 = 6;
    /// The port leads back to ingress.
    pub const RECIRCULATE: u32 = 7;
    /// Ingress has deparsed the packet for the traffic manager.
    pub const QUEUE: u32 = 8;
    /// A registered extern dropped the packet.
    pub const EXTERN: u32 = 9;
}

/// The outcome of appending a call as one of a certain kind.
enum CallOutcome {
    Appended,
    /// It is of that kind, but cannot be translated.
    NoCompiledForm,
    /// It is not of that kind. Nothing was appended.
    OtherCall,
}

impl CallOutcome {
    /// The outcome for a call of the kind; `None`: it cannot be translated.
    fn of(appended: Option<()>) -> Self {
        match appended {
            Some(()) => CallOutcome::Appended,
            None => CallOutcome::NoCompiledForm,
        }
    }
}

/// Makes the pipeline's body, one programmable block after the other.
struct Builder<'a> {
    arch: &'a Tna,
    /// The pipe whose ingress is being appended.
    ingress: &'a Pipe,
    /// The pipe whose egress is being appended.
    egress: &'a Pipe,
    builder: PipelineBuilder,
    /// The port that received the packet.
    ingress_port: VarId,
    /// The switch's clock in nanoseconds.
    now_ns: VarId,
    /// The port's metadata, in words of 64 bits.
    port_metadata: Vec<VarId>,
    /// The port that transmits the packet.
    egress_port: VarId,
    /// The metadata that the traffic manager receives with packets for [`exit::QUEUE`].
    queueing: Queueing,
    /// Whether queued packets have an egress pipeline. If not, [`exit::QUEUE`] is not used: its
    /// packets are punted.
    has_egress_pipeline: bool,
    /// Whether all packets are punted at the end of the control.
    punts_all: bool,
    /// In the egress pipeline: fields of the egress intrinsic header that the traffic manager
    /// supplies, by name.
    tm_metadata: Vec<(&'static str, VarId)>,
    /// The headers that ingress emits, over which the egress parser runs.
    emitted: Emitted,
    /// Residual checksums of the parser that is being appended.
    residual_checksums: Vec<ResidualChecksum>,
    /// Entries of the parser counters' stacks, by counter and depth.
    counter_stacks: HashMap<(ExternId, usize), StackEntry>,
    /// Register actions that the interpreter runs. Calls refer to them by their index here.
    fallbacks: Vec<Arc<InterpFallback>>,
    /// Lookup tables of `MathUnit`s, by the exponent and three mantissa bits of an argument. Calls
    /// refer to them by their index here.
    math_tables: Vec<Arc<[u64; MAGNITUDES]>>,
    /// Cell indices of the register actions that are being inlined, the innermost last.
    register_indices: Vec<Operand>,
    /// The number of register actions that were inlined so far.
    inlined_actions: usize,
    /// Whether a parser is being appended.
    is_in_parser: bool,
    /// Whether the ingress deparser's emits are appended. If not, only the flags of [`Emitted`] are
    /// set.
    appends_emits: bool,
    /// Whether this is the egress pipeline (`queued`), which has no ingress.
    is_egress_pipeline: bool,
    /// Whether egress is being appended. Always true in the egress pipeline.
    is_in_egress: bool,
    /// The first construct found that has no compiled form. Its program has no pipeline.
    first_error: Option<NotCompiled>,
    /// The first place whose packets leave by [`exit::PUNT_FROM_START`].
    punt_reason: Option<NotCompiled>,
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

/// Makes the pipeline of a program. `with_egress`: also makes the egress pipeline of queued
/// packets, if possible. Without that pipeline the driver runs egress of those packets.
///
/// # Errors
/// A construct that every packet executes has no compiled form.
pub(crate) fn fuse(arch: &Tna, with_egress: bool) -> Result<Fused, NotCompiled> {
    // A ghost control needs an event for each queued packet, so its pipes get no egress pipeline.
    let egress = (with_egress && !arch.has_ghost()).then(|| queued::fuse(arch));
    let has_egress_pipeline = matches!(egress, Some(Ok(_)));
    let (mut fused, exits) = with_punt_fallback("requests made for every packet", |punts_all| {
        let mut builder = Builder::new(arch)?;
        (builder.has_egress_pipeline, builder.punts_all) = (has_egress_pipeline, punts_all);
        let mut inputs = vec![(builder.ingress_port, Input::Port), (builder.now_ns, Input::NowNs)];
        let words = (0..).zip(&builder.port_metadata);
        inputs.extend(words.map(|(i, word)| (*word, Input::PortMetadata(i))));
        builder.finish(inputs)
    })?;
    fused.recirculates = true;
    // After folding, only those punts are left that packets may reach.
    let punt_reason = exits
        .punt_reason
        .map(|why| LeftOut::new("packets that get there", &why));
    fused.left_out.extend(punt_reason);
    // Punted packets and their mirrors also enter egress through queues.
    if [exit::QUEUE, exit::PUNT_AFTER_CONTROL, exit::PUNT_FROM_START]
        .iter()
        .any(|exit| exits.taken.contains(exit))
    {
        match egress {
            Some(Ok(mut egress)) => {
                fused.left_out.append(&mut egress.left_out);
                fused.egress = Some(Box::new(egress));
            }
            Some(Err(why)) => fused.left_out.push(LeftOut::new(EGRESS_LEFT_OUT, &why)),
            None => {}
        }
    }
    Ok(fused)
}

/// Makes a pipeline by `make(false)`. If that fails, as where a deparser makes requests for every
/// packet, `make(true)` punts all packets at the end of the control. `what`: the part left out
/// then.
fn with_punt_fallback(
    what: &'static str,
    make: impl Fn(bool) -> Result<(Fused, ReachableExits), NotCompiled>,
) -> Result<(Fused, ReachableExits), NotCompiled> {
    make(false).or_else(|why| match make(true) {
        Ok((mut fused, exits)) => {
            fused.left_out.push(LeftOut::new(what, &why));
            Ok((fused, exits))
        }
        Err(_) => Err(why),
    })
}

/// The part of the program that is left to the interpreter if there is no egress pipeline.
const EGRESS_LEFT_OUT: &str =
    "egress of copies, and of packets whose egress needs the bytes or length that ingress gives them";

/// The exits that packets may take.
struct ReachableExits {
    taken: HashSet<u32>,
    /// Why packets leave by [`exit::PUNT_FROM_START`], if any do.
    punt_reason: Option<NotCompiled>,
}

/// For each table the state number of its action selector, which register actions may change.
fn selector_states(program: &Program) -> Vec<Option<u32>> {
    let of = |id| match TableSpec::from_program(program, id, SELECTORS).implementation {
        Implementation::Selector(selector) => Some(selector.index() as u32),
        _ => None,
    };
    program.tables.ids().map(of).collect()
}

impl AppendCode for Builder<'_> {
    fn instruction(&mut self, kind: &InstKind, loc: Loc) {
        let renamed = match self.is_in_egress {
            true => self.emitted.renaming.inst(kind),
            false => kind.clone(),
        };
        match &renamed {
            InstKind::Mark(_) => {}
            InstKind::Emit { header } if !self.appends_emits => {
                let emitted_index = self.emitted.emits.iter().position(|e| e.header == *header);
                let flag = emitted_index.and_then(|emitted_index| self.emitted.flags[emitted_index]);
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
        match self.is_in_egress {
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
    /// An empty body with its variables.
    fn new(arch: &'a Tna) -> Result<Self, NotCompiled> {
        let nothing = || NotCompiled::new(arch.program(), Loc::default(), "the program has no pipe");
        let first = arch.first_pipe().ok_or_else(nothing)?;
        let mut builder = PipelineBuilder::new(arch.program());
        let (ingress_port, now_ns) = (builder.variable("$ingress_port", 9), builder.variable("$now_ns", 48));
        let words = arch.chip().port_metadata.div_ceil(8);
        let port_metadata: Vec<VarId> = (0..words).map(|_| builder.variable("$port_metadata", 64)).collect();
        let egress_port = builder.variable("$egress_port", 32);
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
            ingress_port,
            now_ns,
            port_metadata,
            egress_port,
            queueing,
            has_egress_pipeline: false,
            punts_all: false,
            tm_metadata: Vec::new(),
            emitted: Emitted::default(),
            residual_checksums: Vec::new(),
            counter_stacks: HashMap::new(),
            fallbacks: Vec::new(),
            math_tables: Vec::new(),
            register_indices: Vec::new(),
            inlined_actions: 0,
            is_in_parser: false,
            appends_emits: true,
            is_egress_pipeline: false,
            is_in_egress: false,
            first_error: None,
            punt_reason: None,
        })
    }

    /// Appends and finishes the pipeline. Returns it with the exits that packets may take.
    fn finish(mut self, inputs: Vec<(VarId, Input)>) -> Result<(Fused, ReachableExits), NotCompiled> {
        let arch = self.arch;
        let nothing = || NotCompiled::new(arch.program(), Loc::default(), "the program has no pipe");
        let (pipes, is_egress) = (arch.own_pipes(), self.is_egress_pipeline);
        let error_path = self.append_pipeline(&pipes);
        let error_path = match (self.first_error.take(), error_path) {
            (Some(error), _) => return Err(error),
            (None, path) => path.ok_or_else(nothing)?,
        };
        // No extern accesses metadata that is not among its arguments.
        let is_pure = |_: &Call, _| true;
        let (fallbacks, math_tables) = (self.fallbacks, self.math_tables);
        let mut finished = self
            .builder
            .finish(error_path, inputs, exit::PUNT_FROM_START, is_pure, |call, loc| {
                calls::classify(arch, (&fallbacks, &math_tables), is_egress, call, loc)
            })?;
        let exit_of = |block| match &finished.body.blocks[block].terminator {
            Terminator::Exit(exit) => Some(*exit),
            _ => None,
        };
        let taken: HashSet<u32> = reachable(&finished.body).into_iter().filter_map(exit_of).collect();
        let punt_reason = match taken.contains(&exit::PUNT_FROM_START) && finished.left_out.is_empty() {
            true => Some(self.punt_reason.unwrap_or_else(nothing)),
            false => None,
        };
        let pipes: Vec<&Pipe> = pipes.into_iter().map(|(pipe, _)| pipe).collect();
        let queueing = self.queueing;
        let exit_table = calls::exit_table(arch, &pipes, self.egress_port, &queueing, is_egress);
        let ordered_tables = finished.program.tables.iter().map(|_| false).collect();
        finished.table_states = selector_states(&finished.program);
        let mut fused = finished.into_fused(ordered_tables, exit_table, SELECTORS, false);
        fused.queueing = (!is_egress).then_some(queueing);
        if arch.sends_received() {
            fused.payload_kept = usize::MAX;
        }
        Ok((fused, ReachableExits { taken, punt_reason }))
    }

    /// Records a construct that has no compiled form.
    fn refuse(&mut self, loc: Loc, problem: &str) {
        let program = self.arch.program();
        self.first_error
            .get_or_insert_with(|| NotCompiled::new(program, loc, problem));
    }

    /// Records a call that has no compiled form, if `done` is `None`.
    fn check(&mut self, done: Option<()>, call: &Call, loc: Loc) {
        if done.is_none() {
            let program = self.arch.program();
            self.first_error
                .get_or_insert_with(|| NotCompiled::call(program, call, loc));
        }
    }

    /// The gress that is being appended.
    fn gress(&self) -> &'a Gress {
        match self.is_in_egress {
            true => &self.egress.egress,
            false => &self.ingress.ingress,
        }
    }

    /// Appends an extern call, as instructions or as a call of the host. `None`: it has no compiled
    /// form.
    fn call(&mut self, call: &Call, kind: &InstKind, loc: Loc) -> Option<()> {
        let program = Arc::clone(self.arch.program());
        if let Some(bound) = self.arch.registered.find(call, loc).cloned() {
            let may_call = !self.is_in_parser;
            return may_call.then(|| self.registered_call(&bound, call, loc));
        }
        let op = externs::own(&program, call, loc).ok()??;
        if self.arithmetic_call(&op, call, loc).is_some() {
            return Some(());
        }
        match op {
            ExternOp::Priority => {}
            ExternOp::ChecksumUpdate { zeros_as_ones } => self.checksum(call, zeros_as_ones, loc)?,
            ExternOp::ChecksumAdd(_)
            | ExternOp::ChecksumSubtract(_)
            | ExternOp::ChecksumVerify(_)
            | ExternOp::ChecksumGet(_) => {
                self.checksum_call(&op, call, loc)?;
            }
            // Punted packets are parsed again by the driver, so calls in parsers must be pure.
            op if self.is_in_parser => {
                calls::host_call_kind(&op)
                    .filter(|kind| kind.state().is_none() && !matches!(op, ExternOp::Count { .. }))?;
                self.push(kind.clone(), loc);
            }
            ExternOp::Register(action) => self.register(&action, call, loc)?,
            ExternOp::Address => {
                let index = self.register_indices.last().cloned().unwrap_or_else(|| constant(32, 0));
                let result = *call.results.first()?;
                self.assign(result, Rvalue::ZeroExtend(index));
            }
            ExternOp::Read { id, index_source } if self.is_narrow(&call.results) => {
                let index = match index_source {
                    IndexSource::Argument(argument) => call.input(argument)?.clone(),
                    IndexSource::Entry => call.entry.map_or_else(|| constant(32, 0), Operand::Var),
                };
                self.read_cells(id, &index, &call.results, loc);
            }
            ExternOp::Invalidate => {
                for var in call.outputs(0).to_vec() {
                    let unset_values = &self.gress().unset_values;
                    let value = unset_values
                        .iter()
                        .find(|(v, _)| *v == var)
                        .map_or(0, |(_, value)| *value);
                    self.set(Some(var), value);
                }
            }
            ExternOp::Count {
                index_source: IndexSource::Entry,
                byte_adjustment: None,
                uses_sent_length: false,
                ..
            } => {
                // A direct counter is an indexed counter here: engines count whole vectors of
                // those at once.
                let index = call.entry.map_or_else(|| constant(32, 0), Operand::Var);
                let argument = ArgumentValue::In(vec![InLeaf::Value(index)]);
                if let InstKind::Call(mut count) = pseudo(COUNT, Some(argument), None) {
                    count.instance = call.instance;
                    self.push(InstKind::Call(count), loc);
                }
            }
            // `punt_requests` has punted requests. The type is unset here, so these calls do
            // nothing.
            ExternOp::Mirror { kind } if self.is_never_requested(kind, self.gress().mirror_type) => {}
            ExternOp::Resubmit { kind } if self.is_never_requested(kind, self.gress().resubmit_type) => {}
            ExternOp::Digest { kind, .. } if self.is_never_requested(kind, self.gress().digest_type) => {}
            ExternOp::Generate if self.gress().generate.is_some() => {}
            // Kept: the packet may have the type that the call is for.
            ExternOp::Mirror { .. } | ExternOp::Resubmit { .. } | ExternOp::Digest { .. } | ExternOp::Generate => {
                self.push(kind.clone(), loc)
            }
            op if calls::is_fusible(&op) => self.push(kind.clone(), loc),
            // Calls that only parsers may make.
            _ => return None,
        }
        Some(())
    }

    /// Appends the internet checksum of the first argument. If the argument `zeros_as_ones` is set,
    /// 0xffff replaces 0.
    fn checksum(&mut self, call: &Call, zeros_as_ones: Option<usize>, loc: Loc) -> Option<()> {
        let data = call.arguments.first()?.value.clone();
        let as_ones = match zeros_as_ones {
            Some(argument) => call.constant_input(argument)? != 0,
            None => false,
        };
        let sum = self.temporary(16);
        let has_headers = call.inputs(0).iter().any(|leaf| matches!(leaf, InLeaf::Header(_)));
        self.set(Some(sum), 0);
        // Code sums only valid headers; the host would need the validity of all of them.
        if has_headers && self.add_leaves(sum, call.inputs(0), false, loc).is_some() {
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

    /// Whether no packet makes a request for type `kind` here. `punt_requests` has set the type
    /// variable `var` to its unset value, and `kind` is another one.
    fn is_never_requested(&self, kind: Option<u64>, var: Option<VarId>) -> bool {
        let unset = self.gress().unset_values.iter().find(|(v, _)| Some(*v) == var);
        kind.zip(unset).is_some_and(|(kind, (_, unset))| kind != *unset)
    }

    /// Whether variables have no more than 64 bits each.
    fn is_narrow(&self, vars: &[VarId]) -> bool {
        let narrow = |var: &VarId| matches!(self.program.vars[*var].ty, Type::Bits(width) if width <= 64);
        vars.iter().all(narrow)
    }

    /// Appends a parser, control or deparser of the program.
    fn append_programmable_block(&mut self, index: usize) {
        let program = Arc::clone(self.arch.program());
        self.clear_checksums(&program.blocks[index].body);
        self.append_code_of(&program, index);
    }

    /// Joins a parser's outcomes. Ingress drops a packet that no state matched, and any rejected
    /// packet if the program does not read the error. Otherwise the error's bits are stored.
    fn append_parser_outcome(&mut self, gress: &Gress, accepted: BlockId, rejected: BlockId, error: VarId) {
        let drops = |bits: u64| gress.direction == Direction::Ingress && (bits & NO_MATCH != 0 || !gress.reads_error);
        let parsed = self.new_basic_block();
        self.cursor = rejected;
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
                self.terminate(Terminator::Goto(parsed));
                self.cursor = other;
            }
        }
        self.terminate(Terminator::Exit(exit::INGRESS_DROP));
        self.cursor = without;
        if drops(NO_MATCH) {
            self.terminate(Terminator::Exit(exit::INGRESS_DROP));
        } else {
            self.set(gress.error, NO_MATCH);
            self.terminate(Terminator::Goto(parsed));
        }
        self.cursor = accepted;
        self.set(gress.error, 0);
        self.terminate(Terminator::Goto(parsed));
        self.cursor = parsed;
    }

    /// Punts packets that are to be mirrored, resubmitted or digested.
    fn punt_requests(&mut self) {
        if self.punts_all {
            self.terminate(Terminator::Exit(exit::PUNT_AFTER_CONTROL));
            self.cursor = self.new_basic_block();
        }
        let (gress, tm) = (self.gress(), &self.ingress.tm);
        for &(var, unset) in &gress.unset_values {
            if Some(var) != tm.port {
                let is_set = self.test(BinaryOp::Ne, var, unset);
                self.leave_if(is_set, exit::PUNT_AFTER_CONTROL);
                // Now the value is a constant, by which the deparser's requests are folded away.
                self.set(Some(var), unset);
            }
        }
        if let Some(generate) = gress.generate {
            self.leave_if(generate, exit::PUNT_AFTER_CONTROL);
            self.set(Some(generate), 0);
        }
    }

    /// Appends the end of ingress for a unicast packet without requests: drop, egress port, bypass.
    /// The cursor moves to packets that bypass egress. Returns the basic block of the other
    /// packets, if there are any. Multicast packets continue at `queue_block`.
    fn end_of_ingress(&mut self, queue_block: Option<BlockId>) -> Option<BlockId> {
        self.punt_requests();
        let (gress, tm) = (&self.ingress.ingress, &self.ingress.tm);
        if let Some(copies) = tm.copy_to_cpu {
            self.leave_if(copies, exit::PUNT_AFTER_CONTROL);
        }
        // Bit 0 of `drop_ctl` drops the unicast packet, as `DROP_PACKET` in the driver.
        if let Some(drop) = gress.drop {
            let dropped = self.lowest_bit(drop);
            self.leave_if(dropped, exit::INGRESS_DROP);
        }
        for group in tm.groups.into_iter().flatten() {
            let is_set = self.test(BinaryOp::Ne, group, 0);
            let on = self.branch(Operand::Var(is_set));
            self.terminate(queue_or_punt(queue_block));
            self.cursor = on;
        }
        let Some(to) = tm.port else {
            self.terminate(Terminator::Exit(exit::INGRESS_DROP));
            self.cursor = self.new_basic_block();
            return None;
        };
        let nowhere = self.test(BinaryOp::Eq, to, NO_PORT);
        self.leave_if(nowhere, exit::INGRESS_DROP);
        let port = self.egress_port;
        self.copy(Some(port), to);
        if self.arch.has_ghost() {
            // The ghost thread observes every enqueue, which only the driver reports.
            self.terminate(Terminator::Exit(exit::PUNT_AFTER_CONTROL));
            self.cursor = self.new_basic_block();
            return None;
        }
        // `tna.p4` declares the field. Without it all packets would bypass egress.
        let bypasses = self.test(BinaryOp::Ne, tm.bypass?, 0);
        Some(self.branch(Operand::Var(bypasses)))
    }

    /// A variable with bit 0 of another.
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

    /// Ends with the transmit exit, or for recirculation ports with the recirculate exit.
    fn transmit_or_recirculate(&mut self) {
        let to = self.egress_port;
        let ports = self.arch.chip().recirculation.clone();
        // Their number is a power of two, and the first is a multiple of it: a bit slice decides.
        let lo = (ports.end() - ports.start() + 1).ilog2();
        let port_group = self.temporary(7 - lo);
        let value = Rvalue::Slice {
            value: Operand::Var(to),
            hi: 6,
            lo,
        };
        self.assign(port_group, value);
        let is_recirculation_port = self.test(BinaryOp::Eq, port_group, (ports.start() >> lo).into());
        self.leave_if(is_recirculation_port, exit::RECIRCULATE);
        self.terminate(Terminator::Exit(exit::TRANSMIT));
    }
}

/// Leads a packet to the basic block that deparses it for the traffic manager, or punts it if there
/// is none.
fn queue_or_punt(queue_block: Option<BlockId>) -> Terminator {
    match queue_block {
        Some(block) => Terminator::Goto(block),
        None => Terminator::Exit(exit::PUNT_AFTER_CONTROL),
    }
}
