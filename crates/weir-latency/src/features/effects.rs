//! Instructions without an effect that a device would pay for: the copies of `inout` parameters
//! that nothing has changed, and the zeros that fields get when their header becomes valid.

use super::block::header_of;
use std::collections::HashMap;
use weir_ir::passes::{VarSet, read_by_inst, read_by_terminator, written};
use weir_ir::{Body, Inst, InstKind, Operand, Program, Rvalue, UnaryOp, VarId, VarKind};

/// For each block of a body which of its instructions have no effect.
pub(super) struct Effects {
    idle: Vec<Vec<bool>>,
}

impl Effects {
    pub(super) fn of(program: &Program, body: &Body) -> Self {
        let blocks = body.blocks.iter();
        let mut idle: Vec<Vec<bool>> = blocks.map(|(_, block)| restored(program, &block.insts)).collect();
        let mut read = VarSet::new(program.vars.len());
        for (id, block) in body.blocks.iter() {
            for (inst, is_idle) in block.insts.iter().zip(&idle[id.index()]) {
                if !is_idle {
                    read_by_inst(&inst.kind, &program.headers, &mut |var| read.insert(var));
                }
            }
            read_by_terminator(&block.terminator, &mut |var| read.insert(var));
        }
        for (id, block) in body.blocks.iter() {
            for (inst, is_idle) in block.insts.iter().zip(&mut idle[id.index()]) {
                *is_idle |= is_unread_copy(program, &read, &inst.kind);
            }
        }
        Effects { idle }
    }

    /// Whether an instruction has an effect.
    pub(super) fn has_effect(&self, block: weir_ir::BlockId, inst: usize) -> bool {
        !self.idle[block.index()][inst]
    }
}

/// Whether an instruction copies to a local variable that nothing reads: copy-in without use.
fn is_unread_copy(program: &Program, read: &VarSet, inst: &InstKind) -> bool {
    matches!(inst, InstKind::Assign { dst, value: Rvalue::Use(Operand::Var(_)) }
        if program.vars[*dst].kind == VarKind::Local && !read.contains(*dst))
}

/// What is known of variables within a block.
#[derive(Default)]
struct Known {
    /// The variable whose value another one holds.
    copies: HashMap<VarId, VarId>,
    /// Variables that are 1 where a header is invalid, by its validity.
    invalid: HashMap<VarId, VarId>,
    /// Variables that are a field where its header is valid, else 0.
    zeroed: HashMap<VarId, VarId>,
}

impl Known {
    fn forget(&mut self, var: VarId) {
        for map in [&mut self.copies, &mut self.invalid, &mut self.zeroed] {
            map.retain(|of, from| *of != var && *from != var);
        }
    }

    fn root(&self, var: VarId) -> VarId {
        self.copies.get(&var).copied().unwrap_or(var)
    }
}

/// Instructions of a block that give a variable the value that it has, or the zero of a field
/// whose header is not valid yet.
fn restored(program: &Program, insts: &[Inst]) -> Vec<bool> {
    let mut known = Known::default();
    let mut idle = Vec::with_capacity(insts.len());
    for inst in insts {
        let InstKind::Assign { dst, value } = &inst.kind else {
            written(&inst.kind, &program.headers, &mut |var| known.forget(var));
            idle.push(false);
            continue;
        };
        let mut is_idle = false;
        match value {
            Rvalue::Use(Operand::Var(from)) => {
                let root = known.root(*from);
                if root == *dst {
                    is_idle = true;
                } else if known.zeroed.get(from) == Some(dst) {
                    is_idle = true;
                    known.forget(*dst);
                } else {
                    known.forget(*dst);
                    known.copies.insert(*dst, root);
                }
            }
            Rvalue::Unary(UnaryOp::Not, Operand::Var(valid)) => {
                known.forget(*dst);
                if matches!(program.vars[*valid].kind, VarKind::Valid { .. }) {
                    known.invalid.insert(*dst, *valid);
                }
            }
            Rvalue::Mux {
                condition: Operand::Var(condition),
                then: Operand::Const(zero),
                otherwise: Operand::Var(field),
            } if zero.is_zero() && is_field_of(program, *field, known.invalid.get(condition)) => {
                known.forget(*dst);
                known.zeroed.insert(*dst, *field);
            }
            Rvalue::Use(_)
            | Rvalue::Unary(..)
            | Rvalue::Binary(..)
            | Rvalue::Slice { .. }
            | Rvalue::Insert { .. }
            | Rvalue::ZeroExtend(_)
            | Rvalue::SignExtend(_)
            | Rvalue::Mux { .. }
            | Rvalue::VarbitEq(..) => known.forget(*dst),
        }
        idle.push(is_idle);
    }
    idle
}

/// Whether a variable is a field of the header that another one is the validity of.
fn is_field_of(program: &Program, field: VarId, valid: Option<&VarId>) -> bool {
    let header = header_of(program, field);
    header.is_some() && header == valid.and_then(|valid| header_of(program, *valid))
}
