//! What the externs of v1model do.

use std::sync::Arc;
use weir_interp::testing::{ProgramBuilder, TableVars, constant, in_value};
use weir_ir::{
    ArgumentValue, Bits, ConstValue, ExternId, HeaderId, InLeaf, KeyMatch, MatchKind, Operand, Terminator, Type,
    TypeSpec, VarId,
};
use weir_switch::testing::V1Builder;
use weir_switch::{
    BatchMode, Cell, Color, Count, DropReason, LoadError, MeterConfig, Rate, ResourceKind, Switch, Write, WriteResult,
};
use weir_table::{EntryAction, EntryRef, Group, GroupMember, Member, NewEntry, OpResult, ProfileOp, TableOp};

/// A header `h` of `index` (8 bits) and `value` (16 bits), parsed and sent back to port 0.
struct Simple {
    v1: V1Builder,
    header: HeaderId,
    index: VarId,
    value: VarId,
}

fn simple() -> Simple {
    let mut v1 = V1Builder::new();
    let header = v1
        .program
        .header("h", &[("index", Type::Bits(8)), ("value", Type::Bits(16))]);
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let (index, value) = (v1.program.field(header, 0), v1.program.field(header, 1));
    Simple {
        v1,
        header,
        index,
        value,
    }
}

fn switch(v1: V1Builder) -> Switch {
    Switch::new(Arc::new(v1.finish())).expect("loads")
}

fn var(v: VarId) -> ArgumentValue {
    in_value(Operand::Var(v))
}

fn number(width: u32, value: u128) -> ArgumentValue {
    in_value(constant(width, value))
}

fn member(enum_name: &str, member: &str) -> ConstValue {
    ConstValue::Enum {
        enum_name: enum_name.into(),
        member: member.into(),
    }
}

fn size(n: u128) -> ConstValue {
    ConstValue::Bits(Bits::new(32, n))
}

/// A program whose ingress makes these calls.
fn calling(s: Simple, calls: Vec<(Option<ExternId>, &str, Vec<ArgumentValue>)>) -> Switch {
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| {
            calls
                .into_iter()
                .fold(b, |b, (i, f, a)| b.call(i, f, a))
                .end(Terminator::Return)
        })
    });
    switch(v1)
}

/// The 16 bits of `value` that come out.
fn value_out(switch: &mut Switch, packet: &[u8]) -> u16 {
    let out = switch.inject(0, packet, 0);
    u16::from_be_bytes([out[0].bytes[1], out[0].bytes[2]])
}

#[test]
fn counters_count_packets_and_received_bytes_within_their_size() {
    let mut s = simple();
    let counter = s.v1.program.instance(
        "C.counts",
        "counter",
        vec![],
        vec![("size", size(4)), ("type", member("CounterType", "packets_and_bytes"))],
    );
    let index = s.index;
    let mut switch = calling(s, vec![(Some(counter), "count", vec![var(index)])]);
    for packet in [&[1, 0, 0][..], &[1, 0, 0, 9, 9], &[4, 0, 0]] {
        switch.inject(0, packet, 0);
    }
    let id = switch.resource(ResourceKind::Counter, "counts").expect("there");
    assert_eq!(switch.counter(id, 1), Ok(Count { packets: 2, bytes: 8 }));
    assert_eq!(switch.counter(id, 0), Ok(Count::default()));
    assert!(switch.counter(id, 4).is_err());
    switch
        .write(Write::Counter(id, Cell::All, Count { packets: 7, bytes: 0 }))
        .expect("a counter");
    assert_eq!(switch.counter(id, 3).map(|c| c.packets), Ok(7));
}

