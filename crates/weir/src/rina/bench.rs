//! `weir rina bench`: EFCP beside IPv4 over the same routers: a reliable flow beside UDP,
//! throughput by size, loss by interval (Figures 15 to 18 of the paper on the P4 router).

mod flow;
mod frames;
mod line;
mod report;

use super::arguments::BenchArguments;
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result};
use frames::Protocol;
use line::{Line, Pace};
use report::{Loss, Report, Throughput};
use std::io::Write;
use std::time::Duration;

/// Sizes of the paper's Figures 15 and 17.
const SIZES: [usize; 6] = [250, 500, 750, 1000, 1250, 1470];
/// Intervals in microseconds, as in Figures 16 and 18.
const INTERVALS: [f64; 8] = [1.0, 2.0, 5.0, 7.5, 10.0, 15.0, 20.0, 50.0];
/// The size of the paper's measurement of loss.
const LOSS_SIZE: usize = 500;

/// Measures, prints, and draws.
pub fn bench(arguments: &BenchArguments, messages: &Messages) -> Result<u8> {
    if let Some(folder) = &arguments.plots {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let plan = flow::Plan {
        count: arguments.count,
        sizes: arguments.size,
        loss: arguments.loss.per_million(),
        reordering: arguments.reorder.per_million(),
    };
    messages.line(format!(
        "three routers; {} SDUs over a reliable flow, then over UDP; {} lost, {} reordered",
        plan.count, arguments.loss, arguments.reorder
    ));
    let flow = flow::compare(plan, &folder.path().join("flow"))?;
    messages.line("three routers; throughput by size, loss by interval".to_owned());
    let line = &mut Line::start(folder.path())?;
    let report = Report {
        flow,
        throughput: SIZES
            .iter()
            .map(|bytes| throughput(line, *bytes, arguments))
            .collect::<Result<_>>()?,
        loss: INTERVALS
            .iter()
            .map(|interval| loss(line, *interval, arguments))
            .collect::<Result<_>>()?,
    };
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", serde_json::to_value(&report)?)?;
    } else {
        writeln!(out, "{}\n{}", report.text(), Report::paper())?;
    }
    if let Some(folder) = &arguments.plots {
        for (name, plot) in report.plots() {
            weir_files::write(&folder.join(name), plot.svg().as_bytes())?;
        }
    }
    Ok(if report.flow.flow.is_perfect() { 0 } else { NO })
}

fn throughput(line: &mut Line, bytes: usize, arguments: &BenchArguments) -> Result<Throughput> {
    let [efcp, ipv4] = medians(line, bytes, Pace::Window, arguments, |counted| {
        counted.rate() * bytes as f64 * 8e-6
    })?;
    Ok(Throughput { bytes, efcp, ipv4 })
}

fn loss(line: &mut Line, interval: f64, arguments: &BenchArguments) -> Result<Loss> {
    let pace = Pace::Interval(Duration::from_secs_f64(interval * 1e-6));
    let [efcp, ipv4] = medians(line, LOSS_SIZE, pace, arguments, |counted| counted.loss())?;
    Ok(Loss { interval, efcp, ipv4 })
}

/// The median of both protocols, measured in turn.
fn medians(
    line: &mut Line,
    bytes: usize,
    pace: Pace,
    arguments: &BenchArguments,
    value: impl Fn(line::Counted) -> f64,
) -> Result<[f64; 2]> {
    let mut values = [Vec::new(), Vec::new()];
    for _ in 0..arguments.repeat {
        for (protocol, values) in [Protocol::Efcp, Protocol::Ipv4].into_iter().zip(&mut values) {
            values.push(value(line.run(protocol, bytes, arguments.time, pace)?));
        }
    }
    Ok(values.map(|mut values| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }))
}
