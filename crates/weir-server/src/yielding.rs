//! The lock under which one batch submits its commands. A batch that takes longer than a second
//! yields the lock between its steps.
//!
//! Commands of one request are submitted in a row, so that no other request sees half of it. A
//! non-atomic batch may take long. Between two of its steps it lets the waiting requests through.

use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::Instant;

/// How long a non-atomic batch submits alone before it yields between steps.
const EXCLUSIVE_TIME: Duration = Duration::from_secs(1);

/// A guard of [`Device::commands`](crate::device::Device::commands) that can yield it.
#[derive(Debug)]
pub(crate) struct YieldingGuard<'d> {
    /// The lock.
    commands: &'d Mutex<()>,
    /// `None` only while it yields.
    guard: Option<MutexGuard<'d, ()>>,
    /// When the batch acquired the lock first.
    since: Instant,
}

impl<'d> YieldingGuard<'d> {
    /// Waits until no other request submits commands.
    pub async fn acquire(commands: &'d Mutex<()>) -> Self {
        let guard = Some(commands.lock().await);
        YieldingGuard {
            commands,
            guard,
            since: Instant::now(),
        }
    }

    /// To be called between two steps of a non-atomic batch. Once [`EXCLUSIVE_TIME`] is over, every
    /// call lets the requests that wait now run first.
    pub async fn yield_if_due(&mut self) {
        if self.since.elapsed() >= EXCLUSIVE_TIME {
            self.guard = None;
            // The mutex is fair: those that wait already come first.
            self.guard = Some(self.commands.lock().await);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test(start_paused = true)]
    async fn a_batch_yields_between_steps_once_its_exclusive_time_is_over() {
        let commands = Arc::new(Mutex::new(()));
        let mut guard = YieldingGuard::acquire(&commands).await;
        let other = tokio::spawn({
            let commands = Arc::clone(&commands);
            async move { drop(YieldingGuard::acquire(&commands).await) }
        });
        tokio::task::yield_now().await;
        tokio::time::advance(EXCLUSIVE_TIME / 2).await;
        guard.yield_if_due().await;
        assert!(!other.is_finished());
        tokio::time::advance(EXCLUSIVE_TIME / 2).await;
        guard.yield_if_due().await;
        tokio::time::timeout(EXCLUSIVE_TIME, other)
            .await
            .expect("runs in between")
            .expect("submits");
        // Afterwards it is alone again until the next step.
        assert!(commands.try_lock().is_err());
        drop(guard);
        assert!(commands.try_lock().is_ok());
    }
}
