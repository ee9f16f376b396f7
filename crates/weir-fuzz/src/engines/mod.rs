//! Both engines on the same program and the same packets: the interpreter says what is right.
//!
//! Cases are texts, a program and a packet test, so that what differs can be made smaller by
//! leaving out lines and run again by a person: `weir test --engine both`, or `weir-fuzz --replay`,
//! which also puts packets into vectors.

mod case;
mod checksums;
mod compare;
mod corpus;
mod externs;
mod packets;
mod pool;
mod reduce;
mod run;
#[cfg(test)]
mod tests;
pub(crate) mod totals;
mod traffic;
mod waiting;

use crate::generate;
use crate::mutate::Mutator;
use crate::rng::Rng;
pub(crate) use case::Case;
pub use corpus::with_includes;
pub(crate) use corpus::{cases, files, read_with_includes};
pub(crate) use externs::DECLARATIONS;
use run::Tally;
pub(crate) use run::{Built, Trouble};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
pub(crate) use traffic::{Amount, Traffic};
pub(crate) use waiting::IN_ORDER;
use weir_ir::Program;

/// A case of somebody else's program: a number and the case.
pub(crate) fn corpus_input(mutator: &mut Mutator) -> Vec<u8> {
    let number = mutator.next_number();
    let mut input = number.to_le_bytes().to_vec();
    input.extend_from_slice(mutator.next_seed());
    input
}

/// The program of a source text, if it is one.
pub(crate) fn compiled(source: &str) -> Option<Program> {
    run::compile(source).ok()
}

/// Runs a case; panics where the engines differ.
fn check(built: &Built, case: &Case) -> bool {
    match built.run(&case.test) {
        Ok(Ok(tally)) => totals::test(&tally),
        Ok(Err(finding)) => panic!("the engines differ: {finding}"),
        Err(trouble) => totals::trouble(&trouble),
    }
    true
}

/// A number, of a program made up.
pub(crate) fn made_up_input(mutator: &mut Mutator) -> Vec<u8> {
    mutator.next_number().to_le_bytes().to_vec()
}

/// Cases of a program made up.
pub(crate) fn made_up(input: &[u8]) {
    of_number(input, generate::program, &mut |built, case| check(built, &case));
}

/// Cases of a program made up whose packets wait for externs.
pub(crate) fn waiting(input: &[u8]) {
    of_number(input, generate::waiting_program, &mut |built, case| check(built, &case));
}

/// Tests per program made up.
const TESTS: usize = 2;

fn number_of(input: &[u8]) -> u64 {
    input.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn of_number(input: &[u8], program: fn(u64) -> String, made: &mut dyn FnMut(&Built, Case) -> bool) {
    let number = number_of(input);
    let source = program(number);
    let built = match Built::new(&source) {
        Ok(built) => built,
        // What is made up must be right.
        Err(trouble) => panic!("program {number} is refused: {trouble:?}"),
    };
    totals::program(&built);
    let mut rng = Rng::new(number ^ 0x7a);
    for _ in 0..TESTS {
        let amount = Amount { rounds: 3, packets: 90 };
        let test = Traffic::new(&mut rng, built.switch()).test("", &[], amount);
        let source = source.clone();
        if !made(&built, Case { source, test }) {
            return;
        }
    }
}

/// Cases made from a program of the corpus.
pub(crate) fn corpus(input: &[u8]) {
    corpus::of_input(input, &mut |built, case| check(built, &case));
}

/// What is wrong with a case; `None`: nothing.
fn trouble_of(case: &Case) -> Option<String> {
    caught(&|| match run::run(case) {
        Ok(Ok(_)) | Err(_) => None,
        Ok(Err(finding)) => Some(finding.to_string()),
    })
}

/// What a check finds wrong, or the panic that it ends in.
pub(crate) fn caught(check: &dyn Fn() -> Option<String>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(check)) {
        Ok(found) => found,
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Some(format!("panic: {}", text.unwrap_or_default()))
        }
    }
}

/// The sort of trouble, without the particulars: who differs, or that something panicked.
fn sort_of(trouble: &str) -> &str {
    trouble.split([',', ':']).next().unwrap_or(trouble)
}

