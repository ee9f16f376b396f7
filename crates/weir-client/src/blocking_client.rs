//! The blocking client, for threads without an async runtime.

mod driver;

use crate::client::{Config, ConfigAction, DigestConfig};
use crate::encode::{Operation, Template};
use crate::events::{DigestList, Overflow, PacketIn, Standing};
use crate::pipeline::{BULK_BATCH, BULK_IN_FLIGHT};
use crate::{Batch, Entry, Error, Options, Outcome, Schema, Table, Value};
use driver::Driver;
use std::sync::Arc;

/// A [`crate::Client`] whose calls return when they are complete.
///
/// The calling thread does the work of a call, and busy-polls for the answer for a while before it
/// sleeps ([`Options::busy_poll`]). For sequential requests this is the fastest client. A
/// background thread receives notifications between calls. Clones share one connection and one
/// runtime, which one of the calling threads drives. A future given to [`Client::wait`] must
/// therefore not block its thread, or all others wait too. Many writing threads should have a
/// client each.
///
/// Neither calls nor the drop of the last clone may happen within an async runtime: both block, and
/// panic there. Use [`crate::Client`] instead.
///
/// ```no_run
/// use weir_client::{Entry, Options, blocking::Client};
///
/// # fn main() -> Result<(), weir_client::Error> {
/// let client = Client::connect(Options::bfrt("127.0.0.1:50052")?)?;
/// for entry in client.entries(&client.table("forward")?)? {
///     println!("{entry}");
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    inner: crate::Client,
    driver: Arc<Driver>,
}

/// Events of one kind, for threads without an async runtime.
#[derive(Debug)]
pub struct Subscription<T> {
    inner: crate::Subscription<T>,
    // Keeps the thread that receives events alive.
    _driver: Arc<Driver>,
}

impl<T> Subscription<T> {
    /// The next event, if one is queued.
    pub fn try_next(&mut self) -> Option<T> {
        self.inner.try_next()
    }

    /// Events dropped because the queue was full.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.inner.lost()
    }
}

/// Waits for the next event; ends after the client is dropped.
impl<T> Iterator for Subscription<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.inner.blocking_next()
    }
}

impl Client {
    /// See [`crate::Client::connect`].
    ///
    /// # Errors
    /// As there; or no runtime can be started.
    pub fn connect(options: Options) -> Result<Client, Error> {
        let driver = Driver::new(options.busy_poll)?;
        let inner = driver.wait(crate::Client::connect(options))?;
        Ok(Client {
            inner,
            driver: Arc::new(driver),
        })
    }

    /// The async client, for calls without a blocking form.
    #[must_use]
    pub fn inner(&self) -> &crate::Client {
        &self.inner
    }

    /// Waits for a future made with [`Client::inner`].
    pub fn wait<F: Future>(&self, future: F) -> F::Output {
        self.driver.wait(future)
    }

