//! The page: HTML with pictures inside, which needs nothing else.

use super::findings::{lossy_links, slower_than_others};
use crate::bench::{Line, Plot};
use crate::int::arguments::View;
use crate::int::show::rows;
use crate::xml::escape;
use anyhow::Result;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;
use weir_store::{QueryLimits, Rows, Store};

/// The most rows of a table.
const ROWS: u32 = 100;
/// The most lines of a plot.
const LINES: usize = 4;
/// Shares of values on the horizontal axis of a distribution.
const SHARES: [f64; 13] = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999];

/// Style sheet of pages.
pub const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#1f2328}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}
th,td{padding:3px 9px;border-bottom:1px solid #d0d7de;text-align:left;white-space:nowrap}td.n,th.n{text-align:right}
ul.f li{margin:.3em 0}svg{max-width:100%;height:auto}p.s{color:#59636e}";

/// What the page shows.
pub struct Page {
    tables: Vec<(&'static str, &'static str, Rows)>,
    plots: Vec<Plot>,
    /// What stands out.
    pub findings: Vec<String>,
}

/// A time in ns as text with a unit.
pub fn time(nanoseconds: f64) -> String {
    match nanoseconds {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e4 => format!("{:.2} µs", n / 1e3),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n if n < 1e9 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.2} s", n / 1e9),
    }
}

impl Page {
    /// Reads results.
    pub fn read(store: &mut Store, since: Option<Duration>) -> Result<Self> {
        let mut read = |view| rows(store, view, since, None, ROWS);
        let tables = vec![
            (
                "Links",
                "Latency of each link, ns; clock offsets are removed.",
                read(View::Links)?,
            ),
            ("Ports", "Latency of each node by egress port, ns.", read(View::Ports)?),
            ("Queues", "Occupancy in the node's unit.", read(View::Queues)?),
            ("Paths", "End-to-end latency, ns.", read(View::Paths)?),
            (
                "Flows",
                "Latency and jitter in ns; lost and reordered where the source numbers packets.",
                read(View::Flows)?,
            ),
            ("Events", "", read(View::Events)?),
            ("Senders of reports", "", read(View::Exporters)?),
            ("Clocks", "Offset against the reference node, ns.", read(View::Clocks)?),
            ("Malformed and unused reports", "", read(View::Unused)?),
            ("Intervals", "", read(View::Intervals)?),
        ];
        let findings = findings(store, &tables)?;
        let plots = vec![
            distribution(store, "links", "link", "Latency of links")?,
            distribution(store, "ports", "port", "Latency of nodes by egress port")?,
            distribution(store, "paths", "path", "End-to-end latency of paths")?,
            history(store)?,
        ];
        Ok(Page {
            tables,
            plots: plots.into_iter().filter(|plot| !plot.lines.is_empty()).collect(),
            findings,
        })
    }

    /// The page.
    pub fn html(&self) -> String {
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>INT report</title><style>{STYLE}</style></head><body>\n<h1>INT report</h1>\n"
        );
        html.push_str("<h2>What stands out</h2>\n");
        if self.findings.is_empty() {
            html.push_str("<p>Nothing: no hop or link is much slower than the others, and no packets were lost.</p>\n");
        } else {
            html.push_str("<ul class=\"f\">\n");
            for finding in &self.findings {
                let _ = writeln!(html, "<li>{}</li>", escape(finding));
            }
            html.push_str("</ul>\n");
        }
        self.plots.iter().for_each(|plot| html.push_str(&plot.svg()));
        for (name, about, rows) in self.tables.iter().filter(|(_, _, rows)| !rows.rows.is_empty()) {
            let _ = writeln!(html, "<h2>{name}</h2>\n<p class=\"s\">{}</p>", escape(about));
            table(&mut html, rows);
        }
        html.push_str("</body></html>\n");
        html
    }
}

