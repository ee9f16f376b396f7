//! Decodes the answers of a target to rows and entries.

mod bfrt;
mod p4rt;

use crate::encode::Operation;
use crate::entry::{Entry, Place};
use crate::error::Error;
use crate::schema::{Field, MatchKind, Protocol, Schema, Table, Type};
use crate::value::{Match, Value};
use crate::wire::{self, Broken, Reader};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::Arc;

/// A key of a [`Row`], as the target sent it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RawKey<'a> {
    pub(crate) id: u32,
    pub(crate) field: u32,
    pub(crate) first: &'a [u8],
    pub(crate) second: &'a [u8],
    pub(crate) number: u64,
}

/// Data of a [`Row`], as the target has sent it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RawData<'a> {
    /// A number, big-endian, or a text.
    Bytes(&'a [u8]),
    /// A number.
    Number(u64),
    /// A floating-point number.
    Float(f32),
    /// A nested message: a list, or a set of actions. The number is that of its field.
    Message(u32, &'a [u8]),
}

impl RawData<'_> {
    /// The number, of at most 64 bits; 0 if it is not a number.
    #[must_use]
    pub fn number(&self) -> u64 {
        match self {
            RawData::Bytes(bytes) => crate::value::number(bytes) as u64,
            RawData::Number(number) => *number,
            RawData::Float(_) | RawData::Message(..) => 0,
        }
    }
}

