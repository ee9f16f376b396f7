//! Command lines of `weir`: answered, refused with a reason, never a panic or a hang.
//!
//! An input is a list of arguments with zero bytes between them. They are given to the binary as a
//! process of its own, in an empty folder. No template starts long work or opens a device: programs
//! of `run` and `bench` do not exist, `ctl` speaks to a switch with ports that lead nowhere.

mod process;
mod templates;

use crate::mutate::Mutator;
use crate::rng::Rng;
pub use process::binary;
use process::{Ended, run_weir};

/// Longest list of arguments.
const MAX_ARGUMENTS: usize = 40;
/// Longest argument.
const MAX_LENGTH: usize = 4096;
/// Pieces that options' parsers may trip over.
const PIECES: [&str; 30] = [
    "",
    "0",
    "-1",
    "1",
    "511",
    "512",
    "4294967296",
    "18446744073709551616",
    "1e400",
    "-0.0",
    "nan",
    "inf",
    "0x",
    "0xfg",
    "@",
    "=",
    ",",
    ":",
    "/",
    "..",
    "&&&",
    "%",
    "[",
    "]",
    "é",
    "\u{202e}",
    "1ns",
    "999999999999999h",
    "unix:",
    "0b2",
];

/// A template with values, some of them changed.
pub(crate) fn input(mutator: &mut Mutator) -> Vec<u8> {
    let mut rng = Rng::new(mutator.next_number());
    let mut all = templates::command(&mut rng);
    let changes = rng.one([0, 1, 1, 2, 2, 4]);
    for _ in 0..changes {
        change(&mut rng, &mut all);
    }
    all.truncate(MAX_ARGUMENTS);
    all.iter_mut().for_each(|a| a.truncate(MAX_LENGTH));
    all.join(&0)
}

/// Changes one argument; the first ones, which say what is done with which program, stay.
fn change(rng: &mut Rng, all: &mut Vec<Vec<u8>>) {
    let fixed = templates::FIXED.min(all.len());
    if all.len() == fixed {
        return;
    }
    let at = rng.between(fixed, all.len() - 1);
    match rng.below(8) {
        0 => drop(all.remove(at)),
        1 => all.insert(at, all[at].clone()),
        2 => {
            let other = rng.between(fixed, all.len() - 1);
            all.swap(at, other);
        }
        3 => all[at] = rng.one(PIECES).as_bytes().to_vec(),
        _ => change_bytes(rng, &mut all[at]),
    }
}

fn change_bytes(rng: &mut Rng, text: &mut Vec<u8>) {
    let at = rng.below(text.len() + 1);
    match rng.below(6) {
        0 => text.truncate(at),
        1 => drop(text.drain(at..text.len().min(at + 1))),
        2 => text.insert(at, rng.number() as u8),
        3 => {
            let again = text.repeat(rng.one([2, 3, 200]));
            *text = again;
        }
        _ => drop(text.splice(at..at, rng.one(PIECES).bytes())),
    }
    // No argument holds one.
    text.retain(|b| *b != 0);
}

/// Gives `weir` a command line.
///
/// # Panics
/// It does not end well, or there is no binary.
pub(crate) fn run(input: &[u8]) {
    let arguments: Vec<&[u8]> = input.split(|b| *b == 0).collect();
    let shown = || String::from_utf8_lossy(&arguments.join(&b' ')).into_owned();
    match run_weir(&arguments) {
        Ended::Well => {}
        Ended::Badly(why) => panic!("weir {}: {why}", shown()),
    }
}
