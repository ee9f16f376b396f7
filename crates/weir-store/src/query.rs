//! Queries.

use crate::{Store, StoreError};
use rusqlite::types::ValueRef;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Instructions of SQLite's machine between two looks at the clock.
const STEPS: i32 = 10_000;

/// Bytes of values from which on an answer is cut.
const LARGEST: usize = 64 << 20;

/// The answer to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows; a value is null, a number or a text. Histograms and other bytes are hexadecimal.
    pub rows: Vec<Vec<Value>>,
    /// The answer was cut at a limit: there are more rows.
    pub is_cut: bool,
}

/// Bounds of a query.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// The most rows.
    pub rows: usize,
    /// The longest time.
    pub time: Duration,
}

impl Default for QueryLimits {
    fn default() -> Self {
        QueryLimits {
            rows: 100_000,
            time: Duration::from_secs(30),
        }
    }
}

impl Store {
    /// Answers a query in SQL, which only reads. Beside the functions of SQLite there are those
    /// over histograms: `merged`, `quantile`, `mean`, `total`, `least`, `most`.
    ///
    /// # Errors
    /// The query is no valid SQL, is more than one statement, writes, or takes too long.
    pub fn query(&mut self, sql: &str, limits: QueryLimits) -> Result<Rows, StoreError> {
        let end = Instant::now() + limits.time;
        self.connection
            .progress_handler(STEPS, Some(move || Instant::now() > end))?;
        let rows = self.rows(sql, limits.rows);
        self.connection.progress_handler(0, None::<fn() -> bool>)?;
        rows
    }

    fn rows(&mut self, sql: &str, most: usize) -> Result<Rows, StoreError> {
        let mut statement = self.connection.prepare(sql)?;
        if !statement.readonly() {
            return Err(StoreError::Writes);
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut answer = Rows {
            rows: Vec::new(),
            is_cut: false,
            columns,
        };
        let mut rows = statement.query([])?;
        let mut bytes = 0;
        while let Some(row) = rows.next()? {
            if answer.rows.len() == most || bytes > LARGEST {
                answer.is_cut = true;
                break;
            }
            let values = (0..answer.columns.len()).map(|at| Ok(value(row.get_ref(at)?)));
            let values = values.collect::<Result<Vec<Value>, rusqlite::Error>>()?;
            bytes += values
                .iter()
                .map(|value| value.as_str().map_or(8, str::len))
                .sum::<usize>();
            answer.rows.push(values);
        }
        Ok(answer)
    }
}

fn value(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into(),
        ValueRef::Blob(bytes) => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
            .into(),
    }
}
