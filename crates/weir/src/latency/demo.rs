//! `weir latency demo`: the paper's test cases, predicted from their source.

use super::arguments::Demo;
use crate::bench::{Line, Plot};
use anyhow::{Context, Result};
use std::io::Write;
use weir_latency::data::{Data, Row};
use weir_latency::evaluate::{Evaluation, Residual};
use weir_latency::features::{Chip, Features, Gress, Placement};
use weir_latency::fit::{self, CyclesVariant};
use weir_latency::model::{Feature, Target, Unit, shipped};
use weir_latency::workload::Workload;

/// A test case: its program, its packets' size, and ns that were measured at 10 and 100 Gbit/s
/// (Franco et al. 2024, Tables 4 and 6).
const CASES: &[(&str, u32, [f64; 2])] = &[
    ("tc1", 600, [313.926, 189.082]),
    ("tc2", 900, [376.01, 199.254]),
    ("tc3", 700, [326.292, 187.358]),
    ("tc4", 1300, [472.113, 224.233]),
    ("tc5", 1100, [425.988, 215.226]),
    ("tc6a", 200, [220.597, 161.946]),
    ("tc6b", 300, [244.301, 173.441]),
];

const PORTS: [u32; 2] = [10, 100];

/// Models that are compared.
const MODELS: [&str; 2] = ["paper-lr", "cycles"];

/// Predicts and compares.
pub fn demo(arguments: &Demo) -> Result<u8> {
    let mut evaluations: Vec<Evaluation> = MODELS.iter().map(|_| Evaluation { rows: Vec::new() }).collect();
    let mut rows = Vec::new();
    for (name, size, measured) in CASES {
        let file = format!("{name}.p4");
        let (_, text) = crate::bundled::PROGRAMS
            .iter()
            .find(|(bundled, _)| *bundled == file)
            .with_context(|| format!("{name} is not bundled"))?;
        let features = Features::of(&super::profile::compile(&file, text)?, Gress::Ingress)?;
        let workload = Workload {
            ingress: &features,
            egress: None,
            placement: Placement::of(&features.dependencies, &features.tables, &Chip::TOFINO),
        };
        let path = features.busiest_path().context("no path")?;
        for (gbps, measured) in PORTS.into_iter().zip(measured) {
            let mut values = workload.values(path, gbps);
            values.set(Feature::PacketSize, (*size).into());
            rows.push(Row {
                case: (*name).to_owned(),
                values: values.clone(),
                measured: *measured,
            });
            for (model, evaluation) in MODELS.iter().zip(&mut evaluations) {
                let model = shipped(model).with_context(|| format!("{model} does not ship"))?;
                evaluation.rows.push(Residual {
                    case: (*name).to_owned(),
                    port_gbps: gbps,
                    measured: *measured,
                    predicted: model.predict(&values)?.total(),
                });
            }
        }
    }
    weir_files::write(&arguments.svg, picture(&evaluations).as_bytes())?;
    show(arguments, &evaluations, &left_out(rows)?)?;
    Ok(0)
}

/// Accuracy of `cycles` on programs that it was not fitted to: with the terms that ship, and
/// nested, with terms that were chosen without the program.
fn left_out(rows: Vec<Row>) -> Result<[f64; 2]> {
    let is_column = |f: &Feature| *f != Feature::Constant;
    let data = Data {
        features: Feature::ALL.iter().copied().filter(is_column).collect(),
        unit: Unit::Ns,
        rows,
    };
    let accuracy = |variant| -> Result<f64> {
        let fitted = fit::fit(&data, &fit::Kind::Cycles(variant), "cycles", Target::Tofino)?;
        Ok(fitted.validation.evaluation.accuracy(None))
    };
    Ok([accuracy(Some(CyclesVariant::DEFAULT))?, accuracy(None)?])
}

fn show(arguments: &Demo, evaluations: &[Evaluation], left_out: &[f64; 2]) -> Result<()> {
    let mut out = crate::output::stdout();
    if arguments.json {
        let all: serde_json::Map<String, serde_json::Value> = MODELS
            .iter()
            .zip(evaluations)
            .map(|(model, e)| Ok(((*model).to_owned(), serde_json::to_value(e)?)))
            .collect::<Result<_>>()?;
        let mut value = serde_json::Value::Object(all);
        value["cycles"]["leave_one_case_out_pct"] = left_out[0].into();
        value["cycles"]["nested_pct"] = left_out[1].into();
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    writeln!(
        out,
        "Seven programs, their ingress latency on a Tofino in ns: measured by the paper, and predicted"
    )?;
    writeln!(out, "from their source by {} and {}.\n", MODELS[0], MODELS[1])?;
    writeln!(
        out,
        "  {:6} {:>7} {:>10} {:>10} {:>10}",
        "", "Gbit/s", "measured", MODELS[0], MODELS[1]
    )?;
    for (i, row) in evaluations[0].rows.iter().enumerate() {
        writeln!(
            out,
            "  {:6} {:>7} {:>10.1} {:>10.1} {:>10.1}",
            row.case, row.port_gbps, row.measured, row.predicted, evaluations[1].rows[i].predicted
        )?;
    }
    for (model, evaluation) in MODELS.iter().zip(evaluations) {
        writeln!(out, "  {model}: accuracy {:.2} %", evaluation.accuracy(None))?;
    }
    writeln!(
        out,
        "\n`cycles` has one number per port speed that was fitted to these rows. Without both rows of the\n\
         program that it predicts, its accuracy is {:.2} % (leave-one-case-out), and {:.2} % if its terms\n\
         are chosen without them, too (nested). The paper's best, 98.22 %, uses no measurements of the\n\
         other programs. Seven programs are a small sample.\n\
         Saved {}. Next: weir latency predict YOURS.p4, and weir latency explain YOURS.p4",
        left_out[0],
        left_out[1],
        arguments.svg.display()
    )?;
    Ok(())
}

fn picture(evaluations: &[Evaluation]) -> String {
    let measured = || evaluations[0].rows.iter().map(|r| r.measured);
    let (least, most) = (measured().fold(f64::INFINITY, f64::min), measured().fold(0.0, f64::max));
    let mut lines = vec![Line::new("equal", vec![(least, least), (most, most)])];
    for (model, evaluation) in MODELS.iter().zip(evaluations) {
        let mut points: Vec<(f64, f64)> = evaluation.rows.iter().map(|r| (r.measured, r.predicted)).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        lines.push(Line::scattered(model, points));
    }
    let plot = Plot {
        title: "Ingress latency of the paper's test cases on a Tofino".to_owned(),
        x: "measured, ns".to_owned(),
        y: "predicted, ns".to_owned(),
        lines,
    };
    plot.svg()
}
