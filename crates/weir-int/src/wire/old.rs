//! The headers of INT 1.0 and 0.x.

use super::stack::{HopLayout, V1Profile};
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

fn words(reader: &mut Reader<'_>) -> Result<(u32, u32), WireError> {
    let [a, b, c, d, e, f, g, h] = *reader.array("INT header")?;
    Ok((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
}

fn from_words(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) << 32 | u64::from(second)).to_be_bytes()
}

/// The replication that a source demands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Replication {
    /// Rep 0: none.
    #[default]
    None,
    /// Rep 1: over all parallel links of layer 2.
    Layer2,
    /// Rep 2: over all next hops of layer 3.
    Layer3,
    /// Rep 3: both.
    Both,
}

impl Replication {
    const fn from_bits(bits: u32) -> Self {
        match bits & 0b11 {
            0 => Replication::None,
            1 => Replication::Layer2,
            2 => Replication::Layer3,
            _ => Replication::Both,
        }
    }
}

/// The hop-by-hop header of INT 1.0, 8 bytes (INT 1.0, section "INT Hop-by-Hop Metadata Header").
///
/// Version 4 | Rep 2 | C 1 | E 1 | M 1 | reserved 10 | HopML 5 | remaining hop count 8 ||
/// instruction bitmap 16 | reserved 16, in network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct V1Header {
    /// Rep: replication demanded.
    pub replication: Replication,
    /// C: this packet is a replica.
    pub copy: bool,
    /// E: a node added nothing because the remaining hop count was 0.
    pub hop_count_exceeded: bool,
    /// M: a node added nothing because the packet would have exceeded the MTU.
    pub mtu_exceeded: bool,
    /// HopML: words of 4 bytes that each hop adds.
    pub hop_words: Uint<5>,
    /// The number of hops that may still add metadata.
    pub remaining_hops: u8,
    /// The instruction bitmap; bit 0 is the most significant one.
    pub instructions: u16,
    /// The last 16 bits, reserved; some implementations number packets here.
    pub reserved: u16,
}

impl V1Header {
    /// Bytes of the header.
    pub const BYTES: usize = 8;
    /// The version on the wire.
    pub const VERSION: u8 = 1;

    /// Reads a header, whatever its version field says: some implementations send 0.
    ///
    /// # Errors
    /// Fewer than 8 bytes.
    pub fn read_any_version(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let (first, second) = words(reader)?;
        Ok(V1Header {
            replication: Replication::from_bits(first >> 26),
            copy: first & 1 << 25 != 0,
            hop_count_exceeded: first & 1 << 24 != 0,
            mtu_exceeded: first & 1 << 23 != 0,
            hop_words: Uint::truncate(first >> 8),
            remaining_hops: first as u8,
            instructions: (second >> 16) as u16,
            reserved: second as u16,
        })
    }

    /// Reads a header.
    ///
    /// # Errors
    /// Fewer than 8 bytes, or a version other than 1.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let found = reader.rest().first().map_or(0, |b| b >> 4);
        let header = Self::read_any_version(reader)?;
        if found == Self::VERSION {
            return Ok(header);
        }
        let expected = Expected::Exactly(Self::VERSION.into());
        Err(WireError::new(
            Reason::IntVersion,
            "INT 1.0 version",
            offset,
            expected,
            found.into(),
        ))
    }

    /// The header on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let first = u32::from(Self::VERSION) << 28
            | (self.replication as u32) << 26
            | u32::from(self.copy) << 25
            | u32::from(self.hop_count_exceeded) << 24
            | u32::from(self.mtu_exceeded) << 23
            | self.hop_words.get() << 8
            | u32::from(self.remaining_hops);
        let second = u32::from(self.instructions) << 16 | u32::from(self.reserved);
        from_words(first, second)
    }

    /// The layout of the hops.
    ///
    /// # Errors
    /// No layout of the profile has HopML words. `offset` is that of the header.
    pub fn layout(&self, profile: V1Profile, offset: usize) -> Result<HopLayout, WireError> {
        let words = self.hop_words.get();
        HopLayout::v1(self.instructions, words as u8, profile).ok_or_else(|| {
            let expected = Expected::OneOf("the words of the instruction bitmap");
            WireError::new(Reason::HopLength, "INT 1.0 HopML", offset + 2, expected, words)
        })
    }
}

/// Which of the two layouts that send version 0 a header of INT 0.x has. They differ in the place
/// of Rep, C and E only; which one is in use cannot be detected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum V0Layout {
    /// 0.4: version of 2 bits. Byte 0 has C = 0x08, E = 0x04. With Rep 1 it looks like INT 1.0.
    V04,
    /// 0.5: version of 4 bits. Byte 0 has C = 0x02, E = 0x01.
    #[default]
    V05,
}

