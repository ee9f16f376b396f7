//! A worker's switch with its packets, and how it is driven.

use super::hand_over::Server;
use super::program::{Bench, Packets, Work, fill};
use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weir_lanes::{Lane, LaneConfig, LaneOptions, Port, Service};
use weir_switch::{ExternMode, ExternOptions, Job, JobService, Switch, cycles};

/// Packets that a receive ring holds.
const RING: u64 = 1024;
/// Jobs that a lane takes from a ring at once.
const BATCH: usize = 32;
/// Vectors after which a worker looks whether its lane is alive.
const CHECKED: u64 = 64;
/// Round trips of a cache line per measurement.
const TRIPS: u64 = 2_000;

/// By then a new thread has moved to its processor. It starts on that of the thread that made it,
/// which a real-time thread does not share unless it sleeps.
pub const SETTLED: Duration = Duration::from_micros(500);

/// How calls of the extern are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No packet calls it.
    NoExtern,
    /// On the packet's thread.
    Inline,
    /// On the other core, while the packet's thread waits: the paper's synchronous mode.
    HandOver,
    /// By a lane, while other packets are processed.
    Async,
    /// By measured cost.
    Auto,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::NoExtern => "no extern",
            Mode::Inline => "inline",
            Mode::HandOver => "hand-over",
            Mode::Async => "async",
            Mode::Auto => "auto",
        }
    }
}

/// The two processors of a measurement.
#[derive(Debug, Clone, Copy)]
pub struct Cores {
    /// The packet's.
    pub worker: usize,
    /// The extern's.
    pub lane: usize,
}

impl Cores {
    /// A processor for the extern, and the next ones for workers.
    pub fn find() -> Result<(Vec<usize>, usize)> {
        let mut cores = weir_io::cores();
        anyhow::ensure!(
            cores.len() >= 2,
            "the extern and the packets need a processor each, and this process may use {}: leave out taskset",
            cores.len()
        );
        let lane = cores.remove(0);
        cores.reverse();
        Ok((cores, lane))
    }

    /// Nanoseconds in which a cache line goes to the other core and back.
    pub fn round_trip(self) -> f64 {
        let line = AtomicU64::new(0);
        let ready = AtomicBool::new(false);
        let wait = |value| {
            while line.load(Ordering::Acquire) != value {
                std::hint::spin_loop();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Not pinned, the figure is that of another pair.
                let _ = weir_io::pin_to_core(self.lane);
                ready.store(true, Ordering::Release);
                for trip in 0..TRIPS {
                    wait(2 * trip + 1);
                    line.store(2 * trip + 2, Ordering::Release);
                }
            });
            // It starts on this thread's processor, which a real-time thread does not share.
            while !ready.load(Ordering::Acquire) {
                std::thread::sleep(SETTLED);
            }
            let start = Instant::now();
            for trip in 0..TRIPS {
                line.store(2 * trip + 1, Ordering::Release);
                wait(2 * trip + 2);
            }
            start.elapsed().as_nanos() as f64 / TRIPS as f64
        })
    }
}

/// [`JobService`] on one processor.
struct Pinned(usize);

impl Service<Box<Job>> for Pinned {
    fn process(&self, jobs: &mut [Box<Job>]) {
        JobService.process(jobs);
    }

    fn is_finished(&self, job: &Box<Job>) -> bool {
        JobService.is_finished(job)
    }

    fn thread_started(&self, _: usize) {
        // Without a core of its own, it is only slower.
        let _ = weir_io::pin_to_core(self.0);
    }
}

/// A lane and its ports, one per worker.
pub type LaneAndPorts = (Arc<Lane<Box<Job>>>, Vec<Port<Box<Job>>>);

