//! Values of any type as `P4Data` (specification, section "Representation of Arbitrary P4 Types"), from and to the scalars
//! that the switch keeps of them: those of [`weir_arch::scalars`], in that order.

use super::bytes;
use super::refusal::Refusal;
use weir_ir::{Bits, TypeSpec};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_data::Data;

/// The scalars of a value.
///
/// # Errors
/// It is not of the type, or a number does not fit.
pub fn decode(ty: &TypeSpec, data: &pb::P4Data, errors: &[String]) -> Result<Vec<Bits>, Refusal> {
    let mut scalars = Vec::new();
    decode_into(ty, data, errors, &mut scalars)?;
    Ok(scalars)
}

fn decode_into(ty: &TypeSpec, data: &pb::P4Data, errors: &[String], out: &mut Vec<Bits>) -> Result<(), Refusal> {
    match (ty, &data.data) {
        (TypeSpec::New(_, inner, _), _) => decode_into(inner, data, errors, out)?,
        (TypeSpec::Bit(w), Some(Data::Bitstring(b))) => out.push(bytes::decode(*w, b)?),
        (TypeSpec::Int(w), Some(Data::Bitstring(b))) => out.push(bytes::decode_signed(*w, b)?),
        (TypeSpec::SerializableEnum(_, w, _), Some(Data::EnumValue(b))) => out.push(bytes::decode(*w, b)?),
        (TypeSpec::Bool, Some(Data::Bool(b))) => out.push(Bits::bool(*b)),
        (TypeSpec::Enum(_, members), Some(Data::Enum(name))) => out.push(member(members, name)?),
        (TypeSpec::Error, Some(Data::Error(name))) => out.push(member(errors, name)?),
        (TypeSpec::Tuple(types), Some(Data::Tuple(parts))) => {
            count(ty, types.len(), parts.members.len())?;
            for (ty, part) in types.iter().zip(&parts.members) {
                decode_into(ty, part, errors, out)?;
            }
        }
        (TypeSpec::Struct(_, fields), Some(Data::Struct(parts))) => {
            count(ty, fields.len(), parts.members.len())?;
            for ((_, ty), part) in fields.iter().zip(&parts.members) {
                decode_into(ty, part, errors, out)?;
            }
        }
        (TypeSpec::Header(_, fields), Some(Data::Header(header))) => {
            if !header.is_valid {
                return Err(Refusal::unsupported(
                    "headers outside of packets are always valid here; set is_valid and give all fields",
                ));
            }
            count(ty, fields.len(), header.bitstrings.len())?;
            for ((_, ty), part) in fields.iter().zip(&header.bitstrings) {
                out.push(field(ty, part)?);
            }
        }
        (TypeSpec::Stack(element, size), Some(Data::HeaderStack(stack))) => {
            count(ty, *size as usize, stack.entries.len())?;
            for header in &stack.entries {
                let data = Some(Data::Header(header.clone()));
                decode_into(element, &pb::P4Data { data }, errors, out)?;
            }
        }
        (_, None) => return Err(Refusal::malformed("the value is missing")),
        _ => {
            return Err(Refusal::malformed(format!(
                "the value is not {}, which is the type of the program",
                describe(ty)
            )));
        }
    }
    Ok(())
}

fn count(ty: &TypeSpec, expected: usize, found: usize) -> Result<(), Refusal> {
    if expected == found {
        return Ok(());
    }
    let what = describe(ty);
    Err(Refusal::malformed(format!(
        "{what} has {expected} parts, the value has {found}"
    )))
}

fn member(members: &[String], name: &str) -> Result<Bits, Refusal> {
    let index = members.iter().position(|m| m == name);
    let index =
        index.ok_or_else(|| Refusal::malformed(format!("there is no member `{name}`; use {}", members.join(", "))))?;
    Ok(Bits::new(32, index as u128))
}

/// A field of a header.
fn field(ty: &TypeSpec, value: &[u8]) -> Result<Bits, Refusal> {
    match ty {
        TypeSpec::New(_, inner, _) => field(inner, value),
        TypeSpec::Int(w) => bytes::decode_signed(*w, value),
        TypeSpec::Bit(w) | TypeSpec::SerializableEnum(_, w, _) => bytes::decode(*w, value),
        TypeSpec::Bool => bytes::decode(1, value),
        _ => Err(Refusal::unsupported(format!(
            "fields of {} cannot be written",
            describe(ty)
        ))),
    }
}

fn describe(ty: &TypeSpec) -> String {
    match ty {
        TypeSpec::Opaque(name)
        | TypeSpec::Struct(name, _)
        | TypeSpec::Header(name, _)
        | TypeSpec::HeaderUnion(name, _) => {
            format!(
                "{} {name}",
                match ty {
                    TypeSpec::Struct(..) => "the struct",
                    TypeSpec::Header(..) => "the header",
                    TypeSpec::HeaderUnion(..) => "the header union",
                    _ => "the type",
                }
            )
        }
        TypeSpec::Void => "nothing".to_string(),
        TypeSpec::Bool => "a bool".to_string(),
        TypeSpec::Bit(w) => format!("a bitstring for bit<{w}>"),
        TypeSpec::Int(w) => format!("a bitstring for int<{w}>"),
        TypeSpec::Varbit(w) => format!("a varbit<{w}>"),
        TypeSpec::Error => "an error".to_string(),
        TypeSpec::String => "a string".to_string(),
        TypeSpec::Tuple(_) => "a tuple".to_string(),
        TypeSpec::Stack(..) => "a header stack".to_string(),
        TypeSpec::Enum(name, _) => format!("a member of the enum {name}"),
        TypeSpec::SerializableEnum(name, ..) => format!("an enum value of {name}"),
        TypeSpec::New(_, inner, _) => describe(inner),
    }
}

