//! `weir run`: the program as a switch between devices.
//!
//! Every worker is a thread that receives from the devices it owns, forwards and sends. The thread that started
//! them watches over the run: it takes signals, compiles a program anew, and sums up what workers have counted.

mod control;
mod flow;
mod forward;
mod plan;
mod report;
mod ring;
mod setup;
mod sharing;
mod watch;
mod worker;

use crate::cli::{NO, Run};
use anyhow::{Context, Result, bail};
use control::{Control, Event, Order};
use forward::{End, Forwarder, Sampling, WAITING};
use plan::{Plan, Spread};
use report::{About, Report};
use ring::{Doorbell, RING, Sleeper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use watch::Watch;
use weir_io::{PortSpec, Ports, PortsOptions};
use weir_switch::{Switch, VECTOR};
use worker::{Rings, Worker};

/// Longest packet where no device says less, in bytes: what a switch takes.
const LONGEST: usize = 16 * 1024;
/// Frames that a batch keeps in reserve.
const RESERVE: usize = 128;
/// How often a picture is drawn.
const PICTURE: Duration = Duration::from_secs(1);

/// Runs until the time is over, a signal comes, or every input has ended.
pub fn run(arguments: &Run) -> Result<u8> {
    let specs = setup::port_specs(&arguments.interfaces)?;
    setup::check(arguments)?;
    let program = match setup::program(arguments, &specs)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let ports = open(arguments, &specs, &program)?;
    let watch = arguments.watch.then(Watch::new).transpose()?;
    let (sender, events) = channel();
    listen(&sender)?;
    let started = Instant::now();
    let engine = program.engine;
    let control = start(arguments, &specs, program, ports, started, &sender)?;
    let mut supervisor = Supervisor {
        arguments,
        specs,
        control,
        events,
        started,
        engine,
        next_engine: engine,
        reloads: 0,
        ended: 0,
        is_stopping: false,
        reports: Vec::new(),
        watch,
    };
    supervisor.say("running; stop with Ctrl-C");
    supervisor.until_stopped()
}

/// Opens the devices.
fn open(arguments: &Run, specs: &[PortSpec], program: &setup::Program) -> Result<Ports> {
    let devices: Vec<_> = specs.iter().map(|s| s.device.clone()).collect();
    let headroom = program.switches.first().map_or(0, |s| s.headroom());
    let workers = arguments.workers;
    let options = PortsOptions {
        longest: LONGEST,
        growth: headroom.saturating_sub(weir_io::Pool::HEADROOM),
        split: workers > 1,
    };
    let frames = |pieces: &[usize]| {
        let counts: Vec<(u32, usize)> = specs.iter().zip(pieces).map(|(s, n)| (s.port, *n)).collect();
        let rings = Plan::new(&counts, workers).rings();
        let ends: usize = pieces.iter().sum();
        let frames = ends * (WAITING + RESERVE) + rings * (RING + RESERVE) + workers * 4 * (VECTOR + RESERVE);
        u32::try_from(frames).unwrap_or(u32::MAX)
    };
    let ports = Ports::open(&devices, &options, frames).map_err(|e| {
        let port = e.index.map(|i| format!("port {}", specs[i].port));
        anyhow::Error::from(e.source).context(port.unwrap_or_else(|| "the ports".to_string()))
    })?;
    for (spec, devices) in specs.iter().zip(&ports.devices) {
        let queues = if devices.len() > 1 {
            format!(", a queue for each of {} threads", devices.len())
        } else {
            String::new()
        };
        let device = devices.first().map_or(String::new(), |d| d.description());
        eprintln!("port {}: {device}{queues}", spec.port);
    }
    Ok(ports)
}

/// Has signals sent as events.
fn listen(events: &Sender<Event>) -> Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]).context("cannot listen for signals")?;
    let events = events.clone();
    let body = move || {
        for signal in signals.forever() {
            if events.send(Event::Signal(signal)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_string())
        .spawn(body)
        .context("cannot start a thread")?;
    Ok(())
}

/// Starts the workers.
fn start(
    arguments: &Run,
    specs: &[PortSpec],
    program: setup::Program,
    ports: Ports,
    started: Instant,
    events: &Sender<Event>,
) -> Result<Arc<Control>> {
    let counts: Vec<(u32, usize)> = specs
        .iter()
        .zip(&ports.devices)
        .map(|(s, d)| (s.port, d.len()))
        .collect();
    let plan = Plan::new(&counts, arguments.workers);
    let bells: Vec<(Arc<Doorbell>, Sleeper)> = (0..plan.workers).map(|_| Doorbell::new()).collect::<Result<_>>()?;
    let control = Arc::new(Control::new(bells.iter().map(|(bell, _)| Arc::clone(bell)).collect()));
    let mut parts = Parts::new(&plan, &ports.pool, &bells, &control);
    for (place, device) in plan.places.iter().zip(ports.devices.into_iter().flatten()) {
        let end = End::new(specs[place.port].port, device, &ports.pool);
        parts.ends[place.worker].push(end);
    }
    let cores = weir_io::cores();
    if plan.workers > cores.len() && !cores.is_empty() {
        eprintln!("{} workers take turns on {} cores", plan.workers, cores.len());
    }
    let sampling = sampling(arguments);
    let sleepers = bells.into_iter().map(|(_, sleeper)| sleeper);
    for (number, (switch, sleeper)) in program.switches.into_iter().zip(sleepers).enumerate() {
        let (rings, outboxes, ends) = parts.of(number);
        let routes = plan.routes(number);
        let forwarder = Forwarder::new(switch, ends, outboxes, routes, started, sampling);
        let is_only = plan.of(number).map(|place| place.is_only).collect();
        let talk = (Arc::clone(&control), events.clone());
        let worker = Worker::new(
            number,
            forwarder,
            is_only,
            program.spread,
            rings,
            &ports.pool,
            sleeper,
            talk,
        );
        // A single worker stays where the system has it.
        let core = cores
            .get(number % cores.len().max(1))
            .filter(|_| plan.workers > 1)
            .copied();
        spawn(number, worker, core, events.clone())?;
    }
    Ok(control)
}

fn sampling(arguments: &Run) -> Option<Sampling> {
    let is_traced = arguments.trace.is_some() || arguments.trace_port.is_some();
    is_traced.then(|| Sampling {
        every: arguments.trace.unwrap_or(1),
        port: arguments.trace_port,
    })
}

/// Tells when its thread ends by a panic.
struct Guard(Sender<Event>);

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Event::Died);
        }
    }
}

