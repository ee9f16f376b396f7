//! Decodes entities of P4Runtime.

use super::{RawData, Row, key};
use crate::encode::p4data;
use crate::entry::{Entry, Place};
use crate::error::Error;
use crate::schema::p4info::{self, id};
use crate::schema::{Field, Kind, Schema, Table, Type};
use crate::value::{Match, Value};
use crate::wire::{Broken, Reader};
use prost::Message;
use std::sync::Arc;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;

/// Decodes an `Entity` to a row; `false` if it is not an entry of a match-action table.
pub fn row<'a>(entity: &'a [u8], row: &mut Row<'a>) -> Result<bool, Broken> {
    row.clear();
    let mut reader = Reader(entity);
    let mut is_row = false;
    while let Some((field, value)) = reader.next()? {
        if field == 2 {
            table_entry(value.message()?, row)?;
            is_row = true;
        }
    }
    Ok(is_row)
}

pub fn table_entry<'a>(mut entry: Reader<'a>, row: &mut Row<'a>) -> Result<(), Broken> {
    while let Some((field, value)) = entry.next()? {
        match field {
            1 => row.table_id = value.u32()?,
            2 => row.keys.push(key(value.message()?)?),
            3 => action(value.message()?, row)?,
            4 => row.priority = value.u32()?,
            6 => numbers(
                value.message()?,
                &[(1, id::CIR), (2, id::CBS), (3, id::PIR), (4, id::PBS)],
                row,
            )?,
            7 => numbers(value.message()?, &[(1, id::BYTES), (2, id::PACKETS)], row)?,
            8 => row.is_default = value.number()? != 0,
            9 => row.data.push((id::IDLE, RawData::Number(value.number()?))),
            10 => numbers(value.message()?, &[(1, id::HIT)], row)?,
            13 => row.is_const = value.number()? != 0,
            11 => row.data.push((id::METADATA_ID, RawData::Bytes(value.bytes()?))),
            _ => {}
        }
    }
    Ok(())
}

/// Numeric fields of a message, as data. Missing fields are 0, and are reported as such.
fn numbers<'a>(mut reader: Reader<'a>, names: &[(u32, u32)], row: &mut Row<'a>) -> Result<(), Broken> {
    let first = row.data.len();
    for (_, id) in names {
        row.data.push((*id, RawData::Number(0)));
    }
    while let Some((field, value)) = reader.next()? {
        if let Some(i) = names.iter().position(|(f, _)| *f == field) {
            row.data[first + i].1 = RawData::Number(value.number()?);
        }
    }
    Ok(())
}

fn action<'a>(mut reader: Reader<'a>, row: &mut Row<'a>) -> Result<(), Broken> {
    while let Some((field, value)) = reader.next()? {
        match field {
            1 => {
                let mut call = value.message()?;
                while let Some((field, value)) = call.next()? {
                    match field {
                        1 => row.action_id = value.u32()?,
                        4 => row.params.push(param(value.message()?)?),
                        _ => {}
                    }
                }
            }
            2 => row.data.push((id::MEMBER, RawData::Number(value.number()?))),
            3 => row.data.push((id::GROUP, RawData::Number(value.number()?))),
            4 => row.data.push((id::SET, RawData::Message(4, value.bytes()?))),
            _ => {}
        }
    }
    Ok(())
}

fn param<'a>(mut reader: Reader<'a>) -> Result<(u32, RawData<'a>), Broken> {
    let mut id = 0;
    let mut bytes: &[u8] = &[];
    while let Some((field, value)) = reader.next()? {
        match field {
            2 => id = value.u32()?,
            3 => bytes = value.bytes()?,
            _ => {}
        }
    }
    Ok((id, RawData::Bytes(bytes)))
}

/// The value of a field. Targets also send data that the table does not have (byte counts where
/// packets are counted).
pub fn value(table: &Table, field: &Field, raw: RawData<'_>) -> Result<Value, String> {
    Ok(match raw {
        RawData::Bytes(bytes) => match field.ty {
            Type::Text(_) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
            Type::Bytes => Value::Wide(bytes.to_vec()),
            _ => Value::from_bytes(bytes),
        },
        RawData::Number(number) => Value::from(number),
        RawData::Float(number) => Value::Float(number),
        RawData::Message(_, bytes) => action_set(table, bytes)?,
    })
}