#[test]
fn registers_keep_values_and_out_of_range_reads_leave_the_destination() {
    let mut s = simple();
    let register =
        s.v1.program
            .instance("C.r", "register", vec![TypeSpec::Bit(16)], vec![("size", size(2))]);
    let (index, value) = (s.index, s.value);
    let old = s.v1.program.local("old", 16);
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| {
            b.set(old, constant(16, 0x1111))
                .call(Some(register), "read", vec![ArgumentValue::Out(vec![old]), var(index)])
                .call(Some(register), "write", vec![var(index), var(value)])
                .set(value, Operand::Var(old))
                .end(Terminator::Return)
        })
    });
    let mut switch = switch(v1);
    assert_eq!(value_out(&mut switch, &[1, 0xab, 0xcd]), 0);
    assert_eq!(value_out(&mut switch, &[1, 0, 0]), 0xabcd);
    assert_eq!(value_out(&mut switch, &[2, 0, 0]), 0x1111);
    let id = switch.resource(ResourceKind::Register, "r").expect("there");
    let wrong = switch.write(Write::Register(id, Cell::Index(0), vec![Bits::new(8, 1)]));
    assert!(
        wrong
            .expect_err("8 bits")
            .to_string()
            .contains("[16] bits, the value has [8]")
    );
    switch
        .write(Write::Register(id, Cell::Index(0), vec![Bits::new(16, 5)]))
        .expect("fits");
    assert_eq!(value_out(&mut switch, &[0, 0, 0]), 5);
}

#[test]
fn meters_colour_packets_by_the_clock_they_are_given() {
    let mut s = simple();
    let kind = member("MeterType", "packets");
    let meter =
        s.v1.program
            .instance("C.m", "meter", vec![], vec![("size", size(3)), ("type", kind)]);
    let (index, value) = (s.index, s.value);
    let args = vec![var(index), ArgumentValue::Out(vec![value])];
    let mut switch = calling(s, vec![(Some(meter), "execute_meter", args)]);
    let mut color = |now| {
        let out = switch.inject(0, &[1, 0xff, 0xff], now);
        out[0].bytes[2]
    };
    assert_eq!(color(0), Color::Green as u8, "without rates everything is green");
    let rate = Rate::from_tokens_per_second(1000);
    let config = MeterConfig {
        cir: rate,
        cbs: 1,
        pir: rate,
        pbs: 2,
    };
    switch
        .write(Write::Meter(ExternId::new(0), Cell::Index(1), Some(config)))
        .expect("a meter");
    let mut color = |index: u8, now| switch.inject(0, &[index, 0xff, 0xff], now)[0].bytes[2];
    assert_eq!([color(1, 0), color(1, 0), color(1, 0)], [0, 1, 2]);
    assert_eq!(color(1, 1_000_000), 0);
    assert_eq!(color(9, 1_000_000), 0xff, "beyond the end nothing is written");
}

/// A table on `h.index` with actions `a(port)` and `b`, a direct counter and a direct meter.
fn with_table(direct: bool) -> (Switch, Vec<ExternId>) {
    let mut s = simple();
    let p: &mut ProgramBuilder = &mut s.v1.program;
    let (a, b) = (p.action("C.a", &[("v", 16)]), p.action("C.b", &[]));
    let table: TableVars = p.table("C.t", &[("hdr.h.index", 8, MatchKind::Exact)], &[a, b]);
    let mut ids = Vec::new();
    if direct {
        let kind = member("CounterType", "packets");
        ids.push(p.instance("C.dc", "direct_counter", vec![], vec![("type", kind)]));
        let kind = member("MeterType", "packets");
        ids.push(p.instance("C.dm", "direct_meter", vec![TypeSpec::Bit(16)], vec![("type", kind)]));
        p.program().tables[table.table].direct = ids.clone();
    }
    let mut v1 = s.v1;
    let parameter = table.parameters[0][0];
    let (index, value, dm) = (s.index, s.value, ids.get(1).copied());
    v1.control("ingress", |body| {
        body.block(|b| b.lookup(&table, vec![Operand::Var(index)], 1))
            .block(|b| {
                let b = b.set(value, Operand::Var(parameter));
                match dm {
                    Some(dm) => b.call_with(
                        Some(dm),
                        "read",
                        vec![ArgumentValue::Out(vec![value])],
                        vec![],
                        Some(table.entry),
                    ),
                    None => b,
                }
                .end(Terminator::Return)
            })
    });
    (switch(v1), ids)
}

