//! A transit node of In-band Network Telemetry.

use super::ipv4::{checksum, inside, own_mac, prefixes};
use super::{Wanted, Workload, port};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use weir_switch::Switch;

/// `int_md.p4` between two other nodes: it adds its seven words to those of the node before it.
pub struct Transit {
    routes: Vec<(u32, u32, u64)>,
    packets: Vec<Packet>,
}

/// Bytes of Ethernet, IPv4, UDP, the shim, the INT header and one node's metadata.
const HEADERS: usize = 14 + 20 + 8 + 4 + 12 + 28;

impl Transit {
    /// As many routes as entries are wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(7);
        let prefixes = prefixes(wanted.entries, &mut random);
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let to = inside(prefixes[random.below(prefixes.len())], &mut random);
                (random.next() as u32, to)
            })
            .collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let (from, to) = flows[flow];
            let to = if misses { to | 0xf000_0000 } else { to };
            Packet::new(port(random.next()) as u32, packet([from, to], wanted.size))
        });
        let routes = prefixes
            .iter()
            .map(|(address, length)| (*address, *length, port(random.next())));
        Transit {
            routes: routes.collect(),
            packets,
        }
    }
}

/// UDP with the metadata of one node: node, ports, both timestamps.
fn packet(addresses: [u32; 2], size: usize) -> Vec<u8> {
    let size = size.max(HEADERS);
    let mut bytes = super::ipv4::udp([own_mac(1), own_mac(2)], addresses, [4000, 5001], size);
    // DSCP 0x17 says that there is INT.
    bytes[15] = 0x17 << 2;
    bytes[24..26].fill(0);
    let sum = checksum(&bytes[14..34]);
    bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    bytes[42..46].copy_from_slice(&[0x10, 0x0a, 0, 0]);
    bytes[46..58].copy_from_slice(&[0x20, 0, 7, 5, 0xdc, 0, 0, 0, 0, 0, 0, 0]);
    for (i, byte) in bytes[58..HEADERS].iter_mut().enumerate() {
        *byte = i as u8;
    }
    // The pseudo header and everything from the UDP header on; one that is 0 would be none at all.
    let mut all = bytes[26..].to_vec();
    all.extend_from_slice(&[0, 17, bytes[38], bytes[39]]);
    if all.len() % 2 == 1 {
        all.insert(all.len() - 4, 0);
    }
    let sum = checksum(&all).max(1);
    bytes[40..42].copy_from_slice(&sum.to_be_bytes());
    bytes
}

impl Workload for Transit {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        Filler::new(switch, "node", "set_node")?.by_default(&[0x51])?;
        let mut routes = Filler::new(switch, "ipv4_lpm", "route")?;
        for (address, length, port) in &self.routes {
            let to = 0x0600_0000_0000 | port << 8;
            routes.add(
                &[Match::Prefix((*address).into(), *length)],
                &[own_mac(*port), to, *port],
            )?;
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_checksums_are_right() {
        let bytes = packet([0x0a00_0001, 0x0a00_0002], 101);
        assert_eq!((bytes.len(), checksum(&bytes[14..34])), (101, 0));
        let mut all = bytes[26..].to_vec();
        all.extend_from_slice(&[0, 0, 17, bytes[38], bytes[39]]);
        assert_eq!(checksum(&all), 0);
    }
}
