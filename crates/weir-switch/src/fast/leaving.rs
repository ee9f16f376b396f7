//! Vectors of packets that come in, and what becomes of each by the exit it leaves by.

use super::host::Slots;
use super::onward::Passage;
use super::stage::{HostState, Stage, VectorInputs, VectorOutcome};
use super::{FastPath, Verdict};
use crate::switch::{Context, Switch};
use std::sync::Arc;
use weir_arch::{Action, Defaults, DropReason, Env, FusedExit, LogMessage};
use weir_interp::NoTrace;
use weir_ir::{Bits, VarId};
use weir_jit::{Frame, SimdKernel, VECTOR};

/// [`Switch::run_vector`], and what it needs.
pub(super) struct Vector<'a, 'f> {
    pub switch: &'a mut Switch,
    pub fast: &'a mut FastPath,
    pub first: usize,
    pub ports: &'a [u32],
    pub frames: &'a mut [Frame<'f>],
}

impl SimdKernel for Vector<'_, '_> {
    type Result = usize;

    #[inline(always)]
    fn run(self) -> usize {
        self.switch.run_vector(self.fast, self.first, self.ports, self.frames)
    }
}

/// Packets of a vector that the driver takes over.
struct UnfinishedPackets {
    slots: u64,
    /// The slots for which the architecture has state.
    initialised: u64,
    /// Log messages of all packets, with their slots.
    logged: Vec<(usize, LogMessage)>,
}

