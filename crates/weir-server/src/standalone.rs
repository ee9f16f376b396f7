//! [`Standalone`]: a data plane without devices, for tests and for embedding.
//!
//! One thread owns the switch and executes jobs from a channel. The program is interpreted.

use crate::dataplane::{Command, Completion, DataPlane, Events, Gone, LoadFailure};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use weir_compiler::NoThread;
use weir_extern_api::Registry;
use weir_interp::Interpreter;
use weir_ir::{Program, passes};
use weir_switch::{LoadError, Output, Switch, SwitchConfig};

/// The clock of a data plane.
#[derive(Debug, Clone)]
pub enum Clock {
    /// Real time since this instant.
    Real(Instant),
    /// This many ns; it advances by [`Clock::advance`] only.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// Real time, from 0 now.
    #[must_use]
    pub fn real() -> Self {
        Clock::Real(Instant::now())
    }

    /// A manual clock, at 0.
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

    /// Advances a manual clock by this many ns. A real clock ignores it.
    pub fn advance(&self, ns: u64) {
        if let Clock::Manual(now) = self {
            now.fetch_add(ns, Ordering::SeqCst);
        }
    }
}

/// A switch on a thread of its own, whose packets come and leave by calls.
///
/// It interprets its program. Packets to the CPU port go to the control plane. Other packets are
/// returned by the [`Standalone::send`] that caused them. If the control plane or a packet
/// generator caused them, [`Standalone::take_sent`] returns them.
///
/// Packet generators send by the clock. With a manual clock all packets that are due are sent
/// before the next job; with a real clock at most a limited number, so that jobs are not delayed.
#[derive(Debug)]
pub struct Standalone {
    jobs: mpsc::Sender<Job>,
    cpu_port: Option<u32>,
    clock: Clock,
    sent: Arc<Mutex<Vec<Output>>>,
    externs: Registry,
}

/// The most packets that wait for [`Standalone::take_sent`]; further ones are dropped.
const MAX_SENT: usize = 4096;

/// The most packets generated between two jobs with a real clock.
const GENERATED: usize = 64;

enum Job {
    Command(Command, oneshot::Sender<()>),
    Load(Arc<Program>, Command, oneshot::Sender<Result<(), LoadError>>),
    Inject(u32, Vec<u8>),
    Receive(u32, Vec<u8>, mpsc::Sender<Vec<Output>>),
    Port(u32, bool),
    Connect(Events),
}

