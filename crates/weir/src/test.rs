//! `weir test`

use crate::cli::Test;
use std::process::ExitCode;
use std::sync::Arc;

/// Runs packet tests.
pub fn test(arguments: &Test) -> ExitCode {
    let compilation = crate::compile::compile(&arguments.source);
    if compilation.diagnostics.has_errors() {
        return ExitCode::from(2);
    }
    let Some(program) = compilation.program else {
        eprintln!("error: no architecture that weir knows fits this program");
        return ExitCode::from(2);
    };
    let program = Arc::new(program);
    let mut failed = false;
    for path in &arguments.tests {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("error: {}: {error}", path.display());
                return ExitCode::from(2);
            }
        };
        match weir_stf::run(program.clone(), &text, &weir_stf::RunOptions { trace: arguments.trace, ..Default::default() }) {
            Ok(report) => {
                for failure in &report.failures {
                    println!("{}:{failure}", path.display());
                }
                failed |= !report.failures.is_empty();
            }
            Err(error) => {
                println!("{}: {error}", path.display());
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
