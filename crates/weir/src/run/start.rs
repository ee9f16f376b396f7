//! Opens the devices, ties workers together and starts them.

use super::control::{Control, Event, LentSwitch};
use super::end::{End, WAITING};
use super::forward::{Forwarder, Sampling, Upward};
use super::interfaces::Interfaces;
use super::live::CpuPort;
use super::plan::Plan;
use super::plug::Plugger;
use super::pressure::{Gauge, Gauges, Pressure};
use super::recording::Recorders;
use super::reopen::{Reopener, Reopening};
use super::ring::{self, Doorbell, RING, Sleeper};
use super::setup;
use super::worker::{Rings, Ties, Worker};
use crate::cli::Run;
use crate::lines::Lines;
use crate::output::Messages;
use anyhow::Result;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;
use weir_compiler::NoThread;
use weir_io::{Pool, PortSpec, Ports, PortsOptions};
use weir_switch::VECTOR;

/// Longest packet where no device says less, in bytes: what a switch takes.
const LONGEST: usize = 16 * 1024;
/// Ports for which there are frames beyond those of the command line: they can be added while the
/// switch runs.
const SPARE: usize = 4;
/// Longest packet for which a switch in the place of bmv2 has room: p4-utils raises the MTU to
/// 9,520 bytes after it has started the switches.
const JUMBO: usize = 10 * 1024;
/// Frames that a batch keeps in reserve.
const RESERVE: usize = 128;

/// The devices of all ports.
pub struct Opened {
    ports: Ports,
    /// What records ports, that of the control plane among them; `None`: nothing does.
    recorders: Option<Recorders>,
}

/// Opens the devices.
pub fn open(arguments: &Run, specs: &[PortSpec], program: &setup::Program, messages: &Messages) -> Result<Opened> {
    // Before an open device makes the other name of its interface busy.
    Interfaces::new(specs)?;
    let devices: Vec<_> = specs.iter().map(|s| s.device.clone()).collect();
    let headroom = program.switches.first().map_or(0, |s| s.headroom());
    let workers = arguments.workers;
    let options = options(arguments, headroom);
    let frames = |pieces: &[usize]| {
        let counts: Vec<(u32, usize)> = specs.iter().zip(pieces).map(|(s, n)| (s.port, *n)).collect();
        let rings = Plan::new(&counts, workers).rings();
        let spare = if arguments.is_served() { SPARE } else { 0 };
        let ends = pieces.iter().sum::<usize>() + spare;
        let frames = ends * (WAITING + RESERVE) + rings * (RING + RESERVE) + workers * 4 * (VECTOR + RESERVE);
        u32::try_from(frames).unwrap_or(u32::MAX)
    };
    let mut ports = Ports::open(&devices, &options, frames).map_err(|e| {
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
        messages.line(format!("port {}: {device}{queues}", spec.port));
    }
    let recorders = Recorders::create(arguments, specs, messages)?;
    for (devices, spec) in ports.devices.iter_mut().zip(specs) {
        if let Some(recorder) = recorders.as_ref().and_then(|r| r.of(spec.port)) {
            *devices = devices.drain(..).map(|device| recorder.record(device)).collect();
        }
    }
    Ok(Opened { ports, recorders })
}

/// How devices are opened for a switch that wants so many bytes before a packet.
fn options(arguments: &Run, headroom: usize) -> PortsOptions {
    PortsOptions {
        longest: LONGEST,
        at_least: if arguments.bmv2.runtime_port.is_some() {
            JUMBO
        } else {
            0
        },
        growth: headroom.saturating_sub(Pool::HEADROOM),
        split: arguments.workers > 1,
        ring: arguments.ring,
    }
}

/// What workers report to.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// The thread that watches over the run.
    pub events: &'a Sender<Event>,
    /// The port of the control plane.
    pub cpu: &'a Arc<CpuPort>,
    /// The user.
    pub messages: &'a Messages,
}

