//! The running workers as a control plane sees them: orders to all of them, new programs, packets
//! in and out.

use super::control::{Call, Control, Order, Ticket};
use super::plug::Plugger;
use super::setup;
use crate::cli::{Run, causes};
use crate::output::Messages;
use anyhow::anyhow;
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;
use weir_compiler::NoThread;
use weir_extern_api::Registry;
use weir_io::PortSpec;
use weir_ir::Program;
use weir_server::{Completion, DataPlane, Events, Gone, Length, LoadFailure, PortInfo};
use weir_switch::LoadError;

/// Packets of the control plane that wait for a worker; further ones are lost, and counted.
const MAX_INJECTED: usize = 4096;

/// The port of the control plane, as workers see it.
#[derive(Debug)]
pub struct CpuPort {
    /// Its number, if it has one.
    pub port: Option<u32>,
    events: Mutex<Option<Events>>,
    lost: AtomicU64,
}

impl CpuPort {
    /// A port that nobody listens at yet.
    pub fn new(port: Option<u32>) -> Self {
        CpuPort {
            port,
            events: Mutex::default(),
            lost: AtomicU64::new(0),
        }
    }

    /// A packet for it. Whether there is room for it on the way to the control plane.
    pub fn packet(&self, bytes: &[u8]) -> bool {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.as_ref().is_some_and(|e| e.packet(bytes.to_vec()))
    }

    /// Packets of the control plane that were lost because too many waited.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// What cannot be given to the workers yet, because a program before it is being made.
enum Job {
    Order(Arc<Call>, Length),
    Load(Load),
    Inject(u32, Vec<u8>),
}

/// A program to be made.
struct Load {
    program: Arc<Program>,
    prepare: weir_server::Command,
    /// Gets what is fulfilled when all workers run it.
    reply: oneshot::Sender<Result<oneshot::Receiver<()>, LoadFailure>>,
}

/// The way to the workers.
struct Line {
    control: Arc<Control>,
    arguments: Run,
    specs: Mutex<Vec<PortSpec>>,
    plugger: Plugger,
    /// What waits for a program that is being made; `None`: none is.
    waiting: Mutex<Option<VecDeque<Job>>>,
    injected: Arc<AtomicUsize>,
    started: Instant,
    messages: Messages,
}

impl Line {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The workers of `weir run`.
pub struct Live {
    line: Arc<Line>,
    cpu: Arc<CpuPort>,
}

impl Live {
    /// Workers that were started with these arguments and ports, and whose clock began at
    /// `started`.
    pub fn new(
        control: Arc<Control>,
        arguments: Run,
        specs: Vec<PortSpec>,
        (cpu, plugger): (Arc<CpuPort>, Plugger),
        started: Instant,
        messages: &Messages,
    ) -> Self {
        Live {
            line: Arc::new(Line {
                control,
                arguments,
                specs: Mutex::new(specs),
                plugger,
                waiting: Mutex::default(),
                injected: Arc::default(),
                started,
                messages: messages.clone(),
            }),
            cpu,
        }
    }

    fn give(&self, order: weir_server::Command, length: Length) -> Completion<Gone> {
        let (ticket, done) = Ticket::new(self.replicas());
        self.line.give(Job::Order(Arc::new(Call { order, ticket }), length));
        Box::pin(async move { done.await.map_err(|_| Gone) })
    }
}

impl DataPlane for Live {
    fn replicas(&self) -> usize {
        self.line.control.workers()
    }

    fn submit_short(&self, order: weir_server::Command) -> Completion<Gone> {
        self.give(order, Length::Short)
    }

    fn submit(&self, order: weir_server::Command) -> Completion<Gone> {
        self.give(order, Length::Any)
    }

    fn load(&self, program: Arc<Program>, prepare: weir_server::Command) -> Completion<LoadFailure> {
        let (reply, done) = oneshot::channel();
        self.line.give(Job::Load(Load {
            program,
            prepare,
            reply,
        }));
        Box::pin(async move {
            let changed = done.await.map_err(|_| Gone)??;
            changed.await.map_err(|_| Gone.into())
        })
    }

