//! The ways of packets through v1model: drops, copies, and back to where they came from.

use std::sync::Arc;
use weir_interp::testing::{BodyBuilder, constant, in_value};
use weir_ir::{
    Annotation, AnnotationBody, ArgumentValue, BinaryOp, BlockId, HeaderId, Loc, Operand, Rvalue, Terminator, Type,
    VarId,
};
use weir_switch::testing::V1Builder;
use weir_switch::{CloneSession, DropReason, Output, PortRate, Replica, Switch, SwitchConfig};

/// A program with one header of two bytes, `tag` and `data`, that goes to port 1.
struct Simple {
    v1: V1Builder,
    header: HeaderId,
    tag: VarId,
    data: VarId,
    spec: VarId,
}

fn simple() -> Simple {
    let mut v1 = V1Builder::new();
    let header = v1
        .program
        .header("h", &[("tag", Type::Bits(8)), ("data", Type::Bits(8))]);
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let (tag, data) = (v1.program.field(header, 0), v1.program.field(header, 1));
    Simple {
        spec: v1.standard("egress_spec"),
        v1,
        header,
        tag,
        data,
    }
}

fn switch(v1: V1Builder) -> Switch {
    Switch::new(Arc::new(v1.finish())).expect("loads")
}

fn packets(outputs: &[Output]) -> Vec<(u32, Vec<u8>)> {
    outputs.iter().map(|o| (o.port, o.bytes.clone())).collect()
}

fn number(width: u32, value: u128) -> ArgumentValue {
    in_value(constant(width, value))
}

/// Block 0 goes to block 1 where `var == value`, else to block 2.
fn where_equal(v1: &mut V1Builder, var: VarId, value: u128) -> impl FnOnce(BodyBuilder) -> BodyBuilder + use<> {
    let width = v1.program.program().vars[var].ty.width();
    let condition = v1.program.local("condition", 1);
    move |body| {
        body.block(|b| {
            b.assign(
                condition,
                Rvalue::Binary(BinaryOp::Eq, Operand::Var(var), constant(width, value)),
            )
            .end(Terminator::Branch {
                condition: Operand::Var(condition),
                then: BlockId::new(1),
                otherwise: BlockId::new(2),
            })
        })
    }
}

#[test]
fn egress_spec_511_drops_and_a_later_assignment_revives() {
    let s = simple();
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| {
            b.call(None, "mark_to_drop", vec![])
                .set(s.spec, constant(9, 7))
                .end(Terminator::Return)
        })
    });
    assert_eq!(packets(&switch(v1).inject(0, &[1, 2, 3], 0)), [(7, vec![1, 2, 3])]);
    let s = simple();
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| b.set(s.spec, constant(9, 511)).end(Terminator::Return))
    });
    let mut switch = switch(v1);
    let (out, trace) = switch.inject_traced(0, &[1, 2, 3], 0);
    assert!(out.is_empty());
    assert_eq!(switch.dropped(DropReason::IngressDrop), 1);
    let place = switch
        .drops()
        .next()
        .and_then(|d| d.loc)
        .expect("a trace knows the line");
    assert_eq!(place.line, 1);
    assert!(
        trace
            .render(Default::default(), |_| None)
            .contains("dropped: ingress-drop")
    );
}

#[test]
fn an_unset_egress_spec_is_port_0() {
    assert_eq!(packets(&switch(simple().v1).inject(5, &[1, 2], 0)), [(0, vec![1, 2])]);
}

#[test]
fn what_the_parser_did_not_take_leaves_as_payload_even_after_an_error() {
    let s = simple();
    let mut v1 = s.v1;
    let (error, group) = (v1.standard("parser_error"), v1.standard("egress_spec"));
    v1.control("ingress", |b| {
        b.block(|b| {
            b.assign(group, Rvalue::ZeroExtend(Operand::Var(error)))
                .end(Terminator::Return)
        })
    });
    let mut switch = switch(v1);
    assert_eq!(
        packets(&switch.inject(0, &[9], 0)),
        [(1, vec![9])],
        "PacketTooShort is 1"
    );
    assert_eq!(packets(&switch.inject(0, &[9, 8, 7], 0)), [(0, vec![9, 8, 7])]);
    assert_eq!(switch.state().parser_errors.get(&1), Some(&1));
}

