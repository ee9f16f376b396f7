//! Helpers of the tests: bytes from hexadecimal text, hops, packets around INT.
#![allow(dead_code, reason = "each test binary uses some of them")]

use weir_int::packet::{Detection, DscpMatch};
use weir_int::{Hop, Timestamp, TimestampWidth, Uint};

/// Bytes of hexadecimal text; white space is ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digit = |d: u8| (d as char).to_digit(16).expect("a hexadecimal digit") as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// INT behind DSCP 0x17, which `int_md` uses.
pub fn by_dscp() -> Detection {
    Detection {
        dscp: Some(DscpMatch::exactly(Uint::truncate(0x17))),
        ..Detection::default()
    }
}

/// INT behind UDP port 5001.
pub fn by_port() -> Detection {
    Detection {
        udp_ports: vec![5001],
        ..Detection::default()
    }
}

/// The lab format behind UDP port 5000, which `int_lab` uses.
pub fn by_lab_port() -> Detection {
    Detection {
        lab_ports: vec![5000],
        ..Detection::default()
    }
}

pub fn time32(value: u64) -> Option<Timestamp> {
    let width = TimestampWidth::Bits32;
    Some(Timestamp { value, width })
}

pub fn time48(value: u64) -> Option<Timestamp> {
    let width = TimestampWidth::Bits48;
    Some(Timestamp { value, width })
}

pub fn time64(value: u64) -> Option<Timestamp> {
    let width = TimestampWidth::Bits64;
    Some(Timestamp { value, width })
}

pub fn node(id: u32) -> Hop {
    Hop {
        node_id: Some(id),
        ..Hop::default()
    }
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
pub fn ipv4(dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let [high, low] = (20 + payload.len() as u16).to_be_bytes();
    let mut packet = vec![0x45, dscp << 2, high, low, 0, 1, 0x40, 0, 64, protocol, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

/// An IPv6 packet from 2001:db8::1 to 2001:db8::2.
pub fn ipv6(dscp: u8, next_header: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | dscp >> 2, dscp << 6, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// A UDP datagram.
pub fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = source.to_be_bytes().to_vec();
    packet.extend(destination.to_be_bytes());
    packet.extend((8 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    packet
}

/// A TCP segment with 4 bytes of options.
pub fn tcp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = source.to_be_bytes().to_vec();
    packet.extend(destination.to_be_bytes());
    packet.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 1, 1]);
    packet.extend(payload);
    packet
}
