//! What to do where there is nothing to do.

use crate::device::{Device, wait};
use crate::error::IoError;
use std::time::Duration;

/// Waiting that adapts: who was busy a moment ago looks again at once, who found nothing a few
/// times first lets others run that want the same core, and who has been idle for many rounds
/// sleeps until something arrives and costs no core.
///
/// ```
/// use std::time::Duration;
/// use weir_io::{Batch, BusyPoll, Device, GeneratorSpec, Generator};
///
/// let mut device = Generator::new("count=5,rate=100000".parse::<GeneratorSpec>()?);
/// let (mut batch, mut idle) = (Batch::new(32), BusyPoll::default());
/// while !device.is_exhausted() {
///     batch.clear();
///     match device.receive(&mut batch)? {
///         0 => {
///             idle.idle(&[&device], Duration::from_millis(100))?;
///         }
///         _ => idle.worked(),
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct BusyPoll {
    spins: u32,
    empty: u32,
}

impl BusyPoll {
    /// Empty rounds of [`BusyPoll::default`]. With 200, a worker was still awake when the next
    /// small request of a controller came, and each cost it a wake: requests one after another took
    /// 0.70 of rbfrt's time instead of 0.50 to 0.60.
    pub const SPINS: u32 = 40;

    /// Empty rounds before the core is yielded to other threads. A busy worker has an empty round
    /// now and then but never sleeps. Without the yield, threads on the same core would run only by
    /// preemption, which may come while packets wait.
    const ALONE: u32 = 4;

    /// Spins for this many empty rounds, then sleeps. With 0 it always sleeps, with [`u32::MAX`]
    /// (practically) never.
    #[must_use]
    pub fn new(spins: u32) -> Self {
        BusyPoll { spins, empty: 0 }
    }

    /// There was something in this round.
    pub fn worked(&mut self) {
        self.empty = 0;
    }

    /// There was nothing in this round: returns at once, or waits as [`wait`] does once there have
    /// been too many such rounds. False where the time of `wait` is over.
    ///
    /// # Errors
    ///
    /// As for [`wait`].
    pub fn idle(&mut self, devices: &[&dyn Device], timeout: Duration) -> Result<bool, IoError> {
        if self.spin() {
            return Ok(true);
        }
        wait(devices, timeout)
    }

    /// For callers who wait by other means: records an empty round; returns whether to poll again
    /// at once. Other threads may have had the core in between.
    pub fn spin(&mut self) -> bool {
        if self.empty < self.spins {
            self.empty += 1;
            match self.empty > Self::ALONE {
                true => std::thread::yield_now(),
                false => std::hint::spin_loop(),
            }
            return true;
        }
        false
    }
}

impl Default for BusyPoll {
    fn default() -> Self {
        BusyPoll::new(Self::SPINS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Null;

    #[test]
    fn it_spins_first_and_sleeps_then_until_there_is_work() {
        let mut idle = BusyPoll::new(3);
        let null = Null::default();
        let round = |idle: &mut BusyPoll| idle.idle(&[&null], Duration::from_millis(1)).unwrap();
        let answers = [(); 5].map(|()| round(&mut idle));
        assert_eq!(answers, [true, true, true, false, false]);
        idle.worked();
        assert!(round(&mut idle) && !BusyPoll::new(0).spin());
    }

    #[test]
    fn whoever_found_nothing_a_few_times_goes_on_looking_and_lets_others_run() {
        let mut idle = BusyPoll::default();
        let looks = std::iter::from_fn(|| idle.spin().then_some(())).count();
        assert!(looks == BusyPoll::SPINS as usize && BusyPoll::ALONE < BusyPoll::SPINS);
    }
}
