//! Notifications of a target: digests, packets, idle entries, ports, and the standing of the
//! client.

use crate::entry::Entry;
use crate::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// The policy for a full subscription queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// New events are dropped and counted ([`Subscription::lost`]).
    #[default]
    Count,
    /// Back-pressure: the stream is not read until there is space. Nothing is lost here, and no
    /// other events arrive until then. Losses at the target depend on the target; weir counts its
    /// own.
    Wait,
}

/// Digests of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestList {
    /// Name of the digest.
    pub name: String,
    /// Elements.
    pub data: Vec<Value>,
    /// P4Runtime: when the target made the list, in ns of its clock.
    pub timestamp_ns: i64,
}

/// A packet for the controller.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketIn {
    /// The packet after the packet-in header.
    pub payload: Vec<u8>,
    /// Fields of that header.
    pub metadata: Vec<(String, Value)>,
}

/// An entry that had no hit for its time-out, or (BF Runtime) that was hit again.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleEntry {
    /// Its key.
    pub entry: Entry,
    /// It was hit again.
    pub is_active: bool,
}

/// A port that went up or down (BF Runtime).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortChange {
    /// The port.
    pub port: u32,
    /// Whether it is up.
    pub is_up: bool,
}

/// The standing of the client with the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Unknown: the client is connecting.
    Connecting,
    /// This client controls it.
    Primary,
    /// Another client controls it, or none; with the election id of the primary, if there is one.
    Backup(Option<u128>),
    /// This client only reads.
    Observer,
    /// The connection is lost, for this reason. It is reconnected, unless
    /// [`Options::reconnect`](crate::Options::reconnect) is `None`.
    Lost(String),
}

/// Events of one kind, in order of arrival.
#[derive(Debug)]
pub struct Subscription<T> {
    receiver: mpsc::Receiver<T>,
    lost: Arc<AtomicU64>,
}

impl<T> Subscription<T> {
    /// The next event; `None` after the client is closed or dropped.
    pub async fn next(&mut self) -> Option<T> {
        self.receiver.recv().await
    }

    /// The next event, if one is queued.
    pub fn try_next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Events dropped because the queue was full, and digest messages that were malformed.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The next event, for threads without a runtime.
    pub(crate) fn blocking_next(&mut self) -> Option<T> {
        self.receiver.blocking_recv()
    }
}

/// The subscribers to events of one kind.
#[derive(Debug)]
pub(crate) struct Topic<T>(Mutex<Subscribers<T>>);

#[derive(Debug)]
struct Subscribers<T> {
    all: Vec<Subscriber<T>>,
    /// No event comes any more, and there are no subscribers.
    is_closed: bool,
}

#[derive(Debug, Clone)]
struct Subscriber<T> {
    /// The id of the object of interest; 0: any.
    id: u32,
    sender: mpsc::Sender<T>,
    lost: Arc<AtomicU64>,
    overflow: Overflow,
}

impl<T> Default for Topic<T> {
    fn default() -> Self {
        let (all, is_closed) = (Vec::new(), false);
        Topic(Mutex::new(Subscribers { all, is_closed }))
    }
}

impl<T: Clone> Topic<T> {
    /// Subscribes to events about an object (0: any).
    pub fn subscribe(&self, id: u32, capacity: usize, overflow: Overflow) -> Subscription<T> {
        let (sender, receiver) = mpsc::channel(capacity.max(1));
        let lost = Arc::default();
        let subscriber = Subscriber {
            id,
            sender,
            lost: Arc::clone(&lost),
            overflow,
        };
        let mut subscribers = self.lock();
        if !subscribers.is_closed {
            subscribers.all.push(subscriber);
        }
        Subscription { receiver, lost }
    }

    /// Ends all subscriptions, once what is queued has been taken, and those that are made later.
    fn close(&self) {
        let mut subscribers = self.lock();
        subscribers.is_closed = true;
        subscribers.all.clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Subscribers<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts lost events for the subscribers to an object.
    pub fn lose(&self, id: u32, count: u64) {
        let subscribers = self.lock();
        for subscriber in subscribers.all.iter().filter(|s| s.id == 0 || s.id == id) {
            subscriber.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Sends an event to all subscribers to an object. Returns whether at least one has queued it.
    pub async fn tell(&self, id: u32, event: T) -> bool {
        let wanted: Vec<Subscriber<T>> = {
            let all = &mut self.lock().all;
            all.retain(|s| !s.sender.is_closed());
            all.iter().filter(|s| s.id == 0 || s.id == id).cloned().collect()
        };
        let mut is_kept = false;
        for subscriber in wanted {
            let sent = match subscriber.overflow {
                Overflow::Wait => subscriber.sender.send(event.clone()).await.is_ok(),
                Overflow::Count => subscriber.sender.try_send(event.clone()).is_ok(),
            };
            if !sent && !subscriber.sender.is_closed() {
                subscriber.lost.fetch_add(1, Ordering::Relaxed);
            }
            is_kept |= sent;
        }
        is_kept
    }
}

/// The subscribers of all kinds.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    pub digests: Topic<DigestList>,
    pub packets: Topic<PacketIn>,
    pub idle: Topic<IdleEntry>,
    pub ports: Topic<PortChange>,
}

impl Hub {
    /// Ends all subscriptions.
    pub fn close(&self) {
        self.digests.close();
        self.packets.close();
        self.idle.close();
        self.ports.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_nobody_takes_is_counted() {
        let topic = Topic::default();
        let mut all = topic.subscribe(0, 2, Overflow::Count);
        let mut one = topic.subscribe(7, 8, Overflow::Count);
        for i in 0..4 {
            topic.tell(if i == 3 { 7 } else { 5 }, i).await;
        }
        assert_eq!(
            (all.try_next(), all.try_next(), all.try_next()),
            (Some(0), Some(1), None)
        );
        assert_eq!(all.lost(), 2);
        assert_eq!((one.try_next(), one.try_next(), one.lost()), (Some(3), None, 0));
    }

    #[tokio::test]
    async fn whoever_makes_the_target_wait_loses_nothing() {
        let topic = Arc::new(Topic::default());
        let mut events = topic.subscribe(0, 1, Overflow::Wait);
        let teller = Arc::clone(&topic);
        let told = tokio::spawn(async move {
            for i in 0..100 {
                teller.tell(1, i).await;
            }
        });
        for i in 0..100 {
            assert_eq!(events.next().await, Some(i));
        }
        told.await.unwrap();
        assert_eq!(events.lost(), 0);
    }
}
