//! Tables: their entries and default actions.

use super::values::{self, colons};
use super::{Argument, Call, MANY, Spec};
use anyhow::{Context, Result, bail, ensure};
use weir_ir::{KeyMatch, TableId};
use weir_switch::{ControlError, Switch, Write, WriteResult};
use weir_table::{
    EntryAction, EntryHandle, EntryRef, Implementation, NewEntry, OpResult, TableError, TableOp, TableSpec,
};

const TABLE: &[Argument] = &[Argument::Table];
const TABLE_AND_ACTION: &[Argument] = &[Argument::Table, Argument::TableAction];

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "show_tables",
        usage: "",
        about: "list the tables with their keys",
        count: (0, 0),
        arguments: &[],
        run: show_tables,
    },
    Spec {
        name: "show_actions",
        usage: "",
        about: "list the actions with their parameters",
        count: (0, 0),
        arguments: &[],
        run: show_actions,
    },
    Spec {
        name: "table_show_actions",
        usage: "TABLE",
        about: "list the actions of a table",
        count: (1, 1),
        arguments: TABLE,
        run: table_actions,
    },
    Spec {
        name: "table_info",
        usage: "TABLE",
        about: "show keys and actions of a table",
        count: (1, 1),
        arguments: TABLE,
        run: table_info,
    },
    Spec {
        name: "table_num_entries",
        usage: "TABLE",
        about: "count the entries of a table",
        count: (1, 1),
        arguments: TABLE,
        run: count,
    },
    Spec {
        name: "table_add",
        usage: "TABLE ACTION KEY… => PARAMETER… [PRIORITY]",
        about: "add an entry; of priorities the smaller number wins",
        count: (2, MANY),
        arguments: TABLE_AND_ACTION,
        run: add,
    },
    Spec {
        name: "table_modify",
        usage: "TABLE ACTION HANDLE [=>] PARAMETER…",
        about: "give an entry another action",
        count: (3, MANY),
        arguments: TABLE_AND_ACTION,
        run: modify,
    },
    Spec {
        name: "table_delete",
        usage: "TABLE HANDLE",
        about: "delete an entry",
        count: (2, 2),
        arguments: TABLE,
        run: delete,
    },
    Spec {
        name: "table_clear",
        usage: "TABLE",
        about: "delete all entries, but not the default action",
        count: (1, 1),
        arguments: TABLE,
        run: clear,
    },
    Spec {
        name: "table_set_default",
        usage: "TABLE ACTION PARAMETER…",
        about: "set the default action",
        count: (2, MANY),
        arguments: TABLE_AND_ACTION,
        run: set_default,
    },
    Spec {
        name: "table_reset_default",
        usage: "TABLE",
        about: "set the default action that the program has",
        count: (1, 1),
        arguments: TABLE,
        run: reset_default,
    },
    Spec {
        name: "table_set_timeout",
        usage: "TABLE HANDLE MILLISECONDS",
        about: "set the idle timeout of an entry; 0: none",
        count: (3, 3),
        arguments: TABLE,
        run: set_timeout,
    },
    Spec {
        name: "table_indirect_add",
        usage: "TABLE KEY… => MEMBER [PRIORITY]",
        about: "add an entry that names a member of the table's action profile",
        count: (2, MANY),
        arguments: TABLE,
        run: indirect_add,
    },
    Spec {
        name: "table_indirect_add_with_group",
        usage: "TABLE KEY… => GROUP [PRIORITY]",
        about: "add an entry that names a group of the table's action selector",
        count: (2, MANY),
        arguments: TABLE,
        run: indirect_add_group,
    },
    Spec {
        name: "table_indirect_delete",
        usage: "TABLE HANDLE",
        about: "delete an entry of a table with an action profile",
        count: (2, 2),
        arguments: TABLE,
        run: delete,
    },
    Spec {
        name: "table_indirect_set_default",
        usage: "TABLE MEMBER",
        about: "not possible in weir: use table_set_default",
        count: (2, 2),
        arguments: TABLE,
        run: no_indirect_default,
    },
    Spec {
        name: "table_indirect_set_default_with_group",
        usage: "TABLE GROUP",
        about: "not possible in weir: use table_set_default",
        count: (2, 2),
        arguments: TABLE,
        run: no_indirect_default,
    },
    Spec {
        name: "table_indirect_reset_default",
        usage: "TABLE",
        about: "set the default action that the program has",
        count: (1, 1),
        arguments: TABLE,
        run: reset_default,
    },
];

