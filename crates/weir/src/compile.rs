//! Compiling for every command that needs a program, and `weir check`.

use crate::cli::{CANNOT_ASK, MessageFormat, NO, Source};
use crate::input;
use crate::lines::Lines;
use crate::output::Messages;
use anyhow::{Context, Result, anyhow, bail};
use std::sync::Arc;
use weir_compiler::{Compilation, Options, compile_bytes};
use weir_extern_api::Registry;
use weir_ir::Program;
use weir_syntax::preprocess::DiskLoader;
use weir_syntax::source::{self, Place, SourceMap, Span};
use weir_syntax::{Diagnostic, Severity, render};

/// Compiles and shows the diagnostics on stderr.
fn compile(source: &Source, messages: &Messages) -> Result<Compilation> {
    let chosen = source.front_end.arch.as_deref().map(target).transpose()?;
    let mut defines = Vec::new();
    if let Some(chosen) = chosen {
        let given = |&(name, value): &(&str, &str)| (name.to_string(), Some(value.to_string()));
        defines.extend(chosen.macros.iter().map(given));
    }
    // Later ones win: who defines such a macro otherwise means it.
    defines.extend(source.front_end.define.iter().map(|d| definition(d)));
    let options = Options {
        include_dirs: source.front_end.include.clone(),
        defines,
        architecture: chosen.map(|c| c.name),
        ..Options::default()
    };
    let text = input::bytes(&source.program)?;
    let name = source.program.to_string_lossy();
    let result = compile_bytes(&name, text, &options, &DiskLoader, weir_arch::targets()).started()?;
    show(
        result.diagnostics.list(),
        &result.sources,
        source.message_format,
        messages,
    );
    if result.diagnostics.dropped() > 0 && source.message_format == MessageFormat::Human {
        messages.line(format!("and {} more", result.diagnostics.dropped()));
    }
    Ok(result)
}

/// Writes diagnostics to stderr.
fn show(diagnostics: &[Diagnostic], sources: &SourceMap, format: MessageFormat, messages: &Messages) {
    let colours = messages.has_colours();
    for diagnostic in diagnostics {
        let text = match format {
            MessageFormat::Human => render::human(diagnostic, sources, colours),
            MessageFormat::Short => render::short(diagnostic, sources),
            MessageFormat::Json => render::json(diagnostic, sources),
        };
        messages.line(text.trim_end());
    }
}

/// What devices of the program's architecture cannot do, as diagnostics.
fn advice(program: &Program, sources: &SourceMap) -> Vec<Diagnostic> {
    let lines = sources.by_place();
    let all = weir_arch::advice(program).into_iter();
    let warnings = all.map(|advice| {
        let file = program.files.get(advice.loc.file as usize).map_or("", String::as_str);
        let span = word_at(sources, &lines, file, advice.loc.line, advice.loc.column);
        Diagnostic::warning(advice.code, span, advice.message).help(advice.help)
    });
    warnings.collect()
}

/// Why the program cannot be run, as warnings or errors.
fn obstacles(program: &Program, externs: &Registry, sources: &SourceMap, severity: Severity) -> Vec<Diagnostic> {
    let lines = sources.by_place();
    let all = weir_arch::unimplemented(program, externs).into_iter();
    let found = all.map(|missing| {
        let mut parts = missing.place().unwrap_or_default().rsplitn(3, ':');
        let mut number = || parts.next().and_then(|n| n.parse().ok()).unwrap_or(1);
        let (column, line) = (number(), number());
        let span = word_at(sources, &lines, parts.next().unwrap_or_default(), line, column);
        Diagnostic {
            severity,
            ..Diagnostic::error("not-runnable", span, missing.problem())
        }
    });
    found.collect()
}

/// The word at a place.
fn word_at(sources: &SourceMap, lines: &source::Lines<'_>, file: &str, line: u32, column: u32) -> Span {
    let place = Place {
        file: file.into(),
        line,
        column,
    };
    let lo = lines.position(&place).unwrap_or_default();
    let rest = sources.line_text(lo).get((lo - sources.line_start(lo)) as usize..);
    let word = rest
        .unwrap_or("")
        .chars()
        .take_while(|c| c.is_alphanumeric() || "_.".contains(*c));
    let hi = lo + word.map(|c| c.len_utf8() as u32).sum::<u32>();
    Span { lo, hi }
}

/// Says something that the user may not have meant, once.
pub fn warn_once(message: &str, messages: &Messages) {
    messages.once(format!("warning: {message}"));
}

/// What interpreting costs.
const COST: &str = "that takes some 30 times as long as machine code";

/// Says that a program is interpreted, why, and what that costs; of one reason once, however many
/// switches there are
/// for it.
pub fn interpreted(why: &dyn std::fmt::Display, format: MessageFormat, messages: &Messages) {
    say(&format!("interpreted: {why}; {COST}"), format, messages);
}

