//! All implementations of the lookup give the same results.

use super::*;
use crate::fast::LAST_HIT_TICK_NS;
use crate::fast::head::{ACTION_SHIFT, HIT};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::Portable;
use crate::fast::packing::testing::{packing, rule};
use crate::fast::vector_lookup::Dimensions;

const DEFAULT: u64 = 0x77;
const UNTOUCHED: u64 = 0x5555;

/// An implementation of the lookup, while no writer runs.
type Lookup<B> = fn(&Array<B>, VectorLookup<'_>) -> u64;

fn lookup_scalar<S: Search, B: Bucket>(array: &Array<B>, vector: VectorLookup<'_>) -> u64 {
    if is_contiguous(vector.active) {
        array.lookup_scalar::<S, true>(vector)
    } else {
        array.lookup_scalar::<S, false>(vector)
    }
}

/// All implementations that the processor supports.
fn implementations<B: Bucket>() -> Vec<Lookup<B>> {
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), expect(unused_mut))]
    let mut implementations: Vec<Lookup<B>> = vec![lookup_scalar::<Portable, B>, Array::contended];
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            implementations.push(lookup_scalar::<Avx2, B>);
        }
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
            implementations.push(lookup_scalar::<Avx512, B>);
        }
        if has_avx512_vbmi() {
            // SAFETY: the processor has these features.
            implementations.push(|array, vector| unsafe { array.lookup_simd(&vector) });
        }
    }
    implementations
}

fn head(key: u64) -> u64 {
    ((key * 7) & 0x1ff) << ACTION_SHIFT
}

const DIMENSIONS: Dimensions = Dimensions {
    key_words: 1,
    result_words: 1,
    record_words: 1,
    stamp_word: None,
};

/// Looks 64 keys up, as tables do.
pub(super) fn look_up_all<B: Bucket>(
    view: &PackedView<B>,
    keys: &[u64; VECTOR_SLOTS],
    results: &mut [u64; VECTOR_SLOTS],
    now_ns: u64,
) -> u64 {
    let default = [DEFAULT, 0].map(AtomicU64::new);
    let mut vector = VectorLookup::new(DIMENSIONS, u64::MAX, keys, results, VECTOR_SLOTS, &default, now_ns);
    view.lookup::<Portable>(&mut vector)
}

/// Looks keys up. Keys below the number of entries must hit, others must miss.
fn look_up<B: Bucket>(packed: &Packed<B>, lookup: Lookup<B>, keys: &[u64], active: u64, now_ns: u64) {
    let default = [DEFAULT, 0].map(AtomicU64::new);
    let mut results = [UNTOUCHED; VECTOR_SLOTS];
    // Rows end at the last active slot.
    let length = VECTOR_SLOTS - active.leading_zeros() as usize;
    let vector = VectorLookup::new(
        DIMENSIONS,
        active,
        &keys[..length],
        &mut results[..length],
        VECTOR_SLOTS,
        &default,
        now_ns,
    );
    packed.view().0.newest.observe(tick(now_ns));
    let hits = lookup(&packed.view().0, vector);
    for (i, key) in keys.iter().enumerate() {
        let (is_active, is_there) = (active >> i & 1 == 1, *key < packed.len() as u64);
        assert_eq!(hits >> i & 1 == 1, is_active && is_there, "key {key} in {active:#x}");
        let expected = match (is_active, is_there) {
            (true, true) => head(*key) | HIT,
            (true, false) => DEFAULT,
            (false, _) => UNTOUCHED,
        };
        assert_eq!(results[i], expected, "key {key} in {active:#x}");
    }
}

/// Buckets are as full as they get, so that many keys are in their second ones.
fn check<B: Bucket>(buckets: usize, lookup: Lookup<B>) {
    // With few buckets all keys may share both.
    let entries = (buckets * B::MAX_LOAD / if buckets < 100 { 2 } else { 1 }) as u64;
    let mut packed = Packed::<B>::new(packing(), buckets * B::BUILT_LOAD / 2);
    for key in 0..entries {
        packed.insert_rule(&rule(key), &[head(key)], 0);
    }
    let array = packed.view().0;
    assert_eq!((packed.len() as u64, array.buckets.len()), (entries, buckets));
    let in_second = |key: &u64| {
        array
            .find(*key)
            .is_some_and(|(_, bucket, _)| bucket != array.homes(*key)[0])
    };
    assert!(buckets < 100 || (0..entries).filter(in_second).count() > 5);
    let mut last = vec![0; entries as usize];
    let mut random = 1_u64;
    let active_masks = [
        u64::MAX,
        0,
        1,
        1 << 63,
        u64::MAX >> 7,
        0xff00_0000_0000_00ff,
        0x8421_0137_0000_fff0,
    ];
    for (round, active) in (1_u64..).zip(active_masks.into_iter().cycle().take(if cfg!(miri) { 14 } else { 300 })) {
        // Sixty lookups per tick: in some, all keys were hit in that tick already; in others, some
        // were not.
        let (now, all) = ((1 + round / 60) * LAST_HIT_TICK_NS, entries + round % 3 * entries / 2);
        // Some keys are missing. Key 0 is never used: inactive slots contain it.
        let keys: [u64; VECTOR_SLOTS] = std::array::from_fn(|_| {
            random = random
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            1 + (random >> 33) % (all - 1)
        });
        look_up(&packed, lookup, &keys, active, now);
        each_bit(active, |slot, _| {
            if let Some(last) = last.get_mut(keys[slot] as usize) {
                *last = now;
            }
        });
        for (key, last) in last.iter().enumerate().filter(|_| B::STAMPS) {
            assert_eq!(packed.stamp(key as u32 + 1), Some(*last), "key {key}");
        }
    }
}

#[test]
fn all_implementations_find_keys_in_either_bucket() {
    for buckets in if cfg!(miri) { vec![3] } else { vec![3, 123] } {
        implementations::<WithoutStamps>()
            .into_iter()
            .for_each(|lookup| check(buckets, lookup));
        implementations::<WithStamps>()
            .into_iter()
            .for_each(|lookup| check(buckets, lookup));
    }
}
