//! Register actions: the cell is read and written by the host, what the action does to it is code.

use super::super::externs::At;
use super::super::registers::{Cell, RegisterCall};
use super::Builder;
use crate::cells::Cells;
use crate::load::{argument, number};
use crate::weave::{Weave, constant};
use weir_ir::{
    Argument, ArgumentValue, BinaryOp, Bits, Call, InLeaf, InstKind, Loc, Operand, Rvalue, Terminator, Type, VarId,
};

/// Calls that stand for reads and writes of a register's cell.
pub(super) const READ: &str = "$read";
pub(super) const WRITE: &str = "$write";

fn leaf(operand: Operand) -> ArgumentValue {
    ArgumentValue::In(vec![InLeaf::Value(operand)])
}

fn argument_of(value: ArgumentValue) -> Argument {
    Argument {
        name: "data".to_owned(),
        value,
    }
}

impl Builder<'_> {
    /// Reads the cell, does what the action says, writes it back; `None` where that needs more than one cell.
    pub(super) fn register(&mut self, action: &RegisterCall, call: &Call, loc: Loc) -> Option<()> {
        let index = match action.cell {
            Cell::At(At::Argument(at)) if action.cells == 1 => call.input(at)?.clone(),
            Cell::At(At::Entry) if action.cells == 1 => call.entry.map_or_else(|| constant(32, 0), Operand::Var),
            _ => return None,
        };
        let mut results = vec![call.results.clone()];
        let others = action.results.iter();
        results.extend(others.map(|at| at.map_or(Vec::new(), |at| call.outputs(at).to_vec())));
        for var in results.iter().flatten() {
            self.set(Some(*var), 0);
        }
        let beyond = self.leave_beyond(action, &index);
        let body = &action.body;
        let wide = |var: &VarId| matches!(self.program.vars[*var].ty, Type::Bits(width) if width <= 64);
        if !body.value.iter().all(wide) {
            return None;
        }
        let reach = |function: &str, values: Option<ArgumentValue>, results: Vec<VarId>| {
            let arguments = std::iter::once(leaf(index.clone())).chain(values);
            InstKind::Call(Call {
                instance: Some(action.register),
                function: function.to_owned(),
                type_arguments: Vec::new(),
                arguments: arguments.map(argument_of).collect(),
                results,
                entry: None,
                is_pure: false,
            })
        };
        self.push(reach(READ, None, body.value.clone()), loc);
        for var in body.results.iter().flatten() {
            self.set(Some(*var), 0);
        }
        let program = std::sync::Arc::clone(self.arch.program());
        self.append_body(&program.externs[action.action].methods[body.method].body);
        let values = body.value.iter().map(|v| InLeaf::Value(Operand::Var(*v)));
        self.push(reach(WRITE, Some(ArgumentValue::In(values.collect())), Vec::new()), loc);
        for (to, from) in results.iter().zip(&body.results) {
            for (to, from) in to.iter().zip(from) {
                self.copy(Some(*to), *from);
            }
        }
        if let Some(join) = beyond {
            self.end(Terminator::Goto(join));
            self.at = join;
        }
        Some(())
    }

    /// Where the index may be beyond the register's end, goes on only where it is not; gives where both ways meet.
    fn leave_beyond(&mut self, action: &RegisterCall, index: &Operand) -> Option<weir_ir::BlockId> {
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
        let join = self.block();
        let outside = self.branch(Operand::Var(is_inside));
        let inside = self.at;
        self.at = outside;
        self.end(Terminator::Goto(join));
        self.at = inside;
        Some(join)
    }
}
