//! Executes resolved changes on a replica of the switch, as one transaction between two vectors.
//!
//! Every replica executes the same steps in the same order, so outcomes are equal. Only checks that
//! need the state are made here; `change` has made the others.

use super::cells::Patch;
use super::change::{Change, GroupState, NewState, Step, WriteMode, complete, missing_parameter};
use super::entry::GivenAction;
use super::fixed::{self, Fixed};
use super::schema::{Kind, MatchTable, Role, Schema, Table};
use super::value::Value;
use crate::dataplane::Items;
use crate::p4rt::apply::{check_profile, check_style};
use crate::refusal::{Cause, Refusal};
use weir_ir::{ActionCall, Bits, ExternId, KeyMatch, TableId, ValueSetId};
use weir_switch::{Cell, Switch, Transaction, Write};
use weir_table::{EntryAction, EntryHandle, EntryRef, Group, GroupMember, Member, NewEntry, ProfileOp, TableOp};

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It was executed.
    Made,
    /// The entry existed and was modified instead of inserted.
    Modified,
    /// The entry to delete did not exist, which is accepted.
    Absent,
}

/// The outcomes of a batch, in order. If the batch is atomic, those after the first failure are
/// missing.
pub(crate) type Outcomes = Vec<Result<Done, Refusal>>;

/// Moves the entry of an insertion out of its step, if this replica owns the steps.
fn take_entry(steps: &mut Items<'_, Step>, at: usize) -> Option<(NewEntry, Option<Box<Patch>>)> {
    let Items::Own(steps) = steps else { return None };
    let change = steps.get_mut(at)?.change.as_mut().ok()?;
    if !matches!(change, Change::InsertEntry(..)) {
        return None;
    }
    // The placeholder is not read again.
    match std::mem::replace(change, Change::Operation) {
        Change::InsertEntry(entry, patch) => Some((entry, patch)),
        _ => None,
    }
}

/// Executes the steps in order, and copies the refusals of those that were already refused.
///
/// All steps are one command, executed between two packet vectors of this replica. Unless
/// `continue_on_error` is set, the first failure rolls back the whole batch, and the batch may
/// traverse at most `most` existing entries. If `ignore_not_found` is set, deleting a missing entry
/// succeeds.
pub(crate) fn apply_all(
    switch: &mut Switch,
    replica: usize,
    schema: &Schema,
    steps: &mut Items<'_, Step>,
    (continue_on_error, ignore_not_found, most): (bool, bool, usize),
) -> Outcomes {
    let mut outcomes = Vec::with_capacity(steps.all().len());
    let mut transaction = switch.transaction();
    if !continue_on_error {
        transaction.bound(most);
    }
    for at in 0..steps.all().len() {
        let mark = transaction.mark();
        let table = steps.all()[at].table.map(|at| &*schema.tables[at]);
        let outcome = match (take_entry(steps, at), table) {
            (
                Some((entry, patch)),
                Some(Table {
                    kind: Kind::Match(match_table),
                    ..
                }),
            ) => insert(&mut transaction, replica, match_table, entry, patch.as_deref()).map(|()| Done::Made),
            (_, table) => match (&steps.all()[at].change, table) {
                (Err(refusal), _) => Err(refusal.clone()),
                (Ok(change), Some(table)) => apply(change, table, replica, &mut transaction),
                (Ok(_), None) => Ok(Done::Made),
            },
        };
        let step = &steps.all()[at];
        let outcome = match outcome {
            Err(e) if ignore_not_found && e.cause == Cause::NotFound && is_deletion(&step.change) => Ok(Done::Absent),
            other => other,
        };
        if outcome.is_err() {
            transaction.back_to(mark);
            if !continue_on_error {
                transaction.back_to_start();
                outcomes.push(outcome);
                return outcomes;
            }
        }
        outcomes.push(outcome);
    }
    transaction.commit();
    outcomes
}

fn is_deletion(change: &Result<Change, Refusal>) -> bool {
    use Change::{DeleteEntry, DeleteGroup, DeleteMember, DeletePortMetadata, DeleteValue};
    match change {
        Ok(Change::Fixed(op, _) | Change::Key(op, ..)) => *op == fixed::Op::Delete,
        Ok(change) => matches!(
            change,
            DeleteEntry(_) | DeleteMember(_) | DeleteGroup(_) | DeleteValue(_) | DeletePortMetadata(_)
        ),
        Err(_) => false,
    }
}

