//! Counters.

/// Ports are numbers below this.
pub const PORTS: usize = 512;

/// Packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Count {
    #[inline(always)]
    pub(crate) fn add(&mut self, bytes: usize) {
        self.packets += 1;
        self.bytes += bytes as u64;
    }
}

/// Lookups of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lookups {
    /// That found an entry.
    pub hits: u64,
    /// That found none.
    pub misses: u64,
}

impl Lookups {
    #[inline(always)]
    pub(crate) fn add(&mut self, lookups: u64, hits: u64) {
        self.hits += hits;
        self.misses += lookups - hits;
    }

    /// One of them does not count.
    pub(crate) fn take_back(&mut self, hit: bool) {
        if hit {
            self.hits -= 1;
        } else {
            self.misses -= 1;
        }
    }
}

/// What is above bytes in a word of [`PortCounts`].
const ONE: u64 = 1 << 40;
/// After so many packets the words might overflow, if each has 64 KiB.
const FULL: usize = 1 << 24;

/// Packets and bytes per port, in one word each until that is full: counting is one addition. The switch counts
/// the same way in a type of its own: a ceiling shares nothing with what it is compared to, on purpose, but how memory
/// is asked for and fetched ([`weir_table::memory`]). What makes one of the two slow, or wrong, does so to that one.
#[derive(Clone)]
pub(crate) struct PortCounts {
    words: Box<[u64; PORTS]>,
    taken: Box<[Count; PORTS]>,
    room: usize,
}

impl PortCounts {
    pub(crate) fn new() -> Self {
        PortCounts {
            words: Box::new([0; PORTS]),
            taken: Box::new([Count::default(); PORTS]),
            room: FULL - 1,
        }
    }

    /// Makes sure that so many packets can be counted.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, packets: usize) {
        if self.room < packets {
            self.take();
        }
        self.room -= packets;
    }

    #[cold]
    fn take(&mut self) {
        for port in 0..PORTS {
            self.taken[port] = self.get(port);
            self.words[port] = 0;
        }
        self.room = FULL - 1;
    }

    /// For counting in a loop, and only what there is room for: what that needs at hand.
    #[inline(always)]
    pub(crate) fn words(&mut self) -> PortWords<'_> {
        PortWords(&mut self.words)
    }

    /// Counts a packet of less than 64 KiB, for which there is room.
    pub(crate) fn add(&mut self, port: u32, bytes: usize) {
        self.words().add(port, bytes);
    }

    /// The packet was not to be counted.
    pub(crate) fn take_back(&mut self, port: u32, bytes: usize) {
        self.words[port as usize % PORTS] -= ONE | bytes as u64 & 0xffff;
    }

    pub(crate) fn get(&self, port: usize) -> Count {
        let (word, taken) = (self.words[port % PORTS], self.taken[port % PORTS]);
        Count {
            packets: taken.packets + (word >> ONE.trailing_zeros()),
            bytes: taken.bytes + word % ONE,
        }
    }
}

/// Counters of ports at hand.
pub(crate) struct PortWords<'a>(&'a mut [u64; PORTS]);

impl PortWords<'_> {
    /// Counts a packet of less than 64 KiB.
    #[inline(always)]
    pub(crate) fn add(&mut self, port: u32, bytes: usize) {
        self.0[port as usize % PORTS] += ONE | bytes as u64 & 0xffff;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_emptied_before_they_overflow() {
        let mut counts = PortCounts::new();
        for _ in 0..3 {
            counts.reserve(FULL / 2);
            counts.words[7] += (FULL / 2) as u64 * (ONE | 0xffff);
        }
        counts.reserve(2);
        counts.add(7, 60);
        counts.add(7, 61);
        let packets = 3 * FULL as u64 / 2;
        assert_eq!(
            counts.get(7),
            Count {
                packets: packets + 2,
                bytes: packets * 0xffff + 121
            }
        );
    }
}
