//! Results as text and CSV.

use super::device::Recorded;
use super::report::{PathResult, Report, SizeFit, Statistic};
use super::stats::{Estimate, Summary};
use crate::int::table;
use serde_json::{Value, json};
use std::fmt::Write;
use weir_store::Rows;

/// A table with its heading.
pub struct Table {
    /// Above it.
    pub heading: String,
    /// What it shows.
    pub rows: Rows,
}

/// A delay in ns, for people.
pub fn nanoseconds(value: f64) -> String {
    format!("{value:.1}")
}

fn rows(columns: &[&str], rows: Vec<Vec<Value>>) -> Rows {
    Rows {
        columns: columns.iter().map(|name| (*name).to_owned()).collect(),
        rows,
        is_cut: false,
    }
}

/// The paths of a report: the loopback first.
pub fn paths(report: &Report) -> impl Iterator<Item = &PathResult> {
    report.baseline.iter().chain([&report.device])
}

/// All tables of a report.
pub fn tables(report: &Report) -> Vec<Table> {
    let mut tables = vec![forwarding(report), distribution(report)];
    if !report.device_delay.is_empty() {
        tables.push(device(report));
    }
    if !report.fits.is_empty() {
        tables.push(sizes(report));
    }
    tables.push(packets(report));
    tables
}

fn per_case(report: &Report, columns: &dyn Fn(&Summary) -> Vec<Value>) -> Vec<Vec<Value>> {
    let cases = paths(report).flat_map(|path| path.cases.iter().map(move |measured| (path, measured)));
    let with_delay = cases.filter_map(|(path, measured)| Some((path, measured.case, measured.delay.as_ref()?)));
    with_delay
        .map(|(path, case, delay)| {
            let mut row = vec![json!(path.name), json!(case.size), json!(case.rate)];
            row.extend(columns(delay));
            row
        })
        .collect()
}

/// Table I of the paper, with size and rate.
fn forwarding(report: &Report) -> Table {
    let columns = |delay: &Summary| vec![json!(delay.mean.value), json!(delay.deviation)];
    Table {
        heading: "Measured packet forwarding delays".to_owned(),
        rows: rows(
            &["", "Size in B", "Packets/s", "Mean delay in ns", "Std. Dev. in ns"],
            per_case(report, &columns),
        ),
    }
}

fn distribution(report: &Report) -> Table {
    let columns = |delay: &Summary| {
        vec![
            json!(delay.count),
            interval(delay.mean),
            json!(delay.min),
            json!(delay.median.value),
            interval(delay.median),
            json!(delay.p99),
            json!(delay.p99_9),
            json!(delay.max),
        ]
    };
    let names = [
        "",
        "Size in B",
        "Packets/s",
        "Samples",
        "Mean, 95 %",
        "Min",
        "Median",
        "Median, 95 %",
        "p99",
        "p99.9",
        "Max",
    ];
    Table {
        heading: "Distribution, ns".to_owned(),
        rows: rows(&names, per_case(report, &columns)),
    }
}

fn interval(estimate: Estimate) -> Value {
    let text = |i: super::stats::Interval| format!("{:.1} to {:.1}", i.low, i.high);
    estimate.interval.map_or(Value::Null, |i| json!(text(i)))
}

fn device(report: &Report) -> Table {
    let row = |delay: &super::report::DeviceDelay| {
        vec![
            json!(delay.case.size),
            json!(delay.case.rate),
            json!(delay.mean.value),
            interval(delay.mean),
            json!(delay.median.value),
            interval(delay.median),
            json!(delay.min),
        ]
    };
    let names = [
        "Size in B",
        "Packets/s",
        "Mean",
        "Mean, 95 %",
        "Median",
        "Median, 95 %",
        "Min",
    ];
    Table {
        heading: format!("Delay of {}: the path less the loopback, ns", report.device.name),
        rows: rows(&names, report.device_delay.iter().map(row).collect()),
    }
}

