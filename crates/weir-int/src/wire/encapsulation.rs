//! The shims of INT over GRE, VXLAN-GPE and Geneve.
//!
//! After each of them is what is after the shim of TCP/UDP: an MD or MX header and its metadata.

use super::shim::{OldShimType, ShimType};
use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;

/// The shim over GRE, 4 bytes (INT 2.1, section "INT over IPv4/GRE").
///
/// Type 4 | G 1 | reserved 3 | length 8 | next protocol 16, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GreShim {
    /// The kind of INT header that follows.
    pub kind: ShimType,
    /// G: the source inserted the GRE header.
    pub gre_inserted: bool,
    /// Words of 4 bytes of INT header and stack, without the shim.
    pub length: u8,
    /// The EtherType of what follows the stack.
    pub next_protocol: u16,
}

impl GreShim {
    /// Bytes of the shim.
    pub const BYTES: usize = 4;

    /// Reads a shim. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or an unknown type.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [first, length, high, low] = *reader.array("INT over GRE shim")?;
        Ok(GreShim {
            kind: ShimType::read(first >> 4, offset)?,
            gre_inserted: first & 0x08 != 0,
            length,
            next_protocol: u16::from_be_bytes([high, low]),
        })
    }

    /// The shim on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [high, low] = self.next_protocol.to_be_bytes();
        let first = self.kind.code() << 4 | u8::from(self.gre_inserted) << 3;
        [first, self.length, high, low]
    }
}

/// The shim over VXLAN-GPE, 4 bytes (INT 2.1, section "INT over VXLAN GPE").
///
/// Type 4 | reserved 4 | length 8 | G 1 | reserved 7 | next protocol 8, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VxlanGpeShim {
    /// The kind of INT header that follows.
    pub kind: ShimType,
    /// Words of 4 bytes of INT header and stack, without the shim.
    pub length: u8,
    /// G: the packet had a VXLAN header before INT, not one of VXLAN-GPE.
    pub was_vxlan: bool,
    /// The VXLAN-GPE next protocol of what follows the stack.
    pub next_protocol: u8,
}

impl VxlanGpeShim {
    /// Bytes of the shim.
    pub const BYTES: usize = 4;
    /// The VXLAN-GPE next protocol of INT 2.x.
    pub const NEXT_PROTOCOL: u8 = 0x82;

    /// Reads a shim. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or an unknown type.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [first, length, flags, next_protocol] = *reader.array("INT over VXLAN-GPE shim")?;
        Ok(VxlanGpeShim {
            kind: ShimType::read(first >> 4, offset)?,
            length,
            was_vxlan: flags & 0x80 != 0,
            next_protocol,
        })
    }

    /// The shim on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let flags = u8::from(self.was_vxlan) << 7;
        [self.kind.code() << 4, self.length, flags, self.next_protocol]
    }
}

/// The shim of INT 0.x and 1.0 over VXLAN-GPE, 4 bytes.
///
/// Type 8 | reserved 8 | length 8 | next protocol 8, in network order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OldVxlanGpeShim {
    /// The kind of INT header that follows.
    pub kind: OldShimType,
    /// Words of 4 bytes of shim, INT header and stack.
    pub length: u8,
    /// The VXLAN-GPE next protocol of what follows the stack.
    pub next_protocol: u8,
}

impl OldVxlanGpeShim {
    /// Bytes of the shim.
    pub const BYTES: usize = 4;
    /// The VXLAN-GPE next protocol of INT 0.5.
    pub const NEXT_PROTOCOL_V0_5: u8 = 0x05;
    /// The VXLAN-GPE next protocol of INT 1.0.
    pub const NEXT_PROTOCOL_V1: u8 = 0x08;

