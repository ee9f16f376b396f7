//! Programs that rely on what devices of their architecture cannot do: the comments of every
//! program in `tests/advice` list exactly the expected warnings.

mod announced;

use announced::{Findings, announced, differences};
use std::path::Path;
use weir_compiler::{Options, compile_file};

/// What a program that compiles is told of devices. Places in other files count as line 0.
fn found(path: &Path) -> Findings {
    let compiled = compile_file(path, &Options::default(), weir_arch::targets());
    let program = compiled.program.expect("it compiles");
    let mut findings = Findings::new();
    for advice in weir_arch::advice(&program) {
        let is_own = Path::new(&program.files[advice.loc.file as usize]) == path;
        let line = if is_own { advice.loc.line } else { 0 };
        let finding = format!("warning[{}] {}", advice.code, advice.message);
        findings.entry(line).or_default().push(finding);
    }
    findings
}

#[test]
fn what_hardware_cannot_do_is_told_where_it_is() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/advice");
    let mut failures = Vec::new();
    for file in std::fs::read_dir(directory).expect("the programs") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|e| e == "p4") {
            let announced = announced(&std::fs::read_to_string(&path).expect("a program"));
            let lines = differences(&announced, &found(&path)).into_iter();
            failures.extend(lines.map(|line| format!("{}:{line}", path.display())));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
