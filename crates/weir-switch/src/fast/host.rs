//! The host of compiled code: calls with state, counters, cells, and side effects of lookups.

use super::OnHit;
use super::stage::{HostState, SharedTables, VectorInputs, VectorOutcome};
use crate::waiting::{SlotPackets, flow_of};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_arch::{BoundCall, Defaults, Env, Fused, FusedArguments, FusedPacket, LogMessage, Messages, State};
use weir_extern_api::Outcome;
use weir_interp::NoTrace;
use weir_ir::{Bits, MatchKind, ValueSetId};
use weir_jit::{CallArguments, Host, Indexes, LookedUp, ROW_STRIDE, Suspended, VECTOR};
use weir_table::fast::head;

/// The architecture's state of the packets of a vector. Most packets need none, so a slot is
/// initialised at its first use.
pub(super) struct FusedPackets<'a> {
    pub packets: &'a mut [FusedPacket],
    pub lengths: &'a [u64; VECTOR],
    pub initialised: u64,
}

impl FusedPackets<'_> {
    pub fn of(&mut self, slot: usize) -> &mut FusedPacket {
        let packet = &mut self.packets[slot];
        if self.initialised >> slot & 1 == 0 {
            self.initialised |= 1 << slot;
            packet.begin(self.lengths[slot] as usize);
        }
        packet
    }
}

/// The environment of the architecture: default outcomes, no trace.
fn env<'a>(state: &'a mut State, now_ns: u64, choices: &'a mut Defaults, tracer: &'a mut NoTrace) -> Env<'a> {
    Env {
        state,
        now_ns,
        choices,
        tracer,
    }
}

/// The parts of a stage that its host needs.
pub(super) struct StageParts<'a> {
    pub fused: &'a Fused,
    /// By call: the registered extern, if it is one.
    pub externs: &'a [Option<Arc<BoundCall>>],
    pub packets: FusedPackets<'a>,
    /// Bytes of the packets as counters count them.
    pub counted: &'a [u64; VECTOR],
    /// Bytes that must lie before a packet.
    pub headroom: usize,
}

/// Serves the pipeline.
pub(super) struct SwitchHost<'a> {
    stage: StageParts<'a>,
    shared_tables: SharedTables<'a>,
    vector_inputs: &'a VectorInputs<'a>,
    host_state: HostState<'a>,
    /// The log, while messages are held back to be ordered by packet.
    log: Option<Messages<LogMessage>>,
    /// Log messages, with the slot of the packet.
    logged: Vec<(usize, LogMessage)>,
    /// Packets that were dropped because no more can wait.
    full: u64,
}

impl<'a> SwitchHost<'a> {
    /// For one run of a vector.
    #[inline(always)]
    pub fn new(
        stage: StageParts<'a>,
        shared_tables: SharedTables<'a>,
        vector_inputs: &'a VectorInputs<'a>,
        host_state: HostState<'a>,
    ) -> Self {
        SwitchHost {
            stage,
            shared_tables,
            vector_inputs,
            host_state,
            log: None,
            logged: Vec::new(),
            full: 0,
        }
    }

    /// The outcome, when `count` packets have run.
    #[inline(always)]
    pub fn finish(self, count: usize) -> VectorOutcome {
        if let Some(log) = self.log {
            self.host_state.state.log = log;
        }
        VectorOutcome {
            count,
            initialised: self.stage.packets.initialised,
            logged: self.logged,
            full: self.full,
        }
    }

    /// When the packet of a slot is under way.
    fn now(&self, slot: usize) -> u64 {
        self.vector_inputs
            .times
            .map_or(self.vector_inputs.now_ns, |times| times[slot])
    }

    /// The values of the selector keys of a slot; zeros for the others, which are not read.
    fn selector_keys(&self, lookup: &LookedUp<'_>, slot: usize) -> Vec<Bits> {
        let table = &self.stage.fused.pipeline.program.tables[lookup.table];
        let mut row = self.shared_tables.tables[lookup.table.index()].key_layout().words;
        table
            .keys
            .iter()
            .map(|key| {
                if key.match_kind != MatchKind::Selector {
                    return Bits::zero(key.width);
                }
                let rows = row..row + Bits::words_of(key.width);
                row = rows.end;
                let words: SmallVec<[u64; 4]> = rows.map(|row| lookup.keys[row * ROW_STRIDE + slot]).collect();
                Bits::from_words(key.width, &words)
            })
            .collect()
    }

