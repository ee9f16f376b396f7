//! The schema of a target: tables with their keys, actions and data, digests, and packet-in and
//! packet-out headers.
//!
//! Both protocols are reduced to the model of BF Runtime: **everything is a table.** Besides
//! match-action tables there are those of counters (key: the index; data: packets and bytes),
//! meters, registers, action profiles (key: the member), selectors (key: the group) and
//! replication. Objects for which P4Runtime has messages of their own are such tables here, with
//! the names of BF Runtime, such as `$COUNTER_INDEX`; see [`p4info`].

mod bfrt;
mod custom_crc;
mod extern_keys;
pub mod p4info;
mod types;

pub use bfrt::SchemaError;

use crate::error::Error;
use std::collections::HashMap;
use std::sync::Arc;

/// The control protocol of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// P4Runtime 1.5 and before.
    P4Runtime,
    /// BF Runtime, gRPC interface.
    BfRuntime,
}

/// The kind of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// Entries with a match and an action.
    Match,
    /// Entries with a match, whose action is a member of a profile or a group of them.
    MatchIndirect,
    /// Members of an action profile.
    Members,
    /// Groups of members.
    Groups,
    /// An array of counters.
    Counter,
    /// An array of meters.
    Meter,
    /// An array of registers.
    Register,
    /// Values that a parser selects on.
    ValueSet,
    /// Multicast groups of P4Runtime.
    MulticastGroups,
    /// Clone sessions of P4Runtime.
    CloneSessions,
    /// The parameters of a custom CRC.
    CustomCrc,
    /// The keys of an extern instance.
    ExternKeys,
    /// Any other table of BF Runtime, by the name of its type.
    Other(String),
}

impl Kind {
    /// Whether entries match packets.
    #[must_use]
    pub fn is_match(&self) -> bool {
        matches!(self, Kind::Match | Kind::MatchIndirect)
    }

    /// Its name, for messages.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Kind::Match => "table",
            Kind::MatchIndirect => "indirect table",
            Kind::Members => "action profile",
            Kind::Groups => "action selector",
            Kind::Counter => "counter",
            Kind::Meter => "meter",
            Kind::Register => "register",
            Kind::ValueSet => "value set",
            Kind::MulticastGroups => "multicast groups",
            Kind::CloneSessions => "clone sessions",
            Kind::CustomCrc => "custom CRC",
            Kind::ExternKeys => "extern with keys",
            Kind::Other(name) => name,
        }
    }
}

/// The match kind of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchKind {
    /// Equal.
    Exact,
    /// The first bits are equal.
    Lpm,
    /// Equal under a mask.
    Ternary,
    /// Between two values.
    Range,
    /// Equal, or anything.
    Optional,
}

impl MatchKind {
    /// Its name in P4.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MatchKind::Exact => "exact",
            MatchKind::Lpm => "lpm",
            MatchKind::Ternary => "ternary",
            MatchKind::Range => "range",
            MatchKind::Optional => "optional",
        }
    }
}

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// A number of this width in bits.
    Bits(u32),
    /// True or false.
    Bool,
    /// A floating-point number.
    Float,
    /// A text; one of these, or any if the list is empty.
    Text(Vec<String>),
    /// Fields with names.
    Record(Vec<Field>),
    /// Fields of a header.
    Header(Vec<Field>),
    /// Values without names.
    Tuple(Vec<Type>),
    /// Headers, one after another.
    Stack(Box<Type>),
    /// A number of varying width, at most this many bits.
    Varbit(u32),
    /// An enum of the program, by the name of its member.
    Enum(Vec<String>),
    /// An enum represented by numbers of this width in bits.
    NumberedEnum(u32),
    /// An error of the program, by its name.
    Error,
    /// Bytes of any number.
    Bytes,
    /// A type that this library does not support; its name.
    Unknown(String),
}

