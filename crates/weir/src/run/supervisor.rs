//! The thread that watches over a run.

use super::control::{Control, Event, Order};
use super::http::Http;
use super::metrics;
use super::reload::{Reloaded, Reloader};
use super::report::{About, Report};
use super::serve::Servers;
use super::watch::Watch;
use crate::cli::{NO, Run};
use crate::output::{Messages, Outlet};
use anyhow::{Context, Result, bail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use weir_compiler::NoThread;

/// Within this time, a second signal is the first one that came twice.
const SAME_SIGNAL: Duration = Duration::from_millis(100);
/// How often a picture is drawn.
const PICTURE: Duration = Duration::from_secs(1);

/// Has signals sent as events.
pub fn listen(events: &Sender<Event>) -> Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP, SIGUSR1]).context("cannot listen for signals")?;
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
        .map_err(|error| NoThread::new("signals", &error))?;
    Ok(())
}

/// What the signal HUP does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    /// The program is compiled anew from its file.
    Reload,
    /// The program comes from control planes: the run stops, as other programs do when their
    /// terminal has gone.
    Stop,
    /// Nothing, as the process was started with HUP ignored, as by `nohup`.
    Ignore,
}

impl Hangup {
    /// That of a run. Call this before [`listen`], which replaces the handler.
    pub fn of(arguments: &Run) -> Self {
        match arguments.is_served() {
            false => Hangup::Reload,
            true if is_ignored(SIGHUP) => Hangup::Ignore,
            true => Hangup::Stop,
        }
    }
}

/// Whether this process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// What serves those outside; it ends with this.
pub struct Outside {
    /// Control planes.
    pub servers: Option<Servers>,
    /// Counters.
    pub http: Option<Http>,
    /// The user.
    pub messages: Messages,
    /// Statistics, to stdout.
    pub statistics: Outlet,
    /// What HUP does.
    pub hangup: Hangup,
    /// Compiles the program anew.
    pub reloader: Reloader,
}

/// Watches over a run.
pub struct Supervisor<'a> {
    arguments: &'a Run,
    control: Arc<Control>,
    events: Receiver<Event>,
    started: Instant,
    engine: &'static str,
    reloads: u64,
    /// Workers whose inputs have ended.
    ended: usize,
    is_stopping: bool,
    /// Packets are shown on their way.
    is_tracing: bool,
    /// Those that have come, of the workers that were asked.
    reports: Vec<Report>,
    /// Workers that were asked and have not answered.
    outstanding: usize,
    watch: Option<Watch>,
    /// A report is to be written or drawn.
    is_due: bool,
    /// Who waits for counters.
    metrics: Vec<oneshot::Sender<String>>,
    outside: Outside,
}

