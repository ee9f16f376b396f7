//! The thread that writes results to a file, so that reception does not wait for the disk.

use super::clickhouse::ClickHouse;
use anyhow::{Context, Result, anyhow};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_collector::{FlowSummary, Interval};
use weir_store::Store;

/// Intervals that wait to be written; when there are more, collecting waits.
const QUEUE: usize = 4;

/// Writes intervals.
pub struct Writer {
    sender: Option<SyncSender<(Interval, Vec<FlowSummary>)>>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Writer {
    /// Opens the file, if there is one; `None` for `retention`: nothing is deleted.
    pub fn start(path: Option<&Path>, retention: Option<Duration>, mut clickhouse: ClickHouse) -> Result<Self> {
        let mut store = path.map(Store::create).transpose()?;
        let name = path.map_or(String::new(), |path| path.display().to_string());
        let (sender, intervals) = sync_channel::<(Interval, Vec<FlowSummary>)>(QUEUE);
        let body = move || {
            for (interval, flows) in intervals {
                clickhouse.write(&interval, &flows);
                let Some(store) = &mut store else {
                    continue;
                };
                let written = store.write(&interval, &flows);
                written.with_context(|| format!("{name}: results of an interval are not written"))?;
                if let Some(retention) = retention {
                    let oldest = interval.end.saturating_sub(super::nanoseconds(retention));
                    store.delete_before(oldest).with_context(|| name.clone())?;
                }
            }
            Ok(())
        };
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn(body);
        Ok(Writer {
            sender: Some(sender),
            thread: Some(thread.context("cannot start a thread")?),
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

    /// Waits until all is written.
    pub fn finish(&mut self) -> Result<()> {
        self.sender = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(anyhow!("the thread that writes results has failed")),
            None => Ok(()),
        }
    }
}
