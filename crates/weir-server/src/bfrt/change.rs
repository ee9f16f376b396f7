//! Resolves an update of a `WriteRequest` to a [`Change`], and checks it as far as the program
//! alone allows.
//!
//! The message path: it takes decoded protobuf messages, and is the reference for `wire`. It does
//! not look at the state of the switch; checks that need it are in `apply`.

use super::cells::Patch;
use super::entry::{self, GivenAction};
use super::fixed::{self, Row};
use super::schema::{Action, Kind, MatchTable, Role, Schema, Style, Table};
use super::target;
use super::value::{self, Value};
use crate::refusal::Refusal;
use weir_ir::{ActionCall, Bits, KeyMatch};
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::key_field::MatchType;
use weir_proto::bfrt_proto::table_entry::Value as EntryKey;
use weir_proto::bfrt_proto::update::Type;
use weir_switch::KeyBytes;
use weir_table::{EntryAction, EntryHandle, EntryRef, NewEntry};

/// Whether an entry must exist before it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteMode {
    /// It must not exist.
    Insert,
    /// It must exist.
    Modify,
    /// It may exist.
    Upsert,
}

/// State of an entry that a modification resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Resets {
    /// The time to live restarts.
    pub ttl: bool,
    /// The counters become zero.
    pub stats: bool,
}

/// The new values of a modification.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NewState {
    pub given: GivenAction,
    pub patch: Option<Box<Patch>>,
    pub resets: Resets,
}

/// The new values of a selector group; `None` leaves a value unchanged.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct GroupState {
    pub members: Option<Vec<u32>>,
    /// For each member, whether it takes part in the choice.
    pub status: Option<Vec<bool>>,
    pub max_size: Option<u32>,
}

/// One change of a table, resolved.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Change {
    InsertEntry(NewEntry, Option<Box<Patch>>),
    ModifyEntry(EntryRef, Box<NewState>),
    UpsertEntry(NewEntry, Box<NewState>),
    DeleteEntry(EntryRef),
    /// Resets the entry's direct resources to their initial values.
    ResetEntry(EntryRef),
    ModifyDefault(Box<NewState>),
    ResetDefault,
    /// Removes all entries, or resets those that always exist.
    Clear,
    /// Member id, index of the action in the table's list, and parameters.
    SetMember(WriteMode, u32, usize, Vec<Option<Bits>>),
    DeleteMember(u32),
    SetGroup(WriteMode, u32, GroupState),
    /// Adds members to a group (`true`), or removes them.
    GroupMembers(u32, bool, GroupState),
    DeleteGroup(u32),
    SetCell(u64, WriteMode, Box<Patch>),
    ClearCell(u64),
    SetValue(WriteMode, Vec<KeyMatch>),
    DeleteValue(Vec<KeyMatch>),
    SetPortMetadata(WriteMode, u32, Vec<Bits>),
    DeletePortMetadata(u32),
    Fixed(fixed::Op, Row),
    /// Sets or removes a key of an extern, by its number.
    Key(fixed::Op, u64, KeyBytes),
    /// Ports go up or down, or change their loopback mode, because of new settings.
    Ports(Vec<crate::ports::Setting>),
    /// An operation such as synchronising counters. It changes nothing: reads are always of the
    /// current state.
    Operation,
    /// An attribute of the table. The server stores it, not the switch.
    Attribute(pb::TableAttribute),
}

/// A change, and the table it applies to.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Index of the table in the schema.
    pub table: Option<usize>,
    /// The attempted operation, for error messages.
    pub verb: &'static str,
    pub change: Result<Change, Refusal>,
}

