//! Fixed tables: those that every device has (ports, replication, mirror sessions, packet
//! generators, the device itself), and those of weir's own: of custom CRCs, and of externs with
//! keys.
//!
//! Each family has a module, which changes and reads [`Row`]s; this one decodes and encodes them.
//! Of the traffic manager's tables, those of ports' rates are served. The others are described, but
//! requests to them are UNIMPLEMENTED. To support one, add a variant of [`Fixed`] and a module, and
//! dispatch to it in [`decode`], [`apply`] and [`read`].

pub(crate) mod custom_crc;
pub(crate) mod device;
pub(crate) mod extern_keys;
pub(crate) mod generator;
pub(crate) mod mirror;
pub(crate) mod port;
pub(crate) mod replication;
pub(crate) mod shaping;

use super::apply::Done;
use super::change::{Change, removes_elements};
use super::schema::{Field, Table};
use super::value::{self, Type, Value};
use crate::dataplane::Cost;
use crate::ports::Ports;
use crate::refusal::Refusal;
use std::ops::RangeInclusive;
use std::sync::Arc;
use weir_ir::ExternId;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_proto::bfrt_proto::update::Type as Update;
use weir_switch::{CrcScope, Switch, Transaction};

/// A fixed table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fixed {
    /// `$PORT`
    Port,
    /// `$PORT_STAT`
    PortStat,
    /// `$PORT_HDL_INFO`
    PortHandle,
    /// `$PORT_FP_IDX_INFO`
    PortIndex,
    /// `$PORT_STR_INFO`
    PortText,
    /// `$pre.mgid`
    Groups,
    /// `$pre.node`
    Nodes,
    /// `$pre.lag`
    Lags,
    /// `$pre.prune`
    Prunes,
    /// `$mirror.cfg`
    Mirror,
    /// `tf1.dev.device_configuration`
    Device,
    /// `tf1.pktgen.port_cfg`
    GeneratorPorts,
    /// `tf1.pktgen.app_cfg`
    Applications,
    /// `tf1.pktgen.pkt_buffer`
    GeneratorBuffer,
    /// `tf2.pktgen.port_mask`
    GeneratorMasks,
    /// `tf1.tm.port.sched_cfg`
    PortScheduling,
    /// `tf1.tm.port.sched_shaping`
    PortShaping,
    /// `$hash.crc16_custom`, `$hash.crc32_custom`, and those of calculations
    CustomCrc(CrcScope),
    /// The keys of an extern instance
    ExternKeys(ExternId),
    /// Any other table, which this server only describes.
    Other,
}

impl Fixed {
    /// The table of a type in `bfrt.json`.
    pub fn of(table_type: &str) -> Self {
        match table_type {
            "PortConfigure" => Fixed::Port,
            "PortStat" => Fixed::PortStat,
            "PortHdlInfo" => Fixed::PortHandle,
            "PortFpIdxInfo" => Fixed::PortIndex,
            "PortStrInfo" => Fixed::PortText,
            "PreMgid" => Fixed::Groups,
            "PreNode" => Fixed::Nodes,
            "PreLag" => Fixed::Lags,
            "PrePrune" => Fixed::Prunes,
            "MirrorCfg" => Fixed::Mirror,
            "DevConfigure" => Fixed::Device,
            "TmPortSchedCfg" => Fixed::PortScheduling,
            "TmPortSchedShaping" => Fixed::PortShaping,
            "PktgenPortCfg" => Fixed::GeneratorPorts,
            "PktgenAppCfg" => Fixed::Applications,
            "PktgenPktBufferCfg" => Fixed::GeneratorBuffer,
            "PktgenPortMaskCfg" => Fixed::GeneratorMasks,
            _ => Fixed::Other,
        }
    }

    /// Whether its entries are settings of ports, which the server stores itself.
    pub fn is_port(self) -> bool {
        self == Fixed::Port
    }