#[test]
fn multicast_copies_by_node_and_port_with_their_rids() {
    let s = simple();
    let mut v1 = s.v1;
    let (group, rid, kind) = (
        v1.standard("mcast_grp"),
        v1.standard("egress_rid"),
        v1.standard("instance_type"),
    );
    v1.control("ingress", |b| {
        b.block(|b| b.set(group, constant(16, 5)).end(Terminator::Return))
    });
    v1.control("egress", |b| {
        b.block(|b| {
            b.assign(s.tag, Rvalue::ZeroExtend(Operand::Var(rid)))
                .assign(s.data, Rvalue::ZeroExtend(Operand::Var(kind)))
                .end(Terminator::Return)
        })
    });
    let mut switch = switch(v1);
    assert!(switch.inject(0, &[1, 2], 0).is_empty());
    assert_eq!(switch.dropped(DropReason::EmptyGroup), 1);
    let replication = switch.replication_mut();
    replication.create_group(5).expect("new");
    for (rid, ports) in [(40, vec![3, 2]), (20, vec![1])] {
        let node = replication.create_node(rid, ports);
        replication.associate(5, node).expect("both there");
    }
    let out = packets(&switch.inject(0, &[1, 2], 0));
    assert_eq!(out, [(2, vec![40, 5]), (3, vec![40, 5]), (1, vec![20, 5])]);
}

/// Metadata `kept` in field list 3 and `lost` in none.
fn metadata(v1: &mut V1Builder) -> (VarId, VarId) {
    let vars = v1.program.shared("metadata", &[("kept", 8), ("lost", 8)]);
    v1.program.group("metadata").leaves[0].annotations.push(Annotation {
        name: "field_list".to_owned(),
        body: AnnotationBody::Text {
            text: "8w2, 3".to_owned(),
            tokens: vec!["8w2".into(), ",".into(), "3".into()],
        },
        loc: Loc::default(),
    });
    (vars[0], vars[1])
}

#[test]
fn an_ingress_clone_is_the_packet_as_received_with_the_fields_of_its_list() {
    let s = simple();
    let mut v1 = s.v1;
    let (kept, lost) = metadata(&mut v1);
    let kind = v1.standard("instance_type");
    v1.control("ingress", |b| {
        b.block(|b| {
            b.call(
                None,
                "clone_preserving_field_list",
                vec![number(32, 0), number(32, 9), number(8, 3)],
            )
            .set(s.data, constant(8, 0xee))
            .set(kept, constant(8, 0x33))
            .set(lost, constant(8, 0x44))
            .set(s.spec, constant(9, 511))
            .end(Terminator::Return)
        })
    });
    let clone = where_equal(&mut v1, kind, 1);
    v1.control("egress", |b| {
        clone(b)
            .block(|b| {
                let sum = Rvalue::Binary(BinaryOp::Add, Operand::Var(kept), Operand::Var(lost));
                b.assign(s.tag, sum).end(Terminator::Return)
            })
            .block(|b| b.end(Terminator::Return))
    });
    let mut switch = switch(v1);
    assert!(switch.inject(0, &[1, 2, 3], 0).is_empty());
    assert_eq!(switch.dropped(DropReason::NoSuchSession), 1);
    let session = CloneSession {
        replicas: vec![Replica::new(4, 0)],
        ..CloneSession::default()
    };
    switch
        .replication_mut()
        .set_session(9, Some(session.clone()))
        .expect("in range");
    assert_eq!(packets(&switch.inject(0, &[1, 2, 3], 0)), [(4, vec![0x33, 2, 3])]);
    let short = CloneSession {
        truncate_bytes: 3,
        ..session
    };
    switch.replication_mut().set_session(9, Some(short)).expect("in range");
    assert_eq!(packets(&switch.inject(0, &[1, 2, 3, 4, 5], 0)), [(4, vec![0x33, 2, 3])]);
}

