//! `l2_switch.p4`, hand-written.
//!
//! A vector goes through these stages: read headers and prefetch buckets; look up sources and
//! destinations; update timestamps and report new stations; forward. Frames that must not be
//! forwarded are looked up like others, and corrected afterwards, as they are rare.

use crate::count::PortCounts;
use crate::exact::Exact;
use crate::simd::{Finder, KEY, Portable, has_avx512, mac_as_loaded, word};
use crate::{Count, DROP, FLOOD, Lookups, PORTS, VECTOR};

/// Reasons for refusing a frame: indexes of [`L2Switch::refused`].
mod refusal {
    pub const TOO_SHORT: usize = 0;
    pub const GROUP_SOURCE: usize = 1;
    pub const LINK_LOCAL: usize = 2;
    pub const BACK: usize = 3;
}

/// The value of a slot: the port, and above it the time of the last hit.
const PORT_BITS: u32 = 9;
const PORT_MASK: u16 = (1 << PORT_BITS) - 1;
/// 01-80-C2-00-00-0X as loaded from memory; the last byte's lower half is ignored.
const LINK_LOCAL: u64 = 0xc2_8001;
const LINK_LOCAL_MASK: u64 = 0xf0ff_ffff_ffff;

/// Reported to the control plane: a station that is unknown or has moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learned {
    /// Its address.
    pub mac: u64,
    /// The port of the station.
    pub port: u32,
}

/// The switch. Sources and destinations have a table each, as in the program.
///
/// A source's slot also has the time of its last hit, in steps of 2²⁰ ns modulo 128. Aging must
/// read it more often than it wraps around.
#[derive(Clone)]
pub struct L2Switch {
    sources: Exact,
    destinations: Exact,
    received: PortCounts,
    sent: PortCounts,
    /// Too short, group address as source, link-local destination, egress port equal to the ingress
    /// port.
    pub refused: [Count; 4],
    /// Lookups of the source table.
    pub source_lookups: Lookups,
    /// Lookups of the destination table.
    pub destination_lookups: Lookups,
    /// Stations that are unknown or have moved, the oldest first. The caller drains and bounds this
    /// list.
    pub learned: Vec<Learned>,
    unknown: u32,
    /// Whether the previous vector had both known and unknown destinations.
    mixed: bool,
    work: Box<Work>,
    wide: bool,
}

/// The arrays that stages pass to each other.
#[derive(Clone)]
struct Work {
    sources: [u64; VECTOR],
    destinations: [u64; VECTOR],
    /// The slots of the sources.
    known: [u64; VECTOR],
    /// The positions of these slots in the source table.
    at: [u32; VECTOR],
    out: [u64; VECTOR],
}

impl L2Switch {
    /// A switch that knows these stations and their ports.
    ///
    /// # Panics
    /// A port is not below 511, where packets are dropped, or an address has more than 48 bits or
    /// is all ones.
    #[must_use]
    pub fn new(stations: &[(u64, u16)]) -> Self {
        assert!(
            stations.iter().all(|s| usize::from(s.1) < PORTS - 1 && s.0 < KEY),
            "ports have 9 bits, not all ones; addresses 48"
        );
        let in_memory: Vec<(u64, u16)> = stations.iter().map(|s| (mac_as_loaded(s.0), s.1)).collect();
        let sources = Exact::new(&in_memory);
        L2Switch {
            destinations: sources.clone(),
            sources,
            received: PortCounts::new(),
            sent: PortCounts::new(),
            refused: [Count::default(); 4],
            source_lookups: Lookups::default(),
            destination_lookups: Lookups::default(),
            learned: Vec::new(),
            unknown: FLOOD,
            mixed: false,
            work: Box::new(Work {
                sources: [0; VECTOR],
                destinations: [0; VECTOR],
                known: [0; VECTOR],
                at: [0; VECTOR],
                out: [0; VECTOR],
            }),
            wide: has_avx512(),
        }
    }

