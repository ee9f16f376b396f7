//! Machine code for the segments of a pipeline.
//!
//! A segment is a function `(env, mask, context)`: for each packet of the mask, lowest slot first, it runs the code from
//! its suspension point to the next ones, and sets the packet's bit in the masks of those. The loop over packets is
//! part of the function, so that the compiler sees all of it.

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

use crate::analysis::{Analysis, State};
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
use variables::{KeyCopy, Lazy};
use weir_ir::passes::VarSet;
use weir_ir::{BlockId, InstKind, Operand, Pattern, SelectCase, Terminator, VarId};
use weir_table::fast::{KeyLayout, ResultLayout};

/// Offsets in the environment of a segment; see [`crate::run::Env`].
pub(crate) mod env {
    pub const PENDING: i32 = 0;
    pub const ARGUMENTS: i32 = 8;
    pub const TALLIES: i32 = 16;
    pub const MEMBERS: i32 = 24;
    pub const ZEROS: i32 = 32;
    pub const CELLS: i32 = 40;
    pub const EXCHANGE: i32 = 48;
    pub const NOWHERE: i32 = 72;
    pub const ARRAYS: i32 = 80;
    pub const ASKS: i32 = 88;
}

/// What code generation needs of everything around it.
pub(crate) struct Context<'a> {
    pub analysis: &'a Analysis<'a>,
    pub layout: &'a Layout,
    pub tables: &'a [(KeyLayout, ResultLayout)],
}

/// Makes one segment.
pub(crate) struct Segment<'a, 'b> {
    pub cx: &'a Context<'a>,
    pub b: FunctionBuilder<'b>,
    runtime: Imported,
    pub sites: &'a mut Sites,
    vars: HashMap<VarId, Variable>,
    blocks: HashMap<BlockId, Block>,
    /// Masks of the points that packets go on to; where they are too many to be in registers, `None`, they are in memory
    /// all the time.
    masks: BTreeMap<usize, Option<Variable>>,
    /// Packets that are left.
    todo: Variable,
    head: Block,
    form: Form,
    pub env: Value,
    /// Of the present packet.
    column: Variable,
    bit: Variable,
    slot: Variable,
    packet: Variable,
    /// Variables whose value in the context, if there is one, is out of date somewhere in the segment.
    written: VarSet,
    /// Variables that the context held when the segment began.
    loaded: VarSet,
    /// Those that the segment does not write, and what is in the packet: fetched where they are read, since a load that
    /// nobody needs is not removed.
    lazy: HashMap<VarId, Lazy>,
    /// Those that the segment does not write and that are in a row as keys.
    keys: HashMap<VarId, KeyCopy>,
    /// The parser's position where it is the same on every way.
    pub state: State,
    /// The most that values can be.
    bounds: HashMap<Value, u64>,
    validity: Validity,
    movable: Movable,
    /// Whether loads from the packet may be moved now.
    may_move: bool,
    /// Where in the packet values are from that may be loaded again: first bit and width.
    origins: HashMap<Value, (u32, u32)>,
    /// Values that are sums of another's bits.
    bit_sums: HashMap<Value, BitSum>,
    /// From which byte on the packet stays as it was received, where that is not what the parser left alone.
    left_from: Option<Variable>,
}

/// Most masks that a segment keeps in registers. A short segment is not to wait for what it just stored; a long one has
/// better use for its registers.
const MASKS_IN_REGISTERS: usize = 2;

/// Of loads and stores where memory certainly is.
pub(crate) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}

/// What is made of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A function that runs packets one after the other: `(env, mask, context)`.
    Loop,
    /// What it does to one packet, for [`crate::lanes`], which makes of it code that does so to eight: `(env, column, tally column, tallies,
    /// slot, bit)`, all of the packet's slot. Returns the point that the packet goes on to; [`NOWHERE`] if it is to be forgotten.
    Packet,
}

/// What the code for one packet returns in place of a point.
pub(crate) const NOWHERE: i64 = -1;

/// What a segment works on, by its shape.
enum Form {
    Loop { context: Value },
    Packet { tally_column: Value, tallies: Value },
}

impl Shape {
    /// That of the function. All are words.
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
    let [column, bit, slot, packet, todo] = [(); 5].map(|()| b.declare_var(types::I64));
    let head = b.create_block();
    let mut segment = Segment {
        cx,
        runtime,
        sites,
        vars: HashMap::new(),
        blocks: HashMap::new(),
        masks: BTreeMap::new(),
        todo,
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
        lazy: HashMap::new(),
        keys: HashMap::new(),
        state: cx.analysis.at[0]
            .clone()
            .unwrap_or_else(|| unreachable!("control begins at block 0")),
        bounds: HashMap::new(),
        validity: Validity::none(),
        movable: Movable::new(cx, index),
        may_move: true,
        origins: HashMap::new(),
        bit_sums: HashMap::new(),
        left_from: None,
        b,
    };
    match shape {
        Shape::Loop => segment.b.def_var(todo, params[1]),
        Shape::Packet => {
            for (variable, value) in [(column, params[1]), (slot, params[4]), (bit, params[5])] {
                segment.b.def_var(variable, value);
            }
        }
    }
    segment.function(index);
    let Segment { mut b, .. } = segment;
    b.seal_all_blocks();
    b.finalize(config);
}

