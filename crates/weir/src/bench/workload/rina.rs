//! A router for EFCP and IPv4.

use super::ipv4::{checksum, inside, own_mac, prefixes, udp};
use super::{PORTS, Wanted, Workload, port};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use weir_switch::Switch;

/// `rina_router.p4`: both tables are filled; packets are of one kind.
pub struct Rina {
    /// Addresses of the DIF with ports.
    addresses: Vec<(u16, u64)>,
    routes: Vec<(u32, u32, u64)>,
    packets: Vec<Packet>,
}

/// The router's own address in the DIF.
const OWN: u16 = u16::MAX;

impl Rina {
    /// As many addresses and routes as entries are wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(16);
        // Those that are left out are never known.
        let mut all: Vec<u16> = (1..OWN).collect();
        random.shuffle(&mut all);
        let (known, unknown) = all.split_at(wanted.entries);
        let prefixes = prefixes(wanted.entries, &mut random);
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let at = random.below(wanted.entries);
                (random.next(), known[at], inside(prefixes[at], &mut random))
            })
            .collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let (from, address, to) = flows[flow];
            let port = port(from);
            let macs = [own_mac(port), 0x0a00_0000_0000 | from >> 24];
            let bytes = if wanted.mix.efcp {
                let address = if misses {
                    unknown[random.below(unknown.len())]
                } else {
                    address
                };
                efcp(macs, [address, from as u16], wanted.size)
            } else {
                let to = if misses { to | 0xf000_0000 } else { to };
                udp(macs, [from as u32, to], [4000, 53], wanted.size)
            };
            Packet::new(port as u32, bytes)
        });
        Rina {
            addresses: known.iter().map(|a| (*a, port(random.next()))).collect(),
            routes: prefixes.iter().map(|(a, l)| (*a, *l, port(random.next()))).collect(),
            packets,
        }
    }
}

/// A data transfer PDU from one address to another.
fn efcp(macs: [u64; 2], addresses: [u16; 2], size: usize) -> Vec<u8> {
    let size = size.max(34);
    let mut bytes = Vec::with_capacity(size);
    bytes.extend_from_slice(&macs[0].to_be_bytes()[2..]);
    bytes.extend_from_slice(&macs[1].to_be_bytes()[2..]);
    bytes.extend_from_slice(&[0xd1, 0xf0, 1]);
    bytes.extend_from_slice(&addresses[0].to_be_bytes());
    bytes.extend_from_slice(&addresses[1].to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 7, 0, 9, 0x80, 0]);
    bytes.extend_from_slice(&(size as u16 - 14).to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 1]);
    let sum = checksum(&bytes[14..32]);
    bytes.extend_from_slice(&sum.to_be_bytes());
    bytes.resize(size, 0);
    bytes
}

impl Workload for Rina {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let mut own = Filler::new(switch, "own_addresses", "NoAction")?;
        own.add(&[Match::Is(OWN.into())], &[])?;
        let mut macs = Filler::new(switch, "port_macs", "set_src_mac")?;
        for port in (0..PORTS).map(port) {
            macs.add(&[Match::Is(port)], &[own_mac(port)])?;
        }
        let neighbour = |port: u64| 0x0600_0000_0000 | port << 8;
        let mut efcp = Filler::new(switch, "efcp_exact", "efcp_forward")?;
        for (address, port) in &self.addresses {
            efcp.add(&[Match::Is((*address).into())], &[0, neighbour(*port), *port])?;
        }
        let mut routes = Filler::new(switch, "ipv4_lpm", "ipv4_forward")?;
        for (address, length, port) in &self.routes {
            routes.add(
                &[Match::Prefix((*address).into(), *length)],
                &[0, neighbour(*port), *port],
            )?;
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }
}
