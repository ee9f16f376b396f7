//! Encodes and decodes values of registers and digests of P4Runtime.

use crate::schema::{Field, Type};
use crate::value::Value;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_data::Data;

/// Encodes a value.
///
/// # Errors
/// A description of the expected value.
pub fn encode(ty: &Type, value: &Value) -> Result<pb::P4Data, String> {
    let data = match (ty, value) {
        (Type::Bits(width), value) => Data::Bitstring(number(value, *width)?),
        (Type::NumberedEnum(width), value) => Data::EnumValue(number(value, *width)?),
        (Type::Bool, value) => Data::Bool(value.as_bool().ok_or_else(|| format!("{value} is not true or false"))?),
        (Type::Enum(_), Value::Text(text)) => Data::Enum(text.clone()),
        (Type::Error, Value::Text(text)) => Data::Error(text.clone()),
        (Type::Record(fields), value) => {
            let members: Result<_, _> = fields.iter().map(|f| encode(&f.ty, part(value, f)?)).collect();
            Data::Struct(pb::P4StructLike { members: members? })
        }
        (Type::Tuple(types), Value::List(values)) if types.len() == values.len() => {
            let members: Result<_, _> = types.iter().zip(values).map(|(t, v)| encode(t, v)).collect();
            Data::Tuple(pb::P4StructLike { members: members? })
        }
        (Type::Header(fields), value) => Data::Header(header(fields, value)?),
        (Type::Stack(inner), Value::List(values)) => {
            let Type::Header(fields) = &**inner else {
                return Err("a stack of something else than headers".to_owned());
            };
            let entries: Result<_, _> = values.iter().map(|v| header(fields, v)).collect();
            Data::HeaderStack(pb::P4HeaderStack { entries: entries? })
        }
        (Type::Varbit(max), value) => {
            let width = value.bit_length().unwrap_or(0).div_ceil(8) * 8;
            Data::Varbit(pb::P4Varbit {
                bitstring: number(value, *max)?,
                bitwidth: i32::try_from(width.min(*max)).unwrap_or(i32::MAX),
            })
        }
        (ty, value) => return Err(format!("{value} is no value of the type {ty:?}")),
    };
    Ok(pb::P4Data { data: Some(data) })
}

fn number(value: &Value, width: u32) -> Result<Vec<u8>, String> {
    value
        .shortest(width)
        .ok_or_else(|| format!("{value} is no number of {width} bits"))
}

fn part<'a>(value: &'a Value, field: &Field) -> Result<&'a Value, String> {
    value
        .field(&field.name)
        .ok_or_else(|| format!("the field {} is missing", field.name))
}

/// An invalid header is `false`.
fn header(fields: &[Field], value: &Value) -> Result<pb::P4Header, String> {
    if *value == Value::Bool(false) {
        return Ok(pb::P4Header::default());
    }
    let bitstrings: Result<_, _> = fields
        .iter()
        .map(|f| number(part(value, f)?, f.ty.width().unwrap_or(0)))
        .collect();
    Ok(pb::P4Header {
        is_valid: true,
        bitstrings: bitstrings?,
    })
}

/// Decodes a value.
///
/// # Errors
/// A description of the expected value.
pub fn decode(ty: &Type, data: &pb::P4Data) -> Result<Value, String> {
    let Some(data) = &data.data else {
        return Err("a value without anything in it".to_owned());
    };
    Ok(match (ty, data) {
        (Type::Bits(_), Data::Bitstring(bytes)) | (Type::NumberedEnum(_), Data::EnumValue(bytes)) => {
            Value::from_bytes(bytes)
        }
        (Type::Text(_), Data::Bitstring(bytes)) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        (Type::Bool, Data::Bool(value)) => Value::Bool(*value),
        (Type::Enum(_), Data::Enum(name)) | (Type::Error, Data::Error(name)) => Value::Text(name.clone()),
        (Type::Record(fields), Data::Struct(members)) if fields.len() == members.members.len() => {
            let named = fields.iter().zip(&members.members);
            let record: Result<_, _> = named.map(|(f, d)| Ok((f.name.clone(), decode(&f.ty, d)?))).collect();
            Value::Record(record.map_err(|e: String| e)?)
        }
        (Type::Tuple(types), Data::Tuple(members)) if types.len() == members.members.len() => {
            let values: Result<_, _> = types.iter().zip(&members.members).map(|(t, d)| decode(t, d)).collect();
            Value::List(values.map_err(|e: String| e)?)
        }
        (Type::Header(fields), Data::Header(header)) => header_value(fields, header),
        (Type::Stack(inner), Data::HeaderStack(stack)) => match &**inner {
            Type::Header(fields) => Value::List(stack.entries.iter().map(|h| header_value(fields, h)).collect()),
            _ => return Err("a stack of something else than headers".to_owned()),
        },
        (Type::Varbit(_), Data::Varbit(varbit)) => Value::from_bytes(&varbit.bitstring),
        (ty, _) => return Err(format!("a value that is not of the type {ty:?}")),
    })
}

fn header_value(fields: &[Field], header: &pb::P4Header) -> Value {
    if !header.is_valid {
        return Value::Bool(false);
    }
    let named = fields.iter().zip(&header.bitstrings);
    Value::Record(named.map(|(f, b)| (f.name.clone(), Value::from_bytes(b))).collect())
}
