//! Who is connected, as the layers of a server and the place where connections come in both know
//! it.

use crate::device::lock;
use crate::receiving::Account;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

/// The other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    doing: Mutex<Doing>,
    /// Whether transport security has been agreed on, or there is none.
    is_secure: AtomicBool,
    /// Whether it has shown that it speaks the server's protocol.
    is_known: AtomicBool,
    /// What its messages have of the server's budget.
    pub account: Account,
}

#[derive(Debug)]
struct Doing {
    /// Requests that are not done; streams are such.
    requests: usize,
    /// Since when there is none.
    idle_since: Instant,
}

impl Peer {
    /// One that has connected now.
    pub fn new() -> Arc<Self> {
        Arc::new(Peer {
            doing: Mutex::new(Doing {
                requests: 0,
                idle_since: Instant::now(),
            }),
            is_secure: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
            account: Account::default(),
        })
    }

    /// It has a request until what this returns is dropped.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.know();
        lock(&self.doing).requests += 1;
        Busy(Arc::clone(self))
    }

    /// Since when it has had no request; `None`: it has one.
    pub fn idle_since(&self) -> Option<Instant> {
        let doing = lock(&self.doing);
        (doing.requests == 0).then_some(doing.idle_since)
    }

    /// What is sent from now on is the server's protocol.
    pub fn secure(&self) {
        self.is_secure.store(true, Ordering::Relaxed);
    }

    /// Whether it is.
    pub fn is_secure(&self) -> bool {
        self.is_secure.load(Ordering::Relaxed)
    }

    /// It speaks the server's protocol.
    pub fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Whether it has shown that.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }
}

/// A peer has a request as long as this is there.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Peer>);

impl Drop for Busy {
    fn drop(&mut self) {
        let mut doing = lock(&self.0.doing);
        doing.requests -= 1;
        doing.idle_since = Instant::now();
    }
}

/// Those that are connected to a server.
#[derive(Debug, Default)]
pub(crate) struct Peers(Mutex<Connected>);

#[derive(Debug, Default)]
struct Connected {
    next: u64,
    /// Each with what ends its connection, unless that has been used.
    peers: BTreeMap<u64, (Arc<Peer>, Option<oneshot::Sender<()>>)>,
}

impl Peers {
    /// One more, which has a place by this.
    pub fn enter(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Place {
        let (end, ended) = oneshot::channel();
        let peer = Peer::new();
        let mut connected = lock(&self.0);
        let number = connected.next;
        connected.next += 1;
        connected.peers.insert(number, (Arc::clone(&peer), Some(end)));
        Place {
            peer,
            ended,
            number,
            peers: Arc::clone(self),
            _permit: permit,
        }
    }

    /// Has the connection ended that has had no request for longest. Whether there was one.
    pub fn make_room(&self) -> bool {
        let mut connected = lock(&self.0);
        let idle = connected.peers.values_mut().filter(|(_, end)| end.is_some());
        let longest = idle.filter_map(|(peer, end)| Some((peer.idle_since()?, end)));
        let end = longest.min_by_key(|(since, _)| *since).and_then(|(_, end)| end.take());
        end.is_some_and(|end| end.send(()).is_ok())
    }
}

/// A place among the connected, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub peer: Arc<Peer>,
    /// Hears that another one needs the place.
    pub ended: oneshot::Receiver<()>,
    number: u64,
    peers: Arc<Peers>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.peers.0).peers.remove(&self.number);
    }
}
