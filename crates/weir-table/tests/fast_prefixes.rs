//! Prefixes are inserted and removed one by one, until structures for few prefixes become those for
//! many.

use std::collections::HashMap;
use std::sync::Arc;
use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{Epochs, FastTable, HitCount, LAST_HIT_TICK_NS, PendingLookup, PrefetchQueue, head};
use weir_table::{ActionSpec, Entry, EntryAction, EntryHandle, EntryRef, KeySpec, NewEntry, Table, TableSpec};

/// A pseudo-random sequence, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 ^ self.0 >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }
}

/// An address of this many bits. Addresses repeat so often that prefixes cover each other. Half of
/// them are close together, as those of one network.
fn address(numbers: &mut Numbers, width: u32) -> u64 {
    let all = u64::MAX >> (64 - width);
    if numbers.below(2) == 0 {
        return (0xac1 << (width - 12)) | numbers.next() & numbers.next() & (all >> 12);
    }
    let spread = numbers.next() & numbers.next();
    match numbers.below(16) {
        0 => 0,
        1 => all,
        _ => spread & all,
    }
}

fn call(data: &[u32], seed: u64) -> EntryAction {
    let arguments = data.iter().map(|w| Bits::new(*w, seed.into())).collect();
    EntryAction::Call(ActionCall { action: 1, arguments })
}

struct Routes {
    table: Table,
    fast: FastTable,
    handles: Vec<EntryHandle>,
    width: u32,
    data: Vec<u32>,
    /// The expected counts of `fast`, if it counts.
    counted: HashMap<u32, HitCount>,
}

impl Routes {
    fn new(width: u32, data: &[u32], idle: bool, counts: bool) -> Self {
        let forward = data
            .iter()
            .fold(ActionSpec::new("forward"), |a, w| a.parameter("p", *w));
        let mut spec = TableSpec::new("routes").key(KeySpec::new("address", width, MatchKind::Lpm));
        (spec.idle_timeout, spec.size) = (idle, 1 << 16);
        let spec = spec.action(ActionSpec::new("drop")).action(forward);
        Routes {
            fast: match counts {
                true => FastTable::with_counts(&spec, Arc::new(Epochs::new())),
                false => FastTable::new(&spec),
            },
            table: Table::new(spec),
            handles: Vec::new(),
            width,
            data: data.to_vec(),
            counted: HashMap::new(),
        }
    }

    fn put(&mut self, numbers: &mut Numbers) {
        let length = numbers.below(self.width as usize + 1) as u32;
        let address = Bits::new(self.width, address(numbers, self.width).into());
        let route = KeyMatch::Lpm {
            value: address.and(&Bits::prefix_mask(self.width, length)),
            prefix_length: length,
        };
        let new = NewEntry::new(vec![route], call(&self.data, numbers.next()));
        if let Ok(handle) = self.table.insert(new) {
            self.fast.insert(self.table.entry(handle).expect("it is there"));
            self.handles.push(handle);
        }
    }

    fn take(&mut self, numbers: &mut Numbers) -> Option<Entry> {
        if self.handles.is_empty() {
            return None;
        }
        let handle = self.handles.swap_remove(numbers.below(self.handles.len()));
        let gone = self.table.delete(&EntryRef::Handle(handle)).expect("it was there");
        self.fast.remove(&gone);
        self.counted.remove(&handle.get());
        Some(gone)
    }

    fn change(&mut self, numbers: &mut Numbers) {
        if !self.handles.is_empty() {
            let handle = self.handles[numbers.below(self.handles.len())];
            let action = call(&self.data, numbers.next());
            self.table
                .modify(&EntryRef::Handle(handle), action, 0, 0)
                .expect("it is there");
            self.fast.insert(self.table.entry(handle).expect("it is there"));
        }
    }

    /// Counts hits of 64 addresses, some of which have entries; then of a part of them.
    fn count(&mut self, numbers: &mut Numbers) {
        let keys: Vec<u64> = (0..64).map(|_| address(numbers, self.width)).collect();
        let bytes = std::array::from_fn(|_| numbers.next() % 1500);
        for some in [u64::MAX, numbers.next(), 0x7fff_0000_0000_0001] {
            let mut results = vec![0; 64 * self.fast.result_layout().words];
            let hits = some & self.fast.lookup(u64::MAX, &keys, &mut results, 64, 0);
            let heads = results.first_chunk().expect("a row");
            self.fast.count_hits(hits, heads, &bytes);
            for (slot, key) in keys.iter().enumerate().filter(|(slot, _)| hits >> slot & 1 == 1) {
                let entry = self
                    .table
                    .lookup(&[Bits::new(self.width, (*key).into())])
                    .expect("a hit");
                let count = self.counted.entry(entry.handle.get()).or_default();
                count.packets += 1;
                count.bytes += bytes[slot];
            }
        }
        // Numbers that were never allocated do not count, nor does the first; some of them would
        // lie on slots between records.
        for number in [u64::MAX, 0, 15, 16, 1 << 21, 1 << 22, 1 << 23, 1 << 30] {
            self.fast.count_hits(u64::MAX, &[number; 64], &bytes);
        }
        let handle = self.handles.get(numbers.below(2 * self.handles.len() + 1));
        if let Some(handle) = handle.filter(|_| numbers.below(4) == 0) {
            let counted = self.fast.take_counted(handle.get());
            assert_eq!(self.counted.remove(&handle.get()).unwrap_or_default(), counted);
        }
    }

