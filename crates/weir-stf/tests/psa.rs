//! Every program of `tests/psa` with its packet test: the paths of packets through PSA and what its
//! externs do, seen from P4.

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
    Arc::new(common::compile(&common::folder("psa"), name))
}

programs!("psa":
    checksums,
    clones,
    counters,
    crcs,
    digests,
    free_loops,
    free_loops_of_egress,
    hashes,
    headers,
    multicast,
    open_types,
    parsing,
    recirculated,
    registers,
    resubmitted,
    selectors,
    sessions,
    timestamps,
    unicast
);

/// The interpreter alone runs checksums that are no Internet checksums, and egress parsers with
/// loops that take nothing from the packet.
#[test]
fn plain_programs_are_compiled() {
    for name in programs::names("psa") {
        let mut switch = Switch::new(compile(&name)).expect("loads");
        let compiled = switch.compile().is_ok();
        let expected = !["crcs", "free_loops_of_egress"].contains(&name.as_str());
        assert_eq!(compiled, expected, "{name}");
    }
}

#[test]
fn a_session_may_shorten_its_clones_and_give_them_a_class() {
    let mut switch = Switch::new(compile("sessions")).expect("loads");
    let session = CloneSession {
        replicas: vec![Replica::new(4, 0x21), Replica::new(5, 0x22)],
        truncate_bytes: 5,
        class_of_service: 6,
        ..CloneSession::default()
    };
    switch.write(Write::Session(7, Some(session))).expect("a session");
    let out = switch.inject(1, &[0, 0, 0, 0, 1, 2, 3], 0);
    let sent: Vec<(u32, &[u8])> = out.iter().map(|o| (o.port, o.bytes.as_slice())).collect();
    // Instance and class, and of seven bytes five, whatever was parsed of them.
    let expected: [(u32, &[u8]); 3] = [
        (4, &[0, 0x21, 0, 6, 1]),
        (5, &[0, 0x22, 0, 6, 1]),
        (9, &[0, 0, 0, 0, 1, 2, 3]),
    ];
    let mut sent = sent;
    sent.sort_unstable();
    assert_eq!(sent, expected);
}

#[test]
fn numbers_of_sessions_and_groups_are_those_of_psa() {
    let mut switch = Switch::new(compile("sessions")).expect("loads");
    let set = |switch: &mut Switch, id| switch.write(Write::Session(id, Some(CloneSession::default())));
    assert!(set(&mut switch, 0).is_ok() && set(&mut switch, 0xffff).is_ok());
    let error = set(&mut switch, 0x1_0000).expect_err("too large").to_string();
    assert!(error.contains("use 0 to 65535"), "{error}");
    assert!(switch.write(Write::Group(0x1_0000, Some(Vec::new().into()))).is_ok());
    assert!(switch.write(Write::Group(0, Some(Vec::new().into()))).is_err());
}

#[test]
fn the_port_of_recirculation_is_there_where_ports_are_explicit() {
    let program = compile("recirculated");
    let config = weir_switch::SwitchConfig {
        explicit_ports: true,
        ..weir_switch::SwitchConfig::default()
    };
    let engine = Arc::new(weir_interp::Interpreter::new(program));
    let mut switch = Switch::with_engine(engine, config).expect("loads");
    switch.set_port(3, true);
    switch.set_port(2, true);
    assert_eq!(switch.inject(3, &[1, 1, 0, 0], 0).len(), 1);
    assert_eq!(switch.inject(3, &[1, 0, 0, 0], 0)[0].port, 2);
}

#[test]
fn entries_time_out_where_the_table_says_so() {
    let mut switch = Switch::new(compile("sessions")).expect("loads");
    let timed = switch.table("timed").expect("a table");
    let untimed = switch.table("untimed").expect("a table");
    assert!(!switch.state().table(untimed).expect("there").table.spec().idle_timeout);
    let action = EntryAction::Call(ActionCall {
        action: 0,
        arguments: Vec::new(),
    });
    let entry = NewEntry {
        idle_timeout_ns: 1000,
        ..NewEntry::new(vec![KeyMatch::Exact(Bits::new(8, 3))], action)
    };
    switch
        .write(Write::Table(timed, TableOp::Insert(entry)))
        .expect("an entry");
    switch.inject(1, &[0, 3, 0, 0], 700);
    assert!(switch.idle_entries(1600).is_empty());
    assert_eq!(switch.idle_entries(1700).len(), 1);
}

#[test]
fn a_malformed_packet_can_do_nothing_but_be_dropped_or_forwarded() {
    malformed::survive("psa", programs::names("psa"));
}

#[test]
fn compiled_code_does_what_the_interpreter_does() {
    agree::check("psa", &programs::names("psa"));
}
