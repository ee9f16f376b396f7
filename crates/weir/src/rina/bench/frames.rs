//! Frames of measurements: EFCP and IPv4 with the same sizes, each with its number.

use weir_rina::efcp::{Address, CepId, Dialect, Kind, Paper, Pci, QosId};

/// The address, and the last byte of the subnet, at the far end.
pub const FAR: u8 = 9;
/// Bytes of an Ethernet header.
pub const ETHERNET: usize = 14;
/// Bytes in front of the payload of an IPv4 frame: Ethernet, IPv4, UDP.
pub const IPV4_HEADERS: usize = ETHERNET + 28;
/// Bytes in front of the payload of an EFCP frame.
pub const EFCP_HEADERS: usize = ETHERNET + Paper::BYTES;
/// The discard service.
const UDP_PORT: u16 = 9;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// A data PDU with the 20-byte PCI.
    Efcp,
    /// A UDP datagram over IPv4.
    Ipv4,
}

impl Protocol {
    /// Bytes in front of the payload.
    pub const fn headers(self) -> usize {
        match self {
            Protocol::Efcp => EFCP_HEADERS,
            Protocol::Ipv4 => IPV4_HEADERS,
        }
    }

    const fn ether_type(self) -> u16 {
        match self {
            Protocol::Efcp => weir_rina::arp::ETHERTYPE_EFCP,
            Protocol::Ipv4 => 0x0800,
        }
    }
}

/// Writes a frame with a payload, to a router with this MAC address.
pub fn write(protocol: Protocol, router: [u8; 6], payload: &[u8], frame: &mut Vec<u8>) {
    frame.clear();
    frame.extend(router);
    frame.extend([2, 0, 0, 0, 0, 0xfe]);
    frame.extend(protocol.ether_type().to_be_bytes());
    match protocol {
        Protocol::Efcp => {
            let pci = Pci {
                qos: QosId(1),
                destination_cep: CepId(1),
                source_cep: CepId(1),
                kind: Kind::Data,
                ..Pci::management(Address(1), Address(FAR.into()))
            };
            // A payload of a measurement is shorter than the longest PDU.
            if Paper.encode(&pci, payload, frame).is_err() {
                frame.clear();
            }
        }
        Protocol::Ipv4 => {
            let total = (payload.len() + 28) as u16;
            let mut header = [0; 20];
            header[0] = 0x45;
            header[2..4].copy_from_slice(&total.to_be_bytes());
            header[8] = 64;
            header[9] = 17;
            header[12..16].copy_from_slice(&[10, 0, 1, 1]);
            header[16..20].copy_from_slice(&[10, 0, FAR, 1]);
            let sum = internet_checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            frame.extend(header);
            frame.extend(UDP_PORT.to_be_bytes());
            frame.extend(UDP_PORT.to_be_bytes());
            frame.extend(((payload.len() + 8) as u16).to_be_bytes());
            // No checksum.
            frame.extend([0, 0]);
            frame.extend(payload);
        }
    }
}

/// The payload of a frame of this protocol; `None` for other frames.
pub fn payload(protocol: Protocol, frame: &[u8]) -> Option<&[u8]> {
    let ether_type = frame.get(12..ETHERNET)?;
    let is_one = ether_type == protocol.ether_type().to_be_bytes();
    is_one.then(|| frame.get(protocol.headers()..)).flatten()
}

/// RFC 1071.
fn internet_checksum(header: &[u8; 20]) -> u16 {
    let words = header
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_carry_their_payload() {
        let mut frame = Vec::new();
        for protocol in [Protocol::Efcp, Protocol::Ipv4] {
            write(protocol, [2; 6], b"payload", &mut frame);
            assert_eq!(frame.len(), protocol.headers() + 7);
            assert_eq!(payload(protocol, &frame), Some(&b"payload"[..]));
        }
        assert_eq!(payload(Protocol::Efcp, &frame), None);
        assert_eq!(payload(Protocol::Ipv4, &[0; 13]), None);
    }

    /// The example of Wikipedia's article on the IPv4 header checksum.
    #[test]
    fn the_checksum_is_that_of_ipv4() {
        let header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7,
        ];
        assert_eq!(internet_checksum(&header), 0xb861);
    }
}
