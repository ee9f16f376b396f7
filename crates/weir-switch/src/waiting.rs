//! Packets that wait for externs, outside of any vector.
//!
//! A call for which a packet may wait is begun by compiled code ([`AsyncCalls::begin`]). It is
//! executed at once, or the packet leaves the vector in a [`Job`] and compiled code continues
//! with the other packets. Jobs are executed by a lane of weir-lanes, and come back here; then
//! `fast/resume.rs` continues their packets.
//!
//! Nothing is allocated per packet once the pool is filled, but for packets longer than
//! 2 KB.
#![allow(clippy::vec_box, reason = "jobs move between lists and threads as pointers")]

mod choice;
mod flow;
mod job;

pub use choice::{CallCause, CallReport, ExternMode};
pub use job::{Job, JobService};

use crate::fast::Passage;
use choice::Site;
pub(crate) use flow::flow_of;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use weir_arch::{BoundCall, BoundExterns, FusedPacket, Handling};
use weir_extern_api::Outcome;
use weir_ir::{AsyncCall, CompletionOrder, Execution, WhenFull};
use weir_jit::{Suspended, VECTOR, cycles};
use weir_lanes::{Choice, Lane, Order, Pool, Port, Sequencer, Ticket};

/// The most packets that keep their order, per packet that the lane takes.
const TICKETS: usize = 4;

/// How calls of externs are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExternOptions {
    /// Inline, handed over to the lane, or by measured cost.
    pub mode: ExternMode,
    /// The handling of packets when the lane is full, unless the program specifies it.
    pub full: WhenFull,
    /// The most packets that wait at the same time.
    pub depth: usize,
}

impl Default for ExternOptions {
    /// By measured cost; inline when the lane is full; 1024 packets.
    fn default() -> Self {
        ExternOptions {
            mode: ExternMode::Auto,
            full: WhenFull::Inline,
            depth: 1024,
        }
    }
}

/// Statistics of calls of externs for which packets may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExternCounts {
    /// Executed at once.
    pub inline: u64,
    /// Handed over to the lane.
    pub handed_over: u64,
    /// Packets that continued after they had waited.
    pub resumed: u64,
    /// Packets that were dropped because the lane was full.
    pub full: u64,
    /// Packets that were lost with a lane's thread.
    pub lost: u64,
}

/// The outcome of a call's start.
enum Decision {
    /// It is executed in the vector.
    Inline,
    /// It is executed at once, but its packet leaves the vector: for room, or to keep the order.
    AtOnce(Box<Job>),
    HandOver(Box<Job>),
    Drop,
}

/// A call that was begun, of one slot.
#[derive(Debug, Default)]
struct Begun {
    words: Vec<u64>,
    outcome: Outcome,
}

/// The calls of externs of one switch.
pub(crate) struct AsyncCalls {
    options: ExternOptions,
    /// A mutex only so that a switch may be shared: nothing locks it.
    lane: Mutex<Option<Port<Box<Job>>>>,
    has_lane: bool,
    /// The threads behind the port: they end with the last switch that has them.
    threads: Option<Arc<Lane<Box<Job>>>>,
    pool: Pool<Job>,
    sequencer: Sequencer<Box<Job>>,
    sites: Vec<Site>,
    /// By slot: the call that it has begun.
    begun: Vec<Begun>,
    /// By slot: the job of a packet that is about to wait.
    leaving: Vec<Option<Box<Job>>>,
    /// Those of them that keep an order.
    leaving_in_order: usize,
    /// Jobs that were executed, as they came back.
    executed: Vec<Box<Job>>,
    /// Jobs whose packets can continue.
    ready: VecDeque<Box<Job>>,
    /// Jobs that were executed at once, whose packets continue after their vector.
    at_once: VecDeque<Box<Job>>,
    /// Memory for the jobs of a vector that continues.
    pub taken: Vec<Box<Job>>,
    /// Packets that wait, or whose jobs are ready.
    waiting: usize,
    counts: ExternCounts,
    /// Packets that were lost, and not yet counted by the switch.
    uncounted: u64,
    /// Cycles that it took of late to continue a packet, besides running it.
    resumption: f64,
}

