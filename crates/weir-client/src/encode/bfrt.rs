//! Encodes entries as messages of BF Runtime, in which everything is a table entry.

use super::key::{Canonical, canonical, ones};
use super::{NO_KEY_MATERIAL, Operation, ReadOptions, Written, unsupported};
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::{Field, Kind, MatchKind, Table, Type};
use crate::value::{Match, Value, put_number};
use crate::wire::Writer;
use std::sync::Arc;

/// The enum value of an operation.
pub fn type_of(operation: Operation) -> u64 {
    match operation {
        Operation::Insert => 1,
        Operation::Modify => 2,
        Operation::Add | Operation::Remove => 3,
        Operation::Delete => 4,
        Operation::InsertOrModify => 5,
        Operation::Reset => 6,
    }
}

pub fn update(writer: &mut Writer, operation: Operation, entry: &Entry) -> Written {
    entry.check()?;
    let mut number = type_of(operation);
    if entry.is_default && operation == Operation::InsertOrModify {
        number = type_of(Operation::Modify);
    }
    let is_register = matches!(entry.table.kind, Kind::Counter | Kind::Meter | Kind::Register);
    if is_register && operation == Operation::Delete {
        return Err(unsupported(entry, operation));
    }
    writer.varint(1, number);
    let is_key_only = matches!(operation, Operation::Delete | Operation::Reset);
    writer.message(2, |w| {
        w.message(1, |w| {
            table_entry(w, entry, is_key_only)?;
            if operation == Operation::Remove {
                w.message::<Error>(9, |w| {
                    w.varint(3, 1);
                    Ok(())
                })?;
            }
            Ok(())
        })
    })
}

/// The fields of a `TableEntry`.
fn table_entry(w: &mut Writer, entry: &Entry, is_key_only: bool) -> Written {
    w.varint(1, u64::from(entry.table.id));
    if entry.is_default {
        w.varint(4, 1);
    } else {
        w.message(2, |w| keys(w, entry))?;
    }
    if is_key_only || (entry.action.is_none() && entry.data.is_empty()) {
        return Ok(());
    }
    w.message(3, |w| {
        if let Some(action) = entry.chosen_action() {
            w.varint(1, u64::from(action.id));
        }
        for (place, value) in &entry.data {
            if let Some(field) = entry.field(*place) {
                data_field(w, field, value).map_err(|reason| entry.wrong(&field.name, reason))?;
            }
        }
        Ok(())
    })
}

fn keys(w: &mut Writer, entry: &Entry) -> Written {
    for (key, to) in entry.table.keys.iter().zip(&entry.keys) {
        let mut canonical = canonical(key, to).map_err(|reason| entry.wrong(&key.name, reason))?;
        if canonical == Canonical::Any {
            canonical = anything(key.kind, &key.ty);
        }
        let is_given = *to != Match::Any;
        w.message(1, |w| {
            w.varint(1, u64::from(key.id));
            key_field(w, &canonical, is_given)
        })?;
    }
    if let Some(id) = entry.table.priority {
        let mut bytes = Vec::with_capacity(4);
        let _ = put_number(u128::from(entry.priority), 32, &mut bytes);
        w.message(1, |w| {
            w.varint(1, u64::from(id));
            key_field(w, &Canonical::Exact(bytes), true)
        })?;
    }
    Ok(())
}

/// A match of anything, which BF Runtime states explicitly.
fn anything(kind: MatchKind, ty: &Type) -> Canonical {
    let width = ty.width().unwrap_or(1);
    let zeros = ones(0, width);
    match kind {
        MatchKind::Lpm => Canonical::Lpm(zeros, 0),
        MatchKind::Range => Canonical::Range(zeros, ones(width, width)),
        MatchKind::Optional => Canonical::Optional(zeros),
        MatchKind::Ternary | MatchKind::Exact => Canonical::Ternary(zeros.clone(), zeros),
    }
}

fn key_field(w: &mut Writer, canonical: &Canonical, is_given: bool) -> Written {
    let (field, parts): (u32, Vec<&[u8]>) = match canonical {
        Canonical::Any => return Ok(()),
        Canonical::Exact(value) => (2, vec![value]),
        Canonical::Ternary(value, mask) => (3, vec![value, mask]),
        Canonical::Lpm(value, _) => (4, vec![value]),
        Canonical::Range(low, high) => (5, vec![low, high]),
        Canonical::Optional(value) => (6, vec![value]),
    };
    w.message(field, |w| {
        for (part, number) in parts.iter().zip(1..) {
            w.bytes(number, part);
        }
        match canonical {
            Canonical::Lpm(_, prefix_len) => w.varint(2, u64::from(*prefix_len)),
            Canonical::Optional(_) => w.varint(2, u64::from(is_given)),
            _ => {}
        }
        Ok(())
    })
}

