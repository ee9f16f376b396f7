//! The kinds of the pipeline's calls, for the JIT and for the host, and the exits with the
//! variables that are live there.
//!
//! It classifies calls that the other modules have appended, and changes no body.

use super::super::driver::Tna;
use super::super::externs::{self, ExternOp, IndexSource};
use super::super::fields::Pipe;
use super::super::registers;
use super::interp_fallback::{self, FALLBACK, InterpFallback};
use super::registers::{READ, WRITE};
use super::values::MATH;
use super::{COUNT, exit};
use crate::driver::DropReason;
use crate::fused::Queueing;
use crate::pipeline_builder::{
    ExitTable, Pseudo, RANDOM, drop_exit, host, punt_exit, queue, recirculate, stamp_and_transmit, touched, transmit,
};
use std::collections::HashSet;
use std::sync::Arc;
use weir_ir::passes::{VarSet, read_by};
use weir_ir::pipeline::{CallKind, MAGNITUDES};
use weir_ir::{Call, ExternId, Loc, VarId};

/// The meaning of a call of the pipeline, for the host.
pub(crate) enum FusedCall {
    /// An extern of the architecture.
    Op(ExternOp, Loc),
    /// A counter or meter of egress that takes the packet's length when it is sent.
    CountedWhenSent(ExternOp, Loc),
    /// A call that fusing has introduced.
    Pseudo(Pseudo),
    /// Compiled code does it without the host: register cells, and `MathUnit`s by lookup table.
    Inline,
    /// A register action that the interpreter runs.
    InterpFallback(Arc<InterpFallback>),
}

/// Whether the host can do an extern call for compiled code.
pub(super) fn is_fusible(op: &ExternOp) -> bool {
    host_call_kind(op).is_some()
}

/// The meaning and the kind of a call. `None`: it has no compiled form.
pub(super) fn classify(
    arch: &Tna,
    (fallbacks, math_tables): (&[Arc<InterpFallback>], &[Arc<[u64; MAGNITUDES]>]),
    is_egress_pipeline: bool,
    call: &Call,
    loc: Loc,
) -> Option<(FusedCall, CallKind)> {
    if call.function == MATH {
        // The table is indexed by the argument as a floating-point number: its exponent and the
        // leading three bits of its mantissa.
        let number = usize::try_from(call.constant_input(1)?).ok()?;
        return Some((
            FusedCall::Inline,
            CallKind::ByMagnitude(Arc::clone(math_tables.get(number)?)),
        ));
    }
    if call.function == FALLBACK {
        let (fallback, kind) = interp_fallback::fallback_of(fallbacks, call)?;
        return Some((FusedCall::InterpFallback(fallback), kind));
    }
    if let Some((pseudo, kind)) = Pseudo::of(&call.function) {
        return Some((FusedCall::Pseudo(pseudo), kind));
    }
    if let (READ | WRITE, Some(id)) = (call.function.as_str(), call.instance) {
        return Some((FusedCall::Inline, cell_access_kind(arch, call, id)?));
    }
    if let Some(bound) = arch.registered.find(call, loc) {
        let kind = bound.kind(call, exit::EXTERN);
        return Some((FusedCall::Op(ExternOp::Registered(Arc::clone(bound)), loc), kind));
    }
    let index_source = IndexSource::Argument(0);
    let op = match (call.function.as_str(), call.instance) {
        // An indexed counter stands for a direct one, see `Builder::call`.
        (COUNT, Some(id)) => ExternOp::Count {
            id,
            index_source,
            byte_adjustment: None,
            uses_sent_length: false,
        },
        _ => externs::own(arch.program(), call, loc).ok()??,
    };
    let kind = host_call_kind(&op)?;
    Some(match op {
        ExternOp::Count {
            uses_sent_length: true, ..
        }
        | ExternOp::Meter {
            uses_sent_length: true, ..
        } if is_egress_pipeline => (FusedCall::CountedWhenSent(op, loc), kind),
        op => (FusedCall::Op(op, loc), kind),
    })
}

/// The kind of a read or write of one scalar of a register's cell. The last argument is its number.
fn cell_access_kind(arch: &Tna, call: &Call, id: ExternId) -> Option<CallKind> {
    let scalar = u32::try_from(call.constant_input(call.arguments.len().checked_sub(1)?)?).ok()?;
    // No packet writes the parameters of register actions.
    let is_parameter = arch.program().externs[id].type_name == "RegisterParam";
    let state = (!is_parameter).then_some(id.index() as u32);
    let array = id.index();
    let flat = registers::flat_cells(arch.program(), &arch.program().externs[id], scalar as usize);
    Some(match call.function.as_str() {
        READ => CallKind::ReadCell {
            array,
            scalar,
            flat,
            state,
        },
        _ => CallKind::WriteCell {
            array,
            scalar,
            flat,
            state,
        },
    })
}

