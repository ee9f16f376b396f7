//! Builds the fused body of an architecture: its programmable blocks, and what it does between
//! them, as one control-flow graph ([`PipelineBuilder`]).
//!
//! An architecture's `fuse` module appends the program's parsers, controls and deparsers
//! ([`AppendCode`]) and emits instructions between them. [`PipelineBuilder::finish`] folds the
//! body, classifies the calls that are left ([`CallKind`]), and gives a [`FinishedPipeline`]. Code
//! generation is weir-jit's; the architecture chooses which programmable blocks run in which order.

mod exits;
mod externs;
mod join_sums;
mod parser_loops;
mod sums;
mod unaligned;

pub(crate) use self::parser_loops::{ParserCosts, non_consuming_loops};

use crate::error::{LeftOut, NotCompiled};
use crate::fused::{Fused, FusedArguments, Input};
use crate::hash;
use crate::service::hash_input;
use crate::state::State;
use std::ops::DerefMut;
use std::sync::Arc;
use weir_interp::ArgValue;
use weir_ir::passes::{Scope, VarSet, fold_paths};
use weir_ir::pipeline::{CallKind, Pipeline, Touched};
use weir_ir::{
    Arena, Argument, ArgumentValue, BasicBlock, BinaryOp, Bits, BlockId, Body, Call, Display, ExternId, Header,
    HeaderId, Inst, InstKind, Loc, Mark, Operand, Program, Rvalue, Terminator, Type, Var, VarId, VarKind,
};

pub(crate) use exits::{ExitTable, drop_exit, punt_exit, queue, recirculate, stamp_and_transmit, transmit};

/// The call that is [`Pseudo::Checksum`].
pub(crate) const CHECKSUM: &str = "$internet_checksum";
/// The call that is [`Pseudo::Sum`].
pub(crate) const SUM: &str = "$internet_sum";
/// Width of a sum that is an operand of a further sum: whole 16-bit words, so that the operands
/// after it keep their alignment to words.
pub(crate) const SUM_WIDTH: u32 = 64;

/// The most rounds of [`fold_paths`]. It ends earlier when nothing changes any more.
const MAX_FOLD_ROUNDS: usize = 6;

/// The state number of the random generator, by which calls are kept in order.
pub(crate) const RANDOM: u32 = u32::MAX;

pub(crate) fn constant(width: u32, value: u64) -> Operand {
    Operand::Const(Bits::new(width, value.into()))
}

/// A body under construction, with a cursor at which instructions are appended.
pub(crate) struct PipelineBuilder {
    /// The program, and the variables that were added for the body.
    pub program: Program,
    pub blocks: Arena<BasicBlock>,
    /// The basic block to which instructions are appended.
    pub cursor: BlockId,
    /// Running sums of the architecture's checksum externs, by instance.
    pub sums: Vec<(ExternId, VarId)>,
    /// What the blocks of a parser that are in no loop count in the interpreter's limits.
    unmarked_blocks: u64,
}

/// A parser, control or deparser of the program that was appended to the body.
pub(crate) struct Appended {
    /// For each of its basic blocks, by number, the basic block of the fused body.
    pub basic_blocks: Vec<BlockId>,
    /// The basic block after accept and return.
    pub accepted: BlockId,
    /// The basic block after reject.
    pub rejected: BlockId,
    pub on_error: Option<BlockId>,
}

fn empty() -> BasicBlock {
    BasicBlock {
        state: None,
        insts: Vec::new(),
        terminator: Terminator::Return,
        loc: Loc::default(),
    }
}

impl PipelineBuilder {
    /// An empty body for a program.
    pub(crate) fn new(program: &Program) -> Self {
        let mut blocks = Arena::default();
        let cursor = blocks.push(empty());
        PipelineBuilder {
            program: program.clone(),
            blocks,
            cursor,
            sums: Vec::new(),
            unmarked_blocks: 0,
        }
    }

    /// A new basic block, without instructions yet.
    pub(crate) fn new_basic_block(&mut self) -> BlockId {
        self.blocks.push(empty())
    }

    pub(crate) fn push(&mut self, kind: InstKind, loc: Loc) {
        self.blocks[self.cursor].insts.push(Inst { kind, loc });
    }

    pub(crate) fn assign(&mut self, dst: VarId, value: Rvalue) {
        self.push(InstKind::Assign { dst, value }, Loc::default());
    }

    pub(crate) fn terminate(&mut self, terminator: Terminator) {
        self.blocks[self.cursor].terminator = terminator;
    }

