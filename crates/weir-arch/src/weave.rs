//! What architectures use to make one body of their blocks and of what they do between them.

mod exits;
mod join_sums;
mod sums;
mod unaligned;

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
    HeaderId, Inst, InstKind, Loc, Operand, Program, Rvalue, Terminator, Type, Var, VarId, VarKind,
};

pub(crate) use exits::{Ends, driver, drop, finish, queue, recirculate, transmit};

/// The call that is [`Pseudo::Checksum`].
pub(crate) const CHECKSUM: &str = "$internet_checksum";
/// The call that is [`Pseudo::Sum`].
pub(crate) const SUM: &str = "$internet_sum";
/// Bits of a sum that more is added to: whole words, so that what comes after it lies in the words
/// of the sum as it did.
pub(crate) const SUM_WIDTH: u32 = 64;

/// State of the generator of random numbers, for the order of calls.
pub(crate) const RANDOM: u32 = u32::MAX;

pub(crate) fn constant(width: u32, value: u64) -> Operand {
    Operand::Const(Bits::new(width, value.into()))
}

/// A body in the making.
pub(crate) struct Weaver {
    /// The program, with the variables that the body has besides.
    pub program: Program,
    pub blocks: Arena<BasicBlock>,
    /// Where instructions go now.
    pub at: BlockId,
    /// Sums of instances of the architecture's checksums.
    pub sums: Vec<(ExternId, VarId)>,
}

/// A block of the program in the body.
pub(crate) struct Appended {
    /// Where each of its basic blocks is.
    pub first: Vec<BlockId>,
    /// Where its ways end with accept or return.
    pub done: BlockId,
    /// Where they end with reject.
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

impl Weaver {
    /// An empty body for a program.
    pub(crate) fn new(program: &Program) -> Self {
        let mut blocks = Arena::default();
        let at = blocks.push(empty());
        Weaver {
            program: program.clone(),
            blocks,
            at,
            sums: Vec::new(),
        }
    }

    pub(crate) fn block(&mut self) -> BlockId {
        self.blocks.push(empty())
    }

    pub(crate) fn push(&mut self, kind: InstKind, loc: Loc) {
        self.blocks[self.at].insts.push(Inst { kind, loc });
    }

    pub(crate) fn assign(&mut self, dst: VarId, value: Rvalue) {
        self.push(InstKind::Assign { dst, value }, Loc::default());
    }

