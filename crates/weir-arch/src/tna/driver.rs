//! Drives a packet through a TNA program: parser, control and deparser of each gress, and between
//! them the traffic manager, mirroring, resubmission and recirculation.
//!
//! A punted packet resumes here, at the end of the control that compiled code has run.

mod egress;

use super::externs::{self, ExternOp, SELECTORS};
use super::fields::{self, Gress, NO_PORT, Pipe, get, set};
use super::fuse::{self, FusedCall};
use super::headers::{self, Chip, NO_MATCH};
use super::runtime::{DeferredCount, Requests, TnaRuntime};
use super::transmit;
use crate::bound::{BoundCall, BoundExterns};
use crate::calls::{self, Engines, note};
use crate::driver::{
    Action, Architecture, DropReason, EgressPacket, Env, Exclusion, Handling, IngressPacket, MAX_PASSES, Origin,
    PRIORITIES, QueueInfo, ReplicationRules,
};
use crate::error::{LoadError, NotCompiled};
use crate::fused::{Fused, FusedArguments, FusedPacket};
use crate::generator::{BUFFER, Generators};
use crate::load;
use crate::queue_use::{reads_any, sets_any};
use crate::state::State;
use std::sync::Arc;
use weir_extern_api::Registry;
use weir_interp::{Abort, Executable, MethodEngine, Outcome, PacketState, PacketTag, SiteId};
use weir_ir::{Bits, Call, ExternId, Program, VarId};

/// Bytes of the frame check sequence (IEEE 802.3), which the chip counts with every packet.
const FRAME_CHECK: u64 = 4;

/// Bits of `drop_ctl`.
const DROP_PACKET: u64 = 1;
const DROP_COPY: u64 = 2;
const DROP_MIRROR: u64 = 4;

/// Bytes of a line of a packet generator's buffer, and how many lines there are.
const LINE: u64 = 16;
const LINES: u64 = BUFFER as u64 / LINE;

/// A program on TNA or T2NA, run as the chips do.
///
/// Where they leave a choice, and where weir differs: unset fields are zero, but for the port and
/// the types of deparser requests, which are absent; a packet's frame
/// check sequence is counted ([`State::frame_check`]), but no parser sees it; queue depths are in
/// packets; of a port's queues the one with the largest number modulo 8 is served first; there is
/// one state for all pipes that share a program; a packet is resubmitted or recirculated at most
/// [`MAX_PASSES`] times.
pub struct Tna {
    program: Arc<Program>,
    engines: Engines,
    ops: Vec<ExternOp>,
    pipes: Vec<Pipe>,
    chip: Chip,
    pub(crate) registered: BoundExterns,
}

/// A packet that has gone through a gress.
struct Done {
    state: PacketState,
    requests: Requests,
    deferred: Vec<DeferredCount>,
    deparsed: Vec<u8>,
}

impl Tna {
    /// Prepares a program. `externs` are what it may call besides the architecture's own.
    ///
    /// # Errors
    /// A programmable block is missing or cannot be run, or it uses an extern that cannot be run:
    /// all that is so.
    pub(super) fn new(engine: Arc<dyn Executable>, externs: &Registry, chip: Chip) -> Result<Self, Vec<LoadError>> {
        let program = Arc::clone(engine.program());
        let engines = Engines::new(engine);
        let is_own = |call: &Call, loc| !matches!(externs::own(&program, call, loc), Ok(None));
        let registered = BoundExterns::new(&program, engines.sites(), externs, is_own)?;
        let ops = externs::resolve(chip.name, &program, engines.sites(), &registered);
        let (ops, pipes) = match (ops, fields::pipes(&program)) {
            (Ok(ops), Ok(pipes)) => (ops, pipes),
            (ops, pipes) => {
                let mut errors = ops.err().unwrap_or_default();
                errors.extend(pipes.err().unwrap_or_default());
                return Err(errors);
            }
        };
        Ok(Tna {
            program,
            engines,
            ops,
            pipes,
            chip,
            registered,
        })
    }

