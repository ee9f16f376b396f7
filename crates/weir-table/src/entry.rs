//! The entries of a table, as the control plane writes and reads them.

use crate::port::WatchedPort;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, KeyMatch};

/// Identifies an entry of one table as long as the entry exists. Never 0, which stands for a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EntryHandle(NonZeroU32);

impl EntryHandle {
    /// The handle with this number, unless it is 0.
    #[must_use]
    pub fn new(number: u32) -> Option<Self> {
        NonZeroU32::new(number).map(EntryHandle)
    }

    /// The number.
    #[must_use]
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

/// Opaque bytes that a controller attaches to an entry and reads back.
pub type Note = Option<Arc<[u8]>>;

/// The action of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryAction {
    /// An action of the table and its data.
    Call(ActionCall),
    /// A member of the table's action profile or selector.
    Member(u32),
    /// A group of the table's action selector.
    Group(u32),
    /// An action set of the entry's own, chosen from like a group ("one shot" in P4Runtime).
    OneShot(Vec<OneShotMember>),
}

impl EntryAction {
    /// The action with this index in the table, and its data.
    #[must_use]
    pub fn call(action: usize, arguments: Vec<Bits>) -> Self {
        EntryAction::Call(ActionCall { action, arguments })
    }

    /// The kind of action, for messages.
    #[must_use]
    pub(crate) fn form(&self) -> &'static str {
        match self {
            EntryAction::Call(_) => "an action",
            EntryAction::Member(_) => "an action profile member",
            EntryAction::Group(_) => "an action profile group",
            EntryAction::OneShot(_) => "an action set",
        }
    }
}

/// One of the actions of a one-shot set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OneShotMember {
    /// The action and its data.
    pub action: ActionCall,
    /// Relative probability of being chosen, 1 or more.
    pub weight: u32,
    /// It is not chosen while this port is down.
    pub watch: Option<WatchedPort>,
    /// Its port is down. The switch sets this; control planes write `false`.
    pub is_down: bool,
}

impl OneShotMember {
    /// An action that watches no port.
    #[must_use]
    pub fn new(action: ActionCall, weight: u32) -> Self {
        OneShotMember {
            action,
            weight,
            watch: None,
            is_down: false,
        }
    }

    /// The weight, or 0 while the port is down.
    #[must_use]
    pub fn live_weight(&self) -> u32 {
        if self.is_down { 0 } else { self.weight }
    }
}

/// An entry to insert, or the new state of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEntry {
    /// One per match key of the table (selector keys have none).
    pub matches: Vec<KeyMatch>,
    /// The larger wins. 0 where the table has no ternary, range or optional key.
    pub priority: u32,
    /// Its action.
    pub action: EntryAction,
    /// The controller's data, not interpreted.
    pub metadata: u64,
    /// The controller's data, not interpreted.
    pub note: Note,
    /// Idle time in ns after which the control plane is notified; 0: never.
    pub idle_timeout_ns: u64,
}

impl NewEntry {
    /// An entry with priority 0, no metadata and no time-out.
    #[must_use]
    pub fn new(matches: Vec<KeyMatch>, action: EntryAction) -> Self {
        NewEntry {
            matches,
            priority: 0,
            action,
            metadata: 0,
            note: None,
            idle_timeout_ns: 0,
        }
    }

    /// The same with a priority; the larger wins.
    #[must_use]
    pub fn with_priority(mut self, priority: u32) -> Self {
        self.priority = priority;
        self
    }
}

/// An entry of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its handle.
    pub handle: EntryHandle,
    /// One per match key of the table.
    pub matches: Vec<KeyMatch>,
    /// The larger wins.
    pub priority: u32,
    /// Its action.
    pub action: EntryAction,
    /// The controller's data, not interpreted.
    pub metadata: u64,
    /// The controller's data, not interpreted.
    pub note: Note,
    /// Idle time in ns after which the control plane is notified; 0: never.
    pub idle_timeout_ns: u64,
    /// When it was hit last, or inserted, on the switch's clock in ns.
    pub last_hit_ns: u64,
    /// The program says it is `const`.
    pub is_const: bool,
    /// Grows with every insertion: of two entries the smaller is older.
    pub(crate) sequence: u64,
}

impl Entry {
    /// The index of the entry in its table, from 0. A read in portions resumes after the last
    /// index ([`crate::Table::entries_from`]).
    #[must_use]
    pub fn place(&self) -> u64 {
        u64::from(self.handle.get()) - 1
    }

    /// The precedence among entries that match the same packet: larger priority, then more prefix
    /// bits in all, then the older entry.
    pub(crate) fn rank(&self) -> Rank {
        let prefix: u32 = self
            .matches
            .iter()
            .map(|m| {
                if let KeyMatch::Lpm { prefix_length, .. } = m {
                    *prefix_length
                } else {
                    0
                }
            })
            .sum();
        Rank {
            priority: self.priority,
            prefix,
            age: std::cmp::Reverse(self.sequence),
        }
    }
}

/// Order of precedence; the larger wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    priority: u32,
    prefix: u32,
    age: std::cmp::Reverse<u64>,
}

/// A request's reference to an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryRef {
    /// By handle.
    Handle(EntryHandle),
    /// By match and priority.
    Key {
        /// One per match key of the table.
        matches: Vec<KeyMatch>,
        /// Its priority.
        priority: u32,
    },
}
