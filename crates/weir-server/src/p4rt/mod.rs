//! P4Runtime 1.5.
//!
//! - Requests are resolved and checked by `change` (writes), `read` (queries) and `program`
//!   (pipelines), with `schema` for the numbers of P4Info; `apply` makes changes on a replica of
//!   the switch.
//! - `arbitration` and `digest` are state machines without I/O.
//! - `service` and the modules beside it are the server: RPCs, streams, and polling of digests and
//!   idle entries.

#![allow(
    deprecated,
    reason = "controllers of older versions use fields that newer ones should not"
)]

mod action;
pub(crate) mod apply;
mod arbitration;
mod bytes;
mod change;
mod config;
mod custom_crc;
mod data;
mod digest;
mod extern_keys;
mod matching;
mod packet;
mod port_queues;
pub(crate) mod program;
pub(crate) mod read;
pub(crate) mod refusal;
mod role;
mod schema;
mod server;
mod service;
pub(crate) mod transfer;
mod translation;
mod wire;

pub use crate::serving::ServeError;
pub use crate::tls::Tls;
pub use config::Config;
pub use refusal::{Cause, Refusal, batch_status, code};
pub use role::TYPE_NAME as ROLE_CONFIG;
pub use server::{serve, serve_on};
pub use service::P4Runtime;

/// The version of the specification.
pub const VERSION: &str = "1.5.0";
