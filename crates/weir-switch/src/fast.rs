//! The compiled way through the switch: plain packets, a vector at a time.
//!
//! A packet takes it where nobody traces it, no choice is to be made by others, queues are empty and no port has
//! a rate. Then what the queue of its port would do to it is known beforehand: nothing. What it asks for
//! beyond being sent to one port (copies, resubmission, digests) the driver does, as for any other packet.

mod counts;
mod host;
#[cfg(test)]
mod tests;

use crate::switch::{Context, Output, Switch};
use counts::Counted;
use host::{Begun, Slots, SwitchHost};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use weir_arch::{
    Architecture, Defaults, DropReason, Env, Fused, FusedExit, FusedPacket, Input, LogMessage, NotCompiled, State,
};
use weir_interp::NoTrace;
use weir_ir::{Bits, Program, TableId, ValueSetId, VarId};
use weir_jit::{CompileError, Compiled, Frame, Job, LaneUse, Machine, Options, StageCount, TAILROOM, VECTOR};
use weir_table::fast::{Epochs, FastTable, Reader};
use weir_table::{Change, Implementation, Table, TableSpec};

/// Why a program has no compiled way.
#[derive(Debug, Error)]
pub enum FastError {
    /// Its architecture has none for it.
    #[error(transparent)]
    NotFused(#[from] NotCompiled),
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] CompileError),
}

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is to be sent to this port, as its frame holds it now.
    Transmit(u32),
    /// So many packets came of it (copies, or itself by a way that is not compiled): of those that the next
    /// [`Switch::advance`] gives, in the order of the fates.
    Copies(u32),
    /// It was dropped and counted, or it waits in a queue.
    Gone,
}

/// What a hit of a table does besides naming an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnHit {
    Nothing,
    /// Direct counters count.
    Count,
    /// The same, but the table itself counts for them ([`FastTable::keeps_counts`]).
    CountThere,
    /// Direct meters run, or the action must be resolved.
    Ask,
}

/// A compiled pipeline with its tables.
pub(crate) struct FastPath {
    fused: Arc<Fused>,
    machine: Machine,
    tables: Vec<Arc<FastTable>>,
    /// Of all tables.
    reader: Reader,
    /// Whose hits must tell the entry's handle to somebody who does not count them.
    handles: Arc<[bool]>,
    /// What was counted by tables that these replace, until the state is told.
    carried: Counted,
    sets: Vec<FastTable>,
    set_specs: Arc<[TableSpec]>,
    on_hit: Arc<[OnHit]>,
    /// Of packets that the architecture is asked about; see [`Begun`].
    packets: Vec<FusedPacket>,
    /// All ones in as many bits as each input has.
    input_masks: Vec<u64>,
    /// Bytes of the packets as they came.
    lengths: Box<[u64; VECTOR]>,
    /// Room for a packet that comes without.
    buffer: Vec<u8>,
    /// The tables hold nothing yet.
    is_fresh: bool,
    /// For so many entries tables are made at least.
    least_entries: usize,
}

impl Clone for FastPath {
    fn clone(&self) -> Self {
        self.with_tables_for(self.least_entries)
    }
}

impl FastPath {
    /// The same code; tables of its own, for at least so many entries, which take everything anew. What those here have counted it tells its own state when these do.
    fn with_tables_for(&self, least_entries: usize) -> Self {
        let program = &self.fused.pipeline.program;
        let mut machine = Machine::new(Arc::clone(self.machine.compiled()));
        machine.set_lanes(self.machine.lanes());
        let epochs = Arc::new(Epochs::new());
        FastPath {
            fused: Arc::clone(&self.fused),
            machine,
            tables: fast_tables(program, self.fused.selectors, &epochs, &self.handles, &self.on_hit)
                .map(|table| match least_entries {
                    0 => Arc::new(table),
                    least => Arc::new(table.for_at_least(least)),
                })
                .collect(),
            reader: epochs.reader(),
            handles: Arc::clone(&self.handles),
            carried: self.all_counted(None),
            sets: self.set_specs.iter().map(FastTable::new).collect(),
            set_specs: Arc::clone(&self.set_specs),
            on_hit: Arc::clone(&self.on_hit),
            packets: vec![FusedPacket::default(); VECTOR],
            input_masks: self.input_masks.clone(),
            lengths: Box::new([0; VECTOR]),
            buffer: Vec::new(),
            is_fresh: true,
            least_entries,
        }
    }
}