/// Resolves an update; a refusal is part of the step.
pub(crate) fn decode(
    schema: &Schema,
    scopes: &target::Scopes,
    request: Option<&pb::TargetDevice>,
    update: &pb::Update,
) -> Step {
    let entity = update.entity.as_ref().and_then(|e| e.entity.as_ref());
    let ty = Type::try_from(update.r#type).unwrap_or(Type::Unspecified);
    match entity {
        Some(pb::entity::Entity::TableEntry(entry)) => {
            let verb = verb(ty, entry);
            let table = schema.index_of(entry.table_id);
            let change = table.and_then(|at| {
                let table = &schema.tables[at];
                let target = entry.entry_tgt.as_ref().or(request);
                scopes.check(table, target)?;
                let mut change = change(table, ty, entry)?;
                if let Change::Fixed(_, row) = &mut change {
                    row.pipe = target::pipe_of(target);
                }
                Ok(change)
            });
            Step {
                table: schema.index_of(entry.table_id).ok(),
                verb,
                change,
            }
        }
        Some(pb::entity::Entity::TableOperation(operation)) => Step {
            table: schema.index_of(operation.table_id).ok(),
            verb: "Table Operation failed",
            change: operate(schema, ty, operation),
        },
        Some(pb::entity::Entity::TableAttribute(attribute)) => Step {
            table: schema.index_of(attribute.table_id).ok(),
            verb: "Table Attribute set failed",
            change: schema
                .index_of(attribute.table_id)
                .map(|_| Change::Attribute(attribute.clone())),
        },
        Some(_) => Step {
            table: None,
            verb: "Write failed",
            change: Err(Refusal::unsupported("Invalid update: this entity is only read")),
        },
        None => Step {
            table: None,
            verb: "Write failed",
            change: Err(Refusal::unsupported("Invalid update: it has no entity")),
        },
    }
}

fn verb(ty: Type, entry: &pb::TableEntry) -> &'static str {
    match (ty, entry.is_default_entry) {
        (Type::Insert, true) => "INSERT of default entry is not supported. Please use MODIFY instead",
        (Type::Insert, false) => "Table Add failed",
        (Type::Modify, true) => "Table Default entry set failed",
        (Type::Modify, false) => "Table Entry modify failed",
        (Type::ModifyInc, _) => "Table Entry modify incremental failed",
        (Type::Delete, true) => "Table Default Entry reset failed",
        (Type::Delete, false) if entry.value.is_none() => "Table Entry delete all failed",
        (Type::Delete, false) => "Table Entry delete failed",
        (Type::InsertOrModify, _) => "Table AddOrMod failed",
        (Type::Reset, _) => "Table Entry reset failed",
        (Type::Unspecified, _) => "Invalid update type",
    }
}

fn operate(schema: &Schema, ty: Type, operation: &pb::TableOperation) -> Result<Change, Refusal> {
    let table = &schema.tables[schema.index_of(operation.table_id)?];
    if ty != Type::Insert {
        return Err(Refusal::malformed("an operation is executed by INSERT"));
    }
    // Clients may prefix the name by that of the table.
    let name = operation.table_operations_type.rsplit('.').next().unwrap_or_default();
    let name = name.trim_start_matches('$');
    let is_known = table.operations.iter().any(|o| o == name || is_alias(table, o, name));
    is_known.then_some(Change::Operation).ok_or_else(|| {
        let known = table.operations.join(", ");
        Refusal::malformed(format!(
            "the table has no operation `{}`; it has {}",
            operation.table_operations_type,
            if known.is_empty() { "none" } else { &known }
        ))
    })
}

/// Whether the reference server accepts `name` as an alias of an operation. `Sync` is short for
/// `SyncCounters` and `SyncRegisters`; these are also accepted for what tables of counters and
/// registers synchronise.
fn is_alias(table: &Table, operation: &str, name: &str) -> bool {
    match (operation, name) {
        ("SyncCounters" | "SyncRegisters", "Sync") => true,
        ("Sync", "SyncCounters") => matches!(&table.kind, Kind::Array(resources) if resources.counter.is_some()),
        ("Sync", "SyncRegisters") => matches!(&table.kind, Kind::Array(resources) if !resources.registers.is_empty()),
        _ => false,
    }
}

fn key_missing() -> Refusal {
    Refusal::malformed("Table key cannot be empty")
}

fn data_missing() -> Refusal {
    Refusal::malformed("Table data cannot be empty")
}

