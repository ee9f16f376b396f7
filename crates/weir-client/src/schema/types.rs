//! Resolves types of P4Info to [`Type`]s.

use super::{Field, Type};
use weir_proto::p4::config::v1 as pb;
use weir_proto::p4::config::v1::p4_bitstring_like_type_spec::TypeSpec as Bits;
use weir_proto::p4::config::v1::p4_data_type_spec::TypeSpec;

/// The type of a type specification.
pub fn resolve(spec: Option<&pb::P4DataTypeSpec>, info: &pb::P4TypeInfo) -> Type {
    Resolver::new(info).resolve(spec, 0)
}

/// The type of a key or parameter: a number of `bitwidth` bits, unless its type has a translation.
pub fn scalar(bitwidth: i32, name: Option<&pb::P4NamedType>, info: &pb::P4TypeInfo) -> Type {
    match name {
        Some(name) if bitwidth == 0 => Resolver::new(info).new_type(&name.name, 0),
        _ if bitwidth == 0 => Type::Text(Vec::new()),
        _ => Type::Bits(width_of(bitwidth)),
    }
}

/// Nesting depth beyond which a type is unknown: a description may be recursive.
const MAX_DEPTH: usize = 32;

/// Total number of types beyond which one is unknown: a description may double at every level.
const MAX_TYPES: usize = 10_000;

struct Resolver<'a> {
    info: &'a pb::P4TypeInfo,
    types: usize,
}

impl<'a> Resolver<'a> {
    fn new(info: &'a pb::P4TypeInfo) -> Self {
        Resolver { info, types: 0 }
    }

    fn resolve(&mut self, spec: Option<&pb::P4DataTypeSpec>, depth: usize) -> Type {
        let Some(spec) = spec.and_then(|s| s.type_spec.as_ref()) else {
            return Type::Unknown("nothing".to_owned());
        };
        self.types += 1;
        if depth == MAX_DEPTH || self.types > MAX_TYPES {
            return Type::Unknown("too large a type".to_owned());
        }
        let info = self.info;
        match spec {
            TypeSpec::Bitstring(bits) => bitstring(bits),
            TypeSpec::Bool(_) => Type::Bool,
            TypeSpec::Error(_) => Type::Error,
            TypeSpec::Tuple(tuple) => {
                Type::Tuple(tuple.members.iter().map(|m| self.resolve(Some(m), depth + 1)).collect())
            }
            TypeSpec::Struct(named) => match info.structs.get(&named.name) {
                None => Type::Unknown(named.name.clone()),
                Some(found) => {
                    let fields = found.members.iter().enumerate().map(|(i, member)| {
                        let ty = self.resolve(member.type_spec.as_ref(), depth + 1);
                        Field::new(number(i), &member.name, ty)
                    });
                    Type::Record(fields.collect())
                }
            },
            TypeSpec::Header(named) => header(&named.name, info),
            TypeSpec::HeaderStack(stack) => {
                let name = stack.header.as_ref().map_or("", |h| h.name.as_str());
                Type::Stack(Box::new(header(name, info)))
            }
            TypeSpec::Enum(named) => match info.enums.get(&named.name) {
                None => Type::Unknown(named.name.clone()),
                Some(found) => Type::Enum(found.members.iter().map(|m| m.name.clone()).collect()),
            },
            TypeSpec::SerializableEnum(named) => {
                let width = info.serializable_enums.get(&named.name);
                let width = width
                    .and_then(|e| e.underlying_type.as_ref())
                    .map(|t| width_of(t.bitwidth));
                width.map_or_else(|| Type::Unknown(named.name.clone()), Type::NumberedEnum)
            }
            TypeSpec::NewType(named) => self.new_type(&named.name, depth + 1),
            TypeSpec::HeaderUnion(named) => Type::Unknown(format!("header_union {}", named.name)),
            TypeSpec::HeaderUnionStack(_) => Type::Unknown("a stack of header unions".to_owned()),
        }
    }

    /// A `type` declaration of the program. One that is translated to a string is a text.
    fn new_type(&mut self, name: &str, depth: usize) -> Type {
        use pb::p4_new_type_spec::Representation;
        use pb::p4_new_type_translation::SdnType;
        match self.info.new_types.get(name).and_then(|t| t.representation.as_ref()) {
            None => Type::Unknown(name.to_owned()),
            Some(Representation::OriginalType(spec)) => self.resolve(Some(spec), depth),
            Some(Representation::TranslatedType(translated)) => match &translated.sdn_type {
                Some(SdnType::SdnString(_)) => Type::Text(Vec::new()),
                Some(SdnType::SdnBitwidth(width)) => Type::Bits(width_of(*width)),
                None => Type::Unknown(name.to_owned()),
            },
        }
    }
}

fn header(name: &str, info: &pb::P4TypeInfo) -> Type {
    let Some(found) = info.headers.get(name) else {
        return Type::Unknown(name.to_owned());
    };
    let fields = found.members.iter().enumerate().map(|(i, member)| {
        let ty = member.type_spec.as_ref();
        let ty = ty.map_or_else(|| Type::Unknown("nothing".to_owned()), bitstring);
        Field::new(number(i), &member.name, ty)
    });
    Type::Header(fields.collect())
}

fn bitstring(spec: &pb::P4BitstringLikeTypeSpec) -> Type {
    match &spec.type_spec {
        Some(Bits::Bit(bit)) => Type::Bits(width_of(bit.bitwidth)),
        Some(Bits::Int(int)) => Type::Bits(width_of(int.bitwidth)),
        Some(Bits::Varbit(varbit)) => Type::Varbit(width_of(varbit.max_bitwidth)),
        None => Type::Unknown("nothing".to_owned()),
    }
}

fn width_of(bits: i32) -> u32 {
    u32::try_from(bits).unwrap_or(0)
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
