//! Measured rows as CSV.
//!
//! A file has a column `case` (rows of one case are left out together in cross-validation), a
//! column with what was measured (`latency_ns` or `cycles`), and columns named after
//! [`Feature`]s. `constant` needs no column. Lines that begin with `#` are comments.

use crate::model::{Feature, Unit, Values};

/// Most rows of a file.
pub const MAX_ROWS: usize = 1_000_000;
/// Gbit/s of the fastest port.
pub const MAX_GBPS: u32 = 800;
/// The largest value. Sums of squares of larger ones are beyond floating-point numbers.
const MAX_VALUE: f64 = 1e15;

/// Why a file is no data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It is no CSV.
    #[error("expected CSV: {0}")]
    Csv(#[from] csv::Error),
    /// A column is missing.
    #[error("expected a column `{name}`, found only {found}")]
    Missing {
        /// Its name, or names.
        name: String,
        /// The columns that are there.
        found: String,
    },
    /// A column is unknown, or is there twice.
    #[error(
        "column `{name}` {problem}; known are case, latency_ns, cycles, and the features {}",
        known()
    )]
    Column {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A value is not what its column needs.
    #[error("line {line}, column `{column}`: expected {expected}, found `{found}`")]
    Value {
        /// From 1.
        line: u64,
        /// Its name.
        column: String,
        /// What would do.
        expected: String,
        /// What is there.
        found: String,
    },
    /// There are too few rows, or too many.
    #[error("expected {expected} rows, found {found}")]
    Rows {
        /// How many.
        expected: String,
        /// How many there are.
        found: usize,
    },
}

fn known() -> String {
    let names: Vec<&str> = Feature::ALL.iter().map(|f| f.name()).collect();
    names.join(", ")
}

/// A measured row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// The case that it belongs to.
    pub case: String,
    /// The features.
    pub values: Values,
    /// What was measured.
    pub measured: f64,
}

/// Measured rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// The features that have columns, in their order.
    pub features: Vec<Feature>,
    /// What was measured.
    pub unit: Unit,
    /// The rows.
    pub rows: Vec<Row>,
}

/// What a column is.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Case,
    Measured(Unit),
    Feature(Feature),
}

impl Data {
    /// Reads a file's text.
    ///
    /// # Errors
    /// It is no CSV, lacks a column, or has a value that is no finite number.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let headers: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
        let columns = columns(&headers)?;
        let unit = columns.iter().find_map(|c| match c {
            Column::Measured(unit) => Some(*unit),
            Column::Case | Column::Feature(_) => None,
        });
        let missing = |name: &str| DataError::Missing {
            name: name.to_owned(),
            found: headers.join(", "),
        };
        let unit = unit.ok_or_else(|| missing("latency_ns` or `cycles"))?;
        if !columns.contains(&Column::Case) {
            return Err(missing("case"));
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            if rows.len() == MAX_ROWS {
                return Err(DataError::Rows {
                    expected: format!("at most {MAX_ROWS}"),
                    found: rows.len() + 1,
                });
            }
            rows.push(row(&record?, &headers, &columns)?);
        }
        let features = columns.iter().filter_map(|c| match c {
            Column::Feature(feature) => Some(*feature),
            Column::Case | Column::Measured(_) => None,
        });
        Ok(Data {
            features: features.collect(),
            unit,
            rows,
        })
    }

    /// The data as text that [`Data::parse`] reads.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let measured = match self.unit {
            Unit::Ns => "latency_ns",
            Unit::Cycles => "cycles",
        };
        let names = self.features.iter().map(|f| f.name());
        let header: Vec<&str> = ["case"].into_iter().chain(names).chain([measured]).collect();
        let mut text = header.join(",");
        text.push('\n');
        for row in &self.rows {
            text.push_str(&row.case.replace([',', '\n', '"'], "_"));
            for feature in &self.features {
                text.push_str(&format!(",{}", row.values.get(*feature)));
            }
            text.push_str(&format!(",{}\n", row.measured));
        }
        text
    }

    /// The cases in the order in which they first appear.
    #[must_use]
    pub fn cases(&self) -> Vec<&str> {
        let mut cases: Vec<&str> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for row in &self.rows {
            if seen.insert(row.case.as_str()) {
                cases.push(&row.case);
            }
        }
        cases
    }

    /// The port speeds that appear, in order; none where there is no such column.
    #[must_use]
    pub fn ports(&self) -> Vec<u32> {
        if !self.features.contains(&Feature::PortGbps) {
            return Vec::new();
        }
        let mut ports: Vec<u32> = self.rows.iter().map(|r| r.values.port_gbps).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// The rows of some cases, or of all others.
    #[must_use]
    pub fn split(&self, cases: &[&str]) -> (Data, Data) {
        let (within, without) = self
            .rows
            .iter()
            .cloned()
            .partition(|r| cases.contains(&r.case.as_str()));
        let with = |rows| Data {
            features: self.features.clone(),
            unit: self.unit,
            rows,
        };
        (with(within), with(without))
    }

    /// An error unless there is a column for each of these.
    ///
    /// # Errors
    /// Names the columns that are missing.
    pub fn require(&self, features: &[Feature]) -> Result<(), DataError> {
        let is_there = |f: &&Feature| **f == Feature::Constant || self.features.contains(f);
        let missing: Vec<&str> = features.iter().filter(|f| !is_there(f)).map(|f| f.name()).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let found: Vec<&str> = self.features.iter().map(|f| f.name()).collect();
        Err(DataError::Missing {
            name: missing.join("`, `"),
            found: format!("case, {}", found.join(", ")),
        })
    }
}

