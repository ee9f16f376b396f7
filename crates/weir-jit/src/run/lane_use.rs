//! When code for eight packets runs, and when code for one.

/// When segments run eight packets at a time, if the processor has AVX-512.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LaneUse {
    /// If enough packets wait for it to be faster.
    #[default]
    Many,
    /// Always, even where it is slower: for tests.
    Always,
    /// Never.
    Never,
}

impl LaneUse {
    /// Whether eight packets at a time are faster than one at a time.
    #[inline]
    pub(super) fn is_worth(self, packets: u64) -> bool {
        match self {
            // Full vectors are common, and counting is slow on processors without `popcnt`.
            LaneUse::Many => packets == u64::MAX || packets.count_ones() >= MIN_LANE_PACKETS,
            LaneUse::Always => true,
            LaneUse::Never => false,
        }
    }
}

/// With fewer packets of a vector, one at a time is faster.
const MIN_LANE_PACKETS: u32 = 16;