    /// Whether each pipe of the chip has its own entries.
    pub fn is_per_pipe(self) -> bool {
        use Fixed::{Applications, GeneratorBuffer, GeneratorMasks, GeneratorPorts};
        matches!(self, Applications | GeneratorBuffer | GeneratorMasks | GeneratorPorts)
    }

    /// Whether each replica has its own count, so that a field is a sum.
    pub fn is_count(self, field: &str) -> bool {
        match self {
            Fixed::PortStat => true,
            Fixed::Applications => generator::is_count(field),
            _ => false,
        }
    }
}

/// An operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    Insert,
    Modify,
    Upsert,
    /// Adds elements to lists.
    Add,
    /// Removes elements from lists.
    Remove,
    Delete,
    Clear,
}

impl Op {
    /// Checks that the entry exists or does not, as the operation requires. Returns whether it is a
    /// modification.
    ///
    /// # Errors
    /// The entry exists and must not, or the reverse.
    pub fn check(self, is_there: bool) -> Result<bool, Refusal> {
        match (self, is_there) {
            (Op::Insert, true) => Err(Refusal::exists("the entry is there already; modify it")),
            (Op::Modify | Op::Add | Op::Remove | Op::Delete, false) => {
                Err(Refusal::not_found("there is no such entry"))
            }
            (Op::Insert, false) | (Op::Upsert, false) => Ok(false),
            _ => Ok(true),
        }
    }
}

/// Key and data of an entry of a fixed table; each value with its field id.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Row {
    /// The addressed pipe; `None` means all.
    pub pipe: Option<u32>,
    pub key: Vec<(u32, Value)>,
    pub action: u32,
    pub data: Vec<(u32, Value)>,
}

impl Row {
    /// The value of the numeric key field at an index.
    pub fn key_number(&self, at: usize) -> u32 {
        let found = self.key.get(at).and_then(|(_, v)| v.as_number());
        found.and_then(|n| u32::try_from(n).ok()).unwrap_or(0)
    }

    /// The value of a field.
    pub fn get(&self, table: &Table, name: &str) -> Option<&Value> {
        let id = table.field(name)?.id;
        self.data.iter().find(|(found, _)| *found == id).map(|(_, v)| v)
    }

    /// The number in a field.
    pub fn number(&self, table: &Table, name: &str) -> Option<u64> {
        self.get(table, name).and_then(Value::as_number)
    }

    /// The flag in a field.
    pub fn flag(&self, table: &Table, name: &str) -> Option<bool> {
        self.get(table, name).and_then(Value::as_bool)
    }

    /// The list of numbers in a field.
    pub fn numbers(&self, table: &Table, name: &str) -> Option<&[u32]> {
        match self.get(table, name) {
            Some(Value::Numbers(list)) => Some(list),
            _ => None,
        }
    }

    /// The cost of a change with this row. A removed entry is known by its key alone.
    pub fn cost(&self, op: Op) -> Cost {
        let lengths = self.data.iter().filter_map(|(_, value)| match value {
            Value::Numbers(list) => Some(list.len()),
            _ => None,
        });
        match lengths.max() {
            None if !self.data.is_empty() => Cost::Unbounded,
            length => Cost::list(length.unwrap_or(0), op == Op::Insert),
        }
    }

    /// Sets a field, if the table has it.
    pub fn set(&mut self, table: &Table, name: &str, value: Value) {
        if let Some(field) = table.field(name) {
            self.data.push((field.id, value));
        }
    }
}

