//! Several threads, each on a processor of its own, with a switch and packets of its own.

use super::case::Case;
use super::measure::{Plan, ratio, run};
use super::rig::Side;
use anyhow::{Result, anyhow, ensure};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;
use weir_switch::cycles;

/// What several workers did together, and each of them alone.
#[derive(Debug, Clone)]
pub struct Together {
    /// How many.
    pub workers: usize,
    /// Millions of packets per second of one alone, the mean over all of them, of each run.
    pub alone: Vec<f64>,
    /// Of all together.
    pub together: Vec<f64>,
}

impl Together {
    /// How many times more all do than one.
    pub fn speedup(&self) -> f64 {
        ratio(&self.together, &self.alone)
    }
}

/// Measures a number of workers, each alone and all together, alternating. Also returns the share
/// of packets that are sent.
///
/// # Errors
/// There are fewer processors, or the case cannot be run.
pub fn measure(case: &Case, side: Side, workers: usize, plan: Plan) -> Result<(Together, f64)> {
    let processors = weir_io::cores();
    ensure!(
        processors.len() >= workers,
        "{workers} workers need a processor each, and this process may use {}: leave out taskset, or ask for fewer workers",
        processors.len()
    );
    let barrier = Barrier::new(workers);
    let rates: Mutex<Vec<Vec<f64>>> = Mutex::new(vec![Vec::new(); 2 * workers]);
    let failures: Mutex<Vec<anyhow::Error>> = Mutex::new(Vec::new());
    let sent = Mutex::new(0.0);
    std::thread::scope(|scope| {
        for (number, processor) in processors.into_iter().take(workers).enumerate() {
            let (barrier, rates, failures, sent) = (&barrier, &rates, &failures, &sent);
            scope.spawn(move || {
                let rig = weir_io::pin_to_core(processor)
                    .map_err(|e| anyhow!("cannot use processor {processor}: {e}"))
                    .and_then(|()| {
                        let mut rig = case.rig(&[side])?;
                        let sent = rig.check(&[side])?;
                        Ok((rig, sent))
                    });
                let mut rig = match rig {
                    Ok((rig, share)) => {
                        *sent.lock().unwrap_or_else(PoisonError::into_inner) = share;
                        Some(rig)
                    }
                    Err(error) => {
                        failures.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                        None
                    }
                };
                barrier.wait();
                if !failures.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
                    return;
                }
                let frequency = frequency();
                for _ in 0..plan.runs {
                    // Processors differ, and so do their neighbours: each is alone once.
                    for turn in 0..=workers {
                        barrier.wait();
                        let together = usize::from(turn == workers);
                        if let (true, Some(rig)) = (turn == number || turn == workers, &mut rig) {
                            rig.round(side);
                            let rate = frequency / run(rig, side, plan.run) / 1e6;
                            let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
                            rates[2 * number + together].push(rate);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = failures.into_inner().unwrap_or_else(PoisonError::into_inner).pop() {
        return Err(error);
    }
    let rates = rates.into_inner().unwrap_or_else(PoisonError::into_inner);
    let sum = |together: usize, run: usize| -> f64 { (0..workers).map(|w| rates[2 * w + together][run]).sum() };
    let together = Together {
        workers,
        alone: (0..plan.runs).map(|run| sum(0, run) / workers as f64).collect(),
        together: (0..plan.runs).map(|run| sum(1, run)).collect(),
    };
    Ok((together, sent.into_inner().unwrap_or_else(PoisonError::into_inner)))
}

/// Cycles of the counter per second.
fn frequency() -> f64 {
    let (began, from) = (Instant::now(), cycles());
    while began.elapsed().as_millis() < 20 {
        std::hint::spin_loop();
    }
    (cycles() - from) as f64 / began.elapsed().as_secs_f64()
}
