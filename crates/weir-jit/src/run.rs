//! Running compiled pipelines.

pub(crate) mod calls;
mod cells;
mod frame;
mod host;
mod matrix;
mod outcomes;
pub(crate) mod steps;

pub use frame::Frame;
pub use host::{Host, Indexes, LookedUp};

use crate::compile::Compiled;
use crate::layout::{NOT_LOOKED_UP, PITCH, PointKind, ROW_EMITTED, ROW_LENGTH, ROW_PACKET, ROW_SCRATCH, VECTOR};
use crate::sites::{Scalar, from_words};
use cells::CellArrays;
use matrix::Matrix;
use outcomes::outcomes;
use std::sync::{Arc, Weak};
use steps::{Step, Wanted};
use weir_ir::{Bits, ValueSetId, VarId};
use weir_table::fast::{FastTable, Guard, PendingLookup, PrefetchQueue, SlotAddressing};

/// Bytes that must lie behind a packet in its memory: code reads a little beyond the end.
pub const TAILROOM: usize = 64;

/// What stays the same while a vector runs.
struct Run<'a> {
    compiled: &'a Compiled,
    tables: &'a [Arc<FastTable>],
    /// Of the tables' epochs.
    guard: &'a Guard<'a>,
    now_ns: u64,
}

/// What segments are given besides contexts. The order of the first fields is known to code generation.
#[repr(C)]
pub(crate) struct Env {
    pending: *mut u64,
    arguments: *mut u64,
    tallies: *mut u64,
    members: *const u64,
    zeros: *const u8,
    cells: *const [usize; 2],
    /// Arguments of functions of the runtime that are called rarely, and what they return.
    exchange: [u64; 3],
    /// Memory in place of a packet's.
    nowhere: *mut u8,
    /// Of tables that code looks into by itself the addresses that are [`weir_table::fast::ResultArray`].
    arrays: *const [usize; 2],
    /// Of tables of whose slots code asks for some, where slots are; 0 where there are none.
    asks: *const SlotAddressing,
    context: *const u64,
    compiled: *const Compiled,
    host: *mut HostPointer,
}

// Where code finds them.
const _: () = {
    use crate::codegen::env;
    use std::mem::offset_of;
    assert!(offset_of!(Env, pending) == env::PENDING as usize);
    assert!(offset_of!(Env, arguments) == env::ARGUMENTS as usize);
    assert!(offset_of!(Env, tallies) == env::TALLIES as usize);
    assert!(offset_of!(Env, members) == env::MEMBERS as usize);
    assert!(offset_of!(Env, zeros) == env::ZEROS as usize);
    assert!(offset_of!(Env, cells) == env::CELLS as usize);
    assert!(offset_of!(Env, exchange) == env::EXCHANGE as usize);
    assert!(offset_of!(Env, nowhere) == env::NOWHERE as usize);
    assert!(offset_of!(Env, arrays) == env::ARRAYS as usize);
    assert!(offset_of!(Env, asks) == env::ASKS as usize);
};

/// Bytes before the scratch area that are copied with it.
pub(crate) const SCRATCH_LEAD: usize = 32;

/// A fat pointer behind a thin one.
struct HostPointer(*mut (dyn Host + 'static));

/// Packets and cycles of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageCount {
    /// Packets.
    pub packets: u64,
    /// Vectors.
    pub runs: u64,
    /// Cycles of the time-stamp counter, or nanoseconds where there is none.
    pub cycles: u64,
}

/// Reads the time-stamp counter; nanoseconds where there is none.
#[must_use]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::time::Instant;
        thread_local!(static START: Instant = Instant::now());
        START.with(|s| s.elapsed().as_nanos() as u64)
    }
}

/// When code for eight packets at a time is used, where the processor has what it needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaneUse {
    /// Where there are enough of them.
    #[default]
    Many,
    /// Whenever there is such code. It takes longer where packets are few: this is for tests.
    Always,
    /// Never.
    Never,
}

impl LaneUse {
    /// Whether code for eight packets takes less time than code for one.
    #[inline]
    fn is_worth(self, packets: u64) -> bool {
        match self {
            // Mostly all are there, and counting is long where there is no instruction for it.
            LaneUse::Many => packets == u64::MAX || packets.count_ones() >= LEAST_LANES,
            LaneUse::Always => true,
            LaneUse::Never => false,
        }
    }
}

