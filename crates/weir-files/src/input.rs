//! Files that are read as a whole, up to a limit. What is no file of that sort is refused before it
//! is opened.

use super::{FileError, kind_of};
use std::fs::{File, FileType, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

/// Names of files that the process has open already, such as its standard input.
const DESCRIPTORS: [&str; 4] = ["/dev/stdin", "/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"];

/// What may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readable {
    /// Regular files. Reading never waits for anybody.
    Regular,
    /// Also pipes that the process has open already (`/dev/fd/N`, as the shell's `<(COMMAND)` gives
    /// them). Reading waits for their writer.
    Open,
    /// Also pipes, and `/dev/stdin` and `/dev/fd/N` whatever they are: for files that a user names.
    /// Reading waits for the writer.
    Streams,
}

impl Readable {
    fn allows(self, path: &Path, kind: FileType) -> bool {
        let is_descriptor = || DESCRIPTORS.iter().any(|d| path.starts_with(d));
        let is_stream = match self {
            Readable::Regular => false,
            Readable::Open => kind.is_fifo() && is_descriptor(),
            Readable::Streams => kind.is_fifo() || (kind.is_char_device() && is_descriptor()),
        };
        kind.is_file() || is_stream
    }
}

/// Reads a file as a whole. Symbolic links are followed.
///
/// # Errors
/// The file is not of an allowed kind, has more than `limit` bytes, or cannot be read.
pub fn read(path: &Path, readable: Readable, limit: usize) -> Result<Vec<u8>, FileError> {
    let check = |kind: FileType| match readable.allows(path, kind) {
        true => Ok(()),
        false => Err(FileError::NotRegular {
            path: path.to_owned(),
            kind: kind_of(kind),
        }),
    };
    // Opening a FIFO waits for its other end, and opening a device can have an effect: the type is
    // checked first.
    let found = path.metadata().map_err(FileError::io("read", path))?;
    check(found.file_type())?;
    let file = open(path, readable).map_err(FileError::io("read", path))?;
    let found = file.metadata().map_err(FileError::io("read", path))?;
    check(found.file_type())?;
    let mut bytes = Vec::new();
    file.take(limit as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(FileError::io("read", path))?;
    if bytes.len() > limit {
        return Err(FileError::TooLarge {
            path: path.to_owned(),
            limit,
        });
    }
    Ok(bytes)
}

fn open(path: &Path, readable: Readable) -> std::io::Result<File> {
    let flags = match readable {
        // Another file may have taken the name since the check.
        Readable::Regular => libc::O_NONBLOCK | libc::O_NOCTTY,
        Readable::Open | Readable::Streams => libc::O_NOCTTY,
    };
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Reads a file as text.
///
/// # Errors
/// As [`read`], or the file is not UTF-8.
pub fn read_text(path: &Path, readable: Readable, limit: usize) -> Result<String, FileError> {
    String::from_utf8(read(path, readable, limit)?).map_err(|_| FileError::NotText { path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, [0xff; 8]).unwrap();
        assert_eq!(read(&path, Readable::Regular, 8).unwrap(), [0xff; 8]);
        let large = read(&path, Readable::Regular, 7).unwrap_err();
        assert!(matches!(large, FileError::TooLarge { limit: 7, .. }), "{large}");
        let binary = read_text(&path, Readable::Regular, 8).unwrap_err();
        assert!(matches!(binary, FileError::NotText { .. }), "{binary}");
    }

    #[test]
    fn only_streams_that_are_named_are_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let kind = |path: &Path, readable| match read(path, readable, 8) {
            Err(FileError::NotRegular { kind, .. }) => kind,
            other => panic!("{other:?}"),
        };
        assert_eq!(kind(&fifo, Readable::Regular), "FIFO");
        for readable in [Readable::Regular, Readable::Streams] {
            assert_eq!(kind(folder.path(), readable), "directory");
            assert_eq!(kind("/dev/zero".as_ref(), readable), "character device");
        }
        let writer = std::thread::spawn({
            let fifo = fifo.clone();
            move || std::fs::write(fifo, "text")
        });
        assert_eq!(read_text(&fifo, Readable::Streams, 8).unwrap(), "text");
        writer.join().unwrap().unwrap();
    }
}
