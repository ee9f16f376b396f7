//! A compiled pipeline, and how a vector of packets is run through it.

use super::host::{FusedPackets, StageParts, SwitchHost};
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
    /// The architecture's state of packets, by slot; see [`FusedPackets`].
    pub packets: Vec<FusedPacket>,
    /// Bytes of the packets as they came.
    pub lengths: Box<[u64; VECTOR]>,
    /// By call: the registered extern, if it is one.
    externs: Arc<[Option<Arc<BoundCall>>]>,
    /// [`Stage::lengths`] with what is counted with each packet ([`State::frame_check`]).
    counted: Box<[u64; VECTOR]>,
}

/// The tables of the program, which stages share, and the side effects of hits.
#[derive(Clone, Copy)]
pub(super) struct SharedTables<'a> {
    pub tables: &'a [Arc<FastTable>],
    pub reader: &'a Reader,
    pub sets: &'a [FastTable],
    pub on_hit: &'a [OnHit],
}

/// The inputs of a vector besides the packets' bytes.
#[derive(Clone, Copy)]
pub(super) struct VectorInputs<'a> {
    pub now_ns: u64,
    /// The time of each packet; `None`: `now_ns`.
    pub times: Option<&'a [u64; VECTOR]>,
    /// The ingress ports, or, at egress, the egress ports.
    pub ports: &'a [u32],
    /// The metadata that egress receives with them.
    pub handling: &'a [Handling],
    /// They are at egress.
    pub is_egress: bool,
    /// The index of the first packet among those received.
    pub first: usize,
    /// The origins of the packets, if they are not as they were received.
    pub passages: Option<&'a [Passage]>,
}

/// The switch's state that the host of a stage accesses.
pub(super) struct HostState<'a> {
    pub arch: &'a dyn Architecture,
    pub state: &'a mut State,
    pub async_calls: &'a mut AsyncCalls,
}

/// The outcome of a vector.
pub(super) struct VectorOutcome {
    /// The number of packets that were run.
    pub count: usize,
    /// The slots for which the architecture has state.
    pub initialised: u64,
    /// Log messages, with the slot of the packet.
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
            reorderable: on_hit.iter().map(|on| *on != OnHit::CallArchitecture).collect(),
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
    pub(super) fn with_new_memory(&self) -> Self {
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
        shared_tables: SharedTables<'_>,
        vector_inputs: &VectorInputs<'_>,
        host_state: HostState<'_>,
        frames: &mut [Frame<'_>],
        longest: u64,
    ) -> Option<VectorOutcome> {
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
        let counted = counted_lengths(&mut self.counted, lengths, host_state.state);
        for (i, input) in self.fused.inputs.iter().enumerate() {
            if loaded.reads_input(i) {
                fill(&mut loaded, (i, *input), vector_inputs, counted, host_state.state);
            }
        }
        let parts = StageParts {
            fused: &self.fused,
            externs: &self.externs,
            packets: FusedPackets {
                packets: &mut self.packets,
                lengths,
                initialised: 0,
            },
            counted,
            headroom,
        };
        let mut host = SwitchHost::new(parts, shared_tables, vector_inputs, host_state);
        let count = loaded.run(
            shared_tables.tables,
            &shared_tables.reader.enter(),
            &mut host,
            vector_inputs.now_ns,
        );
        Some(host.finish(count))
    }

    /// Continues packets that waited for an extern, with the contexts that they had then.
    /// `initialised`: the slots for which the architecture has state, in [`Stage::packets`].
    /// [`Stage::lengths`] must be those that were received.
    #[inline(always)]
    pub(super) fn resume<'c>(
        &mut self,
        shared_tables: SharedTables<'_>,
        vector_inputs: &VectorInputs<'_>,
        host_state: HostState<'_>,
        frames: &mut [Frame<'_>],
        contexts: impl IntoIterator<Item = &'c SavedContext>,
        initialised: u64,
    ) -> VectorOutcome {
        let headroom = self.headroom();
        let loaded = self.machine.load(frames);
        let parts = StageParts {
            fused: &self.fused,
            externs: &self.externs,
            counted: counted_lengths(&mut self.counted, &self.lengths, host_state.state),
            packets: FusedPackets {
                packets: &mut self.packets,
                lengths: &self.lengths,
                initialised,
            },
            headroom,
        };
        let mut host = SwitchHost::new(parts, shared_tables, vector_inputs, host_state);
        let count = loaded.resume(
            contexts,
            shared_tables.tables,
            &shared_tables.reader.enter(),
            &mut host,
            vector_inputs.now_ns,
        );
        host.finish(count)
    }

    /// The slots that have left for the driver.
    pub(super) fn exits_of(&self, slot: usize) -> impl Iterator<Item = (u32, weir_arch::FusedExit)> + '_ {
        let exits = (0..).zip(self.fused.exits.iter().copied());
        exits.filter(move |(exit, _)| self.machine.exit_mask(*exit) >> slot & 1 == 1)
    }
}

/// The lengths, with the bytes that are counted with each packet.
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
    vector_inputs: &VectorInputs<'_>,
    lengths: &[u64; VECTOR],
    state: &State,
) {
    let handling = vector_inputs.handling.iter();
    match (input, vector_inputs.times) {
        (Input::NowUs, None) => loaded.set_input(number, std::iter::repeat(vector_inputs.now_ns / 1000)),
        (Input::NowNs, None) => loaded.set_input(number, std::iter::repeat(vector_inputs.now_ns)),
        (Input::NowUs, Some(times)) => loaded.set_input(number, times.iter().map(|time| time / 1000)),
        (Input::NowNs, Some(times)) => loaded.set_input(number, times.iter().copied()),
        (Input::Port, _) => loaded.set_input(number, vector_inputs.ports.iter().copied().map(u64::from)),
        (Input::PortMetadata(word), _) => {
            let mut known = None;
            let values = vector_inputs.ports.iter().map(|port| {
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
        (Input::Length, _) if handling.clone().any(|handling| handling.generated_bytes > 0) => {
            let extra = state.frame_check();
            let values = lengths
                .iter()
                .zip(handling)
                .map(|(length, handling)| match handling.generated_bytes {
                    0 => *length,
                    generated => u64::from(generated) + extra,
                });
            loaded.set_input(number, values);
        }
        (Input::Length, _) => loaded.set_input(number, lengths.iter().copied()),
        (Input::FromTrafficManager(EgressMetadata::Rid), _) => loaded.set_input(number, handling.map(|t| t.rid.into())),
        (Input::FromTrafficManager(EgressMetadata::Queue), _) => {
            loaded.set_input(number, handling.map(|t| t.queue.into()))
        }
        (Input::FromTrafficManager(EgressMetadata::Class), _) => {
            loaded.set_input(number, handling.map(|t| t.class.into()))
        }
        (Input::FromTrafficManager(EgressMetadata::IsFirstCopy), _) => {
            loaded.set_input(number, handling.map(|t| t.is_first_copy.into()))
        }
        (Input::FromTrafficManager(EgressMetadata::IsDeflected), _) => {
            loaded.set_input(number, handling.map(|t| t.is_deflected.into()))
        }
    }
}

/// Eight bytes of a port's metadata, as a number; padded with zeros.
fn port_metadata(state: &State, port: u32, word: usize) -> u64 {
    let known = state.port_metadata.get(&port);
    let bytes = known.and_then(|bytes| bytes.get(word * 8..)).unwrap_or_default();
    (0..8).fold(0, |number, at| {
        number << 8 | bytes.get(at).copied().map_or(0, u64::from)
    })
}
