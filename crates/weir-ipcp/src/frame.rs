//! Ethernet frames, with or without a VLAN tag.

use crate::config::Port;
use weir_rina::arp::MacAddress;

const TYPE_VLAN: u16 = 0x8100;

/// A frame of the port's VLAN, taken apart.
pub(crate) struct Frame<'a> {
    pub from: MacAddress,
    pub to: MacAddress,
    pub ethertype: u16,
    pub payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame; `None` if it is too short, or of another VLAN.
    pub fn read(bytes: &'a [u8], port: &Port) -> Option<Self> {
        let (to, rest) = bytes.split_first_chunk::<6>()?;
        let (from, rest) = rest.split_first_chunk::<6>()?;
        let (ethertype, rest) = rest.split_first_chunk::<2>()?;
        let ethertype = u16::from_be_bytes(*ethertype);
        let (vlan, ethertype, payload) = if ethertype == TYPE_VLAN {
            let (tag, rest) = rest.split_first_chunk::<2>()?;
            let (inner, rest) = rest.split_first_chunk::<2>()?;
            (u16::from_be_bytes(*tag) & 0xfff, u16::from_be_bytes(*inner), rest)
        } else {
            (0, ethertype, rest)
        };
        (vlan == port.vlan).then_some(Frame {
            from: MacAddress(*from),
            to: MacAddress(*to),
            ethertype,
            payload,
        })
    }
}

/// The header of a frame that leaves by a port; the payload is appended to it.
pub(crate) fn header(port: &Port, to: MacAddress, ethertype: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(1536);
    frame.extend(to.0);
    frame.extend(port.mac.0);
    if port.vlan != 0 {
        frame.extend(TYPE_VLAN.to_be_bytes());
        frame.extend(port.vlan.to_be_bytes());
    }
    frame.extend(ethertype.to_be_bytes());
    frame
}
