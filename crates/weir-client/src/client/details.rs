//! Decodes errors per update and per query from the details of a status.

use super::Query;
use crate::batch::Batch;
use crate::decode::describe;
use crate::error::{Error, UpdateError};
use crate::schema::{Protocol, Schema};
use prost::Message;
use tonic::{Code, Status};
use weir_proto::bfrt_proto as bfrt;
use weir_proto::google::rpc;
use weir_proto::p4::v1 as p4;

/// The code and message of each update or query, in order; `None` if the status applies to the
/// whole request.
fn list(protocol: Protocol, status: &Status) -> Option<Vec<(Code, String)>> {
    if status.details().is_empty() {
        return None;
    }
    let details = rpc::Status::decode(status.details()).ok()?.details;
    if details.is_empty() {
        return None;
    }
    details
        .iter()
        .map(|any| match protocol {
            Protocol::P4Runtime => {
                let error = p4::Error::decode(&any.value[..]).ok()?;
                Some((Code::from(error.canonical_code), error.message))
            }
            Protocol::BfRuntime => {
                let error = bfrt::Error::decode(&any.value[..]).ok()?;
                Some((Code::from(error.canonical_code), error.message))
            }
        })
        .collect()
}

/// The errors of a batch.
pub fn write_error(batch: &Batch, first: u64, status: &Status) -> Error {
    let schema = batch.schema();
    let Some(outcomes) = list(schema.protocol, status) else {
        return Error::rpc("write", status);
    };
    let failed = outcomes
        .into_iter()
        .enumerate()
        .filter(|(_, (code, _))| *code != Code::Ok);
    let errors = failed.map(|(place, (code, message))| {
        let about = batch.update(place).and_then(|update| describe(schema, update));
        let (what, table, key) = about.map_or(("update", String::new(), String::new()), |(operation, table, key)| {
            (operation.name(), table, key)
        });
        UpdateError {
            index: first + place as u64,
            what,
            table,
            key,
            code,
            message,
        }
    });
    let errors: Vec<UpdateError> = errors.collect();
    if errors.is_empty() {
        // The status is an error, but none of its details is.
        return Error::rpc("write", status);
    }
    Error::Updates(errors)
}

/// The errors of a read.
pub fn read_error(schema: &Schema, queries: &[Query], status: &Status) -> Error {
    let Some(outcomes) = list(schema.protocol, status) else {
        return Error::rpc("read", status);
    };
    let failed = outcomes
        .into_iter()
        .enumerate()
        .filter(|(_, (code, _))| *code != Code::Ok);
    let errors = failed.map(|(place, (code, message))| {
        let query = queries.get(place);
        UpdateError {
            index: place as u64,
            what: "read",
            table: query.map(|q| q.table().name.clone()).unwrap_or_default(),
            key: match query {
                Some(Query::Entry(entry)) => entry.key_text(),
                _ => String::new(),
            },
            code,
            message,
        }
    });
    let errors: Vec<UpdateError> = errors.collect();
    if errors.is_empty() {
        return Error::rpc("read", status);
    }
    Error::Updates(errors)
}

/// Whether a Read has failed because the entry does not exist.
pub fn is_not_found(error: &Error) -> bool {
    match error {
        Error::Rpc { code, .. } => *code == Code::NotFound,
        Error::Updates(errors) => errors.iter().all(|e| e.code == Code::NotFound),
        _ => false,
    }
}
