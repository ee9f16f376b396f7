//! `weir check`, and compiling for the other commands.

use crate::cli::{MessageFormat, Source};
use std::io::IsTerminal;
use std::process::ExitCode;
use weir_compiler::{Compilation, Options, compile_file};
use weir_syntax::render;

/// Compiles and shows the diagnostics on stderr.
pub fn compile(source: &Source) -> Compilation {
    let options = Options {
        include_dirs: source.include.clone(),
        defines: source
            .define
            .iter()
            .map(|d| match d.split_once('=') {
                Some((name, value)) => (name.to_string(), Some(value.to_string())),
                None => (d.clone(), None),
            })
            .collect(),
    };
    let result = compile_file(&source.program, &options, weir_arch::targets());
    let colours = std::io::stderr().is_terminal();
    for diagnostic in result.diagnostics.list() {
        match source.message_format {
            MessageFormat::Human => eprintln!("{}", render::human(diagnostic, &result.sources, colours)),
            MessageFormat::Short => eprintln!("{}", render::short(diagnostic, &result.sources)),
            MessageFormat::Json => eprintln!("{}", render::json(diagnostic, &result.sources)),
        }
    }
    result
}

/// `weir check`
pub fn check(source: &Source) -> ExitCode {
    if compile(source).diagnostics.has_errors() { ExitCode::from(1) } else { ExitCode::SUCCESS }
}
