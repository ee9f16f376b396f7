//! The fuzz targets: programs that are made up, judged packet by packet.

use super::judge::judge_on;
use crate::engines::{Amount, Built, Case, Traffic, Trouble, keep_failing, totals};
use crate::generate;
use crate::rng::Rng;
use std::path::{Path, PathBuf};

/// Tests per program.
const TESTS: usize = 2;
/// How much each test has.
const AMOUNT: Amount = Amount { rounds: 3, packets: 25 };

fn number_of(input: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let length = input.len().min(8);
    bytes[..length].copy_from_slice(&input[..length]);
    u64::from_le_bytes(bytes)
}

/// Calls `made` with the cases of a program, as long as it wants more.
fn cases(number: u64, source: &str, frames_too: bool, made: &mut dyn FnMut(&Built, Case) -> bool) {
    let built = match Built::new(source) {
        Ok(built) => built,
        // What is made up must be right.
        Err(trouble) => panic!("program {number} is refused: {trouble:?}"),
    };
    totals::program(&built);
    let mut rng = Rng::new(number ^ 0x0a57);
    // Packets that are long enough for most parsers.
    let mut frame = || {
        (
            rng.below(9) as u32,
            (0..rng.between(20, 160)).map(|_| rng.number() as u8).collect(),
        )
    };
    let frames: Vec<(u32, Vec<u8>)> = if frames_too {
        (0..20).map(|_| frame()).collect()
    } else {
        Vec::new()
    };
    for _ in 0..TESTS {
        let test = Traffic::new(&mut rng, built.switch()).test("", &frames, AMOUNT);
        let source = source.to_owned();
        if !made(&built, Case { source, test }) {
            return;
        }
    }
}

/// What the oracle finds wrong with a case.
fn trouble_of(built: &Built, case: &Case) -> Option<String> {
    match judge_on(&case.source, built.switch(), &case.test) {
        Ok(verdict) => {
            totals::judged(&verdict);
            verdict.difference.map(|d| d.to_string())
        }
        Err(Trouble::NoTest(text) | Trouble::Rejected(text) | Trouble::NotLoaded(text)) => {
            Some(format!("no test: {text}"))
        }
    }
}

fn judged(number: u64, source: &str, frames: bool) {
    cases(number, source, frames, &mut |built, case| {
        if let Some(trouble) = trouble_of(built, &case) {
            panic!("program {number}: {trouble}");
        }
        true
    });
}

fn kept(number: u64, source: &str, frames: bool, path: &Path) -> std::io::Result<PathBuf> {
    let trouble = |case: &Case| {
        let built = Built::new(&case.source).ok()?;
        trouble_of(&built, case)
    };
    keep_failing(path, source, &trouble, &mut |made| cases(number, source, frames, made))
}

/// v1model: judges the program with this number.
///
/// # Panics
/// The oracle and the interpreter differ.
pub(crate) fn made_up(input: &[u8]) {
    let number = number_of(input);
    judged(number, &generate::judged_program(number), false);
}

/// Keeps the case of a program made up that fails.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    let number = number_of(input);
    kept(number, &generate::judged_program(number), false, path)
}

/// TNA: judges the program with this number.
///
/// # Panics
/// The oracle and the interpreter differ.
pub(crate) fn made_up_tna(input: &[u8]) {
    let number = number_of(input);
    judged(number, &generate::tna_program(number), true);
}

/// The same as [`keep`] for TNA.
///
/// # Errors
/// The files cannot be written.
pub(crate) fn keep_tna(input: &[u8], path: &Path) -> std::io::Result<PathBuf> {
    let number = number_of(input);
    kept(number, &generate::tna_program(number), true, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ops::Range;

    /// Programs that are looked at.
    const NUMBERS: Range<u64> = 1..25;

    /// Packets of programs made up, and those of them that were judged.
    fn counted(make: fn(u64) -> String, frames: bool) -> (u64, u64) {
        let (mut packets, mut judged) = (0, 0);
        for number in NUMBERS {
            let source = make(number);
            cases(number, &source, frames, &mut |built, case| {
                let verdict = judge_on(&case.source, built.switch(), &case.test).expect("a test");
                if let Some(difference) = verdict.difference {
                    panic!("program {number}: {difference}");
                }
                packets += verdict.packets;
                judged += verdict.judged;
                true
            });
        }
        (packets, judged)
    }

    #[test]
    fn most_packets_of_programs_for_v1model_are_judged_and_as_they_should_be() {
        let (packets, judged) = counted(generate::judged_program, false);
        assert!(packets > 1000 && 10 * judged >= 8 * packets, "{judged} of {packets}");
    }

    #[test]
    fn most_packets_of_programs_for_tna_are_judged_and_as_they_should_be() {
        let (packets, judged) = counted(generate::tna_program, true);
        assert!(packets > 1000 && 10 * judged >= 8 * packets, "{judged} of {packets}");
    }

    #[test]
    fn programs_apply_instances_several_times_and_capture_their_parameters() {
        let sources: Vec<String> = (1..400).map(generate::judged_program).collect();
        let count = |what: &dyn Fn(&str) -> bool| sources.iter().filter(|s| what(s)).count();
        let times = |s: &str| {
            let names = s
                .split("sub_")
                .skip(1)
                .map(|rest| rest.split(['.', ';', '(']).next().unwrap_or_default().to_owned());
            let names: Vec<String> = names.collect();
            names
                .iter()
                .map(|n| names.iter().filter(|m| *m == n).count())
                .max()
                .unwrap_or(0)
        };
        // An instance is declared once, and applied more than once.
        assert!(count(&|s| times(s) > 2) > 30);
        assert!(count(&|s| s.contains("error { Early")) > 5);
        assert!(count(&|s| s.contains(".push_front(") && s.contains("[0].setValid();")) > 0);
        assert!(count(&|s| s.contains("parser Part_")) > 10);
        assert!(count(&|s| s.contains(".apply(a_") && s.contains(" = ")) > 10);
        let tna: Vec<String> = (1..50).map(generate::tna_program).collect();
        assert!(
            tna.iter()
                .filter(|s| s.contains("RegisterAction<") && s.contains(".execute("))
                .count()
                > 30
        );
    }
}
