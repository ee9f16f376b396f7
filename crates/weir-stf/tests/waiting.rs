//! Packets that wait for externs: what leaves is what leaves if calls are executed at once; packets
//! of a flow keep their order; nothing is lost but what is counted.
#![allow(clippy::vec_box, reason = "jobs move between lists as pointers")]

mod common;

use common::{compile, folder};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_extern_api::{Call, Extern, Outcome, Registry};
use weir_interp::Interpreter;
use weir_ir::{Bits, WhenFull};
use weir_lanes::{Device, Lane, LaneConfig, LaneOptions, Port, Service};
use weir_switch::{
    CloneSession, DropReason, ExternMode, ExternOptions, Frame, Job, JobService, KeyBytes, Output, Replica, Switch,
    SwitchConfig, TAILROOM, Verdict, Write,
};

/// `extern void scramble(payload_write p, in bit<32> by, inout bit<200> wide)`: changes all of it.
struct Scramble;

impl Extern for Scramble {
    fn call(&self, call: &mut Call<'_>) -> Outcome {
        let by = call.get(1);
        for (at, byte) in call.payload_mut().iter_mut().enumerate() {
            *byte = byte.wrapping_mul(5).wrapping_add(by as u8).wrapping_add(at as u8);
        }
        if let Some(wide) = call.bits(2, 0) {
            call.set_bits(2, 0, &wide.add(&Bits::new(200, u128::from(by) << 70 | 77)));
        }
        Outcome::Continue
    }
}

/// Executes jobs when it is polled, in any order, a few at a time.
struct Shuffling {
    taken: Vec<Box<Job>>,
    random: u64,
}

impl Device<Box<Job>> for Shuffling {
    fn submit(&mut self, jobs: &mut Vec<Box<Job>>) {
        self.taken.append(jobs);
    }

    fn poll(&mut self, done: &mut Vec<Box<Job>>) {
        for _ in 0..self.taken.len().min(7) {
            self.random = self
                .random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let at = (self.random >> 33) as usize % self.taken.len();
            done.push(self.taken.swap_remove(at));
        }
        JobService.process(done);
    }
}

const DEPTH: usize = 128;
const HEAD: usize = 128;

fn config(depth: usize, threads: usize) -> LaneConfig {
    LaneConfig::new(LaneOptions {
        name: "test".into(),
        depth,
        batch: depth.min(16),
        threads,
        time_limit: Duration::from_millis(300),
    })
    .expect("a good configuration")
}

/// A switch that runs the program of this name; its keys are set.
fn switch(name: &str, is_compiled: bool) -> Switch {
    let mut externs: Registry = weir_externs::registry();
    externs.function("scramble", Arc::new(Scramble));
    let program = Arc::new(compile(&folder("waiting"), name));
    let config = SwitchConfig {
        externs,
        ..SwitchConfig::default()
    };
    let mut switch = Switch::with_engine(Arc::new(Interpreter::new(program)), config).expect("loads");
    if is_compiled {
        switch.compile().expect("has compiled code");
        assert_eq!(switch.left_out(), []);
    }
    if let Ok(hashes) = switch.extern_with_keys("hashes") {
        let key = KeyBytes::new((0..16).collect());
        switch.write(Write::Key(hashes, 1, key)).expect("a key of 16 bytes");
    }
    switch
}

fn attach(switch: &mut Switch, mode: ExternMode, full: WhenFull) {
    let device = Shuffling {
        taken: Vec::new(),
        random: 9,
    };
    let port = Port::to_device(&config(DEPTH, 1), Box::new(device));
    let options = ExternOptions {
        mode,
        full,
        depth: DEPTH,
    };
    switch.attach_lane(port, None, options);
}

