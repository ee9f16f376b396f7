//! `weir latency fit` and `weir latency evaluate`

use super::arguments::{Evaluate, Fit, Kind};
use super::{model, plots};
use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use weir_files::Readable;
use weir_latency::data::Data;
use weir_latency::evaluate::Evaluation;
use weir_latency::fit::{self, CyclesVariant, PlpOptions};
use weir_latency::model::{Target, Unit};

/// Bytes of the largest file of measured rows.
pub const MAX_DATA: usize = 256 << 20;

/// Reads measured rows.
pub fn data(path: &Path) -> Result<Data> {
    let text = weir_files::read_text(path, Readable::Streams, MAX_DATA)?;
    Data::parse(&text).with_context(|| path.display().to_string())
}

/// Refuses flags of another kind of model.
fn flags_fit(arguments: &Fit) -> Result<()> {
    let of_plp = [
        ("--components", arguments.components.is_some()),
        ("--alpha", arguments.alpha.is_some()),
        ("--unscaled", arguments.unscaled),
    ];
    for (flag, is_given) in of_plp {
        ensure!(
            !is_given || arguments.model == Kind::Plp,
            "{flag} goes with --model plp only"
        );
    }
    ensure!(
        !arguments.fixed || arguments.model == Kind::Cycles,
        "--fixed goes with --model cycles only"
    );
    Ok(())
}

/// `weir latency fit`
pub fn fit(arguments: &Fit) -> Result<u8> {
    flags_fit(arguments)?;
    super::files::distinct(&[("-o", arguments.output.as_deref())], &[Some(&arguments.data)])?;
    let data = data(&arguments.data)?;
    let (kind, default_name) = match arguments.model {
        Kind::Lr => (fit::Kind::Lr, "lr"),
        Kind::Plp => {
            let options = PlpOptions {
                components: arguments.components.map(|n| n as usize),
                alpha: arguments.alpha,
                unscaled: arguments.unscaled,
            };
            (fit::Kind::Plp(options), "plp")
        }
        Kind::Cycles => {
            let variant = arguments.fixed.then_some(CyclesVariant::DEFAULT);
            (fit::Kind::Cycles(variant), "cycles")
        }
    };
    let target = match data.unit {
        Unit::Ns => Target::Tofino,
        Unit::Cycles => Target::Weir,
    };
    let name = arguments.name.as_deref().unwrap_or(default_name);
    let fitted = fit::fit(&data, &kind, name, target).with_context(|| arguments.data.display().to_string())?;
    if let Some(path) = &arguments.output {
        weir_files::write(path, fitted.model.to_json().as_bytes())?;
    }
    let mut out = crate::output::stdout();
    let evaluation = &fitted.validation.evaluation;
    if arguments.json {
        let mut value = json(evaluation);
        value["about"] = fitted.model.about.clone().into();
        value["method"] = fitted.model.error.method.clone().into();
        writeln!(out, "{value:#}")?;
        return Ok(0);
    }
    writeln!(out, "{name}: {}", fitted.model.about)?;
    writeln!(out, "{}:", fitted.model.error.method)?;
    write!(out, "{}", summary(evaluation))?;
    let cases = data.cases().len();
    writeln!(
        out,
        "  {cases} cases: each is predicted by a model that was fitted to measurements of the others"
    )?;
    Ok(0)
}

/// `weir latency evaluate`
pub fn evaluate(arguments: &Evaluate) -> Result<u8> {
    super::files::distinct(
        &[("--plot", arguments.plot.as_deref())],
        &[Some(&arguments.data), Some(Path::new(&arguments.model))],
    )?;
    let model = model::find(&arguments.model)?;
    let data = data(&arguments.data)?;
    let context = || arguments.data.display().to_string();
    let evaluation = weir_latency::evaluate::evaluate(&model, &data).with_context(context)?;
    if let Some(path) = &arguments.plot {
        weir_files::write(path, plots::residuals(&model.name, &evaluation).as_bytes())?;
    }
    let mut out = crate::output::stdout();
    if arguments.json {
        writeln!(out, "{:#}", json(&evaluation))?;
    } else {
        write!(
            out,
            "{}: {} rows\n{}",
            model.name,
            evaluation.rows.len(),
            summary(&evaluation)
        )?;
    }
    Ok(0)
}

/// Port speeds that appear in rows.
fn ports(evaluation: &Evaluation) -> Vec<u32> {
    let mut ports: Vec<u32> = evaluation.rows.iter().map(|r| r.port_gbps).filter(|p| *p > 0).collect();
    ports.sort_unstable();
    ports.dedup();
    ports
}

/// Accuracy, worst row and bias as text.
pub fn summary(evaluation: &Evaluation) -> String {
    let mut text = format!(
        "  accuracy {:.2} % (100 - mean absolute error)",
        evaluation.accuracy(None)
    );
    for port in ports(evaluation) {
        let _ = write!(text, ", {:.2} % at {port} Gbit/s", evaluation.accuracy(Some(port)));
    }
    text.push('\n');
    if let Some(worst) = evaluation.worst() {
        let _ = writeln!(
            text,
            "  worst row: {}, measured {:.3}, predicted {:.3} ({:+.2} %)",
            worst.case,
            worst.measured,
            worst.predicted,
            worst.percent()
        );
    }
    let _ = writeln!(
        text,
        "  bias {:+.2} %, half of the rows within {:.2} %, nine of ten within {:.2} %",
        evaluation.bias(),
        evaluation.quantile(0.5),
        evaluation.quantile(0.9)
    );
    text
}

fn json(evaluation: &Evaluation) -> serde_json::Value {
    serde_json::json!({
        "accuracy_pct": evaluation.accuracy(None),
        "bias_pct": evaluation.bias(),
        "worst": evaluation.worst(),
        "worst_pct": evaluation.worst().map(|w| w.percent()),
        "rows": evaluation.rows,
    })
}
