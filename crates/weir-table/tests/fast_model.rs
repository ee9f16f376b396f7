//! Every fast structure against [`Table`]: the same changes, the same lookups.

use proptest::prelude::*;
use proptest::sample::Index;
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable, LAST_HIT_TICK_NS, PrefetchQueue, Reader, head};
use weir_table::{ActionSpec, Entry, EntryAction, EntryHandle, EntryRef, KeySpec, NewEntry, Table, TableSpec};

use MatchKind::{Exact, Lpm, Optional, Range, Selector, Ternary};

/// A value of this width from a seed: one of a few, with bits at both ends.
fn value(width: u32, seed: u16) -> Bits {
    let low = Bits::new(width, u128::from(seed & 7));
    let high = Bits::new(width, u128::from(seed >> 3 & 31)).shl(u64::from(width.saturating_sub(5)));
    low.or(&high)
}

fn mask(width: u32, seed: u16) -> Bits {
    match seed % 6 {
        0 => Bits::ones(width),
        1 => Bits::zero(width),
        n => Bits::prefix_mask(width, width * u32::from(n) / 6).or(&Bits::new(width, u128::from(seed >> 8))),
    }
}

fn key_match(key: &KeySpec, a: u16, b: u16) -> KeyMatch {
    let (width, v) = (key.width, value(key.width, a));
    match key.kind {
        Exact | Selector => KeyMatch::Exact(v),
        Lpm => {
            let prefix_length = match b % 4 {
                0 => width,
                1 => 0,
                _ => u32::from(b >> 2) % (width + 1),
            };
            KeyMatch::Lpm {
                value: v.and(&Bits::prefix_mask(width, prefix_length)),
                prefix_length,
            }
        }
        Ternary => {
            let mask = mask(width, b);
            KeyMatch::Ternary {
                value: v.and(&mask),
                mask,
            }
        }
        Range => {
            let w = value(width, b);
            let (low, high) = if v.cmp_unsigned(&w).is_le() { (v, w) } else { (w, v) };
            KeyMatch::Range { low, high }
        }
        Optional => KeyMatch::Optional((!b.is_multiple_of(3)).then_some(v)),
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert(Vec<(u16, u16)>, u32, u64),
    Modify(Index, u64),
    Delete(Index),
    Default(u64),
    Bulk,
    Lookup(Vec<Vec<u16>>, u64),
}

fn op(domain: u16) -> impl Strategy<Value = Op> {
    let seed = move || 0..domain;
    prop_oneof![
        12 => (proptest::collection::vec((seed(), seed()), 4), 0u32..4, any::<u64>()).prop_map(|(k, p, v)| Op::Insert(k, p, v)),
        3 => (any::<Index>(), any::<u64>()).prop_map(|(i, v)| Op::Modify(i, v)),
        5 => any::<Index>().prop_map(Op::Delete),
        1 => any::<u64>().prop_map(Op::Default),
        1 => Just(Op::Bulk),
        4 => (proptest::collection::vec(proptest::collection::vec(seed(), 4), 64),
              prop_oneof![Just(u64::MAX), any::<u64>(), Just(1), Just(0), Just(0xffff)])
            .prop_map(|(k, a)| Op::Lookup(k, a)),
    ]
}

/// Key kinds and widths, and the action's parameter widths.
type Keys = (Vec<(MatchKind, u32)>, Vec<u32>);

fn shapes() -> Vec<Keys> {
    let widths = [1, 9, 31, 32, 48, 64, 65, 128, 400];
    let mut all: Vec<Keys> = Vec::new();
    for w in widths {
        for kind in [Exact, Lpm, Ternary, Range, Optional] {
            all.push((vec![(kind, w)], vec![32]));
        }
    }
    all.push((vec![(Exact, 48)], vec![]));
    all.push((vec![(Exact, 48)], vec![64, 64, 9]));
    all.push((vec![(Exact, 48)], vec![200]));
    all.push((vec![(Exact, 16)], vec![12, 48, 9, 64]));
    all.push((vec![(Exact, 9), (Exact, 7)], vec![200]));
    all.push((vec![(Exact, 12), (Exact, 48), (Exact, 4)], vec![9]));
    all.push((vec![(Exact, 16), (Selector, 8), (Exact, 128)], vec![9]));
    all.push((vec![(Lpm, 24), (Selector, 16)], vec![9, 48, 48]));
    all.push((vec![(Exact, 12), (Lpm, 32)], vec![9]));
    all.push((vec![(Lpm, 128), (Exact, 12)], vec![9]));
    all.push((vec![(Lpm, 16), (Lpm, 32)], vec![9]));
    all.push((vec![(Ternary, 32), (Ternary, 32), (Range, 16), (Range, 16)], vec![9]));
    all.push((vec![(Ternary, 32), (Optional, 9), (Range, 70), (Lpm, 128)], vec![9]));
    all.push((vec![(Exact, 0)], vec![0]));
    all.push((vec![(Exact, 8)], vec![]));
    all.push((vec![(Exact, 12)], vec![9, 48]));
    all.push((vec![(Exact, 5), (Selector, 8), (Exact, 7)], vec![64, 64, 9]));
    all.push((vec![(Range, 0), (Lpm, 0), (Exact, 3)], vec![0, 1]));
    all
}

/// Key sets whose entries fit one word.
fn packed_shapes() -> Vec<Keys> {
    vec![
        (vec![(Exact, 48)], vec![]),
        (vec![(Exact, 48)], vec![9]),
        (vec![(Exact, 13)], vec![8]),
        (vec![(Exact, 20)], vec![15]),
        (vec![(Exact, 19)], vec![0, 1]),
        (vec![(Exact, 54)], vec![8]),
        (vec![(Exact, 12), (Exact, 35)], vec![9, 6]),
        (vec![(Exact, 12), (Selector, 48), (Exact, 4)], vec![1, 2, 3]),
        (vec![(Exact, 62)], vec![]),
    ]
}

/// With handles, or without if possible.
fn fast_table(spec: &TableSpec, handles: bool) -> FastTable {
    if handles {
        FastTable::new(spec)
    } else {
        FastTable::without_handles(spec, Arc::new(Epochs::new()))
    }
}

fn spec(keys: &[(MatchKind, u32)], data: &[u32], idle: bool) -> TableSpec {
    let mut spec = TableSpec::new("t");
    for (kind, width) in keys {
        spec = spec.key(KeySpec::new("k", *width, *kind));
    }
    let action = data.iter().fold(ActionSpec::new("a"), |a, w| a.parameter("p", *w));
    spec.idle_timeout = idle;
    spec.size = 1 << 20;
    spec.action(ActionSpec::new("none")).action(action)
}

fn action(data: &[u32], seed: u64) -> ActionCall {
    if seed.is_multiple_of(5) {
        return ActionCall {
            action: 0,
            arguments: vec![],
        };
    }
    let arguments = data
        .iter()
        .map(|w| Bits::new(*w, u128::from(seed) * 0x1_0000_0001_0001))
        .collect();
    ActionCall { action: 1, arguments }
}

/// Checks the words of a result against the entry.
fn check(fast: &FastTable, result: &[u64], entry: Option<&Entry>, default: &ActionCall) {
    let call = match entry.map(|e| &e.action) {
        Some(EntryAction::Call(call)) => call,
        _ => default,
    };
    let handle = entry.filter(|_| fast.has_handles()).map_or(0, |e| e.handle.get());
    assert_eq!(head::handle(result[0]), handle);
    assert_eq!(result[0] & head::HIT != 0, entry.is_some());
    assert_eq!(fast.result_layout().action(result[0]), call.action);
    assert_eq!(result[0] >> 49, 0);
    let mut expected = vec![0; fast.result_layout().words];
    for (slot, value) in fast.result_layout().actions[call.action].iter().zip(&call.arguments) {
        slot.write(&mut expected, value);
    }
    for slot in &fast.result_layout().actions[call.action] {
        for w in 0..slot.words() {
            let at = usize::from(slot.word) + w;
            // Other fields may share the word.
            let ones = if slot.width < 64 {
                (1 << slot.width) - 1
            } else {
                u64::MAX
            };
            assert_eq!(result[at] >> slot.shift & ones, expected[at] >> slot.shift & ones);
        }
    }
}

fn lookup(
    table: &Table,
    fast: &FastTable,
    reader: &Reader,
    packets: &[Vec<u16>],
    active: u64,
    now: u64,
) -> Vec<EntryHandle> {
    const ROW_STRIDE: usize = 72;
    let n = fast.key_layout().words;
    let mut words = vec![0; n * ROW_STRIDE];
    let mut results = vec![0x5555; fast.result_layout().words * ROW_STRIDE];
    let mut values = Vec::new();
    for (i, seeds) in packets.iter().enumerate() {
        let keys: Vec<_> = table
            .spec()
            .keys
            .iter()
            .zip(seeds)
            .map(|(k, s)| value(k.width, *s))
            .collect();
        for (w, word) in fast.key_layout().pack(&keys).into_iter().enumerate() {
            words[w * ROW_STRIDE + i] = word;
        }
        values.push(keys);
    }
    let mut queue = PrefetchQueue::default();
    let guard = reader.enter();
    fast.view(&guard).prefetch(active, &words, ROW_STRIDE, &mut queue);
    let hits = fast
        .view(&guard)
        .lookup_and_prefetch(active, &words, &mut results, ROW_STRIDE, now, &mut queue);
    drop(guard);
    let mut touched = Vec::new();
    for (i, keys) in values.iter().enumerate() {
        let result: Vec<_> = (0..fast.result_layout().words)
            .map(|r| results[r * ROW_STRIDE + i])
            .collect();
        if active >> i & 1 == 0 {
            assert!(result.iter().all(|r| *r == 0x5555));
            assert_eq!(hits >> i & 1, 0);
            continue;
        }
        let entry = table.lookup(keys);
        assert_eq!(hits >> i & 1 == 1, entry.is_some());
        check(fast, &result, entry, table.default_action());
        touched.extend(entry.map(|e| e.handle));
        let mut one = vec![0; fast.result_layout().words];
        assert_eq!(
            fast.lookup_one(&fast.key_layout().pack(keys), &mut one, now),
            entry.is_some()
        );
        check(fast, &one, entry, table.default_action());
    }
    touched
}

/// With structures for the actual number of entries, or for very many.
fn run(shape: &Keys, idle: bool, handles: bool, ops: Vec<Op>) {
    if !cfg!(miri) {
        run_with(shape, idle, handles, 1 << 17, ops.clone());
    }
    run_with(shape, idle, handles, 0, ops);
}

fn run_with((keys, data): &Keys, idle: bool, handles: bool, least: usize, ops: Vec<Op>) {
    let spec = spec(keys, data, idle);
    let mut table = Table::new(spec.clone());
    let fast = match least {
        0 => fast_table(&spec, handles),
        least => fast_table(&spec, handles).with_min_capacity(least),
    };
    let mut reader = fast.epochs().reader();
    let mut handles: Vec<EntryHandle> = Vec::new();
    let entry = |table: &Table, h: EntryHandle| table.entry(h).cloned().expect("it is there");
    // Two changes per step of last hits.
    for (now, op) in (1u64..).map(|n| n * LAST_HIT_TICK_NS / 2).zip(ops) {
        match op {
            Op::Insert(seeds, priority, seed) => {
                let matches = spec
                    .match_keys()
                    .zip(&seeds)
                    .map(|(k, (a, b))| key_match(k, *a, *b))
                    .collect();
                let priority = if spec.has_priority() { priority } else { 0 };
                let new = NewEntry::new(matches, EntryAction::Call(action(data, seed))).with_priority(priority);
                if let Ok(handle) = table.insert_at(new, now) {
                    handles.push(handle);
                    fast.insert(&entry(&table, handle));
                }
            }
            Op::Modify(index, seed) if !handles.is_empty() => {
                let handle = handles[index.index(handles.len())];
                let call = EntryAction::Call(action(data, seed));
                table
                    .modify(&EntryRef::Handle(handle), call, 0, 0)
                    .expect("it is there");
                fast.insert(&entry(&table, handle));
            }
            Op::Delete(index) if !handles.is_empty() => {
                let handle = handles.swap_remove(index.index(handles.len()));
                let gone = table.delete(&EntryRef::Handle(handle)).expect("it is there");
                fast.remove(&gone);
                fast.remove(&gone);
                assert_eq!(fast.last_hit_ns(handle.get()), None);
            }
            Op::Default(seed) => {
                table.set_default(action(data, seed)).expect("it fits");
                fast.set_default(table.default_action());
            }
            Op::Bulk => fast.bulk_load(&mut table.entries()),
            Op::Lookup(packets, active) => {
                for handle in lookup(&table, &fast, &reader, &packets, active, now) {
                    table.touch(handle, now);
                }
                reader.quiescent();
            }
            _ => {}
        }
        assert_eq!(fast.len(), table.len());
        if idle {
            for h in &handles {
                let step = |ns: u64| ns / LAST_HIT_TICK_NS;
                let expected = table.entry(*h).map(|e| step(e.last_hit_ns));
                assert_eq!(fast.last_hit_ns(h.get()).map(step), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 400 }))]
    #[test]
    fn agrees_with_the_table(
        shape in proptest::sample::select(shapes()),
        (idle, handles) in any::<(bool, bool)>(),
        ops in proptest::collection::vec(op(256), 0..60),
    ) {
        run(&shape, idle, handles, ops);
    }

    #[test]
    fn agrees_when_few_keys_come_and_go(
        shape in proptest::sample::select(shapes()),
        (idle, handles) in any::<(bool, bool)>(),
        ops in proptest::collection::vec(op(8), 0..100),
    ) {
        run(&shape, idle, handles, ops);
    }

    #[test]
    fn agrees_without_handles(
        shape in proptest::sample::select(packed_shapes()),
        idle in any::<bool>(),
        ops in prop_oneof![
            proptest::collection::vec(op(8), 0..100),
            proptest::collection::vec(op(256), 0..60),
            proptest::collection::vec(op(256), 100..400),
        ],
    ) {
        run(&shape, idle, false, ops);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 60 }))]
    #[test]
    fn agrees_when_large(
        shape in proptest::sample::select(shapes()),
        handles in any::<bool>(),
        ops in proptest::collection::vec(op(u16::MAX), 300..500),
    ) {
        run(&shape, false, handles, ops);
    }
}

