//! Keys looked up eight at a time: where they are is worked out for eight at once, then a bucket is searched for each, then eight
//! results are made at once.
//!
//! Buckets are asked for two groups before they are searched.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each, ones};
use crate::fast::eight::{EIGHT, Lanes, PackedSlots, hash, of_group};
use crate::fast::mem::prefetch;
use crate::fast::packed::bucket::{Bucket, first_bit, places};
use crate::fast::packed::{Array, Avx512, Search, second};
use crate::fast::packing::step;
use std::arch::x86_64::*;
use std::hint::select_unpredictable;
use std::ptr::without_provenance;
use std::sync::atomic::{AtomicU32, Ordering};

/// A bucket is a line of that many bytes, as a power of two.
const LINE_BITS: u32 = 6;
const GROUPS: usize = SLOTS / EIGHT;
/// Buckets are asked for so many groups ahead: one is too late, and more take longer, too (docs/performance.md).
const AHEAD: usize = 2;

/// What is the same for all keys.
struct Constants {
    entries: PackedSlots,
    /// The step it is now, in all half words.
    now: __m512i,
    /// Which half words of a bucket are the last hits of slots: each one twice, so that it lies as its slot does (half words 0 and 1 are the
    /// last hit of slot 0).
    stamps: __m512i,
}

/// Of each slot of a vector a bit for the place where its key was found, in its first bucket: no bit, or that of another key, where it was not.
struct Places([[u8; EIGHT]; GROUPS]);

impl Places {
    /// The place.
    #[inline(always)]
    fn of(&self, slot: usize) -> usize {
        first_bit(self.0[slot / EIGHT % GROUPS][slot % EIGHT])
    }
}

impl<B: Bucket> Array<B> {
    /// Where the buckets are that keys should be in.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn addresses(&self, keys: __m512i) -> __m512i {
        let buckets = _mm512_set1_epi64(self.buckets.as_ptr().expose_provenance() as i64);
        let first = first_eight(hash(self.seed, keys), _mm512_set1_epi64(self.count.into()));
        _mm512_add_epi64(buckets, _mm512_slli_epi64::<LINE_BITS>(first))
    }

    /// A lookup that is only right if nothing is written meanwhile.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_eight(&self, batch: &Batch<'_>) -> u64 {
        if batch.active == u64::MAX {
            self.search::<true>(*batch)
        } else {
            self.search::<false>(*batch)
        }
    }

    /// The same. `ALL` if all slots are active.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn search<const ALL: bool>(&self, batch: Batch<'_>) -> u64 {
        // SAFETY: the default has the words of a result.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        let now = step(batch.now) as u32;
        let of = Constants {
            entries: PackedSlots::new(self.packing, default),
            now: _mm512_set1_epi32(now as i32),
            stamps: _mm512_add_epi32(
                _mm512_set1_epi32(2 * B::WAYS as i32),
                _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7),
            ),
        };
        let actives = |group| if ALL { u8::MAX } else { of_group(batch.active, group) };
        let mut addresses = Lanes::new();
        let mut needles = Lanes::new();
        let mut found = Places([[0; EIGHT]; GROUPS]);
        for group in 0..GROUPS {
            if actives(group) == 0 {
                continue;
            }
            // SAFETY: keys have a word, and these are active slots of the group.
            let keys = unsafe { batch.eight_keys(0, group, actives(group)) };
            addresses.set(group, self.addresses(keys));
            needles.set(group, of.entries.needles(keys));
            if group < AHEAD {
                ask::<B>(addresses.group(group));
            }
        }
        let (mut hits, mut elsewhere, mut stale) = (0, 0, _mm512_setzero_si512());
        for group in 0..GROUPS {
            if group + AHEAD < GROUPS {
                if actives(group + AHEAD) != 0 {
                    ask::<B>(addresses.group(group + AHEAD));
                }
            } else if let Some(fetches) = batch.meanwhile {
                fetches.share(group + AHEAD - GROUPS, AHEAD);
            }
            let active = actives(group);
            if active == 0 {
                continue;
            }
            // SAFETY: the addresses are of buckets, those of slots without a key that of key 0.
            let slots = unsafe {
                let sought = (addresses.group(group), needles.group(group));
                find_eight::<B>(sought, active, &of, &mut found.0[group], &mut stale)
            };
            // SAFETY: results have a word, and these are active slots of the group.
            let hit = unsafe { of.entries.give(batch, group, active, slots, needles.get(group)) };
            hits |= u64::from(hit) << (EIGHT * group);
            if hit != active {
                let missed = u64::from(active & !hit) << (EIGHT * group);
                elsewhere |= self.go_elsewhere(batch, missed, &mut addresses);
            }
        }
        if B::STAMPS && _mm512_test_epi64_mask(stale, stale) != 0 {
            self.note_all(&addresses, &found, hits, now);
        }
        if elsewhere == 0 {
            return hits;
        }
        hits | self.search_elsewhere(batch, elsewhere, &addresses, &needles)
    }

    /// Puts the addresses of second buckets in place of the first ones', where keys may be there, and asks for them; which keys these are.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn go_elsewhere(&self, batch: Batch<'_>, missed: u64, addresses: &mut Lanes) -> u64 {
        let mut elsewhere = 0;
        each(missed, |slot, bit| {
            // SAFETY: only active slots, and word 0 always exists.
            let hash = self.seed.one(unsafe { batch.key(0, slot) });
            let first = super::first(hash, self.count);
            let may = self.may_overflow(first);
            // No branch should depend on it: it would be foretold wrongly where misses are frequent.
            let bucket = self.bucket(select_unpredictable(may, second(hash, self.count), first));
            prefetch(bucket);
            addresses.0[slot % SLOTS] = (&raw const *bucket).expose_provenance() as u64;
            elsewhere |= bit & ones(may);
        });
        elsewhere
    }

    /// [`Array::overflows`] of a bucket that has just been read, or that it is full, which is so of most that overflow: the bit, which may be far, is not
    /// waited for then.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn may_overflow(&self, number: u32) -> bool {
        static ALL: AtomicU32 = AtomicU32::new(u32::MAX);
        // SAFETY: a bucket is as long as a vector, and aligned like one; see `find_eight`.
        let slots = unsafe { _mm512_load_si512((&raw const *self.bucket(number)).cast()) };
        let is_full = _mm512_mask_testn_epi64_mask(places::<B>(), slots, slots) == 0;
        let bits = select_unpredictable(is_full, &ALL, self.overflow_bits(number));
        bits.load(Ordering::Acquire) >> (number % 32) & 1 == 1
    }

    /// The bucket at an address.
    #[inline]
    fn number_at(&self, address: u64) -> u32 {
        ((address as usize - self.buckets.as_ptr().addr()) >> LINE_BITS) as u32
    }

    /// Notes that what was hit in first buckets, of which these are the addresses, was hit. If something is written meanwhile the lookup is done again, but what
    /// was noted stays: an entry that has taken the place of the one that was hit has its last hit too late then, once.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn note_all(&self, addresses: &Lanes, found: &Places, hits: u64, now: u32) {
        each(hits, |slot, _| {
            let number = self.number_at(addresses.0[slot % SLOTS]);
            self.stamp_hit(number, found.of(slot), now);
        });
    }

    /// Looks keys up in their second buckets; who hit.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn search_elsewhere(&self, batch: Batch<'_>, elsewhere: u64, addresses: &Lanes, needles: &Lanes) -> u64 {
        let (significant, now) = (self.packing.significant(), step(batch.now) as u32);
        let mut hits = 0;
        each(elsewhere, |slot, bit| {
            let number = self.number_at(addresses.0[slot % SLOTS]);
            let (value, place) = Avx512::find(self.bucket(number), needles.0[slot % SLOTS], significant);
            if place != 0 {
                hits |= bit;
                // SAFETY: only active slots, and word 0 always exists.
                unsafe { batch.put(0, slot, self.packing.head(value)) };
                self.stamp_hit(number, first_bit(place), now);
            }
        });
        hits
    }
}

