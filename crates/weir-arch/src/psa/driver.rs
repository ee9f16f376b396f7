//! The order of the programmable blocks, and the processing of a packet between them: section 6 of
//! the specification.

use super::externs::{self, EMPTY_GROUP, Op, SELECTORS, TARGET};
use super::fields::{self, Carried, Fields, Path, get, set};
use super::fuse;
use super::fuse::FusedCall;
use super::runtime::{Checksums, PsaRuntime};
use crate::bound::{BoundCall, BoundExterns};
use crate::calls::{self, Engines, note};
use crate::driver::{
    Action, Architecture, DropReason, EgressPacket, Env, IngressPacket, MAX_PASSES, Origin, PRIORITIES, QueueInfo,
    ReplicationRules,
};
use crate::emits::{self, Emit};
use crate::error::{LoadError, NotCompiled};
use crate::fused::{Fused, FusedArguments, FusedPacket};
use crate::load;
use crate::meter::Color;
use crate::queue_use::{reads_any, sets_any};
use crate::state::State;
use std::sync::{Arc, OnceLock};
use weir_extern_api::Registry;
use weir_interp::{Abort, BodyKey, Executable, Outcome, PacketState, PacketTag, SiteId};
use weir_ir::{Bits, Call, HeaderId, Program, VarId};

/// The port that leads back to ingress: `PSA_PORT_RECIRCULATE`.
pub(crate) const PORT_RECIRCULATE: u32 = 0xffff_fffa;
/// The port of the control plane: `PSA_PORT_CPU`.
pub(crate) const PORT_CPU: u32 = 0xffff_fffd;
/// `PSA_CLONE_SESSION_TO_CPU`
const SESSION_TO_CPU: u32 = 0;

/// Indices of the programmable blocks in [`Program::blocks`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgrammableBlocks {
    pub ingress: Pipeline,
    pub egress: Pipeline,
}

/// A parser, a control and a deparser.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pipeline {
    pub parser: usize,
    pub control: usize,
    pub deparser: usize,
    /// The deparser does something that outlives the packet: it runs for packets that are dropped
    /// too.
    pub deparser_has_side_effects: bool,
}

/// Values of `PSA_MeterColor_t`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Colors {
    red: u64,
    green: u64,
    yellow: u64,
}

impl Colors {
    fn new(program: &Program) -> Self {
        let value = |name, standard| load::enum_index(program, "PSA_MeterColor_t", name).unwrap_or(standard);
        Colors {
            red: value("RED", 0),
            green: value("GREEN", 1),
            yellow: value("YELLOW", 2),
        }
    }

    pub(crate) fn value(&self, color: Color) -> u64 {
        match color {
            Color::Green => self.green,
            Color::Yellow => self.yellow,
            Color::Red => self.red,
        }
    }

    pub(crate) fn color(&self, value: u64) -> Color {
        match value {
            v if v == self.green => Color::Green,
            v if v == self.yellow => Color::Yellow,
            _ => Color::Red,
        }
    }
}

/// A program on PSA, run as the specification says.
///
/// Where that leaves a choice: unset metadata is zero; timestamps are microseconds
/// since the switch started; counters and meters of bytes count what the pipeline's parser got; a
/// class of service beyond 7 counts as 0; `TARGET_DEFAULT` is CRC-32; a deparser that sends digests
/// runs for dropped packets too; a packet is resubmitted, recirculated or cloned in egress at most
/// [`MAX_PASSES`] times. psa_switch, which carries no metadata with resubmitted, recirculated and
/// cloned packets, is not followed there.
pub struct Psa {
    pub(crate) program: Arc<Program>,
    engines: Engines,
    ops: Vec<Op>,
    pub(crate) blocks: ProgrammableBlocks,
    pub(crate) fields: Fields,
    pub(crate) colors: Colors,
    /// The headers that the ingress deparser emits, if their order is known at compile time.
    pub(crate) emits: Option<Vec<Emit>>,
    /// See [`Psa::aliases`].
    aliases: OnceLock<Vec<(usize, HeaderId)>>,
    pub(crate) registered: BoundExterns,
}