#[test]
fn keyless_tables_always_miss() {
    let spec = spec(&[], &[8], false);
    let fast = FastTable::new(&spec);
    fast.set_default(&action(&[8], 1));
    let mut result = [0; 2];
    assert!(!fast.lookup_one(&[0], &mut result, 0));
    check(&fast, &result, None, &action(&[8], 1));
}

#[test]
fn many_entries_one_by_one_and_at_once() {
    let count = if cfg!(miri) { 10u64 } else { 20_000 };
    for (kind, width, data, handles) in [
        (Exact, 64, 32, true),
        (Exact, 48, 9, true),
        (Exact, 48, 9, false),
        (Exact, 128, 32, true),
        (Exact, 32, 128, true),
        (Lpm, 32, 9, true),
        (Ternary, 32, 9, true),
    ] {
        let spec = spec(&[(kind, width)], &[data], false);
        let make = || fast_table(&spec, handles);
        let (mut table, fast, bulk) = (Table::new(spec.clone()), make(), make());
        assert_eq!(fast.has_handles(), handles);
        for i in 0..count {
            let v = Bits::new(width, u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let length = width - (i % 20) as u32;
            let prefix = Bits::prefix_mask(width, length);
            let m = match kind {
                Lpm => KeyMatch::Lpm {
                    value: v.and(&prefix),
                    prefix_length: length,
                },
                Ternary => KeyMatch::Ternary {
                    value: v.and(&prefix),
                    mask: prefix,
                },
                _ => KeyMatch::Exact(v),
            };
            let new = NewEntry::new(vec![m], EntryAction::Call(action(&[data], i)));
            if let Ok(h) = table.insert(new) {
                fast.insert(table.entry(h).expect("it is there"));
            }
        }
        bulk.bulk_load(&mut table.entries());
        for round in 0..2u64 {
            for i in 0..count {
                let key = Bits::new(width, u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i % 3)));
                let entry = table.lookup(std::slice::from_ref(&key));
                for t in [&fast, &bulk] {
                    let mut result = vec![0; t.result_layout().words];
                    assert_eq!(
                        t.lookup_one(&t.key_layout().pack(std::slice::from_ref(&key)), &mut result, 0),
                        entry.is_some()
                    );
                    check(t, &result, entry, table.default_action());
                }
            }
            let half: Vec<_> = table
                .entries()
                .filter(|e| u64::from(e.handle.get()) % 2 == round)
                .cloned()
                .collect();
            for entry in half {
                table.delete(&EntryRef::Handle(entry.handle)).expect("it is there");
                fast.remove(&entry);
                bulk.remove(&entry);
            }
            assert_eq!((fast.len(), bulk.len()), (table.len(), table.len()));
        }
    }
}

