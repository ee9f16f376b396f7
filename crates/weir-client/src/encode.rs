//! Entries as messages of a protocol.

mod bfrt;
pub(crate) mod custom_crc;
mod key;
pub(crate) mod p4data;
mod p4rt;
mod template;

pub use template::{Cell, CellKind, Template};

use crate::entry::Entry;
use crate::error::Error;
use crate::schema::{Key, Protocol, Table, Type};
use crate::value::{Match, Value};
use crate::wire::Writer;
use std::sync::Arc;

/// What is done with an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// It must not be there yet.
    Insert,
    /// It must be there.
    Modify,
    /// It must be there. Of a default entry: the program's own comes back.
    Delete,
    /// It may be there or not. P4Runtime has no such update: what is there is modified by a second
    /// request.
    InsertOrModify,
    /// Elements are added to the lists that it holds (BF Runtime).
    Add,
    /// Elements are taken from the lists that it holds (BF Runtime).
    Remove,
    /// It becomes as it was at first (BF Runtime).
    Reset,
}

impl Operation {
    /// A word for messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Modify => "modify",
            Operation::Delete => "delete",
            Operation::InsertOrModify => "insert or modify",
            Operation::Add => "add to",
            Operation::Remove => "remove from",
            Operation::Reset => "reset",
        }
    }
}

/// Writes the fields of an `Update`.
///
/// # Errors
/// The entry does not fit its table, or the protocol has no such operation. What has been written
/// is to be thrown away then.
pub fn update(writer: &mut Writer, operation: Operation, entry: &Entry) -> Result<(), Error> {
    match entry.table.protocol {
        Protocol::P4Runtime => p4rt::update(writer, operation, entry),
        Protocol::BfRuntime => bfrt::update(writer, operation, entry),
    }
}

/// Writes the fields of an `Entity` that asks for entries: with their keys where `entry` is given,
/// else for all of a table.
///
/// # Errors
/// The entry does not fit its table.
pub fn query(
    writer: &mut Writer,
    table: &Arc<Table>,
    entry: Option<&Entry>,
    options: &ReadOptions,
) -> Result<(), Error> {
    match table.protocol {
        Protocol::P4Runtime => p4rt::query(writer, table, entry, options),
        Protocol::BfRuntime => bfrt::query(writer, table, entry, options),
    }
}

/// What is read of entries besides keys, actions and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Counters of entries.
    pub counters: bool,
    /// Rates and bursts of entries' meters.
    pub meters: bool,
    /// Times since the last hit.
    pub idle: bool,
    /// The default entry instead of the others. (BF Runtime tells it together with all of a table.)
    pub default_only: bool,
    /// BF Runtime: what the device has now, not what the server has read of it last.
    pub from_hardware: bool,
}

impl Default for ReadOptions {
    /// Counters, meters, times; as the device has them now.
    fn default() -> Self {
        ReadOptions {
            counters: true,
            meters: true,
            idle: true,
            default_only: false,
            from_hardware: true,
        }
    }
}

/// That the protocol has no such thing.
fn unsupported(entry: &Entry, operation: Operation) -> Error {
    let protocol = match entry.table.protocol {
        Protocol::P4Runtime => "P4Runtime",
        Protocol::BfRuntime => "BF Runtime",
    };
    Error::Unsupported(format!(
        "{}: {protocol} cannot {} entries of a {}",
        entry.table.name,
        operation.name(),
        entry.table.kind.name()
    ))
}

pub(crate) use p4rt::scalar as p4rt_scalar;

/// What a key is compared to as targets tell it: bits that do not count are 0, and what matches
/// anything is [`Match::Any`]. What does not fit the key stays as it is.
pub(crate) fn normal(key: &Key, to: &Match) -> Match {
    let value = |bytes: &[u8]| match key.ty {
        Type::Text(_) => Value::Text(String::from_utf8_lossy(bytes).into_owned()),
        _ => Value::from_bytes(bytes),
    };
    match key::canonical(key, to) {
        Err(_) => to.clone(),
        Ok(key::Canonical::Any) => Match::Any,
        Ok(key::Canonical::Lpm(_, 0)) => Match::Any,
        Ok(key::Canonical::Exact(v) | key::Canonical::Optional(v)) => Match::Exact(value(&v)),
        Ok(key::Canonical::Lpm(v, prefix_len)) => Match::Lpm {
            value: value(&v),
            prefix_len,
        },
        Ok(key::Canonical::Ternary(_, mask)) if mask.iter().all(|b| *b == 0) => Match::Any,
        Ok(key::Canonical::Ternary(v, mask)) => Match::Ternary {
            value: value(&v),
            mask: value(&mask),
        },
        Ok(key::Canonical::Range(low, high)) => Match::Range {
            low: value(&low),
            high: value(&high),
        },
    }
}

/// A number of ones.
pub(crate) fn all_ones(width: u32) -> Vec<u8> {
    key::ones(width, width)
}

/// Marker errors of [`Writer::message`] closures.
type Written = Result<(), Error>;

#[cfg(test)]
mod tests;