fn change(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    if ty == Type::Unspecified {
        return Err(Refusal::malformed("Invalid update type"));
    }
    if entry.is_default_entry {
        let has_key = match &entry.value {
            Some(EntryKey::Key(key)) => !key.fields.is_empty(),
            Some(EntryKey::HandleId(_)) => true,
            None => false,
        };
        if has_key {
            return Err(Refusal::malformed("the default entry has no key"));
        }
        if ty == Type::Insert {
            return Err(Refusal::unsupported("use MODIFY instead"));
        }
    }
    if table.read_only {
        return Err(Refusal::unsupported("the table is only read"));
    }
    let is_clear = ty == Type::Delete && !entry.is_default_entry && entry.value.is_none();
    match &table.kind {
        Kind::Fixed(_) => fixed::decode(table, ty, entry),
        _ if is_clear => clear(table),
        Kind::Match(match_table) => match_entry(table, match_table, ty, entry),
        _ if entry.is_default_entry => parameter(table, ty, entry),
        Kind::Members(_) => member(table, ty, entry),
        Kind::Groups(_) => group(table, ty, entry),
        Kind::Array(_) => cell(table, ty, entry),
        Kind::ValueSet(_) => value_set(table, ty, entry),
        Kind::PortMetadata => port_metadata(table, ty, entry),
        Kind::GetMember(_) => Err(Refusal::unsupported("the table is only read")),
        Kind::Parameter(_) => Err(Refusal::malformed("the table has only a default entry")),
    }
}

fn clear(table: &Table) -> Result<Change, Refusal> {
    match &table.kind {
        Kind::Match(match_table) if match_table.const_entries => Err(const_entries()),
        Kind::GetMember(_) => Err(Refusal::unsupported("the table is only read")),
        _ => Ok(Change::Clear),
    }
}

fn const_entries() -> Refusal {
    Refusal::malformed("the entries are const in the program")
}

/// The reset flags of a modification.
fn resets(entry: &pb::TableEntry) -> Resets {
    let flags = entry.table_flags.unwrap_or_default();
    Resets {
        ttl: flags.reset_ttl,
        stats: flags.reset_stats,
    }
}

fn match_entry(table: &Table, match_table: &MatchTable, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    if entry.is_default_entry {
        return default_entry(table, match_table, ty, entry);
    }
    let which = match &entry.value {
        Some(EntryKey::Key(key)) => {
            let (matches, priority) = entry::matches(table, match_table, key)?;
            Err((matches, priority))
        }
        Some(EntryKey::HandleId(handle)) => Ok(handle_of(*handle)?),
        None => return Err(key_missing()),
    };
    if match_table.const_entries && matches!(ty, Type::Insert | Type::Delete | Type::InsertOrModify) {
        return Err(const_entries());
    }
    let reference = |which| match which {
        Ok(handle) => EntryRef::Handle(handle),
        Err((matches, priority)) => EntryRef::Key { matches, priority },
    };
    match ty {
        Type::Delete => return Ok(Change::DeleteEntry(reference(which))),
        Type::Reset => return Ok(Change::ResetEntry(reference(which))),
        Type::ModifyInc => {
            return Err(Refusal::unsupported("its entries have no lists; use MODIFY"));
        }
        _ => {}
    }
    let (given, patch) = entry::data(table, match_table, entry.data.as_ref().ok_or_else(data_missing)?)?;
    let state = |given, patch| NewState {
        given,
        patch,
        resets: resets(entry),
    };
    if ty == Type::Modify {
        if match_table.const_entries && given != GivenAction::Nothing {
            return Err(const_entries());
        }
        return Ok(Change::ModifyEntry(reference(which), Box::new(state(given, patch))));
    }
    let Err((matches, priority)) = which else {
        return Err(Refusal::malformed(
            "a handle belongs to an entry that is there; use a key",
        ));
    };
    if table.keys.is_empty() {
        return Err(Refusal::malformed("a table without keys has only the default entry"));
    }
    let action = match given {
        GivenAction::Action(action) => action,
        GivenAction::Nothing if match_table.style == Style::Direct => {
            return Err(Refusal::malformed("the action_id is missing"));
        }
        GivenAction::Nothing => return Err(Refusal::malformed("the member or group is missing")),
        GivenAction::Partial(number, values) => return Err(missing_parameter(table, number, &values)),
    };
    let idle_timeout_ns = patch.as_ref().and_then(|p| p.ttl_ns).unwrap_or(0);
    let new = NewEntry {
        matches,
        priority,
        action,
        metadata: 0,
        note: None,
        idle_timeout_ns,
    };
    if ty == Type::Insert {
        return Ok(Change::InsertEntry(new, patch));
    }
    let state = state(GivenAction::Action(new.action.clone()), patch);
    Ok(Change::UpsertEntry(new, Box::new(state)))
}