/// Groups of a tuple space are inserted, moved and removed by the thousand.
#[test]
fn every_entry_may_have_a_mask_of_its_own() {
    let count = if cfg!(miri) { 20u64 } else { 2_000 };
    let spec = spec(&[(Ternary, 32), (Ternary, 32)], &[9], false);
    let (mut table, fast) = (Table::new(spec.clone()), FastTable::new(&spec));
    let mix = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ i << 7;
    let ternary = |bits: u64, seed: u16| {
        let mask = Bits::new(32, u128::from(bits & 0xffff_ffff));
        let value = value(32, seed).and(&mask);
        KeyMatch::Ternary { value, mask }
    };
    let mut reader = fast.epochs().reader();
    let packets: Vec<Vec<u16>> = (0..64).map(|i| vec![i * 3, i * 5]).collect();
    for i in 0..count {
        let seeds = (i as u16 % 64) * 3;
        let matches = vec![ternary(mix(i) >> 13, seeds), ternary(mix(i), seeds / 3 * 5)];
        let new = NewEntry::new(matches, EntryAction::Call(action(&[9], i)));
        let priority = (mix(i) >> 40) as u32;
        let handle = table
            .insert(new.with_priority(priority))
            .expect("there is none like it");
        fast.insert(table.entry(handle).expect("it is there"));
        if i % 100 == 0 {
            lookup(&table, &fast, &reader, &packets, u64::MAX, 0);
            reader.quiescent();
        }
    }
    // The best are removed first, then the others.
    let mut all: Vec<Entry> = table.entries().cloned().collect();
    all.sort_by_key(|e| std::cmp::Reverse(e.priority));
    let (best, others) = all.split_at(all.len() / 3);
    for (i, entry) in best.iter().chain(others.iter().step_by(2)).enumerate() {
        table.delete(&EntryRef::Handle(entry.handle)).expect("it is there");
        fast.remove(entry);
        if i % 100 == 0 {
            lookup(&table, &fast, &reader, &packets, u64::MAX, 0);
            reader.quiescent();
        }
    }
    let hits = lookup(&table, &fast, &reader, &packets, u64::MAX, 0);
    assert_eq!(fast.len(), table.len());
    assert!(!hits.is_empty(), "packets have entries of their own");
}

