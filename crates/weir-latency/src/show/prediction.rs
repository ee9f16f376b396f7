//! Predictions and comparisons as text.

use super::explain::paths_of;
use super::{count, plural};
use crate::compare::{Change, Difference};
use crate::model::Unit;
use crate::predict::{PathPrediction, Point, Prediction};
use std::fmt::Write;

/// Paths that are shown.
const SHOWN_PATHS: usize = 10;
/// Packet sizes of a path that are all shown; of more only the least and the most.
const SHOWN_SIZES: usize = 8;

/// A prediction as a table, with its scope.
#[must_use]
pub fn prediction(prediction: &Prediction) -> String {
    let unit = prediction.unit.symbol();
    let port = match prediction.port_gbps {
        0 => String::new(),
        gbps => format!("port {gbps} Gbit/s, "),
    };
    let pipe = prediction.pipe.as_ref();
    let mut text = format!(
        "{}: model {} ({}), {}{port}{} accepted\n",
        prediction.program,
        prediction.model,
        prediction.target.name(),
        pipe.map_or(String::new(), |pipe| format!("{pipe}, ")),
        paths_of(prediction.accepting_paths)
    );
    for path in prediction.paths.iter().take(SHOWN_PATHS) {
        path_lines(&mut text, path, prediction.unit);
    }
    if prediction.paths.len() > SHOWN_PATHS {
        let more = plural(prediction.paths.len() - SHOWN_PATHS, "cheaper path");
        let _ = writeln!(text, "\nand {more}; --json lists all");
    }
    if let Some((path, point)) = prediction.worst() {
        let _ = writeln!(
            text,
            "\nWorst: {} with packets of {} bytes: {:.1} ± {:.1} {unit}",
            path.name, point.packet_size, point.total, point.error
        );
    }
    if prediction.is_merged {
        text.push_str("There are too many paths to list: those of similar cost are merged, one stands for several.\n");
    }
    if prediction.is_cut_off {
        text.push_str("The longest paths, of more states than are followed, are left out.\n");
    }
    if prediction.too_long > 0 {
        let _ = writeln!(
            text,
            "Left out because headers exceed every packet size: {}.",
            plural(prediction.too_long, "path")
        );
    }
    let _ = writeln!(text, "Scope: {}.", prediction.scope);
    let _ = writeln!(
        text,
        "Error: {:.2} % on average by {}.",
        prediction.error_pct, prediction.error_method
    );
    text
}

fn path_lines(text: &mut String, path: &PathPrediction, unit: Unit) {
    let times = match path.count > 1.0 {
        true => format!(", {} paths", count(path.count)),
        false => String::new(),
    };
    let tables = if path.tables.is_empty() {
        "no table".to_owned()
    } else {
        path.tables.join(" → ")
    };
    let _ = writeln!(
        text,
        "\n{}{times} ({}, {}; {tables})\n  {:>6} {:>10} {:>10} {:>10} {:>10} {:>12}",
        path.name,
        plural(path.states as usize, "state"),
        plural(path.header_bytes as usize, "header byte"),
        "bytes",
        "baseline",
        "parser",
        "control",
        "extras",
        format!("total {}", unit.symbol())
    );
    let points: Vec<&Point> = match &path.points[..] {
        [first, .., last] if path.points.len() > SHOWN_SIZES => vec![first, last],
        all => all.iter().collect(),
    };
    for point in points {
        let parts = &point.parts;
        let _ = writeln!(
            text,
            "  {:>6} {:>10.2} {:>10.2} {:>10.2} {:>10.2} {:>12.2} ± {:.2}",
            point.packet_size, parts.baseline, parts.parser, parts.control, parts.extras, point.total, point.error
        );
    }
    for o in &path.outside {
        let _ = writeln!(
            text,
            "  outside of the training range: {} is {}, trained from {} to {}",
            o.feature,
            range(o.from, o.to),
            o.least,
            o.most
        );
    }
    if let Some(point) = path.impossible().next() {
        let _ = writeln!(
            text,
            "  {:.1} {} cannot be: the model does not hold for this path",
            point.total,
            unit.symbol()
        );
    }
}

fn range(from: f64, to: f64) -> String {
    if from == to {
        format!("{from}")
    } else {
        format!("{from} to {to}")
    }
}

/// What has changed, a line each.
#[must_use]
pub fn changes(changes: &[Change], unit: Unit) -> String {
    let unit = unit.symbol();
    let mut text = String::new();
    let differ = |text: &mut String, word: &str, d: &Difference| {
        let _ = writeln!(
            text,
            "{word}: {} with {} bytes: {:.2} → {:.2} {unit} ({:+.2}); {}",
            d.path,
            d.packet_size,
            d.old,
            d.new,
            d.new - d.old,
            d.because.join("; ")
        );
    };
    for change in changes {
        match change {
            Change::Slower(d) => differ(&mut text, "slower", d),
            Change::Faster(d) => differ(&mut text, "faster", d),
            Change::NewWorst { path, total, old_worst } => {
                let _ = writeln!(
                    text,
                    "new worst: {path}: {total:.2} {unit}; the worst was {old_worst:.2} {unit}"
                );
            }
            Change::New { path, total } => {
                let _ = writeln!(text, "new: {path}: {total:.2} {unit}");
            }
            Change::Gone { path } => {
                let _ = writeln!(text, "gone: {path}");
            }
            Change::LeftOut => text.push_str("left out: the longest paths, which were predicted before\n"),
        }
    }
    if text.is_empty() {
        text.push_str("no path has changed\n");
    }
    text
}
