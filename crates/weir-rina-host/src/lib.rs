//! How applications use a RINA IPC process of their machine.
//!
//! [`Ipcp::connect`] connects to the Unix socket of `weir rina ipcp`. An application registers a
//! name and accepts flows, or allocates a flow to another application by its name; SDUs keep their
//! boundaries. [`server`] is the other side of the socket, [`protocol`] what both speak.
//!
//! Calls block; an [`Ipcp`] and its flows may be used from many threads. A flow that is not read
//! delays no other, and a writer waits while its flow takes nothing (back-pressure).
//!
//! The crate knows nothing of EFCP, CDAP and routing: that is the IPC process's.
//!
//! ```no_run
//! use std::path::Path;
//! use std::time::Duration;
//! use weir_rina_host::{Ipcp, Qos};
//!
//! # fn main() -> Result<(), weir_rina_host::HostError> {
//! let ipcp = Ipcp::connect(Path::new("/run/weir/host1.sock"))?;
//! let flow = ipcp.allocate("greeter", "hello-server", Qos::RELIABLE, Duration::from_secs(5))?;
//! flow.write_sdu(b"hello")?;
//! let answer = flow.read_sdu(Duration::from_secs(5))?;
//! # Ok(()) }
//! ```
#![forbid(unsafe_code)]

mod client;
pub mod protocol;
pub mod server;

pub use client::{Flow, HostError, Incoming, Ipcp, Registration};
pub use protocol::Qos;
