//! Key material from the control plane to externs.

use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroize;

/// The bytes of a key, in the order of the algorithm's specification. They are overwritten when it
/// is dropped, and no message shows them. State files hold them as they are.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct KeyBytes(Vec<u8>);

impl KeyBytes {
    /// A key of these bytes; none removes a key.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        KeyBytes(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for KeyBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of {} bytes", self.0.len())
    }
}

impl Drop for KeyBytes {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_not_shown() {
        assert_eq!(format!("{:?}", KeyBytes::new(vec![0xab; 16])), "a key of 16 bytes");
    }
}
