//! Count, sum, least and most of a quantity: what is kept where a histogram would take too much.

use serde::Serialize;

/// Count, sum, least and most of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Running {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
    /// The least; `u64::MAX` if there is none.
    pub min: u64,
    /// The largest; 0 if there is none.
    pub max: u64,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }
}

impl Running {
    /// Counts a value. The sum saturates.
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum = self.sum.saturating_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds other values.
    pub fn merge(&mut self, other: &Running) {
        self.count += other.count;
        self.sum = self.sum.saturating_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// The mean; `None` if there are no values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}
