//! Encodes entries as messages of a protocol.

mod bfrt;
pub(crate) mod custom_crc;
pub(crate) mod extern_keys;
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

/// An operation on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Inserts an entry that must not exist.
    Insert,
    /// Modifies an entry that must exist.
    Modify,
    /// Deletes an entry that must exist. A default entry is reset to the program's.
    Delete,
    /// Inserts an entry, or modifies an existing one. P4Runtime has no such update: existing
    /// entries are modified by a second request.
    InsertOrModify,
    /// Adds elements to the lists of the entry (BF Runtime).
    Add,
    /// Removes elements from the lists of the entry (BF Runtime).
    Remove,
    /// Resets the entry to its initial state (BF Runtime).
    Reset,
}

impl Operation {
    /// Its name, for messages.
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
/// The entry does not fit its table, or the protocol has no such operation. The output must then be
/// discarded.
pub fn update(writer: &mut Writer, operation: Operation, entry: &Entry) -> Result<(), Error> {
    match entry.table.protocol {
        Protocol::P4Runtime => p4rt::update(writer, operation, entry),
        Protocol::BfRuntime => bfrt::update(writer, operation, entry),
    }
}

/// Writes the fields of an `Entity` of a Read: for the key of `entry` if given, else for the whole
/// table.
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

/// The fields of entries to read besides keys, actions and parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOptions {
    /// Counters of entries.
    pub counters: bool,
    /// Rates and bursts of entries' meters.
    pub meters: bool,
    /// Times since the last hit.
    pub idle: bool,
    /// The default entry instead of the others. (BF Runtime returns it with all of a table.)
    pub default_only: bool,
    /// BF Runtime: read current values from the device, not those that the server has cached.
    pub from_hardware: bool,
}

impl Default for ReadOptions {
    /// Counters, meters and times, current at the device.
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

/// The error for an operation that the protocol does not have.
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

/// Normalises a match to the form that targets return: unmatched bits are 0, and a match of
/// anything is [`Match::Any`]. A match that does not fit the key is unchanged.
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

/// What is wrong with a key of an extern that is another value.
const NO_KEY_MATERIAL: &str = "a key of an extern is given as KeyMaterial; `weir ctl key set` reads it from a file";

/// The result of [`Writer::message`] closures.
type Written = Result<(), Error>;

#[cfg(test)]
mod tests;
