//! A compiled pipeline, and how a vector of packets is run through it.

use super::host::{PendingLookup, StageParts, SwitchHost};
use super::onward::Passage;
use super::{FastError, OnHit};
use crate::waiting::AsyncCalls;
use std::sync::Arc;
use weir_arch::{Architecture, BoundCall, EgressMetadata, Fused, FusedPacket, Handling, Input, LogMessage, State};
use weir_jit::{Compiled, Frame, LoadedVector, Machine, Options, SavedContext, VECTOR};
use weir_table::fast::{FastTable, Reader};

/// A pipeline with memory to run it in.
pub(super) struct Stage {
    pub fused: Arc<Fused>,
    pub machine: Machine,
    /// Of packets that the architecture is asked about; see [`PendingLookup`].
    pub packets: Vec<FusedPacket>,
    /// Bytes of the packets as they came.
    pub lengths: Box<[u64; VECTOR]>,
    /// By call: the registered extern, if it is one.
    externs: Arc<[Option<Arc<BoundCall>>]>,
    /// [`Stage::lengths`] with what is counted with each packet ([`State::frame_check`]).
    counted: Box<[u64; VECTOR]>,
}

/// What stages share: the tables of the program, and what hits of them do.
#[derive(Clone, Copy)]
pub(super) struct Lent<'a> {
    pub tables: &'a [Arc<FastTable>],
    pub reader: &'a Reader,
    pub sets: &'a [FastTable],
    pub on_hit: &'a [OnHit],
}

/// What is known of the packets of a vector besides their bytes.
#[derive(Clone, Copy)]
pub(super) struct Given<'a> {
    pub now_ns: u64,
    /// When each of them is under way; without, all are now.
    pub times: Option<&'a [u64; VECTOR]>,
    /// The ports they came in at, or, at egress, go to.
    pub ports: &'a [u32],
    /// The metadata that egress receives with them.
    pub told: &'a [Handling],
    /// They are at egress.
    pub is_egress: bool,
    /// Of the first of them: which of the packets that were received it is.
    pub first: usize,
    /// Where they are from, if they are not as they were received.
    pub passages: Option<&'a [Passage]>,
}

/// What serves a stage while it runs.
pub(super) struct Served<'a> {
    pub arch: &'a dyn Architecture,
    pub state: &'a mut State,
    pub async_calls: &'a mut AsyncCalls,
}

/// What a stage has done with the packets of a vector.
pub(super) struct Ran {
    /// The number of them that it ran.
    pub count: usize,
    /// Those of whom the architecture keeps something.
    pub begun: u64,
    /// What was logged, with the slot of the packet.
    pub logged: Vec<(usize, LogMessage)>,
    /// Packets that were dropped because no more can wait for an extern.
    pub full: u64,
}

impl Stage {
    /// Compiles a pipeline.
    pub(super) fn new(
        arch: &dyn Architecture,
        fused: Arc<Fused>,
        on_hit: &[OnHit],
        assembly: bool,
    ) -> Result<Self, FastError> {
        let options = Options {
            assembly,
            reorderable: on_hit.iter().map(|on| *on != OnHit::Ask).collect(),
        };
        let compiled = Arc::new(Compiled::new(Arc::clone(&fused.pipeline), options)?);
        let calls = 0..fused.pipeline.calls.len();
        let externs = calls.map(|call| arch.fused_extern(&fused, call).cloned()).collect();
        Ok(Self::with(fused, externs, Machine::new(compiled)))
    }

    fn with(fused: Arc<Fused>, externs: Arc<[Option<Arc<BoundCall>>]>, machine: Machine) -> Self {
        Stage {
            machine,
            packets: vec![FusedPacket::default(); VECTOR],
            lengths: Box::new([0; VECTOR]),
            counted: Box::new([0; VECTOR]),
            externs,
            fused,
        }
    }

    /// The same code, with memory of its own.
    pub(super) fn again(&self) -> Self {
        let mut machine = Machine::new(Arc::clone(self.machine.compiled()));
        machine.set_lanes(self.machine.lanes());
        Self::with(Arc::clone(&self.fused), Arc::clone(&self.externs), machine)
    }

    /// Bytes that must lie before a packet.
    pub(super) fn headroom(&self) -> usize {
        self.machine.compiled().headroom()
    }

