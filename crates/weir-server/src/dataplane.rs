//! [`DataPlane`]: the interface through which servers command a running switch.
//!
//! Commands change or query every replica. [`gather`] and its variants collect a result per
//! replica. [`Cost`] and [`Chunking`] split the changes of a batch into commands that delay packets
//! little. [`Events`] brings packets and port changes from the switch to the servers.
//!
//! This module runs no switch: [`crate::Standalone`] and `weir run` implement the trait.

use crate::refusal::Refusal;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};
use weir_compiler::NoThread;
use weir_extern_api::Registry;
use weir_ir::{KeyMatch, Program};
use weir_switch::{LoadError, Switch};

/// A command: called once for every replica of the switch, with the replica's number.
pub type Command = Arc<dyn Fn(usize, &mut Switch) + Send + Sync>;

/// Completes when every replica has executed a command.
pub type Completion<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// The data plane has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the switch is not running any more")]
pub struct Gone;

/// A program was not loaded; the previous program keeps running.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// The data plane cannot run it.
    #[error(transparent)]
    Refused(#[from] LoadError),
    /// It does not fit what the data plane was started with, such as its ports.
    #[error("{0}")]
    Unfit(String),
    /// The system starts no thread on which it is made ready.
    #[error(transparent)]
    NoThread(#[from] NoThread),
    /// The data plane has ended.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// A port and what carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Its number.
    pub port: u32,
    /// Its device, for people.
    pub device: String,
}

/// A switch that runs, as a control plane sees it.
///
/// It may consist of several replicas, one per thread. All execute the same commands in the same
/// order, so that every command finds equal tables and groups on all of them. Counters are the sum
/// over all replicas. State that packets leave for other packets (registers, meters) exists on
/// replica 0 only, which then processes all packets.
///
/// Calls return at once. Commands, programs and packets are processed in the order of the calls,
/// even if the returned future is dropped. A replica executes a command between two packet vectors:
/// a vector sees all of it or nothing.
pub trait DataPlane: Send + Sync + 'static {
    /// How many replicas there are, at least 1. It never changes.
    fn replicas(&self) -> usize;

    /// Submits a command to every replica. Completes once all have executed it; the command is
    /// executed even if the future is dropped.
    fn submit(&self, command: Command) -> Completion<Gone>;

    /// As [`DataPlane::submit`], for a command that takes well under a millisecond. A sleeping
    /// replica may be lent to the caller's thread, which saves a wake-up; the command may then have
    /// been executed when this returns.
    fn submit_short(&self, command: Command) -> Completion<Gone> {
        self.submit(command)
    }

    /// Replaces the program. Every replica starts with fresh state, and `prepare` is executed on it
    /// before its first packet. `program` is as the compiler made it; the data plane optimises it
    /// for its engine.
    ///
    /// Numbers of ports, their rates and whether they are up stay as they are.
    fn load(&self, program: Arc<Program>, prepare: Command) -> Completion<LoadFailure>;

    /// Injects a packet as if a device had received it at a port. It is dropped where packets
    /// arrive faster than they are processed; the implementation counts dropped packets.
    fn inject(&self, port: u32, packet: Vec<u8>);

    /// The externs that its programs may call besides those of their architecture.
    fn externs(&self) -> Registry {
        Registry::default()
    }

    /// The port of the control plane, if there is one.
    fn cpu_port(&self) -> Option<u32>;

    /// The switch's clock in ns.
    fn now_ns(&self) -> u64;

    /// Sends packets and port changes to `events` from now on, instead of to earlier ones.
    fn connect(&self, events: Events);

    /// The existing ports; empty: every number is a port.
    fn ports(&self) -> Vec<PortInfo> {
        Vec::new()
    }

    /// Connects a device to a port, which must be new, while packets are forwarded. May block for
    /// as long as opening a device takes.
    ///
    /// # Errors
    /// Why not, for people.
    fn add_port(&self, port: u32, _device: &str) -> Result<(), String> {
        Err(format!(
            "port {port} cannot be added: this switch has the ports that it was made with"
        ))
    }

    /// Disconnects the device of a port while packets are forwarded.
    ///
    /// # Errors
    /// Why not, for people.
    fn remove_port(&self, port: u32) -> Result<(), String> {
        Err(format!(
            "port {port} cannot be removed: this switch has the ports that it was made with"
        ))
    }
}

/// Executes `f` on every replica and collects the results by replica number.
///
/// The command is submitted before this returns; the future waits for the results.
pub fn gather<T, F>(plane: &dyn DataPlane, f: F) -> impl Future<Output = Result<Vec<T>, Gone>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Fn(usize, &mut Switch) -> T + Send + Sync + 'static,
{
    gather_by(plane, Length::Any, f)
}

