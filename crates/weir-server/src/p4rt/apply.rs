//! Applies the changes of a batch to a replica of the switch, in one transaction.

use super::change::{Before, Change, Direct, NewState, Place};
use super::port_queues;
use super::refusal::Refusal;
use crate::dataplane::{Items, check_port};
use weir_ir::{ExternId, KeyMatch, TableId, ValueSetId};
use weir_proto::p4::v1::write_request::Atomicity;
use weir_switch::{Cell, Count, KeyBytes, Switch, Transaction, Write};
use weir_table::{EntryAction, EntryRef, Implementation, NewEntry, ProfileOp, TableOp};

/// Makes the changes in order, those already refused aside, and says what became of each.
///
/// The whole is one step between two packet vectors of this replica. Unless failures are to be left
/// alone (`CONTINUE_ON_ERROR`), the first one takes everything back; and they go through no more of
/// existing state than `most` entries.
pub fn apply_all(
    switch: &mut Switch,
    replica: usize,
    mut changes: Items<'_, Result<Change, Refusal>>,
    (atomicity, most): (Atomicity, usize),
) -> Vec<Result<(), Refusal>> {
    let continue_on_error = atomicity == Atomicity::ContinueOnError;
    let mut outcomes = Vec::with_capacity(changes.all().len());
    if !continue_on_error && changes.all().iter().any(Result::is_err) {
        // Changes that are impossible in any state are known before any is tried.
        return rolled_back(changes.all().iter().map(|c| c.as_ref().err().cloned()));
    }
    let mut transaction = switch.transaction();
    if !continue_on_error {
        transaction.bound(most);
    }
    for at in 0..changes.all().len() {
        let mark = transaction.mark();
        let outcome = take(&mut changes, at).and_then(|change| apply(change, replica, &mut transaction));
        if outcome.is_err() {
            transaction.back_to(mark);
            if !continue_on_error {
                transaction.back_to_start();
                let mut failure = outcome.err();
                return rolled_back((0..changes.all().len()).map(|i| if i == at { failure.take() } else { None }));
            }
        }
        outcomes.push(outcome);
    }
    transaction.commit();
    outcomes
}

/// Takes a change for this replica; its place is not read again.
fn take(changes: &mut Items<'_, Result<Change, Refusal>>, at: usize) -> Result<Change, Refusal> {
    match changes {
        Items::Own(changes) => std::mem::replace(&mut changes[at], Ok(Change::Nothing)),
        Items::Shared(changes) => changes[at].clone(),
    }
}

/// The outcomes of a batch that was rolled back: its failures, and for the others the roll-back.
fn rolled_back(failures: impl Iterator<Item = Option<Refusal>>) -> Vec<Result<(), Refusal>> {
    failures.map(|f| Err(f.unwrap_or_else(Refusal::rolled_back))).collect()
}

