//! Registers and the operations on their cells: reads, writes, and the program's register actions.

use super::externs::{ExternOp, IndexSource, PartsExtremum, named};
use super::runtime::TnaRuntime;
use crate::error::{LoadError, place};
use crate::load::{self, HANDLES, argument};
use crate::register::{Progress, RegisterArray};
use crate::state::{Resource, scalars};
use std::collections::HashMap;
use std::sync::Arc;
use weir_interp::{ArgValue, CallContext, CallEffect, Frame, Outcome};
use weir_ir::pipeline::FlatCells;
use weir_ir::{Bits, Call, ConstValue, ExternId, ExternInstance, InstKind, Loc, Program, VarId};

/// Which cell a register action works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    /// The one that an argument or the entry says.
    At(IndexSource),
    /// The next one each time.
    Log,
    Enqueue,
    Dequeue,
    Push,
    Pop,
    /// All, one after the other.
    Sweep,
}

/// A call of `execute` or its like.
#[derive(Debug, Clone)]
pub(crate) struct RegisterCall {
    pub action: ExternId,
    pub register: ExternId,
    /// The cell that the action accesses, or all.
    pub cell_index: Cell,
    /// Cells that the action sees as one value.
    pub cell_count: u64,
    pub body: Body,
    /// The body that runs if the queue or stack is full or empty.
    otherwise: Option<Body>,
    /// Positions of the arguments for the second result and on, where they are given.
    pub results: Vec<Option<usize>>,
}

impl RegisterCall {
    /// Indices of the bodies that the call may run, in the methods of the action.
    pub fn methods(&self) -> impl Iterator<Item = usize> + '_ {
        std::iter::once(&self.body).chain(&self.otherwise).map(|b| b.method)
    }
}

/// A method that the program has given.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub method: usize,
    /// Variables of the parameter that is the cell's value: read before, and written back.
    pub value_variables: Vec<VarId>,
    /// Variables of its results.
    pub results: Vec<Vec<VarId>>,
}

/// The kind of a register action's extern type. If an action accesses several cells, their width
/// decides how many.
enum Kind {
    Register,
    MinMax,
    /// Its cells are the members of a selector: whether they take part in choices.
    Selector,
}

fn kind(type_name: &str) -> Option<Kind> {
    let name = type_name.trim_end_matches(['2', '3', '4']);
    match name {
        "RegisterAction" | "DirectRegisterAction" => Some(Kind::Register),
        "MinMaxAction" => Some(Kind::MinMax),
        "SelectorAction" => Some(Kind::Selector),
        _ => None,
    }
}

/// The state of a register.
pub(crate) fn array(program: &Program, instance: &ExternInstance) -> Resource {
    let size = match instance.type_name.as_str() {
        "Register" => load::number(argument(instance, "size", 0)),
        "DirectRegister" => HANDLES,
        _ => 1,
    };
    let ty = instance.type_arguments.first().cloned().unwrap_or_default();
    let initial = argument(instance, "initial_value", usize::MAX);
    load::register(program, &ty, size, initial)
}

/// The place of a scalar in a register's flat array of cells, for accesses by compiled code.
/// `None`: the cells are not flat, and code calls the host.
pub(crate) fn flat_cells(program: &Program, instance: &ExternInstance, scalar: usize) -> Option<FlatCells> {
    match array(program, instance) {
        Resource::Register(register) => register.flat(scalar),
        _ => None,
    }
}

pub(crate) fn widths(instance: &ExternInstance) -> Vec<u32> {
    let ty = instance.type_arguments.first().cloned().unwrap_or_default();
    scalars(&ty, "").into_iter().map(|(_, w)| w).collect()
}

/// The register, or the selector, that an action works on.
pub(super) fn register_of(instance: &ExternInstance) -> Option<ExternId> {
    match argument(instance, "reg", usize::MAX).or_else(|| argument(instance, "sel", usize::MAX)) {
        Some(ConstValue::Extern(register)) => Some(*register),
        _ => None,
    }
}

