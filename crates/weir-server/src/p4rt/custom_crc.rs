//! Parameters of custom CRCs as `ExternEntry` has them: an `Any` of a `P4Data` that is a struct.
//!
//! Its members are the polynomial, the initial value and the final exclusive or as bitstrings, then
//! whether the input and the result are reflected.

use super::bytes;
use super::refusal::Refusal;
use super::schema::Schema;
use prost::Message;
use std::collections::{BTreeMap, BTreeSet};
use weir_ir::Bits;
use weir_proto::budget::{self, Excess};
use weir_proto::custom_crc::{ALL, CustomCrc, INITIAL, POLYNOMIAL, REFLECT_IN, REFLECT_OUT, XOR_OUT};
use weir_proto::p4::config::v1 as p4info;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_data::Data;
use weir_proto::prost_types::Any;
use weir_switch::{CrcParameters, CrcScope};

/// The type of `entry`.
const TYPE_NAME: &str = "p4.v1.P4Data";

/// How it is marked in an `Any`.
const TYPE_URL: &str = "type.googleapis.com/p4.v1.P4Data";

/// The most fields of a `P4Data`: enough for five members, and for wrong numbers of members to be
/// reported.
const MOST_FIELDS: usize = 32;

/// The custom CRC whose extern type this is.
///
/// # Errors
/// There is no such type, or the program does not use that CRC.
pub fn of_type(schema: &Schema, extern_type_id: u32) -> Result<&'static CustomCrc, Refusal> {
    let Some(crc) = CustomCrc::of_type(extern_type_id) else {
        let known: Vec<String> = ALL
            .iter()
            .map(|c| format!("{:#x} ({})", c.extern_type_id, c.name))
            .collect();
        let keyed: BTreeSet<u32> = schema.keyed.values().map(|k| k.type_id).collect();
        let keyed = keyed.iter().map(|id| format!("{id:#x} (keys)"));
        return Err(Refusal::malformed(format!(
            "there is no extern type with the id {extern_type_id:#x} whose state is written as ExternEntry; there are {}",
            known.into_iter().chain(keyed).collect::<Vec<_>>().join(" and ")
        )));
    };
    if schema.crcs.contains_key(&crc.extern_id) {
        return Ok(crc);
    }
    Err(Refusal::malformed(format!(
        "the program has no extern of the type {extern_type_id:#x}: it does not hash by {}",
        crc.name
    )))
}

/// An instance of the extern types of custom CRCs.
#[derive(Debug, Clone)]
pub struct CrcInstance {
    /// The custom CRC.
    pub crc: &'static CustomCrc,
    /// What its parameters are for.
    pub scope: CrcScope,
    /// Its name in P4Info.
    pub name: String,
}

/// The instances that P4Info lists, by their ids.
pub fn instances(externs: &[p4info::Extern]) -> BTreeMap<u32, CrcInstance> {
    let mut found = BTreeMap::new();
    for described in externs {
        let Some(crc) = CustomCrc::of_type(described.extern_type_id) else {
            continue;
        };
        for preamble in described.instances.iter().filter_map(|i| i.preamble.as_ref()) {
            let scope = match crc.calculation_of(preamble.id) {
                Some(number) => CrcScope::Calculation(number),
                None if preamble.id == crc.extern_id => CrcScope::Width(crc.width),
                None => continue,
            };
            let name = preamble.name.clone();
            found.insert(preamble.id, CrcInstance { crc, scope, name });
        }
    }
    found
}

/// The instance of a custom CRC with an id.
///
/// # Errors
/// There is none.
pub fn instance<'s>(schema: &'s Schema, crc: &CustomCrc, extern_id: u32) -> Result<&'s CrcInstance, Refusal> {
    let found = schema.crcs.get(&extern_id);
    found.filter(|i| i.crc.width == crc.width).ok_or_else(|| {
        let known = schema.crcs.iter().filter(|(_, i)| i.crc.width == crc.width);
        let known: Vec<String> = known.map(|(id, i)| format!("{id:#x} ({})", i.name)).collect();
        Refusal::malformed(format!(
            "{} has no instance with the extern_id {extern_id:#x}; it has {}",
            crc.name,
            known.join(", ")
        ))
    })
}

