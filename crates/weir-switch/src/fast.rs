//! The fast path through the switch: compiled code for plain packets, a vector at a time.
//!
//! A packet takes it if it is not traced, the caller chooses no outcome, queues are empty and no
//! port has a rate. Then the queue of its port has no effect on it. The driver executes what the
//! packet requests beyond being sent to one port: mirrors, resubmission, digests. Copies of groups,
//! and packets for ports that lead back to ingress, are run as vectors of their own ([`onward`]).

mod counts;
mod host;
mod leaving;
mod messages;
pub(crate) mod onward;
mod resume;
mod stage;
mod tables;
#[cfg(test)]
mod tests;

use crate::switch::{Context, Output, PacketOrder, Switch};
use counts::Counted;
use leaving::Vector;
pub(crate) use messages::MessageOrder;
pub(crate) use onward::Passage;
use stage::{SharedTables, Stage};
use std::sync::Arc;
use std::time::Duration;
use tables::fast_tables;
use thiserror::Error;
use weir_arch::{Architecture, Defaults, Fused, LeftOut, NotCompiled, State};
use weir_interp::NoTrace;
use weir_ir::TableId;
use weir_jit::{CompileError, Compiled, Frame, LaneUse, StageCount, TAILROOM};
use weir_table::fast::{Epochs, FastTable, Reader};
use weir_table::{Implementation, TableSpec};

/// Why a program has no fast path.
#[derive(Debug, Error)]
pub enum FastError {
    /// Its architecture has no fused pipeline for it.
    #[error(transparent)]
    NotFused(#[from] NotCompiled),
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// The outcome for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is to be sent to this port, with the bytes that its frame has now.
    Transmit(u32),
    /// The number of packets that result from it (copies, or itself after another pass). The next
    /// [`Switch::advance`] returns them, in the order of the verdicts.
    Copies(u32),
    /// It was dropped and counted, or it waits in a queue.
    Gone,
}

/// The side effect of a hit of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnHit {
    Nothing,
    /// Direct counters count.
    Count,
    /// The same, but the table keeps their counts ([`FastTable::keeps_counts`]).
    CountInTable,
    /// Direct meters run, or the action must be resolved.
    CallArchitecture,
}

/// A compiled pipeline with its tables.
pub(crate) struct FastPath {
    /// The pipeline from ingress on.
    main_stage: Stage,
    /// Egress of packets that leave the main stage for the traffic manager.
    egress: Option<Stage>,
    /// Headroom that both need before a packet.
    headroom: usize,
    tables: Vec<Arc<FastTable>>,
    /// Of all tables.
    reader: Reader,
    /// By table: whether hits must supply the entry's handle, for other purposes than counting.
    handles: Arc<[bool]>,
    /// Counts of the tables that these replace, until they are added to the state.
    carried_counts: Counted,
    sets: Vec<FastTable>,
    set_specs: Arc<[TableSpec]>,
    on_hit: Arc<[OnHit]>,
    /// A buffer for packets without headroom and tailroom.
    buffer: Vec<u8>,
    /// The tables are still empty.
    is_fresh: bool,
    /// The least capacity of the tables, in entries.
    min_entries: usize,
    /// Whether packets access tables or state in order, in any stage.
    accesses_state: bool,
}

impl Clone for FastPath {
    fn clone(&self) -> Self {
        self.with_tables_for(self.min_entries)
    }
}

impl FastPath {
    /// A copy with the same code and new tables, each for at least the given number of entries.
    /// Their entries are copied before the next use; counts of the old tables are carried over.
    fn with_tables_for(&self, min_entries: usize) -> Self {
        let program = &self.main_stage.fused.pipeline.program;
        let epochs = Arc::new(Epochs::new());
        FastPath {
            main_stage: self.main_stage.with_new_memory(),
            egress: self.egress.as_ref().map(Stage::with_new_memory),
            headroom: self.headroom,
            tables: fast_tables(
                program,
                self.main_stage.fused.selectors,
                &epochs,
                &self.handles,
                &self.on_hit,
            )
            .map(|table| match min_entries {
                0 => Arc::new(table),
                least => Arc::new(table.with_min_capacity(least)),
            })
            .collect(),
            reader: epochs.reader(),
            handles: Arc::clone(&self.handles),
            carried_counts: self.all_counted(None),
            sets: self.set_specs.iter().map(FastTable::new).collect(),
            set_specs: Arc::clone(&self.set_specs),
            on_hit: Arc::clone(&self.on_hit),
            buffer: Vec::new(),
            is_fresh: true,
            min_entries,
            accesses_state: self.accesses_state,
        }
    }
}

