//! Vectors of packets that go on, and what becomes of each.

use super::super::host::Slots;
use super::super::leaving::values_of;
use super::super::stage::{HostState, SharedTables, Stage, VectorInputs, VectorOutcome};
use super::super::{FastPath, Verdict};
use super::{Packet, Passage};
use crate::switch::{Context, Output, Switch};
use smallvec::SmallVec;
use std::sync::Arc;
use weir_arch::{Defaults, DropReason, EgressPacket, Env, Exclusion, FusedExit, Handling, IngressPacket, QueueInfo};
use weir_interp::{NoTrace, PacketState, PacketTag};
use weir_jit::{Frame, SimdKernel, VECTOR};

/// [`Stage::run`] with whatever the processor has.
struct OnwardVector<'a, 'f> {
    stage: &'a mut Stage,
    shared_tables: SharedTables<'a>,
    vector_inputs: VectorInputs<'a>,
    host_state: HostState<'a>,
    frames: &'a mut [Frame<'f>],
}

impl SimdKernel for OnwardVector<'_, '_> {
    type Result = Option<VectorOutcome>;

    #[inline(always)]
    fn run(self) -> Option<VectorOutcome> {
        self.stage.run(
            self.shared_tables,
            &self.vector_inputs,
            self.host_state,
            self.frames,
            u64::MAX,
        )
    }
}

/// The inputs of a vector's packets.
pub(in crate::fast) struct Known {
    pub times: [u64; VECTOR],
    pub ports: [u32; VECTOR],
    pub handling: [Handling; VECTOR],
}

impl Known {
    fn of(packets: &[Packet]) -> Self {
        let mut known = Known {
            times: [0; VECTOR],
            ports: [0; VECTOR],
            handling: [Handling::default(); VECTOR],
        };
        for (slot, packet) in packets.iter().enumerate().take(VECTOR) {
            known.times[slot] = packet.passage.time_ns;
            known.ports[slot] = packet.port;
            known.handling[slot] = packet.handling;
        }
        known
    }
}

impl Switch {
    /// Starts the compiled continuation of packets that would wait, until [`Switch::close_onward`].
    /// `packets` is the
    /// size of the vector that was received.
    #[inline]
    pub(in crate::fast) fn open_onward(&mut self, fast: &FastPath, packets: usize) {
        let onward = &mut self.onward;
        onward.is_open = true;
        onward.has_egress = fast.egress.is_some();
        onward.recirculates = fast.main_stage.fused.recirculates;
        onward.headroom = fast.headroom;
        onward.limit = self.config.work_limit.into();
        if onward.waits.len() < packets {
            onward.waits.resize(packets, 0);
            onward.spent.resize(packets, 0);
        }
    }

    #[inline]
    pub(in crate::fast) fn close_onward(&mut self) {
        self.onward.is_open = false;
    }

    /// The packets that were received are done.
    pub(in crate::fast) fn forget_onward(&mut self) {
        self.onward.spent.fill(0);
        self.onward.now = Passage::default();
    }

    #[inline]
    pub(in crate::fast) fn has_onward(&self) -> bool {
        let onward = &self.onward;
        !(onward.ingress.is_empty() && onward.egress.is_empty() && onward.leaving.is_empty())
    }

    /// The driver has a packet.
    pub(in crate::fast) fn set_onward(&mut self, passage: &Passage) {
        self.onward.now = *passage;
    }

    /// Egress has been run so often for what came of a packet.
    pub(in crate::fast) fn work_onward(&mut self, of: usize, runs: u64) {
        if let Some(spent) = self.onward.spent.get_mut(of) {
            *spent = spent.saturating_add(runs);
        }
    }

    /// The same, of the packet that the driver has.
    pub(in crate::fast) fn work_of_driver(&mut self, runs: u64) {
        if self.onward.is_open && runs > 0 {
            self.work_onward(self.onward.now.of, runs);
        }
    }

    /// How often egress may still be run for what came of a packet.
    fn work_left(&self, of: usize) -> u64 {
        let spent = self.onward.spent.get(of).copied().unwrap_or(0);
        self.onward.limit.saturating_sub(spent)
    }

