//! Errors of a switch.

use crate::plan::TooManyGroups;

/// Why entries were not read or not written.
#[derive(Debug, thiserror::Error)]
pub enum SwitchError {
    /// The switch, or the connection to it.
    #[error(transparent)]
    Client(#[from] weir_client::Error),
    /// The switch runs another program.
    #[error("the switch runs no program for RINA routers (p4/programs/rina_router, or one with the same tables): {0}")]
    Program(weir_client::Error),
    /// An entry is not one of such a program.
    #[error("table {table}: expected {expected}, found {found}")]
    Entry {
        /// Name of the table.
        table: String,
        /// What an entry has.
        expected: &'static str,
        /// What this one has.
        found: String,
    },
    /// There are too many groups.
    #[error(transparent)]
    Groups(#[from] TooManyGroups),
}
