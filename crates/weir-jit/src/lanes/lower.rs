//! Lowers a segment's code for one packet to operations on eight ([`super::op`]).
//!
//! Goes through the blocks in the order of [`super::flow`], and keeps for each Cranelift value a
//! [`LaneValue`], which is materialised on demand. Loads and stores of packets go through
//! [`MemoryState`]. This file has values, masks and memory, [`control`] the edges between blocks,
//! and [`instruction`] the single instructions.
//!
//! Relies on [`supported`]: every block that packets do not bail out of can be lowered. It assigns
//! no registers, and leaves dead operations to [`super`].

mod control;
mod instruction;

use super::address::{AddressAnalysis, MemoryOperand, Parameter, Region};
use super::bytes::{self, Byte, Bytes, FUNNEL_SHIFT, Recipe};
use super::flow::{Flow, block_successors};
use super::memory::{MemoryState, PendingStore};
use super::op::{AddressSource, Alu, Code, MaskAlu, MaskReg, Op, RowArea, ShiftOp, Source, Test, VectorReg};
use super::sink::{self, SunkLoad};
use super::{SlotPrefetch, supported};
use crate::codegen::env;
use crate::layout::{ROW_PACKET, ROW_STRIDE};
use crate::run::TAILROOM;
use cranelift_codegen::ir::{Block, Function, InstructionData, Value};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A Cranelift value, for eight packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum LaneValue {
    Constant(u64),
    /// A word composed of bytes of vectors, not yet materialised.
    Bytes(Bytes),
    Vector(VectorReg),
    /// 1 where the mask is set, otherwise 0.
    Mask(MaskReg),
    /// The word at this offset in the array descriptors, the same for all packets.
    Uniform(i32),
    /// The word at this offset from each address, not yet loaded.
    Unloaded(VectorReg, i32),
}

/// The state of lowering. Blocks are denoted by their positions in [`Flow::order`].
pub(super) struct Lower<'a> {
    pub func: &'a Function,
    pub address_analysis: AddressAnalysis<'a>,
    flow: Flow,
    /// Blocks at which packets bail out.
    bailouts: BTreeSet<Block>,
    pub code: Code,
    lane_values: HashMap<Value, LaneValue>,
    /// Words of bytes that were materialised: the vector, and the block that defines it.
    materialised_words: HashMap<Bytes, (VectorReg, usize)>,
    /// Computed expressions: the result, and the block that defines it. Cranelift rematerialises
    /// cheap values in every block, and an address that is computed anew would not be recognised:
    /// its memory would be loaded again. Reuse is valid in dominated blocks. A block runs for all
    /// packets of the blocks it dominates, so those lanes have the value. And a vector is written
    /// once, or (block parameters) by all predecessors before it is read.
    available_expressions: HashMap<Expression, (VectorReg, usize)>,
    /// Constants in vectors, with their block.
    loaded_constants: HashMap<u64, (VectorReg, usize)>,
    /// Loaded words of array descriptors by offset, with their block.
    loaded_uniforms: HashMap<i32, (VectorReg, usize)>,
    /// Upper bounds of the words of a vector.
    upper_bounds: HashMap<VectorReg, u64>,
    /// By vector: the index in `code` of the last operation that writes it.
    definitions: HashMap<VectorReg, usize>,
    /// Stores to rows, emitted at the end of the current block.
    pending_row_stores: Vec<Op>,
    /// Prefetches of slots that follow the store of a row, by the row's byte offset.
    prefetches: BTreeMap<i32, SlotPrefetch>,
    /// Byte offsets of rows that code lowered so far may have written.
    written_rows: BTreeSet<i32>,
    /// By block: its mask, if it has one yet.
    block_masks: HashMap<usize, MaskReg>,
    /// Vectors of the block parameters that some incoming edge has set.
    parameter_vectors: HashMap<Value, VectorReg>,
    current_block: usize,
    /// Known contents of memory at this point of the current block.
    memory: MemoryState,
    /// By block: known contents of memory at its end.
    memory_at_end: Vec<MemoryState>,
    /// `None`: unknown, as a skipped block may have set them.
    address_registers: Option<AddressRegisters>,
    /// By address: the bytes that blocks read from it (block, offset, count).
    memory_reads: HashMap<Value, Vec<(usize, i32, u32)>>,
    /// Loads that are emitted in the blocks that use them, by result.
    sunk_loads: HashMap<Value, SunkLoad>,
    /// Subtrees of the dominator tree to which the current block belongs, the innermost last.
    open_subtrees: Vec<OpenSubtree>,
}

