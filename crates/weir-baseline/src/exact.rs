//! A hash table of 48-bit keys with 16-bit values. Buckets are one cache line; a full one overflows
//! into the next (linear probing by buckets).

use crate::simd::{Finder, KEY, Portable};
use weir_table::memory::{huge_vec, prefetch};

/// The value of a miss. No entry may have it.
pub const MISS: u16 = u16::MAX;
/// Up to this number of buckets (128 KiB) the table stays in the cache, and prefetching does not
/// pay.
const CACHED_BUCKETS: usize = 2048;

/// Eight slots: the value in the upper 16 bits, the key in the lower 48. Empty slots are all ones,
/// and come last.
#[derive(Clone)]
#[repr(align(64))]
struct Bucket([u64; 8]);

/// The table. At most half full. The key of all ones stands for an empty slot, and always misses.
#[derive(Clone)]
pub struct Exact {
    buckets: Vec<Bucket>,
    shift: u32,
}

impl Exact {
    /// A table with these entries; of two with the same key, the later one.
    ///
    /// # Panics
    /// A key has more than 48 bits or is all ones, a value is [`MISS`], or there are more than 2²⁸
    /// entries.
    #[must_use]
    pub fn new(entries: &[(u64, u16)]) -> Self {
        assert!(entries.len() <= 1 << 28, "places have 32 bits");
        let count = (entries.len() / 4 + 1).next_power_of_two().max(2);
        let mut table = Exact {
            buckets: huge_vec(count, Bucket([u64::MAX; 8])),
            shift: 64 - count.trailing_zeros(),
        };
        for (key, value) in entries {
            assert!(
                *key < KEY && *value != MISS,
                "keys have 48 bits, and one value stands for misses"
            );
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

    /// Whether the table is so large that prefetching buckets pays.
    #[must_use]
    pub fn needs_prefetch(&self) -> bool {
        self.buckets.len() > CACHED_BUCKETS
    }

    /// A view for lookups in a loop.
    #[inline(always)]
    pub(crate) fn view(&self) -> View<'_> {
        View {
            buckets: &self.buckets,
            shift: self.shift,
            table: self,
        }
    }

    /// Searches the buckets from `bucket` on for a key that overflowed: its slot, and the slot's
    /// position.
    #[cold]
    #[inline(never)]
    fn locate_overflow(&self, mut bucket: usize, key: u64) -> (u64, u32) {
        loop {
            bucket &= self.buckets.len() - 1;
            let slots = &self.buckets[bucket].0;
            let found = Portable::find(slots, key);
            if found != 0 {
                let lane = found.trailing_zeros() as usize & 7;
                return (slots[lane], (bucket * 8 + lane) as u32);
            }
            if slots[7] == u64::MAX {
                return (u64::MAX, 0);
            }
            bucket += 1;
        }
    }

    /// The bucket where the search for a key begins.
    #[must_use]
    pub fn bucket(&self, key: u64) -> usize {
        self.view().bucket(key)
    }

    /// Overwrites a slot that was located.
    #[inline(always)]
    pub(crate) fn set(&mut self, at: u32, slot: u64) {
        self.buckets[at as usize / 8].0[at as usize % 8] = slot;
    }

    /// The value of a key; [`MISS`] if it has none.
    #[must_use]
    pub fn get(&self, key: u64) -> u16 {
        (self.view().find::<Portable, false>(key) >> 48) as u16
    }
}

/// A view of a table, with its fields in registers.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    buckets: &'a [Bucket],
    shift: u32,
    /// For overflow only. Passing this reference instead of the view keeps the view's fields in
    /// registers.
    table: &'a Exact,
}

impl<'a> View<'a> {
    /// The bucket where the search for a key begins.
    #[inline(always)]
    pub(crate) fn bucket(self, key: u64) -> usize {
        (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    #[inline(always)]
    fn slots(self, key: u64) -> &'a [u64; 8] {
        // SAFETY: there are 2^n buckets, and the number of a bucket is a hash shifted to n bits.
        unsafe { &self.buckets.get_unchecked(self.bucket(key)).0 }
    }

    /// Prefetches the bucket of a key.
    #[inline(always)]
    pub(crate) fn prefetch(self, key: u64) {
        prefetch(self.slots(key));
    }

    /// The slot of a key: value above, key below; all ones if there is none. `MIXED`: hits and
    /// misses are about equally frequent, so that no branch should depend on them. This costs a
    /// little where they are not.
    #[inline(always)]
    pub(crate) fn find<F: Finder, const MIXED: bool>(self, key: u64) -> u64 {
        self.locate::<F, MIXED>(key).0
    }

    /// As [`View::find`], and the position of the slot, for [`Exact::set`].
    #[inline(always)]
    pub(crate) fn locate<F: Finder, const MIXED: bool>(self, key: u64) -> (u64, u32) {
        let bucket = self.bucket(key);
        let slots = self.slots(key);
        let found = F::find(slots, key);
        let lane = found.trailing_zeros() as usize & 7;
        let at = (bucket * 8 + lane) as u32;
        // Only a full bucket overflows into the next.
        if MIXED {
            if found | u32::from(slots[7] == u64::MAX) << 8 == 0 {
                return self.table.locate_overflow(bucket + 1, key);
            }
            return (std::hint::select_unpredictable(found == 0, u64::MAX, slots[lane]), at);
        }
        if found != 0 {
            (slots[lane], at)
        } else if slots[7] == u64::MAX {
            (u64::MAX, 0)
        } else {
            self.table.locate_overflow(bucket + 1, key)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserted_keys_are_found_and_no_others() {
        let entries: Vec<(u64, u16)> = (0..5000)
            .map(|i| ((i * 0x1_0001_0003) & KEY, (i % 1000) as u16))
            .collect();
        let table = Exact::new(&entries);
        for (key, value) in &entries {
            assert_eq!(table.get(*key), *value);
            #[cfg(target_arch = "x86_64")]
            if crate::simd::has_avx512() {
                assert_eq!(
                    (table.view().find::<crate::simd::Wide, true>(*key) >> 48) as u16,
                    *value
                );
            }
        }
        assert_eq!(table.get(0x1234_5678_9abc), MISS);
        assert_eq!(table.get(KEY), MISS);
    }

    #[test]
    fn full_buckets_overflow_into_the_next() {
        // More keys of the same bucket than it holds.
        let table = Exact::new(&[(1, 0); 200]);
        let same: Vec<u64> = (0..100_000).filter(|k| table.bucket(*k) == 3).take(30).collect();
        let entries: Vec<(u64, u16)> = same.iter().map(|k| (*k, *k as u16 & 0xff)).collect();
        let padding = (0..170).map(|i| (1 << 40 | i, 0));
        let table = Exact::new(&entries.iter().copied().chain(padding).collect::<Vec<_>>());
        assert!(entries.iter().all(|(k, v)| table.get(*k) == *v));
    }
}
