//! Runs compiled pipelines: a [`Machine`] takes a vector of packets through all stages.
//!
//! [`Machine::load`] writes addresses and lengths of packets into the context matrix.
//! [`LoadedVector::run`] then goes through the [`Schedule`](schedule::Schedule): for each
//! suspension point with pending packets it does the lookups of all of them, and calls the segment
//! after it. Masks say which slots wait at which point. At the end it reports deferred lookups and
//! tallies to the [`Host`], and copies rebuilt headers before the payloads.
//!
//! Relies on the layout that the code was compiled for, and checks tables against it once. Nothing
//! is allocated per vector. It owns no packet memory and no tables.

pub(crate) mod calls;
mod cells;
mod env;
mod frame;
mod host;
mod lane_use;
mod matrix;
mod outcomes;
mod profile;
pub(crate) mod schedule;
pub(crate) mod suspended;

pub(crate) use env::Env;
pub use frame::Frame;
pub use host::{Host, Indexes, LookedUp};
pub use lane_use::LaneUse;
pub use profile::{StageCount, cycles};
pub use suspended::{SavedContext, Suspended};

use crate::compile::Compiled;
use crate::layout::{NOT_LOOKED_UP, PointKind, ROW_EMITTED, ROW_LENGTH, ROW_PACKET, ROW_SCRATCH, ROW_STRIDE, VECTOR};
use crate::sites::Scalar;
use cells::CellArrays;
use env::HostPointer;
use matrix::ContextMatrix;
use outcomes::array_outcomes;
use schedule::{PlannedLookup, Stage};
use std::sync::{Arc, Weak};
use weir_ir::{Bits, ValueSetId, VarId};
use weir_table::fast::{FastTable, Guard, PendingLookup, PrefetchQueue, SlotAddressing};

/// Bytes of memory required after a packet: code may read that far beyond its end.
pub const TAILROOM: usize = 64;

/// The inputs of a run that stay the same for the whole vector.
struct RunInputs<'a> {
    /// The point whose segment runs first: 0, or where the packets waited for an extern.
    start: usize,
    compiled: &'a Arc<Compiled>,
    tables: &'a [Arc<FastTable>],
    /// Keeps the tables' memory from being reclaimed.
    guard: &'a Guard<'a>,
    now_ns: u64,
}

/// Headers are copied from the scratch area in chunks of this size, which may begin before it.
pub(crate) const SCRATCH_LEAD: usize = 32;

/// The memory in which a pipeline runs. One per worker; all is allocated by [`Machine::new`].
pub struct Machine {
    compiled: Arc<Compiled>,
    memory: MachineMemory,
}

/// The context, and the areas that segments and the host use.
struct MachineMemory {
    /// Words: a row per variable, a column per slot.
    context: ContextMatrix,
    /// The scratch areas of all slots.
    scratch: Vec<u8>,
    /// Read and written by lanes without a packet.
    sentinel: Vec<u8>,
    lane_use: LaneUse,
    /// The argument area of runtime functions: arguments, and results.
    arguments: Vec<u64>,
    /// The tally area: masks, then rows of indexes.
    tallies: Vec<u64>,
    /// By point: the mask of the slots that wait there.
    pending: Vec<u64>,
    /// Members of small value sets: a bit per value.
    members: Vec<u64>,
    /// Cells of register arrays that code accesses directly.
    cells: CellArrays,
    /// The result arrays of tables that code looks up inline, valid while a vector runs.
    arrays: Vec<[usize; 2]>,
    /// Where the slots of tables are that code prefetches, valid while a vector runs.
    slot_addressing: Vec<SlotAddressing>,
    /// Whether the last segment ran all its packets in lanes, and so prefetched their slots.
    lanes_prefetched: bool,
    /// Addresses to prefetch for the next lookup.
    prefetch_queue: PrefetchQueue,
    /// By executed mask: the slots that its hoisted lookup hit, reported at the vector's end.
    hoisted_hits: Vec<u64>,
    /// Varbits that an exit saved: slot, variable, value.
    varbits: Vec<(usize, VarId, Bits)>,
    /// By point: counts of its segment, and of its lookups. `None`: profiling is off.
    profile: Option<Vec<[StageCount; 2]>>,
    /// Tables whose layouts were checked. Weak references keep their addresses from being reused.
    checked_tables: Vec<Weak<FastTable>>,
}