fn entry(index: u128, value: u128) -> NewEntry {
    NewEntry::new(
        vec![KeyMatch::Exact(Bits::new(8, index))],
        EntryAction::call(0, vec![Bits::new(16, value)]),
    )
}

#[test]
fn lookups_hand_over_action_data_and_are_counted() {
    let (mut switch, _) = with_table(false);
    let table = switch.table("t").expect("there");
    switch
        .write(Write::Table(table, TableOp::Insert(entry(1, 0x1234))))
        .expect("fits");
    assert_eq!(value_out(&mut switch, &[1, 0, 0]), 0x1234);
    assert_eq!(value_out(&mut switch, &[2, 0, 0]), 0);
    let state = switch.table_state(table).expect("there");
    assert_eq!((state.hits, state.misses), (1, 1));
    let (_, trace) = switch.inject_traced(0, &[2, 0, 0], 0);
    let text = trace.render(Default::default(), |_| None);
    assert!(
        text.contains("miss -> C.b(); the one entry does not match; the nearest is entry 1, it differs in hdr.h.index"),
        "{text}"
    );
}

#[test]
fn direct_counters_and_meters_belong_to_entries() {
    let (mut switch, ids) = with_table(true);
    let table = switch.table("t").expect("there");
    switch
        .write(Write::Table(table, TableOp::Insert(entry(1, 9))))
        .expect("fits");
    let handle = switch
        .table_state(table)
        .expect("there")
        .table
        .entries()
        .next()
        .expect("one")
        .handle;
    let none = MeterConfig {
        cbs: 1,
        pbs: 1,
        ..MeterConfig::default()
    };
    switch
        .write(Write::Meter(ids[1], Cell::Index(handle.get().into()), Some(none)))
        .expect("a meter");
    assert_eq!(
        [0, 1].map(|_| value_out(&mut switch, &[1, 0, 0])),
        [0, 2],
        "green, then red"
    );
    assert_eq!(value_out(&mut switch, &[2, 5, 5]), 0, "a miss does not run the meter");
    assert_eq!(switch.counter(ids[0], handle.get().into()).map(|c| c.packets), Ok(2));
    let key = EntryRef::Handle(handle);
    switch.write(Write::Table(table, TableOp::Delete(key))).expect("there");
    assert_eq!(switch.counter(ids[0], handle.get().into()).map(|c| c.packets), Ok(0));
    let next = switch
        .write(Write::Table(table, TableOp::Insert(entry(3, 9))))
        .expect("fits");
    assert_eq!(
        next,
        WriteResult::Table(OpResult::Handle(handle)),
        "the handle is used again"
    );
    assert_eq!(value_out(&mut switch, &[3, 0, 0]), 0, "and has no meter any more");
    assert_eq!(switch.counter(ids[0], handle.get().into()).map(|c| c.packets), Ok(1));
}

#[test]
fn what_is_taken_back_has_its_handle_and_counters_again() {
    let (mut switch, ids) = with_table(true);
    let table = switch.table("t").expect("there");
    let insert = |i| Write::Table(table, TableOp::Insert(entry(i, 9)));
    let Ok(WriteResult::Table(OpResult::Handle(handle))) = switch.write(insert(1)) else {
        panic!("it fits")
    };
    value_out(&mut switch, &[1, 0, 0]);
    let delete = Write::Table(table, TableOp::Delete(EntryRef::Handle(handle)));
    let batch = vec![delete, insert(2), insert(3), insert(3)];
    let error = switch.write_all(batch, BatchMode::Rollback).expect_err("one is twice");
    assert_eq!(error.failures[0].0, 3);
    let state = switch.table_state(table).expect("there");
    let left: Vec<_> = state.table.entries().map(|e| e.handle).collect();
    assert_eq!(left, [handle]);
    value_out(&mut switch, &[1, 0, 0]);
    assert_eq!(switch.counter(ids[0], handle.get().into()).map(|c| c.packets), Ok(2));
}