/// A computation that depends on its operands only, for common-subexpression elimination.
/// Operations without a variant here are computed anew each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Expression {
    Alu(Alu, VectorReg, Source),
    Shift(ShiftOp, VectorReg, u8),
}

/// The vector that the address registers hold, and the mask of the packets for which it is valid.
type AddressRegisters = (VectorReg, MaskReg);

/// A subtree of the dominator tree whose blocks are being lowered.
struct OpenSubtree {
    /// The block that dominates the others.
    root: usize,
    /// The position after its last block.
    end: usize,
    /// The contents of the address registers before it.
    address_registers: Option<AddressRegisters>,
}

/// The code for eight packets. `None`: there is nothing to gain, as there is a loop or all packets
/// bail out.
pub(super) fn lower(
    func: &Function,
    hot_points: &BTreeSet<usize>,
    prefetches: &BTreeMap<usize, SlotPrefetch>,
) -> Option<Code> {
    let mut address_analysis = AddressAnalysis::new(func);
    let bailouts = supported::bailout_blocks(func, &mut address_analysis)?;
    let flow = Flow::new(func, &bailouts, hot_points)?;
    let sunk_loads = sink::find_sunk_loads(func, &mut address_analysis, &flow, &bailouts);
    let block_count = flow.order.len();
    let mut lower = Lower {
        func,
        address_analysis,
        flow,
        bailouts,
        code: Code::default(),
        lane_values: HashMap::new(),
        materialised_words: HashMap::new(),
        available_expressions: HashMap::new(),
        loaded_constants: HashMap::new(),
        loaded_uniforms: HashMap::new(),
        upper_bounds: HashMap::new(),
        definitions: HashMap::new(),
        pending_row_stores: Vec::new(),
        prefetches: prefetches
            .iter()
            .map(|(row, prefetch)| ((row * ROW_STRIDE * 8) as i32, *prefetch))
            .collect(),
        written_rows: BTreeSet::new(),
        block_masks: HashMap::new(),
        parameter_vectors: HashMap::new(),
        current_block: 0,
        memory: MemoryState::default(),
        memory_at_end: vec![MemoryState::default(); block_count],
        address_registers: None,
        memory_reads: HashMap::new(),
        sunk_loads,
        open_subtrees: Vec::new(),
    };
    lower.collect_memory_reads();
    lower.lower_blocks();
    Some(lower.code)
}

