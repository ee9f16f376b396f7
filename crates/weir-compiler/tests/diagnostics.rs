//! Programs with mistakes in them: every program of `tests/diagnostics` says in comments what is
//! reported where, `//~ error[CODE] MESSAGE` on the line itself or `//~^ error[CODE] MESSAGE` below
//! it, and must get exactly that. A message may go on with ` = help: …`, to announce the advice as
//! well.

mod announced;

use announced::{Findings, announced, differences};
use std::path::Path;
use weir_compiler::{Options, compile_file};
use weir_syntax::render;

/// What the compiler finds. Places in other files count as line 0.
fn found(path: &Path) -> Findings {
    let compiled = compile_file(path, &Options::default(), weir_arch::targets());
    let mut findings = Findings::new();
    for diagnostic in compiled.diagnostics.list() {
        let short = render::short(diagnostic, &compiled.sources);
        let place = short
            .strip_prefix(&*path.to_string_lossy())
            .and_then(|rest| rest.strip_prefix(':'));
        let line = place.and_then(|p| p.split(':').next()).and_then(|n| n.parse().ok());
        let what = match diagnostic.severity {
            weir_syntax::Severity::Error => "error",
            weir_syntax::Severity::Warning => "warning",
        };
        let help = diagnostic.help.iter().map(|h| format!(" = help: {h}"));
        let finding = format!("{what}[{}] {}", diagnostic.code, diagnostic.message) + &help.collect::<String>();
        findings.entry(line.unwrap_or(0)).or_default().push(finding);
    }
    findings
}

#[test]
fn every_mistake_is_reported_once_and_where_it_is() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut failures = Vec::new();
    let mut programs = 0;
    for file in std::fs::read_dir(directory).expect("the programs") {
        let path = file.expect("a file").path();
        if path.extension().is_none_or(|e| e != "p4") {
            continue;
        }
        programs += 1;
        let announced = announced(&std::fs::read_to_string(&path).expect("a program"));
        assert!(!announced.is_empty(), "{} announces nothing", path.display());
        for difference in differences(&announced, &found(&path)) {
            failures.push(format!("{}:{difference}", path.display()));
        }
    }
    assert!(programs > 15, "only {programs} programs");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
