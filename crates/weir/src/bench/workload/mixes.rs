//! Decisions that a processor cannot foresee.

use super::{Wanted, Workload, port};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use std::collections::HashSet;
use weir_switch::Switch;

/// `mixes.p4`
pub struct Mixes {
    /// Destinations with the number of their action.
    destinations: Vec<(u64, usize)>,
    /// Odd ones.
    sources: Vec<u64>,
    packets: Vec<Packet>,
}

impl Mixes {
    /// As many destinations and sources as entries are wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(4);
        let mut seen = HashSet::new();
        let mut macs = |first: u64, random: &mut Random| -> Vec<u64> {
            let mut macs = Vec::with_capacity(wanted.entries);
            while macs.len() < wanted.entries {
                let mac = first | random.next() >> 24 | 1;
                if seen.insert(mac) {
                    macs.push(mac);
                }
            }
            macs
        };
        let sources = macs(0x0400_0000_0000, &mut random);
        let destinations: Vec<(u64, usize)> = macs(0x0200_0000_0000, &mut random)
            .into_iter()
            .map(|mac| (mac, if wanted.mix.actions { random.below(4) } else { 0 }))
            .collect();
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let source = sources[random.below(sources.len())];
                let odd = wanted.mix.extra && random.below(2) == 1;
                (
                    destinations[random.below(destinations.len())].0,
                    source & !u64::from(!odd),
                )
            })
            .collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let (to, from) = flows[flow];
            // No destination is even.
            let to = if misses { to & !1 } else { to };
            let mut bytes = Vec::with_capacity(wanted.size);
            bytes.extend_from_slice(&to.to_be_bytes()[2..]);
            bytes.extend_from_slice(&from.to_be_bytes()[2..]);
            bytes.extend_from_slice(&[0x88, 0xb5]);
            bytes.resize(wanted.size, 0);
            Packet::new(port(random.next()) as u32, bytes)
        });
        Mixes {
            destinations,
            sources,
            packets,
        }
    }
}

impl Workload for Mixes {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let mut sources = Filler::new(switch, "odd_sources", "set_source")?;
        for mac in &self.sources {
            sources.add(&[Match::Is(*mac)], &[mac ^ 0x0100])?;
        }
        for (number, action) in ["forward", "forward_to", "mark", "swap"].into_iter().enumerate() {
            let mut destinations = Filler::new(switch, "destinations", action)?;
            for (mac, _) in self.destinations.iter().filter(|d| d.1 == number) {
                let port = port(*mac >> 8);
                let data = [port, if number == 1 { mac ^ 0x0100 } else { 0x88b6 }];
                let count = if number % 3 == 0 { 1 } else { 2 };
                destinations.add(&[Match::Is(*mac)], &data[..count])?;
            }
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }
}
