//! Continues packets that waited for an extern, a vector at a time.
#![allow(clippy::vec_box, reason = "jobs move between lists and threads as pointers")]

use super::FastPath;
use super::host::Slots;
use super::onward::Passage;
use super::onward::running::Known;
use super::stage::{HostState, SharedTables, Stage, VectorInputs, VectorOutcome};
use crate::switch::Switch;
use crate::waiting::{AsyncCalls, CallReport, ExternCounts, ExternOptions, Job};
use smallvec::SmallVec;
use std::sync::Arc;
use std::time::Instant;
use weir_arch::{DropReason, FusedExit, Handling};
use weir_jit::{Frame, SavedContext, SimdKernel, VECTOR, cycles};
use weir_lanes::{Lane, Port};

/// [`Stage::resume`] with whatever the processor has.
struct ResumedVector<'a, 'f, 'c> {
    stage: &'a mut Stage,
    shared_tables: SharedTables<'a>,
    vector_inputs: &'a VectorInputs<'a>,
    host_state: HostState<'a>,
    frames: &'a mut [Frame<'f>],
    contexts: &'a [&'c SavedContext],
    initialised: u64,
}

impl SimdKernel for ResumedVector<'_, '_, '_> {
    type Result = VectorOutcome;

    #[inline(always)]
    fn run(self) -> VectorOutcome {
        let contexts = self.contexts.iter().copied();
        self.stage.resume(
            self.shared_tables,
            self.vector_inputs,
            self.host_state,
            self.frames,
            contexts,
            self.initialised,
        )
    }
}

/// The packets of jobs that have slots.
struct Entered {
    is_egress: bool,
    known: Known,
    passages: SmallVec<[Passage; VECTOR]>,
    /// The slots for which the architecture has state.
    initialised: u64,
}

/// Exchanges what a job keeps of its packet with what the slot has.
fn exchange(async_calls: &mut AsyncCalls, stage: &mut Stage, slot: usize, job: &mut Job) {
    if job.has_fused {
        std::mem::swap(&mut job.fused, &mut stage.packets[slot]);
    }
    async_calls.exchange_words(slot, job);
}

impl Switch {
    /// Continues all packets whose calls are done. Their outputs are ready after that.
    pub(crate) fn resume_waiting(&mut self) {
        if self.async_calls.waiting() == 0 || !self.async_calls.poll() {
            return;
        }
        let Some(mut fast) = self.fast.take() else { return };
        fast.sync(&mut self.state);
        loop {
            let mut jobs = std::mem::take(&mut self.async_calls.taken);
            self.async_calls.take_ready(false, &mut jobs);
            if jobs.is_empty() {
                self.async_calls.taken = jobs;
                break;
            }
            self.open_onward(&fast, jobs.len());
            for (of, job) in jobs.iter_mut().enumerate() {
                job.passage.of = of;
            }
            self.resume_jobs(&mut fast, false, jobs);
            self.resume_at_once(&mut fast);
            self.run_onward(&mut fast);
            self.forget_onward();
            self.close_onward();
            if self.has_onward() {
                let mut ready = std::mem::take(&mut self.ready);
                self.take_leaving(&mut ready);
                self.ready = ready;
            }
        }
        self.fast = Some(fast);
    }

    /// Continues packets of this vector whose calls were executed at once. Their outputs take the
    /// place of the packet.
    pub(super) fn resume_at_once(&mut self, fast: &mut FastPath) {
        while self.async_calls.has_at_once() {
            let mut jobs = std::mem::take(&mut self.async_calls.taken);
            self.async_calls.take_ready(true, &mut jobs);
            self.resume_jobs(fast, true, jobs);
        }
    }

    fn resume_jobs(&mut self, fast: &mut FastPath, at_once: bool, mut jobs: Vec<Box<Job>>) {
        let count = self.resume_vector(fast, at_once, &mut jobs);
        // A serial pipeline may have run some of them only.
        self.async_calls.put_back(at_once, jobs.drain(count..));
        self.async_calls.give_back(&mut jobs);
        self.async_calls.taken = jobs;
    }