impl Type {
    /// The width of a number in bits.
    #[must_use]
    pub fn width(&self) -> Option<u32> {
        match self {
            Type::Bits(width) | Type::NumberedEnum(width) => Some(*width),
            _ => None,
        }
    }
}

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// Id, unique in the table.
    pub id: u32,
    /// Name, as in the source.
    pub name: String,
    /// Its match kind.
    pub kind: MatchKind,
    /// Its type.
    pub ty: Type,
}

/// A parameter of an action, or data of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Id, unique in the action or table.
    pub id: u32,
    /// Name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// It is a list.
    pub is_list: bool,
    /// It is read-only.
    pub is_read_only: bool,
    /// Every entry must have it.
    pub is_mandatory: bool,
}

impl Field {
    pub(crate) fn new(id: u32, name: &str, ty: Type) -> Field {
        Field {
            id,
            name: name.to_owned(),
            ty,
            is_list: false,
            is_read_only: false,
            is_mandatory: false,
        }
    }

    pub(crate) fn list(mut self) -> Field {
        self.is_list = true;
        self
    }
}

/// Where an action may be used in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// In entries and as default.
    Both,
    /// In entries.
    Entries,
    /// As default.
    Default,
}

/// An action of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Action {
    /// Id.
    pub id: u32,
    /// Full name.
    pub name: String,
    /// Where it may be used.
    pub scope: Scope,
    /// Its parameters.
    pub params: Vec<Field>,
}

/// A table of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The protocol of its target.
    pub protocol: Protocol,
    /// Id.
    pub id: u32,
    /// Full name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The most entries; 0 if not specified.
    pub size: u64,
    /// Keys, without the priority.
    pub keys: Vec<Key>,
    /// Entries have a priority. With BF Runtime: the id of that key.
    pub priority: Option<u32>,
    /// Actions of its entries.
    pub actions: Vec<Action>,
    /// Data of entries, independent of their action.
    pub data: Vec<Field>,
    /// For a value set: the match fields of its members.
    pub elements: Vec<Key>,
    /// Entries are const.
    pub is_const: bool,
    /// The default entry is const.
    pub has_const_default: bool,
    /// The action of a const default entry, if the description states it.
    pub const_default_action: Option<String>,
    /// Operations on the whole table (BF Runtime).
    pub operations: Vec<String>,
    /// Attributes of the whole table (BF Runtime).
    pub attributes: Vec<String>,
}

impl Table {
    /// The action with this full name, or the only one that ends with it after a dot.
    ///
    /// # Errors
    /// No name or several match.
    pub fn action(&self, name: &str) -> Result<usize, Error> {
        find("action", &self.name, name, self.actions.iter().map(|a| a.name.as_str()))
    }

    /// The index of the key with a name.
    ///
    /// # Errors
    /// No name or several match.
    pub fn key(&self, name: &str) -> Result<usize, Error> {
        find("key", &self.name, name, self.keys.iter().map(|k| k.name.as_str()))
    }

    /// Whether entries can be inserted and deleted; cells of arrays are only modified.
    #[must_use]
    pub fn has_entries(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Counter | Kind::Meter | Kind::Register | Kind::ValueSet | Kind::CustomCrc
        )
    }
}

/// A digest of the program.
#[derive(Debug, Clone, PartialEq)]
pub struct Digest {
    /// Id.
    pub id: u32,
    /// Full name.
    pub name: String,
    /// The type of an element.
    pub ty: Type,
}

/// The schema of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    /// The protocol of the target.
    pub protocol: Protocol,
    /// The program's name, if known.
    pub program: String,
    /// The program's architecture, if known.
    pub architecture: String,
    /// Tables, in the order of the description.
    pub tables: Vec<Arc<Table>>,
    /// Digests.
    pub digests: Vec<Arc<Digest>>,
    /// Fields of the packet-in header.
    pub packet_in: Vec<Field>,
    /// Fields of the packet-out header.
    pub packet_out: Vec<Field>,
    by_id: HashMap<u32, usize>,
}

