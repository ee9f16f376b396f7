//! Results of a measurement: what is written, and read again as a baseline.

use super::case::{Case, Measured};
use super::path::Clocks;
use super::stats::{Estimate, Fit};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use std::path::Path as FilePath;
use weir_files::Readable;

/// The format of the file.
pub const FORMAT: &str = "weir-measure/1";
/// Bytes of the longest file of results that is read.
const LONGEST_FILE: usize = 16 << 20;

/// Link speeds of Ethernet, bit/s.
const SPEEDS: [(f64, &str); 12] = [
    (10e6, "10 Mbit/s"),
    (100e6, "100 Mbit/s"),
    (1e9, "1 Gbit/s"),
    (2.5e9, "2.5 Gbit/s"),
    (5e9, "5 Gbit/s"),
    (10e9, "10 Gbit/s"),
    (25e9, "25 Gbit/s"),
    (40e9, "40 Gbit/s"),
    (50e9, "50 Gbit/s"),
    (100e9, "100 Gbit/s"),
    (200e9, "200 Gbit/s"),
    (400e9, "400 Gbit/s"),
];
/// A speed has the name of one of these if it is this near.
const NEAR: f64 = 0.1;
/// The least share of the variance that the size must explain.
const EXPLAINED: f64 = 0.9;

/// Results of one path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathResult {
    /// For people: the device, or the loopback.
    pub name: String,
    /// Port of the source.
    pub source: String,
    /// Port of the sink.
    pub sink: String,
    /// The clocks of the timestamps.
    pub clocks: Clocks,
    /// The cases, by rate and then by size.
    pub cases: Vec<Measured>,
}

impl PathResult {
    /// The results of a case.
    pub fn of(&self, case: Case) -> Option<&Measured> {
        self.cases.iter().find(|measured| measured.case == case)
    }
}

/// The delay of the device: that of the path less that of the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DeviceDelay {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// Difference of the means, ns.
    pub mean: Estimate,
    /// Difference of the medians, ns.
    pub median: Estimate,
    /// Difference of the least delays, ns.
    pub min: f64,
}

/// How a delay depends on the size of packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Dependence {
    /// It grows as if each packet were received at this speed before it is sent on.
    StoreAndForward {
        /// Bits per second.
        bits_per_second: Estimate,
    },
    /// It does not depend on the size: zero is within the interval of the slope.
    Independent,
    /// Neither is certain: too few sizes, or the size explains less than 90 % of the variance.
    Undecided,
}

/// A statistic to which lines are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statistic {
    /// The median.
    Median,
    /// The least.
    Minimum,
}

/// A line of delays over sizes: intercept in ns, slope in ns/byte.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SizeFit {
    /// Packets per second.
    pub rate: u32,
    /// What it goes through.
    pub of: Statistic,
    /// The line.
    #[serde(flatten)]
    pub line: Fit,
    /// What it says.
    pub dependence: Dependence,
}

/// The error of timestamps, as the loopback shows it: the greatest of all cases, ns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TimestampError {
    /// The median of the loopback, which is subtracted.
    pub offset: f64,
    /// Its standard deviation.
    pub deviation: f64,
    /// Its 99th percentile less its median.
    pub spread: f64,
}

impl TimestampError {
    fn of(baseline: &PathResult) -> Option<Self> {
        let delays = baseline.cases.iter().filter_map(|measured| measured.delay.as_ref());
        let greatest = |a: Self, b: Self| TimestampError {
            offset: a.offset.max(b.offset),
            deviation: a.deviation.max(b.deviation),
            spread: a.spread.max(b.spread),
        };
        let errors = delays.map(|delay| TimestampError {
            offset: delay.median.value,
            deviation: delay.deviation,
            spread: delay.p99 - delay.median.value,
        });
        errors.reduce(greatest)
    }
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: String,
    /// When it was measured, in s since 1970.
    pub time: u64,
    /// The path with the device.
    pub device: PathResult,
    /// The path without it.
    pub baseline: Option<PathResult>,
    /// The delay of the device, where there is a baseline.
    pub device_delay: Vec<DeviceDelay>,
    /// Its lines, or those of the path where there is no baseline.
    pub fits: Vec<SizeFit>,
    /// The error of the timestamps, where there is a baseline.
    pub timestamp_error: Option<TimestampError>,
}

impl Report {
    /// Evaluates both paths.
    pub fn new(device: PathResult, baseline: Option<PathResult>) -> Self {
        let device_delay = baseline.as_ref().map_or_else(Vec::new, |b| differences(&device, b));
        let points: Vec<(Case, f64, f64)> = match &baseline {
            Some(_) => device_delay.iter().map(|d| (d.case, d.median.value, d.min)).collect(),
            None => {
                let delays = device.cases.iter().filter_map(|m| Some((m.case, m.delay.as_ref()?)));
                delays
                    .map(|(case, delay)| (case, delay.median.value, delay.min))
                    .collect()
            }
        };
        Report {
            format: FORMAT.to_owned(),
            time: weir_io::now_ns() / 1_000_000_000,
            fits: fits(&points),
            timestamp_error: baseline.as_ref().and_then(TimestampError::of),
            device,
            baseline,
            device_delay,
        }
    }

