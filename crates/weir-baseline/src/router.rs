//! `ipv4_router.p4`, hand-written.
//!
//! A vector goes through these stages: read headers and prefetch routes; handle exceptions, packets
//! that are not plain IPv4 with a good checksum and TTL; look up routes; follow them to neighbours;
//! rewrite MAC addresses and TTL.

use crate::count::PortCounts;
use crate::exact::{Exact, MISS};
use crate::lpm::{Cell, Lpm};
use crate::simd::{Finder, KEY, Portable, has_avx512, mac_as_loaded, word};
use crate::{Count, DROP, Lookups, PORTS, VECTOR};

/// The control plane's port.
const CPU_PORT: u32 = 64;
/// Offset of the IPv4 header.
const IPV4: usize = 14;
/// Bytes 12 to 14 of a plain packet: EtherType IPv4, then version 4 and a header of five words.
const PLAIN_IPV4: u32 = 0x45_0008;
/// No MAC address.
const NO_MAC: u64 = u64::MAX;

/// Reasons for refusing a packet: indexes of [`Router::refused`].
mod refusal {
    pub const NOT_PARSED: usize = 0;
    pub const CHECKSUM: usize = 1;
    pub const OTHER_MAC: usize = 2;
    pub const TTL: usize = 3;
}

/// The action of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hop {
    /// Forward to a neighbour.
    Via {
        /// The neighbour's address; 0: the destination itself.
        next_hop: u32,
        /// The port of the neighbour.
        port: u16,
    },
    /// Send to the control plane.
    Cpu,
    /// Drop.
    Drop,
}

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Address; bits after the prefix are ignored.
    pub address: u32,
    /// Bits of the prefix.
    pub length: u32,
    /// Its action.
    pub hop: Hop,
}

/// A neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// The port of the neighbour.
    pub port: u16,
    /// Its address.
    pub address: u32,
    /// Its MAC address.
    pub mac: u64,
}

/// Words of a route's cell: its packets, its bytes, and its next hop. Above the next hop is its
/// port, or [`TO_CPU`] or [`TO_DROP`].
mod cell_word {
    pub const PACKETS: usize = 0;
    pub const BYTES: usize = 1;
    pub const HOP: usize = 2;
}

/// The bytes written into packets for a neighbour. The port's own MAC address depends only on the
/// neighbour's port, so it is included here instead of being looked up for each packet.
#[derive(Clone, Copy)]
struct Link {
    /// Bytes 0 to 7: the neighbour's MAC address and the first bytes of the port's.
    macs: u64,
    /// Bytes 8 to 11: the rest of the port's MAC address.
    source_rest: u32,
    /// Whether the port has a MAC address.
    with_mac: bool,
}

impl Link {
    fn new(neighbour: &Neighbour, own_macs: &[u64; PORTS]) -> Self {
        let (mac, port) = (mac_as_loaded(neighbour.mac), usize::from(neighbour.port));
        let own = own_macs[port % PORTS];
        Link {
            macs: mac | own << 48,
            source_rest: (own >> 16) as u32,
            with_mac: own != NO_MAC && port != CPU_PORT as usize,
        }
    }
}

/// In place of a route's port: to the control plane, or drop.
const TO_CPU: u32 = PORTS as u32;
const TO_DROP: u32 = PORTS as u32 + 1;

/// The router.
#[derive(Clone)]
pub struct Router {
    /// MAC address of each port, as loaded from memory, or [`NO_MAC`].
    own_macs: Box<[u64; PORTS]>,
    routes: Lpm,
    neighbours: Exact,
    /// Indexed by the values of `neighbours`.
    links: Vec<Link>,
    received: PortCounts,
    sent: PortCounts,
    /// Not parsed, wrong checksum, for another MAC address, TTL expired.
    pub refused: [Count; 4],
    /// Lookups of the table of own MAC addresses.
    pub own_mac_lookups: Lookups,
    /// Lookups of the routes.
    pub route_lookups: Lookups,
    /// Lookups of the neighbours.
    pub neighbour_lookups: Lookups,
    /// Lookups of source MAC addresses by egress port.
    pub port_mac_lookups: Lookups,
    work: Box<Work>,
    wide: bool,
}

