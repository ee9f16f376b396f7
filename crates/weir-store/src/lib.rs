//! Results of [`weir_collector`] in an SQLite file.
//!
//! [`Store::create`] opens a file to write intervals to ([`Store::write`]), [`Store::open`] one to
//! query ([`Store::query`]), also while another process writes. Histograms are stored whole, and
//! SQL has functions over them, so that quantiles over any time and any ports are those of all
//! values: `SELECT quantile(merged(histogram), 0.99) FROM links`.
//!
//! With the feature `parquet`, `RawReports` writes reports as they came to a Parquet file. The
//! crate knows no switches, and chooses no file names.
//!
//! ```
//! use weir_collector::{Collector, Config};
//! use weir_store::{QueryLimits, Store};
//!
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("int.db");
//! let mut collector = Collector::new(Config::default());
//! // Here reports go to `collector.take`.
//! let interval = collector.end_interval(1, |_flow| ());
//! Store::create(&file)?.write(&interval, &[])?;
//!
//! let answer = Store::open(&file)?.query("SELECT count(*) FROM intervals", QueryLimits::default())?;
//! assert_eq!(answer.rows, [[1]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod functions;
mod query;
#[cfg(feature = "parquet")]
mod raw;
mod schema;
mod write;

pub use query::{QueryLimits, Rows};
#[cfg(feature = "parquet")]
pub use raw::{RawError, RawReports};

use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long one process waits for another one's lock on the file.
const BUSY: Duration = Duration::from_secs(5);

/// Bytes of the longest text or BLOB in a query.
const LONGEST_VALUE: i32 = 16 << 20;
/// Bytes of the longest pattern of `LIKE`.
const LONGEST_PATTERN: i32 = 256;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite says so.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// It is a file of something else.
    #[error("{}: expected a file of weir int collect, found {found}", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The file is of another version.
    #[error("{}: expected version {}, found {found}: collect into a new file", path.display(), schema::VERSION)]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// The query would change the file.
    #[error("expected a query that only reads (SELECT …)")]
    Writes,
}

/// A file of results.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
}

impl Store {
    /// Opens a file to write to; makes it if it is not there.
    ///
    /// # Errors
    /// It cannot be opened, is a symbolic link or no regular file, or is a file of something else.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        regular(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = connect(path, flags)?;
        let is_empty = |connection: &Connection| -> Result<bool, StoreError> {
            let version = first_pragma(connection, path, "user_version")?;
            let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            Ok(version == 0 && tables == 0)
        };
        if is_empty(&connection)? {
            // With a write-ahead log queries do not wait for writes.
            connection.pragma_update(None, "journal_mode", "wal")?;
            connection.execute_batch("BEGIN IMMEDIATE")?;
        }
        // Another process may have been faster.
        if is_empty(&connection)? {
            let sql = format!(
                "PRAGMA application_id = {}; {} PRAGMA user_version = {};",
                schema::APPLICATION,
                schema::TABLES,
                schema::VERSION
            );
            connection.execute_batch(&sql)?;
        }
        if !connection.is_autocommit() {
            connection.execute_batch("COMMIT")?;
        }
        check(&connection, path)?;
        connection.pragma_update(None, "synchronous", "normal")?;
        Ok(Store { connection })
    }

    /// Opens a file to query.
    ///
    /// # Errors
    /// It is not there, cannot be opened, or is a file of something else.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        regular(path)?;
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        // A query cannot reach other files.
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
        connection.set_limit(Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, LONGEST_PATTERN)?;
        check(&connection, path)?;
        Ok(Store { connection })
    }
}

/// Refuses what is there but is no regular file.
fn regular(path: &Path) -> Result<(), StoreError> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if metadata.is_file() {
        return Ok(());
    }
    let found = if metadata.is_symlink() {
        "a symbolic link"
    } else {
        "no regular file"
    };
    Err(StoreError::Other {
        path: path.to_owned(),
        found: found.to_owned(),
    })
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    functions::register(&connection)?;
    Ok(connection)
}

fn pragma(connection: &Connection, name: &str) -> Result<i64, rusqlite::Error> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// The first look into a file, which tells whether it is one of SQLite.
fn first_pragma(connection: &Connection, path: &Path, name: &str) -> Result<i64, StoreError> {
    pragma(connection, name).map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => StoreError::Other {
            path: path.to_owned(),
            found: "no SQLite file".to_owned(),
        },
        Some(_) | None => error.into(),
    })
}

fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    if first_pragma(connection, path, "application_id")? != schema::APPLICATION {
        return Err(StoreError::Other {
            path: path.to_owned(),
            found: "an SQLite file of something else".to_owned(),
        });
    }
    match pragma(connection, "user_version")? {
        schema::VERSION => Ok(()),
        found => Err(StoreError::Version {
            path: path.to_owned(),
            found,
        }),
    }
}