    /// The operation of a call.
    pub(crate) fn op(&self, site: SiteId) -> Option<&ExternOp> {
        self.ops.get(site.index())
    }

    /// The pipes of the program, each with the numbers of the device's pipes that run it.
    pub(crate) fn own_pipes(&self) -> Vec<(&Pipe, Vec<u64>)> {
        let mut own: Vec<(&Pipe, Vec<u64>)> = Vec::new();
        for (pipe, number) in self.pipes.iter().zip(0..) {
            let same = |known: &Pipe| pipe.ingress.control == known.ingress.control && pipe.tm.port == known.tm.port;
            match own.iter_mut().find(|(known, _)| same(known)) {
                Some((_, numbers)) => numbers.push(number),
                None => own.push((pipe, vec![number])),
            }
        }
        own
    }

    /// Whether the program has a ghost control, which receives queue events.
    pub(crate) fn has_ghost(&self) -> bool {
        self.pipes.iter().any(|p| p.ghost.is_some())
    }

    pub(crate) fn first_pipe(&self) -> Option<&Pipe> {
        self.pipes.first()
    }

    /// Calls `action` with the engine that runs the program's methods.
    pub(crate) fn with_methods<R>(&self, action: impl FnOnce(&mut dyn MethodEngine) -> R) -> R {
        self.engines.with_methods(action)
    }

    pub(crate) fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Registers that actions of the program work on.
    pub(crate) fn registers(&self) -> impl Iterator<Item = ExternId> {
        self.ops.iter().filter_map(|op| match op {
            ExternOp::Register(call) => Some(call.register),
            _ => None,
        })
    }

    /// Whether packets are mirrored or resubmitted, as they were received.
    pub(crate) fn sends_received(&self) -> bool {
        let ops = &mut self.ops.iter();
        ops.any(|op| matches!(op, ExternOp::Mirror { .. } | ExternOp::Resubmit { .. }))
    }

    pub(crate) fn chip(&self) -> &Chip {
        &self.chip
    }

    /// The pipe of a port.
    fn pipe(&self, port: u32) -> &Pipe {
        &self.pipes[(port >> 7) as usize % fields::PIPE_COUNT]
    }

    /// Parses; then the bits of `parser_err`.
    fn parse(
        &self,
        gress: &Gress,
        port: u32,
        front: usize,
        packet: &mut PacketState,
        env: &mut Env<'_>,
    ) -> Result<u64, Abort> {
        let bytes = (packet.bytes.len() - front.min(packet.bytes.len())) as u64;
        let (service, tracer) = env.service(bytes);
        let mut runtime = TnaRuntime::new(self, gress, service);
        let outcome = self.engines.run(gress.parser(port), packet, tracer, &mut runtime);
        runtime.settle(packet);
        // The intrinsic prefix is no part of the packet, even if the parser has not consumed it.
        packet.cursor = packet.cursor.max(front * 8);
        let rejected = matches!(outcome, Outcome::Reject(_));
        Ok(match calls::parser_error(outcome, env.state)? {
            0 if rejected => NO_MATCH,
            error => headers::error_bits(&self.program, error),
        })
    }

    /// Runs programmable blocks of a gress, its deparser last, on a parsed packet.
    fn process(
        &self,
        gress: &Gress,
        blocks: &[usize],
        mut state: PacketState,
        bytes: u64,
        env: &mut Env<'_>,
    ) -> Result<Done, Abort> {
        let (mut requests, mut deferred) = (Requests::default(), Vec::new());
        for block in blocks {
            let (service, tracer) = env.service(bytes);
            let mut runtime = TnaRuntime::new(self, gress, service);
            if let Outcome::Abort(reason) = self.engines.run(*block, &mut state, tracer, &mut runtime) {
                return Err(reason);
            }
            requests = runtime.requests;
            deferred.extend(runtime.deferred);
        }
        let deparsed = state.finish();
        Ok(Done {
            state,
            requests,
            deferred,
            deparsed,
        })
    }

