//! The headers of INT 2.x: MD (nodes add metadata) and MX (nodes send reports).

use super::stack::HopLayout;
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

/// The version of INT 2.0 and 2.1 headers.
pub const VERSION: u8 = 2;

fn version(first: u32, field: &'static str, offset: usize) -> Result<(), WireError> {
    let found = first >> 28;
    if found == u32::from(VERSION) {
        return Ok(());
    }
    let expected = Expected::Exactly(VERSION.into());
    Err(WireError::new(Reason::IntVersion, field, offset, expected, found))
}

/// The domain-specific part of a header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Domain {
    /// Domain-specific id; 0 is the default, for which the other fields are reserved.
    pub id: u16,
    /// Domain-specific instructions, a bitmap that the domain defines.
    pub instructions: u16,
    /// Domain-specific flags.
    pub flags: u16,
}

impl Domain {
    fn from_words(second: u32, third: u32) -> Self {
        Domain {
            id: second as u16,
            instructions: (third >> 16) as u16,
            flags: third as u16,
        }
    }

    const fn third_word(self) -> u32 {
        (self.instructions as u32) << 16 | self.flags as u32
    }
}

/// The INT-MD header, 12 bytes (INT 2.1, section "INT-MD Metadata Header Format").
///
/// Version 4 | D 1 | E 1 | M 1 | reserved 12 | HopML 5 | remaining hop count 8 || instruction
/// bitmap 16 | domain id 16 || DS instructions 16 | DS flags 16, in network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MdHeader {
    /// D: the sink discards the packet after it has extracted the metadata.
    pub discard: bool,
    /// E: a node added nothing because the remaining hop count was 0.
    pub hop_count_exceeded: bool,
    /// M: a node added nothing because the packet would have exceeded the MTU.
    pub mtu_exceeded: bool,
    /// HopML: words of 4 bytes that each hop adds, without source-only metadata.
    pub hop_words: Uint<5>,
    /// The number of hops that may still add metadata.
    pub remaining_hops: u8,
    /// The instruction bitmap; bit 0 is the most significant one.
    pub instructions: u16,
    /// Domain-specific id, instructions and flags.
    pub domain: Domain,
}

impl MdHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 12;

    /// Reads a header. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 12 bytes, or another version.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [first, second, third] = words(reader, "INT-MD header")?;
        version(first, "INT-MD version", offset)?;
        Ok(MdHeader {
            discard: first & 1 << 27 != 0,
            hop_count_exceeded: first & 1 << 26 != 0,
            mtu_exceeded: first & 1 << 25 != 0,
            hop_words: Uint::truncate(first >> 8),
            remaining_hops: first as u8,
            instructions: (second >> 16) as u16,
            domain: Domain::from_words(second, third),
        })
    }

    /// The header on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let first = u32::from(VERSION) << 28
            | u32::from(self.discard) << 27
            | u32::from(self.hop_count_exceeded) << 26
            | u32::from(self.mtu_exceeded) << 25
            | self.hop_words.get() << 8
            | u32::from(self.remaining_hops);
        let second = u32::from(self.instructions) << 16 | u32::from(self.domain.id);
        from_words([first, second, self.domain.third_word()])
    }

    /// The layout of the hops.
    ///
    /// # Errors
    /// HopML is less than the instruction bitmap needs. `offset` is that of the header.
    pub fn layout(&self, offset: usize) -> Result<HopLayout, WireError> {
        let words = self.hop_words.get();
        HopLayout::v2(self.instructions, words as u8).ok_or_else(|| {
            let needed = HopLayout::words_of_v2(self.instructions);
            let expected = Expected::AtLeast(needed.into());
            WireError::new(Reason::HopLength, "INT-MD HopML", offset + 2, expected, words)
        })
    }
}

/// The INT-MX header, 12 bytes (INT 2.1, section "INT-MX Header Format").
///
/// Version 4 | D 1 | reserved 27 || instruction bitmap 16 | domain id 16 || DS instructions 16 |
/// DS flags 16, in network order. Source-inserted domain-specific metadata may follow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MxHeader {
    /// D: the sink discards the packet.
    pub discard: bool,
    /// The instruction bitmap; bit 0 is the most significant one.
    pub instructions: u16,
    /// Domain-specific id, instructions and flags.
    pub domain: Domain,
}

impl MxHeader {
    /// Bytes of the header.
    pub const BYTES: usize = 12;

    /// Reads a header. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 12 bytes, or another version.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [first, second, third] = words(reader, "INT-MX header")?;
        version(first, "INT-MX version", offset)?;
        Ok(MxHeader {
            discard: first & 1 << 27 != 0,
            instructions: (second >> 16) as u16,
            domain: Domain::from_words(second, third),
        })
    }

    /// The header on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let first = u32::from(VERSION) << 28 | u32::from(self.discard) << 27;
        let second = u32::from(self.instructions) << 16 | u32::from(self.domain.id);
        from_words([first, second, self.domain.third_word()])
    }
}

fn words(reader: &mut Reader<'_>, field: &'static str) -> Result<[u32; 3], WireError> {
    let [a, b, c, d, e, f, g, h, i, j, k, l] = *reader.array(field)?;
    let word = u32::from_be_bytes;
    Ok([word([a, b, c, d]), word([e, f, g, h]), word([i, j, k, l])])
}

fn from_words(words: [u32; 3]) -> [u8; 12] {
    let [[a, b, c, d], [e, f, g, h], [i, j, k, l]] = words.map(u32::to_be_bytes);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

#[cfg(test)]
mod tests {
    use super::{Domain, MdHeader, MxHeader};
    use crate::bits::Uint;
    use crate::error::Reason;
    use crate::read::Reader;

    #[test]
    fn md_flags_have_their_bits() {
        let header = MdHeader {
            discard: true,
            hop_words: Uint::MAX,
            remaining_hops: 6,
            instructions: 0xdc00,
            domain: Domain {
                id: 0xbeef,
                instructions: 1,
                flags: 2,
            },
            ..MdHeader::default()
        };
        let bytes = header.to_bytes();
        assert_eq!(bytes, [0x28, 0, 0x1f, 6, 0xdc, 0, 0xbe, 0xef, 0, 1, 0, 2]);
        assert_eq!(MdHeader::read(&mut Reader::new(&bytes)), Ok(header));
        let exceeded = MdHeader::read(&mut Reader::new(&[0x26, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0])).unwrap();
        assert!(exceeded.hop_count_exceeded && exceeded.mtu_exceeded && !exceeded.discard);
    }

    #[test]
    fn hops_shorter_than_their_instructions_are_refused() {
        let header = MdHeader {
            hop_words: Uint::truncate(6),
            instructions: 0xdc00,
            ..MdHeader::default()
        };
        let error = header.layout(16).unwrap_err();
        assert_eq!((error.reason, error.offset, error.found), (Reason::HopLength, 18, 6));
    }

    #[test]
    fn other_versions_are_refused() {
        let error = MxHeader::read(&mut Reader::new(&[0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        assert_eq!(error.unwrap_err().reason, Reason::IntVersion);
    }
}
