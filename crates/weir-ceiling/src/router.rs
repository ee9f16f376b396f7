//! `ipv4_router.p4` by hand.

use crate::count::PortCounts;
use crate::exact::{Exact, MISS};
use crate::lpm::{Cell, Lpm};
use crate::simd::{Finder, KEY, Portable, has_avx512, mac_in_memory, word};
use crate::{Count, DROP, Lookups, PORTS, VECTOR};

/// The control plane's port.
const CPU_PORT: u32 = 64;
/// Where the IPv4 header begins.
const IPV4: usize = 14;
/// EtherType IPv4, version 4 and a header of five words, as bytes 12 to 14 hold them.
const PLAIN_IPV4: u32 = 0x45_0008;
/// No MAC address.
const NO_MAC: u64 = u64::MAX;

/// Why a packet was refused: positions of [`Router::refused`].
mod refusal {
    pub const NOT_PARSED: usize = 0;
    pub const CHECKSUM: usize = 1;
    pub const OTHER_MAC: usize = 2;
    pub const TTL: usize = 3;
}

/// What a route does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    /// On to a neighbour.
    Via {
        /// Its address; 0: the destination itself.
        next_hop: u32,
        /// The port it is behind.
        port: u16,
    },
    /// To the control plane.
    Cpu,
    /// Nowhere.
    Drop,
}

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Address; bits behind the prefix do not matter.
    pub address: u32,
    /// Bits of the prefix.
    pub length: u32,
    /// Where it goes.
    pub hop: Hop,
}

/// A neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Port it is behind.
    pub port: u16,
    /// Its address.
    pub address: u32,
    /// Its MAC address.
    pub mac: u64,
}

/// Words of a route's cell: what it has carried, and its next hop with, above it, its port, or, not below [`PORTS`], one of the below.
mod of_cell {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const HOP: usize = 2;
}

/// What is written into packets for a neighbour. That the port's own MAC address belongs to it is known from
/// the neighbour's key, so nobody need look it up for each packet.
#[derive(Clone, Copy)]
struct Link {
    /// Bytes 0 to 7: the neighbour's MAC address and the beginning of the port's.
    macs: u64,
    /// Bytes 8 to 11: the rest of it.
    source_rest: u32,
    /// The port has a MAC address.
    with_mac: bool,
}

impl Link {
    fn new(neighbour: &Neighbour, own_macs: &[u64; PORTS]) -> Self {
        let (mac, port) = (mac_in_memory(neighbour.mac), usize::from(neighbour.port));
        let own = own_macs[port % PORTS];
        Link {
            macs: mac | own << 48,
            source_rest: (own >> 16) as u32,
            with_mac: own != NO_MAC && port != CPU_PORT as usize,
        }
    }
}

/// The route goes to the control plane, or nowhere.
const TO_CPU: u32 = PORTS as u32;
const TO_NOWHERE: u32 = PORTS as u32 + 1;

/// The router.
#[derive(Clone)]
pub struct Router {
    /// MAC address of each port as memory holds it, or [`NO_MAC`].
    own_macs: Box<[u64; PORTS]>,
    routes: Lpm,
    neighbours: Exact,
    /// By value of `neighbours`.
    links: Vec<Link>,
    received: PortCounts,
    sent: PortCounts,
    /// Not parsed, wrong checksum, for another MAC address, TTL at its end.
    pub refused: [Count; 4],
    /// Lookups of the table of own MAC addresses.
    pub own_mac_lookups: Lookups,
    /// Lookups of the routes.
    pub route_lookups: Lookups,
    /// Lookups of the neighbours.
    pub neighbour_lookups: Lookups,
    /// Lookups of the MAC addresses that packets leave with.
    pub port_mac_lookups: Lookups,
    work: Box<Work>,
    wide: bool,
}

/// What one stage leaves for the next.
#[derive(Clone)]
struct Work {
    /// Not 0 where EtherType, version, header length or MAC address are not the expected ones.
    odd: [u64; VECTOR],
    /// Sums of the header.
    sums: [u64; VECTOR],
    /// Bytes 22 to 29: TTL, protocol, checksum, source address.
    middles: [u64; VECTOR],
    destinations: [u32; VECTOR],
    /// Packets that are routed, by position.
    routed: [u8; VECTOR],
    /// In the order of `routed`: numbers of routes, ports, keys of neighbours.
    numbers: [u32; VECTOR],
    ports: [u32; VECTOR],
    keys: [u64; VECTOR],
    /// Values of the neighbours.
    neighbours: [u16; VECTOR],
}

/// What becomes of a packet that is not plain.
enum Odd {
    Refused(usize, u32),
    /// ARP.
    Cpu,
    /// It has options, and is routed as others are.
    Routed,
}