/// The kind of an extern call that the host performs. `None`: it has no compiled form.
pub(super) fn host_call_kind(op: &ExternOp) -> Option<CallKind> {
    Some(match op {
        ExternOp::Count {
            id,
            index_source: IndexSource::Argument(0),
            byte_adjustment: None,
            uses_sent_length: false,
        } => CallKind::Count(id.index()),
        ExternOp::Hash(_)
        | ExternOp::PartsExtremum(_)
        | ExternOp::Math(_)
        | ExternOp::Predicate(_)
        | ExternOp::MinMax { .. }
        | ExternOp::FunnelShift
        | ExternOp::SizeOf { .. } => host(None),
        ExternOp::Random => host(Some(RANDOM)),
        ExternOp::Count { id, .. }
        | ExternOp::Meter { id, .. }
        | ExternOp::Lpf { id, .. }
        | ExternOp::Wred { id, .. }
        | ExternOp::Read { id, .. }
        | ExternOp::Write { id, .. }
        | ExternOp::Clear(id) => host(Some(id.index() as u32)),
        _ => return None,
    })
}

/// The shared variables that are live after the control of ingress, or of egress: those that the
/// driver and the deparsers read.
fn live_at_control_end(arch: &Tna, pipes: &[&Pipe], is_egress_pipeline: bool) -> Vec<VarId> {
    let program = arch.program();
    let mut read = VarSet::new(program.vars.len());
    for pipe in pipes {
        let gress = if is_egress_pipeline {
            &pipe.egress
        } else {
            &pipe.ingress
        };
        let deparser = &program.blocks[gress.deparser].body;
        read_by(program, deparser, &mut |v| read.insert(v));
    }
    let role_suffixes = ["_for_tm", "_for_deparser", "_for_output_port"];
    let direction = if is_egress_pipeline { ".egress" } else { ".ingress" };
    let groups = program
        .shared
        .iter()
        .filter(|g| role_suffixes.iter().any(|end| g.role.ends_with(end)));
    for leaf in groups.filter(|g| g.role.contains(direction)).flat_map(|g| &g.leaves) {
        read.insert(leaf.var);
    }
    let leaves = program.shared.iter().flat_map(|g| &g.leaves);
    let shared: HashSet<VarId> = leaves.map(|l| l.var).collect();
    read.iter().filter(|v| shared.contains(v)).collect()
}

/// The exits, with the variables that are live at each.
pub(super) fn exit_table(
    arch: &Tna,
    pipes: &[&Pipe],
    port: VarId,
    queueing: &Queueing,
    is_egress_pipeline: bool,
) -> ExitTable {
    let program = arch.program();
    let kind = |call: &Call, loc| {
        externs::own(program, call, loc)
            .ok()
            .flatten()
            .as_ref()
            .and_then(host_call_kind)
    };
    let mut everything = touched(program, &(0..program.blocks.len()).collect::<Vec<_>>(), kind);
    // Calls do not show the state that register actions access.
    everything.states.extend(arch.registers().map(|id| id.index() as u32));
    let Queueing {
        port: unicast,
        no_port: _,
        groups: [first, second],
        exclude_node,
        exclude_ports,
        rid,
        queue: number,
        class,
        bypasses,
        deflects,
    } = *queueing;
    let live = vec![
        unicast,
        first,
        second,
        exclude_node,
        exclude_ports,
        rid,
        number,
        class,
        bypasses,
        deflects,
    ];
    // By number: the order of the constants in [`exit`].
    let exits = vec![
        transmit(port),
        drop_exit("ingress-drop", DropReason::IngressDrop),
        punt_exit(
            "punt-after-control",
            live_at_control_end(arch, pipes, is_egress_pipeline),
            everything.clone(),
            is_egress_pipeline,
        ),
        drop_exit("instruction-budget", DropReason::InstructionBudget),
        punt_exit("punt-from-start", Vec::new(), everything, false),
        drop_exit("egress-drop", DropReason::EgressDrop),
        stamp_and_transmit(port),
        recirculate(port),
        queue(live),
        drop_exit("extern", DropReason::Extern),
    ];
    ExitTable {
        exits,
        instruction_budget_drop: exit::INSTRUCTION_BUDGET_DROP,
        punt_from_start: exit::PUNT_FROM_START,
    }
}
