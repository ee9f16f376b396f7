//! Lookups by all ways that there are.

use super::*;
use crate::fast::LAST_HIT_STEP_NS;
use crate::fast::batch::Dimensions;
use crate::fast::head::{ACTION_SHIFT, HIT};
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::fast::inline::Avx2;
use crate::fast::inline::Portable;
use crate::fast::packing::testing::{packing, rule};

const DEFAULT: u64 = 0x77;
const UNTOUCHED: u64 = 0x5555;

/// A lookup while nothing is written.
type Way<B> = fn(&Array<B>, Batch<'_>) -> u64;

fn one_by_one<S: Search, B: Bucket>(array: &Array<B>, batch: Batch<'_>) -> u64 {
    if is_dense(batch.active) {
        array.quiet::<S, true>(batch)
    } else {
        array.quiet::<S, false>(batch)
    }
}

/// All that the processor can.
fn ways<B: Bucket>() -> Vec<Way<B>> {
    #[cfg_attr(not(all(target_arch = "x86_64", not(miri))), expect(unused_mut))]
    let mut ways: Vec<Way<B>> = vec![one_by_one::<Portable, B>, Array::disturbed];
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            ways.push(one_by_one::<Avx2, B>);
        }
        if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512dq") {
            ways.push(one_by_one::<Avx512, B>);
        }
        if has_eight() {
            // SAFETY: the processor has these features.
            ways.push(|array, batch| unsafe { array.lookup_eight(&batch) });
        }
    }
    ways
}

fn head(key: u64) -> u64 {
    ((key * 7) & 0x1ff) << ACTION_SHIFT
}

const DIMENSIONS: Dimensions = Dimensions {
    key_words: 1,
    result_words: 1,
    record_words: 1,
    stamp: None,
};

/// Looks 64 keys up, as tables do.
pub(super) fn look_up_all<B: Bucket>(
    shape: &PackedShape<B>,
    keys: &[u64; SLOTS],
    results: &mut [u64; SLOTS],
    now_ns: u64,
) -> u64 {
    let default = [DEFAULT, 0].map(AtomicU64::new);
    let mut batch = Batch::new(DIMENSIONS, u64::MAX, keys, results, SLOTS, &default, now_ns);
    shape.lookup::<Portable>(&mut batch)
}

/// Looks keys up, of which those below the number of entries are there.
fn look_up<B: Bucket>(packed: &Packed<B>, way: Way<B>, keys: &[u64], active: u64, now_ns: u64) {
    let default = [DEFAULT, 0].map(AtomicU64::new);
    let mut results = [UNTOUCHED; SLOTS];
    // No longer than they must be.
    let length = SLOTS - active.leading_zeros() as usize;
    let batch = Batch::new(
        DIMENSIONS,
        active,
        &keys[..length],
        &mut results[..length],
        SLOTS,
        &default,
        now_ns,
    );
    packed.shape().0.newest.see(step(now_ns));
    let hits = way(&packed.shape().0, batch);
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

/// Many buckets are as full as it gets, so that keys are in their second ones.
fn check<B: Bucket>(buckets: usize, way: Way<B>) {
    // All keys of few buckets may have the same two.
    let entries = (buckets * B::FULL / if buckets < 100 { 2 } else { 1 }) as u64;
    let mut packed = Packed::<B>::new(packing(), buckets * B::LOOSE / 2);
    for key in 0..entries {
        packed.put(&rule(key), &[head(key)], 0);
    }
    let array = packed.shape().0;
    assert_eq!((packed.len() as u64, array.buckets.len()), (entries, buckets));
    let in_second = |key: &u64| {
        array
            .find(*key)
            .is_some_and(|(_, bucket, _)| bucket != array.homes(*key)[0])
    };
    assert!(buckets < 100 || (0..entries).filter(in_second).count() > 5);
    let mut last = vec![0; entries as usize];
    let mut random = 1_u64;
    let actives = [
        u64::MAX,
        0,
        1,
        1 << 63,
        u64::MAX >> 7,
        0xff00_0000_0000_00ff,
        0x8421_0137_0000_fff0,
    ];
    for (turn, active) in (1_u64..).zip(actives.into_iter().cycle().take(if cfg!(miri) { 14 } else { 300 })) {
        // Sixty lookups in a step: some find that all keys were hit in it already, some that a few were not.
        let (now, all) = ((1 + turn / 60) * LAST_HIT_STEP_NS, entries + turn % 3 * entries / 2);
        // Now and then one that is not there; never key 0, which is what there is in slots without a key.
        let keys: [u64; SLOTS] = std::array::from_fn(|_| {
            random = random
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            1 + (random >> 33) % (all - 1)
        });
        look_up(&packed, way, &keys, active, now);
        each(active, |slot, _| {
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
fn all_ways_find_what_is_there_in_either_bucket() {
    for buckets in if cfg!(miri) { vec![3] } else { vec![3, 123] } {
        ways::<Plain>().into_iter().for_each(|way| check(buckets, way));
        ways::<Stamped>().into_iter().for_each(|way| check(buckets, way));
    }
}