impl Call<'_> {
    /// The table that the first argument names.
    pub(super) fn table(&self) -> Result<TableId> {
        Ok(self.switch.table(self.argument(0, "the table")?)?)
    }

    /// Makes a change of the table.
    fn change(&mut self, table: TableId, op: TableOp) -> Result<OpResult> {
        match self.switch.write(Write::Table(table, op)).map_err(with_shown_handle)? {
            WriteResult::Table(result) => Ok(result),
            WriteResult::Done => Ok(OpResult::Done),
        }
    }
}

/// An error with the handle that this command line shows: bmv2's begin with 0, weir's with 1.
fn with_shown_handle(error: ControlError) -> ControlError {
    match error {
        ControlError::Table(TableError::AlreadyExists { table, handle }) => {
            let handle = handle.saturating_sub(1);
            ControlError::Table(TableError::AlreadyExists { table, handle })
        }
        other => other,
    }
}

/// The fixed properties of a table.
pub(super) fn spec(switch: &Switch, table: TableId) -> Result<&TableSpec> {
    Ok(switch.table_state(table)?.table.spec())
}

fn action_line(action: &weir_table::ActionSpec) -> String {
    let parameters: Vec<String> = action.parameters.iter().map(|(n, w)| format!("{n}({w})")).collect();
    format!("{:30} [{}]\n", action.name, parameters.join(",\t"))
}

fn table_line(switch: &Switch, spec: &TableSpec) -> String {
    let profile = match spec.implementation {
        Implementation::Direct => None,
        Implementation::Profile(id) | Implementation::Selector(id) => switch.state().profile(id),
    };
    let implementation = profile.map_or("None", |profile| profile.spec().name.as_str());
    let key = |k: &weir_table::KeySpec| format!("{}({}, {})", k.name, values::kind_name(k.kind), k.width);
    let keys: Vec<String> = spec.match_keys().map(key).collect();
    format!(
        "{:30} [implementation={implementation}, mk={}]\n",
        spec.name,
        keys.join(",\t")
    )
}

fn show_tables(call: &mut Call<'_>) -> Result<String> {
    let ids: Vec<TableId> = call.switch.program().tables.ids().collect();
    let lines = ids
        .into_iter()
        .map(|id| Ok(table_line(call.switch, spec(call.switch, id)?)));
    let mut lines: Vec<String> = lines.collect::<Result<_>>()?;
    lines.sort();
    Ok(lines.concat())
}

fn show_actions(call: &mut Call<'_>) -> Result<String> {
    let ids: Vec<TableId> = call.switch.program().tables.ids().collect();
    let mut lines = Vec::new();
    for id in ids {
        lines.extend(spec(call.switch, id)?.actions.iter().map(action_line));
    }
    lines.sort();
    lines.dedup();
    Ok(lines.concat())
}

fn sorted_actions(spec: &TableSpec) -> String {
    let mut lines: Vec<String> = spec.actions.iter().map(action_line).collect();
    lines.sort();
    lines.concat()
}

fn table_actions(call: &mut Call<'_>) -> Result<String> {
    Ok(sorted_actions(spec(call.switch, call.table()?)?))
}

fn table_info(call: &mut Call<'_>) -> Result<String> {
    let spec = spec(call.switch, call.table()?)?;
    Ok(format!(
        "{}{}\n{}",
        table_line(call.switch, spec),
        "*".repeat(80),
        sorted_actions(spec)
    ))
}

fn count(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    Ok(format!("{}\n", call.switch.table_state(table)?.table.len()))
}

