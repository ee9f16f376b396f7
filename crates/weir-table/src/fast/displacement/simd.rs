//! Displacement hash lookups of eight keys at a time. The displacements of all buckets (256 bytes)
//! are held in four registers, so a lookup's only memory access is the slot itself.
#![allow(unsafe_code)]

use crate::fast::displacement::{DISPLACEMENT_FACTOR, DISPLACEMENT_SHIFT, SlotArray};
use crate::fast::hash::Seed;
use crate::fast::packing::tick;
use crate::fast::simd::{LANES, PackedSlots, SlotWords, group_mask, hash, words_at};
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup, each_bit};
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// The constants that all groups of eight slots share, in registers.
struct Constants {
    seed: Seed,
    buckets: __m512i,
    slots: __m512i,
    first_slot: __m512i,
    entries: PackedSlots,
}

/// 256 bytes: the displacement of each bucket, or a bit per slot. In registers.
#[derive(Clone, Copy)]
struct ByteTable([__m512i; 4]);

/// The slots that hit, and those among them whose stamp is of another tick.
#[derive(Default)]
struct Outcome {
    hits: u64,
    stale: u64,
}

impl SlotArray {
    /// An optimistic lookup: valid only if no write ran concurrently.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_simd(&self, vector: &VectorLookup<'_>) -> u64 {
        let word = |w: u64| _mm512_set1_epi64(w as i64);
        // SAFETY: the default has the words of a result.
        let default = unsafe { vector.default.as_ref() }.load(Ordering::Relaxed);
        let constants = Constants {
            seed: self.seed,
            buckets: word(self.bucket_count.into()),
            slots: word(self.slots.len() as u64),
            first_slot: word(self.slots.as_ptr().expose_provenance() as u64),
            entries: PackedSlots::new(self.packing, default),
        };
        let displacements = ByteTable::of(&self.displacements);
        let found = match &self.stamps {
            None if vector.active == u64::MAX => lookup_groups::<true>(vector, &constants, displacements, None),
            None => lookup_groups::<false>(vector, &constants, displacements, None),
            Some(stamps) if vector.active == u64::MAX => {
                lookup_groups::<true>(vector, &constants, displacements, Some(ByteTable::of(stamps.fresh())))
            }
            Some(stamps) => {
                lookup_groups::<false>(vector, &constants, displacements, Some(ByteTable::of(stamps.fresh())))
            }
        };
        if found.stale != 0 {
            self.stamp_all(vector, found.stale);
        }
        found.hits
    }

    /// Stamps hits.
    #[inline(never)]
    fn stamp_all(&self, vector: &VectorLookup<'_>, hit: u64) {
        let now = tick(vector.now) as u32;
        each_bit(hit, |slot, _| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { vector.key(0, slot) };
            // It may have moved or been removed since.
            if let Some((_, slot_index)) = self.find(key) {
                self.stamp_hit(slot_index, now);
            }
        });
    }
}

/// Looks all groups up. Two passes, first the addresses of all slots, then their contents, let the
/// processor overlap several groups. `ALL` if all slots are active. `fresh`: a bit per slot that
/// was hit in this tick already, in tables with `idle_timeout`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn lookup_groups<const ALL: bool>(
    vector: &VectorLookup<'_>,
    constants: &Constants,
    displacements: ByteTable,
    fresh: Option<ByteTable>,
) -> Outcome {
    let vector = *vector;
    let mut found = Outcome::default();
    let mut addresses = SlotWords::new();
    let active_in = |group| if ALL { u8::MAX } else { group_mask(vector.active, group) };
    for group in 0..VECTOR_SLOTS / LANES {
        let active = active_in(group);
        if let Some(queue) = vector.queue {
            queue.prefetch_part(group, 2 * VECTOR_SLOTS / LANES);
        }
        if active != 0 {
            // SAFETY: keys have a word, and these are active slots of the group.
            let slot_indices = constants.slots_of_keys(unsafe { vector.load_keys(0, group, active) }, displacements);
            addresses.set(
                group,
                _mm512_add_epi64(_mm512_slli_epi64::<3>(slot_indices), constants.first_slot),
            );
            if let Some(fresh) = &fresh {
                let bits = fresh.lookup(_mm512_srli_epi64::<3>(slot_indices));
                let bit = _mm512_sllv_epi64(
                    _mm512_set1_epi64(1),
                    _mm512_and_si512(slot_indices, _mm512_set1_epi64(7)),
                );
                found.stale |= u64::from(_mm512_testn_epi64_mask(bits, bit)) << (LANES * group);
            }
        }
    }
    for group in 0..VECTOR_SLOTS / LANES {
        let active = active_in(group);
        if let Some(queue) = vector.queue {
            queue.prefetch_part(VECTOR_SLOTS / LANES + group, 2 * VECTOR_SLOTS / LANES);
        }
        if active != 0 {
            // SAFETY: slot numbers are below the number of slots.
            let slots = unsafe { words_at(addresses.group(group)) };
            // SAFETY: keys have a word, and these are active slots of the group.
            let keys = unsafe { vector.load_keys(0, group, active) };
            // SAFETY: results have a word, and these are active slots of the group.
            let hits = unsafe {
                constants
                    .entries
                    .write_results(vector, group, active, slots, constants.entries.needles(keys))
            };
            found.hits |= u64::from(hits) << (LANES * group);
        }
    }
    found.stale &= found.hits;
    found
}

impl Constants {
    /// The slot numbers of keys, computed like [`SlotArray::slot_of_key`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn slots_of_keys(&self, keys: __m512i, displacements: ByteTable) -> __m512i {
        let hash = hash(self.seed, keys);
        let buckets = _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), self.buckets));
        let factors = _mm512_or_si512(
            _mm512_slli_epi64::<DISPLACEMENT_SHIFT>(displacements.lookup(buckets)),
            _mm512_set1_epi64(DISPLACEMENT_FACTOR as i64),
        );
        let mixed = _mm512_mul_epu32(hash, factors);
        _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<16>(mixed), self.slots))
    }
}

impl ByteTable {
    /// Loads the first 256 bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn of(bytes: &[AtomicU8]) -> Self {
        assert!(bytes.len() >= 256);
        // SAFETY: there are at least 256 bytes.
        ByteTable(std::array::from_fn(|i| unsafe {
            _mm512_loadu_si512(bytes.as_ptr().add(64 * i).cast())
        }))
    }

    /// The bytes with these numbers, which are below 256.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn lookup(&self, numbers: __m512i) -> __m512i {
        const LOWEST: u64 = 0x0101_0101_0101_0101;
        let [a, b, c, d] = self.0;
        let low = _mm512_maskz_permutex2var_epi8(LOWEST, a, numbers, b);
        let high = _mm512_maskz_permutex2var_epi8(LOWEST, c, numbers, d);
        _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(numbers, _mm512_set1_epi64(128)), high)
    }
}