#[test]
fn a_packet_that_egress_drops_still_clones_what_egress_made_of_it() {
    let s = simple();
    let mut v1 = s.v1;
    let kind = v1.standard("instance_type");
    let first = where_equal(&mut v1, kind, 0);
    v1.control("egress", |b| {
        first(b)
            .block(|b| {
                b.set(s.data, constant(8, 0x77))
                    .call(None, "clone", vec![number(32, 1), number(32, 9)])
                    .call(None, "mark_to_drop", vec![])
                    .end(Terminator::Return)
            })
            .block(|b| b.set(s.tag, constant(8, 0xaa)).end(Terminator::Return))
    });
    let mut switch = switch(v1);
    let session = CloneSession {
        replicas: vec![Replica::new(4, 0)],
        ..CloneSession::default()
    };
    switch
        .replication_mut()
        .set_session(9, Some(session))
        .expect("in range");
    assert_eq!(packets(&switch.inject(0, &[1, 2, 3], 0)), [(4, vec![0xaa, 0x77, 3])]);
    assert_eq!(switch.dropped(DropReason::EgressDrop), 1);
}

#[test]
fn a_resubmitted_packet_comes_again_as_received_with_the_fields_of_its_list() {
    let s = simple();
    let mut v1 = s.v1;
    let (kept, lost) = metadata(&mut v1);
    let (kind, length) = (v1.standard("instance_type"), v1.standard("packet_length"));
    let first = where_equal(&mut v1, kind, 0);
    v1.control("ingress", |b| {
        first(b)
            .block(|b| {
                b.set(kept, constant(8, 0x30))
                    .set(lost, constant(8, 0x40))
                    .set(s.tag, constant(8, 0xff))
                    .call(None, "resubmit_preserving_field_list", vec![number(8, 2)])
                    .end(Terminator::Return)
            })
            .block(|b| {
                let sum = Rvalue::Binary(BinaryOp::Add, Operand::Var(kept), Operand::Var(lost));
                b.assign(s.data, sum)
                    .assign(s.spec, Rvalue::ZeroExtend(Operand::Var(length)))
                    .end(Terminator::Return)
            })
    });
    assert_eq!(packets(&switch(v1).inject(6, &[1, 2, 3], 0)), [(3, vec![1, 0x30, 3])]);
}

#[test]
fn a_recirculated_packet_comes_again_as_it_was_deparsed() {
    let s = simple();
    let mut v1 = s.v1;
    let kind = v1.standard("instance_type");
    let first = where_equal(&mut v1, kind, 4);
    v1.control("ingress", |b| {
        first(b)
            .block(|b| {
                b.set(s.data, constant(8, 0x55))
                    .set(s.spec, constant(9, 8))
                    .end(Terminator::Return)
            })
            .block(|b| b.set(s.spec, constant(9, 1)).end(Terminator::Return))
    });
    let port = v1.standard("egress_port");
    let at_one = where_equal(&mut v1, port, 1);
    v1.control("egress", |b| {
        at_one(b)
            .block(|b| {
                b.set(s.tag, constant(8, 0x99))
                    .call(None, "recirculate_preserving_field_list", vec![number(8, 2)])
                    .end(Terminator::Return)
            })
            .block(|b| b.end(Terminator::Return))
    });
    assert_eq!(
        packets(&switch(v1).inject(6, &[1, 2, 3], 0)),
        [(8, vec![0x99, 0x55, 3])]
    );
}

