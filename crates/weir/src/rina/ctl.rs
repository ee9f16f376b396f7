//! `weir rina ctl`: the management agent of an IPC process.

use super::arguments::CtlArguments;
use crate::int::table;
use anyhow::{Context, Result};
use serde_json::{Map, Value};
use std::io::Write;
use weir_rina_host::Ipcp;
use weir_store::Rows;

/// Sends a command, and prints the answer.
pub fn ctl(arguments: &CtlArguments) -> Result<u8> {
    let ipcp = Ipcp::connect(&arguments.socket.socket)?;
    let answer = ipcp.manage(&arguments.command.join(" "))?;
    let value: Value = serde_json::from_str(&answer).context("the IPC process answers with malformed JSON")?;
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{}", super::ipcp::printable(&format!("{value:#}")))?;
    } else {
        write!(out, "{}", table::text(&rows(&value)))?;
    }
    Ok(0)
}

/// A list of objects as a table; an object as a table of names and values.
fn rows(value: &Value) -> Rows {
    match value {
        Value::Array(elements) => {
            let objects: Vec<&Map<String, Value>> = elements.iter().filter_map(Value::as_object).collect();
            let columns: Vec<String> = objects
                .first()
                .map(|object| object.keys().cloned().collect())
                .unwrap_or_default();
            let row = |object: &&Map<String, Value>| {
                columns
                    .iter()
                    .map(|column| flat(object.get(column).unwrap_or(&Value::Null)))
                    .collect()
            };
            Rows {
                rows: objects.iter().map(row).collect(),
                columns,
                is_cut: false,
            }
        }
        Value::Object(fields) => {
            let row = |(name, value): (&String, &Value)| vec![Value::from(name.as_str()), flat(value)];
            Rows {
                columns: vec!["name".to_owned(), "value".to_owned()],
                rows: fields.iter().map(row).collect(),
                is_cut: false,
            }
        }
        other => Rows {
            columns: vec!["answer".to_owned()],
            rows: vec![vec![other.clone()]],
            is_cut: false,
        },
    }
}

/// A value in one cell.
fn flat(value: &Value) -> Value {
    match value {
        Value::Array(values) => {
            let texts: Vec<String> = values
                .iter()
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                .collect();
            Value::from(texts.join(", "))
        }
        Value::Object(fields) => {
            let is_set = |(_, value): &(&String, &Value)| value.as_u64() != Some(0);
            let texts: Vec<String> = fields
                .iter()
                .filter(is_set)
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            Value::from(texts.join(" "))
        }
        other => other.clone(),
    }
}