impl Psa {
    /// Prepares a program. `externs` are what it may call besides PSA's own.
    ///
    /// # Errors
    /// A programmable block is missing, or it uses an extern that neither PSA has nor the caller
    /// brings: all that is so.
    pub fn new(engine: Arc<dyn Executable>, externs: &Registry) -> Result<Self, Vec<LoadError>> {
        let program = Arc::clone(engine.program());
        let engines = Engines::new(engine);
        let is_own = |call: &Call, _| externs::own(&program, call).is_some();
        let registered = BoundExterns::new(&program, engines.sites(), externs, is_own)?;
        let ops = externs::resolve(&program, engines.sites(), &registered)?;
        let has_side_effects = |block| has_side_effects(&program, &engines, &ops, block, |_| false);
        let pipeline = |parser, control, deparser| -> Result<Pipeline, LoadError> {
            let deparser = calls::block_with_role(&program, deparser, TARGET)?;
            Ok(Pipeline {
                parser: calls::block_with_role(&program, parser, TARGET)?,
                control: calls::block_with_role(&program, control, TARGET)?,
                deparser,
                deparser_has_side_effects: has_side_effects(deparser),
            })
        };
        let blocks = ProgrammableBlocks {
            ingress: pipeline("ingress_parser", "ingress", "ingress_deparser").map_err(|e| vec![e])?,
            egress: pipeline("egress_parser", "egress", "egress_deparser").map_err(|e| vec![e])?,
        };
        let emits = emits::emits(&program, &program.blocks[blocks.ingress.deparser].body);
        Ok(Psa {
            blocks,
            emits,
            aliases: OnceLock::new(),
            registered,
            ops,
            fields: Fields::new(&program),
            colors: Colors::new(&program),
            engines,
            program,
        })
    }

    /// The operation of a call.
    pub(crate) fn op(&self, site: SiteId) -> Option<&Op> {
        self.ops.get(site.index())
    }

    /// Whether a programmable block has lasting effects other than the permitted ones.
    pub(crate) fn has_side_effects(&self, block: usize, allowed: impl Fn(&Op) -> bool) -> bool {
        has_side_effects(&self.program, &self.engines, &self.ops, block, allowed)
    }

    /// Egress headers that are ingress headers in compiled code.
    pub(crate) fn aliases(&self) -> &[(usize, HeaderId)] {
        self.aliases.get_or_init(|| match &self.emits {
            Some(emits) => fuse::aliases(&self.program, self.blocks.egress.parser, emits),
            None => Vec::new(),
        })
    }

    fn run(&self, block: usize, packet: &mut PacketState, env: &mut Env<'_>) -> Outcome {
        let bytes = packet.bytes.len() as u64;
        let (service, tracer) = env.service(bytes);
        let mut runtime = PsaRuntime {
            arch: self,
            service,
            checksums: Checksums::default(),
        };
        self.engines.run(block, packet, tracer, &mut runtime)
    }

    /// Parses, and leaves the error in a field.
    fn parse(
        &self,
        block: usize,
        packet: &mut PacketState,
        error_in: Option<VarId>,
        env: &mut Env<'_>,
    ) -> Result<(), Abort> {
        let outcome = self.run(block, packet, env);
        let error = calls::parser_error(outcome, env.state)?;
        set(&mut packet.frame, &[error_in], error.into());
        Ok(())
    }

    fn control(&self, block: usize, packet: &mut PacketState, env: &mut Env<'_>) -> Result<(), Abort> {
        match self.run(block, packet, env) {
            Outcome::Abort(reason) => Err(reason),
            Outcome::Accept | Outcome::Reject(_) | Outcome::Return => Ok(()),
        }
    }

    /// Runs a deparser, whose `out` parameters are these groups, and gives the packet it makes.
    fn deparse(
        &self,
        block: usize,
        packet: &mut PacketState,
        out: &[&Carried],
        env: &mut Env<'_>,
    ) -> Result<Vec<u8>, Abort> {
        for group in out {
            fields::clear(&self.program, &mut packet.frame, group);
        }
        self.control(block, packet, env)?;
        Ok(packet.finish())
    }

