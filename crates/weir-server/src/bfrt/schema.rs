//! Schema: tables, actions, fields and digests by the ids of `bfrt.json`, resolved once to the
//! tables and externs of the switch.
//!
//! `build` makes it from a program and its descriptions; every request is resolved with it. It
//! holds no state.

mod build;

pub(crate) use build::schema as build;

use super::value::{Type, Value};
use crate::refusal::Refusal;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weir_ir::{ExternId, MatchKind, TableId, ValueSetId};

/// The meaning of a data field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The bytes of a counter.
    CounterBytes,
    /// The packets of a counter.
    CounterPackets,
    /// A rate or burst of a meter: the committed rate, the peak rate, the committed burst and the
    /// peak burst are 0 to 3.
    Meter(usize),
    /// A scalar of a register: index of the register in the table, index of the scalar in its
    /// cells.
    Register(usize, usize),
    /// A parameter of a low-pass filter: type, gain, decay, scale are 0 to 3.
    Lpf(usize),
    /// A parameter of early random drop: time constant, lower and upper threshold, probability are
    /// 0 to 3.
    Wred(usize),
    /// Time to live: ms without a hit after which an entry is idle.
    Ttl,
    /// Whether the entry is idle.
    HitState,
    /// A member of an action profile, or the members of a group.
    Member,
    /// A group of a selector.
    Group,
    /// For each member of a group, whether it takes part in the choice.
    MemberStatus,
    /// The largest number of members of a group.
    MaxGroupSize,
    /// No special meaning: the module of the table interprets it.
    Plain,
}

/// A data field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Field {
    pub id: u32,
    pub name: String,
    pub ty: Type,
    pub repeated: bool,
    pub mandatory: bool,
    pub read_only: bool,
    pub default: Option<Value>,
    pub role: Role,
}

/// A key field.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub id: u32,
    pub name: String,
    pub kind: MatchKind,
    pub ty: Type,
    /// Width in bits; 0 for text.
    pub width: u32,
}

/// A parameter of an action.
#[derive(Debug, Clone)]
pub(crate) struct Param {
    pub id: u32,
    pub name: String,
    pub width: u32,
}

/// An action of a table.
#[derive(Debug)]
pub(crate) struct Action {
    pub id: u32,
    pub name: String,
    /// Index of the action in the switch's table; for a profile, in each of the profile's
    /// instances.
    pub numbers: Vec<usize>,
    pub params: Vec<Param>,
    /// Fields of a fixed table's action.
    pub fields: Vec<Field>,
}

/// Where the actions of a table's entries are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// In the entries.
    Direct,
    /// In an action profile.
    Member,
    /// In an action selector.
    Selector,
}

/// The direct resources of a table's entries, or the array that a table represents.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    pub counter: Option<ExternId>,
    /// The meter, and whether it counts bytes.
    pub meter: Option<(ExternId, bool)>,
    pub registers: Vec<ExternId>,
    pub lpf: Option<ExternId>,
    pub wred: Option<ExternId>,
}

/// A match-action table of the switch.
#[derive(Debug)]
pub(crate) struct MatchTable {
    pub table: TableId,
    /// The id of the priority key, if the table has one.
    pub priority: Option<u32>,
    /// Entries of the switch's table have priorities.
    pub is_ranked: bool,
    pub style: Style,
    pub resources: Resources,
    pub const_entries: bool,
    pub const_default: bool,
    pub idle_timeout: bool,
}

/// The kind of a table, and the object of the switch that it represents.
#[derive(Debug)]
pub(crate) enum Kind {
    /// A match-action table.
    Match(MatchTable),
    /// Members of an action profile. Several profiles of the switch may represent it.
    Members(Vec<ExternId>),
    /// Groups of a selector.
    Groups(ExternId),
    /// The member that a group chooses for a hash.
    GetMember(ExternId),
    /// Counters, meters, registers or filters by index.
    Array(Resources),
    /// A register parameter: a value that register actions read.
    Parameter(Resources),
    /// Values that a parser's transition matches.
    ValueSet(ValueSetId),
    /// Port metadata that parsers read.
    PortMetadata,
    /// A fixed table.
    Fixed(super::fixed::Fixed),
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub id: u32,
    pub name: String,
    pub kind: Kind,
    /// Keys in order, without the priority.
    pub keys: Vec<Key>,
    /// Data that does not belong to an action.
    pub data: Vec<Field>,
    pub actions: Vec<Action>,
    pub operations: Vec<String>,
    pub attributes: Vec<String>,
    pub read_only: bool,
}

/// A digest.
#[derive(Debug)]
pub(crate) struct Learn {
    pub id: u32,
    /// Its name in `bfrt.json`.
    pub name: String,
    /// Its name in the switch.
    pub digest: String,
    /// Ids and names of its fields, in order.
    pub fields: Vec<(u32, String)>,
}

/// All tables and digests.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// In the order of the description.
    pub tables: Vec<Arc<Table>>,
    by_id: FxHashMap<u32, usize>,
    by_switch: FxHashMap<TableId, usize>,
    pub learns: Vec<Learn>,
}

impl Schema {
    /// The table with an id.
    ///
    /// # Errors
    /// There is no such table.
    #[inline]
    pub fn table(&self, id: u32) -> Result<&Arc<Table>, Refusal> {
        self.index_of(id).map(|at| &self.tables[at])
    }

    /// The index in [`Schema::tables`] of the table with an id.
    ///
    /// # Errors
    /// There is no such table.
    #[inline]
    pub fn index_of(&self, id: u32) -> Result<usize, Refusal> {
        let found = self.by_id.get(&id).copied();
        found.ok_or_else(|| match id >> 24 {
            // These ids are those of snapshots.
            0x91..=0x94 => Refusal::unsupported(format!(
                "Table {id:#x} is about snapshots, which are taken of match-action stages: weir has none; `weir trace` tells what a packet met"
            )),
            _ => Refusal::not_found(format!("Table not found for id {id}")),
        })
    }

    /// The table with a name.
    pub fn table_named(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.iter().find(|t| t.name == name)
    }

    /// The table that represents a table of the switch.
    pub fn for_switch_table(&self, table: TableId) -> Option<&Arc<Table>> {
        self.by_switch.get(&table).map(|i| &self.tables[*i])
    }

    fn add(&mut self, table: Table) {
        let at = self.tables.len();
        self.by_id.insert(table.id, at);
        if let Kind::Match(match_table) = &table.kind {
            self.by_switch.insert(match_table.table, at);
        }
        self.tables.push(Arc::new(table));
    }
}

impl Table {
    /// The action with an id.
    ///
    /// # Errors
    /// The table has none.
    #[inline]
    pub fn action(&self, id: u32) -> Result<&Action, Refusal> {
        let found = self.actions.iter().find(|a| a.id == id);
        found.ok_or_else(|| Refusal::malformed(format!("there is no action with the id {id}")))
    }

    /// The field that has a role.
    pub fn field_with_role(&self, role: Role) -> Option<&Field> {
        self.data.iter().find(|f| f.role == role)
    }

    /// The field with a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.data.iter().find(|f| f.name == name)
    }

    /// Whether the table has an attribute.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a == name)
    }
}
