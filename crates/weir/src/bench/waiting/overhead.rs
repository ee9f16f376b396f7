//! What it costs the worker to let a packet wait, without the extern, beside stackful coroutines
//! and user contexts.
#![allow(
    clippy::vec_box,
    reason = "packets move between lists as pointers, as the jobs of a switch do"
)]

use super::super::measure::median;
use super::figures::{Figure, How};
use super::program::{Bench, Work};
use super::rig::{Mode, Rig, SETTLED};
use anyhow::{Context, Result, anyhow};
use serde_json::json;
use std::collections::VecDeque;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;
use weir_baseline::coroutine::{Coroutines, Waiting};
use weir_baseline::ucontext::Handler;
use weir_lanes::{Lane, LaneConfig, LaneOptions, Pool, Port, Service};
use weir_switch::cycles;

/// Vectors per run.
const VECTORS: usize = 1000;
/// Sizes of vectors.
const SIZES: [usize; 2] = [32, 64];
/// Bytes of a packet.
const SIZE: usize = 64;
/// User contexts per run: each takes a thousand cycles and more.
const CONTEXTS: u64 = 500;
/// Cycles of user contexts as measured once (facts/dataplane.md, section 5), where there are none.
const PUBLISHED: &str = "2,795";

/// A packet that a coroutine has handed over.
struct Packet {
    bytes: [u8; SIZE],
    outcome: u64,
}

impl Default for Packet {
    fn default() -> Self {
        Packet {
            bytes: [0; SIZE],
            outcome: 0,
        }
    }
}

/// An extern without work.
struct Nothing(usize);

impl Service<Box<Packet>> for Nothing {
    fn process(&self, jobs: &mut [Box<Packet>]) {
        for job in jobs {
            job.outcome = job.bytes[0].into();
        }
    }

    fn thread_started(&self, _: usize) {
        // Without a core of its own, it is only slower.
        let _ = weir_io::pin_to_core(self.0);
    }
}

/// Packets in coroutines, over the same rings as weir's.
struct InCoroutines {
    _lane: Lane<Box<Packet>>,
    port: Port<Box<Packet>>,
    pool: Pool<Packet>,
    coroutines: Coroutines,
    waiting: VecDeque<Waiting>,
    done: Vec<Box<Packet>>,
}

impl InCoroutines {
    fn new(core: usize) -> Result<Self> {
        let options = LaneOptions {
            name: "weir-coroutines".to_owned(),
            ..LaneOptions::default()
        };
        let config = LaneConfig::new(options)?;
        let depth = config.depth();
        let (lane, mut ports) = Lane::start(config, Arc::new(Nothing(core)), 1)?;
        std::thread::sleep(SETTLED);
        Ok(InCoroutines {
            _lane: lane,
            port: ports.pop().ok_or_else(|| anyhow!("a lane without ports"))?,
            pool: Pool::new(depth, Packet::default),
            coroutines: Coroutines::new(depth).context("stacks for coroutines")?,
            waiting: VecDeque::with_capacity(depth),
            done: Vec::with_capacity(depth),
        })
    }

    /// As [`Rig::unhurried`].
    fn unhurried(&mut self, vectors: usize, vector: usize) -> f64 {
        const PAUSE: u64 = 500;
        let packet = black_box([7u8; SIZE]);
        let mut took = 0;
        for number in 0..vectors {
            let start = cycles();
            for key in 0..vector as u64 {
                let (Some(mut job), Some((waiting, call))) = (self.pool.take(), self.coroutines.start(key)) else {
                    break;
                };
                job.bytes = black_box(packet);
                job.outcome = call;
                self.waiting.push_back(waiting);
                if let Err(job) = self.port.submit(job, 0) {
                    self.done.push(job);
                }
            }
            self.port.flush();
            took += cycles().wrapping_sub(start);
            let pause = cycles();
            while cycles().wrapping_sub(pause) < PAUSE * vector as u64 {
                std::hint::spin_loop();
            }
            let start = cycles();
            self.collect();
            took += cycles().wrapping_sub(start);
            if number % 64 == 0 {
                let lost = self.port.check(std::time::Instant::now());
                debug_assert!(lost.is_empty());
            }
        }
        while self.port.in_flight() > 0 {
            self.collect();
        }
        took as f64 / (vectors * vector) as f64
    }

