//! Whether a program can read how long its packets wait in queues, or choose the order in which
//! they leave.

use weir_ir::passes::{read_by, written};
use weir_ir::{Body, InstKind, Operand, Program, Rvalue, VarId};

/// Whether code of the program reads one of these variables.
pub(crate) fn reads_any(program: &Program, vars: &[VarId]) -> bool {
    bodies(program).any(|body| {
        let mut is_read = false;
        read_by(program, body, &mut |var| is_read |= vars.contains(&var));
        is_read
    })
}

/// Whether code of the program gives one of these variables a value other than the constant 0.
pub(crate) fn sets_any(program: &Program, vars: &[VarId]) -> bool {
    let mut blocks = bodies(program).flat_map(|body| body.blocks.iter());
    blocks.any(|(_, block)| {
        block.insts.iter().any(|inst| {
            let mut is_set = false;
            if !is_zero(&inst.kind) {
                written(&inst.kind, &program.headers, &mut |var| is_set |= vars.contains(&var));
            }
            is_set
        })
    })
}

fn bodies(program: &Program) -> impl Iterator<Item = &Body> {
    let methods = program.externs.iter().flat_map(|(_, e)| &e.methods);
    let blocks = program.blocks.iter().map(|block| &block.body);
    blocks.chain(methods.map(|method| &method.body))
}

/// Whether an instruction assigns the constant 0.
fn is_zero(kind: &InstKind) -> bool {
    match kind {
        InstKind::Assign {
            value: Rvalue::Use(Operand::Const(bits)),
            ..
        } => bits.is_zero(),
        _ => false,
    }
}
