//! A packet that waits for an extern, with everything that it needs to continue.

use super::flow::flow_of;
use crate::fast::Passage;
use std::sync::Arc;
use weir_arch::{BoundCall, FusedPacket, Handling};
use weir_extern_api::Outcome;
use weir_ir::{AsyncCall, CompletionOrder, Execution};
use weir_jit::{Frame, SavedContext, TAILROOM};
use weir_lanes::{Service, Ticket};
use weir_table::memory::prefetch_for_write;

/// Bytes of packets for which memory is there from the start.
const ROOM: usize = 2048;
/// Words of a call for which memory is there from the start: a cache line.
const WORDS: usize = 8;
/// The longest packet that an extern may make, in bytes.
const MAX_PACKET: usize = 65_535;

/// A call with its arguments: all that the lane reads and writes of a job. It is a cache line of
/// its own, the only one that goes to the lane's core and back.
#[derive(Default)]
#[repr(align(64))]
struct Call {
    bound: Option<Arc<BoundCall>>,
    words: Vec<u64>,
    /// The packet, with room before and after it.
    memory: Box<[u8]>,
    offset: u32,
    length: u32,
    /// Bytes before the payload.
    consumed: u32,
    outcome: Outcome,
    is_executed: bool,
}

const _: () = assert!(size_of::<Call>() == 64, "a call is a cache line");

/// A packet that waits for an extern.
#[derive(Default)]
pub struct Job {
    call: Call,
    pub(crate) context: SavedContext,
    pub(super) ticket: Option<Ticket>,
    pub(super) is_at_once: bool,
    pub(crate) passage: Passage,
    pub(crate) is_egress: bool,
    /// At egress: the port that it goes to.
    pub(crate) port: u32,
    pub(crate) handling: Handling,
    pub(crate) received_bytes: u64,
    /// The architecture's state of it, if any.
    pub(crate) fused: FusedPacket,
    pub(crate) has_fused: bool,
}

impl Job {
    /// For a call with these words of its arguments, whose payload begins at byte `consumed`.
    pub(super) fn begin(&mut self, bound: &Arc<BoundCall>, consumed: usize, words: &[u64], is_at_once: bool) {
        let call = &mut self.call;
        // Counting references costs more than the comparison.
        if !call.bound.as_ref().is_some_and(|known| Arc::ptr_eq(known, bound)) {
            call.bound = Some(Arc::clone(bound));
        }
        call.words.clear();
        // At least a cache line, so that no other job's words are in it.
        call.words.reserve(WORDS);
        call.words.extend_from_slice(words);
        call.words.resize(bound.signature.words(), 0);
        call.consumed = consumed as u32;
        call.outcome = Outcome::Continue;
        call.is_executed = false;
        self.is_at_once = is_at_once;
        self.ticket = None;
    }

    /// The number of its call among those of the program.
    pub(super) fn call_number(&self) -> Option<usize> {
        self.call.bound.as_ref().map(|bound| bound.number)
    }

    pub(super) fn order(&self) -> CompletionOrder {
        match self.call.bound.as_ref().map(|bound| bound.execution) {
            Some(Execution::Async(AsyncCall { order, .. })) => order,
            Some(Execution::Inline | Execution::Begin(_) | Execution::Finish(_)) | None => CompletionOrder::None,
        }
    }

    /// The number of the flow that the packet was received in.
    pub(super) fn flow(&self) -> u64 {
        let known = self.fused.flow.filter(|_| self.has_fused);
        known.unwrap_or_else(|| flow_of(self.packet()))
    }

    /// Copies the packet.
    pub(super) fn take_packet(&mut self, packet: &[u8], headroom: usize) {
        let call = &mut self.call;
        let growth = call.bound.as_ref().map_or(0, |bound| bound.growth(packet.len()));
        let growth = growth.min(MAX_PACKET.saturating_sub(packet.len()));
        let needed = headroom + packet.len().max(ROOM) + growth + TAILROOM;
        if call.memory.len() < needed {
            call.memory = vec![0; needed].into_boxed_slice();
        }
        call.memory[headroom..headroom + packet.len()].copy_from_slice(packet);
        (call.offset, call.length) = (headroom as u32, packet.len() as u32);
    }

    /// The packet's bytes.
    pub(super) fn packet(&self) -> &[u8] {
        let start = self.call.offset as usize;
        &self.call.memory[start..start + self.call.length as usize]
    }

    /// The packet to run, and its context. `None` before [`Job::take_packet`]: after the packet
    /// that it copies, and that the call leaves, there are [`TAILROOM`] bytes.
    pub(crate) fn frame(&mut self) -> Option<(Frame<'_>, &SavedContext)> {
        let call = &mut self.call;
        let frame = Frame::new(&mut call.memory, call.offset as usize, call.length as usize)?;
        Some((frame, &self.context))
    }

    /// Fetches what the lane has read and written, to be written again.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch_for_write(&raw const self.call);
    }

    /// The same of the words, when the call is here.
    #[inline]
    pub(super) fn prefetch_words(&self) {
        prefetch_for_write(self.call.words.as_ptr());
    }

    /// Exchanges the words, and gives the outcome.
    #[inline]
    pub(super) fn swap_words(&mut self, words: &mut Vec<u64>) -> Outcome {
        std::mem::swap(words, &mut self.call.words);
        self.call.outcome
    }

    /// Executes the call.
    pub(super) fn execute(&mut self) {
        let is_at_once = self.is_at_once;
        let call = &mut self.call;
        if let Some(bound) = &call.bound {
            let end = (call.offset + call.length) as usize;
            let start = ((call.offset + call.consumed) as usize).min(end);
            let limit = call.memory.len() - TAILROOM;
            let memory = &mut call.memory[..limit.max(end)];
            // A lane has its own answer to panics.
            let (outcome, end) = match is_at_once {
                true => bound.execute_at_once(&mut call.words, memory, start, end),
                false => bound.execute_in(&mut call.words, memory, start, end),
            };
            call.outcome = outcome;
            call.length = end as u32 - call.offset;
        }
        call.is_executed = true;
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
        job.call.is_executed
    }
}
