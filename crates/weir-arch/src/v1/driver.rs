//! The order of things: simple_switch's ingress and egress threads as functions.

use super::externs::{self, Op, SELECTORS, TARGET};
use super::fields::{Groups, StandardMetadata, get, set};
use super::fuse;
use super::runtime::{DROP_PORT, FusedCall, Marks, V1Runtime, is_drop};
use crate::bound::{BoundCall, BoundExterns};
use crate::calls::{self, Engines};
use crate::driver::{Action, Architecture, DropReason, EgressPacket, Env, Handling, IngressPacket, Origin, QueueInfo};
use crate::error::{LoadError, NotCompiled};
use crate::fused::{Fused, FusedArguments, FusedPacket};
use crate::hash::{self, Algorithm};
use crate::load;
use crate::queue_use::{reads_any, sets_any};
use crate::state::State;
use std::sync::Arc;
use weir_extern_api::Registry;
use weir_interp::{Abort, Executable, Outcome, PacketState, PacketTag, SiteId};
use weir_ir::{Bits, Call, Program, TableId, VarId};

/// Times that a packet may be resubmitted, recirculated or cloned in egress before it is dropped.
/// simple_switch has no such limit; programs count passes in fields of eight bits.
const MAX_PASSES: u32 = 1024;

/// `instance_type` of simple_switch.
mod instance {
    pub const NORMAL: u64 = 0;
    pub const INGRESS_CLONE: u64 = 1;
    pub const EGRESS_CLONE: u64 = 2;
    pub const RECIRCULATED: u64 = 4;
    pub const REPLICATION: u64 = 5;
    pub const RESUBMITTED: u64 = 6;
}

/// Indices of the programmable blocks in [`Program::blocks`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProgrammableBlocks {
    pub parser: usize,
    pub verify_checksum: usize,
    pub ingress: usize,
    pub egress: usize,
    pub compute_checksum: usize,
    pub deparser: usize,
}

impl ProgrammableBlocks {
    fn new(program: &Program) -> Result<Self, LoadError> {
        let block = |role| calls::block_with_role(program, role, TARGET);
        Ok(ProgrammableBlocks {
            parser: block("parser")?,
            verify_checksum: block("verify_checksum")?,
            ingress: block("ingress")?,
            egress: block("egress")?,
            compute_checksum: block("compute_checksum")?,
            deparser: block("deparser")?,
        })
    }
}

/// A program on v1model, run as simple_switch runs it.
///
/// Where it goes further or elsewhere than simple_switch: a parser that finds no matching case sets
/// `parser_error` to `NoMatch`; a clone's or replica's truncation and 8 priorities are real; the
/// clone that a session sends to a single port has `egress_rid` 0; `HashAlgorithm.random` works; a
/// failed `assert` drops the packet instead of ending the switch.
pub struct V1Model {
    pub(crate) program: Arc<Program>,
    engines: Engines,
    ops: Vec<Op>,
    blocks: ProgrammableBlocks,
    pub(crate) algorithms: Vec<Option<Algorithm>>,
    pub(crate) fields: StandardMetadata,
    pub(crate) groups: Groups,
    pub(crate) registered: BoundExterns,
}

impl V1Model {
    /// Prepares a program. `externs` are what it may call besides v1model's own.
    ///
    /// # Errors
    /// A programmable block is missing, or it uses an extern that neither v1model has nor the
    /// caller brings: all that is so.
    pub fn new(engine: Arc<dyn Executable>, externs: &Registry) -> Result<Self, Vec<LoadError>> {
        let program = Arc::clone(engine.program());
        let engines = Engines::new(engine);
        let is_own = |call: &Call, _| externs::own(&program, call).is_some();
        let registered = BoundExterns::new(&program, engines.sites(), externs, is_own)?;
        let ops = externs::resolve(&program, engines.sites(), &registered)?;
        Ok(V1Model {
            ops,
            blocks: ProgrammableBlocks::new(&program).map_err(|e| vec![e])?,
            algorithms: externs::algorithms(&program),
            fields: StandardMetadata::new(&program),
            groups: Groups::new(&program),
            registered,
            engines,
            program,
        })
    }

    /// The operation of a call.
    pub(crate) fn op(&self, site: SiteId) -> Option<&Op> {
        self.ops.get(site.index())
    }

