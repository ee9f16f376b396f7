//! Every program of `tests/v1model` with its packet test: what the externs and the traffic manager
//! of v1model do, seen from P4.

mod common;

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
