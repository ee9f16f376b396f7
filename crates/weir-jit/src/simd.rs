//! Compiles Rust code for AVX-512, and calls it if the processor has that.

/// A function that [`dispatch_simd`] runs.
pub trait SimdKernel {
    /// Its result.
    type Result;

    /// Runs it. Must be `#[inline(always)]`, like everything it calls that is to be vectorised: so
    /// it becomes part of a function that is compiled for AVX-512. (A long closure is not inlined,
    /// and then lacks these target features.)
    fn run(self) -> Self::Result;
}

/// Runs a kernel, compiled for AVX-512 if the processor has it. Loops over the slots of a vector
/// become several times shorter. Works only for code that is always inlined into the kernel.
///
/// ```
/// struct Sum<'a>(&'a [u64; 64]);
///
/// impl weir_jit::SimdKernel for Sum<'_> {
///     type Result = u64;
///
///     #[inline(always)]
///     fn run(self) -> u64 {
///         self.0.iter().sum()
///     }
/// }
///
/// assert_eq!(weir_jit::dispatch_simd(Sum(&[2; 64])), 128);
/// ```
#[inline]
pub fn dispatch_simd<K: SimdKernel>(kernel: K) -> K::Result {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if has_avx512() {
        // SAFETY: the processor has these features.
        return unsafe { with_avx512(kernel) };
    }
    kernel.run()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn has_avx512() -> bool {
    use std::sync::LazyLock;
    // Checked once, not feature by feature for every vector.
    static HAS: LazyLock<bool> = LazyLock::new(|| {
        use std::arch::is_x86_feature_detected as has;
        has!("avx512f")
            && has!("avx512bw")
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

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx512<K: SimdKernel>(kernel: K) -> K::Result {
    kernel.run()
}
