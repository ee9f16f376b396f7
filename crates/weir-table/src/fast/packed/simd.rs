//! Lookups of eight keys at a time. The addresses of the buckets are computed for eight keys at
//! once, then one bucket is searched per key, then eight results are assembled at once.
//!
//! Buckets are prefetched two groups of keys before they are searched.
#![allow(unsafe_code)]

use crate::fast::mem::prefetch;
use crate::fast::packed::bucket::{Bucket, first_bit, slot_mask};
use crate::fast::packed::{Array, Avx512, Search, second};
use crate::fast::packing::tick;
use crate::fast::simd::{LANES, PackedSlots, SlotWords, group_mask, hash};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit, ones};
use std::arch::x86_64::*;
use std::hint::select_unpredictable;
use std::ptr::without_provenance;
use std::sync::atomic::{AtomicU32, Ordering};

/// log2 of the bytes of a bucket, which is a cache line.
const LINE_BITS: u32 = 6;
/// Groups of eight keys in a vector.
const GROUPS: usize = VECTOR_SLOTS / LANES;
/// Distance of the prefetch, in groups of keys. With one, lines do not arrive in time; more take
/// longer, too (docs/internals/lab-notes.md).
const PREFETCH_DISTANCE: usize = 2;

/// The constants that all groups of keys share, in registers.
struct Constants {
    entries: PackedSlots,
    /// The current tick, in all 32-bit words.
    now: __m512i,
    /// A permutation of a bucket's 32-bit words that brings each stamp to its slot's position,
    /// twice: words 0 and 1 become the stamp of slot 0.
    stamps: __m512i,
}

/// Per slot of the vector, a bit for the position of its key in the first bucket. No bit, or
/// another key's, if the key is not there.
struct MatchBits([[u8; LANES]; GROUPS]);

impl MatchBits {
    /// The position.
    #[inline(always)]
    fn of(&self, slot: usize) -> usize {
        first_bit(self.0[slot / LANES % GROUPS][slot % LANES])
    }
}

