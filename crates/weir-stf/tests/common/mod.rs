//! Programs with packet tests beside them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_stf::{RunOptions, run_on};
use weir_switch::Switch;
use weir_syntax::render;

/// A folder of `tests`.
fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// `NAME.p4` of a folder, compiled.
pub fn compile(directory: &str, name: &str) -> Arc<weir_ir::Program> {
    let path = folder(directory).join(format!("{name}.p4"));
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    let errors: Vec<String> = compiled
        .diagnostics
        .list()
        .iter()
        .map(|d| render::short(d, &compiled.sources))
        .collect();
    let Some(program) = compiled.program else {
        panic!("{name} does not compile:\n{}", errors.join("\n"))
    };
    Arc::new(program)
}

/// Runs `NAME.stf` on `NAME.p4`, as it is, with all passes, and as machine code of both.
pub fn check(directory: &str, name: &str) {
    let path = folder(directory).join(format!("{name}.stf"));
    let text = std::fs::read_to_string(path).expect("a test beside the program");
    let program = compile(directory, name);
    let mut optimized = weir_ir::Program::clone(&program);
    let observes = weir_arch::observes(&optimized);
    weir_ir::passes::optimize(&mut optimized, &observes);
    let switch = |program| Switch::new(program).unwrap_or_else(|e| panic!("{name}: {e}"));
    let plain = [
        ("as compiled", switch(program)),
        ("optimized", switch(Arc::new(optimized))),
    ];
    let mut ways = Vec::new();
    for (what, plain) in plain {
        let mut compiled = plain.clone();
        ways.push((what.to_owned(), plain));
        // What cannot be compiled is interpreted.
        if compiled.compile().is_ok() {
            ways.push((format!("{what}, machine code"), compiled));
        }
    }
    for (what, switch) in ways {
        let report = run_on(switch, &text, &RunOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert!(report.passed(), "{name} {what}:\n{}", failures.join("\n"));
        assert!(report.checks > 0, "{name} checks nothing");
    }
}

/// A test for each program of a folder.
#[macro_export]
macro_rules! programs {
    ($directory:literal: $($name:ident),* $(,)?) => {
        $(#[test] fn $name() { common::check($directory, stringify!($name)); })*

        #[test]
        fn every_program_runs() {
            let mut known = vec![$(stringify!($name).to_owned()),*];
            known.sort();
            assert_eq!(common::names($directory), known);
        }
    };
}

/// Names of a folder's programs, sorted.
pub fn names(directory: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder(directory)).expect("the programs");
    let paths = files.map(|f| f.expect("a file").path());
    let programs = paths.filter(|p| p.extension().is_some_and(|e| e == "p4"));
    let mut names: Vec<String> = programs
        .filter_map(|p| p.file_stem().and_then(|n| n.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    names
}