/// Keys, what stands after `=>`, and the priority, of arguments from `first` on.
pub(super) struct Parts<'a> {
    pub matches: Vec<KeyMatch>,
    pub rest: Vec<&'a str>,
    pub priority: u32,
}

pub(super) fn parts<'a>(spec: &TableSpec, arguments: &[&'a str]) -> Result<Parts<'a>> {
    let mut arguments = arguments.to_vec();
    let priority = match spec.has_priority() {
        true => values::priority(arguments.pop().unwrap_or_default())?,
        false => 0,
    };
    let arrow = arguments.iter().position(|a| *a == "=>");
    let rest = arrow.map_or_else(Vec::new, |at| arguments.split_off(at).split_off(1));
    Ok(Parts {
        matches: values::matches(spec, &arguments)?,
        rest,
        priority,
    })
}

/// What an entry does, for people.
fn described(spec: &TableSpec, matches: &[KeyMatch], action: &EntryAction) -> String {
    let keys = spec.match_keys().zip(matches).map(|(key, found)| {
        let kind = values::kind_name(key.kind).to_uppercase();
        format!("{kind}-{}", values::shown_match(found, key.width, colons))
    });
    let keys: Vec<String> = keys.collect();
    let mut text = format!("{:20} {}\n", "match key:", keys.join("\t"));
    if let EntryAction::Call(call) = action {
        let name = spec.actions.get(call.action).map_or("", |a| a.name.as_str());
        let data: Vec<String> = call.arguments.iter().map(colons).collect();
        text += &format!("{:20} {name}\n{:20} {}\n", "action:", "runtime data:", data.join("\t"));
    }
    text
}

fn insert(call: &mut Call<'_>, table: TableId, entry: NewEntry) -> Result<String> {
    let described = {
        let spec = spec(call.switch, table)?;
        let kind = values::table_kind(spec);
        let text = described(spec, &entry.matches, &entry.action);
        format!(
            "Adding entry to {kind} match table {}\n{text}",
            call.argument(0, "the table")?
        )
    };
    match call.change(table, TableOp::Insert(entry))? {
        OpResult::Handle(handle) => Ok(format!(
            "{described}Entry has been added with handle {}\n",
            handle.get() - 1
        )),
        OpResult::Removed(_) | OpResult::Done => Ok(described),
    }
}

fn add(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let entry = {
        let spec = spec(call.switch, table)?;
        if spec.implementation != Implementation::Direct {
            bail!("table {} has an action profile: use table_indirect_add", spec.name);
        }
        let parts = parts(spec, &call.arguments[2..])?;
        let action = values::call(&spec.actions, call.argument(1, "the action")?, &parts.rest)?;
        NewEntry::new(parts.matches, EntryAction::Call(action)).with_priority(parts.priority)
    };
    insert(call, table, entry)
}

fn indirect_entry(call: &mut Call<'_>, action: fn(u32) -> EntryAction, needs_selector: bool) -> Result<String> {
    let table = call.table()?;
    let entry = {
        let spec = spec(call.switch, table)?;
        match spec.implementation {
            Implementation::Direct => bail!("table {} has no action profile: use table_add", spec.name),
            Implementation::Profile(_) if needs_selector => {
                bail!("table {} has an action profile without groups", spec.name)
            }
            Implementation::Profile(_) | Implementation::Selector(_) => {}
        }
        let parts = parts(spec, &call.arguments[1..])?;
        let id = match parts.rest.as_slice() {
            [id] => id
                .parse()
                .with_context(|| format!("expected the number of a member or group, found `{id}`"))?,
            _ => bail!("behind => stands one number, that of the member or group"),
        };
        NewEntry::new(parts.matches, action(id)).with_priority(parts.priority)
    };
    insert(call, table, entry)
}

fn indirect_add(call: &mut Call<'_>) -> Result<String> {
    indirect_entry(call, EntryAction::Member, false)
}

