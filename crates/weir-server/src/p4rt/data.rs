//! Values of any type as `P4Data` (specification, section "Representation of Arbitrary P4 Types"),
//! from and to the scalars that the switch keeps of them: those of [`weir_arch::scalars`], in that
//! order.

use super::bytes;
use super::digest::Message;
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
            let fields = TypeSpec::header_scalars(fields);
            count(ty, fields.len(), header.bitstrings.len())?;
            for ((_, ty), part) in fields.into_iter().zip(&header.bitstrings) {
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

/// A scalar of a header.
fn field(ty: &TypeSpec, value: &[u8]) -> Result<Bits, Refusal> {
    match ty {
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

/// A value of its scalars; missing ones are zero. Headers are valid: what a cell holds is their
/// fields.
#[must_use]
pub fn encode(ty: &TypeSpec, scalars: &[Bits], errors: &[String]) -> pb::P4Data {
    let mut parts = Parts {
        scalars: scalars.iter(),
        valid: [].iter(),
        errors,
    };
    parts.value(ty)
}

/// The data of a digest.
#[must_use]
pub fn encode_message(ty: &TypeSpec, message: &Message, errors: &[String]) -> pb::P4Data {
    let mut parts = Parts {
        scalars: message.scalars.iter(),
        valid: message.valid.iter(),
        errors,
    };
    parts.value(ty)
}

/// Whether cells of a register can be read: they keep neither which header of a union is valid nor
/// how long a varbit is.
///
/// # Errors
/// They cannot.
pub fn check_cell(ty: &TypeSpec) -> Result<(), Refusal> {
    match ty {
        TypeSpec::HeaderUnion(name, _) => Err(Refusal::unsupported(format!(
            "cells do not keep which header of the header union {name} is valid"
        ))),
        TypeSpec::Varbit(w) => Err(Refusal::unsupported(format!(
            "cells do not keep how long a varbit<{w}> is"
        ))),
        TypeSpec::New(_, inner, _) | TypeSpec::Stack(inner, _) => check_cell(inner),
        TypeSpec::Tuple(types) => types.iter().try_for_each(check_cell),
        TypeSpec::Struct(_, fields) | TypeSpec::Header(_, fields) => {
            fields.iter().try_for_each(|(_, ty)| check_cell(ty))
        }
        _ => Ok(()),
    }
}

/// The rest of a value that is being encoded.
struct Parts<'a> {
    scalars: std::slice::Iter<'a, Bits>,
    valid: std::slice::Iter<'a, bool>,
    errors: &'a [String],
}

impl Parts<'_> {
    /// The next scalar.
    fn scalar(&mut self) -> Bits {
        self.scalars.next().cloned().unwrap_or(Bits::zero(1))
    }

    fn value(&mut self, ty: &TypeSpec) -> pb::P4Data {
        let data = match ty {
            TypeSpec::New(_, inner, _) => return self.value(inner),
            TypeSpec::Bool => Data::Bool(!self.scalar().is_zero()),
            TypeSpec::Int(_) => Data::Bitstring(bytes::encode_signed(&self.scalar())),
            TypeSpec::Bit(_) => Data::Bitstring(bytes::encode(&self.scalar())),
            TypeSpec::Varbit(_) => {
                let value = self.scalar();
                Data::Varbit(pb::P4Varbit {
                    bitwidth: i32::try_from(value.width()).unwrap_or(i32::MAX),
                    bitstring: value.to_bytes(),
                })
            }
            TypeSpec::SerializableEnum(..) => Data::EnumValue(bytes::encode(&self.scalar())),
            TypeSpec::Enum(_, members) => Data::Enum(name_of(members, Some(&self.scalar()))),
            TypeSpec::Error => Data::Error(name_of(self.errors, Some(&self.scalar()))),
            TypeSpec::Tuple(types) => {
                let members = types.iter().map(|ty| self.value(ty)).collect();
                Data::Tuple(pb::P4StructLike { members })
            }
            TypeSpec::Struct(_, fields) => {
                let members = fields.iter().map(|(_, ty)| self.value(ty)).collect();
                Data::Struct(pb::P4StructLike { members })
            }
            TypeSpec::Header(_, fields) => Data::Header(self.header(fields)),
            TypeSpec::HeaderUnion(_, members) => Data::HeaderUnion(self.union(members)),
            TypeSpec::Stack(element, size) => self.stack(element.plain(), *size),
            // Nothing of these types is in registers or digests.
            TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::String => return pb::P4Data::default(),
        };
        pb::P4Data { data: Some(data) }
    }

    fn header(&mut self, fields: &[(String, TypeSpec)]) -> pb::P4Header {
        let is_valid = self.valid.next().copied().unwrap_or(true);
        // The fields of an invalid header are consumed, but not encoded.
        let mut bitstrings = Vec::with_capacity(fields.len());
        self.bitstrings(fields, &mut bitstrings);
        pb::P4Header {
            is_valid,
            bitstrings: if is_valid { bitstrings } else { Vec::new() },
        }
    }

    /// The scalars of a header's fields, those of structs in their places.
    fn bitstrings(&mut self, fields: &[(String, TypeSpec)], found: &mut Vec<Vec<u8>>) {
        for (_, ty) in fields {
            match ty.plain() {
                TypeSpec::Struct(_, fields) => self.bitstrings(fields, found),
                TypeSpec::Int(_) => found.push(bytes::encode_signed(&self.scalar())),
                TypeSpec::Varbit(_) => found.push(self.scalar().to_bytes()),
                _ => found.push(bytes::encode(&self.scalar())),
            }
        }
    }

    fn union(&mut self, members: &[(String, TypeSpec)]) -> pb::P4HeaderUnion {
        let mut found = pb::P4HeaderUnion::default();
        for (name, ty) in members {
            let TypeSpec::Header(_, fields) = ty.plain() else {
                continue;
            };
            let header = self.header(fields);
            if header.is_valid {
                found = pb::P4HeaderUnion {
                    valid_header_name: name.clone(),
                    valid_header: Some(header),
                };
            }
        }
        found
    }

    fn stack(&mut self, element: &TypeSpec, size: u32) -> Data {
        match element {
            TypeSpec::HeaderUnion(_, members) => Data::HeaderUnionStack(pb::P4HeaderUnionStack {
                entries: (0..size).map(|_| self.union(members)).collect(),
            }),
            TypeSpec::Header(_, fields) => Data::HeaderStack(pb::P4HeaderStack {
                entries: (0..size).map(|_| self.header(fields)).collect(),
            }),
            _ => Data::HeaderStack(pb::P4HeaderStack::default()),
        }
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

    fn header(fields: &[(&str, TypeSpec)]) -> TypeSpec {
        let fields = fields.iter().map(|(name, ty)| ((*name).to_owned(), ty.clone()));
        TypeSpec::Header("h".into(), fields.collect())
    }

    fn message(scalars: &[Bits], valid: &[bool]) -> Message {
        Message {
            scalars: scalars.to_vec(),
            valid: valid.to_vec(),
        }
    }

    #[test]
    fn a_header_union_is_its_valid_header_and_what_follows_it_is_in_its_place() {
        let members = vec![
            ("a".into(), header(&[("x", TypeSpec::Bit(8))])),
            ("b".into(), header(&[("y", TypeSpec::Bit(16)), ("z", TypeSpec::Int(8))])),
        ];
        let union = TypeSpec::HeaderUnion("u".into(), members);
        let ty = TypeSpec::Tuple(vec![
            TypeSpec::Stack(Box::new(union.clone()), 2),
            union,
            TypeSpec::Bit(8),
        ]);
        let one = [Bits::new(8, 1), Bits::new(16, 2), Bits::new(8, 0xff)];
        let scalars = [&one[..], &one, &one, &[Bits::new(8, 7)]].concat();
        let encoded = encode_message(&ty, &message(&scalars, &[true, false, false, true, false, false]), &[]);
        let valid = |name: &str, bitstrings: &[&[u8]]| pb::P4HeaderUnion {
            valid_header_name: name.into(),
            valid_header: Some(pb::P4Header {
                is_valid: true,
                bitstrings: bitstrings.iter().map(|b| b.to_vec()).collect(),
            }),
        };
        let data = |data| pb::P4Data { data: Some(data) };
        let members = vec![
            data(Data::HeaderUnionStack(pb::P4HeaderUnionStack {
                entries: vec![valid("a", &[&[1]]), valid("b", &[&[2], &[0xff]])],
            })),
            data(Data::HeaderUnion(pb::P4HeaderUnion::default())),
            data(Data::Bitstring(vec![7])),
        ];
        assert_eq!(encoded, data(Data::Tuple(pb::P4StructLike { members })));
    }

    #[test]
    fn the_fields_of_a_struct_in_a_header_are_fields_of_the_header() {
        let fields = vec![("x".into(), TypeSpec::Bit(4)), ("y".into(), TypeSpec::Int(8))];
        let pair = TypeSpec::Struct("pair".into(), fields);
        let named = TypeSpec::New("own_t".into(), Box::new(TypeSpec::Bit(16)), None);
        let ty = TypeSpec::Tuple(vec![header(&[("p", pair), ("z", named)]), TypeSpec::Bit(8)]);
        let scalars = [
            Bits::new(4, 1),
            Bits::new(8, 0xff),
            Bits::new(16, 0x102),
            Bits::new(8, 3),
        ];
        let encoded = encode(&ty, &scalars, &[]);
        let members = [
            Data::Header(pb::P4Header {
                is_valid: true,
                bitstrings: vec![vec![1], vec![0xff], vec![1, 2]],
            }),
            Data::Bitstring(vec![3]),
        ];
        let members = members.map(|data| pb::P4Data { data: Some(data) }).to_vec();
        assert_eq!(encoded.data, Some(Data::Tuple(pb::P4StructLike { members })));
        assert_eq!(decode(&ty, &encoded, &[]), Ok(scalars.to_vec()));
    }

    #[test]
    fn a_varbit_has_its_own_length_and_an_invalid_header_no_fields() {
        let fields = [("n", TypeSpec::Bit(8)), ("v", TypeSpec::Varbit(64))];
        let ty = TypeSpec::Tuple(vec![TypeSpec::Varbit(64), header(&fields), header(&fields)]);
        let scalars = [
            Bits::new(12, 1),
            Bits::new(8, 2),
            Bits::new(24, 3),
            Bits::new(8, 0),
            Bits::zero(0),
        ];
        let encoded = encode_message(&ty, &message(&scalars, &[true, false]), &[]);
        let header = |is_valid, bitstrings| Data::Header(pb::P4Header { is_valid, bitstrings });
        let members = [
            Data::Varbit(pb::P4Varbit {
                bitstring: vec![0, 1],
                bitwidth: 12,
            }),
            header(true, vec![vec![2], vec![0, 0, 3]]),
            header(false, vec![]),
        ];
        let members = members.map(|data| pb::P4Data { data: Some(data) }).to_vec();
        assert_eq!(encoded.data, Some(Data::Tuple(pb::P4StructLike { members })));
    }
}
