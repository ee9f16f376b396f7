//! Whose turn it is: that of the Writes, or that of the Reads which take more than one step and
//! must see none in part.
//!
//! Writes share their turn, and Reads theirs. However many Reads there are, a Write waits for those
//! of one turn, or of two where a turn was asked for before it: a Read joins the others only as
//! long as nobody waits to write.

use crate::device::lock;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::{Instant, sleep, sleep_until};

/// The turns of one device.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Writes share it; the Reads of one turn have it together.
    lock: Arc<RwLock<()>>,
    /// The turn that Reads have now, if they do. Locked by whoever waits for the next one.
    reads: Mutex<Weak<OwnedRwLockWriteGuard<()>>>,
    waiting: std::sync::Mutex<Waiting>,
}

/// Who waits to write.
#[derive(Debug, Default)]
struct Waiting {
    count: usize,
    /// Since when there always was somebody.
    since: Option<Instant>,
}

/// The turn to write: it lasts until this is dropped.
#[derive(Debug)]
pub(crate) struct Writing {
    _turn: OwnedRwLockReadGuard<()>,
}

/// The turn to read: it lasts until all that share it are dropped.
#[derive(Debug)]
pub(crate) struct Reading {
    since: Instant,
    _turn: Arc<OwnedRwLockWriteGuard<()>>,
}

/// Somebody who waits to write.
struct Waits<'a>(&'a std::sync::Mutex<Waiting>);

impl<'a> Waits<'a> {
    fn new(waiting: &'a std::sync::Mutex<Waiting>) -> Self {
        let mut all = lock(waiting);
        all.count += 1;
        all.since.get_or_insert_with(Instant::now);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.0);
        all.count -= 1;
        if all.count == 0 {
            all.since = None;
        }
    }
}

/// How often it is seen whether somebody waits.
const LOOK: Duration = Duration::from_millis(50);

impl Turns {
    /// Waits for the turn to write.
    pub async fn write(&self) -> Writing {
        if let Ok(turn) = Arc::clone(&self.lock).try_read_owned() {
            return Writing { _turn: turn };
        }
        let _waits = Waits::new(&self.waiting);
        let turn = Arc::clone(&self.lock).read_owned().await;
        Writing { _turn: turn }
    }

    /// Waits for the turn to read.
    pub async fn read(&self) -> Reading {
        let mut reads = self.reads.lock().await;
        let shared = reads.upgrade().filter(|_| !self.is_waited_for());
        let turn = match shared {
            Some(turn) => turn,
            None => {
                let turn = Arc::new(Arc::clone(&self.lock).write_owned().await);
                *reads = Arc::downgrade(&turn);
                turn
            }
        };
        Reading {
            since: Instant::now(),
            _turn: turn,
        }
    }

    /// Fulfilled when a Read has kept others waiting for so long, whatever it does meanwhile.
    pub async fn is_overdue(&self, read: &Reading, patience: Duration) {
        loop {
            match self.waited_since() {
                None => sleep(LOOK).await,
                Some(since) => {
                    let end = since.max(read.since) + patience;
                    if end <= Instant::now() {
                        return;
                    }
                    sleep_until(end).await;
                }
            }
        }
    }

    /// Whether somebody waits to write.
    fn is_waited_for(&self) -> bool {
        self.waited_since().is_some()
    }

    fn waited_since(&self) -> Option<Instant> {
        lock(&self.waiting).since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn writes_share_a_turn_and_reads_another() {
        let turns = Turns::default();
        let writes = [now(turns.write()), now(turns.write())];
        assert!(writes.iter().all(Option::is_some));
        assert!(now(turns.read()).is_none());
        drop(writes);
        let reads = [now(turns.read()), now(turns.read())];
        assert!(reads.iter().all(Option::is_some));
        assert!(now(turns.write()).is_none());
        drop(reads);
        assert!(now(turns.write()).is_some());
    }

    #[tokio::test]
    async fn however_many_read_a_write_waits_for_those_of_one_turn() {
        let turns = Arc::new(Turns::default());
        let first = turns.read().await;
        let mut write = pin!(turns.write());
        let mut context = Context::from_waker(Waker::noop());
        assert!(write.as_mut().poll(&mut context).is_pending());
        assert!(turns.is_waited_for());
        let later: Vec<_> = (0..9)
            .map(|_| {
                let turns = Arc::clone(&turns);
                tokio::spawn(async move { turns.read().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(later.iter().all(|l| !l.is_finished()));
        drop(first);
        // Those that came after it go on after it, together.
        let written = write.await;
        assert!(later.iter().all(|l| !l.is_finished()) && !turns.is_waited_for());
        drop(written);
        for read in later {
            drop(read.await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_overdue_once_it_has_kept_others_waiting_and_not_before() {
        let turns = Arc::new(Turns::default());
        let patience = Duration::from_secs(2);
        let read = turns.read().await;
        let overdue = |by: Duration| tokio::time::timeout(by, turns.is_overdue(&read, patience));
        // Nobody waits, or not for long.
        assert!(overdue(patience * 9).await.is_err());
        assert!(tokio::time::timeout(patience / 2, turns.write()).await.is_err());
        assert!(overdue(patience * 9).await.is_err());
        let waits = Arc::clone(&turns);
        let write = tokio::spawn(async move { waits.write().await });
        assert!(overdue(patience / 2).await.is_err());
        assert!(overdue(patience).await.is_ok());
        // Who gets the turn later has as long, whoever has waited for others.
        let waits = Arc::clone(&turns);
        let next = tokio::spawn(async move { waits.read().await });
        tokio::task::yield_now().await;
        let waits = Arc::clone(&turns);
        let last = tokio::spawn(async move { waits.write().await });
        tokio::task::yield_now().await;
        drop(read);
        drop(write.await);
        let read = next.await.expect("has its turn");
        assert!(!last.is_finished() && turns.is_waited_for());
        let overdue = |by: Duration| tokio::time::timeout(by, turns.is_overdue(&read, patience));
        assert!(overdue(patience / 2).await.is_err());
        assert!(overdue(patience).await.is_ok());
        drop(read);
        drop(last.await);
    }

    #[tokio::test]
    async fn who_stops_waiting_does_not_keep_others_waiting() {
        let turns = Turns::default();
        let read = turns.read().await;
        assert!(now(turns.write()).is_none());
        assert!(!turns.is_waited_for());
        assert!(now(turns.read()).is_some());
        drop(read);
        assert!(now(turns.write()).is_some());
    }
}
