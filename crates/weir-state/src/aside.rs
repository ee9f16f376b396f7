//! Parts of a state file that hold no state to go on with, and where they are kept.
//!
//! Reading a file changes nothing. A [`Finding`] is reported then; the part is set aside when the
//! new file is written ([`crate::Keeper::start`]), and the old one is not overwritten before.

use crate::file::StateError;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use weir_files::{Access, Durability, FileError, Target, Visibility};

/// Names that are tried for a file beside: `FILE.old`, `FILE.old2`, …
const NAMES: u32 = 999;

/// A file, or part of one, without usable state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// It holds the state of a switch that was started with another program.
    #[error("{} holds the state of another program: the switch begins anew and sets it aside", path.display())]
    OtherProgram {
        /// The state file.
        path: PathBuf,
    },
    /// It is empty: a state that was lost, or a file made for it.
    #[error("{} is empty: the switch begins anew and sets the empty file aside", path.display())]
    Empty {
        /// The state file.
        path: PathBuf,
    },
    /// Its end is not whole: a batch that was never acknowledged, or damage.
    #[error(
        "{} ends in {bytes} bytes that are no whole batch, from byte {at} on: they are left out and kept beside",
        path.display()
    )]
    Tail {
        /// The state file.
        path: PathBuf,
        /// Where the tail begins in it.
        at: u64,
        /// Its length.
        bytes: u64,
    },
}

impl Finding {
    /// What is reported when it has been set aside.
    pub(crate) fn kept_as(&self, aside: &Path) -> String {
        let aside = aside.display();
        match self {
            Finding::OtherProgram { .. } => format!("the state of the other program is in {aside} now"),
            Finding::Empty { .. } => format!("the empty file is {aside} now"),
            Finding::Tail { at, bytes, .. } => format!("the {bytes} bytes from byte {at} on are in {aside} now"),
        }
    }

    /// Sets it aside, durably for a tail. `file` is the open state file.
    pub(crate) fn set_aside(&self, target: &Target, file: &File) -> Result<PathBuf, StateError> {
        match self {
            Finding::OtherProgram { .. } => move_file(target, ".old"),
            Finding::Empty { .. } => move_file(target, ".empty"),
            Finding::Tail { at, bytes, .. } => {
                let tail = read(file, *at, *bytes).map_err(StateError::io("read", &target.path()))?;
                keep_tail(target, &tail)
            }
        }
    }
}

/// Reads a number of bytes of a file at an offset, or fewer if it is shorter.
pub(crate) fn read(mut file: &File, from: u64, count: u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Seek, SeekFrom};
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(count).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a tail to a new file beside, unless one there holds the same: a start that failed later
/// has left it.
fn keep_tail(target: &Target, tail: &[u8]) -> Result<PathBuf, StateError> {
    for beside in names_beside(target, ".tail") {
        let path = beside.path();
        if path.symlink_metadata().is_ok() {
            if holds(&beside, tail) {
                return Ok(path);
            }
            continue;
        }
        let _ = beside.remove_leftovers();
        let mut file = beside.create(Visibility::Private)?;
        file.write_all(tail).map_err(StateError::io("write", &path))?;
        match file.place(Durability::Synced) {
            Ok(placed) => return placed.unsynced.map_or(Ok(path), |error| Err(error.into())),
            Err(FileError::Exists { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(too_many_beside(target))
}

/// Whether a file holds these bytes and no others, and they have reached the disk.
fn holds(target: &Target, bytes: &[u8]) -> bool {
    let length = bytes.len() as u64;
    let Ok(Some(file)) = target.open(Access::Read) else {
        return false;
    };
    let is_as_long = file.metadata().is_ok_and(|found| found.len() == length);
    is_as_long
        && read(&file, 0, length).is_ok_and(|found| found == bytes)
        && file.sync_all().is_ok()
        && target.sync_folder().is_ok()
}

/// Gives the state file another name beside its own.
fn move_file(target: &Target, suffix: &str) -> Result<PathBuf, StateError> {
    let free = names_beside(target, suffix)
        .map(|t| t.path())
        .find(|path| path.symlink_metadata().is_err());
    let aside = free.ok_or_else(|| too_many_beside(target))?;
    std::fs::rename(target.path(), &aside).map_err(StateError::io("rename", &target.path()))?;
    Ok(aside)
}

/// `FILE.old`, `FILE.old2`, …
fn names_beside<'a>(target: &'a Target, suffix: &'a str) -> impl Iterator<Item = Target> + 'a {
    (1..=NAMES).map(move |number| match number {
        1 => target.with_suffix(suffix),
        _ => target.with_suffix(&format!("{suffix}{number}")),
    })
}

fn too_many_beside(target: &Target) -> StateError {
    let error = std::io::Error::other("there are too many such files already; move some away");
    StateError::io("set a part aside of", &target.path())(error)
}