#[test]
fn entries_with_members_are_indirect() {
    for (width, handles) in [(8, true), (8, false), (48, true), (48, false)] {
        let mut spec = spec(&[(Exact, width)], &[8], false);
        spec.implementation = weir_table::Implementation::Selector(weir_ir::ExternId::new(0));
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, handles));
        let new = NewEntry::new(vec![KeyMatch::Exact(Bits::new(width, 1))], EntryAction::Group(4));
        let handle = table.insert(new).expect("it fits");
        fast.insert(table.entry(handle).expect("it is there"));
        let mut result = [0; 2];
        assert!(fast.lookup_one(&[1], &mut result, 0));
        assert_eq!(result[0], u64::from(handle.get()) | head::HIT | head::INDIRECT);
    }
}

#[test]
fn handles_are_left_out_only_where_entries_fit_one_word() {
    let fits = |keys: &[(MatchKind, u32)], data: &[u32]| !fast_table(&spec(keys, data, false), false).has_handles();
    for (keys, data) in packed_shapes() {
        assert!(fits(&keys, &data), "{keys:?} {data:?}");
    }
    assert!(fits(&[(Exact, 62)], &[0]));
    assert!(!fits(&[(Exact, 63)], &[0]), "the action takes a bit");
    assert!(!fits(&[(Exact, 48)], &[15]));
    assert!(!fits(&[(Exact, 8)], &[16]), "the data is in a word of its own");
    assert!(!fits(&[(Lpm, 8)], &[8]));
    assert!(!fits(&[], &[8]));
    let with = FastTable::new(&spec(&[(Exact, 48)], &[9], false));
    assert!(with.has_handles());
    let without = fast_table(&spec(&[(Exact, 48)], &[9], false), false);
    assert!(!without.has_handles());
}