/// Writes the first case that fails as program and test, made smaller.
///
/// # Errors
/// The files cannot be written.
fn keep(case: &Case, path: &Path) -> std::io::Result<PathBuf> {
    keep_by(case, path, &trouble_of)
}

/// As [`keep`], by any check; `trouble_of` says what is wrong with a case.
fn keep_by(case: &Case, path: &Path, trouble_of: &dyn Fn(&Case) -> Option<String>) -> std::io::Result<PathBuf> {
    // Panics are what is looked for; they need not be told each time.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut small = case.clone();
    if let Some(trouble) = trouble_of(case) {
        let sort = sort_of(&trouble).to_owned();
        small = reduce::reduce(case, &mut |c| trouble_of(c).is_some_and(|t| sort_of(&t) == sort));
    }
    let trouble = trouble_of(&small).unwrap_or_else(|| match Built::new(&small.source) {
        Err(trouble) => format!("{trouble:?}"),
        Ok(_) => "it happens only now and then".to_owned(),
    });
    std::panic::set_hook(hook);
    let comment: Vec<String> = trouble.lines().map(|l| format!("# {l}\n")).collect();
    std::fs::write(path.with_extension("p4"), &small.source)?;
    std::fs::write(
        path.with_extension("stf"),
        format!("{}{}", comment.concat(), small.test),
    )?;
    Ok(path.with_extension("p4"))
}

/// The first of some cases that fails.
fn failing(cases: impl FnOnce(&mut dyn FnMut(&Built, Case) -> bool)) -> Option<Case> {
    let mut found = None;
    let _ = catch_unwind(AssertUnwindSafe(|| {
        cases(&mut |built, case| {
            let outcome = catch_unwind(AssertUnwindSafe(|| built.run(&case.test)));
            let fails = !matches!(outcome, Ok(Ok(Ok(_)) | Err(_)));
            if fails {
                found = Some(case);
            }
            !fails
        });
    }));
    found
}

/// Takes cases of a program; says whether it wants more.
type Taker<'t> = dyn FnMut(&Built, Case) -> bool + 't;

/// Keeps the first case of a program that a check finds something wrong with; without one the
/// program alone breaks
/// something.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep_failing(
    path: &Path,
    source: &str,
    check: &dyn Fn(&Case) -> Option<String>,
    cases: &mut dyn FnMut(&mut Taker<'_>),
) -> std::io::Result<PathBuf> {
    let mut found = None;
    let trouble_of = |case: &Case| caught(&|| check(case));
    let _ = catch_unwind(AssertUnwindSafe(|| {
        cases(&mut |_, case| {
            if trouble_of(&case).is_some() {
                found = Some(case);
            }
            found.is_none()
        });
    }));
    let case = found.unwrap_or_else(|| Case {
        source: source.to_owned(),
        test: String::new(),
    });
    keep_by(&case, path, &trouble_of)
}

/// Keeps the case of a corpus input that fails.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep_corpus(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    let case = failing(|made| corpus::of_input(input, made));
    // Without one the program alone breaks something.
    let case = case.unwrap_or_else(|| Case::from_bytes(input.get(8..).unwrap_or(&[])));
    keep(&case, path)
}

/// Keeps the case of a program made up that fails.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep_made_up(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    keep_of_number(input, generate::program, path)
}

/// Keeps the case of a program made up whose packets wait that fails.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep_waiting(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    keep_of_number(input, generate::waiting_program, path)
}

fn keep_of_number(input: &[u8], program: fn(u64) -> String, path: &Path) -> std::io::Result<PathBuf> {
    let case = failing(|made| of_number(input, program, made));
    let case = case.unwrap_or_else(|| Case {
        source: program(number_of(input)),
        test: String::new(),
    });
    keep(&case, path)
}

/// Runs a program and a test by both engines; says how they differ, or what was run.
///
/// # Errors
/// They differ, or the case cannot be run.
pub fn replay(source: &str, test: &str) -> Result<String, String> {
    let case = Case {
        source: source.to_owned(),
        test: test.to_owned(),
    };
    match run::run(&case) {
        Ok(Ok(tally)) => Ok(format!("{tally:?}")),
        Ok(Err(finding)) => Err(finding.to_string()),
        Err(trouble) => Err(format!("{trouble:?}")),
    }
}
