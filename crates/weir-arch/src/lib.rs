//! Architectures: which blocks of a program run in which order, and what its externs mean.
//!
//! [`targets`] describes every architecture to the compiler. [`load`] makes an [`Architecture`] of a
//! compiled program: a state machine that takes a packet and the time, and answers with what is to be
//! done ([`Action`]). v1model is run as simple_switch runs it ([`V1Model`] says where not); PSA can be
//! compiled for and not run yet.
//!
//! What this crate does not do: it has no ports, no queues, no replication lists, no clone sessions,
//! no clock and no threads: those are the switch's. It knows no control-plane protocol.
//!
//! ```
//! use std::sync::Arc;
//! use weir_arch::{LoadError, load};
//! use weir_interp::Interpreter;
//! use weir_ir::Program;
//!
//! let program = Program { target: "pna".to_owned(), ..Program::default() };
//! let refused = load(Arc::new(Interpreter::new(Arc::new(program))));
//! assert!(matches!(refused, Err(LoadError::Target { .. })));
//! ```
#![forbid(unsafe_code)]

mod cells;
mod choices;
mod driver;
mod error;
pub mod hash;
mod load;
mod meter;
mod state;
pub mod targets;
mod v1;

use std::sync::Arc;
use weir_interp::Executable;

pub use cells::Cells;
pub use choices::{
    Choice, ChoiceKind, Choices, Defaults, Enumeration, OUTCOME_CAP, Script, enumerate,
};
pub use driver::{
    Action, Architecture, Drop, DropReason, EgressPacket, Env, IngressPacket, MAX_PASSES, Origin,
    QueueInfo,
};
pub use error::{LoadError, place};
pub use meter::{Color, Meter, MeterConfig, Rate};
pub use state::{
    Count, Digest, LogMessage, MESSAGE_CAPACITY, Messages, RegisterArray, Resource, State,
    TableState, Unit, scalars,
};
pub use targets::targets;
pub use v1::V1Model;

/// The architecture of a program, with the engine that runs it.
///
/// # Errors
/// The program's target cannot be run, a block is missing, or an extern is unknown.
pub fn load(engine: Arc<dyn Executable>) -> Result<Box<dyn Architecture>, LoadError> {
    let target = engine.program().target.clone();
    match target.as_str() {
        "v1model" => Ok(Box::new(V1Model::new(engine)?)),
        "psa" => Err(LoadError::Target {
            target,
            why: "PSA programs can be checked and described, not run yet",
            known: "v1model",
        }),
        _ => Err(LoadError::Target {
            target,
            why: "there is no such architecture here",
            known: "v1model",
        }),
    }
}
