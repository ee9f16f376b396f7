//! Packets wait in queues for devices that take none.

use std::sync::Arc;
use weir_interp::testing::constant;
use weir_ir::{Operand, Rvalue, Terminator, Type};
use weir_switch::testing::{V1Builder, reflector};
use weir_switch::{CloneSession, Output, Replica, Switch};

/// Sends every packet to port 1; its byte becomes the depth of the queue that it came into.
fn tells_depth(compiled: bool) -> Switch {
    let mut v1 = V1Builder::new();
    let header = v1.program.header("h", &[("depth", Type::Bits(8))]);
    let (depth, told) = (v1.program.field(header, 0), v1.standard("enq_qdepth"));
    let to = v1.standard("egress_spec");
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("ingress", |b| {
        b.block(|b| b.set(to, constant(9, 1)).end(Terminator::Return))
    });
    v1.control("egress", |b| {
        b.block(|b| {
            let value = Operand::Var(told);
            b.assign(depth, Rvalue::Slice { value, hi: 7, lo: 0 })
                .end(Terminator::Return)
        })
    });
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let mut switch = Switch::new(Arc::new(v1.finish())).expect("loads");
    if compiled {
        switch.compile().expect("compiles");
    }
    switch
}

fn bytes(outputs: &[Output]) -> Vec<u8> {
    outputs.iter().map(|o| o.bytes[0]).collect()
}

#[test]
fn packets_wait_for_a_device_that_takes_none_and_learn_the_depth() {
    for compiled in [false, true] {
        let mut switch = tells_depth(compiled);
        switch.set_port_credit(1, Some(0), 0);
        for time in 0..4 {
            switch.take(0, &[255], time);
        }
        assert!(switch.advance(1000).is_empty());
        assert_eq!((switch.queue_depth(1), switch.next_departure()), (4, None));
        switch.set_port_credit(1, Some(3), 2000);
        let left = switch.advance(2500);
        assert_eq!(bytes(&left), [0, 1, 2]);
        assert!(left.iter().all(|output| output.time_ns == 2000), "{left:?}");
        assert!(switch.advance(3000).is_empty(), "the credit is used up");
        switch.set_port_credit(1, None, 4000);
        assert_eq!(bytes(&switch.advance(5000)), [3]);
        switch.take(0, &[255], 6000);
        assert_eq!(bytes(&switch.advance(6000)), [0], "nothing is held back any more");
    }
}

#[test]
fn packets_beyond_a_queue_are_dropped_and_other_ports_go_on() {
    for compiled in [false, true] {
        let mut switch = Switch::new(Arc::new(reflector())).expect("loads");
        if compiled {
            switch.compile().expect("compiles");
        }
        switch.set_queue_capacity(1, 2);
        switch.set_port_credit(1, Some(0), 0);
        for _ in 0..5 {
            switch.take(1, &[1], 10);
        }
        switch.take(2, &[2], 10);
        assert_eq!(bytes(&switch.advance(20)), [2]);
        let queue = switch.queue_stats().next().expect("a queue was used");
        assert_eq!((queue.depth, queue.refused), (2, 3));
    }
}

#[test]
fn programs_that_read_a_queue_or_choose_a_priority_observe_queues() {
    assert!(tells_depth(false).observes_queues());
    assert!(!Switch::new(Arc::new(reflector())).expect("loads").observes_queues());
    let mut v1 = V1Builder::new();
    let priority = v1.standard("priority");
    v1.control("ingress", |b| {
        b.block(|b| b.set(priority, constant(3, 5)).end(Terminator::Return))
    });
    assert!(Switch::new(Arc::new(v1.finish())).expect("loads").observes_queues());
}

#[test]
fn a_clone_session_with_a_class_observes_queues_until_it_is_removed() {
    let session = |class_of_service| CloneSession {
        replicas: vec![Replica::new(2, 0)],
        class_of_service,
        ..CloneSession::default()
    };
    let mut switch = Switch::new(Arc::new(reflector())).expect("loads");
    let mut set = |session| {
        let set = switch.replication_mut().set_session(7, session);
        set.expect("is in range");
        switch.observes_queues()
    };
    assert!(!set(Some(session(0))));
    assert!(set(Some(session(3))));
    assert!(set(Some(session(2))));
    assert!(!set(None));
}
