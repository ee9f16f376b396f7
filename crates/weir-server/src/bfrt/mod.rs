//! BF Runtime.
//!
//! - `schema` is a program and its device by the numbers of `bfrt.json`; `change` resolves updates
//!   by it, with `entry` for keys and data of match-action tables, `wire` for plain updates of them
//!   in large batches, `cells` for counters, meters, registers and filters and `fixed` for tables
//!   of the device.
//! - `apply` makes changes on a replica of the switch, `read` reads one.
//! - `clients` is a state machine without I/O: who is there, and bound to what.
//! - `service` is the server: RPCs, streams and what is polled.
//!
//! Source: what is known of the reference server's behaviour; see docs/bfrt.md and
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

/// The name under which clients find only what the device has whatever its program.
pub const SHARED: &str = "$SHARED";