impl FastPath {
    fn new(arch: &dyn Architecture, state: &State, assembly: bool) -> Result<Self, FastError> {
        let fused = arch.fused()?;
        let has_egress = fused.egress.is_some();
        match Self::of(arch, fused, state, assembly) {
            Err(error) if has_egress => {
                let mut fused = arch.fused_without_egress()?;
                let what = "egress of what does not go straight through";
                fused.left_out.push(LeftOut::new(what, &error));
                Self::of(arch, fused, state, assembly)
            }
            made => made,
        }
    }

    fn of(arch: &dyn Architecture, mut fused: Fused, state: &State, assembly: bool) -> Result<Self, FastError> {
        let egress = fused.egress.take().map(|egress| Arc::new(*egress));
        let fused = Arc::new(fused);
        let program = &fused.pipeline.program;
        let sets = program.value_sets.ids();
        let set_specs = sets
            .filter_map(|id| Some(state.value_set(id)?.spec().clone()))
            .collect::<Arc<_>>();
        let on_hit: Arc<[OnHit]> = program
            .tables
            .iter()
            .map(|(id, table)| {
                let direct = state
                    .table(id)
                    .is_none_or(|t| t.table.spec().implementation == Implementation::Direct);
                let meters = fused.pipeline.ordered_tables.get(id.index()) == Some(&true);
                let counts = fused.counts_hits && !table.direct.is_empty();
                match (direct && !meters, !counts) {
                    (false, _) => OnHit::CallArchitecture,
                    (true, false) => OnHit::Count,
                    (true, true) => OnHit::Nothing,
                }
            })
            .collect();
        let main_stage = Stage::new(arch, Arc::clone(&fused), &on_hit, assembly)?;
        let egress = egress
            .map(|fused| Stage::new(arch, fused, &on_hit, assembly))
            .transpose()?;
        let reads_handles = |id| {
            let stages = std::iter::once(&main_stage).chain(&egress);
            stages.into_iter().any(|s| s.machine.compiled().reads_handles(id))
        };
        let handles: Arc<[bool]> = (program.tables.ids().zip(on_hit.iter()))
            .map(|(id, on_hit)| *on_hit == OnHit::CallArchitecture || reads_handles(id))
            .collect();
        let epochs = Arc::new(Epochs::new());
        let tables: Vec<Arc<FastTable>> = fast_tables(program, fused.selectors, &epochs, &handles, &on_hit)
            .map(Arc::new)
            .collect();
        let on_hit = (on_hit.iter().zip(&tables))
            .map(|(on_hit, table)| match on_hit {
                OnHit::Count if table.keeps_counts() => OnHit::CountInTable,
                on_hit => *on_hit,
            })
            .collect();
        let accesses_state = std::iter::once(&main_stage)
            .chain(&egress)
            .any(|stage| stage.fused.pipeline.accesses_state());
        Ok(FastPath {
            accesses_state,
            headroom: main_stage.headroom().max(egress.as_ref().map_or(0, Stage::headroom)),
            main_stage,
            egress,
            tables,
            reader: epochs.reader(),
            handles,
            carried_counts: Counted::default(),
            sets: set_specs.iter().map(FastTable::new).collect(),
            set_specs,
            on_hit,
            buffer: Vec::new(),
            is_fresh: true,
            min_entries: 0,
        })
    }

    /// When an entry was hit last, as far as compiled code knows.
    pub(crate) fn last_hit_ns(&self, table: TableId, handle: u32) -> Option<u64> {
        self.tables.get(table.index())?.last_hit_ns(handle)
    }

    /// All stages.
    fn stages(&mut self) -> impl Iterator<Item = &mut Stage> {
        std::iter::once(&mut self.main_stage).chain(&mut self.egress)
    }

    /// The stages, and the tables that they share.
    #[inline(always)]
    fn parts(&mut self) -> (&mut Stage, Option<&mut Stage>, SharedTables<'_>) {
        let shared_tables = SharedTables {
            tables: &self.tables,
            reader: &self.reader,
            sets: &self.sets,
            on_hit: &self.on_hit,
        };
        (&mut self.main_stage, self.egress.as_mut(), shared_tables)
    }
}

