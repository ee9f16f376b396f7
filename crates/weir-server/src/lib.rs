//! Control-plane servers of a switch.
//!
//! A server speaks to a [`DataPlane`]: one switch, or several replicas of it on several threads.
//! [`Standalone`] is a data plane without devices, for tests and for embedding.
//!
//! A request passes admission (`admission`, `decoding`, `batches`), acquires its locks
//! (`device`, `phases`, `yielding`), and is executed by one of the protocols ([`p4rt`],
//! [`bfrt`]). docs/internals/requests.md describes this.
//!
//! This crate opens no device, owns no packet path, and contains no client.
#![forbid(unsafe_code)]

mod admission;
mod backlog;
mod batches;
pub mod bfrt;
mod calls;
mod command;
mod connections;
pub mod container;
mod dataplane;
mod decoding;
mod device;
mod fields;
pub mod http;
mod loading;
pub mod p4rt;
mod peers;
mod phases;
mod ports;
mod reading;
mod refusal;
mod serving;
mod standalone;
mod state;
mod tasks;
#[cfg(test)]
mod testing;
mod threads;
mod tls;
mod yielding;

pub use calls::CallCount;
pub use dataplane::{
    Command, Completion, CpuPacket, DataPlane, Event, Events, Gone, Inbox, Length, LoadFailure, PortInfo, gather,
    gather_by,
};
pub use device::Device;
pub use refusal::{Cause, Refusal};
pub use serving::{Address, Listener, ServeError, SocketFile};
pub use standalone::{Clock, Standalone, StandaloneError};
pub use state::{State, StateFile};
pub use tls::{OutOfDate, Tls, TlsError, TlsPart, check_client_tls};
pub use weir_state::{Finding, Options as StateOptions, StateError};