/// Whether an action fits its register.
pub(crate) fn check(program: &Program, instance: &ExternInstance) -> Result<(), LoadError> {
    let Some(kind) = kind(&instance.type_name) else {
        return Ok(());
    };
    let refused = |problem: String| LoadError::BadExtern {
        problem,
        place: place(program, instance.loc),
    };
    if let Some(loc) = executes_itself(program, instance) {
        return Err(LoadError::BadExtern {
            problem: format!("`{}` executes itself", instance.name),
            place: place(program, loc),
        });
    }
    let Some(register) = register_of(instance).and_then(|id| program.externs.get(id)) else {
        return Err(refused(format!("`{}` has no register to act on", instance.name)));
    };
    let cells = widths(register);
    let values: Vec<u32> = match kind {
        Kind::Selector => return Ok(()),
        Kind::Register => widths(instance),
        Kind::MinMax => {
            let fits = matches!(cells.as_slice(), [w] if (1..=128).contains(w) && 128 % w == 0);
            return if fits {
                Ok(())
            } else {
                Err(refused(format!(
                    "`{}` sees 128 bits at once; the cells of `{}` have {cells:?} bits",
                    instance.name, register.name
                )))
            };
        }
    };
    if values == cells || cells_of(&values, &cells).is_some() || is_low_part(&values, &cells) {
        return Ok(());
    }
    Err(refused(format!(
        "`{}` acts on values of {values:?} bits, which are not made of whole cells of `{}`: they have {cells:?}",
        instance.name, register.name
    )))
}

/// Methods of an action that run its bodies.
const RUNNING: [&str; 7] = ["execute", "execute_log", "enqueue", "dequeue", "push", "pop", "sweep"];

/// How deeply actions may execute each other, and to how many instructions that may come.
const MAX_DEPTH: u32 = 256;
const MAX_INSTRUCTIONS: u64 = 1_000_000;

/// Whether the actions that execute each other come to an end soon.
pub(crate) fn check_nesting(program: &Program) -> Result<(), LoadError> {
    // Of each action, by its number: how deep it is, and its instructions with those of the actions
    // that it executes.
    let mut known: HashMap<ExternId, (u32, u64)> = HashMap::new();
    for (id, instance) in program.externs.iter() {
        let (mut depth, mut instructions) = (1, 0u64);
        let blocks = instance.methods.iter().flat_map(|m| m.body.blocks.iter());
        for inst in blocks.flat_map(|(_, block)| &block.insts) {
            let InstKind::Call(call) = &inst.kind else { continue };
            let callee = call.instance.and_then(|callee| known.get(&callee));
            if let Some((below, more)) = callee.filter(|_| RUNNING.contains(&call.function.as_str())) {
                depth = depth.max(below + 1);
                instructions = instructions.saturating_add(*more);
            }
        }
        if instance.methods.is_empty() {
            continue;
        }
        let blocks = instance.methods.iter().flat_map(|m| m.body.blocks.iter());
        let own: usize = blocks.map(|(_, block)| block.insts.len() + 1).sum();
        instructions = instructions.saturating_add(own as u64);
        if depth > MAX_DEPTH || instructions > MAX_INSTRUCTIONS {
            return Err(LoadError::BadExtern {
                problem: format!(
                    "`{}` executes actions that execute others, {depth} deep, which comes to {instructions} instructions for a packet; at \
                     most {MAX_DEPTH} deep and {MAX_INSTRUCTIONS} instructions can be run",
                    instance.name
                ),
                place: place(program, instance.loc),
            });
        }
        known.insert(id, (depth, instructions));
    }
    Ok(())
}