    /// The variables of a gress before its parser runs.
    fn begin(&self, gress: &Gress, bytes: Vec<u8>, now_ns: u64) -> PacketState {
        let mut state = PacketState::new(&self.program, bytes);
        set(&mut state.frame, gress.timestamp, now_ns);
        for (var, value) in &gress.unset_values {
            state.frame.set_u64(*var, *value);
        }
        state
    }

    // --------------------------------------------------------------------------------- ingress

    /// The bytes that the ingress parser sees, and how many of them precede the packet.
    fn front(&self, packet: &IngressPacket, env: &Env<'_>) -> (Vec<u8>, usize) {
        let is_resubmitted = packet.origin == Origin::Resubmitted;
        let mut bytes = headers::ingress(&self.program, packet.port, env.now_ns, is_resubmitted);
        let begin = bytes.len();
        if !is_resubmitted {
            let metadata = env.state.port_metadata.get(&packet.port);
            bytes.extend(metadata.into_iter().flatten().take(self.chip.port_metadata));
            bytes.resize(begin + self.chip.port_metadata, 0);
        }
        // A resubmitted packet carries data in place of the port's metadata.
        let front = begin + self.chip.port_metadata;
        bytes.extend_from_slice(&packet.bytes);
        (bytes, front)
    }

    fn run_ingress(&self, packet: IngressPacket, env: &mut Env<'_>) -> Result<Vec<Action>, Abort> {
        let pipe = self.pipe(packet.port);
        let gress = &pipe.ingress;
        let (bytes, front) = self.front(&packet, env);
        let received = bytes.get(front..).unwrap_or_default().to_vec();
        let now_ns = env.now_ns;
        let mut state = self.begin(gress, bytes, now_ns);
        let error = self.parse(gress, packet.port, front, &mut state, env)?;
        let is_resubmitted = packet.origin == Origin::Resubmitted;
        headers::fill_ingress(gress, &mut state.frame, packet.port, now_ns, is_resubmitted);
        set(&mut state.frame, gress.timestamp, now_ns);
        set(&mut state.frame, gress.error, error);
        if error & NO_MATCH != 0 || error != 0 && !gress.reads_error {
            let text = match error & NO_MATCH {
                0 => "the parser has failed, and ingress does not look at parser_err: the packet is dropped",
                _ => "the parser knows no way on: the packet is dropped",
            };
            note(env, text);
            return Ok(vec![Action::drop(DropReason::IngressDrop, None, packet.tag)]);
        }
        let blocks = [gress.control, gress.deparser];
        let done = self.process(gress, &blocks, state, received.len() as u64, env)?;
        Ok(self.end_of_ingress(pipe, &packet, &received, done, env))
    }

    /// Continues a packet that compiled code punted at the end of ingress, with these variables.
    /// `packet` is as it was received; its bytes are now these.
    fn resume_ingress(
        &self,
        packet: IngressPacket,
        (known, bytes_now): (&FusedPacket, &[u8]),
        values: &[(VarId, Bits)],
        env: &mut Env<'_>,
    ) -> Result<Vec<Action>, Abort> {
        let pipe = self.pipe(packet.port);
        let gress = &pipe.ingress;
        let (bytes, front) = self.front(&packet, env);
        let mut state = self.begin(gress, bytes, env.now_ns);
        let parser_errors = env.state.parser_errors.clone();
        // It was parsed before, with this outcome, which had no effects but that errors were
        // counted.
        self.parse(gress, packet.port, front, &mut state, env)?;
        env.state.parser_errors = parser_errors;
        known.apply_changes(&mut state, front, bytes_now);
        let known = self.program.vars.len();
        for (var, value) in values.iter().filter(|(v, _)| v.index() < known) {
            state.frame.set(*var, value.clone());
        }
        let bytes = packet.bytes.len() as u64;
        let done = self.process(gress, &[gress.deparser], state, bytes, env)?;
        Ok(self.end_of_ingress(pipe, &packet, &packet.bytes, done, env))
    }