/// What an entry sets the parameters of, and to what.
///
/// # Errors
/// There is no such instance, or the value is another one than a struct of the parameters.
pub fn decode(schema: &Schema, entry: &pb::ExternEntry) -> Result<(CrcScope, CrcParameters), Refusal> {
    let crc = of_type(schema, entry.extern_type_id)?;
    let instance = instance(schema, crc, entry.extern_id)?;
    let found = parameters(crc.width, entry.entry.as_ref());
    Ok((instance.scope, found.map_err(|e| e.within(&instance.name))?))
}

fn parameters(width: u32, entry: Option<&Any>) -> Result<CrcParameters, Refusal> {
    let any = entry.ok_or_else(|| Refusal::malformed(format!("the entry is missing; it is a {TYPE_NAME}")))?;
    let name = any.type_url.rsplit('/').next().unwrap_or("");
    if name != TYPE_NAME {
        return Err(Refusal::malformed(format!(
            "the entry is a {TYPE_NAME}; found the type `{name}`"
        )));
    }
    let broken = |why: &str| Refusal::malformed(format!("the entry is no {TYPE_NAME}: {why}"));
    budget::fields::<pb::P4Data>(&any.value, MOST_FIELDS).map_err(|excess| match excess {
        Excess::Fields => Refusal::malformed(expected()),
        Excess::Group => broken("it has a group"),
    })?;
    let data = pb::P4Data::decode(any.value.as_slice()).map_err(|e| broken(&e.to_string()))?;
    let Some(Data::Struct(parts)) = &data.data else {
        return Err(Refusal::malformed(expected()));
    };
    let [polynomial, initial, xor_out, reflect_in, reflect_out] = parts.members.as_slice() else {
        return Err(Refusal::malformed(format!(
            "{}; found {} members",
            expected(),
            parts.members.len()
        )));
    };
    Ok(CrcParameters {
        width,
        polynomial: number(width, POLYNOMIAL, polynomial)?,
        initial: number(width, INITIAL, initial)?,
        xor_out: number(width, XOR_OUT, xor_out)?,
        reflect_in: flag(REFLECT_IN, reflect_in)?,
        reflect_out: flag(REFLECT_OUT, reflect_out)?,
    })
}

fn expected() -> String {
    format!(
        "the entry is a struct of `{POLYNOMIAL}`, `{INITIAL}` and `{XOR_OUT}` as bitstrings, `{REFLECT_IN}` and `{REFLECT_OUT}` as bools"
    )
}

fn number(width: u32, name: &str, data: &pb::P4Data) -> Result<u64, Refusal> {
    let Some(Data::Bitstring(given)) = &data.data else {
        return Err(Refusal::malformed(format!("`{name}` is a bitstring")));
    };
    let value = bytes::decode(width, given).map_err(|e| e.within(&format!("`{name}`")))?;
    Ok(value.to_u64_saturating())
}

fn flag(name: &str, data: &pb::P4Data) -> Result<bool, Refusal> {
    match &data.data {
        Some(Data::Bool(flag)) => Ok(*flag),
        _ => Err(Refusal::malformed(format!("`{name}` is a bool"))),
    }
}

/// The entry of an instance with these parameters.
#[must_use]
pub fn encode(crc: &CustomCrc, extern_id: u32, parameters: &CrcParameters) -> pb::ExternEntry {
    let number = |value: u64| Data::Bitstring(bytes::encode(&Bits::new(crc.width, value.into())));
    let members = [
        number(parameters.polynomial),
        number(parameters.initial),
        number(parameters.xor_out),
        Data::Bool(parameters.reflect_in),
        Data::Bool(parameters.reflect_out),
    ];
    let members = members.map(|data| pb::P4Data { data: Some(data) }).to_vec();
    let data = pb::P4Data {
        data: Some(Data::Struct(pb::P4StructLike { members })),
    };
    pb::ExternEntry {
        extern_type_id: crc.extern_type_id,
        extern_id,
        entry: Some(Any {
            type_url: TYPE_URL.to_owned(),
            value: data.encode_to_vec(),
        }),
    }
}
