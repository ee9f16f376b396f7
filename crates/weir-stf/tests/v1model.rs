//! Every program of `tests/v1model` with its packet test: what the externs and the traffic manager
//! of v1model do, seen from P4.

mod common;
#[path = "common/malformed.rs"]
mod malformed;

use std::sync::Arc;
use weir_switch::Switch;

/// `NAME.p4`, compiled.
fn compile(name: &str) -> Arc<weir_ir::Program> {
    Arc::new(common::compile(&common::folder("v1model"), name))
}

/// Runs `NAME.stf` on `NAME.p4`.
fn check(name: &str) {
    common::check(&common::folder("v1model"), name);
}

macro_rules! programs {
    ($($name:ident),*) => { $(#[test] fn $name() { check(stringify!($name)); })* };
}

programs!(
    again,
    ahead,
    arrays,
    checksums,
    clones,
    counters,
    custom_crcs,
    empty_data,
    folded_checksums,
    free_loops,
    hashes,
    keys_of_no_bits,
    keys_read_again,
    lengths,
    matches,
    messages,
    never_there,
    open_types,
    parsing,
    ports,
    queueing,
    registers,
    same_names,
    selector_keys,
    selectors,
    unaligned,
    wide_arithmetic
);

#[test]
fn loops_that_take_nothing_are_compiled() {
    let mut switch = Switch::new(compile("free_loops")).expect("loads");
    switch.compile().expect("it is compiled");
    let left_out: Vec<String> = switch.left_out().iter().map(ToString::to_string).collect();
    assert_eq!(left_out, [] as [&str; 0]);
}

#[test]
fn what_does_not_end_at_a_whole_byte_is_interpreted_and_all_else_is_not() {
    let mut switch = Switch::new(compile("unaligned")).expect("loads");
    switch.compile().expect("it is compiled");
    let left_out: Vec<String> = switch.left_out().iter().map(ToString::to_string).collect();
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].contains("unaligned.p4:12:"), "{left_out:?}");
}

#[test]
fn a_malformed_packet_can_do_nothing_but_be_dropped_or_forwarded() {
    let names = [
        "again",
        "checksums",
        "clones",
        "counters",
        "hashes",
        "messages",
        "parsing",
        "registers",
    ];
    malformed::survive("v1model", names);
}

/// What `ahead.stf` is about: else it would test nothing of the kind.
#[test]
fn lookups_whose_keys_are_known_early_share_a_suspension() {
    let mut switch = Switch::new(compile("ahead")).unwrap();
    switch.compile().unwrap();
    let segments = switch.compiled().unwrap().describe();
    let points: Vec<&str> = segments.lines().filter(|l| l.contains("keys in row")).collect();
    assert_eq!(points.len(), 2, "{segments}");
    assert!(points[0].contains("I.known + I.routes + I.classes"), "{segments}");
    assert!(points[1].contains("I.by_class"), "{segments}");
}

/// What `arrays.stf` is about.
#[test]
fn code_looks_into_tables_of_small_keys_itself() {
    let mut switch = Switch::new(compile("arrays")).unwrap();
    switch.compile().unwrap();
    let segments = switch.compiled().unwrap().describe();
    let points: Vec<&str> = segments.lines().filter(|l| l.contains("keys in row")).collect();
    assert_eq!(points.len(), 1, "{segments}");
    for table in ["known", "classes", "by_class"] {
        let said = format!(" I.{table}: an array that code looks into");
        assert!(segments.contains(&said), "{segments}");
    }
}

/// What `keys_read_again.stf` is about.
#[test]
fn fields_that_were_keys_are_not_read_from_the_packet_again() {
    let mut switch = Switch::new(compile("keys_read_again")).unwrap();
    switch.compile_with(true).unwrap();
    let assembly = switch.compiled().and_then(|c| c.assembly()).unwrap();
    if !assembly.contains("8 packets at a time") {
        return; // Not on this processor.
    }
    let (_, segment) = assembly.split_once("; segment 1, 8 packets at a time").unwrap();
    let segment = segment.split("; segment").next().unwrap();
    assert!(segment.contains("suspend at point"), "{segment}");
    assert!(!segment.contains("= ["), "the packet is read:\n{segment}");
}
