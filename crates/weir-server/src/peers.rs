//! The connected peers of a server: which have a request, which are idle, and since when.
//!
//! [`crate::connections`] accepts and evicts peers; the layers around a service mark them as busy.

use crate::admission::Account;
use crate::device::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

/// The other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    activity: Mutex<Activity>,
    /// Whether the TLS handshake is finished, or there is none.
    has_handshake: AtomicBool,
    /// Whether it has sent valid HTTP/2 preface.
    is_confirmed: AtomicBool,
    /// The charge of its messages to the server's budget.
    pub account: Account,
}

#[derive(Debug)]
struct Activity {
    /// Requests in progress, open streams included.
    requests: usize,
    /// Since when there is none, if there is none.
    idle_since: Instant,
}

impl Peer {
    /// A peer that has just connected.
    pub fn new() -> Arc<Self> {
        Arc::new(Peer {
            activity: Mutex::new(Activity {
                requests: 0,
                idle_since: Instant::now(),
            }),
            has_handshake: AtomicBool::new(false),
            is_confirmed: AtomicBool::new(false),
            account: Account::default(),
        })
    }

    /// Counts a request until the result is dropped.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.confirm_http2();
        lock(&self.activity).requests += 1;
        Busy(Arc::clone(self))
    }

    /// Since when it has had no request; `None` if it has one.
    pub fn idle_since(&self) -> Option<Instant> {
        let activity = lock(&self.activity);
        (activity.requests == 0).then_some(activity.idle_since)
    }

    /// Notes the end of the TLS handshake: further bytes are the server's protocol.
    pub fn finish_handshake(&self) {
        self.has_handshake.store(true, Ordering::Relaxed);
    }

    /// Whether the TLS handshake is finished.
    pub fn has_handshake(&self) -> bool {
        self.has_handshake.load(Ordering::Relaxed)
    }

    /// Notes that it has sent valid HTTP/2 preface.
    pub fn confirm_http2(&self) {
        self.is_confirmed.store(true, Ordering::Relaxed);
    }

    /// Whether it has sent valid HTTP/2 preface.
    pub fn is_confirmed(&self) -> bool {
        self.is_confirmed.load(Ordering::Relaxed)
    }
}

/// A request in progress of a peer.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut activity = lock(&self.0.activity);
        activity.requests -= 1;
        activity.idle_since = Instant::now();
    }
}

/// The peers of a server.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<Connected>);

#[derive(Debug, Default)]
struct Connected {
    next: u64,
    /// Each with the sender that evicts it, until that is used.
    peers: BTreeMap<u64, (Arc<Peer>, Option<oneshot::Sender<()>>)>,
}

impl Peers {
    /// Adds a peer, whose connection this permit allows.
    pub fn register(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> ConnectionSlot {
        let (evict, evicted) = oneshot::channel();
        let peer = Peer::new();
        let mut connected = lock(&self.0);
        let number = connected.next;
        connected.next += 1;
        connected.peers.insert(number, (Arc::clone(&peer), Some(evict)));
        ConnectionSlot {
            peer,
            evicted,
            number,
            peers: Arc::clone(self),
            _permit: permit,
        }
    }

    /// Evicts the peer without a request for longest. Returns whether there was one.
    pub fn evict_idle(&self) -> bool {
        let mut connected = lock(&self.0);
        let idle = connected.peers.values_mut().filter(|(_, evict)| evict.is_some());
        let idle = idle.filter_map(|(peer, evict)| Some((peer.idle_since()?, evict)));
        let evict = idle.min_by_key(|(since, _)| *since).and_then(|(_, evict)| evict.take());
        evict.is_some_and(|evict| evict.send(()).is_ok())
    }
}

/// The slot of a connection, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    pub peer: Arc<Peer>,
    /// Completes when the peer is evicted.
    pub evicted: oneshot::Receiver<()>,
    number: u64,
    peers: Arc<Peers>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.peers.0).peers.remove(&self.number);
    }
}