/// Executes one change. If it fails half-way, the caller rolls back.
fn apply(change: &Change, table: &Table, replica: usize, t: &mut Transaction<'_>) -> Result<Done, Refusal> {
    match (change, &table.kind) {
        (Change::InsertEntry(entry, patch), Kind::Match(match_table)) => {
            insert(t, replica, match_table, entry.clone(), patch.as_deref())?
        }
        (Change::ModifyEntry(which, state), Kind::Match(match_table)) => {
            modify(t, replica, (table, match_table), which, state)?
        }
        (Change::UpsertEntry(entry, state), Kind::Match(match_table)) => {
            return upsert(t, replica, (table, match_table), entry, state);
        }
        (Change::DeleteEntry(which), Kind::Match(match_table)) => {
            t.write(Write::Table(match_table.table, TableOp::Delete(which.clone())))?;
        }
        (Change::ResetEntry(which), Kind::Match(match_table)) => {
            let handle = handle_of(t, match_table.table, which)?;
            match_table.resources.clear(t, Cell::Index(handle.get().into()), None)?;
            t.write(Write::Touch(match_table.table, handle))?;
        }
        (Change::ModifyDefault(state), Kind::Match(match_table)) => {
            modify_default(t, replica, (table, match_table), state)?
        }
        (Change::ResetDefault, Kind::Match(match_table)) => reset_default(t, match_table)?,
        (Change::Clear, Kind::Match(match_table)) => {
            t.write(Write::Table(match_table.table, TableOp::Clear))?;
            if !match_table.const_default {
                reset_default(t, match_table)?;
            }
        }
        (Change::SetMember(how, id, action, values), Kind::Members(instances)) => {
            return set_member(t, table, instances, (*how, *id), *action, values);
        }
        (Change::DeleteMember(id), Kind::Members(instances)) => {
            for instance in instances {
                t.write(Write::Profile(*instance, ProfileOp::DeleteMember(*id)))?;
            }
        }
        (Change::Clear, Kind::Members(instances)) => {
            for instance in instances {
                let ids = ids(t, *instance, |p| p.members().map(|(id, _)| id).collect());
                for id in ids {
                    t.write(Write::Profile(*instance, ProfileOp::DeleteMember(id)))?;
                }
            }
        }
        (Change::SetGroup(how, id, state), Kind::Groups(selector)) => {
            return set_group(t, *selector, (*how, *id), state);
        }
        (Change::GroupMembers(id, adds, state), Kind::Groups(selector)) => {
            group_members(t, *selector, *id, *adds, state)?
        }
        (Change::DeleteGroup(id), Kind::Groups(selector)) => {
            t.write(Write::Profile(*selector, ProfileOp::DeleteGroup(*id)))?;
        }
        (Change::Clear, Kind::Groups(selector)) => {
            for id in ids(t, *selector, |p| p.groups().map(|(id, _)| id).collect()) {
                t.write(Write::Profile(*selector, ProfileOp::DeleteGroup(id)))?;
            }
        }
        (Change::SetCell(index, how, patch), Kind::Array(resources) | Kind::Parameter(resources)) => {
            patch.apply(t, replica, resources, Cell::Index(*index), *how == WriteMode::Insert)?;
        }
        (Change::ClearCell(index), Kind::Array(resources)) => resources.clear(t, Cell::Index(*index), None)?,
        (Change::Clear, Kind::Array(resources)) => resources.clear(t, Cell::All, None)?,
        (Change::ClearCell(_) | Change::Clear, Kind::Parameter(resources)) => {
            resources.clear(t, Cell::Index(0), initial(table))?
        }
        (Change::SetValue(how, matches), Kind::ValueSet(set)) => return set_value(t, *set, *how, matches),
        (Change::DeleteValue(matches), Kind::ValueSet(set)) => {
            let which = value_key(t, *set, matches);
            t.write(Write::ValueSet(*set, TableOp::Delete(which)))?;
        }
        (Change::Clear, Kind::ValueSet(set)) => {
            t.write(Write::ValueSet(*set, TableOp::Clear))?;
        }
        (Change::SetPortMetadata(how, port, values), _) => return set_port_metadata(t, *how, *port, values),
        (Change::DeletePortMetadata(port), _) => {
            if !t.switch().state().port_metadata.contains_key(port) {
                return Err(Refusal::not_found(format!("there is no metadata of port {port}")));
            }
            t.write(Write::PortMetadata(*port, None))?;
        }
        (Change::Clear, Kind::PortMetadata) => {
            let ports: Vec<u32> = t.switch().state().port_metadata.keys().copied().collect();
            for port in ports {
                t.write(Write::PortMetadata(port, None))?;
            }
        }
        (Change::Key(op, index, key), Kind::Fixed(Fixed::ExternKeys(instance))) => {
            let modified = fixed::extern_keys::apply(*instance, *op, *index, key, t)?;
            return Ok(fixed::outcome(*op, modified));
        }
        (Change::Fixed(op, row), Kind::Fixed(fixed)) => return fixed::apply(*fixed, (*op, row), table, replica, t),
        (Change::Ports(settings), _) => {
            for setting in settings {
                t.write(Write::Port(setting.port, setting.up))?;
                t.write(Write::Loopback(setting.port, setting.loopback))?;
            }
        }
        (Change::Operation | Change::Attribute(_), _) => {}
        _ => return Err(Refusal::unsupported("the table does not do this")),
    }
    Ok(Done::Made)
}

