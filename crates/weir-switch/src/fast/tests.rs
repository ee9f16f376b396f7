use super::*;
use crate::control::Write;
use crate::testing::V1Builder;
use weir_ir::{Bits, KeyMatch, MatchKind, Operand, Terminator, Type};
use weir_table::{EntryAction, EntryRef, NewEntry, Note, TableOp};

/// A compiled switch that sends packets of an address to the port of its longest prefix.
fn router() -> (Switch, TableId) {
    let mut v1 = V1Builder::new();
    let header = v1.program.header("h", &[("address", Type::Bits(32))]);
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let (address, go) = (v1.program.field(header, 0), v1.program.action("C.go", &[("port", 9)]));
    let routes = v1
        .program
        .table("C.routes", &[("hdr.h.address", 32, MatchKind::Lpm)], &[go]);
    let (spec, port) = (v1.standard("egress_spec"), routes.parameters[0][0]);
    v1.control("ingress", |b| {
        b.block(|b| b.lookup(&routes, vec![Operand::Var(address)], 1))
            .block(|b| b.set(spec, Operand::Var(port)).end(Terminator::Return))
    });
    let mut switch = Switch::new(Arc::new(v1.finish())).expect("loads");
    switch.compile().expect("it can be compiled");
    (switch, routes.table)
}

#[test]
fn what_is_taken_out_of_tables_is_freed_at_once_and_the_reader_is_back_then() {
    let (mut switch, table) = router();
    let key = |i: u32| KeyMatch::Lpm {
        value: Bits::new(32, u128::from(i) << 12),
        prefix_length: 24,
    };
    // Few are replaced as a whole at each change.
    for i in 0..20 {
        let entry = NewEntry::new(vec![key(i)], EntryAction::call(0, vec![Bits::new(9, i.into())]));
        switch.write(Write::Table(table, TableOp::Insert(entry))).expect("new");
        if i % 3 == 2 {
            let gone = TableOp::Delete(EntryRef::Key {
                matches: vec![key(i - 1)],
                priority: 0,
            });
            switch.write(Write::Table(table, gone)).expect("it is there");
        }
        let mut memory = [0; 64 + 4 + TAILROOM];
        memory[64..68].copy_from_slice(&(i << 12).to_be_bytes());
        let mut frame = Frame::new(&mut memory, 64, 4).expect("room");
        let verdict = switch.forward(&[1], std::slice::from_mut(&mut frame), 0);
        assert_eq!(verdict, [Verdict::Transmit(i)]);
        let fast = switch.fast.as_ref().expect("compiled");
        assert_eq!(fast.tables[table.index()].epochs().waiting(), 0);
        assert!(fast.reader.is_online());
    }
}

/// The port that a switch sends a packet for an address to; `None` where it drops it.
fn port(switch: &mut Switch, address: u32) -> Option<u32> {
    let mut memory = [0; 64 + 4 + TAILROOM];
    memory[64..68].copy_from_slice(&address.to_be_bytes());
    let mut frame = Frame::new(&mut memory, 64, 4).expect("room");
    match switch.forward(&[1], std::slice::from_mut(&mut frame), 0) {
        [Verdict::Transmit(port)] => Some(*port),
        _ => None,
    }
}

#[test]
fn code_sees_what_was_changed_by_whatever_way_and_a_clone_only_its_own() {
    let (mut switch, table) = router();
    let key = || KeyMatch::Lpm {
        value: Bits::new(32, 0x0a00_0000),
        prefix_length: 8,
    };
    let to = |port: u32| EntryAction::call(0, vec![Bits::new(9, port.into())]);
    let modify = |port: u32| TableOp::Modify {
        entry: EntryRef::Key {
            matches: vec![key()],
            priority: 0,
        },
        action: to(port),
        metadata: 0,
        note: Note::default(),
        idle_timeout_ns: 0,
    };
    switch
        .write(Write::Table(table, TableOp::Insert(NewEntry::new(vec![key()], to(3)))))
        .expect("new");
    assert_eq!(port(&mut switch, 0x0a00_0001), Some(3));
    // Not through the switch, and several times before the next packet.
    for port in [4, 5] {
        let state = switch.state_mut().table_mut(table).expect("it is there");
        state.table.apply(modify(port), 0).expect("it is there");
    }
    assert_eq!(port(&mut switch, 0x0a00_0001), Some(5));
    let mut other = switch.clone();
    other.write(Write::Table(table, modify(6))).expect("it is there");
    assert_eq!(port(&mut switch, 0x0a00_0001), Some(5));
    assert_eq!(port(&mut other, 0x0a00_0001), Some(6));
    // A clone is made of what was changed and not taken over yet.
    switch.write(Write::Table(table, modify(7))).expect("it is there");
    assert_eq!(port(&mut switch.clone(), 0x0a00_0001), Some(7));
    assert_eq!(port(&mut switch, 0x0a00_0001), Some(7));
}
