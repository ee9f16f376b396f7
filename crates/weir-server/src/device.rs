//! [`Device`]: the state that all servers of one switch share, and the distribution of its events.
//!
//! All servers see the same programs and the same written state. The locks of a request are here;
//! docs/internals/requests.md describes them and their order. Packets, port changes and digests are
//! read from the switch once and sent to every server that listens ([`Listener`]).
//!
//! The protocols are in [`crate::p4rt`] and [`crate::bfrt`], and the order of a request's steps
//! too.

use crate::batches::BatchBudget;
use crate::calls::{CallCount, Calls};
use crate::dataplane::{Command, DataPlane, Event, Events, Gone, Inbox, LoadFailure, gather};
use crate::p4rt::program::LoadedProgram;
use crate::p4rt::read::Digests;
use crate::phases::PhasedRwLock;
use crate::ports::Ports;
use crate::refusal::Refusal;
use crate::state::{PORTS, State};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use weir_ir::Program;
use weir_switch::{Digest, Switch, Write};

/// The most digest messages that are read from a replica at a time.
const DIGESTS: usize = weir_arch::MESSAGE_CAPACITY;

/// A loaded program, the switch that runs it, and the digests that are enabled.
pub(crate) struct Pipeline {
    pub plane: Arc<dyn DataPlane>,
    pub loaded: Arc<LoadedProgram>,
    /// The digests that P4Runtime controllers receive, with their settings.
    pub digests: Arc<Digests>,
}

/// The programs of the device.
#[derive(Default)]
pub(crate) struct Pipelines {
    /// The program that processes packets.
    pub committed: Option<Pipeline>,
    /// A program that was saved and is not committed yet. Until then requests write and read it, on
    /// a switch without packets.
    pub saved: Option<Pipeline>,
}

impl Pipelines {
    /// The program that requests write and read.
    pub fn current(&self) -> Result<&Pipeline, Refusal> {
        let current = self.saved.as_ref().or(self.committed.as_ref());
        current.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }
}

/// A change of the device's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramChange {
    /// A program was saved: requests write and read it.
    Saved,
    /// A program was committed: it processes packets.
    Committed {
        /// A program had been saved before.
        was_saved: bool,
    },
}

/// A server that receives the events of a device. The methods must not block.
pub(crate) trait Listener: Send + Sync {
    /// A packet for the control plane, or a port that came up or went down.
    fn event(&self, event: &Event);
    /// Messages of the program that processes packets, with the time in ns.
    fn digests(&self, loaded: &LoadedProgram, digests: &[Digest], now_ns: u64);
    /// The programs have changed.
    fn program(&self, change: ProgramChange);
}

/// Locks a mutex and ignores poisoning: data under these locks is consistent at every instruction
/// that may panic.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A switch as its servers see it.
///
/// Servers are created [on](crate::p4rt::P4Runtime::on) it. It connects to the data plane, so that
/// a data plane has exactly one device.
pub struct Device {
    /// The switch.
    pub(crate) plane: Arc<dyn DataPlane>,
    /// Shared by Writes and Reads, exclusive for a new program. Acquired after a phase, if any.
    pub(crate) pipelines: tokio::sync::RwLock<Pipelines>,
    /// Either Writes and new programs run, or Reads of several steps.
    pub(crate) phases: PhasedRwLock,
    /// Held while the commands of one request are submitted, so that no other request's commands
    /// come in between. Acquired after `pipelines`.
    pub(crate) commands: tokio::sync::Mutex<()>,
    /// A copy of the committed program in `pipelines`: the one that processes packets. For uses
    /// that must not wait for the lock of `pipelines`, as they might for the length of a long Read.
    live: Mutex<Option<Arc<LoadedProgram>>>,
    /// A copy of [`Pipelines::current`]'s program: the saved one if there is one, else the
    /// committed one. Not to wait for `pipelines`, either.
    current: Mutex<Option<Arc<LoadedProgram>>>,
    /// The switch of the program that requests write: a separate one while a program is saved. A
    /// query of it completes after the Writes that were submitted before.
    pub(crate) written: Mutex<Arc<dyn DataPlane>>,
    /// Ports as control planes add and remove them.
    pub(crate) ports: Arc<Ports>,
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    /// Held while digests are read and sent to all servers, which keeps their order.
    polling: tokio::sync::Mutex<()>,
    events: Events,
    /// The persistent state (`weir run --state`), if any.
    pub(crate) state: Option<State>,
    /// Counts the calls of all servers.
    pub(crate) calls: Calls,
    /// The budget of large batches.
    pub(crate) batches: BatchBudget,
    /// One permit: programs are compiled one after the other.
    pub(crate) verifying: Arc<tokio::sync::Semaphore>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

impl Device {
    /// A device of a switch. `program` is the one that it runs, as the compiler made it; `None`: no
    /// program until a control plane sets one. `name` is its name in BF Runtime (`p4_name`).
    /// `packet_queue` is the number of packets that may wait for the servers.
    ///
    /// Must be called within a tokio runtime: it starts a task that ends with the data plane or the
    /// device.
    ///
    /// # Errors
    /// The program has no P4Info.
    pub fn new(
        plane: Arc<dyn DataPlane>,
        program: Option<Arc<Program>>,
        name: &str,
        packet_queue: usize,
    ) -> Result<Arc<Self>, Refusal> {
        let loaded = program
            .map(|program| LoadedProgram::running(program, name))
            .transpose()?;
        Ok(Self::of(plane, loaded, Digests::default(), packet_queue, None))
    }

