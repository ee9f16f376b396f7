//! The externs of v1model, resolved once when a program is loaded.

use crate::bound::{BoundCall, BoundExterns};
use crate::calls::Vocabulary;
use crate::cells::Cells;
use crate::error::LoadError;
use crate::hash::Algorithm;
use crate::load::{self, HANDLES, argument, member, number, unit};
use crate::state::{Resource, scalars};
use std::sync::Arc;
use weir_interp::CallSites;
use weir_ir::{
    Argument, ArgumentValue, Call, ExternId, ExternInstance, InLeaf, Loc, Operand, Program, TypeSpec, VarId, VarKind,
};

/// The name of the target in messages.
pub(crate) const TARGET: &str = "v1model";

/// Extern types that are action selectors.
pub(crate) const SELECTORS: &[&str] = &["action_selector"];

/// Extern types of v1model.
const TYPES: &[&str] = &[
    "counter",
    "direct_counter",
    "meter",
    "direct_meter",
    "register",
    "action_profile",
    "action_selector",
    "Checksum16",
];

/// Which variables a clone, resubmission or recirculation keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The field list whose number is argument `.0`.
    List(usize),
    /// These (deprecated forms, which take the fields themselves).
    Vars(Arc<[VarId]>),
}

/// A call that verifies or updates a checksum.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checksum {
    /// With the bytes the parser left.
    pub payload: bool,
    /// Validity of the header the checksum is in.
    pub header: Option<VarId>,
    /// The number of the calculation.
    pub calculation: Option<u32>,
}

/// The operation of a call in the program's text.
#[derive(Clone)]
pub(crate) enum Op {
    CounterCount(ExternId),
    /// Counted when the table hits.
    DirectCounterCount,
    MeterExecute(ExternId),
    DirectMeterRead(ExternId),
    RegisterRead(ExternId),
    RegisterWrite(ExternId),
    Random,
    Digest {
        name: String,
        fields: Vec<String>,
    },
    /// By the number of the calculation.
    Hash(Option<u32>),
    MarkToDrop,
    VerifyChecksum(Checksum),
    UpdateChecksum(Checksum),
    Checksum16Get,
    Clone(Keep),
    Resubmit(Keep),
    Recirculate(Keep),
    Truncate,
    /// `assert` and `assume`.
    Assert(&'static str),
    Log(String),
    /// A registered extern.
    Registered(Arc<BoundCall>),
}

fn vocabulary(registered: &BoundExterns) -> Vocabulary<'_> {
    Vocabulary {
        target: TARGET,
        types: TYPES,
        registered,
    }
}

/// All calls of a program, by site.
///
/// # Errors
/// Everything that neither v1model nor the registry has.
pub(crate) fn resolve(
    program: &Program,
    sites: &CallSites,
    registered: &BoundExterns,
) -> Result<Vec<Op>, Vec<LoadError>> {
    vocabulary(registered).resolve(program, sites, |call| own(program, call), Op::Registered)
}

/// The operation of a call of the program.
pub(crate) fn call_op(program: &Program, call: &Call, loc: Loc, registered: &BoundExterns) -> Result<Op, LoadError> {
    vocabulary(registered).call(program, call, loc, |call| own(program, call), Op::Registered)
}

pub(super) fn own(program: &Program, call: &Call) -> Option<Op> {
    match call.instance {
        Some(instance) => method(program, instance, &call.function),
        None => function(program, call),
    }
}

fn method(program: &Program, instance: ExternId, name: &str) -> Option<Op> {
    Some(match (program.externs[instance].type_name.as_str(), name) {
        ("counter", "count") => Op::CounterCount(instance),
        ("direct_counter", "count") => Op::DirectCounterCount,
        ("meter", "execute_meter") => Op::MeterExecute(instance),
        ("direct_meter", "read") => Op::DirectMeterRead(instance),
        ("register", "read") => Op::RegisterRead(instance),
        ("register", "write") => Op::RegisterWrite(instance),
        ("Checksum16", "get") => Op::Checksum16Get,
        _ => return None,
    })
}

fn function(program: &Program, call: &Call) -> Option<Op> {
    let arguments = &call.arguments;
    let field_list = |index| Keep::List(index);
    let given = |index: usize| Keep::Vars(variables(program, arguments.get(index)));
    let checksum = |payload| Checksum {
        payload,
        header: header_of(program, arguments.get(2)),
        calculation: call.calculation,
    };
    Some(match (call.function.as_str(), arguments.len()) {
        ("random", 3) => Op::Random,
        ("digest", 2) => digest(call),
        ("hash", 5) => Op::Hash(call.calculation),
        ("mark_to_drop", 0 | 1) => Op::MarkToDrop,
        ("verify_checksum", 4) => Op::VerifyChecksum(checksum(false)),
        ("verify_checksum_with_payload", 4) => Op::VerifyChecksum(checksum(true)),
        ("update_checksum", 4) => Op::UpdateChecksum(checksum(false)),
        ("update_checksum_with_payload", 4) => Op::UpdateChecksum(checksum(true)),
        ("clone", 2) => Op::Clone(Keep::Vars(Arc::new([]))),
        ("clone3", 3) => Op::Clone(given(2)),
        ("clone_preserving_field_list", 3) => Op::Clone(field_list(2)),
        ("resubmit", 1) => Op::Resubmit(given(0)),
        ("resubmit_preserving_field_list", 1) => Op::Resubmit(field_list(0)),
        ("recirculate", 1) => Op::Recirculate(given(0)),
        ("recirculate_preserving_field_list", 1) => Op::Recirculate(field_list(0)),
        ("truncate", 1) => Op::Truncate,
        ("assert", 1) => Op::Assert("assertion"),
        ("assume", 1) => Op::Assert("assumption"),
        ("log_msg", 1 | 2) => match arguments.first().map(|a| &a.value) {
            Some(ArgumentValue::String(text)) => Op::Log(text.clone()),
            _ => return None,
        },
        _ => return None,
    })
}