fn table(html: &mut String, rows: &Rows) {
    html.push_str("<table><tr>");
    for column in &rows.columns {
        let _ = write!(html, "<th>{}</th>", escape(column));
    }
    html.push_str("</tr>\n");
    for row in &rows.rows {
        html.push_str("<tr>");
        for value in row {
            let _ = match value {
                Value::Null => write!(html, "<td class=\"n\">-</td>"),
                Value::Number(number) if number.is_f64() => {
                    write!(html, "<td class=\"n\">{:.1}</td>", number.as_f64().unwrap_or(0.0))
                }
                Value::String(text) => write!(html, "<td>{}</td>", escape(text)),
                other => write!(html, "<td class=\"n\">{other}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
    if rows.rows.len() as u32 == ROWS {
        let _ = writeln!(html, "<p class=\"s\">The first {ROWS} rows.</p>");
    }
}

fn findings(store: &mut Store, tables: &[(&'static str, &'static str, Rows)]) -> Result<Vec<String>> {
    let named = |name: &str| tables.iter().find(|(other, ..)| *other == name).map(|(.., rows)| rows);
    let mut found = Vec::new();
    if let Some(ports) = named("Ports") {
        found.extend(slower_than_others(ports, "port", "p50", "port"));
    }
    if let Some(links) = named("Links") {
        found.extend(slower_than_others(links, "link", "p50", "link"));
    }
    let flows = store.query(
        "SELECT path, reports, max(lost, 0) FROM flows WHERE path IS NOT NULL AND lost IS NOT NULL",
        QueryLimits::default(),
    )?;
    let flows: Vec<(String, u64, u64)> = flows
        .rows
        .iter()
        .filter_map(|row| Some((row[0].as_str()?.to_owned(), row[1].as_u64()?, row[2].as_u64()?)))
        .collect();
    found.extend(lossy_links(&flows));
    if let Some(clocks) = named("Clocks") {
        found.extend(clocks.rows.iter().filter_map(|row| clock_that_differs(row)));
    }
    let mut count = |sql: &str, text: &dyn Fn(u64) -> String| -> Result<()> {
        let rows = store.query(sql, QueryLimits::default())?;
        let count = rows.rows.first().and_then(|row| row[0].as_u64()).unwrap_or(0);
        if count > 0 {
            found.push(text(count));
        }
        Ok(())
    };
    count("SELECT sum(dropped) FROM flows", &|n| {
        format!("{n} packets were dropped by nodes that reported it")
    })?;
    count("SELECT sum(path_changes) FROM flows", &|n| {
        format!("flows changed their path {n} times")
    })?;
    count("SELECT sum(lost) FROM exporters", &|n| {
        format!("{n} reports were lost on the way to the collector: figures are of those that came")
    })?;
    count("SELECT sum(reports) FROM unused WHERE kind = 'malformed'", &|n| {
        format!("{n} reports were malformed")
    })?;
    count("SELECT count(*) FROM events WHERE what = 'microburst'", &|n| {
        format!("{n} microbursts in queues")
    })?;
    Ok(found)
}

/// A clock whose offset exceeds its uncertainty.
fn clock_that_differs(row: &[Value]) -> Option<String> {
    let [node, reference, offset, uncertainty] = row else {
        return None;
    };
    let (offset, uncertainty) = (offset.as_i64()?, uncertainty.as_u64()?);
    let direction = if offset < 0 { "behind" } else { "ahead of" };
    (offset.unsigned_abs() > uncertainty).then(|| {
        format!(
            "the clock of node {node} is {} {direction} that of node {reference} (± {})",
            time(offset.unsigned_abs() as f64),
            time(uncertainty as f64)
        )
    })
}

/// Quantiles of the slowest things of a table.
fn distribution(store: &mut Store, table: &str, name: &str, title: &str) -> Result<Plot> {
    let quantiles: Vec<String> = SHARES
        .iter()
        .map(|share| format!("quantile(histogram, {share})"))
        .collect();
    let sql = format!(
        "SELECT {name}, {} FROM (SELECT {name}, merged(histogram) AS histogram FROM {table} GROUP BY {name})
         WHERE total(histogram) > 0 ORDER BY quantile(histogram, 0.99) DESC LIMIT {LINES}",
        quantiles.join(", ")
    );
    let rows = store.query(&sql, QueryLimits::default())?;
    let line = |row: &Vec<Value>| {
        let points = SHARES.iter().zip(&row[1..]);
        let points = points.filter_map(|(share, value)| Some((share * 100.0, value.as_f64()? / 1000.0)));
        Line::new(&shortened(row[0].as_str().unwrap_or("?")), points.collect())
    };
    Ok(Plot {
        title: format!("{title}: the slowest"),
        x: "% of packets".to_owned(),
        y: "µs".to_owned(),
        lines: rows.rows.iter().map(line).collect(),
    })
}

/// The 99th percentile of the slowest ports over time.
fn history(store: &mut Store) -> Result<Plot> {
    let slowest = store.query(
        &format!("SELECT port FROM ports GROUP BY port ORDER BY quantile(merged(histogram), 0.99) DESC LIMIT {LINES}"),
        QueryLimits::default(),
    )?;
    let history = store.query(
        "SELECT port, (end - (SELECT min(start) FROM intervals)) / 1e9, quantile(histogram, 0.99) / 1000.0
         FROM ports JOIN intervals USING (interval) ORDER BY end",
        QueryLimits::default(),
    )?;
    let line = |row: &Vec<Value>| {
        let points = history.rows.iter().filter(|point| point[0] == row[0]);
        let points = points.filter_map(|point| Some((point[1].as_f64()?, point[2].as_f64()?)));
        Line::new(&shortened(row[0].as_str().unwrap_or("?")), points.collect())
    };
    let lines: Vec<Line> = slowest
        .rows
        .iter()
        .map(line)
        .filter(|line| line.points.len() > 1)
        .collect();
    Ok(Plot {
        title: "99th percentile of latency by egress port".to_owned(),
        x: "seconds".to_owned(),
        y: "µs".to_owned(),
        lines,
    })
}

/// The end of a name: what tells it from others.
fn shortened(name: &str) -> String {
    const LENGTH: usize = 16;
    let count = name.chars().count();
    if count <= LENGTH {
        return name.to_owned();
    }
    let end: String = name.chars().skip(count - LENGTH).collect();
    format!("…{end}")
}
