//! `l2_switch.p4` by hand.

use crate::exact::{Exact, MISS};
use crate::simd::{Finder, Portable};
use crate::{Count, DROP, PORTS, PortCounts, VECTOR, port_counts};

/// Why a frame was refused: positions of [`L2Switch::refused`].
mod refusal {
    pub const TOO_SHORT: usize = 0;
    pub const GROUP_SOURCE: usize = 1;
    pub const LINK_LOCAL: usize = 2;
    pub const BACK: usize = 3;
}

/// The switch. Sources and destinations have a table each, as in the program.
#[derive(Clone)]
pub struct L2Switch {
    sources: Exact,
    destinations: Exact,
    /// When a source was last seen, in steps of 2²⁰ ns, by bucket.
    seen: Vec<[u32; 8]>,
    received: PortCounts,
    sent: PortCounts,
    /// Too short, group address as source, link-local destination, back where it came from.
    pub refused: [Count; 4],
    /// Frames of stations that are unknown or have moved.
    pub to_learn: u64,
    wide: bool,
}

/// What the first stage leaves for the second.
#[derive(Clone, Copy, Default)]
struct Work {
    source: u64,
    destination: u64,
    source_bucket: u32,
    destination_bucket: u32,
}

impl L2Switch {
    /// A switch that knows stations and their ports.
    ///
    /// # Panics
    /// A port is not below [`PORTS`], or an address has more than 48 bits.
    #[must_use]
    pub fn new(stations: &[(u64, u16)]) -> Self {
        assert!(stations.iter().all(|s| usize::from(s.1) < PORTS), "ports have 9 bits");
        let sources = Exact::new(stations);
        #[cfg(target_arch = "x86_64")]
        let wide = crate::simd::has_avx512();
        #[cfg(not(target_arch = "x86_64"))]
        let wide = false;
        L2Switch {
            seen: crate::huge_vec(sources.buckets(), [0; 8]),
            destinations: sources.clone(),
            sources,
            received: port_counts(),
            sent: port_counts(),
            refused: [Count::default(); 4],
            to_learn: 0,
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

    /// Runs up to [`VECTOR`] frames: frame `i` came in at `ports[i]` and goes to `fates[i]`.
    ///
    /// # Panics
    /// More frames than [`VECTOR`], or the slices differ in length.
    pub fn forward(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, fates: &mut [u32]) {
        assert!(frames.len() <= VECTOR && ports.len() == frames.len() && fates.len() == frames.len());
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `wide` says that the processor has these features.
            return unsafe { self.forward_wide(ports, frames, now_ns, fates) };
        }
        debug_assert!(!self.wide);
        self.stages::<Portable>(ports, frames, now_ns, fates);
    }

    /// # Safety
    /// The processor must have these features.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,bmi1,bmi2")]
    unsafe fn forward_wide(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, fates: &mut [u32]) {
        self.stages::<crate::simd::Wide>(ports, frames, now_ns, fates);
    }

    #[inline(always)]
    fn stages<F: Finder>(&mut self, ports: &[u32], frames: &mut [&mut [u8]], now_ns: u64, fates: &mut [u32]) {
        let mut work = [Work::default(); VECTOR];
        for (((frame, port), fate), work) in frames.iter().zip(ports).zip(fates.iter_mut()).zip(&mut work) {
            self.received[*port as usize % PORTS].add(frame.len());
            *fate = self.headers(frame, work);
        }
        let now = (now_ns >> 20) as u32;
        for (((frame, port), fate), work) in frames.iter().zip(ports).zip(fates.iter_mut()).zip(&work) {
            if *fate != DROP {
                *fate = self.lookups::<F>(frame.len(), *port, work, now);
            }
        }
    }

    #[inline(always)]
    fn headers(&mut self, frame: &[u8], work: &mut Work) -> u32 {
        let Some(header) = frame.first_chunk::<14>() else {
            self.refused[refusal::TOO_SHORT].add(frame.len());
            return DROP;
        };
        let [d0, d1, d2, d3, d4, d5, s0, s1, ..] = *header;
        let [.., s2, s3, s4, s5, _, _] = *header;
        let destination = u64::from_be_bytes([d0, d1, d2, d3, d4, d5, s0, s1]) >> 16;
        let source = u64::from_be_bytes([d4, d5, s0, s1, s2, s3, s4, s5]) & crate::simd::KEY;
        if s0 & 1 == 1 {
            self.refused[refusal::GROUP_SOURCE].add(frame.len());
            return DROP;
        }
        if destination >> 4 == 0x018_0C20_0000 {
            self.refused[refusal::LINK_LOCAL].add(frame.len());
            return DROP;
        }
        let source_bucket = self.sources.bucket(source);
        let destination_bucket = self.destinations.bucket(destination);
        self.sources.prefetch(source_bucket);
        self.destinations.prefetch(destination_bucket);
        crate::simd::prefetch(&self.seen[source_bucket & (self.seen.len() - 1)]);
        *work = Work {
            source,
            destination,
            source_bucket: source_bucket as u32,
            destination_bucket: destination_bucket as u32,
        };
        0
    }

    #[inline(always)]
    fn lookups<F: Finder>(&mut self, length: usize, port: u32, work: &Work, now: u32) -> u32 {
        let (known, slot) = self.sources.find::<F>(work.source_bucket as usize, work.source);
        let seen = &mut self.seen[slot.bucket & (self.sources.buckets() - 1)][slot.lane & 7];
        if *seen != now && known != MISS {
            *seen = now;
        }
        self.to_learn += u64::from(u32::from(known) != port);
        let (out, _) = self
            .destinations
            .find::<F>(work.destination_bucket as usize, work.destination);
        if out == MISS {
            return DROP;
        }
        if u32::from(out) == port {
            self.refused[refusal::BACK].add(length);
            return DROP;
        }
        self.sent[usize::from(out) % PORTS].add(length);
        out.into()
    }
}