/// Checks the number of a handle.
pub(crate) fn handle_of(number: u32) -> Result<EntryHandle, Refusal> {
    EntryHandle::new(number).ok_or_else(|| Refusal::not_found(format!("there is no entry with the handle {number}")))
}

/// The refusal of an action call with a missing parameter.
pub(crate) fn missing_parameter(table: &Table, number: usize, values: &[Option<Bits>]) -> Refusal {
    let action = table.actions.iter().find(|a| a.numbers.first() == Some(&number));
    let missing = values.iter().position(Option::is_none);
    let name = action
        .zip(missing)
        .and_then(|(a, at)| Some((&a.name, &a.params.get(at)?.name)));
    match name {
        Some((action, name)) => Refusal::malformed(format!("the field `{name}` of the action `{action}` is missing")),
        None => Refusal::malformed("a field of the action is missing"),
    }
}

fn default_entry(table: &Table, match_table: &MatchTable, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    match ty {
        Type::Delete | Type::Reset if match_table.const_default => {
            Err(Refusal::malformed("the default action is const in the program"))
        }
        Type::Delete | Type::Reset => Ok(Change::ResetDefault),
        Type::Modify | Type::InsertOrModify => {
            let (given, patch) = entry::data(table, match_table, entry.data.as_ref().ok_or_else(data_missing)?)?;
            if given != GivenAction::Nothing && match_table.const_default {
                return Err(Refusal::malformed("the default action is const in the program"));
            }
            if matches!(
                given,
                GivenAction::Action(EntryAction::Member(_) | EntryAction::Group(_))
            ) {
                return Err(Refusal::unsupported(
                    "the default entry of a table with an action profile is the program's",
                ));
            }
            Ok(Change::ModifyDefault(Box::new(NewState {
                given,
                patch,
                resets: resets(entry),
            })))
        }
        _ => Err(Refusal::unsupported("the default entry has no lists; use MODIFY")),
    }
}

/// A change of the only entry of a table without keys.
fn parameter(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    if !matches!(table.kind, Kind::Parameter(_)) {
        return Err(Refusal::unsupported("the table has no default entry"));
    }
    match ty {
        Type::Modify | Type::InsertOrModify => {
            Ok(Change::SetCell(0, WriteMode::Modify, Box::new(patch(table, entry)?)))
        }
        Type::Delete | Type::Reset => Ok(Change::ClearCell(0)),
        _ => Err(Refusal::unsupported("the default entry has no lists; use MODIFY")),
    }
}

/// The value of a key that consists of one number.
pub(crate) fn only_key(table: &Table, key: &pb::TableKey) -> Result<u64, Refusal> {
    let [expected] = table.keys.as_slice() else {
        return Err(key_missing());
    };
    let [field] = key.fields.as_slice() else {
        return Err(Refusal::malformed(format!("the key is `{}` alone", expected.name)));
    };
    if field.field_id != expected.id {
        return Err(Refusal::malformed(format!(
            "there is no key with the id {}",
            field.field_id
        )));
    }
    let Some(MatchType::Exact(m)) = &field.match_type else {
        return Err(Refusal::malformed(format!("key `{}` is given exactly", expected.name)));
    };
    value::number(expected.width, &m.value).map_err(|e| e.within(&format!("key `{}`", expected.name)))
}

fn number_key(table: &Table, entry: &pb::TableEntry) -> Result<u64, Refusal> {
    match &entry.value {
        Some(EntryKey::Key(key)) => only_key(table, key),
        Some(EntryKey::HandleId(_)) => Err(Refusal::unsupported("entries of this table have no handles; use a key")),
        None => Err(key_missing()),
    }
}

fn write_mode(ty: Type) -> WriteMode {
    match ty {
        Type::Insert => WriteMode::Insert,
        Type::InsertOrModify => WriteMode::Upsert,
        _ => WriteMode::Modify,
    }
}

