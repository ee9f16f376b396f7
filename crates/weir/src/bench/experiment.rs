//! A program with tables of random entries, and packets that hit them: what latency models are
//! trained on.

use super::fill::{Filler, Match};
use super::measure::{self, Plan};
use super::pool::{Packet, Pool};
use super::random::Random;
use super::rig::{Rig, Side};
use crate::latency::counts::{self, TableCount};
use anyhow::{Result, ensure};
use std::collections::HashSet;
use std::sync::Arc;
use weir_interp::Interpreter;
use weir_ir::{MatchKind, Program};
use weir_switch::{Switch, SwitchConfig};

/// Packets in memory.
const POOL: usize = 4096;
/// Packets at a time.
const VECTOR: usize = 32;
/// Share of the median by which more runs may change it.
const STABLE: f64 = 0.01;
/// How often the runs are repeated at most.
const MAX_ROUNDS: usize = 6;
/// Bits of a key that random values have at most.
const RANDOM_BITS: u32 = 64;

/// A key of a table, and where packets have it.
#[derive(Debug, Clone, Copy)]
pub struct KeyAt {
    /// The first bit, from the start of the packet.
    pub bit: usize,
    /// Its width.
    pub width: u32,
    /// How it is matched.
    pub kind: MatchKind,
    /// The value of all entries, where it must be that; without it each has one by chance.
    pub value: Option<u64>,
    /// Different masks, or prefix lengths, that entries have.
    pub masks: u32,
}

/// Entries of a table.
#[derive(Debug, Clone)]
pub struct TableFill {
    /// Its name.
    pub table: String,
    /// The action of all entries.
    pub action: &'static str,
    /// The action's data.
    pub data: Vec<u64>,
    /// Its keys.
    pub keys: Vec<KeyAt>,
    /// Number of entries.
    pub entries: usize,
    /// Packets have the keys of entries. Otherwise keys are as the template, or what tables after
    /// this one need.
    pub is_hit: bool,
}

/// What is measured.
pub struct Experiment {
    /// The program, optimised.
    pub program: Arc<Program>,
    /// Its tables.
    pub fills: Vec<TableFill>,
    /// The packet that all packets are made of.
    pub template: Vec<u8>,
    /// The port that they come in at.
    pub port: u32,
}

/// A key of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Value {
    value: u64,
    /// Bits that need not match, of an LPM or ternary key.
    free: u64,
}

impl Experiment {
    /// The median of the cycles per packet: of as many runs as the plan says, and again as many
    /// until they change the median by less than [`STABLE`], at most [`MAX_ROUNDS`] times. Also
    /// what the tables hold.
    ///
    /// # Errors
    /// The tables cannot be filled, the program cannot be compiled, or most packets are dropped.
    pub fn run(&self, plan: Plan) -> Result<(f64, Vec<TableCount>)> {
        let mut rig = self.rig()?;
        let counts = counts::of(&rig.switch)?;
        let sent = rig.check(&[Side::Jit])?;
        ensure!(
            sent > 0.99,
            "only {:.0} % of the packets leave the program",
            sent * 100.0
        );
        Ok((stable_median(&mut rig, plan), counts))
    }

    fn rig(&self) -> Result<Rig> {
        let engine = Arc::new(Interpreter::new(Arc::clone(&self.program)));
        let mut switch = Switch::with_engine(engine, SwitchConfig::default())?;
        let mut random = Random::new(2024);
        let mut entries = Vec::with_capacity(self.fills.len());
        for fill in &self.fills {
            entries.push(fill.fill(&mut switch, &mut random)?);
        }
        let packet = |random: &mut Random| {
            let mut bytes = self.template.clone();
            for (fill, entries) in self.fills.iter().zip(&entries) {
                if fill.is_hit && !entries.is_empty() {
                    fill.put(&mut bytes, &entries[random.below(entries.len())], random);
                }
            }
            Packet::new(self.port, bytes)
        };
        let packets: Vec<Packet> = (0..POOL).map(|_| packet(&mut random)).collect();
        switch.compile()?;
        switch.load_tables();
        let pool = Pool::new(&packets, switch.headroom());
        Ok(Rig::new(switch, None, pool, VECTOR))
    }
}

