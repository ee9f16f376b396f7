//! An exact table of 48-bit keys with 16-bit values, in buckets of one cache line.

use crate::simd::{Finder, KEY, Portable, prefetch};

/// The value of a miss.
pub const MISS: u16 = u16::MAX;

/// Eight slots: value above, key below.
#[derive(Clone)]
#[repr(align(64))]
struct Bucket([u64; 8]);

/// The table. At most half full; a bucket that overflows goes on in the next. The key of all ones stands for an
/// empty slot, and is always a miss.
#[derive(Clone)]
pub struct Exact {
    buckets: Vec<Bucket>,
    shift: u32,
}

/// A slot of the table.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    pub bucket: usize,
    pub lane: usize,
}

impl Exact {
    /// A table with these entries; of two with the same key, the later.
    ///
    /// # Panics
    /// A key has more than 48 bits.
    #[must_use]
    pub fn new(entries: &[(u64, u16)]) -> Self {
        let count = (entries.len() / 4 + 1).next_power_of_two().max(2);
        let mut table = Exact {
            buckets: crate::huge_vec(count, Bucket([u64::MAX; 8])),
            shift: 64 - count.trailing_zeros(),
        };
        for (key, value) in entries {
            assert!(*key <= KEY, "keys have 48 bits");
            table.insert(*key, *value);
        }
        table
    }

    fn insert(&mut self, key: u64, value: u16) {
        let mut at = self.bucket(key);
        loop {
            let slots = &mut self.buckets[at].0;
            if let Some(slot) = slots.iter_mut().find(|s| **s & KEY == key || **s == u64::MAX) {
                *slot = key | u64::from(value) << 48;
                return;
            }
            at = (at + 1) & (self.buckets.len() - 1);
        }
    }

    /// Number of buckets.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The bucket where a key is looked for first.
    #[inline(always)]
    #[must_use]
    pub fn bucket(&self, key: u64) -> usize {
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        ((mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> self.shift) as usize
    }

    /// Fetches a bucket.
    #[inline(always)]
    pub fn prefetch(&self, bucket: usize) {
        prefetch(&self.buckets[bucket & (self.buckets.len() - 1)]);
    }

    /// The value of a key, and where it is.
    #[inline(always)]
    pub(crate) fn find<F: Finder>(&self, mut bucket: usize, key: u64) -> (u16, Slot) {
        let mask = self.buckets.len() - 1;
        loop {
            bucket &= mask;
            let slots = &self.buckets[bucket].0;
            let lane = F::find(slots, key);
            if lane < 8 {
                return ((slots[lane] >> 48) as u16, Slot { bucket, lane });
            }
            // Only a full bucket goes on in the next one.
            if slots[7] == u64::MAX {
                return (MISS, Slot { bucket, lane: 0 });
            }
            bucket += 1;
        }
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: u64) -> u16 {
        self.find::<Portable>(self.bucket(key), key).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_found_and_nothing_else() {
        let entries: Vec<(u64, u16)> = (0..5000)
            .map(|i| (i * 0x1_0001_0003 & KEY, (i % 1000) as u16))
            .collect();
        let table = Exact::new(&entries);
        for (key, value) in &entries {
            assert_eq!(table.get(*key), *value);
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx512() {
                assert_eq!(table.find::<crate::simd::Wide>(table.bucket(*key), *key).0, *value);
            }
        }
        assert_eq!(table.get(0x1234_5678_9abc), MISS);
        assert_eq!(table.get(KEY), MISS);
    }
}
