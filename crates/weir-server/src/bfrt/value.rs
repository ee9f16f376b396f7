//! Types and values of key and data fields, and their encoding in messages.
//!
//! Numbers are big-endian in exactly the bytes that their width needs; unused bits of the first
//! byte are zero.

use crate::refusal::Refusal;
use prost::bytes::Bytes;
use serde::{Deserialize, Serialize};
use weir_ir::Bits;
use weir_proto::bfrt_info::FieldType;
use weir_proto::bfrt_proto as pb;
use weir_proto::bfrt_proto::data_field::Value as Wire;

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Type {
    /// A number of this width in bits.
    Bits(u32),
    /// `true` or `false`.
    Bool,
    /// A number with a fraction.
    Float,
    /// A text: one of these, or any if the list is empty.
    Text(Vec<String>),
    /// A list of elements with these fields.
    Container(Vec<super::schema::Field>),
}

/// A value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Value {
    /// A number of at most 64 bits.
    Number(u64),
    /// A wider one.
    Wide(Bits),
    Bool(bool),
    Float(f32),
    Text(String),
    Numbers(Vec<u32>),
    /// A list of numbers of 8 bits, encoded as bytes.
    Octets(Vec<u8>),
    Bools(Vec<bool>),
    Texts(Vec<String>),
    /// Elements, each of which has fields.
    Containers(Vec<Vec<(u32, Value)>>),
}

impl Type {
    /// The type of a field in `bfrt.json`.
    ///
    /// # Errors
    /// The type is unknown.
    pub fn of(described: &FieldType) -> Result<Self, String> {
        Ok(match described.kind.as_str() {
            "bytes" => Type::Bits(described.width.ok_or("bytes without a width")?),
            "uint8" | "int8" => Type::Bits(8),
            "uint16" | "int16" => Type::Bits(16),
            "uint32" | "int32" => Type::Bits(32),
            "uint64" | "int64" => Type::Bits(64),
            "bool" => Type::Bool,
            "float" => Type::Float,
            "string" => Type::Text(described.choices.clone().unwrap_or_default()),
            other => return Err(format!("a type `{other}`")),
        })
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        match self {
            Type::Bits(width) => format!("a number of {width} bits"),
            Type::Bool => "a bool".to_owned(),
            Type::Float => "a float".to_owned(),
            Type::Text(_) => "a string".to_owned(),
            Type::Container(_) => "a list of containers".to_owned(),
        }
    }
}

/// Decodes a number of `width` bits.
///
/// # Errors
/// The number of bytes is not that of the width, or unused bits are set.
#[inline]
pub(crate) fn bits(width: u32, bytes: &[u8]) -> Result<Bits, Refusal> {
    check(width, bytes)?;
    Ok(Bits::from_bytes(width, bytes))
}

#[inline]
fn check(width: u32, bytes: &[u8]) -> Result<(), Refusal> {
    let expected = width.div_ceil(8) as usize;
    if bytes.len() != expected {
        return Err(Refusal::malformed(format!(
            "the value has {} bytes; {width} bits take {expected}",
            bytes.len()
        )));
    }
    let unused = (8 - width % 8) % 8;
    if unused > 0 && bytes[0] >> (8 - unused) != 0 {
        return Err(Refusal::malformed(format!(
            "the value does not fit into {width} bits: bits before them are set"
        )));
    }
    Ok(())
}

