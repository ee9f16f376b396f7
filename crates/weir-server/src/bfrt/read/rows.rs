//! Encodes entries of match-action tables directly to the bytes of the answer, without a message
//! per entry, because tables with a million entries are read often.
//!
//! The result equals that of [`Entries::entry`], for tables with nothing but keys, actions,
//! counters and meters. Builds with debug assertions compare the two for every entry, so that every
//! test that reads a whole table does.
//!
//! Everything is written from the end to the start, as [`Writer`] requires, so that lengths are
//! known when they are written. Field numbers are those of `bfruntime.proto`.

use super::{Entries, sum};
use crate::bfrt::cells::meter_spec;
use crate::bfrt::entry;
use crate::bfrt::schema::{Field, Key, MatchTable, Role, Table};
use crate::bfrt::value::Type;
use crate::refusal::Refusal;
use prost::Message;
use prost::bytes::BytesMut;
use weir_ir::{ActionCall, Bits, ExternId, KeyMatch};
use weir_proto::backwards::Writer;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::entity::Entity;
use weir_switch::{Count, Switch};
use weir_table::{Entry, EntryAction};

/// Entities of a `ReadResponse`, encoded.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub bytes: BytesMut,
    /// Offsets of 64-bit numbers that are sums over replicas.
    sums: Vec<u32>,
}

impl Rows {
    /// Adds the counts of another replica for the same entries.
    ///
    /// Replicas have the same entries at the same positions, and counts have a fixed length.
    /// Therefore only the numbers at `sums` differ.
    pub fn merge(&mut self, other: &Rows) {
        debug_assert_eq!((self.bytes.len(), &self.sums), (other.bytes.len(), &other.sums));
        for at in self.sums.iter().map(|at| *at as usize..*at as usize + 8) {
            if let (Some(into), Some(other)) = (self.bytes.get_mut(at.clone()), other.bytes.get(at)) {
                into.copy_from_slice(&sum(into, other));
            }
        }
    }
}

/// A field with state of an entry, by its id; a meter's parameter is 0 to 3.
#[derive(Debug, Clone, Copy)]
enum StateColumn {
    Bytes(u32),
    Packets(u32),
    Meter(u32, usize),
}

/// Encodes entries of one table for one query.
pub(super) struct Layout<'a> {
    entries: &'a Entries,
    table: &'a Table,
    priority: Option<u32>,
    columns: Vec<StateColumn>,
    counter: Option<ExternId>,
    meter: Option<(ExternId, bool)>,
    writer: Writer,
    /// Distance from the end of the entry to each number that is a sum over replicas.
    sums: Vec<usize>,
}

impl<'a> Layout<'a> {
    /// The encoder of a table; `None` if its entries need messages.
    pub fn new(entries: &'a Entries, table: &'a Table, match_table: &MatchTable) -> Option<Self> {
        if match_table.idle_timeout || match_table.resources.has_registers_or_filters() {
            return None;
        }
        let fields = table.data.iter().filter(|f| entries.selects(f.id));
        let column = |field: &Field| match (field.role, &field.ty) {
            (Role::CounterBytes, Type::Bits(64)) => Some(Some(StateColumn::Bytes(field.id))),
            (Role::CounterPackets, Type::Bits(64)) => Some(Some(StateColumn::Packets(field.id))),
            (Role::Meter(which), Type::Bits(64)) => Some(Some(StateColumn::Meter(field.id, which))),
            // The entry's action decides which of the two it has.
            (Role::Member | Role::Group, Type::Bits(32)) => Some(None),
            _ => None,
        };
        let columns: Option<Vec<Option<StateColumn>>> = fields.map(column).collect();
        let columns: Vec<StateColumn> = columns?.into_iter().flatten().collect();
        let any_column = |is: fn(&StateColumn) -> bool| columns.iter().any(is);
        let counts = any_column(|c| matches!(c, StateColumn::Bytes(_) | StateColumn::Packets(_)));
        let meters = any_column(|c| matches!(c, StateColumn::Meter(..)));
        Some(Layout {
            entries,
            table,
            priority: match_table.priority,
            counter: match_table.resources.counter.filter(|_| counts),
            meter: match_table.resources.meter.filter(|_| meters),
            columns,
            writer: Writer::default(),
            sums: Vec::new(),
        })
    }

    /// Appends an entry. Builds with debug assertions compare it with `expected`.
    ///
    /// # Errors
    /// Its counter or meter does not exist.
    pub fn add(
        &mut self,
        switch: &Switch,
        entry: &Entry,
        out: &mut Rows,
        expected: impl Fn() -> Result<Entity, Refusal>,
    ) -> Result<(), Refusal> {
        self.writer.clear();
        self.sums.clear();
        // Fields from the last to the first: target, data, key, table.
        let end = self.writer.mark();
        if let Some(target) = &self.entries.target {
            self.writer.message(8, target);
        }
        if !self.entries.key_only {
            self.data(switch, entry)?;
        }
        self.key(entry);
        self.writer.uint32(1, self.table.id);
        self.writer.nested(1, end);
        debug_assert_eq!(Ok(self.writer.written().to_vec()), expected().map(encoded));
        self.writer.nested(1, end);
        out.bytes.extend_from_slice(self.writer.written());
        let end = out.bytes.len();
        out.sums.extend(self.sums.iter().map(|before| (end - before) as u32));
        Ok(())
    }

