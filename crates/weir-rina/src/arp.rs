//! ARP of shim DIFs over Ethernet: application names instead of IP addresses (RFC 826).
//!
//! Hardware type 1, protocol type 0xD1F0, hardware addresses of 6 bytes. The protocol addresses are
//! the names of the two IPC processes above the shim, padded with zeros to the same length.

use crate::error::{EncodeError, Expected, Reason, WireError};
use crate::name::{ApplicationName, NameForm};
use crate::read::{ByteOrder, Reader, Width};
use std::fmt;

/// The EtherType of EFCP over Ethernet in IRATI, rlite and weir; not registered.
pub const ETHERTYPE_EFCP: u16 = 0xd1f0;
/// The EtherType of EFCP in the prototype of the paper.
pub const ETHERTYPE_EFCP_PROTOTYPE: u16 = 0x0d1f;
/// The hardware type of Ethernet.
pub const HARDWARE_ETHERNET: u16 = 1;
/// The protocol type of RINA.
pub const PROTOCOL_RINA: u16 = 0xd1f0;

/// A MAC address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// The broadcast address.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The conventions of a shim DIF over Ethernet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ShimDialect {
    /// EtherType 0x0806, names separated by `|`.
    #[default]
    Rlite,
    /// EtherType 0x4305, names separated by `/`.
    Irati,
}

impl ShimDialect {
    /// The EtherType of ARP frames.
    #[must_use]
    pub const fn ether_type(self) -> u16 {
        match self {
            ShimDialect::Rlite => 0x0806,
            ShimDialect::Irati => 0x4305,
        }
    }

    /// The dialect of an EtherType.
    #[must_use]
    pub const fn from_ether_type(ether_type: u16) -> Option<Self> {
        match ether_type {
            0x0806 => Some(ShimDialect::Rlite),
            0x4305 => Some(ShimDialect::Irati),
            _ => None,
        }
    }

    /// The text form of names.
    #[must_use]
    pub const fn name_form(self) -> NameForm {
        match self {
            ShimDialect::Rlite => NameForm::Rlite,
            ShimDialect::Irati => NameForm::Irati,
        }
    }
}

/// The operation of an ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// 1: which MAC address does the target have?
    Request,
    /// 2: the sender has this MAC address.
    Reply,
}

impl Operation {
    /// The value on the wire.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Operation::Request => 1,
            Operation::Reply => 2,
        }
    }
}

/// An ARP packet of a shim DIF whose types and lengths have been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArpPacket<'a> {
    /// The operation.
    pub operation: Operation,
    /// The sender's MAC address.
    pub sender_mac: MacAddress,
    /// The text form of the sender's name, without padding.
    pub sender: &'a [u8],
    /// The target's MAC address; zeros in requests.
    pub target_mac: MacAddress,
    /// The text form of the target's name, without padding.
    pub target: &'a [u8],
}

impl<'a> ArpPacket<'a> {
    /// Reads an ARP packet, from its hardware type on. Bytes after it are ignored.
    ///
    /// # Errors
    /// [`Reason::ArpType`]: another hardware or protocol type or length, such as ARP of IP;
    /// [`Reason::ArpOperation`]: neither request nor reply; [`Reason::Truncated`].
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        exactly(&mut reader, Width::Two, "ARP hardware type", HARDWARE_ETHERNET.into())?;
        exactly(&mut reader, Width::Two, "ARP protocol type", PROTOCOL_RINA.into())?;
        exactly(&mut reader, Width::One, "ARP hardware address length", 6)?;
        let length = usize::from(reader.u8("ARP protocol address length")?);
        let offset = reader.offset();
        let operation = match reader.uint(Width::Two, ByteOrder::Big, "ARP operation")? {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => {
                let expected = Expected::OneOf("1 (request) or 2 (reply)");
                let reason = Reason::ArpOperation;
                return Err(WireError::new(reason, "ARP operation", offset, expected, other));
            }
        };
        Ok(ArpPacket {
            operation,
            sender_mac: MacAddress(reader.array("ARP sender hardware address")?),
            sender: unpadded(reader.take(length, "ARP sender protocol address")?.rest()),
            target_mac: MacAddress(reader.array("ARP target hardware address")?),
            target: unpadded(reader.take(length, "ARP target protocol address")?.rest()),
        })
    }

    /// The names of sender and target.
    ///
    /// # Errors
    /// [`Reason::Name`]: one is no name of the dialect; the offset is that within the name.
    pub fn names(&self, dialect: ShimDialect) -> Result<(ApplicationName, ApplicationName), WireError> {
        let name = |text| ApplicationName::from_text(text, dialect.name_form());
        Ok((name(self.sender)?, name(self.target)?))
    }

    /// Appends the packet. Zeros at the end of a name are padding on the wire.
    ///
    /// # Errors
    /// A name of more than 255 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let length = self.sender.len().max(self.target.len());
        let Ok(length_field) = u8::try_from(length) else {
            return Err(EncodeError::TooLarge {
                field: "ARP protocol address length",
                limit: u8::MAX.into(),
                found: length as u64,
            });
        };
        out.extend(HARDWARE_ETHERNET.to_be_bytes());
        out.extend(PROTOCOL_RINA.to_be_bytes());
        out.extend([6, length_field]);
        out.extend(self.operation.code().to_be_bytes());
        for (mac, name) in [(self.sender_mac, self.sender), (self.target_mac, self.target)] {
            out.extend(mac.0);
            out.extend(name);
            out.resize(out.len() + length - name.len(), 0);
        }
        Ok(())
    }

    /// The reply of the target of this request, whose MAC address is `mac`.
    #[must_use]
    pub const fn reply(&self, mac: MacAddress) -> ArpPacket<'a> {
        ArpPacket {
            operation: Operation::Reply,
            sender_mac: mac,
            sender: self.target,
            target_mac: self.sender_mac,
            target: self.sender,
        }
    }
}

fn exactly(reader: &mut Reader<'_>, width: Width, field: &'static str, value: u32) -> Result<(), WireError> {
    let offset = reader.offset();
    let found = reader.uint(width, ByteOrder::Big, field)?;
    if found == value {
        return Ok(());
    }
    let expected = Expected::Exactly(value.into());
    Err(WireError::new(Reason::ArpType, field, offset, expected, found))
}

fn unpadded(name: &[u8]) -> &[u8] {
    let end = name.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    &name[..end]
}
