//! Whole folders of programs: a test for each, and one that none is left out.

use crate::common;

/// Names of all programs of a folder, sorted.
pub fn names(folder: &str) -> Vec<String> {
    let files = std::fs::read_dir(common::folder(folder)).expect("the programs");
    let paths = files.map(|f| f.expect("a file").path());
    let programs = paths.filter(|p| p.extension().is_some_and(|e| e == "p4"));
    let mut names: Vec<String> = programs
        .filter_map(|p| p.file_stem().and_then(|n| n.to_str()).map(str::to_owned))
        .collect();
    names.sort();
    names
}

/// A test for each of these programs of a folder.
macro_rules! programs {
    ($folder:literal: $($name:ident),* $(,)?) => {
        $(#[test] fn $name() { common::check(&common::folder($folder), stringify!($name)); })*

        #[test]
        fn every_program_runs() {
            assert_eq!(programs::names($folder), [$(stringify!($name)),*]);
        }
    };
}
