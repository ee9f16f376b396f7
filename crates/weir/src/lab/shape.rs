//! What a link does with packets, by queueing disciplines of the kernel (tc).

use anyhow::{Context, Result, ensure};
use std::time::Duration;

/// Rate, delay and loss of a link, in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shape {
    /// Bits per second.
    pub rate: Option<u64>,
    /// From one end to the other.
    pub delay: Duration,
    /// Packets that are lost, in per cent.
    pub loss: f64,
}

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(60);
/// Packets that wait for a link with a rate.
const QUEUE: u64 = 1000;
/// Packets in flight on a link with a delay.
const IN_FLIGHT: u64 = 100_000;
/// Bytes of a full Ethernet frame.
const FRAME: u64 = 1514;

impl Shape {
    /// Checks ranges.
    ///
    /// # Errors
    /// A value is out of its range.
    pub fn check(&self) -> Result<()> {
        ensure!(
            self.rate.is_none_or(|rate| (8_000..=1_000_000_000_000).contains(&rate)),
            "rate: expected 8 kbit/s to 1 Tbit/s, found {} bit/s",
            self.rate.unwrap_or_default()
        );
        ensure!(
            self.delay <= MAX_DELAY,
            "delay: expected at most {} s, found {} s",
            MAX_DELAY.as_secs(),
            self.delay.as_secs_f64()
        );
        ensure!(
            (0.0..=100.0).contains(&self.loss),
            "loss: expected 0 to 100 per cent, found {}",
            self.loss
        );
        Ok(())
    }

    /// Whether the kernel must have netem.
    pub fn needs_netem(&self) -> bool {
        !self.delay.is_zero() || self.loss > 0.0
    }

    /// What is left for the kernel where weir delays and loses packets.
    pub fn only_rate(self) -> Self {
        Shape {
            rate: self.rate,
            ..Shape::default()
        }
    }

    /// The queueing discipline of an interface that sends to this link, as `tc` takes it. Ports of
    /// switches leave the rate to the switch, whose queues have real depths.
    pub fn qdisc(&self, is_switch: bool) -> Option<Vec<String>> {
        let rate = self.rate.filter(|_| !is_switch);
        let mut words: Vec<String> = Vec::new();
        let mut add = |text: &str| words.extend(text.split_whitespace().map(str::to_owned));
        if self.needs_netem() {
            add("netem");
            if !self.delay.is_zero() {
                add(&format!("delay {}us", self.delay.as_micros()));
            }
            if self.loss > 0.0 {
                add(&format!("loss {}%", self.loss));
            }
            match rate {
                Some(rate) => add(&format!("rate {rate}bit limit {QUEUE}")),
                None => add(&format!("limit {IN_FLIGHT}")),
            }
        } else if let Some(rate) = rate {
            // A bucket holds what the rate gives in 4 ms: the timer of slow kernels.
            let burst = (rate / 8 / 250).max(2 * FRAME);
            add(&format!("tbf rate {rate}bit burst {burst} limit {}", QUEUE * FRAME));
        }
        (!words.is_empty()).then_some(words)
    }

    /// In words, for people.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(rate) = self.rate {
            parts.push(format!("{} Mbit/s", rate as f64 / 1e6));
        }
        if !self.delay.is_zero() {
            parts.push(format!("{} ms", self.delay.as_secs_f64() * 1e3));
        }
        if self.loss > 0.0 {
            parts.push(format!("{} % lost", self.loss));
        }
        parts.join(", ")
    }
}

/// A rate with its unit: `10Mbit`, `500kbit`, `1Gbit`, or bits per second.
///
/// # Errors
/// It is none.
pub fn rate(text: &str) -> Result<u64> {
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "bit" => Some(1.0),
        "k" | "kbit" => Some(1e3),
        "m" | "mbit" => Some(1e6),
        "g" | "gbit" => Some(1e9),
        _ => None,
    };
    let rate = digits
        .parse::<f64>()
        .ok()
        .zip(factor)
        .map(|(number, factor)| number * factor);
    let rate = rate.filter(|rate| (0.0..1e15).contains(rate));
    rate.map(|rate| rate as u64)
        .with_context(|| format!("expected a rate such as 10Mbit or 500kbit, found `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn qdisc(shape: Shape, is_switch: bool) -> String {
        shape.check().unwrap();
        shape.qdisc(is_switch).unwrap_or_default().join(" ")
    }

    #[test]
    fn hosts_and_switches_share_the_work() {
        let shape = Shape {
            rate: Some(10_000_000),
            delay: Duration::from_micros(2500),
            loss: 0.5,
        };
        assert_eq!(
            qdisc(shape, false),
            "netem delay 2500us loss 0.5% rate 10000000bit limit 1000"
        );
        assert_eq!(qdisc(shape, true), "netem delay 2500us loss 0.5% limit 100000");
        let rate = Shape {
            rate: Some(500_000),
            ..Shape::default()
        };
        assert_eq!(qdisc(rate, false), "tbf rate 500000bit burst 3028 limit 1514000");
        assert_eq!(qdisc(rate, true), "");
        assert_eq!(shape.text(), "10 Mbit/s, 2.5 ms, 0.5 % lost");
    }

    #[test]
    fn rates_have_units() {
        assert_eq!(rate("10Mbit").unwrap(), 10_000_000);
        assert_eq!(rate("0.5m").unwrap(), 500_000);
        assert!(rate("fast").is_err());
        assert!(rate("10 parsecs").is_err());
        let slow = Shape {
            rate: Some(1),
            ..Shape::default()
        };
        assert!(slow.check().unwrap_err().to_string().contains("8 kbit/s"));
    }
}