/// The arrays that stages pass to each other.
#[derive(Clone)]
struct Work {
    /// Not 0 if EtherType, version, header length or MAC address differ from the expected ones.
    exception: [u64; VECTOR],
    /// Sums of the header's 16-bit words.
    sums: [u64; VECTOR],
    /// Bytes 22 to 29: TTL, protocol, checksum, source address.
    middles: [u64; VECTOR],
    destinations: [u32; VECTOR],
    /// Slots of the packets that are routed.
    routed: [u8; VECTOR],
    /// In the order of `routed`: numbers of routes, ports, keys of neighbours.
    numbers: [u32; VECTOR],
    ports: [u32; VECTOR],
    keys: [u64; VECTOR],
    /// In the order of `routed`: values of the neighbours.
    neighbours: [u16; VECTOR],
}

/// The outcome for an exception.
enum Exception {
    Refused(usize, u32),
    /// ARP.
    Cpu,
    /// It has IPv4 options, and is routed like others.
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
            *own = mac_as_loaded(*mac);
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
                Hop::Drop => (0, TO_DROP),
            };
            let via = matches!(route.hop, Hop::Via { .. });
            assert!(!via || port < PORTS as u32 - 1, "ports have 9 bits, not all ones");
            lpm.cell_mut(i).0[cell_word::HOP] = u64::from(port) << 32 | u64::from(next_hop);
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
                exception: [0; VECTOR],
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

    /// The same without AVX-512.
    #[must_use]
    pub fn portable(mut self) -> Self {
        self.wide = false;
        self
    }

    /// Packets and bytes received at a port.
    #[must_use]
    pub fn received(&self, port: usize) -> Count {
        self.received.get(port)
    }

    /// Packets and bytes sent from a port.
    #[must_use]
    pub fn sent(&self, port: usize) -> Count {
        self.sent.get(port)
    }

    /// Packets and bytes of a route; routes are numbered from 0 in their order.
    #[must_use]
    pub fn route_count(&self, route: usize) -> Count {
        let words = &self.routes.cell(route).0;
        Count {
            packets: words[cell_word::PACKETS],
            bytes: words[cell_word::BYTES],
        }
    }

    /// Runs up to [`VECTOR`] packets. Packet `i` came in at `ports[i]`; `verdicts[i]` becomes its
    /// egress port or [`DROP`].
    ///
    /// # Panics
    /// More packets than [`VECTOR`], or the slices differ in length.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [&mut [u8]], verdicts: &mut [u32]) {
        assert!(frames.len() <= VECTOR && ports.len() == frames.len() && verdicts.len() == frames.len());
        self.received.reserve(VECTOR);
        self.sent.reserve(VECTOR);
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `wide` says that the processor has these features.
            return unsafe { self.forward_wide(ports, frames, verdicts) };
        }
        debug_assert!(!self.wide);
        self.run_stages::<Portable>(ports, frames, verdicts);
    }

    /// # Safety
    /// The processor must have these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn forward_wide(&mut self, ports: &[u32], frames: &mut [&mut [u8]], verdicts: &mut [u32]) {
        self.run_stages::<crate::simd::Wide>(ports, frames, verdicts);
    }

    #[inline(always)]
    fn run_stages<F: Finder>(&mut self, ports: &[u32], frames: &mut [&mut [u8]], verdicts: &mut [u32]) {
        let count = frames.len();
        self.headers(ports, frames);
        self.own_mac_lookups.add(count as u64, count as u64);
        verdicts.fill(DROP);
        let mut handled = 0;
        if self.work.any_exception(count) {
            handled = self.handle_exceptions(ports, frames, verdicts);
        }
        let routed = self.find_routes(handled, count);
        let forwarded = self.follow_routes(routed, frames, verdicts);
        self.rewrite::<F>(forwarded, frames, verdicts);
    }

    #[inline(always)]
    fn headers(&mut self, ports: &[u32], frames: &[&mut [u8]]) {
        let (mut received, work) = (self.received.words(), &mut *self.work);
        let (routes, own_macs) = (self.routes.view(), &*self.own_macs);
        for (i, (frame, port)) in frames.iter().zip(ports).enumerate() {
            let i = i % VECTOR;
            received.add(*port, frame.len());
            let Some(header) = frame.first_chunk::<34>() else {
                (work.exception[i], work.destinations[i]) = (1, 0);
                continue;
            };
            let kind = half(header, 12) & 0xff_ffff;
            let (first, middle, last) = (word(header, IPV4), word(header, 22), half(header, 30));
            // Sums of 16-bit words are the same in either byte order.
            let low = |word: u64| word & u64::from(u32::MAX);
            work.sums[i] = low(first) + (first >> 32) + low(middle) + (middle >> 32) + u64::from(last);
            work.middles[i] = middle;
            let mac = word(header, 0) & KEY;
            work.exception[i] = u64::from(kind ^ PLAIN_IPV4) | mac ^ own_macs[*port as usize % PORTS];
            work.destinations[i] = last.swap_bytes();
            routes.prefetch(last.swap_bytes());
        }
    }

    /// Handles exceptions; returns the slots that are not routed.
    #[cold]
    fn handle_exceptions(&mut self, ports: &[u32], frames: &[&mut [u8]], verdicts: &mut [u32]) -> u64 {
        let mut handled = 0;
        for (i, (frame, port)) in frames.iter().zip(ports).enumerate() {
            if !self.work.is_exception(i) {
                continue;
            }
            let own_mac = self.own_macs[*port as usize % PORTS];
            verdicts[i] = match classify(frame, own_mac) {
                Exception::Routed => continue,
                Exception::Refused(why, verdict) => {
                    self.refused[why].add(frame.len());
                    match why {
                        refusal::TTL => {}
                        refusal::OTHER_MAC => {
                            self.own_mac_lookups.uncount(true);
                            self.own_mac_lookups.add(1, 0);
                        }
                        _ => self.own_mac_lookups.uncount(true),
                    }
                    verdict
                }
                Exception::Cpu => {
                    self.own_mac_lookups.uncount(true);
                    CPU_PORT
                }
            };
            if verdicts[i] == CPU_PORT {
                self.sent.add(CPU_PORT, frame.len());
            }
            handled |= 1 << i;
        }
        handled
    }

    /// Looks up routes; returns how many packets have one. [`Work::routed`] lists them.
    #[inline(always)]
    fn find_routes(&mut self, handled: u64, count: usize) -> usize {
        let (routes, work) = (self.routes.view(), &mut *self.work);
        let mut routed = 0;
        for i in 0..count.min(VECTOR) {
            let number = routes.get(work.destinations[i]);
            let number = if handled >> i & 1 == 1 { 0 } else { number };
            routes.prefetch_cell(number);
            // No branch depends on the outcome: it would be mispredicted where misses are frequent.
            work.routed[routed % VECTOR] = i as u8;
            work.numbers[routed % VECTOR] = number;
            routed += usize::from(number != 0);
        }
        self.route_lookups
            .add(count as u64 - u64::from(handled.count_ones()), routed as u64);
        routed
    }

    /// Counts, and finds the neighbours; returns how many packets are forwarded to one.
    #[inline(always)]
    fn follow_routes(&mut self, routed: usize, frames: &[&mut [u8]], verdicts: &mut [u32]) -> usize {
        let (neighbours, routes, work) = (self.neighbours.view(), self.routes.cells_mut(), &mut *self.work);
        let prefetches = self.neighbours.needs_prefetch();
        let mut forwarded = 0;
        for k in 0..routed.min(VECTOR) {
            let i = work.routed[k];
            let (Some(Cell(words)), Some(frame)) =
                (routes.get_mut(work.numbers[k] as usize), frames.get(usize::from(i)))
            else {
                continue;
            };
            words[cell_word::PACKETS] += 1;
            words[cell_word::BYTES] += frame.len() as u64;
            let (next_hop, port) = (words[cell_word::HOP] as u32, (words[cell_word::HOP] >> 32) as u32);
            if port >= PORTS as u32 {
                if port == TO_CPU {
                    verdicts[usize::from(i)] = CPU_PORT;
                    self.sent.add(CPU_PORT, frame.len());
                }
                continue;
            }
            let destination = work.destinations[usize::from(i) % VECTOR];
            let next_hop = if next_hop == 0 { destination } else { next_hop };
            let key = u64::from(port) << 32 | u64::from(next_hop);
            if prefetches {
                neighbours.prefetch(key);
            }
            work.routed[forwarded % VECTOR] = i;
            work.ports[forwarded % VECTOR] = port;
            work.keys[forwarded % VECTOR] = key;
            forwarded += 1;
        }
        forwarded
    }

    #[inline(always)]
    fn rewrite<F: Finder>(&mut self, forwarded: usize, frames: &mut [&mut [u8]], verdicts: &mut [u32]) {
        let (neighbours, links, work) = (self.neighbours.view(), self.links.as_slice(), &mut *self.work);
        let forwarded = forwarded.min(VECTOR);
        for (key, value) in work.keys.iter().zip(&mut work.neighbours).take(forwarded) {
            *value = (neighbours.find::<F, false>(*key) >> 48) as u16;
        }
        let (mut sent, mut unknown, mut to_cpu, mut without_mac) = (self.sent.words(), 0, 0, 0);
        for k in 0..forwarded {
            let (i, port) = (usize::from(work.routed[k]), work.ports[k]);
            let (Some(frame), Some(verdict)) = (frames.get_mut(i), verdicts.get_mut(i)) else {
                continue;
            };
            let length = frame.len();
            let Some(header) = frame.first_chunk_mut::<34>() else {
                continue;
            };
            header[22..26].copy_from_slice(&decrement_ttl(work.middles[i % VECTOR] as u32).to_le_bytes());
            let Some(link) = links.get(usize::from(work.neighbours[k])) else {
                unknown += 1;
                sent.add(CPU_PORT, length);
                *verdict = CPU_PORT;
                continue;
            };
            sent.add(port, length);
            *verdict = port;
            if link.with_mac {
                header[..8].copy_from_slice(&link.macs.to_le_bytes());
                header[8..12].copy_from_slice(&link.source_rest.to_le_bytes());
            } else {
                header[..6].copy_from_slice(&link.macs.to_le_bytes()[..6]);
                without_mac += u64::from(port != CPU_PORT);
                to_cpu += u64::from(port == CPU_PORT);
            }
        }
        let forwarded = forwarded as u64;
        self.neighbour_lookups.add(forwarded, forwarded - unknown);
        let looked_up = forwarded - unknown - to_cpu;
        self.port_mac_lookups.add(looked_up, looked_up - without_mac);
    }
}

