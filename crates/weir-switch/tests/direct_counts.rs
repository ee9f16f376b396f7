//! Direct counters of tables that count hits themselves, in compiled programs: the values are those
//! of the interpreter.

use std::collections::BTreeSet;
use std::sync::Arc;
use weir_arch::Resource;
use weir_ir::{Bits, ConstValue, ExternId, KeyMatch, MatchKind, Operand, TableId, Terminator, Type};
use weir_switch::testing::V1Builder;
use weir_switch::{BatchMode, Cell, Count, Frame, Switch, TAILROOM, Write, WriteResult};
use weir_table::{EntryAction, EntryRef, NewEntry, OpResult, TableOp};

/// A header of an address; its longest prefix says to which port, and has two counters.
fn router() -> (Switch, TableId, [ExternId; 2]) {
    let mut v1 = V1Builder::new();
    let header = v1.program.header("h", &[("address", Type::Bits(32))]);
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let address = v1.program.field(header, 0);
    let (go, nothing) = (
        v1.program.action("C.go", &[("port", 9)]),
        v1.program.action("C.nothing", &[]),
    );
    let routes = v1
        .program
        .table("C.routes", &[("hdr.h.address", 32, MatchKind::Lpm)], &[go, nothing]);
    let counters = ["C.one", "C.other"].map(|name| {
        let kind = ConstValue::Enum {
            enum_name: "CounterType".into(),
            member: "packets_and_bytes".into(),
        };
        v1.program
            .instance(name, "direct_counter", vec![], vec![("type", kind)])
    });
    v1.program.program().tables[routes.table].direct = counters.to_vec();
    let (spec, port) = (v1.standard("egress_spec"), routes.parameters[0][0]);
    v1.control("ingress", |b| {
        b.block(|b| b.lookup(&routes, vec![Operand::Var(address)], 1))
            .block(|b| b.set(spec, Operand::Var(port)).end(Terminator::Return))
    });
    let switch = Switch::new(Arc::new(v1.finish())).expect("loads");
    (switch, routes.table, counters)
}

/// Numbers without order, the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    /// Of few, so that prefixes are hit, and lie within each other.
    fn address(&mut self) -> u32 {
        (10 << 24 | self.below(4) << 16 | self.below(3) << 7 | self.below(2)) as u32
    }
}

/// The same done to a switch that interprets its program, and to one that has compiled it.
struct Both {
    switches: [Switch; 2],
    table: TableId,
    counters: [ExternId; 2],
    /// All handles that there ever were.
    handles: BTreeSet<u32>,
    entries: Vec<EntryRef>,
    /// Packets come often.
    forwards: bool,
}

impl Both {
    fn new() -> Self {
        let (switch, table, counters) = router();
        let mut compiled = switch.clone();
        compiled.compile().expect("it can be compiled");
        Both {
            switches: [switch, compiled],
            table,
            counters,
            handles: BTreeSet::new(),
            entries: Vec::new(),
            forwards: true,
        }
    }

    fn write(&mut self, writes: Vec<Write>) {
        let results = self
            .switches
            .each_mut()
            .map(|s| s.write_all(writes.clone(), BatchMode::Rollback));
        assert_eq!(results[0], results[1]);
        for result in results.into_iter().flatten().flatten() {
            if let WriteResult::Table(OpResult::Handle(handle)) = result {
                self.handles.insert(handle.get());
                self.entries.push(EntryRef::Handle(handle));
            }
        }
    }

    fn insertion(&self, numbers: &mut Numbers) -> Write {
        let prefix_length = [8, 16, 24, 25, 32][numbers.below(5) as usize];
        let address = Bits::new(32, numbers.address().into());
        let key = KeyMatch::Lpm {
            value: address.and(&Bits::prefix_mask(32, prefix_length)),
            prefix_length,
        };
        let entry = NewEntry::new(
            vec![key],
            EntryAction::call(0, vec![Bits::new(9, numbers.below(8).into())]),
        );
        Write::Table(self.table, TableOp::Insert(entry))
    }

    fn some(&self, numbers: &mut Numbers) -> Option<EntryRef> {
        let at = numbers.below(self.entries.len() as u64 + 1);
        self.entries.get(at as usize).cloned()
    }

    fn forward(&mut self, numbers: &mut Numbers) {
        const LENGTHS: u64 = 40;
        let many = 1 + numbers.below(64) as usize;
        let packets: Vec<(u32, usize)> = (0..many)
            .map(|_| (numbers.address(), 4 + numbers.below(LENGTHS) as usize))
            .collect();
        for switch in &mut self.switches {
            let mut memory = vec![[0; 64 + 4 + LENGTHS as usize + TAILROOM]; many];
            let frames = memory.iter_mut().zip(&packets).map(|(bytes, (address, length))| {
                bytes[64..68].copy_from_slice(&address.to_be_bytes());
                Frame::new(bytes, 64, *length).expect("room")
            });
            let mut frames: Vec<Frame<'_>> = frames.collect();
            switch.forward(&vec![0; many], &mut frames, 10);
            switch.advance(10);
        }
    }

