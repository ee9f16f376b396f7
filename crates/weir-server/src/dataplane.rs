//! What a server needs of a switch that runs.

use crate::refusal::Refusal;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc};
use weir_ir::{KeyMatch, Program};
use weir_switch::{LoadError, Switch};

/// What is done to every replica of the switch: it is called once for each, with the number of the
/// replica.
pub type Order = Arc<dyn Fn(usize, &mut Switch) + Send + Sync>;

/// What tells when something has been done.
pub type Done<E> = Pin<Box<dyn Future<Output = Result<(), E>> + Send>>;

/// The data plane has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the switch is not running any more")]
pub struct Gone;

/// A program was not loaded; the one from before runs on.
#[derive(Debug, thiserror::Error)]
pub enum LoadFailure {
    /// The data plane cannot run it.
    #[error(transparent)]
    Refused(#[from] LoadError),
    /// It does not fit what the data plane was started with, such as its ports.
    #[error("{0}")]
    Unfit(String),
    /// There is none to load it.
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
/// It may consist of several replicas, one per thread: all are given the same orders in the same
/// order, so that their tables, groups and so on are the same at all times as far as orders can
/// tell. Counters are the sum over all replicas; what packets leave for packets (registers, meters)
/// is that of replica 0, which then processes all of them.
///
/// Orders, loading and packets are taken in the order of the calls, whether or not anybody waits
/// for what a call returns, and calls return at once. An order is executed between two packet
/// vectors of a replica, never within one: a vector meets all of it or nothing.
pub trait DataPlane: Send + Sync + 'static {
    /// How many replicas there are, at least 1. It never changes.
    fn replicas(&self) -> usize;

    /// Has an order executed by every replica. Fulfilled once all have done so; the order is
    /// executed even if nobody waits.
    fn order(&self, order: Order) -> Done<Gone>;

    /// As [`DataPlane::order`], for what takes well less than a millisecond: a replica that has
    /// nothing to do may be given to the caller's thread for it, which saves the time in which a
    /// thread wakes up. It may have been executed when this returns.
    fn short_order(&self, order: Order) -> Done<Gone> {
        self.order(order)
    }

    /// Replaces the program. Every replica starts with fresh state, and `prepare` is executed on it
    /// before it meets a packet. `program` is as the compiler made it; optimising it for the engine
    /// is the data plane's business.
    ///
    /// Numbers of ports, their rates and whether they are up stay as they are.
    fn load(&self, program: Arc<Program>, prepare: Order) -> Done<LoadFailure>;

    /// Has a packet received at a port, as if a device had. It is lost where packets come faster
    /// than they can be processed; whoever implements this counts those.
    fn inject(&self, port: u32, packet: Vec<u8>);

    /// The port whose packets come from the control plane and go there; `None`: there is no such
    /// port.
    fn cpu_port(&self) -> Option<u32>;

    /// The switch's clock in ns.
    fn now_ns(&self) -> u64;

    /// Where packets and changes of ports are to be told from now on. A later call replaces an
    /// earlier one.
    fn connect(&self, events: Events);

    /// The ports that there are; none: every number is a port.
    fn ports(&self) -> Vec<PortInfo> {
        Vec::new()
    }
}

/// Executes something on every replica and collects what each gives, by the number of the replica.
///
/// The order has been given when this returns; what it returns waits for the results.
pub fn gather<T, F>(plane: &dyn DataPlane, f: F) -> impl Future<Output = Result<Vec<T>, Gone>> + Send + use<T, F>
where
    T: Send + 'static,
    F: Fn(usize, &mut Switch) -> T + Send + Sync + 'static,
{
    gather_by(plane, Length::Any, f)
}

/// How long an order takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Well less than a millisecond: it is given by [`DataPlane::short_order`].
    Short,
    /// Any time.
    Any,
}

/// What a change costs the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// It is of one entry that is found by its key: less than a microsecond.
    Entry,
    /// It is of one entry among those with masks and ranges: some 10 µs where each has a mask of
    /// its own, more where many have the same mask and value and differ in their ranges.
    Ranked,
    /// It has so many parts, each of which costs about what an entry does: replicas of a multicast
    /// group, members of a selector's.
    Parts(usize),
    /// The same of a list that takes the place of one of which only the switch knows how long it
    /// is. Where that matters the switch counts it ([`weir_switch::Transaction::bound`]).
    Instead(usize),
    /// As much as it likes.
    Any,
}

impl Effort {
    /// Changes that a short order makes at most: some 20 µs.
    const FEW: usize = 32;

    /// Entries that are changed between two packet vectors, of a batch of which packets may meet a
    /// part: some 0.2 ms.
    const STEP: usize = 256;

    /// Plain entries as which one with masks counts in a batch that is done at once, where it is
    /// not the usual one that matters but the slow one.
    const SLOW: usize = 64;