/// Tables for the program, with the extern types that are selectors; of which the handles of hits matter besides for counting, `handles` says by
/// number.
fn fast_tables(
    program: &Program,
    selectors: &[&str],
    epochs: &Arc<Epochs>,
    handles: &[bool],
    on_hit: &[OnHit],
) -> impl Iterator<Item = FastTable> {
    program.tables.iter().map(|(id, _)| {
        let spec = TableSpec::from_program(program, id, selectors);
        let new = match (handles.get(id.index()), on_hit.get(id.index())) {
            (Some(false), Some(OnHit::Count | OnHit::CountThere)) => FastTable::with_counts,
            (Some(false), _) => FastTable::without_handles,
            _ => FastTable::with_epochs,
        };
        new(&spec, Arc::clone(epochs))
    })
}

impl FastPath {
    fn new(arch: &dyn Architecture, state: &State, assembly: bool) -> Result<Self, FastError> {
        let fused = Arc::new(arch.fused()?);
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
                    (false, _) => OnHit::Ask,
                    (true, false) => OnHit::Count,
                    (true, true) => OnHit::Nothing,
                }
            })
            .collect();
        let options = Options {
            assembly,
            plain: on_hit.iter().map(|on| *on != OnHit::Ask).collect(),
        };
        let compiled = Arc::new(Compiled::new(Arc::clone(&fused.pipeline), options)?);
        let handles: Arc<[bool]> = (program.tables.ids().zip(on_hit.iter()))
            .map(|(id, on_hit)| *on_hit == OnHit::Ask || compiled.reads_handles(id))
            .collect();
        let epochs = Arc::new(Epochs::new());
        let tables: Vec<Arc<FastTable>> = fast_tables(program, fused.selectors, &epochs, &handles, &on_hit)
            .map(Arc::new)
            .collect();
        let on_hit = (on_hit.iter().zip(&tables))
            .map(|(on_hit, table)| match on_hit {
                OnHit::Count if table.keeps_counts() => OnHit::CountThere,
                on_hit => *on_hit,
            })
            .collect();
        Ok(FastPath {
            machine: Machine::new(compiled),
            tables,
            reader: epochs.reader(),
            handles,
            carried: Counted::default(),
            sets: set_specs.iter().map(FastTable::new).collect(),
            set_specs,
            on_hit,
            packets: vec![FusedPacket::default(); VECTOR],
            input_masks: fused
                .pipeline
                .inputs
                .iter()
                .map(|v| ones(program.vars[*v].ty.width()))
                .collect(),
            lengths: Box::new([0; VECTOR]),
            buffer: Vec::new(),
            is_fresh: true,
            least_entries: 0,
            fused,
        })
    }

    /// Takes over what changed about the tables.
    #[inline]
    fn sync(&mut self, state: &mut State) {
        if state.take_touched() || self.is_fresh {
            self.take_over(state);
        }
    }

    #[inline(never)]
    fn take_over(&mut self, state: &mut State) {
        let is_fresh = std::mem::take(&mut self.is_fresh);
        if !self.carried.is_empty() {
            for ((table, handle), hits) in std::mem::take(&mut self.carried) {
                state.add_hits(table, handle, hits);
            }
        }
        for (index, fast) in self.tables.iter().enumerate() {
            if let Some(table) = state.table_mut(TableId::new(index)) {
                if is_fresh {
                    table.table.forget_changes();
                }
                if table.table.has_changed() {
                    // Nobody is looking anything up now, and the tables change nowhere else: what is taken out of them is freed at once.
                    self.reader.offline();
                    take_over_changes(&mut table.table, fast);
                    self.reader.quiescent();
                }
            }
        }
        for (index, fast) in self.sets.iter().enumerate() {
            if let Some(set) = state.value_set_mut(ValueSetId::new(index)) {
                if is_fresh {
                    set.forget_changes();
                }
                if set.has_changed() {
                    take_over_changes(set, fast);
                    self.machine.load_value_set(ValueSetId::new(index), fast);
                }
            }
        }
        // What was taken over has not been changed since.
        state.take_touched();
    }

    /// When an entry was hit last, as far as compiled code knows.
    pub(crate) fn last_hit_ns(&self, table: TableId, handle: u32) -> Option<u64> {
        self.tables.get(table.index())?.last_hit_ns(handle)
    }
}

