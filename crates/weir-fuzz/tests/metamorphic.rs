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

/// Tests that may not pass when rewritten: the end of the program's path, a rewrite, alone or in a
/// chain, and why that is right.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("tna/verified.p4", "local", VERIFY),
    ("tna/verified.p4", "function", VERIFY),
];
const VERIFY: &str = "TNA's parser writes the result of `Checksum.verify` by \"or\" into the field it is assigned to; \
                      a variable in between is overwritten";

/// Rewrites that may be applied to none of the programs that they are tried on: few have a place
/// for
/// them, and each program has five rewrites of its own.
const MOST_WITHOUT_PLACE: usize = 4;

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
        known.any(|(program, rewrite, _)| f.program.ends_with(program) && f.rewrite.split(", ").any(|r| r == *rewrite))
    };
    let unknown: Vec<String> = summary
        .failures
        .iter()
        .filter(|f| !is_known(f))
        .map(ToString::to_string)
        .collect();
    assert!(unknown.is_empty(), "{}", unknown.join("\n"));
    // A build without inference leaves out the program that needs it.
    let skipped = summary.skipped.iter();
    let skipped: Vec<_> = skipped
        .filter(|(_, why)| !why.contains("built without inference"))
        .collect();
    assert!(skipped.is_empty(), "{skipped:?}");
    assert!(summary.programs > 100 && summary.tests > 200, "{summary}");
    let without_place: Vec<_> = summary.rows.iter().filter(|r| r.applied == 0).collect();
    assert!(without_place.len() <= MOST_WITHOUT_PLACE, "{without_place:?}");
}
