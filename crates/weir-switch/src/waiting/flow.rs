//! The flow that a packet belongs to, for the order of packets that wait.

use rustc_hash::FxHasher;
use std::hash::Hasher;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: [u16; 2] = [0x8100, 0x88a8];

/// A number for a packet's flow: addresses, protocol and ports of IPv4 and IPv6, after at most two
/// VLAN tags; the Ethernet addresses and type of everything else. Fragments have no ports.
pub(crate) fn flow_of(packet: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    let (mut at, mut kind) = (14, ether_type(packet, 12));
    for _ in 0..2 {
        if kind.is_some_and(|kind| VLAN.contains(&kind)) {
            kind = ether_type(packet, at + 2);
            at += 4;
        }
    }
    match kind.and_then(|kind| ip_flow(packet, at, kind)) {
        Some((addresses, protocol, ports)) => {
            hasher.write(addresses);
            hasher.write_u8(protocol);
            hasher.write(ports);
        }
        None => hasher.write(packet.get(..14).unwrap_or(packet)),
    }
    hasher.finish()
}

fn ether_type(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]))
}

/// Addresses, protocol and ports of an IP packet that begins at a byte.
fn ip_flow(packet: &[u8], at: usize, kind: u16) -> Option<(&[u8], u8, &[u8])> {
    let header = packet.get(at..)?;
    let (addresses, protocol, behind, is_fragment) = match kind {
        IPV4 => {
            let words = usize::from(header.first()? & 15);
            let fragment = u16::from_be_bytes([*header.get(6)?, *header.get(7)?]) & 0x3fff;
            (header.get(12..20)?, *header.get(9)?, words * 4, fragment != 0)
        }
        IPV6 => (header.get(8..40)?, *header.get(6)?, 40, false),
        _ => return None,
    };
    // TCP, UDP and SCTP begin with their ports.
    let has_ports = [6, 17, 132].contains(&protocol) && !is_fragment;
    let ports = header.get(behind..behind + 4).filter(|_| has_ports);
    Some((addresses, protocol, ports.unwrap_or(&[])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ipv4(protocol: u8, ports: [u8; 4], fragment: u8) -> Vec<u8> {
        let mut packet = vec![0; 12];
        packet.extend([8, 0, 0x45, 0, 0, 0, 0, 0, 0, fragment, 64, protocol, 0, 0]);
        packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend(ports);
        packet
    }

    #[test]
    fn a_flow_is_addresses_protocol_and_ports() {
        let flow = |protocol, ports, fragment| flow_of(&ipv4(protocol, ports, fragment));
        assert_eq!(flow(6, [0, 1, 0, 2], 0), flow(6, [0, 1, 0, 2], 0));
        assert_ne!(flow(6, [0, 1, 0, 2], 0), flow(6, [0, 1, 0, 3], 0));
        assert_ne!(flow(6, [0, 1, 0, 2], 0), flow(17, [0, 1, 0, 2], 0));
        // In fragments, and in ICMP, data is in the place of ports.
        assert_eq!(flow(6, [0, 1, 0, 2], 9), flow(6, [0, 1, 0, 3], 9));
        assert_eq!(flow(1, [0, 1, 0, 2], 0), flow(1, [0, 1, 0, 3], 0));
    }

    #[test]
    fn tags_are_skipped_and_short_packets_have_a_flow() {
        let plain = ipv4(6, [0, 1, 0, 2], 0);
        let mut tagged = plain[..12].to_vec();
        tagged.extend([0x81, 0, 0, 7]);
        tagged.extend(&plain[12..]);
        assert_eq!(flow_of(&tagged), flow_of(&plain));
        for length in 0..plain.len() {
            flow_of(&plain[..length]);
        }
    }
}
