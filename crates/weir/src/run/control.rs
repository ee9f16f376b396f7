//! How the thread that watches over a run and the workers talk: orders one way, events the other.

use super::plan::Spread;
use super::plug::NewPort;
use super::reload::Reloaded;
use super::report::Report;
use super::ring::Doorbell;
use super::setup::Program;
use crate::lines::Lines;
use parking_lot::{ArcMutexGuard, RawMutex};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use tokio::sync::oneshot;
use weir_switch::Switch;

/// A worker's switch. The worker holds it but while it sleeps.
pub type LentSwitch = Arc<parking_lot::Mutex<Box<Switch>>>;
/// A switch that is held.
pub type HeldSwitch = ArcMutexGuard<RawMutex, Box<Switch>>;

/// What a worker is told to do.
pub enum Order {
    /// Send a report.
    Report,
    /// Do this to the switch.
    Call(Arc<Call>),
    /// Process a packet of the control plane as if it had come in at a port; of so many that wait.
    Take(u32, Vec<u8>, Arc<AtomicUsize>),
    /// Go on with another program, together with all workers.
    Change {
        /// The program with its state.
        switch: Box<Switch>,
        /// Who processes packets from then on.
        spread: Spread,
        /// What runs it.
        engine: &'static str,
        /// The program's source lines, for traces.
        lines: Lines,
        /// Whoever waits for it.
        ticket: Option<Arc<Ticket>>,
    },
    /// Show packets on their way from now on, or no longer.
    Trace(bool),
    /// Own another port.
    AddPort(Box<NewPort>),
    /// Close the device of a port, and say so.
    RemovePort(u32, SyncSender<()>),
    /// Deal with what has been received, send a report and end, together with all workers.
    Stop,
    /// Fail as somebody has failed who had the switch while the worker slept.
    Fail(Box<dyn Any + Send>),
}

/// What has happened.
pub enum Event {
    /// A signal came.
    Signal(i32),
    /// A worker was asked for this.
    Report(Box<Report>),
    /// None of a worker's devices will receive anything any more.
    Ended,
    /// The program was compiled anew.
    Reloaded(Reloaded),
    /// All workers run the new program, by this engine.
    Changed(&'static str),
    /// A worker has ended.
    Stopped(Box<Report>),
    /// A worker has ended without being told to.
    Died,
    /// Somebody wants all counters as Prometheus' text.
    Metrics(oneshot::Sender<String>),
    /// Something that the user should know of, and that does not end the run.
    Trouble(String),
}

/// Something that every worker does to its switch.
pub struct Call {
    /// What.
    pub order: weir_server::Command,
    /// Whoever waits for it.
    pub ticket: Ticket,
}

/// Tells somebody when all workers have done something.
pub struct Ticket {
    open: AtomicUsize,
    done: Mutex<Option<oneshot::Sender<()>>>,
}

impl Ticket {
    /// For so many workers, and what is fulfilled by the last.
    pub fn new(workers: usize) -> (Self, oneshot::Receiver<()>) {
        let (done, waits) = oneshot::channel();
        let ticket = Ticket {
            open: AtomicUsize::new(workers),
            done: Mutex::new(Some(done)),
        };
        (ticket, waits)
    }

    /// A worker has done it.
    pub fn done(&self) {
        if self.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            let done = self.done.lock().unwrap_or_else(PoisonError::into_inner).take();
            // Nobody may wait any more.
            let _ = done.map(|d| d.send(()));
        }
    }
}

struct Mailbox {
    has_orders: AtomicBool,
    orders: Mutex<VecDeque<Order>>,
    bell: Arc<Doorbell>,
    switch: LentSwitch,
}

impl Mailbox {
    /// Does a call on this thread where the worker sleeps and nothing is to be done before it.
    /// Whether it was done.
    fn call_asleep(&self, worker: usize, call: &Call, now_ns: u64) -> bool {
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if !orders.is_empty() {
            return false;
        }
        let Some(mut switch) = self.switch.try_lock() else {
            return false;
        };
        // Whoever tells the worker more from here on wakes it, and it waits for the switch.
        drop(orders);
        // While this thread holds the switch, a sleeping worker stays asleep. One that has ended
        // does not sleep.
        if !self.bell.is_asleep() {
            return false;
        }
        let departure = switch.next_departure();
        if !switch.pass_time(now_ns) {
            return false;
        }
        let done = std::panic::catch_unwind(AssertUnwindSafe(|| (call.order)(worker, &mut switch)));
        let is_sooner = switch.next_departure() != departure;
        drop(switch);
        match done {
            Ok(()) => {
                if is_sooner {
                    // It sleeps too long now.
                    self.bell.ring();
                }
                call.ticket.done();
            }
            Err(failure) => self.tell(Order::Fail(failure)),
        }
        true
    }