/// With fewer packets of a vector code for one at a time is faster.
const LEAST_LANES: u32 = 16;

/// Memory to run a pipeline in. One per worker; everything is taken when it is made.
pub struct Machine {
    compiled: Arc<Compiled>,
    memory: Memory,
}

struct Memory {
    context: Matrix,
    scratch: Vec<u8>,
    /// What code for eight packets reads and writes of those that are none.
    nowhere: Vec<u8>,
    lanes: LaneUse,
    arguments: Vec<u64>,
    tallies: Vec<u64>,
    pending: Vec<u64>,
    /// Of small value sets a bit per value.
    members: Vec<u64>,
    /// Of arrays that code reads and writes itself their cells.
    cells: CellArrays,
    /// Tables that code looks into by itself, while it runs.
    arrays: Vec<[usize; 2]>,
    /// Where the slots of tables are, while code runs that asks for some.
    asks: Vec<SlotAddressing>,
    /// The segment before has been run for eight packets at a time, and so has asked.
    has_asked: bool,
    /// What the next lookup asks for.
    fetches: PrefetchQueue,
    /// Hits of lookups that were done ahead, of which the host is told when the vector has ended; by the number of the mask of those who got there.
    ahead_hits: Vec<u64>,
    /// Varbits of packets that left by exits that keep them.
    varbits: Vec<(usize, VarId, Bits)>,
    /// Per point: the segment that begins there, and the lookup before it. `None`: nobody asked.
    profile: Option<Vec<[StageCount; 2]>>,
    /// Tables that are known to be of the program's forms. A weak reference keeps its address from
    /// being used for another table.
    checked: Vec<Weak<FastTable>>,
}