fn member(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let id = number_key(table, entry)? as u32;
    match ty {
        Type::Delete => return Ok(Change::DeleteMember(id)),
        Type::Insert | Type::Modify | Type::InsertOrModify => {}
        _ => return Err(Refusal::unsupported("members are inserted, modified and deleted")),
    }
    let data = entry.data.as_ref().ok_or_else(data_missing)?;
    let at = table.actions.iter().position(|a| a.id == data.action_id && a.id != 0);
    let at = at.ok_or_else(|| Refusal::malformed(format!("there is no action with the id {}", data.action_id)))?;
    let values = parameters(&table.actions[at], &data.fields)?;
    if ty != Type::Modify
        && let Some(missing) = values.iter().position(Option::is_none)
    {
        let name = &table.actions[at].params[missing].name;
        return Err(Refusal::malformed(format!("the field `{name}` is missing")));
    }
    Ok(Change::SetMember(write_mode(ty), id, at, values))
}

/// The given parameters of an action, in its order; `None` where one is missing.
fn parameters(action: &Action, given: &[pb::DataField]) -> Result<Vec<Option<Bits>>, Refusal> {
    let mut values: Vec<Option<Bits>> = vec![None; action.params.len()];
    for field in given {
        let at = action.params.iter().position(|p| p.id == field.field_id);
        let at = at.ok_or_else(|| {
            Refusal::malformed(format!(
                "the action `{}` has no field with the id {}",
                action.name, field.field_id
            ))
        })?;
        let param = &action.params[at];
        let within = |e: Refusal| e.within(&format!("field `{}`", param.name));
        let Some(pb::data_field::Value::Stream(bytes)) = &field.value else {
            return Err(within(Refusal::malformed("the value must be a byte string")));
        };
        if values[at]
            .replace(value::bits(param.width, bytes).map_err(within)?)
            .is_some()
        {
            return Err(within(Refusal::malformed("it is given twice")));
        }
    }
    Ok(values)
}

fn group(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let id = number_key(table, entry)? as u32;
    if ty == Type::Delete {
        return Ok(Change::DeleteGroup(id));
    }
    let data = entry.data.as_ref().ok_or_else(data_missing)?;
    let mut state = GroupState::default();
    for (field_id, given) in value::decode_all(&table.data, &data.fields)? {
        match (table.data.iter().find(|f| f.id == field_id).map(|f| f.role), given) {
            (Some(Role::Member), Value::Numbers(members)) => state.members = Some(members),
            (Some(Role::MemberStatus), Value::Bools(status)) => state.status = Some(status),
            (Some(Role::MaxGroupSize), Value::Number(n)) => state.max_size = Some(n as u32),
            _ => {
                return Err(Refusal::malformed(format!(
                    "the field with the id {field_id} cannot be written"
                )));
            }
        }
    }
    let (members, status) = (
        state.members.as_ref().map(Vec::len),
        state.status.as_ref().map(Vec::len),
    );
    if status.is_some() && status != members {
        return Err(Refusal::malformed(format!(
            "there are {} members and {} statuses; give one per member",
            members.unwrap_or(0),
            status.unwrap_or(0)
        )));
    }
    match ty {
        Type::ModifyInc => {
            let removes = entry.table_flags.is_some_and(|f| f.mod_del) || removes_elements(entry);
            Ok(Change::GroupMembers(id, !removes, state))
        }
        Type::Reset => Err(Refusal::unsupported("groups are inserted, modified and deleted")),
        _ => Ok(Change::SetGroup(write_mode(ty), id, state)),
    }
}

