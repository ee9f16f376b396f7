//! Prefetching, and comparing eight words at once.

/// Finds a key among the eight slots of a bucket.
pub(crate) trait Finder {
    /// The first slot whose low 48 bits are `key`; 8 where there is none.
    fn find(bucket: &[u64; 8], key: u64) -> usize;
}

/// The low 48 bits.
pub(crate) const KEY: u64 = (1 << 48) - 1;

/// Word by word.
pub(crate) struct Portable;

impl Finder for Portable {
    #[inline(always)]
    fn find(bucket: &[u64; 8], key: u64) -> usize {
        let mut found = 1u32 << 8;
        for (i, word) in bucket.iter().enumerate() {
            found |= u32::from((word ^ key) & KEY == 0) << i;
        }
        found.trailing_zeros() as usize
    }
}

/// With AVX-512. Only used where [`has_avx512`] said yes.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Wide;

#[cfg(target_arch = "x86_64")]
impl Finder for Wide {
    #[inline(always)]
    fn find(bucket: &[u64; 8], key: u64) -> usize {
        use std::arch::x86_64::{_mm512_loadu_si512, _mm512_set1_epi64, _mm512_testn_epi64_mask, _mm512_xor_si512};
        // SAFETY: the type is only named in functions with this target feature, which only run where the
        // processor has it; the load reads the 64 bytes of the bucket.
        let found = unsafe {
            let words = _mm512_loadu_si512(bucket.as_ptr().cast());
            let difference = _mm512_xor_si512(words, _mm512_set1_epi64(key as i64));
            _mm512_testn_epi64_mask(difference, _mm512_set1_epi64(KEY as i64))
        };
        (u32::from(found) | 1 << 8).trailing_zeros() as usize
    }
}

/// Whether the processor has what [`Wide`] needs.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_avx512() -> bool {
    std::arch::is_x86_feature_detected!("avx512f")
        && std::arch::is_x86_feature_detected!("bmi1")
        && std::arch::is_x86_feature_detected!("bmi2")
}

/// Asks for the cache line of a value.
#[inline(always)]
pub(crate) fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching has no effect on the program, and the address is that of a value.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
