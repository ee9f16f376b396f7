//! Pipelined writes: many requests in flight, with bounded memory.

use crate::batch::Batch;
use crate::client::Client;
use crate::encode::{Operation, Template};
use crate::entry::Entry;
use crate::error::{Error, UpdateError};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::future::Future;
use std::pin::Pin;

type Sent = Pin<Box<dyn Future<Output = (Batch, Result<(), Error>)> + Send>>;

/// Sends updates in many requests, several of which are in flight. Memory is bounded: adding waits
/// while the allowed number is in flight.
///
/// The target may execute requests that are in flight together in any order. Updates of the same
/// entry need a [`Pipeline::flush`] between them.
///
/// ```no_run
/// # async fn load(client: weir_client::Client, routes: &[weir_client::Entry]) -> Result<(), weir_client::Error> {
/// let mut pipeline = client.bulk();
/// for route in routes {
///     pipeline.insert(route).await?;
/// }
/// let outcome = pipeline.finish().await?;
/// for failed in &outcome.failed {
///     eprintln!("{failed}");
/// }
/// # Ok(()) }
/// ```
#[must_use = "what was added last is sent by `finish`"]
pub struct Pipeline {
    client: Client,
    batch: Batch,
    spare: Vec<Batch>,
    batch_size: usize,
    in_flight: usize,
    sent: FuturesUnordered<Sent>,
    outcome: Outcome,
    added: u64,
    /// The first error of a request as a whole.
    broken: Option<Error>,
}

/// The outcome of the updates of a [`Pipeline`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Updates that succeeded.
    pub done: u64,
    /// Failed updates, in the order in which they were added. Only the first [`MAX_FAILED`] are
    /// kept.
    pub failed: Vec<UpdateError>,
    /// The number of failed updates.
    pub failures: u64,
}

/// Most failed updates that an [`Outcome`] keeps.
pub const MAX_FAILED: usize = 100_000;

/// Updates per request of [`Client::bulk`].
///
/// Large enough that the fixed cost of a request is negligible, small enough that this side encodes
/// one request while the target executes another: see docs/internals/lab-notes.md.
pub const BULK_BATCH: usize = 2500;

/// Requests of [`Client::bulk`] in flight.
pub const BULK_IN_FLIGHT: usize = 4;

impl Client {
    /// A pipeline for large numbers of updates, the fastest way to write them.
    pub fn bulk(&self) -> Pipeline {
        self.pipeline(BULK_BATCH, BULK_IN_FLIGHT)
    }

    /// Sends updates in requests of `batch_size`, up to `in_flight` at a time (each at least 1).
    pub fn pipeline(&self, batch_size: usize, in_flight: usize) -> Pipeline {
        Pipeline {
            batch: self.batch(),
            client: self.clone(),
            spare: Vec::new(),
            batch_size: batch_size.max(1),
            in_flight: in_flight.max(1),
            sent: FuturesUnordered::new(),
            outcome: Outcome::default(),
            added: 0,
            broken: None,
        }
    }
}

impl Pipeline {
    /// Adds an update.
    ///
    /// # Errors
    /// The entry does not fit its table, and is not added. Or a request has failed as a whole, such
    /// as by a broken connection.
    pub async fn push(&mut self, operation: Operation, entry: &Entry) -> Result<(), Error> {
        match self.add(operation, entry)? {
            true => self.send().await,
            false => Ok(()),
        }
    }

    /// Adds an update from a [`Template`].
    ///
    /// # Errors
    /// As for [`Pipeline::push`].
    pub async fn push_numbers(&mut self, template: &Template, numbers: &[u128]) -> Result<(), Error> {
        match self.add_numbers(template, numbers)? {
            true => self.send().await,
            false => Ok(()),
        }
    }

    /// Inserts an entry that must not exist.
    ///
    /// # Errors
    /// As for [`Pipeline::push`].
    pub async fn insert(&mut self, entry: &Entry) -> Result<(), Error> {
        self.push(Operation::Insert, entry).await
    }

    /// Adds an update. Returns whether there are enough for a request, which must then be
    /// [sent](Pipeline::send).
    pub(crate) fn add(&mut self, operation: Operation, entry: &Entry) -> Result<bool, Error> {
        self.batch.push(operation, entry)?;
        Ok(self.added())
    }

    /// As [`Pipeline::add`], from a [`Template`].
    pub(crate) fn add_numbers(&mut self, template: &Template, numbers: &[u128]) -> Result<bool, Error> {
        self.batch.push_numbers(template, numbers)?;
        Ok(self.added())
    }

    fn added(&mut self) -> bool {
        self.added += 1;
        self.batch.len() >= self.batch_size
    }

    /// Sends the added updates when the number in flight permits it.
    pub(crate) async fn send(&mut self) -> Result<(), Error> {
        while self.sent.len() >= self.in_flight {
            self.take().await;
        }
        // Collects completed requests without waiting.
        while let Some(Some((batch, result))) = self.sent.next().now_or_never() {
            self.note(batch, result);
        }
        let next = self.spare.pop().unwrap_or_else(|| self.client.batch());
        let batch = std::mem::replace(&mut self.batch, next);
        let first = self.added - batch.len() as u64;
        let client = self.client.clone();
        self.sent.push(Box::pin(async move {
            let result = client.write_numbered(&batch, first).await;
            (batch, result)
        }));
        // Polls once, so that the request is sent even if the caller does not await anything soon.
        if let Some(Some((batch, result))) = self.sent.next().now_or_never() {
            self.note(batch, result);
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    async fn take(&mut self) {
        if let Some((batch, result)) = self.sent.next().await {
            self.note(batch, result);
        }
    }

    fn note(&mut self, mut batch: Batch, result: Result<(), Error>) {
        let updates = batch.len() as u64;
        match result {
            Ok(()) => self.outcome.done += updates,
            Err(Error::Updates(errors)) => {
                let failures = errors.len() as u64;
                self.outcome.failures += failures;
                self.outcome.done += updates.saturating_sub(failures);
                let room = MAX_FAILED.saturating_sub(self.outcome.failed.len());
                self.outcome.failed.extend(errors.into_iter().take(room));
            }
            Err(error) => {
                self.outcome.failures += updates;
                self.broken.get_or_insert(error);
            }
        }
        batch.clear();
        self.spare.push(batch);
    }

    /// The number of updates added so far.
    #[must_use]
    pub fn added_so_far(&self) -> u64 {
        self.added
    }

    /// Sends the added updates and waits until all are complete.
    ///
    /// # Errors
    /// A request has failed as a whole. Failed updates are no error here: see [`Outcome::failed`].
    pub async fn flush(&mut self) -> Result<(), Error> {
        if !self.batch.is_empty() {
            self.send().await?;
        }
        while !self.sent.is_empty() {
            self.take().await;
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    /// Sends the added updates, waits for all, and returns the outcome.
    ///
    /// # Errors
    /// As for [`Pipeline::flush`].
    pub async fn finish(mut self) -> Result<Outcome, Error> {
        self.flush().await?;
        Ok(self.settle().await)
    }

    /// Waits for the requests in flight, and returns the outcome. Updates that were added but not
    /// sent are discarded.
    pub(crate) async fn settle(mut self) -> Outcome {
        while !self.sent.is_empty() {
            self.take().await;
        }
        self.outcome.failed.sort_by_key(|e| e.index);
        self.outcome
    }
}
