//! Components of all SIMD lookups: eight keys at a time, one per 64-bit lane of an AVX-512
//! register. It needs x86-64 with the AVX-512 of Ice Lake or Zen 4; elsewhere structures use their
//! scalar code.
//!
//! # Vector loads of atomics
//!
//! Here and in the `simd` modules, and where `Avx2` and `Avx512` search a bucket, words that a
//! writer may store to concurrently are read as vectors. Those are plain loads: Rust has no vector
//! load of atomics, and a load per word would cost more than vectors gain. By the letter of the
//! memory model such a load beside a store is a data race. This is why it does no harm:
//!
//! - The code exists on x86-64 only, whose processors load each aligned word of a vector as a
//!   whole.
//! - A seqlock ([`SeqLock`](crate::fast::seqlock::SeqLock)) discards what was read beside a write.
//!   Its fence stands after the loads, and the compiler moves no load over it. Until then what was
//!   read chooses results and slots of a vector, never an address.
//! - Where there is no seqlock, readers need single words only: the numbers in `roots` and the
//!   starts of chunks have been valid since before they were stored, and result words do not change
//!   once a record is published.
//!
//! Everywhere else readers use atomics, also in a seqlock. Miri and loom run those paths: both
//! leave out the SIMD code, and tests hold it to the same results.
#![allow(unsafe_code)]

use crate::fast::hash::{SPREAD, Seed};
use crate::fast::head::{self, HIT};
use crate::fast::mem::Directory;
use crate::fast::packing::Packing;
use crate::fast::vector_lookup::{VECTOR_SLOTS, VectorLookup};
use std::arch::x86_64::*;
use std::sync::LazyLock;
use std::sync::atomic::AtomicU64;

/// Keys at a time.
pub(super) const LANES: usize = 8;

/// Whether the processor has all features that the SIMD functions need.
#[inline]
pub(super) fn has_avx512_vbmi() -> bool {
    // loom's stand-ins for atomic words cannot be loaded as vectors.
    if cfg!(loom) {
        return false;
    }
    // Cached in one flag: checks feature by feature would cost time for every vector.
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        has!("avx512vbmi")
            && has!("avx512f")
            && has!("avx512bw")
            && has!("avx512cd")
            && has!("avx512dq")
            && has!("avx512vl")
            && has!("avx2")
            && has!("bmi1")
            && has!("bmi2")
            && has!("lzcnt")
            && has!("popcnt")
    });
    *HAS
}

/// A word per slot of a vector, loaded and stored eight at a time.
#[repr(C, align(64))]
pub(super) struct SlotWords(pub(super) [u64; VECTOR_SLOTS]);

/// The bits of a slot mask that belong to the group of eight slots from `8 * group` on.
#[inline(always)]
pub(super) fn group_mask(slots: u64, group: usize) -> u8 {
    (slots >> (LANES * group)) as u8
}

impl VectorLookup<'_> {
    /// Word `word` of the keys of the active slots of a group; 0 for others.
    ///
    /// # Safety
    /// Keys have that many words, and `active` are active slots of the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn load_keys(self, word: usize, group: usize, active: u8) -> __m512i {
        // SAFETY: the row reaches to the last active slot, and nothing is read for inactive ones.
        unsafe {
            let row = self.key_row(word).add(LANES * group);
            if active == u8::MAX {
                _mm512_loadu_epi64(row.cast())
            } else {
                _mm512_maskz_loadu_epi64(active, row.cast())
            }
        }
    }

    /// Sets word `word` of the results of active slots of a group.
    ///
    /// # Safety
    /// Results have that many words, and `active` are active slots of the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn store_results(self, word: usize, group: usize, active: u8, values: __m512i) {
        // SAFETY: the row reaches to the last active slot, and nothing is written for inactive
        // ones.
        unsafe {
            let row = self.result_row(word).add(LANES * group);
            if active == u8::MAX {
                _mm512_storeu_epi64(row.cast(), values);
            } else {
                _mm512_mask_storeu_epi64(row.cast(), active, values);
            }
        }
    }
}