/// Decodes the key of an entry.
///
/// # Errors
/// A field is missing, unknown, or not of its type.
pub(crate) fn key(table: &Table, given: &pb::TableKey) -> Result<Vec<(u32, Value)>, Refusal> {
    if given.fields.len() > table.keys.len() {
        return Err(Refusal::malformed("there are more fields than keys"));
    }
    let one = |key: &super::schema::Key| {
        let within = |e: Refusal| e.within(&format!("key `{}`", key.name));
        let field = given.fields.iter().find(|f| f.field_id == key.id);
        let field = field.ok_or_else(|| within(Refusal::malformed("it is missing")))?;
        let Some(MatchType::Exact(m)) = &field.match_type else {
            return Err(within(Refusal::malformed("it is given exactly")));
        };
        let value = match key.ty {
            Type::Text(_) => {
                let text = String::from_utf8(m.value.to_vec());
                Value::Text(text.map_err(|_| within(Refusal::malformed("the text is not UTF-8")))?)
            }
            _ => Value::Number(value::number(key.width, &m.value).map_err(within)?),
        };
        Ok((key.id, value))
    };
    table.keys.iter().map(one).collect()
}

/// Resolves an update of a fixed table.
///
/// # Errors
/// It is invalid in any state.
pub(crate) fn decode(table: &Table, ty: Update, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let super::schema::Kind::Fixed(fixed) = table.kind else {
        return Err(Refusal::unsupported("the table does not do this"));
    };
    match fixed {
        Fixed::Other => return Err(unsupported(table)),
        Fixed::PortHandle | Fixed::PortIndex | Fixed::PortText => {
            return Err(Refusal::unsupported("the table is only read"));
        }
        Fixed::Device => return device::refuse_write(),
        Fixed::CustomCrc(_) => return custom_crc::decode(table, ty, entry),
        Fixed::ExternKeys(_) => return extern_keys::decode(table, ty, entry),
        _ => {}
    }
    if entry.is_default_entry {
        return Err(Refusal::unsupported("the table has no default entry"));
    }
    let mut row = Row::default();
    match &entry.value {
        Some(EntryKey::Key(given)) => row.key = key(table, given)?,
        Some(EntryKey::HandleId(_)) => return Err(Refusal::unsupported("entries of this table have no handles")),
        None if ty == Update::Delete => return Ok(Change::Fixed(Op::Clear, row)),
        None => return Err(Refusal::malformed("Table key cannot be empty")),
    }
    let op = match ty {
        Update::Insert => Op::Insert,
        Update::Modify => Op::Modify,
        Update::InsertOrModify => Op::Upsert,
        Update::ModifyInc if entry.table_flags.is_some_and(|f| f.mod_del) || removes_elements(entry) => Op::Remove,
        Update::ModifyInc => Op::Add,
        Update::Delete => Op::Delete,
        Update::Reset | Update::Unspecified => return Err(Refusal::unsupported("entries of this table are not reset")),
    };
    if op == Op::Delete {
        return Ok(Change::Fixed(op, row));
    }
    let data = entry.data.as_ref();
    let data = data.ok_or_else(|| Refusal::malformed("Table data cannot be empty"))?;
    row.action = data.action_id;
    let mut fields: Vec<Field> = table.data.clone();
    if data.action_id != 0 {
        fields.extend(table.action(data.action_id)?.fields.iter().cloned());
    }
    row.data = value::decode_all(&fields, &data.fields)?;
    let read_only = row
        .data
        .iter()
        .find_map(|(id, _)| fields.iter().find(|f| f.id == *id && f.read_only));
    if let Some(field) = read_only {
        return Err(Refusal::malformed(format!("field `{}` cannot be written", field.name)));
    }
    if matches!(op, Op::Insert) {
        let missing = fields
            .iter()
            .find(|f| f.mandatory && row.data.iter().all(|(id, _)| *id != f.id));
        if let Some(field) = missing {
            return Err(Refusal::malformed(format!("field `{}` is missing", field.name)));
        }
    }
    Ok(Change::Fixed(op, row))
}

/// The refusal for tables that weir only describes.
pub(crate) fn unsupported(table: &Table) -> Refusal {
    Refusal::unsupported(format!(
        "`{}` is described so that clients find it, and weir has no such part",
        table.name
    ))
}