impl Machine {
    /// A machine for a pipeline.
    #[must_use]
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let layout = &compiled.layout;
        let mut context = ContextMatrix::new((layout.row_count + 1) * ROW_STRIDE);
        for (_, heads) in &compiled.schedule.arrays {
            context[heads.clone()].fill(NOT_LOOKED_UP);
        }
        let mut scratch = vec![0; SCRATCH_LEAD + compiled.scratch * VECTOR + 16];
        for slot in 0..VECTOR {
            let area = &mut scratch[SCRATCH_LEAD + slot * compiled.scratch..];
            context[ROW_SCRATCH * ROW_STRIDE + slot] = area.as_mut_ptr().expose_provenance() as u64;
        }
        let memory = MachineMemory {
            context,
            scratch,
            sentinel: vec![0; compiled.sentinel_bytes],
            lane_use: LaneUse::default(),
            arguments: vec![0; compiled.sites.argument_words + 8],
            tallies: vec![0; compiled.sites.tally_words],
            members: vec![0; compiled.sites.members.word_count()],
            pending: vec![0; layout.points.len()],
            cells: CellArrays::default(),
            arrays: Vec::with_capacity(layout.arrays.len()),
            slot_addressing: Vec::with_capacity(compiled.schedule.prefetched_tables.len()),
            lanes_prefetched: false,
            prefetch_queue: PrefetchQueue::default(),
            hoisted_hits: vec![0; layout.executed_masks],
            varbits: Vec::new(),
            profile: None,
            checked_tables: Vec::new(),
        };
        Machine { compiled, memory }
    }

    /// The pipeline.
    #[must_use]
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// When segments run eight packets at a time.
    #[must_use]
    pub fn lanes(&self) -> LaneUse {
        self.memory.lane_use
    }

    /// Sets when segments run eight packets at a time.
    pub fn set_lanes(&mut self, lanes: LaneUse) {
        self.memory.lane_use = lanes;
    }

    /// Starts profiling of stages, with counts of zero, or stops it.
    pub fn set_profiling(&mut self, on: bool) {
        self.memory.profile = on.then(|| vec![[StageCount::default(); 2]; self.compiled.layout.points.len()]);
    }

    /// Counts since profiling was turned on. By suspension point: name, segment, lookups.
    pub fn stages(&self) -> impl Iterator<Item = (String, StageCount, StageCount)> + '_ {
        let counts = self.memory.profile.as_deref().unwrap_or(&[]);
        counts
            .iter()
            .enumerate()
            .filter(|(i, _)| !matches!(self.compiled.layout.points[*i].kind, PointKind::Exit(_)))
            .map(|(i, [segment, lookup])| (self.compiled.point_name(i), *segment, *lookup))
    }

    /// Copies the members of a value set. To be called whenever they have changed. It does nothing
    /// for sets that code does not test inline: for these, [`Host::value_set_contains`] is called.
    pub fn load_value_set(&mut self, set: ValueSetId, members: &FastTable) {
        let Some(words) = self.compiled.sites.members.words_of(set) else {
            return;
        };
        let mut results = vec![0; members.result_layout().words * VECTOR];
        for (number, word) in self.memory.members[words].iter_mut().enumerate() {
            let keys: [u64; VECTOR] = std::array::from_fn(|i| (number * VECTOR + i) as u64);
            *word = members.lookup(u64::MAX, &keys, &mut results, VECTOR, 0);
        }
    }

    /// Loads at most [`VECTOR`] packets: slot `i` is frame `i`.
    ///
    /// # Panics
    /// More frames than slots, or a frame with less than [`Compiled::headroom`] bytes before it.
    #[inline(always)]
    pub fn load<'a, 'f>(&'a mut self, frames: &'a mut [Frame<'f>]) -> LoadedVector<'a, 'f> {
        assert!(frames.len() <= VECTOR, "a vector has {VECTOR} slots");
        let headroom = self.compiled.headroom();
        let has_headroom = |frame: &Frame<'_>| frame.offset() as usize >= headroom;
        assert!(
            headroom == 0 || frames.iter().all(has_headroom),
            "a frame needs {headroom} bytes before it"
        );
        let (packets, rest) = self.memory.context.split_at_mut(ROW_LENGTH * ROW_STRIDE);
        let rows = packets[ROW_PACKET * ROW_STRIDE..].iter_mut().zip(rest);
        for (frame, (packet, length)) in frames.iter_mut().zip(rows) {
            [*packet, *length] = frame.address_and_length();
        }
        LoadedVector { machine: self, frames }
    }

    /// The mask of the slots whose packets left by an exit.
    #[must_use]
    #[inline]
    pub fn exit_mask(&self, exit: u32) -> u64 {
        self.exit_masks().get(exit as usize).copied().unwrap_or(0)
    }

    /// By exit: the mask of the slots whose packets left by it.
    #[must_use]
    #[inline]
    pub fn exit_masks(&self) -> &[u64] {
        &self.memory.pending[self.compiled.layout.first_exit()..]
    }

    /// Variables whose values an exit saves.
    pub fn exit_values(&self, exit: u32) -> impl Iterator<Item = VarId> + '_ {
        let point = self.compiled.layout.exit_points.get(exit as usize);
        point
            .into_iter()
            .flat_map(|&p| self.compiled.layout.points[p].handed_over.iter().copied())
    }

    /// The value of a narrow variable (at most 64 bits), which the packet's exit must save.
    #[must_use]
    pub fn narrow_value(&self, slot: usize, var: VarId) -> u64 {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => self.memory.context[row * ROW_STRIDE + slot],
            _ => 0,
        }
    }

    /// The row of a narrow variable: its value by slot, where the packet's exit saves it. Empty if
    /// no exit does.
    #[must_use]
    #[inline]
    pub fn row(&self, var: VarId) -> &[u64] {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => &self.memory.context[row * ROW_STRIDE..row * ROW_STRIDE + VECTOR],
            _ => &[],
        }
    }

    /// The current lengths of the packets, in bytes.
    #[must_use]
    #[inline]
    pub fn lengths(&self) -> &[u64] {
        &self.memory.context[ROW_LENGTH * ROW_STRIDE..ROW_LENGTH * ROW_STRIDE + VECTOR]
    }

    /// The value of a variable of any width, which the packet's exit must save.
    #[must_use]
    pub fn value(&self, slot: usize, var: VarId) -> Bits {
        let scalar = Scalar::from(self.compiled.vars[var.index()]);
        let Some(&Some(row)) = self.compiled.layout.rows.get(var.index()) else {
            return Bits::zero(if scalar.varbit { 0 } else { scalar.width });
        };
        if scalar.varbit {
            let saved = self.memory.varbits.iter().find(|(s, v, _)| (*s, *v) == (slot, var));
            return saved.map_or(Bits::zero(0), |(_, _, value)| value.clone());
        }
        let words: Vec<u64> = (0..scalar.words())
            .map(|i| self.memory.context[(row + i) * ROW_STRIDE + slot])
            .collect();
        Bits::from_words(scalar.width, &words)
    }
}

