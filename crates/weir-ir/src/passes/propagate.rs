//! Constant folding and copy propagation within basic blocks.

use super::operands::{replace_in_inst, replace_in_terminator};
use crate::bits::Bits;
use crate::program::*;
use std::collections::HashMap;

/// The known value of a variable at a point of a basic block.
#[derive(Default)]
struct Known {
    values: HashMap<VarId, Operand>,
    /// For each variable, those known to be copies of it.
    copies: HashMap<VarId, Vec<VarId>>,
}

impl Known {
    /// The variable gets a new value: what was known of it, and of its copies, is gone.
    fn forget(&mut self, var: VarId) {
        self.values.remove(&var);
        for copy in self.copies.remove(&var).unwrap_or_default() {
            if self.values.get(&copy) == Some(&Operand::Var(var)) {
                self.values.remove(&copy);
            }
        }
    }

    /// An extern may have changed any scalar that the architecture shares.
    fn forget_shared(&mut self, vars: &crate::Arena<Var>) {
        let is_shared = |v: VarId| vars[v].kind == VarKind::Shared;
        self.values
            .retain(|&v, value| !is_shared(v) && !matches!(value, Operand::Var(source) if is_shared(*source)));
    }

    fn learn(&mut self, var: VarId, value: Operand) {
        if let Operand::Var(source) = value {
            self.copies.entry(source).or_default().push(var);
        }
        self.values.insert(var, value);
    }

    fn replace(&self, operand: &mut Operand) -> bool {
        let Operand::Var(v) = operand else { return false };
        match self.values.get(v) {
            Some(value) => {
                *operand = value.clone();
                true
            }
            None => false,
        }
    }
}

/// Replaces variables by the constants and variables they are copies of, and operations on
/// constants by their results. Returns whether anything changed.
pub fn propagate(program: &mut Program) -> bool {
    let Program {
        blocks, vars, headers, ..
    } = program;
    let mut changed = false;
    for block in blocks {
        for (_, basic) in block.body.blocks.iter_mut() {
            changed |= basic_block(basic, vars, headers);
        }
    }
    changed
}

/// As [`propagate`], within one block.
pub(super) fn basic_block(block: &mut BasicBlock, vars: &crate::Arena<Var>, headers: &crate::Arena<Header>) -> bool {
    let mut known = Known::default();
    let mut changed = false;
    for inst in &mut block.insts {
        changed |= replace_in_inst(&mut inst.kind, vars, |operand, _| known.replace(operand));
        if let InstKind::Assign { dst, value } = &mut inst.kind {
            let width = vars[*dst].ty.width();
            if let Some(simpler) = simplify(value, width) {
                changed |= *value != simpler;
                *value = simpler;
            }
            let dst = *dst;
            known.forget(dst);
            // The length of a varbit is part of its value, which a constant does not show: leave
            // those.
            let plain = |o: &Operand| match o {
                Operand::Var(v) => matches!(vars[*v].ty, Type::Bits(_)),
                Operand::Const(_) => true,
            };
            if let Rvalue::Use(source) = value
                && *source != Operand::Var(dst)
                && plain(source)
                && matches!(vars[dst].ty, Type::Bits(_))
            {
                known.learn(dst, source.clone());
            }
        } else {
            written(&inst.kind, headers, &mut |v| known.forget(v));
            if matches!(&inst.kind, InstKind::Call(call) if !call.is_pure) {
                known.forget_shared(vars);
            }
        }
    }
    changed |= replace_in_terminator(&mut block.terminator, |operand| known.replace(operand));
    if let Some(simpler) = decided(&block.terminator) {
        block.terminator = simpler;
        changed = true;
    }
    changed
}

/// Calls `f` with every variable an instruction writes.
pub fn written(kind: &InstKind, headers: &crate::Arena<Header>, f: &mut dyn FnMut(VarId)) {
    match kind {
        InstKind::Assign { dst, .. } | InstKind::Lookahead { dst, .. } | InstKind::PacketLength { dst } => f(*dst),
        InstKind::Extract { header, .. } => {
            let h = &headers[*header];
            f(h.valid);
            h.fields.iter().for_each(|&v| f(v));
        }
        InstKind::Call(call) => {
            for argument in &call.arguments {
                if let ArgumentValue::Out(vars) | ArgumentValue::InOut(vars) = &argument.value {
                    vars.iter().for_each(|&v| f(v));
                }
            }
            call.results.iter().for_each(|&v| f(v));
        }
        InstKind::Advance { .. } | InstKind::Emit { .. } | InstKind::Mark(_) => {}
    }
}

/// A simpler form of an operation, where there is one.
fn simplify(value: &Rvalue, width: u32) -> Option<Rvalue> {
    let constant = |o: &Operand| match o {
        Operand::Const(c) => Some(c.clone()),
        Operand::Var(_) => None,
    };
    if let Rvalue::Mux {
        condition,
        then,
        otherwise,
    } = value
    {
        if then == otherwise {
            return Some(Rvalue::Use(then.clone()));
        }
        if let Some(c) = constant(condition) {
            return Some(Rvalue::Use(if c.is_zero() { otherwise.clone() } else { then.clone() }));
        }
    }
    if let Rvalue::Binary(op, a, b) = value {
        let (x, y) = (constant(a), constant(b));
        let zero = |v: &Option<Bits>| v.as_ref().is_some_and(Bits::is_zero);
        let ones = |v: &Option<Bits>| v.as_ref().is_some_and(Bits::is_ones);
        match op {
            BinaryOp::Add | BinaryOp::Or | BinaryOp::Xor if zero(&x) => return Some(Rvalue::Use(b.clone())),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr
                if zero(&y) =>
            {
                return Some(Rvalue::Use(a.clone()));
            }
            BinaryOp::And if zero(&x) || ones(&y) => return Some(Rvalue::Use(a.clone())),
            BinaryOp::And if zero(&y) || ones(&x) => return Some(Rvalue::Use(b.clone())),
            _ => {}
        }
    }
    if matches!(value, Rvalue::Use(_) | Rvalue::VarbitEq(..)) {
        return None;
    }
    let all: Option<Vec<Bits>> = value.operands().map(constant).collect();
    all?;
    let result = crate::eval::rvalue(value, width, |o| constant(o).unwrap_or_else(|| Bits::zero(0)));
    Some(Rvalue::Use(Operand::Const(result)))
}

/// Where control goes without question.
fn decided(terminator: &Terminator) -> Option<Terminator> {
    match terminator {
        Terminator::Branch {
            condition: Operand::Const(c),
            then,
            otherwise,
        } => Some(Terminator::Goto(if c.is_zero() { *otherwise } else { *then })),
        Terminator::Branch { then, otherwise, .. } if then == otherwise => Some(Terminator::Goto(*then)),
        Terminator::Switch {
            value: Operand::Const(c),
            cases,
            default,
        } => {
            let target = cases.iter().find(|(v, _)| v == c).map_or(*default, |(_, b)| *b);
            Some(Terminator::Goto(target))
        }
        Terminator::Switch { cases, default, .. } if cases.iter().all(|(_, b)| b == default) => {
            Some(Terminator::Goto(*default))
        }
        _ => None,
    }
}
