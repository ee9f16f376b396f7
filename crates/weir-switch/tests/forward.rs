//! Vectors of packets: each does what it would do alone, and what comes of each can be told.

use std::sync::Arc;
use weir_interp::testing::{constant, in_value};
use weir_ir::{BinaryOp, BlockId, Operand, Rvalue, Terminator, Type};
use weir_switch::testing::V1Builder;
use weir_switch::{CloneSession, Frame, PortRate, Replica, Switch, TAILROOM, Verdict};

/// A packet whose first byte is 1 goes to port 1, and a clone of it too; one with 9 is dropped; any
/// other goes to port 2.
fn cloner() -> Switch {
    let mut v1 = V1Builder::new();
    let header = v1
        .program
        .header("h", &[("tag", Type::Bits(8)), ("data", Type::Bits(8))]);
    v1.parser(|b| b.block(|b| b.extract(header).end(Terminator::Accept)));
    v1.control("deparser", |b| b.block(|b| b.emit(header).end(Terminator::Return)));
    let tag = v1.program.field(header, 0);
    let spec = v1.standard("egress_spec");
    let (is_one, is_nine) = (v1.program.local("is_one", 1), v1.program.local("is_nine", 1));
    let equal = |value| Rvalue::Binary(BinaryOp::Eq, Operand::Var(tag), constant(8, value));
    v1.control("ingress", |b| {
        b.block(|b| {
            b.assign(is_one, equal(1)).end(Terminator::Branch {
                condition: Operand::Var(is_one),
                then: BlockId::new(1),
                otherwise: BlockId::new(2),
            })
        })
        .block(|b| {
            let kind = in_value(constant(32, 0));
            b.set(spec, constant(9, 1))
                .call(None, "clone", vec![kind, in_value(constant(32, 5))])
                .end(Terminator::Return)
        })
        .block(|b| {
            b.set(spec, constant(9, 2))
                .assign(is_nine, equal(9))
                .end(Terminator::Branch {
                    condition: Operand::Var(is_nine),
                    then: BlockId::new(3),
                    otherwise: BlockId::new(4),
                })
        })
        .block(|b| b.call(None, "mark_to_drop", vec![]).end(Terminator::Return))
        .block(|b| b.end(Terminator::Return))
    });
    let mut switch = Switch::new(Arc::new(v1.finish())).expect("loads");
    let session = CloneSession {
        replicas: vec![Replica::new(1, 0)],
        ..CloneSession::default()
    };
    switch
        .replication_mut()
        .set_session(5, Some(session))
        .expect("a session");
    switch
}

/// What leaves, in the order of the packets it comes from.
fn forward(switch: &mut Switch, packets: &[[u8; 2]]) -> Vec<(u32, Vec<u8>)> {
    const HEAD: usize = 64;
    let mut memory: Vec<[u8; HEAD + 2 + TAILROOM]> = vec![[0; HEAD + 2 + TAILROOM]; packets.len()];
    for (bytes, packet) in memory.iter_mut().zip(packets) {
        bytes[HEAD..HEAD + 2].copy_from_slice(packet);
    }
    let mut frames: Vec<Frame<'_>> = memory
        .iter_mut()
        .map(|bytes| Frame::new(bytes, HEAD, 2).expect("room"))
        .collect();
    let verdicts = switch.forward(&vec![0; packets.len()], &mut frames, 10).to_vec();
    let mut copies = switch.advance(10).into_iter();
    let mut sent = Vec::new();
    for (verdict, frame) in verdicts.iter().zip(&frames) {
        match verdict {
            Verdict::Transmit(port) => sent.push((*port, frame.bytes().to_vec())),
            Verdict::Copies(count) => sent.extend(copies.by_ref().take(*count as usize).map(|o| (o.port, o.bytes))),
            Verdict::Gone => {}
        }
    }
    // What waited in a queue.
    sent.extend(copies.map(|o| (o.port, o.bytes)));
    sent
}

fn packets() -> Vec<[u8; 2]> {
    // More clones than the queue of a port holds packets.
    (0..60).map(|i| [[1, 2, 1, 9][i % 4], i as u8]).collect()
}

#[test]
fn a_vector_does_what_its_packets_do_alone_compiled_or_not() {
    let mut alone = cloner();
    let expected: Vec<(u32, Vec<u8>)> = packets()
        .iter()
        .flat_map(|packet| alone.inject(0, packet, 10))
        .map(|o| (o.port, o.bytes))
        .collect();
    assert_eq!(expected.len(), 15 * 5);
    let mut interpreted = cloner();
    assert_eq!(forward(&mut interpreted, &packets()), expected);
    let mut compiled = cloner();
    compiled.compile().expect("it can be compiled");
    assert_eq!(forward(&mut compiled, &packets()), expected);
    for switch in [&interpreted, &compiled] {
        assert_eq!(switch.drops().collect::<Vec<_>>().len(), 1, "only those with a 9");
        assert_eq!(switch.port_stats(1).tx.packets, 60);
    }
}

