//! The packets in memory: each in a place of its own, with room before and after.

use super::random::Random;
use weir_switch::TAILROOM;

/// A packet as it comes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// The port it comes in at.
    pub port: u32,
    /// What it is.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// A packet at a port.
    pub fn new(port: u32, bytes: Vec<u8>) -> Self {
        Packet { port, bytes }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;
/// Lines of a place at least. The number is odd, so that places do not fall on the same few sets of
/// the cache.
const LINES: usize = 33;

/// Packets with their originals. Their places are handed out in an order that has nothing to do
/// with where they lie, as those of a device's ring after a while.
pub struct Pool {
    memory: Vec<u8>,
    stride: usize,
    start: usize,
    /// The originals, one behind the other.
    originals: Vec<u8>,
    /// Where an original begins; one more than there are packets.
    begins: Vec<usize>,
    /// The packet that lies in a place.
    packet_at: Vec<u32>,
    ports: Vec<u32>,
}

/// Bytes from the start of one packet's place to the next.
fn stride(start: usize, longest: usize) -> usize {
    let lines = (start + longest + TAILROOM).div_ceil(LINE).max(LINES) | 1;
    lines * LINE
}

/// Bytes of memory that a pool takes per packet: its place, its original, and the packet that it is
/// made from.
pub fn bytes_per_packet(size: usize) -> usize {
    stride(LINE, size) + 2 * size
}

impl Pool {
    /// Packets with at least `headroom` bytes before each and [`TAILROOM`] after, in huge pages if
    /// the system has them. Each begins with a cache line.
    pub fn new(packets: &[Packet], headroom: usize) -> Self {
        let longest = packets.iter().map(|p| p.bytes.len()).max().unwrap_or(0);
        let start = headroom.max(LINE).next_multiple_of(LINE);
        let stride = stride(start, longest);
        let mut begins = vec![0];
        let mut originals = Vec::with_capacity(packets.iter().map(|p| p.bytes.len()).sum());
        for packet in packets {
            originals.extend_from_slice(&packet.bytes);
            begins.push(originals.len());
        }
        let mut packet_at: Vec<u32> = (0..packets.len() as u32).collect();
        Random::new(packets.len() as u64).shuffle(&mut packet_at);
        let mut memory = weir_table::memory::huge_vec(stride * packets.len() + LINE, 0u8);
        let aligned = memory.as_ptr().align_offset(LINE).min(LINE);
        memory.truncate(stride * packets.len() + aligned);
        Pool {
            memory,
            stride,
            start,
            originals,
            begins,
            packet_at,
            ports: packets.iter().map(|p| p.port).collect(),
        }
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// The original of a packet.
    pub fn original(&self, packet: usize) -> &[u8] {
        &self.originals[self.begins[packet]..self.begins[packet + 1]]
    }

    /// Makes all packets what they were, and gives for each, in order, what `make` makes of its
    /// memory, where it begins there, and its length. Also the ports they come in at.
    pub fn fresh<'a, T>(&'a mut self, mut make: impl FnMut(&'a mut [u8], usize, usize) -> T) -> (&'a [u32], Vec<T>) {
        let skip = self.memory.len() - self.stride * self.ports.len();
        let places = self.memory[skip..].chunks_exact_mut(self.stride);
        let mut in_order: Vec<Option<T>> = (0..self.ports.len()).map(|_| None).collect();
        for (place, packet) in places.zip(&self.packet_at) {
            let packet = *packet as usize;
            let original = &self.originals[self.begins[packet]..self.begins[packet + 1]];
            place[self.start..self.start + original.len()].copy_from_slice(original);
            in_order[packet] = Some(make(place, self.start, original.len()));
        }
        (&self.ports, in_order.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_what_they_were_in_places_of_their_own() {
        let packets: Vec<Packet> = (0..100u8)
            .map(|i| Packet {
                port: i.into(),
                bytes: vec![i; 60 + usize::from(i)],
            })
            .collect();
        let mut pool = Pool::new(&packets, 100);
        assert_eq!((pool.len(), pool.stride % 128), (100, 64));
        for _ in 0..2 {
            let (ports, frames) = pool.fresh(|memory, start, length| {
                assert!(start >= 100 && start + length + TAILROOM <= memory.len());
                &mut memory[start..start + length]
            });
            assert_eq!(ports[7], 7);
            for (frame, packet) in frames.into_iter().zip(&packets) {
                assert_eq!(frame.as_ptr() as usize % LINE, 0);
                assert_eq!(frame, packet.bytes);
                frame.fill(0xff);
            }
        }
    }
}
