//! The transfer of a switch's state to another program, as P4Runtime entities: read from the old
//! switch, written to the new one.

use super::apply::apply_all;
use super::change::{self, Change};
use super::program::LoadedProgram;
use super::read::{self, Cursor, Portion, Reader};
use super::refusal::Refusal;
use super::{custom_crc, extern_keys};
use crate::dataplane::Items;
use crate::dataplane::{DataPlane, gather};
use std::sync::Arc;
use weir_ir::TableId;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::entity::Entity;
use weir_proto::p4::v1::update::Type;
use weir_proto::p4::v1::write_request::Atomicity;
use weir_switch::{Switch, Write};
use weir_table::TableOp;

/// Queries for all of the state, in an order in which it can be written.
fn queries() -> Vec<pb::Entity> {
    let entry = pb::TableEntry {
        counter_data: Some(pb::CounterData::default()),
        meter_config: Some(pb::MeterConfig::default()),
        ..pb::TableEntry::default()
    };
    let default = pb::TableEntry {
        is_default_action: true,
        ..entry.clone()
    };
    let all = [
        Entity::ActionProfileMember(pb::ActionProfileMember::default()),
        Entity::ActionProfileGroup(pb::ActionProfileGroup::default()),
        Entity::TableEntry(entry),
        Entity::TableEntry(default),
        Entity::CounterEntry(pb::CounterEntry::default()),
        Entity::MeterEntry(pb::MeterEntry::default()),
        Entity::RegisterEntry(pb::RegisterEntry::default()),
        Entity::ValueSetEntry(pb::ValueSetEntry::default()),
        Entity::PacketReplicationEngineEntry(pb::PacketReplicationEngineEntry::default()),
        Entity::ExternEntry(pb::ExternEntry::default()),
    ];
    all.map(|entity| pb::Entity { entity: Some(entity) }).to_vec()
}

/// The state of a switch, in one step.
///
/// # Errors
/// The switch is gone.
pub async fn take(plane: &dyn DataPlane, loaded: &Arc<LoadedProgram>) -> Result<Vec<pb::Entity>, Refusal> {
    let loaded = Arc::clone(loaded);
    let read = gather(plane, move |_, switch| {
        let reader = Reader {
            schema: &loaded.schema,
            errors: &loaded.program.errors,
            digests: &read::Digests::new(),
            switch,
            scope: None,
            with_dormant: true,
        };
        let mut portion = Portion::new(usize::MAX);
        for query in queries() {
            reader.read(&query, Cursor::default(), &mut portion)?;
        }
        Ok::<_, Refusal>(portion.entities)
    });
    let mut replicas = read.await?.into_iter();
    let mut whole = replicas.next().ok_or(crate::Gone)??;
    for other in replicas {
        read::merge(&mut whole, &other?);
    }
    Ok(whole)
}

/// A state, as changes of a program that was just loaded.
pub struct Transfer {
    changes: Vec<Result<Change, Refusal>>,
    /// Tables whose entries from the source are not to stay: the state has those that still are.
    cleared: Vec<TableId>,
}

impl Transfer {
    /// The state of one program for another.
    ///
    /// # Errors
    /// The other program has no place for some of it.
    pub fn new(state: &[pb::Entity], from: &LoadedProgram, to: &LoadedProgram) -> Result<Self, Refusal> {
        let mut changes = Vec::new();
        for entity in state {
            let Some(mut update) = update(entity, from, to) else {
                continue;
            };
            let dormant = match update.entity.as_mut().and_then(|e| e.entity.as_mut()) {
                Some(Entity::TableEntry(entry)) => change::take_dormant(&to.schema, entry),
                _ => Vec::new(),
            };
            let dormant = dormant.into_iter().map(|entity| pb::Update {
                r#type: Type::Modify.into(),
                entity: Some(pb::Entity { entity: Some(entity) }),
            });
            for update in std::iter::once(update).chain(dormant) {
                let change = change::decode(&to.schema, &to.program.errors, &update);
                changes.push(Ok(change.map_err(|e| e.within("the state cannot be kept"))?));
            }
        }
        let tables = to
            .program
            .tables
            .iter()
            .filter(|(_, t)| !t.const_entries && !t.entries.is_empty());
        // Objects that the old program did not have begin with their initial state.
        let known = |id: &TableId| {
            to.schema
                .table_of(*id)
                .is_some_and(|t| from.schema.tables.contains_key(&t.id))
        };
        Ok(Transfer {
            changes,
            cleared: tables.map(|(id, _)| id).filter(known).collect(),
        })
    }

