//! Classifies the extern calls of a pipeline.

use super::super::driver::V1Model;
use super::super::externs::{self, Op};
use super::super::runtime::FusedCall;
use super::{RANDOM, exit};
use crate::hash::Algorithm;
use crate::pipeline_builder::{Pseudo, host};
use weir_ir::pipeline::CallKind;
use weir_ir::{Call, InLeaf, Loc, Operand, Type};

/// The call and its kind; `None`: it cannot be made from a pipeline.
pub(super) fn call_kind(arch: &V1Model, call: &Call, loc: Loc) -> Option<(FusedCall, CallKind)> {
    if let Some((pseudo, kind)) = Pseudo::of(&call.function) {
        return Some((FusedCall::Pseudo(pseudo), kind));
    }
    if call.function == "$checksum_error" {
        return Some((FusedCall::ChecksumError, host(None)));
    }
    let op = externs::call_op(&arch.program, call, loc, &arch.registered).ok()?;
    let kind = match &op {
        Op::CounterCount(id) => CallKind::Count(id.index()),
        Op::DirectCounterCount => CallKind::Nothing,
        Op::MeterExecute(id) | Op::RegisterRead(id) | Op::RegisterWrite(id) => host(Some(id.index() as u32)),
        Op::Random => host(Some(RANDOM)),
        Op::Hash(_) if inlinable_hash(arch, call).is_some() => inlinable_hash(arch, call)?,
        Op::Hash(_) => {
            let algorithm = algorithm(arch, call, 1);
            host((algorithm.is_none() || algorithm == Some(Algorithm::Random)).then_some(RANDOM))
        }
        Op::Checksum16Get => CallKind::InternetChecksum,
        Op::Assert(_) => CallKind::Host {
            reads: Vec::new(),
            writes: Vec::new(),
            state: None,
            abort: Some(exit::ASSERT),
        },
        // Messages are put in order afterwards.
        Op::Log(_) => host(None),
        Op::VerifyChecksum(checksum) | Op::UpdateChecksum(checksum) => CallKind::Host {
            reads: checksum.header.into_iter().collect(),
            writes: Vec::new(),
            state: None,
            abort: None,
        },
        Op::DirectMeterRead(_)
        | Op::Digest { .. }
        | Op::Clone(_)
        | Op::Resubmit(_)
        | Op::Recirculate(_)
        | Op::Truncate => host(None),
        // Only calls of the program itself, as `touched` classifies them: in the pipeline,
        // `super::Builder` has replaced them with assignments.
        Op::MarkToDrop => CallKind::Host {
            reads: Vec::new(),
            writes: [arch.fields.egress_spec, arch.fields.mcast_grp]
                .into_iter()
                .flatten()
                .collect(),
            state: None,
            abort: None,
        },
        Op::Registered(bound) => bound.kind(call, exit::EXTERN),
    };
    Some((FusedCall::Op(op, loc), kind))
}

/// The algorithm that argument `index`, a `HashAlgorithm`, names, if that is known beforehand.
pub(super) fn algorithm(arch: &V1Model, call: &Call, index: usize) -> Option<Algorithm> {
    let value = usize::try_from(call.constant_input(index)?).ok()?;
    *arch.algorithms.get(value)?
}

/// The kind of a hash that compiled code can do inline: one of scalars of known lengths, with
/// constant bounds. `None`: the host does it.
fn inlinable_hash(arch: &V1Model, call: &Call) -> Option<CallKind> {
    let vars = &arch.program.vars;
    let algorithm = algorithm(arch, call, 1)?;
    let has_fixed_lengths = call.inputs(3).iter().all(|leaf| match leaf {
        InLeaf::Value(Operand::Var(v)) => matches!(vars.get(*v).map(|v| &v.ty), Some(Type::Bits(_))),
        InLeaf::Value(Operand::Const(_)) => true,
        InLeaf::Header(_) => false,
    });
    let result = *call.outputs(0).first()?;
    let narrow = matches!(vars.get(result)?.ty, Type::Bits(width) if width <= 64);
    let (base, max) = (call.constant_input(2)?, call.constant_input(4)?.max(1));
    (has_fixed_lengths && narrow && algorithm != Algorithm::Random).then_some(CallKind::Hash {
        result,
        data: 3,
        algorithm: algorithm.number(call.calculation)?,
        base,
        max,
    })
}
