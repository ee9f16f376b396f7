//! Entries as words: on a command line, or in a line of an `.entries` file of weir's switch.
//!
//! ```text
//! add ipv4_lpm hdr.ipv4.dst_addr:10.0.1.0/24 route(next_hop:0, port:1)
//! ```
//!
//! On a command line: `ipv4_lpm hdr.ipv4.dst_addr=10.0.1.0/24 route next_hop=0 port=1`. Names of
//! keys and parameters may be omitted if the values are in the order of the program.

use crate::entry::Entry;
use crate::error::Error;
use crate::keys::KeyMaterial;
use crate::notation;
use crate::schema::{Field, Kind, Schema, Table, Type};
use std::io::BufRead;
use std::sync::Arc;
use weir_proto::custom_crc::{CustomCrc, TABLE_PREFIX, calculation_table};
use weir_proto::extern_keys::{INDEX, KEY};

/// An entry of a table from words: keys, `priority=N`, an action and its parameters, other data. A
/// leading `default` means the default entry.
///
/// # Errors
/// A word is none of these; the error contains it.
pub fn parse_words(table: &Arc<Table>, words: &[String]) -> Result<Entry, Error> {
    let is_default = words.first().is_some_and(|w| w == "default");
    let mut entry = if is_default {
        Entry::default_of(table)
    } else {
        Entry::of(table)
    };
    let mut keys_given = 0;
    let mut params_given = 0;
    for word in &words[usize::from(is_default)..] {
        if word == "->" || word == "=>" {
            continue;
        }
        if let Some((name, value)) = named(word, |name| is_name(table, &entry, name)) {
            if name == "priority" {
                let number = value
                    .parse()
                    .map_err(|_| wrong(table, &format!("`{value}` is no priority")))?;
                entry = entry.priority(number);
            } else if let Some(field) = data_field(table, &entry, name) {
                let value = parse_data(field, value)?;
                entry = entry.data(name, value);
            } else {
                let key = &table.keys[table.key(name)?];
                entry = entry.key(name, notation::parse_match(key, value)?);
                keys_given += 1;
            }
            continue;
        }
        if entry.chosen_action().is_none() && table.action(word).is_ok() {
            entry = entry.action(word);
            continue;
        }
        if let Some(action) = entry.chosen_action() {
            let Some(param) = action.params.get(params_given) else {
                return Err(wrong(
                    table,
                    &format!("`{word}` is one value too many for {}", action.name),
                ));
            };
            let value = notation::parse_value(&param.name, &param.ty, word)?;
            let name = param.name.clone();
            params_given += 1;
            entry = entry.data(&name, value);
            continue;
        }
        let Some(key) = table.keys.get(keys_given).filter(|_| !is_default) else {
            // The table reports the unknown action or, without actions, the available data.
            table.action(word)?;
            return Err(wrong(table, &format!("`{word}` is no NAME=VALUE")));
        };
        let to = notation::parse_match(key, word).map_err(|e| {
            let is_action = table.action(word).err().map(|e| e.to_string()).unwrap_or_default();
            if word.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_' || b == b'.') && !is_action.is_empty() {
                wrong(table, &format!("{e}; and {is_action}"))
            } else {
                e
            }
        })?;
        let name = key.name.clone();
        entry = entry.key(&name, to);
        keys_given += 1;
    }
    Ok(entry)
}

fn wrong(table: &Table, reason: &str) -> Error {
    Error::Input(format!("{}: {reason}", table.name))
}

/// `NAME=VALUE`, or `NAME:VALUE` if the part before the colon is a name.
fn named(word: &str, is_name: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let by_equals = word.split_once('=');
    let by_colon = word.split_once(':').filter(|(name, _)| is_name(name));
    match (by_equals, by_colon) {
        (Some((a, _)), Some((b, value))) if b.len() < a.len() => Some((b, value)),
        (Some(both), _) => Some(both),
        (None, colon) => colon,
    }
}

fn is_name(table: &Table, entry: &Entry, name: &str) -> bool {
    name == "priority" || table.key(name).is_ok() || data_field(table, entry, name).is_some()
}

