//! Edited saved programs: each one that loads has the same outputs on both engines.
//!
//! An input is a number and a case: the text of a good program and a packet test for it. The number
//! chooses the edits, so that a finding can be shown as what was edited.

mod edit;
#[cfg(test)]
mod tests;

use crate::engines::{self, Amount, Built, Case, Traffic, totals};
use crate::generate;
use crate::mutate::Mutator;
use crate::rng::Rng;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_ir::Program;
use weir_stf::{Directive, RunOptions, Session};
use weir_switch::{DropReason, Switch};

/// Made up programs among the seeds, of each generator.
const MADE_UP: u64 = 8;
/// Packets of a test that is made for an edited program.
const AMOUNT: Amount = Amount { rounds: 1, packets: 24 };
/// The same, where packets return until they may not any more. In v1model that is 1,024 times, each
/// with a budget of its own: a second of processor time for a packet, if the parser never ends.
const AMOUNT_OF_LOOPS: Amount = Amount { rounds: 1, packets: 2 };
/// Packets by which that is found out.
const PROBED: usize = 4;

/// Good saved programs of every architecture, each with a test.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let bundled = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../p4/programs");
    let made_up = (0..MADE_UP).flat_map(|n| [generate::program(n), generate::tna_program(n)]);
    let made_up = made_up.map(|source| Case {
        source,
        test: String::new(),
    });
    let mut seeds: Vec<Vec<u8>> = Vec::new();
    let mut last: Option<(String, Option<Program>)> = None;
    for case in engines::cases(&bundled).into_iter().chain(made_up) {
        // The tests of a program follow each other.
        if last.as_ref().is_none_or(|(source, _)| *source != case.source) {
            last = Some((case.source.clone(), engines::compiled(&case.source)));
        }
        // Those that call registered externs cannot be run without them.
        if let Some((_, Some(program))) = &last
            && Switch::new(Arc::new(program.clone())).is_ok()
        {
            let source = weir_ir::print::print(program);
            seeds.push(Case { source, ..case }.to_bytes());
        }
    }
    seeds
}

/// A number and a seed.
pub(crate) fn input(mutator: &mut Mutator) -> Vec<u8> {
    engines::corpus_input(mutator)
}

/// The edited case of an input, and the text before the edit.
fn edited(input: &[u8]) -> Option<(u64, String, Case)> {
    let (number, rest) = input.split_first_chunk::<8>()?;
    let number = u64::from_le_bytes(*number);
    let Case { source, test } = Case::from_bytes(rest);
    let text = edit::edited(&source, &mut Rng::new(number));
    Some((number, source, Case { source: text, test }))
}

/// Reads an edited program and runs it.
///
/// # Panics
/// It is read back as something else once it is printed, or the engines differ.
pub(crate) fn run(input: &[u8]) {
    let Some((number, _, case)) = edited(input) else { return };
    if let Some(difference) = difference(number, &case) {
        panic!("{difference}");
    }
}

fn difference(number: u64, case: &Case) -> Option<String> {
    let program = weir_ir::parse::parse(&case.source).ok()?;
    if !weir_arch::nonconformities(&program).is_empty() {
        return None;
    }
    let printed = weir_ir::print::print(&program);
    match weir_ir::parse::parse(&printed) {
        Ok(again) if again == program => {}
        Ok(_) => return Some("it is printed as another program".to_owned()),
        Err(error) => return Some(format!("its printed form is refused: {error}")),
    }
    // Control planes are told of it before anybody runs it; what cannot be described is said.
    let targets = weir_arch::targets();
    let _ = weir_compiler::p4info::p4info(&program, targets);
    let _ = weir_compiler::p4info::entries(&program, targets);
    let _ = weir_compiler::bfrt::bfrt_info(&program, targets);
    let built = match Built::of(program) {
        Ok(built) => built,
        Err(trouble) => {
            totals::trouble(&trouble);
            return None;
        }
    };
    totals::program(&built);
    let made = |amount| Traffic::new(&mut Rng::new(number ^ 0x5a), built.switch()).test("", &[], amount);
    let mut tests = vec![case.test.clone(), made(AMOUNT)];
    traced(built.switch(), &case.test);
    if tests.iter().any(|test| returns_forever(built.switch(), test)) {
        tests = vec![made(AMOUNT_OF_LOOPS)];
    }
    for test in &tests {
        match built.run(test) {
            Ok(Ok(tally)) => totals::test(&tally),
            Ok(Err(_)) if never_ends(built.switch(), test) => {}
            Ok(Err(finding)) => return Some(format!("the engines differ: {finding}")),
            Err(trouble) => totals::trouble(&trouble),
        }
    }
    None
}

/// Whether a packet of a test runs until it may not any more: how far it has come then depends on
/// how many instructions an engine has for the same thing.
fn never_ends(switch: &Switch, test: &str) -> bool {
    let mut session = Session::new(switch.clone(), RunOptions::default());
    for line in weir_stf::parse(test).map_or(Vec::new(), |t| t.lines) {
        // What is expected does not matter here.
        let _ = session.line(&line);
    }
    let mut drops = session.switch().drops();
    drops.any(|d| d.reason == DropReason::InstructionBudget)
}

/// Whether one of the first packets of a test returns until it may not any more.
fn returns_forever(switch: &Switch, test: &str) -> bool {
    let mut session = Session::new(switch.clone(), RunOptions::default());
    let lines = weir_stf::parse(test).map_or(Vec::new(), |t| t.lines);
    let mut packets = 0;
    for line in &lines {
        let _ = session.line(line);
        packets += usize::from(matches!(line.directive, Directive::Packet { .. }));
        if packets == PROBED {
            break;
        }
    }
    session.switch().drops().any(|d| d.reason == DropReason::Loop)
}

/// Traces the first packets of a test; a trace names places, types and values.
fn traced(switch: &Switch, test: &str) {
    let mut switch = switch.clone();
    let lines = weir_stf::parse(test).map_or(Vec::new(), |t| t.lines);
    let packets = lines.iter().filter_map(|line| match &line.directive {
        Directive::Packet { port, bytes } => Some((*port, bytes)),
        _ => None,
    });
    for (port, bytes) in packets.take(2) {
        let (_, tree) = switch.inject_traced(port, bytes, 1);
        let _ = tree.render(weir_interp::RenderOptions::default(), |_| None);
    }
}

/// Keeps an input, the edited program as `.weir` and the lines that were edited as `.txt`.
///
/// # Errors
/// They cannot be written.
pub(crate) fn keep(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    std::fs::write(path, input)?;
    let Some((number, before, case)) = edited(input) else {
        return Ok(path.to_owned());
    };
    let mut told = engines::caught(&|| difference(number, &case)).unwrap_or_default();
    told.push('\n');
    for (before, after) in edit::changes(&before, &case.source) {
        let _ = write!(told, "- {before}\n+ {after}\n");
    }
    std::fs::write(path.with_extension("weir"), &case.source)?;
    std::fs::write(path.with_extension("txt"), told)?;
    Ok(path.with_extension("weir"))
}
