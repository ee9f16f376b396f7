//! The BF Runtime server: one device, one program, several clients.
//!
//! It relies on `Device` for the data plane and its replicas, and on the shared layers of this
//! crate for admission, phases and errors. It stores only attributes and port settings itself:
//! table entries are in the switch.
//!
//! - `schema` is the index of a program and its device by the ids of `bfrt.json`. `change` resolves
//!   updates with it: `entry` for keys and data of match-action tables, `wire` for plain updates of
//!   them in large batches, `cells` for counters, meters, registers and filters, `fixed` for tables
//!   of the device.
//! - `apply` executes changes on a replica of the switch, `read` reads a replica.
//! - `clients` is a state machine without I/O: which clients are subscribed, and bound to which
//!   program.
//! - `service` is the server: RPCs, streams and periodic polling.
//!
//! Source: the known behaviour of the reference server; see docs/bfrt.md and
//! docs/bfrt-compliance.md.

mod apply;
mod attribute;
mod cells;
mod change;
mod clients;
mod config;
mod entry;
mod errors;
pub(crate) mod fixed;
pub(crate) mod program;
mod read;
mod schema;
mod server;
mod service;
pub(crate) mod target;
pub(crate) mod value;
mod wire;

pub use config::Config;
pub use server::{serve, serve_on};
pub use service::BfRuntime;

/// The program name that addresses only the tables of the device, independent of its program.
pub const SHARED: &str = "$SHARED";