    fn check_counts(&self, fast: &FastTable) {
        for handle in &self.handles {
            let expected = self.counted.get(&handle.get()).copied().unwrap_or_default();
            assert_eq!(fast.counted(handle.get()), expected);
        }
        let all: HashMap<u32, HitCount> = fast.all_counted().into_iter().collect();
        assert_eq!(all, self.counted);
    }

    /// Looks 64 addresses up, some of which have entries: in one part, and in two.
    fn check(&self, fast: &FastTable, numbers: &mut Numbers, now_ns: u64) {
        let keys: Vec<u64> = (0..64).map(|_| address(numbers, self.width)).collect();
        let words = fast.result_layout().words;
        let slots = [u64::MAX, 0x8421_7fff_0000_1248, 1 << 63];
        for (active, in_two_parts) in slots.into_iter().flat_map(|slots| [(slots, false), (slots, true)]) {
            let mut results = vec![0; 64 * words];
            let guard = fast.epochs().enter();
            let (view, mut queue) = (fast.view(&guard), PrefetchQueue::default());
            // Bits beyond the key's width are ignored.
            let dirty: Vec<u64> = keys.iter().map(|key| key | numbers.next() << self.width).collect();
            view.prefetch(active, &dirty, 64, &mut queue);
            let mut pending = PendingLookup::default();
            if in_two_parts {
                view.begin(active, &dirty, 64, &mut pending);
            }
            let is_pending = pending.is_pending();
            let finished = view.finish(active, &dirty, &mut results, 64, now_ns, &mut pending);
            assert!(finished.is_some() == is_pending && !pending.is_pending());
            let hits = finished
                .unwrap_or_else(|| view.lookup_and_prefetch(active, &dirty, &mut results, 64, now_ns, &mut queue));
            for (slot, key) in keys.iter().enumerate().filter(|(slot, _)| active >> slot & 1 == 1) {
                let entry = self.table.lookup(&[Bits::new(self.width, (*key).into())]);
                let result: Vec<u64> = results.iter().skip(slot).step_by(64).copied().collect();
                assert_eq!(hits >> slot & 1 == 1, entry.is_some(), "{key:x}");
                assert_eq!(result[0] & head::HIT != 0, entry.is_some(), "{key:x}");
                if fast.has_handles() {
                    assert_eq!(head::handle(result[0]), entry.map_or(0, |e| e.handle.get()), "{key:x}");
                }
                let Some((entry, EntryAction::Call(call))) = entry.map(|e| (e, &e.action)) else {
                    continue;
                };
                for (place, value) in fast.result_layout().actions[1].iter().zip(&call.arguments) {
                    let mut expected = vec![0; words];
                    place.write(&mut expected, value);
                    let ones = u64::MAX >> (64 - place.width.min(64));
                    let word = usize::from(place.word);
                    assert_eq!(result[word] >> place.shift & ones, expected[word] >> place.shift & ones);
                }
                if self.table.spec().idle_timeout {
                    let last = fast.last_hit_ns(entry.handle.get()).expect("it is there");
                    assert!(now_ns - last < LAST_HIT_TICK_NS, "{last} is not {now_ns}");
                }
            }
        }
    }
}

/// Returns the largest number of entries that existed.
fn come_and_go(width: u32, data: &[u32], idle: bool, most: usize) -> usize {
    let without_counts = come_and_go_with(width, data, idle, false, most);
    assert_eq!(come_and_go_with(width, data, idle, true, most), without_counts);
    without_counts
}

fn come_and_go_with(width: u32, data: &[u32], idle: bool, counts: bool, most: usize) -> usize {
    let mut numbers = Numbers(u64::from(width) << 8 | data.len() as u64);
    let (mut routes, mut largest) = (Routes::new(width, data, idle, counts), 0);
    assert_eq!(routes.fast.keeps_counts(), counts);
    // A sequence of its own, so that the prefixes are the same with and without counts.
    let mut hits = Numbers(7);
    for step in 1..4 * most {
        // The table grows, then shrinks.
        let is_growing = step < 2 * most;
        match numbers.below(8) {
            0 => routes.change(&mut numbers),
            1 => drop(routes.take(&mut numbers)),
            2 => routes.put(&mut numbers),
            _ if is_growing => routes.put(&mut numbers),
            _ => drop(routes.take(&mut numbers)),
        }
        largest = largest.max(routes.handles.len());
        if step % 61 == 0 {
            routes.check(&routes.fast, &mut numbers, step as u64 * LAST_HIT_TICK_NS);
        }
        if counts && step % 23 == 0 {
            routes.count(&mut hits);
        }
        if counts && step % 211 == 0 {
            routes.check_counts(&routes.fast);
        }
    }
    assert!(routes.handles.len() < largest / 4, "most of them went");
    largest
}

