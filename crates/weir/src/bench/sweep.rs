//! The same measurement for several values of one thing.

use super::case::{Case, Load};
use super::report::Report;
use super::svg::{Line, Plot};
use super::workload;
use anyhow::{Result, bail, ensure};
use std::str::FromStr;
use weir_switch::VECTOR;

/// What differs from point to point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Bytes of a packet.
    Size,
    /// Entries of the table.
    Table,
    /// Packets in memory.
    Pool,
    /// Packets at a time.
    Vector,
    /// Threads.
    Workers,
}

/// What differs, and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    /// What.
    pub what: What,
    /// Its values.
    pub values: Vec<usize>,
}

impl FromStr for Sweep {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let help = "write size=64,128, table=1000,10k,1M, pool=4096,65536, vector=16,32,64 or workers=1,2";
        let Some((what, values)) = text.split_once('=') else {
            return Err(format!("`{text}` is no sweep; {help}"));
        };
        let what = match what {
            "size" => What::Size,
            "table" => What::Table,
            "pool" => What::Pool,
            "vector" => What::Vector,
            "workers" => What::Workers,
            _ => return Err(format!("`{what}` cannot be swept over; {help}")),
        };
        let values: Option<Vec<usize>> = values.split(',').map(number).collect();
        match values {
            Some(values) => Ok(Sweep { what, values }),
            None => Err(format!("`{text}`: values are numbers with commas between them; {help}")),
        }
    }
}

/// A number that is not 0, perhaps with `k` or `M` after it.
fn number(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit).filter(|n| *n > 0)
}

impl What {
    /// On the command line.
    pub fn name(self) -> &'static str {
        match self {
            What::Size => "size",
            What::Table => "table",
            What::Pool => "pool",
            What::Vector => "vector",
            What::Workers => "workers",
        }
    }

    /// For axes and columns.
    fn label(self) -> &'static str {
        match self {
            What::Size => "bytes per packet",
            What::Table => "table entries",
            What::Pool => "packets in memory",
            What::Vector => "packets at a time",
            What::Workers => "workers",
        }
    }
}

impl Sweep {
    /// The case with this value of what differs; the number of workers is not the case's.
    pub fn apply(&self, case: &Case, value: usize) -> Result<Case> {
        let mut case = case.clone();
        match self.what {
            What::Size => {
                ensure!(
                    (42..=9216).contains(&value),
                    "packets have 42 to 9216 bytes, not {value}"
                );
                ensure!(
                    matches!(case.load, Load::Made { .. }),
                    "a sweep over size needs packets that are made: give --table-entries"
                );
                case.size = value;
            }
            What::Table => match &mut case.load {
                Load::Made { entries, mix } => {
                    workload::check(&case.name, value, *mix)?;
                    *entries = value;
                }
                Load::Given { .. } => bail!("a sweep over table needs tables that are made: give --table-entries"),
            },
            What::Pool => {
                ensure!(
                    (1..=1 << 20).contains(&value),
                    "a pool has 1 to {} packets, not {value}",
                    1 << 20
                );
                case.pool = value;
            }
            What::Vector => {
                ensure!(
                    (1..=VECTOR).contains(&value),
                    "a vector has 1 to {VECTOR} packets, not {value}"
                );
                case.vector = value;
            }
            What::Workers => ensure!((1..=256).contains(&value), "there are 1 to 256 workers, not {value}"),
        }
        super::check_memory(case.pool, case.size)?;
        Ok(case)
    }

    /// The plot of all points.
    pub fn plot(&self, name: &str, reports: &[Report]) -> Plot {
        let mut lines: Vec<Line> = Vec::new();
        let mut add = |name: &str, x: usize, y: f64| match lines.iter_mut().find(|l| l.name == name) {
            Some(line) => line.points.push((x as f64, y)),
            None => lines.push(Line {
                name: name.to_owned(),
                points: vec![(x as f64, y)],
                is_joined: true,
            }),
        };
        for (value, report) in self.values.iter().zip(reports) {
            for m in &report.measured {
                add(m.side.name(), *value, m.median());
            }
            if let Some(t) = &report.together {
                add("together", *value, super::measure::median(&t.together));
            }
        }
        Plot {
            title: name.to_owned(),
            x: self.what.label().to_owned(),
            y: if self.what == What::Workers {
                "Mpps"
            } else {
                "cycles per packet"
            }
            .to_owned(),
            lines,
        }
    }

    /// All points as a table.
    pub fn text(&self, reports: &[Report]) -> String {
        let plot = self.plot("", reports);
        let mut text = format!("{:>18}", plot.x);
        for line in &plot.lines {
            text.push_str(&format!(" {:>12}", line.name));
        }
        text.push_str(&format!("   ({})\n", plot.y));
        for (i, value) in self.values.iter().enumerate() {
            text.push_str(&format!("{value:>18}"));
            for line in &plot.lines {
                text.push_str(&format!(" {:>12.1}", line.points.get(i).map_or(0.0, |p| p.1)));
            }
            if let Some(ratio) = reports.get(i).and_then(Report::ratio) {
                text.push_str(&format!("   ratio {ratio:.2}"));
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_be_short() {
        let sweep: Sweep = "table=1000,10k,1M".parse().unwrap();
        assert_eq!((sweep.what, sweep.values), (What::Table, vec![1000, 10_000, 1_000_000]));
        for wrong in ["table", "colour=1", "pool=1,", "pool=0", "pool=x"] {
            assert!(wrong.parse::<Sweep>().unwrap_err().contains("vector=16"), "{wrong}");
        }
    }
}
