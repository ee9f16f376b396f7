//! How a domain signals that a packet carries INT.

use crate::bits::Uint;
use crate::wire::{SourceOnly, V0Layout, V1Profile};

/// A DSCP value under a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DscpMatch {
    /// The value; bits outside of the mask are ignored.
    pub value: Uint<6>,
    /// The bits that count.
    pub mask: Uint<6>,
}

impl DscpMatch {
    /// Exactly this value.
    #[must_use]
    pub const fn exactly(value: Uint<6>) -> Self {
        DscpMatch { value, mask: Uint::MAX }
    }

    /// Whether a packet's DSCP value matches.
    #[must_use]
    pub const fn matches(self, dscp: Uint<6>) -> bool {
        (dscp.get() ^ self.value.get()) & self.mask.get() == 0
    }
}

/// The meaning of version 0 in the header after a shim of INT 0.x or 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionZero {
    /// INT 0.x, with this layout of the flags.
    V0(V0Layout),
    /// INT 1.0, whose version some implementations send as 0. Bytes do not tell it from 0.x.
    V1,
}

impl Default for VersionZero {
    fn default() -> Self {
        VersionZero::V0(V0Layout::V05)
    }
}

/// The source-only metadata of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DomainSource {
    /// The domain-specific id.
    pub domain_id: u16,
    /// Words of 4 bytes that a source adds beyond HopML, if there are domain-specific instructions.
    pub words: u8,
}

/// How a domain signals INT, and which variants its nodes use.
///
/// INT 2.1 demands exactly one signal per domain. Several may be set here; the order of preference
/// is lab port, UDP port, probe marker, DSCP. The default has none, so that no packet is taken for
/// one with INT.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detection {
    /// UDP destination ports that say that INT follows.
    pub udp_ports: Vec<u16>,
    /// UDP destination ports that say that the lab format follows.
    pub lab_ports: Vec<u16>,
    /// DSCP values that say that INT follows the TCP or UDP header.
    pub dscp: Option<DscpMatch>,
    /// The first 8 bytes after the TCP or UDP header that say that INT follows them (1.0 and
    /// later).
    pub probe_marker: Option<u64>,
    /// Source-only metadata of domains (2.x). For other domains it is the remainder of the stack's
    /// length by that of a hop, which is wrong where it has as many words as a hop.
    pub source_only: Vec<DomainSource>,
    /// The length of a shim of INT 2.x includes the shim, as in drafts.
    pub length_has_shim: bool,
    /// INT is between the TCP header and its options; after them by default (1.0, per domain).
    pub before_tcp_options: bool,
    /// The meaning of version 0 after an old shim.
    pub version_zero: VersionZero,
    /// The sizes of fields of INT 1.0.
    pub v1_profile: V1Profile,
    /// The instruction bitmap of INT 0.x has its bits in the low byte, the most significant of them
    /// being instruction 0 (GEANT's INT 0.4).
    pub v0_low_byte: bool,
}

impl Detection {
    pub(super) fn source_only(&self, domain_id: u16) -> SourceOnly {
        let mut domains = self.source_only.iter();
        domains
            .find(|domain| domain.domain_id == domain_id)
            .map_or(SourceOnly::Remainder, |domain| {
                SourceOnly::Bytes(usize::from(domain.words) * 4)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::DscpMatch;
    use crate::bits::Uint;

    #[test]
    fn masked_bits_do_not_count() {
        let bit = DscpMatch {
            value: Uint::truncate(0x20),
            mask: Uint::truncate(0x20),
        };
        assert!(bit.matches(Uint::truncate(0x3f)));
        assert!(!bit.matches(Uint::truncate(0x1f)));
        assert!(DscpMatch::exactly(Uint::truncate(0x17)).matches(Uint::truncate(0x17)));
    }
}