impl Machine {
    /// A machine for a pipeline.
    #[must_use]
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let layout = &compiled.layout;
        let mut context = Matrix::new((layout.row_count + 1) * PITCH);
        for (_, heads) in &compiled.steps.arrays {
            context[heads.clone()].fill(NOT_LOOKED_UP);
        }
        let mut scratch = vec![0; SCRATCH_LEAD + compiled.scratch * VECTOR + 16];
        for slot in 0..VECTOR {
            let area = &mut scratch[SCRATCH_LEAD + slot * compiled.scratch..];
            context[ROW_SCRATCH * PITCH + slot] = area.as_mut_ptr().expose_provenance() as u64;
        }
        let memory = Memory {
            context,
            scratch,
            nowhere: vec![0; compiled.reach],
            lanes: LaneUse::default(),
            arguments: vec![0; compiled.sites.argument_words + 8],
            tallies: vec![0; compiled.sites.tally_words],
            members: vec![0; compiled.sites.members.words()],
            pending: vec![0; layout.points.len()],
            cells: CellArrays::default(),
            arrays: Vec::with_capacity(layout.arrays.len()),
            asks: Vec::with_capacity(compiled.steps.asked.len()),
            has_asked: false,
            fetches: PrefetchQueue::default(),
            ahead_hits: vec![0; layout.reached],
            varbits: Vec::new(),
            profile: None,
            checked: Vec::new(),
        };
        Machine { compiled, memory }
    }

    /// The pipeline.
    #[must_use]
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// When code for eight packets at a time is used.
    #[must_use]
    pub fn lanes(&self) -> LaneUse {
        self.memory.lanes
    }

    /// Decides when code for eight packets at a time is used.
    pub fn set_lanes(&mut self, lanes: LaneUse) {
        self.memory.lanes = lanes;
    }

    /// Measures stages from now on, or stops doing so.
    pub fn set_profiling(&mut self, on: bool) {
        self.memory.profile = on.then(|| vec![[StageCount::default(); 2]; self.compiled.layout.points.len()]);
    }

    /// What stages took since profiling was switched on: per suspension point its name, its segment and its
    /// lookup.
    pub fn stages(&self) -> impl Iterator<Item = (String, StageCount, StageCount)> + '_ {
        let counts = self.memory.profile.as_deref().unwrap_or(&[]);
        counts
            .iter()
            .enumerate()
            .filter(|(i, _)| !matches!(self.compiled.layout.points[*i].kind, PointKind::Exit(_)))
            .map(|(i, [segment, lookup])| (self.compiled.point_name(i), *segment, *lookup))
    }

    /// Takes over the members of a value set, to be called whenever they have changed. Sets that code does not look into
    /// itself are asked for by [`Host::value_set_contains`].
    pub fn load_value_set(&mut self, set: ValueSetId, members: &FastTable) {
        let Some(words) = self.compiled.sites.members.of(set) else {
            return;
        };
        let mut results = vec![0; members.result_layout().words * VECTOR];
        for (number, word) in self.memory.members[words].iter_mut().enumerate() {
            let keys: [u64; VECTOR] = std::array::from_fn(|i| (number * VECTOR + i) as u64);
            *word = members.lookup(u64::MAX, &keys, &mut results, VECTOR, 0);
        }
    }

    /// Takes packets, at most [`VECTOR`], to be run: slot `i` is frame `i`.
    ///
    /// # Panics
    /// More frames than slots, or a frame without the room before it that [`Compiled::headroom`] asks for.
    #[inline(always)]
    pub fn load<'a, 'f>(&'a mut self, frames: &'a mut [Frame<'f>]) -> Loaded<'a, 'f> {
        assert!(frames.len() <= VECTOR, "a vector has {VECTOR} slots");
        let headroom = self.compiled.headroom();
        let has_room = |frame: &Frame<'_>| frame.place().0 >= headroom;
        assert!(
            headroom == 0 || frames.iter().all(has_room),
            "a frame needs {headroom} bytes before it"
        );
        let (packets, rest) = self.memory.context.split_at_mut(ROW_LENGTH * PITCH);
        let rows = packets[ROW_PACKET * PITCH..].iter_mut().zip(rest);
        for (frame, (packet, length)) in frames.iter_mut().zip(rows) {
            [*packet, *length] = frame.words();
        }
        Loaded { machine: self, frames }
    }

    /// Slots that left by an exit.
    #[must_use]
    #[inline]
    pub fn left(&self, exit: u32) -> u64 {
        self.all_left().get(exit as usize).copied().unwrap_or(0)
    }

    /// By exit the slots that left by it.
    #[must_use]
    #[inline]
    pub fn all_left(&self) -> &[u64] {
        &self.memory.pending[self.compiled.layout.first_exit()..]
    }

    /// Variables that an exit keeps.
    pub fn exit_values(&self, exit: u32) -> impl Iterator<Item = VarId> + '_ {
        let point = self.compiled.layout.of_exit.get(exit as usize);
        point
            .into_iter()
            .flat_map(|&p| self.compiled.layout.points[p].handed_over.iter().copied())
    }

    /// A narrow variable (at most 64 bits) that an exit keeps, of a slot that left by it.
    #[must_use]
    pub fn narrow(&self, slot: usize, var: VarId) -> u64 {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => self.memory.context[row * PITCH + slot],
            _ => 0,
        }
    }

    /// The same for all slots: what is kept of a narrow variable, of slots that left by an exit that keeps it. Empty
    /// where no exit keeps it.
    #[must_use]
    #[inline]
    pub fn row(&self, var: VarId) -> &[u64] {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => &self.memory.context[row * PITCH..row * PITCH + VECTOR],
            _ => &[],
        }
    }

    /// The lengths of packets now, in bytes.
    #[must_use]
    #[inline]
    pub fn lengths(&self) -> &[u64] {
        &self.memory.context[ROW_LENGTH * PITCH..ROW_LENGTH * PITCH + VECTOR]
    }

    /// A variable of any width that an exit keeps, of a slot that left by it.
    #[must_use]
    pub fn value(&self, slot: usize, var: VarId) -> Bits {
        let scalar = Scalar::from(self.compiled.vars[var.index()]);
        let Some(&Some(row)) = self.compiled.layout.rows.get(var.index()) else {
            return Bits::zero(if scalar.varbit { 0 } else { scalar.width });
        };
        if scalar.varbit {
            let kept = self.memory.varbits.iter().find(|(s, v, _)| (*s, *v) == (slot, var));
            return kept.map_or(Bits::zero(0), |(_, _, value)| value.clone());
        }
        let words: Vec<u64> = (0..scalar.words())
            .map(|i| self.memory.context[(row + i) * PITCH + slot])
            .collect();
        from_words(scalar.width, &words)
    }
}

/// Packets in a machine.
pub struct Loaded<'a, 'f> {
    machine: &'a mut Machine,
    frames: &'a mut [Frame<'f>],
}

