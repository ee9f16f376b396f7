//! Externs that change a payload, and packets that are cloned, replicated, resubmitted or queued
//! after that: what is left is the same in the interpreter and in machine code, which punts such
//! packets.

#[allow(dead_code, reason = "it is for other tests, too")]
mod common;

use common::{compile, folder};
use std::sync::Arc;
use weir_extern_api::{Call, Extern, Outcome, Registry};
use weir_interp::Interpreter;
use weir_stf::{RunOptions, run_on};
use weir_switch::{Frame, LaneUse, Switch, SwitchConfig, TAILROOM};

/// `extern void change(payload_resize data, in bit<8> how)`: inverts the payload (1), appends two
/// bytes (2), or removes the last two (3).
struct Change;

impl Extern for Change {
    fn growth(&self, _: usize) -> usize {
        2
    }

    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let length = call.payload().len();
        match call.get(1) {
            1 => call.payload_mut().iter_mut().for_each(|byte| *byte ^= 0xff),
            2 if call.resize_payload(length + 2).is_ok() => call.payload_mut()[length..].fill(0xcd),
            3 => assert!(call.resize_payload(length.saturating_sub(2)).is_ok()),
            _ => {}
        }
        Outcome::Continue
    }
}

/// A switch that interprets the program of this name, and one that has compiled it.
fn switches(name: &str) -> (Switch, Switch) {
    let mut externs = Registry::default();
    externs.function("change", Arc::new(Change));
    let config = SwitchConfig {
        externs,
        ..SwitchConfig::default()
    };
    let program = Interpreter::new(Arc::new(compile(&folder("payloads"), name)));
    let plain = Switch::with_engine(Arc::new(program), config).expect("loads");
    let mut compiled = plain.clone();
    compiled.compile().expect("it is compiled");
    (plain, compiled)
}

fn check(name: &str) {
    let path = folder("payloads").join(format!("{name}.stf"));
    let text = std::fs::read_to_string(path).expect("a test beside the program");
    let (plain, compiled) = switches(name);
    let mut by_eights = compiled.clone();
    by_eights.set_lanes(LaneUse::Always);
    for (what, switch) in [("interpreted", plain), ("compiled", compiled), ("by eights", by_eights)] {
        let report = run_on(switch, &text, &RunOptions::default()).expect("a good test");
        let failures: Vec<String> = report.failures.iter().map(ToString::to_string).collect();
        assert!(report.passed(), "{name} {what}:\n{}", failures.join("\n"));
    }
}

#[test]
fn v1model_clones_and_resubmits_what_was_received_and_sends_what_was_changed() {
    check("v1");
}

#[test]
fn psa_clones_and_resubmits_what_was_received_and_sends_what_was_changed() {
    check("psa");
}

#[test]
fn tna_mirrors_and_resubmits_what_was_received_and_sends_what_was_changed() {
    check("tna");
}

#[test]
fn digests_and_logs_are_in_the_order_of_arrival_though_some_packets_leave_their_vector() {
    const HEAD: usize = 128;
    let (mut plain, mut fast) = switches("digests");
    let mut messages = [Vec::new(), Vec::new()];
    for vector in 0..2u8 {
        let packets: Vec<[u8; 4]> = (0..40).map(|n| [40 * vector + n, 7, 8, 9]).collect();
        packets.iter().for_each(|packet| drop(plain.inject(0, packet, 0)));
        let room = |packet: &[u8; 4]| [&[0; HEAD][..], packet, &[0; TAILROOM]].concat();
        let mut memory: Vec<Vec<u8>> = packets.iter().map(room).collect();
        let frames = memory.iter_mut().map(|m| Frame::new(m, HEAD, 4).expect("room"));
        fast.forward(&[0; 40], &mut frames.collect::<Vec<_>>(), 0);
    }
    for (switch, found) in [&plain, &fast].into_iter().zip(&mut messages) {
        found.extend(switch.state().digests.iter().map(|digest| format!("{digest:?}")));
        found.extend(switch.state().log.iter().map(|message| message.text.clone()));
    }
    let [expected, found] = messages;
    assert_eq!((found.len(), found), (280, expected));
}
