//! Architectures: which programmable blocks run in which order, and what the externs mean.
//!
//! [`ARCHITECTURES`] lists them. [`targets()`] describes every one to the compiler. [`load`] makes
//! an [`Architecture`] of a compiled program: a state machine that takes a packet and the time, and
//! answers with what the switch must do ([`Action`]). v1model is run as simple_switch runs it
//! ([`V1Model`] says where not), PSA as its specification says ([`Psa`]), TNA and T2NA as the chips
//! do ([`Tna`] says where not).
//!
//! The crate has no ports, no queues, no replication lists, no clone sessions, no clock and no
//! threads: those are the switch's. It knows no control-plane protocol.
//!
//! ```
//! use std::sync::Arc;
//! use weir_arch::{LoadError, load};
//! use weir_extern_api::Registry;
//! use weir_interp::Interpreter;
//! use weir_ir::Program;
//!
//! let program = Program { target: "pna".to_owned(), ..Program::default() };
//! let refused = load(Arc::new(Interpreter::new(Arc::new(program))), &Registry::default());
//! assert!(matches!(refused, Err(LoadError::Target { .. })));
//! ```
#![forbid(unsafe_code)]

mod bound;
mod calls;
mod cells;
mod choices;
mod conform;
mod custom_crc;
mod driver;
mod emits;
mod error;
mod filter;
mod fused;
mod generator;
pub mod hash;
mod key_bytes;
mod load;
mod meter;
mod pipeline_builder;
mod psa;
mod queue_use;
mod register;
mod registry;
mod reparse;
mod service;
mod signatures;
mod state;
mod tna;
mod v1;

/// Components of architectures, also for those that are defined outside this crate.
///
/// An implementation of [`Architecture`] keeps [`kit::Engines`] to run its programmable blocks,
/// what each call does (resolved by a [`kit::Vocabulary`]), and the variables that it sets and
/// reads. While a programmable block runs, a [`kit::Service`] does what tables and stateful externs
/// have in common ([`Env::service`] lends it). `examples/own_architecture` is one.
pub mod kit {
    pub use crate::calls::{Engines, Vocabulary, block_with_role, note};
    pub use crate::load::{HANDLES, argument, enum_index, member, number, profile, register, scalar, state_of, unit};
    pub use crate::service::{Service, all_scalars, digest_fields, digest_headers, hash_input};
}

pub use bound::{BoundCall, BoundExterns};
pub use cells::Cells;
pub use choices::{Choice, ChoiceKind, Choices, Defaults, Enumeration, OUTCOME_CAP, Script, enumerate};
pub use custom_crc::{
    CUSTOM_CRC_WIDTHS, CrcScope, CustomCalculation, CustomCrcError, calculations, custom_crcs, unset_custom_crcs,
};
pub use driver::{
    Action, Architecture, Drop, DropReason, EgressPacket, Env, Exclusion, Handling, IngressPacket, MAX_PASSES, Origin,
    PRIORITIES, QueueInfo, ReplicationRules,
};
pub use error::{LeftOut, LoadError, NotCompiled, place};
pub use filter::{Lpf, LpfConfig, LpfKind, Wred, WredConfig};
pub use fused::{EgressMetadata, Fused, FusedArguments, FusedExit, FusedPacket, Input, Queueing};
pub use generator::{
    Application, BUFFER, Counts, Generated, GeneratorError, GeneratorModel, GeneratorPort, GeneratorUndo,
    GeneratorWrite, Generators, MASKS, Pattern, Trigger,
};
pub use key_bytes::KeyBytes;
pub use meter::{Color, Meter, MeterConfig, Rate};
pub use psa::Psa;
pub use register::{Progress, RegisterArray, WordCells};
pub use registry::{
    ARCHITECTURES, Advice, Loader, Observer, Registration, advice, known, load, nonconformities, observes, port_bits,
    port_metadata, targets, unimplemented,
};
pub use state::{Count, Digest, LogMessage, MESSAGE_CAPACITY, Messages, Resource, State, TableState, Unit, scalars};
pub use tna::Tna;
pub use v1::V1Model;
pub use weir_ir::target::{Calculation, CustomCrc, calculation_name};