/// A lane on one processor, with a port per worker.
pub fn lane(workers: usize, depth: usize, core: usize) -> Result<LaneAndPorts> {
    let options = LaneOptions {
        name: "weir-bench".to_owned(),
        depth,
        batch: BATCH.min(depth),
        threads: 1,
        // The host may take the processor away.
        time_limit: Duration::from_secs(10),
    };
    let config = LaneConfig::new(options).context("the lane of the figures")?;
    let (lane, ports) = Lane::start(config, Arc::new(Pinned(core)), workers).context("the lane of the figures")?;
    std::thread::sleep(SETTLED);
    Ok((Arc::new(lane), ports))
}

/// What became of packets in some time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Flow {
    /// Packets that came in.
    pub offered: u64,
    /// Packets that were done: sent, or dropped by the program.
    pub completed: u64,
    /// Packets that were dropped because the lane was full.
    pub full: u64,
    /// Calls of the extern, with those that were dropped.
    pub calls: u64,
    /// Packets for which the receive ring had no room.
    pub overrun: u64,
    pub seconds: f64,
}

impl Flow {
    /// Millions of packets per second that were done.
    pub fn mpps(&self) -> f64 {
        self.completed as f64 / self.seconds / 1e6
    }

    /// Millions of packets per second that were taken in.
    pub fn offered_mpps(&self) -> f64 {
        self.offered as f64 / self.seconds / 1e6
    }

    /// The share of calls that were dropped.
    pub fn dropped(&self) -> f64 {
        self.full as f64 / self.calls.max(1) as f64
    }

    /// The share of packets that were lost on any way.
    pub fn loss(&self) -> f64 {
        (self.full + self.overrun) as f64 / (self.offered + self.overrun).max(1) as f64
    }
}

/// A worker.
pub struct Rig {
    pub mode: Mode,
    pub switch: Switch,
    packets: Packets,
    vector: usize,
    core_of_lane: usize,
    options: ExternOptions,
    started: Instant,
}

impl Rig {
    /// Without a lane. `server` executes the calls of [`Mode::HandOver`], as those of a worker.
    pub fn new(
        mode: Mode,
        bench: &Bench,
        vector: usize,
        core_of_lane: usize,
        server: Option<(&Server, usize)>,
    ) -> Result<Self> {
        let mut externs = crate::externs();
        if let (Mode::HandOver, Some((server, worker))) = (mode, server) {
            externs.function("busy_cycles", server.client(worker));
        }
        let switch = bench.switch(&externs)?;
        Ok(Rig {
            mode,
            switch,
            packets: bench.packets(),
            vector,
            core_of_lane,
            options: ExternOptions {
                mode: match mode {
                    Mode::NoExtern | Mode::Inline | Mode::HandOver => ExternMode::Sync,
                    Mode::Async => ExternMode::Async,
                    Mode::Auto => ExternMode::Auto,
                },
                ..ExternOptions::default()
            },
            started: Instant::now(),
        })
    }

    /// With another policy for a full lane.
    pub fn with_policy(mut self, full: weir_ir::WhenFull) -> Self {
        self.options.full = full;
        self
    }

    /// Prepares for an extern and a percentage of the packets: new lane, new averages.
    pub fn prepare(&mut self, share: u32, work: Work) -> Result<()> {
        if self.options.mode != ExternMode::Sync {
            let (lane, mut ports) = lane(1, self.options.depth, self.core_of_lane)?;
            if let Some(port) = ports.pop() {
                self.attach(port, lane);
            }
        }
        self.fill(share, work)
    }

    /// Has a percentage of the packets call the extern.
    pub fn fill(&mut self, share: u32, work: Work) -> Result<()> {
        let share = if self.mode == Mode::NoExtern { 0 } else { share };
        fill(&mut self.switch, share, work)
    }

    /// Hands calls over by this port.
    pub fn attach(&mut self, port: Port<Box<Job>>, lane: Arc<Lane<Box<Job>>>) {
        self.switch.attach_lane(port, Some(lane), self.options);
    }

    /// Takes packets in as fast as it can.
    pub fn flood(&mut self, duration: Duration) -> Flow {
        self.drive(duration, |_, taken| taken + 64)
    }

