//! `ipv4_router.p4` by hand.

use crate::exact::{Exact, MISS};
use crate::lpm::Lpm;
use crate::simd::{Finder, Portable, prefetch};
use crate::{Count, DROP, PORTS, PortCounts, VECTOR, port_counts};

/// The control plane's port.
const CPU_PORT: u32 = 64;

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// Address; bits behind the prefix do not matter.
    pub address: u32,
    /// Bits of the prefix.
    pub length: u32,
    /// Neighbour that packets go to; 0: the destination itself.
    pub next_hop: u32,
    /// Port that packets go to.
    pub port: u16,
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

/// A route with its counter.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
struct Entry {
    count: Count,
    next_hop: u32,
    port: u32,
}

/// The router.
#[derive(Clone)]
pub struct Router {
    /// MAC address of each port, as frames carry it, in the low 48 bits; 0: none.
    own_macs: Box<[u64; PORTS]>,
    lpm: Lpm,
    /// By number; the first is the miss.
    routes: Vec<Entry>,
    neighbours: Exact,
    neighbour_macs: Vec<u64>,
    received: PortCounts,
    sent: PortCounts,
    /// Not parsed, wrong checksum, for another MAC address, TTL at its end.
    pub refused: [Count; 4],
    wide: bool,
}

impl Router {
    /// A router whose port `p` has the MAC address `own_macs[p]` (0: none).
    ///
    /// # Panics
    /// A port is not below [`PORTS`], or there are 65,535 neighbours or more.
    #[must_use]
    pub fn new(own_macs: &[u64], routes: &[Route], neighbours: &[Neighbour]) -> Self {
        assert!(neighbours.len() < usize::from(MISS), "too many neighbours");
        assert!(routes.iter().all(|r| usize::from(r.port) < PORTS), "ports have 9 bits");
        let mut own = Box::new([0; PORTS]);
        own[..own_macs.len()].copy_from_slice(own_macs);
        let prefixes: Vec<(u32, u32)> = routes.iter().map(|r| (r.address, r.length)).collect();
        let keys: Vec<(u64, u16)> = neighbours
            .iter()
            .enumerate()
            .map(|(i, n)| (u64::from(n.port) << 32 | u64::from(n.address), i as u16))
            .collect();
        let mut entries = vec![Entry::default()];
        entries.extend(routes.iter().map(|r| Entry {
            count: Count::default(),
            next_hop: r.next_hop,
            port: r.port.into(),
        }));
        #[cfg(target_arch = "x86_64")]
        let wide = crate::simd::has_avx512();
        #[cfg(not(target_arch = "x86_64"))]
        let wide = false;
        Router {
            own_macs: own,
            lpm: Lpm::new(&prefixes),
            routes: entries,
            neighbours: Exact::new(&keys),
            neighbour_macs: neighbours.iter().map(|n| n.mac).collect(),
            received: port_counts(),
            sent: port_counts(),
            refused: [Count::default(); 4],
            wide,
        }
    }

    /// What came in at a port.
    #[must_use]
    pub fn received(&self, port: usize) -> Count {
        self.received[port % PORTS]
    }

    /// What went out of a port.
    #[must_use]
    pub fn sent(&self, port: usize) -> Count {
        self.sent[port % PORTS]
    }

    /// What a route carried; routes are numbered from 0 as they were given.
    #[must_use]
    pub fn route_count(&self, route: usize) -> Count {
        self.routes[route + 1].count
    }

    /// Runs up to [`VECTOR`] packets: packet `i` came in at `ports[i]` and goes to `fates[i]`.
    ///
    /// # Panics
    /// More packets than [`VECTOR`], or the slices differ in length.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        assert!(frames.len() <= VECTOR && ports.len() == frames.len() && fates.len() == frames.len());
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
    #[target_feature(enable = "avx512f,bmi1,bmi2")]
    unsafe fn forward_wide(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        self.stages::<crate::simd::Wide>(ports, frames, fates);
    }

