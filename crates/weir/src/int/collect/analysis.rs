//! One collector in this thread, or several in threads of their own.

use anyhow::{Context, Result, anyhow};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use weir_collector::{
    Clocks, Collector, Config, FlowSummary, Interval, LinkMinimum, Reception, Share, estimate_clocks,
};

/// Batches that wait for a thread; when there are more, datagrams stay with the kernel.
const QUEUE: usize = 256;

/// Bytes of a batch from which on it goes to its thread.
const BATCH_BYTES: usize = 16 * 1024;

/// What takes reports.
pub enum Analysis {
    /// One collector.
    One(Box<Collector>),
    /// Several, each with its flows.
    Several(Box<Several>),
}

/// Collectors in threads.
pub struct Several {
    reception: Reception,
    threads: Vec<SyncSender<Work>>,
    /// What is not sent yet, for each thread.
    pending: Vec<Datagrams>,
    results: Receiver<(Interval, Vec<FlowSummary>)>,
    /// Whether offsets of clocks are estimated.
    estimates: bool,
    start: u64,
}

/// Datagrams in one piece of memory.
#[derive(Default)]
struct Datagrams {
    bytes: Vec<u8>,
    /// From where, and the end in `bytes`.
    ends: Vec<(IpAddr, usize)>,
}

enum Work {
    Datagrams(u64, Datagrams),
    End(u64),
    /// What all threads know of differences of timestamps.
    Clocks(Arc<Vec<LinkMinimum>>),
}

impl Analysis {
    /// Starts threads if there is more than one.
    pub fn start(config: Config, threads: usize) -> Result<Self> {
        if threads <= 1 {
            return Ok(Analysis::One(Box::new(Collector::new(config))));
        }
        let shares = Share::of(threads);
        let reception = shares.first().map(|share| Reception::new(&config, share.clone()));
        let reception = reception.context("no threads")?;
        let estimates = config.clocks == Clocks::Estimated;
        let config = Config {
            clocks: if estimates { Clocks::Given } else { config.clocks },
            max_flows: config.max_flows.div_ceil(threads),
            ..config
        };
        let (sender, results) = channel();
        let start = |(at, share)| {
            let config = Config {
                share: Some(share),
                ..config.clone()
            };
            start_thread(at, config, sender.clone())
        };
        let threads: Vec<_> = shares.into_iter().enumerate().map(start).collect::<Result<_>>()?;
        Ok(Analysis::Several(Box::new(Several {
            reception,
            pending: threads.iter().map(|_| Datagrams::default()).collect(),
            threads,
            results,
            estimates,
            start: 0,
        })))
    }

    /// Takes datagrams.
    pub fn take(&mut self, now: u64, datagrams: &[(IpAddr, &[u8])]) -> Result<()> {
        match self {
            Analysis::One(collector) => {
                collector.take_batch(now, datagrams);
                Ok(())
            }
            Analysis::Several(several) => several.take(now, datagrams),
        }
    }

    /// What an interval brought.
    pub fn end_interval(&mut self, now: u64) -> Result<(Interval, Vec<FlowSummary>)> {
        match self {
            Analysis::One(collector) => {
                let mut flows = Vec::new();
                let interval = collector.end_interval(now, |flow| flows.push(flow));
                Ok((interval, flows))
            }
            Analysis::Several(several) => several.end_interval(now),
        }
    }
}

fn start_thread(at: usize, config: Config, results: Sender<(Interval, Vec<FlowSummary>)>) -> Result<SyncSender<Work>> {
    let (sender, work) = sync_channel(QUEUE);
    let body = move || {
        let mut collector = Collector::new(config);
        while let Ok(work) = work.recv() {
            match work {
                Work::Datagrams(now, datagrams) => collector.take_batch(now, &datagrams.list()),
                Work::Clocks(minima) => collector.set_clocks(&minima),
                Work::End(now) => {
                    let mut flows = Vec::new();
                    let interval = collector.end_interval(now, |flow| flows.push(flow));
                    if results.send((interval, flows)).is_err() {
                        return;
                    }
                }
            }
        }
    };
    std::thread::Builder::new()
        .name(format!("collector-{at}"))
        .spawn(body)
        .context("cannot start a thread")?;
    Ok(sender)
}

impl Datagrams {
    fn push(&mut self, from: IpAddr, datagram: &[u8]) {
        self.bytes.extend(datagram);
        self.ends.push((from, self.bytes.len()));
    }

    fn list(&self) -> Vec<(IpAddr, &[u8])> {
        let mut start = 0;
        let part = |&(from, end): &(IpAddr, usize)| {
            let bytes = self.bytes.get(start..end).unwrap_or_default();
            start = end;
            (from, bytes)
        };
        self.ends.iter().map(part).collect()
    }
}

impl Several {
    fn take(&mut self, now: u64, datagrams: &[(IpAddr, &[u8])]) -> Result<()> {
        for (from, datagram) in datagrams {
            let owners = self.reception.take(now, *from, datagram);
            for (at, pending) in self.pending.iter_mut().enumerate() {
                if owners >> at & 1 == 1 {
                    pending.push(*from, datagram);
                }
            }
        }
        for at in 0..self.threads.len() {
            if self.pending[at].bytes.len() >= BATCH_BYTES {
                self.send(at, now)?;
            }
        }
        Ok(())
    }

    fn send(&mut self, at: usize, now: u64) -> Result<()> {
        let datagrams = std::mem::take(&mut self.pending[at]);
        let sent = self.threads[at].send(Work::Datagrams(now, datagrams));
        sent.map_err(|_| anyhow!("the thread of collector {at} has ended"))
    }

    fn end_interval(&mut self, now: u64) -> Result<(Interval, Vec<FlowSummary>)> {
        for at in 0..self.threads.len() {
            self.send(at, now)?;
            let sent = self.threads[at].send(Work::End(now));
            sent.map_err(|_| anyhow!("the thread of collector {at} has ended"))?;
        }
        let mut all = self.reception.end_interval(self.start, now);
        self.start = now;
        let mut flows = Vec::new();
        for _ in 0..self.threads.len() {
            let (interval, of_thread) = self.results.recv().context("a collector's thread has ended")?;
            all.merge(interval);
            flows.extend(of_thread);
        }
        if self.estimates {
            all.clocks = estimate_clocks(&all.minima);
            let minima = Arc::new(std::mem::take(&mut all.minima));
            for thread in &self.threads {
                let sent = thread.send(Work::Clocks(Arc::clone(&minima)));
                sent.map_err(|_| anyhow!("a collector's thread has ended"))?;
            }
        }
        Ok((all, flows))
    }
}
