//! Every program of `tests/tna` with its packet test: the paths of packets through TNA and T2NA and
//! what their externs do, seen from P4.

#[path = "common/agree.rs"]
mod agree;
mod common;
#[path = "common/malformed.rs"]
mod malformed;
#[macro_use]
#[path = "common/programs.rs"]
mod programs;

use std::sync::Arc;
use weir_ir::{ActionCall, Bits, KeyMatch};
use weir_switch::{CloneSession, Frame, PacketOrder, Replica, Switch, TAILROOM, Verdict, Write};
use weir_table::{EntryAction, NewEntry, TableOp};

/// `NAME.p4`, compiled.
fn compile(name: &str) -> Arc<weir_ir::Program> {
    Arc::new(common::compile(&common::folder("tna"), name))
}

programs!("tna":
    always_mirrored,
    bridged,
    captured,
    checksums,
    counters,
    deflection,
    deparser_checksums,
    digests,
    direct,
    errors,
    errors_read,
    errors_unused,
    filters,
    flexible,
    free_loops,
    functions,
    generated_lengths,
    generator,
    hashes,
    header_values,
    idle,
    intrinsic,
    loops,
    low_bits,
    math,
    meters,
    mirrors,
    multicast,
    odd_sums,
    onward,
    open_types,
    parsers,
    pipes,
    port_header,
    port_metadata,
    prefix_loops,
    profiles,
    recirculated,
    register_actions,
    registers,
    resubmitted,
    second_accounting,
    second_counters,
    second_generator,
    second_ghost,
    second_idle,
    second_loops,
    second_metadata,
    second_mirrors,
    second_registers,
    second_resubmitted,
    second_shared,
    selector_actions,
    shared_control,
    symmetric,
    transmit_time,
    unicast,
    untaken,
    value_sets,
    verified,
    ways,
    wide_actions
);

#[test]
fn a_session_may_shorten_its_mirrors() {
    let mut switch = Switch::new(compile("mirrors")).expect("loads");
    let session = CloneSession {
        replicas: vec![Replica::new(4, 0)],
        truncate_bytes: 6,
        ..CloneSession::default()
    };
    switch.write(Write::Session(5, Some(session))).expect("a session");
    let out = switch.inject(1, &[0, 5, 0, 0, 9, 9, 9], 0);
    let mut sent: Vec<(u32, &[u8])> = out.iter().map(|o| (o.port, o.bytes.as_slice())).collect();
    sent.sort_unstable();
    // The mirror's header is two bytes, of which egress makes one.
    assert_eq!(sent[1], (4, &[0xe0, 0, 5, 0, 0][..]));
}

#[test]
fn entries_that_nobody_hits_time_out() {
    for name in ["idle", "second_idle"] {
        for compiled in [false, true] {
            let mut switch = Switch::new(compile(name)).expect("loads");
            if compiled {
                switch.compile().expect("compiles");
            }
            let timed = switch.table("timed").expect("a table");
            let untimed = switch.table("untimed").expect("a table");
            assert!(!switch.state().table(untimed).expect("there").table.spec().idle_timeout);
            let action = EntryAction::Call(ActionCall {
                action: 0,
                arguments: vec![Bits::new(16, 7)],
            });
            let entry = NewEntry {
                idle_timeout_ns: 1_000_000_000,
                ..NewEntry::new(vec![KeyMatch::Exact(Bits::new(8, 3))], action)
            };
            switch
                .write(Write::Table(timed, TableOp::Insert(entry)))
                .expect("an entry");
            switch.inject(1, &[0, 3, 0, 0], 700_000_000);
            assert!(switch.idle_entries(1_600_000_000).is_empty(), "{name}");
            assert_eq!(switch.idle_entries(1_700_000_000).len(), 1, "{name}");
        }
    }
}

#[test]
fn what_cannot_be_run_is_refused_with_the_place() {
    for (name, expected) in [
        ("learning", "`I.learn` of type LearnAction cannot be run"),
        ("nested", "which comes to"),
        ("itself", "`I.again` executes itself"),
        ("is_validated", "function `is_validated` with 1 arguments"),
        (
            "widths",
            "acts on values of [24] bits, which are not made of whole cells of `I.cells`: they have [16]",
        ),
    ] {
        let refused = Switch::new(compile(&format!("refused/{name}"))).err();
        let error = refused.expect(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.contains(&format!("refused/{name}.p4:")), "{name}: {error}");
    }
}

#[test]
fn a_malformed_packet_can_do_nothing_but_be_dropped_or_forwarded() {
    malformed::survive("tna", programs::names("tna"));
}

#[test]
fn compiled_code_does_what_the_interpreter_does() {
    agree::check("tna", &programs::names("tna"));
}

