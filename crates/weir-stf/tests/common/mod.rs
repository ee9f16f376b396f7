//! What the tests of whole programs have in common: `FOLDER/NAME.p4` with the packet test
//! `FOLDER/NAME.stf`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_ir::Program;
use weir_stf::{RunOptions, run_on};
use weir_switch::{LaneUse, Switch};
use weir_syntax::render;

/// A folder of programs.
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A program, compiled without a warning.
pub fn compile(folder: &Path, name: &str) -> Program {
    let path = folder.join(format!("{name}.p4"));
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    // A program may say which warnings it is about.
    let text = std::fs::read_to_string(&path).expect("a program");
    let is_announced = |code: &str| text.lines().any(|l| l.strip_prefix("// Warned of: ") == Some(code));
    let unannounced = compiled.diagnostics.list().iter().filter(|d| !is_announced(d.code));
    let found: Vec<String> = unannounced.map(|d| render::short(d, &compiled.sources)).collect();
    let Some(program) = compiled.program else {
        panic!("{name} does not compile:\n{}", found.join("\n"))
    };
    assert!(found.is_empty(), "{name} compiles with warnings:\n{}", found.join("\n"));
    weir_ir::verify::verify(&program).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    program
}

/// Runs the test of a program on it as it is, with all passes, and as machine code of both, for one
/// packet and for eight.
#[allow(dead_code, reason = "not every test uses it")]
pub fn check(folder: &Path, name: &str) {
    let text = std::fs::read_to_string(folder.join(format!("{name}.stf"))).expect("a test beside the program");
    let program = compile(folder, name);
    let mut optimized = program.clone();
    let observes = weir_arch::observes(&optimized);
    weir_ir::passes::optimize(&mut optimized, &observes);
    for (what, program) in [("as compiled", program), ("optimized", optimized)] {
        let switch = Switch::new(Arc::new(program)).unwrap_or_else(|e| panic!("{name}: {e}"));
        let mut compiled = switch.clone();
        let mut ways = vec![(what.to_owned(), switch)];
        // What cannot be compiled is interpreted.
        if compiled.compile().is_ok() {
            let mut by_eights = compiled.clone();
            by_eights.set_lanes(LaneUse::Always);
            ways.push((format!("{what}, machine code for eight packets"), by_eights));
            compiled.set_lanes(LaneUse::Never);
            ways.push((format!("{what}, machine code"), compiled));
        }
        for (what, switch) in ways {
            let report = run_on(switch, &text, &RunOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
            assert!(report.passed(), "{name} {what}:\n{}", failures.join("\n"));
            assert!(report.checks > 0, "{name} checks nothing");
        }
    }
}
