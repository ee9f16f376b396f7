//! The thread that writes the file.

use crate::claim::Claim;
use crate::compact::compact;
use crate::file::{Contents, StateError, encoded};
use crate::frame::{self, Kind};
use crate::journal::Recorder;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use weir_files::{Durability, FileError, NewFile, Target, Visibility};
use weir_switch::Journal;

/// Bytes that are written at a time.
const BATCH: usize = 4 << 20;
/// Bytes of changes from which on the file is written anew.
const MANY: u64 = 32 << 20;
/// The file is written anew when it is so many times as long as it was in the beginning.
const LONG: u64 = 4;
/// How long it is waited before what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether a shorter file is there.
const GLANCE: Duration = Duration::from_millis(50);
/// How often it is looked whether the file is still there, where nothing is written.
const PATROL: Duration = Duration::from_secs(1);

/// What is told of trouble, in a few words.
pub type OnTrouble = Arc<dyn Fn(&str) + Send + Sync>;

/// How a state is kept.
#[derive(Clone, Default)]
pub struct Options {
    /// What is acknowledged has reached the disk, and survives the loss of power, too.
    pub sync: bool,
    /// Bytes of changes from which on the file is written anew, if it has also become four times as long; by default 32 MiB.
    pub many: Option<u64>,
    /// Told, in a few words, of what does not work and when it works again.
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

enum Job {
    Append(Vec<u8>),
    Replace(Vec<u8>),
}

/// What says in short what the first bytes of a file say, as it is worked out.
struct Compaction {
    thread: JoinHandle<Result<(NewFile, u64), StateError>>,
    /// How many bytes it stands for, of the file of this generation.
    upto: u64,
    generation: u64,
}

impl Job {
    fn bytes(&self) -> usize {
        match self {
            Job::Append(bytes) | Job::Replace(bytes) => bytes.len(),
        }
    }
}

/// How far the thread is.
#[derive(Debug, Clone, Default)]
struct Progress {
    /// Jobs that are done.
    done: u64,
    failure: Option<Arc<str>>,
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

/// Keeps a state in a file. It ends, with everything written, when this and all its journals are gone.
#[derive(Debug, Clone)]
pub struct Keeper {
    line: Line,
    progress: watch::Receiver<Progress>,
}

impl Keeper {
    /// Begins with these contents, in place of what the file held.
    ///
    /// If the new file cannot be written, for example because the disk is full, the state that was
    /// read from the old one goes on. [`Options::on_trouble`] is told. The contents must say the
    /// same then.
    ///
    /// # Errors
    /// It cannot be written, and no whole state was read from it.
    pub fn start(claim: Claim, options: Options, contents: Contents) -> Result<Self, StateError> {
        let (jobs, todo) = channel();
        let (tell, progress) = watch::channel(Progress::default());
        let whole = claim.whole;
        let mut thread = Thread {
            target: claim.target,
            file: claim.file,
            length: whole.unwrap_or(0),
            is_torn: false,
            generation: 0,
            compaction: None,
            compact_at: 0,
            todo,
            progress: tell,
            options,
        };
        let path = thread.target.path();
        match (thread.replace(&contents.into_bytes()), whole) {
            (Ok(()), _) => {
                // What a killed process has left. It is no harm if it stays.
                let _ = thread.target.remove_leftovers();
            }
            (Err(error @ (StateError::InUse { .. } | StateError::Replaced { .. })), _) | (Err(error), None) => {
                return Err(error);
            }
            (Err(error), Some(whole)) => {
                thread.cut_tail().map_err(StateError::io("write", &path))?;
                thread.compact_at = whole.saturating_mul(LONG);
                thread.complain(&format!("{error}; the switch goes on with the state file as it is"));
            }
        }
        let line = Line(Arc::new(Mutex::new(Queue { jobs, given: 0 })));
        std::thread::Builder::new()
            .name("state".to_owned())
            .spawn(move || thread.run())
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

    /// Whether something that was given could not be written so far: then it is better to change nothing.
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

/// Creates a file that may take the target's place, with contents that have reached the disk.
fn create(target: &Target, contents: &[u8]) -> Result<NewFile, StateError> {
    let mut file = target.create(Visibility::Private)?;
    let written = file.write_all(contents).and_then(|()| file.file().sync_all());
    written.map_err(StateError::io("write", &target.path()))?;
    Ok(file)
}

struct Thread {
    target: Target,
    /// Locked. `None` before there is one.
    file: Option<File>,
    /// Bytes of the file that are whole.
    length: u64,
    /// A part of a batch stands behind it, which could not be removed.
    is_torn: bool,
    /// How often it was written anew.
    generation: u64,
    compaction: Option<Compaction>,
    /// It is written anew when it has become so long.
    compact_at: u64,
    todo: Receiver<Job>,
    progress: watch::Sender<Progress>,
    options: Options,
}

impl Thread {
    fn run(mut self) {
        let mut waiting = Vec::new();
        let mut has_failed = false;
        loop {
            let is_last = match self.next(&mut waiting, has_failed) {
                Ok(()) => false,
                Err(RecvTimeoutError::Timeout) => false,
                Err(RecvTimeoutError::Disconnected) => true,
            };
            self.end_compaction();
            let (done, outcome) = self.write(&waiting);
            waiting.drain(..done);
            let failure: Option<Arc<str>> = outcome.err().map(|e| e.to_string().into());
            match &failure {
                Some(why) if !has_failed => self.complain(&format!("the state is not kept any more: {why}")),
                None if has_failed => self.complain(&format!("{} is written again", self.target.path().display())),
                _ => {}
            }
            has_failed = failure.is_some();
            self.progress.send_modify(|p| {
                p.done += done as u64;
                p.failure = failure;
            });
            if is_last {
                return;
            }
            if !has_failed {
                self.begin_compaction();
            }
        }
    }

    /// Waits for something to do, and takes what else there is.
    fn next(&self, waiting: &mut Vec<Job>, has_failed: bool) -> Result<(), RecvTimeoutError> {
        let job = if has_failed {
            // Whoever asks is told that it fails; to be asked often is no reason to try often.
            std::thread::sleep(AGAIN);
            self.todo.recv_timeout(Duration::ZERO)
        } else if self.compaction.is_some() {
            self.todo.recv_timeout(GLANCE)
        } else {
            self.todo.recv_timeout(PATROL)
        };
        waiting.push(job?);
        let mut bytes: usize = waiting.iter().map(Job::bytes).sum();
        while bytes < BATCH
            && let Ok(job) = self.todo.try_recv()
        {
            bytes += job.bytes();
            waiting.push(job);
        }
        Ok(())
    }

    fn complain(&self, what: &str) {
        if let Some(tell) = &self.options.on_trouble {
            tell(what);
        }
    }

    /// Does jobs in order until one fails; how many were done.
    fn write(&mut self, jobs: &[Job]) -> (usize, Result<(), StateError>) {
        if let Err(error) = self.mend_tail().and_then(|()| self.check_place()) {
            return (0, Err(error));
        }
        let mut done = 0;
        while let Some(job) = jobs.get(done) {
            let outcome = match job {
                Job::Replace(bytes) => self.replace(bytes).map(|()| 1),
                Job::Append(_) => {
                    let run = jobs[done..].iter().map_while(|job| match job {
                        Job::Append(bytes) => Some(bytes.as_slice()),
                        Job::Replace(_) => None,
                    });
                    let run: Vec<&[u8]> = run.collect();
                    let appended = self.append(&run.concat()).map(|()| run.len());
                    appended.map_err(StateError::io("write", &self.target.path()))
                }
            };
            match outcome.and_then(|more| self.check_place().map(|()| more)) {
                Ok(more) => done += more,
                Err(error) => return (done, Err(error)),
            }
        }
        (done, Ok(()))
    }

    /// Refuses to acknowledge anything once the file's name stands for another file, or for none,
    /// or somebody else has made it longer or shorter.
    fn check_place(&self) -> Result<(), StateError> {
        self.check_name()?;
        let Some(file) = &self.file else { return Ok(()) };
        let found = file.metadata().map_err(StateError::io("find", &self.target.path()))?;
        match found.len() == self.length {
            true => Ok(()),
            false => Err(self.replaced()),
        }
    }

    /// Refuses to go on once the file's name stands for another file, or for none.
    fn check_name(&self) -> Result<(), StateError> {
        let Some(file) = &self.file else { return Ok(()) };
        let is_named = self.target.names(file);
        match is_named.map_err(StateError::io("find", &self.target.path()))? {
            true => Ok(()),
            false => Err(self.replaced()),
        }
    }

    fn replaced(&self) -> StateError {
        StateError::Replaced {
            path: self.target.path().display().to_string(),
        }
    }

    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(file) = &mut self.file else {
            return Err(std::io::Error::other("there is no file yet"));
        };
        file.seek(SeekFrom::Start(self.length))?;
        let written = file.write_all(bytes).and_then(|()| match self.options.sync {
            true => file.sync_data(),
            false => Ok(()),
        });
        if written.is_err() {
            // What is there of it would be in the middle if something else came after it.
            self.is_torn = true;
            self.cut_tail()?;
            self.is_torn = false;
        }
        written?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Removes what a batch that failed has left.
    fn mend_tail(&mut self) -> Result<(), StateError> {
        if self.is_torn {
            self.cut_tail().map_err(StateError::io("write", &self.target.path()))?;
            self.is_torn = false;
        }
        Ok(())
    }

    /// Removes what stands behind the part that is whole.
    fn cut_tail(&self) -> std::io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.set_len(self.length))
    }

