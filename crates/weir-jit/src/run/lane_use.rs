//! Chooses between code for eight packets at a time and code for one.

/// When segments run eight packets at a time, if the processor has AVX-512.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaneUse {
    /// If enough packets wait at a point for it to be faster.
    #[default]
    Auto,
    /// Always, even where it is slower: for tests.
    Always,
    /// Never.
    Never,
}

impl LaneUse {
    /// Whether to run these packets eight at a time.
    #[inline]
    pub(super) fn uses_lanes(self, packets: u64) -> bool {
        match self {
            // Full vectors are common, and counting is slow on processors without `popcnt`.
            LaneUse::Auto => packets == u64::MAX || packets.count_ones() >= MIN_LANE_PACKETS,
            LaneUse::Always => true,
            LaneUse::Never => false,
        }
    }
}

/// With fewer packets than this, one at a time is faster.
const MIN_LANE_PACKETS: u32 = 16;
