//! One match-action table: the control plane's operations on it, and the lookup.
//!
//! A [`Table`] is made from a [`TableSpec`], which is made from a table of the IR. The control
//! plane inserts, modifies, deletes and reads entries by key or by handle, alone or in batches that
//! can be rolled back; the data plane calls [`Table::lookup`]. An [`ActionProfile`] holds actions
//! that several entries share, and groups of them. [`fast`] has the form of a table that compiled
//! code looks up.
//!
//! Limits of this crate: it knows no P4Runtime or BFRT message, it does not count hits or run
//! meters (the architecture does, keyed by the entry's handle), it does not execute actions and it
//! reads no clock. A table has one owner; sharing it between threads is up to the switch.
//!
//! ```
//! use weir_ir::{Bits, KeyMatch, MatchKind};
//! use weir_table::{ActionSpec, EntryAction, KeySpec, NewEntry, Table, TableSpec};
//!
//! let spec = TableSpec::new("routes")
//!     .key(KeySpec::new("hdr.ipv4.dst", 32, MatchKind::Lpm))
//!     .action(ActionSpec::new("forward").parameter("port", 9))
//!     .action(ActionSpec::new("drop"));
//! let mut table = Table::new(spec);
//! let entry = NewEntry::new(
//!     vec![KeyMatch::Lpm { value: Bits::new(32, 0x0a00_0000), prefix_length: 8 }],
//!     EntryAction::call(0, vec![Bits::new(9, 3)]),
//! );
//! let handle = table.insert(entry)?;
//! let hit = table.lookup(&[Bits::new(32, 0x0a01_0203)]).expect("10/8 covers it");
//! assert_eq!(hit.handle, handle);
//! assert!(table.lookup(&[Bits::new(32, 0x0b00_0000)]).is_none());
//! # Ok::<(), weir_table::TableError>(())
//! ```
#![deny(unsafe_code)]

mod batch;
mod check;
mod entries;
mod entry;
mod error;
pub mod fast;
mod index;
pub mod memory;
mod port;
mod profile;
mod spec;
mod sync;
mod table;

pub use batch::{BatchError, BatchMode, OpResult, TableOp, Undo};
pub use entry::{Entry, EntryAction, EntryHandle, EntryRef, NewEntry, Note, OneShotMember};
pub use error::{ErrorKind, TableError};
pub use port::{PortForm, WatchedPort};
pub use profile::{ActionProfile, Group, GroupMember, Member, ProfileOp, ProfileSpec, ProfileUndo};
pub use spec::{ActionSpec, Implementation, KeySpec, TableSpec};
pub use table::{Table, TableChange};
