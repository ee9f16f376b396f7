//! Threads for work that would delay the thread that serves all clients.
//!
//! Tokio's blocking pool panics, or leaves the work in its queue for good, when the system starts
//! no thread. Here that is an error, or the calling thread does the work.

use crate::refusal::Refusal;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use weir_compiler::NoThread;

/// How long a thread waits for further work before it ends.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// Threads without work, by number. A thread whose entry was taken gets a job.
static IDLE: Mutex<Vec<(u64, Sender<Job>)>> = Mutex::new(Vec::new());

fn idle() -> MutexGuard<'static, Vec<(u64, Sender<Job>)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why work gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The system started no thread for it.
    NoThread(NoThread),
    /// It panicked.
    Panicked,
}

impl From<NoThread> for Refusal {
    fn from(error: NoThread) -> Self {
        Refusal::exhausted(error.to_string())
    }
}

/// Runs `work` on a thread that serves no client, within the caller's runtime: a
/// [`crate::DataPlane`] may start tasks of it. It is completed even if the future is dropped.
///
/// # Errors
/// There is no thread for this purpose, or `work` panicked.
pub async fn run<T: Send + 'static>(
    purpose: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (reply, result) = oneshot::channel();
    let runtime = Handle::current();
    let job = Box::new(move || {
        let _within = runtime.enter();
        // The caller may have left.
        let _ = reply.send(work());
    });
    give(job).map_err(|(_, error)| Failure::NoThread(NoThread::new(purpose, &error)))?;
    result.await.map_err(|_| Failure::Panicked)
}

/// As [`run`]; where there is no thread, the calling one does the work, which other clients wait
/// for.
///
/// # Errors
/// `work` panicked.
pub async fn run_somewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
    let (reply, result) = oneshot::channel();
    let runtime = Handle::current();
    let job = Box::new(move || {
        let _within = runtime.enter();
        let _ = reply.send(work());
    });
    if let Err((job, _)) = give(job) {
        let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
    }
    result.await.map_err(|_| Failure::Panicked)
}

/// Gives a job to an idle thread or a new one. If the system starts none, the job comes back.
fn give(mut job: Job) -> Result<(), (Job, io::Error)> {
    let waiting = idle().pop();
    if let Some((_, thread)) = waiting {
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(returned) => job = returned.0,
        }
    }
    let (sender, jobs) = channel();
    let to_itself = sender.clone();
    let thread = std::thread::Builder::new().name("blocking".to_owned());
    match thread.spawn(move || serve(&to_itself, &jobs)) {
        Ok(_) => {
            // The thread holds a sender and waits for its first job without a time limit.
            let _ = sender.send(job);
            Ok(())
        }
        Err(error) => Err((job, error)),
    }
}

/// The body of a thread.
fn serve(to_itself: &Sender<Job>, jobs: &Receiver<Job>) {
    static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let mut next = jobs.recv().ok();
    while let Some(job) = next {
        // A job that panics drops its reply, by which its caller knows.
        let _ = std::panic::catch_unwind(AssertUnwindSafe(job));
        idle().push((number, to_itself.clone()));
        next = match jobs.recv_timeout(KEEP_ALIVE) {
            Ok(job) => Some(job),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let mut idle = idle();
                let before = idle.len();
                idle.retain(|(other, _)| *other != number);
                let is_taken = idle.len() == before;
                drop(idle);
                is_taken.then(|| jobs.recv().ok()).flatten()
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn threads_are_used_again_and_survive_a_panic() {
        assert_eq!(run("a test", || 1).await, Ok(1));
        assert_eq!(
            run("a test", || panic!("on purpose")).await,
            Err::<(), _>(Failure::Panicked)
        );
        assert_eq!(run_somewhere(|| 2).await, Ok(2));
        let within = run("a test", || tokio::spawn(async { 3 })).await;
        assert_eq!(within.expect("the runtime is there").await.ok(), Some(3));
    }
}