impl Lower<'_> {
    /// Lowers all blocks, in order.
    fn lower_blocks(&mut self) {
        let entry_mask = self.code.new_mask();
        self.code.entry_mask = Some(entry_mask);
        self.block_masks.insert(0, entry_mask);
        for i in 0..self.flow.order.len() {
            self.lower_block(i);
        }
        self.close_subtrees(self.flow.order.len());
    }

    /// Collects which bytes blocks read from each address.
    fn collect_memory_reads(&mut self) {
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
                        self.address_analysis.memory_operand(arg, offset.into())
                    && !matches!(
                        region,
                        Region::ValueSetBits | Region::RecordPointers | Region::ArrayDescriptors
                    )
                    && let Some(count) = AddressAnalysis::access_width(opcode, func.dfg.value_type(result))
                {
                    self.memory_reads.entry(base).or_default().push((i, offset, count));
                }
            }
        }
    }

    /// Ends the subtrees that have no block at this position or after it.
    fn close_subtrees(&mut self, next: usize) {
        while let Some(subtree) = self.open_subtrees.pop_if(|subtree| subtree.end <= next) {
            // The subtree may have been skipped, so the addresses that it set are not certain.
            if self.address_registers != subtree.address_registers {
                self.address_registers = None;
            }
            self.push_op(Op::SubtreeEnd { number: subtree.root });
        }
    }

    /// Lowers the block at a position.
    fn lower_block(&mut self, index: usize) {
        self.close_subtrees(index);
        self.current_block = index;
        if let Some(earlier) = self.flow.control_equivalent[index] {
            let mask = self.block_masks[&earlier];
            self.block_masks.insert(index, mask);
        }
        let mask = self.mask_of_block(index);
        let continues_previous_block =
            self.flow.predecessors[index] == [index.wrapping_sub(1)] && self.flow.control_equivalent[index].is_some();
        if !continues_previous_block {
            self.open_subtrees.push(OpenSubtree {
                root: index,
                end: self.flow.subtree_end[index],
                address_registers: self.address_registers,
            });
            let is_often_empty = self.flow.is_often_empty(index);
            self.push_op(Op::BlockStart {
                number: index,
                mask,
                is_often_empty,
            });
        }
        // Masks of merge blocks are cleared before any of their predecessors runs.
        for to in index + 1..self.flow.order.len() {
            if self.flow.immediate_dominator[to] == index && self.needs_merge_mask(to) {
                let mask = self.code.new_mask();
                self.push_op(Op::ClearMask { mask });
                self.block_masks.insert(to, mask);
            }
        }
        self.memory = match self.flow.predecessors[index].split_first() {
            None => MemoryState::default(),
            Some((first, others)) => {
                let mut memory = self.memory_at_end[*first].clone();
                others.iter().for_each(|other| memory.meet(&self.memory_at_end[*other]));
                memory
            }
        };
        let block = self.flow.order[index];
        if self.bailouts.contains(&block) {
            self.push_op(Op::BailOut);
            return;
        }
        for inst in self.func.layout.block_insts(block) {
            if self.func.dfg.insts[inst].opcode().is_terminator() {
                self.store_all_pending();
                self.memory_at_end[index] = self.memory.clone();
                let stores = std::mem::take(&mut self.pending_row_stores);
                let prefetches: Vec<Op> = stores.iter().filter_map(|store| self.prefetch_for(store)).collect();
                stores.into_iter().chain(prefetches).for_each(|op| self.push_op(op));
                self.lower_terminator(inst);
            } else {
                self.lower_instruction(inst);
            }
        }
    }

    /// The prefetch that follows the store of a row.
    fn prefetch_for(&self, store: &Op) -> Option<Op> {
        match store {
            Op::StoreRow {
                area: RowArea::Context,
                offset,
                from,
            } => {
                let prefetch = *self.prefetches.get(offset)?;
                Some(Op::PrefetchSlots { keys: *from, prefetch })
            }
            _ => None,
        }
    }

    /// Whether a block's mask is the union of its edges' masks: it joins several paths, and no
    /// earlier block runs for the same packets.
    fn needs_merge_mask(&self, block: usize) -> bool {
        self.flow.control_equivalent[block].is_none() && self.flow.predecessors[block].len() > 1
    }

    /// The mask of a block whose predecessors have been lowered.
    fn mask_of_block(&self, block: usize) -> MaskReg {
        match self.block_masks.get(&block) {
            Some(mask) => *mask,
            None => unreachable!("predecessors come before a block and set its mask"),
        }
    }

    /// The mask of the current block.
    pub fn block_mask(&self) -> MaskReg {
        self.mask_of_block(self.current_block)
    }

    /// Appends an operation.
    pub fn push_op(&mut self, op: Op) {
        let number = self.code.ops.len();
        op.for_each_written(|v| {
            self.definitions.insert(v, number);
        });
        self.code.ops.push(op);
    }

    /// The operation that defines a vector.
    pub fn definition(&self, v: VectorReg) -> Option<&Op> {
        self.definitions.get(&v).map(|i| &self.code.ops[*i])
    }

    // ------------------------------------------------------------------------- values

    /// The lane value of a Cranelift value. If it is a sunk load, the load is emitted here.
    pub fn value_of(&mut self, value: Value) -> LaneValue {
        if let Some(SunkLoad { base, offset, count }) = self.sunk_loads.get(&value).copied() {
            // In each block that uses it, as each may be skipped.
            return self.load_memory(Region::Packet, base, offset, count);
        }
        match self.lane_values.get(&value) {
            Some(lane_value) => *lane_value,
            None => unreachable!("{value} belongs to a block that is lowered"),
        }
    }

    /// Whether a value is a sunk load.
    pub fn is_sunk(&self, value: Value) -> bool {
        self.sunk_loads.contains_key(&value)
    }

    /// Sets the lane value of a Cranelift value.
    pub fn set_value(&mut self, value: Value, lane_value: LaneValue) {
        self.lane_values.insert(value, lane_value);
    }

    /// An upper bound of a vector's words.
    pub fn upper_bound(&self, v: VectorReg) -> u64 {
        self.upper_bounds.get(&v).copied().unwrap_or(u64::MAX)
    }

    /// Records that a vector's words are at most `bound`.
    pub fn limit_upper_bound(&mut self, v: VectorReg, bound: u64) {
        let bound = bound.min(self.upper_bound(v));
        self.upper_bounds.insert(v, bound);
    }

    /// A lane value as the second operand of an operation.
    pub fn as_source(&mut self, value: LaneValue) -> Source {
        match value {
            LaneValue::Constant(value) => Source::Constant(value),
            other => Source::Vector(self.as_vector(other)),
        }
    }

    /// A lane value as a vector, materialised here if necessary.
    pub fn as_vector(&mut self, value: LaneValue) -> VectorReg {
        match value {
            LaneValue::Vector(v) => v,
            LaneValue::Bytes(bytes) => self.materialise(&bytes),
            LaneValue::Mask(mask) => {
                let dst = self.code.new_vector();
                self.limit_upper_bound(dst, 1);
                self.push_op(Op::FromMask { dst, mask });
                dst
            }
            LaneValue::Constant(value) => self.constant(value),
            LaneValue::Uniform(offset) => self.uniform(offset),
            LaneValue::Unloaded(address, offset) => {
                let dst = self.code.new_vector();
                self.push_op(Op::Gather { dst, address, offset });
                dst
            }
        }
    }

    /// The word at an offset in the array descriptors, broadcast.
    fn uniform(&mut self, offset: i32) -> VectorReg {
        if let Some(&(v, defined_in)) = self.loaded_uniforms.get(&offset)
            && self.flow.dominates(defined_in, self.current_block)
        {
            return v;
        }
        let (dst, pointer_offset) = (self.code.new_vector(), env::ARRAYS);
        self.push_op(Op::LoadUniform {
            dst,
            pointer_offset,
            offset,
        });
        self.loaded_uniforms.insert(offset, (dst, self.current_block));
        dst
    }

    /// A constant, broadcast.
    fn constant(&mut self, value: u64) -> VectorReg {
        // In other blocks it is cheaper to rematerialise it than to keep it in a register.
        if let Some(&(v, defined_in)) = self.loaded_constants.get(&value)
            && defined_in == self.current_block
        {
            return v;
        }
        let dst = self.code.new_vector();
        self.push_op(Op::Constant { dst, value });
        self.limit_upper_bound(dst, value);
        self.loaded_constants.insert(value, (dst, self.current_block));
        dst
    }

    /// A lane value as bytes, if it consists of whole bytes. `count`: its width in bytes; bytes
    /// beyond that are 0.
    pub fn as_bytes(&mut self, value: LaneValue, count: u32) -> Option<Bytes> {
        match value {
            LaneValue::Bytes(bytes) => Some(bytes),
            LaneValue::Vector(v) => {
                let bound = self.upper_bound(v);
                let used_bytes = (u64::BITS - bound.leading_zeros()).div_ceil(8);
                Some(bytes::of_vector(v, count.min(used_bytes)))
            }
            LaneValue::Constant(0) => Some([Byte::Zero; 8]),
            LaneValue::Constant(_) | LaneValue::Mask(_) | LaneValue::Uniform(_) | LaneValue::Unloaded(..) => None,
        }
    }

    /// The vector with these bytes, reused or computed here.
    fn materialise(&mut self, word: &Bytes) -> VectorReg {
        if let Some(&(v, defined_in)) = self.materialised_words.get(word)
            && self.flow.dominates(defined_in, self.current_block)
        {
            return v;
        }
        let v = self.compute_word(word);
        self.materialised_words.insert(*word, (v, self.current_block));
        let used_bytes = word.iter().rposition(|b| *b != Byte::Zero).map_or(0, |i| i as u32 + 1);
        self.limit_upper_bound(v, u64::MAX.checked_shr(64 - 8 * used_bytes).unwrap_or(0));
        v
    }

    /// Computes the vector with these bytes by the cheapest operations.
    fn compute_word(&mut self, word: &Bytes) -> VectorReg {
        match bytes::recipe(word) {
            Recipe::Vector(v) => v,
            Recipe::Zero => self.constant(0),
            Recipe::And(v, mask) => self.alu(Alu::And, v, Source::Constant(mask)),
            Recipe::ShiftLeft(v, by) => self.shift(ShiftOp::Left, v, by),
            Recipe::ShiftRight(v, by) => self.shift(ShiftOp::Right, v, by),
            Recipe::Shuffle(a, bytes) => {
                let dst = self.code.new_vector();
                self.push_op(Op::Shuffle { dst, a, bytes });
                dst
            }
            Recipe::FunnelShiftRight(low, high, by, result_bytes) => {
                let dst = self.code.new_vector();
                self.push_op(Op::FunnelShiftRight { dst, low, high, by });
                self.materialise(&result_bytes.map(|byte| match byte {
                    Byte::OfVector(FUNNEL_SHIFT, i) => Byte::OfVector(dst, i),
                    other => other,
                }))
            }
            Recipe::Or(parts) => {
                let mut parts = parts.into_iter();
                let Some(first) = parts.next() else {
                    return self.constant(0);
                };
                let mut union = self.materialise(&first);
                for part in parts {
                    let part = self.materialise(&part);
                    union = self.alu(Alu::Or, union, Source::Vector(part));
                }
                union
            }
        }
    }

    /// The result of an operation on two vectors.
    pub fn alu(&mut self, op: Alu, a: VectorReg, b: Source) -> VectorReg {
        self.reuse_or_compute(Expression::Alu(op, a, b), |dst| Op::Alu { op, dst, a, b })
    }

    /// The result of an expression, if it is available here. Otherwise `op` computes it.
    fn reuse_or_compute(&mut self, expression: Expression, op: impl FnOnce(VectorReg) -> Op) -> VectorReg {
        if let Some(&(v, defined_in)) = self.available_expressions.get(&expression)
            && self.flow.dominates(defined_in, self.current_block)
        {
            return v;
        }
        let dst = self.code.new_vector();
        self.push_op(op(dst));
        self.available_expressions.insert(expression, (dst, self.current_block));
        dst
    }

    /// A vector shifted by a constant.
    pub fn shift(&mut self, op: ShiftOp, a: VectorReg, by: u8) -> VectorReg {
        if by == 0 {
            return a;
        }
        self.reuse_or_compute(Expression::Shift(op, a, by), |dst| Op::Shift { op, dst, a, by })
    }

    /// The vector of a Cranelift value.
    pub fn vector(&mut self, value: Value) -> VectorReg {
        let value = self.value_of(value);
        self.as_vector(value)
    }

    // ------------------------------------------------------------------------- masks

    /// The result of an operation on two masks.
    pub fn mask_alu(&mut self, op: MaskAlu, a: MaskReg, b: MaskReg) -> MaskReg {
        let dst = self.code.new_mask();
        self.push_op(Op::MaskAlu { op, dst, a, b });
        dst
    }

    /// The complement of a mask.
    pub fn mask_not(&mut self, a: MaskReg) -> MaskReg {
        let dst = self.code.new_mask();
        self.push_op(Op::MaskNot { dst, a });
        dst
    }

    /// The mask of the packets for which a value is not 0. `Err`: it is constant.
    pub fn as_mask(&mut self, value: LaneValue) -> Result<MaskReg, bool> {
        match value {
            LaneValue::Constant(value) => Err(value != 0),
            LaneValue::Mask(mask) => Ok(mask),
            other => {
                let v = self.as_vector(other);
                Ok(self.test(Test::Nonzero, v))
            }
        }
    }

    /// The mask of the packets for which a vector's word is zero or not.
    pub fn test(&mut self, test: Test, v: VectorReg) -> MaskReg {
        let (a, b) = match self.definition(v) {
            // The test instruction computes the `and` itself.
            Some(&Op::Alu { op: Alu::And, a, b, .. }) => (a, b),
            _ => (v, Source::Vector(v)),
        };
        let dst = self.code.new_mask();
        self.push_op(Op::Test { test, dst, a, b });
        dst
    }

    /// The packets of the current block for which a condition holds, and its other packets.
    /// Conditions are evaluated for all lanes, so that they do not depend on earlier conditions;
    /// only this operation does.
    fn split_block_mask(&mut self, mask: MaskReg) -> (MaskReg, MaskReg) {
        let block_mask = self.block_mask();
        let taken = self.mask_alu(MaskAlu::And, block_mask, mask);
        let not_taken = self.mask_alu(MaskAlu::AndNot, mask, block_mask);
        (taken, not_taken)
    }

    // ------------------------------------------------------------------------- memory

    /// The row's words, in a register already or loaded now.
    pub fn load_row(&mut self, area: RowArea, offset: i32) -> VectorReg {
        if let Some(in_register) = self.memory.rows.get(&(area, offset)) {
            return *in_register;
        }
        let dst = self.code.new_vector();
        self.push_op(Op::LoadRow { dst, area, offset });
        self.memory.rows.insert((area, offset), dst);
        dst
    }

    /// Records the store of a row, which is emitted at the end of the block.
    pub fn store_row(&mut self, area: RowArea, offset: i32, from: VectorReg) {
        self.pending_row_stores
            .retain(|op| !matches!(op, Op::StoreRow { area: r, offset: o, .. } if (*r, *o) == (area, offset)));
        self.pending_row_stores.push(Op::StoreRow { area, offset, from });
        self.memory.rows.insert((area, offset), from);
        self.written_rows.insert(offset);
    }

    /// Loads bytes from memory other than rows.
    pub fn load_memory(&mut self, region: Region, base: Value, offset: i32, count: u32) -> LaneValue {
        match region {
            Region::ArrayDescriptors => return LaneValue::Uniform(offset),
            Region::RecordPointers => return LaneValue::Unloaded(self.vector(base), offset),
            Region::ValueSetBits => {
                let address = self.vector(base);
                let dst = self.code.new_vector();
                self.push_op(Op::Gather { dst, address, offset });
                return LaneValue::Vector(dst);
            }
            Region::Packet | Region::PacketOrZeros | Region::Scratch | Region::Record => {}
        }
        let base_vector = self.vector(base);
        for alias in self.memory.dirty_aliases(base_vector, region) {
            self.store_pending_of(alias);
        }
        let mut missing = self
            .memory
            .tracked_base(base_vector, region)
            .missing_pairs(offset, count);
        if !missing.is_empty() {
            missing.extend(self.hoistable_pairs(base, base_vector, region, offset + count as i32));
            missing.sort_unstable();
            missing.dedup();
        }
        for pair in missing {
            self.set_address_registers(base_vector, self.is_readable_for_group(base, pair * 16));
            let (low, high) = (self.code.new_vector(), self.code.new_vector());
            let offset = pair * 16;
            self.extend_accessed_bytes(offset + 16);
            self.push_op(Op::LoadPair { low, high, offset });
            self.memory
                .tracked_base(base_vector, region)
                .record_load(pair, [low, high]);
        }
        match self.memory.tracked_base(base_vector, region).known_bytes(offset, count) {
            Some(bytes) => LaneValue::Bytes(bytes),
            None => unreachable!("missing bytes were loaded"),
        }
    }

    /// Records a store to memory other than rows. It is emitted at the block's end at the latest.
    pub fn store_memory(&mut self, region: Region, base: Value, offset: i32, value: Value, count: u32) {
        // First, as a sunk value is loaded now, perhaps through another address whose memory
        // becomes unknown by this store.
        let value = self.value_of(value);
        let base = self.vector(base);
        for alias in self.memory.dirty_aliases(base, region) {
            self.store_pending_of(alias);
        }
        self.memory.invalidate_aliases(base, region);
        let bytes = match self.as_bytes(value, 8) {
            Some(bytes) => bytes,
            None => {
                let v = self.as_vector(value);
                bytes::of_vector(v, 8)
            }
        };
        self.memory
            .tracked_base(base, region)
            .record_store(offset, &bytes, count);
    }

    /// Further pairs of words that dominated hot blocks read from the same address, if they may be
    /// read here. Loading them is cheap while the address registers are set. `end`: memory up to
    /// this offset is known to be readable.
    fn hoistable_pairs(&mut self, base: Value, base_vector: VectorReg, region: Region, end: i32) -> Vec<i32> {
        let Some(reads) = self.memory_reads.get(&base) else {
            return Vec::new();
        };
        let reads: Vec<(i32, u32)> = reads
            .iter()
            .filter(|(block, ..)| self.flow.is_hot(*block) && self.flow.dominates(self.current_block, *block))
            .map(|(_, offset, count)| (*offset, *count))
            .collect();
        let tracked = self.memory.tracked_base(base_vector, region);
        let mut pairs: Vec<i32> = reads
            .iter()
            .flat_map(|(offset, count)| tracked.missing_pairs(*offset, *count))
            .collect();
        // A record is readable as a whole.
        pairs.retain(|pair| region == Region::Record || pair * 16 + 16 <= end + TAILROOM as i32);
        pairs
    }

    /// Whether sixteen bytes may be read for every packet of the group, however short: they are
    /// within the packet or its tailroom.
    fn is_readable_for_group(&self, base: Value, offset: i32) -> bool {
        let is_packet = self
            .func
            .dfg
            .value_def(base)
            .inst()
            .is_some_and(|inst| match self.func.dfg.insts[inst] {
                InstructionData::Load { arg, offset, .. } => {
                    self.address_analysis.parameter(arg) == Some(Parameter::Column)
                        && i32::from(offset) == (ROW_PACKET * ROW_STRIDE * 8) as i32
                }
                _ => false,
            });
        is_packet && offset + 16 <= TAILROOM as i32
    }

    /// Whether a mask includes all packets of the current block, as it is the mask of a dominator.
    fn covers_block(&self, mask: MaskReg) -> bool {
        let mut blocks = self.block_masks.iter().filter(|(_, m)| **m == mask);
        blocks.any(|(block, _)| self.flow.dominates(*block, self.current_block))
    }

    /// Records an access up to this many bytes from an address register.
    fn extend_accessed_bytes(&mut self, bytes: i32) {
        self.code.accessed_bytes = self.code.accessed_bytes.max(bytes as usize);
    }

    /// Sets the address registers to a vector, for the packets of the current block, or for all
    /// packets of the group if the memory is readable for all of them.
    fn set_address_registers(&mut self, base: VectorReg, readable_for_group: bool) {
        let block_mask = self.block_mask();
        let group_mask = self.block_masks[&0];
        if self.address_registers == Some((base, block_mask))
            || readable_for_group && self.address_registers == Some((base, group_mask))
        {
            return;
        }
        let mask = if readable_for_group { group_mask } else { block_mask };
        let source = match (self.address_registers, self.definition(base)) {
            (Some((current, valid_for)), _) if current == base && self.covers_block(valid_for) => {
                AddressSource::AddressRegisters
            }
            (
                _,
                Some(&Op::LoadRow {
                    area: RowArea::Context,
                    offset,
                    ..
                }),
            ) if !self.written_rows.contains(&offset) => AddressSource::Row(offset),
            _ => AddressSource::Vector,
        };
        self.push_op(Op::SetAddressRegisters {
            from: base,
            mask,
            source,
        });
        self.address_registers = Some((base, mask));
    }

    /// Loads the addresses of records of an inline lookup: see [`Op::LoadRecordAddresses`].
    pub fn load_record_addresses(&mut self, address: VectorReg, offset: i32, default_offset: i32) -> VectorReg {
        let dst = self.code.new_vector();
        self.push_op(Op::LoadRecordAddresses {
            dst,
            address,
            offset,
            default_offset,
        });
        self.address_registers = Some((dst, self.block_mask()));
        dst
    }

    /// Emits all pending stores to memory other than rows.
    fn store_all_pending(&mut self) {
        let bases: Vec<VectorReg> = self.memory.tracked_bases.iter().map(|a| a.base).collect();
        bases.into_iter().for_each(|base| self.store_pending_of(base));
    }

    /// Emits the pending stores at an address.
    fn store_pending_of(&mut self, base: VectorReg) {
        let Some(tracked) = self.memory.tracked_bases.iter_mut().find(|a| a.base == base) else {
            return;
        };
        for (offset, store) in tracked.take_pending_stores() {
            self.set_address_registers(base, false);
            match store {
                PendingStore::Pair(low, high) => {
                    let (low, high) = (self.materialise(&low), self.materialise(&high));
                    self.extend_accessed_bytes(offset + 16);
                    self.push_op(Op::StorePair { low, high, offset });
                }
                PendingStore::Part(word, bytes) => {
                    let from = self.materialise(&word);
                    self.extend_accessed_bytes(offset + i32::from(bytes));
                    self.push_op(Op::StorePart { from, bytes, offset });
                }
            }
        }
    }

    /// The memory operand of an instruction.
    pub fn memory_operand(&mut self, address: Value, offset: i32) -> MemoryOperand {
        match self.address_analysis.memory_operand(address, offset) {
            Some(operand) => operand,
            None => unreachable!("unknown addresses are not supported"),
        }
    }
}

/// Blocks from which a path leads to one of `targets`. Paths end at targets.
pub(super) fn blocks_reaching(func: &Function, targets: &BTreeSet<Block>) -> BTreeSet<Block> {
    let mut reaching = BTreeSet::new();
    loop {
        let before = reaching.len();
        for block in func.layout.blocks() {
            let next = block_successors(func, block, targets);
            if next.iter().any(|b| targets.contains(b) || reaching.contains(b)) {
                reaching.insert(block);
            }
        }
        if reaching.len() == before {
            return reaching;
        }
    }
}