    /// That of a list which is new, or else replaces one, or changes it, or is none any more.
    pub fn list(length: usize, is_new: bool) -> Effort {
        match is_new {
            true => Effort::Parts(length),
            false => Effort::Instead(length),
        }
    }

    /// That of an entry without priority, which is found by these.
    pub fn entry(matches: &[KeyMatch]) -> Effort {
        // The structure of tables with up to 32 bits has a slot for each 24 (or all) bits that
        // begin an address with a prefix of more than
        // 8. That of longer keys has none.
        let slots = match matches {
            [KeyMatch::Lpm { value, prefix_length }] if value.width() <= 32 => {
                let bits = value.width().min(24);
                1_usize << (bits - (*prefix_length).max(9).min(bits))
            }
            _ => 1,
        };
        match slots / Self::SLOTS {
            0 => Effort::Entry,
            parts => Effort::Parts(parts),
        }
    }

    /// That of this and so many parts.
    pub fn with(self, parts: usize) -> Effort {
        match parts {
            0 => self,
            _ => Effort::Parts(self.entries().saturating_add(parts)),
        }
    }

    /// Slots that take as long as an entry.
    const SLOTS: usize = 512;

    /// As many entries fill as much of a step. The longest lists take some milliseconds to go away:
    /// each has a step.
    fn of_step(self) -> usize {
        match self {
            Effort::Ranked => 16,
            Effort::Instead(_) => Effort::STEP,
            other => other.entries().min(Effort::STEP),
        }
    }

    /// As many entries cost as much.
    fn entries(self) -> usize {
        match self {
            Effort::Entry | Effort::Any => 1,
            Effort::Ranked => Effort::SLOW,
            Effort::Parts(count) | Effort::Instead(count) => count.max(1),
        }
    }
}

/// How the changes of a batch are given to the switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pace {
    /// How long each order takes.
    pub length: Length,
    /// Changes of each order, where packets may meet a part of the batch: at least one order, which
    /// may be empty, and as many changes in each as cost no more than a step should, or one.
    pub steps: Vec<usize>,
    /// As many entries cost as much as all changes.
    entries: usize,
}

impl Pace {
    /// That of these changes.
    pub fn of(efforts: impl Iterator<Item = Effort>) -> Pace {
        let (mut is_short, mut count, mut cost, mut entries) = (true, 0, 0, 0_usize);
        let mut steps = Vec::new();
        for effort in efforts {
            is_short &= effort == Effort::Entry;
            entries = entries.saturating_add(effort.entries());
            cost += effort.of_step();
            if cost > Effort::STEP {
                steps.push(count);
                (count, cost) = (0, effort.of_step());
            }
            count += 1;
        }
        let is_short = is_short && steps.is_empty() && count <= Effort::FEW;
        steps.push(count);
        Pace {
            length: if is_short { Length::Short } else { Length::Any },
            steps,
            entries,
        }
    }

    /// All changes in one order, as packets meet all of them or none.
    ///
    /// # Errors
    /// They cost more than so many entries.
    pub fn at_once(self, most: usize) -> Result<Pace, Refusal> {
        check_at_once(self.entries, most)?;
        let all = self.steps.iter().sum();
        Ok(Pace {
            steps: vec![all],
            ..self
        })
    }
}

/// Refuses a port that there is none of.
///
/// # Errors
/// It says which.
pub(crate) fn check_port(switch: &Switch, port: u32) -> Result<(), Refusal> {
    match switch.has_port(port) {
        true => Ok(()),
        false => Err(Refusal::malformed(format!("there is no port {port}"))),
    }
}

/// Refuses updates that are to be done at once and cost more than `most` plain entries. They cost
/// at least as much as there are updates, so their number may be asked about before they are read.
///
/// # Errors
/// It is as said.
pub(crate) fn check_at_once(entries: usize, most: usize) -> Result<(), Refusal> {
    if entries > most {
        return Err(Refusal::full(format!(
            "updates that are to be done at once cost as much as {entries} plain entries; at most {most} are taken, as packets wait \
             meanwhile: send fewer at a time, or CONTINUE_ON_ERROR"
        )));
    }
    Ok(())
}

/// As [`gather`], for something of that length.
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
    let order: Order = Arc::new(move |replica, switch| {
        let result = f(replica, switch);
        if let Some(slot) = results.lock().unwrap_or_else(PoisonError::into_inner).get_mut(replica) {
            *slot = Some(result);
        }
    });
    let done = match length {
        Length::Short => plane.short_order(order),
        Length::Any => plane.order(order),
    };
    async move {
        done.await?;
        let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.drain(..).map(|slot| slot.ok_or(Gone)).collect()
    }
}