#[test]
fn few() {
    come_and_go(32, &[9, 32], false, if cfg!(miri) { 40 } else { 600 });
    come_and_go(32, &[32, 48, 48, 16], true, if cfg!(miri) { 40 } else { 600 });
    come_and_go(20, &[], false, if cfg!(miri) { 40 } else { 600 });
}

#[test]
fn more_than_ranges_take() {
    if !cfg!(miri) {
        assert!(come_and_go(32, &[9, 32], true, 2500) > 1200);
        assert!(come_and_go(28, &[9], false, 3000) > 1200);
    }
}

/// Enough entries that the last ones have records near slots, and most places near slots are
/// taken.
#[test]
fn more_than_are_near() {
    if cfg!(miri) {
        return;
    }
    for (width, data, idle, counts) in [
        (32, &[9, 32][..], false, true),
        (24, &[9], false, false),
        (29, &[9, 32, 32], true, true),
    ] {
        let mut numbers = Numbers(width.into());
        let mut routes = Routes::new(width, data, idle, counts);
        (0..120_000).for_each(|_| routes.put(&mut numbers));
        assert!(routes.handles.len() > 20_000, "{}", routes.handles.len());
        for step in 0..9_000_u64 {
            match numbers.below(8) {
                0 => routes.change(&mut numbers),
                1 | 2 => routes.put(&mut numbers),
                _ if step < 4_000 => drop(routes.take(&mut numbers)),
                _ => (0..15).for_each(|_| drop(routes.take(&mut numbers))),
            }
            if step % 61 == 0 {
                routes.check(&routes.fast, &mut numbers, step * LAST_HIT_TICK_NS);
                if counts {
                    routes.count(&mut numbers);
                }
            }
            if counts && step % 997 == 0 {
                routes.check_counts(&routes.fast);
            }
        }
        assert!(routes.handles.len() < 10_000, "most of them went");
    }
}

#[test]
fn at_once() {
    for many in [50, 900, 1500] {
        let many = if cfg!(miri) { many / 10 } else { many };
        let mut numbers = Numbers(many);
        let mut routes = Routes::new(32, &[9, 32], false, false);
        (0..many).for_each(|_| routes.put(&mut numbers));
        let [bulk, together] = std::array::from_fn(|_| FastTable::new(routes.table.spec()));
        bulk.bulk_load(&mut routes.table.entries());
        let gone: Vec<Entry> = (0..many / 3).filter_map(|_| routes.take(&mut numbers)).collect();
        gone.iter().for_each(|entry| bulk.remove(entry));
        together.update_batch(|changes| {
            gone.iter().for_each(|entry| changes.insert(entry));
            routes.table.entries().for_each(|entry| changes.insert(entry));
            gone.iter().for_each(|entry| changes.remove(entry));
        });
        for now_ns in 0..20 {
            for fast in [&bulk, &together, &routes.fast] {
                routes.check(fast, &mut numbers, now_ns);
            }
        }
    }
}

#[test]
fn counts_stay_where_all_is_loaded_anew() {
    for many in [50, 900, 1500] {
        let many = if cfg!(miri) { many / 10 } else { many };
        let mut numbers = Numbers(many);
        let mut routes = Routes::new(32, &[9, 32], false, true);
        (0..many).for_each(|_| routes.put(&mut numbers));
        (0..20).for_each(|_| routes.count(&mut numbers));
        routes.check_counts(&routes.fast);
        routes.fast.bulk_load(&mut routes.table.entries());
        routes.check_counts(&routes.fast);
        (0..20).for_each(|_| routes.count(&mut numbers));
        // Entries that are removed and inserted in one batch keep their counts.
        let all: Vec<&Entry> = routes.table.entries().collect();
        routes.fast.update_batch(|changes| {
            all.iter().for_each(|entry| changes.remove(entry));
            all.iter().for_each(|entry| changes.insert(entry));
        });
        routes.check_counts(&routes.fast);
        // Entries that are removed lose them.
        for _ in 0..many / 2 {
            let handle = routes.handles.swap_remove(0);
            routes.table.delete(&EntryRef::Handle(handle)).expect("it was there");
            routes.counted.remove(&handle.get());
        }
        routes.fast.bulk_load(&mut routes.table.entries());
        routes.check_counts(&routes.fast);
    }
}

