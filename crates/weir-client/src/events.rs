//! What a target tells by itself: digests, packets, idle entries, ports, and who is primary.

use crate::entry::Entry;
use crate::value::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// What happens to events that nobody has taken yet when more come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The new ones are counted ([`Subscription::lost`]) and forgotten.
    #[default]
    Count,
    /// The target has to wait: nothing is lost here, and nothing else is heard meanwhile. What the
    /// target does then is its business; weir counts what it loses.
    Wait,
}

/// Digests of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct DigestList {
    /// Name of the digest.
    pub name: String,
    /// Elements.
    pub data: Vec<Value>,
    /// P4Runtime: when the target has put it together, in ns of its clock.
    pub timestamp_ns: i64,
}

/// A packet for the controller.
#[derive(Debug, Clone, PartialEq)]
pub struct PacketIn {
    /// The packet behind the program's header for the controller.
    pub payload: Vec<u8>,
    /// Fields of that header.
    pub metadata: Vec<(String, Value)>,
}

/// An entry that no packet has hit for its time-out, or (BF Runtime) that was hit again.
#[derive(Debug, Clone, PartialEq)]
pub struct IdleEntry {
    /// Its key.
    pub entry: Entry,
    /// It was hit again.
    pub is_active: bool,
}

/// A port that came up or went down (BF Runtime).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortChange {
    /// The port.
    pub port: u32,
    /// Whether it is up now.
    pub is_up: bool,
}

/// How it stands with the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing is known yet.
    Connecting,
    /// This client controls it.
    Primary,
    /// Another client does, or none; with its election id, if there is one.
    Backup(Option<u128>),
    /// This client only reads.
    Observer,
    /// The connection is broken; another is tried, unless
    /// [`Options::reconnect`](crate::Options::reconnect) is `None`.
    Lost(String),
}

/// Events of one kind, in the order in which they came.
#[derive(Debug)]
pub struct Subscription<T> {
    receiver: mpsc::Receiver<T>,
    lost: Arc<AtomicU64>,
}

impl<T> Subscription<T> {
    /// The next event; `None` once the client is gone.
    pub async fn next(&mut self) -> Option<T> {
        self.receiver.recv().await
    }

    /// The next event, if there is one already.
    pub fn try_next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }

    /// Events that were forgotten because nobody took them, and messages of digests that could not
    /// be read.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// The next event, for threads without a runtime.
    pub(crate) fn blocking_next(&mut self) -> Option<T> {
        self.receiver.blocking_recv()
    }
}

/// Who wants events of one kind.
#[derive(Debug)]
pub(crate) struct Topic<T>(Mutex<Vec<Subscriber<T>>>);

#[derive(Debug, Clone)]
struct Subscriber<T> {
    /// The object that it is about; 0: any.
    id: u32,
    sender: mpsc::Sender<T>,
    lost: Arc<AtomicU64>,
    overflow: Overflow,
}

impl<T> Default for Topic<T> {
    fn default() -> Self {
        Topic(Mutex::default())
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
        self.lock().push(subscriber);
        Subscription { receiver, lost }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Subscriber<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what cannot be told to those that want to hear of an object.
    pub fn lose(&self, id: u32, count: u64) {
        let all = self.lock();
        for subscriber in all.iter().filter(|s| s.id == 0 || s.id == id) {
            subscriber.lost.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Tells all that want to hear of an object. Whether at least one has kept it.
    pub async fn tell(&self, id: u32, event: T) -> bool {
        let wanted: Vec<Subscriber<T>> = {
            let mut all = self.lock();
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

/// Who wants what.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    pub digests: Topic<DigestList>,
    pub packets: Topic<PacketIn>,
    pub idle: Topic<IdleEntry>,
    pub ports: Topic<PortChange>,
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
