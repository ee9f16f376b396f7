//! P4_16 source in, checked program and pipeline IR out.
//!
//! [`compile_file`] parses (by weir-syntax), checks names and types, and lowers the package that
//! `main` instantiates to a [`weir_ir::Program`]; it stops after checking where no target
//! description fits the program. What an architecture is comes in as data, a list of
//! [`weir_ir::target::Target`]: this crate knows no architecture, no engine and no control API
//! except P4Info, which is a description of the program ([`p4info`]).
//!
//! It deliberately does not optimise (weir-ir has the passes) and does not decide what an extern
//! does (weir-arch does).
//!
//! ```
//! use weir_compiler::{Options, compile_source};
//!
//! let result = compile_source("test.p4", "const bit<8> a = 16w1;", &Options::default(), &[]);
//! assert!(result.diagnostics.has_errors());
//! ```
#![forbid(unsafe_code)]

pub mod bfrt;
mod cancellation;
pub(crate) mod check;
pub(crate) mod lower;
mod main_package;
mod missing;
mod no_thread;
pub mod p4info;
pub mod tools;
pub(crate) mod types;

pub use cancellation::{CancelOnDrop, Cancellation};
pub use no_thread::NoThread;
use std::path::{Path, PathBuf};
use weir_ir::target::Target;
pub use weir_syntax::preprocess::Origin;
use weir_syntax::preprocess::{DiskLoader, FileLoader, SystemFiles};
use weir_syntax::source::{SourceMap, Span};
use weir_syntax::{Diagnostic, Diagnostics, Parsed};

/// The include files that come with weir: the core library, the externs besides those of
/// architectures, and what declares the architectures.
#[must_use]
pub fn system_files(targets: &[Target]) -> Vec<(&'static str, &'static str)> {
    let core = ("core.p4", include_str!("../../../p4/include/core.p4"));
    let declared = targets.iter().flat_map(|t| t.files.iter().copied());
    let externs = ("weir/externs.p4", include_str!("../../../p4/include/weir/externs.p4"));
    [core, externs].into_iter().chain(declared).collect()
}

/// How to compile.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where the program comes from.
    pub origin: Origin,
    /// Directories that `#include` searches.
    pub include_dirs: Vec<PathBuf>,
    /// `-D NAME[=VALUE]`
    pub defines: Vec<(String, Option<String>)>,
    /// The architecture by name; without one it is that of `main`, and of the file that the program
    /// includes.
    pub architecture: Option<&'static str>,
    /// Ends the compilation early, with the error `cancelled`. It is looked at between declarations
    /// when they are checked, and between instructions when they are lowered.
    pub cancellation: Cancellation,
}

/// What came of it.
pub struct Compilation {
    /// The source files, to show where diagnostics point.
    pub sources: SourceMap,
    /// Everything found.
    pub diagnostics: Diagnostics,
    /// The program, where there was no error and a target description fits `main`.
    pub program: Option<weir_ir::Program>,
    /// Why nothing was compiled, where the system started no thread for the compiler. The
    /// diagnostics have it as an error too.
    pub no_thread: Option<NoThread>,
    /// Name of the target description whose include file the program includes, `main` or not.
    pub architecture: Option<&'static str>,
}

impl Compilation {
    /// Returns the compilation unchanged.
    ///
    /// # Errors
    /// No thread could be started, so nothing was compiled.
    pub fn started(self) -> Result<Self, NoThread> {
        match &self.no_thread {
            Some(error) => Err(error.clone()),
            None => Ok(self),
        }
    }
}

/// Compiles a file.
#[must_use]
pub fn compile_file(path: &Path, options: &Options, targets: &[Target]) -> Compilation {
    on_large_stack(|| {
        let files = system_files(targets);
        let parsed = weir_syntax::parse_file(path, &syntax_options(options), &DiskLoader, SystemFiles(&files));
        finish(parsed, options, targets)
    })
    .unwrap_or_else(not_started)
}

/// Compiles a text; `#include` finds only the core library and the targets' files.
#[must_use]
pub fn compile_source(name: &str, text: &str, options: &Options, targets: &[Target]) -> Compilation {
    on_large_stack(|| {
        let files = system_files(targets);
        let parsed = weir_syntax::parse_source(name, text, &syntax_options(options), SystemFiles(&files));
        finish(parsed, options, targets)
    })
    .unwrap_or_else(not_started)
}

