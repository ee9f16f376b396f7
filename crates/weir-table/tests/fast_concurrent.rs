//! Readers while a writer inserts, modifies and deletes: no torn result, no lost entry.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable, Reader, head};
use weir_table::{ActionSpec, EntryAction, EntryRef, KeySpec, NewEntry, Table, TableSpec};

const KEYS: u64 = if cfg!(miri) { 6 } else { 600 };
/// Slots of a vector that have keys.
const SLOTS: usize = if cfg!(miri) { 8 } else { 64 };
const ACTIVE: u64 = u64::MAX >> (64 - SLOTS);
/// Number of vectors that readers look up at least while the writer runs.
const LOOKED: u64 = if cfg!(miri) { 4 } else { 10 };
const ROW_STRIDE: usize = 72;

/// Data of which every word contains the key and the version.
fn call(words: usize, key: u64, version: u64) -> ActionCall {
    let word = key << 32 | version & 0xffff_ffff;
    ActionCall {
        action: 0,
        arguments: vec![Bits::new(64, word.into()); words],
    }
}

fn key_match(kind: MatchKind, width: u32, key: u64) -> KeyMatch {
    let value = Bits::new(width, key.into());
    match kind {
        MatchKind::Lpm => KeyMatch::Lpm {
            value,
            prefix_length: width,
        },
        MatchKind::Ternary => KeyMatch::Ternary {
            value,
            mask: Bits::ones(width),
        },
        _ => KeyMatch::Exact(value),
    }
}

/// The writer. Even keys always exist and are only modified; odd keys are inserted and deleted.
struct Churn<M, C> {
    keys: u64,
    /// The key number in the data of a miss.
    default: u64,
    matches: M,
    /// The action of a key and version.
    call: C,
}

impl<M: Fn(u64) -> Vec<KeyMatch>, C: Fn(u64, u64) -> ActionCall> Churn<M, C> {
    fn insert(&self, fast: &FastTable, table: &mut Table, key: u64, version: u64) {
        let entry = NewEntry::new((self.matches)(key), EntryAction::Call((self.call)(key, version)));
        let h = table.insert(entry).expect("new");
        fast.insert(table.entry(h).expect("inserted"));
    }

    fn begin(&self, fast: &FastTable, table: &mut Table) {
        for key in (0..self.keys).step_by(2) {
            self.insert(fast, table, key, 0);
        }
    }

    /// Runs until the readers, who count their lookups in `looked`, have made enough.
    fn run(&self, fast: &FastTable, table: &mut Table, looked: &AtomicU64) {
        let end = Instant::now() + Duration::from_millis(250);
        let mut version = 1;
        while (Instant::now() < end && !cfg!(miri)) || version < 3 || looked.load(Ordering::Relaxed) < LOOKED {
            for key in 0..self.keys {
                let which = EntryRef::Key {
                    matches: (self.matches)(key),
                    priority: 0,
                };
                if key % 2 == 0 {
                    let action = EntryAction::Call((self.call)(key, version));
                    let h = table.modify(&which, action, 0, 0).expect("there");
                    fast.insert(table.entry(h).expect("there"));
                } else if let Ok(gone) = table.delete(&which) {
                    fast.remove(&gone);
                } else {
                    self.insert(fast, table, key, version);
                }
            }
            fast.set_default(&(self.call)(self.default, version));
            if version % 16 == 0 {
                fast.bulk_load(&mut table.entries());
            }
            version += 1;
        }
    }
}

fn run(kind: MatchKind, width: u32, words: usize, registered: bool, idle: bool) {
    let parameters = (0..words).fold(ActionSpec::new("a"), |a, _| a.parameter("p", 64));
    let mut spec = TableSpec::new("t")
        .key(KeySpec::new("k", width, kind))
        .action(parameters);
    spec.size = 1 << 20;
    spec.idle_timeout = idle;
    spec.default_action = call(words, 0xdead, 0);
    let epochs = Arc::new(Epochs::new());
    let fast = FastTable::with_epochs(&spec, Arc::clone(&epochs));
    let mut table = Table::new(spec.clone());
    let churn = Churn {
        keys: KEYS,
        default: 0xdead,
        matches: |key| vec![key_match(kind, width, key)],
        call: |key, version| call(words, key, version),
    };
    churn.begin(&fast, &mut table);
    let stop = AtomicBool::new(false);
    let looked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = registered.then(|| epochs.reader());
                let n = fast.key_layout().words;
                let mut keys = vec![0; n * ROW_STRIDE];
                let mut results = vec![0; (words + 1) * ROW_STRIDE];
                let mut at = 0;
                while !stop.load(Ordering::Relaxed) {
                    for (slot, key) in (0..SLOTS as u64).zip(&mut keys) {
                        *key = (at + slot) % KEYS;
                    }
                    at += SLOTS as u64;
                    let guard = reader.as_ref().map_or_else(|| epochs.enter(), Reader::enter);
                    let hits = fast.view(&guard).lookup(ACTIVE, &keys, &mut results, ROW_STRIDE, 1);
                    drop(guard);
                    for (slot, &key) in keys[..SLOTS].iter().enumerate() {
                        let first = results[ROW_STRIDE + slot];
                        for r in 1..=words {
                            assert_eq!(results[r * ROW_STRIDE + slot], first, "torn");
                        }
                        let hit = hits >> slot & 1 == 1;
                        assert_eq!(results[slot] & head::HIT != 0, hit);
                        assert!(hit || key % 2 == 1, "entry {key} was lost");
                        assert_eq!(first >> 32, if hit { key } else { 0xdead });
                    }
                    if let Some(reader) = &mut reader {
                        reader.quiescent();
                    }
                    looked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        churn.run(&fast, &mut table, &looked);
        stop.store(true, Ordering::Relaxed);
    });
    epochs.collect();
    assert_eq!(epochs.waiting(), 0);
    assert_eq!(fast.len(), table.len());
}

