//! Emits Cranelift IR for the segments of a pipeline.
//!
//! A segment is a function `(env, mask, context)`. For each packet of the mask, lowest slot first,
//! it runs the code from its suspension point to the next ones, and sets the packet's bit in the
//! masks of those. The loop over packets is part of the function, so that Cranelift optimises
//! across it.
//!
//! This file has the loop, blocks and control flow of a segment. Submodules have the instructions.
//! Relies on [`crate::analysis`] and [`crate::layout`], and decides nothing about either.
//! [`crate::lanes`] compiles the same code, in [`Shape::Packet`], to AVX-512.

mod arithmetic;
mod bit_count;
mod calls;
mod checksum;
mod expression;
mod lookup;
mod movable;
mod packet;
mod validity;
mod variables;

use crate::analysis::{Analysis, Loop, State};
use crate::layout::{Layout, PointKind, ROW_PACKET};
use crate::runtime::{Imported, RuntimeFunction};
use crate::sites::{Sites, WideOp};
use bit_count::BitSum;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{AbiParam, Block, InstBuilder, MemFlagsData, Signature, Value, types};
use cranelift_codegen::isa::TargetFrontendConfig;
use cranelift_frontend::{FunctionBuilder, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use movable::Movable;
use std::collections::{BTreeMap, HashMap};
use validity::Validity;
use variables::{KeyCopy, ValueSource};
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, InstKind, Operand, Pattern, SelectCase, Terminator, VarId};
use weir_table::fast::{KeyLayout, ResultLayout};

/// Offsets in the environment of a segment; see [`crate::run::Env`].
pub(crate) mod env {
    pub const POINT_MASKS: i32 = 0;
    pub const ARGUMENTS: i32 = 8;
    pub const TALLY_AREA: i32 = 16;
    pub const MEMBERS: i32 = 24;
    pub const ZEROS: i32 = 32;
    pub const CELLS: i32 = 40;
    pub const EXCHANGE: i32 = 48;
    pub const SENTINEL: i32 = 72;
    pub const ARRAYS: i32 = 80;
    pub const SLOT_ADDRESSING: i32 = 88;
}

/// The inputs of code generation.
pub(crate) struct Context<'a> {
    pub analysis: &'a Analysis<'a>,
    pub layout: &'a Layout,
    pub tables: &'a [(KeyLayout, ResultLayout)],
}

/// Builds one segment.
pub(crate) struct SegmentBuilder<'a, 'b> {
    pub cx: &'a Context<'a>,
    pub b: FunctionBuilder<'b>,
    runtime: Imported,
    pub sites: &'a mut Sites,
    vars: HashMap<VarId, Variable>,
    blocks: HashMap<BlockId, Block>,
    /// The masks of the points at which packets suspend: a register, or `None` if there are too
    /// many for registers, and they stay in memory.
    masks: BTreeMap<usize, Option<Variable>>,
    /// Packets that have not run yet.
    remaining: Variable,
    head: Block,
    form: Form,
    pub env: Value,
    /// Column, bit, slot and address of the current packet.
    column: Variable,
    bit: Variable,
    slot: Variable,
    packet: Variable,
    /// Variables that the segment writes somewhere, so that their value in the context may be
    /// stale.
    written: VarSet,
    /// Variables that the context held at the start of the segment.
    loaded: VarSet,
    /// Variables that the segment does not write: loaded at each use instead of at the start.
    /// Cranelift does not remove a dead load.
    sources: HashMap<VarId, ValueSource>,
    /// Variables that the segment does not write and that a hoisted key holds.
    keys: HashMap<VarId, KeyCopy>,
    /// The dataflow state at the current instruction.
    pub state: State,
    /// Upper bounds of values.
    bounds: HashMap<Value, u64>,
    validity: Validity,
    movable: Movable,
    /// Whether Cranelift may move the loads from the packet that are emitted now.
    may_move: bool,
    /// Values that may be loaded again: their first bit in the packet, and width.
    origins: HashMap<Value, (u32, u32)>,
    /// Values that are sums of bits of another value.
    bit_sums: HashMap<Value, BitSum>,
    /// The byte at which the unchanged rest of the packet begins, if that is not where the parser
    /// stopped.
    payload_from: Option<Variable>,
}