#[test]
fn all_programs_are_compiled() {
    for name in programs::names("tna") {
        let mut switch = Switch::new(compile(&name)).expect("loads");
        let compiled = switch.compile();
        assert!(compiled.is_ok(), "{name}: {compiled:?}");
        let left_out: Vec<String> = switch.left_out().iter().map(ToString::to_string).collect();
        assert!(left_out.is_empty(), "{name}: {left_out:?}");
    }
}

#[test]
fn what_goes_on_within_the_switch_is_compiled_too() {
    for name in [
        "onward",
        "multicast",
        "mirrors",
        "second_mirrors",
        "always_mirrored",
        "second_accounting",
    ] {
        let mut switch = Switch::new(compile(name)).expect("loads");
        switch.compile().expect("compiles");
        assert!(switch.compiled_egress().is_some(), "{name}");
    }
}

/// What becomes of packets that machine code is given together, and of each alone in the
/// interpreter.
fn together(of: &str, state: &str, packets: &[Vec<u8>]) {
    together_in(of, compile(of), state, packets);
}

fn together_in(of: &str, program: Arc<weir_ir::Program>, state: &str, packets: &[Vec<u8>]) {
    for order in [PacketOrder::Arrival, PacketOrder::Serial] {
        together_in_order(order, of, Arc::clone(&program), state, packets);
    }
}

fn together_in_order(order: PacketOrder, of: &str, program: Arc<weir_ir::Program>, state: &str, packets: &[Vec<u8>]) {
    const HEAD: usize = 512;
    let switch = Switch::new(program).expect("loads");
    let (mut plain, failures) = weir_stf::configure(switch, state).expect("directives");
    assert!(failures.is_empty(), "{failures:?}");
    let mut fast = plain.clone();
    fast.compile().expect("compiles");
    fast.set_packet_order(order);
    let mut memory: Vec<Vec<u8>> = packets.iter().map(|p| vec![0; HEAD + p.len() + TAILROOM]).collect();
    for (memory, packet) in memory.iter_mut().zip(packets) {
        memory[HEAD..HEAD + packet.len()].copy_from_slice(packet);
    }
    let frames = memory.iter_mut().zip(packets);
    let mut frames: Vec<Frame<'_>> = frames
        .map(|(memory, packet)| Frame::new(memory, HEAD, packet.len()).expect("room"))
        .collect();
    let verdicts = fast.forward(&vec![1; packets.len()], &mut frames, 5).to_vec();
    let mut copies = fast.advance(5).into_iter();
    for ((packet, frame), verdict) in packets.iter().zip(&frames).zip(verdicts) {
        let sent: Vec<(u32, Vec<u8>)> = match verdict {
            Verdict::Transmit(port) => vec![(port, frame.bytes().to_vec())],
            Verdict::Copies(many) => copies.by_ref().take(many as usize).map(|o| (o.port, o.bytes)).collect(),
            Verdict::Gone => Vec::new(),
        };
        let alone = plain.inject(1, packet, 5);
        let alone: Vec<(u32, Vec<u8>)> = alone.into_iter().map(|o| (o.port, o.bytes)).collect();
        assert_eq!(sent.len(), alone.len(), "{of}: {packet:02x?}");
        let differs = sent.iter().zip(&alone).find(|(sent, alone)| sent != alone);
        assert_eq!(differs, None, "{of}: {packet:02x?}");
    }
    assert_eq!(copies.count(), 0, "{of}: all were somebody's");
    let stats = |switch: &Switch| switch.active_ports().collect::<Vec<_>>();
    assert_eq!(stats(&plain), stats(&fast), "{of}");
    let drops = |switch: &Switch| weir_switch::DropReason::ALL.map(|reason| switch.dropped(reason));
    assert_eq!(drops(&plain), drops(&fast), "{of}");
}

#[test]
fn packets_that_go_on_together_do_what_each_does_alone() {
    let state = "port 9 loopback\nmc_mgrp_create 7\nmc_node_create 0x11 3 9\nmc_node_create 0x22 68\n\
                 mc_node_associate 7 0\nmc_node_associate 7 1\nport 12 loopback";
    let mut seed = 77u64;
    let mut next = || {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as u8
    };
    for _ in 0..40 {
        let packets: Vec<Vec<u8>> = (0..64)
            .map(|i| {
                let op = [9, 68, 7, 3, 12, 8, 2][usize::from(next() % 7)];
                let index = [0x00, 0x80, 0x40, 0xc0][usize::from(next() % 4)] | (next() % 4);
                let rest = (0..next() % 20).map(|_| next());
                [op, index, 0, i].into_iter().chain(rest).collect()
            })
            .collect();
        together("onward", state, &packets);
    }
}