/// As [`run`], with entries of one word: 15 bits of data hold the key's lowest bits and the
/// version.
fn run_packed(keys: u64, registered: bool, idle: bool) {
    const DEFAULT: u64 = 0xfff;
    let call = |key: u64, version: u64| ActionCall {
        action: 0,
        arguments: vec![Bits::new(15, ((key & 0xfff) << 3 | version & 7).into())],
    };
    let mut spec = TableSpec::new("t")
        .key(KeySpec::new("k", 48, MatchKind::Exact))
        .action(ActionSpec::new("a").parameter("p", 15));
    spec.size = 1 << 20;
    spec.idle_timeout = idle;
    spec.default_action = call(DEFAULT, 0);
    let epochs = Arc::new(Epochs::new());
    let fast = FastTable::without_handles(&spec, Arc::clone(&epochs));
    assert!(!fast.has_handles());
    let mut table = Table::new(spec.clone());
    let churn = Churn {
        keys,
        default: DEFAULT,
        matches: |key| vec![key_match(MatchKind::Exact, 48, key)],
        call,
    };
    churn.begin(&fast, &mut table);
    let stop = AtomicBool::new(false);
    let looked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for sparse in [false, true] {
            let (fast, epochs, stop, looked) = (&fast, &epochs, &stop, &looked);
            scope.spawn(move || {
                let mut reader = registered.then(|| epochs.reader());
                let mut words = vec![0; 64];
                let mut results = vec![0; 64];
                let active = ACTIVE & if sparse { 0xf7ff_3fff_ffff_ff5e } else { u64::MAX };
                let mut at = 0;
                while !stop.load(Ordering::Relaxed) {
                    for (slot, key) in (0..64).zip(&mut words) {
                        *key = (at + slot) % keys;
                    }
                    at += 64;
                    let guard = reader.as_ref().map_or_else(|| epochs.enter(), Reader::enter);
                    let hits = fast.view(&guard).lookup(active, &words, &mut results, 64, at << 20);
                    drop(guard);
                    for (slot, &key) in words.iter().enumerate().filter(|(i, _)| active >> i & 1 == 1) {
                        let hit = hits >> slot & 1 == 1;
                        assert!(hit || key % 2 == 1, "entry {key} was lost");
                        assert_eq!(results[slot] & head::HIT != 0, hit);
                        let data = results[slot] >> head::ACTION_SHIFT & 0x7fff;
                        assert_eq!(data >> 3, if hit { key & 0xfff } else { DEFAULT });
                    }
                    if let Some(reader) = &mut reader {
                        reader.quiescent();
                    }
                    looked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        churn.run(&fast, &mut table, &looked);
        stop.store(true, Ordering::Relaxed);
    });
    epochs.collect();
    assert_eq!(epochs.waiting(), 0);
    assert_eq!(fast.len(), table.len());
}

#[test]
fn packed_exact() {
    // 1024 and fewer keys use the displacement hash, where keys move as others are inserted; 1600
    // exceed it at times, and use buckets then; the buckets of 60,000 are far.
    for keys in if cfg!(miri) {
        vec![6]
    } else {
        vec![60_000, 1600, 1024, 434, 14]
    } {
        run_packed(keys, true, false);
        run_packed(keys, false, true);
    }
}

#[test]
fn exact_by_key() {
    run(MatchKind::Exact, 12, 1, true, false);
    run(MatchKind::Exact, 12, 3, false, true);
}

#[test]
fn inline_exact() {
    run(MatchKind::Exact, 48, 1, true, false);
    run(MatchKind::Exact, 48, 1, false, true);
}

#[test]
fn exact_records() {
    run(MatchKind::Exact, 48, 3, true, true);
    run(MatchKind::Exact, 128, 2, false, false);
}

#[test]
fn lpm() {
    run(MatchKind::Lpm, 16, 2, true, false);
    if !cfg!(miri) {
        run(MatchKind::Lpm, 32, 2, false, true);
    }
}

#[test]
fn wide_lpm_and_ternary() {
    run(MatchKind::Lpm, 128, 2, true, false);
    run(MatchKind::Ternary, 40, 2, true, false);
}