impl<'a> Segment<'a, '_> {
    fn function(&mut self, index: usize) {
        let cx = self.cx;
        let point = &cx.layout.points[index];
        let region = &cx.layout.regions[index];
        let Some(resume) = point.resume else { return };
        // Destinations, and what the region writes.
        let body = &cx.analysis.pipeline.body;
        for &id in region {
            let block = &body.blocks[id];
            for step in cx.analysis.steps(id) {
                cx.analysis.writes(step, &mut |v| self.written.insert(v));
                if step.inst.can_fail()
                    && let Some(error) = body.error
                {
                    self.written.insert(error);
                }
                if matches!(step.inst, InstKind::Advance { bits: Operand::Var(_) }) {
                    self.destination(cx.layout.of_exit[cx.analysis.pipeline.restart as usize]);
                }
                if let Some(exit) = step.abort() {
                    self.destination(cx.layout.of_exit[exit as usize]);
                }
            }
            match &block.terminator {
                Terminator::Lookup(lookup) => self.lookup_ahead(id, lookup),
                Terminator::Exit(e) => self.destination(cx.layout.of_exit[*e as usize]),
                _ => {}
            }
            let clif = self.b.create_block();
            self.blocks.insert(id, clif);
        }
        if region.iter().any(|b| cx.analysis.loop_costs[b.index()] > 0) {
            self.written.insert(cx.analysis.spent);
        }
        if region.iter().any(|b| cx.analysis.loops.contains_key(b)) {
            self.destination(cx.layout.of_exit[cx.analysis.pipeline.overrun as usize]);
        }
        self.gather_validity();
        match self.form {
            Form::Loop { context } => {
                let done = self.begin_loop(context);
                self.blocks_of(index, resume);
                self.end_loop(done);
            }
            Form::Packet { .. } => {
                let packet = self.load_row(ROW_PACKET);
                self.b.def_var(self.packet, packet);
                self.blocks_of(index, resume);
                self.b.switch_to_block(self.head);
                self.return_point(NOWHERE);
            }
        }
    }

    /// Begins the loop over packets; gives the block behind it.
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
        let todo = self.b.use_var(self.todo);
        self.b.ins().brif(todo, start, &[], done, &[]);
        self.enter(start);
        self.take_next(todo, context);
        done
    }

    fn end_loop(&mut self, done: Block) {
        self.enter(done);
        let pending = self.b.ins().load(types::I64, flags(), self.env, env::PENDING);
        for (point, var) in self.masks.clone() {
            if let Some(var) = var {
                let mask = self.b.use_var(var);
                self.add_to_mask(pending, point, mask);
            }
        }
        self.b.ins().return_(&[]);
    }

    /// What is done to a packet.
    fn blocks_of(&mut self, index: usize, resume: BlockId) {
        let region = &self.cx.layout.regions[index];
        self.load_context(index, resume);
        let first = self.blocks[&resume];
        self.b.ins().jump(first, &[]);
        for (&id, is_whole) in region.iter().zip(self.known_whence(region)) {
            let block = self.blocks[&id];
            match is_whole {
                true => self.enter(block),
                false => self.b.switch_to_block(block),
            }
            self.block(id);
        }
    }

    fn return_point(&mut self, point: i64) {
        let point = self.b.ins().iconst(types::I64, point);
        self.b.ins().return_(&[point]);
    }

    /// Per block of a region: whether all that go there come before it.
    fn known_whence(&self, region: &[BlockId]) -> Vec<bool> {
        let cx = self.cx;
        let body = &cx.analysis.pipeline.body;
        let mut last = HashMap::new();
        for (i, &id) in region.iter().enumerate() {
            // A packet may have taken too many turns.
            let overrun = body.on_error.filter(|_| cx.analysis.loops.contains_key(&id));
            for target in body.successors(id).into_iter().chain(overrun) {
                last.insert(target, i);
            }
        }
        let before = |(i, id)| last.get(id).is_none_or(|last| *last < i);
        region.iter().enumerate().map(before).collect()
    }

    /// Goes on in a block that nobody else will jump to: what its variables are is known from here on.
    fn enter(&mut self, block: Block) {
        self.b.switch_to_block(block);
        self.b.seal_block(block);
    }

    fn destination(&mut self, point: usize) {
        self.masks.insert(point, None);
    }

    fn add_to_mask(&mut self, pending: Value, point: usize, slots: Value) {
        let offset = (point * 8) as i32;
        let old = self.b.ins().load(types::I64, flags(), pending, offset);
        let new = self.b.ins().bor(old, slots);
        self.b.ins().store(flags(), new, pending, offset);
    }

    /// Takes the lowest packet from the mask.
    fn take_next(&mut self, todo: Value, context: Value) {
        let slot = self.b.ins().ctz(todo);
        // Not `todo & -todo`: that is `blsi`, which on AMD's Zen 5 waits for what its destination held before, so every packet
        // would wait for the one before.
        let one = self.imm(1);
        let bit = self.b.ins().ishl(one, slot);
        let rest = self.b.ins().bxor(todo, bit);
        self.b.def_var(self.todo, rest);
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
            self.check_charge(looped.takes);
        }
        let live = cx.analysis.live_after(id);
        self.left_from = None;
        let last_step = cx
            .analysis
            .steps(id)
            .enumerate()
            .filter(|(i, step)| !step.is_idle(&live[*i]));
        let last_step = last_step.map(|(i, _)| i).last();
        for (i, step) in cx.analysis.steps(id).enumerate() {
            if step.is_idle(&live[i]) {
                continue;
            }
            self.state = states[i].clone();
            self.may_move = self.movable.in_instruction(cx, id, step.inst);
            match step.inst {
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
                    self.emit(*header, leaves && last_step == Some(i));
                }
                InstKind::Call(call) => {
                    if let Some((number, kind)) = step.call {
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

    /// Adds to what a packet's loops have cost.
    fn charge(&mut self, cost: u32) {
        let spent = self.cx.analysis.spent;
        let so_far = self.get(spent);
        let next = self.add_imm(so_far, cost.into());
        self.set(spent, next);
    }

    /// A packet's loops may cost only so much. `takes`: this one is a parser's.
    fn check_charge(&mut self, takes: bool) {
        let spent = self.cx.analysis.spent;
        let so_far = self.get(spent);
        let limit = match takes {
            true => crate::analysis::PARSER_LIMIT,
            false => weir_interp::INSTRUCTION_BUDGET,
        };
        let limit = self.imm(limit.into());
        let over = self.b.ins().icmp(IntCC::UnsignedGreaterThan, so_far, limit);
        let (out, on) = (self.b.create_block(), self.b.create_block());
        self.b.set_cold_block(out);
        self.b.ins().brif(over, out, &[], on, &[]);
        self.enter(out);
        let on_error = self.cx.analysis.pipeline.body.on_error;
        if takes && on_error.is_some_and(|block| self.blocks.contains_key(&block)) {
            let code = self.cx.analysis.program().error_code("ParserTimeout").unwrap_or(5);
            let code = self.imm(code.into());
            self.fail(code);
        } else {
            // Where nothing else of the region can fail, the code after an error is not part of it.
            let point = self.cx.layout.of_exit[self.cx.analysis.pipeline.overrun as usize];
            self.push(point);
        }
        self.enter(on);
    }

    /// Goes to the body's `on_error` with this error.
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

    /// Adds the packet to a point's mask and takes the next one.
    pub fn push(&mut self, point: usize) {
        self.push_with(point, Vec::new());
    }

    /// The same, with words that go to rows besides what the point keeps.
    fn push_with(&mut self, point: usize, mut words: Vec<(usize, Value)>) {
        // All before the first is stored: rows are shared.
        words.extend(self.kept(point));
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
                let pending = self.b.ins().load(types::I64, flags(), self.env, env::PENDING);
                self.add_to_mask(pending, point, bit);
            }
        }
        self.b.ins().jump(self.head, &[]);
    }

    /// What the point keeps that is not in its row.
    fn kept(&mut self, point: usize) -> Vec<(usize, Value)> {
        let cx = self.cx;
        let mut words = Vec::new();
        // Exits read what they hand over. What is kept for a lookup's segment is live, and so a variable.
        let is_exit = matches!(cx.layout.points[point].kind, PointKind::Exit(_));
        for &var in &cx.layout.points[point].kept {
            let Some(row) = cx.layout.rows[var.index()] else {
                continue;
            };
            // What the segment did not write is still where it was.
            if self.written.contains(var) || !self.loaded.contains(var) {
                let value = match is_exit {
                    true => self.get(var),
                    false => self.kept_value(var),
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
            Terminator::Exit(exit) => {
                if self.cx.analysis.pipeline.exits[*exit as usize].deparsed {
                    self.finish_packet();
                }
                let point = self.cx.layout.of_exit[*exit as usize];
                self.push(point);
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
            self.enter(next);
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
                    self.enter(next);
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

    /// Registers an operation that the runtime does, and calls it: narrow operands in the argument area.
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
        let index = self.sites.add_wide(op);
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