impl<B: Bucket> Array<B> {
    /// The addresses of keys' first buckets.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn addresses(&self, keys: __m512i) -> __m512i {
        let buckets = _mm512_set1_epi64(self.buckets.as_ptr().expose_provenance() as i64);
        let first = first_simd(hash(self.seed, keys), _mm512_set1_epi64(self.count.into()));
        _mm512_add_epi64(buckets, _mm512_slli_epi64::<LINE_BITS>(first))
    }

    /// An optimistic lookup: valid only if no write ran concurrently.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_simd(&self, vector: &VectorLookup<'_>) -> u64 {
        if vector.active == u64::MAX {
            self.search::<true>(*vector)
        } else {
            self.search::<false>(*vector)
        }
    }

    /// The same. `ALL` if all slots are active.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn search<const ALL: bool>(&self, vector: VectorLookup<'_>) -> u64 {
        // SAFETY: the default has the words of a result.
        let default = unsafe { vector.default.as_ref() }.load(Ordering::Relaxed);
        let now = tick(vector.now) as u32;
        let constants = Constants {
            entries: PackedSlots::new(self.packing, default),
            now: _mm512_set1_epi32(now as i32),
            stamps: _mm512_add_epi32(
                _mm512_set1_epi32(2 * B::SLOT_COUNT as i32),
                _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7),
            ),
        };
        let active_in = |group| if ALL { u8::MAX } else { group_mask(vector.active, group) };
        let mut addresses = SlotWords::new();
        let mut needles = SlotWords::new();
        let mut found = MatchBits([[0; LANES]; GROUPS]);
        for group in 0..GROUPS {
            if active_in(group) == 0 {
                continue;
            }
            // SAFETY: keys have a word, and these are active slots of the group.
            let keys = unsafe { vector.load_keys(0, group, active_in(group)) };
            addresses.set(group, self.addresses(keys));
            needles.set(group, constants.entries.needles(keys));
            if group < PREFETCH_DISTANCE {
                prefetch_buckets::<B>(addresses.group(group));
            }
        }
        let (mut hits, mut second_mask, mut stale) = (0, 0, _mm512_setzero_si512());
        for group in 0..GROUPS {
            if group + PREFETCH_DISTANCE < GROUPS {
                if active_in(group + PREFETCH_DISTANCE) != 0 {
                    prefetch_buckets::<B>(addresses.group(group + PREFETCH_DISTANCE));
                }
            } else if let Some(queue) = vector.queue {
                queue.prefetch_part(group + PREFETCH_DISTANCE - GROUPS, PREFETCH_DISTANCE);
            }
            let active = active_in(group);
            if active == 0 {
                continue;
            }
            // SAFETY: the addresses are of buckets, those of slots without a key that of key 0.
            let slots = unsafe {
                let probes = (addresses.group(group), needles.group(group));
                find_simd::<B>(probes, active, &constants, &mut found.0[group], &mut stale)
            };
            // SAFETY: results have a word, and these are active slots of the group.
            let hit = unsafe {
                constants
                    .entries
                    .write_results(vector, group, active, slots, needles.get(group))
            };
            hits |= u64::from(hit) << (LANES * group);
            if hit != active {
                let missed = u64::from(active & !hit) << (LANES * group);
                second_mask |= self.redirect_to_second(vector, missed, &mut addresses);
            }
        }
        if B::STAMPS && _mm512_test_epi64_mask(stale, stale) != 0 {
            self.stamp_all(&addresses, &found, hits, now);
        }
        if second_mask == 0 {
            return hits;
        }
        hits | self.search_second(vector, second_mask, &addresses, &needles)
    }

    /// Replaces the addresses of first buckets by those of second ones, for keys that may be there,
    /// and prefetches these. Returns the mask of these keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn redirect_to_second(&self, vector: VectorLookup<'_>, missed: u64, addresses: &mut SlotWords) -> u64 {
        let mut second_mask = 0;
        each_bit(missed, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let hash = self.seed.hash_word(unsafe { vector.key(0, slot) });
            let first = super::first(hash, self.count);
            let is_possible = self.may_overflow(first);
            // Without a branch: it would be mispredicted where misses are frequent.
            let bucket = self.bucket(select_unpredictable(is_possible, second(hash, self.count), first));
            prefetch(bucket);
            addresses.0[slot % VECTOR_SLOTS] = (&raw const *bucket).expose_provenance() as u64;
            second_mask |= bit & ones(is_possible);
        });
        second_mask
    }

    /// Whether a bucket that has just been read [overflows](Array::overflows), or is full, as most
    /// buckets that overflow are. For a full one the overflow bit, which may be far, is not read.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn may_overflow(&self, number: u32) -> bool {
        static ALL: AtomicU32 = AtomicU32::new(u32::MAX);
        // SAFETY: a bucket is as long as a vector, and aligned like one; see `find_simd`.
        let slots = unsafe { _mm512_load_si512((&raw const *self.bucket(number)).cast()) };
        let is_full = _mm512_mask_testn_epi64_mask(slot_mask::<B>(), slots, slots) == 0;
        let bits = select_unpredictable(is_full, &ALL, self.overflow_bits(number));
        bits.load(Ordering::Acquire) >> (number % 32) & 1 == 1
    }

    /// The number of the bucket at an address.
    #[inline]
    fn number_at(&self, address: u64) -> u32 {
        ((address as usize - self.buckets.as_ptr().addr()) >> LINE_BITS) as u32
    }

    /// Stamps hits in first buckets, given the buckets' addresses. If a writer runs concurrently
    /// the lookup is repeated, but these stamps remain. An entry that has replaced the one that was
    /// hit then gets a stamp that is too recent, once.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn stamp_all(&self, addresses: &SlotWords, found: &MatchBits, hits: u64, now: u32) {
        each_bit(hits, |slot, _| {
            let number = self.number_at(addresses.0[slot % VECTOR_SLOTS]);
            self.stamp_hit(number, found.of(slot), now);
        });
    }

    /// Looks keys up in their second buckets. Returns the mask of hits.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn search_second(
        &self,
        vector: VectorLookup<'_>,
        second_mask: u64,
        addresses: &SlotWords,
        needles: &SlotWords,
    ) -> u64 {
        let (significant, now) = (self.packing.significant(), tick(vector.now) as u32);
        let mut hits = 0;
        each_bit(second_mask, |slot, bit| {
            let number = self.number_at(addresses.0[slot % VECTOR_SLOTS]);
            let (value, position) = Avx512::find(self.bucket(number), needles.0[slot % VECTOR_SLOTS], significant);
            if position != 0 {
                hits |= bit;
                // SAFETY: only active slots, and word 0 always exists.
                unsafe { vector.set_result(0, slot, self.packing.head(value)) };
                self.stamp_hit(number, first_bit(position), now);
            }
        });
        hits
    }
}

