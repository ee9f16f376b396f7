//! Rate control: a token bucket.

use crate::time::Time;
use std::time::Duration;

/// Bytes that may be sent at once: what the rate gives in this time, but at least a long PDU.
const BURST: Duration = Duration::from_millis(5);
const LEAST_BURST: f64 = 65_536.0;

#[derive(Debug, Clone)]
pub(super) struct Bucket {
    /// Bytes per second.
    rate: f64,
    tokens: f64,
    filled: Time,
}

impl Bucket {
    /// A rate in bytes per second, at least 1.
    pub fn new(rate: u64, now: Time) -> Self {
        let rate = rate.max(1) as f64;
        Bucket {
            rate,
            tokens: Bucket::depth(rate),
            filled: now,
        }
    }

    fn depth(rate: f64) -> f64 {
        (rate * BURST.as_secs_f64()).max(LEAST_BURST)
    }

    fn level(&self, now: Time) -> f64 {
        let new = now.since(self.filled).as_secs_f64() * self.rate;
        (self.tokens + new).min(Bucket::depth(self.rate))
    }

    /// Takes the tokens of some bytes, if they are there.
    pub fn take(&mut self, bytes: usize, now: Time) -> bool {
        let level = self.level(now);
        (self.tokens, self.filled) = (level, now);
        let is_enough = level >= bytes as f64;
        if is_enough {
            self.tokens -= bytes as f64;
        }
        is_enough
    }

    /// When there will be tokens for some bytes; `None`: there are now.
    pub fn ready(&self, bytes: usize, now: Time) -> Option<Time> {
        let missing = bytes as f64 - self.level(now);
        (missing > 0.0).then(|| now + Duration::from_secs_f64(missing / self.rate) + Duration::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_bytes_leave_at_the_rate() {
        let mut bucket = Bucket::new(1_000_000, Time::ZERO);
        let mut now = Time::ZERO;
        let mut sent = 0;
        while now < Time::from_secs(1) {
            if bucket.take(1000, now) {
                sent += 1000;
            } else {
                now = bucket.ready(1000, now).unwrap();
            }
        }
        assert!((1_060_000..=1_070_000).contains(&sent), "{sent}");
    }
}