    /// Reads results, of which [`Report::device`] is meant.
    ///
    /// # Errors
    /// The file is not one, or is too long.
    pub fn read(file: &FilePath) -> Result<Self> {
        let text = weir_files::read_text(file, Readable::Streams, LONGEST_FILE)?;
        let report: Report = serde_json::from_str(&text)
            .with_context(|| format!("{}: not a measure.json of weir int measure", file.display()))?;
        if report.format != FORMAT {
            bail!(
                "{}: its format is `{}`, and `{FORMAT}` is read",
                file.display(),
                report.format
            );
        }
        Ok(report)
    }

    /// Whether every packet of the device came once, and in order.
    pub fn is_clean(&self) -> bool {
        self.device.cases.iter().all(|measured| measured.packets.is_clean())
    }
}

fn differences(device: &PathResult, baseline: &PathResult) -> Vec<DeviceDelay> {
    let difference = |measured: &Measured| {
        let own = measured.delay.as_ref()?;
        let base = baseline.of(measured.case)?.delay.as_ref()?;
        Some(DeviceDelay {
            case: measured.case,
            mean: own.mean.minus(base.mean),
            median: own.median.minus(base.median),
            min: own.min - base.min,
        })
    };
    device.cases.iter().filter_map(difference).collect()
}

fn fits(points: &[(Case, f64, f64)]) -> Vec<SizeFit> {
    let mut rates: Vec<u32> = points.iter().map(|(case, ..)| case.rate).collect();
    rates.dedup();
    let fit = |rate: u32, of: Statistic| {
        let at_rate = points.iter().filter(|(case, ..)| case.rate == rate);
        let points = at_rate.map(|(case, median, min)| {
            let delay = match of {
                Statistic::Median => *median,
                Statistic::Minimum => *min,
            };
            (f64::from(case.size), delay)
        });
        let line = Fit::of(&points.collect::<Vec<_>>())?;
        let dependence = Dependence::of(&line);
        Some(SizeFit {
            rate,
            of,
            line,
            dependence,
        })
    };
    let both = |rate: u32| [fit(rate, Statistic::Median), fit(rate, Statistic::Minimum)];
    rates.into_iter().flat_map(both).flatten().collect()
}

impl Dependence {
    fn of(line: &Fit) -> Self {
        let Some(interval) = line.slope.interval else {
            return Dependence::Undecided;
        };
        if interval.contains(0.0) {
            return Dependence::Independent;
        }
        if interval.low < 0.0 || line.r_squared < EXPLAINED {
            return Dependence::Undecided;
        }
        let bits = |slope: f64| 8e9 / slope;
        Dependence::StoreAndForward {
            bits_per_second: Estimate {
                value: bits(line.slope.value),
                interval: Some(super::stats::Interval {
                    low: bits(interval.high),
                    high: bits(interval.low),
                }),
            },
        }
    }

    /// For people.
    pub fn describe(&self) -> String {
        match self {
            Dependence::StoreAndForward { bits_per_second } => {
                let found = bits_per_second.value;
                let near = |(speed, _): &&(f64, &str)| (found / speed - 1.0).abs() <= NEAR;
                match SPEEDS.iter().find(near) {
                    Some((_, name)) => format!("store-and-forward at {name} (measured {})", speed(found)),
                    None => format!("as store-and-forward at {}", speed(found)),
                }
            }
            Dependence::Independent => "independent of the size".to_owned(),
            Dependence::Undecided => "undecided: more sizes or more samples".to_owned(),
        }
    }
}

/// A speed in bit/s, for people.
fn speed(bits: f64) -> String {
    match bits {
        b if b >= 1e9 => format!("{:.3} Gbit/s", b / 1e9),
        b if b >= 1e6 => format!("{:.1} Mbit/s", b / 1e6),
        b => format!("{:.0} kbit/s", b / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(slope: f64, noise: f64) -> Fit {
        let sizes = [106.0, 256.0, 512.0, 1024.0, 1514.0];
        let point =
            |(at, size): (usize, &f64)| (*size, 500.0 + slope * size + if at % 2 == 0 { noise } else { -noise });
        Fit::of(&sizes.iter().enumerate().map(point).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn a_slope_of_8_ns_per_byte_is_store_and_forward_at_1_gbit_per_s() {
        let found = Dependence::of(&line(8.0, 1.0));
        assert!(matches!(found, Dependence::StoreAndForward { .. }));
        assert!(found.describe().contains("at 1 Gbit/s"), "{}", found.describe());
        let other = Dependence::of(&line(5.6, 1.0));
        assert!(
            other.describe().starts_with("as store-and-forward at 1.4"),
            "{}",
            other.describe()
        );
    }

    #[test]
    fn a_slope_within_its_error_is_none() {
        assert_eq!(Dependence::of(&line(0.01, 50.0)), Dependence::Independent);
        let two = Fit::of(&[(64.0, 1.0), (128.0, 9.0)]).unwrap();
        assert_eq!(Dependence::of(&two), Dependence::Undecided);
        assert_eq!(Dependence::of(&line(-2.0, 1.0)), Dependence::Undecided);
    }
}
