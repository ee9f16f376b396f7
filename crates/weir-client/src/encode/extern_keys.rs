//! Encodes and decodes keys of externs as `ExternEntry` of P4Runtime.

use super::custom_crc;
use crate::entry::{Entry, Place};
use crate::error::Error;
use crate::schema::Table;
use crate::value::{Match, Value};
use prost::Message;
use weir_proto::extern_keys::{IS_SET_ID, TYPE_URL};
use weir_proto::p4::v1 as pb;
use weir_proto::prost_types::Any;
use weir_proto::weir::v1::ExternKey;

/// The entity of a key; without bytes, of its number.
pub fn entity(table: &Table, index: u64, key: Vec<u8>) -> pb::ExternEntry {
    let key = ExternKey {
        index,
        key,
        is_set: false,
    };
    pb::ExternEntry {
        entry: Some(Any {
            type_url: TYPE_URL.to_owned(),
            value: key.encode_to_vec(),
        }),
        ..custom_crc::query(table)
    }
}

/// Sets the number and the data of an entry to those sent by a target.
///
/// # Errors
/// The message is no key.
pub fn decode(entry: &mut Entry, given: &pb::ExternEntry) -> Result<(), Error> {
    let bytes = given.entry.as_ref().map_or(&[][..], |any| &any.value);
    let malformed = |_| Error::Malformed(format!("{}: an entry that is no key", entry.table.name));
    let key = ExternKey::decode(bytes).map_err(malformed)?;
    if let Some(first) = entry.keys.first_mut() {
        *first = Match::from(key.index);
    }
    if let Some(place) = entry.table.data.iter().position(|f| f.id == IS_SET_ID) {
        entry.data.push((Place::Data(place), Value::Bool(key.is_set)));
    }
    Ok(())
}
