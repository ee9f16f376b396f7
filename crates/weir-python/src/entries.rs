//! Entries of a switch's tables as Python has them: keys and actions by their places.

use crate::convert::{bits, kind, number};
use crate::errors::{control, invalid, refused};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind, TableId};
use weir_switch::{OpResult, Switch, WriteResult};
use weir_table::{Entry, EntryAction, EntryHandle, NewEntry, OneShotMember, TableSpec};

/// What entries of a table look like.
pub fn spec_of(switch: &Switch, table: TableId) -> PyResult<TableSpec> {
    let state = switch.table_state(table);
    state
        .map(|s| s.table.spec().clone())
        .map_err(|error| invalid(error.to_string()))
}

/// The matches of an entry: for each key `None` (anything), a number, or `(kind, number, number)`.
pub fn matches(spec: &TableSpec, given: &Bound<'_, PyAny>) -> PyResult<Vec<KeyMatch>> {
    let given: Vec<Bound<'_, PyAny>> = given.extract()?;
    let keys: Vec<_> = spec.match_keys().collect();
    if keys.len() != given.len() {
        return Err(invalid(format!(
            "{}: expected {} keys, found {}",
            spec.name,
            keys.len(),
            given.len()
        )));
    }
    let pairs = keys.iter().zip(&given);
    pairs
        .map(|(key, given)| one_match(&key.name, key.width, key.kind, given))
        .collect()
}

fn one_match(name: &str, width: u32, kind_of: MatchKind, given: &Bound<'_, PyAny>) -> PyResult<KeyMatch> {
    let form: Option<(String, Bound<'_, PyAny>, Bound<'_, PyAny>)> = if given.is_instance_of::<PyTuple>() {
        Some(given.extract()?)
    } else {
        None
    };
    let value = |of: &Bound<'_, PyAny>| bits(of, width, name);
    let length = |of: &Bound<'_, PyAny>| -> PyResult<u32> {
        let length: Option<u32> = of.extract().ok();
        let fits = length.filter(|l| *l <= width);
        fits.ok_or_else(|| {
            invalid(format!(
                "{name}: expected a length of a prefix from 0 to {width}, found {of}"
            ))
        })
    };
    let other = || {
        let found = form.as_ref().map_or_else(|| kind(given), |(form, ..)| form.clone());
        invalid(format!("{name}: a key of the kind {} takes no {found}", kind_of.name()))
    };
    let is_any = given.is_none();
    let parts = form.as_ref().map(|(form, a, b)| (form.as_str(), a, b));
    Ok(match (kind_of, parts) {
        (MatchKind::Exact | MatchKind::Selector, None) if is_any => {
            return Err(invalid(format!("{name}: an exact key needs a value")));
        }
        (MatchKind::Exact | MatchKind::Selector, None) => KeyMatch::Exact(value(given)?),
        (MatchKind::Optional, None) if is_any => KeyMatch::Optional(None),
        (MatchKind::Optional, None) => KeyMatch::Optional(Some(value(given)?)),
        (MatchKind::Lpm, None) if is_any => prefix(Bits::zero(width), 0),
        (MatchKind::Lpm, None) => prefix(value(given)?, width),
        (MatchKind::Lpm, Some(("lpm", a, b))) => prefix(value(a)?, length(b)?),
        (MatchKind::Ternary, None) if is_any => ternary(Bits::zero(width), Bits::zero(width)),
        (MatchKind::Ternary, None) => ternary(value(given)?, Bits::ones(width)),
        (MatchKind::Ternary, Some(("ternary", a, b))) => ternary(value(a)?, value(b)?),
        (MatchKind::Ternary, Some(("lpm", a, b))) => ternary(value(a)?, Bits::prefix_mask(width, length(b)?)),
        (MatchKind::Range, None) if is_any => range(Bits::zero(width), Bits::ones(width)),
        (MatchKind::Range, None) => range(value(given)?, value(given)?),
        (MatchKind::Range, Some(("range", a, b))) => range(value(a)?, value(b)?),
        (_, _) => return Err(other()),
    })
}

fn prefix(value: Bits, prefix_length: u32) -> KeyMatch {
    let mask = Bits::prefix_mask(value.width(), prefix_length);
    KeyMatch::Lpm {
        value: value.and(&mask),
        prefix_length,
    }
}

fn ternary(value: Bits, mask: Bits) -> KeyMatch {
    KeyMatch::Ternary {
        value: value.and(&mask),
        mask,
    }
}

fn range(low: Bits, high: Bits) -> KeyMatch {
    KeyMatch::Range { low, high }
}

