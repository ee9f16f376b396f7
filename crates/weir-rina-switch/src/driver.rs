//! The connection to a switch, in a thread of its own.

use crate::entries::Tables;
use crate::error::SwitchError;
use crate::pace::{Pace, RETRY};
use crate::plan::{Entries, Forwarding};
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use weir_client::batch::Atomicity;
use weir_client::{Batch, Client, Code, Error, Options, Overflow, PacketIn, Standing, Subscription, Value};

/// Packets between the threads, in each direction.
const QUEUE: usize = 4096;

/// How long a switch keeps the routes that it has when a control plane starts, while that knows
/// fewer.
pub const GRACE: Duration = Duration::from_secs(5);

/// News from the switch.
#[derive(Debug)]
pub enum FromSwitch {
    /// A packet for the control plane.
    Packet {
        /// Port of arrival.
        port: u32,
        /// The frame.
        frame: Vec<u8>,
    },
    /// The entries are those that were last set.
    Written {
        /// Updates that were necessary.
        updates: usize,
        /// The time for them.
        time: Duration,
        /// All entries had to be read: the connection is new, or a write had failed.
        is_resynchronised: bool,
    },
    /// The connection is lost, or the switch refuses; another attempt follows. A reason that
    /// repeats is reported once until a write succeeds.
    Failed(String),
}

/// A connection to a switch. It ends when this is dropped.
#[derive(Debug)]
pub struct Driver {
    packets: mpsc::Sender<(u32, Vec<u8>)>,
    forwarding: watch::Sender<Forwarding>,
    news: Receiver<FromSwitch>,
    dropped: Arc<AtomicU64>,
}

impl Driver {
    /// Starts a thread that connects by P4Runtime, and tries again until it works. A byte is
    /// written to `wake` with news; it should not block. For the time of `grace` the switch keeps
    /// routes that it has while `forwarding` has fewer: see [`GRACE`].
    ///
    /// # Errors
    /// There is no thread.
    pub fn start(options: Options, wake: UnixStream, grace: Duration) -> io::Result<Self> {
        let options = options.reconnect(Some(RETRY));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (packets, outgoing) = mpsc::channel(QUEUE);
        let (forwarding, desired) = watch::channel(Forwarding::default());
        let (sender, news) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let owner = Owner {
            sender,
            wake,
            dropped: Arc::clone(&dropped),
            failure: None,
        };
        let pace = Pace::new(grace);
        let run = move || runtime.block_on(run(options, outgoing, desired, owner, pace));
        std::thread::Builder::new().name("switch".to_owned()).spawn(run)?;
        Ok(Driver {
            packets,
            forwarding,
            news,
            dropped,
        })
    }

