//! `weir int query`

use super::arguments::Query;
use super::table;
use anyhow::Result;
use std::io::Write;
use weir_store::{QueryLimits, Store};

/// Answers a query in SQL.
pub fn query(arguments: &Query) -> Result<u8> {
    let mut store = Store::open(&arguments.file)?;
    let rows = store.query(&arguments.sql, QueryLimits::default())?;
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", table::json(&rows))?;
    } else {
        write!(out, "{}", table::text(&rows))?;
    }
    Ok(0)
}