    /// Reads a shim. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 4 bytes, or a type other than 1 and 2.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [kind, _, length, next_protocol] = *reader.array("INT over VXLAN-GPE shim")?;
        Ok(OldVxlanGpeShim {
            kind: OldShimType::read(kind, offset)?,
            length,
            next_protocol,
        })
    }

    /// The shim on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        [self.kind.code(), 0, self.length, self.next_protocol]
    }
}

/// The header of a Geneve option that carries INT, 4 bytes (INT 2.1, section "INT over Geneve").
///
/// Option class 16 | type 8 | reserved 3 | length 5, in network order. At most 124 bytes follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GeneveOption {
    /// The kind of INT header that follows.
    pub kind: ShimType,
    /// Words of 4 bytes that follow.
    pub length: Uint<5>,
}

impl GeneveOption {
    /// Bytes of the option header.
    pub const BYTES: usize = 4;
    /// The option class of INT.
    pub const CLASS: u16 = 0x0103;

    /// Reads an option header. Reserved bits are ignored.
    ///
    /// # Errors
    /// Fewer than 4 bytes, another class, or an unknown type.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let offset = reader.offset();
        let [high, low, kind, length] = *reader.array("Geneve option")?;
        let class = u16::from_be_bytes([high, low]);
        if class != Self::CLASS {
            return Err(WireError::new(
                Reason::OptionType,
                "Geneve option class",
                offset,
                Expected::Exactly(Self::CLASS.into()),
                class.into(),
            ));
        }
        Ok(GeneveOption {
            kind: ShimType::read(kind, offset + 2)?,
            length: Uint::truncate(length.into()),
        })
    }

    /// The option header on the wire. Reserved bits are 0.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let [high, low] = Self::CLASS.to_be_bytes();
        [high, low, self.kind.code(), self.length.get() as u8]
    }
}

#[cfg(test)]
mod tests {
    use super::{GeneveOption, GreShim, OldVxlanGpeShim, VxlanGpeShim};
    use crate::error::Reason;
    use crate::read::Reader;
    use crate::wire::{OldShimType, ShimType};

    #[test]
    fn gre_shim_has_flag_and_ethertype() {
        let bytes = [0x18, 9, 0x08, 0x00];
        let shim = GreShim::read(&mut Reader::new(&bytes)).unwrap();
        assert!(shim.gre_inserted);
        assert_eq!((shim.kind, shim.length, shim.next_protocol), (ShimType::Md, 9, 0x0800));
        assert_eq!(shim.to_bytes(), bytes);
    }

    #[test]
    fn vxlan_gpe_shim_is_that_of_the_specifications_example() {
        let bytes = [0x10, 9, 0, 3];
        let shim = VxlanGpeShim::read(&mut Reader::new(&bytes)).unwrap();
        assert!(!shim.was_vxlan);
        assert_eq!((shim.length, shim.next_protocol), (9, 3));
        assert_eq!(shim.to_bytes(), bytes);
    }

    #[test]
    fn old_vxlan_gpe_shim_has_a_type_of_8_bits() {
        let bytes = [1, 0, 7, 3];
        let shim = OldVxlanGpeShim::read(&mut Reader::new(&bytes)).unwrap();
        assert_eq!(
            (shim.kind, shim.length, shim.next_protocol),
            (OldShimType::HopByHop, 7, 3)
        );
        assert_eq!(shim.to_bytes(), bytes);
        let error = OldVxlanGpeShim::read(&mut Reader::new(&[0x10, 0, 7, 3])).unwrap_err();
        assert_eq!((error.reason, error.found), (Reason::ShimType, 0x10));
    }

    #[test]
    fn geneve_options_of_other_classes_are_refused() {
        let option = GeneveOption::read(&mut Reader::new(&[1, 3, 1, 9])).unwrap();
        assert_eq!((option.kind, option.length.get()), (ShimType::Md, 9));
        let error = GeneveOption::read(&mut Reader::new(&[1, 4, 1, 9])).unwrap_err();
        assert_eq!(error.reason, Reason::OptionType);
    }
}