    fn key(&mut self, entry: &Entry) {
        let end = self.writer.mark();
        if let Some(id) = self.priority {
            let priority = entry::to_wire_priority(entry.priority).to_be_bytes();
            let end = self.writer.mark();
            self.writer.fill(1, 4, |room| room.copy_from_slice(&priority));
            self.writer.nested(2, end);
            self.writer.uint32(1, id);
            self.writer.nested(1, end);
        }
        for (key, found) in self.table.keys.iter().zip(&entry.matches).rev() {
            key_field(&mut self.writer, key, found);
        }
        self.writer.nested(2, end);
    }

    fn data(&mut self, switch: &Switch, entry: &Entry) -> Result<(), Refusal> {
        let end = self.writer.mark();
        let index = entry.handle.get().into();
        let count = match self.counter {
            Some(id) => switch.counter(id, index)?,
            None => Count::default(),
        };
        let meter = match self.meter {
            Some((id, is_bytes)) => meter_spec(switch.meter(id, index)?, is_bytes),
            None => [u64::MAX; 4],
        };
        for column in self.columns.iter().rev() {
            let (id, number, is_sum) = match *column {
                StateColumn::Bytes(id) => (id, count.bytes, true),
                StateColumn::Packets(id) => (id, count.packets, true),
                StateColumn::Meter(id, which) => (id, meter[which], false),
            };
            if is_sum {
                self.sums.push(self.writer.mark().before_end() + 8);
            }
            stream(&mut self.writer, id, 8, |room| {
                room.copy_from_slice(&number.to_be_bytes());
            });
        }
        match &entry.action {
            EntryAction::Call(call) => self.call(call),
            EntryAction::Member(id) => self.reference(Role::Member, *id),
            EntryAction::Group(id) => self.reference(Role::Group, *id),
            EntryAction::OneShot(_) => {}
        }
        self.writer.nested(3, end);
        Ok(())
    }

    fn call(&mut self, call: &ActionCall) {
        let all = &self.table.actions;
        let Some(action) = all.iter().find(|a| a.numbers.first() == Some(&call.action)) else {
            return;
        };
        for (param, value) in action.params.iter().zip(&call.arguments).rev() {
            if self.entries.selects(param.id) {
                stream(&mut self.writer, param.id, length(value), |room| value.copy_to(room));
            }
        }
        self.writer.uint32(1, action.id);
    }

    fn reference(&mut self, role: Role, id: u32) {
        if let Some(field) = self.table.field_with_role(role).filter(|f| self.entries.selects(f.id)) {
            stream(&mut self.writer, field.id, 4, |room| {
                room.copy_from_slice(&id.to_be_bytes());
            });
        }
    }
}

/// An entity as bytes, for comparison.
fn encoded(entity: Entity) -> Vec<u8> {
    let entity = Some(entity);
    pb::Entity { entity }.encode_to_vec()
}

/// Bytes of an encoded value.
fn length(value: &Bits) -> usize {
    value.width().div_ceil(8) as usize
}

/// Writes a numeric `DataField` of a `TableData`.
fn stream(writer: &mut Writer, id: u32, length: usize, fill: impl FnOnce(&mut [u8])) {
    let end = writer.mark();
    writer.fill(2, length, fill);
    writer.uint32(1, id);
    writer.nested(2, end);
}

/// Writes a numeric field.
fn bits(writer: &mut Writer, field: u32, value: &Bits) {
    writer.fill(field, length(value), |room| value.copy_to(room));
}

/// Writes a `KeyField` of a `TableKey`.
fn key_field(writer: &mut Writer, key: &Key, found: &KeyMatch) {
    let end = writer.mark();
    // `kind`: the field number in `KeyField` of the match type.
    let kind = match found {
        KeyMatch::Exact(value) => {
            bits(writer, 1, value);
            2
        }
        KeyMatch::Ternary { value, mask } => {
            bits(writer, 2, mask);
            bits(writer, 1, value);
            3
        }
        KeyMatch::Lpm { value, prefix_length } => {
            writer.uint32(2, *prefix_length);
            bits(writer, 1, value);
            4
        }
        KeyMatch::Range { low, high } => {
            bits(writer, 2, high);
            bits(writer, 1, low);
            5
        }
        KeyMatch::Optional(found) => {
            writer.bool(2, found.is_some());
            match found {
                Some(value) => bits(writer, 1, value),
                None => writer.fill(1, key.width.div_ceil(8) as usize, |room| room.fill(0)),
            }
            6
        }
    };
    writer.nested(kind, end);
    writer.uint32(1, key.id);
    writer.nested(1, end);
}