    fn tell(&self, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.push_back(order);
        self.has_orders.store(true, Ordering::SeqCst);
        drop(orders);
        self.bell.ring();
    }
}

/// What all threads of a run share.
pub struct Control {
    mailboxes: Vec<Mailbox>,
    /// Held by whoever tells all workers something.
    telling: Mutex<()>,
    /// Bundles that were sent from worker to worker and whose frames have not been dealt with; and
    /// one for each worker that rests and still has packets.
    pub in_flight: Arc<AtomicUsize>,
    /// Workers that receive nothing from devices until all of them have nothing left.
    resting: AtomicUsize,
    together: Barrier,
    hurries: AtomicBool,
}

impl Control {
    /// Control of workers with these bells and switches.
    pub fn new(workers: Vec<(Arc<Doorbell>, LentSwitch)>) -> Self {
        Control {
            together: Barrier::new(workers.len()),
            mailboxes: workers
                .into_iter()
                .map(|(bell, switch)| Mailbox {
                    has_orders: AtomicBool::new(false),
                    orders: Mutex::default(),
                    bell,
                    switch,
                })
                .collect(),
            in_flight: Arc::default(),
            resting: AtomicUsize::new(0),
            hurries: AtomicBool::new(false),
            telling: Mutex::default(),
        }
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// Sends a command to each worker. All workers receive all commands in the same order:
    /// otherwise one could stop before a change for which the others then wait in vain.
    pub fn tell_all(&self, mut order: impl FnMut(usize) -> Order) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        for worker in 0..self.workers() {
            self.tell(worker, order(worker));
        }
    }

    /// Has each worker do a call that is short, at a time of the switch's clock. Those that sleep
    /// need not wake up for it: it is done when this returns.
    pub fn call_shortly(&self, call: &Arc<Call>, now_ns: u64) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        for (worker, mailbox) in self.mailboxes.iter().enumerate() {
            if !mailbox.call_asleep(worker, call, now_ns) {
                mailbox.tell(Order::Call(Arc::clone(call)));
            }
        }
    }

    /// Has all workers go on with another program, of which there is a switch for each.
    pub fn change(&self, program: Program, ticket: Option<Arc<Ticket>>) {
        let _telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner);
        for (worker, switch) in program.switches.into_iter().enumerate() {
            let order = Order::Change {
                switch: Box::new(switch),
                spread: program.spread,
                engine: program.engine,
                lines: program.lines.clone(),
                ticket: ticket.clone(),
            };
            self.tell(worker, order);
        }
    }

    /// Tells a worker what to do, where the others have no part in it.
    pub fn tell(&self, worker: usize, order: Order) {
        self.mailboxes[worker].tell(order);
    }

    /// Whether a worker has been told something.
    pub fn has_orders(&self, worker: usize) -> bool {
        self.mailboxes[worker].has_orders.load(Ordering::SeqCst)
    }

    /// The next thing that a worker has been told.
    pub fn next_order(&self, worker: usize) -> Option<Order> {
        let mailbox = &self.mailboxes[worker];
        let mut orders = mailbox.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let order = orders.pop_front();
        mailbox.has_orders.store(!orders.is_empty(), Ordering::SeqCst);
        order
    }

    /// Workers that rest do not wait for the rates of ports any more.
    pub fn hurry(&self) {
        self.hurries.store(true, Ordering::SeqCst);
    }

    /// Whether [`Control::hurry`] was called.
    pub fn hurries(&self) -> bool {
        self.hurries.load(Ordering::SeqCst)
    }

    /// A worker receives nothing from its devices from now on.
    pub fn begin_rest(&self) {
        self.resting.fetch_add(1, Ordering::SeqCst);
    }

    /// Whether all workers rest and no packet is under way. It stays so until
    /// [`Control::end_rest`].
    pub fn is_quiet(&self) -> bool {
        self.resting.load(Ordering::SeqCst) == self.workers() && self.in_flight.load(Ordering::SeqCst) == 0
    }

    /// Ends a rest once it [is quiet](Control::is_quiet): every worker runs `then` between two
    /// barriers. Returns true for one of them.
    pub fn end_rest(&self, then: impl FnOnce()) -> bool {
        self.together.wait();
        then();
        let is_last = self.resting.fetch_sub(1, Ordering::SeqCst) == 1;
        self.together.wait();
        is_last
    }
}

#[cfg(test)]
mod tests;