fn action_set(table: &Table, bytes: &[u8]) -> Result<Value, String> {
    let set = pb::ActionProfileActionSet::decode(bytes).map_err(|e| e.to_string())?;
    let mut records = Vec::new();
    for one in &set.action_profile_actions {
        let call = one.action.as_ref().ok_or("an element without an action")?;
        let action = table.actions.iter().find(|a| a.id == call.action_id);
        let action = action.ok_or_else(|| format!("there is no action {:#x}", call.action_id))?;
        let mut record = vec![
            ("action".to_owned(), Value::from(action.name.as_str())),
            ("weight".to_owned(), Value::from(u32::try_from(one.weight).unwrap_or(0))),
        ];
        if let Some(pb::action_profile_action::WatchKind::WatchPort(port)) = &one.watch_kind {
            record.push(("watch_port".to_owned(), Value::from_bytes(port)));
        }
        for param in &call.params {
            if let Some(field) = action.params.iter().find(|p| p.id == param.param_id) {
                record.push((field.name.clone(), value(table, field, RawData::Bytes(&param.value))?));
            }
        }
        records.push(Value::Record(record));
    }
    Ok(Value::List(records))
}

/// Decodes an entity other than an entry of a match-action table; `None` if this library does not
/// know it.
pub fn other(schema: &Schema, bytes: &[u8]) -> Result<Option<Entry>, Error> {
    let entity = pb::Entity::decode(bytes).map_err(|e| Error::Malformed(e.to_string()))?;
    let table = |id: u32| {
        schema
            .table_by_id(id)
            .ok_or_else(|| Error::Malformed(format!("an entry of an object {id:#x} that there is not")))
    };
    let index = |index: &Option<pb::Index>| {
        let index = index.as_ref().and_then(|i| u64::try_from(i.index).ok());
        index.map_or(Match::Any, Match::from)
    };
    Ok(match entity.entity {
        Some(Entity::CounterEntry(e)) => {
            let mut entry = keyed(table(e.counter_id)?, index(&e.index));
            let counts = e.data.unwrap_or_default();
            set(&mut entry, id::BYTES, number(counts.byte_count));
            set(&mut entry, id::PACKETS, number(counts.packet_count));
            Some(entry)
        }
        Some(Entity::MeterEntry(e)) => {
            let mut entry = keyed(table(e.meter_id)?, index(&e.index));
            if let Some(c) = e.config {
                let rates = [
                    (id::CIR, c.cir),
                    (id::CBS, c.cburst),
                    (id::PIR, c.pir),
                    (id::PBS, c.pburst),
                ];
                rates
                    .into_iter()
                    .for_each(|(id, rate)| set(&mut entry, id, number(rate)));
            }
            Some(entry)
        }
        Some(Entity::RegisterEntry(e)) => {
            let mut entry = keyed(table(e.register_id)?, index(&e.index));
            if let Some(data) = &e.data {
                register(&mut entry, data)?;
            }
            Some(entry)
        }
        Some(Entity::ValueSetEntry(e)) => {
            let table = table(e.value_set_id)?;
            let mut entry = Entry::of(table);
            let members: Result<Vec<Value>, Error> = e.members.iter().map(|m| value_set_member(table, m)).collect();
            set(&mut entry, 0, Value::List(members?));
            Some(entry)
        }
        Some(Entity::ActionProfileMember(e)) => {
            let mut entry = keyed(table(e.action_profile_id)?, Match::from(e.member_id));
            if let Some(action) = &e.action {
                member_action(&mut entry, action)?;
            }
            Some(entry)
        }
        Some(Entity::ActionProfileGroup(e)) => {
            let mut entry = keyed(table(e.action_profile_id | p4info::GROUPS)?, Match::from(e.group_id));
            set(
                &mut entry,
                id::MEMBERS_ID,
                Value::List(e.members.iter().map(group_member).collect()),
            );
            set(&mut entry, id::MAX_SIZE, number(e.max_size.into()));
            Some(entry)
        }
        Some(Entity::PacketReplicationEngineEntry(e)) => replication(schema, e)?,
        Some(Entity::ExternEntry(e)) => match schema.table_by_id(e.extern_id) {
            Some(table) if table.kind == Kind::CustomCrc => {
                let mut entry = Entry::of(table);
                crate::encode::custom_crc::decode(&mut entry, &e)?;
                Some(entry)
            }
            Some(table) if table.kind == Kind::ExternKeys => {
                let mut entry = Entry::of(table);
                crate::encode::extern_keys::decode(&mut entry, &e)?;
                Some(entry)
            }
            _ => None,
        },
        _ => None,
    })
}

fn keyed(table: &Arc<Table>, key: Match) -> Entry {
    let mut entry = Entry::of(table);
    if let Some(first) = entry.keys.first_mut() {
        *first = key;
    }
    entry
}

/// Sets data, if the table has the field.
fn set(entry: &mut Entry, id: u32, value: Value) {
    if let Some(place) = entry.table.data.iter().position(|f| f.id == id) {
        entry.data.push((Place::Data(place), value));
    }
}

/// A signed number that is never negative.
fn number(value: i64) -> Value {
    Value::from(u64::try_from(value).unwrap_or(0))
}

