//! Encodes entries as messages of P4Runtime.

use super::key::{Canonical, canonical};
use super::{NO_KEY_MATERIAL, Operation, ReadOptions, Written, custom_crc, extern_keys, p4data, unsupported};
use crate::entry::{Entry, Place};
use crate::error::Error;
use crate::schema::p4info::{self, id};
use crate::schema::{Kind, Table, Type};
use crate::value::{Value, trim};
use crate::wire::Writer;
use prost::Message;
use std::sync::Arc;
use weir_proto::extern_keys::{INDEX, KEY};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;

/// The enum value of an operation; `None` if P4Runtime does not have it.
pub fn type_of(operation: Operation) -> Option<u64> {
    match operation {
        // Existing entries are modified by a second request.
        Operation::Insert | Operation::InsertOrModify => Some(1),
        Operation::Modify => Some(2),
        Operation::Delete => Some(3),
        Operation::Add | Operation::Remove | Operation::Reset => None,
    }
}

pub fn update(writer: &mut Writer, operation: Operation, entry: &Entry) -> Written {
    entry.check()?;
    let mut operation = operation;
    if !entry.table.has_entries() {
        // Cells of arrays always exist.
        if operation == Operation::Insert || operation == Operation::InsertOrModify {
            operation = Operation::Modify;
        }
    }
    let is_reset = entry.is_default && matches!(operation, Operation::Delete | Operation::Reset);
    if entry.is_default {
        // A default entry always exists; without an action it is reset to the program's.
        operation = Operation::Modify;
    }
    let number = type_of(operation).ok_or_else(|| unsupported(entry, operation))?;
    writer.varint(1, number);
    let is_delete = operation == Operation::Delete;
    writer.message(2, |w| {
        if entry.table.kind.is_match() {
            return w.message(2, |w| table_entry(w, entry, is_delete || is_reset));
        }
        let entity = entity(entry, is_delete)?;
        entity.encode(&mut w.out);
        Ok(())
    })
}

/// The fields of a `TableEntry`.
fn table_entry(w: &mut Writer, entry: &Entry, is_key_only: bool) -> Written {
    w.varint(1, u64::from(entry.table.id));
    if !entry.is_default {
        for (key, to) in entry.table.keys.iter().zip(&entry.keys) {
            let canonical = canonical(key, to).map_err(|reason| entry.wrong(&key.name, reason))?;
            let is_text = matches!(key.ty, Type::Text(_));
            field_match(w, 2, key.id, &canonical, is_text)?;
        }
    }
    if entry.priority != 0 {
        w.varint(4, u64::from(entry.priority));
    }
    if entry.is_default {
        w.varint(8, 1);
    }
    if is_key_only {
        return Ok(());
    }
    action(w, entry)?;
    let mut counts = (None, None);
    let mut rates = pb::MeterConfig::default();
    let mut has_rates = false;
    for (place, value) in &entry.data {
        let Place::Data(_) = place else { continue };
        let Some(field) = entry.field(*place) else { continue };
        let number = || integer(value).map_err(|reason| entry.wrong(&field.name, reason));
        let rate = match field.id {
            id::BYTES => {
                counts.0 = Some(number()?);
                continue;
            }
            id::PACKETS => {
                counts.1 = Some(number()?);
                continue;
            }
            id::CIR => &mut rates.cir,
            id::CBS => &mut rates.cburst,
            id::PIR => &mut rates.pir,
            id::PBS => &mut rates.pburst,
            id::IDLE => {
                w.varint(9, u64::try_from(number()?).unwrap_or(0));
                continue;
            }
            id::METADATA_ID => {
                w.bytes(11, &octets(value).map_err(|reason| entry.wrong(&field.name, reason))?);
                continue;
            }
            id::HIT => return Err(entry.wrong(&field.name, "can only be read".to_owned())),
            // Members, groups and sets are part of the action.
            _ => continue,
        };
        *rate = number()?;
        has_rates = true;
    }
    if has_rates {
        w.bytes(6, &rates.encode_to_vec());
    }
    if counts != (None, None) {
        let data = pb::CounterData {
            byte_count: counts.0.unwrap_or(0),
            packet_count: counts.1.unwrap_or(0),
        };
        w.bytes(7, &data.encode_to_vec());
    }
    Ok(())
}