/// Compiles a text whose includes come from `loader`.
#[must_use]
pub fn compile_bytes(
    name: &str,
    text: Vec<u8>,
    options: &Options,
    loader: &(dyn FileLoader + Sync),
    targets: &[Target],
) -> Compilation {
    on_large_stack(move || {
        let files = system_files(targets);
        let parsed = weir_syntax::parse_bytes(name, text, &syntax_options(options), loader, SystemFiles(&files));
        finish(parsed, options, targets)
    })
    .unwrap_or_else(not_started)
}

fn syntax_options(options: &Options) -> weir_syntax::preprocess::Options {
    weir_syntax::preprocess::Options {
        origin: options.origin,
        include_dirs: options.include_dirs.clone(),
        defines: options.defines.clone(),
        ..Default::default()
    }
}

/// The parser bounds how deeply trees nest; walking the deepest still takes more than a thread's
/// usual stack in a debug build.
fn on_large_stack<R: Send>(f: impl FnOnce() -> R + Send) -> Result<R, NoThread> {
    const STACK: usize = 256 << 20;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, f);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(NoThread::new("the compiler", &error)),
        }
    })
}

/// What diagnostics say where no thread was started.
fn undiagnosed(no_thread: &NoThread) -> Diagnostics {
    let mut diagnostics = Diagnostics::default();
    diagnostics.push(Diagnostic::error("no-thread", Span::default(), no_thread.to_string()));
    diagnostics
}

fn not_started(no_thread: NoThread) -> Compilation {
    Compilation {
        sources: SourceMap::default(),
        diagnostics: undiagnosed(&no_thread),
        program: None,
        no_thread: Some(no_thread),
        architecture: None,
    }
}

fn finish(parsed: Parsed, options: &Options, targets: &[Target]) -> Compilation {
    let Parsed {
        program,
        sources,
        mut diagnostics,
        includes,
    } = parsed;
    let chosen = targets.iter().find(|t| options.architecture == Some(t.name));
    if let Some(other) = chosen.and_then(|chosen| main_package::other_architecture(&includes, targets, chosen)) {
        diagnostics.push(other);
    }
    let all = targets;
    let targets = chosen.map_or(targets, std::slice::from_ref);
    let included = |t: &&Target| {
        includes
            .iter()
            .any(|i| Path::new(&*i.name).file_stem().is_some_and(|s| s == t.name))
    };
    let architecture = targets.iter().find(included).map(|t| t.name);
    let (mut checked, found) = check::check(&program, &options.cancellation);
    // What did not parse declares nothing: a name that is missing then is no second mistake.
    let unreadable = diagnostics.has_errors();
    let explained = missing::explain(&checked, &includes, targets);
    if !unreadable {
        explained.errors.iter().for_each(|d| diagnostics.push(d.clone()));
    }
    diagnostics.extend_if(found, |d| !(explained.covers(d) || unreadable && d.code == "not-found"));
    let mut lowered = None;
    if !diagnostics.has_errors() {
        // Architectures may have packages of one name: then it is the one whose file was included.
        let fits = |t: &&Target| checked.main_package(t).is_some();
        let declared = |t: &&Target| included(t) && fits(t);
        match targets.iter().find(declared).or_else(|| targets.iter().find(fits)) {
            Some(target) => {
                let (program, found) = lower::lower(&mut checked, &sources, target, &options.cancellation);
                diagnostics.extend(found);
                lowered = program;
            }
            None => {
                let wrong = main_package::no_switch(&checked, &sources, all, architecture);
                wrong.into_iter().for_each(|d| diagnostics.push(d));
            }
        }
    }
    if options.cancellation.is_cancelled() {
        diagnostics = Diagnostics::default();
        let message = "the compilation was cancelled: its result is not needed any more";
        diagnostics.push(Diagnostic::error("cancelled", Span::default(), message));
        lowered = None;
    }
    Compilation {
        sources,
        diagnostics,
        program: lowered,
        no_thread: None,
        architecture,
    }
}