fn spawn(number: usize, worker: Worker, core: Option<usize>, events: Sender<Event>) -> Result<()> {
    let body = move || {
        let _guard = Guard(events);
        if let Some(core) = core
            && let Err(error) = weir_io::pin_to_core(core)
        {
            eprintln!("worker {number} stays on no core of its own: {error}");
        }
        worker.run();
    };
    let thread = std::thread::Builder::new().name(format!("worker {number}"));
    thread.spawn(body).context("cannot start a worker")?;
    Ok(())
}

/// What workers are made of, while they are put together.
struct Parts {
    rings: Vec<Rings>,
    outboxes: Vec<Vec<Option<ring::Outbox>>>,
    ends: Vec<Vec<End>>,
}

impl Parts {
    fn new(plan: &Plan, pool: &weir_io::Pool, bells: &[(Arc<Doorbell>, Sleeper)], control: &Control) -> Self {
        let workers = plan.workers;
        let mut parts = Parts {
            rings: (0..workers)
                .map(|_| Rings {
                    work_out: Vec::new(),
                    work_in: Vec::new(),
                    send_in: Vec::new(),
                })
                .collect(),
            outboxes: (0..workers).map(|_| Vec::new()).collect(),
            ends: (0..workers).map(|_| Vec::new()).collect(),
        };
        for from in 0..workers {
            for (to, (bell, _)) in bells.iter().enumerate() {
                let new = || ring::ring(pool, bell, &control.in_flight);
                let (out, inbox) = plan.spreads(from, to).then(new).unzip();
                parts.rings[from].work_out.push(out);
                parts.rings[to].work_in.extend(inbox);
                let (out, inbox) = plan.sends(from, to).then(new).unzip();
                parts.outboxes[from].push(out);
                parts.rings[to].send_in.extend(inbox);
            }
        }
        parts
    }

    /// The parts of a worker, once.
    fn of(&mut self, worker: usize) -> (Rings, Vec<Option<ring::Outbox>>, Vec<End>) {
        let rings = Rings {
            work_out: std::mem::take(&mut self.rings[worker].work_out),
            work_in: std::mem::take(&mut self.rings[worker].work_in),
            send_in: std::mem::take(&mut self.rings[worker].send_in),
        };
        let outboxes = std::mem::take(&mut self.outboxes[worker]);
        (rings, outboxes, std::mem::take(&mut self.ends[worker]))
    }
}

/// Watches over a run.
struct Supervisor<'a> {
    arguments: &'a Run,
    specs: Vec<PortSpec>,
    control: Arc<Control>,
    events: Receiver<Event>,
    started: Instant,
    engine: &'static str,
    /// That of the program which workers have been told to go on with.
    next_engine: &'static str,
    reloads: u64,
    /// Workers whose inputs have ended.
    ended: usize,
    is_stopping: bool,
    /// Those that have come, of the workers that were asked.
    reports: Vec<Report>,
    watch: Option<Watch>,
}

