//! Architectures: which blocks of a program run in which order, and what its externs mean.
//!
//! [`targets()`] describes every architecture to the compiler. [`load`] makes an [`Architecture`] of a
//! compiled program: a state machine that takes a packet and the time, and answers with what is to be
//! done ([`Action`]). v1model is run as simple_switch runs it ([`V1Model`] says where not); PSA can be
//! compiled for and not run yet.
//!
//! What this crate does not do: it has no ports, no queues, no replication lists, no clone sessions,
//! no clock and no threads: those are the switch's. It knows no control-plane protocol.
//!
//! ```
//! use std::sync::Arc;
//! use weir_arch::{Externs, LoadError, load};
//! use weir_interp::Interpreter;
//! use weir_ir::Program;
//!
//! let program = Program { target: "pna".to_owned(), ..Program::default() };
//! let refused = load(Arc::new(Interpreter::new(Arc::new(program))), &Externs::default());
//! assert!(matches!(refused, Err(LoadError::Target { .. })));
//! ```
#![forbid(unsafe_code)]

mod cells;
mod choices;
mod driver;
mod error;
mod fused;
pub mod hash;
mod load;
mod meter;
mod state;
pub mod targets;
mod user;
mod v1;

use std::collections::HashSet;
use std::sync::Arc;
use weir_interp::{Executable, Interpreter};
use weir_ir::passes::read_by;
use weir_ir::{Program, Type, VarId};

pub use cells::Cells;
pub use choices::{Choice, ChoiceKind, Choices, Defaults, Enumeration, OUTCOME_CAP, Script, enumerate};
pub use driver::{
    Action, Architecture, Drop, DropReason, EgressPacket, Env, IngressPacket, MAX_PASSES, Origin, QueueInfo,
};
pub use error::{LoadError, place};
pub use fused::{Fused, FusedArguments, FusedExit, FusedPacket, Input};
pub use meter::{Color, Meter, MeterConfig, Rate};
pub use state::{
    Count, Digest, LogMessage, MESSAGE_CAPACITY, Messages, RegisterArray, Resource, State, TableState, Unit, scalars,
};
pub use targets::targets;
pub use user::{Externs, UserFunction};
pub use v1::V1Model;

/// The architecture of a program, with the engine that runs it and externs besides its own.
///
/// # Errors
/// The first reason why it cannot be run: its target, a missing block, or an unknown extern.
/// [`unimplemented`] knows the others.
pub fn load(engine: Arc<dyn Executable>, externs: &Externs) -> Result<Box<dyn Architecture>, LoadError> {
    let target = engine.program().target.clone();
    load_all(engine, externs).map_err(|errors| {
        let first = errors.into_iter().next();
        first.unwrap_or(LoadError::Target {
            target,
            why: "it was refused",
            known: KNOWN,
        })
    })
}

/// Whether an architecture reads a scalar of a shared group by itself, besides what the program's code
/// reads: intrinsic metadata, what a field list keeps for a copy of the packet, and, where the program reads
/// a packet's length, which headers count for it. The passes of weir-ir may drop everything else that no code
/// reads.
pub fn observes(program: &Program) -> impl Fn(&str, &weir_ir::SharedLeaf) -> bool + use<> {
    let length = program.shared_var("standard_metadata", "packet_length");
    let mut length_is_read = false;
    // Before egress the length is that of the packet as it came.
    let late = |role: &str| !matches!(role, "parser" | "verify_checksum" | "ingress");
    for block in program.blocks.iter().filter(|b| late(&b.role)) {
        read_by(program, &block.body, &mut |v| length_is_read |= Some(v) == length);
    }
    let measured: HashSet<VarId> = match length_is_read {
        true => measured(program).collect(),
        false => HashSet::new(),
    };
    move |role, leaf| {
        let is_user_data = matches!(
            role,
            "headers" | "metadata" | "ingress_headers" | "egress_headers" | "ingress_metadata" | "egress_metadata"
        );
        !is_user_data || measured.contains(&leaf.var) || leaf.annotations.iter().any(|a| a.name == "field_list")
    }
}

/// What the length of headers depends on: whether they are valid, and how long their varbits are.
fn measured(program: &Program) -> impl Iterator<Item = VarId> + '_ {
    program.headers.iter().flat_map(|(_, header)| {
        let fields = header.fields.iter().copied();
        let varbits = fields.filter(|f| matches!(program.vars[*f].ty, Type::Varbit(_)));
        varbits.chain([header.valid])
    })
}

/// All reasons why a program cannot be run without externs of the caller's; none: it can.
#[must_use]
pub fn unimplemented(program: &Program) -> Vec<LoadError> {
    let engine = Arc::new(Interpreter::new(Arc::new(program.clone())));
    load_all(engine, &Externs::default()).err().unwrap_or_default()
}

/// Targets that can be run.
const KNOWN: &str = "v1model";

fn load_all(engine: Arc<dyn Executable>, externs: &Externs) -> Result<Box<dyn Architecture>, Vec<LoadError>> {
    let target = engine.program().target.clone();
    let why = match target.as_str() {
        "v1model" => return Ok(Box::new(V1Model::new(engine, externs)?)),
        "psa" => "PSA programs can be checked and described, not run yet",
        _ => "there is no such architecture here",
    };
    Err(vec![LoadError::Target {
        target,
        why,
        known: KNOWN,
    }])
}
