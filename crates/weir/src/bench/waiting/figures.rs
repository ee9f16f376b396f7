//! The paper's figures.

use super::super::measure::{median, ratio};
use super::super::svg::{Line, Plot};
use super::hand_over::Server;
use super::program::{Bench, Work};
use super::rig::{Cores, Flow, Mode, Rig, lane};
use anyhow::{Result, anyhow};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;
use weir_ir::WhenFull;

/// Cycles of the dummy extern.
const COSTS: [u32; 9] = [50, 100, 200, 500, 1000, 2000, 3000, 5000, 10_000];
/// Percentages of the packets that call it.
const SHARES: [u32; 4] = [10, 20, 50, 100];
/// The dummy's cycles in Figure 6.
const RFC2544_CYCLES: u32 = 5000;
/// Jobs that wait at most. The paper's buffer has 1000 places.
pub const DEPTH: usize = 1024;
/// The share of packets that may be lost at a rate without loss.
const NEAR_ZERO: f64 = 1e-3;
/// Steps of the binary search.
const STEPS: u32 = 9;
/// Trials of a rate: the host takes processors away for longer than a receive ring lasts.
const TRIALS: u32 = 3;
/// The first run of a point fills pools and caches.
const FIRST: Duration = Duration::from_millis(15);

/// How to measure.
#[derive(Debug, Clone)]
pub struct How {
    pub run: Duration,
    pub runs: usize,
    pub vector: usize,
    pub cores: Cores,
    /// All processors for workers.
    pub workers: Vec<usize>,
}

/// A table for people, the same for programs, and plots.
pub struct Figure {
    pub name: &'static str,
    pub text: String,
    pub json: Value,
    pub plots: Vec<(String, Plot)>,
}

/// What a mode reached in each run.
#[derive(Debug, Clone)]
struct Series {
    mode: Mode,
    flows: Vec<Flow>,
}

impl Series {
    fn mpps(&self) -> Vec<f64> {
        self.flows.iter().map(Flow::mpps).collect()
    }

    fn offered(&self) -> Vec<f64> {
        self.flows.iter().map(Flow::offered_mpps).collect()
    }

    fn median(&self) -> f64 {
        median(&self.mpps())
    }
}

/// All modes beside each other.
struct Point {
    work: Work,
    share: u32,
    series: Vec<Series>,
    /// Nanoseconds.
    round_trip: f64,
}

impl Point {
    fn of(&self, mode: Mode) -> Option<&Series> {
        self.series.iter().find(|s| s.mode == mode)
    }

    fn mpps(&self, mode: Mode) -> f64 {
        self.of(mode).map_or(f64::NAN, Series::median)
    }

    /// How many times the rate of the other a mode reaches.
    fn ratio(&self, mode: Mode, other: Mode) -> f64 {
        match (self.of(mode), self.of(other)) {
            (Some(one), Some(other)) => ratio(&one.mpps(), &other.mpps()),
            _ => f64::NAN,
        }
    }

    /// The rate of `auto` relative to the best of the others.
    fn auto(&self) -> f64 {
        let others = [Mode::Inline, Mode::HandOver, Mode::Async];
        let best = others
            .into_iter()
            .max_by(|a, b| self.mpps(*a).total_cmp(&self.mpps(*b)));
        best.map_or(f64::NAN, |best| self.ratio(Mode::Auto, best))
    }

    fn json(&self) -> Value {
        let series = self.series.iter().map(|s| {
            let runs: Vec<f64> = s.mpps();
            let dropped: Vec<f64> = s.flows.iter().map(Flow::dropped).collect();
            json!({
                "mode": s.mode.name(),
                "mpps": s.median(),
                "runs": runs,
                "dropped_share_of_calls": median(&dropped),
            })
        });
        json!({
            "extern": self.work.name(),
            "share_percent": self.share,
            "round_trip_ns": self.round_trip,
            "modes": series.collect::<Vec<_>>(),
        })
    }
}

