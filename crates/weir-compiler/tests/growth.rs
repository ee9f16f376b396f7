//! Programs that have ten thousand of one thing: each is compiled, optimised and described, so that
//! whatever takes time beyond proportion shows itself as a test that hardly ends.

mod common;
#[path = "growth/kinds.rs"]
mod kinds;

use common::messages;
use kinds::{ACCEPTED, Kind, REFUSED};
use weir_compiler::{Compilation, Options, bfrt, compile_bytes, p4info};
use weir_ir::{parse, passes, print};
use weir_syntax::preprocess::{MAX_INCLUDES, MemoryLoader};
use weir_syntax::render;

fn compile(kind: &Kind, n: usize) -> Compilation {
    common::compile(kind.0, &kind.1(n))
}

/// Compiles a program as commands do, optimises, prints and describes it.
fn accept(kind: &Kind, n: usize) {
    let compiled = compile(kind, n);
    assert!(
        !compiled.diagnostics.has_errors(),
        "{}: {:?}",
        kind.0,
        messages(&compiled)
    );
    let mut program = compiled.program.expect(kind.0);
    assert!(p4info::p4info(&program, weir_arch::targets()).is_ok(), "{}", kind.0);
    // BF Runtime has no form for some kinds. Finding that out takes no longer.
    let _ = bfrt::bfrt_info(&program, weir_arch::targets());
    if let Err(error) = parse::parse(&print::print(&program)) {
        panic!("{}: {error}", kind.0);
    }
    passes::optimize(&mut program, &|_, _| true);
}

/// Compiles a program with mistakes and shows the diagnostics as commands do.
fn refuse(kind: &Kind, n: usize) {
    let compiled = compile(kind, n);
    // Of text after directives there are warnings only.
    let is_refused = compiled.diagnostics.has_errors() || kind.0 == "extra-tokens";
    assert!(is_refused && !compiled.diagnostics.list().is_empty(), "{}", kind.0);
    for diagnostic in compiled.diagnostics.list() {
        let text = render::human(diagnostic, &compiled.sources, false);
        assert!(text.contains(&*diagnostic.message), "{}: {text}", kind.0);
    }
}

#[test]
fn few_of_each_are_accepted_as_many_are() {
    ACCEPTED.iter().for_each(|kind| accept(kind, 10));
}

/// As many of each thing as a program may well be made with by a tool.
const MANY: usize = 10_000;

/// Compiles each of a share of all kinds, which would not end where the time grew with the square
/// of the number.
fn accept_many(share: usize) {
    for kind in ACCEPTED.iter().skip(share).step_by(2) {
        accept(kind, MANY);
    }
}

#[test]
fn ten_thousand_of_each_are_accepted() {
    accept_many(0);
}

#[test]
fn ten_thousand_of_each_other_are_accepted() {
    accept_many(1);
}

#[test]
fn ten_thousand_mistakes_are_reported() {
    for kind in REFUSED {
        refuse(kind, MANY);
    }
}

#[test]
fn a_hundred_thousand_of_what_takes_little_are_accepted() {
    let is_small = |(name, _): &&Kind| SMALL.contains(name);
    let small: Vec<_> = ACCEPTED.iter().filter(is_small).collect();
    assert_eq!(small.len(), SMALL.len());
    for kind in small {
        accept(kind, 10 * MANY);
    }
    for kind in REFUSED.iter().filter(|(name, _)| *name == "unknown-names") {
        refuse(kind, 10 * MANY);
    }
}

/// Kinds of which there may be a hundred thousand.
const SMALL: &[&str] = &[
    "errors",
    "annotation-keys",
    "annotation-entries",
    "select-cases",
    "switch-values",
];

#[test]
fn one_file_is_included_very_often() {
    let files: MemoryLoader = [("one.p4", "#ifndef ONE\n#define ONE\nconst int c = 1;\n#endif\n")]
        .into_iter()
        .collect();
    let program = "#include \"one.p4\"\n".repeat(MAX_INCLUDES);
    let options = Options::default();
    let compiled = compile_bytes("many.p4", program.into(), &options, &files, weir_arch::targets());
    assert_eq!(compiled.diagnostics.list(), []);
}
