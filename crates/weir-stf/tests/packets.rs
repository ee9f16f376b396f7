//! Every program of `tests/language` with its packet test: what the statements and expressions of P4
//! mean, seen from outside.

use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_stf::{RunOptions, run_on};
use weir_switch::Switch;
use weir_syntax::render;

/// Runs `NAME.stf` on `NAME.p4`, as it is, with all passes, and as machine code.
fn check(name: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
    let path = directory.join(format!("{name}.p4"));
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    let found: Vec<String> = compiled
        .diagnostics
        .list()
        .iter()
        .map(|d| render::short(d, &compiled.sources))
        .collect();
    let Some(program) = compiled.program else {
        panic!("{name} does not compile:\n{}", found.join("\n"))
    };
    assert!(found.is_empty(), "{name} compiles with warnings:\n{}", found.join("\n"));
    weir_ir::verify::verify(&program).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let text = std::fs::read_to_string(path.with_extension("stf")).expect("a test beside the program");
    let mut optimized = program.clone();
    let observes = weir_arch::observes(&optimized);
    weir_ir::passes::optimize(&mut optimized, &observes);
    let switch = |program| Switch::new(Arc::new(program)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let (plain, optimized) = (switch(program), switch(optimized));
    let mut compiled = optimized.clone();
    let mut ways = vec![("as compiled", plain), ("optimized", optimized)];
    // What cannot be compiled is interpreted.
    if compiled.compile().is_ok() {
        ways.push(("machine code", compiled));
    }
    for (what, switch) in ways {
        let report = run_on(switch, &text, &RunOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert!(report.passed(), "{name} {what}:\n{}", failures.join("\n"));
        assert!(report.checks > 0, "{name} checks nothing");
    }
}

macro_rules! programs {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_program_runs() {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/language");
            for file in std::fs::read_dir(directory).expect("the programs") {
                let path = file.expect("a file").path();
                if path.extension().is_some_and(|e| e == "p4") {
                    let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
                    assert!([$(stringify!($name)),*].contains(&name), "{name} is not in the list above");
                }
            }
        }
    };
}

programs!(
    aggregates, arithmetic, blocks, calls, entries, enums, exits, generics, loops, parsing, slices, stacks, switches,
    tables, unions, varbits, wide
);
