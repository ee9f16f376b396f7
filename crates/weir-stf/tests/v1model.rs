//! Every program of `tests/v1model` with its packet test: what the externs and the traffic manager
//! of v1model do, seen from P4.

use std::path::Path;
use std::sync::Arc;
use weir_compiler::{Options, compile_file};
use weir_stf::{RunOptions, run_on};
use weir_switch::Switch;
use weir_syntax::render;

/// `NAME.p4`, compiled.
fn compile(name: &str) -> Arc<weir_ir::Program> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/v1model");
    let path = directory.join(format!("{name}.p4"));
    let compiled = compile_file(&path, &Options::default(), weir_arch::targets());
    let errors: Vec<String> = compiled
        .diagnostics
        .list()
        .iter()
        .map(|d| render::short(d, &compiled.sources))
        .collect();
    let Some(program) = compiled.program else {
        panic!("{name} does not compile:\n{}", errors.join("\n"))
    };
    Arc::new(program)
}

/// Runs `NAME.stf` on `NAME.p4`, as it is, with all passes, and as machine code of both.
fn check(name: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/v1model");
    let text = std::fs::read_to_string(directory.join(format!("{name}.stf"))).expect("a test beside the program");
    let program = compile(name);
    let mut optimized = weir_ir::Program::clone(&program);
    let observes = weir_arch::observes(&optimized);
    weir_ir::passes::optimize(&mut optimized, &observes);
    let switch = |program| Switch::new(program).unwrap_or_else(|e| panic!("{name}: {e}"));
    let plain = [
        ("as compiled", switch(program)),
        ("optimized", switch(Arc::new(optimized))),
    ];
    let mut ways = Vec::new();
    for (what, plain) in plain {
        let mut compiled = plain.clone();
        ways.push((what.to_owned(), plain));
        // What cannot be compiled is interpreted.
        if compiled.compile().is_ok() {
            ways.push((format!("{what}, machine code"), compiled));
        }
    }
    for (what, switch) in ways {
        let report = run_on(switch, &text, &RunOptions::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert!(report.passed(), "{name} {what}:\n{}", failures.join("\n"));
        assert!(report.checks > 0, "{name} checks nothing");
    }
}

macro_rules! programs {
    ($($name:ident),*) => { $(#[test] fn $name() { check(stringify!($name)); })* };
}

programs!(
    again, ahead, checksums, clones, counters, hashes, lengths, matches, messages, parsing, ports, queueing, registers,
    selectors
);

/// A 64-bit generator; the same seed gives the same bytes.
fn bytes(seed: &mut u64, length: usize) -> Vec<u8> {
    let mut next = || {
        *seed ^= *seed << 13;
        *seed ^= *seed >> 7;
        *seed ^= *seed << 17;
        *seed as u8
    };
    (0..length).map(|_| next()).collect()
}

#[test]
fn a_malformed_packet_can_do_nothing_but_be_dropped_or_forwarded() {
    let mut seed = 0x1234_5678_9abc_def1;
    for name in [
        "again",
        "checksums",
        "clones",
        "counters",
        "hashes",
        "messages",
        "parsing",
        "registers",
    ] {
        let mut switch = Switch::new(compile(name)).expect("loads");
        for i in 0..2000 {
            let mut packet = bytes(&mut seed, i % 24);
            // Most tests look at small values of the first byte.
            if let Some(first) = packet.first_mut() {
                *first %= 16;
            }
            switch.inject(i as u32 % 600, &packet, i as u64);
        }
        let sent: u64 = switch.active_ports().map(|(_, s)| s.tx.packets).sum();
        let dropped: u64 = switch.drops().map(|d| d.packets).sum();
        assert!(sent + dropped >= 2000, "{name}: {sent} sent, {dropped} dropped");
    }
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
