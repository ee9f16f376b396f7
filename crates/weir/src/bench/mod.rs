//! `weir bench`: what a packet costs, with packets in memory and no I/O.

mod case;
mod control;
mod experiment;
mod fill;
mod measure;
mod pool;
mod random;
mod report;
mod rig;
mod stages;
mod suite;
mod svg;
mod sweep;
mod waiting;
mod workers;
mod workload;

pub use case::Case;
pub use control::Control;
pub use experiment::{Experiment, KeyAt, TableFill, bundled};
pub use measure::Plan;
pub use svg::{Line, Plot};
pub use sweep::Sweep;
pub use waiting::Waiting;
pub use workload::{Mix, Spread};

use crate::cli::{Bench, BenchWhat, Engine, MessageFormat, NO, Source, Versus};
use crate::output::Messages;
use crate::{load, packets};
use anyhow::{Result, bail, ensure};
use case::Load;
use report::Report;
use rig::Side;
use stages::Stages;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use weir_io::{Batch, Device, Generator, GeneratorSpec};

/// Compilations of which the median is reported.
const COMPILATIONS: usize = 5;

/// How a case is measured.
struct How {
    engine: Side,
    versus: Option<Side>,
    /// Threads; where there is only one of them, nothing is said about workers unless asked for.
    workers: Option<usize>,
    plan: Plan,
    compile: Vec<f64>,
}

/// Measures.
pub fn bench(arguments: &Bench, messages: &Messages) -> Result<u8> {
    match &arguments.what {
        Some(BenchWhat::Control(arguments)) => return control::control(arguments),
        Some(BenchWhat::Async(arguments)) => return waiting::waiting(arguments),
        None => {}
    }
    ensure!(
        arguments.seconds > 0.0 && arguments.seconds < 3600.0,
        "--seconds must be more than 0 and less than 3600"
    );
    let plan = Plan {
        run: Duration::from_secs_f64(arguments.seconds),
        runs: arguments.runs as usize,
    };
    if arguments.suite {
        let suite = suite::run(plan, arguments.vector as usize)?;
        let text = if arguments.json {
            format!("{}\n", suite.json())
        } else {
            suite.text()
        };
        crate::output::stdout().write_all(text.as_bytes())?;
        return Ok(if suite.failures() == 0 { 0 } else { NO });
    }
    let Some(case) = case(arguments, messages)? else {
        return Ok(crate::cli::CANNOT_ASK);
    };
    let how = how(arguments, &case, plan)?;
    match &arguments.sweep {
        None => {
            let report = measure(&case, &how, true)?;
            let text = if arguments.json {
                format!("{}\n", report.json())
            } else {
                report.text()
            };
            crate::output::stdout().write_all(text.as_bytes())?;
        }
        Some(sweep) => swept(arguments, sweep, &case, how)?,
    }
    Ok(0)
}

/// What the arguments ask for; `None` where the program does not compile, which has been said.
fn case(arguments: &Bench, messages: &Messages) -> Result<Option<Case>> {
    let Some(path) = &arguments.program else {
        bail!("give a program, or --suite");
    };
    let name = path
        .file_stem()
        .map(|n| n.to_string_lossy().into_owned())
        .unwrap_or_default();
    let count = match (arguments.table_entries, arguments.flows) {
        (None, Some(flows)) => flows,
        _ => arguments.pool,
    };
    if arguments.packet.is_none() {
        check_memory(count as usize, arguments.size as usize)?;
    }
    let load = match arguments.table_entries {
        Some(entries) => {
            let mix = arguments.mix.unwrap_or_default();
            workload::check(&name, entries as usize, mix)?;
            Load::Made {
                entries: entries as usize,
                mix,
            }
        }
        None => Load::Given {
            entries: arguments.entries.clone(),
            packets: Arc::new(given(arguments)?),
            port: arguments.port,
        },
    };
    let source = Source {
        program: path.clone(),
        front_end: arguments.front_end.clone(),
        message_format: MessageFormat::Human,
    };
    let Ok(loaded) = crate::compile::runnable(&source, messages)? else {
        return Ok(None);
    };
    load::check_port(&loaded.program, arguments.port)?;
    Ok(Some(Case {
        name,
        program: load::optimized(&loaded.program),
        load,
        externs: arguments.front_end.externs.clone(),
        pool: arguments.pool as usize,
        flows: arguments.flows.map(|f| f as usize),
        size: arguments.size as usize,
        spread: arguments.distribution,
        vector: arguments.vector as usize,
        messages: messages.clone(),
    }))
}