    /// Takes packets in that arrive at a rate, in packets per second, at a receive ring.
    pub fn offer(&mut self, rate: f64, duration: Duration) -> Flow {
        self.drive(duration, |elapsed, _| (elapsed.as_secs_f64() * rate) as u64)
    }

    /// `arrived` gives how many packets have arrived by a time, from the time and the number that
    /// was taken in or lost.
    fn drive(&mut self, duration: Duration, arrived: impl Fn(Duration, u64) -> u64) -> Flow {
        let change = self.packets.change();
        let (mut ports, mut frames) = self.packets.frames();
        let (before, waiting) = (self.switch.extern_counts(), self.switch.waiting_for_externs() as u64);
        let mut flow = Flow::default();
        let (start, mut at, mut vectors) = (Instant::now(), 0, 0);
        let base = self.started.elapsed();
        let elapsed = loop {
            let elapsed = start.elapsed();
            if elapsed >= duration {
                break elapsed;
            }
            let now_ns = (base + elapsed).as_nanos() as u64;
            let gone = flow.offered + flow.overrun;
            let mut backlog = arrived(elapsed, gone).saturating_sub(gone);
            if backlog > RING {
                flow.overrun += backlog - RING;
                backlog = RING;
            }
            let count = self.vector.min(frames.len() - at).min(backlog as usize);
            if count > 0 {
                let vector = &mut frames[at..at + count];
                std::hint::black_box(self.switch.forward(&ports[at..at + count], vector, now_ns));
                flow.offered += count as u64;
                at += count;
            }
            if !self.switch.pass_time(now_ns) {
                let out = self.switch.advance(now_ns);
                std::hint::black_box(&out);
                self.switch.recycle(out);
            }
            if at == frames.len() {
                at = 0;
                if change {
                    drop(frames);
                    (ports, frames) = self.packets.frames();
                }
            }
            vectors += 1;
            if vectors % CHECKED == 0 {
                self.switch.check_externs(Instant::now());
            }
        };
        flow.seconds = elapsed.as_secs_f64();
        let counts = self.switch.extern_counts();
        flow.full = counts.full - before.full;
        let lost = counts.lost - before.lost;
        let still = self.switch.waiting_for_externs() as u64;
        flow.completed = (flow.offered + waiting).saturating_sub(still + flow.full + lost);
        flow.calls = counts.inline + counts.handed_over + flow.full - before.inline - before.handed_over;
        flow
    }

    /// Cycles per packet that the worker spends on vectors of this size, when the lane has time to
    /// execute the calls of one before they are collected: the time between is not counted.
    pub fn unhurried(&mut self, vectors: usize, vector: usize) -> f64 {
        /// Cycles per packet for the lane.
        const PAUSE: u64 = 500;
        let (ports, mut frames) = self.packets.frames();
        let (mut took, mut at) = (0, 0);
        let now_ns = self.started.elapsed().as_nanos() as u64;
        for number in 0..vectors {
            if at + vector > frames.len() {
                at = 0;
            }
            let start = cycles();
            std::hint::black_box(
                self.switch
                    .forward(&ports[at..at + vector], &mut frames[at..at + vector], now_ns),
            );
            took += cycles().wrapping_sub(start);
            at += vector;
            let pause = cycles();
            while cycles().wrapping_sub(pause) < PAUSE * vector as u64 {
                std::hint::spin_loop();
            }
            let start = cycles();
            if !self.switch.pass_time(now_ns) {
                let out = self.switch.advance(now_ns);
                std::hint::black_box(&out);
                self.switch.recycle(out);
            }
            took += cycles().wrapping_sub(start);
            if number % CHECKED as usize == 0 {
                self.switch.check_externs(Instant::now());
            }
        }
        took as f64 / (vectors * vector) as f64
    }

    /// Lets packets that wait continue.
    pub fn settle(&mut self) {
        let now_ns = self.started.elapsed().as_nanos() as u64;
        self.switch.settle_externs();
        drop(self.switch.advance(now_ns));
    }
}
