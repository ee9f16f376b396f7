//! Programs that others wrote, with the tests that came with them.

use super::case::Case;
use super::traffic::{Amount, Traffic};
use super::{Built, totals};
use crate::rng::Rng;
use std::path::{Path, PathBuf};
use weir_stf::Directive;

/// Tests per program and input.
const TESTS: usize = 4;

/// Programs below this folder with their tests; the test of a case is all of its control plane and
/// packets.
pub(crate) fn cases(folder: &Path) -> Vec<Case> {
    let mut paths = Vec::new();
    files(folder, &mut paths);
    let programs = paths.iter().filter(|p| p.extension().is_some_and(|e| e == "p4"));
    let mut cases = Vec::new();
    for program in programs {
        let Some(source) = read_with_includes(program, 0) else {
            continue;
        };
        // The file that a program includes is named after its architecture.
        if !weir_arch::targets().iter().any(|t| source.contains(t.name)) {
            continue;
        }
        let tests: Vec<String> = paths
            .iter()
            .filter(|p| belongs(p, program))
            .filter_map(|p| std::fs::read_to_string(p).ok())
            .collect();
        if tests.is_empty() {
            cases.push(Case {
                source: source.clone(),
                test: String::new(),
            });
        }
        cases.extend(tests.into_iter().map(|test| Case {
            source: source.clone(),
            test,
        }));
    }
    cases
}

/// A packet test or list of entries for a program: it has the program's name, perhaps with
/// something after it.
fn belongs(test: &Path, program: &Path) -> bool {
    let is_test = test.extension().is_some_and(|e| e == "stf" || e == "entries");
    let (Some(test_name), Some(name)) = (
        test.file_stem().and_then(|s| s.to_str()),
        program.file_stem().and_then(|s| s.to_str()),
    ) else {
        return false;
    };
    let rest = test_name.strip_prefix(name);
    is_test && test.parent() == program.parent() && rest.is_some_and(|r| r.is_empty() || r.starts_with('-'))
}

/// All files below a folder, sorted.
pub(crate) fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

/// The text of a program with the files beside it that it includes; `None`: it cannot be read.
#[must_use]
pub fn with_includes(path: &Path) -> Option<String> {
    read_with_includes(path, 0)
}

pub(crate) fn read_with_includes(path: &Path, depth: u32) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut all = String::with_capacity(text.len());
    for line in text.lines() {
        let included = line.trim_start().strip_prefix("#include").map(str::trim);
        let name = included.and_then(|i| i.strip_prefix('"')?.split('"').next());
        let beside = name
            .map(|n| path.with_file_name(n))
            .filter(|p| p.is_file() && depth < 8);
        match beside {
            Some(beside) => all.push_str(&read_with_includes(&beside, depth + 1)?),
            None => all.push_str(line),
        }
        all.push('\n');
    }
    Some(all)
}

/// The cases of an input: a number, and a case that they are made from.
pub(crate) fn of_input(input: &[u8], made: &mut dyn FnMut(&Built, Case) -> bool) {
    let Some((number, rest)) = input.split_first_chunk::<8>() else {
        return;
    };
    let case = Case::from_bytes(rest);
    let mut rng = Rng::new(u64::from_le_bytes(*number));
    let built = match Built::new(&case.source) {
        Ok(built) => built,
        Err(trouble) => {
            totals::trouble(&trouble);
            return;
        }
    };
    totals::program(&built);
    if rng.chance(20) && !made(&built, case.clone()) {
        return;
    }
    let (given, frames) = taken_apart(&case.test);
    for _ in 0..TESTS {
        let kept: Vec<&str> = given.iter().filter(|_| !rng.chance(10)).map(String::as_str).collect();
        let mut given = kept.join("\n");
        given.push('\n');
        let amount = Amount { rounds: 3, packets: 60 };
        let test = Traffic::new(&mut rng, built.switch()).test(&given, &frames, amount);
        let case = Case {
            source: case.source.clone(),
            test,
        };
        if !made(&built, case) {
            return;
        }
    }
}

/// The control plane of a test, and its packets.
fn taken_apart(test: &str) -> (Vec<String>, Vec<(u32, Vec<u8>)>) {
    let (mut given, mut frames) = (Vec::new(), Vec::new());
    for text in test.lines() {
        let Ok(parsed) = weir_stf::parse(text) else { continue };
        for line in parsed.lines {
            match line.directive {
                Directive::Packet { port, bytes } | Directive::Receive { port, bytes } => {
                    frames.push((port & 511, bytes));
                }
                Directive::Expect(_)
                | Directive::NoPacket
                | Directive::ExpectDrop { .. }
                | Directive::ExpectDigest { .. }
                | Directive::Drain
                | Directive::PortRate { .. }
                | Directive::QueueCapacity { .. }
                | Directive::CheckCounter { .. }
                | Directive::RegisterRead { .. } => {}
                _ => given.push(text.to_owned()),
            }
        }
    }
    (given, frames)
}
