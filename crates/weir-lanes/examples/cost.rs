//! What hand-over costs the worker.
//!
//! `cargo run --release --example cost -p weir-lanes [rounds]`
//!
//! The worker's loop is timed with work of its own per job, with and without hand-over; the
//! difference is the cost. A service that leaves the jobs alone shows the cost of the rings. One
//! that writes to a cache line of each job adds the transfer of this line between the cores.
//!
//! Cycles are those of the frequency in `/proc/cpuinfo`, or nanoseconds without it. On a machine
//! that does other work, run it under `chrt -f 50`. The round trip stands beside each figure,
//! because virtual processors move.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_lanes::{Lane, LaneConfig, LaneOptions, Pool, Port, Service};

/// Jobs per measurement.
const JOBS: usize = 16_384;
/// Dependent multiplications per job that stand for the rest of the worker's work.
const WORK: u32 = 60;
/// Jobs in flight after which the worker collects before it submits.
const AHEAD: usize = 512;

/// A job, as large as the first cache line of a packet's context.
#[derive(Default)]
struct Context {
    words: [u64; 8],
}

type Job = Box<Context>;

/// Leaves the jobs alone.
struct Pass;

impl Service<Job> for Pass {
    fn process(&self, _: &mut [Job]) {}
}

/// Reads and writes a cache line of each job.
struct Touch;

impl Service<Job> for Touch {
    fn process(&self, jobs: &mut [Job]) {
        for job in jobs {
            job.words[1] = job.words[0] + 1;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let rounds: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(9);
    let (scale, unit) = match cycles_per_nanosecond() {
        Some(frequency) => (frequency, "cycles"),
        None => (1.0, "ns"),
    };
    println!("{unit} per job, median (least to most) of {rounds} rounds, and the round trip between cores");
    let services: [(&str, Arc<dyn Service<Job>>); 2] = [("rings", Arc::new(Pass)), ("rings + line", Arc::new(Touch))];
    for (what, service) in services {
        for batch in [1, 8, 32, 64] {
            let mut bench = Bench::start(batch, Arc::clone(&service))?;
            let measure = |_| (bench.measure() * scale, round_trip() * scale);
            let (costs, trips): (Vec<_>, Vec<_>) = (0..rounds.max(1)).map(measure).unzip();
            println!(
                "{what:<12} batch {batch:>2}: {}; round trip {}",
                Spread::of(costs),
                Spread::of(trips)
            );
        }
    }
    Ok(())
}

/// Least, median and most of some figures.
struct Spread([f64; 3]);

impl Spread {
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        Spread([figures[0], figures[figures.len() / 2], figures[figures.len() - 1]])
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Spread([least, median, most]) = self;
        write!(f, "{median:>6.1} ({least:.1} to {most:.1})")
    }
}

/// Cycles of the time stamp counter per nanosecond.
fn cycles_per_nanosecond() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("cpu MHz"))?;
    let megahertz: f64 = line.split(':').nth(1)?.trim().parse().ok()?;
    Some(megahertz / 1000.0)
}

/// Nanoseconds per round trip of a cache line.
fn round_trip() -> f64 {
    const TRIPS: u64 = 5_000;
    let line = AtomicU64::new(0);
    let wait = |value| {
        while line.load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for trip in 0..TRIPS {
                wait(2 * trip + 1);
                line.store(2 * trip + 2, Ordering::Release);
            }
        });
        wait(0);
        let start = Instant::now();
        for trip in 0..TRIPS {
            line.store(2 * trip + 1, Ordering::Release);
            wait(2 * trip + 2);
        }
        per_piece(start.elapsed(), TRIPS as usize)
    })
}

fn per_piece(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

/// A worker with a lane.
struct Bench {
    _lane: Lane<Job>,
    port: Port<Job>,
    pool: Pool<Context>,
    done: Vec<Job>,
    batch: usize,
}

impl Bench {
    fn start(batch: usize, service: Arc<dyn Service<Job>>) -> Result<Self, Box<dyn Error>> {
        let config = LaneConfig::new(LaneOptions {
            name: "cost".to_owned(),
            batch,
            ..LaneOptions::default()
        })?;
        let depth = config.depth();
        let (lane, ports) = Lane::start(config, service, 1)?;
        let mut bench = Bench {
            _lane: lane,
            port: ports.into_iter().next().ok_or("no port")?,
            pool: Pool::new(depth, Context::default),
            done: Vec::with_capacity(depth),
            batch,
        };
        bench.hand_over();
        bench.stay();
        Ok(bench)
    }

    /// Nanoseconds per job for submission, flush and collection.
    fn measure(&mut self) -> f64 {
        let with = self.hand_over();
        let without = self.stay();
        with - without
    }

    /// Nanoseconds per job of the loop that hands jobs over, without waiting for the lane.
    fn hand_over(&mut self) -> f64 {
        let start = Instant::now();
        let mut waited = Duration::ZERO;
        let mut seed = 1;
        for _ in 0..JOBS / self.batch {
            for _ in 0..self.batch {
                seed = work(seed);
                let Some(mut job) = self.pool.take() else { continue };
                job.words[0] = seed;
                if let Err(job) = self.port.submit(job, 0) {
                    self.pool.put(job);
                }
            }
            self.port.flush();
            self.port.complete(&mut self.done);
            self.recycle();
            if self.port.in_flight() > AHEAD {
                waited += self.drain();
            }
        }
        let elapsed = start.elapsed() - waited;
        self.drain();
        per_piece(elapsed, JOBS / self.batch * self.batch)
    }

    /// Nanoseconds per job of the same loop on the worker alone.
    fn stay(&mut self) -> f64 {
        let start = Instant::now();
        let mut seed = 1;
        for _ in 0..JOBS / self.batch {
            for _ in 0..self.batch {
                seed = work(seed);
                let Some(mut job) = self.pool.take() else { continue };
                job.words[0] = seed;
                self.done.push(job);
            }
            self.recycle();
        }
        per_piece(start.elapsed(), JOBS / self.batch * self.batch)
    }

    fn recycle(&mut self) {
        for job in self.done.drain(..) {
            black_box(job.words[0]);
            self.pool.put(job);
        }
    }

    /// Waits for all jobs. Returns how long.
    fn drain(&mut self) -> Duration {
        let start = Instant::now();
        while self.port.in_flight() > 0 {
            if self.port.complete(&mut self.done) == 0 {
                std::hint::spin_loop();
            }
            self.recycle();
        }
        start.elapsed()
    }
}

/// Work that takes a few hundred cycles.
#[inline(never)]
fn work(seed: u64) -> u64 {
    (0..WORK).fold(seed, |value, _| {
        black_box(value).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1
    })
}
