//! Classifies the extern calls of the pipeline, and lists the variables that the driver receives at
//! each exit.

use super::super::driver::Psa;
use super::super::externs::{self, Op};
use super::{exit, punt_variable};
use crate::driver::DropReason;
use crate::pipeline_builder::{ExitTable, Pseudo, RANDOM, drop_exit, host, punt_exit, touched, transmit};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use weir_ir::passes::{Renaming, VarSet, read_by};
use weir_ir::pipeline::CallKind;
use weir_ir::{Call, Loc, Program, VarId};

/// A call of the pipeline.
pub(crate) enum FusedCall {
    /// An extern of the architecture.
    Op(Op, Loc),
    /// A call that fusing has inserted.
    Pseudo(Pseudo),
}

/// Externs that the host can do for compiled code.
pub(super) trait Fusible {
    fn is_fusible(&self) -> bool;
}

impl Fusible for Op {
    fn is_fusible(&self) -> bool {
        matches!(
            self,
            Op::Hash(_)
                | Op::HashRange(_)
                | Op::Count(_)
                | Op::Meter(_)
                | Op::DirectMeter(_)
                | Op::RegisterRead(_)
                | Op::RegisterWrite(_)
                | Op::Random { .. }
        )
    }
}

/// The call and its kind; `None`: it cannot be made from a pipeline.
pub(super) fn call_kind(arch: &Psa, call: &Call, loc: Loc) -> Option<(FusedCall, CallKind)> {
    if let Some((pseudo, kind)) = Pseudo::of(&call.function) {
        return Some((FusedCall::Pseudo(pseudo), kind));
    }
    if let Some(bound) = arch.registered.find(call, loc) {
        let kind = bound.kind(call, exit::EXTERN);
        return Some((FusedCall::Op(Op::Registered(Arc::clone(bound)), loc), kind));
    }
    // A direct counter is given its index here.
    let op = match call.instance {
        Some(id) if arch.program.externs[id].type_name == "DirectCounter" => Op::Count(id),
        _ => externs::own(&arch.program, call)?,
    };
    let kind = kind_of(&op)?;
    Some((FusedCall::Op(op, loc), kind))
}

fn kind_of(op: &Op) -> Option<CallKind> {
    Some(match op {
        Op::Count(id) => CallKind::Count(id.index()),
        Op::Hash(_) | Op::HashRange(_) => host(None),
        Op::Meter(id) | Op::DirectMeter(id) | Op::RegisterRead(id) | Op::RegisterWrite(id) => {
            host(Some(id.index() as u32))
        }
        Op::Random { .. } => host(Some(RANDOM)),
        Op::Assert(_) => CallKind::Host {
            reads: Vec::new(),
            writes: Vec::new(),
            state: None,
            abort: Some(exit::ASSERT),
        },
        _ => return None,
    })
}

/// The shared variables that a programmable block reads, and a group of metadata that the driver
/// reads after it.
fn read_at_end(arch: &Psa, block: usize, group: &str) -> Vec<VarId> {
    let program = &arch.program;
    let mut read = VarSet::new(program.vars.len());
    read_by(program, &program.blocks[block].body, &mut |v| read.insert(v));
    for leaf in program.shared_group(group).iter().flat_map(|g| &g.leaves) {
        read.insert(leaf.var);
    }
    let leaves = program.shared.iter().flat_map(|g| &g.leaves);
    let shared: HashSet<VarId> = leaves.map(|l| l.var).collect();
    read.iter().filter(|v| shared.contains(v)).collect()
}

/// The exits, with what the driver reads of a packet that leaves by them.
pub(super) fn exit_table(arch: &Psa, program: &Program, renaming: &Renaming, port: VarId) -> ExitTable {
    let blocks = arch.blocks;
    let kind = |call: &Call, _| externs::own(&arch.program, call).as_ref().and_then(kind_of);
    let all_state = touched(&arch.program, &(0..arch.program.blocks.len()).collect::<Vec<_>>(), kind);
    let egress = touched(
        &arch.program,
        &[blocks.egress.parser, blocks.egress.control, blocks.egress.deparser],
        kind,
    );
    let after_ingress = read_at_end(arch, blocks.ingress.deparser, "ingress_output_metadata");
    let after_egress = read_at_end(arch, blocks.egress.deparser, "egress_output_metadata");
    let mut emitted = vec![port];
    for (emitted_index, emit) in arch.emits.iter().flatten().enumerate() {
        if !emit.always {
            emitted.push(punt_variable(&arch.program, 1 + emitted_index));
        }
        let header = &program.headers[emit.header];
        emitted.push(header.valid);
        emitted.extend(header.fields.iter().copied());
    }
    let with_emitted = |vars: &[VarId]| -> Vec<VarId> {
        let all = emitted.iter().chain(vars).map(|v| renaming.var(*v));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let exits = vec![
        transmit(port),
        drop_exit("ingress-drop", DropReason::IngressDrop),
        drop_exit("egress-drop", DropReason::EgressDrop),
        punt_exit("punt-after-ingress", after_ingress, all_state.clone(), false),
        punt_exit(
            "punt-before-egress-parser",
            with_emitted(&arch.fields.normal),
            egress,
            false,
        ),
        drop_exit("assert", DropReason::Assert),
        drop_exit("instruction-budget", DropReason::InstructionBudget),
        punt_exit("punt-from-start", Vec::new(), all_state.clone(), false),
        punt_exit("end-of-egress", with_emitted(&after_egress), all_state, true),
        drop_exit("extern", DropReason::Extern),
    ];
    ExitTable {
        exits,
        instruction_budget_drop: exit::INSTRUCTION_BUDGET_DROP,
        punt_from_start: exit::PUNT_FROM_START,
    }
}