impl Loaded<'_, '_> {
    /// The lengths of the packets, in bytes, and something for the slots without one.
    #[must_use]
    #[inline]
    pub fn lengths(&self) -> &[u64] {
        self.machine.lengths()
    }

    /// Whether code reads an input at all; else it need not be set.
    #[must_use]
    #[inline]
    pub fn reads_input(&self, input: usize) -> bool {
        self.machine.compiled.inputs_read[input]
    }

    /// Sets an input, slot by slot from the first on; slots for which there is no value keep
    /// theirs. It is to be set each time. Positions are those of
    /// [`weir_ir::pipeline::Pipeline::inputs`]; bits beyond the input's width are cut off.
    ///
    /// # Panics
    /// There is no such input.
    #[inline(always)]
    pub fn set_input(&mut self, input: usize, values: impl Iterator<Item = u64>) {
        if let Some((row, mask)) = self.machine.compiled.input_rows[input] {
            let words = &mut self.machine.memory.context[row * PITCH..row * PITCH + VECTOR];
            words
                .iter_mut()
                .zip(values)
                .for_each(|(word, value)| *word = value & mask);
        }
    }

    /// Runs them. Afterwards [`Machine::left`] says which left by which exit, and the frames hold what was made of them.
    ///
    /// Gives how many of the frames were run: where packets run one by one, none after one that goes on elsewhere
    /// ([`weir_ir::pipeline::Exit::touches`]), for what it does there comes before them.
    ///
    /// # Panics
    /// Fewer tables than the program has, tables of other specifications, or of other epochs than the guard.
    #[inline(always)]
    pub fn run(self, tables: &[Arc<FastTable>], guard: &Guard<'_>, host: &mut impl Host, now_ns: u64) -> usize {
        let Machine { compiled, memory } = self.machine;
        memory.check_tables(compiled, tables);
        let mut count = self.frames.len();
        memory.pending.fill(0);
        memory.cells.take(&compiled.sites.arrays, host);
        let run = Run {
            compiled,
            tables,
            guard,
            now_ns,
        };
        if compiled.serial.is_some() {
            count = memory.go_one_by_one(&run, count, host);
        } else if count > 0 {
            memory.go(&run, u64::MAX >> (64 - count), host);
        }
        memory.count_tallies(compiled, host);
        if compiled.keeps_varbits {
            memory.keep_varbits(compiled);
        }
        if !compiled.in_place {
            memory.put_headers(compiled);
            let (packets, lengths) = memory.context.split_at(ROW_LENGTH * PITCH);
            let rows = packets[ROW_PACKET * PITCH..].iter().zip(lengths);
            for (frame, (packet, length)) in self.frames[..count].iter_mut().zip(rows) {
                // SAFETY: they are as `load` wrote them, or as the code of an exit that deparses left them: where the packet begins in its memory, and how long
                // it is there.
                unsafe { frame.put(*packet, *length) };
            }
        }
        count
    }
}

impl Memory {
    /// Makes sure that tables are those that code was made for: it relies on their form for its own
    /// memory accesses.
    #[inline(always)]
    fn check_tables(&mut self, compiled: &Compiled, tables: &[Arc<FastTable>]) {
        let is_known = |(known, table): (&Weak<FastTable>, &Arc<FastTable>)| known.as_ptr() == Arc::as_ptr(table);
        let all = self.checked.len() == compiled.forms.len() && tables.len() >= compiled.forms.len();
        if !(all && self.checked.iter().zip(tables).all(is_known)) {
            self.check_new_tables(compiled, tables);
        }
    }

    #[cold]
    fn check_new_tables(&mut self, compiled: &Compiled, tables: &[Arc<FastTable>]) {
        assert!(tables.len() >= compiled.forms.len(), "every table must be there");
        for (number, (form, table)) in compiled.forms.iter().zip(tables).enumerate() {
            assert!(
                form == table.form(),
                "table {number} has another specification than the program's"
            );
        }
        self.checked = tables[..compiled.forms.len()].iter().map(Arc::downgrade).collect();
    }

    /// Runs the packets of the first slots one by one, up to one that goes on elsewhere; gives how many.
    #[inline(never)]
    fn go_one_by_one(&mut self, run: &Run<'_>, count: usize, host: &mut impl Host) -> usize {
        for i in 0..count {
            self.go(run, 1 << i, host);
            if self.continues(run.compiled, i) {
                return i + 1;
            }
        }
        count
    }

