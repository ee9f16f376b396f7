//! The congestion window: slow start and congestion avoidance (RFC 5681), and DCTCP's reaction to
//! ECN (RFC 8257).

use super::config::CongestionControl;

/// The window at the start, in PDUs (RFC 6928).
const INITIAL: f64 = 10.0;
/// The least window after a loss.
const LEAST: f64 = 2.0;
/// Gain of the estimate of the marked share (RFC 8257, section 4.2).
const GAIN: f64 = 1.0 / 16.0;

#[derive(Debug, Clone)]
pub(super) struct Congestion {
    control: CongestionControl,
    window: f64,
    threshold: f64,
    /// DCTCP's estimate of the share of marked PDUs.
    alpha: f64,
    /// PDUs acknowledged and marked since the estimate was updated.
    acknowledged: u64,
    marked: u64,
    /// The estimate is updated once this number is acknowledged.
    observed_until: u64,
    /// Reductions are over once this number is acknowledged: one per round trip.
    reduced_until: u64,
}

impl Congestion {
    pub fn new(control: CongestionControl) -> Self {
        Congestion {
            control,
            window: INITIAL,
            threshold: f64::INFINITY,
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            observed_until: 0,
            reduced_until: 0,
        }
    }

    /// PDUs that may be in flight.
    pub fn window(&self) -> u64 {
        match self.control {
            CongestionControl::None => u64::MAX,
            CongestionControl::Dctcp => self.window as u64,
        }
    }

    /// `count` PDUs were acknowledged, all below `una`; `next`: the next number to be sent.
    pub fn acknowledge(&mut self, count: u64, is_marked: bool, una: u64, next: u64, is_limited: bool) {
        self.acknowledged += count;
        self.marked += if is_marked { count } else { 0 };
        if una >= self.observed_until {
            let share = self.marked as f64 / self.acknowledged.max(1) as f64;
            self.alpha = (1.0 - GAIN) * self.alpha + GAIN * share;
            (self.acknowledged, self.marked, self.observed_until) = (0, 0, next);
        }
        if is_marked {
            let alpha = self.alpha;
            self.reduce(1.0 - alpha / 2.0, una, next);
        } else if is_limited && una >= self.reduced_until {
            let growth = if self.window < self.threshold {
                count as f64
            } else {
                count as f64 / self.window
            };
            self.window = (self.window + growth).min(1e6);
        }
    }

    /// PDUs were lost.
    pub fn lose(&mut self, una: u64, next: u64) {
        self.reduce(0.7, una, next);
    }

    /// The retransmission timeout has expired: what is in flight may be lost as a whole.
    pub fn time_out(&mut self, next: u64) {
        self.threshold = (self.window / 2.0).max(LEAST);
        self.window = LEAST;
        self.reduced_until = next;
    }

    fn reduce(&mut self, factor: f64, una: u64, next: u64) {
        if una < self.reduced_until {
            return;
        }
        self.window = (self.window * factor).max(LEAST);
        self.threshold = self.window;
        self.reduced_until = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_doubles_per_round_trip_then_grows_by_one_and_shrinks_once() {
        let mut congestion = Congestion::new(CongestionControl::Dctcp);
        assert_eq!(congestion.window(), 10);
        congestion.acknowledge(10, false, 10, 20, true);
        assert_eq!(congestion.window(), 20);
        congestion.lose(10, 30);
        assert_eq!(congestion.window(), 14);
        congestion.lose(15, 40);
        assert_eq!(congestion.window(), 14, "within a round trip");
        congestion.acknowledge(14, false, 30, 44, true);
        assert_eq!(congestion.window(), 15);
        congestion.acknowledge(15, false, 44, 50, false);
        assert_eq!(congestion.window(), 15, "the application is the limit");
        congestion.time_out(60);
        assert_eq!(congestion.window(), 2);
    }

    #[test]
    fn few_marks_cost_little() {
        let shrink = |marked_share: u64| {
            let mut congestion = Congestion::new(CongestionControl::Dctcp);
            congestion.window = 1000.0;
            congestion.threshold = 1000.0;
            let mut una = 0;
            for round in 0..200 {
                let is_marked = round % 10 < marked_share;
                una += 1000;
                congestion.acknowledge(1000, is_marked, una, una + 1000, false);
            }
            (congestion.alpha * 10.0).round() as u64
        };
        assert_eq!((shrink(0), shrink(10)), (0, 10));
        assert!((3..=7).contains(&shrink(5)));
    }

    #[test]
    fn without_congestion_control_the_window_is_unlimited() {
        assert_eq!(Congestion::new(CongestionControl::None).window(), u64::MAX);
    }
}
