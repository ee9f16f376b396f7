//! What compiled code asks the switch for: calls with state, counters, cells, and what lookups come
//! to.

use super::OnHit;
use super::stage::{Given, Lent, Ran, Served};
use crate::waiting::{SlotPackets, flow_of};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use weir_arch::{BoundCall, Defaults, Env, Fused, FusedArguments, FusedPacket, LogMessage, Messages, State};
use weir_extern_api::Outcome;
use weir_interp::NoTrace;
use weir_ir::{Bits, MatchKind, ValueSetId};
use weir_jit::{CallArguments, Host, Indexes, LookedUp, PITCH, Suspended, VECTOR};
use weir_table::fast::head;

/// What the architecture keeps of packets while they are under way. Most packets need none of it,
/// so a slot is initialised at its first use.
pub(super) struct PendingLookup<'a> {
    pub packets: &'a mut [FusedPacket],
    pub lengths: &'a [u64; VECTOR],
    pub begun: u64,
}

impl PendingLookup<'_> {
    pub fn of(&mut self, slot: usize) -> &mut FusedPacket {
        let packet = &mut self.packets[slot];
        if self.begun >> slot & 1 == 0 {
            self.begun |= 1 << slot;
            packet.begin(self.lengths[slot] as usize);
        }
        packet
    }
}

/// What the architecture works with: it chooses as it likes, and nothing is traced.
fn env<'a>(state: &'a mut State, now_ns: u64, choices: &'a mut Defaults, tracer: &'a mut NoTrace) -> Env<'a> {
    Env {
        state,
        now_ns,
        choices,
        tracer,
    }
}

/// What the host needs of the stage that it serves.
pub(super) struct StageParts<'a> {
    pub fused: &'a Fused,
    /// By call: the registered extern, if it is one.
    pub externs: &'a [Option<Arc<BoundCall>>],
    pub packets: PendingLookup<'a>,
    /// Bytes of the packets as counters count them.
    pub counted: &'a [u64; VECTOR],
    /// Bytes that must lie before a packet.
    pub headroom: usize,
}

/// Serves the pipeline.
pub(super) struct SwitchHost<'a> {
    stage: StageParts<'a>,
    lent: Lent<'a>,
    given: &'a Given<'a>,
    served: Served<'a>,
    /// The log, while what is logged waits until it is its packet's turn.
    log: Option<Messages<LogMessage>>,
    /// What was logged, with the slot of the packet.
    logged: Vec<(usize, LogMessage)>,
    /// Packets that were dropped because no more can wait.
    full: u64,
}

impl<'a> SwitchHost<'a> {
    /// For one run of a vector.
    #[inline(always)]
    pub fn new(stage: StageParts<'a>, lent: Lent<'a>, given: &'a Given<'a>, served: Served<'a>) -> Self {
        SwitchHost {
            stage,
            lent,
            given,
            served,
            log: None,
            logged: Vec::new(),
            full: 0,
        }
    }

    /// What was done, when `count` packets have run.
    #[inline(always)]
    pub fn finish(self, count: usize) -> Ran {
        if let Some(log) = self.log {
            self.served.state.log = log;
        }
        Ran {
            count,
            begun: self.stage.packets.begun,
            logged: self.logged,
            full: self.full,
        }
    }

    /// When the packet of a slot is under way.
    fn now(&self, slot: usize) -> u64 {
        self.given.times.map_or(self.given.now_ns, |times| times[slot])
    }

    /// The values of the selector keys of a slot; zeros for the others, which nobody asks for.
    fn selector_keys(&self, lookup: &LookedUp<'_>, slot: usize) -> Vec<Bits> {
        let table = &self.stage.fused.pipeline.program.tables[lookup.table];
        let mut row = self.lent.tables[lookup.table.index()].key_layout().words;
        table
            .keys
            .iter()
            .map(|key| {
                if key.match_kind != MatchKind::Selector {
                    return Bits::zero(key.width);
                }
                let rows = row..row + Bits::words_of(key.width);
                row = rows.end;
                let words: SmallVec<[u64; 4]> = rows.map(|row| lookup.keys[row * PITCH + slot]).collect();
                Bits::from_words(key.width, &words)
            })
            .collect()
    }

