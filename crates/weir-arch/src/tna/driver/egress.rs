//! The egress half of the TNA driver: parser, control and deparser of egress, and transmission.

use super::{DROP_PACKET, Done, Tna};
use crate::calls::note;
use crate::driver::{Action, Architecture, DropReason, EgressPacket, Env, IngressPacket, Origin, QueueInfo};
use crate::fused::FusedPacket;
use crate::tna::fields::{get, set};
use crate::tna::runtime::DeferredCount;
use crate::tna::{headers, transmit};
use weir_interp::{Abort, PacketState, PacketTag};
use weir_ir::{Bits, VarId};

impl Tna {
    /// Runs egress for a packet that is given as bytes.
    pub(super) fn for_egress(&self, bytes: Vec<u8>, port: u32, passes: u32, tag: PacketTag) -> EgressPacket {
        let state = PacketState {
            bytes,
            ..PacketState::default()
        };
        EgressPacket::new(state, port, passes, tag)
    }

    /// The packet as the control of egress gets it.
    fn parse_egress(&self, packet: &EgressPacket, queue: &QueueInfo, env: &mut Env<'_>) -> Result<PacketState, Abort> {
        let (gress, now_ns) = (&self.pipe(queue.port).egress, env.now_ns);
        let frame_check = env.state.frame_check();
        let mut bytes = headers::egress(&self.program, &self.chip, (packet, queue), now_ns, frame_check);
        let front = bytes.len();
        bytes.extend_from_slice(&packet.state.bytes);
        let mut state = self.begin(gress, bytes, now_ns);
        let error = self.parse(gress, queue.port, front, &mut state, env)?;
        headers::fill_egress(gress, &mut state.frame, (packet, queue), now_ns, frame_check);
        set(&mut state.frame, gress.timestamp, now_ns);
        set(&mut state.frame, gress.error, error);
        Ok(state)
    }

    pub(super) fn run_egress(
        &self,
        packet: &EgressPacket,
        queue: QueueInfo,
        env: &mut Env<'_>,
    ) -> Result<Vec<Action>, Abort> {
        let gress = &self.pipe(queue.port).egress;
        let state = self.parse_egress(packet, &queue, env)?;
        let blocks = [gress.control, gress.deparser];
        let done = self.process(gress, &blocks, state, packet.state.bytes.len() as u64, env)?;
        Ok(self.end_of_egress(packet, queue, done, env))
    }

    /// Continues a packet that compiled code punted at the end of the egress control, with these
    /// variables. `packet` is as egress received it; its bytes are now these.
    pub(super) fn resume_egress(
        &self,
        packet: &EgressPacket,
        (known, bytes_now): (&FusedPacket, &[u8]),
        queue: QueueInfo,
        (values, deferred): (&[(VarId, Bits)], Vec<DeferredCount>),
        env: &mut Env<'_>,
    ) -> Result<Vec<Action>, Abort> {
        let gress = &self.pipe(queue.port).egress;
        let parser_errors = env.state.parser_errors.clone();
        let mut state = self.parse_egress(packet, &queue, env)?;
        // It was parsed before.
        env.state.parser_errors = parser_errors;
        let front = state.bytes.len() - packet.state.bytes.len();
        known.apply_changes(&mut state, front, bytes_now);
        let known = self.program.vars.len();
        for (var, value) in values.iter().filter(|(v, _)| v.index() < known) {
            state.frame.set(*var, value.clone());
        }
        let mut done = self.process(gress, &[gress.deparser], state, packet.state.bytes.len() as u64, env)?;
        done.deferred.splice(..0, deferred);
        Ok(self.end_of_egress(packet, queue, done, env))
    }

    /// Does what follows the egress deparser: mirroring, and transmission.
    fn end_of_egress(&self, packet: &EgressPacket, queue: QueueInfo, done: Done, env: &mut Env<'_>) -> Vec<Action> {
        let (pipe, tag, now_ns) = (self.pipe(queue.port), packet.tag, env.now_ns);
        let (gress, came) = (&pipe.egress, &packet.state.bytes);
        let mut actions = Vec::new();
        actions.extend(self.mirror(gress, &done, came, (packet.ingress_port, packet.passes, tag), env));
        if get(&done.state.frame, gress.drop) & DROP_PACKET != 0 {
            let last = gress.drop.and_then(|v| env.tracer.last_write(v));
            actions.push(Action::drop(DropReason::EgressDrop, last, tag));
            return actions;
        }
        let mut sent = done.deparsed;
        for deferred in done.deferred {
            deferred.count(env.state, sent.len() as u64);
        }
        if get(&done.state.frame, pipe.update_delay) != 0 {
            match transmit::update_delay(&mut sent, now_ns) {
                Some(front) => {
                    sent.drain(..front);
                }
                None => note(
                    env,
                    "update_delay_on_tx: the packet is too short for what its first eight bytes say",
                ),
            }
        }
        actions.push(self.send(sent, packet, queue.port, env));
        actions
    }

    /// Out of a port, or back to ingress from one of recirculation.
    pub(super) fn send(&self, bytes: Vec<u8>, packet: &EgressPacket, port: u32, env: &mut Env<'_>) -> Action {
        if !self.is_internal(port) {
            return Action::Transmit {
                port,
                bytes,
                tag: packet.tag,
            };
        }
        if let Some(generators) = &mut env.state.generators {
            generators.recirculated(port, &bytes, env.now_ns);
        }
        Action::Ingress(IngressPacket {
            port,
            bytes,
            origin: Origin::Recirculated,
            is_generated: false,
            preserved: Vec::new(),
            passes: packet.passes + 1,
            tag: env.tracer.begin_packet(packet.tag, "recirculated packet"),
        })
    }
}
