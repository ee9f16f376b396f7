//! SIGHUP: the program is compiled anew from its file.
//!
//! Compiling has a thread of its own, as it may take seconds and other signals must not wait for
//! it.

use super::control::Event;
use super::setup;
use crate::cli::{Run, causes};
use crate::output::Messages;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::mpsc::Sender;
use weir_compiler::NoThread;
use weir_io::PortSpec;

/// A program that was compiled anew, or why the one that runs is kept.
pub type Reloaded = Result<Box<setup::Program>, String>;

/// Compiles the program of a run anew, once at a time.
pub struct Reloader {
    arguments: Run,
    specs: Vec<PortSpec>,
    messages: Messages,
    events: Sender<Event>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Idle,
    /// A program is compiled, or the workers change to it.
    Busy,
    /// The same, and the files may have changed since: another compilation follows.
    Stale,
}

impl Reloader {
    /// One that reports to `events`.
    pub fn new(arguments: &Run, specs: &[PortSpec], messages: &Messages, events: &Sender<Event>) -> Self {
        Reloader {
            arguments: arguments.clone(),
            specs: specs.to_vec(),
            messages: messages.clone(),
            events: events.clone(),
            state: State::Idle,
        }
    }

    /// Compiles the program and its entries from their files; [`Event::Reloaded`] follows.
    ///
    /// # Errors
    /// A file cannot be read a second time, or there is no thread: why nothing is compiled.
    pub fn start(&mut self) -> Result<(), String> {
        if self.state != State::Idle {
            self.state = State::Stale;
            return Ok(());
        }
        let named = [Some(&self.arguments.source.program), self.arguments.entries.as_ref()];
        let is_stream = |path: &Path| path.metadata().is_ok_and(|m| !m.is_file());
        if let Some(path) = named.into_iter().flatten().find(|path| is_stream(path)) {
            return Err(format!("{} is no regular file and is not read again", path.display()));
        }
        let (arguments, specs) = (self.arguments.clone(), self.specs.clone());
        let (messages, events) = (self.messages.clone(), self.events.clone());
        let body = move || {
            // An error means that the supervisor has ended, and the run with it.
            let _ = events.send(Event::Reloaded(compile(&arguments, &specs, &messages)));
        };
        let thread = std::thread::Builder::new().name("reload".to_string());
        thread
            .spawn(body)
            .map_err(|error| NoThread::new("compiling", &error).to_string())?;
        self.state = State::Busy;
        Ok(())
    }

    /// The compilation has failed, or all workers run its program. If the files may have changed
    /// since it began, another begins.
    ///
    /// # Errors
    /// As of [`Reloader::start`].
    pub fn finished(&mut self) -> Result<(), String> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Stale => self.start(),
            State::Busy | State::Idle => Ok(()),
        }
    }
}

fn compile(arguments: &Run, specs: &[PortSpec], messages: &Messages) -> Reloaded {
    let program = || setup::program(arguments, specs, messages);
    // What fails here must not end the switch that runs.
    match std::panic::catch_unwind(AssertUnwindSafe(program)) {
        Ok(Ok(Ok(program))) => Ok(Box::new(program)),
        // The diagnostics have been printed.
        Ok(Ok(Err(_))) => Err("the program does not compile".to_string()),
        Ok(Err(error)) => Err(causes(&error)),
        Err(_) => Err("compiling it failed, which is a mistake in weir: please report it".to_string()),
    }
}
