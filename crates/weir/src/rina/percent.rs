//! Percentages on the command line.

use std::fmt;
use std::str::FromStr;

/// A share, as percent on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent {
    per_million: u32,
}

impl Percent {
    /// The share, per million.
    pub fn per_million(self) -> u32 {
        self.per_million
    }
}

impl FromStr for Percent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent: Option<f64> = text.trim_end_matches('%').parse().ok();
        let percent = percent.filter(|percent| (0.0..=100.0).contains(percent));
        percent
            .map(|percent| Percent {
                per_million: (percent * 10_000.0).round() as u32,
            })
            .ok_or_else(|| format!("expected a percentage from 0 to 100, found `{text}`"))
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.per_million) / 10_000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Percent;

    #[test]
    fn percentages_are_shares() {
        let percent = |text: &str| text.parse::<Percent>().map(Percent::per_million);
        assert_eq!(percent("1"), Ok(10_000));
        assert_eq!(percent("0.5%"), Ok(5000));
        for wrong in ["", "-1", "101", "x", "NaN"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
