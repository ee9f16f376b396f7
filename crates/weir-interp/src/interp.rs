//! The interpreter.

use crate::eval;
use crate::frame::{Frame, PacketState, read_bits};
use crate::runtime::{
    Abort, ArgValue, CallContext, CallEffect, Executable, InValue, LookupDetail, MethodEngine, Outcome, Runtime,
};
use crate::sites::{BodyKey, CallSites};
use crate::trace::{Event, NoTrace, Tracer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use weir_ir::{
    ArgumentValue, BasicBlock, Bits, BlockId, Body, Call, ExternId, HeaderId, InLeaf, InstKind, Loc, Lookup, Mark,
    Operand, Pattern, Program, SelectCase, Terminator, Type, VarId, cost,
};

/// Basic blocks that one run of a parser may enter.
pub const PARSER_BUDGET: u32 = 65_536;
/// What one run of a body may cost, in the units of [`weir_ir::cost`]: about one per instruction.
pub const INSTRUCTION_BUDGET: u32 = 1_000_000;

/// Values of the core errors in a program.
#[derive(Debug, Clone, Copy)]
struct Errors {
    packet_too_short: u32,
    header_too_short: u32,
    parser_timeout: u32,
    parser_invalid_argument: u32,
}

impl Errors {
    fn new(program: &Program) -> Self {
        let code = |name, standard| program.error_code(name).unwrap_or(standard);
        Errors {
            packet_too_short: code("PacketTooShort", 1),
            header_too_short: code("HeaderTooShort", 4),
            parser_timeout: code("ParserTimeout", 5),
            parser_invalid_argument: code("ParserInvalidArgument", 6),
        }
    }
}

/// Runs programs as the IR defines them.
#[derive(Debug, Clone)]
pub struct Interpreter {
    program: Arc<Program>,
    sites: CallSites,
    errors: Errors,
    /// Variables that lookups write the chosen action to: a switch on one is how the compiler goes
    /// to the action's body, and no news to anybody.
    action_vars: BTreeSet<VarId>,
    /// Per body, the cost of each basic block.
    costs: BTreeMap<BodyKey, Vec<u32>>,
}

fn costs(program: &Program) -> BTreeMap<BodyKey, Vec<u32>> {
    let methods = program.externs.iter().flat_map(|(id, instance)| {
        let numbers = 0..instance.methods.len();
        numbers.map(move |method| BodyKey::Method(id, method))
    });
    let keys = (0..program.blocks.len()).map(BodyKey::Block).chain(methods);
    keys.filter_map(|key| {
        let blocks = key.of(program)?.blocks.iter();
        Some((key, blocks.map(|(_, block)| cost::block(program, block)).collect()))
    })
    .collect()
}

fn action_vars(program: &Program) -> BTreeSet<VarId> {
    let of_blocks = program.blocks.iter().map(|b| &b.body);
    let of_methods = program
        .externs
        .iter()
        .flat_map(|(_, e)| e.methods.iter().map(|m| &m.body));
    let blocks = of_blocks
        .chain(of_methods)
        .flat_map(|body| body.blocks.iter().map(|(_, b)| b));
    let lookups = blocks.filter_map(|b| match &b.terminator {
        Terminator::Lookup(lookup) => Some(lookup.action),
        _ => None,
    });
    lookups.collect()
}

impl Interpreter {
    /// An interpreter for a program that the IR's verifier accepts.
    #[must_use]
    pub fn new(program: Arc<Program>) -> Self {
        Interpreter {
            sites: CallSites::new(&program),
            errors: Errors::new(&program),
            action_vars: action_vars(&program),
            costs: costs(&program),
            program,
        }
    }

    /// The numbers of the program's extern calls.
    #[must_use]
    pub fn sites(&self) -> &CallSites {
        &self.sites
    }

    /// Does something with what runs the methods that the program has given to externs.
    pub fn with_methods<R>(&self, action: impl FnOnce(&mut dyn MethodEngine) -> R) -> R {
        let mut methods = Methods {
            interpreter: self,
            tracer: &mut NoTrace,
        };
        action(&mut methods)
    }

    /// As [`Executable::run`], telling a tracer what happens.
    pub fn run_traced<T: Tracer + ?Sized>(
        &self,
        block: usize,
        packet: &mut PacketState,
        runtime: &mut dyn Runtime,
        tracer: &mut T,
    ) -> Outcome {
        let loc = self.program.blocks.get(block).map_or(Loc::default(), |b| b.loc);
        if tracer.enabled() {
            tracer.event(&Event::BlockEnter { block }, loc);
        }
        let outcome = self.run_body(BodyKey::Block(block), packet, runtime, tracer);
        if tracer.enabled() {
            tracer.event(&Event::BlockLeave { outcome }, loc);
        }
        outcome
    }

    fn run_body<T: Tracer + ?Sized>(
        &self,
        key: BodyKey,
        packet: &mut PacketState,
        runtime: &mut dyn Runtime,
        tracer: &mut T,
    ) -> Outcome {
        let Some(body) = key.of(&self.program) else {
            return Outcome::Abort(Abort::NoSuchBody);
        };
        let mut run = Run {
            interpreter: self,
            body,
            first_sites: self.sites.first_of(key),
            packet,
            runtime,
            tracer,
            costs: self.costs.get(&key).map_or(&[], Vec::as_slice),
            units: INSTRUCTION_BUDGET,
            blocks: if body.error.is_some() { PARSER_BUDGET } else { u32::MAX },
        };
        run.run()
    }
}

impl Executable for Interpreter {
    fn program(&self) -> &Arc<Program> {
        &self.program
    }

    fn run(&self, block: usize, packet: &mut PacketState, runtime: &mut dyn Runtime) -> Outcome {
        self.run_traced(block, packet, runtime, &mut NoTrace)
    }
}

/// Runs methods within the same trace.
struct Methods<'a, T: Tracer + ?Sized> {
    interpreter: &'a Interpreter,
    tracer: &'a mut T,
}