/// An entry as it was received: nothing is copied, and names are not resolved. It serves
/// controllers that read millions of entries; [`Row::to_entry`] converts it to an [`Entry`].
#[derive(Debug, Clone)]
pub struct Row<'a> {
    /// The id of the table.
    pub table_id: u32,
    /// The keys that the target sent.
    pub(crate) keys: SmallVec<[RawKey<'a>; 6]>,
    /// The priority, or 0.
    pub priority: u32,
    /// The id of the action, or 0.
    pub action_id: u32,
    /// Ids and values of the action's parameters.
    pub params: SmallVec<[(u32, RawData<'a>); 6]>,
    /// Ids and values of other data.
    pub data: SmallVec<[(u32, RawData<'a>); 6]>,
    /// It is the default entry.
    pub is_default: bool,
    /// It is const (P4Runtime).
    pub is_const: bool,
}

impl<'a> Row<'a> {
    fn new() -> Self {
        Row {
            table_id: 0,
            keys: SmallVec::new(),
            priority: 0,
            action_id: 0,
            params: SmallVec::new(),
            data: SmallVec::new(),
            is_default: false,
            is_const: false,
        }
    }

    fn clear(&mut self) {
        self.table_id = 0;
        self.keys.clear();
        self.priority = 0;
        self.action_id = 0;
        self.params.clear();
        self.data.clear();
        self.is_default = false;
        self.is_const = false;
    }

    /// The value of a key, by its id: the bytes that the target sent. For ranges, the smallest
    /// value.
    #[must_use]
    pub fn key(&self, id: u32) -> Option<&'a [u8]> {
        self.keys.iter().find(|k| k.id == id).map(|k| k.first)
    }

    /// Data other than parameters, by the id of the field.
    #[must_use]
    pub fn datum(&self, id: u32) -> Option<RawData<'a>> {
        self.data.iter().find(|(i, _)| *i == id).map(|(_, d)| *d)
    }

    /// Converts it to an entry.
    ///
    /// # Errors
    /// It does not fit the schema.
    pub fn to_entry(&self, schema: &Schema) -> Result<Entry, Error> {
        let table = schema
            .table_by_id(self.table_id)
            .ok_or_else(|| Error::Malformed(format!("an entry of a table {:#x} that there is not", self.table_id)))?;
        self.entry_of(table)
    }

    fn entry_of(&self, table: &Arc<Table>) -> Result<Entry, Error> {
        let malformed = |why: String| Error::Malformed(format!("{}: {why}", table.name));
        let mut entry = Entry::of(table);
        entry.is_default = self.is_default;
        entry.is_const = self.is_const;
        entry.priority = self.priority;
        for raw in &self.keys {
            if table.priority == Some(raw.id) && !table.is_p4runtime() {
                entry.priority = crate::value::number(raw.first) as u32;
                continue;
            }
            let place = table.keys.iter().position(|k| k.id == raw.id);
            let place = place.ok_or_else(|| malformed(format!("there is no key {}", raw.id)))?;
            let key = &table.keys[place];
            entry.keys[place] = match_of(table.protocol, key.kind, &key.ty, raw).map_err(malformed)?;
        }
        if self.action_id != 0 {
            let action = table.actions.iter().position(|a| a.id == self.action_id);
            let action = action.ok_or_else(|| malformed(format!("there is no action {:#x}", self.action_id)))?;
            entry.action = Some(action);
        }
        let params = entry.chosen_action().map_or(&[][..], |a| &a.params[..]);
        let mut given = Vec::with_capacity(self.params.len() + self.data.len());
        // BF Runtime identifies parameters and other data by their ids alone.
        let all = self
            .params
            .iter()
            .map(|d| (true, d))
            .chain(self.data.iter().map(|d| (false, d)));
        for (is_param, (id, raw)) in all {
            let find = |fields: &[Field]| fields.iter().position(|f| f.id == *id);
            let may_be_param = is_param || !table.is_p4runtime();
            let place = match may_be_param.then(|| find(params)).flatten() {
                Some(i) => Place::Param(i),
                None if is_param => return Err(malformed(format!("there is no parameter {id}"))),
                None => match find(&table.data) {
                    Some(i) => Place::Data(i),
                    // Targets send both counts, even if the table has only one.
                    None if table.is_p4runtime() => continue,
                    None => return Err(malformed(format!("there is no data {id}"))),
                },
            };
            let field = match place {
                Place::Param(i) => &params[i],
                Place::Data(i) => &table.data[i],
            };
            let value = match table.protocol {
                Protocol::P4Runtime => p4rt::value(table, field, *raw),
                Protocol::BfRuntime => bfrt::value(field, *raw),
            };
            let value = value.map_err(|why| malformed(format!("{}: {why}", field.name)))?;
            push(&mut given, place, value);
        }
        entry.data = given;
        Ok(entry)
    }
}

/// Adds data. A register of a device with several pipes has several values in one field, which
/// become a list.
fn push(given: &mut Vec<(Place, Value)>, place: Place, value: Value) {
    match given.iter_mut().find(|(p, _)| *p == place) {
        None => given.push((place, value)),
        Some((_, Value::List(values))) => values.push(value),
        Some((_, old)) => {
            let first = std::mem::replace(old, Value::List(Vec::new()));
            *old = Value::List(vec![first, value]);
        }
    }
}

fn match_of(protocol: Protocol, kind: MatchKind, ty: &Type, raw: &RawKey<'_>) -> Result<Match, String> {
    let value = |bytes: &[u8]| match ty {
        Type::Text(_) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::from_bytes(bytes),
    };
    let width = ty.width().unwrap_or(0);
    let range = match protocol {
        Protocol::P4Runtime => 6,
        Protocol::BfRuntime => 5,
    };
    Ok(match raw.field {
        2 => Match::Exact(value(raw.first)),
        3 if raw.second.iter().all(|b| *b == 0) => Match::Any,
        3 => Match::Ternary {
            value: value(raw.first),
            mask: value(raw.second),
        },
        4 if raw.number == 0 => Match::Any,
        4 => Match::Lpm {
            value: value(raw.first),
            prefix_len: raw.number as u32,
        },
        field if field == range => {
            let (low, high) = (value(raw.first), value(raw.second));
            let is_all = low.bit_length() == Some(0) && high.fixed(width) == Some(crate::encode::all_ones(width));
            if is_all { Match::Any } else { Match::Range { low, high } }
        }
        6 if raw.number == 0 => Match::Any,
        6 | 7 if kind == MatchKind::Optional => Match::Exact(value(raw.first)),
        other => return Err(format!("a match of the unknown kind {other}")),
    })
}

/// A part of the result of a Read.
#[derive(Debug, Clone)]
pub struct Page {
    schema: Arc<Schema>,
    bytes: Bytes,
}

impl Page {
    pub(crate) fn new(schema: &Arc<Schema>, bytes: Bytes) -> Page {
        Page {
            schema: Arc::clone(schema),
            bytes,
        }
    }

    /// The schema of the entries.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Visits every entry of match-action tables (with BF Runtime: of any table), without copying.
    ///
    /// # Errors
    /// The answer is malformed; entries before the error have been visited.
    pub fn rows(&self, mut visit: impl FnMut(&Row<'_>)) -> Result<(), Error> {
        self.entities(|entity| {
            match entity {
                Entity::Row(row) => visit(row),
                Entity::Other(_) => {}
            }
            Ok(())
        })
    }

    /// All entries.
    ///
    /// # Errors
    /// The answer is malformed.
    pub fn entries(&self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        self.entities(|entity| {
            match entity {
                Entity::Row(row) => entries.push(row.to_entry(&self.schema)?),
                Entity::Other(bytes) => entries.extend(p4rt::other(&self.schema, bytes)?),
            }
            Ok(())
        })?;
        Ok(entries)
    }

    fn entities(&self, mut visit: impl FnMut(Entity<'_, '_>) -> Result<(), Error>) -> Result<(), Error> {
        let mut row = Row::new();
        let mut response = Reader(&self.bytes);
        while let Some((field, value)) = response.next().map_err(broken)? {
            if field != 1 {
                continue;
            }
            let bytes = value.bytes().map_err(broken)?;
            let is_row = match self.schema.protocol {
                Protocol::P4Runtime => p4rt::row(bytes, &mut row),
                Protocol::BfRuntime => bfrt::row(bytes, &mut row),
            };
            match is_row.map_err(broken)? {
                true => visit(Entity::Row(&row))?,
                false => visit(Entity::Other(bytes))?,
            }
        }
        Ok(())
    }
}

enum Entity<'r, 'a> {
    Row(&'r Row<'a>),
    Other(&'a [u8]),
}

fn broken(broken: Broken) -> Error {
    Error::Malformed(broken.to_string())
}

/// Describes an `Update` of a batch, for errors: operation, table, key.
pub(crate) fn describe(schema: &Schema, update: &[u8]) -> Option<(Operation, String, String)> {
    let mut reader = Reader(update);
    let mut operation = Operation::Insert;
    let mut entity = None;
    while let Ok(Some((field, value))) = reader.next() {
        match field {
            1 => operation = operation_of(schema.protocol, value.number().ok()?),
            2 => entity = value.bytes().ok(),
            _ => {}
        }
    }
    let entity = entity?;
    let mut row = Row::new();
    let is_row = match schema.protocol {
        Protocol::P4Runtime => p4rt::row(entity, &mut row),
        Protocol::BfRuntime => bfrt::row(entity, &mut row),
    };
    let entry = match is_row.ok()? {
        true => {
            // The data do not matter, and may be incomplete.
            row.params.clear();
            row.data.clear();
            row.action_id = 0;
            row.to_entry(schema).ok()?
        }
        false => p4rt::other(schema, entity).ok()?.into_iter().next()?,
    };
    Some((operation, entry.table.name.clone(), entry.key_text()))
}

fn operation_of(protocol: Protocol, number: u64) -> Operation {
    match (protocol, number) {
        (_, 2) => Operation::Modify,
        (Protocol::P4Runtime, 3) | (Protocol::BfRuntime, 4) => Operation::Delete,
        (Protocol::BfRuntime, 3) => Operation::Add,
        (Protocol::BfRuntime, 5) => Operation::InsertOrModify,
        (Protocol::BfRuntime, 6) => Operation::Reset,
        _ => Operation::Insert,
    }
}

/// The value of an element of a digest of BF Runtime: a `TableData`.
pub(crate) fn bfrt_record(ty: &Type, data: &[u8]) -> Result<Value, Error> {
    bfrt::digest(ty, data)
}

/// An entry of BF Runtime from a `TableEntry`.
pub(crate) fn bfrt_entry(schema: &Schema, table_entry: &[u8]) -> Result<Entry, Error> {
    let mut row = Row::new();
    bfrt::table_entry(Reader(table_entry), &mut row).map_err(broken)?;
    row.to_entry(schema)
}

/// An entry of P4Runtime from a `TableEntry`.
pub(crate) fn p4rt_entry(schema: &Schema, table_entry: &[u8]) -> Result<Entry, Error> {
    let mut row = Row::new();
    p4rt::table_entry(Reader(table_entry), &mut row).map_err(broken)?;
    row.to_entry(schema)
}

/// Decodes a key: both protocols use the same field numbers for its id and match types.
fn key<'a>(mut reader: Reader<'a>) -> Result<RawKey<'a>, Broken> {
    let mut key = RawKey {
        id: 0,
        field: 0,
        first: &[],
        second: &[],
        number: 0,
    };
    while let Some((field, value)) = reader.next()? {
        if field == 1 {
            key.id = value.u32()?;
            continue;
        }
        key.field = field;
        let mut parts = value.message()?;
        while let Some((part, value)) = parts.next()? {
            match (part, value) {
                (1, wire::Field::Bytes(bytes)) => key.first = bytes,
                (2, wire::Field::Bytes(bytes)) => key.second = bytes,
                (2, wire::Field::Varint(number)) => key.number = number,
                _ => {}
            }
        }
    }
    Ok(key)
}
