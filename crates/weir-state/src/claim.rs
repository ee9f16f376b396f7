//! The file of a state, while one switch has it.

use crate::file::{Saved, StateError};
use crate::frame::{MAGIC, NAME};
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use weir_files::{Access, Durability, FileError, Target, Visibility};

/// Attempts to lock a file that other processes replace at the same time.
const ATTEMPTS: usize = 10;

/// What became of a file, or of a part of it, that holds no state to go on with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetAside {
    /// It held the state of a switch that was started with another program.
    #[error("{} held the state of another program, which is in {} now", path.display(), aside.display())]
    OtherProgram {
        /// The state file.
        path: PathBuf,
        /// Where the state is now.
        aside: PathBuf,
    },
    /// It was empty: a state that was lost, or a file made for it.
    #[error("{} was empty: the switch starts with a fresh state, the empty file is {} now", path.display(), aside.display())]
    Empty {
        /// The state file.
        path: PathBuf,
        /// Where the empty file is now.
        aside: PathBuf,
    },
    /// Its end is not whole: a batch that was never acknowledged, or damage.
    #[error(
        "{} ends in {bytes} bytes that are no whole batch, from byte {at} on: they are left out and kept in {}",
        path.display(), aside.display()
    )]
    Tail {
        /// The state file.
        path: PathBuf,
        /// Where the tail begins in it.
        at: usize,
        /// Its length.
        bytes: usize,
        /// Where the tail is now.
        aside: PathBuf,
    },
}

/// A file that a switch's state is to be kept in, and that no other process has.
///
/// There need not be a file yet: then the first [`crate::Keeper`] that starts creates it.
#[derive(Debug)]
pub struct Claim {
    pub(crate) target: Target,
    /// Locked. `None`: there is none.
    pub(crate) file: Option<File>,
    /// Bytes of it that are a whole state.
    pub(crate) whole: Option<u64>,
    set_aside: Vec<SetAside>,
}

impl Claim {
    /// Opens and locks a file, if there is one. A symbolic link is followed now and never again.
    ///
    /// # Errors
    /// It is not a regular file, it cannot be opened for reading and writing, or another process
    /// keeps its state there.
    pub fn new(path: &Path) -> Result<Self, StateError> {
        let target = Target::resolve(path)?;
        for _ in 0..ATTEMPTS {
            let Some(file) = target.open(Access::ReadWrite)? else {
                return Ok(Claim::of(target, None));
            };
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(in_use(&target)),
                Err(TryLockError::Error(error)) => return Err(StateError::io("lock", &target.path())(error)),
            }
            // Its last owner may have replaced it between opening and locking.
            if target.names(&file).map_err(StateError::io("read", &target.path()))? {
                return Ok(Claim::of(target, Some(file)));
            }
        }
        Err(in_use(&target))
    }

    fn of(target: Target, file: Option<File>) -> Self {
        Claim {
            target,
            file,
            whole: None,
            set_aside: Vec::new(),
        }
    }

    /// What the file holds; `None`: no state. An empty file, and the tail of one that is not whole
    /// to its end, are set aside ([`Claim::set_aside`]).
    ///
    /// # Errors
    /// It cannot be read, is something else, or is damaged before its end.
    pub fn read(&mut self) -> Result<Option<Saved>, StateError> {
        let path = self.target.path();
        let Some(bytes) = self.bytes()? else { return Ok(None) };
        if bytes.is_empty() {
            let aside = self.move_aside(".empty")?;
            self.set_aside.push(SetAside::Empty { path, aside });
            return Ok(None);
        }
        let saved = Saved::of(&path, bytes)?;
        if !saved.tail().is_empty() {
            let aside = self.keep_tail(saved.tail())?;
            self.set_aside.push(SetAside::Tail {
                path,
                at: saved.end(),
                bytes: saved.tail().len(),
                aside,
            });
        }
        self.whole = Some(saved.end() as u64);
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

    /// Writes a tail to a new file beside.
    fn keep_tail(&self, tail: &[u8]) -> Result<PathBuf, StateError> {
        for target in self.names_beside(".tail") {
            let path = target.path();
            if path.symlink_metadata().is_ok() {
                continue;
            }
            let mut file = target.create(Visibility::Private)?;
            file.write_all(tail).map_err(StateError::io("write", &path))?;
            match file.place(Durability::Synced) {
                Ok(_) => return Ok(path),
                Err(FileError::Exists { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(self.too_many_beside())
    }

    /// Gives the file another name beside its own, since it holds the state of a switch that was
    /// started with another program. The next state is a new file.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn set_other_program_aside(&mut self) -> Result<(), StateError> {
        let path = self.target.path();
        let aside = self.move_aside(".old")?;
        self.set_aside.push(SetAside::OtherProgram { path, aside });
        Ok(())
    }

    /// What was set aside so far.
    #[must_use]
    pub fn set_aside(&self) -> &[SetAside] {
        &self.set_aside
    }

    fn move_aside(&mut self, suffix: &str) -> Result<PathBuf, StateError> {
        let free = self
            .names_beside(suffix)
            .map(|t| t.path())
            .find(|path| path.symlink_metadata().is_err());
        let aside = free.ok_or_else(|| self.too_many_beside())?;
        std::fs::rename(self.target.path(), &aside).map_err(StateError::io("rename", &self.target.path()))?;
        (self.file, self.whole) = (None, None);
        Ok(aside)
    }

    /// `FILE.old`, `FILE.old2`, …
    fn names_beside(&self, suffix: &str) -> impl Iterator<Item = Target> + use<'_> {
        let suffix = suffix.to_owned();
        let numbers = (2..1000).map(|n| n.to_string());
        let ends = std::iter::once(String::new()).chain(numbers);
        ends.map(move |end| self.target.with_suffix(&format!("{suffix}{end}")))
    }

    fn too_many_beside(&self) -> StateError {
        let error = std::io::Error::other("there are too many such files already; move some away");
        StateError::io("set a part aside of", &self.target.path())(error)
    }
}

fn in_use(target: &Target) -> StateError {
    StateError::InUse {
        path: target.path().display().to_string(),
    }
}
