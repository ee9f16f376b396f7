//! A device behind a port. A thread stands in the device's place: it takes requests from a queue,
//! as a crypto card does from its descriptor ring, and completes them in another order.
//!
//! `cargo run --release --example device -p weir-lanes`
#![allow(clippy::print_stdout)]

use std::collections::VecDeque;
use std::error::Error;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Instant;
use weir_lanes::{ConfigError, Device, LaneConfig, LaneOptions, Order, Port, Sequencer, Ticket};

/// Requests that the queue of the device holds.
const QUEUE: usize = 16;

struct Request {
    ticket: Ticket,
    number: u64,
    square: u64,
}

type Job = Box<Request>;

/// The driver: the worker's side of the device.
struct Card {
    requests: SyncSender<Vec<Job>>,
    completions: Receiver<Job>,
}

impl Card {
    /// Starts the thread that acts as the hardware.
    fn start() -> Self {
        let (requests, queue) = sync_channel(QUEUE);
        let (complete, completions) = sync_channel(1024);
        std::thread::spawn(move || run_hardware(&queue, &complete));
        Card { requests, completions }
    }
}

/// Completes the last request of a batch first. Ends when the driver is dropped.
fn run_hardware(queue: &Receiver<Vec<Job>>, completions: &SyncSender<Job>) {
    while let Ok(jobs) = queue.recv() {
        for mut job in jobs.into_iter().rev() {
            job.square = job.number * job.number;
            if completions.send(job).is_err() {
                return;
            }
        }
    }
}

impl Device<Job> for Card {
    fn submit(&mut self, jobs: &mut Vec<Job>) {
        match self.requests.try_send(std::mem::take(jobs)) {
            Ok(()) => {}
            // The queue is full: the port tries again at its next flush.
            Err(TrySendError::Full(refused) | TrySendError::Disconnected(refused)) => *jobs = refused,
        }
    }

    fn poll(&mut self, done: &mut Vec<Job>) {
        loop {
            match self.completions.try_recv() {
                Ok(job) => done.push(job),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return,
            }
        }
    }

    /// A new card in place of the old one, whose results have nowhere to go.
    fn reset(&mut self) -> bool {
        *self = Card::start();
        true
    }
}

fn configure() -> Result<LaneConfig, ConfigError> {
    LaneConfig::new(LaneOptions {
        name: "card".to_owned(),
        depth: 256,
        batch: 8,
        ..LaneOptions::default()
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let config = configure()?;
    let mut port = Port::to_device(&config, Box::new(Card::start()));
    let mut sequencer = Sequencer::new(Order::PerKey, config.depth());
    let mut waiting: VecDeque<u64> = (0..1000).collect();
    let (mut done, mut released, mut out_of_order) = (Vec::new(), Vec::<Job>::new(), 0);
    let mut last_completed = 0;
    while released.len() < 1000 {
        while port.has_room()
            && let Some(number) = waiting.pop_front()
        {
            // All jobs are of one flow.
            let ticket = sequencer
                .issue(1, 0)
                .ok_or("the sequencer is as large as the device is deep")?;
            let request = Request {
                ticket,
                number,
                square: 0,
            };
            port.submit(Box::new(request), 0).map_err(|_| "the port has room")?;
        }
        port.flush();
        port.complete(&mut done);
        for job in done.drain(..) {
            out_of_order += u32::from(job.number < last_completed);
            last_completed = job.number;
            sequencer
                .complete(job.ticket, job, &mut released)
                .map_err(|_| "completed twice")?;
        }
        let lost = port.check(Instant::now());
        if !lost.is_empty() {
            return Err(format!("the device lost {} jobs", lost.count).into());
        }
        // Jobs wait for predecessors in the sequencer, so the port may have room while it has none.
        std::thread::yield_now();
    }
    let is_ordered = released.iter().zip(0..).all(|(job, number)| job.number == number);
    println!("{:?}", port.counters());
    println!("{out_of_order} jobs were completed before a predecessor");
    println!("released in order of submission: {is_ordered}");
    Ok(())
}