/// An action by its place in the table, with its arguments.
pub fn call(spec: &TableSpec, place: usize, arguments: &[Bound<'_, PyAny>]) -> PyResult<ActionCall> {
    let action = spec.actions.get(place);
    let action = action.ok_or_else(|| invalid(format!("{}: there is no action number {place}", spec.name)))?;
    if action.parameters.len() != arguments.len() {
        return Err(invalid(format!(
            "{}: expected {} arguments, found {}",
            action.name,
            action.parameters.len(),
            arguments.len()
        )));
    }
    let pairs = action.parameters.iter().zip(arguments);
    let arguments: PyResult<Vec<Bits>> = pairs.map(|((name, width), value)| bits(value, *width, name)).collect();
    Ok(ActionCall {
        action: place,
        arguments: arguments?,
    })
}

/// What an entry does: `("action", place, arguments)`, `("member", id, [])`, `("group", id, [])`.
pub fn action(spec: &TableSpec, given: (String, usize, Vec<Bound<'_, PyAny>>)) -> PyResult<EntryAction> {
    let (form, place, arguments) = given;
    let id = u32::try_from(place).map_err(|_| invalid(format!("{place} is no number of a {form}")));
    match form.as_str() {
        "member" => Ok(EntryAction::Member(id?)),
        "group" => Ok(EntryAction::Group(id?)),
        _ => {
            let call = call(spec, place, &arguments)?;
            Ok(match spec.implementation {
                weir_table::Implementation::Direct => EntryAction::Call(call),
                _ => EntryAction::OneShot(vec![OneShotMember::new(call, 1)]),
            })
        }
    }
}

/// An entry as Python gives it: keys, priority, action, and the idle time-out in ns.
pub type Given<'py> = (Bound<'py, PyAny>, u32, (String, usize, Vec<Bound<'py, PyAny>>), u64);

/// An entry to be inserted.
pub fn new_entry(spec: &TableSpec, given: Given<'_>) -> PyResult<NewEntry> {
    let (keys, priority, what, idle_timeout_ns) = given;
    let mut entry = NewEntry::new(matches(spec, &keys)?, action(spec, what)?).with_priority(priority);
    entry.idle_timeout_ns = idle_timeout_ns;
    Ok(entry)
}

/// An entry as a tuple: handle, keys, priority, action, whether it is const, idle time-out.
pub fn entry<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyTuple>> {
    let keys: PyResult<Vec<_>> = entry.matches.iter().map(|m| match_value(py, m)).collect();
    let what = action_value(py, &entry.action)?;
    let rest = (entry.is_const, entry.idle_timeout_ns);
    (
        entry.handle.get(),
        PyList::new(py, keys?)?,
        entry.priority,
        what,
        rest.0,
        rest.1,
    )
        .into_pyobject(py)
}

fn match_value<'py>(py: Python<'py>, given: &KeyMatch) -> PyResult<Bound<'py, PyAny>> {
    let pair = |form: &str, a: Bound<'py, PyAny>, b: Bound<'py, PyAny>| -> PyResult<Bound<'py, PyAny>> {
        Ok((form, a, b).into_pyobject(py)?.into_any())
    };
    match given {
        KeyMatch::Exact(value) | KeyMatch::Optional(Some(value)) => number(py, value),
        KeyMatch::Optional(None) => Ok(py.None().into_bound(py)),
        KeyMatch::Lpm { value, prefix_length } => {
            pair("lpm", number(py, value)?, prefix_length.into_pyobject(py)?.into_any())
        }
        KeyMatch::Ternary { value, mask } => pair("ternary", number(py, value)?, number(py, mask)?),
        KeyMatch::Range { low, high } => pair("range", number(py, low)?, number(py, high)?),
    }
}

fn action_value<'py>(py: Python<'py>, action: &EntryAction) -> PyResult<Bound<'py, PyTuple>> {
    match action {
        EntryAction::Call(call) => call_value(py, call),
        EntryAction::Member(id) => ("member", id, PyList::empty(py)).into_pyobject(py),
        EntryAction::Group(id) => ("group", id, PyList::empty(py)).into_pyobject(py),
        EntryAction::OneShot(members) => match members.as_slice() {
            [one] => call_value(py, &one.action),
            _ => ("set", members.len(), PyList::empty(py)).into_pyobject(py),
        },
    }
}

/// An action with its arguments, as a tuple.
pub fn call_value<'py>(py: Python<'py>, call: &ActionCall) -> PyResult<Bound<'py, PyTuple>> {
    let arguments: PyResult<Vec<_>> = call.arguments.iter().map(|value| number(py, value)).collect();
    ("action", call.action, PyList::new(py, arguments?)?).into_pyobject(py)
}

/// A handle, if it can be one.
pub fn handle(py: Python<'_>, number: u32) -> PyResult<EntryHandle> {
    EntryHandle::new(number).ok_or_else(|| refused(py, "NOT_FOUND", "there is no entry with the handle 0"))
}

/// The handle that a change gave.
pub fn handle_of(py: Python<'_>, result: Result<WriteResult, weir_switch::ControlError>) -> PyResult<u32> {
    match result {
        Ok(WriteResult::Table(OpResult::Handle(handle))) => Ok(handle.get()),
        Ok(_) => Ok(0),
        Err(error) => Err(control(py, &error)),
    }
}
