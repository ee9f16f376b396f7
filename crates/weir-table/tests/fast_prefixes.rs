//! Prefixes that come and go one by one, so many that structures for few become those for many.

use weir_ir::{ActionCall, Bits, KeyMatch, MatchKind};
use weir_table::fast::{FastTable, Fetches, LAST_HIT_STEP_NS, head};
use weir_table::{ActionSpec, Entry, EntryAction, EntryHandle, EntryRef, KeySpec, NewEntry, Table, TableSpec};

/// Numbers without order, the same each time.
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

/// An address of this many bits. There are only so many different ones that prefixes lie within each other. Half of them lie close
/// together, as those of one network.
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
}

impl Routes {
    fn new(width: u32, data: &[u32], idle: bool) -> Self {
        let forward = data
            .iter()
            .fold(ActionSpec::new("forward"), |a, w| a.parameter("p", *w));
        let mut spec = TableSpec::new("routes").key(KeySpec::new("address", width, MatchKind::Lpm));
        (spec.idle_timeout, spec.size) = (idle, 1 << 16);
        let spec = spec.action(ActionSpec::new("drop")).action(forward);
        Routes {
            fast: FastTable::new(&spec),
            table: Table::new(spec),
            handles: Vec::new(),
            width,
            data: data.to_vec(),
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

    /// Looks 64 addresses up, of which some have entries.
    fn check(&self, fast: &FastTable, numbers: &mut Numbers, now_ns: u64) {
        let keys: Vec<u64> = (0..64).map(|_| address(numbers, self.width)).collect();
        let words = fast.result_layout().words;
        for active in [u64::MAX, 0x8421_7fff_0000_1248, 1 << 63] {
            let mut results = vec![0; 64 * words];
            let guard = fast.epochs().enter();
            let (present, mut later) = (fast.present(&guard), Fetches::default());
            // Bits beyond the key's own have no meaning.
            let dirty: Vec<u64> = keys.iter().map(|key| key | numbers.next() << self.width).collect();
            present.prepare(active, &dirty, 64, &mut later);
            let hits = present.lookup_meanwhile(active, &dirty, &mut results, 64, now_ns, &mut later);
            for (slot, key) in keys.iter().enumerate().filter(|(slot, _)| active >> slot & 1 == 1) {
                let entry = self.table.lookup(&[Bits::new(self.width, (*key).into())]);
                let result: Vec<u64> = results.iter().skip(slot).step_by(64).copied().collect();
                assert_eq!(hits >> slot & 1 == 1, entry.is_some(), "{key:x}");
                assert_eq!(result[0] & head::HIT != 0, entry.is_some(), "{key:x}");
                assert_eq!(head::handle(result[0]), entry.map_or(0, |e| e.handle.get()), "{key:x}");
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
                    assert!(now_ns - last < LAST_HIT_STEP_NS, "{last} is not {now_ns}");
                }
            }
        }
    }
}

/// Gives how many there were at most.
fn come_and_go(width: u32, data: &[u32], idle: bool, most: usize) -> usize {
    let mut numbers = Numbers(u64::from(width) << 8 | data.len() as u64);
    let (mut routes, mut largest) = (Routes::new(width, data, idle), 0);
    for step in 1..4 * most {
        // More and more, then fewer and fewer.
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
            routes.check(&routes.fast, &mut numbers, step as u64 * LAST_HIT_STEP_NS);
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

#[test]
fn at_once() {
    for many in [50, 900, 1500] {
        let many = if cfg!(miri) { many / 10 } else { many };
        let mut numbers = Numbers(many);
        let mut routes = Routes::new(32, &[9, 32], false);
        (0..many).for_each(|_| routes.put(&mut numbers));
        let [bulk, together] = std::array::from_fn(|_| FastTable::new(routes.table.spec()));
        bulk.bulk_load(&mut routes.table.entries());
        let gone: Vec<Entry> = (0..many / 3).filter_map(|_| routes.take(&mut numbers)).collect();
        gone.iter().for_each(|entry| bulk.remove(entry));
        together.together(|changes| {
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
