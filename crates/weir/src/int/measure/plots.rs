//! Plots of a measurement.

use super::case::Measured;
use super::report::{Report, Statistic};
use super::stats::quantile;
use super::table::paths;
use crate::bench::{Line, Plot};

/// Packets in the plot of single delays, of each path.
const PACKETS: usize = 60;
/// Most lines of a plot.
const LINES: usize = 4;
/// Quantiles in the plot of distributions, in percent. The tail beyond is in the tables: it would
/// leave no room for the rest.
const SHARES: [f64; 11] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0];

/// The plots, with the names of their files.
pub fn plots(report: &Report) -> Vec<(&'static str, Plot)> {
    let mut plots = vec![
        ("delay-by-packet", by_packet(report)),
        ("distribution", distribution(report)),
    ];
    if !report.fits.is_empty() {
        plots.push(("delay-by-size", by_size(report)));
    }
    plots
}

/// Figure 4 of the paper: delays of single packets of the first case.
fn by_packet(report: &Report) -> Plot {
    let line = |(name, measured): (&str, &Measured)| {
        let step = measured.samples.len().div_ceil(PACKETS).max(1);
        let samples = measured.samples.iter().step_by(step);
        let points = samples.zip(1..).map(|((_, delay), at)| (f64::from(at), *delay as f64));
        Line::scattered(name, points.collect())
    };
    let first = paths(report).filter_map(|path| Some((path.name.as_str(), path.cases.first()?)));
    let title = report.device.cases.first().map_or_else(String::new, |measured| {
        format!(
            "Measured delays, {} B at {} packets/s",
            measured.case.size, measured.case.rate
        )
    });
    Plot {
        title,
        x: "test packet".to_owned(),
        y: "delay in ns".to_owned(),
        lines: first.map(line).collect(),
    }
}

/// Quantiles of the device's delays, of the first cases.
fn distribution(report: &Report) -> Plot {
    let line = |measured: &Measured| {
        let mut delays: Vec<i64> = measured.samples.iter().map(|(_, delay)| *delay).collect();
        delays.sort_unstable();
        let points = SHARES.iter().map(|share| (*share, quantile(&delays, share / 100.0)));
        let name = format!("{} B, {}/s", measured.case.size, measured.case.rate);
        Line::new(&name, points.collect())
    };
    let cases = report
        .device
        .cases
        .iter()
        .filter(|measured| !measured.samples.is_empty());
    Plot {
        title: format!("{}: distribution of delays", report.device.name),
        x: "% of packets".to_owned(),
        y: "delay in ns".to_owned(),
        lines: cases.take(LINES).map(line).collect(),
    }
}

/// Medians over sizes, with the lines through them.
fn by_size(report: &Report) -> Plot {
    let mut lines = Vec::new();
    for fit in report
        .fits
        .iter()
        .filter(|fit| fit.of == Statistic::Median)
        .take(LINES / 2)
    {
        let delays: Vec<(f64, f64)> = if report.device_delay.is_empty() {
            let cases = report
                .device
                .cases
                .iter()
                .filter(|measured| measured.case.rate == fit.rate);
            let delays = cases.filter_map(|m| Some((f64::from(m.case.size), m.delay.as_ref()?.median.value)));
            delays.collect()
        } else {
            let cases = report.device_delay.iter().filter(|delay| delay.case.rate == fit.rate);
            cases
                .map(|delay| (f64::from(delay.case.size), delay.median.value))
                .collect()
        };
        // From size 0, where the line shows the fixed part.
        let longest = delays.last().map_or(0.0, |(size, _)| *size);
        let ends = [0.0, longest].map(|size| (size, fit.line.at(size)));
        lines.push(Line::new(&format!("fit, {}/s", fit.rate), ends.to_vec()));
        lines.push(Line::scattered(&format!("{}/s", fit.rate), delays));
    }
    Plot {
        title: format!("{}: median delay by size", report.device.name),
        x: "bytes of a frame".to_owned(),
        y: "delay in ns".to_owned(),
        lines,
    }
}