    /// The driver may do so much for the packet that it has.
    pub(in crate::fast) fn allow_work_onward(&mut self, passage: &Passage, after_egress: bool) {
        match passage.is_reentry {
            true => self.work = self.work_left(passage.of),
            false => self.allow_work(),
        }
        self.work = self.work.saturating_sub(after_egress.into());
    }

    /// A port sends a packet: gives it if the packet leaves there, and does not come in again.
    pub(in crate::fast) fn leave_by(&mut self, port: u32, bytes: &[u8], passage: &Passage) -> Option<u32> {
        self.stats.sent(port, bytes.len());
        if !self.is_loopback(port) {
            return Some(port);
        }
        self.stats.received(port, bytes.len());
        self.onward.push_ingress(port, 0, bytes, passage);
        None
    }

    /// A port of the architecture's own has a packet.
    pub(in crate::fast) fn recirculate(&mut self, port: u32, bytes: &[u8], passage: &Passage) {
        if let Some(generators) = &mut self.state.generators {
            generators.recirculated(port, bytes, passage.time_ns);
        }
        self.onward.push_ingress(port, passage.passes + 1, bytes, passage);
    }

    /// The traffic manager has a packet of ingress.
    pub(in crate::fast) fn queue(&mut self, stage: &Stage, slot: usize, bytes: &[u8], passage: &Passage) {
        let Some(queueing) = stage.fused.queueing else { return };
        let value = |var| stage.machine.narrow_value(slot, var) as u32;
        let handling = Handling {
            bypasses_egress: value(queueing.bypasses) != 0,
            deflect: value(queueing.deflects) != 0,
            queue: value(queueing.queue),
            class: value(queueing.class),
            rid: value(queueing.rid),
            generated_bytes: passage.generated_bytes,
            ..Handling::default()
        };
        let exclusion = Exclusion {
            node: value(queueing.exclude_node),
            rid: handling.rid,
            ports: value(queueing.exclude_ports),
        };
        for group in queueing.groups.map(value).into_iter().filter(|group| *group != 0) {
            self.queue_copies(group, &exclusion, handling, bytes, passage);
        }
        let port = value(queueing.port);
        if u64::from(port) != queueing.no_port {
            self.enqueue_onward(port, handling, bytes, passage);
        }
    }

    fn queue_copies(&mut self, group: u32, exclusion: &Exclusion, handling: Handling, bytes: &[u8], passage: &Passage) {
        let replicas = self.replication.replicas_except(group, Some(exclusion));
        let replicas = replicas.unwrap_or_default();
        if replicas.is_empty() {
            self.stats.dropped(DropReason::EmptyGroup, None);
        }
        for (number, replica) in replicas.into_iter().enumerate() {
            let copy = Handling {
                rid: replica.rid,
                is_first_copy: number == 0,
                ..handling
            };
            self.enqueue_onward(replica.port, copy, bytes, passage);
        }
    }

    /// Puts a packet in the queue of a port. Before each packet that is received queues are empty,
    /// but what comes of one fills
    /// them.
    fn enqueue_onward(&mut self, port: u32, mut handling: Handling, bytes: &[u8], passage: &Passage) {
        if self.onward.waits_of(passage.of) >= self.queues.least_capacity()
            && self.onward.waits_at(passage.of, port, handling.queue) >= self.queues.capacity(port)
        {
            match self.deflection {
                Some(elsewhere) if handling.deflect && !handling.is_deflected => {
                    handling.is_deflected = true;
                    self.enqueue_onward(elsewhere, handling, bytes, passage);
                }
                _ => self.stats.dropped(DropReason::QueueFull, None),
            }
            return;
        }
        self.onward.push_egress(port, handling, bytes, passage);
    }

    /// A packet of the driver's for a port's queue.
    pub(crate) fn enqueue_of_driver(&mut self, port: u32, packet: &EgressPacket) {
        let passage = Passage {
            passes: packet.passes,
            ingress_port: packet.ingress_port,
            ..self.onward.now
        };
        self.enqueue_onward(port, packet.handling, &packet.state.bytes, &passage);
    }

    /// Runs the packets that wait until none does.
    pub(in crate::fast) fn run_onward(&mut self, fast: &mut FastPath) {
        loop {
            if !self.onward.egress.is_empty() {
                self.run_egress(fast);
            } else if !self.onward.ingress.is_empty() {
                self.run_again(fast);
            } else {
                return;
            }
        }
    }