impl Router {
    /// A router whose port `p` has the MAC address `own_macs[p]` (0: none).
    ///
    /// # Panics
    /// A port is not below 511, where packets are dropped, or there are 65,535 neighbours or more.
    #[must_use]
    pub fn new(own_macs: &[u64], routes: &[Route], neighbours: &[Neighbour]) -> Self {
        assert!(neighbours.len() < usize::from(MISS), "too many neighbours");
        let mut own = Box::new([NO_MAC; PORTS]);
        for (own, mac) in own.iter_mut().zip(own_macs).filter(|(_, mac)| **mac != 0) {
            *own = mac_in_memory(*mac);
        }
        let prefixes: Vec<(u32, u32)> = routes.iter().map(|r| (r.address, r.length)).collect();
        let keys: Vec<(u64, u16)> = neighbours
            .iter()
            .enumerate()
            .map(|(i, n)| (u64::from(n.port) << 32 | u64::from(n.address), i as u16))
            .collect();
        let mut lpm = Lpm::new(&prefixes);
        for (i, route) in routes.iter().enumerate() {
            let (next_hop, port) = match route.hop {
                Hop::Via { next_hop, port } => (next_hop, port.into()),
                Hop::Cpu => (0, TO_CPU),
                Hop::Drop => (0, TO_NOWHERE),
            };
            let via = matches!(route.hop, Hop::Via { .. });
            assert!(!via || port < PORTS as u32 - 1, "ports have 9 bits, not all ones");
            lpm.cell_mut(i).0[of_cell::HOP] = u64::from(port) << 32 | u64::from(next_hop);
        }
        Router {
            routes: lpm,
            neighbours: Exact::new(&keys),
            links: neighbours.iter().map(|n| Link::new(n, &own)).collect(),
            own_macs: own,
            received: PortCounts::new(),
            sent: PortCounts::new(),
            refused: [Count::default(); 4],
            own_mac_lookups: Lookups::default(),
            route_lookups: Lookups::default(),
            neighbour_lookups: Lookups::default(),
            port_mac_lookups: Lookups::default(),
            work: Box::new(Work {
                odd: [0; VECTOR],
                sums: [0; VECTOR],
                middles: [0; VECTOR],
                destinations: [0; VECTOR],
                routed: [0; VECTOR],
                numbers: [0; VECTOR],
                ports: [0; VECTOR],
                keys: [0; VECTOR],
                neighbours: [0; VECTOR],
            }),
            wide: has_avx512(),
        }
    }

