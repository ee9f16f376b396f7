//! The way to the thread that writes the file, and back.

use crate::claim::Claim;
use crate::file::{Contents, StateError, encoded};
use crate::frame::{self, Kind};
use crate::journal::Recorder;
use crate::writer::Thread;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use weir_switch::Journal;

/// What is told of trouble, in a few words.
pub type OnTrouble = Arc<dyn Fn(&str) + Send + Sync>;

/// How a state is kept.
#[derive(Clone, Default)]
pub struct Options {
    /// What is acknowledged has reached the disk, and survives the loss of power, too.
    pub sync: bool,
    /// Bytes of changes from which on the file is written anew, if it has also become four times as
    /// long; by default 32 MiB.
    pub many: Option<u64>,
    /// Told, in a few words, of what does not work and when it works again, and of what was set
    /// aside.
    pub on_trouble: Option<OnTrouble>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("sync", &self.sync)
            .finish_non_exhaustive()
    }
}

/// What was changed could not be kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the state cannot be kept: {0}")]
pub struct NotKept(Arc<str>);

/// Something to be done by the thread, in order.
pub(crate) enum Job {
    /// The first file of this keeper is written. What was found in the old one is set aside.
    Begin(Vec<u8>),
    Append(Vec<u8>),
    Replace(Vec<u8>),
}

impl Job {
    pub fn bytes(&self) -> usize {
        match self {
            Job::Begin(bytes) | Job::Append(bytes) | Job::Replace(bytes) => bytes.len(),
        }
    }
}

/// How far the thread is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Progress {
    /// Jobs that are done.
    pub done: u64,
    /// Why the next one is not.
    pub failure: Option<Arc<str>>,
}

#[derive(Debug)]
struct Queue {
    jobs: Sender<Job>,
    /// Jobs so far.
    given: u64,
}

/// The way to the thread.
#[derive(Debug, Clone)]
pub(crate) struct Line(Arc<Mutex<Queue>>);

impl Line {
    fn give(&self, job: Job) {
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        queue.given += 1;
        // The thread goes when nobody can give it anything.
        let _ = queue.jobs.send(job);
    }

    fn given(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).given
    }

    /// Appends pieces that are valid together.
    pub fn append(&self, pieces: &[u8]) {
        let mut bytes = Vec::with_capacity(pieces.len() + 16);
        frame::append(&mut bytes, Kind::Pieces, pieces);
        self.give(Job::Append(bytes));
    }
}

/// Keeps a state in a file. It ends, with everything written, when this and all its journals are
/// gone.
#[derive(Debug, Clone)]
pub struct Keeper {
    line: Line,
    progress: watch::Receiver<Progress>,
}

impl Keeper {
    /// Begins with these contents, in place of what the file held. [`Claim::finding`] is set aside.
    /// The old file is not changed before the new one is complete.
    ///
    /// If the new file cannot be written, for example because the disk is full, a complete old file
    /// stays in use; the contents must be the same. Without one, nothing is kept until the new file
    /// can be written; this is retried. Both are reported to [`Options::on_trouble`].
    ///
    /// # Errors
    /// It cannot be written, no whole state was read, and the storage is not the reason; or another
    /// process has the file.
    pub fn start(claim: Claim, options: Options, contents: Contents) -> Result<Self, StateError> {
        let (jobs, todo) = channel();
        let (tell, progress) = watch::channel(Progress::default());
        let path = claim.target.path();
        let mut thread = Thread::new(claim, options, todo, tell)?;
        let waiting = thread.first(contents.into_bytes())?;
        let given = waiting.len() as u64;
        let line = Line(Arc::new(Mutex::new(Queue { jobs, given })));
        std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || thread.run(waiting))
            .map_err(StateError::io("start a thread for", &path))?;
        Ok(Keeper { line, progress })
    }

    /// A journal for a switch whose changes are appended.
    #[must_use]
    pub fn journal(&self) -> Box<dyn Journal> {
        Box::new(Recorder::new(self.line.clone()))
    }

    /// Keeps something of the caller's by name.
    pub fn set(&self, name: &str, value: &[u8]) {
        let mut bytes = Vec::new();
        frame::append(&mut bytes, Kind::Setting, &encoded(&(name, value)));
        self.line.give(Job::Append(bytes));
    }

    /// Goes on with these contents, in place of everything before.
    pub fn replace(&self, contents: Contents) {
        self.line.give(Job::Replace(contents.into_bytes()));
    }

    /// Waits until everything that was committed, set or replaced before is in the file.
    ///
    /// # Errors
    /// It cannot be written at the moment. It is tried again, and will be there if that succeeds.
    pub async fn kept(&self) -> Result<(), NotKept> {
        let given = self.line.given();
        let mut progress = self.progress.clone();
        let reached = progress.wait_for(|p| p.done >= given || p.failure.is_some()).await;
        match reached {
            Ok(progress) => match &progress.failure {
                Some(why) if progress.done < given => Err(NotKept(Arc::clone(why))),
                _ => Ok(()),
            },
            Err(_) => Err(NotKept("its thread has ended".into())),
        }
    }

    /// As [`Keeper::kept`], for whoever does not wait asynchronously.
    ///
    /// # Errors
    /// As there.
    pub fn kept_blocking(&self) -> Result<(), NotKept> {
        let given = self.line.given();
        loop {
            let progress = self.progress.borrow().clone();
            if progress.done >= given {
                return Ok(());
            }
            if let Some(why) = progress.failure {
                return Err(NotKept(why));
            }
            if self.progress.has_changed().is_err() {
                return Err(NotKept("its thread has ended".into()));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    /// Whether something that was given could not be written so far: then it is better to change
    /// nothing.
    ///
    /// # Errors
    /// It is so, and why.
    pub fn check(&self) -> Result<(), NotKept> {
        match &self.progress.borrow().failure {
            Some(why) => Err(NotKept(Arc::clone(why))),
            None => Ok(()),
        }
    }
}
