//! Every program of `tests/tna` with its packet test: the ways of packets through TNA and T2NA and what their externs do,
//! seen from P4.

#[path = "common/agree.rs"]
mod agree;
mod common;
#[path = "common/malformed.rs"]
mod malformed;
#[macro_use]
#[path = "common/programs.rs"]
mod programs;

use std::sync::Arc;
use weir_switch::{CloneSession, Replica, Switch, Write};

/// `NAME.p4`, compiled.
fn compile(name: &str) -> Arc<weir_ir::Program> {
    Arc::new(common::compile(&common::folder("tna"), name))
}

programs!("tna":
    bridged,
    checksums,
    counters,
    deflection,
    deparser_checksums,
    digests,
    direct,
    errors,
    errors_read,
    filters,
    functions,
    generator,
    hashes,
    intrinsic,
    loops,
    math,
    meters,
    mirrors,
    multicast,
    parsers,
    pipes,
    port_metadata,
    profiles,
    recirculated,
    register_actions,
    registers,
    resubmitted,
    second_accounting,
    second_counters,
    second_generator,
    second_loops,
    second_metadata,
    second_mirrors,
    second_registers,
    second_resubmitted,
    selector_actions,
    transmit_time,
    unicast,
    wide_actions
);

#[test]
fn a_session_may_shorten_its_mirrors() {
    let mut switch = Switch::new(compile("mirrors")).expect("loads");
    let session = CloneSession {
        replicas: vec![Replica { port: 4, rid: 0 }],
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
fn what_cannot_be_run_is_refused_with_the_place() {
    for (name, expected) in [
        (
            "ghost",
            "the block `pipe0.ghost` cannot be run: there are no messages on queues for ghost controls here",
        ),
        ("learning", "`I.learn` of type LearnAction cannot be run"),
        ("is_validated", "function `is_validated` with 1 arguments"),
        (
            "widths",
            "acts on values of [16] bits, which are not made of whole cells of `I.cells`: they have [32]",
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

/// What the interpreter still follows alone: parsers that count or sum, what reads the port's metadata, several pipes or
/// parsers, and actions on more than one cell.
#[test]
fn plain_programs_are_compiled() {
    let interpreted: Vec<String> = programs::names("tna")
        .into_iter()
        .filter(|name| Switch::new(compile(name)).expect("loads").compile().is_err())
        .collect();
    let expected = [
        "checksums",
        "loops",
        "parsers",
        "pipes",
        "port_metadata",
        "registers",
        "second_counters",
        "second_loops",
        "second_metadata",
        "second_registers",
        "selector_actions",
        "wide_actions",
    ];
    assert_eq!(interpreted, expected);
}