/// What every replica is given.
pub enum Items<'a, T> {
    /// There is one replica: it may take them.
    Own(&'a mut [T]),
    /// Other replicas are given the same.
    Shared(&'a [T]),
}

impl<T> Items<'_, T> {
    /// All of them, with what is left of those that were taken.
    pub fn all(&self) -> &[T] {
        match self {
            Items::Own(items) => items,
            Items::Shared(items) => items,
        }
    }
}

/// As [`gather_by`], with something that is for the replicas.
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

/// A packet that reached the port of the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuPacket {
    /// The packet, with whatever headers the program puts before it.
    pub bytes: Vec<u8>,
}

/// What a data plane tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A packet reached the port of the control plane.
    Packet(CpuPacket),
    /// A port came up or went down.
    Port {
        /// The port.
        port: u32,
        /// Whether it is up now.
        up: bool,
    },
}

/// Where a data plane tells what happens. Telling never waits: packets are counted and forgotten
/// where the server does not keep up, changes of ports are not lost.
#[derive(Debug, Clone)]
pub struct Events {
    packets: mpsc::Sender<CpuPacket>,
    ports: Arc<PortChanges>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct PortChanges {
    /// The last thing said of each port that changed since somebody asked.
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

    /// A packet reached the port of the control plane. Whether it could be kept.
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

    /// Packets that were forgotten.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Where a server hears what a data plane tells.
#[derive(Debug)]
pub struct Inbox {
    packets: mpsc::Receiver<CpuPacket>,
    ports: Arc<PortChanges>,
}

impl Inbox {
    /// The next event; `None` once the data plane is gone and everything has been heard.
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

    fn pace(efforts: impl IntoIterator<Item = Effort>) -> Pace {
        Pace::of(efforts.into_iter())
    }

    #[test]
    fn a_step_has_as_many_changes_as_cost_what_256_entries_do() {
        let expected = |length, steps: &[usize]| (length, steps.to_vec());
        let pace = |efforts: &[Effort]| {
            let pace = Pace::of(efforts.iter().copied());
            (pace.length, pace.steps)
        };
        let (short, any) = (Length::Short, Length::Any);
        assert_eq!(pace(&[]), expected(short, &[0]));
        assert_eq!(pace(&[Effort::Entry; 32]), expected(short, &[32]));
        assert_eq!(pace(&[Effort::Entry; 33]), expected(any, &[33]));
        assert_eq!(pace(&[Effort::Entry; 600]), expected(any, &[256, 256, 88]));
        assert_eq!(pace(&[Effort::Any]), expected(any, &[1]));
        assert_eq!(pace(&[Effort::Ranked; 20]), expected(any, &[16, 4]));
        let mixed = [[Effort::Entry; 15].as_slice(), &[Effort::Ranked; 20]].concat();
        assert_eq!(pace(&mixed), expected(any, &[30, 5]));
    }

    #[test]
    fn a_list_counts_as_many_entries_and_one_that_is_too_long_is_a_step_of_its_own() {
        let (small, large, empty) = (Effort::Parts(100), Effort::Parts(60_000), Effort::Parts(0));
        assert_eq!(pace([small; 5]).steps, [2, 2, 1]);
        assert_eq!(pace([small, large, small, empty, large]).steps, [1, 1, 2, 1]);
        assert_eq!(pace([Effort::list(0, false); 3]).steps, [1, 1, 1]);
    }

    #[test]
    fn what_is_done_at_once_may_cost_so_much() {
        let batch = [
            Effort::Parts(100),
            Effort::Ranked,
            Effort::Entry,
            Effort::list(0, false),
        ];
        let cost = 100 + 64 + 1 + 1;
        assert_eq!(pace(batch).at_once(cost).map(|p| p.steps), Ok(vec![4]));
        let refused = pace(batch).at_once(cost - 1).map_err(|e| e.cause);
        assert_eq!(refused, Err(crate::refusal::Cause::Full));
    }

    #[test]
    fn short_prefixes_that_are_in_many_slots_count_by_these() {
        let of = |width, prefix_length| {
            let value = weir_ir::Bits::zero(width);
            Effort::entry(&[KeyMatch::Lpm { value, prefix_length }])
        };
        let efforts = [0, 8, 9, 14, 15, 32].map(|length| of(32, length));
        let parts = Effort::Parts;
        assert_eq!(
            efforts,
            [parts(64), parts(64), parts(64), parts(2), parts(1), Effort::Entry]
        );
        // Keys with fewer bits have fewer slots, and longer ones none.
        let efforts =
            [(24, 8), (20, 0), (16, 0), (8, 0), (1, 1), (33, 0), (128, 0)].map(|(width, length)| of(width, length));
        let plain = Effort::Entry;
        assert_eq!(efforts, [parts(64), parts(4), plain, plain, plain, plain, plain]);
        assert_eq!(Effort::entry(&[]), Effort::Entry);
    }
}
