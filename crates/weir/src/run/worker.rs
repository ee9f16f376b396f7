//! A worker: a thread that receives, forwards and sends until it is told to stop.

use super::control::{Control, Event, HeldSwitch, Order};
use super::end::End;
use super::flow;
use super::forward::Forwarder;
use super::plan::Spread;
use super::ring::{BUNDLE, Inbox, Outbox, Sleeper};
use crate::lines::Lines;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use weir_io::{Batch, BusyPoll, Device, Frame, FrameBatch, Pool};
use weir_switch::{Switch, VECTOR};

/// Longest sleep: how soon the loss of an interface is noticed where nothing happens.
const PATIENCE: Duration = Duration::from_millis(100);
/// When a device that took nothing is tried again.
const SOON: Duration = Duration::from_micros(100);
/// Longest sleep where nobody can be woken.
const SHORT: Duration = Duration::from_millis(1);
/// Batches taken from each device at the end, as many as a ring of the kernel may hold.
const LAST_ROUNDS: usize = 64;
/// Bundles taken from one ring before the others have their turn.
const TURN: usize = 4;
/// How long a change of programs waits for ports with a rate; what is in their queues then leaves
/// at once.
const CHANGE_PATIENCE: Duration = Duration::from_secs(1);
/// How long the end of a run waits for devices before their frames are given up.
const END_PATIENCE: Duration = Duration::from_millis(700);

/// Rings of a worker; by the number of the worker at the other end where it matters.
pub struct Rings {
    /// Frames for others to process.
    pub work_out: Vec<Option<Outbox>>,
    /// Frames to process.
    pub work_in: Vec<Inbox>,
    /// Frames to send.
    pub send_in: Vec<Inbox>,
}

/// What ties a worker to the others.
pub struct Ties {
    /// Rings to and from other workers.
    pub rings: Rings,
    /// What it sleeps by.
    pub sleeper: Sleeper,
    /// Where its orders come from.
    pub control: Arc<Control>,
    /// Where it says what has happened.
    pub events: Sender<Event>,
}

/// A worker.
pub struct Worker {
    number: usize,
    forwarder: Forwarder,
    /// For each device whether its packets are spread by their flow.
    is_only: Vec<bool>,
    spread: Spread,
    rings: Rings,
    arrived: FrameBatch,
    /// Of what arrived, what is to be processed here.
    own: FrameBatch,
    staged: Batch,
    /// Packets that no frame takes.
    odd: Batch,
    sleeper: Sleeper,
    control: Arc<Control>,
    events: Sender<Event>,
    /// Bundles that were taken and are not counted off yet.
    handled: usize,
    /// In this round, a device was not asked because another worker is behind.
    waits_for_others: bool,
}

impl Worker {
    /// A worker that owns the forwarder's devices; `is_only` says for each whether its packets are
    /// spread by their flow.
    pub fn new(
        number: usize,
        mut forwarder: Forwarder,
        is_only: Vec<bool>,
        spread: Spread,
        ties: Ties,
        pool: &Pool,
    ) -> Self {
        forwarder.set_number(number);
        Worker {
            number,
            forwarder,
            is_only,
            spread,
            rings: ties.rings,
            arrived: pool.batch(VECTOR),
            own: pool.batch(VECTOR),
            staged: Batch::new(VECTOR),
            odd: Batch::new(VECTOR),
            sleeper: ties.sleeper,
            control: ties.control,
            events: ties.events,
            handled: 0,
            waits_for_others: false,
        }
    }

    /// Works until told to stop.
    pub fn run(mut self) {
        let mut idle = BusyPoll::default();
        let mut has_ended = false;
        loop {
            if self.control.has_orders(self.number) {
                if !self.obey() {
                    return self.stop();
                }
                idle.worked();
            }
            if self.round() {
                idle.worked();
            } else if !idle.spin() {
                if !has_ended && !self.may_go_on() {
                    has_ended = true;
                    let _ = self.events.send(Event::Ended);
                }
                self.flush_rings();
                match self.waits_for_others {
                    true => std::thread::yield_now(),
                    false => {
                        // Whoever looks into a capture that is written finds everything so far.
                        self.forwarder.flush_devices();
                        self.sleep();
                    }
                }
            }
        }
    }

    /// Executes pending orders: up to a vector of packets of the control plane, as from a device,
    /// and one other order. Packets of devices do not wait for more, and orders after many packets
    /// do not wait for long. False if the worker is to stop.
    fn obey(&mut self) -> bool {
        for _ in 0..VECTOR {
            match self.control.next_order(self.number) {
                Some(Order::Take(port, packet, waiting)) => {
                    waiting.fetch_sub(1, Ordering::Relaxed);
                    let time_ns = weir_io::now_ns();
                    self.forwarder.take(port, Frame { data: &packet, time_ns });
                    continue;
                }
                Some(Order::Report) => {
                    let report = Box::new(self.forwarder.report(self.number));
                    let _ = self.events.send(Event::Report(report));
                }
                Some(Order::Call(call)) => {
                    self.forwarder.tick();
                    (call.order)(self.number, &mut self.forwarder.switch);
                    call.ticket.done();
                }
                Some(Order::Change {
                    switch,
                    spread,
                    engine,
                    lines,
                    ticket,
                }) => {
                    self.change((switch, lines), spread, engine);
                    ticket.iter().for_each(|t| t.done());
                }
                Some(Order::Trace(is_on)) => self.forwarder.set_tracing(is_on),
                Some(Order::AddPort(port)) => {
                    self.forwarder.add_port(*port);
                    self.is_only.resize(self.forwarder.ends.len(), true);
                }
                Some(Order::RemovePort(port, done)) => {
                    self.forwarder.remove_port(port);
                    // Who waits may have given up.
                    let _ = done.try_send(());
                }
                Some(Order::Stop) => return false,
                Some(Order::Fail(failure)) => std::panic::resume_unwind(failure),
                None => {}
            }
            break;
        }
        self.flush();
        true
    }

