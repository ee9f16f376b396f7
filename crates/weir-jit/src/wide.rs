//! Rust code for the instructions that the processor has.

/// Calls a function, compiled for AVX-512 where the processor has that: loops over the slots of a vector are several times shorter so. This
/// works for functions that are always inlined, and what is inlined into them; others stay as they are.
///
/// ```
/// #[inline(always)]
/// fn sum(words: &[u64; 64]) -> u64 {
///     words.iter().sum()
/// }
///
/// assert_eq!(weir_jit::widely(&[2; 64], sum), 128);
/// ```
#[inline]
pub fn widely<A, R>(argument: A, function: impl FnOnce(A) -> R) -> R {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_wide() {
        // SAFETY: the processor has these features.
        return unsafe { with_avx512(argument, function) };
    }
    function(argument)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_wide() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f")
        && has!("avx512bw")
        && has!("avx512dq")
        && has!("avx512vl")
        && has!("avx2")
        && has!("bmi1")
        && has!("bmi2")
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2")]
fn with_avx512<A, R>(argument: A, function: impl FnOnce(A) -> R) -> R {
    function(argument)
}