impl std::fmt::Debug for AsyncCalls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AsyncCalls")
            .field("options", &self.options)
            .field("waiting", &self.waiting)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Clone for AsyncCalls {
    /// The clone has no lane, and none of the waiting packets.
    fn clone(&self) -> Self {
        AsyncCalls::with_sites(self.sites.iter().map(Site::again).collect(), self.begun.len())
    }
}

impl AsyncCalls {
    /// For the registered externs of a program. Calls are executed at once until a lane is
    /// attached.
    pub fn new(externs: Option<&BoundExterns>) -> Self {
        let may_wait = externs.is_some_and(|e| e.calls().any(|c| c.may_wait()));
        let full = ExternOptions::default().full;
        let sites = externs.map_or(Vec::new(), |e| e.calls().map(|c| Site::new(c, full)).collect());
        AsyncCalls::with_sites(sites, if may_wait { VECTOR } else { 0 })
    }

    /// With room for the calls of this many slots.
    fn with_sites(sites: Vec<Site>, slots: usize) -> Self {
        AsyncCalls {
            options: ExternOptions::default(),
            lane: Mutex::new(None),
            has_lane: false,
            threads: None,
            // Packets wait without a lane, too: for room after them.
            pool: Pool::new(slots, Job::default),
            sequencer: Sequencer::new(Order::PerKey, slots),
            sites,
            begun: (0..slots).map(|_| Begun::default()).collect(),
            leaving: (0..slots).map(|_| None).collect(),
            leaving_in_order: 0,
            executed: Vec::with_capacity(slots),
            ready: VecDeque::with_capacity(slots),
            at_once: VecDeque::new(),
            taken: Vec::with_capacity(slots),
            waiting: 0,
            counts: ExternCounts::default(),
            uncounted: 0,
            resumption: 0.0,
        }
    }

    /// Attaches a lane: jobs are handed over to it from now on.
    pub fn attach(&mut self, lane: Port<Box<Job>>, threads: Option<Arc<Lane<Box<Job>>>>, options: ExternOptions) {
        self.threads = threads;
        self.options = options;
        // Those of a vector continue while the lane is full again.
        self.pool = Pool::new(options.depth + VECTOR, Job::default);
        self.sequencer = Sequencer::new(Order::PerKey, TICKETS * options.depth + VECTOR);
        self.sites.iter_mut().for_each(|site| site.set_full(options.full));
        self.lane = Mutex::new(Some(lane));
        self.has_lane = true;
    }

    /// Whether packets may leave a vector at a call.
    pub fn may_wait(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Whether any call is marked `@async`.
    pub fn has_async(&self) -> bool {
        self.sites.iter().any(Site::is_async)
    }

    /// Whether packets wait in the order of their flows. A call may change what a packet's flow is
    /// read from, and others follow.
    pub fn keeps_flows(&self) -> bool {
        self.sites.iter().any(Site::keeps_flow)
    }

    /// The threads that execute calls.
    pub fn threads(&self) -> Option<&Arc<Lane<Box<Job>>>> {
        self.threads.as_ref()
    }

    /// Packets that wait.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    pub fn counts(&self) -> ExternCounts {
        self.counts
    }

