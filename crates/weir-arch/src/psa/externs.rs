//! The externs of PSA, resolved once when a program is loaded.

use crate::bound::{BoundCall, BoundExterns};
use crate::calls::Vocabulary;
use crate::cells::Cells;
use crate::error::LoadError;
use crate::hash::Algorithm;
use crate::load::{self, HANDLES, argument, member, number, unit};
use crate::state::{Resource, scalars};
use std::sync::Arc;
use weir_interp::CallSites;
use weir_ir::{Bits, Call, ConstValue, ExternId, ExternInstance, Program};

/// The name of the target in messages.
pub(crate) const TARGET: &str = "psa";

/// Extern types that are action selectors.
pub(crate) const SELECTORS: &[&str] = &["ActionSelector"];

/// The table property that says what an empty group does.
pub(crate) const EMPTY_GROUP: &str = "psa_empty_group_action";

/// Extern types of PSA.
const TYPES: &[&str] = &[
    "PacketReplicationEngine",
    "BufferingQueueingEngine",
    "Hash",
    "Checksum",
    "InternetChecksum",
    "Counter",
    "DirectCounter",
    "Meter",
    "DirectMeter",
    "Register",
    "Random",
    "ActionProfile",
    "ActionSelector",
    "Digest",
];

/// The operation of a call in the program's text.
#[derive(Clone)]
pub(crate) enum Op {
    Hash(Algorithm),
    /// `get_hash(base, data, max)`
    HashRange(Algorithm),
    ChecksumClear(ExternId),
    ChecksumUpdate(ExternId),
    ChecksumGet(ExternId, Algorithm),
    InternetClear(ExternId),
    InternetAdd(ExternId),
    InternetSubtract(ExternId),
    InternetGet(ExternId),
    InternetState(ExternId),
    InternetSetState(ExternId),
    Count(ExternId),
    /// For the entry that the action belongs to.
    DirectCount(ExternId),
    Meter(ExternId),
    DirectMeter(ExternId),
    RegisterRead(ExternId),
    RegisterWrite(ExternId),
    Random {
        min: Bits,
        max: Bits,
    },
    Digest {
        name: String,
        fields: Vec<String>,
    },
    /// Functions of deparsers: whether all of the first fields of the metadata are set and none of
    /// the others is.
    Flags {
        set: Vec<usize>,
        clear: Vec<usize>,
        /// The packet is sent to the recirculation port, which is this field of the second
        /// argument.
        recirculates: Option<usize>,
    },
    /// `assert` and `assume`.
    Assert(&'static str),
    /// A registered extern.
    Registered(Arc<BoundCall>),
}

impl Op {
    /// Whether something is left of it when the packet is gone.
    pub(crate) fn has_side_effects(&self) -> bool {
        match self {
            Op::Hash(_)
            | Op::HashRange(_)
            | Op::ChecksumClear(_)
            | Op::ChecksumUpdate(_)
            | Op::ChecksumGet(..)
            | Op::InternetClear(_)
            | Op::InternetAdd(_)
            | Op::InternetSubtract(_)
            | Op::InternetGet(_)
            | Op::InternetState(_)
            | Op::InternetSetState(_)
            | Op::RegisterRead(_)
            | Op::Flags { .. } => false,
            Op::Count(_)
            | Op::DirectCount(_)
            | Op::Meter(_)
            | Op::DirectMeter(_)
            | Op::RegisterWrite(_)
            | Op::Random { .. }
            | Op::Digest { .. }
            | Op::Assert(_)
            | Op::Registered(_) => true,
        }
    }
}

/// All calls of a program, by site.
///
/// # Errors
/// Everything that neither PSA nor the registry has.
pub(crate) fn resolve(
    program: &Program,
    sites: &CallSites,
    registered: &BoundExterns,
) -> Result<Vec<Op>, Vec<LoadError>> {
    let vocabulary = Vocabulary {
        target: TARGET,
        types: TYPES,
        registered,
    };
    vocabulary.resolve(program, sites, |call| own(program, call), Op::Registered)
}

/// The operation of a call of PSA's own externs.
pub(crate) fn own(program: &Program, call: &Call) -> Option<Op> {
    match call.instance {
        Some(instance) => method(program, instance, call),
        None => function(program, call),
    }
}

fn method(program: &Program, id: ExternId, call: &Call) -> Option<Op> {
    let instance = &program.externs[id];
    let arguments = call.arguments.len();
    Some(match (instance.type_name.as_str(), call.function.as_str(), arguments) {
        ("Hash", "get_hash", 1) => Op::Hash(algorithm(instance, "algo")),
        ("Hash", "get_hash", 3) => Op::HashRange(algorithm(instance, "algo")),
        ("Checksum", "clear", 0) => Op::ChecksumClear(id),
        ("Checksum", "update", 1) => Op::ChecksumUpdate(id),
        ("Checksum", "get", 0) => Op::ChecksumGet(id, algorithm(instance, "hash")),
        ("InternetChecksum", "clear", 0) => Op::InternetClear(id),
        ("InternetChecksum", "add", 1) => Op::InternetAdd(id),
        ("InternetChecksum", "subtract", 1) => Op::InternetSubtract(id),
        ("InternetChecksum", "get", 0) => Op::InternetGet(id),
        ("InternetChecksum", "get_state", 0) => Op::InternetState(id),
        ("InternetChecksum", "set_state", 1) => Op::InternetSetState(id),
        ("Counter", "count", 1) => Op::Count(id),
        ("DirectCounter", "count", 0) => Op::DirectCount(id),
        ("Meter", "execute", 1 | 2) => Op::Meter(id),
        ("DirectMeter", "execute", 0 | 1) => Op::DirectMeter(id),
        ("Register", "read", 1) => Op::RegisterRead(id),
        ("Register", "write", 2) => Op::RegisterWrite(id),
        ("Random", "read", 0) => random(program, instance),
        ("Digest", "pack", 1) => Op::Digest {
            name: instance.name.clone(),
            fields: field_names(instance),
        },
        _ => return None,
    })
}

fn function(program: &Program, call: &Call) -> Option<Op> {
    // A struct's scalars come in the order of the group that holds the same struct.
    let leaf_index = |role: &str, path: &str| program.shared_group(role)?.leaves.iter().position(|l| l.path == path);
    let ingress = |path| leaf_index("ingress_output_metadata", path);
    let egress = |path| leaf_index("egress_output_metadata", path);
    let flags = |set: Vec<usize>, clear: Vec<usize>| Op::Flags {
        set,
        clear,
        recirculates: None,
    };
    Some(match (call.function.as_str(), call.arguments.len()) {
        ("psa_clone_i2e", 1) => flags(vec![ingress("clone")?], Vec::new()),
        ("psa_resubmit", 1) => flags(vec![ingress("resubmit")?], vec![ingress("drop")?]),
        ("psa_normal", 1) => flags(Vec::new(), vec![ingress("drop")?, ingress("resubmit")?]),
        ("psa_clone_e2e", 1) => flags(vec![egress("clone")?], Vec::new()),
        ("psa_recirculate", 2) => Op::Flags {
            set: Vec::new(),
            clear: vec![egress("drop")?],
            recirculates: Some(leaf_index("egress_deparser_input_metadata", "egress_port")?),
        },
        ("assert", 1) => Op::Assert("assertion"),
        ("assume", 1) => Op::Assert("assumption"),
        _ => return None,
    })
}

/// The `PSA_HashAlgorithm_t` among the arguments of a constructor.
fn algorithm(instance: &ExternInstance, name: &str) -> Algorithm {
    match member(argument(instance, name, 0)) {
        "IDENTITY" => Algorithm::Identity,
        "CRC32_CUSTOM" => Algorithm::Crc32Custom,
        "CRC16" => Algorithm::Crc16,
        "CRC16_CUSTOM" => Algorithm::Crc16Custom,
        "ONES_COMPLEMENT16" => Algorithm::Csum16,
        // CRC32, and TARGET_DEFAULT, which is up to us.
        _ => Algorithm::Crc32,
    }
}

/// Bounds are as wide as the instance's type; where that is `int`, 64 bits.
fn random(program: &Program, instance: &ExternInstance) -> Op {
    let ty = instance.type_arguments.first().cloned().unwrap_or_default();
    let width = scalars(&ty, "").first().map_or(64, |(_, w)| *w);
    let bound = |name, position| load::scalar(program, argument(instance, name, position), width);
    Op::Random {
        min: bound("min", 0),
        max: bound("max", 1),
    }
}

fn field_names(instance: &ExternInstance) -> Vec<String> {
    let ty = instance.type_arguments.first().cloned().unwrap_or_default();
    scalars(&ty, "").into_iter().map(|(name, _)| name).collect()
}

/// The state of an instance.
pub(crate) fn resource(program: &Program, index: usize, instance: &ExternInstance) -> Resource {
    let size = |name: &str, position| number(argument(instance, name, position));
    let unit = |position| unit(argument(instance, "type", position));
    match instance.type_name.as_str() {
        "Counter" => Resource::Counter(unit(1), Cells::new(size("n_counters", 0))),
        "DirectCounter" => Resource::DirectCounter(unit(0), Cells::new(HANDLES)),
        "Meter" => Resource::Meter(unit(1), Cells::new(size("n_meters", 0))),
        "DirectMeter" => Resource::DirectMeter(unit(0), Cells::new(HANDLES)),
        "Register" => {
            let ty = instance.type_arguments.first().cloned().unwrap_or_default();
            load::register(program, &ty, size("size", 0), initial(instance))
        }
        "ActionProfile" => Resource::Profile(load::profile(program, index, instance, size("size", 0), false), None),
        "ActionSelector" => Resource::Profile(
            load::profile(program, index, instance, size("size", 1), true),
            Some(algorithm(instance, "algo")),
        ),
        _ => Resource::None,
    }
}

/// The initial value of a register's cells.
fn initial(instance: &ExternInstance) -> Option<&ConstValue> {
    argument(instance, "initial_value", 1)
}