    /// The same without instructions that only some processors have.
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.wide = false;
        self
    }

    /// What came in at a port.
    #[must_use]
    pub fn received(&self, port: usize) -> Count {
        self.received.get(port)
    }

    /// What went out of a port.
    #[must_use]
    pub fn sent(&self, port: usize) -> Count {
        self.sent.get(port)
    }

    /// What a route carried; routes are numbered from 0 as they were given.
    #[must_use]
    pub fn route_count(&self, route: usize) -> Count {
        let words = &self.routes.cell(route).0;
        Count {
            packets: words[of_cell::PACKETS],
            bytes: words[of_cell::BYTES],
        }
    }

    /// Runs up to [`VECTOR`] packets: packet `i` came in at `ports[i]` and goes to `fates[i]`, a port or [`DROP`].
    ///
    /// # Panics
    /// More packets than [`VECTOR`], or the slices differ in length.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        assert!(frames.len() <= VECTOR && ports.len() == frames.len() && fates.len() == frames.len());
        self.received.reserve(VECTOR);
        self.sent.reserve(VECTOR);
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `wide` says that the processor has these features.
            return unsafe { self.forward_wide(ports, frames, fates) };
        }
        debug_assert!(!self.wide);
        self.stages::<Portable>(ports, frames, fates);
    }

    /// # Safety
    /// The processor must have these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn forward_wide(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        self.stages::<crate::simd::Wide>(ports, frames, fates);
    }

    #[inline(always)]
    fn stages<F: Finder>(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        let count = frames.len();
        self.headers(ports, frames);
        self.own_mac_lookups.add(count as u64, count as u64);
        fates.fill(DROP);
        let mut gone = 0;
        if self.work.any_odd(count) {
            gone = self.tell_apart(ports, frames, fates);
        }
        let routed = self.find_routes(gone, count);
        let on = self.follow_routes(routed, frames, fates);
        self.rewrite::<F>(on, frames, fates);
    }

    #[inline(always)]
    fn headers(&mut self, ports: &[u32], frames: &[&mut [u8]]) {
        let (mut received, work) = (self.received.words(), &mut *self.work);
        let (routes, own_macs) = (self.routes.view(), &*self.own_macs);
        for (i, (frame, port)) in frames.iter().zip(ports).enumerate() {
            let i = i % VECTOR;
            received.add(*port, frame.len());
            let Some(header) = frame.first_chunk::<34>() else {
                (work.odd[i], work.destinations[i]) = (1, 0);
                continue;
            };
            let kind = half(header, 12) & 0xff_ffff;
            let (first, middle, last) = (word(header, IPV4), word(header, 22), half(header, 30));
            // Sums of 16-bit words are the same in either byte order.
            let low = |word: u64| word & u64::from(u32::MAX);
            work.sums[i] = low(first) + (first >> 32) + low(middle) + (middle >> 32) + u64::from(last);
            work.middles[i] = middle;
            let mac = word(header, 0) & KEY;
            work.odd[i] = u64::from(kind ^ PLAIN_IPV4) | mac ^ own_macs[*port as usize % PORTS];
            work.destinations[i] = last.swap_bytes();
            routes.prefetch(last.swap_bytes());
        }
    }

    /// Decides what becomes of packets that are not plain; gives those that are not routed.
    #[cold]
    fn tell_apart(&mut self, ports: &[u32], frames: &[&mut [u8]], fates: &mut [u32]) -> u64 {
        let mut gone = 0;
        for (i, (frame, port)) in frames.iter().zip(ports).enumerate() {
            if !self.work.is_odd(i) {
                continue;
            }
            let own_mac = self.own_macs[*port as usize % PORTS];
            fates[i] = match classify(frame, own_mac) {
                Odd::Routed => continue,
                Odd::Refused(why, fate) => {
                    self.refused[why].add(frame.len());
                    match why {
                        refusal::TTL => {}
                        refusal::OTHER_MAC => {
                            self.own_mac_lookups.take_back(true);
                            self.own_mac_lookups.add(1, 0);
                        }
                        _ => self.own_mac_lookups.take_back(true),
                    }
                    fate
                }
                Odd::Cpu => {
                    self.own_mac_lookups.take_back(true);
                    CPU_PORT
                }
            };
            if fates[i] == CPU_PORT {
                self.sent.add(CPU_PORT, frame.len());
            }
            gone |= 1 << i;
        }
        gone
    }

    /// Looks up routes; gives how many packets have one, which [`Work::routed`] lists.
    #[inline(always)]
    fn find_routes(&mut self, gone: u64, count: usize) -> usize {
        let (routes, work) = (self.routes.view(), &mut *self.work);
        let mut routed = 0;
        for i in 0..count.min(VECTOR) {
            let number = routes.get(work.destinations[i]);
            let number = if gone >> i & 1 == 1 { 0 } else { number };
            routes.prefetch_cell(number);
            // Whether there is a route does not decide a branch: it would be mispredicted where misses are frequent.
            work.routed[routed % VECTOR] = i as u8;
            work.numbers[routed % VECTOR] = number;
            routed += usize::from(number != 0);
        }
        self.route_lookups
            .add(count as u64 - u64::from(gone.count_ones()), routed as u64);
        routed
    }

    /// Counts, and finds out where to go; gives how many packets go on to a neighbour.
    #[inline(always)]
    fn follow_routes(&mut self, routed: usize, frames: &[&mut [u8]], fates: &mut [u32]) -> usize {
        let (neighbours, routes, work) = (self.neighbours.view(), self.routes.cells_mut(), &mut *self.work);
        let far = self.neighbours.is_far();
        let mut on = 0;
        for k in 0..routed.min(VECTOR) {
            let i = work.routed[k];
            let (Some(Cell(words)), Some(frame)) =
                (routes.get_mut(work.numbers[k] as usize), frames.get(usize::from(i)))
            else {
                continue;
            };
            words[of_cell::PACKETS] += 1;
            words[of_cell::BYTES] += frame.len() as u64;
            let (next_hop, port) = (words[of_cell::HOP] as u32, (words[of_cell::HOP] >> 32) as u32);
            if port >= PORTS as u32 {
                if port == TO_CPU {
                    fates[usize::from(i)] = CPU_PORT;
                    self.sent.add(CPU_PORT, frame.len());
                }
                continue;
            }
            let destination = work.destinations[usize::from(i) % VECTOR];
            let next_hop = if next_hop == 0 { destination } else { next_hop };
            let key = u64::from(port) << 32 | u64::from(next_hop);
            if far {
                neighbours.prefetch(key);
            }
            work.routed[on % VECTOR] = i;
            work.ports[on % VECTOR] = port;
            work.keys[on % VECTOR] = key;
            on += 1;
        }
        on
    }

    #[inline(always)]
    fn rewrite<F: Finder>(&mut self, on: usize, frames: &mut [&mut [u8]], fates: &mut [u32]) {
        let (neighbours, links, work) = (self.neighbours.view(), self.links.as_slice(), &mut *self.work);
        let on = on.min(VECTOR);
        for (key, value) in work.keys.iter().zip(&mut work.neighbours).take(on) {
            *value = (neighbours.find::<F, false>(*key) >> 48) as u16;
        }
        let (mut sent, mut unknown, mut to_cpu, mut without_mac) = (self.sent.words(), 0, 0, 0);
        for k in 0..on {
            let (i, port) = (usize::from(work.routed[k]), work.ports[k]);
            let (Some(frame), Some(fate)) = (frames.get_mut(i), fates.get_mut(i)) else {
                continue;
            };
            let length = frame.len();
            let Some(header) = frame.first_chunk_mut::<34>() else {
                continue;
            };
            header[22..26].copy_from_slice(&one_hop_less(work.middles[i % VECTOR] as u32).to_le_bytes());
            let Some(link) = links.get(usize::from(work.neighbours[k])) else {
                unknown += 1;
                sent.add(CPU_PORT, length);
                *fate = CPU_PORT;
                continue;
            };
            sent.add(port, length);
            *fate = port;
            if link.with_mac {
                header[..8].copy_from_slice(&link.macs.to_le_bytes());
                header[8..12].copy_from_slice(&link.source_rest.to_le_bytes());
            } else {
                header[..6].copy_from_slice(&link.macs.to_le_bytes()[..6]);
                without_mac += u64::from(port != CPU_PORT);
                to_cpu += u64::from(port == CPU_PORT);
            }
        }
        let on = on as u64;
        self.neighbour_lookups.add(on, on - unknown);
        let looked_up = on - unknown - to_cpu;
        self.port_mac_lookups.add(looked_up, looked_up - without_mac);
    }
}