    /// A variable of the body alone.
    pub(crate) fn variable(&mut self, name: &str, width: u32) -> VarId {
        self.program.vars.push(Var {
            name: name.to_owned(),
            ty: Type::Bits(width),
            display: Display::Unsigned,
            kind: VarKind::Temporary,
        })
    }

    pub(crate) fn temporary(&mut self, width: u32) -> VarId {
        self.variable("$t", width)
    }

    /// A variable with this value.
    pub(crate) fn compute(&mut self, width: u32, value: Rvalue) -> VarId {
        let var = self.temporary(width);
        self.assign(var, value);
        var
    }

    pub(crate) fn width(&self, var: VarId) -> u32 {
        self.program.vars[var].ty.width()
    }

    pub(crate) fn header(&self, header: HeaderId) -> &Header {
        &self.program.headers[header]
    }

    /// Sets a field the program has, to a constant modulo its width.
    pub(crate) fn set(&mut self, var: Option<VarId>, value: u64) {
        if let Some(var) = var {
            let width = self.width(var);
            self.assign(var, Rvalue::Use(constant(width, value)));
        }
    }

    /// Sets a field the program has, truncated or extended to its width.
    pub(crate) fn copy(&mut self, to: Option<VarId>, from: VarId) {
        if let Some(to) = to {
            let value = match self.width(to) == self.width(from) {
                true => Rvalue::Use(Operand::Var(from)),
                false => Rvalue::ZeroExtend(Operand::Var(from)),
            };
            self.assign(to, value);
        }
    }

    /// Branches on a condition. The cursor moves to the basic block where it holds; returns the
    /// basic block where it does not.
    pub(crate) fn branch(&mut self, condition: Operand) -> BlockId {
        let (then, otherwise) = (self.new_basic_block(), self.new_basic_block());
        self.terminate(Terminator::Branch {
            condition,
            then,
            otherwise,
        });
        self.cursor = then;
        otherwise
    }

    /// Leaves by an exit where the condition holds. The cursor moves to the basic block where it
    /// does not.
    pub(crate) fn leave_if(&mut self, condition: VarId, exit: u32) {
        let on = self.branch(Operand::Var(condition));
        self.terminate(Terminator::Exit(exit));
        self.cursor = on;
    }

    pub(crate) fn test(&mut self, op: BinaryOp, var: VarId, value: u64) -> VarId {
        let (result, width) = (self.temporary(1), self.width(var));
        self.assign(result, Rvalue::Binary(op, Operand::Var(var), constant(width, value)));
        result
    }

    /// Reserves basic blocks for a body of the program. The caller fills them, then moves the
    /// cursor to [`Appended::accepted`].
    pub(crate) fn reserve(&mut self, body: &Body) -> Appended {
        let basic_blocks: Vec<BlockId> = body.blocks.ids().map(|_| self.new_basic_block()).collect();
        let (accepted, rejected) = (self.new_basic_block(), self.new_basic_block());
        let start = basic_blocks.first().copied().unwrap_or(accepted);
        self.terminate(Terminator::Goto(start));
        Appended {
            on_error: body.on_error.map(|b| basic_blocks[b.index()]),
            basic_blocks,
            accepted,
            rejected,
        }
    }

    /// Terminates a basic block of a reserved body, with its targets mapped to the reserved ones.
    pub(crate) fn terminate_mapped(&mut self, appended: &Appended, terminator: &Terminator, loc: Loc) {
        let terminator = match terminator {
            Terminator::Accept | Terminator::Return => Terminator::Goto(appended.accepted),
            Terminator::Reject => Terminator::Goto(appended.rejected),
            other => {
                let mut other = other.clone();
                other.map_targets(|b| appended.basic_blocks[b.index()]);
                other
            }
        };
        self.terminate(terminator);
        self.blocks[self.cursor].loc = loc;
    }

    /// Begins a basic block of a parser with an advance by 0 bits, which does nothing, but makes
    /// the block one that can fail. Engines recognise parsers' loops by such blocks, and no pass
    /// removes or copies them.
    pub(crate) fn mark_as_parser(&mut self, block: BlockId) {
        let block = &mut self.blocks[block];
        let kind = InstKind::Advance { bits: constant(32, 0) };
        block.insts.insert(0, Inst { kind, loc: block.loc });
    }

    /// Marks the loops of an appended parser.
    pub(crate) fn bound_loops(&mut self, parser: &Body, appended: &Appended) {
        for id in non_consuming_loops(parser) {
            self.mark_as_parser(appended.basic_blocks[id.index()]);
        }
        let costs = self.costs_of_parser(parser);
        for (id, count) in costs.looped {
            self.mark_parser_blocks(appended.basic_blocks[id.index()], count);
        }
    }