/// A `FieldMatch`, unless it matches anything.
pub fn field_match(w: &mut Writer, field: u32, id: u32, canonical: &Canonical, is_text: bool) -> Written {
    let short = |bytes: &[u8]| {
        if is_text {
            return bytes.to_vec();
        }
        let significant = trim(bytes);
        if significant.is_empty() {
            vec![0]
        } else {
            significant.to_vec()
        }
    };
    let (kind, parts): (u32, Vec<Vec<u8>>) = match canonical {
        Canonical::Any => return Ok(()),
        Canonical::Lpm(_, 0) => return Ok(()),
        Canonical::Ternary(_, mask) if mask.iter().all(|b| *b == 0) => return Ok(()),
        Canonical::Exact(value) => (2, vec![short(value)]),
        Canonical::Ternary(value, mask) => (3, vec![short(value), short(mask)]),
        Canonical::Lpm(value, _) => (4, vec![short(value)]),
        Canonical::Range(low, high) => (6, vec![short(low), short(high)]),
        Canonical::Optional(value) => (7, vec![short(value)]),
    };
    w.message(field, |w| {
        w.varint(1, u64::from(id));
        w.message(kind, |w| {
            for (part, number) in parts.iter().zip(1..) {
                w.bytes(number, part);
            }
            if let Canonical::Lpm(_, prefix_len) = canonical {
                w.varint(2, u64::from(*prefix_len));
            }
            Ok(())
        })
    })
}

/// The `TableAction`, if the entry has one.
fn action(w: &mut Writer, entry: &Entry) -> Written {
    if let Some(place) = entry.action {
        let given = |i: usize| {
            let value = entry.data.iter().find(|(p, _)| *p == Place::Param(i));
            value.map(|(_, value)| value)
        };
        return w.message(3, |w| w.message(1, |w| call(w, entry, place, given)));
    }
    for (place, value) in &entry.data {
        let Some(field) = entry.field(*place) else { continue };
        let number = || unsigned(value).map_err(|reason| entry.wrong(&field.name, reason));
        match field.id {
            id::MEMBER | id::GROUP => {
                let number = number()?;
                let kind = if field.id == id::MEMBER { 2 } else { 3 };
                return w.message(3, |w| {
                    w.varint(kind, number);
                    Ok(())
                });
            }
            id::SET => return w.message(3, |w| w.message(4, |w| action_set(w, entry, value))),
            _ => {}
        }
    }
    Ok(())
}