    /// As [`Device::new`], with persistent state. `program` is [`crate::StateFile::program`], and
    /// the data plane already runs it with the restored state.
    ///
    /// # Errors
    /// As [`Device::new`].
    pub fn with_state(
        plane: Arc<dyn DataPlane>,
        program: Arc<Program>,
        name: &str,
        packet_queue: usize,
        state: State,
    ) -> Result<Arc<Self>, Refusal> {
        let loaded = state.loaded(program, name)?;
        let digests = state.digests();
        Ok(Self::of(plane, Some(loaded), digests, packet_queue, Some(state)))
    }

    fn of(
        plane: Arc<dyn DataPlane>,
        loaded: Option<LoadedProgram>,
        digests: Digests,
        packet_queue: usize,
        state: Option<State>,
    ) -> Arc<Self> {
        let committed = loaded.map(|loaded| Pipeline {
            plane: Arc::clone(&plane),
            loaded: Arc::new(loaded),
            digests: Arc::new(digests),
        });
        let (events, inbox) = Events::new(packet_queue);
        plane.connect(events.clone());
        let device = Arc::new(Device {
            live: Mutex::new(committed.as_ref().map(|p| Arc::clone(&p.loaded))),
            current: Mutex::new(committed.as_ref().map(|p| Arc::clone(&p.loaded))),
            written: Mutex::new(Arc::clone(&plane)),
            ports: Arc::new(Ports::new(plane.ports())),
            plane,
            pipelines: tokio::sync::RwLock::new(Pipelines { committed, saved: None }),
            listeners: Mutex::default(),
            polling: tokio::sync::Mutex::default(),
            events,
            state,
            calls: Calls::default(),
            phases: PhasedRwLock::default(),
            commands: tokio::sync::Mutex::default(),
            batches: BatchBudget::default(),
            verifying: Arc::new(tokio::sync::Semaphore::new(1)),
        });
        if let Some(settings) = device.setting(PORTS) {
            device.ports.replace(settings);
            let set = device.ports.prepare();
            // Commands run in order, so this one runs first. Its completion need not be awaited.
            drop(device.plane.submit(Arc::new(move |_, switch: &mut Switch| set(switch))));
        }
        tokio::spawn(distribute_events(Arc::downgrade(&device), inbox));
        device
    }

    /// Calls of all servers so far, by service, method and outcome.
    #[must_use]
    pub fn calls(&self) -> Vec<CallCount> {
        self.calls.counts()
    }

    /// Packets for control planes that were dropped because they came faster than servers took
    /// them.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        self.events.lost()
    }

    /// The program that processes packets.
    pub(crate) fn live(&self) -> Result<Arc<LoadedProgram>, Refusal> {
        let live = lock(&self.live).clone();
        live.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }

    /// The BF Runtime name of the program that requests write and read.
    pub(crate) fn current_name(&self) -> Option<String> {
        let current = lock(&self.current);
        let program = current.as_ref()?.bfrt.as_ref().ok()?;
        Some(program.name.clone())
    }