/// Prefetches the buckets at these addresses.
#[inline]
fn prefetch_buckets<B: Bucket>(addresses: &[u64; LANES]) {
    for address in addresses {
        prefetch(without_provenance::<B>(*address as usize));
    }
}

/// The contents of the slots with these keys in the buckets at these addresses, and a bit for the
/// position of each. If there is none: other contents, and no bit.
///
/// # Safety
/// The addresses are of buckets.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn find_simd<B: Bucket>(
    (buckets, needles): (&[u64; LANES], &[u64; LANES]),
    active: u8,
    constants: &Constants,
    found: &mut [u8; LANES],
    // Becomes nonzero when a found key has a stamp of another tick.
    stale: &mut __m512i,
) -> __m512i {
    let mut find = |i: usize| {
        // SAFETY: the address is of a bucket, which is aligned. Aligned words are never read half,
        // and the caller validates the seqlock before it uses what was read.
        let bucket = unsafe { _mm512_load_si512(buckets[i] as *const __m512i) };
        let keys = constants.entries.key_bits(bucket);
        let equal = _mm512_mask_cmpeq_epi64_mask(slot_mask::<B>(), keys, _mm512_set1_epi64(needles[i] as i64));
        if B::STAMPS {
            found[i] = equal;
        }
        if B::STAMPS && active >> i & 1 == 1 {
            let stamps = _mm512_permutexvar_epi32(constants.stamps, bucket);
            let other = _mm512_or_si512(*stale, _mm512_xor_si512(stamps, constants.now));
            *stale = _mm512_mask_mov_epi64(*stale, equal, other);
        }
        _mm512_castsi512_si128(_mm512_maskz_compress_epi64(equal, bucket))
    };
    let mut pair = |i: usize| _mm_unpacklo_epi64(find(i), find(i + 1));
    let (a, b, c, d) = (pair(0), pair(2), pair(4), pair(6));
    let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
    let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// The first buckets of hashes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn first_simd(hash: __m512i, count: __m512i) -> __m512i {
    _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::packed::first;
    use crate::fast::simd::has_avx512_vbmi;

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn check(hashes: [u64; LANES], count: u32) {
        let mut lanes = SlotWords::new();
        // SAFETY: eight words.
        let words = unsafe { _mm512_loadu_epi64(hashes.as_ptr().cast()) };
        lanes.set(0, first_simd(words, _mm512_set1_epi64(count.into())));
        for (i, hash) in hashes.iter().enumerate() {
            assert_eq!(
                lanes.group(0)[i],
                u64::from(first(*hash, count)),
                "{hash:#x} of {count}"
            );
        }
    }

    #[test]
    fn eight_hashes_are_in_the_buckets_that_each_of_them_is_in() {
        if !has_avx512_vbmi() {
            return;
        }
        let hashes = [
            0,
            1,
            u64::MAX,
            77 << 32,
            0x8000_0000 << 32,
            1 << 32,
            0x1234_5678_9abc_def0,
            0xffff_fff0,
        ];
        for count in [2, 3, 5, 1000, 1 << 20, u32::MAX] {
            // SAFETY: the processor has these features.
            unsafe { check(hashes, count) };
        }
    }
}
