//! The externs of both architectures, resolved once when a program is loaded.

use super::hashes::Hashing;
use super::math::MathUnit;
use super::registers::{self, RegisterCall};
use crate::bound::{BoundCall, BoundExterns};
use crate::calls::Vocabulary;
use crate::cells::Cells;
use crate::error::{LoadError, place};
use crate::filter::{Lpf, Wred};
use crate::load::{self, HANDLES, argument, number, unit};
use crate::state::{Resource, scalars};
use std::sync::Arc;
use weir_interp::CallSites;
use weir_ir::{Call, ConstValue, ExternId, ExternInstance, Loc, Program, TypeSpec};

/// Extern types that are action selectors.
pub(crate) const SELECTORS: &[&str] = &["ActionSelector"];

/// Extern types that programs may have instances of.
const TYPES: &[&str] = &[
    "ActionProfile",
    "ActionSelector",
    "Alpm",
    "Atcam",
    "CRCPolynomial",
    "Checksum",
    "Counter",
    "Digest",
    "DirectCounter",
    "DirectLpf",
    "DirectMeter",
    "DirectRegister",
    "DirectRegisterAction",
    "DirectRegisterAction2",
    "DirectRegisterAction3",
    "DirectRegisterAction4",
    "DirectWred",
    "Hash",
    "IdleTimeout",
    "Lpf",
    "MathUnit",
    "Meter",
    "MinMaxAction",
    "MinMaxAction2",
    "MinMaxAction3",
    "MinMaxAction4",
    "Mirror",
    "ParserCounter",
    "ParserPriority",
    "Pktgen",
    "Random",
    "Register",
    "RegisterAction",
    "RegisterAction2",
    "RegisterAction3",
    "RegisterAction4",
    "RegisterParam",
    "Resubmit",
    "SelectorAction",
    "Wred",
];

/// Extern types that programs may not have, and why.
const REFUSED: &[(&str, &str)] = &[
    ("LearnAction", LEARNING),
    ("LearnAction2", LEARNING),
    ("LearnAction3", LEARNING),
    ("LearnAction4", LEARNING),
];

const LEARNING: &str = "there is no public description of what its digest and `learn` are; use a RegisterAction";

/// Where a call is in an array, or which entry it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The argument at this position says.
    Argument(usize),
    /// The entry that the action belongs to.
    Entry,
}

/// What one call of the program's text does.
#[derive(Clone)]
pub(crate) enum Op {
    Hash(Hashing),
    Random,
    ChecksumAdd(ExternId),
    ChecksumSubtract(ExternId),
    ChecksumVerify(ExternId),
    ChecksumGet(ExternId),
    ChecksumDeposit(ExternId),
    ChecksumUpdate {
        zeros_as_ones: Option<usize>,
    },
    Count {
        id: ExternId,
        at: At,
        /// The argument with the bytes that do not count.
        less: Option<usize>,
        /// It counts a packet of egress as it is sent.
        as_sent: bool,
    },
    Meter {
        id: ExternId,
        at: At,
        color: Option<usize>,
        less: Option<usize>,
        /// Results: green, yellow, red.
        results: [u8; 3],
        /// Of a packet of egress it takes as many bytes as are sent.
        as_sent: bool,
    },
    Smooth {
        id: ExternId,
        at: At,
    },
    DropEarly {
        id: ExternId,
        at: At,
        drop: u8,
        pass: u8,
    },
    Read {
        id: ExternId,
        at: At,
    },
    Write {
        id: ExternId,
        at: At,
        value: usize,
    },
    Fill(ExternId),
    Register(Arc<RegisterCall>),
    /// One bit of the result, by what comparisons said: the arguments of those that there are.
    Predicate([Option<usize>; 4]),
    Address,
    Extremum(Extremum),
    Math(Arc<MathUnit>),
    /// A parser's counter is set, or, for a push, another one is put on it; with the argument that
    /// says whether it follows others.
    CounterSet(ExternId, Option<Option<usize>>),
    CounterPop(ExternId),
    CounterIsZero(ExternId),
    CounterIsNegative(ExternId),
    CounterAdd(ExternId, bool),
    /// Nothing: there is no buffer of the parser's that could be full.
    Priority,
    Mirror {
        kind: Option<u64>,
    },
    Resubmit {
        kind: Option<u64>,
    },
    Digest {
        name: String,
        fields: Vec<String>,
        kind: Option<u64>,
    },
    /// Packets of the generator.
    Generate,
    PortMetadata,
    Larger {
        signed: bool,
        smaller: bool,
    },
    FunnelShift,
    Invalidate,
    Size {
        bytes: bool,
    },
    /// A registered extern.
    Registered(Arc<BoundCall>),
}