/// Every number of entries, with all keys below 256 looked up, as the table fills and empties.
#[test]
fn small_tables_fill_and_empty() {
    // An array, and a hash table.
    for (width, bulk) in [(8, false), (8, true), (48, false), (48, true)] {
        let spec = spec(&[(Exact, width)], &[8], true);
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, false));
        let all: Vec<u64> = (0..256).collect();
        let check_all = |table: &Table| {
            let mut results = [0; 64];
            for keys in all.chunks(64) {
                let hits = fast.lookup(u64::MAX, keys, &mut results, 64, 0);
                for (i, key) in keys.iter().enumerate() {
                    let entry = table.lookup(&[Bits::new(width, (*key).into())]);
                    assert_eq!(hits >> i & 1 == 1, entry.is_some());
                    check(&fast, &results[i..=i], entry, table.default_action());
                }
            }
        };
        // The first and the last key first.
        let order: Vec<u64> = (0..if cfg!(miri) { 20 } else { 200 })
            .map(|i| if i % 2 == 0 { i / 2 } else { 255 - i / 2 })
            .collect();
        let mut handles = Vec::new();
        check_all(&table);
        for key in &order {
            let call = EntryAction::Call(action(&[8], *key));
            let new = NewEntry::new(vec![KeyMatch::Exact(Bits::new(width, (*key).into()))], call);
            let handle = table.insert_at(new, key * LAST_HIT_TICK_NS).expect("it fits");
            handles.push(handle);
            if bulk {
                fast.bulk_load(&mut table.entries());
            } else {
                fast.insert(table.entry(handle).expect("it is there"));
            }
            assert_eq!(fast.last_hit_ns(handle.get()), Some(key * LAST_HIT_TICK_NS));
            check_all(&table);
        }
        for (i, handle) in handles.into_iter().enumerate() {
            let gone = table.delete(&EntryRef::Handle(handle)).expect("it is there");
            let mut other = gone.clone();
            other.handle = EntryHandle::new(9999).expect("not 0");
            fast.remove(&other);
            assert_eq!(fast.len(), order.len() - i, "of another handle");
            fast.remove(&gone);
            assert_eq!(fast.len(), table.len());
            check_all(&table);
        }
    }
}

