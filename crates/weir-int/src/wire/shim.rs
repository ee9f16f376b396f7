//! The shim between a transport header and INT over TCP/UDP.

use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

/// The kind of INT header after a shim of INT 2.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShimType {
    /// Type 1: an MD header, whose nodes add metadata to the packet.
    Md,
    /// Type 2: a destination header, for the sink only; its format is not specified.
    Destination,
    /// Type 3: an MX header, whose nodes send reports of their own.
    Mx,
}

impl ShimType {
    /// The value on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            ShimType::Md => 1,
            ShimType::Destination => 2,
            ShimType::Mx => 3,
        }
    }

    /// The type of a value.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            1 => Some(ShimType::Md),
            2 => Some(ShimType::Destination),
            3 => Some(ShimType::Mx),
            _ => None,
        }
    }

    pub(crate) fn read(code: u8, offset: usize) -> Result<Self, WireError> {
        let expected = Expected::OneOf("1 (MD), 2 (destination) or 3 (MX)");
        Self::from_code(code)
            .ok_or_else(|| WireError::new(Reason::ShimType, "INT shim type", offset, expected, code.into()))
    }
}

/// The next-protocol type (NPT) of a shim of INT 2.x, with the field that depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextProtocol {
    /// NPT 0: the transport header is the packet's own; DSCP or a probe marker signals INT.
    Unchanged {
        /// The DSCP value before INT; optional, and 0 then.
        dscp: Uint<6>,
    },
    /// NPT 1: the packet's own UDP header, whose destination port signals INT.
    DestinationPort {
        /// The original UDP destination port.
        port: u16,
    },
    /// NPT 2: a UDP header inserted for INT; the original transport header follows the stack.
    Inserted {
        /// The original IP protocol.
        protocol: u8,
    },
}

/// The shim of INT 2.x over TCP/UDP, 4 bytes (INT 2.1, section "INT over TCP/UDP").
///
/// Type 4 | NPT 2 | reserved 2 | length 8 | field 16, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shim {
    /// The kind of INT header that follows.
    pub kind: ShimType,
    /// The meaning of the last 16 bits.
    pub next: NextProtocol,
    /// Words of 4 bytes of INT header and stack, without the shim.
    pub length: u8,
}

impl Shim {
    /// Bytes of the shim.
    pub const BYTES: usize = 4;

    /// Reads a shim.
    ///
    /// # Errors
    /// Fewer than 4 bytes, an unknown type, or NPT 3.
    #[inline]
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [first, length, high, low] = *reader.array("INT shim")?;
        let kind = ShimType::read(first >> 4, offset)?;
        let next = match (first >> 2) & 0b11 {
            0 => NextProtocol::Unchanged {
                dscp: Uint::truncate(u32::from(low) >> 2),
            },
            1 => NextProtocol::DestinationPort {
                port: u16::from_be_bytes([high, low]),
            },
            2 => NextProtocol::Inserted { protocol: low },
            other => {
                let expected = Expected::AtMost(2);
                return Err(WireError::new(
                    Reason::NextProtocolType,
                    "INT shim NPT",
                    offset,
                    expected,
                    other.into(),
                ));
            }
        };
        Ok(Shim { kind, next, length })
    }

    /// The shim on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let (npt, field) = match self.next {
            NextProtocol::Unchanged { dscp } => (0, (dscp.get() as u16) << 2),
            NextProtocol::DestinationPort { port } => (1, port),
            NextProtocol::Inserted { protocol } => (2, protocol.into()),
        };
        let [high, low] = field.to_be_bytes();
        [self.kind.code() << 4 | npt << 2, self.length, high, low]
    }
}

/// The kind of INT header after a shim of INT 0.x or 1.0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OldShimType {
    /// Type 1: a hop-by-hop header, whose nodes add metadata to the packet.
    HopByHop,
    /// Type 2: a destination header, for the sink only; its format is not specified.
    Destination,
}

impl OldShimType {
    /// The value on the wire.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            OldShimType::HopByHop => 1,
            OldShimType::Destination => 2,
        }
    }

    pub(crate) fn read(code: u8, offset: usize) -> Result<Self, WireError> {
        match code {
            1 => Ok(OldShimType::HopByHop),
            2 => Ok(OldShimType::Destination),
            other => {
                let expected = Expected::OneOf("1 (hop-by-hop) or 2 (destination)");
                let field = "INT shim type";
                Err(WireError::new(Reason::ShimType, field, offset, expected, other.into()))
            }
        }
    }
}

/// The shim of INT 0.x and 1.0 over TCP/UDP, 4 bytes.
///
/// Type 8 | reserved 8 | length 8 | reserved 8 (1.0: DSCP 6, reserved 2), in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OldShim {
    /// The kind of INT header that follows.
    pub kind: OldShimType,
    /// Words of 4 bytes of shim, INT header and stack; of the tail, too, in INT 0.x.
    pub length: u8,
    /// The DSCP value before INT (1.0 only).
    pub dscp: Uint<6>,
}

impl OldShim {
    /// Bytes of the shim.
    pub const BYTES: usize = 4;

    /// Reads a shim.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or a type other than 1 and 2.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [kind, _, length, dscp] = *reader.array("INT shim")?;
        let kind = OldShimType::read(kind, offset)?;
        Ok(OldShim {
            kind,
            length,
            dscp: Uint::truncate(u32::from(dscp) >> 2),
        })
    }

    /// The shim on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        [self.kind.code(), 0, self.length, (self.dscp.get() as u8) << 2]
    }
}

#[cfg(test)]
mod tests {
    use super::{NextProtocol, OldShim, Shim, ShimType};
    use crate::bits::Uint;
    use crate::error::Reason;
    use crate::read::Reader;

    #[test]
    fn each_next_protocol_type_has_its_field() {
        let read = |bytes: [u8; 4]| Shim::read(&mut Reader::new(&bytes)).unwrap();
        let dscp = Uint::truncate(10);
        assert_eq!(read([0x10, 3, 0, 0x28]).next, NextProtocol::Unchanged { dscp });
        assert_eq!(read([0x14, 8, 0, 9]).next, NextProtocol::DestinationPort { port: 9 });
        assert_eq!(read([0x18, 8, 0, 6]).next, NextProtocol::Inserted { protocol: 6 });
        assert_eq!(read([0x34, 3, 0, 9]).kind, ShimType::Mx);
    }

    #[test]
    fn unknown_types_are_refused() {
        let reason = |bytes: [u8; 4]| Shim::read(&mut Reader::new(&bytes)).unwrap_err().reason;
        assert_eq!(reason([0x40, 3, 0, 0]), Reason::ShimType);
        assert_eq!(reason([0x1c, 3, 0, 0]), Reason::NextProtocolType);
        let error = Shim::read(&mut Reader::new(&[0x1c, 3, 0, 0])).unwrap_err();
        assert_eq!(error.to_string(), "INT shim NPT at byte 0: expected at most 2, found 3");
        let old = OldShim::read(&mut Reader::new(&[3, 0, 4, 0]));
        assert_eq!(old.unwrap_err().reason, Reason::ShimType);
    }
}
