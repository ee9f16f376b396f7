//! A data plane without devices.

use crate::dataplane::{DataPlane, Done, Events, Gone, LoadFailure, Order};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use weir_interp::Interpreter;
use weir_ir::{Program, passes};
use weir_switch::{LoadError, Output, Switch, SwitchConfig};

/// What time it is.
#[derive(Debug, Clone)]
pub enum Clock {
    /// Real time since then.
    Real(Instant),
    /// This many ns: it goes on when somebody says so.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Real time from now on.
    #[must_use]
    pub fn real() -> Self {
        Clock::Real(Instant::now())
    }

    /// A clock that stands at 0 until it is set.
    #[must_use]
    pub fn manual() -> Self {
        Clock::Manual(Arc::default())
    }

    /// The time in ns.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        match self {
            Clock::Real(since) => u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX),
            Clock::Manual(now) => now.load(Ordering::SeqCst),
        }
    }

    /// Lets a manual clock go on by this many ns; a real one goes on by itself.
    pub fn advance(&self, ns: u64) {
        if let Clock::Manual(now) = self {
            now.fetch_add(ns, Ordering::SeqCst);
        }
    }
}

/// A switch on a thread of its own, whose packets are given and taken by calls.
///
/// It interprets its program. What is sent to the CPU port goes to the control plane, everything
/// else is given to whoever sent the packet that caused it ([`Standalone::send`]), or kept for
/// [`Standalone::take_sent`] where the control plane or a packet generator sent it.
///
/// Packet generators send by the clock: by a real one as long as there is time for that, by a
/// manual one all that is due before the next call is heeded.
#[derive(Debug)]
pub struct Standalone {
    jobs: mpsc::Sender<Job>,
    cpu_port: Option<u32>,
    clock: Clock,
    sent: Arc<Mutex<Vec<Output>>>,
}

/// Packets that wait for [`Standalone::take_sent`]; further ones are forgotten.
const MAX_SENT: usize = 4096;

/// Packets that are generated at a time by a real clock, so that calls have their turn.
const GENERATED: usize = 64;

enum Job {
    Order(Order, oneshot::Sender<()>),
    Load(Arc<Program>, Order, oneshot::Sender<Result<(), LoadError>>),
    Inject(u32, Vec<u8>),
    Receive(u32, Vec<u8>, mpsc::Sender<Vec<Output>>),
    Port(u32, bool),
    Connect(Events),
}

impl Standalone {
    /// A switch that runs a program (as the compiler made it), with this port for the control
    /// plane.
    ///
    /// # Errors
    /// The program cannot be run.
    pub fn new(program: Arc<Program>, cpu_port: Option<u32>, clock: Clock) -> Result<Self, LoadError> {
        let mut switch = load(&program)?;
        limit(&mut switch, &clock);
        let (jobs, todo) = mpsc::channel();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let runner = Runner {
            switch,
            cpu_port,
            clock: clock.clone(),
            sent: Arc::clone(&sent),
            events: None,
            ports: BTreeMap::new(),
        };
        // Ends when the last sender is gone.
        std::thread::spawn(move || runner.run(&todo));
        Ok(Standalone {
            jobs,
            cpu_port,
            clock,
            sent,
        })
    }

    /// Has a packet received at a port and gives what came of it, but for packets to the control
    /// plane.
    ///
    /// # Panics
    /// The switch's thread has panicked, which is a mistake in weir.
    #[must_use]
    pub fn send(&self, port: u32, bytes: &[u8]) -> Vec<Output> {
        let (reply, result) = mpsc::channel();
        self.tell(Job::Receive(port, bytes.to_vec(), reply));
        result.recv().expect("the switch's thread has panicked")
    }

    /// Takes what packets of the control plane and of packet generators have caused, but for
    /// packets to the control plane.
    #[must_use]
    pub fn take_sent(&self) -> Vec<Output> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A port comes up or goes down. All are up at first.
    pub fn set_port(&self, port: u32, up: bool) {
        self.tell(Job::Port(port, up));
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn tell(&self, job: Job) {
        // Nobody is there any more: whoever waits for an answer learns it from its channel.
        let _ = self.jobs.send(job);
    }
}

impl DataPlane for Standalone {
    fn replicas(&self) -> usize {
        1
    }

    fn order(&self, order: Order) -> Done<Gone> {
        let (reply, done) = oneshot::channel();
        self.tell(Job::Order(order, reply));
        Box::pin(async move { done.await.map_err(|_| Gone) })
    }