impl Switch {
    /// Of packets one of which is too long: runs the first, or drops it.
    #[cold]
    fn run_first(&mut self, fast: &mut FastPath, at: usize, ports: &[u32], frames: &mut [Frame<'_>]) -> usize {
        let length = frames[0].length();
        if length <= self.config.max_packet_bytes {
            return self.run_vector(fast, at, &ports[..1], &mut frames[..1]);
        }
        self.stats.received(ports[0], length);
        self.stats.dropped(DropReason::TooLong, None);
        self.verdicts[at] = Verdict::Gone;
        1
    }

    /// Runs packets whose verdicts are those from `first` on; gives how many.
    #[inline(always)]
    fn run_vector(&mut self, fast: &mut FastPath, first: usize, ports: &[u32], frames: &mut [Frame<'_>]) -> usize {
        fast.sync(&mut self.state);
        let vector_inputs = VectorInputs {
            now_ns: self.now_ns,
            times: None,
            ports,
            handling: &[],
            is_egress: false,
            first,
            passages: None,
        };
        let (stage, _, shared_tables) = fast.parts();
        let host_state = HostState {
            arch: &*self.arch,
            state: &mut self.state,
            async_calls: &mut self.async_calls,
        };
        let longest = self.config.max_packet_bytes as u64;
        let Some(ran) = stage.run(shared_tables, &vector_inputs, host_state, frames, longest) else {
            return self.run_first(fast, first, ports, frames);
        };
        let VectorOutcome {
            count,
            initialised,
            logged,
            full,
        } = ran;
        if full > 0 {
            self.stats.dropped_many(DropReason::ExternFull, full);
        }
        let (mut continuing, mut transmitted, all) = (0, 0, u64::MAX >> (64 - count));
        let (ports, received_lengths) = (&ports[..count], &fast.main_stage.lengths[..count]);
        let mut are_counted = false;
        let verdicts = &mut self.verdicts[first..first + count];
        let (mut reentering, mut queued) = (0, 0);
        for (exit, left) in fast
            .main_stage
            .fused
            .exits
            .iter()
            .zip(fast.main_stage.machine.exit_masks())
        {
            let left = *left;
            match exit {
                _ if left == 0 => {}
                FusedExit::Transmit(_) | FusedExit::StampAndTransmit(_) if !self.loopback.is_empty() => {
                    reentering |= left
                }
                FusedExit::Transmit(var) => {
                    let (out, lengths) = (fast.main_stage.machine.row(*var), fast.main_stage.machine.lengths());
                    transmitted |= left;
                    if left == all {
                        for (verdict, port) in verdicts.iter_mut().zip(out) {
                            *verdict = Verdict::Transmit(*port as u32);
                        }
                        self.stats
                            .passed_all(ports, received_lengths, &out[..count], &lengths[..count]);
                        are_counted = true;
                    } else {
                        let (mut sent, mut bytes, mut some) = ([0; VECTOR], [0; VECTOR], 0);
                        for slot in Slots(left) {
                            (sent[some], bytes[some]) = (out[slot], lengths[slot]);
                            verdicts[slot] = Verdict::Transmit(out[slot] as u32);
                            some += 1;
                        }
                        self.stats.sent_all(&sent[..some], &bytes[..some]);
                    }
                }
                FusedExit::StampAndTransmit(var) => {
                    let (now_ns, out) = (self.now_ns, fast.main_stage.machine.row(*var));
                    transmitted |= left;
                    for slot in Slots(left) {
                        let frame = &mut frames[slot];
                        let front = self.arch.fused_stamp(frame.bytes_mut(), now_ns);
                        frame.skip(front);
                        verdicts[slot] = Verdict::Transmit(out[slot] as u32);
                        self.stats.sent_all(&out[slot..=slot], &[frame.length() as u64]);
                    }
                }
                FusedExit::Drop(reason) => self.stats.dropped_many(*reason, left.count_ones().into()),
                FusedExit::Recirculate(_) => reentering |= left,
                FusedExit::Queue => queued |= left,
                FusedExit::Punt { .. } => continuing |= left,
            }
        }
        if !are_counted {
            self.stats.received_all(ports, received_lengths);
        }
        for slot in Slots(all & !transmitted) {
            verdicts[slot] = Verdict::Gone;
        }
        if continuing | reentering | queued != 0 || !logged.is_empty() {
            let packets = UnfinishedPackets {
                slots: continuing | reentering | queued,
                initialised,
                logged,
            };
            self.continue_all(fast, first, packets, ports, frames);
        }
        count
    }

    /// Continues unfinished packets, and appends messages to the log, in the order of the packets.
    #[cold]
    fn continue_all(
        &mut self,
        fast: &mut FastPath,
        first: usize,
        packets: UnfinishedPackets,
        ports: &[u32],
        frames: &mut [Frame<'_>],
    ) {
        let UnfinishedPackets {
            slots,
            initialised,
            mut logged,
        } = packets;
        logged.sort_by_key(|(slot, _)| *slot);
        let mut logged = logged.into_iter().peekable();
        for slot in Slots(slots) {
            while let Some((of, message)) = logged.next_if(|(of, _)| *of <= slot) {
                self.state.log.push(message);
                self.messages_of(first + of);
            }
            if initialised >> slot & 1 == 0 {
                fast.main_stage.packets[slot].begin(fast.main_stage.lengths[slot] as usize);
            }
            let passage = Passage {
                of: first + slot,
                time_ns: self.now_ns,
                passes: 0,
                ingress_port: ports[slot],
                is_reentry: false,
                generated_bytes: 0,
            };
            let ready = self.ready.len();
            let sent = self.leave(&mut fast.main_stage, slot, &mut frames[slot], &passage);
            if let Some(port) = sent {
                self.messages_of(passage.of);
                self.verdicts[first + slot] = Verdict::Transmit(port);
                continue;
            }
            self.drain_unlimited_queues();
            self.messages_of(passage.of);
            self.verdicts[first + slot] = self.copies_since(ready);
        }
        for (of, message) in logged {
            self.state.log.push(message);
            self.messages_of(first + of);
        }
    }

    /// Handles a packet that has left the main stage by its exit. Returns the port, if the packet
    /// is to be sent with the bytes that its frame has.
    pub(super) fn leave(
        &mut self,
        stage: &mut Stage,
        slot: usize,
        frame: &mut Frame<'_>,
        passage: &Passage,
    ) -> Option<u32> {
        let exits: Vec<(u32, FusedExit)> = stage.exits_of(slot).collect();
        let mut sent = None;
        // For reentering packets the run of egress was charged before.
        let ran = u64::from(!passage.is_reentry);
        for (number, exit) in exits {
            match exit {
                FusedExit::Transmit(port) | FusedExit::StampAndTransmit(port) => {
                    let port = stage.machine.narrow_value(slot, port) as u32;
                    if matches!(exit, FusedExit::StampAndTransmit(_)) {
                        let front = self.arch.fused_stamp(frame.bytes_mut(), passage.time_ns);
                        frame.skip(front);
                    }
                    self.work_onward(passage.of, ran);
                    sent = self.leave_by(port, frame.bytes(), passage);
                }
                FusedExit::Recirculate(port) => {
                    let port = stage.machine.narrow_value(slot, port) as u32;
                    self.work_onward(passage.of, ran);
                    self.recirculate(port, frame.bytes(), passage);
                }
                FusedExit::Queue => {
                    self.refund_egress_run(passage);
                    self.queue(stage, slot, frame.bytes(), passage);
                }
                FusedExit::Drop(reason) => {
                    if passage.is_reentry {
                        self.stats.dropped(reason, None);
                        if reason != DropReason::EgressDrop {
                            self.refund(passage.of);
                        }
                    }
                }
                FusedExit::Punt { after_egress } => {
                    self.refund_egress_run(passage);
                    let values = values_of(stage, number, slot);
                    stage.packets[slot].passes = passage.passes;
                    stage.packets[slot].is_generated = passage.generated_bytes > 0;
                    self.drive(stage, slot, frame.bytes(), (number, after_egress), passage, &values);
                }
            }
        }
        sent
    }

    /// Refunds the run of egress that was charged to a reentering packet, and was not executed.
    fn refund_egress_run(&mut self, passage: &Passage) {
        if passage.is_reentry {
            self.refund(passage.of);
        }
    }

    /// The driver takes over a packet.
    fn drive(
        &mut self,
        stage: &mut Stage,
        slot: usize,
        bytes: &[u8],
        (exit, after_egress): (u32, bool),
        passage: &Passage,
        values: &[(VarId, Bits)],
    ) {
        self.allow_work_onward(passage, after_egress);
        self.set_onward(passage);
        let arch = Arc::clone(&self.arch);
        let mut env = Env {
            state: &mut self.state,
            now_ns: passage.time_ns,
            choices: &mut Defaults,
            tracer: &mut NoTrace,
        };
        let actions = arch.fused_exit(
            &mut env,
            exit,
            &mut stage.packets[slot],
            passage.ingress_port,
            bytes,
            values,
        );
        self.carry_out(actions);
    }

    /// Does what the driver has decided for a packet, then runs what waits for ingress.
    pub(super) fn carry_out(&mut self, actions: impl IntoIterator<Item = Action>) {
        let mut context = Context {
            choices: &mut Defaults,
            tracer: &mut NoTrace,
        };
        for action in actions {
            if let Some(output) = self.act(action, &mut context) {
                self.ready.push(output);
            }
        }
        self.run_ingress(&mut context);
    }
}

/// The variables that an exit hands over, of a packet that has left by it.
pub(super) fn values_of(stage: &Stage, exit: u32, slot: usize) -> Vec<(VarId, Bits)> {
    let vars = stage.machine.exit_values(exit);
    vars.map(|v| (v, stage.machine.value(slot, v))).collect()
}
