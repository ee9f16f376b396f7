//! From what a segment does to one packet to what it does to eight.

use super::bytes::{self, Byte, Bytes, RESULT, Recipe};
use super::flow::{Flow, point_of, successors};
use super::late::{self, LateLoad};
use super::memory::{Memory, Write};
use super::op::{Alu, Code, Held, M, MaskAlu, Op, Rows, ShiftOp, Source, V};
use super::place::{Parameter, Place, Places, Region};
use super::{Ask, supported};
use crate::codegen::env;
use crate::layout::PITCH;
use crate::run::TAILROOM;
use cranelift_codegen::ir::{Block, BlockCall, Function, Inst, InstructionData, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What is known of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Known {
    Constant(u64),
    /// Bytes of vectors, put together when somebody needs it.
    Bytes(Bytes),
    Vector(V),
    /// 1 or 0.
    Mask(M),
    /// A word of the arrays that tables are, so many bytes after where they are, the same for all.
    Shared(i32),
    /// The word so many bytes after an address: read when somebody needs it.
    At(V, i32),
}

/// Makes the code.
pub(super) struct Lower<'a> {
    pub func: &'a Function,
    pub places: Places<'a>,
    flow: Flow,
    /// Blocks whose packets are given up.
    ends: BTreeSet<Block>,
    pub code: Code,
    known: HashMap<Value, Known>,
    /// Words that were put together, with the block where; and constants.
    made: HashMap<Bytes, (V, usize)>,
    /// The same of what was computed. Cranelift repeats what is short in every block, but what is read by an address that was computed
    /// again would be read again. A block that dominates another runs for all packets of that one, so their lanes have the value, whatever the
    /// others' have; and a vector is written once, or (parameters of blocks) by all that lead to a block before anything there reads it.
    computed: HashMap<Computed, (V, usize)>,
    constants: HashMap<u64, (V, usize)>,
    /// Words of the arrays that tables are, by where they are, with the block that read them.
    shared: HashMap<i32, (V, usize)>,
    /// The most that a vector's words are.
    bounds: HashMap<V, u64>,
    /// Operation that defines a vector, or a mask.
    definitions: HashMap<V, usize>,
    /// What the present block is to write into rows.
    row_stores: Vec<Op>,
    /// What is asked for once rows are written, by their offset.
    asks: BTreeMap<i32, Ask>,
    /// Rows of the context that have been written somewhere.
    is_written: BTreeSet<i32>,
    /// Masks of blocks that have one by now.
    masks: HashMap<usize, M>,
    /// Parameters of blocks that have got a value on some way.
    parameters: HashMap<Value, V>,
    /// The present block.
    at: usize,
    memory: Memory,
    /// At the ends of blocks.
    memories: Vec<Memory>,
    addresses: Option<Addresses>,
    /// By addresses, which bytes blocks read.
    reads: HashMap<Value, Vec<(usize, i32, u32)>>,
    /// What is loaded where it is needed, and not before.
    late: HashMap<Value, LateLoad>,
    /// Blocks that others follow to which only they lead.
    open: Vec<Open>,
}

/// What operations that depend on nothing but their operands compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Computed {
    Alu(Alu, V, Source),
    Shift(ShiftOp, V, u8),
}

/// A vector of addresses, and the mask of the packets whose they are.
type Addresses = (V, M);

/// A block that others follow to which only it leads.
struct Open {
    number: usize,
    /// The position behind them.
    end: usize,
    /// As they were when it began.
    addresses: Option<Addresses>,
}

