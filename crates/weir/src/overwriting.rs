//! Outputs that are files in use: opening them for writing would empty those.

use anyhow::{Result, bail};
use std::path::Path;
use weir_files::Identity;

/// Files that a command uses, each with its part in the command.
#[derive(Default)]
pub struct InUse(Vec<(Identity, String)>);

impl InUse {
    /// None yet.
    pub fn new() -> Self {
        InUse::default()
    }

    /// Adds a file that is read, or that is replaced safely (the state).
    pub fn read(&mut self, path: &Path, part: impl Into<String>) {
        self.0
            .extend(Identity::of(path).map(|identity| (identity, part.into())));
    }

    /// Adds a file that is written.
    ///
    /// # Errors
    /// The file is in use already.
    pub fn write(&mut self, path: &Path, part: impl Into<String>) -> Result<()> {
        let part = part.into();
        let Some(identity) = Identity::of(path) else {
            return Ok(());
        };
        if let Some((_, other)) = self.0.iter().find(|(known, _)| *known == identity) {
            bail!(
                "{} would be written over while it is in use: expected a file of its own for {part}, \
                 found {other}; write to another file",
                path.display()
            );
        }
        self.0.push((identity, part));
        Ok(())
    }
}