/// The fields of an `Action`.
fn call<'a>(w: &mut Writer, entry: &Entry, place: usize, given: impl Fn(usize) -> Option<&'a Value>) -> Written {
    let Some(action) = entry.table.actions.get(place) else {
        return Ok(());
    };
    w.varint(1, u64::from(action.id));
    for (i, param) in action.params.iter().enumerate() {
        let value =
            given(i).ok_or_else(|| entry.wrong(&param.name, format!("the parameter of {} is missing", action.name)))?;
        let bytes = scalar(&param.ty, value).map_err(|reason| entry.wrong(&param.name, reason))?;
        w.message(4, |w| {
            w.varint(2, u64::from(param.id));
            w.bytes(3, &bytes);
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// The fields of an `ActionProfileActionSet`.
fn action_set(w: &mut Writer, entry: &Entry, set: &Value) -> Written {
    let wrong = |reason: String| entry.wrong(p4info::ACTION_SET, reason);
    let records = set
        .as_list()
        .ok_or_else(|| wrong("a list of actions is expected".to_owned()))?;
    for record in records {
        let name = record.field("action").and_then(Value::as_str);
        let place = entry
            .table
            .action(name.ok_or_else(|| wrong("an element has no action".to_owned()))?)?;
        let weight = record.field("weight").map_or(Ok(1), unsigned).map_err(wrong)?;
        let params = entry.table.actions.get(place).map_or(&[][..], |a| &a.params);
        w.message(1, |w| {
            w.message(1, |w| call(w, entry, place, |i| record.field(&params.get(i)?.name)))?;
            w.varint(2, weight);
            if let Some(port) = record.field("watch_port") {
                w.bytes(4, &scalar(&Type::Bits(32), port).map_err(wrong)?);
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

/// The entity of an entry of a table other than match-action.
fn entity(entry: &Entry, is_key_only: bool) -> Result<Entity, Error> {
    let index = |name: &str| -> Result<u64, Error> {
        let value = entry.key_of(name).and_then(|m| m.exact());
        let value = value.ok_or_else(|| entry.wrong(name, "a number is expected".to_owned()))?;
        unsigned(value).map_err(|reason| entry.wrong(name, reason))
    };
    let place = |name: &str| -> Result<Option<pb::Index>, Error> {
        if entry.key_of(name) == Some(&crate::value::Match::Any) {
            return Ok(None);
        }
        let index = i64::try_from(index(name)?).map_err(|_| entry.wrong(name, "too large".to_owned()))?;
        Ok(Some(pb::Index { index }))
    };
    let short = |name: &str| -> Result<u32, Error> {
        u32::try_from(index(name)?).map_err(|_| entry.wrong(name, "more than 32 bits".to_owned()))
    };
    let signed = |name: &str| -> Result<i64, Error> {
        entry
            .get(name)
            .map_or(Ok(0), integer)
            .map_err(|reason| entry.wrong(name, reason))
    };
    let small = |name: &str| -> Result<i32, Error> {
        i32::try_from(signed(name)?).map_err(|_| entry.wrong(name, "more than 31 bits".to_owned()))
    };
    let id = entry.table.id;
    Ok(match &entry.table.kind {
        Kind::Counter => Entity::CounterEntry(pb::CounterEntry {
            counter_id: id,
            index: place(p4info::COUNTER_INDEX)?,
            data: Some(pb::CounterData {
                byte_count: signed(p4info::COUNTER_BYTES)?,
                packet_count: signed(p4info::COUNTER_PACKETS)?,
            }),
        }),
        Kind::Meter => Entity::MeterEntry(pb::MeterEntry {
            meter_id: id,
            index: place(p4info::METER_INDEX)?,
            // Without rates, a meter is reset.
            config: (!entry.data.is_empty()).then_some(pb::MeterConfig {
                cir: signed(p4info::METER_CIR)?,
                cburst: signed(p4info::METER_CBS)?,
                pir: signed(p4info::METER_PIR)?,
                pburst: signed(p4info::METER_PBS)?,
                eburst: 0,
            }),
            counter_data: None,
        }),
        Kind::Register => Entity::RegisterEntry(pb::RegisterEntry {
            register_id: id,
            index: place(p4info::REGISTER_INDEX)?,
            data: if is_key_only { None } else { Some(register(entry)?) },
        }),
        Kind::ValueSet => Entity::ValueSetEntry(value_set(entry)?),
        Kind::Members => Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: id,
            member_id: short(p4info::MEMBER_ID)?,
            action: match entry.action {
                Some(place) if !is_key_only => Some(member_action(entry, place)?),
                _ => None,
            },
        }),
        Kind::Groups => Entity::ActionProfileGroup(pb::ActionProfileGroup {
            action_profile_id: id & !p4info::GROUPS,
            group_id: short(p4info::GROUP_ID)?,
            members: group_members(entry)?,
            max_size: small(p4info::MAX_GROUP_SIZE)?,
        }),
        Kind::MulticastGroups => replication(pb::packet_replication_engine_entry::Type::MulticastGroupEntry(
            pb::MulticastGroupEntry {
                multicast_group_id: short(p4info::MULTICAST_GROUP_ID)?,
                replicas: replicas(entry)?,
                metadata: match entry.get(p4info::METADATA) {
                    Some(value) => octets(value).map_err(|reason| entry.wrong(p4info::METADATA, reason))?,
                    None => Vec::new(),
                },
            },
        )),
        Kind::CloneSessions => replication(pb::packet_replication_engine_entry::Type::CloneSessionEntry(
            pb::CloneSessionEntry {
                session_id: short(p4info::SESSION_ID)?,
                replicas: replicas(entry)?,
                class_of_service: u32::try_from(signed("class_of_service")?)
                    .map_err(|_| entry.wrong("class_of_service", "more than 32 bits".to_owned()))?,
                packet_length_bytes: small("packet_length_bytes")?,
            },
        )),
        Kind::CustomCrc if is_key_only => Entity::ExternEntry(custom_crc::query(&entry.table)),
        Kind::CustomCrc => Entity::ExternEntry(custom_crc::entity(entry)?),
        Kind::ExternKeys => {
            let key = match entry.get(KEY) {
                Some(Value::Key(key)) if !is_key_only => key.bytes().to_vec(),
                Some(_) if !is_key_only => return Err(entry.wrong(KEY, NO_KEY_MATERIAL.to_owned())),
                _ => Vec::new(),
            };
            Entity::ExternEntry(extern_keys::entity(&entry.table, index(INDEX)?, key))
        }
        Kind::Match | Kind::MatchIndirect | Kind::Other(_) => return Err(unsupported(entry, Operation::Modify)),
    })
}

fn replication(ty: pb::packet_replication_engine_entry::Type) -> Entity {
    Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry { r#type: Some(ty) })
}

fn member_action(entry: &Entry, place: usize) -> Result<pb::Action, Error> {
    let mut writer = Writer::default();
    let given = |i: usize| {
        let value = entry.data.iter().find(|(p, _)| *p == Place::Param(i));
        value.map(|(_, value)| value)
    };
    call(&mut writer, entry, place, given)?;
    pb::Action::decode(&writer.out[..]).map_err(|e| Error::Malformed(e.to_string()))
}

fn register(entry: &Entry) -> Result<pb::P4Data, Error> {
    if let [only] = &entry.table.data[..]
        && only.name == "value"
    {
        let value = entry.get("value");
        let value = value.ok_or_else(|| entry.wrong("value", "is missing".to_owned()))?;
        return p4data::encode(&only.ty, value).map_err(|reason| entry.wrong("value", reason));
    }
    let mut members = Vec::new();
    for field in &entry.table.data {
        let value = entry.get(&field.name);
        let value = value.ok_or_else(|| entry.wrong(&field.name, "is missing".to_owned()))?;
        members.push(p4data::encode(&field.ty, value).map_err(|reason| entry.wrong(&field.name, reason))?);
    }
    Ok(pb::P4Data {
        data: Some(pb::p4_data::Data::Struct(pb::P4StructLike { members })),
    })
}

fn value_set(entry: &Entry) -> Result<pb::ValueSetEntry, Error> {
    let wrong = |reason: String| entry.wrong("members", reason);
    let mut members = Vec::new();
    for record in entry.get("members").and_then(Value::as_list).unwrap_or_default() {
        let mut writer = Writer::default();
        for key in &entry.table.elements {
            let to = match record.field(&key.name) {
                Some(Value::Text(text)) => crate::notation::parse_match(key, text)?,
                Some(value) => value.clone().into(),
                None => crate::value::Match::Any,
            };
            let to = canonical(key, &to).map_err(wrong)?;
            field_match(&mut writer, 1, key.id, &to, false)?;
        }
        members.push(pb::ValueSetMember::decode(&writer.out[..]).map_err(|e| Error::Malformed(e.to_string()))?);
    }
    Ok(pb::ValueSetEntry {
        value_set_id: entry.table.id,
        members,
    })
}

fn group_members(entry: &Entry) -> Result<Vec<pb::action_profile_group::Member>, Error> {
    let wrong = |reason: String| entry.wrong(p4info::MEMBERS, reason);
    let records = entry.get(p4info::MEMBERS).and_then(Value::as_list).unwrap_or_default();
    let member = |record: &Value| {
        let field = |name: &str| record.field(name).map(|v| unsigned(v).map_err(wrong)).transpose();
        let id = match record {
            Value::Bits(_) => Some(unsigned(record).map_err(wrong)?),
            _ => field("member_id")?,
        };
        let id = id.ok_or_else(|| wrong("an element has no member_id".to_owned()))?;
        let port = record.field("watch_port");
        let port = port.map(|p| scalar(&Type::Bits(32), p)).transpose().map_err(wrong)?;
        Ok(pb::action_profile_group::Member {
            member_id: u32::try_from(id).map_err(|_| wrong("a member_id has more than 32 bits".to_owned()))?,
            weight: i32::try_from(field("weight")?.unwrap_or(1))
                .map_err(|_| wrong("a weight has more than 31 bits".to_owned()))?,
            watch_kind: port.map(pb::action_profile_group::member::WatchKind::WatchPort),
        })
    };
    records.iter().map(member).collect()
}

fn replicas(entry: &Entry) -> Result<Vec<pb::Replica>, Error> {
    let wrong = |reason: String| entry.wrong(p4info::REPLICAS, reason);
    let records = entry.get(p4info::REPLICAS).and_then(Value::as_list).unwrap_or_default();
    let replica = |record: &Value| {
        let port = match record {
            Value::Record(_) => record.field("port"),
            other => Some(other),
        };
        let port = port.ok_or_else(|| wrong("a copy has no port".to_owned()))?;
        let instance = record.field("instance").map_or(Ok(0), unsigned).map_err(wrong)?;
        Ok(pb::Replica {
            port_kind: Some(pb::replica::PortKind::Port(
                scalar(&Type::Bits(32), port).map_err(wrong)?,
            )),
            instance: u32::try_from(instance).map_err(|_| wrong("an instance has more than 32 bits".to_owned()))?,
            backup_replicas: Vec::new(),
        })
    };
    records.iter().map(replica).collect()
}

/// The bytes of a parameter.
pub fn scalar(ty: &Type, value: &Value) -> Result<Vec<u8>, String> {
    match (ty, value) {
        (_, Value::Text(text)) if matches!(ty, Type::Text(_) | Type::Bits(32)) => Ok(text.clone().into_bytes()),
        (ty, value) => {
            let width = ty.width().ok_or("values of this type are not supported")?;
            value.shortest(width).ok_or_else(|| match value.bit_length() {
                Some(length) => format!("{value} has {length} bits, the field has {width}"),
                None => format!("{value} is no number of {width} bits"),
            })
        }
    }
}

fn unsigned(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("{value} is no number of 64 bits"))
}

fn integer(value: &Value) -> Result<i64, String> {
    let number = unsigned(value)?;
    i64::try_from(number).map_err(|_| format!("{value} has more than 63 bits"))
}

fn octets(value: &Value) -> Result<Vec<u8>, String> {
    match value {
        Value::Wide(bytes) => Ok(bytes.clone()),
        Value::Text(text) => Ok(text.clone().into_bytes()),
        other => Err(format!("{other} is no row of bytes")),
    }
}

pub fn query(writer: &mut Writer, table: &Arc<Table>, entry: Option<&Entry>, options: &ReadOptions) -> Written {
    let has = |id: u32| table.data.iter().any(|f| f.id == id);
    if table.kind.is_match() {
        return writer.message(2, |w| {
            match entry {
                Some(entry) => table_entry(w, entry, true)?,
                None => {
                    w.varint(1, u64::from(table.id));
                    if options.default_only {
                        w.varint(8, 1);
                    }
                }
            }
            if options.counters && (has(id::BYTES) || has(id::PACKETS)) {
                w.bytes(7, &[]);
            }
            if options.meters && has(id::CIR) {
                w.bytes(6, &[]);
            }
            // A default entry does not time out.
            let is_default = entry.map_or(options.default_only, |e| e.is_default);
            if options.idle && has(id::HIT) && !is_default {
                w.bytes(10, &[]);
            }
            Ok(())
        });
    }
    let entity = match entry {
        Some(entry) => without_data(entity(entry, true)?),
        None => any_of(table),
    };
    entity.encode(&mut writer.out);
    Ok(())
}

/// The entity of a Read by key: without data.
fn without_data(entity: Entity) -> Entity {
    match entity {
        Entity::CounterEntry(entry) => Entity::CounterEntry(pb::CounterEntry { data: None, ..entry }),
        Entity::MeterEntry(entry) => Entity::MeterEntry(pb::MeterEntry { config: None, ..entry }),
        Entity::RegisterEntry(entry) => Entity::RegisterEntry(pb::RegisterEntry { data: None, ..entry }),
        other => other,
    }
}

/// The entity of a Read of a whole table.
fn any_of(table: &Table) -> Entity {
    let id = table.id;
    match &table.kind {
        Kind::Meter => Entity::MeterEntry(pb::MeterEntry {
            meter_id: id,
            ..pb::MeterEntry::default()
        }),
        Kind::Register => Entity::RegisterEntry(pb::RegisterEntry {
            register_id: id,
            ..pb::RegisterEntry::default()
        }),
        Kind::ValueSet => Entity::ValueSetEntry(pb::ValueSetEntry {
            value_set_id: id,
            ..pb::ValueSetEntry::default()
        }),
        Kind::Members => Entity::ActionProfileMember(pb::ActionProfileMember {
            action_profile_id: id,
            ..pb::ActionProfileMember::default()
        }),
        Kind::Groups => Entity::ActionProfileGroup(pb::ActionProfileGroup {
            action_profile_id: id & !p4info::GROUPS,
            ..pb::ActionProfileGroup::default()
        }),
        Kind::MulticastGroups => replication(pb::packet_replication_engine_entry::Type::MulticastGroupEntry(
            pb::MulticastGroupEntry::default(),
        )),
        Kind::CloneSessions => replication(pb::packet_replication_engine_entry::Type::CloneSessionEntry(
            pb::CloneSessionEntry::default(),
        )),
        Kind::CustomCrc | Kind::ExternKeys => Entity::ExternEntry(custom_crc::query(table)),
        Kind::Counter | Kind::Match | Kind::MatchIndirect | Kind::Other(_) => Entity::CounterEntry(pb::CounterEntry {
            counter_id: id,
            ..pb::CounterEntry::default()
        }),
    }
}