/// Measures a point: modes in turns.
fn point(rigs: &mut [Rig], server: &Server, how: &How, share: u32, work: Work) -> Result<Point> {
    for rig in &mut *rigs {
        rig.prepare(share, work)?;
    }
    let mut series: Vec<Series> = rigs
        .iter()
        .map(|rig| Series {
            mode: rig.mode,
            flows: Vec::with_capacity(how.runs),
        })
        .collect();
    let mut trips = Vec::with_capacity(how.runs);
    for run in 0..how.runs {
        for (rig, series) in rigs.iter_mut().zip(&mut series) {
            server.set_active(rig.mode == Mode::HandOver);
            let warm = if run == 0 { FIRST } else { how.run / 5 };
            rig.flood(warm);
            series.flows.push(rig.flood(how.run));
            rig.settle();
        }
        server.set_active(false);
        trips.push(how.cores.round_trip());
    }
    Ok(Point {
        work,
        share,
        series,
        round_trip: median(&trips),
    })
}

fn server(workers: usize, how: &How) -> Result<Server> {
    let inner = crate::externs();
    let inner = inner
        .find_function("busy_cycles")
        .ok_or_else(|| anyhow!("there is no extern `busy_cycles`"))?;
    Ok(Server::start(Arc::clone(inner), workers, how.cores.lane)?)
}

fn rigs(modes: &[Mode], server: &Server, how: &How) -> Result<Vec<Rig>> {
    let bench = Bench::new(Work::Cycles(0))?;
    modes
        .iter()
        .map(|mode| Rig::new(*mode, &bench, how.vector, how.cores.lane, Some((server, 0))))
        .collect()
}

/// The name of a line of a plot, and its value at a point.
type PlotLine<'a> = (&'a str, &'a dyn Fn(&Point) -> f64);

/// A line per mode over the cycles of the extern.
fn plot(title: String, y: &str, points: &[Point], lines: &[PlotLine<'_>]) -> Plot {
    let x = |point: &Point| match point.work {
        Work::Cycles(cycles) => f64::from(cycles),
        Work::AesGcm => 0.0,
    };
    Plot {
        title,
        x: "cycles of the extern".to_owned(),
        y: y.to_owned(),
        lines: lines
            .iter()
            .map(|(name, value)| Line {
                name: (*name).to_owned(),
                points: points.iter().map(|p| (x(p), value(p))).collect(),
                is_joined: true,
            })
            .collect(),
    }
}

/// The least of some ratios, with its place.
fn least<'a>(points: impl Iterator<Item = (&'a Point, f64)>) -> String {
    match points.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((point, ratio)) => format!("{ratio:.2} at {}, {} %", point.work.name(), point.share),
        None => "none".to_owned(),
    }
}

