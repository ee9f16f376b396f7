//! A single-threaded runtime that the calling threads drive.
//!
//! Passing a request through a thread of the runtime costs two more thread wake-ups, some 25 µs
//! each on a virtual machine: as much as the rest of the request. Therefore the calling thread
//! sends and receives by itself, and busy-polls for the answer for a while before it sleeps. A
//! background thread drives the runtime between calls, to receive notifications.

use crate::Error;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::Notify;

/// Time after the last call until the background thread drives the runtime; during calls in quick
/// succession it does not.
const LINGER: Duration = Duration::from_millis(5);

/// A runtime with one thread, which is any calling thread.
#[derive(Debug)]
pub struct Driver {
    shared: Arc<Shared>,
    /// Time for which a call busy-polls before it sleeps.
    busy_poll: Duration,
    /// A call is busy-polling. Only one may: several would take the processor from each other and
    /// from the thread that answers.
    looks: AtomicBool,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    runtime: Runtime,
    callers: Mutex<Callers>,
    /// Makes the background thread stop driving: a caller may need the runtime, or the driver ends.
    leave: Notify,
    ended: Condvar,
}

#[derive(Debug)]
struct Callers {
    now: usize,
    last: Instant,
    is_over: bool,
}

impl Shared {
    fn callers(&self) -> MutexGuard<'_, Callers> {
        self.callers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The background thread: drives the runtime between calls.
    fn drive(&self) {
        loop {
            let mut callers = self.callers();
            loop {
                if callers.is_over {
                    return;
                }
                let rest = LINGER.saturating_sub(callers.last.elapsed());
                if callers.now == 0 && rest.is_zero() {
                    break;
                }
                // A call in progress drives the runtime itself; the next check is soon.
                let wait = if callers.now == 0 { rest } else { LINGER };
                let waited = self.ended.wait_timeout(callers, wait);
                callers = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            drop(callers);
            // A call that started since then has set the notification.
            self.runtime.block_on(self.leave.notified());
        }
    }
}

/// A call in progress, counted until this is dropped.
struct Call<'a>(&'a Shared);

impl<'a> Call<'a> {
    fn begin(shared: &'a Shared) -> Self {
        shared.callers().now += 1;
        shared.leave.notify_one();
        Call(shared)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut callers = self.0.callers();
        callers.now -= 1;
        callers.last = Instant::now();
    }
}

impl Driver {
    /// A driver whose calls busy-poll for this time.
    pub fn new(busy_poll: Duration) -> Result<Driver, Error> {
        let failed = |e: std::io::Error| Error::Options(format!("cannot start a thread: {e}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let shared = Arc::new(Shared {
            runtime,
            callers: Mutex::new(Callers {
                now: 0,
                last: Instant::now(),
                is_over: false,
            }),
            leave: Notify::new(),
            ended: Condvar::new(),
        });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("weir-client".to_owned())
            .spawn(move || of_thread.drive())
            .map_err(failed)?;
        Ok(Driver {
            shared,
            busy_poll: match std::thread::available_parallelism() {
                // The answering thread needs the only processor.
                Ok(cores) if cores.get() == 1 => Duration::ZERO,
                _ => busy_poll,
            },
            looks: AtomicBool::new(false),
            thread: Some(thread),
        })
    }

    /// Waits for a future.
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        {
            // Many futures complete at once, such as adding to a batch.
            let _within = self.shared.runtime.enter();
            let mut nobody = Context::from_waker(Waker::noop());
            if let Poll::Ready(output) = future.as_mut().poll(&mut nobody) {
                return output;
            }
        }
        let _call = Call::begin(&self.shared);
        if self.busy_poll.is_zero() || self.looks.swap(true, Ordering::Acquire) {
            return self.shared.runtime.block_on(future);
        }
        let _looks = Looks(&self.looks);
        self.shared.runtime.block_on(looking(future, self.busy_poll))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.callers().is_over = true;
        self.shared.ended.notify_all();
        self.shared.leave.notify_one();
        // The runtime may drop this, in a task on that thread.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread does not panic, and the error could not be reported.
            let _ = thread.join();
        }
    }
}

/// The busy-polling call, until this is dropped.
struct Looks<'a>(&'a AtomicBool);

impl Drop for Looks<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Waits for a future, without sleeping for the given time.
async fn looking<F: Future>(mut future: Pin<&mut F>, time: Duration) -> F::Output {
    let begin = Instant::now();
    while begin.elapsed() < time {
        let looked = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await;
        if let Poll::Ready(output) = looked {
            return output;
        }
        // Lets the runtime poll its sockets and tasks.
        tokio::task::yield_now().await;
    }
    future.await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn driver() -> Driver {
        Driver::new(Duration::from_micros(100)).expect("there are threads")
    }

    #[test]
    fn what_is_ready_and_what_is_not_is_waited_for() {
        let driver = driver();
        assert_eq!(driver.wait(async { 1 }), 1);
        let late = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            2
        };
        assert_eq!(driver.wait(late), 2);
    }

    #[test]
    fn tasks_go_on_while_nobody_calls() {
        let driver = driver();
        let steps = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&steps);
        driver.wait(async move {
            tokio::spawn(async move {
                for _ in 0..10 {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    counted.fetch_add(1, Ordering::SeqCst);
                }
            });
        });
        while steps.load(Ordering::SeqCst) < 10 {
            std::thread::yield_now();
        }
    }

    #[test]
    fn threads_call_at_the_same_time() {
        let driver = Arc::new(driver());
        let (sender, _) = tokio::sync::broadcast::channel(64);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|number: u32| {
                    let (driver, sender) = (Arc::clone(&driver), sender.clone());
                    let mut receiver = sender.subscribe();
                    scope.spawn(move || {
                        let mut sum = 0;
                        for round in 0..10 {
                            driver.wait(async { tokio::time::sleep(Duration::from_millis(1)).await });
                            sender.send(number * 100 + round).expect("somebody hears");
                        }
                        drop(sender);
                        for _ in 0..40 {
                            sum += driver.wait(receiver.recv()).expect("nothing is lost");
                        }
                        sum
                    })
                })
                .collect();
            for thread in threads {
                let sum = thread.join().expect("nobody fails");
                assert_eq!(sum, (100 + 200 + 300) * 10 + 4 * 45);
            }
        });
    }

    #[test]
    fn a_driver_ends_while_its_tasks_wait() {
        let driver = driver();
        driver.wait(async {
            tokio::spawn(std::future::pending::<()>());
        });
        std::thread::sleep(2 * LINGER);
        let shared = Arc::downgrade(&driver.shared);
        drop(driver);
        assert_eq!(shared.strong_count(), 0);
    }
}
