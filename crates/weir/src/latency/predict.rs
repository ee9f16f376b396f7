//! `weir latency predict`

use super::arguments::Predict;
use super::{counts, files, model, plots};
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use weir_files::Readable;
use weir_latency::compare::{Change, compare};
use weir_latency::model::{Feature, Model, Target, Unit};
use weir_latency::predict::{self, PathPrediction, Point, Prediction, Question};
use weir_latency::{Features, Gress, show};

/// Speed of the port where none is given.
const DEFAULT_GBPS: u32 = 10;
/// Bytes of the largest earlier answer.
const MAX_ANSWER: usize = 256 << 20;

/// Predicts, and checks the limits that are given.
pub fn predict(arguments: &Predict, messages: &Messages) -> Result<u8> {
    let model = model::find(&arguments.model)?;
    let port_gbps = flags_fit(arguments, &model)?;
    let earlier = arguments.compare.as_deref().map(earlier).transpose()?;
    let program = match super::program(&arguments.source, messages)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let pipe = super::pipe(&program, arguments.pipe.as_deref())?;
    let features = |gress| Features::of_pipe(&program, gress, pipe.as_deref());
    let mut ingress = features(Gress::Ingress)?;
    let mut egress = match model.target {
        Target::Weir => Some(features(Gress::Egress)?),
        Target::Tofino | Target::Tofino2 => None,
    };
    if let Some(path) = &arguments.entries {
        let config = crate::load::config(&arguments.source.front_end);
        let switch = crate::load::switch(Arc::clone(&program), config, Some(path), messages)?;
        let counts = counts::of(&switch)?;
        counts::note(&counts, &mut ingress);
        egress.iter_mut().for_each(|egress| counts::note(&counts, egress));
    }
    let question = Question {
        port_gbps,
        sizes: arguments.packet_size.0.clone(),
        path: arguments.path.clone(),
        pipe,
        has_entries: arguments.entries.is_some(),
    };
    let name = arguments.source.program.display().to_string();
    let prediction = predict::predict(&name, &ingress, egress.as_ref(), &model, &question)?;
    let changes = earlier.as_ref().map(|old| compare(old, &prediction)).transpose()?;
    if let Some(path) = &arguments.plot {
        weir_files::write(path, plots::by_size(&prediction).as_bytes())?;
    }
    let answer = Answer {
        has_other_entries: earlier.is_some_and(|old| old.entries != prediction.entries),
        above: above(&prediction, arguments.max_ns),
        leaves_out: prediction.is_cut_off && !arguments.allow_left_out,
        prediction: &prediction,
        changes,
    };
    answer.show(arguments)?;
    Ok(if answer.is_good(arguments) { 0 } else { NO })
}

/// Refuses flags that the model does not go with; gives the speed of the port, 0 where the model
/// has none.
fn flags_fit(arguments: &Predict, model: &Model) -> Result<u32> {
    let name = &model.name;
    if arguments.max_ns.is_some() && model.unit != Unit::Ns {
        bail!("--max-ns goes with a model that predicts ns; {name} predicts cycles");
    }
    if arguments.entries.is_some() && !model.features().into_iter().any(Feature::counts_entries) {
        bail!("--entries goes with a model that looks at entries, such as weir-lr; {name} does not");
    }
    files::distinct(
        &[("--plot", arguments.plot.as_deref())],
        &[
            Some(&arguments.source.program),
            arguments.compare.as_deref(),
            arguments.entries.as_deref(),
            Some(Path::new(&arguments.model)),
        ],
    )?;
    let has_ports = !model.ports().is_empty() || model.features().contains(&Feature::PortGbps);
    match (arguments.port, has_ports) {
        (Some(_), false) => bail!("--port goes with a model that has port speeds; {name} has none"),
        (port, true) => Ok(port.unwrap_or(DEFAULT_GBPS)),
        (None, false) => Ok(0),
    }
}

/// A prediction and what is to be said of it.
struct Answer<'a> {
    prediction: &'a Prediction,
    /// Since the earlier one, if there is one.
    changes: Option<Vec<Change>>,
    /// The earlier one counts other entries.
    has_other_entries: bool,
    /// Paths above the limit.
    above: Vec<(&'a PathPrediction, &'a Point)>,
    /// Paths are left out, which is not allowed.
    leaves_out: bool,
}

/// Paths that take longer than is allowed, each with its worst point, and those that the model
/// does not hold for: nothing says that they keep the limit.
fn above(prediction: &Prediction, most: Option<f64>) -> Vec<(&PathPrediction, &Point)> {
    let Some(most) = most else {
        return Vec::new();
    };
    let judge = |path| {
        let worst = PathPrediction::worst(path).filter(|point| point.total > most);
        Some((path, worst.or_else(|| path.impossible().next())?))
    };
    prediction.paths.iter().filter_map(judge).collect()
}

impl Answer<'_> {
    /// Whether every limit is kept.
    fn is_good(&self, arguments: &Predict) -> bool {
        let counts = |change: &&Change| self.leaves_out || **change != Change::LeftOut;
        let is_worse = self.changes.iter().flatten().filter(counts).any(Change::is_worse);
        let is_unknown = arguments.max_ns.is_some() && self.leaves_out;
        !is_worse && !is_unknown && self.above.is_empty()
    }

    fn show(&self, arguments: &Predict) -> Result<()> {
        let mut out = crate::output::stdout();
        if arguments.json {
            let mut value = serde_json::to_value(self.prediction)?;
            if let Some(changes) = &self.changes {
                value["changes"] = serde_json::to_value(changes)?;
            }
            if let Some(most) = arguments.max_ns {
                value["max_ns"] = most.into();
                value["above_max"] = self.above.iter().map(|(path, _)| path.name.as_str()).collect();
            }
            writeln!(out, "{value:#}")?;
            return Ok(());
        }
        write!(out, "{}", show::prediction(self.prediction))?;
        if let Some(changes) = &self.changes {
            let entries = if self.has_other_entries {
                " (the entries differ)"
            } else {
                ""
            };
            let changes = show::changes(changes, self.prediction.unit);
            write!(out, "\nCompared{entries}:\n{changes}")?;
        }
        for (path, point) in &self.above {
            let (name, total, size) = (&path.name, point.total, point.packet_size);
            let most = arguments.max_ns.unwrap_or_default();
            if total <= 0.0 {
                writeln!(
                    out,
                    "no prediction: {total:.1} ns for {name} with packets of {size} bytes cannot be"
                )?;
            } else {
                writeln!(
                    out,
                    "above --max-ns: {name} takes {total:.1} ns with packets of {size} bytes; {most} are allowed"
                )?;
            }
        }
        if arguments.max_ns.is_some() && self.leaves_out {
            writeln!(
                out,
                "--max-ns is not shown to be kept: the longest paths were left out (--allow-left-out accepts that)"
            )?;
        }
        Ok(())
    }
}

fn earlier(path: &Path) -> Result<Prediction> {
    let text = weir_files::read_text(path, Readable::Streams, MAX_ANSWER)?;
    let expected = || format!("{}: expected an answer of weir latency predict --json", path.display());
    serde_json::from_str(&text).with_context(expected)
}
