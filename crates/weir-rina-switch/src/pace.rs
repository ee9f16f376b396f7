//! When a driver writes without a change: after a failure, and at the end of the grace period.

use std::time::{Duration, Instant};

/// The time between two attempts to connect, and from the first failed write to the next attempt.
pub(crate) const RETRY: Duration = Duration::from_millis(500);
/// The longest time between two attempts to write.
const LONGEST: Duration = Duration::from_secs(16);

#[derive(Debug, Clone, Copy)]
enum Grace {
    /// It starts when the control plane is primary for the first time.
    Of(Duration),
    Until(Instant),
    Over,
}

/// The times of attempts.
#[derive(Debug)]
pub(crate) struct Pace {
    grace: Grace,
    retry: Option<Instant>,
    failures: u32,
}

impl Pace {
    pub(crate) fn new(grace: Duration) -> Self {
        Pace {
            grace: Grace::Of(grace),
            retry: None,
            failures: 0,
        }
    }

    /// The control plane is primary.
    pub(crate) fn primary(&mut self, now: Instant) {
        if let Grace::Of(time) = self.grace {
            self.grace = Grace::Until(now + time);
        }
    }

    /// An attempt starts: no time of the past remains due.
    pub(crate) fn attempt(&mut self, now: Instant) {
        self.retry = None;
        if matches!(self.grace, Grace::Until(end) if end <= now) {
            self.grace = Grace::Over;
        }
    }

    /// The attempt has failed: the next one follows after twice the time.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.retry = Some(now + (RETRY * 2_u32.pow(self.failures)).min(LONGEST));
        self.failures = (self.failures + 1).min(16);
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// Whether routes that the switch has are kept.
    pub(crate) fn is_grace(&self) -> bool {
        match self.grace {
            Grace::Of(_) | Grace::Until(_) => true,
            Grace::Over => false,
        }
    }

    pub(crate) fn end_grace(&mut self) {
        self.grace = Grace::Over;
    }

    /// When the next attempt is due without a change.
    pub(crate) fn due(&self) -> Option<Instant> {
        let grace = match self.grace {
            Grace::Until(end) => Some(end),
            Grace::Of(_) | Grace::Over => None,
        };
        [self.retry, grace].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    #[test]
    fn the_end_of_the_grace_period_is_due_once() {
        let start = Instant::now();
        let mut pace = Pace::new(GRACE);
        assert_eq!(pace.due(), None, "it is not primary yet");
        pace.primary(start);
        pace.attempt(start);
        assert_eq!((pace.due(), pace.is_grace()), (Some(start + GRACE), true));
        // Primary again, such as after a reconnection.
        pace.primary(start + GRACE / 2);
        pace.attempt(start + GRACE);
        assert_eq!((pace.due(), pace.is_grace()), (None, false));
    }

    #[test]
    fn attempts_that_fail_become_rare_and_no_time_of_the_past_is_due() {
        let start = Instant::now();
        let mut pace = Pace::new(GRACE);
        pace.primary(start);
        let (mut now, mut attempts) = (start, 0);
        while now < start + Duration::from_secs(600) {
            pace.attempt(now);
            pace.failed(now);
            attempts += 1;
            let due = pace.due().unwrap();
            assert!(due > now && due <= now + LONGEST);
            now = due;
        }
        assert!(attempts < 50, "{attempts}");
        pace.succeeded();
        pace.attempt(now);
        pace.failed(now);
        assert_eq!(pace.due(), Some(now + RETRY));
    }
}