    fn step(&mut self, numbers: &mut Numbers) {
        match numbers.below(16) {
            // Seldom in some runs, so that much is written in between.
            0..4 if self.forwards || numbers.below(8) == 0 => self.forward(numbers),
            4 | 5 => self.write(vec![self.insertion(numbers)]),
            6 => {
                if let Some(entry) = self.some(numbers) {
                    // Its handle may be used again at once.
                    self.delete(&entry);
                    self.write(vec![self.insertion(numbers)]);
                }
            }
            7 => {
                if let Some(entry) = self.some(numbers) {
                    self.modify(&entry);
                }
            }
            8 => {
                let count = Count {
                    packets: numbers.below(100),
                    bytes: numbers.below(10_000),
                };
                let at = self
                    .handles
                    .iter()
                    .nth(numbers.below(self.handles.len() as u64 + 1) as usize);
                let cell = at.map_or(Cell::All, |handle| Cell::Index((*handle).into()));
                self.write(vec![Write::Counter(
                    self.counters[numbers.below(2) as usize],
                    cell,
                    count,
                )]);
            }
            9 => {
                // All of it is taken back: the last one cannot be done.
                let mut writes = vec![
                    self.insertion(numbers),
                    Write::Counter(self.counters[0], Cell::All, Count::default()),
                ];
                writes.extend(
                    self.some(numbers)
                        .map(|entry| Write::Table(self.table, TableOp::Delete(entry))),
                );
                writes.push(Write::Counter(
                    self.counters[0],
                    Cell::Index(u64::MAX),
                    Count::default(),
                ));
                self.write(writes);
            }
            10 => self.switches = self.switches.each_ref().map(Switch::clone),
            11 => self.switches[1].compile().expect("it can be compiled"),
            12 => self.switches[1].load_tables(),
            13 if numbers.below(8) == 0 => self.write(vec![Write::Table(self.table, TableOp::Clear)]),
            _ => {}
        }
    }

    fn check(&self) {
        let [interpreted, compiled] = &self.switches;
        for id in self.counters {
            for handle in &self.handles {
                let of = |switch: &Switch| switch.counter(id, (*handle).into());
                assert_eq!(of(interpreted), of(compiled), "of {handle}");
            }
        }
        // Which cells have memory may differ, what they hold may not.
        for (one, other) in [(interpreted, compiled), (compiled, interpreted)] {
            for ((id, index), count) in one.counter_values() {
                assert_eq!(other.counter(id, index), Ok(count));
            }
        }
    }
}

#[test]
fn compiled_or_not_they_count_the_same_whatever_is_written_meanwhile() {
    let mut counted = 0;
    for seed in 0..16 {
        let (mut both, mut numbers) = (Both::new(), Numbers(seed));
        both.forwards = seed % 2 == 0;
        for _ in 0..300 {
            both.step(&mut numbers);
            both.check();
        }
        counted += both.switches[0].counter_values().len();
    }
    assert!(counted > 40, "they have counted something");
}

impl Both {
    fn insert(&mut self, address: u32, prefix_length: u32) -> EntryRef {
        let value = Bits::new(32, address.into());
        let key = KeyMatch::Lpm { value, prefix_length };
        let entry = NewEntry::new(vec![key], EntryAction::call(0, vec![Bits::new(9, 1)]));
        self.write(vec![Write::Table(self.table, TableOp::Insert(entry))]);
        self.entries.last().cloned().expect("it was inserted")
    }

    fn delete(&mut self, entry: &EntryRef) {
        self.write(vec![Write::Table(self.table, TableOp::Delete(entry.clone()))]);
    }

    fn modify(&mut self, entry: &EntryRef) {
        let (metadata, note, idle_timeout_ns) = Default::default();
        let (entry, action) = (entry.clone(), EntryAction::call(0, vec![Bits::new(9, 2)]));
        self.write(vec![Write::Table(
            self.table,
            TableOp::Modify {
                entry,
                action,
                metadata,
                note,
                idle_timeout_ns,
            },
        )]);
    }
}

#[test]
fn an_entry_that_gets_the_handle_of_one_and_the_prefix_of_another_inherits_nothing() {
    let (mut both, mut numbers) = (Both::new(), Numbers(3));
    let all: Vec<EntryRef> = (0..2).map(|i| both.insert(10 << 24 | i << 16, 16)).collect();
    let others: Vec<EntryRef> = (0..6).map(|i| both.insert(10 << 24 | 2 << 16 | i << 7, 25)).collect();
    (0..8).for_each(|_| both.forward(&mut numbers));
    both.check();
    // What is told of the first is what the last one has become by then.
    both.modify(&all[0]);
    both.delete(&all[0]);
    both.delete(&all[1]);
    let new = both.insert(10 << 24 | 1 << 16, 16);
    assert_eq!(new, all[0], "its handle");
    both.check();
    // Records are used again that have become free.
    for _ in 0..6 {
        both.forward(&mut numbers);
        both.check();
        others.iter().for_each(|entry| both.modify(entry));
    }
    let other = both.insert(10 << 24 | 3 << 16, 16);
    assert_eq!(other, all[1], "its handle");
    both.check();
    both.forward(&mut numbers);
    both.check();
    both.delete(&other);
    both.check();
}

#[test]
fn hits_are_counted_where_lookups_have_been() {
    let (mut both, mut numbers) = (Both::new(), Numbers(5));
    both.insert(10 << 24, 8);
    both.forward(&mut numbers);
    let handle = u64::from(*both.handles.first().expect("one"));
    let apart = both.switches.each_ref().map(|switch| {
        let Resource::DirectCounter(_, cells) = switch.state().resource(both.counters[0]) else {
            panic!("it is a direct counter")
        };
        (
            cells.get(handle).map(|c| c.packets),
            switch.counter(both.counters[0], handle).map(|c| c.packets),
        )
    });
    let [(there, all), (compiled, compiled_all)] = apart;
    assert!(there > Some(0) && all == Ok(there.unwrap_or(0)));
    assert_eq!((compiled, compiled_all), (Some(0), all));
}
