//! Lowers a segment's code for one packet to operations on eight ([`super::op`]).
//!
//! Goes through the blocks in the order of [`super::flow`], and keeps for each Cranelift value a
//! [`LaneValue`], which is materialised on demand. Loads and stores of packets go through
//! [`MemoryState`]. This file has values, masks, control flow and memory; [`super::instruction`]
//! has the single instructions.

mod control;

use super::address::{AddressAnalysis, MemoryOperand, Parameter, Region};
use super::bytes::{self, Byte, Bytes, RESULT, Recipe};
use super::flow::{Flow, block_successors};
use super::memory::{MemoryState, PendingStore};
use super::op::{AddressSource, Alu, Code, M, MaskAlu, Op, Rows, ShiftOp, Source, V};
use super::sink::{self, SunkLoad};
use super::{SlotPrefetch, supported};
use crate::codegen::env;
use crate::layout::PITCH;
use crate::run::TAILROOM;
use cranelift_codegen::ir::{Block, Function, InstructionData, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A Cranelift value, for eight packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LaneValue {
    Constant(u64),
    /// Bytes of vectors, not yet materialised.
    Bytes(Bytes),
    Vector(V),
    /// One bit per packet: 1 or 0.
    Mask(M),
    /// The word at this offset in the array descriptors, the same for all packets.
    Uniform(i32),
    /// The word at this offset from an address, not yet loaded.
    Unloaded(V, i32),
}

/// The state of lowering.
pub(super) struct Lower<'a> {
    pub func: &'a Function,
    pub addressing: AddressAnalysis<'a>,
    flow: Flow,
    /// Blocks at which packets bail out.
    bailouts: BTreeSet<Block>,
    pub code: Code,
    known: HashMap<Value, LaneValue>,
    /// Words that were materialised, with their block.
    materialised: HashMap<Bytes, (V, usize)>,
    /// Results that were computed, with their block. Cranelift recomputes cheap values in every
    /// block, and an address that is computed anew would not be recognised: its memory would be
    /// loaded again. Reuse is valid in dominated blocks. A block runs for all packets of the blocks
    /// it dominates, so those lanes have the value. And a vector is written once, or (block
    /// parameters) by all predecessors before it is read.
    computed: HashMap<ComputedOp, (V, usize)>,
    constants: HashMap<u64, (V, usize)>,
    /// Loaded words of array descriptors by offset, with their block.
    uniforms: HashMap<i32, (V, usize)>,
    /// Upper bounds of the words of a vector.
    bounds: HashMap<V, u64>,
    /// The operation that defines a vector.
    definitions: HashMap<V, usize>,
    /// Stores to rows, done at the end of the current block.
    row_stores: Vec<Op>,
    /// Prefetches to do once rows are stored, by the row's offset.
    prefetches: BTreeMap<i32, SlotPrefetch>,
    /// Rows of the context that are written anywhere before.
    is_written: BTreeSet<i32>,
    /// By block: its mask, if it has one yet.
    masks: HashMap<usize, M>,
    /// Block parameters that have a value on some path.
    parameters: HashMap<Value, V>,
    /// The current block.
    current: usize,
    memory: MemoryState,
    /// By block: the state at its end.
    memories: Vec<MemoryState>,
    addresses: Option<Addresses>,
    /// By address: the bytes that blocks read (block, offset, count).
    reads: HashMap<Value, Vec<(usize, i32, u32)>>,
    /// Loads that are done in the blocks that use them.
    sunk: HashMap<Value, SunkLoad>,
    /// Blocks whose dominated blocks have not ended.
    open: Vec<OpenBlock>,
}

/// A computation that depends on its operands only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ComputedOp {
    Alu(Alu, V, Source),
    Shift(ShiftOp, V, u8),
}

/// A vector of addresses, and the mask of the packets for which they are set.
type Addresses = (V, M);

/// A block whose dominated blocks have not ended.
struct OpenBlock {
    number: usize,
    /// The position behind them.
    end: usize,
    /// The current addresses when it began.
    addresses: Option<Addresses>,
}

