//! Inlines register actions: read the cell, execute the action's method, write the cell.
//!
//! Cells have the layout of [`weir_ir::pipeline::FlatCells`]. Actions that access more than one
//! cell, or scalars of more than 64 bits, are not inlined (`interp_fallback`).

use super::super::externs::IndexSource;
use super::super::registers::{Cell, RegisterCall, widths};
use super::Builder;
use crate::cells::Cells;
use crate::load::{argument, number};
use crate::pipeline_builder::{AppendCode, constant};
use std::sync::Arc;
use weir_ir::{
    Argument, ArgumentValue, BinaryOp, Bits, Call, ExternId, InLeaf, InstKind, Loc, Operand, Rvalue, Terminator, VarId,
};

/// The function of calls that read a scalar of a register's cell.
pub(super) const READ: &str = "$read";
/// The function of calls that write a scalar of a register's cell.
pub(super) const WRITE: &str = "$write";

/// The most actions that are inlined within each other.
const MAX_NESTED: usize = 32;
/// The most actions that are inlined in a pipeline. It bounds code size.
const MAX_INLINED: usize = 1024;

/// An input argument of one scalar.
fn leaf(operand: Operand) -> ArgumentValue {
    ArgumentValue::In(vec![InLeaf::Value(operand)])
}

/// A call of [`READ`] or [`WRITE`]. Its arguments are the cell's index, the value if it writes, and
/// the scalar's number.
fn access_scalar(
    function: &str,
    register: ExternId,
    index: &Operand,
    value: Option<Operand>,
    scalar: usize,
    results: Vec<VarId>,
) -> InstKind {
    let operands = std::iter::once(index.clone())
        .chain(value)
        .chain([constant(32, scalar as u64)]);
    let arguments = operands.map(|operand| Argument {
        name: "data".to_owned(),
        value: leaf(operand),
    });
    InstKind::Call(Call {
        instance: Some(register),
        function: function.to_owned(),
        type_arguments: Vec::new(),
        arguments: arguments.collect(),
        results,
        entry: None,
        closure: 0,
        is_pure: false,
        calculation: None,
        execution: weir_ir::Execution::Inline,
    })
}

