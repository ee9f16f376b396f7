//! What all servers of one switch share: which programs there are, and what the switch tells.
//!
//! A program that one server loads is the program of all of them, and so is what is written.
//! Digests are taken from the switch in one place and told to every server, as are packets and
//! changes of ports.

use crate::batches::Batches;
use crate::calls::{CallCount, Calls};
use crate::dataplane::{DataPlane, Event, Events, Gone, Inbox, LoadFailure, Order, gather};
use crate::p4rt::program::Loaded;
use crate::p4rt::read::Digests;
use crate::ports::Ports;
use crate::refusal::Refusal;
use crate::state::{PORTS, State};
use crate::turns::Turns;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use weir_ir::Program;
use weir_switch::{Digest, Switch};

/// Digest messages taken from a replica at a time.
const DIGESTS: usize = weir_arch::MESSAGE_CAPACITY;

/// A program that is loaded, the switch that runs it, and what is kept for it.
pub(crate) struct Pipeline {
    pub plane: Arc<dyn DataPlane>,
    pub loaded: Arc<Loaded>,
    /// Digests that are sent to P4Runtime's controllers.
    pub digests: Arc<Digests>,
}

/// The programs of the device.
#[derive(Default)]
pub(crate) struct Pipelines {
    /// The one that processes packets.
    pub committed: Option<Pipeline>,
    /// One that was saved and not committed yet. It is what is written and read until then, on a
    /// switch without packets.
    pub saved: Option<Pipeline>,
}

impl Pipelines {
    /// The one that is written and read.
    pub fn current(&self) -> Result<&Pipeline, Refusal> {
        let current = self.saved.as_ref().or(self.committed.as_ref());
        current.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }
}

/// What has become of the device's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// One was saved: it is what is written and read.
    Saved,
    /// One processes packets.
    Committed {
        /// It, or another one in its place, was saved before.
        was_saved: bool,
    },
}

/// A server, as a device tells it what happens. None of this may wait.
pub(crate) trait Listener: Send + Sync {
    /// A packet for the control plane, or a port that came up or went down.
    fn event(&self, event: &Event);
    /// Messages of the program that processes packets, with the time in ns.
    fn digests(&self, loaded: &Loaded, digests: &[Digest], now_ns: u64);
    /// Another program is written and read from now on, or processes packets.
    fn program(&self, change: Change);
}

/// What a lock protects, whether or not somebody panicked with it: everything under these locks is
/// whole at all times.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What all servers of one switch share.
///
/// Each server is made [on](crate::p4rt::P4Runtime::on) it. It connects to the data plane, so there
/// is one per data plane.
pub struct Device {
    /// The switch.
    pub(crate) plane: Arc<dyn DataPlane>,
    /// Writes and reads share it; new programs have it alone. Taken after a turn, if one is taken.
    pub(crate) pipelines: tokio::sync::RwLock<Pipelines>,
    /// Writes and new programs have turns, and long reads, so that these show none in part.
    pub(crate) turns: Turns,
    /// Held while the orders of a Write are given, so that nobody else's come in between. Taken
    /// after `pipelines`.
    pub(crate) orders: tokio::sync::Mutex<()>,
    /// The program that processes packets, for whoever must not wait for long reads.
    live: Mutex<Option<Arc<Loaded>>>,
    /// The program that is written and read.
    current: Mutex<Option<Arc<Loaded>>>,
    /// The switch that writes go to, for whoever must wait until they are done.
    pub(crate) written: Mutex<Arc<dyn DataPlane>>,
    /// Ports as control planes add and remove them.
    pub(crate) ports: Arc<Ports>,
    listeners: Mutex<Vec<Weak<dyn Listener>>>,
    /// One taking of digests, with everybody told, before the next.
    polling: tokio::sync::Mutex<()>,
    events: Events,
    /// Where what control planes change is kept.
    pub(crate) state: Option<State>,
    /// Counts the calls of all servers.
    pub(crate) calls: Calls,
    /// The large batches that are written.
    pub(crate) batches: Batches,
    /// Whose program is made ready.
    pub(crate) verifying: Arc<tokio::sync::Semaphore>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").finish_non_exhaustive()
    }
}

