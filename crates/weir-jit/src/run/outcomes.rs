//! Derives the outcomes of lookups that code did inline from the heads of their results.
//!
//! Code stores a head for each packet that executes the lookup. The rows of other packets hold
//! [`NOT_LOOKED_UP`]. Resetting them is left to the caller.

use crate::layout::{NOT_LOOKED_UP, VECTOR};
use weir_table::fast::head;

/// The masks of the slots that were looked up, and of those that hit, within `mask`.
#[inline]
pub(super) fn array_outcomes(heads: &[u64], mask: u64) -> (u64, u64) {
    if mask.is_power_of_two() {
        let slot = mask.trailing_zeros();
        let head = heads[slot as usize];
        let is_hit = head & head::HIT != 0;
        let active = u64::from(head != NOT_LOOKED_UP) << slot;
        return (active, active & u64::from(is_hit) << slot);
    }
    let (active, hits) = all_outcomes(heads);
    (active & mask, hits & active & mask)
}

/// The same within all slots.
#[inline]
fn all_outcomes(heads: &[u64]) -> (u64, u64) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(heads) = heads.first_chunk() {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX-512F.
            return unsafe { all_outcomes_avx512(heads) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { all_outcomes_avx2(heads) };
        }
    }
    let (mut active, mut hits) = (0, 0);
    for (slot, head) in heads.iter().enumerate().take(VECTOR) {
        active |= u64::from(*head != NOT_LOOKED_UP) << slot;
        hits |= (head >> head::HIT.trailing_zeros() & 1) << slot;
    }
    (active, hits)
}

/// Eight slots at a time.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f")]
fn all_outcomes_avx512(heads: &[u64; VECTOR]) -> (u64, u64) {
    use std::arch::x86_64::{_mm512_cmpneq_epi64_mask, _mm512_loadu_epi64, _mm512_set1_epi64, _mm512_test_epi64_mask};
    let (mut active, mut hits) = (0, 0);
    for (chunk, first) in heads.as_chunks::<8>().0.iter().zip((0..).step_by(8)) {
        // SAFETY: the chunk has eight words.
        let words = unsafe { _mm512_loadu_epi64(chunk.as_ptr().cast()) };
        let looked_up = _mm512_cmpneq_epi64_mask(words, _mm512_set1_epi64(NOT_LOOKED_UP as i64));
        active |= u64::from(looked_up) << first;
        hits |= u64::from(_mm512_test_epi64_mask(words, _mm512_set1_epi64(head::HIT as i64))) << first;
    }
    (active, hits)
}

/// Four slots at a time.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
fn all_outcomes_avx2(heads: &[u64; VECTOR]) -> (u64, u64) {
    use std::arch::x86_64::{
        _mm256_castsi256_pd, _mm256_cmpeq_epi64, _mm256_loadu_si256, _mm256_movemask_pd, _mm256_set1_epi64x,
        _mm256_slli_epi64,
    };
    /// Shifts the hit bit to the sign bit.
    const TO_SIGN: i32 = head::HIT.leading_zeros() as i32;
    let (mut not_looked_up_slots, mut hits) = (0, 0);
    for (chunk, first) in heads.as_chunks::<4>().0.iter().zip((0..).step_by(4)) {
        // SAFETY: the chunk has four words.
        let words = unsafe { _mm256_loadu_si256(chunk.as_ptr().cast()) };
        let not_looked_up = _mm256_cmpeq_epi64(words, _mm256_set1_epi64x(NOT_LOOKED_UP as i64));
        not_looked_up_slots |= (_mm256_movemask_pd(_mm256_castsi256_pd(not_looked_up)) as u64) << first;
        let hit = _mm256_castsi256_pd(_mm256_slli_epi64::<TO_SIGN>(words));
        hits |= (_mm256_movemask_pd(hit) as u64) << first;
    }
    (!not_looked_up_slots, hits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_decide_which_slots_were_looked_up_and_hit() {
        let kinds = [NOT_LOOKED_UP, head::HIT | 5, 7, 1 << 63, head::HIT];
        let heads: [u64; VECTOR] = std::array::from_fn(|i| kinds[i * i % 11 % kinds.len()]);
        for mask in [1, 1 << 1, 1 << 63, u64::MAX, 0x8421_0137_0000_ffff] {
            let slots = |is: &dyn Fn(u64) -> bool| {
                let slots = heads.iter().enumerate().filter(|(_, h)| is(**h));
                slots.fold(0, |all, (i, _)| all | 1 << i) & mask
            };
            let active = slots(&|h| h != NOT_LOOKED_UP);
            let hits = slots(&|h| h != NOT_LOOKED_UP && h & head::HIT != 0);
            assert_eq!(array_outcomes(&heads, mask), (active, hits));
        }
    }
}
