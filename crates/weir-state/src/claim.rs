//! The file of a state, while one switch has it.

use crate::aside::Finding;
use crate::file::{Saved, StateError};
use crate::frame::{MAGIC, NAME};
use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use weir_files::{Access, FileError, Target};

/// Attempts to lock a file that other processes replace at the same time.
const ATTEMPTS: usize = 10;

/// A file that a switch's state is to be kept in, and that no other process has.
///
/// There need not be a file yet: then the first [`crate::Keeper`] that starts creates it.
#[derive(Debug)]
pub struct Claim {
    pub(crate) target: Target,
    /// Locked. `None`: there is none.
    pub(crate) file: Option<File>,
    /// Its file system was mounted read-only when it was opened.
    pub(crate) is_read_only: bool,
    /// Bytes that it had when it was read.
    pub(crate) length: Option<u64>,
    /// Bytes of it that are a whole state to go on with.
    pub(crate) whole: Option<u64>,
    pub(crate) finding: Option<Finding>,
}

impl Claim {
    /// Opens and locks a file, if there is one. A symbolic link is followed now and never again.
    ///
    /// # Errors
    /// It is not a regular file, it cannot be opened for reading and writing, or another process
    /// keeps its state there. Where the file system is read-only, it is opened for reading.
    pub fn new(path: &Path) -> Result<Self, StateError> {
        let target = Target::resolve(path)?;
        for _ in 0..ATTEMPTS {
            let (opened, is_read_only) = match target.open(Access::ReadWrite) {
                Err(FileError::Io { source, .. }) if source.kind() == ErrorKind::ReadOnlyFilesystem => {
                    (target.open(Access::Read)?, true)
                }
                opened => (opened?, false),
            };
            let Some(file) = opened else {
                return Ok(Claim::of(target, None, false));
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(&target)),
                Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &target.path())(error)),
            }
            // Its last owner may have replaced it between opening and locking.
            if target.names(&file).map_err(StateError::io("read", &target.path()))? {
                return Ok(Claim::of(target, Some(file), is_read_only));
            }
        }
        Err(in_use(&target))
    }

    fn of(target: Target, file: Option<File>, is_read_only: bool) -> Self {
        Claim {
            target,
            file,
            is_read_only,
            length: None,
            whole: None,
            finding: None,
        }
    }

    /// What the file holds; `None`: no state. An empty file, and the tail of one that is not whole
    /// to its end, are a [`Finding`]. The file is not changed.
    ///
    /// # Errors
    /// It cannot be read, is something else, or is damaged before its end.
    pub fn read(&mut self) -> Result<Option<Saved>, StateError> {
        let path = self.target.path();
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        self.length = Some(bytes.len() as u64);
        if bytes.is_empty() {
            self.finding = Some(Finding::Empty { path });
            return Ok(None);
        }
        let saved = Saved::of(&path, bytes)?;
        let end = saved.end() as u64;
        self.whole = Some(end);
        self.finding = (!saved.tail().is_empty()).then(|| Finding::Tail {
            path,
            at: end,
            bytes: saved.tail().len() as u64,
        });
        Ok(Some(saved))
    }

    /// All bytes, unless the first ones are not those of a state: then only these.
    fn bytes(&self) -> Result<Option<Vec<u8>>, StateError> {
        let Some(mut file) = self.file.as_ref() else {
            return Ok(None);
        };
        let path = self.target.path();
        let failed = || StateError::io("read", &path);
        file.seek(SeekFrom::Start(0)).map_err(failed())?;
        let mut bytes = Vec::new();
        file.take(MAGIC.len() as u64)
            .read_to_end(&mut bytes)
            .map_err(failed())?;
        if bytes.starts_with(NAME) {
            file.read_to_end(&mut bytes).map_err(failed())?;
        }
        Ok(Some(bytes))
    }

    /// The file holds the state of a switch that was started with another program. The next state
    /// is a new file, and this one gets another name as soon as that is written.
    pub fn set_other_program_aside(&mut self) {
        let path = self.target.path();
        self.whole = None;
        self.finding = Some(Finding::OtherProgram { path });
    }

    /// What of the file is no state to go on with. [`crate::Keeper::start`] sets it aside.
    #[must_use]
    pub fn finding(&self) -> Option<&Finding> {
        self.finding.as_ref()
    }
}

fn in_use(target: &Target) -> StateError {
    StateError::InUse {
        path: target.path().display().to_string(),
    }
}
