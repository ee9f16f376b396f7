//! The switch of a RINA router: an IPC process is its P4Runtime primary.
//!
//! A [`Driver`] keeps the entries of a switch at a desired [`Forwarding`]: it computes the
//! difference to the entries that are there, writes it as one batch, and reads all entries after
//! each reconnection. It also carries packets of the control plane in both directions. The switch
//! may be any P4Runtime switch whose program has the tables and actions of
//! `p4/programs/rina_router`:
//!
//! | Table | Key | Actions |
//! |---|---|---|
//! | `own_addresses` | destination | `NoAction` |
//! | `efcp_exact` | destination | `efcp_forward(vlan_id, dst_mac, port)`, `efcp_multipath(group)`, `to_cpu` |
//! | `next_hops` | group; connection (selector) | `efcp_forward`, as one-shot action sets |
//! | `port_macs` | egress port | `set_src_mac(mac)` |
//!
//! Destinations with the same next hops share a group, so that a lost link changes few entries,
//! whatever the number of destinations (prefix-independent convergence).
//!
//! The crate knows no routing and no layer management. It never sets the pipeline: the switch runs
//! its program already.
//!
//! ```
//! use weir_rina::arp::MacAddress;
//! use weir_rina::efcp::Address;
//! use weir_rina_switch::{Entries, Forwarding, NextHop};
//!
//! let hop = |port| NextHop { port, vlan: 0, mac: MacAddress([2, 0, 0, 0, 0, 1]) };
//! let mut forwarding = Forwarding::default();
//! forwarding.routes.insert(Address(7), [hop(1), hop(2)].into());
//! forwarding.routes.insert(Address(8), [hop(1), hop(2)].into());
//!
//! let nothing = Entries::default();
//! let entries = nothing.towards(&forwarding)?;
//! // A group, and two destinations that refer to it.
//! assert_eq!(nothing.updates(&entries).len(), 3);
//! # Ok::<(), weir_rina_switch::TooManyGroups>(())
//! ```
#![forbid(unsafe_code)]

mod driver;
mod entries;
mod error;
mod pace;
mod plan;

pub use driver::{Driver, FromSwitch, GRACE};
pub use error::SwitchError;
pub use plan::{Entries, Forwarding, MAX_GROUPS, NextHop, RouteEntry, TooManyGroups, Update};
