//! Stations that are known and talk to each other.

use super::{ByHand, Wanted, Workload, port};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use std::collections::HashSet;
use weir_switch::Switch;

/// The stations and what they send.
pub struct L2 {
    stations: Vec<(u64, u16)>,
    packets: Vec<Packet>,
    drop_unknown: bool,
}

impl L2 {
    /// As many stations as entries are wanted; each packet is from one to another at another port.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(48);
        let mut seen = HashSet::new();
        let mut stations = Vec::with_capacity(wanted.entries);
        while stations.len() < wanted.entries {
            // Locally administered, not a group.
            let mac = 0x0200_0000_0000 | random.next() >> 24;
            if seen.insert(mac) {
                stations.push((mac, port(stations.len() as u64) as u16));
            }
        }
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let from = stations[random.below(stations.len())];
                let to = loop {
                    let to = stations[random.below(stations.len())];
                    if to.1 != from.1 {
                        break to;
                    }
                };
                (from, to.0)
            })
            .collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let ((from, port), to) = flows[flow];
            // No station has such an address.
            let to = if misses {
                0x0600_0000_0000 | random.next() >> 24
            } else {
                to
            };
            let mut bytes = Vec::with_capacity(wanted.size);
            bytes.extend_from_slice(&to.to_be_bytes()[2..]);
            bytes.extend_from_slice(&from.to_be_bytes()[2..]);
            bytes.extend_from_slice(&[0x88, 0xb5]);
            bytes.resize(wanted.size, 0);
            Packet::new(port.into(), bytes)
        });
        L2 {
            packets,
            stations,
            drop_unknown: wanted.mix.misses > 0,
        }
    }
}

impl Workload for L2 {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let mut sources = Filler::new(switch, "source_macs", "known")?;
        for (mac, port) in &self.stations {
            sources.add(&[Match::Is(*mac)], &[u64::from(*port)])?;
        }
        let mut destinations = Filler::new(switch, "destination_macs", "forward")?;
        for (mac, port) in &self.stations {
            destinations.add(&[Match::Is(*mac)], &[u64::from(*port)])?;
        }
        if self.drop_unknown {
            Filler::new(switch, "destination_macs", "drop")?.by_default(&[])?;
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }

    fn by_hand(&self) -> Option<ByHand> {
        let switch = weir_baseline::L2Switch::new(&self.stations);
        let switch = if self.drop_unknown {
            switch.dropping_unknown()
        } else {
            switch
        };
        Some(ByHand::L2(Box::new(switch)))
    }
}
