//! Running the tests of a program by both engines.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_source};
use weir_extern_api::Folder;
use weir_interp::Interpreter;
use weir_ir::Program;
use weir_stf::{Report, RunOptions, run_on};
use weir_switch::{Switch, SwitchConfig};

/// Why a program does not do what its tests say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The front end refuses it.
    Rejected(String),
    /// No switch runs it.
    NotLoaded(String),
    /// A test cannot be read.
    NoTest(String),
    /// A test fails.
    Failed(String),
    /// The tests pass, but other packets are sent than before.
    Packets(String),
    /// Something panicked.
    Panicked(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, text) = match self {
            Trouble::Rejected(text) => ("the front end refuses it", text),
            Trouble::NotLoaded(text) => ("no switch runs it", text),
            Trouble::NoTest(text) => ("the test cannot be read", text),
            Trouble::Failed(text) => ("the test fails", text),
            Trouble::Packets(text) => ("other packets are sent", text),
            Trouble::Panicked(text) => ("panic", text),
        };
        write!(f, "{what}: {text}")
    }
}

/// Packets that a test made the switch send.
pub(crate) type Sent = Vec<(u32, Vec<u8>)>;

/// What the tests of a program came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The packets of each test, or why it failed.
    pub tests: Vec<Result<Sent, Trouble>>,
    /// Why there is no machine code.
    pub unsupported: Option<String>,
}

/// Runs the tests of a program. The files that it names are beside `path`.
pub(crate) fn run(source: &str, tests: &[(String, String)], path: &Path) -> Result<Run, Trouble> {
    catch_unwind(AssertUnwindSafe(|| run_all(source, tests, path))).unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Err(Trouble::Panicked(text.unwrap_or_default()))
    })
}

fn compiled(source: &str) -> Result<Program, Trouble> {
    let compilation = compile_source("case.p4", source, &Options::default(), weir_arch::targets());
    let list = compilation.diagnostics.list();
    compilation.program.ok_or_else(|| {
        let errors = list.iter().filter(|d| d.severity == weir_syntax::Severity::Error);
        let short = errors.map(|d| weir_syntax::render::short(d, &compilation.sources));
        Trouble::Rejected(short.take(3).collect::<Vec<_>>().join("\n"))
    })
}

fn run_all(source: &str, tests: &[(String, String)], path: &Path) -> Result<Run, Trouble> {
    let mut program = compiled(source)?;
    let observes = weir_arch::observes(&program);
    weir_ir::passes::optimize(&mut program, &observes);
    let mut externs = weir_externs::registry();
    externs.set_files(Folder::of_program(path));
    let config = SwitchConfig {
        externs,
        ..SwitchConfig::default()
    };
    let interpreter = Switch::with_engine(Arc::new(Interpreter::new(Arc::new(program))), config)
        .map_err(|e| Trouble::NotLoaded(e.to_string()))?;
    let mut machine_code = interpreter.clone();
    // What has no machine code is interpreted twice, as `weir test --engine both` does.
    let unsupported = machine_code.compile().err().map(|e| e.to_string());
    let tests = tests.iter().map(|(name, text)| {
        let a = one(&interpreter, name, text, "interpreter")?;
        let b = one(&machine_code, name, text, "machine code")?;
        match a == b {
            true => Ok(a),
            false => Err(Trouble::Failed(format!("{name}: the engines send different packets"))),
        }
    });
    Ok(Run {
        tests: tests.collect(),
        unsupported,
    })
}

fn one(switch: &Switch, name: &str, text: &str, engine: &str) -> Result<Sent, Trouble> {
    let report = run_on(switch.clone(), text, &RunOptions::default()).map_err(|e| Trouble::NoTest(e.to_string()))?;
    if !report.passed() {
        return Err(Trouble::Failed(format!("{name}, {engine}: {}", failures(&report))));
    }
    Ok(report.outputs.into_iter().map(|o| (o.port, o.bytes)).collect())
}

fn failures(report: &Report) -> String {
    let texts: Vec<String> = report.failures.iter().take(3).map(ToString::to_string).collect();
    texts.join("\n")
}