impl Schema {
    pub(crate) fn new(protocol: Protocol, program: String, tables: Vec<Table>, digests: Vec<Digest>) -> Schema {
        let by_id = tables.iter().enumerate().map(|(i, t)| (t.id, i)).collect();
        Schema {
            protocol,
            program,
            architecture: String::new(),
            tables: tables.into_iter().map(Arc::new).collect(),
            digests: digests.into_iter().map(Arc::new).collect(),
            packet_in: Vec::new(),
            packet_out: Vec::new(),
            by_id,
        }
    }

    /// The table with this full name, or the only one that ends with it after a dot.
    ///
    /// # Errors
    /// No name or several match.
    pub fn table(&self, name: &str) -> Result<&Arc<Table>, Error> {
        let names = self.tables.iter().map(|t| t.name.as_str());
        let found = find("table", &self.program, name, names)?;
        Ok(&self.tables[found])
    }

    /// The table with an id.
    #[must_use]
    pub fn table_by_id(&self, id: u32) -> Option<&Arc<Table>> {
        self.by_id.get(&id).map(|i| &self.tables[*i])
    }

    /// The digest with a name.
    ///
    /// # Errors
    /// No name or several match.
    pub fn digest(&self, name: &str) -> Result<&Arc<Digest>, Error> {
        let names = self.digests.iter().map(|d| d.name.as_str());
        let found = find("digest", &self.program, name, names)?;
        Ok(&self.digests[found])
    }
}

/// The index of a name among others: the equal one, or the only one that ends with it after a dot.
pub(crate) fn find<'a>(
    what: &'static str,
    owner: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<usize, Error> {
    if let Some(found) = names.clone().position(|n| n == name) {
        return Ok(found);
    }
    let ends = |n: &str| n.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    let mut fitting = names.clone().enumerate().filter(|(_, n)| ends(n));
    match (fitting.next(), fitting.next()) {
        (Some((found, _)), None) => Ok(found),
        (first, second) => {
            let several = first
                .into_iter()
                .chain(second)
                .chain(fitting)
                .map(|(_, n)| n.to_owned());
            let several: Vec<String> = several.collect();
            let is_ambiguous = !several.is_empty();
            let candidates = if is_ambiguous { several } else { similar(name, names) };
            Err(Error::Name {
                what,
                owner: owner.to_owned(),
                name: name.to_owned(),
                is_ambiguous,
                candidates,
            })
        }
    }
}

/// Candidates for an unknown name: at most five of those that have most in common with its end.
fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let last = |n: &str| n.rsplit('.').next().unwrap_or(n).to_ascii_lowercase();
    let wanted = last(name);
    let far = |n: &str| {
        let last = last(n);
        // A substring counts as a small misspelling.
        if last.contains(&wanted) {
            1
        } else {
            distance(&wanted, &last)
        }
    };
    let mut ranked: Vec<(usize, &str)> = names.map(|n| (far(n), n)).collect();
    ranked.sort_by_key(|(distance, _)| *distance);
    let near = ranked.iter().filter(|(d, _)| *d <= wanted.len().div_ceil(2));
    near.take(5).map(|(_, n)| (*n).to_owned()).collect()
}

/// Edit distance: characters to insert, delete or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_the_end_of_one_and_only_one() {
        let names = ["pipe.A.forward", "pipe.B.forward", "pipe.A.acl"];
        let find = |name| find("table", "p", name, names.into_iter());
        assert_eq!(find("A.forward").ok(), Some(0));
        assert_eq!(find("acl").ok(), Some(2));
        let error = find("forward").unwrap_err().to_string();
        assert!(
            error.contains("pipe.A.forward") && error.contains("pipe.B.forward"),
            "{error}"
        );
        let error = find("acls").unwrap_err().to_string();
        assert!(error.contains("pipe.A.acl"), "{error}");
        assert!(find("cl").is_err());
    }
}