/// Asks for the buckets at these addresses.
#[inline]
fn ask<B: Bucket>(addresses: &[u64; EIGHT]) {
    for address in addresses {
        prefetch(without_provenance::<B>(*address as usize));
    }
}

/// What the buckets at these addresses hold of these keys, and a bit for the place of each; anything else, and no bit, where there is none.
///
/// # Safety
/// The addresses are of buckets.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn find_eight<B: Bucket>(
    (buckets, needles): (&[u64; EIGHT], &[u64; EIGHT]),
    active: u8,
    of: &Constants,
    found: &mut [u8; EIGHT],
    // Becomes other than 0 when one is found whose last hit is of another step.
    stale: &mut __m512i,
) -> __m512i {
    let mut find = |i: usize| {
        // SAFETY: the address is of a bucket, which is aligned. Aligned words are never read half, and who uses what was read
        // asks afterwards whether anything was written meanwhile.
        let bucket = unsafe { _mm512_load_si512(buckets[i] as *const __m512i) };
        let keys = of.entries.keys_of(bucket);
        let equal = _mm512_mask_cmpeq_epi64_mask(places::<B>(), keys, _mm512_set1_epi64(needles[i] as i64));
        if B::STAMPS {
            found[i] = equal;
        }
        if B::STAMPS && active >> i & 1 == 1 {
            let stamps = _mm512_permutexvar_epi32(of.stamps, bucket);
            let other = _mm512_or_si512(*stale, _mm512_xor_si512(stamps, of.now));
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

/// The buckets that hashes should be in.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn first_eight(hash: __m512i, count: __m512i) -> __m512i {
    _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fast::eight::has_eight;
    use crate::fast::packed::first;

    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn check(hashes: [u64; EIGHT], count: u32) {
        let mut lanes = Lanes::new();
        // SAFETY: eight words.
        let words = unsafe { _mm512_loadu_epi64(hashes.as_ptr().cast()) };
        lanes.set(0, first_eight(words, _mm512_set1_epi64(count.into())));
        for (i, hash) in hashes.iter().enumerate() {
            assert_eq!(lanes.group(0)[i], first(*hash, count).into(), "{hash:#x} of {count}");
        }
    }

    #[test]
    fn eight_hashes_are_in_the_buckets_that_each_of_them_is_in() {
        if !has_eight() {
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
