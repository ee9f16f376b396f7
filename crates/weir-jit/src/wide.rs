//! Rust code for the instructions that the processor has.

/// What [`widely`] runs.
pub trait Job {
    /// What comes of it.
    type Result;

    /// Does it. Always inlined, so that it becomes part of a function that is compiled for AVX-512: `#[inline(always)]`, as everything it calls that is to
    /// gain by that. (A closure would not do: once it is long the compiler makes a function of it that has no such features.)
    fn run(self) -> Self::Result;
}

/// Runs a job, compiled for AVX-512 where the processor has that: loops over the slots of a vector are several times shorter so. This
/// works for functions that are always inlined, and what is inlined into them; others stay as they are.
///
/// ```
/// struct Sum<'a>(&'a [u64; 64]);
///
/// impl weir_jit::Job for Sum<'_> {
///     type Result = u64;
///
///     #[inline(always)]
///     fn run(self) -> u64 {
///         self.0.iter().sum()
///     }
/// }
///
/// assert_eq!(weir_jit::widely(Sum(&[2; 64])), 128);
/// ```
#[inline]
pub fn widely<J: Job>(job: J) -> J::Result {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if is_wide() {
        // SAFETY: the processor has these features.
        return unsafe { with_avx512(job) };
    }
    job.run()
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn is_wide() -> bool {
    use std::sync::LazyLock;
    // Asked once, not feature by feature for every vector.
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
fn with_avx512<J: Job>(job: J) -> J::Result {
    job.run()
}
