//! Controls P4 targets: one library for P4Runtime and BF Runtime.
//!
//! A [`Client`] connects, reads the tables of the target's program ([`Schema`]), and writes and
//! reads [`Entry`]s. Both protocols have one interface: everything is a table (see [`schema`]), so
//! that code written for one target works with another. The remaining differences are those of the
//! protocols: names of reserved fields, units of meters, and whether the larger or the smaller
//! priority takes precedence.
//!
//! ```no_run
//! use std::net::Ipv4Addr;
//! use weir_client::{Client, Entry, Match, Options};
//!
//! # async fn example() -> Result<(), weir_client::Error> {
//! let client = Client::connect(Options::p4runtime("127.0.0.1:9559")?).await?;
//! let routes = client.table("ipv4_lpm")?;
//! let route = Entry::of(&routes)
//!     .key("hdr.ipv4.dst_addr", Match::lpm(Ipv4Addr::new(10, 0, 0, 0), 8))
//!     .action("forward")
//!     .data("port", 3_u16);
//! client.insert(&route).await?;
//! for entry in client.entries(&routes).await? {
//!     println!("{entry}");
//! }
//! # Ok(()) }
//! ```
//!
//! Three levels of throughput:
//! - [`Client::insert`] and similar calls: one update per request.
//! - [`Client::write`] of a [`Batch`]: one request, any atomicity; and [`Client::pipeline`]: many
//!   requests in flight.
//! - [`Template`]s: the message is encoded once, then only numbers in it are replaced.
//!   [`Page::rows`] reads without copying.
//!
//! For programs known at compile time: [`typed`]. Without an async runtime: [`blocking`]. The
//! library needs no knowledge of the program at compile time and does not depend on weir's server
//! or compiler: it works with any target that implements one of the protocols.
#![forbid(unsafe_code)]

pub mod batch;
mod blocking_client;
pub mod bulk;
mod client;
mod decode;
mod encode;
mod entry;
mod error;
mod events;
pub mod generate;
mod keys;
pub mod notation;
mod options;
mod pipeline;
mod port_queues;
mod read;
pub mod schema;
mod session;
mod transport;
pub mod typed;
mod value;
mod wire;

pub use batch::{Atomicity, Batch};
pub use client::{Client, Config, ConfigAction, DigestConfig, Query};
pub use decode::{Page, RawData, RawKey, Row};
pub use encode::{Cell, CellKind, Operation, ReadOptions, Template};
pub use entry::Entry;
pub use error::{Error, Fault, UpdateError, code_name};
pub use events::{DigestList, IdleEntry, Overflow, PacketIn, PortChange, Standing, Subscription};
pub use keys::KeyMaterial;
pub use options::{Address, BFRT_PORT, Options, P4RUNTIME_PORT, Tls};
pub use pipeline::{BULK_BATCH, BULK_IN_FLIGHT, MAX_FAILED, Outcome, Pipeline};
pub use port_queues::PortQueues;
pub use read::Pages;
pub use schema::{Protocol, Schema, Table};
pub use tonic::Code;
pub use value::{Match, Value};

/// The blocking form of the library, without an async runtime: every call returns when it is
/// complete.
pub mod blocking {
    pub use crate::blocking_client::{Client, Pipeline, Subscription};
}