#[test]
fn last_hits_of_any_time_are_kept_to_a_step() {
    // 52 days are 2^32 steps.
    let spec = spec(&[(Exact, 48)], &[9], true);
    for start in [0, 1, (1 << 32) - 2, (1 << 32) + 5, (7 << 32) - 1, 1_671_000_000_000] {
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, false));
        let mut handles = Vec::new();
        for key in 0..40u64 {
            let new = NewEntry::new(
                vec![KeyMatch::Exact(Bits::new(48, key.into()))],
                EntryAction::Call(action(&[9], key)),
            );
            let at = (start + key * 100_000_000) * LAST_HIT_TICK_NS + 17;
            let handle = table.insert_at(new, at).expect("it fits");
            fast.insert(table.entry(handle).expect("it is there"));
            handles.push((handle.get(), at - 17));
        }
        for (handle, at) in &handles {
            assert_eq!(fast.last_hit_ns(*handle), Some(*at));
        }
        let now = (start + 41 * 100_000_000) * LAST_HIT_TICK_NS;
        let mut result = [0];
        assert!(fast.lookup_one(&[3], &mut result, now));
        handles[3].1 = now;
        for (handle, at) in &handles {
            assert_eq!(fast.last_hit_ns(*handle), Some(*at));
        }
    }
}