impl<'a> Supervisor<'a> {
    /// One whose workers have just been started, at a time and with an engine.
    pub fn new(
        arguments: &'a Run,
        control: Arc<Control>,
        events: Receiver<Event>,
        (started, engine): (Instant, &'static str),
        watch: Option<Watch>,
        outside: Outside,
    ) -> Self {
        Supervisor {
            arguments,
            control,
            events,
            started,
            engine,
            reloads: 0,
            ended: 0,
            is_stopping: false,
            is_tracing: arguments.is_traced(),
            reports: Vec::new(),
            outstanding: 0,
            watch,
            is_due: false,
            metrics: Vec::new(),
            outside,
        }
    }

    /// Tells the user, on the screen or on stderr.
    pub fn say(&mut self, message: &str) {
        match &mut self.watch {
            Some(watch) => watch.say(message),
            None => self.outside.messages.line(message),
        }
    }

    /// Watches until all workers have stopped; the exit code.
    pub fn until_stopped(&mut self) -> Result<u8> {
        let interval = match self.watch {
            Some(_) => Some(self.arguments.stats_interval.unwrap_or(PICTURE)),
            None => self.arguments.stats_interval,
        };
        let deadline = self.arguments.time.map(|time| self.started + time);
        let mut next_report = interval.map(|interval| self.started + interval);
        let mut final_reports: Vec<Report> = Vec::new();
        let mut signalled = None;
        loop {
            let deadline = deadline.filter(|_| !self.is_stopping);
            let wake = [deadline, next_report].into_iter().flatten().min();
            match self.next_event(wake)? {
                Some(Event::Signal(SIGHUP)) if self.outside.hangup == Hangup::Reload => self.reload(),
                Some(Event::Signal(SIGHUP)) if self.outside.hangup == Hangup::Ignore => {}
                Some(Event::Signal(SIGUSR1)) => self.toggle_trace(),
                // `timeout` and shells send a signal to the process and to its group: it comes
                // twice.
                Some(Event::Signal(_)) if signalled.is_some_and(|at: Instant| at.elapsed() < SAME_SIGNAL) => {}
                Some(Event::Signal(_)) if self.is_stopping && self.control.hurries() => {
                    bail!("stopped a second time before everything was sent; there are no statistics")
                }
                Some(Event::Signal(_)) => {
                    signalled = Some(Instant::now());
                    self.control.hurry();
                    self.stop();
                }
                Some(Event::Ended) => {
                    self.ended += 1;
                    // A control plane may still send packets, and ask what came of those that were
                    // received.
                    if self.ended == self.control.workers() && self.outside.servers.is_none() {
                        self.stop();
                    }
                }
                Some(Event::Report(report)) => self.collect(*report),
                Some(Event::Reloaded(reloaded)) => self.change(reloaded),
                Some(Event::Changed(engine)) => {
                    self.reloads += 1;
                    self.engine = engine;
                    self.say("reloaded; all packets from here on meet the new program");
                    if !self.is_stopping {
                        self.reload_finished();
                    }
                }
                Some(Event::Stopped(report)) => {
                    final_reports.push(*report);
                    if final_reports.len() == self.control.workers() {
                        return Ok(self.finish(final_reports));
                    }
                }
                // Whoever asks while the switch stops learns so by an error.
                Some(Event::Metrics(_)) if self.is_stopping => {}
                Some(Event::Metrics(waiting)) => {
                    self.metrics.push(waiting);
                    self.ask();
                }
                // Packets go on.
                Some(Event::Trouble(what)) => self.say(&what),
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
                self.is_due = true;
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

    fn stop(&mut self) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.metrics.clear();
            if let Some(http) = &self.outside.http {
                http.stopping();
            }
            if let Some(Err(error)) = self.outside.servers.as_ref().map(Servers::checkpoint) {
                self.say(&format!(
                    "what packets have left in counters and registers is not kept: {error:#}"
                ));
            }
            self.control.tell_all(|_| Order::Stop);
        }
    }

    /// Asks all workers for a report, unless some have not answered the last question yet.
    fn ask(&mut self) {
        if self.outstanding == 0 && !self.is_stopping {
            self.outstanding = self.control.workers();
            self.control.tell_all(|_| Order::Report);
        }
    }

    fn collect(&mut self, report: Report) {
        self.reports.push(report);
        self.outstanding = self.outstanding.saturating_sub(1);
        if self.outstanding > 0 {
            return;
        }
        let report = sum(self.reports.drain(..));
        let about = self.about(false);
        if !self.metrics.is_empty() {
            let servers = self.outside.servers.as_ref().map(Servers::report);
            let text = metrics::text(&report, about, servers.as_ref());
            for waiting in self.metrics.drain(..) {
                // Whoever has asked may have gone.
                let _ = waiting.send(text.clone());
            }
        }
        if !std::mem::take(&mut self.is_due) {
            return;
        }
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

    fn write(&self, report: &Report, about: About) {
        self.outside.statistics.write(match self.arguments.json {
            true => format!("{}\n", report.json(about)),
            false => format!("{}\n", report.text(about)),
        });
    }

    /// Has the worker show packets on their way, or no longer.
    fn toggle_trace(&mut self) {
        if self.control.workers() > 1 {
            self.say("traces are of one worker, and this switch has several: not traced");
        } else if !self.is_stopping {
            self.is_tracing = !self.is_tracing;
            let is_on = self.is_tracing;
            self.control.tell_all(|_| Order::Trace(is_on));
        }
    }

    /// Has the program and its entries compiled from their files.
    fn reload(&mut self) {
        if self.is_stopping {
            return;
        }
        if let Err(why) = self.outside.reloader.start() {
            self.keep_program(&why);
        }
    }

    /// Switches to a recompiled program; on an error the old one is kept.
    fn change(&mut self, reloaded: Reloaded) {
        if self.is_stopping {
            return;
        }
        match reloaded {
            // The reloader is busy until the workers have changed: changes do not pile up.
            Ok(program) => self.control.change(*program, None),
            Err(why) => {
                self.keep_program(&why);
                self.reload_finished();
            }
        }
    }

    fn reload_finished(&mut self) {
        if let Err(why) = self.outside.reloader.finished() {
            self.keep_program(&why);
        }
    }

    fn keep_program(&mut self, why: &str) {
        self.say(&format!("not reloaded, the program from before goes on: {why}"));
    }

    fn finish(&mut self, reports: Vec<Report>) -> u8 {
        // The terminal as it was.
        self.watch = None;
        let report = sum(reports);
        self.write(&report, self.about(true));
        self.outside.statistics.finish();
        if report.has_failure() { NO } else { 0 }
    }
}

fn sum(reports: impl IntoIterator<Item = Report>) -> Report {
    let mut sum = Report::default();
    reports.into_iter().for_each(|report| sum.add(report));
    sum
}