/// A vector of packets in a machine, ready to run.
pub struct LoadedVector<'a, 'f> {
    machine: &'a mut Machine,
    frames: &'a mut [Frame<'f>],
}

impl LoadedVector<'_, '_> {
    /// The lengths of the packets in bytes; unspecified for empty slots.
    #[must_use]
    #[inline]
    pub fn lengths(&self) -> &[u64] {
        self.machine.lengths()
    }

    /// Whether code reads an input. Otherwise it need not be set.
    #[must_use]
    #[inline]
    pub fn reads_input(&self, input: usize) -> bool {
        self.machine.compiled.inputs_read[input]
    }

    /// Sets an input, from the first slot on. Slots without a value keep their old one, so inputs
    /// must be set for each vector. Inputs are numbered as in
    /// [`weir_ir::pipeline::Pipeline::inputs`]. Bits beyond the input's width are cut off.
    ///
    /// # Panics
    /// There is no such input.
    #[inline(always)]
    pub fn set_input(&mut self, input: usize, values: impl Iterator<Item = u64>) {
        if let Some((row, mask)) = self.machine.compiled.input_rows[input] {
            let words = &mut self.machine.memory.context[row * ROW_STRIDE..row * ROW_STRIDE + VECTOR];
            words
                .iter_mut()
                .zip(values)
                .for_each(|(word, value)| *word = value & mask);
        }
    }