/// Why there is no [`Standalone`].
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    /// The program cannot be run.
    #[error(transparent)]
    Refused(#[from] LoadError),
    /// The system starts no thread for it.
    #[error(transparent)]
    NoThread(#[from] NoThread),
}

impl Standalone {
    /// A switch that runs a program, as the compiler made it. `cpu_port` is the control plane's
    /// port.
    ///
    /// # Errors
    /// The program cannot be run, or the system starts no thread for it.
    pub fn new(program: Arc<Program>, cpu_port: Option<u32>, clock: Clock) -> Result<Self, StandaloneError> {
        Self::with_externs(program, cpu_port, clock, Registry::default())
    }

    /// As [`Standalone::new`], for programs that may call these externs, besides those of their
    /// architecture.
    ///
    /// # Errors
    /// As of [`Standalone::new`].
    pub fn with_externs(
        program: Arc<Program>,
        cpu_port: Option<u32>,
        clock: Clock,
        externs: Registry,
    ) -> Result<Self, StandaloneError> {
        let mut switch = load(&program, &externs)?;
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
            externs: externs.clone(),
        };
        // Ends when the last sender is gone.
        let thread = std::thread::Builder::new().name("standalone".to_owned());
        let started = thread.spawn(move || runner.run(&todo));
        started.map_err(|error| NoThread::new("a switch without devices", &error))?;
        Ok(Standalone {
            jobs,
            cpu_port,
            clock,
            sent,
            externs,
        })
    }

    /// Receives a packet at a port and returns the packets that it caused, without those to the
    /// control plane.
    ///
    /// # Panics
    /// The switch's thread has panicked, which is a bug in weir.
    #[must_use]
    pub fn send(&self, port: u32, bytes: &[u8]) -> Vec<Output> {
        let (reply, result) = mpsc::channel();
        self.enqueue(Job::Receive(port, bytes.to_vec(), reply));
        result.recv().expect("the switch's thread has panicked")
    }

    /// Takes the packets that were caused by the control plane and by packet generators, without
    /// those to the control plane.
    #[must_use]
    pub fn take_sent(&self) -> Vec<Output> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets a port up or down. All are up at first.
    pub fn set_port(&self, port: u32, up: bool) {
        self.enqueue(Job::Port(port, up));
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    fn enqueue(&self, job: Job) {
        // If the thread has ended, the job's reply channel is closed, which its caller notices.
        let _ = self.jobs.send(job);
    }
}

impl DataPlane for Standalone {
    fn replicas(&self) -> usize {
        1
    }

    fn submit(&self, command: Command) -> Completion<Gone> {
        let (reply, done) = oneshot::channel();
        self.enqueue(Job::Command(command, reply));
        Box::pin(async move { done.await.map_err(|_| Gone) })
    }

    fn load(&self, program: Arc<Program>, prepare: Command) -> Completion<LoadFailure> {
        let (reply, done) = oneshot::channel();
        self.enqueue(Job::Load(program, prepare, reply));
        Box::pin(async move { done.await.map_err(|_| Gone)?.map_err(LoadFailure::from) })
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        self.enqueue(Job::Inject(port, packet));
    }

    fn externs(&self) -> Registry {
        self.externs.clone()
    }

    fn cpu_port(&self) -> Option<u32> {
        self.cpu_port
    }

    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn connect(&self, events: Events) {
        self.enqueue(Job::Connect(events));
    }
}

/// A switch that interprets the program, after optimisation.
pub(crate) fn load(program: &Arc<Program>, externs: &Registry) -> Result<Switch, LoadError> {
    let mut optimized = Program::clone(program);
    let observes = weir_arch::observes(&optimized);
    passes::optimize(&mut optimized, &observes);
    let config = SwitchConfig {
        externs: externs.clone(),
        ..SwitchConfig::default()
    };
    Switch::with_engine(Arc::new(Interpreter::new(Arc::new(optimized))), config)
}

/// With a real clock packets may become due faster than they can be generated.
fn limit(switch: &mut Switch, clock: &Clock) {
    if let Clock::Real(_) = clock {
        switch.limit_generation(GENERATED);
    }
}

/// The state of the switch's thread.
struct Runner {
    switch: Switch,
    cpu_port: Option<u32>,
    clock: Clock,
    sent: Arc<Mutex<Vec<Output>>>,
    events: Option<Events>,
    ports: BTreeMap<u32, bool>,
    externs: Registry,
}

impl Runner {
    fn run(mut self, todo: &mpsc::Receiver<Job>) {
        loop {
            let job = self.next(todo);
            // Queued and generated packets leave by the clock, even if no packet arrives.
            let due = self.switch.advance(self.clock.now_ns());
            let due = self.split_off_control(due);
            self.keep(due);
            match job {
                Ok(job) => self.execute(job),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Waits for the next job, at most until a packet is due.
    fn next(&self, todo: &mpsc::Receiver<Job>) -> Result<Job, mpsc::RecvTimeoutError> {
        match (&self.clock, self.switch.next_departure()) {
            (Clock::Real(_), Some(departure)) => {
                let wait = departure.saturating_sub(self.clock.now_ns());
                todo.recv_timeout(Duration::from_nanos(wait))
            }
            _ => todo.recv().map_err(mpsc::RecvTimeoutError::from),
        }
    }

    fn execute(&mut self, job: Job) {
        match job {
            Job::Command(command, done) => {
                command(0, &mut self.switch);
                let _ = done.send(());
            }
            Job::Load(program, prepare, done) => {
                let _ = done.send(self.replace_program(&program, &prepare));
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

    fn replace_program(&mut self, program: &Arc<Program>, prepare: &Command) -> Result<(), LoadError> {
        let mut switch = load(program, &self.externs)?;
        limit(&mut switch, &self.clock);
        for (port, up) in &self.ports {
            switch.set_port(*port, *up);
        }
        let _ = switch.advance(self.clock.now_ns());
        prepare(0, &mut switch);
        self.switch = switch;
        Ok(())
    }

    /// Processes a packet; returns the packets that do not go to the control plane.
    fn process(&mut self, port: u32, bytes: &[u8]) -> Vec<Output> {
        let out = self.switch.inject(port, bytes, self.clock.now_ns());
        self.split_off_control(out)
    }

    /// Sends the control plane its packets; returns the others.
    fn split_off_control(&self, mut out: Vec<Output>) -> Vec<Output> {
        let to_cpu = out.extract_if(.., |o| Some(o.port) == self.cpu_port);
        for output in to_cpu {
            if let Some(events) = &self.events {
                events.packet(output.bytes);
            }
        }
        out
    }

    /// Keeps packets for [`Standalone::take_sent`].
    fn keep(&mut self, out: Vec<Output>) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let room = MAX_SENT.saturating_sub(sent.len());
        sent.extend(out.into_iter().take(room));
    }
}
