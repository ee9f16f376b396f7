//! Packets and bytes per port.

use std::collections::BTreeMap;
use std::ops::BitOr;
use weir_arch::Count;

/// Ports below this are counted by position.
const NEAR: usize = 1024;
/// What is above bytes in a word.
const ONE: u64 = 1 << 40;
/// After so many packets words might overflow, if each has as many bytes as a word takes at once.
const FULL: usize = 1 << 24;
/// Packets of more bytes are counted apart.
const LONGEST: u64 = 0xffff;

/// Packets and bytes of ports, in one word each until that is full: counting is one addition, and
/// the next one of the same port does not wait for two.
#[derive(Debug, Clone)]
pub(crate) struct PortCounts {
    words: Box<[u64; NEAR]>,
    /// What was in words before.
    taken: Box<[Count; NEAR]>,
    far: BTreeMap<u32, Count>,
    /// Packets that there is room for.
    room: usize,
}

impl Default for PortCounts {
    fn default() -> Self {
        PortCounts {
            words: Box::new([0; NEAR]),
            taken: Box::new([Count::default(); NEAR]),
            far: BTreeMap::new(),
            room: FULL - 1,
        }
    }
}

impl PortCounts {
    /// Counts packets: the port and bytes of each. Inlined into its caller, so that it is compiled
    /// for the caller's target features.
    #[inline(always)]
    pub fn add_all<P: Port>(&mut self, ports: &[P], bytes: &[u64]) {
        self.make_room(ports.len());
        if are_near(ports) && are_short(bytes) {
            let words = &mut *self.words;
            by_fours(ports, ports, bytes, |port, _, one| words[place(port)] += one);
        } else {
            for (port, bytes) in ports.iter().zip(bytes) {
                add(&mut self.taken, &mut self.far, port.number() as u32, 1, *bytes);
            }
        }
    }

    /// Counts packets in two places, ports of one and of the other. What is added is the same, so
    /// this is less than to count them one after the other.
    #[inline(always)]
    pub fn add_to_both<P: Port, Q: Port>(
        (counts, ports): (&mut Self, &[P]),
        (others, other_ports): (&mut Self, &[Q]),
        bytes: &[u64],
    ) {
        if !(are_near(ports) && are_near(other_ports) && are_short(bytes)) {
            counts.add_all(ports, bytes);
            others.add_all(other_ports, bytes);
            return;
        }
        counts.make_room(ports.len());
        others.make_room(other_ports.len());
        let (words, other_words) = (&mut *counts.words, &mut *others.words);
        by_fours(ports, other_ports, bytes, |port, other, one| {
            words[place(port)] += one;
            other_words[place(other)] += one;
        });
    }

    /// Empties words if they might overflow with so many packets more.
    #[inline(always)]
    fn make_room(&mut self, packets: usize) {
        if self.room < packets {
            self.take();
        }
        self.room = self.room.saturating_sub(packets);
    }

    /// Counts packets of one port.
    #[inline]
    pub fn add_many(&mut self, port: u32, packets: u64, bytes: u64) {
        add(&mut self.taken, &mut self.far, port, packets, bytes);
    }

    #[cold]
    fn take(&mut self) {
        for (port, (word, taken)) in self.words.iter_mut().zip(self.taken.iter_mut()).enumerate() {
            *taken = sum(*word, *taken);
            debug_assert!(port < NEAR);
            *word = 0;
        }
        self.room = FULL - 1;
    }

    pub fn get(&self, port: u32) -> Count {
        match (self.words.get(port as usize), self.taken.get(port as usize)) {
            (Some(word), Some(taken)) => sum(*word, *taken),
            _ => self.far.get(&port).copied().unwrap_or_default(),
        }
    }

    /// Ports that may have been counted at all, in order.
    pub fn ports(&self) -> impl Iterator<Item = u32> {
        (0..NEAR as u32).chain(self.far.keys().copied())
    }
}

/// The number of a port, as rows have it.
pub(crate) trait Port: Copy + Default + BitOr<Output = Self> {
    fn number(self) -> u64;
}

impl Port for u32 {
    #[inline(always)]
    fn number(self) -> u64 {
        self.into()
    }
}

impl Port for u64 {
    #[inline(always)]
    fn number(self) -> u64 {
        self
    }
}

/// The position of a near port.
#[inline(always)]
fn place<P: Port>(port: P) -> usize {
    port.number() as usize % NEAR
}