/// TTL, protocol and checksum of a header, with a TTL of one less: the checksum's upper byte, which is the lower one
/// here, gets one more (RFC 1624). All ones is no checksum of a header: that would be 0.
#[inline(always)]
fn one_hop_less(middle: u32) -> u32 {
    let checksum = middle >> 16;
    let checksum = checksum + 1 + ((checksum + 2) >> 16);
    (middle & 0xffff | checksum << 16).wrapping_sub(1)
}

/// Decides about a packet that is not plain, at a port with this MAC address.
fn classify(frame: &[u8], own_mac: u64) -> Odd {
    let not_parsed = Odd::Refused(refusal::NOT_PARSED, DROP);
    match frame {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x06, ..] => return Odd::Cpu,
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x00, ..] => {}
        _ => return not_parsed,
    }
    let Some(header) = frame.first_chunk::<34>() else {
        return not_parsed;
    };
    let words = usize::from(header[IPV4] & 15);
    if header[IPV4] >> 4 != 4 || words < 5 {
        return not_parsed;
    }
    let Some(all) = frame.get(IPV4..IPV4 + words * 4) else {
        return not_parsed;
    };
    let pairs = all.chunks_exact(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
    let mut sum: u32 = pairs.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    if sum != 0xffff || header[24..26] == [0xff; 2] {
        return Odd::Refused(refusal::CHECKSUM, DROP);
    }
    if word(header, 0) & KEY != own_mac {
        return Odd::Refused(refusal::OTHER_MAC, DROP);
    }
    if header[22] <= 1 {
        return Odd::Refused(refusal::TTL, CPU_PORT);
    }
    Odd::Routed
}

impl Work {
    /// Not 0 where a packet is not plain.
    #[inline(always)]
    fn oddness(&self, i: usize) -> u64 {
        let (sum, middle) = (self.sums[i], self.middles[i]);
        let folded = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
        let folded = (folded & 0xffff) + (folded >> 16);
        let checksum = middle >> 16 & 0xffff;
        self.odd[i] | folded ^ 0xffff | u64::from(checksum == 0xffff) | u64::from(middle & 0xff <= 1)
    }

    #[inline(always)]
    fn any_odd(&self, count: usize) -> bool {
        (0..count.min(VECTOR)).fold(0, |any, i| any | self.oddness(i)) != 0
    }

    fn is_odd(&self, i: usize) -> bool {
        self.oddness(i) != 0
    }
}

/// The four bytes at `at`, as a little-endian number.
#[inline(always)]
fn half<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of a header of which this is the sum of everything else.
    fn checksum(sum: u32) -> u16 {
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn the_checksum_of_one_hop_less_is_the_one_that_is_computed_anew() {
        for rest in (1..=0xffffu32).step_by(7).chain(0xff00..=0xffff) {
            for ttl in [2u32, 3, 64, 128, 255] {
                let [before, after] = [ttl, ttl - 1].map(|ttl| checksum(rest + (ttl << 8 | 17)));
                let middle = |ttl: u32, sum: u16| ttl | 17 << 8 | u32::from(sum.swap_bytes()) << 16;
                assert_eq!(
                    one_hop_less(middle(ttl, before)),
                    middle(ttl - 1, after),
                    "{rest:x} {ttl}"
                );
            }
        }
    }
}