#[test]
fn packets_that_never_come_to_an_end_are_dropped() {
    let s = simple();
    let mut v1 = s.v1;
    v1.control("ingress", |b| {
        b.block(|b| {
            b.call(None, "resubmit_preserving_field_list", vec![number(8, 0)])
                .end(Terminator::Return)
        })
    });
    let mut resubmit = switch(v1);
    assert!(resubmit.inject(0, &[1, 2], 0).is_empty());
    assert_eq!(resubmit.dropped(DropReason::Loop), 1);
    // Every packet in egress makes a clone of itself and goes round again.
    let s = simple();
    let mut v1 = s.v1;
    v1.control("egress", |b| {
        b.block(|b| {
            b.call(None, "clone", vec![number(32, 1), number(32, 9)])
                .call(None, "recirculate_preserving_field_list", vec![number(8, 0)])
                .end(Terminator::Return)
        })
    });
    let program = Arc::new(v1.finish());
    let engine = Arc::new(weir_interp::Interpreter::new(program));
    let config = SwitchConfig {
        work_limit: 1000,
        ..SwitchConfig::default()
    };
    let mut bomb = Switch::with_engine(engine, config).expect("loads");
    let session = CloneSession {
        replicas: vec![Replica::new(4, 0)],
        ..CloneSession::default()
    };
    bomb.replication_mut().set_session(9, Some(session)).expect("in range");
    assert!(bomb.inject(0, &[1, 2], 0).is_empty());
    assert!(bomb.dropped(DropReason::Loop) > 0);
    assert_eq!(bomb.queued(), 0);
}

#[test]
fn queues_are_bounded_and_served_by_priority_at_the_rate_of_the_port() {
    let s = simple();
    let mut v1 = s.v1;
    let (priority, depth) = (v1.standard("priority"), v1.standard("enq_qdepth"));
    let (wait, left) = (v1.standard("deq_timedelta"), v1.standard("deq_qdepth"));
    v1.control("ingress", |b| {
        b.block(|b| {
            b.assign(priority, Rvalue::ZeroExtend(Operand::Var(s.tag)))
                .end(Terminator::Return)
        })
    });
    v1.control("egress", |b| {
        b.block(|b| {
            let shifted = Rvalue::Binary(BinaryOp::Shl, Operand::Var(depth), constant(8, 4));
            b.assign(s.tag, Rvalue::ZeroExtend(Operand::Var(wait)))
                .assign(depth, shifted)
                .assign(
                    depth,
                    Rvalue::Binary(BinaryOp::Or, Operand::Var(depth), Operand::Var(left)),
                )
                .assign(s.data, Rvalue::ZeroExtend(Operand::Var(depth)))
                .end(Terminator::Return)
        })
    });
    let mut switch = switch(v1);
    switch.set_queue_capacity(0, 2);
    switch.set_port_rate(
        0,
        PortRate {
            packets_per_second: Some(1_000_000),
            ..PortRate::default()
        },
    );
    for priority in [1, 1, 1, 7] {
        switch.receive(3, &[priority, 0, priority], 0);
    }
    assert_eq!(switch.dropped(DropReason::QueueFull), 1);
    assert_eq!(switch.queue_depth(0), 3);
    assert_eq!(switch.next_departure(), Some(0));
    let first = switch.advance(999);
    // Waiting time in µs; packets found and left in the queues; the priority.
    assert_eq!(packets(&first), [(0, vec![0, 0x00, 7])]);
    let rest = switch.drain();
    assert_eq!(packets(&rest), [(0, vec![1, 0x01, 1]), (0, vec![2, 0x10, 1])]);
    assert_eq!(rest.iter().map(|o| o.time_ns).collect::<Vec<_>>(), [1000, 2000]);
}