    /// Makes the changes on a replica.
    ///
    /// # Errors
    /// They do not fit; nothing but the clearing of initial entries is done then.
    pub fn apply(&self, replica: usize, switch: &mut Switch) -> Result<(), Refusal> {
        for table in &self.cleared {
            switch.write(Write::Table(*table, TableOp::Clear))?;
        }
        let outcomes = apply_all(
            switch,
            replica,
            Items::Shared(&self.changes),
            // No packet waits: the program does not run yet.
            (Atomicity::RollbackOnError, usize::MAX),
        );
        let failure = outcomes.into_iter().filter_map(Result::err);
        let mut failure = failure.filter(|e| e.cause != super::refusal::Cause::RolledBack);
        match failure.next() {
            Some(refusal) => Err(Refusal::malformed(format!("the state cannot be kept: {refusal}"))),
            None => Ok(()),
        }
    }
}

/// The update that makes an entity; `None` for what every program begins with.
fn update(entity: &pb::Entity, from: &LoadedProgram, to: &LoadedProgram) -> Option<pb::Update> {
    let mut entity = entity.clone();
    let ty = match entity.entity.as_mut()? {
        Entity::TableEntry(entry) if entry.is_default_action => {
            if !is_changed_default(entry, from, to) {
                return None;
            }
            Type::Modify
        }
        Entity::TableEntry(entry) if entry.is_const => {
            // Such entries are the new program's own, and begin with their own resources.
            return None;
        }
        Entity::TableEntry(_) | Entity::ActionProfileMember(_) | Entity::ActionProfileGroup(_) => Type::Insert,
        Entity::CounterEntry(entry) if entry.data == Some(pb::CounterData::default()) => return None,
        Entity::MeterEntry(entry) if entry.config.is_none() => return None,
        Entity::ValueSetEntry(set) if set.members.is_empty() => return None,
        Entity::RegisterEntry(entry) if is_zero(entry, from) => return None,
        Entity::CounterEntry(_) | Entity::MeterEntry(_) | Entity::ValueSetEntry(_) | Entity::RegisterEntry(_) => {
            Type::Modify
        }
        Entity::PacketReplicationEngineEntry(_) => Type::Insert,
        // Nothing reads a key back.
        Entity::ExternEntry(entry) if extern_keys::is_type(&from.schema, entry.extern_type_id) => return None,
        // A program that does not hash by it needs no parameters.
        Entity::ExternEntry(entry) if custom_crc::decode(&to.schema, entry).is_err() => return None,
        Entity::ExternEntry(_) => Type::Modify,
        _ => return None,
    };
    Some(pb::Update {
        r#type: ty.into(),
        entity: Some(entity),
    })
}

/// Registers begin as zeros.
fn is_zero(entry: &pb::RegisterEntry, from: &LoadedProgram) -> bool {
    let Ok(register) = from.schema.register(entry.register_id) else {
        return false;
    };
    let Some(value) = &entry.data else { return true };
    let scalars = super::data::decode(&register.ty, value, &from.program.errors);
    scalars.is_ok_and(|s| s.iter().all(weir_ir::Bits::is_zero))
}

/// Whether a controller has changed the default entry; and whether the new program lets it be
/// changed.
fn is_changed_default(entry: &pb::TableEntry, from: &LoadedProgram, to: &LoadedProgram) -> bool {
    let Ok(table) = from.schema.table(entry.table_id) else {
        return false;
    };
    let initial = from.program.tables.get(table.table).map(|t| &t.default_action);
    let initial = initial.map(|call| super::action::encode_call(&table.actions, call));
    let given = entry.action.as_ref().and_then(|a| match &a.r#type {
        Some(pb::table_action::Type::Action(action)) => Some(action.clone()),
        _ => None,
    });
    let is_const = to.schema.table(entry.table_id).is_ok_and(|t| t.const_default);
    let is_noted = entry.controller_metadata != 0 || !entry.metadata.is_empty();
    !is_const && (given != initial || is_noted || entry.counter_data.is_some_and(|c| c != pb::CounterData::default()))
}