/// Bits of a looked-up key beyond the key's width are ignored, and do no harm.
#[test]
fn keys_may_have_any_bits_beyond_their_own() {
    let cases = [
        (Exact, 8, 9, true),
        (Exact, 13, 8, false),
        (Exact, 48, 9, true),
        (Exact, 48, 32, true),
        (Lpm, 16, 9, true),
        (Lpm, 32, 9, true),
        (Ternary, 32, 9, true),
    ];
    for (kind, width, data, handles) in cases {
        let spec = spec(&[(kind, width)], &[data], true);
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, handles));
        for i in 0..200 {
            let value = Bits::new(width, u128::from(i * 37_u64 % 256) << (width - 8));
            let m = match kind {
                Lpm => KeyMatch::Lpm {
                    value,
                    prefix_length: 8,
                },
                Ternary => KeyMatch::Ternary {
                    value,
                    mask: Bits::ones(width),
                },
                _ => KeyMatch::Exact(value),
            };
            let new = NewEntry::new(vec![m], EntryAction::Call(action(&[data], i)));
            if let Ok(handle) = table.insert(new) {
                fast.insert(table.entry(handle).expect("it is there"));
            }
        }
        let mut results = vec![0; 64 * fast.result_layout().words];
        for beyond in (width..64).step_by(5) {
            let keys: Vec<u64> = (0..64).map(|i| u64::MAX << beyond | i << (width - 8)).collect();
            let hits = fast.lookup(u64::MAX, &keys, &mut results, 64, 1);
            for slot in (0..64).filter(|s| hits >> s & 1 == 1) {
                assert_ne!(results[slot] & head::HIT, 0);
            }
        }
    }
}

#[test]
fn a_lagging_reader_overwrites_no_newer_last_hit() {
    // With the displacement hash, and with buckets.
    for count in [2, if cfg!(miri) { 40 } else { 1300 }] {
        let spec = spec(&[(Exact, 48)], &[9], true);
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, false));
        let mut handles = Vec::new();
        for key in 0..count {
            let new = NewEntry::new(
                vec![KeyMatch::Exact(Bits::new(48, key))],
                EntryAction::Call(action(&[9], 1)),
            );
            let handle = table.insert_at(new, 0).expect("it fits");
            fast.insert(table.entry(handle).expect("it is there"));
            handles.push(handle.get());
        }
        let mut result = [0];
        for (key, step) in [(0, 100), (1, 50), (1, 100)] {
            assert!(fast.lookup_one(&[key], &mut result, step * LAST_HIT_TICK_NS));
        }
        assert_eq!(fast.last_hit_ns(handles[1]), Some(100 * LAST_HIT_TICK_NS));
    }
}