fn columns(headers: &[String]) -> Result<Vec<Column>, DataError> {
    let mut columns = Vec::with_capacity(headers.len());
    for name in headers {
        let column = match name.as_str() {
            "case" => Some(Column::Case),
            "latency_ns" => Some(Column::Measured(Unit::Ns)),
            "cycles" => Some(Column::Measured(Unit::Cycles)),
            other => Feature::from_name(other).map(Column::Feature),
        };
        let wrong = |problem| DataError::Column {
            name: name.clone(),
            problem,
        };
        let column = column.ok_or_else(|| wrong("is unknown"))?;
        let is_measured = |c: &Column| matches!(c, Column::Measured(_));
        if columns.contains(&column) || is_measured(&column) && columns.iter().any(is_measured) {
            return Err(wrong("is there twice, or beside another measured one"));
        }
        columns.push(column);
    }
    Ok(columns)
}

fn row(record: &csv::StringRecord, headers: &[String], columns: &[Column]) -> Result<Row, DataError> {
    let line = record.position().map_or(0, csv::Position::line);
    let mut row = Row {
        case: String::new(),
        values: Values::new(0),
        measured: 0.0,
    };
    for ((field, name), column) in record.iter().zip(headers).zip(columns) {
        let wrong = |expected: String| DataError::Value {
            line,
            column: name.clone(),
            expected,
            found: field.to_owned(),
        };
        match column {
            Column::Case if field.is_empty() => return Err(wrong("a name".to_owned())),
            Column::Case => row.case = field.to_owned(),
            Column::Feature(feature) => {
                let value = value(*feature, field).map_err(wrong)?;
                row.values.set(*feature, value);
                if *feature == Feature::PortGbps {
                    row.values.port_gbps = value as u32;
                }
            }
            Column::Measured(_) => {
                let range = 1.0 / MAX_VALUE..=MAX_VALUE;
                let measured = field.parse::<f64>().ok().filter(|n| range.contains(n));
                let expected = || wrong(format!("a number above 0, from {} to {MAX_VALUE:e}", 1.0 / MAX_VALUE));
                row.measured = measured.ok_or_else(expected)?;
            }
        }
    }
    Ok(row)
}

/// The value of a feature, or what is expected in its place.
fn value(feature: Feature, field: &str) -> Result<f64, String> {
    let number = field.parse::<f64>().ok().filter(|n| n.is_finite());
    let number = number.ok_or_else(|| "a finite number".to_owned())?;
    let (is_good, expected) = if feature == Feature::PortGbps {
        let is_speed = number.fract() == 0.0 && (1.0..=MAX_GBPS.into()).contains(&number);
        (is_speed, format!("a whole number of Gbit/s from 1 to {MAX_GBPS}"))
    } else if feature == Feature::Constant {
        (number == 1.0, "1".to_owned())
    } else {
        let is_count = (0.0..=MAX_VALUE).contains(&number);
        (is_count, format!("a number from 0 to {MAX_VALUE:e}"))
    };
    if is_good { Ok(number) } else { Err(expected) }
}
