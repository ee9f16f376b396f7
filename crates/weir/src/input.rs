//! Files that the user names and that are read as a whole.

use anyhow::Result;
use std::path::Path;
use weir_files::Readable;

/// Most bytes of such a file, as of a source file.
const LIMIT: usize = weir_syntax::preprocess::MAX_FILE_BYTES;

/// Reads a file, or what comes through a pipe.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    Ok(weir_files::read(path, Readable::Streams, LIMIT)?)
}

/// Reads a regular file, which may be read again.
pub fn regular(path: &Path) -> Result<Vec<u8>> {
    Ok(weir_files::read(path, Readable::Regular, LIMIT)?)
}

/// Bytes that a file of certificates or keys has at most.
const PEM_LIMIT: usize = 4 << 20;

/// Reads a file of certificates or keys.
pub fn pem(path: &Path, readable: Readable) -> Result<Vec<u8>> {
    Ok(weir_files::read(path, readable, PEM_LIMIT)?)
}

/// Most bytes of a file of entries: some ten million of them.
const ENTRIES_LIMIT: usize = 1 << 30;

/// Reads entries, or a packet test.
pub fn entries(path: &Path) -> Result<String> {
    Ok(weir_files::read_text(path, Readable::Streams, ENTRIES_LIMIT)?)
}

/// As [`bytes`], of a text.
pub fn text(path: &Path) -> Result<String> {
    Ok(weir_files::read_text(path, Readable::Streams, LIMIT)?)
}