/// TTL, protocol and checksum of a header with the TTL decremented. The checksum's upper byte,
/// which is the lower one here, is incremented (RFC 1624). All ones is not a valid checksum of a
/// header: that would be 0.
#[inline(always)]
fn decrement_ttl(middle: u32) -> u32 {
    let checksum = middle >> 16;
    let checksum = checksum + 1 + ((checksum + 2) >> 16);
    (middle & 0xffff | checksum << 16).wrapping_sub(1)
}

/// Classifies an exception, received at a port with this MAC address.
fn classify(frame: &[u8], own_mac: u64) -> Exception {
    let not_parsed = Exception::Refused(refusal::NOT_PARSED, DROP);
    match frame {
        [_, _, _, _, _, _, _, _, _, _, _, _, 0x08, 0x06, ..] => return Exception::Cpu,
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
        return Exception::Refused(refusal::CHECKSUM, DROP);
    }
    if word(header, 0) & KEY != own_mac {
        return Exception::Refused(refusal::OTHER_MAC, DROP);
    }
    if header[22] <= 1 {
        return Exception::Refused(refusal::TTL, CPU_PORT);
    }
    Exception::Routed
}

impl Work {
    /// Not 0 if a packet is an exception.
    #[inline(always)]
    fn exception_bits(&self, i: usize) -> u64 {
        let (sum, middle) = (self.sums[i], self.middles[i]);
        let folded = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
        let folded = (folded & 0xffff) + (folded >> 16);
        let checksum = middle >> 16 & 0xffff;
        self.exception[i] | folded ^ 0xffff | u64::from(checksum == 0xffff) | u64::from(middle & 0xff <= 1)
    }

    #[inline(always)]
    fn any_exception(&self, count: usize) -> bool {
        (0..count.min(VECTOR)).fold(0, |any, i| any | self.exception_bits(i)) != 0
    }

    fn is_exception(&self, i: usize) -> bool {
        self.exception_bits(i) != 0
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

    /// The checksum of a header whose other words have this sum.
    fn checksum(sum: u32) -> u16 {
        let sum = (sum & 0xffff) + (sum >> 16);
        !((sum & 0xffff) + (sum >> 16)) as u16
    }

    #[test]
    fn the_updated_checksum_equals_a_full_computation() {
        for rest in (1..=0xffffu32).step_by(7).chain(0xff00..=0xffff) {
            for ttl in [2u32, 3, 64, 128, 255] {
                let [before, after] = [ttl, ttl - 1].map(|ttl| checksum(rest + (ttl << 8 | 17)));
                let middle = |ttl: u32, sum: u16| ttl | 17 << 8 | u32::from(sum.swap_bytes()) << 16;
                assert_eq!(
                    decrement_ttl(middle(ttl, before)),
                    middle(ttl - 1, after),
                    "{rest:x} {ttl}"
                );
            }
        }
    }
}