    /// The costs of a parser of the program that is appended.
    pub(crate) fn costs_of_parser(&mut self, parser: &Body) -> ParserCosts {
        let costs = ParserCosts::of(&self.program, parser);
        self.unmarked_blocks = self.unmarked_blocks.max(costs.others);
        costs
    }

    /// Begins a basic block with the mark that it counts as this many blocks of a parser.
    pub(crate) fn mark_parser_blocks(&mut self, block: BlockId, count: u32) {
        let block = &mut self.blocks[block];
        let kind = InstKind::Mark(Mark::ParserBlocks(count));
        block.insts.insert(0, Inst { kind, loc: block.loc });
    }

    /// Joins the two ends of a parser, `accepted` and `rejected`. Stores the error in `field` and
    /// reports it to the host. The cursor moves after the join.
    pub(crate) fn join_parser_ends(
        &mut self,
        accepted: BlockId,
        rejected: BlockId,
        error: VarId,
        field: Option<VarId>,
    ) {
        let parsed = self.new_basic_block();
        self.cursor = accepted;
        self.set(field, 0);
        self.terminate(Terminator::Goto(parsed));
        self.cursor = rejected;
        self.copy(field, error);
        let has_error = self.test(BinaryOp::Ne, error, 0);
        let without = self.branch(Operand::Var(has_error));
        let what = ArgumentValue::In(vec![weir_ir::InLeaf::Value(Operand::Var(error))]);
        self.push(pseudo("$parser_error", Some(what), None), Loc::default());
        self.terminate(Terminator::Goto(parsed));
        self.cursor = without;
        self.terminate(Terminator::Goto(parsed));
        self.cursor = parsed;
    }

    /// The total length, in bytes, of the valid ones of these headers. All must be whole bytes.
    pub(crate) fn header_bytes(&mut self, headers: &[HeaderId]) -> VarId {
        let sum = self.temporary(32);
        self.set(Some(sum), 0);
        for &header in headers {
            let (valid, bytes) = {
                let h = self.header(header);
                (h.valid, self.program.header_types[h.ty].fixed_width() / 8)
            };
            let (part, zero) = (self.temporary(32), constant(32, 0));
            self.assign(
                part,
                Rvalue::Mux {
                    condition: Operand::Var(valid),
                    then: constant(32, bytes.into()),
                    otherwise: zero,
                },
            );
            self.assign(
                sum,
                Rvalue::Binary(BinaryOp::Add, Operand::Var(sum), Operand::Var(part)),
            );
        }
        sum
    }

    /// Whether a header has a constant length of whole bytes.
    pub(crate) fn has_constant_byte_length(&self, header: HeaderId) -> bool {
        let ty = &self.program.header_types[self.header(header).ty];
        ty.varbit_field().is_none() && ty.fixed_width().is_multiple_of(8)
    }

    /// Appends an assertion. Only a failed one calls the host, which then drops the packet.
    pub(crate) fn assertion(&mut self, kind: &InstKind, call: &Call, loc: Loc) {
        let condition = call.input(0).cloned().unwrap_or_else(|| constant(1, 0));
        let (fails, holds) = (self.new_basic_block(), self.new_basic_block());
        self.terminate(Terminator::Branch {
            condition,
            then: holds,
            otherwise: fails,
        });
        self.cursor = fails;
        self.push(kind.clone(), loc);
        if let Some(Inst {
            kind: InstKind::Call(call),
            ..
        }) = self.blocks[fails].insts.last_mut()
        {
            call.is_pure = true;
        }
        self.terminate(Terminator::Goto(holds));
        self.cursor = holds;
    }
}

/// A finished body, and the translation of its calls.
pub(crate) struct FinishedPipeline<C> {
    pub program: Arc<Program>,
    pub body: Body,
    /// Variables that are set before the body runs, and what they hold.
    pub inputs: Vec<(VarId, Input)>,
    pub calls: Vec<C>,
    pub kinds: Vec<CallKind>,
    /// See [`Pipeline::table_states`].
    pub table_states: Vec<Option<u32>>,
    /// See [`Pipeline::parser_block_limit`].
    pub parser_block_limit: u32,
    /// Parts of the program that the body leaves to the interpreter.
    pub left_out: Vec<LeftOut>,
}

