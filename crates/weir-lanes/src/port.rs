//! A worker's access to a lane or a device.

use crate::Device;
use crate::config::LaneConfig;
use crate::counters::{Counters, SharedCounters};
use crate::lane::{Shared, mean};
use crate::link::{WorkerEnd, receive, send_all};
use crate::padded::Padded;
use crate::watch::Watch;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Jobs that will not be completed.
#[derive(Debug)]
#[must_use = "lost jobs have to be accounted for"]
pub struct Lost<J> {
    /// How many, with those in `returned`.
    pub count: usize,
    /// Those of them that came back without a result: their batch panicked, or it had not been sent
    /// to a thread that was replaced.
    pub returned: Vec<J>,
    /// Threads that were replaced. All that was submitted to them and not collected before the
    /// check is lost.
    pub threads: Vec<usize>,
}

impl<J> Lost<J> {
    fn none() -> Self {
        Lost {
            count: 0,
            returned: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// Whether no job was lost and no thread replaced.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.threads.is_empty()
    }

    /// Jobs that are gone for good: their objects have to be made anew.
    #[must_use]
    pub fn gone(&self) -> usize {
        self.count.saturating_sub(self.returned.len())
    }
}

/// A worker's link with a thread.
struct Link<J> {
    end: WorkerEnd<J>,
    /// The batch that is being filled.
    pending: Vec<J>,
    /// Jobs that were sent and have neither been collected nor counted as lost.
    sent: usize,
    watch: Watch,
    is_closed: bool,
}

impl<J> Link<J> {
    #[inline]
    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        self.sent += send_all(&mut self.end.requests, &mut self.pending);
        self.end.thread.wake();
    }

    #[inline]
    fn complete(&mut self, done: &mut Vec<J>) -> usize {
        let count = receive(&mut self.end.done, usize::MAX, done);
        self.sent -= count;
        if count == 0 && self.sent > 0 {
            self.end.thread.wake();
        }
        count
    }

    /// Whether the thread has to be replaced.
    fn is_dead(&mut self, now: Instant, limit: Duration) -> bool {
        let finished = self.end.done.slots() + self.end.failed.count();
        let progress = self.end.thread.progress();
        self.end.thread.is_gone() || self.watch.is_stalled(now, self.sent > finished, progress, limit)
    }

    /// Gives up on all jobs of this link.
    fn abandon(&mut self, lost: &mut Lost<J>) {
        lost.count += self.sent + self.pending.len();
        lost.returned.append(&mut self.pending);
        self.sent = 0;
        self.watch = Watch::default();
    }
}

/// The threads of a lane, as a worker sees them.
struct Threads<J> {
    shared: Arc<Shared<J>>,
    worker: usize,
    links: Vec<Link<J>>,
}

impl<J: Send + 'static> Threads<J> {
    /// The thread for this hint.
    #[inline]
    fn route(&self, hint: u64) -> usize {
        if self.links.len() == 1 {
            return 0;
        }
        // Spreads hints that differ in few bits, then scales the upper half to the threads.
        let spread = hint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((spread * self.links.len() as u64) >> 32) as usize
    }

    fn check(&mut self, now: Instant, lost: &mut Lost<J>) {
        let limit = self.shared.config.time_limit();
        for (number, link) in self.links.iter_mut().enumerate().filter(|(_, link)| !link.is_closed) {
            link.end.thread.wake_fenced();
            let failed = link.end.failed.take(&mut lost.returned);
            lost.count += failed;
            link.sent -= failed;
            let generation = link.end.generation;
            let is_dead = link.is_dead(now, limit);
            if is_dead {
                self.shared.replace(number, generation);
            }
            let is_replaced = self.shared.generation(number) != generation;
            let is_over = is_dead && self.shared.is_closed();
            if !is_replaced && !is_over {
                continue;
            }
            link.abandon(lost);
            lost.threads.push(number);
            match self.shared.take_end(number, self.worker) {
                Some(end) => link.end = end,
                None => link.is_closed = true,
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.links.iter().any(|link| link.is_closed)
    }

    fn job_time(&self) -> Option<Duration> {
        mean(self.links.iter().filter_map(|link| link.end.thread.job_time()))
    }
}

/// A device, with the batch that is being filled.
struct Attached<J> {
    device: Box<dyn Device<J>>,
    pending: Vec<J>,
    watch: Watch,
    time_limit: Duration,
}

enum Backend<J> {
    Threads(Threads<J>),
    Device(Attached<J>),
}

/// A worker's access to a lane or a device.
///
/// A worker calls [`flush`](Self::flush) and [`complete`](Self::complete) once per round, and
/// [`check`](Self::check) every so often: in intervals below the time limit of the lane. A worker
/// that stops calling `complete` while jobs are in flight, such as to sleep, calls `check` before.
/// Completions do not wake a worker.
pub struct Port<J: Send + 'static> {
    backend: Backend<J>,
    depth: usize,
    /// The load of one job.
    share: f64,
    batch: usize,
    in_flight: usize,
    is_closed: bool,
    counters: Counters,
    published: Arc<Padded<SharedCounters>>,
}