    /// Counts hits in direct counters.
    #[inline(never)]
    fn count_hits(&mut self, lookup: &LookedUp<'_>) {
        let lengths = self.stage.counted;
        if lookup.hits == u64::MAX {
            // Counting one is so short that the loop around it would be a third of it.
            let (heads, lengths) = (heads(lookup).as_chunks::<4>().0, lengths.as_chunks::<4>().0);
            let all = heads
                .iter()
                .zip(lengths)
                .flat_map(|(heads, lengths)| std::array::from_fn::<_, 4, _>(|i| (head::handle(heads[i]), lengths[i])));
            self.host_state.state.count_hits(lookup.table, all);
        } else {
            let heads = heads(lookup);
            let hits = Slots(lookup.hits).map(|slot| (head::handle(heads[slot % VECTOR]), lengths[slot % VECTOR]));
            self.host_state.state.count_hits(lookup.table, hits);
        }
    }

    #[inline(never)]
    fn call_architecture(&mut self, lookup: &mut LookedUp<'_>) {
        let mut hits = lookup.hits;
        while hits != 0 {
            let slot = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            let word = lookup.results()[slot];
            let keys = self.selector_keys(lookup, slot);
            let handle = head::handle(word);
            let now_ns = self.now(slot);
            let resolved = self.host_state.arch.fused_hit(
                &mut env(self.host_state.state, now_ns, &mut Defaults, &mut NoTrace),
                self.stage.packets.of(slot),
                lookup.table,
                handle,
                &keys,
            );
            let Some((action, data)) = resolved else { continue };
            lookup.set_hit(slot, action, &data);
        }
    }
}