/// `min8`, `max8`, `min16` and `max16`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extremum {
    pub is_max: bool,
    /// Bits of a part.
    pub width: u32,
    /// Positions of the arguments that are not always there.
    pub index: Option<usize>,
    pub postmod: Option<usize>,
}

/// All calls of a program, by site.
///
/// # Errors
/// Everything that neither the architecture nor the registry has, and everything that it does not do.
pub(crate) fn resolve(
    target: &'static str,
    program: &Program,
    sites: &CallSites,
    registered: &BoundExterns,
) -> Result<Vec<Op>, Vec<LoadError>> {
    let mut errors: Vec<LoadError> = program
        .externs
        .iter()
        .filter(|(_, e)| !registered.has_type(&e.type_name))
        .filter_map(|(_, e)| check(program, e).err())
        .collect();
    errors.extend(registers::check_nesting(program).err());
    let mut ops = Vec::new();
    let vocabulary = Vocabulary {
        target,
        types: TYPES,
        registered,
    };
    for (_, _, call, loc) in sites.iter(program) {
        let refused = |id: ExternId| REFUSED.iter().any(|(name, _)| *name == program.externs[id].type_name);
        if call.instance.is_some_and(refused) {
            continue;
        }
        match own(program, call, loc) {
            Err(error) => errors.push(error),
            Ok(op) => match vocabulary.call(program, call, loc, |_| op.clone(), Op::Registered) {
                Ok(op) => ops.push(op),
                Err(error) => errors.push(error),
            },
        }
    }
    if errors.is_empty() { Ok(ops) } else { Err(errors) }
}

fn check(program: &Program, instance: &ExternInstance) -> Result<(), LoadError> {
    let name = instance.type_name.as_str();
    let refused = |problem: String| LoadError::BadExtern {
        problem,
        place: place(program, instance.loc),
    };
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(refused(format!(
            "`{}` of type {name} cannot be run: {why}",
            instance.name
        )));
    }
    if !TYPES.contains(&name) {
        return Err(LoadError::UnknownExtern {
            what: format!("type `{name}` (of `{}`)", instance.name),
            place: place(program, instance.loc),
            target: "tna",
        });
    }
    if name == "Hash" {
        Hashing::new(program, instance)?;
    }
    registers::check(program, instance)
}

/// What a call of the architecture's own does.
pub(crate) fn own(program: &Program, call: &Call, loc: Loc) -> Result<Option<Op>, LoadError> {
    match call.instance {
        Some(instance) => method(program, instance, call, loc),
        None => Ok(function(call)),
    }
}

/// The position of the argument with this name.
pub(crate) fn named(call: &Call, name: &str) -> Option<usize> {
    call.arguments.iter().position(|a| a.name == name)
}

fn method(program: &Program, id: ExternId, call: &Call, loc: Loc) -> Result<Option<Op>, LoadError> {
    let instance = &program.externs[id];
    let type_name = instance.type_name.as_str();
    if let Some(op) = registers::method(program, id, call, loc)? {
        return Ok(Some(op));
    }
    let less = named(call, "adjust_byte_count");
    let index = || At::Argument(named(call, "index").unwrap_or(0));
    Ok(Some(match (type_name, call.function.as_str()) {
        ("Hash", "get") => Op::Hash(Hashing::new(program, instance)?),
        ("Random", "get") => Op::Random,
        ("Checksum", "add") => Op::ChecksumAdd(id),
        ("Checksum", "subtract") => Op::ChecksumSubtract(id),
        ("Checksum", "verify") => Op::ChecksumVerify(id),
        ("Checksum", "get") => Op::ChecksumGet(id),
        ("Checksum", "subtract_all_and_deposit") => Op::ChecksumDeposit(id),
        ("Checksum", "update") => Op::ChecksumUpdate {
            zeros_as_ones: named(call, "zeros_as_ones"),
        },
        ("Counter" | "DirectCounter", "count") => Op::Count {
            id,
            at: if type_name == "Counter" { index() } else { At::Entry },
            less,
            as_sent: is_true(argument(instance, "true_egress_accounting", usize::MAX)),
        },
        ("Meter" | "DirectMeter", "execute") => Op::Meter {
            id,
            at: if type_name == "Meter" { index() } else { At::Entry },
            color: named(call, "color"),
            less,
            results: results(instance),
            as_sent: is_true(argument(instance, "true_egress_accounting", usize::MAX)),
        },
        ("Lpf", "execute") => Op::Smooth { id, at: index() },
        ("DirectLpf", "execute") => Op::Smooth { id, at: At::Entry },
        ("Wred" | "DirectWred", "execute") => {
            let value = |name| number(argument(instance, name, usize::MAX)) as u8;
            Op::DropEarly {
                id,
                at: if type_name == "Wred" { index() } else { At::Entry },
                drop: value("drop_value"),
                pass: value("no_drop_value"),
            }
        }
        ("RegisterParam", "read") => Op::Read { id, at: At::Entry },
        ("MathUnit", "execute") => Op::Math(Arc::new(MathUnit::new(instance))),
        ("ParserCounter", "set") => Op::CounterSet(id, None),
        ("ParserCounter", "push") => Op::CounterSet(id, Some(named(call, "update_with_top"))),
        ("ParserCounter", "pop") => Op::CounterPop(id),
        ("ParserCounter", "is_zero") => Op::CounterIsZero(id),
        ("ParserCounter", "is_negative") => Op::CounterIsNegative(id),
        ("ParserCounter", "increment") => Op::CounterAdd(id, true),
        ("ParserCounter", "decrement") => Op::CounterAdd(id, false),
        ("ParserPriority", "set") => Op::Priority,
        ("Mirror", "emit") => Op::Mirror { kind: kind(instance) },
        ("Resubmit", "emit") => Op::Resubmit { kind: kind(instance) },
        ("Pktgen", "emit") => Op::Generate,
        ("Digest", "pack") => Op::Digest {
            name: instance.name.clone(),
            fields: field_names(instance),
            kind: kind(instance),
        },
        _ => return Ok(None),
    }))
}

