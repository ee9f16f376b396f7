//! Compares eight words at once, and reads header fields as words.

/// The low 48 bits.
pub(crate) const KEY: u64 = (1 << 48) - 1;

/// Finds a key among the eight slots of a bucket.
pub(crate) trait Finder {
    /// The slots whose low 48 bits are `key`, as a mask.
    fn find(bucket: &[u64; 8], key: u64) -> u32;
}

/// Word by word.
pub(crate) struct Portable;

impl Finder for Portable {
    #[inline(always)]
    fn find(bucket: &[u64; 8], key: u64) -> u32 {
        let mut found = 0;
        for (i, word) in bucket.iter().enumerate() {
            found |= u32::from((word ^ key) & KEY == 0) << i;
        }
        found
    }
}

/// With AVX-512. Used only if [`has_avx512`] returned true.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Wide;

#[cfg(target_arch = "x86_64")]
impl Finder for Wide {
    #[inline(always)]
    fn find(bucket: &[u64; 8], key: u64) -> u32 {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_set1_epi64, _mm512_testn_epi64_mask, _mm512_xor_si512};
        // SAFETY: the type is named only in functions with this target feature, which run only
        // where the processor has it. The load reads the 64 bytes of the bucket.
        let found = unsafe {
            let words = _mm512_loadu_si512(bucket.as_ptr().cast());
            let difference = _mm512_xor_si512(words, _mm512_set1_epi64(key as i64));
            _mm512_testn_epi64_mask(difference, _mm512_set1_epi64(KEY as i64))
        };
        found.into()
    }
}

/// Whether the processor has the features that functions with [`Wide`] need.
pub(crate) fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        std::arch::is_x86_feature_detected!("avx512f")
            && std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512dq")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
    }
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The eight bytes at `at`, as a little-endian number.
#[inline(always)]
pub(crate) fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// A MAC address as its six bytes in memory, read as a little-endian number.
#[inline(always)]
pub(crate) fn mac_as_loaded(mac: u64) -> u64 {
    (mac << 16).swap_bytes()
}