/// A table with an action selector over `h.value`.
fn with_selector() -> Switch {
    let mut s = simple();
    let p = &mut s.v1.program;
    let arguments = vec![
        ("algorithm", member("HashAlgorithm", "identity")),
        ("size", size(16)),
        ("outputWidth", size(16)),
    ];
    let selector = p.instance("C.sel", "action_selector", vec![], arguments);
    let (a, b) = (p.action("C.a", &[("v", 16)]), p.action("C.b", &[]));
    let keys = [
        ("hdr.h.index", 8, MatchKind::Exact),
        ("hdr.h.value", 16, MatchKind::Selector),
    ];
    let table = p.table("C.t", &keys, &[a, b]);
    p.program().tables[table.table].implementation = Some(selector);
    let mut v1 = s.v1;
    let (index, value) = (s.index, s.value);
    v1.control("ingress", |body| {
        body.block(|b| b.lookup(&table, vec![Operand::Var(index), Operand::Var(value)], 1))
            .block(|b| {
                b.set(value, Operand::Var(table.parameters[0][0]))
                    .end(Terminator::Return)
            })
    });
    switch(v1)
}

#[test]
fn selectors_choose_among_the_members_of_a_group() {
    let mut switch = with_selector();
    let table = switch.table("t").expect("there");
    let profile = switch.resource(ResourceKind::Profile, "sel").expect("there");
    let insert = |action| {
        let matches = vec![KeyMatch::Exact(Bits::new(8, 1))];
        Write::Table(table, TableOp::Insert(NewEntry::new(matches, action)))
    };
    let refused = switch.write(insert(EntryAction::Group(1))).expect_err("no such group");
    assert!(refused.to_string().contains("no group 1"), "{refused}");
    let call = |v| weir_ir::ActionCall {
        action: 0,
        arguments: vec![Bits::new(16, v)],
    };
    let group = Group {
        members: [(10, 1), (20, 2)]
            .map(|(member, weight)| GroupMember::new(member, weight))
            .to_vec(),
        max_size: 0,
    };
    let writes = vec![
        Write::Profile(profile, ProfileOp::InsertMember(10, Member { action: call(0xaaaa) })),
        Write::Profile(profile, ProfileOp::InsertMember(20, Member { action: call(0xbbbb) })),
        Write::Profile(profile, ProfileOp::InsertGroup(1, group)),
        insert(EntryAction::Group(1)),
    ];
    switch.write_all(writes, BatchMode::Rollback).expect("all fit");
    let chosen = [0, 1, 2, 3].map(|v| value_out(&mut switch, &[1, 0, v]));
    assert_eq!(chosen, [0xaaaa, 0xbbbb, 0xbbbb, 0xaaaa], "value % 3 by weights 1 and 2");
    let used = switch
        .write(Write::Profile(profile, ProfileOp::DeleteGroup(1)))
        .expect_err("an entry uses it");
    assert!(
        used.to_string().contains("still used by an entry of table `C.t`"),
        "{used}"
    );
    let all = switch.inject_all(0, &[1, 0, 0], 0, 100);
    assert_eq!(all.runs.len(), 3);
    let traces = switch.trace_all(0, &[1, 0, 0], 0, 100);
    assert_eq!(traces.runs[1].0[0].to_string(), "selector: position 1 of 0..3");
    assert!(all.complete);
}