    /// The choice for each call, and its reason.
    pub fn reports(&self) -> impl Iterator<Item = CallReport> + '_ {
        self.sites
            .iter()
            .map(|site| site.report(self.options.mode, self.has_lane))
    }

    /// Begins a call of a slot, whose payload is the packet from byte `consumed` on. True: the
    /// packet leaves the vector; [`AsyncCalls::suspend`] follows.
    pub fn begin(
        &mut self,
        call: &Arc<BoundCall>,
        slot: usize,
        consumed: usize,
        payload: &mut [u8],
        words: &[u64],
    ) -> bool {
        let (mut job, is_at_once) = match self.decide(call) {
            Decision::Inline => {
                let begun = &mut self.begun[slot];
                begun.words.clear();
                begun.words.extend_from_slice(words);
                begun.words.resize(call.signature.words(), 0);
                let site = &mut self.sites[call.number];
                begun.outcome = site.measure_inline(|| call.execute(&mut begun.words, payload));
                site.inline += 1;
                self.counts.inline += 1;
                return false;
            }
            Decision::Drop => {
                self.leaving[slot] = None;
                return true;
            }
            Decision::AtOnce(job) => {
                self.sites[call.number].inline += 1;
                self.counts.inline += 1;
                (job, true)
            }
            Decision::HandOver(job) => {
                self.sites[call.number].handed_over += 1;
                self.counts.handed_over += 1;
                (job, false)
            }
        };
        job.begin(call, consumed, words, is_at_once);
        self.leaving_in_order += usize::from(job.order() != CompletionOrder::None);
        self.leaving[slot] = Some(job);
        true
    }

    fn decide(&mut self, call: &BoundCall) -> Decision {
        let order = match call.execution {
            Execution::Async(AsyncCall { order, .. }) => order,
            Execution::Inline | Execution::Begin(_) | Execution::Finish(_) => CompletionOrder::None,
        };
        let is_behind = order != CompletionOrder::None && (self.has_earlier() || self.leaving_in_order > 0);
        let is_blocked = order != CompletionOrder::None && self.sequencer.outstanding() >= self.tickets();
        let choice = match port(&mut self.lane) {
            None => Choice::Inline,
            Some(lane) => {
                let site = &mut self.sites[call.number];
                match site.choose(self.options.mode, lane) {
                    _ if is_blocked && site.drops() => Choice::Drop,
                    choice => choice,
                }
            }
        };
        match choice {
            Choice::Inline if !is_behind && !call.needs_room() => Decision::Inline,
            Choice::Drop => Decision::Drop,
            Choice::Inline => Decision::AtOnce(self.job()),
            Choice::HandOver => match self.pool.take() {
                Some(job) => Decision::HandOver(job),
                // The jobs of packets that continue soon are still out.
                None if !is_behind && !call.needs_room() => Decision::Inline,
                None => Decision::AtOnce(self.job()),
            },
            Choice::Wait => {
                while port(&mut self.lane).is_some_and(|lane| !lane.has_room() && !lane.is_closed()) {
                    self.poll();
                    self.check(Instant::now());
                    std::thread::yield_now();
                }
                Decision::HandOver(self.job())
            }
        }
    }

    /// The most packets that keep their order and have not continued: those in the lane, and those
    /// that are done but after others.
    fn tickets(&self) -> usize {
        TICKETS * self.options.depth
    }

    /// Whether packets that keep their order have not continued, after which others must be.
    fn has_earlier(&self) -> bool {
        self.sequencer.outstanding() > 0 || !self.ready.is_empty()
    }

    /// A job, from the pool if it has one.
    fn job(&mut self) -> Box<Job> {
        self.pool.take().unwrap_or_default()
    }

    /// The outputs of the call that a slot has begun: false, if the packet is dropped.
    pub fn finish(&mut self, call: &BoundCall, slot: usize, to: &mut [u64]) -> bool {
        let begun = &self.begun[slot];
        if begun.words.len() < call.signature.words() {
            return false;
        }
        call.copy_outputs(&begun.words, to);
        begun.outcome == Outcome::Continue
    }

    /// Takes packets out of a vector. Gives how many are dropped because the lane is full.
    pub fn suspend(&mut self, suspended: &Suspended<'_>, packets: &mut SlotPackets<'_>) -> u64 {
        let started = cycles();
        let mut dropped = 0;
        let mut site = None;
        let mut slots = suspended.slots();
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let Some(mut job) = self.leaving[slot].take() else {
                dropped += 1;
                continue;
            };
            self.leaving_in_order -= usize::from(job.order() != CompletionOrder::None);
            site = job.call_number();
            suspended.save(slot, &mut job.context);
            job.take_packet(suspended.packet(slot), packets.headroom);
            packets.describe(slot, &mut job);
            self.waiting += 1;
            self.submit(job);
        }
        if let Some(lane) = port(&mut self.lane) {
            lane.flush();
        }
        let took = cycles().wrapping_sub(started) as f64 / f64::from(suspended.slots().count_ones());
        if let Some(site) = site.and_then(|site| self.sites.get_mut(site)) {
            site.measure_suspension(took + self.resumption);
        }
        self.counts.full += dropped;
        dropped
    }

    /// Notes what continuing packets took.
    pub fn measure_resumption(&mut self, cycles: u64, packets: usize) {
        if packets > 0 {
            // A moving average over some eight vectors.
            let new = cycles as f64 / packets as f64;
            self.resumption += (new - self.resumption) / 8.0;
        }
    }

    fn submit(&mut self, mut job: Box<Job>) {
        let order = job.order();
        let key = match order {
            CompletionOrder::None => 0,
            CompletionOrder::Port => job.passage.ingress_port.into(),
            CompletionOrder::Flow => job.flow(),
        };
        let route = port(&mut self.lane).map_or(0, |lane| lane.thread_for(key) as u32);
        if order != CompletionOrder::None && (!job.is_at_once || self.has_earlier()) {
            job.ticket = self.ticket(key, route);
        }
        let refused = match (port(&mut self.lane), job.is_at_once) {
            (Some(lane), false) => lane.submit(job, key).err(),
            (_, true) | (None, _) => Some(job),
        };
        if let Some(mut job) = refused {
            job.is_at_once = true;
            job.execute();
            match job.ticket {
                None => self.at_once.push_back(job),
                Some(_) => self.completed(job),
            }
        }
    }

    /// A place after the earlier packets with this key. Where there are as many as can be, waits
    /// until one of them is done.
    fn ticket(&mut self, key: u64, route: u32) -> Option<Ticket> {
        loop {
            let ticket = self.sequencer.issue(key, route);
            if ticket.is_some() || self.sequencer.outstanding() == 0 {
                return ticket;
            }
            self.poll();
            self.check(Instant::now());
            std::thread::yield_now();
        }
    }

    fn completed(&mut self, job: Box<Job>) {
        match job.ticket {
            None => self.ready.push_back(job),
            Some(ticket) => {
                // A ticket that was forgotten: its packet was counted as lost.
                if let Err(job) = self.sequencer.complete(ticket, job, &mut self.ready) {
                    self.pool.put(job);
                }
            }
        }
    }

    /// Collects what the lane has executed. True: there are packets that can continue.
    pub fn poll(&mut self) -> bool {
        if let Some(lane) = port(&mut self.lane)
            && lane.in_flight() > 0
        {
            lane.flush();
            lane.complete(&mut self.executed);
            let mut executed = std::mem::take(&mut self.executed);
            executed.iter().for_each(|job| job.prefetch());
            executed.iter().for_each(|job| job.prefetch_words());
            executed.drain(..).for_each(|job| self.completed(job));
            self.executed = executed;
        }
        !self.ready.is_empty()
    }

    /// The packets that were lost since the last time.
    pub fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.uncounted)
    }

    /// Looks for threads of the lane that have stopped.
    pub fn check(&mut self, now: Instant) {
        let Some(lane) = port(&mut self.lane) else { return };
        let lost = lane.check(now);
        if lost.is_empty() {
            return;
        }
        let (count, gone) = (lost.count, lost.gone());
        for job in lost.returned {
            if let Some(ticket) = job.ticket {
                self.sequencer.forget(ticket, &mut self.ready);
            }
            self.pool.put(job);
        }
        for thread in lost.threads {
            self.sequencer.forget_route(thread as u32, &mut self.ready);
        }
        self.pool.replace_lost(gone, Job::default);
        self.waiting = self.waiting.saturating_sub(count);
        self.counts.lost += count as u64;
        self.uncounted += count as u64;
    }

    /// Whether packets of this vector were executed at once that have not continued.
    pub fn has_at_once(&self) -> bool {
        !self.at_once.is_empty()
    }

    /// The next packets that can continue together, at most a vector: those of one suspension
    /// point. `at_once`: of those that were executed at once.
    pub fn take_ready(&mut self, at_once: bool, taken: &mut Vec<Box<Job>>) {
        let jobs = if at_once { &mut self.at_once } else { &mut self.ready };
        let Some(first) = jobs.front() else { return };
        let (point, is_egress) = (first.context.point(), first.is_egress);
        let fits = |job: &Job| job.context.point() == point && job.is_egress == is_egress;
        let count = jobs.iter().take(VECTOR).take_while(|job| fits(job)).count();
        taken.extend(jobs.drain(..count));
    }

    /// Exchanges the words of a call, which its code after the suspension point reads, with those
    /// of a slot.
    pub fn exchange_words(&mut self, slot: usize, job: &mut Job) {
        let begun = &mut self.begun[slot];
        begun.outcome = job.swap_words(&mut begun.words);
    }

    /// Jobs that [`AsyncCalls::take_ready`] gave and whose packets have not continued: they are the
    /// next ones.
    pub fn put_back(&mut self, at_once: bool, rest: impl DoubleEndedIterator<Item = Box<Job>>) {
        let jobs = if at_once { &mut self.at_once } else { &mut self.ready };
        rest.rev().for_each(|job| jobs.push_front(job));
    }

    /// The packets of these jobs have continued.
    pub fn give_back(&mut self, jobs: &mut Vec<Box<Job>>) {
        self.waiting = self.waiting.saturating_sub(jobs.len());
        self.counts.resumed += jobs.len() as u64;
        jobs.drain(..).for_each(|job| self.pool.put(job));
    }
}

