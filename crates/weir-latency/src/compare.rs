//! Two predictions compared: what became slower, and why.

use crate::features::headers_of;
use crate::predict::{PathPrediction, Prediction};
use serde::Serialize;

/// Differences below this are rounding.
const NEGLIGIBLE: f64 = 1e-6;

/// How a path has changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum Change {
    /// It costs more than before.
    Slower(Difference),
    /// It costs less.
    Faster(Difference),
    /// It was not there, and costs more than any path before.
    NewWorst {
        /// Its name.
        path: String,
        /// What it costs.
        total: f64,
        /// What the costliest path before did.
        old_worst: f64,
    },
    /// It was not there.
    New {
        /// Its name.
        path: String,
        /// What it costs.
        total: f64,
    },
    /// It is gone.
    Gone {
        /// Its name.
        path: String,
    },
    /// The longest paths are left out, and were not before.
    LeftOut,
}

/// A path before and now, at the packet size at which they differ most.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// Its name.
    pub path: String,
    /// Bytes of the packet.
    pub packet_size: u32,
    /// What it cost.
    pub old: f64,
    /// What it costs.
    pub new: f64,
    /// What of its features and parts has changed, as sentences.
    pub because: Vec<String>,
}

/// Why two predictions cannot be compared.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CompareError {
    /// They are of different models, units, ports, paths or pipes.
    #[error(
        "the old prediction is by model {old}, this one by {new}: compare predictions of one model, port, --path and \
         --pipe"
    )]
    Different {
        /// Model and port of the old one.
        old: String,
        /// Model and port of the new one.
        new: String,
    },
    /// They are for different packet sizes.
    #[error("the two predictions are for different packet sizes: give the --packet-size of the old one")]
    Sizes,
    /// One counts a control plane's entries, the other one declared sizes.
    #[error("the old prediction was made {}: use the same for both", if *old { "with --entries" } else { "without --entries" })]
    Entries {
        /// Whether the old one counts entries.
        old: bool,
    },
}

/// Compares; the costliest changes first.
///
/// # Errors
/// The predictions are of different models or ports, or of different packet sizes.
pub fn compare(old: &Prediction, new: &Prediction) -> Result<Vec<Change>, CompareError> {
    let about = |p: &Prediction| {
        let only = p.only.as_ref().map_or(String::new(), |path| format!(", only {path}"));
        let pipe = p.pipe.as_ref().map_or(String::new(), |pipe| format!(", {pipe}"));
        let port = match p.port_gbps {
            0 => String::new(),
            gbps => format!("{gbps} Gbit/s, "),
        };
        let unit = p.unit.symbol();
        format!("{} {} ({port}{unit}{pipe}{only})", p.model, p.model_digest)
    };
    if about(old) != about(new) {
        return Err(CompareError::Different {
            old: about(old),
            new: about(new),
        });
    }
    if old.entries.is_some() != new.entries.is_some() {
        return Err(CompareError::Entries {
            old: old.entries.is_some(),
        });
    }
    let sizes = |p: &Prediction| -> Vec<u32> {
        let points = p.paths.iter().flat_map(|path| &path.points);
        let mut sizes: Vec<u32> = points.map(|point| point.packet_size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    };
    let (old_sizes, new_sizes) = (sizes(old), sizes(new));
    if new_sizes != old_sizes {
        return Err(CompareError::Sizes);
    }
    let old_worst = old.worst().map_or(0.0, |(_, point)| point.total);
    let mut changes = Vec::new();
    if new.is_cut_off && !old.is_cut_off {
        changes.push(Change::LeftOut);
    }
    let mut met: Vec<&str> = Vec::new();
    for path in &new.paths {
        match counterpart(old, new, path) {
            Some(before) => {
                met.push(&before.name);
                changes.extend(difference(before, path));
            }
            None => changes.push(new_path(path, old_worst)),
        }
    }
    for path in old.paths.iter().filter(|path| !met.contains(&path.name.as_str())) {
        changes.push(Change::Gone {
            path: path.name.clone(),
        });
    }
    changes.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
    Ok(changes)
}

/// What a path was before: the one of its name; else, where its headers were parsed in another way
/// or met other tables, the costliest of the same headers that is gone.
fn counterpart<'a>(old: &'a Prediction, new: &Prediction, path: &PathPrediction) -> Option<&'a PathPrediction> {
    if let Some(same) = old.paths.iter().find(|p| p.name == path.name) {
        return Some(same);
    }
    let is_gone = |p: &&PathPrediction| !new.paths.iter().any(|other| other.name == p.name);
    let is_alike = |p: &&PathPrediction| headers_of(&p.name) == headers_of(&path.name);
    old.paths.iter().filter(is_alike).find(is_gone)
}

impl Change {
    /// Whether a latency budget that held before may not hold now.
    #[must_use]
    pub fn is_worse(&self) -> bool {
        matches!(self, Change::Slower(_) | Change::NewWorst { .. } | Change::LeftOut)
    }

    fn weight(&self) -> f64 {
        match self {
            Change::Slower(d) => d.new - d.old,
            Change::NewWorst { total, old_worst, .. } => total - old_worst,
            Change::LeftOut => f64::INFINITY,
            Change::Faster(_) | Change::New { .. } | Change::Gone { .. } => 0.0,
        }
    }
}

fn new_path(path: &PathPrediction, old_worst: f64) -> Change {
    let total = path.worst().map_or(0.0, |point| point.total);
    let path = path.name.clone();
    if total > old_worst + NEGLIGIBLE {
        Change::NewWorst { path, total, old_worst }
    } else {
        Change::New { path, total }
    }
}

fn difference(old: &PathPrediction, new: &PathPrediction) -> Option<Change> {
    let both = new.points.iter().filter_map(|point| {
        let before = old.points.iter().find(|p| p.packet_size == point.packet_size)?;
        Some((before, point))
    });
    let (before, now) = both.max_by(|a, b| (a.1.total - a.0.total).abs().total_cmp(&(b.1.total - b.0.total).abs()))?;
    let change = now.total - before.total;
    if change.abs() <= NEGLIGIBLE {
        return None;
    }
    let mut because = Vec::new();
    if old.name != new.name {
        because.push(format!("it was {}", old.name));
    }
    let numbers = [
        ("parser states", f64::from(old.states), f64::from(new.states)),
        ("header bytes", f64::from(old.header_bytes), f64::from(new.header_bytes)),
        ("baseline", before.parts.baseline, now.parts.baseline),
        ("parser and deparser", before.parts.parser, now.parts.parser),
        ("control", before.parts.control, now.parts.control),
        ("extras", before.parts.extras, now.parts.extras),
    ];
    for (name, was, is) in numbers {
        if (was - is).abs() > NEGLIGIBLE {
            because.push(format!("{name}: {} → {}", rounded(was), rounded(is)));
        }
    }
    if old.tables != new.tables {
        because.push(format!("tables: {} → {}", list(&old.tables), list(&new.tables)));
    }
    let difference = Difference {
        path: new.name.clone(),
        packet_size: now.packet_size,
        old: before.total,
        new: now.total,
        because,
    };
    Some(if change > 0.0 {
        Change::Slower(difference)
    } else {
        Change::Faster(difference)
    })
}

fn rounded(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value}")
    } else {
        format!("{value:.3}")
    }
}

fn list(tables: &[String]) -> String {
    if tables.is_empty() {
        "none".to_owned()
    } else {
        tables.join(", ")
    }
}
