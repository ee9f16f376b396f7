//! Values that are watched: limits with hysteresis, changes, and signs of life.

/// When a watched value is worth an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From this value on it is above its limit.
    pub rise: u64,
    /// At this value or below it is back. Less than `rise`: that is the hysteresis.
    pub fall: u64,
    /// A change by this much since the last event; `None`: changes are no events.
    pub delta: Option<u64>,
}

impl Limits {
    /// A limit whose hysteresis is a fifth of it.
    #[must_use]
    pub fn at(rise: u64) -> Self {
        Limits {
            rise,
            fall: rise - rise / 5,
            delta: None,
        }
    }
}

/// What a watched value has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// It reached its limit.
    Rose,
    /// It is back below.
    Fell {
        /// When it had reached the limit, in ns.
        since: u64,
        /// The largest value in between.
        peak: u64,
        /// Values in between.
        values: u64,
    },
    /// It changed by the delta or more.
    Moved {
        /// The value of the last event.
        from: u64,
    },
    /// Nothing changed for the keepalive's time.
    Alive,
}

/// The state of a watched value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Watch {
    /// Since when the value is above its limit.
    above: Option<u64>,
    peak: u64,
    values: u64,
    /// Value and time of the last event.
    sent: Option<(u64, u64)>,
}

impl Watch {
    /// Looks at a value at a time in ns. `keepalive`: how long it may stay without an event, in ns.
    pub fn observe(&mut self, limits: &Limits, keepalive: Option<u64>, now: u64, value: u64) -> Option<Crossing> {
        let crossing = self.crossing(limits, keepalive, now, value);
        if crossing.is_some() || self.sent.is_none() {
            self.sent = Some((value, now));
        }
        crossing
    }

    /// Whether the value is above its limit.
    #[must_use]
    pub fn is_above(&self) -> bool {
        self.above.is_some()
    }

    /// The largest value since it reached the limit.
    #[must_use]
    pub fn peak(&self) -> u64 {
        self.peak
    }

    fn crossing(&mut self, limits: &Limits, keepalive: Option<u64>, now: u64, value: u64) -> Option<Crossing> {
        match self.above {
            None if value >= limits.rise => {
                (self.above, self.peak, self.values) = (Some(now), value, 1);
                return Some(Crossing::Rose);
            }
            Some(since) if value <= limits.fall => {
                self.above = None;
                return Some(Crossing::Fell {
                    since,
                    peak: self.peak,
                    values: self.values,
                });
            }
            Some(_) => {
                self.peak = self.peak.max(value);
                self.values += 1;
            }
            None => {}
        }
        let (last, at) = self.sent?;
        if limits.delta.is_some_and(|delta| value.abs_diff(last) >= delta) {
            return Some(Crossing::Moved { from: last });
        }
        let is_due = keepalive.is_some_and(|time| now.saturating_sub(at) >= time);
        is_due.then_some(Crossing::Alive)
    }
}

#[cfg(test)]
mod tests {
    use super::{Crossing, Limits, Watch};

    #[test]
    fn values_between_fall_and_rise_change_nothing() {
        let limits = Limits::at(100);
        let mut watch = Watch::default();
        let mut look = |now, value| watch.observe(&limits, None, now, value);
        assert_eq!(look(1, 99), None);
        assert_eq!(look(2, 100), Some(Crossing::Rose));
        assert_eq!(look(3, 90), None);
        assert_eq!(look(4, 150), None);
        let (since, peak, values) = (2, 150, 3);
        assert_eq!(look(5, 80), Some(Crossing::Fell { since, peak, values }));
        assert_eq!(look(6, 99), None);
    }

    #[test]
    fn changes_and_silence_are_events() {
        let limits = Limits {
            rise: u64::MAX,
            fall: 0,
            delta: Some(10),
        };
        let mut watch = Watch::default();
        let mut look = |now, value| watch.observe(&limits, Some(1000), now, value);
        assert_eq!(look(0, 50), None);
        assert_eq!(look(1, 59), None);
        assert_eq!(look(2, 60), Some(Crossing::Moved { from: 50 }));
        assert_eq!(look(3, 51), None);
        assert_eq!(look(1002, 55), Some(Crossing::Alive));
        assert_eq!(look(1003, 55), None);
    }
}
