//! The error when the system starts no thread.

use std::io;

/// The system started no thread.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the system starts no thread for {purpose} ({reason}): a limit of processes and threads (ulimit -u, \
     pids.max of the control group, TasksMax of the service) or of memory (ulimit -v; the compiler's stack \
     has 256 MiB of addresses) is reached; raise it, or end other processes"
)]
pub struct NoThread {
    purpose: &'static str,
    reason: String,
}

impl NoThread {
    /// For the thread that was to do this, and with the error of the system.
    #[must_use]
    pub fn new(purpose: &'static str, error: &io::Error) -> Self {
        NoThread {
            purpose,
            reason: error.to_string(),
        }
    }
}
