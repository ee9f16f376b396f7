//! Keys of externs as `ExternEntry` has them: an `Any` of weir's `ExternKey`.
//!
//! INSERT sets a key that is not set, MODIFY one that is, DELETE removes it. Answers say that a key
//! is set; none has the key.

use super::change::{Before, Change};
use super::refusal::Refusal;
use super::schema::{KeyedExtern, Schema};
use prost::Message;
use weir_proto::budget;
use weir_proto::extern_keys::{MESSAGE, TYPE_URL};
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::update::Type;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::ExternKey;
use weir_switch::KeyBytes;

/// The most fields of an `ExternKey`.
const MAX_FIELDS: usize = 8;

/// Whether the program has an extern type of this id whose instances have keys.
pub fn is_type(schema: &Schema, extern_type_id: u32) -> bool {
    schema.keyed.values().any(|k| k.type_id == extern_type_id)
}

/// The instance of an id.
///
/// # Errors
/// The type has no such instance.
pub fn instance(schema: &Schema, type_id: u32, id: u32) -> Result<&KeyedExtern, Refusal> {
    let found = schema.keyed.get(&id).filter(|k| k.type_id == type_id);
    found.ok_or_else(|| {
        let of_type = schema.keyed.iter().filter(|(_, k)| k.type_id == type_id);
        let known: Vec<String> = of_type.map(|(id, k)| format!("{id:#x} ({})", k.name)).collect();
        Refusal::malformed(format!(
            "the extern type {type_id:#x} has no instance with the id {id:#x}; there are {}",
            known.join(", ")
        ))
    })
}

/// The change of a key.
///
/// # Errors
/// There is no such instance, or the entry is not a key that can be written.
pub fn decode(schema: &Schema, ty: Type, entry: &pb::ExternEntry) -> Result<Change, Refusal> {
    let keyed = instance(schema, entry.extern_type_id, entry.extern_id)?;
    let within = |e: Refusal| e.within(&format!("extern `{}`", keyed.name));
    let given = message(entry.entry.as_ref()).map_err(within)?;
    if given.is_set {
        return Err(within(Refusal::malformed("is_set is not written")));
    }
    let key = KeyBytes::new(given.key);
    let before = match ty {
        Type::Insert => Before::Absent,
        Type::Modify | Type::Delete | Type::Unspecified => Before::Present,
    };
    match (ty, key.bytes().is_empty()) {
        (Type::Delete, false) => return Err(within(Refusal::malformed("DELETE takes no key"))),
        (Type::Insert | Type::Modify, true) => {
            return Err(within(Refusal::malformed("the key is empty; DELETE removes a key")));
        }
        _ => {}
    }
    Ok(Change::Key(before, keyed.instance, given.index, key))
}

/// The number of the key that a read is about; `None`: it is about all.
///
/// # Errors
/// The entry is of another type.
pub fn index(entry: Option<&Any>) -> Result<Option<u64>, Refusal> {
    entry.map(|any| message(Some(any)).map(|m| m.index)).transpose()
}

fn message(entry: Option<&Any>) -> Result<ExternKey, Refusal> {
    let any = entry.ok_or_else(|| Refusal::malformed(format!("the entry is missing; it is a {MESSAGE}")))?;
    let name = any.type_url.rsplit('/').next().unwrap_or("");
    if name != MESSAGE {
        return Err(Refusal::malformed(format!(
            "the entry is a {MESSAGE}; found the type `{name}`"
        )));
    }
    let broken = || Refusal::malformed(format!("the entry is no {MESSAGE}"));
    budget::fields::<ExternKey>(&any.value, MAX_FIELDS).map_err(|_| broken())?;
    // The decoder's message might show bytes of the key.
    ExternKey::decode(any.value.as_slice()).map_err(|_| broken())
}

/// The entity that a read returns for a key that is set.
#[must_use]
pub fn encode(id: u32, keyed: &KeyedExtern, index: u64) -> pb::ExternEntry {
    let key = ExternKey {
        index,
        key: Vec::new(),
        is_set: true,
    };
    pb::ExternEntry {
        extern_type_id: keyed.type_id,
        extern_id: id,
        entry: Some(Any {
            type_url: TYPE_URL.to_owned(),
            value: key.encode_to_vec(),
        }),
    }
}