    /// Whether there may be more packets: from a device, from a queue, or from a packet generator.
    fn may_go_on(&self) -> bool {
        let is_open = self.forwarder.ends.iter().any(|e| e.is_open() || e.may_return());
        is_open || self.forwarder.switch.next_departure().is_some() || self.forwarder.switch.queued() > 0
    }

    /// Looks everywhere once. Whether there was anything.
    fn round(&mut self) -> bool {
        self.waits_for_others = false;
        let mut is_busy = self.take_from_rings();
        for end in 0..self.forwarder.ends.len() {
            is_busy |= self.take_from_device(end);
        }
        is_busy |= self.forwarder.poll();
        self.flush();
        self.count_off();
        self.forwarder.ends.iter_mut().for_each(End::try_again);
        is_busy
    }

    fn flush(&mut self) {
        self.forwarder.flush();
        self.rings.work_out.iter_mut().flatten().for_each(Outbox::flush_some);
    }

    fn flush_rings(&mut self) {
        self.forwarder.flush_rings();
        self.rings.work_out.iter_mut().flatten().for_each(Outbox::flush);
    }

    /// The bundles that were taken have been dealt with.
    fn count_off(&mut self) {
        if self.handled > 0 {
            self.control.in_flight.fetch_sub(self.handled, Ordering::SeqCst);
            self.handled = 0;
        }
    }

    fn take_from_rings(&mut self) -> bool {
        let before = self.handled;
        // First what is only to be sent: it makes room for everything else and waits for nobody.
        for inbox in &self.rings.send_in {
            while let Some(mut bundle) = inbox.next(&self.sleeper.bell) {
                for (index, port) in bundle.ports.iter().enumerate() {
                    self.forwarder.send(&mut bundle.frames, index, *port);
                }
                inbox.give_back(bundle);
                self.forwarder.flush();
                self.handled += 1;
            }
        }
        for inbox in &self.rings.work_in {
            for _ in 0..TURN {
                if !self.forwarder.others_have_room() {
                    self.waits_for_others = true;
                    break;
                }
                let Some(mut bundle) = inbox.next(&self.sleeper.bell) else {
                    break;
                };
                self.forwarder.process(&mut bundle.frames, &bundle.ports);
                inbox.give_back(bundle);
                self.forwarder.flush();
                self.handled += 1;
            }
        }
        self.handled > before
    }

    /// Whether a batch of a device can be dealt with now.
    fn can_take(&mut self, end: usize) -> bool {
        let work_out = &mut self.rings.work_out;
        if !self.forwarder.others_have_room() || work_out.iter_mut().flatten().any(|o| !o.has_room(BUNDLE)) {
            // What is not taken waits in the kernel, or is lost and counted there.
            self.waits_for_others = true;
            return false;
        }
        !self.forwarder.ends[end].device.is_patient() || self.forwarder.devices_have_room()
    }

    fn take_from_device(&mut self, end: usize) -> bool {
        if !self.forwarder.ends[end].is_open() || !self.can_take(end) {
            return false;
        }
        let from = &mut self.forwarder.ends[end];
        let port = from.port;
        let odd = &mut self.odd;
        odd.clear();
        let received = weir_io::receive_frames(&mut *from.device, &mut self.arrived, &mut self.staged, |frame| {
            odd.push(frame.data, frame.time_ns);
        });
        // What came before a failure counts; the other ports go on.
        if let Err(error) = received {
            from.fail(&error);
        }
        if self.arrived.is_empty() && odd.is_empty() {
            return false;
        }
        self.process_odd(port);
        let count = self.arrived.len();
        match self.spread() {
            Spread::First if self.number != 0 => self.hand_over(port, |_| 0),
            Spread::All if self.is_only[end] && self.control.workers() > 1 => {
                let workers = self.control.workers();
                self.hand_over(port, |frame| flow::worker(frame, workers));
            }
            _ => self.forwarder.process(&mut self.arrived, &[port; VECTOR][..count]),
        }
        self.flush();
        true
    }

    /// Which workers process packets now: one, while a port has a rate, as workers do not share
    /// queues.
    fn spread(&self) -> Spread {
        match self.forwarder.switch.has_port_rate() {
            true => Spread::First,
            false => self.spread,
        }
    }

