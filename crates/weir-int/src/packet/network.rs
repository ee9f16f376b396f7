//! Ethernet, VLAN tags, IPv4 and IPv6: the headers in front of a transport header.

use crate::bits::Uint;
use crate::error::{Expected, Reason, WireError};
use crate::read::Reader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and the tag that QinQ used before 802.1ad.
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// Tags that a frame may have. More are not skipped.
const MAX_TAGS: usize = 2;

/// The link layer of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Link {
    /// VLAN ids, the outer one first.
    pub vlans: [Option<Uint<12>>; MAX_TAGS],
    /// The EtherType after the tags.
    pub ether_type: u16,
    /// Bytes of Ethernet header and tags.
    pub bytes: u32,
}

/// Which IP header follows a link layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ip {
    V4,
    V6,
}

impl Link {
    /// Reads the Ethernet header and up to two tags.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, WireError> {
        let start = reader.offset();
        reader.array::<12>("Ethernet header")?;
        let mut link = Link::default();
        let mut ether_type = reader.u16("EtherType")?;
        for vlan in &mut link.vlans {
            if !VLAN.contains(&ether_type) {
                break;
            }
            *vlan = Some(Uint::truncate(reader.u16("VLAN tag")?.into()));
            ether_type = reader.u16("EtherType behind a VLAN tag")?;
        }
        link.ether_type = ether_type;
        link.bytes = (reader.offset() - start) as u32;
        Ok(link)
    }

    pub(super) fn ip(&self) -> Option<Ip> {
        match self.ether_type {
            IPV4 => Some(Ip::V4),
            IPV6 => Some(Ip::V6),
            _ => None,
        }
    }
}

/// The network layer of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// The source address.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
    /// The differentiated-services code point.
    pub dscp: Uint<6>,
    /// The protocol of the payload, after extension headers; that of an inserted UDP header (NPT
    /// 2) where there is one. `None` if the packet ends before it.
    pub protocol: Option<u8>,
    /// Bytes of the packet from its IP header, by its length field; 0 if the header says 0.
    pub length: u32,
    /// The payload is not the first fragment, so that it has no transport header.
    pub is_later_fragment: bool,
}

/// Reads an IP header into `network`. On success the reader is at the transport header, and ends
/// with the packet. If extension headers are truncated, `network` is set beside the error.
#[inline]
pub(super) fn read(reader: &mut Reader<'_>, ip: Ip, network: &mut Option<Network>) -> Result<Network, WireError> {
    match ip {
        Ip::V4 => read_v4(reader).inspect(|v4| *network = Some(*v4)),
        Ip::V6 => read_v6(reader, network),
    }
}

fn check_version(found: u8, expected: u32, offset: usize) -> Result<(), WireError> {
    if u32::from(found) == expected {
        return Ok(());
    }
    let expected = Expected::Exactly(expected);
    let field = "IP version";
    Err(WireError::new(Reason::IpVersion, field, offset, expected, found.into()))
}

#[inline]
fn read_v4(reader: &mut Reader<'_>) -> Result<Network, WireError> {
    let start = reader.offset();
    let [
        first,
        tos,
        l0,
        l1,
        _,
        _,
        f0,
        f1,
        _,
        protocol,
        _,
        _,
        s0,
        s1,
        s2,
        s3,
        d0,
        d1,
        d2,
        d3,
    ] = *reader.array("IPv4 header")?;
    check_version(first >> 4, 4, start)?;
    let header = usize::from(first & 0xf) * 4;
    let Some(options) = header.checked_sub(20) else {
        let expected = Expected::AtLeast(5);
        let found = (header / 4) as u32;
        return Err(WireError::new(Reason::HeaderLength, "IPv4 IHL", start, expected, found));
    };
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    // Some exporters leave the length 0 until a later stage fills it.
    if length != 0 && length < header {
        let expected = Expected::AtLeast(header as u32);
        let field = "IPv4 total length";
        return Err(WireError::new(
            Reason::HeaderLength,
            field,
            start + 2,
            expected,
            length as u32,
        ));
    }
    let network = Network {
        source: Ipv4Addr::new(s0, s1, s2, s3).into(),
        destination: Ipv4Addr::new(d0, d1, d2, d3).into(),
        dscp: Uint::truncate(u32::from(tos) >> 2),
        protocol: Some(protocol),
        length: length as u32,
        is_later_fragment: u16::from_be_bytes([f0, f1]) & 0x1fff != 0,
    };
    if length != 0 {
        *reader = reader.take_up_to(length - 20);
    }
    reader.take_up_to(options);
    Ok(network)
}

fn read_v6(reader: &mut Reader<'_>, place: &mut Option<Network>) -> Result<Network, WireError> {
    let start = reader.offset();
    let word = reader.u32("IPv6 header")?;
    check_version((word >> 28) as u8, 6, start)?;
    let [l0, l1, next, _hop_limit] = *reader.array("IPv6 payload length")?;
    let source = Ipv6Addr::from(*reader.array("IPv6 source address")?);
    let destination = Ipv6Addr::from(*reader.array("IPv6 destination address")?);
    let payload = usize::from(u16::from_be_bytes([l0, l1]));
    let network = place.insert(Network {
        source: source.into(),
        destination: destination.into(),
        dscp: Uint::truncate(word >> 22),
        protocol: None,
        length: if payload == 0 { 0 } else { payload as u32 + 40 },
        is_later_fragment: false,
    });
    if payload != 0 {
        *reader = reader.take_up_to(payload);
    }
    read_extensions(reader, next, network)?;
    Ok(*network)
}

/// Skips extension headers; each has at least 8 bytes, so that their number is bounded.
fn read_extensions(reader: &mut Reader<'_>, mut next: u8, network: &mut Network) -> Result<(), WireError> {
    loop {
        match next {
            // Hop-by-hop, routing, destination options, mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => {
                let [following, length] = *reader.array("IPv6 extension header")?;
                reader.take(usize::from(length) * 8 + 6, "IPv6 extension header")?;
                next = following;
            }
            // Fragment: offset 13 | reserved 2 | more 1.
            44 => {
                let [following, _, high, low, ..] = *reader.array::<8>("IPv6 fragment header")?;
                network.is_later_fragment = u16::from_be_bytes([high, low]) >> 3 != 0;
                next = following;
                if network.is_later_fragment {
                    break;
                }
            }
            // Authentication: its length is in words of 4 bytes, minus 2.
            51 => {
                let [following, length] = *reader.array("IPv6 authentication header")?;
                reader.take(usize::from(length) * 4 + 6, "IPv6 authentication header")?;
                next = following;
            }
            _ => break,
        }
    }
    network.protocol = Some(next);
    Ok(())
}