/// The code for eight packets, or `None` if nothing is gained by it: packets run in a loop, or are given up at once.
pub(super) fn lower(func: &Function, goals: &BTreeSet<usize>, asks: &BTreeMap<usize, Ask>) -> Option<Code> {
    let mut places = Places::new(func);
    let ends = supported::ends(func, &mut places)?;
    let flow = Flow::new(func, &ends, goals)?;
    let late = late::find(func, &mut places, &flow, &ends);
    let count = flow.order.len();
    let mut lower = Lower {
        func,
        places,
        flow,
        ends,
        code: Code::default(),
        known: HashMap::new(),
        made: HashMap::new(),
        computed: HashMap::new(),
        constants: HashMap::new(),
        shared: HashMap::new(),
        bounds: HashMap::new(),
        definitions: HashMap::new(),
        row_stores: Vec::new(),
        asks: asks.iter().map(|(row, ask)| ((row * PITCH * 8) as i32, *ask)).collect(),
        is_written: BTreeSet::new(),
        masks: HashMap::new(),
        parameters: HashMap::new(),
        at: 0,
        memory: Memory::default(),
        memories: vec![Memory::default(); count],
        addresses: None,
        reads: HashMap::new(),
        late,
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

    /// Notes which bytes of packets blocks read.
    fn find_reads(&mut self) {
        let func = self.func;
        for (i, block) in self.flow.order.clone().into_iter().enumerate() {
            if self.ends.contains(&block) {
                continue;
            }
            for inst in func.layout.block_insts(block) {
                if let InstructionData::Load {
                    opcode, arg, offset, ..
                } = func.dfg.insts[inst]
                    && let Some(&result) = func.dfg.inst_results(inst).first()
                    && !self.is_late(result)
                    && let Some(Place::Own(region, base, offset)) = self.places.place(arg, offset.into())
                    && !matches!(region, Region::Fixed | Region::Places | Region::Arrays)
                    && let Some(count) = Places::access(opcode, func.dfg.value_type(result))
                {
                    self.reads.entry(base).or_default().push((i, offset, count));
                }
            }
        }
    }

    /// Ends what ends before a block.
    fn close(&mut self, next: usize) {
        while let Some(open) = self.open.pop_if(|open| open.end <= next) {
            // It may have been skipped.
            if self.addresses != open.addresses {
                self.addresses = None;
            }
            self.op(Op::End { number: open.number });
        }
    }

    fn block(&mut self, at: usize) {
        self.close(at);
        self.at = at;
        if let Some(same) = self.flow.same_packets[at] {
            let mask = self.masks[&same];
            self.masks.insert(at, mask);
        }
        let mask = self.mask_of(at);
        if self.flow.before[at] != [at.wrapping_sub(1)] || self.flow.same_packets[at].is_none() {
            self.open.push(Open {
                number: at,
                end: self.flow.end[at],
                addresses: self.addresses,
            });
            let rare = self.flow.is_rare(at);
            self.op(Op::Block { number: at, mask, rare });
        }
        // Masks of blocks where ways meet are there before any of the ways.
        for to in at + 1..self.flow.order.len() {
            if self.flow.dominator[to] == at && self.meet(to) {
                let mask = self.code.mask();
                self.op(Op::Nobody { mask });
                self.masks.insert(to, mask);
            }
        }
        self.memory = match self.flow.before[at].split_first() {
            None => Memory::default(),
            Some((first, others)) => {
                let mut memory = self.memories[*first].clone();
                others.iter().for_each(|other| memory.meet(&self.memories[*other]));
                memory
            }
        };
        let block = self.flow.order[at];
        if self.ends.contains(&block) {
            self.op(Op::GiveUp);
            return;
        }
        for inst in self.func.layout.block_insts(block) {
            if self.func.dfg.insts[inst].opcode().is_terminator() {
                self.write_all();
                self.memories[at] = self.memory.clone();
                let stores = std::mem::take(&mut self.row_stores);
                let asks: Vec<Op> = stores.iter().filter_map(|store| self.ask(store)).collect();
                stores.into_iter().chain(asks).for_each(|op| self.op(op));
                self.terminator(inst);
            } else {
                self.instruction(inst);
            }
        }
    }

    /// What is to be asked for once a row is written.
    fn ask(&self, store: &Op) -> Option<Op> {
        match store {
            Op::StoreRow {
                rows: Rows::Context,
                offset,
                from,
            } => {
                let ask = *self.asks.get(offset)?;
                Some(Op::Ask { keys: *from, ask })
            }
            _ => None,
        }
    }

    /// Whether a block has the packets of several ways, which no other block has all of.
    fn meet(&self, block: usize) -> bool {
        self.flow.same_packets[block].is_none() && self.flow.before[block].len() > 1
    }

    fn mask_of(&self, block: usize) -> M {
        match self.masks.get(&block) {
            Some(mask) => *mask,
            None => unreachable!("whoever leads to a block comes before it and gives it a mask"),
        }
    }

    /// The mask of the present block.
    pub fn here(&self) -> M {
        self.mask_of(self.at)
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

    /// What is known of a value of the function. If it is one that is loaded where it is needed, it is loaded now.
    pub fn fetch(&mut self, value: Value) -> Known {
        if let Some(LateLoad { base, offset, count }) = self.late.get(&value).copied() {
            // Each block for itself: none of them need be run.
            return self.load_own(Region::Packet, base, offset, count);
        }
        match self.known.get(&value) {
            Some(known) => *known,
            None => unreachable!("{value} is not one of those that are given up"),
        }
    }

    /// Whether a value is one that is loaded where it is needed.
    pub fn is_late(&self, value: Value) -> bool {
        self.late.contains_key(&value)
    }

    pub fn set(&mut self, value: Value, known: Known) {
        self.known.insert(value, known);
    }

    /// The most that a vector's words are.
    pub fn bound(&self, v: V) -> u64 {
        self.bounds.get(&v).copied().unwrap_or(u64::MAX)
    }

    pub fn bounded(&mut self, v: V, most: u64) {
        let most = most.min(self.bound(v));
        self.bounds.insert(v, most);
    }

    /// What is known of a vector's words, as one.
    pub fn as_source(&mut self, known: Known) -> Source {
        match known {
            Known::Constant(value) => Source::Constant(value),
            other => Source::V(self.as_vector(other)),
        }
    }

    /// As a vector, at this place in the code.
    pub fn as_vector(&mut self, known: Known) -> V {
        match known {
            Known::Vector(v) => v,
            Known::Bytes(bytes) => self.put_together(&bytes),
            Known::Mask(mask) => {
                let dst = self.code.vector();
                self.bounded(dst, 1);
                self.op(Op::FromMask { dst, mask });
                dst
            }
            Known::Constant(value) => self.constant(value),
            Known::Shared(offset) => self.shared(offset),
            Known::At(address, offset) => {
                let dst = self.code.vector();
                self.op(Op::Gather { dst, address, offset });
                dst
            }
        }
    }

    fn shared(&mut self, offset: i32) -> V {
        if let Some(&(v, at)) = self.shared.get(&offset)
            && self.flow.dominates(at, self.at)
        {
            return v;
        }
        let (dst, address) = (self.code.vector(), env::ARRAYS);
        self.op(Op::LoadShared { dst, address, offset });
        self.shared.insert(offset, (dst, self.at));
        dst
    }

    fn constant(&mut self, value: u64) -> V {
        // Elsewhere it is sooner made again than kept.
        if let Some(&(v, at)) = self.constants.get(&value)
            && at == self.at
        {
            return v;
        }
        let dst = self.code.vector();
        self.op(Op::Constant { dst, value });
        self.bounded(dst, value);
        self.constants.insert(value, (dst, self.at));
        dst
    }

    /// The bytes of what is known, which is not above so many.
    pub fn as_bytes(&mut self, known: Known, count: u32) -> Option<Bytes> {
        match known {
            Known::Bytes(bytes) => Some(bytes),
            Known::Vector(v) => {
                let most = self.bound(v);
                let used = (u64::BITS - most.leading_zeros()).div_ceil(8);
                Some(bytes::of_vector(v, count.min(used)))
            }
            Known::Constant(0) => Some([Byte::Zero; 8]),
            Known::Constant(_) | Known::Mask(_) | Known::Shared(_) | Known::At(..) => None,
        }
    }

    fn put_together(&mut self, of: &Bytes) -> V {
        if let Some(&(v, at)) = self.made.get(of)
            && self.flow.dominates(at, self.at)
        {
            return v;
        }
        let v = self.cook(of);
        self.made.insert(*of, (v, self.at));
        let used = of.iter().rposition(|b| *b != Byte::Zero).map_or(0, |i| i as u32 + 1);
        self.bounded(v, u64::MAX.checked_shr(64 - 8 * used).unwrap_or(0));
        v
    }

    fn cook(&mut self, of: &Bytes) -> V {
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
                self.put_together(&then.map(|byte| match byte {
                    Byte::Of(RESULT, i) => Byte::Of(dst, i),
                    other => other,
                }))
            }
            Recipe::Or(parts) => {
                let mut parts = parts.into_iter();
                let Some(first) = parts.next() else {
                    return self.constant(0);
                };
                let mut all = self.put_together(&first);
                for part in parts {
                    let part = self.put_together(&part);
                    all = self.alu(Alu::Or, all, Source::V(part));
                }
                all
            }
        }
    }

    pub fn alu(&mut self, op: Alu, a: V, b: Source) -> V {
        self.computed(Computed::Alu(op, a, b), |dst| Op::Alu { op, dst, a, b })
    }

    /// What was computed, or is now.
    fn computed(&mut self, what: Computed, op: impl FnOnce(V) -> Op) -> V {
        if let Some(&(v, at)) = self.computed.get(&what)
            && self.flow.dominates(at, self.at)
        {
            return v;
        }
        let dst = self.code.vector();
        self.op(op(dst));
        self.computed.insert(what, (dst, self.at));
        dst
    }

    pub fn shift(&mut self, op: ShiftOp, a: V, by: u8) -> V {
        if by == 0 {
            return a;
        }
        self.computed(Computed::Shift(op, a, by), |dst| Op::Shift { op, dst, a, by })
    }

    /// The vector of a value.
    pub fn vector(&mut self, value: Value) -> V {
        let known = self.fetch(value);
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

    /// Where what is known is not 0. `Err`: it is the same for all.
    pub fn as_mask(&mut self, known: Known) -> Result<M, bool> {
        match known {
            Known::Constant(value) => Err(value != 0),
            Known::Mask(mask) => Ok(mask),
            other => {
                let v = self.as_vector(other);
                Ok(self.test(true, v))
            }
        }
    }

    /// Where a vector's words are not 0, or where they are.
    pub fn test(&mut self, any: bool, v: V) -> M {
        let (a, b) = match self.definition(v) {
            // The test is an and itself.
            Some(&Op::Alu { op: Alu::And, a, b, .. }) => (a, b),
            _ => (v, Source::V(v)),
        };
        let dst = self.code.mask();
        self.op(Op::Test { any, dst, a, b });
        dst
    }

    /// The packets of the present block for which a condition holds, and the others. The condition is found out for all, so that
    /// it need not wait for the conditions before it: what waits for them is one short operation.
    fn part(&mut self, mask: M) -> (M, M) {
        let here = self.here();
        let yes = self.mask_alu(MaskAlu::And, here, mask);
        let no = self.mask_alu(MaskAlu::AndNot, mask, here);
        (yes, no)
    }

    // ------------------------------------------------------------------------- control

    fn terminator(&mut self, inst: Inst) {
        match self.func.dfg.insts[inst] {
            InstructionData::Jump { destination, .. } => {
                let here = self.here();
                self.edge(destination, here);
            }
            InstructionData::Brif {
                arg,
                blocks: [then, otherwise],
                ..
            } => {
                let known = self.fetch(arg);
                match self.as_mask(known) {
                    Ok(mask) => {
                        let (yes, no) = self.part(mask);
                        self.edge(then, yes);
                        self.edge(otherwise, no);
                    }
                    Err(always) => {
                        // Whoever comes that way: nobody.
                        let here = self.here();
                        let nobody = self.mask_alu(MaskAlu::AndNot, here, here);
                        let (taken, other) = if always { (then, otherwise) } else { (otherwise, then) };
                        self.edge(taken, here);
                        self.edge(other, nobody);
                    }
                }
            }
            _ => {
                // A return: what is supported has no other ends.
                if let Some(point) = point_of(self.func, self.flow.order[self.at]) {
                    self.op(Op::Leave { point });
                }
            }
        }
    }

    /// Packets go on to a block.
    fn edge(&mut self, call: BlockCall, mask: M) {
        let pool = &self.func.dfg.value_lists;
        let target = call.block(pool);
        let to = self.flow.position[&target];
        if self.meet(to) {
            let joined = self.mask_of(to);
            self.op(Op::Join {
                mask: joined,
                from: mask,
            });
        } else if self.flow.same_packets[to].is_none() {
            self.masks.insert(to, mask);
        }
        if self.ends.contains(&target) {
            return;
        }
        let arguments: Vec<Value> = call.args(pool).filter_map(|a| a.as_value()).collect();
        for (&parameter, argument) in self.func.dfg.block_params(target).iter().zip(arguments) {
            let known = self.fetch(argument);
            if self.flow.before[to].len() == 1 {
                self.known.insert(parameter, known);
                continue;
            }
            let from = self.as_source(known);
            match self.parameters.get(&parameter) {
                Some(&dst) => self.op(Op::CopyIf { dst, mask, from }),
                None => {
                    let dst = self.code.vector();
                    let bits = self.func.dfg.value_type(parameter).bits();
                    self.bounded(dst, u64::MAX >> (64 - bits.min(64)));
                    self.op(Op::Copy { dst, from });
                    self.parameters.insert(parameter, dst);
                    self.known.insert(parameter, Known::Vector(dst));
                }
            }
        }
    }

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

    /// Writes a row, at the end of the block, with the others.
    pub fn store_row(&mut self, rows: Rows, offset: i32, from: V) {
        self.row_stores
            .retain(|op| !matches!(op, Op::StoreRow { rows: r, offset: o, .. } if (*r, *o) == (rows, offset)));
        self.row_stores.push(Op::StoreRow { rows, offset, from });
        self.memory.rows.insert((rows, offset), from);
        self.is_written.insert(offset);
    }

    /// Bytes at a place that packets have each for themselves.
    pub fn load_own(&mut self, region: Region, base: Value, offset: i32, count: u32) -> Known {
        match region {
            Region::Arrays => return Known::Shared(offset),
            Region::Places => return Known::At(self.vector(base), offset),
            Region::Fixed => {
                let address = self.vector(base);
                let dst = self.code.vector();
                self.op(Op::Gather { dst, address, offset });
                return Known::Vector(dst);
            }
            Region::Packet | Region::PacketOrZeros | Region::Scratch | Region::Record => {}
        }
        let base_vector = self.vector(base);
        for other in self.memory.others_dirty(base_vector, region) {
            self.write_area(other);
        }
        let mut missing = self.memory.area(base_vector, region).missing(offset, count);
        if !missing.is_empty() {
            missing.extend(self.wanted_later(base, base_vector, region, offset + count as i32));
            missing.sort_unstable();
            missing.dedup();
        }
        for pair in missing {
            self.point_to(base_vector, self.is_harmless(base, pair * 16));
            let (low, high) = (self.code.vector(), self.code.vector());
            let offset = pair * 16;
            self.reach(offset + 16);
            self.op(Op::LoadPair { low, high, offset });
            self.memory.area(base_vector, region).has_read(pair, [low, high]);
        }
        match self.memory.area(base_vector, region).read(offset, count) {
            Some(bytes) => Known::Bytes(bytes),
            None => unreachable!("what was missing was read"),
        }
    }

    pub fn store_own(&mut self, region: Region, base: Value, offset: i32, value: Value, count: u32) {
        // First of all: it may be loaded now, by another address, and what is known from there is out of date once this is written.
        let known = self.fetch(value);
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

    /// Pairs of words that blocks behind this one read by the same address, and that may be read here if what is before `end` may: they
    /// are had for little while the addresses are at hand.
    fn wanted_later(&mut self, base: Value, base_vector: V, region: Region, end: i32) -> Vec<i32> {
        let Some(reads) = self.reads.get(&base) else {
            return Vec::new();
        };
        let reads: Vec<(i32, u32)> = reads
            .iter()
            .filter(|(block, ..)| self.flow.leads_on(*block) && self.flow.dominates(self.at, *block))
            .map(|(_, offset, count)| (*offset, *count))
            .collect();
        let area = self.memory.area(base_vector, region);
        let mut pairs: Vec<i32> = reads.iter().flat_map(|(o, c)| area.missing(*o, *c)).collect();
        // Whoever reads anything of a result may read all of it.
        pairs.retain(|pair| region == Region::Record || pair * 16 + 16 <= end + TAILROOM as i32);
        pairs
    }

    /// Whether sixteen bytes there may be read of any packet of the first block, long or short: then they are in the packet or behind it.
    fn is_harmless(&self, base: Value, offset: i32) -> bool {
        let is_packet = self
            .func
            .dfg
            .value_def(base)
            .inst()
            .is_some_and(|inst| match self.func.dfg.insts[inst] {
                InstructionData::Load { arg, offset, .. } => {
                    self.places.parameter(arg) == Some(Parameter::Column) && i32::from(offset) == 0
                }
                _ => false,
            });
        is_packet && offset + 16 <= TAILROOM as i32
    }

    /// Whether a mask has all packets of the present block: it is that of a block that leads there.
    fn has_all_of(&self, mask: M) -> bool {
        let mut blocks = self.masks.iter().filter(|(_, m)| **m == mask);
        blocks.any(|(block, _)| self.flow.dominates(*block, self.at))
    }

    fn reach(&mut self, bytes: i32) {
        self.code.reach = self.code.reach.max(bytes as usize);
    }

    /// Makes the addresses those of a vector, for the packets of this block, or, to read what may be read of any, of more.
    fn point_to(&mut self, base: V, harmless: bool) {
        let here = self.here();
        let entry = self.masks[&0];
        if self.addresses == Some((base, here)) || harmless && self.addresses == Some((base, entry)) {
            return;
        }
        let mask = if harmless { entry } else { here };
        let held = match (self.addresses, self.definition(base)) {
            (Some((present, of)), _) if present == base && self.has_all_of(of) => Held::Here,
            (
                _,
                Some(&Op::LoadRow {
                    rows: Rows::Context,
                    offset,
                    ..
                }),
            ) if !self.is_written.contains(&offset) => Held::Row(offset),
            _ => Held::Nowhere,
        };
        self.op(Op::Addresses { from: base, mask, held });
        self.addresses = Some((base, mask));
    }

    /// Makes the addresses the words at others, or, where they are 0, one of the arrays' words.
    pub fn find(&mut self, address: V, offset: i32, default: i32) -> V {
        let dst = self.code.vector();
        self.op(Op::Find {
            dst,
            address,
            offset,
            default,
        });
        self.addresses = Some((dst, self.here()));
        dst
    }

    /// Writes everything that memory does not hold yet.
    fn write_all(&mut self) {
        let bases: Vec<V> = self.memory.areas.iter().map(|a| a.base).collect();
        bases.into_iter().for_each(|base| self.write_area(base));
    }

    fn write_area(&mut self, base: V) {
        let Some(area) = self.memory.areas.iter_mut().find(|a| a.base == base) else {
            return;
        };
        for (offset, write) in area.take_dirty() {
            self.point_to(base, false);
            match write {
                Write::Pair(low, high) => {
                    let (low, high) = (self.put_together(&low), self.put_together(&high));
                    self.reach(offset + 16);
                    self.op(Op::StorePair { low, high, offset });
                }
                Write::Part(of, bytes) => {
                    let from = self.put_together(&of);
                    self.reach(offset + i32::from(bytes));
                    self.op(Op::StorePart { from, bytes, offset });
                }
            }
        }
    }

    /// What an instruction reads or writes.
    pub fn place(&mut self, address: Value, offset: i32) -> Place {
        match self.places.place(address, offset) {
            Some(place) => place,
            None => unreachable!("what is not known is not supported"),
        }
    }
}

/// Blocks that lead to one of some blocks.
pub(super) fn leading_to(func: &Function, ends: &BTreeSet<Block>) -> BTreeSet<Block> {
    let mut leading = BTreeSet::new();
    loop {
        let before = leading.len();
        for block in func.layout.blocks() {
            let next = successors(func, block, ends);
            if next.iter().any(|b| ends.contains(b) || leading.contains(b)) {
                leading.insert(block);
            }
        }
        if leading.len() == before {
            return leading;
        }
    }
}
