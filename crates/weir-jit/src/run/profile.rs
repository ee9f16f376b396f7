//! Counts of stages, for profiles.

/// Packets and cycles of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StageCount {
    /// Packets that ran through it.
    pub packets: u64,
    /// Executions, each for the packets of one vector that wait at its point.
    pub runs: u64,
    /// Cycles of the time-stamp counter, or nanoseconds where there is none.
    pub cycles: u64,
}

/// Reads the time-stamp counter; nanoseconds where there is none.
#[must_use]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        use std::time::Instant;
        thread_local!(static START: Instant = Instant::now());
        START.with(|s| s.elapsed().as_nanos() as u64)
    }
}
