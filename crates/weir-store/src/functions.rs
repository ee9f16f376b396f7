//! SQL functions over histograms.

use rusqlite::functions::{Aggregate, Context, FunctionFlags};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, Result};
use weir_collector::Histogram;

/// Adds the functions to a connection:
///
/// - `merged(histogram)`, an aggregate: one histogram of all;
/// - `quantile(histogram, share)`, `mean(histogram)`, `total(histogram)` (the number of values),
///   `minimum(histogram)`, `maximum(histogram)`; NULL of an empty histogram.
pub fn register(connection: &Connection) -> Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    connection.create_aggregate_function("merged", 1, flags, Merged)?;
    connection.create_scalar_function("quantile", 2, flags, |context| {
        let share: f64 = context.get(1)?;
        known(context, |histogram| integer(histogram.quantile(share.clamp(0.0, 1.0))))
    })?;
    connection.create_scalar_function("mean", 1, flags, |context| known(context, Histogram::mean))?;
    connection.create_scalar_function("total", 1, flags, |context| {
        Ok(histogram(context, 0)?.map_or(0, |histogram| integer(histogram.count())))
    })?;
    connection.create_scalar_function("minimum", 1, flags, |context| known(context, |h| integer(h.min())))?;
    connection.create_scalar_function("maximum", 1, flags, |context| known(context, |h| integer(h.max())))
}

/// A number for SQLite, whose integers are signed.
pub fn integer(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A value of a histogram that has any.
fn known<T>(context: &Context<'_>, value: impl Fn(&Histogram) -> T) -> Result<Option<T>> {
    let histogram = histogram(context, 0)?;
    Ok(histogram.filter(|histogram| !histogram.is_empty()).as_ref().map(value))
}

fn histogram(context: &Context<'_>, at: usize) -> Result<Option<Histogram>> {
    match context.get_raw(at) {
        ValueRef::Null => Ok(None),
        ValueRef::Blob(bytes) => {
            let histogram = Histogram::from_bytes(bytes);
            histogram
                .map(Some)
                .map_err(|error| Error::UserFunctionError(error.into()))
        }
        ValueRef::Integer(_) | ValueRef::Real(_) | ValueRef::Text(_) => {
            Err(Error::UserFunctionError("expected a histogram (a BLOB)".into()))
        }
    }
}

struct Merged;

impl Aggregate<Histogram, Option<Vec<u8>>> for Merged {
    fn init(&self, _: &mut Context<'_>) -> Result<Histogram> {
        Ok(Histogram::new())
    }

    fn step(&self, context: &mut Context<'_>, all: &mut Histogram) -> Result<()> {
        if let Some(histogram) = histogram(context, 0)? {
            all.merge(&histogram);
        }
        Ok(())
    }

    fn finalize(&self, _: &mut Context<'_>, all: Option<Histogram>) -> Result<Option<Vec<u8>>> {
        Ok(all.map(|histogram| histogram.to_bytes()))
    }
}
