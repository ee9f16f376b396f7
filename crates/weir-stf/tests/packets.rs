//! Every program of `tests/language` with its packet test: what the statements and expressions of
//! P4 mean, seen from outside.

mod common;

/// Runs `NAME.stf` on `NAME.p4`.
fn check(name: &str) {
    common::check(&common::folder("language"), name);
}

macro_rules! programs {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_program_runs() {
            for file in std::fs::read_dir(common::folder("language")).expect("the programs") {
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
    aggregates,
    arithmetic,
    blocks,
    calls,
    conventions,
    entries,
    enums,
    exits,
    generics,
    loops,
    parsing,
    revived,
    slices,
    stacks,
    switches,
    tables,
    unions,
    varbits,
    wide
);