/// Starts the workers.
pub fn start(
    arguments: &Run,
    specs: &[PortSpec],
    program: setup::Program,
    Opened { mut ports, recorders }: Opened,
    started: Instant,
    links: Links<'_>,
) -> Result<(Arc<Control>, Plugger)> {
    let counts: Vec<(u32, usize)> = specs
        .iter()
        .zip(&ports.devices)
        .map(|(s, d)| (s.port, d.len()))
        .collect();
    let plan = Plan::new(&counts, arguments.workers);
    let headroom = program.switches.first().map_or(0, |s| s.headroom());
    let bells: Vec<(Arc<Doorbell>, Sleeper)> = (0..plan.workers).map(|_| Doorbell::new()).collect::<Result<_>>()?;
    let switches = program.switches.into_iter();
    let switches: Vec<LentSwitch> = switches
        .map(|s| Arc::new(parking_lot::Mutex::new(Box::new(s))))
        .collect();
    let held: Vec<_> = switches.iter().map(|s| s.lock_arc()).collect();
    let bells_of = bells.iter().map(|(bell, _)| Arc::clone(bell));
    let control = Arc::new(Control::new(bells_of.zip(switches).collect()));
    let interfaces = Arc::new(Interfaces::new(specs)?);
    let mut parts = Parts::new(&plan, &ports.pool, &bells, &control);
    for (place, device) in plan.places.iter().zip(ports.devices.drain(..).flatten()) {
        let spec = &specs[place.port];
        let reopening = (place.is_only && spec.device.interface().is_some()).then(|| {
            Reopening::new(Reopener {
                port: spec.port,
                device: spec.device.clone(),
                pool: ports.pool.clone(),
                options: options(arguments, headroom),
                interfaces: Arc::clone(&interfaces),
                recorder: recorders.as_ref().and_then(|r| r.of(spec.port)),
                messages: links.messages.clone(),
            })
        });
        let end = End::new(spec.port, device, &ports.pool, reopening, links.messages);
        parts.ends[place.worker].push(end);
    }
    let gauges: Gauges = (0..plan.workers)
        .map(|worker| {
            let senders = plan.of(worker).map(|place| plan.senders(place));
            senders.map(|count| Arc::new(Gauge::new(count))).collect()
        })
        .collect();
    let cores = weir_io::cores();
    if plan.workers > cores.len() && !cores.is_empty() {
        links
            .messages
            .line(format!("{} workers take turns on {} cores", plan.workers, cores.len()));
    }
    let sampling = sampling(arguments, program.lines);
    let sleepers = bells.into_iter().map(|(_, sleeper)| sleeper);
    for (number, (switch, sleeper)) in held.into_iter().zip(sleepers).enumerate() {
        let (rings, outboxes, ends) = parts.of(number);
        let routes = plan.routes(number);
        let pressure = Pressure::new(number, &gauges, &routes);
        let forwarder = Forwarder::new(
            switch,
            ends,
            outboxes,
            (routes, pressure),
            started,
            (sampling.clone(), recorders.as_ref().map(Recorders::recording)),
            Upward {
                cpu: Arc::clone(links.cpu),
                keeps_digests: arguments.is_served(),
                messages: links.messages.clone(),
            },
        );
        let is_only = plan.of(number).map(|place| place.is_only).collect();
        let ties = Ties {
            rings,
            sleeper,
            control: Arc::clone(&control),
            events: links.events.clone(),
        };
        let worker = Worker::new(number, forwarder, is_only, program.spread, ties, &ports.pool);
        // A single worker stays where the system has it.
        let core = cores
            .get(number % cores.len().max(1))
            .filter(|_| plan.workers > 1)
            .copied();
        spawn(number, worker, core, links.events.clone(), links.messages.clone())?;
    }
    let plugger = Plugger {
        pool: ports.pool.clone(),
        options: options(arguments, headroom),
        interfaces,
        recorders,
    };
    Ok((control, plugger))
}

fn sampling(arguments: &Run, lines: Lines) -> Sampling {
    Sampling {
        is_on: arguments.is_traced(),
        every: arguments.trace.unwrap_or(1),
        port: arguments.trace_port,
        lines,
    }
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

fn spawn(number: usize, worker: Worker, core: Option<usize>, events: Sender<Event>, messages: Messages) -> Result<()> {
    let body = move || {
        let _guard = Guard(events);
        if let Some(core) = core
            && let Err(error) = weir_io::pin_to_core(core)
        {
            messages.line(format!("worker {number} stays on no core of its own: {error}"));
        }
        worker.run();
    };
    let thread = std::thread::Builder::new().name(format!("worker {number}"));
    thread.spawn(body).map_err(|error| NoThread::new("a worker", &error))?;
    Ok(())
}

/// What workers are made of, while they are put together.
struct Parts {
    rings: Vec<Rings>,
    outboxes: Vec<Vec<Option<ring::Outbox>>>,
    ends: Vec<Vec<End>>,
}

impl Parts {
    fn new(plan: &Plan, pool: &Pool, bells: &[(Arc<Doorbell>, Sleeper)], control: &Control) -> Self {
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