#[test]
fn one_entry_modified_very_often() {
    for (data, handles) in [(32, true), (9, true), (9, false)] {
        let spec = spec(&[(Exact, 48)], &[data], true);
        let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, handles));
        let new = NewEntry::new(
            vec![KeyMatch::Exact(Bits::new(48, 0))],
            EntryAction::Call(action(&[data], 1)),
        );
        let handle = table.insert(new).expect("it fits");
        for i in 0..if cfg!(miri) { 20 } else { 20_000 } {
            table
                .modify(&EntryRef::Handle(handle), EntryAction::Call(action(&[data], i)), 0, 0)
                .expect("it is there");
            fast.insert(table.entry(handle).expect("it is there"));
            let mut result = [0; 2];
            assert!(fast.lookup_one(&[0], &mut result, i * LAST_HIT_TICK_NS));
            check(&fast, &result, table.entry(handle), table.default_action());
            assert_eq!(fast.last_hit_ns(handle.get()), Some(i * LAST_HIT_TICK_NS));
            assert!(!fast.lookup_one(&[i + 1], &mut result, i));
        }
    }
}

/// Tables larger than the caches prefetch, either the whole vector first or during the search.
#[test]
fn large_tables_are_prefetched_first() {
    let count = if cfg!(miri) { 70 } else { 40_000u64 };
    let cases = [
        (Exact, 48, 9, false),
        (Exact, 48, 9, true),
        (Exact, 48, 32, true),
        (Lpm, 32, 9, true),
    ];
    for (kind, width, data, handles) in cases {
        for idle in [false, true] {
            let spec = spec(&[(kind, width)], &[data], idle);
            let (mut table, fast) = (Table::new(spec.clone()), fast_table(&spec, handles));
            let key = |i: u64| Bits::new(width, u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            for i in 0..count {
                let m = match kind {
                    Lpm => KeyMatch::Lpm {
                        value: key(i),
                        prefix_length: width,
                    },
                    _ => KeyMatch::Exact(key(i)),
                };
                let new = NewEntry::new(vec![m], EntryAction::Call(action(&[data], i)));
                table.insert(new).expect("it fits");
            }
            fast.bulk_load(&mut table.entries());
            assert!(cfg!(miri) || fast.memory_bytes() > 256 << 10);
            for (from, active) in (0..2 * count)
                .step_by(64)
                .zip([u64::MAX, 0xff, 0x8421_7fff_0000_1248].iter().cycle())
            {
                // Some of the keys are in the table.
                let keys: Vec<_> = (from..from + 64).map(|i| key(i * 3 / 2)).collect();
                let words: Vec<_> = keys.iter().map(Bits::to_u64_saturating).collect();
                let mut results = vec![0; 64 * fast.result_layout().words];
                let guard = fast.epochs().enter();
                let view = fast.view(&guard);
                view.prefetch(*active, &words, 64, &mut PrefetchQueue::default());
                let hits = view
                    .assume_prefetched()
                    .lookup(*active, &words, &mut results, 64, LAST_HIT_TICK_NS);
                let mut again = results.clone();
                let hits_again = view.lookup(*active, &words, &mut again, 64, LAST_HIT_TICK_NS);
                assert_eq!((hits, &results), (hits_again, &again));
                for (i, key) in keys.iter().enumerate().filter(|(i, _)| active >> i & 1 == 1) {
                    let entry = table.lookup(std::slice::from_ref(key));
                    assert_eq!(hits >> i & 1 == 1, entry.is_some());
                    let result: Vec<_> = results.iter().skip(i).step_by(64).copied().collect();
                    check(&fast, &result, entry, table.default_action());
                    let hit = entry.filter(|_| idle).map(|e| fast.last_hit_ns(e.handle.get()));
                    assert!(hit.is_none_or(|at| at == Some(LAST_HIT_TICK_NS)));
                }
            }
        }
    }
}