/// Flow, one of these operations, number, and a payload.
fn packets(count: u32, operations: &[u8]) -> Vec<Vec<u8>> {
    let mut random = 5u64;
    let mut next = |below: u64| {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    (0..count)
        .map(|number| {
            let flow = next(5) as u8;
            // Without IP, a flow is a pair of Ethernet addresses.
            let mut packet = [&[flow; 12][..], &[0x88, 0xb5, flow]].concat();
            packet.push(operations[next(operations.len() as u64) as usize]);
            packet.extend(number.to_be_bytes());
            let length = next(300);
            packet.extend((0..length).map(|at| (at / 9 + next(3)) as u8));
            packet
        })
        .collect()
}

/// Runs packets through compiled code, 64 at a time; what leaves, in its order.
fn forward(switch: &mut Switch, packets: &[Vec<u8>]) -> Vec<Output> {
    let mut out = Vec::new();
    for (vector, packets) in packets.chunks(64).enumerate() {
        let mut memory: Vec<Vec<u8>> = packets
            .iter()
            .map(|p| [&[0; HEAD][..], p, &[0; TAILROOM]].concat())
            .collect();
        let frames = memory.iter_mut().zip(packets);
        let mut frames: Vec<Frame<'_>> = frames
            .map(|(memory, packet)| Frame::new(memory, HEAD, packet.len()).expect("room"))
            .collect();
        assert!(switch.headroom() <= HEAD);
        let now_ns = vector as u64;
        let verdicts = switch.forward(&vec![1; packets.len()], &mut frames, now_ns).to_vec();
        let mut more = switch.advance(now_ns).into_iter();
        for (verdict, frame) in verdicts.into_iter().zip(&frames) {
            match verdict {
                Verdict::Transmit(port) => out.push(Output {
                    port,
                    bytes: frame.bytes().to_vec(),
                    time_ns: now_ns,
                }),
                Verdict::Copies(count) => out.extend(more.by_ref().take(count as usize)),
                Verdict::Gone => {}
            }
        }
        out.extend(more);
    }
    switch.settle_externs();
    out.extend(switch.advance(u64::from(u32::MAX)));
    out
}

/// What leaves by flow, each flow in its order. The flow is the byte of the header `head`, which
/// the programs send after `tail`.
fn by_flow(out: &[Output], tail: usize) -> BTreeMap<u8, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
    for output in out {
        let flow = output.bytes[tail + 14];
        flows.entry(flow).or_default().push(output.bytes.clone());
    }
    flows
}

/// Operations of the programs: they differ in the calls that packets make.
const ALL: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// Those that make the same calls.
const ALIKE: [u8; 2] = [2, 6];
const TAIL: usize = 8 + 4 + 1 + 1;

const MODES: [(ExternMode, WhenFull); 4] = [
    (ExternMode::Sync, WhenFull::Inline),
    (ExternMode::Async, WhenFull::Inline),
    (ExternMode::Async, WhenFull::Wait),
    (ExternMode::Auto, WhenFull::Inline),
];

/// The programs of each architecture. Those of PSA and TNA drop operation 15.
const PROGRAMS: [&str; 3] = ["v1", "psa", "tna"];

/// Runs packets through a program, interpreted and as compiled code in this mode; what leaves, by
/// flow.
fn both(name: &str, packets: &[Vec<u8>], mode: ExternMode, full: WhenFull) -> [BTreeMap<u8, Vec<Vec<u8>>>; 2] {
    let mut plain = switch(name, false);
    let expected: Vec<Output> = packets.iter().flat_map(|p| plain.inject(1, p, 0)).collect();
    let is_dropped = |packet: &&Vec<u8>| name != "v1" && packet[15] == 15;
    let dropped = packets.iter().filter(is_dropped).count();
    assert_eq!(expected.len() + dropped, packets.len(), "{name}");
    let mut fast = switch(name, true);
    attach(&mut fast, mode, full);
    let out = forward(&mut fast, packets);
    assert_eq!(
        (out.len(), fast.waiting_for_externs()),
        (expected.len(), 0),
        "{name} {mode:?} {full:?}"
    );
    assert!(out.iter().chain(&expected).all(|o| o.port == 2), "{name}");
    let handed_over = fast.extern_counts().handed_over;
    assert_eq!(
        mode == ExternMode::Sync,
        handed_over == 0,
        "{name} {mode:?}: {handed_over}"
    );
    [by_flow(&expected, TAIL), by_flow(&out, TAIL)]
}

#[test]
fn packets_leave_as_if_calls_were_executed_at_once() {
    let packets = packets(700, &ALL);
    for (name, (mode, full)) in PROGRAMS.iter().flat_map(|name| MODES.map(|mode| (name, mode))) {
        let [mut expected, mut found] = both(name, &packets, mode, full);
        if mode != ExternMode::Sync {
            // Packets that make other calls overtake.
            expected
                .values_mut()
                .chain(found.values_mut())
                .for_each(|flow| flow.sort());
        }
        for (flow, packets) in &found {
            for (at, (found, wanted)) in packets.iter().zip(&expected[flow]).enumerate() {
                assert_eq!(found, wanted, "{name} {mode:?} {full:?}: packet {at} of flow {flow}");
            }
        }
    }
}

#[test]
fn packets_of_a_flow_that_make_the_same_calls_keep_their_order() {
    let packets = packets(700, &ALIKE);
    for (name, (mode, full)) in PROGRAMS.iter().flat_map(|name| MODES.map(|mode| (name, mode))) {
        let [expected, found] = both(name, &packets, mode, full);
        let numbers = |flows: &BTreeMap<u8, Vec<Vec<u8>>>| -> Vec<Vec<u32>> {
            let number = |packet: &Vec<u8>| {
                packet[TAIL + 16..TAIL + 20]
                    .iter()
                    .fold(0, |n, b| n << 8 | u32::from(*b))
            };
            flows.values().map(|flow| flow.iter().map(number).collect()).collect()
        };
        assert_eq!(numbers(&found), numbers(&expected), "{name} {mode:?} {full:?}");
    }
}

