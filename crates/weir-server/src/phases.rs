//! The phase lock of a device, a group lock (also *room lock*) with two groups: its Writes run
//! concurrently, or its long Reads do, never both.
//!
//! It is built from an `RwLock`, with the roles of the sides reversed. Writes share its read side.
//! The first long Read of a phase takes its write side, and the others of the phase share that
//! guard.
//!
//! A long Read has more than one step. It must not show half of a batch, so no Write may run during
//! it. A waiting Write blocks new Reads from joining the running phase. Therefore a Write waits for
//! the Reads of at most two phases, however many Reads arrive. Short Reads need no phase
//! (`reading.rs`).

use crate::device::lock;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Mutex, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};
use tokio::time::{Instant, sleep, sleep_until};

/// The guard of a Write: the `RwLock`'s read side, which Writes share.
type SharedGuard = OwnedRwLockReadGuard<()>;
/// The common guard of the Reads of a phase: the `RwLock`'s write side, which excludes Writes.
type ExclusiveGuard = OwnedRwLockWriteGuard<()>;

/// A group lock: either Writes or long Reads hold it, each kind together.
#[derive(Debug, Default)]
pub(crate) struct PhasedRwLock {
    /// Writes hold it shared. The Reads of one phase hold it exclusively, by one common guard.
    lock: Arc<RwLock<()>>,
    /// The guard of the running phase of Reads, if any. Locked while a Read waits for the next
    /// phase.
    read_phase: Mutex<Weak<ExclusiveGuard>>,
    /// The Writes that wait for a phase, for [`PhasedRwLock::wait_until_overdue`].
    writers: std::sync::Mutex<WaitingWriters>,
}

/// The Writes that wait for a phase.
#[derive(Debug, Default)]
struct WaitingWriters {
    /// The number of waiting Writes.
    count: usize,
    /// Since when at least one has waited without interruption.
    since: Option<Instant>,
}

/// A share of a phase of Writes, until it is dropped.
#[derive(Debug)]
pub(crate) struct WritePhase {
    _guard: SharedGuard,
}

/// A share of a phase of Reads. The phase ends when all shares are dropped.
#[derive(Debug)]
pub(crate) struct ReadPhase {
    /// When this Read joined the phase.
    since: Instant,
    _guard: Arc<ExclusiveGuard>,
}

/// Counts a Write as waiting, until it is dropped.
struct WriteWaiter<'a>(&'a std::sync::Mutex<WaitingWriters>);

impl<'a> WriteWaiter<'a> {
    fn new(writers: &'a std::sync::Mutex<WaitingWriters>) -> Self {
        let mut waiting = lock(writers);
        waiting.count += 1;
        waiting.since.get_or_insert_with(Instant::now);
        WriteWaiter(writers)
    }
}

impl Drop for WriteWaiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(self.0);
        waiting.count -= 1;
        if waiting.count == 0 {
            waiting.since = None;
        }
    }
}

