//! Types as messages, and the table of named types that they refer to.

use super::{Generator, annotations};
use weir_ir::{Bits, TypeSpec};
use weir_proto::p4::config::v1 as pb;
use weir_proto::p4::config::v1::p4_data_type_spec::TypeSpec as Data;

type Fields = [(String, TypeSpec)];

impl Generator<'_> {
    /// A type as a message. Named types it consists of are added to the table.
    pub(super) fn data_type(&mut self, spec: &TypeSpec) -> pb::P4DataTypeSpec {
        let type_spec = match spec {
            TypeSpec::Bit(_) | TypeSpec::Int(_) | TypeSpec::Varbit(_) => Some(Data::Bitstring(bitstring(spec))),
            TypeSpec::Bool => Some(Data::Bool(pb::P4BoolType {})),
            TypeSpec::Error => {
                self.error_type();
                Some(Data::Error(pb::P4ErrorType {}))
            }
            TypeSpec::Tuple(parts) => {
                let members = parts.iter().map(|p| self.data_type(p)).collect();
                Some(Data::Tuple(pb::P4TupleTypeSpec { members }))
            }
            TypeSpec::Struct(name, fields) => {
                self.struct_type(name, fields);
                Some(Data::Struct(named(name)))
            }
            TypeSpec::Header(name, fields) => {
                self.header_type(name, fields);
                Some(Data::Header(named(name)))
            }
            TypeSpec::HeaderUnion(name, fields) => {
                self.union_type(name, fields);
                Some(Data::HeaderUnion(named(name)))
            }
            TypeSpec::Stack(element, size) => self.stack_type(element, *size),
            TypeSpec::Enum(name, members) => {
                self.enum_type(name, members);
                Some(Data::Enum(named(name)))
            }
            TypeSpec::SerializableEnum(name, width, members) => {
                self.serializable_enum_type(name, *width, members);
                Some(Data::SerializableEnum(named(name)))
            }
            TypeSpec::New(name, original, translation) => {
                self.new_type(name, original, translation.as_ref());
                Some(Data::NewType(named(name)))
            }
            TypeSpec::Opaque(_) | TypeSpec::Void | TypeSpec::String => None,
        };
        pb::P4DataTypeSpec { type_spec }
    }

    fn error_type(&mut self) {
        let members = self.program.errors.clone();
        self.types.error.get_or_insert(pb::P4ErrorTypeSpec { members });
    }

    fn struct_type(&mut self, name: &str, fields: &Fields) {
        if self.types.structs.contains_key(name) {
            return;
        }
        let member = |(name, ty): &(String, TypeSpec)| pb::p4_struct_type_spec::Member {
            name: name.clone(),
            type_spec: Some(self.data_type(ty)),
        };
        let members = fields.iter().map(member).collect();
        let spec = pb::P4StructTypeSpec {
            members,
            ..pb::P4StructTypeSpec::default()
        };
        self.types.structs.insert(name.to_string(), spec);
    }

    fn header_type(&mut self, name: &str, fields: &Fields) {
        let members = TypeSpec::header_scalars(fields)
            .into_iter()
            .map(|(name, ty)| pb::p4_header_type_spec::Member {
                name,
                type_spec: Some(bitstring(ty)),
            })
            .collect();
        let spec = pb::P4HeaderTypeSpec {
            members,
            ..pb::P4HeaderTypeSpec::default()
        };
        self.types.headers.entry(name.to_string()).or_insert(spec);
    }

    fn union_type(&mut self, name: &str, fields: &Fields) {
        let mut members = Vec::new();
        for (name, ty) in fields {
            if let Some(Data::Header(header)) = self.data_type(ty).type_spec {
                members.push(pb::p4_header_union_type_spec::Member {
                    name: name.clone(),
                    header: Some(header),
                });
            }
        }
        let spec = pb::P4HeaderUnionTypeSpec {
            members,
            ..pb::P4HeaderUnionTypeSpec::default()
        };
        self.types.header_unions.entry(name.to_string()).or_insert(spec);
    }

    fn stack_type(&mut self, element: &TypeSpec, size: u32) -> Option<Data> {
        let size = i32::try_from(size).unwrap_or(i32::MAX);
        match self.data_type(element).type_spec? {
            Data::Header(header) => Some(Data::HeaderStack(pb::P4HeaderStackTypeSpec {
                header: Some(header),
                size,
            })),
            Data::HeaderUnion(union) => Some(Data::HeaderUnionStack(pb::P4HeaderUnionStackTypeSpec {
                header_union: Some(union),
                size,
            })),
            _ => None,
        }
    }

    fn enum_type(&mut self, name: &str, members: &[String]) {
        let members = members
            .iter()
            .map(|name| pb::p4_enum_type_spec::Member {
                name: name.clone(),
                ..pb::p4_enum_type_spec::Member::default()
            })
            .collect();
        let spec = pb::P4EnumTypeSpec {
            members,
            ..pb::P4EnumTypeSpec::default()
        };
        self.types.enums.entry(name.to_string()).or_insert(spec);
    }

    fn serializable_enum_type(&mut self, name: &str, width: u32, members: &[(String, Bits)]) {
        use pb::p4_serializable_enum_type_spec::Member;
        let members = members
            .iter()
            .map(|(name, value)| Member {
                name: name.clone(),
                value: value.to_bytes(),
                ..Member::default()
            })
            .collect();
        let underlying_type = Some(pb::P4BitTypeSpec {
            bitwidth: bitwidth(width),
        });
        let spec = pb::P4SerializableEnumTypeSpec {
            underlying_type,
            members,
            ..pb::P4SerializableEnumTypeSpec::default()
        };
        self.types.serializable_enums.entry(name.to_string()).or_insert(spec);
    }

    fn new_type(&mut self, name: &str, original: &TypeSpec, translation: Option<&(String, Option<u32>)>) {
        use pb::p4_new_type_spec::Representation;
        use pb::p4_new_type_translation::{SdnString, SdnType};
        if self.types.new_types.contains_key(name) {
            return;
        }
        let representation = match translation {
            Some((uri, width)) => Representation::TranslatedType(pb::P4NewTypeTranslation {
                uri: uri.clone(),
                sdn_type: Some(width.map_or(SdnType::SdnString(SdnString {}), |w| SdnType::SdnBitwidth(bitwidth(w)))),
            }),
            None => Representation::OriginalType(self.data_type(original.plain())),
        };
        let declared = self.program.type_info.iter().find(|known| known.name == name);
        let list = declared.map_or(&[][..], |known| known.annotations.as_slice());
        let spec = pb::P4NewTypeSpec {
            representation: Some(representation),
            annotations: annotations::texts(list, &["p4runtime_translation"]),
            structured_annotations: annotations::structured(list, &["p4runtime_translation"]),
            ..pb::P4NewTypeSpec::default()
        };
        self.types.new_types.insert(name.to_string(), spec);
    }
}

