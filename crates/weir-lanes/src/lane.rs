//! The threads of a lane, and their replacement.

use crate::Service;
use crate::config::LaneConfig;
use crate::counters::{Counters, SharedCounters};
use crate::link::{WorkerEnd, link};
use crate::padded::Padded;
use crate::port::Port;
use crate::thread::{LaneThread, ThreadState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fmt, io};
use thiserror::Error;

/// Most threads that were replaced and still hang in the service. Beyond that, a place gets no new
/// thread until one of them has ended.
const MAX_HANGING: usize = 16;

/// Why a lane does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// No worker would have a port.
    #[error("a lane needs at least one worker")]
    NoWorkers,
    /// The system gives no thread.
    #[error("cannot start a thread of lane `{name}`")]
    Thread {
        /// The lane.
        name: String,
        /// The system's reason.
        source: io::Error,
    },
}

/// What lane and ports share. A port touches it only in [`Port::check`].
pub(crate) struct Shared<J> {
    pub(crate) config: LaneConfig,
    service: Arc<dyn Service<J>>,
    workers: usize,
    places: Vec<ThreadSlot<J>>,
    /// The lane has been dropped: nothing is replaced any more.
    is_closed: AtomicBool,
    restarts: AtomicU64,
    /// Threads that were replaced and may still run.
    replaced: Mutex<Vec<Arc<ThreadState>>>,
}

/// The slot of a thread, which the threads that replace it take over.
struct ThreadSlot<J> {
    /// How often the slot's thread was restarted.
    generation: AtomicU64,
    present: Mutex<CurrentThread<J>>,
}

/// The current thread of a slot.
struct CurrentThread<J> {
    state: Arc<ThreadState>,
    /// None if no thread could be started.
    handle: Option<JoinHandle<()>>,
    /// Ends that their workers have not claimed yet.
    unclaimed_ends: Vec<Option<WorkerEnd<J>>>,
}

impl<J> ThreadSlot<J> {
    fn lock(&self) -> MutexGuard<'_, CurrentThread<J>> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Send + 'static> Shared<J> {
    /// Makes the rings of a place, and its thread without starting it.
    fn prepare(&self, number: usize, generation: u64) -> (CurrentThread<J>, LaneThread<J>) {
        let state = ThreadState::new();
        let (workers, ends): (Vec<_>, Vec<_>) = (0..self.workers)
            .map(|_| link(self.config.depth(), Arc::clone(&state), generation))
            .unzip();
        let thread = LaneThread {
            number,
            state: Arc::clone(&state),
            service: Arc::clone(&self.service),
            ends,
            batch: self.config.batch(),
        };
        let present = CurrentThread {
            state,
            handle: None,
            unclaimed_ends: workers.into_iter().map(Some).collect(),
        };
        (present, thread)
    }

    fn spawn(&self, thread: LaneThread<J>) -> io::Result<JoinHandle<()>> {
        let name = format!("{}-{}", self.config.name(), thread.number);
        std::thread::Builder::new().name(name).spawn(move || thread.run())
    }

    /// The number of the present thread among those that had this place.
    pub(crate) fn generation(&self, place: usize) -> u64 {
        self.places[place].generation.load(Ordering::Acquire)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }

    /// Takes the worker's end of the present thread's rings, once.
    pub(crate) fn take_end(&self, place: usize, worker: usize) -> Option<WorkerEnd<J>> {
        self.places[place].lock().unclaimed_ends[worker].take()
    }

    /// Replaces a thread and its rings, unless that has happened since `generation`. The old thread
    /// ends when it can. If no new one can be started, the rings are new all the same: jobs in them
    /// wait for the time limit, and then it is tried again.
    pub(crate) fn replace(&self, place: usize, generation: u64) {
        let current = &self.places[place].generation;
        let mut present = self.places[place].lock();
        if self.is_closed() || current.load(Ordering::Relaxed) != generation {
            return;
        }
        present.state.stop();
        let replaced = present.handle.is_some().then_some(&present.state);
        let may_start = self.count_hanging(replaced) <= MAX_HANGING;
        let (mut next, thread) = self.prepare(place, generation + 1);
        if may_start && let Ok(handle) = self.spawn(thread) {
            next.handle = Some(handle);
            self.restarts.fetch_add(1, Ordering::Relaxed);
        }
        *present = next;
        current.store(generation + 1, Ordering::Release);
    }

    /// Adds a thread to those that were replaced, if there was one. Returns how many of them have
    /// not ended.
    fn count_hanging(&self, thread: Option<&Arc<ThreadState>>) -> usize {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        replaced.extend(thread.map(Arc::clone));
        replaced.retain(|thread| !thread.is_gone());
        replaced.len()
    }
}

/// The threads of a lane. They end when it is dropped.
///
/// Dropping waits for batches in execution, at most for the time limit of the lane; a thread that
/// takes longer ends by itself. Ports of a lane that was dropped accept no jobs.
pub struct Lane<J: Send + 'static> {
    shared: Arc<Shared<J>>,
    published: Vec<Arc<Padded<SharedCounters>>>,
}

