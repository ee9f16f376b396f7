//! Running compiled pipelines.

use crate::compile::Compiled;
use crate::layout::{NOT_LOOKED_UP, PITCH, PointKind, ROW_LENGTH, ROW_PACKET, VECTOR};
use crate::sites::{CallArguments, Scalar, from_words};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_ir::{Bits, Operand, TableId, ValueSetId, VarId};
use weir_table::fast::{Direct, FastTable, head};

/// Bytes that must lie behind a packet in its memory: code reads a little beyond the end.
pub const TAILROOM: usize = 64;

/// What stays the same while a vector runs.
struct Run<'a> {
    compiled: &'a Compiled,
    tables: &'a [Arc<FastTable>],
    now_ns: u64,
}

/// Whoever runs a pipeline does what is not the pipeline's own business.
pub trait Host {
    /// An extern call. `false` ends the packet's way, where the call may do that.
    fn call(&mut self, call: usize, slot: usize, packet: &[u8], arguments: &mut CallArguments) -> bool;

    /// Counts the packet of a slot at an index of a counter ([`weir_ir::pipeline::CallKind::Count`]).
    fn count(&mut self, counter: usize, index: u64, slot: usize);

    /// Counts the packets of many slots, as [`Host::count`] does for one.
    fn count_all(&mut self, counter: usize, slots: u64, at: Indexes<'_>);

    /// Hashes bytes; the number of the algorithm is that of [`weir_ir::pipeline::CallKind::Hash`].
    fn hash(&mut self, algorithm: u32, data: &[u8]) -> u64;

    /// Whether values are a member of the set: one per field, each in as many words as it needs and at least one, the
    /// lowest first.
    fn value_set_contains(&mut self, set: ValueSetId, keys: &[u64]) -> bool;

    /// A table was looked up for some packets. The host counts, runs direct resources, and resolves entries
    /// that name no action.
    fn looked_up(&mut self, lookup: &mut LookedUp<'_>);
}

/// Where packets are counted.
#[derive(Debug, Clone, Copy)]
pub enum Indexes<'a> {
    /// All at the same index.
    Same(u64),
    /// Each slot at its own.
    Each(&'a [u64]),
}

/// The outcome of a lookup for a vector of packets.
pub struct LookedUp<'a> {
    /// The table.
    pub table: TableId,
    /// Slots that were looked up.
    pub active: u64,
    /// Slots that hit.
    pub hits: u64,
    /// From the first key row on; word `w` of slot `i` is at `w * PITCH + i`. Selector keys follow the
    /// table's own, each in whole words.
    pub keys: &'a [u64],
    /// Result rows, as [`weir_table::fast::ResultLayout`] says.
    pub results: &'a mut [u64],
}

/// A packet in memory of its own, with room before and behind it.
#[derive(Debug)]
pub struct Frame<'a> {
    memory: &'a mut [u8],
    start: usize,
    length: usize,
}

impl<'a> Frame<'a> {
    /// The packet at `start` of the memory. `None` where the memory does not hold it and [`TAILROOM`] behind
    /// it.
    #[must_use]
    #[inline]
    pub fn new(memory: &'a mut [u8], start: usize, length: usize) -> Option<Self> {
        let end = start.checked_add(length)?.checked_add(TAILROOM)?;
        (end <= memory.len()).then_some(Frame { memory, start, length })
    }

    /// Its bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.length]
    }

    /// Where it begins in its memory, and how long it is.
    #[must_use]
    #[inline]
    pub fn place(&self) -> (usize, usize) {
        (self.start, self.length)
    }
}

/// What segments are given besides contexts. The order of the first fields is known to code generation.
#[repr(C)]
pub(crate) struct Env {
    pending: *mut u64,
    scratch: *mut u8,
    arguments: *mut u64,
    tallies: *mut u64,
    direct: *const DirectPointers,
    now_ns: u64,
    context: *mut u64,
    compiled: *const Compiled,
    tables: *const Arc<FastTable>,
    host: *mut HostPointer,
}

/// A table that code looks into itself: where its structure and the result of a miss are.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct DirectPointers {
    structure: *const Direct,
    default: *const AtomicU64,
}

// SAFETY: they are made when a vector begins to run and not used after, so they never are when a machine changes threads.
unsafe impl Send for DirectPointers {}

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