    /// Does what follows the ingress deparser: mirroring, resubmission, and the traffic manager.
    fn end_of_ingress(
        &self,
        pipe: &Pipe,
        packet: &IngressPacket,
        received: &[u8],
        done: Done,
        env: &mut Env<'_>,
    ) -> Vec<Action> {
        let (gress, tm, tag) = (&pipe.ingress, &pipe.tm, packet.tag);
        let value = |var| get(&done.state.frame, var);
        let drop = value(gress.drop);
        let mut actions = Vec::new();
        if let (Some(context), Some(generators)) = (&done.requests.generate, &mut env.state.generators)
            && (gress.generate.is_none() || value(gress.generate) != 0)
        {
            let [line, length] = gress.generate_from.map(value);
            let from = ((line % LINES * LINE) as u32, length as u32);
            generators.requested_by_deparser(packet.port, context, from, env.now_ns);
        }
        let about = (packet.port, packet.passes, tag);
        actions.extend(self.mirror(gress, &done, received, about, env));
        let dropped = drop & DROP_PACKET != 0;
        if let (false, Some(data)) = (dropped, &done.requests.resubmit) {
            actions.push(self.resubmit(packet, received, data, env));
            return actions;
        }
        let mut handling = Handling {
            bypasses_egress: value(tm.bypass) != 0,
            deflect: value(tm.deflect) != 0,
            queue: value(tm.queue) as u32,
            class: value(tm.class) as u32,
            rid: value(tm.rid) as u32,
            generated_bytes: if packet.is_generated {
                packet.bytes.len() as u32
            } else {
                0
            },
            ..Handling::default()
        };
        let before = actions.len();
        let onward = |handling: Handling, tag| {
            let mut copy = self.for_egress(done.deparsed.clone(), packet.port, packet.passes, tag);
            copy.handling = handling;
            copy
        };
        if value(tm.copy_to_cpu) != 0 && drop & DROP_COPY == 0 {
            let class = value(tm.class_of_copy) as u32;
            let copy_tag = env.tracer.begin_packet(tag, "copy for the CPU");
            let copy = onward(Handling { class, ..handling }, copy_tag);
            actions.push(Action::Enqueue {
                port: self.chip.cpu_port,
                packet: copy,
            });
            env.tracer.resume_packet(tag);
        }
        if dropped {
            let last = gress.drop.and_then(|v| env.tracer.last_write(v));
            actions.push(Action::drop(DropReason::IngressDrop, last, tag));
            return actions;
        }
        for group in tm.groups.map(value) {
            if group != 0 {
                handling.exclusion = Some(Exclusion {
                    node: value(tm.exclude_node) as u32,
                    rid: handling.rid,
                    ports: value(tm.exclude_ports) as u32,
                });
                actions.push(Action::Multicast {
                    group: group as u32,
                    packet: onward(handling, tag),
                });
            }
        }
        handling.exclusion = None;
        let port = tm.port.map_or(NO_PORT, |v| done.state.frame.get_u64(v));
        if port != NO_PORT {
            actions.push(Action::Enqueue {
                port: port as u32,
                packet: onward(handling, tag),
            });
        } else if actions.len() == before {
            note(env, "ingress has given it neither a port nor a multicast group");
            actions.push(Action::drop(DropReason::IngressDrop, None, tag));
        }
        actions
    }

    /// The packet once more, as it came, with the data in place of the port's metadata.
    fn resubmit(&self, packet: &IngressPacket, received: &[u8], data: &[u8], env: &mut Env<'_>) -> Action {
        let mut bytes = data.to_vec();
        bytes.resize(self.chip.port_metadata, 0);
        bytes.extend_from_slice(received);
        Action::Ingress(IngressPacket {
            port: packet.port,
            bytes,
            origin: Origin::Resubmitted,
            is_generated: packet.is_generated,
            preserved: Vec::new(),
            passes: packet.passes + 1,
            tag: env.tracer.begin_packet(packet.tag, "resubmitted packet"),
        })
    }

