//! The thread that writes the file.

use crate::aside::{self, Finding};
use crate::claim::Claim;
use crate::compact::compact;
use crate::file::StateError;
use crate::frame;
use crate::keeper::{Job, Options, Progress};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;
use weir_files::{Durability, FileError, NewFile, Target, Visibility};

/// Bytes that are written at a time.
const BATCH: usize = 4 << 20;
/// Bytes of changes from which on the file is written anew.
const MANY: u64 = 32 << 20;
/// The file is compacted when its length is this multiple of its initial length.
const LONG: u64 = 4;
/// How long it is waited before what could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked whether a shorter file is there.
const GLANCE: Duration = Duration::from_millis(50);
/// How often it is looked whether the file is still there, where nothing is written.
const PATROL: Duration = Duration::from_secs(1);

/// What says in short what the first bytes of a file say, as it is worked out.
struct Compaction {
    thread: JoinHandle<Result<(NewFile, u64), StateError>>,
    /// How many bytes it stands for, of the file of this generation.
    upto: u64,
    generation: u64,
}

/// Creates a file that may take the target's place, with contents that have reached the disk.
fn create(target: &Target, contents: &[u8]) -> Result<NewFile, StateError> {
    let mut file = target.create(Visibility::Private)?;
    let written = file.write_all(contents).and_then(|()| file.file().sync_all());
    written.map_err(StateError::io("write", &target.path()))?;
    Ok(file)
}

/// The thread's own.
pub(crate) struct Thread {
    target: Target,
    /// Locked. `None` before there is one.
    file: Option<File>,
    /// It can be read only.
    is_read_only: bool,
    /// Bytes of the old file that hold the restored state, if there is one.
    whole: Option<u64>,
    /// What is set aside before the old file is changed.
    finding: Option<Finding>,
    /// Bytes that the file should have. From the beginning on they are whole.
    length: u64,
    /// A part of a batch stands after it, which could not be removed.
    is_torn: bool,
    /// A loss of power may give its name back to the file before.
    is_unsynced: bool,
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
    /// For a file that was claimed.
    pub fn new(
        claim: Claim,
        options: Options,
        todo: Receiver<Job>,
        progress: watch::Sender<Progress>,
    ) -> Result<Self, StateError> {
        let length = match (claim.length, &claim.file) {
            (Some(length), _) => length,
            (None, None) => 0,
            (None, Some(file)) => {
                let found = file.metadata();
                found.map_err(StateError::io("find", &claim.target.path()))?.len()
            }
        };
        Ok(Thread {
            target: claim.target,
            file: claim.file,
            is_read_only: claim.is_read_only,
            whole: claim.whole,
            finding: claim.finding,
            length,
            is_torn: false,
            is_unsynced: false,
            generation: 0,
            compaction: None,
            compact_at: 0,
            todo,
            progress,
            options,
        })
    }

    /// Writes the first file. What has to wait if that is not possible now.
    pub fn first(&mut self, contents: Vec<u8>) -> Result<Vec<Job>, StateError> {
        match self.begin(&contents) {
            Ok(()) => Ok(Vec::new()),
            Err(error @ (StateError::InUse { .. } | StateError::Replaced { .. })) => Err(error),
            Err(error) if self.has_old_state() => {
                self.compact_at = self.length.saturating_mul(LONG);
                self.complain(&format!("{error}; the switch goes on with the state file as it is"));
                Ok(Vec::new())
            }
            Err(error) if self.whole.is_some() || error.is_of_storage() => {
                let path = self.target.path();
                self.complain(&format!(
                    "{error}; the switch runs, but nothing is kept in {} and \
                     writes are refused until it can be written",
                    path.display()
                ));
                let failure = Some(error.to_string().into());
                self.progress.send_modify(|p| p.failure = failure);
                Ok(vec![Job::Begin(contents)])
            }
            Err(error) => Err(error),
        }
    }