impl Host for SwitchHost<'_> {
    fn call(&mut self, call: usize, slot: usize, packet: &[u8], arguments: &mut CallArguments) -> bool {
        if self.log.is_none() {
            self.log = Some(std::mem::take(&mut self.host_state.state.log));
        }
        let passed = FusedArguments {
            packet,
            cursor: arguments.cursor,
            arguments: &mut arguments.arguments,
            results: &mut arguments.results,
            entry: arguments.entry,
            reads: &arguments.reads,
        };
        let now_ns = self.now(slot);
        let continues = self.host_state.arch.fused_call(
            &mut env(self.host_state.state, now_ns, &mut Defaults, &mut NoTrace),
            self.stage.fused,
            call,
            self.stage.packets.of(slot),
            passed,
        );
        while let Some(message) = self.host_state.state.log.pop() {
            self.logged.push((slot, message));
        }
        continues
    }

    fn before_extern(&mut self, call: usize, slot: usize, packet: &[u8], consumed: usize) {
        let bound = self.stage.externs.get(call).and_then(Option::as_ref);
        if !bound.is_some_and(|bound| bound.changes_payload()) {
            return;
        }
        let kept = self.stage.packets.of(slot);
        if kept.keep_payload(packet, consumed, self.stage.fused.payload_kept)
            && self.host_state.async_calls.keeps_flows()
        {
            kept.flow = Some(flow_of(packet));
        }
    }

    fn call_extern(&mut self, call: usize, _: usize, payload: &mut [u8], words: &mut [u64]) -> bool {
        match self.stage.externs.get(call).and_then(Option::as_ref) {
            Some(bound) => bound.execute(words, payload) == Outcome::Continue,
            None => true,
        }
    }

    fn begin_extern(&mut self, call: usize, slot: usize, consumed: usize, payload: &mut [u8], words: &[u64]) -> bool {
        match self.stage.externs.get(call).and_then(Option::as_ref) {
            Some(bound) => self.host_state.async_calls.begin(bound, slot, consumed, payload, words),
            None => false,
        }
    }

    fn finish_extern(&mut self, call: usize, slot: usize, words: &mut [u64]) -> bool {
        match self.stage.externs.get(call).and_then(Option::as_ref) {
            Some(bound) => self.host_state.async_calls.finish(bound, slot, words),
            None => true,
        }
    }

    #[inline(never)]
    fn suspend(&mut self, suspended: Suspended<'_>) {
        let mut packets = SlotPackets {
            headroom: self.stage.headroom,
            is_egress: self.vector_inputs.is_egress,
            now_ns: self.vector_inputs.now_ns,
            times: self.vector_inputs.times,
            ports: self.vector_inputs.ports,
            handling: self.vector_inputs.handling,
            fused: &mut *self.stage.packets.packets,
            initialised: self.stage.packets.initialised,
            lengths: self.stage.packets.lengths,
            first: self.vector_inputs.first,
            passages: self.vector_inputs.passages,
        };
        self.full += self.host_state.async_calls.suspend(&suspended, &mut packets);
        // The slots are empty now.
        self.stage.packets.initialised &= !suspended.slots();
    }

    fn count(&mut self, counter: usize, index: u64, slot: usize) {
        let bytes = self.stage.counted[slot];
        self.host_state
            .state
            .count(weir_ir::ExternId::new(counter), index, bytes);
    }

    fn count_all(&mut self, counter: usize, slots: u64, at: Indexes<'_>) {
        let (id, lengths) = (weir_ir::ExternId::new(counter), self.stage.counted);
        match at {
            Indexes::Same(index) => {
                let bytes = Slots(slots).map(|slot| lengths[slot]).sum();
                self.host_state
                    .state
                    .count_many(id, index, slots.count_ones().into(), bytes);
            }
            Indexes::Each(indexes) => {
                let packets = Slots(slots).map(|slot| (indexes[slot], lengths[slot]));
                self.host_state.state.count_each(id, packets);
            }
        }
    }

    fn read_cell(&mut self, array: usize, scalar: usize, index: u64) -> u64 {
        self.host_state
            .state
            .register_scalar(weir_ir::ExternId::new(array), scalar, index)
    }

    fn write_cell(&mut self, array: usize, scalar: usize, index: u64, value: u64) {
        self.host_state
            .state
            .set_register_scalar(weir_ir::ExternId::new(array), scalar, index, value);
    }

    fn cells(&mut self, array: usize) -> Option<&Arc<[AtomicU64]>> {
        self.host_state.state.register_cells(weir_ir::ExternId::new(array))
    }

    fn hash(&mut self, algorithm: u32, data: &[u8]) -> u64 {
        self.host_state.arch.fused_hash(self.host_state.state, algorithm, data)
    }

    fn value_set_contains(&mut self, set: ValueSetId, keys: &[u64]) -> bool {
        let Some(set) = self.shared_tables.sets.get(set.index()) else {
            return false;
        };
        let mut packed = SmallVec::<[u64; 4]>::from_elem(0, set.key_layout().words);
        let mut at = 0;
        for slot in set.key_layout().fields.iter().flatten() {
            let first = usize::from(slot.word);
            let words = slot.words().max(1);
            if slot.width <= 64 {
                packed[first] |= keys[at] << slot.shift;
            } else {
                packed[first..first + words].copy_from_slice(&keys[at..at + words]);
            }
            at += words;
        }
        let mut result = SmallVec::<[u64; 2]>::from_elem(0, set.result_layout().words);
        set.lookup_one(&packed, &mut result, self.vector_inputs.now_ns)
    }

    #[inline(always)]
    fn prefetch_hits(&mut self, lookup: &LookedUp<'_>) {
        if self.shared_tables.on_hit[lookup.table.index()] == OnHit::Count {
            let handles = Slots(lookup.hits).map(|slot| head::handle(lookup.results()[slot]));
            self.host_state.state.fetch_counts(lookup.table, handles);
        }
    }

    #[inline(always)]
    fn looked_up(&mut self, lookup: &mut LookedUp<'_>) {
        let misses = lookup.active & !lookup.hits;
        self.host_state
            .state
            .looked_up(lookup.table, lookup.hits.count_ones(), misses.count_ones());
        let lengths = self.stage.counted;
        match self.shared_tables.on_hit[lookup.table.index()] {
            OnHit::Nothing => {}
            OnHit::CountInTable => {
                self.shared_tables.tables[lookup.table.index()].count_hits(lookup.hits, heads(lookup), lengths);
            }
            OnHit::Count => self.count_hits(lookup),
            OnHit::CallArchitecture => self.call_architecture(lookup),
        }
    }
}

/// The heads of a lookup's results: as long as a row, so that slots need not be compared with it
/// one by one.
#[inline]
fn heads<'a>(lookup: &'a LookedUp<'_>) -> &'a [u64; VECTOR] {
    match lookup.results().first_chunk() {
        Some(heads) => heads,
        None => unreachable!("results have a word of each slot"),
    }
}

/// The slots of a mask, lowest first.
#[derive(Clone, Copy)]
pub(super) struct Slots(pub u64);

impl Iterator for Slots {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(slot)
    }
}
