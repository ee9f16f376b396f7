//! Entries as JSON: one object per line.
//!
//! ```json
//! {"table": "I.routes", "key": {"hdr.ipv4.dst": "10.0.0.0/8"}, "action": "I.forward", "data": {"port": 3}}
//! ```
//!
//! Numbers are JSON numbers up to 2^53, which every JSON reader represents exactly. Larger ones,
//! addresses, prefixes, masks and ranges are texts in [`crate::notation`]. Texts are accepted for
//! all of them. `priority` and `default` are present only if they are set.

use crate::entry::Entry;
use crate::error::Error;
use crate::notation;
use crate::schema::{Field, Key, Schema, Type};
use crate::value::{Match, Value};
use serde_json::{Map, Value as Json, json};
use std::io::BufRead;
use std::sync::Arc;

/// The largest number up to which a double is exact.
const MAX_EXACT: u64 = 1 << 53;

/// An entry as JSON.
#[must_use]
pub fn entry_to_json(entry: &Entry) -> Json {
    let mut object = Map::new();
    let table = entry.table();
    object.insert("table".to_owned(), json!(table.name));
    if entry.is_default() {
        object.insert("default".to_owned(), json!(true));
    } else {
        let keys = table.keys.iter().zip(entry.matches());
        let keys = keys.map(|(key, to)| (key.name.clone(), match_to_json(key, to)));
        object.insert("key".to_owned(), Json::Object(keys.collect()));
    }
    if entry.priority_of() != 0 {
        object.insert("priority".to_owned(), json!(entry.priority_of()));
    }
    if let Some(action) = entry.chosen_action() {
        object.insert("action".to_owned(), json!(action.name));
    }
    let data = entry.arguments().chain(entry.other_data());
    let data: Map<String, Json> = data.map(|(f, v)| (f.name.clone(), value_to_json(f, v))).collect();
    if !data.is_empty() {
        object.insert("data".to_owned(), Json::Object(data));
    }
    Json::Object(object)
}

/// A match as JSON: a number if it is one.
fn match_to_json(key: &Key, to: &Match) -> Json {
    match to {
        Match::Exact(value) => number_to_json(&key.name, &key.ty, value),
        Match::Any | Match::Lpm { .. } | Match::Ternary { .. } | Match::Range { .. } => None,
    }
    .unwrap_or_else(|| json!(notation::match_text(key, to)))
}

/// A value as a JSON number, if it is no address and exact for every reader.
fn number_to_json(name: &str, ty: &Type, value: &Value) -> Option<Json> {
    let Value::Bits(number) = value else { return None };
    let is_number = !notation::is_written_as_address(name, ty);
    let exact = u64::try_from(*number).ok().filter(|n| *n <= MAX_EXACT)?;
    is_number.then(|| json!(exact))
}

/// A value as JSON: a number, a text for addresses and large numbers, or a list or object for
/// composed values.
#[must_use]
pub fn value_to_json(field: &Field, value: &Value) -> Json {
    match value {
        Value::Bool(value) => json!(value),
        Value::Float(value) => json!(value),
        Value::List(values) => Json::Array(values.iter().map(|v| value_to_json(field, v)).collect()),
        Value::Record(fields) => {
            let object = fields.iter().map(|(name, value)| {
                let part = parts(&field.ty).iter().find(|p| p.name == *name);
                let shown = part.map_or_else(|| json!(value.to_string()), |p| value_to_json(p, value));
                (name.clone(), shown)
            });
            Json::Object(object.collect())
        }
        Value::Text(text) => json!(text),
        Value::Key(key) => json!(key.to_string()),
        Value::Bits(_) | Value::Wide(_) => {
            number_to_json(&field.name, &field.ty, value).unwrap_or_else(|| json!(notation::value_text(field, value)))
        }
    }
}

fn parts(ty: &Type) -> &[Field] {
    match ty {
        Type::Record(parts) | Type::Header(parts) => parts,
        _ => &[],
    }
}