fn digest(call: &Call) -> Op {
    let ty = call.type_arguments.first().cloned().unwrap_or_default();
    let name = match &ty {
        TypeSpec::Struct(name, _) | TypeSpec::Header(name, _) | TypeSpec::New(name, ..) => name.clone(),
        _ => "digest".to_owned(),
    };
    Op::Digest {
        name,
        fields: scalars(&ty, "").into_iter().map(|(n, _)| n).collect(),
    }
}

/// The variables an argument is made of, whatever its direction; constants have none.
fn variables(program: &Program, argument: Option<&Argument>) -> Arc<[VarId]> {
    match argument.map(|a| &a.value) {
        Some(ArgumentValue::In(leaves)) => leaves
            .iter()
            .flat_map(|leaf| match leaf {
                InLeaf::Value(Operand::Var(var)) => vec![*var],
                InLeaf::Value(Operand::Const(_)) => Vec::new(),
                InLeaf::Header(header) => {
                    let header = &program.headers[*header];
                    std::iter::once(header.valid)
                        .chain(header.fields.iter().copied())
                        .collect()
                }
            })
            .collect(),
        Some(ArgumentValue::Out(vars) | ArgumentValue::InOut(vars)) => vars.as_slice().into(),
        _ => Arc::new([]),
    }
}

/// The variable that a call reads besides its arguments: the validity of the checksum's header.
pub(super) fn validity_read(program: &Program, call: &Call) -> Option<VarId> {
    match function(program, call)? {
        Op::VerifyChecksum(checksum) | Op::UpdateChecksum(checksum) => checksum.header,
        _ => None,
    }
}

/// Validity of the header that an argument is a field of, or a copy of a field.
fn header_of(program: &Program, argument: Option<&Argument>) -> Option<VarId> {
    let var = *variables(program, argument).first()?;
    match program.vars[var].kind {
        VarKind::Field { header, .. } => Some(program.headers[header].valid),
        VarKind::FieldCopy { valid } => Some(valid),
        VarKind::Shared | VarKind::Local | VarKind::Temporary | VarKind::Valid { .. } | VarKind::ActionParameter => {
            None
        }
    }
}

/// Algorithms by the value of a `HashAlgorithm`.
pub(crate) fn algorithms(program: &Program) -> Vec<Option<Algorithm>> {
    let names = program
        .enums
        .iter()
        .find(|(_, e)| e.name == "HashAlgorithm")
        .map(|(_, e)| e.members.as_slice());
    match names {
        Some(names) => names.iter().map(|n| Algorithm::from_name(n)).collect(),
        // A program that carries no enums.
        None => Algorithm::ALL.into_iter().map(Some).collect(),
    }
}

/// The state of an instance.
pub(crate) fn resource(program: &Program, index: usize, instance: &ExternInstance) -> Resource {
    let size = || number(argument(instance, "size", 0));
    match instance.type_name.as_str() {
        "counter" => Resource::Counter(unit(argument(instance, "type", 1)), Cells::new(size())),
        "direct_counter" => Resource::DirectCounter(unit(argument(instance, "type", 0)), Cells::new(HANDLES)),
        "meter" => Resource::Meter(unit(argument(instance, "type", 1)), Cells::new(size())),
        "direct_meter" => Resource::DirectMeter(unit(argument(instance, "type", 0)), Cells::new(HANDLES)),
        "register" => {
            let ty = instance.type_arguments.first().cloned().unwrap_or_default();
            load::register(program, &ty, size(), None)
        }
        "action_profile" => Resource::Profile(load::profile(program, index, instance, size(), false), None),
        "action_selector" => {
            let algorithm =
                Algorithm::from_name(member(argument(instance, "algorithm", 0))).unwrap_or(Algorithm::Crc16);
            let size = number(argument(instance, "size", 1));
            Resource::Profile(load::profile(program, index, instance, size, true), Some(algorithm))
        }
        _ => Resource::None,
    }
}

/// Whether an instance is a direct meter.
pub(crate) fn is_direct_meter(instance: &ExternInstance) -> bool {
    instance.type_name == "direct_meter"
}