/// Most masks that a segment keeps in registers. A short segment would wait for its own last store
/// to a mask (store forwarding); a long one needs the registers for other values.
const MASKS_IN_REGISTERS: usize = 2;

/// Flags of loads and stores that cannot trap.
pub(crate) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// The kind of function that is made of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Runs packets one after the other: `(env, mask, context)`.
    Loop,
    /// Runs one packet, as the input of [`crate::lanes`]: `(env, column, tally column, tallies,
    /// slot, bit)`, all of the packet's slot. Returns the point at which the packet suspends;
    /// [`NO_POINT`] if it ends without an exit.
    Packet,
}

/// Returned by the code for one packet if it suspends nowhere.
pub(crate) const NO_POINT: i64 = -1;

/// The function's parameters, by its shape.
enum Form {
    Loop { context: Value },
    Packet { tally_column: Value, tallies: Value },
}

impl Shape {
    /// The function's signature. All values are 64-bit words.
    pub fn signature(self, module: &JITModule) -> Signature {
        let (parameters, results) = match self {
            Shape::Loop => (3, 0),
            Shape::Packet => (6, 1),
        };
        let mut signature = module.make_signature();
        signature.params = vec![AbiParam::new(types::I64); parameters];
        signature.returns = vec![AbiParam::new(types::I64); results];
        signature
    }
}

/// Emits the function's body.
pub(crate) fn segment<'a>(
    cx: &'a Context<'a>,
    index: usize,
    shape: Shape,
    b: FunctionBuilder<'_>,
    runtime: Imported,
    sites: &'a mut Sites,
    config: TargetFrontendConfig,
) {
    let mut b = b;
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let params: Vec<Value> = b.block_params(entry).to_vec();
    let [column, bit, slot, packet, remaining] = [(); 5].map(|()| b.declare_var(types::I64));
    let head = b.create_block();
    let mut segment = SegmentBuilder {
        cx,
        runtime,
        sites,
        vars: HashMap::new(),
        blocks: HashMap::new(),
        masks: BTreeMap::new(),
        remaining,
        head,
        form: match shape {
            Shape::Loop => Form::Loop { context: params[2] },
            Shape::Packet => Form::Packet {
                tally_column: params[2],
                tallies: params[3],
            },
        },
        env: params[0],
        column,
        bit,
        slot,
        packet,
        written: VarSet::new(cx.analysis.vars.len()),
        loaded: VarSet::new(cx.analysis.vars.len()),
        sources: HashMap::new(),
        keys: HashMap::new(),
        state: cx.analysis.entry_states[0]
            .clone()
            .unwrap_or_else(|| unreachable!("control begins at block 0")),
        bounds: HashMap::new(),
        validity: Validity::none(),
        movable: Movable::new(cx, index),
        may_move: true,
        origins: HashMap::new(),
        bit_sums: HashMap::new(),
        payload_from: None,
        b,
    };
    match shape {
        Shape::Loop => segment.b.def_var(remaining, params[1]),
        Shape::Packet => {
            for (variable, value) in [(column, params[1]), (slot, params[4]), (bit, params[5])] {
                segment.b.def_var(variable, value);
            }
        }
    }
    segment.function(index);
    let SegmentBuilder { mut b, .. } = segment;
    b.seal_all_blocks();
    b.finalize(config);
}