/// Rate over cost, share and mode.
pub fn figure3(how: &How) -> Result<Figure> {
    let server = server(1, how)?;
    let modes = [Mode::NoExtern, Mode::Inline, Mode::HandOver, Mode::Async, Mode::Auto];
    let mut rigs = rigs(&modes, &server, how)?;
    let mut text = "Figure 3: millions of packets per second; a full lane: inline\n".to_owned();
    let (mut all, mut plots) = (Vec::new(), Vec::new());
    for share in SHARES {
        let mut points = Vec::new();
        for cycles in COSTS {
            crate::output::message(format!("Figure 3: {share} % of the packets, {cycles} cycles"));
            points.push(point(&mut rigs, &server, how, share, Work::Cycles(cycles))?);
        }
        let _ = writeln!(
            text,
            "{share} % of the packets; no extern: {:.2}\n  \
             cycles  inline  hand-over   async    auto   async/hand-over  async/inline  auto/best  round trip",
            points.first().map_or(f64::NAN, |p| p.mpps(Mode::NoExtern))
        );
        for (p, cycles) in points.iter().zip(COSTS) {
            let _ = writeln!(
                text,
                "  {cycles:>6} {:>7.3} {:>10.3} {:>7.3} {:>7.3} {:>17.2} {:>13.2} {:>10.2} {:>8.0} ns",
                p.mpps(Mode::Inline),
                p.mpps(Mode::HandOver),
                p.mpps(Mode::Async),
                p.mpps(Mode::Auto),
                p.ratio(Mode::Async, Mode::HandOver),
                p.ratio(Mode::Async, Mode::Inline),
                p.auto(),
                p.round_trip
            );
        }
        let of = |mode| move |p: &Point| p.mpps(mode);
        plots.push((
            format!("figure3-{share}"),
            plot(
                format!("Extern for {share} % of the packets"),
                "million packets per second",
                &points,
                &[
                    ("inline", &of(Mode::Inline)),
                    ("hand-over", &of(Mode::HandOver)),
                    ("async", &of(Mode::Async)),
                    ("auto", &of(Mode::Auto)),
                ],
            ),
        ));
        all.extend(points);
    }
    let against = |mode| all.iter().map(move |p| (p, p.ratio(Mode::Async, mode)));
    let costly = |p: &Point| p.share == 100 && matches!(p.work, Work::Cycles(500..));
    let _ = writeln!(
        text,
        "least of: async/hand-over {}; async/inline from 500 cycles at 100 % {}; auto/best {}",
        least(against(Mode::HandOver)),
        least(against(Mode::Inline).filter(|(p, _)| costly(p))),
        least(all.iter().map(|p| (p, p.auto())))
    );
    Ok(Figure {
        name: "figure3",
        text,
        json: all.iter().map(Point::json).collect(),
        plots,
    })
}

/// Drops at the buffer of the extern, and what is left for packets that need no extern.
pub fn figure4(how: &How) -> Result<Figure> {
    let server = server(1, how)?;
    let bench = Bench::new(Work::Cycles(0))?;
    let rig = |mode| Rig::new(mode, &bench, how.vector, how.cores.lane, None);
    let mut rigs = [rig(Mode::NoExtern)?, rig(Mode::Async)?.with_policy(WhenFull::Drop)];
    let mut text = format!(
        "Figure 4: % of the calls that are dropped, buffer of {DEPTH}; in parentheses the rate of the other packets, \
         relative to no extern\n  cycles"
    );
    SHARES.iter().for_each(|share| text.push_str(&format!("{share:>16} %")));
    text.push_str("  round trip\n");
    let kept = |p: &Point| match (p.of(Mode::Async), p.of(Mode::NoExtern)) {
        (Some(one), Some(other)) => ratio(&one.offered(), &other.offered()),
        _ => f64::NAN,
    };
    let dropped = |p: &Point| {
        let of: Option<Vec<f64>> = p.of(Mode::Async).map(|s| s.flows.iter().map(Flow::dropped).collect());
        100.0 * median(&of.unwrap_or_default())
    };
    let mut all = Vec::new();
    for cycles in COSTS {
        crate::output::message(format!("Figure 4: {cycles} cycles"));
        let _ = write!(text, "  {cycles:>6}");
        for share in SHARES {
            let p = point(&mut rigs, &server, how, share, Work::Cycles(cycles))?;
            let _ = write!(text, "{:>10.1} ({:.2})", dropped(&p), kept(&p));
            all.push(p);
        }
        let trip = all.last().map_or(0.0, |p| p.round_trip);
        let _ = writeln!(text, "{trip:>9.0} ns");
    }
    let lines = SHARES.map(|share| Line {
        name: format!("{share} %"),
        points: (all.iter().filter(|p| p.share == share).zip(COSTS))
            .map(|(p, cycles)| (f64::from(cycles), dropped(p)))
            .collect(),
        is_joined: true,
    });
    let plot = Plot {
        title: format!("Drops at a buffer of {DEPTH}"),
        x: "cycles of the extern".to_owned(),
        y: "% of the calls".to_owned(),
        lines: lines.into(),
    };
    let json = all.iter().map(|p| {
        let mut json = p.json();
        json["rate_of_others"] = json!(kept(p));
        json
    });
    Ok(Figure {
        name: "figure4",
        text,
        json: json.collect(),
        plots: vec![("figure4".to_owned(), plot)],
    })
}