/// A value of its scalars; missing ones are zero.
#[must_use]
pub fn encode(ty: &TypeSpec, scalars: &[Bits], errors: &[String]) -> pb::P4Data {
    encode_from(ty, &mut scalars.iter(), errors)
}

fn encode_from(ty: &TypeSpec, scalars: &mut std::slice::Iter<'_, Bits>, errors: &[String]) -> pb::P4Data {
    let data = match ty {
        TypeSpec::New(_, inner, _) => return encode_from(inner, scalars, errors),
        TypeSpec::Bool => Data::Bool(scalars.next().is_some_and(|b| !b.is_zero())),
        TypeSpec::Int(w) => Data::Bitstring(bytes::encode_signed(scalars.next().unwrap_or(&Bits::zero(*w)))),
        TypeSpec::SerializableEnum(..) => Data::EnumValue(bytes::encode(scalars.next().unwrap_or(&Bits::zero(1)))),
        TypeSpec::Enum(_, members) => Data::Enum(name_of(members, scalars.next())),
        TypeSpec::Error => Data::Error(name_of(errors, scalars.next())),
        TypeSpec::Tuple(types) => {
            let members = types.iter().map(|ty| encode_from(ty, scalars, errors)).collect();
            Data::Tuple(pb::P4StructLike { members })
        }
        TypeSpec::Struct(_, fields) => {
            let members = fields.iter().map(|(_, ty)| encode_from(ty, scalars, errors)).collect();
            Data::Struct(pb::P4StructLike { members })
        }
        TypeSpec::Header(_, fields) => Data::Header(header(fields, scalars)),
        TypeSpec::Stack(element, size) => {
            let mut element = &**element;
            while let TypeSpec::New(_, inner, _) = element {
                element = inner;
            }
            let entries = (0..*size).map(|_| match element {
                TypeSpec::Header(_, fields) => header(fields, scalars),
                _ => pb::P4Header::default(),
            });
            Data::HeaderStack(pb::P4HeaderStack {
                entries: entries.collect(),
            })
        }
        TypeSpec::Varbit(_) | TypeSpec::Bit(_) => {
            Data::Bitstring(bytes::encode(scalars.next().unwrap_or(&Bits::zero(1))))
        }
        // Registers and digests of these types do not get past the compiler.
        TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::String | TypeSpec::HeaderUnion(..) => {
            return pb::P4Data::default();
        }
    };
    pb::P4Data { data: Some(data) }
}

fn header(fields: &[(String, TypeSpec)], scalars: &mut std::slice::Iter<'_, Bits>) -> pb::P4Header {
    let mut value = |ty: &TypeSpec| {
        let mut ty = ty;
        while let TypeSpec::New(_, inner, _) = ty {
            ty = inner;
        }
        let zero = Bits::zero(1);
        let scalar = scalars.next().unwrap_or(&zero);
        match ty {
            TypeSpec::Int(_) => bytes::encode_signed(scalar),
            _ => bytes::encode(scalar),
        }
    };
    pb::P4Header {
        is_valid: true,
        bitstrings: fields.iter().map(|(_, ty)| value(ty)).collect(),
    }
}

fn name_of(members: &[String], value: Option<&Bits>) -> String {
    let index = value.and_then(Bits::to_u64).and_then(|v| usize::try_from(v).ok());
    let name = members.get(index.unwrap_or(0));
    name.cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_type_come_back_as_they_were_given() {
        let ty = TypeSpec::Struct(
            "s".into(),
            vec![
                ("a".into(), TypeSpec::Bit(12)),
                ("b".into(), TypeSpec::Int(8)),
                ("c".into(), TypeSpec::Bool),
                ("d".into(), TypeSpec::Enum("e".into(), vec!["x".into(), "y".into()])),
                (
                    "h".into(),
                    TypeSpec::Header("h_t".into(), vec![("f".into(), TypeSpec::Bit(16))]),
                ),
                ("t".into(), TypeSpec::Tuple(vec![TypeSpec::Bit(1), TypeSpec::Error])),
            ],
        );
        let scalars = [
            Bits::new(12, 0xabc),
            Bits::new(8, 0x9d),
            Bits::bool(true),
            Bits::new(32, 1),
            Bits::new(16, 5),
            Bits::new(1, 1),
            Bits::new(32, 2),
        ];
        let errors: Vec<String> = ["NoError", "PacketTooShort", "NoMatch"].map(String::from).to_vec();
        let data = encode(&ty, &scalars, &errors);
        assert_eq!(decode(&ty, &data, &errors), Ok(scalars.to_vec()));
        assert!(decode(&TypeSpec::Bit(3), &data, &errors).is_err());
        assert!(decode(&ty, &pb::P4Data::default(), &errors).is_err());
    }
}