    pub(crate) fn end(&mut self, terminator: Terminator) {
        self.blocks[self.at].terminator = terminator;
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

    /// Goes on in a new block where the condition holds, and in another one where not; gives that
    /// one.
    pub(crate) fn branch(&mut self, condition: Operand) -> BlockId {
        let (then, otherwise) = (self.block(), self.block());
        self.end(Terminator::Branch {
            condition,
            then,
            otherwise,
        });
        self.at = then;
        otherwise
    }

    /// Leaves by an exit where the condition holds; goes on in a new block otherwise.
    pub(crate) fn leave_if(&mut self, condition: VarId, exit: u32) {
        let on = self.branch(Operand::Var(condition));
        self.end(Terminator::Exit(exit));
        self.at = on;
    }

    pub(crate) fn test(&mut self, op: BinaryOp, var: VarId, value: u64) -> VarId {
        let (result, width) = (self.temporary(1), self.width(var));
        self.assign(result, Rvalue::Binary(op, Operand::Var(var), constant(width, value)));
        result
    }

    /// Room for a body of the program. Whoever fills it goes on at [`Appended::done`].
    pub(crate) fn reserve(&mut self, body: &Body) -> Appended {
        let first: Vec<BlockId> = body.blocks.ids().map(|_| self.block()).collect();
        let (done, rejected) = (self.block(), self.block());
        let start = first.first().copied().unwrap_or(done);
        self.end(Terminator::Goto(start));
        Appended {
            on_error: body.on_error.map(|b| first[b.index()]),
            first,
            done,
            rejected,
        }
    }

    /// The end of a basic block of a body that room was made for.
    pub(crate) fn close(&mut self, appended: &Appended, terminator: &Terminator, loc: Loc) {
        let terminator = match terminator {
            Terminator::Accept | Terminator::Return => Terminator::Goto(appended.done),
            Terminator::Reject => Terminator::Goto(appended.rejected),
            other => {
                let mut other = other.clone();
                other.map_targets(|b| appended.first[b.index()]);
                other
            }
        };
        self.end(terminator);
        self.blocks[self.at].loc = loc;
    }

    /// Parser states from which there is no way out stay states: who runs them ends with an
    /// error of the parser, and cannot tell by anything else that they belong to one.
    pub(crate) fn name_endless(&mut self, parser: &Body, appended: &Appended) {
        for id in endless(parser) {
            let state = parser.blocks[id].state.clone().unwrap_or_default();
            self.blocks[appended.first[id.index()]].state = Some(state);
        }
    }

    /// What a parser's outcome leaves: the error in a field, and the host told of it. `accepted`
    /// and `rejected` are where the parser's ways end; goes on behind both.
    pub(crate) fn parsed(&mut self, accepted: BlockId, rejected: BlockId, error: VarId, field: Option<VarId>) {
        let parsed = self.block();
        self.at = accepted;
        self.set(field, 0);
        self.end(Terminator::Goto(parsed));
        self.at = rejected;
        self.copy(field, error);
        let has_error = self.test(BinaryOp::Ne, error, 0);
        let without = self.branch(Operand::Var(has_error));
        let what = ArgumentValue::In(vec![weir_ir::InLeaf::Value(Operand::Var(error))]);
        self.push(pseudo("$parser_error", Some(what), None), Loc::default());
        self.end(Terminator::Goto(parsed));
        self.at = without;
        self.end(Terminator::Goto(parsed));
        self.at = parsed;
    }

    /// Bytes of all valid headers among these, which are of whole bytes.
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

    /// Whether a header has a length that is known, in whole bytes.
    pub(crate) fn is_whole(&self, header: HeaderId) -> bool {
        let ty = &self.program.header_types[self.header(header).ty];
        ty.varbit_field().is_none() && ty.fixed_width().is_multiple_of(8)
    }

    /// The call of an assertion: only what fails is the host's business, which ends the packet's
    /// way.
    pub(crate) fn assertion(&mut self, kind: &InstKind, call: &Call, loc: Loc) {
        let condition = call.input(0).cloned().unwrap_or_else(|| constant(1, 0));
        let (fails, holds) = (self.block(), self.block());
        self.end(Terminator::Branch {
            condition,
            then: holds,
            otherwise: fails,
        });
        self.at = fails;
        self.push(kind.clone(), loc);
        if let Some(Inst {
            kind: InstKind::Call(call),
            ..
        }) = self.blocks[fails].insts.last_mut()
        {
            call.is_pure = true;
        }
        self.end(Terminator::Goto(holds));
        self.at = holds;
    }
}

/// A body that is done, and what its calls came to.
pub(crate) struct Woven<C> {
    pub program: Arc<Program>,
    pub body: Body,
    /// Variables that the body is given, and what they hold.
    pub inputs: Vec<(VarId, Input)>,
    pub calls: Vec<C>,
    pub kinds: Vec<CallKind>,
    /// See [`Pipeline::table_states`].
    pub table_states: Vec<Option<u32>>,
    /// What is interpreted.
    pub left_out: Vec<LeftOut>,
}

impl Weaver {
    /// Folds the body and translates each call that is left. Packets leave by `restart` where code
    /// cannot follow the parser.
    ///
    /// # Errors
    /// One of them cannot be done.
    pub(crate) fn finish<C>(
        self,
        (on_error, error): (BlockId, VarId),
        inputs: Vec<(VarId, Input)>,
        restart: u32,
        is_pure: impl Fn(&Call, Loc) -> bool,
        become_of: impl Fn(&Call, Loc) -> Option<(C, CallKind)>,
    ) -> Result<Woven<C>, NotCompiled> {
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
        let unaligned = unaligned::leave_before(&program, &mut body, restart);
        let mut set = VarSet::new(program.vars.len());
        inputs.iter().for_each(|(v, _)| set.insert(*v));
        let scope = Scope {
            vars: &program.vars,
            headers: &program.headers,
            inputs: &set,
        };
        fold_paths(scope, &mut body, 6);
        join_sums::join_sums(&program, &mut body);
        let (mut calls, mut kinds) = (Vec::new(), Vec::new());
        for (_, block) in body.blocks.iter() {
            for inst in &block.insts {
                if let InstKind::Call(call) = &inst.kind {
                    let Some((what, kind)) = become_of(call, inst.loc) else {
                        return Err(NotCompiled::call(&program, call, inst.loc));
                    };
                    calls.push(what);
                    kinds.push(kind);
                }
            }
        }
        Ok(Woven {
            program: Arc::clone(&program),
            body,
            inputs,
            calls,
            kinds,
            table_states: Vec::new(),
            left_out: unaligned.map_or(Vec::new(), |loc| {
                let problem = "what the parser takes does not end at a whole byte";
                let why = NotCompiled::new(&program, loc, problem);
                vec![LeftOut::new("packets that get there", &why)]
            }),
        })
    }
}

impl<C: Send + Sync + 'static> Woven<C> {
    /// The pipeline that packets leave by these exits.
    pub(crate) fn into_fused(
        self,
        ordered_tables: Vec<bool>,
        ends: Ends,
        selectors: &'static [&'static str],
        counts_hits: bool,
    ) -> Fused {
        let (exits, meanings) = ends.exits.into_iter().unzip();
        let pipeline = Pipeline {
            ordered_tables,
            table_states: self.table_states,
            overrun: ends.overrun,
            restart: ends.restart,
            exits,
            body: self.body,
            inputs: self.inputs.iter().map(|(v, _)| *v).collect(),
            calls: self.kinds,
            program: self.program,
        };
        debug_assert!(pipeline.is_closed());
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
        }
    }
}