impl<J: Send + 'static> Lane<J> {
    /// Starts the threads. Returns one port per worker.
    ///
    /// # Errors
    /// There are no workers, or a thread cannot be started; then the others end.
    pub fn start(
        config: LaneConfig,
        service: Arc<dyn Service<J>>,
        workers: usize,
    ) -> Result<(Self, Vec<Port<J>>), StartError> {
        if workers == 0 {
            return Err(StartError::NoWorkers);
        }
        let mut shared = Shared {
            config,
            service,
            workers,
            places: Vec::new(),
            is_closed: AtomicBool::new(false),
            restarts: AtomicU64::new(0),
            replaced: Mutex::new(Vec::new()),
        };
        let mut threads = Vec::new();
        for number in 0..shared.config.threads() {
            let (present, thread) = shared.prepare(number, 0);
            threads.push(thread);
            shared.places.push(ThreadSlot {
                generation: AtomicU64::new(0),
                present: Mutex::new(present),
            });
        }
        // From here on, dropping the lane stops the threads that were started.
        let lane = Lane {
            shared: Arc::new(shared),
            published: (0..workers).map(|_| Arc::default()).collect(),
        };
        for thread in threads {
            let number = thread.number;
            let handle = lane.shared.spawn(thread).map_err(|source| StartError::Thread {
                name: lane.shared.config.name().to_owned(),
                source,
            })?;
            lane.shared.places[number].lock().handle = Some(handle);
        }
        let ports = lane.published.iter().enumerate();
        let ports = ports
            .map(|(worker, published)| Port::to_threads(&lane.shared, worker, Arc::clone(published)))
            .collect();
        Ok((lane, ports))
    }

    /// Makes a thread end at its next batch boundary; jobs in its rings are lost. For fault
    /// injection. Whether there is a thread of this number.
    ///
    /// The next [`Port::check`] after its end replaces it.
    pub fn kill(&self, thread: usize) -> bool {
        match self.shared.places.get(thread) {
            Some(place) => {
                place.lock().state.stop();
                true
            }
            None => false,
        }
    }

    /// Sums over all ports, and the threads that were replaced. A port publishes its counts when it
    /// flushes, collects or checks.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = Counters {
            restarts: self.shared.restarts.load(Ordering::Relaxed),
            ..Counters::default()
        };
        for published in &self.published {
            published.add_to(&mut sum);
        }
        sum
    }

    /// Average duration of a job in the service, over threads and a sample of their batches.
    #[must_use]
    pub fn service_time(&self) -> Option<Duration> {
        mean(
            self.shared
                .places
                .iter()
                .filter_map(|place| place.lock().state.job_time()),
        )
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &LaneConfig {
        &self.shared.config
    }
}

/// The mean of some durations.
pub(crate) fn mean(times: impl Iterator<Item = Duration>) -> Option<Duration> {
    let (sum, count) = times.fold((Duration::ZERO, 0), |(sum, count), time| (sum + time, count + 1));
    sum.checked_div(count)
}

impl<J: Send + 'static> Drop for Lane<J> {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Release);
        let deadline = Instant::now() + self.shared.config.time_limit();
        let stop = |place: &ThreadSlot<J>| {
            let mut present = place.lock();
            present.state.stop();
            present.handle.take()
        };
        let handles: Vec<_> = self.shared.places.iter().filter_map(stop).collect();
        for handle in handles {
            while !handle.is_finished() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_micros(50));
            }
            if handle.is_finished() {
                // It may have ended by a panic, which the panic hook has reported.
                let _ = handle.join();
            }
        }
    }
}

impl<J: Send + 'static> fmt::Debug for Lane<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lane")
            .field("config", &self.shared.config)
            .field("counters", &self.counters())
            .finish_non_exhaustive()
    }
}
