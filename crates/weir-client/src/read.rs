//! The result of a Read, page by page.

use crate::client::Query;
use crate::decode::Page;
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::Schema;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tonic::Streaming;

/// The result of a Read, page by page. By flow control, the target sends no faster than pages are
/// consumed, so that millions of entries need the memory of a few pages. (Servers of BF Runtime
/// other than weir may send everything in one page.)
#[derive(Debug)]
pub struct Pages {
    schema: Arc<Schema>,
    stream: Streaming<Bytes>,
    queries: Vec<Query>,
    patience: Duration,
}

impl Pages {
    pub(crate) fn new(schema: Arc<Schema>, stream: Streaming<Bytes>, queries: Vec<Query>, patience: Duration) -> Pages {
        Pages {
            schema,
            stream,
            queries,
            patience,
        }
    }

    /// The next page; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Updates`] lists the queries that have failed; earlier pages are the results of the
    /// others.
    pub async fn next(&mut self) -> Result<Option<Page>, Error> {
        let message = tokio::time::timeout(self.patience, self.stream.message()).await;
        let message = message.unwrap_or_else(|_| Err(tonic::Status::deadline_exceeded("the target does not go on")));
        match message {
            Ok(Some(bytes)) => Ok(Some(Page::new(&self.schema, bytes))),
            Ok(None) => Ok(None),
            Err(status) => Err(crate::client::read_error(&self.schema, &self.queries, &status)),
        }
    }

    /// All entries.
    ///
    /// # Errors
    /// As for [`Pages::next`]; or an answer is malformed.
    pub async fn collect(mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        while let Some(page) = self.next().await? {
            entries.extend(page.entries()?);
        }
        Ok(entries)
    }
}
