//! Ports to devices. The device here is a list that completes jobs when the test says so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_lanes::{Counters, Device, LaneConfig, LaneOptions, Port};

const LIMIT: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct State {
    /// Jobs that were taken.
    taken: Vec<u32>,
    /// Jobs that the next poll returns.
    done: Vec<u32>,
    /// Jobs that still fit.
    room: usize,
    submissions: usize,
    can_reset: bool,
}

#[derive(Debug, Clone, Default)]
struct Fake(Arc<Mutex<State>>);

impl Fake {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes the newest jobs first.
    fn finish(&self, count: usize) {
        let mut state = self.state();
        for _ in 0..count {
            let job = state.taken.pop().expect("was taken");
            state.done.push(job);
            state.room += 1;
        }
    }
}

impl Device<u32> for Fake {
    fn submit(&mut self, jobs: &mut Vec<u32>) {
        let mut state = self.state();
        let count = jobs.len().min(state.room);
        state.room -= count;
        state.submissions += 1;
        state.taken.extend(jobs.drain(..count));
    }

    fn poll(&mut self, done: &mut Vec<u32>) {
        done.append(&mut self.state().done);
    }

    fn reset(&mut self) -> bool {
        let mut state = self.state();
        if state.can_reset {
            state.room += state.taken.len() + state.done.len();
            state.taken.clear();
            state.done.clear();
        }
        state.can_reset
    }
}

fn port(room: usize, can_reset: bool) -> (Fake, Port<u32>) {
    let fake = Fake::default();
    (fake.state().room, fake.state().can_reset) = (room, can_reset);
    let options = LaneOptions {
        depth: 16,
        batch: 4,
        time_limit: LIMIT,
        ..LaneOptions::default()
    };
    let config = LaneConfig::new(options).expect("valid options");
    let port = Port::to_device(&config, Box::new(fake.clone()));
    (fake, port)
}

fn submit(port: &mut Port<u32>, jobs: std::ops::Range<u32>) {
    jobs.for_each(|job| port.submit(job, 0).expect("has room"));
}

#[test]
fn a_device_gets_batches_and_completes_them_in_any_order() {
    let (fake, mut port) = port(16, false);
    submit(&mut port, 0..9);
    assert_eq!(fake.state().submissions, 2);
    assert_eq!(fake.state().taken, [0, 1, 2, 3, 4, 5, 6, 7]);
    port.flush();
    assert_eq!((fake.state().submissions, port.in_flight()), (3, 9));
    fake.finish(9);
    let mut done = Vec::new();
    assert_eq!(port.complete(&mut done), 9);
    assert_eq!(done, [8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!((port.in_flight(), port.load()), (0, 0.0));
}

#[test]
fn jobs_that_a_device_does_not_take_are_offered_again_in_order() {
    let (fake, mut port) = port(3, false);
    submit(&mut port, 0..16);
    assert_eq!(port.submit(16, 0), Err(16), "the port is full");
    port.flush();
    assert_eq!(fake.state().taken, [0, 1, 2]);
    let mut done = Vec::new();
    while port.in_flight() > 0 {
        let taken = fake.state().taken.len();
        fake.finish(taken);
        port.complete(&mut done);
        port.flush();
    }
    done.sort_unstable();
    assert_eq!(done, (0..16).collect::<Vec<_>>());
}

#[test]
fn a_device_that_stalls_is_reset_and_its_jobs_are_lost() {
    let (fake, mut port) = port(6, true);
    submit(&mut port, 0..10);
    port.flush();
    let now = Instant::now();
    assert!(port.check(now).is_empty());
    fake.finish(1);
    assert_eq!(port.complete(&mut Vec::new()), 1);
    assert!(port.check(now + LIMIT).is_empty(), "a job was completed");
    let lost = port.check(now + 2 * LIMIT);
    assert_eq!((lost.count, lost.gone(), lost.threads), (9, 5, vec![0]));
    assert_eq!(lost.returned, [6, 7, 8, 9], "the device had not taken them");
    let expected = Counters {
        submitted: 10,
        completed: 1,
        lost: 9,
        restarts: 1,
    };
    assert_eq!((port.counters(), port.in_flight()), (expected, 0));
    submit(&mut port, 20..24);
    fake.finish(4);
    assert_eq!(port.complete(&mut Vec::new()), 4);
}

#[test]
fn jobs_stay_in_flight_in_a_device_that_cannot_be_reset() {
    let (fake, mut port) = port(16, false);
    submit(&mut port, 0..4);
    let now = Instant::now();
    for seconds in 0..5 {
        assert!(port.check(now + seconds * LIMIT).is_empty());
    }
    assert_eq!(port.in_flight(), 4);
    fake.finish(4);
    assert_eq!(port.complete(&mut Vec::new()), 4);
}