fn data_field<'a>(table: &'a Table, entry: &'a Entry, name: &str) -> Option<&'a Field> {
    let params = entry.chosen_action().map_or(&[][..], |a| &a.params);
    let all = || params.iter().chain(&table.data);
    let ends = |f: &&Field| f.name.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    // Before an action, a key takes precedence over other data of the same name.
    all()
        .find(|f| f.name == name)
        .filter(|_| !params.is_empty() || table.key(name).is_err())
        .or_else(|| table.data.iter().find(ends).filter(|_| table.key(name).is_err()))
}

/// A value, or a list of them: `1,2,3`; records as `{port=1 instance=2}`.
fn parse_data(field: &Field, text: &str) -> Result<crate::Value, Error> {
    use crate::schema::Type;
    use crate::value::Value;
    if !field.is_list {
        return match &field.ty {
            Type::Record(parts) => record(field, parts, text),
            ty => notation::parse_value(&field.name, ty, text),
        };
    }
    let text = text.trim().trim_start_matches('[').trim_end_matches(']');
    if text.is_empty() {
        return Ok(Value::List(Vec::new()));
    }
    match &field.ty {
        Type::Record(parts) => {
            let mut records = Vec::new();
            let mut rest = text.trim();
            while !rest.is_empty() {
                let (one, behind) = match rest.strip_prefix('{').and_then(|r| r.split_once('}')) {
                    Some(found) => found,
                    // A record may lack braces if a comma separates it from the next.
                    None => rest.split_once(',').unwrap_or((rest, "")),
                };
                records.push(record(field, parts, one)?);
                rest = behind.trim_start_matches([',', ' ']);
            }
            Ok(Value::List(records))
        }
        ty => {
            let values = text.split(',').map(|v| notation::parse_value(&field.name, ty, v));
            Ok(Value::List(values.collect::<Result<_, _>>()?))
        }
    }
}

fn record(field: &Field, parts: &[Field], text: &str) -> Result<crate::Value, Error> {
    let mut record = Vec::new();
    let text = text.trim().trim_start_matches('{').trim_end_matches('}');
    for (place, word) in text.split([' ', ',']).filter(|w| !w.is_empty()).enumerate() {
        let (name, value) = match word.split_once(['=', ':']) {
            Some(both) => both,
            None => (parts.get(place).map_or("", |p| p.name.as_str()), word),
        };
        let names = parts.iter().map(|p| p.name.as_str());
        let part = &parts[crate::schema::find("field", &field.name, name, names)?];
        record.push((part.name.clone(), notation::parse_value(&part.name, &part.ty, value)?));
    }
    Ok(crate::Value::Record(record))
}

/// The parameters of a custom CRC, in the syntax of simple_switch_CLI: `NAME POLYNOMIAL INITIAL
/// XOR_OUT REFLECT_IN REFLECT_OUT`. The name is that of a calculation, or of the algorithm for all
/// that have none of their own.
fn custom_crc(schema: &Schema, crc: &CustomCrc, words: &[&str]) -> Result<Entry, Error> {
    let [name, values @ ..] = words else {
        return Err(Error::Input(format!("`{}` or a calculation is missing", crc.name)));
    };
    schema.table(crc.table)?;
    let is_of_width = |table: &Arc<Table>| {
        let width = table.data.first().map(|f| &f.ty);
        table.kind == Kind::CustomCrc && width == Some(&Type::Bits(crc.width))
    };
    let known: Vec<_> = schema.tables.iter().filter(|t| is_of_width(t)).collect();
    let wanted = calculation_table(name);
    let Some(table) = known.iter().copied().find(|t| t.name == wanted) else {
        let known: Vec<&str> = known.iter().map(|t| t.name.trim_start_matches(TABLE_PREFIX)).collect();
        return Err(Error::Input(format!(
            "no hash by a CRC of {} bits is named `{name}`; there are {}",
            crc.width,
            known.join(", ")
        )));
    };
    if values.len() != table.data.len() {
        let names: Vec<&str> = table.data.iter().map(|f| f.name.as_str()).collect();
        return Err(wrong(table, &format!("the values are {}", names.join(" "))));
    }
    let mut entry = Entry::of(table);
    for (field, value) in table.data.iter().zip(values) {
        let value = notation::parse_value(&field.name, &field.ty, &value.to_ascii_lowercase())?;
        entry = entry.data(&field.name, value);
    }
    Ok(entry)
}

