//! The exits of v1model's pipeline.

use super::super::driver::{ProgrammableBlocks, V1Model};
use super::super::externs::{self, Keep, Op};
use super::super::runtime::FusedCall;
use super::calls::call_kind;
use super::exit;
use crate::driver::DropReason;
use crate::pipeline_builder::{ExitTable, drop_exit, punt_exit, touched, transmit};
use std::collections::HashMap;
use weir_ir::passes::{VarSet, read_by};
use weir_ir::{Call, InstKind, Program, Type, VarId};

pub(super) fn ordered_tables(arch: &V1Model) -> Vec<bool> {
    let program = &arch.program;
    let is_meter = |x: &weir_ir::ExternId| externs::is_direct_meter(&program.externs[*x]);
    program
        .tables
        .iter()
        .map(|(_, t)| t.direct.iter().any(is_meter))
        .collect()
}

/// The exits, with what the driver reads of a packet that leaves by them.
pub(super) fn exit_table(
    arch: &V1Model,
    blocks: ProgrammableBlocks,
    program: &Program,
    calls: &[FusedCall],
    port: VarId,
) -> ExitTable {
    let mut read = VarSet::new(program.vars.len());
    for block in &arch.program.blocks {
        if !matches!(block.role.as_str(), "parser" | "verify_checksum") {
            read_by(&arch.program, &block.body, &mut |v| read.insert(v));
        }
    }
    let observes = crate::v1::observes(&arch.program);
    for group in &program.shared {
        for leaf in &group.leaves {
            if observes(&group.role, leaf) {
                read.insert(leaf.var);
            }
        }
    }
    for &header in &arch.groups.headers {
        read.insert(program.headers[header].valid);
        for &field in &program.headers[header].fields {
            if matches!(program.vars[field].ty, Type::Varbit(_)) {
                read.insert(field);
            }
        }
    }
    for call in calls {
        if let FusedCall::Op(Op::Clone(keep) | Op::Resubmit(keep) | Op::Recirculate(keep), _) = call
            && let Keep::Vars(vars) = keep
        {
            vars.iter().for_each(|&v| read.insert(v));
        }
    }
    for list in arch.groups.field_lists.values() {
        list.iter().for_each(|&v| read.insert(v));
    }
    let shared: HashMap<VarId, ()> = program
        .shared
        .iter()
        .flat_map(|g| g.leaves.iter().map(|l| (l.var, ())))
        .collect();
    let mut after_egress: Vec<VarId> = read.iter().filter(|v| shared.contains_key(v)).collect();
    let after_ingress = after_egress.clone();
    after_egress.push(port);
    let kind = |call: &Call, loc| call_kind(arch, call, loc).map(|(_, kind)| kind);
    let egress_blocks = [blocks.egress, blocks.compute_checksum, blocks.deparser];
    let egress = touched(&arch.program, &egress_blocks, kind);
    let all_state = touched(&arch.program, &(0..arch.program.blocks.len()).collect::<Vec<_>>(), kind);
    // A punted packet runs egress, and so do the copies that egress makes.
    let touches = if may_recirculate(arch) {
        all_state.clone()
    } else {
        egress
    };
    let exits = vec![
        transmit(port),
        drop_exit("ingress-drop", DropReason::IngressDrop),
        drop_exit("egress-drop", DropReason::EgressDrop),
        punt_exit("punt-after-ingress", after_ingress, touches.clone(), false),
        punt_exit("end-of-egress", after_egress, touches, true),
        drop_exit("assert", DropReason::Assert),
        drop_exit("instruction-budget", DropReason::InstructionBudget),
        punt_exit("punt-from-start", Vec::new(), all_state, false),
        drop_exit("extern", DropReason::Extern),
    ];
    ExitTable {
        exits,
        instruction_budget_drop: exit::INSTRUCTION_BUDGET_DROP,
        punt_from_start: exit::PUNT_FROM_START,
    }
}

/// Whether packets may come to ingress a second time.
fn may_recirculate(arch: &V1Model) -> bool {
    let bodies = arch.program.blocks.iter().map(|b| &b.body);
    let mut insts = bodies.flat_map(|b| b.blocks.iter()).flat_map(|(_, b)| &b.insts);
    insts.any(|i| match &i.kind {
        InstKind::Call(call) => matches!(
            externs::call_op(&arch.program, call, i.loc, &arch.registered),
            Ok(Op::Resubmit(_) | Op::Recirculate(_))
        ),
        _ => false,
    })
}