/// The port to the lane, if there is one.
fn port(lane: &mut Mutex<Option<Port<Box<Job>>>>) -> Option<&mut Port<Box<Job>>> {
    lane.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
}

/// The data of a vector's packets that suspended ones take along.
pub(crate) struct SlotPackets<'a> {
    /// Bytes before a packet.
    pub headroom: usize,
    pub is_egress: bool,
    pub now_ns: u64,
    pub times: Option<&'a [u64; VECTOR]>,
    pub ports: &'a [u32],
    pub handling: &'a [Handling],
    /// The architecture's state of packets, and the slots that have it.
    pub fused: &'a mut [FusedPacket],
    pub initialised: u64,
    /// Bytes received.
    pub lengths: &'a [u64; VECTOR],
    /// The index of the first slot's packet among those received.
    pub first: usize,
    /// By slot: the packet's origin, if it is not as it was received.
    pub passages: Option<&'a [Passage]>,
}

impl SlotPackets<'_> {
    fn describe(&mut self, slot: usize, job: &mut Job) {
        job.is_egress = self.is_egress;
        job.port = self.ports.get(slot).copied().unwrap_or(0);
        job.handling = self.handling.get(slot).copied().unwrap_or_default();
        job.received_bytes = self.lengths[slot];
        job.passage = match self.passages.and_then(|passages| passages.get(slot)) {
            Some(passage) => *passage,
            None => Passage {
                of: self.first + slot,
                time_ns: self.times.map_or(self.now_ns, |times| times[slot]),
                passes: 0,
                ingress_port: job.port,
                is_reentry: false,
                generated_bytes: 0,
            },
        };
        job.has_fused = self.initialised >> slot & 1 == 1;
        if job.has_fused {
            std::mem::swap(&mut job.fused, &mut self.fused[slot]);
        }
    }
}
