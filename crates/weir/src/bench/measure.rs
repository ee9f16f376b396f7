//! Runs in turns, and what they took.

use super::rig::{Rig, Side};
use std::time::{Duration, Instant};
use weir_switch::cycles;

/// How to measure.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// How long one run of one side takes, restoring packets included.
    pub run: Duration,
    /// Runs of each side.
    pub runs: usize,
}

/// What the runs of a side took.
#[derive(Debug, Clone)]
pub struct Measured {
    /// Which.
    pub side: Side,
    /// Cycles per packet of each run, in order.
    pub runs: Vec<f64>,
}

impl Measured {
    /// The middle of the runs.
    pub fn median(&self) -> f64 {
        median(&self.runs)
    }

    /// The fastest and the slowest run.
    pub fn range(&self) -> (f64, f64) {
        let lowest = self.runs.iter().copied().fold(f64::INFINITY, f64::min);
        (lowest, self.runs.iter().copied().fold(0.0, f64::max))
    }
}

/// How many times as long one side takes as the other: the middle of what each run is of the other
/// side's run beside it in time, as what the host's other guests do to both changes from one moment
/// to the next. Not a number if there are no runs.
pub fn ratio(one: &[f64], other: &[f64]) -> f64 {
    let pairs: Vec<f64> = one.iter().zip(other).map(|(a, b)| a / b).collect();
    if pairs.is_empty() { f64::NAN } else { median(&pairs) }
}

/// The middle of some numbers; of an even count the mean of the two in the middle. 0 of none.
pub fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len() / 2, sorted.len() % 2) {
        (0, 0) => 0.0,
        (middle, 0) => f64::midpoint(sorted[middle - 1], sorted[middle]),
        (middle, _) => sorted[middle],
    }
}

/// Runs sides in turns: each once, then each once more, and so on; each is a rig's number and a
/// side of it. Also gives the frequency of the counter that cycles are read from, in Hz.
pub fn measure(rigs: &mut [Rig], who: &[(usize, Side)], plan: Plan) -> (Vec<Measured>, f64) {
    let mut measured: Vec<Measured> = who
        .iter()
        .map(|(_, side)| Measured {
            side: *side,
            runs: Vec::with_capacity(plan.runs),
        })
        .collect();
    let (began, began_cycles) = (Instant::now(), cycles());
    for _ in 0..plan.runs {
        for ((rig, side), measured) in who.iter().zip(&mut measured) {
            let rig = &mut rigs[*rig];
            // The others have had the caches.
            rig.round(*side);
            measured.runs.push(run(rig, *side, plan.run));
        }
    }
    let frequency = (cycles() - began_cycles) as f64 / began.elapsed().as_secs_f64();
    (measured, frequency)
}

/// Cycles per packet of one run: of all rounds together.
pub fn run(rig: &mut Rig, side: Side, duration: Duration) -> f64 {
    let (started, mut took, mut rounds) = (Instant::now(), 0, 0);
    loop {
        took += rig.round(side);
        rounds += 1;
        if started.elapsed() >= duration {
            return took as f64 / (rounds * rig.pool.len()) as f64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_compared_with_those_beside_them() {
        // The host got slower and slower, and something else ran once.
        let (one, other) = ([30.0, 33.0, 600.0, 90.0], [20.0, 22.0, 40.0, 60.0]);
        assert_eq!(ratio(&one, &other), 1.5);
        assert!(ratio(&[], &other).is_nan());
    }

    #[test]
    fn the_middle_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&[]), 0.0);
    }
}