/// Makes one change; what it has done when it fails is for the caller to take back.
fn apply(change: Change, replica: usize, t: &mut Transaction<'_>) -> Result<(), Refusal> {
    match change {
        Change::InsertEntry(table, entry, direct) => return insert(t, replica, table, entry, &direct),
        Change::ModifyEntry(table, matches, priority, state) => {
            return modify(t, replica, table, EntryRef::Key { matches, priority }, state);
        }
        Change::DeleteEntry(table, matches, priority) => {
            let op = TableOp::Delete(EntryRef::Key { matches, priority });
            t.write(Write::Table(table, op))?;
        }
        Change::ModifyDefault(table, call, metadata, note, values) => {
            let op = match call {
                Some(call) => TableOp::SetDefault(call),
                None => TableOp::ResetDefault,
            };
            t.write(Write::Table(table, op))?;
            t.write(Write::Table(table, TableOp::AnnotateDefault(metadata, note)))?;
            write_direct(t, replica, 0, &values)?;
        }
        Change::Profile(instance, tables, op) => {
            check_profile(t.switch(), &tables, instance, &op)?;
            t.write(Write::Profile(instance, op))?;
        }
        Change::Counter(instance, cell, value) => {
            t.write(Write::Counter(instance, cell, share(value, replica)))?;
        }
        Change::Meter(instance, cell, config) => {
            t.write(Write::Meter(instance, cell, config))?;
        }
        Change::Direct(table, place, direct) => {
            let handle = handle_of(t.switch(), table, place)?;
            write_direct(t, replica, handle, &direct)?;
        }
        Change::Register(instance, cell, values) => {
            t.write(Write::Register(instance, cell, values))?;
        }
        Change::Group(before, id, group) => {
            let is_there = t.switch().replication().group(id).is_some();
            check_before(before, is_there, "multicast group", id)?;
            let replicas = group.iter().flat_map(|g| &g.replicas);
            for replica in replicas.flat_map(|r| std::iter::once(&r.replica).chain(&r.backups)) {
                check_port(t.switch(), replica.port)?;
            }
            t.write(Write::Group(id, group))?;
        }
        Change::Session(before, id, session) => {
            let is_there = t.switch().replication().session(id).is_some();
            check_before(before, is_there, "clone session", id)?;
            for replica in session.iter().flat_map(|s| &s.replicas) {
                check_port(t.switch(), replica.port)?;
            }
            t.write(Write::Session(id, session))?;
        }
        Change::ValueSet(set, members, _) => value_set(t, set, members)?,
        Change::CustomCrc(scope, parameters) => {
            t.write(Write::crc(scope, Some(parameters)))?;
        }
        Change::Key(before, instance, index, key) => set_key(t, before, instance, index, key)?,
        Change::Queues(port, config) => {
            check_port(t.switch(), port)?;
            let config = config.map(|config| port_queues::normalised(t.switch(), port, config));
            t.write(Write::Queue(port, config))?;
        }
        // Digests are the server's: it has checked them before the batch.
        Change::Digest(..) | Change::Nothing => {}
    }
    Ok(())
}

fn set_key(
    t: &mut Transaction<'_>,
    before: Before,
    instance: ExternId,
    index: u64,
    key: KeyBytes,
) -> Result<(), Refusal> {
    let is_set = t.switch().is_key_set(instance, index)?;
    let is_reset = key.bytes().is_empty() && t.switch().only_resets(instance)?;
    let name = |t: &Transaction<'_>| t.switch().program().externs[instance].name.clone();
    match (before, is_set) {
        (Before::Absent, true) => {
            return Err(Refusal::exists(format!(
                "key {index} of `{}` is set already; modify it instead",
                name(t)
            )));
        }
        (Before::Present, false) if !is_reset => {
            return Err(Refusal::not_found(format!(
                "key {index} of `{}` is not set; insert it first",
                name(t)
            )));
        }
        _ => {}
    }
    t.write(Write::Key(instance, index, key))?;
    Ok(())
}

/// A replica's share of a counter that was set: the sum over all replicas is the value.
fn share(value: Count, replica: usize) -> Count {
    if replica == 0 { value } else { Count::default() }
}

fn insert(
    t: &mut Transaction<'_>,
    replica: usize,
    table: TableId,
    entry: NewEntry,
    direct: &Direct,
) -> Result<(), Refusal> {
    check_style(t.switch(), table, &entry.action)?;
    let handle = t.insert(table, entry)?;
    write_direct(t, replica, handle.get(), direct)
}

fn modify(
    t: &mut Transaction<'_>,
    replica: usize,
    table: TableId,
    which: EntryRef,
    state: NewState,
) -> Result<(), Refusal> {
    let there = t.switch().table_state(table)?.table.get(&which);
    let there = there.map_err(weir_switch::ControlError::from)?;
    let handle = there.handle;
    if there.is_const {
        if state.action.is_some() {
            return Err(Refusal::forbidden(
                "the entry is const in the program; leave out the action",
            ));
        }
        return write_direct(t, replica, handle.get(), &state.direct);
    }
    // Without an action, everything but the direct resources stays as it is.
    if let Some(action) = state.action {
        check_style(t.switch(), table, &action)?;
        let op = TableOp::Modify {
            entry: EntryRef::Handle(handle),
            action,
            metadata: state.metadata,
            note: state.note,
            idle_timeout_ns: state.idle_timeout_ns,
        };
        t.write(Write::Table(table, op))?;
    }
    write_direct(t, replica, handle.get(), &state.direct)
}

fn write_direct(t: &mut Transaction<'_>, replica: usize, handle: u32, direct: &Direct) -> Result<(), Refusal> {
    let cell = Cell::Index(handle.into());
    if let Some((instance, value)) = direct.counter {
        t.write(Write::Counter(instance, cell, share(value, replica)))?;
    }
    if let Some((instance, config)) = direct.meter {
        t.write(Write::Meter(instance, cell, config))?;
    }
    Ok(())
}

