//! What becomes of a packet by the externs that it called: copies, drops, digests.

/// What becomes of a packet by the externs that it called: copies, drops, digests.
#[derive(Debug, Clone, Default)]
pub(super) struct Marks {
    /// A clone: session, and the number of the list of fields that it keeps.
    pub clone: Option<(u32, Option<u64>)>,
    /// The packet as it came in is to come in again, with the fields of a list.
    pub resubmit: Option<u64>,
    /// The packet as it goes out is to come in again, with the fields of a list.
    pub recirculate: Option<u64>,
    /// Most bytes that go out.
    pub truncate: Option<u64>,
    /// A checksum was wrong.
    pub checksum_error: bool,
    /// Rounds of loops.
    pub rounds: u32,
    /// State that other packets see was read or written.
    pub state: bool,
}
