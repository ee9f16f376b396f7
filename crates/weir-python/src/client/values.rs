//! Entries, values and descriptions of the client for Python.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyInt, PyList};
use serde_json::{Value as Json, json};
use weir_client::schema::{Field, Key, Kind, Type};
use weir_client::{Entry, Match, Protocol, Schema, Table, UpdateError, Value};

/// A failed update: index, operation, table, key, code, message.
pub type Update = (u64, &'static str, String, String, &'static str, String);

/// Failed updates.
pub fn updates(failed: &[UpdateError]) -> Vec<Update> {
    let one = |u: &UpdateError| {
        let code = weir_client::code_name(u.code);
        (u.index, u.what, u.table.clone(), u.key.clone(), code, u.message.clone())
    };
    failed.iter().map(one).collect()
}

/// The description of a target's program.
pub fn schema(schema: &Schema) -> Json {
    json!({
        "protocol": match schema.protocol {
            Protocol::P4Runtime => "p4runtime",
            Protocol::BfRuntime => "bfrt",
        },
        "program": schema.program,
        "tables": schema.tables.iter().map(|t| table(t)).collect::<Vec<_>>(),
        "digests": schema.digests.iter().map(|d| d.name.as_str()).collect::<Vec<_>>(),
        "packet_in": schema.packet_in.iter().map(field).collect::<Vec<_>>(),
        "packet_out": schema.packet_out.iter().map(field).collect::<Vec<_>>(),
    })
}

fn table(table: &Table) -> Json {
    let actions = table.actions.iter().map(|action| {
        let parameters: Vec<Json> = action.params.iter().map(field).collect();
        json!({ "name": action.name, "parameters": parameters })
    });
    json!({
        "name": table.name,
        "kind": kind(&table.kind),
        "size": table.size,
        "keys": table.keys.iter().map(key).collect::<Vec<_>>(),
        "priority": table.priority.is_some(),
        "actions": actions.collect::<Vec<_>>(),
        "data": table.data.iter().map(field).collect::<Vec<_>>(),
        "operations": table.operations,
    })
}

fn kind(kind: &Kind) -> &str {
    kind.name()
}

fn key(key: &Key) -> Json {
    json!({ "name": key.name, "width": key.ty.width(), "kind": key.kind.name() })
}

fn field(field: &Field) -> Json {
    json!({ "name": field.name, "width": field.ty.width(), "is_list": field.is_list,
        "choices": choices(&field.ty) })
}

fn choices(ty: &Type) -> &[String] {
    match ty {
        Type::Text(choices) | Type::Enum(choices) => choices,
        _ => &[],
    }
}

/// An entry as a tuple: table, keys, priority, action, data, whether it is a default entry, whether
/// it is const.
pub fn entry<'py>(py: Python<'py>, entry: &Entry) -> PyResult<Bound<'py, PyAny>> {
    let keys = entry.table().keys.iter().zip(entry.matches());
    let keys: PyResult<Vec<_>> = keys
        .map(|(key, to)| Ok((key.name.as_str(), match_value(py, to)?)))
        .collect();
    let data = entry.arguments().chain(entry.other_data());
    let data: PyResult<Vec<_>> = data
        .map(|(field, v)| Ok((field.name.as_str(), value(py, v)?)))
        .collect();
    let action = entry.chosen_action().map(|a| a.name.as_str());
    let head = (entry.table().name.as_str(), keys?, entry.priority_of(), action, data?);
    let flags = (entry.is_default(), entry.is_const());
    Ok((head.0, head.1, head.2, head.3, head.4, flags.0, flags.1)
        .into_pyobject(py)?
        .into_any())
}

fn match_value<'py>(py: Python<'py>, to: &Match) -> PyResult<Bound<'py, PyAny>> {
    Ok(match to {
        Match::Any => py.None().into_bound(py),
        Match::Exact(exact) => value(py, exact)?,
        Match::Lpm { value: v, prefix_len } => ("lpm", value(py, v)?, prefix_len).into_pyobject(py)?.into_any(),
        Match::Ternary { value: v, mask } => ("ternary", value(py, v)?, value(py, mask)?)
            .into_pyobject(py)?
            .into_any(),
        Match::Range { low, high } => ("range", value(py, low)?, value(py, high)?)
            .into_pyobject(py)?
            .into_any(),
    })
}

/// A value of a field.
pub fn value<'py>(py: Python<'py>, given: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match given {
        Value::Bits(number) => number.into_pyobject(py)?.into_any(),
        Value::Wide(bytes) => {
            let bytes = PyBytes::new(py, bytes);
            py.get_type::<PyInt>().call_method1("from_bytes", (bytes, "big"))?
        }
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Float(value) => value.into_pyobject(py)?.into_any(),
        Value::Text(text) => text.into_pyobject(py)?.into_any(),
        Value::List(values) => {
            let values: PyResult<Vec<_>> = values.iter().map(|v| value(py, v)).collect();
            PyList::new(py, values?)?.into_any()
        }
        Value::Record(fields) => {
            let record = PyDict::new(py);
            for (name, field) in fields {
                record.set_item(name, value(py, field)?)?;
            }
            record.into_any()
        }
        Value::Key(key) => key.to_string().into_pyobject(py)?.into_any(),
    })
}
