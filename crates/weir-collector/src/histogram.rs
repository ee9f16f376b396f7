//! Histograms that merge.

use hdrhistogram::Histogram as Hdr;

/// Significant decimal digits: values of one bucket differ by less than 1 %.
const DIGITS: u8 = 2;

/// The version of [`Histogram::to_bytes`].
const VERSION: u8 = 1;

/// A histogram of non-negative integers over the whole range of 64 bits, with a relative error of
/// at most 1 %.
///
/// Buckets depend on values alone, so that histograms of parts of the data, merged in any order,
/// are equal to the histogram of all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    counts: Hdr<u64>,
    sum: u128,
}

/// Bytes that are no histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a histogram of version {VERSION}: byte {at} of {length} does not fit")]
pub struct HistogramError {
    /// Position of the byte that does not fit.
    pub at: usize,
    /// Number of bytes.
    pub length: usize,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram.
    ///
    /// # Panics
    /// Never: the number of digits is one that the implementation accepts.
    #[must_use]
    pub fn new() -> Self {
        let counts = Hdr::new(DIGITS).expect("two digits are supported");
        Histogram { counts, sum: 0 }
    }

    /// Counts a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        // An error is only possible without automatic resizing.
        if self.counts.record(value).is_ok() {
            self.sum = self.sum.saturating_add(u128::from(value));
        }
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        if self.counts.add(&other.counts).is_ok() {
            self.sum = self.sum.saturating_add(other.sum);
        }
    }

    /// Number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Whether it has no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The least value, to 1 %; 0 if there is none.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.counts.min() }
    }

    /// The largest value, to 1 %; 0 if there is none.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.counts.max()
    }

    /// The exact mean; 0 if there are no values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            0.0
        } else {
            self.sum as f64 / self.count() as f64
        }
    }

    /// The exact sum of all values.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest value that at least this share (0 to 1) of the values does not exceed, to 1 %;
    /// 0 if there are no values.
    #[must_use]
    pub fn quantile(&self, share: f64) -> u64 {
        self.counts.value_at_quantile(share)
    }

    /// Buckets that have values: the largest value of each, and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.counts
            .iter_recorded()
            .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
    }

    /// The histogram as bytes: a version, the sum (16 bytes, big endian), then for each bucket with
    /// values the difference from the one before and the count, both in LEB128.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        bytes.extend(self.sum.to_be_bytes());
        let mut last = 0;
        for (value, count) in self.buckets() {
            write_number(&mut bytes, value - last);
            write_number(&mut bytes, count);
            last = value;
        }
        bytes
    }

    /// Reads what [`Histogram::to_bytes`] wrote.
    ///
    /// # Errors
    /// The bytes are cut or not of this version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HistogramError> {
        let length = bytes.len();
        let error = |at| HistogramError { at, length };
        let (first, rest) = bytes.split_first().ok_or(error(0))?;
        if *first != VERSION {
            return Err(error(0));
        }
        let (sum, mut rest) = rest.split_first_chunk::<16>().ok_or(error(length))?;
        let mut histogram = Histogram::new();
        let mut last = 0_u64;
        while !rest.is_empty() {
            let at = length - rest.len();
            let mut next = || read_number(&mut rest).ok_or(error(at));
            let (difference, count) = (next()?, next()?);
            last = last.checked_add(difference).ok_or(error(at))?;
            let total = histogram.count().checked_add(count);
            if total.is_none() || histogram.counts.record_n(last, count).is_err() {
                return Err(error(at));
            }
        }
        histogram.sum = u128::from_be_bytes(*sum);
        Ok(histogram)
    }
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        number |= part.checked_shl(shift).filter(|shifted| shifted >> shift == part)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::Histogram;
    use proptest::prelude::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(*value));
        histogram
    }

    #[test]
    fn an_empty_histogram_is_all_zeros() {
        let empty = Histogram::new();
        assert_eq!(
            (empty.count(), empty.min(), empty.max(), empty.quantile(0.5)),
            (0, 0, 0, 0)
        );
        assert_eq!(Histogram::from_bytes(&empty.to_bytes()), Ok(empty));
    }

    #[test]
    fn sums_of_damaged_bytes_saturate() {
        let mut bytes = of(&[1]).to_bytes();
        bytes[1..17].fill(0xff);
        let mut histogram = Histogram::from_bytes(&bytes).unwrap();
        histogram.merge(&Histogram::from_bytes(&bytes).unwrap());
        histogram.record(1);
        assert_eq!((histogram.count(), histogram.sum()), (3, u128::MAX));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let good = of(&[1, 300, 70_000]).to_bytes();
        assert_eq!(Histogram::from_bytes(&[]).unwrap_err().at, 0);
        assert_eq!(Histogram::from_bytes(&[9; 40]).unwrap_err().at, 0);
        assert!(Histogram::from_bytes(&good[..good.len() - 1]).is_err());
        let mut endless = good;
        endless.extend([0xff; 20]);
        assert!(Histogram::from_bytes(&endless).is_err());
    }

    proptest! {
        #[test]
        fn quantiles_are_within_one_percent_of_those_of_the_sorted_values(
            mut values in prop::collection::vec(0_u64..1 << 40, 1..500),
            share in 0.0..=1.0_f64,
        ) {
            let histogram = of(&values);
            values.sort_unstable();
            let rank = ((share * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let found = histogram.quantile(share) as f64;
            // A share computed from a rank may round to the next one.
            let next = values[rank.min(values.len() - 1)] as f64;
            prop_assert!(found >= exact * 0.99 && found <= next * 1.01 + 1.0, "{} {}", found, exact);
        }

        #[test]
        fn parts_merged_in_any_order_are_equal_to_the_whole(
            values in prop::collection::vec(any::<u64>(), 0..300),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        ) {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(values.len() + 1)).collect();
            cuts.extend([0, values.len()]);
            cuts.sort_unstable();
            let mut merged = Histogram::new();
            for pair in cuts.windows(2).rev() {
                merged.merge(&of(&values[pair[0]..pair[1]]));
            }
            let whole = of(&values);
            prop_assert_eq!(merged.to_bytes(), whole.to_bytes());
            prop_assert_eq!(merged.sum(), whole.sum());
        }

        #[test]
        fn bytes_come_back(values in prop::collection::vec(any::<u64>(), 0..300)) {
            let histogram = of(&values);
            let back = Histogram::from_bytes(&histogram.to_bytes()).unwrap();
            prop_assert_eq!(back.to_bytes(), histogram.to_bytes());
            prop_assert_eq!((back.count(), back.sum()), (histogram.count(), histogram.sum()));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Histogram::from_bytes(&bytes);
        }
    }
}