#[test]
fn packets_one_by_one_find_the_state_that_they_find_in_the_interpreter() {
    let state = "port 9 loopback\nmc_mgrp_create 7\nmc_node_create 1 3 9\nmc_node_associate 7 0";
    let packets: Vec<Vec<u8>> = (0..64).map(|i| vec![[0, 68, 7, 9, 3][i % 5], 0, 0, 0]).collect();
    for name in ["numbered", "numbered_at_egress"] {
        let program = compile(&format!("../vectors/{name}"));
        together_in_order(PacketOrder::Serial, name, program, state, &packets);
    }
}

#[test]
fn in_order_of_arrival_a_recirculated_packet_comes_after_those_it_came_with() {
    let mut switch = Switch::new(compile("../vectors/numbered")).expect("loads");
    switch.compile().expect("compiles");
    let numbers = |switch: &mut Switch| {
        let head = switch.headroom();
        let mut memory = [vec![0; head + 4 + TAILROOM], vec![0; head + 4 + TAILROOM]];
        memory[0][head] = 68;
        let mut frames: Vec<Frame<'_>> = memory.iter_mut().filter_map(|m| Frame::new(m, head, 4)).collect();
        let verdicts = switch.forward(&[1, 1], &mut frames, 5).to_vec();
        assert_eq!(verdicts, [Verdict::Copies(1), Verdict::Transmit(2)]);
        [switch.advance(5)[0].bytes[3], frames[1].bytes()[3]]
    };
    assert_eq!(numbers(&mut switch), [3, 2]);
    switch.set_packet_order(PacketOrder::Serial);
    assert_eq!(numbers(&mut switch), [5, 6]);
}

#[test]
fn a_packet_that_never_ends_is_dropped_after_as_much_work_as_in_the_interpreter() {
    // Straight through, and by an egress of its own.
    for op in [0, 1] {
        together("../vectors/forever", "port 9 loopback", &[vec![op, 0, 0, 0]]);
    }
    // Copies share what a packet may cause.
    let state = "port 9 loopback\nmc_mgrp_create 1\nmc_node_create 1 9\nmc_node_create 2 4\n\
                 mc_node_associate 1 0\nmc_node_associate 1 1";
    together("../vectors/forever", state, &[vec![2, 0, 0, 0]]);
}

#[test]
fn what_has_no_compiled_form_is_named_with_the_place() {
    let name = "random";
    let compiled = Switch::new(compile("interpreted/random")).expect("loads").compile();
    let error = compiled.expect_err(name).to_string();
    let expected = "random.p4:11:23: `get` of Random `IP.random` has no compiled form here";
    assert!(error.contains(expected), "{name}: {error}");
    assert!(error.ends_with("only the interpreter can follow it"), "{name}: {error}");
}

/// A program of another folder, which may be warned of.
fn compile_anyhow(path: &str) -> Arc<weir_ir::Program> {
    let path = common::folder(path);
    let options = weir_compiler::Options::default();
    let compiled = weir_compiler::compile_file(&path, &options, weir_arch::targets());
    Arc::new(compiled.program.expect("it compiles"))
}

#[test]
fn what_is_compiled_but_for_some_packets_is_named_too() {
    for (path, expected) in [
        ("tna/interpreted/skipping.p4", "packets that get there: "),
        ("vectors/untyped.p4", "requests made for every packet: "),
        (
            "vectors/bridged_bits.p4",
            "egress of what does not go straight through: ",
        ),
    ] {
        let mut switch = Switch::new(compile_anyhow(path)).expect("loads");
        switch.compile().expect("the rest is compiled");
        let left_out: Vec<String> = switch.left_out().iter().map(ToString::to_string).collect();
        assert!(left_out[0].starts_with(expected), "{path}: {left_out:?}");
        let names_it = left_out[0].contains(path) || left_out[0].contains("hdr.bits");
        assert!(names_it, "{path}: {left_out:?}");
    }
}

#[test]
fn what_is_left_out_is_done_all_the_same() {
    let packets = |many: u8| {
        (0..many)
            .map(|i| vec![i % 3, i, 0, i % 5, 0xaa, 0xbb])
            .collect::<Vec<_>>()
    };
    together_in(
        "skipping",
        compile_anyhow("tna/interpreted/skipping.p4"),
        "",
        &packets(64),
    );
    let copied: Vec<Vec<u8>> = (0..60).map(|i| vec![1, i, 0, 0, 0xaa]).collect();
    let state = "mc_mgrp_create 7\nmc_node_create 1 4 5\nmc_node_associate 7 0";
    let program = compile_anyhow("vectors/bridged_bits.p4");
    together_in("bridged_bits", Arc::clone(&program), state, &copied);
    together_in("bridged_bits", program, state, &packets(64));
    let state = "mirroring_add 5 3\nmirroring_add 6 4\nport 9 loopback";
    together_in("untyped", compile_anyhow("vectors/untyped.p4"), state, &packets(60));
}
