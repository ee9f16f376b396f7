//! A RINA IPC process: one member of one DIF, as a state machine without I/O.
//!
//! [`IpcProcess`] combines the parts of [`weir_rina`]: it finds neighbours by the shim's ARP,
//! enrols (or enrols others), watches them by keepalive, floods link states, computes routes, keeps
//! the directory of applications, and allocates flows whose connections it runs. Its owner gives it
//! frames, the time, and requests of applications; it gives back [`Output`]s: frames, changes of
//! the forwarding table for a switch, and events.
//!
//! PDUs have the format of the P4 prototype ([`weir_rina::efcp::Paper`]). Messages of layer
//! management are rlite's, their values have IRATI's fields, which carry addresses. Neighbours
//! acknowledge what is flooded.
//!
//! The crate does no I/O, starts no threads and reads no clock. Everything that a peer can make it
//! keep is limited ([`config::Limits`]); what it refuses is counted ([`Refused`]). Enrolled members
//! are trusted as far as link states go: a member can announce links that do not exist, though not
//! in the name of another member that is there. Messages between neighbours (enrolment, keepalive,
//! link states, directory) count only with destination address 0, which no router forwards.
//!
//! ```
//! use weir_ipcp::sim::Simulation;
//! use weir_rina::Time;
//!
//! let mut sim = Simulation::new(1);
//! let (a, b) = (sim.router("a"), sim.router("b"));
//! sim.link(a, b);
//! sim.start();
//! sim.run_until(Time::from_secs(2));
//! let address = sim.process(b).unwrap().address();
//! assert!(address.is_some());
//! assert_eq!(sim.process(a).unwrap().members().get("b").copied(), address);
//! ```
#![forbid(unsafe_code)]

pub mod config;
mod directory;
mod discovery;
mod flooding;
mod flows;
mod frame;
mod neighbours;
mod output;
mod process;
pub mod sim;

use weir_rina::cdap::CdapDialect;

/// Messages of layer management and the names of objects are rlite's.
const MESSAGES: CdapDialect = CdapDialect::Rlite;
/// Values have IRATI's fields, which carry addresses.
const VALUES: CdapDialect = CdapDialect::Irati;

pub use config::{Config, ConfigError, Limits, Port, PortId, Role, Timers};
pub use flows::{FlowError, FlowView, RequestError};
pub use neighbours::NeighbourView;
pub use output::{Counters, Down, Event, FlowEvent, FlowId, Forwarding, NextHop, Output, Refused};
pub use process::{IpcProcess, Random};