    /// Whether packets are sent, or parsed again, as they were received.
    pub(crate) fn sends_received(&self) -> bool {
        self.ops.iter().any(|op| matches!(op, Op::Clone(_) | Op::Resubmit(_)))
    }

    fn run(
        &self,
        block: usize,
        packet: &mut PacketState,
        marks: &mut Marks,
        received_bytes: u64,
        env: &mut Env<'_>,
    ) -> Outcome {
        let (service, tracer) = env.service(received_bytes);
        let mut runtime = V1Runtime {
            arch: self,
            service,
            marks,
        };
        self.engines.run(block, packet, tracer, &mut runtime)
    }

    /// Parses; leaves the error in `parser_error`.
    fn parse(&self, state: &mut PacketState, marks: &mut Marks, env: &mut Env<'_>) -> Result<(), Abort> {
        let received = state.bytes.len() as u64;
        let outcome = self.run(self.blocks.parser, state, marks, received, env);
        let error = calls::parser_error(outcome, env.state)?;
        set(&mut state.frame, self.fields.parser_error, error.into());
        Ok(())
    }

    fn arrival(&self, packet: &mut IngressPacket, now_ns: u64) -> PacketState {
        let mut state = PacketState::new(&self.program, std::mem::take(&mut packet.bytes));
        let (frame, fields) = (&mut state.frame, &self.fields);
        for (var, value) in packet.preserved.drain(..) {
            frame.set(var, value);
        }
        let kind = match packet.origin {
            Origin::Received => {
                set(frame, fields.ingress_port, packet.port.into());
                set(frame, fields.ingress_global_timestamp, now_ns / 1000);
                instance::NORMAL
            }
            Origin::Resubmitted => instance::RESUBMITTED,
            Origin::Recirculated => instance::RECIRCULATED,
        };
        set(frame, fields.instance_type, kind);
        set(frame, fields.packet_length, state.bytes.len() as u64);
        state
    }

    /// The clone of a packet as it was received, parsed anew.
    fn ingress_clone(&self, original: &EgressPacket, keep: &[VarId], env: &mut Env<'_>) -> Result<EgressPacket, Abort> {
        let tag = env.tracer.begin_packet(original.tag, "clone of the received packet");
        let mut state = PacketState::new(&self.program, original.state.as_received().to_vec());
        set(&mut state.frame, self.fields.ingress_port, original.ingress_port.into());
        self.parse(&mut state, &mut Marks::default(), env)?;
        self.groups
            .reset_metadata(&self.program, &mut state.frame, keep, &original.state.frame);
        set(&mut state.frame, self.fields.instance_type, instance::INGRESS_CLONE);
        let length_bits = self.groups.header_bits(&self.program, &state.frame);
        Ok(EgressPacket {
            length: state.bytes.len() as i64,
            length_bits,
            state,
            ingress_port: original.ingress_port,
            received_bytes: original.received_bytes,
            truncate: None,
            recirculate: None,
            handling: Handling::default(),
            passes: original.passes,
            tag,
        })
    }

    /// The clone of a packet as egress leaves it.
    fn egress_clone(&self, original: &EgressPacket, keep: &[VarId], env: &mut Env<'_>) -> EgressPacket {
        let tag = env
            .tracer
            .begin_packet(original.tag, "clone of the packet at the end of egress");
        let mut clone = original.clone();
        self.groups
            .reset_metadata(&self.program, &mut clone.state.frame, keep, &original.state.frame);
        set(
            &mut clone.state.frame,
            self.fields.instance_type,
            instance::EGRESS_CLONE,
        );
        clone.truncate = None;
        clone.recirculate = None;
        clone.passes += 1;
        clone.tag = tag;
        self.remeasure(&mut clone);
        clone
    }

    /// Length with the headers that are valid now, as bmv2 keeps it: bytes received plus headers
    /// added, minus headers removed.
    fn remeasure(&self, packet: &mut EgressPacket) {
        let bits = self.groups.header_bits(&self.program, &packet.state.frame);
        packet.length += (bits - packet.length_bits) / 8;
        packet.length_bits = bits;
    }

