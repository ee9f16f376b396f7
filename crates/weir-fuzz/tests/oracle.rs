//! The oracle on the packet tests of the repository, as far as it knows what happens in them.

use std::path::{Path, PathBuf};
use weir_fuzz::{judge, with_includes};

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder");
    let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// Programs below a folder with their tests: a test has the name of its program, perhaps with
/// something after it.
fn cases(folder: &str) -> Vec<(PathBuf, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut all = Vec::new();
    files(&folder, &mut all);
    let has = |path: &Path, extension: &str| path.extension().is_some_and(|e| e == extension);
    let stem = |path: &Path| path.file_stem().and_then(|s| s.to_str()).unwrap_or_default().to_owned();
    let mut cases = Vec::new();
    for program in all.iter().filter(|p| has(p, "p4")) {
        for test in all.iter().filter(|t| has(t, "stf") && t.parent() == program.parent()) {
            let is_its_own = stem(test)
                .strip_prefix(&stem(program))
                .is_some_and(|r| r.is_empty() || r.starts_with('-'));
            if is_its_own {
                cases.push((program.clone(), test.clone()));
            }
        }
    }
    cases
}

/// Judges all tests; how many packets were judged, and of how many tests all packets.
fn judged(folder: &str) -> (u64, u64) {
    let (mut packets, mut whole) = (0, 0);
    for (program, test) in cases(folder) {
        // The oracle knows the externs of architectures only.
        if std::fs::read_to_string(&program).is_ok_and(|text| text.contains("<weir/externs.p4>")) {
            continue;
        }
        let source = with_includes(&program).expect("the program");
        let text = std::fs::read_to_string(&test).expect("the test");
        let verdict = judge(&source, &text).unwrap_or_else(|e| panic!("{}: {e}", test.display()));
        if let Some(difference) = &verdict.difference {
            panic!("{}: {difference}", test.display());
        }
        packets += verdict.judged;
        whole += u64::from(verdict.unknown.is_none());
    }
    (packets, whole)
}

#[test]
fn tests_of_the_language_are_judged_as_they_should_be() {
    let (packets, whole) = judged("crates/weir-stf/tests/language");
    assert!(packets >= 495 && whole >= 19, "{packets} packets, {whole} tests");
}

#[test]
fn tests_of_v1model_are_judged_as_they_should_be() {
    let (packets, whole) = judged("crates/weir-stf/tests/v1model");
    assert!(packets >= 133 && whole >= 13, "{packets} packets, {whole} tests");
}

#[test]
fn tests_of_bundled_programs_are_judged_as_they_should_be() {
    let (packets, whole) = judged("p4/programs");
    assert!(packets >= 217 && whole >= 84, "{packets} packets, {whole} tests");
}