fn named(name: &str) -> pb::P4NamedType {
    pb::P4NamedType { name: name.to_string() }
}

fn bitwidth(width: u32) -> i32 {
    i32::try_from(width).unwrap_or(i32::MAX)
}

/// A scalar as a string of bits.
fn bitstring(spec: &TypeSpec) -> pb::P4BitstringLikeTypeSpec {
    use pb::p4_bitstring_like_type_spec::TypeSpec as Scalar;
    let bit = |width: u32| {
        Some(Scalar::Bit(pb::P4BitTypeSpec {
            bitwidth: bitwidth(width),
        }))
    };
    let type_spec = match spec {
        TypeSpec::Bit(w) => bit(*w),
        TypeSpec::Bool => bit(1),
        TypeSpec::SerializableEnum(_, w, _) => bit(*w),
        TypeSpec::Int(w) => Some(Scalar::Int(pb::P4IntTypeSpec { bitwidth: bitwidth(*w) })),
        TypeSpec::Varbit(w) => Some(Scalar::Varbit(pb::P4VarbitTypeSpec {
            max_bitwidth: bitwidth(*w),
        })),
        _ => None,
    };
    pb::P4BitstringLikeTypeSpec {
        type_spec,
        ..pb::P4BitstringLikeTypeSpec::default()
    }
}