/// An entry from JSON.
///
/// # Errors
/// It is no entry of the schema; the error names the field.
pub fn entry_from_json(schema: &Schema, json: &Json) -> Result<Entry, Error> {
    let wrong = |what: &str| Error::Input(what.to_owned());
    let object = json.as_object().ok_or_else(|| wrong("an entry is a JSON object"))?;
    let known = ["table", "key", "priority", "action", "data", "default"];
    if let Some(unknown) = object.keys().find(|k| !known.contains(&k.as_str())) {
        return Err(Error::Input(format!("`{unknown}` is none of {}", known.join(", "))));
    }
    let table = object.get("table").and_then(Json::as_str);
    let table = schema.table(table.ok_or_else(|| wrong("`table` is missing"))?)?;
    let is_default = object.get("default").and_then(Json::as_bool).unwrap_or(false);
    let mut entry = if is_default {
        Entry::default_of(table)
    } else {
        Entry::of(table)
    };
    if let Some(keys) = object.get("key") {
        let keys = keys.as_object().ok_or_else(|| wrong("`key` is a JSON object"))?;
        for (name, to) in keys {
            let key = &table.keys[table.key(name)?];
            entry = entry.key(name, notation::parse_match(key, &text_of(to))?);
        }
    }
    if let Some(priority) = object.get("priority") {
        let number = priority.as_u64().and_then(|p| u32::try_from(p).ok());
        entry = entry.priority(number.ok_or_else(|| wrong("`priority` is a number of 32 bits"))?);
    }
    if let Some(action) = object.get("action") {
        entry = entry.action(action.as_str().ok_or_else(|| wrong("`action` is a text"))?);
    }
    if let Some(data) = object.get("data") {
        let data = data.as_object().ok_or_else(|| wrong("`data` is a JSON object"))?;
        let mut given = Vec::new();
        for (name, value) in data {
            let params = entry.chosen_action().map_or(&[][..], |a| &a.params);
            let field = params.iter().chain(&table.data).find(|f| f.name == *name);
            match field {
                Some(field) if field.is_read_only => {}
                Some(field) => given.push((name, value_from_json(table, field, value)?)),
                // `Entry` reports the unknown name.
                None => given.push((name, Value::Bits(0))),
            }
        }
        for (name, value) in given {
            entry = entry.data(name, value);
        }
    }
    entry.check()?;
    Ok(entry)
}

fn text_of(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn value_from_json(table: &Arc<crate::Table>, field: &Field, json: &Json) -> Result<Value, Error> {
    match json {
        Json::Array(elements) => {
            let values: Result<Vec<Value>, Error> = elements.iter().map(|e| value_from_json(table, field, e)).collect();
            Ok(Value::List(values?))
        }
        Json::Object(object) => {
            let record: Result<Vec<_>, Error> = object
                .iter()
                .map(|(name, value)| {
                    let part = parts(&field.ty).iter().find(|p| p.name == *name);
                    // Elements of action sets also have the parameters of their action.
                    let param = || {
                        let action = object.get("action").and_then(Json::as_str);
                        let action = action.and_then(|a| table.action(a).ok());
                        let params = action.and_then(|a| table.actions.get(a)).map(|a| &a.params);
                        params.and_then(|p| p.iter().find(|p| p.name == *name))
                    };
                    let part = part.or_else(param).ok_or_else(|| {
                        Error::Input(format!("{}: there is no field `{name}` in {}", table.name, field.name))
                    })?;
                    Ok((name.clone(), value_from_json(table, part, value)?))
                })
                .collect();
            Ok(Value::Record(record?))
        }
        Json::Bool(value) => Ok(Value::Bool(*value)),
        other => notation::parse_value(&field.name, &field.ty, &text_of(other)),
    }
}

/// Entries of a file with one JSON object per line; empty lines and those that begin with `#` are
/// skipped.
#[derive(Debug)]
pub struct JsonEntries<R> {
    schema: Arc<Schema>,
    lines: std::io::Lines<R>,
    number: u64,
}

impl<R: BufRead> JsonEntries<R> {
    /// Reads entries from a reader.
    pub fn new(schema: &Arc<Schema>, from: R) -> Self {
        JsonEntries {
            schema: Arc::clone(schema),
            lines: from.lines(),
            number: 0,
        }
    }
}

impl<R: BufRead> Iterator for JsonEntries<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.next()?;
            self.number += 1;
            let at = |e: &dyn std::fmt::Display| Error::Input(format!("line {}: {e}", self.number));
            let line = match line {
                Ok(line) => line,
                Err(error) => return Some(Err(at(&error))),
            };
            let text = line.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let entry = match serde_json::from_str(text) {
                Ok(json) => entry_from_json(&self.schema, &json).map_err(|e| at(&e)),
                Err(error) => Err(at(&error)),
            };
            return Some(entry);
        }
    }
}