#[test]
fn a_member_is_not_chosen_while_its_port_is_down() {
    let mut switch = with_selector();
    let table = switch.table("t").expect("there");
    let profile = switch.resource(ResourceKind::Profile, "sel").expect("there");
    let call = |v| weir_ir::ActionCall {
        action: 0,
        arguments: vec![Bits::new(16, v)],
    };
    let watch = |member, port: u32| GroupMember {
        watch: Some(port.into()),
        ..GroupMember::new(member, 1)
    };
    let group = Group {
        members: vec![watch(10, 7), watch(20, 8)],
        max_size: 0,
    };
    let one_shot = |v, port: u32| weir_table::OneShotMember {
        watch: Some(port.into()),
        ..weir_table::OneShotMember::new(call(v), 1)
    };
    let insert = |key, action| {
        let matches = vec![KeyMatch::Exact(Bits::new(8, key))];
        Write::Table(table, TableOp::Insert(NewEntry::new(matches, action)))
    };
    // Port 8 is down before anything watches it.
    switch.set_port(8, false);
    let writes = vec![
        Write::Profile(profile, ProfileOp::InsertMember(10, Member { action: call(0xaaaa) })),
        Write::Profile(profile, ProfileOp::InsertMember(20, Member { action: call(0xbbbb) })),
        Write::Profile(profile, ProfileOp::InsertGroup(1, group)),
        insert(1, EntryAction::Group(1)),
        insert(2, EntryAction::OneShot(vec![one_shot(0xcccc, 7), one_shot(0xdddd, 8)])),
    ];
    switch.write_all(writes, BatchMode::Rollback).expect("all fit");
    let chosen = |switch: &mut Switch| {
        let of = |switch: &mut Switch, key| [0, 1].map(|v| value_out(switch, &[key, 0, v]));
        (of(switch, 1), of(switch, 2))
    };
    assert_eq!(chosen(&mut switch), ([0xaaaa; 2], [0xcccc; 2]));
    switch.set_port(8, true);
    assert_eq!(chosen(&mut switch), ([0xaaaa, 0xbbbb], [0xcccc, 0xdddd]));
    switch.set_port(7, false);
    assert_eq!(chosen(&mut switch), ([0xbbbb; 2], [0xdddd; 2]));
}

#[test]
fn a_transaction_can_be_taken_back_to_a_mark() {
    let (mut switch, _) = with_table(true);
    let table = switch.table("t").expect("there");
    let insert = |i| Write::Table(table, TableOp::Insert(entry(i, 9)));
    let mut transaction = switch.transaction();
    transaction.write(insert(1)).expect("fits");
    let mark = transaction.mark();
    transaction.write(insert(2)).expect("fits");
    transaction.write(Write::Table(table, TableOp::Clear)).expect("fits");
    assert_eq!(transaction.switch().table_state(table).expect("there").table.len(), 0);
    transaction.back_to(mark);
    transaction.commit();
    assert_eq!(switch.table_state(table).expect("there").table.len(), 1);
    let mut dropped = switch.transaction();
    dropped.write(insert(3)).expect("fits");
    drop(dropped);
    assert_eq!(switch.table_state(table).expect("there").table.len(), 1);
}

#[test]
fn random_stays_in_its_range_and_every_outcome_can_be_enumerated() {
    let s = simple();
    let value = s.value;
    let args = vec![ArgumentValue::Out(vec![value]), number(16, 5), number(16, 9)];
    let mut switch = calling(s, vec![(None, "random", args)]);
    for _ in 0..50 {
        assert!((5..=9).contains(&value_out(&mut switch, &[0, 0, 0])));
    }
    let all = switch.inject_all(0, &[0, 0, 0], 0, 100);
    let mut seen: Vec<u8> = all.runs.iter().map(|(_, (out, _))| out[0].bytes[2]).collect();
    seen.sort_unstable();
    assert_eq!(seen, [5, 6, 7, 8, 9]);
    let s = simple();
    let args = vec![ArgumentValue::Out(vec![s.value]), number(16, 9), number(16, 5)];
    assert_eq!(
        value_out(&mut calling(s, vec![(None, "random", args)]), &[0, 7, 7]),
        0x0707,
        "lo > hi"
    );
}

