//! A packet that waits for an extern, with everything that it needs to continue.

use crate::fast::Passage;
use std::sync::Arc;
use weir_arch::{BoundCall, FusedPacket, Handling};
use weir_extern_api::Outcome;
use weir_ir::{AsyncCall, CompletionOrder, Execution};
use weir_jit::{SavedContext, TAILROOM};
use weir_lanes::{Service, Ticket};

/// Bytes of packets for which memory is there from the start.
const ROOM: usize = 2048;
/// The longest packet that an extern may make, in bytes.
const MAX_PACKET: usize = 65_535;

/// A packet that waits for an extern.
#[derive(Default)]
pub struct Job {
    call: Option<Arc<BoundCall>>,
    /// The call's words.
    pub(super) words: Vec<u64>,
    pub(super) outcome: Outcome,
    /// The packet, with room before and behind it.
    memory: Vec<u8>,
    offset: usize,
    length: usize,
    /// Bytes before the payload.
    consumed: usize,
    is_executed: bool,
    pub(crate) context: SavedContext,
    pub(super) ticket: Option<Ticket>,
    pub(super) is_at_once: bool,
    pub(crate) passage: Passage,
    pub(crate) is_egress: bool,
    /// At egress: the port that it goes to.
    pub(crate) port: u32,
    pub(crate) handling: Handling,
    pub(crate) received_bytes: u64,
    /// What the architecture keeps of it, if it keeps anything.
    pub(crate) fused: FusedPacket,
    pub(crate) has_fused: bool,
}

impl Job {
    /// For a call with these words of its arguments, whose payload begins at byte `consumed`.
    pub(super) fn begin(&mut self, call: &Arc<BoundCall>, consumed: usize, words: &[u64], is_at_once: bool) {
        // Counting references costs more than the comparison.
        if !self.call.as_ref().is_some_and(|known| Arc::ptr_eq(known, call)) {
            self.call = Some(Arc::clone(call));
        }
        self.words.clear();
        self.words.extend_from_slice(words);
        self.words.resize(call.signature.words(), 0);
        self.consumed = consumed;
        self.outcome = Outcome::Continue;
        self.is_executed = false;
        self.is_at_once = is_at_once;
        self.ticket = None;
    }

    /// The number of its call among those of the program.
    pub(super) fn call_number(&self) -> Option<usize> {
        self.call.as_ref().map(|call| call.number)
    }

    pub(super) fn order(&self) -> CompletionOrder {
        match self.call.as_ref().map(|call| call.execution) {
            Some(Execution::Async(AsyncCall { order, .. })) => order,
            Some(Execution::Inline | Execution::Begin | Execution::Finish) | None => CompletionOrder::None,
        }
    }

    /// Copies the packet.
    pub(super) fn take_packet(&mut self, packet: &[u8], headroom: usize) {
        let growth = self.call.as_ref().map_or(0, |call| call.growth(packet.len()));
        let growth = growth.min(MAX_PACKET.saturating_sub(packet.len()));
        let needed = headroom + packet.len().max(ROOM) + growth + TAILROOM;
        if self.memory.len() < needed {
            self.memory.resize(needed, 0);
        }
        self.memory[headroom..headroom + packet.len()].copy_from_slice(packet);
        (self.offset, self.length) = (headroom, packet.len());
    }

    /// The packet's bytes.
    pub(super) fn packet(&self) -> &[u8] {
        &self.memory[self.offset..self.offset + self.length]
    }

    /// The memory that the packet lies in, its offset there and its length; and its context.
    pub(crate) fn parts(&mut self) -> (&mut [u8], usize, usize, &SavedContext) {
        (&mut self.memory, self.offset, self.length, &self.context)
    }

    /// Executes the call.
    pub(super) fn execute(&mut self) {
        if let Some(call) = &self.call {
            let end = self.offset + self.length;
            let start = (self.offset + self.consumed).min(end);
            let limit = self.memory.len() - TAILROOM;
            let memory = &mut self.memory[..limit.max(end)];
            let (outcome, end) = call.execute_in(&mut self.words, memory, start, end);
            self.outcome = outcome;
            self.length = end - self.offset;
        }
        self.is_executed = true;
    }
}

/// Executes jobs on a lane.
#[derive(Debug, Clone, Copy, Default)]
pub struct JobService;

impl Service<Box<Job>> for JobService {
    fn process(&self, jobs: &mut [Box<Job>]) {
        jobs.iter_mut().for_each(|job| job.execute());
    }

    fn is_finished(&self, job: &Box<Job>) -> bool {
        job.is_executed
    }
}