    /// Continues packets of one suspension point; gives how many. `at_once`: what they send takes
    /// the place of the packet in its vector.
    fn resume_vector(&mut self, fast: &mut FastPath, at_once: bool, jobs: &mut [Box<Job>]) -> usize {
        let is_egress = jobs.first().is_some_and(|job| job.is_egress);
        let (whole, egress, shared_tables) = fast.parts();
        let stage = match (is_egress, egress) {
            (true, Some(egress)) => egress,
            (true, None) => return jobs.len(),
            (false, _) => whole,
        };
        let started = cycles();
        let entered = self.enter_slots(stage, jobs);
        let count = self.run_jobs(stage, shared_tables, &entered, at_once, jobs);
        for (slot, job) in jobs.iter_mut().enumerate().skip(count) {
            exchange(&mut self.async_calls, stage, slot, job);
        }
        // A vector of their own costs most where few continue together. The rest of the program is
        // in it, too, so that the choice leans towards inline by that.
        self.async_calls
            .measure_resumption(cycles().wrapping_sub(started), count);
        count
    }

    /// Gives the slots of a stage what these jobs keep of their packets.
    fn enter_slots(&mut self, stage: &mut Stage, jobs: &mut [Box<Job>]) -> Entered {
        let mut entered = Entered {
            is_egress: false,
            known: Known {
                times: [0; VECTOR],
                ports: [0; VECTOR],
                handling: [Handling::default(); VECTOR],
            },
            passages: SmallVec::new(),
            initialised: 0,
        };
        for (slot, job) in jobs.iter_mut().enumerate() {
            entered.is_egress = job.is_egress;
            entered.passages.push(job.passage);
            entered.known.times[slot] = job.passage.time_ns;
            entered.known.ports[slot] = job.port;
            entered.known.handling[slot] = job.handling;
            stage.lengths[slot] = job.received_bytes;
            entered.initialised |= u64::from(job.has_fused) << slot;
            exchange(&mut self.async_calls, stage, slot, job);
        }
        entered
    }

