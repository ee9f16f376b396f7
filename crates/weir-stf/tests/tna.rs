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
use weir_ir::{ActionCall, Bits, KeyMatch};
use weir_switch::{CloneSession, Replica, Switch, Write};
use weir_table::{EntryAction, NewEntry, TableOp};

/// `NAME.p4`, compiled.
fn compile(name: &str) -> Arc<weir_ir::Program> {
    Arc::new(common::compile(&common::folder("tna"), name))
}

programs!("tna":
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
    filters,
    flexible,
    functions,
    generator,
    hashes,
    header_values,
    idle,
    intrinsic,
    loops,
    math,
    meters,
    mirrors,
    multicast,
    odd_sums,
    open_types,
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

#[test]
fn all_programs_are_compiled() {
    for name in programs::names("tna") {
        let compiled = Switch::new(compile(&name)).expect("loads").compile();
        assert!(compiled.is_ok(), "{name}: {compiled:?}");
    }
}

#[test]
fn what_has_no_compiled_form_is_named_with_the_place() {
    for (name, expected) in [
        (
            "random",
            "random.p4:11:23: `get` of Random `IP.random` has no compiled form here",
        ),
        ("skipping", "skipping.p4:8:9: the parser takes something"),
    ] {
        let compiled = Switch::new(compile(&format!("interpreted/{name}")))
            .expect("loads")
            .compile();
        let error = compiled.expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.ends_with("only the interpreter can follow it"), "{name}: {error}");
    }
}