/// Decodes a number of at most 64 bits.
///
/// # Errors
/// As [`bits`], or the width exceeds 64.
pub(crate) fn number(width: u32, bytes: &[u8]) -> Result<u64, Refusal> {
    check(width, bytes)?;
    if width > 64 {
        return Err(Refusal::malformed("the value has more than 64 bits"));
    }
    Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// Encodes a number in the bytes of its width.
pub(crate) fn bytes(value: &Bits) -> Bytes {
    value.to_bytes().into()
}

/// Encodes a number of at most 64 bits.
pub(crate) fn number_bytes(width: u32, value: u64) -> Bytes {
    let whole = value.to_be_bytes();
    let length = width.div_ceil(8).min(8) as usize;
    Bytes::copy_from_slice(&whole[8 - length..])
}

impl Value {
    /// The number, if it is one.
    pub fn as_number(&self) -> Option<u64> {
        match self {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// The flag, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(t) => Some(t),
            _ => None,
        }
    }
}

/// Decodes a value from a client.
///
/// # Errors
/// It is not of the type.
pub(crate) fn decode(ty: &Type, repeated: bool, given: &pb::DataField) -> Result<Value, Refusal> {
    let wrong = || {
        let list = if repeated { "a list, each " } else { "" };
        Refusal::malformed(format!("the value must be {list}{}", ty.name()))
    };
    let value = given
        .value
        .as_ref()
        .ok_or_else(|| Refusal::malformed("the value is missing"))?;
    if let Type::Container(fields) = ty {
        let Wire::ContainerArrVal(list) = value else {
            return Err(wrong());
        };
        let elements = list.container.iter().map(|c| decode_all(fields, &c.val));
        return Ok(Value::Containers(elements.collect::<Result<_, _>>()?));
    }
    match (ty, value) {
        (Type::Bits(width), Wire::IntArrVal(list)) if repeated => {
            if *width < 32 && list.val.iter().any(|n| n >> width != 0) {
                return Err(Refusal::malformed(format!("a value of the list exceeds {width} bits")));
            }
            Ok(Value::Numbers(list.val.clone()))
        }
        // Clients send lists of bytes in this form.
        (Type::Bits(8), Wire::Stream(bytes)) if repeated => {
            Ok(Value::Numbers(bytes.iter().map(|b| (*b).into()).collect()))
        }
        (Type::Bool, Wire::BoolArrVal(list)) if repeated => Ok(Value::Bools(list.val.clone())),
        (Type::Text(choices), Wire::StrArrVal(list)) if repeated => {
            list.val.iter().try_for_each(|text| check_choice(choices, text))?;
            Ok(Value::Texts(list.val.clone()))
        }
        (Type::Bits(width), Wire::Stream(bytes)) if !repeated => {
            if *width <= 64 {
                number(*width, bytes).map(Value::Number)
            } else {
                bits(*width, bytes).map(Value::Wide)
            }
        }
        (Type::Bool, Wire::BoolVal(flag)) if !repeated => Ok(Value::Bool(*flag)),
        // Clients that treat all values as byte strings send this form.
        (Type::Bool, Wire::Stream(bytes)) if !repeated => Ok(Value::Bool(number(1, bytes)? != 0)),
        (Type::Float, Wire::FloatVal(number)) if !repeated => Ok(Value::Float(*number)),
        (Type::Text(choices), Wire::StrVal(text)) if !repeated => {
            check_choice(choices, text)?;
            Ok(Value::Text(text.clone()))
        }
        _ => Err(wrong()),
    }
}

fn check_choice(choices: &[String], text: &str) -> Result<(), Refusal> {
    if choices.is_empty() || choices.iter().any(|c| c == text) {
        return Ok(());
    }
    Err(Refusal::malformed(format!(
        "`{text}` is not one of {}",
        choices.join(", ")
    )))
}

/// Decodes the fields from a client, with their ids.
///
/// # Errors
/// One is unknown, given twice, or not of its type.
pub(crate) fn decode_all(
    fields: &[super::schema::Field],
    given: &[pb::DataField],
) -> Result<Vec<(u32, Value)>, Refusal> {
    let mut values: Vec<(u32, Value)> = Vec::with_capacity(given.len());
    for one in given {
        let field = fields.iter().find(|f| f.id == one.field_id);
        let field =
            field.ok_or_else(|| Refusal::malformed(format!("there is no field with the id {}", one.field_id)))?;
        if values.iter().any(|(id, _)| *id == field.id) {
            return Err(Refusal::malformed(format!("the field `{}` is given twice", field.name)));
        }
        let value = decode(&field.ty, field.repeated, one).map_err(|e| e.within(&format!("field `{}`", field.name)))?;
        values.push((field.id, value));
    }
    Ok(values)
}

/// Encodes a value for a client.
pub(crate) fn encode(id: u32, ty: &Type, value: &Value) -> pb::DataField {
    let wire = match (ty, value) {
        (Type::Bits(width), Value::Number(n)) => Wire::Stream(number_bytes(*width, *n)),
        (_, Value::Number(n)) => Wire::Stream(number_bytes(64, *n)),
        (_, Value::Wide(bits)) => Wire::Stream(bytes(bits)),
        (_, Value::Bool(flag)) => Wire::BoolVal(*flag),
        (_, Value::Float(number)) => Wire::FloatVal(*number),
        (_, Value::Text(text)) => Wire::StrVal(text.clone()),
        (_, Value::Numbers(list)) => Wire::IntArrVal(pb::data_field::IntArray { val: list.clone() }),
        (_, Value::Octets(list)) => Wire::Stream(list.clone().into()),
        (_, Value::Bools(list)) => Wire::BoolArrVal(pb::data_field::BoolArray { val: list.clone() }),
        (_, Value::Texts(list)) => Wire::StrArrVal(pb::data_field::StrArray { val: list.clone() }),
        (ty, Value::Containers(list)) => {
            let fields = match ty {
                Type::Container(fields) => fields.as_slice(),
                _ => &[],
            };
            let element = |values: &Vec<(u32, Value)>| {
                let val = values.iter().map(|(id, value)| {
                    let known = fields.iter().find(|f| f.id == *id);
                    encode(*id, known.map_or(&Type::Bool, |f| &f.ty), value)
                });
                pb::data_field::container_array::Container { val: val.collect() }
            };
            Wire::ContainerArrVal(pb::data_field::ContainerArray {
                container: list.iter().map(element).collect(),
            })
        }
    };
    pb::DataField {
        field_id: id,
        value: Some(wire),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_exactly_the_bytes_of_their_width() {
        assert_eq!(bits(9, &[1, 0xff]), Ok(Bits::new(9, 0x1ff)));
        assert_eq!(bits(32, &[0, 0, 0, 7]), Ok(Bits::new(32, 7)));
        for (width, given) in [(9, &[0xff][..]), (9, &[0, 1, 0xff]), (9, &[2, 0]), (8, &[]), (32, &[7])] {
            assert!(bits(width, given).is_err(), "{width} {given:?}");
        }
        assert_eq!(number_bytes(9, 0x1ff).as_ref(), [1, 0xff]);
    }

    #[test]
    fn values_of_another_type_and_unknown_choices_are_refused() {
        let text = Type::Text(vec!["A".into(), "B".into()]);
        let field = |value| pb::DataField { field_id: 1, value };
        let given = field(Some(Wire::StrVal("B".into())));
        assert_eq!(decode(&text, false, &given), Ok(Value::Text("B".into())));
        assert!(decode(&text, false, &field(Some(Wire::StrVal("C".into())))).is_err());
        assert!(decode(&text, true, &given).is_err());
        assert!(decode(&Type::Bits(8), false, &given).is_err());
        assert!(decode(&Type::Bits(8), false, &field(None)).is_err());
    }
}