/// Does to the fast table what has been done to the other one.
#[cold]
fn take_over_changes(table: &mut Table, fast: &FastTable) {
    fast.together(|changes| {
        for change in table.take_changes() {
            match change {
                Change::Everything => {
                    changes.set_default(table.default_action());
                    changes.bulk_load(&mut table.entries());
                }
                Change::Put(handle) => {
                    if let Some(entry) = table.entry(handle) {
                        changes.insert(entry);
                    }
                }
                Change::Taken(entry) => changes.remove(&entry),
                Change::Default => changes.set_default(table.default_action()),
            }
        }
    });
}

/// [`Switch::run_vector`], and what it needs.
struct Vector<'a, 'f> {
    switch: &'a mut Switch,
    fast: &'a mut FastPath,
    first: usize,
    ports: &'a [u32],
    frames: &'a mut [Frame<'f>],
}

impl Job for Vector<'_, '_> {
    type Result = usize;

    #[inline(always)]
    fn run(self) -> usize {
        self.switch.run_vector(self.fast, self.first, self.ports, self.frames)
    }
}

/// Packets of a vector that the driver goes on with.
struct Waiting {
    slots: u64,
    /// Those that were [`Begun`].
    begun: u64,
    /// What was logged of any packet, with its slot.
    logged: Vec<(usize, LogMessage)>,
}