    /// Direct counters of what was hit count.
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
            self.served.state.count_hits(lookup.table, all);
        } else {
            let heads = heads(lookup);
            let hits = Slots(lookup.hits).map(|slot| (head::handle(heads[slot % VECTOR]), lengths[slot % VECTOR]));
            self.served.state.count_hits(lookup.table, hits);
        }
    }

    #[inline(never)]
    fn ask(&mut self, lookup: &mut LookedUp<'_>) {
        let mut hits = lookup.hits;
        while hits != 0 {
            let slot = hits.trailing_zeros() as usize;
            hits &= hits - 1;
            let word = lookup.results()[slot];
            let keys = self.selector_keys(lookup, slot);
            let handle = head::handle(word);
            let now_ns = self.now(slot);
            let resolved = self.served.arch.fused_hit(
                &mut env(self.served.state, now_ns, &mut Defaults, &mut NoTrace),
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
            self.log = Some(std::mem::take(&mut self.served.state.log));
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
        let continues = self.served.arch.fused_call(
            &mut env(self.served.state, now_ns, &mut Defaults, &mut NoTrace),
            self.stage.fused,
            call,
            self.stage.packets.of(slot),
            passed,
        );
        while let Some(message) = self.served.state.log.pop() {
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
        if kept.keep_payload(packet, consumed, self.stage.fused.payload_kept) && self.served.async_calls.keeps_flows() {
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
            Some(bound) => self.served.async_calls.begin(bound, slot, consumed, payload, words),
            None => false,
        }
    }

    fn finish_extern(&mut self, call: usize, slot: usize, words: &mut [u64]) -> bool {
        match self.stage.externs.get(call).and_then(Option::as_ref) {
            Some(bound) => self.served.async_calls.finish(bound, slot, words),
            None => true,
        }
    }

    #[inline(never)]
    fn suspend(&mut self, suspended: Suspended<'_>) {
        let mut packets = SlotPackets {
            headroom: self.stage.headroom,
            is_egress: self.given.is_egress,
            now_ns: self.given.now_ns,
            times: self.given.times,
            ports: self.given.ports,
            handling: self.given.told,
            fused: &mut *self.stage.packets.packets,
            begun: self.stage.packets.begun,
            lengths: self.stage.packets.lengths,
            first: self.given.first,
            passages: self.given.passages,
        };
        self.full += self.served.async_calls.suspend(&suspended, &mut packets);
        // The slots are empty now.
        self.stage.packets.begun &= !suspended.slots();
    }

    fn count(&mut self, counter: usize, index: u64, slot: usize) {
        let bytes = self.stage.counted[slot];
        self.served.state.count(weir_ir::ExternId::new(counter), index, bytes);
    }

    fn count_all(&mut self, counter: usize, slots: u64, at: Indexes<'_>) {
        let (id, lengths) = (weir_ir::ExternId::new(counter), self.stage.counted);
        match at {
            Indexes::Same(index) => {
                let bytes = Slots(slots).map(|slot| lengths[slot]).sum();
                self.served
                    .state
                    .count_many(id, index, slots.count_ones().into(), bytes);
            }
            Indexes::Each(indexes) => {
                let packets = Slots(slots).map(|slot| (indexes[slot], lengths[slot]));
                self.served.state.count_each(id, packets);
            }
        }
    }

    fn read_cell(&mut self, array: usize, scalar: usize, index: u64) -> u64 {
        self.served
            .state
            .register_scalar(weir_ir::ExternId::new(array), scalar, index)
    }

    fn write_cell(&mut self, array: usize, scalar: usize, index: u64, value: u64) {
        self.served
            .state
            .set_register_scalar(weir_ir::ExternId::new(array), scalar, index, value);
    }

    fn cells(&mut self, array: usize) -> Option<&Arc<[AtomicU64]>> {
        self.served.state.register_cells(weir_ir::ExternId::new(array))
    }

    fn hash(&mut self, algorithm: u32, data: &[u8]) -> u64 {
        self.served.arch.fused_hash(self.served.state, algorithm, data)
    }

    fn value_set_contains(&mut self, set: ValueSetId, keys: &[u64]) -> bool {
        let Some(set) = self.lent.sets.get(set.index()) else {
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
        set.lookup_one(&packed, &mut result, self.given.now_ns)
    }

    #[inline(always)]
    fn prefetch_hits(&mut self, lookup: &LookedUp<'_>) {
        if self.lent.on_hit[lookup.table.index()] == OnHit::Count {
            let handles = Slots(lookup.hits).map(|slot| head::handle(lookup.results()[slot]));
            self.served.state.fetch_counts(lookup.table, handles);
        }
    }

    #[inline(always)]
    fn looked_up(&mut self, lookup: &mut LookedUp<'_>) {
        let misses = lookup.active & !lookup.hits;
        self.served
            .state
            .looked_up(lookup.table, lookup.hits.count_ones(), misses.count_ones());
        let lengths = self.stage.counted;
        match self.lent.on_hit[lookup.table.index()] {
            OnHit::Nothing => {}
            OnHit::CountThere => {
                self.lent.tables[lookup.table.index()].count_hits(lookup.hits, heads(lookup), lengths);
            }
            OnHit::Count => self.count_hits(lookup),
            OnHit::Ask => self.ask(lookup),
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
