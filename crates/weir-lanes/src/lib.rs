//! Where slow extern calls run: threads and devices beside the packet workers.
//!
//! A *job* is whatever a worker hands over: it holds its own inputs and outputs. A [`Lane`] is one
//! or more threads that execute jobs with a [`Service`]. Each worker has a [`Port`] to it:
//! it submits jobs, and later collects those that are completed. A [`Device`] that takes jobs and
//! completes them later, such as a GPU or a crypto card, stands behind the same type.
//!
//! Worker and lane thread share two single-producer single-consumer rings, one per direction, and
//! no lock. Jobs cross them in batches, with one release store per batch.
//!
//! Every job that a port accepts is either completed once or reported once as [`Lost`]: after a
//! panic of the service, and when a thread hangs or ends and [`Port::check`] replaces it.
//!
//! Three parts are independent of the rings: a [`Sequencer`] restores the order of submission, a
//! [`Pool`] recycles the objects that jobs are made of, and a [`CostModel`] chooses between
//! execution on the worker and hand-over.
//!
//! This crate knows no program, no packet and no switch. It reads no clock on behalf of a port:
//! the time is handed in.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Instant;
//! use weir_lanes::{Lane, LaneConfig, LaneOptions, Service};
//!
//! struct Square;
//!
//! impl Service<Box<u64>> for Square {
//!     fn process(&self, jobs: &mut [Box<u64>]) {
//!         for job in jobs {
//!             **job *= **job;
//!         }
//!     }
//! }
//!
//! let options = LaneOptions { name: "square".into(), ..LaneOptions::default() };
//! let config = LaneConfig::new(options)?;
//! let (_lane, mut ports) = Lane::start(config, Arc::new(Square), 1)?;
//! let port = &mut ports[0];
//! for number in 1..=3 {
//!     port.submit(Box::new(number), 0).expect("the lane has room");
//! }
//! port.flush();
//! let mut done = Vec::new();
//! while done.len() < 3 {
//!     port.complete(&mut done);
//!     assert!(port.check(Instant::now()).is_empty());
//!     std::thread::yield_now();
//! }
//! assert_eq!(done, [1, 4, 9].map(Box::new));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod config;
mod cost;
mod counters;
mod lane;
mod link;
#[cfg(all(loom, test))]
mod models;
mod padded;
mod policy;
mod pool;
mod port;
mod sequencer;
mod signal;
mod thread;
mod watch;

pub use config::{ConfigError, LaneConfig, LaneOptions};
pub use cost::{Choice, CostConfig, CostModel, Mode, Reason};
pub use counters::Counters;
pub use lane::{Lane, StartError};
pub use policy::{FullPolicy, UnknownPolicy};
pub use pool::Pool;
pub use port::{Lost, Port};
pub use sequencer::{Order, Sequencer, Ticket};

/// Executes jobs on the threads of a lane.
///
/// Calls come from several threads at once if the lane has several.
pub trait Service<J>: Send + Sync {
    /// Executes a batch in place, in any order. The jobs are of one worker, in the order in which
    /// it submitted them.
    fn process(&self, jobs: &mut [J]);

    /// Whether this job of a batch that panicked was finished before. The others are lost.
    fn is_finished(&self, job: &J) -> bool {
        let _ = job;
        false
    }

    /// Called on each thread before its first batch, also on replacements: the place to set a
    /// thread's affinity or priority.
    fn thread_started(&self, thread: usize) {
        let _ = thread;
    }
}

/// Takes batches of jobs and completes them later, in any order.
///
/// A [`Port`] calls it on the worker's thread, so no method may block.
pub trait Device<J>: Send {
    /// Takes as many jobs as it can from the front, and leaves the rest.
    fn submit(&mut self, jobs: &mut Vec<J>);

    /// Appends jobs that are completed, each once.
    fn poll(&mut self, done: &mut Vec<J>);

    /// Gives up on every job that it has taken and not returned: it never returns them after this.
    /// Called if the device has completed nothing within the time limit.
    ///
    /// Returns whether it did. A device that cannot keeps its jobs in flight.
    fn reset(&mut self) -> bool {
        false
    }
}
