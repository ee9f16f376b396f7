//! Runs the fuzz targets for a given time and keeps every input that broke something.

use anyhow::{Context, Result, bail};
use clap::Parser;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use weir_fuzz::{Mutator, TARGETS, binary, judge, judgements, replay, seeds, totals, with_includes};

/// An answer that takes more processor time counts as a hang.
const SLOW: Duration = Duration::from_secs(10);
/// So does one that takes longer by the clock, however busy the machine is.
const HANGS: Duration = Duration::from_secs(120);
/// A process that has grown beyond this has been made to eat memory.
const MEMORY_LIMIT_KIB: u64 = 4 << 20;

/// Feed weir hostile input
#[derive(Parser)]
#[command(after_help = "Example:\n  cargo run --release -p weir-fuzz -- --seconds 3600 --seeds path/to/p4/programs")]
struct Arguments {
    /// How long, over all targets
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only this target
    #[arg(long)]
    target: Option<String>,
    /// More good input to start from
    #[arg(long)]
    seeds: Option<PathBuf>,
    /// First number of the sequence of inputs
    #[arg(long, default_value_t = 1)]
    number: u64,
    /// Where to keep what broke something
    #[arg(long, default_value = "fuzz-findings")]
    findings: PathBuf,
    /// Stop after so many findings
    #[arg(long, default_value_t = 20)]
    most: u64,
    /// Run the target once, on an input that was kept
    #[arg(long, requires = "target")]
    input: Option<PathBuf>,
    /// Run this program and test by both engines instead
    #[arg(long, num_args = 2, value_names = ["P4", "STF"])]
    replay: Option<Vec<PathBuf>>,
    /// Judge this program and test by the oracle instead
    #[arg(long, num_args = 2, value_names = ["P4", "STF"])]
    oracle: Option<Vec<PathBuf>>,
    /// Rewrite the programs below these folders and run their packet tests instead
    #[arg(long, num_args = 1.., value_name = "DIR")]
    metamorphic: Option<Vec<PathBuf>>,
    /// Chooses what is rewritten
    #[arg(long, default_value_t = 1, requires = "metamorphic")]
    seed: u64,
    /// Only this rewrite
    #[arg(long, requires = "metamorphic")]
    rewrite: Option<String>,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(findings) => {
            say(std::io::stdout(), format!("{findings} findings"));
            ExitCode::from(1)
        }
        Err(error) => {
            say(std::io::stderr(), format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Says where the oracle and the interpreter differ, and what the oracle does not know.
fn judged(program: &str, test: &str) -> Result<u64> {
    let verdict = judge(program, test).map_err(anyhow::Error::msg)?;
    say(
        std::io::stdout(),
        format!("{} of {} packets judged", verdict.judged, verdict.packets),
    );
    if let Some(unknown) = &verdict.unknown {
        say(std::io::stdout(), format!("not known: {unknown}"));
    }
    if let Some(difference) = &verdict.difference {
        say(std::io::stdout(), format!("{difference}"));
    }
    Ok(verdict.difference.is_some().into())
}

fn run(arguments: &Arguments) -> Result<u64> {
    let read = |p: &PathBuf| std::fs::read_to_string(p).with_context(|| format!("cannot read {}", p.display()));
    if let Some([program, test]) = arguments.oracle.as_deref() {
        let program = with_includes(program).with_context(|| format!("cannot read {}", program.display()))?;
        return judged(&program, &read(test)?);
    }
    if let Some([program, test]) = arguments.replay.as_deref() {
        return Ok(match replay(&read(program)?, &read(test)?) {
            Ok(text) => {
                say(std::io::stdout(), text.to_string());
                0
            }
            Err(text) => {
                say(std::io::stdout(), text.to_string());
                1
            }
        });
    }
    if let Some(folders) = &arguments.metamorphic {
        return Ok(metamorphic(arguments, folders));
    }
    let chosen: Vec<_> = TARGETS
        .iter()
        .filter(|t| arguments.target.as_ref().is_none_or(|n| n == t.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TARGETS.iter().map(|t| t.name).collect();
        bail!("there is no such target; there are {}", names.join(", "));
    }
    if let Some(path) = &arguments.input {
        let input = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        for target in chosen {
            (target.run)(&input);
            say(std::io::stdout(), format!("{}: nothing found", target.name));
        }
        return Ok(0);
    }
    let share = Duration::from_secs(arguments.seconds) / chosen.len() as u32;
    let mut findings = 0;
    for target in chosen {
        if target.needs_binary && binary().is_none() {
            bail!(
                "{} needs the binary: cargo build -p weir, or WEIR=path/to/weir",
                target.name
            );
        }
        let mut mutator = Mutator::new(arguments.number, seeds(target.name, arguments.seeds.as_deref()));
        let started = Instant::now();
        let mut count = 0u64;
        let mut slowest = Duration::ZERO;
        while started.elapsed() < share {
            let input = (target.next)(&mut mutator);
            let running = arguments.findings.join(format!("{}-running", target.name));
            if target.fatal {
                std::fs::create_dir_all(&arguments.findings).context("cannot keep what is run")?;
                std::fs::write(running, &input).context("cannot keep what is run")?;
            }
            let (start, spent) = (Instant::now(), processor_time());
            let outcome = std::panic::catch_unwind(|| (target.run)(&input));
            let elapsed = start.elapsed();
            // Other processes may have had the processor for most of the time.
            let took = spent
                .zip(processor_time())
                .map_or(elapsed, |(from, to)| to.saturating_sub(from));
            slowest = slowest.max(took);
            count += 1;
            let grown = peak_memory_kib().is_some_and(|k| k > MEMORY_LIMIT_KIB);
            if outcome.is_err() || took > SLOW || elapsed > HANGS || grown {
                findings += 1;
                let why = if outcome.is_err() {
                    "panic"
                } else if grown {
                    "memory"
                } else {
                    "slow"
                };
                std::fs::create_dir_all(&arguments.findings).context("cannot keep findings")?;
                let name = format!("{}-{why}-{}-{findings}", target.name, arguments.number);
                let path = arguments.findings.join(name);
                let kept = (target.keep)(&input, &path).context("cannot keep findings")?;
                say(
                    std::io::stdout(),
                    format!("{}: {why}, kept in {}", target.name, kept.display()),
                );
                if findings >= arguments.most {
                    break;
                }
                if grown {
                    bail!("the process has grown beyond {MEMORY_LIMIT_KIB} KiB");
                }
            }
        }
        say(
            std::io::stdout(),
            format!(
                "{}: {count} inputs in {:.0} s, slowest {:.2} s",
                target.name,
                started.elapsed().as_secs_f64(),
                slowest.as_secs_f64()
            ),
        );
    }
    let totals = totals();
    if !totals.is_empty() {
        say(std::io::stdout(), format!("both engines: {totals}"));
    }
    let judgements = judgements();
    if !judgements.is_empty() {
        say(std::io::stdout(), format!("oracle: {judgements}"));
    }
    Ok(findings)
}

/// Writes a line. A reader that is gone does not end the run.
fn say(mut stream: impl Write, text: String) {
    let _ = writeln!(stream, "{text}");
}

/// Runs the packet tests of rewritten programs; says how many failed if those are too many.
fn metamorphic(arguments: &Arguments, folders: &[PathBuf]) -> u64 {
    let summary = weir_fuzz::metamorphic::run(&weir_fuzz::metamorphic::Options {
        folders: folders.to_vec(),
        seed: arguments.seed,
        rewrite: arguments.rewrite.clone(),
        most: None,
    });
    for (test, why) in &summary.skipped {
        say(
            std::io::stdout(),
            format!("not counted: {test}: {}", why.lines().next().unwrap_or("")),
        );
    }
    for (rewritten, why) in &summary.interpreted {
        say(std::io::stdout(), format!("only interpreted: {rewritten}: {why}"));
    }
    for failure in &summary.failures {
        say(std::io::stdout(), format!("{failure}"));
    }
    say(std::io::stdout(), format!("{summary}"));
    match summary.is_good() {
        true => 0,
        false => summary.failures.len().max(1) as u64,
    }
}

/// Processor time of this process and of the processes that it has waited for, to hundredths of a
/// second, where the system tells.
fn processor_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name before the last bracket may hold anything. After it, utime, stime, cutime and
    // cstime are the fields from 11 on (proc_pid_stat(5)), in ticks of 10 ms.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let ticks: u64 = fields.map(|field| field.parse::<u64>().unwrap_or(0)).sum();
    Some(Duration::from_millis(ticks * 10))
}

/// Largest memory of this process so far, where the system tells.
fn peak_memory_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|l| l.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
