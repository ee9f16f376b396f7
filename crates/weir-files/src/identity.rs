//! Which file a path names.

use crate::Target;
use std::fs::metadata;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Which regular file a path names. Paths with equal identities name the same file, also through
/// symbolic and hard links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(Place);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// It exists: device and inode.
    Inode(u64, u64),
    /// It would be created here.
    New(PathBuf),
}

impl Identity {
    /// That of the file at a path, which need not exist. `None`: it is a device or a stream, which
    /// opening does not empty, or cannot be resolved, so that it cannot be opened either.
    #[must_use]
    pub fn of(path: &Path) -> Option<Identity> {
        let place = Target::resolve(path).ok()?.path();
        match metadata(&place) {
            Ok(found) if found.is_file() => Some(Identity(Place::Inode(found.dev(), found.ino()))),
            Ok(_) => None,
            Err(error) if error.kind() == ErrorKind::NotFound && !place.starts_with("/proc") => {
                Some(Identity(Place::New(place)))
            }
            Err(_) => None,
        }
    }
}