fn register(entry: &mut Entry, data: &pb::P4Data) -> Result<(), Error> {
    let table = Arc::clone(&entry.table);
    let decode = |field: &Field, data: &pb::P4Data| {
        p4data::decode(&field.ty, data).map_err(|why| Error::Malformed(format!("{}: {why}", table.name)))
    };
    match (&table.data[..], &data.data) {
        ([only], _) if only.name == "value" => {
            entry.data.push((Place::Data(0), decode(only, data)?));
        }
        (fields, Some(pb::p4_data::Data::Struct(parts))) => {
            for (i, (field, part)) in fields.iter().zip(&parts.members).enumerate() {
                entry.data.push((Place::Data(i), decode(field, part)?));
            }
        }
        _ => return Err(Error::Malformed(format!("{}: a value that is no struct", table.name))),
    }
    Ok(())
}

fn value_set_member(table: &Table, member: &pb::ValueSetMember) -> Result<Value, Error> {
    let bytes = member.encode_to_vec();
    let mut reader = Reader(&bytes);
    let mut record = Vec::new();
    while let Some((_, field)) = reader.next().map_err(super::broken)? {
        let raw = field.message().and_then(key).map_err(super::broken)?;
        if let Some(key) = table.elements.iter().find(|k| k.id == raw.id) {
            let to = super::match_of(table.protocol, key.kind, &key.ty, &raw).map_err(Error::Malformed)?;
            record.push((key.name.clone(), Value::Text(crate::notation::match_text(key, &to))));
        }
    }
    Ok(Value::Record(record))
}

fn member_action(entry: &mut Entry, call: &pb::Action) -> Result<(), Error> {
    let table = Arc::clone(&entry.table);
    let malformed = |why: String| Error::Malformed(format!("{}: {why}", table.name));
    let action = table.actions.iter().position(|a| a.id == call.action_id);
    let action = action.ok_or_else(|| malformed(format!("there is no action {:#x}", call.action_id)))?;
    entry.action = Some(action);
    for param in &call.params {
        let fields = &table.actions[action].params;
        let place = fields.iter().position(|p| p.id == param.param_id);
        let place = place.ok_or_else(|| malformed(format!("there is no parameter {}", param.param_id)))?;
        let value = value(&table, &fields[place], RawData::Bytes(&param.value)).map_err(malformed)?;
        entry.data.push((Place::Param(place), value));
    }
    Ok(())
}

fn group_member(member: &pb::action_profile_group::Member) -> Value {
    let mut record = vec![
        ("member_id".to_owned(), Value::from(member.member_id)),
        ("weight".to_owned(), number(member.weight.into())),
    ];
    if let Some(pb::action_profile_group::member::WatchKind::WatchPort(port)) = &member.watch_kind {
        record.push(("watch_port".to_owned(), Value::from_bytes(port)));
    }
    Value::Record(record)
}

fn replication(schema: &Schema, entry: pb::PacketReplicationEngineEntry) -> Result<Option<Entry>, Error> {
    use pb::packet_replication_engine_entry::Type;
    let table = |id: u32| {
        let table = schema.table_by_id(id);
        table.ok_or_else(|| Error::Malformed("a replication entry".to_owned()))
    };
    Ok(match entry.r#type {
        Some(Type::MulticastGroupEntry(group)) => {
            let key = Match::from(group.multicast_group_id);
            let mut entry = keyed(table(p4info::MULTICAST_TABLE)?, key);
            set(&mut entry, id::REPLICAS_ID, replicas(&group.replicas));
            if !group.metadata.is_empty() {
                set(&mut entry, id::METADATA_ID, Value::Wide(group.metadata));
            }
            Some(entry)
        }
        Some(Type::CloneSessionEntry(session)) => {
            let mut entry = keyed(table(p4info::CLONE_TABLE)?, Match::from(session.session_id));
            set(&mut entry, id::REPLICAS_ID, replicas(&session.replicas));
            set(&mut entry, 1, Value::from(session.class_of_service));
            set(&mut entry, 2, number(session.packet_length_bytes.into()));
            Some(entry)
        }
        None => None,
    })
}

#[allow(deprecated)]
fn replicas(replicas: &[pb::Replica]) -> Value {
    use pb::replica::PortKind;
    let record = |replica: &pb::Replica| {
        let port = match &replica.port_kind {
            Some(PortKind::Port(bytes)) => Value::from_bytes(bytes),
            Some(PortKind::EgressPort(port)) => Value::from(*port),
            None => Value::from(0_u32),
        };
        Value::Record(vec![
            ("port".to_owned(), port),
            ("instance".to_owned(), Value::from(replica.instance)),
        ])
    };
    Value::List(replicas.iter().map(record).collect())
}
