//! The Internet checksum (RFC 1071).

/// A sum of 16-bit words that is still open.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds bytes; an odd one at the end is the high half of a word.
    #[must_use]
    pub(crate) fn add(self, bytes: &[u8]) -> Sum {
        let pairs = bytes.chunks_exact(2);
        let last = pairs.remainder().first().map_or(0, |&b| u64::from(b) << 8);
        let words: u64 = pairs.map(|p| u64::from(u16::from_be_bytes([p[0], p[1]]))).sum();
        Sum(self.0 + words + last)
    }

    /// Adds a word.
    #[must_use]
    pub(crate) fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The checksum of what was added.
    #[must_use]
    pub(crate) fn finish(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071_sums_up() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
        assert_eq!(Sum::default().add(&[0x12]).finish(), !0x1200);
        assert_eq!(Sum::default().word(0xffff).word(1).finish(), !1);
    }
}