#[test]
fn records_that_are_far_are_counted_in() {
    if cfg!(miri) {
        return;
    }
    let mut numbers = Numbers(1);
    let mut routes = Routes::new(32, &[9, 32], false, true);
    // More than 256 KB of records, of 32 bytes each.
    while routes.handles.len() < 9000 {
        let length = 18 + numbers.below(15) as u32;
        let address = Bits::new(32, address(&mut numbers, 32).into());
        let route = KeyMatch::Lpm {
            value: address.and(&Bits::prefix_mask(32, length)),
            prefix_length: length,
        };
        let new = NewEntry::new(vec![route], call(&routes.data, numbers.next()));
        if let Ok(handle) = routes.table.insert(new) {
            routes.handles.push(handle);
        }
    }
    routes.fast.bulk_load(&mut routes.table.entries());
    for now_ns in 0..30 {
        routes.check(&routes.fast, &mut numbers, now_ns);
        routes.count(&mut numbers);
    }
    routes.check_counts(&routes.fast);
    assert!(routes.counted.len() > 100);
}

#[test]
fn tables_of_other_keys_count_nothing() {
    let spec = TableSpec::new("t")
        .key(KeySpec::new("k", 32, MatchKind::Exact))
        .action(ActionSpec::new("a"));
    let fast = FastTable::with_counts(&spec, Arc::new(Epochs::new()));
    assert!(!fast.keeps_counts() && fast.has_handles());
    fast.count_hits(u64::MAX, &[16; 64], &[60; 64]);
    assert_eq!(
        (fast.counted(16), fast.all_counted()),
        (HitCount::default(), Vec::new())
    );
}

/// Whether this processor supports the two-part lookup.
fn supports_two_part_lookup() -> bool {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::is_x86_feature_detected as has;
        has!("avx512vbmi") && has!("avx512bw") && has!("avx512cd") && has!("avx512dq") && has!("avx512vl")
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    false
}

/// A pending lookup belongs to its table, slots and keys. Records that are removed while it is
/// pending can still be read.
#[test]
fn pending_lookups_are_finished_only_by_their_own_table_slots_and_keys() {
    let mut numbers = Numbers(1);
    let [mut routes, mut others] = std::array::from_fn(|_| Routes::new(32, &[9, 32], false, false));
    (0..4000).for_each(|_| routes.put(&mut numbers));
    (0..4000).for_each(|_| others.put(&mut numbers));
    let keys: Vec<u64> = (0..64).map(|_| address(&mut numbers, 32)).collect();
    let words = routes.fast.result_layout().words;
    let [mut before, mut after] = std::array::from_fn(|_| vec![0; 64 * words]);
    let epochs = Arc::clone(routes.fast.epochs());
    let guard = epochs.enter();
    let view = routes.fast.view(&guard);
    let mut pending = PendingLookup::default();
    view.begin(u64::MAX, &keys, 64, &mut pending);
    assert_eq!(pending.is_pending(), supports_two_part_lookup());
    if !pending.is_pending() {
        return;
    }
    let hits = view.lookup(u64::MAX, &keys, &mut before, 64, 0);
    let handles: Vec<u32> = before[..64].iter().map(|head| head::handle(*head)).collect();
    assert_ne!(hits, 0);
    let other_epochs = Arc::clone(others.fast.epochs());
    let other_guard = other_epochs.enter();
    let other = others.fast.view(&other_guard);
    assert_eq!(other.finish(u64::MAX, &keys, &mut after, 64, 0, &mut pending), None);
    assert_eq!(view.finish(u64::MAX >> 1, &keys, &mut after, 64, 0, &mut pending), None);
    let moved_keys = keys.clone();
    assert_eq!(
        view.finish(u64::MAX, &moved_keys, &mut after, 64, 0, &mut pending),
        None
    );
    routes.table.entries().for_each(|entry| routes.fast.remove(entry));
    let finished = view.finish(u64::MAX, &keys, &mut after, 64, 0, &mut pending);
    let Some(finished @ 1..) = finished else {
        panic!("{finished:?} of {hits:x} were hit")
    };
    assert_eq!(finished & !hits, 0);
    let mut same = 0;
    for (slot, handle) in handles.into_iter().enumerate() {
        let now = head::handle(after[slot]);
        assert_eq!(now != 0, finished >> slot & 1 == 1);
        // Numbers in groups, of prefixes longer than 24 bits, are read in the second part, so they
        // may be newer.
        assert!(now == 0 || routes.handles.iter().any(|handle| handle.get() == now));
        same += u32::from(now == handle);
    }
    assert!(same > 32, "most are as they were: {same}");
    let view = routes.fast.view(&guard);
    assert_eq!(view.lookup(u64::MAX, &keys, &mut after, 64, 0), 0);
}
