//! Files that belong to a program, such as the model of an extern.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use weir_files::{FileError, Readable};

/// A file of a program cannot be read.
#[derive(Debug, Error)]
pub enum ProgramFileError {
    /// The switch was made without a place where programs have files.
    #[error("`{name}` cannot be read: programs have no files here")]
    NoFiles {
        /// The name that the program gives.
        name: String,
    },
    /// The name leads out of the folder.
    #[error("`{name}` is no file of the program: give a path below the program's folder, without `..`")]
    Outside {
        /// The name that the program gives.
        name: String,
    },
    /// The file itself cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Where constructors of extern objects read files that a program names.
pub trait Files: Send + Sync {
    /// A file as a whole; one of more than `limit` bytes is an error.
    ///
    /// # Errors
    /// There is no such file, it is too large, or it cannot be read. The message names it.
    fn read(&self, name: &str, limit: usize) -> Result<Vec<u8>, ProgramFileError>;
}

/// No files: a program that names one is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, name: &str, _: usize) -> Result<Vec<u8>, ProgramFileError> {
        Err(ProgramFileError::NoFiles { name: name.to_owned() })
    }
}

/// The files below a folder.
///
/// A control plane may send the program, so that its names are not trusted: absolute paths, and
/// those with `..`, are refused. Symbolic links are followed.
#[derive(Debug, Clone)]
pub struct Folder(PathBuf);

impl Folder {
    /// This folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Folder(folder.to_owned())
    }

    /// The folder of a program's file.
    #[must_use]
    pub fn of_program(program: &Path) -> Arc<dyn Files> {
        Arc::new(Folder::new(program.parent().unwrap_or(Path::new(""))))
    }
}

impl Files for Folder {
    fn read(&self, name: &str, limit: usize) -> Result<Vec<u8>, ProgramFileError> {
        let is_inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(is_inside) {
            return Err(ProgramFileError::Outside { name: name.to_owned() });
        }
        Ok(weir_files::read(&self.0.join(name), Readable::Regular, limit)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_the_files_below_it_and_no_others() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("models")).expect("a folder in it");
        std::fs::write(folder.path().join("models/a"), b"abc").expect("written");
        let files = Folder::of_program(&folder.path().join("program.p4"));
        for name in ["models/a", "./models/a"] {
            assert_eq!(files.read(name, 3).expect(name), b"abc");
        }
        for name in ["", "..", "../a", "models/../models/a", "/etc/hostname"] {
            let error = files.read(name, 3).expect_err(name).to_string();
            assert!(
                error.starts_with(&format!("`{name}` is no file of the program")),
                "{error}"
            );
        }
        for (name, limit) in [("models/a", 2), ("models/b", 3), ("models", 3)] {
            let error = files.read(name, limit).expect_err(name).to_string();
            assert!(
                error.contains(&format!("{}/{name}", folder.path().display())),
                "{error}"
            );
        }
        let nowhere = NoFiles.read("a", 1).expect_err("none").to_string();
        assert_eq!(nowhere, "`a` cannot be read: programs have no files here");
    }
}