    fn load(&self, program: Arc<Program>, prepare: Order) -> Done<LoadFailure> {
        let (reply, done) = oneshot::channel();
        self.tell(Job::Load(program, prepare, reply));
        Box::pin(async move { done.await.map_err(|_| Gone)?.map_err(LoadFailure::from) })
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        self.tell(Job::Inject(port, packet));
    }

    fn cpu_port(&self) -> Option<u32> {
        self.cpu_port
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn connect(&self, events: Events) {
        self.tell(Job::Connect(events));
    }
}

/// A switch that interprets the program, without what has no effect on any packet.
pub(crate) fn load(program: &Arc<Program>) -> Result<Switch, LoadError> {
    let mut optimized = Program::clone(program);
    let observes = weir_arch::observes(&optimized);
    passes::optimize(&mut optimized, &observes);
    Switch::with_engine(Arc::new(Interpreter::new(Arc::new(optimized))), SwitchConfig::default())
}

/// By a real clock packets may be due faster than they can be made.
fn limit(switch: &mut Switch, clock: &Clock) {
    if let Clock::Real(_) = clock {
        switch.limit_generation(GENERATED);
    }
}

/// What the switch's thread has.
struct Runner {
    switch: Switch,
    cpu_port: Option<u32>,
    clock: Clock,
    sent: Arc<Mutex<Vec<Output>>>,
    events: Option<Events>,
    ports: BTreeMap<u32, bool>,
}

impl Runner {
    fn run(mut self, todo: &mpsc::Receiver<Job>) {
        loop {
            let job = self.next(todo);
            // The clock goes on even where no packet comes.
            let late = self.switch.advance(self.clock.now_ns());
            let late = self.without_control(late);
            self.keep(late);
            match job {
                Ok(job) => self.execute(job),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// The next job; none is waited for beyond the time when something is to be sent.
    fn next(&self, todo: &mpsc::Receiver<Job>) -> Result<Job, mpsc::RecvTimeoutError> {
        match (&self.clock, self.switch.next_departure()) {
            (Clock::Real(_), Some(at)) => {
                let wait = at.saturating_sub(self.clock.now_ns());
                todo.recv_timeout(Duration::from_nanos(wait))
            }
            _ => todo.recv().map_err(mpsc::RecvTimeoutError::from),
        }
    }

    fn execute(&mut self, job: Job) {
        match job {
            Job::Order(order, done) => {
                order(0, &mut self.switch);
                let _ = done.send(());
            }
            Job::Load(program, prepare, done) => {
                let _ = done.send(self.change(&program, &prepare));
            }
            Job::Inject(port, bytes) => {
                let out = self.process(port, &bytes);
                self.keep(out);
            }
            Job::Receive(port, bytes, reply) => {
                let out = self.process(port, &bytes);
                let _ = reply.send(out);
            }
            Job::Port(port, up) => {
                self.switch.set_port(port, up);
                self.ports.insert(port, up);
                if let Some(events) = &self.events {
                    events.port(port, up);
                }
            }
            Job::Connect(events) => {
                for (port, up) in &self.ports {
                    events.port(*port, *up);
                }
                self.events = Some(events);
            }
        }
    }

    fn change(&mut self, program: &Arc<Program>, prepare: &Order) -> Result<(), LoadError> {
        let mut switch = load(program)?;
        limit(&mut switch, &self.clock);
        for (port, up) in &self.ports {
            switch.set_port(*port, *up);
        }
        let _ = switch.advance(self.clock.now_ns());
        prepare(0, &mut switch);
        self.switch = switch;
        Ok(())
    }

    /// Runs a packet; gives what does not go to the control plane.
    fn process(&mut self, port: u32, bytes: &[u8]) -> Vec<Output> {
        let out = self.switch.inject(port, bytes, self.clock.now_ns());
        self.without_control(out)
    }

    /// Tells the control plane of its packets; gives the others.
    fn without_control(&self, mut out: Vec<Output>) -> Vec<Output> {
        let to_cpu = out.extract_if(.., |o| Some(o.port) == self.cpu_port);
        for output in to_cpu {
            if let Some(events) = &self.events {
                events.packet(output.bytes);
            }
        }
        out
    }

    fn keep(&mut self, out: Vec<Output>) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_SENT.saturating_sub(sent.len());
        sent.extend(out.into_iter().take(room));
    }
}