    fn again(
        &self,
        packet: &EgressPacket,
        origin: Origin,
        bytes: Vec<u8>,
        keep: &[VarId],
        env: &mut Env<'_>,
    ) -> IngressPacket {
        let what = if origin == Origin::Resubmitted {
            "resubmitted packet"
        } else {
            "recirculated packet"
        };
        let tag = env.tracer.begin_packet(packet.tag, what);
        IngressPacket {
            port: packet.ingress_port,
            bytes,
            origin,
            is_generated: false,
            preserved: keep.iter().map(|&v| (v, packet.state.frame.get(v).clone())).collect(),
            passes: packet.passes + 1,
            tag,
        }
    }

    fn dropped(&self, reason: DropReason, tag: PacketTag, env: &Env<'_>) -> Action {
        let loc = self.fields.egress_spec.and_then(|v| env.tracer.last_write(v));
        Action::drop(reason, loc, tag)
    }

    /// Continues after the ingress control.
    fn end_of_ingress(&self, mut packet: EgressPacket, mut marks: Marks, env: &mut Env<'_>) -> Vec<Action> {
        let mut actions = Vec::new();
        let fields = &self.fields;
        if let Some(mark) = marks.clone.take() {
            match self.ingress_clone(&packet, &mark.keep, env) {
                Ok(clone) => actions.push(Action::Clone {
                    session: mark.session,
                    packet: clone,
                }),
                Err(reason) => actions.push(Action::stopped(reason, packet.tag)),
            }
            env.tracer.resume_packet(packet.tag);
        }
        marks.digests.drain(..).for_each(|d| env.state.digests.push(d));
        let received = packet.state.received.take();
        if let Some(keep) = marks.resubmit.take() {
            let bytes = received.unwrap_or_else(|| std::mem::take(&mut packet.state.bytes));
            let again = self.again(&packet, Origin::Resubmitted, bytes, &keep, env);
            actions.push(Action::Ingress(again));
            return actions;
        }
        let frame = &mut packet.state.frame;
        let group = get(frame, fields.mcast_grp);
        if group != 0 {
            set(frame, fields.instance_type, instance::REPLICATION);
            self.remeasure(&mut packet);
            actions.push(Action::Multicast {
                group: group as u32,
                packet,
            });
            return actions;
        }
        if is_drop(self, frame) {
            actions.push(self.dropped(DropReason::IngressDrop, packet.tag, env));
            return actions;
        }
        set(frame, fields.instance_type, instance::NORMAL);
        let port = get(frame, fields.egress_spec) as u32;
        self.remeasure(&mut packet);
        actions.push(Action::Enqueue { port, packet });
        actions
    }

    /// Checksums, deparser, and out.
    fn deparse(&self, mut packet: EgressPacket, mut marks: Marks, port: u32, env: &mut Env<'_>) -> Action {
        for block in [self.blocks.compute_checksum, self.blocks.deparser] {
            if let Outcome::Abort(reason) = self.run(block, &mut packet.state, &mut marks, packet.received_bytes, env) {
                return Action::stopped(reason, packet.tag);
            }
        }
        let mut bytes = packet.state.finish();
        if let Some(limit) = marks.truncate.into_iter().chain(packet.truncate).min() {
            bytes.truncate(limit as usize);
        }
        marks.digests.drain(..).for_each(|d| env.state.digests.push(d));
        match marks.recirculate.or_else(|| packet.recirculate.take()) {
            Some(keep) => Action::Ingress(self.again(&packet, Origin::Recirculated, bytes, &keep, env)),
            None => Action::Transmit {
                port,
                bytes,
                tag: packet.tag,
            },
        }
    }
}

impl Architecture for V1Model {
    fn max_passes(&self) -> u32 {
        MAX_PASSES
    }

    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn initial_state(&self) -> State {
        let program = &self.program;
        let resources = program
            .externs
            .iter()
            .map(|(id, e)| externs::resource(program, id.index(), e))
            .collect();
        load::state_of(program, resources, SELECTORS, None)
    }