impl<'a> SegmentBuilder<'a, '_> {
    fn function(&mut self, index: usize) {
        let cx = self.cx;
        let point = &cx.layout.points[index];
        let region = &cx.layout.regions[index];
        let Some(resume) = point.resume else { return };
        // Collects the segment's destinations, and the variables that it writes.
        let body = &cx.analysis.pipeline.body;
        for &id in region {
            let block = &body.blocks[id];
            for inst in cx.analysis.annotated_insts(id) {
                cx.analysis.writes(inst, &mut |v| self.written.insert(v));
                if inst.kind.can_fail()
                    && let Some(error) = body.error
                {
                    self.written.insert(error);
                }
                if matches!(inst.kind, InstKind::Advance { bits: Operand::Var(_) }) {
                    self.add_destination(cx.layout.exit_points[cx.analysis.pipeline.punt_from_start as usize]);
                }
                if let Some(exit) = inst.abort() {
                    self.add_destination(cx.layout.exit_points[exit as usize]);
                }
            }
            match &block.terminator {
                Terminator::Lookup(lookup) => self.prepare_lookup(id, lookup),
                Terminator::Exit(e) => self.add_destination(cx.layout.exit_points[*e as usize]),
                Terminator::Suspend(_) => self.add_destination(cx.layout.point_of_block[&id]),
                _ => {}
            }
            let clif = self.b.create_block();
            self.blocks.insert(id, clif);
        }
        if region.iter().any(|b| cx.analysis.loop_costs[b.index()] > 0) {
            self.written.insert(cx.analysis.spent);
        }
        for looped in region.iter().filter_map(|b| cx.analysis.loops.get(b)) {
            let exit = looped.exit(cx.analysis.pipeline);
            self.add_destination(cx.layout.exit_points[exit as usize]);
        }
        self.gather_validity();
        match self.form {
            Form::Loop { context } => {
                let done = self.begin_loop(context);
                self.region_blocks(index, resume);
                self.end_loop(done);
            }
            Form::Packet { .. } => {
                let packet = self.load_row(ROW_PACKET);
                self.b.def_var(self.packet, packet);
                self.region_blocks(index, resume);
                self.b.switch_to_block(self.head);
                self.return_point(NO_POINT);
            }
        }
    }

    /// Begins the loop over packets; returns the block behind it.
    fn begin_loop(&mut self, context: Value) -> Block {
        if self.masks.len() <= MASKS_IN_REGISTERS {
            let zero = self.imm(0);
            for mask in self.masks.values_mut() {
                let var = self.b.declare_var(types::I64);
                self.b.def_var(var, zero);
                *mask = Some(var);
            }
        }
        let (head, start, done) = (self.head, self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        let remaining = self.b.use_var(self.remaining);
        self.b.ins().brif(remaining, start, &[], done, &[]);
        self.enter_sealed(start);
        self.take_next(remaining, context);
        done
    }

    fn end_loop(&mut self, done: Block) {
        self.enter_sealed(done);
        let pending = self.b.ins().load(types::I64, flags(), self.env, env::POINT_MASKS);
        for (point, var) in self.masks.clone() {
            if let Some(var) = var {
                let mask = self.b.use_var(var);
                self.add_to_mask(pending, point, mask);
            }
        }
        self.b.ins().return_(&[]);
    }

    /// The code for one packet.
    fn region_blocks(&mut self, index: usize, resume: BlockId) {
        let region = &self.cx.layout.regions[index];
        self.load_context(index, resume);
        let first = self.blocks[&resume];
        self.b.ins().jump(first, &[]);
        for (&id, is_whole) in region.iter().zip(self.has_all_predecessors(region)) {
            let block = self.blocks[&id];
            match is_whole {
                true => self.enter_sealed(block),
                false => self.b.switch_to_block(block),
            }
            self.block(id);
        }
    }

    fn return_point(&mut self, point: i64) {
        let point = self.b.ins().iconst(types::I64, point);
        self.b.ins().return_(&[point]);
    }

    /// By block of a region: whether all its predecessors come before it.
    fn has_all_predecessors(&self, region: &[BlockId]) -> Vec<bool> {
        let cx = self.cx;
        let body = &cx.analysis.pipeline.body;
        let mut last = HashMap::new();
        for (i, &id) in region.iter().enumerate() {
            for target in body.successors(id) {
                last.insert(target, i);
            }
        }
        let before = |(i, id)| last.get(id).is_none_or(|last| *last < i);
        region.iter().enumerate().map(before).collect()
    }

    /// Continues in a block that gets no further predecessors. Sealing it now resolves its
    /// variables.
    fn enter_sealed(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    fn add_destination(&mut self, point: usize) {
        self.masks.insert(point, None);
    }

    fn add_to_mask(&mut self, pending: Value, point: usize, slots: Value) {
        let offset = (point * 8) as i32;
        let old = self.b.ins().load(types::I64, flags(), pending, offset);
        let new = self.b.ins().bor(old, slots);
        self.b.ins().store(flags(), new, pending, offset);
    }

    /// Takes the lowest packet from the mask.
    fn take_next(&mut self, remaining: Value, context: Value) {
        let slot = self.b.ins().ctz(remaining);
        // Not `remaining & -remaining`: that is `blsi`, which on AMD's Zen 5 depends on the old
        // value of its destination register, so that every packet would wait for the one before.
        let one = self.imm(1);
        let bit = self.b.ins().ishl(one, slot);
        let rest = self.b.ins().bxor(remaining, bit);
        self.b.def_var(self.remaining, rest);
        self.b.def_var(self.bit, bit);
        self.b.def_var(self.slot, slot);
        let offset = self.shl_imm(slot, 3);
        let column = self.b.ins().iadd(context, offset);
        self.b.def_var(self.column, column);
        let packet = self.load_row(ROW_PACKET);
        self.b.def_var(self.packet, packet);
    }

    fn block(&mut self, id: BlockId) {
        let cx = self.cx;
        let block = &cx.analysis.pipeline.body.blocks[id];
        let states = cx.analysis.states(id);
        if states.is_empty() {
            self.b.ins().jump(self.head, &[]);
            return;
        }
        let cost = cx.analysis.loop_costs[id.index()];
        if cost > 0 {
            self.charge(cost);
        }
        if let Some(looped) = cx.analysis.loops.get(&id) {
            self.check_charge(looped);
        }
        let live = cx.analysis.live_after(id);
        self.payload_from = None;
        let last_inst = cx
            .analysis
            .annotated_insts(id)
            .enumerate()
            .filter(|(i, inst)| !inst.is_dead(&live[*i]));
        let last_inst = last_inst.map(|(i, _)| i).last();
        for (i, inst) in cx.analysis.annotated_insts(id).enumerate() {
            if inst.is_dead(&live[i]) {
                continue;
            }
            self.state = states[i].clone();
            self.may_move = self.movable.in_instruction(cx, id, inst.kind);
            match inst.kind {
                InstKind::Assign { dst, value } => self.assign(*dst, value),
                InstKind::Extract { header, varbit_bits } => self.extract(*header, varbit_bits.as_ref(), &live[i]),
                InstKind::Lookahead { dst, offset } => self.lookahead(*dst, *offset),
                InstKind::Advance { bits } => self.advance(bits),
                InstKind::PacketLength { dst } => {
                    let length = self.load_row(crate::layout::ROW_LENGTH);
                    let value = self.mask(length, 32);
                    self.set(*dst, value);
                }
                InstKind::Emit { header } => {
                    let is_deparsed = |e: u32| {
                        cx.analysis
                            .pipeline
                            .exits
                            .get(e as usize)
                            .is_some_and(|exit| exit.deparsed)
                    };
                    let leaves = matches!(block.terminator, Terminator::Exit(e) if is_deparsed(e));
                    self.emit(*header, leaves && last_inst == Some(i));
                }
                InstKind::Call(call) => {
                    if let Some((number, kind)) = inst.call {
                        self.call(call, number, kind);
                    }
                }
                InstKind::Mark(_) => {}
            }
        }
        self.state = states[block.insts.len()].clone();
        self.may_move = self.movable.at_end(cx, id);
        self.terminator(id, &block.terminator);
    }

    /// Adds to the cost of the packet's loops.
    fn charge(&mut self, cost: u32) {
        let spent = self.cx.analysis.spent;
        let so_far = self.get(spent);
        let next = self.add_imm(so_far, cost.into());
        self.set(spent, next);
    }

    /// Checks the cost of the packet's loops against the limit of this one. A packet that exceeds
    /// it leaves the pipeline.
    fn check_charge(&mut self, looped: &Loop) {
        let spent = self.cx.analysis.spent;
        let so_far = self.get(spent);
        let limit = self.imm(looped.limit(self.cx.analysis.pipeline).into());
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, so_far, limit);
        let (out, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(out);
        self.b.ins().brif(over, out, &[], on, &[]);
        self.enter_sealed(out);
        let exit = looped.exit(self.cx.analysis.pipeline);
        self.suspend_at(self.cx.layout.exit_points[exit as usize]);
        self.enter_sealed(on);
    }

    /// Jumps to the body's `on_error` block with this error.
    pub fn fail(&mut self, code: Value) {
        let body = &self.cx.analysis.pipeline.body;
        if let Some(error) = body.error {
            self.set(error, code);
        }
        match body.on_error.and_then(|b| self.blocks.get(&b).copied()) {
            Some(block) => self.b.ins().jump(block, &[]),
            None => self.b.ins().jump(self.head, &[]),
        };
    }

    /// Suspends the packet at a point, and continues with the next packet.
    pub fn suspend_at(&mut self, point: usize) {
        self.suspend_with(point, Vec::new());
    }

    /// The same, storing further words in rows besides the saved variables.
    fn suspend_with(&mut self, point: usize, mut words: Vec<(usize, Value)>) {
        // All values are computed before the first is stored, as variables share rows.
        words.extend(self.saved_words(point));
        for (row, word) in words {
            self.store_row(row, word);
        }
        if let Form::Packet { .. } = self.form {
            return self.return_point(point as i64);
        }
        let bit = self.bit();
        match self.masks[&point] {
            Some(var) => {
                let old = self.b.use_var(var);
                let new = self.b.ins().bor(old, bit);
                self.b.def_var(var, new);
            }
            None => {
                let pending = self.b.ins().load(types::I64, flags(), self.env, env::POINT_MASKS);
                self.add_to_mask(pending, point, bit);
            }
        }
        self.b.ins().jump(self.head, &[]);
    }

    /// The saved variables of a point whose rows are stale.
    fn saved_words(&mut self, point: usize) -> Vec<(usize, Value)> {
        let cx = self.cx;
        let mut words = Vec::new();
        // Exits may read fields from the packet. A variable saved for a lookup's segment is live,
        // so it has a value of its own.
        let is_exit = matches!(cx.layout.points[point].kind, PointKind::Exit(_));
        for &var in &cx.layout.points[point].saved {
            let Some(row) = cx.layout.rows[var.index()] else {
                continue;
            };
            // A variable that the segment did not write is still in its row.
            if self.written.contains(var) || !self.loaded.contains(var) {
                let value = match is_exit {
                    true => self.get(var),
                    false => self.live_value(var),
                };
                words.push((row, value));
            }
        }
        words
    }

    fn terminator(&mut self, id: BlockId, terminator: &Terminator) {
        match terminator {
            Terminator::Goto(b) => {
                let target = self.blocks[b];
                self.b.ins().jump(target, &[]);
            }
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => {
                let c = self.condition(condition);
                let (then, otherwise) = (self.blocks[then], self.blocks[otherwise]);
                self.b.ins().brif(c, then, &[], otherwise, &[]);
            }
            Terminator::Switch { value, cases, default } => self.switch(value, cases, *default),
            Terminator::Select { keys, cases, default } => self.select(keys, cases, *default),
            Terminator::Lookup(lookup) => self.lookup(id, lookup),
            Terminator::Suspend(_) => self.suspend_at(self.cx.layout.point_of_block[&id]),
            Terminator::Exit(exit) => {
                if self.cx.analysis.pipeline.exits[*exit as usize].deparsed {
                    self.finish_packet();
                }
                let point = self.cx.layout.exit_points[*exit as usize];
                self.suspend_at(point);
            }
            Terminator::Accept | Terminator::Reject | Terminator::Return => {
                self.b.ins().jump(self.head, &[]);
            }
        }
    }

    fn switch(&mut self, value: &Operand, cases: &[(weir_ir::Bits, BlockId)], default: BlockId) {
        for (case, target) in cases {
            let equal = self.equal(value, &Operand::Const(case.clone()));
            let (target, next) = (self.blocks[target], self.b.create_block());
            self.b.ins().brif(equal, target, &[], next, &[]);
            self.enter_sealed(next);
        }
        let target = self.blocks[&default];
        self.b.ins().jump(target, &[]);
    }

    fn select(&mut self, keys: &[Operand], cases: &[SelectCase], default: BlockId) {
        for case in cases {
            let mut all: Option<Value> = None;
            let mut at = 0;
            for pattern in &case.patterns {
                let taken = match pattern {
                    Pattern::ValueSet(set) => self.cx.analysis.program().value_sets[*set].fields.len(),
                    _ => 1,
                };
                let matched = self.pattern(&keys[at.min(keys.len())..(at + taken).min(keys.len())], pattern);
                at += taken;
                all = match (all, matched) {
                    (None, m) => m,
                    (Some(a), None) => Some(a),
                    (Some(a), Some(m)) => Some(self.b.ins().band(a, m)),
                };
            }
            let target = self.blocks[&case.target];
            match all {
                None => {
                    self.b.ins().jump(target, &[]);
                    return;
                }
                Some(c) => {
                    let next = self.b.create_block();
                    self.b.ins().brif(c, target, &[], next, &[]);
                    self.enter_sealed(next);
                }
            }
        }
        let target = self.blocks[&default];
        self.b.ins().jump(target, &[]);
    }

    /// Whether keys match a pattern; `None`: always.
    fn pattern(&mut self, keys: &[Operand], pattern: &Pattern) -> Option<Value> {
        match pattern {
            Pattern::Any => None,
            Pattern::Exact(v) => Some(self.equal(&keys[0], v)),
            Pattern::Mask(v, m) => Some(self.equal_masked(&keys[0], v, m)),
            Pattern::Range(low, high, signed) => {
                let at_least = self.less_or_equal(low, &keys[0], *signed);
                let at_most = self.less_or_equal(&keys[0], high, *signed);
                Some(self.b.ins().band(at_least, at_most))
            }
            Pattern::ValueSet(set) => Some(self.value_set(*set, keys)),
        }
    }

    /// Registers an operation of the runtime, and calls it. Narrow operands go to the argument
    /// area.
    pub fn wide_call(&mut self, op: WideOp, operands: &[Operand]) -> Value {
        let arguments = self.arguments();
        for (i, operand) in operands.iter().enumerate() {
            if let Operand::Var(v) = operand
                && self.cx.analysis.vars[v.index()].is_narrow()
            {
                let value = self.get(*v);
                self.store(value, arguments, (i * 8) as i32);
            }
        }
        let index = self.sites.add_wide_op(op);
        let (index, column) = (self.imm(index as u64), self.column());
        self.call_for_value(RuntimeFunction::Wide, &[index, column])
    }

    /// Calls a function of the runtime that returns nothing.
    fn call_runtime(&mut self, function: RuntimeFunction, arguments: &[Value]) {
        self.runtime.call(function, self.env, arguments, &mut self.b);
    }

    /// Calls a function of the runtime that returns a value.
    fn call_for_value(&mut self, function: RuntimeFunction, arguments: &[Value]) -> Value {
        match self.runtime.call(function, self.env, arguments, &mut self.b) {
            Some(value) => value,
            None => unreachable!("{function:?} returns a value"),
        }
    }

    /// The address of the argument area.
    pub fn arguments(&mut self) -> Value {
        self.b.ins().load(types::I64, flags(), self.env, env::ARGUMENTS)
    }
}