#[test]
fn with_a_rate_packets_wait_in_queues() {
    let mut switch = cloner();
    switch.compile().expect("it can be compiled");
    let rate = PortRate {
        packets_per_second: Some(1_000_000),
        ..PortRate::default()
    };
    switch.set_port_rate(2, rate);
    assert_eq!(forward(&mut switch, &[[2, 0], [2, 1], [2, 2]]), [(2, vec![2, 0])]);
    assert_eq!((switch.queued(), switch.next_departure()), (2, Some(1010)));
    assert_eq!(switch.advance(1_000_000).len(), 2);
    assert_eq!((switch.queued(), switch.next_departure()), (0, None));
    // A rate that was taken away limits nobody; one of two still limits.
    switch.set_port_rate(3, rate);
    switch.set_port_rate(2, PortRate::default());
    switch.set_port_rate(3, PortRate::default());
    assert_eq!(
        forward(&mut switch, &[[2, 0], [2, 1]]),
        [(2, vec![2, 0]), (2, vec![2, 1])]
    );
    assert_eq!(switch.queued(), 0);
    switch.set_port_rate(2, rate);
    switch.set_port_rate(3, PortRate::default());
    let sent = forward(&mut switch, &[[2, 0], [2, 1]]).len();
    assert!(sent < 2 && switch.queued() == 2 - sent);
    assert_eq!((switch.drain().len(), switch.queued()), (2 - sent, 0));
}

#[test]
fn what_a_port_that_is_down_would_send_is_dropped_until_it_is_up_or_gone() {
    let mut switch = cloner();
    switch.compile().expect("it can be compiled");
    switch.set_port(2, false);
    assert_eq!(forward(&mut switch, &[[2, 0]]), []);
    switch.set_port(3, true);
    assert_eq!(forward(&mut switch, &[[2, 0]]), [], "another one is up");
    switch.set_port(2, true);
    assert_eq!(forward(&mut switch, &[[2, 0]]), [(2, vec![2, 0])]);
    switch.set_port(2, false);
    switch.remove_port(2);
    assert_eq!(forward(&mut switch, &[[2, 0]]), [(2, vec![2, 0])]);
}

#[test]
fn a_port_reaches_its_rate_also_where_nobody_looks_in_time() {
    let mut switch = cloner();
    let rate = PortRate {
        packets_per_second: Some(1_000_000),
        ..PortRate::default()
    };
    switch.set_port_rate(2, rate);
    for i in 0..50 {
        switch.receive(0, &[2, i], 0);
    }
    // Every 1.5 packets somebody looks, and the clock has gone on.
    let sent: Vec<usize> = (1..=20).map(|i| switch.advance(i * 1500).len()).collect();
    assert_eq!(sent.iter().sum::<usize>(), 31, "{sent:?}");
}

#[test]
fn what_loops_back_comes_in_there_compiled_or_not() {
    // Port 7 has what port 1 and its clones send; what comes in there goes where its first byte
    // says.
    let packets = [[1, 0], [3, 1], [9, 2], [1, 3]];
    let mut results = Vec::new();
    for compiled in [false, true] {
        let mut switch = cloner();
        if compiled {
            switch.compile().expect("it can be compiled");
        }
        switch.set_loopback(2, true);
        // Those that go to port 2 never end; each may cause as much as the limit says.
        let sent = forward(&mut switch, &packets);
        assert_eq!(sent.len(), 4, "a packet and its clone, twice");
        let counts = [1, 2].map(|port| switch.port_stats(port));
        let drops: Vec<_> = switch.drops().map(|d| (d.reason, d.packets)).collect();
        results.push((sent, counts, drops));
    }
    assert_eq!(results[0], results[1]);
    let (_, [_, loops], drops) = &results[1];
    assert_eq!(loops.tx.packets, 65_536, "as often as egress may run for a packet");
    assert_eq!(drops.len(), 2);
}

#[test]
fn a_loop_that_clones_ends_too() {
    let mut results = Vec::new();
    for compiled in [false, true] {
        let mut switch = cloner();
        if compiled {
            switch.compile().expect("it can be compiled");
        }
        // The packet and its clone come in again, and are cloned.
        switch.set_loopback(1, true);
        assert_eq!(forward(&mut switch, &[[1, 0]]), []);
        assert_eq!((switch.queued(), switch.next_departure()), (0, None));
        assert!(switch.dropped(weir_switch::DropReason::Loop) > 0);
        results.push(switch.port_stats(1).tx.packets);
    }
    assert_eq!(results[0], 65_536);
    assert!(results[1] <= 2 * results[0], "{results:?}");
}