/// Scaling with workers.
pub fn figure5(how: &How) -> Result<Figure> {
    const SHARE: u32 = 10;
    let mut text = format!(
        "Figure 5: millions of packets per second of all workers, {SHARE} % of the packets; a full lane: inline\n  \
         workers  extern         inline  hand-over   async   async/inline  round trip\n"
    );
    let mut points = Vec::new();
    for work in [Work::Cycles(3000), Work::Cycles(10_000), Work::AesGcm] {
        for workers in 1..=how.workers.len() {
            crate::output::message(format!("Figure 5: {workers} workers, {}", work.name()));
            let p = together(how, workers, SHARE, work)?;
            let _ = writeln!(
                text,
                "  {workers:>7}  {:<13} {:>7.3} {:>10} {:>7.3} {:>14.2} {:>8.0} ns",
                work.name(),
                p.mpps(Mode::Inline),
                match p.of(Mode::HandOver) {
                    Some(series) => format!("{:.3}", series.median()),
                    None => "-".to_owned(),
                },
                p.mpps(Mode::Async),
                p.ratio(Mode::Async, Mode::Inline),
                p.round_trip
            );
            points.push((workers, p));
        }
    }
    if how.workers.len() == 1 {
        text.push_str("  One processor is the extern's, so there is one for workers.\n");
    }
    let json = points.iter().map(|(workers, p)| {
        let mut json = p.json();
        json["workers"] = json!(workers);
        json
    });
    Ok(Figure {
        name: "figure5",
        text,
        json: json.collect(),
        plots: Vec::new(),
    })
}

