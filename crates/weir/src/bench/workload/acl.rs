//! Firewalls: pairs of addresses, and rules.

use super::ipv4::{own_mac, udp};
use super::{PORTS, Wanted, Workload};
use crate::bench::fill::{Filler, Match};
use crate::bench::pool::Packet;
use crate::bench::random::Random;
use anyhow::Result;
use std::collections::HashSet;
use weir_switch::Switch;

/// `acl_firewall.p4`: every pair is allowed.
pub struct Exact {
    pairs: Vec<(u32, u32)>,
    packets: Vec<Packet>,
}

impl Exact {
    /// As many pairs as entries are wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(64);
        let mut seen = HashSet::new();
        let mut pairs = Vec::with_capacity(wanted.entries);
        while pairs.len() < wanted.entries {
            let pair = (random.next() as u32 & 0x7fff_ffff, random.next() as u32);
            if seen.insert(pair) {
                pairs.push(pair);
            }
        }
        let flows: Vec<_> = (0..wanted.flows).map(|_| pairs[random.below(pairs.len())]).collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let (from, to) = flows[flow];
            // No pair has such a source.
            let from = if misses { from | 0x8000_0000 } else { from };
            let port = random.next() % PORTS;
            Packet::new(
                port as u32,
                udp([own_mac(1), own_mac(2)], [from, to], [4000, 53], wanted.size),
            )
        });
        Exact { pairs, packets }
    }
}

impl Workload for Exact {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let mut pairs = Filler::new(switch, "address_pairs", "allow")?;
        for (from, to) in &self.pairs {
            pairs.add(&[Match::Is((*from).into()), Match::Is((*to).into())], &[])?;
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }
}

/// Combinations of what rules look at.
const MASKS: u64 = 20;

/// A rule: bits of the source and of the destination that count, protocol and port where they do.
#[derive(Clone, Copy)]
struct Rule {
    from: (u32, u32),
    to: (u32, u32),
    udp: bool,
    port: Option<u16>,
}

/// `acl_firewall_ternary.p4`: every rule allows; rules look at their keys in 20 different ways.
pub struct Ternary {
    rules: Vec<Rule>,
    packets: Vec<Packet>,
}

impl Ternary {
    /// As many rules as entries are wanted.
    pub fn new(wanted: &Wanted) -> Self {
        let mut random = Random::new(20);
        let rules: Vec<Rule> = (0..wanted.entries as u64)
            .map(|i| {
                let mask = i % MASKS;
                let from = [0, 8, 16, 24, 32][(mask % 5) as usize];
                let to = [16, 24, 28, 32][(mask / 5) as usize];
                Rule {
                    from: (random.next() as u32 & 0x7fff_ffff, from),
                    to: (random.next() as u32, to),
                    udp: mask.is_multiple_of(2),
                    port: mask.is_multiple_of(3).then(|| random.next() as u16),
                }
            })
            .collect();
        let flows: Vec<_> = (0..wanted.flows)
            .map(|_| {
                let rule = rules[random.below(rules.len())];
                let free = |bits: u32| u32::MAX.checked_shr(bits).unwrap_or(0);
                let from = (rule.from.0 & !free(rule.from.1)) | random.next() as u32 & free(rule.from.1);
                let to = (rule.to.0 & !free(rule.to.1)) | random.next() as u32 & free(rule.to.1);
                (from, to, rule.port.unwrap_or(random.next() as u16))
            })
            .collect();
        let packets = wanted.packets(&mut random, |random, flow, misses| {
            let (from, to, to_port) = flows[flow];
            // Rules that look at the source have none of these; some look at the destination only.
            let (from, to) = if misses {
                (from | 0x8000_0000, to ^ 0x5555_5555)
            } else {
                (from, to)
            };
            let port = random.next() % PORTS;
            let ports = [random.next() as u16, to_port];
            Packet::new(
                port as u32,
                udp([own_mac(1), own_mac(2)], [from, to], ports, wanted.size),
            )
        });
        Ternary { rules, packets }
    }
}

impl Workload for Ternary {
    fn fill(&self, switch: &mut Switch) -> Result<()> {
        let mut rules = Filler::new(switch, "rules", "allow")?;
        for (i, rule) in self.rules.iter().enumerate() {
            let keys = [
                Match::Any,
                Match::Prefix(rule.from.0.into(), rule.from.1),
                Match::Prefix(rule.to.0.into(), rule.to.1),
                if rule.udp { Match::Is(17) } else { Match::Any },
                Match::Between(0, 0xffff),
                rule.port.map_or(Match::Between(0, 0xffff), |p| Match::Is(p.into())),
            ];
            rules.add_rule(1 + i as u32, &keys, &[])?;
        }
        Ok(())
    }

    fn into_packets(self: Box<Self>) -> Vec<Packet> {
        self.packets
    }
}
