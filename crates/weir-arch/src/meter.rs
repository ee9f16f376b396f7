//! Meters: two rates, three colours (RFC 2698).

use serde::{Deserialize, Serialize};

/// Parts of a token that buckets are counted in.
const FEMTO: u128 = 1_000_000_000_000_000;

/// How fast a bucket fills, in 10⁻¹⁵ tokens per ns. A token is a packet or a byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Rate(u64);

impl Rate {
    /// From tokens per µs, bmv2's unit. Negative and not-a-number count as 0.
    #[must_use]
    pub fn from_tokens_per_us(rate: f64) -> Self {
        // A cast from float saturates.
        Rate((rate * 1e12).round() as u64)
    }

    /// From tokens per second, P4Runtime's unit; saturates at 1.8·10¹³.
    #[must_use]
    pub fn from_tokens_per_second(rate: u64) -> Self {
        Rate(rate.saturating_mul(1_000_000))
    }

    /// In tokens per µs.
    #[must_use]
    pub fn tokens_per_us(self) -> f64 {
        self.0 as f64 / 1e12
    }

    /// In tokens per second, rounded down.
    #[must_use]
    pub fn tokens_per_second(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// Rates and bucket sizes of a meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MeterConfig {
    /// Committed information rate.
    pub cir: Rate,
    /// Committed burst size in tokens.
    pub cbs: u64,
    /// Peak information rate.
    pub pir: Rate,
    /// Peak burst size in tokens.
    pub pbs: u64,
}

/// The result of a meter. The numbers are v1model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Color {
    /// Within the committed rate.
    Green = 0,
    /// Within the peak rate.
    Yellow = 1,
    /// Above the peak rate.
    Red = 2,
}

/// One meter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meter {
    config: Option<MeterConfig>,
    /// Tokens in the buckets, in 10⁻¹⁵.
    committed: u128,
    peak: u128,
    /// When they were filled last, on the switch's clock in ns.
    filled_ns: u64,
}

impl Meter {
    /// Sets rates and fills the buckets; `None`: every packet is green.
    pub fn configure(&mut self, config: Option<MeterConfig>, now_ns: u64) {
        let full = config.unwrap_or_default();
        *self = Meter {
            config,
            committed: u128::from(full.cbs) * FEMTO,
            peak: u128::from(full.pbs) * FEMTO,
            filled_ns: now_ns,
        };
    }

    /// Its rates.
    #[must_use]
    pub fn config(&self) -> Option<MeterConfig> {
        self.config
    }

    fn fill(&mut self, config: &MeterConfig, now_ns: u64) {
        let elapsed = u128::from(now_ns.saturating_sub(self.filled_ns));
        let fill = |tokens: u128, rate: Rate, burst: u64| {
            tokens
                .saturating_add(elapsed * u128::from(rate.0))
                .min(u128::from(burst) * FEMTO)
        };
        self.committed = fill(self.committed, config.cir, config.cbs);
        self.peak = fill(self.peak, config.pir, config.pbs);
        self.filled_ns = self.filled_ns.max(now_ns);
    }

    /// The colour of a packet of this many tokens; takes the tokens. It is no better than `before`,
    /// the result of an earlier meter (green: the meter is colour-blind). `force`
    /// overrides the colour (and takes what that colour takes, as far as it is there).
    pub fn execute(&mut self, tokens: u64, now_ns: u64, before: Color, force: impl FnOnce(Color) -> Color) -> Color {
        let Some(config) = self.config else {
            return Color::Green;
        };
        self.fill(&config, now_ns);
        let cost = u128::from(tokens) * FEMTO;
        let color = force(if before == Color::Red || self.peak < cost {
            Color::Red
        } else if before == Color::Yellow || self.committed < cost {
            Color::Yellow
        } else {
            Color::Green
        });
        if color != Color::Red {
            self.peak = self.peak.saturating_sub(cost);
        }
        if color == Color::Green {
            self.committed = self.committed.saturating_sub(cost);
        }
        color
    }