fn insert(
    t: &mut Transaction<'_>,
    replica: usize,
    match_table: &MatchTable,
    entry: NewEntry,
    patch: Option<&Patch>,
) -> Result<(), Refusal> {
    check_style(t.switch(), match_table.table, &entry.action)?;
    let handle = t.insert(match_table.table, entry)?;
    if let Some(patch) = patch {
        patch.apply(
            t,
            replica,
            &match_table.resources,
            Cell::Index(handle.get().into()),
            true,
        )?;
    }
    Ok(())
}

fn handle_of(t: &Transaction<'_>, table: TableId, which: &EntryRef) -> Result<EntryHandle, Refusal> {
    let entry = t.switch().table_state(table)?.table.get(which);
    Ok(entry.map_err(weir_switch::ControlError::from)?.handle)
}

fn modify(
    t: &mut Transaction<'_>,
    replica: usize,
    (table, match_table): (&Table, &MatchTable),
    which: &EntryRef,
    state: &NewState,
) -> Result<(), Refusal> {
    let existing = t.switch().table_state(match_table.table)?.table.get(which);
    let existing = existing.map_err(weir_switch::ControlError::from)?;
    let handle = existing.handle;
    let ttl = state.patch.as_ref().and_then(|p| p.ttl_ns);
    let action = match (&state.given, &existing.action) {
        (GivenAction::Nothing, _) => None,
        (GivenAction::Action(action), _) => Some(action.clone()),
        (GivenAction::Partial(number, values), EntryAction::Call(before)) => {
            Some(EntryAction::Call(complete(table, *number, values, before)?))
        }
        (GivenAction::Partial(number, values), _) => return Err(missing_parameter(table, *number, values)),
    };
    if action.is_some() || ttl.is_some() {
        let op = TableOp::Modify {
            entry: EntryRef::Handle(handle),
            action: action.unwrap_or_else(|| existing.action.clone()),
            metadata: existing.metadata,
            note: existing.note.clone(),
            idle_timeout_ns: ttl.unwrap_or(existing.idle_timeout_ns),
        };
        if let TableOp::Modify { action, .. } = &op {
            check_style(t.switch(), match_table.table, action)?;
        }
        t.write(Write::Table(match_table.table, op))?;
    }
    let cell = Cell::Index(handle.get().into());
    if state.resets.stats
        && let Some(counter) = match_table.resources.counter
    {
        t.write(Write::Counter(counter, cell, weir_switch::Count::default()))?;
    }
    if state.resets.ttl || ttl.is_some() {
        t.write(Write::Touch(match_table.table, handle))?;
    }
    if let Some(patch) = &state.patch {
        touch(t, match_table, handle, patch)?;
        patch.apply(t, replica, &match_table.resources, cell, false)?;
    }
    Ok(())
}

/// Marks an entry as hit, if the patch sets ENTRY_ACTIVE.
fn touch(t: &mut Transaction<'_>, match_table: &MatchTable, handle: EntryHandle, patch: &Patch) -> Result<(), Refusal> {
    match patch.is_active {
        Some(true) => {
            t.write(Write::Touch(match_table.table, handle))?;
            Ok(())
        }
        Some(false) => Err(Refusal::unsupported(
            "an entry is idle when no packet has hit it for its time: field `$ENTRY_HIT_STATE` takes ENTRY_ACTIVE",
        )),
        None => Ok(()),
    }
}

fn upsert(
    t: &mut Transaction<'_>,
    replica: usize,
    (table, match_table): (&Table, &MatchTable),
    entry: &NewEntry,
    state: &NewState,
) -> Result<Done, Refusal> {
    let which = EntryRef::Key {
        matches: entry.matches.clone(),
        priority: entry.priority,
    };
    if t.switch().table_state(match_table.table)?.table.get(&which).is_ok() {
        modify(t, replica, (table, match_table), &which, state)?;
        return Ok(Done::Modified);
    }
    insert(t, replica, match_table, entry.clone(), state.patch.as_deref())?;
    Ok(Done::Made)
}