impl Switch {
    /// Compiles the program, so that plain packets run as machine code from now on. Everything else
    /// is as before.
    ///
    /// # Errors
    /// The program cannot be compiled; the switch continues to interpret it.
    pub fn compile(&mut self) -> Result<(), FastError> {
        self.compile_with(false)
    }

    /// As [`Switch::compile`]; with `assembly` the code is also kept as text.
    ///
    /// # Errors
    /// As there.
    pub fn compile_with(&mut self, assembly: bool) -> Result<(), FastError> {
        let mut fast = FastPath::new(&*self.arch, &self.state, assembly)?;
        if let Some(old) = &self.fast {
            fast.carried_counts = old.all_counted(None);
        }
        self.fast = Some(Box::new(fast));
        Ok(())
    }

    /// Has compiled code take over the tables now; else it does before the next packet, which then
    /// waits for it.
    pub fn load_tables(&mut self) {
        if let Some(fast) = &mut self.fast {
            fast.sync(&mut self.state);
        }
    }

    /// The compiled program, if it is compiled.
    #[must_use]
    pub fn compiled(&self) -> Option<&Compiled> {
        self.fast.as_ref().map(|f| &**f.main_stage.machine.compiled())
    }

    /// The compiled egress of queued packets, if the architecture has any.
    #[must_use]
    pub fn compiled_egress(&self) -> Option<&Compiled> {
        let egress = self.fast.as_ref().and_then(|f| f.egress.as_ref());
        egress.map(|e| &**e.machine.compiled())
    }

    /// The parts of a compiled program that are left to the interpreter, and why.
    #[must_use]
    pub fn left_out(&self) -> &[LeftOut] {
        self.fast.as_ref().map_or(&[], |f| &f.main_stage.fused.left_out)
    }

    /// How long compilation took.
    #[must_use]
    pub fn compile_time(&self) -> Option<Duration> {
        let egress = self.compiled_egress().map_or(Duration::ZERO, Compiled::compile_time);
        self.compiled().map(|c| c.compile_time() + egress)
    }

    /// Whether packets must run one by one: those that stay within the switch would access state
    /// after others that were received later.
    fn is_serial(&self, fast: &FastPath) -> bool {
        self.packet_order == PacketOrder::Serial
            && (fast.egress.is_some() || fast.main_stage.fused.recirculates || self.has_loopback())
            && fast.accesses_state
    }

