//! Lending: what is done to the switch of a worker that sleeps, and what is left to the worker.

use super::super::ring::Sleeper;
use super::*;
use std::thread::ThreadId;
use std::time::Duration;
use weir_switch::{PortRate, testing};

/// A worker without a thread.
struct Worker {
    control: Control,
    switch: LentSwitch,
    sleeper: Sleeper,
}

/// What an order has met.
type Met = Arc<Mutex<Vec<(ThreadId, u64)>>>;

impl Worker {
    fn new() -> Self {
        let switch = Switch::new(Arc::new(testing::reflector())).expect("it runs");
        let switch: LentSwitch = Arc::new(parking_lot::Mutex::new(Box::new(switch)));
        let (bell, sleeper) = Doorbell::new().expect("a pipe");
        let control = Control::new(vec![(bell, Arc::clone(&switch))]);
        Worker {
            control,
            switch,
            sleeper,
        }
    }

    /// Does something at the moment at which the worker has said that it sleeps. Whether it would
    /// sleep on.
    fn while_asleep(&mut self, act: impl Fn(&Control, &LentSwitch)) -> bool {
        let (control, switch, bell) = (&self.control, &self.switch, Arc::clone(&self.sleeper.bell));
        let sleeps_on = AtomicBool::new(false);
        let is_due = || {
            act(control, switch);
            sleeps_on.store(bell.is_asleep(), Ordering::SeqCst);
            true
        };
        self.sleeper.sleep(&[], Duration::ZERO, &is_due).expect("it sleeps");
        sleeps_on.into_inner()
    }

    /// Whether a call is what the worker is told next.
    fn is_told_to_call(&self) -> bool {
        matches!(self.control.next_order(0), Some(Order::Call(_)))
    }

    /// Has a packet wait in a queue until one second.
    fn queue_packet(&self) {
        let mut switch = self.switch.lock();
        let rate = PortRate {
            packets_per_second: Some(1),
            ..PortRate::default()
        };
        switch.set_port_rate(1, rate);
        for _ in 0..2 {
            switch.receive(1, &[0; 60], 0);
        }
        assert_eq!(switch.advance(0).len(), 1);
        assert_eq!(switch.next_departure(), Some(1_000_000_000));
    }
}

fn call(order: impl Fn(usize, &mut Switch) + Send + Sync + 'static) -> (Arc<Call>, oneshot::Receiver<()>) {
    let (ticket, done) = Ticket::new(1);
    let order: weir_server::Command = Arc::new(order);
    (Arc::new(Call { order, ticket }), done)
}

/// A call that notes the thread that does it and the time of the switch.
fn noting() -> (Arc<Call>, oneshot::Receiver<()>, Met) {
    let met = Met::default();
    let notes = Arc::clone(&met);
    let (call, done) = call(move |_, switch| {
        let mut notes = notes.lock().expect("nobody has failed");
        notes.push((std::thread::current().id(), switch.now_ns()));
    });
    (call, done, met)
}

#[test]
fn a_worker_sleeps_on_while_its_switch_is_changed_by_another_thread() {
    let mut worker = Worker::new();
    let (call, mut done, met) = noting();
    assert!(worker.while_asleep(|control, _| control.call_shortly(&call, 77)));
    assert_eq!(done.try_recv(), Ok(()));
    let here = std::thread::current().id();
    assert_eq!(*met.lock().expect("nobody has failed"), [(here, 77)]);
    assert!(!worker.control.has_orders(0));
}

#[test]
fn a_worker_that_is_awake_is_told() {
    let worker = Worker::new();
    let (call, mut done, met) = noting();
    worker.control.call_shortly(&call, 77);
    assert!(done.try_recv().is_err() && met.lock().expect("nobody has failed").is_empty());
    assert!(worker.is_told_to_call());
}

#[test]
fn what_was_told_before_is_done_before() {
    let mut worker = Worker::new();
    worker.control.tell(0, Order::Report);
    let (call, mut done, _) = noting();
    let sleeps_on = worker.while_asleep(|control, _| control.call_shortly(&call, 77));
    assert!(!sleeps_on, "it was rung");
    assert!(done.try_recv().is_err());
    assert!(matches!(worker.control.next_order(0), Some(Order::Report)));
    assert!(worker.is_told_to_call());
}

#[test]
fn a_switch_that_somebody_has_is_not_waited_for() {
    let mut worker = Worker::new();
    let (call, mut done, _) = noting();
    let sleeps_on = worker.while_asleep(|control, switch| {
        let _held = switch.lock();
        control.call_shortly(&call, 77);
    });
    assert!(!sleeps_on && done.try_recv().is_err());
    assert!(worker.is_told_to_call());
}

#[test]
fn packets_that_are_due_leave_before() {
    let mut worker = Worker::new();
    worker.queue_packet();
    let (early, mut done, _) = noting();
    assert!(worker.while_asleep(|control, _| control.call_shortly(&early, 999_999_999)));
    assert_eq!(done.try_recv(), Ok(()));
    let (late, mut done, _) = noting();
    assert!(!worker.while_asleep(|control, _| control.call_shortly(&late, 1_000_000_000)));
    assert!(done.try_recv().is_err());
    assert!(worker.is_told_to_call());
}

#[test]
fn a_worker_that_would_sleep_too_long_is_rung() {
    let mut worker = Worker::new();
    let (call, mut done) = call(|_, switch| switch.receive(1, &[0; 60], 0));
    let sleeps_on = worker.while_asleep(|control, _| control.call_shortly(&call, 0));
    assert!(!sleeps_on, "a packet can leave at once");
    assert_eq!(done.try_recv(), Ok(()));
    assert!(!worker.control.has_orders(0));
}

#[test]
fn whoever_fails_with_a_lent_switch_fails_the_worker_and_nothing_is_done_after_it() {
    let mut worker = Worker::new();
    let (failing, mut failed) = call(|_, _| panic!("as a test"));
    let (after, mut done, _) = noting();
    let sleeps_on = worker.while_asleep(|control, _| {
        control.call_shortly(&failing, 0);
        control.call_shortly(&after, 0);
    });
    assert!(!sleeps_on && failed.try_recv().is_err() && done.try_recv().is_err());
    let Some(Order::Fail(failure)) = worker.control.next_order(0) else {
        panic!("it is not told to fail");
    };
    assert_eq!(failure.downcast_ref(), Some(&"as a test"));
    assert!(worker.is_told_to_call(), "it is behind the failure");
}

#[test]
fn of_several_workers_each_does_its_part_and_the_last_ends_the_call() {
    let (mut first, second) = (Worker::new(), Worker::new());
    let (bells, switches) = (
        [&first, &second].map(|w| Arc::clone(&w.sleeper.bell)),
        [&first, &second].map(|w| Arc::clone(&w.switch)),
    );
    first.control = Control::new(bells.into_iter().zip(switches).collect());
    let (ticket, mut done) = Ticket::new(2);
    let order: weir_server::Command = Arc::new(|worker, switch| switch.set_port(worker as u32, false));
    let call = Arc::new(Call { order, ticket });
    assert!(first.while_asleep(|control, _| control.call_shortly(&call, 0)));
    assert!(first.switch.lock().is_down(0), "the first sleeps");
    assert!(!second.switch.lock().is_down(1), "the second does not");
    assert!(done.try_recv().is_err());
    let Some(Order::Call(call)) = first.control.next_order(1) else {
        panic!("it is told nothing");
    };
    (call.order)(1, &mut second.switch.lock());
    call.ticket.done();
    assert_eq!(done.try_recv(), Ok(()));
}