/// Executes a change on a replica.
///
/// # Errors
/// It does not fit the state.
pub(crate) fn apply(
    fixed: Fixed,
    (op, row): (Op, &Row),
    table: &Table,
    replica: usize,
    t: &mut Transaction<'_>,
) -> Result<Done, Refusal> {
    let modified = match fixed {
        Fixed::Groups => replication::groups(op, row, table, t)?,
        Fixed::Nodes => replication::nodes(op, row, table, t)?,
        Fixed::Lags => replication::lags(op, row, table, t)?,
        Fixed::Prunes => replication::prunes(op, row, table, t)?,
        Fixed::Mirror => mirror::apply(op, row, table, t)?,
        Fixed::PortStat => port::clear_counts(op)?,
        Fixed::GeneratorPorts => generator::ports(op, row, table, t)?,
        Fixed::Applications => generator::applications(op, row, table, replica, t)?,
        Fixed::GeneratorBuffer => generator::buffer(op, row, table, t)?,
        Fixed::GeneratorMasks => generator::masks(op, row, table, t)?,
        Fixed::CustomCrc(scope) => custom_crc::apply(scope, op, row, table, t)?,
        Fixed::PortScheduling | Fixed::PortShaping => shaping::apply(fixed, op, row, table, t)?,
        _ => return Err(unsupported(table)),
    };
    Ok(outcome(op, modified))
}

/// The outcome of a change that modified an entry, or did not.
pub(crate) fn outcome(op: Op, modified: bool) -> Done {
    match (op, modified) {
        (Op::Upsert, true) => Done::Modified,
        _ => Done::Made,
    }
}

/// The state from which fixed tables are read.
pub(crate) struct Source<'a> {
    pub switch: &'a Switch,
    pub ports: &'a Arc<Ports>,
    pub cpu_port: Option<u32>,
    /// The addressed pipe; `None` means all.
    pub pipe: Option<u32>,
}

/// Entries of a fixed table. Each is made on demand, because there may be many, and long ones.
pub(crate) struct Rows<'a> {
    /// Their positions, ascending.
    pub places: Box<dyn Iterator<Item = u64> + 'a>,
    /// Makes the entry at a position.
    pub make: Box<dyn Fn(u64) -> Row + 'a>,
}

impl<'a> Rows<'a> {
    /// Rows that are made already, from a position on.
    fn from_list(rows: Vec<Row>, from: u64) -> Self {
        let places = from..rows.len() as u64;
        Rows {
            places: Box::new(places),
            make: Box::new(move |place| rows.get(place as usize).cloned().unwrap_or_default()),
        }
    }
}

/// A query for entries of a table with one number as key.
#[derive(Clone, Copy)]
pub(crate) struct NumberQuery<'a> {
    pub table: &'a Table,
    pub switch: &'a Switch,
    /// The key of the only selected entry; `None` selects all.
    pub only: Option<u32>,
    /// The first number to visit if all are selected.
    from: u64,
}

impl<'a> NumberQuery<'a> {
    fn new(table: &'a Table, switch: &'a Switch, key: Option<&Row>, from: u64) -> Self {
        let only = key.map(|k| k.key_number(0));
        NumberQuery {
            table,
            switch,
            only,
            from,
        }
    }

    /// The range of numbers to visit.
    pub fn numbers(self) -> RangeInclusive<u32> {
        match self.only {
            Some(id) => id..=id,
            None => u32::try_from(self.from).unwrap_or(u32::MAX)..=u32::MAX,
        }
    }

    /// The entries with these numbers; `fill` adds the data of one.
    ///
    /// # Errors
    /// The only selected entry does not exist.
    pub fn rows(
        self,
        numbers: impl Iterator<Item = u32> + 'a,
        fill: impl Fn(u32, &mut Row) + 'a,
    ) -> Result<Rows<'a>, Refusal> {
        let key = self.table.keys.first().map_or(1, |k| k.id);
        let mut numbers = numbers.peekable();
        if self.only.is_some() && numbers.peek().is_none() {
            return Err(missing());
        }
        let make = move |place| {
            let mut row = Row {
                key: vec![(key, Value::Number(place))],
                ..Row::default()
            };
            fill(u32::try_from(place).unwrap_or(u32::MAX), &mut row);
            row
        };
        Ok(Rows {
            places: Box::new(numbers.map(u64::from)),
            make: Box::new(make),
        })
    }
}

