//! A measurement as one HTML file, with the plots inside.

use super::report::Report;
use super::table::{Table, clocks, tables};
use crate::bench::Plot;
use crate::int::report::STYLE;
use crate::xml::escape;
use serde_json::Value;
use std::fmt::Write;

/// The page.
pub fn html(report: &Report, plots: &[(&'static str, Plot)]) -> String {
    let title = escape(&format!("Delay of {}", report.device.name));
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n<p>From {} to {}. {}</p>\n",
        escape(&report.device.source),
        escape(&report.device.sink),
        escape(&clocks(report))
    );
    for table in tables(report) {
        write_table(&mut html, &table);
    }
    for (_, plot) in plots {
        html.push_str(&plot.svg());
    }
    html.push_str("</body></html>\n");
    html
}

fn write_table(html: &mut String, table: &Table) {
    let _ = write!(html, "<h2>{}</h2>\n<table><tr>", escape(&table.heading));
    for column in &table.rows.columns {
        let _ = write!(html, "<th>{}</th>", escape(column));
    }
    html.push_str("</tr>\n");
    for row in &table.rows.rows {
        html.push_str("<tr>");
        for value in row {
            let cell = match value {
                Value::Null => "-".to_owned(),
                Value::Number(number) if number.is_f64() => format!("{:.1}", number.as_f64().unwrap_or(0.0)),
                Value::String(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
            };
            let class = if value.is_number() { " class=\"n\"" } else { "" };
            let _ = write!(html, "<td{class}>{}</td>", escape(&cell));
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</table>\n");
}
