//! Programs with mistakes in them: every program of `tests/diagnostics` says in comments what is reported
//! where, `//~ error[CODE] MESSAGE` on the line itself or `//~^ error[CODE] MESSAGE` below it, and must get
//! exactly that.

use std::collections::BTreeMap;
use std::path::Path;
use weir_compiler::{Options, compile_file};
use weir_syntax::render;

/// Findings by line: `error[CODE] MESSAGE`.
type Findings = BTreeMap<u32, Vec<String>>;

/// What the comments of a program announce. A `//~^` is about the last line before it that holds no `//~^`.
fn announced(text: &str) -> Findings {
    let mut findings = Findings::new();
    let mut line_of_code = 0;
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(message) = line.trim_start().strip_prefix("//~^ ") {
            findings.entry(line_of_code).or_default().push(message.trim().into());
            continue;
        }
        line_of_code = number;
        if let Some((_, message)) = line.split_once("//~ ") {
            findings.entry(number).or_default().push(message.trim().into());
        }
    }
    findings
}

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
        let finding = format!("{what}[{}] {}", diagnostic.code, diagnostic.message);
        findings.entry(line.unwrap_or(0)).or_default().push(finding);
    }
    findings
}

/// The lines on which the two disagree. Announced messages may be parts of those found.
fn differences(announced: &Findings, found: &Findings) -> Vec<String> {
    let mut differences = Vec::new();
    let lines: std::collections::BTreeSet<u32> = announced.keys().chain(found.keys()).copied().collect();
    for line in lines {
        let mut wanted: Vec<&String> = announced.get(&line).into_iter().flatten().collect();
        for finding in found.get(&line).into_iter().flatten() {
            match wanted.iter().position(|w| finding.starts_with(w.as_str())) {
                Some(i) => drop(wanted.remove(i)),
                None => differences.push(format!("{line}: not announced: {finding}")),
            }
        }
        differences.extend(wanted.iter().map(|w| format!("{line}: not found: {w}")));
    }
    differences
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
