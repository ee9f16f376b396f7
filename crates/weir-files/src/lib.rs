//! Regular files, written safely, and files read as a whole.
//!
//! [`read`] refuses what would never end or never begin: devices, FIFOs
//! unless the caller allows streams, and files beyond a limit.
//!
//! All files that weir writes as a whole go through this crate. It promises:
//!
//! - Only regular files are opened or replaced. Devices, FIFOs, sockets and directories are errors.
//! - A symbolic link is followed once, by [`Target::resolve`]. A link that changes later has no
//!   effect.
//! - A new file has a random name in the directory of its target until it is complete. It is
//!   created with `O_EXCL`, so that other users who may write to that directory cannot redirect it.
//! - A file is replaced atomically, by `rename`. Its permissions, and where possible its owner,
//!   stay.
//! - The file and its directory reach the disk before a write returns, on request ([`Durability`]).
//!
//! The crate does not write to streams: captures and standard output are not its business. It does
//! not protect a file from users who may write to its directory, other than by noticing that it was
//! replaced ([`Target::names`]).
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! let path = folder.path().join("plot.svg");
//! weir_files::write(&path, b"<svg/>")?;
//! assert_eq!(std::fs::read(&path)?, b"<svg/>");
//!
//! let error = weir_files::write("/dev/null".as_ref(), b"<svg/>").unwrap_err();
//! assert_eq!(error.to_string(), "/dev/null is a character device; give a regular file");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod identity;
mod input;

pub use identity::Identity;
pub use input::{Readable, read, read_text};

use std::ffi::{OsStr, OsString};
use std::fs::{File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use tempfile::{Builder, NamedTempFile};

/// Symbolic links that are followed in a row: as many as Linux follows.
const MAX_LINKS: usize = 40;
/// Permission bits that a replaced file keeps.
const PERMISSION_BITS: u32 = 0o7777;
/// Permission bits of a new file that only its owner may read.
const PRIVATE: u32 = 0o600;
/// Permission bits of any other new file, before the process's umask is applied.
const SHARED: u32 = 0o666;

/// Why a file is not opened or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refuses.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, for example `open`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// It is not a regular file.
    #[error("{} is a {kind}; give a regular file", path.display())]
    NotRegular {
        /// The file.
        path: PathBuf,
        /// What it is, for example `FIFO`.
        kind: &'static str,
    },
    /// It has more bytes than such a file may have.
    #[error("{} has more than {} MiB", path.display(), limit >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Most bytes that it may have.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("{} is not a text in UTF-8", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// There is a file of this name already, and it must not be replaced.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The path has no last component, like `/` or `..`.
    #[error("{} names no file", path.display())]
    NoName {
        /// The path.
        path: PathBuf,
    },
}

impl FileError {
    /// Whether [`is_of_storage`] holds for the system's reason.
    #[must_use]
    pub fn is_of_storage(&self) -> bool {
        match self {
            FileError::Io { source, .. } => is_of_storage(source),
            FileError::NotRegular { .. }
            | FileError::TooLarge { .. }
            | FileError::NotText { .. }
            | FileError::Exists { .. }
            | FileError::NoName { .. } => false,
        }
    }

    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
        let path = path.to_owned();
        move |source| FileError::Io { action, path, source }
    }
}

/// Whether a storage refuses, and may accept the same later: there is no room on it, in a quota or
/// within the limit of a file's size, it is mounted read-only, or it fails.
#[must_use]
pub fn is_of_storage(error: &io::Error) -> bool {
    let numbers = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG, libc::EROFS, libc::EIO];
    match error.raw_os_error() {
        Some(number) => numbers.contains(&number),
        // The number is lost where a path was added to the error. The kind is not.
        None => numbers
            .map(|n| io::Error::from_raw_os_error(n).kind())
            .contains(&error.kind()),
    }
}

/// What may be done with an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is read and written.
    ReadWrite,
}

/// Who may read a file that did not exist before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// Its owner (mode 0600).
    Private,
    /// Everyone whom the process's umask allows.
    Shared,
}

/// What survives a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The new file, once the call has returned: file and directory are synchronised.
    Synced,
    /// The old or the new file, whichever the system has written.
    Lazy,
}

/// The place of a file: a directory without symbolic links, and a name in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    folder: PathBuf,
    name: OsString,
}

