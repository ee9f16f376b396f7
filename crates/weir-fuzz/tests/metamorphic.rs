//! Rewritten programs of the project pass the packet tests that they passed.

use std::path::Path;
use weir_fuzz::metamorphic::{Options, run};

/// Folders with programs and their packet tests.
const FOLDERS: [&str; 5] = [
    "p4/programs",
    "crates/weir-stf/tests/language",
    "crates/weir-stf/tests/v1model",
    "crates/weir-stf/tests/psa",
    "crates/weir-stf/tests/tna",
];

/// Tests that do not pass when rewritten: the end of the program's path, the rewrite, and why that
/// is right.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

/// Rewrites that no program here has a place for.
const WITHOUT_PLACE: [&str; 1] = ["flatten-fields"];

#[test]
fn rewritten_programs_pass_their_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let summary = run(&Options {
        folders: FOLDERS.iter().map(|f| root.join(f)).collect(),
        seed: 1,
        rewrite: None,
        // The command line tries all of them on each program.
        most: Some(5),
    });
    let is_known = |f: &&weir_fuzz::metamorphic::Failure| {
        let mut known = EXCEPTIONS.iter();
        known.any(|(program, rewrite, _)| f.program.ends_with(program) && f.rewrite == *rewrite)
    };
    let unknown: Vec<String> = summary
        .failures
        .iter()
        .filter(|f| !is_known(f))
        .map(ToString::to_string)
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    assert_eq!(summary.skipped, []);
    assert!(summary.programs > 100 && summary.tests > 200, "{summary}");
    for row in summary.rows.iter().filter(|r| !WITHOUT_PLACE.contains(&&*r.name)) {
        assert!(row.applied > 0, "{} was never applied:\n{summary}", row.name);
    }
}
