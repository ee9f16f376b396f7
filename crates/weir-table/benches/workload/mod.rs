//! The tables and packets of both benchmarks.
#![allow(missing_docs, dead_code)]

use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_ir::{Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable, Reader};
use weir_table::{ActionSpec, EntryAction, KeySpec, NewEntry, Table, TableSpec};

pub const SLOTS: usize = 64;
/// Row stride of a vector, in words; not a power of two.
pub const ROW_STRIDE: usize = 72;

pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

pub struct Workload {
    pub name: &'static str,
    pub fast: FastTable,
    pub reader: Reader,
    pub entries: usize,
    pub load: Duration,
    /// Key words of vectors of 64, each `ROW_STRIDE` apart.
    pub vectors: Vec<Vec<u64>>,
    pub results: Vec<u64>,
    /// The first words of keys, for the baseline.
    pub flows: Vec<u64>,
}

fn spec(keys: &[(MatchKind, u32)], data: &[u32], size: usize) -> TableSpec {
    let mut spec = TableSpec::new("t");
    for (kind, width) in keys {
        spec = spec.key(KeySpec::new("k", *width, *kind));
    }
    spec.size = size as u64;
    spec.action(data.iter().fold(ActionSpec::new("a"), |a, w| a.parameter("p", *w)))
}

/// Loads `matches` and makes `flows` packets with keys from `key`.
fn workload(
    name: &'static str,
    spec: TableSpec,
    matches: Vec<(Vec<KeyMatch>, u32)>,
    flows: usize,
    key: impl FnMut() -> Vec<Bits>,
) -> Workload {
    let fast = FastTable::new(&spec);
    workload_of(name, fast, spec, matches, flows, key)
}

/// The same with a given table.
fn workload_of(
    name: &'static str,
    fast: FastTable,
    spec: TableSpec,
    matches: Vec<(Vec<KeyMatch>, u32)>,
    flows: usize,
    mut key: impl FnMut() -> Vec<Bits>,
) -> Workload {
    let data: Vec<_> = spec.actions[0]
        .parameters
        .iter()
        .map(|p| Bits::new(p.1, 0x1234_5678))
        .collect();
    let mut table = Table::new(spec.clone());
    for (m, priority) in matches {
        let new = NewEntry::new(m, EntryAction::call(0, data.clone())).with_priority(priority);
        let _ = table.insert(new);
    }
    let reader = fast.epochs().reader();
    let all: Vec<_> = table.entries().cloned().collect();
    let start = Instant::now();
    fast.bulk_load(&mut all.iter());
    let load = start.elapsed();
    let words = fast.key_layout().words;
    let mut vectors = Vec::new();
    let mut firsts = Vec::new();
    for _ in 0..flows / SLOTS {
        let mut vector = vec![0; words * ROW_STRIDE];
        for slot in 0..SLOTS {
            let packed = fast.key_layout().pack(&key());
            firsts.push(packed[0]);
            for (w, word) in packed.into_iter().enumerate() {
                vector[w * ROW_STRIDE + slot] = word;
            }
        }
        vectors.push(vector);
    }
    Workload {
        name,
        results: vec![0; fast.result_layout().words * ROW_STRIDE],
        entries: fast.len(),
        fast,
        reader,
        load,
        vectors,
        flows: firsts,
    }
}

impl Workload {
    /// Looks all packets up; returns the number of hits.
    pub fn run(&mut self) -> u32 {
        let mut hits = 0;
        for keys in &self.vectors {
            hits += self
                .fast
                .view(&self.reader.enter())
                .lookup(u64::MAX, keys, &mut self.results, ROW_STRIDE, 0)
                .count_ones();
            self.reader.quiescent();
        }
        hits
    }
}

fn mac(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
}

pub fn exact(name: &'static str, entries: usize, flows: usize, data: &[u32], hit_percent: usize) -> Workload {
    let spec = spec(&[(MatchKind::Exact, 48)], data, entries);
    exact_of(name, FastTable::new(&spec), spec, entries, flows, hit_percent)
}

/// Without handles; the data is a port.
pub fn packed(name: &'static str, entries: usize, flows: usize, idle: bool, hit_percent: usize) -> Workload {
    let mut spec = spec(&[(MatchKind::Exact, 48)], &[9], entries);
    spec.idle_timeout = idle;
    let fast = FastTable::without_handles(&spec, Arc::new(Epochs::new()));
    exact_of(name, fast, spec, entries, flows, hit_percent)
}