    fn ingress(&self, env: &mut Env<'_>, mut packet: IngressPacket) -> Vec<Action> {
        let tag = packet.tag;
        env.tracer.resume_packet(tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, tag)];
        }
        let received_bytes = packet.bytes.len() as u64;
        let mut marks = Marks::default();
        let mut state = self.arrival(&mut packet, env.now_ns);
        if let Err(reason) = self.parse(&mut state, &mut marks, env) {
            return vec![Action::stopped(reason, tag)];
        }
        let length_bits = self.groups.header_bits(&self.program, &state.frame);
        for block in [self.blocks.verify_checksum, self.blocks.ingress] {
            if let Outcome::Abort(reason) = self.run(block, &mut state, &mut marks, received_bytes, env) {
                return vec![Action::stopped(reason, tag)];
            }
            if block == self.blocks.verify_checksum {
                set(
                    &mut state.frame,
                    self.fields.checksum_error,
                    marks.checksum_error.into(),
                );
                if marks.checksum_error {
                    calls::note(env, "a checksum is wrong");
                }
            }
        }
        let packet = EgressPacket {
            length: state.bytes.len() as i64,
            length_bits,
            state,
            ingress_port: packet.port,
            received_bytes,
            truncate: marks.truncate,
            recirculate: marks.recirculate.take(),
            handling: Handling::default(),
            passes: packet.passes,
            tag,
        };
        self.end_of_ingress(packet, marks, env)
    }

    fn egress(&self, env: &mut Env<'_>, mut packet: EgressPacket, queue: QueueInfo) -> Vec<Action> {
        let (tag, fields) = (packet.tag, &self.fields);
        env.tracer.resume_packet(tag);
        if packet.passes > MAX_PASSES {
            return vec![Action::drop(DropReason::Loop, None, tag)];
        }
        let frame = &mut packet.state.frame;
        set(frame, fields.egress_global_timestamp, env.now_ns / 1000);
        set(
            frame,
            fields.deq_timedelta,
            (env.now_ns / 1000).saturating_sub(queue.enqueued_ns / 1000),
        );
        set(frame, fields.deq_qdepth, queue.depth);
        set(frame, fields.qid, queue.priority);
        set(frame, fields.egress_port, queue.port.into());
        set(frame, fields.egress_spec, DROP_PORT + 1);
        set(frame, fields.packet_length, u64::try_from(packet.length).unwrap_or(0));
        let mut marks = Marks::default();
        let length = packet.state.bytes.len() as i64;
        let outcome = self.run(
            self.blocks.egress,
            &mut packet.state,
            &mut marks,
            packet.received_bytes,
            env,
        );
        if let Outcome::Abort(reason) = outcome {
            return vec![Action::stopped(reason, tag)];
        }
        packet.length += packet.state.bytes.len() as i64 - length;
        self.end_of_egress(packet, marks, queue.port, env)
    }

    fn fused(&self) -> Result<Fused, NotCompiled> {
        fuse::fuse(self, self.blocks)
    }

    fn fused_call(
        &self,
        env: &mut Env<'_>,
        fused: &Fused,
        call: usize,
        packet: &mut FusedPacket,
        mut arguments: FusedArguments<'_>,
    ) -> bool {
        packet.is_fresh = false;
        let calls = fused.calls.downcast_ref::<Vec<FusedCall>>();
        let Some(what) = calls.and_then(|c| c.get(call)) else {
            return true;
        };
        match what {
            FusedCall::Pseudo(pseudo) => {
                pseudo.perform(env.state, &mut arguments);
                true
            }
            FusedCall::ChecksumError => {
                if let Some(result) = arguments.results.first_mut() {
                    *result = Bits::bool(packet.marks.checksum_error);
                }
                true
            }
            FusedCall::Op(op, loc) => self.runtime(env, packet).operate(op, *loc, arguments),
        }
    }

    fn registered(&self) -> Option<&BoundExterns> {
        Some(&self.registered)
    }

    fn fused_extern<'f>(&self, fused: &'f Fused, call: usize) -> Option<&'f Arc<BoundCall>> {
        match fused.calls.downcast_ref::<Vec<FusedCall>>()?.get(call)? {
            FusedCall::Op(Op::Registered(call), _) => Some(call),
            FusedCall::Op(..) | FusedCall::Pseudo(_) | FusedCall::ChecksumError => None,
        }
    }

    fn fused_hash(&self, state: &State, algorithm: u32, data: &[u8]) -> u64 {
        let found = Algorithm::from_number(algorithm);
        found.map_or(0, |(algorithm, calculation)| {
            hash::compute(algorithm, data, state.custom_crcs.in_effect(calculation))
        })
    }

    fn fused_hit(
        &self,
        env: &mut Env<'_>,
        packet: &mut FusedPacket,
        table: TableId,
        handle: u32,
        keys: &[Bits],
    ) -> Option<(usize, Arc<[Bits]>)> {
        packet.is_fresh = false;
        self.runtime(env, packet).fused_hit(table, handle, keys)
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
        packet.is_fresh = false;
        let received_bytes = packet.received_bytes;
        let mut marks = std::mem::take(&mut packet.marks);
        let mut arrived = IngressPacket::received(port, packet.as_received(bytes), PacketTag::NONE);
        if exit == fuse::exit::PUNT_FROM_START {
            return self.ingress(env, arrived);
        }
        let mut state = self.arrival(&mut arrived, env.now_ns);
        // It was parsed before, with this outcome and its effects.
        let outcome = self.run(
            self.blocks.parser,
            &mut state,
            &mut Marks::default(),
            received_bytes,
            env,
        );
        if let Outcome::Abort(reason) = outcome {
            return vec![Action::stopped(reason, PacketTag::NONE)];
        }
        packet.apply_changes(&mut state, 0, bytes);
        let length_bits = self.groups.header_bits(&self.program, &state.frame);
        let known = self.program.vars.len();
        let mut sent_to = 0;
        for (var, value) in values {
            // Variables of the pipeline alone come after the program's; the port is the only one
            // here.
            if var.index() < known {
                state.frame.set(*var, value.clone());
            } else {
                sent_to = value.to_u64_saturating() as u32;
            }
        }
        let packet = EgressPacket {
            length: bytes.len() as i64,
            length_bits,
            state,
            ingress_port: port,
            received_bytes,
            truncate: marks.truncate,
            recirculate: marks.recirculate.take_if(|_| exit == fuse::exit::PUNT_AFTER_INGRESS),
            handling: Handling::default(),
            passes: 0,
            tag: PacketTag::NONE,
        };
        if exit == fuse::exit::PUNT_AFTER_INGRESS {
            self.end_of_ingress(packet, marks, env)
        } else {
            self.end_of_egress(packet, marks, sent_to, env)
        }
    }

    fn priority(&self, packet: &EgressPacket) -> u64 {
        get(&packet.state.frame, self.fields.priority)
    }

    fn observes_queues(&self) -> bool {
        let fields = &self.fields;
        let queue_measurements = [
            fields.enq_timestamp,
            fields.enq_qdepth,
            fields.deq_timedelta,
            fields.deq_qdepth,
            fields.egress_global_timestamp,
        ];
        let queue_measurements: Vec<VarId> = queue_measurements.into_iter().flatten().collect();
        let priority: Vec<VarId> = fields.priority.into_iter().collect();
        reads_any(&self.program, &queue_measurements) || sets_any(&self.program, &priority)
    }

    fn enqueued(&self, packet: &mut EgressPacket, now_ns: u64, depth: u64) {
        set(&mut packet.state.frame, self.fields.enq_timestamp, now_ns / 1000);
        set(&mut packet.state.frame, self.fields.enq_qdepth, depth);
    }

    fn replica(&self, packet: &EgressPacket, rid: u32) -> EgressPacket {
        let mut replica = packet.clone();
        set(&mut replica.state.frame, self.fields.egress_rid, rid.into());
        replica.recirculate = None;
        replica
    }
}

