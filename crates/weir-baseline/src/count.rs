//! Counters of packets and bytes, and of lookups.

/// Port numbers are below this.
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
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found none.
    pub misses: u64,
}

impl Lookups {
    #[inline(always)]
    pub(crate) fn add(&mut self, lookups: u64, hits: u64) {
        self.hits += hits;
        self.misses += lookups - hits;
    }

    /// Removes a lookup that should not count.
    pub(crate) fn uncount(&mut self, hit: bool) {
        if hit {
            self.hits -= 1;
        } else {
            self.misses -= 1;
        }
    }
}

/// One packet, in the bits above the bytes in a word of [`PortCounts`].
const ONE: u64 = 1 << 40;
/// After this many packets the words might overflow, if each packet has 64 KiB.
const MAX_UNSPILLED: usize = 1 << 24;

/// Packets and bytes per port, packed in one word each, so that counting is one addition. Words are
/// spilled to wider counts before they overflow. The switch counts the same way in a type of its
/// own. On purpose the baseline shares no code with it but the allocation and prefetching of memory
/// ([`weir_table::memory`]): a bug or a slowdown in one must not affect both.
#[derive(Clone)]
pub(crate) struct PortCounts {
    words: Box<[u64; PORTS]>,
    spilled: Box<[Count; PORTS]>,
    remaining: usize,
}

impl PortCounts {
    pub(crate) fn new() -> Self {
        PortCounts {
            words: Box::new([0; PORTS]),
            spilled: Box::new([Count::default(); PORTS]),
            remaining: MAX_UNSPILLED - 1,
        }
    }

    /// Makes room for counting this many packets.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, packets: usize) {
        if self.remaining < packets {
            self.spill();
        }
        self.remaining -= packets;
    }

    #[cold]
    fn spill(&mut self) {
        for port in 0..PORTS {
            self.spilled[port] = self.get(port);
            self.words[port] = 0;
        }
        self.remaining = MAX_UNSPILLED - 1;
    }

    /// A view for counting in a loop, as many packets as were reserved.
    #[inline(always)]
    pub(crate) fn words(&mut self) -> PortWords<'_> {
        PortWords(&mut self.words)
    }

    /// Counts a packet of less than 64 KiB, which was reserved.
    pub(crate) fn add(&mut self, port: u32, bytes: usize) {
        self.words().add(port, bytes);
    }

    /// Removes a packet that should not count.
    pub(crate) fn uncount(&mut self, port: u32, bytes: usize) {
        self.words[port as usize % PORTS] -= ONE | bytes as u64 & 0xffff;
    }

    pub(crate) fn get(&self, port: usize) -> Count {
        let (word, spilled) = (self.words[port % PORTS], self.spilled[port % PORTS]);
        Count {
            packets: spilled.packets + (word >> ONE.trailing_zeros()),
            bytes: spilled.bytes + word % ONE,
        }
    }
}

/// A view of the words of [`PortCounts`].
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
    fn words_are_spilled_before_they_overflow() {
        let mut counts = PortCounts::new();
        for _ in 0..3 {
            counts.reserve(MAX_UNSPILLED / 2);
            counts.words[7] += (MAX_UNSPILLED / 2) as u64 * (ONE | 0xffff);
        }
        counts.reserve(2);
        counts.add(7, 60);
        counts.add(7, 61);
        let packets = 3 * MAX_UNSPILLED as u64 / 2;
        assert_eq!(
            counts.get(7),
            Count {
                packets: packets + 2,
                bytes: packets * 0xffff + 121
            }
        );
    }
}