impl Target {
    /// Follows the symbolic links in a path. The file need not exist, its directory must.
    ///
    /// # Errors
    /// The directory does not exist or cannot be searched, the path names no file, or links form a
    /// loop.
    pub fn resolve(path: &Path) -> Result<Target, FileError> {
        let mut current = path.to_owned();
        for _ in 0..MAX_LINKS {
            let name = current
                .file_name()
                .ok_or_else(|| FileError::NoName { path: path.to_owned() })?;
            let folder = match current.parent() {
                Some(parent) if !parent.as_os_str().is_empty() => parent,
                _ => Path::new("."),
            };
            let target = Target {
                folder: folder.canonicalize().map_err(FileError::io("open", path))?,
                name: name.to_owned(),
            };
            let full = target.path();
            match full.symlink_metadata() {
                Ok(found) if found.is_symlink() => {
                    let next = full.read_link().map_err(FileError::io("open", &full))?;
                    current = target.folder.join(next);
                }
                Ok(_) => return Ok(target),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(target),
                Err(error) => return Err(FileError::io("open", &full)(error)),
            }
        }
        Err(FileError::io("open", path)(io::Error::from_raw_os_error(libc::ELOOP)))
    }

    /// The path, without symbolic links when it was resolved.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.join(&self.name)
    }

    /// A file in the same directory whose name has a suffix more.
    #[must_use]
    pub fn with_suffix(&self, suffix: &str) -> Target {
        let mut name = self.name.clone();
        name.push(suffix);
        Target {
            folder: self.folder.clone(),
            name,
        }
    }

    /// Opens the file; `None` if there is none. It never waits, not even for a FIFO's other end.
    ///
    /// # Errors
    /// It is not a regular file, or cannot be opened.
    pub fn open(&self, access: Access) -> Result<Option<File>, FileError> {
        let path = self.path();
        // The type is checked before opening as well, since opening a device can have an effect.
        match path.symlink_metadata() {
            Ok(found) => check_regular(&path, &found)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io("open", &path)(error)),
        }
        let opened = OpenOptions::new()
            .read(true)
            .write(access == Access::ReadWrite)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::io("open", &path)(error)),
        };
        let found = file.metadata().map_err(FileError::io("open", &path))?;
        check_regular(&path, &found)?;
        Ok(Some(file))
    }

    /// Whether the name still stands for an open file, and for no other.
    ///
    /// # Errors
    /// The system does not tell.
    pub fn names(&self, file: &File) -> io::Result<bool> {
        let open = file.metadata()?;
        match self.path().symlink_metadata() {
            Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Creates a file with a random name that can take the target's place.
    ///
    /// # Errors
    /// The target is not a regular file or may not be written, or a file cannot be created beside
    /// it.
    pub fn create(&self, visibility: Visibility) -> Result<NewFile, FileError> {
        let path = self.path();
        // Only who may write to a file may replace it.
        let old = self.open(Access::ReadWrite)?;
        let old = old.map(|file| file.metadata()).transpose();
        let old = old.map_err(FileError::io("open", &path))?;
        let mode = match visibility {
            Visibility::Private => PRIVATE,
            Visibility::Shared => SHARED,
        };
        let file = Builder::new()
            .prefix(&self.temporary_prefix())
            .permissions(Permissions::from_mode(mode))
            .tempfile_in(&self.folder)
            .map_err(FileError::io("create a file beside", &path))?;
        if let Some(old) = old {
            keep_owner(file.as_file(), &old).map_err(FileError::io("set the permissions of", &path))?;
        }
        Ok(NewFile {
            file,
            target: self.clone(),
        })
    }

    /// Removes files that [`Target::create`] has left behind for this target, in a process that was
    /// killed. Call it only where no other process can be writing the target. How many were
    /// removed.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn remove_leftovers(&self) -> io::Result<usize> {
        let prefix = self.temporary_prefix();
        let mut removed = 0;
        for entry in self.folder.read_dir()? {
            let entry = entry?;
            let is_left = is_temporary(&entry.file_name(), &prefix) && entry.file_type()?.is_file();
            if is_left && std::fs::remove_file(entry.path()).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Has the names in the target's directory reach the disk, where its file system can do that.
    ///
    /// # Errors
    /// The system refuses.
    pub fn sync_folder(&self) -> Result<(), FileError> {
        let folder = self.folder_to_sync(Durability::Synced)?;
        sync_names(folder, &self.path())
    }

    fn temporary_prefix(&self) -> OsString {
        let mut prefix = OsString::from(".");
        prefix.push(&self.name);
        prefix.push(".weir-");
        prefix
    }

    /// The directory, opened before anything is changed in it.
    fn folder_to_sync(&self, durability: Durability) -> Result<Option<File>, FileError> {
        match (durability, File::open(&self.folder)) {
            (Durability::Lazy, _) => Ok(None),
            (Durability::Synced, Ok(folder)) => Ok(Some(folder)),
            (Durability::Synced, Err(error)) if error.kind() == ErrorKind::PermissionDenied => Ok(None),
            (Durability::Synced, Err(error)) => Err(FileError::io("open", &self.folder)(error)),
        }
    }
}

/// Whether a name is a prefix and the random letters that a temporary file has.
fn is_temporary(name: &OsStr, prefix: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
    rest.is_some_and(|rest| rest.len() == 6 && rest.iter().all(u8::is_ascii_alphanumeric))
}

/// A file that has its name.
#[derive(Debug)]
pub struct Placed {
    /// The file.
    pub file: File,
    /// Why a loss of power may take the name back, if it may although it should not.
    pub unsynced: Option<FileError>,
}

impl Placed {
    fn new(file: File, folder: Option<File>, path: &Path) -> Self {
        let unsynced = sync_names(folder, path).err();
        Placed { file, unsynced }
    }
}

/// Synchronises the directory of a file, if there is one to be synchronised.
fn sync_names(folder: Option<File>, path: &Path) -> Result<(), FileError> {
    match folder.map_or(Ok(()), |folder| folder.sync_all()) {
        // There are file systems that cannot do this with directories.
        Err(error) if error.kind() != ErrorKind::InvalidInput => Err(FileError::io("synchronise", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A file that is not visible under its name yet. It is removed when this is dropped.
#[derive(Debug)]
pub struct NewFile {
    file: NamedTempFile,
    target: Target,
}

impl NewFile {
    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        self.file.as_file()
    }

    /// Takes the place of the target, whether or not there is a file of that name.
    ///
    /// A directory that may not be read, or whose file system cannot synchronise directories, is
    /// not synchronised.
    ///
    /// # Errors
    /// The system refuses; the target is as it was.
    pub fn replace(self, durability: Durability) -> Result<Placed, FileError> {
        let path = self.target.path();
        self.sync(durability)?;
        let folder = self.target.folder_to_sync(durability)?;
        let file = self
            .file
            .persist(&path)
            .map_err(|e| FileError::io("replace", &path)(e.error))?;
        Ok(Placed::new(file, folder, &path))
    }

    /// Takes the target's name, if no file has it. Of the directory the same holds as for
    /// [`NewFile::replace`].
    ///
    /// # Errors
    /// There is a file of that name, or the system refuses.
    pub fn place(self, durability: Durability) -> Result<Placed, FileError> {
        let path = self.target.path();
        self.sync(durability)?;
        let folder = self.target.folder_to_sync(durability)?;
        let file = self.file.persist_noclobber(&path).map_err(|e| match e.error.kind() {
            ErrorKind::AlreadyExists => FileError::Exists { path: path.clone() },
            _ => FileError::io("create", &path)(e.error),
        })?;
        Ok(Placed::new(file, folder, &path))
    }

    fn sync(&self, durability: Durability) -> Result<(), FileError> {
        match durability {
            Durability::Synced => self
                .file()
                .sync_all()
                .map_err(FileError::io("write", &self.target.path())),
            Durability::Lazy => Ok(()),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Writes a file as a whole. A reader sees the old or the new contents, never a part.
///
/// # Errors
/// The path is not that of a regular file, or the system refuses. The file is as it was.
pub fn write(path: &Path, contents: &[u8]) -> Result<(), FileError> {
    let target = Target::resolve(path)?;
    let mut file = target.create(Visibility::Shared)?;
    file.write_all(contents).map_err(FileError::io("write", path))?;
    file.replace(Durability::Lazy).map(drop)
}

/// What a file is, in words.
#[must_use]
pub fn kind_of(found: FileType) -> &'static str {
    if found.is_file() {
        "regular file"
    } else if found.is_dir() {
        "directory"
    } else if found.is_symlink() {
        "symbolic link"
    } else if found.is_fifo() {
        "FIFO"
    } else if found.is_socket() {
        "socket"
    } else if found.is_block_device() {
        "block device"
    } else if found.is_char_device() {
        "character device"
    } else {
        "file of an unknown kind"
    }
}

fn check_regular(path: &Path, found: &Metadata) -> Result<(), FileError> {
    if found.is_file() {
        return Ok(());
    }
    Err(FileError::NotRegular {
        path: path.to_owned(),
        kind: kind_of(found.file_type()),
    })
}

/// Gives a new file the owner and permissions of the one that it replaces.
fn keep_owner(file: &File, old: &Metadata) -> io::Result<()> {
    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
        // Only root may change owners. For other users the file becomes their own.
        let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(Permissions::from_mode(old.mode() & PERMISSION_BITS))
}