impl Device {
    /// A device of a switch. `program` is what it runs, as the compiler made it; `None`: nothing
    /// that control planes may know of, until one sets a program. `name` is what BF Runtime calls
    /// it (`p4_name`). `packet_queue` packets may wait to be told to the control plane.
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
        let loaded = program.map(|program| Loaded::running(program, name)).transpose()?;
        Ok(Self::of(plane, loaded, Digests::default(), packet_queue, None))
    }

    /// A device as [`Device::new`] makes, whose state is kept. `program` is the one that the state
    /// was opened for ([`crate::StateFile::program`]), and the data plane runs it, restored.
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
        loaded: Option<Loaded>,
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
            turns: Turns::default(),
            orders: tokio::sync::Mutex::default(),
            batches: Batches::default(),
            verifying: Arc::new(tokio::sync::Semaphore::new(1)),
        });
        if let Some(settings) = device.setting(PORTS) {
            device.ports.replace(settings);
            let set = device.ports.prepare();
            // It comes before every other order, whether or not anybody waits.
            drop(device.plane.order(Arc::new(move |_, switch: &mut Switch| set(switch))));
        }
        tokio::spawn(tell(Arc::downgrade(&device), inbox));
        device
    }

    /// Calls of all servers so far, by service, method and outcome.
    #[must_use]
    pub fn calls(&self) -> Vec<CallCount> {
        self.calls.counts()
    }

    /// Packets for control planes that were lost because they came faster than they could be told.
    #[must_use]
    pub fn lost_packets(&self) -> u64 {
        self.events.lost()
    }

    /// The program that processes packets.
    pub(crate) fn live(&self) -> Result<Arc<Loaded>, Refusal> {
        let live = lock(&self.live).clone();
        live.ok_or_else(|| Refusal::precondition("no forwarding pipeline config has been set"))
    }

    /// What BF Runtime calls the program that is written and read.
    pub(crate) fn current_name(&self) -> Option<String> {
        let current = lock(&self.current);
        let program = current.as_ref()?.bfrt.as_ref().ok()?;
        Some(program.name.clone())
    }

    /// Has a server told what happens, as long as it is there.
    pub(crate) fn listen(&self, listener: Weak<dyn Listener>) {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|l| l.strong_count() > 0);
        listeners.push(listener);
    }

    fn each_listener(&self, mut tell: impl FnMut(&dyn Listener)) {
        let listeners: Vec<_> = lock(&self.listeners).iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|l| tell(&**l));
    }

    /// Takes the digests that the switch has kept and tells every server of them.
    pub(crate) async fn poll_digests(&self) -> Result<(), Gone> {
        let _turn = self.polling.lock().await;
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

    /// Has the switch run a program whose state is made by `prepare`.
    pub(crate) async fn load(
        &self,
        pipelines: &mut Pipelines,
        loaded: Arc<Loaded>,
        prepare: Order,
        digests: Arc<Digests>,
    ) -> Result<(), Refusal> {
        let set_ports = self.ports.prepare();
        let journal = Mutex::new(self.journal());
        let prepare: Order = Arc::new(move |replica, switch| {
            prepare(replica, switch);
            set_ports(switch);
            if replica == 0 {
                switch.set_journal(lock(&journal).take());
            }
        });
        let done = self.plane.load(Arc::clone(&loaded.program), prepare);
        done.await.map_err(|failure| match failure {
            LoadFailure::Refused(error) => Refusal::malformed(format!("the program cannot be run: {error}")),
            LoadFailure::Unfit(message) => Refusal::malformed(message),
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
        self.each_listener(|l| l.program(Change::Committed { was_saved }));
        self.keep_program(&loaded, &digests).await
    }

    /// From now on the program is written and read on a switch without packets.
    pub(crate) fn save(&self, pipelines: &mut Pipelines, loaded: Arc<Loaded>) -> Result<(), Refusal> {
        use crate::standalone::{Clock, Standalone};
        let standalone = Standalone::new(Arc::clone(&loaded.program), None, Clock::real())
            .map_err(|e| Refusal::malformed(format!("the program cannot be run: {e}")))?;
        let plane: Arc<dyn DataPlane> = Arc::new(standalone);
        *lock(&self.written) = Arc::clone(&plane);
        *lock(&self.current) = Some(Arc::clone(&loaded));
        pipelines.saved = Some(Pipeline {
            plane,
            loaded,
            digests: Arc::default(),
        });
        self.each_listener(|l| l.program(Change::Saved));
        Ok(())
    }
}

async fn tell(device: Weak<Device>, mut inbox: Inbox) {
    while let Some(event) = inbox.next().await {
        let Some(device) = device.upgrade() else { return };
        if let Event::Port { port, up } = event {
            device.ports.link(port, up);
        }
        device.each_listener(|l| l.event(&event));
    }
}
