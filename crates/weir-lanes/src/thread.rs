//! A lane thread: takes batches from its rings, executes them, and sends them back.

use crate::Service;
use crate::link::{ThreadEnd, receive, send_all};
use crate::padded::Padded;
use crate::signal::Signal;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// Empty polls of the rings before an idle thread yields.
const SPINS: u32 = 256;
/// Empty polls before it parks.
const SPINS_AND_YIELDS: u32 = SPINS + 64;
/// One batch in this number is timed.
const TIMING_INTERVAL: u64 = 64;

/// What others see of a lane thread.
#[derive(Debug)]
pub(crate) struct ThreadState {
    signal: Signal,
    /// The thread shall end at its next batch boundary.
    exit: AtomicBool,
    /// The thread has ended.
    is_gone: AtomicBool,
    thread: OnceLock<Thread>,
    work: Padded<Work>,
}

/// What the thread writes after each batch.
#[derive(Debug, Default)]
struct Work {
    /// Batches that are finished.
    batches: AtomicU64,
    /// Average duration of a job, in sixteenths of a nanosecond; 0 before the first sample.
    job_time: AtomicU64,
}

impl ThreadState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(ThreadState {
            signal: Signal::new(),
            exit: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            thread: OnceLock::new(),
            work: Padded::default(),
        })
    }

    /// Wakes the thread if it is seen to be parked.
    #[inline]
    pub(crate) fn wake(&self) {
        self.signal.wake(|| self.unpark());
    }

    /// Wakes the thread unless it will see all that the caller published before.
    pub(crate) fn wake_fenced(&self) {
        self.signal.wake_fenced(|| self.unpark());
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Makes the thread end at its next batch boundary.
    pub(crate) fn stop(&self) {
        self.exit.store(true, Ordering::Relaxed);
        self.wake_fenced();
    }

    fn is_stopped(&self) -> bool {
        self.exit.load(Ordering::Relaxed)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// A number that changes as long as batches are finished.
    pub(crate) fn progress(&self) -> u64 {
        self.work.batches.load(Ordering::Relaxed)
    }

    /// Average duration of a job.
    pub(crate) fn job_time(&self) -> Option<Duration> {
        let sixteenths = self.work.job_time.load(Ordering::Relaxed);
        (sixteenths > 0).then(|| Duration::from_nanos(sixteenths / 16))
    }

    /// Takes a batch of this duration into the average.
    fn count_time(&self, elapsed: Duration, jobs: usize) {
        let sample = (elapsed.as_nanos() * 16 / jobs.max(1) as u128).clamp(1, u128::from(u64::MAX / 16)) as u64;
        let average = match self.work.job_time.load(Ordering::Relaxed) {
            0 => sample,
            old => (old * 7 + sample) / 8,
        };
        self.work.job_time.store(average, Ordering::Relaxed);
    }
}

/// Says that the thread has ended, however it ends.
struct Ending(Arc<ThreadState>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.is_gone.store(true, Ordering::Release);
    }
}

/// A lane thread with its ends of the rings.
pub(crate) struct LaneThread<J> {
    pub(crate) number: usize,
    pub(crate) state: Arc<ThreadState>,
    pub(crate) service: Arc<dyn Service<J>>,
    /// One per worker.
    pub(crate) ends: Vec<ThreadEnd<J>>,
    pub(crate) batch: usize,
}

impl<J> LaneThread<J> {
    /// Serves the rings until it is stopped. Jobs in the rings are dropped then.
    pub(crate) fn run(mut self) {
        let _ending = Ending(Arc::clone(&self.state));
        // It is set here only.
        let _ = self.state.thread.set(std::thread::current());
        // A panic in there is reported by the panic hook. Ending the thread would only repeat it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.service.thread_started(self.number)));
        let mut jobs = Vec::with_capacity(self.batch);
        let mut idle_looks = 0;
        while !self.state.is_stopped() {
            if self.serve_all(&mut jobs) {
                idle_looks = 0;
            } else {
                idle_looks += 1;
                self.idle(&mut idle_looks);
            }
        }
    }

    /// Serves each ring once. Whether there was a job.
    fn serve_all(&mut self, jobs: &mut Vec<J>) -> bool {
        let mut has_served = false;
        for end in &mut self.ends {
            if receive(&mut end.requests, self.batch, jobs) == 0 {
                continue;
            }
            execute(&*self.service, &self.state, end, jobs);
            has_served = true;
            if self.state.is_stopped() {
                break;
            }
        }
        has_served
    }

    /// Spins at first, then lets others run, then sleeps.
    fn idle(&self, looks: &mut u32) {
        if *looks < SPINS {
            std::hint::spin_loop();
        } else if *looks < SPINS_AND_YIELDS {
            std::thread::yield_now();
        } else {
            self.state.signal.park(|| self.is_idle(), std::thread::park);
            *looks = 0;
        }
    }

    fn is_idle(&self) -> bool {
        !self.state.is_stopped() && self.ends.iter().all(|end| end.requests.is_empty())
    }
}

/// Executes a batch and sends it back. `jobs` is empty afterwards.
fn execute<J>(service: &dyn Service<J>, state: &ThreadState, end: &mut ThreadEnd<J>, jobs: &mut Vec<J>) {
    let batches = state.progress();
    let start = batches.is_multiple_of(TIMING_INTERVAL).then(Instant::now);
    let count = jobs.len();
    // A job that a panic left half changed is never executed again, and a service guards its own
    // state.
    if catch_unwind(AssertUnwindSafe(|| service.process(jobs))).is_err() {
        give_back_unfinished(service, end, jobs);
    }
    if let Some(start) = start {
        state.count_time(start.elapsed(), count);
    }
    send_all(&mut end.done, jobs);
    if !jobs.is_empty() {
        end.failed.put(jobs.drain(..));
    }
    state.work.batches.store(batches + 1, Ordering::Relaxed);
}

/// Keeps the finished jobs of a batch that panicked, and returns the others by `failed`.
fn give_back_unfinished<J>(service: &dyn Service<J>, end: &ThreadEnd<J>, jobs: &mut Vec<J>) {
    let is_finished = |job: &mut J| catch_unwind(AssertUnwindSafe(|| service.is_finished(job))).unwrap_or(false);
    end.failed.put(jobs.extract_if(.., |job| !is_finished(job)));
}