impl V1Model {
    fn runtime<'a>(&'a self, env: &'a mut Env<'_>, packet: &'a mut FusedPacket) -> V1Runtime<'a> {
        V1Runtime {
            arch: self,
            service: env.service(packet.received_bytes).0,
            marks: &mut packet.marks,
        }
    }

    /// Continues after the egress control.
    fn end_of_egress(&self, packet: EgressPacket, mut marks: Marks, port: u32, env: &mut Env<'_>) -> Vec<Action> {
        let tag = packet.tag;
        let mut actions = Vec::new();
        if let Some(mark) = marks.clone.take() {
            let clone = self.egress_clone(&packet, &mark.keep, env);
            actions.push(Action::Clone {
                session: mark.session,
                packet: clone,
            });
            env.tracer.resume_packet(tag);
        }
        if is_drop(self, &packet.state.frame) {
            marks.digests.drain(..).for_each(|d| env.state.digests.push(d));
            actions.push(self.dropped(DropReason::EgressDrop, tag, env));
        } else {
            actions.push(self.deparse(packet, marks, port, env));
        }
        actions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn egress_spec_at_the_start_of_egress_is_not_the_drop_port() {
        assert_ne!(Bits::new(9, (DROP_PORT + 1).into()).to_u64(), Some(DROP_PORT));
    }
}
