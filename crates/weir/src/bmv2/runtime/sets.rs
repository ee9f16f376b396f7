//! Parser value sets.

use super::values;
use super::{Argument, Call, Spec};
use anyhow::{Context, Result};
use weir_ir::{Bits, KeyMatch, MatchKind, ValueSetId};
use weir_switch::Write;
use weir_table::{EntryAction, EntryRef, KeySpec, NewEntry, Table, TableOp};

pub const COMMANDS: &[Spec] = &[
    Spec {
        name: "show_pvs",
        usage: "",
        about: "list the parser value sets",
        count: (0, 0),
        arguments: &[],
        run: show,
    },
    Spec {
        name: "pvs_add",
        usage: "SET VALUE",
        about: "put a value into a set",
        count: (2, 2),
        arguments: &[Argument::ValueSet],
        run: add,
    },
    Spec {
        name: "pvs_remove",
        usage: "SET VALUE",
        about: "take a value out of a set",
        count: (2, 2),
        arguments: &[Argument::ValueSet],
        run: remove,
    },
    Spec {
        name: "pvs_get",
        usage: "SET",
        about: "show the values of a set",
        count: (1, 1),
        arguments: &[Argument::ValueSet],
        run: get,
    },
    Spec {
        name: "pvs_clear",
        usage: "SET",
        about: "remove all values of a set",
        count: (1, 1),
        arguments: &[Argument::ValueSet],
        run: clear,
    },
];

fn set<'a>(call: &'a Call<'_>) -> Result<(ValueSetId, &'a Table)> {
    let id = call.switch.value_set(call.argument(0, "the value set")?)?;
    let table = call.switch.state().value_set(id);
    Ok((id, table.context("the value set is gone")?))
}

/// The match of exactly this value, of whatever kind.
fn exactly(key: &KeySpec, value: Bits) -> KeyMatch {
    match key.kind {
        MatchKind::Exact | MatchKind::Selector => KeyMatch::Exact(value),
        MatchKind::Lpm => KeyMatch::Lpm {
            value,
            prefix_length: key.width,
        },
        MatchKind::Ternary => KeyMatch::Ternary {
            value,
            mask: Bits::ones(key.width),
        },
        MatchKind::Range => KeyMatch::Range {
            low: value.clone(),
            high: value,
        },
        MatchKind::Optional => KeyMatch::Optional(Some(value)),
    }
}

/// The matches of a value: the fields of the set one after another, the first at the front.
fn matches(table: &Table, text: &str) -> Result<Vec<KeyMatch>> {
    let keys: Vec<&KeySpec> = table.spec().match_keys().collect();
    let width = keys.iter().map(|k| k.width).sum();
    let value = values::bits(text, width, "the value")?;
    let mut left = width;
    let one = |key: &&KeySpec| {
        let high = left - 1;
        left -= key.width;
        exactly(key, value.slice(high, left))
    };
    Ok(keys.iter().map(one).collect())
}

fn show(call: &mut Call<'_>) -> Result<String> {
    let sets = call.switch.program().value_sets.iter();
    let mut lines: Vec<String> = sets
        .map(|(_, set)| {
            let width: u32 = set.fields.iter().map(|f| f.width).sum();
            format!("{:30} [compressed bitwidth:{width}]\n", set.name)
        })
        .collect();
    lines.sort();
    Ok(lines.concat())
}

fn add(call: &mut Call<'_>) -> Result<String> {
    let (id, table) = set(call)?;
    let matches = matches(table, call.argument(1, "the value")?)?;
    let has_it = table.entries().any(|entry| entry.matches == matches);
    // As in bmv2, a value that is there already is no error.
    if !has_it {
        let entry = NewEntry::new(matches, EntryAction::call(0, Vec::new()));
        call.switch.write(Write::ValueSet(id, TableOp::Insert(entry)))?;
    }
    Ok(String::new())
}

fn remove(call: &mut Call<'_>) -> Result<String> {
    let (id, table) = set(call)?;
    let matches = matches(table, call.argument(1, "the value")?)?;
    let entry = table.entries().find(|entry| entry.matches == matches).map(|e| e.handle);
    // As in bmv2, a value that is not there is no error.
    if let Some(handle) = entry {
        let op = TableOp::Delete(EntryRef::Handle(handle));
        call.switch.write(Write::ValueSet(id, op))?;
    }
    Ok(String::new())
}

fn get(call: &mut Call<'_>) -> Result<String> {
    let (_, table) = set(call)?;
    let keys: Vec<u32> = table.spec().match_keys().map(|k| k.width).collect();
    let lines = table.entries().map(|entry| {
        let parts = entry.matches.iter().zip(&keys);
        let parts: Vec<String> = parts
            .map(|(found, width)| match found {
                KeyMatch::Ternary { value, mask } if mask.is_ones() => values::hex(value),
                KeyMatch::Range { low, high } if low == high => values::hex(low),
                KeyMatch::Lpm { value, prefix_length } if prefix_length == width => values::hex(value),
                KeyMatch::Optional(Some(value)) => values::hex(value),
                other => values::shown_match(other, *width, values::hex),
            })
            .collect();
        parts.join(" ") + "\n"
    });
    Ok(lines.collect())
}

fn clear(call: &mut Call<'_>) -> Result<String> {
    let (id, _) = set(call)?;
    call.switch.write(Write::ValueSet(id, TableOp::Clear))?;
    Ok(String::new())
}