    fn collect(&mut self) {
        self.port.complete(&mut self.done);
        for job in self.done.drain(..) {
            // One thread executes all, so they come back in order.
            if let Some(waiting) = self.waiting.pop_front() {
                black_box(self.coroutines.finish(waiting, job.outcome));
            }
            black_box(job.bytes);
            self.pool.put(job);
        }
    }
}

/// Cycles per packet of coroutines alone: make, run, suspend, resume, finish.
fn coroutines_alone(coroutines: &mut Coroutines, waiting: &mut Vec<Waiting>, vector: usize) -> f64 {
    let start = cycles();
    for _ in 0..VECTORS {
        waiting.extend((0..vector as u64).filter_map(|key| Some(coroutines.start(key)?.0)));
        for one in waiting.drain(..) {
            black_box(coroutines.finish(one, 1));
        }
    }
    cycles().wrapping_sub(start) as f64 / (VECTORS * vector) as f64
}

/// Cycles per packet of user contexts.
fn contexts(handler: &mut Handler) -> f64 {
    let start = cycles();
    for _ in 0..CONTEXTS {
        black_box(handler.packet());
    }
    cycles().wrapping_sub(start) as f64 / CONTEXTS as f64
}

/// The table.
pub fn overhead(how: &How) -> Result<Figure> {
    let bench = Bench::new(Work::Cycles(0))?;
    let rig = |mode| -> Result<Rig> {
        let mut rig = Rig::new(mode, &bench, how.vector, how.cores.lane, None)?;
        rig.prepare(100, Work::Cycles(0))?;
        Ok(rig)
    };
    let mut rigs = [rig(Mode::NoExtern)?, rig(Mode::Inline)?, rig(Mode::Async)?];
    let mut in_coroutines = InCoroutines::new(how.cores.lane)?;
    let mut alone = (Coroutines::new(SIZES[1])?, Vec::with_capacity(SIZES[1]));
    let mut handler = Handler::new();
    let mut text = "Overhead: cycles of the worker per packet that waits, without the extern\n  \
                    vector   weir  coroutine, same rings  coroutine alone  ucontext  round trip\n"
        .to_owned();
    let mut json = Vec::new();
    for vector in SIZES {
        crate::output::message(format!("Overhead: vectors of {vector}"));
        let (mut weir, mut rings, mut stackful, mut user, mut trips) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for rig in &mut rigs {
            rig.unhurried(VECTORS, vector);
        }
        let mut inline = Vec::new();
        for _ in 0..how.runs {
            let [none, called, waited] = rigs.each_mut().map(|rig| rig.unhurried(VECTORS, vector));
            weir.push(waited - none);
            inline.push(called - none);
            rings.push(in_coroutines.unhurried(VECTORS, vector));
            stackful.push(coroutines_alone(&mut alone.0, &mut alone.1, vector));
            user.extend(handler.as_mut().map(contexts));
            trips.push(how.cores.round_trip());
        }
        let medians = [&weir, &rings, &stackful].map(|runs| median(runs));
        let [waits, with_rings, on_stacks] = medians;
        let contexts = match user.is_empty() {
            false => format!("{:.0}", median(&user)),
            true => format!("{PUBLISHED} (not measured here)"),
        };
        let _ = writeln!(
            text,
            "  {vector:>6} {waits:>6.1} {with_rings:>22.1} {on_stacks:>16.1} {contexts:>9} {:>8.0} ns   \
             (inline call: {:.1})",
            median(&trips),
            median(&inline)
        );
        json.push(json!({
            "vector": vector,
            "cycles": waits,
            "runs": weir,
            "inline_call_cycles": median(&inline),
            "coroutine_same_rings_cycles": with_rings,
            "coroutine_alone_cycles": on_stacks,
            "ucontext_cycles": (!user.is_empty()).then(|| median(&user)),
            "round_trip_ns": median(&trips),
        }));
    }
    Ok(Figure {
        name: "overhead",
        text,
        json: json.into(),
        plots: Vec::new(),
    })
}
