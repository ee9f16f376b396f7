//! A program and its device as BF Runtime names them: the numbers of `bfrt.json`, resolved to the
//! switch's tables and externs once.

mod build;

pub(crate) use build::schema as build;

use super::value::{Type, Value};
use crate::refusal::Refusal;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use weir_ir::{ExternId, MatchKind, TableId, ValueSetId};

/// What a field of data stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Bytes that a counter has counted.
    CounterBytes,
    /// Packets.
    CounterPackets,
    /// A rate or burst of a meter: the committed rate, the peak rate, the committed burst and the
    /// peak burst are 0 to 3.
    Meter(usize),
    /// A scalar of a register: which of the table's registers, and which scalar of its cells.
    Register(usize, usize),
    /// A parameter of a low-pass filter: type, gain, decay, scale are 0 to 3.
    Lpf(usize),
    /// A parameter of early random drop: time constant, lower and upper threshold, probability are
    /// 0 to 3.
    Wred(usize),
    /// After how many ms without a hit an entry is idle.
    Ttl,
    /// Whether it is.
    HitState,
    /// A member of an action profile, or the members of a group.
    Member,
    /// A group of a selector.
    Group,
    /// Which of a group's members take part in the choice.
    MemberStatus,
    /// The largest number of members of a group.
    MaxGroupSize,
    /// Whatever the table says.
    Plain,
}

/// A field of data.
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

/// A key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub id: u32,
    pub name: String,
    pub kind: MatchKind,
    pub ty: Type,
    /// Bits; 0 of texts.
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
    /// Its number in the switch's table; in a profile, its number in each of the profile's
    /// instances.
    pub numbers: Vec<usize>,
    pub params: Vec<Param>,
    /// Fields of a fixed table's action.
    pub fields: Vec<Field>,
}

/// Where the actions of a table's entries are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// In the entries.
    Direct,
    /// In an action profile.
    Member,
    /// In an action selector.
    Selector,
}

/// State that belongs to entries, or the array that a table is.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    pub counter: Option<ExternId>,
    /// The meter, and whether it counts bytes.
    pub meter: Option<(ExternId, bool)>,
    pub registers: Vec<ExternId>,
    pub lpf: Option<ExternId>,
    pub wred: Option<ExternId>,
}

/// What a match-action table is in the switch.
#[derive(Debug)]
pub(crate) struct Match {
    pub table: TableId,
    /// The number of the key that is a priority, if the table has one.
    pub priority: Option<u32>,
    /// Entries of the switch's table have priorities.
    pub is_ranked: bool,
    pub style: Style,
    pub resources: Resources,
    pub const_entries: bool,
    pub const_default: bool,
    pub idle_timeout: bool,
}

/// What a table is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// It matches packets.
    Match(Match),
    /// Members of an action profile, which several of the switch's profiles may stand for.
    Members(Vec<ExternId>),
    /// Groups of a selector.
    Groups(ExternId),
    /// Which member of a group is chosen for a hash.
    GetMember(ExternId),
    /// Counters, meters, registers or filters by index.
    Array(Resources),
    /// A value that register actions read.
    Parameter(Resources),
    /// Values that a parser's transition matches.
    ValueSet(ValueSetId),
    /// What parsers read of a port: widths of the fields in order.
    PortMetadata,
    /// A table of the device, by the name of its type.
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
    /// Its name here.
    pub name: String,
    /// Its name in the switch.
    pub digest: String,
    /// Numbers and names of its fields, in order.
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
    /// The table with a number.
    ///
    /// # Errors
    /// There is none.
    #[inline]
    pub fn table(&self, id: u32) -> Result<&Arc<Table>, Refusal> {
        self.index_of(id).map(|at| &self.tables[at])
    }

    /// The place of a table in [`Schema::tables`].
    ///
    /// # Errors
    /// There is no such table.
    #[inline]
    pub fn index_of(&self, id: u32) -> Result<usize, Refusal> {
        let found = self.by_id.get(&id).copied();
        found.ok_or_else(|| match id >> 24 {
            // Tables of these numbers are snapshots wherever there are any.
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

    /// What a table of the switch is called here.
    pub fn of_switch(&self, table: TableId) -> Option<&Arc<Table>> {
        self.by_switch.get(&table).map(|i| &self.tables[*i])
    }

    fn add(&mut self, table: Table) {
        let at = self.tables.len();
        self.by_id.insert(table.id, at);
        if let Kind::Match(of) = &table.kind {
            self.by_switch.insert(of.table, at);
        }
        self.tables.push(Arc::new(table));
    }
}

impl Table {
    /// The action with a number.
    ///
    /// # Errors
    /// The table has none.
    #[inline]
    pub fn action(&self, id: u32) -> Result<&Action, Refusal> {
        let found = self.actions.iter().find(|a| a.id == id);
        found.ok_or_else(|| Refusal::malformed(format!("there is no action with the id {id}")))
    }

    /// The field that has a role.
    pub fn with_role(&self, role: Role) -> Option<&Field> {
        self.data.iter().find(|f| f.role == role)
    }

    /// The field with a name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.data.iter().find(|f| f.name == name)
    }

    /// Whether something can be set of the whole table.
    pub fn has_attribute(&self, name: &str) -> bool {
        self.attributes.iter().any(|a| a == name)
    }
}
