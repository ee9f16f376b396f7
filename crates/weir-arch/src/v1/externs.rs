//! The externs of v1model, resolved once when a program is loaded.

use crate::error::{LoadError, place};
use crate::hash::Algorithm;
use crate::state::scalars;
use crate::user::{Externs, UserFunction};
use std::sync::Arc;
use weir_interp::CallSites;
use weir_ir::{Argument, ArgumentValue, Call, ExternId, InLeaf, Loc, Operand, Program, TypeSpec, VarId, VarKind};

/// The name of the target in messages.
pub(crate) const TARGET: &str = "v1model";

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

/// What one call of the program's text does.
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
    Hash,
    MarkToDrop,
    /// `payload`: with the bytes the parser left. `header`: validity of the header the checksum is in.
    VerifyChecksum {
        payload: bool,
        header: Option<VarId>,
    },
    UpdateChecksum {
        payload: bool,
        header: Option<VarId>,
    },
    Checksum16Get,
    Clone(Keep),
    Resubmit(Keep),
    Recirculate(Keep),
    Truncate,
    /// `assert` and `assume`.
    Assert(&'static str),
    Log(String),
    /// One of the embedder's.
    User(UserFunction),
}

/// All calls of a program, by site.
///
/// # Errors
/// Everything that neither v1model nor `user` has.
pub(crate) fn resolve(program: &Program, sites: &CallSites, user: &Externs) -> Result<Vec<Op>, Vec<LoadError>> {
    let (mut ops, mut errors) = (Vec::new(), Vec::new());
    for (_, instance) in program.externs.iter() {
        let name = instance.type_name.as_str();
        if !TYPES.contains(&name) && !user.has_type(name) {
            errors.push(LoadError::UnknownExtern {
                what: format!("type `{name}` (of `{}`)", instance.name),
                place: place(program, instance.loc),
                target: TARGET,
            });
        }
    }
    for (_, _, call, loc) in sites.iter(program) {
        match call_op(program, call, loc, user) {
            Ok(op) => ops.push(op),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(ops) } else { Err(errors) }
}

/// What a call of the program does.
pub(crate) fn call_op(program: &Program, call: &Call, loc: Loc, user: &Externs) -> Result<Op, LoadError> {
    let type_name = call.instance.map(|i| program.externs[i].type_name.as_str());
    let op = match call.instance {
        Some(instance) => method(program, instance, &call.function),
        None => function(program, call),
    };
    let op = op.or_else(|| user.find(type_name, &call.function).map(Op::User));
    op.ok_or_else(|| {
        let what = match call.instance {
            Some(instance) => format!("method `{}.{}`", program.externs[instance].type_name, call.function),
            None => format!("function `{}` with {} arguments", call.function, call.arguments.len()),
        };
        LoadError::UnknownExtern {
            what,
            place: place(program, loc),
            target: TARGET,
        }
    })
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
    Some(match (call.function.as_str(), arguments.len()) {
        ("random", 3) => Op::Random,
        ("digest", 2) => digest(call),
        ("hash", 5) => Op::Hash,
        ("mark_to_drop", 0 | 1) => Op::MarkToDrop,
        ("verify_checksum", 4) => Op::VerifyChecksum {
            payload: false,
            header: header_of(program, arguments.get(2)),
        },
        ("verify_checksum_with_payload", 4) => Op::VerifyChecksum {
            payload: true,
            header: header_of(program, arguments.get(2)),
        },
        ("update_checksum", 4) => Op::UpdateChecksum {
            payload: false,
            header: header_of(program, arguments.get(2)),
        },
        ("update_checksum_with_payload", 4) => Op::UpdateChecksum {
            payload: true,
            header: header_of(program, arguments.get(2)),
        },
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

/// Validity of the header that an argument is a field of.
fn header_of(program: &Program, argument: Option<&Argument>) -> Option<VarId> {
    let var = *variables(program, argument).first()?;
    match program.vars[var].kind {
        VarKind::Field { header, .. } => Some(program.headers[header].valid),
        _ => None,
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