    /// Runs the continuations of the forwarded packets to their end, and records what became of
    /// them in their verdicts.
    /// `before` is the number of packets that were in the output list already.
    #[cold]
    pub(in crate::fast) fn finish_onward(&mut self, fast: &mut FastPath, before: usize) {
        self.run_onward(fast);
        self.forget_onward();
        let mut leaving = std::mem::take(&mut self.onward.leaving);
        let mut ready = self.ready.split_off(before).into_iter();
        for (of, verdict) in self.verdicts.iter_mut().enumerate() {
            if let Verdict::Copies(count) = *verdict {
                let copies = ready.by_ref().take(count as usize);
                leaving.extend(copies.map(|output| (of, output)));
                *verdict = Verdict::Gone;
            }
        }
        leaving.sort_by_key(|(of, _)| *of);
        for (of, output) in leaving.drain(..) {
            match self.verdicts.get_mut(of) {
                Some(Verdict::Copies(count)) => *count += 1,
                Some(verdict) => *verdict = Verdict::Copies(1),
                None => {}
            }
            self.ready.push(output);
        }
        self.onward.leaving = leaving;
    }

    /// A vector of packets from one of the queues, for each of which egress may run once; those
    /// that have gone round too often are
    /// dropped.
    fn next_vector(&mut self, is_egress: bool) -> Vec<Packet> {
        let mut packets = Vec::with_capacity(VECTOR);
        while packets.len() < VECTOR {
            let Some(packet) = self.onward.pop(is_egress, packets.len()) else {
                break;
            };
            if packet.passage.passes > self.arch.max_passes() {
                self.stats.dropped(DropReason::Loop, None);
                self.onward.keep(packet.memory);
                continue;
            }
            if self.work_left(packet.passage.of) == 0 {
                match is_egress {
                    true => self.stats.dropped(DropReason::Loop, None),
                    false => self.refuse(&packet),
                }
                self.onward.keep(packet.memory);
                continue;
            }
            self.work_onward(packet.passage.of, 1);
            let is_alone = packet.handling.bypasses_egress;
            packets.push(packet);
            if is_alone {
                break;
            }
        }
        packets
    }

    /// Runs a vector of egress.
    fn run_egress(&mut self, fast: &mut FastPath) {
        let (_, Some(stage), shared_tables) = fast.parts() else {
            self.onward.clear_egress();
            return;
        };
        let mut packets = self.next_vector(true);
        if let [packet] = packets.as_mut_slice()
            && packet.handling.bypasses_egress
        {
            self.bypass(packet);
        } else if !packets.is_empty() {
            let known = Known::of(&packets);
            let ran = self.run_packets(stage, shared_tables, &known, &mut packets, true);
            self.give_back(packets, ran, true);
            return;
        }
        self.give_back(packets, VECTOR, true);
    }

    /// Sends what bypasses egress.
    fn bypass(&mut self, packet: &Packet) {
        let (passage, port) = (packet.passage, packet.port);
        let bytes = &packet.memory[self.onward.headroom..][..packet.length];
        if self.arch.is_internal(port) {
            self.recirculate(port, bytes, &passage);
        } else if let Some(port) = self.leave_by(port, bytes, &passage) {
            self.onward.send(port, bytes, &passage);
        }
    }

    /// Runs a vector of packets that are at ingress again.
    fn run_again(&mut self, fast: &mut FastPath) {
        let (stage, _, shared_tables) = fast.parts();
        let mut packets = self.next_vector(false);
        if packets.is_empty() {
            return;
        }
        let known = Known::of(&packets);
        let ran = self.run_packets(stage, shared_tables, &known, &mut packets, false);
        self.give_back(packets, ran, false);
    }

    /// Memory of packets that were run is kept, those that were not are the next.
    fn give_back(&mut self, packets: Vec<Packet>, ran: usize, is_egress: bool) {
        let mut packets = packets.into_iter();
        packets
            .by_ref()
            .take(ran)
            .for_each(|packet| self.onward.keep(packet.memory));
        for packet in packets.rev() {
            self.refund(packet.passage.of);
            match is_egress {
                true => self.onward.put_back(packet),
                false => self.onward.ingress.push_front(packet),
            }
        }
    }

