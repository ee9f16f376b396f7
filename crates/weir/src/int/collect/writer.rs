//! The thread that writes results to a file, so that reception does not wait for the disk.

use super::clickhouse::ClickHouse;
use crate::output::Messages;
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_collector::{FlowSummary, Interval};
use weir_store::{Store, StoreError};

/// Intervals that wait to be written; when there are more, collecting waits.
const QUEUE: usize = 4;

type Results = (Interval, Vec<FlowSummary>);

/// Writes intervals.
pub struct Writer {
    sender: Option<SyncSender<Results>>,
    thread: Option<JoinHandle<()>>,
    unwritten: Arc<AtomicU64>,
}

impl Writer {
    /// Opens the file, if there is one; `None` for `retention`: nothing is deleted.
    pub fn start(
        path: Option<&Path>,
        retention: Option<Duration>,
        clickhouse: ClickHouse,
        messages: &Messages,
    ) -> Result<Self> {
        let file = path.map(|path| File::create(path, retention, messages)).transpose()?;
        let unwritten = file.as_ref().map(|file| Arc::clone(&file.unwritten));
        let (sender, intervals) = sync_channel(QUEUE);
        let body = move || write_all(&intervals, file, clickhouse);
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(body);
        Ok(Writer {
            sender: Some(sender),
            thread: Some(thread.context("cannot start a thread")?),
            unwritten: unwritten.unwrap_or_default(),
        })
    }

    /// Has an interval written.
    pub fn write(&mut self, interval: Interval, flows: Vec<FlowSummary>) -> Result<()> {
        let Some(sender) = &self.sender else {
            return Ok(());
        };
        match sender.send((interval, flows)) {
            Ok(()) => Ok(()),
            // The thread has ended, and says why.
            Err(_) => self.finish(),
        }
    }

    /// Intervals whose results could not be written.
    pub fn unwritten(&self) -> u64 {
        self.unwritten.load(Ordering::Relaxed)
    }

    /// Waits until all is written.
    pub fn finish(&mut self) -> Result<()> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(_)) => Err(anyhow!("the thread that writes results has failed")),
            Some(Ok(())) | None => Ok(()),
        }
    }
}

fn write_all(intervals: &Receiver<Results>, mut file: Option<File>, mut clickhouse: ClickHouse) {
    for (interval, flows) in intervals {
        clickhouse.write(&interval, &flows);
        if let Some(file) = &mut file {
            file.write(&interval, &flows);
        }
    }
}

/// The file of results. A disk that is full for a time does not end a collection.
struct File {
    store: Store,
    name: String,
    retention: Option<Duration>,
    messages: Messages,
    unwritten: Arc<AtomicU64>,
    /// The last interval was not written: it is said once.
    is_failing: bool,
}

impl File {
    fn create(path: &Path, retention: Option<Duration>, messages: &Messages) -> Result<Self> {
        Ok(File {
            store: Store::create(path)?,
            name: path.display().to_string(),
            retention,
            messages: messages.clone(),
            unwritten: Arc::default(),
            is_failing: false,
        })
    }

    fn write(&mut self, interval: &Interval, flows: &[FlowSummary]) {
        // Old results first: they may free the pages that the new ones need.
        let deleted = self.delete_old(interval);
        let written = self.store.write(interval, flows);
        if written.is_err() {
            self.unwritten.fetch_add(1, Ordering::Relaxed);
        }
        match written.and(deleted) {
            Ok(()) if self.is_failing => {
                self.is_failing = false;
                self.messages.line(format!("{}: results are written again", self.name));
            }
            Err(error) if !self.is_failing => {
                self.is_failing = true;
                self.messages.line(format!(
                    "{}: results of an interval are not written: {error}",
                    self.name
                ));
            }
            Ok(()) | Err(_) => {}
        }
    }

    fn delete_old(&mut self, interval: &Interval) -> Result<(), StoreError> {
        let Some(retention) = self.retention else {
            return Ok(());
        };
        let oldest = interval.end.saturating_sub(super::nanoseconds(retention));
        self.store.delete_before(oldest)
    }
}
