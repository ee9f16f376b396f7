//! Calls of externs that cannot be executed where they stand: every program of `tests/externs` says
//! in comments what `weir check` warns of, in the form of weir-compiler's tests of diagnostics. To
//! `weir test`, what cannot run is an error.

#[path = "../../weir-compiler/tests/announced/mod.rs"]
mod announced;

use announced::{Findings, announced, differences};
use std::path::Path;
use std::process::Command;

const NOT_RUNNABLE: &str = "warning[not-runnable]";

/// The exit code of a command, and what it reports about a program.
fn reported(command: &str, program: &Path, rest: &[&str]) -> (Option<i32>, Findings) {
    let mut weir = Command::new(env!("CARGO_BIN_EXE_weir"));
    weir.args([command, "--message-format", "short"])
        .arg(program)
        .args(rest);
    let out = weir.output().unwrap();
    let mut findings = Findings::new();
    for line in String::from_utf8_lossy(&out.stderr).lines() {
        // FILE:LINE:COLUMN: KIND[CODE]: MESSAGE
        let rest = line.strip_prefix(&format!("{}:", program.display()));
        let parts = rest.and_then(|rest| {
            let mut parts = rest.splitn(3, ':');
            let number = parts.next()?.parse().ok()?;
            Some((number, parts.nth(1)?.trim().replacen("]: ", "] ", 1)))
        });
        let (number, finding) = parts.unwrap_or_else(|| panic!("{line}"));
        findings.entry(number).or_default().push(finding);
    }
    (out.status.code(), findings)
}

#[test]
fn calls_that_cannot_be_executed_are_reported_with_their_place() {
    let test = tempfile::NamedTempFile::with_suffix(".stf").unwrap();
    let test = test.path().to_str().unwrap();
    let (mut programs, mut failures) = (0, Vec::new());
    for file in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/externs")).unwrap() {
        let path = file.unwrap().path();
        programs += 1;
        let mut expected = announced(&std::fs::read_to_string(&path).unwrap());
        assert!(!expected.is_empty(), "{} announces nothing", path.display());
        let (code, found) = reported("check", &path, &[]);
        let mut all = differences(&expected, &found);
        assert_eq!(code, Some(0), "{}", path.display());

        for findings in expected.values_mut() {
            findings.retain(|f| f.starts_with(NOT_RUNNABLE));
            findings.iter_mut().for_each(|f| *f = f.replacen("warning", "error", 1));
        }
        let (code, found) = reported("test", &path, &[test]);
        all.extend(differences(&expected, &found));
        assert_eq!(code, Some(2), "{}", path.display());
        failures.extend(all.iter().map(|d| format!("{}:{d}", path.display())));
    }
    assert!(programs >= 4, "only {programs} programs");
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