/// Whether a MODIFY_INC of an older client removes elements (`table_mod_inc_flag`).
#[allow(deprecated, reason = "older clients")]
pub(crate) fn removes_elements(entry: &pb::TableEntry) -> bool {
    let flag = entry.table_mod_inc_flag.as_ref();
    flag.is_some_and(|f| f.r#type == i32::from(pb::table_mod_inc_flag::Type::ModIncDelete))
}

/// The new values of counters, meters, registers and filters.
fn patch(table: &Table, entry: &pb::TableEntry) -> Result<Patch, Refusal> {
    let data = entry.data.as_ref().ok_or_else(data_missing)?;
    let mut patch = Patch::default();
    for (at, given) in data.fields.iter().enumerate() {
        let field = table.data.iter().find(|f| f.id == given.field_id);
        let field =
            field.ok_or_else(|| Refusal::malformed(format!("there is no field with the id {}", given.field_id)))?;
        if data.fields[..at].iter().any(|f| f.field_id == given.field_id) {
            return Err(Refusal::malformed(format!("the field `{}` is given twice", field.name)));
        }
        if !patch.add(field, given)? {
            return Err(Refusal::malformed(format!(
                "the field `{}` cannot be written",
                field.name
            )));
        }
    }
    Ok(patch)
}

fn cell(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let index = number_key(table, entry)?;
    match ty {
        Type::Delete => Err(Refusal::unsupported(
            "cells are always there; a DELETE without key clears all of them",
        )),
        Type::ModifyInc => Err(Refusal::unsupported("cells have no lists; use MODIFY")),
        Type::Reset => Ok(Change::ClearCell(index)),
        _ => Ok(Change::SetCell(index, write_mode(ty), Box::new(patch(table, entry)?))),
    }
}

/// The matches of a value set's member.
pub(crate) fn value_matches(table: &Table, key: &pb::TableKey) -> Result<Vec<KeyMatch>, Refusal> {
    let one = |spec: &super::schema::Key| {
        let mut given = key.fields.iter().filter(|f| f.field_id == spec.id);
        let first = given.next();
        let first = first.ok_or_else(|| Refusal::malformed(format!("key `{}` is missing", spec.name)))?;
        if given.next().is_some() {
            return Err(Refusal::malformed(format!("key `{}` is given twice", spec.name)));
        }
        entry::key_match(spec, first).map_err(|e| e.within(&format!("key `{}`", spec.name)))
    };
    if key.fields.len() > table.keys.len() {
        return Err(Refusal::malformed("there are more fields than keys"));
    }
    table.keys.iter().map(one).collect()
}

fn value_set(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let matches = match &entry.value {
        Some(EntryKey::Key(key)) => value_matches(table, key)?,
        Some(EntryKey::HandleId(_)) => return Err(Refusal::unsupported("members of value sets have no handles")),
        None => return Err(key_missing()),
    };
    match ty {
        Type::Delete => Ok(Change::DeleteValue(matches)),
        Type::Insert | Type::InsertOrModify => Ok(Change::SetValue(write_mode(ty), matches)),
        _ => Err(Refusal::unsupported(
            "members of value sets have no data; insert and delete them",
        )),
    }
}

fn port_metadata(table: &Table, ty: Type, entry: &pb::TableEntry) -> Result<Change, Refusal> {
    let port = number_key(table, entry)? as u32;
    match ty {
        Type::Delete => return Ok(Change::DeletePortMetadata(port)),
        Type::Insert | Type::Modify | Type::InsertOrModify => {}
        _ => return Err(Refusal::unsupported("port metadata is inserted, modified and deleted")),
    }
    let data = entry.data.as_ref().ok_or_else(data_missing)?;
    let given = value::decode_all(&table.data, &data.fields)?;
    let bits = table.data.iter().map(|field| {
        let value = given.iter().find(|(id, _)| *id == field.id).map(|(_, v)| v);
        match (&field.ty, value) {
            (_, Some(Value::Wide(bits))) => bits.clone(),
            (_, Some(Value::Bool(flag))) => Bits::bool(*flag),
            (value::Type::Bits(width), found) => {
                Bits::new(*width, found.and_then(Value::as_number).unwrap_or(0).into())
            }
            _ => Bits::zero(1),
        }
    });
    Ok(Change::SetPortMetadata(write_mode(ty), port, bits.collect()))
}

/// An action call with missing parameters taken from the previous call of the same action.
pub(crate) fn complete(
    table: &Table,
    number: usize,
    values: &[Option<Bits>],
    before: &ActionCall,
) -> Result<ActionCall, Refusal> {
    if before.action != number {
        return Err(missing_parameter(table, number, values));
    }
    let values = values.iter().zip(&before.arguments);
    Ok(ActionCall {
        action: number,
        arguments: values
            .map(|(given, was)| given.clone().unwrap_or_else(|| was.clone()))
            .collect(),
    })
}
