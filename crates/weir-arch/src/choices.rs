//! All random and unspecified outcomes are chosen by one object, so that a test can enumerate them.
//!
//! `random`, the `random` hash, action selectors, meters and early random drop call
//! [`Choices::choose`] with the number of outcomes, and the one that a real switch would take.
//! [`Defaults`] takes that one; [`Script`] replays a list; [`enumerate`] runs something once per
//! combination of outcomes.

use std::fmt;

/// The kind of a choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChoiceKind {
    /// The result of `random`, counted from its low end.
    Random,
    /// The result of `hash` with the algorithm `random`.
    RandomHash,
    /// The position in an action selector's group.
    Selector,
    /// The colour of a meter: 0 green, 1 yellow, 2 red.
    Meter,
    /// Whether early random drop drops: 0 no, 1 yes.
    Wred,
}

/// Chooses outcomes.
pub trait Choices {
    /// One of `0..outcomes`. `default` is in that range, which is never empty.
    fn choose(&mut self, kind: ChoiceKind, outcomes: u64, default: u64) -> u64;
}

/// Always the default.
#[derive(Debug, Clone, Copy, Default)]
pub struct Defaults;

impl Choices for Defaults {
    fn choose(&mut self, _: ChoiceKind, _: u64, default: u64) -> u64 {
        default
    }
}

/// A choice that was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The operation.
    pub kind: ChoiceKind,
    /// How many outcomes there were.
    pub outcomes: u64,
    /// The default outcome.
    pub default: u64,
    /// The chosen outcome.
    pub taken: u64,
}

/// `random: 3 of 0..5`
impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Choice {
            kind, outcomes, taken, ..
        } = self;
        match (kind, taken) {
            (ChoiceKind::Random, _) => write!(f, "random: {taken} of 0..{outcomes}"),
            (ChoiceKind::RandomHash, _) => write!(f, "random hash: {taken} of 0..{outcomes}"),
            (ChoiceKind::Selector, _) => write!(f, "selector: position {taken} of 0..{outcomes}"),
            (ChoiceKind::Meter, 0) => f.write_str("meter: green"),
            (ChoiceKind::Meter, 1) => f.write_str("meter: yellow"),
            (ChoiceKind::Meter, _) => f.write_str("meter: red"),
            (ChoiceKind::Wred, 0) => f.write_str("early drop: no"),
            (ChoiceKind::Wred, _) => f.write_str("early drop: yes"),
        }
    }
}

/// Takes prescribed outcomes, then defaults, and records every choice.
#[derive(Debug, Clone, Default)]
pub struct Script {
    prescribed: Vec<u64>,
    made: Vec<Choice>,
}

impl Script {
    /// Takes these outcomes in order. One that is out of range counts as the default.
    #[must_use]
    pub fn new(prescribed: Vec<u64>) -> Self {
        Script {
            prescribed,
            made: Vec::new(),
        }
    }

    /// The choices so far.
    #[must_use]
    pub fn made(&self) -> &[Choice] {
        &self.made
    }
}

impl Choices for Script {
    fn choose(&mut self, kind: ChoiceKind, outcomes: u64, default: u64) -> u64 {
        let taken = self
            .prescribed
            .get(self.made.len())
            .copied()
            .filter(|&w| w < outcomes)
            .unwrap_or(default);
        self.made.push(Choice {
            kind,
            outcomes,
            default,
            taken,
        });
        taken
    }
}

/// Outcomes that [`enumerate`] tries per choice.
pub const OUTCOME_CAP: u64 = 64;

/// The result of [`enumerate`].
#[derive(Debug, Clone)]
pub struct Enumeration<R> {
    /// The choices of each run and what the run gave. The first run took all defaults.
    pub runs: Vec<(Vec<Choice>, R)>,
    /// Nothing was left out: neither outcomes beyond [`OUTCOME_CAP`] nor runs beyond the limit.
    pub complete: bool,
}

/// Runs something once per combination of outcomes, at most `limit` times. `run` must start from
/// the same state each time.
pub fn enumerate<R>(limit: usize, mut run: impl FnMut(&mut dyn Choices) -> R) -> Enumeration<R> {
    let mut result = Enumeration {
        runs: Vec::new(),
        complete: true,
    };
    let mut pending = vec![Vec::new()];
    while let Some(prescribed) = pending.pop() {
        if result.runs.len() >= limit {
            result.complete = false;
            break;
        }
        let fixed = prescribed.len();
        let mut script = Script::new(prescribed);
        let answer = run(&mut script);
        let made = script.made;
        for index in (fixed..made.len()).rev() {
            let choice = made[index];
            result.complete &= choice.outcomes <= OUTCOME_CAP;
            for other in (0..choice.outcomes.min(OUTCOME_CAP))
                .rev()
                .filter(|&o| o != choice.taken)
            {
                let mut next: Vec<u64> = made[..index].iter().map(|c| c.taken).collect();
                next.push(other);
                pending.push(next);
            }
        }
        result.runs.push((made, answer));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumeration_tries_every_combination_once() {
        let found = enumerate(100, |choices| {
            let a = choices.choose(ChoiceKind::Random, 3, 1);
            let b = if a == 2 {
                choices.choose(ChoiceKind::Meter, 2, 0)
            } else {
                9
            };
            (a, b)
        });
        let mut answers: Vec<_> = found.runs.iter().map(|r| r.1).collect();
        assert_eq!(answers[0], (1, 9));
        answers.sort_unstable();
        assert_eq!(answers, [(0, 9), (1, 9), (2, 0), (2, 1)]);
        assert!(found.complete);
    }

    #[test]
    fn too_many_outcomes_are_admitted() {
        let found = enumerate(1000, |choices| choices.choose(ChoiceKind::Random, 1 << 40, 1 << 39));
        assert_eq!(found.runs.len(), 65);
        assert!(!found.complete);
    }
}
