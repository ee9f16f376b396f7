//! A program with its packets, ready to be run by an engine or by hand.

use super::pool::Pool;
use super::workload::ByHand;
use anyhow::{Result, ensure};
use std::time::Instant;
use weir_baseline::{DROP, FLOOD};
use weir_ir::TableId;
use weir_switch::{Frame, OpResult, Switch, VECTOR, Verdict, Write, WriteResult, cycles};
use weir_table::memory::prefetch_bytes;
use weir_table::{EntryRef, NewEntry, TableOp};

/// Who runs the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Machine code that weir made of the program.
    Jit,
    /// The interpreter.
    Interp,
    /// The same work written by hand.
    Baseline,
    /// Machine code, while the control plane inserts an entry for every [`PACKETS_PER_INSERT`]
    /// packets.
    Inserting,
}

/// How seldom [`Side::Inserting`] inserts: at 100 cycles per packet some 25,000 times a second.
pub const PACKETS_PER_INSERT: usize = 1024;

/// Gives an entry that its table does not have yet.
pub type NewEntries = Box<dyn FnMut() -> Result<(TableId, NewEntry)>>;

impl Side {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Side::Jit => "jit",
            Side::Interp => "interp",
            Side::Baseline => "ceiling",
            Side::Inserting => "jit, inserting",
        }
    }
}

/// A switch, its packets, and perhaps the loop by hand.
pub struct Rig {
    /// Compiled, if [`Side::Jit`] is to run.
    pub switch: Switch,
    /// What [`Side::Baseline`] runs.
    pub by_hand: Option<ByHand>,
    /// The packets.
    pub pool: Pool,
    /// Packets at a time.
    pub vector: usize,
    /// What [`Side::Inserting`] inserts.
    pub new_entries: Option<NewEntries>,
    /// How many of these were inserted so far.
    pub inserted: u64,
    /// How many were not, or could not be taken out again.
    pub refused: u64,
    started: Instant,
}

/// Bytes of the packets of the next vector that are fetched.
const FETCHED: usize = 128;

/// Runs all packets, a vector at a time, and prefetches those of the next vector. All sides use
/// this. Returns the cycles.
fn drive<P>(
    ports: &[u32],
    packets: &mut [P],
    vector: usize,
    place: impl Fn(&P) -> (*const u8, usize),
    mut run: impl FnMut(&[u32], &mut [P]),
) -> u64 {
    let started = cycles();
    let mut begin = 0;
    while begin < packets.len() {
        let end = packets.len().min(begin + vector);
        let (now, next) = packets[begin..].split_at_mut(end - begin);
        for packet in next.iter().take(vector) {
            let (begin, bytes) = place(packet);
            prefetch_bytes(begin, bytes.min(FETCHED));
        }
        run(&ports[begin..end], now);
        begin = end;
    }
    cycles() - started
}