    /// Whether the packet of a slot has left for elsewhere.
    fn continues(&self, compiled: &Compiled, slot: usize) -> bool {
        let points = compiled.layout.of_exit.iter();
        points
            .zip(&compiled.pipeline.exits)
            .any(|(&point, exit)| exit.touches.is_some() && self.pending[point] >> slot & 1 == 1)
    }

    /// Puts what was emitted before what the parser left, of all packets that have left by exits where packets are deparsed.
    fn put_headers(&mut self, compiled: &Compiled) {
        let exits = compiled.layout.of_exit.iter().zip(&compiled.pipeline.exits);
        let deparsed = exits.filter(|(_, exit)| exit.deparsed);
        let mut slots = deparsed.fold(0, |slots, (&point, _)| slots | self.pending[point]);
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let [packet, emitted] = [ROW_PACKET, ROW_EMITTED].map(|row| self.context[row * PITCH + slot]);
            let area = &self.scratch[slot * compiled.scratch..][..SCRATCH_LEAD + emitted as usize];
            let (mut from, mut to, mut left) = (area.as_ptr_range().end, packet + emitted, emitted as isize);
            // The last bytes first, in pieces of which the one before the first is not theirs.
            while left > 0 {
                // SAFETY: the exit's code left the address where the packet begins now, and how many bytes of the scratch area are put there.
                // Both together are where begins what stays in place, so within the packet's memory, with room before it for the scratch area and what
                // leads it (`load`, `Compiled::headroom`); what is read is in `area`, which has that lead too.
                unsafe {
                    from = from.sub(SCRATCH_LEAD);
                    to -= SCRATCH_LEAD as u64;
                    let piece = from.cast::<[u64; SCRATCH_LEAD / 8]>().read_unaligned();
                    (to as *mut [u64; SCRATCH_LEAD / 8]).write_unaligned(piece);
                }
                left -= SCRATCH_LEAD as isize;
            }
        }
    }

    /// Takes varbits out of packets, which may be gone when somebody asks.
    #[inline(never)]
    fn keep_varbits(&mut self, compiled: &Compiled) {
        self.varbits.clear();
        for &point in &compiled.layout.of_exit {
            let mut slots = self.pending[point];
            if slots == 0 {
                continue;
            }
            let varbits = compiled.layout.points[point].handed_over.iter();
            let varbits: Vec<VarId> = varbits.copied().filter(|v| compiled.vars[v.index()].varbit).collect();
            while slots != 0 && !varbits.is_empty() {
                let slot = slots.trailing_zeros() as usize;
                slots &= slots - 1;
                for &var in &varbits {
                    let Some(&Some(row)) = compiled.layout.rows.get(var.index()) else {
                        continue;
                    };
                    let words = [row, row + 1].map(|r| self.context[r * PITCH + slot]);
                    // SAFETY: the exit keeps the variable, so its words are as code left them: an address in a
                    // packet, which `run` still borrows.
                    let value = unsafe { Scalar::from(compiled.vars[var.index()]).read(&words) };
                    self.varbits.push((slot, var, value));
                }
            }
        }
    }

    /// Has everything counted that segments left to be counted.
    #[inline(always)]
    fn count_tallies(&mut self, compiled: &Compiled, host: &mut impl Host) {
        let some = self.tallies[..compiled.sites.tallies.len()]
            .iter()
            .fold(0, |a, b| a | b);
        if some != 0 {
            self.count_some_tallies(compiled, host);
        }
    }

    #[inline(never)]
    fn count_some_tallies(&mut self, compiled: &Compiled, host: &mut impl Host) {
        let sites = &compiled.sites;
        for (number, tally) in sites.tallies.iter().enumerate() {
            let slots = std::mem::take(&mut self.tallies[number]);
            if slots == 0 {
                continue;
            }
            let at = match tally.index {
                Some(index) => Indexes::Same(index),
                None => Indexes::Each(&self.tallies[tally.row..tally.row + VECTOR]),
            };
            host.count_all(tally.counter, slots, at);
        }
    }

    #[inline(always)]
    fn go(&mut self, run: &Run<'_>, mask: u64, host: &mut impl Host) {
        self.pending[0] = mask;
        let &Run {
            compiled,
            tables,
            guard,
            ..
        } = run;
        self.arrays.clear();
        for table in &compiled.layout.arrays {
            match tables[table.index()].view(guard).array() {
                Some(array) => self
                    .arrays
                    .push([array.results.expose_provenance(), array.default.expose_provenance()]),
                None => unreachable!("`run` is given tables of the program's own specifications"),
            }
        }
        self.asks.clear();
        for table in &compiled.steps.asked {
            let slots = tables[table.index()].view(guard).slots();
            self.asks
                .push(slots.unwrap_or(SlotAddressing { base: 0, skip_mask: 0 }));
        }
        let mut at = 0;
        while let Some(step) = compiled.steps.steps.get(at) {
            let packets = std::mem::take(&mut self.pending[at]);
            if packets == 0 {
                at += 1;
                continue;
            }
            let started = if self.profile.is_some() { cycles() } else { 0 };
            let lookups = &compiled.steps.lookups[step.lookups.clone()];
            match lookups {
                [] => {}
                [wanted] => self.look_up(run, wanted, false, packets, None, host),
                _ => self.look_all_up(run, lookups, step.may_begin, packets, host),
            }
            let middle = if self.profile.is_some() { cycles() } else { 0 };
            self.segment(run, step, packets, host);
            if let Some(profile) = &mut self.profile {
                let end = cycles();
                for (count, took) in profile[at].iter_mut().zip([end - middle, middle - started]) {
                    count.packets += u64::from(packets.count_ones());
                    count.runs += 1;
                    count.cycles += took;
                }
            }
            // A loop may have sent packets back.
            at = if compiled.has_back_edges { 0 } else { at + 1 };
        }
        self.tell_of_late(compiled, mask, host);
    }

    /// Asks for what lookups will read: large tables share the latency of memory. Where code has asked for that, there is nothing left to ask for; of these
    /// lookups the first is begun that is not the first of all, so that those before it are done while what it asks for next comes.
    #[inline(always)]
    fn prepare<'a>(&mut self, run: &Run<'a>, lookups: &[Wanted], packets: u64, begun: &mut Option<PendingLookup<'a>>) {
        for (number, wanted) in lookups.iter().enumerate() {
            let present = run.tables[wanted.table.index()].view(run.guard);
            let keys = &self.context[wanted.keys..];
            if !wanted.is_fetched(packets, asked(self.has_asked, &self.asks)) {
                present.prefetch(packets, keys, PITCH, &mut self.fetches);
            } else if let (1.., Some(begun)) = (number, &mut *begun) {
                present.begin(packets, keys, PITCH, begun);
            }
        }
    }

    /// Several lookups, of the same packets. They are finished in their order, also if one is begun before the others.
    #[inline(always)]
    fn look_all_up(&mut self, run: &Run<'_>, lookups: &[Wanted], may_begin: bool, packets: u64, host: &mut impl Host) {
        // What one needs that has been begun is 0.5 KB, which is set to 0.
        let mut begun = may_begin.then(PendingLookup::default);
        self.prepare(run, lookups, packets, &mut begun);
        for wanted in lookups {
            self.look_up(run, wanted, true, packets, begun.as_mut(), host);
        }
    }

    /// Looks packets up whose keys are in rows, and tells the host. `prepared`: what is read has been asked for. `begun`: maybe this one, or another one of
    /// the same packets, perhaps even of the same table.
    #[inline(always)]
    fn look_up<'a>(
        &mut self,
        run: &Run<'a>,
        wanted: &Wanted,
        prepared: bool,
        packets: u64,
        begun: Option<&mut PendingLookup<'a>>,
        host: &mut impl Host,
    ) {
        let (keys, results) = keys_and_results(&mut self.context, wanted);
        let present = run.tables[wanted.table.index()].view(run.guard);
        let present = if prepared || wanted.is_fetched(packets, asked(self.has_asked, &self.asks)) {
            present.prefetched()
        } else {
            present
        };
        let finished = begun.and_then(|begun| present.finish(packets, keys, results, PITCH, run.now_ns, begun));
        let hits = match finished {
            Some(hits) => hits,
            None => present.lookup_and_prefetch(packets, keys, results, PITCH, run.now_ns, &mut self.fetches),
        };
        let mut lookup = LookedUp {
            table: wanted.table,
            active: packets,
            hits,
            keys,
            results,
            layout: &run.compiled.forms[wanted.table.index()].results,
        };
        host.will_be_told(&lookup);
        match wanted.reached {
            None => host.looked_up(&mut lookup),
            Some(reached) => {
                // Where control goes back to a point its lookups are done several times in a vector, for other packets each time.
                let all = &mut self.ahead_hits[reached];
                *all = *all & !packets | hits;
            }
        }
    }

    /// Tells the host of lookups that were done before it was certain who gets there, and of those that code has done.
    #[inline(always)]
    fn tell_of_late(&mut self, compiled: &Compiled, mask: u64, host: &mut impl Host) {
        for wanted in &compiled.steps.lookups {
            let Some(reached) = wanted.reached else { continue };
            let active = mask & std::mem::take(&mut self.tallies[compiled.sites.reached(reached)]);
            if active == 0 {
                continue;
            }
            let (keys, results) = keys_and_results(&mut self.context, wanted);
            host.looked_up(&mut LookedUp {
                table: wanted.table,
                active,
                hits: active & self.ahead_hits[reached],
                keys,
                results,
                layout: &compiled.forms[wanted.table.index()].results,
            });
        }
        for (table, heads) in &compiled.steps.arrays {
            let results = &mut self.context[heads.clone()];
            let (active, hits) = outcomes(results, mask);
            if active == 0 {
                continue;
            }
            host.looked_up(&mut LookedUp {
                table: *table,
                active,
                hits,
                keys: &[],
                results: &mut *results,
                layout: &compiled.forms[table.index()].results,
            });
            if mask.is_power_of_two() {
                results[mask.trailing_zeros() as usize] = NOT_LOOKED_UP;
            } else {
                results.fill(NOT_LOOKED_UP);
            }
        }
    }

    #[inline(always)]
    fn segment<'h, H: Host + 'h>(&mut self, run: &Run<'_>, step: &Step, packets: u64, host: &mut H) {
        let compiled = run.compiled;
        let host: *mut (dyn Host + 'h) = host;
        // SAFETY: only the lifetime changes; the pointer is not used after this call, which borrows the host.
        let host: *mut (dyn Host + 'static) = unsafe { std::mem::transmute(host) };
        let mut host = HostPointer(host);
        let mut env = Env {
            pending: self.pending.as_mut_ptr(),
            arguments: self.arguments.as_mut_ptr(),
            tallies: self.tallies.as_mut_ptr(),
            members: self.members.as_ptr(),
            zeros: run.compiled.zeros.as_ptr(),
            cells: self.cells.places.as_ptr(),
            exchange: [0; 3],
            nowhere: self.nowhere.as_mut_ptr(),
            arrays: self.arrays.as_ptr(),
            asks: self.asks.as_ptr(),
            context: self.context.as_ptr(),
            compiled,
            host: &raw mut host,
        };
        // SAFETY: the code was made for this layout. It writes the context (rows and slots inside it), the
        // pending masks (one per point), the scratch, argument and tally areas (sized by the compiler) and, inside the
        // bounds that it checks against the packet's length, the packets, whose memory the frames own and
        // whose room before and behind was checked by `load` and `Frame::new`. Code for eight packets also reads what is behind packets, and for
        // those that are none `nowhere`, which is as long as it reaches.
        unsafe {
            let packets = match step.lanes {
                Some(lanes) if self.lanes.is_worth(packets) => lanes(&raw mut env, packets, self.context.as_mut_ptr()),
                _ => packets,
            };
            self.has_asked = step.lanes.is_some() && packets == 0;
            if packets != 0 {
                (step.function)(&raw mut env, packets, self.context.as_mut_ptr());
            }
        }
    }
}

/// Where slots are that code has asked for some of, if it has.
#[inline(always)]
fn asked(has_asked: bool, asks: &[SlotAddressing]) -> &[SlotAddressing] {
    if has_asked { asks } else { &[] }
}

/// The rows of a lookup's keys and all that follow up to its results, and those of its results.
#[inline(always)]
fn keys_and_results<'a>(context: &'a mut Matrix, wanted: &Wanted) -> (&'a [u64], &'a mut [u64]) {
    let (before, rest) = context.split_at_mut(wanted.results.start);
    (&before[wanted.keys..], &mut rest[..wanted.results.len()])
}