/// [`Seed::hash_word`] of eight words.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
pub(super) fn hash(seed: Seed, words: __m512i) -> __m512i {
    let (start, factor) = (
        _mm512_set1_epi64(seed.start as i64),
        _mm512_set1_epi64(seed.factor as i64),
    );
    let mixed = _mm512_mullo_epi64(_mm512_xor_si512(words, start), factor);
    let mixed = _mm512_xor_si512(mixed, _mm512_srli_epi64::<32>(mixed));
    let mixed = _mm512_mullo_epi64(mixed, _mm512_set1_epi64(SPREAD as i64));
    _mm512_xor_si512(mixed, _mm512_srli_epi64::<29>(mixed))
}

/// The constants by which slots that pack key and result into a word are compared and unpacked.
pub(super) struct PackedSlots {
    /// [`Packing::significant`].
    significant: __m512i,
    shift: __m128i,
    default: __m512i,
}

impl PackedSlots {
    /// `default`: the result of a miss.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn new(packing: Packing, default: u64) -> Self {
        PackedSlots {
            significant: _mm512_set1_epi64(packing.significant() as i64),
            shift: _mm_cvtsi32_si128(packing.shift as i32),
            default: _mm512_set1_epi64(default as i64),
        }
    }

    /// The key bits of slots, by which they are compared.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn key_bits(&self, slots: __m512i) -> __m512i {
        _mm512_and_si512(slots, self.significant)
    }

    /// [`Packing::needle`] of eight keys.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn needles(&self, keys: __m512i) -> __m512i {
        _mm512_or_si512(_mm512_sll_epi64(keys, self.shift), _mm512_set1_epi64(1))
    }

    /// Writes the results of a group's active slots: the result in the slot where its key equals
    /// the needle, else the default. Returns the mask of hits.
    ///
    /// # Safety
    /// Results have a word, and `active` are active slots of the group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) unsafe fn write_results(
        &self,
        vector: VectorLookup<'_>,
        group: usize,
        active: u8,
        slots: __m512i,
        needles: __m512i,
    ) -> u8 {
        let equal = _mm512_cmpeq_epi64_mask(self.key_bits(slots), needles);
        let results = _mm512_slli_epi64::<{ head::ACTION_SHIFT - 1 }>(_mm512_andnot_si512(self.significant, slots));
        let results = _mm512_or_si512(results, _mm512_set1_epi64(HIT as i64));
        // SAFETY: the caller's promise.
        unsafe { vector.store_results(0, group, active, _mm512_mask_mov_epi64(self.default, equal, results)) };
        equal & active
    }
}

/// The words at eight addresses.
///
/// # Safety
/// Each is the address of a word.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn words_at(addresses: &[u64; LANES]) -> __m512i {
    // SAFETY: the caller's promise.
    let pair = |i: usize| unsafe {
        let first = _mm_load_sd(addresses[i] as *const f64);
        _mm_castpd_si128(_mm_loadh_pd(first, addresses[i + 1] as *const f64))
    };
    concat_quarters([pair(0), pair(2), pair(4), pair(6)])
}

/// The words `OFFSET` bytes after eight addresses, and the words that follow them.
///
/// # Safety
/// There are two words at each.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn pairs_at<const OFFSET: u64>(addresses: &[u64; LANES]) -> [__m512i; 2] {
    // SAFETY: the caller's promise.
    let pair = |i: usize| unsafe { _mm_loadu_si128((addresses[i] + OFFSET) as *const __m128i) };
    let even = concat_quarters([pair(0), pair(2), pair(4), pair(6)]);
    let odd = concat_quarters([pair(1), pair(3), pair(5), pair(7)]);
    [_mm512_unpacklo_epi64(even, odd), _mm512_unpackhi_epi64(even, odd)]
}

