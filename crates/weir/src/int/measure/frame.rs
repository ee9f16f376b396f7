//! The packets of a measurement: UDP in the lab format of INT, with a number in the payload.
//!
//! | Bytes | Content |
//! |---|---|
//! | 14 | Ethernet |
//! | 20 | IPv4 |
//! | 8 | UDP to the lab port, without a checksum |
//! | 36 | shim, INT header, one record of the source |
//! | 16 | `weir`, number of the measurement 32, number of the packet 64 |
//! | rest | zeros |
//!
//! Frames too short for this have no INT and go to the original port.

use std::net::Ipv4Addr;
use weir_int::packet::{Detection, PacketView};
use weir_int::wire::{MdHeader, Shim, encode, lab};
use weir_int::{Hop, Timestamp, TimestampWidth};

/// Bytes of Ethernet, IPv4 and UDP headers.
pub const HEADERS: usize = 14 + 20 + 8;
/// Bytes of INT with one record.
const INT: usize = Shim::BYTES + MdHeader::BYTES + lab::RECORD_BYTES;
/// Bytes of the numbers in the payload.
const NUMBERS: usize = 16;
/// Bytes of the shortest frame: that of Ethernet, without its checksum.
pub const SHORTEST: usize = 60;
/// Bytes of the shortest frame with INT.
pub const SHORTEST_WITH_INT: usize = HEADERS + INT + NUMBERS;
/// Bytes of the longest frame.
pub const LONGEST: usize = 9018;

/// First bytes of the payload.
const MARK: [u8; 4] = *b"weir";
/// UDP destination port without INT: discard (RFC 863).
const ORIGINAL_PORT: u16 = 9;
const SOURCE_PORT: u16 = 49_152;
/// Hops that the INT header permits.
const HOPS: u8 = 8;

/// An Ethernet address.
pub type Mac = [u8; 6];

/// Addresses of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Of the source.
    pub source_mac: Mac,
    /// Of the sink, or of the router under test.
    pub destination_mac: Mac,
    /// Of the source.
    pub source: Ipv4Addr,
    /// Of the sink.
    pub destination: Ipv4Addr,
    /// UDP destination port of packets with INT.
    pub port: u16,
}

impl Default for Addresses {
    /// Locally administered Ethernet addresses, and IPv4 of benchmarks (RFC 2544).
    fn default() -> Self {
        Addresses {
            source_mac: [2, 0, 0, 0x57, 0x45, 1],
            destination_mac: [2, 0, 0, 0x57, 0x45, 2],
            source: Ipv4Addr::new(198, 18, 0, 1),
            destination: Ipv4Addr::new(198, 18, 0, 2),
            port: 5000,
        }
    }
}

impl Addresses {
    /// Those of the opposite direction.
    pub fn reversed(self) -> Self {
        Addresses {
            source_mac: self.destination_mac,
            destination_mac: self.source_mac,
            source: self.destination,
            destination: self.source,
            port: self.port,
        }
    }
}

/// Packets of one size.
#[derive(Debug, Clone)]
pub struct Template {
    bytes: Vec<u8>,
    /// Place of the record's egress timestamp, where there is INT.
    egress: Option<usize>,
    /// Place of the packet's number.
    number: usize,
}

impl Template {
    /// Frames of `size` bytes, without the checksum of Ethernet, of a measurement. Shorter ones
    /// than [`SHORTEST`] get that size.
    pub fn new(size: usize, addresses: &Addresses, measurement: u32) -> Self {
        let size = size.clamp(SHORTEST, LONGEST);
        let mut payload = Vec::new();
        let port = if size >= SHORTEST_WITH_INT {
            addresses.port
        } else {
            ORIGINAL_PORT
        };
        let mut egress = None;
        if size >= SHORTEST_WITH_INT {
            let time = Some(Timestamp {
                value: 0,
                width: TimestampWidth::Bits48,
            });
            let source = Hop {
                ingress_port: Some(0),
                egress_port: Some(0),
                ingress_timestamp: time,
                egress_timestamp: time,
                ..Hop::default()
            };
            // One record is far below the limit.
            let written = encode::lab(ORIGINAL_PORT, HOPS, &[source], &mut payload);
            egress = written.ok().map(|()| HEADERS + Shim::BYTES + MdHeader::BYTES + 8);
        }
        payload.extend(MARK);
        payload.extend(measurement.to_be_bytes());
        let number = HEADERS + payload.len();
        payload.resize(size - HEADERS, 0);
        let mut bytes = headers(addresses, port, payload.len() as u16);
        bytes.extend(payload);
        Template { bytes, egress, number }
    }