impl Builder<'_> {
    /// The variables that receive an action's results: of its return value, then of its outputs.
    pub(super) fn result_variables(&self, action: &RegisterCall, call: &Call) -> Vec<Vec<VarId>> {
        let others = action.results.iter();
        let others = others.map(|argument| argument.map_or(Vec::new(), |argument| call.outputs(argument).to_vec()));
        std::iter::once(call.results.clone()).chain(others).collect()
    }

    /// Whether an action accesses one cell of a register, whose scalars fit into words.
    fn accesses_one_cell(&self, action: &RegisterCall) -> bool {
        let type_name = self.program.externs[action.register].type_name.as_str();
        let is_register = matches!(type_name, "Register" | "DirectRegister");
        let is_narrow = || widths(&self.program.externs[action.register]).iter().all(|w| *w <= 64);
        is_register && action.cell_count == 1 && matches!(action.cell_index, Cell::At(_)) && is_narrow()
    }

    /// Appends a register action, inlined or outlined.
    pub(super) fn register(&mut self, action: &Arc<RegisterCall>, call: &Call, loc: Loc) -> Option<()> {
        let index = match action.cell_index {
            _ if !self.accesses_one_cell(action) => return self.interp_fallback(action, call, loc),
            Cell::At(IndexSource::Argument(argument)) => call.input(argument)?.clone(),
            _ => call.entry.map_or_else(|| constant(32, 0), Operand::Var),
        };
        if self.register_indices.len() >= MAX_NESTED || self.inlined_actions >= MAX_INLINED {
            self.refuse(
                loc,
                "register actions that execute each other so deeply, or so often, have no compiled form here",
            );
            return None;
        }
        self.inlined_actions += 1;
        // Arguments are copied before the call and results after it. The method may read or write
        // the variables of the index and of the results.
        let index = match index {
            Operand::Var(var) => {
                let width = self.width(var);
                Operand::Var(self.compute(width, Rvalue::Use(Operand::Var(var))))
            }
            constant @ Operand::Const(_) => constant,
        };
        let results = self.result_variables(action, call);
        let join = self.guard_index(action, &index, &results);
        let body = &action.body;
        self.register_indices.push(index.clone());
        let cells = self.read_scalars(action.register, &index, &body.value_variables, loc);
        for var in body.results.iter().flatten() {
            self.set(Some(*var), 0);
        }
        let program = Arc::clone(self.arch.program());
        self.append_body(&program.externs[action.action].methods[body.method].body);
        self.register_indices.pop();
        for (scalar, (value, cell)) in body.value_variables.iter().zip(cells).enumerate() {
            if cell != *value {
                let (base, hi) = (Operand::Var(cell), self.width(*value) - 1);
                let value = Operand::Var(*value);
                self.assign(cell, Rvalue::Insert { base, hi, lo: 0, value });
            }
            let value = Some(Operand::Var(cell));
            let write = access_scalar(WRITE, action.register, &index, value, scalar, Vec::new());
            self.push(write, loc);
        }
        for (position, to) in results.iter().enumerate() {
            let given = body.results.get(position).map_or(&[][..], Vec::as_slice);
            for (part, to) in to.iter().enumerate() {
                match given.get(part) {
                    Some(from) => self.copy(Some(*to), *from),
                    None => self.set(Some(*to), 0),
                }
            }
        }
        if let Some(join) = join {
            self.terminate(Terminator::Goto(join));
            self.cursor = join;
        }
        Some(())
    }

    /// Reads the scalars of a cell, or their low bits where the variables are narrower. Returns the
    /// variables that hold the whole scalars.
    fn read_scalars(&mut self, register: ExternId, index: &Operand, to: &[VarId], loc: Loc) -> Vec<VarId> {
        let widths = widths(&self.program.externs[register]);
        let narrow: Vec<bool> = to.iter().zip(&widths).map(|(v, w)| self.width(*v) < *w).collect();
        let mut cells = Vec::new();
        for ((var, width), is_narrow) in to.iter().zip(widths).zip(&narrow) {
            cells.push(if *is_narrow { self.temporary(width) } else { *var });
        }
        self.read_cells(register, index, &cells, loc);
        for (var, cell) in to.iter().zip(&cells).filter(|(var, cell)| var != cell) {
            let (value, hi) = (Operand::Var(*cell), self.width(*var) - 1);
            self.assign(*var, Rvalue::Slice { value, hi, lo: 0 });
        }
        cells
    }

    /// Reads the scalars of a cell.
    pub(super) fn read_cells(&mut self, register: ExternId, index: &Operand, to: &[VarId], loc: Loc) {
        for (scalar, var) in to.iter().enumerate() {
            let read = access_scalar(READ, register, index, None, scalar, vec![*var]);
            self.push(read, loc);
        }
    }

    /// Guards an index that may be out of bounds: out of bounds, the results are zero. The cursor
    /// moves to the basic block in bounds; returns the basic block where both paths join.
    fn guard_index(
        &mut self,
        action: &RegisterCall,
        index: &Operand,
        results: &[Vec<VarId>],
    ) -> Option<weir_ir::BlockId> {
        let instance = &self.program.externs[action.register];
        let size = match instance.type_name.as_str() {
            "Register" => Cells::<()>::new(number(argument(instance, "size", 0))).size(),
            _ => return None,
        };
        let width = match index {
            Operand::Var(var) => self.width(*var),
            Operand::Const(value) => value.width(),
        };
        if width < 64 && size >= 1 << width {
            return None;
        }
        let is_inside = self.temporary(1);
        let end = Operand::Const(Bits::new(width, size.into()));
        self.assign(is_inside, Rvalue::Binary(BinaryOp::Lt, index.clone(), end));
        let join = self.new_basic_block();
        let out_of_bounds = self.branch(Operand::Var(is_inside));
        let in_bounds = self.cursor;
        self.cursor = out_of_bounds;
        for var in results.iter().flatten() {
            self.set(Some(*var), 0);
        }
        self.terminate(Terminator::Goto(join));
        self.cursor = in_bounds;
        Some(join)
    }
}