/// How long a command takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Well under a millisecond: it is submitted by [`DataPlane::submit_short`].
    Short,
    /// Any time.
    Any,
}

/// The cost of a change on a replica. The unit is a plain entry: one without mask, range or list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// One entry that is found by its key: less than a microsecond.
    Entry,
    /// One entry of a table with masks or ranges: some 10 µs if every entry has another mask, more
    /// if many share mask and value and differ in their ranges.
    Ranked,
    /// A list of this many parts, each of which costs about as much as an entry: replicas of a
    /// multicast group, members of a selector group.
    Parts(usize),
    /// A list that replaces another one, whose length only the switch knows. In atomic batches the
    /// switch counts that one ([`weir_switch::Transaction::bound`]).
    Replacement(usize),
    /// Unknown: it excludes the short path and counts as one entry.
    Unbounded,
}

impl Cost {
    /// The most changes in a short command: some 20 µs.
    const MAX_SHORT: usize = 32;

    /// Plain entries changed between two packet vectors, in non-atomic batches: some 0.2 ms.
    const STEP: usize = 256;

    /// Plain entries as which an entry with masks counts in an atomic batch. There the worst case
    /// matters, not the usual one.
    const RANKED_WORST_CASE: usize = 64;

    /// The cost of a list that is new, or that replaces, changes or removes an existing one.
    pub fn list(length: usize, is_new: bool) -> Cost {
        match is_new {
            true => Cost::Parts(length),
            false => Cost::Replacement(length),
        }
    }

    /// The cost of an entry without priority, by its key.
    pub fn entry(matches: &[KeyMatch]) -> Cost {
        // DIR-24-8: tables of up to 32 key bits have a slot per value of the first 24 bits (or of
        // all bits). A prefix of at most 8 bits is not stored in slots; longer keys have none.
        let slots = match matches {
            [KeyMatch::Lpm { value, prefix_length }] if value.width() <= 32 => {
                let bits = value.width().min(24);
                1_usize << (bits - (*prefix_length).max(9).min(bits))
            }
            _ => 1,
        };
        match slots / Self::SLOTS_PER_ENTRY {
            0 => Cost::Entry,
            parts => Cost::Parts(parts),
        }
    }

    /// This cost and that of `parts` more.
    pub fn plus(self, parts: usize) -> Cost {
        match parts {
            0 => self,
            _ => Cost::Parts(self.worst_case().saturating_add(parts)),
        }
    }

    /// Slots that take as long to write as an entry.
    const SLOTS_PER_ENTRY: usize = 512;

    /// The share of a step, in plain entries. A replaced list may take some milliseconds to free:
    /// it fills a step.
    fn step_cost(self) -> usize {
        match self {
            Cost::Ranked => 16,
            Cost::Replacement(_) => Cost::STEP,
            other => other.worst_case().min(Cost::STEP),
        }
    }

    /// The worst case, in plain entries.
    fn worst_case(self) -> usize {
        match self {
            Cost::Entry | Cost::Unbounded => 1,
            Cost::Ranked => Cost::RANKED_WORST_CASE,
            Cost::Parts(count) | Cost::Replacement(count) => count.max(1),
        }
    }
}

/// How the changes of a batch are split into commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chunking {
    /// The length of each command.
    pub length: Length,
    /// The number of changes in each command. There is at least one command, which may be empty.
    /// Each costs at most a step, unless it is a single change.
    pub steps: Vec<usize>,
    /// The worst case of all changes, in plain entries.
    worst_case: usize,
}

impl Chunking {
    /// Splits a non-atomic batch of changes with these costs.
    pub fn new(costs: impl Iterator<Item = Cost>) -> Chunking {
        let (mut is_short, mut count, mut step, mut worst_case) = (true, 0, 0, 0_usize);
        let mut steps = Vec::new();
        for cost in costs {
            is_short &= cost == Cost::Entry;
            worst_case = worst_case.saturating_add(cost.worst_case());
            step += cost.step_cost();
            if step > Cost::STEP {
                steps.push(count);
                (count, step) = (0, cost.step_cost());
            }
            count += 1;
        }
        let is_short = is_short && steps.is_empty() && count <= Cost::MAX_SHORT;
        steps.push(count);
        Chunking {
            length: if is_short { Length::Short } else { Length::Any },
            steps,
            worst_case,
        }
    }