impl<T: Tracer + ?Sized> MethodEngine for Methods<'_, T> {
    fn run_method(
        &mut self,
        instance: ExternId,
        method: usize,
        packet: &mut PacketState,
        runtime: &mut dyn Runtime,
    ) -> Outcome {
        self.interpreter
            .run_body(BodyKey::Method(instance, method), packet, runtime, self.tracer)
    }
}

/// What to do after an instruction.
enum Step {
    Next,
    /// A packet operation failed.
    Fail(u32),
    End(Outcome),
}

/// One run of one body.
struct Run<'a, T: Tracer + ?Sized> {
    interpreter: &'a Interpreter,
    body: &'a Body,
    first_sites: &'a [u32],
    packet: &'a mut PacketState,
    runtime: &'a mut dyn Runtime,
    tracer: &'a mut T,
    /// Of each basic block.
    costs: &'a [u32],
    /// What the rest may cost.
    units: u32,
    /// Basic blocks left.
    blocks: u32,
}

impl<'a, T: Tracer + ?Sized> Run<'a, T> {
    fn program(&self) -> &'a Program {
        &self.interpreter.program
    }

    fn run(&mut self) -> Outcome {
        let mut at = BlockId::new(0);
        loop {
            let Some(block) = self.body.blocks.get(at) else {
                return Outcome::Abort(Abort::NoSuchBody);
            };
            if let Some(outcome) = self.charge(at, block) {
                return outcome;
            }
            if let Some(name) = &block.state {
                self.trace(|| Event::State { name }, block.loc);
            }
            match self.block(at, block) {
                Ok(next) => at = next,
                Err(outcome) => return outcome,
            }
        }
    }

    /// Takes a block from the budgets.
    fn charge(&mut self, at: BlockId, block: &BasicBlock) -> Option<Outcome> {
        let cost = self.costs.get(at.index()).copied().unwrap_or(u32::MAX);
        match (self.blocks.checked_sub(1), self.units.checked_sub(cost)) {
            (Some(blocks), Some(units)) => {
                (self.blocks, self.units) = (blocks, units);
                None
            }
            _ => Some(match self.body.error {
                Some(error) => {
                    let code = self.interpreter.errors.parser_timeout;
                    self.packet.frame.set_u64(error, code.into());
                    self.trace(|| Event::ParserError { error: code }, block.loc);
                    Outcome::Reject(code)
                }
                None => Outcome::Abort(Abort::InstructionBudget),
            }),
        }
    }

    /// Runs a basic block; gives the next one or the end.
    fn block(&mut self, at: BlockId, block: &'a BasicBlock) -> Result<BlockId, Outcome> {
        let mut calls = 0;
        for inst in &block.insts {
            match self.instruction(&inst.kind, inst.loc, at, &mut calls) {
                Step::Next => {}
                Step::Fail(error) => return self.fail(error, inst.loc),
                Step::End(outcome) => return Err(outcome),
            }
        }
        self.terminator(&block.terminator, block.loc)
    }

    fn fail(&mut self, error: u32, loc: Loc) -> Result<BlockId, Outcome> {
        self.trace(|| Event::ParserError { error }, loc);
        if let Some(var) = self.body.error {
            self.packet.frame.set_u64(var, error.into());
        }
        self.body.on_error.ok_or(Outcome::Reject(error))
    }

    fn instruction(&mut self, kind: &'a InstKind, loc: Loc, at: BlockId, calls: &mut u32) -> Step {
        match kind {
            InstKind::Assign { dst, value } => {
                let width = self.program().vars[*dst].ty.width();
                let value = eval::rvalue(&self.packet.frame, value, width);
                self.write(*dst, value, loc);
                Step::Next
            }
            InstKind::Extract { header, varbit_bits } => self.extract(*header, varbit_bits.as_ref(), loc),
            InstKind::Lookahead { dst, offset } => self.lookahead(*dst, *offset, loc),
            InstKind::Advance { bits } => self.advance(bits, loc),
            InstKind::PacketLength { dst } => {
                let width = self.program().vars[*dst].ty.width();
                self.write(*dst, Bits::new(width, self.packet.bytes.len() as u128), loc);
                Step::Next
            }
            InstKind::Emit { header } => {
                self.emit(*header, loc);
                Step::Next
            }
            InstKind::Call(call) => {
                let site = CallSites::nth(self.first_sites, at, *calls);
                *calls += 1;
                self.call(call, site, loc)
            }
            InstKind::Mark(Mark::EnterAction(action)) => {
                self.trace(|| Event::EnterAction { action: *action }, loc);
                Step::Next
            }
            InstKind::Mark(Mark::Enter(name)) => {
                self.trace(|| Event::Enter { name }, loc);
                Step::Next
            }
            InstKind::Mark(Mark::Leave) => {
                self.trace(|| Event::Leave, loc);
                Step::Next
            }
            // In bodies of pipelines only, which are not interpreted.
            InstKind::Mark(Mark::ParserBlocks(_)) => Step::Next,
        }
    }

    // ------------------------------------------------------------------------------- variables

    fn trace<'e>(&mut self, event: impl FnOnce() -> Event<'e>, loc: Loc) {
        if self.tracer.enabled() {
            self.tracer.event(&event(), loc);
        }
    }

    fn write(&mut self, var: VarId, value: Bits, loc: Loc) {
        if self.tracer.enabled() && !self.program().vars[var].kind.is_hidden() {
            let old = self.packet.frame.get(var);
            self.tracer.event(&Event::Write { var, old, new: &value }, loc);
        }
        self.packet.frame.set(var, value);
    }

    fn value(&self, operand: &'a Operand) -> &Bits {
        eval::operand(&self.packet.frame, operand)
    }

    fn values(&self, operands: &'a [Operand]) -> Vec<Bits> {
        operands.iter().map(|o| self.value(o).clone()).collect()
    }

    // -------------------------------------------------------------------------- the packet

    fn extract(&mut self, header: HeaderId, varbit_bits: Option<&'a Operand>, loc: Loc) -> Step {
        let program = self.program();
        let (instance, errors) = (&program.headers[header], &self.interpreter.errors);
        let ty = &program.header_types[instance.ty];
        let varbit = varbit_bits.map_or(0, |o| self.value(o).to_u64_saturating());
        let total = u64::from(ty.fixed_width()).saturating_add(varbit);
        if varbit_bits.is_some() && !total.is_multiple_of(8) {
            return Step::Fail(errors.parser_invalid_argument);
        }
        if total > self.packet.remaining_bits() as u64 {
            return Step::Fail(errors.packet_too_short);
        }
        let limit = ty.varbit_field().map_or(0, |i| ty.fields[i].ty.width());
        let Some(varbit) = u32::try_from(varbit).ok().filter(|&v| v <= limit) else {
            return Step::Fail(errors.header_too_short);
        };
        let mut at = self.packet.cursor;
        for (field, &var) in ty.fields.iter().zip(&instance.fields) {
            let width = match field.ty {
                Type::Bits(width) => width,
                Type::Varbit(_) => varbit,
            };
            let Some(value) = read_bits(&self.packet.bytes, at, width) else {
                return Step::Fail(errors.packet_too_short);
            };
            self.packet.frame.set(var, value);
            at += width as usize;
        }
        self.packet.cursor = at;
        self.packet.frame.set(instance.valid, Bits::bool(true));
        if self.tracer.enabled() {
            let event = Event::Extract {
                header,
                bits: total as usize,
                frame: &self.packet.frame,
            };
            self.tracer.event(&event, loc);
        }
        Step::Next
    }

    fn lookahead(&mut self, dst: VarId, offset: u32, loc: Loc) -> Step {
        let width = self.program().vars[dst].ty.width();
        let Some(value) = read_bits(
            &self.packet.bytes,
            self.packet.cursor.saturating_add(offset as usize),
            width,
        ) else {
            return Step::Fail(self.interpreter.errors.packet_too_short);
        };
        self.trace(|| Event::Lookahead { value: &value }, loc);
        self.write(dst, value, loc);
        Step::Next
    }

    fn advance(&mut self, bits: &'a Operand, loc: Loc) -> Step {
        let distance = self.value(bits).to_u64_saturating();
        if distance > self.packet.remaining_bits() as u64 {
            return Step::Fail(self.interpreter.errors.packet_too_short);
        }
        self.packet.cursor += distance as usize;
        self.trace(|| Event::Advance { bits: distance }, loc);
        Step::Next
    }

    fn emit(&mut self, header: HeaderId, loc: Loc) {
        let instance = &self.program().headers[header];
        if !self.packet.frame.is_set(instance.valid) {
            return;
        }
        let before = self.packet.output.len_bits();
        for &field in &instance.fields {
            self.packet.output.push(self.packet.frame.get(field));
        }
        let bits = self.packet.output.len_bits() - before;
        self.trace(|| Event::Emit { header, bits }, loc);
    }

    // -------------------------------------------------------------------------------- externs

    fn argument(&self, value: &'a ArgumentValue) -> ArgValue {
        let frame: &Frame = &self.packet.frame;
        match value {
            ArgumentValue::In(leaves) => ArgValue::In(
                leaves
                    .iter()
                    .map(|leaf| match leaf {
                        InLeaf::Value(operand) => InValue::Scalar(eval::operand(frame, operand).clone()),
                        InLeaf::Header(header) => {
                            let header = &self.program().headers[*header];
                            InValue::Header {
                                valid: frame.is_set(header.valid),
                                fields: header.fields.iter().map(|&f| frame.get(f).clone()).collect(),
                            }
                        }
                    })
                    .collect(),
            ),
            ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) => {
                ArgValue::Out(vars.iter().map(|&v| frame.get(v).clone()).collect())
            }
            ArgumentValue::String(_) | ArgumentValue::Extern(_) | ArgumentValue::Packet => ArgValue::Static,
        }
    }

    fn call(&mut self, call: &'a Call, site: crate::sites::SiteId, loc: Loc) -> Step {
        let mut args: Vec<ArgValue> = call.arguments.iter().map(|a| self.argument(&a.value)).collect();
        let before = if self.tracer.enabled() {
            args.clone()
        } else {
            Vec::new()
        };
        let mut results: Vec<Bits> = call
            .results
            .iter()
            .map(|&r| Bits::zero(self.program().vars[r].ty.width()))
            .collect();
        let entry = call.entry.map_or(0, |e| self.packet.frame.get_u64(e) as u32);
        let effect = self.runtime.call(CallContext {
            site,
            call,
            loc,
            args: &mut args,
            results: &mut results,
            entry,
            packet: self.packet,
            engine: &mut Methods {
                interpreter: self.interpreter,
                tracer: &mut *self.tracer,
            },
        });
        let aborted = effect != CallEffect::Continue;
        self.trace(
            || Event::Call {
                call,
                before: &before,
                after: &args,
                results: &results,
                aborted,
            },
            loc,
        );
        for (argument, value) in call.arguments.iter().zip(args) {
            if let (ArgumentValue::Out(vars) | ArgumentValue::InOut(vars), ArgValue::Out(values)) =
                (&argument.value, value)
            {
                for (&var, value) in vars.iter().zip(values) {
                    self.write(var, value, loc);
                }
            }
        }
        for (&var, value) in call.results.iter().zip(results) {
            self.write(var, value, loc);
        }
        match effect {
            CallEffect::Continue => Step::Next,
            CallEffect::Abort => Step::End(Outcome::Abort(Abort::Extern(loc))),
            CallEffect::Drop => Step::End(Outcome::Abort(Abort::DroppedByExtern(loc))),
        }
    }

    // ---------------------------------------------------------------------------- terminators

    fn terminator(&mut self, terminator: &'a Terminator, loc: Loc) -> Result<BlockId, Outcome> {
        match terminator {
            Terminator::Goto(next) => Ok(*next),
            Terminator::Branch {
                condition,
                then,
                otherwise,
            } => {
                let taken = !self.value(condition).is_zero();
                // A branch without a place is the compiler's own.
                if loc.line > 0 {
                    self.trace(|| Event::Branch { taken }, loc);
                }
                Ok(if taken { *then } else { *otherwise })
            }
            Terminator::Switch { value, cases, default } => {
                let told = !matches!(value, Operand::Var(v) if self.interpreter.action_vars.contains(v));
                let value = self.value(value).clone();
                let case = cases.iter().position(|(constant, _)| *constant == value);
                if told {
                    self.trace(|| Event::Switch { value: &value, case }, loc);
                }
                Ok(case.map_or(*default, |i| cases[i].1))
            }
            Terminator::Select { keys, cases, default } => {
                let keys = self.values(keys);
                let case = cases.iter().position(|c| self.selects(c, &keys));
                let loc = case.map_or(loc, |i| cases[i].loc);
                self.trace(
                    || Event::Select {
                        keys: &keys,
                        case,
                        cases: cases.len(),
                    },
                    loc,
                );
                Ok(case.map_or(*default, |i| cases[i].target))
            }
            Terminator::Lookup(lookup) => {
                self.lookup(lookup, loc);
                Ok(lookup.next)
            }
            Terminator::Accept => Err(Outcome::Accept),
            Terminator::Reject => {
                let error = self.body.error.map_or(0, |e| self.packet.frame.get_u64(e) as u32);
                Err(Outcome::Reject(error))
            }
            Terminator::Return => Err(Outcome::Return),
            // Only pipelines have these, and this engine runs blocks.
            Terminator::Exit(_) | Terminator::Suspend(_) => Err(Outcome::Abort(Abort::NoSuchBody)),
        }
    }

    /// Whether a case of a select matches. A value set stands for as many keys as it has fields.
    fn selects(&mut self, case: &'a SelectCase, keys: &[Bits]) -> bool {
        let mut at = 0;
        for pattern in &case.patterns {
            if let Pattern::ValueSet(set) = pattern {
                let end = at + self.program().value_sets[*set].fields.len();
                let Some(members) = keys.get(at..end) else {
                    return false;
                };
                if !self.runtime.value_set_contains(*set, members) {
                    return false;
                }
                at = end;
                continue;
            }
            // A pattern without key: padding after a value set.
            let Some(key) = keys.get(at) else { continue };
            let matches = match pattern {
                Pattern::Any | Pattern::ValueSet(_) => true,
                Pattern::Exact(value) => self.value(value) == key,
                Pattern::Mask(value, mask) => {
                    let mask = self.value(mask);
                    key.and(mask) == self.value(value).and(mask)
                }
                Pattern::Range(low, high, signed) => {
                    let (low, high) = (self.value(low), self.value(high));
                    if *signed {
                        low.cmp_signed(key).is_le() && key.cmp_signed(high).is_le()
                    } else {
                        low.cmp_unsigned(key).is_le() && key.cmp_unsigned(high).is_le()
                    }
                }
            };
            if !matches {
                return false;
            }
            at += 1;
        }
        true
    }

    fn lookup(&mut self, lookup: &'a Lookup, loc: Loc) {
        let keys = self.values(&lookup.keys);
        let outcome = self.runtime.lookup(lookup.table, &keys);
        if self.tracer.enabled() {
            let detail: LookupDetail = self.runtime.describe(lookup.table, &keys, &outcome);
            let event = Event::Lookup {
                table: lookup.table,
                keys: &keys,
                outcome: &outcome,
                detail: &detail,
            };
            self.tracer.event(&event, loc);
        }
        let frame = &mut self.packet.frame;
        frame.set(lookup.hit, Bits::bool(outcome.hit));
        frame.set_u64(lookup.action, outcome.action as u64);
        frame.set_u64(lookup.entry, outcome.entry.into());
        let table = &self.interpreter.program.tables[lookup.table];
        if let Some(action) = table.actions.get(outcome.action) {
            for (&var, value) in action.parameters.iter().zip(outcome.arguments.iter()) {
                self.packet.frame.set_resized(var, value);
            }
        }
    }
}
