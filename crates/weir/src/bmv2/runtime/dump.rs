//! What is in tables, for people and scripts.

use super::profiles;
use super::tables::{handle_of, parts, spec};
use super::values::{self, hex};
use super::{Argument, Call, MANY, Spec};
use anyhow::Result;
use weir_ir::{ActionCall, TableId};
use weir_switch::Switch;
use weir_table::{ActionSpec, Entry, EntryAction, EntryRef, Implementation, TableSpec};

/// Entries that one call writes, as packets wait for it.
const AT_A_TIME: usize = 1000;

const RULE: &str = "==========\n";

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "table_dump",
        usage: "TABLE",
        about: "show all entries of a table, its profile and its default action",
        count: (1, 1),
        arguments: &[Argument::Table],
        run: dump,
    },
    Spec {
        name: "table_dump_entry",
        usage: "TABLE HANDLE",
        about: "show an entry",
        count: (2, 2),
        arguments: &[Argument::Table],
        run: dump_entry,
    },
    Spec {
        name: "table_dump_entry_from_key",
        usage: "TABLE KEY… [PRIORITY]",
        about: "show the entry with this key",
        count: (1, MANY),
        arguments: &[Argument::Table],
        run: dump_entry_of_key,
    },
];

/// An action with its data.
pub(super) fn action_text(actions: &[ActionSpec], call: &ActionCall) -> String {
    let name = actions.get(call.action).map_or("?", |a| a.name.as_str());
    let data: Vec<String> = call.arguments.iter().map(hex).collect();
    format!("Action entry: {name} - {}\n", data.join(", "))
}

fn entry_text(switch: &Switch, table: TableId, spec: &TableSpec, entry: &Entry) -> String {
    let width = spec.match_keys().map(|k| k.name.len()).max().unwrap_or(0).max(20);
    let mut text = format!("Dumping entry {:#x}\nMatch key:\n", entry.place());
    for (key, found) in spec.match_keys().zip(&entry.matches) {
        let kind = values::kind_name(key.kind).to_uppercase();
        let value = values::shown_match(found, key.width, hex);
        text += &format!("* {:width$}: {kind:10}{value}\n", key.name);
    }
    if spec.has_priority() {
        text += &format!("Priority: {}\n", values::shown_priority(entry.priority));
    }
    text += &match &entry.action {
        EntryAction::Call(call) => action_text(&spec.actions, call),
        EntryAction::Member(id) => format!("Index: member({id})\n"),
        EntryAction::Group(id) => format!("Index: group({id})\n"),
        EntryAction::OneShot(members) => members
            .iter()
            .map(|m| format!("Weight {}: {}", m.weight, action_text(&spec.actions, &m.action)))
            .collect(),
    };
    if spec.idle_timeout {
        let since = switch
            .now_ns()
            .saturating_sub(switch.last_hit_ns(table, entry.handle).unwrap_or(0));
        text += &format!(
            "Life: {}ms since hit, timeout is {}ms\n",
            since / 1_000_000,
            entry.idle_timeout_ns / 1_000_000
        );
    }
    text
}

fn dump(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let state = call.switch.table_state(table)?;
    let spec = state.table.spec();
    let mut text = String::new();
    if call.from == 0 {
        text += RULE;
        text += "TABLE ENTRIES\n";
    }
    let mut entries = state.table.entries_from(call.from);
    let mut last = None;
    for entry in entries.by_ref().take(AT_A_TIME) {
        text += "**********\n";
        text += &entry_text(call.switch, table, spec, entry);
        last = Some(entry.place());
    }
    if entries.next().is_some() {
        drop(entries);
        call.next = last.map(|place| place + 1);
        return Ok(text);
    }
    if let Implementation::Profile(id) | Implementation::Selector(id) = spec.implementation
        && let Some(profile) = call.switch.state().profile(id)
    {
        text += &profiles::dump_text(profile);
    }
    text += &format!(
        "{RULE}Dumping default entry\n{}{RULE}",
        action_text(&spec.actions, state.table.default_action())
    );
    Ok(text)
}

fn one(call: &Call<'_>, table: TableId, which: &EntryRef) -> Result<String> {
    let state = call.switch.table_state(table)?;
    let entry = state.table.get(which)?;
    Ok(entry_text(call.switch, table, state.table.spec(), entry))
}

fn dump_entry(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let handle = handle_of(call, table, call.argument(1, "the handle")?)?;
    one(call, table, &EntryRef::Handle(handle))
}

fn dump_entry_of_key(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let parts = parts(spec(call.switch, table)?, &call.arguments[1..])?;
    let key = EntryRef::Key {
        matches: parts.matches,
        priority: parts.priority,
    };
    one(call, table, &key)
}
