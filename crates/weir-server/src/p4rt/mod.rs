//! P4Runtime 1.5.
//!
//! - What clients say is resolved and checked by `change` (writes), `read` (queries) and `program` (pipelines), with
//!   `schema` for the numbers of P4Info; `apply` makes changes on a replica of the switch.
//! - `arbitration` and `digest` are state machines without I/O.
//! - `service` and the modules beside it are the server: RPCs, streams and what is polled.

#![allow(
    deprecated,
    reason = "controllers of older versions use fields that newer ones should not"
)]

mod action;
mod apply;
mod arbitration;
mod bytes;
mod change;
mod config;
mod data;
mod digest;
mod matching;
mod packet;
mod program;
mod read;
mod refusal;
mod role;
mod schema;
mod server;
mod service;
mod transfer;
mod translation;

pub use config::{Config, Tls};
pub use refusal::{Cause, Refusal, batch_status, code};
pub use role::TYPE_NAME as ROLE_CONFIG;
pub use server::{ServeError, serve, serve_on};
pub use service::P4Runtime;

/// The version of the specification.
pub const VERSION: &str = "1.5.0";
