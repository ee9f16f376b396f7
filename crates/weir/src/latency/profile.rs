//! `weir latency profile`: the paper's experiment on weir's own compiled engine.

mod figures;
mod grid;
mod points;
mod validation;

use super::arguments::Profile;
use super::counts::{self, TableCount};
use super::train;
use crate::bench::{Experiment, Plan, TableFill};
use crate::cli::NO;
use crate::load;
use anyhow::{Context, Result, bail, ensure};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use validation::{Outcome, Validation};
use weir_files::Readable;
use weir_ir::Program;
use weir_latency::data::{Data, Row};
use weir_latency::evaluate::{Evaluation, Residual};
use weir_latency::features::{Chip, Placement};
use weir_latency::fit::{self, PlpOptions};
use weir_latency::model::{Feature, Model, Target, Unit, Values};
use weir_latency::workload::Workload;
use weir_latency::{Features, Gress};

/// How long one run takes.
const RUN: Duration = Duration::from_millis(4);

/// What models of this engine look at.
const COLUMNS: &[Feature] = &[
    Feature::PacketSize,
    Feature::HeaderBytes,
    Feature::StackExtracts,
    Feature::MetadataBytes,
    Feature::RewrittenHeaders,
    Feature::ExactTables,
    Feature::LpmTables,
    Feature::TupleTables,
    Feature::ExactKeyBytes,
    Feature::PrefixMasks,
    Feature::TernaryMasks,
    Feature::MaskLogEntries,
    Feature::TableLogKib,
    Feature::RegisterAccesses,
    Feature::CounterCalls,
    Feature::DirectCounters,
    Feature::Hashes,
];

/// Measures the grid, trains, and validates.
pub fn profile(arguments: &Profile) -> Result<u8> {
    std::fs::create_dir_all(&arguments.output)
        .with_context(|| format!("cannot make the directory {}", arguments.output.display()))?;
    pin(arguments.cpu)?;
    let plan = Plan {
        run: RUN,
        runs: arguments.runs as usize,
    };
    let data = measured(arguments, plan)?;
    crate::output::message(format!("training on {} rows", data.rows.len()));
    let lr = fit::fit(&data, &fit::Kind::Lr, "weir-lr", Target::Weir)?;
    let plp = fit::fit(&data, &fit::Kind::Plp(PlpOptions::default()), "weir-plp", Target::Weir)?;
    for model in [&lr.model, &plp.model] {
        let path = arguments.output.join(format!("{}.json", model.name));
        weir_files::write(&path, model.to_json().as_bytes())?;
    }
    for (file, picture) in figures::all(&data) {
        weir_files::write(&arguments.output.join(file), picture.as_bytes())?;
    }
    let validated = validate(arguments, plan, [&lr.model, &plp.model])?;
    let mut out = crate::output::stdout();
    if arguments.json {
        let value = serde_json::json!({
            "rows": data.rows.len(),
            "weir-lr": { "leave_one_case_out_pct": lr.validation.evaluation.accuracy(None) },
            "weir-plp": { "leave_one_case_out_pct": plp.validation.evaluation.accuracy(None) },
            "validation": validated.rows,
        });
        writeln!(out, "{value:#}")?;
    } else {
        for fitted in [&lr, &plp] {
            writeln!(out, "{}, {}:", fitted.model.name, fitted.model.error.method)?;
            write!(out, "{}", train::summary(&fitted.validation.evaluation))?;
        }
        write!(out, "{}", validated.text())?;
    }
    Ok(if validated.rows.is_empty() { NO } else { 0 })
}

/// Keeps this thread on a processor.
fn pin(processor: Option<usize>) -> Result<()> {
    let there = weir_io::cores();
    let Some(chosen) = processor.or_else(|| there.last().copied()) else {
        return Ok(());
    };
    if !there.contains(&chosen) {
        bail!("there is no processor {chosen} for this process; there are {there:?}");
    }
    weir_io::pin_to_core(chosen).with_context(|| format!("cannot stay on processor {chosen}"))?;
    Ok(())
}

