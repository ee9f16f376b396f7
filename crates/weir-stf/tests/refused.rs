//! Directives that cannot be done: `tests/refused/NAME.stf` names a program, and what is wrong with
//! a line after `#~`; lines without are good. Each line is a test of its own.

#[allow(dead_code, reason = "these tests have no packets")]
mod common;

use common::{compile, folder};
use std::sync::Arc;
use weir_stf::{RunError, RunOptions, configure, run_on};
use weir_switch::Switch;

/// What is wrong with a directive, as it is told.
fn complaint(switch: &Switch, directive: &str) -> String {
    match run_on(switch.clone(), directive, &RunOptions::default()) {
        Ok(report) => report.failures.iter().map(ToString::to_string).collect(),
        Err(RunError::Parse(errors)) => errors.iter().map(ToString::to_string).collect(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn what_has_no_effect_or_a_wrong_value_is_refused_with_line_and_reason() {
    let (mut files, mut wrong) = (0, Vec::new());
    for file in std::fs::read_dir(folder("refused")).expect("the tests") {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a test");
        let program = text.lines().next().and_then(|l| l.strip_prefix("# program "));
        let (of, name) = program.and_then(|p| p.split_once('/')).expect("its program");
        let switch = Switch::new(Arc::new(compile(&folder(of), name))).expect("loads");
        files += 1;
        let mut refused = 0;
        for line in text.lines().skip(1).filter(|l| !l.starts_with('#')) {
            let expected = line.split_once("#~").map(|(_, why)| why.trim());
            let found = complaint(&switch, line);
            refused += usize::from(expected.is_some());
            let good = match expected {
                Some(why) => (found.starts_with("line 1: ") || found.starts_with("1:")) && found.contains(why),
                None => found.is_empty(),
            };
            if !good {
                wrong.push(format!("{}: {line}\n    {found}", path.display()));
            }
        }
        assert!(refused > 0, "{} refuses nothing", path.display());
    }
    assert!(files >= 4, "only {files} tests");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn time_does_not_go_by_in_entries() {
    let switch = Switch::new(Arc::new(compile(&folder("tna"), "generator"))).expect("loads");
    let (_, failures) = configure(switch, "deflection 7\nnow +1us").expect("parses");
    let [failure] = &failures[..] else {
        panic!("{failures:?}")
    };
    assert_eq!(failure.line, 2);
    assert!(failure.to_string().contains("only tests have"), "{failure}");
}
