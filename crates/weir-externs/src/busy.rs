//! Work without effect, for experiments with the cost of externs.

use crate::object::Declared;
use crate::shape::{Expected, Shape};
use std::hint::black_box;
use std::sync::{Arc, OnceLock};
use weir_extern_api::{Call, Extern, Outcome, Signature};

/// The most cycles of a call; more count as these.
const MAX_CYCLES: u64 = 1_000_000_000;
/// Steps of a calibration run: about 0.1 ms, so that most runs are not interrupted.
const CALIBRATION_STEPS: u64 = 100_000;
/// Calibration runs. The fastest counts.
const CALIBRATION_RUNS: usize = 30;

static BUSY_CYCLES: Shape = Shape {
    name: "busy_cycles",
    parameters: &[("cycles", Expected::In(32))],
};

pub(crate) fn busy_cycles() -> Declared {
    (&BUSY_CYCLES, Arc::new(BusyCycles::default()))
}

/// Executes a chain of dependent instructions that takes about as long as the
/// time-stamp counter takes for a number of cycles.
///
/// The chain is measured once, when a program with the extern is loaded. It is off by as much as
/// the clock of the core differs from its clock then.
#[derive(Debug, Default)]
struct BusyCycles {
    /// Steps of the chain per 2^32 cycles.
    rate: OnceLock<u64>,
}

impl BusyCycles {
    fn rate(&self) -> u64 {
        *self.rate.get_or_init(calibrate)
    }

    fn steps(&self, cycles: u64) -> u64 {
        let steps = (u128::from(cycles.min(MAX_CYCLES)) * u128::from(self.rate())) >> 32;
        steps as u64
    }
}

impl Extern for BusyCycles {
    fn check(&self, signature: &Signature) -> Result<(), String> {
        BUSY_CYCLES.check(signature)?;
        self.rate();
        Ok(())
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        spin(self.steps(call.get(0)));
        Outcome::Continue
    }
}

/// Each step depends on the one before, and no formula shortens the chain.
#[inline(never)]
fn spin(steps: u64) {
    let mut value = black_box(1u64);
    for step in 0..steps {
        value = value.rotate_left(7).wrapping_add(step);
    }
    black_box(value);
}

fn calibrate() -> u64 {
    let clock = quanta::Clock::new();
    let run = || {
        let before = clock.raw();
        spin(CALIBRATION_STEPS);
        clock.raw().saturating_sub(before)
    };
    let fastest = (0..CALIBRATION_RUNS).map(|_| run()).min();
    let cycles = fastest.unwrap_or(1).max(1);
    (CALIBRATION_STEPS << 32) / cycles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long they take is measured by `weir bench async`.
    #[test]
    fn steps_are_the_cycles_at_the_measured_rate() {
        let busy = BusyCycles {
            rate: OnceLock::from(3 << 31),
        };
        let steps = [0, 1, 1000, MAX_CYCLES, MAX_CYCLES + 1, u64::MAX].map(|cycles| busy.steps(cycles));
        let most = MAX_CYCLES * 3 / 2;
        assert_eq!(steps, [0, 1, 1500, most, most, most]);
        assert!(calibrate() > 0);
    }
}
