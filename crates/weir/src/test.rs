//! `weir test`

use crate::cli::{CANNOT_ASK, NO, Test};
use crate::load;
use anyhow::{Context, Result};
use std::io::Write;
use weir_stf::{Report, RunError, RunOptions};

/// Runs packet tests.
pub fn test(arguments: &Test) -> Result<u8> {
    load::require(arguments.engine)?;
    let texts: Vec<(String, String)> = arguments
        .tests
        .iter()
        .map(|path| {
            let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            Ok((path.display().to_string(), text))
        })
        .collect::<Result<_>>()?;
    let program = match crate::compile::program(&arguments.source)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let program = if arguments.trace {
        program
    } else {
        load::optimized(&program)
    };
    let mut out = std::io::stdout().lock();
    let mut code = 0;
    for (name, text) in texts {
        match weir_stf::run(program.clone(), &text, &RunOptions { trace: arguments.trace }) {
            Ok(report) => {
                show(&mut out, &name, &report, arguments)?;
                if !report.passed() {
                    code = code.max(NO);
                }
            }
            Err(RunError::Parse(errors)) => {
                for error in errors {
                    writeln!(out, "{name}:{error}")?;
                }
                code = CANNOT_ASK;
            }
            Err(error @ RunError::Load(_)) => {
                writeln!(out, "{name}: {error}")?;
                code = CANNOT_ASK;
            }
        }
    }
    Ok(code)
}

fn show(out: &mut impl Write, name: &str, report: &Report, arguments: &Test) -> Result<()> {
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
        write!(out, "{}", crate::trace::render(tree, false))?;
    }
    // What reads found and which handles were given helps to understand a failure, not a success.
    for (line, note) in report.notes.iter().filter(|_| !report.passed()) {
        writeln!(out, "{name}:{line}: {note}")?;
    }
    for failure in &report.failures {
        writeln!(out, "{name}:{failure}")?;
    }
    let verdict = if report.passed() { "passed" } else { "FAILED" };
    writeln!(
        out,
        "{name}: {verdict} ({} packets in, {} checks)",
        report.packets, report.checks
    )?;
    Ok(())
}