fn exact_of(
    name: &'static str,
    fast: FastTable,
    spec: TableSpec,
    entries: usize,
    flows: usize,
    hit_percent: usize,
) -> Workload {
    let matches = (0..entries as u64).map(|i| (vec![KeyMatch::Exact(Bits::new(48, mac(i).into()))], 0));
    let mut random = Random(1);
    workload_of(name, fast, spec, matches.collect(), flows, move || {
        let i = random.below(entries) as u64;
        let hit = random.below(100) < hit_percent;
        vec![Bits::new(48, if hit { mac(i) } else { mac(i + (1 << 40)) }.into())]
    })
}

fn v6(i: u64) -> u128 {
    u128::from(mac(i)) << 70 | u128::from(i)
}

pub fn exact128(name: &'static str, entries: usize, flows: usize) -> Workload {
    let matches = (0..entries as u64).map(|i| (vec![KeyMatch::Exact(Bits::new(128, v6(i)))], 0));
    let mut random = Random(1);
    workload(
        name,
        spec(&[(MatchKind::Exact, 128)], &[9], entries),
        matches.collect(),
        flows,
        move || vec![Bits::new(128, v6(random.below(entries) as u64))],
    )
}

/// The distribution of prefix lengths, roughly that of a full Internet table.
fn length(random: &mut Random) -> u32 {
    match random.below(100) {
        0..58 => 24,
        58..70 => 22,
        70..80 => 23,
        80..88 => 20,
        88..94 => 21,
        94..98 => 16,
        _ => 12,
    }
}

pub fn lpm(name: &'static str, entries: usize, flows: usize) -> Workload {
    let mut random = Random(2);
    let mut bases = Vec::new();
    let matches: Vec<_> = (0..entries)
        .map(|_| {
            let prefix_length = length(&mut random);
            let value = Bits::new(32, random.next().into()).and(&Bits::prefix_mask(32, prefix_length));
            bases.push(value.to_u64_saturating());
            (vec![KeyMatch::Lpm { value, prefix_length }], 0)
        })
        .collect();
    workload(
        name,
        spec(&[(MatchKind::Lpm, 32)], &[9, 48], entries),
        matches,
        flows,
        move || {
            let base = bases[random.below(bases.len())];
            vec![Bits::new(32, u128::from(base | random.next() & 0xff))]
        },
    )
}

pub fn lpm6(name: &'static str, entries: usize, flows: usize) -> Workload {
    let mut random = Random(3);
    let mut bases = Vec::new();
    let matches: Vec<_> = (0..entries)
        .map(|_| {
            let prefix_length = [48, 32, 40, 44, 36, 29, 64, 56][random.below(8)];
            let value = u128::from(random.next()) << 64;
            let value = Bits::new(128, value).and(&Bits::prefix_mask(128, prefix_length));
            bases.push(value.to_u128().unwrap_or(0));
            (vec![KeyMatch::Lpm { value, prefix_length }], 0)
        })
        .collect();
    workload(
        name,
        spec(&[(MatchKind::Lpm, 128)], &[9, 48], entries),
        matches,
        flows,
        move || {
            let base = bases[random.below(bases.len())];
            vec![Bits::new(128, base | u128::from(random.next()))]
        },
    )
}

/// Rules with `masks` different masks on a 5-tuple.
pub fn ternary(name: &'static str, entries: usize, masks: usize, flows: usize) -> Workload {
    let widths = [32, 32, 16, 16, 8];
    let keys: Vec<_> = widths.iter().map(|w| (MatchKind::Ternary, *w)).collect();
    let mut random = Random(4);
    let kinds: Vec<Vec<u32>> = (0..masks)
        .map(|i| {
            let addresses = [8, 16, 20, 24, 32];
            let ports = if i % 2 == 0 { [0, 16] } else { [16, 0] };
            vec![
                addresses[i % 5],
                addresses[i / 5 % 5],
                ports[0],
                ports[1],
                if i % 3 == 0 { 0 } else { 8 },
            ]
        })
        .collect();
    let mut samples = Vec::new();
    let matches: Vec<_> = (0..entries)
        .map(|i| {
            let kind = &kinds[i % masks];
            let all: Vec<_> = widths.iter().map(|w| Bits::new(*w, random.next().into())).collect();
            let fields = all.iter().zip(kind).map(|(v, l)| {
                let mask = Bits::prefix_mask(v.width(), *l);
                KeyMatch::Ternary {
                    value: v.and(&mask),
                    mask,
                }
            });
            let fields = fields.collect();
            samples.push(all);
            (fields, 1 + random.below(1000) as u32)
        })
        .collect();
    workload(name, spec(&keys, &[9], entries), matches, flows, move || {
        samples[random.below(samples.len())].clone()
    })
}