fn modify_default(
    t: &mut Transaction<'_>,
    replica: usize,
    (table, match_table): (&Table, &MatchTable),
    state: &NewState,
) -> Result<(), Refusal> {
    let call: Option<ActionCall> = match &state.given {
        GivenAction::Nothing => None,
        GivenAction::Action(EntryAction::Call(call)) => Some(call.clone()),
        GivenAction::Action(_) => return Err(Refusal::unsupported("the default entry has an action of its own")),
        GivenAction::Partial(number, values) => {
            let before = t
                .switch()
                .table_state(match_table.table)?
                .table
                .default_action()
                .clone();
            Some(complete(table, *number, values, &before)?)
        }
    };
    if let Some(call) = call {
        t.write(Write::Table(match_table.table, TableOp::SetDefault(call)))?;
    }
    if state.resets.stats
        && let Some(counter) = match_table.resources.counter
    {
        t.write(Write::Counter(counter, Cell::Index(0), weir_switch::Count::default()))?;
    }
    match &state.patch {
        Some(patch) => patch.apply(t, replica, &match_table.resources, Cell::Index(0), false),
        None => Ok(()),
    }
}

fn reset_default(t: &mut Transaction<'_>, match_table: &MatchTable) -> Result<(), Refusal> {
    t.write(Write::Table(match_table.table, TableOp::ResetDefault))?;
    t.write(Write::Table(match_table.table, TableOp::AnnotateDefault(0, None)))?;
    match_table.resources.clear(t, Cell::Index(0), None)
}

fn ids(t: &Transaction<'_>, profile: ExternId, list: impl Fn(&weir_table::ActionProfile) -> Vec<u32>) -> Vec<u32> {
    t.switch().state().profile(profile).map(list).unwrap_or_default()
}

fn set_member(
    t: &mut Transaction<'_>,
    table: &Table,
    instances: &[ExternId],
    (how, id): (WriteMode, u32),
    action: usize,
    values: &[Option<Bits>],
) -> Result<Done, Refusal> {
    let mut done = Done::Made;
    for (at, instance) in instances.iter().enumerate() {
        let action = &table.actions[action];
        let number = *action.numbers.get(at).ok_or_else(|| {
            Refusal::malformed(format!(
                "the action `{}` is not for entries of the profile's tables",
                action.name
            ))
        })?;
        let existing = t
            .switch()
            .state()
            .profile(*instance)
            .and_then(|p| p.member(id))
            .cloned();
        let modifies = how == WriteMode::Modify || (how == WriteMode::Upsert && existing.is_some());
        let call = match &existing {
            Some(before) if modifies && values.iter().any(Option::is_none) => {
                if before.action.action != number {
                    return Err(missing_parameter(table, number, values));
                }
                let values = values.iter().zip(&before.action.arguments);
                let arguments = values.map(|(given, was)| given.clone().unwrap_or_else(|| was.clone()));
                ActionCall {
                    action: number,
                    arguments: arguments.collect(),
                }
            }
            _ => ActionCall {
                action: number,
                arguments: values.iter().flatten().cloned().collect(),
            },
        };
        let member = Member { action: call };
        let op = if modifies {
            done = Done::Modified;
            ProfileOp::ModifyMember(id, member)
        } else {
            ProfileOp::InsertMember(id, member)
        };
        check_profile(t.switch(), &[], *instance, &op)?;
        t.write(Write::Profile(*instance, op))?;
    }
    Ok(if how == WriteMode::Upsert { done } else { Done::Made })
}

/// The members given for a group.
fn members_of(state: &GroupState) -> Option<Vec<GroupMember>> {
    let ids = state.members.as_ref()?;
    let members = ids.iter().enumerate().map(|(at, id)| GroupMember {
        is_off: state.status.as_ref().is_some_and(|s| s.get(at) == Some(&false)),
        ..GroupMember::new(*id, 1)
    });
    Some(members.collect())
}

