//! The link-state database of an IPC process: flooding, ages, refusal of what is forged or old.
//!
//! Each IPC process announces its links, one state per link and direction, with a sequence number
//! that it alone increases. States are flooded: a newer one is stored and goes to all neighbours
//! but the one that sent it. A link counts only if both ends announce it, so that a forged state
//! makes no link by itself.
//!
//! | Attack | Answer |
//! |---|---|
//! | states from an IPC process that is not enrolled | refused: not a neighbour |
//! | replay of an old state | refused: older sequence number, kept for `hold` after expiry |
//! | a state in the name of this IPC process | refused; its own state is announced with a higher number |
//! | a link to an IPC process that has none | no effect: the other end does not announce it |
//! | more links than limits allow | refused: limits per origin and in total |
//!
//! Not prevented: a member of the DIF may announce a withdrawal of links between others, which
//! lasts until their origins answer, and may exhaust their sequence numbers ([`MAX_SEQUENCE`]).
//! Only signatures of origins would; neither IRATI nor rlite has them.

mod database;
mod outbox;

pub use database::{Database, Link, Summary};
pub use outbox::Batch;

use std::fmt;
use std::time::Duration;

/// The largest sequence number; states above it are refused everywhere.
pub const MAX_SEQUENCE: u32 = 1 << 31;

/// The state of one direction of a link.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LinkState<N> {
    /// The IPC process that announces the link.
    pub origin: N,
    /// The IPC process at the other end.
    pub neighbour: N,
    /// The cost, at least 1 for links that are up.
    pub cost: u32,
    /// The origin's sequence number for this link, at most [`MAX_SEQUENCE`].
    pub sequence: u32,
    /// Whether the link is up.
    pub is_up: bool,
    /// The time since the origin announced this.
    pub age: Duration,
}

/// Why a state is refused; metrics count each kind on its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rejection {
    /// The sender is not an enrolled neighbour.
    NotNeighbour,
    /// Both ends of the link are the same.
    SelfLoop,
    /// The link is up with cost 0.
    ZeroCost,
    /// The sequence number exceeds [`MAX_SEQUENCE`].
    SequenceRange,
    /// The age exceeds the maximum.
    TooOld,
    /// The sequence number is lower than that of the state in the database: old or replayed.
    Older,
    /// The state is in the database.
    Duplicate,
    /// Another state with the same sequence number is in the database and takes precedence.
    Conflict,
    /// The state is in the name of this IPC process and differs from its own: forged, or of the
    /// time before a restart.
    OwnOrigin,
    /// The origin has as many links as the limit allows.
    TooManyOfOrigin,
    /// The database is full.
    Full,
}

impl Rejection {
    /// All kinds, in the order of [`Rejection::index`].
    pub const ALL: [Rejection; 11] = [
        Rejection::NotNeighbour,
        Rejection::SelfLoop,
        Rejection::ZeroCost,
        Rejection::SequenceRange,
        Rejection::TooOld,
        Rejection::Older,
        Rejection::Duplicate,
        Rejection::Conflict,
        Rejection::OwnOrigin,
        Rejection::TooManyOfOrigin,
        Rejection::Full,
    ];

    /// The number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// The index of a kind, below [`Rejection::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// A name for metrics: lower case, words separated by `_`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rejection::NotNeighbour => "not_neighbour",
            Rejection::SelfLoop => "self_loop",
            Rejection::ZeroCost => "zero_cost",
            Rejection::SequenceRange => "sequence_range",
            Rejection::TooOld => "too_old",
            Rejection::Older => "older",
            Rejection::Duplicate => "duplicate",
            Rejection::Conflict => "conflict",
            Rejection::OwnOrigin => "own_origin",
            Rejection::TooManyOfOrigin => "too_many_of_origin",
            Rejection::Full => "full",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::error::Error for Rejection {}

/// Intervals and limits of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// The IPC process announces its own states again after this time; rlite: 30 s.
    pub refresh: Duration,
    /// Links whose state is older are not used; rlite: 900 s.
    pub max_age: Duration,
    /// States are remembered for this time after their expiry, so that replays are recognised.
    pub hold: Duration,
    /// Batches that are not acknowledged are sent again after this time; `None`: neighbours do not
    /// acknowledge (rlite, IRATI).
    pub retransmit: Option<Duration>,
    /// The most states of a batch; rlite: 10, IRATI: 15.
    pub batch: usize,
    /// The most batches that a neighbour has not acknowledged.
    pub window: usize,
    /// The most links that one IPC process may announce.
    pub max_links_of_origin: usize,
    /// The most links in the database.
    pub max_links: usize,
}

impl Default for Config {
    /// rlite's intervals; batches are acknowledged within 200 ms; 4096 links of an origin, a
    /// million in total.
    fn default() -> Self {
        Config {
            refresh: Duration::from_secs(30),
            max_age: Duration::from_secs(900),
            hold: Duration::from_secs(900),
            retransmit: Some(Duration::from_millis(200)),
            batch: 10,
            window: 16,
            max_links_of_origin: 4096,
            max_links: 1_000_000,
        }
    }
}
