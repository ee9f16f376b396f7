//! `weir test`

use crate::cli::{CANNOT_ASK, Engine, NO, Test};
use crate::compile::Loaded;
use crate::lines::Lines;
use crate::load;
use crate::output::Messages;
use anyhow::Result;
use std::io::Write;
use std::sync::Arc;
use weir_interp::Interpreter;
use weir_ir::Program;
use weir_stf::{Report, RunError, RunOptions};
use weir_switch::Switch;

/// Runs packet tests.
pub fn test(arguments: &Test, messages: &Messages) -> Result<u8> {
    let texts: Vec<(String, String)> = arguments
        .tests
        .iter()
        .map(|path| Ok((path.display().to_string(), crate::input::text(path)?)))
        .collect::<Result<_>>()?;
    let Loaded { program, lines } = match crate::compile::runnable(&arguments.source, messages)? {
        Ok(loaded) => loaded,
        Err(code) => return Ok(code),
    };
    let program = if arguments.trace {
        program
    } else {
        load::optimized(&program)
    };
    let engines: &[Engine] = match arguments.engine {
        // What is traced is interpreted.
        _ if arguments.trace => &[Engine::Interp],
        Engine::Both => &[Engine::Interp, Engine::Jit],
        Engine::Interp => &[Engine::Interp],
        Engine::Jit => &[Engine::Jit],
    };
    let mut out = crate::output::stdout();
    let mut code = 0;
    for (name, text) in texts {
        let mut reports = Vec::new();
        for &engine in engines {
            match one(&program, &text, engine, arguments, messages)? {
                Ok(report) => reports.push((engine, report)),
                Err(RunError::Parse(errors)) => {
                    for error in errors {
                        writeln!(out, "{name}:{error}")?;
                    }
                    code = CANNOT_ASK;
                    break;
                }
                Err(error @ RunError::Load(_)) => {
                    writeln!(out, "{name}: {error}")?;
                    code = CANNOT_ASK;
                    break;
                }
            }
        }
        let failed = reports.iter().find(|(_, r)| !r.passed());
        let Some((engine, report)) = failed.or(reports.first()) else {
            continue;
        };
        for warning in &report.warnings {
            crate::compile::warn_once(warning, messages);
        }
        show(&mut out, &name, report, &lines, arguments)?;
        if failed.is_some() {
            code = code.max(NO);
            let others_pass = reports.iter().any(|(_, r)| r.passed());
            if others_pass && !arguments.json {
                writeln!(out, "{name}: only engine {} fails", engine.name())?;
            }
        }
        if let [(_, a), (_, b)] = reports.as_slice()
            && a.outputs != b.outputs
        {
            code = code.max(NO);
            writeln!(out, "{name}: the engines send different packets; please report this")?;
        }
    }
    Ok(code)
}

/// Runs a test by one engine. What cannot be compiled is interpreted, and stderr says why.
fn one(
    program: &Arc<Program>,
    text: &str,
    engine: Engine,
    arguments: &Test,
    messages: &Messages,
) -> Result<Result<Report, RunError>> {
    let config = load::config(&arguments.source.front_end);
    let switch = Switch::with_engine(Arc::new(Interpreter::new(program.clone())), config);
    let mut switch = match switch {
        Ok(switch) => switch,
        Err(error) => return Ok(Err(error.into())),
    };
    load::compile(&mut switch, engine, arguments.source.message_format, messages);
    crate::lanes::attach(std::slice::from_mut(&mut switch), &arguments.externs)?;
    let trace = arguments.trace;
    Ok(weir_stf::run_on(switch, text, &RunOptions { trace }))
}

fn show(out: &mut impl Write, name: &str, report: &Report, lines: &Lines, arguments: &Test) -> Result<()> {
    if arguments.json {
        let failures: Vec<_> = report
            .failures
            .iter()
            .map(|f| serde_json::json!({ "line": f.line, "expected": f.expected, "got": f.got, "detail": f.detail }))
            .collect();
        let value = serde_json::json!({
            "test": name, "passed": report.passed(), "packets": report.packets, "checks": report.checks, "failures": failures,
            "traces": report.traces.iter().map(|(line, t)| serde_json::json!({ "line": line, "trace": t.nodes() })).collect::<Vec<_>>(),
        });
        writeln!(out, "{value}")?;
        return Ok(());
    }
    for (line, tree) in &report.traces {
        writeln!(out, "{name}:{line}: trace")?;
        write!(out, "{}", crate::trace::render(tree, lines, arguments.color.is_on()))?;
    }
    // What reads found and which handles were given helps to understand a failure, not a success.
    for (line, note) in report.notes.iter().filter(|_| !report.passed()) {
        writeln!(out, "{name}:{line}: {note}")?;
    }
    for failure in &report.failures {
        writeln!(out, "{name}:{failure}")?;
    }
    let verdict = match (report.passed(), arguments.color.is_on()) {
        (true, false) => "passed",
        (false, false) => "FAILED",
        (true, true) => "\x1b[32mpassed\x1b[0m",
        (false, true) => "\x1b[1;31mFAILED\x1b[0m",
    };
    writeln!(
        out,
        "{name}: {verdict} ({} packets in, {} checks)",
        report.packets, report.checks
    )?;
    Ok(())
}
