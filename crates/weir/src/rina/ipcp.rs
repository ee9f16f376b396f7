//! `weir rina ipcp`: an IPC process of a router or a host.

mod applications;
mod config;
mod devices;
mod log;
mod manage;
mod metrics;
mod state;

use super::arguments::IpcpArguments;
use crate::exposition::Exposition;
use crate::output::Messages;
use anyhow::{Context, Result, ensure};
use applications::Applications;
use config::File;
use devices::{Change, Devices};
use log::Log;
pub use log::printable;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGINT, SIGTERM};
use state::StateFile;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_ipcp::{IpcProcess, Output, PortId, Random, Role};
use weir_rina::Time;
use weir_rina_host::server::Server;
use weir_rina_switch::{Driver, Forwarding, FromSwitch, GRACE, NextHop};

/// The longest wait: signals and the parent are noticed within it.
const WAIT: Duration = Duration::from_millis(100);
/// Between two attempts to write the state.
const STATE: Duration = Duration::from_secs(30);
/// How often metrics are made anew.
const METRICS: Duration = Duration::from_secs(1);

/// Runs until a signal comes.
pub fn ipcp(arguments: &IpcpArguments, messages: &Messages) -> Result<u8> {
    // Before the signals are taken: it may be a pipe that nothing writes.
    let file = File::read(&arguments.config)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot listen for signals")?;
    }
    let log = Log::new(arguments.json, messages.clone(), &file.ipcp.name);
    let mut running = Running::start(file, log, messages)?;
    messages.line(format!(
        "IPC process {} of DIF {}",
        running.process.config().name,
        running.process.config().dif
    ));
    let parent = arguments.die_with_parent.then(std::os::unix::process::parent_id);
    while !stop.load(Ordering::Relaxed) && parent.is_none_or(|parent| parent == std::os::unix::process::parent_id()) {
        running.step()?;
    }
    Ok(0)
}

/// Random bytes of the system.
struct SystemRandom(std::fs::File);

impl Random for SystemRandom {
    fn fill(&mut self, bytes: &mut [u8]) {
        // The device of random bytes neither ends nor fails.
        let _ = self.0.read_exact(bytes);
    }
}

/// What frames leave by.
enum Below {
    /// The ports of a switch.
    Switch { driver: Driver, wake: UnixStream },
    /// Devices of this IPC process.
    Devices(Box<Devices>),
}

/// An IPC process with what is below and above it.
struct Running {
    process: IpcProcess,
    start: Instant,
    below: Below,
    server: Option<Server>,
    applications: Applications,
    state: Option<StateFile>,
    next_state: Instant,
    exposition: Option<Exposition>,
    next_metrics: Instant,
    log: Log,
}

impl Running {
    fn start(file: File, log: Log, messages: &Messages) -> Result<Self> {
        let random = std::fs::File::open("/dev/urandom").context("/dev/urandom")?;
        let mut config = file.ipcp;
        let state = file.state.as_deref().map(StateFile::open).transpose()?;
        config.check()?;
        if let Some(address) = state.as_ref().and_then(StateFile::address) {
            config.address = address;
            let path = file.state.as_deref().unwrap_or(Path::new("state"));
            config
                .check()
                .with_context(|| format!("{}: its address does not fit the configuration", path.display()))?;
        }
        let below = match (&file.switch, config.role) {
            (Some(switch), Role::Router) => {
                ensure!(
                    file.devices.is_empty(),
                    "[devices] is for hosts: a router uses the ports of its switch"
                );
                let (wake, waker) = UnixStream::pair().context("a pair of sockets")?;
                wake.set_nonblocking(true)?;
                waker.set_nonblocking(true)?;
                let driver = Driver::start(switch.options()?, waker, GRACE).context("cannot start a thread")?;
                Below::Switch { driver, wake }
            }
            (None, Role::Router) => anyhow::bail!("a router needs [switch] with the address of its P4Runtime server"),
            (Some(_), Role::Host | Role::SoftwareRouter) => anyhow::bail!("[switch] is for role = \"router\""),
            (None, Role::Host | Role::SoftwareRouter) => {
                Below::Devices(Box::new(Devices::open(&file.devices, &config.ports)?))
            }
        };
        let now = Time::ZERO;
        let process = IpcProcess::new(config, Box::new(SystemRandom(random)), now)?;
        let server = file.socket.as_deref().map(|path| {
            Server::bind(path).with_context(|| format!("{}: cannot listen for applications", path.display()))
        });
        Ok(Running {
            process,
            start: Instant::now(),
            below,
            server: server.transpose()?,
            applications: Applications::default(),
            state,
            next_state: Instant::now(),
            exposition: file
                .http
                .map(|address| Exposition::start(address, messages))
                .transpose()?,
            next_metrics: Instant::now(),
            log,
        })
    }

    fn now(&self) -> Time {
        Time::after(self.start.elapsed())
    }