    fn inject(&self, port: u32, packet: Vec<u8>) {
        if self.line.injected.fetch_add(1, Ordering::Relaxed) >= MAX_INJECTED {
            self.line.injected.fetch_sub(1, Ordering::Relaxed);
            self.cpu.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.line.give(Job::Inject(port, packet));
    }

    fn externs(&self) -> Registry {
        self.line.arguments.source.front_end.externs.clone()
    }

    fn cpu_port(&self) -> Option<u32> {
        self.cpu.port
    }

    fn now_ns(&self) -> u64 {
        self.line.now_ns()
    }

    fn ports(&self) -> Vec<PortInfo> {
        let port = |spec: &PortSpec| PortInfo {
            port: spec.port,
            device: spec.device.to_string(),
        };
        self.line.specs().iter().map(port).collect()
    }

    fn add_port(&self, port: u32, device: &str) -> Result<(), String> {
        let line = &self.line;
        let mut specs = line.specs();
        let added = line
            .plugger
            .add((port, device), &specs, &line.control, &line.arguments, &line.messages);
        specs.push(added.map_err(|error| causes(&error))?);
        drop(specs);
        self.link(port, true);
        Ok(())
    }

    fn remove_port(&self, port: u32) -> Result<(), String> {
        let line = &self.line;
        let mut specs = line.specs();
        let removed = line.plugger.remove(port, &specs, &line.control, &line.messages);
        removed.map_err(|error| causes(&error))?;
        specs.retain(|spec| spec.port != port);
        drop(specs);
        self.link(port, false);
        Ok(())
    }

    fn connect(&self, events: Events) {
        for spec in self.line.specs().iter() {
            events.port(spec.port, true);
        }
        *self.cpu.events.lock().unwrap_or_else(PoisonError::into_inner) = Some(events);
    }
}

impl Live {
    /// Reports a link to the servers.
    fn link(&self, port: u32, up: bool) {
        let events = self.cpu.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(events) = &*events {
            events.port(port, up);
        }
    }
}

impl Line {
    fn specs(&self) -> MutexGuard<'_, Vec<PortSpec>> {
        self.specs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<VecDeque<Job>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does a job, or leaves it to whoever makes a program now.
    fn give(self: &Arc<Self>, job: Job) {
        let mut waiting = self.lock();
        match &mut *waiting {
            Some(jobs) => jobs.push_back(job),
            None => self.start(job, &mut waiting),
        }
    }

    /// Does a job; from now on others wait if it is to make a program.
    fn start(self: &Arc<Self>, job: Job, waiting: &mut Option<VecDeque<Job>>) {
        match job {
            Job::Order(call, Length::Any) => self.control.tell_all(|_| Order::Call(Arc::clone(&call))),
            Job::Order(call, Length::Short) => self.control.call_shortly(&call, self.now_ns()),
            Job::Inject(port, packet) => {
                let order = Order::Take(port, packet, Arc::clone(&self.injected));
                self.control.tell(0, order);
            }
            Job::Load(load) => {
                let (sender, loads) = std::sync::mpsc::sync_channel(1);
                let this = Arc::clone(self);
                // Ends with the program; compiling takes up to a second.
                let thread = std::thread::Builder::new().name("program".to_owned());
                let started = thread.spawn(move || loads.recv().map(|load| this.make(load)));
                match started {
                    Ok(_) => {
                        *waiting = Some(VecDeque::new());
                        // The thread waits for it.
                        let _ = sender.send(load);
                    }
                    Err(error) => {
                        let failure = NoThread::new("making the program", &error);
                        let _ = load.reply.send(Err(failure.into()));
                    }
                }
            }
        }
    }

    /// Makes a program, has the workers go on with it, and does what has waited.
    fn make(
        self: &Arc<Self>,
        Load {
            program,
            prepare,
            reply,
        }: Load,
    ) {
        let make = || {
            let mut program = setup::switches(
                &self.arguments,
                program,
                &self.specs().clone(),
                setup::Start::Fresh,
                &self.messages,
            )?;
            for (replica, switch) in program.switches.iter_mut().enumerate() {
                prepare(replica, switch);
            }
            Ok(program)
        };
        // Orders wait for this: whatever happens, they must not do so for ever.
        let made = std::panic::catch_unwind(AssertUnwindSafe(make));
        let made = made.unwrap_or_else(|_| {
            Err(anyhow!(
                "making it failed, which is a mistake in weir: please report it"
            ))
        });
        let mut waiting = self.lock();
        match made {
            Err(error) => {
                let failure = match error.downcast::<LoadError>() {
                    Ok(error) => LoadFailure::Refused(error),
                    Err(error) => LoadFailure::Unfit(causes(&error)),
                };
                let _ = reply.send(Err(failure));
            }
            Ok(program) => {
                let (ticket, done) = Ticket::new(program.switches.len());
                self.control.change(program, Some(Arc::new(ticket)));
                let _ = reply.send(Ok(done));
            }
        }
        let mut jobs = waiting.take().unwrap_or_default();
        while let Some(job) = jobs.pop_front() {
            self.start(job, &mut waiting);
            if let Some(later) = &mut *waiting {
                later.append(&mut jobs);
                return;
            }
        }
    }
}
