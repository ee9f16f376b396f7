//! Packets that stay within the switch: those for the traffic manager, and those that reenter
//! ingress.
//!
//! While compiled code runs, these are vectors of their own: of packets for egress, and of packets
//! at ingress once more. They are processed in order of arrival, so that a recirculated packet is
//! after those it came with, as on a chip. [`Passage::of`] says from which received packet a sent
//! one stems.

pub(in crate::fast) mod running;

use crate::switch::Output;
use std::collections::VecDeque;
use weir_arch::{Handling, PRIORITIES};
use weir_jit::{TAILROOM, VECTOR};

/// Memory of packets that is kept for others.
const SPARE: usize = 4 * VECTOR;
/// The longest memory of outputs that is kept, in bytes.
const LONGEST_SPARE: usize = 16 * 1024;

/// The origin of a packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passage {
    /// The index of the received packet from which it stems.
    pub of: usize,
    /// Its time.
    pub time_ns: u64,
    /// How often it has been at ingress before.
    pub passes: u32,
    /// The port at which it entered ingress.
    pub ingress_port: u32,
    /// It has reentered ingress.
    pub is_reentry: bool,
    /// Bytes of a generated packet when it entered ingress; 0 for any other.
    pub generated_bytes: u32,
}

/// A packet that has another pass or egress before it.
#[derive(Debug, Clone)]
struct Packet {
    passage: Passage,
    /// Of one for egress the port it goes to, and the metadata that egress receives.
    port: u32,
    handling: Handling,
    /// It is behind [`Onward::headroom`].
    memory: Vec<u8>,
    length: usize,
}

/// Packets in flight within the switch while compiled code runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Onward {
    /// Compiled code runs: what would wait is put here.
    is_open: bool,
    /// That is so of packets for egress, too.
    has_egress: bool,
    /// And of those that recirculate.
    recirculates: bool,
    headroom: usize,
    /// Egress runs that a packet that was received may cause, and how many each has.
    limit: u64,
    spent: Vec<u64>,
    /// The packet that the driver has.
    now: Passage,
    ingress: VecDeque<Packet>,
    egress: VecDeque<Packet>,
    /// Of each packet that was received how many there are of it in `egress`.
    waits: Vec<u32>,
    leaving: Vec<(usize, Output)>,
    spare: Vec<Vec<u8>>,
    /// Memory of outputs that were given back.
    sent: Vec<Vec<u8>>,
}

impl Onward {
    /// Whether packets for egress go on here.
    pub(crate) fn takes_egress(&self) -> bool {
        self.is_open && self.has_egress
    }

    /// Whether packets that come in again at ports do.
    pub(crate) fn takes_ingress(&self) -> bool {
        self.is_open
    }

    /// Whether packets that recirculate do.
    pub(crate) fn takes_recirculated(&self) -> bool {
        self.is_open && self.recirculates
    }

    fn packet(&mut self, passage: Passage, port: u32, bytes: &[u8]) -> Packet {
        let mut memory = self.spare.pop().unwrap_or_default();
        let needed = self.headroom + bytes.len() + TAILROOM;
        if memory.len() < needed {
            memory.resize(needed, 0);
        }
        memory[self.headroom..][..bytes.len()].copy_from_slice(bytes);
        Packet {
            passage,
            port,
            handling: Handling::default(),
            memory,
            length: bytes.len(),
        }
    }

    /// A packet comes in at a port again, after this number of passes.
    pub(crate) fn push_ingress(&mut self, port: u32, passes: u32, bytes: &[u8], from: &Passage) {
        let passage = Passage {
            passes,
            ingress_port: port,
            is_reentry: true,
            generated_bytes: 0,
            ..*from
        };
        let packet = self.packet(passage, port, bytes);
        self.ingress.push_back(packet);
    }

    /// A packet that a generator has made.
    pub(crate) fn push_generated(&mut self, port: u32, bytes: &[u8], from: &Passage) {
        let passage = Passage {
            generated_bytes: bytes.len() as u32,
            ..*from
        };
        let packet = self.packet(passage, port, bytes);
        self.ingress.push_back(packet);
    }

    /// As [`Self::push_ingress`], of what the driver has.
    pub(crate) fn push_of_driver(&mut self, port: u32, passes: u32, bytes: &[u8]) {
        let from = self.now;
        self.push_ingress(port, passes, bytes, &from);
    }

    fn push_egress(&mut self, port: u32, handling: Handling, bytes: &[u8], from: &Passage) {
        let mut packet = self.packet(*from, port, bytes);
        packet.handling = handling;
        if let Some(waits) = self.waits.get_mut(from.of) {
            *waits += 1;
        }
        self.egress.push_back(packet);
    }

    /// The next packet of a queue; for egress only one that bypasses it where no packet is `before`
    /// it.
    fn pop(&mut self, is_egress: bool, before: usize) -> Option<Packet> {
        if !is_egress {
            return self.ingress.pop_front();
        }
        let packet = self
            .egress
            .pop_front_if(|p| !p.handling.bypasses_egress || before == 0)?;
        if let Some(waits) = self.waits.get_mut(packet.passage.of) {
            *waits -= 1;
        }
        Some(packet)
    }

    /// A packet that was taken for egress is the next once more.
    fn put_back(&mut self, packet: Packet) {
        if let Some(waits) = self.waits.get_mut(packet.passage.of) {
            *waits += 1;
        }
        self.egress.push_front(packet);
    }

    /// Nothing waits for egress.
    fn clear_egress(&mut self) {
        self.egress.clear();
        self.waits.fill(0);
    }

    /// Packets for egress that came of one of those that were received.
    fn waits_of(&self, of: usize) -> usize {
        self.waits.get(of).map_or(0, |many| *many as usize)
    }

    /// Those of them for a queue of a port.
    fn waits_at(&self, of: usize, port: u32, queue: u32) -> usize {
        let of_queue = |queue: u32| queue as usize % PRIORITIES;
        let same = |p: &&Packet| (p.passage.of, p.port, of_queue(p.handling.queue)) == (of, port, of_queue(queue));
        self.egress.iter().filter(same).count()
    }

    fn keep(&mut self, memory: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(memory);
        }
    }

    fn send(&mut self, port: u32, bytes: &[u8], passage: &Passage) {
        let output = self.output(port, bytes, passage);
        self.leaving.push((passage.of, output));
    }

    /// The output of a port.
    #[inline]
    pub(crate) fn output(&mut self, port: u32, bytes: &[u8], passage: &Passage) -> Output {
        let mut memory = self.sent.pop().unwrap_or_default();
        memory.extend_from_slice(bytes);
        Output {
            port,
            bytes: memory,
            time_ns: passage.time_ns,
        }
    }

    /// Memory for further outputs.
    pub(crate) fn recycle(&mut self, outputs: impl Iterator<Item = Output>) {
        for mut output in outputs {
            if self.sent.len() < SPARE && output.bytes.capacity() <= LONGEST_SPARE {
                output.bytes.clear();
                self.sent.push(output.bytes);
            }
        }
    }
}