    /// The packet of a number. `now`: the clock of the source in ns, which the record has until an
    /// egress timestamp is known.
    pub fn packet(&mut self, number: u64, now: u64) -> &[u8] {
        if let Some(at) = self.egress {
            let time = &now.to_be_bytes()[2..];
            self.bytes[at..at + 6].copy_from_slice(time);
            // The source does not know the ingress: it makes the packet.
            self.bytes[at - 8..at - 2].copy_from_slice(time);
        }
        self.bytes[self.number..self.number + 8].copy_from_slice(&number.to_be_bytes());
        &self.bytes
    }
}

fn headers(addresses: &Addresses, port: u16, payload: u16) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADERS);
    frame.extend(addresses.destination_mac);
    frame.extend(addresses.source_mac);
    frame.extend([8, 0]);
    let mut ip = vec![0x45, 0];
    ip.extend((28 + payload).to_be_bytes());
    // No fragments; 64 hops; UDP.
    ip.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip.extend(addresses.source.octets());
    ip.extend(addresses.destination.octets());
    let sum: u32 = ip
        .chunks_exact(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    frame.extend(ip);
    frame.extend(SOURCE_PORT.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend((8 + payload).to_be_bytes());
    frame.extend([0, 0]);
    frame
}

/// The number of a packet of this measurement that arrived as an Ethernet frame, with or without
/// INT. Devices under test may have added records to INT, or removed it.
pub fn number_of_frame(frame: &[u8], port: u16, measurement: u32) -> Option<u64> {
    let view = PacketView::ethernet(frame, &Detection::default());
    let flow = view.flow?;
    let has_int = flow.destination_port == port;
    if !has_int && flow.destination_port != ORIGINAL_PORT {
        return None;
    }
    number_of_payload(view.payload, has_int, measurement)
}

/// The same of a UDP payload.
pub fn number_of_payload(payload: &[u8], has_int: bool, measurement: u32) -> Option<u64> {
    let at = match payload {
        [_, words, ..] if has_int => Shim::BYTES + usize::from(*words) * 4,
        _ => 0,
    };
    let (mark, rest) = payload.get(at..)?.split_first_chunk::<4>()?;
    let (found, rest) = rest.split_first_chunk::<4>()?;
    let number = u64::from_be_bytes(*rest.first_chunk()?);
    (*mark == MARK && u32::from_be_bytes(*found) == measurement).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses() -> Addresses {
        Addresses::default()
    }

    #[test]
    fn a_packet_is_in_the_lab_format_with_its_number() {
        let mut template = Template::new(106, &addresses(), 7);
        let frame = template.packet(5, 0x1234_5678_9abc).to_vec();
        assert_eq!(frame.len(), 106);
        let detection = Detection {
            lab_ports: vec![5000],
            ..Detection::default()
        };
        let view = PacketView::ethernet(&frame, &detection);
        assert_eq!(view.flow.unwrap().destination_port, ORIGINAL_PORT);
        let int = view.int.expect("there is INT").stack;
        let hop = int.newest_first().next().unwrap().hop();
        let egress = hop.egress_timestamp.unwrap();
        assert_eq!(egress.value, 0x1234_5678_9abc);
        assert_eq!(number_of_frame(&frame, 5000, 7), Some(5));
        assert_eq!(number_of_frame(&frame, 5000, 8), None);
        assert_eq!(number_of_frame(&frame, 5001, 7), None);
        assert_eq!(number_of_payload(&frame[HEADERS..], true, 7), Some(5));
    }

    #[test]
    fn short_packets_have_no_int_but_a_number() {
        let mut template = Template::new(SHORTEST, &addresses(), 7);
        let frame = template.packet(u64::MAX, 1).to_vec();
        assert_eq!(frame.len(), SHORTEST);
        assert_eq!(number_of_frame(&frame, 5000, 7), Some(u64::MAX));
    }

    #[test]
    fn packets_with_records_of_other_hops_are_recognised() {
        let mut int = Vec::new();
        encode::lab(9, 7, &[Hop::default(), Hop::default()], &mut int).unwrap();
        int.extend(MARK);
        int.extend([0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0]);
        assert_eq!(number_of_payload(&int, true, 7), Some(256));
    }

    #[test]
    fn the_checksum_of_ipv4_is_right() {
        let frame = Template::new(1514, &addresses(), 7).packet(0, 0).to_vec();
        let sum: u32 = frame[14..34]
            .chunks_exact(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn no_bytes_are_too_few_to_be_looked_at() {
        let frame = Template::new(106, &addresses(), 7).packet(0, 0).to_vec();
        for length in 0..frame.len() {
            let cut = &frame[..length];
            let _ = number_of_frame(cut, 5000, 7);
            assert_eq!(number_of_payload(&cut[..length.min(51)], true, 7), None);
        }
    }
}