    /// Runs what follows the calls of these jobs, and lets their packets leave; gives how many.
    fn run_jobs(
        &mut self,
        stage: &mut Stage,
        shared_tables: SharedTables<'_>,
        entered: &Entered,
        at_once: bool,
        jobs: &mut [Box<Job>],
    ) -> usize {
        let Entered {
            is_egress,
            ref known,
            ref passages,
            initialised,
        } = *entered;
        let mut frames = SmallVec::<[Frame<'_>; VECTOR]>::new();
        let mut contexts = SmallVec::<[&SavedContext; VECTOR]>::new();
        for job in jobs.iter_mut() {
            let Some((frame, context)) = job.frame() else {
                unreachable!("a packet that waits has memory")
            };
            frames.push(frame);
            contexts.push(context);
        }
        let arch = Arc::clone(&self.arch);
        let vector_inputs = VectorInputs {
            now_ns: self.now_ns,
            times: Some(&known.times),
            ports: &known.ports,
            handling: &known.handling,
            is_egress,
            first: 0,
            passages: Some(passages),
        };
        let host_state = HostState {
            arch: &*arch,
            state: &mut self.state,
            async_calls: &mut self.async_calls,
        };
        let ran = weir_jit::dispatch_simd(ResumedVector {
            shared_tables,
            vector_inputs: &vector_inputs,
            host_state,
            frames: &mut frames,
            contexts: &contexts,
            initialised,
            stage,
        });
        if !is_egress {
            self.count_first_drops(stage, &passages[..ran.count]);
        }
        let plain = match at_once || is_egress {
            true => None,
            false => self.leave_plainly(stage, &frames, passages, &ran),
        };
        match plain {
            Some(count) => count,
            None => self.leave_all(stage, &mut frames, known, passages, ran, is_egress),
        }
    }

    /// Drops of packets that are at ingress for the first time are counted with their vector.
    fn count_first_drops(&mut self, stage: &Stage, passages: &[Passage]) {
        let first = passages.iter().enumerate().filter(|(_, passage)| !passage.is_reentry);
        let first = first.fold(0u64, |mask, (slot, _)| mask | 1 << slot);
        for (exit, left) in stage.fused.exits.iter().zip(stage.machine.exit_masks()) {
            if let FusedExit::Drop(reason) = exit
                && left & first != 0
            {
                self.stats.dropped_many(*reason, (left & first).count_ones().into());
            }
        }
    }

    /// Of packets that are sent, dropped or waiting again, and nothing else: what leaves is ready,
    /// in their order. Gives how many there were, or `None`: nothing has changed.
    fn leave_plainly(
        &mut self,
        stage: &Stage,
        frames: &[Frame<'_>],
        passages: &[Passage],
        ran: &VectorOutcome,
    ) -> Option<usize> {
        let (mut sent, mut ports, mut dropped) = (0, None, 0);
        for (exit, left) in stage.fused.exits.iter().zip(stage.machine.exit_masks()) {
            match exit {
                _ if *left == 0 => {}
                FusedExit::Transmit(var) if sent == 0 => (sent, ports) = (*left, Some(stage.machine.row(*var))),
                FusedExit::Drop(_) => dropped |= *left,
                _ => return None,
            }
        }
        let is_plain = sent & dropped == 0
            && ran.full == 0
            && ran.logged.is_empty()
            && self.loopback.is_empty()
            && passages[..ran.count].iter().all(|passage| !passage.is_reentry);
        if !is_plain {
            return None;
        }
        let ports = ports.unwrap_or_default();
        let lengths = stage.machine.lengths();
        let (mut to, mut bytes) = (SmallVec::<[u64; VECTOR]>::new(), SmallVec::<[u64; VECTOR]>::new());
        for slot in Slots(sent) {
            to.push(ports[slot]);
            bytes.push(lengths[slot]);
            let output = self
                .onward
                .output(ports[slot] as u32, frames[slot].bytes(), &passages[slot]);
            self.ready.push(output);
        }
        self.stats.sent_all(&to, &bytes);
        Some(ran.count)
    }

    /// Executes `@async` calls of externs by a lane from now on, as far as the options say. Packets
    /// that wait continue in [`Switch::advance`]; [`Switch::next_departure`] is now as long as any
    /// does. Calls of the interpreter are always executed at once, and so are those of compiled
    /// programs without a lane. A clone has no lane.
    ///
    /// `threads` is the lane that the port leads to, which lives as long as the switch then.
    pub fn attach_lane(&mut self, port: Port<Box<Job>>, threads: Option<Arc<Lane<Box<Job>>>>, options: ExternOptions) {
        self.settle_externs();
        self.async_calls.attach(port, threads, options);
    }

    /// Whether the program has calls marked `@async`.
    #[must_use]
    pub fn has_async_calls(&self) -> bool {
        self.async_calls.has_async()
    }

    /// Statistics of calls for which packets may wait.
    #[must_use]
    pub fn extern_counts(&self) -> ExternCounts {
        self.async_calls.counts()
    }

    /// How each call of a registered extern in the program's text is executed, and why.
    pub fn extern_calls(&self) -> impl Iterator<Item = CallReport> + '_ {
        self.async_calls.reports()
    }

    /// The threads of the lane that executes calls of externs.
    #[must_use]
    pub fn lane(&self) -> Option<&Arc<Lane<Box<Job>>>> {
        self.async_calls.threads()
    }

    /// Looks for threads of the externs' lane that have stopped, and counts the packets that were
    /// lost with them. To be called now and then while packets wait.
    pub fn check_externs(&mut self, now: Instant) {
        self.async_calls.check(now);
        let lost = self.async_calls.take_lost();
        if lost > 0 {
            self.stats.dropped_many(DropReason::ExternLost, lost);
        }
    }

    /// Packets that wait for an extern.
    #[must_use]
    pub fn waiting_for_externs(&self) -> usize {
        self.async_calls.waiting()
    }

    /// Waits until no packet waits for an extern any more. Their outputs are ready after that.
    pub fn settle_externs(&mut self) {
        while self.async_calls.waiting() > 0 {
            self.resume_waiting();
            if self.async_calls.waiting() > 0 {
                self.check_externs(Instant::now());
                std::thread::yield_now();
            }
        }
    }
}