/// The number that the direct resources of an entry have; 0 is the default entry's.
fn handle_of(switch: &Switch, table: TableId, place: Place) -> Result<u32, Refusal> {
    match place {
        Place::Default => Ok(0),
        Place::Entry(matches, priority) => {
            let state = switch.table_state(table)?;
            let entry = state.table.get(&EntryRef::Key { matches, priority });
            Ok(entry.map_err(weir_switch::ControlError::from)?.handle.get())
        }
    }
}

fn check_before(before: Before, is_there: bool, what: &str, id: u32) -> Result<(), Refusal> {
    match (before, is_there) {
        (Before::Absent, true) => Err(Refusal::exists(format!(
            "{what} {id} exists already; modify it instead"
        ))),
        (Before::Present, false) => Err(Refusal::not_found(format!("there is no {what} {id}; insert it first"))),
        _ => Ok(()),
    }
}

/// A selector's tables are filled either by members and groups or by action sets (specification,
/// section "One Shot Action Selector Programming"). All entries are of one kind, so checking
/// one suffices.
pub(crate) fn check_style(switch: &Switch, table: TableId, action: &EntryAction) -> Result<(), Refusal> {
    let spec = switch.table_state(table)?.table.spec();
    let Implementation::Selector(instance) = spec.implementation else {
        return Ok(());
    };
    let is_one_shot = matches!(action, EntryAction::OneShot(_));
    if let EntryAction::OneShot(set) = action {
        for port in set.iter().filter_map(|m| m.watch.map(|w| w.port)) {
            check_port(switch, port)?;
        }
    }
    let program = switch.program();
    let users = program
        .tables
        .iter()
        .filter(|(_, t)| t.implementation == Some(instance));
    let mut others = users.filter_map(|(id, _)| switch.state().table(id)?.table.entries().next());
    let mixed = others.any(|e| matches!(e.action, EntryAction::OneShot(_)) != is_one_shot);
    let has_members = switch
        .state()
        .profile(instance)
        .is_some_and(|p| p.members().next().is_some());
    if mixed || (is_one_shot && has_members) {
        return Err(mixed_styles());
    }
    Ok(())
}

fn mixed_styles() -> Refusal {
    Refusal::malformed(
        "the tables of a selector are filled either by members and groups or by action sets, not by both",
    )
}

/// As [`check_style`], for members and groups; and the specification's other rules for groups.
pub(crate) fn check_profile(
    switch: &Switch,
    tables: &[TableId],
    instance: ExternId,
    op: &ProfileOp,
) -> Result<(), Refusal> {
    if let ProfileOp::InsertMember(..) | ProfileOp::InsertGroup(..) = op {
        let mut entries = tables
            .iter()
            .filter_map(|t| switch.state().table(*t)?.table.entries().next());
        if entries.any(|e| matches!(e.action, EntryAction::OneShot(_))) {
            return Err(mixed_styles());
        }
    }
    if let ProfileOp::InsertGroup(_, group) | ProfileOp::ModifyGroup(_, group) = op {
        for port in group.members.iter().filter_map(|m| m.watch.map(|w| w.port)) {
            check_port(switch, port)?;
        }
    }
    if let ProfileOp::ModifyGroup(id, group) = op
        && let Some(there) = switch.state().profile(instance).and_then(|p| p.group(*id))
        && there.max_size != group.max_size
    {
        return Err(Refusal::malformed(format!(
            "the max_size of group {id} is {} and stays so; found {}",
            there.max_size, group.max_size
        )));
    }
    Ok(())
}

fn value_set(t: &mut Transaction<'_>, set: ValueSetId, members: Vec<Vec<KeyMatch>>) -> Result<(), Refusal> {
    t.write(Write::ValueSet(set, TableOp::Clear))?;
    // Members have no order, but the table requires a priority where they may overlap.
    let has_priority = t
        .switch()
        .state()
        .value_set(set)
        .is_some_and(|s| s.spec().has_priority());
    for matches in members {
        let action = EntryAction::call(0, Vec::new());
        let entry = NewEntry::new(matches, action).with_priority(u32::from(has_priority));
        t.write(Write::ValueSet(set, TableOp::Insert(entry)))?;
    }
    Ok(())
}
