//! Bulk operations: loading entries from files, dumping a target, and resynchronising a table.

mod csv;
mod json;
mod line;
mod resync;

pub use csv::CsvEntries;
pub use json::{JsonEntries, entry_from_json, entry_to_json, value_to_json};
pub use line::{Lines, parse_line, parse_words};
pub use resync::SyncReport;

use crate::client::Client;
use crate::encode::Operation;
use crate::entry::Entry;
use crate::error::Error;
use crate::pipeline::{BULK_BATCH, BULK_IN_FLIGHT, Outcome, Pipeline};
use crate::schema::{Kind, Protocol};

/// How entries are written in bulk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOptions {
    /// The operation for each entry.
    pub operation: Operation,
    /// Updates of one request.
    pub batch_size: usize,
    /// Requests in flight.
    pub in_flight: usize,
}

impl Default for LoadOptions {
    /// Insertions, in requests as those of [`Client::bulk`].
    fn default() -> Self {
        LoadOptions {
            operation: Operation::Insert,
            batch_size: BULK_BATCH,
            in_flight: BULK_IN_FLIGHT,
        }
    }
}

/// The reason why a load stopped.
#[derive(Debug, thiserror::Error)]
#[error("{error} ({})", written(.outcome))]
pub struct LoadError {
    /// The error.
    pub error: Error,
    /// The outcome of the entries before it. If a request has failed as a whole, all its entries
    /// count as failures, although the target may have executed it before the connection broke.
    pub outcome: Outcome,
}

impl From<LoadError> for Error {
    fn from(failed: LoadError) -> Self {
        failed.error
    }
}

fn written(outcome: &Outcome) -> String {
    match outcome.failures {
        0 => format!("{} entries before were written", outcome.done),
        failures => format!("{} entries before were written, {failures} not", outcome.done),
    }
}

/// First byte of the ids of fixed tables, which devices have with any program.
const FIXED: u32 = 0xff;

/// Entries between two progress calls.
const PROGRESS_STEP: u64 = 10_000;

impl Client {
    /// Writes entries in order of appearance where tables depend on each other: all entries of one
    /// table are written before those of the next. Default entries, counters, meters and registers,
    /// which always exist, are modified. `progress` is called every 10,000 entries with the number
    /// sent.
    ///
    /// # Errors
    /// An entry cannot be read or does not fit: all entries before it are written, none after it.
    /// Or a request has failed as a whole. Failed updates are no error here: see
    /// [`Outcome::failed`].
    pub async fn load(
        &self,
        entries: impl IntoIterator<Item = Result<Entry, Error>>,
        options: &LoadOptions,
        progress: impl FnMut(u64),
    ) -> Result<Outcome, LoadError> {
        let mut pipeline = self.pipeline(options.batch_size, options.in_flight);
        let written = write_all(&mut pipeline, entries, options.operation, progress).await;
        let outcome = pipeline.settle().await;
        match written {
            Ok(()) => Ok(outcome),
            Err(error) => Err(LoadError { error, outcome }),
        }
    }

    /// Visits everything that can be written back: entries, default entries, members, groups,
    /// counters, meters, registers, value sets, replication. Referenced objects come first.
    /// Counters, meters and registers are included only if they are not zero; keys of externs are
    /// not, as no target returns them. With BF Runtime, only readable tables of the program are
    /// included.
    ///
    /// # Errors
    /// The target refuses, `visit` fails, or an answer is malformed.
    pub async fn dump(&self, mut visit: impl FnMut(&Entry) -> Result<(), Error>) -> Result<(), Error> {
        let schema = self.schema();
        let mut tables: Vec<_> = schema
            .tables
            .iter()
            .filter(|t| !t.is_const || t.kind.is_match())
            .collect();
        tables.sort_by_key(|t| rank(&t.kind));
        for table in tables {
            let is_of_the_program = schema.protocol == Protocol::P4Runtime || table.id >> 24 != FIXED;
            // No target returns keys.
            if table.kind == Kind::ExternKeys
                || !is_of_the_program
                || (matches!(table.kind, Kind::Other(_)) && !is_dumped(&table.kind))
            {
                continue;
            }
            let is_array = matches!(
                table.kind,
                Kind::Counter | Kind::Meter | Kind::Register | Kind::ValueSet
            );
            let queries = [crate::Query::Table(std::sync::Arc::clone(table))];
            let mut pages = self.read_pages(&queries, &crate::ReadOptions::default()).await?;
            while let Some(page) = pages.next().await? {
                for entry in page.entries()? {
                    let is_fixed = if entry.is_default() {
                        table.has_const_default
                    } else {
                        entry.is_const() || table.is_const
                    };
                    if is_fixed || (is_array && is_zero(&entry)) {
                        continue;
                    }
                    visit(&entry)?;
                }
            }
            if schema.protocol == Protocol::P4Runtime
                && table.kind.is_match()
                && !table.has_const_default
                && let Some(entry) = self.default_entry(table).await?
                && entry.chosen_action().is_some()
            {
                visit(&entry)?;
            }
        }
        Ok(())
    }
}

/// Pushes entries to a pipeline until one cannot be read, and waits for all of them.
async fn write_all(
    pipeline: &mut Pipeline,
    entries: impl IntoIterator<Item = Result<Entry, Error>>,
    operation: Operation,
    mut progress: impl FnMut(u64),
) -> Result<(), Error> {
    let mut table = None;
    for entry in entries {
        let pushed = match entry {
            Ok(entry) => push(pipeline, &mut table, operation, &entry).await,
            Err(error) => Err(error),
        };
        if let Err(error) = pushed {
            // Later errors are in the outcome; this one is returned.
            let _ = pipeline.flush().await;
            return Err(error);
        }
        let sent = pipeline.added_so_far();
        if sent.is_multiple_of(PROGRESS_STEP) {
            progress(sent);
        }
    }
    progress(pipeline.added_so_far());
    pipeline.flush().await
}

/// Pushes an entry to a pipeline; all entries of the previous table are written first.
async fn push(
    pipeline: &mut Pipeline,
    table: &mut Option<u32>,
    operation: Operation,
    entry: &Entry,
) -> Result<(), Error> {
    let own = entry.table().id;
    if table.replace(own).is_some_and(|t| t != own) {
        pipeline.flush().await?;
    }
    let is_always_there = entry.is_default() || !entry.table().has_entries();
    let operation = if is_always_there && operation != Operation::Delete {
        Operation::Modify
    } else {
        operation
    };
    pipeline.push(operation, entry).await
}

/// Rank in a dump: referenced kinds come first.
fn rank(kind: &Kind) -> u32 {
    match kind {
        Kind::Members => 0,
        Kind::Groups => 1,
        Kind::MulticastGroups | Kind::CloneSessions => 2,
        Kind::Match | Kind::MatchIndirect => 3,
        _ => 4,
    }
}

/// Whether a table that is not match-action has state of its own.
fn is_dumped(kind: &Kind) -> bool {
    let Kind::Other(name) = kind else { return true };
    ["RegisterParam", "ParserValueSet", "PortMetadata", "Lpf", "Wred"].contains(&name.as_str())
}

fn is_zero(entry: &Entry) -> bool {
    fn zero(value: &crate::Value) -> bool {
        match value {
            crate::Value::List(values) => values.iter().all(zero),
            crate::Value::Record(fields) => fields.iter().all(|(_, v)| zero(v)),
            other => other.bit_length() == Some(0),
        }
    }
    entry.other_data().all(|(_, value)| zero(value))
}
