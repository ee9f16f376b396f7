//! Answers of a target, as they come.

use crate::client::Query;
use crate::decode::Page;
use crate::entry::Entry;
use crate::error::Error;
use crate::schema::Schema;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tonic::Streaming;

/// What was asked for, page by page. The target sends no faster than pages are taken, so that
/// millions of entries need the memory of a few pages (where the target sends pages: servers of BF
/// Runtime may send everything in one).
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
    /// [`Error::Updates`] names queries that have failed; pages before that are what the others
    /// gave.
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
    /// As for [`Pages::next`]; or an answer cannot be understood.
    pub async fn collect(mut self) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        while let Some(page) = self.next().await? {
            entries.extend(page.entries()?);
        }
        Ok(entries)
    }
}