/// Several workers at once, modes in turns.
fn together(how: &How, workers: usize, share: u32, work: Work) -> Result<Point> {
    let bench = Bench::new(work)?;
    let server = server(workers, how)?;
    // The mailbox of a hand-over carries no payload.
    let modes: &[Mode] = match work {
        Work::Cycles(_) => &[Mode::Inline, Mode::HandOver, Mode::Async],
        Work::AesGcm => &[Mode::Inline, Mode::Async],
    };
    let (lane, ports) = lane(workers, DEPTH, how.cores.lane)?;
    let barrier = Barrier::new(workers);
    let flows = Mutex::new(vec![vec![Vec::new(); how.runs]; modes.len()]);
    let results: Vec<Result<()>> = std::thread::scope(|scope| {
        let threads: Vec<_> = ports
            .into_iter()
            .zip(&how.workers)
            .enumerate()
            .map(|(number, (port, core))| {
                let (bench, server, lane) = (&bench, &server, Arc::clone(&lane));
                let (barrier, flows) = (&barrier, &flows);
                scope.spawn(move || {
                    let mut port = Some(port);
                    let made = weir_io::pin_to_core(*core).map_err(anyhow::Error::from).and_then(|()| {
                        let make = |mode| {
                            let server = Some((server, number));
                            let mut rig = Rig::new(mode, bench, how.vector, how.cores.lane, server)?;
                            if mode == Mode::Async
                                && let Some(port) = port.take()
                            {
                                rig.attach(port, Arc::clone(&lane));
                            }
                            rig.fill(share, work)?;
                            Ok(rig)
                        };
                        modes.iter().copied().map(make).collect::<Result<Vec<_>>>()
                    });
                    let (mut rigs, result) = match made {
                        Ok(rigs) => (rigs, Ok(())),
                        Err(error) => (Vec::new(), Err(error)),
                    };
                    for run in 0..how.runs {
                        for (turn, mode) in modes.iter().enumerate() {
                            barrier.wait();
                            server.set_active(*mode == Mode::HandOver);
                            let Some(rig) = rigs.get_mut(turn) else { continue };
                            rig.flood(if run == 0 { FIRST } else { how.run / 5 });
                            let flow = rig.flood(how.run);
                            rig.settle();
                            flows.lock().unwrap_or_else(PoisonError::into_inner)[turn][run].push(flow);
                        }
                    }
                    result
                })
            })
            .collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<()>>| match thread.join() {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        threads.into_iter().map(join).collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    server.set_active(false);
    let flows = flows.into_inner().unwrap_or_else(PoisonError::into_inner);
    let series = modes.iter().zip(flows).map(|(mode, runs)| Series {
        mode: *mode,
        flows: runs.iter().map(|run| sum(run)).collect(),
    });
    let trips: Vec<f64> = (0..how.runs).map(|_| how.cores.round_trip()).collect();
    Ok(Point {
        work,
        share,
        series: series.collect(),
        round_trip: median(&trips),
    })
}

/// What workers did together.
fn sum(flows: &[Flow]) -> Flow {
    flows.iter().fold(Flow::default(), |sum, flow| Flow {
        offered: sum.offered + flow.offered,
        completed: sum.completed + flow.completed,
        full: sum.full + flow.full,
        calls: sum.calls + flow.calls,
        overrun: sum.overrun + flow.overrun,
        seconds: sum.seconds.max(flow.seconds),
    })
}

/// The highest rate with near-zero loss.
pub fn figure6(how: &How) -> Result<Figure> {
    let server = server(1, how)?;
    let modes = [Mode::Inline, Mode::HandOver, Mode::Async, Mode::Auto];
    let work = Work::Cycles(RFC2544_CYCLES);
    let mut rigs = rigs(&modes, &server, how)?;
    let mut text = format!(
        "Figure 6: highest rate in millions of packets per second at which at most {} % are lost (RFC 2544's search); \
         {RFC2544_CYCLES} cycles\n   share  inline  hand-over   async    auto  round trip\n",
        NEAR_ZERO * 100.0
    );
    let mut json = Vec::new();
    let mut lines: Vec<Line> = (modes.iter())
        .map(|mode| Line {
            name: mode.name().to_owned(),
            points: Vec::new(),
            is_joined: true,
        })
        .collect();
    for share in (1..=10).map(|tenth| tenth * 10) {
        crate::output::message(format!("Figure 6: {share} % of the packets"));
        let mut rates = Vec::new();
        for rig in &mut rigs {
            rig.prepare(share, work)?;
            server.set_active(rig.mode == Mode::HandOver);
            rates.push(search(rig, how.run));
            rig.settle();
        }
        server.set_active(false);
        let trip = how.cores.round_trip();
        let _ = write!(text, "  {share:>4} %");
        for (width, rate) in [8, 11, 8, 8].into_iter().zip(&rates) {
            let _ = write!(text, "{rate:>width$.3}");
        }
        let _ = writeln!(text, "{trip:>9.0} ns");
        for (line, rate) in lines.iter_mut().zip(&rates) {
            line.points.push((f64::from(share), *rate));
        }
        let named = modes.iter().zip(&rates);
        let named = named.map(|(mode, rate)| json!({ "mode": mode.name(), "mpps": rate }));
        json.push(json!({
            "share_percent": share,
            "round_trip_ns": trip,
            "modes": named.collect::<Vec<_>>(),
        }));
    }
    let plot = Plot {
        title: format!("Highest rate with at most {} % loss", NEAR_ZERO * 100.0),
        x: "% of the packets with an extern".to_owned(),
        y: "million packets per second".to_owned(),
        lines,
    };
    Ok(Figure {
        name: "figure6",
        text,
        json: json.into(),
        plots: vec![("figure6".to_owned(), plot)],
    })
}

/// RFC 2544's binary search, in millions of packets per second.
fn search(rig: &mut Rig, run: Duration) -> f64 {
    rig.flood(FIRST);
    let (mut low, mut high) = (0.0, 1.2 * rig.flood(run).offered_mpps() * 1e6);
    for _ in 0..STEPS {
        let rate = f64::midpoint(low, high);
        let passes = (0..TRIALS).any(|_| {
            rig.settle();
            rig.offer(rate, 2 * run).loss() <= NEAR_ZERO
        });
        match passes {
            true => low = rate,
            false => high = rate,
        }
    }
    low / 1e6
}
