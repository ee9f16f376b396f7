//! Programs that have ten thousand of one thing: each is compiled, optimised and described, so that whatever takes
//! time beyond proportion shows itself as a test that hardly ends.

#[path = "growth/kinds.rs"]
mod kinds;

use kinds::{ACCEPTED, Kind, REFUSED};
use std::time::{Duration, Instant};
use weir_compiler::{Compilation, Options, bfrt, compile_bytes, compile_source, p4info};
use weir_ir::{parse, passes, print};
use weir_syntax::preprocess::{MAX_INCLUDES, MemoryLoader};
use weir_syntax::render;

fn compile(kind: &Kind, n: usize) -> Compilation {
    compile_source(kind.0, &kind.1(n), &Options::default(), weir_arch::targets())
}

/// What was done, and how long it took.
type Phases = Vec<(&'static str, Duration)>;

/// Compiles a program as commands do, optimises, prints and describes it.
fn accept(kind: &Kind, n: usize) -> Phases {
    let mut phases = Vec::new();
    let mut started = Instant::now();
    let mut done = |phase| {
        phases.push((phase, started.elapsed()));
        started = Instant::now();
    };
    let compiled = compile(kind, n);
    done("compile");
    let messages: Vec<&str> = compiled
        .diagnostics
        .list()
        .iter()
        .map(|d| &*d.message)
        .take(5)
        .collect();
    let Some(mut program) = compiled.program else {
        panic!("{}: {messages:?}", kind.0);
    };
    assert!(p4info::p4info(&program, weir_arch::targets()).is_ok(), "{}", kind.0);
    done("p4info");
    let _ = bfrt::bfrt_info(&program, weir_arch::targets());
    done("bfrt");
    let text = print::print(&program);
    done("print");
    if let Err(error) = parse::parse(&text) {
        panic!("{}: {error}", kind.0);
    }
    done("parse");
    passes::optimize(&mut program, &|_, _| true);
    done("optimize");
    phases
}

/// Shows the diagnostics of a program as commands do.
fn refuse(kind: &Kind, n: usize) -> Phases {
    let started = Instant::now();
    let compiled = compile(kind, n);
    let compile = started.elapsed();
    for diagnostic in compiled.diagnostics.list() {
        let _ = render::human(diagnostic, &compiled.sources, false);
    }
    vec![("compile", compile), ("render", started.elapsed() - compile)]
}

#[test]
fn few_of_each_are_accepted_or_refused_as_many_are() {
    for kind in ACCEPTED {
        let _ = accept(kind, 10);
    }
    for kind in REFUSED {
        let _ = refuse(kind, 10);
    }
}

/// As many of each thing as a program may well be made with by a tool.
const MANY: usize = 10_000;

/// Compiles each of a share of all kinds, which would not end where the time grew with the square of the number.
fn accept_many(share: usize) {
    for kind in ACCEPTED.iter().skip(share).step_by(2) {
        let _ = accept(kind, MANY);
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
        let _ = refuse(kind, MANY);
    }
}

#[test]
fn a_hundred_thousand_of_what_takes_little_are_accepted() {
    let is_small = |(name, _): &&Kind| SMALL.contains(name);
    let small: Vec<_> = ACCEPTED.iter().filter(is_small).collect();
    assert_eq!(small.len(), SMALL.len());
    for kind in small {
        let _ = accept(kind, 10 * MANY);
    }
    for kind in REFUSED.iter().filter(|(name, _)| *name == "unknown-names") {
        let _ = refuse(kind, 10 * MANY);
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

/// Writes the programs to the directory that `WEIR_GROWTH` names, with `WEIR_GROWTH_N` of each thing: for
/// measurements by hand.
#[test]
#[ignore = "writes files"]
fn write_programs() {
    let folder = std::env::var("WEIR_GROWTH").expect("WEIR_GROWTH names a directory");
    let n = std::env::var("WEIR_GROWTH_N").map_or(10_000, |n| n.parse().expect("a number"));
    for (name, text) in ACCEPTED.iter().chain(REFUSED) {
        std::fs::write(format!("{folder}/{name}-{n}.p4"), text(n)).expect("written");
    }
}

/// Writes to the file that `WEIR_GROWTH_TIMES` names how long each phase takes, for kinds whose name contains
/// `WEIR_GROWTH_KIND`.
#[test]
#[ignore = "measures"]
fn measure() {
    use std::io::Write;
    let path = std::env::var("WEIR_GROWTH_TIMES").expect("WEIR_GROWTH_TIMES names a file");
    let n = std::env::var("WEIR_GROWTH_N").map_or(10_000, |n| n.parse().expect("a number"));
    let wanted = std::env::var("WEIR_GROWTH_KIND").unwrap_or_default();
    let mut file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path)
        .expect("opened");
    let is_wanted = |(name, _): &&Kind| wanted.split(',').any(|w| name.contains(w));
    let accepted = ACCEPTED
        .iter()
        .filter(is_wanted)
        .map(|k| (k, accept as fn(&Kind, usize) -> Phases));
    let refused = REFUSED
        .iter()
        .filter(is_wanted)
        .map(|k| (k, refuse as fn(&Kind, usize) -> Phases));
    for (kind, run) in accepted.chain(refused) {
        let phases = std::panic::catch_unwind(|| run(kind, n)).unwrap_or_default();
        let total: Duration = phases.iter().map(|(_, time)| *time).sum();
        let shown: Vec<String> = phases
            .iter()
            .map(|(phase, time)| format!("{phase} {:.2}", time.as_secs_f64()))
            .collect();
        writeln!(file, "{:.2}\t{}\t{n}\t{}", total.as_secs_f64(), kind.0, shown.join(" ")).expect("written");
    }
}
