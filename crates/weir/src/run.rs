//! `weir run`: the program as a switch between devices.
//!
//! Every worker is a thread that receives from the devices it owns, forwards and sends. The thread
//! that started them watches over the run: it takes signals, compiles a program anew, and sums up
//! what workers have counted.

mod control;
mod end;
mod flow;
mod forward;
mod http;
mod interfaces;
mod live;
mod metrics;
mod plan;
mod plug;
mod pressure;
mod recording;
mod reload;
mod reopen;
mod report;
mod ring;
mod serve;
mod setup;
mod sharing;
mod start;
mod supervisor;
mod watch;
mod worker;

pub use forward::{NOT_TRACING, TRACING};
pub use setup::rate_of;

use crate::cli::Run;
use crate::output::{Messages, OnLoss, Outlet};
use anyhow::Result;
use live::{CpuPort, Live};
use reload::Reloader;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Instant;
use supervisor::Supervisor;
use watch::Watch;
use weir_compiler::NoThread;

/// Runs until the time is over, a signal comes, or every input has ended.
pub fn run(arguments: &Run, messages: &Messages) -> Result<u8> {
    let parent = weir_io::parent_process();
    let specs = setup::port_specs(&arguments.interfaces)?;
    setup::check(arguments, &specs)?;
    if arguments.die_with_parent {
        weir_io::die_with_parent(parent)?;
    }
    let tls = serve::tls(arguments, messages)?;
    let mut program = match setup::program(arguments, &specs, messages)? {
        Ok(program) => program,
        Err(code) => return Ok(code),
    };
    let source = Arc::clone(&program.source);
    let ports = start::open(arguments, &specs, &program, messages)?;
    let statistics = statistics(messages)?;
    let watch = arguments.watch.then(|| Watch::new(&statistics)).transpose()?;
    let (sender, events) = channel();
    let hangup = supervisor::Hangup::of(arguments);
    supervisor::listen(&sender)?;
    // Addresses are bound before the state file changes: a port in use is the usual failure of a
    // start.
    let listening = match arguments.is_served() {
        true => Some(serve::Listening::open(arguments, tls)?),
        false => None,
    };
    let http = arguments.http.map(http::Listening::open).transpose()?;
    let state = match (program.state.take(), program.switches.first_mut()) {
        (Some(state), Some(first)) => Some(state.start(serve::state_options(arguments, &sender), first)?),
        _ => None,
    };
    let (started, engine) = (Instant::now(), program.engine);
    let cpu = Arc::new(CpuPort::new(arguments.cpu_port));
    let links = start::Links {
        events: &sender,
        cpu: &cpu,
        messages,
    };
    let (control, plugger) = start::start(arguments, &specs, program, ports, started, links)?;
    let servers = match listening {
        None => None,
        Some(listening) => {
            let live = Live::new(
                Arc::clone(&control),
                arguments.clone(),
                specs.clone(),
                (cpu, plugger),
                started,
                messages,
            );
            // What runs until a control plane sets a program is none to it.
            let source = (!arguments.bmv2.without_program).then_some(source);
            Some(listening.serve(arguments, live, source, state, &sender, messages)?)
        }
    };
    let http = http.map(|http| http.serve(&sender, messages)).transpose()?;
    let reloader = Reloader::new(arguments, &specs, messages, &sender);
    let outside = supervisor::Outside {
        servers,
        http,
        messages: messages.clone(),
        statistics: statistics.clone(),
        hangup,
        reloader,
    };
    let mut supervisor = Supervisor::new(arguments, control, events, (started, engine), watch, outside);
    supervisor.say("running; stop with Ctrl-C");
    let outcome = supervisor.until_stopped();
    drop(supervisor);
    statistics.finish();
    outcome
}

/// The way of statistics and pictures to stdout, with a thread of its own.
fn statistics(messages: &Messages) -> Result<Outlet> {
    let messages = messages.clone();
    let on_loss: OnLoss = Box::new(move |loss| {
        messages.line(loss.text("statistics"));
        None
    });
    let outlet = Outlet::start("statistics", Box::new(std::io::stdout()), on_loss);
    Ok(outlet.map_err(|error| NoThread::new("statistics", &error))?)
}
