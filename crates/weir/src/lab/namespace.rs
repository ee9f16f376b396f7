//! Network namespaces without names: each is held by a thread, and vanishes with it and with the
//! processes that it has started.

use anyhow::{Context, Result};
use nix::sched::CloneFlags;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace of a host.
pub struct Namespace {
    jobs: Sender<Job>,
    thread: i32,
}

impl Namespace {
    /// A namespace in which a host of this name is alone.
    ///
    /// # Errors
    /// There is no thread, or no right to a namespace.
    pub fn new(name: &str) -> Result<Self> {
        let (jobs, received) = channel::<Job>();
        let (sender, started) = channel();
        let hostname = name.to_owned();
        let body = move || {
            let flags = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWUTS;
            let made = nix::sched::unshare(flags).map_err(std::io::Error::from);
            // Only prompts of shells show it.
            let _ = rustix::system::sethostname(hostname.as_bytes());
            let thread = rustix::thread::gettid().as_raw_nonzero().get();
            if sender.send(made.map(|()| thread)).is_ok() {
                received.into_iter().for_each(|job| job());
            }
        };
        std::thread::Builder::new()
            .name(format!("host {name}"))
            .spawn(body)
            .context("cannot start a thread")?;
        let thread = started.recv().context("the thread has ended")?;
        let thread = thread.context("cannot make a network namespace")?;
        Ok(Namespace { jobs, thread })
    }

    /// The thread that holds it, as `ip link … netns` takes it.
    pub fn thread(&self) -> i32 {
        self.thread
    }

    /// Has the thread do something, and waits for it.
    ///
    /// # Errors
    /// The thread has ended.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let (sender, answer) = channel();
        let job = move || {
            // The caller waits for it.
            let _ = sender.send(job());
        };
        let gone = "the thread of the host has ended";
        self.jobs.send(Box::new(job)).ok().context(gone)?;
        answer.recv().context(gone)
    }

    /// Starts a process within it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn spawn(&self, mut command: Command) -> Result<Child> {
        let name = command.get_program().to_string_lossy().into_owned();
        self.run(move || command.spawn())?
            .with_context(|| format!("cannot start {name}"))
    }
}
