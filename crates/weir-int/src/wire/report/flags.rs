//! Why a report was sent.

/// The association flags of a report. Several may be set, and none for a plain copy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// D: the packet was dropped.
    pub dropped: bool,
    /// Q: a monitored queue was congested.
    pub congested_queue: bool,
    /// F: the packet belongs to a tracked flow; without it a report has no INT stack.
    pub tracked_flow: bool,
    /// I: a transit node sent the report (2.0 only).
    pub intermediate: bool,
}

impl Flags {
    /// D, Q and F from the three low bits of a value.
    pub(super) const fn from_dqf(bits: u32) -> Self {
        Flags {
            dropped: bits & 0b100 != 0,
            congested_queue: bits & 0b010 != 0,
            tracked_flow: bits & 0b001 != 0,
            intermediate: false,
        }
    }

    /// D, Q and F as the three low bits of a value.
    pub(super) const fn dqf(self) -> u32 {
        (self.dropped as u32) << 2 | (self.congested_queue as u32) << 1 | self.tracked_flow as u32
    }
}