fn indirect_add_group(call: &mut Call<'_>) -> Result<String> {
    indirect_entry(call, EntryAction::Group, true)
}

fn no_indirect_default(call: &mut Call<'_>) -> Result<String> {
    bail!(
        "the default action of table {} is an action, no member or group, as P4_16 has it: use table_set_default",
        call.argument(0, "the table")?
    )
}

/// The handle of an entry that the table has.
pub(super) fn handle_of(call: &Call<'_>, table: TableId, shown: &str) -> Result<EntryHandle> {
    let handle = values::handle(shown)?;
    let table = &call.switch.table_state(table)?.table;
    ensure!(
        table.entry(handle).is_some(),
        "table {} has no entry with handle {shown}",
        table.spec().name
    );
    Ok(handle)
}

/// The entry with a handle, as it is to be changed.
fn existing(call: &Call<'_>, table: TableId, handle: EntryHandle) -> Result<TableOp> {
    let state = call.switch.table_state(table)?;
    let entry = state.table.get(&EntryRef::Handle(handle))?;
    Ok(TableOp::Modify {
        entry: EntryRef::Handle(handle),
        action: entry.action.clone(),
        metadata: entry.metadata,
        note: entry.note.clone(),
        idle_timeout_ns: entry.idle_timeout_ns,
    })
}

fn modify(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let shown = call.argument(2, "the handle")?;
    let handle = handle_of(call, table, shown)?;
    let mut op = existing(call, table, handle)?;
    let data = match call.arguments.get(3) {
        Some(&"=>") => &call.arguments[4..],
        _ => &call.arguments[3..],
    };
    let spec = spec(call.switch, table)?;
    let new = values::call(&spec.actions, call.argument(1, "the action")?, data)?;
    let text = format!(
        "Modifying entry {shown} for {} match table {}\n",
        values::table_kind(spec),
        call.arguments[0]
    );
    if let TableOp::Modify { action, .. } = &mut op {
        *action = EntryAction::Call(new);
    }
    call.change(table, op)?;
    Ok(text)
}

fn delete(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let shown = call.argument(1, "the handle")?;
    let handle = handle_of(call, table, shown)?;
    call.change(table, TableOp::Delete(EntryRef::Handle(handle)))?;
    Ok(format!("Deleting entry {shown} from {}\n", call.arguments[0]))
}

fn clear(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    call.change(table, TableOp::Clear)?;
    Ok(String::new())
}

fn set_default(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    let (action, text) = {
        let spec = spec(call.switch, table)?;
        let data: Vec<&str> = call.arguments[2..].iter().copied().filter(|a| *a != "=>").collect();
        let action = values::call(&spec.actions, call.argument(1, "the action")?, &data)?;
        let name = spec.actions.get(action.action).map_or("", |a| a.name.as_str());
        let data: Vec<String> = action.arguments.iter().map(colons).collect();
        let text = format!(
            "Setting default action of {}\n{:20} {name}\n{:20} {}\n",
            call.arguments[0],
            "action:",
            "runtime data:",
            data.join("\t")
        );
        (action, text)
    };
    call.change(table, TableOp::SetDefault(action))?;
    Ok(text)
}

fn reset_default(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    call.change(table, TableOp::ResetDefault)?;
    Ok(String::new())
}

fn set_timeout(call: &mut Call<'_>) -> Result<String> {
    let table = call.table()?;
    if !spec(call.switch, table)?.idle_timeout {
        bail!(
            "table {} has no idle timeouts: it has no support_timeout = true",
            call.arguments[0]
        );
    }
    let shown = call.argument(1, "the handle")?;
    let timeout: u64 = call.number(2, "timeout in milliseconds")?;
    let handle = handle_of(call, table, shown)?;
    let mut op = existing(call, table, handle)?;
    if let TableOp::Modify { idle_timeout_ns, .. } = &mut op {
        *idle_timeout_ns = timeout.saturating_mul(1_000_000);
    }
    call.change(table, op)?;
    Ok(format!("Setting a {timeout} ms timeout for entry {shown}\n"))
}