impl TableFill {
    fn fill(&self, switch: &mut Switch, random: &mut Random) -> Result<Vec<Vec<Value>>> {
        let mut filler = Filler::new(switch, &self.table, self.action)?;
        let mut seen = HashSet::new();
        let mut entries = Vec::with_capacity(self.entries);
        let mut attempts = 0;
        while entries.len() < self.entries {
            attempts += 1;
            ensure!(
                attempts < 100 * self.entries + 1000,
                "{} has no room for {} entries",
                self.table,
                self.entries
            );
            let entry: Vec<Value> = self.keys.iter().map(|key| key.random(random)).collect();
            if !seen.insert(entry.clone()) {
                continue;
            }
            let keys: Vec<Match> = self
                .keys
                .iter()
                .zip(&entry)
                .map(|(key, value)| key.matching(*value))
                .collect();
            let priority = if self.keys.iter().any(|k| k.kind == MatchKind::Ternary) {
                1 + entries.len() as u32
            } else {
                0
            };
            filler.add_rule(priority, &keys, &self.data)?;
            entries.push(entry);
        }
        Ok(entries)
    }

    fn put(&self, packet: &mut [u8], entry: &[Value], random: &mut Random) {
        for (key, value) in self.keys.iter().zip(entry) {
            put_bits(packet, key.bit, key.width, value.value | (random.next() & value.free));
        }
    }
}

impl KeyAt {
    /// A value of at most [`RANDOM_BITS`] bits.
    fn random(&self, random: &mut Random) -> Value {
        let width = self.width.min(RANDOM_BITS);
        let mask = u64::MAX >> (64 - width);
        let free = match self.kind {
            MatchKind::Lpm => (1_u64 << random.below((self.masks.min(width) as usize).max(1))) - 1,
            MatchKind::Ternary => {
                let number = random.below((self.masks as usize).max(1));
                Random::new(number as u64).next() & Random::new(!number as u64).next() & mask
            }
            MatchKind::Exact | MatchKind::Range | MatchKind::Optional | MatchKind::Selector => 0,
        };
        let value = self.value.unwrap_or_else(|| random.next());
        Value {
            value: value & mask & !free,
            free,
        }
    }

    fn matching(&self, value: Value) -> Match {
        match self.kind {
            MatchKind::Lpm => Match::Prefix(value.value, self.width - value.free.count_ones()),
            MatchKind::Ternary => Match::Masked(value.value, value.free),
            MatchKind::Exact | MatchKind::Range | MatchKind::Optional | MatchKind::Selector => Match::Is(value.value),
        }
    }
}

/// Writes the low bits of a value into a field of a packet, most significant bit first; bits of
/// the field beyond 64 become 0.
fn put_bits(packet: &mut [u8], first: usize, width: u32, value: u64) {
    for i in 0..width as usize {
        let from_right = width as usize - 1 - i;
        let bit = if from_right < 64 { (value >> from_right) & 1 } else { 0 };
        let (byte, shift) = ((first + i) / 8, 7 - (first + i) % 8);
        if let Some(place) = packet.get_mut(byte) {
            *place = (*place & !(1 << shift)) | (bit as u8) << shift;
        }
    }
}

/// Measures until the median is stable.
fn stable_median(rig: &mut Rig, plan: Plan) -> f64 {
    let mut runs = Vec::new();
    let mut before = f64::INFINITY;
    for _ in 0..MAX_ROUNDS {
        let (measured, _) = measure::measure(std::slice::from_mut(rig), &[(0, Side::Jit)], plan);
        runs.extend(measured.into_iter().flat_map(|m| m.runs));
        let median = measure::median(&runs);
        if (median - before).abs() < STABLE * median {
            return median;
        }
        before = median;
    }
    before
}

/// The median cycles per packet of a bundled program with its own workload, and what its tables
/// hold.
pub fn bundled(case: &super::case::Case, plan: Plan) -> Result<(f64, Vec<TableCount>)> {
    let mut rig = case.rig(&[Side::Jit])?;
    rig.check(&[Side::Jit])?;
    let counts = counts::of(&rig.switch)?;
    Ok((stable_median(&mut rig, plan), counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_written_where_fields_are() {
        let mut packet = [0xff_u8; 4];
        put_bits(&mut packet, 12, 12, 0x5a5);
        assert_eq!(packet, [0xff, 0xf5, 0xa5, 0xff]);
        put_bits(&mut packet, 0, 4, 0);
        assert_eq!(packet[0], 0x0f);
    }
}
