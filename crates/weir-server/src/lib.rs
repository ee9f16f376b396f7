//! Control-plane servers of a switch.
//!
//! A server speaks to a [`DataPlane`]: one switch, or several replicas of it on several threads.
//! [`Standalone`] is a data plane without devices, for tests and for whoever embeds a switch and
//! brings its packets along.
//!
//! What this crate does not do: it opens no device and owns no packet path, and it knows no client.
#![forbid(unsafe_code)]

mod backlog;
mod batches;
pub mod bfrt;
mod calls;
mod connections;
mod dataplane;
mod decoding;
mod device;
mod fields;
mod giving;
pub mod http;
mod loading;
pub mod p4rt;
mod peers;
mod ports;
mod reading;
mod receiving;
mod refusal;
mod serving;
mod standalone;
mod state;
mod tasks;
#[cfg(test)]
mod testing;
mod tls;
mod turns;

pub use calls::CallCount;
pub use dataplane::{
    CpuPacket, DataPlane, Done, Event, Events, Gone, Inbox, Length, LoadFailure, Order, PortInfo, gather, gather_by,
};
pub use device::Device;
pub use refusal::{Cause, Refusal};
pub use serving::{Address, Listener, ServeError, SocketFile};
pub use standalone::{Clock, Standalone};
pub use state::{State, StateFile};
pub use tls::{OutOfDate, Tls, TlsError, TlsPart};
pub use weir_state::{Finding, Options as StateOptions, StateError};
