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

/// The source of the index of a call into an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexSource {
    /// The argument at this position.
    Argument(usize),
    /// The table entry that the action belongs to, for direct externs.
    Entry,
}

/// The operation of one extern call in the program's text.
#[derive(Clone)]
pub(crate) enum ExternOp {
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
        index_source: IndexSource,
        /// The argument `adjust_byte_count`: bytes to subtract.
        byte_adjustment: Option<usize>,
        /// `true_egress_accounting`: a packet of egress is counted by its length when it is sent.
        uses_sent_length: bool,
    },
    Meter {
        id: ExternId,
        index_source: IndexSource,
        color: Option<usize>,
        byte_adjustment: Option<usize>,
        /// Results: green, yellow, red.
        results: [u8; 3],
        /// As for [`ExternOp::Count`].
        uses_sent_length: bool,
    },
    /// The low-pass filter, `Lpf` and `DirectLpf`.
    Lpf {
        id: ExternId,
        index_source: IndexSource,
    },
    /// Weighted random early drop: the result is `drop` or `pass`.
    Wred {
        id: ExternId,
        index_source: IndexSource,
        drop: u8,
        pass: u8,
    },
    Read {
        id: ExternId,
        index_source: IndexSource,
    },
    Write {
        id: ExternId,
        index_source: IndexSource,
        value: usize,
    },
    /// Sets all cells of a register.
    Clear(ExternId),
    Register(Arc<RegisterCall>),
    /// One bit of the result, by the outcomes of comparisons: the arguments with those outcomes.
    Predicate([Option<usize>; 4]),
    /// The index of the cell that the register action around the call accesses.
    Address,
    PartsExtremum(PartsExtremum),
    Math(Arc<MathUnit>),
    /// A parser's counter is set, or, for a push, another one is put on it; with the argument that
    /// says whether it follows others.
    CounterSet(ExternId, Option<Option<usize>>),
    CounterPop(ExternId),
    CounterIsZero(ExternId),
    CounterIsNegative(ExternId),
    CounterAdd(ExternId, bool),
    /// `ParserPriority.set`. Without effect, as no parser buffer ever fills up.
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
    /// `Pktgen.emit` of T2NA: makes the packet generator send packets.
    Generate,
    PortMetadata,
    /// The functions `min` and `max`.
    MinMax {
        signed: bool,
        is_min: bool,
    },
    FunnelShift,
    /// `invalidate`: a metadata field gets the value by which it is unset.
    Invalidate,
    /// `sizeInBits` and `sizeInBytes`.
    SizeOf {
        bytes: bool,
    },
    /// A registered extern.
    Registered(Arc<BoundCall>),
}

