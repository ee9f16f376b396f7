//! What an IPC process keeps over restarts: its address.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    address: Option<u32>,
}

/// The file.
pub struct StateFile {
    path: PathBuf,
    state: State,
    is_saved: bool,
}

impl StateFile {
    /// Reads the file, if it is there.
    ///
    /// # Errors
    /// It is no such file.
    pub fn open(path: &Path) -> Result<Self> {
        let state = match path.try_exists() {
            Ok(true) => {
                let text = crate::input::text(path)?;
                serde_json::from_str(&text)
                    .with_context(|| format!("{}: expected the state of an IPC process", path.display()))?
            }
            Ok(false) => State::default(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Ok(StateFile {
            path: path.to_owned(),
            state,
            is_saved: true,
        })
    }

    /// The address that the IPC process had.
    pub fn address(&self) -> Option<u32> {
        self.state.address
    }

    /// Changes the address; [`StateFile::save`] writes it.
    pub fn set_address(&mut self, address: u32) {
        if self.state.address != Some(address) {
            self.state.address = Some(address);
            self.is_saved = false;
        }
    }

    /// Writes the state if it has changed.
    ///
    /// # Errors
    /// The file cannot be written; the one before is still there, and the next call tries again.
    pub fn save(&mut self) -> Result<()> {
        if self.is_saved {
            return Ok(());
        }
        let text = serde_json::to_vec(&self.state)?;
        weir_files::write(&self.path, &text)?;
        self.is_saved = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::StateFile;

    #[test]
    fn the_address_is_kept_and_other_files_are_not_touched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut state = StateFile::open(&path).unwrap();
        assert_eq!(state.address(), None);
        state.set_address(7);
        state.save().unwrap();
        assert_eq!(StateFile::open(&path).unwrap().address(), Some(7));
        std::fs::write(&path, "mine").unwrap();
        let Err(error) = StateFile::open(&path) else {
            panic!("it is no state");
        };
        assert!(error.to_string().contains("expected the state of an IPC process"));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn a_state_that_could_not_be_written_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("later").join("state");
        let mut state = StateFile::open(&path).unwrap();
        state.set_address(7);
        assert!(state.save().is_err());
        std::fs::create_dir(folder.path().join("later")).unwrap();
        state.set_address(7);
        state.save().unwrap();
        assert_eq!(StateFile::open(&path).unwrap().address(), Some(7));
    }
}