    /// Runs the packets. Afterwards [`Machine::exit_mask`] has the slots by exit, and the frames
    /// hold the packets as deparsed.
    ///
    /// Returns how many of the frames were run. A serial pipeline stops after a packet that is
    /// punted ([`weir_ir::pipeline::Exit::touches`]): the driver's effects on state precede those
    /// of later packets.
    ///
    /// # Panics
    /// Fewer tables than the program has, tables of other specifications, or of other epochs than
    /// the guard.
    #[inline(always)]
    pub fn run(self, tables: &[Arc<FastTable>], guard: &Guard<'_>, host: &mut impl Host, now_ns: u64) -> usize {
        self.run_from(0, tables, guard, host, now_ns)
    }

    /// As [`LoadedVector::run`], from the segment after a suspension point on.
    #[inline(always)]
    fn run_from(
        self,
        start: usize,
        tables: &[Arc<FastTable>],
        guard: &Guard<'_>,
        host: &mut impl Host,
        now_ns: u64,
    ) -> usize {
        let Machine { compiled, memory } = self.machine;
        memory.check_tables(compiled, tables);
        let mut count = self.frames.len();
        memory.pending.fill(0);
        memory.cells.refresh(&compiled.sites.arrays, host);
        let run = RunInputs {
            start,
            compiled,
            tables,
            guard,
            now_ns,
        };
        if compiled.serial.is_some() {
            count = memory.run_serially(&run, count, host);
        } else if count > 0 {
            memory.run_vector(&run, u64::MAX >> (64 - count), host);
        }
        memory.report_tallies(compiled, host);
        if compiled.keeps_varbits {
            memory.save_varbits(compiled);
        }
        if !compiled.in_place {
            memory.copy_emitted_headers(compiled);
            let (packets, lengths) = memory.context.split_at(ROW_LENGTH * ROW_STRIDE);
            let rows = packets[ROW_PACKET * ROW_STRIDE..].iter().zip(lengths);
            for (frame, (packet, length)) in self.frames[..count].iter_mut().zip(rows) {
                // SAFETY: the values are as `load` wrote them, or as the code of a deparsing exit
                // left them: the address where the packet begins in its memory, and its length
                // there.
                unsafe { frame.set_bounds(*packet, *length) };
            }
        }
        count
    }
}

impl MachineMemory {
    /// Checks that the tables have the layouts that code was compiled for. Code relies on them for
    /// its own memory accesses.
    #[inline(always)]
    fn check_tables(&mut self, compiled: &Compiled, tables: &[Arc<FastTable>]) {
        let is_same = |(checked, table): (&Weak<FastTable>, &Arc<FastTable>)| checked.as_ptr() == Arc::as_ptr(table);
        let has_all =
            self.checked_tables.len() == compiled.table_layouts.len() && tables.len() >= compiled.table_layouts.len();
        if !(has_all && self.checked_tables.iter().zip(tables).all(is_same)) {
            self.check_new_tables(compiled, tables);
        }
    }

    /// Checks tables other than those of the last run.
    #[cold]
    fn check_new_tables(&mut self, compiled: &Compiled, tables: &[Arc<FastTable>]) {
        assert!(
            tables.len() >= compiled.table_layouts.len(),
            "every table must be there"
        );
        for (number, (layout, table)) in compiled.table_layouts.iter().zip(tables).enumerate() {
            assert!(
                layout == table.layout(),
                "table {number} has another specification than the program's"
            );
        }
        self.checked_tables = tables[..compiled.table_layouts.len()]
            .iter()
            .map(Arc::downgrade)
            .collect();
    }

    /// Runs the packets of the first slots one by one, up to one that is punted. Returns how many
    /// ran.
    #[inline(never)]
    fn run_serially(&mut self, run: &RunInputs<'_>, count: usize, host: &mut impl Host) -> usize {
        for i in 0..count {
            self.run_vector(run, 1 << i, host);
            if self.has_punted(run.compiled, i) {
                return i + 1;
            }
        }
        count
    }

    /// Whether the packet of a slot left by an exit that punts.
    fn has_punted(&self, compiled: &Compiled, slot: usize) -> bool {
        let points = compiled.layout.exit_points.iter();
        points
            .zip(&compiled.pipeline.exits)
            .any(|(&point, exit)| exit.touches.is_some() && self.pending[point] >> slot & 1 == 1)
    }