    /// All changes in one command, for an atomic batch: packets see all of them or none.
    ///
    /// # Errors
    /// They may cost more than `most` plain entries.
    pub fn atomic(self, most: usize) -> Result<Chunking, Refusal> {
        check_atomic_cost(self.worst_case, most)?;
        let all = self.steps.iter().sum();
        Ok(Chunking {
            steps: vec![all],
            ..self
        })
    }
}

/// Refuses a port that does not exist.
///
/// # Errors
/// The port does not exist.
pub(crate) fn check_port(switch: &Switch, port: u32) -> Result<(), Refusal> {
    match switch.has_port(port) {
        true => Ok(()),
        false => Err(Refusal::malformed(format!("there is no port {port}"))),
    }
}

/// Refuses an atomic batch that costs more than `most` plain entries. Every update costs at least
/// one, so the number of updates may be checked before they are decoded.
///
/// # Errors
/// The batch costs more.
pub(crate) fn check_atomic_cost(entries: usize, most: usize) -> Result<(), Refusal> {
    if entries > most {
        return Err(Refusal::exhausted(format!(
            "updates that are to be done at once cost as much as {entries} plain entries; at most {most} are taken, as packets wait \
             meanwhile: send fewer at a time, or CONTINUE_ON_ERROR"
        )));
    }
    Ok(())
}

/// As [`gather`], for a command of this length.
pub fn gather_by<T, F>(
    plane: &dyn DataPlane,
    length: Length,
    f: F,
) -> impl Future<Output = Result<Vec<T>, Gone>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Fn(usize, &mut Switch) -> T + Send + Sync + 'static,
{
    let slots: Arc<Mutex<Vec<Option<T>>>> = Arc::new(Mutex::new((0..plane.replicas()).map(|_| None).collect()));
    let results = Arc::clone(&slots);
    let command: Command = Arc::new(move |replica, switch| {
        let result = f(replica, switch);
        if let Some(slot) = results.lock().unwrap_or_else(PoisonError::into_inner).get_mut(replica) {
            *slot = Some(result);
        }
    });
    let done = match length {
        Length::Short => plane.submit_short(command),
        Length::Any => plane.submit(command),
    };
    async move {
        done.await?;
        let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.drain(..).map(|slot| slot.ok_or(Gone)).collect()
    }
}

/// The items of a command, as a replica gets them.
pub enum Items<'a, T> {
    /// There is one replica: it may move them out.
    Own(&'a mut [T]),
    /// Several replicas share them.
    Shared(&'a [T]),
}

impl<T> Items<'_, T> {
    /// All items; in place of one that was moved out is its replacement.
    pub fn all(&self) -> &[T] {
        match self {
            Items::Own(items) => items,
            Items::Shared(items) => items,
        }
    }
}

/// As [`gather_by`], with items that a single replica may move out instead of cloning.
pub fn gather_with<X, T, F>(
    plane: &dyn DataPlane,
    length: Length,
    items: Vec<X>,
    f: F,
) -> impl Future<Output = Result<Vec<T>, Gone>> + Send + use<X, T, F>
where
    X: Send + Sync + 'static,
    T: Send + 'static,
    F: Fn(usize, &mut Switch, Items<'_, X>) -> T + Send + Sync + 'static,
{
    let (own, shared) = match plane.replicas() {
        1 => (Some(Mutex::new(items)), Vec::new()),
        _ => (None, items),
    };
    gather_by(plane, length, move |replica, switch| match &own {
        Some(own) => {
            let mut own = own.lock().unwrap_or_else(PoisonError::into_inner);
            f(replica, switch, Items::Own(&mut own))
        }
        None => f(replica, switch, Items::Shared(&shared)),
    })
}

/// A packet for the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPacket {
    /// The packet, including the headers that the program puts before it.
    pub bytes: Vec<u8>,
}

/// An event of a data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet for the control plane.
    Packet(CpuPacket),
    /// A port came up or went down.
    Port {
        /// The port.
        port: u32,
        /// Whether it is up now.
        up: bool,
    },
}

/// The sending end of a data plane's events. Sending never waits: packets that exceed the queue are
/// dropped and counted. Port changes are not lost, but only the last state of a port is kept.
#[derive(Debug, Clone)]
pub struct Events {
    packets: mpsc::Sender<CpuPacket>,
    ports: Arc<PortChanges>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PortChanges {
    /// The last state of each port that changed since it was read.
    changed: Mutex<std::collections::BTreeMap<u32, bool>>,
    news: Notify,
}

impl Events {
    /// A connection on which `capacity` packets may wait (at least 1).
    #[must_use]
    pub fn new(capacity: usize) -> (Events, Inbox) {
        let (packets, received) = mpsc::channel(capacity.max(1));
        let events = Events {
            packets,
            ports: Arc::default(),
            lost: Arc::default(),
        };
        let inbox = Inbox {
            packets: received,
            ports: Arc::clone(&events.ports),
        };
        (events, inbox)
    }

