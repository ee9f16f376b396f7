//! The two rings between a worker and a lane thread.
//!
//! A port has at most `depth` jobs in flight and each ring has as many slots, so no ring is ever
//! full.

use crate::thread::ThreadState;
use rtrb::{Consumer, Producer, RingBuffer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs of batches that panicked, for the worker. Off the packet path, so it may lock.
#[derive(Debug)]
pub(crate) struct Failed<J> {
    count: AtomicUsize,
    jobs: Mutex<Vec<J>>,
}

impl<J> Failed<J> {
    fn new() -> Arc<Self> {
        Arc::new(Failed {
            count: AtomicUsize::new(0),
            jobs: Mutex::new(Vec::new()),
        })
    }

    /// Jobs that can be taken.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn put(&self, failed: impl Iterator<Item = J>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        jobs.extend(failed);
        self.count.store(jobs.len(), Ordering::Release);
    }

    /// Moves all jobs to `taken`. Returns how many.
    pub(crate) fn take(&self, taken: &mut Vec<J>) -> usize {
        if self.count() == 0 {
            return 0;
        }
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        self.count.store(0, Ordering::Release);
        let count = jobs.len();
        taken.append(&mut jobs);
        count
    }
}

/// The worker's end.
#[derive(Debug)]
pub(crate) struct WorkerEnd<J> {
    pub(crate) requests: Producer<J>,
    pub(crate) done: Consumer<J>,
    pub(crate) failed: Arc<Failed<J>>,
    /// The thread at the other end.
    pub(crate) thread: Arc<ThreadState>,
    /// The number of this thread among those that had its place.
    pub(crate) generation: u64,
}

/// The lane thread's end.
#[derive(Debug)]
pub(crate) struct ThreadEnd<J> {
    pub(crate) requests: Consumer<J>,
    pub(crate) done: Producer<J>,
    pub(crate) failed: Arc<Failed<J>>,
}

/// Makes the rings between a worker and this thread.
pub(crate) fn link<J>(depth: usize, thread: Arc<ThreadState>, generation: u64) -> (WorkerEnd<J>, ThreadEnd<J>) {
    let (to_thread, requests) = RingBuffer::new(depth);
    let (done, from_thread) = RingBuffer::new(depth);
    let failed = Failed::new();
    let worker = WorkerEnd {
        requests: to_thread,
        done: from_thread,
        failed: Arc::clone(&failed),
        thread,
        generation,
    };
    (worker, ThreadEnd { requests, done, failed })
}

/// Moves all jobs into the ring. They are published together, by one store. Jobs for which the ring
/// has no room stay.
#[inline]
pub(crate) fn send_all<J>(ring: &mut Producer<J>, jobs: &mut Vec<J>) -> usize {
    match ring.write_chunk_uninit(jobs.len()) {
        Ok(chunk) => chunk.fill_from_iter(jobs.drain(..)),
        Err(_) => 0,
    }
}

/// Appends at most `limit` jobs from the ring. Their slots are released together, by one store.
#[inline]
pub(crate) fn receive<J>(ring: &mut Consumer<J>, limit: usize, jobs: &mut Vec<J>) -> usize {
    let count = ring.slots().min(limit);
    if count == 0 {
        return 0;
    }
    match ring.read_chunk(count) {
        Ok(chunk) => {
            jobs.extend(chunk);
            count
        }
        Err(_) => 0,
    }
}