    #[inline(always)]
    fn stages<F: Finder>(&mut self, ports: &[u32], frames: &mut [&mut [u8]], fates: &mut [u32]) {
        let mut destinations = [0u32; VECTOR];
        let mut numbers = [0u32; VECTOR];
        for (((frame, port), fate), destination) in
            frames.iter().zip(ports).zip(fates.iter_mut()).zip(&mut destinations)
        {
            self.received[*port as usize % PORTS].add(frame.len());
            *fate = self.headers(frame, *port, destination);
        }
        // A packet that goes no further has destination 0, whose number is not used.
        for (destination, number) in destinations.iter().zip(&mut numbers).take(frames.len()) {
            *number = self.lpm.get(*destination);
            if let Some(route) = self.routes.get(*number as usize) {
                prefetch(route);
            }
        }
        for (i, frame) in frames.iter_mut().enumerate() {
            if fates[i] == 0 {
                fates[i] = self.route::<F>(frame, destinations[i], numbers[i]);
            }
        }
    }

    /// 0 where a packet is to be routed, else its fate.
    #[inline(always)]
    fn headers(&mut self, frame: &[u8], port: u32, destination: &mut u32) -> u32 {
        let Some(header) = frame.first_chunk::<34>() else {
            return self.refuse(0, frame.len(), DROP);
        };
        let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        if header[12..15] != [0x08, 0x00, 0x45] {
            return self.refuse(0, frame.len(), DROP);
        }
        // Sums of 16-bit words are the same in either byte order.
        let sum: u64 = [14, 18, 22, 26, 30].iter().map(|at| u64::from(word(*at))).sum();
        let folded = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
        if (folded & 0xffff) + (folded >> 16) != 0xffff {
            return self.refuse(1, frame.len(), DROP);
        }
        let mac = u64::from(word(0)) | u64::from(header[4]) << 32 | u64::from(header[5]) << 40;
        if mac != mac_in_memory(self.own_macs[port as usize % PORTS]) || mac == 0 {
            return self.refuse(2, frame.len(), DROP);
        }
        if header[22] <= 1 {
            let fate = self.refuse(3, frame.len(), CPU_PORT);
            self.sent[CPU_PORT as usize].add(frame.len());
            return fate;
        }
        *destination = word(30).swap_bytes();
        self.lpm.prefetch(*destination);
        0
    }

    #[inline(always)]
    fn refuse(&mut self, why: usize, length: usize, fate: u32) -> u32 {
        self.refused[why].add(length);
        fate
    }

    #[inline(always)]
    fn route<F: Finder>(&mut self, frame: &mut [u8], destination: u32, number: u32) -> u32 {
        let length = frame.len();
        let Some(entry) = self.routes.get_mut(number as usize).filter(|_| number != 0) else {
            return DROP;
        };
        entry.count.add(length);
        let (next_hop, port) = (entry.next_hop, entry.port);
        let next_hop = if next_hop == 0 { destination } else { next_hop };
        let key = u64::from(port) << 32 | u64::from(next_hop);
        let (neighbour, _) = self.neighbours.find::<F>(self.neighbours.bucket(key), key);
        let Some(header) = frame.first_chunk_mut::<34>() else {
            return DROP;
        };
        header[22] -= 1;
        // RFC 1624, for a word of which the upper byte is one less.
        let checksum = u16::from_be_bytes([header[24], header[25]]);
        let sum = u32::from(!checksum) + 0xfeff;
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        header[24..26].copy_from_slice(&sum.to_be_bytes());
        let (Some(mac), true) = (self.neighbour_macs.get(usize::from(neighbour)), port != CPU_PORT) else {
            self.sent[CPU_PORT as usize].add(length);
            return CPU_PORT;
        };
        header[..6].copy_from_slice(&mac.to_be_bytes()[2..]);
        let own = self.own_macs[port as usize % PORTS];
        if own != 0 {
            header[6..12].copy_from_slice(&own.to_be_bytes()[2..]);
        }
        self.sent[port as usize % PORTS].add(length);
        port
    }
}

/// A MAC address as six bytes of memory read as a little-endian number.
#[inline(always)]
fn mac_in_memory(mac: u64) -> u64 {
    (mac << 16).swap_bytes()
}