impl Switch {
    /// Compiles the program, so that plain packets run as machine code from now on. Everything else is as before.
    ///
    /// # Errors
    /// The program cannot be compiled; the switch goes on interpreting it.
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
            fast.carried = old.all_counted(None);
        }
        self.fast = Some(Box::new(fast));
        Ok(())
    }

    /// Has compiled code take over the tables now; else it does before the next packet, which then waits for it.
    pub fn load_tables(&mut self) {
        if let Some(fast) = &mut self.fast {
            fast.sync(&mut self.state);
        }
    }

    /// The compiled program, if it is compiled.
    #[must_use]
    pub fn compiled(&self) -> Option<&Compiled> {
        self.fast.as_ref().map(|f| &**f.machine.compiled())
    }

    /// How long compilation took.
    #[must_use]
    pub fn compile_time(&self) -> Option<Duration> {
        self.compiled().map(Compiled::compile_time)
    }

    /// Bytes that must lie before a packet for [`Switch::forward`].
    #[must_use]
    pub fn headroom(&self) -> usize {
        self.compiled().map_or(0, Compiled::headroom)
    }

    /// For tests: has compiled code look into tables made for at least so many entries from now on, however few there are
    /// ([`FastTable::for_at_least`]), and so do what it else does only where tables are large. Those for 100,000 prefixes of keys of 24 to 32 bits reserve 64 MB each, or 128 MB if
    /// the program says that there may be 16,384. As of a clone, the tables' last hits are those that the state knows, and nothing is profiled.
    pub fn set_least_entries(&mut self, entries: usize) {
        if let Some(fast) = &mut self.fast {
            **fast = fast.with_tables_for(entries);
        }
    }

    /// When code for eight packets at a time is used, from now on.
    pub fn set_lanes(&mut self, lanes: LaneUse) {
        if let Some(fast) = &mut self.fast {
            fast.machine.set_lanes(lanes);
        }
    }

    /// Measures the stages of compiled code from now on, or stops doing so.
    pub fn set_profiling(&mut self, on: bool) {
        if let Some(fast) = &mut self.fast {
            fast.machine.set_profiling(on);
        }
    }

    /// What stages took: name of the suspension point, its segment, its lookup.
    #[must_use]
    pub fn stages(&self) -> Vec<(String, StageCount, StageCount)> {
        self.fast.as_ref().map_or(Vec::new(), |f| f.machine.stages().collect())
    }

    /// Whether plain packets may take the compiled way now. Not where a port may be unusable: that a packet for it is
    /// dropped before egress, compiled code does not know.
    fn is_fast(&self) -> bool {
        self.fast.is_some()
            && self.queues.total() == 0
            && self.waiting_is_empty()
            && self.queues.is_unlimited()
            && !self.has_loopback()
            && !self.config.explicit_ports
            && self.all_up
    }

    /// Runs up to [`VECTOR`] packets that lie in memory with room around them ([`Switch::headroom`] before,
    /// [`TAILROOM`] behind): packet `i` came in at `ports[i]`. The answer says for each what became of it; copies and
    /// the like come out of [`Switch::advance`].
    ///
    /// # Panics
    /// More frames than [`VECTOR`], or fewer ports than frames.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [Frame<'_>], now_ns: u64) -> &[Fate] {
        assert!(ports.len() >= frames.len(), "every frame came in at a port");
        if !self.is_fast() {
            return self.forward_slowly(ports, frames, now_ns);
        }
        let Some(mut fast) = self.fast.take() else {
            return &[];
        };
        self.now_ns = self.now_ns.max(now_ns);
        // What they were before does not matter: all are written.
        self.fates.resize(frames.len(), Fate::Gone);
        let mut done = 0;
        while done < frames.len() {
            let vector = Vector {
                switch: self,
                fast: &mut fast,
                first: done,
                ports: &ports[done..],
                frames: &mut frames[done..],
            };
            done += weir_jit::widely(vector);
        }
        self.fast = Some(fast);
        &self.fates
    }

    fn forward_slowly(&mut self, ports: &[u32], frames: &mut [Frame<'_>], now_ns: u64) -> &[Fate] {
        self.fates.clear();
        for (port, frame) in ports.iter().zip(frames.iter()) {
            let before = self.ready.len();
            self.receive_with(*port, frame.bytes(), now_ns, &mut Defaults, &mut NoTrace);
            self.leave_at_once();
            self.fates.push(self.copies_since(before));
        }
        &self.fates
    }

    /// What came of a packet before which so many were ready to leave.
    fn copies_since(&self, before: usize) -> Fate {
        match self.ready.len().saturating_sub(before) {
            0 => Fate::Gone,
            count => Fate::Copies(count as u32),
        }
    }

    /// Where no port has a rate, nothing has to wait in a queue: not even for the packets after it.
    fn leave_at_once(&mut self) {
        if self.queues.total() > 0 && self.queues.is_unlimited() {
            self.ready = self.drain();
        }
    }

    /// Of packets one of which is too long: runs the first, or drops it.
    #[cold]
    fn run_first(&mut self, fast: &mut FastPath, at: usize, ports: &[u32], frames: &mut [Frame<'_>]) -> usize {
        let length = frames[0].place().1;
        if length <= self.config.max_packet_bytes {
            return self.run_vector(fast, at, &ports[..1], &mut frames[..1]);
        }
        self.stats.received(ports[0], length);
        self.stats.dropped(DropReason::TooLong, None);
        self.fates[at] = Fate::Gone;
        1
    }

    /// Runs packets whose fates are those from `first` on; gives how many.
    #[inline(always)]
    fn run_vector(&mut self, fast: &mut FastPath, first: usize, ports: &[u32], frames: &mut [Frame<'_>]) -> usize {
        fast.sync(&mut self.state);
        let many = frames.len();
        let mut loaded = fast.machine.load(frames);
        fast.lengths.copy_from_slice(loaded.lengths());
        let lengths = &*fast.lengths;
        // All bits of all lengths: no length is larger, and it is found faster than the longest.
        let bits = lengths[..many].iter().fold(0, |a, b| a | b);
        let longest = self.config.max_packet_bytes as u64;
        if bits > longest && lengths[..many].iter().any(|l| *l > longest) {
            return self.run_first(fast, first, ports, frames);
        }
        for (i, (input, mask)) in fast.fused.inputs.iter().zip(&fast.input_masks).enumerate() {
            if !loaded.reads_input(i) {
                continue;
            }
            let row = loaded.input_row(i);
            match input {
                Input::NowUs => row.fill((self.now_ns / 1000) & mask),
                Input::NowNs => row.fill(self.now_ns & mask),
                Input::Port => row
                    .iter_mut()
                    .zip(ports)
                    .for_each(|(word, port)| *word = u64::from(*port) & mask),
                Input::PortMetadata(word) => {
                    let mut known = None;
                    for (to, port) in row.iter_mut().zip(ports) {
                        // Packets of a port come one after the other.
                        let (_, value) = match known {
                            Some((of, value)) if of == *port => (of, value),
                            _ => (*port, port_metadata(&self.state, *port, *word)),
                        };
                        known = Some((*port, value));
                        *to = value & mask;
                    }
                }
                Input::Length => row
                    .iter_mut()
                    .zip(lengths)
                    .for_each(|(word, length)| *word = length & mask),
            }
        }
        let mut host = SwitchHost {
            arch: &*self.arch,
            state: &mut self.state,
            fused: &fast.fused,
            packets: Begun {
                packets: &mut fast.packets,
                lengths,
                begun: 0,
            },
            on_hit: &fast.on_hit,
            tables: &fast.tables,
            sets: &fast.sets,
            log: None,
            logged: Vec::new(),
            now_ns: self.now_ns,
        };
        let count = loaded.run(&fast.tables, &fast.reader.enter(), &mut host, self.now_ns);
        let (begun, log, logged) = (host.packets.begun, host.log, host.logged);
        if let Some(log) = log {
            self.state.log = log;
        }
        let (mut continuing, mut transmitted, all) = (0, 0, u64::MAX >> (64 - count));
        let (ports, came) = (&ports[..count], &lengths[..count]);
        let mut are_counted = false;
        let fates = &mut self.fates[first..first + count];
        for (exit, left) in fast.fused.exits.iter().zip(fast.machine.all_left()) {
            let left = *left;
            match exit {
                _ if left == 0 => {}
                FusedExit::Transmit(var) => {
                    let (out, lengths) = (fast.machine.row(*var), fast.machine.lengths());
                    transmitted |= left;
                    if left == all {
                        for (fate, port) in fates.iter_mut().zip(out) {
                            *fate = Fate::Transmit(*port as u32);
                        }
                        self.stats.passed_all(ports, came, &out[..count], &lengths[..count]);
                        are_counted = true;
                    } else {
                        let (mut sent, mut bytes, mut some) = ([0; VECTOR], [0; VECTOR], 0);
                        for slot in Slots(left) {
                            (sent[some], bytes[some]) = (out[slot], lengths[slot]);
                            fates[slot] = Fate::Transmit(out[slot] as u32);
                            some += 1;
                        }
                        self.stats.sent_all(&sent[..some], &bytes[..some]);
                    }
                }
                FusedExit::Finish(var) => {
                    let (now_ns, out) = (self.now_ns, fast.machine.row(*var));
                    transmitted |= left;
                    for slot in Slots(left) {
                        let frame = &mut frames[slot];
                        let front = self.arch.fused_finish(frame.bytes_mut(), now_ns);
                        frame.skip(front);
                        fates[slot] = Fate::Transmit(out[slot] as u32);
                        self.stats.sent_all(&out[slot..=slot], &[frame.place().1 as u64]);
                    }
                }
                FusedExit::Drop(reason) => self.stats.dropped_many(*reason, left.count_ones().into()),
                FusedExit::Driver { .. } => continuing |= left,
            }
        }
        if !are_counted {
            self.stats.received_all(ports, came);
        }
        for slot in Slots(all & !transmitted) {
            fates[slot] = Fate::Gone;
        }
        if continuing != 0 || !logged.is_empty() {
            let packets = Waiting {
                slots: continuing,
                begun,
                logged,
            };
            self.go_on_all(fast, first, packets, ports, frames);
        }
        count
    }

    /// The driver takes over packets, and what was logged is put into the log, as if the packets had come one after the
    /// other.
    #[cold]
    fn go_on_all(
        &mut self,
        fast: &mut FastPath,
        first: usize,
        packets: Waiting,
        ports: &[u32],
        frames: &mut [Frame<'_>],
    ) {
        let Waiting {
            slots,
            begun,
            mut logged,
        } = packets;
        logged.sort_by_key(|(slot, _)| *slot);
        let mut logged = logged.into_iter().peekable();
        for slot in Slots(slots) {
            while let Some((_, message)) = logged.next_if(|(of, _)| *of <= slot) {
                self.state.log.push(message);
            }
            if begun >> slot & 1 == 0 {
                fast.packets[slot].begin(fast.lengths[slot] as usize);
            }
            let ready = self.ready.len();
            self.go_on(fast, slot, ports[slot], frames[slot].bytes());
            self.leave_at_once();
            self.fates[first + slot] = self.copies_since(ready);
        }
        logged.for_each(|(_, message)| self.state.log.push(message));
    }

    /// The driver takes over a packet.
    fn go_on(&mut self, fast: &mut FastPath, slot: usize, port: u32, bytes: &[u8]) {
        let exits: Vec<(u32, bool)> = (0..)
            .zip(&fast.fused.exits)
            .filter_map(|(exit, what)| match what {
                FusedExit::Driver { after_egress } => Some((exit, *after_egress)),
                _ => None,
            })
            .filter(|(exit, _)| fast.machine.left(*exit) >> slot & 1 == 1)
            .collect();
        for (exit, after_egress) in exits {
            let values: Vec<(VarId, Bits)> = fast
                .machine
                .exit_values(exit)
                .map(|v| (v, fast.machine.value(slot, v)))
                .collect();
            self.allow_work();
            self.work = self.work.saturating_sub(after_egress.into());
            let arch = Arc::clone(&self.arch);
            let mut env = Env {
                state: &mut self.state,
                now_ns: self.now_ns,
                choices: &mut Defaults,
                tracer: &mut NoTrace,
            };
            let actions = arch.fused_exit(&mut env, exit, &mut fast.packets[slot], port, bytes, &values);
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

    /// Takes a packet that lies anywhere, by the compiled way where it may go there. What comes of it, [`Switch::advance`]
    /// gives.
    pub fn take(&mut self, port: u32, bytes: &[u8], now_ns: u64) {
        if !self.receive_fast(port, bytes, now_ns) {
            self.receive(port, bytes, now_ns);
            self.leave_at_once();
        }
    }

    /// Takes one packet the compiled way, if it may go there. Whether it did.
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
            let fate = match self.forward(&[port], std::slice::from_mut(&mut frame), now_ns) {
                [fate] => *fate,
                _ => Fate::Gone,
            };
            if let Fate::Transmit(port) = fate {
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

/// Eight bytes of what is known of a port, as a number; zeros where nothing is.
fn port_metadata(state: &State, port: u32, word: usize) -> u64 {
    let known = state.port_metadata.get(&port);
    let bytes = known.and_then(|bytes| bytes.get(word * 8..)).unwrap_or_default();
    (0..8).fold(0, |number, at| {
        number << 8 | bytes.get(at).copied().map_or(0, u64::from)
    })
}

/// All ones in so many bits.
fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}