impl Supervisor<'_> {
    /// Tells the user, on the screen or on stderr.
    fn say(&mut self, message: &str) {
        match &mut self.watch {
            Some(watch) => watch.say(message),
            None => eprintln!("{message}"),
        }
    }

    fn until_stopped(&mut self) -> Result<u8> {
        let interval = match self.watch {
            Some(_) => Some(self.arguments.stats_interval.unwrap_or(PICTURE)),
            None => self.arguments.stats_interval,
        };
        let deadline = self.arguments.time.map(|time| self.started + time);
        let mut next_report = interval.map(|interval| self.started + interval);
        let mut final_reports: Vec<Report> = Vec::new();
        loop {
            let deadline = deadline.filter(|_| !self.is_stopping);
            let wake = [deadline, next_report].into_iter().flatten().min();
            match self.next_event(wake)? {
                Some(Event::Signal(SIGHUP)) => self.reload()?,
                Some(Event::Signal(_)) if self.is_stopping && self.control.hurries() => {
                    bail!("stopped a second time before everything was sent; there are no statistics")
                }
                Some(Event::Signal(_)) => {
                    self.control.hurry();
                    self.stop();
                }
                Some(Event::Ended) => {
                    self.ended += 1;
                    if self.ended == self.control.workers() {
                        self.stop();
                    }
                }
                Some(Event::Report(report)) => self.collect(*report)?,
                Some(Event::Changed) => {
                    self.reloads += 1;
                    self.engine = self.next_engine;
                    self.say("reloaded; all packets from here on meet the new program");
                }
                Some(Event::Stopped(report)) => {
                    final_reports.push(*report);
                    if final_reports.len() == self.control.workers() {
                        return self.finish(final_reports);
                    }
                }
                Some(Event::Died) => bail!("a worker has failed, which is a mistake in weir: please report it"),
                None => {}
            }
            let now = Instant::now();
            if deadline.is_some_and(|d| now >= d) {
                self.control.hurry();
                self.stop();
            }
            if let Some((at, interval)) = next_report.as_mut().zip(interval)
                && now >= *at
            {
                *at = now + interval;
                self.ask();
            }
        }
    }

    fn next_event(&self, wake: Option<Instant>) -> Result<Option<Event>> {
        let gone = "the workers are gone";
        let Some(wake) = wake else {
            return self.events.recv().map(Some).context(gone);
        };
        match self.events.recv_timeout(wake.saturating_duration_since(Instant::now())) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => bail!(gone),
        }
    }

    fn tell_all(&self, mut order: impl FnMut() -> Order) {
        for worker in 0..self.control.workers() {
            self.control.tell(worker, order());
        }
    }

    fn stop(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.tell_all(|| Order::Stop);
        }
    }

    /// Asks all workers for a report, unless some have not answered the last question yet.
    fn ask(&mut self) {
        let open = self.reports.len() % self.control.workers();
        if open == 0 && !self.is_stopping {
            self.reports.clear();
            self.tell_all(|| Order::Report);
        }
    }

    fn collect(&mut self, report: Report) -> Result<()> {
        self.reports.push(report);
        if self.reports.len() < self.control.workers() {
            return Ok(());
        }
        let report = sum(self.reports.drain(..));
        let about = self.about(false);
        match &mut self.watch {
            Some(watch) => watch.draw(report, about),
            None => self.write(&report, about),
        }
    }

    fn about(&self, is_final: bool) -> About {
        About {
            seconds: self.started.elapsed().as_secs_f64(),
            engine: self.engine,
            reloads: self.reloads,
            is_final,
        }
    }

    fn write(&self, report: &Report, about: About) -> Result<()> {
        let mut out = std::io::stdout().lock();
        if self.arguments.json {
            writeln!(out, "{}", report.json(about))?;
        } else {
            writeln!(out, "{}", report.text(about))?;
        }
        Ok(out.flush()?)
    }

    /// Compiles the program and its entries from their files; where they are wrong the old one goes on.
    fn reload(&mut self) -> Result<()> {
        if self.is_stopping {
            return Ok(());
        }
        let why = match setup::program(self.arguments, &self.specs) {
            Ok(Ok(program)) => {
                self.next_engine = program.engine;
                self.change(program.switches, program.spread);
                return Ok(());
            }
            // The diagnostics have been printed.
            Ok(Err(_)) => "the program does not compile".to_string(),
            Err(error) => crate::cli::causes(&error),
        };
        self.say(&format!("not reloaded, the program from before goes on: {why}"));
        Ok(())
    }

    fn change(&self, switches: Vec<Box<Switch>>, spread: Spread) {
        for (worker, switch) in switches.into_iter().enumerate() {
            self.control.tell(worker, Order::Change(switch, spread));
        }
    }

    fn finish(&mut self, reports: Vec<Report>) -> Result<u8> {
        // The terminal as it was.
        self.watch = None;
        let report = sum(reports);
        self.write(&report, self.about(true))?;
        Ok(if report.has_failure() { NO } else { 0 })
    }
}

fn sum(reports: impl IntoIterator<Item = Report>) -> Report {
    let mut sum = Report::default();
    reports.into_iter().for_each(|report| sum.add(report));
    sum
}
