//! Sizes of SDUs on the command line.

use std::str::FromStr;

/// A size, or a range of sizes that is gone through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    least: usize,
    most: usize,
}

/// The largest size.
const MOST: usize = 1 << 20;

impl Sizes {
    /// The size of the SDU of a number.
    pub fn of(self, number: u64) -> usize {
        let count = (self.most - self.least + 1) as u64;
        self.least + (number % count) as usize
    }

    /// The smallest size.
    pub fn least(self) -> usize {
        self.least
    }

    /// The largest size.
    pub fn most(self) -> usize {
        self.most
    }
}

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("expected a number of bytes or a range such as 1-1400, from 1 to {MOST}, found `{text}`");
        let (least, most) = text.split_once('-').unwrap_or((text, text));
        let (least, most): (usize, usize) = least.parse().ok().zip(most.parse().ok()).ok_or_else(wrong)?;
        let is_good = (1..=most).contains(&least) && most <= MOST;
        is_good.then_some(Sizes { least, most }).ok_or_else(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::Sizes;

    #[test]
    fn ranges_are_gone_through() {
        let sizes: Sizes = "3-5".parse().unwrap();
        assert_eq!([0, 1, 2, 3].map(|n| sizes.of(n)), [3, 4, 5, 3]);
        assert_eq!("7".parse::<Sizes>().unwrap().of(9), 7);
        for wrong in ["", "0", "5-3", "a", "1-", "1-9999999"] {
            assert!(wrong.parse::<Sizes>().is_err(), "{wrong}");
        }
    }
}