/// A key of an extern: `INSTANCE INDEX HEX`.
fn extern_key(schema: &Schema, words: &[&str]) -> Result<Entry, Error> {
    let [instance, index, digits @ ..] = words else {
        return Err(Error::Input("`extern_key` takes INSTANCE INDEX HEX".to_owned()));
    };
    let table = schema.table(instance)?;
    if table.kind != Kind::ExternKeys {
        return Err(wrong(table, &format!("a {} has no keys", table.kind.name())));
    }
    if digits.is_empty() {
        return Err(wrong(
            table,
            "the key is missing; keys are not removed by loading entries",
        ));
    }
    let index = notation::parse_value(INDEX, &table.keys[0].ty, index)?;
    Ok(Entry::of(table)
        .key(INDEX, index)
        .data(KEY, KeyMaterial::from_hex(&digits.concat())?))
}

/// An entry of an `.entries` file: `add TABLE [PRIORITY] KEY:MATCH… ACTION(NAME:VALUE, …)`,
/// `setdefault TABLE ACTION(…)`, `set_crc16_parameters …`, `set_crc32_parameters …`, or
/// `extern_key INSTANCE INDEX HEX`.
///
/// # Errors
/// The line is none of these.
pub fn parse_line(schema: &Schema, line: &str) -> Result<Entry, Error> {
    let (head, call) = match line.trim().strip_suffix(')') {
        Some(front) => {
            let (head, parameters) = front
                .split_once('(')
                .ok_or_else(|| Error::Input(format!("`{line}`: a `)` without a `(`")))?;
            (head, Some(parameters))
        }
        None => (line.trim(), None),
    };
    let mut words = head.split_whitespace();
    let command = words.next().unwrap_or("");
    let is_default = match command {
        "add" => false,
        "setdefault" => true,
        "set_crc16_parameters" | "set_crc32_parameters" if call.is_none() => {
            let width = if command.contains("16") { 16 } else { 32 };
            let crc = CustomCrc::of_width(width).ok_or_else(|| Error::Input(format!("`{command}`: no such CRC")))?;
            return custom_crc(schema, crc, &words.collect::<Vec<_>>());
        }
        "extern_key" if call.is_none() => return extern_key(schema, &words.collect::<Vec<_>>()),
        other => {
            return Err(Error::Input(format!(
                "`{other}` is neither `add`, `setdefault`, `set_crcN_parameters` nor `extern_key`; other commands of test files are not entries"
            )));
        }
    };
    let table = schema.table(words.next().unwrap_or(""))?;
    let mut parsed: Vec<String> = if is_default {
        vec!["default".to_owned()]
    } else {
        Vec::new()
    };
    for (place, word) in words.enumerate() {
        // A number before the keys is the priority.
        let is_priority = place == 0 && !is_default && table.priority.is_some() && word.parse::<u32>().is_ok();
        parsed.push(if is_priority {
            format!("priority={word}")
        } else {
            word.to_owned()
        });
    }
    for parameter in call.unwrap_or("").split(',').map(str::trim).filter(|p| !p.is_empty()) {
        parsed.push(parameter.to_owned());
    }
    parse_words(table, &parsed)
}

/// Entries of an `.entries` file; empty lines and those that begin with `#` are skipped.
#[derive(Debug)]
pub struct Lines<R> {
    schema: Arc<Schema>,
    lines: std::io::Lines<R>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads entries from a reader.
    pub fn new(schema: &Arc<Schema>, from: R) -> Self {
        Lines {
            schema: Arc::clone(schema),
            lines: from.lines(),
            number: 0,
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line = self.lines.next()?;
            self.number += 1;
            let at = |e: &dyn std::fmt::Display| Error::Input(format!("line {}: {e}", self.number));
            match line {
                Err(error) => return Some(Err(at(&error))),
                Ok(line) if line.trim().is_empty() || line.trim_start().starts_with('#') => {}
                Ok(line) => return Some(parse_line(&self.schema, &line).map_err(|e| at(&e))),
            }
        }
    }
}