/// The header of INT 0.4 and 0.5, 8 bytes.
///
/// 0.5: version 4 | Rep 2 | C 1 | E 1 | reserved 3 | instruction count 5 | max hop count 8 | total
/// hop count 8 || instruction bitmap 16 | reserved 16. 0.4: version 2 | Rep 2 | C 1 | E 1 |
/// reserved 5, the rest alike. In network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct V0Header {
    /// Rep: replication demanded.
    pub replication: Replication,
    /// C: this packet is a replica.
    pub copy: bool,
    /// E: a node added nothing because the maximum hop count was attained.
    pub hop_count_exceeded: bool,
    /// The number of instructions, that is of words that each hop adds.
    pub instruction_count: Uint<5>,
    /// The number of hops that may add metadata.
    pub max_hops: u8,
    /// The number of hops that have added metadata.
    pub total_hops: u8,
    /// The instruction bitmap; bit 0 is the most significant one.
    pub instructions: u16,
}

impl V0Header {
    /// Bytes of the header.
    pub const BYTES: usize = 8;

    /// Reads a header. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 8 bytes.
    pub fn read(reader: &mut Reader<'_>, layout: V0Layout) -> Result<Self, WireError> {
        let (first, second) = words(reader)?;
        let shift = Self::shift(layout);
        Ok(V0Header {
            replication: Replication::from_bits(first >> (shift + 2)),
            copy: first >> (shift + 1) & 1 != 0,
            hop_count_exceeded: first >> shift & 1 != 0,
            instruction_count: Uint::truncate(first >> 16),
            max_hops: (first >> 8) as u8,
            total_hops: first as u8,
            instructions: (second >> 16) as u16,
        })
    }

    /// The place of E; C and Rep are above it.
    const fn shift(layout: V0Layout) -> u32 {
        match layout {
            V0Layout::V04 => 26,
            V0Layout::V05 => 24,
        }
    }

    /// The header on the wire. Version and reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self, layout: V0Layout) -> [u8; Self::BYTES] {
        let shift = Self::shift(layout);
        let first = (self.replication as u32) << (shift + 2)
            | u32::from(self.copy) << (shift + 1)
            | u32::from(self.hop_count_exceeded) << shift
            | self.instruction_count.get() << 16
            | u32::from(self.max_hops) << 8
            | u32::from(self.total_hops);
        from_words(first, u32::from(self.instructions) << 16)
    }
}

/// The tail of INT 0.x over TCP/UDP, 4 bytes after the stack.
///
/// Protocol 8 | original destination port 16 | original DSCP 8, in network order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Tail {
    /// The original IP protocol.
    pub protocol: u8,
    /// The original destination port.
    pub destination_port: u16,
    /// The last byte: reserved by the text, the original DSCP value by implementations.
    pub dscp: u8,
}

impl Tail {
    /// Bytes of the tail.
    pub const BYTES: usize = 4;

    /// Reads a tail.
    ///
    /// # Errors
    /// Fewer than 4 bytes.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let [protocol, high, low, dscp] = *reader.array("INT tail")?;
        Ok(Tail {
            protocol,
            destination_port: u16::from_be_bytes([high, low]),
            dscp,
        })
    }

    /// The tail on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [high, low] = self.destination_port.to_be_bytes();
        [self.protocol, high, low, self.dscp]
    }
}

#[cfg(test)]
mod tests {
    use super::{V0Header, V0Layout, V1Header};
    use crate::bits::Uint;
    use crate::error::Reason;
    use crate::read::Reader;

    #[test]
    fn v1_flags_have_their_bits() {
        // Computed by hand: M, HopML 5, remaining 6; E, remaining 0.
        let read = |first: u32| {
            let bytes = (u64::from(first) << 32).to_be_bytes();
            V1Header::read(&mut Reader::new(&bytes)).unwrap()
        };
        let m = read(0x1080_0506);
        assert!(m.mtu_exceeded && !m.hop_count_exceeded);
        assert_eq!((m.hop_words, m.remaining_hops), (Uint::truncate(5), 6));
        let e = read(0x1100_0500);
        assert!(e.hop_count_exceeded && !e.mtu_exceeded);
    }

    #[test]
    fn v0_flags_depend_on_the_layout() {
        let read =
            |first: u8, layout| V0Header::read(&mut Reader::new(&[first, 2, 16, 2, 0x90, 0, 0, 0]), layout).unwrap();
        assert!(read(0x04, V0Layout::V04).hop_count_exceeded);
        assert!(read(0x08, V0Layout::V04).copy);
        assert!(read(0x01, V0Layout::V05).hop_count_exceeded);
        assert!(read(0x02, V0Layout::V05).copy);
    }

    #[test]
    fn version_0_is_no_version_1() {
        let error = V1Header::read(&mut Reader::new(&[0; 8])).unwrap_err();
        assert_eq!(error.reason, Reason::IntVersion);
    }
}
