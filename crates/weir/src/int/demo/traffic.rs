//! Hosts that send to each other, and look at what they get.

use super::network::{At, Network, Random};
use super::{HOST, SWITCHES};

/// Flows of each pair of hosts.
const FLOWS: u16 = 2;
/// Mean time between packets of a flow, ns.
const MEAN: u64 = 1_600_000;
/// Bytes of the smallest payload, and how many sizes there are above it.
const SMALLEST: u64 = 64;
const SIZES: u64 = 1136;
/// First bytes of each payload: the length of the packet as it was sent.
const LENGTH: usize = 2;
/// Bytes of Ethernet, IPv4 and UDP headers.
const HEADERS: usize = 14 + 20 + 8;

/// Flows between all hosts.
pub struct Traffic {
    flows: Vec<Flow>,
    random: Random,
}

struct Flow {
    from: u8,
    to: u8,
    port: u16,
    next: u64,
}

/// What hosts got.
#[derive(Default)]
pub struct Delivered {
    /// Packets as they were sent.
    pub whole: u64,
    /// Packets that differ from what was sent, beyond addresses and TTL.
    pub changed: u64,
}

impl Traffic {
    /// Flows of each host to each other one.
    pub fn new() -> Self {
        let mut flows = Vec::new();
        for from in 1..=SWITCHES as u8 {
            for to in (1..=SWITCHES as u8).filter(|to| *to != from) {
                for port in 0..FLOWS {
                    flows.push(Flow {
                        from,
                        to,
                        port: 4000 + port,
                        next: 0,
                    });
                }
            }
        }
        Traffic {
            flows,
            random: Random(0x0020_2611),
        }
    }

    /// Sends what is due between two times; how many packets.
    pub fn send(&mut self, network: &mut Network, from: u64, until: u64) -> u64 {
        let mut sent = 0;
        for flow in &mut self.flows {
            flow.next = flow.next.max(from);
            loop {
                flow.next += self.random.interval(MEAN);
                if flow.next >= until {
                    break;
                }
                let payload = SMALLEST + self.random.below(SIZES);
                let at = At {
                    switch: usize::from(flow.from) - 1,
                    port: HOST,
                };
                network.send(at, flow.next, flow.packet(payload as usize));
                sent += 1;
            }
        }
        sent
    }
}

impl Flow {
    fn packet(&self, payload: usize) -> Vec<u8> {
        let length = (payload + 28) as u16;
        let mut packet = vec![2, 0, 0, 0, self.from, 1, 2, 0, 0, 0, self.from, 0x10, 8, 0];
        let mut ip = vec![0x45, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, self.from, 10, 10, 0, self.to, 10]);
        let sum: u32 = ip
            .chunks_exact(2)
            .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
            .sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !(folded as u16 + (folded >> 16) as u16);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(ip);
        packet.extend(self.port.to_be_bytes());
        packet.extend(5001_u16.to_be_bytes());
        packet.extend((length - 20).to_be_bytes());
        // No checksum over the payload.
        packet.extend([0, 0]);
        packet.extend((packet.len() as u16 + payload as u16).to_be_bytes());
        packet.extend((LENGTH..payload).map(|at| at as u8));
        packet
    }
}

impl Delivered {
    /// Looks at a packet that a host got.
    pub fn count(&mut self, packet: &[u8]) {
        let is_whole = || {
            let payload = packet.get(HEADERS..)?;
            let (length, rest) = payload.split_first_chunk::<LENGTH>()?;
            let is_length = usize::from(u16::from_be_bytes(*length)) == packet.len();
            let is_pattern = rest.iter().zip(LENGTH..).all(|(byte, at)| *byte == at as u8);
            // The type of service is 0: no mark of INT is left.
            Some(is_length && is_pattern && packet.get(15) == Some(&0))
        };
        match is_whole() {
            Some(true) => self.whole += 1,
            Some(false) | None => self.changed += 1,
        }
    }
}
