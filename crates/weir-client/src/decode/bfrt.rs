//! Decodes entities of BF Runtime.

use super::{RawData, Row, broken, key};
use crate::error::Error;
use crate::schema::{Field, Type};
use crate::value::Value;
use crate::wire::{self, Broken, Reader};

/// Decodes an `Entity` to a row; `false` if it is not a table entry.
pub fn row<'a>(entity: &'a [u8], row: &mut Row<'a>) -> Result<bool, Broken> {
    row.clear();
    let mut reader = Reader(entity);
    let mut is_row = false;
    while let Some((field, value)) = reader.next()? {
        if field == 1 {
            table_entry(value.message()?, row)?;
            is_row = true;
        }
    }
    Ok(is_row)
}

pub fn table_entry<'a>(mut entry: Reader<'a>, row: &mut Row<'a>) -> Result<(), Broken> {
    while let Some((field, value)) = entry.next()? {
        match field {
            1 => row.table_id = value.u32()?,
            2 => {
                let mut keys = value.message()?;
                while let Some((field, value)) = keys.next()? {
                    if field == 1 {
                        row.keys.push(key(value.message()?)?);
                    }
                }
            }
            3 => data(value.message()?, row)?,
            4 => row.is_default = value.number()? != 0,
            _ => {}
        }
    }
    Ok(())
}

fn data<'a>(mut reader: Reader<'a>, row: &mut Row<'a>) -> Result<(), Broken> {
    while let Some((field, value)) = reader.next()? {
        match field {
            1 => row.action_id = value.u32()?,
            2 => {
                if let Some(field) = data_field(value.message()?)? {
                    row.data.push(field);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The id and value of a `DataField`; `None` for a field without a value.
fn data_field<'a>(mut reader: Reader<'a>) -> Result<Option<(u32, RawData<'a>)>, Broken> {
    let mut id = 0;
    let mut data = None;
    while let Some((field, value)) = reader.next()? {
        match (field, value) {
            (1, value) => id = value.u32()?,
            (2 | 4, value) => data = Some(RawData::Bytes(value.bytes()?)),
            (3, wire::Field::Fixed32(bits)) => data = Some(RawData::Float(f32::from_bits(bits))),
            (8, value) => data = Some(RawData::Number(value.number()?)),
            (5..=7 | 9, value) => data = Some(RawData::Message(field, value.bytes()?)),
            _ => {}
        }
    }
    Ok(data.map(|d| (id, d)))
}

/// The value of a field.
pub fn value(field: &Field, raw: RawData<'_>) -> Result<Value, String> {
    Ok(match raw {
        RawData::Bytes(bytes) if matches!(field.ty, Type::Text(_)) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        RawData::Bytes(bytes) => Value::from_bytes(bytes),
        RawData::Number(number) => Value::Bool(number != 0),
        RawData::Float(number) => Value::Float(number),
        RawData::Message(kind, bytes) => Value::List(list(field, kind, bytes).map_err(|e| e.to_string())?),
    })
}

fn list(field: &Field, kind: u32, bytes: &[u8]) -> Result<Vec<Value>, Broken> {
    let mut reader = Reader(bytes);
    let mut values = Vec::new();
    while let Some((number, value)) = reader.next()? {
        if number != 1 {
            continue;
        }
        match (kind, value) {
            // Numbers may be packed or not.
            (5, wire::Field::Varint(n)) => values.push(Value::from(n)),
            (6, wire::Field::Varint(n)) => values.push(Value::Bool(n != 0)),
            (5 | 6, wire::Field::Bytes(packed)) => {
                let mut packed = Reader(packed);
                while !packed.0.is_empty() {
                    let n = packed.varint()?;
                    values.push(if kind == 5 { Value::from(n) } else { Value::Bool(n != 0) });
                }
            }
            (9, value) => values.push(Value::Text(String::from_utf8_lossy(value.bytes()?).into_owned())),
            (7, value) => values.push(container(field, value.message()?)?),
            _ => return Err(Broken),
        }
    }
    Ok(values)
}

fn container(field: &Field, mut reader: Reader<'_>) -> Result<Value, Broken> {
    let parts = match &field.ty {
        Type::Record(parts) => &parts[..],
        _ => &[],
    };
    let mut record = Vec::new();
    while let Some((number, value)) = reader.next()? {
        if number != 1 {
            continue;
        }
        let Some((id, raw)) = data_field(value.message()?)? else {
            continue;
        };
        if let Some(part) = parts.iter().find(|p| p.id == id) {
            record.push((part.name.clone(), self::value(part, raw).map_err(|_| Broken)?));
        }
    }
    Ok(Value::Record(record))
}

/// An element of a digest.
pub fn digest(ty: &Type, bytes: &[u8]) -> Result<Value, Error> {
    let Type::Record(parts) = ty else {
        return Err(Error::Malformed("a digest that is no record".to_owned()));
    };
    let mut row = Row::new();
    data(Reader(bytes), &mut row).map_err(broken)?;
    let mut record = Vec::new();
    for (id, raw) in &row.data {
        if let Some(part) = parts.iter().find(|p| p.id == *id) {
            record.push((part.name.clone(), value(part, *raw).map_err(Error::Malformed)?));
        }
    }
    Ok(Value::Record(record))
}