    fn process_odd(&mut self, port: u32) {
        let spread = self.spread();
        for frame in self.odd.iter() {
            if spread == Spread::First && self.number != 0 {
                self.forwarder.lose_one();
            } else {
                self.forwarder.take(port, frame);
            }
        }
    }

    /// Gives each packet that arrived to the worker that is to process it.
    fn hand_over(&mut self, port: u32, worker_of: impl Fn(&[u8]) -> usize) {
        for index in 0..self.arrived.len() {
            let worker = self.arrived.get(index).map_or(self.number, &worker_of);
            let moved = match self.rings.work_out.get_mut(worker).and_then(Option::as_mut) {
                Some(outbox) => outbox.push(&mut self.arrived, index, port),
                None => self.arrived.move_to(index, &mut self.own),
            };
            if !moved {
                self.forwarder.lose_one();
            }
        }
        self.arrived.clear();
        let count = self.own.len();
        if count > 0 {
            self.forwarder.process(&mut self.own, &[port; VECTOR][..count]);
        }
    }

    fn sleep(&mut self) {
        let has_room = self.forwarder.devices_have_room();
        let now = self.forwarder.now();
        let departure = self.forwarder.switch.next_departure();
        let mut timeout = departure.map_or(PATIENCE, |t| Duration::from_nanos(t.saturating_sub(now)).min(PATIENCE));
        if !has_room || self.forwarder.is_sending() || self.forwarder.is_held_back() {
            timeout = timeout.min(SOON);
        }
        if cfg!(not(target_os = "linux")) {
            // Nothing there waits for a bell and for devices at the same time.
            timeout = timeout.min(SHORT);
        }
        let ends = self.forwarder.ends.iter();
        let open = ends.filter(|e| e.is_open() && (has_room || !e.device.is_patient()));
        let devices: Vec<&dyn Device> = open.map(|e| &*e.device).collect();
        let is_due = || self.control.has_orders(self.number);
        // Short orders are done meanwhile by whoever gives them.
        let slept = HeldSwitch::unlocked(&mut self.forwarder.switch, || {
            self.sleeper.sleep(&devices, timeout, &is_due)
        });
        if slept.is_err() {
            // The next round looks at the devices anyway.
            std::thread::sleep(SOON);
        }
    }

    /// Receives nothing from devices until no worker has a packet left that it has to process.
    /// After `patience`, or once [`Control::hurry`] was called, the rates of ports are not waited
    /// for. With a patience (a change of programs) frames that wait for devices stay there; without
    /// (the end) they are sent.
    fn rest(&mut self, patience: Option<Duration>) {
        let is_end = patience.is_none();
        if !is_end {
            self.forwarder.lift_pressure();
        }
        self.forwarder.stop_generating();
        self.flush();
        self.flush_rings();
        // Whoever still has packets is one more reason for all to wait.
        let mut has_packets = self.has_packets(is_end);
        self.control
            .in_flight
            .fetch_add(usize::from(has_packets), Ordering::SeqCst);
        self.control.begin_rest();
        let started = Instant::now();
        let mut sending_since = None;
        while !self.control.is_quiet() {
            let is_busy = self.take_from_rings();
            if self.control.hurries() || patience.is_some_and(|p| started.elapsed() > p) {
                self.forwarder.drain();
            } else {
                self.forwarder.poll();
            }
            self.flush();
            self.flush_rings();
            if !is_end {
                self.forwarder.lift_pressure();
            } else if self.forwarder.is_sending() {
                self.forwarder.flush_devices();
                if sending_since.get_or_insert_with(Instant::now).elapsed() > END_PATIENCE {
                    self.forwarder.give_up();
                }
            } else {
                sending_since = None;
            }
            match (has_packets, self.has_packets(is_end)) {
                (false, true) => drop(self.control.in_flight.fetch_add(1, Ordering::SeqCst)),
                (true, false) => drop(self.control.in_flight.fetch_sub(1, Ordering::SeqCst)),
                _ => {}
            }
            has_packets = self.has_packets(is_end);
            self.count_off();
            if !is_busy && !self.control.is_quiet() {
                std::thread::sleep(SOON);
            }
        }
    }

    fn has_packets(&self, is_end: bool) -> bool {
        (is_end && self.forwarder.is_sending()) || self.forwarder.switch.queued() > 0
    }

    fn change(&mut self, (switch, lines): (Box<Switch>, Lines), spread: Spread, engine: &'static str) {
        self.rest(Some(CHANGE_PATIENCE));
        let (forwarder, now) = (&mut self.forwarder, &mut self.spread);
        let is_last = self.control.end_rest(|| {
            forwarder.change(switch, lines);
            *now = spread;
        });
        if is_last {
            let _ = self.events.send(Event::Changed(engine));
        }
    }

    fn stop(mut self) {
        // What has arrived by now; more may come all the time.
        for _ in 0..LAST_ROUNDS {
            if !self.round() {
                break;
            }
        }
        self.forwarder.settle_externs();
        self.rest(None);
        self.forwarder.flush_devices();
        let report = Box::new(self.forwarder.report(self.number));
        let _ = self.events.send(Event::Stopped(report));
    }
}
