//! Encodes and decodes parameters of custom CRCs as `ExternEntry` of P4Runtime.

use super::p4data;
use crate::entry::{Entry, Place};
use crate::error::Error;
use crate::schema::Table;
use prost::Message;
use weir_proto::p4::v1 as pb;
use weir_proto::p4::v1::p4_data::Data;
use weir_proto::prost_types::Any;

/// Type URL of the value in an `Any`.
const TYPE_URL: &str = "type.googleapis.com/p4.v1.P4Data";

/// The entity of a Read of a custom CRC's parameters.
pub fn query(table: &Table) -> pb::ExternEntry {
    pb::ExternEntry {
        // The first byte of an id is the type.
        extern_type_id: table.id >> 24,
        extern_id: table.id,
        entry: None,
    }
}

/// The entity with all parameters, which are members of one value.
///
/// # Errors
/// A parameter is missing, or does not fit.
pub fn entity(entry: &Entry) -> Result<pb::ExternEntry, Error> {
    let mut members = Vec::new();
    for field in &entry.table.data {
        let value = entry.get(&field.name);
        let value = value.ok_or_else(|| {
            let reason = "is missing: by P4Runtime all parameters are set at once".to_owned();
            entry.wrong(&field.name, reason)
        })?;
        members.push(p4data::encode(&field.ty, value).map_err(|reason| entry.wrong(&field.name, reason))?);
    }
    let data = pb::P4Data {
        data: Some(Data::Struct(pb::P4StructLike { members })),
    };
    Ok(pb::ExternEntry {
        entry: Some(Any {
            type_url: TYPE_URL.to_owned(),
            value: data.encode_to_vec(),
        }),
        ..query(&entry.table)
    })
}

/// Sets the data of an entry to the parameters sent by a target.
///
/// # Errors
/// The message has no parameters.
pub fn decode(entry: &mut Entry, given: &pb::ExternEntry) -> Result<(), Error> {
    let table = std::sync::Arc::clone(&entry.table);
    let malformed = |why: String| Error::Malformed(format!("{}: {why}", table.name));
    let bytes = given.entry.as_ref().map_or(&[][..], |any| &any.value);
    let data = pb::P4Data::decode(bytes).map_err(|e| malformed(e.to_string()))?;
    let Some(Data::Struct(parts)) = &data.data else {
        return Err(malformed("a value that is no struct".to_owned()));
    };
    for (i, (field, part)) in table.data.iter().zip(&parts.members).enumerate() {
        let value = p4data::decode(&field.ty, part).map_err(malformed)?;
        entry.data.push((Place::Data(i), value));
    }
    Ok(())
}