/// What blocks of a program look up and what state they come to; `kind_of` knows the calls.
pub(crate) fn touched(
    program: &Program,
    blocks: &[usize],
    kind_of: impl Fn(&Call, Loc) -> Option<CallKind>,
) -> Touched {
    let mut touched = Touched::default();
    let bodies = blocks.iter().map(|b| &program.blocks[*b].body);
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

/// Basic blocks of a parser from which there is no way out.
pub(crate) fn endless(parser: &Body) -> Vec<BlockId> {
    let takes = |kind: &InstKind| {
        matches!(
            kind,
            InstKind::Extract { .. } | InstKind::Lookahead { .. } | InstKind::Advance { .. }
        )
    };
    let mut ends = vec![false; parser.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (id, block) in parser.blocks.iter() {
            let targets = block.terminator.targets();
            let can_end = targets.is_empty()
                || targets.iter().any(|t| ends[t.index()])
                || block.insts.iter().any(|i| takes(&i.kind));
            changed |= can_end && !std::mem::replace(&mut ends[id.index()], true);
        }
    }
    parser.blocks.ids().filter(|id| !ends[id.index()]).collect()
}

/// Appends blocks of the program to a body.
pub(crate) trait Weave: DerefMut<Target = Weaver> {
    /// Appends an instruction of the program, or what stands for it.
    fn instruction(&mut self, kind: &InstKind, loc: Loc);

    /// The end of a basic block of the program, or what stands for it.
    fn terminator(&self, terminator: &Terminator) -> Terminator {
        terminator.clone()
    }

    /// Appends a block of the program and goes on behind it.
    fn append(&mut self, program: &Arc<Program>, index: usize) -> Appended {
        self.append_body(&program.blocks[index].body)
    }

    /// The same for any body of the program.
    fn append_body(&mut self, body: &Body) -> Appended {
        let appended = self.reserve(body);
        for (id, block) in body.blocks.iter() {
            self.at = appended.first[id.index()];
            let at = self.at;
            self.blocks[at].loc = block.loc;
            for inst in &block.insts {
                self.instruction(&inst.kind, inst.loc);
            }
            let terminator = self.terminator(&block.terminator);
            self.close(&appended, &terminator, block.loc);
        }
        self.at = appended.done;
        appended
    }
}

/// A call of something that is no extern of the program.
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
        // Whoever compiles the pipeline is told by `CallKind` what it does.
        is_pure: true,
    })
}

/// A call that stands for no extern of the program, as the host does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pseudo {
    /// The internet checksum of the first argument.
    Checksum,
    /// What that is the complement of.
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

/// A call of the host's that touches no metadata behind its arguments. `state`: what packets must
/// come to in order.
pub(crate) fn host(state: Option<u32>) -> CallKind {
    CallKind::Host {
        reads: Vec::new(),
        writes: Vec::new(),
        state,
        abort: None,
    }
}