#[test]
fn hash_is_base_plus_the_hash_modulo_max() {
    let hash = |algorithm, base, max| {
        let s = simple();
        let (index, value) = (s.index, s.value);
        let args = vec![
            ArgumentValue::Out(vec![value]),
            number(32, algorithm),
            number(16, base),
            ArgumentValue::In(vec![
                InLeaf::Value(Operand::Var(index)),
                InLeaf::Value(Operand::Var(value)),
            ]),
            number(32, max),
        ];
        value_out(&mut calling(s, vec![(None, "hash", args)]), &[0x31, 0x32, 0x33])
    };
    // Positions in HashAlgorithm of v1model.p4; CRC-32 and CRC-16/ARC of "123".
    assert_eq!(hash(0, 0, 1 << 16), (0x884863d2u32 % (1 << 16)) as u16);
    assert_eq!(hash(2, 0, 1 << 16), 0xba04);
    assert_eq!(hash(2, 100, 7), 106);
    assert_eq!(hash(5, 0, 1000), (0x313233 % 1000) as u16);
    assert_eq!(hash(7, 0, 1 << 16), 0x0232);
    assert_eq!(hash(0, 42, 0), 42);
}

#[test]
fn checksums_skip_invalid_headers_and_false_conditions() {
    let mut s = simple();
    let other = s.v1.program.header("other", &[("x", Type::Bits(16))]);
    let (index, value, header) = (s.index, s.value, s.header);
    let mut v1 = s.v1;
    let error = v1.standard("checksum_error");
    let spec = v1.standard("egress_spec");
    let data = || ArgumentValue::In(vec![InLeaf::Header(other), InLeaf::Value(Operand::Var(index))]);
    let csum16 = || number(32, 6);
    let target = v1.program.field(other, 0);
    v1.control("verify_checksum", |b| {
        b.block(|b| {
            b.call(
                None,
                "verify_checksum",
                vec![number(1, 1), data(), var(value), csum16()],
            )
            .call(
                None,
                "verify_checksum",
                vec![number(1, 0), data(), number(16, 1), csum16()],
            )
            .call(
                None,
                "verify_checksum",
                vec![number(1, 1), data(), var(target), csum16()],
            )
            .end(Terminator::Return)
        })
    });
    v1.control("ingress", |b| {
        b.block(|b| {
            b.assign(spec, weir_ir::Rvalue::ZeroExtend(Operand::Var(error)))
                .set(value, constant(16, 0))
                .end(Terminator::Return)
        })
    });
    v1.control("compute_checksum", |b| {
        b.block(|b| {
            let args = vec![number(1, 1), data(), ArgumentValue::InOut(vec![value]), csum16()];
            b.call(None, "update_checksum_with_payload", args)
                .end(Terminator::Return)
        })
    });
    let _ = header;
    let mut switch = switch(v1);
    let right = !0x1200u16;
    let [high, low] = right.to_be_bytes();
    let out = switch.inject(0, &[0x12, high, low], 0);
    assert_eq!((out[0].port, out[0].bytes.as_slice()), (0, &[0x12, high, low][..]));
    let out = switch.inject(0, &[0x12, 0, 0, 0x34], 0);
    let [high, low] = (!0x1234u16).to_be_bytes();
    assert_eq!(
        (out[0].port, out[0].bytes.as_slice()),
        (1, &[0x12, high, low, 0x34][..])
    );
}