    /// See [`crate::Client::standing`].
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.inner.standing()
    }

    /// See [`crate::Client::schema`].
    #[must_use]
    pub fn schema(&self) -> Arc<Schema> {
        self.inner.schema()
    }

    /// See [`crate::Client::table`].
    ///
    /// # Errors
    /// As there.
    pub fn table(&self, name: &str) -> Result<Arc<Table>, Error> {
        self.inner.table(name)
    }

    /// See [`crate::Client::set_program`].
    ///
    /// # Errors
    /// As there.
    pub fn set_program(&self, config: &Config, action: ConfigAction) -> Result<(), Error> {
        self.wait(self.inner.set_program(config, action))
    }

    /// An empty batch for this target.
    #[must_use]
    pub fn batch(&self) -> Batch {
        self.inner.batch()
    }

    /// See [`crate::Client::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&self, batch: &Batch) -> Result<(), Error> {
        self.wait(self.inner.write(batch))
    }

    /// See [`crate::Client::update`].
    ///
    /// # Errors
    /// As there.
    pub fn update(&self, operation: Operation, entry: &Entry) -> Result<(), Error> {
        self.wait(self.inner.update(operation, entry))
    }

    /// See [`crate::Client::insert`].
    ///
    /// # Errors
    /// As there.
    pub fn insert(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::Insert, entry)
    }

    /// See [`crate::Client::delete`].
    ///
    /// # Errors
    /// As there.
    pub fn delete(&self, entry: &Entry) -> Result<(), Error> {
        self.update(Operation::Delete, entry)
    }

    /// See [`crate::Client::clear`].
    ///
    /// # Errors
    /// As there.
    pub fn clear(&self, table: &Arc<Table>) -> Result<(), Error> {
        self.wait(self.inner.clear(table))
    }

    /// See [`crate::Client::entries`].
    ///
    /// # Errors
    /// As there.
    pub fn entries(&self, table: &Arc<Table>) -> Result<Vec<Entry>, Error> {
        self.wait(self.inner.entries(table))
    }

    /// See [`crate::Client::entry`].
    ///
    /// # Errors
    /// As there.
    pub fn entry(&self, like: &Entry) -> Result<Option<Entry>, Error> {
        self.wait(self.inner.entry(like))
    }

    /// See [`crate::Client::digests`].
    ///
    /// # Errors
    /// As there.
    pub fn digests(
        &self,
        name: &str,
        config: DigestConfig,
        capacity: usize,
        overflow: Overflow,
    ) -> Result<Subscription<DigestList>, Error> {
        let inner = self.wait(self.inner.digests(name, config, capacity, overflow))?;
        Ok(self.subscription(inner))
    }

    /// See [`crate::Client::packets`].
    #[must_use]
    pub fn packets(&self, capacity: usize, overflow: Overflow) -> Subscription<PacketIn> {
        self.subscription(self.inner.packets(capacity, overflow))
    }

    fn subscription<T>(&self, inner: crate::Subscription<T>) -> Subscription<T> {
        Subscription {
            inner,
            _driver: Arc::clone(&self.driver),
        }
    }

    /// See [`crate::Client::packet_out`].
    ///
    /// # Errors
    /// As there.
    pub fn packet_out(&self, payload: Vec<u8>, metadata: &[(&str, Value)]) -> Result<(), Error> {
        self.wait(self.inner.packet_out(payload, metadata))
    }

    /// See [`crate::Client::bulk`].
    pub fn bulk(&self) -> Pipeline {
        self.pipeline(BULK_BATCH, BULK_IN_FLIGHT)
    }

    /// See [`crate::Client::pipeline`].
    pub fn pipeline(&self, batch_size: usize, in_flight: usize) -> Pipeline {
        Pipeline {
            inner: self.inner.pipeline(batch_size, in_flight),
            driver: Arc::clone(&self.driver),
        }
    }
}

/// A [`crate::Pipeline`] with blocking calls.
#[must_use = "what was added last is sent by `finish`"]
pub struct Pipeline {
    inner: crate::Pipeline,
    driver: Arc<Driver>,
}

impl Pipeline {
    /// See [`crate::Pipeline::push`].
    ///
    /// # Errors
    /// As there.
    pub fn push(&mut self, operation: Operation, entry: &Entry) -> Result<(), Error> {
        match self.inner.add(operation, entry)? {
            true => self.driver.wait(self.inner.send()),
            false => Ok(()),
        }
    }

    /// See [`crate::Pipeline::push_numbers`].
    ///
    /// # Errors
    /// As there.
    pub fn push_numbers(&mut self, template: &Template, numbers: &[u128]) -> Result<(), Error> {
        match self.inner.add_numbers(template, numbers)? {
            true => self.driver.wait(self.inner.send()),
            false => Ok(()),
        }
    }

    /// See [`crate::Pipeline::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self) -> Result<Outcome, Error> {
        self.driver.wait(self.inner.finish())
    }
}