    /// Copies the emitted headers before the payload, for packets that left by deparsing exits.
    fn copy_emitted_headers(&mut self, compiled: &Compiled) {
        let exits = compiled.layout.exit_points.iter().zip(&compiled.pipeline.exits);
        let deparsed = exits.filter(|(_, exit)| exit.deparsed);
        let mut slots = deparsed.fold(0, |slots, (&point, _)| slots | self.pending[point]);
        while slots != 0 {
            let slot = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            let [packet, emitted] = [ROW_PACKET, ROW_EMITTED].map(|row| self.context[row * ROW_STRIDE + slot]);
            let area = &self.scratch[slot * compiled.scratch..][..SCRATCH_LEAD + emitted as usize];
            let (mut from, mut to, mut remaining) = (area.as_ptr_range().end, packet + emitted, emitted as isize);
            // Backwards, in whole chunks. The first chunk may begin before the emitted bytes.
            while remaining > 0 {
                // SAFETY: the exit's code left the packet's new address, and the number of bytes in
                // the scratch area to copy there. Their sum is where the bytes that stay in place
                // begin, which is within the packet's memory. Before it is room for the scratch
                // area and its lead (`load` checked `Compiled::headroom`). The bytes read are in
                // `area`, which includes that lead too.
                unsafe {
                    from = from.sub(SCRATCH_LEAD);
                    to -= SCRATCH_LEAD as u64;
                    let chunk = from.cast::<[u64; SCRATCH_LEAD / 8]>().read_unaligned();
                    (to as *mut [u64; SCRATCH_LEAD / 8]).write_unaligned(chunk);
                }
                remaining -= SCRATCH_LEAD as isize;
            }
        }
    }