/// `min8`, `max8`, `min16` and `max16`: the least or greatest part of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartsExtremum {
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
/// Everything that neither the architecture nor the registry has, and everything that it does not
/// do.
pub(crate) fn resolve(
    target: &'static str,
    program: &Program,
    sites: &CallSites,
    registered: &BoundExterns,
) -> Result<Vec<ExternOp>, Vec<LoadError>> {
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
            Ok(op) => match vocabulary.call(program, call, loc, |_| op.clone(), ExternOp::Registered) {
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

/// The operation of a call of the architecture's own externs.
pub(crate) fn own(program: &Program, call: &Call, loc: Loc) -> Result<Option<ExternOp>, LoadError> {
    match call.instance {
        Some(instance) => method(program, instance, call, loc),
        None => Ok(function(call)),
    }
}

/// The position of the argument with this name.
pub(crate) fn named(call: &Call, name: &str) -> Option<usize> {
    call.arguments.iter().position(|a| a.name == name)
}

fn method(program: &Program, id: ExternId, call: &Call, loc: Loc) -> Result<Option<ExternOp>, LoadError> {
    let instance = &program.externs[id];
    let type_name = instance.type_name.as_str();
    if let Some(op) = registers::method(program, id, call, loc)? {
        return Ok(Some(op));
    }
    let byte_adjustment = named(call, "adjust_byte_count");
    let index = || IndexSource::Argument(named(call, "index").unwrap_or(0));
    Ok(Some(match (type_name, call.function.as_str()) {
        ("Hash", "get") => ExternOp::Hash(Hashing::new(program, instance)?),
        ("Random", "get") => ExternOp::Random,
        ("Checksum", "add") => ExternOp::ChecksumAdd(id),
        ("Checksum", "subtract") => ExternOp::ChecksumSubtract(id),
        ("Checksum", "verify") => ExternOp::ChecksumVerify(id),
        ("Checksum", "get") => ExternOp::ChecksumGet(id),
        ("Checksum", "subtract_all_and_deposit") => ExternOp::ChecksumDeposit(id),
        ("Checksum", "update") => ExternOp::ChecksumUpdate {
            zeros_as_ones: named(call, "zeros_as_ones"),
        },
        ("Counter" | "DirectCounter", "count") => ExternOp::Count {
            id,
            index_source: if type_name == "Counter" {
                index()
            } else {
                IndexSource::Entry
            },
            byte_adjustment,
            uses_sent_length: is_true(argument(instance, "true_egress_accounting", usize::MAX)),
        },
        ("Meter" | "DirectMeter", "execute") => ExternOp::Meter {
            id,
            index_source: if type_name == "Meter" {
                index()
            } else {
                IndexSource::Entry
            },
            color: named(call, "color"),
            byte_adjustment,
            results: results(instance),
            uses_sent_length: is_true(argument(instance, "true_egress_accounting", usize::MAX)),
        },
        ("Lpf", "execute") => ExternOp::Lpf {
            id,
            index_source: index(),
        },
        ("DirectLpf", "execute") => ExternOp::Lpf {
            id,
            index_source: IndexSource::Entry,
        },
        ("Wred" | "DirectWred", "execute") => {
            let value = |name| number(argument(instance, name, usize::MAX)) as u8;
            ExternOp::Wred {
                id,
                index_source: if type_name == "Wred" {
                    index()
                } else {
                    IndexSource::Entry
                },
                drop: value("drop_value"),
                pass: value("no_drop_value"),
            }
        }
        ("RegisterParam", "read") => ExternOp::Read {
            id,
            index_source: IndexSource::Entry,
        },
        ("MathUnit", "execute") => ExternOp::Math(Arc::new(MathUnit::new(instance))),
        ("ParserCounter", "set") => ExternOp::CounterSet(id, None),
        ("ParserCounter", "push") => ExternOp::CounterSet(id, Some(named(call, "update_with_top"))),
        ("ParserCounter", "pop") => ExternOp::CounterPop(id),
        ("ParserCounter", "is_zero") => ExternOp::CounterIsZero(id),
        ("ParserCounter", "is_negative") => ExternOp::CounterIsNegative(id),
        ("ParserCounter", "increment") => ExternOp::CounterAdd(id, true),
        ("ParserCounter", "decrement") => ExternOp::CounterAdd(id, false),
        ("ParserPriority", "set") => ExternOp::Priority,
        ("Mirror", "emit") => ExternOp::Mirror { kind: kind(instance) },
        ("Resubmit", "emit") => ExternOp::Resubmit { kind: kind(instance) },
        ("Pktgen", "emit") => ExternOp::Generate,
        ("Digest", "pack") => ExternOp::Digest {
            name: instance.name.clone(),
            fields: field_names(instance),
            kind: kind(instance),
        },
        _ => return Ok(None),
    }))
}

fn function(call: &Call) -> Option<ExternOp> {
    let signed = matches!(call.type_arguments.first(), Some(TypeSpec::Int(_)));
    Some(match call.function.as_str() {
        "port_metadata_unpack" => ExternOp::PortMetadata,
        "max" => ExternOp::MinMax { signed, is_min: false },
        "min" => ExternOp::MinMax { signed, is_min: true },
        "funnel_shift_right" => ExternOp::FunnelShift,
        "invalidate" => ExternOp::Invalidate,
        "sizeInBits" => ExternOp::SizeOf { bytes: false },
        "sizeInBytes" => ExternOp::SizeOf { bytes: true },
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

/// The results of a meter for green, yellow and red.
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