/// Interval at which a Read checks whether a Write waits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl PhasedRwLock {
    /// Joins the running phase of Writes, or waits for the next one.
    pub async fn join_writes(&self) -> WritePhase {
        if let Ok(guard) = Arc::clone(&self.lock).try_read_owned() {
            return WritePhase { _guard: guard };
        }
        let _waiter = WriteWaiter::new(&self.writers);
        let guard = Arc::clone(&self.lock).read_owned().await;
        WritePhase { _guard: guard }
    }

    /// Joins the running phase of Reads if no Write waits, else waits for the next phase.
    pub async fn join_reads(&self) -> ReadPhase {
        let mut phase = self.read_phase.lock().await;
        let running = phase.upgrade().filter(|_| !self.has_waiting_writer());
        let guard = match running {
            Some(guard) => guard,
            None => {
                let guard = Arc::new(Arc::clone(&self.lock).write_owned().await);
                *phase = Arc::downgrade(&guard);
                guard
            }
        };
        ReadPhase {
            since: Instant::now(),
            _guard: guard,
        }
    }

    /// Completes once a Write has waited for `max_wait` while this Read was in its phase.
    pub async fn wait_until_overdue(&self, read: &ReadPhase, max_wait: Duration) {
        loop {
            match self.writers_wait_since() {
                None => sleep(POLL_INTERVAL).await,
                Some(since) => {
                    let deadline = since.max(read.since) + max_wait;
                    if deadline <= Instant::now() {
                        return;
                    }
                    sleep_until(deadline).await;
                }
            }
        }
    }

    /// Whether a Write waits for a phase.
    fn has_waiting_writer(&self) -> bool {
        self.writers_wait_since().is_some()
    }

    /// Since when Writes have waited without interruption; `None` if none waits.
    fn writers_wait_since(&self) -> Option<Instant> {
        lock(&self.writers).since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::now;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn writes_share_a_phase_and_reads_another() {
        let phases = PhasedRwLock::default();
        let writes = [now(phases.join_writes()), now(phases.join_writes())];
        assert!(writes.iter().all(Option::is_some));
        assert!(now(phases.join_reads()).is_none());
        drop(writes);
        let reads = [now(phases.join_reads()), now(phases.join_reads())];
        assert!(reads.iter().all(Option::is_some));
        assert!(now(phases.join_writes()).is_none());
        drop(reads);
        assert!(now(phases.join_writes()).is_some());
    }

    #[tokio::test]
    async fn a_write_waits_for_the_reads_of_one_phase_however_many_come() {
        let phases = Arc::new(PhasedRwLock::default());
        let first = phases.join_reads().await;
        let mut write = pin!(phases.join_writes());
        let mut context = Context::from_waker(Waker::noop());
        assert!(write.as_mut().poll(&mut context).is_pending());
        assert!(phases.has_waiting_writer());
        let later: Vec<_> = (0..9)
            .map(|_| {
                let phases = Arc::clone(&phases);
                tokio::spawn(async move { phases.join_reads().await })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(later.iter().all(|l| !l.is_finished()));
        drop(first);
        // The Reads that came after the Write run after it, in one phase.
        let written = write.await;
        assert!(later.iter().all(|l| !l.is_finished()) && !phases.has_waiting_writer());
        drop(written);
        for read in later {
            drop(read.await);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_overdue_once_a_write_has_waited_for_the_maximum() {
        let phases = Arc::new(PhasedRwLock::default());
        let max_wait = Duration::from_secs(2);
        let read = phases.join_reads().await;
        let overdue = |by: Duration| tokio::time::timeout(by, phases.wait_until_overdue(&read, max_wait));
        // No Write waits, or not for long.
        assert!(overdue(max_wait * 9).await.is_err());
        assert!(tokio::time::timeout(max_wait / 2, phases.join_writes()).await.is_err());
        assert!(overdue(max_wait * 9).await.is_err());
        let waiter = Arc::clone(&phases);
        let write = tokio::spawn(async move { waiter.join_writes().await });
        assert!(overdue(max_wait / 2).await.is_err());
        assert!(overdue(max_wait).await.is_ok());
        // The maximum wait for a Read in a later phase counts from the start of that phase.
        let waiter = Arc::clone(&phases);
        let next = tokio::spawn(async move { waiter.join_reads().await });
        tokio::task::yield_now().await;
        let waiter = Arc::clone(&phases);
        let last = tokio::spawn(async move { waiter.join_writes().await });
        tokio::task::yield_now().await;
        drop(read);
        drop(write.await);
        let read = next.await.expect("has its phase");
        assert!(!last.is_finished() && phases.has_waiting_writer());
        let overdue = |by: Duration| tokio::time::timeout(by, phases.wait_until_overdue(&read, max_wait));
        assert!(overdue(max_wait / 2).await.is_err());
        assert!(overdue(max_wait).await.is_ok());
        drop(read);
        drop(last.await);
    }

    #[tokio::test]
    async fn a_cancelled_write_blocks_no_read() {
        let phases = PhasedRwLock::default();
        let read = phases.join_reads().await;
        assert!(now(phases.join_writes()).is_none());
        assert!(!phases.has_waiting_writer());
        assert!(now(phases.join_reads()).is_some());
        drop(read);
        assert!(now(phases.join_writes()).is_some());
    }
}
