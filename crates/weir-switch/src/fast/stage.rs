//! A compiled pipeline, and how a vector of packets is run through it.

use super::host::{Begun, SwitchHost};
use super::{FastError, OnHit};
use std::sync::Arc;
use weir_arch::{Architecture, Fused, FusedPacket, Handling, Input, LogMessage, State, Told};
use weir_jit::{Compiled, Frame, Machine, Options, VECTOR};
use weir_table::fast::{FastTable, Reader};

/// A pipeline with memory to run it in.
pub(super) struct Stage {
    pub fused: Arc<Fused>,
    pub machine: Machine,
    /// Of packets that the architecture is asked about; see [`Begun`].
    pub packets: Vec<FusedPacket>,
    /// Bytes of the packets as they came.
    pub lengths: Box<[u64; VECTOR]>,
    /// The same with what is counted with each packet ([`State::frame_check`]).
    counted: Box<[u64; VECTOR]>,
    /// All ones in as many bits as each input has.
    input_masks: Vec<u64>,
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
}

/// What a stage has done with the packets of a vector.
pub(super) struct Ran {
    /// The number of them that it ran.
    pub count: usize,
    /// Those of whom the architecture keeps something.
    pub begun: u64,
    /// What was logged, with the slot of the packet.
    pub logged: Vec<(usize, LogMessage)>,
}

impl Stage {
    /// Compiles a pipeline.
    pub(super) fn new(fused: Arc<Fused>, on_hit: &[OnHit], assembly: bool) -> Result<Self, FastError> {
        let options = Options {
            assembly,
            plain: on_hit.iter().map(|on| *on != OnHit::Ask).collect(),
        };
        let compiled = Arc::new(Compiled::new(Arc::clone(&fused.pipeline), options)?);
        Ok(Self::with(fused, Machine::new(compiled)))
    }

    fn with(fused: Arc<Fused>, machine: Machine) -> Self {
        let program = &fused.pipeline.program;
        let inputs = fused.pipeline.inputs.iter();
        let input_masks = inputs.map(|v| ones(program.vars[*v].ty.width())).collect();
        Stage {
            input_masks,
            machine,
            packets: vec![FusedPacket::default(); VECTOR],
            lengths: Box::new([0; VECTOR]),
            counted: Box::new([0; VECTOR]),
            fused,
        }
    }

    /// The same code, with memory of its own.
    pub(super) fn again(&self) -> Self {
        let mut machine = Machine::new(Arc::clone(self.machine.compiled()));
        machine.set_lanes(self.machine.lanes());
        Self::with(Arc::clone(&self.fused), machine)
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
        (arch, state): (&dyn Architecture, &mut State),
        frames: &mut [Frame<'_>],
        longest: u64,
    ) -> Option<Ran> {
        let many = frames.len();
        let mut loaded = self.machine.load(frames);
        self.lengths.copy_from_slice(loaded.lengths());
        let lengths = &*self.lengths;
        // All bits of all lengths: no length is larger, and it is found faster than the longest.
        let bits = lengths[..many].iter().fold(0, |a, b| a | b);
        if bits > longest && lengths[..many].iter().any(|l| *l > longest) {
            return None;
        }
        let counted = match state.frame_check() {
            0 => lengths,
            extra => {
                let all = self.counted.iter_mut().zip(lengths);
                all.for_each(|(counted, length)| *counted = length + extra);
                &*self.counted
            }
        };
        for (i, (input, mask)) in self.fused.inputs.iter().zip(&self.input_masks).enumerate() {
            if loaded.reads_input(i) {
                fill(loaded.input_row(i), *input, *mask, given, counted, state);
            }
        }
        let mut host = SwitchHost {
            arch,
            state,
            fused: &self.fused,
            packets: Begun {
                packets: &mut self.packets,
                lengths,
                begun: 0,
            },
            counted,
            on_hit: lent.on_hit,
            tables: lent.tables,
            sets: lent.sets,
            log: None,
            logged: Vec::new(),
            now_ns: given.now_ns,
            times: given.times,
        };
        let count = loaded.run(lent.tables, &lent.reader.enter(), &mut host, given.now_ns);
        let (begun, log, logged) = (host.packets.begun, host.log, host.logged);
        if let Some(log) = log {
            state.log = log;
        }
        Some(Ran { count, begun, logged })
    }

    /// The slots that have left for the driver.
    pub(super) fn exits_of(&self, slot: usize) -> impl Iterator<Item = (u32, weir_arch::FusedExit)> + '_ {
        let exits = (0..).zip(self.fused.exits.iter().copied());
        exits.filter(move |(exit, _)| self.machine.left(*exit) >> slot & 1 == 1)
    }
}

/// Fills the row of an input.
#[inline(always)]
fn fill(row: &mut [u64], input: Input, mask: u64, given: &Given<'_>, lengths: &[u64; VECTOR], state: &State) {
    let each = |row: &mut [u64], value: &dyn Fn(&Handling) -> u64| {
        let told = row.iter_mut().zip(given.told);
        told.for_each(|(word, told)| *word = value(told) & mask);
    };
    match (input, given.times) {
        (Input::NowUs, None) => row.fill((given.now_ns / 1000) & mask),
        (Input::NowNs, None) => row.fill(given.now_ns & mask),
        (Input::NowUs, Some(times)) => {
            (row.iter_mut().zip(times)).for_each(|(word, time)| *word = (time / 1000) & mask)
        }
        (Input::NowNs, Some(times)) => (row.iter_mut().zip(times)).for_each(|(word, time)| *word = time & mask),
        (Input::Port, _) => row
            .iter_mut()
            .zip(given.ports)
            .for_each(|(word, port)| *word = u64::from(*port) & mask),
        (Input::PortMetadata(number), _) => {
            let mut known = None;
            for (to, port) in row.iter_mut().zip(given.ports) {
                // Packets of a port come one after the other.
                let (_, value) = match known {
                    Some((of, value)) if of == *port => (of, value),
                    _ => (*port, port_metadata(state, *port, number)),
                };
                known = Some((*port, value));
                *to = value & mask;
            }
        }
        (Input::Length, _) => {
            let all = row.iter_mut().zip(lengths);
            all.for_each(|(word, length)| *word = length & mask);
            // Egress receives the length that a generated packet came with.
            let generated = row
                .iter_mut()
                .zip(given.told)
                .filter(|(_, told)| told.generated_bytes > 0);
            let extra = state.frame_check();
            generated.for_each(|(word, told)| *word = (u64::from(told.generated_bytes) + extra) & mask);
        }
        (Input::Told(Told::Rid), _) => each(row, &|told| told.rid.into()),
        (Input::Told(Told::Queue), _) => each(row, &|told| told.queue.into()),
        (Input::Told(Told::Class), _) => each(row, &|told| told.class.into()),
        (Input::Told(Told::IsFirstCopy), _) => each(row, &|told| told.is_first_copy.into()),
        (Input::Told(Told::IsDeflected), _) => each(row, &|told| told.is_deflected.into()),
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

/// A mask of `width` ones.
fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}