    /// A copy for a mirror session, if the deparser has requested one and nothing forbids it.
    fn mirror(
        &self,
        gress: &Gress,
        done: &Done,
        came: &[u8],
        (port, passes, tag): (u32, u32, PacketTag),
        env: &mut Env<'_>,
    ) -> Option<Action> {
        let (session, header) = done.requests.mirror.as_ref()?;
        if get(&done.state.frame, gress.drop) & DROP_MIRROR != 0 {
            return None;
        }
        let leaving = match gress.mirror_leaving {
            Some(var) => done.state.frame.is_set(var),
            None => gress.direction == fields::Direction::Egress,
        };
        let (body, what) = match leaving {
            true => (done.deparsed.as_slice(), "mirror of the packet that leaves"),
            false => (came, "mirror of the packet that came"),
        };
        let mut bytes = header.clone();
        bytes.extend_from_slice(body);
        let mirror_tag = env.tracer.begin_packet(tag, what);
        let packet = self.for_egress(bytes, port, passes + 1, mirror_tag);
        env.tracer.resume_packet(tag);
        Some(Action::Clone {
            session: *session,
            packet,
        })
    }
}

impl Architecture for Tna {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn initial_state(&self) -> State {
        let program = &self.program;
        let instances = program.externs.iter();
        let resources = instances.map(|(id, e)| externs::resource(program, id, e));
        let mut state = load::state_of(program, resources.collect(), SELECTORS, None);
        state.generators = Some(Box::new(Generators::new(self.chip.generators())));
        state.set_frame_check(FRAME_CHECK);
        state
    }

