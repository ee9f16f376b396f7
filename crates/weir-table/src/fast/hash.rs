//! The hashes, seeded per table: for keys of one word and for tuple spaces multiplications of 64 bits, so that several keys
//! can be hashed at once; else a folded 64 by 64 multiply for each word, which is sooner done.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// What makes the hashes of a table its own, so that nobody can choose keys that collide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed {
    pub(super) start: u64,
    pub(super) factor: u64,
}

impl Seed {
    pub(super) fn random() -> Self {
        // A model has to do the same in every order that loom runs it in.
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

    #[inline(always)]
    pub(super) fn one(self, word: u64) -> u64 {
        let mixed = (word ^ self.start).wrapping_mul(self.factor);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(SPREAD);
        mixed ^ mixed >> 29
    }

    /// The hash of any number of words, as a sum, so that those of several keys can be made at once: of each word this
    /// is added up, and [`Seed::sum`] makes the hash of what comes out.
    #[inline(always)]
    pub(super) fn term(self, at: usize, word: u64) -> u64 {
        let turn = 17 * at as u32;
        let (start, factor) = (self.start.rotate_left(turn), self.factor.rotate_left(turn) | 1);
        (word ^ start).wrapping_mul(factor)
    }

    #[inline(always)]
    pub(super) fn sum(self, terms: u64) -> u64 {
        let mixed = (terms ^ terms >> 32).wrapping_mul(SPREAD);
        mixed ^ mixed >> 29
    }

    /// The hash of `words` words.
    #[inline(always)]
    pub(super) fn many(self, words: usize, word: impl Fn(usize) -> u64) -> u64 {
        let mut hash = fold(word(0) ^ self.start, self.factor);
        for i in 1..words {
            hash = fold(hash.wrapping_add(self.start) ^ word(i), self.factor);
        }
        hash
    }
}

/// Odd, with its bits well spread.
pub(super) const SPREAD: u64 = 0xd6e8_feb8_6659_fd93;

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// The other bucket a hash may be in.
#[inline(always)]
pub(super) fn second(hash: u64, mask: usize) -> usize {
    let other = (hash >> 32) as usize & mask;
    if other == hash as usize & mask {
        other ^ 1
    } else {
        other
    }
}

/// The bucket a hash should be in.
#[inline(always)]
pub(super) fn first(hash: u64, mask: usize) -> usize {
    hash as usize & mask
}