#[test]
fn digests_messages_and_assertions_reach_the_control_plane() {
    let s = simple();
    let (index, value, header) = (s.index, s.value, s.header);
    let data = ArgumentValue::In(vec![InLeaf::Value(Operand::Var(index)), InLeaf::Header(header)]);
    let calls = vec![
        (None, "digest", vec![number(32, 1), data]),
        (
            None,
            "log_msg",
            vec![ArgumentValue::String("index {} of {{}}".into()), var(index)],
        ),
        (None, "truncate", vec![number(32, 2)]),
        (None, "assert", vec![in_value(Operand::Var(value))]),
    ];
    let mut switch = calling(s, calls);
    assert_eq!(switch.inject(0, &[7, 0, 1, 9], 0)[0].bytes, [7, 0]);
    let digest = switch.next_digest().expect("one");
    assert_eq!(
        digest.fields.iter().map(|f| f.1.to_u64()).collect::<Vec<_>>(),
        [Some(7), Some(7), Some(1)]
    );
    assert_eq!(switch.next_log().map(|m| m.text), Some("index 7 of {{}}".to_owned()));
    assert!(switch.inject(0, &[7, 0, 0], 0).is_empty());
    assert_eq!(switch.dropped(DropReason::Assert), 1);
    assert!(switch.drops().next().is_some_and(|d| d.loc.is_some()));
    let last = std::iter::from_fn(|| switch.next_log()).last().map(|m| m.text);
    assert_eq!(last.as_deref(), Some("assertion failed"));
}

#[test]
fn unknown_externs_are_named_with_their_place_when_the_program_is_loaded() {
    let load = |v1: V1Builder| Switch::new(Arc::new(v1.finish())).map(|_| ()).expect_err("refused");
    let mut v1 = V1Builder::new();
    v1.control("ingress", |b| {
        b.block(|b| b.call(None, "teleport", vec![]).end(Terminator::Return))
    });
    let error = load(v1);
    assert!(matches!(error, LoadError::UnknownExtern { .. }));
    assert!(
        error
            .to_string()
            .starts_with("test.p4:1:1: v1model has no extern function `teleport` with 0 arguments"),
        "{error}"
    );
    let mut v1 = V1Builder::new();
    v1.program.instance("C.w", "wormhole", vec![], vec![]);
    assert!(load(v1).to_string().contains("type `wormhole` (of `C.w`)"));
}

#[test]
fn the_embedder_may_bring_externs_along() {
    let s = simple();
    let (index, value) = (s.index, s.value);
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| {
            b.call(None, "double", vec![ArgumentValue::Out(vec![value]), var(index)])
                .end(Terminator::Return)
        })
    });
    struct Double;
    impl weir_extern_api::Extern for Double {
        fn call(&self, call: &mut weir_extern_api::Call<'_>) -> weir_extern_api::Outcome {
            call.set(0, call.get(1) * 2);
            weir_extern_api::Outcome::Continue
        }
    }
    let mut externs = weir_extern_api::Registry::default();
    externs.function("double", Arc::new(Double));
    let engine = Arc::new(weir_interp::Interpreter::new(Arc::new(v1.finish())));
    let config = weir_switch::SwitchConfig {
        externs,
        ..Default::default()
    };
    let mut switch = Switch::with_engine(engine, config).expect("loads");
    assert_eq!(value_out(&mut switch, &[0xff, 0, 0]), 0x1fe);
}

#[test]
fn a_failing_transaction_leaves_tables_registers_and_sessions_as_they_were() {
    let (mut switch, ids) = with_table(true);
    let table = switch.table("t").expect("there");
    switch
        .write(Write::Table(table, TableOp::Insert(entry(1, 9))))
        .expect("fits");
    let session = weir_switch::CloneSession::default();
    let writes = vec![
        Write::Table(table, TableOp::Insert(entry(2, 9))),
        Write::Counter(ids[0], Cell::Index(1), Count { packets: 5, bytes: 0 }),
        Write::Session(3, Some(session)),
        Write::Table(table, TableOp::Clear),
        Write::Register(ids[0], Cell::Index(0), vec![]),
    ];
    let error = switch
        .write_all(writes, BatchMode::Rollback)
        .expect_err("a counter is no register");
    assert!(error.rolled_back && error.failures[0].0 == 4, "{error}");
    assert!(
        error.to_string().contains("`C.dc` is a direct_counter, not a register"),
        "{error}"
    );
    assert_eq!(switch.table_state(table).expect("there").table.len(), 1);
    assert_eq!(switch.counter(ids[0], 1).map(|c| c.packets), Ok(0));
    assert!(switch.replication().session(3).is_none());
}
