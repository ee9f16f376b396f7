//! What systems other than Linux have instead.

use std::io;

/// Numbers of as many processors as a process may use.
///
/// # Errors
/// The system does not tell.
pub fn processors() -> io::Result<Vec<usize>> {
    Ok((0..std::thread::available_parallelism()?.get()).collect())
}

/// Threads cannot be told where to run.
///
/// # Errors
/// Always.
pub fn pin_to(_processor: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