    /// Runs jobs until all senders are gone. Some wait already if the file could not be written
    /// so far.
    pub fn run(mut self, mut waiting: Vec<Job>) {
        let mut has_failed = !waiting.is_empty();
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
            // Requests in between get the failure: many requests do not cause many attempts.
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
        let mended = self.mend_tail().and_then(|()| self.check_place());
        if let Err(error) = mended.and_then(|()| self.mend_name()) {
            return (0, Err(error));
        }
        let mut done = 0;
        while let Some(job) = jobs.get(done) {
            let outcome = match job {
                Job::Begin(bytes) => self.begin(bytes).map(|()| 1),
                Job::Replace(bytes) => self.replace(bytes).map(|()| 1),
                Job::Append(_) => {
                    let run = jobs[done..].iter().map_while(|job| match job {
                        Job::Append(bytes) => Some(bytes.as_slice()),
                        Job::Begin(_) | Job::Replace(_) => None,
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
    /// or another process has changed its length.
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

    /// Removes what stands after the part that is whole.
    fn cut_tail(&self) -> std::io::Result<()> {
        self.file.as_ref().map_or(Ok(()), |file| file.set_len(self.length))
    }

    /// Has a file that was placed without its directory placed once more. To synchronise only the
    /// directory again would not do: the system forgets what it has failed to write.
    fn mend_name(&mut self) -> Result<(), StateError> {
        if !self.is_unsynced {
            return Ok(());
        }
        let mut bytes = self.since(0).map_err(StateError::io("read", &self.target.path()))?;
        // `take_place` only places files of the current version, so the first bytes are its header.
        let start = frame::start(bytes.len() as u64);
        let Some(header) = bytes.get_mut(..start.len()) else {
            let cut = std::io::ErrorKind::UnexpectedEof.into();
            return Err(StateError::io("read", &self.target.path())(cut));
        };
        header.copy_from_slice(&start);
        self.replace(&bytes)
    }

    /// Whether the file from before the start can be appended to as it is.
    fn has_old_state(&self) -> bool {
        self.generation == 0 && !self.is_read_only && self.whole == Some(self.length)
    }

    /// Writes the first file, and sets aside what is in the old one besides a state. What has been
    /// done is not done again if this fails and is tried once more.
    fn begin(&mut self, bytes: &[u8]) -> Result<(), StateError> {
        self.check_place()?;
        if self.file.is_some() {
            // What a killed process has left takes room. It is no harm if it stays.
            let _ = self.target.remove_leftovers();
        }
        if let Some(Finding::Tail { at, .. }) = self.finding {
            self.set_aside()?;
            if let (Some(file), false) = (&self.file, self.is_read_only) {
                file.set_len(at).map_err(StateError::io("write", &self.target.path()))?;
                self.length = at;
            }
        }
        let new = create(&self.target, bytes)?;
        if self.finding.is_some() {
            self.set_aside()?;
            self.file = None;
        }
        self.take_place(new, bytes.len() as u64)?;
        let _ = self.target.remove_leftovers();
        Ok(())
    }

    /// Sets aside what was found in the old file, and says where it is.
    fn set_aside(&mut self) -> Result<(), StateError> {
        if let (Some(finding), Some(file)) = (&self.finding, &self.file) {
            let aside = finding.set_aside(&self.target, file)?;
            self.complain(&finding.kept_as(&aside));
        }
        self.finding = None;
        Ok(())
    }

    /// Switches to a new file with this content.
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
        self.is_read_only = false;
        self.is_unsynced = placed.unsynced.is_some();
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

    /// Switches to the compacted file, once it is complete.
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

    /// Switches to a compacted file that covers a prefix of this one; the batches after it are
    /// appended.
    fn go_on_with(&mut self, mut shorter: NewFile, length: u64, upto: u64) -> Result<(), StateError> {
        let since = self.since(upto).map_err(StateError::io("read", &self.target.path()))?;
        let length = length + since.len() as u64;
        let written = shorter.write_all(&since);
        let written = written.and_then(|()| shorter.file().write_all_at(&frame::start(length), 0));
        written
            .and_then(|()| shorter.file().sync_data())
            .map_err(StateError::io("write", &self.target.path()))?;
        self.take_place(shorter, length)
    }

    /// What stands in the file from a place on.
    fn since(&self, from: u64) -> std::io::Result<Vec<u8>> {
        let file = self.file.as_ref();
        file.map_or(Ok(Vec::new()), |file| aside::read(file, from, self.length - from))
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