/// The entry with a key, or all entries from a position on.
///
/// # Errors
/// The entry does not exist, or weir only describes the table.
pub(crate) fn read<'a>(
    fixed: Fixed,
    table: &'a Table,
    key: Option<&Row>,
    from: u64,
    source: &Source<'a>,
) -> Result<Rows<'a>, Refusal> {
    let query = NumberQuery::new(table, source.switch, key, from);
    let list = match fixed {
        Fixed::Groups => return replication::read_groups(query),
        Fixed::Nodes => return replication::read_nodes(query),
        Fixed::Lags => return replication::read_lags(query),
        Fixed::Prunes => return replication::read_prunes(query),
        Fixed::Mirror => return mirror::read(query),
        Fixed::ExternKeys(instance) => return extern_keys::read(instance, query),
        Fixed::PortScheduling | Fixed::PortShaping => return shaping::read(fixed, query),
        Fixed::Port => port::read(table, key, source),
        Fixed::PortStat => port::stats(table, key, source),
        Fixed::PortHandle | Fixed::PortIndex | Fixed::PortText => port::find(fixed, table, key, source),
        Fixed::Device => Ok(vec![device::read(table, source)]),
        Fixed::CustomCrc(scope) => Ok(custom_crc::read(scope, table, source)),
        Fixed::GeneratorPorts => generator::read_ports(table, key, source),
        Fixed::Applications => generator::read_applications(table, key, source),
        Fixed::GeneratorBuffer => generator::read_buffer(table, key, source),
        Fixed::GeneratorMasks => generator::read_masks(table, key, source),
        Fixed::Other => Err(unsupported(table)),
    };
    Ok(Rows::from_list(list?, from))
}

/// Checks that a row was found if a key was given.
pub(crate) fn require_if_keyed(rows: Vec<Row>, key: Option<&Row>) -> Result<Vec<Row>, Refusal> {
    match key {
        Some(_) if rows.is_empty() => Err(missing()),
        _ => Ok(rows),
    }
}

fn missing() -> Refusal {
    Refusal::not_found("there is no such entry")
}

/// Encodes an entry with the `selected` fields (all if `selected` is empty).
pub(crate) fn encode(table: &Table, row: &Row, selected: &[u32], key_only: bool) -> pb::TableEntry {
    let keys = row.key.iter().map(|(id, value)| {
        let width = table.keys.iter().find(|k| k.id == *id).map_or(32, |k| k.width);
        let bytes = match value {
            Value::Text(text) => text.clone().into_bytes().into(),
            other => value::number_bytes(width, other.as_number().unwrap_or(0)),
        };
        pb::KeyField {
            field_id: *id,
            match_type: Some(MatchType::Exact(pb::key_field::Exact { value: bytes })),
        }
    });
    let keys: Vec<_> = keys.collect();
    let of_action = table
        .actions
        .iter()
        .filter(|a| a.id == row.action)
        .flat_map(|a| &a.fields);
    let known: Vec<&Field> = table.data.iter().chain(of_action).collect();
    let fields = row
        .data
        .iter()
        .filter(|(id, _)| selected.is_empty() || selected.contains(id));
    let fields = fields.filter_map(|(id, value)| {
        let field = known.iter().find(|f| f.id == *id)?;
        Some(value::encode(*id, &field.ty, value))
    });
    pb::TableEntry {
        table_id: table.id,
        value: (!keys.is_empty()).then_some(EntryKey::Key(pb::TableKey { fields: keys })),
        data: (!key_only).then(|| pb::TableData {
            action_id: row.action,
            fields: fields.collect(),
        }),
        is_default_entry: table.keys.is_empty(),
        ..pb::TableEntry::default()
    }
}
