//! Packets: from packet tests, and built around a payload.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Bytes of hexadecimal text; white space is ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    let digit = |d: u8| (d as char).to_digit(16).expect("a hexadecimal digit") as u8;
    digits
        .chunks(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

/// A frame of a packet test, with the port it comes in at; `None` for one that is expected.
pub struct Frame {
    pub port: Option<u32>,
    pub bytes: Vec<u8>,
}

/// The frames of the packet tests in a folder: those that are sent, and those expected whose bytes
/// are all given.
pub fn of_tests(folder: &Path) -> Vec<Frame> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "stf"));
    paths.sort();
    let texts = paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| text.lines().filter_map(frame).collect::<Vec<_>>())
        .collect()
}

fn frame(line: &str) -> Option<Frame> {
    let line = line.split('#').next()?.trim();
    let (verb, rest) = line.split_once(' ')?;
    let (port, bytes) = rest.split_once(' ')?;
    let port = match verb {
        "packet" => Some(port.parse().ok()?),
        "expect" => None,
        _ => return None,
    };
    let bytes = bytes.trim_end_matches('$');
    let is_given = bytes.bytes().all(|b| b.is_ascii_hexdigit() || b == b' ');
    is_given.then(|| Frame {
        port,
        bytes: hex(bytes),
    })
}

/// An Ethernet frame.
pub fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    [&addresses[..], &ethertype.to_be_bytes(), payload].concat()
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
pub fn ipv6(dscp: u8, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60 | dscp >> 2, dscp << 6, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    for last in [1, 2] {
        packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend(payload);
    packet
}

/// A UDP datagram from port 4000.
pub fn udp(destination: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + payload.len() as u16;
    let words = [4000, destination, length, 0];
    let header: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    [&header[..], payload].concat()
}

/// A TCP segment from port 40000 with 4 bytes of options.
pub fn tcp(destination: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = 40_000_u16.to_be_bytes().to_vec();
    packet.extend(destination.to_be_bytes());
    packet.extend([0, 0, 0, 1, 0, 0, 0, 2, 0x60, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 1, 1]);
    packet.extend(payload);
    packet
}

/// A frame with a UDP datagram over IPv4.
pub fn datagram(destination: u16, payload: &[u8]) -> Vec<u8> {
    ethernet(0x0800, &ipv4(0, 17, &udp(destination, payload)))
}
