//! Statistics of delays: summaries with confidence intervals, and lines through points.
//!
//! All intervals are of 95 %. The tests hold the figures against numpy.

use serde::{Deserialize, Serialize};

/// Quantile of the normal distribution for two-sided intervals of 95 %.
const NORMAL: f64 = 1.959_963_984_540_054;
/// Quantiles of Student's t for 1 to 10 degrees of freedom.
const STUDENT: [f64; 10] = [
    12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582, 2.446_912, 2.364_624, 2.306_004, 2.262_157, 2.228_139,
];
/// Batches whose means give the interval of a mean.
const BATCHES: usize = 32;
/// Samples of a batch, at the least: with fewer, samples are taken as independent.
const SMALLEST_BATCH: usize = 8;

/// An interval that holds the true value with a probability of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    fn around(value: f64, half_width: f64) -> Self {
        Interval {
            low: value - half_width,
            high: value + half_width,
        }
    }

    /// Whether a value is inside.
    pub fn contains(self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// A value with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The value.
    pub value: f64,
    /// Its interval of 95 %; `None` with too few samples for one.
    pub interval: Option<Interval>,
}

impl Estimate {
    /// The difference of two independent estimates; the distances to the ends of their intervals
    /// add as roots of sums of squares.
    pub fn minus(self, other: Estimate) -> Estimate {
        let value = self.value - other.value;
        let both = self.interval.zip(other.interval);
        let interval = both.map(|(own, others)| Interval {
            low: value - (self.value - own.low).hypot(others.high - other.value),
            high: value + (own.high - self.value).hypot(other.value - others.low),
        });
        Estimate { value, interval }
    }
}

/// Delays of one case, in ns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Number of samples.
    pub count: u64,
    /// The mean. Its interval is of the means of 32 batches, so that it holds where neighbouring
    /// packets have similar delays.
    pub mean: Estimate,
    /// The standard deviation of samples (divided by n - 1); 0 with one sample.
    pub deviation: f64,
    /// The least.
    pub min: f64,
    /// The median. Its interval is of order statistics: it takes samples as independent.
    pub median: Estimate,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The greatest.
    pub max: f64,
}

impl Summary {
    /// Summarises samples in the order in which they were taken; `None` without any.
    pub fn of(samples: &[i64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()? as f64, *sorted.last()? as f64);
        let count = samples.len();
        let mean = mean(samples);
        let squares: f64 = samples.iter().map(|x| (*x as f64 - mean).powi(2)).sum();
        let deviation = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Summary {
            count: count as u64,
            mean: Estimate {
                value: mean,
                interval: mean_interval(samples, mean, deviation),
            },
            deviation,
            min,
            median: Estimate {
                value: quantile(&sorted, 0.5),
                interval: median_interval(&sorted),
            },
            p99: quantile(&sorted, 0.99),
            p99_9: quantile(&sorted, 0.999),
            max,
        })
    }
}

/// The mean. Differences from the first sample are added, so that large values lose no digits.
fn mean(samples: &[i64]) -> f64 {
    let first = samples.first().copied().unwrap_or(0);
    let sum: f64 = samples.iter().map(|x| (x - first) as f64).sum();
    first as f64 + sum / samples.len().max(1) as f64
}

/// The interval of a mean: of the means of batches where there are enough samples for them.
fn mean_interval(samples: &[i64], overall: f64, deviation: f64) -> Option<Interval> {
    let size = samples.len() / BATCHES;
    if size < SMALLEST_BATCH {
        let error = deviation / (samples.len() as f64).sqrt();
        return Some(Interval::around(
            overall,
            student(samples.len().checked_sub(1)?)? * error,
        ));
    }
    let means: Vec<f64> = samples.chunks_exact(size).take(BATCHES).map(mean).collect();
    let center = means.iter().sum::<f64>() / BATCHES as f64;
    let squares: f64 = means.iter().map(|m| (m - center).powi(2)).sum();
    let error = (squares / (BATCHES - 1) as f64 / BATCHES as f64).sqrt();
    Some(Interval::around(overall, student(BATCHES - 1)? * error))
}

/// The interval of a median: the order statistics whose ranks are two standard deviations of the
/// binomial distribution away.
fn median_interval(sorted: &[i64]) -> Option<Interval> {
    let count = sorted.len() as f64;
    let half_width = NORMAL * count.sqrt() / 2.0;
    let low = (count / 2.0 - half_width).floor();
    let high = (count / 2.0 + half_width).ceil();
    // Ranks count from 1.
    let at = |rank: f64| (rank >= 1.0).then(|| sorted.get(rank as usize - 1)).flatten();
    Some(Interval {
        low: *at(low)? as f64,
        high: *at(high)? as f64,
    })
}

/// A quantile of sorted samples, interpolated between the two nearest ones (numpy's default).
pub fn quantile(sorted: &[i64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return 0.0;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let value = |at: usize| sorted[at.min(last)] as f64;
    value(below) + (value(below + 1) - value(below)) * place.fract()
}

/// Quantile of Student's t for two-sided intervals of 95 %; `None` without a degree of freedom.
/// Beyond ten degrees it is the expansion around the normal distribution, exact to 1e-5.
fn student(degrees: usize) -> Option<f64> {
    if degrees <= STUDENT.len() {
        return STUDENT.get(degrees.checked_sub(1)?).copied();
    }
    let (z, n) = (NORMAL, degrees as f64);
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
        (79.0 * z.powi(9) + 776.0 * z.powi(7) + 1482.0 * z.powi(5) - 1920.0 * z.powi(3) - 945.0 * z) / 92_160.0,
    ];
    let sum = terms.iter().zip(1..).map(|(term, power)| term / n.powi(power));
    Some(z + sum.sum::<f64>())
}

/// A straight line through points, by least squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Number of points.
    pub points: u64,
    /// Where the line meets x = 0.
    pub intercept: Estimate,
    /// Its slope.
    pub slope: Estimate,
    /// The share of the variance that the line explains, 0 to 1; 1 where there is no variance.
    pub r_squared: f64,
}

impl Fit {
    /// Fits a line; `None` with fewer than two different x. Two points have no intervals.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let x_mean = points.iter().map(|p| p.0).sum::<f64>() / count;
        let y_mean = points.iter().map(|p| p.1).sum::<f64>() / count;
        let sum = |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|(x, y)| of(x - x_mean, y - y_mean)).sum::<f64>();
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if points.len() < 2 || xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let intercept = y_mean - slope * x_mean;
        let residuals = sum(&|x, y| (y - slope * x).powi(2));
        let degrees = points.len() - 2;
        let variance = residuals / degrees as f64;
        let estimate = |value: f64, error: f64| Estimate {
            value,
            interval: student(degrees).map(|t| Interval::around(value, t * error)),
        };
        Some(Fit {
            points: points.len() as u64,
            slope: estimate(slope, (variance / xx).sqrt()),
            intercept: estimate(intercept, (variance * (1.0 / count + x_mean * x_mean / xx)).sqrt()),
            r_squared: if yy > 0.0 { 1.0 - residuals / yy } else { 1.0 },
        })
    }

    /// The value of the line.
    pub fn at(&self, x: f64) -> f64 {
        self.intercept.value + self.slope.value * x
    }
}

#[cfg(test)]
#[path = "stats/tests.rs"]
mod tests;
