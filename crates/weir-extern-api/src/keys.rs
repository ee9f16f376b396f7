//! Keys that a control plane sets and nothing reads back.

use thiserror::Error;

/// A key cannot be set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum KeyError {
    /// There is no such key.
    #[error("there is no key {index}: the instance has keys 0 to {last}")]
    Index {
        /// The number that was given.
        index: u64,
        /// The last one.
        last: u64,
    },
    /// The key has the wrong length.
    #[error("a key of {found} bytes, but {expected} are expected")]
    Length {
        /// Bytes that were given.
        found: usize,
        /// The lengths in bytes that are possible, as text.
        expected: String,
    },
}

/// The keys of an extern object. They are written by the control plane; no method reads them.
pub trait Keys: Send + Sync {
    /// How many there are. They are numbered from 0.
    fn count(&self) -> u64;

    /// Whether `set` would accept a key. It changes nothing: control planes check all keys of a
    /// batch before they set the first one.
    ///
    /// # Errors
    /// There is no such key, or it has the wrong length.
    fn check(&self, index: u64, key: &[u8]) -> Result<(), KeyError>;

    /// Sets a key, and resets what depends on it (sequence numbers, replay windows). The bytes are
    /// as the algorithm's specification orders them. An empty key removes it: calls that need it
    /// fail.
    ///
    /// # Errors
    /// Those of `check`.
    fn set(&self, index: u64, key: &[u8]) -> Result<(), KeyError>;

    /// Whether the instance takes no keys: removing one resets what its number stands for.
    fn only_resets(&self) -> bool {
        false
    }

    /// Whether a key is set. This is all that can be learnt of it.
    ///
    /// # Errors
    /// There is no such key.
    fn is_set(&self, index: u64) -> Result<bool, KeyError>;
}