    /// Runs packets, at most [`VECTOR`]; nothing, if one is longer than `longest`.
    #[inline(always)]
    pub(super) fn run(
        &mut self,
        lent: Lent<'_>,
        given: &Given<'_>,
        served: Served<'_>,
        frames: &mut [Frame<'_>],
        longest: u64,
    ) -> Option<Ran> {
        let headroom = self.headroom();
        let many = frames.len();
        let mut loaded = self.machine.load(frames);
        self.lengths.copy_from_slice(loaded.lengths());
        let lengths = &*self.lengths;
        // All bits of all lengths: no length is larger, and it is found faster than the longest.
        let bits = lengths[..many].iter().fold(0, |a, b| a | b);
        if bits > longest && lengths[..many].iter().any(|l| *l > longest) {
            return None;
        }
        let counted = counted_lengths(&mut self.counted, lengths, served.state);
        for (i, input) in self.fused.inputs.iter().enumerate() {
            if loaded.reads_input(i) {
                fill(&mut loaded, (i, *input), given, counted, served.state);
            }
        }
        let parts = StageParts {
            fused: &self.fused,
            externs: &self.externs,
            packets: PendingLookup {
                packets: &mut self.packets,
                lengths,
                begun: 0,
            },
            counted,
            headroom,
        };
        let mut host = SwitchHost::new(parts, lent, given, served);
        let count = loaded.run(lent.tables, &lent.reader.enter(), &mut host, given.now_ns);
        Some(host.finish(count))
    }

    /// Continues packets that waited for an extern, with the contexts that they had then.
    /// `begun`: those of whom the architecture keeps something, in [`Stage::packets`].
    /// [`Stage::lengths`] must be those that were received.
    #[inline(always)]
    pub(super) fn resume<'c>(
        &mut self,
        lent: Lent<'_>,
        given: &Given<'_>,
        served: Served<'_>,
        frames: &mut [Frame<'_>],
        contexts: impl IntoIterator<Item = &'c SavedContext>,
        begun: u64,
    ) -> Ran {
        let headroom = self.headroom();
        let loaded = self.machine.load(frames);
        let parts = StageParts {
            fused: &self.fused,
            externs: &self.externs,
            counted: counted_lengths(&mut self.counted, &self.lengths, served.state),
            packets: PendingLookup {
                packets: &mut self.packets,
                lengths: &self.lengths,
                begun,
            },
            headroom,
        };
        let mut host = SwitchHost::new(parts, lent, given, served);
        let count = loaded.resume(contexts, lent.tables, &lent.reader.enter(), &mut host, given.now_ns);
        host.finish(count)
    }

    /// The slots that have left for the driver.
    pub(super) fn exits_of(&self, slot: usize) -> impl Iterator<Item = (u32, weir_arch::FusedExit)> + '_ {
        let exits = (0..).zip(self.fused.exits.iter().copied());
        exits.filter(move |(exit, _)| self.machine.exit_mask(*exit) >> slot & 1 == 1)
    }
}

/// The lengths with what is counted with each packet.
#[inline(always)]
fn counted_lengths<'a>(memory: &'a mut [u64; VECTOR], lengths: &'a [u64; VECTOR], state: &State) -> &'a [u64; VECTOR] {
    match state.frame_check() {
        0 => lengths,
        extra => {
            let all = memory.iter_mut().zip(lengths);
            all.for_each(|(counted, length)| *counted = length + extra);
            memory
        }
    }
}

/// Sets an input, which has this number.
#[inline(always)]
fn fill(
    loaded: &mut LoadedVector<'_, '_>,
    (number, input): (usize, Input),
    given: &Given<'_>,
    lengths: &[u64; VECTOR],
    state: &State,
) {
    let told = given.told.iter();
    match (input, given.times) {
        (Input::NowUs, None) => loaded.set_input(number, std::iter::repeat(given.now_ns / 1000)),
        (Input::NowNs, None) => loaded.set_input(number, std::iter::repeat(given.now_ns)),
        (Input::NowUs, Some(times)) => loaded.set_input(number, times.iter().map(|time| time / 1000)),
        (Input::NowNs, Some(times)) => loaded.set_input(number, times.iter().copied()),
        (Input::Port, _) => loaded.set_input(number, given.ports.iter().copied().map(u64::from)),
        (Input::PortMetadata(word), _) => {
            let mut known = None;
            let values = given.ports.iter().map(|port| {
                // Packets of a port come one after the other.
                let (_, value) = match known {
                    Some((of, value)) if of == *port => (of, value),
                    _ => (*port, port_metadata(state, *port, word)),
                };
                known = Some((*port, value));
                value
            });
            loaded.set_input(number, values);
        }
        // Egress receives the length that a generated packet came with.
        (Input::Length, _) if told.clone().any(|told| told.generated_bytes > 0) => {
            let extra = state.frame_check();
            let values = lengths
                .iter()
                .zip(told)
                .map(|(length, told)| match told.generated_bytes {
                    0 => *length,
                    generated => u64::from(generated) + extra,
                });
            loaded.set_input(number, values);
        }
        (Input::Length, _) => loaded.set_input(number, lengths.iter().copied()),
        (Input::FromTrafficManager(EgressMetadata::Rid), _) => loaded.set_input(number, told.map(|t| t.rid.into())),
        (Input::FromTrafficManager(EgressMetadata::Queue), _) => loaded.set_input(number, told.map(|t| t.queue.into())),
        (Input::FromTrafficManager(EgressMetadata::Class), _) => loaded.set_input(number, told.map(|t| t.class.into())),
        (Input::FromTrafficManager(EgressMetadata::IsFirstCopy), _) => {
            loaded.set_input(number, told.map(|t| t.is_first_copy.into()))
        }
        (Input::FromTrafficManager(EgressMetadata::IsDeflected), _) => {
            loaded.set_input(number, told.map(|t| t.is_deflected.into()))
        }
    }
}

/// Eight bytes of what is known of a port, as a number; zeros where nothing is.
fn port_metadata(state: &State, port: u32, word: usize) -> u64 {
    let known = state.port_metadata.get(&port);
    let bytes = known.and_then(|bytes| bytes.get(word * 8..)).unwrap_or_default();
    (0..8).fold(0, |number, at| {
        number << 8 | bytes.get(at).copied().map_or(0, u64::from)
    })
}
