//! Round-trip times and the retransmission timeout (RFC 6298).

use std::time::Duration;

/// The longest timeout by backing off: a path that works again is noticed soon.
const MAX_BACKED_OFF: Duration = Duration::from_secs(2);
/// The timeout before the first measurement.
const INITIAL_RTO: Duration = Duration::from_millis(250);

#[derive(Debug, Clone)]
pub(super) struct Rtt {
    /// Smoothed round-trip time, and its variation.
    smoothed: Option<(Duration, Duration)>,
    min_rto: Duration,
    backoff: u32,
    /// Share of the round-trip time that a PDU may be overtaken by, in quarters (RFC 8985).
    reordering: u32,
}

impl Rtt {
    pub fn new(min_rto: Duration) -> Self {
        Rtt {
            smoothed: None,
            min_rto,
            backoff: 0,
            reordering: 1,
        }
    }

    /// Takes the round-trip time of a PDU that was sent once (Karn's algorithm).
    pub fn sample(&mut self, time: Duration) {
        self.backoff = 0;
        self.smoothed = Some(match self.smoothed {
            None => (time, time / 2),
            Some((smoothed, variation)) => ((smoothed * 7 + time) / 8, (variation * 3 + smoothed.abs_diff(time)) / 4),
        });
    }

    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(|(smoothed, _)| smoothed)
    }

    /// The retransmission timeout.
    pub fn rto(&self) -> Duration {
        let rto = match self.smoothed {
            None => INITIAL_RTO,
            Some((smoothed, variation)) => smoothed + variation * 4,
        };
        let rto = rto.max(self.min_rto);
        let backed_off = rto.saturating_mul(1 << self.backoff.min(16));
        backed_off.min(MAX_BACKED_OFF.max(rto))
    }

    /// Doubles the timeout until the next measurement.
    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
    }

    /// Something was acknowledged: the path works.
    pub fn reset_back_off(&mut self) {
        self.backoff = 0;
    }

    /// How much later than the PDUs after it a PDU may arrive before it counts as lost.
    pub fn reordering_window(&self) -> Duration {
        let smoothed = self.smoothed().unwrap_or(INITIAL_RTO);
        (smoothed * self.reordering / 4).max(Duration::from_micros(500))
    }

    /// A PDU was retransmitted although it had arrived: reordering is more than was assumed.
    pub fn spurious(&mut self) {
        self.reordering = (self.reordering * 2).min(8);
    }
}

#[cfg(test)]
mod tests {
    use super::Rtt;
    use std::time::Duration;

    #[test]
    fn the_timeout_is_that_of_rfc_6298() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new(ms(1));
        assert_eq!(rtt.rto(), ms(250));
        rtt.sample(ms(80));
        // SRTT 80, RTTVAR 40.
        assert_eq!(rtt.rto(), ms(240));
        rtt.sample(ms(160));
        // RTTVAR 3/4·40 + 1/4·80 = 50, SRTT 7/8·80 + 1/8·160 = 90.
        assert_eq!(rtt.rto(), ms(290));
        rtt.back_off();
        rtt.back_off();
        assert_eq!(rtt.rto(), ms(1160));
        rtt.reset_back_off();
        assert_eq!(rtt.rto(), ms(290));
    }
}