impl PipelineBuilder {
    /// Folds the body and translates each call that is left: `classify` gives its meaning for the
    /// host and its kind. Packets leave by `punt_from_start`
    /// before a header that is not byte-aligned ([`unaligned`]).
    ///
    /// # Errors
    /// A call has no translation, or a parser's loop comes after a call with effects.
    pub(crate) fn finish<C>(
        self,
        (on_error, error): (BlockId, VarId),
        inputs: Vec<(VarId, Input)>,
        punt_from_start: u32,
        is_pure: impl Fn(&Call, Loc) -> bool,
        classify: impl Fn(&Call, Loc) -> Option<(C, CallKind)>,
    ) -> Result<FinishedPipeline<C>, NotCompiled> {
        let mut body = Body {
            blocks: self.blocks,
            on_error: Some(on_error),
            error: Some(error),
        };
        for (_, block) in body.blocks.iter_mut() {
            for inst in &mut block.insts {
                if let InstKind::Call(call) = &mut inst.kind {
                    call.is_pure = is_pure(call, inst.loc);
                }
            }
        }
        let program = Arc::new(self.program);
        let unaligned = unaligned::leave_before(&program, &mut body, punt_from_start);
        let mut set = VarSet::new(program.vars.len());
        inputs.iter().for_each(|(v, _)| set.insert(*v));
        let scope = Scope {
            vars: &program.vars,
            headers: &program.headers,
            inputs: &set,
        };
        fold_paths(scope, &mut body, MAX_FOLD_ROUNDS);
        join_sums::join_sums(&program, &mut body);
        if let Some(loc) = unaligned::loop_after_call(&body) {
            let problem = "a parser's loop comes after a call with effects, which an interpreted packet would repeat";
            return Err(NotCompiled::new(&program, loc, problem));
        }
        let parser_block_limit = parser_loops::limit_at_header(&body, self.unmarked_blocks);
        let (mut calls, mut kinds) = (Vec::new(), Vec::new());
        for (_, block) in body.blocks.iter() {
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind {
                    let Some((translated, kind)) = classify(call, inst.loc) else {
                        return Err(NotCompiled::call(&program, call, inst.loc));
                    };
                    calls.push(translated);
                    kinds.push(kind);
                }
            }
        }
        Ok(FinishedPipeline {
            program: Arc::clone(&program),
            body,
            inputs,
            calls,
            kinds,
            table_states: Vec::new(),
            parser_block_limit,
            left_out: unaligned.map_or(Vec::new(), |loc| {
                let problem = "what the parser takes does not end at a whole byte";
                let why = NotCompiled::new(&program, loc, problem);
                vec![LeftOut::new("packets that get there", &why)]
            }),
        })
    }
}

impl<C: Send + Sync + 'static> FinishedPipeline<C> {
    /// The pipeline with these exits.
    pub(crate) fn into_fused(
        self,
        ordered_tables: Vec<bool>,
        exit_table: ExitTable,
        selectors: &'static [&'static str],
        counts_hits: bool,
    ) -> Fused {
        let (exits, meanings) = exit_table.exits.into_iter().unzip();
        let pipeline = Pipeline {
            ordered_tables,
            table_states: self.table_states,
            instruction_budget_drop: exit_table.instruction_budget_drop,
            punt_from_start: exit_table.punt_from_start,
            parser_block_limit: self.parser_block_limit,
            exits,
            body: self.body,
            inputs: self.inputs.iter().map(|(v, _)| *v).collect(),
            calls: self.kinds,
            program: self.program,
        };
        debug_assert!(pipeline.is_closed());
        let payload_kept = lookahead_bytes(&pipeline.program);
        Fused {
            pipeline: Arc::new(pipeline),
            exits: meanings,
            inputs: self.inputs.into_iter().map(|(_, i)| i).collect(),
            selectors,
            counts_hits,
            calls: Arc::new(self.calls),
            queueing: None,
            egress: None,
            recirculates: false,
            left_out: self.left_out,
            payload_kept,
        }
    }
}

/// The most bytes that parsers of a program read beyond their position.
fn lookahead_bytes(program: &Program) -> usize {
    let blocks = program.blocks.iter().flat_map(|block| block.body.blocks.iter());
    let bits = blocks.flat_map(|(_, block)| &block.insts).map(|inst| match &inst.kind {
        InstKind::Lookahead { dst, offset } => u64::from(*offset) + u64::from(program.vars[*dst].ty.width()),
        _ => 0,
    });
    // The position may lie within a byte.
    bits.max().map_or(0, |bits| (bits + 7).div_ceil(8) as usize)
}