/// Where an action executes itself. Others that would execute it are declared after it, so that it
/// cannot name them.
fn executes_itself(program: &Program, instance: &ExternInstance) -> Option<Loc> {
    let blocks = instance.methods.iter().flat_map(|m| m.body.blocks.iter());
    let insts = blocks.flat_map(|(_, block)| &block.insts);
    insts
        .filter_map(|inst| match &inst.kind {
            InstKind::Call(call) => Some((call, inst.loc)),
            _ => None,
        })
        .find(|(call, _)| {
            let callee = call.instance.and_then(|id| program.externs.get(id));
            callee.is_some_and(|c| std::ptr::eq(c, instance)) && RUNNING.contains(&call.function.as_str())
        })
        .map(|(_, loc)| loc)
}

/// How many cells of one scalar a value takes, whose scalars all are made of whole cells.
fn cells_of(values: &[u32], cells: &[u32]) -> Option<u64> {
    let &[cell] = cells else { return None };
    let is_whole = cell > 0 && values.iter().all(|v| *v > 0 && v % cell == 0);
    (is_whole && !values.is_empty()).then(|| u64::from(values.iter().sum::<u32>() / cell))
}

/// Whether an action sees the low bits of cells of one scalar. It leaves the others as they are.
fn is_low_part(values: &[u32], cells: &[u32]) -> bool {
    matches!((values, cells), ([value], [cell]) if (1..*cell).contains(value))
}

/// The operation of a method of a register or of a register action.
pub(crate) fn method(program: &Program, id: ExternId, call: &Call, loc: Loc) -> Result<Option<ExternOp>, LoadError> {
    let instance = &program.externs[id];
    let name = call.function.as_str();
    let is_direct = instance.type_name.starts_with("Direct");
    let index_source = match named(call, "index") {
        Some(index) if !is_direct => IndexSource::Argument(index),
        _ => IndexSource::Entry,
    };
    if matches!(instance.type_name.as_str(), "Register" | "DirectRegister") {
        let value = named(call, "value").unwrap_or(0);
        return Ok(match name {
            "read" => Some(ExternOp::Read { id, index_source }),
            "write" => Some(ExternOp::Write {
                id,
                index_source,
                value,
            }),
            "clear" => Some(ExternOp::Clear(id)),
            _ => None,
        });
    }
    let Some(kind) = kind(&instance.type_name) else {
        return Ok(None);
    };
    let extremum = |is_max, width| {
        ExternOp::PartsExtremum(PartsExtremum {
            is_max,
            width,
            index: named(call, "index"),
            postmod: named(call, "postmod"),
        })
    };
    let cell = match name {
        "execute" => Cell::At(index_source),
        "execute_log" => Cell::Log,
        "enqueue" => Cell::Enqueue,
        "dequeue" => Cell::Dequeue,
        "push" => Cell::Push,
        "pop" => Cell::Pop,
        "sweep" => Cell::Sweep,
        "predicate" => {
            let comparison = |names: [&str; 2]| names.iter().find_map(|name| named(call, name));
            let all = [["cmplo", "cmp0"], ["cmphi", "cmp1"], ["cmp2", ""], ["cmp3", ""]];
            return Ok(Some(ExternOp::Predicate(all.map(comparison))));
        }
        "address" if call.arguments.is_empty() => return Ok(Some(ExternOp::Address)),
        "min8" => return Ok(Some(extremum(false, 8))),
        "max8" => return Ok(Some(extremum(true, 8))),
        "min16" => return Ok(Some(extremum(false, 16))),
        "max16" => return Ok(Some(extremum(true, 16))),
        _ => return Ok(None),
    };
    let refused = |problem: String| LoadError::BadExtern {
        problem,
        place: place(program, loc),
    };
    let Some(register) = register_of(instance) else {
        // The instance was refused already.
        return Ok(Some(ExternOp::Priority));
    };
    if matches!(cell, Cell::At(IndexSource::Entry)) && !is_direct {
        return Err(refused(format!("`{}` needs an index here", instance.name)));
    }
    let Some(body) = Body::new(instance, call, "apply", 0) else {
        return Err(refused(format!("`{}` has no `apply`", instance.name)));
    };
    let parameters = 1 + body.results.len();
    let otherwise = match cell {
        Cell::Enqueue | Cell::Push => Body::new(instance, call, "overflow", parameters),
        Cell::Dequeue | Cell::Pop => Body::new(instance, call, "underflow", parameters),
        _ => None,
    };
    let cells = match kind {
        Kind::Register => cells_of(&widths(instance), &widths(&program.externs[register])).unwrap_or(1),
        Kind::Selector => 1,
        Kind::MinMax => u64::from(128 / widths(&program.externs[register]).iter().sum::<u32>().max(1)).max(1),
    };
    Ok(Some(ExternOp::Register(Arc::new(RegisterCall {
        action: id,
        register,
        cell_index: cell,
        cell_count: cells,
        body,
        otherwise,
        results: ["rv2", "rv3", "rv4"].map(|name| named(call, name)).to_vec(),
    }))))
}