/// A `DataField`.
fn data_field(w: &mut Writer, field: &Field, value: &Value) -> Result<(), String> {
    w.message(2, |w| data_value(w, field, value))
}

/// The fields of a `DataField`.
fn data_value(w: &mut Writer, field: &Field, value: &Value) -> Result<(), String> {
    w.varint(1, u64::from(field.id));
    if field.is_list {
        let one = std::slice::from_ref(value);
        return list(w, field, value.as_list().unwrap_or(one));
    }
    match (&field.ty, value) {
        (Type::Text(_), Value::Text(text)) => w.bytes(4, text.as_bytes()),
        (Type::Bool, value) => {
            let value = value.as_bool().ok_or_else(|| format!("{value} is not true or false"))?;
            w.varint(8, u64::from(value));
        }
        (Type::Float, value) => {
            let value = match value {
                Value::Float(value) => *value,
                other => other.as_u64().ok_or_else(|| format!("{other} is no number"))? as f32,
            };
            // The tag of field 3 with four bytes.
            w.out.push(3 << 3 | 5);
            w.out.extend_from_slice(&value.to_le_bytes());
        }
        (Type::Bytes, Value::Key(key)) => w.bytes(2, key.bytes()),
        // The value may be a key, so that it is not shown.
        (Type::Bytes, _) => return Err(NO_KEY_MATERIAL.to_owned()),
        (ty, value) => {
            let width = ty
                .width()
                .ok_or_else(|| format!("{value} is no value of the type {ty:?}"))?;
            let bytes = value.fixed(width).ok_or_else(|| match value.bit_length() {
                Some(length) => format!("{value} has {length} bits, the field has {width}"),
                None => format!("{value} is no number of {width} bits"),
            })?;
            w.bytes(2, &bytes);
        }
    }
    Ok(())
}

fn list(w: &mut Writer, field: &Field, values: &[Value]) -> Result<(), String> {
    match &field.ty {
        Type::Bits(_) => w.message(5, |w| {
            let mut packed = Vec::new();
            for value in values {
                let number = value.as_u64().and_then(|v| u32::try_from(v).ok());
                let number = number.ok_or_else(|| format!("{value} is no number of 32 bits"))?;
                crate::wire::put_varint(&mut packed, u64::from(number));
            }
            w.bytes(1, &packed);
            Ok(())
        }),
        Type::Bool => w.message(6, |w| {
            let bits: Option<Vec<u8>> = values.iter().map(|v| v.as_bool().map(u8::from)).collect();
            w.bytes(1, &bits.ok_or("a list of true and false is expected")?);
            Ok(())
        }),
        Type::Text(_) => w.message(9, |w| {
            for value in values {
                w.bytes(1, value.as_str().ok_or("a list of texts is expected")?.as_bytes());
            }
            Ok(())
        }),
        Type::Record(parts) => w.message(7, |w| {
            for value in values {
                w.message(1, |w| record(w, parts, value))?;
            }
            Ok(())
        }),
        other => Err(format!("lists of the type {other:?} are not supported")),
    }
}

fn record(w: &mut Writer, parts: &[Field], value: &Value) -> Result<(), String> {
    let Value::Record(fields) = value else {
        return Err(format!("{value} is no record"));
    };
    for (name, value) in fields {
        let part = parts.iter().find(|p| p.name == *name);
        let part = part.ok_or_else(|| format!("there is no field {name}"))?;
        w.message(1, |w| data_value(w, part, value))?;
    }
    Ok(())
}

pub fn query(writer: &mut Writer, table: &Arc<Table>, entry: Option<&Entry>, options: &ReadOptions) -> Written {
    writer.message(1, |w| {
        match entry {
            Some(entry) => table_entry(w, entry, true)?,
            None => {
                w.varint(1, u64::from(table.id));
                if options.default_only {
                    w.varint(4, 1);
                }
            }
        }
        if options.from_hardware {
            w.message::<Error>(9, |w| {
                w.varint(1, 1);
                Ok(())
            })?;
        }
        Ok(())
    })
}
