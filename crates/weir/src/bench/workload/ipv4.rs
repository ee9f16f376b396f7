//! IPv4 packets, routes as the Internet has them, and the router that has them.

use super::{ByHand, Wanted, Workload, port};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use std::collections::HashSet;
use weir_baseline::{Hop, Neighbour, Route};
use weir_switch::Switch;

/// Of 10,000 prefixes, so many have this length: about what routers without a default route see.
const LENGTHS: &[(u32, usize)] = &[
    (24, 5980),
    (22, 1190),
    (23, 1040),
    (21, 540),
    (20, 470),
    (19, 270),
    (18, 150),
    (16, 140),
    (17, 90),
    (15, 20),
    (14, 15),
    (13, 8),
    (12, 4),
    (11, 2),
    (10, 1),
    (25, 20),
    (26, 20),
    (27, 10),
    (28, 10),
    (29, 10),
    (32, 10),
];

/// Different prefixes of which most are /24, in the order in which they were drawn.
pub fn prefixes(count: usize, random: &mut Random) -> Vec<(u32, u32)> {
    let mut seen = HashSet::new();
    let mut prefixes = Vec::with_capacity(count);
    while prefixes.len() < count {
        let mut at = random.below(10_000);
        let length = LENGTHS.iter().find(|(_, share)| {
            let found = at < *share;
            at = at.saturating_sub(*share);
            found
        });
        let length = length.map_or(24, |l| l.0);
        // 1.0.0.0 to 223.255.255.255
        let address = (1 << 24) + random.below(223 << 24) as u32;
        let prefix = (address & u32::MAX << (32 - length), length);
        if seen.insert(prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

/// Some address of a prefix.
pub fn inside(prefix: (u32, u32), random: &mut Random) -> u32 {
    let free = u32::MAX.checked_shr(prefix.1).unwrap_or(0);
    prefix.0 | random.next() as u32 & free
}

/// An Ethernet frame with a UDP packet in it, at least 42 bytes.
pub fn udp(macs: [u64; 2], addresses: [u32; 2], ports: [u16; 2], size: usize) -> Vec<u8> {
    let size = size.max(42);
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(&macs[0].to_be_bytes()[2..]);
    bytes.extend_from_slice(&macs[1].to_be_bytes()[2..]);
    bytes.extend_from_slice(&[0x08, 0x00, 0x45, 0x00]);
    bytes.extend_from_slice(&(size as u16 - 14).to_be_bytes());
    bytes.extend_from_slice(&[0, 1, 0x40, 0x00, 64, 17, 0, 0]);
    bytes.extend_from_slice(&addresses[0].to_be_bytes());
    bytes.extend_from_slice(&addresses[1].to_be_bytes());
    let sum = checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes.extend_from_slice(&ports[0].to_be_bytes());
    bytes.extend_from_slice(&ports[1].to_be_bytes());
    bytes.extend_from_slice(&(size as u16 - 34).to_be_bytes());
    bytes.resize(size, 0);
    bytes
}

/// The Internet checksum of a header with an even number of bytes.
pub fn checksum(header: &[u8]) -> u16 {
    let words = header
        .chunks_exact(2)
        .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !sum as u16
}

/// The router's own MAC address at a port.
pub fn own_mac(port: u64) -> u64 {
    0x0200_0000_0001 | port << 8
}

/// Neighbours at each port.
const NEIGHBOURS: u32 = 4;

/// `ipv4_router.p4`
pub struct Router {
    routes: Vec<Route>,
    neighbours: Vec<Neighbour>,
    packets: Vec<Packet>,
}

impl Router {
    /// As many routes as entries are wanted; each packet is to an address that one of them covers.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(24);
        let neighbours: Vec<Neighbour> = (0..super::PORTS)
            .flat_map(|p| (0..NEIGHBOURS).map(move |n| (port(p), n)))
            .map(|(port, n)| Neighbour {
                port: port as u16,
                address: 0x0a00_0002 + (port << 8) as u32 + n,
                mac: 0x0600_0000_0000 | port << 8 | u64::from(n),
            })
            .collect();
        let prefixes = prefixes(wanted.entries, &mut random);
        let routes = prefixes.iter().map(|(address, length)| {
            let neighbour = neighbours[random.below(neighbours.len())];
            Route {
                address: *address,
                length: *length,
                hop: Hop::Via {
                    next_hop: neighbour.address,
                    port: neighbour.port,
                },
            }
        });
        let routes: Vec<Route> = routes.collect();
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let to = inside(prefixes[random.below(prefixes.len())], &mut random);
                (port(random.next()), random.next() as u32, to, random.next() as u16)
            })
            .collect();
        let packets = wanted.packets(&mut random, |_, flow, misses| {
            let (port, from, to, from_port) = flows[flow];
            // No prefix begins with four ones.
            let to = if misses { to | 0xf000_0000 } else { to };
            let macs = [own_mac(port), 0x0a00_0000_0000 | u64::from(from)];
            Packet::new(port as u32, udp(macs, [from, to], [from_port, 53], wanted.size))
        });
        Router {
            packets,
            routes,
            neighbours,
        }
    }
}

impl Workload for Router {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let ports: Vec<u64> = (0..super::PORTS).map(port).collect();
        let mut own = Filler::new(switch, "own_macs", "NoAction")?;
        for port in &ports {
            own.add(&[Match::Is(*port), Match::Is(own_mac(*port))], &[])?;
        }
        let mut macs = Filler::new(switch, "port_macs", "set_src_mac")?;
        for port in &ports {
            macs.add(&[Match::Is(*port)], &[own_mac(*port)])?;
        }
        let mut neighbours = Filler::new(switch, "neighbours", "set_dst_mac")?;
        for n in &self.neighbours {
            neighbours.add(&[Match::Is(n.port.into()), Match::Is(n.address.into())], &[n.mac])?;
        }
        let mut routes = Filler::new(switch, "ipv4_lpm", "route")?;
        for r in &self.routes {
            if let Hop::Via { next_hop, port } = r.hop {
                let prefix = Match::Prefix(r.address.into(), r.length);
                routes.add(&[prefix], &[next_hop.into(), port.into()])?;
            }
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }

    fn by_hand(&self) -> Option<ByHand> {
        let own: Vec<u64> = (0..=super::PORTS)
            .map(|p| if p == 0 { 0 } else { own_mac(p) })
            .collect();
        Some(ByHand::Router(Box::new(weir_baseline::Router::new(
            &own,
            &self.routes,
            &self.neighbours,
        ))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_prefixes_are_24_and_all_differ() {
        let prefixes = prefixes(10_000, &mut Random::new(1));
        assert_eq!(prefixes.iter().collect::<HashSet<_>>().len(), 10_000);
        let most = prefixes.iter().filter(|p| p.1 == 24).count();
        assert!((5500..6500).contains(&most), "{most}");
        assert_eq!(LENGTHS.iter().map(|l| l.1).sum::<usize>(), 10_000);
    }

    #[test]
    fn the_header_sums_to_nothing() {
        let packet = udp([1, 2], [0x0a00_0001, 0x0b00_0001], [1, 2], 64);
        assert_eq!((packet.len(), checksum(&packet[14..34])), (64, 0));
    }
}