impl Body {
    /// The method of this name in the closure of the call. One with fewer than `with_value`
    /// parameters omits the first, the cell's value.
    fn new(instance: &ExternInstance, call: &Call, name: &str, with_value: usize) -> Option<Self> {
        let method = instance.method(name, call.closure)?;
        let parameters = &instance.methods[method].parameters;
        let has_value = parameters.len() >= with_value;
        let mut parameters = parameters.iter().map(|(_, vars)| vars.clone());
        Some(Body {
            method,
            value_variables: if has_value {
                parameters.next().unwrap_or_default()
            } else {
                Vec::new()
            },
            results: parameters.collect(),
        })
    }
}

/// The cells of a register that an index names.
fn range(index: u64, cells: u64) -> std::ops::Range<u64> {
    let first = index.saturating_mul(cells);
    first..first.saturating_add(cells)
}

/// The values that an action reads from its cells: the scalars of one cell; of several cells, their
/// concatenation split into these widths, with the first cell as the lowest part of the first
/// value.
fn read(register: &RegisterArray, index: u64, cells: u64, values: &[u32]) -> Option<Vec<Bits>> {
    if cells == 1 {
        return register.read(index);
    }
    let mut all = Bits::zero(0);
    for cell in range(index, cells) {
        all = register.read(cell)?.first()?.concat(&all);
    }
    let mut bit_offset = 0;
    let parts = values.iter().map(|&width| {
        let part = all.shr(bit_offset).zero_extend(width);
        bit_offset += u64::from(width);
        part
    });
    Some(parts.collect())
}

fn write(register: &mut RegisterArray, index: u64, cells: u64, values: &[Bits]) {
    if cells == 1 {
        let before = register.read(index).unwrap_or_default();
        let whole = before.iter().zip(values).map(|(old, new)| {
            let (old_width, new_width) = (old.width(), new.width());
            if new_width < old_width {
                old.slice(old_width - 1, new_width).concat(new)
            } else {
                new.clone()
            }
        });
        register.write(index, &whole.collect::<Vec<_>>());
        return;
    }
    let width = register.widths.iter().sum::<u32>();
    let all = values.iter().fold(Bits::zero(0), |all, value| value.concat(&all));
    for (position, cell) in range(index, cells).enumerate() {
        let part = all.shr(position as u64 * u64::from(width)).zero_extend(width);
        register.write(cell, &[part]);
    }
}

/// Whether the queue or stack of an array has room, or something in it.
fn is_possible(cell: Cell, progress: &Progress, size: u64) -> bool {
    match cell {
        Cell::Enqueue | Cell::Push => progress.length < size,
        Cell::Dequeue | Cell::Pop => progress.length > 0,
        Cell::At(_) | Cell::Log | Cell::Sweep => true,
    }
}