/// Calls with the two ports of each packet and with what it adds to their words; there are as many
/// of each. Four at a time, for counting one is so short that the loop around it would be a third
/// of it.
#[inline(always)]
fn by_fours<P: Port, Q: Port>(ports: &[P], others: &[Q], bytes: &[u64], mut add: impl FnMut(P, Q, u64)) {
    debug_assert!(ports.len() == others.len() && ports.len() == bytes.len());
    let (ports, last) = ports.as_chunks::<4>();
    let (others, last_others) = others.as_chunks::<4>();
    let (bytes, last_bytes) = bytes.as_chunks::<4>();
    for ((ports, others), bytes) in ports.iter().zip(others).zip(bytes) {
        for i in 0..4 {
            add(ports[i], others[i], ONE + bytes[i]);
        }
    }
    for ((port, other), bytes) in last.iter().zip(last_others).zip(last_bytes) {
        add(*port, *other, ONE + bytes);
    }
}

/// Whether all are counted by position. All bits of all of them: what is below a power of two is so
/// for each.
#[inline(always)]
fn are_near<P: Port>(ports: &[P]) -> bool {
    ports.iter().fold(P::default(), |all, port| all | *port).number() < NEAR as u64
}

/// Whether words take as many bytes.
#[inline(always)]
fn are_short(bytes: &[u64]) -> bool {
    bytes.iter().fold(0, |all, bytes| all | bytes) <= LONGEST
}

fn sum(word: u64, taken: Count) -> Count {
    Count {
        packets: taken.packets.wrapping_add(word / ONE),
        bytes: taken.bytes.wrapping_add(word % ONE),
    }
}

#[inline(never)]
fn add(taken: &mut [Count; NEAR], far: &mut BTreeMap<u32, Count>, port: u32, packets: u64, bytes: u64) {
    let count = match taken.get_mut(port as usize) {
        Some(count) => count,
        None => far.entry(port).or_default(),
    };
    count.packets = count.packets.wrapping_add(packets);
    count.bytes = count.bytes.wrapping_add(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_emptied_before_they_overflow() {
        let mut counts = PortCounts::default();
        let vector = [LONGEST; 64];
        let rounds = 3 * FULL / 128;
        for _ in 0..rounds {
            counts.add_all(&[7_u32; 64], &vector);
        }
        let packets = 64 * rounds as u64;
        let bytes = packets * LONGEST;
        assert_eq!(counts.get(7), Count { packets, bytes });
    }

    #[test]
    fn packets_are_counted_in_both_places_whatever_their_ports_and_lengths() {
        let (mut counts, mut others) = (PortCounts::default(), PortCounts::default());
        let cases: [([u32; 5], [u64; 5], [u64; 5]); 4] = [
            ([1, 2, 1, 2, 1], [3, 3, 4, 3, 3], [60, 61, 62, 63, 64]),
            ([1, 70_000, 1, 2, 1], [3, 3, 4, 3, 3], [60, 61, 62, 63, 64]),
            ([1, 2, 1, 2, 1], [3, 3, 4, 70_000, 3], [60, 61, 62, 63, 64]),
            ([1, 2, 1, 2, 1], [3, 3, 4, 3, 3], [60, 1 << 20, 62, 63, 64]),
        ];
        for (ports, other_ports, bytes) in cases {
            PortCounts::add_to_both((&mut counts, &ports), (&mut others, &other_ports), &bytes);
        }
        let count = |packets, bytes| Count { packets, bytes };
        let long = 1 << 20;
        assert_eq!(
            [1, 2, 70_000].map(|p| counts.get(p)),
            [
                count(12, 4 * (60 + 62 + 64)),
                count(7, 3 * 61 + long - 61 + 4 * 63),
                count(1, 61),
            ]
        );
        assert_eq!(
            [3, 4, 70_000].map(|p| others.get(p)),
            [
                count(15, 4 * (60 + 64) + 3 * 63 + 3 * 61 + long),
                count(4, 4 * 62),
                count(1, 63),
            ]
        );
    }

    #[test]
    fn words_of_both_are_emptied_before_they_overflow() {
        let (mut counts, mut others) = (PortCounts::default(), PortCounts::default());
        // Their room ends at different times.
        others.add_all(&[9_u64; 64], &[LONGEST; 64]);
        let rounds = 3 * FULL / 128;
        for _ in 0..rounds {
            PortCounts::add_to_both((&mut counts, &[7_u32; 64]), (&mut others, &[8_u64; 64]), &[LONGEST; 64]);
        }
        let packets = 64 * rounds as u64;
        let all = Count {
            packets,
            bytes: packets * LONGEST,
        };
        assert_eq!((counts.get(7), others.get(8)), (all, all));
    }

    #[test]
    fn far_ports_and_long_packets_are_counted() {
        let mut counts = PortCounts::default();
        counts.add_all(&[5_u32, 70_000, 5], &[60, 61, 1 << 20]);
        counts.add_many(5, 2, 100);
        let far = Count { packets: 1, bytes: 61 };
        let near = Count {
            packets: 4,
            bytes: 160 + (1 << 20),
        };
        assert_eq!(
            (counts.get(5), counts.get(70_000), counts.get(6)),
            (near, far, Count::default())
        );
        assert_eq!(counts.ports().last(), Some(70_000));
    }
}
