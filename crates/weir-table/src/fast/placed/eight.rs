//! Keys looked up eight at a time.
#![allow(unsafe_code)]

use crate::fast::batch::{Batch, SLOTS, each};
use crate::fast::eight::{EIGHT, Lanes, PackedSlots, hash, of_group, words_at};
use crate::fast::hash::Seed;
use crate::fast::packing::step;
use crate::fast::placed::{Array, TURN_FACTOR, TURN_SHIFT};
use std::arch::x86_64::*;
use std::sync::atomic::{AtomicU8, Ordering};

/// What is the same for all keys.
struct Constants {
    seed: Seed,
    groups: __m512i,
    slots: __m512i,
    first_slot: __m512i,
    entries: PackedSlots,
}

/// 256 bytes: of each group its turn, or of eight slots each who was hit.
#[derive(Clone, Copy)]
struct Bytes([__m512i; 4]);

/// Who was hit, and whose last hit is another step.
#[derive(Default)]
struct Found {
    hits: u64,
    stale: u64,
}

impl Array {
    /// A lookup that is only right if nothing is written meanwhile.
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn lookup_eight(&self, batch: &Batch<'_>) -> u64 {
        let word = |w: u64| _mm512_set1_epi64(w as i64);
        // SAFETY: the default has the words of a result.
        let default = unsafe { batch.default.as_ref() }.load(Ordering::Relaxed);
        let constants = Constants {
            seed: self.seed,
            groups: word(self.groups.into()),
            slots: word(self.slots.len() as u64),
            first_slot: word(self.slots.as_ptr().expose_provenance() as u64),
            entries: PackedSlots::new(self.packing, default),
        };
        let turns = Bytes::of(&self.turns);
        let found = match &self.stamps {
            None if batch.active == u64::MAX => groups::<true>(batch, &constants, turns, None),
            None => groups::<false>(batch, &constants, turns, None),
            Some(stamps) if batch.active == u64::MAX => {
                groups::<true>(batch, &constants, turns, Some(Bytes::of(stamps.fresh())))
            }
            Some(stamps) => groups::<false>(batch, &constants, turns, Some(Bytes::of(stamps.fresh()))),
        };
        if found.stale != 0 {
            self.note_all(batch, found.stale);
        }
        found.hits
    }

    /// Notes hits.
    #[inline(never)]
    fn note_all(&self, batch: &Batch<'_>, hit: u64) {
        let now = step(batch.now) as u32;
        each(hit, |slot, _| {
            // SAFETY: only active slots, and word 0 always exists.
            let key = unsafe { batch.key(0, slot) };
            // It may have moved or gone since.
            if let Some((_, place)) = self.find(key) {
                self.note_hit(place, now);
            }
        });
    }
}

/// Looks all groups up, first where each key is, then what is there: so the processor has several groups at hand at a time. `ALL` if all
/// slots are active. `fresh`: slots that were hit already, if somebody wants to know who was.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn groups<const ALL: bool>(batch: &Batch<'_>, of: &Constants, turns: Bytes, fresh: Option<Bytes>) -> Found {
    let batch = *batch;
    let mut found = Found::default();
    let mut at = Lanes::new();
    let actives = |group| if ALL { u8::MAX } else { of_group(batch.active, group) };
    for group in 0..SLOTS / EIGHT {
        let active = actives(group);
        if let Some(fetches) = batch.meanwhile {
            fetches.share(group, 2 * SLOTS / EIGHT);
        }
        if active != 0 {
            // SAFETY: keys have a word, and these are active slots of the group.
            let places = of.places(unsafe { batch.eight_keys(0, group, active) }, turns);
            at.set(group, _mm512_add_epi64(_mm512_slli_epi64::<3>(places), of.first_slot));
            if let Some(fresh) = &fresh {
                let bits = fresh.at(_mm512_srli_epi64::<3>(places));
                let bit = _mm512_sllv_epi64(_mm512_set1_epi64(1), _mm512_and_si512(places, _mm512_set1_epi64(7)));
                found.stale |= u64::from(_mm512_testn_epi64_mask(bits, bit)) << (EIGHT * group);
            }
        }
    }
    for group in 0..SLOTS / EIGHT {
        let active = actives(group);
        if let Some(fetches) = batch.meanwhile {
            fetches.share(SLOTS / EIGHT + group, 2 * SLOTS / EIGHT);
        }
        if active != 0 {
            // SAFETY: places are below the number of slots.
            let slots = unsafe { words_at(at.group(group)) };
            // SAFETY: keys have a word, and these are active slots of the group.
            let keys = unsafe { batch.eight_keys(0, group, active) };
            // SAFETY: results have a word, and these are active slots of the group.
            let hits = unsafe { of.entries.give(batch, group, active, slots, of.entries.needles(keys)) };
            found.hits |= u64::from(hits) << (EIGHT * group);
        }
    }
    found.stale &= found.hits;
    found
}

impl Constants {
    /// The places of keys, as [`Array::place_of`] has them.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn places(&self, keys: __m512i, turns: Bytes) -> __m512i {
        let hash = hash(self.seed, keys);
        let groups = _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), self.groups));
        let factors = _mm512_or_si512(
            _mm512_slli_epi64::<TURN_SHIFT>(turns.at(groups)),
            _mm512_set1_epi64(TURN_FACTOR as i64),
        );
        let turned = _mm512_mul_epu32(hash, factors);
        _mm512_srli_epi64::<32>(_mm512_mul_epu32(_mm512_srli_epi64::<16>(turned), self.slots))
    }
}

impl Bytes {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn of(bytes: &[AtomicU8]) -> Self {
        assert!(bytes.len() >= 256);
        // SAFETY: there are so many.
        Bytes(std::array::from_fn(|i| unsafe {
            _mm512_loadu_si512(bytes.as_ptr().add(64 * i).cast())
        }))
    }

    /// Those of these numbers, which are below 256.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    fn at(&self, numbers: __m512i) -> __m512i {
        const LOWEST: u64 = 0x0101_0101_0101_0101;
        let [a, b, c, d] = self.0;
        let low = _mm512_maskz_permutex2var_epi8(LOWEST, a, numbers, b);
        let high = _mm512_maskz_permutex2var_epi8(LOWEST, c, numbers, d);
        _mm512_mask_mov_epi64(low, _mm512_test_epi64_mask(numbers, _mm512_set1_epi64(128)), high)
    }
}