/// Of the slots of a mask, by the heads of their results: which were looked up, and which of them hit.
#[inline]
fn outcomes(heads: &[u64], mask: u64) -> (u64, u64) {
    if mask.is_power_of_two() {
        let slot = mask.trailing_zeros();
        let head = heads[slot as usize];
        let is_hit = head & head::HIT != 0;
        let active = u64::from(head != NOT_LOOKED_UP) << slot;
        return (active, active & u64::from(is_hit) << slot);
    }
    let (mut active, mut hits) = (0, 0);
    for (slot, head) in heads.iter().enumerate().take(VECTOR) {
        active |= u64::from(*head != NOT_LOOKED_UP) << slot;
        hits |= (head >> head::HIT.trailing_zeros() & 1) << slot;
    }
    (active & mask, hits & active & mask)
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

/// Fetches what the slice holds into the cache, if the processor can be asked to.
#[inline]
pub fn prefetch(slice: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in slice.chunks(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: prefetching has no effect on the program, and the address is one of the slice's.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slice;
}

/// Memory to run a pipeline in. One per worker; everything is taken when it is made.
pub struct Machine {
    compiled: Arc<Compiled>,
    context: Vec<u64>,
    scratch: Vec<u8>,
    arguments: Vec<u64>,
    tallies: Vec<u64>,
    pending: Vec<u64>,
    /// Of each direct lookup; used only while a vector runs.
    direct: Vec<DirectPointers>,
    /// Varbits of packets that left by exits that keep them.
    varbits: Vec<(usize, VarId, Bits)>,
    /// Per point: the segment that begins there, and the lookup before it. `None`: nobody asked.
    profile: Option<Vec<[StageCount; 2]>>,
}

impl Machine {
    /// A machine for a pipeline.
    #[must_use]
    pub fn new(compiled: Arc<Compiled>) -> Self {
        let layout = &compiled.layout;
        let mut context = vec![0; (layout.row_count + 1) * PITCH];
        for site in &layout.direct {
            context[site.result_row * PITCH..][..VECTOR].fill(NOT_LOOKED_UP);
        }
        Machine {
            context,
            scratch: vec![0; compiled.scratch * VECTOR + 16],
            arguments: vec![0; compiled.sites.argument_words + 8],
            tallies: vec![0; compiled.sites.tally_words],
            pending: vec![0; layout.points.len()],
            direct: Vec::with_capacity(layout.direct.len()),
            varbits: Vec::new(),
            profile: None,
            compiled,
        }
    }

    /// The pipeline.
    #[must_use]
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Measures stages from now on, or stops doing so.
    pub fn set_profiling(&mut self, on: bool) {
        self.profile = on.then(|| vec![[StageCount::default(); 2]; self.compiled.layout.points.len()]);
    }

    /// What stages took since profiling was switched on: per suspension point its name, its segment and its
    /// lookup.
    pub fn stages(&self) -> impl Iterator<Item = (String, StageCount, StageCount)> + '_ {
        let counts = self.profile.as_deref().unwrap_or(&[]);
        counts
            .iter()
            .enumerate()
            .filter(|(i, _)| !matches!(self.compiled.layout.points[*i].kind, PointKind::Exit(_)))
            .map(|(i, [segment, lookup])| (self.compiled.point_name(i), *segment, *lookup))
    }

    /// Whether code reads an input at all; else it need not be set.
    #[must_use]
    #[inline]
    pub fn reads_input(&self, input: usize) -> bool {
        self.compiled.inputs_read[input]
    }

    /// The values of an input for all slots, to be set before each run. Positions are those of
    /// [`weir_ir::pipeline::Pipeline::inputs`]; bits beyond the input's width must be 0.
    ///
    /// # Panics
    /// There is no such input.
    #[inline]
    pub fn input_row(&mut self, input: usize) -> &mut [u64] {
        let row = self.compiled.input_rows[input];
        &mut self.context[row * PITCH..row * PITCH + VECTOR]
    }

    /// Runs packets, at most [`VECTOR`]; slot `i` is frame `i`. Afterwards [`Machine::left`] says which left by which
    /// exit, and the frames hold what was made of them.
    ///
    /// Gives how many of the frames were run: where packets run one by one, none after one that goes on elsewhere
    /// ([`weir_ir::pipeline::Exit::continues`]), for what it does there comes before them.
    ///
    /// # Panics
    /// More frames than slots, fewer tables than the program has, or a frame without the room before it that
    /// [`Compiled::headroom`] asks for.
    pub fn run(
        &mut self,
        frames: &mut [Frame<'_>],
        tables: &[Arc<FastTable>],
        host: &mut dyn Host,
        now_ns: u64,
    ) -> usize {
        let mut count = frames.len();
        assert!(count <= VECTOR, "a vector has {VECTOR} slots");
        assert!(tables.len() >= self.compiled.table_count, "every table must be there");
        let headroom = self.compiled.headroom();
        let least = frames.iter().map(|f| f.start).min();
        assert!(
            least.is_none_or(|l| l >= headroom),
            "a frame needs {headroom} bytes before it"
        );
        let (packets, rest) = self.context.split_at_mut(ROW_LENGTH * PITCH);
        for ((frame, packet), length) in frames.iter_mut().zip(&mut packets[ROW_PACKET * PITCH..]).zip(rest) {
            *packet = frame.memory.as_mut_ptr().wrapping_add(frame.start) as u64;
            *length = frame.length as u64;
        }
        self.pending.fill(0);
        if self.compiled.serial.is_some() {
            for i in 0..count {
                self.go(1 << i, tables, host, now_ns);
                if self.continues(i) {
                    count = i + 1;
                    break;
                }
            }
        } else if count > 0 {
            self.go(u64::MAX >> (64 - count), tables, host, now_ns);
        }
        self.count_tallies(host);
        self.keep_varbits();
        if !self.compiled.in_place {
            for (i, frame) in frames.iter_mut().enumerate().take(count) {
                let before = frame.memory.as_ptr() as u64;
                frame.start = (self.context[ROW_PACKET * PITCH + i] - before) as usize;
                frame.length = self.context[ROW_LENGTH * PITCH + i] as usize;
            }
        }
        count
    }

    /// Whether the packet of a slot has left for elsewhere.
    fn continues(&self, slot: usize) -> bool {
        let points = self.compiled.layout.of_exit.iter();
        points
            .zip(&self.compiled.pipeline.exits)
            .any(|(&point, exit)| exit.touches.is_some() && self.pending[point] >> slot & 1 == 1)
    }

    /// Takes varbits out of packets, which may be gone when somebody asks.
    fn keep_varbits(&mut self) {
        self.varbits.clear();
        let compiled = Arc::clone(&self.compiled);
        for &point in &compiled.layout.of_exit {
            let mut slots = self.pending[point];
            if slots == 0 {
                continue;
            }
            let varbits = compiled.exit_vars[point].iter();
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
    fn count_tallies(&mut self, host: &mut dyn Host) {
        let sites = &self.compiled.sites;
        for (call, tally) in sites.tallies.iter().enumerate() {
            let Some(counter) = tally.counter else { continue };
            let slots = std::mem::take(&mut self.tallies[call]);
            if slots == 0 {
                continue;
            }
            let at = match tally.index {
                Some(index) => Indexes::Same(index),
                None => Indexes::Each(&self.tallies[tally.row..tally.row + VECTOR]),
            };
            host.count_all(counter, slots, at);
        }
    }

    fn go(&mut self, mask: u64, tables: &[Arc<FastTable>], host: &mut dyn Host, now_ns: u64) {
        self.pending[0] = mask;
        let compiled = Arc::clone(&self.compiled);
        let exits = compiled.layout.points.len() - compiled.layout.of_exit.len();
        // One guard for all tables, if they have the same epochs.
        let epochs = tables.first().map(|t| t.epochs());
        let guard = epochs
            .filter(|e| tables.iter().all(|t| Arc::ptr_eq(t.epochs(), e)))
            .map(|e| e.enter());
        assert!(
            guard.is_some() || compiled.layout.direct.is_empty(),
            "tables that code looks into must have the same epochs"
        );
        self.direct.clear();
        if let Some(guard) = &guard {
            let sites = compiled.layout.direct.iter();
            self.direct.extend(sites.map(|site| {
                let table = tables[site.table.index()].direct(guard, site.kind);
                assert!(table.default.len() >= compiled.result_words[site.table.index()]);
                DirectPointers {
                    structure: table.structure,
                    default: table.default.as_ptr(),
                }
            }));
        }
        let run = Run {
            compiled: &compiled,
            tables,
            now_ns,
        };
        // Points are in the order of control, so the lowest that has packets is waited for by no other.
        let mut at = 0;
        while at < exits {
            let packets = std::mem::take(&mut self.pending[at]);
            if packets == 0 {
                at += 1;
                continue;
            }
            let point = &compiled.layout.points[at];
            let started = if self.profile.is_some() { cycles() } else { 0 };
            if let PointKind::Lookup { table, .. } = point.kind {
                let (before, rest) = self.context.split_at_mut(point.result_row * PITCH);
                let keys = &before[point.key_row * PITCH..];
                let results = &mut rest[..point.result_words * PITCH];
                let table_now = &tables[table.index()];
                let hits = match &guard {
                    Some(guard) => table_now.lookup_within(guard, packets, keys, results, PITCH, now_ns),
                    None => table_now.lookup(packets, keys, results, PITCH, now_ns),
                };
                host.looked_up(&mut LookedUp {
                    table,
                    active: packets,
                    hits,
                    keys,
                    results,
                });
            }
            let middle = if self.profile.is_some() { cycles() } else { 0 };
            self.segment(&run, at, packets, host);
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
        self.tell_of_direct(mask, host);
    }

    /// Tells the host of lookups that code did itself.
    fn tell_of_direct(&mut self, mask: u64, host: &mut dyn Host) {
        for site in &self.compiled.layout.direct {
            let (before, results) = self.context.split_at_mut(site.result_row * PITCH);
            let (active, hits) = outcomes(&results[..VECTOR], mask);
            if active == 0 {
                continue;
            }
            host.looked_up(&mut LookedUp {
                table: site.table,
                active,
                hits,
                keys: &before[site.key_row * PITCH..],
                results,
            });
            if mask.is_power_of_two() {
                results[mask.trailing_zeros() as usize] = NOT_LOOKED_UP;
            } else {
                results[..VECTOR].fill(NOT_LOOKED_UP);
            }
        }
    }

    fn segment(&mut self, run: &Run<'_>, point: usize, packets: u64, host: &mut dyn Host) {
        let compiled = run.compiled;
        let host: *mut (dyn Host + '_) = host;
        // SAFETY: only the lifetime changes; the pointer is not used after this call, which borrows the host.
        let host: *mut (dyn Host + 'static) = unsafe { std::mem::transmute(host) };
        let mut host = HostPointer(host);
        let mut env = Env {
            pending: self.pending.as_mut_ptr(),
            scratch: self.scratch.as_mut_ptr(),
            arguments: self.arguments.as_mut_ptr(),
            tallies: self.tallies.as_mut_ptr(),
            direct: self.direct.as_ptr(),
            now_ns: run.now_ns,
            context: self.context.as_mut_ptr(),
            compiled,
            tables: run.tables.as_ptr(),
            host: &raw mut host,
        };
        let Some(function) = compiled.functions[point] else {
            return;
        };
        // SAFETY: the code was made for this layout. It writes the context (rows and slots inside it), the
        // pending masks (one per point), the scratch, argument and tally areas (sized by the compiler) and, inside the
        // bounds that it checks against the packet's length, the packets, whose memory the frames own and
        // whose room before and behind was checked by `run` and `Frame::new`.
        unsafe { function(self.context.as_mut_ptr(), packets, &raw mut env) }
    }

    /// Slots that left by an exit.
    #[must_use]
    #[inline]
    pub fn left(&self, exit: u32) -> u64 {
        self.compiled
            .layout
            .of_exit
            .get(exit as usize)
            .map_or(0, |&p| self.pending[p])
    }

    /// Variables that an exit keeps.
    pub fn exit_values(&self, exit: u32) -> impl Iterator<Item = VarId> + '_ {
        let point = self.compiled.layout.of_exit.get(exit as usize);
        point
            .into_iter()
            .flat_map(|&p| self.compiled.exit_vars[p].iter().copied())
    }

    /// A narrow variable (at most 64 bits) that an exit keeps, of a slot that left by it.
    #[must_use]
    pub fn narrow(&self, slot: usize, var: VarId) -> u64 {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => self.context[row * PITCH + slot],
            _ => 0,
        }
    }

    /// The same for all slots: what is kept of a narrow variable, of slots that left by an exit that keeps it. Empty
    /// where no exit keeps it.
    #[must_use]
    #[inline]
    pub fn row(&self, var: VarId) -> &[u64] {
        match self.compiled.layout.rows.get(var.index()) {
            Some(Some(row)) => &self.context[row * PITCH..row * PITCH + VECTOR],
            _ => &[],
        }
    }

    /// A variable of any width that an exit keeps, of a slot that left by it.
    #[must_use]
    pub fn value(&self, slot: usize, var: VarId) -> Bits {
        let scalar = Scalar::from(self.compiled.vars[var.index()]);
        let Some(&Some(row)) = self.compiled.layout.rows.get(var.index()) else {
            return Bits::zero(if scalar.varbit { 0 } else { scalar.width });
        };
        if scalar.varbit {
            let kept = self.varbits.iter().find(|(s, v, _)| (*s, *v) == (slot, var));
            return kept.map_or(Bits::zero(0), |(_, _, value)| value.clone());
        }
        let words: Vec<u64> = (0..scalar.words())
            .map(|i| self.context[(row + i) * PITCH + slot])
            .collect();
        from_words(scalar.width, &words)
    }
}

// ----------------------------------------------------------------------- called by segments

/// The type of a segment.
pub(crate) type SegmentFunction = unsafe extern "C" fn(*mut u64, u64, *mut Env);

/// Words of a column of the context.
///
/// # Safety
/// `first` is a row's word of a slot, and `count` rows follow it.
unsafe fn column(first: *const u64, count: usize) -> Vec<u64> {
    // SAFETY: as the caller says.
    (0..count).map(|i| unsafe { *first.add(i * PITCH) }).collect()
}

pub(crate) unsafe extern "C" fn call(env: *mut Env, site: u64, slot: u64) -> u64 {
    // SAFETY: segments pass on the environment they were given, whose pointers live as long as the segment
    // runs; the argument area has `argument_words`, which all sites fit in.
    unsafe {
        let env = &mut *env;
        let compiled = &*env.compiled;
        let site_index = site as usize;
        let site = &compiled.sites.calls[site_index];
        let area = std::slice::from_raw_parts_mut(env.arguments, compiled.sites.argument_words + 8);
        let mut arguments = site.read(area);
        let packet = *env.context.add(ROW_PACKET * PITCH + slot as usize) as *const u8;
        let length = *env.context.add(ROW_LENGTH * PITCH + slot as usize) as usize;
        let packet = std::slice::from_raw_parts(packet, length);
        let on = (*(*env.host).0).call(site_index, slot as usize, packet, &mut arguments);
        site.write(&arguments, area);
        u64::from(!on)
    }
}

pub(crate) unsafe extern "C" fn count(env: *mut Env, counter: u64, index: u64, slot: u64) {
    // SAFETY: as for `call`.
    unsafe { (*(*(*env).host).0).count(counter as usize, index, slot as usize) }
}

/// A direct lookup that has to be asked for: the key is in the site's rows, the result goes there.
pub(crate) unsafe extern "C" fn lookup(env: *mut Env, site: u64, slot: u64) {
    // SAFETY: as for `call`; the site's rows lie in the context one after the other, and nobody else has a reference to
    // them while a segment runs.
    unsafe {
        let env = &mut *env;
        let compiled = &*env.compiled;
        let site = &compiled.layout.direct[site as usize];
        let table = &*env.tables.add(site.table.index());
        let (keys, results) = (
            site.result_row - site.key_row,
            compiled.result_words[site.table.index()],
        );
        let keys = std::slice::from_raw_parts(env.context.add(site.key_row * PITCH), keys * PITCH);
        let results = std::slice::from_raw_parts_mut(env.context.add(site.result_row * PITCH), results * PITCH);
        table.lookup(1 << slot, keys, results, PITCH, env.now_ns);
    }
}

pub(crate) unsafe extern "C" fn hash(env: *mut Env, algorithm: u64, bytes: u64) -> u64 {
    // SAFETY: as for `call`; code put so many bytes into the argument area.
    unsafe {
        let data = std::slice::from_raw_parts((*env).arguments.cast::<u8>(), bytes as usize);
        (*(*(*env).host).0).hash(algorithm as u32, data)
    }
}

pub(crate) unsafe extern "C" fn value_set(env: *mut Env, set: u64, keys: *const u64) -> u64 {
    // SAFETY: as for `call`; the keys lie in the argument area, each in whole words.
    unsafe {
        let env = &*env;
        let id = ValueSetId::new(set as usize);
        let compiled = &*env.compiled;
        let fields = &compiled.pipeline.program.value_sets[id].fields;
        let words = fields.iter().map(|f| f.width.div_ceil(64).max(1) as usize).sum();
        let keys = std::slice::from_raw_parts(keys, words);
        (*(*env.host).0).value_set_contains(id, keys).into()
    }
}

pub(crate) unsafe extern "C" fn wide(env: *mut Env, op: u64, first: *mut u64) -> u64 {
    // SAFETY: as for `call`; `first` is the packet's column, and homes lie within the context.
    unsafe {
        let env = &*env;
        let compiled = &*env.compiled;
        let op = &compiled.sites.wide[op as usize];
        let mut at = 0;
        let operands: Vec<Bits> = op
            .value
            .operands()
            .map(|o| {
                let index = at;
                at += 1;
                match o {
                    Operand::Const(c) => c.clone(),
                    Operand::Var(v) => {
                        let scalar = Scalar::from(compiled.vars[v.index()]);
                        match compiled.layout.rows[v.index()] {
                            Some(row) if !compiled.vars[v.index()].is_narrow() => {
                                scalar.read(&column(first.add(row * PITCH), scalar.words()))
                            }
                            _ => from_words(scalar.width, &[*env.arguments.add(index)]),
                        }
                    }
                }
            })
            .collect();
        let mut next = operands.into_iter();
        let result = weir_ir::eval::rvalue(&op.value, op.width, |_| next.next().unwrap_or(Bits::zero(0)));
        match op.dst {
            None => result.to_u64_saturating(),
            Some(v) => {
                let scalar = Scalar::from(compiled.vars[v.index()]);
                let mut words = vec![0; scalar.words()];
                scalar.write(&mut words, &result);
                if let Some(row) = compiled.layout.rows[v.index()] {
                    for (i, word) in words.into_iter().enumerate() {
                        *first.add((row + i) * PITCH) = word;
                    }
                }
                0
            }
        }
    }
}

pub(crate) unsafe extern "C" fn varbit_store(from: *const u8, bits: u64, to: *mut u8) {
    // SAFETY: code checked that the packet has these bits and the variable may have as many; the scratch area has
    // room for every header at its longest.
    unsafe { std::ptr::copy_nonoverlapping(from, to, (bits / 8) as usize) };
}

pub(crate) unsafe extern "C" fn varbit_sum(from: *const u8, bits: u64, at: u64) -> u64 {
    // SAFETY: as for `varbit_store`.
    let bytes = unsafe { std::slice::from_raw_parts(from, (bits / 8) as usize) };
    // The first bit is bit `at` of the sum: so many bits are missing to a whole word before it.
    let lead = at % 16;
    if lead == 0 {
        let (words, rest) = bytes.as_chunks::<2>();
        let sum: u64 = words.iter().map(|w| u64::from(u16::from_be_bytes(*w))).sum();
        return sum + rest.first().map_or(0, |b| u64::from(*b) << 8);
    }
    let mut bits = crate::bits::Accumulator::new(lead as u32);
    bytes.iter().for_each(|&b| bits.push(b));
    bits.sum()
}

pub(crate) unsafe extern "C" fn finish(column: *mut u64, scratch: *const u8, emitted: u64, parsed: u64) {
    // SAFETY: `column` is the packet's; the frame has as much room before it as the deparser can emit.
    unsafe {
        let packet = *column.add(ROW_PACKET * PITCH) as *mut u8;
        let length = *column.add(ROW_LENGTH * PITCH);
        let start = packet.offset(parsed as isize - emitted as isize);
        std::ptr::copy_nonoverlapping(scratch, start, emitted as usize);
        *column.add(ROW_PACKET * PITCH) = start as u64;
        *column.add(ROW_LENGTH * PITCH) = length - parsed + emitted;
    }
}