    /// Waits for an input or a timer, and handles it.
    fn step(&mut self) -> Result<()> {
        self.wait()?;
        self.receive();
        let now = self.now();
        if let Some(server) = &mut self.server {
            for input in server.poll() {
                self.applications.take(&mut self.process, server, input, now);
            }
        }
        if self.process.deadline(now).is_some_and(|deadline| deadline <= now) {
            self.process.tick(now);
        }
        self.outputs(now);
        if let Some(server) = &mut self.server {
            server.flush();
        }
        self.save_state();
        if self.exposition.is_some() && Instant::now() >= self.next_metrics {
            self.next_metrics = Instant::now() + METRICS;
            self.update_metrics();
        }
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        let now = self.now();
        let has_backlog = self.server.as_ref().is_some_and(Server::has_backlog);
        let longest = if has_backlog { Duration::ZERO } else { WAIT };
        let deadline = self
            .process
            .deadline(now)
            .map_or(longest, |deadline| deadline.since(now).min(longest));
        let wait = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(deadline.subsec_nanos()),
        };
        let mut files: Vec<PollFd<'_>> = Vec::new();
        match &self.below {
            Below::Switch { wake, .. } => files.push(PollFd::from_borrowed_fd(wake.as_fd(), PollFlags::IN)),
            Below::Devices(devices) => files.extend(devices.files()),
        }
        if let Some(server) = &self.server {
            files.extend(
                server
                    .files()
                    .map(|(file, flags)| PollFd::from_borrowed_fd(file, flags)),
            );
        }
        match poll(&mut files, Some(&wait)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error).context("cannot wait"),
        }
    }

    fn receive(&mut self) {
        let now = self.now();
        match &mut self.below {
            Below::Switch { driver, wake } => {
                let mut bytes = [0; 256];
                while (&*wake).read(&mut bytes).is_ok_and(|length| length == bytes.len()) {}
                while let Some(news) = driver.next() {
                    match news {
                        FromSwitch::Packet { port, frame } => self.process.receive_frame(PortId(port), &frame, now),
                        FromSwitch::Written {
                            updates,
                            time,
                            is_resynchronised,
                        } => self.log.written(updates, time, is_resynchronised),
                        FromSwitch::Failed(reason) => self.log.switch_failed(&reason),
                    }
                }
            }
            Below::Devices(devices) => {
                devices.receive(|port, frame| self.process.receive_frame(port, frame, now));
                devices.retry(Instant::now());
                for change in devices.changes() {
                    match change {
                        Change::Lost(port, reason) => {
                            self.log.device(port, Some(&reason));
                            self.process.port_down(port, now);
                        }
                        Change::Back(port) => {
                            self.log.device(port, None);
                            self.process.port_up(port, now);
                        }
                    }
                }
            }
        }
    }

    /// Sends frames, and hands on what applications and people have to know.
    fn outputs(&mut self, now: Time) {
        loop {
            let mut frames = Vec::new();
            while let Some(output) = self.process.next_output() {
                match output {
                    Output::Frame { port, frame } => frames.push((port, frame)),
                    Output::ForwardingChanged => {
                        if let Below::Switch { driver, .. } = &self.below {
                            driver.set(forwarding(&self.process));
                        }
                    }
                    Output::Flow(flow, event) => self.applications.note(flow, event),
                    Output::Event(event) => {
                        if let (weir_ipcp::Event::Joined { address }, Some(state)) = (&event, &mut self.state) {
                            state.set_address(*address);
                            self.next_state = Instant::now();
                        }
                        self.log.event(&event);
                    }
                }
            }
            send(&mut self.below, frames);
            let Some(server) = &mut self.server else {
                return self.applications.refuse_all(&mut self.process, now);
            };
            if !self.applications.serve(&mut self.process, server, now) {
                return;
            }
        }
    }

    /// Writes the state if it has changed; again later if that fails.
    fn save_state(&mut self) {
        let now = Instant::now();
        if now < self.next_state {
            return;
        }
        if let Some(state) = &mut self.state
            && let Err(error) = state.save()
        {
            self.next_state = now + STATE;
            self.log.state_failed(&error);
        }
    }

    fn update_metrics(&self) {
        let dropped = match &self.below {
            Below::Switch { driver, .. } => driver.dropped(),
            Below::Devices(_) => 0,
        };
        if let Some(exposition) = &self.exposition {
            exposition.set(metrics::text(&self.process, dropped));
        }
    }
}

/// Sends frames in their order.
fn send(below: &mut Below, frames: Vec<(PortId, Vec<u8>)>) {
    match below {
        Below::Switch { driver, .. } => frames.into_iter().for_each(|(port, frame)| driver.send(port.0, frame)),
        Below::Devices(devices) => devices.send(&frames),
    }
}

/// The table of the IPC process, as the crate of the switch describes it.
fn forwarding(process: &IpcProcess) -> Forwarding {
    let table = process.forwarding();
    let hop = |hop: &weir_ipcp::NextHop| NextHop {
        port: hop.port.0,
        vlan: hop.vlan,
        mac: hop.mac,
    };
    let routes = table.routes.into_iter();
    Forwarding {
        own: table.own.into_iter().collect(),
        routes: routes.map(|(to, hops)| (to, hops.iter().map(hop).collect())).collect(),
        macs: table.macs.into_iter().map(|(port, mac)| (port.0, mac)).collect(),
    }
}