    /// Sends a frame out of a port. It is dropped and counted where too many wait.
    pub fn send(&self, port: u32, frame: Vec<u8>) {
        if self.packets.try_send((port, frame)).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sets what the switch has to know; the difference is written.
    pub fn set(&self, forwarding: Forwarding) {
        let _ = self.forwarding.send_if_modified(|known| {
            let is_new = *known != forwarding;
            *known = forwarding;
            is_new
        });
    }

    /// News, if there are any.
    pub fn next(&self) -> Option<FromSwitch> {
        self.news.try_recv().ok()
    }

    /// Frames that were dropped between the threads.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// The path to the owner of a [`Driver`].
struct Owner {
    sender: SyncSender<FromSwitch>,
    wake: UnixStream,
    dropped: Arc<AtomicU64>,
    /// The failure that was last reported.
    failure: Option<String>,
}

impl Owner {
    /// Reports a failure, unless it is the same again.
    fn report_failure(&mut self, reason: &str) {
        if self.failure.as_deref() != Some(reason) {
            self.failure = Some(reason.to_owned());
            self.report(FromSwitch::Failed(reason.to_owned()));
        }
    }

    fn report(&mut self, news: FromSwitch) {
        if self.sender.try_send(news).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        // A full pipe wakes the owner, too.
        let _ = self.wake.write(&[0]);
    }
}

/// Connects until it works, then serves until the owner is gone.
async fn run(
    options: Options,
    mut outgoing: mpsc::Receiver<(u32, Vec<u8>)>,
    mut desired: watch::Receiver<Forwarding>,
    mut owner: Owner,
    pace: Pace,
) {
    let client = loop {
        let Some(connected) = unless_gone(Client::connect(options.clone()), &mut outgoing).await else {
            return;
        };
        match connected {
            Ok(client) => break client,
            Err(error) => owner.report_failure(&error.to_string()),
        }
        if unless_gone(tokio::time::sleep(RETRY), &mut outgoing).await.is_none() {
            return;
        }
    };
    let mut standings = client.standings();
    standings.mark_changed();
    let mut session = Session {
        packets: client.packets(QUEUE, Overflow::Count),
        client,
        tables: None,
        known: None,
        pace,
        atomicity: Atomicity::DataplaneAtomic,
    };
    loop {
        // Only a primary writes: any other waits for a change of its standing.
        let is_primary = session.client.standing() == Standing::Primary;
        let due = session.pace.due().filter(|_| is_primary);
        tokio::select! {
            packet = session.packets.next() => match packet {
                Some(packet) => forward(packet, &mut owner),
                None => return,
            },
            frame = outgoing.recv() => match frame {
                Some((port, frame)) => session.send(port, frame, &mut owner).await,
                None => return session.client.close().await,
            },
            changed = desired.changed() => match changed {
                Ok(()) => {
                    let forwarding = desired.borrow_and_update().clone();
                    session.write(&forwarding, &mut owner).await;
                }
                Err(_) => return session.client.close().await,
            },
            _ = standings.changed() => {
                let standing = standings.borrow_and_update().clone();
                let forwarding = desired.borrow().clone();
                session.standing(&standing, &forwarding, &mut owner).await;
            }
            () = sleep_until(due) => {
                let forwarding = desired.borrow().clone();
                session.write(&forwarding, &mut owner).await;
            }
        }
    }
}

/// The result of a future; `None` once the owner is gone. Packets before there is a connection are
/// dropped, and do not disturb it.
async fn unless_gone<T>(future: impl Future<Output = T>, outgoing: &mut mpsc::Receiver<(u32, Vec<u8>)>) -> Option<T> {
    tokio::pin!(future);
    loop {
        tokio::select! {
            result = &mut future => return Some(result),
            packet = outgoing.recv() => {
                packet?;
            }
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

fn forward(packet: PacketIn, owner: &mut Owner) {
    let port = packet.metadata.iter().find(|(name, _)| name == "ingress_port");
    match port.and_then(|(_, value)| u32::try_from(value.as_u64()?).ok()) {
        Some(port) => owner.report(FromSwitch::Packet {
            port,
            frame: packet.payload,
        }),
        None => owner.report_failure("a packet-in header without `ingress_port`: the switch runs another program"),
    }
}

/// A connection.
struct Session {
    client: Client,
    packets: Subscription<PacketIn>,
    tables: Option<Tables>,
    /// The entries of the switch; `None`: they have to be read.
    known: Option<Entries>,
    pace: Pace,
    /// Atomic, unless the switch has no such batches.
    atomicity: Atomicity,
}

impl Session {
    async fn send(&self, port: u32, frame: Vec<u8>, owner: &mut Owner) {
        let header = [("egress_port", Value::from(port))];
        if self.client.packet_out(frame, &header).await.is_err() {
            owner.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    async fn standing(&mut self, standing: &Standing, forwarding: &Forwarding, owner: &mut Owner) {
        match standing {
            // Another controller may have changed anything in between, even the program.
            Standing::Primary => {
                (self.tables, self.known) = (None, None);
                self.pace.primary(Instant::now());
                self.write(forwarding, owner).await;
            }
            Standing::Lost(reason) => owner.report_failure(reason),
            Standing::Backup(_) => {
                owner.report_failure("another controller is primary: expected the highest election id");
            }
            Standing::Connecting | Standing::Observer => {}
        }
    }

    /// Writes the difference between what is there and what has to be.
    async fn write(&mut self, forwarding: &Forwarding, owner: &mut Owner) {
        if self.client.standing() != Standing::Primary {
            return;
        }
        let start = Instant::now();
        self.pace.attempt(start);
        let is_resynchronised = self.known.is_none() || self.pace.is_grace();
        match self.try_write(forwarding).await {
            Ok(None) => self.pace.succeeded(),
            Ok(Some(updates)) => {
                self.pace.succeeded();
                owner.failure = None;
                owner.report(FromSwitch::Written {
                    updates,
                    time: start.elapsed(),
                    is_resynchronised,
                });
            }
            Err(error) => {
                // Some of the updates may be done: all is read again.
                self.known = None;
                self.pace.failed(Instant::now());
                owner.report_failure(&error.to_string());
            }
        }
    }

    /// The number of updates; `None`: nothing is written yet.
    async fn try_write(&mut self, forwarding: &Forwarding) -> Result<Option<usize>, SwitchError> {
        let tables = match self.tables.take() {
            Some(tables) => tables,
            None => {
                self.client.refresh().await?;
                Tables::of(&self.client)?
            }
        };
        let known = match self.known.take() {
            Some(known) => known,
            None => tables.read(&self.client).await?,
        };
        if self.pace.is_grace() && known.has_more_routes(forwarding) {
            // The control plane has restarted, and does not know the network yet: the switch
            // forwards by what it has.
            (self.tables, self.known) = (Some(tables), Some(known));
            return Ok(None);
        }
        self.pace.end_grace();
        let to = known.towards(forwarding)?;
        let updates = known.updates(&to);
        if !updates.is_empty() {
            let mut batch = Batch::new(&self.client.schema());
            for update in &updates {
                tables.push(&mut batch, update)?;
            }
            self.write_batch(batch).await?;
        }
        (self.tables, self.known) = (Some(tables), Some(to));
        Ok(Some(updates.len()))
    }

    async fn write_batch(&mut self, batch: Batch) -> Result<(), SwitchError> {
        let written = self.client.write(&batch.clone().atomicity(self.atomicity)).await;
        match written {
            // bmv2's servers have no atomic batches.
            Err(Error::Rpc { code, .. }) if code == Code::Unimplemented && self.atomicity != Atomicity::Continue => {
                self.atomicity = Atomicity::Continue;
                Ok(self.client.write(&batch.atomicity(self.atomicity)).await?)
            }
            written => Ok(written?),
        }
    }
}
