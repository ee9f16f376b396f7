//! `weir int show`: queries that everybody needs.

use super::arguments::{Show, View};
use super::table;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use weir_store::{QueryLimits, Rows, Store};

/// Quantiles of a merged histogram, as columns.
const LATENCY: &str = "total(merged(histogram)) AS packets, mean(merged(histogram)) AS mean_ns,
    quantile(merged(histogram), 0.5) AS p50, quantile(merged(histogram), 0.99) AS p99,
    quantile(merged(histogram), 0.999) AS p999, quantile(merged(histogram), 0.9999) AS p9999,
    maximum(merged(histogram)) AS max";

/// A time of the file as a clock's, in UTC.
fn clock(column: &str) -> String {
    format!("strftime('%Y-%m-%d %H:%M:%f', {column} / 1e9, 'unixepoch')")
}

impl View {
    /// The query, with `{since}` in the place of a time, and the column that sorts.
    fn query(self) -> (String, &'static str) {
        let merged = |columns: &str, table: &str, group: &str| {
            format!(
                "SELECT {group}, {columns} FROM {table} JOIN intervals USING (interval) WHERE end > {{since}} GROUP BY {group}"
            )
        };
        match self {
            View::Flows => (
                "SELECT flow, path, reports, latency_sum * 1.0 / latency_count AS mean_ns, latency_min AS min,
                    latency_max AS max, iif(latency_count > 0, jitter, NULL) AS jitter_ns, dropped, lost, reordered, path_changes
                 FROM flows WHERE last_seen > {since}"
                    .to_owned(),
                "reports",
            ),
            View::Paths => (
                merged(
                    &format!("sum(paths.reports) AS reports, {LATENCY}, max(has_links) AS has_links"),
                    "paths",
                    "path",
                ),
                "p99",
            ),
            View::Ports => (
                merged(
                    &format!(
                        "{LATENCY}, sum(tx_utilisation_sum) * 1.0 / sum(tx_utilisation_count) AS utilisation, max(tx_utilisation_max) AS utilisation_max"
                    ),
                    "ports",
                    "port",
                ),
                "p99",
            ),
            View::Queues => {
                let columns = LATENCY.replace("mean_ns", "mean");
                (merged(&columns, "queues", "port, queue"), "p99")
            }
            View::Links => (
                merged(
                    &format!("{LATENCY}, (SELECT l.clock_offset FROM links l WHERE l.link = links.link ORDER BY l.interval DESC LIMIT 1) AS clock_offset, sum(negative) AS negative"),
                    "links",
                    "link",
                ),
                "p99",
            ),
            View::Events => {
                let time = clock("time");
                (
                    format!(
                        "SELECT {time} AS at, what, quantity, subject, value, detail FROM events WHERE time > {{since}}"
                    ),
                    "at",
                )
            }
            View::Exporters => (
                merged(
                    "sum(received) AS received, sum(lost) AS lost, sum(reordered) AS reordered,
                     sum(duplicates) AS duplicates, sum(restarts) AS restarts",
                    "exporters",
                    "address, node, hw_id",
                ),
                "lost",
            ),
            View::Clocks => (
                "SELECT node, reference, offset AS offset_ns, uncertainty AS uncertainty_ns FROM clocks
                 WHERE interval = (SELECT max(interval) FROM clocks JOIN intervals USING (interval) WHERE end > {since})"
                    .to_owned(),
                "offset_ns",
            ),
            View::Intervals => {
                let (start, end) = (clock("start"), clock("end"));
                (
                    format!(
                        "SELECT {start} AS begin, {end} AS until, datagrams, bytes, reports, dropped_by_kernel, flows_evicted,
                             events_left_out
                         FROM intervals WHERE end > {{since}}"
                    ),
                    "begin",
                )
            }
            View::Unused => (
                merged("sum(unused.reports) AS reports", "unused", "kind, reason"),
                "reports",
            ),
        }
    }
}

/// The rows of a view. `sort`: a column of it.
pub fn rows(store: &mut Store, view: View, since: Option<Duration>, sort: Option<&str>, most: u32) -> Result<Rows> {
    let (query, sorted_by) = view.query();
    let since = match since {
        Some(time) => {
            let time = i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
            format!("(SELECT max(end) FROM intervals) - {time}")
        }
        None => "-1".to_owned(),
    };
    let inner = query.replace("{since}", &since);
    // A name that is no column would be taken for a text.
    let columns = store
        .query(&format!("{inner} LIMIT 0"), QueryLimits::default())?
        .columns;
    let sort = match sort {
        None => sorted_by.to_owned(),
        Some(name) => column(&columns, name)?,
    };
    let mut sql = format!("SELECT * FROM ({inner}) ORDER BY \"{sort}\" DESC LIMIT {most}");
    if view == View::Events {
        sql = format!("SELECT * FROM ({sql}) ORDER BY at");
    }
    Ok(store.query(&sql, QueryLimits::default())?)
}

/// The column of this name, or `latency` for that of latencies.
fn column(columns: &[String], name: &str) -> Result<String> {
    let name = if name == "latency" { "mean_ns" } else { name };
    if columns.iter().any(|column| column == name) {
        return Ok(name.to_owned());
    }
    bail!("there is no column `{name}`: there are {}", columns.join(", "))
}

/// Opens a file of results.
pub fn open(path: &Path) -> Result<Store> {
    Store::open(path).with_context(|| format!("{}: not read", path.display()))
}

/// `weir int show`
pub fn show(arguments: &Show) -> Result<u8> {
    let mut store = open(&arguments.file)?;
    let rows = rows(
        &mut store,
        arguments.view,
        arguments.since,
        arguments.sort.as_deref(),
        arguments.limit,
    )?;
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", table::json(&rows))?;
    } else {
        write!(out, "{}", table::text(&rows))?;
    }
    Ok(0)
}