    /// Queues a packet for the control plane. Returns whether the queue had room.
    pub fn packet(&self, bytes: Vec<u8>) -> bool {
        let is_kept = self.packets.try_send(CpuPacket { bytes }).is_ok();
        if !is_kept {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        is_kept
    }

    /// A port came up or went down.
    pub fn port(&self, port: u32, up: bool) {
        let mut changed = self.ports.changed.lock().unwrap_or_else(PoisonError::into_inner);
        changed.insert(port, up);
        self.ports.news.notify_one();
    }

    /// Packets that were dropped.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// The receiving end of a data plane's events.
#[derive(Debug)]
pub struct Inbox {
    packets: mpsc::Receiver<CpuPacket>,
    ports: Arc<PortChanges>,
}

impl Inbox {
    /// The next event; `None` once the data plane is gone and all events were read.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            let first = {
                let mut changed = self.ports.changed.lock().unwrap_or_else(PoisonError::into_inner);
                changed.pop_first()
            };
            if let Some((port, up)) = first {
                return Some(Event::Port { port, up });
            }
            tokio::select! {
                () = self.ports.news.notified() => {}
                packet = self.packets.recv() => return packet.map(Event::Packet),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunking(costs: impl IntoIterator<Item = Cost>) -> Chunking {
        Chunking::new(costs.into_iter())
    }

    #[test]
    fn a_step_has_as_many_changes_as_cost_what_256_entries_do() {
        let expected = |length, steps: &[usize]| (length, steps.to_vec());
        let split = |costs: &[Cost]| {
            let chunking = Chunking::new(costs.iter().copied());
            (chunking.length, chunking.steps)
        };
        let (short, any) = (Length::Short, Length::Any);
        assert_eq!(split(&[]), expected(short, &[0]));
        assert_eq!(split(&[Cost::Entry; 32]), expected(short, &[32]));
        assert_eq!(split(&[Cost::Entry; 33]), expected(any, &[33]));
        assert_eq!(split(&[Cost::Entry; 600]), expected(any, &[256, 256, 88]));
        assert_eq!(split(&[Cost::Unbounded]), expected(any, &[1]));
        assert_eq!(split(&[Cost::Ranked; 20]), expected(any, &[16, 4]));
        let mixed = [[Cost::Entry; 15].as_slice(), &[Cost::Ranked; 20]].concat();
        assert_eq!(split(&mixed), expected(any, &[30, 5]));
    }

    #[test]
    fn a_list_counts_as_many_entries_and_one_that_is_too_long_is_a_step_of_its_own() {
        let (small, large, empty) = (Cost::Parts(100), Cost::Parts(60_000), Cost::Parts(0));
        assert_eq!(chunking([small; 5]).steps, [2, 2, 1]);
        assert_eq!(chunking([small, large, small, empty, large]).steps, [1, 1, 2, 1]);
        assert_eq!(chunking([Cost::list(0, false); 3]).steps, [1, 1, 1]);
    }

    #[test]
    fn an_atomic_batch_has_a_cost_limit() {
        let batch = [Cost::Parts(100), Cost::Ranked, Cost::Entry, Cost::list(0, false)];
        let cost = 100 + 64 + 1 + 1;
        assert_eq!(chunking(batch).atomic(cost).map(|p| p.steps), Ok(vec![4]));
        let refused = chunking(batch).atomic(cost - 1).map_err(|e| e.cause);
        assert_eq!(refused, Err(crate::refusal::Cause::Exhausted));
    }

    #[test]
    fn short_prefixes_that_are_in_many_slots_count_by_these() {
        let of = |width, prefix_length| {
            let value = weir_ir::Bits::zero(width);
            Cost::entry(&[KeyMatch::Lpm { value, prefix_length }])
        };
        let costs = [0, 8, 9, 14, 15, 32].map(|length| of(32, length));
        let parts = Cost::Parts;
        assert_eq!(
            costs,
            [parts(64), parts(64), parts(64), parts(2), parts(1), Cost::Entry]
        );
        // Keys with fewer bits have fewer slots, and longer ones none.
        let costs =
            [(24, 8), (20, 0), (16, 0), (8, 0), (1, 1), (33, 0), (128, 0)].map(|(width, length)| of(width, length));
        let plain = Cost::Entry;
        assert_eq!(costs, [parts(64), parts(4), plain, plain, plain, plain, plain]);
        assert_eq!(Cost::entry(&[]), Cost::Entry);
    }
}