    fn ingress(&self, env: &mut Env<'_>, packet: IngressPacket) -> Vec<Action> {
        let tag = packet.tag;
        env.tracer.resume_packet(tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, tag)];
        }
        self.run_ingress(packet, env)
            .unwrap_or_else(|reason| vec![Action::stopped(reason, tag)])
    }

    fn egress(&self, env: &mut Env<'_>, packet: EgressPacket, queue: QueueInfo) -> Vec<Action> {
        let tag = packet.tag;
        env.tracer.resume_packet(tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, tag)];
        }
        if packet.handling.bypasses_egress {
            note(env, "bypasses egress");
            let bytes = packet.state.bytes.clone();
            return vec![self.send(bytes, &packet, queue.port, env)];
        }
        self.run_egress(&packet, queue, env)
            .unwrap_or_else(|reason| vec![Action::stopped(reason, tag)])
    }

    fn priority(&self, packet: &EgressPacket) -> u64 {
        u64::from(packet.handling.queue) % PRIORITIES as u64
    }

    fn observes_queues(&self) -> bool {
        let pipes = || self.pipes.iter();
        let queue_measurements: Vec<VarId> = pipes().flat_map(|pipe| pipe.egress.queue_measurements()).collect();
        let queue: Vec<VarId> = pipes().filter_map(|pipe| pipe.tm.queue).collect();
        self.has_ghost() || reads_any(&self.program, &queue_measurements) || sets_any(&self.program, &queue)
    }

    fn enqueued(&self, packet: &mut EgressPacket, _: u64, depth: u64) {
        packet.handling.depth = depth;
    }

    fn watches_queues(&self) -> bool {
        self.has_ghost()
    }

    fn queue_changed(&self, env: &mut Env<'_>, port: u32, priority: u64, depth: u64) {
        let pipe = self.pipe(port);
        let Some(ghost) = &pipe.ghost else { return };
        let mut state = PacketState::new(&self.program, Vec::new());
        let frame = &mut state.frame;
        set(frame, ghost.valid, 1);
        set(frame, ghost.length, depth);
        set(
            frame,
            ghost.queue,
            u64::from(port & 0x7f) * PRIORITIES as u64 + priority,
        );
        set(frame, ghost.pipe, u64::from(port >> 7));
        let (service, tracer) = env.service(0);
        let mut runtime = TnaRuntime::new(self, &pipe.ingress, service);
        // That it was stopped concerns no packet.
        self.engines.run(ghost.control, &mut state, tracer, &mut runtime);
    }

    fn replica(&self, packet: &EgressPacket, rid: u32) -> EgressPacket {
        let mut replica = packet.clone();
        replica.handling.rid = rid;
        replica
    }

    fn replication(&self) -> ReplicationRules {
        ReplicationRules {
            groups: 1..=0xffff,
            sessions: self.chip.sessions.clone(),
            initial: &[],
            // As many as `level2_exclusion_id` has numbers; those of nodes have 16 bits.
            exclusions: 512,
            deflects: true,
        }
    }

    fn fused(&self) -> Result<Fused, NotCompiled> {
        fuse::fuse(self, true)
    }

    fn fused_without_egress(&self) -> Result<Fused, NotCompiled> {
        fuse::fuse(self, false)
    }

    fn fused_stamp(&self, bytes: &mut [u8], now_ns: u64) -> usize {
        transmit::update_delay(bytes, now_ns).unwrap_or(0)
    }

    fn registered(&self) -> Option<&BoundExterns> {
        Some(&self.registered)
    }

    fn fused_extern<'f>(&self, fused: &'f Fused, call: usize) -> Option<&'f Arc<BoundCall>> {
        match fused.calls.downcast_ref::<Vec<FusedCall>>()?.get(call)? {
            FusedCall::Op(ExternOp::Registered(call), _) => Some(call),
            FusedCall::Op(..)
            | FusedCall::CountedWhenSent(..)
            | FusedCall::Pseudo(_)
            | FusedCall::Inline
            | FusedCall::InterpFallback(_) => None,
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
        match (calls.and_then(|c| c.get(call)), self.pipes.first()) {
            (Some(FusedCall::Pseudo(pseudo)), _) => pseudo.perform(env.state, &mut arguments),
            (Some(FusedCall::InterpFallback(fallback)), _) => {
                let bytes = packet.received_bytes();
                return fallback.perform(self, env, bytes, arguments);
            }
            (Some(FusedCall::CountedWhenSent(op, loc)), Some(pipe)) => {
                let (service, _) = env.service(packet.received_bytes());
                let mut runtime = TnaRuntime::new(self, &pipe.egress, service);
                let goes_on = runtime.operate(op, *loc, arguments);
                packet.deferred.append(&mut runtime.deferred);
                packet.is_fresh = false;
                return goes_on;
            }
            (Some(FusedCall::Op(op, loc)), Some(pipe)) => {
                let (service, _) = env.service(packet.received_bytes());
                return TnaRuntime::new(self, &pipe.ingress, service).operate(op, *loc, arguments);
            }
            _ => {}
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
        let arrived = IngressPacket {
            passes: packet.passes,
            is_generated: packet.is_generated,
            ..IngressPacket::received(port, packet.as_received(bytes), PacketTag::NONE)
        };
        if exit == fuse::exit::PUNT_FROM_START {
            return self.ingress(env, arrived);
        }
        self.resume_ingress(arrived, (packet, bytes), values, env)
            .unwrap_or_else(|reason| vec![Action::stopped(reason, PacketTag::NONE)])
    }

    fn fused_sent(&self, state: &mut State, packet: &mut FusedPacket, bytes: u64) {
        packet
            .deferred
            .drain(..)
            .for_each(|deferred| deferred.count(state, bytes));
    }

    fn fused_egress_exit(
        &self,
        env: &mut Env<'_>,
        exit: u32,
        known: &mut FusedPacket,
        mut packet: EgressPacket,
        queue: QueueInfo,
        values: &[(VarId, Bits)],
    ) -> Vec<Action> {
        if exit == fuse::exit::PUNT_FROM_START {
            return self.egress(env, packet, queue);
        }
        let deferred = std::mem::take(&mut known.deferred);
        let received = known.as_received(&packet.state.bytes);
        let bytes = std::mem::replace(&mut packet.state.bytes, received);
        packet.received_bytes = packet.state.bytes.len() as u64;
        self.resume_egress(&packet, (known, &bytes), queue, (values, deferred), env)
            .unwrap_or_else(|reason| vec![Action::stopped(reason, packet.tag)])
    }

    fn is_internal(&self, port: u32) -> bool {
        port < 512 && self.chip.recirculation.contains(&(port & 0x7f))
    }
}
