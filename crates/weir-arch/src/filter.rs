//! Filters: low-pass filters, and early random drop by one.

use serde::{Deserialize, Serialize};

/// How a low-pass filter works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LpfKind {
    /// The value follows what it is given.
    Sample,
    /// The value is the sum of what it is given, which fades.
    Rate,
}

/// Settings of a low-pass filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LpfConfig {
    /// How it works.
    pub kind: LpfKind,
    /// Rise time constant in ns: after it the output has risen by 63 % of the difference.
    pub gain_ns: u64,
    /// Fall time constant in ns: after it the output has fallen by 63 % of the difference.
    pub decay_ns: u64,
    /// Bits that are cut from the result.
    pub scale_down: u32,
}

/// A low-pass filter. One that is not configured gives what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Lpf {
    config: Option<LpfConfig>,
    value: f64,
    at_ns: u64,
}

impl Lpf {
    /// Sets it up, at zero; `None`: it gives what it is given.
    pub fn configure(&mut self, config: Option<LpfConfig>, now_ns: u64) {
        *self = Lpf {
            config,
            value: 0.0,
            at_ns: now_ns,
        };
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> Option<LpfConfig> {
        self.config
    }

    /// Gives it a sample.
    pub fn execute(&mut self, sample: u64, now_ns: u64) -> u64 {
        let Some(config) = self.config else { return sample };
        let elapsed = now_ns.saturating_sub(self.at_ns) as f64;
        self.at_ns = self.at_ns.max(now_ns);
        let left = |constant: u64| {
            if constant == 0 {
                0.0
            } else {
                (-elapsed / constant as f64).exp()
            }
        };
        let sample = sample as f64;
        self.value = match config.kind {
            LpfKind::Rate => self.value * left(config.decay_ns) + sample,
            LpfKind::Sample if sample > self.value => sample - (sample - self.value) * left(config.gain_ns),
            LpfKind::Sample => sample + (self.value - sample) * left(config.decay_ns),
        };
        // A cast from float saturates.
        (self.value as u64).checked_shr(config.scale_down).unwrap_or(0)
    }
}

/// Settings of early random drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WredConfig {
    /// Time constant in ns of the filter that smooths the value.
    pub time_constant_ns: u64,
    /// Up to this smoothed value nothing is dropped.
    pub min: u64,
    /// From this smoothed value on everything is.
    pub max: u64,
    /// How many of 10,000 packets are dropped just below that.
    pub max_probability: u32,
}

/// Early random drop. One that is not configured drops nothing.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Wred {
    config: Option<WredConfig>,
    average: Lpf,
}

impl Wred {
    /// Sets it up; `None`: it drops nothing.
    pub fn configure(&mut self, config: Option<WredConfig>, now_ns: u64) {
        self.config = config;
        let smooth = |c: WredConfig| LpfConfig {
            kind: LpfKind::Sample,
            gain_ns: c.time_constant_ns,
            decay_ns: c.time_constant_ns,
            scale_down: 0,
        };
        self.average.configure(config.map(smooth), now_ns);
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> Option<WredConfig> {
        self.config
    }

    /// Of 10,000 packets that come now with this value, how many are dropped.
    pub fn execute(&mut self, value: u64, now_ns: u64) -> u32 {
        let Some(config) = self.config else { return 0 };
        let average = self.average.execute(value, now_ns);
        if average <= config.min {
            return 0;
        }
        if average >= config.max {
            return 10_000;
        }
        let (above, span) = (average - config.min, config.max - config.min);
        let part = u128::from(config.max_probability.min(10_000)) * u128::from(above) / u128::from(span);
        u32::try_from(part).unwrap_or(10_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_followed_at_the_time_constants() {
        let mut lpf = Lpf::default();
        assert_eq!(lpf.execute(7, 0), 7);
        let config = LpfConfig {
            kind: LpfKind::Sample,
            gain_ns: 1000,
            decay_ns: 0,
            scale_down: 0,
        };
        lpf.configure(Some(config), 0);
        assert_eq!(lpf.execute(1000, 1000), 632);
        assert_eq!(lpf.execute(1000, 2000), 864);
        // Falls at once, and time does not go back.
        assert_eq!(lpf.execute(5, 1500), 5);
    }

    #[test]
    fn rates_add_up_and_fade() {
        let mut lpf = Lpf::default();
        let config = LpfConfig {
            kind: LpfKind::Rate,
            gain_ns: 0,
            decay_ns: 1000,
            scale_down: 1,
        };
        lpf.configure(Some(config), 0);
        assert_eq!(lpf.execute(100, 0), 50);
        assert_eq!(lpf.execute(100, 0), 100);
        assert_eq!(lpf.execute(0, 1000), 36);
    }

    #[test]
    fn drops_grow_between_the_thresholds() {
        let mut wred = Wred::default();
        assert_eq!(wred.execute(u64::MAX, 0), 0);
        let config = WredConfig {
            time_constant_ns: 0,
            min: 10,
            max: 20,
            max_probability: 5000,
        };
        wred.configure(Some(config), 0);
        assert_eq!(wred.execute(10, 0), 0);
        assert_eq!(wred.execute(15, 0), 2500);
        assert_eq!(wred.execute(20, 0), 10_000);
    }
}