/// The code for eight packets. `None`: there is nothing to gain, as there is a loop or all packets
/// bail out.
pub(super) fn lower(
    func: &Function,
    hot_points: &BTreeSet<usize>,
    prefetches: &BTreeMap<usize, SlotPrefetch>,
) -> Option<Code> {
    let mut addresses = AddressAnalysis::new(func);
    let bailouts = supported::bailouts(func, &mut addresses)?;
    let flow = Flow::new(func, &bailouts, hot_points)?;
    let sunk = sink::find(func, &mut addresses, &flow, &bailouts);
    let count = flow.order.len();
    let mut lower = Lower {
        func,
        addressing: addresses,
        flow,
        bailouts,
        code: Code::default(),
        known: HashMap::new(),
        materialised: HashMap::new(),
        computed: HashMap::new(),
        constants: HashMap::new(),
        uniforms: HashMap::new(),
        bounds: HashMap::new(),
        definitions: HashMap::new(),
        row_stores: Vec::new(),
        prefetches: prefetches
            .iter()
            .map(|(row, prefetch)| ((row * PITCH * 8) as i32, *prefetch))
            .collect(),
        is_written: BTreeSet::new(),
        masks: HashMap::new(),
        parameters: HashMap::new(),
        current: 0,
        memory: MemoryState::default(),
        memories: vec![MemoryState::default(); count],
        addresses: None,
        reads: HashMap::new(),
        sunk,
        open: Vec::new(),
    };
    lower.find_reads();
    lower.all();
    Some(lower.code)
}