    /// A packet that begins ingress.
    fn arrival(&self, packet: &mut IngressPacket, bytes: Vec<u8>, now_ns: u64) -> PacketState {
        let fields = &self.fields;
        let mut state = PacketState::new(&self.program, bytes);
        let frame = &mut state.frame;
        for (var, value) in packet.preserved.drain(..) {
            frame.set(var, value);
        }
        let path = match packet.origin {
            Origin::Received => Path::Normal,
            Origin::Resubmitted => Path::Resubmit,
            Origin::Recirculated => Path::Recirculate,
        };
        set(frame, &fields.ingress_port, packet.port.into());
        set(frame, &fields.ingress_path, fields.path(path));
        set(frame, &[fields.ingress_timestamp], now_ns / 1000);
        state
    }

    /// Everything up to the ingress deparser; what becomes of the packet is in its metadata then.
    fn before_end_of_ingress(
        &self,
        packet: &mut IngressPacket,
        bytes: Vec<u8>,
        env: &mut Env<'_>,
    ) -> Result<PacketState, Abort> {
        let mut state = self.arrival(packet, bytes, env.now_ns);
        let error = self.fields.ingress_error;
        self.parse(self.blocks.ingress.parser, &mut state, error, env)?;
        set(&mut state.frame, &[self.fields.ingress.drop], 1);
        self.control(self.blocks.ingress.control, &mut state, env)?;
        Ok(state)
    }

    /// Continues after the ingress control.
    fn end_of_ingress(&self, packet: &IngressPacket, mut state: PacketState, env: &mut Env<'_>) -> Vec<Action> {
        let (fields, tag) = (&self.fields, packet.tag);
        let output = fields.ingress;
        let is_set = |state: &PacketState, var| get(&state.frame, var) != 0;
        let (clones, drops) = (is_set(&state, output.clone), is_set(&state, output.drop));
        let resubmits = !drops && is_set(&state, output.resubmit);
        let mut deparsed = Vec::new();
        if clones || !drops || self.blocks.ingress.deparser_has_side_effects {
            let out = [&fields.clone_i2e, &fields.resubmit, &fields.normal];
            match self.deparse(self.blocks.ingress.deparser, &mut state, &out, env) {
                Ok(bytes) => deparsed = bytes,
                Err(reason) => return vec![Action::stopped(reason, tag)],
            }
        }
        let received = state.received.take();
        let received = received.unwrap_or_else(|| std::mem::take(&mut state.bytes));
        let mut actions = Vec::new();
        if clones {
            let session = get(&state.frame, output.clone_session) as u32;
            let clone_tag = env.tracer.begin_packet(tag, "clone of the received packet");
            let clone = self.for_egress(
                received.clone(),
                Path::CloneI2e,
                (&state, &fields.clone_i2e),
                (packet.port, packet.passes, clone_tag),
            );
            actions.push(Action::Clone { session, packet: clone });
            env.tracer.resume_packet(tag);
        }
        if drops {
            let last = output.drop.and_then(|v| env.tracer.last_write(v));
            if last.is_none() {
                note(env, "ingress has not cleared `drop`, which is set when it begins");
            }
            actions.push(Action::drop(DropReason::IngressDrop, last, tag));
            return actions;
        }
        if resubmits {
            let again = IngressPacket {
                port: packet.port,
                bytes: received,
                origin: Origin::Resubmitted,
                is_generated: false,
                preserved: fields::take(&state.frame, &fields.resubmit),
                passes: packet.passes + 1,
                tag: env.tracer.begin_packet(tag, "resubmitted packet"),
            };
            actions.push(Action::Ingress(again));
            return actions;
        }
        let group = get(&state.frame, output.group) as u32;
        let path = match group {
            0 => Path::NormalUnicast,
            _ => Path::NormalMulticast,
        };
        let text = format!("{} bytes go on to egress, which parses them anew", deparsed.len());
        note(env, &text);
        let mut onward = self.for_egress(
            deparsed,
            path,
            (&state, &fields.normal),
            (packet.port, packet.passes, tag),
        );
        let class = match get(&state.frame, output.class_of_service) {
            class if class < PRIORITIES as u64 => class,
            unsupported => {
                let text = format!("there is no class of service {unsupported}; it goes as class 0");
                note(env, &text);
                0
            }
        };
        set(&mut onward.state.frame, &[fields.egress_class], class);
        actions.push(match group {
            0 => Action::Enqueue {
                port: get(&state.frame, output.port) as u32,
                packet: onward,
            },
            _ => Action::Multicast { group, packet: onward },
        });
        actions
    }