/// Concatenates four vectors of 128 bits.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
fn concat_quarters([a, b, c, d]: [__m128i; 4]) -> __m512i {
    let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
    let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

impl Default for SlotWords {
    fn default() -> Self {
        SlotWords::new()
    }
}

impl SlotWords {
    #[inline(always)]
    pub(super) fn new() -> Self {
        SlotWords([0; VECTOR_SLOTS])
    }

    /// The words of a group, read from memory. Without the barrier the compiler would forward the
    /// stored vector and extract its lanes one by one, which takes three times as long.
    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> &[u64; LANES] {
        let mut eight: *const [u64; LANES] = self.0[LANES * group..][..LANES].as_ptr().cast();
        // SAFETY: the assembly does nothing, but the compiler cannot know that the words are those
        // that were written; there are eight.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) eight, options(nostack, preserves_flags));
            &*eight
        }
    }

    /// Stores the words of a group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn set(&mut self, group: usize, words: __m512i) {
        let to = &mut self.0[LANES * group..][..LANES];
        // SAFETY: there are eight words.
        unsafe { _mm512_storeu_epi64(to.as_mut_ptr().cast(), words) };
    }

    /// Loads the words of a group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn get(&self, group: usize) -> __m512i {
        // SAFETY: there are eight words.
        unsafe { _mm512_loadu_epi64(self.0[LANES * group..][..LANES].as_ptr().cast()) }
    }
}

/// Copies the results at `results`, an address per slot, to all active slots.
///
/// # Safety
/// In every group with an active slot, all addresses are of results.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
pub(super) unsafe fn write_results(vector: &VectorLookup<'_>, results: &SlotWords) {
    // SAFETY: the caller's promise.
    unsafe {
        match (vector.result_words(), vector.active == u64::MAX) {
            (1, true) => write_result_words::<1, true>(vector, results),
            (2, true) => write_result_words::<2, true>(vector, results),
            _ => write_result_words::<0, false>(vector, results),
        }
    }
}

/// The same. `WORDS`: words of a result, or 0 for any number; `ALL` if all slots are active.
///
/// # Safety
/// As there.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
unsafe fn write_result_words<const WORDS: usize, const ALL: bool>(vector: &VectorLookup<'_>, results: &SlotWords) {
    let vector = *vector;
    let words = if WORDS == 0 { vector.result_words() } else { WORDS };
    for group in 0..VECTOR_SLOTS / LANES {
        let active = if ALL { u8::MAX } else { group_mask(vector.active, group) };
        if active == 0 {
            continue;
        }
        let addresses = results.group(group);
        for word in (0..words).step_by(2) {
            let word_addresses: [u64; LANES] =
                std::array::from_fn(|i| addresses[i] + (word * size_of::<AtomicU64>()) as u64);
            // SAFETY: the caller's promise.
            unsafe {
                if word + 1 < words {
                    let [first, second] = pairs_at::<0>(&word_addresses);
                    vector.store_results(word, group, active, first);
                    vector.store_results(word + 1, group, active, second);
                } else {
                    vector.store_results(word, group, active, words_at(&word_addresses));
                }
            }
        }
    }
}

/// The base addresses of records in registers, by leading zeros of record numbers; see
/// [`Directory::bases`].
pub(super) struct RecordBases {
    bases: [__m512i; 4],
    /// Bytes from one record to the next.
    stride_bytes: __m512i,
}

impl RecordBases {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn new(directory: &Directory) -> Self {
        let (bases, stride) = directory.bases();
        // SAFETY: there are 32, four times eight.
        let bases = std::array::from_fn(|i| unsafe { _mm512_loadu_epi64(bases[LANES * i..].as_ptr().cast()) });
        let stride_bytes = _mm512_set1_epi64((stride * size_of::<AtomicU64>()) as i64);
        RecordBases { bases, stride_bytes }
    }

    /// The addresses of eight records. Unspecified for the number 0.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx512vbmi,avx2,bmi1,bmi2,lzcnt")]
    pub(super) fn records(&self, numbers: __m512i) -> __m512i {
        let [a, b, c, d] = self.bases;
        let leading_zeros = _mm512_lzcnt_epi32(numbers);
        let (base_below_16, base_from_16) = (
            _mm512_permutex2var_epi64(a, leading_zeros, b),
            _mm512_permutex2var_epi64(c, leading_zeros, d),
        );
        let base = _mm512_mask_mov_epi64(
            base_below_16,
            _mm512_test_epi64_mask(leading_zeros, _mm512_set1_epi64(16)),
            base_from_16,
        );
        _mm512_add_epi64(base, _mm512_mul_epu32(numbers, self.stride_bytes))
    }
}