/// The cell of a log, queue or stack, and how far that is then.
fn step(cell: Cell, progress: &mut Progress, size: u64) -> u64 {
    let size = size.max(1);
    match cell {
        Cell::Log => {
            let index = progress.log % size;
            progress.log = (index + 1) % size;
            index
        }
        Cell::Enqueue => {
            progress.length += 1;
            (progress.first + progress.length - 1) % size
        }
        Cell::Dequeue => {
            let index = progress.first % size;
            progress.first = (index + 1) % size;
            progress.length -= 1;
            index
        }
        Cell::Push => {
            progress.length += 1;
            (progress.first + progress.length - 1) % size
        }
        Cell::Pop => {
            progress.length -= 1;
            (progress.first + progress.length) % size
        }
        Cell::At(_) | Cell::Sweep => 0,
    }
}

fn set_all(frame: &mut Frame, vars: &[VarId], values: &[Bits]) {
    for (var, value) in vars.iter().zip(values) {
        frame.set_resized(*var, value);
    }
}

impl TnaRuntime<'_> {
    /// Reads a cell into the results; beyond the end they stay zero.
    pub(super) fn read(&self, id: ExternId, index: u64, context: &mut CallContext<'_>) {
        let cell = self.service.register_read(id, index).unwrap_or_default();
        for (slot, value) in context.results.iter_mut().zip(&cell) {
            *slot = value.zero_extend(slot.width());
        }
    }

    /// Sets all cells to the first argument.
    pub(super) fn fill(&mut self, id: ExternId, context: &CallContext<'_>) {
        let values: Vec<Bits> = context
            .args
            .first()
            .map_or(Vec::new(), |a| a.scalars().cloned().collect());
        if let Some(Resource::Register(register)) = self.service.state.resource_mut(id) {
            register.fill(&values);
        }
    }

    /// Runs an action on the cell, or on each, that the call is about. Where it does not run, its
    /// results are zero.
    pub(super) fn register(&mut self, call: &RegisterCall, context: &mut CallContext<'_>) -> CallEffect {
        for slot in &mut *context.results {
            *slot = Bits::zero(slot.width());
        }
        for argument in call.results.iter().flatten() {
            if let Some(ArgValue::Out(values)) = context.args.get_mut(*argument) {
                values.iter_mut().for_each(|slot| *slot = Bits::zero(slot.width()));
            }
        }
        if let (Resource::Profile(..), Cell::At(index_source)) =
            (self.service.state.resource(call.register), call.cell_index)
        {
            return self.member(call, cell_index(index_source, context), context);
        }
        let Some(Resource::Register(register)) = self.service.state.resource_mut(call.register) else {
            return CallEffect::Continue;
        };
        let size = register.cells.size() / call.cell_count.max(1);
        if call.cell_index == Cell::Sweep {
            for index in 0..size {
                if self.execute(call, index, context) == CallEffect::Abort {
                    return CallEffect::Abort;
                }
            }
            return CallEffect::Continue;
        }
        let progress = &mut register.progress;
        if !is_possible(call.cell_index, progress, size) {
            return match &call.otherwise {
                Some(body) => self.run_body(call, body, None, context).1,
                None => CallEffect::Continue,
            };
        }
        let index = match call.cell_index {
            Cell::At(index_source) => cell_index(index_source, context),
            other => step(other, progress, size),
        };
        self.execute(call, index, context)
    }

    /// Runs an action on whether a member of a selector takes part in choices; nothing for one that
    /// is in no group.
    fn member(&mut self, call: &RegisterCall, member: u64, context: &mut CallContext<'_>) -> CallEffect {
        let profile = self.service.state.profile(call.register);
        let id = u32::try_from(member).ok();
        let Some((id, before)) = id.and_then(|id| Some((id, profile?.is_member_enabled(id)?))) else {
            return CallEffect::Continue;
        };
        let (changed, effect) = self.run_body(call, &call.body, Some(&[Bits::bool(before)]), context);
        if let (Some(value), Some(Resource::Profile(profile, _))) =
            (changed.first(), self.service.state.resource_mut(call.register))
        {
            profile.set_member_enabled(id, value.to_u64() == Some(1));
        }
        effect
    }

    /// Reads, runs `apply`, writes back. Beyond the end nothing happens, and results stay zero.
    fn execute(&mut self, call: &RegisterCall, index: u64, context: &mut CallContext<'_>) -> CallEffect {
        let array = match self.service.state.resource(call.register) {
            Resource::Register(register) => register,
            _ => return CallEffect::Continue,
        };
        let vars = &self.arch.program().vars;
        let values: Vec<u32> = call.body.value_variables.iter().map(|v| vars[*v].ty.width()).collect();
        let Some(value) = read(array, index, call.cell_count, &values) else {
            return CallEffect::Continue;
        };
        self.indices.push(index);
        let (changed, effect) = self.run_body(call, &call.body, Some(&value), context);
        self.indices.pop();
        if let Some(Resource::Register(register)) = self.service.state.resource_mut(call.register) {
            write(register, index, call.cell_count, &changed);
        }
        effect
    }

    /// Runs a method on a value, and hands out its results; gives what the value is then.
    fn run_body(
        &mut self,
        call: &RegisterCall,
        body: &Body,
        value: Option<&[Bits]>,
        context: &mut CallContext<'_>,
    ) -> (Vec<Bits>, CallEffect) {
        let frame = &mut context.packet.frame;
        for var in body.value_variables.iter().chain(body.results.iter().flatten()) {
            frame.set_u64(*var, 0);
        }
        set_all(frame, &body.value_variables, value.unwrap_or_default());
        let outcome = context
            .engine
            .run_method(call.action, body.method, context.packet, self);
        let frame = &context.packet.frame;
        let changed = body.value_variables.iter().map(|v| frame.get(*v).clone()).collect();
        if let Some(vars) = body.results.first() {
            for (slot, var) in context.results.iter_mut().zip(vars) {
                *slot = frame.get(*var).zero_extend(slot.width());
            }
        }
        for (argument, vars) in call.results.iter().zip(body.results.iter().skip(1)) {
            if let Some(ArgValue::Out(values)) = argument.and_then(|a| context.args.get_mut(a)) {
                for (slot, var) in values.iter_mut().zip(vars) {
                    *slot = frame.get(*var).zero_extend(slot.width());
                }
            }
        }
        match outcome {
            Outcome::Abort(_) => (changed, CallEffect::Abort),
            Outcome::Accept | Outcome::Reject(_) | Outcome::Return => (changed, CallEffect::Continue),
        }
    }

    /// The least or greatest part of a value, of those that a mask names.
    pub(super) fn extremum(&self, op: PartsExtremum, context: &mut CallContext<'_>) {
        let value = context.scalar(0).cloned().unwrap_or(Bits::zero(0));
        let mask = context.number(1);
        let parts = (128 / op.width) as u64;
        let part = |part_index: u64| {
            value
                .zero_extend(128)
                .shr(part_index * u64::from(op.width))
                .zero_extend(op.width)
        };
        let named = (0..parts).filter(|part_index| mask >> part_index & 1 == 1);
        let found = if op.is_max {
            // Of equal ones the first.
            named.rev().max_by(|a, b| part(*a).cmp_unsigned(&part(*b)))
        } else {
            named.min_by(|a, b| part(*a).cmp_unsigned(&part(*b)))
        };
        let Some(part_index) = found else { return };
        super::runtime::give(context, &part(part_index));
        let moved = op
            .postmod
            .and_then(|a| context.scalar(a))
            .map_or(Bits::zero(64), |m| m.sign_extend(64));
        if let Some(index) = op.index {
            context.set(index, &Bits::new(64, part_index.into()).add(&moved));
        }
    }
}

/// The index of a call.
pub(super) fn cell_index(index_source: IndexSource, context: &CallContext<'_>) -> u64 {
    match index_source {
        IndexSource::Argument(argument) => context.number(argument),
        IndexSource::Entry => context.entry.into(),
    }
}