/// The rows of an earlier start. A last line without its end was cut, and is measured again.
fn earlier(path: &Path) -> Result<Data> {
    let text = weir_files::read_text(path, Readable::Streams, train::MAX_DATA)?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    Data::parse(&text[..whole]).with_context(|| path.display().to_string())
}

/// The rows of the grid: those of an earlier start, and the missing ones measured.
fn measured(arguments: &Profile, plan: Plan) -> Result<Data> {
    let path = arguments.output.join("measured.csv");
    let mut data = match path.exists() {
        true => earlier(&path)?,
        false => Data {
            features: COLUMNS.to_vec(),
            unit: Unit::Cycles,
            rows: Vec::new(),
        },
    };
    ensure!(
        data.features == COLUMNS && data.unit == Unit::Cycles,
        "{}: expected the columns of this version of weir; give another directory",
        path.display()
    );
    let points = points::all(arguments.quick);
    let mut rows = Vec::with_capacity(points.len());
    for (number, point) in points.iter().enumerate() {
        let mut row = unmeasured(point).with_context(|| point.name.clone())?;
        let known = data
            .rows
            .iter()
            .find(|known| known.case == row.case && known.values == row.values);
        match known {
            Some(known) => row = known.clone(),
            None => {
                row.measured = measure(point, plan).with_context(|| point.name.clone())?;
                progress(number + 1, points.len(), &point.name, row.measured);
                data.rows.push(row.clone());
                weir_files::write(&path, data.to_csv().as_bytes())?;
            }
        }
        rows.push(row);
    }
    data.rows = rows;
    Ok(data)
}

/// A line of progress: on a terminal always the same one.
fn progress(number: usize, of: usize, name: &str, cycles: f64) {
    const WIDTH: usize = 30;
    let done = number * WIDTH / of.max(1);
    let bar = format!("{}{}", "#".repeat(done), ".".repeat(WIDTH - done));
    crate::output::message(format!("[{bar}] {number}/{of} {name}: {cycles:.1} cycles"));
}

/// Compiles a program that needs no file.
pub fn compile(name: &str, text: &str) -> Result<Program> {
    let options = weir_compiler::Options::default();
    let compilation = weir_compiler::compile_source(name, text, &options, weir_arch::targets()).started()?;
    if let Some(first) = compilation.diagnostics.list().first() {
        bail!("{name}: {}", first.message);
    }
    compilation.program.with_context(|| format!("{name} has no `main`"))
}

/// The features of a point.
fn unmeasured(point: &grid::Generated) -> Result<Row> {
    let program = compile(&point.name, &point.source)?;
    let count = |fill: &TableFill| TableCount {
        table: fill.table.clone(),
        entries: fill.entries as u64,
        masks: fill
            .keys
            .iter()
            .map(|k| u64::from(k.masks))
            .max()
            .unwrap_or(1)
            .min(fill.entries as u64),
    };
    let counts: Vec<TableCount> = point.fills.iter().map(count).collect();
    let all = values(&program, &counts, point.size, &point.path)?;
    // Only what has a column comes back from the file.
    let mut kept = Values::new(0);
    for feature in COLUMNS {
        kept.set(*feature, all.get(*feature));
    }
    Ok(Row {
        case: point.name.clone(),
        values: kept,
        measured: 0.0,
    })
}

fn measure(point: &grid::Generated, plan: Plan) -> Result<f64> {
    let program = Arc::new(compile(&point.name, &point.source)?);
    let mut template = point.packet.clone();
    template.resize(point.size as usize, 0);
    let experiment = Experiment {
        program: load::optimized(&program),
        fills: point.fills.clone(),
        template,
        port: 1,
    };
    Ok(experiment.run(plan)?.0)
}

