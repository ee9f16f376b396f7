//! Validation of requests against the table's specification.

use crate::entry::EntryAction;
use crate::error::TableError;
use crate::spec::{ActionSpec, KeySpec, TableSpec};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};

fn match_name(m: &KeyMatch) -> &'static str {
    match m {
        KeyMatch::Exact(_) => "exact",
        KeyMatch::Lpm { .. } => "lpm",
        KeyMatch::Ternary { .. } => "ternary",
        KeyMatch::Range { .. } => "range",
        KeyMatch::Optional(_) => "optional",
    }
}

/// Checks match fields and priority.
pub(crate) fn matches(spec: &TableSpec, matches: &[KeyMatch], priority: u32) -> Result<(), TableError> {
    let expected = spec.match_keys().count();
    if matches.len() != expected {
        let names: Vec<_> = spec.match_keys().map(|k| k.name.as_str()).collect();
        return Err(TableError::KeyCount {
            table: spec.name.clone(),
            expected,
            found: matches.len(),
            names: names.join("`, `"),
        });
    }
    for (key, m) in spec.match_keys().zip(matches) {
        key_match(&spec.name, key, m)?;
    }
    if priority != 0 && !spec.has_priority() {
        return Err(TableError::PriorityNotAllowed {
            table: spec.name.clone(),
            found: priority,
        });
    }
    Ok(())
}

fn width(table: &str, what: impl FnOnce() -> String, expected: u32, value: &Bits) -> Result<(), TableError> {
    if value.width() == expected {
        Ok(())
    } else {
        Err(TableError::Width {
            table: table.to_owned(),
            what: what(),
            expected,
            found: value.width(),
        })
    }
}

fn key_match(table: &str, key: &KeySpec, m: &KeyMatch) -> Result<(), TableError> {
    let check = |value: &Bits| width(table, || format!("key `{}`", key.name), key.width, value);
    let canonical = |value: &Bits, mask: &Bits| {
        if value.and(mask) == *value {
            return Ok(());
        }
        Err(TableError::NotCanonical {
            table: table.to_owned(),
            key: key.name.clone(),
            value: format!("{value:#x}"),
            mask: format!("{mask:#x}"),
        })
    };
    match (key.kind, m) {
        (MatchKind::Exact, KeyMatch::Exact(value)) => check(value),
        (MatchKind::Optional, KeyMatch::Optional(value)) => value.as_ref().map_or(Ok(()), check),
        (MatchKind::Lpm, KeyMatch::Lpm { value, prefix_length }) => {
            check(value)?;
            if *prefix_length > key.width {
                return Err(TableError::PrefixLength {
                    table: table.to_owned(),
                    key: key.name.clone(),
                    width: key.width,
                    found: *prefix_length,
                });
            }
            canonical(value, &Bits::prefix_mask(key.width, *prefix_length))
        }
        (MatchKind::Ternary, KeyMatch::Ternary { value, mask }) => {
            check(value)?;
            check(mask)?;
            canonical(value, mask)
        }
        (MatchKind::Range, KeyMatch::Range { low, high }) => {
            check(low)?;
            check(high)?;
            if low.cmp_unsigned(high).is_gt() {
                return Err(TableError::EmptyRange {
                    table: table.to_owned(),
                    key: key.name.clone(),
                    low: format!("{low:#x}"),
                    high: format!("{high:#x}"),
                });
            }
            Ok(())
        }
        (kind, m) => Err(TableError::KeyKind {
            table: table.to_owned(),
            key: key.name.clone(),
            expected: kind.name(),
            found: match_name(m),
        }),
    }
}

/// Checks the data of an action.
pub(crate) fn arguments(table: &str, action: &ActionSpec, arguments: &[Bits]) -> Result<(), TableError> {
    if arguments.len() != action.parameters.len() {
        return Err(TableError::ParameterCount {
            table: table.to_owned(),
            action: action.name.clone(),
            expected: action.parameters.len(),
            found: arguments.len(),
        });
    }
    for ((name, expected), value) in action.parameters.iter().zip(arguments) {
        width(
            table,
            || format!("action `{}`, parameter `{name}`", action.name),
            *expected,
            value,
        )?;
    }
    Ok(())
}

fn call(spec: &TableSpec, call: &ActionCall) -> Result<(), TableError> {
    let action = spec.actions.get(call.action).ok_or_else(|| TableError::UnknownAction {
        table: spec.name.clone(),
        found: format!("number {}", call.action),
        names: spec.action_names(),
    })?;
    arguments(&spec.name, action, &call.arguments)
}

/// Checks the action of an entry.
pub(crate) fn entry_action(spec: &TableSpec, action: &EntryAction) -> Result<(), TableError> {
    if !spec.accepts(action) {
        return Err(TableError::ActionForm {
            table: spec.name.clone(),
            expected: spec.action_form(),
            found: action.form(),
        });
    }
    match action {
        EntryAction::Call(c) => table_call(spec, c),
        EntryAction::Member(_) | EntryAction::Group(_) => Ok(()),
        EntryAction::OneShot(set) => {
            if set.is_empty() || set.iter().any(|m| m.weight == 0) {
                return Err(TableError::Selector {
                    name: spec.name.clone(),
                    problem: "an action set needs at least one action, and every weight must be 1 or more".to_owned(),
                });
            }
            set.iter().try_for_each(|m| table_call(spec, &m.action))
        }
    }
}

fn table_call(spec: &TableSpec, c: &ActionCall) -> Result<(), TableError> {
    call(spec, c)?;
    let action = &spec.actions[c.action];
    if action.default_only {
        return Err(TableError::ActionScope {
            table: spec.name.clone(),
            action: action.name.clone(),
            allowed: "as default action (@defaultonly)",
        });
    }
    Ok(())
}

/// Checks a default action.
pub(crate) fn default_action(spec: &TableSpec, c: &ActionCall) -> Result<(), TableError> {
    if spec.const_default {
        return Err(TableError::Const {
            table: spec.name.clone(),
            what: "the default action",
        });
    }
    call(spec, c)?;
    let action = &spec.actions[c.action];
    if action.table_only {
        return Err(TableError::ActionScope {
            table: spec.name.clone(),
            action: action.name.clone(),
            allowed: "in entries (@tableonly)",
        });
    }
    Ok(())
}