/// The tables and the state that programmable blocks access; `kind_of` classifies their calls.
pub(crate) fn touched(
    program: &Program,
    programmable_blocks: &[usize],
    kind_of: impl Fn(&Call, Loc) -> Option<CallKind>,
) -> Touched {
    let mut touched = Touched::default();
    let bodies = programmable_blocks.iter().map(|b| &program.blocks[*b].body);
    for (_, block) in bodies.flat_map(|b| b.blocks.iter()) {
        if let Terminator::Lookup(lookup) = &block.terminator {
            touched.tables.insert(lookup.table);
        }
        for inst in &block.insts {
            if let InstKind::Call(call) = &inst.kind
                && let Some(CallKind::Host { state: Some(state), .. }) = kind_of(call, inst.loc)
            {
                touched.states.insert(state);
            }
        }
    }
    touched
}

/// Appends code of the program to the fused body. Each architecture translates instructions its own
/// way.
pub(crate) trait AppendCode: DerefMut<Target = PipelineBuilder> {
    /// Appends an instruction of the program, or its translation.
    fn instruction(&mut self, kind: &InstKind, loc: Loc);

    /// The terminator of a basic block of the program, or its translation.
    fn terminator(&self, terminator: &Terminator) -> Terminator {
        terminator.clone()
    }

    /// Appends a programmable block, by its index in [`Program::blocks`]. The cursor moves after
    /// it.
    fn append_code_of(&mut self, program: &Arc<Program>, index: usize) -> Appended {
        self.append_body(&program.blocks[index].body)
    }

    /// As [`AppendCode::append_code_of`], for any body of the program.
    fn append_body(&mut self, body: &Body) -> Appended {
        let appended = self.reserve(body);
        for (id, block) in body.blocks.iter() {
            self.cursor = appended.basic_blocks[id.index()];
            let cursor = self.cursor;
            self.blocks[cursor].loc = block.loc;
            for inst in &block.insts {
                self.instruction(&inst.kind, inst.loc);
            }
            let terminator = self.terminator(&block.terminator);
            self.terminate_mapped(&appended, &terminator, block.loc);
        }
        self.cursor = appended.accepted;
        appended
    }
}

/// A call that no extern of the program stands for: one of [`Pseudo`], by name.
pub(crate) fn pseudo(name: &str, argument: Option<ArgumentValue>, result: Option<VarId>) -> InstKind {
    let arguments = argument.map(|value| Argument {
        name: "data".to_owned(),
        value,
    });
    InstKind::Call(Call {
        instance: None,
        function: name.to_owned(),
        type_arguments: Vec::new(),
        arguments: arguments.into_iter().collect(),
        results: result.into_iter().collect(),
        entry: None,
        closure: 0,
        // Compilers of the pipeline use `CallKind`, not this.
        is_pure: true,
        calculation: None,
        execution: weir_ir::Execution::Inline,
    })
}

/// A call that the fuser inserts, with no extern of the program behind it; the host performs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pseudo {
    /// The internet checksum of the first argument.
    Checksum,
    /// The one's complement sum of the first argument: the complement of its checksum.
    Sum,
    /// A parser ended with the error in the first argument.
    ParserError,
}

impl Pseudo {
    /// The call of this name.
    pub(crate) fn of(function: &str) -> Option<(Self, CallKind)> {
        Some(match function {
            CHECKSUM => (Pseudo::Checksum, CallKind::InternetChecksum),
            SUM => (Pseudo::Sum, CallKind::InternetSum),
            "$parser_error" => (Pseudo::ParserError, host(None)),
            _ => return None,
        })
    }

    pub(crate) fn perform(self, state: &mut State, call: &mut FusedArguments<'_>) {
        let argument = call.arguments.first();
        let sum = match self {
            Pseudo::Checksum => internet_checksum(argument),
            Pseudo::Sum => !internet_checksum(argument),
            Pseudo::ParserError => {
                let error = argument.and_then(ArgValue::first).map_or(0, Bits::to_u64_saturating);
                *state.parser_errors.entry(error as u32).or_default() += 1;
                return;
            }
        };
        if let Some(result) = call.results.first_mut() {
            *result = Bits::new(result.width(), sum.into());
        }
    }
}

fn internet_checksum(argument: Option<&ArgValue>) -> u16 {
    hash::csum16(&hash_input(argument, None))
}

/// A call of the host that accesses no variables but its arguments. `state` is the state that
/// packets must access in order.
pub(crate) fn host(state: Option<u32>) -> CallKind {
    CallKind::Host {
        reads: Vec::new(),
        writes: Vec::new(),
        state,
        abort: None,
    }
}