fn sizes(report: &Report) -> Table {
    let row = |fit: &SizeFit| {
        let of = match fit.of {
            Statistic::Median => "median",
            Statistic::Minimum => "minimum",
        };
        let digits = |i: super::stats::Interval| json!(format!("{:.3} to {:.3}", i.low, i.high));
        vec![
            json!(of),
            json!(fit.rate),
            json!(fit.line.intercept.value),
            interval(fit.line.intercept),
            json!(format!("{:.3}", fit.line.slope.value)),
            fit.line.slope.interval.map_or(Value::Null, digits),
            json!(format!("{:.4}", fit.line.r_squared)),
            json!(fit.dependence.describe()),
        ]
    };
    let names = [
        "Of",
        "Packets/s",
        "Fixed in ns",
        "Fixed, 95 %",
        "ns/byte",
        "ns/byte, 95 %",
        "R²",
        "The device is",
    ];
    let what = if report.device_delay.is_empty() {
        "the path; without a baseline, the delay of the ports is in it"
    } else {
        "the device"
    };
    Table {
        heading: format!("Delay against size of {what}"),
        rows: rows(&names, report.fits.iter().map(row).collect()),
    }
}

fn packets(report: &Report) -> Table {
    let cases = paths(report).flat_map(|path| path.cases.iter().map(move |measured| (path, measured)));
    let row = |(path, measured): (&PathResult, &super::case::Measured)| {
        let packets = &measured.packets;
        vec![
            json!(path.name),
            json!(measured.case.size),
            json!(measured.case.rate),
            json!(measured.sent_rate),
            json!(packets.sent),
            json!(packets.lost),
            json!(packets.duplicated),
            json!(packets.reordered),
            json!(packets.unstamped),
            json!(packets.implausible),
            json!(packets.dropped_by_sink),
        ]
    };
    let names = [
        "",
        "Size in B",
        "Packets/s",
        "Sent/s",
        "Sent",
        "Lost",
        "Doubled",
        "Reordered",
        "Unstamped",
        "Clock set",
        "Sink full",
    ];
    Table {
        heading: "Packets".to_owned(),
        rows: rows(&names, cases.map(row).collect()),
    }
}

/// What the timestamps are, and what their error is.
pub fn clocks(report: &Report) -> String {
    let described = report.device.clocks.describe();
    match &report.timestamp_error {
        None => format!("Timestamps: {described}. Their error is not known: there is no baseline."),
        Some(error) => format!(
            "Timestamps: {described}. Their error, by the loopback: {} ns at the median, which is subtracted; standard deviation {} ns; 99 % of packets at most {} ns above the median.",
            nanoseconds(error.offset),
            nanoseconds(error.deviation),
            nanoseconds(error.spread)
        ),
    }
}

/// A report as text.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    for one in tables(report) {
        let _ = writeln!(text, "{}\n{}", one.heading, table::text(&one.rows));
    }
    let _ = writeln!(text, "{}", clocks(report));
    text
}

/// Samples as CSV.
pub fn csv(report: &Report) -> String {
    let mut text = String::from("path,size,rate,packet,delay_ns\n");
    for path in paths(report) {
        let name = path.name.replace('"', "\"\"");
        for measured in &path.cases {
            for (number, delay) in &measured.samples {
                let (size, rate) = (measured.case.size, measured.case.rate);
                let _ = writeln!(text, "\"{name}\",{size},{rate},{number},{delay}");
            }
        }
    }
    text
}

/// What a device recorded.
pub fn recorded(recorded: &[Recorded]) -> String {
    let row = |one: &Recorded| {
        let delay = &one.delay;
        vec![
            json!(one.size),
            json!(delay.count),
            json!(delay.mean.value),
            json!(delay.deviation),
            json!(delay.min),
            json!(delay.median.value),
            json!(delay.max),
        ]
    };
    let names = [
        "Size in B",
        "Packets",
        "Mean delay in ns",
        "Std. Dev. in ns",
        "Min",
        "Median",
        "Max",
    ];
    table::text(&rows(&names, recorded.iter().map(row).collect()))
}
