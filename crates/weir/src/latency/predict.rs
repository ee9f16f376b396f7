//! `weir latency predict`

use super::arguments::Predict;
use super::{counts, model, plots};
use crate::cli::NO;
use crate::output::Messages;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use weir_files::Readable;
use weir_latency::compare::{Change, compare};
use weir_latency::model::{Feature, Target, Unit};
use weir_latency::predict::{self, PathPrediction, Point, Prediction, Question};
use weir_latency::{Features, Gress, show};

/// Bytes of the largest earlier answer.
const MAX_ANSWER: usize = 256 << 20;

/// Predicts, and checks the limits that are given.
pub fn predict(arguments: &Predict, messages: &Messages) -> Result<u8> {
    let model = model::find(&arguments.model)?;
    if arguments.max_ns.is_some() && model.unit != Unit::Ns {
        bail!(
            "--max-ns goes with a model that predicts ns; {} predicts cycles",
            model.name
        );
    }
    if arguments.entries.is_some() && !model.features().into_iter().any(Feature::counts_entries) {
        bail!(
            "--entries goes with a model that looks at entries, such as weir-lr; {} does not",
            model.name
        );
    }
    let program = match crate::compile::program(&arguments.source, messages)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let features = |gress| Features::of(&program, gress);
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
        port_gbps: arguments.port,
        sizes: arguments.packet_size.0.clone(),
        path: arguments.path.clone(),
    };
    let name = arguments.source.program.display().to_string();
    let prediction = predict::predict(&name, &ingress, egress.as_ref(), &model, &question)?;
    if let Some(path) = &arguments.plot {
        weir_files::write(path, plots::by_size(&prediction).as_bytes())?;
    }
    let changes = match &arguments.compare {
        Some(path) => Some(compare(&earlier(path)?, &prediction)?),
        None => None,
    };
    let above = above(&prediction, arguments.max_ns);
    show_answer(arguments, &prediction, changes.as_deref(), &above)?;
    let is_slower = changes.iter().flatten().any(Change::is_worse);
    Ok(if is_slower || !above.is_empty() { NO } else { 0 })
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

fn show_answer(
    arguments: &Predict,
    prediction: &Prediction,
    changes: Option<&[Change]>,
    above: &[(&PathPrediction, &Point)],
) -> Result<()> {
    let mut out = crate::output::stdout();
    if arguments.json {
        let mut value = serde_json::to_value(prediction)?;
        if let Some(changes) = changes {
            value["changes"] = serde_json::to_value(changes)?;
        }
        if let Some(most) = arguments.max_ns {
            value["max_ns"] = most.into();
            value["above_max"] = above.iter().map(|(path, _)| path.name.as_str()).collect();
        }
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    write!(out, "{}", show::prediction(prediction))?;
    if let Some(changes) = changes {
        write!(out, "\nCompared:\n{}", show::changes(changes, prediction.unit))?;
    }
    for (path, point) in above {
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
    Ok(())
}

fn earlier(path: &Path) -> Result<Prediction> {
    let text = weir_files::read_text(path, Readable::Streams, MAX_ANSWER)?;
    let expected = || format!("{}: expected an answer of weir latency predict --json", path.display());
    serde_json::from_str(&text).with_context(expected)
}