impl Lower<'_> {
    fn all(&mut self) {
        let entry = self.code.mask();
        self.code.entry = Some(entry);
        self.masks.insert(0, entry);
        for i in 0..self.flow.order.len() {
            self.block(i);
        }
        self.close(self.flow.order.len());
    }

    /// Collects which bytes of packets blocks read.
    fn find_reads(&mut self) {
        let func = self.func;
        for (i, block) in self.flow.order.clone().into_iter().enumerate() {
            if self.bailouts.contains(&block) {
                continue;
            }
            for inst in func.layout.block_insts(block) {
                if let InstructionData::Load {
                    opcode, arg, offset, ..
                } = func.dfg.insts[inst]
                    && let Some(&result) = func.dfg.inst_results(inst).first()
                    && !self.is_sunk(result)
                    && let Some(MemoryOperand::PerPacket(region, base, offset)) =
                        self.addressing.operand(arg, offset.into())
                    && !matches!(
                        region,
                        Region::ReadOnly | Region::RecordPointers | Region::ArrayDescriptors
                    )
                    && let Some(count) = AddressAnalysis::access(opcode, func.dfg.value_type(result))
                {
                    self.reads.entry(base).or_default().push((i, offset, count));
                }
            }
        }
    }

    /// Closes the blocks that end before a position.
    fn close(&mut self, next: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= next) {
            // The block may have been skipped, so its addresses are not certain.
            if self.addresses != open.addresses {
                self.addresses = None;
            }
            self.op(Op::End { number: open.number });
        }
    }

    fn block(&mut self, at: usize) {
        self.close(at);
        self.current = at;
        if let Some(same) = self.flow.same_packets[at] {
            let mask = self.masks[&same];
            self.masks.insert(at, mask);
        }
        let mask = self.mask_of(at);
        if self.flow.predecessors[at] != [at.wrapping_sub(1)] || self.flow.same_packets[at].is_none() {
            self.open.push(OpenBlock {
                number: at,
                end: self.flow.dominated_end[at],
                addresses: self.addresses,
            });
            let rare = self.flow.is_rare(at);
            self.op(Op::Block { number: at, mask, rare });
        }
        // Masks of merge blocks are cleared before any of their predecessors runs.
        for to in at + 1..self.flow.order.len() {
            if self.flow.dominator[to] == at && self.is_merge(to) {
                let mask = self.code.mask();
                self.op(Op::EmptyMask { mask });
                self.masks.insert(to, mask);
            }
        }
        self.memory = match self.flow.predecessors[at].split_first() {
            None => MemoryState::default(),
            Some((first, others)) => {
                let mut memory = self.memories[*first].clone();
                others.iter().for_each(|other| memory.meet(&self.memories[*other]));
                memory
            }
        };
        let block = self.flow.order[at];
        if self.bailouts.contains(&block) {
            self.op(Op::BailOut);
            return;
        }
        for inst in self.func.layout.block_insts(block) {
            if self.func.dfg.insts[inst].opcode().is_terminator() {
                self.write_all();
                self.memories[at] = self.memory.clone();
                let stores = std::mem::take(&mut self.row_stores);
                let prefetches: Vec<Op> = stores.iter().filter_map(|store| self.prefetch_for(store)).collect();
                stores.into_iter().chain(prefetches).for_each(|op| self.op(op));
                self.terminator(inst);
            } else {
                self.instruction(inst);
            }
        }
    }

    /// The prefetch that follows the store of a row.
    fn prefetch_for(&self, store: &Op) -> Option<Op> {
        match store {
            Op::StoreRow {
                rows: Rows::Context,
                offset,
                from,
            } => {
                let prefetch = *self.prefetches.get(offset)?;
                Some(Op::PrefetchSlots { keys: *from, prefetch })
            }
            _ => None,
        }
    }

    /// Whether a block joins several paths, and runs for the same packets as no earlier block.
    fn is_merge(&self, block: usize) -> bool {
        self.flow.same_packets[block].is_none() && self.flow.predecessors[block].len() > 1
    }

    fn mask_of(&self, block: usize) -> M {
        match self.masks.get(&block) {
            Some(mask) => *mask,
            None => unreachable!("predecessors come before a block and set its mask"),
        }
    }

    /// The mask of the current block.
    pub fn block_mask(&self) -> M {
        self.mask_of(self.current)
    }

    pub fn op(&mut self, op: Op) {
        let number = self.code.ops.len();
        op.writes(|v| {
            self.definitions.insert(v, number);
        });
        self.code.ops.push(op);
    }

    pub fn definition(&self, v: V) -> Option<&Op> {
        self.definitions.get(&v).map(|i| &self.code.ops[*i])
    }

    // ------------------------------------------------------------------------- values

    /// The lane value of a Cranelift value. A sunk load is done now.
    pub fn value_of(&mut self, value: Value) -> LaneValue {
        if let Some(SunkLoad { base, offset, count }) = self.sunk.get(&value).copied() {
            // Once per block, as each block may be skipped.
            return self.load_memory(Region::Packet, base, offset, count);
        }
        match self.known.get(&value) {
            Some(known) => *known,
            None => unreachable!("{value} belongs to a block that is lowered"),
        }
    }

    /// Whether a value is a sunk load.
    pub fn is_sunk(&self, value: Value) -> bool {
        self.sunk.contains_key(&value)
    }

    pub fn set(&mut self, value: Value, known: LaneValue) {
        self.known.insert(value, known);
    }

    /// The upper bound of a vector's words.
    pub fn bound(&self, v: V) -> u64 {
        self.bounds.get(&v).copied().unwrap_or(u64::MAX)
    }

    pub fn bounded(&mut self, v: V, most: u64) {
        let most = most.min(self.bound(v));
        self.bounds.insert(v, most);
    }

    /// As an operand.
    pub fn as_source(&mut self, known: LaneValue) -> Source {
        match known {
            LaneValue::Constant(value) => Source::Constant(value),
            other => Source::V(self.as_vector(other)),
        }
    }

    /// As a vector, materialised here if necessary.
    pub fn as_vector(&mut self, known: LaneValue) -> V {
        match known {
            LaneValue::Vector(v) => v,
            LaneValue::Bytes(bytes) => self.materialise(&bytes),
            LaneValue::Mask(mask) => {
                let dst = self.code.vector();
                self.bounded(dst, 1);
                self.op(Op::FromMask { dst, mask });
                dst
            }
            LaneValue::Constant(value) => self.constant(value),
            LaneValue::Uniform(offset) => self.uniform(offset),
            LaneValue::Unloaded(address, offset) => {
                let dst = self.code.vector();
                self.op(Op::Gather { dst, address, offset });
                dst
            }
        }
    }

    fn uniform(&mut self, offset: i32) -> V {
        if let Some(&(v, at)) = self.uniforms.get(&offset)
            && self.flow.dominates(at, self.current)
        {
            return v;
        }
        let (dst, address) = (self.code.vector(), env::ARRAYS);
        self.op(Op::LoadUniform { dst, address, offset });
        self.uniforms.insert(offset, (dst, self.current));
        dst
    }

    fn constant(&mut self, value: u64) -> V {
        // In other blocks it is cheaper to load it again than to keep it in a register.
        if let Some(&(v, at)) = self.constants.get(&value)
            && at == self.current
        {
            return v;
        }
        let dst = self.code.vector();
        self.op(Op::Constant { dst, value });
        self.bounded(dst, value);
        self.constants.insert(value, (dst, self.current));
        dst
    }

    /// As bytes, if it consists of whole bytes. Only the lowest `count` bytes may be other than 0.
    pub fn as_bytes(&mut self, known: LaneValue, count: u32) -> Option<Bytes> {
        match known {
            LaneValue::Bytes(bytes) => Some(bytes),
            LaneValue::Vector(v) => {
                let most = self.bound(v);
                let used = (u64::BITS - most.leading_zeros()).div_ceil(8);
                Some(bytes::of_vector(v, count.min(used)))
            }
            LaneValue::Constant(0) => Some([Byte::Zero; 8]),
            LaneValue::Constant(_) | LaneValue::Mask(_) | LaneValue::Uniform(_) | LaneValue::Unloaded(..) => None,
        }
    }

    fn materialise(&mut self, of: &Bytes) -> V {
        if let Some(&(v, at)) = self.materialised.get(of)
            && self.flow.dominates(at, self.current)
        {
            return v;
        }
        let v = self.build(of);
        self.materialised.insert(*of, (v, self.current));
        let used = of.iter().rposition(|b| *b != Byte::Zero).map_or(0, |i| i as u32 + 1);
        self.bounded(v, u64::MAX.checked_shr(64 - 8 * used).unwrap_or(0));
        v
    }

    fn build(&mut self, of: &Bytes) -> V {
        match bytes::recipe(of) {
            Recipe::Same(v) => v,
            Recipe::Zero => self.constant(0),
            Recipe::And(v, mask) => self.alu(Alu::And, v, Source::Constant(mask)),
            Recipe::ShiftLeft(v, by) => self.shift(ShiftOp::Left, v, by),
            Recipe::ShiftRight(v, by) => self.shift(ShiftOp::Right, v, by),
            Recipe::Shuffle(a, bytes) => {
                let dst = self.code.vector();
                self.op(Op::Shuffle { dst, a, bytes });
                dst
            }
            Recipe::Pair(low, high, by, then) => {
                let dst = self.code.vector();
                self.op(Op::ShiftPair { dst, low, high, by });
                self.materialise(&then.map(|byte| match byte {
                    Byte::Of(RESULT, i) => Byte::Of(dst, i),
                    other => other,
                }))
            }
            Recipe::Or(parts) => {
                let mut parts = parts.into_iter();
                let Some(first) = parts.next() else {
                    return self.constant(0);
                };
                let mut all = self.materialise(&first);
                for part in parts {
                    let part = self.materialise(&part);
                    all = self.alu(Alu::Or, all, Source::V(part));
                }
                all
            }
        }
    }

    pub fn alu(&mut self, op: Alu, a: V, b: Source) -> V {
        self.computed(ComputedOp::Alu(op, a, b), |dst| Op::Alu { op, dst, a, b })
    }

    /// Reuses an earlier result, or computes it now.
    fn computed(&mut self, what: ComputedOp, op: impl FnOnce(V) -> Op) -> V {
        if let Some(&(v, at)) = self.computed.get(&what)
            && self.flow.dominates(at, self.current)
        {
            return v;
        }
        let dst = self.code.vector();
        self.op(op(dst));
        self.computed.insert(what, (dst, self.current));
        dst
    }

    pub fn shift(&mut self, op: ShiftOp, a: V, by: u8) -> V {
        if by == 0 {
            return a;
        }
        self.computed(ComputedOp::Shift(op, a, by), |dst| Op::Shift { op, dst, a, by })
    }

    /// The vector of a value.
    pub fn vector(&mut self, value: Value) -> V {
        let known = self.value_of(value);
        self.as_vector(known)
    }

    // ------------------------------------------------------------------------- masks

    pub fn mask_alu(&mut self, op: MaskAlu, a: M, b: M) -> M {
        let dst = self.code.mask();
        self.op(Op::MaskAlu { op, dst, a, b });
        dst
    }

    pub fn mask_not(&mut self, a: M) -> M {
        let dst = self.code.mask();
        self.op(Op::MaskNot { dst, a });
        dst
    }

    /// Where a value is not 0. `Err`: it is the same for all packets.
    pub fn as_mask(&mut self, known: LaneValue) -> Result<M, bool> {
        match known {
            LaneValue::Constant(value) => Err(value != 0),
            LaneValue::Mask(mask) => Ok(mask),
            other => {
                let v = self.as_vector(other);
                Ok(self.test(true, v))
            }
        }
    }

    /// Where a vector's words are not 0, or (`any` false) where they are 0.
    pub fn test(&mut self, any: bool, v: V) -> M {
        let (a, b) = match self.definition(v) {
            // The test instruction includes the `and`.
            Some(&Op::Alu { op: Alu::And, a, b, .. }) => (a, b),
            _ => (v, Source::V(v)),
        };
        let dst = self.code.mask();
        self.op(Op::Test { any, dst, a, b });
        dst
    }

    /// The packets of the current block for which a condition holds, and the others. Conditions are
    /// evaluated for all lanes, so that they do not depend on earlier conditions; only this
    /// operation does.
    fn split_block_mask(&mut self, mask: M) -> (M, M) {
        let here = self.block_mask();
        let yes = self.mask_alu(MaskAlu::And, here, mask);
        let no = self.mask_alu(MaskAlu::AndNot, mask, here);
        (yes, no)
    }

    // ------------------------------------------------------------------------- control

    // ------------------------------------------------------------------------- memory

    pub fn load_row(&mut self, rows: Rows, offset: i32) -> V {
        if let Some(known) = self.memory.rows.get(&(rows, offset)) {
            return *known;
        }
        let dst = self.code.vector();
        self.op(Op::LoadRow { dst, rows, offset });
        self.memory.rows.insert((rows, offset), dst);
        dst
    }

    /// Stores a row, at the end of the block.
    pub fn store_row(&mut self, rows: Rows, offset: i32, from: V) {
        self.row_stores
            .retain(|op| !matches!(op, Op::StoreRow { rows: r, offset: o, .. } if (*r, *o) == (rows, offset)));
        self.row_stores.push(Op::StoreRow { rows, offset, from });
        self.memory.rows.insert((rows, offset), from);
        self.is_written.insert(offset);
    }

    /// Loads bytes from memory other than rows.
    pub fn load_memory(&mut self, region: Region, base: Value, offset: i32, count: u32) -> LaneValue {
        match region {
            Region::ArrayDescriptors => return LaneValue::Uniform(offset),
            Region::RecordPointers => return LaneValue::Unloaded(self.vector(base), offset),
            Region::ReadOnly => {
                let address = self.vector(base);
                let dst = self.code.vector();
                self.op(Op::Gather { dst, address, offset });
                return LaneValue::Vector(dst);
            }
            Region::Packet | Region::PacketOrZeros | Region::Scratch | Region::Record => {}
        }
        let base_vector = self.vector(base);
        for other in self.memory.others_dirty(base_vector, region) {
            self.write_area(other);
        }
        let mut missing = self.memory.area(base_vector, region).missing(offset, count);
        if !missing.is_empty() {
            missing.extend(self.hoistable_pairs(base, base_vector, region, offset + count as i32));
            missing.sort_unstable();
            missing.dedup();
        }
        for pair in missing {
            self.set_addresses(base_vector, self.is_safe_for_all(base, pair * 16));
            let (low, high) = (self.code.vector(), self.code.vector());
            let offset = pair * 16;
            self.extend_max_read(offset + 16);
            self.op(Op::LoadPair { low, high, offset });
            self.memory.area(base_vector, region).record_load(pair, [low, high]);
        }
        match self.memory.area(base_vector, region).read(offset, count) {
            Some(bytes) => LaneValue::Bytes(bytes),
            None => unreachable!("missing bytes were loaded"),
        }
    }

    pub fn store_memory(&mut self, region: Region, base: Value, offset: i32, value: Value, count: u32) {
        // First, as a sunk value is loaded now, perhaps through another address whose memory
        // becomes unknown by this store.
        let known = self.value_of(value);
        let base = self.vector(base);
        for other in self.memory.others_dirty(base, region) {
            self.write_area(other);
        }
        self.memory.forget_others(base, region);
        let bytes = match self.as_bytes(known, 8) {
            Some(bytes) => bytes,
            None => {
                let v = self.as_vector(known);
                bytes::of_vector(v, 8)
            }
        };
        self.memory.area(base, region).write(offset, &bytes, count);
    }

    /// Further pairs of words that dominated hot blocks read from the same address, if they may be
    /// read here. Loading them is cheap while the addresses are in registers. `end`: memory up to
    /// there is known to be readable.
    fn hoistable_pairs(&mut self, base: Value, base_vector: V, region: Region, end: i32) -> Vec<i32> {
        let Some(reads) = self.reads.get(&base) else {
            return Vec::new();
        };
        let reads: Vec<(i32, u32)> = reads
            .iter()
            .filter(|(block, ..)| self.flow.is_hot(*block) && self.flow.dominates(self.current, *block))
            .map(|(_, offset, count)| (*offset, *count))
            .collect();
        let area = self.memory.area(base_vector, region);
        let mut pairs: Vec<i32> = reads.iter().flat_map(|(o, c)| area.missing(*o, *c)).collect();
        // A record is readable as a whole.
        pairs.retain(|pair| region == Region::Record || pair * 16 + 16 <= end + TAILROOM as i32);
        pairs
    }

    /// Whether sixteen bytes may be read for every packet of the entry block, however short: they
    /// are within the packet or its tailroom.
    fn is_safe_for_all(&self, base: Value, offset: i32) -> bool {
        let is_packet = self
            .func
            .dfg
            .value_def(base)
            .inst()
            .is_some_and(|inst| match self.func.dfg.insts[inst] {
                InstructionData::Load { arg, offset, .. } => {
                    self.addressing.parameter(arg) == Some(Parameter::Column) && i32::from(offset) == 0
                }
                _ => false,
            });
        is_packet && offset + 16 <= TAILROOM as i32
    }

    /// Whether a mask includes all packets of the current block, as it is the mask of a dominator.
    fn covers_block(&self, mask: M) -> bool {
        let mut blocks = self.masks.iter().filter(|(_, m)| **m == mask);
        blocks.any(|(block, _)| self.flow.dominates(*block, self.current))
    }

    fn extend_max_read(&mut self, bytes: i32) {
        self.code.max_read = self.code.max_read.max(bytes as usize);
    }

    /// Sets the current addresses to a vector, for the packets of this block; for all packets if
    /// the read is safe for all.
    fn set_addresses(&mut self, base: V, safe_for_all: bool) {
        let here = self.block_mask();
        let entry = self.masks[&0];
        if self.addresses == Some((base, here)) || safe_for_all && self.addresses == Some((base, entry)) {
            return;
        }
        let mask = if safe_for_all { entry } else { here };
        let source = match (self.addresses, self.definition(base)) {
            (Some((present, of)), _) if present == base && self.covers_block(of) => AddressSource::Current,
            (
                _,
                Some(&Op::LoadRow {
                    rows: Rows::Context,
                    offset,
                    ..
                }),
            ) if !self.is_written.contains(&offset) => AddressSource::Row(offset),
            _ => AddressSource::Vector,
        };
        self.op(Op::Addresses {
            from: base,
            mask,
            source,
        });
        self.addresses = Some((base, mask));
    }

    /// Sets the current addresses to the words at other addresses or, where those are 0, to a word
    /// of the array descriptors.
    pub fn find_records(&mut self, address: V, offset: i32, default: i32) -> V {
        let dst = self.code.vector();
        self.op(Op::FindRecord {
            dst,
            address,
            offset,
            default,
        });
        self.addresses = Some((dst, self.block_mask()));
        dst
    }

    /// Stores everything that is pending.
    fn write_all(&mut self) {
        let bases: Vec<V> = self.memory.areas.iter().map(|a| a.base).collect();
        bases.into_iter().for_each(|base| self.write_area(base));
    }

    fn write_area(&mut self, base: V) {
        let Some(area) = self.memory.areas.iter_mut().find(|a| a.base == base) else {
            return;
        };
        for (offset, write) in area.take_dirty() {
            self.set_addresses(base, false);
            match write {
                PendingStore::Pair(low, high) => {
                    let (low, high) = (self.materialise(&low), self.materialise(&high));
                    self.extend_max_read(offset + 16);
                    self.op(Op::StorePair { low, high, offset });
                }
                PendingStore::Part(of, bytes) => {
                    let from = self.materialise(&of);
                    self.extend_max_read(offset + i32::from(bytes));
                    self.op(Op::StorePart { from, bytes, offset });
                }
            }
        }
    }

    /// The memory operand of an instruction.
    pub fn operand(&mut self, address: Value, offset: i32) -> MemoryOperand {
        match self.addressing.operand(address, offset) {
            Some(operand) => operand,
            None => unreachable!("unknown addresses are not supported"),
        }
    }
}

/// Blocks that lead to one of some blocks.
pub(super) fn blocks_leading_to(func: &Function, bailouts: &BTreeSet<Block>) -> BTreeSet<Block> {
    let mut leading = BTreeSet::new();
    loop {
        let before = leading.len();
        for block in func.layout.blocks() {
            let next = block_successors(func, block, bailouts);
            if next.iter().any(|b| bailouts.contains(b) || leading.contains(b)) {
                leading.insert(block);
            }
        }
        if leading.len() == before {
            return leading;
        }
    }
}