    /// Egress headers that compiled code has kept as ingress headers.
    fn restore_aliases(&self, state: &mut PacketState) {
        for (emitted_index, header) in self.aliases() {
            let Some(emit) = self.emits.as_ref().and_then(|e| e.get(*emitted_index)) else {
                continue;
            };
            let (from, to) = (&self.program.headers[emit.header], &self.program.headers[*header]);
            let fields = from.fields.iter().zip(&to.fields);
            for (from, to) in fields.chain([(&from.valid, &to.valid)]) {
                let value = state.frame.get(*from).clone();
                state.frame.set(*to, value);
            }
        }
    }

    /// The bytes that the ingress deparser has emitted, which has run already, and the payload
    /// after them. `was_emitted` says which headers.
    fn emitted(&self, state: &mut PacketState, was_emitted: impl Fn(usize) -> bool) -> Vec<u8> {
        for (emitted_index, emit) in self.emits.iter().flatten().enumerate() {
            let header = &self.program.headers[emit.header];
            if state.frame.is_set(header.valid) && was_emitted(emitted_index) {
                let fields = header.fields.iter();
                fields.for_each(|f| state.output.push(state.frame.get(*f)));
            }
        }
        state.finish()
    }

    /// A packet that begins egress: nothing is left of the pass before but its bytes and one group
    /// of metadata.
    fn for_egress(
        &self,
        bytes: Vec<u8>,
        path: Path,
        (from, carried): (&PacketState, &Carried),
        (port, passes, tag): (u32, u32, PacketTag),
    ) -> EgressPacket {
        let mut state = PacketState::new(&self.program, bytes);
        for &var in carried.iter() {
            state.frame.set(var, from.frame.get(var).clone());
        }
        set(&mut state.frame, &self.fields.egress_path, self.fields.path(path));
        EgressPacket::new(state, port, passes, tag)
    }

    /// Continues after the egress control.
    fn end_of_egress(&self, mut packet: EgressPacket, port: u32, env: &mut Env<'_>) -> Vec<Action> {
        let (fields, tag) = (&self.fields, packet.tag);
        let output = fields.egress;
        let is_set = |var| get(&packet.state.frame, var) != 0;
        let (clones, drops) = (is_set(output.clone), is_set(output.drop));
        let mut bytes = Vec::new();
        if clones || !drops || self.blocks.egress.deparser_has_side_effects {
            let out = [&fields.clone_e2e, &fields.recirculate];
            match self.deparse(self.blocks.egress.deparser, &mut packet.state, &out, env) {
                Ok(deparsed) => bytes = deparsed,
                Err(reason) => return vec![Action::stopped(reason, tag)],
            }
        }
        let mut actions = Vec::new();
        if clones {
            let session = get(&packet.state.frame, output.clone_session) as u32;
            let clone_tag = env.tracer.begin_packet(tag, "clone of the packet that egress has made");
            let clone = self.for_egress(
                bytes.clone(),
                Path::CloneE2e,
                (&packet.state, &fields.clone_e2e),
                (packet.ingress_port, packet.passes + 1, clone_tag),
            );
            actions.push(Action::Clone { session, packet: clone });
            env.tracer.resume_packet(tag);
        }
        if drops {
            let last = output.drop.and_then(|v| env.tracer.last_write(v));
            actions.push(Action::drop(DropReason::EgressDrop, last, tag));
        } else if self.is_internal(port) {
            actions.push(Action::Ingress(IngressPacket {
                port,
                bytes,
                origin: Origin::Recirculated,
                is_generated: false,
                preserved: fields::take(&packet.state.frame, &fields.recirculate),
                passes: packet.passes + 1,
                tag: env.tracer.begin_packet(tag, "recirculated packet"),
            }));
        } else {
            actions.push(Action::Transmit { port, bytes, tag });
        }
        actions
    }
}