/// The same of what a compiled program leaves to the interpreter.
pub fn left_out(why: &dyn std::fmt::Display, format: MessageFormat, messages: &Messages) {
    say(&format!("interpreted in part: {why}; {COST}"), format, messages);
}

fn say(message: &str, format: MessageFormat, messages: &Messages) {
    messages.once(match format {
        MessageFormat::Json => {
            let message = format!("the program is {message}");
            serde_json::json!({ "severity": "warning", "code": "interpreted", "message": message }).to_string()
        }
        MessageFormat::Human | MessageFormat::Short => message.to_owned(),
    });
}

fn definition(text: &str) -> (String, Option<String>) {
    match text.split_once('=') {
        Some((name, value)) => (name.to_string(), Some(value.to_string())),
        None => (text.to_string(), None),
    }
}

fn target(wanted: &str) -> Result<&'static weir_ir::target::Target> {
    match weir_arch::targets().iter().find(|t| t.name == wanted) {
        Some(target) => Ok(target),
        None => bail!("there is no architecture `{wanted}`; weir has {}", weir_arch::known()),
    }
}

/// `weir check`
pub fn check(source: &Source, messages: &Messages) -> Result<u8> {
    let compilation = compile(source, messages)?;
    if compilation.diagnostics.has_errors() {
        return Ok(NO);
    }
    if let (None, Some(arch)) = (&compilation.program, &source.front_end.arch) {
        let error = Diagnostic::error(
            "main",
            Span::default(),
            format!("there is no `main` of the architecture {arch}"),
        );
        show(&[error], &compilation.sources, source.message_format, messages);
        return Ok(NO);
    }
    if let Some(program) = compilation.program {
        let mut warnings = advice(&program, &compilation.sources);
        warnings.extend(obstacles(
            &program,
            &source.front_end.externs,
            &compilation.sources,
            Severity::Warning,
        ));
        show(&warnings, &compilation.sources, source.message_format, messages);
    }
    Ok(0)
}

/// A program, and its source as far as it is known.
pub struct Loaded {
    /// The program.
    pub program: Arc<Program>,
    /// Lines for traces; none of a saved program.
    pub lines: Lines,
}

/// A program of an architecture, or the exit code that says why there is none.
pub fn program(source: &Source, messages: &Messages) -> Result<Result<Arc<Program>, u8>> {
    Ok(load(source, Wanted::Program, messages)?.map(|loaded| loaded.program))
}

/// As [`program`], for whoever runs it: what weir cannot run is an error.
pub fn runnable(source: &Source, messages: &Messages) -> Result<Result<Loaded, u8>> {
    load(source, Wanted::Runnable, messages)
}

/// As [`program`]; a file that has no `main` is an empty program.
pub fn program_or_declarations(source: &Source, messages: &Messages) -> Result<Result<Arc<Program>, u8>> {
    Ok(load(source, Wanted::Declarations, messages)?.map(|loaded| loaded.program))
}

/// What a command needs of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Declarations,
    Program,
    Runnable,
}

fn load(source: &Source, wanted: Wanted, messages: &Messages) -> Result<Result<Loaded, u8>> {
    let loaded = |program, lines| {
        let program = Arc::new(program);
        Ok(Ok(Loaded { program, lines }))
    };
    if source.program.extension().is_some_and(|e| e == "weir") {
        let text = input::text(&source.program)?;
        let program = weir_ir::parse::parse(&text)
            .with_context(|| format!("{} is no program of this version of weir", source.program.display()))?;
        if let Some(error) = weir_arch::nonconformities(&program).first() {
            bail!("{}: {error}", source.program.display());
        }
        return loaded(program, Lines::default());
    }
    if source.program.extension().is_some_and(|e| e == "json") {
        let text = input::entries(&source.program)?;
        let program =
            weir_server::container::decode(&text).map_err(|e| anyhow!("{}: {e}", source.program.display()))?;
        return loaded(program, Lines::default());
    }
    let compilation = compile(source, messages)?;
    if compilation.diagnostics.has_errors() {
        return Ok(Err(CANNOT_ASK));
    }
    match compilation.program {
        Some(program) => {
            if wanted == Wanted::Runnable {
                let errors = obstacles(
                    &program,
                    &source.front_end.externs,
                    &compilation.sources,
                    Severity::Error,
                );
                show(&errors, &compilation.sources, source.message_format, messages);
                if !errors.is_empty() {
                    return Ok(Err(CANNOT_ASK));
                }
            }
            loaded(program, Lines::new(compilation.sources))
        }
        None if wanted == Wanted::Declarations => match compilation.architecture {
            // Declarations only: there is nothing to run, and nothing for a control plane.
            Some(target) => {
                let program = Program {
                    target: target.to_string(),
                    ..Program::default()
                };
                loaded(program, Lines::default())
            }
            None => bail!("{} includes no architecture that weir knows", source.program.display()),
        },
        None => bail!(
            "{} has no `main` of an architecture that weir can run ({}); `weir check` only checks it",
            source.program.display(),
            weir_arch::known()
        ),
    }
}