    /// A packet is at ingress for which egress may not be run any more: it gets as far as a queue.
    #[cold]
    fn refuse(&mut self, packet: &Packet) {
        self.onward.is_open = false;
        let bytes = packet.memory[self.onward.headroom..][..packet.length].to_vec();
        self.add_waiting(IngressPacket {
            passes: packet.passage.passes,
            ..IngressPacket::received(packet.port, bytes, PacketTag::NONE)
        });
        self.work = 0;
        self.run_ingress(&mut Context {
            choices: &mut Defaults,
            tracer: &mut NoTrace,
        });
        self.drain_unlimited_queues();
        self.onward.is_open = true;
    }

    /// Egress has not been run after all, which was said to be.
    pub(in crate::fast) fn refund(&mut self, of: usize) {
        if let Some(spent) = self.onward.spent.get_mut(of) {
            *spent = spent.saturating_sub(1);
        }
    }

    /// Runs packets through a stage, and what becomes of each; gives how many.
    fn run_packets(
        &mut self,
        stage: &mut Stage,
        shared_tables: SharedTables<'_>,
        known: &Known,
        packets: &mut [Packet],
        is_egress: bool,
    ) -> usize {
        let headroom = self.onward.headroom;
        let many = packets.len();
        let passages: SmallVec<[Passage; VECTOR]> = packets.iter().map(|p| p.passage).collect();
        let frames = packets.iter_mut();
        let mut frames: SmallVec<[Frame<'_>; VECTOR]> = frames
            .filter_map(|p| Frame::new(&mut p.memory, headroom, p.length))
            .collect();
        let arch = Arc::clone(&self.arch);
        let ran = weir_jit::dispatch_simd(OnwardVector {
            shared_tables,
            vector_inputs: VectorInputs {
                now_ns: self.now_ns,
                times: Some(&known.times),
                ports: &known.ports,
                handling: &known.handling,
                is_egress,
                first: 0,
                passages: Some(&passages),
            },
            host_state: HostState {
                arch: &*arch,
                state: &mut self.state,
                async_calls: &mut self.async_calls,
            },
            frames: &mut frames,
            stage,
        });
        let Some(ran) = ran else { return many };
        self.leave_all(stage, &mut frames, known, &passages, ran, is_egress)
    }

    /// What becomes of the packets of a vector that was run; gives how many were.
    pub(in crate::fast) fn leave_all(
        &mut self,
        stage: &mut Stage,
        frames: &mut [Frame<'_>],
        known: &Known,
        passages: &[Passage],
        ran: VectorOutcome,
        is_egress: bool,
    ) -> usize {
        let VectorOutcome {
            count,
            initialised,
            mut logged,
            full,
        } = ran;
        if full > 0 {
            self.stats.dropped_many(DropReason::ExternFull, full);
        }
        logged.sort_by_key(|(slot, _)| *slot);
        let mut logged = logged.into_iter().peekable();
        let all = u64::MAX >> (VECTOR - count.clamp(1, VECTOR));
        for slot in Slots(all) {
            while let Some((of, message)) = logged.next_if(|(of, _)| *of <= slot) {
                self.state.log.push(message);
                self.messages_of(passages[of].of);
            }
            let (frame, passage) = (&mut frames[slot], &passages[slot]);
            if initialised >> slot & 1 == 0 {
                stage.packets[slot].begin(stage.lengths[slot] as usize);
            }
            let now_ns = std::mem::replace(&mut self.now_ns, passage.time_ns);
            let before = self.ready.len();
            match is_egress {
                true => self.leave_egress(stage, slot, frame, known, passage),
                false => {
                    if let Some(port) = self.leave(stage, slot, frame, passage) {
                        self.onward.send(port, frame.bytes(), passage);
                    }
                    self.drain_unlimited_queues();
                }
            }
            self.messages_of(passage.of);
            self.now_ns = now_ns.max(self.now_ns);
            let ready = self.ready.drain(before..);
            self.onward.leaving.extend(ready.map(|output| (passage.of, output)));
        }
        count
    }

    /// Handles a packet that has left egress.
    fn leave_egress(
        &mut self,
        stage: &mut Stage,
        slot: usize,
        frame: &mut Frame<'_>,
        known: &Known,
        passage: &Passage,
    ) {
        let exits: SmallVec<[(u32, FusedExit); 1]> = stage.exits_of(slot).collect();
        for (number, exit) in exits {
            match exit {
                FusedExit::Transmit(_) | FusedExit::StampAndTransmit(_) => {
                    self.sent(stage, slot, frame);
                    if matches!(exit, FusedExit::StampAndTransmit(_)) {
                        let front = self.arch.fused_stamp(frame.bytes_mut(), passage.time_ns);
                        frame.skip(front);
                    }
                    if let Some(port) = self.leave_by(known.ports[slot], frame.bytes(), passage) {
                        self.onward.send(port, frame.bytes(), passage);
                    }
                }
                FusedExit::Recirculate(_) => {
                    self.sent(stage, slot, frame);
                    self.recirculate(known.ports[slot], frame.bytes(), passage);
                }
                FusedExit::Drop(reason) => self.stats.dropped(reason, None),
                // Egress is after the traffic manager.
                FusedExit::Queue => {}
                FusedExit::Punt { .. } => self.drive_egress(stage, slot, frame.bytes(), number, known, passage),
            }
        }
    }

    /// Egress has made of a packet what is sent.
    fn sent(&mut self, stage: &mut Stage, slot: usize, frame: &Frame<'_>) {
        let bytes = frame.bytes().len() as u64;
        let arch = Arc::clone(&self.arch);
        arch.fused_sent(&mut self.state, &mut stage.packets[slot], bytes);
    }

    /// The driver takes over a packet at the end of egress.
    fn drive_egress(
        &mut self,
        stage: &mut Stage,
        slot: usize,
        bytes: &[u8],
        exit: u32,
        known: &Known,
        passage: &Passage,
    ) {
        self.set_onward(passage);
        let values = values_of(stage, exit, slot);
        let state = PacketState {
            bytes: bytes.to_vec(),
            ..PacketState::default()
        };
        let mut packet = EgressPacket::new(state, passage.ingress_port, passage.passes, PacketTag::NONE);
        packet.handling = known.handling[slot];
        let queue = QueueInfo {
            port: known.ports[slot],
            enqueued_ns: passage.time_ns,
            depth: 0,
            priority: self.arch.priority(&packet),
        };
        let arch = Arc::clone(&self.arch);
        let mut env = Env {
            state: &mut self.state,
            now_ns: passage.time_ns,
            choices: &mut Defaults,
            tracer: &mut NoTrace,
        };
        let actions = arch.fused_egress_exit(&mut env, exit, &mut stage.packets[slot], packet, queue, &values);
        self.carry_out(actions);
    }

    /// Runs packets that were not received but made, each at its port and its time; what leaves is
    /// in their order.
    pub(crate) fn run_made(&mut self, made: Vec<weir_arch::Generated>, out: &mut Vec<Output>) {
        let Some(mut fast) = self.fast.take() else { return };
        fast.sync(&mut self.state);
        self.open_onward(&fast, made.len());
        for (of, packet) in made.into_iter().enumerate() {
            self.now_ns = self.now_ns.max(packet.time_ns);
            let passage = Passage {
                of,
                time_ns: self.now_ns,
                passes: 0,
                ingress_port: packet.port,
                is_reentry: true,
                generated_bytes: 0,
            };
            self.stats.received(packet.port, packet.bytes.len());
            self.onward.push_generated(packet.port, &packet.bytes, &passage);
        }
        self.run_onward(&mut fast);
        self.forget_onward();
        self.close_onward();
        self.fast = Some(fast);
        self.take_leaving(out);
    }

    /// Moves outputs to `out`, in the order of the received packets from which they stem.
    pub(in crate::fast) fn take_leaving(&mut self, out: &mut Vec<Output>) {
        let mut leaving = std::mem::take(&mut self.onward.leaving);
        leaving.sort_by_key(|(of, _)| *of);
        out.extend(leaving.drain(..).map(|(_, output)| output));
        self.onward.leaving = leaving;
    }
}
