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
/// Bytes of headers.
const ETHERNET: usize = 14;
const IPV4: usize = 20;

/// Flows between all hosts.
pub struct Traffic {
    flows: Vec<Flow>,
    random: Random,
}

struct Flow {
    from: u8,
    to: u8,
    port: u16,
    protocol: Protocol,
    next: u64,
}

#[derive(Debug, Clone, Copy)]
enum Protocol {
    Tcp,
    Udp,
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
                        protocol: if port % 2 == 0 { Protocol::Tcp } else { Protocol::Udp },
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
    /// A packet with a payload of this many bytes, and right checksums.
    fn packet(&self, payload: usize) -> Vec<u8> {
        let transport = self.protocol.header_bytes();
        let length = (IPV4 + transport + payload) as u16;
        let mut packet = vec![2, 0, 0, 0, self.from, 1, 2, 0, 0, 0, self.from, 0x10, 8, 0];
        let mut ip = vec![0x45, 0];
        ip.extend(length.to_be_bytes());
        ip.extend([0, 1, 0x40, 0, 64, self.protocol.number(), 0, 0]);
        ip.extend([10, 0, self.from, 10, 10, 0, self.to, 10]);
        let checksum = !sum(&ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let mut segment = self.port.to_be_bytes().to_vec();
        segment.extend(5001_u16.to_be_bytes());
        match self.protocol {
            Protocol::Udp => segment.extend((length - IPV4 as u16).to_be_bytes()),
            // Numbers of data and acknowledgement, length of the header, ACK, window.
            Protocol::Tcp => segment.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff]),
        }
        let place = segment.len();
        segment.extend([0, 0]);
        segment.resize(transport, 0);
        segment.extend(((ETHERNET + IPV4 + transport + payload) as u16).to_be_bytes());
        segment.extend((LENGTH..payload).map(|at| at as u8));
        let checksum = !transport_sum(&ip, &segment);
        segment[place..place + 2].copy_from_slice(&checksum.to_be_bytes());
        packet.extend(ip);
        packet.extend(segment);
        packet
    }
}

impl Protocol {
    fn number(self) -> u8 {
        match self {
            Protocol::Tcp => 6,
            Protocol::Udp => 17,
        }
    }

    fn header_bytes(self) -> usize {
        match self {
            Protocol::Tcp => 20,
            Protocol::Udp => 8,
        }
    }
}

/// The sum of the Internet checksum (RFC 1071).
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        u32::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// That of a segment with its pseudo header, by its IPv4 header.
fn transport_sum(ip: &[u8], segment: &[u8]) -> u16 {
    let mut all = ip.get(12..20).unwrap_or_default().to_vec();
    all.extend([0, ip.get(9).copied().unwrap_or(0)]);
    all.extend((segment.len() as u16).to_be_bytes());
    all.extend(segment);
    sum(&all)
}

impl Delivered {
    /// Looks at a packet that a host got.
    pub fn count(&mut self, packet: &[u8]) {
        match is_whole(packet) {
            Some(true) => self.whole += 1,
            Some(false) | None => self.changed += 1,
        }
    }
}

/// Whether a packet is as it was sent, but for addresses of Ethernet, TTL and its checksum.
fn is_whole(packet: &[u8]) -> Option<bool> {
    let (ip, segment) = packet.get(ETHERNET..)?.split_at_checked(IPV4)?;
    let protocol = [Protocol::Tcp, Protocol::Udp]
        .into_iter()
        .find(|p| p.number() == ip[9])?;
    let payload = segment.get(protocol.header_bytes()..)?;
    let (length, rest) = payload.split_first_chunk::<LENGTH>()?;
    let is_length = usize::from(u16::from_be_bytes(*length)) == packet.len();
    let is_pattern = rest.iter().zip(LENGTH..).all(|(byte, at)| *byte == at as u8);
    let is_summed = sum(ip) == 0xffff && transport_sum(ip, segment) == 0xffff;
    // The type of service is 0: no mark of INT is left.
    Some(is_length && is_pattern && is_summed && ip[1] == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_whole_until_a_bit_changes() {
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let flow = Flow {
                from: 1,
                to: 2,
                port: 4000,
                protocol,
                next: 0,
            };
            for payload in [2, 3, 64, 1399] {
                let packet = flow.packet(payload);
                assert_eq!(is_whole(&packet), Some(true), "{protocol:?} {payload}");
                for at in ETHERNET..packet.len() {
                    let mut changed = packet.clone();
                    changed[at] ^= 0x10;
                    assert_ne!(is_whole(&changed), Some(true), "{protocol:?} {payload}: byte {at}");
                }
                assert_ne!(is_whole(&packet[..packet.len() - 1]), Some(true));
            }
        }
    }
}