/// The features of a program whose tables hold this, for the path of its packets.
fn values(program: &Program, held: &[TableCount], size: u32, path: &str) -> Result<Values> {
    let mut ingress = Features::of(program, Gress::Ingress)?;
    let mut egress = Features::of(program, Gress::Egress)?;
    counts::note(held, &mut ingress);
    counts::note(held, &mut egress);
    let found = ingress.parser.paths.iter().find(|p| p.name == path);
    let found = found.with_context(|| format!("no path is called {path}"))?;
    let workload = Workload {
        placement: Placement::of(&ingress.dependencies, &ingress.tables, &Chip::TOFINO),
        ingress: &ingress,
        egress: Some(&egress),
    };
    let mut values = workload.values(found, 0);
    values.set(Feature::PacketSize, size.into());
    Ok(values)
}

/// What models predict of programs outside of the grid, and what was measured.
struct Validated {
    rows: Vec<ValidatedRow>,
}

#[derive(serde::Serialize)]
struct ValidatedRow {
    program: &'static str,
    /// Least, middle and most of the repetitions.
    cycles: [f64; 3],
    lr: f64,
    plp: f64,
}

fn validate(arguments: &Profile, plan: Plan, models: [&Model; 2]) -> Result<Validated> {
    let mut rows = Vec::new();
    let mut csv = format!(
        "program,cycles_least,cycles,cycles_most,weir_lr,weir_plp,{}\n",
        COLUMNS.iter().map(|f| f.name()).collect::<Vec<_>>().join(",")
    );
    for (number, validation) in validation::ALL.iter().enumerate() {
        let outcome = validation.measure(arguments.repetitions, plan)?;
        let row = row(validation, &outcome, models, &mut csv)?;
        progress(number + 1, validation::ALL.len(), validation.name, row.cycles[1]);
        rows.push(row);
    }
    weir_files::write(&arguments.output.join("validation.csv"), csv.as_bytes())?;
    Ok(Validated { rows })
}

fn row(validation: &Validation, outcome: &Outcome, models: [&Model; 2], csv: &mut String) -> Result<ValidatedRow> {
    let values =
        values(&outcome.program, &outcome.counts, outcome.size, validation.path).with_context(|| validation.name)?;
    let mut sorted = outcome.cycles.clone();
    sorted.sort_by(f64::total_cmp);
    let at = |index: usize| sorted.get(index).copied().unwrap_or_default();
    let cycles = [at(0), at(sorted.len() / 2), at(sorted.len().saturating_sub(1))];
    let [lr, plp] = [models[0].predict(&values)?.total(), models[1].predict(&values)?.total()];
    let features: Vec<String> = COLUMNS.iter().map(|f| values.get(*f).to_string()).collect();
    csv.push_str(&format!(
        "{},{},{},{},{lr},{plp},{}\n",
        validation.name,
        cycles[0],
        cycles[1],
        cycles[2],
        features.join(",")
    ));
    Ok(ValidatedRow {
        program: validation.name,
        cycles,
        lr,
        plp,
    })
}

impl Validated {
    fn evaluation(&self, predicted: impl Fn(&ValidatedRow) -> f64) -> Evaluation {
        let residual = |row: &ValidatedRow| Residual {
            case: row.program.to_owned(),
            port_gbps: 0,
            measured: row.cycles[1],
            predicted: predicted(row),
        };
        Evaluation {
            rows: self.rows.iter().map(residual).collect(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "programs outside of the grid:\n  {:22} {:>9} {:>19} {:>9} {:>9}\n",
            "", "cycles", "repetitions", "weir-lr", "weir-plp"
        );
        for row in &self.rows {
            let [least, middle, most] = row.cycles;
            text.push_str(&format!(
                "  {:22} {middle:>9.1} {:>19} {:>9.1} {:>9.1}\n",
                row.program,
                format!("{least:.1} to {most:.1}"),
                row.lr,
                row.plp
            ));
        }
        for (name, evaluation) in [
            ("weir-lr", self.evaluation(|r| r.lr)),
            ("weir-plp", self.evaluation(|r| r.plp)),
        ] {
            text.push_str(&format!("{name}:\n{}", train::summary(&evaluation)));
        }
        text
    }
}