    /// Copies varbits for [`Machine::value`] out of the packets, whose memory may be reused.
    #[inline(never)]
    fn save_varbits(&mut self, compiled: &Compiled) {
        self.varbits.clear();
        for &point in &compiled.layout.exit_points {
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
                    let words = [row, row + 1].map(|r| self.context[r * ROW_STRIDE + slot]);
                    // SAFETY: the exit saves the variable, so its words are as code left them: a
                    // length and an address in a packet, which `run` still borrows.
                    let value = unsafe { Scalar::from(compiled.vars[var.index()]).read(&words) };
                    self.varbits.push((slot, var, value));
                }
            }
        }
    }

    /// Reports the tallies of all segments to the host.
    #[inline(always)]
    fn report_tallies(&mut self, compiled: &Compiled, host: &mut impl Host) {
        let union = self.tallies[..compiled.sites.tallies.len()]
            .iter()
            .fold(0, |a, b| a | b);
        if union != 0 {
            self.report_nonempty_tallies(compiled, host);
        }
    }

    /// Reports the tallies that have packets, and clears them.
    #[inline(never)]
    fn report_nonempty_tallies(&mut self, compiled: &Compiled, host: &mut impl Host) {
        let sites = &compiled.sites;
        for (number, tally) in sites.tallies.iter().enumerate() {
            let slots = std::mem::take(&mut self.tallies[number]);
            if slots == 0 {
                continue;
            }
            let indexes = match tally.index {
                Some(index) => Indexes::Same(index),
                None => Indexes::Each(&self.tallies[tally.row..tally.row + VECTOR]),
            };
            host.count_all(tally.counter, slots, indexes);
        }
    }

    /// Runs the packets of a mask through all stages.
    #[inline(always)]
    fn run_vector(&mut self, run: &RunInputs<'_>, mask: u64, host: &mut impl Host) {
        self.pending[run.start] = mask;
        let mut is_resumed = run.start > 0;
        let &RunInputs {
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
        self.slot_addressing.clear();
        for table in &compiled.schedule.prefetched_tables {
            let slots = tables[table.index()].view(guard).slots();
            self.slot_addressing
                .push(slots.unwrap_or(SlotAddressing { base: 0, skip_mask: 0 }));
        }
        let mut point = 0;
        while let Some(stage) = compiled.schedule.stages.get(point) {
            let packets = std::mem::take(&mut self.pending[point]);
            if packets == 0 {
                point += 1;
                continue;
            }
            if stage.suspends && !std::mem::take(&mut is_resumed) {
                host.suspend(Suspended {
                    point,
                    slots: packets,
                    compiled,
                    context: &self.context,
                });
                point += 1;
                continue;
            }
            let start = if self.profile.is_some() { cycles() } else { 0 };
            let lookups = &compiled.schedule.lookups[stage.lookups.clone()];
            match lookups {
                [] => {}
                [planned] => self.look_up(run, planned, false, packets, None, host),
                _ => self.look_up_all(run, lookups, stage.may_overlap, packets, host),
            }
            let segment_start = if self.profile.is_some() { cycles() } else { 0 };
            self.run_segment(run, stage, packets, host);
            if let Some(profile) = &mut self.profile {
                let end = cycles();
                for (count, cycles) in profile[point]
                    .iter_mut()
                    .zip([end - segment_start, segment_start - start])
                {
                    count.packets += u64::from(packets.count_ones());
                    count.runs += 1;
                    count.cycles += cycles;
                }
            }
            // A loop may have sent packets back to an earlier point.
            point = if compiled.has_back_edges { 0 } else { point + 1 };
        }
        self.report_deferred_lookups(compiled, mask, host);
    }

    /// Prefetches for several lookups, so that their cache misses overlap. If code has already
    /// prefetched a lookup's slots, nothing is left to prefetch. Then that lookup is started now,
    /// so that its second round of prefetches overlaps the lookups before it. Only one lookup is
    /// started early, and not the very first.
    #[inline(always)]
    fn prefetch_lookups<'a>(
        &mut self,
        run: &RunInputs<'a>,
        lookups: &[PlannedLookup],
        packets: u64,
        pending: &mut Option<PendingLookup<'a>>,
    ) {
        for (number, planned) in lookups.iter().enumerate() {
            let view = run.tables[planned.table.index()].view(run.guard);
            let keys = &self.context[planned.keys..];
            if !planned.is_prefetched(packets, prefetched_slots(self.lanes_prefetched, &self.slot_addressing)) {
                view.prefetch(packets, keys, ROW_STRIDE, &mut self.prefetch_queue);
            } else if let (1.., Some(pending)) = (number, &mut *pending) {
                view.begin(packets, keys, ROW_STRIDE, pending);
            }
        }
    }

    /// Does several lookups, which finish in order even if a later one was started first.
    #[inline(always)]
    fn look_up_all(
        &mut self,
        run: &RunInputs<'_>,
        lookups: &[PlannedLookup],
        may_overlap: bool,
        packets: u64,
        host: &mut impl Host,
    ) {
        // A pending lookup takes 0.5 KB, which is zeroed here.
        let mut pending = may_overlap.then(PendingLookup::default);
        self.prefetch_lookups(run, lookups, packets, &mut pending);
        for planned in lookups {
            self.look_up(run, planned, true, packets, pending.as_mut(), host);
        }
    }

    /// Does a lookup, from rows of keys to rows of results, and reports it to the host. `pending`:
    /// a lookup of the same packets that may have been started, this one or another, even of the
    /// same table.
    #[inline(always)]
    fn look_up<'a>(
        &mut self,
        run: &RunInputs<'a>,
        planned: &PlannedLookup,
        first_reads_prefetched: bool,
        packets: u64,
        pending: Option<&mut PendingLookup<'a>>,
        host: &mut impl Host,
    ) {
        let (keys, results) = keys_and_results(&mut self.context, planned);
        let view = run.tables[planned.table.index()].view(run.guard);
        let view = if first_reads_prefetched
            || planned.is_prefetched(packets, prefetched_slots(self.lanes_prefetched, &self.slot_addressing))
        {
            view.assume_prefetched()
        } else {
            view
        };
        let finished = pending.and_then(|pending| view.finish(packets, keys, results, ROW_STRIDE, run.now_ns, pending));
        let hits = match finished {
            Some(hits) => hits,
            None => view.lookup_and_prefetch(packets, keys, results, ROW_STRIDE, run.now_ns, &mut self.prefetch_queue),
        };
        let mut lookup = LookedUp {
            table: planned.table,
            active: packets,
            hits,
            keys,
            results,
            layout: &run.compiled.table_layouts[planned.table.index()].results,
        };
        host.prefetch_hits(&lookup);
        match planned.executed {
            None => host.looked_up(&mut lookup),
            Some(executed) => {
                // In a loop a point's lookup runs several times per vector, each time for other
                // packets.
                let hoisted_hits = &mut self.hoisted_hits[executed];
                *hoisted_hits = *hoisted_hits & !packets | hits;
            }
        }
    }

    /// Reports to the host the hoisted lookups, now that the executed masks are complete, and the
    /// lookups that code did inline.
    #[inline(always)]
    fn report_deferred_lookups(&mut self, compiled: &Compiled, mask: u64, host: &mut impl Host) {
        for planned in &compiled.schedule.lookups {
            let Some(executed) = planned.executed else { continue };
            let active = mask & std::mem::take(&mut self.tallies[compiled.sites.executed_mask(executed)]);
            if active == 0 {
                continue;
            }
            let (keys, results) = keys_and_results(&mut self.context, planned);
            host.looked_up(&mut LookedUp {
                table: planned.table,
                active,
                hits: active & self.hoisted_hits[executed],
                keys,
                results,
                layout: &compiled.table_layouts[planned.table.index()].results,
            });
        }
        for (table, heads) in &compiled.schedule.arrays {
            let results = &mut self.context[heads.clone()];
            let (active, hits) = array_outcomes(results, mask);
            if active == 0 {
                continue;
            }
            host.looked_up(&mut LookedUp {
                table: *table,
                active,
                hits,
                keys: &[],
                results: &mut *results,
                layout: &compiled.table_layouts[table.index()].results,
            });
            if mask.is_power_of_two() {
                results[mask.trailing_zeros() as usize] = NOT_LOOKED_UP;
            } else {
                results.fill(NOT_LOOKED_UP);
            }
        }
    }

    /// Runs a segment: in lanes if that is faster, and one by one for packets that bail out.
    #[inline(always)]
    fn run_segment<'h, H: Host + 'h>(&mut self, run: &RunInputs<'_>, stage: &Stage, packets: u64, host: &mut H) {
        let compiled = run.compiled;
        let host: *mut (dyn Host + 'h) = host;
        // SAFETY: only the lifetime changes. The pointer is not used after this call, which borrows
        // the host.
        let host: *mut (dyn Host + 'static) = unsafe { std::mem::transmute(host) };
        let mut host = HostPointer(host);
        let mut env = Env {
            pending: self.pending.as_mut_ptr(),
            arguments: self.arguments.as_mut_ptr(),
            tallies: self.tallies.as_mut_ptr(),
            members: self.members.as_ptr(),
            zeros: run.compiled.zeros.as_ptr(),
            cells: self.cells.descriptors.as_ptr(),
            exchange: [0; 3],
            sentinel: self.sentinel.as_mut_ptr(),
            arrays: self.arrays.as_ptr(),
            slot_addressing: self.slot_addressing.as_ptr(),
            context: self.context.as_ptr(),
            compiled: Arc::as_ptr(compiled),
            host: &raw mut host,
        };
        // SAFETY: the code was made for this layout. It writes the context (rows and slots inside
        // it), the pending masks (one per point) and the scratch, argument and tally areas (sized
        // by the compiler). It writes packets inside the bounds that it checks against the packet's
        // length. Their memory is owned by the frames, and the room before and after them was
        // checked by `load` and `Frame::new`. Code for eight packets also reads beyond packets, and
        // uses `sentinel` for lanes without a packet, which has `sentinel_bytes` bytes.
        unsafe {
            let packets = match stage.lane_function {
                Some(lanes) if self.lane_use.uses_lanes(packets) => {
                    lanes(&raw mut env, packets, self.context.as_mut_ptr())
                }
                _ => packets,
            };
            self.lanes_prefetched = stage.lane_function.is_some() && packets == 0;
            if packets != 0 {
                (stage.function)(&raw mut env, packets, self.context.as_mut_ptr());
            }
        }
    }
}

/// The tables' slots that the last segment may have prefetched: none if it did not run in lanes.
#[inline(always)]
fn prefetched_slots(lanes_prefetched: bool, slot_addressing: &[SlotAddressing]) -> &[SlotAddressing] {
    if lanes_prefetched { slot_addressing } else { &[] }
}

/// The rows of a lookup from its keys up to its results, and the rows of its results.
#[inline(always)]
fn keys_and_results<'a>(context: &'a mut ContextMatrix, planned: &PlannedLookup) -> (&'a [u64], &'a mut [u64]) {
    let (before, rest) = context.split_at_mut(planned.results.start);
    (&before[planned.keys..], &mut rest[..planned.results.len()])
}
