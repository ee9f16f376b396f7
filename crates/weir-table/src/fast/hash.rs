//! The hash functions, with a seed per table. Keys of one word and tuple spaces use 64-bit
//! multiplications, which can be vectorised. Other keys use a folded 64 by 64 multiply per word,
//! which has the shorter latency.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A table's secret hash parameters. They are random, so that an attacker cannot choose colliding
/// keys.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed {
    /// Is combined with the first word by exclusive or.
    pub(super) start: u64,
    /// The multiplier, which is odd.
    pub(super) factor: u64,
}

impl Seed {
    /// A random seed.
    pub(super) fn random() -> Self {
        // A loom model must behave alike in every order of execution.
        if cfg!(loom) {
            return Seed {
                start: SPREAD.rotate_left(7),
                factor: SPREAD.rotate_left(31) | 1,
            };
        }
        let state = RandomState::new();
        let word = |n: u64| {
            let mut hasher = state.build_hasher();
            hasher.write_u64(n);
            hasher.finish()
        };
        Seed {
            start: word(0),
            factor: word(1) | 1,
        }
    }

    /// The hash of a key of one word.
    #[inline(always)]
    pub(super) fn hash_word(self, word: u64) -> u64 {
        let mixed = (word ^ self.start).wrapping_mul(self.factor);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(SPREAD);
        mixed ^ mixed >> 29
    }

    /// The share of word `word_index` in the hash of several words. The shares are added with
    /// wrap-around, and [`Seed::finish_sum`] makes the hash of the sum. So the hashes of several
    /// keys can be computed side by side.
    #[inline(always)]
    pub(super) fn term(self, word_index: usize, word: u64) -> u64 {
        let rotation = 17 * word_index as u32;
        let (start, factor) = (self.start.rotate_left(rotation), self.factor.rotate_left(rotation) | 1);
        (word ^ start).wrapping_mul(factor)
    }

    /// The hash, from the sum of [`Seed::term`]s.
    #[inline(always)]
    pub(super) fn finish_sum(self, terms: u64) -> u64 {
        let mixed = (terms ^ terms >> 32).wrapping_mul(SPREAD);
        mixed ^ mixed >> 29
    }

    /// The hash of `words` words.
    #[inline(always)]
    pub(super) fn hash_words(self, words: usize, word: impl Fn(usize) -> u64) -> u64 {
        let mut hash = fold(word(0) ^ self.start, self.factor);
        for i in 1..words {
            hash = fold(hash.wrapping_add(self.start) ^ word(i), self.factor);
        }
        hash
    }
}

/// Odd, with well-spread bits.
pub(super) const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

/// The 128-bit product, folded to 64 bits by exclusive or.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The second bucket of a hash; never the first.
#[inline(always)]
pub(super) fn second(hash: u64, mask: usize) -> usize {
    let other = (hash >> 32) as usize & mask;
    if other == hash as usize & mask {
        other ^ 1
    } else {
        other
    }
}

/// The first bucket of a hash.
#[inline(always)]
pub(super) fn first(hash: u64, mask: usize) -> usize {
    hash as usize & mask
}
