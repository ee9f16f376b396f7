//! Every target survives a few hundred hostile inputs.

use weir_fuzz::{Mutator, TARGETS, seeds};

fn feed(name: &str, count: usize) {
    let target = TARGETS.iter().find(|t| t.name == name).unwrap();
    let mut mutator = Mutator::new(42, seeds(name, None));
    for _ in 0..count {
        (target.run)(&(target.next)(&mut mutator));
    }
}

#[test]
fn hostile_source_text_gets_an_answer() {
    feed("source", 400);
}

#[test]
fn hostile_packets_are_forwarded_or_dropped() {
    feed("packets", 400);
}

#[test]
fn hostile_captures_are_read_or_refused() {
    feed("captures", 2000);
}

#[test]
fn hostile_packet_tests_are_run_or_refused() {
    feed("tests", 1000);
}

#[test]
fn hostile_saved_programs_are_run_or_refused() {
    feed("programs", 300);
}

#[test]
fn hostile_telemetry_is_decoded_or_refused() {
    feed("int-reports", 2000);
}

#[test]
fn a_collector_of_hostile_telemetry_keeps_its_limits_and_its_counts_add_up() {
    feed("int-collector", 2000);
}

#[test]
fn hostile_rina_pdus_messages_and_link_states_are_decoded_or_refused() {
    feed("rina", 2000);
}

#[test]
fn hostile_requests_of_p4runtime_are_answered_and_refused_ones_change_nothing() {
    feed("p4runtime", 60);
}

#[test]
fn hostile_requests_of_bf_runtime_are_answered_and_refused_ones_change_nothing() {
    feed("bfrt", 60);
}

#[test]
fn edited_saved_programs_run_alike_by_both_engines_or_are_refused() {
    feed("saved", 60);
}

#[test]
fn packets_that_wait_for_externs_are_sent_as_if_calls_were_executed_at_once() {
    feed("waiting", 60);
}

#[test]
fn damaged_state_files_are_read_or_refused() {
    feed("state", 80);
}

/// Only where the binary is built: this crate does not depend on it.
#[test]
fn command_lines_are_answered() {
    if weir_fuzz::binary().is_some() {
        feed("arguments", 40);
    }
}