    /// Bytes that must lie before a packet for [`Switch::forward`].
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.compiled().map_or(0, Compiled::headroom)
    }

    /// For tests: replaces the tables of compiled code by ones made for at least the given number
    /// of entries, however few there are ([`FastTable::with_min_capacity`]), so that tests reach
    /// what it does for large tables only. Those for 100,000 prefixes of keys of 24 to 32 bits
    /// reserve 64 MB each, or 128 MB if the program says that there may be 16,384. As of a clone,
    /// the tables' last hits are those that the state knows, and nothing is profiled.
    pub fn set_least_entries(&mut self, entries: usize) {
        if let Some(fast) = &mut self.fast {
            **fast = fast.with_tables_for(entries);
        }
    }

    /// When code for eight packets at a time is used, from now on.
    pub fn set_lanes(&mut self, lanes: LaneUse) {
        if let Some(fast) = &mut self.fast {
            fast.stages().for_each(|s| s.machine.set_lanes(lanes));
        }
    }

    /// Measures the stages of compiled code from now on, or stops doing so.
    pub fn set_profiling(&mut self, on: bool) {
        if let Some(fast) = &mut self.fast {
            fast.main_stage.machine.set_profiling(on);
        }
    }

    /// The cost of the stages: name of the suspension point, its segment, its lookup.
    #[must_use]
    pub fn stages(&self) -> Vec<(String, StageCount, StageCount)> {
        self.fast
            .as_ref()
            .map_or(Vec::new(), |f| f.main_stage.machine.stages().collect())
    }

    /// Whether plain packets may take the fast path now. They may not if a port may be down: the
    /// switch drops its packets before egress, and compiled code does not.
    pub(crate) fn is_fast(&self) -> bool {
        self.fast.is_some()
            && self.queues.total() == 0
            && self.waiting_is_empty()
            && self.queues.is_unlimited()
            && !self.config.explicit_ports
            && self.all_up
    }

    /// Runs up to [`weir_jit::VECTOR`] packets that lie in memory with room around them
    /// ([`Switch::headroom`] before, [`TAILROOM`] after): packet `i` came in at `ports[i]`. Returns
    /// the verdict for each; [`Switch::advance`] returns copies and the like.
    ///
    /// # Panics
    /// More frames than [`weir_jit::VECTOR`], fewer ports than frames, or a frame with less room
    /// before or after it.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [Frame<'_>], now_ns: u64) -> &[Verdict] {
        assert!(ports.len() >= frames.len(), "every frame came in at a port");
        if !self.is_fast() {
            return self.forward_slowly(ports, frames, now_ns);
        }
        let Some(mut fast) = self.fast.take() else {
            return &[];
        };
        self.now_ns = self.now_ns.max(now_ns);
        // The old values do not matter: all are written.
        self.verdicts.resize(frames.len(), Verdict::Gone);
        self.open_onward(&fast, frames.len());
        self.hold_messages();
        let (before, runs) = (self.ready.len(), self.egress_runs);
        let is_serial = self.is_serial(&fast);
        let mut done = 0;
        while done < frames.len() {
            let end = if is_serial { done + 1 } else { frames.len() };
            let vector = Vector {
                switch: self,
                fast: &mut fast,
                first: done,
                ports: &ports[done..],
                frames: &mut frames[done..end],
            };
            done += weir_jit::dispatch_simd(vector);
            if is_serial {
                self.run_onward(&mut fast);
            }
        }
        if self.async_calls.has_at_once() {
            self.resume_at_once(&mut fast);
        }
        self.release_messages();
        if self.has_onward() {
            self.finish_onward(&mut fast, before);
        } else if self.egress_runs != runs {
            self.forget_onward();
        }
        self.close_onward();
        self.fast = Some(fast);
        &self.verdicts
    }

    fn forward_slowly(&mut self, ports: &[u32], frames: &mut [Frame<'_>], now_ns: u64) -> &[Verdict] {
        self.verdicts.clear();
        for (port, frame) in ports.iter().zip(frames.iter()) {
            let before = self.ready.len();
            self.receive_with(*port, frame.bytes(), now_ns, &mut Defaults, &mut NoTrace);
            self.drain_unlimited_queues();
            self.verdicts.push(self.copies_since(before));
        }
        &self.verdicts
    }

    /// The verdict for a packet before which this number were ready to leave.
    fn copies_since(&self, before: usize) -> Verdict {
        match self.ready.len().saturating_sub(before) {
            0 => Verdict::Gone,
            count => Verdict::Copies(count as u32),
        }
    }

    /// Empties the queues if no port has a rate: then no packet has to wait.
    pub(crate) fn drain_unlimited_queues(&mut self) {
        if self.queues.total() > 0 && self.queues.is_unlimited() {
            let before = self.egress_runs;
            // Compiled code runs, so that packets that wait for externs cannot continue now.
            self.ready = self.empty_queues(&mut Context {
                choices: &mut Defaults,
                tracer: &mut NoTrace,
            });
            self.work_of_driver(self.egress_runs - before);
        }
    }

    /// Receives a packet at any address, by the fast path if possible. [`Switch::advance`] returns
    /// the resulting packets.
    pub fn take(&mut self, port: u32, bytes: &[u8], now_ns: u64) {
        if !self.receive_fast(port, bytes, now_ns) {
            self.receive(port, bytes, now_ns);
            self.drain_unlimited_queues();
        }
    }

    /// Receives one packet by the fast path, if possible. Returns whether it was.
    pub(crate) fn receive_fast(&mut self, port: u32, bytes: &[u8], now_ns: u64) -> bool {
        if !self.is_fast() {
            return false;
        }
        let headroom = self.headroom();
        let Some(fast) = &mut self.fast else { return false };
        let mut buffer = std::mem::take(&mut fast.buffer);
        buffer.clear();
        buffer.resize(headroom, 0);
        buffer.extend_from_slice(bytes);
        buffer.resize(headroom + bytes.len() + TAILROOM, 0);
        if let Some(mut frame) = Frame::new(&mut buffer, headroom, bytes.len()) {
            let verdict = match self.forward(&[port], std::slice::from_mut(&mut frame), now_ns) {
                [verdict] => *verdict,
                _ => Verdict::Gone,
            };
            if let Verdict::Transmit(port) = verdict {
                self.ready.push(Output {
                    port,
                    bytes: frame.bytes().to_vec(),
                    time_ns: self.now_ns,
                });
            }
        }
        if let Some(fast) = &mut self.fast {
            fast.buffer = buffer;
        }
        true
    }
}