impl Rig {
    /// Everything in its place.
    pub fn new(switch: Switch, by_hand: Option<ByHand>, pool: Pool, vector: usize) -> Self {
        Rig {
            switch,
            by_hand,
            pool,
            vector,
            new_entries: None,
            inserted: 0,
            refused: 0,
            started: Instant::now(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// One round through the pool, from fresh packets: the cycles of the timed part.
    pub fn round(&mut self, side: Side) -> u64 {
        let now_ns = self.now_ns();
        self.round_at(side, now_ns, false, |_, _, _| {})
    }

    /// One round. If it is `watched`, `seen` gets the number of each packet, the port it leaves at
    /// (`None`: it was dropped or copied), and its final bytes.
    fn round_at(
        &mut self,
        side: Side,
        now_ns: u64,
        watched: bool,
        mut seen: impl FnMut(usize, Option<u32>, &[u8]),
    ) -> u64 {
        match side {
            Side::Jit => self.round_jit(now_ns, watched, false, &mut seen),
            Side::Inserting => self.round_jit(now_ns, watched, true, &mut seen),
            Side::Interp => self.round_interp(now_ns, &mut seen),
            Side::Baseline => self.round_baseline(now_ns, watched, &mut seen),
        }
    }

    /// A round by machine code. If `inserting`, an entry is inserted for every
    /// [`PACKETS_PER_INSERT`] packets. That the request is made just before is the controller's
    /// work and in no figure; neither is that afterwards all these entries are taken out again.
    fn round_jit(
        &mut self,
        now_ns: u64,
        watched: bool,
        inserting: bool,
        seen: &mut impl FnMut(usize, Option<u32>, &[u8]),
    ) -> u64 {
        let (ports, mut frames) = self.pool.fresh(|memory, start, length| {
            let frame = Frame::new(memory, start, length);
            frame.unwrap_or_else(|| unreachable!("places have `TAILROOM` behind packets"))
        });
        let mut verdicts = vec![Verdict::Gone; if watched { ports.len() } else { 0 }];
        let (switch, mut at) = (&mut self.switch, 0);
        let mut make = self.new_entries.as_mut().filter(|_| inserting);
        let (mut since, mut made, mut refused) = (0, 0, 0);
        let mut there = Vec::with_capacity(ports.len() / PACKETS_PER_INSERT);
        let took = drive(ports, &mut frames, self.vector, Frame::address, |ports, frames| {
            since += frames.len();
            if since >= PACKETS_PER_INSERT
                && let Some(make) = &mut make
            {
                since = 0;
                let started = cycles();
                let entry = std::hint::black_box(make());
                made += cycles() - started;
                let done =
                    entry.map(|(table, entry)| (table, switch.write(Write::Table(table, TableOp::Insert(entry)))));
                match done {
                    Ok((table, Ok(WriteResult::Table(OpResult::Handle(handle))))) => there.push((table, handle)),
                    _ => refused += 1,
                }
            }
            let verdict = std::hint::black_box(switch.forward(ports, frames, now_ns));
            if watched {
                verdicts[at..at + verdict.len()].copy_from_slice(verdict);
                at += verdict.len();
            }
            if !switch.pass_time(now_ns) {
                // Copies and the like, which whoever does I/O would send now.
                std::hint::black_box(switch.advance(now_ns));
            }
        });
        for (i, (verdict, frame)) in verdicts.iter().zip(&frames).enumerate() {
            let port = match verdict {
                Verdict::Transmit(port) => Some(*port),
                Verdict::Copies(_) | Verdict::Gone => None,
            };
            seen(i, port, frame.bytes());
        }
        self.inserted += there.len() as u64;
        self.refused += refused;
        for (table, handle) in there {
            let which = EntryRef::Handle(handle);
            let taken = self.switch.write(Write::Table(table, TableOp::Delete(which)));
            self.refused += u64::from(taken.is_err());
        }
        self.switch.load_tables();
        while self.switch.next_digest().is_some() {}
        took - made
    }

    fn round_interp(&mut self, now_ns: u64, seen: &mut impl FnMut(usize, Option<u32>, &[u8])) -> u64 {
        let (ports, mut packets) = self.pool.fresh(|memory, start, length| &memory[start..start + length]);
        let (switch, mut at) = (&mut self.switch, 0);
        let took = drive(
            ports,
            &mut packets,
            self.vector,
            |p| (p.as_ptr(), p.len()),
            |ports, packets| {
                for (port, packet) in ports.iter().zip(packets.iter()) {
                    switch.receive(*port, packet, now_ns);
                    match switch.drain().as_slice() {
                        [one] => seen(at, Some(one.port), &one.bytes),
                        _ => seen(at, None, packet),
                    }
                    at += 1;
                }
            },
        );
        while self.switch.next_digest().is_some() {}
        took
    }

    fn round_baseline(&mut self, now_ns: u64, watched: bool, seen: &mut impl FnMut(usize, Option<u32>, &[u8])) -> u64 {
        let (ports, mut packets) = self
            .pool
            .fresh(|memory, start, length| &mut memory[start..start + length]);
        let mut verdicts = vec![DROP; if watched { ports.len() } else { VECTOR }];
        let (by_hand, mut at) = (&mut self.by_hand, 0);
        let took = drive(
            ports,
            &mut packets,
            self.vector,
            |p| (p.as_ptr(), p.len()),
            |ports, packets| {
                let verdicts = &mut verdicts[at..at + packets.len()];
                match by_hand {
                    Some(ByHand::L2(switch)) => switch.forward(ports, packets, now_ns, verdicts),
                    Some(ByHand::Router(router)) => router.forward(ports, packets, verdicts),
                    None => {}
                }
                if watched {
                    at += packets.len();
                } else if std::hint::black_box(verdicts).contains(&FLOOD) {
                    // As above; by hand no copies are made.
                    std::hint::black_box(&mut *packets);
                }
            },
        );
        for (i, (verdict, packet)) in verdicts.iter().zip(&packets).enumerate() {
            seen(i, (![DROP, FLOOD].contains(verdict)).then_some(*verdict), packet);
        }
        took
    }

    /// What became of each packet on this side.
    fn outcome(&mut self, side: Side, now_ns: u64) -> Vec<Option<(u32, Vec<u8>)>> {
        let mut outcome = vec![None; self.pool.len()];
        self.round_at(side, now_ns, true, |i, port, bytes| {
            outcome[i] = port.map(|p| (p, bytes.to_vec()))
        });
        outcome
    }

    /// Warms up, and makes sure that all sides do the same to the packets. Gives the share of
    /// packets that leave.
    pub fn check(&mut self, sides: &[Side]) -> Result<f64> {
        let Some((first, others)) = sides.split_first() else {
            return Ok(0.0);
        };
        // Packets may carry the time.
        let now_ns = self.now_ns();
        let expected = self.outcome(*first, now_ns);
        for other in others {
            let found = self.outcome(*other, now_ns);
            let wrong = expected.iter().zip(&found).position(|(a, b)| a != b);
            if let Some(packet) = wrong {
                let show = |o: &Option<(u32, Vec<u8>)>| match o {
                    Some((port, bytes)) => format!("sends it to port {port} as {}", crate::packets::hex(bytes)),
                    None => "does not send it".to_owned(),
                };
                ensure!(
                    false,
                    "not the same work, so there is nothing to compare: packet {packet} ({}): {} {}, {} {}",
                    crate::packets::hex(self.pool.original(packet)),
                    first.name(),
                    show(&expected[packet]),
                    other.name(),
                    show(&found[packet])
                );
            }
        }
        Ok(expected.iter().flatten().count() as f64 / expected.len().max(1) as f64)
    }
}
