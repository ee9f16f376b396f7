//! Time as a parameter: state machines read no clock.

use std::ops::Add;
use std::time::Duration;

/// A point in time: the time since a start that the caller chooses, the same for all calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(Duration);

impl Time {
    /// The start.
    pub const ZERO: Time = Time(Duration::ZERO);

    /// A time after the start.
    #[must_use]
    pub const fn after(since_start: Duration) -> Self {
        Time(since_start)
    }

    /// A number of milliseconds after the start.
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Time(Duration::from_millis(millis))
    }

    /// A number of seconds after the start.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Time(Duration::from_secs(seconds))
    }

    /// The time since an earlier point; 0 if that one is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(duration))
    }
}