/// Whether a programmable block has lasting effects other than the permitted ones.
fn has_side_effects(
    program: &Program,
    engines: &Engines,
    ops: &[Op],
    block: usize,
    allowed: impl Fn(&Op) -> bool,
) -> bool {
    let sites = engines.sites().iter(program);
    let mut here = sites.filter(|(_, body, ..)| *body == BodyKey::Block(block));
    here.any(|(site, ..)| {
        ops.get(site.index())
            .is_some_and(|op| op.has_side_effects() && !allowed(op))
    })
}

impl Architecture for Psa {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn initial_state(&self) -> State {
        let program = &self.program;
        let instances = program.externs.iter();
        let resources = instances.map(|(id, e)| externs::resource(program, id.index(), e));
        load::state_of(program, resources.collect(), SELECTORS, Some(EMPTY_GROUP))
    }

    fn ingress(&self, env: &mut Env<'_>, mut packet: IngressPacket) -> Vec<Action> {
        env.tracer.resume_packet(packet.tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, packet.tag)];
        }
        let bytes = std::mem::take(&mut packet.bytes);
        match self.before_end_of_ingress(&mut packet, bytes, env) {
            Ok(state) => self.end_of_ingress(&packet, state, env),
            Err(reason) => vec![Action::stopped(reason, packet.tag)],
        }
    }

    fn egress(&self, env: &mut Env<'_>, mut packet: EgressPacket, queue: QueueInfo) -> Vec<Action> {
        let (fields, tag) = (&self.fields, packet.tag);
        env.tracer.resume_packet(tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, tag)];
        }
        let frame = &mut packet.state.frame;
        set(frame, &fields.egress_port, queue.port.into());
        set(frame, &[fields.egress_class], queue.priority);
        set(frame, &[fields.egress_timestamp], env.now_ns / 1000);
        let Pipeline { parser, control, .. } = self.blocks.egress;
        let parsed = self.parse(parser, &mut packet.state, fields.egress_error, env);
        match parsed.and_then(|()| self.control(control, &mut packet.state, env)) {
            Ok(()) => self.end_of_egress(packet, queue.port, env),
            Err(reason) => vec![Action::stopped(reason, tag)],
        }
    }

    fn fused(&self) -> Result<Fused, NotCompiled> {
        fuse::fuse(self)
    }

    fn registered(&self) -> Option<&BoundExterns> {
        Some(&self.registered)
    }

    fn fused_extern<'f>(&self, fused: &'f Fused, call: usize) -> Option<&'f Arc<BoundCall>> {
        match fused.calls.downcast_ref::<Vec<FusedCall>>()?.get(call)? {
            FusedCall::Op(Op::Registered(call), _) => Some(call),
            FusedCall::Op(..) | FusedCall::Pseudo(_) => None,
        }
    }

    fn fused_call(
        &self,
        env: &mut Env<'_>,
        fused: &Fused,
        call: usize,
        packet: &mut FusedPacket,
        mut arguments: FusedArguments<'_>,
    ) -> bool {
        let calls = fused.calls.downcast_ref::<Vec<FusedCall>>();
        match calls.and_then(|c| c.get(call)) {
            Some(FusedCall::Pseudo(pseudo)) => pseudo.perform(env.state, &mut arguments),
            Some(FusedCall::Op(op, loc)) => {
                let mut runtime = PsaRuntime {
                    arch: self,
                    service: env.service(packet.received_bytes).0,
                    checksums: Checksums::default(),
                };
                return runtime.operate(op, *loc, arguments);
            }
            None => {}
        }
        true
    }

    fn fused_exit(
        &self,
        env: &mut Env<'_>,
        exit: u32,
        packet: &mut FusedPacket,
        port: u32,
        bytes: &[u8],
        values: &[(VarId, Bits)],
    ) -> Vec<Action> {
        let mut arrived = IngressPacket::received(port, packet.as_received(bytes), PacketTag::NONE);
        if exit == fuse::exit::PUNT_FROM_START {
            return self.ingress(env, arrived);
        }
        let received = std::mem::take(&mut arrived.bytes);
        let mut state = self.arrival(&mut arrived, received, env.now_ns);
        // It was parsed before, with this outcome, which had no effects but that errors were
        // counted.
        if let Outcome::Abort(reason) = self.run(self.blocks.ingress.parser, &mut state, env) {
            return vec![Action::stopped(reason, PacketTag::NONE)];
        }
        packet.apply_changes(&mut state, 0, bytes);
        let known = self.program.vars.len();
        for (var, value) in values.iter().filter(|(v, _)| v.index() < known) {
            state.frame.set(*var, value.clone());
        }
        if exit == fuse::exit::PUNT_AFTER_INGRESS {
            return self.end_of_ingress(&arrived, state, env);
        }
        let punt_value = |number| {
            let var = fuse::punt_variable(&self.program, number);
            let found = values.iter().find(|(v, _)| *v == var);
            found.map_or(0, |(_, value)| value.to_u64_saturating())
        };
        let is_always_emitted =
            |emitted_index: usize| self.emits.iter().flatten().nth(emitted_index).is_some_and(|e| e.always);
        let was_emitted = |emitted_index| is_always_emitted(emitted_index) || punt_value(1 + emitted_index) != 0;
        let to = punt_value(0) as u32;
        let tag = PacketTag::NONE;
        if exit == fuse::exit::END_OF_EGRESS {
            state.bytes = self.emitted(&mut state, |emitted_index| {
                was_emitted(emitted_index) && self.aliases().iter().all(|(a, _)| *a != emitted_index)
            });
            state.cursor = 0;
            self.restore_aliases(&mut state);
            return self.end_of_egress(EgressPacket::new(state, port, 0, tag), to, env);
        }
        let deparsed = self.emitted(&mut state, was_emitted);
        let normal = (&state, &self.fields.normal);
        vec![Action::Enqueue {
            port: to,
            packet: self.for_egress(deparsed, Path::NormalUnicast, normal, (port, 0, tag)),
        }]
    }

    fn priority(&self, packet: &EgressPacket) -> u64 {
        get(&packet.state.frame, self.fields.egress_class)
    }

    fn observes_queues(&self) -> bool {
        let queue_measurements: Vec<VarId> = self.fields.egress_timestamp.into_iter().collect();
        let class: Vec<VarId> = self.fields.ingress.class_of_service.into_iter().collect();
        reads_any(&self.program, &queue_measurements) || sets_any(&self.program, &class)
    }

    fn enqueued(&self, _: &mut EgressPacket, _: u64, _: u64) {}

    fn replica(&self, packet: &EgressPacket, rid: u32) -> EgressPacket {
        let mut replica = packet.clone();
        set(&mut replica.state.frame, &[self.fields.instance], rid.into());
        replica
    }

    fn replication(&self) -> ReplicationRules {
        ReplicationRules {
            groups: 1..=u32::MAX,
            sessions: SESSION_TO_CPU..=0xffff,
            initial: &[(SESSION_TO_CPU, PORT_CPU)],
            exclusions: 0,
            deflects: false,
        }
    }

    /// A program with narrower ports has the last bits of the number.
    fn is_internal(&self, port: u32) -> bool {
        let width = self.fields.ingress.port.map_or(32, |v| self.program.vars[v].ty.width());
        let mask = u32::MAX.checked_shr(32u32.saturating_sub(width)).unwrap_or(0);
        port == PORT_RECIRCULATE & mask
    }
}