    /// Goes on with a new file that holds this.
    fn replace(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        let file = create(&self.target, bytes)?;
        self.take_place(file, bytes.len() as u64)
    }

    /// Has a file take the place of the old one.
    fn take_place(&mut self, new: NewFile, length: u64) -> Result<(), StateError> {
        // A tail that is not whole goes with the old file.
        self.check_name()?;
        new.file().lock().map_err(StateError::io("lock", &self.target.path()))?;
        let placed = match &self.file {
            Some(_) => new.replace(Durability::Synced)?,
            None => match new.place(Durability::Synced) {
                Ok(placed) => placed,
                // Another switch was faster.
                Err(FileError::Exists { path }) => {
                    let path = path.display().to_string();
                    return Err(StateError::InUse { path });
                }
                Err(error) => return Err(error.into()),
            },
        };
        // The name stands for the new file now, whatever else goes wrong.
        self.file = Some(placed.file);
        self.is_torn = false;
        self.length = length;
        self.generation += 1;
        self.compact_at = (length + self.options.many.unwrap_or(MANY)).max(length * LONG);
        placed.unsynced.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Begins to work out a shorter file, if this one has become long.
    fn begin_compaction(&mut self) {
        if self.length < self.compact_at || self.compaction.is_some() {
            return;
        }
        let (target, upto) = (self.target.clone(), self.length);
        let thread = std::thread::Builder::new()
            .name("state, shorter".to_owned())
            .spawn(move || {
                let contents = compact(&target, upto)?.into_bytes();
                Ok((create(&target, &contents)?, contents.len() as u64))
            });
        match thread {
            Ok(thread) => {
                self.compaction = Some(Compaction {
                    thread,
                    upto,
                    generation: self.generation,
                });
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Goes on with the shorter file, once it is there.
    fn end_compaction(&mut self) {
        let Some(compaction) = self.compaction.take_if(|c| c.thread.is_finished()) else {
            return;
        };
        if compaction.generation != self.generation {
            return;
        }
        let (file, length) = match compaction.thread.join() {
            Ok(Ok(shorter)) => shorter,
            Ok(Err(error)) => return self.give_up(&error),
            Err(_) => return self.give_up(&"a mistake in weir: please report it"),
        };
        if let Err(error) = self.go_on_with(file, length, compaction.upto) {
            self.give_up(&error);
        }
    }

    /// Goes on with a shorter file that stands for so many bytes of this one: what has come since is added.
    fn go_on_with(&mut self, mut shorter: NewFile, length: u64, upto: u64) -> Result<(), StateError> {
        let since = self.since(upto).map_err(StateError::io("read", &self.target.path()))?;
        let written = shorter.write_all(&since).and_then(|()| shorter.file().sync_data());
        written.map_err(StateError::io("write", &self.target.path()))?;
        self.take_place(shorter, length + since.len() as u64)
    }

    /// What stands in the file from a place on.
    fn since(&mut self, from: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(from))?;
            file.take(self.length - from).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The file stays as long as it is, for now.
    fn give_up(&mut self, why: &dyn std::fmt::Display) {
        self.compact_at = self.length * 2;
        self.complain(&format!(
            "{} grows, it cannot be shortened: {why}",
            self.target.path().display()
        ));
    }
}