#[test]
fn packets_keep_the_flow_that_they_were_received_in_when_a_call_changes_its_addresses() {
    let packets = packets(400, &ALIKE);
    let mut plain = switch("flows", false);
    let sent: Vec<Vec<u8>> = packets.iter().map(|p| plain.inject(1, p, 0).remove(0).bytes).collect();
    // The numbers of the packets make them unique.
    let flow_of: BTreeMap<Vec<u8>, u8> = sent.iter().cloned().zip(packets.iter().map(|p| p[0])).collect();
    let by_flow = |sent: Vec<Vec<u8>>| {
        let mut flows: BTreeMap<u8, Vec<Vec<u8>>> = BTreeMap::new();
        sent.into_iter()
            .for_each(|bytes| flows.entry(flow_of[&bytes]).or_default().push(bytes));
        flows
    };
    let expected = by_flow(sent);
    for (mode, full) in MODES {
        let mut fast = switch("flows", true);
        attach(&mut fast, mode, full);
        let found = forward(&mut fast, &packets).into_iter().map(|o| o.bytes).collect();
        assert!(by_flow(found) == expected, "{mode:?} {full:?}");
    }
}

#[test]
fn a_serial_pipeline_keeps_what_packets_had_before_they_waited() {
    let packets = packets(300, &ALL);
    let with_sessions = |is_compiled| {
        let mut switch = switch("serial", is_compiled);
        for (session, port) in [(1, 11), (3, 13)] {
            let replicas = vec![Replica::new(port, 0)];
            let session_of = CloneSession {
                replicas,
                ..CloneSession::default()
            };
            let written = switch.write(Write::Session(session, Some(session_of)));
            written.expect("a good session");
        }
        switch
    };
    let sorted = |out: Vec<Output>| {
        let mut sent: Vec<(u32, Vec<u8>)> = out.into_iter().map(|o| (o.port, o.bytes)).collect();
        sent.sort();
        sent
    };
    let mut plain = with_sessions(false);
    let expected = sorted(packets.iter().flat_map(|p| plain.inject(1, p, 0)).collect());
    assert!(expected.len() > packets.len() + 100, "many are cloned");
    for (mode, full) in MODES {
        let mut fast = with_sessions(true);
        attach(&mut fast, mode, full);
        let found = sorted(forward(&mut fast, &packets));
        assert!(found == expected, "{mode:?} {full:?}");
    }
}

#[test]
fn every_packet_that_does_not_fit_is_counted() {
    let packets = packets(2000, &ALL[..15]);
    for name in PROGRAMS {
        let mut fast = switch(name, true);
        attach(&mut fast, ExternMode::Async, WhenFull::Drop);
        let sent = forward(&mut fast, &packets).len() as u64;
        let dropped = fast.dropped(DropReason::ExternFull);
        assert!(dropped > 0 && sent > 0, "{name}: {sent} sent, {dropped} dropped");
        assert_eq!(sent + dropped, packets.len() as u64, "{name}");
        let counts = (fast.extern_counts().full, fast.waiting_for_externs());
        assert_eq!(counts, (dropped, 0), "{name}");
    }
}

#[test]
fn a_lane_that_is_killed_loses_what_is_counted_and_comes_back() {
    let packets = packets(4000, &ALL);
    let mut fast = switch("v1", true);
    let (lane, mut ports) = Lane::start(config(DEPTH, 1), Arc::new(JobService), 1).expect("threads");
    let lane = Arc::new(lane);
    let port = ports.pop().expect("one worker");
    let options = ExternOptions {
        mode: ExternMode::Async,
        full: WhenFull::Inline,
        depth: DEPTH,
    };
    fast.attach_lane(port, Some(Arc::clone(&lane)), options);
    let mut sent = 0;
    for (number, some) in packets.chunks(1000).enumerate() {
        if number == 1 {
            assert!(lane.kill(0));
        }
        sent += forward(&mut fast, some).len() as u64;
        fast.check_externs(Instant::now());
    }
    let lost = fast.dropped(DropReason::ExternLost);
    assert_eq!(sent + lost, packets.len() as u64, "{lost} lost");
    assert_eq!((fast.extern_counts().lost, fast.waiting_for_externs()), (lost, 0));
    // It works again.
    let before = fast.extern_counts().handed_over;
    let again = forward(&mut fast, &packets[..200]).len();
    assert_eq!((again, lane.counters().restarts), (200, 1));
    assert!(fast.extern_counts().handed_over > before);
}

#[test]
fn a_clone_of_a_switch_has_none_of_its_waiting_packets() {
    let packets = packets(64, &ALL);
    let mut fast = switch("v1", true);
    attach(&mut fast, ExternMode::Async, WhenFull::Inline);
    let mut copy = fast.clone();
    assert_eq!(forward(&mut copy, &packets).len(), packets.len());
    assert_eq!((copy.extern_counts().handed_over, copy.waiting_for_externs()), (0, 0));
    assert_eq!(forward(&mut fast, &packets).len(), packets.len());
}