    /// Sends events to a server, as long as it exists.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|l| l.strong_count() > 0);
        listeners.push(listener);
    }

    fn each_listener(&self, mut notify: impl FnMut(&dyn Listener)) {
        let listeners: Vec<_> = lock(&self.listeners).iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|l| notify(&**l));
    }

    /// Reads the digests that the switch has queued and sends them to every server.
    pub(crate) async fn poll_digests(&self) -> Result<(), Gone> {
        let _guard = self.polling.lock().await;
        let Ok(loaded) = self.live() else { return Ok(()) };
        let taken = gather(&*self.plane, |_, switch: &mut Switch| {
            std::iter::from_fn(|| switch.next_digest())
                .take(DIGESTS)
                .collect::<Vec<_>>()
        });
        let taken: Vec<Digest> = taken.await?.into_iter().flatten().collect();
        if !taken.is_empty() {
            let now = self.plane.now_ns();
            self.each_listener(|l| l.digests(&loaded, &taken, now));
        }
        Ok(())
    }

    /// Loads a program into the switch; `prepare` creates its state.
    pub(crate) async fn load(
        &self,
        pipelines: &mut Pipelines,
        loaded: Arc<LoadedProgram>,
        prepare: Command,
        digests: Arc<Digests>,
    ) -> Result<(), Refusal> {
        let set_ports = self.ports.prepare();
        // Queues are of ports and not of programs: they stay as they were set.
        let queues = gather(&*self.plane, |replica, switch: &mut Switch| match replica {
            0 => switch.queue_configs().collect::<Vec<_>>(),
            _ => Vec::new(),
        });
        let queues: Vec<_> = queues.await?.into_iter().flatten().collect();
        let journal = Mutex::new(self.journal());
        let prepare: Command = Arc::new(move |replica, switch| {
            prepare(replica, switch);
            set_ports(switch);
            for (port, config) in &queues {
                // It fits any program: a port that the program cannot name has no packets.
                let _ = switch.write(Write::Queue(*port, Some(*config)));
            }
            if replica == 0 {
                switch.set_journal(lock(&journal).take());
            }
        });
        let completion = self.plane.load(Arc::clone(&loaded.program), prepare);
        completion.await.map_err(|failure| match failure {
            LoadFailure::Refused(error) => Refusal::malformed(format!("the program cannot be run: {error}")),
            LoadFailure::Unfit(message) => Refusal::malformed(message),
            LoadFailure::NoThread(error) => error.into(),
            LoadFailure::Gone(gone) => gone.into(),
        })?;
        *lock(&self.written) = Arc::clone(&self.plane);
        *lock(&self.live) = Some(Arc::clone(&loaded));
        *lock(&self.current) = Some(Arc::clone(&loaded));
        let was_saved = pipelines.saved.is_some();
        *pipelines = Pipelines {
            committed: Some(Pipeline {
                plane: Arc::clone(&self.plane),
                loaded: Arc::clone(&loaded),
                digests: Arc::clone(&digests),
            }),
            saved: None,
        };
        self.each_listener(|l| l.program(ProgramChange::Committed { was_saved }));
        self.keep_program(&loaded, &digests).await
    }

    /// Saves a program: requests write and read it on a switch without packets.
    pub(crate) fn save(&self, pipelines: &mut Pipelines, loaded: Arc<LoadedProgram>) -> Result<(), Refusal> {
        use crate::standalone::{Clock, Standalone, StandaloneError};
        let standalone =
            Standalone::with_externs(Arc::clone(&loaded.program), None, Clock::real(), self.plane.externs()).map_err(
                |error| match error {
                    StandaloneError::Refused(error) => {
                        Refusal::malformed(format!("the program cannot be run: {error}"))
                    }
                    StandaloneError::NoThread(error) => error.into(),
                },
            )?;
        let plane: Arc<dyn DataPlane> = Arc::new(standalone);
        *lock(&self.written) = Arc::clone(&plane);
        *lock(&self.current) = Some(Arc::clone(&loaded));
        pipelines.saved = Some(Pipeline {
            plane,
            loaded,
            digests: Arc::default(),
        });
        self.each_listener(|l| l.program(ProgramChange::Saved));
        Ok(())
    }
}

async fn distribute_events(device: Weak<Device>, mut inbox: Inbox) {
    while let Some(event) = inbox.next().await {
        let Some(device) = device.upgrade() else { return };
        if let Event::Port { port, up } = event {
            device.ports.link(port, up);
        }
        device.each_listener(|l| l.event(&event));
    }
}
