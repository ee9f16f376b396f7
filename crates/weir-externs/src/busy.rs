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
}

impl Extern for BusyCycles {
    fn check(&self, signature: &Signature) -> Result<(), String> {
        BUSY_CYCLES.check(signature)?;
        self.rate();
        Ok(())
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let cycles = call.get(0).min(MAX_CYCLES);
        let steps = (u128::from(cycles) * u128::from(self.rate())) >> 32;
        spin(steps as u64);
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
    use weir_extern_api::Parameter;

    /// The fastest of several calls: others share the machine.
    fn cycles_of(busy: &BusyCycles, cycles: u64) -> u64 {
        let signature = Signature::new(vec![Parameter::input("cycles", &[32])], &[]);
        busy.check(&signature).expect("it fits");
        let clock = quanta::Clock::new();
        let run = || {
            let mut words = [cycles];
            let mut call = Call::new(&signature, &mut words, None);
            let before = clock.raw();
            assert_eq!(busy.call(&mut call), Outcome::Continue);
            clock.raw() - before
        };
        (0..50).map(|_| run()).min().unwrap_or(0)
    }

    #[test]
    fn calls_take_about_as_long_as_they_should() {
        let busy = BusyCycles::default();
        for cycles in [10_000, 100_000, 1_000_000] {
            let found = cycles_of(&busy, cycles);
            let error = found.abs_diff(cycles) as f64 / cycles as f64;
            println!("{cycles} cycles took {found}: {:.1} % off", 100.0 * error);
            assert!(error < 0.3, "{cycles} cycles took {found}");
        }
    }
}