    /// The same, but frames to unknown destinations are dropped, not flooded.
    #[must_use]
    pub fn dropping_unknown(mut self) -> Self {
        self.unknown = DROP;
        self
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
        if port == PORTS - 1 {
            Count::default()
        } else {
            self.sent.get(port)
        }
    }

    /// Runs up to [`VECTOR`] frames. Frame `i` came in at `ports[i]`; `verdicts[i]` becomes its
    /// egress port, [`DROP`] or [`FLOOD`].
    ///
    /// # Panics
    /// More frames than [`VECTOR`], or the slices differ in length.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, verdicts: &mut [u32]) {
        assert!(frames.len() <= VECTOR && ports.len() == frames.len() && verdicts.len() == frames.len());
        self.received.reserve(VECTOR);
        self.sent.reserve(VECTOR);
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `wide` says that the processor has these features.
            return unsafe { self.forward_wide(ports, frames, now_ns, verdicts) };
        }
        debug_assert!(!self.wide);
        self.run_stages::<Portable>(ports, frames, now_ns, verdicts);
    }

    /// # Safety
    /// The processor must have these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn forward_wide(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, verdicts: &mut [u32]) {
        self.run_stages::<crate::simd::Wide>(ports, frames, now_ns, verdicts);
    }

    #[inline(always)]
    fn run_stages<F: Finder>(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, verdicts: &mut [u32]) {
        let count = frames.len();
        self.headers(ports, frames);
        self.look_up::<F>(count);
        let refused = self.work.refused(count);
        let now = (now_ns >> (20 - PORT_BITS)) as u16 & !PORT_MASK;
        let (moved, stale) = self.work.changes(ports, now);
        if stale != 0 {
            self.touch(count, refused, now);
        }
        if moved != 0 {
            self.learn(ports, refused);
        }
        let (mut back, mut sent, unknown, slots) = (0, self.sent.words(), self.unknown, &self.work.out);
        for (i, ((frame, port), verdict)) in frames.iter().zip(ports).zip(verdicts.iter_mut()).enumerate() {
            let slot = slots[i % VECTOR];
            // A miss is all ones, which gives port 511: no frame leaves there.
            let out = (slot >> 48) as u32 & u32::from(PORT_MASK);
            sent.add(out, frame.len());
            back |= u64::from(out == *port) << i;
            *verdict = std::hint::select_unpredictable(slot == u64::MAX, unknown, out);
        }
        if back | refused != 0 {
            self.refuse(ports, frames, refused, back & !refused, verdicts);
        }
    }

    #[inline(always)]
    fn headers(&mut self, ports: &[u32], frames: &[&mut [u8]]) {
        let prefetches = self.sources.needs_prefetch();
        let (sources, destinations) = (self.sources.view(), self.destinations.view());
        let (mut received, work) = (self.received.words(), &mut *self.work);
        for (i, (frame, port)) in frames.iter().zip(ports).enumerate() {
            received.add(*port, frame.len());
            // Frames that are too short get a group address as source here, and are distinguished
            // in `refuse`.
            let (source, destination) = match frame.first_chunk::<14>() {
                Some(header) => (word(header, 6) & KEY, word(header, 0) & KEY),
                None => (1, 0),
            };
            work.sources[i % VECTOR] = source;
            work.destinations[i % VECTOR] = destination;
            if prefetches {
                sources.prefetch(source);
                destinations.prefetch(destination);
            }
        }
    }

    #[inline(always)]
    fn look_up<F: Finder>(&mut self, count: usize) {
        let (sources, destinations, work) = (self.sources.view(), self.destinations.view(), &mut *self.work);
        for ((key, slot), at) in work.sources.iter().zip(&mut work.known).zip(&mut work.at).take(count) {
            (*slot, *at) = sources.locate::<F, false>(*key);
        }
        let (keys, slots) = (work.destinations.iter(), work.out.iter_mut());
        if self.mixed {
            for (key, slot) in keys.zip(slots).take(count) {
                *slot = destinations.find::<F, true>(*key);
            }
        } else {
            for (key, slot) in keys.zip(slots).take(count) {
                *slot = destinations.find::<F, false>(*key);
            }
        }
        let hits = |slots: &[u64; VECTOR]| slots[..count].iter().map(|s| u64::from(*s != u64::MAX)).sum();
        let (known, forwarded) = (hits(&work.known), hits(&work.out));
        self.mixed = forwarded != 0 && forwarded != count as u64;
        self.source_lookups.add(count as u64, known);
        self.destination_lookups.add(count as u64, forwarded);
    }

    /// Refused frames were looked up like others; their lookups are removed from the counts.
    #[cold]
    fn refuse(&mut self, ports: &[u32], frames: &[&mut [u8]], refused: u64, back: u64, verdicts: &mut [u32]) {
        for (i, frame) in frames.iter().enumerate() {
            let why = match (refused >> i & 1, back >> i & 1, frame.len()) {
                (0, 0, _) => continue,
                (0, ..) => refusal::BACK,
                (.., 0..14) => refusal::TOO_SHORT,
                _ if self.work.sources[i] & 1 == 1 => refusal::GROUP_SOURCE,
                _ => refusal::LINK_LOCAL,
            };
            self.refused[why].add(frame.len());
            verdicts[i] = DROP;
            let slot = self.work.out[i];
            self.sent
                .uncount((slot >> 48) as u32 & u32::from(PORT_MASK), frame.len());
            if why != refusal::BACK {
                self.source_lookups.uncount(self.work.known[i] != u64::MAX);
                self.destination_lookups.uncount(slot != u64::MAX);
            }
        }
        debug_assert_eq!(ports.len(), frames.len());
    }

    /// Updates the time of the last hit.
    #[inline(always)]
    fn touch(&mut self, count: usize, refused: u64, now: u16) {
        let work = &*self.work;
        for (i, (slot, at)) in work.known.iter().zip(&work.at).enumerate().take(count) {
            if *slot != u64::MAX && refused >> i & 1 == 0 {
                let time = u64::from(!PORT_MASK) << 48;
                self.sources.set(*at, slot & !time | u64::from(now) << 48);
            }
        }
    }

    /// Reports stations that are unknown or have moved.
    #[cold]
    fn learn(&mut self, ports: &[u32], refused: u64) {
        for (i, port) in ports.iter().enumerate().filter(|(i, _)| refused >> i & 1 == 0) {
            let (key, slot) = (self.work.sources[i], self.work.known[i]);
            if slot == u64::MAX || (slot >> 48) as u32 & u32::from(PORT_MASK) != *port {
                let mac = mac_as_loaded(key) & KEY;
                self.learned.push(Learned { mac, port: *port });
            }
        }
    }
}

impl Work {
    /// Frames that must not be forwarded.
    #[inline(always)]
    fn refused(&self, count: usize) -> u64 {
        let mut refused = 0;
        for (i, (source, destination)) in self.sources.iter().zip(&self.destinations).enumerate().take(count) {
            refused |= u64::from(source & 1 == 1 || destination & LINK_LOCAL_MASK == LINK_LOCAL) << i;
        }
        refused
    }

    /// Not 0 if some source is unknown or has moved, and if some source was last hit at another
    /// time.
    #[inline(always)]
    fn changes(&self, ports: &[u32], now: u16) -> (u64, u64) {
        let (mut moved, mut stale) = (0, 0);
        for (slot, port) in self.known.iter().zip(ports) {
            moved |= (slot >> 48 & u64::from(PORT_MASK)) ^ u64::from(*port) | u64::from(*slot == u64::MAX);
            stale |= (slot >> 48 ^ u64::from(now)) & u64::from(!PORT_MASK);
        }
        (moved, stale)
    }
}