    /// Corrects the tokens of a packet with this colour: it costs other tokens than those charged.
    pub fn correct(&mut self, color: Color, taken: u64, tokens: u64) {
        let Some(config) = self.config else { return };
        let correct = |bucket: u128, burst: u64| {
            let all = bucket + u128::from(taken) * FEMTO;
            all.saturating_sub(u128::from(tokens) * FEMTO)
                .min(u128::from(burst) * FEMTO)
        };
        if color != Color::Red {
            self.peak = correct(self.peak, config.pbs);
        }
        if color == Color::Green {
            self.committed = correct(self.committed, config.cbs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(meter: &mut Meter, tokens: u64, now_ns: u64) -> Color {
        meter.execute(tokens, now_ns, Color::Green, |c| c)
    }

    #[test]
    fn buckets_start_full_and_refill_at_their_rates() {
        let mut meter = Meter::default();
        assert_eq!(run(&mut meter, 1_000_000, 0), Color::Green);
        let per_ms = Rate::from_tokens_per_us(0.001);
        let config = MeterConfig {
            cir: per_ms,
            cbs: 1,
            pir: per_ms,
            pbs: 2,
        };
        meter.configure(Some(config), 0);
        assert_eq!(run(&mut meter, 1, 0), Color::Green);
        assert_eq!(run(&mut meter, 1, 0), Color::Yellow);
        assert_eq!(run(&mut meter, 1, 0), Color::Red);
        assert_eq!(run(&mut meter, 1, 999_999), Color::Red);
        assert_eq!(run(&mut meter, 1, 1_000_000), Color::Green);
        assert_eq!(run(&mut meter, 1, 1_000_000), Color::Red);
    }

    #[test]
    fn no_meter_makes_a_packet_better() {
        let mut meter = Meter::default();
        assert_eq!(meter.execute(1, 0, Color::Red, |c| c), Color::Green);
        let config = MeterConfig {
            cbs: 5,
            pbs: 5,
            ..MeterConfig::default()
        };
        meter.configure(Some(config), 0);
        assert_eq!(meter.execute(5, 0, Color::Red, |c| c), Color::Red);
        assert_eq!(meter.execute(1, 0, Color::Yellow, |c| c), Color::Yellow);
        // The yellow packet has taken tokens of the peak bucket only.
        assert_eq!(meter.execute(5, 0, Color::Green, |c| c), Color::Red);
        assert_eq!(meter.execute(4, 0, Color::Green, |c| c), Color::Green);
    }

    #[test]
    fn red_consumes_nothing() {
        let mut meter = Meter::default();
        let config = MeterConfig {
            cir: Rate::default(),
            cbs: 5,
            pir: Rate::default(),
            pbs: 5,
        };
        meter.configure(Some(config), 0);
        assert_eq!(run(&mut meter, 6, 0), Color::Red);
        assert_eq!(run(&mut meter, 5, 0), Color::Green);
    }

    #[test]
    fn what_was_taken_too_little_is_taken_later() {
        let mut meter = Meter::default();
        let config = MeterConfig {
            cbs: 10,
            pbs: 10,
            ..MeterConfig::default()
        };
        meter.configure(Some(config), 0);
        assert_eq!(run(&mut meter, 4, 0), Color::Green);
        meter.correct(Color::Green, 4, 8);
        assert_eq!(run(&mut meter, 3, 0), Color::Red);
        meter.correct(Color::Red, 3, 9);
        assert_eq!(run(&mut meter, 2, 0), Color::Green);
        meter.correct(Color::Green, 2, 0);
        assert_eq!(run(&mut meter, 2, 0), Color::Green);
    }

    #[test]
    fn rates_survive_their_units() {
        assert_eq!(Rate::from_tokens_per_us(0.000_006).tokens_per_second(), 6);
        assert_eq!(Rate::from_tokens_per_second(1_000_000), Rate::from_tokens_per_us(1.0));
        assert_eq!(Rate::from_tokens_per_us(-1.0), Rate::default());
        assert_eq!(Rate::from_tokens_per_us(f64::NAN), Rate::default());
    }
}