#[test]
fn a_port_has_a_number_of_the_architectures_width_and_was_given_where_they_are() {
    let program = Arc::new(weir_switch::testing::reflector());
    let mut switch = Switch::new(Arc::clone(&program)).expect("loads");
    assert_eq!(switch.port_bits(), 9);
    assert_eq!(
        [0, 511, 512, u32::MAX].map(|port| switch.has_port(port)),
        [true, true, false, false]
    );
    let engine = Arc::new(weir_interp::Interpreter::new(program));
    let config = SwitchConfig {
        explicit_ports: true,
        ..SwitchConfig::default()
    };
    switch = Switch::with_engine(engine, config).expect("loads");
    switch.set_port(3, false);
    switch.set_port(513, true);
    assert_eq!([1, 3, 513].map(|port| switch.has_port(port)), [false, true, false]);
}

#[test]
fn ports_can_be_down_or_missing() {
    let program = Arc::new(weir_switch::testing::reflector());
    let engine = Arc::new(weir_interp::Interpreter::new(program));
    let config = SwitchConfig {
        explicit_ports: true,
        max_packet_bytes: 4,
        ..SwitchConfig::default()
    };
    let mut switch = Switch::with_engine(engine, config).expect("loads");
    assert!(switch.inject(1, &[1], 0).is_empty());
    switch.set_port(1, true);
    assert_eq!(switch.inject(1, &[1], 0).len(), 1);
    assert!(switch.inject(1, &[0; 5], 0).is_empty());
    switch.set_port(1, false);
    assert!(switch.inject(1, &[1], 0).is_empty());
    let mut reasons: Vec<_> = switch.drops().map(|d| (d.reason, d.packets)).collect();
    reasons.sort_unstable();
    assert_eq!(
        reasons,
        [
            (DropReason::NoSuchPort, 1),
            (DropReason::PortDown, 1),
            (DropReason::TooLong, 1)
        ]
    );
    let stats = switch.port_stats(1);
    assert_eq!((stats.rx.packets, stats.rx.bytes, stats.tx.packets), (4, 8, 1));
}

#[test]
fn packet_length_follows_the_headers() {
    let s = simple();
    let mut v1 = s.v1;
    let length = v1.standard("packet_length");
    let valid = v1.program.program().headers[s.header].valid;
    let extra = v1.program.header("x", &[("f", Type::Bits(24))]);
    let extra_valid = v1.program.program().headers[extra].valid;
    let (spec, out) = (s.spec, v1.program.field(extra, 0));
    v1.control("ingress", |b| {
        b.block(|b| {
            b.set(valid, constant(1, 0))
                .set(extra_valid, constant(1, 1))
                .set(spec, constant(9, 1))
                .end(Terminator::Return)
        })
    });
    v1.control("egress", |b| {
        b.block(|b| {
            b.assign(out, Rvalue::ZeroExtend(Operand::Var(length)))
                .end(Terminator::Return)
        })
    });
    v1.control("compute_checksum", |b| {
        b.block(|b| b.set(valid, constant(1, 1)).end(Terminator::Return))
    });
    let program = {
        let mut p = v1.finish();
        let deparser = p.blocks.iter().position(|b| b.role == "deparser").expect("there");
        let body = &mut p.blocks[deparser].body;
        let insts = &mut body.blocks[BlockId::new(0)].insts;
        let inst = weir_ir::InstKind::Emit { header: extra };
        insts.push(weir_ir::Inst {
            kind: inst,
            loc: Loc::default(),
        });
        p
    };
    let mut switch = Switch::new(Arc::new(program)).expect("loads");
    let out = switch.inject(0, &[1, 2, 3, 4], 0);
    assert_eq!(out[0].bytes, [1, 2, 0, 0, 5, 3, 4], "4 received - 2 + 3");
}

#[test]
fn a_switch_can_go_to_another_thread() {
    fn send<T: Send>(value: T) -> T {
        value
    }
    let mut switch = send(Switch::new(Arc::new(weir_switch::testing::reflector())).expect("loads"));
    let there = std::thread::spawn(move || switch.inject(1, &[7], 0));
    assert_eq!(there.join().expect("no panic").len(), 1);
}