fn function(call: &Call) -> Option<Op> {
    let signed = matches!(call.type_arguments.first(), Some(TypeSpec::Int(_)));
    Some(match call.function.as_str() {
        "port_metadata_unpack" => Op::PortMetadata,
        "max" => Op::Larger { signed, smaller: false },
        "min" => Op::Larger { signed, smaller: true },
        "funnel_shift_right" => Op::FunnelShift,
        "invalidate" => Op::Invalidate,
        "sizeInBits" => Op::Size { bytes: false },
        "sizeInBytes" => Op::Size { bytes: true },
        _ => return None,
    })
}

fn is_true(value: Option<&ConstValue>) -> bool {
    matches!(value, Some(ConstValue::Bool(true)))
}

/// The type of the deparser's that an instance was made for.
fn kind(instance: &ExternInstance) -> Option<u64> {
    instance.arguments.first().map(|(_, value)| number(Some(value)))
}

/// What a meter answers for green, yellow and red.
fn results(instance: &ExternInstance) -> [u8; 3] {
    let of = |name: &str, standard| match argument(instance, name, usize::MAX) {
        Some(value) => number(Some(value)) as u8,
        None => standard,
    };
    [of("green", 0), of("yellow", 1), of("red", 3)]
}

fn field_names(instance: &ExternInstance) -> Vec<String> {
    let ty = instance.type_arguments.first().cloned().unwrap_or_default();
    scalars(&ty, "").into_iter().map(|(name, _)| name).collect()
}

/// The state of an instance.
pub(crate) fn resource(program: &Program, id: ExternId, instance: &ExternInstance) -> Resource {
    let size = || number(argument(instance, "size", 0));
    let unit = || unit(argument(instance, "type", usize::MAX));
    match instance.type_name.as_str() {
        "Counter" => Resource::Counter(unit(), Cells::new(size())),
        "DirectCounter" => Resource::DirectCounter(unit(), Cells::new(HANDLES)),
        "Meter" => Resource::Meter(unit(), Cells::new(size())),
        "DirectMeter" => Resource::DirectMeter(unit(), Cells::new(HANDLES)),
        "Lpf" => Resource::Lpf(Cells::<Lpf>::new(size())),
        "DirectLpf" => Resource::Lpf(Cells::<Lpf>::new(HANDLES)),
        "Wred" => Resource::Wred(Cells::<Wred>::new(size())),
        "DirectWred" => Resource::Wred(Cells::<Wred>::new(HANDLES)),
        "Register" | "DirectRegister" | "RegisterParam" => registers::array(program, instance),
        "ActionProfile" => Resource::Profile(load::profile(program, id.index(), instance, size(), false), None),
        "ActionSelector" => selector(program, id, instance),
        _ => Resource::None,
    }
}

/// A selector's members are those of its profile, or its own where it was made with a size. A table
/// names the one or the other.
fn selector(program: &Program, id: ExternId, instance: &ExternInstance) -> Resource {
    let size = match argument(instance, "action_profile", usize::MAX) {
        Some(ConstValue::Extern(profile)) => {
            let profile = program.externs.get(*profile);
            number(profile.and_then(|p| argument(p, "size", 0)))
        }
        _ => number(argument(instance, "size", usize::MAX)),
    };
    let hash = match argument(instance, "hash", usize::MAX) {
        Some(ConstValue::Extern(hash)) => program.externs.get(*hash),
        _ => None,
    };
    let algorithm = hash.and_then(|h| Hashing::new(program, h).ok()).map(Hashing::algorithm);
    let profile = load::profile(program, id.index(), instance, size, true);
    Resource::Profile(profile, algorithm)
}