fn how(arguments: &Bench, case: &Case, plan: Plan) -> Result<How> {
    let mut compile = Vec::new();
    let mut engine = Side::Interp;
    if arguments.engine != Engine::Interp {
        match case.compile_times(COMPILATIONS) {
            Ok(times) => (compile, engine) = (times, Side::Jit),
            Err(error) => crate::output::message(format!("interpreted: {error}")),
        }
    }
    let versus = match (arguments.vs, arguments.engine) {
        (Some(Versus::Baseline), _) => Some(Side::Baseline),
        (Some(Versus::Interp), _) | (None, Engine::Both) => Some(Side::Interp).filter(|s| *s != engine),
        (None, _) => None,
    };
    let workers = Some(arguments.workers as usize).filter(|w| *w > 1);
    let sweeps_workers = arguments.sweep.as_ref().is_some_and(|s| s.what == sweep::What::Workers);
    if (workers.is_some() || sweeps_workers) && versus.is_some() {
        bail!("several workers are compared with one of them; leave out --vs (and --engine both)");
    }
    Ok(How {
        engine,
        versus,
        workers,
        plan,
        compile,
    })
}

/// Measures a case.
fn measure(case: &Case, how: &How, with_stages: bool) -> Result<Report> {
    let sides: Vec<Side> = [how.engine].into_iter().chain(how.versus).collect();
    let mut report = Report {
        case: case.clone(),
        measured: Vec::new(),
        together: None,
        frequency: 0.0,
        sent: 0.0,
        compile: how.compile.clone(),
        stages: None,
    };
    if let Some(workers) = how.workers {
        let (together, sent) = workers::measure(case, how.engine, workers, how.plan)?;
        (report.together, report.sent) = (Some(together), sent);
        return Ok(report);
    }
    let mut rigs = [case.rig(&sides)?];
    report.sent = rigs[0].check(&sides)?;
    let who: Vec<(usize, Side)> = sides.iter().map(|s| (0, *s)).collect();
    (report.measured, report.frequency) = measure::measure(&mut rigs, &who, how.plan);
    if with_stages && how.engine == Side::Jit {
        report.stages = Some(Stages::of(&mut rigs[0], how.plan.run));
    }
    Ok(report)
}

/// Measures a case for each value of what is swept over.
fn swept(arguments: &Bench, sweep: &Sweep, case: &Case, mut how: How) -> Result<()> {
    // All values are looked at before anything is measured.
    let cases: Vec<Case> = sweep
        .values
        .iter()
        .map(|v| sweep.apply(case, *v))
        .collect::<Result<_>>()?;
    let mut reports = Vec::with_capacity(cases.len());
    for (case, value) in cases.iter().zip(&sweep.values) {
        crate::output::message(format!("[{}/{}] {}", reports.len() + 1, cases.len(), case.about()));
        if sweep.what == sweep::What::Workers {
            how.workers = Some(*value);
        }
        reports.push(measure(case, &how, false)?);
    }
    if let Some(path) = &arguments.svg {
        let svg = sweep.plot(&case.name, &reports).svg();
        weir_files::write(path, svg.as_bytes())?;
    }
    let mut out = crate::output::stdout();
    if arguments.json {
        let points: Vec<_> = sweep
            .values
            .iter()
            .zip(&reports)
            .map(|(value, report)| serde_json::json!({ "value": value, "report": report.json() }))
            .collect();
        writeln!(
            out,
            "{}",
            serde_json::json!({ "sweep": sweep.what.name(), "points": points })
        )?;
    } else {
        write!(out, "{}\n{}", case.name, sweep.text(&reports))?;
    }
    Ok(())
}

/// Most bytes of memory for packets that are generated.
const MAX_GENERATED: u64 = 4 << 30;

/// Refuses packets that would take too much memory.
fn check_memory(count: usize, size: usize) -> Result<()> {
    let bytes = count as u64 * pool::bytes_per_packet(size) as u64;
    if bytes > MAX_GENERATED {
        bail!(
            "{count} packets of {size} bytes take {} MiB, more than {}: \
             choose a smaller --size, --pool or number of --flows",
            bytes >> 20,
            MAX_GENERATED >> 20
        );
    }
    Ok(())
}

/// Packets that are not made for the tables of a program.
fn given(arguments: &Bench) -> Result<Vec<Vec<u8>>> {
    let packets = match &arguments.packet {
        Some(packet) => packets::all(packet)?,
        None => generated(arguments)?,
    };
    if packets.is_empty() {
        bail!("{} holds no packet", arguments.packet.as_deref().unwrap_or("the pool"));
    }
    Ok(packets)
}

fn generated(arguments: &Bench) -> Result<Vec<Vec<u8>>> {
    let count = arguments.flows.unwrap_or(arguments.pool);
    let text = format!("size={},flows={count},count={count}", arguments.size);
    let spec: GeneratorSpec = text.parse()?;
    let mut generator = Generator::new(spec);
    let mut packets = Vec::new();
    let mut batch = Batch::new(256);
    while !generator.is_exhausted() {
        batch.clear();
        if generator.receive(&mut batch)? == 0 {
            break;
        }
        packets.extend(batch.iter().map(|f| f.data.to_vec()));
    }
    Ok(packets)
}