impl<J: Send + 'static> Port<J> {
    pub(crate) fn to_threads(shared: &Arc<Shared<J>>, worker: usize, published: Arc<Padded<SharedCounters>>) -> Self {
        let config = &shared.config;
        let ends = (0..config.threads()).filter_map(|place| shared.take_end(place, worker));
        let links = ends
            .map(|end| Link {
                end,
                pending: Vec::with_capacity(config.batch()),
                sent: 0,
                watch: Watch::default(),
                is_closed: false,
            })
            .collect();
        let threads = Threads {
            shared: Arc::clone(shared),
            worker,
            links,
        };
        Port::new(config, Backend::Threads(threads), published)
    }

    /// A port to a device, with the depth, batch and time limit of this configuration.
    #[must_use]
    pub fn to_device(config: &LaneConfig, device: Box<dyn Device<J>>) -> Self {
        let attached = Attached {
            device,
            pending: Vec::with_capacity(config.depth()),
            watch: Watch::default(),
            time_limit: config.time_limit(),
        };
        Port::new(config, Backend::Device(attached), Arc::default())
    }

    fn new(config: &LaneConfig, backend: Backend<J>, published: Arc<Padded<SharedCounters>>) -> Self {
        Port {
            backend,
            depth: config.depth(),
            share: 1.0 / config.depth() as f64,
            batch: config.batch(),
            in_flight: 0,
            is_closed: false,
            counters: Counters::default(),
            published,
        }
    }

    /// Adds a job to the batch for one of the threads, and sends the batch if it is full. Jobs with
    /// the same hint go to the same thread, which executes and returns them in order.
    ///
    /// # Errors
    /// The job, if `depth` jobs of this port are in flight, or if the lane was dropped.
    #[inline]
    pub fn submit(&mut self, job: J, hint: u64) -> Result<(), J> {
        if self.in_flight >= self.depth {
            return Err(job);
        }
        match &mut self.backend {
            Backend::Threads(threads) => {
                let thread = threads.route(hint);
                let link = &mut threads.links[thread];
                if link.is_closed {
                    return Err(job);
                }
                link.pending.push(job);
                if link.pending.len() >= self.batch {
                    link.flush();
                }
            }
            Backend::Device(attached) => {
                attached.pending.push(job);
                if attached.pending.len() >= self.batch {
                    attached.device.submit(&mut attached.pending);
                }
            }
        }
        self.in_flight += 1;
        self.counters.submitted += 1;
        Ok(())
    }

    /// Sends all batches, full or not.
    #[inline]
    pub fn flush(&mut self) {
        match &mut self.backend {
            Backend::Threads(threads) => threads.links.iter_mut().for_each(Link::flush),
            Backend::Device(attached) => {
                if !attached.pending.is_empty() {
                    attached.device.submit(&mut attached.pending);
                }
            }
        }
        self.published.store(&self.counters);
    }

    /// Appends all jobs that have been completed since the last call. Returns how many.
    #[inline]
    pub fn complete(&mut self, done: &mut Vec<J>) -> usize {
        if self.in_flight == 0 {
            return 0;
        }
        let before = done.len();
        match &mut self.backend {
            Backend::Threads(threads) => {
                for link in &mut threads.links {
                    link.complete(done);
                }
            }
            Backend::Device(attached) => attached.device.poll(done),
        }
        let count = done.len().saturating_sub(before);
        if count > 0 {
            self.in_flight = self.in_flight.saturating_sub(count);
            self.counters.completed += count as u64;
            self.published.store(&self.counters);
        }
        count
    }

    /// Collects jobs whose batch panicked. Replaces threads that have ended, and those that have
    /// made no progress for the time limit while jobs of this port wait. Results that the old
    /// thread still produces are discarded.
    ///
    /// It makes sure that no thread sleeps while jobs wait that were flushed before.
    pub fn check(&mut self, now: Instant) -> Lost<J> {
        let mut lost = Lost::none();
        match &mut self.backend {
            Backend::Threads(threads) => {
                threads.check(now, &mut lost);
                self.is_closed = threads.is_closed();
            }
            Backend::Device(attached) => {
                let (is_waiting, progress) = (self.in_flight > 0, self.counters.completed);
                let is_stalled = attached
                    .watch
                    .is_stalled(now, is_waiting, progress, attached.time_limit);
                if is_stalled && attached.device.reset() {
                    lost.count = self.in_flight;
                    lost.returned.append(&mut attached.pending);
                    lost.threads.push(0);
                    attached.watch = Watch::default();
                }
            }
        }
        if !lost.is_empty() {
            self.in_flight = self.in_flight.saturating_sub(lost.count);
            self.counters.lost += lost.count as u64;
            self.counters.restarts += lost.threads.len() as u64;
            self.published.store(&self.counters);
        }
        lost
    }

    /// The number of the thread for jobs with this hint; 0 with a device.
    #[inline]
    #[must_use]
    pub fn thread_for(&self, hint: u64) -> usize {
        match &self.backend {
            Backend::Threads(threads) => threads.route(hint),
            Backend::Device(_) => 0,
        }
    }

    /// Jobs that were accepted and are neither collected nor lost.
    #[inline]
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Whether another job is accepted.
    #[inline]
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.in_flight < self.depth && !self.is_closed
    }

    /// The fraction of the depth that is in use, from 0 to 1.
    #[inline]
    #[must_use]
    pub fn load(&self) -> f64 {
        self.in_flight as f64 * self.share
    }

    /// Whether the lane was dropped and a check has noticed it. No more jobs are accepted.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Average duration of a job in the service, over threads and a sample of their batches. Not
    /// known of devices.
    #[must_use]
    pub fn service_time(&self) -> Option<Duration> {
        match &self.backend {
            Backend::Threads(threads) => threads.job_time(),
            Backend::Device(_) => None,
        }
    }

    /// Counts of this port. Its restarts are the replacements that it has noticed.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl<J: Send + 'static> fmt::Debug for Port<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Port")
            .field("depth", &self.depth)
            .field("in_flight", &self.in_flight)
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