fn set_group(
    t: &mut Transaction<'_>,
    selector: ExternId,
    (how, id): (WriteMode, u32),
    state: &GroupState,
) -> Result<Done, Refusal> {
    let existing = t.switch().state().profile(selector).and_then(|p| p.group(id)).cloned();
    let modifies = how == WriteMode::Modify || (how == WriteMode::Upsert && existing.is_some());
    let before = existing.filter(|_| modifies).unwrap_or_default();
    let group = Group {
        members: members_of(state).unwrap_or(before.members),
        max_size: state.max_size.map_or(before.max_size, u64::from),
    };
    let (op, done) = match (modifies, how) {
        (true, WriteMode::Upsert) => (ProfileOp::ModifyGroup(id, group), Done::Modified),
        (true, _) => (ProfileOp::ModifyGroup(id, group), Done::Made),
        (false, _) => (ProfileOp::InsertGroup(id, group), Done::Made),
    };
    t.write(Write::Profile(selector, op))?;
    Ok(done)
}

fn group_members(
    t: &mut Transaction<'_>,
    selector: ExternId,
    id: u32,
    adds: bool,
    state: &GroupState,
) -> Result<(), Refusal> {
    let existing = t.switch().state().profile(selector).and_then(|p| p.group(id));
    let mut group = existing
        .cloned()
        .ok_or_else(|| Refusal::not_found(format!("there is no group {id}")))?;
    let members = members_of(state).unwrap_or_default();
    for member in members {
        let position = group.members.iter().position(|m| m.member == member.member);
        match (adds, position) {
            // A member given again replaces its status.
            (true, Some(position)) => group.members[position] = member,
            (true, None) => group.members.push(member),
            (false, Some(position)) => {
                group.members.remove(position);
            }
            (false, None) => {
                return Err(Refusal::not_found(format!(
                    "member {} is not in group {id}",
                    member.member
                )));
            }
        }
    }
    if let Some(max_size) = state.max_size {
        group.max_size = max_size.into();
    }
    t.write(Write::Profile(selector, ProfileOp::ModifyGroup(id, group)))?;
    Ok(())
}

/// Initial register values of a register parameter, from the defaults in its description.
fn initial(table: &Table) -> Option<Vec<Bits>> {
    let scalars = table.data.iter().filter(|f| matches!(f.role, Role::Register(..)));
    let values = scalars.map(|f| match (&f.ty, &f.default) {
        (super::value::Type::Bits(width), Some(Value::Number(n))) => Some(Bits::new(*width, (*n).into())),
        (super::value::Type::Bits(width), _) => Some(Bits::zero(*width)),
        (_, Some(Value::Bool(flag))) => Some(Bits::bool(*flag)),
        _ => None,
    });
    values.collect()
}

/// The priority for members of a value set. BF Runtime has none for them, but the table behind it
/// needs one if members may overlap.
fn value_priority(t: &Transaction<'_>, set: ValueSetId) -> u32 {
    let state = t.switch().state().value_set(set);
    u32::from(state.is_some_and(|s| s.spec().has_priority()))
}

fn value_key(t: &Transaction<'_>, set: ValueSetId, matches: &[KeyMatch]) -> EntryRef {
    EntryRef::Key {
        matches: matches.to_vec(),
        priority: value_priority(t, set),
    }
}

fn set_value(t: &mut Transaction<'_>, set: ValueSetId, how: WriteMode, matches: &[KeyMatch]) -> Result<Done, Refusal> {
    let which = value_key(t, set, matches);
    let is_there = t.switch().state().value_set(set).is_some_and(|s| s.get(&which).is_ok());
    if how == WriteMode::Upsert && is_there {
        return Ok(Done::Modified);
    }
    let entry = NewEntry::new(matches.to_vec(), EntryAction::call(0, Vec::new())).with_priority(value_priority(t, set));
    t.write(Write::ValueSet(set, TableOp::Insert(entry)))?;
    Ok(Done::Made)
}

fn set_port_metadata(t: &mut Transaction<'_>, how: WriteMode, port: u32, values: &[Bits]) -> Result<Done, Refusal> {
    let is_there = t.switch().state().port_metadata.contains_key(&port);
    match (how, is_there) {
        (WriteMode::Insert, true) => return Err(Refusal::exists(format!("there is metadata of port {port} already"))),
        (WriteMode::Modify, false) => return Err(Refusal::not_found(format!("there is no metadata of port {port}"))),
        _ => {}
    }
    let mut buffer = weir_interp::BitBuffer::new();
    values.iter().for_each(|v| buffer.push(v));
    let used: u32 = values.iter().map(Bits::width).sum();
    if !used.is_multiple_of(8) {
        buffer.push(&Bits::zero(8 - used % 8));
    }
    t.write(Write::PortMetadata(port, Some(buffer.into_bytes())))?;
    Ok(match how == WriteMode::Upsert && is_there {
        true => Done::Modified,
        false => Done::Made,
    })
}
